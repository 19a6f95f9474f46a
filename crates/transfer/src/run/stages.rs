//! The stages of every transfer, independent of the engine: check of the options, results of earlier runs, number of
//! jobs, record, controller, passes, and totals.

use super::outcome::Outcome;
use super::steer::{Configuration, RunHints, Terms};
use crate::engine::Pass;
use crate::journal::Ledger;
use crate::location::Location;
use crate::plan::Spec;
use crate::plan::objects::refuse_unfit;
use crate::policy::Delete;
use hakobu_core::control::Control;
use hakobu_core::error::Fatal;
use hakobu_core::event::{Event, Listener};
use hakobu_core::limit::{Controls, Limits, check_memory};
use hakobu_core::unit::Totals;
use hakobu_s3::RequestCounts;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// A transfer between paths, a transfer with a store on a side, or a removal. Its arguments are resolved, and its
/// target exists.
pub(super) trait Job {
    /// Returns the ends and limits of the run.
    fn terms(&self) -> Terms;
    /// Returns the record of the run, and those of other runs.
    fn ledger(&self) -> Ledger;
    /// Returns the passes over the entries, in order.
    fn passes(&self) -> &'static [Pass];
    /// Runs one pass; returns its totals, and the error that made all further work pointless.
    ///
    /// # Errors
    /// An error that prevents the pass from beginning.
    fn pass(&self, pass: Pass, resources: &Resources) -> Result<(Totals, Option<Fatal>), Fatal>;
    /// Returns whether the record is useless to a later run after everything was done.
    fn forgets_record(&self) -> bool {
        false
    }
    /// Cleans up after a run that was neither stopped nor aborted.
    fn tidy(&self) {}
    /// Returns the number of requests to stores.
    fn requests(&self) -> RequestCounts {
        RequestCounts::default()
    }
}

/// Resources shared by the passes of a run.
pub(super) struct Resources {
    /// Gate, limiters and meter.
    pub controls: Arc<Controls>,
    /// Limits on concurrency and open files.
    pub limits: Limits,
    /// The record of this run, and those of other runs.
    pub ledger: Arc<Ledger>,
}

/// A run that is about to begin.
pub(super) struct Run<'a> {
    pub control: &'a Control,
    pub listener: &'a dyn Listener,
    started: Instant,
    hints: RunHints,
}

impl<'a> Run<'a> {
    /// Returns a run without information from earlier runs.
    pub fn new(control: &'a Control, listener: &'a dyn Listener) -> Run<'a> {
        Run { control, listener, started: Instant::now(), hints: RunHints::default() }
    }

    /// Returns the run of a transfer: checks the options, and reads the results of earlier runs.
    ///
    /// # Errors
    /// Incompatible options, a damaged file of job hints.
    pub fn of(
        spec: &Spec,
        control: &'a Control,
        listener: &'a dyn Listener,
    ) -> Result<Run<'a>, Fatal> {
        let run = Run::new(control, listener);
        spec.policy.check()?;
        if spec.target == Location::Local(PathBuf::new()) {
            return Err(Fatal::new(1, "an empty path names nothing"));
        }
        if spec.has_store() {
            refuse_unfit(spec)?;
        }
        let hints = RunHints::read(spec)?;
        let part_bytes = spec.objects.options.part_bytes;
        check_memory(spec.memory_bytes_max, spec.has_store(), part_bytes)?;
        Ok(Run { hints, ..run })
    }

    /// Returns the outcome of a run that was stopped before it moved anything.
    pub fn stopped(self) -> Outcome {
        Outcome { took: self.started.elapsed(), stopped: true, ..Outcome::default() }
    }

    /// Runs the job.
    ///
    /// # Errors
    /// As [`Job::pass`].
    pub fn carry_out(self, job: &impl Job) -> Result<Outcome, Fatal> {
        let Run { control, listener, started, hints } = self;
        let configuration = Configuration::new(job.terms(), hints);
        let ledger = Arc::new(job.ledger());
        let resources = Resources {
            controls: Arc::clone(&configuration.controls),
            limits: configuration.limits,
            ledger,
        };
        listener.event(Event::Begins(&resources.controls.meter));
        let controller = configuration.begin(&resources.ledger);
        let (mut totals, mut fatal) = (Totals::default(), None);
        for pass in job.passes() {
            let (more, stopped_by) = job.pass(*pass, &resources)?;
            totals += more;
            fatal = fatal.take().or(stopped_by);
            // Never delete targets after an incomplete transfer.
            if fatal.is_some() || control.is_stopped() {
                break;
            }
        }
        let ended = !control.is_stopped() && fatal.is_none();
        let findings = controller.end(ended);
        let whole = totals.failed == 0 && totals.vanished == 0;
        resources.ledger.end(ended && whole && job.forgets_record());
        if ended {
            job.tidy();
        }
        Ok(Outcome {
            totals,
            took: started.elapsed(),
            jobs: findings.jobs,
            stopped: control.is_stopped() && fatal.is_none(),
            fatal,
            requests: job.requests(),
            findings,
        })
    }
}

/// Returns the passes of a transfer; with `may_delete` and by its policy a separate pass removes extraneous entries.
/// Removal during the transfer is part of its one pass.
pub(super) fn passes(delete: Delete, may_delete: bool) -> &'static [Pass] {
    match delete {
        Delete::Before if may_delete => &[Pass::Delete, Pass::Transfer],
        Delete::After if may_delete => &[Pass::Transfer, Pass::Delete],
        _ => &[Pass::Transfer],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_passes() {
        let letters = |delete, may_delete| -> String {
            let passes = passes(delete, may_delete).iter();
            passes.map(|pass| if *pass == Pass::Delete { 'd' } else { 't' }).collect()
        };
        for (delete, order) in [
            (Delete::No, "t"),
            (Delete::Before, "dt"),
            (Delete::During, "t"),
            (Delete::After, "td"),
        ] {
            assert_eq!(letters(delete, true), order);
            assert_eq!(letters(delete, false), "t");
        }
    }
}
