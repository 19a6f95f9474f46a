//! Pacing between two blocks: waiting for the moment that a rate allows, and for the share of a flow (`flow`), pauses,
//! syncs.

use super::{Drive, Failure};
use crate::engine::Engine;
use crate::pattern::Block;
use std::time::Duration;

/// The kernel wakes a thread that sleeps some microseconds late: the last part of each wait is spent
/// looking at the clock.
const SPIN: Duration = Duration::from_micros(60);

/// Pause of a clone that is ahead of its share, at least.
const PAUSE: Duration = Duration::from_micros(20);

impl<E: Engine> Drive<'_, E> {
    /// Waits until the rate allows a block; returns that moment, in ticks. What lands meanwhile is
    /// reaped at its time. Ends early where all is over.
    pub(super) fn hold(&mut self, block: &Block) -> Result<Option<u64>, Failure> {
        let due_ns = self.pace.as_mut().and_then(|pace| pace.next_ns(block.write, block.bytes));
        let Some(due_ns) = due_ns else { return Ok(None) };
        let due = self.meter.begun.saturating_add(self.meter.clock.ticks(due_ns));
        if self.queued > 0 && self.meter.clock.now() < due {
            self.commit()?;
        }
        self.wait_until(due)?;
        Ok(Some(due))
    }

    /// Waits while this clone is ahead of its share of a flow; what lands meanwhile is reaped.
    pub(super) fn keep_share(&mut self) -> Result<(), Failure> {
        let sleep = self.job.among.flow.map_or(PAUSE, |flow| flow.sleep.max(PAUSE));
        while self.seat.as_ref().is_some_and(|seat| seat.is_ahead()) && !self.meter.over {
            if self.queued > 0 {
                self.commit()?;
            }
            self.wait_until(self.meter.after(sleep))?;
        }
        if let Some(seat) = &mut self.seat {
            seat.advance();
        }
        Ok(())
    }

    /// Waits until a moment, or until all is over.
    pub(super) fn wait_until(&mut self, moment: u64) -> Result<(), Failure> {
        loop {
            let now = self.meter.pass();
            if self.meter.over || now >= moment {
                return Ok(());
            }
            let until = moment.min(self.meter.due);
            let left = Duration::from_nanos(self.meter.clock.between_ns(now, until));
            if self.in_flight > 0 {
                self.reap(1, self.depth, Some(left))?;
            } else if left > SPIN {
                std::thread::sleep(left - SPIN);
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Before a block: a sync of the file that was written last, if so many blocks were written
    /// (`fsync`, `fdatasync`). As fio does it: none follows the last block.
    pub(super) fn sync_if_due(&mut self) -> Result<(), Failure> {
        let every = [self.job.fsync_every, self.job.fdatasync_every];
        for (number, every) in every.into_iter().enumerate() {
            if every > 0 && self.unsynced[number] >= every {
                self.unsynced[number] = 0;
                self.sync(self.written, number == 1)?;
            }
        }
        Ok(())
    }

    /// After a block: counts it, and pauses, if so many were done (`thinktime`).
    pub(super) fn keep_pace(&mut self, block: &Block) -> Result<(), Failure> {
        if block.write {
            self.written = block.file;
            self.unsynced = self.unsynced.map(|blocks| blocks.saturating_add(1));
        }
        self.unpaused += 1;
        if !self.job.think.is_zero() && self.unpaused >= self.job.think_blocks.max(1) {
            self.unpaused = 0;
            self.drain()?;
            self.wait_until(self.meter.after(self.job.think))?;
        }
        Ok(())
    }

    /// Syncs all files, one after the other (`end_fsync`).
    pub(super) fn sync_all(&mut self) -> Result<(), Failure> {
        for file in 0..self.paths.len() as u32 {
            self.sync(file, false)?;
        }
        self.drain()
    }
}
