//! The display below the output on the terminal behind standard error: a bar or lines of text, one of them at a time,
//! and output beside it. While another program writes to the same terminal, `reserved` has a line for itself instead.

pub mod reserved;

use hakobu_sys::stdio;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use std::io::{self, IsTerminal, Write};

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
