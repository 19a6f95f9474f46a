//! Ray, for real: a cluster of three nodes on this machine, and the module that runs workers as its tasks.

use super::engines::python;
use super::{Stage, asked_for, beats_of, tree};
use crate::common::diff::Fields;
use crate::common::grow::set_mtime;
use crate::common::{have, program, soon};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// One transfer by `hakobu.ray.sync`, with a node that dies, a worker that is killed or no program at all on the nodes,
/// or followed by one of `submit --ray`. The run folder is relative.
const DRIVER: &str = r#"
import os, shutil, subprocess, sys, threading, time
import ray
from ray.cluster_utils import Cluster
import hakobu.ray as mover

src, dst, run, fault = sys.argv[1:5]
loses_a_node = fault == "node"
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
of_node = {"num_cpus": 0, "resources": {"mover": 1}} if loses_a_node else {"num_cpus": 1}
nodes = [cluster.add_node(**of_node) for _ in range(3)]
cluster.wait_for_nodes()
ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
seen = []

def disturb():
    while not os.path.isdir(os.path.join(run, "claims")):
        time.sleep(0.05)
    time.sleep(1)
    # The driver is connected to one of the nodes.
    mine = ray._private.worker.global_worker.node.raylet_socket_name
    other = next(node for node in nodes if node.raylet_socket_name != mine)
    cluster.remove_node(other, allow_graceful=False)
    print("a node is lost", flush=True)

if loses_a_node:
    threading.Thread(target=disturb, daemon=True).start()
options = ["-aH", "--delete", "--shard-size=1M"] + (["--bwlimit=4M"] if loses_a_node else [])
resources = of_node.get("resources")
os.chdir(os.path.dirname(run))
if fault in ("killed", "absent"):
    os.environ["HAKOBU"] = os.path.join(os.path.dirname(run), "wrapper")
code = mover.sync(
    src + "/", dst, nodes=3, run=os.path.basename(run), options=options, resources=resources, progress=seen.append
)
ray.shutdown()
print("progress", max([status["done"]["shards"] for status in seen], default=0))
if code == 0 and fault == "none":
    shutil.rmtree(dst)
    again = [mover.program(), "cluster"]
    os.environ["HAKOBU_PYTHON"] = sys.executable
    for step in [
        ["plan", *options, "--run", run + "2", src + "/", dst],
        ["submit", "--ray", cluster.address, "--nodes=3", run + "2"],
        ["collect", run + "2"],
    ]:
        code = code or subprocess.run(again + step).returncode
cluster.shutdown()
sys.exit(code)
"#;

/// A driver of the module, on a cluster of three nodes; ended where it takes longer than five minutes.
fn drive(stage: &Stage, fault: &str) -> Option<Output> {
    if !asked_for("Ray") {
        return None;
    }
    let python = python("ray")?;
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "300"]).arg(python).args(["-c", DRIVER]);
    command.arg(stage.src()).arg(stage.dst()).arg(stage.run()).arg(fault);
    command.env("PYTHONPATH", module());
    match fault {
        // Raylets take over the environment of the driver.
        "killed" | "absent" => command.env("HAKOBU", stage.area.join("wrapper")),
        _ => command.env("HAKOBU", program()),
    };
    command.env("XDG_STATE_HOME", stage.area.join("state")).env("RAY_DEDUP_LOGS", "0");
    command.env("RAY_USAGE_STATS_ENABLED", "0").env("TMPDIR", stage.area.path());
    Some(command.output().unwrap())
}

fn module() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python")
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stderr);
    assert_ne!(output.status.code(), Some(124), "Ray takes longer than five minutes: {said}");
    assert!(output.status.success(), "{}: {said}", output.status);
    let said = format!("{}{said}", text(&output.stdout));
    let line = said.lines().find_map(|line| line.strip_prefix("progress "));
    assert!(line.is_some_and(|shards| shards.parse::<u64>().unwrap() > 0), "{said}");
    said
}

#[test]
fn ray_runs_a_worker_on_each_node() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    let Some(output) = drive(&stage, "none") else { return };
    let said = succeeded(&output);
    stage.same(&Fields::ALL);
    for run in [stage.run(), stage.area.join("run2")] {
        let beats = beats_of(&run);
        // A task that has not begun when all is done is cancelled; one that Ray begins anew keeps its name.
        let tasks: BTreeSet<&str> =
            beats.iter().map(|beat| beat["job"].as_str().unwrap()).collect();
        assert!((1..=3).contains(&tasks.len()), "{beats:?}; {said}");
    }
}

#[test]
fn ray_goes_on_without_a_node() {
    let stage = Stage::new();
    for number in 0..12_u8 {
        let path = stage.src().join(format!("f{number}"));
        std::fs::write(&path, vec![number; 1_500_000]).unwrap();
        set_mtime(&path, 1_700_000_000, 0);
    }
    let Some(output) = drive(&stage, "node") else { return };
    let said = succeeded(&output);
    assert!(said.contains("a node is lost"), "{said}");
    stage.same(&Fields::ALL);
}

/// A program that is `hakobu`, but for workers, whose first line is another one.
fn wrapper(stage: &Stage, worker: &str) {
    let path = stage.area.join("wrapper");
    let text = format!(
        "#!/bin/sh\ncd {}\n[ \"$2\" != work ] || {{ {worker}; }}\nexec {} \"$@\"\n",
        stage.area.path().display(),
        program().display()
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn ray_starts_a_worker_again_that_was_killed() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    wrapper(&stage, "echo x >> started; ! mkdir first 2>/dev/null || kill -9 $$");
    let Some(output) = drive(&stage, "killed") else { return };
    let said = succeeded(&output);
    stage.same(&Fields::ALL);
    assert!(stage.area.join("first").exists(), "no worker was killed: {said}");
    let jobs = stage.beats();
    let is_named = |beat: &serde_json::Value| beat["job"].as_str().unwrap().starts_with("Ray ");
    assert!(!jobs.is_empty() && jobs.iter().all(is_named), "{jobs:?}");
}

#[test]
fn ray_without_the_program_on_its_nodes_transfers_nothing() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    wrapper(&stage, "echo not here >&2; exit 127");
    let Some(output) = drive(&stage, "absent") else { return };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(75), "{said}");
    assert!(said.contains("not here") && said.contains("no worker could open the run"), "{said}");
    assert!(!stage.dst().exists());
}

/// A script of the module, without a cluster.
fn module_script(script: &str) -> Output {
    let mut python = Command::new("python3");
    python.args(["-c", script]).env("PYTHONPATH", module()).env("PYTHONDONTWRITEBYTECODE", "1");
    python.env_remove("HAKOBU").output().unwrap()
}

/// Options of `sync` that workers and collect need for a run folder in S3; the list is that of the program.
#[test]
fn the_module_passes_options_of_the_store_on() {
    if !have("python3", "the Python module") {
        return;
    }
    let script = r#"
import os
import hakobu.ray as m

def words(line, run="s3://b/run"):
    return sorted(m._store_options(line.split(), run))

assert words("-a --delete --region=r --profile p") == ["--profile=p", "--region=r"]
assert words("--no-verify-ssl --read-timeout=3") == ["--cli-read-timeout=3", "--no-verify-ssl"]
for line in ["--endpoint-url=x --destination-endpoint-url=y", "--destination-endpoint-url y --endpoint-url x"]:
    assert words(line) == ["--endpoint-url=y"], words(line)
assert words("--source-endpoint-url=x --sse-c-key=secret") == []
assert words("--ca-bundle=b") == ["--ca-bundle=" + os.path.join(os.getcwd(), "b")]
assert words("--region=r", "/mnt/run") == [] and words("-- --region=r") == []
assert m._absolute("run") == os.path.join(os.getcwd(), "run") and m._absolute("s3://b/r") == "s3://b/r"
try:
    m.run_worker(["/no/such/hakobu"])
    raise SystemExit("it ran")
except m.Failed as failed:
    assert failed.code == 127 and "/no/such/hakobu" in str(failed), failed
assert m._is_again(75) and m._is_again(-9) and not m._is_again(65) and not m._is_again(1)

def status(ranges=0, listed=0, shards=0, done=0, workers=()):
    counts = {"ranges": ranges, "ranges_listed": listed, "shards": shards}
    return {**counts, "done": {"shards": done}, "workers": list(workers)}

# Shards are announced while ranges are listed: at first there are none.
assert not m.shard_done(None) and not m.shard_done(status(ranges=4))
assert not m.shard_done(status(4, 3, 2, 2)) and m.shard_done(status(4, 4, 2, 2))
assert m.shard_done(status(shards=2, done=2)) and not m.shard_done(status(shards=2, done=1))
assert not m._has_workers(status(ranges=4)) and not m._has_workers(status(shards=2))
assert m._has_workers(status()) and m._has_workers(status(4, workers=["w"]))
assert m.program("/bin/sh") in ("/bin/sh", m.program()) and "Failed" in m.__all__
print(" ".join(f"--{name}" for name in [*m.STORE_VALUES, *m.STORE_FLAGS]))
"#;
    let output = module_script(script);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let help = Stage::new().ok("cluster --help").out();
    let store = help.split("\nS3:\n").nth(1).expect("a group of options for S3");
    let options = store.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
    let of_line = |line: &str| {
        let word = line.split_whitespace().find(|word| word.starts_with("--"))?;
        Some(word.trim_end_matches(',').split(['=', '[']).next()?.to_owned())
    };
    let mut expected: Vec<String> =
        options.filter(|line| line.trim_start().starts_with("--")).filter_map(of_line).collect();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut found: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn the_module_has_types() {
    let Some(python) = python("mypy") else { return };
    assert!(module().join("hakobu/py.typed").exists());
    let mut mypy = Command::new(python);
    mypy.args(["-m", "mypy", "--strict", "--ignore-missing-imports", "--cache-dir=/dev/null"]);
    let checked = mypy.arg(module().join("hakobu")).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

/// The program has to end with the process of its task, however that ends: Ray kills the processes of a lost node.
#[test]
fn a_worker_ends_with_the_process_of_its_task() {
    if !have("python3", "the Python module") {
        return;
    }
    for (signal, returned) in [(Signal::KILL, false), (Signal::TERM, true)] {
        let stage = Stage::new();
        let (pid, mark) = (stage.area.join("pid"), stage.area.join("returned"));
        let worker = format!(
            "trap 'touch {}; exit 75' TERM; echo $$ > {1}.new; mv {1}.new {1}; while :; do sleep 0.05; done",
            mark.display(),
            pid.display()
        );
        let task = "import signal, sys, hakobu.ray\n\
                    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))\n\
                    hakobu.ray.run_worker(['sh', '-c', sys.argv[1]])";
        let mut task = Command::new("python3")
            .args(["-c", task, &worker])
            .env("PYTHONPATH", module())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(soon(|| pid.exists()));
        let text = std::fs::read_to_string(&pid).unwrap();
        let child = format!("/proc/{}/stat", text.trim());
        let goes_on = || std::fs::read_to_string(&child).is_ok_and(|stat| !stat.contains(") Z "));
        kill_process(Pid::from_child(&task), signal).unwrap();
        task.wait().unwrap();
        assert!(soon(|| !goes_on()), "{signal:?}: it goes on");
        assert_eq!(mark.exists(), returned, "{signal:?}");
    }
}
