//! The options of `hakobu verify`: rsync's names for the aspects, and hakobu's own.

use crate::filters::{self, Filters};
use crate::limits::{self, LimitArgs};
use crate::objects::{self, ObjectArgs};
use crate::options::{
    Group, JSON, Opt, OptArg, Row, Table, Takes, flag, parts, put, titled, value,
};
use hakobu_transfer::verify::{Aspect, Aspects, Times};

/// The command line of `verify`.
pub static TABLE: Table<Reading> = Table {
    command: "verify",
    about: "Compare two trees in parallel and report differences; nothing is changed",
    usage: "hakobu verify [OPTIONS] SRC DST",
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
    ],
    unbuilt: &[UNBUILT, objects::UNBUILT],
    abbreviates: false,
};

/// The options read so far.
#[derive(Debug, Default)]
pub struct Reading {
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
}

parts!(Reading { limits: LimitArgs, filters: Filters, objects: ObjectArgs });

impl Reading {
    /// Returns the defaults.
    pub fn new(in_store: bool) -> Reading {
        Reading {
            in_store,
            aspects: Aspects::DEFAULT,
            explicit: Aspects::NONE
                .with(Aspect::Type)
                .with(Aspect::Size)
                .with(Aspect::Content)
                .with(Aspect::Link),
            differences_max: u64::MAX,
            ..Reading::default()
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

static COMPARED: Group<Reading> = titled("What is compared").with(&[
    flag("archive", Some('a'), "-ptgolD, which is the default").sets(|it, _| {
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
    aspect("links", 'l', &["no-links", "no-l"], "texts of symlinks (default)")
        .sets(|it, on| it.compare(Aspect::Link, on)),
    flag("copy-links", Some('L'), "with s3://: compare the files that local symlinks point to")
        .stored()
        .sets(|it, on| it.follow = on),
    aspect("devices", 'D', &["no-devices", "no-D"], "device numbers (default)")
        .reads(|it, arg| it.compare_files(Aspect::Device, arg)),
    aspect("hard-links", 'H', &["no-hard-links", "no-H"], "compare which names are the same file")
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

static DIFFERENCES: Group<Reading> = titled("Output").with(&[value(
    "max-differences",
    None,
    "N",
    "print only the first N differences, count all",
)
.reads(|it, arg| {
    let most = u64::try_from(number(arg)?);
    put(&mut it.differences_max, most.map_err(|_| "--max-differences takes no negative number")?)
})]);

const JOBS: &[Opt<Reading>] = &[limits::JOBS.reads(limits::set_jobs)];

static OUTPUT: Group<Reading> = titled("Output").with(&[
    flag("verbose", Some('v'), "print totals, and problems as they occur")
        .takes(Takes::Count)
        .sets(|it, on| it.verbose = on),
    flag("quiet", Some('q'), "print only what could not be compared").sets(|it, on| it.quiet = on),
    flag("stats", None, "print counts at the end").sets(|it, on| it.stats = on),
    JSON.sets(|it, on| it.json = on),
]);

fn number(arg: &OptArg) -> Result<i64, String> {
    arg.parsed().ok_or_else(|| arg.wrong("give a number"))
}

const UNBUILT: &[(&str, &str)] = &[
    ("--recursive -r", "it is how verify works"),
    ("--one-file-system -x --files-from", ""),
    ("--delete", "verify changes nothing; --one-way allows extra entries in DST"),
    ("--dry-run -n", "verify changes nothing"),
];
