//! The knee: the fewest jobs (or requests) that perform as well as more.

use super::Interval;

/// Results within this share of the best count as equal.
const WITHIN: f64 = 0.03;

/// Position of the knee of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Knee {
    /// Fewest x within 3 % of the best.
    pub x: f64,
    /// x of the best result.
    pub best_x: f64,
    /// Metric at the knee.
    pub value: f64,
    /// Speed at the knee as a share of the best, 0 to 1.
    pub share: f64,
    /// True if only the end of the sweep is within 3 % of the best, so that a larger x may be better.
    pub at_edge: bool,
}

/// Finds the fewest x within 3 % of the best. Takes x and the measured value (> 0), in any order. `None` with
/// fewer than two distinct x.
///
/// Medians are compared. A point whose interval reaches into the 3 % counts as well, but only within a
/// further 3 %: otherwise few noisy runs would move the knee to one job.
pub fn knee(points: &[(f64, Interval)], more_is_better: bool) -> Option<Knee> {
    // Convert to rates, so that more is better.
    let rate = |value: f64| if more_is_better { value } else { 1.0 / value };
    let usable = |(x, of): &&(f64, Interval)| {
        let bounds = [of.low, of.mid, of.high];
        x.is_finite() && of.mid >= f64::MIN_POSITIVE && bounds.iter().all(|bound| bound.is_finite())
    };
    let mut points: Vec<(f64, Interval)> = points.iter().filter(usable).copied().collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let last = points.last()?.0;
    if points.first()?.0 >= last {
        return None;
    }
    let better =
        |a: &&(f64, Interval), b: &&(f64, Interval)| rate(a.1.mid).total_cmp(&rate(b.1.mid));
    // The smallest x among equals.
    let (best_x, best) = *points.iter().rev().max_by(better)?;
    let share = |value: f64| rate(value) / rate(best.mid);
    let is_within = |of: &Interval| {
        // End of the interval at which it is fastest.
        let fastest = if more_is_better { of.high } else { of.low };
        let mid = share(of.mid);
        let lent = mid >= 1.0 - 2.0 * WITHIN && (fastest <= 0.0 || share(fastest) >= 1.0 - WITHIN);
        mid >= 1.0 - WITHIN || lent
    };
    let (x, at) = *points.iter().find(|(_, of)| is_within(of))?;
    Some(Knee { x, best_x, value: at.mid, share: share(at.mid), at_edge: x >= last })
}
