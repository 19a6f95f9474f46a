//! A recording in few numbers: means over the whole of it (from the counters at both ends, so
//! exact), and peaks of single intervals.

use super::row::{Row, Shares, find_disk, find_link, mean, pressure};
use hakobu_transfer::sample::Sample;
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
    /// Bytes that came from devices.
    pub device_read_bytes: u64,
    /// Bytes that go to devices.
    pub device_write_bytes: u64,
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
    pressure: [Option<f64>; 4],
    disks: Vec<Disk>,
    links: Vec<Link>,
    processes: Processes,
    /// Sums of number × time, for levels.
    running_s: f64,
    blocked_s: f64,
    thread_s: f64,
    time_s: f64,
    busiest: f64,
}

impl Running {
    /// Takes an interval into account.
    pub(super) fn see(&mut self, row: &Row) {
        let first = self.summary.intervals == 0;
        let sum = &mut self.summary;
        sum.intervals += 1;
        if let Some(shares) = row.cpu {
            let cpu = sum.cpu.get_or_insert_default();
            cpu.each(&shares, |stat, percent| stat.see(percent));
        }
        self.busiest = self.busiest.max(row.busiest_cpu.map_or(0.0, |(_, share)| share));
        sum.running.see(f64::from(row.running));
        sum.blocked.see(f64::from(row.blocked));
        sum.switches_per_s.see(row.switches_per_s);
        sum.interrupts_per_s.see(row.interrupts_per_s);
        sum.paged_in_bytes_per_s.see(row.paged_bytes_per_s.0);
        sum.paged_out_bytes_per_s.see(row.paged_bytes_per_s.1);
        sum.swapped_in_bytes_per_s.see(row.swapped_bytes_per_s.0);
        sum.swapped_out_bytes_per_s.see(row.swapped_bytes_per_s.1);
        let pressure = &row.pressure;
        let now = [pressure.cpu_some, pressure.io_some, pressure.io_full, pressure.memory_some];
        for (peak, now) in self.pressure.iter_mut().zip(now) {
            *peak = peak.map_or(now, |peak| Some(peak.max(now.unwrap_or(0.0))));
        }
        let (memory, now) = (&mut sum.memory, &row.memory);
        let least = if first { u64::MAX } else { memory.available_bytes_min };
        memory.available_bytes_min = least.min(now.available_bytes);
        memory.dirty_bytes_max = memory.dirty_bytes_max.max(now.dirty_bytes);
        memory.writeback_bytes_max = memory.writeback_bytes_max.max(now.writeback_bytes);
        memory.swap_used_bytes_max = memory.swap_used_bytes_max.max(now.swap_used_bytes);
        for now in &row.disks {
            let disk = by_name(&mut self.disks, |disk| disk.name == now.name);
            now.name.clone_into(&mut disk.name);
            disk.read_iops.see(now.reads_per_s);
            disk.write_iops.see(now.writes_per_s);
            disk.read_bytes_per_s.see(now.read_bytes_per_s);
            disk.write_bytes_per_s.see(now.write_bytes_per_s);
            for (stat, now) in
                [(&mut disk.read_ms, now.read_ms), (&mut disk.write_ms, now.write_ms)]
            {
                if let Some(now) = now {
                    stat.get_or_insert_default().see(now);
                }
            }
            disk.queue.see(now.queue);
            disk.busy_percent.see(now.busy * 100.0);
        }
        for now in &row.links {
            let link = by_name(&mut self.links, |link| link.name == now.name);
            now.name.clone_into(&mut link.name);
            link.rx_bytes_per_s.see(now.rx_bytes_per_s);
            link.tx_bytes_per_s.see(now.tx_bytes_per_s);
        }
        let process = &mut self.processes;
        process.cpu_percent.see(row.process.cpus * 100.0);
        process.busiest_thread_percent.see(row.process.busiest_thread * 100.0);
        process.rss_bytes_max = process.rss_bytes_max.max(row.process.rss_bytes);
        self.running_s += f64::from(row.running) * row.took_s;
        self.blocked_s += f64::from(row.blocked) * row.took_s;
        self.thread_s += row.process.busiest_thread * row.took_s;
        self.time_s += row.took_s;
    }

    /// The summary of what lies between the first and the last sample.
    pub(super) fn end(self, first: &Sample, last: &Sample, watched: bool) -> Summary {
        let whole = Row::between(first, last);
        let time_s = self.time_s.max(f64::MIN_POSITIVE);
        let mut sum = self.summary;
        sum.sampled_s = whole.took_s;
        if let (Some(cpu), Some(shares)) = (&mut sum.cpu, &whole.cpu) {
            cpu.each(shares, |stat, percent| stat.mean = percent);
        }
        sum.busiest_cpu = whole.busiest_cpu.map(|(cpu, share)| BusiestCpu {
            cpu,
            percent: Stat { mean: share * 100.0, peak: self.busiest.max(share) * 100.0 },
        });
        sum.running.mean = self.running_s / time_s;
        sum.blocked.mean = self.blocked_s / time_s;
        sum.switches_per_s.mean = whole.switches_per_s;
        sum.interrupts_per_s.mean = whole.interrupts_per_s;
        sum.paged_in_bytes_per_s.mean = whole.paged_bytes_per_s.0;
        sum.paged_out_bytes_per_s.mean = whole.paged_bytes_per_s.1;
        sum.swapped_in_bytes_per_s.mean = whole.swapped_bytes_per_s.0;
        sum.swapped_out_bytes_per_s.mean = whole.swapped_bytes_per_s.1;
        let means = pressure(&first.pressure, &last.pressure, whole.took_s);
        let [cpu, io, full, memory] = self.pressure;
        let stat = |mean: Option<f64>, peak: Option<f64>| {
            let (mean, peak) = mean.zip(peak)?;
            Some(Stat { mean: mean * 100.0, peak: peak * 100.0 })
        };
        sum.pressure = Pressure {
            cpu_some_percent: stat(means.cpu_some, cpu),
            io_some_percent: stat(means.io_some, io),
            io_full_percent: stat(means.io_full, full),
            memory_some_percent: stat(means.memory_some, memory),
        };
        let disks = self.disks.into_iter().map(|disk| whole_disk(disk, &whole, first, last));
        sum.disks = disks.filter(|disk| disk.reads + disk.writes > 0).collect();
        let links = self.links.into_iter().map(|link| whole_link(link, &whole, first, last));
        sum.links = links.filter(|link| link.rx_bytes + link.tx_bytes > 0).collect();
        sum.tcp = first.tcp.zip(last.tcp).map(|(old, new)| Tcp {
            segments_out: new.segments_out.saturating_sub(old.segments_out),
            retransmits: new.retransmits.saturating_sub(old.retransmits),
        });
        sum.quota_periods = first
            .quota_periods
            .zip(last.quota_periods)
            .map(|(old, new)| (new.0.saturating_sub(old.0), new.1.saturating_sub(old.1)));
        sum.processes = watched.then(|| {
            let (old, new) = (&first.process, &last.process);
            let mut processes = self.processes;
            processes.user_s = new.user_ns.saturating_sub(old.user_ns) as f64 / 1e9;
            processes.sys_s = new.system_ns.saturating_sub(old.system_ns) as f64 / 1e9;
            processes.cpu_percent.mean = whole.process.cpus * 100.0;
            processes.busiest_thread_percent.mean = self.thread_s / time_s * 100.0;
            let since = |count: fn(&hakobu_transfer::sample::Process) -> u64| {
                count(new).saturating_sub(count(old))
            };
            processes.device_read_bytes = since(|p| p.device_read_bytes);
            processes.device_write_bytes = since(|p| p.device_write_bytes);
            processes.minor_faults = since(|p| p.minor_faults);
            processes.major_faults = since(|p| p.major_faults);
            processes.voluntary_switches = since(|p| p.voluntary_switches);
            processes.involuntary_switches = since(|p| p.involuntary_switches);
            processes
        });
        sum
    }
}

impl Cpu {
    fn each(&mut self, shares: &Shares, mut with: impl FnMut(&mut Stat, f64)) {
        with(&mut self.user_percent, shares.user * 100.0);
        with(&mut self.system_percent, shares.system * 100.0);
        with(&mut self.iowait_percent, shares.iowait * 100.0);
        with(&mut self.steal_percent, shares.steal * 100.0);
        with(&mut self.idle_percent, shares.idle * 100.0);
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

fn whole_disk(mut disk: Disk, whole: &Row, first: &Sample, last: &Sample) -> Disk {
    let none = hakobu_transfer::sample::Disk::default();
    let (Some(now), Some(new)) =
        (whole.disks.iter().find(|now| now.name == disk.name), find_disk(last, &disk.name))
    else {
        return disk; // taken away meanwhile
    };
    let old = find_disk(first, &disk.name).unwrap_or(&none);
    disk.reads = new.reads.saturating_sub(old.reads);
    disk.writes = new.writes.saturating_sub(old.writes);
    disk.read_bytes = new.read_bytes.saturating_sub(old.read_bytes);
    disk.write_bytes = new.write_bytes.saturating_sub(old.write_bytes);
    disk.read_iops.mean = now.reads_per_s;
    disk.write_iops.mean = now.writes_per_s;
    disk.read_bytes_per_s.mean = now.read_bytes_per_s;
    disk.write_bytes_per_s.mean = now.write_bytes_per_s;
    if let Some(stat) = &mut disk.read_ms {
        stat.mean = mean(old.read_ms, new.read_ms, old.reads, new.reads).unwrap_or(0.0);
    }
    if let Some(stat) = &mut disk.write_ms {
        stat.mean = mean(old.write_ms, new.write_ms, old.writes, new.writes).unwrap_or(0.0);
    }
    disk.queue.mean = now.queue;
    disk.busy_percent.mean = now.busy * 100.0;
    disk
}

fn whole_link(mut link: Link, whole: &Row, first: &Sample, last: &Sample) -> Link {
    let pair = find_link(first, &link.name).zip(find_link(last, &link.name));
    if let Some((old, new)) = pair {
        link.rx_bytes = new.rx_bytes.saturating_sub(old.rx_bytes);
        link.tx_bytes = new.tx_bytes.saturating_sub(old.tx_bytes);
        link.drops = new.drops.saturating_sub(old.drops);
    }
    if let Some(now) = whole.links.iter().find(|now| now.name == link.name) {
        link.rx_bytes_per_s.mean = now.rx_bytes_per_s;
        link.tx_bytes_per_s.mean = now.tx_bytes_per_s;
    }
    link
}
