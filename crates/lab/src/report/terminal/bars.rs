//! Text bars: length proportional to the value from 0, with the interval at the end.

use crate::analysis::Interval;

/// Intervals are drawn up to this multiple of the largest value: a wide one would leave no room for the bars.
const REACH: f64 = 1.5;

/// Scale of bars.
#[derive(Clone, Copy, Debug)]
pub(super) struct BarScale {
    /// Columns of the longest bar with its interval.
    room: usize,
    /// Value of that many columns.
    full: f64,
}

impl BarScale {
    /// Scale on which all values fit. `None` if no value is above 0.
    pub(super) fn new(values: &[Interval], room: usize) -> Option<BarScale> {
        let most = |of: fn(&Interval) -> f64| {
            values.iter().map(of).filter(|value| value.is_finite()).fold(0.0, f64::max)
        };
        let largest = most(|of| of.mid);
        let full = most(|of| of.high).clamp(largest, REACH * largest);
        (full > 0.0).then_some(BarScale { room, full })
    }

    /// Draws `████▓▓░░`: up to the lower end of the interval, up to the value, and up to the upper end.
    /// Without a visible interval the value is drawn with a resolution of an eighth of a column.
    pub(super) fn bar(&self, of: &Interval) -> String {
        let eighths = |value: f64| {
            let share = (value / self.full).clamp(0.0, 1.0);
            (share * self.room as f64 * 8.0).round() as usize
        };
        let (low, mid, high) = (eighths(of.low), eighths(of.mid).max(1), eighths(of.high));
        let column = |eighths: usize| (eighths + 4) / 8;
        let mut out = String::new();
        if column(low) < column(mid) {
            out.push_str(&"█".repeat(column(low)));
            out.push_str(&"▓".repeat(column(mid) - column(low)));
        } else {
            let parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
            out.push_str(&"█".repeat(mid / 8));
            out.push_str(parts[mid % 8]);
        }
        let taken = out.chars().count();
        out.push_str(&"░".repeat(column(high).saturating_sub(taken)));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(values: &[(f64, f64, f64)], room: usize) -> Vec<String> {
        let of =
            |(low, mid, high): &(f64, f64, f64)| Interval { low: *low, mid: *mid, high: *high };
        let values: Vec<Interval> = values.iter().map(of).collect();
        let scale = BarScale::new(&values, room).unwrap();
        values.iter().map(|of| scale.bar(of)).collect()
    }

    #[test]
    fn bars_are_as_long_as_they_say() {
        let point = |value: f64| (value, value, value);
        assert_eq!(
            bars(&[point(1.0), point(0.5), point(0.28), point(0.0)], 4),
            ["████", "██", "█▏", "▏"]
        );
        // Twice the value is twice the length, because bars begin at 0.
        assert_eq!(
            bars(&[point(100.0), point(99.0), point(50.0)], 8),
            ["████████", "███████▉", "████"]
        );
    }

    #[test]
    fn intervals_are_at_their_end() {
        assert_eq!(bars(&[(6.0, 8.0, 10.0), (2.0, 3.0, 4.0)], 10), ["██████▓▓░░", "██▓░"]);
        // A wide interval is cut and leaves room for the bar.
        assert_eq!(bars(&[(0.1, 4.0, 900.0), (2.0, 2.0, 2.0)], 6), ["▓▓▓▓░░", "██"]);
        assert!(BarScale::new(&[], 4).is_none());
        assert!(BarScale::new(&[Interval { low: 0.0, mid: 0.0, high: 0.0 }], 4).is_none());
    }
}
