//! Operations of a campaign on the machine, and what they return.

use crate::campaign::{Launch, RunAction, RunCheck, ServerPlan, data};
use crate::results::{CheckedFiles, Run};
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
    fn make(&mut self, recipe: &data::DataRecipe, folder: &Path) -> Result<(), String>;

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

    /// Tells which run of its command begins, for commands that want to know; `None` between runs.
    fn begins(&mut self, _iteration: Option<String>) {}

    /// Runs a shell command, not timed. `at_any_rate` runs it even after a stop.
    ///
    /// # Errors
    /// A message: it failed, or was ended by a stop.
    fn shell(&mut self, command: &str, at_any_rate: bool) -> Result<(), String>;

    /// Performs an action before a run.
    ///
    /// # Errors
    /// A message.
    fn prepare(&mut self, action: &RunAction) -> Result<(), String>;

    /// Share of the files below a path in the page cache, 0 to 1; `None` if unknown.
    fn cached(&mut self, source: &Path) -> Option<f64>;

    /// Runs and times a command.
    ///
    /// # Errors
    /// A message, if it cannot be started.
    fn measure(&mut self, launch: &Launch) -> Result<Measurement, String>;

    /// Checks the result of a run. `seed` selects the files to compare.
    fn check(&mut self, check: &RunCheck, seed: u64) -> CheckResult;
}

/// End of a timed command.
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
pub(super) const LEFT_OUT: &str = " bytes left out]";
