//! The options of `hakobu watch`.

use super::{Opt, Table, flag, value};

/// The command line of `watch`.
pub const TABLE: Table = Table {
    command: "watch",
    about: "Record what a command does to the machine, or show what the machine does",
    usage: "hakobu watch [OPTIONS] -- COMMAND [ARGUMENTS]\n       \
            hakobu watch [OPTIONS] --pid PID\n       \
            hakobu watch [OPTIONS]",
    after: "With a command: runs it, its input and output untouched, and samples CPUs, memory, \
            disks, network and its processes meanwhile; at the end, what time(1) and vmstat(8) \
            would say goes to standard error. With --pid: the same for a running process and its \
            descendants, until it ends or a signal comes. With neither: a live view of the machine \
            on standard output until a signal comes, as vmstat's lines where that is no terminal.\n\
            Files appear under their names at the end, whole. docs/watch.md explains every number.\n\
            Exit codes: the command's own; 128 + N where signal N ended it; 127 it was not found, \
            126 it could not be run; 2 usage. 1: a file could not be written (and the command had \
            ended with 0, or was not begun), or there is no process PID. Without a command, 0.",
    options: &[OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

const FILES: &str = "Files";

const OPTIONS: &[Opt] = &[
    value(
        "interval",
        Some('i'),
        "SECONDS",
        "time between samples, 0.01 to 3600 (default 0.1; 1 without command and --pid)",
    ),
    value("count", Some('c'), "N", "without a command: end after N intervals"),
    value("pid", Some('p'), "PID", "watch a running process and its descendants"),
    flag("no-live", None, "no status line while it runs"),
    value("output", Some('o'), "FILE", "write the summary to FILE, not to standard error")
        .in_group(FILES),
    value("csv", None, "FILE", "write a row for each interval: vmstat's columns and more")
        .in_group(FILES),
    value("json", None, "FILE", "write the summary, the machine and all rows as one JSON object")
        .in_group(FILES),
    value("svg", None, "FILE", "write a picture of CPU, disks and network over time")
        .in_group(FILES),
];
