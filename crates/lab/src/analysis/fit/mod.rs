//! Curves through a sweep: what they say about why more brings less and less, and what they predict
//! beyond its end.

mod curve;
mod simplex;

use self::curve::{Curve, Points};
use super::Interval;
use super::bootstrap::percentiles;
use std::collections::BTreeMap;

/// Fewer different N do not tell one curve from another.
const DIFFERENT_MIN: usize = 4;
/// Resamples for the intervals.
const RESAMPLES: usize = 200;
/// With so many runs at each N their own scatter is resampled, else that around the curve.
const RUNS_MIN: usize = 3;
/// Relative errors below this are those of arithmetic.
const EXACT: f64 = 1e-6;

/// A kind of curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Universal scalability law, X(N) = γN / (1 + α(N−1) + βN(N−1)) (Gunther 1993; Guerrilla
    /// Capacity Planning, 2007): what is done one after another, and what all have to agree on.
    #[default]
    Usl,
    /// X(N) = min(γN, C): each adds the same, until something is full.
    Cap,
}

/// A curve through a sweep, with what it predicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Fit {
    /// Which curve.
    pub model: Model,
    /// γ: the rate that one brings.
    pub gamma: Interval,
    /// α: the share that is done one after another; 0 for a cap.
    pub alpha: Interval,
    /// β: what each pair costs; 0 for a cap.
    pub beta: Interval,
    /// C: the highest rate, for a cap.
    pub cap: Option<Interval>,
    /// N*: from where on the rate falls, or rises no more. `None` where it always rises.
    pub peak_x: Option<Interval>,
    /// The rate there.
    pub peak_rate: Option<f64>,
    /// Twice the largest N that was measured.
    pub twice_x: f64,
    /// The rate that the curve predicts there.
    pub at_twice: Interval,
    /// Relative error of the curve at the points, root mean square.
    pub error: f64,
    /// Akaike's criterion, corrected for few points, of the universal scalability law: the lower the
    /// better.
    pub aicc_usl: f64,
    /// The same of the cap; `None` where no two points at the end say the same.
    pub aicc_cap: Option<f64>,
    /// What a run does, in the unit in which rates count it, where the metric is a time: that is
    /// work ÷ rate. `None` where the metric is a rate.
    pub work: Option<f64>,
}

impl Fit {
    /// The rate at N.
    pub fn rate(&self, x: f64) -> f64 {
        match self.model {
            Model::Usl => Curve::usl(self.gamma.mid, self.alpha.mid, self.beta.mid).rate(x),
            Model::Cap => {
                Curve::cap(self.gamma.mid, self.cap.map_or(f64::INFINITY, |cap| cap.mid)).rate(x)
            }
        }
    }

    /// The metric at N: a time where runs do a known work, else the rate.
    pub fn value(&self, x: f64) -> f64 {
        self.work.map_or(self.rate(x), |work| work / self.rate(x))
    }
}

/// The curve that fits best, by least squares of logarithms. Goes in: N (1 or more) and rate (above
/// 0) of each run, in any order. `None` with fewer than 4 different N; what cannot be used is left
/// out.
///
/// Of the two curves that with the lower AICc is taken (Hurvich & Tsai 1989). Intervals (95 %) come
/// from a bootstrap: of the runs at each N where there are three, else of what is left between points
/// and curve.
pub fn fit(points: &[(f64, f64)], seed: u64) -> Option<Fit> {
    let mut runs: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (x, rate) in points {
        let usable = x.is_finite() && *x >= 1.0 && rate.is_finite() && *rate > 0.0;
        if usable {
            // Of positive numbers the bits have the order of the numbers.
            runs.entry(x.to_bits()).or_default().push(rate.ln());
        }
    }
    let runs: Vec<(f64, Vec<f64>)> =
        runs.into_iter().map(|(x, logs)| (f64::from_bits(x), logs)).collect();
    if runs.len() < DIFFERENT_MIN {
        return None;
    }
    let points = Points::new(&runs);
    let usl = curve::fit_usl(&points, None);
    let cap = curve::fit_cap(&points);
    let aicc_usl = aicc(&points, &usl);
    let aicc_cap = cap.as_ref().map(|cap| aicc(&points, cap));
    let best = match (cap, aicc_cap) {
        (Some(cap), Some(of)) if of <= aicc_usl => cap,
        _ => usl,
    };
    let twice_x = 2.0 * points.x_max();
    let others = resampled(&runs, &points, &best, seed);
    let range = |of: &dyn Fn(&Curve) -> Option<f64>| -> Option<Interval> {
        let mid = of(&best).filter(|value| value.is_finite())?;
        let found = others.iter().filter_map(of).collect();
        let (low, high) = percentiles(found).unwrap_or((mid, mid));
        Some(Interval { low: low.min(mid), mid, high: high.max(mid) })
    };
    // Where one resample of twenty has no peak, nobody knows where it is.
    let peaks = others.iter().filter(|curve| curve.peak_x().is_some()).count();
    let has_peak = 20 * peaks >= 19 * others.len();
    let peak_x = range(&|curve| curve.peak_x()).filter(|_| has_peak);
    let model = if best.cap.is_some() { Model::Cap } else { Model::Usl };
    let fit = Fit {
        model,
        gamma: range(&|curve| Some(curve.gamma))?,
        alpha: range(&|curve| Some(curve.alpha))?,
        beta: range(&|curve| Some(curve.beta))?,
        cap: range(&|curve| curve.cap),
        peak_x,
        peak_rate: peak_x.map(|peak| best.rate(peak.mid)),
        twice_x,
        at_twice: range(&|curve| Some(curve.rate(twice_x)))?,
        error: (points.squares(&best) / points.count()).sqrt().exp_m1().min(f64::MAX),
        aicc_usl,
        aicc_cap,
        work: None,
    };
    Some(fit)
}

/// Akaike's criterion with the correction for few points. Where there are too few for that, it is as
/// large as it can be.
fn aicc(points: &Points, curve: &Curve) -> f64 {
    let count = points.count();
    // The deviation is a parameter as well.
    let free = if curve.cap.is_some() { 3.0 } else { 4.0 };
    let variance = (points.squares(curve) / count).max(EXACT * EXACT);
    let correction = 2.0 * free * (free + 1.0) / (count - free - 1.0).max(1.0);
    count * variance.ln() + 2.0 * free + correction
}

/// The same kind of curve through resamples.
fn resampled(runs: &[(f64, Vec<f64>)], points: &Points, best: &Curve, seed: u64) -> Vec<Curve> {
    let mut random = fastrand::Rng::with_seed(seed);
    let all: Vec<f64> = points.left(best).collect();
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    // As many parameters as there are took that much of the scatter away.
    let free = if best.cap.is_some() { 2.0 } else { 3.0 };
    let grown = (all.len() as f64 / (all.len() as f64 - free).max(1.0)).sqrt();
    let by_runs = runs.iter().all(|(_, logs)| logs.len() >= RUNS_MIN);
    let again = |_: usize| {
        let runs: Vec<(f64, Vec<f64>)> = runs
            .iter()
            .map(|(x, logs)| {
                let one = |_: &f64| match by_runs {
                    true => random.choice(logs).copied().unwrap_or_default(),
                    false => {
                        let left = random.choice(&all).copied().unwrap_or_default();
                        best.rate(*x).ln() + grown * (left - mean)
                    }
                };
                (*x, logs.iter().map(one).collect())
            })
            .collect();
        let points = Points::new(&runs);
        match best.cap {
            Some(_) => curve::fit_cap(&points),
            None => Some(curve::fit_usl(&points, Some(best))),
        }
    };
    (0..RESAMPLES).filter_map(again).collect()
}
