//! Child processes: end, resource usage, and signals.

use crate::errno;
use crate::usage::Used;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// End of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Exited with a code.
    Exited(i32),
    /// Killed by a signal.
    Killed(i32),
}

/// What a child does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
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
///
/// # Errors
/// As [`wait_for_end`].
pub fn wait_for_stop(pid: u32) -> io::Result<State> {
    state(pid, WaitIdOptions::EXITED | WaitIdOptions::STOPPED)
}

/// What a child does now, without reaping it.
///
/// # Errors
/// As [`wait_for_end`].
pub fn look(pid: u32) -> io::Result<State> {
    state(pid, WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOHANG)
}

fn state(pid: u32, options: WaitIdOptions) -> io::Result<State> {
    let pid = number(pid)?;
    let options = options | WaitIdOptions::NOWAIT;
    let found = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options))?;
    Ok(match found {
        None => State::Running,
        Some(found) if found.stopped() => State::Stopped(found.stopping_signal().unwrap_or(0)),
        Some(_) => State::Ended,
    })
}

/// Reaps a child, waiting for its end if necessary; returns how it ended and what it and its descendants
/// used.
///
/// # Errors
/// It is not a child of this process.
pub fn collect(pid: u32) -> io::Result<(End, Used)> {
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
        End::Killed(libc::WTERMSIG(status))
    } else {
        End::Exited(libc::WEXITSTATUS(status))
    };
    Ok((end, Used::from(&usage)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::Command;

    #[test]
    #[expect(clippy::zombie_processes, reason = "collect() waits")]
    fn ends_are_told_apart() {
        for (script, end) in [
            ("exit 0", End::Exited(0)),
            ("exit 77", End::Exited(77)),
            ("kill -TERM $$", End::Killed(15)),
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
        assert_eq!(wait_for_stop(child.id()).unwrap(), State::Stopped(libc::SIGSTOP));
        assert_eq!(look(child.id()).unwrap(), State::Stopped(libc::SIGSTOP));
        send(child.id(), libc::SIGCONT).unwrap();
        wait_for_end(child.id()).unwrap();
        assert_eq!(look(child.id()).unwrap(), State::Ended);
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
}
