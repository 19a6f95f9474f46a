//! Medians and their confidence intervals by resampling, ratios of speed between two cells, and the claims that these
//! support. No distribution is assumed where there are enough values; with few values the interval is widened.

use crate::analysis::Interval;
use std::collections::BTreeMap;

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
    quantile_of_sorted(&sorted, share)
}

fn quantile_of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
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
    around(values, seed, positive, |sorted| quantile_of_sorted(sorted, 0.5))
}

/// Like [`interval`], for differences: these are centred on 0, so logarithms do not apply.
pub(super) fn difference(values: &[f64], seed: u64) -> Option<Interval> {
    around(values, seed, false, |sorted| quantile_of_sorted(sorted, 0.5))
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
    pub(crate) fn point(value: f64) -> Interval {
        Interval { low: value, mid: value, high: value }
    }

    /// Applies a monotonic function to each number; a decreasing one swaps the ends.
    pub(crate) fn map(self, by: impl Fn(f64) -> f64) -> Interval {
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
    let found = resample_statistic(seed, |random| statistic(&resample(&sorted, random)));
    let (mut low, mut high) = percentiles(found).unwrap_or((least, most));
    if sorted.len() < FEW {
        let (below, above) = student(&sorted, logs).unwrap_or((least, most));
        (low, high) = (low.min(below), high.max(above));
    }
    Some(Interval { low: low.min(mid), mid, high: high.max(mid) })
}

/// Draws as many values with replacement, in order.
fn resample(values: &[f64], random: &mut fastrand::Rng) -> Vec<f64> {
    let mut again: Vec<f64> =
        values.iter().filter_map(|_| values.get(random.usize(..values.len())).copied()).collect();
    again.sort_unstable_by(f64::total_cmp);
    again
}

/// Computes a statistic on each resample.
pub(super) fn resample_statistic(
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
    Some((quantile_of_sorted(&found, 0.025)?, quantile_of_sorted(&found, 0.975)?))
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
fn t_975(freedom: usize) -> f64 {
    const TABLE: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    let beyond = 1.96 + 2.5 / freedom.max(1) as f64;
    TABLE.get(freedom.saturating_sub(1)).copied().unwrap_or(beyond)
}

/// Smaller differences are never claimed.
pub(super) const WORTH: f64 = 1.02;
/// Fewest pairs (or runs on either side) for a claim.
pub const PAIRS_MIN: usize = 3;

/// Claim about two cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpeedClaim {
    /// The first is faster by more than 2 %, and the interval excludes 1.
    Faster,
    /// The first is slower, by the same rule.
    Slower,
    /// Equal: the whole interval is within 2 % of 1.
    Same,
    /// Undecided: too few runs, or too noisy.
    #[default]
    Unclear,
}

/// Ratio of speeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct SpeedRatio {
    /// Above 1 if the first is faster: median of ratios, computed on logarithms for symmetry, with its 95 %
    /// interval.
    pub ratio: Interval,
    /// Number of pairs; for unpaired cells the smaller number of runs.
    pub pairs: usize,
    /// Claim that follows.
    pub claim: SpeedClaim,
}

impl SpeedRatio {
    /// True if the whole interval is beyond a relative difference, in either direction; 0 means none.
    pub(super) fn exceeds(&self, noise: f64) -> bool {
        noise <= 0.0 || self.ratio.low > 1.0 + noise || self.ratio.high < 1.0 / (1.0 + noise)
    }
}

/// Speed of `a` relative to `b`, paired by block to cancel drift of the machine. Takes block and value of
/// each run; values that are not above 0 are ignored. `None` without a pair.
pub fn paired_ratio(
    a: &[(u32, f64)],
    b: &[(u32, f64)],
    more_is_better: bool,
    seed: u64,
) -> Option<SpeedRatio> {
    let logs = log_ratios(a, b, more_is_better);
    Some(of_logs(difference(&logs, seed)?, logs.len()))
}

/// Logarithm of the speed ratio in each block that has runs of both.
pub(super) fn log_ratios(a: &[(u32, f64)], b: &[(u32, f64)], more_is_better: bool) -> Vec<f64> {
    let (a, b) = (by_block(a), by_block(b));
    let of_block = |(block, a): (&u32, &f64)| {
        let b = b.get(block)?;
        Some(if more_is_better { a - b } else { b - a })
    };
    a.iter().filter_map(of_block).collect()
}

/// Speed of `a` relative to `b` from unpaired runs: ratio of medians, with an interval from resampling both.
/// `None` if a side has no value above 0.
pub fn unpaired_ratio(a: &[f64], b: &[f64], more_is_better: bool, seed: u64) -> Option<SpeedRatio> {
    let turn = if more_is_better { 1.0 } else { -1.0 };
    let logs = |values: &[f64]| -> Vec<f64> { values.iter().filter_map(|v| log(*v)).collect() };
    let (a, b) = (logs(a), logs(b));
    let mid = median(&a)? - median(&b)?;
    let found = resample_statistic(seed, |random| {
        Some(median(&resample(&a, random))? - median(&resample(&b, random))?)
    });
    let (mut low, mut high) = percentiles(found).unwrap_or((mid, mid));
    let runs = a.len().min(b.len());
    if let Some((below, above)) = welch(&a, &b).filter(|_| runs < 20) {
        (low, high) = (low.min(below), high.max(above));
    }
    let logs = Interval { low: low.min(mid), mid, high: high.max(mid) };
    Some(of_logs(logs.map(|log| turn * log), runs))
}

/// Welch's 95 % interval of the difference of two means, conservatively with the degrees of freedom of the
/// smaller side. `None` if a side has one value.
fn welch(a: &[f64], b: &[f64]) -> Option<(f64, f64)> {
    let variance = deviation(a)?.powi(2) / a.len() as f64 + deviation(b)?.powi(2) / b.len() as f64;
    let (mid, freedom) = (mean(a)? - mean(b)?, a.len().min(b.len()) - 1);
    let half = t_975(freedom) * variance.sqrt();
    half.is_finite().then_some((mid - half, mid + half))
}

/// Claim from the interval of the logarithm of a ratio.
fn of_logs(logs: Interval, pairs: usize) -> SpeedRatio {
    let back = |log: f64| log.exp().clamp(f64::MIN_POSITIVE, f64::MAX);
    let ratio = Interval { low: back(logs.low), mid: back(logs.mid), high: back(logs.high) };
    let worth = WORTH.ln();
    let claim = if pairs < PAIRS_MIN {
        SpeedClaim::Unclear
    } else if logs.low > 0.0 && logs.mid > worth {
        SpeedClaim::Faster
    } else if logs.high < 0.0 && logs.mid < -worth {
        SpeedClaim::Slower
    } else if logs.low >= -worth && logs.high <= worth {
        SpeedClaim::Same
    } else {
        SpeedClaim::Unclear
    };
    SpeedRatio { ratio, pairs, claim }
}

/// Logarithm of a positive finite number.
fn log(value: f64) -> Option<f64> {
    (value > 0.0 && value.is_finite()).then(|| value.ln())
}

/// Mean logarithm of the runs in each block.
fn by_block(runs: &[(u32, f64)]) -> BTreeMap<u32, f64> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (block, value) in runs {
        if let Some(log) = log(*value) {
            let sum = sums.entry(*block).or_default();
            *sum = (sum.0 + log, sum.1 + 1.0);
        }
    }
    sums.into_iter().map(|(block, (sum, count))| (block, sum / count)).collect()
}
