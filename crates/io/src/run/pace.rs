//! When a block may go and how many may be in flight. Pure: latencies and time in, moments and depths out.

use crate::job::{Job, LatencyTarget};

/// Schedules of both sides, where a rate is set (`rate`, `rate_iops`, `rate_process`).
///
/// Each side has a schedule that begins with the job and knows nothing of how long blocks take. A
/// block that could not go at its time goes as soon as it can, and those after it are not moved: so a
/// rate is caught up with, and a latency that is counted from the schedule holds the time that a
/// block had to wait for those before it.
#[derive(Debug)]
pub(super) struct RateSchedules {
    sides: [Option<Schedule>; 2],
    /// Chance, if blocks come at random.
    chance: Option<fastrand::Rng>,
}

#[derive(Debug)]
struct Schedule {
    /// Nanoseconds that a byte takes, and those that a block takes: the longer one counts.
    byte_ns: f64,
    block_ns: f64,
    /// Time when the next block is due, in nanoseconds since the job began.
    due_ns: f64,
}

impl RateSchedules {
    /// The schedules of a clone; `None` where no rate is set.
    pub(super) fn new(job: &Job, clone: u32) -> Option<RateSchedules> {
        let schedule = |side: usize| {
            let (bytes, blocks) = (job.rate_bytes_per_s[side], job.rate_iops[side]);
            let ns = |rate: Option<u64>| rate.map_or(0.0, |rate| 1e9 / rate.max(1) as f64);
            let is_set = bytes.is_some() || blocks.is_some();
            is_set.then(|| Schedule { byte_ns: ns(bytes), block_ns: ns(blocks), due_ns: 0.0 })
        };
        let sides = [schedule(0), schedule(1)];
        if sides.iter().all(Option::is_none) {
            return None;
        }
        let seed = if job.random_repeat { job.seed } else { fastrand::u64(..) };
        let chance = job.poisson.then(|| fastrand::Rng::with_seed(seed ^ (u64::from(clone) << 32)));
        Some(RateSchedules { sides, chance })
    }

    /// Time when the next block of a side is due, in nanoseconds since the job began; `None` where that
    /// side has no rate. The one after it is due later by what this one takes.
    pub(super) fn next_ns(&mut self, write: bool, bytes: u32) -> Option<u64> {
        let schedule = self.sides[usize::from(write)].as_mut()?;
        let due_ns = schedule.due_ns;
        let takes_ns = schedule.block_ns.max(schedule.byte_ns * f64::from(bytes));
        // Times between arrivals of a Poisson process are exponentially distributed.
        let factor = self.chance.as_mut().map_or(1.0, |chance| -(1.0 - chance.f64()).ln());
        schedule.due_ns += takes_ns * factor;
        Some(due_ns as u64)
    }
}

/// Blocks that a verdict on a depth needs, at least.
const BLOCKS_MIN: u64 = 10;

/// State of the search.
#[derive(Clone, Debug)]
pub(super) struct DepthSearch {
    aim: LatencyTarget,
    most: u32,
    /// The depth that is tried.
    pub(super) depth: u32,
    /// The greatest depth that kept the latency; 0 is none.
    good: u32,
    /// The least that did not; one more than `most` is none.
    bad: u32,
    /// Blocks at this depth, and those that were fast enough.
    all: u64,
    fast: u64,
    /// Time at which this depth began.
    since_ns: u64,
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DepthResult {
    /// This depth is the greatest.
    Depth(u32),
    /// Not even one block at a time is fast enough.
    Nothing,
}

impl DepthSearch {
    /// Among depths up to `most`.
    pub(super) fn new(aim: LatencyTarget, most: u32) -> DepthSearch {
        let most = most.max(1);
        DepthSearch { aim, most, depth: 1, good: 0, bad: most + 1, all: 0, fast: 0, since_ns: 0 }
    }

    /// A block had this latency, and landed at this time since the beginning; the result, if that ends the search.
    pub(super) fn landed(&mut self, latency_ns: u64, now_ns: u64) -> Option<DepthResult> {
        self.all += 1;
        self.fast += u64::from(u128::from(latency_ns) <= self.aim.latency.as_nanos());
        let over = u128::from(now_ns.saturating_sub(self.since_ns)) >= self.aim.window.as_nanos();
        if !over || self.all < BLOCKS_MIN {
            return None;
        }
        let keeps = self.fast as f64 * 100.0 / self.all as f64 >= self.aim.percentile;
        (self.all, self.fast, self.since_ns) = (0, 0, now_ns);
        match keeps {
            true => self.good = self.good.max(self.depth),
            false => self.bad = self.bad.min(self.depth),
        }
        if !keeps && self.bad <= self.good {
            // It kept it before: things have changed.
            self.good = 0;
        }
        self.depth = match self.bad > self.most {
            true => self.depth.saturating_mul(2).min(self.most),
            false => (self.good + self.bad) / 2,
        }
        .max(1);
        let ended = self.good == self.most || self.good + 1 >= self.bad;
        match (ended, self.good) {
            (false, _) => None,
            (true, 0) => Some(DepthResult::Nothing),
            (true, good) => {
                self.depth = good;
                Some(DepthResult::Depth(good))
            }
        }
    }

    /// Returns whether it continues after a depth was found: with that depth, and others if the latency is exceeded.
    pub(super) fn goes_on(&mut self) -> bool {
        if self.aim.goes_on {
            (self.good, self.bad) = (0, self.most + 1);
            self.depth = self.depth.max(1);
        }
        self.aim.goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The depth that is found on a device where blocks are fast up to `limit` at a time.
    fn found(limit: u32, most: u32, percentile: f64) -> DepthResult {
        let window = Duration::from_millis(1);
        let aim = LatencyTarget {
            latency: Duration::from_micros(100),
            window,
            percentile,
            goes_on: false,
        };
        let mut search = DepthSearch::new(aim, most);
        for now in 0u64.. {
            // Every tenth block is slow, at any depth.
            let slow = search.depth > limit || percentile < 100.0 && now % 10 == 0;
            let latency_ns = if slow { 200_000 } else { 50_000 };
            if let Some(found) = search.landed(latency_ns, now * 10_000) {
                return found;
            }
            assert!(search.depth <= most && now < 1_000_000);
        }
        DepthResult::Nothing
    }

    #[test]
    fn the_greatest_depth_is_found() {
        for (limit, most, expected) in [
            (1, 64, 1),
            (7, 64, 7),
            (8, 64, 8),
            (33, 64, 33),
            (64, 64, 64),
            (100, 64, 64),
            (5, 1, 1),
        ] {
            assert_eq!(
                found(limit, most, 100.0),
                DepthResult::Depth(expected),
                "{limit} of {most}"
            );
            assert_eq!(found(limit, most, 80.0), DepthResult::Depth(expected), "{limit} of {most}");
        }
        assert_eq!(found(0, 64, 100.0), DepthResult::Nothing);
    }
}
