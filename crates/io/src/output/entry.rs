//! An entry of the result: one clone of a job, or with `group_reporting` all
//! clones of a group as one; and the groups themselves.

use crate::job::report_group;
use crate::stats::{Histogram, Series};
use crate::steady::{Steadiness, Steady};
use crate::{Job, Outcome};
use std::collections::BTreeMap;

/// Clones that are reported together.
#[derive(Debug)]
pub struct Part<'a> {
    /// The first one's job.
    pub job: &'a Job,
    /// The number of its group, from 0.
    pub group: usize,
    /// Measurements of each of them.
    pub clones: Vec<&'a Outcome>,
}

impl Part<'_> {
    /// The requested steady state, and the measured one.
    pub fn steady(&self) -> Option<(Steady, &Steadiness)> {
        self.job.steady.zip(self.clones.first()?.steady.as_ref())
    }
}

/// Sorts outcomes into parts.
pub fn parts<'a>(jobs: &'a [Job], outcomes: &'a [Outcome]) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
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
                None => parts.push(Part { job, group, clones: vec![outcome] }),
            }
        }
    }
    parts
}

/// A rate over time, of one clone or of several together. Those of several are added, as fio does:
/// least, most, mean and squares each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
    /// Values.
    pub samples: u64,
}

impl Rate {
    fn of(series: &Series) -> Rate {
        let samples = series.samples() as u64;
        Rate {
            min: series.min(),
            max: series.max(),
            mean: series.mean(),
            squares: series.deviation().powi(2) * samples.saturating_sub(1) as f64,
            samples,
        }
    }

    fn add(&mut self, other: Rate) {
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
pub struct Way {
    /// Blocks.
    pub ios: u64,
    /// Bytes.
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
    pub bandwidth: Rate,
    /// Blocks a second.
    pub iops: Rate,
    /// Latencies by the number of the I/O priority.
    pub by_priority: BTreeMap<u16, Histogram>,
}

impl Way {
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
pub struct Sum {
    /// Reads, writes and trims.
    pub ways: [Way; 3],
    /// Everything else: times, counts, depths, the first error. Its own sides are empty.
    pub whole: Outcome,
}

impl Sum {
    /// A time of CPUs as a share of the time of all clones.
    pub fn cpu_percent(&self, ns: u64) -> f64 {
        let all_ns = self.whole.runtime_ns;
        if all_ns == 0 { 0.0 } else { ns as f64 * 100.0 / all_ns as f64 }
    }
}

impl Part<'_> {
    /// Adds its clones up.
    pub fn sum(&self) -> Sum {
        let mut sum = Sum::default();
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
                way.bandwidth.add(Rate::of(&side.bandwidth));
                way.iops.add(Rate::of(&side.iops));
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
pub struct GroupWay {
    /// Bytes of all parts.
    pub bytes: u64,
    /// Shortest and longest time of a part, nanoseconds.
    pub runtime_ns: (u64, u64),
    /// Slowest and fastest part, bytes a second.
    pub part_bytes_per_s: (f64, f64),
}

impl GroupWay {
    /// Bytes a second of all parts: over the longest time.
    pub fn bytes_per_s(&self) -> f64 {
        per_s(self.bytes, self.runtime_ns.1)
    }
}

/// The groups, reads, writes and trims each.
pub fn groups(parts: &[Part<'_>]) -> Vec<[GroupWay; 3]> {
    let count = parts.last().map_or(0, |last| last.group + 1);
    let mut groups = vec![[GroupWay::default(); 3]; count];
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
