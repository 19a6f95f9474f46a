//! One worker in this process: of `cluster work`, and of a collect that verifies.

use super::opened::{Opened, code_of};
use crate::show::{Show, Wanted};
use crate::{exit, signals};
use hakobu_cluster::phase::Phase;
use hakobu_cluster::work::{Setup, work};
use hakobu_transfer::run::{Control, Outcome};
use std::sync::Arc;
use std::time::Duration;

/// Parameters of a worker.
pub struct Job {
    /// The phase.
    pub phase: Phase,
    /// Time without a sign of life after which others count as gone.
    pub stale: Duration,
    /// Workers that are expected; limits are divided by their number.
    pub workers: u64,
    /// The command that runs it, for messages.
    pub command: &'static str,
    /// Exit code of a second signal.
    pub at_once: u8,
}

/// End of a worker.
pub struct End {
    /// Exit code of `cluster work`.
    pub code: u8,
    /// Reason for an end before all was done.
    pub why: Option<String>,
    /// Everything could be shown.
    pub complete: bool,
}

/// Runs a worker to its end.
///
/// # Errors
/// A sentence: it cannot run as the plan's options ask for.
pub fn one(mut opened: Opened, job: Job) -> Result<End, String> {
    let control = Arc::new(Control::default());
    signals::stop(&control, job.at_once, "this run");
    opened.wanted.priority.apply()?;
    for limit in [&mut opened.spec.bytes_per_s_max, &mut opened.spec.operations_per_s_max] {
        *limit = limit.map(|all| (all / job.workers).max(1));
    }
    let wanted = Wanted {
        command: job.command,
        done: "copied",
        quiet: opened.wanted.quiet,
        problems: opened.wanted.problems,
        links: opened.wanted.links.clone(),
        ..Wanted::default()
    };
    let show = Show::new(wanted, Arc::clone(&control))?;
    let setup = Setup {
        folder: &*opened.folder,
        plan: &opened.plan,
        spec: opened.spec,
        control: &control,
        listener: &show,
        stale: job.stale,
        workers: job.workers,
        phase: job.phase,
    };
    let (code, why) = match work(&setup) {
        Ok(()) => (exit::OK, None),
        Err(trouble) => (code_of(&trouble), Some(trouble.message)),
    };
    let complete = show.finish(&Outcome::default(), code);
    Ok(End { code, why, complete })
}
