//! Parameters of a worker, shared by the loop over shards and by the work on each shard.

use crate::folder::Folder;
use crate::phase::Phase;
use crate::plan::Plan;
use hakobu_core::control::Control;
use hakobu_core::event::Listener;
use hakobu_transfer::run::Spec;
use std::time::Duration;

/// Setup of a worker.
pub struct Setup<'a> {
    /// The run folder.
    pub folder: &'a dyn Folder,
    /// Its plan.
    pub plan: &'a Plan,
    /// The transfer as the plan's command line has it.
    pub spec: Spec,
    /// Stops the worker.
    pub control: &'a Control,
    /// Hears of problems and progress.
    pub listener: &'a dyn Listener,
    /// A worker whose counter stands still for so long counts as gone.
    pub stale: Duration,
    /// Workers that are expected, this one included.
    pub workers: u64,
    /// Work on the shards.
    pub phase: Phase,
}
