//! Campaigns: described sets of measurements. `spec` parses the description (TOML), `data` makes data sets, `tools` knows
//! the programs and `template` their commands, `plan` resolves all of it to a [`CampaignPlan`]; `run` executes it in
//! seeded random blocks, with a clock and a machine that tests can replace, and writes [`crate::results`].
//!
//! This file holds the plan: cells that are ready to run, with their actions, commands and checks.

pub mod data;
mod files;
pub mod own_folder;
pub mod plan;
mod random;
pub mod run;
pub mod spec;
pub mod template;
pub mod throttle;
pub(crate) mod tools;

use crate::campaign::data::DataRecipe;
use crate::campaign::throttle::DiskThrottle;
use crate::campaign::tools::OutputFormat;
use crate::distinct;
use crate::results::{Cell, ResultsHeader};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A fully resolved campaign.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CampaignPlan {
    /// Header of its results, without what only the machine and the session know.
    pub header: ResultsHeader,
    /// Data sets to make before the first run, with their folders.
    pub data: Vec<(DataRecipe, PathBuf)>,
    /// Embedded servers to start before the first run, by the label that commands use.
    pub servers: Vec<ServerPlan>,
    /// Folders owned by the campaign, created or recognised by their marks before the first run.
    pub own: Vec<PathBuf>,
    /// Shell commands before the first run.
    pub setup: Vec<String>,
    /// Shell commands after the last run, also after a failure.
    pub teardown: Vec<String>,
    /// Cells in the order of description, ids from 0.
    pub cells: Vec<PlannedCell>,
    /// Number of runs.
    pub repeat: RepeatRules,
    /// Programs that take part: name in the campaign and the words that start it.
    pub programs: Vec<(String, PathBuf)>,
    /// Folders by label, for the fingerprint of volumes.
    pub places: BTreeMap<String, PathBuf>,
    /// Alternative endpoint for the counter-experiment: `http[s]://HOST[:PORT]`.
    pub other_endpoint: Option<String>,
}

/// An embedded server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerPlan {
    /// Label.
    pub label: String,
    /// Address to listen on, host:port; chosen by the plan, so that commands can name it.
    pub listen: String,
    /// Folder to serve; `None` for the null server.
    pub folder: Option<PathBuf>,
    /// Number of keys that the null server lists, and the size of each in bytes.
    pub null: (u64, u64),
    /// Delay of each answer.
    pub latency: Duration,
    /// Bytes per second in each direction, over all connections.
    pub bandwidth_bytes_per_s: Option<u64>,
    /// Most requests served at once; further ones queue.
    pub in_flight_max: Option<usize>,
    /// Access key of clients.
    pub access_key: String,
    /// Secret key of clients.
    pub secret_key: String,
    /// Buckets that exist from the start.
    pub buckets: Vec<String>,
}

/// Number of runs of each cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RepeatRules {
    /// Warm-up runs, which do not count.
    pub warmup: u32,
    /// Minimum runs of each cell.
    pub min: u32,
    /// Maximum runs of each cell.
    pub max: u32,
    /// A cell has enough runs if half its interval is below this share of its median.
    pub tight: f64,
    /// Time after which no run begins.
    pub budget: Option<Duration>,
    /// Seed of the order of runs.
    pub seed: u64,
}

/// A cell that is ready to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlannedCell {
    /// Description in the results.
    pub cell: Cell,
    /// Actions before each run, not timed.
    pub prepare: Vec<RunAction>,
    /// The timed command.
    pub launch: Launch,
    /// Shell commands after each run, not timed.
    pub conclude: Vec<String>,
    /// Check after each run.
    pub check: RunCheck,
    /// Metrics to extract from its output.
    pub extract: OutputFormat,
    /// Folder that is read; its share in the page cache is recorded before each run.
    pub source: Option<PathBuf>,
    /// Disk limits that `prepare` sets and `conclude` removes.
    pub disk: Option<DiskLimits>,
    /// Endpoint of the store that it writes to, as written in commands; `None` for volumes and for embedded
    /// servers.
    pub endpoint: Option<String>,
}

impl PlannedCell {
    /// True if commands contain the endpoint, so that it can be replaced. Settings files are not searched.
    pub fn names_endpoint(&self) -> bool {
        let Some(endpoint) = &self.endpoint else { return false };
        let mut texts = self.launch.argv.iter().chain(self.launch.env.values());
        texts.any(|text| text.contains(endpoint))
    }

    /// A copy of the cell with the endpoint replaced in its command and in the commands before and after it.
    pub fn at(&self, endpoint: &str) -> PlannedCell {
        let mut other = self.clone();
        let Some(here) = other.endpoint.replace(endpoint.to_owned()) else { return other };
        let exchange = |text: &mut String| *text = text.replace(&here, endpoint);
        other.launch.argv.iter_mut().for_each(exchange);
        other.launch.env.values_mut().for_each(exchange);
        other.conclude.iter_mut().for_each(exchange);
        for action in &mut other.prepare {
            if let RunAction::Shell(command) = action {
                exchange(command);
            }
        }
        exchange(&mut other.cell.command);
        other
    }
}

/// Repeats one cell of each group from `first` on: a difference between the two is noise. Of the cells with the
/// lowest rank it is the middle one.
pub(crate) fn add_controls(
    cells: &mut Vec<PlannedCell>,
    first: usize,
    rank: impl Fn(&PlannedCell) -> usize,
) {
    let made = cells.get(first..).unwrap_or_default();
    let middle = |group: &str| {
        let of_group = || made.iter().filter(|planned| planned.cell.group == group);
        let lowest = of_group().map(&rank).min()?;
        let preferred: Vec<_> = of_group().filter(|planned| rank(planned) == lowest).collect();
        preferred.get(preferred.len() / 2).map(|planned| (*planned).clone())
    };
    let groups = distinct(made.iter().map(|planned| planned.cell.group.as_str()));
    let controls: Vec<PlannedCell> = groups.into_iter().filter_map(middle).collect();
    for mut control in controls {
        control.cell.control_of = Some(control.cell.id);
        control.cell.id = u32::try_from(cells.len()).unwrap_or(u32::MAX);
        cells.push(control);
    }
}

/// Disk limits during a run.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskLimits {
    /// Mechanism that sets them.
    pub throttle: DiskThrottle,
    /// Operations per second, for reads and writes each.
    pub iops: Option<u64>,
    /// Bytes per second, for reads and writes each.
    pub bandwidth_bytes_per_s: Option<u64>,
}

/// An action before a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunAction {
    /// Removes everything in a folder; creates it if it is missing.
    Empty {
        /// The campaign's own folder that contains it.
        own: PathBuf,
        /// Its path below that folder.
        below: PathBuf,
    },
    /// Evicts these files from the page cache; the run fails if some pages stay.
    Cold(PathBuf),
    /// Reads these files into the page cache.
    Warm(PathBuf),
    /// Writes all dirty pages back (sync(2)), so that a run does not pay for the previous one.
    Sync,
    /// A shell command; the run fails if it fails.
    Shell(String),
}

/// A timed command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// Arguments; a command that needs a shell starts with `sh -c`.
    pub argv: Vec<String>,
    /// Variables added to the environment.
    pub env: BTreeMap<String, String>,
    /// File for standard input.
    pub stdin: Option<PathBuf>,
    /// Number of CPUs that it may use (affinity).
    pub cpus: Option<usize>,
    /// Time after which it is killed with all its children and counts as failed.
    pub timeout: Option<Duration>,
    /// Exit codes that count as success.
    pub accepts: ExitCodes,
    /// Destination of its output.
    pub output: OutputSink,
}

/// Exit codes that count as success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ExitCodes {
    /// 0.
    #[default]
    Zero,
    /// Any code.
    Any,
    /// 0 and these.
    Codes(Vec<i32>),
}

impl ExitCodes {
    /// True if this code counts as success.
    pub fn accepts(&self, code: i32) -> bool {
        match self {
            ExitCodes::Zero => code == 0,
            ExitCodes::Any => true,
            ExitCodes::Codes(codes) => code == 0 || codes.contains(&code),
        }
    }
}

/// Destination of the output of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OutputSink {
    /// Pipes; the output is kept to extract metrics and to explain failures.
    #[default]
    Pipe,
    /// Standard output to /dev/null; standard error is kept.
    Null,
    /// Standard output and standard error of this program.
    Inherit,
    /// Standard output to a file, truncated for each run; standard error is kept.
    File(PathBuf),
}

/// Check after a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RunCheck {
    /// The exit code only.
    #[default]
    Exit,
    /// The target has the files of the source by relative name and size; up to `compare` files, chosen by the
    /// run's seed, are compared byte for byte.
    Tree {
        /// Source folder.
        source: PathBuf,
        /// Target folder.
        target: PathBuf,
        /// Most files to compare.
        compare: u64,
    },
    /// Number of regular files and bytes below a folder, regardless of names. Bytes are not checked if
    /// `None`.
    Count {
        /// Folder.
        target: PathBuf,
        /// Number of files.
        files: u64,
        /// Number of bytes.
        bytes: Option<u64>,
    },
}
