//! The options of `hakobu mv`: the names and meanings of mv(1), and hakobu's own.

use crate::backups;
use crate::commands::cp::{
    NO_FOLLOW, PROGRESS, QUIET, SIZE_ONLY, STRIP, UPDATE, Update, attributes, update_of,
};
use crate::filters::{self, Filters};
use crate::limits::{self, LimitArgs};
use crate::names;
use crate::objects::{self, ObjectArgs};
use crate::options::{JSON, Opt, Table, flag, parts, put, value};
use crate::show::{Wanted, ask};
use hakobu_transfer::local::Carried;
use hakobu_transfer::plan::mv::{Existing, Options};
use hakobu_transfer::policy::Symlinks;
use std::ffi::OsString;
use std::sync::Arc;

/// The command line of `mv`.
pub static TABLE: Table<Reading> = Table {
    command: "mv",
    about: "Rename SRC to DST, or move several into a directory; across file systems: copy, \
            check, remove",
    usage: "hakobu mv [OPTIONS] SRC... DST\n       hakobu mv [OPTIONS] -t DIR SRC...",
    after: "Of -n, -f and -i the last one counts.\n\
            Exit codes: 0 done, 1 something failed, 2 usage.",
    options: &[
        &OPTIONS,
        &backups::OPTIONS,
        &objects::COMMON,
        &objects::DEBUG,
        &objects::SIDES,
        &objects::RAW,
        &objects::STAT,
        &objects::TRANSFER,
        &objects::FLATTEN,
        &objects::NAMES,
        &objects::CASES,
        &objects::STOP,
        &filters::NAMED,
        &limits::TRANSFER,
        &names::LINKS,
    ],
    unbuilt: &[UNBUILT, objects::UNBUILT],
    abbreviates: true,
};

/// The options read so far.
#[derive(Default)]
pub struct Reading {
    pub(super) options: Options,
    pub(super) wanted: Wanted,
    pub(super) backups: backups::BackupArgs,
    pub(super) links: names::LinkArgs,
    /// `--strip-trailing-slashes`.
    pub(super) strips: bool,
    /// One of `-n`, `-f`, `-i` was given.
    pub(super) decided: bool,
    pub(super) no_target_dir: bool,
    pub(super) target_dir: Option<OsString>,
    pub(super) limits: LimitArgs,
    /// Hard links between arguments that are copied.
    pub(super) carried: Arc<Carried>,
    pub(super) within: hakobu_core::limit::Limits,
    pub(super) verbose: bool,
    pub(super) dry_run: bool,
    pub(super) objects: ObjectArgs,
    pub(super) filters: Filters,
    pub(super) symlinks: Option<Symlinks>,
    pub(super) size_only: bool,
}

parts!(Reading {
    objects: ObjectArgs,
    limits: LimitArgs,
    filters: Filters,
    links: names::LinkArgs,
    backups: backups::BackupArgs
});

impl Reading {
    /// Applies `-n`, `-f` or `-i`.
    fn decide(&mut self, existing: Existing) {
        (self.options.existing, self.decided) = (existing, true);
    }
}

const OPTIONS: &[Opt<Reading>] = &[
    // Directories are always moved with their content.
    flag("recursive", Some('r'), "move directories and prefixes (always so)").sets(|_, _| {}),
    flag("no-clobber", Some('n'), "skip existing files")
        .alias(&["no-overwrite"])
        .sets(|it, _| it.decide(Existing::Keep)),
    flag("force", Some('f'), "do not ask before overwriting")
        .sets(|it, _| it.decide(Existing::Replace)),
    flag("interactive", Some('i'), "ask before overwriting")
        .local("--no-clobber keeps existing files")
        .sets(|it, _| it.decide(Existing::Ask(ask("mv", "overwrite")))),
    UPDATE.reads(|it, arg| {
        let update = update_of(arg)?;
        if update == Update::Missing {
            it.decide(Existing::Keep);
        }
        put(&mut it.options.update, update == Update::Older)
    }),
    value(
        "no-preserve",
        None,
        "LIST",
        "across file systems: do not keep mode, ownership, timestamps, links, xattr",
    )
    .local("")
    .reads(|it, arg| {
        let dropped = &mut it.options.dropped;
        attributes(&arg.value.to_string_lossy(), |attribute| match attribute {
            "mode" => dropped.mode = true,
            "ownership" => dropped.ownership = true,
            "timestamps" => dropped.timestamps = true,
            "links" => dropped.links = true,
            _ => dropped.xattrs = true,
        })
    }),
    flag("no-copy", None, "fail where only a copy could move it: across file systems")
        .local("")
        .sets(|it, on| it.options.no_copy = on),
    STRIP.sets(|it, on| it.strips = on),
    value("target-directory", Some('t'), "DIR", "move everything into DIR")
        .reads(|it, arg| put(&mut it.target_dir, Some(arg.value.clone()))),
    flag(
        "no-target-directory",
        Some('T'),
        "DST is the name itself, never a directory to move into",
    )
    .sets(|it, on| it.no_target_dir = on),
    limits::JOBS.reads(limits::set_jobs),
    value("joblog", None, "FILE", "one line per copied file in GNU parallel's columns")
        .reads(|it, arg| put(&mut it.wanted.joblog, Some(arg.value.clone()))),
    flag("dry-run", None, "with s3://: show what would be moved, change nothing")
        .alias(&["dryrun"])
        .stored()
        .sets(|it, on| it.dry_run = on),
    flag("verbose", Some('v'), "print what is moved").sets(|it, on| it.verbose = on),
    QUIET.sets(|it, on| it.wanted.hush(on)),
    SIZE_ONLY
        .with_help("with s3://: skip existing files of the same size")
        .stored()
        .sets(|it, on| it.size_only = on),
    NO_FOLLOW.stored().sets(|it, on| {
        it.symlinks = Some(if on { Symlinks::Skip } else { Symlinks::Follow });
    }),
    PROGRESS.sets(|it, on| it.wanted.progress = Some(on)),
    JSON.sets(|it, on| it.wanted.json = on),
];

const UNBUILT: &[(&str, &str)] = &[("--exchange --context -Z", "")];
