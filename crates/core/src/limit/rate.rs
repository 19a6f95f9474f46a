//! A rate that all workers share.
//!
//! The limiter is the virtual-scheduling form of the leaky bucket (GCRA, ITU-T I.371): one
//! number, the time at which everything granted so far will have been paid for. A grant is made
//! when that time has come, and its own cost is added.
//!
//! A caller that comes late, because a machine is busy or a sleep took longer, may catch up: but no more than
//! [`TOLERANCE`]. So with grants of at most [`Limiter::grant_max`] no second has more than
//! 1 + 0.04 + 0.025 of the rate, and what is left to 1.1 is for threads that wake late.

use crate::meter::{Doing, Phase};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Delay that may be caught up: late grants do not shift later ones, or the mean would be below the rate. Longer pauses
/// are not saved up.
const TOLERANCE: Duration = Duration::from_millis(40);
/// The largest grant, in parts of a second.
const GRANTS_PER_S: u64 = 40;
/// Shorter sleeps are skipped; units that became due meanwhile are caught up.
const SLEEP_MIN: Duration = Duration::from_millis(5);
/// After so long, a longer wait is interrupted to see whether the run stops or the rate has changed.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// A rate in units a second, shared by all callers.
#[derive(Debug)]
pub struct Limiter {
    per_s: AtomicU64,
    /// Nanoseconds after the start at which the last grant is paid for.
    paid_ns: AtomicU64,
    started: Instant,
    /// Threads that wait, in the order in which they came: the first sleeps until it gets its
    /// grant, the others until it is their turn to be first.
    line: Mutex<Line>,
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct Line {
    threads: VecDeque<(u64, Thread)>,
    next: u64,
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Limiter {
    /// At most `per_s` units (bytes, operations) a second; zero counts as one, and `u64::MAX` is
    /// no limit.
    pub fn new(per_s: u64) -> Limiter {
        Limiter {
            per_s: AtomicU64::new(per_s.max(1)),
            paid_ns: AtomicU64::new(0),
            started: Instant::now(),
            line: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// The rate, in units a second.
    pub fn per_s(&self) -> u64 {
        self.per_s.load(Ordering::Relaxed)
    }

    /// Sets another rate, for all that is granted from now on. What was granted ahead is paid for
    /// at the new rate, too. Threads that wait in [`Limiter::wait`] notice within 100 ms.
    pub fn set_per_s(&self, per_s: u64) {
        self.set_per_s_at(per_s, self.elapsed());
    }

    fn set_per_s_at(&self, per_s: u64, now: Duration) {
        let (new, now_ns) = (per_s.max(1), ns(now));
        let old = self.per_s.swap(new, Ordering::Relaxed);
        let rescaled = |paid: u64| {
            let ahead = u128::from(paid.checked_sub(now_ns)?) * u128::from(old) / u128::from(new);
            Some(now_ns.saturating_add(u64::try_from(ahead).unwrap_or(u64::MAX)))
        };
        // `None`: nothing was granted ahead.
        let _ = self.paid_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rescaled);
    }

    /// Time since this limiter was made: the `now` of its other functions.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn cost_ns(&self, count: u64) -> u64 {
        match self.per_s() {
            u64::MAX => 0,
            per_s => {
                let cost = u128::from(count) * 1_000_000_000 / u128::from(per_s);
                u64::try_from(cost).unwrap_or(u64::MAX)
            }
        }
    }

    /// Takes `count` units at `now` (since the start) and returns how long to wait before using
    /// them: first come, first served, for callers that must not block. Idle time is not saved up
    /// beyond 40 ms: a burst after a pause is no larger than that and one grant.
    pub fn take(&self, count: u64, now: Duration) -> Duration {
        let (now_ns, cost_ns) = (ns(now), self.cost_ns(count));
        let floor_ns = now_ns.saturating_sub(ns(TOLERANCE));
        let next = |paid: u64| Some(paid.max(floor_ns).saturating_add(cost_ns));
        let paid = self.paid_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        Duration::from_nanos(paid.unwrap_or_default().saturating_sub(now_ns))
    }

    /// Takes `count` units if they may be used at `now`; otherwise says how long that will take
    /// if no other worker comes first, and takes nothing.
    ///
    /// # Errors
    /// The time to wait.
    pub fn try_take(&self, count: u64, now: Duration) -> Result<(), Duration> {
        let (now_ns, cost_ns) = (ns(now), self.cost_ns(count));
        let floor_ns = now_ns.saturating_sub(ns(TOLERANCE));
        let next = |paid: u64| (paid <= now_ns).then(|| paid.max(floor_ns).saturating_add(cost_ns));
        match self.paid_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(_) => Ok(()),
            Err(paid) => Err(Duration::from_nanos(paid - now_ns)),
        }
    }

    /// Takes `count` units, at most [`Limiter::grant_max`], if they may be used now and no
    /// thread waits.
    fn take_now(&self, count: u64) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0 && self.try_take(count, self.elapsed()).is_ok()
    }

    /// For threads: takes `count` units, at most [`Limiter::grant_max`], and returns when they may
    /// be used, or `false` without them soon after `stopped` is true. Threads are served in order of arrival; only
    /// the first sleeps by the clock.
    pub fn wait(&self, count: u64, stopped: impl Fn() -> bool) -> bool {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut line = self.line.lock();
        let ticket = line.next;
        line.next += 1;
        line.threads.push_back((ticket, std::thread::current()));
        while line.threads.front().is_some_and(|(first, _)| *first != ticket) {
            drop(line);
            std::thread::park();
            line = self.line.lock();
        }
        drop(line);
        let granted = loop {
            if stopped() {
                break false;
            }
            match self.try_take(count, self.elapsed()) {
                Ok(()) => break true,
                Err(wait) => std::thread::sleep(wait.clamp(SLEEP_MIN, SLEEP_MAX)),
            }
        };
        let mut line = self.line.lock();
        line.threads.pop_front();
        if let Some((_, next)) = line.threads.front() {
            next.unpark();
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        granted
    }

    /// For threads: takes `count` units, in grants of at most [`Limiter::grant_max`], and returns when they may be used,
    /// or without the rest soon after `stopped` is true. Calls `waits` before each wait.
    pub fn take_all(&self, count: u64, stopped: impl Fn() -> bool, mut waits: impl FnMut()) {
        let mut left = count;
        while left > 0 && !stopped() {
            let grant = left.min(self.grant_max());
            if !self.take_now(grant) {
                waits();
                self.wait(grant, &stopped);
            }
            left -= grant;
        }
    }

    /// As [`Limiter::take_all`] to the end; `doing` is in [`Phase::Limit`] from the first wait on.
    pub fn pace(&self, count: u64, doing: &Doing) {
        let mut limited = None;
        self.take_all(
            count,
            || false,
            || {
                limited.get_or_insert_with(|| doing.during(Phase::Limit));
            },
        );
    }

    /// The largest grant that keeps the rate smooth: what is due in 25 ms, at least one unit.
    pub fn grant_max(&self) -> u64 {
        (self.per_s() / GRANTS_PER_S).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn idle_time_is_hardly_saved_up() {
        let limiter = Limiter::new(1000);
        let later = Duration::from_secs(3600);
        assert_eq!(limiter.take(100, later), Duration::ZERO);
        assert_eq!(limiter.take(100, later), Duration::from_millis(60));
    }

    #[test]
    fn what_comes_late_is_caught_up() {
        let limiter = Limiter::new(1000);
        let (mut now, mut granted) = (Duration::ZERO, 0);
        while now < Duration::from_secs(10) {
            match limiter.try_take(20, now) {
                Ok(()) => granted += 20,
                // Every sleep takes 30 ms longer than asked for.
                Err(wait) => now += wait + Duration::from_millis(30),
            }
        }
        assert!((9_950..=10_050).contains(&granted), "{granted} in 10 s");
    }

    #[test]
    fn absurd_counts_do_not_wrap() {
        let limiter = Limiter::new(1);
        limiter.take(u64::MAX, Duration::ZERO);
        assert!(limiter.take(1, Duration::ZERO) > Duration::from_secs(1 << 30));
        let none = Limiter::new(u64::MAX);
        for _ in 0..1000 {
            assert!(none.take_now(1 << 40));
        }
    }

    #[test]
    fn another_rate_holds_at_once() {
        let limiter = Limiter::new(1000);
        assert_eq!(limiter.take(10_000, Duration::ZERO), Duration::ZERO);
        limiter.set_per_s_at(100_000, Duration::ZERO);
        assert_eq!((limiter.per_s(), limiter.grant_max()), (100_000, 2500));
        // Ten seconds' worth are a tenth of one now.
        assert_eq!(limiter.take(1000, Duration::ZERO), Duration::from_millis(100));
        limiter.set_per_s_at(50_000, Duration::from_millis(10));
        assert_eq!(limiter.take(1, Duration::from_millis(10)), Duration::from_millis(200));
    }

    #[test]
    fn those_who_wait_get_equal_shares_and_stop_soon() {
        let limiter = Limiter::new(4000);
        let stop = std::sync::atomic::AtomicBool::new(false);
        let stopped = || stop.load(Ordering::Relaxed);
        let begun = Instant::now();
        let counts = std::thread::scope(|scope| {
            let one = || {
                let mut count = 0;
                while limiter.wait(20, stopped) {
                    count += 20;
                }
                count
            };
            let workers: Vec<_> = (0..6).map(|_| scope.spawn(one)).collect();
            std::thread::sleep(Duration::from_millis(900));
            stop.store(true, Ordering::Relaxed);
            workers.into_iter().map(|worker| worker.join().unwrap()).collect::<Vec<u64>>()
        });
        let took_s = begun.elapsed().as_secs_f64();
        assert!(took_s < 1.5, "stopped after {took_s:.2} s");
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        // One that the scheduler forgets for a moment misses a turn.
        assert!(least * 10 >= most * 7, "{counts:?}");
        let all = counts.iter().sum::<u64>() as f64;
        assert!(all <= 4000.0 * (took_s + 0.04) + 120.0, "{all} in {took_s:.3} s");
    }

    proptest! {
        /// Takers that come at any times, ask for any allowed count, and wake late by any time:
        /// no second has more than its share.
        #[test]
        fn no_second_is_above_the_rate(
            per_s in prop_oneof![40u64..2000, 2000u64..10_000_000_000],
            asks in prop::collection::vec((0usize..8, 1u64..=100, 0u64..60_000), 50..600),
            reserves in any::<bool>(),
        ) {
            let limiter = Limiter::new(per_s);
            let grant_max = limiter.grant_max();
            // When each of the takers is free again.
            let mut free = [Duration::ZERO; 8];
            let mut used = Vec::new();
            for (taker, percent, late_us) in asks {
                let count = (grant_max * percent / 100).max(1);
                let mut now = free[taker];
                if reserves {
                    now += limiter.take(count, now);
                } else {
                    while let Err(wait) = limiter.try_take(count, now) {
                        now += wait;
                    }
                }
                used.push((now, count));
                free[taker] = now + Duration::from_micros(late_us);
            }
            used.sort_unstable();
            let second = Duration::from_secs(1);
            let (mut sum, mut first) = (0, 0);
            for (at, count) in &used {
                sum += count;
                while used[first].0 + second <= *at {
                    sum -= used[first].1;
                    first += 1;
                }
                let most = per_s as f64 * 1.04 + grant_max as f64;
                prop_assert!(sum as f64 <= most + 1.0, "{sum} of {per_s} up to {at:?}");
            }
        }

        /// A caller that always asks gets no less than the rate.
        #[test]
        fn who_always_asks_gets_the_rate(
            per_s in 1u64..1_000_000_000, takers in 1usize..20, late_us in 0u64..30_000,
        ) {
            let limiter = Limiter::new(per_s);
            let count = limiter.grant_max();
            let (mut now, mut granted) = (Duration::ZERO, 0u64);
            let end = Duration::from_secs(20).max(Duration::from_secs(50 * count / per_s));
            let mut taker = 0;
            while now < end {
                taker = (taker + 1) % takers;
                match limiter.try_take(count, now) {
                    Ok(()) => granted += count,
                    Err(wait) => now += wait + Duration::from_micros(late_us),
                }
            }
            let mean = granted as f64 / end.as_secs_f64() / per_s as f64;
            let slack = 2.0 * count as f64 / (per_s as f64 * end.as_secs_f64());
            prop_assert!((mean - 1.0).abs() <= 0.01 + slack, "{mean}");
        }
    }
}
