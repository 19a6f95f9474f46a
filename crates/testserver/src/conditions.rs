//! Conditions of requests: latency, concurrency, bandwidth, and random or rate-dependent errors. Decisions
//! are pure; the layer does the waiting.

use super::fault::Fault;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Configured conditions; none by default.
#[derive(Debug, Default)]
pub struct Conditions {
    /// Delay of each request before it is served.
    pub latency: Duration,
    /// Bytes per second over all connections and both directions.
    pub bandwidth: Option<u64>,
    /// Most requests served at once; others queue.
    pub in_flight_max: Option<usize>,
    /// Share of requests that get 500 InternalError, 0 to 1.
    pub error_rate: f64,
    /// Seed of the choice: equal seeds fail equal requests.
    pub seed: u64,
    /// Requests per second above which 503 SlowDown is returned.
    pub requests_per_s_max: Option<u64>,
    /// Faults; the first one that matches a request applies.
    pub faults: Vec<Fault>,
}

impl Conditions {
    /// True without conditions other than latency.
    pub fn is_plain(&self) -> bool {
        self.bandwidth.is_none()
            && self.in_flight_max.is_none()
            && self.error_rate <= 0.0
            && self.requests_per_s_max.is_none()
            && self.faults.is_empty()
    }
}

/// Random failures of requests.
#[derive(Debug)]
pub struct Chance {
    rate: f64,
    seed: u64,
    number: AtomicU64,
}

impl Chance {
    /// Fails the share `rate` of all requests.
    pub fn new(rate: f64, seed: u64) -> Chance {
        Chance { rate, seed, number: AtomicU64::new(0) }
    }

    /// True if the next request fails. The nth result depends on n and the seed only.
    pub fn fails_next(&self) -> bool {
        if self.rate <= 0.0 {
            return false;
        }
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        // splitmix64 (Steele, Lea, Flood 2014), evaluated directly at its nth number.
        let step = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed.wrapping_add(step);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((mixed >> 11) as f64) < self.rate * (1u64 << 53) as f64
    }
}

/// Rate limiter for requests, with a burst of a tenth of a second.
#[derive(Debug)]
pub struct Gate {
    per_s: f64,
    /// Time of the last update, and available requests.
    state: Mutex<(Instant, f64)>,
}

impl Gate {
    /// A limiter with a full burst.
    pub fn new(per_s: u64, now: Instant) -> Gate {
        let per_s = per_s as f64;
        Gate { per_s, state: Mutex::new((now, Gate::burst(per_s))) }
    }

    fn burst(per_s: f64) -> f64 {
        (per_s / 10.0).max(1.0)
    }

    /// True if a request passes.
    pub fn passes(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        let (then, left) = *state;
        let since = now.saturating_duration_since(then).as_secs_f64();
        let left = (left + since * self.per_s).min(Gate::burst(self.per_s));
        let passes = left >= 1.0;
        *state = (then.max(now), if passes { left - 1.0 } else { left });
        passes
    }
}

/// Bandwidth limiter.
#[derive(Debug)]
pub struct Pipe {
    bytes_per_s: f64,
    /// Time at which all bytes so far have passed.
    empty_at: Mutex<Instant>,
}

impl Pipe {
    /// An idle limiter.
    pub fn new(bytes_per_s: u64, now: Instant) -> Pipe {
        Pipe { bytes_per_s: bytes_per_s.max(1) as f64, empty_at: Mutex::new(now) }
    }

    /// Preferred number of bytes per call: those of 10 ms.
    pub fn piece_bytes(&self) -> usize {
        ((self.bytes_per_s / 100.0) as usize).clamp(1, 256 << 10)
    }

    /// Adds bytes; returns the time at which they have passed.
    pub fn put(&self, bytes: usize, now: Instant) -> Instant {
        let mut empty_at = self.empty_at.lock();
        *empty_at = now.max(*empty_at) + Duration::from_secs_f64(bytes as f64 / self.bytes_per_s);
        *empty_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_a_share_and_repeats() {
        let draw = |rate, seed| {
            let chance = Chance::new(rate, seed);
            (0..10_000).map(|_| chance.fails_next()).collect::<Vec<_>>()
        };
        let count = |rate, seed| draw(rate, seed).iter().filter(|hit| **hit).count();
        assert_eq!((count(0.0, 1), count(1.0, 1)), (0, 10_000));
        assert!((2_800..3_200).contains(&count(0.3, 7)), "{}", count(0.3, 7));
        assert_eq!(draw(0.5, 3), draw(0.5, 3));
        assert_ne!(draw(0.5, 3), draw(0.5, 4));
    }

    #[test]
    fn a_gate_lets_its_rate_through() {
        let start = Instant::now();
        let gate = Gate::new(100, start);
        let at = |ms| start + Duration::from_millis(ms);
        let passed = |ms| (0..50).filter(|_| gate.passes(at(ms))).count();
        assert_eq!(passed(0), 10);
        assert_eq!(passed(50), 5);
        assert_eq!(passed(40), 0);
        assert_eq!(passed(10_000), 10);
    }

    #[test]
    fn a_pipe_takes_its_time() {
        let start = Instant::now();
        let pipe = Pipe::new(1000, start);
        assert_eq!(pipe.put(500, start), start + Duration::from_millis(500));
        assert_eq!(pipe.put(500, start), start + Duration::from_millis(1000));
        let later = start + Duration::from_secs(9);
        assert_eq!(pipe.put(100, later), later + Duration::from_millis(100));
        assert_eq!(pipe.piece_bytes(), 10);
    }
}
