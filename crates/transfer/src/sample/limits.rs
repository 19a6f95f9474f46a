//! The ceilings that somebody set for this process: which CPUs it may use and how much of them, its
//! memory, what a disk may do for it. Read once at the start; what was reached of them is counted
//! by the control groups themselves, and read as often as needed.

use super::parse::{fields, lines, number};
use hakobu_sys::cgroup::{self, Hierarchy};
use hakobu_sys::counters::Counters;
use hakobu_sys::task;
use std::path::{Path, PathBuf};

/// A limit of 2^60 bytes and more is how version 1 says that there is none.
const UNLIMITED: u64 = 1 << 60;

/// The ceilings of this process.
#[derive(Debug)]
pub struct Limits {
    /// CPUs that the affinity of the thread that asked allows, by number.
    pub affinity: Vec<u32>,
    /// CPUs' worth of time that a quota allows (`cpu.max`, `cpu.cfs_quota_us`): the least of the
    /// own group and those above.
    pub quota_cpus: Option<f64>,
    /// Bytes of memory that may be used, page cache included (`memory.max`,
    /// `memory.limit_in_bytes`): the least as above.
    pub memory_bytes: Option<u64>,
    /// The group with the least quota.
    quota_group: Option<PathBuf>,
    /// The groups that this process' I/O is charged to.
    io: Vec<IoGroup>,
}

/// What a disk may do for a group of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoCeiling {
    /// Operations rather than bytes.
    pub operations: bool,
    /// Writes rather than reads.
    pub writes: bool,
    /// A second.
    pub per_s: u64,
    /// The file that it is set in: `blkio.throttle.write_iops_device`, `io.max`.
    pub from: &'static str,
    /// Index of the group, for [`Limits::io_served_below`].
    pub group: usize,
}

/// What a disk did for a group since the group's counters began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Reads; as the throttle counts them: before the block layer joins neighbours.
    pub read_ops: u64,
    /// Writes.
    pub write_ops: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

#[derive(Debug)]
struct IoGroup {
    folder: PathBuf,
    unified: bool,
    /// Version 1: operations, bytes. Version 2: both in the first.
    served: [Option<Counters>; 2],
}

const THROTTLES: [(&str, bool, bool); 4] = [
    ("blkio.throttle.read_iops_device", true, false),
    ("blkio.throttle.write_iops_device", true, true),
    ("blkio.throttle.read_bps_device", false, false),
    ("blkio.throttle.write_bps_device", false, true),
];

impl Limits {
    /// Reads them. What cannot be read is no limit.
    pub fn read() -> Limits {
        Limits::of(&cgroup::hierarchies(), task::affinity(0).unwrap_or_default())
    }

    pub(super) fn of(hierarchies: &[Hierarchy], affinity: Vec<u32>) -> Limits {
        let mut limits = Limits {
            affinity,
            quota_cpus: None,
            memory_bytes: None,
            quota_group: None,
            io: Vec::new(),
        };
        for hierarchy in hierarchies {
            let unified = hierarchy.controllers.is_none();
            for folder in hierarchy.upwards() {
                if unified || hierarchy.controls("cpu") {
                    limits.lower_quota(folder, quota(folder, unified));
                }
                if unified || hierarchy.controls("memory") {
                    let name = if unified { "memory.max" } else { "memory.limit_in_bytes" };
                    let bytes = read(folder, name).and_then(|text| number(text.trim_ascii()));
                    let bytes = bytes.filter(|bytes| *bytes < UNLIMITED);
                    limits.memory_bytes = least(limits.memory_bytes, bytes);
                }
                // In version 1 only the own group's throttle counts, and the root's for pages
                // that the kernel writes back later: it does not know whose they were.
                let charged = *folder == hierarchy.own || *folder == hierarchy.mount;
                if unified || hierarchy.controls("blkio") && charged {
                    limits.io.extend(IoGroup::open(folder, unified));
                }
            }
        }
        limits
    }

    fn lower_quota(&mut self, folder: &Path, cpus: Option<f64>) {
        let Some(cpus) = cpus else { return };
        if self.quota_cpus.is_none_or(|least| cpus < least) {
            self.quota_cpus = Some(cpus);
            self.quota_group = Some(folder.to_owned());
        }
    }

    /// CPUs that this process may use, by affinity and quota; at least a hundredth.
    pub fn cpus(&self) -> f64 {
        let by_affinity = match self.affinity.len() {
            0 => hakobu_sys::process::cpus() as f64,
            count => count as f64,
        };
        self.quota_cpus.map_or(by_affinity, |quota| quota.clamp(0.01, by_affinity))
    }

    /// The counters of the quota's periods, to be kept open.
    pub(super) fn quota_counters(&self) -> Option<Counters> {
        Counters::open(&self.quota_group.as_ref()?.join("cpu.stat"))
    }

    /// The ceilings of a disk, by its number: of the own group and of those above that count.
    pub fn io_ceilings(&self, dev: (u32, u32)) -> Vec<IoCeiling> {
        let each = self.io.iter().enumerate();
        each.flat_map(|(index, group)| group.ceilings(dev, index)).collect()
    }

    /// What a disk did for the groups that this process' I/O is charged to: the sum of its own and
    /// the root's (version 1, where each counts for itself), or its own's (version 2, which counts
    /// for a group what it did for those below). `None` where no group counts this disk.
    pub fn io_served(&self, dev: (u32, u32)) -> Option<Served> {
        let (unified, single): (Vec<_>, Vec<_>) = self.io.iter().partition(|group| group.unified);
        let of_v1 = single.iter().filter_map(|group| group.served(dev));
        let sum = of_v1.reduce(|a, b| Served {
            read_ops: a.read_ops.saturating_add(b.read_ops),
            write_ops: a.write_ops.saturating_add(b.write_ops),
            read_bytes: a.read_bytes.saturating_add(b.read_bytes),
            write_bytes: a.write_bytes.saturating_add(b.write_bytes),
        });
        sum.or_else(|| unified.iter().find_map(|group| group.served(dev)))
    }

    /// What a disk did for the group of a ceiling: the number to compare the ceiling with.
    pub fn io_served_below(&self, dev: (u32, u32), ceiling: &IoCeiling) -> Option<Served> {
        self.io.get(ceiling.group)?.served(dev)
    }
}

impl IoGroup {
    fn open(folder: &Path, unified: bool) -> Option<IoGroup> {
        let open = |name| Counters::open(&folder.join(name));
        let served = match unified {
            true => [open("io.stat"), None],
            false => ["blkio.throttle.io_serviced", "blkio.throttle.io_service_bytes"].map(open),
        };
        // No such controller here.
        served[0].is_some().then(|| IoGroup { folder: folder.to_owned(), unified, served })
    }

    fn ceilings(&self, dev: (u32, u32), group: usize) -> Vec<IoCeiling> {
        let ceiling =
            |from, operations, writes, per_s| IoCeiling { operations, writes, per_s, from, group };
        if self.unified {
            let text = read(&self.folder, "io.max").unwrap_or_default();
            let set = |key: &[u8]| keyed(&text, dev, key).filter(|limit| *limit < UNLIMITED);
            let keys: [(&[u8], bool, bool); 4] = [
                (b"riops=", true, false),
                (b"wiops=", true, true),
                (b"rbps=", false, false),
                (b"wbps=", false, true),
            ];
            let found = keys.into_iter().filter_map(|(key, operations, writes)| {
                Some(ceiling("io.max", operations, writes, set(key)?))
            });
            return found.collect();
        }
        let found = THROTTLES.into_iter().filter_map(|(name, operations, writes)| {
            let limit = throttle(&read(&self.folder, name)?, dev)?;
            Some(ceiling(name, operations, writes, limit))
        });
        found.collect()
    }

    fn served(&self, dev: (u32, u32)) -> Option<Served> {
        let mut buffer = Vec::new();
        let text = self.served[0].as_ref()?.read(&mut buffer)?;
        if self.unified {
            let value = |key: &[u8]| keyed(text, dev, key);
            return Some(Served {
                read_ops: value(b"rios=")?,
                write_ops: value(b"wios=")?,
                read_bytes: value(b"rbytes=").unwrap_or(0),
                write_bytes: value(b"wbytes=").unwrap_or(0),
            });
        }
        let (read_ops, write_ops) = served(text, dev)?;
        let bytes = self.served[1].as_ref().and_then(|file| served(file.read(&mut buffer)?, dev));
        let (read_bytes, write_bytes) = bytes.unwrap_or((0, 0));
        Some(Served { read_ops, write_ops, read_bytes, write_bytes })
    }
}

fn read(folder: &Path, name: &str) -> Option<Vec<u8>> {
    std::fs::read(folder.join(name)).ok()
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}

/// CPUs that a group's quota allows.
fn quota(folder: &Path, unified: bool) -> Option<f64> {
    if unified {
        return cpu_max(&read(folder, "cpu.max")?);
    }
    // -1 is none.
    let value = |name| number(read(folder, name)?.trim_ascii());
    share(value("cpu.cfs_quota_us")?, value("cpu.cfs_period_us")?)
}

fn share(quota_us: u64, period_us: u64) -> Option<f64> {
    (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

/// `cpu.max`: quota and period in microseconds; `max` is no quota.
pub(super) fn cpu_max(text: &[u8]) -> Option<f64> {
    let mut values = fields(text);
    share(number(values.next()?)?, values.next().map_or(Some(100_000), number)?)
}

/// `cpu.stat`: periods of the quota, and those that were throttled.
pub(super) fn quota_periods(text: &[u8]) -> Option<(u64, u64)> {
    let value = |key: &[u8]| lines(text).find_map(|line| number(line.strip_prefix(key)?));
    Some((value(b"nr_periods ")?, value(b"nr_throttled ")?))
}

/// The rest of the lines that begin with a device's number.
fn of_device(text: &[u8], dev: (u32, u32)) -> impl Iterator<Item = &[u8]> {
    let prefix = format!("{}:{} ", dev.0, dev.1);
    lines(text).filter_map(move |line| line.strip_prefix(prefix.as_bytes()))
}

/// A value of `io.max` or `io.stat`: `8:0 rbps=max wbps=125000000`; `max` is none.
pub(super) fn keyed(text: &[u8], dev: (u32, u32), key: &[u8]) -> Option<u64> {
    let line = of_device(text, dev).next()?;
    fields(line).find_map(|field| number(field.strip_prefix(key)?))
}

/// A limit of `blkio.throttle.*_device`: `8:0 3000`.
pub(super) fn throttle(text: &[u8], dev: (u32, u32)) -> Option<u64> {
    fields(of_device(text, dev).next()?).next().and_then(number).filter(|limit| *limit < UNLIMITED)
}

/// Reads and writes of `blkio.throttle.io_serviced` and its sister of bytes: `8:0 Read 17`.
pub(super) fn served(text: &[u8], dev: (u32, u32)) -> Option<(u64, u64)> {
    let value = |key: &[u8]| {
        of_device(text, dev)
            .find_map(|line| fields(line.strip_prefix(key)?).next().and_then(number))
    };
    Some((value(b"Read ")?, value(b"Write ")?))
}
