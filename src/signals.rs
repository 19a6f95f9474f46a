//! Signals: the first one asks the run to end cleanly, the second one ends the program.

use crate::exit;
use hakobu_sys::process;
use hakobu_transfer::run::Control;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;

/// Makes signals stop the run of `control`. Handlers only look at its flag and set it: a thread
/// that waits for signals would make every later growth of the descriptor table slow.
///
/// # Errors
/// The system refuses to install the handlers.
pub fn stop(control: &Control) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // What nohup(1) or a shell without job control has switched off stays off.
        if process::ignores_signal(signal) {
            continue;
        }
        let at_once = i32::from(exit::SYNC_INTERRUPTED);
        flag::register_conditional_shutdown(signal, at_once, control.flag())?;
        flag::register(signal, control.flag())?;
    }
    Ok(())
}
