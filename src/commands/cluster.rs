//! `hakobu cluster`: one transfer on many machines that an existing engine schedules. Here are its subcommands' run
//! folder and one worker; each other subcommand has a file.

mod collect;
pub(super) mod options;
mod plan;
mod status;
mod submit;
pub(super) mod sync;

use super::sync::read::read;
use super::tool::{end_with, refuse};
use crate::commands::session::stop_on_signals;
use crate::exit;
use crate::options::Refused;
use crate::show::{Show, Wanted, output};
use hakobu_cluster::folder::{self, RunError, RunFolder};
use hakobu_cluster::plan::{ClusterPlan, EndDirectory, Phase};
use hakobu_cluster::verify;
use hakobu_cluster::worker::{WorkerSetup, work};
use hakobu_core::error::quoted;
use hakobu_s3::Settings;
use hakobu_transfer::journal;
use hakobu_transfer::run::{Control, Outcome, Spec};
use options::Args;
pub(super) use options::TABLE;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let (verb, rest) =
        arguments.split_first().map_or((None, &[][..]), |(v, rest)| (v.to_str(), rest));
    // An error is the exit code of an early end, whose message was printed.
    let subcommand: fn(&[OsString]) -> Result<u8, u8> = match verb.unwrap_or_default() {
        "plan" => plan::run,
        "work" => run_work,
        "status" => status::run,
        "collect" => collect::run,
        "submit" => submit::run,
        "--help" | "-h" => help,
        _ => {
            let message = "give plan, work, status, collect or submit (hakobu cluster --help)";
            return end_with(exit::USAGE, message).into();
        }
    };
    let asks_help = rest.iter().any(|word| word == "--help");
    let done = if asks_help { help(rest) } else { subcommand(rest) };
    done.unwrap_or_else(|code| code).into()
}

fn help(_: &[OsString]) -> Result<u8, u8> {
    output::text(&TABLE.help());
    Ok(exit::OK)
}

/// Runs `cluster work`: one worker.
fn run_work(arguments: &[OsString]) -> Result<u8, u8> {
    let RunArguments { args, run, .. } = parse_run("work", arguments, NEVER)?;
    let opened = open_run(&run, &args.settings()).map_err(report_error)?;
    let phase = match args.verify {
        false => Phase::Transfer,
        true => {
            verify::refuse_unfit(&opened.spec).map_err(|fatal| end_with(NEVER, &fatal.message))?;
            collect::verification(&*opened.folder).map_err(report_error)?.0
        }
    };
    let job = WorkerJob {
        phase,
        stale: args.stale(),
        workers: args.workers.unwrap_or(1),
        command: "cluster work",
        at_once: AGAIN,
    };
    let done = run_worker(opened, job).map_err(|message| end_with(NEVER, &message));
    let WorkerEnd { code, why, complete } = done?;
    if let Some(why) = why {
        output::message(&why);
    }
    Ok(if complete || code != exit::OK { code } else { AGAIN })
}

/// A worker in this process: of `cluster work`, and of a collect that verifies.
pub struct WorkerJob {
    /// The phase.
    pub phase: Phase,
    /// Time without a sign of life after which others count as gone.
    pub stale: Duration,
    /// Workers that are expected; limits are divided by their number.
    pub workers: u64,
    /// The command that runs it, for messages.
    pub command: &'static str,
    /// Exit code of a second signal.
    pub at_once: u8,
}

/// End of a worker.
pub struct WorkerEnd {
    /// Exit code of `cluster work`.
    pub code: u8,
    /// Reason for an end before all was done.
    pub why: Option<String>,
    /// Everything could be shown.
    pub complete: bool,
}

/// Runs a worker to its end.
///
/// # Errors
/// A sentence: it cannot run as the plan's options ask for.
pub fn run_worker(mut opened: OpenRun, job: WorkerJob) -> Result<WorkerEnd, String> {
    let control = Arc::new(Control::default());
    stop_on_signals(&control, job.at_once, "this run");
    opened.wanted.priority.apply()?;
    opened.spec.limits = opened.spec.limits.divided(job.workers);
    let wanted = Wanted {
        command: job.command,
        done: "copied",
        quiet: opened.wanted.quiet,
        problems: opened.wanted.problems,
        links: opened.wanted.links.clone(),
        ..Wanted::default()
    };
    let show = Show::new(wanted, Arc::clone(&control))?;
    let setup = WorkerSetup {
        folder: &*opened.folder,
        plan: &opened.plan,
        spec: opened.spec,
        control: &control,
        listener: &show,
        stale: job.stale,
        workers: job.workers,
        phase: job.phase,
    };
    let (code, why) = match work(&setup) {
        Ok(()) => (exit::OK, None),
        Err(error) => (worker_exit_code(&error), Some(error.message)),
    };
    let complete = show.finish(&Outcome::default(), code);
    Ok(WorkerEnd { code, why, complete })
}

/// `work`, `collect`: another try may succeed (sysexits.h, EX_TEMPFAIL).
pub const AGAIN: u8 = 75;
/// `work`: no try will succeed (sysexits.h, EX_DATAERR).
pub const NEVER: u8 = 65;

/// The version of the program, which plans and workers must share.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Options of a subcommand and its run folder; what comes after the folder is in `rest`.
pub struct RunArguments {
    pub args: Args,
    pub run: OsString,
    pub rest: Vec<OsString>,
}

/// Reads the command line of a subcommand that takes a run folder; the error is an exit code, with its message already
/// told.
pub fn parse_run(verb: &str, arguments: &[OsString], usage_code: u8) -> Result<RunArguments, u8> {
    let typed = TABLE.parse(arguments).map_err(|refused| refuse(refused, usage_code))?;
    let usage = |message: String| end_with(usage_code, &message);
    if let Some(other) = options::misplaced(verb, &typed) {
        return Err(usage(format!("--{other} is not an option of cluster {verb}")));
    }
    let args = TABLE.read(&typed, Args::default()).map_err(usage)?;
    let mut paths = typed.paths.into_iter();
    let Some(run) = paths.next() else {
        return Err(usage(format!("give a run folder: hakobu cluster {verb} RUN")));
    };
    let rest: Vec<OsString> = paths.collect();
    if verb != "submit" && !rest.is_empty() {
        return Err(usage(format!("cluster {verb} takes one run folder")));
    }
    Ok(RunArguments { args, run: absolute(&run), rest })
}

/// The absolute form of a path; `s3://` is unchanged.
pub fn absolute(path: &OsStr) -> OsString {
    match path.as_bytes().starts_with(b"s3://") {
        true => path.to_owned(),
        false => {
            std::path::absolute(path).map_or_else(|_| path.to_owned(), PathBuf::into_os_string)
        }
    }
}

/// A run that was planned: its folder, its plan, and the transfer as the plan's words have it.
pub struct OpenRun {
    pub folder: Arc<dyn RunFolder>,
    pub plan: ClusterPlan,
    pub spec: Spec,
    pub wanted: Wanted,
}

/// Opens a run, goes to the folder of its paths, and reads its words.
pub fn open_run(run: &OsStr, settings: &Settings) -> Result<OpenRun, RunError> {
    let folder = folder::open(run, settings, false)?;
    let plan = ClusterPlan::read(&*folder, VERSION)?;
    let entered = std::env::set_current_dir(decoded(&plan.folder));
    let words: Vec<OsString> = plan.words.iter().map(|word| decoded(word)).collect();
    let (spec, wanted, _) = match read(&words) {
        Ok(read) => read,
        Err(Refused::Usage(message) | Refused::Failed { message, .. }) => {
            return Err(RunError::permanent(format!(
                "cannot read the plan's command line: {message}"
            )));
        }
        Err(Refused::Help(_)) => return Err(RunError::permanent("the plan asks for help")),
    };
    if let Err(error) = entered
        && paths(&spec).any(Path::is_relative)
    {
        let shown = quoted(decoded(&plan.folder));
        let hint = "hint: relative paths begin there; plan with absolute ones";
        return Err(RunError::permanent(format!("cannot enter {shown}: {error}\n{hint}")));
    }
    check_ends(&plan)?;
    Ok(OpenRun { folder, plan, spec, wanted })
}

fn decoded(text: &str) -> OsString {
    OsString::from_vec(journal::bytes(text))
}

/// Paths of this machine at both ends.
fn paths(spec: &Spec) -> impl Iterator<Item = &Path> {
    spec.sources.paths().iter().map(PathBuf::as_path).chain(spec.target.local())
}

/// The existing directories at both ends of a transfer.
pub fn end_directories(spec: &Spec) -> Vec<EndDirectory> {
    let of = |path: &Path| {
        let meta = std::fs::metadata(path).ok().filter(|meta| meta.is_dir())?;
        Some(EndDirectory { path: journal::text(path.as_os_str().as_bytes()), ino: meta.ino() })
    };
    paths(spec).filter_map(of).collect()
}

/// Compares the directories at both ends with those that the plan saw. A file system that is not
/// mounted leaves an empty directory in its place, and everything would seem to be gone.
fn check_ends(plan: &ClusterPlan) -> Result<(), RunError> {
    for EndDirectory { path, ino } in &plan.ends {
        let path = decoded(path);
        let there = std::fs::metadata(&path).map(|meta| meta.ino());
        let why = match there {
            Ok(there) if there == *ino => continue,
            Ok(_) => "it is another directory than the plan saw".to_owned(),
            Err(error) => error.to_string(),
        };
        let hint = "hint: every machine has to see both ends under the same paths";
        return Err(RunError::permanent(format!("cannot use {}: {why}\n{hint}", quoted(path))));
    }
    Ok(())
}

/// Tells why a run cannot be used; the exit code.
pub fn report_error(why: RunError) -> u8 {
    end_with(worker_exit_code(&why), &why.message)
}

/// The exit code of a worker that ended early.
pub fn worker_exit_code(why: &RunError) -> u8 {
    if why.is_transient { AGAIN } else { NEVER }
}
