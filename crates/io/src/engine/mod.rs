//! Engines (`ioengine`): blocks by a call that waits, by a queue, by memory, or not at all; and names of files. One
//! trait, and the loop of `run` is compiled anew for each of its implementations, so that nothing is
//! decided anew for each block.

mod calls;
mod memory;
mod queues;

#[cfg(test)]
mod tests;

pub(super) use calls::{
    Atomic, CallEngine, Cutting, NameEngine, Positioned, Seeking, Taking, Trimming, Vectored,
};
pub(super) use hakobu_sys::blocks::Transfer;
pub(super) use memory::{Mmap, Null, NullQueue, PageFault};
pub(super) use queues::with_threads;

use hakobu_sys::{OwnedFd, blocks, errno};
use std::io::{Error, Result};
use std::time::Duration;

/// State of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Submission {
    /// It is done: bytes that went, or the errno as a negative number.
    Done(i64),
    /// It is in the queue, and its buffer out of reach until it is reaped.
    Queued,
}

/// A reaped operation: the slot, and what [`Submission::Done`] would have said.
pub(super) type Completion = (usize, i64);

/// A way for blocks. It owns a buffer for each block that can be in flight; buffers are numbered, and
/// these slots name what is in flight.
pub(super) trait Engine {
    /// Every operation is done when its call comes back: there is one slot, and nothing to reap.
    const WAITS: bool;

    /// The buffer of a slot; empty while it is in flight.
    fn buffer(&mut self, slot: usize) -> &mut [u8];

    /// Moves a block, or queues it. A free slot, and a place inside of its buffer, are the caller's
    /// to choose; anything else is EINVAL.
    fn transfer(&mut self, slot: usize, block: Transfer) -> Submission;

    /// Lets what was written to a file reach its device; only as much as reading it again needs, if
    /// `data`. What is in flight need not have been. Nothing where no file keeps what was written.
    fn sync(&mut self, _slot: usize, _file: u32, _data: bool) -> Submission {
        Submission::Done(0)
    }

    /// Ends what an operation left behind, after its time was taken: it is not part of the measurement.
    #[inline(always)]
    fn settle(&mut self) {}

    /// Begins what is queued; returns how many operations that were. Fewer than there are if the
    /// kernel has no room for more at the moment.
    fn commit(&mut self) -> Result<u32> {
        Ok(0)
    }

    /// Begins what is queued and waits for `least` operations, but no longer than `timeout`; a signal may end it
    /// earlier. Returns how many were begun.
    fn wait(&mut self, _least: u32, _most: u32, _timeout: Option<Duration>) -> Result<u32> {
        Ok(0)
    }

    fn take(&mut self) -> Option<Completion> {
        None
    }

    /// Number of operations that are queued or under way, or done and not taken.
    fn in_flight(&self) -> usize {
        0
    }

    /// Begins what is queued, waits until at least `least` operations are done, but no longer than
    /// `timeout`, and hands over at most `most` of them. Returns how many were begun.
    #[inline(always)]
    fn reap(
        &mut self,
        least: u32,
        most: u32,
        timeout: Option<Duration>,
        landed: &mut Vec<Completion>,
    ) -> Result<u32> {
        let (mut left, mut most) = (least, most);
        let mut went = self.wait(least, most, timeout)?;
        loop {
            while most > 0
                && let Some(done) = self.take()
            {
                landed.push(done);
                left = left.saturating_sub(1);
                most -= 1;
            }
            // A signal may have ended the waiting.
            let nothing_comes = self.in_flight() == 0;
            if left == 0 || most == 0 || timeout.is_some() || nothing_comes {
                return Ok(went);
            }
            went += self.wait(left, most, None)?;
        }
    }
}

/// Reason that an engine cannot be made, or that a clone ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// 0 if it is not the system's.
    pub(super) errno: i32,
    pub(super) sentence: String,
}

impl Failure {
    pub(super) fn of(error: &Error, sentence: String) -> Failure {
        Failure { errno: errno::of(error), sentence }
    }
}

/// fsync(2) or fdatasync(2), for engines that have none of their own.
fn sync_file(files: &[OwnedFd], file: u32, data: bool) -> Submission {
    match files.get(file as usize) {
        Some(file) => Submission::Done(blocks::sync(file, data)),
        None => REFUSED,
    }
}

/// Requests that are invalid.
const REFUSED: Submission = Submission::Done(-(errno::EINVAL as i64));

/// The part of a buffer that a block is about.
#[inline(always)]
fn part<'b>(buffer: &'b mut [u8], block: &Transfer) -> Option<&'b mut [u8]> {
    let begin = block.begin as usize;
    buffer.get_mut(begin..begin.checked_add(block.bytes as usize)?)
}
