//! What a clone measured, when it has ended.

use super::Meter;
use crate::io::outcome::Outcome;
use crate::io::stats::Histogram;
use hakobu_sys::counters::{self, Used};

impl Meter<'_> {
    /// It ends now: fills in all that is counted here.
    pub(in crate::io::run) fn finish(mut self, outcome: &mut Outcome) {
        let now = self.clock.now();
        self.show();
        // Whoever ends in ramp time has measured nothing.
        if self.ramp_end.is_some() {
            self.end_ramp(now);
        } else if self.logs.is_some() {
            self.close_window(now);
        }
        let used = counters::used_by_thread();
        outcome.runtime_ns = self.clock.between_ns(self.counted, now);
        outcome.user_ns = used.user_ns - self.used.user_ns;
        outcome.sys_ns = used.system_ns - self.used.system_ns;
        let switches = |used: &Used| used.voluntary_switches + used.involuntary_switches;
        outcome.switches = switches(&used) - switches(&self.used);
        outcome.faults = [
            used.major_faults - self.used.major_faults,
            used.minor_faults - self.used.minor_faults,
        ];
        for side in &mut self.sides {
            if !self.apart {
                if self.clocks.lat {
                    side.lat = side.clat.clone();
                }
                if !self.clocks.clat {
                    side.clat = Histogram::default();
                }
            }
        }
        outcome.sides = self.sides;
        outcome.sync = self.sync;
        outcome.depths = self.depths;
        outcome.logged = self.logs.map(|logs| logs.finish()).unwrap_or_default();
    }
}
