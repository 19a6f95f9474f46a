//! From samples to facts for a verdict: those of a command and its descendants, the ceilings that control groups set for a
//! process, and what is common to transfers and commands.
//!
//! The limits that apply to a command are read from the kernel meanwhile, as they may differ from those of this process: by
//! taskset(1), or in a cgroup of its own.

use crate::sample::{DiskRates, IoCeiling, Limits, LinkRates, Rates, Sample, Thread, usable_cpus};
use crate::verdict::{
    About, BusiestCpu, Ceiling, Direction, DiskFacts, Facts, NetworkFacts, Pressure, ThreadFacts,
};
use hakobu_sys::disk::{self, BlockDevice};
use hakobu_sys::{cgroup, proc};
use std::collections::HashMap;

/// Time in nanoseconds, and the amounts used until then.
type At = (u64, ServedByDisk);

/// The CPUs of the command are those that threads with this share of its CPU time may use, so that a shell
/// which only starts others does not count.
const MOST: f64 = 0.9;
/// Share of the run at each end that is ignored for ceilings: start-up and exit are not the command's main
/// work.
const EDGE: f64 = 0.1;
/// Most readings that are kept; beyond that every second one is dropped.
const MARKS_MAX: usize = 128;
/// Most threads whose affinity is read per sample.
const THREADS_MAX: usize = 256;
/// A thread that sleeps until a time of its choice in this share of all samples only looks after others (`timeout`, fio's
/// main process, a loop that polls): its sleep is not the work's.
const KEEPER: f64 = 0.9;
/// Most threads whose sleep is added up.
const SLEEPERS_MAX: usize = 4096;

/// Accumulates samples of a command.
#[derive(Debug, Default)]
pub struct Observer {
    first: Option<Sample>,
    last: Option<Sample>,
    /// Nanoseconds in which threads ran, and in which they waited for a CPU.
    ran_ns: u64,
    waited_ns: u64,
    /// Sum over intervals of the busiest thread's time.
    busiest_ns: u64,
    /// Samples, sum of threads in uninterruptible waits, samples that wait for a peer, samples with a runnable thread,
    /// samples in which all threads sleep.
    samples: u32,
    blocked: u32,
    awaits_peer: u32,
    runnable: u32,
    asleep: u32,
    /// Samples in which a thread sleeps until a time of its choice.
    timed_sleeps: HashMap<u32, u32>,
    /// Sets of CPUs with the time of the threads that may use them.
    allowed: Vec<(Vec<u32>, u64)>,
    group: Option<Group>,
    /// Different cgroups, seen in the last sample.
    moved: Option<Vec<u8>>,
}

/// Cgroups of most of the command, since it joined them.
#[derive(Debug)]
struct Group {
    name: Vec<u8>,
    since_ns: u64,
    ceilings: Ceilings,
    /// Amounts used, at equidistant times: at most [`MARKS_MAX`].
    served: Vec<At>,
    /// Samples between two readings, and samples since the last one.
    stride: u32,
    skipped: u32,
    /// First and last number of the quota's periods.
    periods: Option<(u64, u64)>,
    periods_last: Option<(u64, u64)>,
}

impl Observer {
    /// Adds a sample. The first one must be from before the start of the command.
    pub fn see(&mut self, sample: &Sample) {
        let process = &sample.process;
        if process.processes > 0 {
            self.samples += 1;
            self.blocked += process.blocked_threads;
            self.awaits_peer += u32::from(process.awaits_peer);
            self.runnable += u32::from(process.runnable_threads > 0);
            self.asleep += u32::from(process.runnable_threads + process.blocked_threads == 0);
            for tid in &process.timed_sleepers {
                if self.timed_sleeps.len() < SLEEPERS_MAX || self.timed_sleeps.contains_key(tid) {
                    *self.timed_sleeps.entry(*tid).or_default() += 1;
                }
            }
        }
        if let Some(last) = self.last.take() {
            self.see_threads(&last.process.threads, sample);
        }
        if let Some(group) = &mut self.group {
            group.look(sample.at_ns);
        }
        self.first.get_or_insert_with(|| sample.clone());
        self.last = Some(sample.clone());
    }

    fn see_threads(&mut self, before: &[Thread], sample: &Sample) {
        let mut each: Vec<(u32, u64, u64)> = Vec::new();
        for now in &sample.process.threads {
            let was = before.iter().find(|was| was.tid == now.tid).copied().unwrap_or_default();
            let ran = now.ran_ns.saturating_sub(was.ran_ns);
            each.push((now.tid, ran, now.waited_ns.saturating_sub(was.waited_ns)));
        }
        each.sort_by_key(|(_, ran, waited)| std::cmp::Reverse(ran + waited));
        self.ran_ns += each.iter().map(|(_, ran, _)| ran).sum::<u64>();
        self.waited_ns += each.iter().map(|(_, _, waited)| waited).sum::<u64>();
        self.busiest_ns += each.iter().map(|(_, ran, _)| *ran).max().unwrap_or(0);
        for (tid, ran, waited) in each.iter().take(THREADS_MAX).filter(|of| of.1 + of.2 > 0) {
            let Ok(cpus) = proc::affinity(*tid) else { continue };
            match self.allowed.iter_mut().find(|(set, _)| *set == cpus) {
                Some((_, time_ns)) => *time_ns += ran + waited,
                None => self.allowed.push((cpus, ran + waited)),
            }
        }
        // The cgroups of the busiest thread. A process that has ended is in none, so a move counts only if it
        // is seen twice.
        let Some(name) = each.first().and_then(|(tid, ..)| cgroup::groups_of(*tid)) else { return };
        let known = self.group.as_ref().is_some_and(|group| group.name == name);
        let again = self.group.is_none() || self.moved.as_ref() == Some(&name);
        if !known && again {
            self.group = Some(Group::new(name.clone(), sample));
        }
        self.moved = (!known && !again).then_some(name);
    }

    /// CPUs that the threads with most of the time may use.
    fn allowed(&self) -> Vec<u32> {
        let mut sets: Vec<&(Vec<u32>, u64)> = self.allowed.iter().collect();
        sets.sort_by_key(|(_, time_ns)| std::cmp::Reverse(*time_ns));
        let all_ns: u64 = sets.iter().map(|(_, time_ns)| time_ns).sum();
        let (mut cpus, mut covered_ns) = (Vec::new(), 0);
        for (set, time_ns) in sets {
            if covered_ns as f64 >= MOST * all_ns as f64 {
                break;
            }
            covered_ns += time_ns;
            cpus.extend(set);
        }
        cpus.sort_unstable();
        cpus.dedup();
        match cpus.is_empty() {
            true => proc::affinity(0).unwrap_or_default(),
            false => cpus,
        }
    }

    /// Mean number of threads that sleep of their own will: until a time of their choice, or all together for whatever
    /// reason.
    fn asleep(&self) -> f64 {
        let samples = f64::from(self.samples.max(1));
        let share = |count: u32| f64::from(count) / samples;
        let timed = self.timed_sleeps.values().copied().map(share);
        timed.filter(|share| *share < KEEPER).sum::<f64>().max(share(self.asleep))
    }

    /// Facts about the command, over all samples.
    pub fn facts(&self) -> Facts {
        let about = About::Command;
        let (Some(first), Some(last)) = (&self.first, &self.last) else {
            return Facts { about, ..Facts::default() };
        };
        let rates = Rates::between(first, last);
        let span_ns = last.at_ns.saturating_sub(first.at_ns);
        let allowed = self.allowed();
        // Counters of a group that most of the command ran outside of are meaningless.
        let group = self.group.as_ref().filter(|group| 2 * (last.at_ns - group.since_ns) > span_ns);
        let quota = group.and_then(|group| group.ceilings.limits.quota_cpus);
        let all_ns = self.ran_ns.saturating_add(self.waited_ns);
        let samples = f64::from(self.samples.max(1));
        Facts {
            about,
            span_s: rates.span_s,
            cpus: usable_cpus(&allowed, quota),
            cpu_used: rates.process.cpu(),
            thread_used: (span_ns > 0).then(|| self.busiest_ns as f64 / span_ns as f64),
            run_delay: (all_ns > 0).then(|| self.waited_ns as f64 / all_ns as f64),
            quota_throttled: group.and_then(Group::throttled),
            threads: (self.samples > 0).then(|| ThreadFacts {
                blocked: f64::from(self.blocked) / samples,
                waiting_for_peer: Some(f64::from(self.awaits_peer) / samples),
                runnable: Some(f64::from(self.runnable) / samples),
                asleep: self.asleep(),
            }),
            disks: disks(&rates, group),
            network: network(&rates),
            ..Facts::of_machine(&rates, &allowed)
        }
    }
}

impl Group {
    fn new(name: Vec<u8>, sample: &Sample) -> Group {
        let limits = Limits::of_groups(&name, Vec::new());
        let ceilings = Ceilings::of_disks(limits, sample.disks.iter().map(|disk| disk.dev));
        let periods = ceilings.limits.quota_periods();
        let since_ns = sample.at_ns;
        let served = vec![(since_ns, ceilings.served())];
        let (stride, skipped, periods_last) = (1, 0, periods);
        Group { name, since_ns, ceilings, served, stride, skipped, periods, periods_last }
    }

    fn look(&mut self, now_ns: u64) {
        self.periods_last = self.ceilings.limits.quota_periods();
        self.skipped += 1;
        if self.skipped < self.stride {
            return;
        }
        self.skipped = 0;
        self.served.push((now_ns, self.ceilings.served()));
        if self.served.len() >= MARKS_MAX {
            let mut odd = false;
            self.served.retain(|_| {
                odd = !odd;
                odd
            });
            self.stride = self.stride.saturating_mul(2);
        }
    }

    /// Two readings, away from the beginning and the end.
    fn steady(&self) -> Option<(&At, &At)> {
        let (first, last) = self.served.first().zip(self.served.last())?;
        let edge_ns = (EDGE * last.0.saturating_sub(first.0) as f64) as u64;
        let from = self.served.iter().find(|mark| mark.0 >= first.0 + edge_ns)?;
        let to = self.served.iter().rev().find(|mark| mark.0 + edge_ns <= last.0)?;
        (from.0 < to.0).then_some((from, to))
    }

    /// Rates reached under the ceilings of a disk.
    fn reached(&self, disk: &DiskRates) -> Vec<Ceiling> {
        let Some(((from_ns, from), (to_ns, to))) = self.steady() else { return Vec::new() };
        self.ceilings.reached(from, to, (to_ns - from_ns) as f64 / 1e9, disk)
    }

    /// Share of the quota's periods that were throttled.
    fn throttled(&self) -> Option<f64> {
        let ((from, throttled), (to, last)) = self.periods.zip(self.periods_last)?;
        let periods = to.saturating_sub(from);
        (periods > 0).then(|| last.saturating_sub(throttled) as f64 / periods as f64)
    }
}

/// The machine's disks, with the rates reached under the group's ceilings.
fn disks(rates: &Rates, group: Option<&Group>) -> Vec<DiskFacts> {
    let each = rates.disks.iter().map(|disk| {
        let ceilings = group.map(|group| group.reached(disk)).unwrap_or_default();
        DiskFacts { ceilings, ..DiskFacts::of(disk) }
    });
    each.collect()
}

/// The interface with the most traffic, including loopback.
fn network(rates: &Rates) -> Option<NetworkFacts> {
    let busier = |link: &LinkRates| link.rx_bytes_per_s.max(link.tx_bytes_per_s);
    let link = rates.links.iter().max_by(|a, b| busier(a).total_cmp(&busier(b)))?;
    Some(NetworkFacts {
        bytes_per_s: busier(link),
        link_bytes_per_s: link.bits_per_s.map(|bits| bits as f64 / 8.0),
        retransmits: rates.retransmits,
        ..NetworkFacts::default()
    })
}

/// Amount used under each ceiling since its counters began, in the order of the ceilings; `None` if its group
/// has no counters.
pub type ServedByDisk = Vec<Option<u64>>;

/// The ceilings of one process.
#[derive(Debug, Default)]
pub struct Ceilings {
    /// Limits of the process.
    pub limits: Limits,
    /// Disk ceilings with the device number of the disk.
    found: Vec<((u32, u32), IoCeiling)>,
}

impl Ceilings {
    /// Ceilings of this process and of the disks below file systems with these device numbers.
    pub fn of(devs: &[u64]) -> Ceilings {
        let mut disks: Vec<BlockDevice> = Vec::new();
        for device in devs.iter().filter_map(|dev| disk::below(*dev)) {
            let parts = disk::made_of(device.dev);
            for device in std::iter::once(device).chain(parts) {
                if !disks.contains(&device) {
                    disks.push(device);
                }
            }
        }
        Ceilings::of_disks(Limits::read(), disks.into_iter().map(|device| device.dev))
    }

    /// Ceilings of a process with these limits and of disks with these device numbers.
    pub fn of_disks(limits: Limits, disks: impl Iterator<Item = (u32, u32)>) -> Ceilings {
        let each = |dev: (u32, u32)| {
            limits.io_ceilings(dev).into_iter().map(move |ceiling| (dev, ceiling))
        };
        let found = disks.flat_map(each).collect();
        Ceilings { limits, found }
    }

    /// Limits as texts: CPUs, memory, and rates of each disk.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![format!("CPUs {:.2}", self.limits.cpus())];
        words.extend(self.limits.memory_bytes.map(|bytes| format!("memory limit {bytes}")));
        let mut disks: Vec<String> = self
            .found
            .iter()
            .map(|((major, minor), ceiling)| {
                let what = if ceiling.operations { "operations" } else { "bytes" };
                let verb = if ceiling.writes { "written" } else { "read" };
                format!("disk {major}:{minor} {} {what} {verb} a second", ceiling.per_s)
            })
            .collect();
        disks.sort();
        disks.dedup();
        words.extend(disks);
        words
    }

    /// Amounts used so far.
    pub fn served(&self) -> ServedByDisk {
        let each = self.found.iter().map(|(dev, ceiling)| {
            let served = self.limits.io_served_below(*dev, ceiling)?;
            Some(match (ceiling.operations, ceiling.writes) {
                (true, false) => served.read_ops,
                (true, true) => served.write_ops,
                (false, false) => served.read_bytes,
                (false, true) => served.write_bytes,
            })
        });
        each.collect()
    }

    /// Ceilings of a disk, and the rates reached between two readings `span_s` apart: by the counters of
    /// their groups, else by the disk's own.
    pub fn reached(
        &self,
        from: &ServedByDisk,
        to: &ServedByDisk,
        span_s: f64,
        disk: &DiskRates,
    ) -> Vec<Ceiling> {
        let each = self.found.iter().enumerate().filter(|(_, (dev, _))| *dev == disk.dev);
        let ceilings = each.map(|(index, (_, ceiling))| {
            let counted = from.get(index).copied().flatten().zip(to.get(index).copied().flatten());
            let by_disk = match (ceiling.operations, ceiling.writes) {
                (true, false) => disk.read_iops,
                (true, true) => disk.write_iops,
                (false, false) => disk.read_bytes_per_s,
                (false, true) => disk.write_bytes_per_s,
            };
            Ceiling {
                operations: ceiling.operations,
                direction: if ceiling.writes { Direction::Writes } else { Direction::Reads },
                limit: ceiling.per_s as f64,
                reached: counted
                    .map_or(by_disk, |(from, to)| to.saturating_sub(from) as f64 / span_s),
                from: ceiling.from,
            }
        });
        ceilings.collect()
    }
}

impl Facts {
    /// Facts about the machine from rates, with the numbers of the usable CPUs.
    pub fn of_machine(rates: &Rates, allowed: &[u32]) -> Facts {
        let cpus: Vec<_> = rates.cpus.iter().filter(|(cpu, _)| allowed.contains(cpu)).collect();
        let known = !cpus.is_empty();
        let busiest =
            cpus.iter().map(|(number, cpu)| BusiestCpu { number: Some(*number), used: cpu.used() });
        Facts {
            cpus_allowed: (!allowed.is_empty()).then_some(allowed.len() as f64),
            machine_used: known.then(|| cpus.iter().map(|(_, cpu)| cpu.used()).sum()),
            machine_cpus: (!rates.cpus.is_empty()).then_some(rates.cpus.len() as f64),
            busiest_cpu: busiest.max_by(|a, b| a.used.total_cmp(&b.used)),
            iowait: known.then_some(rates.cpu.iowait),
            stolen: known.then(|| cpus.iter().map(|(_, cpu)| cpu.steal).sum()),
            pressure: Pressure {
                cpu: rates.pressure.cpu_some,
                io: rates.pressure.io_some,
                memory: rates.pressure.memory_some,
            },
            ..Facts::default()
        }
    }
}

impl DiskFacts {
    /// Facts about a disk from rates.
    pub fn of(rates: &DiskRates) -> DiskFacts {
        DiskFacts {
            name: rates.name.clone(),
            read_iops: rates.read_iops,
            read_bytes_per_s: rates.read_bytes_per_s,
            write_iops: rates.write_iops,
            write_bytes_per_s: rates.write_bytes_per_s,
            queue: Some(rates.queue),
            busy: rates.busy,
            latency_ms: rates.latency_ms.unwrap_or(0.0),
            ..DiskFacts::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Level, Resource, judge};

    /// A machine with two CPUs; a command with these threads uses `own` of them.
    fn sample(at_s: u64, cpus: f64, threads: &[(u32, f64, f64)], blocked: u32) -> Sample {
        let ns = |s: f64| (s * 1e9) as u64;
        let mut sample = Sample { at_ns: at_s * 1_000_000_000, ..Sample::default() };
        let seconds = at_s as f64;
        for number in 0..2 {
            let used = cpus.min(1.0 + f64::from(number)) / 2.0 * seconds;
            let times = crate::sample::CpuTimes {
                user_ns: ns(used),
                idle_ns: ns(seconds - used),
                ..Default::default()
            };
            sample.cpus.push((number, times));
        }
        let thread = |(tid, ran, waited): &(u32, f64, f64)| Thread {
            tid: *tid,
            ran_ns: ns(ran * seconds),
            waited_ns: ns(waited * seconds),
        };
        sample.process.threads = threads.iter().map(thread).collect();
        sample.process.user_ns = sample.process.threads.iter().map(|thread| thread.ran_ns).sum();
        sample.process.processes = u32::from(!threads.is_empty());
        sample.process.blocked_threads = blocked;
        sample
    }

    fn facts(cpus: f64, threads: &[(u32, f64, f64)], blocked: u32) -> Facts {
        let mut observer = Observer::default();
        for at_s in 0..5 {
            observer.see(&sample(at_s, cpus, threads, blocked));
        }
        // The threads' ids may exist on this machine, so their affinity is set here.
        Facts { cpus: 2.0, cpus_allowed: Some(2.0), ..observer.facts() }
    }

    #[test]
    fn threads_are_summed_up() {
        let found = facts(1.0, &[(4_194_301, 0.7, 0.1), (4_194_302, 0.2, 0.2)], 2);
        assert_eq!((found.about, found.span_s), (About::Command, 4.0));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(near(found.cpu_used, 0.9) && near(found.thread_used.unwrap(), 0.7), "{found:?}");
        assert!(near(found.run_delay.unwrap(), 0.25), "{found:?}");
        assert_eq!(found.threads.unwrap().blocked, 2.0);
    }

    #[test]
    fn sleep_of_its_own_will_is_added_up() {
        let mut observer = Observer::default();
        for at_s in 0..10_u32 {
            let mut of = sample(u64::from(at_s), 2.0, &[(4_194_301, 0.2, 0.2)], 0);
            of.process.runnable_threads = u32::from(at_s % 5 > 0);
            // One that only looks after others, two that keep to a rate.
            of.process.timed_sleepers = vec![7];
            of.process.timed_sleepers.extend((at_s % 2 == 0).then_some(8));
            of.process.timed_sleepers.extend((at_s < 4).then_some(9));
            observer.see(&of);
        }
        let threads = observer.facts().threads.unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(threads.runnable.unwrap(), 0.8) && near(threads.asleep, 0.9), "{threads:?}");
    }

    #[test]
    fn a_thread_that_never_rests_is_named() {
        let found = judge(&facts(1.0, &[(4_194_301, 0.98, 0.0), (4_194_302, 0.01, 0.0)], 0));
        assert_eq!((found.resource, found.level), (Resource::Thread, Level::AtLimit));
        let found = judge(&facts(0.02, &[(4_194_301, 0.01, 0.0)], 0));
        assert_eq!(found.resource, Resource::None);
        assert_eq!(found.advice.help, crate::verdict::Help::CommandIdle);
        assert_eq!(judge(&Observer::default().facts()).resource, Resource::None);
    }

    #[test]
    fn reached_is_what_the_group_counted_or_else_the_disk() {
        let ceiling = |operations, writes, per_s| {
            let from = "io.max";
            ((8, 0), IoCeiling { operations, writes, per_s, from, group: 0 })
        };
        let ceilings = Ceilings {
            found: vec![
                ceiling(true, true, 3000),
                ceiling(false, false, 1_000_000),
                ((8, 16), ceiling(true, false, 5).1),
            ],
            ..Ceilings::default()
        };
        let disk = DiskRates {
            dev: (8, 0),
            write_iops: 10.0,
            read_bytes_per_s: 777.0,
            ..DiskRates::default()
        };
        let (from, to) = (vec![Some(100), None, Some(0)], vec![Some(6100), Some(5), Some(0)]);
        let found = ceilings.reached(&from, &to, 2.0, &disk);
        let found: Vec<_> = found.iter().map(|c| (c.limit, c.reached, c.direction)).collect();
        assert_eq!(found, [(3000.0, 3000.0, Direction::Writes), (1e6, 777.0, Direction::Reads)]);
    }
}
