//! Hand-made outcomes and their reports.

use super::Facts;
use super::disks::{DiskCounts, DiskUse};
use super::json::json;
use super::normal::{head, normal};
use crate::job::{Amount, Job, Rw};
use crate::outcome::{DepthCounts, DirectionStats, Outcome};
use serde_json::Value;
use std::time::Duration;

/// A job with fio's defaults.
pub fn job(name: &str, rw: &str) -> Job {
    let random = rw.starts_with("rand");
    let both = rw.ends_with("rw");
    Job {
        name: name.into(),
        given: vec![("rw".into(), rw.into())],
        rw: Rw {
            reads: both || rw.ends_with("read"),
            writes: both || rw.ends_with("write"),
            random,
        },
        size: Some(Amount::Bytes(1 << 20)),
        seed: 1,
        percentiles: vec![1.0, 5.0, 50.0, 99.0, 99.99],
        ..Job::default()
    }
}

/// A clone that read 1,000 blocks of 4 KiB in 2 s, each in 100 µs and a little.
fn outcome(job: usize, clone: u32) -> Outcome {
    let mut side = DirectionStats { ios: 1000, bytes: 4_096_000, ..DirectionStats::default() };
    for number in 0..1000 {
        side.clat.record(100_000 + number * 10);
        side.lat.record(101_000 + number * 10);
    }
    for bytes_per_s in [2_000_000.0, 2_096_000.0] {
        side.bandwidth.push(bytes_per_s);
        side.iops.push(bytes_per_s / 4096.0);
    }
    Outcome {
        job,
        clone,
        sides: [side, DirectionStats::default()],
        runtime_ns: 2_000_000_000,
        user_ns: 100_000_000,
        sys_ns: 300_000_000,
        switches: 1010,
        faults: [0, 7],
        depths: DepthCounts {
            level: [1000, 0, 0, 0, 0, 0, 0],
            submit: [0, 1000, 0, 0, 0, 0, 0],
            complete: [0, 1000, 0, 0, 0, 0, 0],
        },
        ..Outcome::default()
    }
}

fn facts() -> Facts {
    Facts {
        program: "hakobu-0.1.0".into(),
        at_ms: 1_718_334_968_213,
        at_text: "Fri Jun 14 03:16:08 2024".into(),
        elapsed: Duration::from_millis(2100),
        pid: 42,
        globals: vec![("bs".into(), "4k".into())],
        warnings: vec!["iodepth 16 has no effect".into()],
        disks: vec![DiskUse {
            name: "vda".into(),
            counts: DiskCounts { ios: [1000, 3], ticks_ms: [900, 1], ..DiskCounts::default() },
            util_percent: 95.123,
        }],
        ..Facts::default()
    }
}

fn parsed(jobs: &[Job], outcomes: &[Outcome], plus: bool) -> Value {
    serde_json::from_str(&json(jobs, outcomes, &facts(), plus).unwrap()).unwrap()
}

#[test]
fn one_job_as_json() {
    let found = parsed(&[job("a", "randread")], &[outcome(0, 0)], false);
    assert_eq!(found["fio version"], "hakobu-0.1.0");
    assert_eq!(found["timestamp"], 1_718_334_968);
    assert_eq!(found["global options"]["bs"], "4k");
    let one = &found["jobs"][0];
    assert_eq!(one["elapsed"], 3);
    assert_eq!(one["job options"]["rw"], "randread");
    let read = &one["read"];
    assert_eq!(read["io_bytes"], 4_096_000);
    assert_eq!(read["bw_bytes"], 2_048_000);
    assert_eq!(read["bw"], 2000);
    assert_eq!(read["iops"], 500.0);
    assert_eq!(read["runtime"], 2000);
    assert_eq!(read["clat_ns"]["N"], 1000);
    let p99 = read["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap();
    assert!((p99 / 109_890.0 - 1.0).abs() < 0.02, "{p99}");
    // Only one of the two is asked for.
    assert_eq!(read["lat_ns"].get("percentile"), None);
    assert_eq!(read["clat_ns"].get("bins"), None);
    assert_eq!(one["write"]["clat_ns"].get("percentile"), None);
    assert_eq!(one["usr_cpu"], 5.0);
    assert_eq!(one["sys_cpu"], 15.0);
    assert_eq!(one["iodepth_level"]["1"], 100.0);
    assert_eq!(one["iodepth_submit"]["4"], 100.0);
    assert_eq!(one["latency_us"]["250"], 100.0);
    assert_eq!(one["trim"]["total_ios"], 0);
    assert_eq!(found["disk_util"][0]["read_ios"], 1000);
    assert_eq!(found["hakobu"]["warnings"][0], "iodepth 16 has no effect");
}

#[test]
fn bins_hold_every_block() {
    let found = parsed(&[job("a", "read")], &[outcome(0, 0)], true);
    let bins = found["jobs"][0]["read"]["clat_ns"]["bins"].as_object().unwrap();
    assert_eq!(bins.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), 1000);
    assert!(bins.keys().all(|ns| ns.parse::<u64>().is_ok()));
}

#[test]
fn groups_are_reported_as_one() {
    let both = Job { group_reporting: true, clones: 2, ..job("a", "read") };
    let next = Job { stonewall: true, ..job("b", "read") };
    let outcomes = [outcome(1, 0), outcome(0, 1), outcome(0, 0)];
    let found = parsed(&[both.clone(), next.clone()], &outcomes, false);
    let jobs = found["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 2);
    let names: Vec<_> =
        jobs.iter().map(|job| (job["jobname"].as_str(), job["groupid"].as_u64())).collect();
    assert_eq!(names, [(Some("a"), Some(0)), (Some("b"), Some(1))]);
    let read = &jobs[0]["read"];
    assert_eq!(read["total_ios"], 2000);
    assert_eq!(read["runtime"], 2000);
    assert_eq!(read["iops"], 1000.0);
    assert_eq!(read["clat_ns"]["N"], 2000);
    // Rates of clones are added, CPU time is a share of all their time.
    assert_eq!(read["bw_mean"], 4000.0);
    assert_eq!(read["bw_samples"], 4);
    assert_eq!(read["bw_agg"], 100.0);
    assert_eq!(jobs[0]["usr_cpu"], 5.0);
    assert_eq!(jobs[0]["job_runtime"], 4000);
    // Without it, each clone is by itself.
    let apart = Job { group_reporting: false, ..both };
    let found = parsed(&[apart, next], &outcomes, false);
    let names: Vec<_> =
        found["jobs"].as_array().unwrap().iter().map(|one| &one["jobname"]).collect();
    assert_eq!(names, ["a", "a", "b"]);
    assert_eq!(found["jobs"][0]["read"]["bw_agg"], 50.0);
}

#[test]
fn errors_are_told() {
    let mut broken = outcome(0, 0);
    broken.error = Some((5, "a.0.0: Input/output error".into()));
    let mut odd = outcome(0, 1);
    odd.error = Some((0, "verify: block at 4096".into()));
    let jobs = [Job { clones: 2, ..job("a", "read") }];
    let outcomes = [broken, odd];
    let found = parsed(&jobs, &outcomes, false);
    assert_eq!(found["jobs"][0]["error"], 5);
    assert_eq!(found["jobs"][1]["error"], 1);
    assert_eq!(found["hakobu"]["errors"][1]["message"], "verify: block at 4096");
    let text = normal(&jobs, &outcomes, &facts());
    assert!(text.contains("err= 5 (a.0.0: Input/output error): pid=42"), "{text}");
}

#[test]
fn one_job_for_people() {
    let jobs = [job("a", "randread")];
    assert_eq!(
        head(&jobs, "hakobu-0.1.0"),
        "a: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, ioengine=psync, iodepth=1\n\
         hakobu-0.1.0\nStarting 1 thread\n"
    );
    let text = normal(&jobs, &[outcome(0, 0)], &facts());
    for line in [
        "\na: (groupid=0, jobs=1): err= 0: pid=42: Fri Jun 14 03:16:08 2024\n",
        "\n  read: IOPS=500, BW=2000KiB/s (2048kB/s)(4000KiB/2000msec)\n",
        "\n    clat (usec): min=100, max=109, avg=10",
        "\n    clat percentiles (usec):\n     |  1.00th=[  1",
        "],\n     | 99.99th=[  1",
        "\n   bw (  KiB/s): min= 1953, max= 2047, per=100.00%, avg=2000.00, stdev=66.29, samples=2\n",
        "\n   iops        : min=  488, max=  512, avg=500.00, stdev=16.57, samples=2\n",
        "\n  lat (usec)   : 250=100.00%\n",
        "\n  cpu          : usr=5.00%, sys=15.00%, ctx=1010, majf=0, minf=7\n",
        "\n  IO depths    : 1=100.0%, 2=0.0%, 4=0.0%, 8=0.0%, 16=0.0%, 32=0.0%, >=64=0.0%\n",
        "\n     issued rwts: total=1000,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n",
        "\nRun status group 0 (all jobs):\n   READ: bw=2000KiB/s (2048kB/s), 2000KiB/s-2000KiB/s \
         (2048kB/s-2048kB/s), io=4000KiB (4096kB), run=2000-2000msec\n",
        "\nDisk stats (read/write):\n  vda: ios=1000/3, merge=0/0, ticks=900/1, in_queue=0, util=95.12%\n",
        "\nWarnings:\n  iodepth 16 has no effect\n",
    ] {
        assert!(text.contains(line), "{line:?} in\n{text}");
    }
    assert!(!text.contains("slat") && !text.contains("write:"), "{text}");
}

#[test]
fn nothing_at_all_is_no_crash() {
    let jobs = [job("a", "rw")];
    assert_eq!(jobs[0].rw_name(), "rw");
    let found = parsed(&jobs, &[Outcome::default()], true);
    assert_eq!(found["jobs"][0]["read"]["bw_agg"], 0.0);
    assert_eq!(found["jobs"][0]["read"]["clat_ns"]["min"], 0);
    assert_eq!(parsed(&jobs, &[], false)["jobs"], Value::Array(Vec::new()));
    assert!(normal(&jobs, &[Outcome::default()], &facts()).contains("err= 0"));
}
