//! Runs a campaign: every cell once in each block, prepared, timed, checked and recorded, until there are enough runs.
//! Access to the machine goes through [`Bench`], so that tests can replace it and the clock; `local` is this machine.

pub(crate) mod extract;
pub mod fingerprint;
pub mod job;
mod load;
pub mod local;
pub mod order;
mod page_cache;
mod prove;
#[cfg(test)]
mod tests;

use crate::campaign::data::{DataError, DataRecipe};
use crate::campaign::own_folder::FolderError;
use crate::campaign::run::extract::extract;
use crate::campaign::run::job::CommandError;
use crate::campaign::run::order::{runs_max, seed_of};
use crate::campaign::{CampaignPlan, Launch, PlannedCell, RunAction, RunCheck, ServerPlan};
use crate::results::read::ReadError;
use crate::results::store::ResultsStore;
use crate::results::{CampaignEnd, Cell, CheckedFiles, LoadCurves, Run};
use hakobu_core::error::{PathError, quoted};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

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

/// Why a campaign ended early. Results until then are in the store.
#[derive(Debug)]
pub enum CampaignError {
    /// One of its folders cannot be used.
    Folder(FolderError),
    /// A data set cannot be made.
    Data { name: String, cause: DataError },
    /// A server cannot be started.
    Server { label: String, cause: CommandError },
    /// A command before the first run failed.
    Setup { cause: CommandError },
    /// Earlier results cannot be read.
    Read(ReadError),
    /// Results cannot be written.
    Write(PathError),
}

impl fmt::Display for CampaignError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CampaignError::Folder(error) => error.fmt(out),
            CampaignError::Data { name, cause } => write!(out, "data set '{name}': {cause}"),
            CampaignError::Server { label, cause } => write!(out, "server '{label}': {cause}"),
            CampaignError::Setup { cause } => write!(out, "setup: {cause}"),
            CampaignError::Read(error) => error.fmt(out),
            CampaignError::Write(error) => error.fmt(out),
        }
    }
}

error_type!(
    CampaignError: Folder(FolderError), Read(ReadError), Write(PathError); Data, Server, Setup
);

/// Runs a campaign, or resumes it: recorded runs are not repeated.
///
/// # Errors
/// A data set, a server or the setup failed, or results could not be written.
pub fn run(
    plan: &CampaignPlan,
    how: &SessionOptions,
    store: &mut ResultsStore,
    bench: &mut dyn Bench,
    report: &mut dyn FnMut(CampaignEvent<'_>),
) -> Result<CampaignOutcome, CampaignError> {
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
        && (!how.prove
            || prove::remaining_experiments(plan, how, &session.store.folder)?.is_empty())
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
    fn set_up(&mut self) -> Result<(), CampaignError> {
        for own in &self.plan.own {
            self.bench.claim(own)?;
        }
        for (at, (recipe, folder)) in self.plan.data.iter().enumerate() {
            let name = self.plan.header.data.get(at).map_or("", |data| data.name.as_str());
            (self.report)(CampaignEvent::Data(name));
            let made = self.bench.make(recipe, folder);
            made.map_err(|cause| CampaignError::Data { name: name.to_owned(), cause })?;
        }
        self.serve(&self.plan.servers)?;
        for command in &self.plan.setup {
            (self.report)(CampaignEvent::Setup(command));
            let done = self.bench.shell(command, false);
            done.map_err(|cause| CampaignError::Setup { cause })?;
        }
        Ok(())
    }

    /// Runs block after block; returns the reason for the end.
    fn blocks(&mut self) -> Result<&'static str, CampaignError> {
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
                let number = iteration(&run, self.plan.repeat.warmup);
                let made = run_once(planned, run, self.plan.repeat.seed, number, self.bench);
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
    fn prove(&mut self, how: &SessionOptions) -> Result<bool, CampaignError> {
        for change in prove::remaining_experiments(self.plan, how, &self.store.folder)? {
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

/// Operations of a campaign on the machine.
pub trait Bench {
    /// Monotonic time in seconds, from an arbitrary origin.
    fn now_s(&self) -> f64;

    /// True after a request to stop: nothing new is begun, and the run in progress does not count.
    fn is_stopped(&self) -> bool;

    /// Makes a data set in a folder, unless it exists.
    fn make(&mut self, recipe: &DataRecipe, folder: &Path) -> Result<(), DataError>;

    /// Creates a folder of the campaign, or recognises it by its mark.
    ///
    /// # Errors
    /// The folder has no valid mark.
    fn claim(&mut self, own: &Path) -> Result<(), FolderError>;

    /// Starts a server; it accepts requests when this returns, and ends with the bench.
    fn serve(&mut self, server: &ServerPlan) -> Result<(), CommandError>;

    /// Ends all servers.
    fn end_servers(&mut self);

    /// Tells which run of its command begins, for commands that want to know; `None` between runs.
    fn begins(&mut self, _iteration: Option<String>) {}

    /// Runs a shell command, not timed. `at_any_rate` runs it even after a stop.
    ///
    /// # Errors
    /// It failed, or was ended by a stop.
    fn shell(&mut self, command: &str, at_any_rate: bool) -> Result<(), CommandError>;

    /// Performs an action before a run.
    fn prepare(&mut self, action: &RunAction) -> Result<(), PrepareError>;

    /// Share of the files below a path in the page cache, 0 to 1; `None` if unknown.
    fn cached(&mut self, source: &Path) -> Option<f64>;

    /// Runs and times a command.
    fn measure(&mut self, launch: &Launch) -> Result<Measurement, CommandError>;

    /// Checks the result of a run. `seed` selects the files to compare.
    fn check(&mut self, check: &RunCheck, seed: u64) -> CheckResult;
}

/// Why an action before a run failed.
#[derive(Debug)]
pub enum PrepareError {
    /// The target cannot be emptied.
    Folder(FolderError),
    /// A source cannot be read.
    Path(PathError),
    /// Pages of the source stay in the page cache.
    NotCold { path: PathBuf, stay: u64, pages: u64 },
    /// A command failed.
    Command(CommandError),
}

impl fmt::Display for PrepareError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrepareError::Folder(error) => error.fmt(out),
            PrepareError::Path(error) => error.fmt(out),
            PrepareError::NotCold { path, stay, pages } => write!(
                out,
                "{} cannot be made cold: {stay} of {pages} pages stay in the page cache",
                quoted(path)
            ),
            PrepareError::Command(error) => error.fmt(out),
        }
    }
}

error_type!(PrepareError: Folder(FolderError), Path(PathError), Command(CommandError); );

/// End of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnding {
    /// Exited with a code.
    Exited(i32),
    /// Killed by a signal.
    Killed(i32),
    /// Killed with all its children after its time limit.
    TimedOut,
    /// Stopped by a signal, and killed, as nothing would have continued it.
    Stopped(i32),
}

impl Default for CommandEnding {
    fn default() -> CommandEnding {
        CommandEnding::Exited(0)
    }
}

impl fmt::Display for CommandEnding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandEnding::Exited(code) => write!(out, "ended with exit code {code}"),
            CommandEnding::Killed(signal) => write!(out, "was killed by signal {signal}"),
            CommandEnding::Stopped(signal) => {
                write!(out, "was stopped by signal {signal} and not continued, so it was killed")
            }
            CommandEnding::TimedOut => out.write_str("took too long and was killed"),
        }
    }
}

/// Measurements of a timed command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    /// Its end.
    pub ending: CommandEnding,
    /// Times, memory, bytes, switches and loads; the other fields are those of the default.
    pub costs: Run,
    /// Standard output, bounded.
    pub stdout: Vec<u8>,
    /// End of standard error.
    pub stderr: Vec<u8>,
    /// Load curves: times, and values by the names of [`crate::results::LoadCurves::values`].
    pub curves: (Vec<f64>, BTreeMap<String, Vec<f64>>),
    /// CPU time used by the lab itself meanwhile, seconds.
    pub lab_cpu_s: f64,
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckResult {
    /// Files and bytes found; `None` if only the exit code is checked.
    pub checked: Option<CheckedFiles>,
    /// The problem, as a sentence.
    pub problem: Option<String>,
}

/// Text after the number of dropped output bytes.
const LEFT_OUT: &str = " bytes left out]";

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
    /// A teardown command failed.
    Teardown(&'a CommandError),
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
    began_s: f64,
    pub(super) runs: Vec<Run>,
    /// Total wall clock time of this session's runs.
    measured_s: f64,
    /// CPU time of the lab during these runs.
    lab_cpu_s: f64,
}

impl CampaignSession<'_> {
    /// Time since the start of the campaign without pauses, seconds.
    pub(super) fn at_s(&self) -> f64 {
        self.bench.now_s() - self.began_s
    }

    fn is_over_budget(&self) -> bool {
        self.plan.repeat.budget.is_some_and(|budget| self.at_s() >= budget.as_secs_f64())
    }

    pub(super) fn serve(&mut self, servers: &[ServerPlan]) -> Result<(), CampaignError> {
        for server in servers {
            let started = self.bench.serve(server);
            started
                .map_err(|cause| CampaignError::Server { label: server.label.clone(), cause })?;
        }
        Ok(())
    }
}

/// Most characters of output quoted in a sentence.
const QUOTED_MAX: usize = 200;

/// A completed run.
#[derive(Debug, Default)]
pub(super) struct CompletedRun {
    pub(super) run: Run,
    pub(super) curves: Option<LoadCurves>,
    /// Its output, if metrics were extracted from it.
    pub(super) output: Option<String>,
    /// CPU time of the lab meanwhile, seconds.
    lab_cpu_s: f64,
}

/// Number of a run of its command, as hyperfine(1) tells it to commands: those that count from 0, or `warmup-0`.
/// `first`: block of the first one.
fn iteration(run: &Run, first: u32) -> String {
    match run.warmup {
        true => format!("warmup-{}", run.block),
        false => run.block.saturating_sub(first).to_string(),
    }
}

/// Executes a run; `run` identifies it, and `iteration` is its number for commands. `None` if a stop interrupted it.
pub(super) fn run_once(
    planned: &PlannedCell,
    run: Run,
    seed: u64,
    iteration: String,
    bench: &mut dyn Bench,
) -> Option<CompletedRun> {
    bench.begins(Some(iteration));
    let done = run_prepared(planned, run, seed, bench);
    bench.begins(None);
    done
}

fn run_prepared(
    planned: &PlannedCell,
    mut run: Run,
    seed: u64,
    bench: &mut dyn Bench,
) -> Option<CompletedRun> {
    let problem = prepare(planned, &mut run, bench);
    if bench.is_stopped() {
        conclude(planned, bench);
        return None;
    }
    let (mut curves, mut output, mut lab_cpu_s) = (None, None, 0.0);
    let problem = match problem {
        Some(problem) => Some(problem),
        None => match bench.measure(&planned.launch) {
            Err(why) => Some(why.into()),
            Ok(measured) => {
                lab_cpu_s = measured.lab_cpu_s;
                let (t_s, values) = measured.curves.clone();
                if !t_s.is_empty() {
                    curves = Some(LoadCurves { cell: run.cell, block: run.block, t_s, values });
                }
                let Run { cell, block, place, warmup, at_s, cached, .. } = run;
                let exit_code = match measured.ending {
                    CommandEnding::Exited(code) => Some(code),
                    _ => None,
                };
                let costs = measured.costs.clone();
                run = Run { cell, block, place, warmup, at_s, cached, exit_code, ..costs };
                ended_well(&planned.launch, &measured)
                    .or_else(|| extract_metrics(planned, &mut run, &mut output, &measured))
            }
        },
    };
    let problem = problem.or_else(|| {
        let result = bench.check(&planned.check, seed_of(seed, &run));
        run.checked = result.checked;
        result.problem
    });
    let concluded = conclude(planned, bench);
    run.problem = problem.or(concluded);
    run.ok = run.problem.is_none();
    (!bench.is_stopped()).then_some(CompletedRun { run, curves, output, lab_cpu_s })
}

fn prepare(planned: &PlannedCell, run: &mut Run, bench: &mut dyn Bench) -> Option<String> {
    for action in &planned.prepare {
        if bench.is_stopped() {
            return None;
        }
        if let Err(why) = bench.prepare(action) {
            return Some(format!("could not be prepared: {why}"));
        }
    }
    run.cached = planned.source.as_deref().and_then(|source| bench.cached(source));
    None
}

/// Runs the commands that follow a run, also after a failure.
fn conclude(planned: &PlannedCell, bench: &mut dyn Bench) -> Option<String> {
    let mut problem = None;
    for command in &planned.conclude {
        if let Err(why) = bench.shell(command, true) {
            problem.get_or_insert(format!("what follows the run failed: {why}"));
        }
    }
    problem
}

/// Describes how a command failed, if it did.
fn ended_well(launch: &Launch, measured: &Measurement) -> Option<String> {
    let how = match measured.ending {
        CommandEnding::Exited(code) if launch.accepts.accepts(code) => return None,
        CommandEnding::TimedOut => {
            let limit_s = launch.timeout.unwrap_or_default().as_secs_f64();
            format!("took longer than {limit_s} s and was killed")
        }
        ending => ending.to_string(),
    };
    let said = last_line(&measured.stderr).or_else(|| last_line(&measured.stdout));
    Some(match said {
        Some(said) => format!("{how}; it said: {said}"),
        None => how,
    })
}

fn extract_metrics(
    planned: &PlannedCell,
    run: &mut Run,
    output: &mut Option<String>,
    measured: &Measurement,
) -> Option<String> {
    match extract(planned.extract, &measured.stdout) {
        Ok(found) => {
            run.metrics = found.metrics;
            if let Some(items_s) = run.metrics.get("items_s").copied()
                && run.wall_s > 0.0
            {
                run.metrics.insert("concurrency".to_owned(), items_s / run.wall_s);
            }
            run.verdict = found.verdict;
            *output = found.document;
            None
        }
        Err(why) => Some(why.into()),
    }
}

/// Last non-empty line, shortened.
fn last_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    let clean = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    Some(clean.take(QUOTED_MAX).collect())
}
