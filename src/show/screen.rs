//! The display below the output on the terminal behind standard error: a few lines of text, drawn anew in place, and
//! output beside it. While another program writes to the same terminal, it may have the last line for itself.
//! Questions stand on standard error, too, and are answered on standard input.

use super::escape::Escape;
use crate::input;
use hakobu_core::lines;
use hakobu_sys::stdio;
use hakobu_transfer::policy::Ask;
use parking_lot::Mutex;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Width of a terminal that does not tell its own.
const COLUMNS_USUAL: usize = 80;
/// Columns that stay free at the end of each line: the terminal echoes `^C` or `^Z` behind the last one, and a line that
/// wraps there would not be erased.
const COLUMNS_FREE: usize = 4;
/// Updates that may follow one another at once, and updates per second in the long run.
const UPDATES_MAX: f64 = 20.0;

/// The display, if there is one.
static SHOWN: Mutex<Option<Display>> = Mutex::new(None);

/// Lines on the terminal. The cursor is at the end of the last one.
struct Display {
    lines: Vec<String>,
    /// Columns of each line that was drawn and not erased.
    drawn: Vec<usize>,
    /// Updates that may be made now.
    updates: f64,
    updated: Instant,
}

impl Display {
    fn new() -> Display {
        Display {
            lines: Vec::new(),
            drawn: Vec::new(),
            updates: UPDATES_MAX,
            updated: Instant::now(),
        }
    }

    /// Takes one update from the number that may be made.
    fn may_update(&mut self) -> bool {
        let since = std::mem::replace(&mut self.updated, Instant::now());
        self.updates =
            (self.updates + since.elapsed().as_secs_f64() * UPDATES_MAX).min(UPDATES_MAX);
        let may = self.updates >= 1.0;
        self.updates -= f64::from(u8::from(may));
        may
    }

    /// Appends the sequence that erases the lines (ECMA-48: CUU, EL). A line that became wider than the terminal, because
    /// its window did, has wrapped.
    fn push_erasure(&mut self, columns: usize, out: &mut String) {
        let rows: usize = self.drawn.iter().map(|width| width.div_ceil(columns).max(1)).sum();
        for row in 0..rows {
            out.push_str(if row == 0 { "\r\x1b[2K" } else { "\x1b[A\x1b[2K" });
        }
        self.drawn.clear();
    }

    /// Draws the lines in place of those that are there, in one call: no terminal shows half of them.
    fn draw(&mut self) {
        let mut out = String::new();
        self.push_erasure(columns(), &mut out);
        out.push_str(&self.lines.join("\n"));
        self.drawn.extend(self.lines.iter().map(|line| line.chars().count()));
        write(&out);
    }

    fn erase(&mut self) {
        let mut out = String::new();
        self.push_erasure(columns(), &mut out);
        write(&out);
    }
}

/// Returns whether standard error is a terminal that can redraw lines.
pub fn redraws() -> bool {
    io::stderr().is_terminal() && !is_dumb()
}

/// Returns whether the terminal cannot redraw a line.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

fn columns() -> usize {
    stdio::columns(io::stderr()).filter(|columns| *columns > 0).unwrap_or(COLUMNS_USUAL)
}

/// Returns the number of columns that a line of the display may fill.
pub fn room() -> usize {
    columns().saturating_sub(COLUMNS_FREE)
}

/// Shows lines of text instead of those before, each shortened to the width of the terminal. Lines that cannot be
/// redrawn are written one below the other.
pub fn show(text: &str) {
    if !redraws() {
        let _ = writeln!(io::stderr().lock(), "{text}");
        return;
    }
    let room = room();
    let mut shown = SHOWN.lock();
    let display = shown.get_or_insert_with(Display::new);
    display.lines = text.lines().map(|line| fit(line, room)).collect();
    if display.may_update() {
        display.draw();
    }
}

/// Returns a text as one line of at most so many columns, shortened behind a word.
fn fit(text: &str, columns: usize) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut line: String = plain.take(columns + 1).collect();
    let Some((end, _)) = line.char_indices().nth(columns) else { return line };
    // Without a space in the second half the line is no text.
    let word = line.char_indices().filter(|(_, c)| *c == ' ').map(|(at, _)| at).next_back();
    line.truncate(word.filter(|at| *at >= end / 2).unwrap_or(end));
    line.truncate(line.trim_end_matches([' ', ',', ';', '|', '(']).len());
    line
}

/// Hides the display while `write` writes to the terminal. Must not be called from within itself.
pub fn beside<T>(write: impl FnOnce() -> T) -> T {
    let mut shown = SHOWN.lock();
    let Some(display) = &mut *shown else {
        // The lock stays held: no display is drawn meanwhile.
        return write();
    };
    display.erase();
    let result = write();
    display.draw();
    result
}

/// Keeps the lines that are drawn, and has the next ones drawn at the cursor: the program was stopped and continued, and
/// a shell wrote below them meanwhile.
pub fn start_anew() {
    if let Some(display) = &mut *SHOWN.lock() {
        // Only the line of the cursor is erased.
        display.drawn = vec![0];
    }
}

/// Removes the display.
pub fn clear() {
    if let Some(mut display) = SHOWN.lock().take() {
        display.erase();
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
        let text = fit(&text(), columns().saturating_sub(1));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_a_word() {
        for (columns, expected) in [
            (40, "run 2 of at most 10 | 4 s left | sleep"),
            (34, "run 2 of at most 10 | 4 s left"),
            (32, "run 2 of at most 10 | 4 s left"),
            (29, "run 2 of at most 10 | 4 s"),
            (19, "run 2 of at most 10"),
            (18, "run 2 of at most"),
        ] {
            let line = fit("run 2 of at most 10 | 4 s left | sleep 0.25", columns);
            assert_eq!(line, expected, "{columns}");
        }
        assert_eq!(fit("a\tb\nc", 9), "a b c");
        assert_eq!(fit("[########]", 5), "[####");
    }

    #[test]
    fn lines_that_wrapped_are_erased_whole() {
        let mut display = Display::new();
        display.drawn = vec![100, 20];
        let mut out = String::new();
        display.push_erasure(60, &mut out);
        assert_eq!(out, "\r\x1b[2K\x1b[A\x1b[2K\x1b[A\x1b[2K");
        assert!(display.drawn.is_empty());
        out.clear();
        display.push_erasure(60, &mut out);
        assert_eq!(out, "");
    }

    #[test]
    fn updates_have_a_limit() {
        let mut display = Display::new();
        let made = (0..100).filter(|_| display.may_update()).count();
        assert!((20..=25).contains(&made), "{made}");
    }
}
