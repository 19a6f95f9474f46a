//! The end of a run.

use hakobu_core::error::Fatal;
use hakobu_core::unit::Totals;
use hakobu_explain::tune::Step;
use hakobu_explain::verdict::Verdict;
use hakobu_s3::RequestCounts;
use std::time::Duration;

/// Result of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The work done.
    pub totals: Totals,
    /// Wall time of the run.
    pub took: Duration,
    /// Number of workers used.
    pub jobs: usize,
    /// The run was asked to stop before it was finished.
    pub stopped: bool,
    /// The error that made all further work pointless (disk full, quota, read-only); code 11.
    pub fatal: Option<Fatal>,
    /// Requests to the stores of both sides; none between local paths.
    pub requests: RequestCounts,
    /// Findings of the controller.
    pub findings: Findings,
}

/// Findings of a run's controller.
#[derive(Debug, Default)]
pub struct Findings {
    /// The number of jobs that was set for most of the time.
    pub jobs: usize,
    /// The numbers of jobs that were used, and the goodput of each.
    pub path: Vec<Step>,
    /// The verdict; `None` for runs that are too short.
    pub verdict: Option<Verdict>,
}
