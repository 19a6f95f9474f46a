//! `hakobu verify`: compares two trees in selected aspects and reports the differences, as text and as JSON lines.

use super::remote::{self, RemoteArgs, RemotePlaces};
use super::session::stop_on_signals;
use super::tool::{self, end_with, refuse};
use crate::cli::{
    Group, JSON, Opt, OptArg, Refused, Row, Table, Takes, Typed, flag, parts, put, titled, value,
};
use crate::exit;
use crate::filters::{self, Context, Filters};
use crate::limits::{self, LimitArgs};
use crate::number::{bytes, grouped, things};
use crate::objects::{self, ObjectArgs};
use crate::show::escape::Escape;
use crate::show::json::{self, Paths, kind_word};
use crate::show::{Show, ShowOptions, output};
use hakobu_core::control::Control;
use hakobu_core::error::{Fatal, cannot};
use hakobu_core::limit::Limits;
use hakobu_core::unit::{Jobs, Kind, Meta, Time, Totals};
use hakobu_sys::paths::Links;
use hakobu_sys::proc::ResourceUsage;
use hakobu_transfer::location::{Location, Side, Sources};
use hakobu_transfer::policy::{Policy, Preserve, Symlinks};
use hakobu_transfer::run::{self, AgentTask, Layout, RemoteEnd, Spec, steered, verify_with_agent};
use hakobu_transfer::verify::{
    self, Aspect, Aspects, Difference, Finding, ObjectSpec, Times, VerifyCounts, VerifySpec,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The command line of `verify`.
pub static TABLE: Table<VerifyArgs> = Table {
    command: "verify",
    about: "Compare two trees and report what differs; nothing is changed",
    description: "Compares type, size, content, mode, owner, group, times, symlink targets and \
            device numbers, as sync -a keeps them. Contents are read on both sides, or \
            compared with the checksums that S3 stores.",
    usage: "hakobu verify [OPTIONS] SRC DST",
    examples: &[
        ("hakobu verify -HAX src same", "Compare two trees with links, ACLs and attributes."),
        (
            "hakobu verify photos/ s3://data/photos/",
            "Compare a directory with a prefix, by the checksums that are stored.",
        ),
        ("hakobu verify src user@host:copy", "Compare a tree with its copy on another machine."),
        ("hakobu verify --one-way src/ same/", "Ignore entries that only DST has."),
    ],
    common: &[
        "size-only",
        "one-way",
        "exclude",
        "max-differences",
        "verbose",
        "quiet",
        "jobs",
        "json",
    ],
    after: "SRC and DST themselves are compared: a directory with a directory, a file with a \
            file; a symlink is followed only if it ends with a slash. The comparison covers what \
            sync -a keeps: type, size, content, mode, owner, group, times, symlink texts, device \
            numbers; each has a --no- form. A directory that one side lacks is one difference. \
            Entries that a filter rule hides or protects are not compared.\n\
            With s3://, files and symlinks are compared by type, size and content, with -a also \
            by the times and modes in metadata. Directories are not compared. A local symlink is \
            compared with a stored symlink by its text, and with any other object by the file \
            that it points to; -L follows all symlinks.\n\
            Exit codes: 0 the same, 1 different, 2 something could not be compared, or usage.",
    options: &[
        &COMPARED,
        &filters::OPTIONS,
        &DIFFERENCES,
        &JOBS,
        &OUTPUT,
        &objects::COMMON,
        &objects::NAMES,
        &objects::SIDES,
        &limits::BWLIMIT,
        &limits::IOPS,
        &limits::PRIORITY,
        &remote::OPTIONS,
    ],
    unbuilt: &[UNBUILT, objects::UNBUILT],
    abbreviates: false,
};

/// The options read so far.
#[derive(Debug, Default)]
pub struct VerifyArgs {
    /// Whether a side is in `s3://`.
    in_store: bool,
    pub(super) aspects: Aspects,
    /// Aspects with a side in S3: only these are stored in metadata, and only if requested.
    pub(super) explicit: Aspects,
    pub(super) times: Times,
    pub(super) one_way: bool,
    /// Local symlinks are followed if a side is in `s3://`.
    pub(super) follow: bool,
    /// Maximum number of differences reported.
    pub(super) differences_max: u64,
    pub(super) verbose: bool,
    pub(super) quiet: bool,
    pub(super) stats: bool,
    pub(super) json: bool,
    pub(super) limits: LimitArgs,
    pub(super) filters: Filters,
    pub(super) objects: ObjectArgs,
    pub(super) remote: RemoteArgs,
}

parts!(VerifyArgs { limits: LimitArgs, filters: Filters, objects: ObjectArgs, remote: RemoteArgs });

impl VerifyArgs {
    /// Returns the defaults.
    pub fn new(in_store: bool) -> VerifyArgs {
        VerifyArgs {
            in_store,
            aspects: Aspects::DEFAULT,
            explicit: Aspects::NONE
                .with(Aspect::Type)
                .with(Aspect::Size)
                .with(Aspect::Content)
                .with(Aspect::Link),
            differences_max: u64::MAX,
            ..VerifyArgs::default()
        }
    }

    /// Sets whether an aspect is compared, for objects as well.
    fn compare(&mut self, aspect: Aspect, on: bool) {
        for aspects in [&mut self.aspects, &mut self.explicit] {
            *aspects = if on { aspects.with(aspect) } else { aspects.without(aspect) };
        }
    }

    /// Sets whether an aspect that only files have is compared.
    fn compare_files(&mut self, aspect: Aspect, arg: &OptArg) -> Result<(), String> {
        if self.in_store && arg.on {
            return Err(format!("--{}: objects have nothing of the kind", arg.name));
        }
        let aspects = self.aspects;
        put(&mut self.aspects, if arg.on { aspects.with(aspect) } else { aspects.without(aspect) })
    }
}

/// Makes the row of an aspect.
const fn aspect(
    name: &'static str,
    short: char,
    off: &'static [&'static str],
    help: &'static str,
) -> Row {
    flag(name, Some(short), help).off(off)
}

static COMPARED: Group<VerifyArgs> = titled("What is compared").with(&[
    flag("archive", Some('a'), "same as -ptgolD (the default)").sets(|it, _| {
        for aspect in Aspects::DEFAULT.without(Aspect::Content).iter() {
            it.aspects = it.aspects.with(aspect);
        }
        it.explicit = it.explicit.with(Aspect::Mode).with(Aspect::Time);
    }),
    aspect(
        "checksum",
        'c',
        &["no-checksum", "no-c", "no-content", "size-only"],
        "contents, byte for byte (default; off: --size-only, --no-content)",
    )
    .sets(|it, on| it.compare(Aspect::Content, on)),
    aspect("perms", 'p', &["no-perms", "no-p"], "modes (default)")
        .sets(|it, on| it.compare(Aspect::Mode, on)),
    aspect("times", 't', &["no-times", "no-t"], "modification times (default)")
        .sets(|it, on| it.compare(Aspect::Time, on)),
    aspect("owner", 'o', &["no-owner", "no-o"], "owners (default)")
        .reads(|it, arg| it.compare_files(Aspect::Owner, arg)),
    aspect("group", 'g', &["no-group", "no-g"], "groups (default)")
        .reads(|it, arg| it.compare_files(Aspect::Group, arg)),
    aspect("links", 'l', &["no-links", "no-l"], "symlink targets (default)")
        .sets(|it, on| it.compare(Aspect::Link, on)),
    flag("copy-links", Some('L'), "with s3://: compare the files that local symlinks point to")
        .stored()
        .sets(|it, on| it.follow = on),
    aspect("devices", 'D', &["no-devices", "no-D"], "device numbers (default)")
        .reads(|it, arg| it.compare_files(Aspect::Device, arg)),
    aspect("hard-links", 'H', &["no-hard-links", "no-H"], "compare hard links")
        .reads(|it, arg| it.compare_files(Aspect::HardLinks, arg)),
    aspect("acls", 'A', &["no-acls", "no-A"], "POSIX ACLs")
        .reads(|it, arg| it.compare_files(Aspect::Acl, arg)),
    aspect("xattrs", 'X', &["no-xattrs", "no-X"], "extended attributes")
        .reads(|it, arg| it.compare_files(Aspect::Xattrs, arg)),
    aspect("sparse", 'S', &["no-sparse", "no-S"], "positions of holes, in units of 64 KiB")
        .alias(&["holes"])
        .reads(|it, arg| it.compare_files(Aspect::Holes, arg)),
    flag("omit-dir-times", Some('O'), "ignore the times of directories")
        .alias(&["ignore-dir-times"])
        .sets(|it, on| it.times.omit_dirs = on),
    flag("omit-link-times", Some('J'), "ignore the times of symlinks")
        .sets(|it, on| it.times.omit_links = on),
    value(
        "modify-window",
        Some('@'),
        "N",
        "allow times to differ by N seconds; -1: exact (default)",
    )
    .reads(|it, arg| put(&mut it.times.window_s, u64::try_from(number(arg)?).ok())),
    flag("one-way", None, "ignore entries that only DST has").sets(|it, on| it.one_way = on),
]);

static DIFFERENCES: Group<VerifyArgs> = titled("Output").with(&[value(
    "max-differences",
    None,
    "N",
    "print only the first N differences, count all",
)
.reads(|it, arg| {
    let most = u64::try_from(number(arg)?);
    put(&mut it.differences_max, most.map_err(|_| "--max-differences takes no negative number")?)
})]);

const JOBS: &[Opt<VerifyArgs>] = &[limits::JOBS.reads(limits::set_jobs)];

static OUTPUT: Group<VerifyArgs> = titled("Output").with(&[
    flag("verbose", Some('v'), "print totals, and problems as they occur")
        .takes(Takes::Count)
        .sets(|it, on| it.verbose = on),
    flag("quiet", Some('q'), "print only what could not be compared").sets(|it, on| it.quiet = on),
    flag("stats", None, "print counts at the end").sets(|it, on| it.stats = on),
    JSON.sets(|it, on| it.json = on),
]);

fn number(arg: &OptArg) -> Result<i64, String> {
    arg.parsed().ok_or_else(|| arg.refuse("give a number"))
}

const UNBUILT: &[(&str, &str)] = &[
    ("--recursive -r", "it is how verify works"),
    ("--one-file-system -x --files-from", ""),
    ("--delete", "verify changes nothing; --one-way allows extra entries in DST"),
    ("--dry-run -n", "verify changes nothing"),
];

/// The parsed command line.
#[derive(Debug)]
struct VerifyOptions {
    sides: Sides,
    read: VerifyArgs,
}

#[derive(Debug)]
enum Sides {
    Paths(VerifySpec, Limits),
    /// One is on another machine.
    Far(VerifySpec, Limits, Box<RemoteEnd>),
    /// At least one is in S3.
    Objects(Box<ObjectSpec>),
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let plan = TABLE.parse(&arguments).and_then(|typed| plan(&typed).map_err(Refused::Usage));
    let refused = |refused| refuse(refused, exit::VERIFY_TROUBLE);
    let failed = |message: String| end_with(exit::VERIFY_TROUBLE, &message);
    let code = plan.map_err(refused).and_then(|plan| compare(plan).map_err(failed));
    code.unwrap_or_else(|code| code).into()
}

fn plan(typed: &Typed) -> Result<VerifyOptions, String> {
    let [source, target] = typed.paths.as_slice() else {
        return Err(format!("verify takes two paths, SRC and DST, not {}", typed.paths.len()));
    };
    let message = |fatal: Fatal| fatal.message;
    let far = remote::places(std::slice::from_ref(source), target, "verify").map_err(message)?;
    let (source, target) = match &far {
        Some(RemotePlaces { sources, target, .. }) => {
            let source = sources.locations().next().unwrap_or(Location::Null);
            (source, target.clone())
        }
        None => (place(source)?, place(target)?),
    };
    let in_store = source.is_s3() || target.is_s3();
    let read = TABLE.read(typed, VerifyArgs::new(in_store))?;
    let context = Context { links: Links::Trusted, ..Context::default() };
    read.filters.note(in_store)?;
    let filter = read.filters.build(&context).map_err(|fatal| fatal.message)?;
    TABLE.check_places(typed, in_store, false)?;
    if far.is_none() {
        read.remote.refuse_unused()?;
    }
    // Requests have no limit here.
    let limits = read.limits.of_run(in_store)?;
    let (times, one_way) = (read.times, read.one_way);
    let sides = match (source, target) {
        (Location::Local(source), Location::Local(target)) => {
            let (aspects, open_dirs_max) = (read.aspects, 0);
            let spec =
                VerifySpec { source, target, aspects, times, one_way, filter, open_dirs_max };
            match far {
                None => Sides::Paths(spec, limits),
                Some(RemotePlaces { side, host, .. }) => {
                    check_far(&spec)?;
                    // Rules are applied here, where both names of a pair are known.
                    let options = remote::task_options(typed, FAR);
                    let end = read.remote.end((side, host), "verify", options);
                    Sides::Far(spec, limits, Box::new(end.map_err(message)?))
                }
            }
        }
        (source, target) => {
            let objects = read.objects.clone().objects()?;
            Sides::Objects(Box::new(ObjectSpec {
                source,
                target,
                source_settings: objects.source,
                target_settings: objects.target,
                aspects: read.explicit,
                times,
                follow: read.follow,
                encode_names: objects.options.encode_names,
                one_way,
                filter,
                limits,
            }))
        }
    };
    Ok(VerifyOptions { sides, read })
}

/// Options that the other end has to know.
pub const FAR: &[&str] = &["hard-links", "acls", "xattrs", "jobs", "bwlimit"];

/// Refuses what cannot be compared with another machine.
fn check_far(spec: &VerifySpec) -> Result<(), String> {
    let what = match &spec.filter {
        _ if spec.aspects.has(Aspect::Holes) => "--sparse",
        Some(filter) if filter.has_merge_files() => "a filter file in each directory",
        _ => return Ok(()),
    };
    Err(format!("{what} is not supported with another machine yet"))
}

/// Reads a task for the agent of another machine, which announces its tree.
///
/// # Errors
/// An option that this end does not know or does not take; a path that cannot be examined.
pub fn read_task(task: &AgentTask) -> Result<Spec, Fatal> {
    let usage = |message: String| Fatal::new(exit::VERIFY_TROUBLE, message);
    let (true, [path]) = (task.reads, &*task.paths) else {
        return Err(usage("a comparison reads one tree".into()));
    };
    let looked = path.symlink_metadata();
    let cannot = |error| usage(cannot("access", path, error));
    // A directory is compared with another one, not as a name in the one that contains it.
    let source = match looked.map_err(cannot)?.is_dir() {
        true => path.join("."),
        false => path.clone(),
    };
    let typed = remote::read_options(task, FAR, &[])?;
    let read = TABLE.read(&typed, VerifyArgs::new(false)).map_err(usage)?;
    let context = Context { links: Links::Trusted, ..Context::default() };
    let aspects = read.aspects;
    let policy = Policy {
        recurse: true,
        symlinks: Symlinks::Keep,
        devices: true,
        specials: true,
        hard_links: aspects.has(Aspect::HardLinks),
        preserve: Preserve {
            // Their names are told.
            owner: true,
            group: true,
            acls: aspects.has(Aspect::Acl),
            xattrs: aspects.has(Aspect::Xattrs),
            ..Preserve::default()
        },
        links: Links::Trusted,
        filter: read.filters.build(&context)?,
        ..Policy::default()
    };
    let limits = read.limits.of_run(false).map_err(usage)?;
    let places = (Sources::Paths(vec![source]), Location::Null);
    Ok(read.limits.spec(limits, places, Layout::Rsync { relative: false }, policy))
}

fn place(typed: &OsStr) -> Result<Location, String> {
    let refused = |fatal: Fatal| fatal.message;
    match Location::parse(typed).map_err(refused)? {
        url @ Location::S3(_) => Ok(url),
        _ => Location::parse_local(typed).map(Location::Local).map_err(refused),
    }
}

/// Compares; returns the exit code.
fn compare(mut plan: VerifyOptions) -> Result<u8, String> {
    plan.read.limits.priority.apply()?;
    let wanted = ShowOptions {
        command: "verify",
        json: plan.read.json,
        problems: plan.read.verbose,
        quiet: true,
        progress: plan.read.quiet.then_some(false),
        own_end: true,
        ..ShowOptions::default()
    };
    let show = Show::new(wanted, Arc::default())?;
    // Between files the signal itself ends the process: there is nothing to clean up.
    let control = Control::default();
    if matches!(plan.sides, Sides::Objects(_)) {
        stop_on_signals(&control, exit::VERIFY_TROUBLE, "this run");
    }
    let (escape, printed) = (Escape::of_locale(), AtomicU64::new(0));
    let report = |difference: &Difference<'_>| {
        if (plan.read.quiet && !plan.read.json)
            || printed.fetch_add(1, Ordering::Relaxed) >= plan.read.differences_max
        {
            return;
        }
        show.print(&match plan.read.json {
            true => difference_json(difference),
            false => difference_text(difference, escape),
        });
    };
    let compared = match &mut plan.sides {
        Sides::Objects(objects) => verify::verify_objects(objects, &report, &control, &show),
        Sides::Paths(spec, limits) => verify_trees(spec, *limits, &report, &show),
        Sides::Far(spec, limits, end) => verify_far(spec, *limits, end, &report, &show),
    };
    let (outcome, fatal) = match compared {
        Ok(outcome) => (outcome, None),
        Err(fatal) => (verify::VerifyOutcome::default(), Some(fatal)),
    };
    let code = match (&fatal, outcome.counts.failed, outcome.counts.differences) {
        (Some(_), _, _) | (None, 1.., _) => exit::VERIFY_TROUBLE,
        (None, 0, 1..) => exit::VERIFY_DIFFERENT,
        (None, 0, 0) => exit::VERIFY_SAME,
    };
    Ok(end(&plan, &show, &outcome, fatal, code))
}

/// Compares a tree with one of another machine, with as many workers as there are CPUs, or a fixed number.
fn verify_far(
    spec: &mut VerifySpec,
    limits: Limits,
    end: &RemoteEnd,
    report: &(dyn Fn(&Difference<'_>) + Sync),
    show: &Show,
) -> Result<verify::VerifyOutcome, Fatal> {
    let near = if end.side == Side::Source { spec.target.clone() } else { spec.source.clone() };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = limits.jobs.fixed_or(cpus);
    let limits = Limits { jobs: Jobs::Fixed(workers), ..limits };
    let (compared, _) = steered(&[&near], limits, |controls, capacity| {
        spec.open_dirs_max = capacity.open_dirs_max;
        verify_with_agent(spec, end, (controls, workers), report, show)
    });
    compared
}

/// Compares two trees with a tuned or fixed number of workers.
pub fn verify_trees(
    spec: &mut VerifySpec,
    limits: Limits,
    report: &(dyn Fn(&Difference<'_>) + Sync),
    show: &Show,
) -> Result<verify::VerifyOutcome, Fatal> {
    let (source, target) = (spec.source.clone(), spec.target.clone());
    let (compared, jobs) = steered(&[&source, &target], limits, |controls, capacity| {
        spec.open_dirs_max = capacity.open_dirs_max;
        verify::verify(spec, controls, report, show)
    });
    compared.map(|outcome| verify::VerifyOutcome { jobs, ..outcome })
}

fn end(
    plan: &VerifyOptions,
    show: &Show,
    outcome: &verify::VerifyOutcome,
    fatal: Option<Fatal>,
    code: u8,
) -> u8 {
    show.end_progress();
    let counts = &outcome.counts;
    let used = hakobu_sys::proc::ResourceUsage::of_program();
    if plan.read.json {
        show.print(&summary_json(outcome, &used, code));
    } else if plan.read.stats {
        show.print(stats_text(counts).as_bytes());
    }
    let totals = Totals { failed: counts.failed, ..Totals::default() };
    let began = fatal.is_none();
    let complete = show.finish(
        &run::Outcome {
            totals,
            took: outcome.took,
            jobs: outcome.jobs,
            fatal,
            ..run::Outcome::default()
        },
        code,
    );
    let omitted = counts.differences.saturating_sub(plan.read.differences_max);
    if omitted > 0 && !plan.read.quiet {
        output::message(&format!(
            "{} more differences are not shown",
            crate::number::grouped(omitted)
        ));
    }
    let watched = plan.read.verbose || std::io::stderr().is_terminal();
    if began && watched && !plan.read.quiet {
        output::message(&sentence(outcome, &used));
    }
    if complete { code } else { exit::VERIFY_TROUBLE }
}

/// Returns the text line of a difference.
pub fn difference_text(difference: &Difference<'_>, escape: Escape) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    let meta = difference.source.or(difference.target);
    let words: &[u8] = match difference.finding {
        Finding::Missing => b"only in SRC: ",
        Finding::Extra => b"only in DST: ",
        Finding::Differs(_) => b"differs: ",
    };
    out.extend_from_slice(words);
    escape.push(if difference.path.is_empty() { b"." } else { difference.path }, &mut out);
    if meta.is_some_and(|meta| meta.kind == Kind::Dir) && !difference.path.is_empty() {
        out.push(b'/');
    }
    if let (Finding::Differs(set), Some(a), Some(b)) =
        (difference.finding, difference.source, difference.target)
    {
        let details: Vec<String> =
            set.iter().map(|aspect| detail(aspect, a, b, difference.offset)).collect();
        out.extend_from_slice(format!(" ({})", details.join(", ")).as_bytes());
    }
    out.push(b'\n');
    out
}

fn detail(aspect: Aspect, a: &Meta, b: &Meta, offset: Option<u64>) -> String {
    let word = aspect.word();
    match aspect {
        Aspect::Type => format!("{word} {} / {}", kind_word(a.kind), kind_word(b.kind)),
        Aspect::Size => format!("{word} {} / {}", a.size, b.size),
        Aspect::Content => match offset {
            Some(offset) => format!("{word} from byte {offset}"),
            None => word.to_owned(),
        },
        Aspect::Mode => format!("{word} {:04o} / {:04o}", a.mode, b.mode),
        Aspect::Owner => format!("{word} {} / {}", a.uid, b.uid),
        Aspect::Group => format!("{word} {} / {}", a.gid, b.gid),
        Aspect::Time => format!("{word} {} / {}", time_text(a.mtime), time_text(b.mtime)),
        Aspect::Device => format!("{word} {} / {}", device_text(a.rdev), device_text(b.rdev)),
        Aspect::Link | Aspect::HardLinks | Aspect::Acl | Aspect::Xattrs | Aspect::Holes => {
            word.to_owned()
        }
    }
}

/// Returns a time in UTC, to the nanosecond; seconds since 1970 outside of the calendar's range.
fn time_text(time: Time) -> String {
    match jiff::Timestamp::new(time.s, time.ns.try_into().unwrap_or(0)) {
        Ok(stamp) => stamp.to_string(),
        Err(_) => format!("@{}.{:09}", time.s, time.ns),
    }
}

fn device_text(rdev: u64) -> String {
    let (major, minor) = hakobu_sys::meta::device_numbers(rdev);
    format!("{major}:{minor}")
}

#[derive(Serialize)]
struct ShownEntry {
    kind: &'static str,
    bytes: u64,
    mode: String,
    uid: u32,
    gid: u32,
    mtime_s: i64,
    mtime_ns: u32,
    nlink: u64,
}

impl ShownEntry {
    fn new(meta: &Meta) -> ShownEntry {
        ShownEntry {
            kind: kind_word(meta.kind),
            bytes: meta.size,
            mode: format!("{:04o}", meta.mode),
            uid: meta.uid,
            gid: meta.gid,
            mtime_s: meta.mtime.s,
            mtime_ns: meta.mtime.ns,
            nlink: meta.nlink,
        }
    }
}

/// Returns the JSON line of a difference.
pub fn difference_json(difference: &Difference<'_>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        finding: &'static str,
        #[serde(flatten)]
        paths: Paths<'a>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        aspects: Vec<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<ShownEntry>,
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<ShownEntry>,
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
    }
    let (finding, aspects) = match difference.finding {
        Finding::Missing => ("missing", Vec::new()),
        Finding::Extra => ("extra", Vec::new()),
        Finding::Differs(set) => ("differs", set.iter().map(Aspect::word).collect()),
    };
    json::line(&Line {
        event: "difference",
        finding,
        paths: Paths(&[("path", Some(tool::path(difference.path)))]),
        aspects,
        source: difference.source.map(ShownEntry::new),
        target: difference.target.map(ShownEntry::new),
        offset: difference.offset,
    })
}

/// Returns the JSON line that ends a comparison.
pub fn summary_json(
    outcome: &verify::VerifyOutcome,
    used: &ResourceUsage,
    exit_code: u8,
) -> Vec<u8> {
    #[derive(Serialize)]
    struct Summary {
        event: &'static str,
        schema: u32,
        command: &'static str,
        files: u64,
        dirs: u64,
        others: u64,
        bytes: u64,
        differences: u64,
        by_kind: BTreeMap<&'static str, u64>,
        failed: u64,
        jobs: usize,
        real_s: f64,
        user_s: f64,
        sys_s: f64,
        max_rss_bytes: u64,
        exit_code: u8,
    }
    let counts = &outcome.counts;
    json::line(&Summary {
        event: "summary",
        schema: 1,
        command: "verify",
        files: counts.files,
        dirs: counts.dirs,
        others: counts.others,
        bytes: counts.bytes,
        differences: counts.differences,
        by_kind: kinds(counts).into_iter().collect(),
        failed: counts.failed,
        jobs: outcome.jobs,
        real_s: outcome.took.as_secs_f64(),
        user_s: used.user.as_secs_f64(),
        sys_s: used.sys.as_secs_f64(),
        max_rss_bytes: used.rss_bytes_max,
        exit_code,
    })
}

/// Returns all kinds of differences found, with their counts.
fn kinds(counts: &VerifyCounts) -> Vec<(&'static str, u64)> {
    let whole = [("missing", counts.missing), ("extra", counts.extra)];
    let parts = Aspect::ALL.iter().map(|aspect| (aspect.word(), counts.of(*aspect)));
    whole.into_iter().chain(parts).filter(|(_, count)| *count > 0).collect()
}

/// Returns the counts as a table.
pub fn stats_text(counts: &VerifyCounts) -> String {
    let mut out = format!(
        "\nFiles compared: {}\nDirectories compared: {}\nOther entries compared: {}\n\
         Bytes compared: {}\nDifferences: {}\n",
        grouped(counts.files),
        grouped(counts.dirs),
        grouped(counts.others),
        grouped(counts.bytes),
        grouped(counts.differences),
    );
    for (kind, count) in kinds(counts) {
        out.push_str(&format!("  {kind}: {}\n", grouped(count)));
    }
    out.push_str(&format!("Could not be compared: {}\n", grouped(counts.failed)));
    out
}

/// Returns the amount compared and the resources used, as one line.
pub fn sentence(outcome: &verify::VerifyOutcome, used: &ResourceUsage) -> String {
    let counts = &outcome.counts;
    let seconds = outcome.took.as_secs_f64();
    let verdict = match (counts.differences, counts.failed) {
        (0, 0) => "the same".to_owned(),
        (0, failed) => format!("no difference found, {} could not be compared", grouped(failed)),
        (found, 0) => format!("{} differ", grouped(found)),
        (found, failed) => {
            format!("{} differ, {} could not be compared", grouped(found), grouped(failed))
        }
    };
    format!(
        "{}, {} and {} compared: {verdict}; {seconds:.2} s (user {:.2}, sys {:.2})",
        things(counts.files, "file"),
        match counts.dirs {
            1 => "1 directory".to_owned(),
            dirs => format!("{} directories", grouped(dirs)),
        },
        bytes(counts.bytes),
        used.user.as_secs_f64(),
        used.sys.as_secs_f64(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_transfer::verify::Aspects;

    fn meta() -> Meta {
        let time = Time { s: 1_000_000_000, ns: 5 };
        Meta { mode: 0o644, uid: 1, gid: 2, dev: 1, ino: 1, ..Meta::bare(Kind::File, 3, time) }
    }

    fn difference_text(difference: &Difference<'_>) -> String {
        String::from_utf8_lossy(&super::difference_text(difference, Escape::Utf8)).into_owned()
    }

    #[test]
    fn lines_say_what_differs_and_how() {
        let a = meta();
        let b = Meta { mode: 0o4600, uid: 7, mtime: Time { s: 1, ns: 0 }, ..a };
        let set = Aspects::NONE
            .with(Aspect::Content)
            .with(Aspect::Mode)
            .with(Aspect::Owner)
            .with(Aspect::Time)
            .with(Aspect::Acl);
        let differs = Difference {
            path: b"d/a\nb",
            finding: Finding::Differs(set),
            source: Some(&a),
            target: Some(&b),
            offset: Some(2),
        };
        assert_eq!(
            difference_text(&differs),
            "differs: d/a\\#012b (content from byte 2, mode 0644 / 4600, owner 1 / 7, \
             mtime 2001-09-09T01:46:40.000000005Z / 1970-01-01T00:00:01Z, acl)\n"
        );
        let dir = Meta { kind: Kind::Dir, ..a };
        let missing = Difference {
            path: b"d",
            finding: Finding::Missing,
            source: Some(&dir),
            target: None,
            offset: None,
        };
        assert_eq!(difference_text(&missing), "only in SRC: d/\n");
        let kinds = Difference {
            path: b"",
            finding: Finding::Differs(Aspects::NONE.with(Aspect::Type)),
            source: Some(&dir),
            target: Some(&a),
            offset: None,
        };
        assert_eq!(difference_text(&kinds), "differs: . (type dir / file)\n");
    }
}
