//! The phase of one unit, kept in the lane of its core: always exactly one phase, from its beginning
//! to its end, however it ends.

use super::{Lane, Phase, SharedLane};
use std::cell::Cell;

/// One unit under way. It stays on the thread that writes the lane.
#[derive(Debug)]
pub struct Doing {
    lane: SharedLane,
    phase: Cell<Phase>,
}

impl Doing {
    /// A unit that begins with `phase`.
    pub fn new(lane: SharedLane, phase: Phase) -> Doing {
        lane.enter(phase);
        Doing { lane, phase: Cell::new(phase) }
    }

    /// The counters of its worker.
    pub fn lane(&self) -> &Lane {
        &self.lane
    }

    /// Sets the current activity and returns the previous one.
    pub fn turn(&self, to: Phase) -> Phase {
        let from = self.phase.replace(to);
        if from != to {
            self.lane.turn(from, to);
        }
        from
    }

    /// Sets the current activity until the guard is dropped, which restores the previous one.
    pub fn during(&self, phase: Phase) -> During<'_> {
        During { doing: self, before: self.turn(phase) }
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        self.lane.leave(self.phase.get());
    }
}

/// See [`Doing::during`].
#[derive(Debug)]
pub struct During<'a> {
    doing: &'a Doing,
    before: Phase,
}

impl Drop for During<'_> {
    fn drop(&mut self) {
        self.doing.turn(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Meter;

    #[test]
    fn a_unit_is_in_one_phase_until_it_ends() {
        let meter = Meter::new(1);
        let of = |phase: Phase| meter.counts().doing[phase as usize];
        let doing = Doing::new(meter.share(0), Phase::Idle);
        assert_eq!((of(Phase::Idle), meter.counts().in_use()), (1, 0));
        assert_eq!(doing.turn(Phase::Send), Phase::Idle);
        {
            let _limit = doing.during(Phase::Limit);
            assert_eq!((of(Phase::Limit), of(Phase::Send)), (1, 0));
        }
        assert_eq!((of(Phase::Limit), of(Phase::Send)), (0, 1));
        drop(doing);
        assert_eq!(meter.counts().doing, [0; crate::meter::PHASES]);
    }
}
