//! Shares in percent, in the tables that fio has: how deep, how many at once, how long.

use crate::Depths;
use crate::stats::Histogram;

/// Columns of `iodepth_level`.
pub const LEVELS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// Columns of `iodepth_submit` and `iodepth_complete`.
pub const CALLS: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
/// Columns of `latency_ns` and `latency_us`: each counts what took less, and not less than the one
/// before.
pub const SHORT: [&str; 10] = ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000"];
/// Columns of `latency_ms`.
pub const LONG: [&str; 12] =
    ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];
/// The ends of these columns.
const ENDS: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

/// Depths below this share, but above zero, are shown as this share, as fio does.
const DEPTH_PERCENT_MIN: f64 = 0.1;
/// Likewise: latencies.
const LATENCY_PERCENT_MIN: f64 = 0.01;

fn percent(count: u64, total: u64, least: f64) -> f64 {
    match count {
        0 => 0.0,
        _ => (count as f64 * 100.0 / total.max(1) as f64).max(least),
    }
}

/// The three tables of depths: in flight, submitted and reaped at once.
pub fn depths(depths: &Depths) -> [[f64; 7]; 3] {
    [depths.level, depths.submit, depths.complete].map(|counts| {
        let total = counts.iter().sum();
        counts.map(|count| percent(count, total, DEPTH_PERCENT_MIN))
    })
}

/// Shares of latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latencies {
    /// Below a microsecond.
    pub ns: [f64; 10],
    /// Below a millisecond.
    pub us: [f64; 10],
    /// The rest.
    pub ms: [f64; 12],
}

/// Shares of what all histograms hold.
pub fn latencies<const N: usize>(histograms: [&Histogram; N]) -> Latencies {
    let (mut ns, mut us, mut ms) = ([0; 10], [0; 10], [0; 12]);
    let mut total = 0;
    for (value_ns, count) in histograms.into_iter().flat_map(Histogram::buckets) {
        total += count;
        match value_ns {
            0..1_000 => ns[column(value_ns)] += count,
            1_000..1_000_000 => us[column(value_ns / 1_000)] += count,
            _ => ms[column(value_ns / 1_000_000)] += count,
        }
    }
    let share = |count| percent(count, total, LATENCY_PERCENT_MIN);
    Latencies { ns: ns.map(share), us: us.map(share), ms: ms.map(share) }
}

fn column(value: u64) -> usize {
    ENDS.iter().position(|end| value < *end).unwrap_or(ENDS.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_sorted_into_columns() {
        let (mut reads, mut writes) = (Histogram::default(), Histogram::default());
        for _ in 0..50 {
            reads.record(1);
            writes.record(300_000);
        }
        reads.record(3_000_000_000);
        let found = latencies([&reads, &writes]);
        assert!((found.ns[0] - 50.0 * 100.0 / 101.0).abs() < 1e-9, "{found:?}");
        assert!((found.us[7] - 50.0 * 100.0 / 101.0).abs() < 1e-9, "{found:?}");
        assert!((found.ms[11] - 100.0 / 101.0).abs() < 1e-9, "{found:?}");
        let all = found.ns.iter().chain(&found.us).chain(&found.ms).sum::<f64>();
        assert!((all - 100.0).abs() < 1e-9, "{all}");
        assert_eq!(latencies([&Histogram::default(), &Histogram::default()]), Latencies::default());
    }

    #[test]
    fn little_is_more_than_nothing() {
        let counts = Depths { level: [1_000_000, 1, 0, 0, 0, 0, 0], ..Depths::default() };
        let [level, submit, _] = depths(&counts);
        assert!(level[0] > 99.9 && level[1] == 0.1 && level[2] == 0.0, "{level:?}");
        assert_eq!(submit, [0.0; 7]);
    }
}
