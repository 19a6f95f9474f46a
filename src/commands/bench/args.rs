//! The parsed command line of `bench`.

use super::ready::Builtin;
use super::show;
use crate::options::{OptArg, parts};
use hakobu_lab::analysis::ranking::Baseline;
use hakobu_lab::campaign::{ExitCodes, OutputSink, RepeatRules};
use hakobu_lab::report::terminal::TerminalOptions;
use hakobu_lab::results::hyperfine::{ExportFormat, ExportOptions, TimeUnit};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The task of a `bench` command line.
#[derive(Debug, PartialEq)]
pub enum Task {
    /// Measure these commands.
    Commands(Vec<String>),
    /// Run a campaign.
    Campaign(Source),
    /// Print this text.
    Print(String),
}

impl Default for Task {
    fn default() -> Task {
        Task::Commands(Vec::new())
    }
}

/// Source of a campaign.
#[derive(Debug, PartialEq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// A campaign included in this program.
    Builtin(&'static Builtin),
}

/// All options of `bench`.
#[derive(Debug, Default)]
pub struct Args {
    pub task: Task,
    pub list: bool,
    pub dump: bool,
    pub warmup: Option<u32>,
    pub runs: Option<u32>,
    pub min_runs: Option<u32>,
    pub max_runs: Option<u32>,
    pub budget: Option<Duration>,
    pub seed: Option<u64>,
    pub only: Option<String>,
    pub timeout: Option<Duration>,
    pub prove: bool,
    pub dry_run: bool,
    pub quiet: bool,
    pub style: Style,
    /// Tables are sorted by time, not as given.
    pub is_sorted: bool,
    pub time: Option<TimeUnit>,
    pub baseline: Option<Baseline>,
    pub parameters: Vec<Parameter>,
    /// `-P`, which become parameters when the step for all of them is known.
    pub scans: Vec<OptArg>,
    /// `-D`.
    pub step: Option<OptArg>,
    pub names: Vec<String>,
    pub setup: Option<String>,
    pub prepare: Vec<String>,
    pub conclude: Vec<String>,
    pub cleanup: Option<String>,
    /// The words of the shell; empty: run without one; none given: sh.
    pub shell: Option<Vec<String>>,
    pub accepts: ExitCodes,
    /// `--output`, which for a campaign is an alias of `--results`.
    pub outputs: Vec<OptArg>,
    /// Targets of commands' output: one for all, or one for each; none: pipes.
    pub sinks: Vec<OutputSink>,
    pub show_output: bool,
    pub reference: Option<String>,
    pub reference_name: Option<String>,
    pub input: Option<PathBuf>,
    pub cpus: Option<usize>,
    pub no_control: bool,
    pub scale: Option<f64>,
    pub places: BTreeMap<String, String>,
    pub work: Option<PathBuf>,
    pub cache: Option<PathBuf>,
    /// The folder of results.
    pub results: Option<PathBuf>,
    pub machine: Option<String>,
    /// Additional exports: formats and files.
    pub exports: Vec<(ExportFormat, PathBuf)>,
}

parts!(Args {});

impl Args {
    /// Returns the appearance of the report.
    pub fn look(&self) -> TerminalOptions {
        let look = show::look(false);
        let color = self.style.color.unwrap_or(look.color);
        TerminalOptions { color, time: self.time, is_sorted: self.is_sorted, ..look }
    }

    /// Returns the appearance of exported tables.
    pub fn table_look(&self) -> ExportOptions {
        ExportOptions {
            time: self.time,
            is_sorted: self.is_sorted,
            to_first: self.reference.is_some(),
        }
    }

    /// Overrides the plan's numbers of repetitions.
    pub fn apply(&self, repeat: &mut RepeatRules) -> Result<(), String> {
        repeat.warmup = self.warmup.unwrap_or(repeat.warmup);
        repeat.seed = self.seed.unwrap_or(repeat.seed);
        repeat.budget = self.budget.or(repeat.budget);
        if let Some(runs) = self.runs {
            (repeat.min, repeat.max) = (runs, runs);
        }
        match (self.min_runs, self.max_runs) {
            (Some(min), Some(max)) if min > max => {
                return Err(format!("--min-runs={min} is more than --max-runs={max}"));
            }
            (min, max) => {
                repeat.min = min.unwrap_or(repeat.min).min(max.unwrap_or(u32::MAX));
                repeat.max = max.unwrap_or(repeat.max).max(repeat.min);
            }
        }
        Ok(())
    }
}

/// A parameter and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: String,
    pub values: Vec<String>,
}

impl Parameter {
    /// Returns whether a text contains it.
    pub fn stands_in(&self, text: &str) -> bool {
        text.contains(&format!("{{{}}}", self.name))
    }
}

/// Output style of the terminal; `None`: as the terminal allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Colours.
    pub color: Option<bool>,
    /// A progress line.
    pub progress: Option<bool>,
}

impl Style {
    /// A progress line only.
    pub const NO_COLOR: Style = Style { color: Some(false), progress: Some(true) };
}
