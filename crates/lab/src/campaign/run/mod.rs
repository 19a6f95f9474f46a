//! Runs a campaign: every cell once in each block, prepared, timed, checked and recorded, until there are
//! enough runs. Access to the machine goes through [`Bench`], so that tests can replace it and the clock;
//! [`LocalBench`] is this machine.

mod bench;
mod extract;
pub mod fingerprint;
mod local;
mod once;
mod order;
mod prove;
mod session;
#[cfg(test)]
mod tests;

pub use bench::{Bench, CheckResult, CommandEnding, Measurement};
pub(crate) use extract::fio_jobs;
pub use local::LocalBench;
pub use order::{first_block, runs_max};
pub use session::{CampaignEvent, SessionOptions};

use super::CampaignPlan;
use crate::results::store::ResultsStore;
use crate::results::{CampaignEnd, Run};
use once::CompletedRun;
use session::CampaignSession;

/// Outcome of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct CampaignOutcome {
    /// Last line of the results.
    pub end: CampaignEnd,
    /// Recorded runs, including warm-ups.
    pub runs: usize,
    /// Number of these that failed.
    pub failed: usize,
    /// Number of commands after the last run that failed.
    pub failed_after: usize,
}

impl CampaignOutcome {
    /// True if a stop ended it.
    pub fn is_stopped(&self) -> bool {
        self.end.reason == STOPPED
    }
}

/// [`CampaignEnd::reason`] after a stop.
const STOPPED: &str = "stopped";

/// Runs a campaign, or resumes it: recorded runs are not repeated.
///
/// # Errors
/// A message: a data set, a server or the setup failed, or results could not be written. Earlier results are
/// in the store.
pub fn run(
    plan: &CampaignPlan,
    how: &SessionOptions,
    store: &mut ResultsStore,
    bench: &mut dyn Bench,
    report: &mut dyn FnMut(CampaignEvent<'_>),
) -> Result<CampaignOutcome, String> {
    let mut session = CampaignSession {
        began_s: bench.now_s() - store.elapsed_s,
        runs: std::mem::take(&mut store.runs),
        measured_s: 0.0,
        lab_cpu_s: 0.0,
        plan,
        store,
        bench,
        report,
    };
    if let Some(end) = session.store.ended.clone()
        && order::is_whole(plan, &session.runs)
        && (!how.prove || prove::wanted(plan, how, &session.store.folder)?.is_empty())
    {
        return Ok(session.outcome(end));
    }
    let mut done = match session.set_up() {
        Ok(()) => session.blocks(),
        Err(_) if session.bench.is_stopped() => Ok(STOPPED),
        Err(why) => Err(why),
    };
    if let Ok(reason) = done
        && how.prove
        && reason != STOPPED
    {
        done = session.prove(how).map(|all| if all { reason } else { STOPPED });
    }
    let mut failed_after = 0;
    for command in &plan.teardown {
        if let Err(why) = session.bench.shell(command, true) {
            (session.report)(CampaignEvent::Teardown(&why));
            failed_after += 1;
        }
    }
    session.bench.end_servers();
    let end = CampaignEnd {
        reason: done?.to_owned(),
        took_s: session.at_s(),
        overhead: session.overhead(),
    };
    session.store.end(&end)?;
    Ok(CampaignOutcome { failed_after, ..session.outcome(end) })
}

impl CampaignSession<'_> {
    fn set_up(&mut self) -> Result<(), String> {
        for own in &self.plan.own {
            self.bench.claim(own)?;
        }
        for (at, (recipe, folder)) in self.plan.data.iter().enumerate() {
            let name = self.plan.header.data.get(at).map_or("", |data| data.name.as_str());
            (self.report)(CampaignEvent::Data(name));
            let made = self.bench.make(recipe, folder);
            made.map_err(|why| format!("data set '{name}': {why}"))?;
        }
        self.serve(&self.plan.servers)?;
        for command in &self.plan.setup {
            (self.report)(CampaignEvent::Setup(command));
            self.bench.shell(command, false).map_err(|why| format!("setup: {why}"))?;
        }
        Ok(())
    }

    /// Runs block after block; returns the reason for the end.
    fn blocks(&mut self) -> Result<&'static str, String> {
        let most = runs_max(self.plan);
        for block in 0.. {
            let cells_of_block = order::cells_of_block(self.plan, block, &self.runs);
            if cells_of_block.is_empty() {
                break;
            }
            for (place, at) in cells_of_block.into_iter().enumerate() {
                let Some(planned) = self.plan.cells.get(at) else { continue };
                let is_there = |run: &Run| run.cell == planned.cell.id && run.block == block;
                if self.runs.iter().any(is_there) {
                    continue;
                }
                if self.bench.is_stopped() {
                    return Ok(STOPPED);
                }
                if self.is_over_budget() {
                    return Ok("budget");
                }
                let (at_s, warmup) = (self.at_s(), block < self.plan.repeat.warmup);
                let cell = &planned.cell;
                let done = self.runs.len();
                (self.report)(CampaignEvent::Begins { cell, warmup, done, most, at_s });
                let place = u32::try_from(place).unwrap_or(u32::MAX);
                let run = Run { cell: cell.id, block, place, warmup, at_s, ..Run::default() };
                let number = once::iteration(&run, self.plan.repeat.warmup);
                let made = once::once(planned, run, self.plan.repeat.seed, number, self.bench);
                let Some(done) = made else { return Ok(STOPPED) };
                let CompletedRun { run, curves, output, lab_cpu_s } = done;
                if let Some(output) = output {
                    self.store.keep(&run, cell.control_of.is_some(), &output)?;
                }
                self.store.run(&run, curves.as_ref())?;
                (self.report)(CampaignEvent::Ended { cell, run: &run });
                self.measured_s += run.wall_s;
                self.lab_cpu_s += lab_cpu_s;
                self.runs.push(run);
            }
        }
        Ok(order::reason(self.plan, &self.runs))
    }

    /// Makes the remaining counter-experiments; true if all are complete.
    fn prove(&mut self, how: &SessionOptions) -> Result<bool, String> {
        for change in prove::wanted(self.plan, how, &self.store.folder)? {
            if self.is_over_budget() {
                break;
            }
            if !self.experiment(change)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn outcome(&self, end: CampaignEnd) -> CampaignOutcome {
        let failed = self.runs.iter().filter(|run| !run.ok).count();
        CampaignOutcome { end, runs: self.runs.len(), failed, failed_after: 0 }
    }

    /// Share of one CPU that the lab used during runs.
    fn overhead(&self) -> f64 {
        if self.measured_s > 0.0 { self.lab_cpu_s / self.measured_s } else { 0.0 }
    }
}
