//! `hakobu run`: commands from a file, one per line, in parallel. Copies, moves and removals with the same options
//! are merged into one run with one set of connections; other lines run as processes.

mod expand;
mod group;
pub(super) mod lines;
mod plan;
mod process;

use super::find;
use super::tool::carry_out;
use crate::commands::session::stop_on_signals;
use crate::limits::{self};
use crate::objects::{self, is_s3};
use crate::options::{Fits, Opt, OptArg, Table, Typed, flag, value};
use crate::show::escape::push_quoted;
use crate::show::output;
use crate::{exit, input};
use group::{Group, Groups, Other};
use hakobu_core::error::{Cause, cannot};
use hakobu_core::lines as text_lines;
use hakobu_core::threads::for_each;
use hakobu_core::unit::Jobs;
use hakobu_s3::without_secrets;
use hakobu_sys::paths::Links;
use hakobu_sys::stdio;
use hakobu_transfer::run::Together;
use plan::{Plan, Running};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// Maximum number of lines read before the first of them runs: bounds memory.
const LINES_MAX: usize = 10_000;
/// The commands of lines (docs/s3.md). A file from elsewhere must not start programs (bench, watch, cluster, io) or write
/// to other places than a transfer does.
const COMMANDS: &[&str] = &[
    "sync",
    "cp",
    "mv",
    "rm",
    "ls",
    "du",
    "cat",
    "pipe",
    "head",
    "stat",
    "mb",
    "rb",
    "bucket-version",
    "presign",
    "mpu",
    "verify",
];
/// In the lines that `rm -n` and `sync -n` print: removes an empty folder, after what other lines remove.
const REMOVE_FOLDER: &str = "rmdir";
/// Default number of concurrent processes.
const PROCESSES: usize = 8;

/// The command line of `run`.
pub static TABLE: Table<Plan> = Table {
    command: "run",
    about: "Run commands from a file, one per line, in parallel",
    usage: "hakobu run [OPTIONS] [FILE]",
    after: "The default for FILE is '-', standard input. Lines are split as by a shell, \
            without expansions; '#' begins a comment. Commands are sync, cp, mv, rm, ls, du, cat, \
            pipe, head, stat, mb, rb, bucket-version, presign, mpu and verify, with their own \
            options and s5cmd's short ones, and rmdir for empty folders; no line starts other \
            programs. One line may be pipe, which reads standard input. S3 options of run apply to every line that does \
            not override them.\n\
            Exit codes: 0 done, 1 a line failed, 2 usage.",
    options: &[&OPTIONS, &objects::COMMON, &limits::PRIORITY],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

const OPTIONS: &[Opt<Plan>] = &[
    value("jobs", Some('j'), "N", "lines at once (numworkers): N, +N, -N, N%, 0 (many), auto")
        .alias(&["numworkers"])
        .reads(limits::set_jobs),
    flag("exit-on-error", None, "begin no further line after the first failure")
        .sets(|it, on| it.exit_on_error = on),
    flag("dry-run", Some('n'), "show the lines as they were understood, run nothing")
        .sets(|it, on| it.dry_run = on),
    flag("json", None, "JSON lines of all lines on standard output, nothing else")
        .sets(|it, on| it.json = on),
    flag("stat", None, "counts of requests and times of each group of lines")
        .sets(|it, on| it.stat = on),
];

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), |typed| plan(&typed), |plan| all(&plan))
}

fn plan(typed: &Typed) -> Result<Plan, String> {
    let file = match typed.paths.as_slice() {
        [] => "-".into(),
        [file] => file.clone(),
        _ => return Err("give one file of commands, or '-' for standard input".into()),
    };
    let mut plan = TABLE.read(typed, Plan { file, ..Plan::default() })?;
    let is_stored =
        |arg: &&OptArg| TABLE.rows().any(|row| row.name == arg.name && row.fits == Fits::Stored);
    plan.defaults = typed.options.iter().filter(is_stored).map(as_word).collect();
    Ok(plan)
}

/// Returns an option as one word.
fn as_word(arg: &OptArg) -> OsString {
    let mut word = OsString::from(format!("--{}", arg.name));
    if !arg.value.is_empty() {
        word.push("=");
        word.push(&arg.value);
    }
    word
}

fn all(plan: &Plan) -> Result<u8, String> {
    plan.limits.priority.apply()?;
    let mut file = match plan.file.as_os_str() {
        file if file == "-" => None,
        file => {
            let opened = input::open(file, &Links::Any);
            Some(BufReader::new(opened.map_err(|error| cannot("read", file, error))?))
        }
    };
    // Standard input is locked for each line only: a line may ask.
    let mut next = |number: usize| match &mut file {
        Some(file) => text_lines::next(file, number as u64),
        None => text_lines::next(&mut *input::stdin()?, number as u64),
    };
    let running = Running::new(plan.json);
    stop_on_signals(&running.control, exit::FAILURE, "this run");
    let mut number = 0;
    loop {
        let mut groups = Groups::default();
        let mut read = 0;
        while read < LINES_MAX {
            match next(number + 1) {
                Ok(Some(line)) => {
                    (read, number) = (read + 1, number + 1);
                    sort(plan, &running, number, &line, &mut groups);
                }
                Ok(None) => break,
                Err(error) if stdio::is_stopped(&error) => break,
                Err(error) => {
                    running.fail(number + 1, &Cause::System(error).to_string());
                    return Ok(exit::FAILURE);
                }
            }
        }
        if !running.ends(plan) {
            others(plan, &running, &groups.others);
        }
        let folders = std::mem::take(&mut groups.folders);
        let groups = groups.take();
        let together = Together::of(groups.iter().flat_map(Group::specs));
        let mut number = 0;
        for group in groups {
            let count = group.specs().len();
            if !running.ends(plan) {
                group.run(plan, &running, (&together, number));
            }
            number += count;
        }
        // The lines of what is in a folder come before its own.
        for (number, folder) in folders {
            if !running.ends(plan)
                && let Err(error) = std::fs::remove_dir(&folder)
            {
                running.fail(number, &cannot("remove", &folder, error));
            }
        }
        if read < LINES_MAX || running.ends(plan) {
            break;
        }
    }
    if running.control.is_stopped() {
        return Err("interrupted: lines that were not begun were not run".into());
    }
    Ok(if running.failed.load(Ordering::Relaxed) { exit::FAILURE } else { exit::OK })
}

/// Parses a line and adds it to its group.
fn sort(plan: &Plan, running: &Running, number: usize, line: &[u8], groups: &mut Groups) {
    let words = match lines::words(line) {
        Ok(words) => lines::translated(words),
        Err(why) => return running.fail(number, why),
    };
    let Some((command, rest)) = words.split_first() else { return };
    let name = command.to_string_lossy();
    if name == REMOVE_FOLDER {
        return match folder(rest) {
            Some(folder) if plan.dry_run => show(command, &[folder]),
            Some(folder) => groups.remove_folder(number, folder),
            None => running.fail(number, "rmdir takes one local folder and no option"),
        };
    }
    let Some(of) = find(&name).filter(|of| COMMANDS.contains(&of.name)) else {
        return running.fail(number, &format!("'{name}' is not a command for a line"));
    };
    if let Some(why) = lines::starts_programs(of.name, rest) {
        return running.fail(number, why);
    }
    if of.name == "pipe" && (plan.file == "-" || running.input.swap(true, Ordering::Relaxed)) {
        return running.fail(number, "standard input is read by the lines, or by another one");
    }
    let rest = &*of.table.with_values(rest);
    let stored = of.name == "ls" || rest.iter().any(is_s3);
    let mut defaults = if stored { plan.defaults.clone() } else { Vec::new() };
    if stored && lines::has_patterns(rest) {
        defaults.push("--filter-style=s5cmd".into());
    }
    let output = [("json", plan.json), ("verbose", plan.json), ("stat", plan.stat && stored)];
    let output = output.iter().filter(|(option, on)| *on && of.has(option));
    defaults.extend(output.map(|(option, _)| OsString::from(format!("--{option}"))));
    let all = match expand::lines(&name, rest, &|word| running.is_before_value(of, word)) {
        Ok(all) => all,
        Err(why) => return running.fail(number, &why),
    };
    for arguments in all {
        let arguments = [defaults.clone(), arguments].concat();
        if plan.dry_run {
            show(command, &arguments);
        } else if let Err(why) = groups.add(number, command, arguments, stored) {
            running.fail(number, &why);
        }
    }
}

/// Returns the folder of a line of `rmdir`.
fn folder(words: &[OsString]) -> Option<OsString> {
    match words {
        [folder] if !folder.as_bytes().starts_with(b"-") && !is_s3(folder) => Some(folder.clone()),
        _ => None,
    }
}

/// Returns whether the value of an option is a key. Options may be abbreviated.
fn names_key(option: &str) -> bool {
    option.starts_with("--sse-c-") && option != "--sse-c-copy-source"
}

/// Suffix of the options that name an endpoint: their value may contain a password.
const ENDPOINT: &str = "endpoint-url";

/// Prints a line as it was parsed.
fn show(command: &OsStr, arguments: &[OsString]) {
    let mut text = command.as_bytes().to_vec();
    let mut before = "";
    for argument in arguments {
        text.push(b' ');
        let shown = match (argument.to_str(), before.ends_with(ENDPOINT)) {
            _ if names_key(before) => Cow::Borrowed("***"),
            (Some(url), true) => Cow::Owned(without_secrets(url)),
            (Some(typed), false) => match typed.split_once('=') {
                Some((name, _)) if names_key(name) => Cow::Owned(format!("{name}=***")),
                Some((name, url)) if name.ends_with(ENDPOINT) => {
                    Cow::Owned(format!("{name}={}", without_secrets(url)))
                }
                _ => Cow::Borrowed(typed),
            },
            (None, _) => argument.to_string_lossy(),
        };
        push_quoted(shown.as_bytes(), &mut text);
        before = argument.to_str().unwrap_or("");
    }
    text.push(b'\n');
    output::text(&String::from_utf8_lossy(&text));
}

/// Runs lines as processes, several at once.
fn others(plan: &Plan, running: &Running, others: &[Other]) {
    let Ok(program) = std::env::current_exe() else {
        if let Some(other) = others.first() {
            running.fail(other.number, "the program cannot find itself");
        }
        return;
    };
    let work = |other: &Other| {
        if running.ends(plan) {
            return;
        }
        let mut command = std::process::Command::new(&program);
        command.arg(&other.command).args(&other.arguments);
        match process::run(command, &running.control, other.command == "pipe") {
            Ok((status, _)) if status.success() => {}
            Ok((status, said)) => {
                let said = String::from_utf8_lossy(&said);
                for line in said.lines() {
                    running.fail(other.number, line.trim_start_matches("hakobu: "));
                }
                if said.is_empty() {
                    running.fail(other.number, &format!("it ended with {status}"));
                }
            }
            Err(error) => running.fail(other.number, &Cause::System(error).to_string()),
        }
    };
    let workers = match plan.limits.base.jobs {
        Jobs::Fixed(jobs) => jobs,
        Jobs::Auto => PROCESSES,
    };
    for_each(others, workers, |_, other| work(other));
}
