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
    // Nothing that was typed is left out silently.
    for (line, word) in [
        ("--local=2 RUN -- --partition=copy", "--partition=copy"),
        ("--ray=auto --nodes=2 RUN -- --x", "--x"),
        ("--local=2 --image=i RUN", "--image is for --k8s"),
        ("--slurm --nodes=2 --pod-template=f RUN", "--pod-template is for --k8s"),
        ("--slurm --nodes=2 --volume=c:/d RUN", "--volume is for --k8s"),
    ] {
        stage.go(&format!("cluster submit {line}")).expect(2).says(&[word]);
    }
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

/// Versions of Kubernetes whose schema the manifests have to fit.
const KUBERNETES: &str = "1.28 1.29 1.30 1.31 1.32 1.33 1.34 1.35";

/// A template with one of everything that clusters ask for.
const TEMPLATE: &str = "
kind: Pod
metadata:
  labels: {team: storage}
  annotations: {iam: mover}
spec:
  serviceAccountName: mover
  imagePullSecrets: [{name: registry}]
  nodeSelector: {pool: copy}
  tolerations: [{key: dedicated, operator: Exists, effect: NoSchedule}]
  containers:
  - name: hakobu
    env: [{name: AWS_REGION, value: eu-1}]
    envFrom: [{secretRef: {name: s3}}]
    resources: {requests: {cpu: 4}, limits: {cpu: 8}}
    volumeMounts: [{name: bundle, mountPath: /etc/ssl/own, readOnly: true}]
  volumes: [{name: bundle, configMap: {name: bundle}}]
";

#[test]
fn kubernetes_gets_jobs_that_fit_its_schemas() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --run RUN SRC/ DST");
    let submit = "cluster submit --k8s --nodes=8 --image=registry.test/hakobu:1";
    for volumes in ["", "--volume=data:/elsewhere"] {
        let run = stage.go(&format!("{submit} {volumes} RUN"));
        run.expect(1).says(&["is in no volume of the pods", "--volume CLAIM:PATH"]);
    }
    assert!(!stage.run().join("submitted").exists());
    std::fs::write(stage.area.join("pod.yaml"), TEMPLATE).unwrap();
    // A folder of which no name could be made as it is.
    std::fs::rename(stage.run(), stage.area.join("Run_.1-")).unwrap();
    let volume = format!("--volume=data:{}", stage.area.path().display());
    let run =
        stage.ok(&format!("{submit} {volume} --pod-template=pod.yaml SRC/../Run_.1- -- -n movers"));
    // JSON and nothing else: what there is to say goes to standard error.
    let list: Value = serde_json::from_str(&run.out()).unwrap();
    run.says(&["kubectl apply", "kubectl --namespace=movers patch job hakobu-collect-run-1-"]);
    let [workers, collect] = list["items"].as_array().unwrap().as_slice() else { panic!("{list}") };
    assert_eq!(workers["spec"]["completionMode"], "Indexed");
    assert_eq!(
        (&workers["spec"]["completions"], &collect["spec"]["suspend"]),
        (&8.into(), &true.into())
    );
    let rules = workers["spec"]["podFailurePolicy"]["rules"].as_array().unwrap();
    let by_code = |code: u64| {
        rules.iter().find(|r| r["onExitCodes"]["values"][0] == code).map(|r| r["action"].clone())
    };
    assert_eq!((by_code(65), by_code(75)), (Some("FailIndex".into()), Some("Count".into())));
    for job in [workers, collect] {
        assert_eq!(job["metadata"]["namespace"], "movers");
        assert_eq!(job["metadata"]["labels"]["app.kubernetes.io/name"], "hakobu");
        assert!(job["spec"]["ttlSecondsAfterFinished"].as_u64().unwrap() > 0);
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!(pod["topologySpreadConstraints"][0]["topologyKey"], "kubernetes.io/hostname");
        assert_eq!(
            (&pod["serviceAccountName"], &pod["nodeSelector"]["pool"]),
            (&"mover".into(), &"copy".into())
        );
        let container = &pod["containers"][0];
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert_eq!(container["resources"]["limits"]["memory"], "2Gi");
        assert_eq!(container["envFrom"][0]["secretRef"]["name"], "s3");
    }
    // Printed manifests ask workers to come.
    let run = stage.go("cluster collect SRC/../Run_.1-").expect(75).err();
    assert!(run.contains("8 workers by Kubernetes (Job hakobu-work-run-1-"), "{run}");
    assert!(run.contains("look at: kubectl --namespace=movers describe job hakobu-work-"), "{run}");
    let other = "--context=prod";
    let run = stage.go(&format!("{submit} {volume} SRC/../Run_.1- -- {other}"));
    run.expect(1).says(&[other, "cannot be put into manifests"]);

    std::fs::rename(stage.area.join("Run_.1-"), stage.run()).unwrap();
    stage.ok("cluster collect --alone RUN");
    let verify = stage.ok(&format!("{submit} {volume} --verify RUN")).out();
    assert!(verify.contains("hakobu-verdict-"), "{verify}");
    let Some(python) = python("kubernetes_validate") else { return };
    let script = "import json, sys, kubernetes_validate as k\n\
                  items = json.load(sys.stdin)['items']\n\
                  for version in sys.argv[1].split():\n    \
                  for item in items:\n        k.validate(item, version, strict=True)\n";
    let mut wrong = list.clone();
    wrong["items"][0]["spec"]["template"]["spec"]["tolerance"] = true.into();
    for (text, fits) in [(run_text(&list), true), (verify, true), (run_text(&wrong), false)] {
        let path = stage.area.join("list.json");
        std::fs::write(&path, &text).unwrap();
        let input = std::fs::File::open(&path).unwrap();
        let mut check = Command::new(&python);
        let checked = check.args(["-c", script, KUBERNETES]).stdin(input).output().unwrap();
        assert_eq!(checked.status.success(), fits, "{}", String::from_utf8_lossy(&checked.stderr));
    }
}

fn run_text(list: &Value) -> String {
    serde_json::to_string(list).unwrap()
}
