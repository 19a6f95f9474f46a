//! Blocks on their way, and counts of those that arrived.

use crate::outcome::Outcome;
use crate::pattern::Block;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counters of a running clone for other threads: blocks and bytes, read and written, and, asked for it,
/// all that it has measured.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// And the sums of their latencies, nanoseconds.
    sums: [AtomicU64; 6],
    asked: AtomicBool,
    over: AtomicBool,
    answer: Mutex<Option<Outcome>>,
}

impl Lane {
    /// Blocks and bytes of both sides.
    pub(super) fn sides(&self) -> [(u64, u64); 2] {
        let [a, b, c, d, ..] = &self.sums;
        let get = |place: &AtomicU64| place.load(Ordering::Relaxed);
        [(get(a), get(b)), (get(c), get(d))]
    }

    /// Sum of the latencies of both sides, ramp time apart, nanoseconds.
    pub(super) fn latency_ns(&self) -> u64 {
        let [.., reads, writes] = &self.sums;
        reads.load(Ordering::Relaxed) + writes.load(Ordering::Relaxed)
    }

    /// Takes new sums, in the same order.
    pub(super) fn show(&self, sums: impl Iterator<Item = u64>) {
        for (place, sum) in self.sums.iter().zip(sums) {
            place.store(sum, Ordering::Relaxed);
        }
    }

    /// Ends the clone.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// It is to end.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Asks for all that was measured.
    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// That was not answered yet.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Answers.
    pub(super) fn tell(&self, measured: Outcome) {
        *self.answer.lock() = Some(measured);
        self.asked.store(false, Ordering::Release);
    }

    /// The last answer.
    pub(super) fn told(&self) -> Option<Outcome> {
        self.answer.lock().clone()
    }
}

/// A block, or a sync, between its start and its end. Times are in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) block: Block,
    /// Bytes of it that went already.
    pub(super) moved: u32,
    /// It is not a block: fsync(2) or fdatasync(2).
    pub(super) sync: bool,
    /// Its I/O priority; 0 is that of the thread.
    pub(super) priority: u16,
    /// Time when it was ready to go; where a rate is set, when it should have gone.
    pub(super) start: u64,
    /// Time when it had been submitted.
    pub(super) issue: u64,
}

impl Flight {
    /// Content of an unused slot.
    pub(super) const NONE: Flight = Flight {
        block: Block { file: 0, write: false, bytes: 0, offset: 0 },
        moved: 0,
        sync: false,
        priority: 0,
        start: 0,
        issue: 0,
    };
}
