//! Campaigns: described sets of measurements. `spec` reads the description (TOML), `data` makes data
//! sets, `tools` knows the programs, `plan` turns all of it into what is done for each run; `run`
//! does it in seeded random blocks, with a clock and a machine that tests can replace, and writes
//! [`crate::results`].

pub mod data;
mod elsewhere;
pub mod plan;
pub mod run;
pub mod spec;
pub mod tools;

use crate::results::{Cell, DataSet, Published};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Everything that is to be done, and nothing that has to be looked up any more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The campaign's name: letters, digits, dashes.
    pub name: String,
    /// Its headline.
    pub title: String,
    /// What it is to answer.
    pub question: String,
    /// The campaign as it was written.
    pub text: String,
    /// What the swept number is called.
    pub x_name: Option<String>,
    /// What is measured: `wall_s`, or a metric of the runs.
    pub metric: String,
    /// More of it is better.
    pub more_is_better: bool,
    /// Figures of the study that it repeats.
    pub published: Vec<Published>,
    /// Data sets to make before the first run, with the folder where each lies.
    pub data: Vec<(data::Recipe, PathBuf)>,
    /// Their facts.
    pub data_sets: Vec<DataSet>,
    /// Servers of this program to start before the first run, by the name that commands use.
    pub servers: Vec<ServerPlan>,
    /// Shell commands before the first run.
    pub setup: Vec<String>,
    /// Shell commands after the last one, whatever happened.
    pub teardown: Vec<String>,
    /// The cells, in the order of description, ids from 0.
    pub cells: Vec<Planned>,
    /// How often.
    pub repeat: Repeat,
    /// What was left out, with the command that installs it.
    pub left_out: Vec<String>,
    /// Programs that take part: the campaign's name for it and the words that start it.
    pub programs: Vec<(String, PathBuf)>,
    /// Folders by label, for the fingerprint of volumes.
    pub places: BTreeMap<String, PathBuf>,
    /// Another endpoint, for the counter-experiment: `http[s]://HOST[:PORT]`.
    pub other_endpoint: Option<String>,
}

/// A server to measure against.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerPlan {
    /// Its label.
    pub label: String,
    /// The address to listen on, host:port; decided by the plan, so that commands can name it.
    pub listen: String,
    /// The folder it serves; `None` for the null server.
    pub folder: Option<PathBuf>,
    /// Keys that the null server lists, and the size of each in bytes.
    pub null: (u64, u64),
    /// Time that each answer waits.
    pub latency: Duration,
    /// Bytes a second in each direction, all connections together.
    pub bandwidth_bytes_per_s: Option<u64>,
    /// Most requests that are served at once; more wait.
    pub in_flight_max: Option<usize>,
    /// Keys of the clients.
    pub access_key: String,
    /// The secret of that.
    pub secret_key: String,
    /// Buckets that exist from the beginning.
    pub buckets: Vec<String>,
}

/// How often each cell is run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repeat {
    /// Runs before that do not count.
    pub warmup: u32,
    /// Least runs of each cell.
    pub min: u32,
    /// Most runs of each cell.
    pub max: u32,
    /// A cell has enough where half its interval is below this share of its median.
    pub tight: f64,
    /// No run begins after so long.
    pub budget: Option<Duration>,
    /// The seed of the order.
    pub seed: u64,
}

/// One cell, ready to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planned {
    /// How it is recorded.
    pub cell: Cell,
    /// Before each run, not timed.
    pub prepare: Vec<Action>,
    /// What is timed.
    pub launch: Launch,
    /// After each run, not timed: shell commands.
    pub conclude: Vec<String>,
    /// What has to be there after it.
    pub check: Check,
    /// Numbers to take from its output.
    pub extract: Extract,
    /// The source, whose share in the page cache is looked at before each run.
    pub source: Option<PathBuf>,
    /// Limits that `prepare` puts on the disk of the target, and `conclude` takes off.
    pub disk: Option<DiskLimits>,
    /// Where the store that it writes to is, as commands name it; `None` for volumes and for servers
    /// of the campaign.
    pub endpoint: Option<String>,
}

/// Limits on a disk while a run goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskLimits {
    /// How they are put on.
    pub throttle: plan::Throttle,
    /// Operations a second, reads and writes each.
    pub iops: Option<u64>,
    /// Bytes a second, reads and writes each.
    pub bandwidth_bytes_per_s: Option<u64>,
}

/// Something that is done before a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Removes everything in this folder, and makes it where it is missing.
    Empty(PathBuf),
    /// Drops these files from the page cache; the run fails where some of them stay.
    Cold(PathBuf),
    /// Reads these files, so that they are in the page cache.
    Warm(PathBuf),
    /// Writes everything back (sync(2)), so that no run pays for the one before.
    Sync,
    /// A shell command; the run fails where it does.
    Shell(String),
}

/// What is run and timed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// Words; a command that needs a shell has `sh -c` in front.
    pub argv: Vec<String>,
    /// Variables on top of the environment.
    pub env: BTreeMap<String, String>,
    /// Where it runs.
    pub dir: Option<PathBuf>,
    /// What it reads from.
    pub stdin: Option<PathBuf>,
    /// It may use so many CPUs only (affinity).
    pub cpus: Option<usize>,
    /// Then it is killed, with all its children, and has failed.
    pub timeout: Option<Duration>,
    /// An exit code other than 0 is no failure.
    pub any_exit: bool,
}

/// What is looked at after a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Check {
    /// Only the exit code.
    #[default]
    Exit,
    /// The target has the files of the source, by relative name and size; `compare` of them (most:
    /// all) byte for byte, chosen by the run's seed.
    Tree {
        /// What was to be moved.
        source: PathBuf,
        /// Where it was to arrive.
        target: PathBuf,
        /// How many are compared.
        compare: u64,
    },
    /// So many regular files and bytes below a folder, whatever they are called; `None` counts only.
    Count {
        /// Where.
        target: PathBuf,
        /// How many files.
        files: u64,
        /// How many bytes.
        bytes: Option<u64>,
    },
}

/// What is taken from the output of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Extract {
    /// Nothing.
    #[default]
    Nothing,
    /// fio's JSON on standard output: `iops`, `bw_bytes_per_s`, `lat_mean_ns`, `clat_mean_ns`,
    /// `clat_p50_ns`, `clat_p99_ns`, `clat_p999_ns`, of reads and writes together, all jobs.
    FioJson,
    /// The summary line of a transfer with `--json`: its verdict, `bytes`, `files`, `jobs`.
    OwnJson,
}
