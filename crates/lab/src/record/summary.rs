//! Summary of a recording: exact means (from the counters at both ends), and peaks over single intervals.

use crate::record::RecordRow;
use hakobu_explain::sample::{CpuRates, DiskRates, PressureRates, Process, Sample};
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

// Computes a summary: peaks row by row, the rest from the first and last sample.

/// Running peaks, and means of levels.
#[derive(Clone, Debug, Default)]
pub(super) struct SummaryBuilder {
    summary: RecordSummary,
    processes: ProcessSummary,
    /// Sums of value × time, for levels.
    running_s: f64,
    blocked_s: f64,
    thread_s: f64,
    busiest: f64,
}

impl SummaryBuilder {
    /// Adds an interval.
    pub(super) fn see(&mut self, row: &RecordRow) {
        let rates = &row.rates;
        let first = self.summary.intervals == 0;
        let sum = &mut self.summary;
        sum.intervals += 1;
        if let Some(shares) = row.cpu() {
            sum.cpu.get_or_insert_default().each(&shares, LoadStat::see);
        }
        self.busiest = self.busiest.max(row.busiest_cpu().map_or(0.0, |(_, share)| share));
        sum.running.see(f64::from(rates.running));
        sum.blocked.see(f64::from(rates.blocked));
        sum.each_rate(row, LoadStat::see);
        sum.pressure.each(&rates.pressure, LoadStat::see);
        let (memory, now) = (&mut sum.memory, &rates.memory);
        let least = if first { u64::MAX } else { memory.available_bytes_min };
        memory.total_bytes = now.total_bytes;
        memory.available_bytes_min = least.min(now.available_bytes);
        memory.dirty_bytes_max = memory.dirty_bytes_max.max(now.dirty_bytes);
        memory.writeback_bytes_max = memory.writeback_bytes_max.max(now.writeback_bytes);
        memory.swap_used_bytes_max = memory.swap_used_bytes_max.max(now.swap_used_bytes);
        for now in &rates.disks {
            let disk = by_name(&mut sum.disks, |disk| disk.name == now.name);
            now.name.clone_into(&mut disk.name);
            disk.stacked = now.stacked;
            disk.each(now, LoadStat::see);
        }
        for now in &rates.links {
            let link = by_name(&mut sum.links, |link| link.name == now.name);
            now.name.clone_into(&mut link.name);
            link.rx_bytes_per_s.see(now.rx_bytes_per_s);
            link.tx_bytes_per_s.see(now.tx_bytes_per_s);
        }
        let process = &mut self.processes;
        process.cpu_percent.see(rates.process.cpu() * 100.0);
        process.busiest_thread_percent.see(row.busiest_thread() * 100.0);
        process.rss_bytes_max = process.rss_bytes_max.max(rates.process.rss_bytes);
        self.running_s += f64::from(rates.running) * rates.span_s;
        self.blocked_s += f64::from(rates.blocked) * rates.span_s;
        self.thread_s += row.busiest_thread() * rates.span_s;
    }

    /// Summary between the first and the last sample.
    pub(super) fn end(self, first: &Sample, last: &Sample, watched: bool) -> RecordSummary {
        let whole = RecordRow::between(first, last);
        let time_s = whole.rates.span_s.max(f64::MIN_POSITIVE);
        let mut sum = self.summary;
        sum.sampled_s = whole.rates.span_s;
        sum.cpus = last.cpus.len();
        if let (Some(cpu), Some(shares)) = (&mut sum.cpu, whole.cpu()) {
            cpu.each(&shares, LoadStat::mean_is);
        }
        sum.busiest_cpu = whole.busiest_cpu().map(|(cpu, share)| BusiestCpuSummary {
            cpu,
            percent: LoadStat { mean: share * 100.0, peak: self.busiest.max(share) * 100.0 },
        });
        sum.running.mean = self.running_s / time_s;
        sum.blocked.mean = self.blocked_s / time_s;
        sum.each_rate(&whole, LoadStat::mean_is);
        sum.pressure.each(&whole.rates.pressure, LoadStat::mean_is);
        for disk in &mut sum.disks {
            disk.whole(&whole, first, last);
        }
        sum.disks.retain(|disk| disk.reads + disk.writes > 0);
        for link in &mut sum.links {
            link.whole(&whole, first, last);
        }
        sum.links.retain(|link| link.rx_bytes + link.tx_bytes > 0);
        sum.tcp = first.tcp.zip(last.tcp).map(|(old, new)| TcpSummary {
            segments_out: new.segments_out.saturating_sub(old.segments_out),
            retransmits: new.retransmits.saturating_sub(old.retransmits),
        });
        sum.quota_periods = first
            .quota_periods
            .zip(last.quota_periods)
            .map(|(old, new)| (new.0.saturating_sub(old.0), new.1.saturating_sub(old.1)));
        let mut processes = self.processes;
        processes.busiest_thread_percent.mean = self.thread_s / time_s * 100.0;
        processes.cpu_percent.mean = whole.rates.process.cpu() * 100.0;
        processes.whole(&first.process, &last.process);
        sum.processes = watched.then_some(processes);
        sum
    }
}

impl LoadStat {
    fn see(&mut self, number: f64) {
        self.peak = self.peak.max(number);
    }

    fn mean_is(&mut self, number: f64) {
        self.mean = number;
    }
}

impl RecordSummary {
    fn each_rate(&mut self, row: &RecordRow, with: fn(&mut LoadStat, f64)) {
        let rates = &row.rates;
        with(&mut self.switches_per_s, rates.switches_per_s);
        with(&mut self.interrupts_per_s, rates.interrupts_per_s);
        with(&mut self.paged_in_bytes_per_s, rates.paged_in_bytes_per_s);
        with(&mut self.paged_out_bytes_per_s, rates.paged_out_bytes_per_s);
        with(&mut self.swapped_in_bytes_per_s, rates.swap_in_bytes_per_s);
        with(&mut self.swapped_out_bytes_per_s, rates.swap_out_bytes_per_s);
    }
}

impl CpuSummary {
    fn each(&mut self, shares: &CpuRates, with: fn(&mut LoadStat, f64)) {
        with(&mut self.user_percent, shares.user * 100.0);
        with(&mut self.system_percent, shares.system * 100.0);
        with(&mut self.iowait_percent, shares.iowait * 100.0);
        with(&mut self.steal_percent, shares.steal * 100.0);
        with(&mut self.idle_percent, shares.idle * 100.0);
    }
}

impl PressureSummary {
    fn each(&mut self, rates: &PressureRates, with: fn(&mut LoadStat, f64)) {
        see_known(&mut self.cpu_some_percent, rates.cpu_some.map(|share| share * 100.0), with);
        see_known(&mut self.io_some_percent, rates.io_some.map(|share| share * 100.0), with);
        see_known(&mut self.io_full_percent, rates.io_full.map(|share| share * 100.0), with);
        see_known(
            &mut self.memory_some_percent,
            rates.memory_some.map(|share| share * 100.0),
            with,
        );
    }
}

impl DiskSummary {
    fn each(&mut self, rates: &DiskRates, with: fn(&mut LoadStat, f64)) {
        with(&mut self.read_iops, rates.read_iops);
        with(&mut self.write_iops, rates.write_iops);
        with(&mut self.read_bytes_per_s, rates.read_bytes_per_s);
        with(&mut self.write_bytes_per_s, rates.write_bytes_per_s);
        see_known(&mut self.read_ms, rates.read_latency_ms, with);
        see_known(&mut self.write_ms, rates.write_latency_ms, with);
        with(&mut self.queue, rates.queue);
        with(&mut self.busy_percent, rates.busy * 100.0);
    }

    /// Sets totals and means; nothing for a disk that was added or removed meanwhile.
    fn whole(&mut self, whole: &RecordRow, first: &Sample, last: &Sample) {
        let of = |sample: &Sample| sample.disks.iter().find(|disk| disk.name == self.name).cloned();
        if let Some((old, new)) = of(first).zip(of(last)) {
            self.reads = new.reads.saturating_sub(old.reads);
            self.writes = new.writes.saturating_sub(old.writes);
            self.read_bytes = new.read_bytes.saturating_sub(old.read_bytes);
            self.write_bytes = new.write_bytes.saturating_sub(old.write_bytes);
        }
        if let Some(rates) = whole.rates.disks.iter().find(|disk| disk.name == self.name) {
            self.each(rates, LoadStat::mean_is);
        }
    }
}

impl LinkSummary {
    /// Sets totals and means; nothing for an interface that was added or removed meanwhile.
    fn whole(&mut self, whole: &RecordRow, first: &Sample, last: &Sample) {
        let of = |sample: &Sample| sample.links.iter().find(|link| link.name == self.name).cloned();
        if let Some((old, new)) = of(first).zip(of(last)) {
            self.rx_bytes = new.rx_bytes.saturating_sub(old.rx_bytes);
            self.tx_bytes = new.tx_bytes.saturating_sub(old.tx_bytes);
            self.drops = new.drops.saturating_sub(old.drops);
        }
        if let Some(rates) = whole.rates.links.iter().find(|link| link.name == self.name) {
            self.rx_bytes_per_s.mean = rates.rx_bytes_per_s;
            self.tx_bytes_per_s.mean = rates.tx_bytes_per_s;
        }
    }
}

impl ProcessSummary {
    fn whole(&mut self, old: &Process, new: &Process) {
        let since = |old: u64, new: u64| new.saturating_sub(old);
        let seen = |old: Option<u64>, new: Option<u64>| Some(new?.saturating_sub(old?));
        self.user_s = since(old.user_ns, new.user_ns) as f64 / 1e9;
        self.sys_s = since(old.system_ns, new.system_ns) as f64 / 1e9;
        self.device_read_bytes = seen(old.device_read_bytes, new.device_read_bytes);
        self.device_write_bytes = seen(old.device_write_bytes, new.device_write_bytes);
        self.minor_faults = since(old.minor_faults, new.minor_faults);
        self.major_faults = since(old.major_faults, new.major_faults);
        self.voluntary_switches = since(old.voluntary_switches, new.voluntary_switches);
        self.involuntary_switches = since(old.involuntary_switches, new.involuntary_switches);
    }
}

/// Passes on a number that may be unknown.
fn see_known(stat: &mut Option<LoadStat>, number: Option<f64>, with: fn(&mut LoadStat, f64)) {
    if let Some(number) = number {
        with(stat.get_or_insert_default(), number);
    }
}

/// Returns the first match, or adds a new item.
fn by_name<T: Default>(all: &mut Vec<T>, fits: impl Fn(&T) -> bool) -> &mut T {
    let at = all.iter().position(fits).unwrap_or_else(|| {
        all.push(T::default());
        all.len() - 1
    });
    &mut all[at]
}
