//! Whoever steers a run: watches what comes of it, sets how much may be under way, and knows at the
//! end how it went.

mod bounds;
mod ceilings;
mod ends;
mod facts;
mod memory;
mod pilot;
mod record;

use super::Spec;
use crate::limit::{Gate, Helm, Limiter};
use crate::meter::Meter;
use crate::object::JOBS_SEED;
use crate::tune::{self, Bounds, Setting, Step, Tuner};
use crate::unit::Jobs;
use crate::verdict::Verdict;
pub(super) use bounds::check as check_memory;
pub use bounds::{memory_bytes_min, too_little_memory};
pub(super) use ends::Ends;
pub(super) use memory::Notes;
use hakobu_sys::process;
use pilot::{Flight, Pilot};
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
pub(super) struct Course<'a> {
    /// What the engine obeys and keeps.
    pub helm: Arc<Helm>,
    spec: &'a Spec,
    ends: Ends,
    notes: Notes,
    seed: Setting,
    remembered: bool,
}

impl<'a> Course<'a> {
    /// Sizes a run: how many jobs it begins with, and how many there may be. `lanes` is how many
    /// threads will count what they do; `None` for one each job.
    pub fn new(spec: &'a Spec, ends: Ends, notes: Notes, lanes: Option<usize>) -> Course<'a> {
        let with_store = ends.has_store();
        let open_files_max = process::raise_open_files_limit();
        let jobs_max = bounds::jobs_max(spec, &ends, open_files_max);
        let noted = match spec.jobs {
            Jobs::Auto => notes.setting(&ends),
            Jobs::Fixed(_) => None,
        };
        let by_rule = match (spec.jobs, with_store) {
            (Jobs::Auto, true) => JOBS_SEED,
            (jobs, _) => tune::jobs(jobs, &ends.mediums(), process::cpus(), open_files_max),
        };
        let rule = Setting { jobs: by_rule, streams: 0 };
        let seed = noted.unwrap_or(rule);
        let seed = Setting { jobs: seed.jobs.clamp(1, jobs_max), ..seed };
        let helm = Helm {
            gate: Gate::new(seed.jobs, jobs_max, seed.streams),
            meter: Meter::new(lanes.unwrap_or(jobs_max)),
            bytes: spec.bytes_per_s_max.map(Limiter::new),
            operations: spec.operations_per_s_max.map(Limiter::new),
        };
        let helm = Arc::new(helm);
        Course { helm, spec, ends, notes, seed, remembered: noted.is_some() }
    }

    /// Begins to steer.
    pub fn begin(self) -> Flight<'a> {
        let bounds = Bounds { jobs_max: self.helm.gate.jobs_max(), streams_max: 0 };
        let tuner = match self.spec.jobs {
            Jobs::Auto => Some(Tuner::new(bounds, self.seed, self.remembered)),
            Jobs::Fixed(_) => None,
        };
        let pilot = Pilot::new(tuner, !self.ends.has_store());
        Flight::begin(self, pilot)
    }
}
