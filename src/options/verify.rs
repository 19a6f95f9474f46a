//! The options of `hakobu verify`: rsync's names for what is compared, and ours.

use super::{Opt, Table, Takes, filter, flag, s3, value, work};

/// The command line of `verify`.
pub const TABLE: Table = Table {
    command: "verify",
    about: "Compare two trees in parallel and say where they differ; nothing is changed",
    usage: "hakobu verify [OPTIONS] SRC DST",
    after: "SRC and DST themselves are compared: a directory with a directory, a file with a file; \
            a symlink is followed only where a slash ends it. Compared are what sync -a keeps: \
            type, size, content, mode, owner, group, times, symlink texts, device numbers; each \
            has a --no- form. A directory that one side lacks is one difference. What a filter rule \
            hides or protects is not compared.\n\
            Exit codes: 0 the same, 1 different, 2 something could not be compared, or usage.",
    options: &[OPTIONS, filter::OPTIONS, MORE, s3::STORE, s3::SIDES, work::PRIORITY],
    unbuilt: &[UNBUILT, s3::UNBUILT],
    abbreviates: false,
};

const WHAT: &str = "What is compared";
const OUTPUT: &str = "Output";

const fn on(
    name: &'static str,
    short: char,
    off: &'static [&'static str],
    help: &'static str,
) -> Opt {
    flag(name, Some(short), help).off(off).in_group(WHAT)
}

const OPTIONS: &[Opt] = &[
    flag("archive", Some('a'), "-ptgolD, which is the default").in_group(WHAT),
    on(
        "checksum",
        'c',
        &["no-checksum", "no-c", "no-content", "size-only"],
        "contents, byte for byte (default; off: --size-only, --no-content)",
    ),
    on("perms", 'p', &["no-perms", "no-p"], "modes (default)"),
    on("times", 't', &["no-times", "no-t"], "modification times (default)"),
    on("owner", 'o', &["no-owner", "no-o"], "owners (default)"),
    on("group", 'g', &["no-group", "no-g"], "groups (default)"),
    on("links", 'l', &["no-links", "no-l"], "texts of symlinks (default)"),
    on("devices", 'D', &["no-devices", "no-D"], "device numbers (default)"),
    on("hard-links", 'H', &["no-hard-links", "no-H"], "which names are the same file"),
    on("acls", 'A', &["no-acls", "no-A"], "POSIX ACLs"),
    on("xattrs", 'X', &["no-xattrs", "no-X"], "extended attributes"),
    on("sparse", 'S', &["no-sparse", "no-S"], "where the holes are, in units of 64 KiB")
        .alias(&["holes"]),
    flag("omit-dir-times", Some('O'), "times of directories do not count")
        .alias(&["ignore-dir-times"])
        .in_group(WHAT),
    flag("omit-link-times", Some('J'), "times of symlinks do not count").in_group(WHAT),
    value(
        "modify-window",
        Some('@'),
        "N",
        "times may differ by N seconds; -1: by nothing (default)",
    )
    .in_group(WHAT),
    flag("one-way", None, "what only DST has is no difference").in_group(WHAT),
];

const MORE: &[Opt] = &[
    value("max-differences", None, "N", "tell only the first N differences, count all")
        .in_group(OUTPUT),
    value("jobs", Some('j'), "N", crate::jobs::HELP),
    flag("verbose", Some('v'), "totals, and every problem when it happens")
        .takes(Takes::Count)
        .in_group(OUTPUT),
    flag("quiet", Some('q'), "tell nothing but what could not be compared").in_group(OUTPUT),
    flag("stats", None, "counts of everything at the end").in_group(OUTPUT),
    flag("json", None, "JSON lines on standard output, nothing else").in_group(OUTPUT),
];

const UNBUILT: &[(&str, &str)] = &[
    ("--recursive", "it is how verify works"),
    ("-r", "it is how verify works"),
    ("--one-file-system", ""),
    ("-x", ""),
    ("--copy-links", ""),
    ("-L", ""),
    ("--files-from", ""),
    ("--delete", "verify changes nothing; --one-way allows extra entries in DST"),
    ("--dry-run", "verify changes nothing"),
    ("-n", "verify changes nothing"),
];
