//! The verdict: the resource that limits a transfer, with evidence and level. Pure.

mod advice;
mod facts;
mod judge;
mod proof;
mod rules;
mod signals;
mod thresholds;
mod view;
mod words;

pub use facts::*;
pub use judge::judge;
pub use proof::{Progress, Prover, Trial};
pub use words::{level_words, measure, sentence, words};

use std::borrow::Cow;

/// The limiting resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// All CPUs that the program may use.
    Cpu,
    /// One thread, while other CPUs are idle.
    Thread,
    /// Operations per second of a disk.
    DiskIops,
    /// Bytes per second of a disk.
    DiskBandwidth,
    /// Network path to the server.
    Network,
    /// The server.
    Server,
    /// A kernel lock, for example of a directory.
    Lock,
    /// Latency: units wait, and more jobs would help.
    Latency,
    /// The peer of a command's connections: a server, or the network path to it.
    Peer,
    /// The source.
    Source,
    /// The target.
    Target,
    /// A limit set by the user.
    UserLimit,
    /// This program: its planner or memory budget.
    Own,
    /// No resource can be named.
    None,
}

/// Confidence of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Fewer than two independent signals, or signals that disagree.
    NotDetermined,
    /// Two independent signals.
    Consistent,
    /// A known ceiling is reached.
    AtLimit,
    /// Shown by an experiment that changed only this resource.
    Proven,
}

/// A signal: measured value and reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Name with its unit as suffix: `cpu_used_cores`, `disk_write_iops`.
    pub signal: Cow<'static, str>,
    /// Device or side that it refers to; may be empty.
    pub of: String,
    /// Measured value.
    pub value: f64,
    /// Ceiling or threshold for comparison.
    pub limit: f64,
}

/// Result of [`judge()`].
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The limiting resource.
    pub resource: Resource,
    /// Name in a sentence: `the CPU`, `one thread of the command`.
    pub named: &'static str,
    /// Confidence.
    pub level: Level,
    /// Signals that support it.
    pub evidence: Vec<Evidence>,
    /// Changes that would help and changes without effect, one or two sentences.
    pub advice: String,
    /// Candidates between which the signals did not decide; else empty.
    pub open: Vec<Resource>,
    /// All signals, including those that name nothing.
    pub signals: Vec<Signal>,
    /// Experiments made.
    pub experiments: Vec<Experiment>,
}

/// A signal with its meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// Measured value.
    pub evidence: Evidence,
    /// Its meaning, in a few words.
    pub says: &'static str,
}

#[cfg(test)]
mod tests;
