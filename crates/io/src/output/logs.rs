//! Log files over time, as fio writes them (fio(1), "LOG FILE FORMATS"): milliseconds, value,
//! direction (0 reads, 1 writes, 2 trims), bytes of a block, its offset with `log_offset`, priority: 1 for the
//! realtime class, or with `log_prio` the whole number.

use crate::job::{Ioprio, Job};
use crate::outcome::{LogEntry, Outcome};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The class of realtime.
const REALTIME: u8 = 1;

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    pub path: PathBuf,
    /// Content.
    pub text: String,
}

/// The logs that jobs asked for: one for each clone, numbered from 1 through all jobs.
pub fn logs(jobs: &[Job], outcomes: &[Outcome]) -> Vec<LogFile> {
    let mut sorted: Vec<&Outcome> = outcomes.iter().collect();
    sorted.sort_by_key(|outcome| (outcome.job, outcome.clone));
    let mut files = Vec::new();
    for (at, outcome) in sorted.into_iter().enumerate() {
        let Some(job) = jobs.get(outcome.job) else { continue };
        let (wanted, logged) = (&job.logs, &outcome.logged);
        for (prefix, kind, entries) in [
            (&wanted.bandwidth, "bw", &logged.bandwidth),
            (&wanted.iops, "iops", &logged.iops),
            (&wanted.latency, "slat", &logged.slat),
            (&wanted.latency, "clat", &logged.clat),
            (&wanted.latency, "lat", &logged.lat),
        ] {
            if let Some(prefix) = prefix {
                let text = lines(entries, job, outcome.trims);
                files.push(LogFile { path: named(prefix, kind, at + 1), text });
            }
        }
    }
    files
}

/// `PREFIX_KIND.N.log`.
fn named(prefix: &Path, kind: &str, number: usize) -> PathBuf {
    let mut name = OsString::from(prefix);
    name.push(format!("_{kind}.{number}.log"));
    name.into()
}

fn lines(entries: &[LogEntry], job: &Job, trims: bool) -> String {
    let mut out = String::with_capacity(entries.len() * 24);
    for entry in entries {
        let LogEntry { at_ms, value, write, bytes, offset, priority } = entry;
        let is_realtime = Ioprio::of(*priority).class == REALTIME;
        let way = if *write && trims { 2 } else { u8::from(*write) };
        let _ = write!(out, "{at_ms}, {value}, {way}, {bytes}, ");
        if job.log_offset {
            let _ = write!(out, "{offset}, ");
        }
        let _ = match job.log_priority {
            true => writeln!(out, "0x{priority:04x}"),
            false => writeln!(out, "{}", u8::from(is_realtime)),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::LogPrefixes;
    use crate::outcome::LogEntries;
    use crate::output::tests::job;

    #[test]
    fn each_clone_has_its_own() {
        let (bytes, offset, priority) = (4096, 8192, 0x2003);
        let entry = LogEntry { at_ms: 500, value: 1200, write: true, bytes, offset, priority };
        let logged = |entries: &[LogEntry]| LogEntries {
            bandwidth: entries.to_vec(),
            clat: entries.to_vec(),
            ..LogEntries::default()
        };
        let logs_of = LogPrefixes {
            bandwidth: Some("x/a".into()),
            latency: Some("l".into()),
            ..LogPrefixes::default()
        };
        let jobs = [job("quiet", "read"), Job { logs: logs_of, clones: 2, ..job("a", "write") }];
        let outcomes = [
            Outcome { job: 1, clone: 1, logged: logged(&[entry, entry]), ..Outcome::default() },
            Outcome { job: 1, clone: 0, logged: logged(&[]), ..Outcome::default() },
            Outcome { job: 0, ..Outcome::default() },
        ];
        let files = logs(&jobs, &outcomes);
        let names: Vec<_> = files.iter().map(|file| file.path.to_str().unwrap()).collect();
        assert_eq!(
            names,
            [
                "x/a_bw.2.log",
                "l_slat.2.log",
                "l_clat.2.log",
                "l_lat.2.log",
                "x/a_bw.3.log",
                "l_slat.3.log",
                "l_clat.3.log",
                "l_lat.3.log",
            ]
        );
        assert_eq!(files[0].text, "");
        assert_eq!(files[4].text, "500, 1200, 1, 4096, 1\n500, 1200, 1, 4096, 1\n");
        let whole = Job { log_priority: true, log_offset: true, ..jobs[1].clone() };
        assert_eq!(lines(&[entry], &whole, false), "500, 1200, 1, 4096, 8192, 0x2003\n");
    }
}
