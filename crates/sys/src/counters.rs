//! Counter files below `/proc`, kept open and read again from their start: procfs regenerates the text at
//! offset 0, and opening is half of the cost of reading.

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use std::ffi::CStr;
use std::path::Path;

/// Counters of the machine, proc(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// CPU times, context switches, runnable tasks (proc_stat(5)).
    Stat,
    /// proc_meminfo(5).
    Memory,
    /// proc_vmstat(5).
    Paging,
    /// proc_diskstats(5).
    Disks,
    /// Network interfaces of this network namespace.
    Links,
    /// Protocol counters of this network namespace.
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

/// An open counter file.
#[derive(Debug)]
pub struct Counters {
    file: OwnedFd,
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);

impl Counters {
    /// Opens counters of the machine; `None` if this kernel or container does not provide them.
    pub fn machine(of: Machine) -> Option<Counters> {
        Counters::open(Path::new(of.path()))
    }

    /// Opens a counter file at any path (a cgroup's).
    pub fn open(path: &Path) -> Option<Counters> {
        Some(Counters { file: rustix::fs::open(path, READ, Mode::empty()).ok()? })
    }

    /// Reads the whole file into `buffer`, which grows as needed and should be reused. `None` if it cannot be
    /// read: the process has ended, or permission is denied.
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

    /// As [`Counters::read`], for texts of up to 2 KiB that the kernel returns in one piece: one call instead
    /// of two.
    pub fn read_short<'a>(&self, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        if buffer.len() < 4096 {
            buffer.resize(4096, 0);
        }
        let length = rustix::io::retry_on_intr(|| rustix::io::pread(&self.file, &mut **buffer, 0));
        buffer.get(..length.ok()?)
    }
}

/// Folder of a process or thread below `/proc`. It refers to the same process for ever: after its end nothing
/// can be read, even if its id is reused.
#[derive(Debug)]
pub struct ProcessDir {
    dir: OwnedFd,
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl ProcessDir {
    /// Opens the folder of a process; `None` if it does not exist.
    pub fn open(pid: u32) -> Option<ProcessDir> {
        let dir = rustix::fs::open(format!("/proc/{pid}"), FOLDER, Mode::empty()).ok()?;
        Some(ProcessDir { dir })
    }

    /// Opens the folder of this process.
    pub fn own() -> Option<ProcessDir> {
        Some(ProcessDir { dir: rustix::fs::open("/proc/self", FOLDER, Mode::empty()).ok()? })
    }

    /// Opens a file in it: `stat`, `io`, `task/7/schedstat`.
    pub fn open_file(&self, name: &CStr) -> Option<Counters> {
        let file = rustix::fs::openat(&self.dir, name, READ, Mode::empty()).ok()?;
        Some(Counters { file })
    }

    /// Calls `each` with the ids of all threads.
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

/// Ids of all processes in this pid namespace.
pub fn processes() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    names.collect()
}

/// Number of processes and threads started since boot, by all users (`processes` of proc_stat(5)).
pub fn started() -> Option<u64> {
    let mut buffer = Vec::new();
    let file = Counters::machine(Machine::Stat)?;
    let text = std::str::from_utf8(file.read(&mut buffer)?).ok()?;
    text.lines().find_map(|line| line.strip_prefix("processes ")?.trim().parse().ok())
}

/// Ticks per second of the times in `stat` files, sysconf(3).
pub fn ticks_per_s() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// Bytes per page.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Monotonic clock, nanoseconds.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Bytes in a line of a file below /proc whose unit is kB: `VmHWM:`, `MemTotal:`.
pub(crate) fn kib_field(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}
