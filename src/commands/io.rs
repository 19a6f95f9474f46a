//! `hakobu io`: fio's jobs, and sweeps of them.

mod facts;
mod live;
mod single;
mod sweep;
mod table;

use super::refuse;
use crate::exit;
use crate::options::io::{TABLE, arguments};
use crate::options::{Refused, Typed};
use crate::show::output;
use hakobu_lab::io::spec::{self, Format, Request};
use hakobu_transfer::error::{Cause, quoted};
use std::ffi::OsString;
use std::io::{self, Read};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = TABLE.parse(&arguments);
    match typed.and_then(|typed| Asked::new(&typed).map_err(Refused::Usage)) {
        Ok(asked) => asked.run().into(),
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

/// An option as it was typed, and its value.
type Word = (String, Option<String>);

/// What was asked for.
struct Asked {
    /// Options in their order.
    words: Vec<Word>,
    /// Job files, as they were typed.
    files: Vec<String>,
    /// What all of it means.
    request: Request,
}

impl Asked {
    fn new(typed: &Typed) -> Result<Asked, String> {
        let words = arguments(typed)?;
        let mut files = Vec::new();
        for path in &typed.paths {
            let name = path.to_str().ok_or_else(|| format!("'{}' is no text", path.display()))?;
            files.push(name.to_owned());
        }
        let texts = files.iter().map(|name| Ok((name.clone(), text_of(name)?)));
        let texts: Vec<(String, String)> = texts.collect::<Result<_, String>>()?;
        let request = spec::read(&words, &texts, &spec::System)?;
        let mut asked = Asked { words, files, request };
        if asked.is_sweep() {
            asked.goes_with_sweeps()?;
        } else {
            // One value for each list is one run.
            let first =
                |axis: &spec::Axis| Some((axis.option.clone(), axis.values.first()?.clone()));
            let values: Vec<(String, String)> =
                asked.request.sweep.iter().filter_map(first).collect();
            let values: Vec<(&str, &str)> =
                values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            if !values.is_empty() {
                asked.request = spec::cell(&asked.request, &values)?;
            }
        }
        Ok(asked)
    }

    fn is_sweep(&self) -> bool {
        self.request.repeat > 1 || self.request.sweep.iter().any(|axis| axis.values.len() > 1)
    }

    /// Refuses what only one run can have.
    fn goes_with_sweeps(&self) -> Result<(), String> {
        if self.request.format != Format::Normal {
            return Err(
                "--output-format goes with one run: a sweep's results are a folder, of which \
                        hakobu report makes JSON, CSV, a page"
                    .into(),
            );
        }
        if self.request.status_interval.is_some() {
            return Err("--status-interval goes with one run, not with a sweep".into());
        }
        Ok(())
    }

    /// Does it; the exit code.
    fn run(&self) -> u8 {
        for warning in &self.request.warnings {
            output::message(warning);
        }
        if self.request.show_cmd {
            output::text(&format!("hakobu io {}\n", self.request.command_line));
            return exit::OK;
        }
        if self.request.parse_only {
            return exit::OK;
        }
        let done = match self.is_sweep() {
            true => sweep::run(self),
            false => single::run(&self.request),
        };
        done.unwrap_or_else(|message| {
            output::message(&message);
            exit::FAILURE
        })
    }
}

/// A job file; `-` is standard input.
fn text_of(name: &str) -> Result<String, String> {
    let read = || match name {
        "-" => {
            let mut text = String::new();
            io::stdin().lock().read_to_string(&mut text).map(|_| text)
        }
        _ => std::fs::read_to_string(name),
    };
    read().map_err(|error| format!("cannot read {}: {}", quoted(name), Cause::System(error)))
}
