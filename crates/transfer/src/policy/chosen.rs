//! Entries that an earlier run chose, as they were then.

use hakobu_core::unit::{Kind, Meta, Time};
use std::collections::HashMap;

/// Reason for leaving out an entry that is not what an earlier run chose.
pub const NOT_AS_PLANNED: &str = "it has changed since the plan was made";

/// Entries that an earlier run chose: names below the source, and type, size and time that they had then.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// The names, entries of one folder together, with their types.
    pub names: Vec<(Box<[u8]>, Kind)>,
    /// State of each name.
    pub states: HashMap<Box<[u8]>, (Kind, u64, Time)>,
}

impl Chosen {
    /// Returns whether an entry is what was chosen. A directory may have changed in all but its type.
    pub fn is_still(&self, name: &[u8], meta: &Meta) -> bool {
        self.states.get(name).is_some_and(|(kind, size, mtime)| {
            let same = (*size, *mtime) == (meta.size, meta.mtime);
            *kind == meta.kind && (*kind == Kind::Dir || same)
        })
    }
}
