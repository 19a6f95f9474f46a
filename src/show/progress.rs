//! Progress while a command works: a bar on a terminal, a line per second elsewhere, JSON events, and a line for
//! SIGUSR1. It reads the meters of the current runs, which never wait for it.

use super::pace::{Known, Moment, Pace};
use super::{json, output, screen};
use crate::number::{self, Digits};
use hakobu_core::event::Item;
use hakobu_core::language::Language;
use hakobu_core::meter::{self, Meter};
use hakobu_core::unit::Kind;
use hakobu_transfer::run::Outcome;
use parking_lot::{Condvar, Mutex};
use serde::Serialize;
use signal_hook::consts::{SIGCONT, SIGUSR1};
use std::io::IsTerminal;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

/// Interval of samples.
const TICK: Duration = Duration::from_millis(100);
/// Interval of lines, and delay of the first one.
const LINE: Duration = Duration::from_secs(1);
/// Stack size of the thread, in bytes.
const STACK_BYTES: usize = 256 << 10;
/// Minimum delay of a sample that may come from a stop (Ctrl-Z), and time for the signal that ends it to arrive.
const STOP_MIN: Duration = Duration::from_millis(100);
const CONTINUED_WITHIN: Duration = Duration::from_millis(5);

/// Form of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressForm {
    /// Only on SIGUSR1.
    OnSignal,
    /// A bar on the terminal.
    Bar {
        /// Shown at once, instead of after a second.
        at_once: bool,
    },
    /// A line per second on standard error.
    Lines,
    /// A JSON line per second, written by the caller.
    Json,
    /// rsync's line of the whole run every second, written by the caller.
    States(Digits),
}

impl ProgressForm {
    /// Returns the form for these options: `wish` is `--progress` or `--no-progress`; `lines`: each entry has a line
    /// on the terminal anyway.
    pub fn of(wish: Option<bool>, json: bool, lines: bool) -> ProgressForm {
        match (wish, std::io::stderr().is_terminal()) {
            (Some(false), _) => ProgressForm::OnSignal,
            (_, _) if json => ProgressForm::Json,
            (Some(true), true) if screen::is_dumb() => ProgressForm::Lines,
            (Some(true), true) => ProgressForm::Bar { at_once: true },
            (Some(true), false) => ProgressForm::Lines,
            (None, true) if !lines && !screen::is_dumb() => ProgressForm::Bar { at_once: false },
            (None, _) => ProgressForm::OnSignal,
        }
    }
}

/// Returns a flag that SIGUSR1 sets from now on.
pub fn signal_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    if !hakobu_sys::process::ignores_signal(SIGUSR1) {
        // Without the handler the signal ends the program, which is its default.
        let _ = signal_hook::flag::register(SIGUSR1, Arc::clone(&flag));
    }
    flag
}

/// Writes JSON lines, or rsync's.
type Write = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Progress of one command.
pub struct Progress {
    shared: Arc<Shared>,
    watching: Once,
}

struct Shared {
    form: ProgressForm,
    /// Language of the bottleneck.
    language: Language,
    runs: Mutex<Runs>,
    failed: AtomicU64,
    /// A status line of the command, if counters do not show its progress.
    status: Mutex<Option<String>>,
    /// SIGUSR1 was received.
    signalled: Arc<AtomicBool>,
    write: Write,
    started: Instant,
    /// Time in which the program was stopped (Ctrl-Z), in milliseconds.
    stopped_ms: AtomicU64,
    /// Locked while drawing: nothing is drawn after the end.
    over: Mutex<bool>,
    ended: Condvar,
}

/// The meters of current runs, and the sum of finished ones.
#[derive(Default)]
struct Runs {
    going: Vec<Arc<Meter>>,
    ended: Option<meter::Progress>,
}

impl Runs {
    fn sum(&mut self) -> meter::Progress {
        // A meter without another holder no longer changes.
        let over: Vec<Arc<Meter>> =
            self.going.extract_if(.., |meter| Arc::strong_count(meter) == 1).collect();
        for meter in over {
            // Entries not found by now will not be found.
            let last = meter::Progress { jobs: 0, listed: true, limit: None, ..meter.progress() };
            match &mut self.ended {
                Some(sum) => *sum += last,
                None => self.ended = Some(last),
            }
        }
        let all = self.going.iter().map(|meter| meter.progress()).chain(self.ended);
        all.reduce(|mut sum, next| {
            sum += next;
            sum
        })
        .unwrap_or_default()
    }
}

impl Progress {
    /// Makes the progress of a command; `write` receives JSON lines or rsync's. The thread that shows it starts with the first
    /// run or status: a run first reserves descriptors, and growing their table takes the kernel milliseconds (an RCU
    /// grace period) once a process has several threads. If no thread can be started, nothing is shown.
    pub fn start(
        form: ProgressForm,
        language: Language,
        write: impl Fn(&[u8]) + Send + Sync + 'static,
    ) -> Progress {
        let shared = Arc::new(Shared {
            form,
            language,
            runs: Mutex::default(),
            failed: AtomicU64::new(0),
            status: Mutex::default(),
            signalled: signal_flag(),
            write: Box::new(write),
            started: Instant::now(),
            stopped_ms: AtomicU64::new(0),
            over: Mutex::new(false),
            ended: Condvar::new(),
        });
        Progress { shared, watching: Once::new() }
    }

    fn watch(&self) {
        self.watching.call_once(|| {
            let shared = Arc::clone(&self.shared);
            // Not joined: a run of a millisecond must not wait for a thread to end.
            let thread =
                std::thread::Builder::new().name("progress".into()).stack_size(STACK_BYTES);
            let _ = thread.spawn(move || shared.watch());
        });
    }

    /// Adds a run.
    pub fn begins(&self, meter: &Arc<Meter>) {
        self.shared.runs.lock().going.push(Arc::clone(meter));
        self.watch();
    }

    /// Returns how far the runs are, for the line of a file.
    pub fn position(&self, transferred: u64) -> RunPosition {
        RunPosition::of(&self.at(), transferred)
    }

    /// Returns the part of the content that moved, in percent.
    pub fn percent(&self) -> u64 {
        transfer_state(&Pace::default().look(self.at(), 0, self.shared.started.elapsed())).percent
    }

    /// Returns the sum of the counters of all runs.
    pub fn at(&self) -> meter::Progress {
        self.shared.runs.lock().sum()
    }

    /// Returns whether anybody sees totals and the time left while the command works.
    pub fn shows_totals(&self) -> bool {
        self.shared.form != ProgressForm::OnSignal
    }

    /// Returns the time in which the program was stopped (Ctrl-Z).
    pub fn stopped_time(&self) -> Duration {
        Duration::from_millis(self.shared.stopped_ms.load(Relaxed))
    }

    /// Sets the text for SIGUSR1 in place of counters.
    pub fn says(&self, status: &str) {
        *self.shared.status.lock() = Some(status.to_owned());
        self.watch();
    }

    /// Counts a failed entry.
    pub fn failed(&self) {
        self.shared.failed.fetch_add(1, Relaxed);
    }

    /// Ends the display and removes the bar.
    pub fn finish(&self) {
        *self.shared.over.lock() = true;
        self.shared.ended.notify_all();
        screen::clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Shared {
    fn watch(&self) {
        let mut pace = Pace::default();
        let mut next_line = LINE;
        let mut stops = Stops::new(self.started);
        loop {
            let mut over = self.over.lock();
            self.ended.wait_while_for(&mut over, |over| !*over, TICK);
            if *over {
                return;
            }
            if stops.look() {
                let stopped_ms = u64::try_from(stops.total.as_millis()).unwrap_or(u64::MAX);
                self.stopped_ms.store(stopped_ms, Relaxed);
                screen::start_anew();
            }
            let at = self.runs.lock().sum();
            let elapsed = self.started.elapsed().saturating_sub(stops.total);
            let now = pace.look(at, self.failed.load(Relaxed), elapsed);
            let due = now.elapsed >= next_line;
            if due {
                next_line = now.elapsed + LINE;
            }
            match self.form {
                ProgressForm::Bar { at_once } if at_once || now.elapsed >= LINE => {
                    draw(&now, self.language)
                }
                ProgressForm::Lines if due => output::message(&line_text(&now, self.language)),
                ProgressForm::Json if due => (self.write)(&json::line(&ProgressLine::from(&now))),
                ProgressForm::States(digits) if due => {
                    let mut out = Vec::with_capacity(128);
                    transfer_state(&now).push(digits, &mut out);
                    (self.write)(&out);
                }
                _ => {}
            }
            if self.signalled.swap(false, Relaxed) {
                let status = self.status.lock().clone();
                output::message(&status.unwrap_or_else(|| line_text(&now, self.language)));
            }
        }
    }
}

/// Time in which the program was stopped: samples that come late, and SIGCONT.
struct Stops {
    continued: Arc<AtomicBool>,
    last: Instant,
    total: Duration,
}

impl Stops {
    fn new(started: Instant) -> Stops {
        let continued = Arc::new(AtomicBool::new(false));
        // Without the handler no stop is noticed.
        let _ = signal_hook::flag::register(SIGCONT, Arc::clone(&continued));
        Stops { continued, last: started, total: Duration::ZERO }
    }

    /// Returns whether the program was stopped since the last call, and adds the time.
    fn look(&mut self) -> bool {
        let late = self.last.elapsed().saturating_sub(TICK);
        if late >= STOP_MIN && !self.continued.load(Relaxed) {
            // The thread that receives the signal may not have run yet.
            std::thread::sleep(CONTINUED_WITHIN);
        }
        self.last = Instant::now();
        let stopped = self.continued.swap(false, Relaxed) && late >= STOP_MIN;
        if stopped {
            self.total += late;
        }
        stopped
    }
}

fn draw(now: &Moment, language: Language) {
    screen::show(&picture(now, screen::room(), language).join("\n"));
}

/// Minimum number of cells of the bar.
const CELLS_MIN: usize = 8;
/// States of the mark that turns until the total is known.
const TURNS: [char; 4] = ['|', '/', '-', '\\'];

/// Returns the display of a moment: a bar, which takes the columns that are left, with the amounts beside it, and below
/// it the counts and rates.
pub fn picture(now: &Moment, columns: usize, language: Language) -> [String; 2] {
    let all = amounts(now);
    let length = joined(&all).len();
    let amounts = fitted(all, columns);
    // The bar goes before any of the amounts, with its brackets and the space behind them.
    let first = match (now.fraction, columns.checked_sub(length + 3)) {
        (Some(fraction), Some(cells)) if cells >= CELLS_MIN => {
            format!("{} {amounts}", bar(fraction, cells))
        }
        (None, Some(_)) => {
            let turn = now.elapsed.as_millis() / TICK.as_millis() % TURNS.len() as u128;
            format!("{} {amounts}", TURNS.get(turn as usize).copied().unwrap_or(' '))
        }
        _ => amounts,
    };
    [first, fitted(rates(now, language), columns)]
}

fn bar(fraction: f64, cells: usize) -> String {
    let full = ((fraction * cells as f64) as usize).min(cells - 1);
    format!("[{}>{}]", "=".repeat(full), " ".repeat(cells - 1 - full))
}

/// A part of a line. Where not all of them have room, those of the highest rank are left out first.
struct LinePart {
    rank: u8,
    /// Between it and the part before.
    separator: &'static str,
    text: String,
}

impl LinePart {
    fn new(rank: u8, text: String) -> LinePart {
        LinePart { rank, separator: ", ", text }
    }
}

/// Joins the parts that have room: no part is cut.
fn fitted(mut parts: Vec<LinePart>, columns: usize) -> String {
    loop {
        let line = joined(&parts);
        let last = parts.iter().enumerate().max_by_key(|(_, part)| part.rank);
        match last {
            Some((at, _)) if line.len() > columns => drop(parts.remove(at)),
            _ => return line,
        }
    }
}

fn joined(parts: &[LinePart]) -> String {
    let mut line = String::new();
    for part in parts {
        if !line.is_empty() {
            line.push_str(part.separator);
        }
        line.push_str(&part.text);
    }
    line
}

/// Minimum time without progress that is mentioned; while uploads are completed, a server may take longer.
const STILL_MIN: Duration = Duration::from_secs(3);
const STILL_MIN_AT_END: Duration = Duration::from_secs(30);

/// Returns what is still done after all content has moved: entries that are not done yet, or the end of the run itself.
fn ending(now: &Moment) -> Option<&'static str> {
    match now.left == Some(Duration::ZERO) {
        true if now.at.completing > 0 => Some("completing upload ..."),
        true => Some("finishing ..."),
        false => None,
    }
}

/// Returns the parts of the line beside the bar: amount, and remaining time.
fn amounts(now: &Moment) -> Vec<LinePart> {
    let mut parts = Vec::new();
    if let Some(fraction) = now.fraction {
        // 100% is shown only at the end.
        parts.push(LinePart::new(0, format!("{}%", (fraction * 100.0).floor().min(99.0))));
    }
    parts.extend(bytes_text(now).map(|text| LinePart::new(2, text)));
    match (ending(now), now.left) {
        (Some(text), _) => parts.push(LinePart::new(1, text.to_owned())),
        (None, Some(left)) => parts.push(LinePart::new(1, format!("{} left", clock(left)))),
        (None, None) => {}
    }
    if parts.is_empty() {
        parts.push(LinePart::new(0, clock(now.elapsed)));
    }
    parts
}

/// Returns the parts of the line below: counts, rates, and the bottleneck.
fn rates(now: &Moment, language: Language) -> Vec<LinePart> {
    let at = &now.at;
    let mut parts = vec![LinePart::new(1, files_text(now))];
    let mean = format!("avg {}/s", number::bytes(now.bytes_per_s_mean as u64));
    let is_ending = ending(now).is_some();
    if at.bytes > 0 && is_ending {
        parts.push(LinePart::new(0, mean));
    } else if at.bytes > 0 {
        parts.push(LinePart::new(0, format!("{}/s", number::bytes(now.bytes_per_s as u64))));
        parts.push(LinePart { separator: " ", ..LinePart::new(7, format!("({mean})")) });
    } else if at.done > 0 {
        let rate = number::grouped(now.entries_per_s as u64);
        parts.push(LinePart::new(0, format!("{rate} files/s")));
    }
    if at.undrained > 0 {
        let waiting = format!("{} not on the device yet", number::bytes(at.undrained));
        parts.push(LinePart::new(6, waiting));
    }
    if at.jobs > 0 {
        parts.push(LinePart::new(5, number::things(at.jobs, "job")));
    }
    let still_min = if is_ending { STILL_MIN_AT_END } else { STILL_MIN };
    if at.jobs > 0 && now.still >= still_min {
        parts.push(LinePart::new(3, format!("no response for {} s", now.still.as_secs())));
    }
    if let Some(limit) = at.limit {
        let words = language.pick("limited by", "ボトルネック:");
        parts.push(LinePart::new(4, format!("{words} {}", limit.in_language(language))));
    }
    if now.failed > 0 {
        parts.push(LinePart::new(2, format!("{} failed", number::grouped(now.failed))));
    }
    parts
}

/// Returns both in one line, for a pipe and for SIGUSR1.
pub fn line_text(now: &Moment, language: Language) -> String {
    let mut parts = amounts(now);
    parts.extend(rates(now, language));
    joined(&parts)
}

/// Returns the state of a run for rsync's line. The number of transferred files is that of finished entries.
pub fn transfer_state(now: &Moment) -> TransferState {
    let part = now.at.bytes as f64 / now.bytes_total.max(1) as f64;
    let Moment { at, bytes_per_s, .. } = *now;
    TransferState {
        bytes: at.bytes,
        // 100% is shown only at the end.
        percent: ((part * 100.0) as u64).min(99),
        bytes_per_s,
        time: now.left.unwrap_or(now.elapsed),
        at: RunPosition::of(&at, at.done),
    }
}

fn bytes_text(now: &Moment) -> Option<String> {
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

fn files_text(now: &Moment) -> String {
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
pub struct ProgressLine {
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

impl From<&Moment> for ProgressLine {
    fn from(now: &Moment) -> ProgressLine {
        ProgressLine {
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
            limit: now.at.limit.map(|limit| limit.english),
        }
    }
}

/// RunPosition of a file in its run, as rsync counts.
#[derive(Clone, Copy, Debug)]
pub struct RunPosition {
    /// Files transferred so far, with this one.
    pub transferred: u64,
    /// Entries found and not finished.
    pub left: u64,
    /// Entries found.
    pub found: u64,
    /// Everything has been found.
    pub listed: bool,
}

impl RunPosition {
    /// Returns the position at a state of the counters.
    pub fn of(at: &meter::Progress, transferred: u64) -> RunPosition {
        let left = at.found.saturating_sub(at.done);
        RunPosition { transferred, left, found: at.found, listed: at.listed }
    }
}

/// Returns whether an entry has such a line.
pub fn has_progress(item: &Item<'_>) -> bool {
    item.kind == Kind::File && item.change.transferred
}

/// Appends the line. It begins with a carriage return, as rsync's does, because programs that read progress expect it.
pub fn push_progress(
    bytes: u64,
    took: Duration,
    digits: Digits,
    at: RunPosition,
    out: &mut Vec<u8>,
) {
    let state =
        TransferState { bytes, percent: 100, bytes_per_s: per_s(bytes, took), time: took, at };
    state.push(digits, out);
    out.push(b'\n');
}

/// State of a file or of a run at one moment, for rsync's lines of progress: below the name of a transferred file
/// (`--progress`), and of the whole run (`--info=progress2`).
#[derive(Clone, Copy, Debug)]
pub struct TransferState {
    /// Content moved, in bytes.
    pub bytes: u64,
    /// Part of the content.
    pub percent: u64,
    /// Rate in bytes per second.
    pub bytes_per_s: f64,
    /// Time that it took, or that is left.
    pub time: Duration,
    /// RunPosition in the run.
    pub at: RunPosition,
}

impl TransferState {
    /// Returns the last state of a run. `percent`: the part of the content that moved, where not all of it did.
    pub fn last(outcome: &Outcome, at: RunPosition, percent: u64) -> TransferState {
        let totals = &outcome.totals;
        let all = !outcome.stopped && totals.failed + totals.vanished == 0 && totals.bytes > 0;
        TransferState {
            bytes: totals.bytes,
            percent: if all { 100 } else { percent },
            bytes_per_s: per_s(totals.bytes, outcome.took),
            time: outcome.took,
            at,
        }
    }

    /// Appends rsync's line, from the carriage return on, without an end.
    pub fn push(&self, digits: Digits, out: &mut Vec<u8>) {
        let RunPosition { transferred, left, found, listed } = self.at;
        let (size, percent, rate) =
            (digits.size(self.bytes), self.percent, rate_field(self.bytes_per_s));
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
fn rate_field(bytes_per_s: f64) -> String {
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
    fn runs_that_ended_stay_in_the_sum() {
        let mut runs = Runs::default();
        assert!(!runs.sum().listed, "nothing has begun");
        let first = Arc::new(Meter::new(1));
        first.lane(0).found(3);
        first.lane(0).done(2);
        runs.going.push(Arc::clone(&first));
        assert_eq!((runs.sum().found, runs.sum().listed), (3, false));
        drop(first);
        let second = Arc::new(Meter::new(1));
        second.lane(0).found(1);
        runs.going.push(Arc::clone(&second));
        let sum = runs.sum();
        assert_eq!((sum.found, sum.done, sum.listed), (4, 2, false));
        assert_eq!(runs.going.len(), 1);
        second.all_found();
        assert!(runs.sum().listed);
    }
    use hakobu_core::language::Bilingual;
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
            limit: Some(Bilingual::same("CPU")),
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
        assert_eq!(joined(&amounts(&now)), "81.92 MB of at least 163.84 MB");
        let text = |now: &Moment| joined(&rates(now, Language::English));
        assert_eq!(
            text(&now),
            "1,500 of at least 2,000 files, 30.00 MB/s (avg 27.31 MB/s), 16 jobs, limited by CPU"
        );
        let limit = Some(Bilingual { english: "CPU", japanese: "CPU" });
        let japanese = Moment { at: Progress { limit, ..now.at }, ..now };
        let japanese = joined(&rates(&japanese, Language::Japanese));
        assert!(japanese.ends_with(", 16 jobs, ボトルネック: CPU"), "{japanese}");
        (now.at.listed, now.known) = (true, Known::About);
        (now.fraction, now.left) = (Some(0.999), Some(Duration::from_secs(3723)));
        now.failed = 2;
        let line = line_text(&now, Language::English);
        assert!(
            line.starts_with("99%, 81.92 MB of about 163.84 MB, 1:02:03 left, 1,500/2,000 files"),
            "{line}"
        );
        assert!(line.ends_with(", 2 failed"), "{line}");
        now.still = Duration::from_millis(2999);
        assert!(!text(&now).contains("no response"), "{}", text(&now));
        now.still = Duration::from_millis(12_500);
        assert!(text(&now).contains("16 jobs, no response for 12 s, "), "{}", text(&now));
        now.known = Known::Exactly;
        assert!(line_text(&now, Language::English).contains("81.92 MB of 163.84 MB"));
    }

    /// A moment with everything that a display may show.
    fn busy() -> Moment {
        let at = Progress {
            found: 2000,
            sized: 2000,
            done: 1500,
            bytes: 81_920_000,
            bytes_ahead: 163_840_000,
            undrained: 12_000_000,
            jobs: 16,
            listed: true,
            limit: Some(Bilingual::same("--bwlimit")),
            ..Progress::default()
        };
        Moment {
            at,
            elapsed: Duration::from_secs(3),
            failed: 2,
            bytes_total: at.bytes_ahead,
            known: Known::Exactly,
            bytes_per_s: 30e6,
            bytes_per_s_mean: 27.31e6,
            fraction: Some(0.5),
            left: Some(Duration::from_secs(3)),
            still: Duration::from_secs(4),
            ..Moment::default()
        }
    }

    #[test]
    fn lines_fit_without_cut_parts() {
        let now = busy();
        let all: Vec<String> = amounts(&now)
            .into_iter()
            .chain(rates(&now, Language::English))
            .map(|part| part.text)
            .collect();
        for columns in 1..220 {
            let [first, second] = picture(&now, columns, Language::English);
            let words = first.split_once("] ").map_or(&*first, |(_, words)| words);
            for line in [words, &*second] {
                let parts = line.split(", ").flat_map(|part| part.split(" ("));
                for part in parts.map(|part| part.trim_start_matches("avg ").trim_end_matches(')'))
                {
                    assert!(
                        part.is_empty() || all.iter().any(|text| text.contains(part)),
                        "{line}"
                    );
                }
            }
            assert!(first.len() <= columns && second.len() <= columns, "{columns}");
            // The bar takes all that is left, and goes first.
            let has_bar = first.starts_with('[');
            assert!(!has_bar || first.len() == columns, "{first}");
            assert_eq!(
                has_bar,
                columns >= "[=======>] 50%, 81.92 MB of 163.84 MB, 0:03 left".len()
            );
        }
        let [first, second] = picture(&now, 56, Language::English);
        assert_eq!(first, "[========>       ] 50%, 81.92 MB of 163.84 MB, 0:03 left");
        assert_eq!(second, "1,500/2,000 files, 30.00 MB/s, 2 failed");
        let listing = Moment { fraction: None, left: None, known: Known::AtLeast, ..busy() };
        assert_eq!(picture(&listing, 56, Language::English)[0], "- 81.92 MB of at least 163.84 MB");
    }

    #[test]
    fn the_end_is_no_time_of_zero() {
        let mut now = Moment { left: Some(Duration::ZERO), ..busy() };
        now.still = Duration::from_secs(29);
        let line = line_text(&now, Language::English);
        assert!(line.contains(", finishing ..., ") && !line.contains("no response"), "{line}");
        now.at.completing = 1;
        assert!(
            line_text(&now, Language::English).contains("163.84 MB, completing upload ..., "),
            "{now:?}"
        );
        now.still = Duration::from_secs(30);
        assert!(line_text(&now, Language::English).contains("no response for 30 s"), "{now:?}");
        // The end of the run takes time, too: what the target confirms, attributes of directories, the verdict.
        (now.at.completing, now.at.done) = (0, now.at.found);
        assert!(line_text(&now, Language::English).contains(", finishing ..., "), "{now:?}");
    }

    #[test]
    fn progress_without_bytes_or_total() {
        let at = Progress { found: 1500, done: 1500, ..Progress::default() };
        let elapsed = Duration::from_millis(64_600);
        let now = Moment { at, elapsed, entries_per_s: 23.0, ..Moment::default() };
        assert_eq!(line_text(&now, Language::English), "1:05, 1,500 files, 23 files/s");
    }

    #[test]
    fn widths_are_rsyncs() {
        let line = |bytes, ms, digits, listed| {
            let at = RunPosition { transferred: 2, left: 2, found: 5, listed };
            let mut out = Vec::new();
            push_progress(bytes, Duration::from_millis(ms), digits, at, &mut out);
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
