//! fio's JSON: its keys, its units, its order. What is ours stands under the key `hakobu`.

use super::disks::DiskUse;
use super::{
    CALLS, DirectionSum, Facts, GroupDirection, LEVELS, LONG, ReportEntry, SHORT, depth_shares,
    groups, latency_shares, parts,
};
use crate::job::{Ioprio, Job};
use crate::outcome::Outcome;
use crate::stats::Histogram;
use crate::steady::{SteadyMetric, SteadyResult, SteadyState};
use hakobu_core::unit::Machine;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// An object of the given keys and values, `"key": value`.
macro_rules! object {
    ($($key:literal: $value:expr,)*) => {
        Json::table([$(($key, Json::from($value))),*])
    };
}

/// The result as fio's JSON; `plus`: with the bins of latencies (`json+`).
pub fn json(
    jobs: &[Job],
    outcomes: &[Outcome],
    facts: &Facts,
    plus: bool,
) -> Result<String, String> {
    let parts = parts(jobs, outcomes);
    let groups = groups(&parts);
    let document = object! {
        "fio version": facts.program.as_str(),
        "timestamp": facts.at_ms / 1000,
        "timestamp_ms": facts.at_ms,
        "time": facts.at_text.as_str(),
        "global options": (!facts.globals.is_empty()).then(|| Json::table(texts(facts.globals.iter()))),
        "jobs": parts.iter().map(|part| entry(part, &groups, facts, plus)).collect::<Vec<_>>(),
        "disk_util": facts.disks.iter().map(util).collect::<Vec<_>>(),
        "hakobu": own(jobs, outcomes, facts),
    };
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

fn entry<'a>(
    part: &ReportEntry<'a>,
    groups: &[[GroupDirection; 3]],
    facts: &Facts,
    plus: bool,
) -> Json<'a> {
    let sum = part.sum();
    let (job, whole) = (part.job, &sum.whole);
    let group = groups.get(part.group).copied().unwrap_or_default();
    let [level, submit, complete] = depth_shares(&whole.depths);
    let latencies = latency_shares(sum.ways.each_ref().map(|way| &way.clat));
    let goes_on = job.tolerates.goes_on.contains(&true);
    let side = |way: usize| side(job, &sum.ways[way], &group[way], plus);
    // Its name comes first, as on fio's command line.
    let given = job.given.iter().filter(|(name, _)| name != "name");
    object! {
        "jobname": job.name.as_str(),
        "groupid": part.group,
        "error": error(whole),
        "eta": 0_u64,
        "elapsed": u64::try_from(facts.elapsed.as_millis().div_ceil(1000)).unwrap_or(u64::MAX),
        "job options": Json::table([("name", job.name.as_str())].into_iter().chain(texts(given))),
        "read": side(0),
        "write": side(1),
        "trim": side(2),
        "sync": object! {
            "total_ios": whole.sync.count(),
            "lat_ns": latency(&whole.sync, &job.percentiles, true, plus),
        },
        "job_runtime": whole.runtime_ns / 1_000_000,
        "usr_cpu": sum.cpu_percent(whole.user_ns),
        "sys_cpu": sum.cpu_percent(whole.sys_ns),
        "ctx": whole.switches,
        "majf": whole.faults[0],
        "minf": whole.faults[1],
        "iodepth_level": Json::table(LEVELS.into_iter().zip(level)),
        "iodepth_submit": Json::table(CALLS.into_iter().zip(submit)),
        "iodepth_complete": Json::table(CALLS.into_iter().zip(complete)),
        "latency_ns": Json::table(SHORT.into_iter().zip(latencies.ns)),
        "latency_us": Json::table(SHORT.into_iter().zip(latencies.us)),
        "latency_ms": Json::table(LONG.into_iter().zip(latencies.ms)),
        "latency_depth": whole.depth_found.unwrap_or(job.depth),
        "latency_target": job.aim.map_or(0, |aim| aim.latency.as_micros() as u64),
        "latency_percentile": job.aim.map_or(100.0, |aim| aim.percentile),
        "latency_window": job.aim.map_or(0, |aim| aim.window.as_micros() as u64),
        "total_err": goes_on.then_some(whole.tolerated.0),
        "first_error": goes_on.then_some(whole.tolerated.1),
        "steadystate": part.steady().map(|(of, found)| steady(&of, found)),
    }
}

/// The condition, how far it is met, and the window with zeros for intervals that are missing.
fn steady<'a>(of: &SteadyState, found: &SteadyResult) -> Json<'a> {
    let criterion = of.criterion;
    let slope = if criterion.slope { "_slope" } else { "" };
    let percent = if criterion.percent { "%" } else { "" };
    let window = of.window().max(found.samples.len());
    let values = |measure: SteadyMetric| {
        let known = found.samples.iter().map(move |sample| sample.of(measure) as u64);
        known.chain(std::iter::repeat(0)).take(window).collect::<Vec<u64>>()
    };
    let mean = |measure: SteadyMetric| values(measure).iter().sum::<u64>() / window as u64;
    object! {
        "ss": format!("{}{slope}:{}{percent}", criterion.of.name(), criterion.limit),
        "duration": of.window_s,
        "attained": u8::from(found.attained),
        "criterion": format!("{:.6}{percent}", found.value),
        "max_deviation": if criterion.slope { 0.0 } else { found.change },
        "slope": if criterion.slope { found.change } else { 0.0 },
        "mean": found.mean,
        "data": object! {
            "bw_mean": mean(SteadyMetric::Bytes),
            "iops_mean": mean(SteadyMetric::Blocks),
            "lat_mean": mean(SteadyMetric::Latency),
            "iops": values(SteadyMetric::Blocks),
            "bw": values(SteadyMetric::Bytes),
            "lat": values(SteadyMetric::Latency),
        },
    }
}

fn texts<'a>(
    pairs: impl Iterator<Item = &'a (String, String)>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    pairs.map(|(name, value)| (name.as_str(), value.as_str()))
}

/// fio's `error`: the number of the system's error, or of what stands for none of these.
fn error(of: &Outcome) -> i32 {
    match &of.error {
        None => 0,
        // Zero would be taken for success.
        Some((0, _)) => 1,
        Some((errno, _)) => *errno,
    }
}

fn side(job: &Job, way: &DirectionSum, group: &GroupDirection, plus: bool) -> Json<'static> {
    let kib = |bytes: f64| bytes / 1024.0;
    let bytes_per_s = way.bytes_per_s();
    let share = way.bandwidth.mean * 100.0 / group.bytes_per_s();
    let percentiles = &job.percentiles;
    object! {
        "io_bytes": way.bytes,
        "io_kbytes": way.bytes / 1024,
        "bw_bytes": bytes_per_s as u64,
        "bw": kib(bytes_per_s) as u64,
        "iops": way.ios_per_s(),
        "runtime": way.runtime_ms(),
        "total_ios": way.ios,
        "short_ios": way.short,
        "drop_ios": 0_u64,
        "slat_ns": latency(&way.slat, percentiles, false, plus),
        "clat_ns": latency(&way.clat, percentiles, job.clat_percentiles, plus),
        "lat_ns": latency(&way.lat, percentiles, job.lat_percentiles, plus),
        // None where all blocks have the same.
        "prios": (way.by_priority.len() > 1).then(|| priorities(job, way, plus)),
        "bw_min": kib(way.bandwidth.min) as u64,
        "bw_max": kib(way.bandwidth.max) as u64,
        "bw_agg": if share.is_finite() { share.min(100.0) } else { 0.0 },
        "bw_mean": kib(way.bandwidth.mean),
        "bw_dev": kib(way.bandwidth.deviation()),
        "bw_samples": way.bandwidth.samples,
        "iops_min": way.iops.min as u64,
        "iops_max": way.iops.max as u64,
        "iops_mean": way.iops.mean,
        "iops_stddev": way.iops.deviation(),
        "iops_samples": way.iops.samples,
    }
}

/// Latencies by priority.
fn priorities(job: &Job, way: &DirectionSum, plus: bool) -> Vec<Json<'static>> {
    let one = |(value, of): (&u16, &Histogram)| {
        let priority = Ioprio::of(*value);
        let whole = job.lat_percentiles;
        let detailed = whole || job.clat_percentiles;
        let latency = || latency(of, &job.percentiles, detailed, plus);
        object! {
            "prioclass": priority.class,
            "prio": priority.level,
            "priohint": Some(priority.hint).filter(|hint| *hint != 0),
            "clat_ns": (!whole).then(latency),
            "lat_ns": whole.then(latency),
        }
    };
    way.by_priority.iter().map(one).collect()
}

fn latency(of: &Histogram, percentiles: &[f64], detailed: bool, plus: bool) -> Json<'static> {
    let detailed = detailed && of.count() > 0;
    let some = |percent: &f64| (format!("{percent:.6}"), of.percentile(*percent));
    let bins = || Json::table(of.buckets().map(|(ns, count)| (ns.to_string(), count)));
    object! {
        "min": of.min_ns(),
        "max": of.max_ns(),
        "mean": finite(of.mean_ns()),
        "stddev": finite(of.deviation_ns()),
        "N": of.count(),
        "percentile": detailed.then(|| Json::table(percentiles.iter().map(some))),
        "bins": (detailed && plus).then(bins),
    }
}

/// JSON cannot represent values that are not numbers.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

fn util(used: &DiskUse) -> Json<'_> {
    let counts = &used.counts;
    object! {
        "name": used.name.as_str(),
        "read_ios": counts.ios[0],
        "write_ios": counts.ios[1],
        "read_merges": counts.merges[0],
        "write_merges": counts.merges[1],
        "read_ticks": counts.ticks_ms[0],
        "write_ticks": counts.ticks_ms[1],
        "in_queue": counts.queue_ms,
        "util": used.util_percent,
    }
}

/// Fields that fio does not have.
fn own<'a>(jobs: &'a [Job], outcomes: &'a [Outcome], facts: &'a Facts) -> Json<'a> {
    let wrong = outcomes.iter().filter_map(|outcome| {
        let (errno, message) = outcome.error.as_ref()?;
        Some(object! {
            "jobname": jobs.get(outcome.job).map_or("", |job| job.name.as_str()),
            "clone": outcome.clone,
            "errno": *errno,
            "message": message.as_str(),
        })
    });
    // Settings that a job really ran with.
    let engine = |(number, job): (usize, &'a Job)| {
        let of = || outcomes.iter().filter(|outcome| outcome.job == number);
        object! {
            "jobname": job.name.as_str(),
            "ioengine": job.engine.name(),
            "iodepth": job.depth,
            "numjobs": job.clones,
            "verified": of().map(|outcome| outcome.verified).sum::<u64>(),
            "verify_errors": of().map(|outcome| outcome.verify_errors).sum::<u64>(),
        }
    };
    object! {
        "version": facts.program.as_str(),
        "stopped": facts.stopped,
        "warnings": facts.warnings.iter().map(String::as_str).collect::<Vec<_>>(),
        "errors": wrong.collect::<Vec<_>>(),
        "engines": jobs.iter().enumerate().map(engine).collect::<Vec<_>>(),
        "machine": &facts.machine,
    }
}

/// JSON whose keys keep the order in which they are given.
/// A value; keys of objects keep the order in which they are given.
#[derive(Serialize)]
#[serde(untagged)]
enum Json<'a> {
    Flag(bool),
    TotalWork(u64),
    Signed(i64),
    Real(f64),
    Text(Cow<'a, str>),
    Machine(&'a Machine),
    List(Vec<Json<'a>>),
    Object(Object<'a>),
    /// Its key is left out.
    Nothing,
}

/// Keys and values.
struct Object<'a>(Vec<(Cow<'a, str>, Json<'a>)>);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (key, value) in self.0.iter().filter(|(_, value)| !matches!(value, Json::Nothing)) {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'a> Json<'a> {
    /// An object of keys and values that are worked out.
    fn table<K: Into<Cow<'a, str>>, V: Into<Json<'a>>>(
        rows: impl IntoIterator<Item = (K, V)>,
    ) -> Json<'a> {
        let rows = rows.into_iter().map(|(key, value)| (key.into(), value.into()));
        Json::Object(Object(rows.collect()))
    }
}

macro_rules! from {
    ($($type:ty: $of:expr,)*) => {$(
        impl<'a> From<$type> for Json<'a> {
            fn from(value: $type) -> Json<'a> {
                $of(value)
            }
        }
    )*};
}

from! {
    bool: Json::Flag,
    u8: |value: u8| Json::TotalWork(value.into()),
    u16: |value: u16| Json::TotalWork(value.into()),
    u32: |value: u32| Json::TotalWork(value.into()),
    u64: Json::TotalWork,
    usize: |value| Json::TotalWork(value as u64),
    i32: |value: i32| Json::Signed(value.into()),
    f64: Json::Real,
    &'a str: |value: &'a str| Json::Text(value.into()),
    String: |value: String| Json::Text(value.into()),
    &'a Machine: Json::Machine,
}

impl<'a, T: Into<Json<'a>>> From<Vec<T>> for Json<'a> {
    fn from(list: Vec<T>) -> Json<'a> {
        Json::List(list.into_iter().map(Into::into).collect())
    }
}

impl<'a, T: Into<Json<'a>>> From<Option<T>> for Json<'a> {
    fn from(value: Option<T>) -> Json<'a> {
        value.map_or(Json::Nothing, Into::into)
    }
}
