//! Workers on many machines: started by the engines of `submit`; and `sync --cluster`, which plans, submits and collects.

use super::collect::{self, CollectOptions};
use super::kubernetes::Manifests;
use super::{
    ClusterArgs, Engine, RunArguments, SUBMIT, VERSION, absolute, open_run, parse_run, plan,
    report_error, slurm,
};
use crate::commands::tool::end_with;
use crate::show::{ShowOptions, output};
use crate::{exit, names, objects};
use hakobu_cluster::folder::RunFolder;
use hakobu_cluster::plan::{ClusterPlan, REPORT};
use hakobu_cluster::submitted::{Submission, SubmissionMark};
use hakobu_cluster::{folder, verify};
use hakobu_core::error::quoted;
use hakobu_s3::{Settings, without_secrets};
use hakobu_sys::host;
use hakobu_transfer::run::Spec;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Runs the subcommand.
pub fn run(arguments: &[OsString]) -> Result<u8, u8> {
    let RunArguments { args, run, rest } = parse_run(&SUBMIT, arguments, exit::USAGE)?;
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
    if let Some(message) = misdirected(&engine, &args, &rest) {
        return Err(usage(&message));
    }
    let settings = args.settings();
    if let Some(url) = &settings.endpoint_url
        && without_secrets(url) != *url
    {
        let shown = without_secrets(url);
        return Err(usage(&format!("--endpoint-url={shown}: command lines take no passwords")));
    }
    let failed = |why| {
        report_error(why);
        exit::FAILURE
    };
    let folder = folder::open(&run, &settings, false).map_err(failed)?;
    let read = || Ok((ClusterPlan::read(&*folder, VERSION)?, folder.read(REPORT)?.is_some()));
    let (plan, is_collected) = read().map_err(failed)?;
    let is_slurm = engine == Engine::Slurm;
    if args.verify && !is_collected && !is_slurm {
        return Err(usage("the run was not collected yet: --verify comes after that"));
    }
    // Slurm waits for one job after the other, so that all of them can be submitted at once.
    let chain = is_slurm && !(args.verify && is_collected);
    let order = WorkerOrder {
        store: store_words(&run, &settings),
        run,
        nodes,
        stale: args.stale(),
        verifies: args.verify && !chain,
        rest,
    };
    let marks = Marks { folder: &*folder, dry_run: args.dry_run, keeps: false };
    let done = match &engine {
        Engine::Local if args.dry_run => execute(&order.work(), true, ""),
        Engine::Local => run_local(&order, &marks),
        Engine::Slurm => {
            let mut orders = vec![order];
            if chain && args.verify {
                orders.extend(orders.first().map(WorkerOrder::verifying));
            }
            slurm::submit(&orders, &marks)
        }
        Engine::Ray(address) => run_ray(&order, address, &marks),
        Engine::Kubernetes => {
            let manifests = Manifests::of(&order, &plan, &args);
            manifests.and_then(|manifests| print_manifests(&order, &manifests, &marks))
        }
        Engine::Parallel(hosts) => run_parallel(&order, hosts, &marks),
    };
    done.map(|()| exit::OK).map_err(|error| end_with(exit::FAILURE, &error.message))
}

/// Message about options that the engine does not use.
fn misdirected(engine: &Engine, args: &ClusterArgs, rest: &[OsString]) -> Option<String> {
    let of_pods = [
        ("image", args.image.is_some()),
        ("volume", !args.volumes.is_empty()),
        ("pod-template", args.pod_template.is_some()),
    ];
    match (engine, rest.first()) {
        (Engine::Local | Engine::Ray(_), Some(word)) => {
            Some(format!("{} is for an engine that takes options after '--'", quoted(word)))
        }
        (Engine::Kubernetes, _) => None,
        _ => {
            let (name, _) = of_pods.into_iter().find(|(_, given)| *given)?;
            Some(format!("--{name} is for --k8s"))
        }
    }
}

/// Options of the store of a run folder, for other processes; none for a path.
fn store_words(run: &OsStr, settings: &Settings) -> Vec<OsString> {
    match objects::is_s3(run) {
        true => objects::store_words(&objects::absolute(settings.clone())),
        false => Vec::new(),
    }
}

/// Failure of an engine.
#[derive(Debug)]
pub struct EngineError {
    /// A sentence.
    pub message: String,
    /// Workers may have been started.
    pub started: bool,
}

impl EngineError {
    /// No worker was started.
    pub fn not_started(message: impl Into<String>) -> EngineError {
        EngineError { message: message.into(), started: false }
    }

    /// Some workers may have been started.
    pub fn after_start(message: impl Into<String>) -> EngineError {
        EngineError { message: message.into(), started: true }
    }
}

/// Marks submissions in the run folder, for `collect`; in a dry run it does not.
pub struct Marks<'a> {
    folder: &'a dyn RunFolder,
    dry_run: bool,
    /// The mark stays where the engine took no worker: the user asked for them, and no other machine is to do their work.
    keeps: bool,
}

impl Marks<'_> {
    /// Whether nothing is to be started.
    pub fn is_dry(&self) -> bool {
        self.dry_run
    }

    /// Starts workers, with a mark of it; `start` may change what the mark says.
    ///
    /// # Errors
    /// Those of `start`, and of the folder.
    pub fn around(
        &self,
        mut submission: Submission,
        start: impl FnOnce(&mut Submission) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        if self.dry_run {
            return start(&mut submission);
        }
        let before = submission.clone();
        let mark = SubmissionMark::make(self.folder, &submission)
            .map_err(|error| EngineError::not_started(error.message))?;
        let started = start(&mut submission);
        let marked = match &started {
            Err(error) if !error.started && !self.keeps => mark.remove(self.folder),
            _ if submission != before => mark.update(self.folder, &submission),
            _ => Ok(()),
        };
        started.and(marked.map_err(|error| EngineError::after_start(error.message)))
    }
}

/// Runs workers of this machine to their end.
///
/// # Errors
/// One of them could not be started, or failed.
pub fn run_local(order: &WorkerOrder, marks: &Marks<'_>) -> Result<(), EngineError> {
    let look = format!("the messages of workers where they were submitted, on {}", host::name());
    marks.around(order.submission("local processes", look), |_| start_local(order))
}

fn start_local(order: &WorkerOrder) -> Result<(), EngineError> {
    let words = order.work();
    let program = words.split_first();
    let (program, arguments) =
        program.ok_or_else(|| EngineError::not_started("there is no program"))?;
    let mut workers: Vec<Child> = Vec::new();
    let mut failed = None;
    for _ in 0..order.nodes {
        match Command::new(program).args(arguments).stdin(Stdio::null()).spawn() {
            Ok(worker) => workers.push(worker),
            Err(error) => failed = Some(format!("cannot start a worker: {error}")),
        }
    }
    let started = !workers.is_empty();
    for worker in &mut workers {
        match worker.wait() {
            Ok(status) if status.success() => {}
            Ok(status) => failed = Some(format!("a worker failed: {}", ending(status))),
            Err(error) => failed = Some(format!("cannot wait for a worker: {error}")),
        }
    }
    failed.map_or(Ok(()), |message| Err(EngineError { message, started }))
}

/// Runs a command of an engine, or in a dry run prints it.
///
/// # Errors
/// It cannot be started, or fails.
fn execute(words: &[OsString], dry_run: bool, hint: &str) -> Result<(), EngineError> {
    if dry_run {
        output::text(&format!("{}\n", shell(words)));
        return Ok(());
    }
    let program = words.split_first();
    let (program, arguments) =
        program.ok_or_else(|| EngineError::not_started("there is no program"))?;
    let shown = quoted(program);
    match Command::new(program).args(arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(EngineError::after_start(format!("{shown} failed: {}", ending(status)))),
        Err(error) => {
            Err(EngineError::not_started(format!("cannot run {shown}: {error}\nhint: {hint}")))
        }
    }
}

/// Runs workers as tasks of Ray, one a node, to their end.
///
/// # Errors
/// The module `hakobu.ray` is not there, or its driver fails.
pub fn run_ray(order: &WorkerOrder, address: &str, marks: &Marks<'_>) -> Result<(), EngineError> {
    let python = std::env::var_os("HAKOBU_PYTHON").unwrap_or_else(|| "python3".into());
    let mut words: Vec<OsString> = vec![python, "-m".into(), "hakobu.ray".into()];
    words.extend(["--address", address, "--nodes"].map(OsString::from));
    words.extend([order.nodes.to_string().as_str(), "--"].map(OsString::from));
    words.extend(order.work());
    let look = format!("ray list tasks --address={address}; the messages of submit");
    marks.around(order.submission(&format!("Ray ({address})"), look), |_| {
        execute(&words, marks.is_dry(), "install the Python package hakobu[ray]")
    })
}

/// Prints the manifests of a run, and tells how to use them.
fn print_manifests(
    order: &WorkerOrder,
    manifests: &Manifests,
    marks: &Marks<'_>,
) -> Result<(), EngineError> {
    let engine = format!("Kubernetes (Job {})", manifests.workers);
    marks.around(order.submission(&engine, manifests.look()), |_| {
        output::text(&manifests.text);
        manifests.notes.iter().for_each(|note| output::message(note));
        Ok(())
    })
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

fn run_parallel(order: &WorkerOrder, hosts: &OsStr, marks: &Marks<'_>) -> Result<(), EngineError> {
    let mut words: Vec<OsString> = vec!["parallel".into(), "--sshloginfile".into()];
    // One worker a host at a time; one that ended with 75 is tried again.
    let options = ["--jobs", "1", "--retries", "5", "--line-buffer", "--tag"];
    // `-`, `.` and `..` are names that parallel knows.
    words.push(match Path::new(hosts).is_file() {
        true => absolute(hosts),
        false => hosts.to_owned(),
    });
    words.extend(options.map(OsString::from));
    words.extend(order.rest.iter().cloned());
    words.push(format!("{} # {{}}", shell(&order.work())).into());
    words.push(":::".into());
    words.extend((1..=order.nodes).map(|number| OsString::from(number.to_string())));
    let look = format!("the messages of submit on {}", host::name());
    marks.around(order.submission(&format!("GNU parallel ({})", quoted(hosts)), look), |_| {
        execute(&words, marks.is_dry(), "install GNU parallel")
    })
}

/// Workers to hand over.
pub struct WorkerOrder {
    /// The run folder, absolute or in S3.
    pub run: OsString,
    /// Options of the store of the run folder.
    pub store: Vec<OsString>,
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
        let (run, store, rest) = (self.run.clone(), self.store.clone(), self.rest.clone());
        WorkerOrder { run, store, rest, verifies: true, ..*self }
    }

    /// What the mark of these workers says.
    fn submission(&self, engine: &str, look: String) -> Submission {
        Submission { engine: engine.to_owned(), workers: self.nodes, verifies: self.verifies, look }
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
        words.extend(self.store.iter().cloned());
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
    let settings = objects::absolute(spec.objects.target.clone());
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
    let count = plan.units();
    let folder = match folder::open(&run, &settings, false) {
        Ok(folder) => folder,
        Err(why) => return report_error(why),
    };
    let marks = Marks { folder: &*folder, dry_run: false, keeps: true };
    let start = |verifies: bool| {
        let order = WorkerOrder {
            run: run.clone(),
            store: store_words(&run, &settings),
            nodes: nodes.min(count),
            stale: args.stale(),
            verifies,
            rest: Vec::new(),
        };
        let ran = match &engine {
            _ if count == 0 => Ok(()),
            Engine::Local => run_local(&order, &marks),
            Engine::Slurm => slurm::run(&order, &marks),
            Engine::Ray(address) => run_ray(&order, address, &marks),
            Engine::Kubernetes | Engine::Parallel(_) => Ok(()),
        };
        // Continue after failures of workers: collect transfers the rest, if one of them came.
        if let Err(error) = ran {
            output::message(&error.message);
        }
    };
    let collect = |verifies: bool| {
        let (stale, waits, json, alone) = (args.stale(), true, false, false);
        let options = CollectOptions { stale, waits, json, verifies, alone };
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
