//! Log files over time, as fio writes them (fio(1), "LOG FILE FORMATS"): milliseconds, value,
//! direction (0 reads, 1 writes), bytes of a block, priority.

use crate::io::stats::Series;
use crate::io::{Job, Outcome};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Rates are taken so often where nothing else is said.
const INTERVAL: Duration = Duration::from_millis(500);

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Where.
    pub path: PathBuf,
    /// What.
    pub text: String,
}

/// The logs that jobs asked for: one for each clone, numbered from 1 through all jobs.
pub fn logs(jobs: &[Job], outcomes: &[Outcome]) -> Vec<LogFile> {
    let mut sorted: Vec<&Outcome> = outcomes.iter().collect();
    sorted.sort_by_key(|outcome| (outcome.job, outcome.clone));
    let mut files = Vec::new();
    for (at, outcome) in sorted.into_iter().enumerate() {
        let Some(job) = jobs.get(outcome.job) else { continue };
        let mut add = |prefix: &Option<PathBuf>, kind: &str, text: String| {
            if let Some(prefix) = prefix {
                files.push(LogFile { path: named(prefix, kind, at + 1), text });
            }
        };
        let interval = match job.logs.average {
            Duration::ZERO => INTERVAL,
            average => average,
        };
        let rates = |of: fn(&crate::io::Side) -> &Series, unit: f64| {
            rates(outcome.sides.each_ref().map(of), interval, unit)
        };
        add(&job.logs.bandwidth, "bw", rates(|side| &side.bandwidth, 1024.0));
        add(&job.logs.iops, "iops", rates(|side| &side.iops, 1.0));
    }
    files
}

/// `PREFIX_KIND.N.log`.
fn named(prefix: &Path, kind: &str, number: usize) -> PathBuf {
    let mut name = OsString::from(prefix);
    name.push(format!("_{kind}.{number}.log"));
    name.into()
}

/// Reads and writes of one clone, in the order of time.
fn rates(sides: [&Series; 2], interval: Duration, unit: f64) -> String {
    let mut out = String::new();
    let most = sides.iter().map(|series| series.samples()).max().unwrap_or(0);
    for at in 0..most {
        let end_ms = interval.as_millis() * (at as u128 + 1);
        for (direction, series) in sides.into_iter().enumerate() {
            if let Some(value) = series.values().get(at).filter(|_| series.max() > 0.0) {
                let _ = writeln!(out, "{end_ms}, {:.0}, {direction}, 0, 0", value / unit);
            }
        }
    }
    out
}
