//! Child processes: end, resource usage, and signals.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// Inaccuracy of the kernel's counter of resident memory.
const RSS_SLACK_BYTES: u64 = 256 * 1024;

/// Resource usage of a process and all its waited-for descendants, wait4(2) and getrusage(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// CPU time in user space.
    pub user: Duration,
    /// CPU time in the kernel.
    pub sys: Duration,
    /// Peak resident memory of the largest of these processes, bytes. It survives exec(2), so it is at least
    /// that of the process before it became the command.
    pub rss_bytes_max: u64,
    /// True if it equals the value before exec(2) and is an upper bound only.
    pub rss_is_bound: bool,
    /// Minor page faults.
    pub minor_faults: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Bytes read from devices (in units of 512).
    pub device_read_bytes: u64,
    /// Bytes made dirty, to be written to devices (in units of 512).
    pub device_write_bytes: u64,
}

impl Used {
    pub(crate) fn from_usage(usage: &libc::rusage) -> Used {
        let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
        Used {
            user: time(usage.ru_utime),
            sys: time(usage.ru_stime),
            rss_bytes_max: usage.ru_maxrss as u64 * 1024,
            rss_is_bound: false,
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
            device_read_bytes: usage.ru_inblock as u64 * 512,
            device_write_bytes: usage.ru_oublock as u64 * 512,
        }
    }

    /// Usage since an earlier reading, taken before the process became the command.
    pub(crate) fn since(self, before: &Used) -> Used {
        Used {
            user: self.user.saturating_sub(before.user),
            sys: self.sys.saturating_sub(before.sys),
            rss_bytes_max: self.rss_bytes_max,
            rss_is_bound: self.rss_bytes_max <= before.rss_bytes_max + RSS_SLACK_BYTES,
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            voluntary_switches: self.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(before.involuntary_switches),
            device_read_bytes: self.device_read_bytes.saturating_sub(before.device_read_bytes),
            device_write_bytes: self.device_write_bytes.saturating_sub(before.device_write_bytes),
        }
    }
}

/// End of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Exited with a code.
    Exited(i32),
    /// Killed by a signal.
    Killed(i32),
}

/// Waits until a child has ended, without reaping it: until [`collect`] its process id is not reused.
///
/// # Errors
/// It is not a child of this process.
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
    let used = Used::from_usage(&usage);
    Ok((end, used))
}

/// Sends a signal to a process, kill(2).
///
/// # Errors
/// The process does not exist or belongs to another user; invalid signal.
pub fn send(pid: u32, signal: i32) -> io::Result<()> {
    let pid = number(pid)?.as_raw_nonzero().get();
    // SAFETY: the call takes two integers and no pointers.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
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
    match unsafe { libc::kill(-group, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
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
    fn signals_of_processes_are_no_keys() {
        let (mut reader, writer) = io::pipe().unwrap();
        tell_signals(&[libc::SIGWINCH], &writer.into()).unwrap();
        send(std::process::id(), libc::SIGWINCH).unwrap();
        let mut bytes = [9; 2];
        reader.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, [libc::SIGWINCH as u8, 0]);
    }
}
