//! Final statistics as text: rsync's `--stats` and one sentence of totals.

use crate::number::{self, Digits};
use hakobu_core::unit::Totals;
use hakobu_sys::proc::ResourceUsage;
use hakobu_transfer::run::Outcome;
use std::fmt::Write;

/// Returns rsync's statistics, with its labels. Without the lines about its file list and protocol, as there is
/// neither; nothing is matched, as files are copied whole.
pub fn stats(totals: &Totals, digits: Digits, dry_run: bool) -> String {
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
    format!(
        "\nNumber of files: {seen}\n\
         Number of created files: {created}\n\
         Number of deleted files: {}\n\
         Number of regular files transferred: {}\n\
         Total file size: {} bytes\n\
         Total transferred file size: {} bytes\n\
         Literal data: {} bytes\n\
         Matched data: 0 bytes\n",
        count(totals.deleted),
        count(totals.files),
        digits.size(totals.seen_bytes),
        digits.size(totals.bytes),
        digits.size(if dry_run { 0 } else { totals.bytes }),
    )
}

/// Returns rsync's last two lines. Without a protocol, the content that was copied counts as sent, and nothing as
/// received.
pub fn ending(outcome: &Outcome, digits: Digits, dry_run: bool) -> String {
    let totals = &outcome.totals;
    let sent = if dry_run { 0 } else { totals.bytes };
    let ratio = |whole: u64, part: f64| if part > 0.0 { whole as f64 / part } else { 0.0 };
    let rate = digits.decimal(ratio(sent, outcome.took.as_secs_f64()));
    let speedup = match digits {
        Digits::Plain => digits,
        _ => Digits::Grouped,
    }
    .decimal(ratio(totals.seen_bytes, sent as f64));
    format!(
        "\nsent {} bytes  received 0 bytes  {rate} bytes/sec\ntotal size is {}  speedup is {speedup}{}\n",
        digits.size(sent),
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

/// Returns the totals of a run as one line; `done` is the verb for the files.
pub fn sentence(outcome: &Outcome, used: &ResourceUsage, done: &str, dry_run: bool) -> String {
    let done = if dry_run { "to be copied" } else { done };
    let totals = &outcome.totals;
    let mut out = format!(
        "{} and {} {done}",
        number::things(totals.files, "file"),
        number::bytes(totals.bytes),
    );
    for (n, what) in [
        (
            totals.dirs_created,
            match totals.dirs_created {
                1 => "new directory",
                _ => "new directories",
            },
        ),
        (totals.links_created, "new links and nodes"),
        (totals.metadata, "with new attributes"),
        (totals.skipped, "skipped"),
        (totals.deleted, "deleted"),
        (totals.removed_sources, "removed from the source"),
        (totals.vanished, "vanished"),
        (totals.failed, "failed"),
    ] {
        if n > 0 {
            let _ = write!(out, ", {} {what}", number::grouped(n));
        }
    }
    let seconds = outcome.took.as_secs_f64();
    let _ = write!(
        out,
        "; {seconds:.2} s (user {:.2}, sys {:.2})",
        used.user.as_secs_f64(),
        used.sys.as_secs_f64()
    );
    if seconds > 0.0 && totals.bytes > 0 && !dry_run {
        let files_per_s = totals.files as f64 / seconds;
        match files_per_s {
            ..10.0 => drop(write!(out, ", {files_per_s:.1} files/s")),
            _ => drop(write!(out, ", {} files/s", number::grouped(files_per_s as u64))),
        }
        let _ = write!(out, ", {}/s", number::bytes((totals.bytes as f64 / seconds) as u64));
    }
    let _ = write!(out, ", {}", number::things(outcome.jobs as u64, "job"));
    out
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

    #[test]
    fn rsync_labels() {
        assert_eq!(
            stats(&totals(), Digits::Grouped, false),
            "\nNumber of files: 2,010 (reg: 2,007, dir: 3)\n\
             Number of created files: 2,002 (reg: 1,999, dir: 3)\n\
             Number of deleted files: 0\n\
             Number of regular files transferred: 2,000\n\
             Total file size: 9,000,000 bytes\n\
             Total transferred file size: 8,192,000 bytes\n\
             Literal data: 8,192,000 bytes\n\
             Matched data: 0 bytes\n"
        );
        assert!(stats(&Totals::default(), Digits::Plain, false).contains("created files: 0\n"));
        assert!(stats(&totals(), Digits::Thousands, false).contains("Literal data: 8.19M bytes\n"));
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
        let text = stats(&totals(), Digits::Grouped, true);
        assert!(text.contains("file size: 8,192,000 bytes\nLiteral data: 0 bytes\n"), "{text}");
    }

    #[test]
    fn one_sentence() {
        let outcome = Outcome {
            totals: totals(),
            took: Duration::from_millis(250),
            jobs: 2,
            ..Outcome::default()
        };
        assert_eq!(
            sentence(&outcome, &ResourceUsage::default(), "copied", false),
            "2,000 files and 8.19 MB copied, 3 new directories, 7 skipped, 1 failed; \
             0.25 s (user 0.00, sys 0.00), 8,000 files/s, 32.77 MB/s, 2 jobs"
        );
        let took = Duration::from_secs(5000);
        let slow = Outcome { totals: totals(), took, ..Outcome::default() };
        let slow = sentence(&slow, &ResourceUsage::default(), "copied", false);
        assert!(slow.contains(", 0.4 files/s, 1.64 KB/s, "), "{slow}");
        let moved = sentence(&outcome, &ResourceUsage::default(), "moved", false);
        assert!(moved.contains("8.19 MB moved,"), "{moved}");
        let dry = sentence(&outcome, &ResourceUsage::default(), "copied", true);
        assert!(dry.contains("8.19 MB to be copied,") && !dry.contains("/s"), "{dry}");
    }
}
