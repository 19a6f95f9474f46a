//! rsync's lines of progress: below the name of a transferred file (`--progress`), and of the whole run
//! (`--info=progress2`).

use crate::number::Digits;
use hakobu_core::event::Item;
use hakobu_core::meter::Progress;
use hakobu_core::unit::Kind;
use hakobu_transfer::run::Outcome;
use std::time::Duration;

/// Position of a file in its run, as rsync counts.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Files transferred so far, with this one.
    pub transferred: u64,
    /// Entries found and not finished.
    pub left: u64,
    /// Entries found.
    pub found: u64,
    /// Everything has been found.
    pub listed: bool,
}

impl Position {
    /// Returns the position at a state of the counters.
    pub fn of(at: &Progress, transferred: u64) -> Position {
        let left = at.found.saturating_sub(at.done);
        Position { transferred, left, found: at.found, listed: at.listed }
    }
}

/// Returns whether an entry has such a line.
pub fn has_line(item: &Item<'_>) -> bool {
    item.kind == Kind::File && item.change.transferred
}

/// Appends the line. It begins with a carriage return, as rsync's does, because programs that read progress expect it.
pub fn push(bytes: u64, took: Duration, digits: Digits, at: Position, out: &mut Vec<u8>) {
    let state = State { bytes, percent: 100, bytes_per_s: per_s(bytes, took), time: took, at };
    state.push(digits, out);
    out.push(b'\n');
}

/// State of a file or of a run at one moment.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Content moved, in bytes.
    pub bytes: u64,
    /// Part of the content.
    pub percent: u64,
    /// Rate in bytes per second.
    pub bytes_per_s: f64,
    /// Time that it took, or that is left.
    pub time: Duration,
    /// Position in the run.
    pub at: Position,
}

impl State {
    /// Returns the last state of a run. `percent`: the part of the content that moved, where not all of it did.
    pub fn last(outcome: &Outcome, at: Position, percent: u64) -> State {
        let totals = &outcome.totals;
        let all = !outcome.stopped && totals.failed + totals.vanished == 0 && totals.bytes > 0;
        State {
            bytes: totals.bytes,
            percent: if all { 100 } else { percent },
            bytes_per_s: per_s(totals.bytes, outcome.took),
            time: outcome.took,
            at,
        }
    }

    /// Appends rsync's line, from the carriage return on, without an end.
    pub fn push(&self, digits: Digits, out: &mut Vec<u8>) {
        let Position { transferred, left, found, listed } = self.at;
        let (size, percent, rate) = (digits.size(self.bytes), self.percent, rate(self.bytes_per_s));
        let s = self.time.as_secs();
        let clock = format!("{:4}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
        let scan = if listed { "to" } else { "ir" };
        let line = format!(
            "\r{size:>15} {percent:>3}% {rate} {clock} (xfr#{transferred}, {scan}-chk={left}/{found})"
        );
        out.extend_from_slice(line.as_bytes());
    }
}

/// Returns the mean rate of a transfer in bytes per second.
fn per_s(bytes: u64, took: Duration) -> f64 {
    bytes as f64 / took.as_secs_f64().max(0.001)
}

/// Returns a rate in units of 1024 in a field of rsync's width.
fn rate(bytes_per_s: f64) -> String {
    let kib = bytes_per_s / 1024.0;
    let (value, unit) = match kib {
        kib if kib > 1_048_576.0 => (kib / 1_048_576.0, "GB/s"),
        kib if kib > 1024.0 => (kib / 1024.0, "MB/s"),
        kib => (kib, "kB/s"),
    };
    format!("{value:7.2}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_rsyncs() {
        let line = |bytes, ms, digits, listed| {
            let at = Position { transferred: 2, left: 2, found: 5, listed };
            let mut out = Vec::new();
            push(bytes, Duration::from_millis(ms), digits, at, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        };
        assert_eq!(
            line(50_000, 1, Digits::Grouped, true),
            "\r         50,000 100%   47.68MB/s    0:00:00 (xfr#2, to-chk=2/5)\n"
        );
        assert_eq!(
            line(0, 3_723_000, Digits::Grouped, false),
            "\r              0 100%    0.00kB/s    1:02:03 (xfr#2, ir-chk=2/5)\n"
        );
        assert_eq!(
            line(5_000_000_000, 1_000, Digits::Thousands, true),
            "\r          5.00G 100%    4.66GB/s    0:00:01 (xfr#2, to-chk=2/5)\n"
        );
    }
}
