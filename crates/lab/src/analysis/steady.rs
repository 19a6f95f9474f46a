//! Where a run has become steady: from where on its rate no longer rises or falls, but for noise.

/// Longer curves are looked at in so many pieces.
const PIECES_MAX: usize = 200;
/// What follows has to have so many of them, and be a third of the run.
const PIECES_MIN: usize = 4;
/// Means that differ by less than this share are the same.
const NEAR: f64 = 0.05;

/// The steady part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Steady {
    /// The first value of it, as an index into the curve.
    pub from: usize,
    /// When that interval began, seconds since the run did.
    pub from_s: f64,
    /// Mean rate from there to the end, in the unit of the curve.
    pub rate: f64,
}

/// From where on a curve is steady. Goes in: the ends of the intervals, in seconds since the run
/// began, and the rate in each. `None` where the curve is too short, has no rate above 0, holds what
/// is no number, or never becomes steady: then no mean over it says much.
///
/// Steady is the longest tail of at least a third of the curve of which both halves have the same
/// mean and whose beginning is like the rest: within 5 %, or within what the noise between
/// neighbouring values explains.
pub fn steady(t_s: &[f64], rates: &[f64]) -> Option<Steady> {
    let count = t_s.len().min(rates.len());
    let (t_s, rates) = (t_s.get(..count)?, rates.get(..count)?);
    let numbers = t_s.iter().chain(rates).all(|value| value.is_finite());
    if !numbers || rates.iter().all(|rate| *rate <= 0.0) {
        return None;
    }
    let size = count.div_ceil(PIECES_MAX).max(1);
    let pieces: Vec<f64> = rates.chunks(size).map(mean).collect();
    let noise = noise(&pieces);
    let shortest = PIECES_MIN.max(pieces.len().div_ceil(3));
    let at = (0..=pieces.len().checked_sub(shortest)?)
        .find(|at| pieces.get(*at..).is_some_and(|tail| is_steady(tail, noise)))?;
    let from = at * size;
    let from_s = from.checked_sub(1).and_then(|before| t_s.get(before)).copied().unwrap_or(0.0);
    let rate = mean(rates.get(from..)?);
    (rate.is_finite() && rate > 0.0).then_some(Steady { from, from_s, rate })
}

fn is_steady(tail: &[f64], noise: f64) -> bool {
    let count = tail.len() as f64;
    let all = mean(tail);
    let (a, b) = tail.split_at(tail.len() / 2);
    // Two standard errors of the difference of two means of half the values each.
    let by_chance = 2.0 * noise * 2.0 / count.sqrt();
    let halves = (mean(a) - mean(b)).abs() <= by_chance.max(NEAR * all.abs());
    let head = tail.get(..(tail.len() / 10).clamp(1, 5)).unwrap_or(tail);
    let by_chance = 3.0 * noise / (head.len() as f64).sqrt();
    halves && (mean(head) - all).abs() <= by_chance.max(2.0 * NEAR * all.abs())
}

/// The standard deviation of a value around a slow curve: from differences of neighbours, of which
/// the median hardly sees a ramp or a step (1.4826 makes a deviation of a median of amounts).
fn noise(values: &[f64]) -> f64 {
    let steps: Vec<f64> =
        values.windows(2).filter_map(|pair| Some((pair.last()? - pair.first()?).abs())).collect();
    super::median(&steps).unwrap_or(0.0) * 1.4826 / std::f64::consts::SQRT_2
}

fn mean(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    values.iter().map(|value| value / count).sum()
}
