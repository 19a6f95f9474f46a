//! The engine `io_uring`.

use super::{Engine, Flights, Landed, Queued, REFUSED, Transfer, reap};
use hakobu_sys::ring::Ring;
use std::io::Result;
use std::time::Duration;

/// A ring.
#[derive(Debug)]
pub(crate) struct Uring<'f> {
    ring: Ring<'f>,
}

impl<'f> Uring<'f> {
    /// With this ring, which is the calling thread's.
    pub(crate) fn new(ring: Ring<'f>) -> Uring<'f> {
        Uring { ring }
    }
}

impl Engine for Uring<'_> {
    const WAITS: bool = false;

    #[inline(always)]
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.ring.buffer(slot).unwrap_or_default()
    }

    #[inline(always)]
    fn transfer(&mut self, slot: usize, block: Transfer) -> Queued {
        if self.ring.transfer(slot, block) { Queued::Later } else { REFUSED }
    }

    fn sync(&mut self, slot: usize, file: u32, data: bool) -> Queued {
        if self.ring.sync(slot, file, data) { Queued::Later } else { REFUSED }
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<u32> {
        self.ring.submit()
    }

    #[inline(always)]
    fn reap(
        &mut self,
        least: u32,
        most: u32,
        timeout: Option<Duration>,
        landed: &mut Vec<Landed>,
    ) -> Result<u32> {
        reap(&mut self.ring, (least, most), timeout, landed)
    }
}

impl Flights for Ring<'_> {
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
