//! Reads a command line of `hakobu io`: fio's command line and fio's job files (fio(1)), read into [`Job`]s.
//!
//! Reading is in two steps. `source` takes apart what was written into sections of options with their origins. Then every
//! job is made of the sections that are its own and those before it that hold for all (`options` says what an option
//! sets, `draft` the defaults and the values that depend on each other). The second step is done again for each cell of
//! a sweep. Nothing here touches files or the machine but through [`Environment`].

mod draft;
pub mod lists;
mod options;
mod refused;
mod source;
pub mod units;
mod values;

use crate::job::Job;
use crate::layout::Safety;
pub use options::{Effect, GROUPS, IoOption, OptionGroup, Takes, is_option, options};
pub use refused::{REFUSED, REMOVED};
pub use source::Source;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Format of a report (`--output-format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Normal,
    Json,
    /// JSON with histograms.
    JsonPlus,
}

/// Condition for showing progress (`--eta`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eta {
    /// On a terminal.
    #[default]
    Auto,
    Always,
    Never,
}

/// One option that a sweep goes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// fio's first name for the option.
    pub option: String,
    /// Its values, as they would be written.
    pub values: Vec<String>,
}

defaulted! {
    /// Options of the run as a whole.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RunOptions {
        /// File of the report; `None` is standard output.
        pub output: Option<PathBuf>,
        pub format: Format,
        /// A report after each such time.
        pub status_interval: Option<Duration>,
        /// Condition for showing progress.
        pub eta: Eta,
        /// Only jobs with these names.
        pub only: Vec<String>,
        /// The command line is printed, and nothing done.
        pub show_cmd: bool,
        /// Only parse the command line and the job files (`--parse-only`).
        pub parse_only: bool,
        /// A job that writes is an error.
        pub read_only: bool,
        /// A warning is an error.
        pub strict: bool,
        /// Permission to write, and handling of the files.
        pub safety: Safety,
        /// Runs of each cell.
        pub repeat: u32 = 1,
        /// All is written once before.
        pub precondition: bool,
        /// Options of `--sweep`.
        pub sweep: Vec<Axis>,
    }
}

/// All that was asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The jobs, in the order of their sections. Of a sweep: those of its first cell.
    pub jobs: Vec<Job>,
    /// Options that hold for all jobs, in fio's names; of several with one name the last.
    pub globals: Vec<(String, String)>,
    /// Options of the run as a whole.
    pub run: RunOptions,
    /// Options without effect, one sentence each, with the job's name. Of a sweep: those of
    /// all its cells.
    pub warnings: Vec<String>,
    /// Axes of a sweep; empty where there is none.
    pub sweep: Vec<Axis>,
    /// fio's command line for the jobs, without the name of a program.
    pub command_line: String,
    /// The source text, for the cells of a sweep.
    pub source: Source,
}

/// The environment that options and job files refer to.
pub trait Environment {
    /// The text of a file that a job file includes.
    fn include(&self, path: &str) -> io::Result<String>;
    fn variable(&self, name: &str) -> Option<String>;
    /// CPUs that may be used (`$ncpus`).
    fn cpus(&self) -> u64;
    /// Bytes of a page (`$pagesize`).
    fn page_bytes(&self) -> u64;
    /// Memory of the machine, MiB (`$mb_memory`).
    fn memory_mib(&self) -> u64;
}

/// This process and its files.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Environment for System {
    fn include(&self, path: &str) -> io::Result<String> {
        hakobu_core::lines::text(std::fs::File::open(path)?)
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn cpus(&self) -> u64 {
        hakobu_sys::process::cpus() as u64
    }

    fn page_bytes(&self) -> u64 {
        hakobu_sys::proc::page_bytes()
    }

    fn memory_mib(&self) -> u64 {
        hakobu_sys::process::memory_bytes().unwrap_or(0) >> 20
    }
}

/// Reads a command line (options without dashes, with what stands after them) and job files (names
/// and texts), both in their order. The command line's jobs come first; its options before the first
/// `name` hold for the job files, too, as far as those say nothing else. Without any job, the
/// options make one, `io`.
///
/// # Errors
/// A sentence that names the place: the option, or file and line.
pub fn read(
    arguments: &[(String, Option<String>)],
    job_files: &[(String, String)],
    outside: &dyn Environment,
) -> Result<Request, String> {
    let source = Source::read(arguments, job_files, outside)?;
    let request = source.request(&[])?;
    source.cells(request)
}

/// One cell of a sweep: the request without the sweep, with these values (option, value) in its
/// place.
///
/// # Errors
/// An option of the sweep has no value, or one that it cannot have.
pub fn cell<S: AsRef<str>>(request: &Request, values: &[(S, S)]) -> Result<Request, String> {
    let values: Vec<(&str, &str)> =
        values.iter().map(|(option, value)| (option.as_ref(), value.as_ref())).collect();
    if let Some(axis) = request.sweep.iter().find(|axis| !values.iter().any(|v| v.0 == axis.option))
    {
        return Err(format!("the sweep's {} has no value", axis.option));
    }
    request.source.request(&values)
}

#[cfg(test)]
mod tests;
