//! Whether and when a failed request is tried again: pure decisions from counts, a random number
//! and what failed; and the budget of retries that all requests share.
//!
//! Full jitter after "Exponential Backoff And Jitter" (AWS Architecture Blog), budget after the
//! "standard" mode of the AWS SDKs ("Retry behavior", AWS SDKs and Tools Reference Guide).

use super::error::Kind;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Tries of one request where nobody says a number, the first included.
pub(super) const ATTEMPTS_MAX: u32 = 5;
/// Longest back-off.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// A server that asks for longer than this is not waited for as long.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
const BASE: Duration = Duration::from_millis(50);
const BASE_THROTTLED: Duration = Duration::from_millis(500);

/// How a failure counts towards trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// The next try would fail in the same way.
    Final,
    /// Broken connection, failed server.
    Transient,
    /// The server asked to slow down.
    Throttled,
    /// It stood still.
    TimedOut,
}

/// The class of a failure by its kind and AWS's code.
pub(super) fn class(kind: Kind, status: u16, code: &str) -> Class {
    match kind {
        Kind::Throttled => Class::Throttled,
        Kind::TimedOut => Class::TimedOut,
        // What was damaged under way may arrive whole the next time.
        Kind::Server | Kind::Connection | Kind::Corrupt => Class::Transient,
        _ if matches!(status, 429 | 503) => Class::Throttled,
        _ if matches!(status, 500 | 502 | 504) => Class::Transient,
        _ if code == "RequestTimeout" => Class::Transient,
        _ => Class::Final,
    }
}

/// How long to wait before the next try, after `tries` of them failed; `None` to give up.
/// `random` is from 0 to 1; `retry_after` is what the server asked for.
pub(super) fn wait(
    class: Class,
    tries: u32,
    attempts_max: u32,
    retry_after: Option<Duration>,
    random: f64,
) -> Option<Duration> {
    if class == Class::Final || tries >= attempts_max {
        return None;
    }
    let base = if class == Class::Throttled { BASE_THROTTLED } else { BASE };
    let ceiling = base.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(WAIT_MAX);
    let jittered = ceiling.mul_f64(random.clamp(0.0, 1.0));
    Some(jittered.max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX)))
}

/// Tokens that retries cost and successes bring back, shared by all requests of a store: an
/// endpoint that is dead is given up soon, one that is sick is not hammered.
#[derive(Debug)]
pub(super) struct Budget {
    tokens: AtomicI64,
}

const TOKENS: i64 = 500;
const COST: i64 = 5;
const COST_TIMED_OUT: i64 = 10;

impl Budget {
    /// A full one.
    pub fn new() -> Budget {
        Budget { tokens: AtomicI64::new(TOKENS) }
    }

    /// Pays for one retry and says what it cost; `None` where the budget is spent.
    pub fn take(&self, class: Class) -> Option<i64> {
        let cost = if class == Class::TimedOut { COST_TIMED_OUT } else { COST };
        let paid = |left: i64| (left >= cost).then_some(left - cost);
        self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, paid).ok().map(|_| cost)
    }

    /// A request succeeded, its last retry having cost `paid` (0: there was none): that comes
    /// back, or one token.
    pub fn refill(&self, paid: i64) {
        // Nobody writes to the shared line while nothing fails.
        if self.tokens.load(Ordering::Relaxed) < TOKENS {
            let more = |left: i64| Some((left + paid.max(1)).min(TOKENS));
            // An update that always has a value cannot fail.
            let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_within_their_ceiling() {
        let wait = |class, tries, random| wait(class, tries, 99, None, random).unwrap();
        assert_eq!(wait(Class::Transient, 1, 1.0), Duration::from_millis(50));
        assert_eq!(wait(Class::Transient, 3, 1.0), Duration::from_millis(200));
        assert_eq!(wait(Class::Transient, 3, 0.5), Duration::from_millis(100));
        assert_eq!(wait(Class::Throttled, 2, 1.0), Duration::from_secs(1));
        assert_eq!(wait(Class::Transient, 60, 1.0), WAIT_MAX);
        assert_eq!(wait(Class::TimedOut, 60, 0.0), Duration::ZERO);
    }

    #[test]
    fn the_last_try_is_the_last() {
        assert!(wait(Class::Transient, 4, 5, None, 0.0).is_some());
        assert!(wait(Class::Transient, 5, 5, None, 0.0).is_none());
        assert!(wait(Class::Final, 1, 5, None, 0.0).is_none());
    }

    #[test]
    fn a_server_that_names_a_time_is_heard_within_reason() {
        let wait = |s| wait(Class::Throttled, 1, 5, Some(Duration::from_secs(s)), 0.0).unwrap();
        assert_eq!(wait(3), Duration::from_secs(3));
        assert_eq!(wait(100_000), RETRY_AFTER_MAX);
    }

    #[test]
    fn a_dead_endpoint_spends_the_budget() {
        let budget = Budget::new();
        let taken = std::iter::from_fn(|| budget.take(Class::Transient)).count();
        assert_eq!(taken, 100);
        let budget = Budget::new();
        assert_eq!(std::iter::from_fn(|| budget.take(Class::TimedOut)).count(), 50);
        budget.refill(0);
        assert!(budget.take(Class::Transient).is_none());
        budget.refill(10);
        assert!(budget.take(Class::Transient).is_some());
    }

    /// How many of `count` requests the spent budget fails, where each try fails with
    /// probability `rate`.
    fn refused(rate: f64, count: u32) -> u32 {
        let (budget, mut random) = (Budget::new(), fastrand::Rng::with_seed(7));
        let mut refused = 0;
        'requests: for _ in 0..count {
            let (mut tries, mut paid) = (1, 0);
            while random.f64() < rate {
                if wait(Class::Transient, tries, ATTEMPTS_MAX, None, 0.0).is_none() {
                    continue 'requests;
                }
                let Some(cost) = budget.take(Class::Transient) else {
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
