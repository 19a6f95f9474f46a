//! Numbers of jobs that are remembered from run to run.

use crate::common::case::Run;
use crate::server::{Server, Stage};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A server far away, and work for some seconds.
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
    // Another place is another memory.
    let other = server.run("sync -r --json s3://other/ null:");
    assert_eq!(first_jobs(&other), 32);
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
    // It is left alone, and in nobody's way who does not want it.
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
    // A folder that cannot be written.
    let dir = stage.state();
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o500)).unwrap();
    server.run(LINE).ok();
}
