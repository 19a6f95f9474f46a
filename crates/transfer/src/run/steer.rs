//! Control of a run: samples its progress, sets the number of jobs, and produces the verdict at the end.

mod conditions;
mod controller;
mod ends;
mod facts;
mod interim;
mod memory;
mod prove;
mod record;
mod thread;

use crate::journal::Ledger;
use crate::object::JOBS_SEED;
use crate::plan::Spec;
use crate::plan::objects::Stores;
use controller::Controller;
pub(super) use ends::Ends;
use facts::Subject;
use hakobu_core::limit::{Controls, Gate, Limiter, Limits, Work};
use hakobu_core::meter::Meter;
use hakobu_core::unit::Jobs;
use hakobu_explain::tune::{self, Tuner};
use hakobu_sys::process;
pub(super) use memory::RunHints;
use std::path::Path;
use std::sync::Arc;
pub(super) use thread::ControllerThread;

/// Parameters of control: the ends of the run, and the user's limits.
pub(super) struct Terms {
    pub work: Work,
    pub ends: Ends,
    pub jobs: Jobs,
    pub bytes_per_s_max: Option<u64>,
    pub operations_per_s_max: Option<u64>,
    pub memory_bytes_max: Option<u64>,
    /// Experiments are made (`--prove`).
    pub proves: bool,
    /// Number of counting threads; `None` for one per job.
    pub lanes: Option<usize>,
    /// A verdict is requested, so the machine is sampled.
    pub judges: bool,
}

impl Terms {
    /// Returns the parameters of a transfer.
    pub fn of(spec: &Spec, stores: &Stores) -> Terms {
        let ends = Ends::of(spec, stores);
        let with_session = spec.has_store();
        Terms {
            work: if with_session { Work::Store } else { Work::Paths },
            ends,
            jobs: spec.jobs,
            bytes_per_s_max: spec.bytes_per_s_max,
            operations_per_s_max: spec.operations_per_s_max,
            memory_bytes_max: spec.memory_bytes_max,
            proves: spec.prove,
            lanes: with_session.then(process::cpus),
            judges: true,
        }
    }

    /// Returns the parameters of a removal of objects, with a fixed number of requests.
    pub fn of_removal(jobs: usize, requests_per_s_max: Option<u64>) -> Terms {
        Terms {
            jobs: Jobs::Fixed(jobs),
            operations_per_s_max: requests_per_s_max,
            lanes: Some(process::cpus()),
            ..Terms::of_work(Work::Store, Ends::default())
        }
    }

    /// Returns the parameters of work without limits and without a verdict.
    fn of_work(work: Work, ends: Ends) -> Terms {
        Terms {
            work,
            ends,
            jobs: Jobs::Auto,
            bytes_per_s_max: None,
            operations_per_s_max: None,
            memory_bytes_max: None,
            proves: false,
            lanes: None,
            judges: false,
        }
    }
}

/// Limits of a walk, a second in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Bytes of content.
    pub bytes_per_s_max: Option<u64>,
    /// Operations.
    pub operations_per_s_max: Option<u64>,
}

/// Runs `work`, which walks the trees at `paths` within these rates, with a tuned number of workers; returns its result, and the number
/// that was set for most of the time.
pub fn steered<T>(
    paths: &[&Path],
    jobs: Jobs,
    rates: Rates,
    work: impl FnOnce(&Controls, &Limits) -> T,
) -> (T, usize) {
    let Rates { bytes_per_s_max, operations_per_s_max } = rates;
    let terms = Terms::of_work(Work::Walk, Ends::of_paths(paths));
    let terms = Terms { jobs, bytes_per_s_max, operations_per_s_max, ..terms };
    let configuration = Configuration::new(terms, RunHints::default());
    let (controls, limits) = (Arc::clone(&configuration.controls), configuration.limits);
    let controller = configuration.begin(&Arc::default());
    let done = work(&controls, &limits);
    (done, controller.end(false).jobs)
}

/// A run that is about to begin: its controls and initial values.
pub(super) struct Configuration {
    /// Gate, limiters and meter.
    pub controls: Arc<Controls>,
    /// Limits on concurrency and open files.
    pub limits: Limits,
    subject: Subject,
    hints: RunHints,
    seed: usize,
    remembered: bool,
    proves: bool,
    judges: bool,
    /// A controller is needed during the run: to tune, to judge, or to keep a record.
    watches: bool,
}

impl Configuration {
    /// Determines the initial and the maximum number of jobs.
    pub fn new(terms: Terms, hints: RunHints) -> Configuration {
        let Terms { ends, jobs, bytes_per_s_max, operations_per_s_max, .. } = terms;
        let open_files_max = process::raise_open_files_limit();
        let limits = Limits::new(terms.work, jobs, terms.memory_bytes_max, open_files_max);
        if terms.work != Work::Store {
            process::reserve_descriptors(limits.open_dirs_max as u64);
        }
        let auto = jobs == Jobs::Auto;
        let by_rule = match (jobs, ends.has_store()) {
            (Jobs::Auto, true) => JOBS_SEED,
            _ => tune::jobs(jobs, &ends.mediums(), process::cpus()),
        };
        let remembered = if auto { hints.jobs(&ends, by_rule) } else { None };
        let seed = remembered.unwrap_or(by_rule).clamp(1, limits.jobs_max);
        let limiter = |per_s: Option<u64>| per_s.map(|per_s| Arc::new(Limiter::new(per_s)));
        let controls = Controls {
            gate: Gate::new(seed, limits.jobs_max),
            meter: Arc::new(Meter::new(terms.lanes.unwrap_or(limits.jobs_max))),
            bytes: limiter(bytes_per_s_max),
            operations: limiter(operations_per_s_max),
        };
        let subject = Subject { ends, jobs_fixed: !auto, bytes_per_s_max, operations_per_s_max };
        Configuration {
            controls: Arc::new(controls),
            limits,
            subject,
            hints,
            seed,
            remembered: remembered.is_some(),
            proves: terms.proves,
            judges: terms.judges && limits.samples,
            watches: terms.judges || auto,
        }
    }

    /// Starts the controller, which also writes the heartbeats of the run's record.
    pub fn begin(self, ledger: &Arc<Ledger>) -> ControllerThread {
        let jobs_max = self.controls.gate.jobs_max();
        let tuner =
            (!self.subject.jobs_fixed).then(|| Tuner::new(jobs_max, self.seed, self.remembered));
        let controller = Controller::new(tuner, self.proves, self.judges);
        ControllerThread::begin(
            (self.controls, Arc::clone(ledger)),
            self.subject,
            self.hints,
            controller,
            self.watches,
        )
    }
}
