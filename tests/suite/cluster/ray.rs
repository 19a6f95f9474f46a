//! Ray, for real: a cluster of three nodes on this machine, and the module that runs workers as its tasks.

use super::engines::python;
use super::{Stage, asked_for, soon, tree};
use crate::common::diff::Fields;
use crate::common::grow::set_mtime;
use crate::common::{have, program};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// One transfer by `hakobu.ray.sync`, with a node that dies, or followed by one of `submit --ray`.
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
code = mover.sync(
    src + "/", dst, nodes=3, run=run, options=options, resources=resources, progress=seen.append
)
ray.shutdown()
print("progress", max(status["done"]["shards"] for status in seen))
if code == 0 and not loses_a_node:
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
    command.env("PYTHONPATH", module()).env("HAKOBU", program());
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
        let names = std::fs::read_dir(run.join("workers")).unwrap().count();
        // A task that has not begun when all is done is cancelled.
        assert!((1..=3).contains(&names), "{names} workers; {said}");
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
