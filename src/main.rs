//! hakobu: a parallel rsync for local file systems, other machines and S3.
//!
//! The program: parses the command line, passes a description of the work to the library `hakobu_transfer`, displays
//! its events and ends with an exit code. Every command is one file or folder in `commands`; here
//! are options before the command, the list of commands and the lookup by name.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "the program is who prints")]
#![cfg_attr(
    not(all(feature = "lab", feature = "io", feature = "serve")),
    allow(dead_code, unused_imports, reason = "options and output have parts for them")
)]

mod backups;
mod cli;
mod commands;
mod environment;
mod exit;
mod files;
mod filters;
mod input;
mod limits;
mod names;
mod number;
mod objects;
mod overview;
mod owner;
mod show;
mod stopped;
mod textfile;

use cli::{Block, Part, Row, Syntax, Takes, flag, value};
#[cfg(all(feature = "lab", feature = "serve"))]
use commands::demo;
#[cfg(feature = "io")]
use commands::io;
#[cfg(feature = "serve")]
use commands::serve;
use commands::{
    agent, bucket_version, buckets, cat, cluster, completions, cp, du, head, ls, manual, mpu, mv,
    pipe, presign, rm, run, sync, topics, verify,
};
#[cfg(feature = "lab")]
use commands::{bench, compare, report, results, watch};
use hakobu_core::language::Language;
use objects::ObjectArgs;
use show::output;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

/// The allocator of static programs: musl's maps and unmaps memory for each large block.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    hakobu_sys::process::see_children();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (command, code) = run_line(arguments);
    // The one place where every command is asked whether all that it printed arrived.
    match output::lost() {
        None => code,
        Some(error) => {
            let cause = hakobu_core::error::Cause::System(error);
            output::message(&format!("cannot write standard output: {cause}"));
            if code == ExitCode::SUCCESS { exit::of_lost_output(&command).into() } else { code }
        }
    }
}

/// Runs a command line; returns the command's name and the exit code.
fn run_line(arguments: Vec<OsString>) -> (String, ExitCode) {
    let parsed = parse_globals(arguments);
    let name = match &parsed {
        Ok(Some(line)) => line.command.to_string_lossy().into_owned(),
        _ => String::new(),
    };
    let code = match parsed {
        Ok(None) => {
            match std::io::stderr().is_terminal() {
                true => output::error_text(&overview::screen()),
                false => output::message("missing command\nhint: hakobu --help lists the commands"),
            }
            exit::USAGE.into()
        }
        Ok(Some(line)) => match (&*line.command.to_string_lossy(), line.arguments.first()) {
            ("--version" | "-V" | "version", _) => version(),
            ("--help" | "-h" | "help", None) => {
                output::text(&overview::screen());
                exit::OK.into()
            }
            ("--help" | "-h" | "help", Some(topic)) => help(topic, line.arguments.get(1)),
            _ => run_command(line),
        },
        Err(message) => {
            output::message(&message);
            exit::USAGE.into()
        }
    };
    (name, code)
}

// Options before the command, as in aws and s5cmd: they become options of the command.

/// Global options that are not options of a store.
const OWN: &[Row] = &[
    flag("json", None, "JSON lines on standard output"),
    flag("dry-run", None, "change nothing").alias(&["dryrun"]),
    flag("stat", None, "counts of requests at the end"),
    value("jobs", Some('j'), "N", "how many at once").alias(&["numworkers"]),
];

/// Options that are dropped if the command does not have them: they do not change its effect.
const DISPENSABLE: &[&str] = &["stat", "jobs", "log", "color", "output", "query", "no-paginate"];

/// A command line without options before the command.
#[derive(Debug, PartialEq, Eq)]
struct CommandLine {
    /// The command.
    command: OsString,
    /// Arguments after it.
    arguments: Vec<OsString>,
    /// Dropped options.
    dropped: Vec<&'static str>,
}

/// Moves options before the command behind it. Returns `None` if there is no command.
///
/// # Errors
/// An unknown option, a missing value, or an option that the command does not have.
fn parse_globals(arguments: Vec<OsString>) -> Result<Option<CommandLine>, String> {
    let mut words = arguments.into_iter();
    let mut args: Vec<(&'static Row, OsString)> = Vec::new();
    let command = loop {
        let Some(word) = words.next() else { return Ok(None) };
        // Help and version, which `main` answers, end the options as a command does.
        let is_word = !word.as_bytes().starts_with(b"-");
        if is_word || matches!(word.as_bytes(), b"--help" | b"-h" | b"--version" | b"-V") {
            break word;
        }
        args.push(option(&word, &mut words)?);
    };
    let rest: Vec<OsString> = words.collect();
    let mut line = CommandLine { command, arguments: Vec::new(), dropped: Vec::new() };
    // An unknown command is reported by its own lookup.
    let Some(of) = find(&line.command.to_string_lossy()) else {
        return Ok(Some(CommandLine { arguments: rest, ..line }));
    };
    let stored = rest.iter().any(objects::is_s3) || matches!(of.name, "run" | "ls");
    for (row, spelled) in args {
        if is_stores(row) && !stored {
            continue;
        }
        match of.has(row.name) {
            true => line.arguments.push(spelled),
            false if is_stores(row) || DISPENSABLE.contains(&row.name) => {
                line.dropped.push(row.name)
            }
            false => return Err(format!("hakobu {} has no option --{}", of.name, row.name)),
        }
    }
    line.arguments.extend(rest);
    Ok(Some(line))
}

fn rows() -> impl Iterator<Item = &'static Row> {
    let stores = Block::<ObjectArgs>::rows(&objects::COMMON);
    stores.into_iter().map(|(_, row)| row).chain(OWN)
}

fn is_stores(row: &Row) -> bool {
    Block::<ObjectArgs>::rows(&objects::STORE).iter().any(|(_, other)| other.name == row.name)
}

/// Returns one option, and the word for the command that replaces it.
fn option(
    word: &OsStr,
    words: &mut impl Iterator<Item = OsString>,
) -> Result<(&'static Row, OsString), String> {
    let text = word.to_string_lossy();
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(OsString::from(value))),
        None => (&*text, None),
    };
    let is_it = |row: &&Row| match name.strip_prefix("--") {
        Some(long) => row.name == long || row.aliases.contains(&long),
        // s5cmd's -r.
        None if name == "-r" => row.name == "retry-count",
        None => row.short.is_some_and(|short| name == format!("-{short}")),
    };
    let row = rows().find(is_it).ok_or_else(|| {
        format!(
            "option '{name}' must follow a command\n\
             hint: hakobu COMMAND --help lists the options of a command"
        )
    })?;
    let mut spelled = OsString::from(format!("--{}", row.name));
    let value = match (row.takes, value) {
        (Takes::Nothing, Some(_)) => return Err(format!("{name} takes no value")),
        (Takes::Nothing, None) => None,
        (_, Some(value)) => Some(value),
        (_, None) => Some(words.next().ok_or_else(|| format!("{name} needs a value"))?),
    };
    if let Some(value) = value {
        spelled.push("=");
        spelled.push(value);
    }
    Ok((row, spelled))
}

// The commands: their list, the lookup by name, and help.

/// One command of the program.
pub struct Command {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line of description.
    pub about: &'static str,
    /// Runs it with the arguments after its name.
    pub run: fn(Vec<OsString>) -> ExitCode,
    /// Its options.
    pub table: &'static dyn Syntax,
    /// Returns the words that its first operand can be, if those are fixed.
    pub parts: fn() -> Vec<Part>,
}

impl Command {
    /// Adds words for the first operand.
    const fn parts(self, parts: fn() -> Vec<Part>) -> Command {
        Command { parts, ..self }
    }

    /// Returns whether it has an option of this internal name.
    pub fn has(&self, option: &str) -> bool {
        self.table.clap().get_arguments().any(|argument| argument.get_id() == option)
    }

    /// Returns the spellings of its options whose value may be the next word.
    pub fn spellings_before_values(&self) -> Vec<String> {
        let clap = self.table.clap();
        let takes = clap.get_arguments().filter(|argument| {
            argument.get_action().takes_values() && !argument.is_require_equals_set()
        });
        takes
            .flat_map(|argument| {
                let long = argument.get_long().into_iter().map(|long| format!("--{long}"));
                let aliases = argument.get_all_aliases().unwrap_or_default();
                let aliases = aliases.into_iter().map(|alias| format!("--{alias}"));
                let short = argument.get_short().map(|short| format!("-{short}"));
                long.chain(aliases).chain(short).collect::<Vec<_>>()
            })
            .collect()
    }
}

const fn row(
    name: &'static str,
    about: &'static str,
    run: fn(Vec<OsString>) -> ExitCode,
    table: &'static dyn Syntax,
) -> Command {
    Command { name, about, run, table, parts: Vec::new }
}

/// All of them, in the order of the manual. The first screen is in `overview`.
pub const COMMANDS: &[Command] = &[
    row("sync", "copy what is new, with rsync's options", sync::run, &sync::TABLE),
    row("cp", "copy, with cp's options", cp::run, &cp::TABLE),
    row("mv", "rename or move, with mv's options", mv::run, &mv::TABLE),
    row("verify", "compare two trees", verify::run, &verify::TABLE),
    row("rm", "remove files and trees, with rm's options", rm::run, &rm::TABLE),
    row("ls", "list buckets and objects", ls::run, &ls::TABLE),
    row("du", "report disk usage, with du's options", du::run, &du::TABLE),
    row("cat", "write objects to standard output", cat::run, &cat::TABLE),
    row("pipe", "upload standard input to an object", pipe::run, &pipe::TABLE),
    row("head", "show headers of objects, existence of buckets", head::run, &head::TABLE),
    row("stat", "the same as head", head::run, &head::TABLE),
    row("mb", "create buckets", buckets::make, &buckets::MB),
    row("rb", "remove buckets", buckets::remove, &buckets::RB),
    row(
        "bucket-version",
        "show or set whether buckets keep versions of their objects",
        bucket_version::run,
        &bucket_version::TABLE,
    ),
    row("presign", "create URLs that give read access to an object", presign::run, &presign::TABLE),
    row("mpu", "list or abort unfinished multipart uploads", mpu::run, &mpu::TABLE)
        .parts(|| mpu::PARTS.to_vec()),
    row("run", "run commands of a file in parallel, one per line", run::run, &run::TABLE),
    row("agent", "be the other end of a transfer over ssh", agent::run, &agent::TABLE),
    row("cluster", "spread one transfer over many machines", cluster::run, &cluster::TABLE)
        .parts(|| cluster::PARTS.to_vec()),
    #[cfg(feature = "lab")]
    row("watch", "run a command and report what limited it", watch::run, &watch::TABLE),
    #[cfg(feature = "lab")]
    row(
        "bench",
        "measure commands, or a campaign of them, side by side",
        bench::run,
        &bench::TABLE,
    ),
    #[cfg(feature = "io")]
    row("io", "measure disks, with fio's options and job files", io::run, &io::TABLE),
    #[cfg(feature = "lab")]
    row("results", "list, show, remove and export results of bench", results::run, &results::TABLE)
        .parts(|| results::PARTS.to_vec()),
    #[cfg(feature = "lab")]
    row("report", "make a page from results", report::run, &report::TABLE),
    #[cfg(feature = "lab")]
    row(
        "compare",
        "compare results of several machines, with prices",
        compare::run,
        &compare::TABLE,
    ),
    #[cfg(all(feature = "lab", feature = "serve"))]
    row("demo", "upload, download and verify generated files", demo::run, &demo::TABLE),
    #[cfg(feature = "serve")]
    row("serve", "serve S3 for tests and measurements", serve::run, &serve::TABLE)
        .parts(|| serve::PARTS.to_vec()),
    row("man", "print or install manual pages", manual::man, &manual::MAN).parts(manual::parts),
    row("completions", "print or install shell completions", completions::run, &completions::TABLE)
        .parts(|| completions::PARTS.to_vec()),
];

fn version() -> ExitCode {
    output::text(&format!("hakobu {}\n", env!("CARGO_PKG_VERSION")));
    exit::OK.into()
}

/// Runs the command of a command line.
fn run_command(line: CommandLine) -> ExitCode {
    let name = line.command.to_string_lossy();
    let Some(command) = find(&name) else { return unknown(&name) };
    if line.arguments.iter().eq(["--version"]) {
        return version();
    }
    if !line.dropped.is_empty() {
        let dropped = line.dropped.join(", --");
        output::message(&format!(
            "note: without effect here: --{dropped} (hakobu {name} has none)"
        ));
    }
    match language() {
        Ok(Some(code)) => (command.run)(with_language(command, line.arguments, code)),
        Ok(None) => (command.run)(line.arguments),
        Err(message) => {
            output::message(&message);
            exit::USAGE.into()
        }
    }
}

/// Variable with the language of bottlenecks and reports, where `--lang` does not name one.
const LANGUAGE: &str = "HAKOBU_LANG";

/// Returns the code of the language that the environment names.
///
/// # Errors
/// It is none that is known.
fn language() -> Result<Option<&'static str>, String> {
    let Some(named) = std::env::var_os(LANGUAGE).filter(|named| !named.is_empty()) else {
        return Ok(None);
    };
    let code = named.to_str().and_then(Language::of_code).map(Language::code);
    let unknown = || format!("{LANGUAGE} is '{}': set it to en or ja", named.display());
    code.map(Some).ok_or_else(unknown)
}

/// Puts `--lang` before the arguments of a command that has it; a later one replaces it.
fn with_language(command: &Command, mut arguments: Vec<OsString>, code: &str) -> Vec<OsString> {
    // Of the parts of `cluster`, `status` reports bottlenecks. `sync -h` alone is help.
    let at = match (command.name, arguments.first()) {
        ("cluster", Some(part)) if part == "status" => 1,
        ("cluster", _) => return arguments,
        (_, Some(only)) if arguments.len() == 1 && only == "-h" => return arguments,
        _ => 0,
    };
    if command.has("lang") {
        arguments.insert(at, format!("--lang={code}").into());
    }
    arguments
}

/// Runs `hakobu help COMMAND [SUBCOMMAND]`, `hakobu help TOPIC`.
fn help(topic: &OsStr, part: Option<&OsString>) -> ExitCode {
    let name = topic.to_string_lossy();
    match find(&name) {
        Some(command) => {
            let part = part.filter(|word| (command.parts)().iter().any(|part| part.name == **word));
            (command.run)(part.cloned().into_iter().chain(["--help".into()]).collect())
        }
        None if topics::show(&name) => exit::OK.into(),
        None => unknown(&name),
    }
}

/// Commands that cargo features enable, and the feature of each.
pub const OPTIONAL: &[(&str, &str)] = &[
    ("watch", "lab"),
    ("bench", "lab"),
    ("io", "io"),
    ("results", "lab"),
    ("report", "lab"),
    ("compare", "lab"),
    ("demo", "lab,serve"),
    ("serve", "serve"),
];

/// Returns the command of a name.
pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// Reports an unknown command, with a suggestion.
fn unknown(name: &str) -> ExitCode {
    output::message(&overview::unknown(name));
    exit::USAGE.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_an_option_of_those_that_have_it() {
        let line = |command: &str, line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            let words = with_language(find(command).unwrap(), words, "ja");
            words.join(OsStr::new(" ")).into_string().unwrap()
        };
        assert_eq!(line("sync", "-a x y"), "--lang=ja -a x y");
        assert_eq!(line("sync", "-h"), "-h");
        assert_eq!(line("rm", "x"), "x");
        assert_eq!(line("cluster", "status run"), "status --lang=ja run");
        assert_eq!(line("cluster", "plan run"), "plan run");
    }

    fn parsed(line: &str) -> Result<String, String> {
        let words = line.split_whitespace().map(OsString::from).collect();
        Ok(match parse_globals(words)? {
            None => "nothing".to_owned(),
            Some(line) => {
                let words = line.arguments.iter().map(|word| word.to_string_lossy().into_owned());
                [vec![line.command.to_string_lossy().into_owned()], words.collect()]
                    .concat()
                    .join(" ")
            }
        })
    }

    #[test]
    fn options_before_the_command_become_its_own() {
        for (line, expected) in [
            ("ls", "ls"),
            ("--endpoint-url U ls s3://b", "ls --endpoint-url=U s3://b"),
            ("--endpoint-url=U --json ls -R s3://b", "ls --endpoint-url=U --json -R s3://b"),
            ("--endpoint-url U ls", "ls --endpoint-url=U"),
            ("--profile p du .", "du ."),
            ("--profile p run f", "run --profile=p f"),
            ("--numworkers 5 -r 3 cp s3://b/k .", "cp --jobs=5 --retry-count=3 s3://b/k ."),
            ("--log error --stat mb s3://b", "mb --log=error s3://b"),
            ("--no-sign-request cat s3://b/k", "cat --no-sign-request s3://b/k"),
            ("--request-payer requester du s3://b", "du --request-payer=requester s3://b"),
            ("--dry-run rm s3://b/k", "rm --dry-run s3://b/k"),
            ("--json", "nothing"),
            ("--endpoint-url U --help", "--help"),
            ("--stat --version", "--version"),
        ] {
            assert_eq!(parsed(line).as_deref(), Ok(expected), "{line}");
        }
        for line in ["--frob ls", "--profile", "--json=1 ls", "--dry-run mb s3://b"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
