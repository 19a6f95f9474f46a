//! The engine `libaio`.

use super::{Engine, Landed, Queued, REFUSED, Transfer};
use hakobu_sys::aio::Context;
use std::io::Result;
use std::time::Duration;

/// A context of asynchronous operations.
#[derive(Debug)]
pub(in crate::io) struct Libaio<'f> {
    context: Context<'f>,
}

impl<'f> Libaio<'f> {
    /// With this context.
    pub(in crate::io) fn new(context: Context<'f>) -> Libaio<'f> {
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
        let (mut left, mut most) = (least, most);
        let mut went = self.context.wait(least, most, timeout)?;
        loop {
            while most > 0
                && let Some(done) = self.context.take()
            {
                landed.push(done);
                left = left.saturating_sub(1);
                most -= 1;
            }
            // A signal may have ended the waiting.
            let nothing_comes = self.context.in_flight() == 0;
            if left == 0 || most == 0 || timeout.is_some() || nothing_comes {
                return Ok(went);
            }
            went += self.context.wait(left, most, None)?;
        }
    }
}
