//! Interrupted downloads: nothing is left, or with `--resume` data for a later run.

use crate::download::Stage;
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

const SIZE: u64 = 190_000_000;
const PART_BYTES: u64 = 5 << 20;

/// Starts, waits until at least `bytes` have been written beside the target, and interrupts.
fn interrupt(stage: &Stage, line: &str, bytes: u64) {
    let mut child = stage.command(line).spawn().unwrap();
    let begun = Instant::now();
    let written = || {
        let dir = std::fs::read_dir(stage.target()).unwrap();
        let sizes = dir.map(|entry| entry.unwrap().metadata().map_or(0, |meta| meta.len()));
        sizes.sum::<u64>()
    };
    while written() < bytes && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // The first ranges end after 2.6 seconds.
    std::thread::sleep(Duration::from_secs(3));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let sent = Instant::now();
    let status = child.wait().unwrap();
    assert!(!status.success());
    assert!(sent.elapsed() < Duration::from_secs(10), "took {:?} to stop", sent.elapsed());
}

#[test]
fn a_stopped_download_leaves_nothing() {
    let stage = Stage::new("null --fault slow:key=slow,rate=2000000,in=response");
    interrupt(&stage, &format!("sync s3://bkt/slow.size-{SIZE} OUT/"), 1 << 20);
    assert_eq!(stage.names(), [""; 0]);
}

/// A copy between paths was killed: a download into the same folder does not take its half-written
/// file for one that is there.
#[test]
fn a_half_written_file_of_a_killed_copy_is_replaced() {
    let stage = Stage::new("null");
    let (name, size) = ("f.size-6000000", 6_000_000);
    let source = stage.area.join("src");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join(name), vec![b'x'; size]).unwrap();
    crate::common::grow::set_mtime(&source.join(name), 1_000_000_000, 0);
    let mut copy = std::process::Command::new(crate::common::program());
    copy.args(["sync", "-a", "-j1", "--bwlimit=1000"]).arg(source.join("")).arg(stage.target());
    let mut child = copy.env("XDG_STATE_HOME", stage.area.join("state")).spawn().unwrap();
    let written = || stage.target().join(name).metadata().map_or(0, |file| file.len());
    let begun = Instant::now();
    while written() == 0 && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    assert!((1..size as u64).contains(&written()));
    let run = stage.run(&format!("sync --ignore-existing s3://bkt/{name} OUT/"));
    assert!(run.status.success());
    assert!(String::from_utf8_lossy(&run.stderr).contains("is unfinished"), "{run:?}");
    assert!(std::fs::read(stage.target().join(name)).unwrap() == stage.content(size as u64));
    // Files written after the killed run stay.
    std::thread::sleep(Duration::from_secs(7));
    std::fs::write(stage.target().join(name), "mine").unwrap();
    stage.ok(&format!("sync --ignore-existing s3://bkt/{name} OUT/"));
    assert_eq!(written(), 4);
}

#[test]
fn finished_ranges_are_not_fetched_again_unless_they_changed() {
    let stage = Stage::new("null --fault slow:key=slow,rate=2000000,in=response");
    let line = format!("sync --resume --part-size=5MiB s3://bkt/slow.size-{SIZE} OUT/");
    interrupt(&stage, &line, 1 << 20);
    let names = stage.names();
    assert!(matches!(&names[..], [name] if name.starts_with(".hakobu-kept-")), "{names:?}");
    let state = stage.area.join("state/hakobu");
    let record = std::fs::read_dir(&state).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        path.extension().is_some_and(|end| end == "json").then_some(path)
    });
    let record = std::fs::read(record.expect("a record")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let parts = record["record"]["parts"].as_array().unwrap();
    assert!(parts.len() >= 2, "{} parts were finished", parts.len());
    // One of them is not any more what it was.
    let kept = stage.target().join(&names[0]);
    let number = parts[0]["number"].as_u64().unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(kept).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"####", (number - 1) * PART_BYTES).unwrap();
    drop(file);
    let gets = || stage.server.log(1).iter().filter(|line| line["method"] == "GET").count() as u64;
    let before = gets();
    stage.ok(&line);
    let expected = SIZE.div_ceil(PART_BYTES) - parts.len() as u64 + 1;
    // The listing of the source may be a GET, too.
    assert!((expected..=expected + 1).contains(&(gets() - before)), "{expected}");
    let name = format!("slow.size-{SIZE}");
    assert_eq!(stage.names(), [name.as_str()]);
    assert!(std::fs::read(stage.target().join(&name)).unwrap() == stage.content(SIZE));
    assert_eq!(std::fs::read_dir(&state).unwrap().count(), 0);
}
