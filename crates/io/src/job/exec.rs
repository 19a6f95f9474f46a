//! The program of a job with `ioengine=exec`.

use std::path::PathBuf;
use std::time::Duration;

/// Options of `ioengine=exec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exec {
    /// The program (`program`).
    pub program: PathBuf,
    /// Its arguments, with white space between them (`arguments`).
    pub arguments: String,
    /// From SIGTERM to SIGKILL (`grace_time`).
    pub grace: Duration,
    /// Its output goes to files with the name of the job (`std_redirect`).
    pub redirects: bool,
}

impl Default for Exec {
    fn default() -> Exec {
        let (program, arguments) = (PathBuf::new(), String::new());
        Exec { program, arguments, grace: Duration::from_secs(1), redirects: true }
    }
}
