//! What happened between two samples: values a second and shares of the time. Counters that went
//! back (an interface or disk that was made anew) count as nothing, not as a huge number.

use super::{CpuTimes, Disk, Link, Memory, Process, Sample};

/// The whole of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Seconds between the samples; with 0 everything else is zero or `None`.
    pub span_s: f64,
    /// All CPUs together, in CPUs: 1.5 is one and a half of them.
    pub cpu: CpuRates,
    /// Each CPU by its number, shares 0 to 1.
    pub cpus: Vec<(u32, CpuRates)>,
    /// Tasks that run or could, at the end.
    pub running: u32,
    /// Tasks that wait for I/O, at the end.
    pub blocked: u32,
    /// Context switches.
    pub switches_per_s: f64,
    /// Interrupts.
    pub interrupts_per_s: f64,
    /// Swapped in.
    pub swap_in_bytes_per_s: f64,
    /// Swapped out.
    pub swap_out_bytes_per_s: f64,
    /// What block devices were asked to read (vmstat's bi, in bytes).
    pub paged_in_bytes_per_s: f64,
    /// To write (bo).
    pub paged_out_bytes_per_s: f64,
    /// Waiting.
    pub pressure: PressureRates,
    /// Memory at the end.
    pub memory: Memory,
    /// Disks that are in both samples.
    pub disks: Vec<DiskRates>,
    /// Interfaces that are in both samples.
    pub links: Vec<LinkRates>,
    /// TCP segments sent.
    pub segments_per_s: Option<f64>,
    /// Of these, again.
    pub retransmits_per_s: Option<f64>,
    /// Share of them that was sent again, 0 to 1; `None` where none was sent.
    pub retransmits: Option<f64>,
    /// The watched process.
    pub process: ProcessRates,
    /// Share of the periods of the CPU quota that were throttled, 0 to 1; `None` without quota.
    pub quota_throttled: Option<f64>,
}

/// CPU time by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuRates {
    /// User space.
    pub user: f64,
    /// The kernel.
    pub system: f64,
    /// Nothing to do, but I/O under way.
    pub iowait: f64,
    /// Nothing to do.
    pub idle: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
}

impl CpuRates {
    /// User and system.
    pub fn used(&self) -> f64 {
        self.user + self.system
    }
}

/// Shares of the time in which some (or all) tasks waited, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PressureRates {
    /// Some task waited for a CPU.
    pub cpu_some: Option<f64>,
    /// Some task waited for I/O.
    pub io_some: Option<f64>,
    /// All tasks did.
    pub io_full: Option<f64>,
    /// Some task waited for memory.
    pub memory_some: Option<f64>,
}

/// A disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskRates {
    /// As the kernel calls it.
    pub name: String,
    /// Its number.
    pub dev: (u32, u32),
    /// See [`Disk::stacked`].
    pub stacked: bool,
    /// Reads finished.
    pub read_iops: f64,
    /// Bytes read.
    pub read_bytes_per_s: f64,
    /// Writes finished.
    pub write_iops: f64,
    /// Bytes written.
    pub write_bytes_per_s: f64,
    /// Requests in flight, mean.
    pub queue: f64,
    /// Share of the time with a request in flight, 0 to 1.
    pub busy: f64,
    /// Milliseconds a request took, mean; `None` where none finished.
    pub latency_ms: Option<f64>,
    /// The same for reads.
    pub read_latency_ms: Option<f64>,
    /// The same for writes.
    pub write_latency_ms: Option<f64>,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkRates {
    /// Its name.
    pub name: String,
    /// Bytes received.
    pub rx_bytes_per_s: f64,
    /// Bytes sent.
    pub tx_bytes_per_s: f64,
    /// Packets dropped.
    pub drops_per_s: f64,
    /// What it can carry.
    pub bits_per_s: Option<u64>,
}

/// The watched process, or all of a tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessRates {
    /// CPUs in user space.
    pub user: f64,
    /// CPUs in the kernel.
    pub system: f64,
    /// The busiest thread: its number and the share of the time that it ran, 0 to 1.
    pub busiest: Option<(u32, f64)>,
    /// Of the time in which its threads could have run, the share in which they had no CPU, 0 to
    /// 1; `None` where none ran.
    pub run_delay: Option<f64>,
    /// Processes at the end.
    pub processes: u32,
    /// Threads at the end.
    pub thread_count: u32,
    /// Resident memory at the end.
    pub rss_bytes: u64,
    /// Bytes from devices.
    pub device_read_bytes_per_s: Option<f64>,
    /// Bytes to devices.
    pub device_write_bytes_per_s: Option<f64>,
    /// Faults that needed a device.
    pub major_faults_per_s: f64,
    /// Other faults.
    pub minor_faults_per_s: f64,
    /// Times the CPU was given up.
    pub voluntary_switches_per_s: f64,
    /// Times it was taken away.
    pub involuntary_switches_per_s: f64,
}

impl ProcessRates {
    /// CPUs used, user and system.
    pub fn cpu(&self) -> f64 {
        self.user + self.system
    }
}

impl Rates {
    /// What happened from `from` to `to`, two samples of one sampler in this order.
    pub fn between(from: &Sample, to: &Sample) -> Rates {
        let span_ns = to.at_ns.saturating_sub(from.at_ns);
        if span_ns == 0 {
            return Rates::default();
        }
        let span_s = span_ns as f64 / 1e9;
        let per_s = |from: u64, to: u64| to.saturating_sub(from) as f64 / span_s;
        let share = |from: Option<u64>, to: Option<u64>| Some(unit(per_s(from?, to?) / 1e6));
        let cpus: Vec<_> = paired(&from.cpus, &to.cpus, |cpu| cpu.0)
            .map(|(from, to)| (to.0, cpu(&from.1, &to.1)))
            .collect();
        let (before, after) = (&from.pressure, &to.pressure);
        Rates {
            span_s,
            cpu: cpus.iter().fold(CpuRates::default(), |sum, (_, cpu)| CpuRates {
                user: sum.user + cpu.user,
                system: sum.system + cpu.system,
                iowait: sum.iowait + cpu.iowait,
                idle: sum.idle + cpu.idle,
                steal: sum.steal + cpu.steal,
            }),
            cpus,
            running: to.running,
            blocked: to.blocked,
            switches_per_s: per_s(from.switches, to.switches),
            interrupts_per_s: per_s(from.interrupts, to.interrupts),
            swap_in_bytes_per_s: per_s(from.swapped_bytes.0, to.swapped_bytes.0),
            swap_out_bytes_per_s: per_s(from.swapped_bytes.1, to.swapped_bytes.1),
            paged_in_bytes_per_s: per_s(from.paged_bytes.0, to.paged_bytes.0),
            paged_out_bytes_per_s: per_s(from.paged_bytes.1, to.paged_bytes.1),
            pressure: PressureRates {
                cpu_some: share(before.cpu_some_us, after.cpu_some_us),
                io_some: share(before.io_some_us, after.io_some_us),
                io_full: share(before.io_full_us, after.io_full_us),
                memory_some: share(before.memory_some_us, after.memory_some_us),
            },
            memory: to.memory,
            disks: paired(&from.disks, &to.disks, |disk| disk.dev)
                .filter_map(|(from, to)| disk(from, to, span_s))
                .collect(),
            links: paired(&from.links, &to.links, |link| link.name.clone())
                .map(|(from, to)| link(from, to, span_s))
                .collect(),
            segments_per_s: from
                .tcp
                .zip(to.tcp)
                .map(|(from, to)| per_s(from.segments_out, to.segments_out)),
            retransmits_per_s: from
                .tcp
                .zip(to.tcp)
                .map(|(from, to)| per_s(from.retransmits, to.retransmits)),
            retransmits: from.tcp.zip(to.tcp).and_then(|(from, to)| {
                let again = to.retransmits.saturating_sub(from.retransmits);
                ratio(again, to.segments_out.saturating_sub(from.segments_out))
            }),
            process: process(&from.process, &to.process, span_ns),
            quota_throttled: from.quota_periods.zip(to.quota_periods).and_then(|(from, to)| {
                ratio(to.1.saturating_sub(from.1), to.0.saturating_sub(from.0))
            }),
        }
    }
}

fn unit(share: f64) -> f64 {
    share.clamp(0.0, 1.0)
}

/// A share, 0 to 1; `None` of nothing.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| unit(part as f64 / whole as f64))
}

/// What is in both lists, which have the same order but for what came and went.
fn paired<'a, T, K: PartialEq>(
    from: &'a [T],
    to: &'a [T],
    key: impl Fn(&T) -> K + 'a,
) -> impl Iterator<Item = (&'a T, &'a T)> {
    to.iter().enumerate().filter_map(move |(at, after)| {
        let wanted = key(after);
        let same = from.get(at).filter(|before| key(before) == wanted);
        let before = same.or_else(|| from.iter().find(|before| key(before) == wanted));
        Some((before?, after))
    })
}

/// Shares of the ticks that the kernel accounted for: between two readings these are not exactly
/// the time that went by.
fn cpu(from: &CpuTimes, to: &CpuTimes) -> CpuRates {
    // Idle and iowait are known to go back a little at times.
    let grown = |from: u64, to: u64| to.saturating_sub(from) as f64;
    let user = grown(from.user_ns, to.user_ns);
    let system = grown(from.system_ns, to.system_ns);
    let iowait = grown(from.iowait_ns, to.iowait_ns);
    let idle = grown(from.idle_ns, to.idle_ns);
    let steal = grown(from.steal_ns, to.steal_ns);
    let all = user + system + iowait + idle + steal;
    if all == 0.0 {
        return CpuRates::default();
    }
    CpuRates {
        user: user / all,
        system: system / all,
        iowait: iowait / all,
        idle: idle / all,
        steal: steal / all,
    }
}

/// `None` for one that was made anew.
fn disk(from: &Disk, to: &Disk, span_s: f64) -> Option<DiskRates> {
    let grown = |from: u64, to: u64| to.checked_sub(from).map(|more| more as f64);
    let reads = grown(from.reads, to.reads)?;
    let writes = grown(from.writes, to.writes)?;
    let (read_ms, write_ms) =
        (wrapping(from.read_ms, to.read_ms), wrapping(from.write_ms, to.write_ms));
    let mean = |ms: f64, count: f64| (count > 0.0).then(|| ms / count);
    Some(DiskRates {
        name: to.name.clone(),
        dev: to.dev,
        stacked: to.stacked,
        read_iops: reads / span_s,
        read_bytes_per_s: grown(from.read_bytes, to.read_bytes)? / span_s,
        write_iops: writes / span_s,
        write_bytes_per_s: grown(from.write_bytes, to.write_bytes)? / span_s,
        queue: wrapping(from.queue_ms, to.queue_ms) / 1e3 / span_s,
        busy: unit(wrapping(from.busy_ms, to.busy_ms) / 1e3 / span_s),
        latency_ms: mean(read_ms + write_ms, reads + writes),
        read_latency_ms: mean(read_ms, reads),
        write_latency_ms: mean(write_ms, writes),
    })
}

/// The kernel shows milliseconds of disks as 32 bits: after 49 days they begin anew.
fn wrapping(from: u64, to: u64) -> f64 {
    let wrapped = 1 << 32;
    let grown = match to.checked_sub(from) {
        Some(grown) => grown,
        None if from < wrapped => to + wrapped - from,
        None => 0,
    };
    // More than half of the range is a step back, not a way around.
    if to < from && grown > wrapped / 2 { 0.0 } else { grown as f64 }
}

fn link(from: &Link, to: &Link, span_s: f64) -> LinkRates {
    let per_s = |from: u64, to: u64| to.saturating_sub(from) as f64 / span_s;
    LinkRates {
        name: to.name.clone(),
        rx_bytes_per_s: per_s(from.rx_bytes, to.rx_bytes),
        tx_bytes_per_s: per_s(from.tx_bytes, to.tx_bytes),
        drops_per_s: per_s(from.drops, to.drops),
        bits_per_s: to.bits_per_s,
    }
}

fn process(from: &Process, to: &Process, span_ns: u64) -> ProcessRates {
    let span_s = span_ns as f64 / 1e9;
    let per_s = |from: u64, to: u64| to.saturating_sub(from) as f64 / span_s;
    let optional = |from: Option<u64>, to: Option<u64>| Some(per_s(from?, to?));
    let (mut ran_ns, mut waited_ns, mut busiest) = (0u64, 0u64, None);
    for (before, after) in paired(&from.threads, &to.threads, |thread| thread.tid) {
        let ran = after.ran_ns.saturating_sub(before.ran_ns);
        ran_ns = ran_ns.saturating_add(ran);
        waited_ns = waited_ns.saturating_add(after.waited_ns.saturating_sub(before.waited_ns));
        if busiest.is_none_or(|(_, most)| ran > most) {
            busiest = Some((after.tid, ran));
        }
    }
    ProcessRates {
        user: per_s(from.user_ns, to.user_ns) / 1e9,
        system: per_s(from.system_ns, to.system_ns) / 1e9,
        busiest: busiest.map(|(tid, ran)| (tid, unit(ran as f64 / span_ns as f64))),
        run_delay: ratio(waited_ns, ran_ns.saturating_add(waited_ns)),
        processes: to.processes,
        thread_count: to.thread_count,
        rss_bytes: to.rss_bytes,
        device_read_bytes_per_s: optional(from.device_read_bytes, to.device_read_bytes),
        device_write_bytes_per_s: optional(from.device_write_bytes, to.device_write_bytes),
        major_faults_per_s: per_s(from.major_faults, to.major_faults),
        minor_faults_per_s: per_s(from.minor_faults, to.minor_faults),
        voluntary_switches_per_s: per_s(from.voluntary_switches, to.voluntary_switches),
        involuntary_switches_per_s: per_s(from.involuntary_switches, to.involuntary_switches),
    }
}
