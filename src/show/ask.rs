//! Questions on standard error, answered on standard input.

use super::escape::Escape;
use super::screen;
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
        let mut answer = String::new();
        // An invalid or missing answer means no.
        let read = std::io::stdin().read_line(&mut answer);
        read.is_ok() && answer.trim_start().starts_with(['y', 'Y'])
    })
}
