//! The options of `hakobu mv`: the names and meanings of mv(1), and ours.

use super::{Opt, Table, flag, s3, value, work};
use crate::jobs;

/// The command line of `mv`.
pub const TABLE: Table = Table {
    command: "mv",
    about: "Rename SRC to DST, or move several into a directory; across file systems: copy, \
            check, remove",
    usage: "hakobu mv [OPTIONS] SRC... DST\n       hakobu mv [OPTIONS] -t DIR SRC...",
    after: "Of -n, -f and -i the last one counts.\n\
            Exit codes: 0 done, 1 something failed, 2 usage.",
    options: &[
        OPTIONS,
        s3::STORE,
        s3::SIDES,
        s3::RAW,
        s3::STAT,
        s3::WRITE,
        s3::MOVE,
        work::BWLIMIT,
        work::STEER,
        work::RPS,
        work::MEMORY,
        work::PRIORITY,
    ],
    unbuilt: &[UNBUILT, s3::UNBUILT],
    abbreviates: true,
};

const OPTIONS: &[Opt] = &[
    flag("recursive", Some('r'), "move directories and prefixes: always so"),
    flag("no-clobber", Some('n'), "leave existing files alone"),
    flag("force", Some('f'), "do not ask before overwriting"),
    flag("interactive", Some('i'), "ask before overwriting"),
    flag("update", Some('u'), "only what is newer than in DST, or missing there")
        .takes(super::Takes::Perhaps("older")),
    flag("b", Some('b'), "keep what is replaced under another name").short_only(),
    value("suffix", Some('S'), "SUFFIX", "what is appended to that name (~); implies -b"),
    value("target-directory", Some('t'), "DIR", "move everything into DIR"),
    flag(
        "no-target-directory",
        Some('T'),
        "DST is the name itself, never a directory to move into",
    ),
    value("jobs", Some('j'), "N", jobs::HELP),
    value("joblog", None, "FILE", "one line per copied file in GNU parallel's columns"),
    flag("dry-run", None, "with s3://: say what would be moved, change nothing"),
    flag("verbose", Some('v'), "say what is moved"),
    flag("progress", None, "a bar while it copies, on a terminal"),
    flag("json", None, "JSON lines on standard output, nothing else"),
];

const UNBUILT: &[(&str, &str)] = &[
    ("--backup", "-b makes simple backups"),
    ("--debug", ""),
    ("--exchange", ""),
    ("--no-copy", ""),
    ("--strip-trailing-slashes", ""),
    ("--context", ""),
    ("-Z", ""),
    ("--version", "it is an option of hakobu itself: hakobu --version"),
];
