//! The state of one worker.

use super::attributes::Attributes;
use super::content::Mover;
use super::pace::Station;
use hakobu_core::unit::{Kind, Meta, Totals};
use hakobu_sys::dir::Reader;

/// Per-worker state of the engine.
pub struct Worker<'a> {
    /// Its lane on the meter.
    pub(super) at: Station<'a>,
    /// Counts since the last flush.
    pub(super) totals: Totals,
    pub(super) reader: Reader,
    /// The path in the transfer being matched against filter rules.
    pub(super) path: Vec<u8>,
    pub(super) mover: Mover<'a>,
    pub(super) attributes: Attributes<'a>,
}

impl Worker<'_> {
    /// Counts an entry whose target needs nothing.
    pub(super) fn count_unchanged(&mut self, source: &Meta) {
        self.totals.skipped += 1;
        self.totals.bytes_skipped += if source.kind == Kind::File { source.size } else { 0 };
    }
}
