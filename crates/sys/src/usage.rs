//! Resource usage of processes and threads: getrusage(2), wait4(2).

use std::time::Duration;

/// Inaccuracy of the kernel's counter of resident memory.
const RSS_SLACK_BYTES: u64 = 256 * 1024;

/// Resource usage of a thread, of a process, or of a child and all its waited-for descendants.
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
    /// Usage of all threads of this process so far, including ended ones.
    pub fn of_process() -> Used {
        Used::of(libc::RUSAGE_SELF)
    }

    /// As [`Used::of_process`], with the peak memory of this program alone: that of getrusage(2) survives exec(2), and a
    /// large parent would inflate it.
    pub fn of_program() -> Used {
        let used = Used::of_process();
        let peak = crate::counters::kib_field("/proc/self/status", "VmHWM:");
        Used { rss_bytes_max: peak.unwrap_or(used.rss_bytes_max), ..used }
    }

    /// Usage of the waited-for children of this process and their descendants so far.
    pub fn of_children() -> Used {
        Used::of(libc::RUSAGE_CHILDREN)
    }

    /// Usage of the calling thread so far.
    pub fn of_thread() -> Used {
        Used::of(libc::RUSAGE_THREAD)
    }

    fn of(whom: libc::c_int) -> Used {
        // SAFETY: rusage consists of integers, so all zeros is valid; the call only fills it in.
        Used::from(&unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(whom, &mut usage);
            usage
        })
    }

    /// CPU time in user space and the kernel.
    pub fn cpu(&self) -> Duration {
        self.user + self.sys
    }

    /// Usage since an earlier reading, taken before the process became the command.
    pub fn since(self, before: &Used) -> Used {
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

impl From<&libc::rusage> for Used {
    fn from(usage: &libc::rusage) -> Used {
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
}
