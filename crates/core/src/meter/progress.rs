//! Progress of a run: entries found and done, and bytes known to be ahead.
//!
//! A worker that finds, looks at and finishes entries counts them on its own lane. A thread that plans work for
//! others counts batches on a line that planners share.

use super::{Meter, Phase, add_up};
use std::sync::atomic::{AtomicU64, Ordering};

/// A batch of entries that a planner found, with their sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// Entries found.
    pub found: u64,
    /// Those of them for which nothing is left to do: up to date, left out, refused.
    pub done: u64,
    /// Content of the others, in bytes.
    pub bytes_ahead: u64,
}

/// Progress of a run. The counters are read one after the other while the workers go on: a sum may be a few entries
/// ahead of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Entries found so far, without directories.
    pub found: u64,
    /// Those whose bytes to move are part of `bytes_ahead`, or which have none.
    pub sized: u64,
    /// Those that are finished: moved, up to date, left out, failed.
    pub done: u64,
    /// Content moved, in bytes, as it moves.
    pub bytes: u64,
    /// Content that is known to have to be moved, in bytes, from the beginning: at least `bytes` at rest.
    pub bytes_ahead: u64,
    /// Bytes of large files that are written and not on the device, where the kernel says.
    pub undrained: u64,
    /// Units under way now.
    pub jobs: u64,
    /// All entries were found.
    pub listed: bool,
    /// The present limit, in a word or two, where it is known.
    pub limit: Option<&'static str>,
}

impl Meter {
    /// Counts a batch that a planner found. Any thread may call it.
    pub fn found(&self, entries: Entries) {
        let add = |counter: &AtomicU64, more| {
            if more > 0 {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        };
        // Add found entries before done ones, so that done never exceeds found.
        add(&self.planned.found, entries.found);
        add(&self.planned.bytes_ahead, entries.bytes_ahead);
        add(&self.planned.done, entries.done);
    }

    /// Notes that nothing more will be found.
    pub fn all_found(&self) {
        self.listed.store(true, Ordering::Release);
    }

    /// Notes what limits the run now.
    pub fn set_limit(&self, limit: Option<&'static str>) {
        *self.limit.lock() = limit;
    }

    /// Progress of the run.
    pub fn progress(&self) -> Progress {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let listed = self.listed.load(Ordering::Acquire);
        let planned = &self.planned;
        let mut sum = Progress { listed, limit: *self.limit.lock(), ..Progress::default() };
        // Read done before found, so that done never exceeds found.
        sum.done = load(&planned.done);
        for lane in &*self.lanes {
            add_up!(lane => sum, done bytes);
        }
        for lane in &*self.lanes {
            add_up!(lane => sum, sized bytes_ahead undrained found);
            for (phase, count) in lane.doing.iter().enumerate() {
                let count = count.load(Ordering::Relaxed);
                if phase != Phase::Idle as usize && count <= u32::MAX / 2 {
                    sum.jobs += u64::from(count);
                }
            }
        }
        let by_planners = load(&planned.found);
        sum.found = positive(sum.found.wrapping_add(by_planners)).max(sum.done);
        sum.sized = positive(sum.sized.wrapping_add(by_planners)).clamp(sum.done, sum.found);
        let bytes_ahead = sum.bytes_ahead.wrapping_add(load(&planned.bytes_ahead));
        sum.bytes_ahead = positive(bytes_ahead).max(sum.bytes);
        sum
    }
}

/// A sum of which a part was seen that takes away what another part adds, before that part was.
fn positive(sum: u64) -> u64 {
    if sum > u64::MAX / 2 { 0 } else { sum }
}

impl std::ops::AddAssign for Progress {
    /// Adds another run that goes on at the same time, or after this one.
    fn add_assign(&mut self, other: Progress) {
        self.found += other.found;
        self.sized += other.sized;
        self.done += other.done;
        self.bytes += other.bytes;
        self.bytes_ahead += other.bytes_ahead;
        self.undrained += other.undrained;
        self.jobs += other.jobs;
        self.listed &= other.listed;
        self.limit = other.limit.or(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_and_planners_add_up() {
        let meter = Meter::new(2);
        meter.lane(0).found(10);
        meter.lane(1).found(5);
        meter.lane(1).lost();
        meter.lane(0).sized();
        meter.lane(0).ahead(1000);
        meter.lane(0).bytes(400);
        meter.lane(0).enter(Phase::Write);
        meter.lane(1).enter(Phase::Idle);
        meter.found(Entries { found: 6, done: 2, bytes_ahead: 50 });
        let expected = Progress {
            found: 20,
            sized: 7,
            done: 2,
            bytes: 400,
            bytes_ahead: 1050,
            jobs: 1,
            ..Progress::default()
        };
        assert_eq!(meter.progress(), expected);
        // It was shorter than it said, and another worker knows of that.
        meter.lane(1).settle(1000, 400);
        meter.lane(0).done(1);
        meter.set_limit(Some("CPU"));
        meter.all_found();
        let after = meter.progress();
        assert_eq!((after.bytes_ahead, after.done, after.listed), (450, 3, true));
        assert_eq!(after.limit, Some("CPU"));
    }

    #[test]
    fn sums_never_contradict_each_other() {
        let meter = Meter::new(1);
        meter.lane(0).done(3);
        meter.lane(0).bytes(100);
        meter.lane(0).settle(50, 0);
        let now = meter.progress();
        assert!(now.found >= now.done && now.sized >= now.done && now.bytes_ahead >= now.bytes);
    }
}
