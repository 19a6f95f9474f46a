//! SIGINT and SIGTERM: exit code 20, a hint how to continue, no incomplete files, and the hint works.

use crate::common::area::Area;
use crate::common::case::Case;
use crate::common::diff::Fields;
use crate::common::grow::age;
use crate::common::snapshot::Snapshot;
use crate::faults::start;
use rustix::process::Signal;
use std::path::Path;
use std::time::{Duration, Instant};

fn tree(root: &Path) {
    for dir in 0..20 {
        let dir = root.join(format!("d{dir}"));
        std::fs::create_dir_all(&dir).unwrap();
        for file in 0..50 {
            std::fs::write(dir.join(format!("f{file}")), vec![b'x'; 20_000]).unwrap();
        }
    }
    std::fs::write(root.join("large"), vec![b'l'; 30 << 20]).unwrap();
}

fn interrupted(signal: Signal, line: &str) {
    let case = Case::new(line, Area::tmpfs(), Area::tmpfs());
    tree(&case.src());
    age(&case.src());
    let running = start(&case, line);
    let begun = Instant::now();
    while !case.dst().join("d1").exists() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    let sent = Instant::now();
    running.signal(signal);
    let run = running.wait();
    assert!(sent.elapsed() < Duration::from_secs(5), "took {:?} to stop", sent.elapsed());
    run.expect(20);
    let text = run.err().to_lowercase();
    assert!(
        text.contains("again") || text.contains("continue") || text.contains("resume"),
        "{run}"
    );
    let (source, target) = (Snapshot::of(&case.src()), Snapshot::of(&case.dst()));
    assert!(target.entries.len() < source.entries.len(), "was not interrupted at all");
    assert!(target.not_in(&source).is_empty(), "left {:?}", target.not_in(&source));
    for (path, entry) in &target.entries {
        let from = &source.entries[path];
        let alike = entry.size == from.size && entry.mtime_s == from.mtime_s;
        assert!(!alike || entry.hash == from.hash, "an unfinished file looks finished");
    }
    case.run_line("sync -a SRC/ DST").ok();
    case.target_is_source(&Fields::ALL);
}

#[test]
fn interrupt() {
    interrupted(Signal::INT, "sync -a --bwlimit=8m SRC/ DST");
}

#[test]
fn terminate() {
    interrupted(Signal::TERM, "sync -a --bwlimit=8m SRC/ DST");
}

/// One request may come as many signals.
#[test]
fn terminate_many_times() {
    let line = "sync -a --bwlimit=4m --json SRC/ DST";
    let case = Case::new(line, Area::tmpfs(), Area::tmpfs());
    tree(&case.src());
    let running = start(&case, line);
    std::thread::sleep(Duration::from_millis(500));
    for signal in [Signal::TERM, Signal::TERM, Signal::HUP, Signal::TERM, Signal::TERM] {
        running.signal(signal);
        std::thread::sleep(Duration::from_millis(1));
    }
    let run = running.wait();
    run.expect(20);
    let last = run.out().lines().last().unwrap_or_default().to_owned();
    let summary: serde_json::Value = serde_json::from_str(&last).expect("a summary");
    assert_eq!((&summary["event"], &summary["exit_code"]), (&"summary".into(), &20.into()));
}

#[test]
fn interrupt_with_json_still_ends_with_a_summary() {
    let line = "sync -a --bwlimit=4m --json SRC/ DST";
    let case = Case::new(line, Area::tmpfs(), Area::tmpfs());
    tree(&case.src());
    let running = start(&case, line);
    std::thread::sleep(Duration::from_millis(500));
    running.signal(Signal::INT);
    let run = running.wait();
    run.expect(20);
    let last = run.out().lines().last().unwrap_or_default().to_owned();
    let summary: serde_json::Value = serde_json::from_str(&last).expect("a summary");
    assert_eq!(summary["event"], "summary");
    assert_eq!(summary["exit_code"], 20);
}
