//! Medians and their confidence intervals by resampling. No distribution is assumed where there are enough
//! values; with few values the interval is widened.

use super::Interval;

/// Number of bootstrap resamples: the ends of an interval then vary with the seed by less than a tenth of its
/// width (Efron & Tibshirani 1993, 13.3: 1,000 or more for a 95 % percentile interval).
const RESAMPLES: usize = 2000;
/// Below this number of values resampling alone gives intervals that are too narrow.
const FEW: usize = 20;

/// Median. `None` without values, or if one is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Quantile `share` (0 to 1), interpolated linearly (Hyndman & Fan 1996, type 7). `None` without values, or
/// if a number is not finite.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    if !share.is_finite() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    of_sorted(&sorted, share)
}

fn of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = share.clamp(0.0, 1.0) * last as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let (a, b) = (*sorted.get(low)?, *sorted.get((low + 1).min(last))?);
    // Subtracting first could overflow; `clamp` removes rounding beyond the two values.
    Some((a * (1.0 - part) + b * part).clamp(a, b))
}

/// Median with its 95 % interval, deterministic for a given seed. `None` without values, or if one is not
/// finite.
///
/// From 20 values on this is the percentile bootstrap interval (Efron 1979). With fewer it is the union of
/// that and Student's interval of the mean (of logarithms, if all values are positive): the range of three
/// values contains the median only three times out of four. A single value has no interval: all three numbers
/// are equal, and [`Interval::is_point`] is true.
pub fn interval(values: &[f64], seed: u64) -> Option<Interval> {
    let positive = values.iter().all(|value| *value > 0.0);
    around(values, seed, positive, |sorted| of_sorted(sorted, 0.5))
}

/// Like [`interval`], for differences: these are centred on 0, so logarithms do not apply.
pub(super) fn difference(values: &[f64], seed: u64) -> Option<Interval> {
    around(values, seed, false, |sorted| of_sorted(sorted, 0.5))
}

/// Mean of differences with its 95 % interval.
pub(super) fn mean_difference(values: &[f64], seed: u64) -> Option<Interval> {
    around(values, seed, false, mean)
}

/// Arithmetic mean. `None` without values, or if one is not finite.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    // Divide first: a sum of large numbers could overflow.
    let mean: f64 = values.iter().map(|value| value / count).sum();
    (!values.is_empty() && mean.is_finite()).then_some(mean)
}

/// Sample standard deviation. `None` with fewer than two values.
pub(super) fn deviation(values: &[f64]) -> Option<f64> {
    let freedom = values.len().checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
    let mean = mean(values)?;
    let deviation = values.iter().map(|value| (value - mean).powi(2) / freedom).sum::<f64>().sqrt();
    deviation.is_finite().then_some(deviation)
}

impl Interval {
    /// True if there is no interval: one value, or all values equal.
    pub fn is_point(&self) -> bool {
        self.low >= self.high
    }

    /// A value without an interval.
    pub(super) fn point(value: f64) -> Interval {
        Interval { low: value, mid: value, high: value }
    }

    /// Applies a monotonic function to each number; a decreasing one swaps the ends.
    pub(super) fn map(self, by: impl Fn(f64) -> f64) -> Interval {
        let (a, mid, b) = (by(self.low), by(self.mid), by(self.high));
        Interval { low: a.min(b), mid, high: a.max(b) }
    }
}

fn around(
    values: &[f64],
    seed: u64,
    logs: bool,
    statistic: impl Fn(&[f64]) -> Option<f64>,
) -> Option<Interval> {
    if values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mid = statistic(&sorted)?;
    let (least, most) = (*sorted.first()?, *sorted.last()?);
    if least >= most {
        return Some(Interval::point(mid));
    }
    let found = resampled(seed, |random| statistic(&resample(&sorted, random)));
    let (mut low, mut high) = percentiles(found).unwrap_or((least, most));
    if sorted.len() < FEW {
        let (below, above) = student(&sorted, logs).unwrap_or((least, most));
        (low, high) = (low.min(below), high.max(above));
    }
    Some(Interval { low: low.min(mid), mid, high: high.max(mid) })
}

/// Draws as many values with replacement, in order.
pub(super) fn resample(values: &[f64], random: &mut fastrand::Rng) -> Vec<f64> {
    let mut again: Vec<f64> =
        values.iter().filter_map(|_| values.get(random.usize(..values.len())).copied()).collect();
    again.sort_unstable_by(f64::total_cmp);
    again
}

/// Computes a statistic on each resample.
pub(super) fn resampled(
    seed: u64,
    mut statistic: impl FnMut(&mut fastrand::Rng) -> Option<f64>,
) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..RESAMPLES).filter_map(|_| statistic(&mut random)).collect()
}

/// Central 95 % of the resampled statistics. `None` without any.
pub(super) fn percentiles(mut found: Vec<f64>) -> Option<(f64, f64)> {
    found.retain(|value| value.is_finite());
    found.sort_unstable_by(f64::total_cmp);
    Some((of_sorted(&found, 0.025)?, of_sorted(&found, 0.975)?))
}

/// Student's 95 % interval of the mean, or of the mean of logarithms.
fn student(values: &[f64], logs: bool) -> Option<(f64, f64)> {
    let scaled: Vec<f64> = match logs {
        true => values.iter().map(|value| value.ln()).collect(),
        false => values.to_vec(),
    };
    let mean = mean(&scaled)?;
    let half = t_975(scaled.len() - 1) * deviation(&scaled)? / (scaled.len() as f64).sqrt();
    // The median scatters more than the mean; with more values the bootstrap accounts for that.
    let half = if scaled.len() < 6 { 1.1 * half } else { half };
    let back = |value: f64| if logs { value.exp() } else { value };
    let (low, high) = (back(mean - half), back(mean + half));
    // An overflow becomes the largest finite number.
    Some((low.max(f64::MIN), high.min(f64::MAX)))
}

/// 97.5 % quantile of Student's t distribution, by degrees of freedom.
pub(super) fn t_975(freedom: usize) -> f64 {
    const TABLE: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    let beyond = 1.96 + 2.5 / freedom.max(1) as f64;
    TABLE.get(freedom.saturating_sub(1)).copied().unwrap_or(beyond)
}
