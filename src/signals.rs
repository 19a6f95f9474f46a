//! Signals: the first one asks the run to end cleanly, the second one ends the program.

use crate::exit;
use hakobu_transfer::run::Control;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;

/// A control that signals stop.
///
/// # Errors
/// The system refuses to install the handlers or to start the thread that waits for them.
pub fn control() -> io::Result<Arc<Control>> {
    let control = Arc::new(Control::default());
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let stopped = Arc::clone(&control);
    std::thread::Builder::new().name("signals".into()).stack_size(64 * 1024).spawn(move || {
        for _ in signals.forever() {
            if stopped.is_stopped() {
                std::process::exit(i32::from(exit::SYNC_INTERRUPTED));
            }
            stopped.stop();
        }
    })?;
    Ok(control)
}
