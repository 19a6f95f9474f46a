//! What the machine and this process (or another one) did up to a moment: counters of the kernel,
//! read cheaply and often; and the rates between two readings. What a kernel, a container or a lack
//! of permission does not show is `None` or empty, never an error.

mod limits;
mod links;
mod parse;
mod process;
mod rates;
mod sampler;
mod tree;

#[cfg(test)]
mod tests;

pub use limits::{IoCeiling, Limits, Served};
pub use rates::{CpuRates, DiskRates, LinkRates, PressureRates, ProcessRates, Rates};
pub use sampler::{Sampler, Watched};

/// Nanoseconds of CPU time by kind, since the boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// User space, niced included.
    pub user_ns: u64,
    /// The kernel, with interrupts.
    pub system_ns: u64,
    /// Nothing to do, but I/O under way.
    pub iowait_ns: u64,
    /// Nothing to do.
    pub idle_ns: u64,
    /// The hypervisor ran somebody else.
    pub steal_ns: u64,
}

/// Microseconds for which some (or all) tasks waited, since the boot (PSI, `total=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PressureTimes {
    /// Some task waited for a CPU.
    pub cpu_some_us: Option<u64>,
    /// Some task waited for I/O.
    pub io_some_us: Option<u64>,
    /// All tasks did.
    pub io_full_us: Option<u64>,
    /// Some task waited for memory.
    pub memory_some_us: Option<u64>,
}

/// Memory now, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All of it.
    pub total_bytes: u64,
    /// Unused.
    pub free_bytes: u64,
    /// What programs could have without swapping.
    pub available_bytes: u64,
    /// Block buffers.
    pub buffers_bytes: u64,
    /// Page cache with reclaimable slab.
    pub cached_bytes: u64,
    /// Written by programs, not by the kernel yet.
    pub dirty_bytes: u64,
    /// Being written.
    pub writeback_bytes: u64,
    /// Swap in use.
    pub swap_used_bytes: u64,
    /// Dirty bytes at which the kernel makes writers wait (`nr_dirty_threshold`).
    pub dirty_threshold_bytes: Option<u64>,
}

/// A disk since the boot; in flight, now (/proc/diskstats).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// As the kernel calls it.
    pub name: String,
    /// Its number.
    pub dev: (u32, u32),
    /// Reads finished.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Milliseconds all reads took together.
    pub read_ms: u64,
    /// Writes finished.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Milliseconds all writes took together.
    pub write_ms: u64,
    /// Requests in flight now.
    pub in_flight: u64,
    /// Milliseconds with a request in flight.
    pub busy_ms: u64,
    /// Milliseconds weighted by requests in flight.
    pub queue_ms: u64,
    /// It passes its I/O on to other disks, where it is counted again (dm, md, a loop device over
    /// a file on a disk): to be left out of sums.
    pub stacked: bool,
}

/// A network interface since it came up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// `eth0`, `lo`.
    pub name: String,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets that were dropped either way.
    pub drops: u64,
    /// What it can carry, bits a second.
    pub bits_per_s: Option<u64>,
}

/// TCP of the machine since the boot (/proc/net/snmp).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Segments sent.
    pub segments_out: u64,
    /// Of these, again.
    pub retransmits: u64,
}

/// One thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// CPU time so far.
    pub ran_ns: u64,
    /// Time in which it could have run and had no CPU (schedstat).
    pub waited_ns: u64,
}

/// A process, or several as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// CPU time in user space.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Its threads, where they were asked for.
    pub threads: Vec<Thread>,
    /// Living processes that these are.
    pub processes: u32,
    /// Living threads of theirs.
    pub thread_count: u32,
    /// Resident memory now; pages that several processes share count for each.
    pub rss_bytes: u64,
    /// Bytes that came from a device (/proc/PID/io); `None` where a process does not let us see.
    pub device_read_bytes: Option<u64>,
    /// Bytes that were made dirty, to reach a device sooner or later.
    pub device_write_bytes: Option<u64>,
    /// Faults that needed a device.
    pub major_faults: u64,
    /// Faults that did not.
    pub minor_faults: u64,
    /// Times it gave up the CPU by itself.
    pub voluntary_switches: u64,
    /// Times it was taken away.
    pub involuntary_switches: u64,
}

/// One reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// When, in nanoseconds of the monotonic clock since the sampler began.
    pub at_ns: u64,
    /// By CPU, with its number.
    pub cpus: Vec<(u32, CpuTimes)>,
    /// Tasks that run or could.
    pub running: u32,
    /// Tasks that wait for I/O.
    pub blocked: u32,
    /// Context switches since the boot.
    pub switches: u64,
    /// Interrupts since the boot.
    pub interrupts: u64,
    /// Pages swapped in and out since the boot, in bytes.
    pub swapped_bytes: (u64, u64),
    /// Bytes that block devices were asked to read and write since the boot (vmstat's bi and bo).
    pub paged_bytes: (u64, u64),
    /// Waiting.
    pub pressure: PressureTimes,
    /// Memory.
    pub memory: Memory,
    /// Whole disks that ever did something.
    pub disks: Vec<Disk>,
    /// Interfaces that are up.
    pub links: Vec<Link>,
    /// TCP.
    pub tcp: Option<Tcp>,
    /// The watched process.
    pub process: Process,
    /// Periods of the cgroup's CPU quota, and those that were throttled.
    pub quota_periods: Option<(u64, u64)>,
}

/// Whether a function of the kernel, as [`hakobu_sys::task::waiting_in`] names it, is one where a
/// thread waits for a directory's lock: that of the lock (older kernels), or that which takes it
/// for create, mkdir, link, rename, unlink or lookup. What the compiler put into its caller has
/// the caller's name; a suffix (`.isra.0`) is its doing too.
pub fn is_directory_lock(function: &str) -> bool {
    const PLACES: [&str; 16] = [
        "path_openat",
        "open_last_lookups",
        "filename_create",
        "filename_unlinkat",
        "filename_rmdir",
        "do_unlinkat",
        "do_rmdir",
        "do_mkdirat",
        "do_mknodat",
        "do_linkat",
        "do_symlinkat",
        "do_renameat2",
        "lock_rename",
        "lock_two_directories",
        "lookup_slow",
        "__lookup_slow",
    ];
    let name = function.split('.').next().unwrap_or_default();
    name.contains("rwsem_down_") || PLACES.contains(&name)
}
