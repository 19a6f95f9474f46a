//! The options of `hakobu du`: the names and meanings of du(1), and hakobu's own.

use crate::filters::{self, Filters};
use crate::limits::{self, Limits};
use crate::number::ceiled;
use crate::objects::{self, ObjectArgs};
use crate::options::{JSON, Opt, Table, flag, parts, put, value};
use hakobu_transfer::location::S3Url;
use hakobu_transfer::policy::filter::Filter;
use hakobu_transfer::run::Rates;
use hakobu_tree::usage::Options;
use std::ffi::OsString;
use std::sync::Arc;

/// The command line of `du`.
pub static TABLE: Table<Plan> = Table {
    command: "du",
    about: "Report the disk usage of trees, in parallel; a file with several names counts once",
    usage: "hakobu du [OPTIONS] [PATH]...",
    after: "Numbers are KiB unless -h, -b or -m is given; the last of these counts. Lines are \
            sorted by name, directories after their contents.\n\
            Exit codes: 0 done, 1 something could not be counted, 2 usage.",
    options: &[
        &OPTIONS,
        &objects::ONE,
        &objects::ALL_VERSIONS,
        &objects::STAT,
        &filters::NAMED,
        &limits::IOPS,
        &limits::PRIORITY,
    ],
    unbuilt: &[UNBUILT, objects::UNBUILT],
    abbreviates: true,
};

/// Format of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Multiples of 1024 bytes, rounded up.
    #[default]
    Kib,
    /// Multiples of 1024 KiB, rounded up.
    Mib,
    /// Bytes.
    Byte,
    /// `1.5M`.
    Human,
}

impl Unit {
    /// Formats a size.
    pub fn size(self, bytes: u64) -> String {
        match self {
            Unit::Kib => bytes.div_ceil(1 << 10).to_string(),
            Unit::Mib => bytes.div_ceil(1 << 20).to_string(),
            Unit::Byte => bytes.to_string(),
            Unit::Human => ceiled(bytes),
        }
    }
}

/// The parsed command line.
#[derive(Debug, Default)]
pub struct Plan {
    pub(super) options: Options,
    pub(super) summarize: bool,
    /// `-s`, which is 0, or `--max-depth`, whichever comes last.
    pub(super) levels: Option<usize>,
    pub(super) unit: Unit,
    pub(super) total: bool,
    /// `--objects`.
    pub(super) counts: bool,
    /// `--group`.
    pub(super) group: bool,
    /// `-0`.
    pub(super) nul: bool,
    pub(super) json: bool,
    pub(super) limits: Limits,
    pub(super) rates: Rates,
    pub(super) objects: ObjectArgs,
    pub(super) filters: Filters,
    /// The filter for objects.
    pub(super) filter: Option<Arc<Filter>>,
    /// Arguments that are local.
    pub(super) paths: Vec<OsString>,
    /// Arguments in S3, as typed and parsed; none of both kinds at once.
    pub(super) places: Vec<(OsString, S3Url)>,
}

parts!(Plan { objects: ObjectArgs, limits: Limits, filters: Filters });

const OPTIONS: &[Opt<Plan>] = &[
    flag("summarize", Some('s'), "only one line for each argument")
        .sets(|it, _| (it.summarize, it.levels) = (true, Some(0))),
    flag("all", Some('a'), "a line for every file, too").sets(|it, on| it.options.files = on),
    value("max-depth", Some('d'), "N", "print only N levels").reads(|it, arg| {
        it.options.depth_max = Some(arg.parsed().ok_or_else(|| arg.wrong("give a number"))?);
        put(&mut it.levels, it.options.depth_max)
    }),
    flag("total", Some('c'), "a line with the sum of all arguments at the end")
        .sets(|it, on| it.total = on),
    flag("human-readable", Some('h'), "sizes such as 1.5M (powers of 1024)")
        .alias(&["humanize"])
        .sets(|it, _| it.unit = Unit::Human),
    // Objects have no size besides that of their contents.
    flag("apparent-size", None, "sizes of contents instead of disk usage")
        .sets(|it, on| it.options.apparent = on),
    flag("bytes", Some('b'), "sizes of contents in bytes")
        .sets(|it, _| (it.options.apparent, it.unit) = (true, Unit::Byte)),
    flag("k", Some('k'), "sizes in KiB").short_only().sets(|it, _| it.unit = Unit::Kib),
    flag("m", Some('m'), "sizes in MiB").short_only().sets(|it, _| it.unit = Unit::Mib),
    flag("count-links", Some('l'), "count a file once for each of its names")
        .local("")
        .sets(|it, on| it.options.count_links = on),
    flag("one-file-system", Some('x'), "skip other file systems")
        .local("")
        .sets(|it, on| it.options.one_file_system = on),
    flag("null", Some('0'), "end each line with NUL instead of a newline")
        .sets(|it, on| it.nul = on),
    limits::JOBS.local("").reads(limits::set_jobs),
    flag("objects", None, "with s3://: the number of objects in a second column")
        .stored()
        .sets(|it, on| it.counts = on),
    flag("group", None, "with s3://: a line for each storage class of an argument")
        .stored()
        .sets(|it, on| it.group = on),
    JSON.sets(|it, on| it.json = on),
];

const UNBUILT: &[(&str, &str)] = &[
    ("--block-size -B", "-b, -k, -m and -h choose the unit"),
    (
        "--dereference --dereference-args -D -H -L -X \
         --files0-from --inodes --separate-dirs -S --si --threshold -t --time --time-style",
        "",
    ),
    ("--no-dereference -P", "it is how du works"),
];
