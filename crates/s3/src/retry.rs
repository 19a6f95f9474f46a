//! Retry decisions: pure functions of counts, a random number and the failure; and the budget of retries
//! shared by all requests.
//!
//! Full jitter as in "Exponential Backoff And Jitter" (AWS Architecture Blog), budget as in the "standard"
//! mode of the AWS SDKs ("Retry behavior", AWS SDKs and Tools Reference Guide).

use super::error::Kind;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Limit of attempts per request, including the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempts {
    most: u32,
    /// Limit while the server throttles: with hundreds of requests in flight this happens repeatedly until
    /// the rate has adapted.
    throttled_most: u32,
}

impl Default for Attempts {
    fn default() -> Attempts {
        Attempts { most: 5, throttled_most: 10 }
    }
}

impl Attempts {
    /// Limit set by an option.
    pub fn exactly(most: u32) -> Attempts {
        Attempts { most, throttled_most: most }
    }
}

/// Longest backoff.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Longest wait requested by a server that is honoured.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
const BASE: Duration = Duration::from_millis(50);
const BASE_THROTTLED: Duration = Duration::from_millis(100);

/// Class of a failure for retry decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A retry would fail in the same way.
    Final,
    /// Broken connection, server failure.
    Transient,
    /// The server throttled the request.
    Throttled,
    /// The connection stalled.
    TimedOut,
}

/// Class of a failure by kind and AWS's code.
pub(super) fn class(kind: Kind, status: u16, code: &str) -> Class {
    match kind {
        Kind::Throttled => Class::Throttled,
        Kind::TimedOut => Class::TimedOut,
        // Data damaged in transit may arrive intact the next time.
        Kind::Server | Kind::Connection | Kind::Corrupt => Class::Transient,
        _ if matches!(status, 429 | 503) => Class::Throttled,
        _ if matches!(status, 500 | 502 | 504) => Class::Transient,
        _ if code == "RequestTimeout" => Class::Transient,
        _ => Class::Final,
    }
}

/// Pause before the next attempt after `tries` failures; `None` to give up. `random` is from 0 to 1;
/// `retry_after` is the server's request.
pub(super) fn wait(
    class: Class,
    tries: u32,
    attempts: Attempts,
    retry_after: Option<Duration>,
    random: f64,
) -> Option<Duration> {
    let (most, base) = match class {
        Class::Final => return None,
        Class::Throttled => (attempts.throttled_most, BASE_THROTTLED),
        Class::Transient | Class::TimedOut => (attempts.most, BASE),
    };
    if tries >= most {
        return None;
    }
    let ceiling = base.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(WAIT_MAX);
    let jittered = ceiling.mul_f64(random.clamp(0.0, 1.0));
    Some(jittered.max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX)))
}

/// Token bucket for retries, shared by all requests of a store: retries cost tokens, successes return them. A
/// dead endpoint is given up soon, and a failing one is not overloaded. Throttling costs nothing as long as
/// other requests succeed, because the rate then adapts (`pace`).
#[derive(Debug)]
pub(super) struct Budget {
    tokens: AtomicI64,
    /// Last known number of successes, and the time when it last grew.
    progress: Mutex<(u64, Duration)>,
}

const TOKENS: i64 = 500;
const COST: i64 = 5;
const COST_TIMED_OUT: i64 = 10;
/// Time since the last success after which throttling counts as failure.
const PATIENCE: Duration = Duration::from_secs(10);

impl Budget {
    /// Creates a full budget.
    pub fn new() -> Budget {
        Budget { tokens: AtomicI64::new(TOKENS), progress: Mutex::default() }
    }

    /// Pays for a retry and returns its cost; `None` if the budget is exhausted. `now` is relative to a fixed
    /// start, `succeeded` is the number of successful requests so far.
    pub fn take(&self, class: Class, now: Duration, succeeded: u64) -> Option<i64> {
        if class == Class::Throttled && self.goes_on(now, succeeded) {
            return Some(0);
        }
        let cost = if class == Class::TimedOut { COST_TIMED_OUT } else { COST };
        let paid = |left: i64| (left >= cost).then_some(left - cost);
        self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, paid).ok().map(|_| cost)
    }

    /// True if a request succeeded recently.
    fn goes_on(&self, now: Duration, succeeded: u64) -> bool {
        let mut progress = self.progress.lock();
        if succeeded > progress.0 {
            *progress = (succeeded, now);
        }
        now.saturating_sub(progress.1) < PATIENCE
    }

    /// Returns the cost `paid` for the last retry of a successful request, or one token if there was none
    /// (0).
    pub fn refill(&self, paid: i64) {
        // Avoid writing the shared cache line while nothing fails.
        if self.tokens.load(Ordering::Relaxed) < TOKENS {
            let more = |left: i64| Some((left + paid.max(1)).min(TOKENS));
            // An update function that always returns a value cannot fail.
            let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_within_their_ceiling() {
        let often = Attempts::exactly(99);
        let wait = |class, tries, random| wait(class, tries, often, None, random).unwrap();
        assert_eq!(wait(Class::Transient, 1, 1.0), Duration::from_millis(50));
        assert_eq!(wait(Class::Transient, 3, 1.0), Duration::from_millis(200));
        assert_eq!(wait(Class::Transient, 3, 0.5), Duration::from_millis(100));
        assert_eq!(wait(Class::Throttled, 2, 1.0), Duration::from_millis(200));
        assert_eq!(wait(Class::Transient, 60, 1.0), WAIT_MAX);
        assert_eq!(wait(Class::TimedOut, 60, 0.0), Duration::ZERO);
    }

    #[test]
    fn the_last_try_is_the_last() {
        let again = |class, tries, attempts| wait(class, tries, attempts, None, 0.0).is_some();
        let usual = Attempts::default();
        assert!(again(Class::Transient, 4, usual) && !again(Class::Transient, 5, usual));
        assert!(again(Class::Throttled, 9, usual) && !again(Class::Throttled, 10, usual));
        assert!(!again(Class::Final, 1, usual));
        // A configured number applies to throttling as well.
        assert!(!again(Class::Throttled, 1, Attempts::exactly(1)));
    }

    #[test]
    fn a_server_that_names_a_time_is_heard_within_reason() {
        let wait = |s| {
            let retry_after = Some(Duration::from_secs(s));
            wait(Class::Throttled, 1, Attempts::default(), retry_after, 0.0).unwrap()
        };
        assert_eq!(wait(3), Duration::from_secs(3));
        assert_eq!(wait(100_000), RETRY_AFTER_MAX);
    }

    #[test]
    fn a_dead_endpoint_spends_the_budget() {
        let take = |budget: &Budget, class| budget.take(class, Duration::from_secs(60), 7);
        let budget = Budget::new();
        let taken = std::iter::from_fn(|| take(&budget, Class::Transient)).count();
        assert_eq!(taken, 100);
        let budget = Budget::new();
        assert_eq!(std::iter::from_fn(|| take(&budget, Class::TimedOut)).count(), 50);
        budget.refill(0);
        assert!(take(&budget, Class::Transient).is_none());
        budget.refill(10);
        assert!(take(&budget, Class::Transient).is_some());
    }

    #[test]
    fn to_slow_down_costs_nothing_while_others_succeed() {
        let budget = Budget::new();
        let take = |s, succeeded| budget.take(Class::Throttled, Duration::from_secs(s), succeeded);
        assert!((0..10_000).all(|_| take(1, 0) == Some(0)));
        assert!((0..10_000).all(|_| take(30, 5) == Some(0)));
        // No success for longer than the limit: the server fails.
        let taken = std::iter::from_fn(|| take(41, 5)).count();
        assert_eq!(taken, 100);
        assert_eq!(take(41, 6), Some(0));
    }

    /// Number of `count` requests that fail because of the exhausted budget, if each attempt fails with
    /// probability `rate`.
    fn refused(rate: f64, count: u32) -> u32 {
        let (budget, mut random) = (Budget::new(), fastrand::Rng::with_seed(7));
        let mut refused = 0;
        'requests: for _ in 0..count {
            let (mut tries, mut paid) = (1, 0);
            while random.f64() < rate {
                if wait(Class::Transient, tries, Attempts::default(), None, 0.0).is_none() {
                    continue 'requests;
                }
                let Some(cost) = budget.take(Class::Transient, Duration::ZERO, 0) else {
                    refused += 1;
                    continue 'requests;
                };
                (tries, paid) = (tries + 1, cost);
            }
            budget.refill(paid);
        }
        refused
    }

    #[test]
    fn a_server_with_errors_does_not_spend_the_budget() {
        assert_eq!(refused(0.05, 200_000), 0);
        assert_eq!(refused(0.2, 200_000), 0);
        assert!(refused(0.9, 10_000) > 0);
    }

    #[test]
    fn kinds_and_codes_have_their_classes() {
        assert_eq!(class(Kind::Throttled, 503, "SlowDown"), Class::Throttled);
        assert_eq!(class(Kind::Server, 500, ""), Class::Transient);
        assert_eq!(class(Kind::Invalid, 400, "RequestTimeout"), Class::Transient);
        assert_eq!(class(Kind::AccessDenied, 403, "AccessDenied"), Class::Final);
        assert_eq!(class(Kind::Corrupt, 0, ""), Class::Transient);
        assert_eq!(class(Kind::Stopped, 0, ""), Class::Final);
    }
}
