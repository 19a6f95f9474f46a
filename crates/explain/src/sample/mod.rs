//! Samples of kernel counters of the machine and this process (or another one), cheap enough to read often;
//! and rates between two samples. Values that a kernel, a container or missing permission hides are `None` or
//! empty, never an error.

mod idle;
mod limits;
mod links;
mod parse;
mod process;
mod rates;
mod sampler;
mod tree;

#[cfg(test)]
mod tests;

pub use idle::IdleTime;
pub use limits::{IoCeiling, Limits, Served, usable_cpus};
pub use rates::{CpuRates, DiskRates, LinkRates, PressureRates, ProcessRates, Rates};
pub use sampler::{Sampler, Watched};

/// CPU time by kind since boot, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// User space, including niced.
    pub user_ns: u64,
    /// Kernel, including interrupts.
    pub system_ns: u64,
    /// Idle with I/O in flight.
    pub iowait_ns: u64,
    /// Idle.
    pub idle_ns: u64,
    /// The hypervisor ran another guest.
    pub steal_ns: u64,
}

/// Microseconds for which some (or all) tasks waited, since boot (PSI, `total=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PressureTimes {
    /// Some task waited for a CPU.
    pub cpu_some_us: Option<u64>,
    /// Some task waited for I/O.
    pub io_some_us: Option<u64>,
    /// All tasks waited for I/O.
    pub io_full_us: Option<u64>,
    /// Some task waited for memory.
    pub memory_some_us: Option<u64>,
}

/// Current memory use, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Total.
    pub total_bytes: u64,
    /// Unused.
    pub free_bytes: u64,
    /// Memory available to programs without swapping.
    pub available_bytes: u64,
    /// Block buffers.
    pub buffers_bytes: u64,
    /// Page cache with reclaimable slab.
    pub cached_bytes: u64,
    /// Dirty pages.
    pub dirty_bytes: u64,
    /// Pages under writeback.
    pub writeback_bytes: u64,
    /// Swap in use.
    pub swap_used_bytes: u64,
    /// Dirty bytes at which the kernel throttles writers (`nr_dirty_threshold`).
    pub dirty_threshold_bytes: Option<u64>,
}

/// Counters of a disk since boot (/proc/diskstats).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Kernel name.
    pub name: String,
    /// Device number.
    pub dev: (u32, u32),
    /// Completed reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Total latency of reads, milliseconds.
    pub read_ms: u64,
    /// Completed writes.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Total latency of writes, milliseconds.
    pub write_ms: u64,
    /// Requests in flight now.
    pub in_flight: u64,
    /// Milliseconds with a request in flight.
    pub busy_ms: u64,
    /// Milliseconds weighted by requests in flight.
    pub queue_ms: u64,
    /// True if it passes its I/O on to other disks that count it again (dm, md, a loop device over a file on
    /// a disk), and is therefore left out of sums.
    pub stacked: bool,
}

/// Counters of a network interface since it came up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Name: `eth0`, `lo`.
    pub name: String,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped in either direction.
    pub drops: u64,
    /// Link speed, bits per second.
    pub bits_per_s: Option<u64>,
}

/// TCP counters of the machine since boot (/proc/net/snmp).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Segments sent.
    pub segments_out: u64,
    /// Retransmitted segments, included in `segments_out`.
    pub retransmits: u64,
}

/// Counters of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Thread id.
    pub tid: u32,
    /// CPU time so far.
    pub ran_ns: u64,
    /// Time in which it was runnable without a CPU (schedstat).
    pub waited_ns: u64,
}

/// Counters of a process, or of several in total.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// CPU time in user space.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Its threads, if requested.
    pub threads: Vec<Thread>,
    /// Number of living processes.
    pub processes: u32,
    /// Number of living threads.
    pub thread_count: u32,
    /// Runnable threads (`R`) now, on a CPU or waiting for one; for trees of processes only.
    pub runnable_threads: u32,
    /// Threads in uninterruptible waits (`D`) now; for trees only.
    pub blocked_threads: u32,
    /// Ids of threads that sleep now until a time that they chose, and wait for nothing else; for trees only.
    pub timed_sleepers: Vec<u32>,
    /// True if all threads sleep now, and one of the processes has a TCP connection; for trees only.
    pub awaits_peer: bool,
    /// Resident memory now; pages shared by several processes count repeatedly.
    pub rss_bytes: u64,
    /// Bytes read from devices (/proc/PID/io); `None` without permission.
    pub device_read_bytes: Option<u64>,
    /// Bytes made dirty, to be written to devices.
    pub device_write_bytes: Option<u64>,
    /// Major page faults.
    pub major_faults: u64,
    /// Minor page faults.
    pub minor_faults: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

/// One reading of all counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Monotonic time, nanoseconds since the sampler began.
    pub at_ns: u64,
    /// CPU times by CPU number.
    pub cpus: Vec<(u32, CpuTimes)>,
    /// Runnable tasks.
    pub running: u32,
    /// Tasks blocked on I/O.
    pub blocked: u32,
    /// Context switches since boot.
    pub switches: u64,
    /// Interrupts since boot.
    pub interrupts: u64,
    /// Bytes swapped in and out since boot.
    pub swapped_bytes: (u64, u64),
    /// Bytes requested from block devices for reading and writing since boot (vmstat's bi and bo).
    pub paged_bytes: (u64, u64),
    /// Pressure stall information.
    pub pressure: PressureTimes,
    /// Memory.
    pub memory: Memory,
    /// Whole disks with any I/O so far.
    pub disks: Vec<Disk>,
    /// Interfaces that are up.
    pub links: Vec<Link>,
    /// TCP counters.
    pub tcp: Option<Tcp>,
    /// Counters of the watched process.
    pub process: Process,
    /// Periods of the cgroup's CPU quota, and throttled ones.
    pub quota_periods: Option<(u64, u64)>,
}

/// True if a kernel function, as named by [`hakobu_sys::task::waiting_in`], is one in which a thread waits
/// for a directory's lock: the lock function (older kernels), or the function that takes it for create,
/// mkdir, link, rename, unlink or lookup. Inlined functions have the name of their caller; the compiler may
/// add a suffix (`.isra.0`).
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
