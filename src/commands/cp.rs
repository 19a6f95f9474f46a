//! `hakobu cp`: cp's command line on hakobu's engine.

use super::operands::{Operands, folder_targets, operands, without_slashes};
use super::remote::{self, RemoteArgs};
use super::session::Session;
use super::tool::carry_out;
use super::{cat, pipe};
use crate::cli::{
    Group, JSON, OptArg, Refused, Row, Table, Takes, Typed, flag, parts, put, titled, value,
};
use crate::filters::{self, EXCLUDE, EXCLUDE_FROM, Filters, INCLUDE, INCLUDE_FROM, Rule};
use crate::limits::{self, LimitArgs};
use crate::objects::{self, Concerned, ObjectArgs, is_s3, url};
use crate::show::{Line, ShowOptions, UnfinishedFile, ask};
use crate::{backups, exit, names};
use hakobu_core::error::{Cause, ErrorClass, Fatal, Operation, Problem};
use hakobu_core::event::{Event, Listener};
use hakobu_sys::paths::Links;
use hakobu_transfer::far::TaskOption;
use hakobu_transfer::location::{Side, Sources};
use hakobu_transfer::object::list::Pattern;
use hakobu_transfer::policy::{ChmodRules, Content, Policy, Reflink, Sparse, Symlinks};
use hakobu_transfer::run::{AgentTask, Layout, Outcome, Spec};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = TABLE.parse(&arguments);
    let typed = match typed.as_ref().map_or(Ok(None), dash_of) {
        Ok(Some(Dash::Out(typed))) => return cat::begin(Ok(typed)),
        Ok(Some(Dash::In(typed))) => return pipe::begin(Ok(typed)),
        Ok(None) => typed,
        Err(message) => Err(Refused::Usage(message)),
    };
    carry_out(typed, |typed| read_plan(&typed), |(spec, wanted)| Ok(copy(spec, wanted)))
}

/// Meaning of a command line of `cp` with a store on a side.
pub enum CpWork {
    /// One object and a standard stream.
    Stream(Dash),
    /// A copy: its options and its spec.
    Copy(Vec<OptArg>, Box<Spec>, Box<ShowOptions>),
}

/// Describes a copy with a store on a side.
///
/// # Errors
/// An invalid command line.
pub fn parse_work(arguments: &[OsString]) -> Result<CpWork, Refused> {
    let typed = TABLE.parse(arguments)?;
    if let Some(stream) = dash_of(&typed).map_err(Refused::Usage)? {
        return Ok(CpWork::Stream(stream));
    }
    let (spec, wanted) = read_plan(&typed).map_err(Refused::Usage)?;
    if spec.remote.is_some() {
        return Err(Refused::Usage(
            "another machine is not supported here: run the line itself".into(),
        ));
    }
    Ok(CpWork::Copy(typed.options, Box::new(spec), Box::new(wanted)))
}

/// Copies. Without `-r` non-files are rejected first, which is a failure, unlike in rsync.
fn copy(mut spec: Spec, mut wanted: ShowOptions) -> u8 {
    wanted.unfinished = UnfinishedFile::of(&spec);
    let session = match Session::start(wanted, exit::of_copy) {
        Ok(session) => session,
        Err(code) => return code,
    };
    let mut before = Outcome::default();
    if spec.remote.as_ref().is_none_or(|remote| remote.side == Side::Target) {
        before.totals.failed = refuse_folders(&mut spec, &session.show);
    }
    let outcome = if spec.sources.is_empty() { before } else { before.merged(session.run(&spec)) };
    session.end(outcome)
}

/// Leaves out the sources that cannot be copied without `-r`. Returns their number.
fn refuse_folders(spec: &mut Spec, listener: &dyn Listener) -> u64 {
    let mut failed = 0;
    if let (false, Sources::Paths(paths)) = (spec.policy.recurse, &mut spec.sources) {
        let follow = spec.policy.symlinks == Symlinks::Follow || spec.policy.follow_args;
        paths.retain(|source| match needs_recursion(source, follow) {
            None => true,
            Some(reason) => {
                listener.event(Event::Problem(&Problem {
                    operation: Operation::Read,
                    source: Some(source.clone()),
                    target: None,
                    cause: Cause::Reason(reason),
                    class: ErrorClass::Partial,
                }));
                failed += 1;
                false
            }
        });
    }
    failed
}

/// Returns the reason that a source cannot be copied without `-r`. Errors are left to the engine.
fn needs_recursion(source: &Path, follow: bool) -> Option<&'static str> {
    let meta = if follow { source.metadata() } else { source.symlink_metadata() }.ok()?;
    let kind = meta.file_type();
    if kind.is_dir() {
        Some("is a directory (use -r)")
    } else if kind.is_file() || kind.is_symlink() {
        None
    } else {
        Some("is not a regular file (use -r)")
    }
}

// The options of `hakobu cp`: the names and meanings of cp(1), and hakobu's own.

/// The command line of `cp`.
pub static TABLE: Table<CpArgs> = Table {
    command: "cp",
    about: "Copy SRC to DST, or several into a directory, as cp does, with all CPUs",
    description: "Existing files are replaced unless an option says otherwise. Either side may be \
            s3://BUCKET/KEY, or [USER@]HOST:PATH on another machine that has hakobu, over ssh; \
            s3:// sources may contain '*' and '?'. With one object, '-' is standard input or \
            standard output.",
    usage: "hakobu cp [OPTIONS] SRC... DST\n       hakobu cp [OPTIONS] -t DIR SRC...",
    examples: &[
        ("hakobu cp -a src copy", "Copy a tree with everything that cp -a keeps."),
        ("hakobu cp -r src user@host:backup/", "Copy a tree to another machine, over ssh."),
        ("hakobu cp -r s3://data/photos/ s3://copy/photos/", "Copy between buckets."),
        ("hakobu cp 's3://data/photos/2026-*.jpg' .", "Download by a wildcard."),
    ],
    common: &[
        "recursive",
        "archive",
        "no-clobber",
        "update",
        "interactive",
        "exclude",
        "dry-run",
        "verbose",
        "jobs",
        "bwlimit",
        "json",
        "explain",
    ],
    after: "Exit codes: 0 done, 1 something failed, 2 usage.",
    options: &[
        &COPIED,
        &KEPT,
        &EXISTING,
        &WRITTEN,
        &FILTERS,
        &WORK,
        &OUTPUT,
        &backups::OPTIONS,
        &filters::STYLED,
        &objects::COMMON,
        &objects::DEBUG,
        &objects::SIDES,
        &objects::RAW,
        &objects::VERSION,
        &objects::STAT,
        &objects::TRANSFER,
        &objects::FLATTEN,
        &objects::NAMES,
        &objects::CASES,
        &objects::STOP,
        &limits::TRANSFER,
        &names::LINKS,
        &remote::OPTIONS,
    ],
    unbuilt: &[UNBUILT, objects::UNBUILT],
    abbreviates: true,
};

/// The options read so far.
#[derive(Default)]
pub struct CpArgs {
    pub(super) policy: Policy,
    pub(super) wanted: ShowOptions,
    /// `-L`, `-P`: the last one counts.
    pub(super) symlinks: Option<Symlinks>,
    pub(super) no_mode: bool,
    pub(super) strips: bool,
    pub(super) backups: backups::BackupArgs,
    pub(super) parents: bool,
    pub(super) no_target_dir: bool,
    pub(super) target_dir: Option<OsString>,
    pub(super) files_from: Option<OsString>,
    pub(super) filters: Filters,
    pub(super) limits: LimitArgs,
    pub(super) verbose: bool,
    pub(super) objects: ObjectArgs,
    /// For files in option values. The target is reached through any symlink, as in cp.
    pub(super) links: names::LinkArgs,
    pub(super) remote: RemoteArgs,
}

parts!(CpArgs {
    objects: ObjectArgs,
    limits: LimitArgs,
    filters: Filters,
    links: names::LinkArgs,
    backups: backups::BackupArgs,
    remote: RemoteArgs
});

static COPIED: Group<CpArgs> = titled("What is copied").with(&[
    flag("recursive", Some('r'), "copy directories recursively")
        .sets(|it, on| it.policy.recurse = on),
    flag("R", Some('R'), "same as -r").short_only().sets(|it, on| it.policy.recurse = on),
    flag("archive", Some('a'), "same as -dR --preserve=all").reads(|it, _| {
        (it.policy.recurse, it.symlinks) = (true, Some(Symlinks::Keep));
        it.preserve("all", true)
    }),
    flag("dereference", Some('L'), "follow symlinks in SRC")
        .sets(|it, _| it.symlinks = Some(Symlinks::Follow)),
    flag("no-dereference", Some('P'), "do not follow symlinks in SRC")
        .sets(|it, _| it.symlinks = Some(Symlinks::Keep)),
    flag("H", Some('H'), "follow symlinks that are arguments")
        .short_only()
        .local("-L follows all symlinks")
        .sets(|it, _| (it.symlinks, it.policy.follow_args) = (Some(Symlinks::Keep), true)),
    NO_FOLLOW.sets(|it, on| it.symlinks = Some(if on { Symlinks::Skip } else { Symlinks::Follow })),
    flag("parents", None, "use the full source path below DST")
        .local("name the prefix to keep in the target")
        .sets(|it, on| it.parents = on),
    flag("one-file-system", Some('x'), "do not cross into other file systems")
        .local("")
        .sets(|it, on| it.policy.one_file_system = on),
    value("files-from", None, "FILE", "read more sources from FILE ('-': standard input)")
        .reads(|it, arg| put(&mut it.files_from, Some(arg.value.clone()))),
    flag("from0", Some('0'), "names and patterns in files end with NUL")
        .sets(|it, on| it.filters.nul = on),
]);

static KEPT: Group<CpArgs> = titled("What is kept").with(&[
    flag("p", Some('p'), "same as --preserve=mode,ownership,timestamps")
        .short_only()
        .reads(|it, _| it.preserve(USUAL, true)),
    flag("d", Some('d'), "same as --no-dereference --preserve=links")
        .short_only()
        .sets(|it, _| (it.symlinks, it.policy.hard_links) = (Some(Symlinks::Keep), true)),
    value("preserve", None, "LIST", "keep mode, ownership, timestamps, links, xattr, all")
        .takes(Takes::Perhaps("LIST"))
        .reads(|it, arg| {
            let list = arg.value.to_string_lossy();
            let list = if list.is_empty() { USUAL } else { &*list };
            it.preserve(list, true)?;
            let named = |name: &str| list.split(',').any(|word| word == name);
            let keep = &mut it.policy.preserve;
            keep.owner_explicit |= named("ownership");
            keep.xattrs_explicit |= named("xattr");
            Ok(())
        }),
    value("no-preserve", None, "LIST", "do not keep these")
        .reads(|it, arg| it.preserve(&arg.value.to_string_lossy(), false)),
    flag("attributes-only", None, "copy attributes, no contents")
        .local("")
        .sets(|it, on| it.policy.attributes_only = on),
]);

static EXISTING: Group<CpArgs> = titled("Existing files").with(&[
    flag("no-clobber", Some('n'), "skip existing files")
        .alias(&["no-overwrite"])
        .sets(|it, _| (it.policy.ignore_existing, it.policy.ask) = (true, None)),
    UPDATE.reads(|it, arg| {
        let (update, policy) = (update_of(arg)?, &mut it.policy);
        (policy.update, policy.update_same) = (update == Update::Older, true);
        put(&mut policy.ignore_existing, update == Update::Missing)
    }),
    SIZE_ONLY.sets(|it, on| it.policy.size_only = on),
    flag("interactive", Some('i'), "ask before overwriting")
        .local("--no-clobber keeps existing files")
        .sets(|it, _| {
            (it.policy.ignore_existing, it.policy.ask) = (false, Some(ask("cp", "overwrite")))
        }),
    // Files are replaced in any case, including those that cannot be opened.
    flag(
        "force",
        Some('f'),
        "replace existing files that cannot be opened (always so here); with -l and -s, all files",
    )
    .sets(|it, on| it.policy.forced = on),
    flag("remove-destination", None, "remove each existing target first")
        .local("")
        .sets(|it, on| it.policy.remove_destination = on),
]);

static WRITTEN: Group<CpArgs> = titled("How files are written").with(&[
    value("target-directory", Some('t'), "DIR", "copy everything into DIR")
        .reads(|it, arg| put(&mut it.target_dir, Some(arg.value.clone()))),
    flag(
        "no-target-directory",
        Some('T'),
        "treat DST as the new name, never as a directory to copy into",
    )
    .sets(|it, on| it.no_target_dir = on),
    STRIP.sets(|it, on| it.strips = on),
    flag("link", Some('l'), "hard-link files instead of copying")
        .local("every object has one name")
        .reads(|it, _| set_content(it, Content::HardLink)),
    flag("symbolic-link", Some('s'), "create symlinks instead of copying")
        .local("an object cannot be a link to another; s5cmd's -s is --size-only")
        .reads(|it, _| set_content(it, Content::Symlink)),
    value("reflink", None, "WHEN", "share extents (copy-on-write): auto (default), always, never")
        .takes(Takes::Perhaps("WHEN"))
        .words(&["auto", "always", "never"])
        .local("")
        .reads(|it, arg| {
            let when = match arg.value.to_str() {
                Some("" | "always") => Reflink::Always,
                Some("auto") => Reflink::Auto,
                Some("never") => Reflink::Never,
                _ => return Err(arg.refuse("none of auto, always, never")),
            };
            put(&mut it.policy.reflink, when)
        }),
    value("sparse", None, "WHEN", "create holes: auto (default), always, never")
        .words(&["auto", "always", "never"])
        .local("")
        .reads(|it, arg| {
            let when = match arg.value.to_str() {
                Some("auto") => Sparse::Auto,
                Some("always") => Sparse::Always,
                Some("never") => Sparse::Never,
                _ => return Err(arg.refuse("none of auto, always, never")),
            };
            put(&mut it.policy.sparse, when)
        }),
]);

static FILTERS: Group<CpArgs> = titled("Filters").with(&[
    EXCLUDE.reads(|it, arg| it.filters.add(Rule::Exclude, arg)),
    INCLUDE.reads(|it, arg| it.filters.add(Rule::Include, arg)),
    EXCLUDE_FROM.reads(|it, arg| it.filters.add(Rule::ExcludeFrom, arg)),
    INCLUDE_FROM.reads(|it, arg| it.filters.add(Rule::IncludeFrom, arg)),
]);

static WORK: Group<CpArgs> = titled("Work").with(&[
    limits::JOBS.reads(limits::set_jobs),
    value("joblog", None, "FILE", "write a line per file to FILE, in GNU parallel's columns")
        .reads(|it, arg| put(&mut it.wanted.joblog, Some(arg.value.clone()))),
    value(
        "manifest",
        None,
        "FILE",
        "write a JSON line per entry and its result to FILE (-: stdout)",
    )
    .reads(|it, arg| put(&mut it.wanted.manifest, Some(arg.value.clone()))),
    flag("dry-run", None, "show what would be copied; change nothing")
        .alias(&["dryrun"])
        .sets(|it, on| it.policy.dry_run = on),
]);

static OUTPUT: Group<CpArgs> = titled("Output").with(&[
    flag("verbose", Some('v'), "print a line per file").sets(|it, on| it.verbose = on),
    QUIET.sets(|it, on| it.wanted.hush(on)),
    PROGRESS.sets(|it, on| it.wanted.progress = Some(on)),
    JSON.sets(|it, on| it.wanted.json = on),
]);

/// `--size-only` of aws and rsync, `--if-size-differ` of s5cmd.
pub const SIZE_ONLY: Row =
    flag("size-only", None, "skip existing files of the same size").alias(&["if-size-differ"]);
/// `--update`, for `cp` and `mv`.
pub const UPDATE: Row = value(
    "update",
    Some('u'),
    "WHICH",
    "replace older files only (older, the default), all, or none",
)
.takes(Takes::Perhaps("WHICH"))
.words(&["older", "all", "none"])
.alias(&["if-source-newer"]);

/// Meaning of [`UPDATE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Every existing file is replaced.
    All,
    /// Those that are older.
    Older,
    /// None: only missing ones are made.
    Missing,
}

/// Returns the meaning of [`UPDATE`].
///
/// # Errors
/// Another value.
pub fn update_of(arg: &OptArg) -> Result<Update, String> {
    match arg.value.to_str() {
        Some("" | "older") => Ok(Update::Older),
        Some("all") => Ok(Update::All),
        Some("none") => Ok(Update::Missing),
        _ => Err(arg.refuse("none of all, none, older")),
    }
}

/// `--strip-trailing-slashes`, for `cp` and `mv`.
pub const STRIP: Row =
    flag("strip-trailing-slashes", None, "remove slashes from the ends of SRC").local("");

/// Calls `each` with the attributes of a list: mode, ownership, timestamps, links and xattr.
///
/// # Errors
/// A word that is no attribute.
pub fn attributes(list: &str, mut each: impl FnMut(&'static str)) -> Result<(), String> {
    const ALL: [&str; 5] = ["mode", "ownership", "timestamps", "links", "xattr"];
    for word in list.split(',') {
        match (word, ALL.iter().find(|name| **name == word)) {
            ("all", _) => ALL.iter().for_each(|name| each(name)),
            ("context", _) => return Err("invalid --preserve 'context': not supported".into()),
            (_, Some(name)) => each(name),
            (other, None) => return Err(format!("'{other}' is not an attribute that can be kept")),
        }
    }
    Ok(())
}

/// `--progress`, for `cp` and `mv`.
pub const PROGRESS: Row = flag(
    "progress",
    None,
    "show progress: a bar on a terminal (by default after a second), else a line per second",
)
.alias(&["show-progress"])
.off(&["no-progress"]);

/// `--quiet` of aws, for `cp` and `mv`.
pub const QUIET: Row = flag("quiet", None, "print only errors").alias(&["only-show-errors"]);
/// `--no-follow-symlinks` of aws and s5cmd, for `cp`, `mv` and `sync`.
pub const NO_FOLLOW: Row =
    flag("no-follow-symlinks", None, "skip symlinks (with s3://, in cp always)")
        .off(&["follow-symlinks"]);

const UNBUILT: &[(&str, &str)] = &[("--copy-contents --keep-directory-symlink --context -Z", "")];

/// Attributes kept by `-p` and a bare `--preserve`.
const USUAL: &str = "mode,ownership,timestamps";

fn set_content(it: &mut CpArgs, content: Content) -> Result<(), String> {
    if it.policy.content != Content::Copy && it.policy.content != content {
        return Err("-l and -s cannot be used together".into());
    }
    put(&mut it.policy.content, content)
}

impl CpArgs {
    /// Applies a list of attributes to keep or not to keep.
    fn preserve(&mut self, list: &str, on: bool) -> Result<(), String> {
        let CpArgs { policy, no_mode, .. } = self;
        let keep = &mut policy.preserve;
        attributes(list, |attribute| match attribute {
            "mode" => (keep.mode, keep.acls, *no_mode) = (on, on, !on),
            "ownership" => {
                (keep.owner, keep.group) = (on, on);
                keep.owner_explicit &= on;
            }
            "timestamps" => (keep.times, keep.atimes) = (on, on),
            "links" => policy.hard_links = on,
            _ => {
                keep.xattrs = on;
                keep.xattrs_explicit &= on;
            }
        })
    }
}

// Evaluation of a `cp` command line: from options in order to a `Spec`.

/// Returns the description of the copy and of its output.
///
/// # Errors
/// An invalid command line.
pub fn read_plan(typed: &Typed) -> Result<(Spec, ShowOptions), String> {
    TABLE.read(typed, CpArgs::default())?.finish(typed)
}

impl CpArgs {
    fn finish(mut self, typed: &Typed) -> Result<(Spec, ShowOptions), String> {
        self.wanted.links = std::mem::take(&mut self.links).links()?;
        let links = &self.wanted.links;
        let listed = match &self.files_from {
            None => Vec::new(),
            Some(file) => names::read_list(file, links, self.filters.nul, names::split_plain)?
                .into_iter()
                .map(OsString::from_vec)
                .collect(),
        };
        let target_dir = self.target_dir.as_deref();
        let stripped = self.strips.then(|| without_slashes(&typed.paths, target_dir.is_some()));
        let typed_paths = stripped.as_ref().unwrap_or(&typed.paths);
        let Operands { sources, target, is_dir, far } =
            operands(typed_paths, listed, target_dir, self.no_target_dir, true)?;
        let policy = &mut self.policy;
        let backup = std::mem::take(&mut self.backups).backup(policy.ignore_existing)?;
        // cp(1): with -l symlinks are followed unless an option says otherwise, also with -r.
        let keeps_links = policy.recurse && policy.content != Content::HardLink;
        let unless_asked = if keeps_links { Symlinks::Keep } else { Symlinks::Follow };
        policy.symlinks = self.symlinks.unwrap_or(unless_asked);
        policy.follow_args &= policy.symlinks == Symlinks::Keep;
        (policy.devices, policy.specials) = (policy.recurse, policy.recurse);
        // cp overwrites existing files; only -u compares times.
        policy.ignore_times = true;
        policy.cp_targets = true;
        policy.links = Links::Any;
        policy.backup = backup.is_some();
        policy.numbering = backup.as_ref().map(|backup| backup.numbering).unwrap_or_default();
        policy.suffix = backup.map_or_else(|| backups::SUFFIX.to_vec(), |backup| backup.suffix);
        if self.no_mode {
            // cp(1): without the source's mode new files get the default one, minus the umask.
            let mut rules = ChmodRules::default();
            rules.add("D777,F666", 0).map_err(|error| error.to_string())?;
            policy.chmod = Some(rules);
        }
        if policy.reflink == Reflink::Always && policy.sparse != Sparse::Auto {
            return Err("--reflink goes only with --sparse=auto".into());
        }
        policy.check().map_err(|fatal| fatal.message)?;
        let context = filters::Context { links: links.clone(), ..filters::Context::default() };
        policy.filter = self.filters.build(&context).map_err(|fatal| fatal.message)?;
        let concerned = Concerned::of(&sources, &target);
        let limits = self.limits.of_run(concerned.any())?;
        self.wanted.explain = self.limits.explain;
        self.wanted.proves = self.limits.prove;
        self.wanted.language = self.limits.language;
        self.wanted.textfile = self.limits.textfile.clone();
        self.wanted.priority = self.limits.priority;
        self.wanted.stat = self.objects.stat;
        TABLE.check_places(typed, concerned.any(), concerned.target)?;
        let objects = self.objects.fit(concerned, policy)?;
        let wanted = &mut self.wanted;
        wanted.notes.extend(self.filters.note(concerned.any())?);
        wanted.styled = self.filters.is_styled();
        if concerned.any()
            && policy.recurse
            && !objects.flatten
            && !(wanted.quiet || wanted.json)
            && (policy.dry_run || std::io::stderr().is_terminal())
        {
            let into = if self.no_target_dir { Some(false) } else { is_dir.then_some(true) };
            wanted.targets = folder_targets(&sources, &target, into);
        }
        (wanted.command, wanted.done) = ("cp", "copied");
        // What was copied is copied again, if nothing says otherwise.
        wanted.resume = match policy.update || policy.ignore_existing {
            true => "run the same command again to continue",
            false => "run the same command again with -u to continue",
        };
        wanted.dry_run = policy.dry_run;
        wanted.line = match (self.verbose || policy.dry_run, wanted.json) {
            (false, _) => Line::None,
            _ if wanted.quiet => Line::None,
            (true, false) if policy.dry_run => Line::Mapping("cp"),
            (true, false) => Line::Arrow(""),
            (true, true) => Line::Json,
        };
        (wanted.problems, wanted.totals) = (self.verbose, wanted.progress == Some(true));
        let layout = Layout::Cp {
            no_target_dir: self.no_target_dir,
            target_is_dir: is_dir,
            parents: self.parents,
        };
        self.wanted.check_manifest()?;
        let items = self.wanted.items();
        let remote = match far {
            None => {
                self.remote.refuse_unused()?;
                None
            }
            Some((side, host)) => {
                check_remote(&self.policy, side)?;
                check_rules(typed, side)?;
                let mut options = remote::task_options(typed, FAR);
                let add = |name: &str| TaskOption {
                    name: name.to_owned(),
                    on: true,
                    count: 1,
                    ..TaskOption::default()
                };
                // What an agent writes depends on all sources, and what it tells on what is shown here.
                options.extend((is_dir && side == Side::Target).then(|| add("target-directory")));
                options.extend(items.then(|| add("verbose")));
                let end = self.remote.end((side, host), "cp", options);
                Some(end.map_err(|fatal| fatal.message)?)
            }
        };
        let spec = Spec {
            items,
            items_unchanged: self.wanted.items_unchanged(),
            check_space: !self.policy.dry_run,
            objects,
            remote,
            ..self.limits.spec(limits, (sources, target), layout, self.policy)
        };
        Ok((spec, self.wanted))
    }
}

// With an end on another machine.

/// Options that the other end has to know.
const FAR: &[&str] = &[
    "recursive",
    "R",
    "archive",
    "dereference",
    "no-dereference",
    "H",
    "no-follow-symlinks",
    "parents",
    "one-file-system",
    "p",
    "d",
    "preserve",
    "no-preserve",
    "no-clobber",
    "update",
    "size-only",
    "force",
    "remove-destination",
    "target-directory",
    "no-target-directory",
    "sparse",
    "b",
    "backup",
    "suffix",
    "jobs",
    "bwlimit",
    "dry-run",
    "verbose",
    "exclude",
    "include",
];

/// Refuses options that have no effect with the `side` on another machine.
fn check_remote(policy: &Policy, side: Side) -> Result<(), String> {
    let refused = [
        (policy.content == Content::HardLink, "--link", "a link is to a file of its own machine"),
        (
            policy.content == Content::Symlink,
            "--symbolic-link",
            "a link is to a file of its own machine",
        ),
        (
            policy.reflink == Reflink::Always,
            "--reflink=always",
            "extents are shared on one machine",
        ),
        (policy.attributes_only, "--attributes-only", "contents go with them"),
        (
            policy.ask.is_some() && side == Side::Target,
            "--interactive",
            "--no-clobber keeps existing files",
        ),
    ];
    match refused.iter().find(|(is_set, ..)| *is_set) {
        Some((_, option, why)) => {
            Err(format!("{option} is not supported with another machine ({why})"))
        }
        None => Ok(()),
    }
}

/// Refuses rules that the other end cannot know, of sources that are there.
fn check_rules(typed: &Typed, side: Side) -> Result<(), String> {
    let files =
        ["exclude-from", "include-from", "filter", "F", "cvs-exclude", "filter-style", "from0"];
    let unknown = typed.options.iter().find(|of| files.contains(&of.name));
    match unknown.filter(|_| side == Side::Source) {
        Some(OptArg { name, .. }) => {
            let dashes = if name.len() == 1 { "-" } else { "--" };
            Err(format!(
                "{dashes}{name} is not supported with sources on another machine yet\n\
                 hint: --exclude and --include are"
            ))
        }
        None => Ok(()),
    }
}

/// Reads a task for the agent of another machine. Returns also the number of sources that were refused, which the
/// listener is told of.
///
/// # Errors
/// An option that this end does not know or does not take.
pub fn read_task(task: &AgentTask, listener: &dyn Listener) -> Result<(Spec, u64), Fatal> {
    let mut typed = remote::read_options(task, FAR, &[])?;
    let is_dir = |of: &OptArg| of.name == "target-directory";
    if let Some(target) = typed.options.iter_mut().find(|of| is_dir(of)).map(|of| &mut of.value) {
        *target = "/".into();
        typed.paths.truncate(1);
    }
    let read = read_plan(&typed).map_err(|message| Fatal::new(exit::USAGE, message));
    let (spec, _) = read?;
    let (sources, target) = remote::task_places(task, (spec.sources, spec.target))?;
    let mut spec = Spec { sources, target, ..spec };
    let failed = if task.reads { refuse_folders(&mut spec, listener) } else { 0 };
    Ok((spec, failed))
}

// `-` with an `s3://` argument: standard input or standard output, handled by `pipe` and `cat` with their options.

/// One object and a standard stream, as the command line of `pipe` or `cat`.
#[derive(Debug)]
pub enum Dash {
    /// To standard output: arguments of `cat`.
    Out(Typed),
    /// From standard input: arguments of `pipe`.
    In(Typed),
}

/// Parses a command line of `cp`; `None` if it has no standard stream.
///
/// # Errors
/// Options that are incompatible with a standard stream.
pub fn dash_of(typed: &Typed) -> Result<Option<Dash>, String> {
    let is_dash = |path: &OsString| path == "-";
    if !typed.paths.iter().any(is_dash) || !typed.paths.iter().any(is_s3) {
        return Ok(None);
    }
    Ok(Some(match typed.paths.as_slice() {
        [object, dash] if is_dash(dash) && is_s3(object) => {
            let raw = typed.options.iter().any(|arg| arg.name == "raw");
            if !raw && Pattern::parse(&url(object)?.key).is_some() {
                let message = "a wildcard does not go with '-' (standard output): give one object";
                return Err(message.to_owned());
            }
            Dash::Out(converted(&cat::TABLE, object, typed)?)
        }
        [dash, object] if is_dash(dash) && is_s3(object) => {
            Dash::In(converted(&pipe::TABLE, object, typed)?)
        }
        _ => {
            let message = "'-' (standard input or output) goes with one object on the other side; \
                           a file of that name is ./-";
            return Err(message.to_owned());
        }
    }))
}

/// Converts the options of `cp` to those of the other command.
fn converted<S>(table: &Table<S>, object: &OsString, typed: &Typed) -> Result<Typed, String> {
    let (paths, notes) = (vec![object.clone()], typed.notes.clone());
    let mut converted = Typed { options: Vec::new(), paths, noted: Vec::new(), notes };
    for arg in &typed.options {
        if table.rows().any(|row| row.name == arg.name) {
            converted.options.push(arg.clone());
            continue;
        }
        let (name, dashes) = (arg.name, if arg.name.len() == 1 { "-" } else { "--" });
        return Err(format!("{dashes}{name} does not go with '-' (standard input or output)"));
    }
    Ok(converted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Spec, String> {
        let typed = TABLE.parse_line(line)?;
        read_plan(&typed).map(|(spec, _)| spec)
    }

    /// Recursive, mode, owner, times, links, xattrs, ACLs; then the explicit ones; then symlinks.
    fn bits(line: &str) -> String {
        let policy = match read(line) {
            Ok(spec) => spec.policy,
            Err(message) => return message,
        };
        let keep = policy.preserve;
        let mut out: String = [
            ('r', policy.recurse),
            ('m', keep.mode),
            ('o', keep.owner && keep.group),
            ('t', keep.times && keep.atimes),
            ('l', policy.hard_links),
            ('x', keep.xattrs),
            ('a', keep.acls),
            ('O', keep.owner_explicit),
            ('X', keep.xattrs_explicit),
            ('H', policy.follow_args),
        ]
        .iter()
        .filter_map(|(letter, on)| on.then_some(*letter))
        .collect();
        out.push_str(match policy.symlinks {
            Symlinks::Skip => " skip",
            Symlinks::Keep => " keep",
            Symlinks::Follow => " follow",
        });
        out
    }

    #[test]
    fn kept_attributes() {
        for (line, expected) in [
            ("a b", " follow"),
            ("-r a b", "r keep"),
            ("-R a b", "r keep"),
            ("-rL a b", "r follow"),
            ("-rH a b", "rH keep"),
            ("-P a b", " keep"),
            ("-a a b", "rmotlxa keep"),
            ("-aL a b", "rmotlxa follow"),
            ("-d a b", "l keep"),
            ("-p a b", "mota follow"),
            ("--preserve a b", "motaO follow"),
            ("--preserve=mode,xattr a b", "mxaX follow"),
            ("--preserve=all a b", "motlxa follow"),
            ("-a --no-preserve=mode,ownership a b", "rtlx keep"),
            ("--preserve=context a b", "invalid --preserve 'context': not supported"),
            ("--preserve=colour a b", "'colour' is not an attribute that can be kept"),
        ] {
            assert_eq!(bits(line), expected, "{line}");
        }
    }

    #[test]
    fn overwriting() {
        let policy = |line: &str| read(line).map(|spec| spec.policy).unwrap_or_default();
        assert!(policy("-n a b").ignore_existing);
        assert!(policy("-i a b").ask.is_some());
        assert!(policy("-i -n a b").ask.is_none());
        assert!(!policy("-n -i a b").ignore_existing);
        assert!(policy("-u a b").update && policy("--update=older a b").update_same);
        assert!(policy("-f a b").cp_targets && policy("a b").ignore_times);
        let chmod = |line| policy(line).chmod.map(|rules| rules.apply(0o4755, false));
        assert_eq!(chmod("--no-preserve=mode a b"), Some(0o666));
        assert_eq!(chmod("a b"), None);
    }

    #[test]
    fn refused() {
        for (line, expected) in [
            ("--reflink=x a b", "invalid --reflink 'x': none of auto, always, never"),
            ("--reflink --sparse=always a b", "--reflink goes only with --sparse=auto"),
            ("--update=none-fail a b", "invalid --update 'none-fail': none of all, none, older"),
            ("-bn a b", "-b and -n cannot be used together"),
            (
                "--backup=x a b",
                "invalid --backup 'x': none of none, off, simple, never, existing, nil, numbered, t",
            ),
            ("-ls a b", "-l and -s cannot be used together"),
            ("a", "missing destination after 'a'"),
            ("-T a b c", "-T takes one source"),
        ] {
            assert_eq!(read(line).err().as_deref(), Some(expected), "{line}");
        }
    }
    use crate::commands::cp::TABLE;

    fn dash(line: &str) -> Result<Option<Dash>, String> {
        dash_of(&TABLE.parse_line(line)?)
    }

    #[test]
    fn standard_streams_beside_one_object() {
        for line in ["a -", "- a", "- -", "s3://abc/k a", "s3://abc/k ./-"] {
            assert!(matches!(dash(line), Ok(None)), "{line}");
        }
        assert!(matches!(dash("s3://abc/k -"), Ok(Some(Dash::Out(_)))));
        assert!(matches!(dash("--raw s3://abc/k* -"), Ok(Some(Dash::Out(_)))));
        let Ok(Some(Dash::In(typed))) = dash("-n --part-size=5MiB - s3://abc/k") else { panic!() };
        let options: Vec<_> = typed.options.iter().map(|arg| arg.name).collect();
        assert_eq!(options, ["no-clobber", "part-size"]);
        for line in [
            "s3://abc/k s3://abc/l -",
            "- a s3://abc/k",
            "-r s3://abc/k -",
            "-v s3://abc/k -",
            "-n s3://abc/k -",
            "-p - s3://abc/k",
            "s3://abc/k* -",
        ] {
            assert!(dash(line).is_err(), "{line}");
        }
    }
}
