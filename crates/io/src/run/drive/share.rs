//! Waits of a block besides those for its rate: for the share of a flow (`flow`), and for the depth that keeps a latency
//! (`latency_target`).

use super::aim::Found;
use super::{Drive, Failure};
use crate::engine::Engine;
use crate::run::flight::Flight;
use std::time::Duration;

/// Pause of a clone that is ahead of its share, at least.
const PAUSE: Duration = Duration::from_micros(20);

impl<E: Engine> Drive<'_, E> {
    /// Waits while this clone is ahead of its share of a flow; what lands meanwhile is reaped.
    pub(super) fn keep_share(&mut self) -> Result<(), Failure> {
        let sleep = self.job.among.flow.map_or(PAUSE, |flow| flow.sleep.max(PAUSE));
        let ticks = self.meter.clock.ticks(u64::try_from(sleep.as_nanos()).unwrap_or(u64::MAX));
        while self.seat.as_ref().is_some_and(|seat| seat.is_ahead()) && !self.meter.over {
            if self.queued > 0 {
                self.commit()?;
            }
            let now = self.meter.clock.now();
            self.wait_until(now.saturating_add(ticks))?;
        }
        if let Some(seat) = &mut self.seat {
            seat.advance();
        }
        Ok(())
    }

    /// A block landed while a depth is searched for.
    pub(super) fn aim(&mut self, flight: &Flight, end: u64) {
        let Some(search) = &mut self.search else { return };
        let latency_ns = self.meter.clock.between_ns(flight.start, end);
        let now_ns = self.meter.clock.between_ns(self.meter.begun, end);
        let found = search.landed(latency_ns, now_ns);
        self.depth = search.depth;
        self.depth_low = self.job.depth_low.clamp(1, self.depth.max(1));
        let Some(found) = found else { return };
        self.found = Some(found);
        if !search.goes_on() {
            self.meter.over = true;
        }
    }

    /// The depth that a search ended with.
    ///
    /// # Errors
    /// No depth keeps the latency.
    pub(super) fn depth_found(&self) -> Result<Option<u32>, Failure> {
        match (self.found, self.job.aim) {
            (Some(Found::Depth(depth)), _) => Ok(Some(depth)),
            (Some(Found::Nothing), Some(aim)) => Err(Failure {
                errno: 0,
                sentence: format!(
                    "latency_target: even one block at a time is not within {:?} for {} percent of \
                     the blocks",
                    aim.latency, aim.percentile
                ),
            }),
            _ => Ok(None),
        }
    }
}
