//! Progress of a campaign: one line on a terminal, and a message for each failure, without repetitions.

use crate::number;
use crate::show::output;
use crate::show::progress::{Form, Progress};
use crate::show::screen;
use hakobu_lab::campaign::run::Event;
use hakobu_lab::results::Cell;
use std::collections::BTreeSet;

/// The progress line.
pub struct Live {
    quiet: bool,
    /// One line shows the progress.
    interactive: bool,
    /// Problems already reported.
    reported: BTreeSet<String>,
    /// Duration of the last run.
    last: String,
    progress: Progress,
}

impl Live {
    /// Makes an empty line; with `quiet` it stays empty. `interactive`: whether one line shows the progress; `None`:
    /// on a terminal.
    pub fn new(quiet: bool, interactive: Option<bool>) -> Live {
        Live {
            quiet,
            interactive: interactive.unwrap_or_else(screen::redraws),
            reported: BTreeSet::new(),
            last: String::new(),
            progress: Progress::start(Form::OnSignal, |_| {}),
        }
    }

    /// Shows an event.
    pub fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Data(name) => self.draw(&format!("data set {name}")),
            Event::Setup(command) => self.draw(&format!("setup: {command}")),
            Event::Experiment { cell, about } => {
                self.draw(&format!("experiment: {} | {about}", name(cell)));
            }
            Event::Begins { cell, warmup, done, most, at_s } => {
                self.draw(&words(cell, *warmup, *done, *most, *at_s, &self.last));
            }
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
    pub fn end(&self) {
        screen::clear();
    }

    fn report(&mut self, message: &str) {
        if !self.quiet && self.reported.insert(message.to_owned()) {
            output::message(message);
        }
    }

    fn draw(&mut self, text: &str) {
        self.progress.says(text);
        if !self.quiet && self.interactive {
            screen::show(text);
        }
    }
}

/// Returns the name of a cell in messages.
fn name(cell: &Cell) -> String {
    let swept = cell.x.map_or(String::new(), |x| format!(" @{x}"));
    format!("{}{swept}", cell.series)
}

/// Returns the progress in one line, the most important part first.
fn words(cell: &Cell, warmup: bool, done: usize, most: usize, at_s: f64, last: &str) -> String {
    let mut out = format!(
        "run {} of at most {}",
        number::grouped(done as u64 + 1),
        number::grouped(most as u64)
    );
    if done > 0 {
        let left_s = at_s / done as f64 * most.saturating_sub(done) as f64;
        out.push_str(&format!(" | at most {} left", time(left_s)));
    }
    out.push_str(&format!(" | {}", name(cell)));
    if warmup {
        out.push_str(" (warm-up)");
    }
    if !last.is_empty() {
        out.push_str(&format!(" | {last}"));
    }
    out
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
        let cell = Cell { series: "rsync".into(), x: Some(4.0), ..Cell::default() };
        assert_eq!(
            words(&cell, true, 0, 1200, 0.0, ""),
            "run 1 of at most 1,200 | rsync @4 (warm-up)"
        );
        assert_eq!(
            words(&cell, false, 10, 30, 100.0, "last 9.000 s"),
            "run 11 of at most 30 | at most 3 min left | rsync @4 | last 9.000 s"
        );
        assert_eq!([time(3.4), time(600.0), time(7200.0)], ["3 s", "10 min", "2.0 h"]);
    }
}
