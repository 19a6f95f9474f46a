//! Questions on standard error, answered on standard input.

use super::escape::Escape;
use super::screen;
use crate::input;
use hakobu_core::lines;
use hakobu_transfer::policy::Ask;
use parking_lot::Mutex;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

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

/// Asks a question; only an answer that begins with `y` means yes.
pub fn confirmed(question: &str) -> bool {
    screen::beside(|| {
        let _ = std::io::stderr().lock().write_all(question.as_bytes());
        // An invalid or missing answer means no, and so does a signal.
        let read = || lines::next(&mut *input::stdin()?, 1);
        let answer = read().ok().flatten().unwrap_or_default();
        std::str::from_utf8(&answer).is_ok_and(|text| text.trim_start().starts_with(['y', 'Y']))
    })
}
