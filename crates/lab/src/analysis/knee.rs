//! The knee: the fewest of something (jobs, requests) that are as good as the most.

use super::Interval;

/// As good as the best is what is within this share of it.
const WITHIN: f64 = 0.03;

/// Where more brings no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Knee {
    /// The fewest that are within 3 % of the best.
    pub x: f64,
    /// Where the best was measured.
    pub best_x: f64,
    /// What was measured at the knee, in the unit of the metric.
    pub value: f64,
    /// Speed at the knee as a share of the best, 0 to 1.
    pub share: f64,
    /// Nothing before the end of the sweep is within 3 % of what is reached there: the best may lie
    /// beyond.
    pub at_edge: bool,
}

/// The fewest x within 3 % of the best. Goes in: x and what was measured there, above 0, in any
/// order. `None` with fewer than two different x.
///
/// Medians count. Where the interval of one reaches into the 3 %, the runs cannot tell it from what
/// does, and it counts as well; but noise lends it no more than another 3 %, or few runs would move
/// the knee to one job.
pub fn knee(points: &[(f64, Interval)], more_is_better: bool) -> Option<Knee> {
    // As rates, so that more is better.
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
    // The fewest of equals.
    let (best_x, best) = *points.iter().rev().max_by(better)?;
    let share = |value: f64| rate(value) / rate(best.mid);
    let is_within = |of: &Interval| {
        // The end of the interval at which it is fastest.
        let fastest = if more_is_better { of.high } else { of.low };
        let mid = share(of.mid);
        let lent = mid >= 1.0 - 2.0 * WITHIN && (fastest <= 0.0 || share(fastest) >= 1.0 - WITHIN);
        mid >= 1.0 - WITHIN || lent
    };
    let (x, at) = *points.iter().find(|(_, of)| is_within(of))?;
    Some(Knee { x, best_x, value: at.mid, share: share(at.mid), at_edge: x >= last })
}
