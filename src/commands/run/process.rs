//! A line that runs as a process: started, read, and stopped with the run.

use hakobu_sys::child::{self, SessionGuard, send};
use hakobu_transfer::run::Control;
use signal_hook::consts::SIGTERM;
use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Maximum delay until a process gets the signal that the run is stopped.
const STEP: Duration = Duration::from_millis(50);

/// Runs a process to its end and returns its standard error. If the run is asked to stop, the process gets SIGTERM
/// once. It has a session of its own, so that the terminal's Ctrl-C does not reach it as well: a second signal
/// would end it at once. It may read from the terminal, as it is in no background there. `reads`: it gets standard input.
///
/// # Errors
/// Those of the system: it cannot be started or waited for.
pub fn run(
    mut command: Command,
    control: &Control,
    reads: bool,
) -> io::Result<(ExitStatus, Vec<u8>)> {
    command.stdin(if reads { Stdio::inherit() } else { Stdio::null() });
    command.stdout(Stdio::inherit()).stderr(Stdio::piped());
    child::lead_session(&mut command, false);
    let mut child = command.spawn()?;
    let _under_way = SessionGuard::new(child.id());
    let (sender, receiver) = channel();
    let stderr = child.stderr.take();
    std::thread::scope(|scope| {
        let read = move || {
            let mut text = Vec::new();
            let read = stderr.map_or(Ok(0), |mut stderr| stderr.read_to_end(&mut text));
            // The receiver waits until this arrives.
            let _ = sender.send(read.map(|_| text));
        };
        let reader = std::thread::Builder::new().spawn_scoped(scope, read);
        if let Err(error) = reader {
            child.kill()?;
            child.wait()?;
            return Err(error);
        }
        let mut ending = false;
        let text = loop {
            match receiver.recv_timeout(STEP) {
                Ok(text) => break text,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ok(Vec::new()),
            }
            if control.is_stopped() && !ending {
                ending = true;
                // It is waited for below, so its process ID is not reused.
                send(child.id(), SIGTERM)?;
            }
        };
        let status = child.wait()?;
        Ok((status, text?))
    })
}
