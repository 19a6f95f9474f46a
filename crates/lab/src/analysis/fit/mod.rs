//! Scalability models fitted to a sweep: they explain diminishing returns and extrapolate beyond its end.

mod curve;
mod simplex;

use self::curve::{FitCurve, FitPoints};
use super::Interval;
use super::bootstrap::percentiles;
use std::collections::BTreeMap;

/// Fewer distinct N cannot tell the models apart.
const DIFFERENT_MIN: usize = 4;
/// Number of bootstrap resamples.
const RESAMPLES: usize = 200;
/// From this number of runs at each N the runs are resampled, else the residuals of the curve.
const RUNS_MIN: usize = 3;
/// Relative errors below this are rounding.
const EXACT: f64 = 1e-6;

/// A scalability model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FitModel {
    /// Universal scalability law, X(N) = γN / (1 + α(N−1) + βN(N−1)) (Gunther 1993; Guerrilla Capacity
    /// Planning, 2007): α is contention, β coherency.
    #[default]
    Usl,
    /// X(N) = min(γN, C): linear up to a capacity.
    Cap,
}

/// Fit of a model to a sweep, with predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct CurveFit {
    /// The model.
    pub model: FitModel,
    /// γ: rate at N = 1.
    pub gamma: Interval,
    /// α: serial share (contention); 0 for a cap.
    pub alpha: Interval,
    /// β: cost per pair (coherency); 0 for a cap.
    pub beta: Interval,
    /// C: capacity, for a cap.
    pub cap: Option<Interval>,
    /// N*, from which the rate falls or no longer rises. `None` if it always rises.
    pub peak_x: Option<Interval>,
    /// Rate at N*.
    pub peak_rate: Option<f64>,
    /// Twice the largest measured N.
    pub twice_x: f64,
    /// Predicted rate at `twice_x`.
    pub at_twice: Interval,
    /// Root-mean-square relative error at the points.
    pub error: f64,
    /// Corrected Akaike information criterion (AICc) of the universal scalability law; lower is better.
    pub aicc_usl: f64,
    /// AICc of the cap; `None` if no two points at the end confirm a plateau.
    pub aicc_cap: Option<f64>,
    /// Work of a run in the unit that rates count, so that time = work ÷ rate. `None` if the metric is a
    /// rate.
    pub work: Option<f64>,
}

impl CurveFit {
    /// Rate at N.
    pub fn rate(&self, x: f64) -> f64 {
        match self.model {
            FitModel::Usl => FitCurve::usl(self.gamma.mid, self.alpha.mid, self.beta.mid).rate(x),
            FitModel::Cap => {
                FitCurve::cap(self.gamma.mid, self.cap.map_or(f64::INFINITY, |cap| cap.mid)).rate(x)
            }
        }
    }

    /// Metric at N: a time if the work of a run is known, else the rate.
    pub fn value(&self, x: f64) -> f64 {
        self.work.map_or(self.rate(x), |work| work / self.rate(x))
    }
}

/// Fits the better model by least squares of logarithms. Takes N (≥ 1) and rate (> 0) of each run, in any
/// order; other values are ignored. `None` with fewer than 4 distinct N.
///
/// The model with the lower AICc is chosen (Hurvich & Tsai 1989). The 95 % intervals come from a bootstrap:
/// of the runs if there are at least three at each N, else of the residuals.
pub fn fit(points: &[(f64, f64)], seed: u64) -> Option<CurveFit> {
    let mut runs: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (x, rate) in points {
        let usable = x.is_finite() && *x >= 1.0 && rate.is_finite() && *rate > 0.0;
        if usable {
            // Positive floats sort like their bits.
            runs.entry(x.to_bits()).or_default().push(rate.ln());
        }
    }
    let runs: Vec<(f64, Vec<f64>)> =
        runs.into_iter().map(|(x, logs)| (f64::from_bits(x), logs)).collect();
    if runs.len() < DIFFERENT_MIN {
        return None;
    }
    let points = FitPoints::new(&runs);
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
    let range = |of: &dyn Fn(&FitCurve) -> Option<f64>| -> Option<Interval> {
        let mid = of(&best).filter(|value| value.is_finite())?;
        let found = others.iter().filter_map(of).collect();
        let (low, high) = percentiles(found).unwrap_or((mid, mid));
        Some(Interval { low: low.min(mid), mid, high: high.max(mid) })
    };
    // If more than 5 % of the resamples have no peak, its position is unknown.
    let peaks = others.iter().filter(|curve| curve.peak_x().is_some()).count();
    let has_peak = 20 * peaks >= 19 * others.len();
    let peak_x = range(&|curve| curve.peak_x()).filter(|_| has_peak);
    let model = if best.cap.is_some() { FitModel::Cap } else { FitModel::Usl };
    let fit = CurveFit {
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

/// Corrected Akaike information criterion; infinite with too few points for the correction.
fn aicc(points: &FitPoints, curve: &FitCurve) -> f64 {
    let count = points.count();
    // The deviation is a parameter as well.
    let free = if curve.cap.is_some() { 3.0 } else { 4.0 };
    let variance = (points.squares(curve) / count).max(EXACT * EXACT);
    let correction = 2.0 * free * (free + 1.0) / (count - free - 1.0).max(1.0);
    count * variance.ln() + 2.0 * free + correction
}

/// Fits of the same model to resamples.
fn resampled(
    runs: &[(f64, Vec<f64>)],
    points: &FitPoints,
    best: &FitCurve,
    seed: u64,
) -> Vec<FitCurve> {
    let mut random = fastrand::Rng::with_seed(seed);
    let all: Vec<f64> = points.left(best).collect();
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    // Scale the residuals up by the degrees of freedom that the fit used.
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
        let points = FitPoints::new(&runs);
        match best.cap {
            Some(_) => curve::fit_cap(&points),
            None => Some(curve::fit_usl(&points, Some(best))),
        }
    };
    (0..RESAMPLES).filter_map(again).collect()
}
