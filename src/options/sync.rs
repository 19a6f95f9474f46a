//! The options of `hakobu sync`: rsync's names with rsync's meaning, and ours (`-j`, `--joblog`,
//! `--json`). The last list has what rsync 3.5 knows and we refuse.

use super::{Opt, Table, Takes, filter, flag, s3, value, work};
use crate::jobs;

/// The command line of `sync`.
pub const TABLE: Table = Table {
    command: "sync",
    about: "Make DST like SRC, as rsync does it, on all cores",
    usage: "hakobu sync [OPTIONS] SRC... DST\n       hakobu sync [OPTIONS] SRC     (lists SRC)",
    after: "Options that an earlier one implies are turned off by --no-OPTION or --no-x \
            (-a --no-o); they apply in order.\n\
            -F is --filter='dir-merge /.rsync-filter'; a second one adds --filter='- .rsync-filter'.\n\
            SIZE and RATE take K, M, G, T, P (KiB, MiB ...: 1024; KB, MB ...: 1000), a fraction, \
            and a final +1 or -1.\n\
            Exit codes: 0 done, 1 usage, 3 file selection, 11 file I/O, 20 interrupted, 23 some \
            entries failed, 24 some sources vanished, 25 --max-delete held deletions back.",
    options: &[
        OPTIONS,
        filter::OPTIONS,
        MORE,
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
    abbreviates: false,
};

const WHAT: &str = "What is transferred";
const KEEP: &str = "What is kept";
const CHOOSE: &str = "What is left alone";
const DELETE: &str = "Removal";
const HOW: &str = "How files are written";
const OUTPUT: &str = "Output";
const WORK: &str = "Work";

const OPTIONS: &[Opt] = &[
    flag("archive", Some('a'), "same as -rlptgoD (no -A, -X, -H)").in_group(WHAT),
    flag("recursive", Some('r'), "descend into directories")
        .off(&["no-recursive", "no-r"])
        .in_group(WHAT),
    flag("dirs", Some('d'), "make directories without descending")
        .off(&["no-dirs", "no-d"])
        .in_group(WHAT),
    flag("relative", Some('R'), "keep the path as typed, from /./ on where that occurs")
        .off(&["no-relative", "no-R"])
        .in_group(WHAT),
    flag("links", Some('l'), "symlinks stay symlinks").off(&["no-links", "no-l"]).in_group(WHAT),
    flag("copy-links", Some('L'), "symlinks become what they name").in_group(WHAT),
    flag("copy-dirlinks", Some('k'), "symlinks to directories become directories").in_group(WHAT),
    flag("safe-links", None, "leave out symlinks that point outside the tree").in_group(WHAT),
    flag("D", Some('D'), "same as --devices --specials").short_only().off(&["no-D"]).in_group(WHAT),
    flag("devices", None, "make device nodes").off(&["no-devices"]).in_group(WHAT),
    flag("specials", None, "make FIFOs and sockets").off(&["no-specials"]).in_group(WHAT),
    flag("one-file-system", Some('x'), "do not cross into other file systems")
        .takes(Takes::Count)
        .off(&["no-one-file-system", "no-x"])
        .in_group(WHAT),
    flag("prune-empty-dirs", Some('m'), "do not make directories without any file below")
        .off(&["no-prune-empty-dirs", "no-m"])
        .in_group(WHAT),
    value("files-from", None, "FILE", "only these names below SRC ('-': standard input)")
        .in_group(WHAT),
    value("max-size", None, "SIZE", "leave out larger files").in_group(WHAT),
    value("min-size", None, "SIZE", "leave out smaller files").in_group(WHAT),
    flag("hard-links", Some('H'), "hard links stay hard links")
        .off(&["no-hard-links", "no-H"])
        .in_group(KEEP),
    flag("perms", Some('p'), "keep permission bits").off(&["no-perms", "no-p"]).in_group(KEEP),
    flag("owner", Some('o'), "keep the owner (superuser)")
        .off(&["no-owner", "no-o"])
        .in_group(KEEP),
    flag("group", Some('g'), "keep the group").off(&["no-group", "no-g"]).in_group(KEEP),
    flag("times", Some('t'), "keep modification times").off(&["no-times", "no-t"]).in_group(KEEP),
    flag("omit-dir-times", Some('O'), "leave the times of directories alone")
        .off(&["no-omit-dir-times", "no-O"])
        .in_group(KEEP),
    flag("acls", Some('A'), "keep ACLs (implies -p)").off(&["no-acls", "no-A"]).in_group(KEEP),
    flag("xattrs", Some('X'), "keep extended attributes")
        .off(&["no-xattrs", "no-X"])
        .in_group(KEEP),
    flag("sparse", Some('S'), "runs of zeroes become holes (holes stay holes anyway)")
        .off(&["no-sparse", "no-S"])
        .in_group(KEEP),
    value("chmod", None, "CHANGES", "change permission bits (D755,Fu=rw,go-w)")
        .takes(Takes::Values("CHANGES"))
        .in_group(KEEP),
    value("chown", None, "USER:GROUP", "set owner and group (names or numbers)").in_group(KEEP),
    flag("numeric-ids", None, "keep numbers, not names: what happens on one machine anyway")
        .off(&["no-numeric-ids"])
        .in_group(KEEP),
    flag("checksum", Some('c'), "compare contents, not size and time")
        .off(&["no-checksum", "no-c"])
        .in_group(CHOOSE),
    flag("update", Some('u'), "leave files alone that are newer in DST").in_group(CHOOSE),
    flag("size-only", None, "same size is same content").in_group(CHOOSE),
    flag("ignore-times", Some('I'), "same size and time is not enough").in_group(CHOOSE),
    value("modify-window", Some('@'), "SECONDS", "times this close are equal (-1: nanoseconds)")
        .in_group(CHOOSE),
    flag("existing", None, "only what exists in DST already")
        .alias(&["ignore-non-existing"])
        .in_group(CHOOSE),
    flag("ignore-existing", None, "only what does not exist in DST")
        .alias(&["no-clobber"])
        .in_group(CHOOSE),
];

const MORE: &[Opt] = &[
    flag("delete", None, "remove from DST what SRC does not have").in_group(DELETE),
    flag("delete-before", None, "... before copying").in_group(DELETE),
    flag("delete-during", None, "... directory by directory (the default)")
        .alias(&["del"])
        .in_group(DELETE),
    flag("delete-delay", None, "... after copying (the same here)").in_group(DELETE),
    flag("delete-after", None, "... after copying (the same here)").in_group(DELETE),
    flag("delete-excluded", None, "... and what the filters leave out").in_group(DELETE),
    value("max-delete", None, "NUM", "remove at most NUM entries").in_group(DELETE),
    flag("ignore-errors", None, "remove even where SRC could not be read")
        .off(&["no-ignore-errors"])
        .in_group(DELETE),
    flag("force", None, "a directory that is not empty may make way for a file")
        .off(&["no-force"])
        .in_group(DELETE),
    flag("remove-source-files", None, "remove files from SRC when they have arrived")
        .in_group(DELETE),
    flag("keep-dirlinks", Some('K'), "a symlink to a directory in DST is that directory")
        .in_group(HOW),
    flag("backup", Some('b'), "keep what is replaced or removed under another name")
        .off(&["no-backup"])
        .in_group(HOW),
    value("suffix", None, "SUFFIX", "what is appended to that name (~)").in_group(HOW),
    flag("inplace", None, "write into the existing file").off(&["no-inplace"]).in_group(HOW),
    flag("partial", None, "keep an interrupted file").off(&["no-partial"]).in_group(HOW),
    value("temp-dir", Some('T'), "DIR", "make temporary files in DIR").in_group(HOW),
    value("link-dest", None, "DIR", "hard-link from DIR what is unchanged there")
        .takes(Takes::Values("DIR"))
        .in_group(HOW),
    flag("whole-file", Some('W'), "copy files whole: always so, on one machine")
        .off(&["no-whole-file", "no-W"])
        .in_group(HOW),
    flag("fsync", None, "flush every file before its name appears").in_group(HOW),
    flag("mkpath", None, "make missing parents of DST").off(&["no-mkpath"]).in_group(HOW),
    value("jobs", Some('j'), "N", jobs::HELP).in_group(WORK),
    value("joblog", None, "FILE", "one line per file in GNU parallel's columns").in_group(WORK),
    flag("dry-run", Some('n'), "say what would happen, change nothing").in_group(WORK),
    flag("verbose", Some('v'), "one line per file; twice: unchanged ones, too")
        .takes(Takes::Count)
        .off(&["no-verbose", "no-v"])
        .in_group(OUTPUT),
    flag("quiet", Some('q'), "nothing but errors").in_group(OUTPUT),
    flag("itemize-changes", Some('i'), "what changed in each; twice: unchanged ones, too")
        .takes(Takes::Count)
        .off(&["no-itemize-changes", "no-i"])
        .in_group(OUTPUT),
    flag("human-readable", Some('h'), "numbers in units of 1000; twice: of 1024")
        .takes(Takes::Count)
        .off(&["no-human-readable", "no-h"])
        .in_group(OUTPUT),
    flag("stats", None, "counts at the end").in_group(OUTPUT),
    flag("progress", None, "a bar while it runs, on a terminal")
        .off(&["no-progress"])
        .in_group(OUTPUT),
    flag("P", Some('P'), "same as --partial --progress").short_only().in_group(OUTPUT),
    value("info", None, "FLAGS", "progress2: same as --progress")
        .takes(Takes::Values("FLAGS"))
        .in_group(OUTPUT),
    flag("list-only", None, "list SRC instead of copying").in_group(OUTPUT),
    flag("8-bit-output", Some('8'), "do not escape bytes above 127")
        .off(&["no-8-bit-output", "no-8"])
        .in_group(OUTPUT),
    value("log-file", None, "FILE", "append what is done to FILE").in_group(OUTPUT),
    flag("json", None, "JSON lines on standard output, nothing else").in_group(OUTPUT),
];

const REMOTE: &str = "there are no remote locations";
const COMPRESS: &str = "nothing leaves this machine, so there is nothing to compress";
const DELTA: &str = "files are copied whole";
const LIST: &str = "there is no file list to build";

const UNBUILT: &[(&str, &str)] = &[
    ("--append", ""),
    ("--append-verify", ""),
    ("--delay-updates", ""),
    ("--munge-links", ""),
    ("--copy-unsafe-links", ""),
    ("--insecure-links", ""),
    ("--confine-root", ""),
    ("--copy-dest", ""),
    ("--compare-dest", ""),
    ("--backup-dir", ""),
    ("--out-format", ""),
    ("--log-format", ""),
    ("--log-file-format", ""),
    ("--compress", COMPRESS),
    ("-z", COMPRESS),
    ("--compress-choice", COMPRESS),
    ("--zc", COMPRESS),
    ("--old-compress", COMPRESS),
    ("--new-compress", COMPRESS),
    ("--compress-level", COMPRESS),
    ("--zl", COMPRESS),
    ("--compress-threads", COMPRESS),
    ("--zt", COMPRESS),
    ("--skip-compress", COMPRESS),
    ("--rsh", REMOTE),
    ("-e", REMOTE),
    ("--rsync-path", REMOTE),
    ("--remote-option", REMOTE),
    ("-M", REMOTE),
    ("--daemon", REMOTE),
    ("--server", REMOTE),
    ("--sender", REMOTE),
    ("--config", REMOTE),
    ("--dparam", REMOTE),
    ("--detach", REMOTE),
    ("--address", REMOTE),
    ("--port", REMOTE),
    ("--sockopts", REMOTE),
    ("--blocking-io", REMOTE),
    ("--outbuf", ""),
    ("--password-file", REMOTE),
    ("--early-input", REMOTE),
    ("--timeout", REMOTE),
    ("--contimeout", REMOTE),
    ("--ipv4", REMOTE),
    ("-4", REMOTE),
    ("--ipv6", REMOTE),
    ("-6", REMOTE),
    ("--protocol", REMOTE),
    ("--old-args", REMOTE),
    ("--secluded-args", REMOTE),
    ("--protect-args", REMOTE),
    ("-s", REMOTE),
    ("--s", REMOTE),
    ("--trust-sender", REMOTE),
    ("--motd", REMOTE),
    ("--copy-as", ""),
    ("--block-size", DELTA),
    ("-B", DELTA),
    ("--fuzzy", DELTA),
    ("-y", DELTA),
    ("--y", DELTA),
    ("--checksum-choice", ""),
    ("--cc", ""),
    ("--checksum-seed", ""),
    ("--inc-recursive", LIST),
    ("--i-r", LIST),
    ("--max-alloc", LIST),
    ("--implied-dirs", ""),
    ("--i-d", ""),
    ("--old-dirs", ""),
    ("--old-d", ""),
    ("--executability", ""),
    ("-E", ""),
    ("--copy-devices", ""),
    ("--write-devices", ""),
    ("--drop-D", ""),
    ("--atimes", ""),
    ("-U", ""),
    ("--U", ""),
    ("--open-noatime", ""),
    ("--crtimes", ""),
    ("-N", ""),
    ("--N", ""),
    ("--omit-link-times", ""),
    ("-J", ""),
    ("--J", ""),
    ("--super", ""),
    ("--fake-super", ""),
    ("--preallocate", ""),
    ("--ignore-missing-args", ""),
    ("--delete-missing-args", ""),
    ("--partial-dir", ""),
    ("--usermap", ""),
    ("--groupmap", ""),
    ("--debug", ""),
    ("--stderr", ""),
    ("--msgs2stderr", ""),
    ("--stop-after", ""),
    ("--time-limit", ""),
    ("--stop-at", ""),
    ("--write-batch", ""),
    ("--only-write-batch", ""),
    ("--read-batch", ""),
    ("--iconv", ""),
    ("--version", "it is an option of hakobu itself: hakobu --version"),
    ("-V", "the version is an option of hakobu itself: hakobu --version"),
];
