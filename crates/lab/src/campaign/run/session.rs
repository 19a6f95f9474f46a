//! A campaign in progress, and the progress that it reports.

use super::bench::Bench;
use crate::campaign::{CampaignPlan, ServerPlan};
use crate::results::store::ResultsStore;
use crate::results::{Cell, Run};

/// Progress of a campaign.
#[derive(Clone, Debug)]
pub enum CampaignEvent<'a> {
    /// A data set is made or found.
    Data(&'a str),
    /// A setup command starts.
    Setup(&'a str),
    /// A counter-experiment starts.
    Experiment {
        /// Its cell.
        cell: &'a Cell,
        /// The change, in words.
        about: &'a str,
    },
    /// A run starts.
    Begins {
        /// Its cell.
        cell: &'a Cell,
        /// True for a warm-up, which does not count.
        warmup: bool,
        /// Runs completed so far.
        done: usize,
        /// Most runs that there will be.
        most: usize,
        /// Seconds since the start of the campaign.
        at_s: f64,
    },
    /// A run has ended and is recorded.
    Ended {
        /// Its cell.
        cell: &'a Cell,
        /// Its result.
        run: &'a Run,
    },
    /// A teardown command failed, with the reason.
    Teardown(&'a str),
}

/// Options of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// True to run counter-experiments after the runs, at the most important cells.
    pub prove: bool,
    /// CPUs that commands may use by default.
    pub cpus: usize,
}

/// A campaign in progress.
pub(super) struct CampaignSession<'a> {
    pub(super) plan: &'a CampaignPlan,
    pub(super) store: &'a mut ResultsStore,
    pub(super) bench: &'a mut dyn Bench,
    pub(super) report: &'a mut dyn FnMut(CampaignEvent<'_>),
    /// Start time on the clock of the bench, shifted by pauses.
    pub(super) began_s: f64,
    pub(super) runs: Vec<Run>,
    /// Total wall clock time of this session's runs.
    pub(super) measured_s: f64,
    /// CPU time of the lab during these runs.
    pub(super) lab_cpu_s: f64,
}

impl CampaignSession<'_> {
    /// Time since the start of the campaign without pauses, seconds.
    pub(super) fn at_s(&self) -> f64 {
        self.bench.now_s() - self.began_s
    }

    pub(super) fn is_over_budget(&self) -> bool {
        self.plan.repeat.budget.is_some_and(|budget| self.at_s() >= budget.as_secs_f64())
    }

    pub(super) fn serve(&mut self, servers: &[ServerPlan]) -> Result<(), String> {
        for server in servers {
            let started = self.bench.serve(server);
            started.map_err(|why| format!("server '{}': {why}", server.label))?;
        }
        Ok(())
    }
}
