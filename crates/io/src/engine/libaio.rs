//! The engine `libaio`.

use super::{Engine, Flights, Landed, Queued, REFUSED, Transfer, reap};
use hakobu_sys::aio::Context;
use std::io::Result;
use std::time::Duration;

/// A context of asynchronous operations.
#[derive(Debug)]
pub(crate) struct Libaio<'f> {
    context: Context<'f>,
}

impl<'f> Libaio<'f> {
    /// With this context.
    pub(crate) fn new(context: Context<'f>) -> Libaio<'f> {
        Libaio { context }
    }
}

impl Engine for Libaio<'_> {
    const WAITS: bool = false;

    #[inline(always)]
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.context.buffer(slot).unwrap_or_default()
    }

    #[inline(always)]
    fn transfer(&mut self, slot: usize, block: Transfer) -> Queued {
        if self.context.transfer(slot, block) { Queued::Later } else { REFUSED }
    }

    /// The call waits: few file systems have another one for this interface.
    fn sync(&mut self, _: usize, file: u32, data: bool) -> Queued {
        Queued::Done(self.context.sync(file, data))
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<u32> {
        self.context.submit()
    }

    #[inline(always)]
    fn reap(
        &mut self,
        least: u32,
        most: u32,
        timeout: Option<Duration>,
        landed: &mut Vec<Landed>,
    ) -> Result<u32> {
        reap(&mut self.context, (least, most), timeout, landed)
    }
}

impl Flights for Context<'_> {
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
