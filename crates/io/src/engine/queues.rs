//! The engines `io_uring` and `libaio`: queues of the kernel.

use super::{Engine, Landed, Queued, REFUSED, Transfer};
use hakobu_sys::aio::Context;
use hakobu_sys::ring::Ring;
use std::io::Result;
use std::time::Duration;

impl Engine for Ring<'_> {
    const WAITS: bool = false;

    #[inline(always)]
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        Ring::buffer(self, slot).unwrap_or_default()
    }

    #[inline(always)]
    fn transfer(&mut self, slot: usize, block: Transfer) -> Queued {
        if Ring::transfer(self, slot, block) { Queued::Later } else { REFUSED }
    }

    fn sync(&mut self, slot: usize, file: u32, data: bool) -> Queued {
        if Ring::sync(self, slot, file, data) { Queued::Later } else { REFUSED }
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<u32> {
        self.submit()
    }

    #[inline(always)]
    fn wait(&mut self, least: u32, _: u32, timeout: Option<Duration>) -> Result<u32> {
        Ring::wait(self, least, timeout)
    }

    #[inline(always)]
    fn take(&mut self) -> Option<Landed> {
        Ring::take(self)
    }

    fn in_flight(&self) -> usize {
        Ring::in_flight(self)
    }
}

impl Engine for Context<'_> {
    const WAITS: bool = false;

    #[inline(always)]
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        Context::buffer(self, slot).unwrap_or_default()
    }

    #[inline(always)]
    fn transfer(&mut self, slot: usize, block: Transfer) -> Queued {
        if Context::transfer(self, slot, block) { Queued::Later } else { REFUSED }
    }

    /// The call waits: few file systems have another one for this interface.
    fn sync(&mut self, _: usize, file: u32, data: bool) -> Queued {
        Queued::Done(Context::sync(self, file, data))
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<u32> {
        self.submit()
    }

    #[inline(always)]
    fn wait(&mut self, least: u32, most: u32, timeout: Option<Duration>) -> Result<u32> {
        Context::wait(self, least, most, timeout)
    }

    #[inline(always)]
    fn take(&mut self) -> Option<Landed> {
        Context::take(self)
    }

    fn in_flight(&self) -> usize {
        Context::in_flight(self)
    }
}
