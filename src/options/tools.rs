//! The command lines of the small commands for S3, under the names that s5cmd and aws gave their
//! options.

use super::{Opt, Table, flag, s3, value, work};

const EXIT: &str = "Exit codes: 0 done, 1 something failed, 2 usage.";
const JSON: Opt = flag("json", None, "JSON lines on standard output, nothing else");

/// The command line of `cat`.
pub const CAT: Table = Table {
    command: "cat",
    about: "Write objects to standard output, checked, in parts that are fetched ahead",
    usage: "hakobu cat [OPTIONS] s3://BUCKET/KEY...",
    after: EXIT,
    options: &[CAT_OPTIONS, s3::STORE, s3::VERSION, work::PRIORITY],
    unbuilt: &[s3::UNBUILT],
    abbreviates: false,
};

const CAT_OPTIONS: &[Opt] =
    &[value("range", None, "FIRST-LAST", "only these bytes, counted from 0 (FIRST-: to the end)")];

/// The command line of `pipe`.
pub const PIPE: Table = Table {
    command: "pipe",
    about: "Write standard input into an object, in parts where it is large",
    usage: "hakobu pipe [OPTIONS] s3://BUCKET/KEY",
    after: EXIT,
    options: &[s3::STORE, s3::WRITE, work::BWLIMIT, work::MEMORY, work::PRIORITY],
    unbuilt: &[s3::UNBUILT],
    abbreviates: false,
};

/// The command line of `head`.
pub const HEAD: Table = Table {
    command: "head",
    about: "Show what headers say of objects, or whether buckets are there",
    usage: "hakobu head [OPTIONS] s3://BUCKET[/KEY]...",
    after: EXIT,
    options: &[&[JSON], s3::STORE, s3::VERSION],
    unbuilt: &[s3::UNBUILT],
    abbreviates: false,
};

/// The command line of `mb`.
pub const MB: Table = Table {
    command: "mb",
    about: "Make buckets",
    usage: "hakobu mb [OPTIONS] s3://BUCKET...",
    after: EXIT,
    options: &[s3::STORE],
    unbuilt: &[s3::UNBUILT],
    abbreviates: false,
};

/// The command line of `rb`.
pub const RB: Table = Table {
    command: "rb",
    about: "Remove buckets that are empty",
    usage: "hakobu rb [OPTIONS] s3://BUCKET...",
    after: EXIT,
    options: &[RB_OPTIONS, s3::STORE],
    unbuilt: &[s3::UNBUILT],
    abbreviates: false,
};

const RB_OPTIONS: &[Opt] =
    &[flag("force", None, "remove all objects and unfinished uploads first")];

/// The command line of `presign`.
pub const PRESIGN: Table = Table {
    command: "presign",
    about: "Make URLs that let anybody read an object for a while",
    usage: "hakobu presign [OPTIONS] s3://BUCKET/KEY...",
    after: EXIT,
    options: &[PRESIGN_OPTIONS, s3::STORE, s3::VERSION],
    unbuilt: &[s3::UNBUILT],
    abbreviates: false,
};

const PRESIGN_OPTIONS: &[Opt] =
    &[value("expires-in", None, "TIME", "seconds, or 90m, 12h, 7d; an hour if not said")
        .alias(&["expire"])];

/// The command line of `mpu`.
pub const MPU: Table = Table {
    command: "mpu",
    about: "List unfinished multipart uploads, or abort them and free what they hold",
    usage: "hakobu mpu ls [OPTIONS] s3://BUCKET[/PREFIX]\n       \
            hakobu mpu abort [OPTIONS] s3://BUCKET[/PREFIX]",
    after: "abort takes one of --upload-id, --older-than, --all.\n\
            Exit codes: 0 done, 1 something failed, 2 usage.",
    options: &[MPU_OPTIONS, s3::STORE],
    unbuilt: &[s3::UNBUILT],
    abbreviates: false,
};

const MPU_OPTIONS: &[Opt] = &[
    value("upload-id", None, "ID", "only this upload"),
    value("older-than", None, "TIME", "only uploads begun so long ago: seconds, or 90m, 12h, 7d"),
    flag("all", None, "abort: all uploads below the prefix"),
    JSON,
];

/// The command line of `run`.
pub const RUN: Table = Table {
    command: "run",
    about: "Run commands from a file, one a line, in parallel",
    usage: "hakobu run [OPTIONS] [FILE]",
    after: "FILE is '-' (standard input) if not said. Lines are split as a shell does it, without \
            expansions; '#' begins a comment. Commands are sync, cp, mv, rm, ls, du, cat, head, mb, rb, presign \
            with their own options, and with s5cmd's short ones. Options of S3 that are given to run \
            hold for every line that does not say otherwise.\n\
            Exit codes: 0 done, 1 some line failed, 2 usage.",
    options: &[RUN_OPTIONS, s3::STORE, work::PRIORITY],
    unbuilt: &[s3::UNBUILT],
    abbreviates: false,
};

const RUN_OPTIONS: &[Opt] = &[
    value("jobs", Some('j'), "N", "lines at once (numworkers): N, +N, -N, N%, 0 (many), auto")
        .alias(&["numworkers"]),
    flag("exit-on-error", None, "begin no further line after the first failure"),
    flag("dry-run", Some('n'), "show the lines as they were understood, run nothing"),
];
