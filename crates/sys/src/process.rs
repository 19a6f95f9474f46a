//! This process: limits with their headroom, users, umask, CPU and I/O priority.

use crate::proc::kib_field;
use crate::{cgroup, errno};
use rustix::process::{Resource, getrlimit};
use std::ffi::{CStr, CString};
use std::io;
use std::path::Path;
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

fn with_buffer<T>(
    mut call: impl FnMut(&mut [libc::c_char]) -> Result<Option<T>, i32>,
) -> Option<T> {
    let mut len = 1024;
    loop {
        let mut buffer = vec![0; len];
        match call(&mut buffer) {
            Ok(found) => return found,
            Err(libc::ERANGE) if len < 1 << 20 => len *= 4,
            Err(_) => return None,
        }
    }
}

macro_rules! lookup {
    ($call:path, $key:expr, $record:ty, $take:expr) => {
        with_buffer(|buffer| {
            let mut found = std::ptr::null_mut();
            let mut record = std::mem::MaybeUninit::<$record>::uninit();
            // SAFETY: all pointers are to live memory of the stated length; the record is read only if the
            // call has filled it in.
            unsafe {
                match $call(
                    $key,
                    record.as_mut_ptr(),
                    buffer.as_mut_ptr(),
                    buffer.len(),
                    &mut found,
                ) {
                    0 if found.is_null() => Ok(None),
                    0 => Ok(Some($take(&*found))),
                    code => Err(code),
                }
            }
        })
    };
}

fn owned(text: *const libc::c_char) -> String {
    // SAFETY: the record that holds `text` was just filled and NUL-terminates its strings.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Id of a user.
pub fn uid_of(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    lookup!(libc::getpwnam_r, name.as_ptr(), libc::passwd, |r: &libc::passwd| r.pw_uid)
}

/// Id of a group.
pub fn gid_of(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    lookup!(libc::getgrnam_r, name.as_ptr(), libc::group, |r: &libc::group| r.gr_gid)
}

pub fn user_name(uid: u32) -> Option<String> {
    lookup!(libc::getpwuid_r, uid, libc::passwd, |r: &libc::passwd| { owned(r.pw_name) })
}

pub fn group_name(gid: u32) -> Option<String> {
    lookup!(libc::getgrgid_r, gid, libc::group, |r: &libc::group| owned(r.gr_name))
}

/// IOPRIO_WHO_PROCESS of linux/ioprio.h.
const WHO_PROCESS: i32 = 1;

/// Classes of I/O priority, ioprio_set(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoClass {
    /// Unset: best-effort, with a level derived from the niceness.
    None,
    /// Served first; requires CAP_SYS_ADMIN or CAP_SYS_NICE.
    Realtime,
    /// The default.
    BestEffort,
    /// Served when the disk has been idle for a while.
    Idle,
}

impl IoClass {
    /// IOPRIO_CLASS_… of linux/ioprio.h.
    fn number(self) -> i32 {
        match self {
            IoClass::None => 0,
            IoClass::Realtime => 1,
            IoClass::BestEffort => 2,
            IoClass::Idle => 3,
        }
    }
}

/// Sets the niceness of this thread, −20 (highest priority) to 19 (lowest), clamped.
///
/// # Errors
/// EACCES if it is lowered without CAP_SYS_NICE or RLIMIT_NICE.
pub fn set_nice(value: i32) -> io::Result<()> {
    // `None` addresses the calling thread.
    Ok(rustix::process::setpriority_process(None, value)?)
}

/// Niceness of this thread.
///
/// # Errors
/// Those of getpriority(2).
pub fn nice() -> io::Result<i32> {
    Ok(rustix::process::getpriority_process(None)?)
}

/// I/O priority of this thread as returned by ioprio_get(2): class and level in one number.
///
/// # Errors
/// ENOSYS without kernel support.
pub fn io_priority() -> io::Result<i32> {
    // SAFETY: the call takes integers and no pointers; 0 is the calling thread.
    let priority = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) };
    if priority >= 0 { Ok(priority as i32) } else { Err(io::Error::last_os_error()) }
}

/// Sets the I/O priority of this thread: a class, and for realtime and best-effort a level from 0 (highest)
/// to 7 (lowest), which must be 0 for class none. Only some schedulers use it (bfq and mq-deadline, not kyber
/// or none).
///
/// # Errors
/// EPERM for realtime (and on old kernels idle) without privilege, EINVAL for an invalid level, ENOSYS
/// without kernel support.
pub fn set_io_priority(class: IoClass, level: u8) -> io::Result<()> {
    /// IOPRIO_CLASS_SHIFT.
    const CLASS_SHIFT: i32 = 13;
    let priority = class.number() << CLASS_SHIFT | i32::from(level);
    // SAFETY: the call takes integers and no pointers; 0 is the calling thread.
    errno::check(unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, priority) })
}

/// Sets the scheduling policy SCHED_BATCH (sched(7)): a thread that wakes up does not preempt others. Its
/// share of the CPU stays the same.
///
/// # Errors
/// EPERM if the process may not change its policy (real-time, idle, or seccomp).
pub fn set_batch() -> io::Result<()> {
    // SAFETY: sched_param consists of integers, so all zeros is valid; the call only reads it, and 0 is the
    // calling thread.
    errno::check(unsafe {
        let parameters: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &parameters)
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedResource {
    /// Threads and processes.
    Threads,
    /// Bytes of memory.
    Memory,
    /// Bytes of address space.
    Addresses,
    /// Mappings of memory.
    Mappings,
    /// Open files.
    Files,
}

/// A limit with its headroom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headroom {
    pub of: LimitedResource,
    /// Its name: `kernel.threads-max`, `RLIMIT_NPROC`.
    pub name: &'static str,
    /// Remaining amount.
    pub left: u64,
}

/// All readable limits. Others show as errors of later calls.
pub fn headroom() -> Vec<Headroom> {
    let mut rooms = Vec::new();
    let mut add =
        |of, name, left: Option<u64>| rooms.extend(left.map(|left| Headroom { of, name, left }));
    let tasks = tasks().unwrap_or(0);
    for (name, path) in [
        ("kernel.threads-max", "/proc/sys/kernel/threads-max"),
        ("kernel.pid_max", "/proc/sys/kernel/pid_max"),
    ] {
        add(LimitedResource::Threads, name, number(path).map(|most| most.saturating_sub(tasks)));
    }
    // The limit does not apply to root.
    if euid() != 0 {
        add(LimitedResource::Threads, "RLIMIT_NPROC", limit(Resource::Nproc));
    }
    add(LimitedResource::Files, "RLIMIT_NOFILE", Some(raise_open_files_limit()));
    let maps = std::fs::read("/proc/self/maps").ok();
    let maps = maps.map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count() as u64);
    let most = number("/proc/sys/vm/max_map_count");
    add(LimitedResource::Mappings, "vm.max_map_count", most.map(|most| most.saturating_sub(maps)));
    let used = kib_field("/proc/self/status", "VmSize:").unwrap_or(0);
    let addresses = limit(Resource::As).map(|most| most.saturating_sub(used));
    add(LimitedResource::Addresses, "RLIMIT_AS", addresses);
    let available = kib_field("/proc/meminfo", "MemAvailable:");
    let swap = kib_field("/proc/meminfo", "SwapFree:").unwrap_or(0);
    add(LimitedResource::Memory, "MemAvailable", available.map(|bytes| bytes.saturating_add(swap)));
    for hierarchy in cgroup::hierarchies() {
        let unified = hierarchy.controllers.is_none();
        for group in hierarchy.upwards() {
            if unified || hierarchy.controls("pids") {
                let used = of_group(group, "pids.current").unwrap_or(0);
                let most = of_group(group, "pids.max");
                add(
                    LimitedResource::Threads,
                    "pids.max",
                    most.map(|most| most.saturating_sub(used)),
                );
            }
            if unified {
                add(LimitedResource::Memory, "memory.max", of_group(group, "memory.max"));
            } else if hierarchy.controls("memory") {
                add(
                    LimitedResource::Memory,
                    "memory.limit_in_bytes",
                    of_group(group, "memory.limit_in_bytes"),
                );
            }
        }
    }
    rooms
}

/// Soft limit; `None` if unlimited.
fn limit(resource: Resource) -> Option<u64> {
    getrlimit(resource).current
}

/// Threads and processes of the machine: fourth field of /proc/loadavg.
fn tasks() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

fn number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Number in a file of a group; `None` for "max".
fn of_group(group: &Path, file: &str) -> Option<u64> {
    number(group.join(file).to_str()?)
}

/// Memory of the machine, bytes.
pub fn memory_bytes() -> Option<u64> {
    kib_field("/proc/meminfo", "MemTotal:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_job_is_one_of_its_thread_only() {
        // SAFETY: the call takes a number and no pointers.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        aside(|| {
            assert_eq!(policy(), libc::SCHED_OTHER);
            set_batch().unwrap();
            assert_eq!(policy(), libc::SCHED_BATCH);
        });
        assert_eq!(policy(), libc::SCHED_OTHER);
    }

    fn io_priority() -> i64 {
        // SAFETY: the call takes two numbers and no pointers.
        unsafe { libc::syscall(libc::SYS_ioprio_get, 1, 0) }
    }

    /// Runs a test in its own thread, so that others keep their priorities.
    fn aside(test: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(test).join()).unwrap();
    }

    #[test]
    fn niceness_is_of_the_thread_and_inherited() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        aside(|| {
            let lower = (before + 3).min(19);
            set_nice(lower).unwrap();
            assert_eq!(nice(), lower);
            aside(|| assert_eq!(nice(), lower));
            set_nice(100).unwrap();
            assert_eq!(nice(), 19);
        });
        assert_eq!(nice(), before);
    }

    #[test]
    fn io_priority_is_of_the_thread_and_inherited() {
        let before = io_priority();
        aside(|| {
            for (class, level, is) in
                [(IoClass::BestEffort, 7, 2 << 13 | 7), (IoClass::Idle, 0, 3 << 13)]
            {
                match set_io_priority(class, level) {
                    // A sandbox blocks the call.
                    Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => return,
                    other => other.unwrap(),
                }
                assert_eq!(io_priority(), is);
                aside(|| assert_eq!(io_priority(), is));
            }
            assert!(set_io_priority(IoClass::None, 5).is_err());
        });
        assert_eq!(io_priority(), before);
    }

    #[test]
    fn limits_of_this_machine() {
        let rooms = headroom();
        for (of, least) in [
            (LimitedResource::Threads, 10),
            (LimitedResource::Memory, 1 << 20),
            (LimitedResource::Mappings, 100),
        ] {
            let of_kind: Vec<&Headroom> = rooms.iter().filter(|room| room.of == of).collect();
            assert!(
                !of_kind.is_empty() && of_kind.iter().all(|room| room.left > least),
                "{rooms:?}"
            );
        }
        assert_eq!(number("/no/such"), None);
        assert!(tasks().unwrap() > 1);
    }
}
