//! A command that was started here: its end, what it used, and the signals that are meant for it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// What a process and all descendants that were waited for have used, wait4(2) and getrusage(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// CPU time in user space.
    pub user: Duration,
    /// CPU time in the kernel.
    pub sys: Duration,
    /// Peak resident memory of the largest of these processes, in bytes. It survives exec(2): it
    /// is never less than what the process that started the command had.
    pub rss_bytes_max: u64,
    /// Faults that needed no device.
    pub minor_faults: u64,
    /// Faults that did.
    pub major_faults: u64,
    /// Times one of them gave up the CPU by itself.
    pub voluntary_switches: u64,
    /// Times it was taken away.
    pub involuntary_switches: u64,
    /// Bytes that were fetched from devices for them (in blocks of 512).
    pub device_read_bytes: u64,
    /// Bytes that they made devices write, now or later (in blocks of 512).
    pub device_write_bytes: u64,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with a code.
    Exited(i32),
    /// By a signal.
    Killed(i32),
}

/// Waits until a child of ours has ended and leaves it to [`collect`]: until then its number
/// belongs to nobody else.
///
/// # Errors
/// It is no child of ours.
pub fn wait_for_end(pid: u32) -> io::Result<()> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let pid = number(pid)?;
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Takes a child of ours away, waiting for its end if need be: how it ended, and what it and its
/// descendants used.
///
/// # Errors
/// It is no child of ours.
pub fn collect(pid: u32) -> io::Result<(End, Used)> {
    let pid = number(pid)?.as_raw_nonzero().get();
    let mut status = 0;
    let usage = loop {
        // SAFETY: rusage is plain numbers, for which all zeroes is a value; the call only fills
        // it and the status.
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
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    let used = Used {
        user: time(usage.ru_utime),
        sys: time(usage.ru_stime),
        rss_bytes_max: usage.ru_maxrss as u64 * 1024,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        device_read_bytes: usage.ru_inblock as u64 * 512,
        device_write_bytes: usage.ru_oublock as u64 * 512,
    };
    Ok((end, used))
}

/// Sends a signal to a process, kill(2).
///
/// # Errors
/// There is none of that number, or it is somebody else's; or no such signal.
pub fn send(pid: u32, signal: i32) -> io::Result<()> {
    let pid = number(pid)?.as_raw_nonzero().get();
    // SAFETY: the call takes two numbers and touches no memory of ours.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends a signal to all processes of a group, kill(2).
///
/// # Errors
/// There is none of that number, or all of it is somebody else's; or no such signal.
pub fn send_to_group(group: u32, signal: i32) -> io::Result<()> {
    let group = number(group)?.as_raw_nonzero().get();
    // -1 would be everybody.
    if group == 1 {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    // SAFETY: the call takes two numbers and touches no memory of ours.
    match unsafe { libc::kill(-group, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// From now on each of `signals` that comes no longer ends this process, but writes two bytes into
/// `pipe`: its number, and 1 where the kernel sent it by itself (a key of the terminal, a
/// hang-up: then the whole foreground group has got it), 0 where a process sent it. What was
/// ignored when this process began stays ignored (nohup(1)).
///
/// # Errors
/// A handler cannot be installed, or the pipe cannot be made not to block.
pub fn tell_signals(signals: &[i32], pipe: &OwnedFd) -> io::Result<()> {
    rustix::io::ioctl_fionbio(pipe, true)?;
    for signal in signals.iter().copied().filter(|s| !crate::process::ignores_signal(*s)) {
        let pipe = pipe.try_clone()?;
        let write = move |info: &libc::siginfo_t| {
            let from_kernel = u8::from(info.si_code > 0);
            let bytes = [signal as u8, from_kernel];
            // SAFETY: the descriptor is open as long as this closure is, and the call reads two
            // bytes that are there. A full pipe is no trouble: signals enough are in it.
            unsafe { libc::write(pipe.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        };
        // SAFETY: what runs in the handler is one write(2), which is async-signal-safe; it
        // allocates nothing, takes no lock and cannot panic; the crate keeps errno.
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
    fn signals_of_processes_are_no_keys() {
        let (mut reader, writer) = io::pipe().unwrap();
        tell_signals(&[libc::SIGWINCH], &writer.into()).unwrap();
        send(std::process::id(), libc::SIGWINCH).unwrap();
        let mut bytes = [9; 2];
        reader.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, [libc::SIGWINCH as u8, 0]);
    }
}
