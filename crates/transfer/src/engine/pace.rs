//! What a worker is doing, for the meter, and the waiting that limits ask of it.
//!
//! From its first unit to its last a worker is in exactly one phase while it works on a unit. An
//! **operation** is a call for which a file system has to look something up, read or write it:
//! opening, creating, naming (mkdir, link, rename), looking a name up, listing a bufferful of
//! names, reading, writing (a copy inside the kernel is one), removing, and setting the attributes
//! of one entry, however many they are. Calls that are answered from what is open already are
//! none. A copy inside the kernel reads and writes in one call: it counts as [`Phase::Write`].

use super::{Engine, State};
use crate::limit::Limiter;
use crate::meter::{Lane, Phase};
use std::cell::Cell;

/// Where a worker is on the meter.
pub(super) struct Station {
    lane: usize,
    /// What it is doing; `None` between units, and while the first units are being made.
    phase: Cell<Option<Phase>>,
}

impl Station {
    pub(super) fn new(lane: usize) -> Station {
        Station { lane, phase: Cell::new(None) }
    }
}

impl Engine<'_> {
    fn lane(&self, at: &Station) -> &Lane {
        self.helm.meter.lane(at.lane)
    }

    /// Work on a unit begins, with finding out what it is about.
    pub(super) fn begin_unit(&self, at: &Station) {
        at.phase.set(Some(Phase::Look));
        self.lane(at).enter(Phase::Look);
    }

    /// Work on a unit ends.
    pub(super) fn end_unit(&self, at: &Station) {
        if let Some(phase) = at.phase.take() {
            self.lane(at).leave(phase);
        }
    }

    /// There is no unit, or there is one again.
    pub(super) fn rest(&self, at: &Station, waits: bool) {
        match waits {
            true => self.lane(at).enter(Phase::Idle),
            false => self.lane(at).leave(Phase::Idle),
        }
    }

    /// Goes on to another phase.
    pub(super) fn turn(&self, at: &Station, phase: Phase) {
        if let Some(old) = at.phase.get()
            && old != phase
        {
            at.phase.set(Some(phase));
            self.lane(at).turn(old, phase);
        }
    }

    /// Goes on to a phase in which the next things are so many operations; waits first for the
    /// right to do them.
    pub(super) fn step(&self, at: &Station, phase: Phase, operations: u64) {
        if let Some(limiter) = &self.helm.operations {
            self.wait_for(limiter, at, operations);
        }
        self.turn(at, phase);
        self.lane(at).operations(operations);
    }

    /// Content was moved.
    pub(super) fn moved(&self, at: &Station, bytes: u64) {
        self.lane(at).bytes(bytes);
    }

    /// Content of a file that takes several strokes was moved.
    pub(super) fn moved_stroke(&self, at: &Station, bytes: u64) {
        self.moved(at, bytes);
        self.lane(at).completions(1);
    }

    /// An entry is finished, whatever became of it.
    pub(super) fn finished(&self, state: &State) {
        let lane = self.lane(&state.station);
        lane.items(1);
        lane.completions(1);
    }

    /// Waits for the right to move `bytes`. Returns early when the run is asked to end.
    pub(super) fn pace(&self, at: &Station, bytes: u64) {
        if let Some(limiter) = &self.helm.bytes {
            let phase = at.phase.get();
            self.wait_for(limiter, at, bytes);
            if let Some(phase) = phase {
                self.turn(at, phase);
            }
        }
    }

    fn wait_for(&self, limiter: &Limiter, at: &Station, count: u64) {
        let mut left = count;
        while left > 0 && !self.is_over() {
            let grant = left.min(limiter.grant_max());
            if !limiter.take_now(grant) {
                self.turn(at, Phase::Limit);
                limiter.wait(grant, || self.is_over());
            }
            left -= grant;
        }
    }

    /// How many bytes to move between two looks at the limit and the signals, at most `most`.
    pub(super) fn stride(&self, most: usize) -> usize {
        let grant = self.helm.bytes.as_ref().map_or(u64::MAX, |limiter| limiter.grant_max());
        usize::try_from(grant).unwrap_or(usize::MAX).clamp(1, most)
    }
}
