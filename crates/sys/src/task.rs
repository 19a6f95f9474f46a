//! Threads: affinity, state, and the kernel function in which they wait.

use rustix::process::Pid;
use rustix::thread::CpuSet;
use std::io::Result;

fn pid(tid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(tid).ok()?)
}

/// CPUs that a thread may use, sched_getaffinity(2); 0 is the calling thread.
///
/// # Errors
/// ESRCH if the thread does not exist; EINVAL if the kernel supports more than 1024 CPUs.
pub fn affinity(tid: u32) -> Result<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(pid(tid))?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}

/// Restricts a thread to these CPUs, sched_setaffinity(2); 0 is the calling thread. Threads that it creates
/// later inherit the setting.
///
/// # Errors
/// EINVAL if the cpuset allows none of them; EPERM for another user's thread.
pub fn set_affinity(tid: u32, cpus: &[u32]) -> Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if (*cpu as usize) < CpuSet::MAX_CPU {
            set.set(*cpu as usize);
        }
    }
    Ok(rustix::thread::sched_setaffinity(pid(tid), &set)?)
}

/// Ids of the threads of this process.
pub fn own_threads() -> Vec<u32> {
    let mut tids = Vec::new();
    if let Some(own) = crate::counters::ProcessDir::own() {
        let _ = own.each_thread(|tid| tids.push(tid));
    }
    tids
}

/// Id of the calling thread.
pub fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// State of a thread of this process: `R` runnable, `S` sleeping, `D` in an uninterruptible wait (a disk, a
/// kernel lock); `None` if it has ended.
pub fn state(tid: u32) -> Option<char> {
    let stat = std::fs::read(format!("/proc/self/task/{tid}/stat")).ok()?;
    // The name, in parentheses, may contain any character.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2).map(|byte| *byte as char)
}

/// Kernel function in which a thread of this process waits (`wchan`, proc_pid_wchan(5)); `None` if it does
/// not wait, or without permission. Newer kernels skip the lock functions themselves: a thread waiting for a
/// directory's lock is in `path_openat` (create) or `do_unlinkat`, with state `D`.
pub fn waiting_in(tid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/self/task/{tid}/wchan")).ok()?;
    let name = name.trim();
    (!name.is_empty() && name != "0").then(|| name.to_owned())
}

/// Whether a sleeping thread of any process waits for nothing but a time: in a sleep function, or in select(2) or
/// poll(2) without a descriptor. False as well without permission.
pub fn is_asleep_for_a_time(pid: u32, tid: u32) -> bool {
    let read = |name| std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/{name}")).ok();
    let Some(function) = read("wchan") else { return false };
    if function.contains("nanosleep") {
        return true;
    }
    let polls = ["poll", "select"].iter().any(|name| function.contains(name));
    polls && read("syscall").is_some_and(|call| waits_for_no_descriptor(&call))
}

/// Whether `/proc/PID/syscall` (number and arguments, proc(5)) shows a select(2) or poll(2) of no descriptors.
fn waits_for_no_descriptor(call: &str) -> bool {
    let mut words = call.split_ascii_whitespace();
    let number = words.next().and_then(|word| word.parse::<libc::c_long>().ok());
    let none = |word: Option<&str>| word == Some("0x0");
    match number {
        #[cfg(target_arch = "x86_64")]
        Some(libc::SYS_select) => none(words.next()),
        #[cfg(target_arch = "x86_64")]
        Some(libc::SYS_poll) => none(words.nth(1)),
        Some(libc::SYS_pselect6) => none(words.next()),
        Some(libc::SYS_ppoll) => none(words.nth(1)),
        _ => false,
    }
}

/// Makes this process the parent of orphaned descendants (PR_SET_CHILD_SUBREAPER, prctl(2)), so that a daemon
/// of a watched command stays in its tree.
pub fn adopt_orphans() -> Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_can_be_looked_at_and_bound() {
        let (tell, told) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(own_thread()).unwrap();
            let _ = stopped.recv();
            affinity(0).unwrap()
        });
        let tid = told.recv().unwrap();
        assert!(own_threads().contains(&tid));
        let all = affinity(tid).unwrap();
        let last = *all.last().unwrap();
        set_affinity(tid, &[last]).unwrap();
        assert_eq!(affinity(tid).unwrap(), [last]);
        // It sleeps until told to stop.
        let sleeping = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            state(tid) == Some('S')
        });
        assert!(sleeping, "{:?}", state(tid));
        if let Some(place) = waiting_in(tid) {
            assert!(place.contains("futex"), "{place}");
        }
        drop(stop);
        assert_eq!(thread.join().unwrap(), [last]);
        assert_eq!(state(u32::MAX), None);
        assert_eq!(waiting_in(u32::MAX), None);
        assert!(set_affinity(0, &[]).is_err());
        assert!(affinity(u32::MAX >> 1).is_err());
    }

    #[test]
    fn sleep_for_a_time_is_told_from_waiting() {
        let asleep = |program: &str, words: &[&str]| {
            let stdin = std::process::Stdio::piped();
            let child = std::process::Command::new(program).args(words).stdin(stdin).spawn();
            let mut child = child.unwrap();
            let seen = (0..200).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                is_asleep_for_a_time(child.id(), child.id())
            });
            child.kill().unwrap();
            child.wait().unwrap();
            seen
        };
        let own = std::fs::read_to_string("/proc/self/task/self/wchan");
        // Without permission nothing is seen: then there is nothing to compare.
        if own.is_ok() || std::path::Path::new("/proc/self/wchan").exists() {
            assert!(asleep("sleep", &["5"]));
            assert!(!asleep("cat", &[]));
        }
        assert!(waits_for_no_descriptor(&format!("{} 0x0 0x0 0x0", libc::SYS_pselect6)));
        assert!(!waits_for_no_descriptor(&format!("{} 0x4 0x0 0x0", libc::SYS_pselect6)));
        assert!(waits_for_no_descriptor(&format!("{} 0x7f00 0x0 0x0", libc::SYS_ppoll)));
        assert!(!waits_for_no_descriptor(&format!("{} 0x0 0x2 0x0", libc::SYS_ppoll)));
        assert!(!waits_for_no_descriptor("running"));
    }

    #[test]
    fn the_calling_thread_runs() {
        assert_eq!(state(own_thread()), Some('R'));
    }
}
