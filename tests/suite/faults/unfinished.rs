//! Killed while writing a file under its final name: later runs that compare names or "newer" only do not
//! take it for complete, and leave other files alone.

use crate::common::area::{Area, Fs};
use crate::common::case::Case;
use crate::common::grow::set_mtime;
use crate::faults::start;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SIZE: u64 = 6_000_000;
/// The file takes six seconds.
const SLOWLY: &str = "--bwlimit=1000 -j1";

/// Files that are older than any run.
fn fill(dir: &Path) {
    std::fs::create_dir_all(dir.join("sub")).unwrap();
    std::fs::write(dir.join("sub/large"), vec![b'x'; SIZE as usize]).unwrap();
    std::fs::write(dir.join("sub/later"), "the whole of a small file").unwrap();
    for path in ["sub/large", "sub/later", "sub", ""] {
        set_mtime(&dir.join(path), 1_000_000_000, 0);
    }
}

fn case(line: &str) -> Case {
    let case = Case::new(line, Area::tmpfs(), Area::tmpfs());
    fill(&case.src());
    case
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |there| there.len())
}

/// Runs a line that fills `sub/large` of the target, and kills it half-way.
fn kill(case: &Case, line: &str) {
    let large = case.dst().join("sub/large");
    let running = start(case, line);
    let begun = Instant::now();
    while size(&large) == 0 {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "nothing is written under the final name"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    running.signal(Signal::KILL);
    running.wait();
    let half = size(&large);
    assert!(half > 0 && half < SIZE, "{half} of {SIZE} bytes");
}

fn records(case: &Case) -> Vec<PathBuf> {
    let names = std::fs::read_dir(case.place("state/hakobu/runs")).into_iter().flatten();
    names.map(|name| name.unwrap().path()).collect()
}

/// Repeats a command line after a kill: it must replace the unfinished file.
fn heals(killed: &str, line: &str) {
    let case = case(line);
    kill(&case, killed);
    assert_eq!(records(&case).len(), 1, "the killed run left its record");
    let run = start(&case, line).wait();
    run.ok().says(&["sub/large' is unfinished", "is replaced"]);
    assert_eq!(size(&case.dst().join("sub/large")), SIZE, "{run}");
    // A second time there is nothing to say.
    let again = start(&case, line).wait();
    assert_eq!(again.ok().err(), "", "{again}");
}

#[test]
fn no_later_run_takes_a_half_written_file_for_finished() {
    let killed = format!("sync -a {SLOWLY} SRC/ DST");
    for line in [
        "sync -au SRC/ DST",
        "sync -rtu SRC/sub DST",
        "sync -a --ignore-existing SRC/ DST",
        "sync -a --existing -u SRC/ DST",
        "sync -au --size-only SRC/ DST",
        "cp -anT SRC DST",
        "cp -auT SRC DST",
        "cp -n SRC/sub/large DST/sub/",
    ] {
        heals(&killed, line);
    }
    heals(&format!("cp -a {SLOWLY} -T SRC DST"), "sync -au SRC/ DST");
}

/// The target of the later run lies above or below that of the killed one, or is reached by
/// another path.
#[test]
fn targets_that_overlap() {
    let killed = format!("sync -a {SLOWLY} SRC/ DST");
    for (line, large) in
        [("sync -au SRC/sub/ DST/sub/", "sub/large"), ("cp -n SRC/sub/large OLD/sub/", "sub/large")]
    {
        let case = case(line);
        kill(&case, &killed);
        std::os::unix::fs::symlink(case.dst(), case.old()).unwrap();
        start(&case, line).wait().ok().says(&["is unfinished"]);
        assert_eq!(size(&case.dst().join(large)), SIZE, "{line}");
    }
    let line = "sync -au SRC/ OLD/";
    let case = case(line);
    std::fs::create_dir(case.old()).unwrap();
    kill(&case, &format!("sync -a {SLOWLY} SRC/sub DST"));
    std::fs::rename(case.dst().join("sub"), case.old().join("sub")).unwrap();
    std::fs::remove_dir(case.dst()).unwrap();
    std::fs::rename(case.old(), case.dst()).unwrap();
    start(&case, "sync -au SRC/ DST").wait().ok().says(&["is unfinished"]);
    assert_eq!(size(&case.dst().join("sub/large")), SIZE, "{line}");
}

/// A move is none of the half-written file either.
#[test]
fn moves_replace_half_written_files() {
    for line in ["mv -n SRC/sub/large DST/sub/", "mv -u SRC/sub/large DST/sub/"] {
        for fs in [Fs::Tmpfs, Fs::Ext4] {
            let (Some(from), Some(to)) = (Area::new(fs, line), Area::new(Fs::Tmpfs, line)) else {
                continue;
            };
            let case = Case::new(line, from, to);
            fill(&case.src());
            kill(&case, &format!("sync -a {SLOWLY} SRC/ DST"));
            start(&case, line).wait().ok();
            assert_eq!(size(&case.dst().join("sub/large")), SIZE, "{line} from {}", fs.name());
            assert!(!case.src().join("sub/large").exists(), "{line}");
        }
    }
}

/// The promise of -u and -n holds for everything else: what a user made, before or after, stays.
#[test]
fn what_its_user_changed_stays() {
    let case = case("sync -au SRC/ DST");
    std::fs::create_dir_all(case.dst().join("sub")).unwrap();
    let older = case.dst().join("older");
    std::fs::write(&older, "mine").unwrap();
    std::fs::write(case.src().join("older"), "longer than mine").unwrap();
    set_mtime(&case.src().join("older"), 1_000_000_000, 0);
    // Times of files are as coarse as the kernel's tick: it is older for certain.
    std::thread::sleep(Duration::from_millis(50));
    kill(&case, &format!("sync -a {SLOWLY} --exclude=/older SRC/ DST"));
    // Longer than the time in which the run may still have been alive.
    std::fs::write(&older, "mine").unwrap();
    std::thread::sleep(Duration::from_secs(7));
    std::fs::write(case.dst().join("sub/later"), "cut").unwrap();
    start(&case, "sync -au SRC/ DST").wait().ok();
    let text = |path: &str| std::fs::read_to_string(case.dst().join(path)).unwrap();
    assert_eq!((text("older"), text("sub/later")), ("mine".into(), "cut".into()));
    assert_eq!(size(&case.dst().join("sub/large")), SIZE);
}

/// While another run is at work its files are not finished either; both end well.
#[test]
fn two_runs_at_once() {
    let case = case("sync -a --ignore-existing SRC/ DST");
    let large = case.dst().join("sub/large");
    let first = start(&case, &format!("sync -a {SLOWLY} SRC/ DST"));
    while size(&large) == 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    start(&case, &case.line).wait().ok();
    assert_eq!(size(&large), SIZE, "exit code 0 is a promise");
    first.wait().ok();
    assert_eq!(size(&large), SIZE);
    assert!(records(&case).is_empty());
}

/// The same command again makes it good, and the record goes.
#[test]
fn records_go() {
    let line = "sync -a SRC/ DST";
    let case = case(line);
    kill(&case, &format!("sync -a {SLOWLY} SRC/ DST"));
    start(&case, line).wait().ok();
    assert!(records(&case).is_empty());
    assert_eq!(size(&case.dst().join("sub/large")), SIZE);
    kill_again(&case);
    // Something else into the same folder does not make it good.
    std::fs::create_dir(case.old()).unwrap();
    std::fs::write(case.old().join("other"), "other").unwrap();
    set_mtime(&case.old().join("other"), 1_000_000_000, 0);
    start(&case, "sync -a OLD/ DST").wait().ok();
    assert_eq!(records(&case).len(), 1);
    start(&case, "sync -au SRC/ DST").wait().ok().says(&["is unfinished"]);
}

fn kill_again(case: &Case) {
    std::fs::remove_dir_all(case.dst()).unwrap();
    kill(case, &format!("sync -a {SLOWLY} SRC/ DST"));
}

/// Without a place for the record no file has its final name before it is whole.
#[test]
fn without_a_state_folder() {
    let case = case("sync -a SRC/ DST");
    std::fs::write(case.place("state"), "no folder").unwrap();
    let running = start(&case, &format!("sync -a {SLOWLY} SRC/ DST"));
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(size(&case.dst().join("sub/large")), 0);
    running.signal(Signal::KILL);
    running.wait();
    start(&case, &case.line).wait().ok();
    assert_eq!(size(&case.dst().join("sub/large")), SIZE);
}
