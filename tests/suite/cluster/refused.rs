//! Refused runs: options, folders, versions, other machines.

use super::{Stage, tree};
use crate::common::case::Run;
use crate::common::diff::Fields;
use crate::common::snapshot::Snapshot;
use crate::common::{have_root, must};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn options_that_two_workers_would_make_unsafe() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    for (line, word) in [
        ("-a --inplace", "--inplace"),
        ("-ab", "--backup"),
        ("-a --append-verify", "--append"),
        ("-a --delay-updates", "--delay-updates"),
        ("-a --compare-dest=/x", "--compare-dest"),
        ("-a --delete-missing-args", "missing arguments"),
        ("-a --stop-after=5", "--stop-after"),
        ("-a --remove-source-files", "--remove-source-files"),
        ("-am", "--prune-empty-dirs"),
        ("-an", "--dry-run"),
    ] {
        let run = stage.go(&format!("cluster plan {line} --run RUN SRC/ DST"));
        run.expect(1).says(&[word, "is not supported on many machines"]);
    }
    assert!(!stage.dst().exists());
    stage.go("sync -a --run RUN SRC/ DST").expect(1).says(&["--cluster ENGINE:N"]);
    stage.go("sync -a --cluster=k8s:3 SRC/ DST").expect(1).says(&["not ENGINE:N"]);
    stage.go("cluster plan -a SRC/ DST").expect(1).says(&["--run RUN"]);
    stage.go("cluster work").expect(65);
    stage.go("cluster work --json RUN").expect(65).says(&["not an option of cluster work"]);
    stage.go("cluster frobnicate RUN").expect(2);
}

#[test]
fn secrets_stay_out_of_the_folder() {
    let stage = Stage::with_bucket("secrets");
    tree(&stage.src(), 1);
    let run =
        stage.go("cluster plan -r --endpoint-url=http://me:pass@127.0.0.1:9 --run RUN SRC/ BKT/p/");
    run.expect(1).says(&["takes no passwords"]);
    assert!(!run.err().contains("me:pass"), "{run}");
    let key = "0123456789abcdef0123456789abcdef";
    let run = stage
        .go(&format!("cluster plan -r --sse-c AES256 --sse-c-key {key} --run RUN SRC/ BKT/p/"));
    run.expect(1).says(&["--sse-c is not supported on many machines"]);
    let grep = Command::new("grep").args(["-r", key]).arg(stage.area.path()).output().unwrap();
    assert_eq!(grep.status.code(), Some(1), "a key is in a file");
    // One name is not UTF-8 and is told.
    stage.go("cluster plan -rl --run RUN SRC/ BKT/p/").expect(23);
    let secret = crate::server::client::SECRET;
    let grep = Command::new("grep").args(["-r", secret]).arg(stage.run()).output().unwrap();
    assert_eq!(grep.status.code(), Some(1), "a key is in the run folder");
}

#[test]
fn a_run_folder_inside_what_is_transferred() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    std::fs::create_dir(stage.dst()).unwrap();
    for place in ["SRC/run", "DST/run"] {
        let run = stage.go(&format!("cluster plan -aH --run {place} SRC/ DST"));
        run.expect(1).says(&["lies inside"]);
    }
    // Relative names of folders that do not exist yet, seen from the source.
    for place in ["run", "new/run"] {
        let mut plan = stage.command(&format!("cluster plan -aH --run {place} . DST"), None);
        let run = Run::new(place.to_owned(), plan.current_dir(stage.src()).output().unwrap());
        run.expect(1).says(&["lies inside"]);
        assert!(!stage.src().join(place).exists());
    }
    assert!(!stage.src().join("run").exists());
}

#[test]
fn a_folder_that_is_not_ours() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --run RUN SRC/ DST");
    let mode = |mode| {
        std::fs::set_permissions(stage.run(), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o755);
    for (line, code) in [("work", 65), ("collect", 65), ("status", 1)] {
        stage.go(&format!("cluster {line} RUN")).expect(code).says(&["other users have access"]);
    }
    mode(0o700);
    if have_root("a run folder of another user") {
        must(Command::new("chown").arg("1234").arg(stage.run()));
        stage.go("cluster work RUN").expect(65).says(&["it belongs to user 1234"]);
        must(Command::new("chown").arg("0").arg(stage.run()));
    }
    assert!(!stage.dst().exists());
    let link = stage.area.join("link");
    std::os::unix::fs::symlink(stage.run(), &link).unwrap();
    stage.go(&format!("cluster work {}", link.display())).expect(65);
    stage.ok("cluster work RUN");
    stage.ok("cluster collect RUN");
    stage.same(&Fields::ALL);
}

#[test]
fn two_plans_into_one_folder() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --run RUN SRC/ DST");
    let before = Snapshot::of(&stage.run());
    stage.go("cluster plan -aH --run RUN SRC/d1 DST").expect(1).says(&["it holds a plan"]);
    let after = Snapshot::of(&stage.run());
    assert_eq!(before.entries.len(), after.entries.len());
    stage.workers(2);
    stage.ok("cluster collect RUN");
    stage.same(&Fields::ALL);
    // Two at once: one of them plans, and all that it planned is there.
    let stage = Stage::new();
    tree(&stage.src(), 1);
    let both: Vec<_> = (0..2)
        .map(|_| stage.start("cluster plan -aH --shard-size=1M --run RUN SRC/ DST"))
        .collect();
    let mut codes: Vec<i32> = both.into_iter().map(|one| one.wait().code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 1]);
    stage.workers(2);
    assert_eq!(stage.results().len(), stage.plan()["shards"].as_array().unwrap().len());
    stage.ok("cluster collect RUN");
    stage.same(&Fields::ALL);
}

#[test]
fn another_version_and_a_damaged_plan() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --run RUN SRC/ DST");
    let path = stage.run().join("plan.json");
    let good = std::fs::read(&path).unwrap();
    let mut plan = stage.plan();
    plan["version"] = "0.0.1".into();
    std::fs::write(&path, serde_json::to_vec(&plan).unwrap()).unwrap();
    for verb in ["work", "collect"] {
        let run = stage.go(&format!("cluster {verb} RUN"));
        run.expect(65).says(&["hakobu 0.0.1 made it"]);
    }
    std::fs::write(&path, &good[..good.len() / 2]).unwrap();
    stage.go("cluster work RUN").expect(65).says(&["cannot use the plan"]);
    let mut plan: serde_json::Value = serde_json::from_slice(&good).unwrap();
    plan["shards"][0]["pieces"][0]["name"] = "../../src/d1".into();
    std::fs::write(&path, serde_json::to_vec(&plan).unwrap()).unwrap();
    stage.go("cluster work RUN").expect(65).says(&["outside of the run folder"]);
    std::fs::remove_file(&path).unwrap();
    stage.go("cluster work RUN").expect(65).says(&["its plan was not finished"]);
    assert!(!stage.dst().exists());
    std::fs::write(&path, &good).unwrap();
    stage.ok("cluster work RUN");
    stage.ok("cluster collect RUN");
    stage.same(&Fields::ALL);
}

#[test]
fn a_machine_that_has_not_mounted_the_source_removes_nothing() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --delete --run RUN SRC/ DST");
    stage.ok("cluster work RUN");
    // A machine that has not mounted the file system sees an empty directory.
    std::fs::rename(stage.src(), stage.area.join("mounted")).unwrap();
    std::fs::create_dir(stage.src()).unwrap();
    for verb in ["work", "collect"] {
        let run = stage.go(&format!("cluster {verb} RUN"));
        run.expect(65).says(&["another directory than the plan saw"]);
    }
    std::fs::remove_dir(stage.src()).unwrap();
    std::fs::rename(stage.area.join("mounted"), stage.src()).unwrap();
    assert!(stage.dst().join("d1/e").exists());
    stage.ok("cluster collect RUN");
    stage.same(&Fields::ALL);
}

/// Marks, claims and results that name files outside of the run folder.
#[test]
fn names_that_leave_the_run_folder() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --run RUN SRC/ DST");
    let beat = r#"{"worker":"w","host":"h","owner":"","counter":7,"stale_s":600,"state":"working",
        "shard":0,"shards":0,"entries":0,"bytes":0,"failed":0,"up_s":1,"message":null}"#;
    std::fs::write(stage.area.join("outside.json"), beat).unwrap();
    std::fs::create_dir(stage.run().join("claims")).unwrap();
    // The worker of this claim would seem to be at work for ten minutes.
    let claim = r#"{"token":"t","worker":"../../outside"}"#;
    std::fs::write(stage.run().join("claims/000000.0"), claim).unwrap();
    stage.ok("cluster work --stale-after=2s RUN");
    let forged = "{\"shard\":0,\"files\":5}\nnot JSON\n";
    std::fs::write(stage.run().join("done/forged-000000.jsonl"), forged).unwrap();
    stage.ok("cluster collect RUN");
    stage.same(&Fields::ALL);
    for id in ["../../escaped", "/escaped", "a/b", ""] {
        std::fs::write(stage.run().join("verify.json"), format!("{{\"id\":\"{id}\"}}")).unwrap();
        stage.go("cluster work --verify RUN").says(&["verify.json", "is damaged"]);
        stage.go("cluster status --once RUN").says(&["verify.json", "is damaged"]);
    }
    assert!(!stage.area.join("escaped").exists() && !stage.area.join("escaped-claims").exists());
}
