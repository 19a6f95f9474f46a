//! Work of disks during a run: counters of the kernel before and after, as fio's `disk_util` has
//! them (proc_diskstats(5)).

use hakobu_sys::disk;
use hakobu_sys::proc::{Counters, MachineFile};
use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

/// Counters of one disk, or their increase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Finished requests, reads and writes.
    pub ios: [u64; 2],
    /// Requests that were joined to others before, likewise.
    pub merges: [u64; 2],
    /// Milliseconds that they took together.
    pub ticks_ms: [u64; 2],
    /// Milliseconds with a request in flight.
    pub busy_ms: u64,
    /// Milliseconds weighted by requests in flight.
    pub queue_ms: u64,
}

/// One disk during a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskUse {
    /// As the kernel calls it.
    pub name: String,
    /// Its work.
    pub counts: DiskCounts,
    /// Percent of the time with a request in flight.
    pub util_percent: f64,
}

/// The disks below some files, with their counters at the beginning.
#[derive(Debug, Default)]
pub struct Disks {
    before: Vec<(String, DiskCounts)>,
}

impl Disks {
    /// Looks at the disks below these files; devices among them are themselves.
    pub fn begin<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Disks {
        let mut names = BTreeSet::new();
        for path in paths {
            let Ok(meta) = path.metadata() else { continue };
            let dev = if meta.file_type().is_block_device() { meta.rdev() } else { meta.dev() };
            let Some(found) = disk::below(dev) else { continue };
            // The disks below it (of RAID, LVM) are busy, too.
            names.extend(disk::made_of(found.dev).into_iter().map(|part| part.name));
            names.insert(found.name);
        }
        let now = counts();
        Disks { before: now.into_iter().filter(|(name, _)| names.contains(name)).collect() }
    }

    /// Their work since, over so long.
    pub fn end(&self, span: Duration) -> Vec<DiskUse> {
        let now = counts();
        let used = self.before.iter().filter_map(|(name, before)| {
            let (_, after) = now.iter().find(|(other, _)| other == name)?;
            let counts = since(before, after);
            let span_ms = span.as_secs_f64() * 1e3;
            let busy = if span_ms > 0.0 { counts.busy_ms as f64 * 100.0 / span_ms } else { 0.0 };
            Some(DiskUse { name: name.clone(), counts, util_percent: busy.min(100.0) })
        });
        used.collect()
    }
}

fn since(before: &DiskCounts, after: &DiskCounts) -> DiskCounts {
    let pair = |of: fn(&DiskCounts) -> [u64; 2]| {
        let (before, after) = (of(before), of(after));
        [after[0].saturating_sub(before[0]), after[1].saturating_sub(before[1])]
    };
    DiskCounts {
        ios: pair(|counts| counts.ios),
        merges: pair(|counts| counts.merges),
        ticks_ms: pair(|counts| counts.ticks_ms),
        busy_ms: after.busy_ms.saturating_sub(before.busy_ms),
        queue_ms: after.queue_ms.saturating_sub(before.queue_ms),
    }
}

/// All disks; none where the kernel does not show them.
fn counts() -> Vec<(String, DiskCounts)> {
    let mut buffer = Vec::new();
    let counters = Counters::machine(MachineFile::Disks);
    let text = counters.as_ref().and_then(|counters| counters.read(&mut buffer));
    String::from_utf8_lossy(text.unwrap_or_default()).lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<(String, DiskCounts)> {
    let mut words = line.split_ascii_whitespace().skip(2);
    let name = words.next()?;
    let mut numbers = [0; 11];
    for number in &mut numbers {
        *number = words.next()?.parse().ok()?;
    }
    let [reads, read_merges, _, read_ms, writes, write_merges, _, write_ms, _, busy_ms, queue_ms] =
        numbers;
    let counts = DiskCounts {
        ios: [reads, writes],
        merges: [read_merges, write_merges],
        ticks_ms: [read_ms, write_ms],
        busy_ms,
        queue_ms,
    };
    Some((name.to_owned(), counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_old_and_new_kernels() {
        let old = " 254 0 vda 10 1 80 5 20 2 160 9 0 12 14";
        let new = "   8  16 sdb 10 1 80 5 20 2 160 9 3 12 14 0 0 0 0 7 8";
        let wanted = DiskCounts {
            ios: [10, 20],
            merges: [1, 2],
            ticks_ms: [5, 9],
            busy_ms: 12,
            queue_ms: 14,
        };
        assert_eq!(parse(old), Some(("vda".into(), wanted)));
        assert_eq!(parse(new), Some(("sdb".into(), wanted)));
        assert_eq!(parse("8 16 sdb 10 1"), None);
        assert_eq!(parse("8 16 sdb a b c d e f g h i j k"), None);
    }

    #[test]
    fn differences_and_share_of_time() {
        let before = DiskCounts { ios: [1, 2], busy_ms: 100, ..DiskCounts::default() };
        let after = DiskCounts { ios: [5, 9], busy_ms: 150, queue_ms: 7, ..DiskCounts::default() };
        let counts = since(&before, &after);
        assert_eq!((counts.ios, counts.busy_ms, counts.queue_ms), ([4, 7], 50, 7));
        // A counter that started anew.
        assert_eq!(since(&after, &before).busy_ms, 0);
        let gone = Disks { before: vec![("no-such-disk".into(), before)] };
        assert_eq!(gone.end(Duration::from_secs(1)), []);
        // Files without a disk have none.
        assert!(Disks::begin([Path::new("/proc/self/stat")]).before.is_empty());
    }
}
