//! Parts that streams and datagrams have in common.

use crate::engine::patience::{Patience, SILENCE, SLICE};
use crate::job::Net as Options;
use hakobu_sys::errno;
use std::io::{self, Error};
use std::time::Duration;

/// Says that an end has finished.
pub(super) const GOODBYE: &[u8; 32] = b"hakobu io: this end has finished";

/// Errno of an operation that did not go.
pub(super) type Errno = i32;

/// Errno of an operation of a socket; `None` where it only took too long and may be tried again.
pub(super) fn errno_of(error: &Error) -> Option<Errno> {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    match error.kind() {
        Interrupted | TimedOut | WouldBlock => None,
        _ => Some(errno::of(error)),
    }
}

/// Checks whether to continue to wait after `quiet` without progress.
pub(super) fn goes_on(quiet: Duration, patience: &Patience<'_>) -> Result<(), Errno> {
    if patience.is_over() {
        return Err(errno::ECANCELED);
    }
    if quiet >= SILENCE { Err(errno::ETIMEDOUT) } else { Ok(()) }
}

/// Checks whether to try an operation again that did not go, after `quiet` without progress.
pub(super) fn try_again(
    error: &Error,
    quiet: Duration,
    patience: &Patience<'_>,
) -> Result<(), Errno> {
    errno_of(error).map_or_else(|| goes_on(quiet, patience), Err)
}

/// Sets what all sockets have.
pub(super) fn set_up(socket: &socket2::Socket, options: &Options) -> io::Result<()> {
    socket.set_read_timeout(Some(SLICE))?;
    socket.set_write_timeout(Some(SLICE))?;
    if let Some(bytes) = options.window_bytes {
        socket.set_send_buffer_size(bytes as usize)?;
        socket.set_recv_buffer_size(bytes as usize)?;
    }
    Ok(())
}
