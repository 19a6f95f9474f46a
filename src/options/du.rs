//! The options of `hakobu du`: the names and meanings of du(1), and ours.

use super::{Opt, Table, flag, s3, value};

/// The command line of `du`.
pub const TABLE: Table = Table {
    command: "du",
    about: "Count the room that trees take, in parallel; every file once, however many names",
    usage: "hakobu du [OPTIONS] [PATH]...",
    after: "Numbers are KiB unless -h, -b or -m says otherwise; of those the last one counts. \
            Lines are sorted by name, directories after what is in them.\n\
            Exit codes: 0 done, 1 something could not be counted, 2 usage.",
    options: &[OPTIONS, s3::STORE, s3::RAW, s3::STAT],
    unbuilt: &[UNBUILT, s3::UNBUILT],
    abbreviates: true,
};

const OPTIONS: &[Opt] = &[
    flag("summarize", Some('s'), "only one line for each argument"),
    flag("all", Some('a'), "a line for every file, too"),
    value("max-depth", Some('d'), "N", "lines only so many levels down"),
    flag("total", Some('c'), "a line with the sum of all arguments at the end"),
    flag("human-readable", Some('h'), "sizes such as 1.5M (powers of 1024)"),
    flag("apparent-size", None, "sizes of contents instead of the room they take"),
    flag("bytes", Some('b'), "sizes of contents in bytes"),
    flag("k", Some('k'), "sizes in KiB").short_only(),
    flag("m", Some('m'), "sizes in MiB").short_only(),
    flag("count-links", Some('l'), "count a file once for each of its names"),
    flag("one-file-system", Some('x'), "leave out what is on other file systems"),
    flag("null", Some('0'), "end each line with NUL instead of a newline"),
    value("jobs", Some('j'), "N", crate::jobs::HELP),
    flag("objects", None, "with s3://: the number of objects in a second column"),
    flag("json", None, "JSON lines on standard output, nothing else"),
];

const UNBUILT: &[(&str, &str)] = &[
    ("--block-size", "-b, -k, -m and -h choose the unit"),
    ("-B", "-b, -k, -m and -h choose the unit"),
    ("--dereference", ""),
    ("--dereference-args", ""),
    ("--no-dereference", "it is how du works"),
    ("-D", ""),
    ("-H", ""),
    ("-L", ""),
    ("-P", "it is how du works"),
    ("--exclude", ""),
    ("--exclude-from", ""),
    ("-X", ""),
    ("--files0-from", ""),
    ("--inodes", ""),
    ("--separate-dirs", ""),
    ("-S", ""),
    ("--si", ""),
    ("--threshold", ""),
    ("-t", ""),
    ("--time", ""),
    ("--time-style", ""),
    ("--version", "it is an option of hakobu itself: hakobu --version"),
];
