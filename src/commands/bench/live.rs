//! Progress of a campaign: one line on a terminal, and a message for each failure, without repetitions.

use crate::number;
use crate::show::output;
use crate::show::progress::{Progress, ProgressForm};
use crate::show::screen;
use hakobu_lab::campaign::run::Event;
use hakobu_lab::results::Cell;
use hakobu_sys::child;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Interval in which the line shows how long the run under way takes.
const TICK: Duration = Duration::from_secs(1);

/// The progress line.
pub struct Live {
    quiet: bool,
    /// Problems already reported.
    reported: BTreeSet<String>,
    /// Duration of the last run.
    last: String,
    line: Arc<Line>,
    /// Ends the thread that renews the line, when it is dropped.
    ticks: Option<Sender<()>>,
}

/// The line, and what it is about.
struct Line {
    /// It is shown.
    interactive: bool,
    shown: Mutex<Option<Shown>>,
    progress: Progress,
}

/// Something under way.
struct Shown {
    since: Instant,
    /// Time for which Ctrl-Z had stopped everything before.
    paused: Duration,
    what: What,
}

enum What {
    /// A setup command, a data set, an experiment.
    Text(String),
    /// A run.
    Run { name: String, warmup: bool, done: usize, most: usize, at_s: f64, last: String },
}

impl Live {
    /// Makes an empty line; with `quiet` it stays empty. `interactive`: whether one line shows the progress; `None`:
    /// on a terminal.
    pub fn new(quiet: bool, interactive: Option<bool>) -> Live {
        let progress = Progress::start(ProgressForm::OnSignal, |_| {});
        let interactive = !quiet && interactive.unwrap_or_else(screen::redraws);
        Live {
            quiet,
            reported: BTreeSet::new(),
            last: String::new(),
            line: Arc::new(Line { interactive, shown: Mutex::default(), progress }),
            ticks: None,
        }
    }

    /// Shows an event.
    pub fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Data(name) => self.draw(What::Text(format!("data set {name}"))),
            Event::Setup(command) => self.draw(What::Text(format!("setup: {command}"))),
            Event::Experiment { cell, about } => {
                self.draw(What::Text(format!("experiment: {} | {about}", name(cell))));
            }
            Event::Begins { cell, warmup, done, most, at_s } => self.draw(What::Run {
                name: name(cell),
                warmup: *warmup,
                done: *done,
                most: *most,
                at_s: *at_s,
                last: self.last.clone(),
            }),
            Event::Ended { cell, run } => {
                self.last = format!("last {:.3} s", run.wall_s);
                if let Some(problem) = &run.problem {
                    self.report(&format!("{}: {problem}", name(cell)));
                }
            }
            Event::Teardown(why) => self.report(&format!("cleanup: {why}")),
        }
    }

    /// Removes the line.
    pub fn end(&mut self) {
        *self.line.shown.lock() = None;
        self.ticks = None;
        screen::clear();
    }

    fn report(&mut self, message: &str) {
        if !self.quiet && self.reported.insert(message.to_owned()) {
            output::message(message);
        }
    }

    fn draw(&mut self, what: What) {
        *self.line.shown.lock() =
            Some(Shown { since: Instant::now(), paused: child::paused_time(), what });
        self.line.draw();
        if self.ticks.is_none() {
            let (sender, ends) = mpsc::channel();
            let line = Arc::clone(&self.line);
            let tick = move || {
                while ends.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    line.renew();
                }
            };
            // Without a thread the line shows what began only.
            let thread = std::thread::Builder::new().name("line".into()).spawn(tick);
            self.ticks = thread.is_ok().then_some(sender);
        }
    }
}

impl Line {
    fn draw(&self) {
        let shown = self.shown.lock();
        let Some(text) = shown.as_ref().map(Shown::words) else { return };
        self.progress.says(&text);
        if self.interactive {
            screen::show(&text);
        }
    }

    /// Draws it anew with the time that has passed. A line that cannot be redrawn stays as it is.
    fn renew(&self) {
        let shown = self.shown.lock();
        let Some(text) = shown.as_ref().map(Shown::words) else { return };
        self.progress.says(&text);
        if self.interactive && screen::redraws() {
            screen::show(&text);
        }
    }
}

impl Shown {
    fn words(&self) -> String {
        let paused = child::paused_time().saturating_sub(self.paused);
        self.what.words(self.since.elapsed().saturating_sub(paused).as_secs_f64())
    }
}

/// Returns the name of a cell in messages.
fn name(cell: &Cell) -> String {
    let swept = cell.x.map_or(String::new(), |x| format!(" @{x}"));
    format!("{}{swept}", cell.series)
}

impl What {
    /// Returns the progress in one line, the most important part first; `for_s`: seconds since it began.
    fn words(&self, for_s: f64) -> String {
        let took = if for_s >= 1.0 { format!(" | {}", time(for_s)) } else { String::new() };
        let (name, warmup, done, most, at_s, last) = match self {
            What::Text(text) => return format!("{text}{took}"),
            What::Run { name, warmup, done, most, at_s, last } => {
                (name, *warmup, *done, *most, *at_s, last)
            }
        };
        let mut out = format!(
            "run {} of at most {}{took}",
            number::grouped(done as u64 + 1),
            number::grouped(most as u64)
        );
        if done > 0 {
            let after = most.saturating_sub(done + 1) as f64;
            let mean_s = at_s / done as f64;
            // A run that takes longer than those before it says what the later ones may take.
            let each_s = mean_s.max((at_s + for_s) / (done + 1) as f64);
            let left_s = (mean_s - for_s).max(0.0) + each_s * after;
            out.push_str(&format!(" | at most {} left", time(left_s)));
        }
        out.push_str(&format!(" | {name}"));
        if warmup {
            out.push_str(" (warm-up)");
        }
        if !last.is_empty() {
            out.push_str(&format!(" | {last}"));
        }
        out
    }
}

/// Formats a time: `42 s`, `3 min`, `1.5 h`.
fn time(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        ..5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_how_far_it_is() {
        let run = |warmup, done, most, at_s, last: &str| {
            let name = name(&Cell { series: "rsync".into(), x: Some(4.0), ..Cell::default() });
            What::Run { name, warmup, done, most, at_s, last: last.into() }
        };
        assert_eq!(
            run(true, 0, 1200, 0.0, "").words(0.2),
            "run 1 of at most 1,200 | rsync @4 (warm-up)"
        );
        assert_eq!(
            run(false, 10, 30, 100.0, "last 9.000 s").words(0.0),
            "run 11 of at most 30 | at most 3 min left | rsync @4 | last 9.000 s"
        );
        // One that takes longer than all before it.
        assert_eq!(
            run(false, 2, 4, 4.0, "last 2.000 s").words(596.0),
            "run 3 of at most 4 | 10 min | at most 3 min left | rsync @4 | last 2.000 s"
        );
        assert_eq!(What::Text("setup: make".into()).words(42.0), "setup: make | 42 s");
        assert_eq!([time(3.4), time(600.0), time(7200.0)], ["3 s", "10 min", "2.0 h"]);
    }
}
