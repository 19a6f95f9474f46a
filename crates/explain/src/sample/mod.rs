//! Samples of kernel counters of the machine and this process (or another one), cheap enough to read often;
//! and rates between two samples. Values that a kernel, a container or missing permission hides are `None` or
//! empty, never an error.

mod limits;
mod parse;
mod process;
mod rates;

use crate::sample::process::{OwnProcess, ProcessTree, TreeDetail};
use hakobu_sys::disk::{self, Interface};
use hakobu_sys::proc::{self, Counters, MachineFile};
pub use limits::{IoCeiling, Limits, Served, usable_cpus};
pub use process::TreeCpuTime;
pub use rates::{CpuRates, DiskRates, LinkRates, PressureRates, ProcessRates, Rates};
use std::time::Duration;

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

/// True if a kernel function, as named by [`hakobu_sys::proc::waiting_in`], is one in which a thread waits
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

/// Process counters to read in addition to the machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// None.
    Machine,
    /// This process and each of its threads.
    ThisProcess,
    /// A process and its descendants.
    Tree(u32),
    /// Children of this process and their descendants, living and ended, since this process began; orphans as well, if
    /// it is their subreaper (PR_SET_CHILD_SUBREAPER, prctl(2)).
    Children,
}

/// Reads samples; files stay open in between.
#[derive(Debug)]
pub struct Sampler {
    began_ns: u64,
    buffer: Vec<u8>,
    stat: Option<Counters>,
    memory: Option<Counters>,
    paging: Option<Counters>,
    disks: Option<Counters>,
    links: Option<Counters>,
    protocols: Option<Counters>,
    pressure: [Option<Counters>; 3],
    quota: Option<Counters>,
    known: LinkCache,
    watching: Watching,
}

#[derive(Debug)]
enum Watching {
    Nobody,
    Own(Box<OwnProcess>),
    Tree(Box<ProcessTree>),
}

impl Sampler {
    /// Opens the available files. Never fails: missing files are missing in samples.
    pub fn new(of: Watched) -> Sampler {
        let tree = |root| Watching::Tree(Box::new(ProcessTree::new(root, TreeDetail::Everything)));
        Sampler {
            began_ns: proc::now_ns(),
            buffer: Vec::new(),
            stat: Counters::machine(MachineFile::Stat),
            memory: Counters::machine(MachineFile::Memory),
            paging: Counters::machine(MachineFile::Paging),
            disks: Counters::machine(MachineFile::Disks),
            links: Counters::machine(MachineFile::Links),
            protocols: Counters::machine(MachineFile::Protocols),
            pressure: [
                MachineFile::PressureCpu,
                MachineFile::PressureIo,
                MachineFile::PressureMemory,
            ]
            .map(Counters::machine),
            quota: limits::Limits::read().quota_counters(),
            known: LinkCache::default(),
            watching: match of {
                Watched::Machine => Watching::Nobody,
                Watched::ThisProcess => Watching::Own(Box::new(OwnProcess::new())),
                Watched::Tree(root) => tree(Some(root)),
                Watched::Children => tree(None),
            },
        }
    }

    /// Takes a sample. To include all usage of a process, sample after it has ended and before it is waited
    /// for.
    pub fn read(&mut self) -> Sample {
        let now_ns = proc::now_ns();
        let mut sample =
            Sample { at_ns: now_ns.saturating_sub(self.began_ns), ..Sample::default() };
        self.known.age(sample.at_ns);
        // Process counters first, closest to the recorded time.
        sample.process = match &mut self.watching {
            Watching::Nobody => Process::default(),
            Watching::Own(own) => own.read(&mut self.buffer),
            Watching::Tree(tree) => tree.read(&mut self.buffer),
        };
        self.machine(&mut sample);
        sample
    }

    fn machine(&mut self, sample: &mut Sample) {
        let buffer = &mut self.buffer;
        if let Some(text) = read(&self.stat, buffer) {
            parse::stat(text, proc::ticks_per_s(), sample);
        }
        sample.memory = read(&self.memory, buffer).map_or_else(Memory::default, parse::memory);
        if let Some(text) = read(&self.paging, buffer) {
            parse::paging(text, proc::page_bytes(), sample);
        }
        if let Some(text) = read(&self.disks, buffer) {
            sample.disks = self.known.disks(text);
        }
        if let Some(text) = read(&self.links, buffer) {
            sample.links = self.known.links(text);
        }
        let quota = self.quota.as_ref().and_then(|file| file.read_short(buffer));
        sample.quota_periods = quota.and_then(limits::quota_periods);
        sample.tcp = read(&self.protocols, buffer).and_then(parse::tcp);
        let [cpu, io, memory] = &self.pressure;
        let mut pressure = |file: &Option<Counters>| {
            let text = file.as_ref().and_then(|file| file.read_short(buffer));
            text.map_or((None, None), parse::pressure)
        };
        let (io_some_us, io_full_us) = pressure(io);
        sample.pressure = PressureTimes {
            cpu_some_us: pressure(cpu).0,
            io_some_us,
            io_full_us,
            memory_some_us: pressure(memory).0,
        };
    }
}

fn read<'a>(file: &Option<Counters>, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    file.as_ref()?.read(buffer)
}

/// Reads idle times; the file stays open in between.
#[derive(Debug)]
pub struct IdleTime {
    stat: Option<Counters>,
    /// The CPUs that this process may use, by number; empty if unknown.
    allowed: Vec<u32>,
    buffer: Vec<u8>,
}

impl IdleTime {
    /// Opens the file. Never fails: [`IdleTime::read`] then returns `None`.
    pub fn open() -> IdleTime {
        IdleTime {
            stat: Counters::machine(MachineFile::Stat),
            allowed: proc::affinity(0).unwrap_or_default(),
            buffer: Vec::new(),
        }
    }

    /// Returns the mean time that these CPUs were idle since boot, with or without I/O in flight; proc_stat(5). Its
    /// resolution is a tick (10 ms) per CPU. Time that a hypervisor took away is not idle.
    pub fn read(&mut self) -> Option<Duration> {
        let text = self.stat.as_ref()?.read(&mut self.buffer)?;
        let ticks_per_s = proc::ticks_per_s();
        let idle_ns: Vec<u64> = parse::lines(text)
            .filter_map(|line| parse::cpu(line, ticks_per_s))
            .filter(|(cpu, _)| self.allowed.is_empty() || self.allowed.contains(cpu))
            .map(|(_, times)| times.idle_ns.saturating_add(times.iowait_ns))
            .collect();
        let sum_ns = idle_ns.iter().fold(0, |sum: u64, one| sum.saturating_add(*one));
        Some(Duration::from_nanos(sum_ns.checked_div(idle_ns.len() as u64)?))
    }
}

/// Lifetime of a cached entry, nanoseconds.
const AGE_MAX_NS: u64 = 5_000_000_000;

/// Interfaces and disks seen so far.
#[derive(Debug, Default)]
pub struct LinkCache {
    links: Vec<(String, Interface)>,
    disks: Vec<((u32, u32), Part)>,
    since_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    Stacked,
    Partition,
}

impl LinkCache {
    /// Drops outdated entries.
    pub fn age(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.since_ns) > AGE_MAX_NS {
            self.links.clear();
            self.disks.clear();
            self.since_ns = now_ns;
        }
    }

    /// Interfaces that are up.
    pub fn links(&mut self, text: &[u8]) -> Vec<Link> {
        let mut found: Vec<Link> = parse::links(text).collect();
        found.retain_mut(|link| {
            let known = match self.links.iter().find(|(name, _)| *name == link.name) {
                Some((_, known)) => *known,
                None => {
                    let known = disk::interface(&link.name);
                    self.links.push((link.name.clone(), known));
                    known
                }
            };
            link.bits_per_s = known.bits_per_s;
            // Without /sys the state is unknown: an interface with traffic is up.
            known.up || link.rx_bytes > 0 || link.tx_bytes > 0
        });
        found
    }

    /// Whole disks with any I/O so far.
    pub fn disks(&mut self, text: &[u8]) -> Vec<Disk> {
        let mut found = parse::disks(text);
        found.retain_mut(|disk| {
            let part = self.part(disk.dev);
            disk.stacked = part == Part::Stacked;
            part != Part::Partition
        });
        found
    }

    fn part(&mut self, dev: (u32, u32)) -> Part {
        if let Some((_, part)) = self.disks.iter().find(|(known, _)| *known == dev) {
            return *part;
        }
        let part = match (disk::is_partition(dev), disk::is_stacked(dev)) {
            (true, _) => Part::Partition,
            (_, true) => Part::Stacked,
            _ => Part::Whole,
        };
        self.disks.push((dev, part));
        part
    }
}

#[cfg(test)]
mod tests;
