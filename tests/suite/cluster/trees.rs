//! Runs between paths whose names are cut into ranges: they make what one sync makes, attributes of directories included.

use super::{Stage, tree};
use crate::common::diff::{Fields, diff};
use crate::common::grow::set_mtime;
use crate::common::must;
use crate::common::running::Running;
use crate::common::snapshot::Snapshot;
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Directories of a tree, and files of each: enough for some ranges.
const DIRS: usize = 220;
const FILES: usize = 80;

/// Adds many directories of small files, some of them nested.
fn grow(root: &Path) {
    for dir in 0..DIRS {
        let path = match dir % 3 {
            0 => root.join(format!("n{dir:03}")),
            1 => root.join(format!("n{:03}/inner{dir}", dir - 1)),
            _ => root.join(format!("deep/er/n{dir:03}")),
        };
        std::fs::create_dir_all(&path).unwrap();
        for file in 0..FILES {
            let file = path.join(format!("f{file}"));
            std::fs::write(&file, format!("content {dir}")).unwrap();
            set_mtime(&file, 1_600_000_000 + dir as i64, 7);
        }
        let mode = [0o755, 0o700, 0o555][dir % 3];
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut dirs = vec![root.to_owned()];
    let mut at = 0;
    while let Some(dir) = dirs.get(at).cloned() {
        let below = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap());
        dirs.extend(below.filter(|e| e.file_type().unwrap().is_dir()).map(|e| e.path()));
        at += 1;
    }
    for dir in dirs.iter().rev() {
        set_mtime(dir, 1_650_000_000, 0);
    }
}

/// A source, and a target that has some of it, in other forms, and extraneous entries.
fn stage() -> Stage {
    let stage = Stage::new();
    tree(&stage.src(), 3);
    // Names of one file would be in several ranges.
    for dir in 0..6 {
        for name in [format!("d{dir}/linked"), format!("linked{dir}")] {
            std::fs::remove_file(stage.src().join(name)).unwrap();
        }
    }
    grow(&stage.src());
    std::fs::write(stage.src().join("n018/.rsync-filter"), "- f3\n- /extra\n").unwrap();
    set_mtime(&stage.src().join("n018"), 1_650_000_000, 0);
    stage
}

/// Makes the target that runs begin with.
fn old_target(stage: &Stage, dst: &Path) {
    must(Command::new("cp").arg("-a").arg(stage.src()).arg(dst));
    for name in ["n000", "n090/inner91", "deep/er/n101", "d3", "empty2"] {
        std::fs::remove_dir_all(dst.join(name)).unwrap();
    }
    // A directory at the place of a file, a file at the place of a directory, and extraneous trees.
    std::fs::remove_file(dst.join("n003/f1")).unwrap();
    for name in ["n003/f1/was/a/directory", "n006/extra/neous", "zzz/tree", "0/first", "deep/er/x"]
    {
        std::fs::create_dir_all(dst.join(name)).unwrap();
        std::fs::write(dst.join(name).join("file"), b"extraneous").unwrap();
    }
    std::fs::write(dst.join("empty2"), b"a file").unwrap();
    for name in ["n009/extraneous", "n018/extra", "n018/f99"] {
        std::fs::write(dst.join(name), b"x").unwrap();
    }
    std::fs::write(dst.join("n012/f7"), b"other content").unwrap();
    std::fs::set_permissions(dst.join("n015"), std::fs::Permissions::from_mode(0o711)).unwrap();
}

fn cuts(stage: &Stage) -> usize {
    stage.plan()["cuts"].as_array().unwrap().len()
}

#[test]
fn ranges_between_paths_make_what_one_sync_makes() {
    for (options, source) in [
        ("-a --delete", "SRC/"),
        ("-aAX --delete-before", "SRC"),
        ("-rlpt --size-only --delete-after", "SRC/"),
        ("-a --exclude=f7 --exclude=/deep/er/x --delete", "SRC/"),
        ("-aO --delete-excluded --exclude=inner*", "SRC"),
        ("-aF --delete", "SRC/"),
        ("-a --force", "SRC/"),
    ] {
        let stage = stage();
        let inner = if source == "SRC" { "src" } else { "." };
        let (dst, one) = (stage.dst(), stage.area.join("one"));
        std::fs::create_dir(&one).unwrap();
        if inner == "src" {
            std::fs::create_dir(&dst).unwrap();
            old_target(&stage, &dst.join("src"));
        } else {
            old_target(&stage, &dst);
        }
        must(Command::new("cp").arg("-aT").arg(&dst).arg(&one));
        let before = Snapshot::of(&dst);
        stage.ok(&format!("cluster plan {options} --workers=4 --run RUN {source} DST"));
        assert!(cuts(&stage) >= 2, "{} cuts", cuts(&stage));
        let planned = diff(&before, &Snapshot::of(&dst), &Fields::ALL, 5);
        assert!(planned.is_empty(), "a plan changed the target: {planned:?}");
        stage.workers(3);
        assert!(dst.join(inner).join("zzz/tree/file").exists(), "workers remove nothing");
        assert!(stage.results().iter().all(|result| result["generation"] == 0));
        stage.ok("cluster collect RUN");
        stage.ok(&format!("sync {options} {source} ONE"));
        // With -O a directory has the time at which it was written into.
        let fields = Fields { dir_times: !options.contains('O'), ..Fields::ALL };
        let wrong = diff(&Snapshot::of(&one), &Snapshot::of(&dst), &fields, 20);
        assert!(wrong.is_empty(), "{options}:\n  {}", wrong.join("\n  "));
    }
}

/// What workers have done is not done again: collect sets attributes of directories and lists nothing.
#[test]
fn collect_sets_directories_and_transfers_nothing() {
    let stage = stage();
    stage.ok("cluster plan -a --delete --workers=4 --run RUN SRC/ DST");
    assert!(cuts(&stage) >= 2);
    stage.workers(2);
    let fields = Fields { mode: false, owner: false, dir_times: false, ..Fields::ALL };
    stage.same(&fields);
    let run = stage.ok("cluster collect --json RUN");
    let lines: Vec<Value> =
        run.out().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let summary = lines.iter().find(|line| line["event"] == "summary").unwrap();
    assert_eq!((&summary["files"], &summary["failed"]), (&0.into(), &0.into()), "{run}");
    stage.same(&Fields::ALL);
    // All of it may be repeated.
    stage.ok("cluster work RUN");
    stage.ok("cluster collect RUN");
    stage.same(&Fields::ALL);
}

/// What changes between the look and collect is kept, or sent by the next run; what came back stays.
#[test]
fn what_came_back_stays() {
    let stage = stage();
    old_target(&stage, &stage.dst());
    stage.ok("cluster plan -a --delete --workers=3 --run RUN SRC/ DST");
    stage.workers(3);
    std::fs::create_dir_all(stage.src().join("zzz/tree")).unwrap();
    std::fs::write(stage.src().join("zzz/tree/file"), b"came back").unwrap();
    std::fs::write(stage.dst().join("n009/extraneous"), b"changed since").unwrap();
    stage.ok("cluster collect RUN");
    assert!(stage.dst().join("zzz/tree/file").exists());
    assert!(stage.dst().join("n009/extraneous").exists());
    assert!(!stage.dst().join("0").exists());
    stage.ok("sync -a --delete SRC/ DST");
    stage.same(&Fields::ALL);
}

/// Processes are killed at random moments; what they left unfinished is removed.
#[test]
fn kills_between_paths_leave_nothing_behind() {
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut rng = fastrand::Rng::with_seed(seed.unwrap_or(5));
    let stage = stage();
    for large in 0..6 {
        std::fs::write(stage.src().join(format!("n0{large}0large")), vec![large; 3 << 20]).unwrap();
    }
    old_target(&stage, &stage.dst());
    stage.ok("cluster plan -a --delete --bwlimit=6M --workers=3 --run RUN SRC/ DST");
    assert!(cuts(&stage) >= 2);
    let line = "cluster work --stale-after=2s RUN";
    let mut workers: Vec<Running> = (0..3).map(|_| stage.start(line)).collect();
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(rng.u64(50..900)));
        let at = rng.usize(..workers.len());
        workers[at].signal(Signal::KILL);
        workers[at] = stage.start(line);
    }
    for worker in workers {
        worker.wait().ok();
    }
    let collect = stage.start("cluster collect --stale-after=2s RUN");
    std::thread::sleep(Duration::from_millis(rng.u64(..300)));
    collect.signal(Signal::KILL);
    collect.wait();
    stage.ok("cluster collect --stale-after=2s RUN");
    stage.same(&Fields::ALL);
}

/// Transfers between paths whose ranges would not be independent of each other are planned as a whole.
#[test]
fn what_cannot_be_cut_is_planned_as_a_whole() {
    let stage = stage();
    std::fs::create_dir_all(stage.src().join("inside")).unwrap();
    for line in ["-aH SRC/ DST", "-aR SRC/ DST", "-aK SRC/ DST", "-a SRC/ SRC/inside/"] {
        // A target inside of the source is left out, and told.
        let run = stage.go(&format!("cluster plan --workers=4 --run RUN {line}"));
        assert!(matches!(run.code, 0 | 23), "{run}");
        assert_eq!(cuts(&stage), 0, "{line}");
        std::fs::remove_dir_all(stage.run()).unwrap();
    }
}
