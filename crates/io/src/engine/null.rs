//! The engine `null`: every block goes at once and nowhere. What is left is what the benchmark itself
//! costs.

use super::buffers::Buffers;
use super::{Engine, Landed, Queued, REFUSED, Transfer};
use hakobu_sys::memory::Aligned;
use std::collections::VecDeque;
use std::io::Result;
use std::time::Duration;

/// One block at a time.
#[derive(Debug)]
pub(crate) struct Null {
    buffer: Aligned,
}

impl Null {
    /// Creates the engine with a buffer of this many bytes.
    pub(crate) fn new(bytes: usize) -> Result<Null> {
        Ok(Null { buffer: Aligned::new(bytes.max(1))? })
    }
}

impl Engine for Null {
    const WAITS: bool = true;

    #[inline(always)]
    fn buffer(&mut self, _: usize) -> &mut [u8] {
        &mut self.buffer
    }

    #[inline(always)]
    fn transfer(&mut self, _: usize, block: Transfer) -> Queued {
        Queued::Done(i64::from(block.bytes))
    }
}

/// Several in flight: they are done as soon as they were begun, but not before.
#[derive(Debug)]
pub(crate) struct NullQueue {
    buffers: Buffers,
    queued: Vec<Landed>,
    done: VecDeque<Landed>,
}

impl NullQueue {
    /// Creates the engine with this many buffers of this many bytes.
    pub(crate) fn new(depth: u32, bytes: usize) -> Result<NullQueue> {
        let buffers = Buffers::new(depth, bytes)?;
        Ok(NullQueue { buffers, queued: Vec::new(), done: VecDeque::new() })
    }
}

impl Engine for NullQueue {
    const WAITS: bool = false;

    #[inline(always)]
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.buffers.of(slot)
    }

    #[inline(always)]
    fn transfer(&mut self, slot: usize, block: Transfer) -> Queued {
        if !self.buffers.holds(block.begin as usize + block.bytes as usize) {
            return REFUSED;
        }
        self.queued.push((slot, i64::from(block.bytes)));
        Queued::Later
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<u32> {
        let went = self.queued.len() as u32;
        self.done.extend(self.queued.drain(..));
        Ok(went)
    }

    #[inline(always)]
    fn reap(
        &mut self,
        _: u32,
        most: u32,
        _: Option<Duration>,
        landed: &mut Vec<Landed>,
    ) -> Result<u32> {
        let went = self.commit()?;
        let count = self.done.len().min(most as usize);
        landed.extend(self.done.drain(..count));
        Ok(went)
    }
}
