//! A recording in few numbers: means over the whole of it (from the counters at both ends, so
//! exact), and peaks of single intervals.

use super::Row;
use hakobu_transfer::sample::{CpuRates, DiskRates, PressureRates, Process, Sample};
use serde::Serialize;

/// A number over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stat {
    /// Over the whole.
    pub mean: f64,
    /// Of the interval in which it was highest.
    pub peak: f64,
}

impl Stat {
    fn see(&mut self, number: f64) {
        self.peak = self.peak.max(number);
    }
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

/// What is summed up as rows come: peaks, and means of levels.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    summary: Summary,
    pressure: PressureRates,
    processes: Processes,
    /// Sums of number × time, for levels.
    running_s: f64,
    blocked_s: f64,
    thread_s: f64,
    busiest: f64,
}

impl Running {
    /// Takes an interval into account.
    pub(super) fn see(&mut self, row: &Row) {
        let rates = &row.rates;
        let first = self.summary.intervals == 0;
        let sum = &mut self.summary;
        sum.intervals += 1;
        if let Some(shares) = row.cpu() {
            sum.cpu.get_or_insert_default().each(&shares, Stat::see);
        }
        self.busiest = self.busiest.max(row.busiest_cpu().map_or(0.0, |(_, share)| share));
        sum.running.see(f64::from(rates.running));
        sum.blocked.see(f64::from(rates.blocked));
        sum.each_rate(row, Stat::see);
        let (peak, now) = (&mut self.pressure, &rates.pressure);
        for (peak, now) in [
            (&mut peak.cpu_some, now.cpu_some),
            (&mut peak.io_some, now.io_some),
            (&mut peak.io_full, now.io_full),
            (&mut peak.memory_some, now.memory_some),
        ] {
            *peak = now.map(|now| peak.unwrap_or(0.0).max(now)).or(*peak);
        }
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
            disk.each(now, Stat::see);
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

    /// The summary of what lies between the first and the last sample.
    pub(super) fn end(self, first: &Sample, last: &Sample, watched: bool) -> Summary {
        let whole = Row::between(first, last);
        let time_s = whole.rates.span_s.max(f64::MIN_POSITIVE);
        let mut sum = self.summary;
        sum.sampled_s = whole.rates.span_s;
        sum.cpus = last.cpus.len();
        if let (Some(cpu), Some(shares)) = (&mut sum.cpu, whole.cpu()) {
            cpu.each(&shares, Stat::mean_is);
        }
        sum.busiest_cpu = whole.busiest_cpu().map(|(cpu, share)| BusiestCpu {
            cpu,
            percent: Stat { mean: share * 100.0, peak: self.busiest.max(share) * 100.0 },
        });
        sum.running.mean = self.running_s / time_s;
        sum.blocked.mean = self.blocked_s / time_s;
        sum.each_rate(&whole, Stat::mean_is);
        let (mean, peak) = (&whole.rates.pressure, &self.pressure);
        let stat = |mean: Option<f64>, peak: Option<f64>| {
            let (mean, peak) = mean.zip(peak)?;
            Some(Stat { mean: mean * 100.0, peak: peak * 100.0 })
        };
        sum.pressure = Pressure {
            cpu_some_percent: stat(mean.cpu_some, peak.cpu_some),
            io_some_percent: stat(mean.io_some, peak.io_some),
            io_full_percent: stat(mean.io_full, peak.io_full),
            memory_some_percent: stat(mean.memory_some, peak.memory_some),
        };
        for disk in &mut sum.disks {
            disk.whole(&whole, first, last);
        }
        sum.disks.retain(|disk| disk.reads + disk.writes > 0);
        for link in &mut sum.links {
            link.whole(&whole, first, last);
        }
        sum.links.retain(|link| link.rx_bytes + link.tx_bytes > 0);
        sum.tcp = first.tcp.zip(last.tcp).map(|(old, new)| Tcp {
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

impl Stat {
    fn mean_is(&mut self, number: f64) {
        self.mean = number;
    }
}

impl Summary {
    fn each_rate(&mut self, row: &Row, with: fn(&mut Stat, f64)) {
        let rates = &row.rates;
        with(&mut self.switches_per_s, rates.switches_per_s);
        with(&mut self.interrupts_per_s, rates.interrupts_per_s);
        with(&mut self.paged_in_bytes_per_s, rates.paged_in_bytes_per_s);
        with(&mut self.paged_out_bytes_per_s, rates.paged_out_bytes_per_s);
        with(&mut self.swapped_in_bytes_per_s, rates.swap_in_bytes_per_s);
        with(&mut self.swapped_out_bytes_per_s, rates.swap_out_bytes_per_s);
    }
}

impl Cpu {
    fn each(&mut self, shares: &CpuRates, with: fn(&mut Stat, f64)) {
        with(&mut self.user_percent, shares.user * 100.0);
        with(&mut self.system_percent, shares.system * 100.0);
        with(&mut self.iowait_percent, shares.iowait * 100.0);
        with(&mut self.steal_percent, shares.steal * 100.0);
        with(&mut self.idle_percent, shares.idle * 100.0);
    }
}

impl Disk {
    fn each(&mut self, rates: &DiskRates, with: fn(&mut Stat, f64)) {
        with(&mut self.read_iops, rates.read_iops);
        with(&mut self.write_iops, rates.write_iops);
        with(&mut self.read_bytes_per_s, rates.read_bytes_per_s);
        with(&mut self.write_bytes_per_s, rates.write_bytes_per_s);
        for (stat, now) in [
            (&mut self.read_ms, rates.read_latency_ms),
            (&mut self.write_ms, rates.write_latency_ms),
        ] {
            if let Some(now) = now {
                with(stat.get_or_insert_default(), now);
            }
        }
        with(&mut self.queue, rates.queue);
        with(&mut self.busy_percent, rates.busy * 100.0);
    }

    /// Totals and means; nothing for a disk that came or went meanwhile.
    fn whole(&mut self, whole: &Row, first: &Sample, last: &Sample) {
        let of = |sample: &Sample| sample.disks.iter().find(|disk| disk.name == self.name).cloned();
        if let Some((old, new)) = of(first).zip(of(last)) {
            self.reads = new.reads.saturating_sub(old.reads);
            self.writes = new.writes.saturating_sub(old.writes);
            self.read_bytes = new.read_bytes.saturating_sub(old.read_bytes);
            self.write_bytes = new.write_bytes.saturating_sub(old.write_bytes);
        }
        if let Some(rates) = whole.rates.disks.iter().find(|disk| disk.name == self.name) {
            self.each(rates, Stat::mean_is);
        }
    }
}

impl Link {
    /// Totals and means; nothing for an interface that came or went meanwhile.
    fn whole(&mut self, whole: &Row, first: &Sample, last: &Sample) {
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

impl Processes {
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

/// The first that fits, or a new one.
fn by_name<T: Default>(all: &mut Vec<T>, fits: impl Fn(&T) -> bool) -> &mut T {
    let at = all.iter().position(fits).unwrap_or_else(|| {
        all.push(T::default());
        all.len() - 1
    });
    &mut all[at]
}
