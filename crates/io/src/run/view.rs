//! A run under way, as those see it who watch.

use super::Progress;
use super::clone::Task;
use crate::outcome::Outcome;
use std::time::{Duration, Instant};

/// Time for clones to answer a request for their measurements: twice the time in which each
/// looks around, if no block of it takes longer.
const PATIENCE: Duration = Duration::from_millis(100);
/// Between two looks for answers.
const NAP: Duration = Duration::from_millis(2);

/// A run under way.
pub struct View<'a> {
    /// Its progress.
    pub progress: Progress,
    pub(super) tasks: &'a [Task<'a>],
    /// Measurements of clones of earlier groups.
    pub(super) ended: &'a [Outcome],
    /// Measurements of those of this group that have ended.
    pub(super) done: &'a [Option<Outcome>],
}

impl View<'_> {
    /// Measurements so far of all clones that have begun, in the order of jobs and clones; logs are
    /// there when a clone has ended. Takes up to a tenth of a second; a clone that waits for a block
    /// all that time stands there as it was when it was asked before.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let at_work = || self.tasks.iter().zip(self.done).filter(|(_, done)| done.is_none());
        at_work().for_each(|(task, _)| task.lane.ask());
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && at_work().any(|(task, _)| task.lane.is_asked()) {
            std::thread::sleep(NAP);
        }
        let of_group = self.tasks.iter().zip(self.done).filter_map(|(task, done)| match done {
            Some(outcome) => Some(outcome.clone()),
            None => {
                let (job, clone) = (task.files.job, task.files.clone);
                let trims = task.job.trims;
                task.lane.told().map(|outcome| Outcome { job, clone, trims, ..outcome })
            }
        });
        self.ended.iter().cloned().chain(of_group).collect()
    }
}
