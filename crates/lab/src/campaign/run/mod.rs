//! Runs a campaign: every cell once in each block, prepared, timed, checked and written down, until
//! there is enough of it. What touches the machine is behind [`Bench`], so that tests replace it and
//! the clock; [`Local`] is this machine.

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

/// What a campaign needs of the machine.
pub trait Bench {
    /// Seconds of a clock that only goes forward, from whenever.
    fn now_s(&self) -> f64;

    /// Somebody asked to stop: nothing new is begun, and what was under way is not counted.
    fn is_stopped(&self) -> bool;

    /// Makes a data set in a folder, unless it is there.
    ///
    /// # Errors
    /// A sentence.
    fn make(&mut self, recipe: &data::Recipe, folder: &Path) -> Result<(), String>;

    /// Starts a server; it answers when this returns. It ends with the bench.
    ///
    /// # Errors
    /// A sentence.
    fn serve(&mut self, server: &ServerPlan) -> Result<(), String>;

    /// Ends all servers.
    fn end_servers(&mut self);

    /// Runs a shell command that is not timed. `at_any_rate`: also when asked to stop.
    ///
    /// # Errors
    /// A sentence: it failed, or was ended because of a stop.
    fn shell(&mut self, command: &str, at_any_rate: bool) -> Result<(), String>;

    /// Does what has to be done before a run.
    ///
    /// # Errors
    /// A sentence.
    fn prepare(&mut self, action: &Action) -> Result<(), String>;

    /// The share of the files below a path that is in the page cache, 0 to 1; `None` where nobody
    /// can say.
    fn cached(&mut self, source: &Path) -> Option<f64>;

    /// Runs and times a command.
    ///
    /// # Errors
    /// A sentence: it could not be started.
    fn measure(&mut self, launch: &Launch) -> Result<Measured, String>;

    /// Looks at what a run left. `seed` picks the files that are compared.
    fn check(&mut self, check: &Check, seed: u64) -> Looked;
}

/// How a timed command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with a code.
    Exited(i32),
    /// By a signal.
    Killed(i32),
    /// It took too long and was killed, with all its children.
    TimedOut,
}

/// A timed command.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// How it ended.
    pub ending: Ending,
    /// From start to end, seconds.
    pub wall_s: f64,
    /// CPU time in user space with its descendants, seconds.
    pub user_s: f64,
    /// In the kernel, seconds.
    pub sys_s: f64,
    /// Peak resident memory of the largest process, bytes.
    pub rss_bytes_max: u64,
    /// Bytes from devices.
    pub read_bytes: u64,
    /// Bytes to devices.
    pub write_bytes: u64,
    /// Times the CPU was given up.
    pub voluntary_switches: u64,
    /// Times it was taken away.
    pub involuntary_switches: u64,
    /// Processes and threads that were started meanwhile.
    pub started: u64,
    /// What it wrote to standard output, as far as it was kept.
    pub stdout: Vec<u8>,
    /// The end of what it wrote to standard error.
    pub stderr: Vec<u8>,
    /// Means of what the machine did meanwhile, by the names of [`Run::load`].
    pub load: BTreeMap<String, f64>,
    /// Load curves: times, and values by the names of [`crate::results::Curves::values`].
    pub curves: (Vec<f64>, BTreeMap<String, Vec<f64>>),
    /// CPU time that the lab itself used meanwhile, seconds.
    pub lab_cpu_s: f64,
}

impl Default for Measured {
    fn default() -> Measured {
        Measured {
            ending: Ending::Exited(0),
            wall_s: 0.0,
            user_s: 0.0,
            sys_s: 0.0,
            rss_bytes_max: 0,
            read_bytes: 0,
            write_bytes: 0,
            voluntary_switches: 0,
            involuntary_switches: 0,
            started: 0,
            stdout: Vec::new(),
            stderr: Vec::new(),
            load: BTreeMap::new(),
            curves: (Vec::new(), BTreeMap::new()),
            lab_cpu_s: 0.0,
        }
    }
}

/// What a check saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Looked {
    /// What is there; `None` where only the exit code counts.
    pub checked: Option<Checked>,
    /// What is wrong with it, a sentence.
    pub problem: Option<String>,
}

/// What happens, for whoever shows it.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A data set is made, or found.
    Data(&'a str),
    /// A shell command before the first run.
    Setup(&'a str),
    /// A counter-experiment begins.
    Experiment {
        /// At which cell.
        cell: &'a Cell,
        /// What is changed.
        about: &'a str,
    },
    /// A run begins.
    Begins {
        /// Of what.
        cell: &'a Cell,
        /// It does not count.
        warmup: bool,
        /// Runs that are there.
        done: usize,
        /// Runs that there will be at most.
        most: usize,
        /// Seconds since the campaign began.
        at_s: f64,
    },
    /// A run ended, and is written down.
    Ended {
        /// Of what.
        cell: &'a Cell,
        /// What came out.
        run: &'a Run,
    },
    /// A shell command after the last run failed: why.
    Teardown(&'a str),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The last line of the results.
    pub end: End,
    /// Runs that are there, warm-ups included.
    pub runs: usize,
    /// Of these, those that failed.
    pub failed: usize,
}

impl Outcome {
    /// Somebody asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.end.reason == STOPPED
    }
}

/// [`End::reason`] after a stop.
const STOPPED: &str = "stopped";

/// What is done besides the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Counter-experiments after the runs, at the cells that matter most.
    pub prove: bool,
    /// CPUs that commands may use where nothing else is said.
    pub cpus: usize,
}

/// Runs a campaign, or the rest of one: what the store knows already is not done again.
///
/// # Errors
/// A sentence: a data set, a server or the setup failed, or results could not be written. What was
/// measured until then is in the store.
pub fn run(
    plan: &Plan,
    how: &How,
    store: &mut Store,
    bench: &mut dyn Bench,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, String> {
    let mut session = Session {
        began_s: bench.now_s() - store.elapsed_s(),
        runs: store.take_runs(),
        measured_s: 0.0,
        lab_cpu_s: 0.0,
        plan,
    };
    if let Some(end) = store.ended().filter(|_| order::is_whole(plan, &session.runs))
        && (!how.prove || prove::wanted(plan, how, store.folder())?.is_empty())
    {
        return Ok(session.outcome(end));
    }
    let mut done = match session.set_up(bench, tell) {
        Ok(()) => session.blocks(store, bench, tell),
        Err(_) if bench.is_stopped() => Ok(STOPPED),
        Err(why) => Err(why),
    };
    if let Ok(reason) = done
        && how.prove
        && reason != STOPPED
    {
        done = session.prove(how, store, bench, tell).map(|all| if all { reason } else { STOPPED });
    }
    for command in &plan.teardown {
        if let Err(why) = bench.shell(command, true) {
            tell(Event::Teardown(&why));
        }
    }
    bench.end_servers();
    let end = End {
        reason: done?.to_owned(),
        took_s: bench.now_s() - session.began_s,
        overhead: session.overhead(),
    };
    store.end(&end)?;
    Ok(session.outcome(end))
}

/// A campaign as far as it is.
struct Session<'a> {
    plan: &'a Plan,
    /// When it began, on the clock of the bench; pauses are taken out.
    began_s: f64,
    runs: Vec<Run>,
    /// Wall clock of the runs of this session.
    measured_s: f64,
    /// CPU time of the lab beside these.
    lab_cpu_s: f64,
}

impl Session<'_> {
    fn set_up(&self, bench: &mut dyn Bench, tell: &mut dyn FnMut(Event<'_>)) -> Result<(), String> {
        for (at, (recipe, folder)) in self.plan.data.iter().enumerate() {
            let name = self.plan.data_sets.get(at).map_or("", |data| data.name.as_str());
            tell(Event::Data(name));
            bench.make(recipe, folder).map_err(|why| format!("data set '{name}': {why}"))?;
        }
        for server in &self.plan.servers {
            bench.serve(server).map_err(|why| format!("server '{}': {why}", server.label))?;
        }
        for command in &self.plan.setup {
            tell(Event::Setup(command));
            bench.shell(command, false).map_err(|why| format!("setup: {why}"))?;
        }
        Ok(())
    }

    /// Block after block; why no more came.
    fn blocks(
        &mut self,
        store: &mut Store,
        bench: &mut dyn Bench,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<&'static str, String> {
        let most = runs_max(self.plan);
        for block in 0.. {
            let takers = order::takers(self.plan, block, &self.runs);
            if takers.is_empty() {
                break;
            }
            for (place, at) in takers.into_iter().enumerate() {
                let Some(planned) = self.plan.cells.get(at) else { continue };
                let is_there = |run: &Run| run.cell == planned.cell.id && run.block == block;
                if self.runs.iter().any(is_there) {
                    continue;
                }
                if bench.is_stopped() {
                    return Ok(STOPPED);
                }
                let at_s = bench.now_s() - self.began_s;
                if self.plan.repeat.budget.is_some_and(|budget| at_s >= budget.as_secs_f64()) {
                    return Ok("budget");
                }
                let warmup = block < self.plan.repeat.warmup;
                let cell = &planned.cell;
                tell(Event::Begins { cell, warmup, done: self.runs.len(), most, at_s });
                let place = u32::try_from(place).unwrap_or(u32::MAX);
                let run = Run { cell: cell.id, block, place, warmup, at_s, ..Run::default() };
                let seed = self.plan.repeat.seed;
                let Some(done) = once::once(planned, run, seed, bench) else {
                    return Ok(STOPPED);
                };
                let Done { run, curves, output, lab_cpu_s } = done;
                if let Some(output) = output {
                    store.keep(&run, cell.control_of.is_some(), &output)?;
                }
                store.run(&run, curves.as_ref())?;
                tell(Event::Ended { cell, run: &run });
                self.measured_s += run.wall_s;
                self.lab_cpu_s += lab_cpu_s;
                self.runs.push(run);
            }
        }
        Ok(order::reason(self.plan, &self.runs))
    }

    /// Makes the counter-experiments that are left; whether none is.
    fn prove(
        &self,
        how: &How,
        store: &mut Store,
        bench: &mut dyn Bench,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, String> {
        for change in prove::wanted(self.plan, how, store.folder())? {
            let at_s = bench.now_s() - self.began_s;
            if self.plan.repeat.budget.is_some_and(|budget| at_s >= budget.as_secs_f64()) {
                break;
            }
            if !prove::make(self.plan, change, store, bench, tell)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn outcome(&self, end: End) -> Outcome {
        let failed = self.runs.iter().filter(|run| !run.ok).count();
        Outcome { end, runs: self.runs.len(), failed }
    }

    /// Share of one CPU that the lab used while runs were measured.
    fn overhead(&self) -> f64 {
        if self.measured_s > 0.0 { self.lab_cpu_s / self.measured_s } else { 0.0 }
    }
}
