//! This process: limits, user, umask.

use std::sync::LazyLock;

/// Sets the file mode mask and returns the old one, umask(2).
pub fn set_umask(mask: u32) -> u32 {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask)).as_raw_mode()
}

/// The effective user. Asked for once, as this process never changes it: some steps depend on it for each
/// file.
pub fn euid() -> u32 {
    static EUID: LazyLock<u32> = LazyLock::new(|| rustix::process::geteuid().as_raw());
    *EUID
}

/// The effective group.
pub fn egid() -> u32 {
    rustix::process::getegid().as_raw()
}

/// True if `gid` is the effective or a supplementary group. They are asked for once, as for [`euid`].
pub fn in_group(gid: u32) -> bool {
    static GROUPS: LazyLock<Vec<u32>> = LazyLock::new(|| {
        let others = rustix::process::getgroups().unwrap_or_default();
        others.into_iter().map(|group| group.as_raw()).chain([egid()]).collect()
    });
    GROUPS.contains(&gid)
}

/// Raises the soft limit of open files to the hard one and returns it.
pub fn raise_open_files_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum.unwrap_or(1 << 20),
        Err(_) => limit.current.unwrap_or(1024),
    }
}

/// Enlarges the kernel's table of descriptors for `count` of them. Growing it later, with threads running,
/// waits for an RCU grace period of milliseconds each time.
pub fn reserve_descriptors(count: u64) {
    let floor = count.clamp(64, 1 << 16) as i32 - 1;
    if let Ok(fd) = rustix::io::fcntl_dupfd_cloexec(rustix::fs::CWD, floor) {
        drop(fd);
        return;
    }
    if let Ok(root) = crate::dir::open_root(c"/") {
        drop(rustix::io::fcntl_dupfd_cloexec(&root, floor));
    }
}

/// Number of CPUs that this process may use (its affinity and its cgroup's quota).
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// True if this process was started with `signal` ignored (as nohup(1) does with SIGHUP).
pub fn ignores_signal(signal: i32) -> bool {
    // SAFETY: sigaction is plain data, so all zeros is valid; without a new action the call only fills in the
    // old one.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut old) == 0
            && old.sa_sigaction == libc::SIG_IGN
    }
}

/// Makes the ends of children visible to this process. Whoever started it may have ignored SIGCHLD, which execve(2)
/// keeps: the kernel then forgets a child at once, and no wait for it succeeds.
pub fn see_children() {
    // SAFETY: the default action runs no code of this process.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// True if a process with this id exists in our pid namespace.
pub fn is_alive(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    // EPERM: it exists and belongs to another user.
    !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

/// Start time of a process in clock ticks since boot (field 22 of /proc/PID/stat): distinguishes it from a
/// later one with the same id.
pub fn start_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the command in parentheses and may contain any character.
    let rest = &stat[stat.rfind(')')? + 1..];
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}
