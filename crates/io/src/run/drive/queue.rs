//! The queue of blocks in flight: a slot for the next, begun in batches, reaped in batches.

use super::super::flight::Flight;
use super::{Drive, Failure};
use crate::engine::{Engine, Queued};
use std::time::Duration;

impl<E: Engine> Drive<'_, E> {
    /// A slot in which nothing is in flight.
    #[inline(always)]
    pub(super) fn free_slot(&mut self) -> Result<usize, Failure> {
        if self.idle.is_empty() {
            self.make_room(true)?;
        }
        Ok(self.idle.pop().unwrap_or_default())
    }

    /// An operation was queued: begins a batch, if this was the last of it, and makes room if there
    /// is none.
    #[inline(always)]
    pub(super) fn enqueued(&mut self, slot: usize) -> Result<(), Failure> {
        self.in_flight += 1;
        self.queue(slot);
        let full = self.in_flight >= self.depth;
        if full && !self.merges || !full && self.queued >= self.batch {
            self.commit()?;
        }
        if full || self.polls {
            self.make_room(full)?;
        }
        Ok(())
    }

    /// Blocks in flight wait to be begun.
    #[inline(always)]
    pub(super) fn queue(&mut self, slot: usize) {
        self.queued += 1;
        if !self.merges {
            self.waiting.push_back(slot);
        }
    }

    /// Begins the queued blocks.
    #[inline(always)]
    pub(super) fn commit(&mut self) -> Result<(), Failure> {
        match self.engine.commit() {
            Ok(went) => self.begun(went),
            Err(error) => return Err(self.broken("submitting blocks", &error)),
        }
        Ok(())
    }

    /// So many were begun.
    #[inline(always)]
    fn begun(&mut self, went: u32) {
        if went == 0 {
            return;
        }
        self.queued -= went;
        self.meter.depths.submitted(went, self.in_flight);
        if !self.merges {
            let now = self.meter.clock.now();
            for _ in 0..went {
                if let Some(slot) = self.waiting.pop_front() {
                    self.flights[slot].issue = now;
                }
            }
        }
    }

    /// Reaps as much as the job says; where the queue is full, down to the depth at which it is
    /// filled again.
    #[inline(always)]
    pub(super) fn make_room(&mut self, full: bool) -> Result<(), Failure> {
        loop {
            let least = self.least.min(self.in_flight).max(u32::from(full));
            self.reap(least, self.most, None)?;
            if !full || self.in_flight <= self.depth_low && !self.idle.is_empty() {
                return Ok(());
            }
        }
    }

    /// Reaps at least and at most this many, within this time.
    #[inline(always)]
    pub(super) fn reap(
        &mut self,
        least: u32,
        most: u32,
        timeout: Option<Duration>,
    ) -> Result<(), Failure> {
        let mut landed = std::mem::take(&mut self.landed);
        landed.clear();
        match self.engine.reap(least, most.max(least), timeout, &mut landed) {
            Ok(went) => self.begun(went),
            Err(error) => return Err(self.broken("waiting for blocks", &error)),
        }
        let end = if self.meter.timed { self.meter.clock.now() } else { 0 };
        self.meter.depths.completed(landed.len() as u32);
        for (slot, result) in &landed {
            self.land(*slot, *result, end)?;
        }
        self.landed = landed;
        self.meter.look(end);
        Ok(())
    }

    /// Waits for all that is in flight.
    pub(super) fn drain(&mut self) -> Result<(), Failure> {
        while !E::WAITS && self.in_flight > 0 {
            self.reap(1, self.depth, None)?;
        }
        Ok(())
    }

    /// Syncs a file, or queues that.
    pub(super) fn sync(&mut self, file: u32, data: bool) -> Result<(), Failure> {
        let slot = if E::WAITS { 0 } else { self.free_slot()? };
        let start = self.meter.clock.now();
        let mut flight = Flight { sync: true, start, issue: start, ..Flight::NONE };
        flight.block.file = file;
        self.flights[slot] = flight;
        match self.engine.sync(slot, file, data) {
            Queued::Done(result) => {
                if !E::WAITS {
                    self.in_flight += 1;
                }
                self.land(slot, result, start)
            }
            Queued::Later => self.enqueued(slot),
        }
    }
}
