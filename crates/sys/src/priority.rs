//! How much the scheduler and the block layer prefer us to others.
//!
//! On Linux both priorities belong to a **thread**, although POSIX gives them to processes
//! (setpriority(2), ioprio_set(2)): these calls change the calling thread, and threads that it
//! starts later inherit what it has then. So call them before any thread is started.

use std::io;

/// Classes of I/O priority, ioprio_set(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoClass {
    /// None set: best-effort, with a level that follows from the niceness.
    None,
    /// Served first, whatever others wait for; needs CAP_SYS_ADMIN or CAP_SYS_NICE.
    Realtime,
    /// What everybody has.
    BestEffort,
    /// Served when nobody else has asked for a while.
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

/// Sets the niceness of this thread: −20 (runs first) to 19 (runs last), others are clamped.
///
/// # Errors
/// EACCES where it is lowered without CAP_SYS_NICE or RLIMIT_NICE.
pub fn set_nice(value: i32) -> io::Result<()> {
    // No process stands for the caller, which the kernel takes for the calling thread.
    Ok(rustix::process::setpriority_process(None, value)?)
}

/// Sets the I/O priority of this thread: a class, and in the classes realtime and best-effort a
/// level from 0 (first) to 7 (last), which must be 0 in class none. Only some schedulers of block
/// devices heed it (bfq and mq-deadline, not kyber or none).
///
/// # Errors
/// EPERM for realtime (and on old kernels idle) without privilege, EINVAL for a level that the
/// class does not have, ENOSYS where the kernel was built without it.
pub fn set_io_priority(class: IoClass, level: u8) -> io::Result<()> {
    /// IOPRIO_WHO_PROCESS of linux/ioprio.h.
    const WHO_PROCESS: i32 = 1;
    /// IOPRIO_CLASS_SHIFT.
    const CLASS_SHIFT: i32 = 13;
    let priority = class.number() << CLASS_SHIFT | i32::from(level);
    // SAFETY: the call takes three numbers and no pointers; 0 is the calling thread.
    let done = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, priority) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes this thread a batch job (SCHED_BATCH, sched(7)): when it wakes up, it does not take the CPU
/// away from who has it, but waits for its turn. Its share stays the same.
///
/// # Errors
/// EPERM where the process may not choose (a real-time or idle policy, or seccomp).
pub fn set_batch() -> io::Result<()> {
    // SAFETY: sched_param is plain numbers, for which all zeroes is a value; the call only reads it
    // and 0 is the calling thread.
    let done = unsafe {
        let parameters: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &parameters)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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

    /// In a thread of its own, as the other tests shall keep their priorities.
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
                    // A sandbox without the call.
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
