//! Runs one command in a session of its own, apart from the terminal: timed, sampled, and ended with all its children
//! after its time limit or on a stop.

use super::capture::OutputCapture;
use super::load::LoadRecording;
use super::running::{KILL, RunningSessions, TERMINATE};
use crate::campaign::run::bench::{CommandEnding, Measurement};
use crate::campaign::{Launch, OutputSink};
use crate::results::Run;
use hakobu_core::error::{Cause, cannot, quoted};
use hakobu_sys::OwnedFd;
use hakobu_sys::child::{self, ChildState, SessionGuard};
use hakobu_sys::paths::Links;
use hakobu_sys::proc::{self, ResourceUsage};
use hakobu_sys::start::{self, Command, Placement};
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Interval of samples and of checks for a stop.
const TICK: Duration = Duration::from_millis(100);
/// Time between SIGTERM and SIGKILL.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time in which a command that is stopped may be continued, by itself or by another program.
const STOPPED_MAX: Duration = Duration::from_secs(1);
/// Interval of looks at a command that is stopped.
const STOPPED_LOOK: Duration = Duration::from_millis(20);

/// Standard output and standard error of this program.
const STDOUT: i32 = 1;
const STDERR: i32 = 2;

/// Our ends of the pipes of standard output and standard error.
type Outputs = [Option<io::PipeReader>; 2];

/// A command to run.
pub(super) struct CommandJob<'a> {
    pub launch: &'a Launch,
    /// True to sample the load of the machine meanwhile.
    pub sampled: bool,
}

/// Messages to the watching thread.
enum WatchMessage {
    /// The command started at this time, with this process id.
    Began(u32, Instant),
    /// The command has ended.
    Ended,
}

impl CommandJob<'_> {
    /// Runs it to its end.
    ///
    /// # Errors
    /// A message, if it cannot be started.
    pub fn run(&self, stop: &AtomicBool, running: &RunningSessions) -> Result<Measurement, String> {
        let (command, ends, outputs) = self.command()?;
        let name = self.launch.argv.first().map_or("", String::as_str);
        let failed = |error: io::Error| cannot("run", name, error);
        let capture = |pipe: Option<io::PipeReader>| pipe.map(OutputCapture::start).transpose();
        let [stdout, stderr] = outputs;
        let (stdout, stderr) = (capture(stdout).map_err(failed)?, capture(stderr).map_err(failed)?);
        let all_of =
            |capture: Option<OutputCapture>| capture.map(OutputCapture::finish).unwrap_or_default();
        let (sender, messages) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let (timeout, sampled) = (self.launch.timeout, self.sampled);
        std::thread::scope(|scope| {
            // Dropped on every way out, which ends the watching thread.
            let sender = sender;
            let watching = std::thread::Builder::new().name("watch".into());
            let watching = watching.spawn_scoped(scope, move || {
                let recording = sampled.then(LoadRecording::begin);
                let _ = ready.send(());
                watch(&messages, timeout, stop, recording)
            });
            let watching = watching.map_err(failed)?;
            // From here until the command ends the lab starts nothing.
            let _ = is_ready.recv();
            let own_before = ResourceUsage::of_process();
            let started_before = proc::started();
            let started = command.start().map_err(failed)?;
            let (pid, began) = (started.pid, started.began);
            // Close our copies of its pipe ends, else the output would never end.
            drop(ends);
            let _ = sender.send(WatchMessage::Began(pid, began));
            running.add(pid);
            let under_way = SessionGuard::new(pid);
            let paused_before = child::paused_time();
            let waited = wait(pid);
            let ended = Instant::now();
            let paused = child::paused_time().saturating_sub(paused_before);
            // The command has ended: further work does not disturb it.
            let own_after = ResourceUsage::of_process();
            let started_after = proc::started();
            // The process id stays reserved until it is reaped, so a kill cannot hit another process.
            let _ = sender.send(WatchMessage::Ended);
            let watched = watching.join();
            let _ = child::send_to_group(pid, KILL);
            let written_bytes = waited.as_ref().ok().and_then(|_| started.written_bytes());
            let collected = waited.and_then(|stopped| Ok((stopped, started.collect()?)));
            drop(under_way);
            running.remove(pid);
            let (stopped, (end, used)) = collected.map_err(|error| {
                format!("cannot learn how {} ended: {}", quoted(name), Cause::System(error))
            })?;
            // Without the watching thread a timeout would go unnoticed.
            let watched = watched.map_err(|_| "the thread that watched the command panicked")?;
            let (load, curves) = watched.load;
            Ok(Measurement {
                ending: match (end, stopped) {
                    _ if watched.timed_out => CommandEnding::TimedOut,
                    (_, Some(signal)) => CommandEnding::Stopped(signal),
                    (child::ProcessEnd::Exited(code), _) => CommandEnding::Exited(code),
                    (child::ProcessEnd::Killed(signal), _) => CommandEnding::Killed(signal),
                },
                costs: Run {
                    // Without the time for which Ctrl-Z stopped both.
                    wall_s: ended
                        .saturating_duration_since(began)
                        .saturating_sub(paused)
                        .as_secs_f64(),
                    user_s: used.user.as_secs_f64(),
                    sys_s: used.sys.as_secs_f64(),
                    rss_bytes_max: used.rss_bytes_max,
                    read_bytes: used.device_read_bytes,
                    write_bytes: used.device_write_bytes,
                    written_bytes,
                    voluntary_switches: used.voluntary_switches,
                    involuntary_switches: used.involuntary_switches,
                    // Do not count the command itself and the process that starts it.
                    started: started_before.zip(started_after).map_or(0, |(before, after)| {
                        after.saturating_sub(before + start::PROCESSES)
                    }),
                    load,
                    ..Run::default()
                },
                stdout: all_of(stdout),
                stderr: all_of(stderr),
                curves,
                lab_cpu_s: own_after.since(&own_before).cpu().as_secs_f64(),
            })
        })
    }

    /// Prepares the command, the descriptors that it inherits, and our ends of its pipes.
    fn command(&self) -> Result<(Command, Vec<OwnedFd>, Outputs), String> {
        let launch = self.launch;
        if launch.argv.is_empty() {
            return Err("there is no command".into());
        }
        let pipe =
            || io::pipe().map_err(|error| format!("cannot make a pipe: {}", Cause::System(error)));
        let nothing = PathBuf::from("/dev/null");
        let create = |path: &Path| {
            let opened = Links::Trusted.open_output(path);
            opened.map_err(|error| cannot("write", path, error))
        };
        let mut ends: Vec<OwnedFd> = Vec::new();
        let (mut stdio, mut outputs) = ([0, STDOUT, STDERR], [None, None]);
        for (at, output) in outputs.iter_mut().enumerate() {
            let end: OwnedFd = match (&launch.output, at) {
                (OutputSink::Inherit, _) => continue,
                (OutputSink::Null, 0) => create(&nothing)?,
                (OutputSink::File(path), 0) => create(path)?,
                _ => {
                    let (ours, theirs) = pipe()?;
                    *output = Some(ours);
                    theirs.into()
                }
            };
            stdio[at + 1] = end.as_raw_fd();
            ends.push(end);
        }
        let input = launch.stdin.as_ref().unwrap_or(&nothing);
        let stdin = File::open(input).map_err(|error| cannot("read", input, error))?;
        stdio[0] = stdin.as_raw_fd();
        ends.push(stdin.into());
        let mut command = Command::new(launch.argv.iter().map(OsString::from).collect());
        command.env.retain(|(name, _)| !launch.env.contains_key(&*name.to_string_lossy()));
        command.env.extend(launch.env.iter().map(|(name, value)| (name.into(), value.into())));
        // Not in the background of our terminal, where a shell with job control, or whoever reads from the terminal,
        // would be stopped (SIGTTOU, SIGTTIN).
        command.place = Placement::Session;
        command.stdio = stdio;
        if let Some(dir) = &launch.dir {
            let dir = CString::new(dir.as_os_str().as_bytes());
            command.dir = Some(dir.map_err(|_| "the working directory holds a NUL")?);
        }
        if let Some(count) = launch.cpus {
            let own = proc::affinity(0).map_err(|error| Cause::System(error).to_string())?;
            command.cpus = own.into_iter().take(count.max(1)).collect();
        }
        Ok((command, ends, outputs))
    }
}

/// Waits until a command has ended. The signal that stopped it, if it was killed for that: while it is stopped, only
/// another program can continue it, and a shell with job control waits for its terminal like that, for ever.
fn wait(pid: u32) -> io::Result<Option<i32>> {
    let mut since: Option<Instant> = None;
    let mut change = child::wait_for_stop(pid)?;
    loop {
        match change {
            ChildState::Ended => return Ok(None),
            // Ctrl-Z stopped it with us.
            ChildState::Stopped(_) if child::is_paused() => since = None,
            ChildState::Stopped(signal) => {
                if since.get_or_insert_with(Instant::now).elapsed() >= STOPPED_MAX {
                    let _ = child::kill_session(pid);
                    return child::wait_for_end(pid).map(|()| Some(signal));
                }
            }
            ChildState::Running => {
                since = None;
                change = child::wait_for_stop(pid)?;
                continue;
            }
        }
        std::thread::sleep(STOPPED_LOOK);
        change = child::look(pid)?;
    }
}

/// Observations of the watching thread.
#[derive(Default)]
struct WatchResult {
    timed_out: bool,
    load: super::load::LoadSummary,
}

/// Samples the machine, and ends the command on a timeout or stop.
fn watch(
    messages: &Receiver<WatchMessage>,
    timeout: Option<Duration>,
    stop: &AtomicBool,
    mut recording: Option<LoadRecording>,
) -> WatchResult {
    let mut watched = WatchResult::default();
    // It never started.
    let Ok(WatchMessage::Began(pid, began)) = messages.recv() else { return watched };
    let mut kill_at: Option<Instant> = None;
    let mut next = began + TICK;
    let paused_before = child::paused_time();
    loop {
        // The time for which Ctrl-Z stopped it does not count.
        let paused = child::paused_time().saturating_sub(paused_before);
        let deadline = timeout.map(|timeout| began + timeout + paused);
        let due = deadline.filter(|_| !watched.timed_out).map_or(next, |at| next.min(at));
        match messages.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => break,
        }
        let now = Instant::now();
        if deadline.is_some_and(|at| now >= at) && !watched.timed_out {
            watched.timed_out = true;
            let _ = child::kill_session(pid);
        }
        if stop.load(Ordering::Relaxed) && kill_at.is_none() {
            kill_at = Some(now + PATIENCE);
            let _ = child::signal_session(pid, TERMINATE);
        }
        if kill_at.is_some_and(|at| now >= at) {
            let _ = child::kill_session(pid);
        }
        if now >= next {
            if let Some(recording) = &mut recording {
                recording.tick();
            }
            // Skip missed ticks after a suspend.
            next = (next + TICK).max(now);
        }
    }
    if let Some(recording) = recording {
        watched.load = recording.end();
    }
    watched
}

#[cfg(test)]
mod tests;
