//! Results of a worker: of each shard, and of itself when it ends.

use crate::folder::Trouble;
use crate::verdict::Judged;
use hakobu_transfer::run::Outcome;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Result of a shard that was worked on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Number of the shard.
    pub shard: u32,
    /// The worker that did it.
    pub worker: String,
    /// Its host.
    pub host: String,
    /// Number of the try; 0 for the first.
    pub generation: u32,
    /// Entries of the shard.
    pub entries: u64,
    /// Files transferred.
    pub files: u64,
    /// Bytes of content moved.
    pub bytes: u64,
    /// Entries that needed nothing.
    pub skipped: u64,
    /// Entries that could not be transferred.
    pub failed: u64,
    /// Entries that were gone.
    pub vanished: u64,
    /// Entries that were not what the plan saw, and were left alone.
    pub changed: u64,
    /// Entries that differ at both ends; of a verification, where `files` and `bytes` are those that
    /// were compared.
    #[serde(default)]
    pub differences: u64,
    /// Seconds of the worker's life at which it began and ended.
    pub from_s: f64,
    /// See `from_s`.
    pub to_s: f64,
    /// Jobs in use for most of the time.
    pub jobs: usize,
    /// Its verdict, if it ran long enough for one.
    pub verdict: Option<Judged>,
    /// Time of the transfer that the verdict is on.
    #[serde(skip)]
    pub(crate) judged_for: Duration,
    /// Problems: a sentence without names, how many, and the first one's path.
    pub problems: Vec<(String, u64, String)>,
    /// The shard cannot be read; `collect` transfers its entries.
    pub damaged: Option<String>,
}

impl Done {
    /// Takes over the verdict of a transfer; of several that of the longest.
    pub fn judge(&mut self, outcome: &Outcome) {
        if let Some(verdict) = &outcome.findings.verdict
            && outcome.took >= self.judged_for
        {
            self.verdict = Some(Judged::of(verdict));
            self.judged_for = outcome.took;
        }
    }
}

/// End of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing is left to do.
    Done,
    /// Another try may succeed.
    Again(String),
    /// No try will.
    Never(String),
}

impl From<Trouble> for Ended {
    fn from(trouble: Trouble) -> Ended {
        match trouble.again {
            true => Ended::Again(trouble.message),
            false => Ended::Never(trouble.message),
        }
    }
}
