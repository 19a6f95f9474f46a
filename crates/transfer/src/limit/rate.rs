//! A rate that all workers share.
//!
//! The limiter is the virtual-scheduling form of the leaky bucket (GCRA, ITU-T I.371): one
//! number, the time at which everything granted so far will have been paid for. It is pure: the
//! caller brings the time and does the waiting.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A rate in units a second, shared by all who call.
#[derive(Debug)]
pub struct Limiter {
    per_s: u64,
    /// Nanoseconds after the start at which the last grant is paid for.
    paid_ns: AtomicU64,
}

impl Limiter {
    /// At most `per_s` units (bytes, operations) a second; zero counts as one.
    pub fn new(per_s: u64) -> Limiter {
        Limiter { per_s: per_s.max(1), paid_ns: AtomicU64::new(0) }
    }

    /// Takes `count` units at `now` (since the start) and returns how long to wait before using
    /// them. Idle time is not saved up: a burst after a pause is no larger than one grant.
    pub fn take(&self, count: u64, now: Duration) -> Duration {
        let now_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let cost = u128::from(count) * 1_000_000_000 / u128::from(self.per_s);
        let cost_ns = u64::try_from(cost).unwrap_or(u64::MAX);
        let mut paid = self.paid_ns.load(Ordering::Relaxed);
        loop {
            let start = paid.max(now_ns);
            let next = start.saturating_add(cost_ns);
            match self.paid_ns.compare_exchange_weak(
                paid,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Duration::from_nanos(start - now_ns),
                Err(seen) => paid = seen,
            }
        }
    }

    /// How many units fit into a tenth of a second: the largest grant that keeps the rate smooth.
    pub fn grant_max(&self) -> u64 {
        (self.per_s / 10).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_rate_is_the_rate() {
        let limiter = Limiter::new(1000);
        let mut now = Duration::ZERO;
        for _ in 0..100 {
            now += limiter.take(50, now);
        }
        // 100 grants of 50 at 1000/s: the last one begins when 99 are paid for.
        assert_eq!(now, Duration::from_millis(99 * 50));
    }

    #[test]
    fn idle_time_is_not_saved_up() {
        let limiter = Limiter::new(1000);
        let later = Duration::from_secs(3600);
        assert_eq!(limiter.take(100, later), Duration::ZERO);
        assert_eq!(limiter.take(100, later), Duration::from_millis(100));
    }

    #[test]
    fn absurd_counts_do_not_wrap() {
        let limiter = Limiter::new(1);
        limiter.take(u64::MAX, Duration::ZERO);
        assert!(limiter.take(1, Duration::ZERO) > Duration::from_secs(1 << 30));
    }
}
