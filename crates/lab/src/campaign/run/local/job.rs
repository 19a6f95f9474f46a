//! One command: started in a group of processes of its own, timed, watched, ended with all its
//! children where it takes too long or somebody asks to stop.

use super::capture::Capture;
use super::load::Recording;
use super::{KILL, Running, TERMINATE};
use crate::campaign::Launch;
use crate::campaign::run::{Ending, Measured};
use hakobu_sys::{child, counters, task};
use hakobu_transfer::error::{Cause, quoted};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Between samples, and between looks at whether somebody asked to stop.
const TICK: Duration = Duration::from_millis(100);
/// A command that was asked to end gets so long until it is killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// A command to be run.
pub(super) struct Job<'a> {
    launch: &'a Launch,
    /// The machine is sampled meanwhile.
    sampled: bool,
}

/// What the watching thread is told.
enum News {
    /// The command runs since then, as this process.
    Began(u32, Instant),
    /// It has ended.
    Ended,
}

impl<'a> Job<'a> {
    /// One that is measured, with the machine's load.
    pub fn watched(launch: &'a Launch) -> Job<'a> {
        Job { launch, sampled: true }
    }

    /// One that is only run.
    pub fn quiet(launch: &'a Launch) -> Job<'a> {
        Job { launch, sampled: false }
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// A sentence: it could not be started.
    pub fn run(&self, stop: &AtomicBool, running: &Running) -> Result<Measured, String> {
        let (mut command, outputs) = self.command()?;
        let name = self.launch.argv.first().map_or("", String::as_str);
        let cannot =
            |error: io::Error| format!("cannot run {}: {}", quoted(name), Cause::System(error));
        let [stdout, stderr] = outputs;
        let stdout = Capture::start(stdout).map_err(cannot)?;
        let stderr = Capture::start(stderr).map_err(cannot)?;
        let (tell, news) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let (timeout, sampled) = (self.launch.timeout, self.sampled);
        std::thread::scope(|scope| {
            // Dropped on every way out: the watching thread ends with it.
            let tell = tell;
            let watching = std::thread::Builder::new().name("watch".into());
            let watching = watching.spawn_scoped(scope, move || {
                let recording = sampled.then(Recording::begin);
                let _ = ready.send(());
                watch(&news, timeout, stop, recording)
            });
            let watching = watching.map_err(cannot)?;
            // From here on nothing of the lab is started until the command has ended.
            let _ = is_ready.recv();
            let own_before = counters::used();
            let started_before = counters::started();
            let (pid, began) = self.spawn(&mut command).map_err(cannot)?;
            // Our ends of its pipes: with them open, no output would ever end.
            drop(command);
            let _ = tell.send(News::Began(pid, began));
            running.add(pid);
            let waited = child::wait_for_end(pid);
            let ended = Instant::now();
            // What follows disturbs nobody any more.
            let own_after = counters::used();
            let started_after = counters::started();
            // The number belongs to the command until it is collected: nobody else is killed.
            let _ = tell.send(News::Ended);
            let watched = watching.join().unwrap_or_default();
            let _ = child::send_to_group(pid, KILL);
            let collected = waited.and_then(|()| child::collect(pid));
            running.remove(pid);
            let (end, used) = collected.map_err(|error| {
                format!("cannot learn how {} ended: {}", quoted(name), Cause::System(error))
            })?;
            let cpu_ns = |used: counters::Used| used.user_ns + used.system_ns;
            let (load, curves) = watched.load;
            Ok(Measured {
                ending: match end {
                    _ if watched.timed_out => Ending::TimedOut,
                    child::End::Exited(code) => Ending::Exited(code),
                    child::End::Killed(signal) => Ending::Killed(signal),
                },
                wall_s: ended.saturating_duration_since(began).as_secs_f64(),
                user_s: used.user.as_secs_f64(),
                sys_s: used.sys.as_secs_f64(),
                rss_bytes_max: used.rss_bytes_max,
                read_bytes: used.device_read_bytes,
                write_bytes: used.device_write_bytes,
                voluntary_switches: used.voluntary_switches,
                involuntary_switches: used.involuntary_switches,
                // The command itself is not what it started.
                started: started_before
                    .zip(started_after)
                    .map_or(0, |(before, after)| after.saturating_sub(before + 1)),
                stdout: stdout.finish(),
                stderr: stderr.finish(),
                load,
                curves,
                lab_cpu_s: cpu_ns(own_after).saturating_sub(cpu_ns(own_before)) as f64 / 1e9,
            })
        })
    }

    /// The command, and the ends of its output's pipes that are ours.
    fn command(&self) -> Result<(Command, [io::PipeReader; 2]), String> {
        let launch = self.launch;
        let (name, arguments) = launch.argv.split_first().ok_or("there is no command")?;
        let pipe =
            || io::pipe().map_err(|error| format!("cannot make a pipe: {}", Cause::System(error)));
        let ((stdout, out), (stderr, err)) = (pipe()?, pipe()?);
        let stdin = match &launch.stdin {
            None => Stdio::null(),
            Some(path) => Stdio::from(File::open(path).map_err(|error| {
                format!("cannot read {}: {}", quoted(path), Cause::System(error))
            })?),
        };
        let mut command = Command::new(name);
        command.args(arguments).envs(&launch.env).stdin(stdin).stdout(out).stderr(err);
        command.process_group(0);
        if let Some(dir) = &launch.dir {
            command.current_dir(dir);
        }
        Ok((command, [stdout, stderr]))
    }

    /// Starts it; its number, and the moment before.
    fn spawn(&self, command: &mut Command) -> io::Result<(u32, Instant)> {
        let Some(count) = self.launch.cpus else { return start(command) };
        // A child has the CPUs of the thread that makes it.
        let own = task::affinity(0)?;
        let few: Vec<u32> = own.iter().copied().take(count.max(1)).collect();
        task::set_affinity(0, &few)?;
        let started = start(command);
        let back = task::set_affinity(0, &own);
        match (started, back) {
            (Ok(started), Ok(())) => Ok(started),
            (Ok((pid, _)), Err(error)) => {
                let _ = child::send_to_group(pid, KILL);
                let _ = child::collect(pid);
                Err(error)
            }
            (Err(error), _) => Err(error),
        }
    }
}

/// Starts it; [`child::collect`] takes it away.
fn start(command: &mut Command) -> io::Result<(u32, Instant)> {
    let began = Instant::now();
    Ok((command.spawn()?.id(), began))
}

/// What the watching thread saw.
#[derive(Default)]
struct Watched {
    timed_out: bool,
    load: super::load::Load,
}

/// Samples the machine, and ends the command where that is due.
fn watch(
    news: &Receiver<News>,
    timeout: Option<Duration>,
    stop: &AtomicBool,
    mut recording: Option<Recording>,
) -> Watched {
    let mut watched = Watched::default();
    // It never began: nothing to see.
    let Ok(News::Began(pid, began)) = news.recv() else { return watched };
    let deadline = timeout.map(|timeout| began + timeout);
    let mut kill_at: Option<Instant> = None;
    let mut next = began + TICK;
    loop {
        let due = deadline.filter(|_| !watched.timed_out).map_or(next, |at| next.min(at));
        match news.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => break,
        }
        let now = Instant::now();
        if deadline.is_some_and(|at| now >= at) && !watched.timed_out {
            watched.timed_out = true;
            let _ = child::send_to_group(pid, KILL);
        }
        if stop.load(Ordering::Relaxed) && kill_at.is_none() {
            kill_at = Some(now + PATIENCE);
            let _ = child::send_to_group(pid, TERMINATE);
        }
        if kill_at.is_some_and(|at| now >= at) {
            let _ = child::send_to_group(pid, KILL);
        }
        if now >= next {
            if let Some(recording) = &mut recording {
                recording.tick();
            }
            // After a stopped or suspended machine there is nothing to catch up with.
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
