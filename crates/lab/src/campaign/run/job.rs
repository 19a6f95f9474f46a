//! Runs one command in a session of its own, apart from the terminal: timed, sampled, its output captured up to a bound,
//! and ended with all its children after its time limit or on a stop.

use crate::campaign::run::load::{LoadRecording, LoadSummary};
use crate::campaign::run::local::{KILL, RunningSessions, TERMINATE};
use crate::campaign::run::{CommandEnding, LEFT_OUT, Measurement};
use crate::campaign::{Launch, OutputSink};
use crate::results::Run;
use hakobu_core::error::{PathError, without_number};
use hakobu_sys::child::{ChildState, SessionGuard};
use hakobu_sys::paths::Links;
use hakobu_sys::proc::ResourceUsage;
use hakobu_sys::start::{Command, Placement};
use hakobu_sys::{OwnedFd, child, proc, start};
use parking_lot::Mutex;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{fmt, io};

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

/// Why a command or a server did not do its work. How a measured command ended is no error: [`CommandEnding`].
#[derive(Debug)]
pub enum CommandError {
    /// It, or a file that it needs, cannot be used.
    Path(PathError),
    /// A call for it failed.
    System {
        /// What was to be done, in the words of the message.
        verb: &'static str,
        cause: io::Error,
    },
    /// Our own reason.
    Reason(&'static str),
    /// It ended otherwise than with exit code 0.
    Failed { command: String, ending: CommandEnding, said: String },
    /// A server did not begin to serve; its standard error on one line.
    NotServing(String),
}

impl fmt::Display for CommandError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandError::Path(error) => error.fmt(out),
            CommandError::System { verb, cause } => {
                write!(out, "cannot {verb}: {}", without_number(&cause.to_string()))
            }
            CommandError::Reason(why) => out.write_str(why),
            CommandError::Failed { command, ending, said } => {
                write!(out, "'{command}' {ending}")?;
                if said.is_empty() { Ok(()) } else { write!(out, "; it said: {said}") }
            }
            CommandError::NotServing(said) if said.is_empty() => {
                out.write_str("it did not say that it listens")
            }
            CommandError::NotServing(said) => out.write_str(said),
        }
    }
}

error_type!(CommandError: Path(PathError); System);

impl CommandError {
    /// Returns a closure for `map_err`.
    pub fn of(verb: &'static str) -> impl Fn(io::Error) -> CommandError {
        move |cause| CommandError::System { verb, cause }
    }
}

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
    pub fn run(
        &self,
        stop: &AtomicBool,
        running: &RunningSessions,
    ) -> Result<Measurement, CommandError> {
        let (command, ends, outputs) = self.command()?;
        let name = self.launch.argv.first().map_or("", String::as_str);
        let failed = PathError::of("run", name);
        let capture = |pipe: Option<io::PipeReader>| {
            pipe.map(OutputCapture::start).transpose().map_err(&failed)
        };
        let [stdout, stderr] = outputs;
        let (stdout, stderr) = (capture(stdout)?, capture(stderr)?);
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
            let watching = watching.map_err(&failed)?;
            // From here until the command ends the lab starts nothing.
            let _ = is_ready.recv();
            let own_before = ResourceUsage::of_process();
            let started_before = proc::started();
            let started = command.start().map_err(&failed)?;
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
            let (stopped, (end, used)) = collected.map_err(PathError::of("wait for", name))?;
            // Without the watching thread a timeout would go unnoticed.
            let panicked = CommandError::Reason("the thread that watched the command panicked");
            let watched = watched.map_err(|_| panicked)?;
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
    fn command(&self) -> Result<(Command, Vec<OwnedFd>, Outputs), CommandError> {
        let launch = self.launch;
        if launch.argv.is_empty() {
            return Err(CommandError::Reason("there is no command"));
        }
        let nothing = PathBuf::from("/dev/null");
        let create =
            |path: &Path| Links::Trusted.open_output(path).map_err(PathError::of("write", path));
        let mut ends: Vec<OwnedFd> = Vec::new();
        let (mut stdio, mut outputs) = ([0, STDOUT, STDERR], [None, None]);
        for (at, output) in outputs.iter_mut().enumerate() {
            let end: OwnedFd = match (&launch.output, at) {
                (OutputSink::Inherit, _) => continue,
                (OutputSink::Null, 0) => create(&nothing)?,
                (OutputSink::File(path), 0) => create(path)?,
                _ => {
                    let (ours, theirs) = io::pipe().map_err(CommandError::of("make a pipe"))?;
                    *output = Some(ours);
                    theirs.into()
                }
            };
            stdio[at + 1] = end.as_raw_fd();
            ends.push(end);
        }
        let input = launch.stdin.as_ref().unwrap_or(&nothing);
        let stdin = File::open(input).map_err(PathError::of("read", input))?;
        stdio[0] = stdin.as_raw_fd();
        ends.push(stdin.into());
        let mut command = Command::new(launch.argv.iter().map(OsString::from).collect());
        command.env.retain(|(name, _)| !launch.env.contains_key(&*name.to_string_lossy()));
        command.env.extend(launch.env.iter().map(|(name, value)| (name.into(), value.into())));
        // Not in the background of our terminal, where a shell with job control, or whoever reads from the terminal,
        // would be stopped (SIGTTOU, SIGTTIN).
        command.place = Placement::Session;
        command.stdio = stdio;
        if let Some(count) = launch.cpus {
            let own =
                proc::affinity(0).map_err(CommandError::of("find out which CPUs may be used"))?;
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
    load: LoadSummary,
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
    if let Some(recording) = &mut recording {
        recording.follow(pid);
    }
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

/// Bytes kept from the beginning.
const HEAD_MAX: usize = 8 << 20;
/// Bytes kept from the end, if there is more.
const TAIL_MAX: usize = 1 << 20;
/// Time to wait for end of file after the command has ended: a process left behind may hold the pipe open.
const GRACE: Duration = Duration::from_millis(500);

/// Bounded buffer.
#[derive(Debug, Default)]
struct CaptureBuffer {
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: u64,
}

impl CaptureBuffer {
    fn add(&mut self, bytes: &[u8]) {
        let room = HEAD_MAX - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.extend_from_slice(rest);
        // Cut rarely, so that each byte is moved at most once.
        if self.tail.len() > 2 * TAIL_MAX {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let over = self.tail.len().saturating_sub(TAIL_MAX);
        self.tail.drain(..over);
        self.dropped += over as u64;
    }

    /// All kept bytes; a line in the middle states how many were dropped.
    fn take(&mut self) -> Vec<u8> {
        self.cut();
        let mut out = std::mem::take(&mut self.head);
        if self.dropped > 0 {
            out.extend_from_slice(format!("\n[{}{LEFT_OUT}\n", self.dropped).as_bytes());
        }
        out.append(&mut self.tail);
        out
    }
}

/// A pipe that is read by its own thread.
#[derive(Debug)]
pub(super) struct OutputCapture {
    kept: Arc<Mutex<CaptureBuffer>>,
    ended: Receiver<()>,
}

impl OutputCapture {
    /// Starts to read a pipe to its end.
    pub fn start(mut pipe: impl Read + Send + 'static) -> std::io::Result<OutputCapture> {
        let kept = Arc::new(Mutex::new(CaptureBuffer::default()));
        let (sender, ended) = mpsc::channel();
        let shared = Arc::clone(&kept);
        let read = move || {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(got) => {
                        let mut kept = shared.lock();
                        kept.add(&buffer[..got]);
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            let _ = sender.send(());
        };
        std::thread::Builder::new().name("output".into()).spawn(read)?;
        Ok(OutputCapture { kept, ended })
    }

    /// Returns the output once the pipe has ended, or after a short wait.
    pub fn finish(self) -> Vec<u8> {
        let _ = self.ended.recv_timeout(GRACE);
        self.kept.lock().take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_sys::proc::ProcessDir;
    use std::os::unix::process::CommandExt;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn beginning_and_end_are_kept() {
        let mut kept = CaptureBuffer::default();
        kept.add(b"abc");
        assert_eq!(kept.take(), b"abc");
        let mut kept = CaptureBuffer::default();
        for number in 0..3_000_000u32 {
            kept.add(&number.to_le_bytes());
        }
        let all = kept.take();
        assert!(all.len() < HEAD_MAX + TAIL_MAX + 100, "{}", all.len());
        assert_eq!(all[..4], 0u32.to_le_bytes());
        assert_eq!(all[all.len() - 4..], 2_999_999u32.to_le_bytes());
        let said = String::from_utf8_lossy(&all);
        assert!(said.contains("[2562816 bytes left out]"));
    }

    #[test]
    fn a_pipe_that_stays_open_is_not_waited_for() {
        use std::io::Write;
        let (reader, mut writer) = std::io::pipe().unwrap();
        let capture = OutputCapture::start(reader).unwrap();
        writer.write_all(b"so far").unwrap();
        assert_eq!(capture.finish(), b"so far");
        drop(writer);
    }

    fn file() -> std::path::PathBuf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        std::env::temp_dir().join(format!("hakobu-running-{}-{number}", std::process::id()))
    }

    /// File of running process groups.
    fn running() -> RunningSessions {
        RunningSessions::new(Some(file()))
    }

    fn launch(script: &str) -> Launch {
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        Launch { argv, ..Launch::default() }
    }

    fn run(launch: &Launch) -> Measurement {
        CommandJob { launch, sampled: true }.run(&AtomicBool::new(false), &running()).unwrap()
    }

    #[test]
    fn ends_and_outputs() {
        for (script, ending, out, err) in [
            ("echo out; echo err >&2", CommandEnding::Exited(0), "out\n", "err\n"),
            ("exit 7", CommandEnding::Exited(7), "", ""),
            ("kill -TERM $$", CommandEnding::Killed(15), "", ""),
        ] {
            let measured = run(&launch(script));
            assert_eq!(measured.ending, ending, "{script}");
            assert_eq!(String::from_utf8_lossy(&measured.stdout), out);
            assert_eq!(String::from_utf8_lossy(&measured.stderr), err);
        }
        let none = Launch { argv: vec!["/no/such/program".into()], ..Launch::default() };
        let why = CommandJob { launch: &none, sampled: true }
            .run(&AtomicBool::new(false), &running())
            .unwrap_err();
        assert_eq!(why.to_string(), "cannot run '/no/such/program': No such file or directory");
    }

    #[test]
    fn numbers_of_a_busy_command() {
        let script = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 0.25; true & wait";
        let measured = run(&launch(script));
        assert!(measured.costs.wall_s >= 0.25, "{measured:?}");
        assert!(
            measured.costs.user_s > 0.005 && measured.costs.user_s <= measured.costs.wall_s,
            "{measured:?}"
        );
        assert!(
            measured.costs.rss_bytes_max > 100_000 && measured.costs.voluntary_switches > 0,
            "{measured:?}"
        );
        // sleep and true; other processes on this machine are counted as well.
        assert!(measured.costs.started >= 2, "{measured:?}");
        let (times, curves) = &measured.curves;
        assert!(times.len() >= 2 && curves.values().all(|curve| curve.len() == times.len()));
        // The last sample is taken when the command ends, by a thread that has to wait for a CPU.
        assert!((times.last().unwrap() - measured.costs.wall_s).abs() < 1.0, "{times:?}");
        assert!(measured.costs.load.contains_key("cpu_percent"), "{:?}", measured.costs.load);
        // The command's own curves are what it used, to a tick of the kernel's clock.
        let stat = std::fs::read_to_string("/proc/stat").unwrap();
        let online = stat.lines().filter(|line| line.starts_with("cpu")).count() - 1;
        let starts = std::iter::once(&0.0).chain(times);
        let spans = times.iter().zip(starts).map(|(end, start)| end - start);
        let own = curves["own_user"].iter().zip(&curves["own_system"]).zip(spans);
        let own_s = own.map(|((user, sys), span)| (user + sys) / 100.0 * online as f64 * span);
        let own_s: f64 = own_s.sum();
        let used_s = measured.costs.user_s + measured.costs.sys_s;
        assert!((own_s - used_s).abs() < 0.03 + 0.1 * used_s, "{own_s} {used_s} {curves:?}");
        // Other tests of this process are counted as well, on each CPU.
        let cpus = std::thread::available_parallelism().unwrap().get() as f64;
        assert!(
            measured.lab_cpu_s < (measured.costs.wall_s + 1.0) * cpus,
            "{}",
            measured.lab_cpu_s
        );
    }

    #[test]
    fn a_hanging_command_is_ended_with_its_children() {
        let mut hanging = launch("sleep 100 & echo $!; sleep 100");
        hanging.timeout = Some(Duration::from_millis(250));
        let measured = run(&hanging);
        assert_eq!(measured.ending, CommandEnding::TimedOut);
        assert!((0.25..5.0).contains(&measured.costs.wall_s), "{}", measured.costs.wall_s);
        let pid: u32 = String::from_utf8_lossy(&measured.stdout).trim().parse().unwrap();
        let gone = || {
            let stat = ProcessDir::open(pid).and_then(|dir| dir.open_file(c"stat"));
            let mut buffer = Vec::new();
            let text = stat.as_ref().and_then(|stat| stat.read(&mut buffer)).unwrap_or_default();
            text.is_empty() || text.windows(4).any(|four| four == b") Z ")
        };
        let until = Instant::now() + Duration::from_secs(5);
        while !gone() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(gone());
    }

    #[test]
    fn a_stop_ends_it_politely_first() {
        let stop = AtomicBool::new(false);
        let script = "trap 'echo told; exit 3' TERM; while :; do sleep 0.02; done";
        let measured = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                stop.store(true, Ordering::Relaxed);
            });
            CommandJob { launch: &launch(script), sampled: false }.run(&stop, &running()).unwrap()
        });
        assert_eq!(
            (measured.ending, measured.stdout),
            (CommandEnding::Exited(3), b"told\n".to_vec())
        );
    }

    #[test]
    fn few_cpus_for_it_and_all_for_us() {
        let before = proc::affinity(0).unwrap();
        let mut bound = launch("grep Cpus_allowed_list /proc/self/status");
        bound.cpus = Some(1);
        let measured = run(&bound);
        let said = String::from_utf8_lossy(&measured.stdout).into_owned();
        assert_eq!(said.split_whitespace().nth(1), Some(before[0].to_string().as_str()), "{said}");
        assert_eq!(proc::affinity(0).unwrap(), before);
    }

    #[test]
    fn streams_and_variables() {
        let mut here = launch("cat; echo $COLOR");
        here.env.insert("COLOR".into(), "red".into());
        let input = file();
        std::fs::write(&input, "in\n").unwrap();
        here.stdin = Some(input.clone());
        assert_eq!(String::from_utf8_lossy(&run(&here).stdout), "in\nred\n");
        std::fs::remove_file(&input).unwrap();
        here.stdin = Some("/no/such".into());
        let why = CommandJob { launch: &here, sampled: true }
            .run(&AtomicBool::new(false), &running())
            .unwrap_err();
        assert!(why.to_string().starts_with("cannot read '/no/such'"), "{why}");
    }

    #[test]
    fn what_a_killed_lab_left_is_ended() {
        let path = file();
        let running = RunningSessions::new(Some(path.clone()));
        let mut left =
            std::process::Command::new("sleep").arg("100").process_group(0).spawn().unwrap();
        running.add(left.id());
        running.end_what_is_left();
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(left.wait().unwrap().signal(), Some(KILL));
        assert!(!path.exists());
        // A process id reused by another process is left alone.
        let mut other =
            std::process::Command::new("sleep").arg("100").process_group(0).spawn().unwrap();
        let line = format!("{} 1 {}\n", other.id(), hakobu_sys::host::boot_id());
        std::fs::write(&path, line).unwrap();
        running.end_what_is_left();
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
