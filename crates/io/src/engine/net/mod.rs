//! The engine `net`: blocks go over a socket. A job that writes sends them, one that reads receives them, and with
//! `pingpong` each comes back.
//!
//! An end that has finished says goodbye before it closes, so that the other one can tell it from an end that died:
//! with a stream by some bytes behind the last block, with datagrams by one of its own. No wait is without a bound.

mod datagrams;
mod open;
mod shared;
mod stream;

use super::patience::{Failure, Patience};
use super::{Engine, Queued, REFUSED, Transfer, part};
use crate::Job;
use crate::job::Net as Options;
use hakobu_sys::errno;
use hakobu_sys::memory::Aligned;
use open::{Opened, Way};
use std::time::Duration;

/// Blocks between two looks whether the receiver has finished.
const LOOK: u64 = 64;

/// A way to the other end.
enum Link {
    /// Not there yet.
    Opened(Opened),
    Way(Way),
    /// The waiting for it was ended.
    None,
}

/// One end.
pub(crate) struct Net<'a> {
    link: Link,
    options: &'a Options,
    sends: bool,
    buffer: Aligned,
    /// Buffer of blocks that come back (`pingpong`).
    echo: Vec<u8>,
    blocks: u64,
    patience: Patience<'a>,
}

impl<'a> Net<'a> {
    /// Creates an end with blocks of this many bytes; a receiver begins to listen.
    ///
    /// # Errors
    /// No such address, or one that another program has.
    pub(crate) fn new(
        job: &'a Job,
        clone: u32,
        bytes: usize,
        is_over: &'a dyn Fn() -> bool,
    ) -> Result<Net<'a>, Failure> {
        let sends = job.rw.writes;
        let opened = open::open(&job.net, clone, sends)?;
        let buffer = Aligned::new(bytes.max(1));
        let buffer = buffer.map_err(|error| Failure::of(&error, error.to_string()))?;
        let echo = vec![0; if job.net.ping_pong && sends { bytes } else { 0 }];
        let (link, patience) = (Link::Opened(opened), Patience::new(is_over));
        Ok(Net { link, options: &job.net, sends, buffer, echo, blocks: 0, patience })
    }
}

impl Engine for Net<'_> {
    const WAITS: bool = true;

    fn buffer(&mut self, _: usize) -> &mut [u8] {
        &mut self.buffer
    }

    fn transfer(&mut self, _: usize, block: Transfer) -> Queued {
        let Some(buffer) = part(&mut self.buffer, &block) else { return REFUSED };
        let (patience, ping_pong) = (&self.patience, self.options.ping_pong);
        self.blocks += 1;
        let echo = self.echo.get_mut(..buffer.len());
        let done = match (&mut self.link, self.sends) {
            (Link::Way(Way::Stream(stream)), true) => {
                let looks = !ping_pong && self.blocks.is_multiple_of(LOOK);
                stream.send(buffer, looks, patience).and_then(|()| match echo {
                    Some(echo) if ping_pong => {
                        stream.receive(echo, patience)?;
                        if echo == buffer { Ok(()) } else { Err(errno::EBADMSG) }
                    }
                    _ => Ok(()),
                })
            }
            (Link::Way(Way::Stream(stream)), false) => {
                stream.receive(buffer, patience).and_then(|()| match ping_pong {
                    true => stream.send(buffer, false, patience),
                    false => Ok(()),
                })
            }
            (Link::Way(Way::Datagrams(socket)), true) => {
                socket.send(buffer, patience).and_then(|()| match echo {
                    Some(echo) if ping_pong => socket.receive_back(buffer, echo, patience),
                    _ => Ok(()),
                })
            }
            (Link::Way(Way::Datagrams(socket)), false) => {
                socket.receive(buffer, patience).and_then(|()| match ping_pong {
                    true => socket.send(buffer, patience),
                    false => Ok(()),
                })
            }
            (Link::Opened(_) | Link::None, _) => Err(errno::ENOTCONN),
        };
        Queued::Done(match done {
            Ok(()) => i64::from(block.bytes),
            Err(errno) => -i64::from(errno),
        })
    }

    /// Waits for the other end. False if all is over meanwhile.
    fn ready(&mut self, span: Option<Duration>) -> Result<bool, Failure> {
        let Link::Opened(opened) = std::mem::replace(&mut self.link, Link::None) else {
            return Ok(false);
        };
        let Some(way) = opened.meet(self.options, &self.patience)? else { return Ok(false) };
        self.link = Link::Way(way);
        self.patience.begin(span);
        Ok(true)
    }

    fn leave(&mut self) {
        match &mut self.link {
            Link::Way(Way::Stream(stream)) => stream.leave(),
            Link::Way(Way::Datagrams(socket)) if self.sends => socket.leave(),
            _ => {}
        }
    }
}
