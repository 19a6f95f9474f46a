//! The commands, one file each, and what running any transfer takes.

mod bench;
mod buckets;
mod cat;
mod compare;
mod cp;
mod demo;
mod du;
mod head;
mod io;
mod list;
mod ls;
mod manual;
mod mpu;
mod mv;
mod pipe;
mod presign;
mod report;
mod results;
mod rm;
mod run;
mod serve;
mod sync;
mod tool;
mod verify;
mod watch;

use crate::options::{Refused, Table};
use crate::show::{Line, Show, Wanted, output};
use crate::{exit, signals};
use hakobu_transfer::error::{Fatal, quoted};
use hakobu_transfer::location::Location;
use hakobu_transfer::run::{Control, Outcome, Removal, Spec, remove_objects, transfer};
use list::COMMANDS;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
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
    /// Its options.
    pub table: &'static Table,
}

/// The command of a name.
pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// The option tables of all commands.
#[cfg(test)]
pub fn tables() -> impl Iterator<Item = &'static Table> {
    COMMANDS.iter().map(|command| command.table)
}

/// The help of the program.
pub fn overview() -> String {
    let mut out = String::from(
        "hakobu moves files between volumes at the machine's limit.\n\n\
         Usage: hakobu COMMAND [OPTIONS] [PATHS]\n\nCommands:\n",
    );
    for command in COMMANDS {
        out.push_str(&format!("  {:<11} {}\n", command.name, command.about));
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
    if name == "select" {
        output::message("select is not built: hakobu cat reads whole objects");
        return exit::USAGE.into();
    }
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

/// Runs one transfer and shows it; the exit code comes from `code_of`.
fn run_transfer(spec: &Spec, wanted: Wanted, code_of: fn(&Outcome) -> u8) -> u8 {
    match Session::start(wanted, code_of) {
        Ok(session) => {
            let outcome = session.run(spec);
            session.end(outcome)
        }
        Err(code) => code,
    }
}

/// What surrounds the transfers of one command: signals before, the showing around, the exit code
/// after them.
struct Session {
    control: Arc<Control>,
    show: Show,
    is_list: bool,
    code_of: fn(&Outcome) -> u8,
    start: Instant,
}

impl Session {
    /// Begins; the error is an exit code, with its message already told.
    fn start(wanted: Wanted, code_of: fn(&Outcome) -> u8) -> Result<Session, u8> {
        let start = Instant::now();
        wanted.priority.apply().map_err(|message| {
            output::message(&message);
            code_of(&ended(Fatal::new(exit::SYNC_USAGE, message), start.elapsed()))
        })?;
        let control = Arc::new(Control::default());
        let interrupted = code_of(&Outcome { stopped: true, ..nothing() });
        if let Err(error) = signals::stop(&control, interrupted) {
            output::message(&format!("signals will end this run at once: {error}"));
        }
        let is_list = matches!(wanted.line, Line::List { .. });
        let show = Show::new(wanted, Arc::clone(&control)).map_err(|message| {
            output::message(&message);
            code_of(&ended(Fatal::new(exit::SYNC_IO, message), start.elapsed()))
        })?;
        Ok(Session { control, show, is_list, code_of, start })
    }

    /// Runs a transfer. What ends it before it began is an outcome like any other.
    fn run(&self, spec: &Spec) -> Outcome {
        let start = Instant::now();
        transfer(spec, &self.control, &self.show)
            .unwrap_or_else(|fatal| ended(fatal, start.elapsed()))
    }

    /// Removes objects; as [`Session::run`].
    fn remove(&self, removal: &Removal) -> Outcome {
        let start = Instant::now();
        remove_objects(removal, None, &self.control, &self.show)
            .unwrap_or_else(|fatal| ended(fatal, start.elapsed()))
    }

    /// Tells how it ended, and with which exit code.
    fn end(self, mut outcome: Outcome) -> u8 {
        if self.is_list && self.show.is_broken() {
            // Nobody reads on (`| head`): that ends a list, and is no interruption.
            outcome.stopped = false;
        }
        outcome.took = self.start.elapsed();
        let code = (self.code_of)(&outcome);
        let complete = self.show.finish(&outcome, code);
        if complete || code != exit::OK {
            return code;
        }
        // Everything arrived, but the record of it did not.
        (self.code_of)(&ended(Fatal::new(exit::SYNC_IO, ""), outcome.took))
    }
}

/// The outcome of a run in which nothing was done yet.
fn nothing() -> Outcome {
    Outcome::default()
}

/// The outcome of a run that ended before anything was done.
fn ended(fatal: Fatal, took: Duration) -> Outcome {
    Outcome { took, fatal: Some(fatal), ..nothing() }
}

/// Two runs as one.
fn joined(mut first: Outcome, second: Outcome) -> Outcome {
    first.totals += second.totals;
    Outcome {
        totals: first.totals,
        took: first.took + second.took,
        jobs: first.jobs.max(second.jobs),
        stopped: first.stopped || second.stopped,
        fatal: first.fatal.or(second.fatal),
        requests: first.requests + second.requests,
        findings: if second.took > first.took { second.findings } else { first.findings },
    }
}

/// Says why a command does not begin, and gives its exit code.
fn refuse(refused: Refused, usage_code: u8) -> ExitCode {
    match refused {
        Refused::Help(text) => {
            output::text(&text);
            exit::OK.into()
        }
        Refused::Usage(message) => {
            output::message(&message);
            usage_code.into()
        }
        Refused::Failed { code, message } => {
            output::message(&message);
            code.into()
        }
    }
}

/// The sources and the target of a command line of cp's family, and whether the target has to be
/// a directory.
#[derive(Debug, PartialEq, Eq)]
struct Places {
    sources: Vec<PathBuf>,
    target: PathBuf,
    is_dir: bool,
}

/// Sorts paths into sources and target: `-t DIR` names the target, else the last path is it. Only
/// where `allows_null` may that be `null:`.
fn places(
    mut paths: Vec<PathBuf>,
    more_sources: Vec<PathBuf>,
    target_dir: Option<&OsStr>,
    no_target_dir: bool,
    allows_null: bool,
) -> Result<Places, String> {
    if no_target_dir && target_dir.is_some() {
        return Err("-t and -T cannot be used together".into());
    }
    let target = match target_dir {
        Some(dir) => PathBuf::from(dir),
        None => paths.pop().unwrap_or_default(),
    };
    for source in &paths {
        check_location(source, false)?;
    }
    check_location(&target, allows_null)?;
    let listed = !more_sources.is_empty();
    paths.extend(more_sources);
    if paths.is_empty() {
        return Err(if target.as_os_str().is_empty() {
            "give a source and a target".into()
        } else {
            format!("give a target after {}", quoted(target))
        });
    }
    let several = paths.len() > 1 || listed;
    if no_target_dir && several {
        return Err("-T takes one source".into());
    }
    Ok(Places { sources: paths, target, is_dir: several || target_dir.is_some() })
}

/// Refuses a path that names another machine. An empty one fails by itself later, beside
/// others that do not.
fn check_location(path: &Path, allows_null: bool) -> Result<(), String> {
    let path = path.as_os_str();
    if path.is_empty() {
        return Ok(());
    }
    match Location::parse(path) {
        Ok(Location::Null) if !allows_null => Location::parse_local(path).map(drop),
        parsed => parsed.map(drop),
    }
    .map_err(|fatal| fatal.message)
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
    fn sources_and_target() {
        let sorted = |paths: &str, more: &str, t: Option<&str>, no_dir| {
            let list = |text: &str| text.split_whitespace().map(PathBuf::from).collect();
            match places(list(paths), list(more), t.map(OsStr::new), no_dir, false) {
                Ok(Places { sources, target, is_dir }) => {
                    format!("{sources:?} {target:?}{}", if is_dir { " dir" } else { "" })
                }
                Err(message) => message,
            }
        };
        for (paths, more, t, no_dir, expected) in [
            ("a b", "", None, false, r#"["a"] "b""#),
            ("a b", "", None, true, r#"["a"] "b""#),
            ("a b c", "", None, false, r#"["a", "b"] "c" dir"#),
            ("a", "", Some("d"), false, r#"["a"] "d" dir"#),
            ("d", "a b", None, false, r#"["a", "b"] "d" dir"#),
            ("d", "a", None, false, r#"["a"] "d" dir"#),
            ("", "", None, false, "give a source and a target"),
            ("a", "", None, false, "give a target after 'a'"),
            ("a b c", "", None, true, "-T takes one source"),
            ("a", "", Some("d"), true, "-t and -T cannot be used together"),
            (
                "a null:",
                "",
                None,
                false,
                "'null:' is only a target of sync and cp; for a local file write './null:'",
            ),
            (
                "a h:b",
                "",
                None,
                false,
                "'h:b': remote locations are not built; for a local file write './h:b'",
            ),
        ] {
            assert_eq!(sorted(paths, more, t, no_dir), expected);
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
