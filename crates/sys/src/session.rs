//! Sessions of commands that this process starts apart from its terminal (credentials(7)): signals to all of their
//! processes, and the keys of the terminal that stop and quit this process, passed on to them.

use crate::{child, errno};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

/// Sessions under way, by their leaders.
static UNDER_WAY: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// They are stopped because this process is.
static PAUSED: AtomicBool = AtomicBool::new(false);
/// Nanoseconds for which they were.
static PAUSED_NS: AtomicU64 = AtomicU64::new(0);

/// A session under way, until this is dropped. The keys that stop and quit this process (Ctrl-Z, Ctrl-\) reach it.
#[derive(Debug)]
pub struct UnderWay(u32);

impl UnderWay {
    /// Notes the session of a command that was started as its leader.
    pub fn new(leader: u32) -> UnderWay {
        static LISTENS: Once = Once::new();
        // Without a listener the keys act on this process alone.
        LISTENS.call_once(|| drop(listen()));
        sessions().push(leader);
        UnderWay(leader)
    }
}

impl Drop for UnderWay {
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
pub fn lead(command: &mut std::process::Command, dies: bool) {
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

/// Sends a signal to all processes of a session: to the group of its leader, and to those that job control made. The
/// leader must not be reaped yet.
///
/// # Errors
/// As [`child::send_to_group`], for the group of the leader.
pub fn signal(leader: u32, signal: i32) -> io::Result<()> {
    let sent = child::send_to_group(leader, signal);
    for group in groups(leader) {
        let _ = child::send_to_group(group, signal);
    }
    sent
}

/// Kills all processes of a session, also those that appear meanwhile.
///
/// # Errors
/// As [`signal`].
pub fn kill(leader: u32) -> io::Result<()> {
    // A process may fork between the look and the signal, but not for ever.
    for _ in 0..3 {
        signal(leader, libc::SIGKILL)?;
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
pub fn paused() -> Duration {
    Duration::from_nanos(PAUSED_NS.load(Ordering::SeqCst))
}

fn listen() -> io::Result<()> {
    let (mut reader, writer) = io::pipe()?;
    let keys = [libc::SIGTSTP, libc::SIGQUIT];
    child::tell_signals(&keys, &writer.into())?;
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
    let all = |number| sessions().iter().for_each(|leader| drop(signal(*leader, number)));
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
        let _ = signal(*leader, number);
        // What a shell without job control runs in the background ignores the keys of the terminal.
        let _ = signal(*leader, libc::SIGTERM);
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
    use std::process::{Command, Stdio};

    #[test]
    fn a_session_ends_with_all_its_groups() {
        // Job control gives each command in the background a group of its own. Older shells than this one want a
        // terminal for it.
        let script = "set -m; sleep 100 & sleep 100 & wait";
        let mut command = Command::new("bash");
        command.args(["-c", script]).stdin(Stdio::null()).stderr(Stdio::null());
        lead(&mut command, true);
        let mut child = command.spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        while groups(child.id()).len() < 2 {
            assert!(Instant::now() < until, "{:?}", groups(child.id()));
            std::thread::sleep(Duration::from_millis(5));
        }
        let all = groups(child.id());
        kill(child.id()).unwrap();
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
