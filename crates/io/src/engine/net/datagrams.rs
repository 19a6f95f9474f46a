//! Blocks as datagrams (UDP). Losses are not repaired: the sender counts sent blocks, the receiver received ones.

use super::shared::{Errno, GOODBYE, goes_on, try_again};
use crate::engine::patience::Patience;
use hakobu_sys::errno;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Goodbyes, of which some may be lost, and the time between them.
const GOODBYES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// A socket for datagrams.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: UdpSocket,
    /// Destination of blocks: the receiver or the group, or with `pingpong` the sender of the last block.
    to: Option<SocketAddr>,
    /// First sender of a block; blocks of others are not counted.
    from: Option<SocketAddr>,
}

impl Datagrams {
    /// Wraps a socket that has timeouts; `to` is the destination of a sender.
    pub(super) fn new(socket: UdpSocket, to: Option<SocketAddr>) -> Datagrams {
        Datagrams { socket, to, from: None }
    }

    /// Sends a block.
    pub(super) fn send(&mut self, block: &[u8], patience: &Patience<'_>) -> Result<(), Errno> {
        let Some(to) = self.to.or(self.from) else { return Err(errno::ENOTCONN) };
        let since = Instant::now();
        loop {
            match self.socket.send_to(block, to) {
                Ok(sent) if sent == block.len() => return Ok(()),
                Ok(_) => return Err(errno::EMSGSIZE),
                Err(error) => try_again(&error, since.elapsed(), patience)?,
            }
        }
    }

    /// Receives a block of the sender. ECANCELED after its goodbye.
    pub(super) fn receive(
        &mut self,
        block: &mut [u8],
        patience: &Patience<'_>,
    ) -> Result<(), Errno> {
        let since = Instant::now();
        loop {
            match self.socket.recv_from(block) {
                Ok((bytes, from)) => {
                    let is_known = self.from == Some(from);
                    if is_known && block.get(..bytes) == Some(GOODBYE) {
                        return Err(errno::ECANCELED);
                    }
                    if bytes == block.len() && (is_known || self.from.is_none()) {
                        self.from = Some(from);
                        return Ok(());
                    }
                    // Something else, perhaps without end.
                    goes_on(since.elapsed(), patience)?;
                }
                Err(error) => try_again(&error, since.elapsed(), patience)?,
            }
        }
    }

    /// Receives a block that was sent, with the same content.
    pub(super) fn receive_back(
        &mut self,
        block: &[u8],
        echo: &mut [u8],
        patience: &Patience<'_>,
    ) -> Result<(), Errno> {
        let since = Instant::now();
        loop {
            self.receive(echo, patience)?;
            if echo == block {
                return Ok(());
            }
            // Perhaps an older one.
            goes_on(since.elapsed(), patience)?;
        }
    }

    /// Says goodbye.
    pub(super) fn leave(&mut self) {
        for _ in 0..GOODBYES {
            let Some(to) = self.to else { return };
            // Best effort: the receiver may be gone.
            let _ = self.socket.send_to(GOODBYE, to);
            std::thread::sleep(PAUSE);
        }
    }
}
