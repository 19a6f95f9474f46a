//! The display below the output on the terminal behind standard error: a bar or lines of text, one of them at a time,
//! and output beside it. While another program writes to the same terminal, it may have the last line for itself.
//! Questions stand on standard error, too, and are answered on standard input.

use super::escape::Escape;
use crate::input;
use hakobu_core::lines;
use hakobu_sys::stdio;
use hakobu_transfer::policy::Ask;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Length of the bar.
pub const STEPS: u64 = 1000;

/// The display, if there is one.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Returns whether standard error is a terminal that can redraw lines.
pub fn redraws() -> bool {
    io::stderr().is_terminal() && !is_dumb()
}

/// Returns whether the terminal cannot redraw a line.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

/// Draws the display, the first time below the existing output.
pub fn draw(picture: impl FnOnce(&ProgressBar)) {
    let mut shown = SHOWN.lock();
    let target = || ProgressDrawTarget::stderr_with_hz(10);
    picture(shown.get_or_insert_with(|| ProgressBar::with_draw_target(Some(STEPS), target())));
}

/// Shows lines of text instead of those before, each cut to the width of the terminal. Lines that cannot be redrawn are
/// written one below the other.
pub fn show(text: &str) {
    if !redraws() {
        let _ = writeln!(io::stderr().lock(), "{text}");
        return;
    }
    let lines: Vec<String> = text.lines().map(fit).collect();
    draw(|bar| {
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        // This does not draw, unlike `set_message`.
        bar.clone().with_message(lines.join("\n")).tick();
    });
}

/// Returns a text as one line that fits into the terminal.
fn fit(text: &str) -> String {
    let columns = stdio::columns(io::stderr()).unwrap_or(80);
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(columns.saturating_sub(1)).collect()
}

/// Hides the display while `write` writes to the terminal. Must not be called from within itself.
pub fn beside<T>(write: impl FnOnce() -> T) -> T {
    match &*SHOWN.lock() {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Removes the display.
pub fn clear() {
    if let Some(bar) = SHOWN.lock().take() {
        bar.finish_and_clear();
    }
}

/// Minimum interval between two updates.
const PAUSE: Duration = Duration::from_millis(90);
/// Minimum number of rows of the terminal.
const ROWS_MIN: usize = 4;

/// A line for a display beside another program's output: the last line of the terminal, protected by a scrolling
/// region above it (DECSTBM; ECMA-48, VT100). A display below the output would erase a part of that program's line.
pub struct ReservedLine {
    rows: usize,
    drawn: Option<Instant>,
}

impl ReservedLine {
    /// Reserves the last line of the terminal behind standard error; returns `None` if there is no terminal that can
    /// do it.
    pub fn reserve() -> Option<ReservedLine> {
        if !redraws() {
            return None;
        }
        let rows = stdio::rows(io::stderr()).filter(|rows| *rows >= ROWS_MIN)?;
        write(&region(rows));
        Some(ReservedLine { rows, drawn: None })
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
        let text = fit(&text());
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

/// Returns a function that asks whether to do something to an existing entry, such as `overwrite`, one question at a
/// time.
pub fn ask(command: &'static str, what: &'static str) -> Ask {
    let one = Mutex::new(());
    Arc::new(move |path: &Path| {
        let _one = one.lock();
        let path = Escape::of_locale().path(path);
        confirmed(&format!("hakobu {command}: {what} '{path}'? "))
    })
}

/// Asks a question on standard error; only an answer that begins with `y` means yes.
pub fn confirmed(question: &str) -> bool {
    beside(|| {
        let _ = std::io::stderr().lock().write_all(question.as_bytes());
        // An invalid or missing answer means no, and so does a signal.
        let read = || lines::next(&mut *input::stdin()?, 1);
        let answer = read().ok().flatten().unwrap_or_default();
        std::str::from_utf8(&answer).is_ok_and(|text| text.trim_start().starts_with(['y', 'Y']))
    })
}
