//! Meanings of values: jobs of the null engine, which moves nothing, run by fio; what it reports they
//! did must be what our reader says they are to do.

use super::{fio, ours, place};
use crate::common;
use hakobu_io::job::{Amount, Job};
use serde_json::Value;
use std::time::Duration;

/// Options of sections, each one job of 64 blocks or so.
const JOBS: &[&str] = &[
    "size=256k",
    "size=262144",
    "size=0x40000",
    "size=256K",
    "size=256kb",
    "size=256ki",
    "size=256KiB",
    "size=256kib",
    "size=262144b",
    "size=1m\nbs=16k",
    "size=1mi\nbs=16k",
    "size=1M\nbs=0x4000",
    "size=1g\nbs=16m",
    "size=1gi\nbs=16m",
    "kb_base=1000\nsize=256k\nbs=4k",
    "size=256k\nbs=4k\nkb_base=1000",
    "kb_base=1000\nsize=256ki\nbs=4ki",
    "size=256k\nbs=4k,8k",
    "size=256k\nbs=,8k",
    "size=256k\nbs=8k,",
    "size=256k\nrw=write\nbs=4k,8k",
    "size=256k\nrw=write\nbs=,8k",
    "size=256k\nrw=write\nbs=8k,",
    "size=256k\nrw=write\nbs=4k,8k,16k",
    "size=256k\nblocksize=8k",
    "size=256k\nrw=randread",
    "size=256k\nrw=randwrite",
    "size=256k\nrw=rw\nrwmixread=100",
    "size=256k\nrw=rw\nrwmixread=0",
    "size=256k\nrw=randrw\nrwmixwrite=100",
    "size=256k\nloops=3",
    "size=256k\nio_size=512k",
    "size=256k\nio_limit=64k",
    "size=256k\nio_size=50%",
    "size=256k\nnrfiles=4",
    "size=256k\nnumjobs=3",
    "size=256k\nnumjobs=0x2",
    "size=256k\npercentile_list=99.9:50:99",
    "size=256k\nclat_percentiles=0\nlat_percentiles=1",
    "size=256k\nlat_percentiles=1",
    "size=256k\ngtod_reduce=1",
    "size=256k\ndisable_clat=1",
    "size=256k\ndisable_slat=1",
    "size=256k\ndisable_lat=1",
    "size=256k\ntime_based\nruntime=300ms",
    "size=256k\ntime_based=1\nruntime=300000us",
    "size=256k\ntime_based\nruntime=1",
    "size=256k\ntime_based\ntimeout=1s",
    "size=256k\ntime_based=0\nruntime=9",
];

#[test]
fn jobs_do_what_their_options_say() {
    if !common::have("fio", "what values mean, against fio's runs") {
        return;
    }
    let dir = place();
    let sections = JOBS.iter().enumerate().map(|(at, text)| format!("[j{at}]\n{text}\n"));
    let text = format!("[global]\nioengine=null\n{}", sections.collect::<String>());
    std::fs::write(dir.path().join("all.fio"), text).unwrap();
    let output = fio(dir.path(), &["--output-format=json", "all.fio"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let request = ours(dir.path(), "all.fio").unwrap();
    assert_eq!(request.jobs.len(), JOBS.len());
    let entries = report["jobs"].as_array().unwrap();
    let mut wrong = Vec::new();
    for (job, text) in request.jobs.iter().zip(JOBS) {
        let its: Vec<&Value> =
            entries.iter().filter(|entry| entry["jobname"] == *job.name).collect();
        if its.len() != job.clones as usize {
            wrong.push(format!("{text:?}: {} entries for {} clones", its.len(), job.clones));
        }
        for entry in its {
            wrong.extend(
                differences(job, entry).into_iter().map(|what| format!("{text:?}: {what}")),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let globals: Vec<_> = request.globals.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(globals, pairs(&report["global options"]));
}

/// Fields that fio reports of a clone and the job does not set.
fn differences(job: &Job, entry: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut same = |what: &str, fio: String, ours: String| {
        if fio != ours {
            wrong.push(format!("{what}: fio {fio}, hakobu {ours}"));
        }
    };
    let (reads, writes) = match (job.rw.reads, job.rw.writes) {
        (true, true) => (job.read_percent > 0, job.read_percent < 100),
        either => either,
    };
    for (at, name, works) in [(0, "read", reads), (1, "write", writes)] {
        let side = &entry[name];
        let (bytes, ios) = (side["io_bytes"].as_u64(), side["total_ios"].as_u64());
        if job.time_based {
            assert_eq!(ios.is_some_and(|ios| ios > 0), works);
            continue;
        }
        let blocks = if works { blocks(job, job.block_bytes[at]) } else { 0 };
        same(&format!("{name} blocks"), format!("{ios:?}"), format!("{:?}", Some(blocks)));
        let expected = Some(blocks * job.block_bytes[at]);
        same(&format!("{name} bytes"), format!("{bytes:?}"), format!("{expected:?}"));
    }
    let side = &entry[if reads { "read" } else { "write" }];
    for (name, on, percentiles) in [
        ("clat_ns", job.clocks.clat, job.clat_percentiles && job.clocks.clat),
        ("lat_ns", job.clocks.lat, job.lat_percentiles && job.clocks.lat),
    ] {
        let measured = side[name]["N"].as_u64().unwrap_or(0) > 0;
        same(&format!("{name} measured"), measured.to_string(), on.to_string());
        let keys = side[name]["percentile"].as_object();
        let keys = keys.into_iter().flat_map(|keys| keys.keys());
        let mut keys: Vec<f64> = keys.map(|key| key.parse().unwrap()).collect();
        // Keys of an object have no order.
        keys.sort_by(f64::total_cmp);
        let said = if percentiles { job.percentiles.clone() } else { Vec::new() };
        same(&format!("{name} percentiles"), format!("{keys:?}"), format!("{said:?}"));
    }
    if job.time_based {
        let runtime = Duration::from_millis(entry["job_runtime"].as_u64().unwrap());
        let meant = job.runtime.unwrap();
        // Units differ by factors of 60 and more.
        assert!(runtime >= meant.mul_f64(0.9) && runtime < meant * 20, "{runtime:?}, {meant:?}");
    }
    // fio reports what stands without a value only where it had one.
    let has_value = |pair: &(&str, &str)| pair.0 != "time_based";
    let given = job.given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let given: Vec<_> = given.filter(has_value).collect();
    let fios: Vec<_> = pairs(&entry["job options"]).into_iter().filter(has_value).collect();
    same("options", format!("{:?}", sorted(fios)), format!("{:?}", sorted(given)));
    wrong
}

fn sorted<'a>(mut pairs: Vec<(&'a str, &'a str)>) -> Vec<(&'a str, &'a str)> {
    pairs.sort_unstable();
    pairs
}

/// Blocks that a clone goes through.
fn blocks(job: &Job, block_bytes: u64) -> u64 {
    let Some(Amount::Bytes(size)) = job.size else { panic!("{:?}", job.size) };
    match job.io_bytes {
        Some(bytes) => bytes.div_ceil(block_bytes),
        None => {
            let file = size / u64::from(job.files) / block_bytes;
            file * u64::from(job.files) * job.loops
        }
    }
}

fn pairs(options: &Value) -> Vec<(&str, &str)> {
    let options = options.as_object().unwrap();
    options.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect()
}
