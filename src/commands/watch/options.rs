//! The options of `hakobu watch`.

use crate::options::{Group, Opt, OptArg, Table, flag, parts, put, titled, value};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The command line of `watch`.
pub static TABLE: Table<Plan> = Table {
    command: "watch",
    about: "Record the load that a command causes and report what limited it, or show the \
            machine",
    usage: "hakobu watch [OPTIONS] -- COMMAND [ARGUMENTS]\n       \
            hakobu watch [OPTIONS] --pid PID\n       \
            hakobu watch [OPTIONS]",
    after: "With a command: runs it with unchanged input and output, and samples CPUs, \
            memory, disks, network and its processes; at the end, the verdict (what limited it, \
            with evidence) and the figures of time(1) and vmstat(8) go to standard error. With \
            --pid: the same for a running process and its descendants, until it ends or a signal \
            arrives. With neither: a live view of the machine on standard output until a signal \
            arrives, or vmstat's lines if that is not a terminal.\n\
            Files appear under their names when they are complete, at the end. hakobu help \
            watch-guide explains every number.\n\
            Exit codes: the command's own; 128 + N if signal N ended it; 127 not found, 126 \
            could not be run; 2 usage; 1 if a file could not be written (and the command ended \
            with 0, or was not started), or there is no process PID. Without a command, 0.",
    options: &[&OPTIONS, &FILES],
    unbuilt: &[],
    abbreviates: false,
};

/// Range of the sampling interval, in seconds. Below it the kernel's own counters are too coarse.
const INTERVAL_S: std::ops::RangeInclusive<f64> = 0.01..=3600.0;

/// The subject to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    /// A command to start: its name and arguments, at least the name.
    Command(Vec<OsString>),
    /// A running process.
    Pid(u32),
    /// The machine.
    #[default]
    Machine,
}

/// The parsed command line.
#[derive(Debug, Default)]
pub struct Plan {
    pub(super) subject: Subject,
    /// `--interval`.
    pub(super) every: Option<Duration>,
    pub(super) interval: Duration,
    /// End after this many intervals.
    pub(super) count: Option<u64>,
    pub(super) live: bool,
    pub(super) quiet: bool,
    pub(super) output: Option<PathBuf>,
    pub(super) csv: Option<PathBuf>,
    pub(super) json: Option<PathBuf>,
    pub(super) svg: Option<PathBuf>,
}

parts!(Plan {});

const OPTIONS: &[Opt<Plan>] = &[
    value(
        "interval",
        Some('i'),
        "SECONDS",
        "time between samples, 0.01 to 3600 (default 0.1; 1 without command and --pid)",
    )
    .reads(|plan, arg| put(&mut plan.every, Some(seconds(arg)?))),
    value("count", Some('c'), "N", "without a command: end after N intervals")
        .reads(|plan, arg| put(&mut plan.count, Some(positive(arg)?))),
    value("pid", Some('p'), "PID", "watch a running process and its descendants").reads(
        |plan, arg| {
            if matches!(plan.subject, Subject::Command(_)) {
                return Err("--pid does not go with a command".into());
            }
            let pid = u32::try_from(positive(arg)?).map_err(|_| arg.wrong("is not a process"))?;
            put(&mut plan.subject, Subject::Pid(pid))
        },
    ),
    flag("no-live", None, "no status line while it runs").sets(|plan, _| plan.live = false),
    flag("quiet", Some('q'), "no status line or view; no verdict and summary on standard error")
        .sets(|plan, on| plan.quiet = on),
];

static FILES: Group<Plan> = titled("Files").with(&[
    value("output", Some('o'), "FILE", "write verdict and summary to FILE, not to standard error")
        .reads(|plan, arg| put(&mut plan.output, Some(arg.path()))),
    value("csv", None, "FILE", "write a row for each interval: vmstat's columns and more")
        .reads(|plan, arg| put(&mut plan.csv, Some(arg.path()))),
    value(
        "json",
        None,
        "FILE",
        "write the verdict, the summary, the machine and all rows as one JSON object",
    )
    .reads(|plan, arg| put(&mut plan.json, Some(arg.path()))),
    value("svg", None, "FILE", "write a picture of CPU, disks and network over time")
        .reads(|plan, arg| put(&mut plan.svg, Some(arg.path()))),
]);

fn seconds(arg: &OptArg) -> Result<Duration, String> {
    arg.parsed()
        .filter(|seconds| INTERVAL_S.contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| arg.wrong("give seconds between 0.01 and 3600"))
}

fn positive(arg: &OptArg) -> Result<u64, String> {
    arg.parsed().filter(|n| *n > 0).ok_or_else(|| arg.wrong("is not a number of at least 1"))
}
