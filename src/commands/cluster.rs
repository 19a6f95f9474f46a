//! `hakobu cluster`: one transfer on many machines: its options, its commands, and the worker.

mod attendance;
mod collect;
mod kubernetes;
mod plan;
mod slurm;
mod status;
pub(super) mod submit;

use super::session::stop_on_signals;
use super::sync::read;
use super::tool::{end_with, refuse};
use crate::cli::{
    Block, Group, HelpLength, Opt, OptArg, Part, Refused, Row, Syntax, Table, flag, parts, push,
    put, titled, value,
};
use crate::show::{Show, ShowOptions, output};
use crate::{exit, limits, objects};
use hakobu_cluster::folder::{self, RunError, RunFolder};
use hakobu_cluster::known::PreviousRun;
use hakobu_cluster::plan::{ClusterPlan, EndDirectory, Phase};
use hakobu_cluster::worker::{WorkerSetup, work};
use hakobu_cluster::{submitted, verify};
use hakobu_core::error::quoted;
use hakobu_core::language::Language;
use hakobu_s3::{S3Session, Settings};
use hakobu_transfer::journal;
use hakobu_transfer::run::{Control, Outcome, Spec};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Default of `--stale-after`.
const STALE: Duration = Duration::from_secs(30);

/// The command line of `cluster` but for `plan`, which takes sync's options as well.
pub static TABLE: Table<ClusterArgs> = Table {
    command: "cluster",
    about: "Spread one transfer over many machines",
    description: "plan divides the work in RUN, work does parts of it on any number of machines, \
            status shows how far they are, and collect finishes it. submit hands all of it to Slurm, Ray, Kubernetes or ssh; sync \
            --cluster ENGINE:N does everything in one command.",
    usage: "hakobu cluster plan --run RUN [SYNC OPTIONS] SRC... DST\n       \
            hakobu cluster work [OPTIONS] RUN\n       \
            hakobu cluster status [OPTIONS] RUN\n       \
            hakobu cluster collect [OPTIONS] RUN\n       \
            hakobu cluster submit ENGINE [OPTIONS] RUN [-- ENGINE'S OPTIONS]",
    examples: &[
        (
            "hakobu cluster plan -a src/ /mnt/new/ --run r && hakobu cluster work r && hakobu cluster collect r",
            "Plan a transfer in a run folder, do it with one worker, and finish it.",
        ),
        (
            "hakobu sync -a src/ /mnt/new/ --cluster local:2 --run run2",
            "Do all of that with two workers on this machine.",
        ),
        (
            "hakobu sync -a src/ /mnt/new/ --cluster local:2 --run run3 --verify",
            "Compare all transferred entries afterwards, also on the workers.",
        ),
    ],
    common: &[
        "run", "workers", "cluster", "verify", "wait", "once", "json", "slurm", "ray", "k8s",
        "parallel", "nodes", "dry-run",
    ],
    after: "RUN is a directory that all machines share: a path (mode 0700), or \
            s3://BUCKET/PREFIX.\n\
            Exit codes: plan and collect as sync; work 0 nothing left, 75 try again, 65 no \
            attempt can succeed; collect 75 if workers are still running, or none could open \
            the run, 65 if the run cannot be used; status and submit 0, 1 and 2.\n\
            hakobu cluster SUBCOMMAND --help tells more of each.",
    options: &[&PLANNED, &WORKED, &COLLECTED, &WATCHED, &ENGINES, &objects::STORE],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

/// An engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Processes of this machine.
    Local,
    /// Slurm.
    Slurm,
    /// Ray, at an address.
    Ray(String),
    /// Kubernetes: manifests are printed.
    Kubernetes,
    /// GNU parallel, with a file of hosts.
    Parallel(OsString),
}

impl Engine {
    /// `ENGINE:N`: an engine that can be waited for, and a number of workers.
    pub fn with_count(text: &str) -> Option<(Engine, u64)> {
        let (engine, count) = text.split_once(':')?;
        let engine = match engine {
            "local" => Engine::Local,
            "slurm" => Engine::Slurm,
            "ray" => Engine::Ray("auto".to_owned()),
            _ => return None,
        };
        let count = count.parse().ok().filter(|count| *count > 0)?;
        Some((engine, count))
    }
}

/// Values of the options.
#[derive(Clone, Debug, Default)]
pub struct ClusterArgs {
    /// `--run`.
    pub run: Option<OsString>,
    /// `--workers`.
    pub workers: Option<u64>,
    /// `--shard-size`.
    pub shard_bytes: Option<u64>,
    /// `--cluster`.
    pub cluster: Option<(Engine, u64)>,
    /// `--inventory`.
    pub inventory: Option<OsString>,
    /// `--previous-run`.
    pub previous: Option<OsString>,
    /// `--target-inventory`.
    pub target_inventory: Option<OsString>,
    /// `--verify`.
    pub verify: bool,
    /// `--stale-after`.
    stale: Option<Duration>,
    /// `--json`.
    pub json: bool,
    /// `--textfile`.
    pub textfile: Option<OsString>,
    /// `--once`.
    pub once: bool,
    /// `--lang`.
    pub language: Language,
    /// `--wait`.
    pub wait: bool,
    /// The engine that was named.
    pub engine: Option<Engine>,
    /// `--nodes`.
    pub nodes: Option<u64>,
    /// `--dry-run`.
    pub dry_run: bool,
    /// `--image`.
    pub image: Option<String>,
    /// `--volume`.
    pub volumes: Vec<String>,
    /// `--pod-template`.
    pub pod_template: Option<OsString>,
    /// `--alone`.
    pub alone: bool,
    objects: objects::ObjectArgs,
}

parts!(ClusterArgs { objects: objects::ObjectArgs });

impl ClusterArgs {
    /// Whether nothing was said of many machines.
    pub fn is_alone(&self) -> bool {
        self.run.is_none()
            && self.workers.is_none()
            && self.shard_bytes.is_none()
            && self.cluster.is_none()
            && self.inventory.is_none()
            && self.previous.is_none()
            && self.target_inventory.is_none()
            && !self.verify
    }

    /// Time after which a worker that gives no sign of life counts as gone.
    pub fn stale(&self) -> Duration {
        self.stale.unwrap_or(STALE)
    }

    /// The store of a run folder in S3. Its paths are absolute: a worker goes to the folder of the plan.
    pub fn settings(&self) -> Settings {
        objects::absolute(self.objects.settings())
    }
}

/// Options of `plan`, which `sync` has as well.
pub static PLANNED: Group<ClusterArgs> = titled("Many machines").with(&[
    value("run", None, "RUN", "the run folder, which all machines share")
        .reads(|asked, given| put(&mut asked.run, Some(given.value.clone()))),
    value(
        "workers",
        None,
        "N",
        "expected number of workers (16); for work: limits are divided by it",
    )
    .reads(|asked, given| put(&mut asked.workers, Some(given.positive()?))),
    value(
        "shard-size",
        None,
        "SIZE",
        "minimum work of a shard: bytes, plus 64 KiB per entry (S3: 1 MiB)",
    )
    .reads(|asked, given| put(&mut asked.shard_bytes, Some(given.size()?.max(1)))),
    value("cluster", None, "ENGINE:N", "plan, run N workers (local:, slurm:, ray:), collect")
        .reads(|asked, given| {
            let parsed = given.value.to_str().and_then(Engine::with_count);
            let refused = || given.refuse("not ENGINE:N such as local:4, slurm:16 or ray:8");
            put(&mut asked.cluster, Some(parsed.ok_or_else(refused)?))
        }),
    value(
        "inventory",
        None,
        "MANIFEST",
        "plan: names of SRC from an S3 Inventory (manifest.json, local or s3://)",
    )
    .reads(|asked, given| put(&mut asked.inventory, Some(given.value.clone()))),
    value(
        "previous-run",
        None,
        "RUN",
        "plan: what the manifest of this earlier run knows of objects is not asked for again (default: the last run of the same ends)",
    )
    .reads(|asked, given| put(&mut asked.previous, Some(given.value.clone()))),
    value(
        "target-inventory",
        None,
        "MANIFEST",
        "plan: names of DST from an S3 Inventory; what it lacks is looked at before it is written",
    )
    .reads(|asked, given| put(&mut asked.target_inventory, Some(given.value.clone()))),
    flag(
        "verify",
        None,
        "compare all transferred entries byte for byte, on the workers (--cluster, work, collect, submit)",
    )
    .sets(|asked, on| asked.verify = on),
]);

const WORKED: &[Opt<ClusterArgs>] = &[value(
    "stale-after",
    None,
    "TIME",
    "time without a heartbeat after which a worker counts as gone (30s)",
)
.reads(|asked, given| {
    let stale = given.duration("h", "30s or 2m")?;
    if stale < Duration::from_secs(2) {
        return Err(given.refuse("too short (at least 2s)"));
    }
    put(&mut asked.stale, Some(stale))
})];

static COLLECTED: Group<ClusterArgs> = titled("Options of collect").with(&[
    flag("wait", None, "wait until all workers have ended").sets(|asked, on| asked.wait = on),
    flag("alone", None, "transfer everything here, although no worker could open the run")
        .sets(|asked, on| asked.alone = on),
]);

static WATCHED: Group<ClusterArgs> = titled("Output").with(&[
    flag("json", None, "JSON, one object (status, collect)").sets(|asked, on| asked.json = on),
    flag("once", None, "show it once, also on a terminal (status)")
        .sets(|asked, on| asked.once = on),
    value(
        "lang",
        None,
        "LANG",
        "language of the bottlenecks: en (default, or $HAKOBU_LANG) or ja (status)",
    )
    .words(limits::LANGUAGES)
    .reads(|asked, given| put(&mut asked.language, limits::parse_language(given)?)),
    value("textfile", None, "FILE", "write it for Prometheus' node exporter, too (status)")
        .reads(|asked, given| put(&mut asked.textfile, Some(given.value.clone()))),
]);

static ENGINES: Group<ClusterArgs> = titled("Engines of submit").with(&[
    value("local", None, "N", "N workers on this machine")
        .reads(|asked, given| count(asked, Engine::Local, given.positive()?)),
    flag("slurm", None, "jobs of Slurm, one worker a node, and one that collects")
        .sets(|asked, _| asked.engine = Some(Engine::Slurm)),
    value("ray", None, "ADDRESS", "tasks of a Ray cluster, one a node ('auto': the running one)")
        .reads(|asked, given| put(&mut asked.engine, Some(Engine::Ray(given.text()?.to_owned())))),
    flag("k8s", None, "print the Jobs for Kubernetes")
        .sets(|asked, _| asked.engine = Some(Engine::Kubernetes)),
    value("parallel", None, "HOSTS", "GNU parallel over ssh, with its file of hosts")
        .reads(|asked, given| put(&mut asked.engine, Some(Engine::Parallel(given.value.clone())))),
    value("nodes", None, "N", "workers to start")
        .reads(|asked, given| put(&mut asked.nodes, Some(given.positive()?))),
    flag("dry-run", Some('n'), "print what would be submitted")
        .sets(|asked, on| asked.dry_run = on),
    value("image", None, "IMAGE", "--k8s: the image with hakobu in it")
        .reads(|asked, given| put(&mut asked.image, Some(given.text()?.to_owned()))),
    value(
        "volume",
        None,
        "CLAIM:PATH",
        "--k8s: a PersistentVolumeClaim and its path; several times",
    )
    .takes(crate::cli::Takes::Values("CLAIM:PATH"))
    .reads(|asked, given| push(&mut asked.volumes, given.text()?.to_owned())),
    value(
        "pod-template",
        None,
        "FILE",
        "--k8s: a Pod or PodTemplateSpec (JSON or YAML) to merge into the Jobs' pods",
    )
    .reads(|asked, given| put(&mut asked.pod_template, Some(given.value.clone()))),
]);

fn count(asked: &mut ClusterArgs, engine: Engine, nodes: u64) -> Result<(), String> {
    (asked.engine, asked.nodes) = (Some(engine), Some(nodes));
    Ok(())
}

/// Options of a subcommand: those of [`TABLE`] with these names.
struct Only(&'static [&'static str]);

impl Block<ClusterArgs> for Only {
    fn rows(&self) -> Vec<(&'static str, &'static Row)> {
        let mut rows: Vec<_> = TABLE.options.iter().flat_map(|block| block.rows()).collect();
        rows.retain(|(_, row)| self.0.contains(&row.name));
        rows
    }

    fn set(&self, args: &mut ClusterArgs, given: &OptArg) -> Option<Result<(), String>> {
        let own = self.0.contains(&given.name);
        own.then(|| TABLE.options.iter().find_map(|block| block.set(args, given))).flatten()
    }
}

/// Options of `plan` besides those of sync.
const OF_PLAN: &[&str] =
    &["run", "workers", "shard-size", "inventory", "target-inventory", "previous-run"];

/// The help of `plan`; its command line is that of `sync`.
static PLAN: Table<ClusterArgs> = Table {
    command: "cluster plan",
    about: "Plan a transfer for many machines",
    description: "Writes the work of a transfer into RUN. It cuts the names into ranges, which the \
            workers list; where there are few, or they cannot be cut, it lists both sides itself.",
    usage: "hakobu cluster plan --run RUN [SYNC OPTIONS] SRC... DST",
    examples: &[(
        "hakobu cluster plan -a --run r src/ /mnt/new/",
        "Plan a transfer; the run folder is r.",
    )],
    common: OF_PLAN,
    after: "All options of sync are valid, too: hakobu sync --help. Options that cannot be kept on many \
            machines are refused.\n\
            Exit codes: those of sync.",
    options: &[&Only(OF_PLAN)],
    unbuilt: &[],
    abbreviates: false,
};

static WORK: Table<ClusterArgs> = Table {
    command: "cluster work",
    about: "Do parts of a planned transfer until nothing is left",
    description: "One worker. Start one on each machine, at any time and in any number: they divide \
            the work through RUN. A worker that is killed loses nothing; others do its part.",
    usage: "hakobu cluster work [OPTIONS] RUN",
    examples: &[
        ("hakobu cluster work r", "Do what is left, together with other workers."),
        (
            "hakobu cluster work --verify r",
            "Compare what was transferred, as collect --verify asks.",
        ),
    ],
    common: &[],
    after: "Exit codes: 0 nothing is left, 75 try again, 65 no attempt can succeed.",
    options: &[&Only(&["workers", "verify"]), &WORKED, &objects::STORE],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

static STATUS: Table<ClusterArgs> = Table {
    command: "cluster status",
    about: "Show how far the workers are",
    description: "Progress, rate and time left, each worker with what it waits for, lost workers, and \
            what limits the run. On a terminal it is shown until the run ends.",
    usage: "hakobu cluster status [OPTIONS] RUN",
    examples: &[
        ("hakobu cluster status r", "Show it until the run ends."),
        (
            "hakobu cluster status --once --textfile hakobu.prom r",
            "Show it once, and write it for Prometheus' node exporter.",
        ),
    ],
    common: &[],
    after: "Exit codes: 0, 1 the run folder cannot be read or the file not written, 2 usage.",
    options: &[&WATCHED, &objects::STORE],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

static COLLECT: Table<ClusterArgs> = Table {
    command: "cluster collect",
    about: "Finish a transfer that workers have done",
    description: "Does what no worker did, removes what --delete asks for after another look at both \
            ends, sets times of directories, and reports the result. It can be interrupted and \
            repeated.",
    usage: "hakobu cluster collect [OPTIONS] RUN",
    examples: &[
        ("hakobu cluster collect --wait r", "Finish as soon as all workers have ended."),
        ("hakobu cluster collect --verify r", "Compare all transferred entries afterwards."),
    ],
    common: &[],
    after: "Exit codes: those of sync, and 75 if workers are still running, or none could open the run, 65 \
            if the run cannot be used.",
    options: &[&Only(&["verify", "stale-after", "json"]), &COLLECTED, &objects::STORE],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

static SUBMIT: Table<ClusterArgs> = Table {
    command: "cluster submit",
    about: "Give a planned transfer to Slurm, Ray, Kubernetes, ssh, or processes of this machine",
    description: "Starts workers, and collect after them. The options of the store of RUN reach all of \
            them. What follows -- goes to the engine as it is.",
    usage: "hakobu cluster submit ENGINE [OPTIONS] RUN [-- ENGINE'S OPTIONS]",
    examples: &[
        ("hakobu cluster submit --local 4 r", "Four workers on this machine."),
        (
            "hakobu cluster submit --slurm --nodes 8 -n r -- --partition=io --time=2:00:00",
            "Print what would be submitted for eight nodes.",
        ),
    ],
    common: &[],
    after: "Exit codes: 0 submitted, 1 the engine refused it, 2 usage.",
    options: &[&Only(&["verify", "stale-after"]), &ENGINES, &objects::STORE],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

/// The subcommands, for completions.
pub static PARTS: &[Part] = &[
    Part::new("plan", "divide the work in RUN").of(&super::sync::TABLE),
    Part::new("work", "do parts of the work").of(&WORK),
    Part::new("status", "show how far the workers are").of(&STATUS),
    Part::new("collect", "finish the transfer").of(&COLLECT),
    Part::new("submit", "hand a run to an engine").of(&SUBMIT),
];

/// Runs a subcommand; an error is the exit code of an early end, whose message was printed.
type Subcommand = fn(&[OsString]) -> Result<u8, u8>;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let (verb, rest) =
        arguments.split_first().map_or((None, &[][..]), |(v, rest)| (v.to_str(), rest));
    let (subcommand, table): (Subcommand, _) = match verb.unwrap_or_default() {
        "plan" => (plan::run, &PLAN),
        "work" => (run_work, &WORK),
        "status" => (status::run, &STATUS),
        "collect" => (collect::run, &COLLECT),
        "submit" => (submit::run, &SUBMIT),
        "--help" => return help(&TABLE, HelpLength::Whole),
        "-h" => return help(&TABLE, HelpLength::Short),
        _ => {
            let message = "missing subcommand: plan, work, status, collect or submit\nhint: hakobu cluster --help describes them";
            return end_with(exit::USAGE, message).into();
        }
    };
    // What follows `--` is another program's.
    let own = || rest.iter().take_while(|word| *word != "--");
    if own().any(|word| word == "--help") {
        return help(table, HelpLength::Whole);
    }
    // In sync's options -h is --human-readable beside others.
    if own().any(|word| word == "-h") && (rest.len() == 1 || verb != Some("plan")) {
        return help(table, HelpLength::Short);
    }
    subcommand(rest).unwrap_or_else(|code| code).into()
}

fn help(table: &Table<ClusterArgs>, length: HelpLength) -> ExitCode {
    output::text(&table.help(length));
    exit::OK.into()
}

/// Runs `cluster work`: one worker.
fn run_work(arguments: &[OsString]) -> Result<u8, u8> {
    let RunArguments { args, run, .. } = parse_run(&WORK, arguments, NEVER)?;
    let folder = folder::open(&run, &args.settings(), false).map_err(report_error)?;
    let opened = open_ends(Arc::clone(&folder), &run, &args.settings());
    let opened = opened.map_err(|why| {
        // The exit code says it as well, but the machine that collects reads the folder only.
        drop(submitted::record_unopened(&*folder, &why, args.stale(), args.verify));
        report_error(why)
    })?;
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
        last_word: false,
    };
    let done = run_worker(opened, job).map_err(|message| end_with(NEVER, &message));
    let WorkerEnd { code, error, complete } = done?;
    if let Some(error) = error {
        output::message(&error.message);
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
    /// See [`WorkerSetup`].
    pub last_word: bool,
}

/// End of a worker.
pub struct WorkerEnd {
    /// Exit code of `cluster work`.
    pub code: u8,
    /// Why it ended before all was done.
    pub error: Option<RunError>,
    /// Everything could be shown.
    pub complete: bool,
}

/// Runs a worker to its end.
///
/// # Errors
/// A sentence: it cannot run as the plan's options ask for.
pub fn run_worker(opened: OpenRun, job: WorkerJob) -> Result<WorkerEnd, String> {
    let control = Arc::new(Control::default());
    stop_on_signals(&control, job.at_once, "this run");
    opened.wanted.priority.apply()?;
    let wanted = ShowOptions {
        command: job.command,
        done: "copied",
        quiet: opened.wanted.quiet,
        problems: opened.wanted.problems,
        links: opened.wanted.links.clone(),
        ..ShowOptions::default()
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
        previous: opened.previous.as_ref(),
        last_word: job.last_word,
    };
    let error = work(&setup).err();
    let code = error.as_ref().map_or(exit::OK, worker_exit_code);
    let complete = show.finish(&Outcome::default(), code);
    Ok(WorkerEnd { code, error, complete })
}

/// `work`, `collect`: another try may succeed (sysexits.h, EX_TEMPFAIL).
pub const AGAIN: u8 = 75;
/// `work`: no try will succeed (sysexits.h, EX_DATAERR).
pub const NEVER: u8 = 65;

/// The version of the program, which plans and workers must share.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Options of a subcommand and its run folder; what comes after the folder is in `rest`.
pub struct RunArguments {
    pub args: ClusterArgs,
    pub run: OsString,
    pub rest: Vec<OsString>,
}

/// Reads the command line of a subcommand that takes a run folder; the error is an exit code, with its message already
/// told.
fn parse_run(
    table: &Table<ClusterArgs>,
    arguments: &[OsString],
    usage_code: u8,
) -> Result<RunArguments, u8> {
    // An option of another subcommand is refused by name, not as an unknown one.
    let typed = TABLE.parse(arguments).map_err(|refused| refuse(refused, usage_code))?;
    let usage = |message: String| end_with(usage_code, &message);
    let args = table.read(&typed, ClusterArgs::default()).map_err(usage)?;
    let mut paths = typed.paths.into_iter();
    let command = table.command;
    let Some(run) = paths.next() else {
        return Err(usage(format!("missing run folder: hakobu {command} RUN")));
    };
    let rest: Vec<OsString> = paths.collect();
    if command != SUBMIT.command && !rest.is_empty() {
        return Err(usage(format!("{command} takes one run folder")));
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
    pub wanted: ShowOptions,
    /// What an earlier run of the same ends knows of objects.
    pub previous: Option<PreviousRun>,
    /// The run folder as it was given.
    pub run: OsString,
}

/// Opens a run for a worker, with both ends: as [`open_plan`], and ends in S3 must have settings that can be used. Nothing
/// is asked of a server.
fn open_ends(
    folder: Arc<dyn RunFolder>,
    run: &OsStr,
    settings: &Settings,
) -> Result<OpenRun, RunError> {
    let opened = open_plan(folder, run, settings)?;
    let spec = &opened.spec;
    let sides = [
        ("source", spec.sources.are_s3(), &spec.objects.source),
        ("target", spec.target.is_s3(), &spec.objects.target),
    ];
    for (side, _, settings) in sides.into_iter().filter(|(_, is_s3, _)| *is_s3) {
        S3Session::open(settings).map_err(|error| {
            RunError::permanent(format!("cannot use the {side} in S3: {error}"))
        })?;
    }
    Ok(opened)
}

/// Opens a run, goes to the folder of its paths, and reads its words.
pub fn open_run(run: &OsStr, settings: &Settings) -> Result<OpenRun, RunError> {
    open_plan(folder::open(run, settings, false)?, run, settings)
}

/// The same for a run folder that is open.
fn open_plan(
    folder: Arc<dyn RunFolder>,
    run: &OsStr,
    settings: &Settings,
) -> Result<OpenRun, RunError> {
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
    // It only spares requests.
    let previous = plan.previous.as_ref().and_then(|previous| {
        let folder = folder::open(&decoded(previous), settings, false).ok()?;
        PreviousRun::open(folder, VERSION)
    });
    Ok(OpenRun { folder, plan, spec, wanted, previous, run: run.to_owned() })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_have_a_count() {
        assert_eq!(Engine::with_count("local:4"), Some((Engine::Local, 4)));
        assert_eq!(Engine::with_count("slurm:16"), Some((Engine::Slurm, 16)));
        for other in ["local", "local:0", "local:x", "k8s:3", ":3", ""] {
            assert_eq!(Engine::with_count(other), None, "{other}");
        }
    }
}
