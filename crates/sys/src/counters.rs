//! Files of counters below `/proc`, kept open and read again from their start: procfs makes its
//! text anew for a read at offset 0, and opening is half of what a reading costs.

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use std::ffi::CStr;
use std::path::Path;

/// The counters of the machine, proc(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// CPU times, switches, tasks that run (proc_stat(5)).
    Stat,
    /// proc_meminfo(5).
    Memory,
    /// proc_vmstat(5).
    Paging,
    /// proc_diskstats(5).
    Disks,
    /// Network interfaces of this network namespace.
    Links,
    /// The protocols of this network namespace.
    Protocols,
    /// Pressure stall information: CPU.
    PressureCpu,
    /// Pressure stall information: I/O.
    PressureIo,
    /// Pressure stall information: memory.
    PressureMemory,
}

impl Machine {
    fn path(self) -> &'static str {
        match self {
            Machine::Stat => "/proc/stat",
            Machine::Memory => "/proc/meminfo",
            Machine::Paging => "/proc/vmstat",
            Machine::Disks => "/proc/diskstats",
            Machine::Links => "/proc/self/net/dev",
            Machine::Protocols => "/proc/self/net/snmp",
            Machine::PressureCpu => "/proc/pressure/cpu",
            Machine::PressureIo => "/proc/pressure/io",
            Machine::PressureMemory => "/proc/pressure/memory",
        }
    }
}

/// One file of counters.
#[derive(Debug)]
pub struct Counters {
    file: OwnedFd,
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);

impl Counters {
    /// Opens counters of the machine; `None` where this kernel or container has none.
    pub fn machine(of: Machine) -> Option<Counters> {
        Counters::open(Path::new(of.path()))
    }

    /// Opens a file of counters wherever it is (a cgroup's).
    pub fn open(path: &Path) -> Option<Counters> {
        Some(Counters { file: rustix::fs::open(path, READ, Mode::empty()).ok()? })
    }

    /// Reads all of it into `buffer`, which grows as needed and is to be kept for the next time.
    /// `None` where it cannot be read: the process has ended, no permission.
    pub fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let mut length = 0;
        loop {
            if buffer.len() < length + 4096 {
                buffer.resize((2 * buffer.len()).max(length + 8192), 0);
            }
            let room = buffer.get_mut(length..)?;
            match rustix::io::pread(&self.file, room, length as u64) {
                Ok(0) => return buffer.get(..length),
                Ok(more) => length += more,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }

    /// As [`Counters::read`] for texts of up to 2 KiB that the kernel makes in one piece, with one
    /// call instead of two.
    pub fn read_short<'a>(&self, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        if buffer.len() < 4096 {
            buffer.resize(4096, 0);
        }
        let length = rustix::io::retry_on_intr(|| rustix::io::pread(&self.file, &mut **buffer, 0));
        buffer.get(..length.ok()?)
    }
}

/// The folder of a process or thread below `/proc`. It goes on meaning that one process: once it
/// has ended, nothing can be read, whoever gets its number.
#[derive(Debug)]
pub struct ProcessDir {
    dir: OwnedFd,
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl ProcessDir {
    /// The folder of a process; `None` where there is none of that number.
    pub fn open(pid: u32) -> Option<ProcessDir> {
        let dir = rustix::fs::open(format!("/proc/{pid}"), FOLDER, Mode::empty()).ok()?;
        Some(ProcessDir { dir })
    }

    /// The folder of this process.
    pub fn own() -> Option<ProcessDir> {
        Some(ProcessDir { dir: rustix::fs::open("/proc/self", FOLDER, Mode::empty()).ok()? })
    }

    /// Opens a file in it: `stat`, `io`, `task/7/schedstat`.
    pub fn open_file(&self, name: &CStr) -> Option<Counters> {
        let file = rustix::fs::openat(&self.dir, name, READ, Mode::empty()).ok()?;
        Some(Counters { file })
    }

    /// Hands over the numbers of all threads.
    pub fn each_thread(&self, mut each: impl FnMut(u32)) -> Option<()> {
        let flags = READ.union(OFlags::DIRECTORY);
        let dir = rustix::fs::openat(&self.dir, c"task", flags, Mode::empty()).ok()?;
        let mut buffer = [std::mem::MaybeUninit::<u8>::uninit(); 2048];
        let mut entries = rustix::fs::RawDir::new(dir, &mut buffer);
        while let Some(entry) = entries.next() {
            if let Some(number) = number(entry.ok()?.file_name()) {
                each(number);
            }
        }
        Some(())
    }
}

fn number(name: &CStr) -> Option<u32> {
    name.to_str().ok()?.parse().ok()
}

/// The numbers of all processes of this pid namespace.
pub fn processes() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    names.collect()
}

/// Processes and threads that were started since the boot, by anybody (`processes` of
/// proc_stat(5)).
pub fn started() -> Option<u64> {
    let mut buffer = Vec::new();
    let file = Counters::machine(Machine::Stat)?;
    let text = std::str::from_utf8(file.read(&mut buffer)?).ok()?;
    text.lines().find_map(|line| line.strip_prefix("processes ")?.trim().parse().ok())
}

/// Ticks a second of the times in `stat` files, sysconf(3).
pub fn ticks_per_s() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// Bytes a page.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Nanoseconds of the monotonic clock.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// What getrusage(2) counts exactly, where `stat` files have ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// CPU time in user space.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Faults that needed no device.
    pub minor_faults: u64,
    /// Faults that did.
    pub major_faults: u64,
    /// Times the CPU was given up.
    pub voluntary_switches: u64,
    /// Times it was taken away.
    pub involuntary_switches: u64,
}

/// What all threads of this process used, those that ended included.
pub fn used() -> Used {
    used_by(libc::RUSAGE_SELF)
}

/// What the children of this process used that have ended and were waited for, and theirs.
pub fn used_by_children() -> Used {
    used_by(libc::RUSAGE_CHILDREN)
}

/// What the calling thread used.
pub fn used_by_thread() -> Used {
    used_by(libc::RUSAGE_THREAD)
}

fn used_by(whom: libc::c_int) -> Used {
    // SAFETY: rusage is plain numbers, for which all zeroes is a value; the call only fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(whom, &mut usage);
        usage
    };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
    Used {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}
