//! Measurements of a clone: so far, and when it has ended.

use super::Meter;
use crate::outcome::{Depths, Outcome, Side};
use crate::stats::Histogram;
use hakobu_sys::proc::ResourceUsage;

/// Counts of blocks and syncs.
type Counted = ([Side; 2], Histogram, Depths);

impl Meter<'_> {
    /// It ends now: fills in all that is counted here.
    pub(in crate::run) fn finish(mut self, outcome: &mut Outcome) {
        let now = self.clock.now();
        self.show();
        // A clone that ends in ramp time has measured nothing.
        if self.ramp_end.is_some() {
            self.end_ramp(now);
        } else if self.logs.is_some() {
            self.close_window(now);
        }
        let depths = std::mem::take(&mut self.depths);
        let counted = (std::mem::take(&mut self.sides), std::mem::take(&mut self.sync), depths);
        self.measured(now, counted, outcome);
        outcome.logged = self.logs.map(|logs| logs.logged).unwrap_or_default();
    }

    /// Sends the counters so far to the requester; during ramp time there are none.
    pub(super) fn answer(&self, now: u64) {
        let mut outcome = Outcome::default();
        if self.ramp_end.is_none() {
            let counted = (self.sides.clone(), self.sync.clone(), self.depths.clone());
            self.measured(now, counted, &mut outcome);
        }
        self.lane.tell(outcome);
    }

    /// Fills in the counters so far, without logs.
    fn measured(&self, now: u64, counted: Counted, outcome: &mut Outcome) {
        let used = ResourceUsage::of_thread().since(&self.used);
        outcome.runtime_ns = self.clock.between_ns(self.counted, now);
        outcome.user_ns = used.user.as_nanos() as u64;
        outcome.sys_ns = used.sys.as_nanos() as u64;
        outcome.switches = used.voluntary_switches + used.involuntary_switches;
        outcome.faults = [used.major_faults, used.minor_faults];
        (outcome.sides, outcome.sync, outcome.depths) = counted;
        for side in &mut outcome.sides {
            if !self.apart {
                if self.clocks.lat {
                    side.lat = side.clat.clone();
                }
                if !self.clocks.clat {
                    side.clat = Histogram::default();
                }
            }
        }
        if self.waits {
            // One after the other: this need not be counted.
            let blocks = outcome.sides.iter().map(|side| side.ios).sum();
            outcome.depths.level[0] = blocks;
            outcome.depths.submit[1] = blocks;
            outcome.depths.complete[1] = blocks;
        }
    }
}
