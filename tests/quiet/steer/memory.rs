//! Numbers of jobs remembered from run to run.

use crate::common::case::Run;
use crate::common::program;
use crate::server::{Server, Stage};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// A distant server, and work for some seconds.
fn far(stage: &Stage) -> Server<'_> {
    stage.null("--keys 12000 --object-size 100 --latency 50ms")
}

const LINE: &str = "sync -r --json s3://bkt/ null:";

#[track_caller]
fn first_jobs(run: &Run) -> u64 {
    run.ok().summary()["jobs_path"][0]["jobs"].as_u64().unwrap()
}

/// All files of the state folder.
fn files(stage: &Stage) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(stage.state()) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect()
}

/// The file of remembered numbers.
#[track_caller]
fn file(stage: &Stage) -> PathBuf {
    let found = files(stage);
    let of_us = |path: &&PathBuf| path.extension().is_none_or(|end| end != "lock");
    found.iter().find(of_us).unwrap_or_else(|| panic!("nothing remembered: {found:?}")).clone()
}

#[test]
fn the_second_run_begins_where_the_first_ended() {
    let stage = Stage::new();
    let server = far(&stage);
    let first = server.run(LINE);
    assert_eq!(first_jobs(&first), 32);
    file(&stage);
    let second = server.run(LINE);
    assert!(first_jobs(&second) > 32, "{second}");
    // Neither read nor written.
    let before = std::fs::read(file(&stage)).unwrap();
    let third = server.run(&format!("{LINE} --no-memory"));
    assert_eq!(first_jobs(&third), 32);
    assert_eq!(std::fs::read(file(&stage)).unwrap(), before);
    // Another place has its own memory.
    let other = server.run("sync -r --json s3://other/ null:");
    assert_eq!(first_jobs(&other), 32);
}

/// Each run starts with the number that was good under its conditions, or with the default rule.
#[test]
fn conditions_have_memories_of_their_own() {
    let stage = Stage::new();
    let server = far(&stage);
    let with = |before: &str, line: &str| first_jobs(&server.run_by(before, line));
    assert_eq!(with("", LINE), 32);
    assert!(with("", LINE) > 32);
    for (before, line) in [
        ("taskset -c 0", LINE.to_owned()),
        ("nice -n 7", LINE.to_owned()),
        ("", format!("{LINE} --nice=5")),
        ("ionice -c 3", LINE.to_owned()),
        ("", format!("{LINE} --bwlimit=100MB")),
        ("", format!("{LINE} --rps-limit=100000")),
        ("", format!("{LINE} --memory=200MB")),
    ] {
        assert_eq!(with(before, &line), 32, "{before} {line}");
        assert!(with("", LINE) > 32, "after {before} {line}");
    }
    // Each one has learned separately; other tests may have had this one's CPU meanwhile.
    assert!((0..3).any(|_| with("taskset -c 0", LINE) > 32));
}

/// A copy on one CPU does not reduce the initial number of copies that may use all CPUs.
#[test]
fn one_cpu_teaches_nothing_to_others() {
    let stage = Stage::new();
    for folder in 0..10 {
        super::files(&stage.src().join(format!("d{folder}")), 1500, 100);
    }
    let copy = |before: &str, more: &str| {
        let _ = std::fs::remove_dir_all(stage.dst());
        let own = program();
        let (from, to) = (format!("{}/", stage.src().display()), stage.dst());
        let mut words: Vec<&OsStr> = before.split_whitespace().map(OsStr::new).collect();
        words.extend([own.as_os_str(), "sync".as_ref(), "-a".as_ref(), "--json".as_ref()]);
        words.extend(more.split_whitespace().map(OsStr::new));
        words.extend([OsStr::new(&from), to.as_os_str()]);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("XDG_STATE_HOME", stage.area.join("home/state"));
        first_jobs(&Run::new(format!("{before} sync {more}"), command.output().unwrap()))
    };
    let by_rule = copy("", "--no-memory");
    for (before, more) in [("taskset -c 0", ""), ("nice -n 19", ""), ("", "--iops-limit=9000")] {
        copy(before, more);
        let first = copy("", "");
        assert!(first >= by_rule, "{first} of {by_rule} after {before} {more}");
    }
}

/// A number below the default rule counts once two runs have found it.
#[test]
fn one_run_does_not_bring_the_first_number_down() {
    let stage = Stage::new();
    let server = far(&stage);
    server.run(LINE).ok();
    let path = file(&stage);
    let text = std::fs::read_to_string(&path).unwrap();
    let first_of = |runs: u32| {
        let mut memory: serde_json::Value = serde_json::from_str(&text).unwrap();
        for entry in memory["seeds"].as_array_mut().unwrap() {
            entry["jobs"] = 1.into();
            entry["runs"] = runs.into();
        }
        std::fs::write(&path, memory.to_string()).unwrap();
        first_jobs(&server.run(LINE))
    };
    assert_eq!(first_of(1), 32);
    assert_eq!(first_of(2), 1);
}

#[test]
fn no_memory_leaves_no_file() {
    let stage = Stage::new();
    let server = far(&stage);
    server.run(&format!("{LINE} --no-memory")).ok();
    assert!(files(&stage).is_empty());
}

#[test]
fn a_damaged_memory_is_told_before_anything_moves() {
    let stage = Stage::new();
    let server = far(&stage);
    server.run(LINE).ok();
    let path = file(&stage);
    std::fs::write(&path, "{\"this is\": not ours").unwrap();
    stage.source("f", 100);
    for line in ["sync -r --json SRC/ s3://bkt/", "cp -r SRC s3://bkt/", "mv SRC/f s3://bkt/"] {
        let run = server.run(line);
        run.expect(1).says(&[path.to_str().unwrap(), "--no-memory"]);
    }
    assert!(server.log("PutObject").is_empty());
    assert!(stage.src().join("f").exists());
    // The file is left alone, and has no effect on runs that do not use it.
    server.run(&format!("{LINE} --no-memory")).ok();
    server.run("sync -r --json -j 400 s3://bkt/ null:").ok();
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("{\"this is\""));
}

#[test]
fn no_place_for_a_memory_is_no_trouble() {
    let stage = Stage::new();
    let server = stage.null("--keys 2000 --object-size 100 --latency 50ms");
    for state in ["/dev/null/nowhere", "/proc/nowhere", "relative", ""] {
        let run = server.run_with(LINE, &[("XDG_STATE_HOME", state), ("HOME", "")]);
        run.ok();
        assert_eq!(run.err(), "", "{state}");
    }
    // A read-only folder.
    let dir = stage.state();
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o500)).unwrap();
    server.run(LINE).ok();
}
