//! Workers that were submitted: they get the options of the run folder's store, say why they could not open the run, and
//! where none of them came, no machine does all of the work silently.

use super::{Stage, tree};
use crate::common::case::Run;
use crate::common::diff::Fields;
use crate::objects::server::{Server, embedded};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

/// A stage whose server is known by an option only, with a few files.
fn stored(name: &str) -> (Stage, String) {
    let stage = Stage::with_bucket(name);
    for number in 0..6_u8 {
        std::fs::write(stage.src().join(format!("f{number}")), vec![number; 5_000]).unwrap();
    }
    (stage, format!("--endpoint-url={}", Server::url(embedded())))
}

/// A line without a variable that names the server, and with others.
fn go(stage: &Stage, line: &str, variables: &[(&str, &str)]) -> Run {
    let mut command = stage.command(line, None);
    command.env_remove("AWS_ENDPOINT_URL").envs(variables.iter().copied());
    Run::new(line.to_owned(), command.output().unwrap())
}

fn keys(stage: &Stage, prefix: &str) -> usize {
    super::store::below(stage, prefix).len()
}

#[test]
fn options_of_the_store_reach_workers_and_collect() {
    let (stage, store) = stored("store-options");
    let plan = format!("cluster plan -r {store} --shard-size=8k --run BKT/run SRC/ BKT/a/");
    go(&stage, &plan, &[]).ok();
    // Without the option nobody finds the folder.
    go(
        &stage,
        "cluster work --retry-count=0 --cli-connect-timeout=1 BKT/run",
        &[("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")],
    )
    .expect(75);
    go(&stage, &format!("cluster submit --local=2 {store} BKT/run"), &[]).ok();
    assert_eq!(keys(&stage, "a/"), 6, "collect did the work");
    assert!(keys(&stage, "run/workers/") > 0);
    let collect = go(&stage, &format!("cluster collect {store} BKT/run"), &[]);
    collect.ok().says(&["shards: 6 files"]);
    // All in one command: what `plan` was given for the target.
    for (number, option) in
        [store.clone(), store.replace("--endpoint", "--destination-endpoint")].iter().enumerate()
    {
        let line =
            format!("sync -r {option} --cluster=local:2 --run BKT/r{number} SRC/ BKT/b{number}/");
        let run = go(&stage, &line, &[]);
        run.ok().says(&["shard", "6 files"]);
        assert!(!run.err().contains("by itself"), "{run}");
        assert_eq!(keys(&stage, &format!("b{number}/")), 6);
        assert!(keys(&stage, &format!("r{number}/workers/")) > 0);
    }
}

#[test]
fn every_engine_passes_the_options_on() {
    let (stage, store) = stored("engine-options");
    go(&stage, &format!("cluster plan -r {store} --run BKT/run SRC/ BKT/a/"), &[]).ok();
    std::fs::write(stage.area.join("hosts"), "a\n").unwrap();
    let bundle = stage.area.join("ca.pem").display().to_string();
    let certificates = if std::path::Path::new("/etc/ssl/certs/ca-certificates.crt").exists() {
        std::fs::copy("/etc/ssl/certs/ca-certificates.crt", &bundle).unwrap();
        "--ca-bundle=ca.pem"
    } else {
        ""
    };
    let options = format!("{store} --region=eu-test-1 --addressing-style=path --no-verify-ssl");
    for (engine, commands) in [
        ("--local=2", 1),
        ("--slurm --nodes=2", 2),
        ("--ray=auto --nodes=2", 1),
        ("--parallel=hosts", 1),
        ("--k8s --nodes=2 --image=i", 2),
    ] {
        let line = format!("cluster submit {engine} -n {options} {certificates} BKT/run");
        let run = go(&stage, &line, &[]);
        run.ok();
        let text = run.out();
        for word in options.split(' ') {
            assert_eq!(text.matches(word).count(), commands, "{engine} {word}: {text}");
        }
        if !certificates.is_empty() {
            let whole = format!("--ca-bundle={bundle}");
            assert_eq!(text.matches(&whole).count(), commands, "{engine}: {text}");
        }
        let secret = crate::server::client::SECRET;
        assert!(!text.contains(secret) && !run.err().contains(secret), "{run}");
    }
    // A dry run asks nobody to come.
    assert_eq!(keys(&stage, "run/submitted/"), 0);
    let url = "--endpoint-url=http://me:pass@127.0.0.1:9";
    let run = go(&stage, &format!("cluster submit --local=2 {url} BKT/run"), &[]);
    run.expect(2).says(&["take no passwords"]);
    assert!(!run.err().contains("pass@"), "{run}");
}

/// The beat of the only worker.
fn only(stage: &Stage) -> Value {
    let beats = stage.beats();
    let [beat] = beats.as_slice() else { panic!("{beats:?}") };
    beat.clone()
}

#[test]
fn a_worker_that_cannot_open_the_run_says_why_and_who_it_is() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --run RUN SRC/ DST");
    let path = stage.run().join("plan.json");
    let good = std::fs::read(&path).unwrap();
    let spoil = |key: &str, value: Value| {
        let mut plan = stage.plan();
        plan[key] = value;
        std::fs::write(&path, serde_json::to_vec(&plan).unwrap()).unwrap();
    };
    let away = stage.area.join("away");
    for (fault, said) in [
        ("version", "hakobu 0.0.1 made it"),
        ("words", "cannot read the plan's command line"),
        ("source", "cannot use"),
    ] {
        match fault {
            "version" => spoil("version", "0.0.1".into()),
            "words" => spoil("words", serde_json::json!(["--no-such-option"])),
            _ => std::fs::rename(stage.src(), &away).unwrap(),
        }
        let mut work = stage.command("cluster work RUN", None);
        work.env("SLURM_ARRAY_JOB_ID", "12").env("SLURM_ARRAY_TASK_ID", "3");
        Run::new("work".to_owned(), work.output().unwrap()).expect(65).says(&[said]);
        std::fs::write(&path, &good).unwrap();
        if away.exists() {
            std::fs::rename(&away, stage.src()).unwrap();
        }
        let beat = only(&stage);
        assert_eq!((&beat["state"], &beat["unopened"]), (&"ended".into(), &true.into()), "{beat}");
        assert_eq!(beat["job"], "Slurm 12_3", "{beat}");
        assert!(beat["message"].as_str().unwrap().contains(said), "{beat}");
        assert!(beat["pid"].as_u64().unwrap() > 1 && beat["host"] != "", "{beat}");
        // Nobody works alone on what others could not open, and nothing is transferred.
        let collect = stage.go("cluster collect RUN");
        let pid = format!("pid {} Slurm 12_3", beat["pid"]);
        collect.expect(75).says(&["none of them opened the run", said, &pid]);
        assert!(!stage.dst().exists());
        std::fs::remove_dir_all(stage.run().join("workers")).unwrap();
    }
    // One that opens it is enough.
    stage.ok("cluster work RUN");
    let beat = only(&stage);
    assert!(beat["unopened"] == false && beat["pid"].as_u64().unwrap() > 1, "{beat}");
    let collect = stage.ok("cluster collect RUN");
    assert!(!collect.err().contains("by itself"), "{collect}");
    stage.same(&Fields::ALL);
}

#[test]
fn settings_of_an_end_that_a_worker_cannot_use() {
    let (stage, store) = stored("end-settings");
    go(&stage, &format!("cluster plan -r {store} --run RUN SRC/ BKT/a/"), &[]).ok();
    // The environment of a worker is for both ends.
    let broken = [("AWS_MAX_ATTEMPTS", "abc")];
    let run = go(&stage, "cluster submit --local=2 RUN", &broken);
    run.expect(1).says(&["cannot use the target in S3", "a worker failed"]);
    assert_eq!(stage.beats().iter().filter(|beat| beat["unopened"] == true).count(), 2);
    let collect = go(&stage, "cluster collect RUN", &[]);
    collect.expect(75).says(&["submitted: 2 workers by local processes", "AWS_MAX_ATTEMPTS"]);
    assert_eq!(keys(&stage, "a/"), 0);
    let server = [("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")];
    std::fs::remove_dir_all(stage.run().join("workers")).unwrap();
    std::fs::remove_dir_all(stage.run().join("submitted")).unwrap();
    // A worker that reaches no server is none that came either.
    let run = stage.run();
    let mut plan = stage.plan();
    let words = plan["words"].as_array_mut().unwrap();
    words.retain(|word| !word.as_str().unwrap().starts_with("--endpoint-url"));
    words.push("--retry-count=0".into());
    std::fs::write(run.join("plan.json"), serde_json::to_vec(&plan).unwrap()).unwrap();
    go(&stage, "cluster work RUN", &server).expect(75).says(&["no request to S3 succeeded"]);
    let collect = go(&stage, "cluster collect RUN", &server);
    collect.expect(75).says(&["none of them opened the run", "no request to S3 succeeded"]);
}

#[test]
fn an_engine_that_starts_no_worker_leaves_the_transfer_undone() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    let false_python = stage.area.join("python");
    std::fs::write(&false_python, "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(&false_python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let python = false_python.to_str().unwrap();
    for (engine, variable, said) in [
        ("slurm:3", ("PATH", "/nonexistent"), "by Slurm"),
        ("ray:2", ("HAKOBU_PYTHON", python), "by Ray (auto)"),
    ] {
        let run = stage.run();
        let line = format!("sync -aH --cluster={engine} --run RUN SRC/ DST");
        let went = go(&stage, &line, &[variable]);
        went.expect(75).says(&["none of them opened the run", said, "none left a word"]);
        assert!(!stage.dst().exists());
        stage.go("cluster collect RUN").expect(75).says(&["look at: "]);
        // Only where the user wants that.
        stage.ok("cluster collect --alone RUN");
        stage.same(&Fields::ALL);
        stage.ok("cluster collect RUN");
        std::fs::remove_dir_all(stage.dst()).unwrap();
        std::fs::remove_dir_all(run).unwrap();
    }
    // Of a submission that the engine refused, no worker is missed.
    stage.ok("cluster plan -aH --run RUN SRC/ DST");
    let line = "cluster submit --slurm --nodes=2 RUN";
    go(&stage, line, &[("PATH", "/nonexistent")]).expect(1).says(&["cannot run sbatch"]);
    stage.ok("cluster collect RUN").says(&["no worker was started"]);
    stage.same(&Fields::ALL);
    stage.go("cluster work --alone RUN").expect(65).says(&["not an option of cluster work"]);
}

#[test]
fn without_workers_collect_says_that_it_is_alone() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --run RUN SRC/ DST");
    stage.ok("cluster collect RUN").says(&["no worker was started: collect transfers everything"]);
    stage.same(&Fields::ALL);
    // Nothing to do is no failure, and needs no worker.
    let run = stage.ok("sync -aH --cluster=slurm:3 --run RUN2 SRC/ DST");
    assert!(!run.err().contains("worker was"), "{run}");
    let run = stage.ok("cluster collect RUN2");
    assert!(!run.err().contains("no worker was started"), "{run}");
}
