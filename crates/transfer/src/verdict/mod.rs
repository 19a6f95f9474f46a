//! Why not faster: which resource limits a transfer, by what evidence, and how sure that is. Pure:
//! facts in, a verdict out.

mod advice;
mod facts;
mod judge;
mod proof;
mod rules;
mod signals;
mod view;

pub use facts::*;
pub use judge::judge;
pub use proof::{Progress, Prover, Trial};

/// What limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// All CPUs that the program may use.
    Cpu,
    /// One thread, while other CPUs have nothing to do.
    Thread,
    /// Operations a second of a disk.
    DiskIops,
    /// Bytes a second of a disk.
    DiskBandwidth,
    /// The way to the server.
    Network,
    /// The server.
    Server,
    /// A lock in the kernel: that of one directory, say.
    Lock,
    /// Waiting, with room for more jobs.
    Latency,
    /// The source.
    Source,
    /// The target.
    Target,
    /// A limit that the user set.
    UserLimit,
    /// This program: its planner, its budget of memory.
    Own,
    /// Nothing that can be named.
    None,
}

/// How sure a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Fewer than two independent signals, or signals that disagree.
    NotDetermined,
    /// Two independent signals point there.
    Consistent,
    /// A known ceiling is reached.
    AtLimit,
    /// An experiment that changed only this showed it.
    Proven,
}

/// One signal: what was measured, and what it was compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// In words of the field, with its unit at the end: `cpu_used_cores`, `disk_write_iops`.
    pub signal: &'static str,
    /// Of what: a device, a side; empty where that is clear.
    pub of: String,
    /// What was measured.
    pub value: f64,
    /// The ceiling or threshold that it was compared with.
    pub limit: f64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What limits.
    pub resource: Resource,
    /// How sure that is.
    pub level: Level,
    /// By what.
    pub evidence: Vec<Evidence>,
    /// What would help and what would change nothing, one or two sentences.
    pub advice: String,
    /// Everything that was looked at, also what names nothing.
    pub signals: Vec<Signal>,
    /// What was tried out.
    pub experiments: Vec<Experiment>,
}

/// A signal, with what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// What was measured.
    pub evidence: Evidence,
    /// What follows from it, in a few words.
    pub says: &'static str,
}

#[cfg(test)]
mod tests;
