//! Ratio of speed between two cells, and the claim that it supports.

use super::Interval;
use super::bootstrap::{self, deviation, difference, mean, median, resample, t_975};
use std::collections::BTreeMap;

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

/// Speed of `a` relative to `b`, paired by block to cancel drift of the machine. Takes block and value of
/// each run; values that are not above 0 are ignored. `None` without a pair.
pub fn paired(
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
pub fn unpaired(a: &[f64], b: &[f64], more_is_better: bool, seed: u64) -> Option<SpeedRatio> {
    let turn = if more_is_better { 1.0 } else { -1.0 };
    let logs = |values: &[f64]| -> Vec<f64> { values.iter().filter_map(|v| log(*v)).collect() };
    let (a, b) = (logs(a), logs(b));
    let mid = median(&a)? - median(&b)?;
    let found = bootstrap::resampled(seed, |random| {
        Some(median(&resample(&a, random))? - median(&resample(&b, random))?)
    });
    let (mut low, mut high) = bootstrap::percentiles(found).unwrap_or((mid, mid));
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
