//! Progress as text and as a JSON line.

use super::pace::{Known, Moment};
use crate::number;
use crate::show::transferred::{Position, State};
use serde::Serialize;
use std::time::Duration;

/// Minimum time without progress that is mentioned.
const STILL_MIN: Duration = Duration::from_secs(3);

/// Returns the line beside the bar: amount, and remaining time.
pub fn amounts(now: &Moment) -> String {
    let mut parts = Vec::new();
    if let Some(fraction) = now.fraction {
        // 100 % is shown only at the end.
        parts.push(format!("{} %", (fraction * 100.0).floor().min(99.0)));
    }
    parts.extend(bytes(now));
    if let Some(left) = now.left {
        parts.push(format!("{} left", clock(left)));
    }
    if parts.is_empty() {
        parts.push(clock(now.elapsed));
    }
    parts.join(", ")
}

/// Returns the line below: counts, rates, and the limiting resource.
pub fn rates(now: &Moment) -> String {
    let mut parts = vec![files(now)];
    if now.at.bytes > 0 {
        let (rate, mean) = (now.bytes_per_s as u64, now.bytes_per_s_mean as u64);
        parts.push(format!("{}/s (mean {}/s)", number::bytes(rate), number::bytes(mean)));
    } else if now.at.done > 0 {
        parts.push(format!("{} files/s", number::grouped(now.entries_per_s as u64)));
    }
    if now.at.undrained > 0 {
        parts.push(format!("{} not on the device yet", number::bytes(now.at.undrained)));
    }
    if now.at.jobs > 0 {
        parts.push(number::things(now.at.jobs, "job"));
    }
    if now.at.jobs > 0 && now.still >= STILL_MIN {
        parts.push(format!("no answer for {} s", now.still.as_secs()));
    }
    if let Some(limit) = now.at.limit {
        parts.push(format!("limited by: {limit}"));
    }
    if now.failed > 0 {
        parts.push(format!("{} failed", number::grouped(now.failed)));
    }
    parts.join(", ")
}

/// Returns both in one line, for a pipe and for SIGUSR1.
pub fn line(now: &Moment) -> String {
    format!("{}, {}", amounts(now), rates(now))
}

/// Returns the state of a run for rsync's line. The number of transferred files is that of finished entries.
pub fn state(now: &Moment) -> State {
    let part = now.at.bytes as f64 / now.bytes_total.max(1) as f64;
    let Moment { at, bytes_per_s, .. } = *now;
    State {
        bytes: at.bytes,
        // 100 % is shown only at the end.
        percent: ((part * 100.0) as u64).min(99),
        bytes_per_s,
        time: now.left.unwrap_or(now.elapsed),
        at: Position::of(&at, at.done),
    }
}

fn bytes(now: &Moment) -> Option<String> {
    let (done, total) = (now.at.bytes, now.bytes_total);
    let of = match now.known {
        _ if done == 0 && total == 0 => return None,
        Known::AtLeast if total <= done => return Some(number::bytes(done)),
        Known::AtLeast => "of at least",
        Known::About => "of about",
        Known::Exactly => "of",
    };
    Some(format!("{} {of} {}", number::bytes(done), number::bytes(total)))
}

fn files(now: &Moment) -> String {
    let count = number::grouped;
    match (now.at.listed, now.at.found > now.at.done) {
        (true, _) => format!("{}/{} files", count(now.at.done), count(now.at.found)),
        (false, true) => {
            format!("{} of at least {} files", count(now.at.done), count(now.at.found))
        }
        (false, false) => format!("{} files", count(now.at.done)),
    }
}

/// Returns a time to the nearest second: `0:05`, `12:34`, `1:02:03`.
fn clock(time: Duration) -> String {
    let s = time.as_secs_f64().round() as u64;
    match s / 3600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        h => format!("{h}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

/// The JSON line of a moment.
#[derive(Serialize)]
pub struct Line {
    event: &'static str,
    elapsed_s: f64,
    files: u64,
    files_total: u64,
    bytes: u64,
    bytes_total: u64,
    listed: bool,
    estimated: bool,
    bytes_per_s: f64,
    bytes_per_s_mean: f64,
    files_per_s: f64,
    fraction: Option<f64>,
    left_s: Option<f64>,
    still_s: f64,
    jobs: u64,
    failed: u64,
    limit: Option<&'static str>,
}

impl From<&Moment> for Line {
    fn from(now: &Moment) -> Line {
        Line {
            event: "progress",
            elapsed_s: now.elapsed.as_secs_f64(),
            files: now.at.done,
            files_total: now.at.found,
            bytes: now.at.bytes,
            bytes_total: now.bytes_total,
            listed: now.at.listed,
            estimated: now.known != Known::Exactly,
            bytes_per_s: now.bytes_per_s.round(),
            bytes_per_s_mean: now.bytes_per_s_mean.round(),
            files_per_s: now.entries_per_s.round(),
            fraction: now.fraction,
            left_s: now.left.map(|left| left.as_secs_f64()),
            still_s: now.still.as_secs_f64(),
            jobs: now.at.jobs,
            failed: now.failed,
            limit: now.at.limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_core::meter::Progress;

    #[test]
    fn totals_say_how_well_they_are_known() {
        let at = Progress {
            found: 2000,
            sized: 2000,
            done: 1500,
            bytes: 81_920_000,
            bytes_ahead: 163_840_000,
            jobs: 16,
            limit: Some("CPU"),
            ..Progress::default()
        };
        let mut now = Moment {
            at,
            elapsed: Duration::from_secs(3),
            bytes_total: at.bytes_ahead,
            bytes_per_s: 30e6,
            bytes_per_s_mean: 27.31e6,
            ..Moment::default()
        };
        assert_eq!(amounts(&now), "81.92 MB of at least 163.84 MB");
        assert_eq!(
            rates(&now),
            "1,500 of at least 2,000 files, 30.00 MB/s (mean 27.31 MB/s), 16 jobs, limited by: CPU"
        );
        (now.at.listed, now.known) = (true, Known::About);
        (now.fraction, now.left) = (Some(0.999), Some(Duration::from_secs(3723)));
        now.failed = 2;
        let text = line(&now);
        assert!(
            text.starts_with("99 %, 81.92 MB of about 163.84 MB, 1:02:03 left, 1,500/2,000 files"),
            "{text}"
        );
        assert!(text.ends_with(", 2 failed"), "{text}");
        now.still = Duration::from_millis(2999);
        assert!(!rates(&now).contains("no answer"), "{}", rates(&now));
        now.still = Duration::from_millis(12_500);
        assert!(rates(&now).contains("16 jobs, no answer for 12 s, "), "{}", rates(&now));
        now.known = Known::Exactly;
        assert!(line(&now).contains("81.92 MB of 163.84 MB"));
    }

    #[test]
    fn progress_without_bytes_or_total() {
        let at = Progress { found: 1500, done: 1500, ..Progress::default() };
        let elapsed = Duration::from_millis(64_600);
        let now = Moment { at, elapsed, entries_per_s: 23.0, ..Moment::default() };
        assert_eq!(line(&now), "1:05, 1,500 files, 23 files/s");
    }
}
