//! Time when a block may go, where a rate is set (`rate`, `rate_iops`, `rate_process`).
//!
//! Each side has a schedule that begins with the job and knows nothing of how long blocks take. A
//! block that could not go at its time goes as soon as it can, and those after it are not moved: so a
//! rate is caught up with, and a latency that is counted from the schedule holds the time that a
//! block had to wait for those before it.

use crate::Job;

/// The schedules of both sides.
#[derive(Debug)]
pub(super) struct Pace {
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

impl Pace {
    /// The schedules of a clone; `None` where no rate is set.
    pub(super) fn new(job: &Job, clone: u32) -> Option<Pace> {
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
        Some(Pace { sides, chance })
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
