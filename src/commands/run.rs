//! `hakobu run`: commands from a file, one per line, in parallel. Copies, moves and removals with the same options
//! are merged into one run with one set of connections; other lines run as processes.

mod expand;
mod group;
pub(super) mod lines;

use super::session::stop_on_signals;
use super::tool::carry_out;
use crate::cli::{Fits, Opt, OptArg, Table, Typed, flag, parts, value};
use crate::limits::{self, LimitArgs};
use crate::objects::{self, ObjectArgs, is_s3};
use crate::show::escape::push_quoted;
use crate::show::output;
use crate::{Command, find};
use crate::{exit, input};
use group::{LineGroup, LineGroups, OtherLine};
use hakobu_core::error::{Cause, cannot};
use hakobu_core::lines as text_lines;
use hakobu_core::threads::for_each;
use hakobu_s3::without_secrets;
use hakobu_sys::child::{self, SessionGuard, send};
use hakobu_sys::paths::Links;
use hakobu_sys::stdio;
use hakobu_transfer::run::{Control, Together};
use parking_lot::Mutex;
use serde::Serialize;
use signal_hook::consts::SIGTERM;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::process::{self, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

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
pub static TABLE: Table<RunOptions> = Table {
    command: "run",
    about: "Run the commands of a file in parallel, one per line",
    description: "Lines are commands of hakobu without the word hakobu; they share connections and \
            workers. No line starts another program.",
    usage: "hakobu run [OPTIONS] [FILE]",
    examples: &[
        ("hakobu run commands.txt", "Run the commands of a file."),
        ("hakobu run -n commands.txt", "Show how the lines are understood, run nothing."),
        (
            "echo 'cp src/a.txt s3://data/a.txt' | hakobu run -j 8",
            "Read the commands from standard input.",
        ),
    ],
    common: &[],
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

const OPTIONS: &[Opt<RunOptions>] = &[
    value("jobs", Some('j'), "N", "lines that run at once: N, +N, -N, N%, 0 (many), auto")
        .alias(&["numworkers"])
        .reads(limits::set_jobs),
    flag("exit-on-error", None, "start no further line after the first failure")
        .sets(|it, on| it.exit_on_error = on),
    flag("dry-run", Some('n'), "show how the lines are understood; run nothing")
        .sets(|it, on| it.dry_run = on),
    flag("json", None, "JSON lines of all lines on standard output, nothing else")
        .sets(|it, on| it.json = on),
    flag("stat", None, "counts of requests and times of each group of lines")
        .sets(|it, on| it.stat = on),
];

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), |typed| plan(&typed), |plan| run_file(&plan))
}

fn plan(typed: &Typed) -> Result<RunOptions, String> {
    let file = match typed.paths.as_slice() {
        [] => "-".into(),
        [file] => file.clone(),
        _ => return Err("more than one file of commands".into()),
    };
    let mut plan = TABLE.read(typed, RunOptions { file, ..RunOptions::default() })?;
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

fn run_file(plan: &RunOptions) -> Result<u8, String> {
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
    let running = RunState::new(plan.json);
    stop_on_signals(&running.control, exit::FAILURE, "this run");
    let mut number = 0;
    loop {
        let mut groups = LineGroups::default();
        let mut read = 0;
        while read < LINES_MAX {
            match next(number + 1) {
                Ok(Some(line)) => {
                    (read, number) = (read + 1, number + 1);
                    add_line(plan, &running, number, &line, &mut groups);
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
            run_others(plan, &running, &groups.others);
        }
        let folders = std::mem::take(&mut groups.folders);
        let groups = groups.take();
        let together = Together::of(groups.iter().flat_map(LineGroup::specs));
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
fn add_line(
    plan: &RunOptions,
    running: &RunState,
    number: usize,
    line: &[u8],
    groups: &mut LineGroups,
) {
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
            None => running.fail(number, "rmdir takes one local directory and no option"),
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
fn run_others(plan: &RunOptions, running: &RunState, others: &[OtherLine]) {
    let Ok(program) = std::env::current_exe() else {
        if let Some(other) = others.first() {
            running.fail(other.number, "the program cannot find itself");
        }
        return;
    };
    let work = |other: &OtherLine| {
        if running.ends(plan) {
            return;
        }
        let mut command = process::Command::new(&program);
        command.arg(&other.command).args(&other.arguments);
        match run_program(command, &running.control, other.command == "pipe") {
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
    let workers = plan.limits.base.jobs.fixed_or(PROCESSES);
    for_each(others, workers, |_, other| work(other));
}

/// The parsed command line.
#[derive(Default)]
pub struct RunOptions {
    pub(super) file: OsString,
    pub(super) limits: LimitArgs,
    pub(super) exit_on_error: bool,
    pub(super) dry_run: bool,
    pub(super) json: bool,
    pub(super) stat: bool,
    /// Parsed here, so that a mistake is reported once and not for every line.
    pub(super) objects: ObjectArgs,
    /// Options prepended to every line with `s3://`.
    pub(super) defaults: Vec<OsString>,
}

parts!(RunOptions { objects: ObjectArgs, limits: LimitArgs });

/// State shared by all lines.
#[derive(Default)]
pub struct RunState {
    pub(super) control: Arc<Control>,
    pub(super) failed: AtomicBool,
    /// Spellings of options whose value may be the next word, by command.
    values: Mutex<HashMap<&'static str, Vec<String>>>,
    /// Failures are printed as JSON, too.
    json: bool,
    /// Whether a line reads standard input.
    pub(super) input: AtomicBool,
}

#[derive(Serialize)]
struct FailedLine<'a> {
    event: &'static str,
    line: usize,
    message: &'a str,
}

impl RunState {
    /// Begins; `json`: failures are printed as JSON, too.
    pub fn new(json: bool) -> RunState {
        RunState { json, ..RunState::default() }
    }

    /// Reports a line that failed; with `--json` also as an event.
    pub fn fail(&self, number: usize, why: &str) {
        self.fail_text(number, why);
        if self.json {
            output::line(&FailedLine { event: "error", line: number, message: why });
        }
    }

    /// Reports a line that failed, of which an event tells already.
    pub fn fail_text(&self, number: usize, why: &str) {
        output::message(&format!("line {number}: {why}"));
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Returns whether the value of this word, an option, may be the next word.
    pub fn is_before_value(&self, command: &Command, word: &str) -> bool {
        let mut values = self.values.lock();
        let spellings = values.entry(command.name);
        spellings.or_insert_with(|| command.spellings_before_values()).iter().any(|it| it == word)
    }

    pub fn ends(&self, plan: &RunOptions) -> bool {
        self.control.is_stopped() || (plan.exit_on_error && self.failed.load(Ordering::Relaxed))
    }
}

/// Maximum delay until a process gets the signal that the run is stopped.
const STEP: Duration = Duration::from_millis(50);

/// Runs a process to its end and returns its standard error. If the run is asked to stop, the process gets SIGTERM
/// once. It has a session of its own, so that the terminal's Ctrl-C does not reach it as well: the second Ctrl-C
/// would end it at once. It may read from the terminal, as it is in no background there. `reads`: it gets standard input.
///
/// # Errors
/// Those of the system: it cannot be started or waited for.
pub fn run_program(
    mut command: process::Command,
    control: &Control,
    reads: bool,
) -> io::Result<(ExitStatus, Vec<u8>)> {
    command.stdin(if reads { Stdio::inherit() } else { Stdio::null() });
    command.stdout(Stdio::inherit()).stderr(Stdio::piped());
    child::lead_session(&mut command, false);
    let mut child = command.spawn()?;
    let _under_way = SessionGuard::new(child.id());
    let (sender, receiver) = channel();
    let stderr = child.stderr.take();
    std::thread::scope(|scope| {
        let read = move || {
            let mut text = Vec::new();
            let read = stderr.map_or(Ok(0), |mut stderr| stderr.read_to_end(&mut text));
            // The receiver waits until this arrives.
            let _ = sender.send(read.map(|_| text));
        };
        let reader = std::thread::Builder::new().spawn_scoped(scope, read);
        if let Err(error) = reader {
            child.kill()?;
            child.wait()?;
            return Err(error);
        }
        let mut ending = false;
        let text = loop {
            match receiver.recv_timeout(STEP) {
                Ok(text) => break text,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ok(Vec::new()),
            }
            if control.is_stopped() && !ending {
                ending = true;
                // It is waited for below, so its process ID is not reused.
                send(child.id(), SIGTERM)?;
            }
        };
        let status = child.wait()?;
        Ok((status, text?))
    })
}
