//! Engines that start workers: GNU parallel by running what is printed, Kubernetes by its schema.

use super::{Stage, tree};
use crate::common::diff::Fields;
use crate::common::{have, is_set, skip};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn parallel_gets_a_line_that_it_runs() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --shard-size=1M --run RUN SRC/ DST");
    let hosts = stage.area.join("hosts.txt");
    std::fs::write(&hosts, "# one worker each\n2/:\n").unwrap();
    let line = format!("cluster submit --parallel={} --nodes=2 -n RUN", hosts.display());
    let printed = stage.ok(&line).out();
    assert!(printed.starts_with("parallel --sshloginfile "), "{printed}");
    assert!(printed.contains("cluster work --workers=2"), "{printed}");
    if !have("parallel", "GNU parallel") {
        return;
    }
    let ran = Command::new("sh").args(["-c", &printed]).env("HOME", stage.area.path()).output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(stage.results().len(), stage.plan()["shards"].as_array().unwrap().len());
    stage.ok("cluster collect RUN");
    stage.same(&Fields::ALL);
}

#[test]
fn local_workers_are_an_engine_too() {
    let stage = Stage::new();
    tree(&stage.src(), 2);
    stage.ok("cluster plan -aH --shard-size=1M --run RUN SRC/ DST");
    stage.ok("cluster submit --local=4 RUN");
    stage.ok("cluster collect RUN").says(&["4 workers did"]);
    stage.same(&Fields::ALL);
    stage.go("cluster submit RUN").expect(2).says(&["missing engine"]);
    stage.go("cluster submit --slurm RUN").expect(2).says(&["--nodes N"]);
}

/// A Python with a module, or why there is none.
pub fn python(module: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let python = cache.unwrap_or_else(|| home.join(".cache")).join("hakobu-peers/bin/python3");
    let found = Command::new(&python).args(["-c", &format!("import {module}")]).output();
    match found.is_ok_and(|output| output.status.success()) {
        true => Some(python),
        false => {
            if is_set("HAKOBU_REQUIRE_ALL") || is_set("HAKOBU_REQUIRE_PEERS") {
                panic!("{} cannot import {module}", python.display());
            }
            skip(&format!("Python's {module} is not there"));
            None
        }
    }
}

#[test]
fn kubernetes_gets_jobs_that_fit_its_schema() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --run RUN SRC/ DST");
    let run = stage.go("cluster submit --k8s --nodes=8 --image=registry.test/hakobu:1 RUN");
    run.expect(1).says(&["--volume CLAIM:PATH"]);
    let volume = format!("--volume=data:{}", stage.area.path().display());
    let line =
        format!("cluster submit --k8s --nodes=8 --image=registry.test/hakobu:1 {volume} RUN");
    let printed = stage.ok(&line).out();
    let json: String =
        printed.lines().filter(|line| !line.starts_with('#')).map(|l| format!("{l}\n")).collect();
    let list: Value = serde_json::from_str(&json).unwrap();
    let work = &list["items"][0]["spec"];
    assert_eq!(work["completionMode"], "Indexed");
    let rules = work["podFailurePolicy"]["rules"].as_array().unwrap();
    let by_code = |code: u64| {
        rules.iter().find(|r| r["onExitCodes"]["values"][0] == code).map(|r| r["action"].clone())
    };
    assert_eq!((by_code(65), by_code(75)), (Some("FailIndex".into()), Some("Count".into())));
    let Some(python) = python("kubernetes_validate") else { return };
    let script = "import json, sys, kubernetes_validate as k\n\
                  for item in json.load(sys.stdin)['items']:\n    k.validate(item, '1.31', strict=True)\n";
    let path = stage.area.join("list.json");
    std::fs::write(&path, &json).unwrap();
    let input = std::fs::File::open(&path).unwrap();
    let checked = Command::new(python).args(["-c", script]).stdin(input).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
