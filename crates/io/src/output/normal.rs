//! fio's human-readable output in its layout: the start, then each job, groups, disks.

use super::entry::{GroupWay, Part, Rate, Sum, Way, groups, parts};
use super::shares::{self, CALLS, LEVELS, LONG, SHORT};
use super::{Facts, number};
use crate::job::{Ioprio, report_group};
use crate::stats::Histogram;
use crate::steady::Measure;
use crate::{Job, Outcome};
use std::fmt::Write as _;

/// Characters of a line of percentiles, and of each of them besides its number.
const PERCENTILES_WIDTH: usize = 73;
const PERCENTILE_WIDTH: usize = 12;
/// Shares of latencies on a line.
const SHARES_A_LINE: usize = 5;

/// Text before the run begins.
pub fn head(jobs: &[Job], program: &str) -> String {
    let mut out = String::new();
    for (at, job) in jobs.iter().enumerate() {
        let group = report_group(jobs, at);
        let size = |bytes: u64| number::binary(bytes as f64);
        let range = |side: usize| match &job.sizes[side] {
            Some(sizes) => format!("{}-{}", size(sizes.least()), size(sizes.largest())),
            None => format!("{0}-{0}", size(job.block_bytes[side])),
        };
        let [read, write] = [range(0), range(1)];
        let _ = writeln!(
            out,
            "{}: (g={group}): rw={}, bs=(R) {read}, (W) {write}, ioengine={}, \
             iodepth={}",
            job.name,
            job.rw_name(),
            job.engine.name(),
            job.depth
        );
        if job.clones > 1 {
            out.push_str("...\n");
        }
    }
    let threads: u64 = jobs.iter().map(|job| u64::from(job.clones)).sum();
    let plural = if threads == 1 { "" } else { "s" };
    let _ = writeln!(out, "{program}\nStarting {threads} thread{plural}");
    out
}

/// The result.
pub fn normal(jobs: &[Job], outcomes: &[Outcome], facts: &Facts) -> String {
    let parts = parts(jobs, outcomes);
    let groups = groups(&parts);
    let mut out = String::new();
    for part in &parts {
        let group = groups.get(part.group).copied().unwrap_or_default();
        one(part, &group, facts, &mut out);
    }
    for (at, group) in groups.iter().enumerate() {
        let _ = writeln!(out, "\nRun status group {at} (all jobs):");
        for (name, way) in ["   READ", "  WRITE", "   TRIM"].into_iter().zip(group) {
            status(name, way, &mut out);
        }
    }
    if !facts.disks.is_empty() {
        out.push_str("\nDisk stats (read/write):\n");
    }
    for disk in &facts.disks {
        let pair = |[read, write]: [u64; 2]| format!("{read}/{write}");
        let counts = &disk.counts;
        let _ = writeln!(
            out,
            "  {}: ios={}, merge={}, ticks={}, in_queue={}, util={:3.2}%",
            disk.name,
            pair(counts.ios),
            pair(counts.merges),
            pair(counts.ticks_ms),
            counts.queue_ms,
            disk.util_percent
        );
    }
    if !facts.warnings.is_empty() {
        out.push_str("\nWarnings:\n");
    }
    for warning in &facts.warnings {
        let _ = writeln!(out, "  {warning}");
    }
    out
}

fn one(part: &Part<'_>, group: &[GroupWay; 3], facts: &Facts, out: &mut String) {
    let sum = part.sum();
    let (job, whole) = (part.job, &sum.whole);
    let error = match &whole.error {
        None => " 0".to_owned(),
        Some((errno, why)) => format!("{errno:2} ({why})"),
    };
    let _ = writeln!(
        out,
        "\n{}: (groupid={}, jobs={}): err={error}: pid={}: {}",
        job.name,
        part.group,
        part.clones.len(),
        facts.pid,
        facts.at_text
    );
    let names = ["read", "write", "trim"];
    for ((way, name), of_group) in sum.ways.iter().zip(names).zip(group) {
        if way.ios > 0 {
            direction(job, name, way, of_group, out);
        }
    }
    latencies(&sum, out);
    if whole.sync.count() > 0 {
        out.push_str("  fsync/fdatasync/sync_file_range:\n");
        latency("sync", &whole.sync, out);
        percentiles("sync", &whole.sync, &job.percentiles, out);
    }
    if let Some((of, found)) = part.steady() {
        let _ = writeln!(
            out,
            "  steadystate  : attained={}, {}={:.2}, {}={:.3}{}",
            if found.attained { "yes" } else { "no" },
            match of.criterion.of {
                Measure::Blocks => "iops mean",
                Measure::Bytes => "bw mean (B/s)",
                Measure::Latency => "lat mean (ns)",
            },
            found.mean,
            if of.criterion.slope { "slope" } else { "mean dev" },
            found.value,
            if of.criterion.percent { "%" } else { "" }
        );
    }
    let _ = writeln!(
        out,
        "  cpu          : usr={:3.2}%, sys={:3.2}%, ctx={}, majf={}, minf={}",
        sum.cpu_percent(whole.user_ns),
        sum.cpu_percent(whole.sys_ns),
        whole.switches,
        whole.faults[0],
        whole.faults[1]
    );
    let [level, submit, complete] = shares::depths(&whole.depths);
    for (name, columns, shares) in [
        ("  IO depths    ", LEVELS, level),
        ("     submit    ", CALLS, submit),
        ("     complete  ", CALLS, complete),
    ] {
        let words =
            columns.iter().zip(shares).map(|(column, share)| format!("{column}={share:.1}%"));
        let _ = writeln!(out, "{name}: {}", words.collect::<Vec<_>>().join(", "));
    }
    let [read, write, trim] = sum.ways.each_ref();
    let _ = writeln!(
        out,
        "     issued rwts: total={},{},{},{} short={},{},{},0 dropped=0,0,0,0",
        read.ios,
        write.ios,
        trim.ios,
        whole.sync.count(),
        read.short,
        write.short,
        trim.short
    );
    if whole.tolerated.0 > 0 {
        let (count, first) = whole.tolerated;
        let _ = writeln!(out, "     errors    : total={count}, first_error={first}");
    }
    let _ = writeln!(
        out,
        "     latency   : target={}, window={}, percentile={:.2}%, depth={}",
        job.aim.map_or(0, |aim| aim.latency.as_nanos()),
        job.aim.map_or(0, |aim| aim.window.as_nanos()),
        job.aim.map_or(100.0, |aim| aim.percentile),
        whole.depth_found.unwrap_or(job.depth)
    );
    if whole.verify_errors > 0 {
        let _ = writeln!(out, "     verify    : {} blocks were wrong", whole.verify_errors);
    }
}

fn direction(job: &Job, name: &str, way: &Way, group: &GroupWay, out: &mut String) {
    let rate = way.bytes_per_s();
    let _ = writeln!(
        out,
        "  {name}: IOPS={}, BW={}/s ({}/s)({}/{}msec)",
        number::count(way.ios_per_s()),
        number::binary(rate),
        number::decimal(rate),
        number::binary(way.bytes as f64),
        way.runtime_ms()
    );
    latency("slat", &way.slat, out);
    latency("clat", &way.clat, out);
    latency(" lat", &way.lat, out);
    if job.clat_percentiles {
        percentiles("clat", &way.clat, &job.percentiles, out);
    }
    if job.lat_percentiles {
        percentiles("lat", &way.lat, &job.percentiles, out);
    }
    if way.by_priority.len() > 1 {
        let kind = if job.lat_percentiles { "lat" } else { "clat" };
        for (value, of) in &way.by_priority {
            let priority = Ioprio::of(*value);
            let name = format!("{kind} {}/{}", priority.class_name(), priority.level);
            latency(&name, of, out);
        }
    }
    bandwidth(&way.bandwidth, group, out);
    if way.iops.samples > 0 {
        let Rate { min, max, mean, samples, .. } = way.iops;
        let _ = writeln!(
            out,
            "   iops        : min={min:5.0}, max={max:5.0}, avg={mean:5.2}, stdev={:5.2}, \
             samples={samples}",
            way.iops.deviation()
        );
    }
}

fn bandwidth(rate: &Rate, group: &GroupWay, out: &mut String) {
    if rate.samples == 0 {
        return;
    }
    let share = (rate.mean * 100.0 / group.bytes_per_s()).min(100.0);
    let (unit, bytes) = match rate.mean / 1024.0 > 1024.0 * 1024.0 {
        true => ("MiB", 1024.0 * 1024.0),
        false => ("KiB", 1024.0),
    };
    let _ = writeln!(
        out,
        "   bw (  {unit}/s): min={:5.0}, max={:5.0}, per={share:3.2}%, avg={:5.2}, stdev={:5.2}, \
         samples={}",
        rate.min / bytes,
        rate.max / bytes,
        rate.mean / bytes,
        rate.deviation() / bytes,
        rate.samples
    );
}

/// The unit in which fio shows times, by minimum and maximum, and its divisor.
fn unit(min_ns: u64, max_ns: u64) -> (&'static str, u64) {
    match (min_ns, max_ns) {
        (2_000_001.., 100_000_000..) => ("msec", 1_000_000),
        (2_001.., 100_000..) => ("usec", 1_000),
        _ => ("nsec", 1),
    }
}

fn latency(name: &str, of: &Histogram, out: &mut String) {
    if of.count() == 0 {
        return;
    }
    let (unit, scale) = match of.deviation_ns() {
        deviation if deviation > 1e6 => unit(of.min_ns(), of.max_ns()),
        // Too even for milliseconds.
        deviation if deviation > 1e3 => unit(of.min_ns().min(2_000_000), of.max_ns()),
        _ => ("nsec", 1),
    };
    let scaled = |number: f64| number / scale as f64;
    let _ = writeln!(
        out,
        "    {name} ({unit}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        number::time(of.min_ns() / scale),
        number::time(of.max_ns() / scale),
        scaled(of.mean_ns()),
        scaled(of.deviation_ns())
    );
}

fn percentiles(name: &str, of: &Histogram, list: &[f64], out: &mut String) {
    if of.count() == 0 || list.is_empty() {
        return;
    }
    let values: Vec<u64> = list.iter().map(|percent| of.percentile(*percent)).collect();
    let (min, max) = (values.iter().min().copied(), values.iter().max().copied());
    let (unit, scale) = unit(min.unwrap_or(0), max.unwrap_or(0));
    let _ = writeln!(out, "    {name} percentiles ({unit}):");
    let width = (max.unwrap_or(0) / scale).to_string().len().max(5);
    let words: Vec<String> = list
        .iter()
        .zip(&values)
        .map(|(percent, value)| format!("{percent:5.2}th=[{:width$}]", value / scale))
        .collect();
    let lines: Vec<String> = words
        .chunks((PERCENTILES_WIDTH / (width + PERCENTILE_WIDTH)).max(1))
        .map(|line| format!("     | {}", line.join(", ")))
        .collect();
    let _ = writeln!(out, "{}", lines.join(",\n"));
}

fn latencies(sum: &Sum, out: &mut String) {
    let found = shares::latencies(sum.ways.each_ref().map(|way| &way.clat));
    for (unit, columns, shares) in [
        ("nsec", &SHORT[..], &found.ns[..]),
        ("usec", &SHORT[..], &found.us[..]),
        ("msec", &LONG[..], &found.ms[..]),
    ] {
        let there = columns.iter().zip(shares).filter(|(_, share)| **share > 0.0);
        let words: Vec<String> =
            there.map(|(column, share)| format!("{column}={share:3.2}%")).collect();
        for line in words.chunks(SHARES_A_LINE) {
            let _ = writeln!(out, "  lat ({unit})   : {}", line.join(", "));
        }
    }
}

fn status(name: &str, way: &GroupWay, out: &mut String) {
    if way.runtime_ns.1 == 0 {
        return;
    }
    let all = way.bytes_per_s();
    let (slowest, fastest) = way.part_bytes_per_s;
    let ms = |ns: u64| (ns / 1_000_000).max(1);
    let _ = writeln!(
        out,
        "{name}: bw={}/s ({}/s), {}/s-{}/s ({}/s-{}/s), io={} ({}), run={}-{}msec",
        number::binary(all),
        number::decimal(all),
        number::binary(slowest),
        number::binary(fastest),
        number::decimal(slowest),
        number::decimal(fastest),
        number::binary(way.bytes as f64),
        number::decimal(way.bytes as f64),
        ms(way.runtime_ns.0),
        ms(way.runtime_ns.1)
    );
}
