//! fio's human-readable output in its layout: the start, then each job, groups, disks.

use super::{
    CALLS, DirectionSum, EntrySum, Facts, GroupDirection, LEVELS, LONG, RateSum, ReportEntry,
    SHORT, depth_shares, groups, latency_shares, parts,
};
use crate::job::{Ioprio, Job, report_group};
use crate::outcome::Outcome;
use crate::stats::Histogram;
use crate::steady::SteadyMetric;
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
        let size = |bytes: u64| binary_text(bytes as f64);
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

fn one(part: &ReportEntry<'_>, group: &[GroupDirection; 3], facts: &Facts, out: &mut String) {
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
                SteadyMetric::Blocks => "iops mean",
                SteadyMetric::Bytes => "bw mean (B/s)",
                SteadyMetric::Latency => "lat mean (ns)",
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
    let [level, submit, complete] = depth_shares(&whole.depths);
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

fn direction(job: &Job, name: &str, way: &DirectionSum, group: &GroupDirection, out: &mut String) {
    let rate = way.bytes_per_s();
    let _ = writeln!(
        out,
        "  {name}: IOPS={}, BW={}/s ({}/s)({}/{}msec)",
        count_text(way.ios_per_s()),
        binary_text(rate),
        decimal_text(rate),
        binary_text(way.bytes as f64),
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
        let RateSum { min, max, mean, samples, .. } = way.iops;
        let _ = writeln!(
            out,
            "   iops        : min={min:5.0}, max={max:5.0}, avg={mean:5.2}, stdev={:5.2}, \
             samples={samples}",
            way.iops.deviation()
        );
    }
}

fn bandwidth(rate: &RateSum, group: &GroupDirection, out: &mut String) {
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
        time_text(of.min_ns() / scale),
        time_text(of.max_ns() / scale),
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

fn latencies(sum: &EntrySum, out: &mut String) {
    let found = latency_shares(sum.ways.each_ref().map(|way| &way.clat));
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

fn status(name: &str, way: &GroupDirection, out: &mut String) {
    if way.runtime_ns.1 == 0 {
        return;
    }
    let all = way.bytes_per_s();
    let (slowest, fastest) = way.part_bytes_per_s;
    let ms = |ns: u64| (ns / 1_000_000).max(1);
    let _ = writeln!(
        out,
        "{name}: bw={}/s ({}/s), {}/s-{}/s ({}/s-{}/s), io={} ({}), run={}-{}msec",
        binary_text(all),
        decimal_text(all),
        binary_text(slowest),
        binary_text(fastest),
        decimal_text(slowest),
        decimal_text(fastest),
        binary_text(way.bytes as f64),
        decimal_text(way.bytes as f64),
        ms(way.runtime_ns.0),
        ms(way.runtime_ns.1)
    );
}

/// Units of a thousand.
const SI: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
/// Units of 1024 bytes.
const BINARY: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
/// Units of 1000 bytes.
const DECIMAL: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];

/// A number in units of `step`: in as large a unit as it takes for `chars` digits to be enough, with
/// as many digits after the point as fit.
fn scaled(number: f64, chars: usize, step: f64, units: &[&str; 7]) -> String {
    let limit = 10f64.powi(i32::try_from(chars).unwrap_or(i32::MAX));
    let (mut value, mut power) = (number.max(0.0), 0);
    while value.round() >= limit && power + 1 < units.len() {
        value /= step;
        power += 1;
    }
    let whole = format!("{:.0}", value.trunc()).len();
    let digits = if power == 0 { 0 } else { chars.saturating_sub(whole + 1) };
    format!("{value:.digits$}{}", units[power])
}

/// A count: `4801`, `12.3k`.
pub(super) fn count_text(number: f64) -> String {
    scaled(number, 4, 1e3, &SI)
}

/// A time in six characters: `99212`, `1044.5k`.
pub(super) fn time_text(number: u64) -> String {
    scaled(number as f64, 6, 1e3, &SI)
}

/// Bytes in units of 1024: `4096B`, `48.1MiB`.
pub(super) fn binary_text(bytes: f64) -> String {
    scaled(bytes, 4, 1024.0, &BINARY)
}

/// Bytes in units of 1000: `50.4MB`.
pub(super) fn decimal_text(bytes: f64) -> String {
    scaled(bytes, 4, 1e3, &DECIMAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs that fio has printed in published results.
    #[test]
    fn as_fio_has_them() {
        assert_eq!(
            [count_text(4801.0), count_text(12_345.6), count_text(0.0)],
            ["4801", "12.3k", "0"]
        );
        assert_eq!([count_text(1_134_000.0), count_text(9999.4)], ["1134k", "9999"]);
        assert_eq!(
            [binary_text(4096.0), binary_text(131_072.0), binary_text(65_536.0)],
            ["4096B", "128KiB", "64.0KiB"]
        );
        assert_eq!([binary_text(19_686_276.0), decimal_text(19_686_276.0)], ["18.8MiB", "19.7MB"]);
        assert_eq!([binary_text(104_857_600.0), decimal_text(104_857_600.0)], ["100MiB", "105MB"]);
        assert_eq!(
            [binary_text(2_147_483_648.0), decimal_text(2_147_483_648.0)],
            ["2048MiB", "2147MB"]
        );
        assert_eq!(
            [binary_text(10_737_418_240.0), decimal_text(10_737_418_240.0)],
            ["10.0GiB", "10.7GB"]
        );
        assert_eq!(
            [time_text(390), time_text(99_212), time_text(1_044_512)],
            ["390", "99212", "1044.5k"]
        );
    }

    #[test]
    fn no_number_is_too_large() {
        assert_eq!(time_text(u64::MAX), "18447P");
        assert_eq!(binary_text(u64::MAX as f64), "16.0EiB");
    }
}
