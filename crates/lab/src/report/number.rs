//! Formats numbers with three significant digits and the unit of the metric.

use crate::analysis::Interval;
use crate::results::hyperfine::TimeUnit;
use hakobu_core::number;

/// Display unit of a metric, and its divisor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MetricUnit {
    /// `s`, `IOPS`; empty for counts.
    pub(super) name: &'static str,
    per: f64,
}

impl MetricUnit {
    /// Unit of a metric, from the suffix of its name.
    pub(super) fn of(metric: &str) -> MetricUnit {
        let unit = |name, per| MetricUnit { name, per };
        match metric {
            _ if metric.ends_with("_bytes_per_s") => unit("MB/s", 1e6),
            _ if metric.ends_with("iops") => unit("IOPS", 1.0),
            _ if metric.ends_with("_per_s") => unit("per s", 1.0),
            _ if metric.ends_with("_bytes") => unit("MB", 1e6),
            _ if metric.ends_with("_percent") => unit("%", 1.0),
            _ if metric.ends_with("_ns") => unit("µs", 1e3),
            _ if metric.ends_with("_us") => unit("µs", 1.0),
            _ if metric.ends_with("_ms") => unit("ms", 1.0),
            _ if metric.ends_with("_s") => unit("s", 1.0),
            _ => unit("", 1.0),
        }
    }

    /// Unit of times, for a metric in seconds.
    pub(super) fn of_time(time: TimeUnit) -> MetricUnit {
        MetricUnit { name: time.sign(), per: 1.0 / time.of_seconds(1.0) }
    }

    /// Converts a value to this unit.
    pub(super) fn scaled(&self, value: f64) -> f64 {
        value / self.per
    }

    /// Formats a value with the unit.
    pub(super) fn text(&self, value: f64) -> String {
        let number = digits(self.scaled(value));
        if self.name.is_empty() { number } else { format!("{number} {}", self.name) }
    }

    /// Formats an interval without the unit: `17.2 [16.9, 17.5]`.
    pub(super) fn bare(&self, of: &Interval) -> String {
        ratio(&of.map(|value| self.scaled(value)))
    }

    /// Formats an interval: `17.2 s [16.9, 17.5]`; a single value has none.
    pub(super) fn interval(&self, of: &Interval) -> String {
        if of.is_point() {
            return self.text(of.mid);
        }
        format!("{} {}", self.text(of.mid), range(self.scaled(of.low), self.scaled(of.high)))
    }
}

/// Formats a range: `[16.9, 17.5]`.
pub(super) fn range(low: f64, high: f64) -> String {
    format!("[{}, {}]", digits(low), digits(high))
}

/// Formats a ratio with its interval: `1.25 [1.21, 1.30]`.
pub(super) fn ratio(of: &Interval) -> String {
    if of.is_point() {
        return digits(of.mid);
    }
    format!("{} {}", digits(of.mid), range(of.low, of.high))
}

/// Formats a sensitivity with its interval, to a hundredth: `0.64 [0.61, 0.66]`.
pub(super) fn sensitivity(of: &Interval) -> String {
    // Adding zero turns -0 into 0.
    let [low, mid, high] = [of.low, of.mid, of.high].map(|of| (100.0 * of).round() / 100.0 + 0.0);
    let text = |of: f64| format!("{of:.2}").replace('-', "−");
    match low >= high {
        true => text(mid),
        false => format!("{} [{}, {}]", text(mid), text(low), text(high)),
    }
}

/// Rounds to some significant digits.
pub(super) fn significant(number: f64, digits: i32) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return 0.0;
    }
    let power = 10f64.powi(digits - 1 - number.abs().log10().floor().clamp(-300.0, 300.0) as i32);
    let rounded = (number * power).round() / power;
    if rounded.is_finite() { rounded } else { number }
}

/// Three significant digits; whole numbers in full, with commas between thousands.
pub(super) fn digits(number: f64) -> String {
    if !number.is_finite() {
        return "–".to_owned();
    }
    if number == 0.0 {
        return "0".to_owned();
    }
    let size = number.abs();
    let before = size.log10().floor();
    if !(-6.0..15.0).contains(&before) {
        return format!("{number:.2e}");
    }
    // Round first: 9.996 becomes 10.0 and has one decimal less.
    let places = (2.0 - before).clamp(0.0, 8.0) as usize;
    let text = format!("{number:.places$}");
    let rounded = text.parse::<f64>().unwrap_or(number).abs();
    let places = (2.0 - rounded.log10().floor()).clamp(0.0, 8.0) as usize;
    let is_whole = (number - number.round()).abs() < size * 1e-9;
    let places = if is_whole { 0 } else { places };
    group_thousands(&format!("{number:.places$}"))
}

fn group_thousands(text: &str) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("−", rest));
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(w, f)| (w, Some(f)));
    let mut out = format!("{sign}{}", number::grouped_digits(whole));
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Formats the smallest difference that noise does not hide: `36%`, and of more than the double `2.1×`.
pub(super) fn smallest_difference(noise: f64) -> String {
    match noise {
        1.0.. => format!("{}×", digits(significant(1.0 + noise, 2))),
        _ => percent(noise),
    }
}

/// Formats bytes with a 1000-based prefix.
pub(super) fn bytes(count: f64) -> String {
    let steps = [("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)];
    let fits = steps.iter().rev().find(|(_, per)| count >= *per).unwrap_or(&steps[0]);
    format!("{} {}", digits(count / fits.1), fits.0)
}

/// Formats a share in percent: `98%`, `0.7%`, `1,200%`.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        return "–".to_owned();
    }
    let is_small = percent.abs() < 9.95 && (percent - percent.round()).abs() >= 0.05;
    let places = usize::from(is_small);
    format!("{}%", group_thousands(&format!("{percent:.places$}")))
}

/// One or two significant digits, for the ends of a wide interval: `6`, `1,200`.
pub(super) fn rough(number: f64) -> String {
    if !(number.is_finite() && number > 0.0) {
        return digits(number);
    }
    // Of 1.4 one digit would say that there is no difference.
    let keep = if (3.0..10.0).contains(&number) || number < 1.0 { 1.0 } else { 2.0 };
    let power = number.log10().floor() + 1.0 - keep;
    let rounded = (number / 10f64.powf(power)).round() * 10f64.powf(power);
    let places = (-power).clamp(0.0, 9.0) as usize;
    group_thousands(&format!("{rounded:.places$}"))
}

/// Formats the value of a setting as it was typed: `0.05`, `16`, `1,048,576`.
pub(super) fn setting(number: f64) -> String {
    if number.fract() == 0.0 || !number.is_finite() { digits(number) } else { number.to_string() }
}

/// Formats a ratio with a resolution of one percent: `1.04`, `3.00`, `17.3`.
pub(super) fn times(number: f64) -> String {
    match number {
        9.995.. => digits(number),
        _ if !number.is_finite() => digits(number),
        _ => format!("{number:.2}"),
    }
}

/// `2.34 s`, `234 ms`, `12.3 min`.
pub(super) fn seconds(value: f64) -> String {
    match value.abs() {
        600.0.. => format!("{} min", digits(value / 60.0)),
        0.9995.. => format!("{} s", digits(value)),
        0.000_999_5.. => format!("{} ms", digits(value * 1e3)),
        0.0 => "0 s".to_owned(),
        _ => format!("{} µs", digits(value * 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_count() {
        for (number, text) in [
            (17.16, "17.2"),
            (0.0, "0"),
            (9.996, "10.0"),
            (0.000_421_7, "0.000422"),
            (114.78, "115"),
            (2.0, "2"),
            (16.0, "16"),
            (1234.0, "1,234"),
            (206_250.4, "206,250"),
            (-1.234, "−1.23"),
            (f64::NAN, "–"),
            (3.2e-9, "3.20e-9"),
        ] {
            assert_eq!(digits(number), text, "{number}");
        }
        let three = |number| digits(significant(number, 3));
        assert_eq!([14_518.0, 0.0, 103.4].map(three), ["14,500", "0", "103"]);
        assert_eq!(
            [0.0, 12.3456, 0.000_123_456, 98765.4].map(|number| significant(number, 4)),
            [0.0, 12.35, 0.000_123_5, 98770.0]
        );
        let of = Interval { low: -0.0639, mid: -0.002, high: 0.0448 };
        assert_eq!(sensitivity(&of), "0.00 [−0.06, 0.04]");
        assert_eq!(bytes(1536.0), "1.54 kB");
        assert_eq!(bytes(0.0), "0 B");
        assert_eq!([0.0123, 0.98, 8.333, 0.05].map(percent), ["1.2%", "98%", "833%", "5%"]);
        assert_eq!([5.72, 1236.0, 141.0, 0.27].map(rough), ["6", "1,200", "140", "0.3"]);
        assert_eq!([1.4, 1.0, 2.0].map(rough), ["1.4", "1.0", "2.0"]);
        assert_eq!([0.5, 3.0, 1.749, 17.34].map(times), ["0.50", "3.00", "1.75", "17.3"]);
        assert_eq!([0.1, 2.5, 738.0].map(seconds), ["100 ms", "2.50 s", "12.3 min"]);
    }

    #[test]
    fn units_follow_names() {
        let of = Interval { low: 1.0, mid: 2.0, high: 4.0 };
        assert_eq!(MetricUnit::of("wall_s").interval(&of), "2 s [1, 4]");
        assert_eq!(MetricUnit::of("clat_p99_ns").text(1500.0), "1.50 µs");
        assert_eq!(MetricUnit::of("iops").text(38_237.4), "38,237 IOPS");
        assert_eq!(MetricUnit::of("bw_bytes_per_s").text(2.5e8), "250 MB/s");
        assert_eq!(MetricUnit::of("files").text(3.0), "3");
    }
}
