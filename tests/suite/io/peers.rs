//! Beside fio, and in the hands of a program that reads fio's JSON.

use crate::common::{have, must};
use crate::io::{area, io, measured, number};
use serde_json::Value;
use std::process::Command;

/// Collects the places where a key of fio's is missing or has another type.
fn missing(theirs: &Value, ours: &Value, at: &str, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (key, value) in theirs {
                let at = format!("{at}/{key}");
                match ours.get(key) {
                    Some(own) => missing(value, own, &at, found),
                    None => found.push(format!("{at} is missing")),
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            if theirs.len() != ours.len() {
                found.push(format!("{at} has {} entries, not {}", ours.len(), theirs.len()));
            }
            for (number, (value, own)) in theirs.iter().zip(ours).enumerate() {
                missing(value, own, &format!("{at}/{number}"), found);
            }
        }
        (Value::String(_), Value::String(_)) => {}
        (Value::Number(theirs), Value::Number(ours)) if theirs.is_f64() == ours.is_f64() => {}
        _ => found.push(format!("{at} is {ours}, and fio's {theirs}")),
    }
}

fn fio(folder: &std::path::Path, line: &str) -> Value {
    let mut command = Command::new("fio");
    command.args(line.split_whitespace()).current_dir(folder);
    let out = must(&mut command);
    // Notes stand before it.
    let start = out.iter().position(|byte| *byte == b'{').unwrap();
    serde_json::from_slice(&out[start..]).unwrap()
}

#[test]
fn the_keys_are_fio_s() {
    if !have("fio", "fio's JSON") {
        return;
    }
    let area = area();
    for line in [
        "--name=a --rw=randread --bs=4k --size=1m --ioengine=psync",
        "--name=a --rw=randrw --bs=4k --size=1m --ioengine=io_uring --iodepth=8 --numjobs=3 \
         --group_reporting",
        "--name=a --rw=write --bs=8k --size=1m --fsync=8 --lat_percentiles=1 --clat_percentiles=0",
        "--name=a --rw=randwrite --bs=8k --size=256k --fsync=1 --numjobs=2",
        "--bs=4k --size=256k --name=a --rw=read --name=b --rw=randwrite --stonewall --numjobs=2",
    ] {
        for format in ["json", "json+"] {
            let line = format!("{line} --output-format={format}");
            let theirs = fio(area.path(), &line);
            for name in crate::io::names(area.path()) {
                std::fs::remove_file(area.join(&name)).unwrap();
            }
            let ours = crate::io::json(io(area.path(), &line).ok());
            let mut found = Vec::new();
            let (mut theirs, mut ours) = (theirs, ours);
            // Durations differ, and so do bins and samples of rates.
            for document in [&mut theirs, &mut ours] {
                for job in document["jobs"].as_array_mut().unwrap() {
                    for way in ["read", "write", "trim", "sync"] {
                        for kind in ["slat_ns", "clat_ns", "lat_ns"] {
                            let latency = job[way].get_mut(kind);
                            if let Some(bins) = latency.and_then(|of| of.get_mut("bins")) {
                                assert!(bins.as_object().is_some(), "{line}: {way} {kind}");
                                *bins = Value::Object(serde_json::Map::new());
                            }
                        }
                    }
                }
            }
            missing(&theirs, &ours, "", &mut found);
            assert!(found.is_empty(), "{line}:\n  {}", found.join("\n  "));
            let jobs =
                theirs["jobs"].as_array().unwrap().iter().zip(ours["jobs"].as_array().unwrap());
            for (theirs, ours) in jobs {
                for key in [
                    "/jobname",
                    "/groupid",
                    "/error",
                    "/read/total_ios",
                    "/write/total_ios",
                    "/sync/total_ios",
                ] {
                    // Which blocks of a mix are read is each one's own.
                    if line.contains("randrw") && key.ends_with("total_ios") {
                        continue;
                    }
                    assert_eq!(ours.pointer(key), theirs.pointer(key), "{key} of {line}");
                }
                let all =
                    |job: &Value| number(job, "/read/io_bytes") + number(job, "/write/io_bytes");
                assert_eq!(all(ours), all(theirs), "{line}");
                for table in ["iodepth_level", "iodepth_submit", "latency_ms"] {
                    let keys = |job: &Value| {
                        job[table].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
                    };
                    assert_eq!(keys(ours), keys(theirs), "{table} of {line}");
                }
            }
        }
    }
}

#[test]
fn fio_plot_reads_it() {
    if !have("fio-plot", "a picture by fio-plot") {
        return;
    }
    let area = area();
    std::fs::create_dir(area.join("runs")).unwrap();
    for (depth, jobs) in [(1, 1), (4, 1), (8, 1)] {
        let line = format!(
            "--name=a --rw=randread --bs=4k --size=1m --ioengine=io_uring --iodepth={depth} \
             --numjobs={jobs}"
        );
        let found = measured(area.path(), &line);
        let name = format!("runs/randread-{depth}-{jobs}.json");
        std::fs::write(area.join(&name), found.to_string()).unwrap();
    }
    let picture = |runs: &str| {
        let mut command = Command::new("fio-plot");
        command
            .args(["-i", runs, "-T", "io", "-r", "randread", "-l", "-d", "1", "4", "8", "-n", "1"]);
        command.args(["-o", "picture.png"]).current_dir(area.path()).env("MPLBACKEND", "Agg");
        must(&mut command);
        assert!(std::fs::metadata(area.join("picture.png")).unwrap().len() > 1000);
        std::fs::remove_file(area.join("picture.png")).unwrap();
    };
    picture("runs");
    // And each block of a sweep.
    let line = "--name=a --rw=randread --bs=4k --size=1m --ioengine=io_uring --iodepth=1,4,8 \
                --numjobs=1 --repeat=2 --output=sweep";
    io(area.path(), line).ok();
    picture("sweep/outputs/1");
}

#[test]
fn several_folders_are_taken_in_turn() {
    if !have("fio", "fio's files") {
        return;
    }
    let line = "--name=x --rw=write --size=16k --numjobs=3 --directory=a:b";
    let laid_out = |by: fn(&std::path::Path, &str)| {
        let area = area();
        for name in ["a", "b"] {
            std::fs::create_dir(area.join(name)).unwrap();
        }
        by(area.path(), line);
        ["a", "b"].map(|name| crate::io::names(&area.join(name)))
    };
    let theirs =
        laid_out(|folder, line| drop(fio(folder, &format!("{line} --output-format=json"))));
    let ours = laid_out(|folder, line| {
        io(folder, &format!("{line} --keep")).ok();
    });
    assert_eq!(ours, theirs);
    assert_eq!(ours.map(|names| names.len()), [2, 1]);
}

#[test]
fn a_steady_state_has_fio_s_keys() {
    if !have("fio", "fio's JSON") {
        return;
    }
    let area = area();
    std::fs::create_dir(area.join("fio")).unwrap();
    for ss in ["iops:50%", "bw_slope:50%", "iops:0.00001"] {
        let line = format!(
            "--name=a --rw=write --bs=4k --size=1m --ioengine=psync --time_based --runtime=3 \
             --rate_iops=,500 --ss={ss} --ss_dur=2 --output-format=json --filename=data"
        );
        // Both wait most of the time.
        let (theirs, ours) = std::thread::scope(|scope| {
            let theirs = scope.spawn(|| fio(&area.join("fio"), &line));
            let ours = measured(area.path(), &line.replace("--output-format=json", ""));
            (theirs.join().unwrap(), ours)
        });
        let (theirs, ours) = (&theirs["jobs"][0]["steadystate"], &ours["jobs"][0]["steadystate"]);
        let mut found = Vec::new();
        missing(theirs, ours, "", &mut found);
        assert!(found.is_empty(), "{ss}: {found:?} in {ours} beside {theirs}");
        // A deviation of nothing at all is attained by chance.
        if !ss.contains("0.00001") {
            assert_eq!(theirs["attained"], ours["attained"], "{ss}: {ours} beside {theirs}");
        }
        let data = &ours["data"];
        for (mean, each) in [("iops_mean", "iops"), ("bw_mean", "bw")] {
            let each: Vec<u64> = data[each]
                .as_array()
                .unwrap()
                .iter()
                .map(|value| value.as_u64().unwrap())
                .collect();
            let sum: u64 = each.iter().sum();
            assert_eq!(data[mean].as_u64(), Some(sum / each.len() as u64), "{ss}: {data}");
            assert!(each.iter().all(|value| *value > 0), "{ss}: {data}");
        }
        let is_slope = ss.contains("slope");
        let zero = if is_slope { "max_deviation" } else { "slope" };
        assert_eq!(ours[zero].as_f64(), Some(0.0), "{ss}: {ours}");
    }
}

/// Verification takes no more time than the job has: neither where it runs for a time, nor where it is cut.
#[test]
fn verification_belongs_to_the_time_of_the_job() {
    let area = area();
    let took = |program: &str, line: &str| {
        let mut command = match program {
            "fio" => Command::new("fio"),
            _ => crate::io::hakobu(area.path(), &["io", "--allow-overwrite"]),
        };
        let line = format!("{line} --name=a --bs=4k --verify=crc32c --output-format=json");
        command.args(line.split_whitespace()).current_dir(area.path());
        command.arg(format!("--filename={program}.data"));
        let began = std::time::Instant::now();
        let out = must(&mut command);
        let took = began.elapsed().as_secs_f64();
        let start = out.iter().position(|byte| *byte == b'{').unwrap();
        let found: Value = serde_json::from_slice(&out[start..]).unwrap();
        std::fs::remove_file(area.join(&format!("{program}.data"))).unwrap_or_default();
        (took, found)
    };
    let has_fio = have("fio", "the time of fio's verification");
    for line in [
        "--rw=randwrite --size=256k --runtime=1 --time_based",
        "--rw=randrw --size=256k --runtime=1 --time_based",
        "--rw=write --size=64m --rate=,4m --runtime=1",
        "--rw=write --size=64m --rate=,4m --runtime=1 --verify_backlog=64",
        "--rw=write --size=64m --rate=,4m --runtime=1 --time_based --verify_backlog=64",
        "--rw=write --size=256k --runtime=1 --time_based --ramp_time=1",
    ] {
        let (ours, found) = took("hakobu", line);
        let most = if has_fio { took("fio", line).0 } else { 2.0 };
        assert!(ours < most + 1.0, "{line}: {ours} s, and fio's {most} s");
        assert!(number(&found, "/jobs/0/write/total_ios") > 0, "{line}");
    }
    // What there is time for is read, once each.
    for line in ["--rw=write --size=1m --runtime=20", "--rw=write --size=1m --loops=3"] {
        let (_, found) = took("hakobu", line);
        let written = number(&found, "/jobs/0/write/total_ios");
        assert_eq!(number(&found, "/hakobu/engines/0/verified"), written, "{line}");
    }
}
