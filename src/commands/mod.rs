//! The commands, one file each, and what running any transfer takes.

mod sync;

use crate::show::{Line, Show, Wanted, output};
use crate::{exit, signals};
use hakobu_transfer::error::Fatal;
use hakobu_transfer::run::{Control, Outcome, Spec, transfer};
use hakobu_transfer::unit::Totals;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One command of the program.
pub struct Command {
    /// What is typed after `hakobu`.
    pub name: &'static str,
    /// One line for the overview.
    pub about: &'static str,
    /// Does it: the arguments are those after the name.
    pub run: fn(Vec<OsString>) -> ExitCode,
}

/// All of them, in the order of the overview.
const COMMANDS: &[Command] =
    &[Command { name: "sync", about: "make DST like SRC (rsync's options)", run: sync::run }];

/// The command of a name.
pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// The help of the program.
pub fn overview() -> String {
    let mut out = String::from(
        "hakobu moves files between volumes at the machine's limit.\n\n\
         Usage: hakobu COMMAND [OPTIONS] [PATHS]\n\nCommands:\n",
    );
    for command in COMMANDS {
        out.push_str(&format!("  {:<8} {}\n", command.name, command.about));
    }
    out.push_str(
        "\nhakobu help COMMAND (or hakobu COMMAND --help) shows its options;\n\
         hakobu --version the version.\n",
    );
    out
}

/// `hakobu help COMMAND`.
pub fn help(topic: &OsStr) -> ExitCode {
    let name = topic.to_string_lossy();
    match find(&name) {
        Some(command) => (command.run)(vec!["--help".into()]),
        None => unknown(&name),
    }
}

/// Says that there is no such command, and which one may have been meant.
pub fn unknown(name: &str) -> ExitCode {
    let hint = match nearest(name) {
        Some(near) => format!("did you mean '{near}'?"),
        None => "hakobu --help lists the commands".to_owned(),
    };
    output::message(&format!("there is no command '{name}'; {hint}"));
    exit::USAGE.into()
}

/// The command within two typing errors of a name.
fn nearest(name: &str) -> Option<&'static str> {
    let near = COMMANDS.iter().map(|command| (distance(name, command.name), command.name));
    near.min().filter(|(far, best)| *far <= 2 && *far < best.len()).map(|(_, best)| best)
}

/// Edit distance (Levenshtein 1966): insertions, deletions and replacements.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Runs a transfer and shows it; the exit code comes from `code_of`. What ends a run before it
/// began is an outcome, too: it has a summary and a code like any other.
fn run_transfer(spec: &Spec, wanted: Wanted, code_of: fn(&Outcome) -> u8) -> u8 {
    let control = match signals::control() {
        Ok(control) => control,
        Err(error) => {
            output::message(&format!("signals will end this run at once: {error}"));
            Arc::new(Control::default())
        }
    };
    let is_list = matches!(wanted.line, Line::List { .. });
    let show = match Show::new(wanted, Arc::clone(&control)) {
        Ok(show) => show,
        Err(message) => {
            output::message(&message);
            return code_of(&failed(Fatal::new(exit::SYNC_IO, message), Duration::ZERO));
        }
    };
    let start = Instant::now();
    let mut outcome = match transfer(spec, &control, &show) {
        Ok(outcome) => outcome,
        Err(fatal) => failed(fatal, start.elapsed()),
    };
    if is_list && show.is_broken() {
        // Nobody reads on (`| head`): that ends a list, and is no interruption.
        outcome.stopped = false;
    }
    let code = code_of(&outcome);
    let complete = show.finish(&outcome, code);
    if complete || code != exit::OK {
        code
    } else {
        code_of(&failed(Fatal::new(exit::SYNC_IO, ""), start.elapsed()))
    }
}

/// The outcome of a run that ended before anything was done.
fn failed(fatal: Fatal, took: Duration) -> Outcome {
    Outcome { totals: Totals::default(), took, jobs: 0, stopped: false, fatal: Some(fatal) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors() {
        for (typed, meant) in [
            ("snyc", Some("sync")),
            ("sunc", Some("sync")),
            ("rsync", Some("sync")),
            ("copy", None),
            ("c", Some("cp")),
            ("mvv", Some("mv")),
            ("frobnicate", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed), meant, "{typed}");
        }
    }

    #[test]
    fn every_command_is_in_the_overview() {
        for command in COMMANDS {
            assert!(overview().contains(&format!("\n  {} ", command.name)));
            assert!(find(command.name).is_some());
        }
    }
}
