//! Steady-state detection: the time from which a run's rate no longer rises or falls beyond noise.

/// Longer curves are reduced to this number of pieces.
const PIECES_MAX: usize = 200;
/// The steady tail needs this number of pieces, and a third of the run.
const PIECES_MIN: usize = 4;
/// Means within this share of each other count as equal.
const NEAR: f64 = 0.05;

/// Steady part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct SteadyPart {
    /// Index of its first value in the curve.
    pub from: usize,
    /// Start of that interval, in seconds since the start of the run.
    pub from_s: f64,
    /// Mean rate from there to the end, in the unit of the curve.
    pub rate: f64,
}

/// Finds the steady part of a curve. Takes the ends of the intervals, in seconds since the start of the run,
/// and the rate in each. `None` if the curve is too short, has no rate above 0, contains NaN or never becomes
/// steady: its mean is then not meaningful.
///
/// The steady part is the longest tail of at least a third of the curve whose halves have the same mean and
/// whose beginning resembles the rest: within 5 %, or within the noise between neighbouring values.
pub fn steady(t_s: &[f64], rates: &[f64]) -> Option<SteadyPart> {
    let count = t_s.len().min(rates.len());
    let (t_s, rates) = (t_s.get(..count)?, rates.get(..count)?);
    let numbers = t_s.iter().chain(rates).all(|value| value.is_finite());
    if !numbers || rates.iter().all(|rate| *rate <= 0.0) {
        return None;
    }
    let size = count.div_ceil(PIECES_MAX).max(1);
    let pieces: Vec<f64> = rates.chunks(size).map(mean_rate).collect();
    let noise = rate_noise(&pieces);
    let shortest = PIECES_MIN.max(pieces.len().div_ceil(3));
    let at = (0..=pieces.len().checked_sub(shortest)?)
        .find(|at| pieces.get(*at..).is_some_and(|tail| is_steady(tail, noise)))?;
    let from = at * size;
    let from_s = from.checked_sub(1).and_then(|before| t_s.get(before)).copied().unwrap_or(0.0);
    let rate = mean_rate(rates.get(from..)?);
    (rate.is_finite() && rate > 0.0).then_some(SteadyPart { from, from_s, rate })
}

fn is_steady(tail: &[f64], noise: f64) -> bool {
    let count = tail.len() as f64;
    let all = mean_rate(tail);
    let (a, b) = tail.split_at(tail.len() / 2);
    // Two standard errors of the difference of the means of two halves.
    let by_chance = 2.0 * noise * 2.0 / count.sqrt();
    let halves = (mean_rate(a) - mean_rate(b)).abs() <= by_chance.max(NEAR * all.abs());
    let head = tail.get(..(tail.len() / 10).clamp(1, 5)).unwrap_or(tail);
    let by_chance = 3.0 * noise / (head.len() as f64).sqrt();
    halves && (mean_rate(head) - all).abs() <= by_chance.max(2.0 * NEAR * all.abs())
}

/// Standard deviation around a slowly varying curve, from differences of neighbours: their median is hardly
/// affected by a ramp or a step (1.4826 converts a median absolute deviation to a standard deviation).
fn rate_noise(values: &[f64]) -> f64 {
    let steps: Vec<f64> =
        values.windows(2).filter_map(|pair| Some((pair.last()? - pair.first()?).abs())).collect();
    super::median(&steps).unwrap_or(0.0) * 1.4826 / std::f64::consts::SQRT_2
}

fn mean_rate(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    values.iter().map(|value| value / count).sum()
}
