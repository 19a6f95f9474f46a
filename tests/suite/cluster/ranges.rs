//! Runs whose names are cut into ranges: workers list them, look at both ends once more, and collect has the last word.

use super::{Stage, store, tree};
use crate::common::running::Running;
use crate::common::{side_by_side, soon};
use crate::server::client::Served;
use crate::server::sign::sha256;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Names of a run: enough for some ranges.
const NAMES: usize = 8_800;

/// A server with objects below `s/` in a bucket, which are files of its folder.
struct Store {
    server: Served,
    stage: Stage,
}

impl Store {
    fn new(names: usize, options: &str) -> Store {
        let server = Served::start(&format!("s3 DIR {options}"));
        let source = server.root().join("bbb/s");
        for number in 0..names {
            let path = source.join(name(number));
            if number % 40 == 0 {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            }
            std::fs::write(path, format!("content {number}")).unwrap();
        }
        std::fs::create_dir_all(server.root().join("bbb/p")).unwrap();
        Store { server, stage: Stage { bucket: "bbb".into(), ..Stage::new() } }
    }

    /// Gives the target nine of ten objects: for tests of listings, which take a fraction of the time then.
    fn filled(self) -> Store {
        for number in (0..NAMES).filter(|number| number % 10 != 0) {
            let path = self.place("p").join(name(number));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("content {number}")).unwrap();
        }
        self
    }

    fn start(&self, line: &str) -> Running {
        store::worker(&self.stage, line, &self.server.url())
    }

    #[track_caller]
    fn ok(&self, line: &str) -> crate::common::case::Run {
        let run = self.start(line).wait();
        run.ok();
        run
    }

    fn workers(&self, count: usize) {
        let workers: Vec<Running> = (0..count).map(|_| self.start("cluster work RUN")).collect();
        for worker in workers {
            worker.wait().ok();
        }
    }

    fn place(&self, prefix: &str) -> PathBuf {
        self.server.root().join("bbb").join(prefix)
    }

    #[track_caller]
    fn same(&self) {
        let (source, target) = (files(&self.place("s")), files(&self.place("p")));
        let missing = source.iter().find(|(name, body)| target.get(*name) != Some(body));
        let extra = target.keys().find(|name| !source.contains_key(*name));
        assert!(missing.is_none() && extra.is_none(), "missing: {missing:?}, extra: {extra:?}");
    }

    /// Requests so far whose lines have all of these words.
    fn requests(&self, words: &[&str]) -> usize {
        let log = std::fs::read_to_string(self.server.area.join("log")).unwrap();
        log.lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }
}

fn name(number: usize) -> String {
    format!("d{:03}/f{number:05}", number / 40)
}

fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
            match entry.file_type().unwrap().is_dir() {
                true => dirs.push(entry.path()),
                false => {
                    let path = entry.path();
                    let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                    found.insert(name, std::fs::read(path).unwrap());
                }
            }
        }
    }
    found
}

fn status(store: &Store) -> Value {
    serde_json::from_str(store.ok("cluster status --json RUN").out().trim()).unwrap()
}

#[test]
fn workers_list_ranges_and_collect_removes_what_is_extraneous() {
    let store = Store::new(NAMES, "");
    for extraneous in ["d000/extraneous", "d219/f99999", "zzz", "0"] {
        std::fs::create_dir_all(store.place("p/d000")).unwrap();
        std::fs::create_dir_all(store.place("p/d219")).unwrap();
        std::fs::write(store.place("p").join(extraneous), b"x").unwrap();
    }
    let said = store.ok("cluster plan -r --delete --workers=4 --run RUN BKT/s/ BKT/p/");
    said.says(&["workers list them"]);
    let plan = store.stage.plan();
    let cuts = plan["cuts"].as_array().unwrap().len();
    assert!(cuts >= 2 && plan["shards"].as_array().unwrap().is_empty(), "{cuts} cuts");
    // It only takes samples.
    let listed = store.requests(&["ListObjectsV2"]);
    assert!(listed <= 2 * (cuts + 1) + 40, "{listed} pages for {cuts} cuts");
    assert_eq!(status(&store)["ranges_listed"], 0);
    store.workers(3);
    assert!(store.place("p/zzz").exists(), "a worker removed something");
    let after = status(&store);
    assert_eq!(after["ranges_listed"], after["ranges"]);
    assert_eq!(
        (&after["planned_entries"], &after["done"]["entries"]),
        (&NAMES.into(), &NAMES.into())
    );
    assert_eq!((&after["progress"], &after["done"]["redone"]), (&1.0.into(), &0.into()), "{after}");
    let before = store.requests(&["ListObjectsV2"]);
    let run = store.ok("cluster collect --json RUN");
    let summary = run.out();
    let summary = summary.lines().find(|line| line.contains("\"summary\"")).unwrap();
    let summary: Value = serde_json::from_str(summary).unwrap();
    assert_eq!((&summary["files"], &summary["deleted"]), (&0.into(), &4.into()), "{summary}");
    // It looks whether the ends are there.
    let listed = store.requests(&["ListObjectsV2"]) - before;
    assert!(listed <= 8, "collect listed {listed} pages that workers have");
    store.same();
    // All of it may be repeated.
    store.ok("cluster work RUN");
    store.ok("cluster collect RUN");
    store.same();
}

/// Objects that stand for directories.
#[test]
fn markers_of_directories_arrive() {
    let store = Store::new(NAMES, "").filled();
    let put = |key: &str| {
        let put = store.server.signed_for("PUT", &format!("/bbb/{key}"), &sha256(b""), b"");
        assert_eq!(put.status, 200, "{}", put.text());
    };
    put("s/marker/");
    put("s/d001/inner/");
    store.ok("cluster plan -r --workers=2 --run RUN BKT/s/ BKT/p/");
    assert!(!store.stage.plan()["cuts"].as_array().unwrap().is_empty());
    store.workers(2);
    assert!(store.stage.results().iter().all(|done| done["failed"] == 0));
    store.ok("cluster collect RUN");
    for key in ["p/marker/", "p/d001/inner/"] {
        let head = store.server.signed("HEAD", &format!("/bbb/{key}"), "", b"");
        assert_eq!(head.status, 200, "{key}");
    }
}

#[test]
fn what_changes_before_the_look_is_left_to_collect_and_what_came_back_stays() {
    let store = Store::new(NAMES, "").filled();
    std::fs::write(store.place("p/zzz"), b"came back").unwrap();
    std::fs::write(store.place("p/zzzz"), b"extraneous").unwrap();
    store.ok("cluster plan -r --delete --workers=2 --run RUN BKT/s/ BKT/p/");
    store.workers(2);
    // Another program brings the source of a candidate for deletion, after the workers have looked.
    std::fs::write(store.place("s/zzz"), b"came back").unwrap();
    store.ok("cluster collect RUN");
    assert!(store.place("p/zzz").exists() && !store.place("p/zzzz").exists());
    store.same();
}

#[test]
fn killed_workers_leave_ranges_and_shards_to_others() {
    let store = Store::new(NAMES, "--latency 3ms");
    std::fs::write(store.place("p/zzz"), b"extraneous").unwrap();
    store.ok("cluster plan -r --delete --workers=3 --run RUN BKT/s/ BKT/p/");
    let line = "cluster work --stale-after=2s RUN";
    let mut rng = fastrand::Rng::with_seed(7);
    let mut workers: Vec<Running> = (0..3).map(|_| store.start(line)).collect();
    for _ in 0..6 {
        std::thread::sleep(std::time::Duration::from_millis(rng.u64(50..700)));
        let at = rng.usize(..workers.len());
        workers[at].signal(rustix::process::Signal::KILL);
        workers[at] = store.start(line);
    }
    for worker in workers {
        worker.wait().ok();
    }
    assert!(store.place("p/zzz").exists(), "a worker removed something");
    store.ok("cluster collect --stale-after=2s RUN");
    store.same();
}

/// Workers that end early leave the rest, and the look at both ends, to collect.
#[test]
fn collect_finishes_what_workers_have_left() {
    let store = Store::new(NAMES, "--latency 3ms");
    std::fs::write(store.place("p/zzz"), b"extraneous").unwrap();
    store.ok("cluster plan -r --delete --workers=2 --run RUN BKT/s/ BKT/p/");
    let worker = store.start("cluster work RUN");
    let begun = || store.stage.run().join("ranges").exists();
    assert!(soon(begun));
    worker.signal(rustix::process::Signal::TERM);
    worker.wait().expect(75).says(&["returned"]);
    store.ok("cluster collect RUN");
    store.same();
}

#[test]
fn a_tree_goes_up_and_down_in_ranges() {
    let store = Store::new(1, "");
    for number in 0..NAMES {
        let path = store.stage.src().join(name(number));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("content {number}")).unwrap();
    }
    std::fs::write(store.place("p/extraneous"), b"x").unwrap();
    store.ok("cluster plan -r --delete --workers=2 --run RUN SRC/ BKT/p/");
    assert!(!store.stage.plan()["cuts"].as_array().unwrap().is_empty());
    store.workers(2);
    store.ok("cluster collect RUN");
    let source = files(&store.stage.src());
    assert_eq!(files(&store.place("p")).len(), source.len());
    std::fs::remove_dir_all(store.stage.run()).unwrap();
    std::fs::create_dir(store.stage.dst()).unwrap();
    std::fs::create_dir_all(store.stage.dst().join("d001/emptied")).unwrap();
    std::fs::write(store.stage.dst().join("d001/emptied/extraneous"), b"x").unwrap();
    store.ok("cluster plan -r --delete --workers=2 --run RUN BKT/p/ DST");
    assert!(!store.stage.plan()["cuts"].as_array().unwrap().is_empty());
    store.workers(2);
    assert!(store.stage.dst().join("d001/emptied/extraneous").exists());
    store.ok("cluster collect RUN");
    assert_eq!(files(&store.stage.dst()), source);
}

/// What killed workers left unfinished at a path is removed by collect.
#[test]
fn kills_while_objects_come_down_leave_nothing_behind() {
    let store = Store::new(NAMES, "");
    for large in 0..6 {
        std::fs::write(store.place("s").join(format!("d0{large}0-large")), vec![large; 3 << 20])
            .unwrap();
    }
    store.ok("cluster plan -r --bwlimit=6M --workers=3 --run RUN BKT/s/ DST");
    assert!(!store.stage.plan()["cuts"].as_array().unwrap().is_empty());
    let line = "cluster work --stale-after=2s RUN";
    let mut rng = fastrand::Rng::with_seed(11);
    let mut workers: Vec<Running> = (0..3).map(|_| store.start(line)).collect();
    for _ in 0..5 {
        std::thread::sleep(std::time::Duration::from_millis(rng.u64(50..900)));
        let at = rng.usize(..workers.len());
        workers[at].signal(rustix::process::Signal::KILL);
        workers[at] = store.start(line);
    }
    for worker in workers {
        // One that cannot reach a busy server leaves the rest to others, and to collect.
        let run = worker.wait();
        assert!(matches!(run.code, 0 | 75), "{run}");
    }
    store.ok("cluster collect --stale-after=2s RUN");
    assert_eq!(files(&store.stage.dst()), files(&store.place("s")));
}

#[test]
fn files_of_a_range_that_are_damaged_lose_nothing() {
    side_by_side(["ranges", "shards", "look", "candidates"], |what| {
        let store = Store::new(NAMES, "").filled();
        std::fs::write(store.place("p/zzz"), b"extraneous").unwrap();
        store.ok("cluster plan -r --delete --workers=2 --run RUN BKT/s/ BKT/p/");
        let damage = |folder: &Path| {
            for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let mut content = std::fs::read(&entry).unwrap();
                let middle = content.len() / 2;
                if let Some(byte) = content.get_mut(middle) {
                    *byte ^= 0x20;
                }
                std::fs::write(&entry, content).unwrap();
            }
        };
        let look = || {
            let names = std::fs::read_dir(store.stage.run()).unwrap();
            let paths = names.map(|entry| entry.unwrap().path());
            paths.into_iter().find(|path| {
                let name = path.file_name().unwrap().to_str().unwrap();
                path.is_dir() && name.starts_with("look-") && !name.ends_with("-claims")
            })
        };
        match what {
            "look" => {
                store.workers(1);
                damage(&look().unwrap());
                let run = store.start("cluster collect RUN").wait();
                run.expect(11).says(&["look at both ends", "collect again"]);
                assert!(store.place("p/zzz").exists(), "something was removed");
            }
            // What was to be removed was listed by the look.
            "candidates" => {
                store.workers(1);
                damage(&store.stage.run().join("shards"));
                let run = store.start("cluster collect RUN").wait();
                run.expect(11).says(&["candidates for deletion", "collect again"]);
                assert!(store.place("p/zzz").exists(), "something was removed");
            }
            folder => {
                let worker = store.start("cluster work RUN");
                assert!(soon(|| store.stage.run().join(folder).exists()));
                worker.signal(rustix::process::Signal::KILL);
                worker.wait();
                damage(&store.stage.run().join(folder));
                // Each ends at a shard that it cannot use.
                for _ in 0..40 {
                    if store.start("cluster work --stale-after=2s RUN").wait().code == 0 {
                        break;
                    }
                }
            }
        }
        store.ok("cluster collect --stale-after=2s RUN");
        store.same();
    });
}

#[test]
fn a_worker_that_is_lost_is_shown() {
    let store = Store::new(4, "");
    for number in 0..3 {
        std::fs::write(store.place("s").join(format!("large{number}")), vec![7; 3_000_000])
            .unwrap();
    }
    store.ok("cluster plan -r --bwlimit=500K --shard-size=1M --run RUN BKT/s/ BKT/p/");
    let worker = store.start("cluster work --stale-after=2s RUN");
    let pid = worker.pid();
    assert!(soon(|| !store.stage.beats().is_empty()));
    let working = status(&store);
    assert_eq!(
        (&working["workers_lost"], &working["workers"][0]["lost"]),
        (&0.into(), &false.into())
    );
    worker.signal(rustix::process::Signal::STOP);
    assert!(soon(|| status(&store)["workers_lost"] == 1));
    let text = store.ok("cluster status --once RUN").out();
    assert!(text.contains("lost: silent for") && text.contains(&format!("pid {pid}")), "{text}");
    let metrics = store.stage.area.join("metrics.prom");
    store.ok(&format!("cluster status --once --textfile={} RUN", metrics.display()));
    let metrics = std::fs::read_to_string(metrics).unwrap();
    let gauge =
        |name: &str| metrics.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(gauge("hakobu_cluster_workers_lost{").ends_with(" 1"), "{metrics}");
    assert!(gauge("hakobu_cluster_workers{").ends_with(" 0"), "{metrics}");
    worker.signal(rustix::process::Signal::KILL);
    worker.wait();
    store.ok("cluster collect --stale-after=2s RUN");
    store.same();
}

/// A plan of the format before.
#[test]
fn a_run_folder_of_another_format_is_refused_by_name() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --run RUN SRC/ DST");
    let mut plan = stage.plan();
    plan["format"] = 2.into();
    std::fs::write(stage.run().join("plan.json"), serde_json::to_vec(&plan).unwrap()).unwrap();
    for verb in ["work", "collect"] {
        let run = stage.go(&format!("cluster {verb} RUN"));
        run.expect(65).says(&[
            "format 2",
            "format 3",
            "finish the run with the program that planned it",
        ]);
    }
}

/// Kills one process at a random moment of each of some runs: the plan, a worker, collect. `HAKOBU_KILLS` says of how many
/// runs.
#[test]
fn a_kill_at_any_moment_costs_time_and_nothing_else() {
    let runs = std::env::var("HAKOBU_KILLS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(6);
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut rng = fastrand::Rng::with_seed(seed.unwrap_or(1));
    let store = Store::new(NAMES, "");
    let (source, target) = (store.place("s"), store.place("p"));
    for number in 0..NAMES {
        let path = target.join(name(number));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("content {number}")).unwrap();
    }
    for run in 0..runs {
        // Some are new, some have changed, some are extraneous.
        for change in 0..60 {
            let at = rng.usize(..NAMES);
            match change % 3 {
                0 => std::fs::write(source.join(name(at)), format!("run {run}: {change}")).unwrap(),
                1 => std::fs::write(source.join(format!("{}-{run}", name(at))), b"new").unwrap(),
                _ => std::fs::write(target.join(format!("{}+{run}", name(at))), b"extra").unwrap(),
            }
        }
        let _ = std::fs::remove_dir_all(store.stage.run());
        let lines = [
            "cluster plan -r --delete --workers=3 --run RUN BKT/s/ BKT/p/",
            "cluster work --stale-after=2s RUN",
            "cluster collect --stale-after=2s RUN",
        ];
        let kill = |worker: &Running, rng: &mut fastrand::Rng, most_ms: u64| {
            std::thread::sleep(std::time::Duration::from_millis(rng.u64(..most_ms)));
            worker.signal(rustix::process::Signal::KILL);
        };
        let victim = rng.usize(..5);
        if victim == 0 {
            let plan = store.start(lines[0]);
            kill(&plan, &mut rng, 300);
            plan.wait();
            // A plan that was not finished is made anew.
            if !store.stage.run().join("plan.json").exists() {
                let _ = std::fs::remove_dir_all(store.stage.run());
            }
        }
        if !store.stage.run().exists() {
            store.ok(lines[0]);
        }
        let mut workers: Vec<Running> = (0..3).map(|_| store.start(lines[1])).collect();
        if (1..4).contains(&victim) {
            kill(&workers[0], &mut rng, 3000);
            workers.remove(0).wait();
        }
        for worker in workers {
            worker.wait().ok();
        }
        if victim == 4 {
            let collect = store.start(lines[2]);
            kill(&collect, &mut rng, 1000);
            collect.wait();
        }
        store.ok(lines[2]);
        store.same();
    }
}

/// What a run knows of objects is not asked for again by the next one.
#[test]
fn a_second_run_asks_for_no_headers() {
    let store = Store::new(0, "");
    // Objects have ETags: files that were put into the folder of the server have none.
    for number in 0..NAMES {
        let path = store.stage.src().join(name(number));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("content {number}")).unwrap();
    }
    store.ok("sync -a SRC/ BKT/s/");
    let plan = "cluster plan -a --delete --workers=3 --run RUN BKT/s/ BKT/p/";
    store.ok(plan);
    store.workers(3);
    store.ok("cluster collect RUN");
    store.same();
    let first = store.stage.area.join("first");
    std::fs::rename(store.stage.run(), &first).unwrap();
    let before =
        (store.requests(&["HEAD"]), store.requests(&["ListObjectsV2"]), store.requests(&[""]));
    store.ok(&format!("{plan} --previous-run={}", first.display()));
    store.workers(3);
    store.ok("cluster collect RUN");
    let heads = store.requests(&["HEAD"]) - before.0;
    let listed = store.requests(&["ListObjectsV2"]) - before.1;
    let all = store.requests(&[""]) - before.2;
    assert!(heads <= 40, "{heads} headers for {NAMES} unchanged objects");
    // Both ends twice, and samples.
    assert!(all <= listed + heads + 40 && listed <= 200, "{listed} pages, {all} requests");
    store.same();
    // Somebody copies an object onto itself: its ETag and size stay, and its mtime is another one.
    let second = store.stage.area.join("second");
    std::fs::rename(store.stage.run(), &second).unwrap();
    let path = format!("/bbb/p/{}", name(7));
    let headers = format!(
        "x-amz-copy-source: /bbb/p/{}\r\nx-amz-metadata-directive: REPLACE\r\nx-amz-meta-mtime: 12345\r\n",
        name(7)
    );
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let copied = store.server.signed("PUT", &path, &headers, b"");
    assert_eq!(copied.status, 200, "{}", copied.text());
    let before = store.requests(&["HEAD"]);
    store.ok(&format!("{plan} --previous-run={}", second.display()));
    store.workers(1);
    store.ok("cluster collect RUN");
    assert!(store.requests(&["HEAD"]) > before, "nobody asked for its headers");
    let metadata = store.server.signed("HEAD", &path, "", b"");
    assert_ne!(metadata.header("x-amz-meta-mtime"), Some("12345"), "a foreign time stays");
}
