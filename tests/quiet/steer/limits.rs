//! Limits of operations, requests and memory: invalid ones are refused, others hold. Priorities of the process.

use super::files;
use crate::common::area::Fs;
use crate::common::case::{Case, case, case_on};
use crate::common::{have, must, program};
use crate::server::Stage;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn what_makes_no_sense_moves_nothing() {
    for (line, code, says) in [
        ("sync -a --iops-limit=0 SRC/ DST", 1, "invalid --iops-limit '0': not a whole number"),
        ("sync -a --iops-limit=5x SRC/ DST", 1, "invalid --iops-limit '5x': not a whole number"),
        ("sync -a --rps-limit=10 SRC/ DST", 1, "--rps-limit is for s3:// locations"),
        (
            "sync -a --memory=1000 SRC/ DST",
            1,
            "--memory is too small: this transfer needs at least 1 MiB",
        ),
        ("sync -a --memory=lots SRC/ DST", 1, "invalid --memory 'lots': not a size"),
        ("sync -a --bwlimit=1b SRC/ DST", 1, "invalid --bwlimit '1b': too small"),
        ("sync -a --bwlimit=8192P SRC/ DST", 1, "invalid --bwlimit '8192P': too large"),
        ("sync -a --bwlimit=fast SRC/ DST", 1, "invalid --bwlimit 'fast': not a size"),
        ("sync -a --nice=20 SRC/ DST", 1, "invalid --nice '20'"),
        ("sync -a --ionice=quick SRC/ DST", 1, "invalid --ionice 'quick'"),
        ("sync -a --ionice=idle:3 SRC/ DST", 1, "invalid --ionice 'idle:3'"),
        ("cp -r --iops-limit=-1 SRC DST", 2, "invalid --iops-limit '-1': not a whole number"),
        ("cp -r --rps-limit=10 SRC DST", 2, "--rps-limit is for s3:// locations"),
        ("cp -r --memory=1000 SRC DST", 1, "--memory is too small"),
        ("mv --rps-limit=10 SRC/f0 DST", 2, "--rps-limit is for s3:// locations"),
        ("mv --nice=often SRC/f0 DST", 2, "invalid --nice 'often'"),
        ("rm -r --rps-limit=10 SRC", 2, "--rps-limit is for s3:// locations"),
        ("rm -r --iops-limit=0 SRC", 2, "invalid --iops-limit '0': not a whole number"),
        ("rm -r --iops-limit=5 s3://bkt/x", 2, "--iops-limit is for"),
        ("du --iops-limit=5 s3://bkt/x", 2, "--iops-limit is for"),
        ("verify --iops-limit=5 SRC s3://bkt/x", 2, "--iops-limit is for"),
        ("verify --bwlimit=fast SRC DST", 2, "invalid --bwlimit 'fast': not a size"),
        ("cat --bwlimit=fast s3://bkt/x", 2, "invalid --bwlimit 'fast': not a size"),
        ("verify --nice=x SRC DST", 2, "invalid --nice 'x'"),
        (
            "cp -r --iops-limit=10 SRC s3://bucket/",
            2,
            "--iops-limit is for transfers between paths",
        ),
        (
            "cp --memory=5M SRC/f0 s3://bucket/",
            1,
            "--memory is too small: this transfer needs at least 16 MiB",
        ),
        (
            "pipe --memory=5M s3://bucket/f",
            2,
            "--memory is too small: this transfer needs at least 16 MiB",
        ),
    ] {
        case(line, |c| {
            files(&c.src(), 1, 7);
            let run = c.run();
            run.expect(code).says(&[says]);
            assert!(!c.dst().exists(), "{run}");
            assert_eq!(std::fs::read(c.src().join("f0")).unwrap(), b"xxxxxxx");
        });
    }
}

#[test]
fn operations_keep_their_rate() {
    // Every file costs several operations: 300 files take at least 1.2 s at 500 operations per second.
    let line = "sync -a --json --iops-limit=500 SRC/ DST";
    case_on(Fs::Tmpfs, Fs::Tmpfs, line, |c| {
        files(&c.src(), 300, 7);
        let begun = Instant::now();
        let run = c.run();
        let took_s = begun.elapsed().as_secs_f64();
        assert_eq!(run.ok().summary()["files"], 300);
        assert!(took_s > 1.1, "{took_s} s");
    });
}

#[test]
fn requests_keep_their_rate() {
    let stage = Stage::new();
    for number in 0..60 {
        stage.source(&format!("f{number}"), 100);
    }
    let server = stage.serve("");
    for (line, files, least_s) in [
        ("sync -r --json --rps-limit=40 SRC/ s3://bkt/", 60, 1.2),
        ("sync -r --json --rps-limit=40 -I s3://bkt/ DST/", 60, 1.2),
    ] {
        let begun = Instant::now();
        let run = server.run(line);
        let took_s = begun.elapsed().as_secs_f64();
        assert_eq!(run.ok().summary()["files"], files);
        // The first requests of a second may be sent at once.
        assert!(took_s > least_s, "{line}: {took_s} s");
    }
    stage.target_is_source();
    let begun = Instant::now();
    server.run("rm -r --rps-limit=1 s3://bkt/").ok();
    assert!(begun.elapsed().as_secs_f64() < 30.0);
    assert!(stage.object("f1").is_none());
}

#[test]
fn a_budget_of_memory_is_kept() {
    let stage = Stage::new();
    for number in 0..4 {
        stage.source(&format!("large{number}"), 40 << 20);
    }
    let server = stage.serve("");
    let (run, peak_kib) = server.run_measured("sync -r --json --memory=16M -j 32 SRC/ s3://bkt/");
    run.ok();
    // Memory besides the budget: code, connections, pooled buffers.
    assert!(peak_kib < 96 << 10, "{peak_kib} KiB");
    let (wide, wide_kib) = server.run_measured("sync -r -I --json -j 32 SRC/ s3://bkt/");
    wide.ok();
    assert!(wide_kib > peak_kib, "{wide_kib} KiB without a limit, {peak_kib} with one");
    server.run("sync -r --memory=16M s3://bkt/ DST/").ok();
    stage.target_is_source();
}

#[test]
fn jobs_have_room_in_the_budget() {
    let line = "sync -a --json -j 64 --memory=2M SRC/ DST";
    case(line, |c| {
        files(&c.src(), 1, 7);
        assert_eq!(c.run().ok().summary()["jobs"], 4);
    });
}

/// A copy of some seconds with these options, ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(c: &Case) -> Running {
    files(&c.src(), 1, 8 << 20);
    let words = c.words(&format!("{} --bwlimit=1m", c.line), &c.dst());
    let mut command = Command::new(program());
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null());
    Running(command.spawn().unwrap())
}

/// Niceness of a thread (field 19 of its `stat`).
fn niceness(path: &std::path::Path) -> Option<i64> {
    let text = std::fs::read_to_string(path.join("stat")).ok()?;
    text[text.rfind(')')? + 2..].split(' ').nth(16)?.parse().ok()
}

#[test]
fn every_thread_is_nice() {
    for line in ["sync -a --nice=7 SRC/ DST", "cp -r --nice 7 SRC DST"] {
        case_on(Fs::Tmpfs, Fs::Ext4, line, |c| {
            let run = start(c);
            let tasks = std::path::PathBuf::from(format!("/proc/{}/task", run.0.id()));
            let begun = Instant::now();
            loop {
                let found: Vec<i64> = std::fs::read_dir(&tasks)
                    .unwrap()
                    .filter_map(|task| niceness(&task.unwrap().path()))
                    .collect();
                if found.len() > 1 && found.iter().all(|nice| *nice == 7) {
                    break;
                }
                assert!(begun.elapsed() < Duration::from_secs(5), "{line}: {found:?}");
                std::thread::sleep(Duration::from_millis(10));
            }
        });
    }
}

#[test]
fn disks_hear_of_it() {
    if !have("ionice", "the priority for disks") {
        return;
    }
    for (line, class) in [
        ("sync -a --ionice=idle SRC/ DST", "idle"),
        ("sync -a --ionice=best-effort:6 SRC/ DST", "best-effort: prio 6"),
    ] {
        case_on(Fs::Tmpfs, Fs::Ext4, line, |c| {
            let run = start(c);
            let begun = Instant::now();
            loop {
                let said = must(Command::new("ionice").arg("-p").arg(run.0.id().to_string()));
                if String::from_utf8_lossy(&said).trim() == class {
                    break;
                }
                assert!(begun.elapsed() < Duration::from_secs(5), "{line}: {said:?}");
                std::thread::sleep(Duration::from_millis(10));
            }
        });
    }
}
