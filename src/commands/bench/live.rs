//! What happens while a campaign runs: one line on a terminal, and a sentence for what fails, each
//! once.

use crate::number;
use crate::show::output;
use hakobu_lab::campaign::run::Event;
use hakobu_lab::results::Cell;
use hakobu_sys::terminal;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};

/// The line.
pub struct Live {
    quiet: bool,
    is_terminal: bool,
    drawn: bool,
    /// Problems that were told.
    told: BTreeSet<String>,
    /// What the last run took.
    last: String,
}

impl Live {
    /// Nothing is shown yet; `quiet`: nor ever.
    pub fn new(quiet: bool) -> Live {
        Live {
            quiet,
            is_terminal: io::stderr().is_terminal(),
            drawn: false,
            told: BTreeSet::new(),
            last: String::new(),
        }
    }

    /// Shows what happened.
    pub fn show(&mut self, event: &Event<'_>) {
        if self.quiet {
            return;
        }
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
                    self.tell(&format!("{}: {problem}", name(cell)));
                }
            }
            Event::Teardown(why) => self.tell(&format!("cleanup: {why}")),
        }
    }

    /// Takes the line away.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.drawn) {
            output::error_text("\r\x1b[K");
        }
    }

    fn tell(&mut self, message: &str) {
        if self.told.insert(message.to_owned()) {
            self.end();
            output::message(message);
        }
    }

    fn draw(&mut self, text: &str) {
        if !self.is_terminal {
            return;
        }
        let columns = terminal::columns(io::stderr()).unwrap_or(80);
        let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        let line: String = plain.take(columns.saturating_sub(1)).collect();
        output::error_text(&format!("\r\x1b[K{line}"));
        self.drawn = true;
    }
}

/// What a cell is called in a sentence.
fn name(cell: &Cell) -> String {
    let swept = cell.x.map_or(String::new(), |x| format!(" @{x}"));
    format!("{}{swept}", cell.series)
}

/// How far it is, in one line; the most telling first.
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

/// A time for people: `42 s`, `3 min`, `1.5 h`.
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
