//! Properties of disks and interfaces other than counters; cached, because they rarely change.

use super::{Disk, Link, parse};
use hakobu_sys::disk::{self, Interface};

/// Lifetime of a cached entry, nanoseconds.
const AGE_MAX_NS: u64 = 5_000_000_000;

/// Interfaces and disks seen so far.
#[derive(Debug, Default)]
pub struct Known {
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

impl Known {
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
