//! Progress while a command works: a bar on a terminal, a line per second elsewhere, JSON events, and a line for
//! SIGUSR1. It reads the meters of the current runs, which never wait for it.

mod cost;
mod pace;
#[cfg(test)]
mod simulated;
mod words;

use super::transferred::Position;
use super::{json, output, screen};
use crate::number::Digits;
use hakobu_core::meter::{self, Meter};
use indicatif::ProgressStyle;
use pace::{Moment, Pace};
use parking_lot::{Condvar, Mutex};
use signal_hook::consts::SIGUSR1;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

/// Interval of samples.
const TICK: Duration = Duration::from_millis(100);
/// Interval of lines, and delay of the first one.
const LINE: Duration = Duration::from_secs(1);
/// Stack size of the thread, in bytes.
const STACK_BYTES: usize = 256 << 10;

/// Form of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
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

impl Form {
    /// Returns the form for these options: `wish` is `--progress` or `--no-progress`; `lines`: each entry has a line
    /// on the terminal anyway.
    pub fn of(wish: Option<bool>, json: bool, lines: bool) -> Form {
        match (wish, std::io::stderr().is_terminal()) {
            (Some(false), _) => Form::OnSignal,
            (_, _) if json => Form::Json,
            (Some(true), true) if screen::is_dumb() => Form::Lines,
            (Some(true), true) => Form::Bar { at_once: true },
            (Some(true), false) => Form::Lines,
            (None, true) if !lines && !screen::is_dumb() => Form::Bar { at_once: false },
            (None, _) => Form::OnSignal,
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
    form: Form,
    runs: Mutex<Runs>,
    failed: AtomicU64,
    /// A status line of the command, if counters do not show its progress.
    status: Mutex<Option<String>>,
    /// SIGUSR1 was received.
    signalled: Arc<AtomicBool>,
    write: Write,
    started: Instant,
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
    pub fn start(form: Form, write: impl Fn(&[u8]) + Send + Sync + 'static) -> Progress {
        let shared = Arc::new(Shared {
            form,
            runs: Mutex::default(),
            failed: AtomicU64::new(0),
            status: Mutex::default(),
            signalled: signal_flag(),
            write: Box::new(write),
            started: Instant::now(),
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
    pub fn position(&self, transferred: u64) -> Position {
        Position::of(&self.shared.runs.lock().sum(), transferred)
    }

    /// Returns the part of the content that moved, in percent.
    pub fn percent(&self) -> u64 {
        let at = self.shared.runs.lock().sum();
        let now = Pace::default().look(at, 0, self.shared.started.elapsed());
        words::state(&now).percent
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
        loop {
            let mut over = self.over.lock();
            self.ended.wait_while_for(&mut over, |over| !*over, TICK);
            if *over {
                return;
            }
            let at = self.runs.lock().sum();
            let now = pace.look(at, self.failed.load(Relaxed), self.started.elapsed());
            let due = now.elapsed >= next_line;
            if due {
                next_line = now.elapsed + LINE;
            }
            match self.form {
                Form::Bar { at_once } if at_once || now.elapsed >= LINE => draw(&now),
                Form::Lines if due => output::message(&words::line(&now)),
                Form::Json if due => (self.write)(&json::line(&words::Line::from(&now))),
                Form::States(digits) if due => {
                    let mut out = Vec::with_capacity(128);
                    words::state(&now).push(digits, &mut out);
                    (self.write)(&out);
                }
                _ => {}
            }
            if self.signalled.swap(false, Relaxed) {
                let status = self.status.lock().clone();
                output::message(&status.unwrap_or_else(|| words::line(&now)));
            }
        }
    }
}

fn draw(now: &Moment) {
    let template = match now.fraction {
        Some(_) => "[{bar:20}] {wide_msg}\n{prefix}",
        None => "{spinner} {wide_msg}\n{prefix}",
    };
    screen::draw(|bar| {
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        // These do not draw, unlike `set_message` and the like: a picture has all of a moment or nothing of it.
        bar.clone()
            .with_message(words::amounts(now))
            .with_prefix(words::rates(now))
            .with_position((now.fraction.unwrap_or(0.0) * screen::STEPS as f64) as u64)
            .tick();
    });
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
}
