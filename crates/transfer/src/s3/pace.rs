//! How many requests a second a server takes that says "slow down": found from what it answered,
//! raised slowly again. Pure: the caller brings the time and does the waiting.
//!
//! Where at least a tenth of the answers are complaints, a cut goes to the rate at which the
//! server did answer, but never below half of what was asked of it; then the rate grows by a tenth
//! each second. A server with a limit is so held just above it, and one that fails a few requests
//! whatever the rate does not slow the run down.

use std::time::Duration;

/// Complaints among all answers that are no reason to go slower.
const BEARABLE: f64 = 0.1;
/// From so many complaints on, or after so long, their share is known.
const SAMPLE: u64 = 10;
const SAMPLE_TIME: Duration = Duration::from_millis(100);
/// Between two cuts: answers to what was sent before a cut are no reason for another one.
const EPISODE: Duration = Duration::from_millis(500);
/// After this long without complaint there is no limit any more.
const QUIET: Duration = Duration::from_secs(30);
/// Growth in a second.
const GROWTH: f64 = 0.1;
/// Never fewer requests a second than this.
const FLOOR_PER_S: f64 = 2.0;

/// The state of the gate. All times count from one start.
#[derive(Debug)]
pub(super) struct Pace {
    /// Requests a second, where there is a limit.
    limit_per_s: Option<f64>,
    /// What was granted is paid for by then.
    paid: Duration,
    /// When the limit last grew.
    grown: Duration,
    /// When the server last complained.
    complained: Duration,
    /// Since when answers are counted, how many successes there were then, and how many complaints
    /// came since.
    window: (Duration, u64, u64),
}

impl Pace {
    /// Without limit.
    pub fn new() -> Pace {
        Pace {
            limit_per_s: None,
            paid: Duration::ZERO,
            grown: Duration::ZERO,
            complained: Duration::ZERO,
            window: (Duration::ZERO, 0, 0),
        }
    }

    /// Tells how many requests succeeded so far; about once a second.
    pub fn tick(&mut self, now: Duration, succeeded: u64) {
        if now.saturating_sub(self.window.0) >= Duration::from_secs(1) {
            self.window = (now, succeeded, 0);
        }
    }

    /// The server said "slow down", or stood still. Returns whether the rate was cut for the first
    /// time, or by half.
    ///
    /// Whoever sets how many requests are in flight should heed only that. A rate and a number in
    /// flight are two handles of one thing: once the rate follows the server, growing until it
    /// complains again and again, those complaints are how it is found, and who halved the number
    /// each time would end at one request, below what the server would take.
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

    /// Whether there is a limit now.
    pub fn is_limited(&self) -> bool {
        self.limit_per_s.is_some()
    }

    /// Takes one request at `now` and returns how long to wait before sending it.
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

    /// Runs against a server for `seconds` with `jobs` requests in flight of 10 ms each; it
    /// answers at most `cap_per_s` of them, and of those fails `error_rate`. Returns successes.
    fn run(seconds: u64, jobs: u32, cap_per_s: u32, error_rate: f64) -> (Pace, Vec<u64>) {
        let (mut pace, mut random) = (Pace::new(), fastrand::Rng::with_seed(1));
        let mut per_s = vec![0; usize::try_from(seconds).unwrap()];
        let (mut succeeded, mut served) = (0, (0, 0));
        let mut ends: std::collections::BinaryHeap<_> =
            (0..jobs).map(|n| std::cmp::Reverse(Duration::from_micros(u64::from(n)))).collect();
        while let Some(std::cmp::Reverse(now)) = ends.pop() {
            let second = now.as_secs();
            if second >= seconds {
                break;
            }
            // The server's own second has tenths.
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
        let mut pace = Pace::new();
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
        let mut pace = Pace::new();
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
        let mut pace = Pace::new();
        for _ in 0..200 {
            pace.throttled(Duration::from_secs(1), 100);
        }
        assert!(pace.is_limited());
        assert!(pace.take(Duration::from_secs(32)).is_zero());
        assert!(!pace.is_limited());
    }

    #[test]
    fn one_episode_is_one_cut() {
        let mut pace = Pace::new();
        let slowed = (0..200).filter(|_| pace.throttled(Duration::from_secs(1), 1000)).count();
        assert_eq!(slowed, 1);
        let limit = pace.limit_per_s;
        assert!(limit.is_some());
        assert!(!pace.throttled(Duration::from_millis(1200), 1000));
        assert_eq!(pace.limit_per_s, limit);
        // Complaints while the rate is searched for are no news; a server at half its rate is.
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
