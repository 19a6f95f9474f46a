//! Bars of characters: as long as their value is large, from 0, with the interval at their end.

use crate::analysis::Interval;

/// Beyond so many times the largest value no interval is drawn: one that is wide would leave no room
/// for the bars.
const REACH: f64 = 1.5;

/// How much of a value one column is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Columns of the longest bar with its interval.
    room: usize,
    /// What that many columns are.
    full: f64,
}

impl Scale {
    /// The scale on which all of these have room. `None` where there is nothing above 0.
    pub(super) fn new(values: &[Interval], room: usize) -> Option<Scale> {
        let most = |of: fn(&Interval) -> f64| {
            values.iter().map(of).filter(|value| value.is_finite()).fold(0.0, f64::max)
        };
        let largest = most(|of| of.mid);
        let full = most(|of| of.high).clamp(largest, REACH * largest);
        (full > 0.0).then_some(Scale { room, full })
    }

    /// `████▓▓░░`: solid up to the lower end of the interval, then up to the value, then up to the upper
    /// end. Where the interval is not seen, the value is drawn to an eighth of a column.
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
        let scale = Scale::new(&values, room).unwrap();
        values.iter().map(|of| scale.bar(of)).collect()
    }

    #[test]
    fn bars_are_as_long_as_they_say() {
        let point = |value: f64| (value, value, value);
        assert_eq!(
            bars(&[point(1.0), point(0.5), point(0.28), point(0.0)], 4),
            ["████", "██", "█▏", "▏"]
        );
        // Twice the value is twice the length, whatever the smallest is: bars begin at 0.
        assert_eq!(
            bars(&[point(100.0), point(99.0), point(50.0)], 8),
            ["████████", "███████▉", "████"]
        );
    }

    #[test]
    fn intervals_are_at_their_end() {
        assert_eq!(bars(&[(6.0, 8.0, 10.0), (2.0, 3.0, 4.0)], 10), ["██████▓▓░░", "██▓░"]);
        // A wide one is cut, and leaves the bar its room.
        assert_eq!(bars(&[(0.1, 4.0, 900.0), (2.0, 2.0, 2.0)], 6), ["▓▓▓▓░░", "██"]);
        assert!(Scale::new(&[], 4).is_none());
        assert!(Scale::new(&[Interval { low: 0.0, mid: 0.0, high: 0.0 }], 4).is_none());
    }
}
