//! How a block goes (`ioengine`): by a call that waits, by a queue, by memory, or not at all. One
//! trait, and the loop of `run` is compiled anew for each of its implementations, so that nothing is
//! decided anew for each block.

mod calls;
mod libaio;
mod mmap;
mod null;
mod uring;

#[cfg(test)]
mod tests;

pub(super) use calls::{Calls, Positioned, Seeking, Vectored};
pub(super) use hakobu_sys::blocks::Transfer;
pub(super) use libaio::Libaio;
pub(super) use mmap::Mmap;
pub(super) use null::{Null, NullQueue};
pub(super) use uring::Uring;

use hakobu_sys::OwnedFd;
use hakobu_sys::blocks;
use std::io::Result;
use std::time::Duration;

/// What became of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queued {
    /// It is done: bytes that went, or the errno as a negative number.
    Done(i64),
    /// It is in the queue, and its buffer out of reach until it is reaped.
    Later,
}

/// What has been reaped: the slot, and what [`Queued::Done`] would have said.
pub(super) type Landed = (usize, i64);

/// A way for blocks. It owns a buffer for each block that can be in flight; buffers are numbered, and
/// these slots name what is in flight.
pub(super) trait Engine {
    /// Every operation is done when its call comes back: there is one slot, and nothing to reap.
    const WAITS: bool;

    /// The buffer of a slot; empty while it is in flight.
    fn buffer(&mut self, slot: usize) -> &mut [u8];

    /// Moves a block, or queues it. A free slot, and a place inside of its buffer, are the caller's
    /// to choose; anything else is EINVAL.
    fn transfer(&mut self, slot: usize, block: Transfer) -> Queued;

    /// Lets what was written to a file reach its device; only as much as reading it again needs, if
    /// `data`. What is in flight need not have been.
    fn sync(&mut self, slot: usize, file: u32, data: bool) -> Queued;

    /// Begins what is queued; returns how many operations that were. Fewer than there are if the
    /// kernel has no room for more at the moment.
    fn commit(&mut self) -> Result<u32> {
        Ok(0)
    }

    /// Begins what is queued, waits until at least `least` operations are done, but no longer than
    /// `timeout`, and hands over at most `most` of them. Returns how many were begun.
    fn reap(
        &mut self,
        _least: u32,
        _most: u32,
        _timeout: Option<Duration>,
        _landed: &mut Vec<Landed>,
    ) -> Result<u32> {
        Ok(0)
    }
}

/// fsync(2) or fdatasync(2), for engines that have none of their own.
fn sync_file(files: &[OwnedFd], file: u32, data: bool) -> Queued {
    match files.get(file as usize) {
        Some(file) => Queued::Done(blocks::sync(file, data)),
        None => REFUSED,
    }
}

/// What nobody should ask for.
const REFUSED: Queued = Queued::Done(-(hakobu_sys::errno::EINVAL as i64));

/// The part of a buffer that a block is about.
#[inline(always)]
fn part<'b>(buffer: &'b mut [u8], block: &Transfer) -> Option<&'b mut [u8]> {
    let begin = block.begin as usize;
    buffer.get_mut(begin..begin.checked_add(block.bytes as usize)?)
}
