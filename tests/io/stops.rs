//! Signals: what was measured until then is told, and what was laid out goes.

use crate::{area, hakobu, names, number};
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
    let run = crate::io(area.path(), line);
    let took = began.elapsed().as_secs_f64();
    assert!((1.0..6.0).contains(&took), "{took} s");
    let statuses = run.ok().out().lines().filter(|line| line.contains("; read: IOPS=")).count();
    assert!((2..=4).contains(&statuses), "{run}");
}
