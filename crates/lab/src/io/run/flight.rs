//! What is on its way, and how much has arrived.

use crate::io::pattern::Block;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a clone tells others while it runs: blocks and bytes, read and written.
#[derive(Debug, Default)]
pub(super) struct Lane([AtomicU64; 4]);

impl Lane {
    /// Blocks and bytes of both sides.
    pub(super) fn sides(&self) -> [(u64, u64); 2] {
        let [a, b, c, d] = &self.0;
        let get = |place: &AtomicU64| place.load(Ordering::Relaxed);
        [(get(a), get(b)), (get(c), get(d))]
    }

    /// Takes new sums, in the same order.
    pub(super) fn show(&self, sums: impl Iterator<Item = u64>) {
        for (place, sum) in self.0.iter().zip(sums) {
            place.store(sum, Ordering::Relaxed);
        }
    }
}

/// A block, or a sync, between its start and its end. Times are in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) block: Block,
    /// Bytes of it that went already.
    pub(super) moved: u32,
    /// It is no block: fsync(2) or fdatasync(2).
    pub(super) sync: bool,
    /// When it was ready to go; where a rate is set, when it should have gone.
    pub(super) start: u64,
    /// When it had been submitted.
    pub(super) issue: u64,
}

impl Flight {
    /// Nothing.
    pub(super) const NONE: Flight = Flight {
        block: Block { file: 0, write: false, bytes: 0, offset: 0 },
        moved: 0,
        sync: false,
        start: 0,
        issue: 0,
    };
}
