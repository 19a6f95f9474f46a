//! The options of `hakobu du`: the names and meanings of du(1), and hakobu's own.

use super::plan::{Plan, Unit};
use crate::filters::{self, Filters};
use crate::limits::{self, Limits};
use crate::objects::{self, ObjectArgs};
use crate::options::{Opt, Table, flag, parts, put, value};

/// The command line of `du`.
pub const TABLE: Table<Plan> = Table {
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

parts!(Plan { objects: ObjectArgs, limits: Limits, filters: Filters });

const OPTIONS: &[Opt<Plan>] = &[
    flag("summarize", Some('s'), "only one line for each argument")
        .sets(|it, _| (it.summarize, it.levels) = (true, Some(0))),
    flag("all", Some('a'), "a line for every file, too").sets(|it, on| it.options.files = on),
    value("max-depth", Some('d'), "N", "print only N levels").reads(|it, arg| {
        let depth = arg.value.to_str().and_then(|text| text.parse().ok());
        it.options.depth_max = Some(depth.ok_or_else(|| arg.wrong("give a number"))?);
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
        .sets(|it, _| (it.options.apparent, it.unit) = (true, Unit::Bytes(1))),
    flag("k", Some('k'), "sizes in KiB").short_only().sets(|it, _| it.unit = Unit::Bytes(1 << 10)),
    flag("m", Some('m'), "sizes in MiB").short_only().sets(|it, _| it.unit = Unit::Bytes(1 << 20)),
    flag("count-links", Some('l'), "count a file once for each of its names")
        .local("")
        .sets(|it, on| it.options.count_links = on),
    flag("one-file-system", Some('x'), "skip other file systems")
        .local("")
        .sets(|it, on| it.options.one_file_system = on),
    flag("null", Some('0'), "end each line with NUL instead of a newline").sets(|it, _| it.end = 0),
    limits::JOBS.local("").reads(limits::set_jobs),
    flag("objects", None, "with s3://: the number of objects in a second column")
        .stored()
        .sets(|it, on| it.counts = on),
    flag("group", None, "with s3://: a line for each storage class of an argument")
        .stored()
        .sets(|it, on| it.group = on),
    flag("json", None, "JSON lines on standard output, nothing else").sets(|it, on| it.json = on),
];

const UNBUILT: &[(&str, &str)] = &[
    ("--block-size -B", "-b, -k, -m and -h choose the unit"),
    (
        "--dereference --dereference-args -D -H -L -X \
         --files0-from --inodes --separate-dirs -S --si --threshold -t --time --time-style",
        "",
    ),
    ("--no-dereference -P", "it is how du works"),
    ("--version", "it is an option of hakobu itself: hakobu --version"),
];
