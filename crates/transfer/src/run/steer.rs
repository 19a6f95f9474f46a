//! Whoever steers a run: watches what comes of it, sets how much may be under way, and knows at the
//! end how it went.

use super::Spec;
use crate::limit::{Gate, Helm, Limiter};
use crate::meter::Meter;
use crate::tune::Step;
use crate::verdict::Verdict;
use std::sync::Arc;

/// What was found out about a run while it went on.
#[derive(Debug, Default)]
pub struct Findings {
    /// The numbers of jobs that were used, and what each brought.
    pub path: Vec<Step>,
    /// Why it was not faster; `None` for runs too short to tell.
    pub verdict: Option<Verdict>,
}

/// What a run of `spec` is steered by, beginning with `jobs` units.
pub(super) fn helm(spec: &Spec, jobs: usize, jobs_max: usize) -> Helm {
    Helm {
        gate: Gate::new(jobs, jobs_max, 0),
        meter: Meter::new(jobs_max),
        bytes: spec.bytes_per_s_max.map(Limiter::new).map(Arc::new),
        operations: spec.operations_per_s_max.map(Limiter::new).map(Arc::new),
    }
}

/// Runs `work`, steering it by `helm`.
pub(super) fn steered<T>(_helm: &Helm, work: impl FnOnce() -> T) -> (T, Findings) {
    (work(), Findings::default())
}
