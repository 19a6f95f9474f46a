//! Final statistics as text: rsync's `--stats` and the line of totals.

use crate::number::{self, Digits};
use hakobu_core::unit::Totals;
use hakobu_sys::proc::ResourceUsage;
use hakobu_transfer::run::{Outcome, Traffic};
use std::fmt::Write;
use std::time::Duration;

/// Returns rsync's statistics, with its labels. Without the lines about its file list and protocol, as there is
/// neither.
pub fn stats(outcome: &Outcome, digits: Digits, dry_run: bool) -> String {
    let totals = &outcome.totals;
    let count = |n| digits.count(n);
    let of = |parts: &[(&str, u64)]| {
        let all: u64 = parts.iter().map(|(_, n)| n).sum();
        let some: Vec<String> = parts
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(kind, n)| format!("{kind}: {}", count(*n)))
            .collect();
        if all == 0 { "0".to_owned() } else { format!("{} ({})", count(all), some.join(", ")) }
    };
    let seen = of(&[
        ("reg", totals.seen_files),
        ("dir", totals.seen_dirs),
        ("link", totals.seen_links),
        ("special", totals.seen_nodes),
    ]);
    let created = of(&[
        ("reg", totals.files_created),
        ("dir", totals.dirs_created),
        ("link", totals.links_created),
    ]);
    let crossed = outcome.traffic.map_or_else(String::new, |Traffic { sent, received }| {
        format!(
            "Total bytes sent: {}\nTotal bytes received: {}\n",
            digits.size(sent),
            digits.size(received)
        )
    });
    format!(
        "\nNumber of files: {seen}\n\
         Number of created files: {created}\n\
         Number of deleted files: {}\n\
         Number of regular files transferred: {}\n\
         Total file size: {} bytes\n\
         Total transferred file size: {} bytes\n\
         Literal data: {} bytes\n\
         Matched data: {} bytes\n\
         {crossed}",
        count(totals.deleted),
        count(totals.files),
        digits.size(totals.seen_bytes),
        digits.size(totals.bytes),
        digits.size(if dry_run { 0 } else { literal(totals) }),
        digits.size(totals.bytes_matched),
    )
}

/// Returns the bytes of content that were sent.
fn literal(totals: &Totals) -> u64 {
    totals.bytes.saturating_sub(totals.bytes_matched)
}

/// Returns rsync's last two lines. Where both ends are on this machine, the content that was copied counts as sent, and
/// nothing as received.
pub fn ending(outcome: &Outcome, digits: Digits, dry_run: bool) -> String {
    let totals = &outcome.totals;
    let copied = Traffic { sent: if dry_run { 0 } else { literal(totals) }, received: 0 };
    let Traffic { sent, received } = outcome.traffic.unwrap_or(copied);
    let crossed = sent + received;
    let ratio = |whole: u64, part: f64| if part > 0.0 { whole as f64 / part } else { 0.0 };
    let rate = digits.decimal(ratio(crossed, outcome.took.as_secs_f64()));
    let speedup = match digits {
        Digits::Plain => digits,
        _ => Digits::Grouped,
    }
    .decimal(ratio(totals.seen_bytes, crossed as f64));
    format!(
        "\nsent {} bytes  received {} bytes  {rate} bytes/sec\ntotal size is {}  speedup is {speedup}{}\n",
        digits.size(sent),
        digits.size(received),
        digits.size(totals.seen_bytes),
        if dry_run { " (DRY RUN)" } else { "" },
    )
}

/// Returns s5cmd's `--stat`: operations, and resources used.
pub fn requests(command: &str, outcome: &Outcome, used: &ResourceUsage) -> String {
    let totals = &outcome.totals;
    let done = totals.files + totals.links_created + totals.deleted;
    let failed = totals.failed + totals.vanished;
    let requests = &outcome.requests;
    format!(
        "\nOperation\tTotal\tError\tSuccess\n{command}\t{}\t{failed}\t{done}\n\n\
         Requests: {}\nRequests retried: {}\nRequests slowed down by the server: {}\n\
         Connections opened: {}\nBytes: {}\n\
         Real: {:.3} s\nUser: {:.3} s\nSystem: {:.3} s\n",
        done + failed,
        requests.succeeded,
        requests.retries,
        requests.throttled,
        requests.connections,
        totals.bytes,
        outcome.took.as_secs_f64(),
        used.user.as_secs_f64(),
        used.sys.as_secs_f64(),
    )
}

/// Maximum number of columns of a line of totals, with the name of the program before it.
const COLUMNS_MAX: usize = 100 - "hakobu: ".len();

/// What the totals of a run say beside its numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct SummaryTerms<'a> {
    /// Verb for the files: `copied`, `moved`.
    pub done: &'a str,
    /// Nothing was changed.
    pub dry_run: bool,
    /// CPU times are shown (`--stats`).
    pub used: Option<&'a ResourceUsage>,
    /// Part of the time in which the program was stopped (Ctrl-Z).
    pub stopped: Duration,
}

/// Returns the totals of a run: one line, or more where it would be longer than 100 columns.
pub fn summary(outcome: &Outcome, terms: &SummaryTerms<'_>) -> Vec<String> {
    let mut lines = wrapped(counts(&outcome.totals, terms));
    let counts = lines.pop().unwrap_or_default();
    let mut speed = speed(outcome, terms);
    loop {
        let line = format!("{counts}; {}", speed.join(", "));
        // The number of jobs goes first, then that of files per second.
        match speed.len() {
            _ if line.len() <= COLUMNS_MAX => lines.push(line),
            0..=2 => lines.extend([counts, speed.join(", ")]),
            length => {
                speed.truncate(length - 1);
                continue;
            }
        }
        return lines;
    }
}

/// Joins parts, on as many lines as they need.
fn wrapped(parts: Vec<String>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.len() + part.len() + 3 <= COLUMNS_MAX => {
                line.push_str(", ");
                line.push_str(&part);
            }
            Some(line) => {
                line.push(',');
                lines.push(part);
            }
            None => lines.push(part),
        }
    }
    lines
}

fn counts(totals: &Totals, terms: &SummaryTerms<'_>) -> Vec<String> {
    let done = if terms.dry_run { "to be copied" } else { terms.done };
    let files = number::things(totals.files, "file");
    let mut parts = vec![match totals.bytes {
        0 => format!("{files} {done}"),
        bytes => format!("{files} and {} {done}", number::bytes(bytes)),
    }];
    if totals.bytes_matched > 0 {
        parts.push(format!("{} of it matched", number::bytes(totals.bytes_matched)));
    }
    let plural = |count: u64, one: &'static str, many: &'static str| match count {
        1 => one,
        _ => many,
    };
    for (count, what) in [
        (totals.dirs_created, plural(totals.dirs_created, "new directory", "new directories")),
        (totals.links_created, created_links(totals)),
        (totals.metadata, "with new attributes"),
        (totals.unchanged(), "unchanged"),
        (totals.left_out, "skipped"),
        (totals.deleted, "deleted"),
        (totals.removed_sources, "removed from the source"),
        (totals.vanished, "vanished"),
        (totals.failed, "failed"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", number::grouped(count)));
        }
    }
    parts
}

/// Returns the name of what `links_created` counts.
fn created_links(totals: &Totals) -> &'static str {
    match (totals.seen_nodes, totals.links_created) {
        (0, 1) => "new link",
        (0, _) => "new links",
        // Devices, FIFOs and sockets are counted with them.
        (_, 1) => "new link or special file",
        (_, _) => "new links and special files",
    }
}

/// Returns the parts about time: the ones behind the first two may be left out, from the last one on.
fn speed(outcome: &Outcome, terms: &SummaryTerms<'_>) -> Vec<String> {
    let totals = &outcome.totals;
    let took = outcome.took.saturating_sub(terms.stopped);
    let seconds = took.as_secs_f64();
    let mut time = format!("{seconds:.2} s");
    if let Some(used) = terms.used {
        let (user, sys) = (used.user.as_secs_f64(), used.sys.as_secs_f64());
        let _ = write!(time, " (user {user:.2}, sys {sys:.2})");
    }
    if terms.stopped > Duration::ZERO {
        let _ = write!(time, " and {:.1} s stopped", terms.stopped.as_secs_f64());
    }
    let mut parts = vec![time];
    if seconds > 0.0 && totals.bytes > 0 && !terms.dry_run {
        parts.push(format!("{}/s", number::bytes((totals.bytes as f64 / seconds) as u64)));
        parts.push(match totals.files as f64 / seconds {
            files_per_s if files_per_s < 10.0 => format!("{files_per_s:.1} files/s"),
            files_per_s => format!("{} files/s", number::grouped(files_per_s as u64)),
        });
    }
    parts.push(number::things(outcome.jobs as u64, "job"));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn totals() -> Totals {
        Totals {
            files: 2000,
            bytes: 8_192_000,
            files_created: 1999,
            dirs_created: 3,
            skipped: 7,
            failed: 1,
            seen_files: 2007,
            seen_dirs: 3,
            seen_bytes: 9_000_000,
            ..Totals::default()
        }
    }

    fn done(totals: Totals) -> Outcome {
        Outcome { totals, ..Outcome::default() }
    }

    #[test]
    fn bytes_of_a_link_are_true_bytes() {
        let traffic = Some(Traffic { sent: 1_000, received: 500 });
        let took = Duration::from_secs(3);
        let outcome = Outcome { totals: totals(), traffic, took, ..Outcome::default() };
        let text = stats(&outcome, Digits::Grouped, true);
        let lines = "Total bytes sent: 1,000\nTotal bytes received: 500\n";
        assert!(text.ends_with(lines), "{text}");
        assert_eq!(
            ending(&outcome, Digits::Grouped, true),
            "\nsent 1,000 bytes  received 500 bytes  500.00 bytes/sec\n\
             total size is 9,000,000  speedup is 6,000.00 (DRY RUN)\n"
        );
    }

    #[test]
    fn rsync_labels() {
        assert_eq!(
            stats(&done(totals()), Digits::Grouped, false),
            "\nNumber of files: 2,010 (reg: 2,007, dir: 3)\n\
             Number of created files: 2,002 (reg: 1,999, dir: 3)\n\
             Number of deleted files: 0\n\
             Number of regular files transferred: 2,000\n\
             Total file size: 9,000,000 bytes\n\
             Total transferred file size: 8,192,000 bytes\n\
             Literal data: 8,192,000 bytes\n\
             Matched data: 0 bytes\n"
        );
        assert!(
            stats(&done(Totals::default()), Digits::Plain, false).contains("created files: 0\n")
        );
        assert!(
            stats(&done(totals()), Digits::Thousands, false)
                .contains("Literal data: 8.19M bytes\n")
        );
    }

    #[test]
    fn rsyncs_last_lines() {
        let took = Duration::from_millis(250);
        let outcome = Outcome { totals: totals(), took, ..Outcome::default() };
        assert_eq!(
            ending(&outcome, Digits::Grouped, false),
            "\nsent 8,192,000 bytes  received 0 bytes  32,768,000.00 bytes/sec\n\
             total size is 9,000,000  speedup is 1.10\n"
        );
        assert_eq!(
            ending(&outcome, Digits::Thousands, true),
            "\nsent 0 bytes  received 0 bytes  0.00 bytes/sec\n\
             total size is 9.00M  speedup is 0.00 (DRY RUN)\n"
        );
    }

    #[test]
    fn nothing_is_sent_in_a_dry_run() {
        let text = stats(&done(totals()), Digits::Grouped, true);
        assert!(text.contains("file size: 8,192,000 bytes\nLiteral data: 0 bytes\n"), "{text}");
    }

    fn copied() -> SummaryTerms<'static> {
        SummaryTerms { done: "copied", ..SummaryTerms::default() }
    }

    #[test]
    fn one_line() {
        let of = |totals: Totals, took: Duration| Outcome {
            totals,
            took,
            jobs: 2,
            ..Outcome::default()
        };
        let took = Duration::from_millis(250);
        let outcome = of(totals(), took);
        let line = |outcome: &Outcome, terms: &SummaryTerms<'_>| summary(outcome, terms).join("\n");
        assert_eq!(
            line(&outcome, &copied()),
            "2,000 files and 8.19 MB copied, 3 new directories, 7 unchanged, 1 failed; \
             0.25 s, 32.77 MB/s"
        );
        let few = of(Totals { failed: 0, skipped: 0, ..totals() }, took);
        assert_eq!(
            line(&few, &copied()),
            "2,000 files and 8.19 MB copied, 3 new directories; \
             0.25 s, 32.77 MB/s, 8,000 files/s, 2 jobs"
        );
        let used = ResourceUsage { user: Duration::from_millis(100), ..ResourceUsage::default() };
        let terms = SummaryTerms { used: Some(&used), ..copied() };
        assert!(line(&few, &terms).contains("; 0.25 s (user 0.10, sys 0.00), 32.77 MB/s"));
        let terms = SummaryTerms { stopped: Duration::from_millis(50), ..copied() };
        assert!(line(&few, &terms).contains("; 0.20 s and 0.1 s stopped, 40.96 MB/s"));
        let slow = of(few.totals, Duration::from_secs(5000));
        assert!(line(&slow, &copied()).contains(", 1.64 KB/s, 0.4 files/s, 2 jobs"));
        assert!(line(&few, &SummaryTerms { done: "moved", ..copied() }).contains("8.19 MB moved,"));
        let dry = line(&few, &SummaryTerms { dry_run: true, ..copied() });
        assert!(dry.contains("8.19 MB to be copied,") && !dry.contains("/s"), "{dry}");
    }

    #[test]
    fn nothing_to_do() {
        let totals = Totals { skipped: 3005, left_out: 5, links_created: 1, ..Totals::default() };
        let outcome = Outcome { totals, took: Duration::from_millis(40), ..Outcome::default() };
        assert_eq!(
            summary(&outcome, &copied()),
            ["0 files copied, 1 new link, 3,000 unchanged, 5 skipped; 0.04 s, 0 jobs"]
        );
    }

    #[test]
    fn no_line_is_longer_than_100_columns() {
        let totals = Totals {
            files: 1_234_567,
            bytes: 123_450_000_000,
            dirs_created: 123_456,
            links_created: 12_345,
            skipped: 1_234_567,
            ..totals()
        };
        let took = Duration::from_secs(4567);
        let outcome = Outcome { totals, took, jobs: 512, ..Outcome::default() };
        assert_eq!(
            summary(&outcome, &copied()),
            [
                "1,234,567 files and 123.45 GB copied, 123,456 new directories, 12,345 new links,",
                "1,234,567 unchanged, 1 failed; 4567.00 s, 27.03 MB/s, 270 files/s, 512 jobs",
            ]
        );
    }
}
