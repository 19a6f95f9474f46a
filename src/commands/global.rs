//! Options before the command, as in aws and s5cmd: they become options of the command.

use super::find;
use crate::cli::{Block, Row, Takes, flag, value};
use crate::objects::{self, ObjectArgs};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

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
pub struct CommandLine {
    /// The command.
    pub command: OsString,
    /// Arguments after it.
    pub arguments: Vec<OsString>,
    /// Dropped options.
    pub dropped: Vec<&'static str>,
}

/// Moves options before the command behind it. Returns `None` if there is no command.
///
/// # Errors
/// An unknown option, a missing value, or an option that the command does not have.
pub fn parse(arguments: Vec<OsString>) -> Result<Option<CommandLine>, String> {
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
            false => return Err(format!("hakobu {} has no --{}", of.name, row.name)),
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
        format!("{name} does not stand before a command; hakobu COMMAND --help lists its options")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<String, String> {
        let words = line.split_whitespace().map(OsString::from).collect();
        Ok(match parse(words)? {
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
