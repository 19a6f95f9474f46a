//! The names of one unit, given to a visitor one by one: counted, paced, and shared with idle workers.

use super::{Dir, Step, Unit, Unlisted, Visit};
use crate::names::{Cursor, NameList};
use crate::pool::Queue;
use hakobu_core::limit::Controls;
use hakobu_core::meter::Doing;
use hakobu_core::unit::Kind;
use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Minimum number of names that is divided between two workers.
const SPLIT_MIN: usize = 16;

/// Returns whether a directory may be among the names.
pub(super) fn may_lead_on(names: &NameList) -> bool {
    names.kinds().iter().any(|kind| matches!(kind, Kind::Dir | Kind::Unknown))
}

/// Waits until the limit allows one more operation.
pub(super) fn pace(controls: &Controls, doing: &Doing) {
    if let Some(limiter) = &controls.operations {
        limiter.pace(1, doing);
    }
}

/// Iterator over the names of one unit. A name counts as finished when the next one is requested.
pub struct Names<'a, 'q, V: Visit> {
    pub(super) dir: &'a Arc<Dir<V::Dir>>,
    pub(super) side: usize,
    pub(super) names: Cursor<'a>,
    pub(super) controls: &'a Controls,
    pub(super) doing: &'a Doing,
    pub(super) queue: &'a Queue<'q, Unit<V>>,
    pub(super) unlisted: &'a Unlisted,
    /// The type of the current name.
    pub(super) begun: Option<Kind>,
}

impl<'a, V: Visit> Iterator for Names<'a, '_, V> {
    type Item = (&'a CStr, Kind);

    fn next(&mut self) -> Option<(&'a CStr, Kind)> {
        if let Some(kind) = self.begun {
            let lane = self.doing.lane();
            lane.items(1);
            lane.completions(1);
            lane.done(u64::from(kind != Kind::Dir));
        }
        if self.names.len() >= SPLIT_MIN && self.queue.lacks_units() {
            let half = self.names.split_off(self.names.len().div_ceil(2));
            push_names(self.queue, self.unlisted, self.dir, self.side, half);
        }
        let next = self.names.take();
        self.begun = next.map(|(_, kind)| kind);
        if next.is_some() {
            pace(self.controls, self.doing);
        }
        next
    }
}

pub(super) fn push_names<V: Visit>(
    queue: &Queue<'_, Unit<V>>,
    unlisted: &Unlisted,
    dir: &Arc<Dir<V::Dir>>,
    side: usize,
    names: NameList,
) {
    if may_lead_on(&names) {
        unlisted.add();
    }
    dir.pending.fetch_add(1, Ordering::Relaxed);
    queue.push(Unit(Step::Names(Arc::clone(dir), side, names)));
}
