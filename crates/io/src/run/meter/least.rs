//! Rates that a job has to reach (`rate_min`, `rate_iops_min`), looked at once in each `rate_cycle`.

use super::{Meter, next};
use std::time::Duration;

/// Rates are not checked before this time, as in fio.
const SETTLE: Duration = Duration::from_secs(2);

impl Meter<'_> {
    /// The job begins now.
    pub(super) fn begin_least(&mut self, now: u64) {
        let least = &self.job.least;
        if least.bytes_per_s.iter().chain(&least.iops).any(Option::is_some) {
            let settled = SETTLE.saturating_sub(least.cycle);
            self.least_seen = (now.saturating_add(self.ticks(settled)), [(0, 0); 2]);
            self.least_due = now.saturating_add(self.ticks(SETTLE.max(least.cycle)));
        }
    }

    /// Blocks and bytes of both sides, ramp time included.
    fn moved(&self) -> [(u64, u64); 2] {
        let of = |at: usize| {
            let (side, ramp) = (&self.sides[at], self.ramp[at]);
            (side.ios + ramp.0, side.bytes + ramp.1)
        };
        [of(0), of(1)]
    }

    /// Compares the rates since the last look with those that there have to be.
    pub(super) fn look_at_rates(&mut self, now: u64) {
        let (since, before) = self.least_seen;
        let moved = self.moved();
        let seconds = self.clock.between_ns(since, now) as f64 / 1e9;
        let least = &self.job.least;
        let works = [self.job.rw.reads, self.job.rw.writes];
        for (at, name) in ["read", "write"].into_iter().enumerate().filter(|(at, _)| works[*at]) {
            // The first cycle also includes the settling time.
            let from = before[at];
            let rate = |count: u64| count as f64 / seconds.max(1e-9);
            let (iops, bytes) = (rate(moved[at].0 - from.0), rate(moved[at].1 - from.1));
            let wanted =
                [(least.bytes_per_s[at], bytes, "bytes"), (least.iops[at], iops, "blocks")];
            for (wanted, found, unit) in wanted {
                if let Some(wanted) = wanted.filter(|wanted| found < *wanted as f64) {
                    self.over = true;
                    self.too_slow = Some(format!(
                        "{name}: {found:.0} {unit} a second, and at least {wanted} there have to be \
                         (rate_min, rate_iops_min)"
                    ));
                }
            }
        }
        self.least_seen = (now, moved);
        let cycle = self.ticks(least.cycle);
        self.least_due = next(self.least_due, cycle, now);
    }
}
