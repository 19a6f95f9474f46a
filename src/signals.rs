//! Signals: the first one asks the run to end cleanly, the second one ends the program.

use crate::show::output;
use crate::stopped;
use hakobu_sys::process;
use hakobu_transfer::run::Control;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;

/// Makes signals stop the run of `control`; a second one ends the program with the exit code `at_once`, the command's
/// own for an interrupted run. Handlers only read and set its flag: a thread that waits for signals would slow down
/// every growth of the descriptor table. If the system refuses to install them, a message says that signals will end
/// `what` at once.
pub fn stop(control: &Control, at_once: u8, what: &str) {
    if let Err(error) = register(control, at_once) {
        output::message(&format!("signals will end {what} at once: {error}"));
    }
}

fn register(control: &Control, at_once: u8) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // A signal that nohup(1) or a shell without job control ignores stays ignored.
        if process::ignores_signal(signal) {
            continue;
        }
        flag::register_conditional_shutdown(signal, i32::from(at_once), control.flag())?;
        flag::register(signal, control.flag())?;
        flag::register(signal, stopped::flag())?;
    }
    Ok(())
}
