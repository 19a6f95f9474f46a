//! Limits of this process: usable CPUs and quota, memory, disk rates. Read once at the start; usage is
//! counted by the control groups and can be read repeatedly.

use crate::sample::parse::{fields, lines, number};
use hakobu_sys::cgroup::{self, Hierarchy};
use hakobu_sys::proc::{self, Counters};
use std::path::{Path, PathBuf};

/// Version 1 represents "unlimited" by a number of 2^60 or more.
const UNLIMITED: u64 = 1 << 60;

/// Limits of this process.
#[derive(Debug, Default)]
pub struct Limits {
    /// Numbers of the CPUs in the affinity of the calling thread.
    pub affinity: Vec<u32>,
    /// CPUs allowed by quotas (`cpu.max`, `cpu.cfs_quota_us`): the minimum over the own group and its
    /// ancestors.
    pub quota_cpus: Option<f64>,
    /// Usable memory in bytes, including page cache (`memory.max`, `memory.limit_in_bytes`): the minimum as
    /// above.
    pub memory_bytes: Option<u64>,
    /// Group with the smallest quota.
    quota_group: Option<PathBuf>,
    /// Groups to which this process's I/O is charged.
    io: Vec<IoGroup>,
}

/// Limit of a group for a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoCeiling {
    /// True for operations, false for bytes.
    pub operations: bool,
    /// True for writes, false for reads.
    pub writes: bool,
    /// Limit per second.
    pub per_s: u64,
    /// File that sets it: `blkio.throttle.write_iops_device`, `io.max`.
    pub from: &'static str,
    /// Index of the group, for [`Limits::io_served_below`].
    pub group: usize,
}

/// I/O of a group on a disk since its counters began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Reads, counted by the throttle before the block layer merges requests.
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
    /// Version 1: operations, bytes. Version 2: both in the first one.
    served: [Option<Counters>; 2],
}

/// Ceilings of a group: key in `io.max`, file of version 1, [`IoCeiling::operations`] and [`IoCeiling::writes`].
const CEILINGS: [(&str, &str, bool, bool); 4] = [
    ("riops=", "blkio.throttle.read_iops_device", true, false),
    ("wiops=", "blkio.throttle.write_iops_device", true, true),
    ("rbps=", "blkio.throttle.read_bps_device", false, false),
    ("wbps=", "blkio.throttle.write_bps_device", false, true),
];

impl Limits {
    /// Reads the limits. Unreadable ones count as no limit.
    pub fn read() -> Limits {
        Limits::of(&cgroup::hierarchies(), proc::affinity(0).unwrap_or_default())
    }

    /// Limits of a process with these groups, see [`cgroup::groups_of`], and this affinity.
    pub fn of_groups(groups: &[u8], affinity: Vec<u32>) -> Limits {
        Limits::of(&cgroup::hierarchies_of(groups), affinity)
    }

    pub(crate) fn of(hierarchies: &[Hierarchy], affinity: Vec<u32>) -> Limits {
        let mut limits = Limits { affinity, ..Limits::default() };
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
                    limits.memory_bytes = limits.memory_bytes.into_iter().chain(bytes).min();
                }
                // In version 1 only the own group's throttle applies, and the root's for writeback, because
                // the kernel does not know who dirtied the pages.
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

    /// CPUs that this process may use, by affinity and quota; at least 0.01.
    pub fn cpus(&self) -> f64 {
        usable_cpus(&self.affinity, self.quota_cpus)
    }

    /// Periods of the quota so far, and throttled ones.
    pub fn quota_periods(&self) -> Option<(u64, u64)> {
        quota_periods(self.quota_counters()?.read_short(&mut Vec::new())?)
    }

    /// Counters of the quota's periods, kept open.
    pub(crate) fn quota_counters(&self) -> Option<Counters> {
        Counters::open(&self.quota_group.as_ref()?.join("cpu.stat"))
    }

    /// Limits of a disk, by device number: of the own group and applicable ancestors.
    pub fn io_ceilings(&self, dev: (u32, u32)) -> Vec<IoCeiling> {
        let each = self.io.iter().enumerate();
        each.flat_map(|(index, group)| group.ceilings(dev, index)).collect()
    }

    /// I/O on a disk of the group of a ceiling, to compare with the ceiling.
    pub fn io_served_below(&self, dev: (u32, u32), ceiling: &IoCeiling) -> Option<Served> {
        self.io.get(ceiling.group)?.served(dev)
    }
}

/// Number of CPUs that may be used, by affinity (of this process if empty) and quota; at least 0.01.
pub fn usable_cpus(affinity: &[u32], quota: Option<f64>) -> f64 {
    let by_affinity = match affinity.len() {
        0 => hakobu_sys::process::cpus() as f64,
        count => count as f64,
    };
    quota.map_or(by_affinity, |quota| quota.clamp(0.01, by_affinity))
}

impl IoGroup {
    fn open(folder: &Path, unified: bool) -> Option<IoGroup> {
        let open = |name| Counters::open(&folder.join(name));
        let served = match unified {
            true => [open("io.stat"), None],
            false => ["blkio.throttle.io_serviced", "blkio.throttle.io_service_bytes"].map(open),
        };
        // This controller is not available.
        served[0].is_some().then(|| IoGroup { folder: folder.to_owned(), unified, served })
    }

    fn ceilings(&self, dev: (u32, u32), group: usize) -> Vec<IoCeiling> {
        let all = if self.unified { read(&self.folder, "io.max") } else { None };
        let found = CEILINGS.into_iter().filter_map(|(key, file, operations, writes)| {
            let (from, limit) = match self.unified {
                true => ("io.max", keyed(all.as_ref()?, dev, key.as_bytes())?),
                false => (file, throttle(&read(&self.folder, file)?, dev)?),
            };
            let ceiling = IoCeiling { operations, writes, per_s: limit, from, group };
            (limit < UNLIMITED).then_some(ceiling)
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

/// CPUs allowed by a group's quota.
fn quota(folder: &Path, unified: bool) -> Option<f64> {
    if unified {
        return cpu_max(&read(folder, "cpu.max")?);
    }
    // -1 means no quota.
    let value = |name| number(read(folder, name)?.trim_ascii());
    share(value("cpu.cfs_quota_us")?, value("cpu.cfs_period_us")?)
}

fn share(quota_us: u64, period_us: u64) -> Option<f64> {
    (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

/// `cpu.max`: quota and period in microseconds; `max` means no quota.
pub(crate) fn cpu_max(text: &[u8]) -> Option<f64> {
    let mut values = fields(text);
    share(number(values.next()?)?, values.next().map_or(Some(100_000), number)?)
}

/// `cpu.stat`: periods of the quota, and throttled ones.
pub(crate) fn quota_periods(text: &[u8]) -> Option<(u64, u64)> {
    let value = |key: &[u8]| lines(text).find_map(|line| number(line.strip_prefix(key)?));
    Some((value(b"nr_periods ")?, value(b"nr_throttled ")?))
}

/// Rest of the lines that begin with a device number.
fn of_device(text: &[u8], dev: (u32, u32)) -> impl Iterator<Item = &[u8]> {
    let prefix = format!("{}:{} ", dev.0, dev.1);
    lines(text).filter_map(move |line| line.strip_prefix(prefix.as_bytes()))
}

/// Value in `io.max` or `io.stat`: `8:0 rbps=max wbps=125000000`; `max` means no limit.
pub(crate) fn keyed(text: &[u8], dev: (u32, u32), key: &[u8]) -> Option<u64> {
    let line = of_device(text, dev).next()?;
    fields(line).find_map(|field| number(field.strip_prefix(key)?))
}

/// Limit in `blkio.throttle.*_device`: `8:0 3000`.
pub(crate) fn throttle(text: &[u8], dev: (u32, u32)) -> Option<u64> {
    fields(of_device(text, dev).next()?).next().and_then(number)
}

/// Reads and writes in `blkio.throttle.io_serviced` or `io_service_bytes`: `8:0 Read 17`.
pub(crate) fn served(text: &[u8], dev: (u32, u32)) -> Option<(u64, u64)> {
    let value = |key: &[u8]| {
        of_device(text, dev)
            .find_map(|line| fields(line.strip_prefix(key)?).next().and_then(number))
    };
    Some((value(b"Read ")?, value(b"Write ")?))
}
