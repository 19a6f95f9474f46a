//! Runs a campaign: every cell once in each block, prepared, timed, checked and recorded, until there are
//! enough runs. Access to the machine goes through [`Bench`], so that tests can replace it and the clock;
//! [`Local`] is this machine.

mod extract;
pub mod fingerprint;
mod local;
mod once;
mod order;
mod prove;
#[cfg(test)]
mod tests;

pub(crate) use extract::fio_jobs;
pub use local::Local;
use once::Done;
pub use order::{first_block, runs_max};

use super::{Action, Check, Launch, Plan, ServerPlan, data};
use crate::results::store::Store;
use crate::results::{Cell, Checked, End, Run};
use std::collections::BTreeMap;
use std::path::Path;

/// Operations of a campaign on the machine.
pub trait Bench {
    /// Monotonic time in seconds, from an arbitrary origin.
    fn now_s(&self) -> f64;

    /// True after a request to stop: nothing new is begun, and the run in progress does not count.
    fn is_stopped(&self) -> bool;

    /// Makes a data set in a folder, unless it exists.
    ///
    /// # Errors
    /// A message.
    fn make(&mut self, recipe: &data::Recipe, folder: &Path) -> Result<(), String>;

    /// Creates a folder of the campaign, or recognises it by its mark.
    ///
    /// # Errors
    /// A message, if the folder has no valid mark.
    fn claim(&mut self, own: &Path) -> Result<(), String>;

    /// Starts a server; it accepts requests when this returns, and ends with the bench.
    ///
    /// # Errors
    /// A message.
    fn serve(&mut self, server: &ServerPlan) -> Result<(), String>;

    /// Ends all servers.
    fn end_servers(&mut self);

    /// Runs a shell command, not timed. `at_any_rate` runs it even after a stop.
    ///
    /// # Errors
    /// A message: it failed, or was ended by a stop.
    fn shell(&mut self, command: &str, at_any_rate: bool) -> Result<(), String>;

    /// Performs an action before a run.
    ///
    /// # Errors
    /// A message.
    fn prepare(&mut self, action: &Action) -> Result<(), String>;

    /// Share of the files below a path in the page cache, 0 to 1; `None` if unknown.
    fn cached(&mut self, source: &Path) -> Option<f64>;

    /// Runs and times a command.
    ///
    /// # Errors
    /// A message, if it cannot be started.
    fn measure(&mut self, launch: &Launch) -> Result<Measured, String>;

    /// Checks the result of a run. `seed` selects the files to compare.
    fn check(&mut self, check: &Check, seed: u64) -> CheckResult;
}

/// End of a timed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Exited with a code.
    Exited(i32),
    /// Killed by a signal.
    Killed(i32),
    /// Killed with all its children after its time limit.
    TimedOut,
}

impl Default for Ending {
    fn default() -> Ending {
        Ending::Exited(0)
    }
}

/// Measurements of a timed command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Its end.
    pub ending: Ending,
    /// Times, memory, bytes, switches and loads; the other fields are those of the default.
    pub costs: Run,
    /// Standard output, bounded.
    pub stdout: Vec<u8>,
    /// End of standard error.
    pub stderr: Vec<u8>,
    /// Load curves: times, and values by the names of [`crate::results::Curves::values`].
    pub curves: (Vec<f64>, BTreeMap<String, Vec<f64>>),
    /// CPU time used by the lab itself meanwhile, seconds.
    pub lab_cpu_s: f64,
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckResult {
    /// Files and bytes found; `None` if only the exit code is checked.
    pub checked: Option<Checked>,
    /// The problem, as a sentence.
    pub problem: Option<String>,
}

/// Progress of a campaign.
#[derive(Clone, Debug)]
pub enum Event<'a> {
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

/// Outcome of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Last line of the results.
    pub end: End,
    /// Recorded runs, including warm-ups.
    pub runs: usize,
    /// Number of these that failed.
    pub failed: usize,
}

impl Outcome {
    /// True if a stop ended it.
    pub fn is_stopped(&self) -> bool {
        self.end.reason == STOPPED
    }
}

/// [`End::reason`] after a stop.
const STOPPED: &str = "stopped";
/// Text after the number of dropped output bytes.
const LEFT_OUT: &str = " bytes left out]";

/// Options of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// True to run counter-experiments after the runs, at the most important cells.
    pub prove: bool,
    /// CPUs that commands may use by default.
    pub cpus: usize,
}

/// Runs a campaign, or resumes it: recorded runs are not repeated.
///
/// # Errors
/// A message: a data set, a server or the setup failed, or results could not be written. Earlier results are
/// in the store.
pub fn run(
    plan: &Plan,
    how: &How,
    store: &mut Store,
    bench: &mut dyn Bench,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, String> {
    let mut session = Session {
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
    for command in &plan.teardown {
        if let Err(why) = session.bench.shell(command, true) {
            (session.report)(Event::Teardown(&why));
        }
    }
    session.bench.end_servers();
    let end =
        End { reason: done?.to_owned(), took_s: session.at_s(), overhead: session.overhead() };
    session.store.end(&end)?;
    Ok(session.outcome(end))
}

/// A campaign in progress.
struct Session<'a> {
    plan: &'a Plan,
    store: &'a mut Store,
    bench: &'a mut dyn Bench,
    report: &'a mut dyn FnMut(Event<'_>),
    /// Start time on the clock of the bench, shifted by pauses.
    began_s: f64,
    runs: Vec<Run>,
    /// Total wall clock time of this session's runs.
    measured_s: f64,
    /// CPU time of the lab during these runs.
    lab_cpu_s: f64,
}

impl Session<'_> {
    /// Time since the start of the campaign without pauses, seconds.
    fn at_s(&self) -> f64 {
        self.bench.now_s() - self.began_s
    }

    fn is_over_budget(&self) -> bool {
        self.plan.repeat.budget.is_some_and(|budget| self.at_s() >= budget.as_secs_f64())
    }

    fn set_up(&mut self) -> Result<(), String> {
        for own in &self.plan.own {
            self.bench.claim(own)?;
        }
        for (at, (recipe, folder)) in self.plan.data.iter().enumerate() {
            let name = self.plan.header.data.get(at).map_or("", |data| data.name.as_str());
            (self.report)(Event::Data(name));
            let made = self.bench.make(recipe, folder);
            made.map_err(|why| format!("data set '{name}': {why}"))?;
        }
        self.serve(&self.plan.servers)?;
        for command in &self.plan.setup {
            (self.report)(Event::Setup(command));
            self.bench.shell(command, false).map_err(|why| format!("setup: {why}"))?;
        }
        Ok(())
    }

    fn serve(&mut self, servers: &[ServerPlan]) -> Result<(), String> {
        for server in servers {
            let started = self.bench.serve(server);
            started.map_err(|why| format!("server '{}': {why}", server.label))?;
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
                (self.report)(Event::Begins { cell, warmup, done, most, at_s });
                let place = u32::try_from(place).unwrap_or(u32::MAX);
                let run = Run { cell: cell.id, block, place, warmup, at_s, ..Run::default() };
                let Some(done) = once::once(planned, run, self.plan.repeat.seed, self.bench) else {
                    return Ok(STOPPED);
                };
                let Done { run, curves, output, lab_cpu_s } = done;
                if let Some(output) = output {
                    self.store.keep(&run, cell.control_of.is_some(), &output)?;
                }
                self.store.run(&run, curves.as_ref())?;
                (self.report)(Event::Ended { cell, run: &run });
                self.measured_s += run.wall_s;
                self.lab_cpu_s += lab_cpu_s;
                self.runs.push(run);
            }
        }
        Ok(order::reason(self.plan, &self.runs))
    }

    /// Makes the remaining counter-experiments; true if all are complete.
    fn prove(&mut self, how: &How) -> Result<bool, String> {
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

    fn outcome(&self, end: End) -> Outcome {
        let failed = self.runs.iter().filter(|run| !run.ok).count();
        Outcome { end, runs: self.runs.len(), failed }
    }

    /// Share of one CPU that the lab used during runs.
    fn overhead(&self) -> f64 {
        if self.measured_s > 0.0 { self.lab_cpu_s / self.measured_s } else { 0.0 }
    }
}
