//! Signals: what was measured until then is told, and what was laid out goes.

use crate::io::{area, hakobu, names, number};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn an_interruption_has_results_and_leaves_nothing() {
    for (signal, engine) in [(Signal::INT, "psync"), (Signal::TERM, "io_uring")] {
        let area = area();
        let engine = format!("--ioengine={engine}");
        let words = [
            "io",
            "--name=a",
            "--rw=randread",
            "--size=1m",
            "--numjobs=2",
            "--group_reporting",
            &engine,
            "--time_based",
            "--runtime=60",
            "--output-format=json",
        ];
        let mut command = hakobu(area.path(), &words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while names(area.path()).len() < 2 {
            assert!(Instant::now() < until, "nothing was laid out");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(700));
        let began = Instant::now();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(began.elapsed() < Duration::from_secs(10));
        assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["hakobu"]["stopped"], true);
        assert!(number(&found, "/jobs/0/read/total_ios") > 0);
        assert_eq!(names(area.path()), Vec::<String>::new());
    }
}

#[test]
fn a_run_ends_by_itself_on_time() {
    let area = area();
    let began = Instant::now();
    let line = "--name=a --rw=randread --size=1m --time_based --runtime=1 --status-interval=300ms";
    let run = crate::io::io(area.path(), line);
    let took = began.elapsed().as_secs_f64();
    assert!((1.0..6.0).contains(&took), "{took} s");
    // Three whole reports on the way, fewer where the machine is busy, and the last one.
    let out = run.ok().out();
    let reports = out.lines().filter(|line| line.trim_start().starts_with("read: IOPS=")).count();
    assert!((2..=4).contains(&reports), "{run}");
    assert_eq!(out.matches("rw=randread").count(), 1, "the head stands there once: {run}");
}

#[test]
fn each_report_on_the_way_is_a_whole_document() {
    let area = area();
    let line = "--name=a --numjobs=2 --rw=randread --size=1m --time_based --runtime=1 \
                --status-interval=300ms --output-format=json --output=out.json";
    crate::io::io(area.path(), line).ok();
    let text = std::fs::read_to_string(area.path().join("out.json")).unwrap();
    let documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let documents: Vec<Value> = documents.collect::<Result<_, _>>().unwrap();
    assert!((2..=4).contains(&documents.len()), "{text}");
    for [before, after] in documents.array_windows() {
        for clone in 0..2 {
            let key = format!("/jobs/{clone}/read/total_ios");
            let counts = [before, after].map(|document| number(document, &key));
            assert!(counts[0] > 0 && counts[0] < counts[1], "{counts:?}");
        }
        assert_eq!(after["disk_util"].is_array(), before["disk_util"].is_array());
    }
}
