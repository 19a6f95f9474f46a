//! Setup of a worker, and its results: shared by the loop over shards and by the work on each shard.

use crate::folder::{Folder, Trouble};
use crate::phase::Phase;
use crate::plan::Plan;
use crate::verdict::Judged;
use hakobu_core::control::Control;
use hakobu_core::event::Listener;
use hakobu_transfer::journal;
use hakobu_transfer::run::{Outcome, Spec};
use serde::{Deserialize, Serialize};
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

impl Setup<'_> {
    /// Returns whether names are paths at one end at least: keys of a store may hold `..` and begin with a slash.
    pub(crate) fn has_paths(&self) -> bool {
        let is_local = |root: &String| !journal::bytes(root).starts_with(b"s3://");
        self.plan.local
            || self.spec.target.local().is_some()
            || self.plan.roots.iter().any(is_local)
    }
}

/// Result of a shard that was worked on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Number of the shard.
    pub shard: u32,
    /// The worker that did it.
    pub worker: String,
    /// Its host.
    pub host: String,
    /// Number of the try; 0 for the first.
    pub generation: u32,
    /// Entries of the shard.
    pub entries: u64,
    /// Files transferred.
    pub files: u64,
    /// Bytes of content moved.
    pub bytes: u64,
    /// Entries that needed nothing.
    pub skipped: u64,
    /// Entries that could not be transferred.
    pub failed: u64,
    /// Entries that were gone.
    pub vanished: u64,
    /// Entries that were not what the plan saw, and were left alone.
    pub changed: u64,
    /// Entries that differ at both ends; of a verification, where `files` and `bytes` are those that
    /// were compared.
    #[serde(default)]
    pub differences: u64,
    /// Seconds of the worker's life at which it began and ended.
    pub from_s: f64,
    /// See `from_s`.
    pub to_s: f64,
    /// Jobs in use for most of the time.
    pub jobs: usize,
    /// Its verdict, if it ran long enough for one.
    pub verdict: Option<Judged>,
    /// Time of the transfer that the verdict is on.
    #[serde(skip)]
    pub(crate) judged_for: Duration,
    /// Problems: a sentence without names, how many, and the first one's path.
    pub problems: Vec<(String, u64, String)>,
    /// The shard cannot be read; `collect` transfers its entries.
    pub damaged: Option<String>,
}

impl Done {
    /// Takes over the verdict of a transfer; of several that of the longest.
    pub fn judge(&mut self, outcome: &Outcome) {
        if let Some(verdict) = &outcome.findings.verdict
            && outcome.took >= self.judged_for
        {
            self.verdict = Some(Judged::of(verdict));
            self.judged_for = outcome.took;
        }
    }
}

/// Reason why a worker ended that was stopped.
pub(crate) fn interrupted() -> Trouble {
    Trouble::passing("interrupted: the rest was returned")
}
