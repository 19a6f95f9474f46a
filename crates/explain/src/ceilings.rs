//! Ceilings of a process set by control groups: its share of the CPUs, and the rates of the disks below its
//! ends; with the groups' counters of what was used.

use crate::sample::{DiskRates, IoCeiling, Limits};
use crate::verdict::{Ceiling, Direction};
use hakobu_sys::disk::{self, BlockDevice};

/// Amount used under each ceiling since its counters began, in the order of the ceilings; `None` if its group
/// has no counters.
pub type Served = Vec<Option<u64>>;

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
    pub fn served(&self) -> Served {
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
        from: &Served,
        to: &Served,
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

#[cfg(test)]
mod tests {
    use super::*;

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
