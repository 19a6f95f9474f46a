//! A line for a display beside another program's output: the last line of the terminal, protected by a scrolling
//! region above it (DECSTBM; ECMA-48, VT100). A display below the output would erase a part of that program's line.

use hakobu_sys::stdio;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Minimum interval between two updates.
const PAUSE: Duration = Duration::from_millis(90);
/// Minimum number of rows of the terminal.
const ROWS_MIN: usize = 4;

/// The reserved line.
pub struct Line {
    rows: usize,
    drawn: Option<Instant>,
}

impl Line {
    /// Reserves the last line of the terminal behind standard error; returns `None` if there is no terminal that can
    /// do it.
    pub fn reserve() -> Option<Line> {
        if !super::redraws() {
            return None;
        }
        let rows = stdio::rows(io::stderr()).filter(|rows| *rows >= ROWS_MIN)?;
        write(&region(rows));
        Some(Line { rows, drawn: None })
    }

    /// Shows a text, if an update is due.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        if self.drawn.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        self.drawn = Some(Instant::now());
        let Some(rows) = stdio::rows(io::stderr()).filter(|rows| *rows >= ROWS_MIN) else {
            return;
        };
        if rows != self.rows {
            self.rows = rows;
            write(&region(rows));
        }
        let text = super::fit(&text());
        write(&format!("\x1b7\x1b[{rows};1H\x1b[7m{text}\x1b[0m\x1b[K\x1b8"));
    }

    /// Releases the line.
    pub fn release(self) {
        write(&format!("\x1b7\x1b[r\x1b[{};1H\x1b[2K\x1b8", self.rows));
    }
}

/// Returns the sequence that moves the cursor out of the last line, and excludes that line from scrolling.
fn region(rows: usize) -> String {
    format!("\x1bD\x1b[A\x1b7\x1b[1;{}r\x1b8", rows - 1)
}

/// Writes in one call, so that it does not mix with the other program's output.
fn write(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
