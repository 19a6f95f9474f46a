//! Progress, rate and remaining time of a run, from periodic samples of counters. Pure: the time is an argument.

use super::cost::Costs;
use hakobu_core::meter::Progress;
use std::time::Duration;

/// Time constant, in seconds, of current rates.
const NOW_S: f64 = 1.5;
/// Bounds, in seconds, of the time constant for the remaining time.
const STEADY_S: (f64, f64) = (1.5, 60.0);
/// Part of the elapsed time that is the time constant for the remaining time.
const STEADY_PART: f64 = 2.0;
/// Time constant, in seconds, of the errors that tell a change of the rate from its fluctuation.
const ERROR_S: f64 = 1.0;
/// Bytes that an entry counts as in a combined percentage, which never falls.
const ENTRY_BYTES: f64 = 16384.0;

/// Completeness of a total of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Known {
    /// It grows: the listing continues.
    #[default]
    AtLeast,
    /// Some sizes are estimated from those of other files.
    About,
    /// All sizes are known.
    Exactly,
}

/// State of a run at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// The counters.
    pub at: Progress,
    /// Time since the start.
    pub elapsed: Duration,
    /// Entries that failed.
    pub failed: u64,
    /// Expected bytes at the end.
    pub bytes_total: u64,
    /// Certainty of the total.
    pub known: Known,
    /// Current rate in bytes per second.
    pub bytes_per_s: f64,
    /// Mean rate in bytes per second.
    pub bytes_per_s_mean: f64,
    /// Current rate in entries per second.
    pub entries_per_s: f64,
    /// Fraction of the work done, from 0 to 1, once everything has been found.
    pub fraction: Option<f64>,
    /// Remaining time, once everything has been found and while something moves.
    pub left: Option<Duration>,
    /// Time since anything was found, moved or finished.
    pub still: Duration,
}

/// An exponentially weighted mean: a value `tau` seconds old counts 1/e.
#[derive(Clone, Copy, Debug, Default)]
struct Smoothed {
    amount: f64,
    seconds: f64,
}

impl Smoothed {
    fn push(&mut self, amount: f64, seconds: f64, tau: f64) {
        let kept = (-seconds / tau).exp();
        self.amount = self.amount * kept + amount;
        self.seconds = self.seconds * kept + seconds;
    }

    fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.amount / self.seconds } else { 0.0 }
    }
}

/// The rates of a run so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    elapsed_s: f64,
    bytes: u64,
    done: u64,
    /// Bytes, finished and found entries at the last sample.
    seen: (u64, u64, u64),
    /// Time of the last change of one of them.
    stirred: Duration,
    bytes_now: Smoothed,
    done_now: Smoothed,
    bytes_steady: Smoothed,
    done_steady: Smoothed,
    error: Smoothed,
    error_size: Smoothed,
    costs: Costs,
}

impl Pace {
    /// Adds the errors of a sample, and returns the time constant for the remaining time. Rates that fluctuate are smoothed over half of the time so far;
    /// after a lasting change, when all errors have one sign, the time before it is soon forgotten. The part of the errors
    /// that do not cancel out is the tracking signal of Trigg and Leach, "Exponential smoothing with an adaptive response
    /// rate" (1967).
    fn steady_s(&mut self, bytes: f64, done: f64, seconds: f64, elapsed_s: f64) -> f64 {
        let steady = (elapsed_s / STEADY_PART).clamp(STEADY_S.0, STEADY_S.1);
        let entry_bytes = self.costs.entry_bytes();
        let usual = self.bytes_steady.rate() + self.done_steady.rate() * entry_bytes;
        let error = bytes + done * entry_bytes - usual * seconds;
        self.error.push(error, seconds, ERROR_S);
        self.error_size.push(error.abs(), seconds, ERROR_S);
        // Both sums have the same weights.
        let (sum, size) = (self.error.amount, self.error_size.amount);
        let signal = if size > 0.0 { sum.abs() / size } else { 0.0 };
        steady + (NOW_S - steady) * signal
    }

    /// Adds a sample of the counters.
    pub fn look(&mut self, at: Progress, failed: u64, elapsed: Duration) -> Moment {
        let elapsed_s = elapsed.as_secs_f64();
        let seconds = elapsed_s - self.elapsed_s;
        if at.bytes == 0 && at.done == 0 {
            // Connecting and listing come once, so they are part of no rate.
            self.elapsed_s = elapsed_s;
        } else if seconds > 0.0 {
            let bytes = at.bytes.saturating_sub(self.bytes) as f64;
            let done = at.done.saturating_sub(self.done) as f64;
            let steady = self.steady_s(bytes, done, seconds, elapsed_s);
            self.bytes_now.push(bytes, seconds, NOW_S);
            self.done_now.push(done, seconds, NOW_S);
            self.bytes_steady.push(bytes, seconds, steady);
            self.done_steady.push(done, seconds, steady);
            // What entries and bytes cost changes less than the rate.
            self.costs.push(done, bytes, seconds, elapsed_s.max(steady));
            (self.elapsed_s, self.bytes, self.done) = (elapsed_s, at.bytes, at.done);
        }
        let seen = (at.bytes, at.done, at.found);
        if std::mem::replace(&mut self.seen, seen) != seen {
            self.stirred = elapsed;
        }
        let (bytes_total, known) = total(&at);
        let mean = |count: u64, span_s: f64| if span_s > 0.0 { count as f64 / span_s } else { 0.0 };
        let rates = (self.bytes_steady.rate(), self.done_steady.rate());
        Moment {
            at,
            elapsed,
            failed,
            bytes_total,
            known,
            bytes_per_s: self.bytes_now.rate(),
            bytes_per_s_mean: mean(at.bytes, elapsed_s),
            entries_per_s: self.done_now.rate(),
            fraction: at.listed.then(|| fraction(&at, bytes_total)),
            left: left(&at, bytes_total, rates, self.costs.entry_bytes()),
            still: elapsed.saturating_sub(self.stirred),
        }
    }
}

/// Returns the expected bytes at the end: the known ones, and the mean size for each entry that was not examined.
fn total(at: &Progress) -> (u64, Known) {
    let open = at.found - at.sized.min(at.found);
    match (at.listed, open) {
        (false, _) => (at.bytes_ahead, Known::AtLeast),
        (true, 0) => (at.bytes_ahead, Known::Exactly),
        (true, _) if at.sized == 0 => (at.bytes_ahead, Known::AtLeast),
        (true, open) => {
            let guess = u128::from(at.bytes_ahead) * u128::from(open) / u128::from(at.sized);
            let guess = u64::try_from(guess).unwrap_or(u64::MAX);
            (at.bytes_ahead.saturating_add(guess), Known::About)
        }
    }
}

fn fraction(at: &Progress, bytes_total: u64) -> f64 {
    let work = |bytes: u64, entries: u64| bytes as f64 + entries as f64 * ENTRY_BYTES;
    let all = work(bytes_total, at.found);
    if all > 0.0 { (work(at.bytes, at.done) / all).min(1.0) } else { 1.0 }
}

/// Returns the remaining time at these rates (bytes and entries per second), where an entry takes as long as
/// `entry_bytes` beside its content: files of all sizes count by what they take, in any order. Entries in progress are
/// included in the bytes.
fn left(
    at: &Progress,
    bytes_total: u64,
    (bytes_per_s, done_per_s): (f64, f64),
    entry_bytes: f64,
) -> Option<Duration> {
    if !at.listed || (at.done == 0 && at.bytes == 0) {
        return None;
    }
    let bytes = bytes_total.saturating_sub(at.bytes);
    let entries = at.found.saturating_sub(at.done.saturating_add(at.jobs));
    if bytes == 0 && entries == 0 {
        return Some(Duration::ZERO);
    }
    // If bytes remain and none move, the time is unknown.
    if bytes > 0 && bytes_per_s <= 0.0 {
        return None;
    }
    // Until as many have ended as are in progress, entries give no rate: large files that began together end together.
    let entry_bytes = if at.done >= at.jobs { entry_bytes } else { 0.0 };
    let work = |bytes: f64, entries: f64| bytes + entries * entry_bytes;
    let per_s = work(bytes_per_s, done_per_s);
    let rest = work(bytes as f64, entries as f64);
    let left_s = match rest > 0.0 {
        true => rest / per_s,
        // Entries that cost nothing, as far as is known.
        false if at.done >= at.jobs => entries as f64 / done_per_s,
        false => return None,
    };
    // A rate of zero gives no duration.
    Duration::try_from_secs_f64(left_s).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A run of `files` files of `bytes` bytes at a rate, that finds everything at once and works on `jobs` of them.
    fn at(
        seconds: f64,
        (files, bytes, jobs): (u64, u64, u64),
        rate: f64,
        sizes_known: bool,
    ) -> Progress {
        let all = files * bytes;
        let moved = ((seconds * rate) as u64).min(all);
        let done = moved / bytes;
        let sized = if sizes_known { files } else { (done + jobs).min(files) };
        Progress {
            found: files,
            sized,
            done,
            bytes: moved,
            bytes_ahead: sized * bytes,
            jobs: jobs.min(files - done),
            listed: true,
            ..Progress::default()
        }
    }

    proptest! {
        /// At a constant rate the remaining time is right within a quarter from a third of the run on, for any
        /// sampling times.
        #[test]
        fn time_left_at_a_constant_rate(
            files in 1_u64..3000,
            bytes in 1_u64..200_000_000,
            jobs in 1_u64..64,
            total_s in 2.0_f64..4000.0,
            sizes_known: bool,
            step in 0.01_f64..0.03,
        ) {
            let rate = (files * bytes) as f64 / total_s;
            prop_assume!(rate > 10.0 && files * bytes > 1000);
            // With estimated sizes files in progress count whole: a few files have no constant rate.
            let shape = (files, bytes, jobs.min(files));
            let mut pace = Pace::default();
            let mut share = 0.0;
            while share < 0.98 {
                share += step;
                let now = share * total_s;
                let moment = pace.look(at(now, shape, rate, sizes_known), 0, Duration::from_secs_f64(now));
                if share > 1.0 / 3.0 && share < 1.0 {
                    let left = moment.left.unwrap().as_secs_f64();
                    // A slack of one file: for files in progress only bytes are known.
                    let slack = 0.5 + total_s / files as f64 * f64::from(u8::from(!sizes_known));
                    let right = total_s - now;
                    prop_assert!((left - right).abs() <= right * 0.25 + slack, "{left} for {right} of {total_s} s");
                    let fraction = moment.fraction.unwrap();
                    prop_assert!((0.0..=1.0).contains(&fraction));
                }
            }
        }

        /// No counter values cause a panic, and fractions stay in range.
        #[test]
        fn any_counters_will_do(
            counts in prop::array::uniform6(any::<u64>()),
            listed: bool,
            times in prop::collection::vec(0.0_f64..1e7, 1..8),
        ) {
            let [found, sized, done, bytes, bytes_ahead, jobs] = counts;
            let at = Progress { found, sized, done, bytes, bytes_ahead, jobs, listed, ..Progress::default() };
            let mut pace = Pace::default();
            for time in times {
                let moment = pace.look(at, 0, Duration::from_secs_f64(time));
                prop_assert!(moment.fraction.is_none_or(|share| (0.0..=1.0).contains(&share)));
                prop_assert!(listed || (moment.left.is_none() && moment.fraction.is_none()));
            }
        }
    }

    #[test]
    fn one_large_file_is_its_bytes() {
        let mut pace = Pace::default();
        let one = |bytes| Progress {
            found: 1,
            sized: 1,
            bytes,
            bytes_ahead: 100_000_000,
            jobs: 1,
            listed: true,
            ..Progress::default()
        };
        pace.look(one(0), 0, Duration::ZERO);
        assert_eq!(pace.look(one(0), 0, Duration::from_secs(1)).left, None);
        let moment = pace.look(one(50_000_000), 0, Duration::from_secs(2));
        assert_eq!((moment.bytes_total, moment.known), (100_000_000, Known::Exactly));
        assert!((moment.fraction.unwrap() - 0.5).abs() < 0.01);
        assert!(moment.left.unwrap() <= Duration::from_secs(2));
        // All bytes have moved, but its end is pending: the answer of a server, a rename.
        let moment = pace.look(one(100_000_000), 0, Duration::from_secs(4));
        assert_eq!(moment.left, Some(Duration::ZERO));
    }

    #[test]
    fn a_slow_start_is_no_rate() {
        let mut pace = Pace::default();
        let at = |bytes| Progress {
            found: 10,
            sized: 10,
            bytes,
            bytes_ahead: 1_000_000,
            jobs: 10,
            listed: true,
            ..Progress::default()
        };
        let mut moment = Moment::default();
        for tenth in 0..=40_u32 {
            // Nothing for two seconds, then 200 KB/s.
            let bytes = 20_000 * u64::from(tenth).saturating_sub(20);
            moment = pace.look(at(bytes), 0, Duration::from_millis(u64::from(tenth) * 100));
        }
        let left = moment.left.unwrap().as_secs_f64();
        assert!((left - 3.0).abs() < 0.1, "{left}");
        assert!((moment.bytes_per_s - 200_000.0).abs() < 1000.0, "{moment:?}");
        assert!((moment.bytes_per_s_mean - 100_000.0).abs() < 1000.0, "{moment:?}");
    }

    #[test]
    fn stalled_runs_are_detected() {
        let mut pace = Pace::default();
        let mut at = Progress { found: 9, jobs: 2, ..Progress::default() };
        let mut still = |at, second| pace.look(at, 0, Duration::from_secs(second)).still.as_secs();
        assert_eq!(still(at, 1), 0);
        assert_eq!(still(at, 6), 5);
        at.found += 1;
        assert_eq!(still(at, 7), 0);
        assert_eq!(still(at, 9), 2);
        at.done += 1;
        assert_eq!(still(at, 10), 0);
        at.bytes += 1;
        assert_eq!(still(at, 11), 0);
        assert_eq!(still(at, 41), 30);
    }

    #[test]
    fn many_small_files_take_longer_than_their_bytes() {
        let mut pace = Pace::default();
        // Half of the entries, nearly all of the bytes.
        let at = Progress {
            found: 20_000,
            sized: 20_000,
            done: 10_000,
            bytes: 1_000_000,
            bytes_ahead: 1_010_000,
            jobs: 2,
            listed: true,
            ..Progress::default()
        };
        let left = pace.look(at, 0, Duration::from_secs(10)).left.unwrap();
        assert!((9..=11).contains(&left.as_secs()), "{left:?}");
    }

    #[test]
    fn the_first_files_that_end_of_many_tell_no_rate() {
        let mut pace = Pace::default();
        let mut at = Progress {
            found: 40,
            sized: 40,
            bytes_ahead: 20_000,
            jobs: 32,
            listed: true,
            ..Progress::default()
        };
        for second in 1..=4 {
            (at.bytes, at.done) = (4_000 * second, if second == 4 { 3 } else { 0 });
            let left = pace.look(at, 0, Duration::from_secs(second)).left.unwrap();
            let right = 5.0 - second as f64;
            assert!((left.as_secs_f64() - right).abs() < 0.1, "{left:?} at {second}");
        }
    }

    #[test]
    fn the_rate_of_now_follows_a_change() {
        let mut pace = Pace::default();
        let mut bytes = 0;
        let mut moment = Moment::default();
        for tenth in 1..=200_u64 {
            bytes += if tenth <= 100 { 10_000_000 } else { 1_000_000 };
            let at = Progress { bytes, bytes_ahead: bytes, ..Progress::default() };
            moment = pace.look(at, 0, Duration::from_millis(100 * tenth));
        }
        assert!((moment.bytes_per_s - 10e6).abs() < 1e6, "{moment:?}");
        assert!((moment.bytes_per_s_mean - 55e6).abs() < 1e6, "{moment:?}");
    }

    #[test]
    fn sizes_that_are_not_known_are_said_to_be_guessed() {
        let at = Progress { found: 60, sized: 12, bytes_ahead: 12_000_000, ..Progress::default() };
        assert_eq!(total(&at), (12_000_000, Known::AtLeast));
        assert_eq!(total(&Progress { listed: true, ..at }), (60_000_000, Known::About));
        assert_eq!(
            total(&Progress { listed: true, sized: 60, ..at }),
            (12_000_000, Known::Exactly)
        );
    }
}
