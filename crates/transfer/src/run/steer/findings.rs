//! Findings of a run's controller.

use hakobu_explain::tune::Step;
use hakobu_explain::verdict::Verdict;

/// Findings about a run.
#[derive(Debug, Default)]
pub struct Findings {
    /// The number of jobs that was set for most of the time.
    pub jobs: usize,
    /// The numbers of jobs that were used, and the goodput of each.
    pub path: Vec<Step>,
    /// The verdict; `None` for runs that are too short.
    pub verdict: Option<Verdict>,
}
