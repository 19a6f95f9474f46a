//! Rates between two samples, per second or as shares of time. A counter that decreased (a recreated
//! interface or disk) counts as zero.

use crate::sample::{CpuTimes, Disk, Memory, Process, Sample};

/// All rates between two samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Seconds between the samples; if 0, all else is zero or `None`.
    pub span_s: f64,
    /// CPU time of all CPUs, in CPUs: 1.5 means one and a half CPUs.
    pub cpu: CpuRates,
    /// Each CPU by number, as shares 0 to 1.
    pub cpus: Vec<(u32, CpuRates)>,
    /// Runnable tasks at the end.
    pub running: u32,
    /// Tasks blocked on I/O at the end.
    pub blocked: u32,
    /// Context switches per second.
    pub switches_per_s: f64,
    /// Interrupts per second.
    pub interrupts_per_s: f64,
    /// Bytes swapped in per second.
    pub swap_in_bytes_per_s: f64,
    /// Bytes swapped out per second.
    pub swap_out_bytes_per_s: f64,
    /// Bytes per second requested from block devices for reading (vmstat's bi, in bytes).
    pub paged_in_bytes_per_s: f64,
    /// Bytes per second requested for writing (vmstat's bo, in bytes).
    pub paged_out_bytes_per_s: f64,
    /// Pressure stall information.
    pub pressure: PressureRates,
    /// Memory use at the end.
    pub memory: Memory,
    /// Disks in both samples.
    pub disks: Vec<DiskRates>,
    /// Interfaces in both samples.
    pub links: Vec<LinkRates>,
    /// TCP segments sent per second.
    pub segments_per_s: Option<f64>,
    /// TCP segments retransmitted per second.
    pub retransmits_per_s: Option<f64>,
    /// Retransmitted share of the sent segments, 0 to 1; `None` if none were sent.
    pub retransmits: Option<f64>,
    /// The watched process.
    pub process: ProcessRates,
    /// Throttled share of the CPU quota's periods, 0 to 1; `None` without a quota.
    pub quota_throttled: Option<f64>,
}

/// CPU time by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuRates {
    /// User space.
    pub user: f64,
    /// Kernel.
    pub system: f64,
    /// Idle with I/O in flight.
    pub iowait: f64,
    /// Idle.
    pub idle: f64,
    /// Stolen by the hypervisor.
    pub steal: f64,
}

impl CpuRates {
    /// User and kernel.
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
    /// All tasks waited for I/O.
    pub io_full: Option<f64>,
    /// Some task waited for memory.
    pub memory_some: Option<f64>,
}

/// Rates of a disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskRates {
    /// Kernel name.
    pub name: String,
    /// Device number.
    pub dev: (u32, u32),
    /// See [`Disk::stacked`].
    pub stacked: bool,
    /// Reads per second.
    pub read_iops: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Writes per second.
    pub write_iops: f64,
    /// Bytes written per second.
    pub write_bytes_per_s: f64,
    /// Mean queue depth: requests in flight.
    pub queue: f64,
    /// Utilisation: share of the time with a request in flight, 0 to 1.
    pub busy: f64,
    /// Mean latency of requests in milliseconds; `None` if none completed.
    pub latency_ms: Option<f64>,
    /// Mean latency of reads.
    pub read_latency_ms: Option<f64>,
    /// Mean latency of writes.
    pub write_latency_ms: Option<f64>,
}

/// Rates of a network interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkRates {
    /// Name.
    pub name: String,
    /// Bytes received per second.
    pub rx_bytes_per_s: f64,
    /// Bytes sent per second.
    pub tx_bytes_per_s: f64,
    /// Packets dropped per second.
    pub drops_per_s: f64,
    /// Link speed, bits per second.
    pub bits_per_s: Option<u64>,
}

/// Rates of the watched process or tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessRates {
    /// CPUs in user space.
    pub user: f64,
    /// CPUs in the kernel.
    pub system: f64,
    /// Busiest thread: id and share of the time on a CPU, 0 to 1.
    pub busiest: Option<(u32, f64)>,
    /// Share of the threads' runnable time that was spent waiting for a CPU, 0 to 1; `None` if none was
    /// runnable.
    pub run_delay: Option<f64>,
    /// Number of processes at the end.
    pub processes: u32,
    /// Number of threads at the end.
    pub thread_count: u32,
    /// Resident memory at the end, bytes.
    pub rss_bytes: u64,
    /// Bytes read from devices per second.
    pub device_read_bytes_per_s: Option<f64>,
    /// Bytes made dirty per second.
    pub device_write_bytes_per_s: Option<f64>,
    /// Major page faults per second.
    pub major_faults_per_s: f64,
}

impl ProcessRates {
    /// CPUs used, in user space and the kernel.
    pub fn cpu(&self) -> f64 {
        self.user + self.system
    }
}

impl Rates {
    /// Rates from `from` to `to`, two samples of one sampler in this order.
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
        let tcp = from.tcp.zip(to.tcp);
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
                .map(|(from, to)| LinkRates {
                    name: to.name.clone(),
                    rx_bytes_per_s: per_s(from.rx_bytes, to.rx_bytes),
                    tx_bytes_per_s: per_s(from.tx_bytes, to.tx_bytes),
                    drops_per_s: per_s(from.drops, to.drops),
                    bits_per_s: to.bits_per_s,
                })
                .collect(),
            segments_per_s: tcp.map(|(from, to)| per_s(from.segments_out, to.segments_out)),
            retransmits_per_s: tcp.map(|(from, to)| per_s(from.retransmits, to.retransmits)),
            retransmits: tcp.and_then(|(from, to)| {
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

/// A share, 0 to 1; `None` if the whole is 0.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| unit(part as f64 / whole as f64))
}

/// Pairs of entries in both lists, which have the same order except for added and removed entries.
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

/// Shares of the ticks that the kernel accounted for, which may differ slightly from the elapsed time.
fn cpu(from: &CpuTimes, to: &CpuTimes) -> CpuRates {
    // Idle and iowait may decrease slightly.
    let grown = |from: u64, to: u64| to.saturating_sub(from) as f64;
    let grown = [
        grown(from.user_ns, to.user_ns),
        grown(from.system_ns, to.system_ns),
        grown(from.iowait_ns, to.iowait_ns),
        grown(from.idle_ns, to.idle_ns),
        grown(from.steal_ns, to.steal_ns),
    ];
    let all: f64 = grown.iter().sum();
    if all == 0.0 {
        return CpuRates::default();
    }
    let [user, system, iowait, idle, steal] = grown.map(|part| part / all);
    CpuRates { user, system, iowait, idle, steal }
}

/// `None` for a disk that was recreated.
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

/// The kernel's disk times in milliseconds are 32 bits wide and wrap after 49 days.
fn wrapping(from: u64, to: u64) -> f64 {
    let wrapped = 1 << 32;
    let grown = match to.checked_sub(from) {
        Some(grown) => grown,
        None if from < wrapped => to + wrapped - from,
        None => 0,
    };
    // More than half of the range is a decrease, not a wrap.
    if to < from && grown > wrapped / 2 { 0.0 } else { grown as f64 }
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
    }
}
