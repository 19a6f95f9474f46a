//! Units of the walk: directories that were found, listings, chunks of names.

use super::content::SharedCopy;
use super::node::{Fds, Node};
use hakobu_core::unit::Kind;
use hakobu_tree::names::{Cursor, NameList};
use hakobu_tree::pool::Queue;
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::Arc;

/// Up to 64 names of one directory.
pub struct Chunk {
    pub(super) node: Arc<Node>,
    pub(super) side: usize,
    pub(super) names: NameList,
    /// For a single name: its name at the target.
    pub(super) target_name: Option<Box<CStr>>,
    /// A symlink that is named in an argument is followed.
    pub(super) follow: bool,
    /// The names are arguments: the listing phase ends only after they are examined.
    pub(super) is_root: bool,
}

impl Chunk {
    pub(super) fn new(node: &Arc<Node>, side: usize) -> Chunk {
        let node = Arc::clone(node);
        let names = NameList::default();
        Chunk { node, side, names, target_name: None, follow: false, is_root: false }
    }
}

/// A unit of work.
pub enum Unit {
    /// A directory to open on both sides and to list.
    OpenDir(OpenDir),
    /// A listing to begin or to continue.
    List(Listing),
    /// Names to handle.
    Chunk(Chunk),
    /// A target directory to prune.
    Prune(Arc<Node>),
    /// A large file that another worker copies, to help with.
    Help(Arc<SharedCopy>),
}

impl Unit {
    /// Returns the device of the source that it belongs to.
    pub(super) fn volume(&self) -> u64 {
        let (node, side) = match self {
            Unit::OpenDir(dir) => (&dir.parent, dir.side),
            Unit::List(listing) => (&listing.node, listing.side),
            Unit::Chunk(chunk) => (&chunk.node, chunk.side),
            Unit::Prune(node) => (node, 0),
            Unit::Help(shared_copy) => return shared_copy.source_device(),
        };
        node.sides.get(side).map_or(0, |side| side.volume)
    }
}

/// A directory that was found.
pub struct OpenDir {
    /// The directory that contains it.
    pub parent: Arc<Node>,
    /// Index of the parent's source that it was found in.
    pub side: usize,
    /// Its name there.
    pub name: Box<CStr>,
    /// Its name at the target, if that differs.
    pub target_name: Option<Box<CStr>>,
    /// It may be reached through a symlink.
    pub follow: bool,
    /// It only leads to what is transferred: it is created if it is missing, and otherwise left unchanged.
    pub implied: bool,
    /// Its content is listed even without recursion: an argument with a slash at its end.
    pub lists: bool,
}

/// The state of listing one directory.
pub struct Listing {
    pub(super) node: Arc<Node>,
    /// Held while listing: the kernel keeps the position in the descriptor.
    pub(super) fds: Fds,
    pub(super) side: usize,
    pub(super) chunk: Chunk,
}

impl Listing {
    /// Starts the listing of the first side.
    pub(super) fn new(node: &Arc<Node>, fds: Fds) -> Listing {
        Listing { node: Arc::clone(node), fds, side: 0, chunk: Chunk::new(node, 0) }
    }
}

/// The names of a chunk after the current one.
pub(super) struct Rest<'a> {
    pub(super) chunk: &'a Chunk,
    /// The queue of the worker that handles it.
    pub(super) queue: &'a Queue<'a, Unit>,
    /// The remaining names.
    names: Cursor<'a>,
    /// One of the names may still turn out to be a directory, which must be listed.
    pub(super) unlisted: Cell<bool>,
}

impl<'a> Rest<'a> {
    pub(super) fn new(chunk: &'a Chunk, queue: &'a Queue<'a, Unit>) -> Rest<'a> {
        Rest { chunk, queue, names: chunk.names.cursor(), unlisted: Cell::new(chunk.is_root) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Takes the next name.
    pub(super) fn next(&self) -> Option<(&'a CStr, Kind)> {
        self.names.take()
    }

    /// Takes all remaining names.
    pub(super) fn take(&self) -> Option<Chunk> {
        let names = self.names.split_off(self.names.len());
        let Chunk { node, side, follow, is_root, .. } = self.chunk;
        let (follow, is_root) = (*follow, *is_root);
        // Only a chunk of one name has a different name at the target.
        (!names.is_empty()).then(|| Chunk { names, follow, is_root, ..Chunk::new(node, *side) })
    }
}
