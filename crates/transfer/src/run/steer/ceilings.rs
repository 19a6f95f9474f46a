//! Ceilings that somebody set for this process: the share of the CPUs, and what the disks below the
//! ends may do; with what control groups counted of it.

use crate::sample::{DiskRates, IoCeiling, Limits};
use crate::verdict::Ceiling;
use hakobu_sys::disk::{self, BlockDevice};

/// What each ceiling let through since its counters began, in the order of the ceilings; `None`
/// where its group does not count.
pub(super) type Served = Vec<Option<u64>>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ceilings {
    limits: Option<Limits>,
    /// Their ceilings, with the number of the disk.
    found: Vec<((u32, u32), IoCeiling)>,
}

impl Ceilings {
    /// Of this process and of the disks below file systems of these device numbers.
    pub fn of(devs: &[u64]) -> Ceilings {
        let limits = Limits::read();
        let mut disks: Vec<BlockDevice> = Vec::new();
        for device in devs.iter().filter_map(|dev| disk::below(*dev)) {
            let parts = disk::made_of(device.dev);
            for device in std::iter::once(device).chain(parts) {
                if !disks.contains(&device) {
                    disks.push(device);
                }
            }
        }
        let each = |device: &BlockDevice| {
            let dev = device.dev;
            limits.io_ceilings(dev).into_iter().map(move |ceiling| (dev, ceiling))
        };
        let found = disks.iter().flat_map(each).collect();
        Ceilings { limits: Some(limits), found }
    }

    /// CPUs that this process may use.
    pub fn cpus(&self) -> Option<f64> {
        self.limits.as_ref().map(Limits::cpus)
    }

    /// The CPUs that it may run on, by number.
    pub fn affinity(&self) -> &[u32] {
        self.limits.as_ref().map_or(&[], |limits| &limits.affinity)
    }

    /// What was let through up to now.
    pub fn served(&self) -> Served {
        let Some(limits) = &self.limits else { return Served::new() };
        let each = self.found.iter().map(|(dev, ceiling)| {
            let served = limits.io_served_below(*dev, ceiling)?;
            Some(match (ceiling.operations, ceiling.writes) {
                (true, false) => served.read_ops,
                (true, true) => served.write_ops,
                (false, false) => served.read_bytes,
                (false, true) => served.write_bytes,
            })
        });
        each.collect()
    }

    /// The ceilings of a disk, and what was reached of them between two moments `span_s` apart: by
    /// the counters of their groups, else by the disk's own.
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
                writes: ceiling.writes,
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
        let found: Vec<_> = found.iter().map(|c| (c.limit, c.reached, c.writes)).collect();
        assert_eq!(found, [(3000.0, 3000.0, true), (1e6, 777.0, false)]);
    }
}
