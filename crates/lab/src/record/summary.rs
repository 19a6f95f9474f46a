//! A recording in few numbers: means over the whole of it (from the counters at both ends, so
//! exact), and peaks of single intervals.

use serde::Serialize;

/// A number over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stat {
    /// Over the whole.
    pub mean: f64,
    /// Of the interval in which it was highest.
    pub peak: f64,
}

/// CPU time, in percent of all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cpu {
    /// User space.
    pub user_percent: Stat,
    /// The kernel.
    pub system_percent: Stat,
    /// Nothing to do but I/O under way.
    pub iowait_percent: Stat,
    /// Somebody else's.
    pub steal_percent: Stat,
    /// Nothing to do.
    pub idle_percent: Stat,
}

/// The CPU that worked most of all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BusiestCpu {
    /// Its number.
    pub cpu: u32,
    /// Its working time in percent of one CPU; the peak is that of any CPU.
    #[serde(flatten)]
    pub percent: Stat,
}

/// One disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Disk {
    /// As the kernel calls it.
    pub name: String,
    /// It passes its I/O on to other disks: to be left out of sums.
    pub stacked: bool,
    /// Reads that ended.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes that ended.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Reads a second.
    pub read_iops: Stat,
    /// Writes a second.
    pub write_iops: Stat,
    /// Bytes read a second.
    pub read_bytes_per_s: Stat,
    /// Bytes written a second.
    pub write_bytes_per_s: Stat,
    /// Mean milliseconds that a read took; none without reads.
    pub read_ms: Option<Stat>,
    /// Mean milliseconds that a write took; none without writes.
    pub write_ms: Option<Stat>,
    /// Requests in flight.
    pub queue: Stat,
    /// Time with a request in flight, in percent.
    pub busy_percent: Stat,
}

/// One network interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Link {
    /// `eth0`, `lo`.
    pub name: String,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Bytes received a second.
    pub rx_bytes_per_s: Stat,
    /// Bytes sent a second.
    pub tx_bytes_per_s: Stat,
}

/// TCP of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Tcp {
    /// Segments sent.
    pub segments_out: u64,
    /// Of these, again.
    pub retransmits: u64,
}

/// Time in which tasks waited, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pressure {
    /// Some task, for a CPU.
    pub cpu_some_percent: Option<Stat>,
    /// Some task, for I/O.
    pub io_some_percent: Option<Stat>,
    /// All tasks, for I/O.
    pub io_full_percent: Option<Stat>,
    /// Some task, for memory.
    pub memory_some_percent: Option<Stat>,
}

/// Memory of the machine, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Memory {
    /// All there is.
    pub total_bytes: u64,
    /// The least that was available.
    pub available_bytes_min: u64,
    /// The most that was written by programs and not by the kernel yet.
    pub dirty_bytes_max: u64,
    /// The most that was being written.
    pub writeback_bytes_max: u64,
    /// The most swap in use.
    pub swap_used_bytes_max: u64,
}

/// What the watched processes looked like from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Processes {
    /// CPU time in user space, seconds.
    pub user_s: f64,
    /// CPU time in the kernel, seconds.
    pub sys_s: f64,
    /// CPU time in percent of one CPU.
    pub cpu_percent: Stat,
    /// The busiest thread of each interval, in percent of one CPU: the mean of these, and the most.
    pub busiest_thread_percent: Stat,
    /// The most resident memory of all of them together, bytes.
    pub rss_bytes_max: u64,
    /// Bytes that came from devices; none where the processes do not let us see.
    pub device_read_bytes: Option<u64>,
    /// Bytes that were made dirty, to reach devices sooner or later.
    pub device_write_bytes: Option<u64>,
    /// Faults that needed no device.
    pub minor_faults: u64,
    /// Faults that did.
    pub major_faults: u64,
    /// Times one of them gave up the CPU by itself.
    pub voluntary_switches: u64,
    /// Times it was taken away.
    pub involuntary_switches: u64,
}

/// A recording in few numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// From the first sample to the last, seconds.
    pub sampled_s: f64,
    /// Intervals.
    pub intervals: u64,
    /// CPUs that are on.
    pub cpus: usize,
    /// CPU time; none where the kernel had counted nothing yet.
    pub cpu: Option<Cpu>,
    /// The CPU that worked most.
    pub busiest_cpu: Option<BusiestCpu>,
    /// Tasks that ran or could: the mean of samples, and the most.
    pub running: Stat,
    /// Tasks that waited for I/O.
    pub blocked: Stat,
    /// Context switches a second.
    pub switches_per_s: Stat,
    /// Interrupts a second.
    pub interrupts_per_s: Stat,
    /// Bytes a second that block devices were asked to read (vmstat's bi, in bytes).
    pub paged_in_bytes_per_s: Stat,
    /// Bytes a second that they were asked to write (bo).
    pub paged_out_bytes_per_s: Stat,
    /// Bytes a second swapped in.
    pub swapped_in_bytes_per_s: Stat,
    /// Bytes a second swapped out.
    pub swapped_out_bytes_per_s: Stat,
    /// Waiting.
    pub pressure: Pressure,
    /// Memory.
    pub memory: Memory,
    /// Disks that did something.
    pub disks: Vec<Disk>,
    /// Interfaces that carried something.
    pub links: Vec<Link>,
    /// TCP; none where the kernel does not say.
    pub tcp: Option<Tcp>,
    /// The cgroup's periods of CPU quota, and those that were throttled.
    pub quota_periods: Option<(u64, u64)>,
    /// The watched processes; none where only the machine was.
    pub processes: Option<Processes>,
}
