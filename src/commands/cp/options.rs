//! The options of `hakobu cp`: the names and meanings of cp(1), and hakobu's own.

use crate::backups;
use crate::filters::{self, EXCLUDE, EXCLUDE_FROM, Filters, INCLUDE, INCLUDE_FROM, Rule};
use crate::limits::{self, LimitArgs};
use crate::names;
use crate::objects::{self, ObjectArgs};
use crate::options::{JSON, Opt, OptArg, Row, Table, Takes, flag, parts, put, value};
use crate::show::{Wanted, ask};
use hakobu_transfer::policy::{Content, Policy, Reflink, Sparse, Symlinks};
use std::ffi::OsString;

/// The command line of `cp`.
pub static TABLE: Table<Reading> = Table {
    command: "cp",
    about: "Copy SRC to DST, or several into a directory, as cp does, on all cores",
    usage: "hakobu cp [OPTIONS] SRC... DST\n       hakobu cp [OPTIONS] -t DIR SRC...",
    after: "With one s3:// object, '-' is standard input or standard output.\n\
            Exit codes: 0 done, 1 something failed, 2 usage.",
    options: &[
        &OPTIONS,
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
    ],
    unbuilt: &[UNBUILT, objects::UNBUILT],
    abbreviates: true,
};

/// The options read so far.
#[derive(Default)]
pub struct Reading {
    pub(super) policy: Policy,
    pub(super) wanted: Wanted,
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
}

parts!(Reading {
    objects: ObjectArgs,
    limits: LimitArgs,
    filters: Filters,
    links: names::LinkArgs,
    backups: backups::BackupArgs
});

const OPTIONS: &[Opt<Reading>] = &[
    flag("recursive", Some('r'), "copy directories recursively (-R is the same)")
        .sets(|it, on| it.policy.recurse = on),
    flag("R", Some('R'), "same as -r").short_only().sets(|it, on| it.policy.recurse = on),
    flag("archive", Some('a'), "same as -dR --preserve=all").reads(|it, _| {
        (it.policy.recurse, it.symlinks) = (true, Some(Symlinks::Keep));
        it.preserve("all", true)
    }),
    flag("p", Some('p'), "same as --preserve=mode,ownership,timestamps")
        .short_only()
        .reads(|it, _| it.preserve(USUAL, true)),
    flag("d", Some('d'), "same as --no-dereference --preserve=links")
        .short_only()
        .sets(|it, _| (it.symlinks, it.policy.hard_links) = (Some(Symlinks::Keep), true)),
    flag("dereference", Some('L'), "follow symlinks in SRC")
        .sets(|it, _| it.symlinks = Some(Symlinks::Follow)),
    flag("no-dereference", Some('P'), "do not follow symlinks in SRC")
        .sets(|it, _| it.symlinks = Some(Symlinks::Keep)),
    flag("H", Some('H'), "follow symlinks that are arguments")
        .short_only()
        .local("-L follows all symlinks")
        .sets(|it, _| (it.symlinks, it.policy.follow_args) = (Some(Symlinks::Keep), true)),
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
    NO_FOLLOW.sets(|it, on| it.symlinks = Some(if on { Symlinks::Skip } else { Symlinks::Follow })),
    flag("no-clobber", Some('n'), "skip existing files")
        .alias(&["no-overwrite"])
        .sets(|it, _| (it.policy.ignore_existing, it.policy.ask) = (true, None)),
    UPDATE.reads(|it, arg| {
        let (update, policy) = (update_of(arg)?, &mut it.policy);
        (policy.update, policy.update_same) = (update == Update::Older, true);
        put(&mut policy.ignore_existing, update == Update::Missing)
    }),
    SIZE_ONLY.sets(|it, on| it.policy.size_only = on),
    // Files are replaced in any case, including those that cannot be opened.
    flag(
        "force",
        Some('f'),
        "replace existing files that cannot be opened (always so); with -l and -s all",
    )
    .sets(|it, on| it.policy.forced = on),
    flag(
        "remove-destination",
        None,
        "replace existing entries as a whole: symlinks, devices, owners, modes",
    )
    .local("")
    .sets(|it, on| it.policy.remove_destination = on),
    flag(
        "attributes-only",
        None,
        "do not copy contents: existing files keep theirs, new ones are empty",
    )
    .local("")
    .sets(|it, on| it.policy.attributes_only = on),
    STRIP.sets(|it, on| it.strips = on),
    flag("interactive", Some('i'), "ask before overwriting")
        .local("--no-clobber keeps existing files")
        .sets(|it, _| {
            (it.policy.ignore_existing, it.policy.ask) = (false, Some(ask("cp", "overwrite")))
        }),
    flag("link", Some('l'), "hard-link files instead of copying")
        .local("")
        .reads(|it, _| set_content(it, Content::HardLink)),
    flag("symbolic-link", Some('s'), "make symlinks instead of copying")
        .local("")
        .reads(|it, _| set_content(it, Content::Symlink)),
    value("target-directory", Some('t'), "DIR", "copy everything into DIR")
        .reads(|it, arg| put(&mut it.target_dir, Some(arg.value.clone()))),
    flag(
        "no-target-directory",
        Some('T'),
        "DST is the name itself, never a directory to copy into",
    )
    .sets(|it, on| it.no_target_dir = on),
    flag("parents", None, "keep the path as typed below DST")
        .local("name the prefix to keep in the target")
        .sets(|it, on| it.parents = on),
    value("reflink", None, "WHEN", "share extents: auto (the default), always, never")
        .takes(Takes::Perhaps("WHEN"))
        .local("")
        .reads(|it, arg| {
            let when = match arg.value.to_str() {
                Some("" | "always") => Reflink::Always,
                Some("auto") => Reflink::Auto,
                Some("never") => Reflink::Never,
                _ => return Err(arg.refuse("is none of auto, always, never")),
            };
            put(&mut it.policy.reflink, when)
        }),
    value("sparse", None, "WHEN", "holes: auto (the default), always, never").local("").reads(
        |it, arg| {
            let when = match arg.value.to_str() {
                Some("auto") => Sparse::Auto,
                Some("always") => Sparse::Always,
                Some("never") => Sparse::Never,
                _ => return Err(arg.refuse("is none of auto, always, never")),
            };
            put(&mut it.policy.sparse, when)
        },
    ),
    flag("one-file-system", Some('x'), "do not cross into other file systems")
        .local("")
        .sets(|it, on| it.policy.one_file_system = on),
    value(
        "files-from",
        None,
        "FILE",
        "names of sources in FILE ('-': standard input), in addition to SRC",
    )
    .reads(|it, arg| put(&mut it.files_from, Some(arg.value.clone()))),
    flag("from0", Some('0'), "names and patterns in files end with NUL")
        .sets(|it, on| it.filters.nul = on),
    EXCLUDE.reads(|it, arg| it.filters.add(Rule::Exclude, arg)),
    INCLUDE.reads(|it, arg| it.filters.add(Rule::Include, arg)),
    EXCLUDE_FROM.reads(|it, arg| it.filters.add(Rule::ExcludeFrom, arg)),
    INCLUDE_FROM.reads(|it, arg| it.filters.add(Rule::IncludeFrom, arg)),
    limits::JOBS.reads(limits::set_jobs),
    value("joblog", None, "FILE", "one line per file in GNU parallel's columns")
        .reads(|it, arg| put(&mut it.wanted.joblog, Some(arg.value.clone()))),
    flag("dry-run", None, "say what would be copied, change nothing")
        .alias(&["dryrun"])
        .sets(|it, on| it.policy.dry_run = on),
    flag("verbose", Some('v'), "one line per file").sets(|it, on| it.verbose = on),
    QUIET.sets(|it, on| it.wanted.hush(on)),
    PROGRESS.sets(|it, on| it.wanted.progress = Some(on)),
    JSON.sets(|it, on| it.wanted.json = on),
];

/// `--size-only` of aws and rsync, `--if-size-differ` of s5cmd.
pub const SIZE_ONLY: Row =
    flag("size-only", None, "skip existing files of the same size").alias(&["if-size-differ"]);
/// `--update`, for `cp` and `mv`.
pub const UPDATE: Row =
    value("update", Some('u'), "WHICH", "older: only newer files and missing ones; all; none")
        .takes(Takes::Perhaps("WHICH"))
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
        _ => Err(arg.refuse("is not supported: all, none and older are")),
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
            ("context", _) => return Err("--preserve=context is not supported".into()),
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
    "show progress: a bar on a terminal (by default after a second), else a line a second",
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

fn set_content(it: &mut Reading, content: Content) -> Result<(), String> {
    if it.policy.content != Content::Copy && it.policy.content != content {
        return Err("-l and -s cannot be used together".into());
    }
    put(&mut it.policy.content, content)
}

impl Reading {
    /// Applies a list of attributes to keep or not to keep.
    fn preserve(&mut self, list: &str, on: bool) -> Result<(), String> {
        let Reading { policy, no_mode, .. } = self;
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
