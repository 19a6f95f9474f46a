//! Downloads that are stopped: nothing is left, or with `--resume` what a later run goes on with.

use crate::Stage;
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
