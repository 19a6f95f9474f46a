//! Temporary names: only those made by the program are skipped, and each one is reported.

use crate::common::area::{Area, Fs};
use crate::common::case::Case;
use crate::common::grow::set_mtime;
use crate::faults::start;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Names that users may give to files.
const USERS: [&str; 6] = [
    ".hakobu-1-2-3-4-5",
    ".hakobu-deadbeef-0-0-0-0",
    ".hakobu-kept-0123456789abcdef",
    ".hakobu-",
    ".hakobu-0000000a-0000000b-0000000c-00000000000d-00000000000e-00000000",
    ".hakobu-kept-0123456789abcdef-01234567",
];

fn names(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn case(line: &str, to: Fs) -> Option<Case> {
    Some(Case::new(line, Area::new(Fs::Tmpfs, line)?, Area::new(to, line)?))
}

#[test]
fn files_of_users_are_copied_and_moved() {
    let lines = ["cp -r SRC DST", "mv SRC DST", "sync -a SRC/ DST", "sync -a SRC/ DST --delete"];
    for line in lines {
        let Some(case) = case(line, Fs::Ext4) else { return };
        std::fs::create_dir(case.src()).unwrap();
        for name in USERS {
            std::fs::write(case.src().join(name), name).unwrap();
        }
        case.run().ok();
        let mut all = USERS;
        all.sort_unstable();
        assert_eq!(names(&case.dst()), all, "{line}");
        if line.starts_with("mv") {
            assert!(!case.src().exists());
        }
    }
}

/// Names that the source does not have are extraneous, regardless of their form.
#[test]
fn files_of_users_are_extraneous() {
    let Some(case) = case("sync -a --delete SRC/ DST", Fs::Tmpfs) else { return };
    for dir in [case.src(), case.dst()] {
        std::fs::create_dir(dir).unwrap();
    }
    for name in USERS {
        std::fs::write(case.dst().join(name), name).unwrap();
    }
    case.run().ok();
    assert_eq!(names(&case.dst()), [""; 0]);
}

/// Leaves a temporary file of a killed run in `DST`, and its name.
fn stray(case: &Case) -> PathBuf {
    for (dir, byte) in [(case.old(), 1), (case.dst(), 2)] {
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("file"), vec![byte; 4_000_000]).unwrap();
        set_mtime(&dir.join("file"), 1_000_000_000 + i64::from(byte), 0);
    }
    let running = start(case, "sync -a --bwlimit=500 OLD/ DST");
    let begun = Instant::now();
    let stray = loop {
        let found = names(&case.dst()).into_iter().find(|name| name.starts_with(".hakobu-"));
        if let Some(name) = found {
            break name;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "no temporary file appears");
        std::thread::sleep(Duration::from_millis(5));
    };
    running.signal(Signal::KILL);
    running.wait();
    std::fs::remove_dir_all(case.old()).unwrap();
    case.dst().join(stray)
}

#[test]
fn ours_are_left_out_and_told() {
    for (line, code) in [
        ("cp -r DST OLD", 0),
        ("sync -a DST/ OLD", 0),
        ("sync -a --remove-source-files DST/ OLD", 0),
        ("mv DST /dev/shm/AWAY", 1),
    ] {
        let Some(case) = case(line, Fs::Ext4) else { return };
        let stray = stray(&case);
        let away = Area::tmpfs();
        let moved = away.join("moved");
        let line = line.replace("/dev/shm/AWAY", moved.to_str().unwrap());
        let run = start(&case, &line).wait();
        run.expect(code).says(&[&*stray.to_string_lossy(), "unfinished file of a hakobu run"]);
        let arrived = if moved.exists() { moved } else { case.old() };
        assert_eq!(names(&arrived), ["file"], "{run}");
        assert!(stray.exists(), "nothing of a source is removed unasked");
    }
}

/// In a target the next run removes it.
#[test]
fn ours_go_from_targets() {
    let Some(case) = case("sync -a OLD/ DST", Fs::Tmpfs) else { return };
    stray(&case);
    std::fs::create_dir(case.old()).unwrap();
    start(&case, &case.line).wait().ok();
    assert_eq!(names(&case.dst()), ["file"]);
}
