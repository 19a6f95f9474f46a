//! Whether and when a request is sent again: pure functions of counts, a random number and the failure, and the budget of
//! retries shared by all requests. `request` acts on them.
//!
//! Full jitter as in "Exponential Backoff And Jitter" (AWS Architecture Blog), budget as in the "standard"
//! mode of the AWS SDKs ("Retry behavior", AWS SDKs and Tools Reference Guide).

use crate::ErrorKind;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Limit of attempts per request, including the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryAttempts {
    most: u32,
    /// Limit while the server throttles: with hundreds of requests in flight this happens repeatedly until
    /// the rate has adapted.
    throttled_most: u32,
}

impl Default for RetryAttempts {
    fn default() -> RetryAttempts {
        RetryAttempts { most: 5, throttled_most: 10 }
    }
}

impl RetryAttempts {
    /// Limit set by an option.
    pub fn exactly(most: u32) -> RetryAttempts {
        RetryAttempts { most, throttled_most: most }
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
pub(crate) enum RetryClass {
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
pub(crate) fn class(kind: ErrorKind, status: u16, code: &str) -> RetryClass {
    match kind {
        ErrorKind::Throttled => RetryClass::Throttled,
        ErrorKind::TimedOut => RetryClass::TimedOut,
        // Data damaged in transit may arrive intact the next time.
        ErrorKind::Server | ErrorKind::Connection | ErrorKind::Corrupt => RetryClass::Transient,
        _ if matches!(status, 429 | 503) => RetryClass::Throttled,
        _ if matches!(status, 500 | 502 | 504) => RetryClass::Transient,
        _ if code == "RequestTimeout" => RetryClass::Transient,
        _ => RetryClass::Final,
    }
}

/// Pause before the next attempt after `tries` failures; `None` to give up. `random` is from 0 to 1;
/// `retry_after` is the server's request.
pub(crate) fn wait(
    class: RetryClass,
    tries: u32,
    attempts: RetryAttempts,
    retry_after: Option<Duration>,
    random: f64,
) -> Option<Duration> {
    let (most, base) = match class {
        RetryClass::Final => return None,
        RetryClass::Throttled => (attempts.throttled_most, BASE_THROTTLED),
        RetryClass::Transient | RetryClass::TimedOut => (attempts.most, BASE),
    };
    if tries >= most {
        return None;
    }
    let ceiling = base.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(WAIT_MAX);
    let jittered = ceiling.mul_f64(random.clamp(0.0, 1.0));
    Some(jittered.max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX)))
}

/// Token bucket for retries, shared by all requests of a session: retries cost tokens, successes return them. A
/// dead endpoint is given up soon, and a failing one is not overloaded. Throttling costs nothing as long as
/// other requests succeed, because the rate then adapts (`request_rate`).
#[derive(Debug)]
pub(crate) struct RetryBudget {
    tokens: AtomicI64,
    /// Last known number of successes, and the time when it last grew.
    progress: Mutex<(u64, Duration)>,
}

const TOKENS: i64 = 500;
const COST: i64 = 5;
const COST_TIMED_OUT: i64 = 10;
/// Time since the last success after which throttling counts as failure.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(10);

impl RetryBudget {
    /// Creates a full budget.
    pub fn new() -> RetryBudget {
        RetryBudget { tokens: AtomicI64::new(TOKENS), progress: Mutex::default() }
    }

    /// Pays for a retry and returns its cost; `None` if the budget is exhausted. `now` is relative to a fixed
    /// start, `succeeded` is the number of successful requests so far.
    pub fn take(&self, class: RetryClass, now: Duration, succeeded: u64) -> Option<i64> {
        if class == RetryClass::Throttled && self.goes_on(now, succeeded) {
            return Some(0);
        }
        let cost = if class == RetryClass::TimedOut { COST_TIMED_OUT } else { COST };
        let paid = |left: i64| (left >= cost).then_some(left - cost);
        self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, paid).ok().map(|_| cost)
    }

    /// True if a request succeeded recently.
    fn goes_on(&self, now: Duration, succeeded: u64) -> bool {
        let mut progress = self.progress.lock();
        if succeeded > progress.0 {
            *progress = (succeeded, now);
        }
        now.saturating_sub(progress.1) < PROGRESS_TIMEOUT
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
mod tests;
