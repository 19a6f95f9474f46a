//! Histograms against the values themselves.

use super::{Histogram, Series};
use proptest::prelude::*;

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
    assert_eq!((series.min(), series.max(), series.mean(), series.samples()), (2.0, 9.0, 5.0, 8));
    assert!((series.deviation() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    assert_eq!(series.values[7], 9.0);
}
