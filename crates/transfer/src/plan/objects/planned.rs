//! The work of a transfer with a store on a side, one [`PlannedSource`] per source argument.

use crate::object::list::Pattern;
use crate::object::{Entry, Pair, Root, Side};
use hakobu_s3::S3Session;
use std::sync::Arc;

/// The stores of a run.
#[derive(Clone, Default)]
pub struct Stores {
    /// The store of the sources.
    pub source: Option<Arc<S3Session>>,
    /// The store of the targets.
    pub target: Option<Arc<S3Session>>,
}

impl Stores {
    /// Returns the store of a side, if that is in one.
    pub fn of(&self, side: Side) -> Option<&Arc<S3Session>> {
        match side {
            Side::Source => self.source.as_ref(),
            Side::Target => self.target.as_ref(),
        }
    }

    /// Returns an iterator over the stores, without duplicates.
    pub fn all(&self) -> impl Iterator<Item = &Arc<S3Session>> + Clone {
        let other = self.target.as_ref().filter(|target| {
            self.source.as_ref().is_none_or(|source| !Arc::ptr_eq(source, target))
        });
        self.source.iter().chain(other)
    }
}

/// The work of one source argument.
pub struct PlannedSource {
    /// Both ends.
    pub pair: Arc<Pair>,
    /// The entries.
    pub what: What,
    /// The target is empty: a dry run would have to create its folder first.
    pub target_is_new: bool,
}

impl PlannedSource {
    /// Returns whether anything at its target could be extraneous.
    pub fn may_delete(&self) -> bool {
        matches!(&self.what, What::Tree { pattern: None })
            && !matches!(self.pair.target, Root::Null)
    }
}

/// Entries of a [`PlannedSource`].
pub enum What {
    /// One file or object.
    One {
        /// The entry.
        entry: Entry,
        /// Target name, relative to the target's root.
        name: Vec<u8>,
    },
    /// Everything that a listing of the source finds; names stay unchanged.
    Tree {
        /// Only names that match.
        pattern: Option<Pattern>,
    },
    /// Only these names, from a list.
    Names(Vec<Vec<u8>>),
}
