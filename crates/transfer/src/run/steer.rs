//! Whoever steers a run: watches what comes of it, sets how much may be under way, and knows at the
//! end how it went.

mod bounds;
mod ceilings;
mod ends;
mod facts;
mod flight;
mod memory;
mod pilot;
mod prove;
mod record;

use super::Spec;
use crate::limit::{Gate, Helm, Limiter};
use crate::meter::Meter;
use crate::object::JOBS_SEED;
use crate::tune::{self, Step, Tuner};
use crate::unit::Jobs;
use crate::verdict::Verdict;
pub(super) use bounds::check as check_memory;
pub use bounds::{memory_bytes_min, too_little_memory};
pub(super) use ends::Ends;
use facts::Subject;
pub(super) use flight::Flight;
use hakobu_sys::process;
pub(super) use memory::Notes;
use pilot::Pilot;
use std::sync::Arc;

/// What was found out about a run while it went on.
#[derive(Debug, Default)]
pub struct Findings {
    /// The number of jobs that was allowed for most of the time.
    pub jobs: usize,
    /// The numbers of jobs that were used, and what each brought.
    pub path: Vec<Step>,
    /// Why it was not faster; `None` for runs too short to tell.
    pub verdict: Option<Verdict>,
}

/// A run that is about to begin: what it is steered by, and from where.
pub(super) struct Course {
    /// What the engine obeys and keeps.
    pub helm: Arc<Helm>,
    subject: Subject,
    notes: Notes,
    seed: usize,
    remembered: bool,
    proves: bool,
}

impl Course {
    /// Sizes a run: how many jobs it begins with, and how many there may be. `lanes` is how many
    /// threads will count what they do; `None` for one each job.
    pub fn new(spec: &Spec, ends: Ends, notes: Notes, lanes: Option<usize>) -> Course {
        let with_store = ends.has_store();
        let open_files_max = process::raise_open_files_limit();
        let jobs_max = bounds::jobs_max(spec, &ends, open_files_max);
        let auto = spec.jobs == Jobs::Auto;
        let noted = if auto { notes.jobs(&ends) } else { None };
        let by_rule = match (spec.jobs, with_store) {
            (Jobs::Auto, true) => JOBS_SEED,
            (jobs, _) => tune::jobs(jobs, &ends.mediums(), process::cpus(), open_files_max),
        };
        let seed = noted.unwrap_or(by_rule).clamp(1, jobs_max);
        let helm = Helm {
            gate: Gate::new(seed, jobs_max),
            meter: Meter::new(lanes.unwrap_or(jobs_max)),
            bytes: spec.bytes_per_s_max.map(|per_s| Arc::new(Limiter::new(per_s))),
            operations: spec.operations_per_s_max.map(|per_s| Arc::new(Limiter::new(per_s))),
        };
        let subject = Subject {
            ends,
            jobs_fixed: !auto,
            bytes_per_s_max: spec.bytes_per_s_max,
            operations_per_s_max: spec.operations_per_s_max,
        };
        Course {
            helm: Arc::new(helm),
            subject,
            notes,
            seed,
            remembered: noted.is_some(),
            proves: spec.prove,
        }
    }

    /// Begins to steer.
    pub fn begin(self) -> Flight {
        let jobs_max = self.helm.gate.jobs_max();
        let tuner =
            (!self.subject.jobs_fixed).then(|| Tuner::new(jobs_max, self.seed, self.remembered));
        let pilot = Pilot::new(tuner, self.proves);
        Flight::begin(self.helm, self.subject, self.notes, pilot)
    }
}
