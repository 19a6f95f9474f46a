//! Results in fio's words and fio's JSON (fio(1), "INTERPRETING THE OUTPUT", "JSON
//! OUTPUT"), log files among them. Pure: texts are made here and written by the caller.

pub mod disks;
pub mod json;
pub mod live;
pub mod logs;
pub mod normal;
#[cfg(test)]
mod tests;

use crate::job::{Job, report_group};
use crate::outcome::{DepthCounts, Outcome};
use crate::stats::{Histogram, Series};
use crate::steady::{SteadyResult, SteadyState};
use disks::DiskUse;
use hakobu_core::unit::Machine;
use std::collections::BTreeMap;
use std::time::Duration;

/// Texts besides the measurements.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The program and its version, `hakobu-1.2.3`; it stands where fio's does.
    pub program: String,
    /// End of the run: milliseconds since 1970.
    pub at_ms: u64,
    /// The same as ctime(3) has it: `Fri Jun 14 03:16:08 2024`.
    pub at_text: String,
    /// From the start to the end.
    pub elapsed: Duration,
    /// The process.
    pub pid: u32,
    /// Options of the global section, as they were given.
    pub globals: Vec<(String, String)>,
    /// Warnings for readers of the result.
    pub warnings: Vec<String>,
    pub machine: Machine,
    /// Work of disks meanwhile.
    pub disks: Vec<DiskUse>,
    /// Somebody stopped it before its end.
    pub stopped: bool,
}

/// Clones that are reported together.
#[derive(Debug)]
pub struct ReportEntry<'a> {
    /// The first one's job.
    pub job: &'a Job,
    /// The number of its group, from 0.
    pub group: usize,
    /// Measurements of each of them.
    pub clones: Vec<&'a Outcome>,
}

impl ReportEntry<'_> {
    /// The requested steady state, and the measured one.
    pub fn steady(&self) -> Option<(SteadyState, &SteadyResult)> {
        self.job.steady.zip(self.clones.first()?.steady.as_ref())
    }
}

/// Sorts outcomes into parts.
pub fn parts<'a>(jobs: &'a [Job], outcomes: &'a [Outcome]) -> Vec<ReportEntry<'a>> {
    let mut parts: Vec<ReportEntry<'a>> = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let group = report_group(jobs, number);
        let mut clones: Vec<&Outcome> = outcomes.iter().filter(|one| one.job == number).collect();
        clones.sort_by_key(|one| one.clone);
        for outcome in clones {
            let together = parts.last_mut().filter(|last| {
                job.group_reporting && last.job.group_reporting && last.group == group
            });
            match together {
                Some(last) => last.clones.push(outcome),
                None => parts.push(ReportEntry { job, group, clones: vec![outcome] }),
            }
        }
    }
    parts
}

/// A rate over time, of one clone or of several together. Those of several are added, as fio does:
/// least, most, mean and squares each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSum {
    /// The least.
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
    pub samples: u64,
}

impl RateSum {
    fn of(series: &Series) -> RateSum {
        let samples = series.samples() as u64;
        RateSum {
            min: series.min(),
            max: series.max(),
            mean: series.mean(),
            squares: series.deviation().powi(2) * samples.saturating_sub(1) as f64,
            samples,
        }
    }

    fn add(&mut self, other: RateSum) {
        self.min += other.min;
        self.max += other.max;
        self.mean += other.mean;
        self.squares += other.squares;
        self.samples += other.samples;
    }

    /// The standard deviation; 0 with fewer than two values.
    pub fn deviation(&self) -> f64 {
        match self.samples {
            0 | 1 => 0.0,
            samples => (self.squares / (samples - 1) as f64).sqrt(),
        }
    }
}

/// Reads, or writes, of a part.
#[derive(Debug, Default)]
pub struct DirectionSum {
    /// Blocks.
    pub ios: u64,
    pub bytes: u64,
    /// Blocks that went in part.
    pub short: u64,
    /// The longest time of a clone, nanoseconds; 0 where nothing went this way.
    pub runtime_ns: u64,
    /// Time to submit.
    pub slat: Histogram,
    /// From submission to completion.
    pub clat: Histogram,
    /// Both.
    pub lat: Histogram,
    /// Bytes a second.
    pub bandwidth: RateSum,
    /// Blocks a second.
    pub iops: RateSum,
    /// Latencies by the number of the I/O priority.
    pub by_priority: BTreeMap<u16, Histogram>,
}

impl DirectionSum {
    /// Whole milliseconds; at least one where anything went.
    pub fn runtime_ms(&self) -> u64 {
        if self.ios == 0 { 0 } else { (self.runtime_ns / 1_000_000).max(1) }
    }

    /// Bytes a second.
    pub fn bytes_per_s(&self) -> f64 {
        per_s(self.bytes, self.runtime_ns)
    }

    /// Blocks a second.
    pub fn ios_per_s(&self) -> f64 {
        per_s(self.ios, self.runtime_ns)
    }
}

fn per_s(count: u64, span_ns: u64) -> f64 {
    if span_ns == 0 { 0.0 } else { count as f64 * 1e9 / span_ns as f64 }
}

/// A part with its clones added up.
#[derive(Debug, Default)]
pub struct EntrySum {
    /// Reads, writes and trims.
    pub ways: [DirectionSum; 3],
    /// Everything else: times, counts, depths, the first error. Its own sides are empty.
    pub whole: Outcome,
}

impl EntrySum {
    /// A time of CPUs as a share of the time of all clones.
    pub fn cpu_percent(&self, ns: u64) -> f64 {
        let all_ns = self.whole.runtime_ns;
        if all_ns == 0 { 0.0 } else { ns as f64 * 100.0 / all_ns as f64 }
    }
}

impl ReportEntry<'_> {
    /// Adds its clones up.
    pub fn sum(&self) -> EntrySum {
        let mut sum = EntrySum::default();
        for outcome in &self.clones {
            for (at, side) in outcome.sides.iter().enumerate() {
                let way = &mut sum.ways[way_of(outcome, at)];
                way.ios += side.ios;
                way.bytes += side.bytes;
                way.short += side.short;
                if side.ios > 0 {
                    way.runtime_ns = way.runtime_ns.max(outcome.runtime_ns);
                }
                way.slat.merge(&side.slat);
                way.clat.merge(&side.clat);
                way.lat.merge(&side.lat);
                way.bandwidth.add(RateSum::of(&side.bandwidth));
                way.iops.add(RateSum::of(&side.iops));
                for (priority, latencies) in &side.by_priority {
                    way.by_priority.entry(*priority).or_default().merge(latencies);
                }
            }
            let whole = &mut sum.whole;
            whole.sync.merge(&outcome.sync);
            whole.runtime_ns += outcome.runtime_ns;
            whole.user_ns += outcome.user_ns;
            whole.sys_ns += outcome.sys_ns;
            whole.switches += outcome.switches;
            add(&mut whole.faults, &outcome.faults);
            add(&mut whole.depths.level, &outcome.depths.level);
            add(&mut whole.depths.submit, &outcome.depths.submit);
            add(&mut whole.depths.complete, &outcome.depths.complete);
            whole.verify_errors += outcome.verify_errors;
            if whole.tolerated.0 == 0 {
                whole.tolerated.1 = outcome.tolerated.1;
            }
            whole.tolerated.0 += outcome.tolerated.0;
            whole.depth_found = whole.depth_found.or(outcome.depth_found);
            if whole.error.is_none() {
                whole.error.clone_from(&outcome.error);
            }
        }
        sum
    }
}

/// The way that a side of an outcome is counted as: what a job of trims writes are trims.
fn way_of(outcome: &Outcome, side: usize) -> usize {
    if side == 1 && outcome.trims { 2 } else { side }
}

fn add<const N: usize>(all: &mut [u64; N], one: &[u64; N]) {
    for (all, one) in all.iter_mut().zip(one) {
        *all += one;
    }
}

/// One way of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupDirection {
    /// Bytes of all parts.
    pub bytes: u64,
    /// Shortest and longest time of a part, nanoseconds.
    pub runtime_ns: (u64, u64),
    /// Slowest and fastest part, bytes a second.
    pub part_bytes_per_s: (f64, f64),
}

impl GroupDirection {
    /// Bytes a second of all parts: over the longest time.
    pub fn bytes_per_s(&self) -> f64 {
        per_s(self.bytes, self.runtime_ns.1)
    }
}

/// The groups, reads, writes and trims each.
pub fn groups(parts: &[ReportEntry<'_>]) -> Vec<[GroupDirection; 3]> {
    let count = parts.last().map_or(0, |last| last.group + 1);
    let mut groups = vec![[GroupDirection::default(); 3]; count];
    for part in parts {
        for (at, way) in groups[part.group].iter_mut().enumerate() {
            let sides = part.clones.iter().flat_map(|one| {
                let of = move |side| way_of(one, side) == at && one.sides[side].ios > 0;
                (0..one.sides.len()).filter(move |side| of(*side)).map(move |side| (one, side))
            });
            let (mut bytes, mut span_ns) = (0, 0);
            for (one, side) in sides {
                bytes += one.sides[side].bytes;
                span_ns = span_ns.max(one.runtime_ns);
            }
            if span_ns == 0 {
                continue;
            }
            let rate = per_s(bytes, span_ns);
            let is_first = way.runtime_ns.1 == 0;
            let (shortest, slowest) = (way.runtime_ns.0, way.part_bytes_per_s.0);
            way.bytes += bytes;
            way.runtime_ns = (
                if is_first { span_ns } else { shortest.min(span_ns) },
                way.runtime_ns.1.max(span_ns),
            );
            way.part_bytes_per_s =
                (if is_first { rate } else { slowest.min(rate) }, way.part_bytes_per_s.1.max(rate));
        }
    }
    groups
}

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

fn share_percent(count: u64, total: u64, least: f64) -> f64 {
    match count {
        0 => 0.0,
        _ => (count as f64 * 100.0 / total.max(1) as f64).max(least),
    }
}

/// The three tables of depths: in flight, submitted and reaped at once.
pub fn depth_shares(depths: &DepthCounts) -> [[f64; 7]; 3] {
    [depths.level, depths.submit, depths.complete].map(|counts| {
        let total = counts.iter().sum();
        counts.map(|count| share_percent(count, total, DEPTH_PERCENT_MIN))
    })
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencyShares {
    /// Below a microsecond.
    pub ns: [f64; 10],
    /// Below a millisecond.
    pub us: [f64; 10],
    /// The rest.
    pub ms: [f64; 12],
}

/// Shares of what all histograms hold.
pub fn latency_shares<const N: usize>(histograms: [&Histogram; N]) -> LatencyShares {
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
    let share = |count| share_percent(count, total, LATENCY_PERCENT_MIN);
    LatencyShares { ns: ns.map(share), us: us.map(share), ms: ms.map(share) }
}

fn column(value: u64) -> usize {
    ENDS.iter().position(|end| value < *end).unwrap_or(ENDS.len())
}

#[cfg(test)]
mod share_tests {
    use super::*;

    #[test]
    fn latencies_are_sorted_into_columns() {
        let (mut reads, mut writes) = (Histogram::default(), Histogram::default());
        for _ in 0..50 {
            reads.record(1);
            writes.record(300_000);
        }
        reads.record(3_000_000_000);
        let found = latency_shares([&reads, &writes]);
        assert!((found.ns[0] - 50.0 * 100.0 / 101.0).abs() < 1e-9, "{found:?}");
        assert!((found.us[7] - 50.0 * 100.0 / 101.0).abs() < 1e-9, "{found:?}");
        assert!((found.ms[11] - 100.0 / 101.0).abs() < 1e-9, "{found:?}");
        let all = found.ns.iter().chain(&found.us).chain(&found.ms).sum::<f64>();
        assert!((all - 100.0).abs() < 1e-9, "{all}");
        assert_eq!(
            latency_shares([&Histogram::default(), &Histogram::default()]),
            LatencyShares::default()
        );
    }

    #[test]
    fn little_is_more_than_nothing() {
        let counts = DepthCounts { level: [1_000_000, 1, 0, 0, 0, 0, 0], ..DepthCounts::default() };
        let [level, submit, _] = depth_shares(&counts);
        assert!(level[0] > 99.9 && level[1] == 0.1 && level[2] == 0.0, "{level:?}");
        assert_eq!(submit, [0.0; 7]);
    }
}
