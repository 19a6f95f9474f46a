//! Blocks as parts of a stream: TCP, unix, vsock.

use super::shared::{Errno, GOODBYE, errno_of, try_again};
use crate::engine::patience::Patience;
use hakobu_sys::errno;
use socket2::Socket;
use std::io::Read;
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// Time to say goodbye.
const LEAVE: Duration = Duration::from_secs(1);
/// Bytes read at once of data that is discarded.
const DRAIN_BYTES: usize = 64 << 10;
/// MSG_NOSIGNAL: a peer that is gone is an error, not a signal.
const NO_SIGNAL: i32 = 0x4000;

/// A connection.
#[derive(Debug)]
pub(super) struct Stream {
    socket: Socket,
    /// Its last bytes, of which a goodbye may be a part.
    tail: Vec<u8>,
}

impl Stream {
    /// Wraps a connected socket that has timeouts.
    pub(super) fn new(socket: Socket) -> Stream {
        Stream { socket, tail: Vec::with_capacity(2 * GOODBYE.len()) }
    }

    /// Sends a block; looks before that whether the other end has finished, if `looks`.
    pub(super) fn send(
        &mut self,
        block: &[u8],
        looks: bool,
        patience: &Patience<'_>,
    ) -> Result<(), Errno> {
        if looks && self.has_finished() {
            return Err(errno::ECANCELED);
        }
        let (mut rest, mut since) = (block, None::<Instant>);
        while !rest.is_empty() {
            match self.socket.send_with_flags(rest, NO_SIGNAL) {
                Ok(0) => return Err(errno::EPIPE),
                Ok(sent) => (rest, since) = (rest.get(sent..).unwrap_or_default(), None),
                Err(_) if self.has_finished() => return Err(errno::ECANCELED),
                Err(error) => {
                    let since = since.get_or_insert_with(Instant::now);
                    try_again(&error, since.elapsed(), patience)?;
                }
            }
        }
        Ok(())
    }

    /// Receives a block. ECANCELED after a goodbye, ECONNRESET where the stream ends without one.
    pub(super) fn receive(
        &mut self,
        block: &mut [u8],
        patience: &Patience<'_>,
    ) -> Result<(), Errno> {
        let (mut at, mut since) = (0, None::<Instant>);
        while let Some(rest) = block.get_mut(at..).filter(|rest| !rest.is_empty()) {
            match (&self.socket).read(rest) {
                Ok(0) => {
                    self.keep(block.get(..at).unwrap_or_default());
                    let said = self.tail.ends_with(GOODBYE);
                    return Err(if said { errno::ECANCELED } else { errno::ECONNRESET });
                }
                Ok(came) => {
                    (at, since) = (at + came, None);
                    // It may come drop by drop.
                    if at < block.len() && patience.is_over() {
                        return Err(errno::ECANCELED);
                    }
                }
                Err(error) => {
                    let since = since.get_or_insert_with(Instant::now);
                    try_again(&error, since.elapsed(), patience)?;
                }
            }
        }
        self.keep(block);
        Ok(())
    }

    /// Remembers the last bytes that came.
    fn keep(&mut self, bytes: &[u8]) {
        let last = bytes.len().saturating_sub(GOODBYE.len());
        self.tail.extend_from_slice(bytes.get(last..).unwrap_or_default());
        let more = self.tail.len().saturating_sub(GOODBYE.len());
        self.tail.drain(..more);
    }

    /// Returns whether the receiver has said goodbye, which is all that it ever sends.
    fn has_finished(&mut self) -> bool {
        let mut bytes = [0; GOODBYE.len()];
        if self.socket.set_nonblocking(true).is_err() {
            return false;
        }
        while let Ok(came @ 1..) = (&self.socket).read(&mut bytes) {
            self.keep(bytes.get(..came).unwrap_or_default());
        }
        // If this fails, so does the next call.
        let _ = self.socket.set_nonblocking(false);
        self.tail.ends_with(GOODBYE)
    }

    /// Says goodbye, and waits until the other end has closed, so that it can read that; data that it still sends is dropped.
    pub(super) fn leave(&mut self) {
        let until = Instant::now() + LEAVE;
        let mut rest = &GOODBYE[..];
        while !rest.is_empty() && Instant::now() < until {
            match self.socket.send_with_flags(rest, NO_SIGNAL) {
                Ok(sent) => rest = rest.get(sent.max(1)..).unwrap_or_default(),
                Err(error) if errno_of(&error).is_none() => {}
                // It has gone before.
                Err(_) => return,
            }
        }
        if self.socket.shutdown(Shutdown::Write).is_err() {
            return;
        }
        let mut drain = vec![0; DRAIN_BYTES];
        while Instant::now() < until {
            match (&self.socket).read(&mut drain) {
                Ok(1..) => {}
                Err(error) if errno_of(&error).is_none() => {}
                Ok(0) | Err(_) => return,
            }
        }
    }
}
