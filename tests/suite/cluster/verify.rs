//! Verification of what a run transferred, on workers and by collect itself.

use super::{Stage, store, tree};
use crate::common::diff::Fields;
use crate::common::grow::set_mtime;
use crate::common::running::Running;
use crate::common::soon;
use crate::objects::server::embedded;
use crate::server::client::Served;
use serde_json::Value;
use std::path::PathBuf;

/// A run that was planned, worked on and collected.
fn collected() -> Stage {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --delete --shard-size=1M --run RUN SRC/ DST");
    stage.workers(3);
    stage.ok("cluster collect RUN");
    stage
}

fn shards(stage: &Stage) -> usize {
    stage.plan()["shards"].as_array().unwrap().len()
}

/// The folder of the verification's results.
fn results(stage: &Stage) -> PathBuf {
    let mark: Value =
        serde_json::from_slice(&std::fs::read(stage.run().join("verify.json")).unwrap()).unwrap();
    stage.run().join(format!("verify-{}", mark["id"].as_str().unwrap()))
}

fn report(stage: &Stage) -> Value {
    serde_json::from_slice(&std::fs::read(stage.run().join("report.json")).unwrap()).unwrap()
}

/// Other content of the same size, with the same time.
fn change(path: &std::path::Path) {
    let mut content = std::fs::read(path).unwrap();
    content[0] ^= 1;
    let meta = std::fs::metadata(path).unwrap();
    std::fs::write(path, content).unwrap();
    use std::os::unix::fs::MetadataExt;
    set_mtime(path, meta.mtime(), meta.mtime_nsec() as u32);
}

#[test]
fn workers_verify_a_run_that_was_collected() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --delete --shard-size=1M --run RUN SRC/ DST");
    stage.go("cluster work --verify RUN").expect(75).says(&["was not collected yet"]);
    stage.workers(2);
    stage.go("cluster work --verify RUN").expect(75).says(&["was not collected yet"]);
    stage.go("cluster submit --local=2 --verify RUN").expect(2).says(&["was not collected yet"]);
    stage.ok("cluster collect RUN");
    let workers: Vec<Running> = (0..3).map(|_| stage.start("cluster work --verify RUN")).collect();
    for worker in workers {
        worker.wait().ok();
    }
    let names = stage.results_in(results(&stage).file_name().unwrap().to_str().unwrap()).len();
    assert_eq!(names, shards(&stage));
    let status: Value =
        serde_json::from_str(stage.ok("cluster status --json RUN").out().trim()).unwrap();
    assert_eq!(status["verified"]["shards"], names);
    assert_eq!(
        (&status["verified"]["differences"], &status["verified"]["failed"]),
        (&0.into(), &0.into())
    );
    let collected = std::fs::metadata(stage.run().join("collected.json")).unwrap();
    let run = stage.ok("cluster collect --verify --json RUN");
    let proof = run.out().lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let proof = proof.unwrap();
    assert_eq!(
        (&proof["event"], &proof["exit_code"]),
        (&"cluster-verify".into(), &0.into()),
        "{run}"
    );
    // Each entry of the plan once: all but directories that are created with others.
    assert_eq!(proof["verified"]["entries"], stage.plan()["entries"]);
    assert_eq!(proof["verified"]["files"], stage.plan()["entries"]);
    assert_eq!(proof["verified"]["redone"], 0);
    assert_eq!(report(&stage)["verify"]["verified"], proof["verified"]);
    let again = std::fs::metadata(stage.run().join("collected.json")).unwrap();
    assert_eq!(collected.modified().unwrap(), again.modified().unwrap(), "it collected once more");
    stage.same(&Fields::ALL);
}

#[test]
fn differences_are_found_without_workers_too() {
    let stage = collected();
    change(&stage.dst().join("d1/e/f3 \u{e4}"));
    std::fs::remove_file(stage.dst().join("d2/e/f4 \u{e4}")).unwrap();
    std::fs::remove_file(stage.dst().join("d3/symlink")).unwrap();
    std::os::unix::fs::symlink("elsewhere", stage.dst().join("d3/symlink")).unwrap();
    // A name that the source has lost since is not a difference.
    std::fs::remove_file(stage.src().join("d4/e/f5 \u{e4}")).unwrap();
    // Begun by a worker, so that collect does not repair it first.
    let worker = stage.start("cluster work --verify RUN");
    worker.wait().ok();
    let run = stage.go("cluster collect --verify RUN");
    run.expect(23).says(&[
        "3 names differ",
        "differs: content",
        "is missing at the target",
        "differs: link",
        "f3 \u{e4}",
    ]);
    assert_eq!(report(&stage)["verify"]["exit_code"], 23);
    let old = results(&stage);
    // Collecting once more gives the old verification up, and repairs what a sync sees.
    let run = stage.go("cluster collect --verify RUN");
    run.expect(23);
    stage.ok("cluster collect RUN");
    assert!(!stage.run().join("verify.json").exists());
    let run = stage.go("cluster collect --verify RUN");
    run.expect(23).says(&["1 name differs", "differs: content"]);
    assert_ne!(results(&stage), old);
    let repaired = stage.src().join("d1/e/f3 \u{e4}");
    std::fs::copy(&repaired, stage.dst().join("d1/e/f3 \u{e4}")).unwrap();
    stage.ok("cluster collect RUN");
    stage.ok("cluster collect --verify RUN").says(&["the same"]);
}

#[test]
fn shards_of_a_worker_that_is_gone_are_verified_by_others() {
    let stage = collected();
    stage.ok("cluster work --verify RUN");
    let results = results(&stage);
    let claims = PathBuf::from(format!("{}-claims", results.display()));
    // As if a worker on another machine had begun with this shard and died.
    for segment in std::fs::read_dir(&results).unwrap().map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&segment).unwrap();
        let others = text.split_inclusive('\n').filter(|line| !line.contains("\"shard\":0,"));
        std::fs::write(&segment, others.collect::<String>()).unwrap();
    }
    std::fs::write(claims.join("000000.0"), r#"{"token":"x","worker":"gone"}"#).unwrap();
    stage.ok("cluster collect --verify --stale-after=2s RUN");
    let done = stage.results_in(results.file_name().unwrap().to_str().unwrap());
    let done = done.iter().find(|done| done["shard"] == 0).unwrap();
    assert_eq!(done["generation"], 1);
}

#[test]
fn a_shard_that_cannot_be_read_was_not_verified() {
    let stage = collected();
    let path = stage.run().join("shards/000000.zst");
    let mut content = std::fs::read(&path).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    std::fs::write(&path, content).unwrap();
    let run = stage.go("cluster collect --verify RUN");
    run.expect(23).says(&["shard 0 was not verified", "its checksum differs"]);
}

#[test]
fn a_worker_that_verifies_can_be_interrupted() {
    let stage = Stage::with_bucket("interrupted");
    std::fs::write(stage.src().join("f"), b"content").unwrap();
    stage.ok("cluster plan -r --run RUN SRC/ BKT/p/");
    stage.workers(1);
    stage.ok("cluster collect RUN");
    // A store that never answers.
    let silent = Served::start("s3 DIR --fault silent:");
    let worker = store::worker(&stage, "cluster work --verify RUN", &silent.url());
    let claims = || {
        let names = std::fs::read_dir(stage.run()).unwrap().map(|entry| entry.unwrap().path());
        let claims = names.filter(|path| path.display().to_string().ends_with("-claims"));
        claims.map(|path| std::fs::read_dir(path).unwrap().count()).sum::<usize>()
    };
    assert!(soon(|| claims() == 1));
    worker.signal(rustix::process::Signal::TERM);
    worker.wait().expect(75).says(&["interrupted"]);
    assert_eq!(claims(), 0, "the claim stays");
    stage.ok("cluster collect --verify --stale-after=1h RUN").says(&["1 name", "the same"]);
}

#[test]
fn objects_are_verified() {
    let stage = Stage::with_bucket("verified");
    for number in 0..40 {
        let path = stage.src().join(format!("d{}/f{number}", number % 7));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("content {number}").repeat(1 + number * 7)).unwrap();
    }
    stage.ok("cluster plan -r --shard-size=4M --run RUN SRC/ BKT/p");
    stage.workers(2);
    stage.ok("cluster collect --verify RUN").says(&["40 names", "the same"]);
    // Another content of the same size, after it was collected.
    let body = std::fs::read(stage.src().join("d1/f8")).unwrap();
    embedded().put(&stage.bucket, b"p/d1/f8", &vec![b'x'; body.len()]);
    std::fs::remove_file(stage.run().join("verify.json")).unwrap();
    let run = stage.go("cluster work --verify RUN");
    run.ok();
    stage.go("cluster collect --verify RUN").expect(23).says(&["1 name differs", "d1/f8"]);
    // Down, and between prefixes.
    for (from, to) in [("BKT/p/", "DST"), ("BKT/p/", "BKT/q/")] {
        std::fs::remove_dir_all(stage.run()).unwrap();
        stage.ok(&format!("cluster plan -r --shard-size=4M --run RUN {from} {to}"));
        stage.workers(2);
        stage.ok("cluster collect --verify RUN").says(&["40 names", "the same"]);
    }
    std::fs::write(stage.dst().join("d1/f8"), vec![b'y'; body.len()]).unwrap();
    std::fs::remove_dir_all(stage.run()).unwrap();
    stage.go("verify BKT/p/ DST").expect(1);
}

#[test]
fn sync_verifies_on_the_workers() {
    let stage = Stage::new();
    tree(&stage.src(), 5);
    let run = stage.ok("sync -aH --shard-size=1M --cluster=local:3 --verify SRC/ DST");
    run.says(&["3 workers did", "verified", "the same"]);
    stage.same(&Fields::ALL);
    stage.ok("sync -aH --cluster=local:3 --verify SRC/ DST");
}

#[test]
fn what_cannot_be_verified_is_refused() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.go("sync -a --verify SRC/ DST").expect(1).says(&["go with --cluster", "hakobu verify"]);
    stage.go("cluster plan -a --verify --run RUN SRC/ DST").expect(1).says(&["collect --verify"]);
    stage.go("sync -aL --cluster=local:2 --verify SRC/ DST").expect(1).says(&["--copy-links"]);
    stage.go("cluster status --verify RUN").expect(2).says(&["not an option of cluster status"]);
    assert!(!stage.dst().exists());
    stage.ok("cluster plan -aK --run RUN SRC/ DST");
    stage.workers(1);
    stage.go("cluster collect --verify RUN").expect(1).says(&["--keep-dirlinks"]);
    stage.ok("cluster collect RUN");
    stage.go("cluster work --verify RUN").expect(65).says(&["--keep-dirlinks"]);
}
