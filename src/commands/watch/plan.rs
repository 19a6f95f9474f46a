//! The parsed command line of `watch`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The subject to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A command to start: its name and arguments, at least the name.
    Command(Vec<OsString>),
    /// A running process.
    Pid(u32),
    /// The machine.
    Machine,
}

/// The parsed command line.
#[derive(Debug)]
pub struct Plan {
    pub(super) subject: Subject,
    /// `--interval`.
    pub(super) every: Option<Duration>,
    pub(super) interval: Duration,
    /// End after this many intervals.
    pub(super) count: Option<u64>,
    pub(super) live: bool,
    pub(super) quiet: bool,
    pub(super) output: Option<PathBuf>,
    pub(super) csv: Option<PathBuf>,
    pub(super) json: Option<PathBuf>,
    pub(super) svg: Option<PathBuf>,
}
