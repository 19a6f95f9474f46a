//! CPU and I/O priority.
//!
//! On Linux both belong to a **thread**, although POSIX defines them for processes (setpriority(2),
//! ioprio_set(2)): these calls change the calling thread, and threads created later inherit the value. So
//! call them before starting threads.

use crate::errno;
use std::io;

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
}
