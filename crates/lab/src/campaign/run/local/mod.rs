//! This machine: commands are started, timed and watched here, files looked at, servers run as
//! processes of their own.

mod capture;
mod check;
mod files;
mod job;
mod load;
mod servers;

use super::{Bench, Looked, Measured};
use crate::campaign::{Action, Check, Launch, ServerPlan, data};
use crate::results::store::RUNNING_FILE;
use hakobu_sys::{cache, child, host, process};
use hakobu_transfer::error::Cause;
use job::Job;
use servers::Servers;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// SIGKILL of signal(7).
const KILL: i32 = 9;
/// SIGTERM.
const TERMINATE: i32 = 15;

/// The machine that this program runs on.
#[derive(Debug)]
pub struct Local {
    began: Instant,
    stop: Arc<AtomicBool>,
    servers: Servers,
    running: Running,
}

impl Local {
    /// A bench that ends what it does when `stop` is set. `program` is what serves S3 (this program).
    /// With a `folder`, that of results that nobody else writes to: in it stands what runs at the
    /// moment, and what an earlier process that was killed had left running is ended.
    pub fn new(program: PathBuf, folder: Option<&Path>, stop: Arc<AtomicBool>) -> Local {
        let running = Running::new(folder.map(|folder| folder.join(RUNNING_FILE)));
        running.end_what_is_left();
        Local { began: Instant::now(), stop, servers: Servers::new(program), running }
    }

    /// Seconds from start to end of a command that does nothing, median of several; `None` where it
    /// fails.
    pub fn start_cost_s(&self, words: &[&str], times: usize) -> Option<f64> {
        let argv = words.iter().map(|word| (*word).to_owned()).collect();
        let launch = Launch { argv, timeout: Some(Duration::from_secs(10)), ..Launch::default() };
        let mut took: Vec<f64> = Vec::new();
        for _ in 0..times {
            let measured = Job::quiet(&launch).run(&self.stop, &self.running).ok()?;
            if measured.ending != super::Ending::Exited(0) {
                return None;
            }
            took.push(measured.wall_s);
        }
        crate::analysis::median(&took)
    }

    /// The first line that a program says of itself; `None` where it fails or says nothing.
    pub fn first_line(&self, words: &[&str]) -> Option<String> {
        let argv = words.iter().map(|word| (*word).to_owned()).collect();
        let launch = Launch { argv, timeout: Some(Duration::from_secs(10)), ..Launch::default() };
        let measured = Job::quiet(&launch).run(&self.stop, &self.running).ok()?;
        if measured.ending != super::Ending::Exited(0) {
            return None;
        }
        let both = [measured.stdout, measured.stderr].concat();
        let text = String::from_utf8_lossy(&both).into_owned();
        let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        Some(line.chars().filter(|c| !c.is_control()).take(200).collect())
    }

    /// What the machine does by itself, by the names of [`crate::results::Run::load`].
    pub fn idle_load(&self, time: Duration) -> BTreeMap<String, f64> {
        load::of_machine(time, &self.stop)
    }
}

impl Bench for Local {
    fn now_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn make(&mut self, recipe: &data::Recipe, folder: &Path) -> Result<(), String> {
        data::make(recipe, folder).map(drop).map_err(|error| Cause::System(error).to_string())
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

    fn shell(&mut self, command: &str, at_any_rate: bool) -> Result<(), String> {
        let argv = ["sh", "-c", command].map(str::to_owned).to_vec();
        let launch = Launch { argv, ..Launch::default() };
        // What clears away is not ended by the stop that it follows.
        let never = AtomicBool::new(false);
        let stop: &AtomicBool = if at_any_rate { &never } else { &self.stop };
        let measured = Job::quiet(&launch).run(stop, &self.running)?;
        let said = String::from_utf8_lossy(&measured.stderr).trim().replace('\n', " ");
        match measured.ending {
            super::Ending::Exited(0) => Ok(()),
            super::Ending::Exited(code) if said.is_empty() => {
                Err(format!("'{command}' ended with exit code {code}"))
            }
            super::Ending::Exited(code) => {
                Err(format!("'{command}' ended with exit code {code}; it said: {said}"))
            }
            _ => Err(format!("'{command}' was killed")),
        }
    }

    fn prepare(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Empty(folder) => files::empty(folder),
            Action::Cold(path) => files::cold(path, &self.stop),
            Action::Warm(path) => files::warm(path, &self.stop),
            Action::Sync => {
                cache::write_back_everything();
                Ok(())
            }
            Action::Shell(command) => self.shell(command, false),
        }
    }

    fn cached(&mut self, source: &Path) -> Option<f64> {
        files::cached(source, &self.stop)
    }

    fn measure(&mut self, launch: &Launch) -> Result<Measured, String> {
        Job::watched(launch).run(&self.stop, &self.running)
    }

    fn check(&mut self, check: &Check, seed: u64) -> Looked {
        check::check(check, seed)
    }
}

/// The file that says which groups of processes were started here, so that a later process can end
/// them where this one was killed. Each line is a process, when it started, and in which boot.
#[derive(Debug)]
struct Running {
    /// `None`: nothing is written down.
    path: Option<PathBuf>,
}

impl Running {
    fn new(path: Option<PathBuf>) -> Running {
        Running { path }
    }

    /// Adds a process that leads its group. What cannot be written is not known later: no more.
    fn add(&self, pid: u32) {
        use std::io::Write;
        let Some((path, ticks)) = self.path.as_ref().zip(process::start_ticks(pid)) else { return };
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        if let Ok(mut file) = file {
            let _ = file.write_all(format!("{pid} {ticks} {}\n", host::boot_id()).as_bytes());
        }
    }

    /// Takes one away that has ended.
    fn remove(&self, pid: u32) {
        let Some(path) = &self.path else { return };
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let prefix = format!("{pid} ");
        let rest: String =
            text.split_inclusive('\n').filter(|line| !line.starts_with(&prefix)).collect();
        let _ = match rest.is_empty() {
            true => std::fs::remove_file(path),
            false => std::fs::write(path, rest),
        };
    }

    fn clear(&self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Ends the groups that are still there, and waits for it a little.
    fn end_what_is_left(&self) {
        let Some(path) = &self.path else { return };
        let Ok(text) = std::fs::read_to_string(path) else { return };
        for line in text.lines() {
            let numbers: Vec<u64> =
                line.split(' ').filter_map(|word| word.parse::<u64>().ok()).collect();
            let [pid, ticks, boot] = numbers[..] else { continue };
            let Ok(pid) = u32::try_from(pid) else { continue };
            let is_same =
                || boot == u64::from(host::boot_id()) && process::start_ticks(pid) == Some(ticks);
            if pid == std::process::id() || !is_same() {
                continue;
            }
            let _ = child::send_to_group(pid, KILL);
            let until = Instant::now() + Duration::from_secs(2);
            while is_same() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        self.clear();
    }
}
