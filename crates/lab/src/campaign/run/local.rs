//! Implements [`Bench`] for this machine: starts, times and samples commands, checks files, runs servers as separate
//! processes, and ends what a killed lab left running.

mod check;

use crate::analysis::statistics;
use crate::campaign::data::{DataError, DataRecipe};
use crate::campaign::own_folder::{FolderError, FolderMark, OwnFolder};
use crate::campaign::run::job::{CommandError, CommandJob};
use crate::campaign::run::{
    Bench, CheckResult, CommandEnding, Measurement, PrepareError, load, page_cache,
};
use crate::campaign::{Launch, RunAction, RunCheck, ServerPlan, data};
use crate::results::store::RUNNING_FILE;
use hakobu_core::error::PathError;
use hakobu_sys::paths::Links;
use hakobu_sys::{cache, child, host, process};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
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
        statistics::median(&took.collect::<Option<Vec<f64>>>()?)
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

    fn make(&mut self, recipe: &DataRecipe, folder: &Path) -> Result<(), DataError> {
        data::make(recipe, folder).map(drop)
    }

    fn claim(&mut self, own: &Path) -> Result<(), FolderError> {
        OwnFolder::claim(own, FolderMark::Inside).map(drop)
    }

    fn serve(&mut self, server: &ServerPlan) -> Result<(), CommandError> {
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

    fn shell(&mut self, command: &str, at_any_rate: bool) -> Result<(), CommandError> {
        let argv = ["sh", "-c", command].map(str::to_owned).to_vec();
        let launch = self.numbered(&Launch { argv, ..Launch::default() });
        // Teardown also runs after a stop.
        let never = AtomicBool::new(false);
        let stop: &AtomicBool = if at_any_rate { &never } else { &self.stop };
        let measured = CommandJob { launch: &launch, sampled: false }.run(stop, &self.running)?;
        match measured.ending {
            CommandEnding::Exited(0) => Ok(()),
            ending => {
                let said = on_one_line(&measured.stderr);
                Err(CommandError::Failed { command: command.to_owned(), ending, said })
            }
        }
    }

    fn prepare(&mut self, action: &RunAction) -> Result<(), PrepareError> {
        match action {
            RunAction::Empty { own, below } => {
                OwnFolder::claim(own, FolderMark::Inside)?.empty(below)?;
            }
            RunAction::Cold(path) => page_cache::cold(path, &self.stop)?,
            RunAction::Warm(path) => page_cache::warm(path, &self.stop)?,
            RunAction::Sync => cache::write_back_everything(),
            RunAction::Shell(command) => self.shell(command, false)?,
        }
        Ok(())
    }

    fn cached(&mut self, source: &Path) -> Option<f64> {
        page_cache::cached(source, &self.stop)
    }

    fn measure(&mut self, launch: &Launch) -> Result<Measurement, CommandError> {
        let launch = self.numbered(launch);
        CommandJob { launch: &launch, sampled: true }.run(&self.stop, &self.running)
    }

    fn check(&mut self, check: &RunCheck, seed: u64) -> CheckResult {
        check::check(check, seed)
    }
}

/// Standard error of a command in a message.
fn on_one_line(said: &[u8]) -> String {
    String::from_utf8_lossy(said).trim().replace('\n', " ")
}

// Embedded servers, each in its own process, so that their resource use is separate from the measured
// command and the lab.

/// Time within which a server must report its address.
const START_MAX: Duration = Duration::from_secs(20);
/// Time between the request to end and SIGKILL.
const END_MAX: Duration = Duration::from_secs(5);

/// Running servers; dropping this ends them.
#[derive(Debug)]
pub(super) struct ServerProcesses {
    program: PathBuf,
    children: Vec<Child>,
}

impl ServerProcesses {
    /// Creates an empty list; `program` is the executable to start.
    pub fn new(program: PathBuf) -> ServerProcesses {
        ServerProcesses { program, children: Vec::new() }
    }

    /// Starts a server and returns its process id once it listens.
    pub fn start(&mut self, plan: &ServerPlan) -> Result<u32, CommandError> {
        if let Some(folder) = &plan.folder {
            let buckets = plan.buckets.iter().map(|bucket| folder.join(bucket));
            for folder in std::iter::once(folder.clone()).chain(buckets) {
                let made = Links::Trusted.make_dir(&folder, 0o777, true);
                made.map_err(PathError::of("make", &folder))?;
            }
        }
        let mut command = Command::new(&self.program);
        command.args(arguments(plan)).process_group(0);
        // Not on the command line, which every user can read.
        command.env("AWS_ACCESS_KEY_ID", &plan.access_key);
        command.env("AWS_SECRET_ACCESS_KEY", &plan.secret_key);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(PathError::of("run", &self.program))?;
        let pipes = child.stdout.take().zip(child.stderr.take());
        let pid = child.id();
        self.children.push(child);
        let (stdout, mut stderr) =
            pipes.ok_or(CommandError::Reason("its output cannot be read"))?;
        let (sender, receiver) = mpsc::channel();
        let read = move || {
            let mut lines = BufReader::new(stdout);
            let mut line = String::new();
            let _ = lines.read_line(&mut line);
            let _ = sender.send(line);
            // Drain its output, so that it never blocks.
            let _ = std::io::copy(&mut lines, &mut std::io::sink());
        };
        let reading = std::thread::Builder::new().name("server".into()).spawn(read);
        reading.map_err(CommandError::of("start a thread"))?;
        match receiver.recv_timeout(START_MAX) {
            Ok(line) if line.starts_with("listening on ") => {
                let drain = move || {
                    let _ = std::io::copy(&mut stderr, &mut std::io::sink());
                };
                let _ = std::thread::Builder::new().name("server".into()).spawn(drain);
                Ok(pid)
            }
            _ => {
                let _ = child::send(pid, KILL);
                let mut said = Vec::new();
                let _ = stderr.read_to_end(&mut said);
                Err(CommandError::NotServing(on_one_line(&said)))
            }
        }
    }

    /// Ends all servers.
    pub fn end(&mut self) {
        for child in &self.children {
            let _ = child::send(child.id(), TERMINATE);
        }
        let until = Instant::now() + END_MAX;
        for mut child in self.children.drain(..) {
            while let Ok(None) = child.try_wait()
                && Instant::now() < until
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for ServerProcesses {
    fn drop(&mut self) {
        self.end();
    }
}

/// Arguments after the name of the program.
fn arguments(plan: &ServerPlan) -> Vec<String> {
    let mut words: Vec<String> = vec!["serve".into()];
    match &plan.folder {
        Some(folder) => words.extend(["s3".into(), folder.display().to_string()]),
        None => {
            words.push("null".into());
            words.push(format!("--keys={}", plan.null.0));
            words.push(format!("--object-size={}", plan.null.1));
        }
    }
    if !plan.listen.is_empty() {
        words.push(format!("--listen={}", plan.listen));
    }
    if !plan.latency.is_zero() {
        words.push(format!("--latency={}us", plan.latency.as_micros()));
    }
    if let Some(rate) = plan.bandwidth_bytes_per_s {
        words.push(format!("--bandwidth={rate}"));
    }
    if let Some(most) = plan.in_flight_max {
        words.push(format!("--max-in-flight={most}"));
    }
    words
}

// Records started sessions for a later run, and ends them by signals.

/// SIGKILL, signal(7).
pub(super) const KILL: i32 = 9;
/// SIGTERM, signal(7).
pub(super) const TERMINATE: i32 = 15;

/// File of sessions started here, so that a later process can end them if this one is killed. Each line
/// has a process id, its start time and the boot id.
#[derive(Debug)]
pub(super) struct RunningSessions {
    /// `None` to record nothing.
    path: Option<PathBuf>,
}

impl RunningSessions {
    pub(super) fn new(path: Option<PathBuf>) -> RunningSessions {
        RunningSessions { path }
    }

    /// Adds a session by its leader. A failed write is ignored: the session is then unknown later.
    pub(super) fn add(&self, pid: u32) {
        use std::io::Write;
        let Some((path, ticks)) = self.path.as_ref().zip(process::start_ticks(pid)) else { return };
        if let Ok(file) = Links::Trusted.open_private(path) {
            let mut file = File::from(file);
            let _ = file.write_all(format!("{pid} {ticks} {}\n", host::boot_id()).as_bytes());
        }
    }

    /// Removes a session that has ended.
    pub(super) fn remove(&self, pid: u32) {
        let Some(path) = &self.path else { return };
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let prefix = format!("{pid} ");
        let rest: String =
            text.split_inclusive('\n').filter(|line| !line.starts_with(&prefix)).collect();
        let _ = match rest.is_empty() {
            true => std::fs::remove_file(path),
            false => Links::Trusted.write_private(path, rest.as_bytes()),
        };
    }

    pub(super) fn clear(&self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Ends the recorded sessions that still run, and waits briefly.
    pub(super) fn end_what_is_left(&self) {
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
            let _ = child::kill_session(pid);
            let until = Instant::now() + Duration::from_secs(2);
            while is_same() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        let plan = ServerPlan { listen: "127.0.0.1:0".into(), ..ServerPlan::default() };
        assert_eq!(
            arguments(&plan).join(" "),
            "serve null --keys=0 --object-size=0 --listen=127.0.0.1:0"
        );
        let plan = ServerPlan {
            folder: Some("/d".into()),
            latency: Duration::from_millis(20),
            bandwidth_bytes_per_s: Some(1000),
            in_flight_max: Some(4),
            secret_key: "secret".into(),
            ..ServerPlan::default()
        };
        assert_eq!(
            arguments(&plan).join(" "),
            "serve s3 /d --latency=20000us --bandwidth=1000 --max-in-flight=4"
        );
    }

    #[test]
    fn what_does_not_serve_says_why() {
        let mut servers = ServerProcesses::new("/no/such".into());
        let why = servers.start(&ServerPlan::default()).unwrap_err().to_string();
        assert!(why.starts_with("cannot run '/no/such'"), "{why}");
        let mut servers = ServerProcesses::new("false".into());
        let why = servers.start(&ServerPlan::default()).unwrap_err().to_string();
        assert_eq!(why, "it did not say that it listens");
        let mut servers = ServerProcesses::new("ls".into());
        let why = servers.start(&ServerPlan::default()).unwrap_err().to_string();
        assert!(why.contains("serve") || why.contains("keys"), "{why}");
    }
}
