//! The terminal's single progress bar, and output beside it.

use indicatif::{ProgressBar, ProgressDrawTarget};
use parking_lot::Mutex;

/// Length of the bar.
pub const STEPS: u64 = 1000;

/// The bar on the terminal, if there is one.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Draws the bar, the first time below the existing output.
pub fn draw(picture: impl FnOnce(&ProgressBar)) {
    let mut bar = BAR.lock();
    let target = || ProgressDrawTarget::stderr_with_hz(10);
    picture(bar.get_or_insert_with(|| ProgressBar::with_draw_target(Some(STEPS), target())));
}

/// Hides the bar while `write` writes to the terminal. Must not be called from within itself.
pub fn beside<T>(write: impl FnOnce() -> T) -> T {
    match &*BAR.lock() {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Removes the bar.
pub fn clear() {
    if let Some(bar) = BAR.lock().take() {
        bar.finish_and_clear();
    }
}
