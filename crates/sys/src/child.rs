//! Child processes: end, resource usage, signals; and the sessions of commands that this process starts apart from its
//! terminal (credentials(7)): signals to all of their groups.

use crate::errno;
use crate::proc::ResourceUsage;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// Exited with a code.
    Exited(i32),
    /// Killed by a signal.
    Killed(i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildState {
    /// It runs, sleeps or waits.
    Running,
    /// A signal stopped it.
    Stopped(i32),
    /// It has ended.
    Ended,
}

/// Waits until a child has ended, without reaping it: until [`collect`] its process id is not reused.
///
/// # Errors
/// It is not a child of this process.
pub fn wait_for_end(pid: u32) -> io::Result<()> {
    state(pid, WaitIdOptions::EXITED).map(drop)
}

/// Waits until a child has ended or is stopped, without reaping it. One that is stopped already is reported at once.
pub fn wait_for_stop(pid: u32) -> io::Result<ChildState> {
    state(pid, WaitIdOptions::EXITED | WaitIdOptions::STOPPED)
}

/// What a child does now, without reaping it.
pub fn look(pid: u32) -> io::Result<ChildState> {
    state(pid, WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOHANG)
}

fn state(pid: u32, options: WaitIdOptions) -> io::Result<ChildState> {
    let pid = number(pid)?;
    let options = options | WaitIdOptions::NOWAIT;
    let found = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options))?;
    Ok(match found {
        None => ChildState::Running,
        Some(found) if found.stopped() => ChildState::Stopped(found.stopping_signal().unwrap_or(0)),
        Some(_) => ChildState::Ended,
    })
}

/// Reaps a child, waiting for its end if necessary; returns how it ended and what it and its descendants
/// used.
///
/// # Errors
/// It is not a child of this process.
pub fn collect(pid: u32) -> io::Result<(ProcessEnd, ResourceUsage)> {
    let pid = number(pid)?.as_raw_nonzero().get();
    let mut status = 0;
    let usage = loop {
        // SAFETY: rusage consists of integers, so all zeros is valid; the call only fills in rusage and the
        // status.
        let (taken, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::wait4(pid, &mut status, 0, &mut usage), usage)
        };
        if taken == pid {
            break usage;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    };
    let end = if libc::WIFSIGNALED(status) {
        ProcessEnd::Killed(libc::WTERMSIG(status))
    } else {
        ProcessEnd::Exited(libc::WEXITSTATUS(status))
    };
    Ok((end, ResourceUsage::from(&usage)))
}

/// Sends a signal to a process, kill(2).
///
/// # Errors
/// The process does not exist or belongs to another user; invalid signal.
pub fn send(pid: u32, signal: i32) -> io::Result<()> {
    let pid = number(pid)?.as_raw_nonzero().get();
    // SAFETY: the call takes two integers and no pointers.
    errno::check(unsafe { libc::kill(pid, signal) })
}

/// Sends a signal to all processes of a group, kill(2).
///
/// # Errors
/// The group does not exist or belongs to another user; invalid signal.
pub fn send_to_group(group: u32, signal: i32) -> io::Result<()> {
    let group = number(group)?.as_raw_nonzero().get();
    // -1 would address all processes.
    if group == 1 {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    // SAFETY: the call takes two integers and no pointers.
    errno::check(unsafe { libc::kill(-group, signal) })
}

/// Handles each of `signals` by writing two bytes to `pipe`: its number, and 1 if the kernel sent it
/// (terminal key or hang-up, which reach the whole foreground group) or 0 if a process did. Signals that were
/// ignored at the start of this process stay ignored (nohup(1)).
///
/// # Errors
/// A handler cannot be installed, or the pipe cannot be set to non-blocking.
pub fn tell_signals(signals: &[i32], pipe: &OwnedFd) -> io::Result<()> {
    rustix::io::ioctl_fionbio(pipe, true)?;
    for signal in signals.iter().copied().filter(|s| !crate::process::ignores_signal(*s)) {
        let pipe = pipe.try_clone()?;
        let write = move |info: &libc::siginfo_t| {
            let from_kernel = u8::from(info.si_code > 0);
            let bytes = [signal as u8, from_kernel];
            // SAFETY: the closure owns the descriptor, and `bytes` has as many bytes as the call reads. If
            // the pipe is full, the write fails harmlessly: enough signals are in it.
            unsafe { libc::write(pipe.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        };
        // SAFETY: the handler makes one write(2), which is async-signal-safe; it allocates nothing, takes no
        // lock and cannot panic; the crate preserves errno.
        unsafe { signal_hook_registry::register_sigaction(signal, write) }?;
    }
    Ok(())
}

fn number(pid: u32) -> io::Result<rustix::process::Pid> {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

/// Sessions under way, by their leaders.
static UNDER_WAY: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// They are stopped because this process is.
static PAUSED: AtomicBool = AtomicBool::new(false);
/// Nanoseconds for which they were.
static PAUSED_NS: AtomicU64 = AtomicU64::new(0);

/// A session under way, until this is dropped. The keys that stop and quit this process (Ctrl-Z, Ctrl-\) reach it.
#[derive(Debug)]
pub struct SessionGuard(u32);

impl SessionGuard {
    /// Notes the session of a command that was started as its leader.
    pub fn new(leader: u32) -> SessionGuard {
        static LISTENS: Once = Once::new();
        // Without a listener the keys act on this process alone.
        LISTENS.call_once(|| drop(listen()));
        sessions().push(leader);
        SessionGuard(leader)
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        let mut sessions = sessions();
        if let Some(at) = sessions.iter().position(|leader| *leader == self.0) {
            sessions.swap_remove(at);
        }
    }
}

fn sessions() -> std::sync::MutexGuard<'static, Vec<u32>> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets a command lead a session of its own, without a controlling terminal. With `dies` it is killed if the thread that
/// starts it ends before it.
pub fn lead_session(command: &mut std::process::Command, dies: bool) {
    let prepare = move || {
        rustix::process::setsid()?;
        if dies {
            let kill = rustix::process::Signal::KILL;
            rustix::process::set_parent_process_death_signal(Some(kill))?;
        }
        Ok(())
    };
    // SAFETY: between fork(2) and exec(2) it makes two system calls, allocates nothing and takes no lock.
    unsafe { command.pre_exec(prepare) };
}

/// Asks a child that was not waited for to end (SIGTERM), and kills it if it has not ended after `patience`.
///
/// # Errors
/// Those of kill(2) and wait(2).
pub fn end(child: &mut std::process::Child, patience: Duration) -> io::Result<()> {
    const LOOK: Duration = Duration::from_millis(5);
    let begun = Instant::now();
    let id = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let id = id.ok_or(io::ErrorKind::InvalidInput)?;
    if child.try_wait()?.is_some() {
        return Ok(());
    }
    rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
    while child.try_wait()?.is_none() {
        if begun.elapsed() >= patience {
            return child.kill();
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Sends a signal to all processes of a session: to the group of its leader, and to those that job control made. The
/// leader must not be reaped yet.
///
/// # Errors
/// As [`send_to_group`], for the group of the leader.
pub fn signal_session(leader: u32, signal: i32) -> io::Result<()> {
    let sent = send_to_group(leader, signal);
    for group in groups(leader) {
        let _ = send_to_group(group, signal);
    }
    sent
}

/// Kills all processes of a session, also those that appear meanwhile.
pub fn kill_session(leader: u32) -> io::Result<()> {
    // A process may fork between the look and the signal, but not for ever.
    for _ in 0..3 {
        signal_session(leader, libc::SIGKILL)?;
        if groups(leader).is_empty() {
            break;
        }
    }
    Ok(())
}

/// Process groups of a session other than that of its leader. None without /proc.
fn groups(leader: u32) -> Vec<u32> {
    let mut groups: Vec<u32> = Vec::new();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        if !name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit) {
            continue;
        }
        let stat = std::fs::read(entry.path().join("stat")).unwrap_or_default();
        // proc_pid_stat(5): the name in parentheses may hold any character.
        let Some(end) = stat.iter().rposition(|byte| *byte == b')') else { continue };
        let rest = String::from_utf8_lossy(stat.get(end + 1..).unwrap_or_default()).into_owned();
        let mut fields = rest.split_ascii_whitespace().skip(2).map(str::parse::<u32>);
        let (Some(Ok(group)), Some(Ok(session))) = (fields.next(), fields.next()) else { continue };
        if session == leader && group != leader && !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// True while sessions are stopped because the terminal stopped this process.
pub fn is_paused() -> bool {
    PAUSED.load(Ordering::SeqCst)
}

/// Time for which sessions were stopped with this process until now.
pub fn paused_time() -> Duration {
    Duration::from_nanos(PAUSED_NS.load(Ordering::SeqCst))
}

fn listen() -> io::Result<()> {
    let (mut reader, writer) = io::pipe()?;
    let keys = [libc::SIGTSTP, libc::SIGQUIT];
    tell_signals(&keys, &writer.into())?;
    let read = move || {
        let mut bytes = [0; 2];
        while reader.read_exact(&mut bytes).is_ok() {
            match i32::from(bytes[0]) {
                libc::SIGTSTP => pause(),
                number => quit(number),
            }
        }
    };
    std::thread::Builder::new().name("keys".into()).spawn(read).map(drop)
}

/// Stops the sessions and then this process, until it is continued.
fn pause() {
    let began = Instant::now();
    PAUSED.store(true, Ordering::SeqCst);
    // SIGTSTP would be ignored there: the group of a session's leader is an orphaned one.
    let all = |number| sessions().iter().for_each(|leader| drop(signal_session(*leader, number)));
    all(libc::SIGSTOP);
    // The kernel ignores it where no shell could continue this process.
    let _ = by_default(libc::SIGTSTP);
    // First, as a command may end at once when it is continued.
    let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    PAUSED_NS.fetch_add(ns, Ordering::SeqCst);
    all(libc::SIGCONT);
    PAUSED.store(false, Ordering::SeqCst);
}

/// Passes a signal on that ends this process.
fn quit(number: i32) {
    // Held to the end: whoever waits for a session cannot go on, and exit, before this process has been ended.
    let sessions = sessions();
    for leader in sessions.iter() {
        let _ = signal_session(*leader, number);
        // What a shell without job control runs in the background ignores the keys of the terminal.
        let _ = signal_session(*leader, libc::SIGTERM);
    }
    let _ = by_default(number);
}

/// Takes the default action of a signal in this thread.
fn by_default(number: i32) -> io::Result<()> {
    // SAFETY: sigaction is plain data, so all zeros is valid: the default action without flags. The calls read and
    // write only these two values; raise(3) acts on this thread before it returns.
    unsafe {
        let (default, mut old): (libc::sigaction, libc::sigaction) =
            (std::mem::zeroed(), std::mem::zeroed());
        errno::check(libc::sigaction(number, &default, &mut old))?;
        libc::raise(number);
        errno::check(libc::sigaction(number, &old, std::ptr::null_mut()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    #[expect(clippy::zombie_processes, reason = "collect() waits")]
    fn ends_are_told_apart() {
        for (script, end) in [
            ("exit 0", ProcessEnd::Exited(0)),
            ("exit 77", ProcessEnd::Exited(77)),
            ("kill -TERM $$", ProcessEnd::Killed(15)),
        ] {
            let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            wait_for_end(child.id()).unwrap();
            let (ended, used) = collect(child.id()).unwrap();
            assert_eq!(ended, end, "{script}");
            assert!(used.rss_bytes_max > 100_000 && used.minor_faults > 0, "{used:?}");
            assert!(collect(child.id()).is_err());
        }
        assert!([0, 1, u32::MAX].into_iter().all(|group| send_to_group(group, 0).is_err()));
        assert!(send(u32::MAX, 0).is_err() && wait_for_end(0).is_err());
    }

    #[test]
    fn a_stop_is_no_end() {
        let mut child = Command::new("sh").args(["-c", "kill -STOP $$; exit 3"]).spawn().unwrap();
        assert_eq!(wait_for_stop(child.id()).unwrap(), ChildState::Stopped(libc::SIGSTOP));
        assert_eq!(look(child.id()).unwrap(), ChildState::Stopped(libc::SIGSTOP));
        send(child.id(), libc::SIGCONT).unwrap();
        wait_for_end(child.id()).unwrap();
        assert_eq!(look(child.id()).unwrap(), ChildState::Ended);
        assert_eq!(child.wait().unwrap().code(), Some(3));
    }

    #[test]
    fn signals_of_processes_are_no_keys() {
        let (mut reader, writer) = io::pipe().unwrap();
        tell_signals(&[libc::SIGWINCH], &writer.into()).unwrap();
        send(std::process::id(), libc::SIGWINCH).unwrap();
        let mut bytes = [9; 2];
        reader.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, [libc::SIGWINCH as u8, 0]);
    }

    #[test]
    fn a_session_ends_with_all_its_groups() {
        // Job control gives each command in the background a group of its own. Older shells than this one want a
        // terminal for it.
        let script = "set -m; sleep 100 & sleep 100 & wait";
        let mut command = Command::new("bash");
        command.args(["-c", script]).stdin(Stdio::null()).stderr(Stdio::null());
        lead_session(&mut command, true);
        let mut child = command.spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        while groups(child.id()).len() < 2 {
            assert!(Instant::now() < until, "{:?}", groups(child.id()));
            std::thread::sleep(Duration::from_millis(5));
        }
        let all = groups(child.id());
        kill_session(child.id()).unwrap();
        child.wait().unwrap();
        while all.iter().any(|group| process::is_alive(*group) && !is_zombie(*group)) {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn is_zombie(pid: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains(") Z ") || stat.is_empty()
    }
}
