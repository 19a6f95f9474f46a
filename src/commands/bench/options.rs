//! The options of `hakobu bench`: hyperfine's names and meanings, and hakobu's own.

use super::args::{Args, Style};
use super::values::{accepts, is_sorted, list, shell, style, time};
use crate::commands::report::baseline;
use crate::options::{Group, Opt, Table, Takes, flag, push, put, titled, value};
use hakobu_lab::results::hyperfine::ExportFormat;

/// The command line of `bench`.
pub static TABLE: Table<Args> = Table {
    command: "bench",
    about: "Measure commands, or a campaign of commands, side by side",
    usage: "hakobu bench [OPTIONS] CAMPAIGN.toml|NAME\n       \
            hakobu bench [OPTIONS] COMMAND...\n       \
            hakobu bench --list\n       \
            hakobu bench --dump NAME",
    after: "Runs are interleaved: each block runs each command (with each value of its \
            parameters) once, in an order that only the seed determines. Each run is timed \
            including its children while the machine is sampled, and a campaign checks the \
            result. If several commands are compared, one of them runs twice under two names (an \
            A/A control), which shows the noise.\n\
            Results are a folder; each run adds a line to it. The same command with the same \
            --output continues an interrupted one.\n\
            A duration is a number with us, ms, s, m or h. hakobu help bench-guide has the \
            details.\n\
            Exit codes: 0 done; 1 a run or a command after it failed, or something could not be done; 2 usage; 130 \
            stopped by a signal (the measurements so far are kept).",
    options: &[&OPTIONS, &COMMANDS, &CAMPAIGNS, &RESULTS],
    unbuilt: &[UNBUILT],
    abbreviates: false,
};

const DURATIONS: &str = "90s, 10m or 1.5h";

const OPTIONS: &[Opt<Args>] = &[
    value("warmup", Some('w'), "N", "runs of each before those that count")
        .reads(|it, arg| put(&mut it.warmup, Some(arg.number()?))),
    value("runs", Some('r'), "N", "exactly N runs of each")
        .alias(&["repeat"])
        .reads(|it, arg| put(&mut it.runs, Some(arg.positive()?))),
    value("min-runs", Some('m'), "N", "at least N runs of each (of commands: 5)")
        .reads(|it, arg| put(&mut it.min_runs, Some(arg.positive()?))),
    value("max-runs", Some('M'), "N", "at most N runs of each (of commands: 20)")
        .reads(|it, arg| put(&mut it.max_runs, Some(arg.positive()?))),
    value("budget", None, "DUR", "start no run after this time")
        .reads(|it, arg| put(&mut it.budget, Some(arg.duration("h", DURATIONS)?))),
    value("seed", None, "N", "seed of the order of runs")
        .reads(|it, arg| put(&mut it.seed, Some(arg.number()?))),
    value(
        "only",
        None,
        "CELLS",
        "only these: numbers, ranges (3-5) or names, with commas; see --dry-run",
    )
    .reads(|it, arg| put(&mut it.only, Some(arg.text()?.to_owned()))),
    value("timeout", None, "DUR", "end a longer run, which counts as failed")
        .reads(|it, arg| put(&mut it.timeout, Some(arg.duration("h", DURATIONS)?))),
    flag(
        "prove",
        None,
        "then change one thing at a time (half the CPUs, ...): what limits, proven",
    )
    .sets(|it, on| it.prove = on),
    flag("list", None, "list the included campaigns").sets(|it, on| it.list = on),
    flag("dump", None, "write the campaign of this name to standard output, as TOML")
        .sets(|it, on| it.dump = on),
    flag("dry-run", None, "print what would be run, run nothing").sets(|it, on| it.dry_run = on),
    flag("quiet", Some('q'), "no progress, no report").sets(|it, on| it.quiet = on),
    flag("no-color", None, "a report without colours").sets(|it, _| it.style = Style::NO_COLOR),
    value("style", None, "TYPE", "auto, basic, full, nocolor, color, none: colours, progress")
        .reads(style),
    value("sort", None, "METHOD", "the order in tables: auto or command (as given), mean-time")
        .reads(|it, arg| put(&mut it.is_sorted, is_sorted(arg)?)),
    value(
        "time-unit",
        Some('u'),
        "UNIT",
        "microsecond, millisecond or second (default: automatic)",
    )
    .reads(|it, arg| put(&mut it.time, Some(time(arg)?))),
    value("baseline", None, "NAME=VALUE", "compare every setting with this one: jobs=10")
        .reads(|it, arg| put(&mut it.baseline, Some(baseline(arg)?))),
];

pub static COMMANDS: Group<Args> = titled("Commands (as in hyperfine)").with(&[
    value(
        "parameter-list",
        Some('L'),
        "VAR VALUES",
        "run what has {VAR} in it with each of these: -L jobs 1,4,16",
    )
    .takes(Takes::Words(&["VAR", "VALUES"]))
    .reads(|it, arg| push(&mut it.parameters, list(arg)?)),
    value("parameter-scan", Some('P'), "VAR MIN MAX", "the same for all numbers from MIN to MAX")
        .takes(Takes::Words(&["VAR", "MIN", "MAX"]))
        .reads(|it, arg| push(&mut it.scans, arg.clone())),
    value("parameter-step-size", Some('D'), "STEP", "the step of -P (default 1)")
        .reads(|it, arg| put(&mut it.step, Some(arg.clone()))),
    value("command-name", Some('n'), "NAME", "name of a command; once for each")
        .takes(Takes::Values("NAME"))
        .reads(|it, arg| push(&mut it.names, arg.text()?.to_owned())),
    value("setup", Some('s'), "CMD", "a shell command before the first run")
        .reads(|it, arg| put(&mut it.setup, Some(arg.text()?.to_owned()))),
    value("prepare", Some('p'), "CMD", "one before each run; once for all, or once for each")
        .takes(Takes::Values("CMD"))
        .reads(|it, arg| push(&mut it.prepare, arg.text()?.to_owned())),
    value("conclude", Some('C'), "CMD", "one after each run; likewise")
        .takes(Takes::Values("CMD"))
        .reads(|it, arg| push(&mut it.conclude, arg.text()?.to_owned())),
    value("cleanup", Some('c'), "CMD", "one after the last run")
        .reads(|it, arg| put(&mut it.cleanup, Some(arg.text()?.to_owned()))),
    value("shell", Some('S'), "SHELL", "run commands with this shell (default sh; none: without)")
        .reads(|it, arg| put(&mut it.shell, Some(shell(arg)?))),
    flag("no-shell", Some('N'), "the same as --shell=none")
        .sets(|it, _| it.shell = Some(Vec::new())),
    value(
        "ignore-failure",
        Some('i'),
        "CODES",
        "these exit codes (default: all) do not count as failures",
    )
    .takes(Takes::Perhaps("CODES"))
    .reads(|it, arg| put(&mut it.accepts, accepts(arg)?)),
    value("reference", None, "CMD", "the command that others are compared with, run with them")
        .reads(|it, arg| put(&mut it.reference, Some(arg.text()?.to_owned()))),
    value("reference-name", None, "NAME", "its name")
        .reads(|it, arg| put(&mut it.reference_name, Some(arg.text()?.to_owned()))),
    flag("show-output", None, "the same as --output=inherit").sets(|it, on| it.show_output = on),
    value("input", None, "FILE", "what commands read on standard input (default: nothing)")
        .reads(|it, arg| put(&mut it.input, Some(arg.path()))),
    value("cpus", None, "N", "commands may use N CPUs")
        .reads(|it, arg| put(&mut it.cpus, Some(arg.positive::<u32>()? as usize))),
    flag("no-control", None, "no A/A control").sets(|it, on| it.no_control = on),
]);

pub static CAMPAIGNS: Group<Args> = titled("Campaigns").with(&[
    value("scale", None, "X", "multiply the amount of data by X")
        .reads(|it, arg| put(&mut it.scale, Some(arg.number()?))),
    value("place", None, "NAME=PATH", "another path or s3:// URL for a place of the campaign")
        .takes(Takes::Values("NAME=PATH"))
        .reads(|it, arg| {
            let place = arg.text()?.split_once('=');
            let (name, place) = place.ok_or_else(|| arg.wrong("is not NAME=PATH"))?;
            it.places.insert(name.to_owned(), place.to_owned());
            Ok(())
        }),
    value("work", None, "DIR", "where targets are (default: below ~/.cache/hakobu)")
        .reads(|it, arg| put(&mut it.work, Some(arg.path()))),
    value("cache", None, "DIR", "where data sets are kept (default: below ~/.cache/hakobu)")
        .reads(|it, arg| put(&mut it.cache, Some(arg.path()))),
]);

static RESULTS: Group<Args> = titled("Results").with(&[
    value(
        "results",
        Some('o'),
        "DIR",
        "the folder of results (default: a new one below ~/.local/state/hakobu)",
    )
    .reads(|it, arg| put(&mut it.results, Some(arg.path()))),
    value(
        "output",
        None,
        "WHERE",
        "where commands write: pipe (default), null, inherit, FILE; of a campaign: --results",
    )
    .takes(Takes::Values("WHERE"))
    .reads(|it, arg| push(&mut it.outputs, arg.clone())),
    value("machine", None, "NAME", "name of this machine in comparisons")
        .reads(|it, arg| put(&mut it.machine, Some(arg.text()?.to_owned()))),
    value("export-json", None, "FILE", "what hyperfine would write (-: standard output)")
        .reads(|it, arg| push(&mut it.exports, (ExportFormat::Json, arg.path()))),
    value("export-csv", None, "FILE", "the same as CSV")
        .reads(|it, arg| push(&mut it.exports, (ExportFormat::Csv, arg.path()))),
    value("export-markdown", None, "FILE", "the same as a table in Markdown")
        .reads(|it, arg| push(&mut it.exports, (ExportFormat::Markdown, arg.path()))),
    value("export-asciidoc", None, "FILE", "the same as a table in AsciiDoc")
        .reads(|it, arg| push(&mut it.exports, (ExportFormat::Asciidoc, arg.path()))),
    value("export-orgmode", None, "FILE", "the same as a table for Emacs Org mode")
        .reads(|it, arg| push(&mut it.exports, (ExportFormat::Orgmode, arg.path()))),
]);

const UNBUILT: &[(&str, &str)] = &[
    ("-V --version", "hakobu --version prints it"),
    ("-h", "hakobu bench --help prints the options"),
    ("--min-benchmarking-time", "--min-runs and --budget say how much is measured"),
    ("--debug-mode", "hakobu bench --dry-run prints what would be run"),
];
