//! What happened between two samples, as rates.

use hakobu_transfer::sample::{CpuTimes, Disk, Link, Memory, PressureTimes, Process, Sample};

/// Nanoseconds in a second.
const NS: f64 = 1e9;

/// Shares of CPU time, 0 to 1 of all CPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// User space.
    pub user: f64,
    /// The kernel.
    pub system: f64,
    /// Nothing to do but I/O under way.
    pub iowait: f64,
    /// Somebody else's on the same hardware.
    pub steal: f64,
    /// Nothing to do.
    pub idle: f64,
}

impl Shares {
    /// The shares of what passed between two readings of any number of CPUs; `None` where no time
    /// passed that the kernel had counted yet (it counts in ticks, mostly of 10 ms).
    fn of(times: impl Iterator<Item = (CpuTimes, CpuTimes)>) -> Option<Shares> {
        let mut sums = [0u64; 5];
        for (old, new) in times {
            // iowait and idle may go back (proc_stat(5)).
            for (sum, (old, new)) in sums.iter_mut().zip([
                (old.user_ns, new.user_ns),
                (old.system_ns, new.system_ns),
                (old.iowait_ns, new.iowait_ns),
                (old.steal_ns, new.steal_ns),
                (old.idle_ns, new.idle_ns),
            ]) {
                *sum += new.saturating_sub(old);
            }
        }
        let all: u64 = sums.iter().sum();
        let [user, system, iowait, steal, idle] = sums.map(|sum| sum as f64 / all.max(1) as f64);
        (all > 0).then_some(Shares { user, system, iowait, steal, idle })
    }

    /// What was used for work.
    pub fn busy(&self) -> f64 {
        self.user + self.system
    }
}

/// Shares of time in which some (all) tasks waited, 0 to 1; `None` where the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// Some task, for a CPU.
    pub cpu_some: Option<f64>,
    /// Some task, for I/O.
    pub io_some: Option<f64>,
    /// All tasks, for I/O.
    pub io_full: Option<f64>,
    /// Some task, for memory.
    pub memory_some: Option<f64>,
}

/// One disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskRow {
    /// As the kernel calls it.
    pub name: String,
    /// Reads a second.
    pub reads_per_s: f64,
    /// Writes a second.
    pub writes_per_s: f64,
    /// Bytes read a second.
    pub read_bytes_per_s: f64,
    /// Bytes written a second.
    pub write_bytes_per_s: f64,
    /// Mean milliseconds that a read took, of those that ended.
    pub read_ms: Option<f64>,
    /// Mean milliseconds that a write took, of those that ended.
    pub write_ms: Option<f64>,
    /// Share of time with a request in flight, 0 to 1.
    pub busy: f64,
    /// Mean number of requests in flight.
    pub queue: f64,
}

/// One network interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkRow {
    /// `eth0`, `lo`.
    pub name: String,
    /// Bytes received a second.
    pub rx_bytes_per_s: f64,
    /// Bytes sent a second.
    pub tx_bytes_per_s: f64,
    /// Packets dropped a second.
    pub drops_per_s: f64,
}

/// The watched processes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessRow {
    /// CPUs in use: 1 is one CPU all the time.
    pub cpus: f64,
    /// CPUs in use by the thread that used most.
    pub busiest_thread: f64,
    /// Resident memory at the end, bytes.
    pub rss_bytes: u64,
    /// Bytes a second that came from devices.
    pub read_bytes_per_s: f64,
    /// Bytes a second that go to devices.
    pub write_bytes_per_s: f64,
    /// Faults a second that needed a device.
    pub major_faults_per_s: f64,
}

/// What happened in one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Its end, seconds since the beginning.
    pub at_s: f64,
    /// Its length in seconds.
    pub took_s: f64,
    /// Tasks that ran or could, at its end.
    pub running: u32,
    /// Tasks that waited for I/O, at its end.
    pub blocked: u32,
    /// Memory at its end.
    pub memory: Memory,
    /// Bytes swapped in and out a second.
    pub swapped_bytes_per_s: (f64, f64),
    /// Bytes a second that block devices were asked to read and write.
    pub paged_bytes_per_s: (f64, f64),
    /// Interrupts a second.
    pub interrupts_per_s: f64,
    /// Context switches a second.
    pub switches_per_s: f64,
    /// All CPUs together.
    pub cpu: Option<Shares>,
    /// The CPU that worked most, with its number and the share.
    pub busiest_cpu: Option<(u32, f64)>,
    /// Each CPU's working share, in the order of their numbers.
    pub cpus: Vec<(u32, f64)>,
    /// Waiting.
    pub pressure: Pressure,
    /// Disks.
    pub disks: Vec<DiskRow>,
    /// Interfaces.
    pub links: Vec<LinkRow>,
    /// TCP segments sent again, a second.
    pub retransmits_per_s: Option<f64>,
    /// The watched processes.
    pub process: ProcessRow,
    /// Share of the cgroup's periods of CPU quota that were throttled.
    pub throttled: Option<f64>,
}

impl Row {
    /// What happened between two samples, of which `new` was read later. Counters that went back
    /// (an interface that was made anew) count as if nothing had happened.
    pub fn between(old: &Sample, new: &Sample) -> Row {
        let took_s = new.at_ns.saturating_sub(old.at_ns) as f64 / NS;
        let per_s = |old: u64, new: u64| rate(old, new, took_s);
        let pairs = || new.cpus.iter().filter_map(|(n, t)| Some((*n, cpu(old, *n)?, *t)));
        let cpus: Vec<(u32, f64)> = pairs()
            .filter_map(|(n, old, new)| Some((n, Shares::of([(old, new)].into_iter())?.busy())))
            .collect();
        let pair = |old: (u64, u64), new: (u64, u64)| (per_s(old.0, new.0), per_s(old.1, new.1));
        Row {
            at_s: new.at_ns as f64 / NS,
            took_s,
            running: new.running,
            blocked: new.blocked,
            memory: new.memory,
            swapped_bytes_per_s: pair(old.swapped_bytes, new.swapped_bytes),
            paged_bytes_per_s: pair(old.paged_bytes, new.paged_bytes),
            interrupts_per_s: per_s(old.interrupts, new.interrupts),
            switches_per_s: per_s(old.switches, new.switches),
            cpu: Shares::of(pairs().map(|(_, old, new)| (old, new))),
            busiest_cpu: cpus.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)),
            cpus,
            pressure: pressure(&old.pressure, &new.pressure, took_s),
            disks: new.disks.iter().map(|d| disk(find_disk(old, &d.name), d, took_s)).collect(),
            links: new
                .links
                .iter()
                .filter_map(|l| link(find_link(old, &l.name)?, l, took_s))
                .collect(),
            retransmits_per_s: old
                .tcp
                .zip(new.tcp)
                .map(|(old, new)| per_s(old.retransmits, new.retransmits)),
            process: process(&old.process, &new.process, took_s),
            throttled: old.quota_periods.zip(new.quota_periods).and_then(|(old, new)| {
                let periods = new.0.saturating_sub(old.0);
                let throttled = new.1.saturating_sub(old.1);
                (periods > 0).then(|| throttled as f64 / periods as f64)
            }),
        }
    }

    /// Bytes a second received and sent by all interfaces but the loopback.
    pub fn network_bytes_per_s(&self) -> (f64, f64) {
        let links = self.links.iter().filter(|link| link.name != "lo");
        links
            .fold((0.0, 0.0), |(rx, tx), link| (rx + link.rx_bytes_per_s, tx + link.tx_bytes_per_s))
    }

    /// Bytes a second over the loopback, where sent is received.
    pub fn loopback_bytes_per_s(&self) -> f64 {
        self.links.iter().find(|link| link.name == "lo").map_or(0.0, |link| link.tx_bytes_per_s)
    }
}

/// What happened in a second; nothing where no time passed.
fn rate(old: u64, new: u64, took_s: f64) -> f64 {
    if took_s > 0.0 { new.saturating_sub(old) as f64 / took_s } else { 0.0 }
}

fn cpu(sample: &Sample, number: u32) -> Option<CpuTimes> {
    sample.cpus.iter().find(|(n, _)| *n == number).map(|(_, times)| *times)
}

/// A disk of a sample. One that is not there has done nothing since the boot.
pub(super) fn find_disk<'a>(sample: &'a Sample, name: &str) -> Option<&'a Disk> {
    sample.disks.iter().find(|disk| disk.name == name)
}

/// An interface of a sample.
pub(super) fn find_link<'a>(sample: &'a Sample, name: &str) -> Option<&'a Link> {
    sample.links.iter().find(|link| link.name == name)
}

fn disk(old: Option<&Disk>, new: &Disk, took_s: f64) -> DiskRow {
    let none = Disk::default();
    let old = old.unwrap_or(&none);
    let per_s = |old: u64, new: u64| rate(old, new, took_s);
    DiskRow {
        name: new.name.clone(),
        reads_per_s: per_s(old.reads, new.reads),
        writes_per_s: per_s(old.writes, new.writes),
        read_bytes_per_s: per_s(old.read_bytes, new.read_bytes),
        write_bytes_per_s: per_s(old.write_bytes, new.write_bytes),
        read_ms: mean(old.read_ms, new.read_ms, old.reads, new.reads),
        write_ms: mean(old.write_ms, new.write_ms, old.writes, new.writes),
        // The kernel rounds each stretch: the sum may be a little above the time that passed.
        busy: (per_s(old.busy_ms, new.busy_ms) / 1e3).min(1.0),
        queue: per_s(old.queue_ms, new.queue_ms) / 1e3,
    }
}

/// Milliseconds for each of what ended, where something did.
pub(super) fn mean(old_ms: u64, new_ms: u64, old: u64, new: u64) -> Option<f64> {
    let count = new.saturating_sub(old);
    (count > 0).then(|| new_ms.saturating_sub(old_ms) as f64 / count as f64)
}

/// An interface that came up meanwhile counts from the next sample on: what it has carried before
/// is not known.
fn link(old: &Link, new: &Link, took_s: f64) -> Option<LinkRow> {
    let per_s = |old: u64, new: u64| rate(old, new, took_s);
    Some(LinkRow {
        name: new.name.clone(),
        rx_bytes_per_s: per_s(old.rx_bytes, new.rx_bytes),
        tx_bytes_per_s: per_s(old.tx_bytes, new.tx_bytes),
        drops_per_s: per_s(old.drops, new.drops),
    })
}

pub(super) fn pressure(old: &PressureTimes, new: &PressureTimes, took_s: f64) -> Pressure {
    let share = |old: Option<u64>, new: Option<u64>| {
        let (old, new) = old.zip(new)?;
        Some((rate(old, new, took_s) / 1e6).min(1.0))
    };
    Pressure {
        cpu_some: share(old.cpu_some_us, new.cpu_some_us),
        io_some: share(old.io_some_us, new.io_some_us),
        io_full: share(old.io_full_us, new.io_full_us),
        memory_some: share(old.memory_some_us, new.memory_some_us),
    }
}

fn process(old: &Process, new: &Process, took_s: f64) -> ProcessRow {
    let per_s = |old: u64, new: u64| rate(old, new, took_s);
    let before = |tid: u32| {
        old.threads.iter().find(|thread| thread.tid == tid).map_or(0, |thread| thread.ran_ns)
    };
    let busiest = new.threads.iter().map(|thread| thread.ran_ns.saturating_sub(before(thread.tid)));
    ProcessRow {
        cpus: per_s(old.user_ns + old.system_ns, new.user_ns + new.system_ns) / NS,
        // A thread that began before it was watched may have run longer than the interval.
        busiest_thread: (rate(0, busiest.max().unwrap_or(0), took_s) / NS).min(1.0),
        rss_bytes: new.rss_bytes,
        read_bytes_per_s: per_s(old.device_read_bytes, new.device_read_bytes),
        write_bytes_per_s: per_s(old.device_write_bytes, new.device_write_bytes),
        major_faults_per_s: per_s(old.major_faults, new.major_faults),
    }
}
