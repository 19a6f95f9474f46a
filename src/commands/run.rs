//! `hakobu run`: commands from a file, one a line, in parallel. Copies, moves and removals with the
//! same options are done together, by one engine with one set of connections; other lines are
//! processes of their own.

mod group;
pub(super) mod lines;

use super::refuse;
use crate::effort::{Effort, Priority};
use crate::objects::Asked;
use crate::options::tools::RUN;
use crate::options::{Given, Refused, Typed};
use crate::show::escape::push_quoted;
use crate::show::output;
use crate::{exit, signals};
use group::{Groups, Other};
use hakobu_transfer::error::{Cause, quoted};
use hakobu_transfer::run::Control;
use hakobu_transfer::unit::Jobs;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Lines that are read before the first of them runs: this bounds memory.
const LINES_MAX: usize = 10_000;
/// Processes at once, where nobody says.
const PROCESSES: usize = 8;

/// What `run` itself was told.
struct Plan {
    file: OsString,
    jobs: Jobs,
    exit_on_error: bool,
    dry_run: bool,
    priority: Priority,
    /// Options that every line with `s3://` begins with.
    defaults: Vec<OsString>,
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = RUN.parse(&arguments);
    match typed.and_then(|typed| plan(&typed).map_err(Refused::Usage)) {
        Ok(plan) => all(&plan).into(),
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

fn plan(typed: &Typed) -> Result<Plan, String> {
    let file = match typed.paths.as_slice() {
        [] => "-".into(),
        [file] => file.clone(),
        _ => return Err("give one file of commands, or '-' for standard input".into()),
    };
    let mut plan = Plan {
        file,
        jobs: Jobs::Auto,
        exit_on_error: false,
        dry_run: false,
        priority: Priority::default(),
        defaults: Vec::new(),
    };
    // Checked here, so that a mistake is told once and not for every line.
    let (mut asked, mut effort) = (Asked::default(), Effort::default());
    for given in &typed.options {
        match given.name {
            "exit-on-error" => plan.exit_on_error = true,
            "dry-run" => plan.dry_run = true,
            _ if effort.take(given)? => {}
            _ if asked.take(given)? => plan.defaults.push(spelled(given)),
            name => return Err(format!("--{name} is not known to run")),
        }
    }
    (plan.jobs, plan.priority) = (effort.jobs, effort.priority);
    Ok(plan)
}

/// An option as one word.
fn spelled(given: &Given) -> OsString {
    let mut word = OsString::from(format!("--{}", given.name));
    if !given.value.is_empty() {
        word.push("=");
        word.push(&given.value);
    }
    word
}

/// What the whole command shares.
struct Running {
    control: Arc<Control>,
    failed: AtomicBool,
}

impl Running {
    /// Tells of a line that failed.
    fn fail(&self, number: usize, why: &str) {
        output::message(&format!("line {number}: {why}"));
        self.failed.store(true, Ordering::Relaxed);
    }

    fn ends(&self, plan: &Plan) -> bool {
        self.control.is_stopped() || (plan.exit_on_error && self.failed.load(Ordering::Relaxed))
    }
}

fn all(plan: &Plan) -> u8 {
    if let Err(message) = plan.priority.apply() {
        output::message(&message);
        return exit::FAILURE;
    }
    let reader: Box<dyn BufRead> = match plan.file.as_os_str() {
        file if file == "-" => Box::new(std::io::stdin().lock()),
        file => match File::open(file) {
            Ok(file) => Box::new(BufReader::new(file)),
            Err(error) => {
                let cause = Cause::System(error);
                output::message(&format!("cannot read {}: {cause}", quoted(file)));
                return exit::FAILURE;
            }
        },
    };
    let running = Running { control: Arc::default(), failed: AtomicBool::new(false) };
    if let Err(error) = signals::stop(&running.control, exit::FAILURE) {
        output::message(&format!("signals will end this run at once: {error}"));
    }
    let mut lines = reader.split(b'\n').enumerate();
    loop {
        let mut groups = Groups::default();
        let mut read = 0;
        for (at, line) in lines.by_ref().take(LINES_MAX) {
            read += 1;
            match line {
                Ok(line) => sort(plan, &running, at + 1, &line, &mut groups),
                Err(error) => {
                    running.fail(at + 1, &Cause::System(error).to_string());
                    return exit::FAILURE;
                }
            }
        }
        if !running.ends(plan) {
            others(plan, &running, &groups.others);
        }
        for group in groups.take() {
            if !running.ends(plan) {
                group.run(plan, &running);
            }
        }
        if read < LINES_MAX || running.ends(plan) {
            break;
        }
    }
    if running.control.is_stopped() {
        output::message("interrupted: lines that were not begun were not run");
        return exit::FAILURE;
    }
    if running.failed.load(Ordering::Relaxed) { exit::FAILURE } else { exit::OK }
}

/// Understands a line and puts it beside its like.
fn sort(plan: &Plan, running: &Running, number: usize, line: &[u8], groups: &mut Groups) {
    let words = match lines::words(line) {
        Ok(words) => lines::translated(words),
        Err(why) => return running.fail(number, why),
    };
    let Some((command, rest)) = words.split_first() else { return };
    let name = command.to_string_lossy();
    if matches!(&*name, "run" | "serve" | "demo" | "pipe") || super::find(&name).is_none() {
        return running.fail(number, &format!("'{name}' is no command for a line"));
    }
    let stored = rest.iter().any(|word| word.as_bytes().starts_with(b"s3://"));
    let mut arguments = if stored { plan.defaults.clone() } else { Vec::new() };
    arguments.extend_from_slice(rest);
    if plan.dry_run {
        return show(command, &arguments);
    }
    if let Err(why) = groups.add(number, command, arguments, stored) {
        running.fail(number, &why);
    }
}

/// Prints a line as it was understood.
fn show(command: &OsStr, arguments: &[OsString]) {
    let mut text = command.as_bytes().to_vec();
    for argument in arguments {
        text.push(b' ');
        push_quoted(argument.as_bytes(), &mut text);
    }
    text.push(b'\n');
    output::text(&String::from_utf8_lossy(&text));
}

/// Runs lines as processes of their own, several at once.
fn others(plan: &Plan, running: &Running, others: &[Other]) {
    let Ok(program) = std::env::current_exe() else {
        if let Some(other) = others.first() {
            running.fail(other.number, "the program cannot find itself");
        }
        return;
    };
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(other) = others.get(next.fetch_add(1, Ordering::Relaxed)) {
            if running.ends(plan) {
                return;
            }
            let mut command = Command::new(&program);
            command.arg(&other.command).args(&other.arguments).stdin(Stdio::null());
            match command.stderr(Stdio::piped()).stdout(Stdio::inherit()).output() {
                Ok(output) if output.status.success() => {}
                Ok(output) => {
                    let said = String::from_utf8_lossy(&output.stderr);
                    for line in said.lines() {
                        running.fail(other.number, line.trim_start_matches("hakobu: "));
                    }
                    if said.is_empty() {
                        running.fail(other.number, &format!("it ended with {}", output.status));
                    }
                }
                Err(error) => running.fail(other.number, &Cause::System(error).to_string()),
            }
        }
    };
    let workers = match plan.jobs {
        Jobs::Fixed(jobs) => jobs,
        Jobs::Auto => PROCESSES,
    };
    std::thread::scope(|scope| {
        for _ in 1..workers.min(others.len()) {
            // Where no more threads can be had, those that are there do all of it.
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}
