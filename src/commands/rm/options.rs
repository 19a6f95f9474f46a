//! The options of `hakobu rm`: the names and meanings of rm(1), and hakobu's own.

use crate::filters::{self, ArgumentFilters, Filters};
use crate::limits::{self, LimitArgs};
use crate::objects::{self, ObjectArgs};
use crate::options::{JSON, Noted, Opt, Table, Takes, flag, parts, put, value};
use hakobu_tree::remove::RemoveOptions;
use std::ffi::OsString;

/// The command line of `rm`.
pub static TABLE: Table<Plan> = Table {
    command: "rm",
    about: "Remove files, and directories and their contents with -r, in parallel",
    usage: "hakobu rm [OPTIONS] PATH...",
    after: "Symlinks are removed, not followed. Excluded entries stay, and so do the \
            directories above them; patterns match names as in cp -r: from the last component of \
            PATH on, or below it if PATH ends with a slash. Of -f, -i, -I and --interactive the \
            last one counts.\n\
            Exit codes: 0 done, 1 something could not be removed, 2 usage.",
    options: &[
        &OPTIONS,
        &objects::ONE,
        &objects::ALL_VERSIONS,
        &objects::STAT,
        &filters::CHOSEN,
        &QUIET,
        &limits::IOPS,
        &limits::RPS,
        &limits::PRIORITY,
    ],
    unbuilt: &[objects::UNBUILT],
    abbreviates: true,
};

/// When to ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ask {
    Never,
    /// Only before removing write-protected entries, and only on a terminal.
    #[default]
    Protected,
    Once,
    Always,
}

/// The parsed command line.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Whether paths are in `s3://`.
    pub(super) in_store: bool,
    pub(super) recursive: bool,
    pub(super) empty_dirs: bool,
    /// Remove only the contents of directories.
    pub(super) keep_dirs: bool,
    /// A missing argument is not an error.
    pub(super) force: bool,
    pub(super) dry_run: bool,
    pub(super) ask: Ask,
    pub(super) one_file_system: bool,
    pub(super) preserve_root: bool,
    /// Refuse tops that are mount points, too.
    pub(super) preserve_mounts: bool,
    pub(super) verbose: bool,
    pub(super) json: bool,
    pub(super) limits: LimitArgs,
    pub(super) within: hakobu_core::limit::Limits,
    pub(super) objects: ObjectArgs,
    pub(super) filters: Filters,
    /// Rules for local arguments: entries that they exclude stay.
    pub(super) kept: ArgumentFilters,
    pub(super) paths: Vec<OsString>,
}

impl Plan {
    /// Returns the defaults.
    pub(super) fn new(in_store: bool) -> Plan {
        let ask = if in_store { Ask::Never } else { Ask::Protected };
        Plan { in_store, ask, preserve_root: true, ..Plan::default() }
    }

    /// Returns whether a line is printed for each removed entry.
    pub(super) fn tells(&self) -> bool {
        self.verbose || self.dry_run
    }

    /// Returns the options of the walk.
    pub(super) fn removal(&self) -> RemoveOptions {
        let Plan { one_file_system, dry_run, keep_dirs, .. } = *self;
        RemoveOptions { one_file_system, dry_run, keep_dirs, ..RemoveOptions::default() }
    }
}

parts!(Plan { objects: ObjectArgs, limits: LimitArgs, filters: Filters });

const OPTIONS: &[Opt<Plan>] = &[
    flag("recursive", Some('r'), "remove directories and their contents")
        .sets(|it, on| it.recursive = on),
    flag("R", Some('R'), "the same as -r").short_only().sets(|it, on| it.recursive = on),
    flag("dir", Some('d'), "also remove empty directories")
        .local("")
        .sets(|it, on| it.empty_dirs = on),
    flag("force", Some('f'), "never ask; ignore files that do not exist")
        .sets(|it, _| (it.force, it.ask) = (true, Ask::Never)),
    flag("keep-dirs", None, "remove the contents of directories but no directory")
        .local("there are none")
        .sets(|it, on| it.keep_dirs = on),
    flag("dry-run", Some('n'), "show what would be removed, remove nothing")
        .alias(&["dryrun"])
        .sets(|it, on| it.dry_run = on),
    flag("i", Some('i'), "ask before each removal")
        .short_only()
        .local("")
        .sets(|it, _| (it.force, it.ask) = (false, Ask::Always)),
    flag("I", Some('I'), "ask once before removing more than three, or with -r")
        .short_only()
        .sets(|it, _| (it.force, it.ask) = (false, Ask::Once)),
    value("interactive", None, "WHEN", "ask: never, once or always (the default)")
        .takes(Takes::Perhaps("WHEN"))
        .reads(|it, arg| {
            it.ask = match arg.value.to_str() {
                Some("once") => Ask::Once,
                Some("never") => Ask::Never,
                _ if it.in_store => return Err("--interactive is not supported for s3://".into()),
                Some("" | "always" | "yes") => Ask::Always,
                Some("no" | "none") => Ask::Never,
                _ => return Err(arg.wrong("give never, once or always")),
            };
            put(&mut it.force, false)
        }),
    flag("one-file-system", None, "skip directories on other file systems")
        .local("")
        .sets(|it, on| it.one_file_system = on),
    value(
        "preserve-root",
        None,
        "all",
        "never remove '/' (the default); 'all': nor other mounted ones",
    )
    .takes(Takes::Perhaps("all"))
    .local("")
    .reads(|it, arg| {
        it.preserve_mounts = match arg.value.to_str() {
            Some("") => false,
            Some("all") => true,
            _ => return Err(arg.wrong("'all' is the only value")),
        };
        put(&mut it.preserve_root, true)
    }),
    flag("no-preserve-root", None, "allow '/'")
        .local("")
        .sets(|it, _| (it.preserve_root, it.preserve_mounts) = (false, false)),
    limits::JOBS.reads(limits::set_jobs),
    flag("verbose", Some('v'), "print what is removed").sets(|it, on| it.verbose = on),
    JSON.sets(|it, on| it.json = on),
];

/// Options of aws.
const QUIET: Noted = Noted(&[flag("quiet", None, "say nothing")
    .alias(&["only-show-errors"])
    .noted("only -v prints what is removed")]);
