//! Thins curves to the resolution of a chart.

use crate::chart::{ChartColor, SeriesForm};
use crate::results::LoadCurves;

/// A curve of a load chart.
pub(super) struct LoadCurveKind {
    /// Key in the record.
    pub(super) key: &'static str,
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) color: ChartColor,
    pub(super) form: SeriesForm,
    /// Divisor of its values.
    pub(super) per: f64,
}

/// Points at the ends of equal parts of the axis; the first value also holds at its start.
pub(super) fn points(values: &[f64], total: f64) -> Vec<(f64, f64)> {
    let step = total / values.len().max(1) as f64;
    let first = values.first().map(|value| (0.0, *value));
    let rest = values.iter().enumerate().map(|(i, value)| ((i + 1) as f64 * step, *value));
    first.into_iter().chain(rest).collect()
}

/// Means over equal parts of the axis, over the time with data. `None` if no curve has this key.
pub(super) fn thinned(
    pieces: &[(f64, &LoadCurves)],
    kind: &LoadCurveKind,
    total: f64,
    places: usize,
) -> Option<Vec<f64>> {
    let mut sums = vec![(0.0f64, 0.0f64); places.max(1)];
    let step = total / sums.len() as f64;
    let mut is_there = false;
    for (begin, curves) in pieces {
        let Some(values) = curves.values.get(kind.key) else { continue };
        is_there = true;
        let mut from = *begin;
        for (t, value) in curves.t_s.iter().zip(values) {
            let to = begin + t;
            let is_interval = to.is_finite() && to > from && value.is_finite();
            if is_interval {
                let first = ((from / step) as usize).min(sums.len() - 1);
                let last = ((to / step) as usize).min(sums.len() - 1);
                for (place, sum) in sums.iter_mut().enumerate().take(last + 1).skip(first) {
                    let (left, right) = (place as f64 * step, (place + 1) as f64 * step);
                    let covered = (to.min(right) - from.max(left)).max(0.0);
                    *sum = (sum.0 + value * covered, sum.1 + covered);
                }
                from = to;
            }
        }
    }
    // Rounding errors at the edge of a gap are not data.
    let mean =
        |(sum, time): &(f64, f64)| if *time > step * 1e-6 { sum / time / kind.per } else { 0.0 };
    is_there.then(|| sums.iter().map(mean).collect())
}

/// Rounds to four significant digits, enough for the cursor, to keep the page small.
pub(super) fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let power = 10f64.powi(3 - value.abs().log10().floor().clamp(-300.0, 300.0) as i32);
    let rounded = (value * power).round() / power;
    if rounded.is_finite() { rounded } else { value }
}

#[cfg(test)]
mod tests {
    use super::super::{CPU, DISK};
    use super::*;
    use std::collections::BTreeMap;

    fn curves(values: &[f64]) -> LoadCurves {
        let t_s = (1..=values.len()).map(|i| i as f64 * 0.1).collect();
        let values = BTreeMap::from([("user".to_owned(), values.to_vec())]);
        LoadCurves { cell: 0, block: 0, t_s, values }
    }

    #[test]
    fn means_of_the_time_that_is_covered() {
        let (one, two) = (curves(&[10.0, 30.0]), curves(&[50.0]));
        let kind = &CPU[0];
        let seen = |pieces: &[(f64, &LoadCurves)], total, places| {
            let values = thinned(pieces, kind, total, places).unwrap();
            values.iter().map(|value| value.round()).collect::<Vec<_>>()
        };
        assert_eq!(seen(&[(0.0, &one)], 0.2, 2), [10.0, 30.0]);
        assert_eq!(seen(&[(0.0, &one)], 0.2, 1), [20.0]);
        // More points than intervals: each interval yields several equal points.
        assert_eq!(seen(&[(0.0, &one)], 0.2, 4), [10.0, 10.0, 30.0, 30.0]);
        // A gap between two runs belongs to neither.
        assert_eq!(seen(&[(0.0, &one), (0.3, &two)], 0.4, 4), [10.0, 30.0, 0.0, 50.0]);
        assert_eq!(thinned(&[(0.0, &one)], &DISK[0], 0.2, 2), None);
    }

    #[test]
    fn four_digits() {
        assert_eq!(
            [0.0, 12.3456, 0.000_123_456, 98765.4].map(round),
            [0.0, 12.35, 0.000_123_5, 98770.0]
        );
    }
}
