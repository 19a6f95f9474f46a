//! Options of `bench`, their values, and what a command line makes of them.

use super::plans::{BUILTINS, Builtin, find_builtin, list_builtins};
use crate::cli::{Group, Opt, OptArg, Table, Takes, Typed, flag, parts, push, put, titled, value};
use crate::commands::bench::terminal_look;
use crate::commands::report::baseline;
use crate::commands::run::lines;
use hakobu_lab::analysis::ranking::Baseline;
use hakobu_lab::campaign::{ExitCodes, OutputSink, RepeatRules};
use hakobu_lab::report::terminal::TerminalOptions;
use hakobu_lab::results::hyperfine::{ExportFormat, ExportOptions, TimeUnit};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The command line of `bench`.
pub static TABLE: Table<BenchArgs> = Table {
    command: "bench",
    about: "Measure commands, or a campaign of commands, side by side",
    description: "Runs are interleaved: each block runs each command, with each value of its \
            parameters, once, in an order that only the seed determines. The machine is \
            sampled during each run. One command also runs under a second name (an A/A \
            control), which shows the noise.",
    usage: "hakobu bench [OPTIONS] CAMPAIGN.toml|NAME\n       \
            hakobu bench [OPTIONS] COMMAND...\n       \
            hakobu bench --list\n       \
            hakobu bench --dump NAME",
    examples: &[
        (
            "hakobu bench -r 3 --prepare 'rm -rf dst' 'cp -a src dst' 'hakobu cp -a src dst'",
            "Compare two commands.",
        ),
        (
            "hakobu bench -r 3 -L jobs 1,4 'hakobu du -j {jobs} src'",
            "Compare the values of a parameter.",
        ),
        ("hakobu bench --list", "List the included campaigns."),
    ],
    common: &[
        "runs",
        "warmup",
        "prepare",
        "parameter-list",
        "shell",
        "budget",
        "timeout",
        "results",
        "export-markdown",
        "baseline",
        "list",
    ],
    after: "Results are a directory; each run adds a line to it. The same command with the \
            same --results continues an interrupted one.\n\
            A duration is a number with us, ms, s, m or h. hakobu help bench-guide has the \
            details.\n\
            Exit codes: 0 done; 1 a run or a command after it failed, or something could not \
            be done; 2 usage; 130 stopped by a signal (the measurements so far are kept).",
    options: &[&OPTIONS, &COMMANDS, &CAMPAIGNS, &RESULTS],
    unbuilt: &[UNBUILT],
    abbreviates: false,
};

const DURATIONS: &str = "90s, 10m or 1.5h";

const OPTIONS: &[Opt<BenchArgs>] = &[
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
        "then prove the bottleneck: change one thing at a time (half the CPUs, ...)",
    )
    .sets(|it, on| it.prove = on),
    flag("list", None, "list the included campaigns").sets(|it, on| it.list = on),
    flag("dump", None, "write the campaign of this name to standard output, as TOML")
        .sets(|it, on| it.dump = on),
    flag("dry-run", None, "print what would be run, run nothing").sets(|it, on| it.dry_run = on),
    flag("quiet", Some('q'), "no progress, no report").sets(|it, on| it.quiet = on),
    flag("no-color", None, "a report without colours").sets(|it, _| it.style = Style::NO_COLOR),
    value("style", None, "TYPE", "auto, basic, full, nocolor, color, none: colours, progress")
        .words(&["auto", "basic", "full", "nocolor", "color", "none"])
        .reads(set_style),
    value("sort", None, "METHOD", "the order in tables: auto or command (as given), mean-time")
        .words(&["auto", "command", "mean-time"])
        .reads(|it, arg| put(&mut it.is_sorted, is_sorted(arg)?)),
    value(
        "time-unit",
        Some('u'),
        "UNIT",
        "microsecond, millisecond or second (default: automatic)",
    )
    .words(&["microsecond", "millisecond", "second"])
    .reads(|it, arg| put(&mut it.time, Some(time_unit(arg)?))),
    value("baseline", None, "TOOL", "compare with this tool, or NAME=VALUE, such as jobs=10")
        .reads(|it, arg| put(&mut it.baseline, Some(baseline(arg)?))),
];

pub static COMMANDS: Group<BenchArgs> = titled("Commands (as in hyperfine)").with(&[
    value(
        "parameter-list",
        Some('L'),
        "VAR VALUES",
        "run what has {VAR} in it with each of these: -L jobs 1,4,16",
    )
    .takes(Takes::Words(&["VAR", "VALUES"]))
    .reads(|it, arg| push(&mut it.parameters, parameter_list(arg)?)),
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
        .reads(|it, arg| put(&mut it.shell, Some(shell_words(arg)?))),
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

pub static CAMPAIGNS: Group<BenchArgs> = titled("Campaigns").with(&[
    value("scale", None, "X", "multiply the amount of data by X")
        .reads(|it, arg| put(&mut it.scale, Some(arg.number()?))),
    value("place", None, "NAME=PATH", "another path or s3:// URL for a place of the campaign")
        .takes(Takes::Values("NAME=PATH"))
        .reads(|it, arg| {
            let place = arg.text()?.split_once('=');
            let (name, place) = place.ok_or_else(|| arg.refuse("not NAME=PATH"))?;
            it.places.insert(name.to_owned(), place.to_owned());
            Ok(())
        }),
    value("work", None, "DIR", "where targets are (default: below ~/.cache/hakobu)")
        .reads(|it, arg| put(&mut it.work, Some(arg.path()))),
    value("cache", None, "DIR", "where data sets are kept (default: below ~/.cache/hakobu)")
        .reads(|it, arg| put(&mut it.cache, Some(arg.path()))),
]);

static RESULTS: Group<BenchArgs> = titled("Results").with(&[
    value(
        "results",
        Some('o'),
        "DIR",
        "the directory of results (default: a new one below ~/.local/state/hakobu)",
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
    ("--min-benchmarking-time", "--min-runs and --budget say how much is measured"),
    ("--debug-mode", "hakobu bench --dry-run prints what would be run"),
];

/// The task of a `bench` command line.
#[derive(Debug, PartialEq)]
pub enum Task {
    /// Measure these commands.
    Commands(Vec<String>),
    /// Run a campaign.
    Campaign(Source),
    /// Print this text.
    Print(String),
}

impl Default for Task {
    fn default() -> Task {
        Task::Commands(Vec::new())
    }
}

/// Source of a campaign.
#[derive(Debug, PartialEq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// A campaign included in this program.
    Builtin(&'static Builtin),
}

/// All options of `bench`.
#[derive(Debug, Default)]
pub struct BenchArgs {
    pub task: Task,
    pub list: bool,
    pub dump: bool,
    pub warmup: Option<u32>,
    pub runs: Option<u32>,
    pub min_runs: Option<u32>,
    pub max_runs: Option<u32>,
    pub budget: Option<Duration>,
    pub seed: Option<u64>,
    pub only: Option<String>,
    pub timeout: Option<Duration>,
    pub prove: bool,
    pub dry_run: bool,
    pub quiet: bool,
    pub style: Style,
    /// Tables are sorted by time, not as given.
    pub is_sorted: bool,
    pub time: Option<TimeUnit>,
    pub baseline: Option<Baseline>,
    pub parameters: Vec<Parameter>,
    /// `-P`, which become parameters when the step for all of them is known.
    pub scans: Vec<OptArg>,
    /// `-D`.
    pub step: Option<OptArg>,
    pub names: Vec<String>,
    pub setup: Option<String>,
    pub prepare: Vec<String>,
    pub conclude: Vec<String>,
    pub cleanup: Option<String>,
    /// The words of the shell; empty: run without one; none given: sh.
    pub shell: Option<Vec<String>>,
    pub accepts: ExitCodes,
    /// `--output`, which for a campaign is an alias of `--results`.
    pub outputs: Vec<OptArg>,
    /// Targets of commands' output: one for all, or one for each; none: pipes.
    pub sinks: Vec<OutputSink>,
    pub show_output: bool,
    pub reference: Option<String>,
    pub reference_name: Option<String>,
    pub input: Option<PathBuf>,
    pub cpus: Option<usize>,
    pub no_control: bool,
    pub scale: Option<f64>,
    pub places: BTreeMap<String, String>,
    pub work: Option<PathBuf>,
    pub cache: Option<PathBuf>,
    /// The folder of results.
    pub results: Option<PathBuf>,
    pub machine: Option<String>,
    /// Additional exports: formats and files.
    pub exports: Vec<(ExportFormat, PathBuf)>,
}

parts!(BenchArgs {});

impl BenchArgs {
    /// Returns the appearance of the report.
    pub fn look(&self) -> TerminalOptions {
        let look = terminal_look(false);
        let color = self.style.color.unwrap_or(look.color);
        TerminalOptions { color, time: self.time, is_sorted: self.is_sorted, ..look }
    }

    /// Returns the appearance of exported tables.
    pub fn table_look(&self) -> ExportOptions {
        ExportOptions {
            time: self.time,
            is_sorted: self.is_sorted,
            to_first: self.reference.is_some(),
        }
    }

    /// Overrides the plan's numbers of repetitions.
    pub fn apply(&self, repeat: &mut RepeatRules) -> Result<(), String> {
        repeat.warmup = self.warmup.unwrap_or(repeat.warmup);
        repeat.seed = self.seed.unwrap_or(repeat.seed);
        repeat.budget = self.budget.or(repeat.budget);
        if let Some(runs) = self.runs {
            (repeat.min, repeat.max) = (runs, runs);
        }
        match (self.min_runs, self.max_runs) {
            (Some(min), Some(max)) if min > max => {
                return Err(format!("--min-runs={min} is more than --max-runs={max}"));
            }
            (min, max) => {
                repeat.min = min.unwrap_or(repeat.min).min(max.unwrap_or(u32::MAX));
                repeat.max = max.unwrap_or(repeat.max).max(repeat.min);
            }
        }
        Ok(())
    }
}

/// A parameter and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: String,
    pub values: Vec<String>,
}

impl Parameter {
    /// Returns whether a text contains it.
    pub fn stands_in(&self, text: &str) -> bool {
        text.contains(&format!("{{{}}}", self.name))
    }
}

/// Output style of the terminal; `None`: as the terminal allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Colours.
    pub color: Option<bool>,
    /// A progress line.
    pub progress: Option<bool>,
}

impl Style {
    /// A progress line only.
    pub const NO_COLOR: Style = Style { color: Some(false), progress: Some(true) };
}

/// Parses the target of commands' output.
pub fn sink(arg: &OptArg) -> Result<OutputSink, String> {
    Ok(match arg.text()? {
        "null" => OutputSink::Null,
        "pipe" => OutputSink::Pipe,
        "inherit" => OutputSink::Inherit,
        path if Path::new(path).is_dir() => {
            return Err(arg.refuse("a directory; -o (--results) names the directory of results"));
        }
        path => OutputSink::File(
            std::path::absolute(path).map_err(|error| arg.refuse(&format!("{error}")))?,
        ),
    })
}

/// Parses `--ignore-failure` with its optional exit codes.
pub fn accepts(arg: &OptArg) -> Result<ExitCodes, String> {
    match arg.text()? {
        "" | "all-non-zero" => Ok(ExitCodes::Any),
        codes => {
            let codes = codes.split(',').map(|code| code.trim().parse::<u8>().map(i32::from));
            let codes: Result<Vec<i32>, _> = codes.collect();
            codes
                .map(ExitCodes::Codes)
                .map_err(|_| arg.refuse("give exit codes from 0 to 255 with commas between them"))
        }
    }
}

/// Sets `--style`; `none` is `--quiet`.
pub fn set_style(it: &mut BenchArgs, arg: &OptArg) -> Result<(), String> {
    let always = |color, progress| Style { color: Some(color), progress: Some(progress) };
    it.style = match arg.text()? {
        "auto" => Style::default(),
        "basic" => always(false, false),
        "full" => always(true, true),
        "nocolor" => Style::NO_COLOR,
        "color" => always(true, false),
        "none" => {
            it.quiet = true;
            Style::default()
        }
        _ => return Err(arg.refuse("give auto, basic, full, nocolor, color or none")),
    };
    Ok(())
}

/// Parses `--sort`: returns whether tables are sorted by time.
pub fn is_sorted(arg: &OptArg) -> Result<bool, String> {
    match arg.text()? {
        "auto" | "command" => Ok(false),
        "mean-time" => Ok(true),
        _ => Err(arg.refuse("give auto, command or mean-time")),
    }
}

/// Parses `--time-unit`.
pub fn time_unit(arg: &OptArg) -> Result<TimeUnit, String> {
    TimeUnit::of_name(arg.text()?)
        .ok_or_else(|| arg.refuse("give microsecond, millisecond or second"))
}

pub fn parameter_list(arg: &OptArg) -> Result<Parameter, String> {
    let (name, values) = arg.text()?.split_once('=').unwrap_or_default();
    Ok(Parameter { name: named(arg, name)?, values: separated(values) })
}

/// Splits at commas; `\,` is a comma and `\\` a backslash, as in hyperfine.
fn separated(text: &str) -> Vec<String> {
    let (mut all, mut chars) = (vec![String::new()], text.chars().peekable());
    while let Some(c) = chars.next() {
        let escaped = chars.next_if(|next| c == '\\' && matches!(next, ',' | '\\'));
        match (escaped, all.last_mut()) {
            (None, _) if c == ',' => all.push(String::new()),
            (escaped, Some(last)) => last.push(escaped.unwrap_or(c)),
            (_, None) => {}
        }
    }
    all
}

/// Parses a range of numbers.
pub fn parameter_scan(arg: &OptArg, step: Option<&OptArg>) -> Result<Parameter, String> {
    let read = |arg: &OptArg, text: &str| {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| arg.refuse(&format!("'{text}' is not a number")))
    };
    let words: Vec<&str> = arg.text()?.splitn(3, '=').collect();
    let [name, min, max] = words[..] else { return Err(arg.refuse("needs VAR MIN MAX")) };
    let digits = |text: &str| text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let mut most_digits = digits(min).max(digits(max));
    let (min, max) = (read(arg, min)?, read(arg, max)?);
    let mut by = 1.0;
    if let Some(step) = step {
        by = read(step, step.text()?)?;
        most_digits = most_digits.max(digits(step.text()?));
    }
    if by <= 0.0 || min > max || (max - min) / by > 10_000.0 {
        return Err(arg.refuse("not a range with a step that leads from MIN to MAX"));
    }
    // With slack for steps that have no exact binary form.
    let count = ((max - min) / by + 1e-9).floor() as u32;
    let values = (0..=count).map(|n| format!("{:.most_digits$}", min + f64::from(n) * by));
    Ok(Parameter { name: named(arg, name)?, values: values.collect() })
}

fn named(arg: &OptArg, name: &str) -> Result<String, String> {
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    is_name.then(|| name.to_owned()).ok_or_else(|| arg.refuse("VAR is not a name"))
}

/// Parses `--shell`: words are split as in a shell.
pub fn shell_words(arg: &OptArg) -> Result<Vec<String>, String> {
    match arg.text()? {
        "none" => Ok(Vec::new()),
        "default" => Ok(vec!["sh".into()]),
        text => {
            let words = lines::words(text.as_bytes()).map_err(|why| arg.refuse(why))?;
            // Parts of valid UTF-8, unless an escape has made something else of them.
            let words = words.into_iter().map(OsString::into_string).collect::<Result<Vec<_>, _>>();
            let words = words.map_err(|_| arg.refuse("not valid UTF-8"))?;
            match words.first() {
                Some(first) if !first.is_empty() => Ok(words),
                _ => Err(arg.refuse("not a shell")),
            }
        }
    }
}

/// Parses a command line.
pub fn parse_args(typed: &Typed) -> Result<BenchArgs, String> {
    let mut args = TABLE.read(typed, BenchArgs::default())?;
    args.task = parse_task(typed, args.list, args.dump)?;
    for arg in &typed.options {
        match args.task {
            Task::Campaign(_) if COMMANDS.has(arg) => {
                return Err(format!("--{} goes with commands, not with a campaign", arg.name));
            }
            Task::Commands(_) if CAMPAIGNS.has(arg) => {
                return Err(format!("--{} goes with a campaign, not with commands", arg.name));
            }
            _ => {}
        }
    }
    let (step, scans) = (args.step.take(), std::mem::take(&mut args.scans));
    if let (Some(step), true) = (&step, scans.is_empty()) {
        return Err(step.refuse("there is no --parameter-scan that it could belong to"));
    }
    for arg in &scans {
        args.parameters.push(parameter_scan(arg, step.as_ref())?);
    }
    args.settle_outputs()?;
    args.settle_reference()?;
    let mut names: Vec<&str> = args.parameters.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("the parameter '{}' is given twice", pair[0]));
    }
    if args.runs.is_some() && (args.min_runs.is_some() || args.max_runs.is_some()) {
        return Err(
            "--runs says how many there are: it does not go with --min-runs or --max-runs".into()
        );
    }
    Ok(args)
}

fn parse_task(typed: &Typed, list: bool, dump: bool) -> Result<Task, String> {
    if list {
        return match typed.paths.is_empty() {
            true => list_builtins().map(Task::Print),
            false => Err("--list goes alone".to_owned()),
        };
    }
    if let [one] = &typed.paths[..] {
        let builtin = one.to_str().and_then(find_builtin);
        if let Some(builtin) = builtin {
            return Ok(match dump {
                true => Task::Print(builtin.text.to_owned()),
                false => Task::Campaign(Source::Builtin(builtin)),
            });
        }
        if dump {
            let names: Vec<&str> = BUILTINS.iter().map(|campaign| campaign.name).collect();
            let one = one.display();
            return Err(format!("there is no campaign '{one}' (there are {})", names.join(", ")));
        }
        if PathBuf::from(one).extension().is_some_and(|end| end == "toml") {
            return Ok(Task::Campaign(Source::File(one.into())));
        }
    }
    if dump {
        return Err("--dump needs one campaign by its name; --list shows them".to_owned());
    }
    let mut commands = Vec::new();
    for path in &typed.paths {
        let command =
            path.to_str().ok_or_else(|| format!("'{}' is not valid UTF-8", path.display()))?;
        if command.trim().is_empty() {
            return Err("a command is empty".into());
        }
        if command.ends_with(".toml") && !command.contains(' ') {
            return Err(format!("give one campaign: '{command}' is not the only argument"));
        }
        commands.push(command.to_owned());
    }
    if commands.is_empty() {
        return Err(
            "missing command or campaign (a file that ends in .toml, or a name of --list)".into()
        );
    }
    Ok(Task::Commands(commands))
}

impl BenchArgs {
    /// Resolves `--output`: the folder of results of a campaign, or the destination of commands' output.
    fn settle_outputs(&mut self) -> Result<(), String> {
        let outputs = std::mem::take(&mut self.outputs);
        if let Task::Campaign(_) = self.task {
            if let Some(last) = outputs.last() {
                self.results = Some(last.path());
            }
            return Ok(());
        }
        if self.show_output && !outputs.is_empty() {
            return Err("--show-output is --output=inherit: give one of them".to_owned());
        }
        if self.show_output {
            self.sinks.push(OutputSink::Inherit);
        }
        for arg in &outputs {
            self.sinks.push(sink(arg)?);
        }
        Ok(())
    }

    /// Puts the reference command first.
    fn settle_reference(&mut self) -> Result<(), String> {
        let name = self.reference_name.take();
        let Some(reference) = self.reference.clone() else {
            return match name {
                Some(_) => Err("--reference-name needs --reference".to_owned()),
                None => Ok(()),
            };
        };
        if reference.trim().is_empty() {
            return Err("--reference: a command is empty".to_owned());
        }
        if name.is_some() || !self.names.is_empty() {
            self.names.insert(0, name.unwrap_or_else(|| reference.clone()));
        }
        if let Task::Commands(commands) = &mut self.task {
            commands.insert(0, reference);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn read(line: &[&str]) -> Result<BenchArgs, String> {
        let arguments: Vec<OsString> = line.iter().map(OsString::from).collect();
        parse_args(&TABLE.parse(&arguments).map_err(|refused| format!("{refused:?}"))?)
    }

    #[test]
    fn usage() {
        for (line, said) in [
            ("", "missing command or campaign"),
            ("a.toml|b", "give one campaign: 'a.toml' is not the only argument"),
            ("a| ", "a command is empty"),
            ("a.toml|-n|x", "--command-name goes with commands"),
            ("a|--scale=2", "--scale goes with a campaign"),
            ("a|-r|0", "invalid --runs '0': must be at least 1"),
            ("a|-r|3|-m|2", "does not go with --min-runs"),
            ("a|-w|x", "invalid --warmup 'x': not a number"),
            ("a|--budget=7", "invalid --budget '7': not a duration"),
            ("a|-L|x y|1", "VAR is not a name"),
            ("a|-L|x|1|-P|x|1|2", "the parameter 'x' is given twice"),
            ("a|-P|x|3|2", "not a range"),
            ("a|-P|x|1|2|-D|0", "not a range"),
            ("a|-D|2", "there is no --parameter-scan"),
            ("a.toml|--place|x", "invalid --place 'x': not NAME=PATH"),
        ] {
            let words: Vec<&str> = line.split('|').filter(|word| !word.is_empty()).collect();
            let message = read(&words).err().unwrap_or_default();
            assert!(message.contains(said), "{line}: {message}");
        }
    }

    #[test]
    fn parameters() {
        let values = |line: &[&str]| -> Vec<String> {
            read(line).unwrap().parameters.into_iter().flat_map(|one| one.values).collect()
        };
        assert_eq!(values(&["-L", "jobs", "1,4,16", "a"]), ["1", "4", "16"]);
        assert_eq!(values(&["-L", "x", r"a\,b,c\\d,\e,", "a"]), ["a,b", r"c\d", r"\e", ""]);
        assert_eq!(values(&["-P", "n", "-1", "2", "a"]), ["-1", "0", "1", "2"]);
        let steps = values(&["-P", "n", "0", "0.3", "-D", "0.1", "a"]);
        assert_eq!(steps, ["0.0", "0.1", "0.2", "0.3"]);
    }

    #[test]
    fn how_often() {
        let apply = |line: &[&str]| {
            let mut repeat = super::super::plans::REPEAT;
            read(line)?.apply(&mut repeat)?;
            Ok::<_, String>((repeat.warmup, repeat.min, repeat.max))
        };
        assert_eq!(apply(&["a"]), Ok((0, 5, 20)));
        assert_eq!(apply(&["a", "-w", "2", "--repeat", "3"]), Ok((2, 3, 3)));
        assert_eq!(apply(&["a", "-m", "30"]), Ok((0, 30, 30)));
        assert_eq!(apply(&["a", "-M", "2"]), Ok((0, 2, 2)));
        assert_eq!(apply(&["a", "-m", "3", "-M", "9"]), Ok((0, 3, 9)));
        assert!(apply(&["a", "-m", "4", "-M", "2"]).unwrap_err().contains("more than --max-runs"));
    }
}
