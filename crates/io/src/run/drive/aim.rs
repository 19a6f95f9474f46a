//! Search for the greatest depth at which blocks keep a latency (`latency_target`). Pure: latencies and time in, a
//! depth out.

use crate::job::Aim;

/// Blocks that a verdict on a depth needs, at least.
const BLOCKS_MIN: u64 = 10;

/// State of the search.
#[derive(Clone, Debug)]
pub(super) struct Search {
    aim: Aim,
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
pub(super) enum Found {
    /// This depth is the greatest.
    Depth(u32),
    /// Not even one block at a time is fast enough.
    Nothing,
}

impl Search {
    /// Among depths up to `most`.
    pub(super) fn new(aim: Aim, most: u32) -> Search {
        let most = most.max(1);
        Search { aim, most, depth: 1, good: 0, bad: most + 1, all: 0, fast: 0, since_ns: 0 }
    }

    /// A block had this latency, and landed at this time since the beginning; the result, if that ends the search.
    pub(super) fn landed(&mut self, latency_ns: u64, now_ns: u64) -> Option<Found> {
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
            (true, 0) => Some(Found::Nothing),
            (true, good) => {
                self.depth = good;
                Some(Found::Depth(good))
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
    fn found(limit: u32, most: u32, percentile: f64) -> Found {
        let window = Duration::from_millis(1);
        let aim = Aim { latency: Duration::from_micros(100), window, percentile, goes_on: false };
        let mut search = Search::new(aim, most);
        for now in 0u64.. {
            // Every tenth block is slow, at any depth.
            let slow = search.depth > limit || percentile < 100.0 && now % 10 == 0;
            let latency_ns = if slow { 200_000 } else { 50_000 };
            if let Some(found) = search.landed(latency_ns, now * 10_000) {
                return found;
            }
            assert!(search.depth <= most && now < 1_000_000);
        }
        Found::Nothing
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
            assert_eq!(found(limit, most, 100.0), Found::Depth(expected), "{limit} of {most}");
            assert_eq!(found(limit, most, 80.0), Found::Depth(expected), "{limit} of {most}");
        }
        assert_eq!(found(0, 64, 100.0), Found::Nothing);
    }
}
