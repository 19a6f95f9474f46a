//! `hakobu io`: fio's jobs, and sweeps of them.

mod options;
mod single;
mod sweep;

use super::tool::carry_out;
use crate::cli::Typed;
use crate::files::is_stdout;
use crate::show::output;
use crate::{exit, input};
use hakobu_core::error::cannot;
use hakobu_core::lines;
use hakobu_io::spec::{self, Format, Request};
pub use options::TABLE;
use options::Word;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().map(two_dashes).collect();
    carry_out(TABLE.parse(&arguments), |typed| IoArgs::new(&typed), |args| Ok(args.run()))
}

/// fio takes its long options with one dash as well: `-name=x`.
fn two_dashes(word: OsString) -> OsString {
    let name = word.to_str().and_then(|text| text.strip_prefix('-'));
    let name = name.and_then(|text| text.split('=').next()).filter(|name| name.len() > 1);
    match name {
        Some(name) if spec::is_option(name) => {
            let mut whole = OsString::from("-");
            whole.push(word);
            whole
        }
        _ => word,
    }
}

/// A command line of `io`.
struct IoArgs {
    /// Options, in order.
    words: Vec<Word>,
    /// Job files, as typed.
    files: Vec<String>,
    /// Jobs and settings of the run.
    request: Request,
}

impl IoArgs {
    fn new(typed: &Typed) -> Result<IoArgs, String> {
        let words = TABLE.read(typed, Vec::new())?;
        let mut files = Vec::new();
        for path in &typed.paths {
            let name =
                path.to_str().ok_or_else(|| format!("'{}' is not valid UTF-8", path.display()))?;
            files.push(name.to_owned());
        }
        let texts = files.iter().map(|name| Ok((name.clone(), text_of(name)?)));
        let texts: Vec<(String, String)> = texts.collect::<Result<_, String>>()?;
        let request = spec::read(&words, &texts, &spec::System)?;
        let args = IoArgs { words, files, request };
        if args.is_sweep() {
            args.goes_with_sweeps()?;
        }
        Ok(args)
    }

    /// Does it; the exit code.
    fn run(&self) -> u8 {
        for warning in &self.request.warnings {
            output::message(warning);
        }
        if self.request.run.show_cmd {
            output::text(&format!("hakobu io {}\n", self.request.command_line));
            return exit::OK;
        }
        if self.request.run.parse_only {
            return exit::OK;
        }
        let done = match self.is_sweep() {
            true => sweep::run_sweep(self),
            false => single::run_single(&self.request),
        };
        done.unwrap_or_else(|message| {
            output::message(&message);
            exit::FAILURE
        })
    }

    /// Several runs; one value for each list is one, and the request has its jobs.
    fn is_sweep(&self) -> bool {
        self.request.run.repeat > 1 || self.request.sweep.iter().any(|axis| axis.values.len() > 1)
    }

    /// Refuses what only one run can have.
    fn goes_with_sweeps(&self) -> Result<(), String> {
        if self.request.run.format != Format::Normal {
            return Err(
                "--output-format goes with one run: a sweep's results are a directory, of which \
                        hakobu report makes JSON, CSV, a page"
                    .into(),
            );
        }
        if self.request.run.output.as_deref().is_some_and(is_stdout) {
            return Err("--output=- goes with one run: a sweep's results are a directory".into());
        }
        if self.request.run.status_interval.is_some() {
            return Err("--status-interval goes with one run, not with a sweep".into());
        }
        Ok(())
    }
}

/// A job file; `-` is standard input.
fn text_of(name: &str) -> Result<String, String> {
    let read = || match name {
        "-" => lines::text(&mut *input::stdin()?),
        _ => lines::text(std::fs::File::open(name)?),
    };
    read().map_err(|error| cannot("read", name, error))
}
