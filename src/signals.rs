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
    // What nohup(1) or a shell without job control has switched off stays off.
    let heard = [SIGINT, SIGTERM, SIGHUP];
    let heard = heard.iter().filter(|signal| !hakobu_sys::process::ignores_signal(**signal));
    let mut signals = Signals::new(heard)?;
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
