//! Workers that are killed, stopped and interrupted; sources that change; folders that are full or
//! damaged. After each of them the same commands again give what one sync gives.

use super::{Stage, tree};
use crate::common::area::Area;
use crate::common::clock::Clock;
use crate::common::diff::{Fields, diff};
use crate::common::grow::set_mtime;
use crate::common::running::Running;
use crate::common::snapshot::Snapshot;
use crate::common::{have, have_root, must, side_by_side, soon, tool_path};
use crate::sweep::fault::behind;
use rustix::process::Signal;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files that a worker needs some seconds for, under `--bwlimit=2M`.
fn slow_tree(root: &Path, version: u8) {
    for number in 0..4 {
        let path = root.join(format!("d{}/f{number}", number % 3));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, vec![version.wrapping_add(number); 4_000_000]).unwrap();
        set_mtime(&path, 1_700_000_000 + i64::from(version) * 100, 0);
    }
}

const PLAN: &str = "cluster plan -a --delete --bwlimit=2M --shard-size=1M --run RUN SRC/ DST";
const WORK: &str = "cluster work --stale-after=3s RUN";
const COLLECT: &str = "cluster collect --stale-after=3s RUN";

/// Whether anything at the target has the beginning of our temporary names.
fn strays(stage: &Stage) -> Vec<String> {
    let snapshot = Snapshot::of(&stage.dst());
    let names = snapshot.entries.keys().map(|name| String::from_utf8_lossy(name).into_owned());
    names.filter(|name| name.contains(".hakobu-")).collect()
}

fn has_begun(stage: &Stage) -> bool {
    std::fs::read_dir(stage.run().join("claims")).is_ok_and(|claims| claims.count() > 0)
        && stage.dst().exists()
}

#[test]
fn killed_workers_cost_time_and_nothing_else() {
    let stage = Stage::new();
    slow_tree(&stage.src(), 1);
    std::fs::create_dir(stage.dst()).unwrap();
    std::fs::write(stage.dst().join("extraneous"), b"x").unwrap();
    stage.ok(PLAN);
    let mut rng = fastrand::Rng::with_seed(3);
    let mut workers: Vec<Running> = (0..3).map(|_| stage.start(WORK)).collect();
    for _ in 0..4 {
        std::thread::sleep(std::time::Duration::from_millis(rng.u64(300..1200)));
        let at = rng.usize(..workers.len());
        workers[at].signal(Signal::KILL);
        workers[at] = stage.start(WORK);
    }
    for worker in workers {
        worker.wait().ok();
    }
    assert_eq!(stage.results().len(), stage.plan()["shards"].as_array().unwrap().len());
    assert!(stage.dst().join("extraneous").exists(), "a worker removed something");
    stage.ok(COLLECT);
    stage.same(&Fields::ALL);
    assert!(strays(&stage).is_empty());
}

/// Nothing of two workers is the same because they were started at the same time: where they had one name, each replaced
/// what the other wrote, and waited for it.
#[test]
fn workers_that_start_in_the_same_moment_are_two() {
    let stage = Stage::new();
    let Some(clock) = Clock::new(&stage.area) else { return };
    tree(&stage.src(), 4);
    for round in 0..3 {
        let _ = std::fs::remove_dir_all(stage.run());
        let _ = std::fs::remove_dir_all(stage.dst());
        stage.ok("cluster plan -a --shard-size=16K --run RUN SRC/ DST");
        let line = "cluster work --stale-after=3s RUN";
        let start = || {
            let mut command = stage.command(line, None);
            clock.set(&mut command, "CLOCK_STEP_NS", 500_000_000);
            Running::start(line, command)
        };
        let workers = [start(), start()];
        for worker in workers {
            worker.wait().ok();
        }
        if !clock.was_used() {
            return;
        }
        let shards = stage.plan()["shards"].as_array().unwrap().len();
        assert!(shards > 10, "{shards}");
        assert_eq!(stage.results().len(), shards, "round {round}");
        assert_eq!(stage.beats().len(), 2, "round {round}");
        stage.ok("cluster collect RUN");
        stage.same(&Fields { groups: false, ..Fields::ALL });
    }
}

#[test]
fn a_worker_that_is_asked_to_stop_gives_its_shard_back() {
    let stage = Stage::new();
    slow_tree(&stage.src(), 1);
    stage.ok(PLAN);
    let worker = stage.start(WORK);
    assert!(soon(|| has_begun(&stage)));
    worker.signal(Signal::TERM);
    worker.wait().expect(75).says(&["returned"]);
    let claims = std::fs::read_dir(stage.run().join("claims")).unwrap().count();
    assert_eq!(claims, stage.results().len(), "a claim stays");
    // There is no wait until it counts as gone.
    stage.ok("cluster work --stale-after=1h RUN");
    assert!(stage.results().iter().all(|result| result["generation"] == 0));
    stage.ok("cluster collect --stale-after=1h RUN");
    stage.same(&Fields::ALL);
}

/// A batch system signals the group, and the script around the worker passes the signal on.
#[test]
fn many_signals_are_one_request() {
    let stage = Stage::new();
    slow_tree(&stage.src(), 1);
    stage.ok(PLAN);
    let worker = stage.start(WORK);
    assert!(soon(|| has_begun(&stage)));
    for _ in 0..5 {
        worker.signal(Signal::TERM);
        std::thread::sleep(std::time::Duration::from_millis(3));
    }
    worker.wait().expect(75).says(&["returned"]);
    let claims = std::fs::read_dir(stage.run().join("claims")).unwrap().count();
    assert_eq!(claims, stage.results().len(), "a claim stays");
    stage.ok("cluster work --stale-after=1h RUN");
    stage.ok("cluster collect --stale-after=1h RUN");
    stage.same(&Fields::ALL);
}

/// The file that a worker was writing when it was stopped, in each way that files get their names.
#[test]
fn a_worker_that_stood_still_puts_nothing_old_over_new() {
    let cases = [("", false), ("", true), ("-u", true), ("--size-only", false)];
    side_by_side(cases, |(options, old_target)| {
        let stage = Stage::new();
        slow_tree(&stage.src(), 1);
        if old_target {
            slow_tree(&stage.dst(), 0);
        }
        stage.ok(&format!("{PLAN} {options}"));
        let stopped = stage.start(WORK);
        assert!(soon(|| has_begun(&stage)));
        std::thread::sleep(std::time::Duration::from_millis(700));
        stopped.signal(Signal::STOP);
        stage.start(WORK).wait().ok();
        let redone = stage.results().iter().filter(|r| r["generation"] == 1).count();
        assert!(redone > 0, "{:?}", stage.results());
        stage.ok(COLLECT);
        stage.same(&Fields::ALL);
        // Another version comes to the source and by an ordinary sync to the target.
        slow_tree(&stage.src(), 2);
        std::fs::remove_file(stage.src().join("d0/f0")).unwrap();
        stage.ok("sync -a --delete SRC/ DST");
        stopped.signal(Signal::CONT);
        let ended = stopped.wait();
        assert!(ended.code == 75 || ended.code == 0, "{ended}");
        let wrong = diff(
            &Snapshot::of(&stage.src()),
            &Snapshot::of(&stage.dst()),
            &Fields { dir_times: false, ..Fields::ALL },
            9,
        );
        assert!(wrong.is_empty(), "{options} {old_target}:\n  {}", wrong.join("\n  "));
    });
}

#[test]
fn collect_waits_for_nobody_that_is_at_work() {
    let stage = Stage::new();
    slow_tree(&stage.src(), 1);
    stage.ok(PLAN);
    let worker = stage.start(WORK);
    assert!(soon(|| has_begun(&stage)));
    stage.go(COLLECT).expect(75).says(&["still at work"]);
    assert!(!stage.run().join("collected.json").exists());
    stage.ok("cluster collect --wait --stale-after=3s RUN");
    worker.wait().ok();
    stage.same(&Fields::ALL);
}

#[test]
fn sources_that_change_after_the_plan_are_left_to_collect() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --delete --run RUN SRC/ DST");
    let changed = stage.src().join("d1/e/f3 \u{e4}");
    std::fs::write(&changed, b"this is new").unwrap();
    std::fs::remove_file(stage.src().join("d2/e/f4 \u{e4}")).unwrap();
    // Other types of the same names.
    let replaced = |name: &str| {
        let path = stage.src().join(name);
        std::fs::remove_file(&path).unwrap();
        path
    };
    std::fs::create_dir_all(replaced("d2/e/f5 \u{e4}").join("inner")).unwrap();
    std::os::unix::fs::symlink("f6 \u{e4}", replaced("d2/e/f7 \u{e4}")).unwrap();
    std::fs::write(stage.src().join("d3/newcomer"), b"nobody planned this").unwrap();
    stage.go("cluster work RUN").ok();
    let sum = |name: &str| -> u64 {
        stage.results().iter().map(|result| result[name].as_u64().unwrap()).sum()
    };
    assert_eq!((sum("changed"), sum("vanished") + sum("failed")), (3, 1));
    let problems = format!("{:?}", stage.results());
    assert!(problems.contains("it has changed since the plan was made"), "{problems}");
    for name in ["d1/e/f3 \u{e4}", "d2/e/f5 \u{e4}", "d2/e/f7 \u{e4}"] {
        let there = stage.dst().join(name).symlink_metadata().is_ok();
        assert!(!there, "{name}: a changed source was transferred");
    }
    stage.ok("cluster collect RUN").says(&["changed since the plan was made"]);
    stage.same(&Fields::ALL);
}

#[test]
fn a_damaged_shard_is_left_to_collect() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --shard-size=1M --run RUN SRC/ DST");
    let shards = stage.run().join("shards");
    let damage = |name: &str, at: usize| {
        let path = shards.join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at.min(bytes.len() - 1);
        bytes[at] ^= 0x20;
        std::fs::write(&path, bytes).unwrap();
    };
    damage("000000.zst", 40);
    std::fs::remove_file(shards.join("000001.zst")).unwrap();
    let first = stage.go("cluster work RUN");
    first.expect(65).says(&["cannot use shard"]);
    stage.go("cluster work RUN").expect(65).says(&["cannot use shard"]);
    stage.ok("cluster work RUN");
    let run = stage.ok("cluster collect RUN");
    run.says(&["shard 0 was left to collect", "its checksum differs", "is missing"]);
    stage.same(&Fields::ALL);
}

/// A file system of 512 KiB in memory.
struct Small(Area);

impl Small {
    fn new() -> Small {
        let area = Area::tmpfs();
        let mount = ["-t", "tmpfs", "-o", "size=512k", "none"];
        must(Command::new("mount").args(mount).arg(area.path()));
        Small(area)
    }

    fn fill(&self) -> PathBuf {
        let path = self.0.join("ballast");
        let mut file = std::fs::File::create(&path).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        path
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        must(Command::new("umount").arg("-l").arg(self.0.path()));
    }
}

#[test]
fn a_run_folder_that_is_full() {
    if !have_root("a full run folder") {
        return;
    }
    let volume = Small::new();
    let stage = Stage::new();
    slow_tree(&stage.src(), 1);
    let run = volume.0.join("run");
    let line = |text: &str| text.replace("RUN", run.to_str().unwrap());
    let ballast = volume.fill();
    let planned = stage.go(&line(PLAN));
    assert_eq!(planned.code, 11, "{planned}");
    planned.says(&["No space left on device"]);
    std::fs::remove_file(&ballast).unwrap();
    // The same command again.
    stage.ok(&line(PLAN));
    let worker = stage.start(&line(WORK));
    assert!(soon(|| run.join("claims").exists() && stage.dst().exists()));
    let ballast = volume.fill();
    let ended = worker.wait();
    assert_eq!(ended.code, 75, "{ended}");
    ended.says(&["No space left on device"]);
    stage.go(&line(WORK)).expect(75).says(&["No space left on device"]);
    std::fs::remove_file(&ballast).unwrap();
    stage.ok(&line(WORK));
    stage.ok(&line(COLLECT));
    stage.same(&Fields::ALL);
    assert!(strays(&stage).is_empty());
}

#[test]
fn clocks_of_machines_do_not_matter() {
    let stage = Stage::new();
    slow_tree(&stage.src(), 1);
    stage.ok(PLAN);
    let worker = stage.start(WORK);
    assert!(soon(|| has_begun(&stage)));
    // Files of a machine whose clock is an hour ahead, or behind.
    let (hour, now) = (std::time::Duration::from_secs(3600), std::time::SystemTime::now());
    for (folder, time) in [("claims", now + hour), ("workers", now - hour), ("shards", now + hour)]
    {
        for entry in std::fs::read_dir(stage.run().join(folder)).unwrap() {
            // A worker may have replaced it meanwhile.
            if let Ok(file) = std::fs::File::options().write(true).open(entry.unwrap().path()) {
                file.set_modified(time).unwrap();
            }
        }
    }
    let other = stage.start(WORK);
    worker.wait().ok();
    other.wait().ok();
    assert!(stage.results().iter().all(|result| result["generation"] == 0), "a shard was redone");
    stage.ok(COLLECT);
    stage.same(&Fields::ALL);
}

/// Stand-in for another machine: its own numbers of processes, and clocks that are ahead.
fn elsewhere(stage: &Stage, ahead_s: u32) -> Running {
    let mut unshare = Command::new(tool_path("unshare"));
    unshare.args(["--pid", "--fork", "--mount-proc", "--kill-child", "--time"]);
    unshare.args([format!("--boottime={ahead_s}"), format!("--monotonic={ahead_s}")]);
    let mut command = behind(unshare, &stage.command(WORK, None));
    command.current_dir(stage.area.path()).env("PATH", std::env::var_os("PATH").unwrap());
    Running::start(WORK, command)
}

#[test]
fn machines_whose_clocks_differ_do_no_shard_twice() {
    if !have_root("other clocks") || !have("unshare", "other clocks") {
        return;
    }
    for killed in [false, true] {
        let stage = Stage::new();
        slow_tree(&stage.src(), 1);
        stage.ok(PLAN);
        let ahead = elsewhere(&stage, 3600);
        assert!(soon(|| has_begun(&stage)));
        let others = [stage.start(WORK), elsewhere(&stage, 90_000)];
        if killed {
            ahead.signal(Signal::KILL);
            assert_eq!(ahead.wait().code, 128 + 9);
        } else {
            ahead.wait().ok();
        }
        for worker in others {
            worker.wait().ok();
        }
        let redone = stage.results().iter().filter(|result| result["generation"] != 0).count();
        assert_eq!(redone > 0, killed, "{redone} redone");
        stage.ok(COLLECT);
        stage.same(&Fields::ALL);
        assert!(strays(&stage).is_empty());
    }
}
