//! Questions on standard error, answered on standard input.

use super::escape::Escape;
use hakobu_transfer::policy::Ask;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Asks whether to do something to an existing entry, such as `overwrite`: a question on standard
/// error, answered on standard input, one at a time.
pub fn ask(command: &'static str, what: &'static str) -> Ask {
    let one = Mutex::new(());
    Arc::new(move |path: &Path| {
        let _one = one.lock().unwrap_or_else(PoisonError::into_inner);
        let path = Escape::of_locale().path(path);
        confirmed(&format!("hakobu {command}: {what} '{path}'? "))
    })
}

/// Asks a question; only an answer that begins with `y` means yes.
pub fn confirmed(question: &str) -> bool {
    let _ = std::io::stderr().lock().write_all(question.as_bytes());
    let mut answer = String::new();
    // An answer that is no text, or none at all, is no.
    let read = std::io::stdin().read_line(&mut answer);
    read.is_ok() && answer.trim_start().starts_with(['y', 'Y'])
}
