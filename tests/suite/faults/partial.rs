//! Incomplete files: `--temp-dir`, `--partial`, `--fsync`, and what remains after an interruption or kill.

use crate::common::area::{Area, Fs};
use crate::common::case::{Case, case, case_on};
use crate::common::diff::Fields;
use crate::common::grow::age;
use crate::common::running::Running;
use crate::common::snapshot::Snapshot;
use crate::common::{have, must, program};
use crate::faults::start;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const LARGE: usize = 24 << 20;

/// Some small files and a large one that no part of is like another.
fn tree(root: &Path) {
    std::fs::create_dir_all(root.join("d")).unwrap();
    for name in ["a", "d/b", "d/c"] {
        std::fs::write(root.join(name), name).unwrap();
    }
    let mut bytes = vec![0; LARGE];
    fastrand::Rng::with_seed(7).fill(&mut bytes);
    std::fs::write(root.join("d/large"), bytes).unwrap();
    age(root);
}

/// Bytes of all files directly in a folder.
fn bytes_in(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).filter(|m| m.is_file()).map(|m| m.len()).sum()
}

/// Starts a line, and waits until a file of a folder has begun to grow.
fn start_and_see(c: &Case, line: &str, dir: &Path) -> Running {
    let running = start(c, line);
    let begun = Instant::now();
    while bytes_in(dir) < 1 << 20 {
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing grows in {}", dir.display());
        std::thread::sleep(Duration::from_millis(5));
    }
    running
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn temporary_files_are_made_where_asked() {
    for line in ["sync -a --temp-dir=OLD SRC/ DST", "sync -a -T OLD -j 8 SRC/ DST"] {
        for update in [false, true] {
            case_on(Fs::Tmpfs, Fs::Ext4, line, |c| {
                tree(&c.src());
                std::fs::create_dir(c.old()).unwrap();
                if update {
                    must(Command::new("cp").arg("-r").arg(c.src()).arg(c.dst()));
                    std::fs::write(c.dst().join("d/large"), "old").unwrap();
                }
                let slow = line.replace("SRC/", "--bwlimit=16m SRC/");
                let running = start_and_see(c, &slow, &c.old());
                if update {
                    assert_eq!(std::fs::read(c.dst().join("d/large")).unwrap(), b"old");
                } else {
                    assert!(!c.dst().join("d/large").exists(), "not before it is whole");
                }
                let made = names(&c.dst().join("d"));
                assert!(made.iter().all(|name| !name.starts_with('.')), "{made:?}");
                running.wait().ok();
                c.target_is_source(&Fields::ALL);
                assert_eq!(names(&c.old()), [""; 0], "left in the folder for temporary files");
            });
        }
    }
}

#[test]
fn a_relative_temporary_folder_is_below_the_target() {
    case("sync -a --temp-dir=tmp SRC/ DST", |c| {
        tree(&c.src());
        std::fs::create_dir_all(c.dst().join("tmp")).unwrap();
        std::fs::create_dir_all(c.oracle_dst().join("tmp")).unwrap();
        assert_eq!(c.run().code, c.oracle().code);
        c.target_is_oracles(&Fields { dir_times: false, ..Fields::ALL });
    });
}

#[test]
fn a_temporary_folder_may_lie_on_another_file_system() {
    case_on(Fs::Tmpfs, Fs::Ext4, "sync -a --temp-dir=LIST SRC/ DST", |c| {
        tree(&c.src());
        std::fs::create_dir(c.list()).unwrap();
        let run = c.run();
        run.ok();
        c.target_is_source(&Fields::ALL);
        assert_eq!(names(&c.list()), [""; 0]);
    });
}

#[test]
fn a_temporary_folder_that_is_missing_stops_the_run() {
    case("sync -a --temp-dir=OLD SRC/ DST", |c| {
        tree(&c.src());
        let run = c.run();
        assert_ne!(run.code, 0, "{run}");
        run.says(&["--temp-dir", "No such file or directory"]);
        assert!(!c.dst().join("a").exists(), "{run}");
    });
}

/// Killed while the file is in the other folder: no impostor, and the next run tidies up there.
#[test]
fn killed_with_a_temporary_folder() {
    for fs in [Fs::Tmpfs, Fs::Ext4] {
        let line = "sync -a --temp-dir=OLD --bwlimit=16m SRC/ DST";
        let (Some(from), Some(to)) = (Area::new(Fs::Tmpfs, line), Area::new(fs, line)) else {
            continue;
        };
        let c = Case::new(line, from, to);
        tree(&c.src());
        std::fs::create_dir(c.old()).unwrap();
        for _ in 0..3 {
            let running = start_and_see(&c, line, &c.old());
            std::thread::sleep(Duration::from_millis(fastrand::u64(0..200)));
            running.signal(Signal::KILL);
            assert_eq!(running.wait().code, 128 + 9);
            assert!(!c.dst().join("d/large").exists(), "under its name before it is whole");
            // Each run removes what the one before it left: all that is there is of one process (host, boot, pid, start).
            let left = names(&c.old());
            let owner = |name: &String| name.splitn(6, '-').take(5).collect::<Vec<_>>().join("-");
            let owners: BTreeSet<String> = left.iter().map(owner).collect();
            assert!(owners.len() <= 1, "{left:?}");
        }
        c.run_line("sync -a --temp-dir=OLD SRC/ DST").ok();
        c.target_is_source(&Fields::ALL);
        assert_eq!(names(&c.old()), [""; 0], "stray files");
    }
}

/// After an interruption the received data are kept as the start of the partial file, which is not taken for
/// the file.
#[test]
fn partial_keeps_a_part_and_the_rerun_completes_it() {
    for (fs, options) in
        [(Fs::Tmpfs, ""), (Fs::Ext4, ""), (Fs::Tmpfs, "--size-only"), (Fs::Tmpfs, "-u")]
    {
        for keep in [true, false] {
            let partial = if keep { "--partial" } else { "" };
            let line = format!("sync -a {options} {partial} --bwlimit=16m SRC/ DST");
            case_on(Fs::Tmpfs, fs, &line, |c| {
                tree(&c.src());
                let running = start(c, &line);
                std::thread::sleep(Duration::from_millis(800));
                running.signal(Signal::INT);
                let run = running.wait();
                run.expect(20);
                let (source, target) = (c.src().join("d/large"), c.dst().join("d/large"));
                if keep {
                    let part = std::fs::read(&target).unwrap_or_default();
                    assert!(part.len() > 1 << 20 && part.len() < LARGE, "{}: {run}", part.len());
                    let whole = std::fs::read(&source).unwrap();
                    assert!(whole.starts_with(&part), "not its beginning");
                    let time = |path: &Path| std::fs::metadata(path).unwrap().modified().unwrap();
                    assert_ne!(time(&source), time(&target), "a part has the file's time");
                } else {
                    assert!(!target.exists(), "kept without being asked");
                }
                let stray = Snapshot::of(&c.dst()).not_in(&Snapshot::of(&c.src()));
                assert!(stray.is_empty(), "{stray:?}");
                c.run_line(&format!("sync -a {options} --partial SRC/ DST")).ok();
                c.target_is_source(&Fields::ALL);
            });
        }
    }
}

/// Every file is flushed, and before its name appears; without the option none is.
#[test]
fn fsync_comes_before_the_name() {
    if !have("strace", "the order of calls") {
        return;
    }
    for line in ["sync -a --fsync SRC/ DST", "sync -a --fsync -j 4 SRC/ DST", "sync -a SRC/ DST"] {
        for update in [false, true] {
            case_on(Fs::Tmpfs, Fs::Ext4, line, |c| {
                tree(&c.src());
                if update {
                    must(Command::new("cp").arg("-r").arg(c.src()).arg(c.dst()));
                }
                let calls = "trace=fsync,fdatasync,linkat,renameat,renameat2";
                let mut strace = Command::new("strace");
                strace.args(["-f", "-qq", "-y", "-e", calls, "-o"]).arg(c.list());
                must(strace.arg(program()).args(c.words(line, &c.dst())));
                c.target_is_source(&Fields::ALL);
                let log = std::fs::read_to_string(c.list()).unwrap();
                let asked = line.contains("--fsync");
                let flushed =
                    log.lines().filter(|l| l.contains("fsync(") || l.contains("fdatasync("));
                let flushed = flushed.count();
                assert!(if asked { flushed >= 4 } else { flushed == 0 }, "{line}: {log}");
                let mut pending: Vec<&str> = Vec::new();
                for call in log.lines().filter(|_| asked) {
                    let (thread, call) = call.split_once(' ').unwrap();
                    let flush = call.contains("fsync(") || call.contains("fdatasync(");
                    let appears = call.contains("linkat(") || call.contains("renameat");
                    if flush {
                        pending.push(thread);
                    } else if appears && !call.contains("resumed") {
                        // One thread takes a file from its content to its name.
                        let at = pending.iter().position(|other| *other == thread);
                        let at =
                            at.unwrap_or_else(|| panic!("a name before the flush: {call}\n{log}"));
                        pending.remove(at);
                    }
                }
            });
        }
    }
}

/// A disk that cannot be flushed to is a failure of the file, not a detail.
#[test]
fn a_failed_flush_is_a_failure() {
    if !have("strace", "errno injection") {
        return;
    }
    case("sync -a --fsync SRC/ DST", |c| {
        tree(&c.src());
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-e", "trace=fsync", "-e", "inject=fsync,fdatasync:error=EIO"]);
        strace.arg("-o").arg(c.list()).arg(program()).args(c.words(&c.line, &c.dst()));
        let output = strace.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(23), "{said}");
        assert!(said.contains("Input/output error"), "{said}");
        assert!(!c.dst().join("d/large").exists(), "a file that was not flushed has its name");
    });
}
