//! Linear and logarithmic axes: mapping to pixels, ticks and their labels.

use super::shape::AxisScale;
use hakobu_core::number;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use std::ops::Range;

/// A logarithmic axis with more ticks than this shows powers of ten only.
const TICKS_MAX: usize = 9;

/// Bound of the numbers of an axis: lengths and next round numbers stay finite.
const BOUND: f64 = 1e300;

/// Axis from `low` to `high`.
#[derive(Clone, Debug)]
pub(super) struct ChartAxis {
    low: f64,
    high: f64,
    scale: AxisScale,
    /// Positions of ticks; chosen automatically if empty.
    ticks: Vec<f64>,
}

impl ChartAxis {
    /// Falls back to a linear axis if a logarithm does not exist.
    pub(super) fn new(low: f64, high: f64, scale: AxisScale, ticks: Vec<f64>) -> ChartAxis {
        let bounded = |number: f64| if number.is_nan() { 0.0 } else { number.clamp(-BOUND, BOUND) };
        let (low, high) = (bounded(low), bounded(high));
        // Beside a large number 1 is nothing.
        let high = if high > low { high } else { (low + 1.0).max(low + low.abs() * 1e-9) };
        let scale = if low > 0.0 { scale } else { AxisScale::Linear };
        ChartAxis { low, high, scale, ticks }
    }

    fn of_logarithms(&self) -> RangedCoordf64 {
        RangedCoordf64::from(self.low.ln()..self.high.ln())
    }
}

impl Ranged for ChartAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        match self.scale {
            AxisScale::Linear => RangedCoordf64::from(self.low..self.high).map(value, limit),
            AxisScale::Logarithmic => {
                let value = value.max(self.low.min(self.high)).ln();
                self.of_logarithms().map(&value, limit)
            }
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if !self.ticks.is_empty() {
            return self.ticks.clone();
        }
        match self.scale {
            AxisScale::Linear => RangedCoordf64::from(self.low..self.high).key_points(hint),
            AxisScale::Logarithmic => decades(self.low, self.high),
        }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

/// Numbers of the form 1, 2, 5 × 10ⁿ from `low` to `high`.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let powers = || (low.log10().floor() as i32..=high.log10().ceil() as i32).map(power_of_ten);
    let inside = |tick: &f64| *tick >= low * 0.999 && *tick <= high * 1.001;
    let fine: Vec<f64> =
        powers().flat_map(|power| [power, 2.0 * power, 5.0 * power]).filter(inside).collect();
    if fine.len() <= TICKS_MAX { fine } else { powers().filter(inside).collect() }
}

fn power_of_ten(exponent: i32) -> f64 {
    10f64.powi(exponent)
}

/// Largest number of the form 1, 2, 5 × 10ⁿ that is not above `smallest`.
pub(super) fn round_bottom(smallest: f64) -> f64 {
    let power = power_of_ten(smallest.log10().floor() as i32);
    let fits = [5.0, 2.0, 1.0].iter().map(|step| step * power).find(|low| *low <= smallest * 1.001);
    fits.unwrap_or(power)
}

/// Next larger number of the form 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 × 10ⁿ.
pub(super) fn round_top(largest: f64) -> f64 {
    if largest <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(largest.log10().floor());
    let steps = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let fits = steps.iter().map(|step| step * power).find(|top| *top >= largest * 1.02);
    fits.unwrap_or(12.0 * power)
}

/// Formats a tick label with the digits that an axis of length `range` needs.
pub(super) fn axis_number(number: f64, range: f64) -> String {
    let digits = match range {
        range if range >= 20.0 => 0,
        range if range >= 2.0 => 1,
        range if range >= 0.2 => 2,
        range if range >= 0.02 => 3,
        _ => 4,
    };
    grouped(&format!("{number:.digits$}"))
}

/// Formats a tick label of a logarithmic axis with the digits that the number needs.
pub(super) fn tick_number(number: f64) -> String {
    let digits = if number > 0.0 { (-number.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };
    grouped(&format!("{number:.digits$}"))
}

/// Strips trailing zeros of the fraction and groups thousands by commas.
fn grouped(text: &str) -> String {
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    let (whole, fraction) = text.split_once('.').map_or((text, ""), |(w, f)| (w, f));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |rest| ("-", rest));
    let mut out = format!("{sign}{}", number::grouped_digits(whole));
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doublings_are_evenly_apart() {
        let axis = ChartAxis::new(1.0, 16.0, AxisScale::Logarithmic, Vec::new());
        let places: Vec<i32> =
            [1.0, 2.0, 4.0, 8.0, 16.0].iter().map(|x| axis.map(x, (0, 400))).collect();
        for (place, expected) in places.iter().zip([0, 100, 200, 300, 400]) {
            assert!((place - expected).abs() <= 1, "{places:?}");
        }
        // Without logarithms the axis is linear, and an empty range gets a length.
        assert_eq!(
            ChartAxis::new(0.0, 10.0, AxisScale::Logarithmic, Vec::new()).map(&5.0, (0, 100)),
            50
        );
        assert_eq!(ChartAxis::new(3.0, 3.0, AxisScale::Linear, Vec::new()).range(), 3.0..4.0);
    }

    #[test]
    fn the_largest_numbers_have_an_axis() {
        for low in [f64::MIN_POSITIVE, 1.0, f64::MAX, f64::INFINITY, f64::NAN] {
            let axis = ChartAxis::new(low, f64::INFINITY, AxisScale::Logarithmic, Vec::new());
            let range = axis.range();
            assert!(range.end > range.start && range.end.is_finite(), "{low}: {range:?}");
            assert!(decades(range.start.max(1e-300), range.end).len() < 1000);
        }
    }

    #[test]
    fn ticks() {
        assert_eq!(decades(0.5, 20.0), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(decades(0.01, 1000.0), [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]);
        for (smallest, bottom) in [(0.034, 0.02), (1.0, 1.0), (7.0, 5.0), (999.0, 500.0)] {
            assert!((round_bottom(smallest) - bottom).abs() < bottom * 1e-9, "{smallest}");
        }
        assert_eq!(tick_number(0.05), "0.05");
        assert_eq!(tick_number(2000.0), "2,000");
        assert_eq!(tick_number(0.0), "0");
    }
}
