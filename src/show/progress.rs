//! The bar: what is done, what is known to be ahead, how fast, and, once everything has been
//! listed, how long it will take. On standard error, and only where that is a terminal.

use crate::number;
use hakobu_transfer::event::{Event, LARGE_BYTES_MIN};
use hakobu_transfer::unit::Totals;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two pictures.
const TICK: Duration = Duration::from_millis(100);

/// What the events add up to.
#[derive(Debug, Default)]
pub struct Counters {
    done: AtomicU64,
    found: AtomicU64,
    walked: AtomicBool,
    bytes: AtomicU64,
    /// Sizes of large files that have begun.
    large_ahead: AtomicU64,
    /// Bytes of large files that were told about and have not come in a unit yet.
    large_debt: AtomicU64,
    large_done: AtomicU64,
    undrained: AtomicU64,
    failed: AtomicU64,
}

/// A moment of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Entries that are finished, not counting directories.
    pub done: u64,
    /// Entries that were found so far.
    pub found: u64,
    /// Whether these are all there are.
    pub walked: bool,
    /// Bytes written.
    pub bytes: u64,
    /// Bytes of large files that are yet to be written.
    pub large_left: u64,
    /// Bytes of the file that told last, written and not yet on the device.
    pub undrained: u64,
    /// Entries that failed.
    pub failed: u64,
    /// Since the start.
    pub elapsed: Duration,
}

impl Counters {
    /// Takes an event into account.
    pub fn event(&self, event: &Event<'_>) {
        match event {
            Event::Unit(totals) => self.unit(totals),
            Event::Found { entries } => {
                self.found.fetch_add(*entries, Relaxed);
            }
            Event::WalkDone => self.walked.store(true, Relaxed),
            Event::LargeFile { bytes } => {
                self.large_ahead.fetch_add(*bytes, Relaxed);
            }
            Event::LargeBytes { bytes, undrained } => {
                self.bytes.fetch_add(*bytes, Relaxed);
                self.large_debt.fetch_add(*bytes, Relaxed);
                self.large_done.fetch_add(*bytes, Relaxed);
                self.undrained.store(undrained.unwrap_or(0), Relaxed);
            }
            Event::Item(_) | Event::Problem(_) | Event::Warning(_) => {}
        }
    }

    fn unit(&self, totals: &Totals) {
        self.done.fetch_add(totals.seen_files + totals.seen_links + totals.seen_nodes, Relaxed);
        self.failed.fetch_add(totals.failed, Relaxed);
        // Bytes of a large file come twice: as they are written, and with its unit. A unit that is
        // smaller than any large file holds none; of others the debt is taken off. A unit of many
        // middling files may pay a debt that is not its own; it evens out when the large file's
        // unit comes.
        let paid = if totals.bytes >= LARGE_BYTES_MIN {
            let mut paid = 0;
            let _ = self.large_debt.fetch_update(Relaxed, Relaxed, |debt| {
                paid = debt.min(totals.bytes);
                Some(debt - paid)
            });
            paid
        } else {
            0
        };
        self.bytes.fetch_add(totals.bytes - paid, Relaxed);
    }

    fn moment(&self, elapsed: Duration) -> Moment {
        let large = self.large_ahead.load(Relaxed);
        Moment {
            done: self.done.load(Relaxed),
            found: self.found.load(Relaxed),
            walked: self.walked.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            large_left: large.saturating_sub(self.large_done.load(Relaxed)),
            undrained: self.undrained.load(Relaxed),
            failed: self.failed.load(Relaxed),
            elapsed,
        }
    }
}

/// The words beside the bar.
pub fn words(now: &Moment) -> String {
    let seconds = now.elapsed.as_secs_f64().max(1e-3);
    let count = number::grouped;
    let mut out = if now.walked {
        format!("{}/{} files", count(now.done), count(now.found))
    } else {
        format!("{} files, still listing ({} found)", count(now.done), count(now.found))
    };
    out.push_str(&format!(", {}", number::bytes(now.bytes)));
    if now.undrained > 0 {
        out.push_str(&format!(" ({} not on the device yet)", number::bytes(now.undrained)));
    }
    out.push_str(&format!(", {}/s", number::bytes((now.bytes as f64 / seconds) as u64)));
    if now.failed > 0 {
        out.push_str(&format!(", {} failed", count(now.failed)));
    }
    if let Some(left) = left(now) {
        let s = left.as_secs();
        out.push_str(&match s / 3600 {
            0 => format!(", {}:{:02} left", s / 60, s % 60),
            h => format!(", {h}:{:02}:{:02} left", s / 60 % 60, s % 60),
        });
    }
    out
}

/// What is left to do at the rate so far: the longer of the entries' and the large files'.
/// `None` while the walk goes on (nobody knows then) and before anything is done.
fn left(now: &Moment) -> Option<Duration> {
    if !now.walked || (now.done == 0 && now.bytes == 0) {
        return None;
    }
    let rest = |left: u64, done: u64| match (left, done) {
        (0, _) => Some(Duration::ZERO),
        (_, 0) => None,
        (left, done) => {
            let seconds = now.elapsed.as_secs_f64() * (left as f64 / done as f64);
            Duration::try_from_secs_f64(seconds).ok()
        }
    };
    let entries = rest(now.found.saturating_sub(now.done), now.done);
    let bytes = rest(now.large_left, now.bytes);
    // With one huge file under way no entry may be done yet: the bytes speak alone then.
    if now.large_left > 0 { entries.max(bytes) } else { entries }
}

/// A bar that draws itself until it is finished.
pub struct Progress {
    counters: Arc<Counters>,
    bar: ProgressBar,
    ended: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Progress {
    /// Starts a bar; `None` where nobody would see it.
    pub fn start() -> Option<Progress> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let style = ProgressStyle::with_template("{spinner} {wide_msg}").ok()?;
        let bar = ProgressBar::new_spinner().with_style(style);
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let counters = Arc::new(Counters::default());
        let ended = Arc::new(AtomicBool::new(false));
        let thread = {
            let (bar, counters, ended) = (bar.clone(), Arc::clone(&counters), Arc::clone(&ended));
            let start = Instant::now();
            let draw = move || {
                while !ended.load(Relaxed) {
                    bar.set_message(words(&counters.moment(start.elapsed())));
                    bar.tick();
                    std::thread::park_timeout(TICK);
                }
            };
            std::thread::Builder::new().name("progress".into()).spawn(draw).ok()?
        };
        Some(Progress { counters, bar, ended, thread: Mutex::new(Some(thread)) })
    }

    /// Takes an event into account.
    pub fn event(&self, event: &Event<'_>) {
        self.counters.event(event);
    }

    /// Runs `write` with the bar out of the way.
    pub fn beside(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    /// Takes the bar off the screen.
    pub fn finish(&self) {
        self.ended.store(true, Relaxed);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_promise_before_the_walk_is_done() {
        let now = Moment {
            done: 1500,
            found: 2000,
            bytes: 81_920_000,
            elapsed: Duration::from_secs(3),
            ..Moment::default()
        };
        assert_eq!(words(&now), "1,500 files, still listing (2,000 found), 81.92 MB, 27.31 MB/s");
        let now = Moment { walked: true, ..now };
        assert_eq!(words(&now), "1,500/2,000 files, 81.92 MB, 27.31 MB/s, 0:01 left");
        let now = Moment { done: 0, large_left: 819_200_000, undrained: 5_000_000, ..now };
        assert_eq!(
            words(&now),
            "0/2,000 files, 81.92 MB (5.00 MB not on the device yet), 27.31 MB/s, 0:30 left"
        );
        assert_eq!(left(&Moment { bytes: 0, ..now }), None);
        let slow = Moment { done: 1, large_left: 0, elapsed: Duration::from_secs(10), ..now };
        assert!(words(&slow).ends_with("5:33:10 left"), "{}", words(&slow));
    }

    #[test]
    fn bytes_of_large_files_count_once() {
        let counters = Counters::default();
        let large = 100 << 20;
        counters.event(&Event::LargeFile { bytes: large });
        for _ in 0..4 {
            counters.event(&Event::LargeBytes { bytes: large / 4, undrained: Some(7) });
        }
        assert_eq!(counters.moment(TICK).bytes, large);
        assert_eq!(counters.moment(TICK).large_left, 0);
        let small = Totals { bytes: 1000, seen_files: 1, ..Totals::default() };
        counters.event(&Event::Unit(&small));
        let unit = Totals { bytes: large + 5, seen_files: 2, ..Totals::default() };
        counters.event(&Event::Unit(&unit));
        let now = counters.moment(TICK);
        assert_eq!((now.bytes, now.done), (large + 1005, 3));
    }
}
