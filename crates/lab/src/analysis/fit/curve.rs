//! The two curve models and their least-squares fits.

use super::simplex;

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
    pub(super) fn x_max(&self) -> f64 {
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
pub(super) fn fit_usl(points: &FitPoints, start: Option<&FitCurve>) -> FitCurve {
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
    let [u, v] = simplex::least(squares, from, size);
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
pub(super) fn fit_cap(points: &FitPoints) -> Option<FitCurve> {
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
