//! Progress, rate and remaining time of a run, from periodic samples of counters. Pure: the time is an argument.

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

/// Length of a window, in seconds.
const WINDOW_S: f64 = 0.5;
/// Cost, in bytes, while the windows do not tell entries from bytes apart: all have the same mixture.
const USUAL_BYTES: f64 = 16384.0;
/// Minimum determinant of the normal equations, relative to the product of their diagonal.
const APART_MIN: f64 = 1e-3;
/// Maximum cost, in bytes.
const MOST_BYTES: f64 = 1e9;

/// Entries and bytes that were finished in a time.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    entries: f64,
    bytes: f64,
    seconds: f64,
}

/// The cost of an entry in bytes: how many bytes move in the time that an entry takes beside its content. By least
/// squares over short windows of a run, `seconds = a · entries + b · bytes`, it is a / b. These are the sums of the normal
/// equations; older windows count less.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    window: Window,
    entries_entries: f64,
    entries_bytes: f64,
    bytes_bytes: f64,
    entries_seconds: f64,
    bytes_seconds: f64,
}

impl Costs {
    /// Adds what was finished in some seconds. A window `memory_s` old counts 1/e.
    pub fn push(&mut self, entries: f64, bytes: f64, seconds: f64, memory_s: f64) {
        self.window.entries += entries;
        self.window.bytes += bytes;
        self.window.seconds += seconds;
        if self.window.seconds < WINDOW_S {
            return;
        }
        let Window { entries, bytes, seconds } = std::mem::take(&mut self.window);
        let kept = (-seconds / memory_s).exp();
        // A long window counts as several short ones.
        let add = |sum: &mut f64, x: f64, y: f64| *sum = *sum * kept + x * y / seconds;
        add(&mut self.entries_entries, entries, entries);
        add(&mut self.entries_bytes, entries, bytes);
        add(&mut self.bytes_bytes, bytes, bytes);
        add(&mut self.entries_seconds, entries, seconds);
        add(&mut self.bytes_seconds, bytes, seconds);
    }

    /// Returns the cost of an entry in bytes, never negative.
    pub fn entry_bytes(&self) -> f64 {
        let product = self.entries_entries * self.bytes_bytes;
        let determinant = product - self.entries_bytes * self.entries_bytes;
        if product <= 0.0 || determinant < APART_MIN * product {
            return USUAL_BYTES;
        }
        // Cramer's rule without the division by the determinant, which is positive.
        let of_entry =
            self.entries_seconds * self.bytes_bytes - self.bytes_seconds * self.entries_bytes;
        let of_byte =
            self.bytes_seconds * self.entries_entries - self.entries_seconds * self.entries_bytes;
        if of_entry <= 0.0 {
            0.0
        } else if of_byte <= 0.0 {
            MOST_BYTES
        } else {
            (of_entry / of_byte).min(MOST_BYTES)
        }
    }
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

    #[test]
    fn windows_of_different_mixtures_tell_both_costs() {
        let mut costs = Costs::default();
        // An entry takes 2 ms, a byte 10 ns: an entry costs as much as 200 KB.
        for step in 0_u32..40 {
            let (entries, bytes) = if step % 2 == 0 { (400.0, 4e6) } else { (10.0, 98e6) };
            costs.push(entries, bytes, entries * 0.002 + bytes * 1e-8, 30.0);
        }
        assert!((costs.entry_bytes() - 200_000.0).abs() < 1.0, "{}", costs.entry_bytes());
    }

    #[test]
    fn one_mixture_tells_neither() {
        let mut costs = Costs::default();
        assert_eq!(costs.entry_bytes(), USUAL_BYTES);
        for _ in 0..40 {
            costs.push(100.0, 1e6, 0.1, 30.0);
        }
        assert_eq!(costs.entry_bytes(), USUAL_BYTES);
    }

    #[test]
    fn costs_are_not_negative() {
        // More entries in less time, and more bytes in less time.
        for (windows, cost) in [
            ([(100.0, 1e6, 0.5), (10.0, 1e6, 0.6), (100.0, 2e6, 0.9)], 0.0),
            ([(100.0, 1e6, 0.6), (100.0, 9e6, 0.5), (200.0, 1e6, 1.2)], MOST_BYTES),
        ] {
            let mut costs = Costs::default();
            for (entries, bytes, seconds) in windows {
                costs.push(entries, bytes, seconds, 30.0);
            }
            assert_eq!(costs.entry_bytes(), cost, "{costs:?}");
        }
    }
}

/// The remaining time of simulated runs: files of any sizes in any order, with a clock of its own.
#[cfg(test)]
mod simulated {
    use crate::show::pace::Pace;
    use hakobu_core::meter::Progress;
    use std::time::Duration;

    /// Time of a file beside its content, in seconds.
    const FILE_S: f64 = 0.002;
    /// Rate of content.
    const BYTES_PER_S: f64 = 200e6;
    /// Interval of samples, in seconds.
    const TICK_S: f64 = 0.1;

    /// A pseudorandom number below one, the same for the same seed (splitmix64).
    fn random(seed: &mut u64) -> f64 {
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Sizes of files that take so many seconds together, of two kinds.
    fn sizes(seconds: f64, small: bool, seed: &mut u64) -> Vec<f64> {
        let (mut sizes, mut taken) = (Vec::new(), 0.0);
        while taken < seconds {
            let bytes = match small {
                true => 500.0 + random(seed) * 8e3,
                false => 5e6 + random(seed) * 25e6,
            };
            taken += FILE_S + bytes / BYTES_PER_S;
            sizes.push(bytes.floor());
        }
        sizes
    }

    /// Returns how many of the estimates from a third of the run on are within a quarter or half a second, and their
    /// number. `speed`: work done in a second at a moment, as a part of the usual.
    fn estimates(sizes: &[f64], speed: impl Fn(f64) -> f64) -> (usize, usize) {
        let total: f64 = sizes.iter().sum();
        let (mut pace, mut seconds, mut worked) = (Pace::default(), 0.0, 0.0);
        // Work at which the file at hand ends, and bytes of those before.
        let (mut done, mut before, mut begins) = (0, 0.0, 0.0);
        let mut said = Vec::new();
        while done < sizes.len() {
            seconds += TICK_S;
            worked += TICK_S * speed(seconds);
            while done < sizes.len() && begins + FILE_S + sizes[done] / BYTES_PER_S <= worked {
                begins += FILE_S + sizes[done] / BYTES_PER_S;
                before += sizes[done];
                done += 1;
            }
            let of_this = sizes
                .get(done)
                .map_or(0.0, |bytes| ((worked - begins - FILE_S) * BYTES_PER_S).clamp(0.0, *bytes));
            let at = Progress {
                found: sizes.len() as u64,
                sized: sizes.len() as u64,
                done: done as u64,
                bytes: (before + of_this) as u64,
                bytes_ahead: total as u64,
                jobs: u64::from(done < sizes.len()),
                listed: true,
                ..Progress::default()
            };
            said.push((seconds, pace.look(at, 0, Duration::from_secs_f64(seconds)).left));
        }
        let late = said.iter().filter(|(at, _)| *at > seconds / 3.0 && *at < seconds);
        let good = late.clone().filter(|(at, left)| {
            let right = seconds - at;
            let off = left.map_or(f64::MAX, |left| (left.as_secs_f64() - right).abs());
            off <= (right / 4.0).max(0.5)
        });
        (good.count(), late.count())
    }

    /// Checks a share of good estimates over ten runs.
    fn wanted(share: f64, speed: impl Fn(f64) -> f64, sizes: impl Fn(&mut u64) -> Vec<f64>) {
        let (mut good, mut all) = (0, 0);
        for seed in 0..10 {
            let (of_run, number) = estimates(&sizes(&mut seed.clone()), &speed);
            (good, all) = (good + of_run, all + number);
        }
        let part = good as f64 / all as f64;
        assert!(part >= share, "{good} of {all}: {part:.2}, not {share}");
    }

    /// Folders of small files and of large ones in turn: the mixture of what is left is not that of what is done.
    #[test]
    fn folders_of_small_and_of_large_files() {
        for seconds in [12.0, 40.0] {
            let folders = |seed: &mut u64| -> Vec<f64> {
                (0..20)
                    .flat_map(|_| {
                        let small = random(seed) < 0.5;
                        sizes(seconds / 20.0, small, seed)
                    })
                    .collect()
            };
            wanted(0.95, |_| 1.0, folders);
        }
    }

    #[test]
    fn small_files_after_large_ones() {
        let halves = |seed: &mut u64| [sizes(10.0, false, seed), sizes(10.0, true, seed)].concat();
        // Until small files have been seen, nobody knows their cost.
        wanted(0.7, |_| 1.0, halves);
    }

    #[test]
    fn one_kind_of_files_at_a_rate_that_changes() {
        for small in [false, true] {
            // Slow in the beginning, then up and down by a fifth.
            let speed = |at: f64| (0.2 + at / 3.0).min(1.0 + 0.2 * (at * 2.0).sin());
            wanted(0.9, speed, |seed: &mut u64| sizes(12.0, small, seed));
        }
    }

    /// A disk whose cache is full, a network that others use as well: right again soon after the change.
    #[test]
    fn a_rate_that_changes_for_good() {
        for (small, factor) in [(false, 0.25), (true, 0.25), (false, 3.0), (true, 3.0)] {
            // The change comes after a quarter; the share of the estimates is of those from a third of the run on.
            let speed = |at: f64| if at < 6.0 { 1.0 } else { factor };
            wanted(0.85, speed, |seed: &mut u64| sizes(6.0 + 18.0 * factor, small, seed));
            // The same with a rate that fluctuates.
            let speed = |at: f64| speed(at) * (1.0 + 0.5 * (at * 20.0).sin());
            wanted(0.8, speed, |seed: &mut u64| sizes(6.0 + 18.0 * factor, small, seed));
        }
    }

    /// A machine that others use too: each second has a rate of its own.
    #[test]
    fn a_rate_that_is_another_each_second() {
        for small in [false, true] {
            let speed = |at: f64| 0.5 + random(&mut (at as u64));
            wanted(0.8, speed, |seed: &mut u64| sizes(30.0, small, seed));
        }
    }
}
