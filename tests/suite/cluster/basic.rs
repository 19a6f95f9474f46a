//! A run without faults: what each step does, and that all of them are one sync.

use super::{Stage, tree};
use crate::common::case::on_terminal;
use crate::common::diff::{Fields, diff};
use crate::common::grow::set_mtime;
use crate::common::snapshot::Snapshot;
use crate::common::{have, must, side_by_side, soon};
use crate::sweep::fault::{behind, strace};
use serde_json::Value;
use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

fn old_target(stage: &Stage) {
    tree(&stage.dst(), 7);
    let dst = stage.dst();
    for name in ["extraneous", "d1/extraneous"] {
        std::fs::write(dst.join(name), b"to be removed").unwrap();
    }
    for dir in 3..6 {
        std::fs::remove_dir_all(dst.join(format!("d{dir}"))).unwrap();
    }
}

#[test]
fn a_run_makes_what_one_sync_makes() {
    for options in ["-a", "-aH", "-aHAX", "-rlt --size-only"] {
        let stage = Stage::new();
        tree(&stage.src(), 1);
        old_target(&stage);
        must(Command::new("cp").arg("-a").arg(stage.dst()).arg(stage.area.join("one")));
        let before = Snapshot::of(&stage.dst());
        stage.ok(&format!("cluster plan {options} --delete --shard-size=1M --run RUN SRC/ DST"));
        let planned = diff(&before, &Snapshot::of(&stage.dst()), &Fields::ALL, 5);
        assert!(planned.is_empty(), "a plan changed the target: {planned:?}");
        stage.workers(4);
        assert!(stage.dst().join("extraneous").exists(), "workers remove nothing");
        stage.ok("cluster collect RUN");
        stage.ok(&format!("sync {options} --delete SRC/ ONE"));
        let one = Snapshot::of(&stage.area.join("one"));
        let wrong = diff(&one, &Snapshot::of(&stage.dst()), &Fields::ALL, 20);
        assert!(wrong.is_empty(), "{options}:\n  {}", wrong.join("\n  "));
    }
}

/// Without times a second run would copy everything, and with `-I` as well; the last word on a run of many machines is no
/// second run.
#[test]
fn collect_does_not_repeat_what_workers_did() {
    for options in ["-r", "-aHI"] {
        let stage = Stage::new();
        tree(&stage.src(), 8);
        stage.ok(&format!("cluster plan {options} --shard-size=1M --run RUN SRC/ DST"));
        stage.workers(2);
        // What changes meanwhile is sent, and nothing else.
        let changed = stage.src().join("changed");
        std::fs::write(&changed, b"new since the plan").unwrap();
        let run = stage.ok("cluster collect --json RUN");
        let lines = run.out();
        let lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let summary = lines.into_iter().find(|line| line["event"] == "summary").unwrap();
        assert_eq!((&summary["files"], &summary["failed"]), (&1.into(), &0.into()), "{run}");
        assert_eq!(std::fs::read(stage.dst().join("changed")).unwrap(), b"new since the plan");
        if options == "-aHI" {
            stage.same(&Fields::ALL);
        }
    }
}

/// A worker does shards together that take a few milliseconds each; each has its result all the same.
#[test]
fn small_shards_are_done_together() {
    const FILES: u64 = 3_000;
    for options in ["-a", "-aH"] {
        let stage = Stage::new();
        for n in 0..FILES {
            let folder = stage.src().join(format!("d{}", n / 100));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(format!("f{n}")), format!("content {n}")).unwrap();
        }
        stage.ok(&format!("cluster plan {options} --shard-size=1 --run RUN SRC/ DST"));
        for n in 0..3 {
            std::fs::remove_file(stage.src().join(format!("d1{n}/f1{n}00"))).unwrap();
        }
        stage.ok("cluster work RUN");
        let results = stage.results();
        let sum = |of: &str| results.iter().map(|result| result[of].as_u64().unwrap()).sum::<u64>();
        let numbers: HashSet<u64> =
            results.iter().map(|result| result["shard"].as_u64().unwrap()).collect();
        assert!(numbers.len() == results.len() && results.len() > 100, "{}", results.len());
        assert_eq!(sum("files") + sum("vanished"), sum("entries").min(FILES), "{results:?}");
        let together = results.iter().filter(|result| result["from_s"] == result["to_s"]).count();
        assert!(together * 2 > results.len(), "{together} of {}", results.len());
        stage.ok("cluster collect RUN");
        stage.same(&Fields::ALL);
    }
}

/// Rules for extended attributes hold on workers, too.
#[test]
fn workers_heed_rules_for_extended_attributes() {
    let stage = Stage::new();
    tree(&stage.src(), 4);
    for name in ["user.kept", "user.secret"] {
        let file = stage.src().join("d1/e/f3 \u{e4}");
        must(Command::new("setfattr").args(["-n", name, "-v", "x"]).arg(file));
    }
    stage.ok("cluster plan -aX --filter=-x_user.secret --run RUN SRC/ DST");
    stage.workers(2);
    stage.ok("cluster collect RUN");
    let copy = stage.dst().join("d1/e/f3 \u{e4}");
    let shown =
        Command::new("getfattr").args(["-d", "--absolute-names"]).arg(copy).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("user.kept") && !shown.contains("user.secret"), "{shown}");
}

/// A name that a worker could not transfer may look as if it were done.
#[test]
fn collect_repeats_what_workers_may_have_left() {
    let stage = Stage::new();
    for name in ["a", "b"] {
        std::fs::create_dir_all(stage.src()).unwrap();
        std::fs::create_dir_all(stage.dst()).unwrap();
        std::fs::write(stage.src().join(name), b"new").unwrap();
        set_mtime(&stage.src().join(name), 100, 0);
    }
    // Newer, as long, and other content: `-r` replaces it.
    std::fs::write(stage.dst().join("b"), b"old").unwrap();
    stage.ok("cluster plan -r --run RUN SRC/ DST");
    // No worker does anything.
    stage.ok("cluster collect RUN");
    assert_eq!(std::fs::read(stage.dst().join("b")).unwrap(), b"new");
}

#[test]
fn workers_do_all_of_it_and_each_shard_once() {
    let stage = Stage::new();
    tree(&stage.src(), 2);
    stage.ok("cluster plan -aH --shard-size=1M --run RUN SRC/ DST");
    let plan = stage.plan();
    let shards = plan["shards"].as_array().unwrap().len();
    assert!(shards >= 8, "only {shards} shards");
    let entries: u64 =
        plan["shards"].as_array().unwrap().iter().map(|s| s["entries"].as_u64().unwrap()).sum();
    assert_eq!(plan["entries"], entries);
    stage.workers(4);
    let results = stage.results();
    let numbers: HashSet<u64> = results.iter().map(|r| r["shard"].as_u64().unwrap()).collect();
    assert_eq!((results.len(), numbers.len()), (shards, shards));
    assert!(results.iter().all(|r| r["generation"] == 0 && r["failed"] == 0), "{results:?}");
    let tries = std::fs::read_dir(stage.run().join("claims")).unwrap().count();
    assert_eq!(tries, shards, "claims");
    // All names of a file were made by one worker, so nothing is left for the last sync but the
    // attributes of directories.
    let fields = Fields { mode: false, owner: false, dir_times: false, ..Fields::ALL };
    stage.same(&fields);
    let run = stage.ok("cluster collect --json RUN");
    let lines: Vec<Value> =
        run.out().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let summary = lines.iter().find(|line| line["event"] == "summary").unwrap();
    assert_eq!((&summary["files"], &summary["failed"]), (&0.into(), &0.into()), "{run}");
    let report = lines.iter().find(|line| line["event"] == "cluster").unwrap();
    assert_eq!((&report["exit_code"], &report["done"]["shards"]), (&0.into(), &shards.into()));
    stage.same(&Fields::ALL);
    // Both may be repeated.
    stage.ok("cluster work RUN");
    stage.ok("cluster collect RUN");
    stage.same(&Fields::ALL);
}

/// Each call is a round trip to a network file system.
#[test]
fn a_worker_opens_each_source_once_and_examines_it_no_more() {
    if !have("strace", "calls of a worker") {
        return;
    }
    let stage = Stage::new();
    let folder = stage.src().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let names: Vec<String> = (0..300).map(|number| format!("name{number:03}")).collect();
    names.iter().for_each(|name| std::fs::write(folder.join(name), name).unwrap());
    stage.ok("cluster plan -a --shard-size=1G --run RUN SRC/ DST");
    assert_eq!(stage.plan()["shards"].as_array().unwrap().len(), 1);
    let log = stage.area.join("log");
    must(&mut behind(strace(&log), &stage.command("cluster work RUN", None)));
    let log = std::fs::read_to_string(&log).unwrap();
    for name in names {
        let word = format!("\"{name}\"");
        let calls: Vec<&str> = log.lines().filter(|line| line.contains(&word)).collect();
        let opened =
            calls.iter().filter(|line| line.contains("openat") && line.contains("O_RDONLY"));
        assert_eq!(opened.count(), 1, "{calls:#?}");
        let looked = calls.iter().filter(|line| line.contains("stat"));
        assert_eq!(looked.count(), 0, "{calls:#?}");
    }
    stage.ok("cluster collect RUN");
    stage.same(&Fields::ALL);
}

#[test]
fn a_large_file_is_a_shard_of_its_own() {
    let stage = Stage::new();
    for (name, mib) in [("a", 70_u64), ("b", 300), ("c", 90)] {
        let file = std::fs::File::create(stage.src().join(name)).unwrap();
        file.set_len(mib << 20).unwrap();
        set_mtime(&stage.src().join(name), 1_700_000_000, 0);
    }
    for small in 0..50 {
        let path = stage.src().join(format!("small{small}"));
        std::fs::write(&path, b"x").unwrap();
    }
    stage.ok("cluster plan -a --shard-size=64M --run RUN SRC/ DST");
    let plan = stage.plan();
    let entries: Vec<u64> = plan["shards"]
        .as_array()
        .unwrap()
        .iter()
        .map(|shard| shard["entries"].as_u64().unwrap())
        .collect();
    assert_eq!(entries.iter().filter(|count| **count == 1).count(), 3, "{entries:?}");
    assert!(entries.contains(&50), "{entries:?}");
    stage.workers(1);
    stage.ok("cluster collect RUN");
    stage.same(&Fields::ALL);
}

#[test]
fn a_list_of_files_and_several_sources_can_be_planned() {
    let stage = Stage::new();
    tree(&stage.src(), 3);
    std::fs::write(stage.area.join("list"), "d1/e\nd2/linked\nempty1\n").unwrap();
    stage.ok("cluster plan -ar --files-from=list --run RUN SRC/ DST");
    stage.workers(2);
    stage.ok("cluster collect RUN");
    stage.ok("sync -ar --files-from=list SRC/ ONE");
    let wrong = |what: &str, fields: &Fields| {
        let one = Snapshot::of(&stage.area.join("one"));
        let wrong = diff(&one, &Snapshot::of(&stage.dst()), fields, 20);
        assert!(wrong.is_empty(), "{what}\n  {}", wrong.join("\n  "));
    };
    // The top of a list is made now, by each of the two.
    wrong("a list", &Fields { dir_times: false, ..Fields::ALL });
    std::fs::remove_dir_all(stage.run()).unwrap();
    stage.ok("cluster plan -aR --run RUN src/d1 SRC/d2 SRC/./d3 DST");
    stage.workers(2);
    stage.ok("cluster collect RUN");
    stage.ok("sync -aR src/d1 SRC/d2 SRC/./d3 ONE");
    wrong("several sources", &Fields { dir_times: false, ..Fields::ALL });
}

#[test]
fn sync_does_all_steps_by_itself() {
    let stage = Stage::new();
    tree(&stage.src(), 5);
    old_target(&stage);
    let run = stage.ok("sync -aH --delete --shard-size=1M --cluster=local:3 SRC/ DST");
    run.says(&["3 workers did"]);
    stage.same(&Fields::ALL);
    let left: Vec<_> = std::fs::read_dir(stage.area.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("run"))
        .collect();
    assert!(left.is_empty(), "run folders stay: {left:?}");
    // A folder that was named stays; a second run over equal trees has nothing to do.
    stage.ok("sync -aH --delete --cluster=local:2 --run RUN SRC/ DST");
    assert_eq!(stage.plan()["entries"], 0);
}

#[test]
fn limits_are_divided_by_the_workers() {
    let copies = |stage: &Stage, plan: &str| {
        stage.ok(plan);
        let begun = std::time::Instant::now();
        stage.ok("cluster work --workers=4 RUN");
        assert!(begun.elapsed().as_secs_f64() > 2.5, "{:?}", begun.elapsed());
        stage.ok("cluster collect RUN");
        stage.same(&Fields::ALL);
    };
    side_by_side([true, false], |of_bytes| {
        let stage = Stage::new();
        let file = |name: String, bytes: Vec<u8>| {
            std::fs::write(stage.src().join(&name), bytes).unwrap();
            set_mtime(&stage.src().join(&name), 1_700_000_000, 0);
        };
        if of_bytes {
            // A quarter of 4 MiB a second; without the division all of them take a second and a half.
            for name in ["a", "b", "c", "d"] {
                file(name.to_owned(), vec![7; 1_500_000]);
            }
            let plan = "cluster plan -a --bwlimit=4M --shard-size=1M --run RUN SRC/ DST";
            copies(&stage, plan);
        } else {
            // Ten operations a second.
            for number in 0..40 {
                file(format!("f{number}"), b"x".to_vec());
            }
            copies(&stage, "cluster plan -a --iops-limit=40 --run RUN SRC/ DST");
        }
    });
}

/// While a shard is in hand, the next one is claimed and read.
#[test]
fn the_next_shard_is_claimed_and_read_ahead() {
    let stage = Stage::new();
    for name in ["a", "b", "c", "d"] {
        std::fs::write(stage.src().join(name), vec![7; 1_500_000]).unwrap();
        set_mtime(&stage.src().join(name), 1_700_000_000, 0);
    }
    let claims = || std::fs::read_dir(stage.run().join("claims")).map_or(0, Iterator::count);
    stage.ok("cluster plan -a --bwlimit=1M --shard-size=1M --run RUN SRC/ DST");
    assert_eq!(stage.plan()["shards"].as_array().unwrap().len(), 4);
    let worker = stage.start("cluster work RUN");
    assert!(soon(|| claims() == 2), "{} claims", claims());
    assert_eq!(stage.results().len(), 0);
    worker.wait().ok();
    assert_eq!((claims(), stage.results().len()), (4, 4));
    stage.ok("cluster collect RUN");
    // One of three workers leaves two shards for each of the others.
    std::fs::remove_dir_all(stage.run()).unwrap();
    std::fs::remove_dir_all(stage.dst()).unwrap();
    stage.ok("cluster plan -a --bwlimit=3M --shard-size=1M --run RUN SRC/ DST");
    let worker = stage.start("cluster work --workers=3 RUN");
    assert!(soon(|| !stage.results().is_empty()));
    assert!(claims() <= 1 + stage.results().len(), "{} claims", claims());
    worker.wait().ok();
    stage.ok("cluster collect RUN");
    stage.same(&Fields::ALL);
}

// Output of `status`: once, as JSON, for Prometheus, and live on a terminal.

#[test]
fn status_says_how_far_a_run_is() {
    let stage = Stage::new();
    tree(&stage.src(), 4);
    stage.ok("cluster plan -a --shard-size=1M --run RUN SRC/ DST");
    let status = |stage: &Stage| -> Value {
        let run = stage.ok("cluster status --json RUN");
        serde_json::from_str(run.out().trim()).unwrap()
    };
    let shards = stage.plan()["shards"].as_array().unwrap().len();
    let before = status(&stage);
    assert_eq!((&before["shards"], &before["done"]["shards"]), (&shards.into(), &0.into()));
    stage.workers(2);
    let after = status(&stage);
    assert_eq!(after["done"]["shards"], shards);
    assert_eq!(after["workers"].as_array().unwrap().len(), 2);
    assert!(after["workers"].as_array().unwrap().iter().all(|w| w["state"] == "ended"), "{after}");
    assert_eq!(after["collected"], false);
    let text = stage.area.join("metrics.prom");
    let line = format!("cluster status --textfile={} RUN", text.display());
    assert!(stage.ok(&line).out().contains(&format!("{shards} of {shards} shards")));
    let metrics = std::fs::read_to_string(&text).unwrap();
    assert!(metrics.contains("# TYPE hakobu_cluster_shards_done gauge\n"), "{metrics}");
    let done = metrics.lines().find(|line| line.starts_with("hakobu_cluster_shards_done{"));
    assert!(done.unwrap().ends_with(&format!(" {shards}")), "{metrics}");
    assert_eq!(std::fs::metadata(stage.run()).unwrap().permissions().mode() & 0o777, 0o700);
    stage.ok("cluster collect RUN");
    assert_eq!(status(&stage)["collected"], true);
}

#[test]
fn status_is_live_on_a_terminal() {
    if !have("script", "a terminal") {
        return;
    }
    let stage = Stage::new();
    for name in ["a", "b", "c"] {
        std::fs::write(stage.src().join(name), vec![7; 3_000_000]).unwrap();
        set_mtime(&stage.src().join(name), 1_700_000_000, 0);
    }
    stage.ok("cluster plan -a --bwlimit=1M --shard-size=1M --run RUN SRC/ DST");
    let worker = stage.start("cluster work --stale-after=2s RUN");
    assert!(soon(|| stage.dst().exists()));
    // It ends when all shards are done.
    let shown = on_terminal(&stage.command("cluster status RUN", None));
    let screens: Vec<String> =
        shown.ok().out().split("\x1b[H\x1b[J").skip(1).map(str::to_owned).collect();
    assert!(screens.len() >= 3, "{shown}");
    assert!(screens.iter().any(|screen| screen.contains(" s left")), "{shown}");
    assert!(screens.iter().any(|screen| screen.contains("  shard ")), "{shown}");
    assert!(screens.last().unwrap().contains("3 of 3 shards"), "{shown}");
    worker.wait().ok();
    stage.ok("cluster collect RUN");
}
