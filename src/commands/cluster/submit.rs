//! Workers on many machines: started by the engines of `submit`; and `sync --engine`, which plans, submits and collects.

use super::collect::{self, CollectOptions};
use super::{
    ClusterArgs, Engine, RunArguments, VERSION, absolute, open_run, parse_run, plan, report_error,
};
use crate::commands::tool::end_with;
use crate::show::{ShowOptions, output};
use crate::{exit, names};
use hakobu_cluster::plan::{ClusterPlan, REPORT};
use hakobu_cluster::{folder, verify};
use hakobu_core::error::quoted;
use hakobu_transfer::run::Spec;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Runs the subcommand.
pub fn run(arguments: &[OsString]) -> Result<u8, u8> {
    let RunArguments { args, run, rest } = parse_run("submit", arguments, exit::USAGE)?;
    let usage = |message: &str| end_with(exit::USAGE, message);
    let engine = args.engine.clone().ok_or_else(|| {
        usage("missing engine: --local N, --slurm, --ray ADDRESS, --k8s, --parallel HOSTS")
    })?;
    let nodes = match (&engine, args.nodes) {
        (_, Some(nodes)) => nodes,
        // One worker a host.
        (Engine::Parallel(hosts), None) => count_hosts(hosts).map_err(|why| usage(&why))?,
        (_, None) => return Err(usage("missing number of workers: --nodes N")),
    };
    let opened = folder::open(&run, &args.settings(), false);
    let read = opened.and_then(|folder| {
        ClusterPlan::read(&*folder, VERSION)?;
        Ok(folder.read(REPORT)?.is_some())
    });
    let is_collected = read.map_err(|why| {
        report_error(why);
        exit::FAILURE
    })?;
    let is_slurm = engine == Engine::Slurm;
    if args.verify && !is_collected && !is_slurm {
        return Err(usage("the run was not collected yet: --verify comes after that"));
    }
    // Slurm waits for one job after the other, so that all of them can be submitted at once.
    let chain = is_slurm && !(args.verify && is_collected);
    let verifies = args.verify && !chain;
    let order = WorkerOrder { run, nodes, stale: args.stale(), verifies, rest };
    let done = match engine {
        Engine::Local if args.dry_run => execute(&order.work(), true, ""),
        Engine::Local => run_local(&order),
        Engine::Slurm => {
            let mut orders = vec![order];
            if chain && args.verify {
                orders.extend(orders.first().map(WorkerOrder::verifying));
            }
            submit_slurm(&orders, args.dry_run)
        }
        Engine::Ray(address) => run_ray(&order, &address, args.dry_run),
        Engine::Kubernetes => kubernetes_manifests(&order, args.image.as_deref(), &args.volumes)
            .map(|text| output::text(&text)),
        Engine::Parallel(hosts) => run_parallel(&order, &hosts, args.dry_run),
    };
    done.map(|()| exit::OK).map_err(|message| end_with(exit::FAILURE, &message))
}

/// Runs workers of this machine to their end.
///
/// # Errors
/// One of them could not be started, or failed.
pub fn run_local(order: &WorkerOrder) -> Result<(), String> {
    let words = order.work();
    let (program, arguments) = words.split_first().ok_or("there is no program")?;
    let mut workers: Vec<Child> = Vec::new();
    let mut failed = None;
    for _ in 0..order.nodes {
        match Command::new(program).args(arguments).stdin(Stdio::null()).spawn() {
            Ok(worker) => workers.push(worker),
            Err(error) => failed = Some(format!("cannot start a worker: {error}")),
        }
    }
    for worker in &mut workers {
        match worker.wait() {
            Ok(status) if status.success() => {}
            Ok(status) => failed = Some(format!("a worker failed: {}", ending(status))),
            Err(error) => failed = Some(format!("cannot wait for a worker: {error}")),
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Runs a command of an engine, or in a dry run prints it.
///
/// # Errors
/// It cannot be started, or fails.
fn execute(words: &[OsString], dry_run: bool, hint: &str) -> Result<(), String> {
    if dry_run {
        output::text(&format!("{}\n", shell(words)));
        return Ok(());
    }
    let (program, arguments) = words.split_first().ok_or("there is no program")?;
    let shown = quoted(program);
    match Command::new(program).args(arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown} failed: {}", ending(status))),
        Err(error) => Err(format!("cannot run {shown}: {error}\nhint: {hint}")),
    }
}

/// Runs workers as tasks of Ray, one a node, to their end.
///
/// # Errors
/// The module `hakobu.ray` is not there, or its driver fails.
pub fn run_ray(order: &WorkerOrder, address: &str, dry_run: bool) -> Result<(), String> {
    let python = std::env::var_os("HAKOBU_PYTHON").unwrap_or_else(|| "python3".into());
    let mut words: Vec<OsString> = vec![python, "-m".into(), "hakobu.ray".into()];
    words.extend(["--address", address, "--nodes"].map(OsString::from));
    words.extend([order.nodes.to_string().as_str(), "--"].map(OsString::from));
    words.extend(order.work());
    execute(&words, dry_run, "install the Python package hakobu with Ray beside it")
}

fn count_hosts(hosts: &OsStr) -> Result<u64, String> {
    let text = names::read_text(hosts)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let count = lines.filter(|line| !line.starts_with('#')).count() as u64;
    match count {
        0 => Err(format!("{} names no host", quoted(hosts))),
        count => Ok(count),
    }
}

fn run_parallel(order: &WorkerOrder, hosts: &OsStr, dry_run: bool) -> Result<(), String> {
    let mut words: Vec<OsString> = vec!["parallel".into(), "--sshloginfile".into()];
    // One worker a host at a time; one that ended with 75 is tried again.
    let options = ["--jobs", "1", "--retries", "5", "--line-buffer", "--tag"];
    words.push(hosts.to_owned());
    words.extend(options.map(OsString::from));
    words.extend(order.rest.iter().cloned());
    words.push(format!("{} # {{}}", shell(&order.work())).into());
    words.push(":::".into());
    words.extend((1..=order.nodes).map(|number| OsString::from(number.to_string())));
    execute(&words, dry_run, "install GNU parallel")
}

/// Workers to hand over.
pub struct WorkerOrder {
    /// The run folder, absolute or in S3.
    pub run: OsString,
    /// Number of workers.
    pub nodes: u64,
    /// Seconds without a sign of life after which a worker is gone.
    pub stale: Duration,
    /// The workers verify a run that was collected.
    pub verifies: bool,
    /// Options for the engine, as they were typed.
    pub rest: Vec<OsString>,
}

impl WorkerOrder {
    /// The same for the verification of the run.
    pub fn verifying(&self) -> WorkerOrder {
        WorkerOrder { run: self.run.clone(), rest: self.rest.clone(), verifies: true, ..*self }
    }

    /// The command of one worker.
    pub fn work(&self) -> Vec<OsString> {
        self.command("work", format!("--workers={}", self.nodes))
    }

    /// The command that collects.
    pub fn collect(&self) -> Vec<OsString> {
        self.command("collect", "--wait".to_owned())
    }

    fn command(&self, verb: &str, option: String) -> Vec<OsString> {
        let program =
            std::env::current_exe().map_or_else(|_| "hakobu".into(), PathBuf::into_os_string);
        let stale = format!("--stale-after={}s", self.stale.as_secs());
        let mut words = vec![program, "cluster".into(), verb.into(), option.into(), stale.into()];
        words.extend(self.verifies.then(|| "--verify".into()));
        words.push(self.run.clone());
        words
    }
}

/// Words as a line that sh(1) reads.
pub fn shell(words: &[OsString]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(byte);
    let word = |word: &OsString| {
        let text = word.to_string_lossy();
        match !text.is_empty() && word.as_bytes().iter().all(plain) {
            true => text.into_owned(),
            false => format!("'{}'", text.replace('\'', "'\\''")),
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Describes the exit status of a process.
pub fn ending(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no status".to_owned(),
    }
}

/// Slots of an array: each of them takes shards until none is left.
const SLOTS_MAX: u64 = 1_000;
/// Maximum number of restarts of a worker in its slot, and of requeues of a slot.
const TRIES_MAX: u32 = 16;
/// Seconds before the time limit at which a worker gives its shard back.
const WARNING_S: u32 = 60;

/// The script of one slot. A worker that asks for another try gets it here. Slurm requeues a job whose
/// node failed, but not one whose script ended early: a slot that was warned of its time limit, or
/// preempted, is put back in the queue by itself.
fn work_script(order: &WorkerOrder) -> String {
    let work = shell(&order.work());
    let slots = order.nodes.min(SLOTS_MAX) - 1;
    format!(
        r#"#!/bin/bash
#SBATCH --job-name=hakobu-work
#SBATCH --array=0-{slots}
#SBATCH --ntasks=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@{WARNING_S}
stopped= tries=0
trap 'stopped=1; kill -TERM $worker 2>/dev/null' TERM
while :; do
  {work} &
  worker=$!
  # Warned before there was a worker to pass it on to.
  [ -z "$stopped" ] || kill -TERM $worker 2>/dev/null
  wait $worker; code=$?
  while kill -0 $worker 2>/dev/null; do wait $worker; code=$?; done
  [ $code -eq 75 ] && [ -z "$stopped" ] && [ $tries -lt {TRIES_MAX} ] || break
  tries=$((tries + 1))
  sleep 10 & worker=$!
  wait $worker
done
# A worker that the warning met before it handled it (128 + 15) had no shard yet.
[ -z "$stopped" ] || [ $code -ne 143 ] || code=75
if [ $code -eq 75 ] && [ -n "$stopped" ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {TRIES_MAX} ] &&
    [ "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T)" = RUNNING ]; then
  scontrol requeue "$SLURM_JOB_ID" && sleep 60
fi
exit $code
"#
    )
}

/// The script that collects.
fn collect_script(order: &WorkerOrder) -> String {
    let collect = shell(&order.collect());
    format!(
        "#!/bin/bash\n\
         #SBATCH --job-name=hakobu-collect\n\
         #SBATCH --ntasks=1\n\
         #SBATCH --requeue\n\
         exec {collect}\n"
    )
}

/// Submits the workers of each order as an array, and after it a job that collects, however the
/// array ended. Each job depends on the one before.
///
/// # Errors
/// sbatch is not there, or refuses.
fn submit_slurm(orders: &[WorkerOrder], dry_run: bool) -> Result<(), String> {
    let mut before: Option<String> = None;
    let steps = orders.iter().flat_map(|order| {
        let what =
            if order.verifies { ["verifying workers", "verdict"] } else { ["workers", "collect"] };
        let scripts = [work_script(order), collect_script(order)];
        what.into_iter().zip(scripts).map(move |(what, script)| (order, what, script))
    });
    for (order, what, script) in steps {
        let dependency = before.as_ref().map(|job| format!("--dependency=afterany:{job}"));
        if dry_run {
            let mut words: Vec<OsString> = vec!["sbatch".into(), "--parsable".into()];
            words.extend(dependency.map(OsString::from));
            words.extend(order.rest.iter().cloned());
            let gap = if before.is_some() { "\n" } else { "" };
            output::text(&format!("{gap}# {}\n{script}", shell(&words)));
            before = Some(format!("JOB-OF-{}", what.to_uppercase().replace(' ', "-")));
            continue;
        }
        let more: Vec<&str> = dependency.iter().map(String::as_str).collect();
        let job = sbatch(order, &more, &script)?;
        output::message(&format!("submitted {what} as job {job}"));
        before = Some(job);
    }
    Ok(())
}

/// Submits the array and waits for its end. Workers that failed are not a failure here: what they left
/// is collected.
///
/// # Errors
/// sbatch is not there, or refuses.
pub fn run_slurm(order: &WorkerOrder) -> Result<(), String> {
    let array = sbatch(order, &[], &work_script(order))?;
    output::message(&format!("submitted workers as job {array}"));
    loop {
        std::thread::sleep(std::time::Duration::from_secs(2));
        let asked = Command::new("squeue").args(["--noheader", "--jobs", &array]).output();
        match asked {
            // A job that is over is unknown after some minutes.
            Ok(answer) if answer.stdout.trim_ascii().is_empty() => {
                let text = String::from_utf8_lossy(&answer.stderr).into_owned();
                if answer.status.success() || text.contains("Invalid job id") {
                    return Ok(());
                }
            }
            Ok(_) => {}
            Err(error) => return Err(format!("cannot run squeue: {error}")),
        }
    }
}

fn sbatch(order: &WorkerOrder, more: &[&str], script: &str) -> Result<String, String> {
    let mut command = Command::new("sbatch");
    command.arg("--parsable").args(&order.rest).args(more);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let started = command.spawn();
    let mut child =
        started.map_err(|error| format!("cannot run sbatch: {error}\nhint: install Slurm"))?;
    let fed = child.stdin.take().map(|mut stdin| stdin.write_all(script.as_bytes()));
    let ended = child.wait_with_output().map_err(|error| format!("cannot run sbatch: {error}"))?;
    if !ended.status.success() {
        return Err(format!("sbatch failed: {}", ending(ended.status)));
    }
    if let Some(Err(error)) = fed {
        return Err(format!("cannot give sbatch its script: {error}"));
    }
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let number = text.trim().split(';').next().unwrap_or_default().to_owned();
    match !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(number),
        false => Err(format!("sbatch gave no job number: {}", text.trim())),
    }
}

/// The manifests of a run, as a List in JSON, which `kubectl apply -f -` reads as it reads YAML.
///
/// # Errors
/// Missing: the image, or a volume for a run folder that is not in S3.
fn kubernetes_manifests(
    order: &WorkerOrder,
    image: Option<&str>,
    volumes: &[String],
) -> Result<String, String> {
    use serde_json::json;
    let image = image.ok_or("--k8s needs the image with hakobu in it: --image IMAGE")?;
    let in_s3 = order.run.as_bytes().starts_with(b"s3://");
    if volumes.is_empty() && !in_s3 {
        return Err("--k8s needs a volume with the run folder (--volume CLAIM:PATH), or one in S3"
            .to_owned());
    }
    let mut mounts = Vec::new();
    let mut claims = Vec::new();
    for (number, volume) in volumes.iter().enumerate() {
        let split = volume.split_once(':').filter(|(_, path)| path.starts_with('/'));
        let (claim, path) = split.ok_or_else(|| format!("--volume={volume} is not CLAIM:PATH"))?;
        let name = format!("volume-{number}");
        mounts.push(json!({"name": name, "mountPath": path}));
        claims.push(json!({"name": name, "persistentVolumeClaim": {"claimName": claim}}));
    }
    let words = |mut words: Vec<OsString>| -> Vec<String> {
        // The image has its own.
        if let Some(program) = words.first_mut() {
            *program = "hakobu".into();
        }
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    };
    let container = |name: &str, command: Vec<String>| {
        json!({
            "name": name,
            "image": image,
            "command": command,
            "volumeMounts": mounts,
            "env": [{"name": "HOME", "value": "/tmp"}],
        })
    };
    let id = order.run.to_string_lossy();
    let last = id.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let fine = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = last.chars().map(fine).take(40).collect();
    let name = match order.verifies {
        true => format!("verify-{}", name.trim_matches('-')),
        false => name.trim_matches('-').to_owned(),
    };
    let workers = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": format!("hakobu-work-{name}")},
        "spec": {
            "completionMode": "Indexed",
            "completions": order.nodes,
            "parallelism": order.nodes,
            "backoffLimitPerIndex": 16,
            "podFailurePolicy": {"rules": [
                // The node was drained: no failure of the worker.
                {"action": "Ignore",
                 "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "Count",
                 "onExitCodes": {"containerName": "work", "operator": "In", "values": [75]}},
                {"action": "FailIndex",
                 "onExitCodes": {"containerName": "work", "operator": "In", "values": [65]}},
            ]},
            "template": {"spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 60,
                "containers": [container("work", words(order.work()))],
                "volumes": claims,
            }},
        },
    });
    let collect = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": format!("hakobu-collect-{name}")},
        "spec": {
            "backoffLimit": 4,
            // It waits for the workers itself, so it is created when they have ended.
            "suspend": true,
            "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [container("collect", words(order.collect()))],
                "volumes": claims,
            }},
        },
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [workers, collect]});
    let text = serde_json::to_string_pretty(&list).map_err(|error| error.to_string())?;
    Ok(format!(
        "# kubectl apply -f - starts the workers. When their Job has ended:\n\
         # kubectl patch job hakobu-collect-{name} -p '{{\"spec\":{{\"suspend\":false}}}}'\n\
         # These manifests fit the API's schema; they were not tried on a cluster.\n{text}\n"
    ))
}

/// Runs a transfer on many machines. Without `--run` the folder is made in the working directory,
/// which they share then, and removed when all went well.
pub fn sync_cluster(
    arguments: &[OsString],
    spec: Spec,
    wanted: ShowOptions,
    args: &ClusterArgs,
) -> u8 {
    let Some((engine, nodes)) = args.cluster.clone() else {
        output::message("--run, --workers, --inventory and --verify go with --cluster ENGINE:N");
        output::message("hint: hakobu verify compares two trees");
        return exit::SYNC_USAGE;
    };
    if args.verify
        && let Err(fatal) = verify::refuse_unfit(&spec)
    {
        output::message(&fatal.message);
        return exit::SYNC_USAGE;
    }
    let mut args = args.clone();
    let own = args.run.is_none();
    if own {
        let name = format!("hakobu-run-{:08x}-{:08x}", std::process::id(), nanos());
        args.run = Some(name.into());
    }
    args.workers = args.workers.or(Some(nodes));
    let Some(run) = args.run.as_deref().map(absolute) else { return exit::SYNC_USAGE };
    let settings = spec.objects.target.clone();
    let (planned, plan) = match plan::make(arguments, &spec, wanted, &args) {
        Ok(made) => made,
        Err(code) => {
            if own {
                drop(std::fs::remove_dir_all(&run));
            }
            return code;
        }
    };
    if planned == exit::SYNC_INTERRUPTED {
        return planned;
    }
    let count = plan.shards.len() as u64;
    let start = |verifies: bool| {
        let nodes = nodes.min(count);
        let rest = Vec::new();
        let order = WorkerOrder { run: run.clone(), nodes, stale: args.stale(), verifies, rest };
        let ran = match &engine {
            _ if count == 0 => Ok(()),
            Engine::Local => run_local(&order),
            Engine::Slurm => run_slurm(&order),
            Engine::Ray(address) => run_ray(&order, address, false),
            Engine::Kubernetes | Engine::Parallel(_) => Ok(()),
        };
        // Continue after failures of workers: collect transfers the rest.
        if let Err(message) = ran {
            output::message(&message);
        }
    };
    let collect = |verifies: bool| {
        let options = CollectOptions { stale: args.stale(), waits: true, json: false, verifies };
        let opened = open_run(&run, &settings).map_err(report_error);
        opened.and_then(|opened| collect::finish(opened, options)).unwrap_or_else(|code| code)
    };
    start(false);
    let mut code = collect(false);
    if args.verify && collect::is_collected(code) {
        start(true);
        code = collect(true);
    }
    if own && code == exit::OK {
        if let Err(error) = std::fs::remove_dir_all(&run) {
            output::message(&format!("cannot remove {}: {error}", quoted(&run)));
        }
    } else if own {
        output::message(&format!("the run folder stays: {}", quoted(&run)));
    }
    code
}

fn nanos() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        let words = ["a", "b c", "d'e", "", "--x=1"].map(OsString::from);
        assert_eq!(shell(&words), "a 'b c' 'd'\\''e' '' --x=1");
    }
}
