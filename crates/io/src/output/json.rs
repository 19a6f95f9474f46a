//! fio's JSON: its keys, its units, its order. What is ours stands under the key `hakobu`.

use super::disks::DiskUse;
use super::entry::{GroupWay, Part, Sum, Way, groups, parts};
use super::record::{
    Document, Engine, Entry, Flush, Latency, Named, Own, Priority, Side, SteadyState, Util, Wrong,
};
use super::shares::{self, CALLS, LEVELS, LONG, SHORT};
use super::{Facts, engine_name};
use crate::job::Ioprio;
use crate::stats::Histogram;
use crate::{Job, Outcome};

/// The result as fio's JSON; `plus`: with the bins of latencies (`json+`).
///
/// # Errors
/// None is known: no key here is anything but text.
pub fn json(
    jobs: &[Job],
    outcomes: &[Outcome],
    facts: &Facts,
    plus: bool,
) -> Result<String, String> {
    let parts = parts(jobs, outcomes);
    let groups = groups(&parts);
    let globals = facts.globals.iter().map(|(name, value)| (name.clone(), value.as_str()));
    let document = Document {
        version: &facts.program,
        timestamp: facts.at_ms / 1000,
        timestamp_ms: facts.at_ms,
        time: &facts.at_text,
        globals: (!facts.globals.is_empty()).then(|| Named(globals.collect())),
        jobs: parts.iter().map(|part| entry(part, &groups, facts, plus)).collect(),
        disk_util: facts.disks.iter().map(util).collect(),
        hakobu: own(jobs, outcomes, facts),
    };
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

fn entry<'a>(part: &Part<'a>, groups: &[[GroupWay; 3]], facts: &Facts, plus: bool) -> Entry<'a> {
    let sum = part.sum();
    let job = part.job;
    let group = groups.get(part.group).copied().unwrap_or_default();
    let cpu =
        |ns: u64| if sum.runtime_ns == 0 { 0.0 } else { ns as f64 * 100.0 / sum.runtime_ns as f64 };
    let [level, submit, complete] = shares::depths(&sum.depths);
    let latencies = shares::latencies(sum.ways.each_ref().map(|way| &way.clat));
    let goes_on = job.tolerates.goes_on.contains(&true);
    let side = |way: usize| side(job, &sum.ways[way], &group[way], plus);
    Entry {
        jobname: &job.name,
        groupid: part.group,
        error: error(&sum),
        eta: 0,
        elapsed: facts.elapsed.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX),
        options: options(job),
        read: side(0),
        write: side(1),
        trim: side(2),
        sync: Flush {
            total_ios: sum.sync.count(),
            lat_ns: latency(&sum.sync, &job.percentiles, true, plus),
        },
        job_runtime: sum.runtime_ns / 1_000_000,
        usr_cpu: cpu(sum.user_ns),
        sys_cpu: cpu(sum.sys_ns),
        ctx: sum.switches,
        majf: sum.faults[0],
        minf: sum.faults[1],
        iodepth_level: Named::of(LEVELS, level),
        iodepth_submit: Named::of(CALLS, submit),
        iodepth_complete: Named::of(CALLS, complete),
        latency_ns: Named::of(SHORT, latencies.ns),
        latency_us: Named::of(SHORT, latencies.us),
        latency_ms: Named::of(LONG, latencies.ms),
        latency_depth: sum.depth_found.unwrap_or(job.depth),
        latency_target: job.aim.map_or(0, |aim| aim.latency.as_micros() as u64),
        latency_percentile: job.aim.map_or(100.0, |aim| aim.percentile),
        latency_window: job.aim.map_or(0, |aim| aim.window.as_micros() as u64),
        total_err: goes_on.then_some(sum.tolerated.0),
        first_error: goes_on.then_some(sum.tolerated.1),
        steadystate: part.steady().map(|(of, found)| {
            let name = of.criterion.of.name();
            let slope = if of.criterion.slope { "_slope" } else { "" };
            let percent = if of.criterion.percent { "%" } else { "" };
            SteadyState {
                ss: format!("{name}{slope}:{}{percent}", of.criterion.limit),
                duration: of.window_s,
                attained: u8::from(found.attained),
                criterion: format!("{}{percent}", found.value),
                mean: found.mean,
            }
        }),
    }
}

/// Options of a job; its name first, as on fio's command line.
fn options(job: &Job) -> Named<&str> {
    let given = job.given.iter().filter(|(name, _)| name != "name");
    let given = given.map(|(name, value)| (name.clone(), value.as_str()));
    Named([("name".to_owned(), job.name.as_str())].into_iter().chain(given).collect())
}

/// fio's `error`: the number of the system's error, or of what stands for none of these.
fn error(sum: &Sum) -> i32 {
    match &sum.error {
        None => 0,
        // Zero would be taken for success.
        Some((0, _)) => 1,
        Some((errno, _)) => *errno,
    }
}

fn side(job: &Job, way: &Way, group: &GroupWay, plus: bool) -> Side {
    let kib = |bytes: f64| bytes / 1024.0;
    let bytes_per_s = way.bytes_per_s();
    let share = way.bandwidth.mean * 100.0 / group.bytes_per_s();
    let percentiles = &job.percentiles;
    Side {
        io_bytes: way.bytes,
        io_kbytes: way.bytes / 1024,
        bw_bytes: bytes_per_s as u64,
        bw: kib(bytes_per_s) as u64,
        iops: way.ios_per_s(),
        runtime: way.runtime_ms(),
        total_ios: way.ios,
        short_ios: way.short,
        drop_ios: 0,
        slat_ns: latency(&way.slat, percentiles, false, plus),
        clat_ns: latency(&way.clat, percentiles, job.clat_percentiles, plus),
        lat_ns: latency(&way.lat, percentiles, job.lat_percentiles, plus),
        prios: priorities(job, way, plus),
        bw_min: kib(way.bandwidth.min) as u64,
        bw_max: kib(way.bandwidth.max) as u64,
        bw_agg: if share.is_finite() { share.min(100.0) } else { 0.0 },
        bw_mean: kib(way.bandwidth.mean),
        bw_dev: kib(way.bandwidth.deviation()),
        bw_samples: way.bandwidth.samples,
        iops_min: way.iops.min as u64,
        iops_max: way.iops.max as u64,
        iops_mean: way.iops.mean,
        iops_stddev: way.iops.deviation(),
        iops_samples: way.iops.samples,
    }
}

/// Latencies by priority; none where all blocks have the same.
fn priorities(job: &Job, way: &Way, plus: bool) -> Vec<Priority> {
    if way.by_priority.len() < 2 {
        return Vec::new();
    }
    let one = |(value, of): (&u16, &Histogram)| {
        let priority = Ioprio::of(*value);
        let whole = job.lat_percentiles;
        let detailed = whole || job.clat_percentiles;
        let latency = || latency(of, &job.percentiles, detailed, plus);
        Priority {
            prioclass: priority.class,
            prio: priority.level,
            priohint: priority.hint,
            clat_ns: (!whole).then(latency),
            lat_ns: whole.then(latency),
        }
    };
    way.by_priority.iter().map(one).collect()
}

fn latency(of: &Histogram, percentiles: &[f64], detailed: bool, plus: bool) -> Latency {
    let detailed = detailed && of.count() > 0;
    let some = |percent: &f64| (format!("{percent:.6}"), of.percentile(*percent));
    let bins = || of.buckets().map(|(ns, count)| (ns.to_string(), count)).collect();
    Latency {
        min: if of.count() == 0 { 0 } else { of.min_ns() },
        max: of.max_ns(),
        mean: finite(of.mean_ns()),
        stddev: finite(of.deviation_ns()),
        count: of.count(),
        percentile: detailed.then(|| Named(percentiles.iter().map(some).collect())),
        bins: (detailed && plus).then(|| Named(bins())),
    }
}

/// JSON cannot represent values that are not numbers.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

fn util(used: &DiskUse) -> Util<'_> {
    let counts = &used.counts;
    Util {
        name: &used.name,
        read_ios: counts.ios[0],
        write_ios: counts.ios[1],
        read_merges: counts.merges[0],
        write_merges: counts.merges[1],
        read_ticks: counts.ticks_ms[0],
        write_ticks: counts.ticks_ms[1],
        in_queue: counts.queue_ms,
        util: used.util_percent,
    }
}

fn own<'a>(jobs: &'a [Job], outcomes: &'a [Outcome], facts: &'a Facts) -> Own<'a> {
    let wrong = outcomes.iter().filter_map(|outcome| {
        let (errno, message) = outcome.error.as_ref()?;
        let jobname = jobs.get(outcome.job).map_or("", |job| job.name.as_str());
        Some(Wrong { jobname, clone: outcome.clone, errno: *errno, message })
    });
    let engine = |(number, job): (usize, &'a Job)| {
        let of = || outcomes.iter().filter(|outcome| outcome.job == number);
        Engine {
            jobname: &job.name,
            ioengine: engine_name(job),
            iodepth: job.depth,
            numjobs: job.clones,
            verified: of().map(|outcome| outcome.verified).sum(),
            verify_errors: of().map(|outcome| outcome.verify_errors).sum(),
        }
    };
    Own {
        version: &facts.program,
        stopped: facts.stopped,
        warnings: &facts.warnings,
        errors: wrong.collect(),
        engines: jobs.iter().enumerate().map(engine).collect(),
        machine: &facts.machine,
    }
}
