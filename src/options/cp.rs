//! The options of `hakobu cp`: the names and meanings of cp(1), and ours.

use super::{Opt, Table, Takes, flag, s3, value, work};
use crate::jobs;

/// The command line of `cp`.
pub const TABLE: Table = Table {
    command: "cp",
    about: "Copy SRC to DST, or several into a directory, as cp does it, on all cores",
    usage: "hakobu cp [OPTIONS] SRC... DST\n       hakobu cp [OPTIONS] -t DIR SRC...",
    after: "Exit codes: 0 done, 1 something failed, 2 usage.",
    options: &[
        OPTIONS,
        s3::STORE,
        s3::SIDES,
        s3::RAW,
        s3::VERSION,
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
    flag("recursive", Some('r'), "copy directories with all they hold (-R is the same)"),
    flag("R", Some('R'), "same as -r").short_only(),
    flag("archive", Some('a'), "same as -dR --preserve=all"),
    flag("p", Some('p'), "same as --preserve=mode,ownership,timestamps").short_only(),
    flag("d", Some('d'), "same as --no-dereference --preserve=links").short_only(),
    flag("dereference", Some('L'), "follow symlinks in SRC"),
    flag("no-dereference", Some('P'), "do not follow symlinks in SRC"),
    flag("H", Some('H'), "follow symlinks that are arguments").short_only(),
    value("preserve", None, "LIST", "keep mode, ownership, timestamps, links, xattr, all")
        .takes(Takes::Perhaps("LIST")),
    value("no-preserve", None, "LIST", "do not keep these"),
    flag("no-clobber", Some('n'), "leave existing files alone"),
    flag("update", Some('u'), "only files that are newer than in DST, or missing there")
        .takes(Takes::Perhaps("older")),
    flag("size-only", None, "leave existing files alone that have the same size"),
    flag("force", Some('f'), "replace existing files that cannot be opened: always so"),
    flag("interactive", Some('i'), "ask before overwriting"),
    flag("link", Some('l'), "hard-link files instead of copying"),
    flag("symbolic-link", Some('s'), "make symlinks instead of copying"),
    value("target-directory", Some('t'), "DIR", "copy everything into DIR"),
    flag(
        "no-target-directory",
        Some('T'),
        "DST is the name itself, never a directory to copy into",
    ),
    flag("parents", None, "keep the path as typed below DST"),
    flag("reflink", None, "share extents: auto (the default), always, never")
        .takes(Takes::Perhaps("WHEN")),
    value("sparse", None, "WHEN", "holes: auto (the default), always, never"),
    flag("one-file-system", Some('x'), "do not cross into other file systems"),
    value(
        "files-from",
        None,
        "FILE",
        "names of sources in FILE ('-': standard input), in addition to SRC",
    ),
    flag("from0", Some('0'), "names and patterns in files end with NUL"),
    value("exclude", None, "PATTERN", "leave out what matches (a filter pattern of sync)")
        .takes(Takes::Values("PATTERN")),
    value("include", None, "PATTERN", "do not leave out what matches")
        .takes(Takes::Values("PATTERN")),
    value("exclude-from", None, "FILE", "read exclude patterns ('-': standard input)")
        .takes(Takes::Values("FILE")),
    value("include-from", None, "FILE", "read include patterns ('-': standard input)")
        .takes(Takes::Values("FILE")),
    value("jobs", Some('j'), "N", jobs::HELP),
    value("joblog", None, "FILE", "one line per file in GNU parallel's columns"),
    flag("dry-run", None, "say what would be copied, change nothing"),
    flag("verbose", Some('v'), "one line per file"),
    flag("progress", None, "a bar while it runs, on a terminal"),
    flag("json", None, "JSON lines on standard output, nothing else"),
];

const UNBUILT: &[(&str, &str)] = &[
    ("--attributes-only", ""),
    ("--backup", ""),
    ("-b", ""),
    ("--suffix", ""),
    ("-S", ""),
    ("--copy-contents", ""),
    ("--debug", ""),
    ("--keep-directory-symlink", ""),
    ("--remove-destination", ""),
    ("--strip-trailing-slashes", ""),
    ("--context", ""),
    ("-Z", ""),
    ("--version", "it is an option of hakobu itself: hakobu --version"),
];
