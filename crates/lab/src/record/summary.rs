//! Summary of a recording: exact means (from the counters at both ends), and peaks over single intervals.

use serde::Serialize;

/// Mean and peak of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LoadStat {
    /// Mean over the whole recording.
    pub mean: f64,
    /// Largest value of an interval.
    pub peak: f64,
}

/// CPU time in percent of all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CpuSummary {
    /// User space.
    pub user_percent: LoadStat,
    /// Kernel.
    pub system_percent: LoadStat,
    /// Idle with I/O in flight.
    pub iowait_percent: LoadStat,
    /// Stolen by the hypervisor.
    pub steal_percent: LoadStat,
    /// Idle.
    pub idle_percent: LoadStat,
}

/// The busiest CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BusiestCpuSummary {
    /// Its number.
    pub cpu: u32,
    /// Busy time in percent of one CPU; the peak is over all CPUs.
    #[serde(flatten)]
    pub percent: LoadStat,
}

/// One disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DiskSummary {
    /// Kernel name.
    pub name: String,
    /// True if it passes its I/O on to other disks, and is therefore left out of sums.
    pub stacked: bool,
    /// Completed reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Completed writes.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Reads per second.
    pub read_iops: LoadStat,
    /// Writes per second.
    pub write_iops: LoadStat,
    /// Bytes read per second.
    pub read_bytes_per_s: LoadStat,
    /// Bytes written per second.
    pub write_bytes_per_s: LoadStat,
    /// Mean latency of a read in milliseconds; `None` without reads.
    pub read_ms: Option<LoadStat>,
    /// Mean latency of a write in milliseconds; `None` without writes.
    pub write_ms: Option<LoadStat>,
    /// Queue depth: requests in flight.
    pub queue: LoadStat,
    /// Utilisation: time with a request in flight, percent.
    pub busy_percent: LoadStat,
}

/// One network interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Name: `eth0`, `lo`.
    pub name: String,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Bytes received per second.
    pub rx_bytes_per_s: LoadStat,
    /// Bytes sent per second.
    pub tx_bytes_per_s: LoadStat,
}

/// TCP counters of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TcpSummary {
    /// Segments sent.
    pub segments_out: u64,
    /// Retransmitted segments, included in `segments_out`.
    pub retransmits: u64,
}

/// Pressure stall information: time in which tasks waited, percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PressureSummary {
    /// Some task waited for a CPU.
    pub cpu_some_percent: Option<LoadStat>,
    /// Some task waited for I/O.
    pub io_some_percent: Option<LoadStat>,
    /// All tasks waited for I/O.
    pub io_full_percent: Option<LoadStat>,
    /// Some task waited for memory.
    pub memory_some_percent: Option<LoadStat>,
}

/// Memory of the machine, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MemorySummary {
    /// Total.
    pub total_bytes: u64,
    /// Least available memory.
    pub available_bytes_min: u64,
    /// Most dirty memory.
    pub dirty_bytes_max: u64,
    /// Most memory under writeback.
    pub writeback_bytes_max: u64,
    /// Most swap in use.
    pub swap_used_bytes_max: u64,
}

/// Resource use of the watched processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ProcessSummary {
    /// CPU time in user space, seconds.
    pub user_s: f64,
    /// CPU time in the kernel, seconds.
    pub sys_s: f64,
    /// CPU time in percent of one CPU.
    pub cpu_percent: LoadStat,
    /// Busiest thread of each interval, in percent of one CPU: mean and largest.
    pub busiest_thread_percent: LoadStat,
    /// Largest total resident memory, bytes.
    pub rss_bytes_max: u64,
    /// Bytes read from devices; `None` without permission to read it.
    pub device_read_bytes: Option<u64>,
    /// Bytes made dirty, to be written to devices.
    pub device_write_bytes: Option<u64>,
    /// Minor page faults.
    pub minor_faults: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

/// Summary of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RecordSummary {
    /// Time from the first to the last sample, seconds.
    pub sampled_s: f64,
    /// Number of intervals.
    pub intervals: u64,
    /// Number of online CPUs.
    pub cpus: usize,
    /// CPU time; `None` if the kernel has counted nothing yet.
    pub cpu: Option<CpuSummary>,
    /// The busiest CPU.
    pub busiest_cpu: Option<BusiestCpuSummary>,
    /// Runnable tasks: mean and largest value of samples.
    pub running: LoadStat,
    /// Tasks blocked on I/O.
    pub blocked: LoadStat,
    /// Context switches per second.
    pub switches_per_s: LoadStat,
    /// Interrupts per second.
    pub interrupts_per_s: LoadStat,
    /// Bytes per second requested from block devices for reading (vmstat's bi, in bytes).
    pub paged_in_bytes_per_s: LoadStat,
    /// Bytes per second requested for writing (vmstat's bo, in bytes).
    pub paged_out_bytes_per_s: LoadStat,
    /// Bytes per second swapped in.
    pub swapped_in_bytes_per_s: LoadStat,
    /// Bytes per second swapped out.
    pub swapped_out_bytes_per_s: LoadStat,
    /// Pressure stall information.
    pub pressure: PressureSummary,
    /// Memory.
    pub memory: MemorySummary,
    /// Disks with I/O.
    pub disks: Vec<DiskSummary>,
    /// Interfaces with traffic.
    pub links: Vec<LinkSummary>,
    /// TCP counters; `None` if the kernel does not report them.
    pub tcp: Option<TcpSummary>,
    /// Periods of the cgroup's CPU quota, and throttled ones.
    pub quota_periods: Option<(u64, u64)>,
    /// The watched processes; `None` if only the machine was recorded.
    pub processes: Option<ProcessSummary>,
}
