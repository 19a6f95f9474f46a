//! The engine `io_uring`.

use super::{Engine, Landed, Queued, REFUSED, Transfer};
use hakobu_sys::ring::Ring;
use std::io::Result;
use std::time::Duration;

/// A ring.
#[derive(Debug)]
pub(in crate::io) struct Uring<'f> {
    ring: Ring<'f>,
}

impl<'f> Uring<'f> {
    /// With this ring, which is the calling thread's.
    pub(in crate::io) fn new(ring: Ring<'f>) -> Uring<'f> {
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
        let (mut left, mut most) = (least, most);
        let mut went = self.ring.wait(least, timeout)?;
        loop {
            while most > 0
                && let Some(done) = self.ring.take()
            {
                landed.push(done);
                left = left.saturating_sub(1);
                most -= 1;
            }
            // A signal may have ended the waiting.
            let nothing_comes = self.ring.in_flight() == 0;
            if left == 0 || most == 0 || timeout.is_some() || nothing_comes {
                return Ok(went);
            }
            went += self.ring.wait(left, None)?;
        }
    }
}
