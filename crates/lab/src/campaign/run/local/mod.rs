//! Implements [`Bench`] for this machine: starts, times and samples commands, checks files, runs servers as
//! separate processes.

mod capture;
mod check;
mod files;
mod job;
mod load;
mod running;
mod servers;

use super::bench::{Bench, CheckResult, CommandEnding, Measurement};
use crate::campaign::own::{FolderMark, OwnFolder};
use crate::campaign::{Launch, RunAction, RunCheck, ServerPlan, data};
use crate::results::store::RUNNING_FILE;
use hakobu_core::error::Cause;
use hakobu_sys::cache;
use job::CommandJob;
use running::RunningSessions;
use servers::ServerProcesses;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The local machine.
#[derive(Debug)]
pub struct LocalBench {
    began: Instant,
    stop: Arc<AtomicBool>,
    servers: ServerProcesses,
    running: RunningSessions,
    /// Number of the run under way, for its commands.
    iteration: Option<String>,
}

/// The variable that tells a command the number of its run, hyperfine(1).
const ITERATION: &str = "HYPERFINE_ITERATION";

impl LocalBench {
    /// Creates a bench that aborts its work when `stop` is set. `program` is the executable that serves S3
    /// (this program). `folder` is the locked results folder, if any: running process groups are recorded
    /// there, and those left by a killed process are ended.
    pub fn new(program: PathBuf, folder: Option<&Path>, stop: Arc<AtomicBool>) -> LocalBench {
        let running = RunningSessions::new(folder.map(|folder| folder.join(RUNNING_FILE)));
        running.end_what_is_left();
        LocalBench {
            began: Instant::now(),
            stop,
            servers: ServerProcesses::new(program),
            running,
            iteration: None,
        }
    }

    /// Median time of a no-op command in seconds; `None` if it fails.
    pub fn start_cost_s(&self, words: &[&str], times: usize) -> Option<f64> {
        let took = (0..times).map(|_| Some(self.short(words)?.costs.wall_s));
        crate::analysis::median(&took.collect::<Option<Vec<f64>>>()?)
    }

    /// First line of a program's output; `None` if it fails or prints nothing.
    pub fn first_line(&self, words: &[&str]) -> Option<String> {
        let measured = self.short(words)?;
        let both = [measured.stdout, measured.stderr].concat();
        let text = String::from_utf8_lossy(&both);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        Some(line.chars().filter(|c| !c.is_control()).take(200).collect())
    }

    /// Runs a command that takes seconds at most; `None` if it fails.
    fn short(&self, words: &[&str]) -> Option<Measurement> {
        let argv = words.iter().map(|word| (*word).to_owned()).collect();
        let launch = Launch { argv, timeout: Some(Duration::from_secs(10)), ..Launch::default() };
        let measured =
            CommandJob { launch: &launch, sampled: false }.run(&self.stop, &self.running).ok()?;
        (measured.ending == CommandEnding::Exited(0)).then_some(measured)
    }

    /// A command with the number of the run under way in its environment, unless it has one there.
    fn numbered(&self, launch: &Launch) -> Launch {
        let mut launch = launch.clone();
        if let Some(number) = &self.iteration {
            launch.env.entry(ITERATION.to_owned()).or_insert_with(|| number.clone());
        }
        launch
    }

    /// Load of the idle machine, by the names of [`crate::results::Run::load`].
    pub fn idle_load(&self, time: Duration) -> BTreeMap<String, f64> {
        load::of_machine(time, &self.stop)
    }
}

impl Bench for LocalBench {
    fn now_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn make(&mut self, recipe: &data::DataRecipe, folder: &Path) -> Result<(), String> {
        data::make(recipe, folder).map(drop).map_err(|error| Cause::System(error).to_string())
    }

    fn claim(&mut self, own: &Path) -> Result<(), String> {
        OwnFolder::claim(own, FolderMark::Inside).map(drop)
    }

    fn serve(&mut self, server: &ServerPlan) -> Result<(), String> {
        let pid = self.servers.start(server)?;
        self.running.add(pid);
        Ok(())
    }

    fn end_servers(&mut self) {
        self.servers.end();
        self.running.clear();
    }

    fn begins(&mut self, iteration: Option<String>) {
        self.iteration = iteration;
    }

    fn shell(&mut self, command: &str, at_any_rate: bool) -> Result<(), String> {
        let argv = ["sh", "-c", command].map(str::to_owned).to_vec();
        let launch = self.numbered(&Launch { argv, ..Launch::default() });
        // Teardown also runs after a stop.
        let never = AtomicBool::new(false);
        let stop: &AtomicBool = if at_any_rate { &never } else { &self.stop };
        let measured = CommandJob { launch: &launch, sampled: false }.run(stop, &self.running)?;
        let said = String::from_utf8_lossy(&measured.stderr).trim().replace('\n', " ");
        match measured.ending {
            CommandEnding::Exited(0) => Ok(()),
            CommandEnding::Exited(code) => {
                let said = if said.is_empty() { said } else { format!("; it said: {said}") };
                Err(format!("'{command}' ended with exit code {code}{said}"))
            }
            CommandEnding::Stopped(signal) => {
                Err(format!("'{command}' was stopped by signal {signal} and not continued"))
            }
            CommandEnding::Killed(_) | CommandEnding::TimedOut => {
                Err(format!("'{command}' was killed"))
            }
        }
    }

    fn prepare(&mut self, action: &RunAction) -> Result<(), String> {
        match action {
            RunAction::Empty { own, below } => {
                OwnFolder::claim(own, FolderMark::Inside)?.empty(below)
            }
            RunAction::Cold(path) => files::cold(path, &self.stop),
            RunAction::Warm(path) => files::warm(path, &self.stop),
            RunAction::Sync => {
                cache::write_back_everything();
                Ok(())
            }
            RunAction::Shell(command) => self.shell(command, false),
        }
    }

    fn cached(&mut self, source: &Path) -> Option<f64> {
        files::cached(source, &self.stop)
    }

    fn measure(&mut self, launch: &Launch) -> Result<Measurement, String> {
        let launch = self.numbered(launch);
        CommandJob { launch: &launch, sampled: true }.run(&self.stop, &self.running)
    }

    fn check(&mut self, check: &RunCheck, seed: u64) -> CheckResult {
        check::check(check, seed)
    }
}
