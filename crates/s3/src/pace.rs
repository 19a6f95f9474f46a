//! Adaptive request rate for servers that throttle: derived from their responses and raised slowly again.
//! Pure: the caller supplies the time and waits.
//!
//! If at least a tenth of the responses are throttling responses, the rate is cut to that of successful
//! responses, but at most by half; then it grows by a tenth per second. A server with a limit is thus kept
//! just above it, while occasional failures regardless of the rate do not slow the run down.

use std::time::Duration;

/// Share of throttling responses that is tolerated.
const BEARABLE: f64 = 0.1;
/// Number of throttling responses, or time, after which their share is known.
const SAMPLE: u64 = 10;
const SAMPLE_TIME: Duration = Duration::from_millis(100);
/// Shortest time between two cuts: responses to earlier requests do not cause another one.
const EPISODE: Duration = Duration::from_millis(500);
/// Time without throttling after which the limit is removed.
const QUIET: Duration = Duration::from_secs(30);
/// Growth per second.
const GROWTH: f64 = 0.1;
/// Lowest rate, requests per second.
const FLOOR_PER_S: f64 = 2.0;

/// State of the rate, at first without a limit. All times are relative to the same start.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Requests per second, if limited.
    limit_per_s: Option<f64>,
    /// Time until which requests have been granted.
    paid: Duration,
    /// Time of the last growth of the limit.
    grown: Duration,
    /// Time of the last throttling response.
    complained: Duration,
    /// Start of the current window, successes until then, and throttling responses since.
    window: (Duration, u64, u64),
}

impl Pace {
    /// Records the number of successful requests; call about once per second.
    pub fn tick(&mut self, now: Duration, succeeded: u64) {
        if now.saturating_sub(self.window.0) >= Duration::from_secs(1) {
            self.window = (now, succeeded, 0);
        }
    }

    /// Records a throttling response or a stall. Returns true if the rate was cut for the first time, or by
    /// half.
    ///
    /// A caller that also controls the number of requests in flight should react only to that. Both control
    /// the same quantity: once the rate follows the server, repeated throttling responses are how the limit
    /// is found, and halving the number in flight each time would end at one request, below the server's
    /// limit.
    pub fn throttled(&mut self, now: Duration, succeeded: u64) -> bool {
        self.window.2 += 1;
        let (since, before, complaints) = self.window;
        let window = now.saturating_sub(since);
        let early = match self.limit_per_s {
            Some(_) => window < EPISODE,
            None => window < SAMPLE_TIME && complaints < SAMPLE,
        };
        if early {
            return false;
        }
        let window_s = window.max(SAMPLE_TIME / 2).as_secs_f64();
        let good_per_s = succeeded.saturating_sub(before) as f64 / window_s;
        let bad_per_s = complaints as f64 / window_s;
        let asked_per_s = good_per_s + bad_per_s;
        if bad_per_s < BEARABLE * asked_per_s {
            return false;
        }
        let slowed = self.limit_per_s.is_none_or(|limit| good_per_s <= limit / 2.0);
        let old = self.limit_per_s.unwrap_or(asked_per_s);
        self.limit_per_s = Some(good_per_s.clamp(old / 2.0, old).max(FLOOR_PER_S));
        (self.complained, self.grown) = (now, now);
        self.paid = self.paid.max(now);
        self.window = (now, succeeded, 0);
        slowed
    }

    /// True if the rate is limited.
    pub fn is_limited(&self) -> bool {
        self.limit_per_s.is_some()
    }

    /// Grants one request at `now`; returns the time to wait before sending it.
    pub fn take(&mut self, now: Duration) -> Duration {
        let Some(limit) = self.limit_per_s else { return Duration::ZERO };
        if now.saturating_sub(self.complained) >= QUIET {
            self.limit_per_s = None;
            return Duration::ZERO;
        }
        let grown_s = now.saturating_sub(self.grown).as_secs_f64();
        let limit = limit * (1.0 + GROWTH).powf(grown_s);
        self.limit_per_s = Some(limit);
        self.grown = now;
        let start = self.paid.max(now);
        self.paid = start + Duration::from_secs_f64(1.0 / limit);
        start - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates `seconds` with `jobs` requests of 10 ms in flight; the server handles at most `cap_per_s`,
    /// of which the share `error_rate` fails. Returns successes.
    fn run(seconds: u64, jobs: u32, cap_per_s: u32, error_rate: f64) -> (Pace, Vec<u64>) {
        let (mut pace, mut random) = (Pace::default(), fastrand::Rng::with_seed(1));
        let mut per_s = vec![0; usize::try_from(seconds).unwrap()];
        let (mut succeeded, mut served) = (0, (0, 0));
        let mut ends: std::collections::BinaryHeap<_> =
            (0..jobs).map(|n| std::cmp::Reverse(Duration::from_micros(u64::from(n)))).collect();
        while let Some(std::cmp::Reverse(now)) = ends.pop() {
            let second = now.as_secs();
            if second >= seconds {
                break;
            }
            // The server's limit applies per tenth of a second.
            let tenth = now.as_millis() / 100;
            served = if served.0 == tenth { (tenth, served.1 + 1) } else { (tenth, 1) };
            if served.1 > cap_per_s / 10 || random.f64() < error_rate {
                pace.throttled(now, succeeded);
            } else {
                succeeded += 1;
                per_s[usize::try_from(second).unwrap()] += 1;
            }
            pace.tick(now, succeeded);
            ends.push(std::cmp::Reverse(now + pace.take(now) + Duration::from_millis(10)));
        }
        (pace, per_s)
    }

    #[test]
    fn it_costs_nothing_before_the_first_complaint() {
        let mut pace = Pace::default();
        assert!((0..1000).all(|_| pace.take(Duration::from_secs(1)).is_zero()));
        assert!(!pace.is_limited());
    }

    #[test]
    fn a_server_with_a_limit_is_held_near_it() {
        let (pace, per_s) = run(30, 64, 1000, 0.0);
        assert!(pace.is_limited());
        let late: u64 = per_s[10..].iter().sum();
        assert!(late > 20 * 750, "{per_s:?}");
        let limit = pace.limit_per_s.unwrap();
        assert!((600.0..1500.0).contains(&limit), "{limit}");
    }

    #[test]
    fn errors_whatever_the_rate_do_not_stop_a_run() {
        let (_, per_s) = run(60, 64, 1_000_000, 0.05);
        let late: u64 = per_s[30..].iter().sum();
        assert!(late > 30 * 1000, "{per_s:?}");
    }

    #[test]
    fn a_server_that_refuses_everything_is_asked_less_and_less() {
        let mut pace = Pace::default();
        pace.tick(Duration::ZERO, 0);
        for second in 1..20 {
            pace.throttled(Duration::from_secs(second), 0);
        }
        assert_eq!(pace.limit_per_s, Some(FLOOR_PER_S));
        pace.take(Duration::from_secs(19));
        assert!(pace.take(Duration::from_secs(19)) >= Duration::from_millis(400));
    }

    #[test]
    fn a_quiet_time_lifts_the_limit() {
        let mut pace = Pace::default();
        for _ in 0..200 {
            pace.throttled(Duration::from_secs(1), 100);
        }
        assert!(pace.is_limited());
        assert!(pace.take(Duration::from_secs(32)).is_zero());
        assert!(!pace.is_limited());
    }

    #[test]
    fn one_episode_is_one_cut() {
        let mut pace = Pace::default();
        let slowed = (0..200).filter(|_| pace.throttled(Duration::from_secs(1), 1000)).count();
        assert_eq!(slowed, 1);
        let limit = pace.limit_per_s;
        assert!(limit.is_some());
        assert!(!pace.throttled(Duration::from_millis(1200), 1000));
        assert_eq!(pace.limit_per_s, limit);
        // Throttling during the search is expected; a server at half the rate is news.
        let limit = limit.unwrap();
        let complain = |pace: &mut Pace, second: u64, answered: f64| {
            pace.window = (Duration::from_secs(second), 0, 0);
            let now = Duration::from_secs(second + 1);
            let some = (0..200).map(|_| pace.throttled(now, answered as u64));
            some.filter(|slowed| *slowed).count()
        };
        pace.limit_per_s = Some(limit);
        assert_eq!(complain(&mut pace, 5, limit * 0.9), 0);
        let limit = pace.limit_per_s.unwrap();
        assert_eq!(complain(&mut pace, 7, limit * 0.1), 1);
    }
}
