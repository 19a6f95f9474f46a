//! The phase of a worker, for the meter, and the waiting that limits require.
//!
//! A worker is in exactly one phase while it works on a unit. An **operation** is a call for which a file system has
//! to look something up, read or write it: opening, creating, naming (mkdir, link, rename), looking up a name,
//! listing a bufferful of names, reading, writing (a copy inside the kernel is one), removing, and setting the
//! attributes of one entry, however many they are. Calls on open files that need no such access are not counted. A
//! copy inside the kernel reads and writes in one call: it counts as [`Phase::Write`].

use hakobu_core::control::Control;
use hakobu_core::limit::{Controls, Limiter};
use hakobu_core::meter::{Lane, Phase};
use std::cell::Cell;

/// A worker's lane on the meter, and its limits.
pub(super) struct Station<'a> {
    controls: &'a Controls,
    control: &'a Control,
    /// Its counters.
    pub(super) lane: &'a Lane,
    /// The phase; `None` between units and while the first units are made.
    phase: Cell<Option<Phase>>,
}

impl<'a> Station<'a> {
    /// `lane` is the index of the worker on the meter.
    pub(super) fn new(controls: &'a Controls, control: &'a Control, lane: usize) -> Station<'a> {
        Station { controls, control, lane: controls.meter.lane(lane), phase: Cell::new(None) }
    }

    /// Returns whether no new entry may be begun.
    pub(super) fn is_over(&self) -> bool {
        self.control.is_stopped()
    }

    /// Returns whether bytes are limited.
    pub(super) fn is_paced(&self) -> bool {
        self.controls.bytes.is_some()
    }

    /// Begins a unit, in the phase [`Phase::Look`].
    pub(super) fn begin_unit(&self) {
        self.phase.set(Some(Phase::Look));
        self.lane.enter(Phase::Look);
    }

    /// Ends a unit.
    pub(super) fn end_unit(&self) {
        if let Some(phase) = self.phase.take() {
            self.lane.leave(phase);
        }
    }

    /// Records that the worker waits for a unit, or has stopped waiting.
    pub(super) fn rest(&self, waits: bool) {
        match waits {
            true => self.lane.enter(Phase::Idle),
            false => self.lane.leave(Phase::Idle),
        }
    }

    /// Changes to another phase.
    pub(super) fn turn(&self, phase: Phase) {
        if let Some(old) = self.phase.get()
            && old != phase
        {
            self.phase.set(Some(phase));
            self.lane.turn(old, phase);
        }
    }

    /// Changes to a phase that begins with this many operations; waits first until the limits allow them.
    pub(super) fn step(&self, phase: Phase, operations: u64) {
        if let Some(limiter) = &self.controls.operations {
            self.wait_for(limiter, operations);
        }
        self.turn(phase);
        self.lane.operations(operations);
    }

    /// Counts a found name as finished, whatever the result.
    pub(super) fn finished_name(&self) {
        self.lane.done(1);
        self.finished();
    }

    /// Counts an entry as finished, whatever the result.
    pub(super) fn finished(&self) {
        self.lane.items(1);
        self.lane.completions(1);
    }

    /// Waits until the limit allows moving `bytes`. Returns early if the run is asked to stop.
    pub(super) fn pace(&self, bytes: u64) {
        if let Some(limiter) = &self.controls.bytes {
            let phase = self.phase.get();
            self.wait_for(limiter, bytes);
            if let Some(phase) = phase {
                self.turn(phase);
            }
        }
    }

    fn wait_for(&self, limiter: &Limiter, count: u64) {
        limiter.take_all(count, || self.is_over(), || self.turn(Phase::Limit));
    }

    /// Returns the number of bytes to move between two checks of the limit and the signals, at most `most`.
    pub(super) fn stride(&self, most: usize) -> usize {
        let grant = self.controls.bytes.as_ref().map_or(u64::MAX, |limiter| limiter.grant_max());
        usize::try_from(grant).unwrap_or(usize::MAX).clamp(1, most)
    }
}
