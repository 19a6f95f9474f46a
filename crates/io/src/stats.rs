//! Statistics of a run: latencies as histograms, rates over time.

/// Classes for each power of two: what is read off a class is wrong by at most one in 256 (a class
/// is 1/128 of its value wide, and its middle is reported). fio has 64 of them.
const FINE_BITS: u32 = 7;
/// As a number: values below twice this have a class of their own.
const FINE: u64 = 1 << FINE_BITS;
/// Classes that are allocated at first: up to 4 ms.
const FIRST: usize = (15 + 1) << FINE_BITS;

/// Latencies in nanoseconds.
///
/// Log-linear, as HdrHistogram is: `2^n` is followed by 128 classes of equal width up to `2^(n+1)`.
/// Number, smallest, largest, mean and deviation are exact. Nothing is allocated before the first
/// value, and no more than the largest one needs: 16 KiB up to 4 ms, 24 KiB up to a second.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    min_ns: u64,
    max_ns: u64,
    /// Sum of the values, and of their squares, without any rounding. Modulo 2^128: right for all
    /// times that can pass.
    sum: u128,
    squares: u128,
}

impl Default for Histogram {
    /// An empty one.
    fn default() -> Histogram {
        Histogram { counts: Vec::new(), count: 0, min_ns: u64::MAX, max_ns: 0, sum: 0, squares: 0 }
    }
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let class = class(ns);
        match self.counts.get_mut(class) {
            Some(count) => *count += 1,
            None => self.grow(class),
        }
        self.count += 1;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        let wide = u128::from(ns);
        self.sum = self.sum.wrapping_add(wide);
        self.squares = self.squares.wrapping_add(wide * wide);
    }

    /// Counts the first value of a class beyond all that there is room for.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, class: usize) {
        let whole = (class + 1).next_multiple_of(FINE as usize).max(FIRST);
        self.counts.reserve_exact(whole - self.counts.len());
        self.counts.resize(whole, 0);
        if let Some(count) = self.counts.get_mut(class) {
            *count += 1;
        }
    }

    /// Adds all values of another.
    pub fn merge(&mut self, other: &Histogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (to, from) in self.counts.iter_mut().zip(&other.counts) {
            *to += from;
        }
        self.count += other.count;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum = self.sum.wrapping_add(other.sum);
        self.squares = self.squares.wrapping_add(other.squares);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value, exactly; 0 if there is none.
    pub fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// The largest value, exactly; 0 if there is none.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The arithmetic mean; 0 if there is no value.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The sample's standard deviation (divided by n − 1); 0 for fewer than two values.
    pub fn deviation_ns(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = u128::from(self.count);
        let (near, rest) = (self.sum / count, self.sum % count);
        // Squares of the distances to the whole number `near` below the mean, in integers:
        // Σ(x − q)² = Σx² − q(2Σx − nq), and nq = Σx − r. Floating point would lose a small
        // deviation of large values here.
        let crossed = near.wrapping_mul(self.sum.wrapping_add(rest));
        let around = self.squares.wrapping_sub(crossed);
        let (count, rest) = (self.count as f64, rest as f64);
        ((around as f64 - rest * rest / count).max(0.0) / (count - 1.0)).sqrt()
    }

    /// The smallest value that at least this percentage of the values does not exceed (nearest rank),
    /// to the precision of classes: the middle of its class, but never outside the recorded range.
    /// 0 if there is no value.
    pub fn percentile(&self, percent: f64) -> u64 {
        let wanted = percent * self.count as f64 / 100.0;
        // Percentages are decimal fractions: 99.9 of 1000 must not become the 1000th by a last bit.
        let rank = (wanted * (1.0 - 1e-13)).ceil().max(1.0) as u64;
        if rank >= self.count {
            return self.max_ns;
        }
        let mut below = 0;
        for (value, count) in self.buckets() {
            below += count;
            if below >= rank {
                return value.clamp(self.min_ns, self.max_ns);
            }
        }
        self.max_ns
    }

    /// All classes in which there is something, in ascending order: the value in the middle and how
    /// many values there are.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().enumerate();
        counts.filter(|(_, count)| **count > 0).map(|(class, count)| {
            let (begin, width) = range(class);
            (begin + width / 2, *count)
        })
    }

    /// Number of values below `ns`. Exact where a class begins there, as at all powers of two; in
    /// the middle of a class its values are taken as evenly spread.
    pub fn below(&self, ns: u64) -> u64 {
        if ns > self.max_ns {
            return self.count;
        }
        let last = class(ns);
        let whole: u64 = self.counts.iter().take(last).sum();
        let (begin, width) = range(last);
        let here = self.counts.get(last).copied().unwrap_or(0);
        whole + (u128::from(here) * u128::from(ns - begin) / u128::from(width)) as u64
    }
}

/// Class that a value is counted in.
#[inline]
fn class(ns: u64) -> usize {
    // The lowest bits that do not count. None of them for values that have their own class.
    let coarse = 63 - FINE_BITS - (ns | FINE).leading_zeros();
    ((coarse as usize) << FINE_BITS) + (ns >> coarse) as usize
}

/// The smallest value of a class, and how many values it is wide.
fn range(class: usize) -> (u64, u64) {
    let class = class as u64;
    if class < 2 * FINE {
        return (class, 1);
    }
    let coarse = (class >> FINE_BITS) - 1;
    (((class & (FINE - 1)) + FINE) << coarse, 1 << coarse)
}

/// A rate over time: one value for each interval, all of them kept, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    values: Vec<f64>,
}

impl Series {
    /// Adds the value of the next interval.
    pub fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    pub fn samples(&self) -> usize {
        self.values.len()
    }

    /// The smallest; 0 if there is none.
    pub fn min(&self) -> f64 {
        self.values.iter().copied().reduce(f64::min).unwrap_or(0.0)
    }

    /// The largest; 0 if there is none.
    pub fn max(&self) -> f64 {
        self.values.iter().copied().reduce(f64::max).unwrap_or(0.0)
    }

    /// The arithmetic mean; 0 if there is none.
    pub fn mean(&self) -> f64 {
        let count = self.values.len();
        if count == 0 { 0.0 } else { self.values.iter().sum::<f64>() / count as f64 }
    }

    /// The sample's standard deviation (divided by n − 1); 0 for fewer than two.
    pub fn deviation(&self) -> f64 {
        let count = self.values.len();
        if count < 2 {
            return 0.0;
        }
        let mean = self.mean();
        let around: f64 = self.values.iter().map(|value| (value - mean).powi(2)).sum();
        (around / (count - 1) as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_follow_each_other_without_gaps() {
        let mut next = 0u64;
        for number in 0..=class(u64::MAX) {
            let (begin, width) = range(number);
            assert_eq!(begin, next, "class {number}");
            assert_eq!((class(begin), class(begin + (width - 1))), (number, number));
            assert!(width == 1 || width * 128 <= begin, "class {number} is {width} wide");
            next = begin.wrapping_add(width);
        }
        // The last one ends where 64 bits do.
        assert_eq!(next, 0);
    }

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    /// Nearest rank: the smallest value that so many percent of all do not exceed.
    fn exact(sorted: &[u64], percent: f64) -> u64 {
        let rank = (percent * sorted.len() as f64 / 100.0 * (1.0 - 1e-13)).ceil().max(1.0) as usize;
        sorted[rank.min(sorted.len()) - 1]
    }

    #[test]
    fn nothing_recorded_is_nothing_and_costs_nothing() {
        let empty = Histogram::default();
        assert_eq!((empty.count(), empty.min_ns(), empty.max_ns()), (0, 0, 0));
        assert_eq!((empty.mean_ns(), empty.deviation_ns(), empty.percentile(99.0)), (0.0, 0.0, 0));
        assert_eq!((empty.buckets().count(), empty.below(u64::MAX)), (0, 0));
        assert!(size_of::<Histogram>() <= 96);
        let mut merged = Histogram::default();
        merged.merge(&empty);
        assert_eq!((merged.count(), merged.min_ns()), (0, 0));
    }

    #[test]
    fn small_values_are_exact() {
        let histogram = of(&(0..256).collect::<Vec<_>>());
        for percent in 1..=100 {
            let rank = (f64::from(percent) * 2.56).ceil() as u64;
            assert_eq!(histogram.percentile(f64::from(percent)), rank - 1);
        }
        assert_eq!((histogram.percentile(0.0), histogram.percentile(100.0)), (0, 255));
        assert_eq!((histogram.below(0), histogram.below(100), histogram.below(256)), (0, 100, 256));
        assert_eq!(histogram.mean_ns(), 127.5);
    }

    /// The 999th of a thousand, not the 1000th, though 99.9 is not a binary fraction.
    #[test]
    fn decimal_percentages_find_their_rank() {
        let histogram = of(&(1..=1000).map(|value| value.min(200)).collect::<Vec<_>>());
        assert_eq!(histogram.percentile(19.9), 199);
        let tail: Vec<u64> = std::iter::repeat_n(10, 999).chain([200]).collect();
        let tail = of(&tail);
        assert_eq!((tail.percentile(99.9), tail.percentile(99.91)), (10, 200));
        for count in [10u64, 100, 1000, 10_000] {
            let values: Vec<u64> = std::iter::repeat_n(3, count as usize).chain([9; 1]).collect();
            assert_eq!(of(&values).percentile(100.0), 9);
        }
    }

    /// A deviation of 1 ns around an hour: what sums of squares in floating point lose.
    #[test]
    fn small_deviations_of_large_values_are_exact() {
        let hour = 3_600_000_000_000u64;
        let histogram = of(&[hour - 1, hour, hour + 1]);
        assert_eq!((histogram.mean_ns(), histogram.deviation_ns()), (hour as f64, 1.0));
        let histogram = of(&[hour, hour + 1]);
        assert!((histogram.deviation_ns() - 0.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(of(&[hour; 1000]).deviation_ns(), 0.0);
        // And squares that only fit into 128 bits.
        let histogram = of(&[u64::MAX, u64::MAX]);
        assert_eq!((histogram.max_ns(), histogram.deviation_ns()), (u64::MAX, 0.0));
    }

    #[test]
    fn shares_below_a_limit_are_those_of_the_values() {
        let histogram = of(&[1, 3, 700, 1_000, 900_000, 3_000_000, 2_500_000_000]);
        let limits = [2, 4, 750, 1_000, 2_000, 1_000_000, 4_000_000, 2_000_000_000, u64::MAX];
        let counts: Vec<u64> = limits.iter().map(|limit| histogram.below(*limit)).collect();
        assert_eq!(counts, [1, 2, 3, 3, 4, 5, 6, 6, 7]);
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_values(
            mut values in prop::collection::vec(
                prop_oneof![0u64..300, 0u64..100_000, 0u64..10_000_000_000, any::<u64>()],
                1..400,
            ),
            percents in prop::collection::vec(0.0f64..=100.0, 1..20),
        ) {
            let histogram = of(&values);
            values.sort_unstable();
            prop_assert_eq!(histogram.count(), values.len() as u64);
            prop_assert_eq!(histogram.min_ns(), values[0]);
            prop_assert_eq!(histogram.max_ns(), values[values.len() - 1]);
            for percent in percents.into_iter().chain([0.0, 1.0, 50.0, 99.0, 99.9, 100.0]) {
                let (found, want) = (histogram.percentile(percent), exact(&values, percent));
                let off = found.abs_diff(want);
                prop_assert!(off <= want / 256, "{} percent: {} for {}", percent, found, want);
            }
            prop_assert_eq!(histogram.buckets().map(|(_, count)| count).sum::<u64>(), histogram.count());
            let order: Vec<u64> = histogram.buckets().map(|(value, _)| value).collect();
            prop_assert!(order.is_sorted());
        }

        #[test]
        fn mean_and_deviation_are_exact(values in prop::collection::vec(0u64..1 << 44, 2..300)) {
            let histogram = of(&values);
            let count = values.len() as u128;
            let sum: u128 = values.iter().map(|value| u128::from(*value)).sum();
            // n Σ(nx − Σx)² in whole numbers.
            let around: u128 = values
                .iter()
                .map(|value| (u128::from(*value) * count).abs_diff(sum))
                .map(|off| off * off)
                .sum();
            let deviation = (around as f64 / (count * count * (count - 1)) as f64).sqrt();
            prop_assert!((histogram.mean_ns() - sum as f64 / count as f64).abs() <= 1e-3);
            let off = (histogram.deviation_ns() - deviation).abs();
            prop_assert!(off <= deviation * 1e-9 + 1e-6, "{} {}", histogram.deviation_ns(), deviation);
        }

        #[test]
        fn merging_is_recording_everything(
            first in prop::collection::vec(0u64..1 << 50, 0..200),
            second in prop::collection::vec(0u64..5000, 0..200),
        ) {
            for (a, b) in [(&first, &second), (&second, &first)] {
                let mut merged = of(a);
                merged.merge(&of(b));
                let all: Vec<u64> = a.iter().chain(b).copied().collect();
                let whole = of(&all);
                prop_assert_eq!(merged.buckets().collect::<Vec<_>>(), whole.buckets().collect::<Vec<_>>());
                prop_assert_eq!(
                    (merged.count(), merged.min_ns(), merged.max_ns()),
                    (whole.count(), whole.min_ns(), whole.max_ns())
                );
                prop_assert_eq!(merged.mean_ns(), whole.mean_ns());
                prop_assert_eq!(merged.deviation_ns(), whole.deviation_ns());
            }
        }

        #[test]
        fn counts_below_are_near_the_true_ones(
            values in prop::collection::vec(0u64..1_000_000, 1..300),
            limit in 0u64..1_100_000,
        ) {
            let histogram = of(&values);
            let found = histogram.below(limit);
            // Wrong by no more than what lies in the class of the limit.
            let near = |value: &&u64| value.abs_diff(limit) <= limit / 128;
            let below = values.iter().filter(|value| **value < limit).count() as u64;
            let doubtful = values.iter().filter(near).count() as u64;
            prop_assert!(found.abs_diff(below) <= doubtful, "{} for {}", found, below);
        }
    }

    #[test]
    fn series_keep_their_values() {
        let mut series = Series::default();
        assert_eq!(
            (series.min(), series.max(), series.mean(), series.deviation()),
            (0.0, 0.0, 0.0, 0.0)
        );
        for value in [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0] {
            series.push(value);
        }
        assert_eq!(
            (series.min(), series.max(), series.mean(), series.samples()),
            (2.0, 9.0, 5.0, 8)
        );
        assert!((series.deviation() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(series.values[7], 9.0);
    }
}
