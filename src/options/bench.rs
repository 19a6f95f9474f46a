//! The options of `hakobu bench`: hyperfine's names and meanings, and ours.

use super::{Opt, Table, Takes, flag, value};

/// The command line of `bench`.
pub const TABLE: Table = Table {
    command: "bench",
    about: "Measure commands, or a whole campaign of them, side by side",
    usage: "hakobu bench [OPTIONS] CAMPAIGN.toml\n       \
            hakobu bench [OPTIONS] COMMAND...",
    after: "Runs are interleaved: each command (with each value of its parameters) once in each \
            block, in an order that only the seed decides. Each run is timed with its children, the \
            machine is watched meanwhile, and a campaign checks what came out. Where several are \
            compared, one is run twice under two names (an A/A control): what differs there is noise.\n\
            Results are a folder, to which a line is added for each run. A run of the same campaign \
            with the same --output goes on where an earlier one was stopped.\n\
            A duration is a number with us, ms, s, m or h. docs/bench.md explains all of it.\n\
            Exit codes: 0 done, 1 a run failed or something could not be done, 2 usage, 130 a signal \
            stopped it (what was measured is kept).",
    options: &[OPTIONS, COMMANDS, CAMPAIGNS, RESULTS],
    unbuilt: &[UNBUILT],
    abbreviates: false,
};

const OF_COMMANDS: &str = "Commands (as in hyperfine)";
const OF_CAMPAIGNS: &str = "Campaigns";
const OF_RESULTS: &str = "Results";

const OPTIONS: &[Opt] = &[
    value("warmup", Some('w'), "N", "runs of each before those that count"),
    value("runs", Some('r'), "N", "exactly N runs of each").alias(&["repeat"]),
    value("min-runs", Some('m'), "N", "at least N runs of each (of commands: 5)"),
    value("max-runs", Some('M'), "N", "at most N runs of each (of commands: 20)"),
    value("budget", None, "DUR", "begin no run after so long"),
    value("seed", None, "N", "another order of runs"),
    value(
        "only",
        None,
        "CELLS",
        "only these: numbers, ranges (3-5) or names, with commas; see --dry-run",
    ),
    value("timeout", None, "DUR", "end a run that takes longer; it has failed"),
    flag(
        "prove",
        None,
        "then change one thing at a time (half the CPUs, ...): what limits, proven",
    ),
    flag("dry-run", None, "print what would be run, run nothing"),
    flag("quiet", Some('q'), "no progress, no report"),
    flag("no-color", None, "a report without colours"),
];

const COMMANDS: &[Opt] = &[
    value(
        "parameter-list",
        Some('L'),
        "VAR VALUES",
        "run with each of these for {VAR}: -L jobs 1,4,16",
    )
    .takes(Takes::Words(&["VAR", "VALUES"]))
    .in_group(OF_COMMANDS),
    value("parameter-scan", Some('P'), "VAR MIN MAX", "the same for all numbers from MIN to MAX")
        .takes(Takes::Words(&["VAR", "MIN", "MAX"]))
        .in_group(OF_COMMANDS),
    value("parameter-step-size", Some('D'), "STEP", "the step of -P (default 1)")
        .in_group(OF_COMMANDS),
    value("command-name", Some('n'), "NAME", "what to call a command; once for each")
        .takes(Takes::Values("NAME"))
        .in_group(OF_COMMANDS),
    value("setup", Some('s'), "CMD", "a shell command before the first run").in_group(OF_COMMANDS),
    value("prepare", Some('p'), "CMD", "one before each run; once for all, or once for each")
        .takes(Takes::Values("CMD"))
        .in_group(OF_COMMANDS),
    value("conclude", Some('C'), "CMD", "one after each run; likewise")
        .takes(Takes::Values("CMD"))
        .in_group(OF_COMMANDS),
    value("cleanup", Some('c'), "CMD", "one after the last run").in_group(OF_COMMANDS),
    value("shell", Some('S'), "SHELL", "run commands with this shell (default sh; none: without)")
        .in_group(OF_COMMANDS),
    flag("no-shell", Some('N'), "the same as --shell=none").in_group(OF_COMMANDS),
    flag("ignore-failure", Some('i'), "an exit code other than 0 is no failure")
        .in_group(OF_COMMANDS),
    value("input", None, "FILE", "what commands read on standard input (default: nothing)")
        .in_group(OF_COMMANDS),
    value("cpus", None, "N", "commands may use N CPUs").in_group(OF_COMMANDS),
    flag("no-control", None, "no A/A control").in_group(OF_COMMANDS),
];

const CAMPAIGNS: &[Opt] = &[
    value("scale", None, "X", "X times as much data as described").in_group(OF_CAMPAIGNS),
    value("place", None, "NAME=PATH", "another path or s3:// URL for a place of the campaign")
        .takes(Takes::Values("NAME=PATH"))
        .in_group(OF_CAMPAIGNS),
    value("work", None, "DIR", "where targets are (default: below ~/.cache/hakobu)")
        .in_group(OF_CAMPAIGNS),
    value("cache", None, "DIR", "where data sets are kept (default: below ~/.cache/hakobu)")
        .in_group(OF_CAMPAIGNS),
];

const RESULTS: &[Opt] = &[
    value(
        "output",
        Some('o'),
        "DIR",
        "the folder of results (default: a new one below ~/.local/state/hakobu)",
    )
    .in_group(OF_RESULTS),
    value("machine", None, "NAME", "what to call this machine beside others").in_group(OF_RESULTS),
    value("export-json", None, "FILE", "what hyperfine would write").in_group(OF_RESULTS),
    value("export-csv", None, "FILE", "the same as CSV").in_group(OF_RESULTS),
    value("export-markdown", None, "FILE", "the same as a table in Markdown").in_group(OF_RESULTS),
];

const UNBUILT: &[(&str, &str)] = &[
    ("--reference", "the report compares with hakobu's own row, or with the first command"),
    ("--reference-name", ""),
    ("--export-asciidoc", ""),
    ("--export-orgmode", ""),
    ("--show-output", "what commands print is kept only to say why one failed"),
    ("--sort", ""),
    ("--style", ""),
    ("--time-unit", ""),
    ("-u", ""),
];
