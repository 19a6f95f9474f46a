//! A fully resolved campaign: its plan, its servers, the number of its runs.

use super::data::DataRecipe;
use super::planned::PlannedCell;
use crate::results::ResultsHeader;
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
