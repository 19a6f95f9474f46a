//! Two scalability models fitted to a sweep by least squares: they explain diminishing returns and extrapolate beyond its
//! end.

use crate::analysis::Interval;
use crate::analysis::statistics::percentiles;
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

    /// Metric at twice the largest N, with its interval.
    pub fn value_at_twice(&self) -> Interval {
        match self.work {
            // A time is inverse to the rate.
            Some(work) => self.at_twice.map(|rate| work / rate),
            None => self.at_twice,
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
    let usl = fit_usl(&points, None);
    let cap = fit_cap(&points);
    let aicc_usl = aicc(&points, &usl);
    let aicc_cap = cap.as_ref().map(|cap| aicc(&points, cap));
    let best = match (cap, aicc_cap) {
        (Some(cap), Some(of)) if of <= aicc_usl => cap,
        _ => usl,
    };
    let twice_x = 2.0 * points.x_max();
    let others = refit_resamples(&runs, &points, &best, seed);
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
fn refit_resamples(
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
            Some(_) => fit_cap(&points),
            None => Some(fit_usl(&points, Some(best))),
        }
    };
    (0..RESAMPLES).filter_map(again).collect()
}

/// Positions of the bend in the coarse search that precedes the golden-section search.
const BENDS: u32 = 96;

/// Data of a fit: mean logarithm of the rates and number of runs at each N. The scatter of runs around their
/// mean does not depend on the curve.
pub(super) struct FitPoints {
    at: Vec<FitPoint>,
    /// Sum of squared deviations of runs from the mean at their N.
    within: f64,
}

struct FitPoint {
    x: f64,
    mean: f64,
    runs: f64,
    /// Logarithms of the rates of single runs.
    logs: Vec<f64>,
}

/// Parameters of a curve of either model.
#[derive(Clone, Copy, Debug)]
pub(super) struct FitCurve {
    pub gamma: f64,
    pub alpha: f64,
    pub beta: f64,
    pub cap: Option<f64>,
}

impl FitPoints {
    /// Takes N (ascending) with the logarithms of the rates there, at least one each.
    pub(super) fn new(runs: &[(f64, Vec<f64>)]) -> FitPoints {
        let point = |(x, logs): &(f64, Vec<f64>)| {
            let runs = logs.len() as f64;
            let mean = logs.iter().map(|log| log / runs).sum();
            FitPoint { x: *x, mean, runs, logs: logs.clone() }
        };
        let at: Vec<FitPoint> = runs.iter().map(point).collect();
        let squares =
            |of: &FitPoint| of.logs.iter().map(|log| (log - of.mean).powi(2)).sum::<f64>();
        let within = at.iter().map(squares).sum();
        FitPoints { at, within }
    }

    /// Number of runs.
    pub(super) fn count(&self) -> f64 {
        self.at.iter().map(|of| of.runs).sum()
    }

    /// Largest N.
    fn x_max(&self) -> f64 {
        self.at.last().map_or(1.0, |of| of.x)
    }

    /// Residuals of the runs, as logarithms.
    pub(super) fn left<'a>(&'a self, curve: &'a FitCurve) -> impl Iterator<Item = f64> + 'a {
        self.at.iter().flat_map(|of| {
            let on_curve = curve.rate(of.x).ln();
            of.logs.iter().map(move |log| log - on_curve)
        })
    }

    /// Sum of squared residuals.
    pub(super) fn squares(&self, curve: &FitCurve) -> f64 {
        self.left(curve).map(|left| left * left).sum()
    }

    /// Best scale factor (as a logarithm) of a curve of known shape, and the sum of squares with it. `shape`
    /// gives the logarithm of the unscaled curve at a point.
    fn scaled(&self, shape: impl Fn(&FitPoint) -> f64) -> (f64, f64) {
        // Weighted mean and squares in one pass (Welford 1962): a difference of large sums would cancel where
        // the fit is good.
        let (mut weight, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for of in &self.at {
            let left = of.mean - shape(of);
            weight += of.runs;
            let step = left - mean;
            mean += step * of.runs / weight;
            squares += of.runs * step * (left - mean);
        }
        (mean, squares + self.within)
    }
}

impl FitCurve {
    pub(super) fn usl(gamma: f64, alpha: f64, beta: f64) -> FitCurve {
        FitCurve { gamma, alpha, beta, cap: None }
    }

    pub(super) fn cap(gamma: f64, cap: f64) -> FitCurve {
        FitCurve { gamma, alpha: 0.0, beta: 0.0, cap: Some(cap) }
    }

    pub(super) fn rate(&self, x: f64) -> f64 {
        match self.cap {
            Some(cap) => (self.gamma * x).min(cap),
            None => self.gamma * x / loss(self.alpha, self.beta, x),
        }
    }

    /// N*, from which the rate no longer rises.
    pub(super) fn peak_x(&self) -> Option<f64> {
        let peak = match self.cap {
            Some(cap) => cap / self.gamma,
            None if self.beta > 0.0 => ((1.0 - self.alpha).max(0.0) / self.beta).sqrt().max(1.0),
            None => return None,
        };
        peak.is_finite().then_some(peak)
    }
}

/// Factor by which the rate is below γN.
fn loss(alpha: f64, beta: f64, x: f64) -> f64 {
    1.0 + alpha * (x - 1.0) + beta * x * (x - 1.0)
}

/// Least-squares fit of the universal scalability law with α, β ≥ 0, starting near `start` if given.
fn fit_usl(points: &FitPoints, start: Option<&FitCurve>) -> FitCurve {
    let x_max = points.x_max();
    // Parameters are scaled to be about 1 at the end of the sweep; as squares they cannot become negative and
    // can reach 0.
    let alpha = |u: f64| u * u / x_max;
    let beta = |v: f64| v * v / (x_max * x_max);
    let squares =
        |[u, v]: [f64; 2]| points.scaled(|of| of.x.ln() - loss(alpha(u), beta(v), of.x).ln()).1;
    let from = match start {
        Some(curve) => [(curve.alpha * x_max).sqrt(), (curve.beta * x_max * x_max).sqrt()],
        None => {
            let powers = (-8..=10).map(|half| 2_f64.powf(f64::from(half) / 2.0));
            let steps: Vec<f64> = std::iter::once(0.0).chain(powers).collect();
            let grid = steps.iter().flat_map(|u| steps.iter().map(|v| [*u, *v]));
            grid.min_by(|a, b| squares(*a).total_cmp(&squares(*b))).unwrap_or([0.0, 0.0])
        }
    };
    let size = 0.25 * (from[0].abs() + from[1].abs()).clamp(0.2, 4.0);
    let [u, v] = least(squares, from, size);
    let (alpha, beta) = (tiny_is_none(alpha(u)), tiny_is_none(beta(v)));
    let (log, _) = points.scaled(|of| of.x.ln() - loss(alpha, beta, of.x).ln());
    FitCurve::usl(log.exp(), alpha, beta)
}

/// Rounds values to 0 that the search cannot distinguish from it.
fn tiny_is_none(value: f64) -> f64 {
    if value < 1e-14 { 0.0 } else { value }
}

/// Least-squares fit of a hard cap. `None` unless the bend lies between the first N and the last but one: at
/// least two points must confirm the plateau.
fn fit_cap(points: &FitPoints) -> Option<FitCurve> {
    let first = points.at.first()?.x.ln();
    let last = points.at.iter().rev().nth(1)?.x.ln();
    let squares = |bend: f64| points.scaled(|of| of.x.ln().min(bend)).1;
    let step = (last - first) / f64::from(BENDS);
    let grid = (0..=BENDS).map(|number| first + f64::from(number) * step);
    let coarse = grid.min_by(|a, b| squares(*a).total_cmp(&squares(*b)))?;
    let bend = golden(&squares, (coarse - step).max(first), (coarse + step).min(last));
    let (log, _) = points.scaled(|of| of.x.ln().min(bend));
    let curve = FitCurve::cap(log.exp(), (log + bend).exp());
    let usable = |value: f64| value.is_finite() && value > 0.0;
    (usable(curve.gamma) && curve.cap.is_some_and(usable)).then_some(curve)
}

/// Minimum of a function in an interval by golden-section search (Kiefer 1953).
fn golden(of: &impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let share = (5.0_f64.sqrt() - 1.0) / 2.0;
    for _ in 0..40 {
        let (a, b) = (high - share * (high - low), low + share * (high - low));
        if of(a) <= of(b) { high = b } else { low = a }
    }
    0.5 * (low + high)
}

// Minimises a function of two variables without derivatives: the simplex method of Nelder & Mead (1965),
// restarted once where it ended, because a simplex may collapse.

/// Most iterations; some tens are usual.
const STEPS_MAX: usize = 400;
/// Converged when the corners are this close and the function values differ by no more than this relatively,
/// or by no more than the second constant absolutely.
const NEAR: f64 = 1e-6;
const SAME: [f64; 2] = [1e-12, 1e-18];

type SimplexCorner = ([f64; 2], f64);

/// Position of the minimum of `of` near `from`; `size` is the edge of the first simplex. NaN counts as
/// infinite.
pub(super) fn least(of: impl Fn([f64; 2]) -> f64, from: [f64; 2], size: f64) -> [f64; 2] {
    let once = descend(&of, from, size);
    descend(&of, once, size / 4.0)
}

fn descend(of: &impl Fn([f64; 2]) -> f64, [u, v]: [f64; 2], size: f64) -> [f64; 2] {
    let corner = |at: [f64; 2]| -> SimplexCorner {
        let value = of(at);
        (at, if value.is_nan() { f64::INFINITY } else { value })
    };
    let mut simplex = [corner([u, v]), corner([u + size, v]), corner([u, v + size])];
    for _ in 0..STEPS_MAX {
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        let [best, second, worst] = simplex;
        let wide = distance(best.0, worst.0).max(distance(best.0, second.0));
        if worst.1 - best.1 <= SAME[0] * best.1.abs() + SAME[1] && wide <= NEAR {
            break;
        }
        let middle = between(best.0, second.0, 0.5);
        let reflected = corner(between(worst.0, middle, 2.0));
        let next = if reflected.1 < best.1 {
            let further = corner(between(worst.0, middle, 3.0));
            Some(if further.1 < reflected.1 { further } else { reflected })
        } else if reflected.1 < second.1 {
            Some(reflected)
        } else {
            // Contract on the better side.
            let nearer = if reflected.1 < worst.1 { 1.5 } else { 0.5 };
            let inner = corner(between(worst.0, middle, nearer));
            (inner.1 < worst.1.min(reflected.1)).then_some(inner)
        };
        simplex = match next {
            Some(next) => [best, second, next],
            None => {
                let shrunk = |at: SimplexCorner| corner(between(best.0, at.0, 0.5));
                [best, shrunk(second), shrunk(worst)]
            }
        };
    }
    simplex.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map_or([u, v], |best| best.0)
}

/// Linear interpolation: `part` 0 is `a`, 1 is `b`, 2 as far beyond `b`.
fn between(a: [f64; 2], b: [f64; 2], part: f64) -> [f64; 2] {
    let [u, v] = a;
    [u + part * (b[0] - u), v + part * (b[1] - v)]
}

fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}
