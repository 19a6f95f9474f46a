//! Several concurrent runs with one target: each finds names just created by another one, retries, and ends
//! with 0; the tree is complete.

use crate::common::area::{Area, Fs};
use crate::common::case::{Case, Run, case, case_on};
use crate::common::diff::{Fields, diff};
use crate::common::grow::{Plan, age, grow, set_mtime};
use crate::common::snapshot::Snapshot;
use crate::common::xattr::Features;
use crate::common::{have, have_root, must, program, remove_tree, rounds, side_by_side, soon};
use crate::faults::start;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Many names in few directories, and beside them (`all`) every kind of entry.
fn tree(root: &Path, all: bool) {
    let area = root.parent().unwrap();
    if all {
        let plan = Plan { size_max: 100_000, ..Plan::full(Features::probe(area)) };
        grow(root, 7, &plan);
    }
    let flat = root.join("flat");
    for n in 0..150 {
        let dir = flat.join(format!("d{}", n % 3));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(format!("f{n}")), format!("content {n}")).unwrap();
        std::os::unix::fs::symlink(format!("f{n}"), dir.join(format!("l{n}"))).unwrap();
        std::fs::hard_link(dir.join(format!("f{n}")), flat.join(format!("h{n}"))).unwrap();
        must(Command::new("mkfifo").arg(dir.join(format!("p{n}"))));
    }
    age(root);
}

fn at_once(c: &Case, lines: &[&str]) {
    let running: Vec<_> = lines.iter().map(|line| start(c, line)).collect();
    let runs: Vec<Run> = running.into_iter().map(crate::common::running::Running::wait).collect();
    for run in &runs {
        // With --delete, what another run is writing at that moment is kept, and told.
        let err = run.err();
        let mut others =
            err.lines().filter(|line| !line.contains("an unfinished file of a hakobu"));
        assert!(run.code == 0 && others.next().is_none(), "{run}");
    }
    c.target_is_source(&Fields::ALL);
    let strays = Snapshot::of(&c.dst()).not_in(&Snapshot::of(&c.src()));
    assert!(strays.is_empty(), "{strays:?}");
}

fn runs_meet(line: &str, runs: usize, from: Fs, to: Fs) {
    let (Some(from), Some(to)) = (Area::new(from, line), Area::new(to, line)) else { return };
    let c = Case::new(line, from, to);
    // Empty directories are left out with -m.
    tree(&c.src(), !line.contains(" -m "));
    for round in 0..rounds(6) {
        remove_tree(&c.dst());
        // Into an empty folder, and into one that each run has to make.
        if round % 2 == 0 {
            std::fs::create_dir(c.dst()).unwrap();
        }
        at_once(&c, &vec![line; runs]);
    }
}

#[test]
fn two_runs_into_one_empty_folder() {
    runs_meet("sync -aHAX --no-memory SRC/ DST", 2, Fs::Tmpfs, Fs::Tmpfs);
    runs_meet("sync -aHAX --no-memory SRC/ DST", 2, Fs::Tmpfs, Fs::Ext4);
    runs_meet("sync -aHAX --no-memory SRC/ DST", 2, Fs::Tmpfs, Fs::Xfs);
}

#[test]
fn four_runs_into_one_empty_folder() {
    runs_meet("sync -aHAX -j 2 --no-memory SRC/ DST", 4, Fs::Tmpfs, Fs::Tmpfs);
    runs_meet("sync -aHAX --delete --no-memory SRC/ DST", 4, Fs::Ext4, Fs::Ext4);
}

#[test]
fn runs_that_name_their_files_last() {
    runs_meet("sync -aHAX -u --no-memory SRC/ DST", 3, Fs::Tmpfs, Fs::Tmpfs);
    runs_meet("sync -aHAX --fsync --no-memory SRC/ DST", 2, Fs::Tmpfs, Fs::Ext4);
    runs_meet("sync -aH -m --no-memory SRC/ DST", 2, Fs::Tmpfs, Fs::Tmpfs);
}

/// Two runs choose different first names of one file: a name that one of them linked is not left behind when the other
/// gives that run's own first name another file.
#[test]
fn names_of_one_file_stay_together() {
    const FILES: usize = 120;
    let line = "sync -aH --no-memory SRC/ DST";
    // Two at a time, so that runs are interrupted between any two calls.
    side_by_side([0, 1], |_| {
        case_on(Fs::Tmpfs, Fs::Ext4, line, |c| {
            std::fs::create_dir(c.src()).unwrap();
            for n in 0..FILES {
                let first = c.src().join(format!("a{n}"));
                let content = vec![n as u8; [0, 100, 9_860, 100_000][n / 4 % 4]];
                std::fs::write(&first, content).unwrap();
                for other in ["z", "m", "n", "b"].iter().take(1 + n % 4) {
                    std::fs::hard_link(&first, c.src().join(format!("{other}{n}"))).unwrap();
                }
            }
            age(&c.src());
            for round in 0..rounds(30) {
                remove_tree(&c.dst());
                let first = start(c, line);
                std::thread::sleep(Duration::from_micros(round * 700 % 4_000));
                for run in [start(c, line), first] {
                    run.wait().ok();
                }
                c.target_is_source(&Fields::ALL);
            }
        });
    });
}

/// What another program writes into one name of a file during the run goes into no other name.
#[test]
fn what_others_write_into_a_first_name_stays_there() {
    for options in ["-aH", "-aH --remove-source-files"] {
        let line = format!("sync {options} -j1 --bwlimit=1500 --no-memory SRC/ DST");
        case(&line, |c| {
            std::fs::create_dir(c.src()).unwrap();
            std::fs::create_dir(c.dst()).unwrap();
            for n in 0..30 {
                let first = c.src().join(format!("a{n}"));
                std::fs::write(&first, vec![n; 100_000]).unwrap();
                std::fs::hard_link(&first, c.src().join(format!("z{n}"))).unwrap();
                std::fs::write(c.dst().join(format!("z{n}")), "old").unwrap();
            }
            age(&c.src());
            let of = |name: &str, n: u8| c.dst().join(format!("{name}{n}"));
            let ino = |path: &Path| std::fs::metadata(path).map(|file| file.ino()).ok();
            let are_one = |n: u8| ino(&of("a", n)).is_some_and(|a| Some(a) == ino(&of("z", n)));
            let running = start(c, &line);
            let mut linked = None;
            assert!(soon(|| {
                linked = (0..30).find(|n| are_one(*n));
                linked.is_some()
            }));
            assert!(!(0..30).all(are_one), "the run was faster than its limit");
            let n = linked.unwrap();
            // As an editor does it.
            std::fs::write(c.dst().join("new"), "another program's").unwrap();
            std::fs::rename(c.dst().join("new"), of("a", n)).unwrap();
            running.wait().ok();
            assert_eq!(std::fs::read(of("a", n)).unwrap(), b"another program's");
            assert!(std::fs::read(of("z", n)).unwrap() == vec![n; 100_000], "{line}: content lost");
            assert!((0..30).filter(|other| *other != n).all(are_one));
        });
    }
}

/// Group, setgid bit and default ACL of a directory change while a run replaces and makes files in it, as when another
/// run is done with it: what the kernel takes from the directory stays on no file.
#[test]
fn files_are_not_of_the_group_that_another_run_gave_their_directory() {
    if !have_root("groups") || !have("setfacl", "ACLs") {
        return;
    }
    let rounds = [("-a", true), ("-a", false), ("-aA", true), ("-aA", false), ("-aHAX -u", true)];
    for (options, existing) in rounds {
        let line = format!("sync {options} -j1 --bwlimit=1500 --no-memory SRC/ DST");
        case(&line, |c| {
            let (from, to) = (c.src().join("d"), c.dst().join("d"));
            std::fs::create_dir_all(&from).unwrap();
            std::fs::create_dir_all(&to).unwrap();
            std::fs::write(to.join("other"), "").unwrap();
            for n in 0..30 {
                std::fs::write(from.join(format!("f{n}")), vec![n; 100_000]).unwrap();
                if existing {
                    std::fs::write(to.join(format!("f{n}")), "old").unwrap();
                }
            }
            age(&c.src());
            for entry in std::fs::read_dir(&to).unwrap() {
                set_mtime(&entry.unwrap().path(), 1_000_000, 0);
            }
            let is_there = |n: usize| {
                std::fs::metadata(to.join(format!("f{n}"))).is_ok_and(|file| file.len() == 100_000)
            };
            let arrived = || (0..30).filter(|n| is_there(*n)).count();
            let running = start(c, &line);
            let begun = Instant::now();
            while arrived() == 0 {
                assert!(begun.elapsed() < Duration::from_secs(60), "no file arrives");
                std::thread::sleep(Duration::from_millis(1));
            }
            must(Command::new("chgrp").arg("1000").arg(&to));
            must(Command::new("chmod").arg("g+s").arg(&to));
            if options.contains('A') {
                must(Command::new("setfacl").args(["-dm", "u:1001:rwx"]).arg(&to));
            }
            assert!(arrived() < 30, "the run was faster than its limit");
            running.wait().ok();
            let files = |root: &Path| {
                let mut tree = Snapshot::of(&root.join("d"));
                tree.entries.retain(|name, _| name.starts_with(b"f"));
                tree
            };
            let differs = diff(&files(&c.src()), &files(&c.dst()), &Fields::ALL, 20);
            assert!(differs.is_empty(), "{line}: {differs:#?}");
        });
    }
}

/// Every call that makes a name meets a name that another program made and removed again.
#[test]
fn a_name_that_appeared_is_looked_at_again() {
    if !have("strace", "errno injection") || !have_root("devices") {
        return;
    }
    case("sync -aH SRC/ DST", |c| {
        let sub = c.src().join("sub");
        std::fs::create_dir_all(&sub).unwrap();
        std::fs::write(sub.join("file"), "content").unwrap();
        std::fs::hard_link(sub.join("file"), sub.join("hard")).unwrap();
        std::os::unix::fs::symlink("file", sub.join("link")).unwrap();
        must(Command::new("mkfifo").arg(sub.join("pipe")));
        must(Command::new("mknod").arg(sub.join("null")).args(["c", "1", "3"]));
        age(&c.src());
        for (options, calls) in [
            ("-aH", &["mkdirat", "symlinkat", "mknodat", "linkat"][..]),
            ("-aHu", &["mkdirat", "symlinkat", "mknodat", "linkat", "renameat2"]),
        ] {
            for call in calls {
                for when in 1..=3 {
                    for other in [false, true] {
                        remove_tree(&c.dst());
                        std::fs::create_dir_all(c.dst().join("sub")).unwrap();
                        if other {
                            // So that the directories are not known to be empty.
                            std::fs::write(c.dst().join("other"), "x").unwrap();
                            std::fs::write(c.dst().join("sub/other"), "x").unwrap();
                            std::fs::create_dir(c.src().join("new")).unwrap();
                            age(&c.src());
                        }
                        let mut command = Command::new("strace");
                        command.env_remove("LD_LIBRARY_PATH").args(["-f", "-qq", "-o"]);
                        command.arg("/dev/null").arg("-e");
                        command.arg(format!("inject={call}:error=EEXIST:when={when}"));
                        command.arg(program()).args(["sync", options, "-j", "1", "--no-memory"]);
                        command.arg("--delete").arg(c.src().join("")).arg(c.dst());
                        let run = Run::new(format!("{call} {when}"), command.output().unwrap());
                        run.ok();
                        c.target_is_source(&Fields::ALL);
                        let _ = std::fs::remove_dir(c.src().join("new"));
                        age(&c.src());
                    }
                }
            }
        }
    });
}
