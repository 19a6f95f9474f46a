//! One directory of a transfer: both sides of it, and its unfinished work.
//!
//! A node lives as long as something below it is unfinished. Its directories are handles of the tree crate: beyond
//! the budget of descriptors they are closed, and reopened when needed.

use super::guard::Overlap;
use crate::policy::filter::SidedRules;
use hakobu_core::unit::Meta;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, errno};
use hakobu_tree::handle::Handle;
use hakobu_tree::names::push_name;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Open descriptors of a node's directories, held while a unit uses them.
pub struct Fds {
    /// The source directories; the first that has a name provides it (several if sources are merged: `sync a/ b/
    /// DST`).
    pub sources: Vec<Arc<OwnedFd>>,
    target: Option<Arc<OwnedFd>>,
    /// The same directory in each `--link-dest` (`--copy-dest`, `--compare-dest`) tree that has it.
    pub bases: Vec<Arc<OwnedFd>>,
}

impl Fds {
    /// Returns source directory `side`.
    pub fn source(&self, side: usize) -> io::Result<BorrowedFd<'_>> {
        let fd = self.sources.get(side).map(|fd| (**fd).as_fd());
        fd.ok_or_else(|| io::Error::from_raw_os_error(errno::EBADF))
    }

    /// Returns the target directory, if there is one.
    pub fn target(&self) -> Option<BorrowedFd<'_>> {
        self.target.as_ref().map(|fd| (**fd).as_fd())
    }
}

/// One source directory of a node.
pub struct Side {
    /// Index of the parent's source that contains it.
    pub parent_side: usize,
    /// Its name there.
    pub name: Box<CStr>,
    /// The directory itself.
    pub handle: Arc<Handle>,
    /// The names in it that are transferred; `None` means all.
    pub selection: Option<Arc<Selection>>,
    /// The device that `-x` stays on.
    pub volume: u64,
}

/// The names of a source directory that arguments select, where another argument fills the same target directory.
#[derive(Clone, Default)]
pub struct Selection {
    names: HashMap<CString, Selected>,
}

/// One selected name.
#[derive(Clone)]
pub struct Selected {
    /// It may be a symlink that is followed.
    pub follow: bool,
    /// The names in it that are transferred; `None` means all.
    pub below: Option<Arc<Selection>>,
}

impl Selection {
    /// Adds the path of an argument.
    pub fn add(&mut self, path: &[CString], follow: bool) {
        let Some((name, below)) = path.split_first() else { return };
        if below.is_empty() {
            self.names.insert(name.clone(), Selected { follow, below: None });
            return;
        }
        // Symlinks above an argument are followed.
        let implied = || Selected { follow: true, below: Some(Arc::default()) };
        let selected = self.names.entry(name.clone()).or_insert_with(implied);
        if let Some(selection) = &mut selected.below {
            Arc::make_mut(selection).add(below, follow);
        }
    }
}

/// A target directory that was opened.
#[derive(Clone, Copy)]
pub struct TargetDir {
    /// Created by us or found empty: nothing in it needs to be examined.
    pub fresh: bool,
    /// Read to its end when it was opened: there are no leftovers of killed runs.
    pub swept: bool,
    /// Created in this run.
    pub created: bool,
    /// Device, inode, and current mode and owner.
    pub meta: Meta,
    /// The permission bits that the default ACL leaves to new entries, which inherit an ACL; `None` without one.
    pub default_bits: Option<u32>,
    /// Reached through a symlink (`-K`).
    pub follow: bool,
    /// Names that differ in case are one name in it.
    pub caseless: bool,
}

impl TargetDir {
    /// Returns the group that the kernel gives a new entry of this directory.
    pub fn default_gid(&self, egid: u32) -> u32 {
        if self.meta.mode & 0o2000 != 0 { self.meta.gid } else { egid }
    }
}

/// Source and target of a node without a parent.
pub struct Base {
    /// Source folders starting as the user typed them, one for each side, without a slash at the end.
    pub sources: Vec<PathBuf>,
    /// The target folder, starting as the user typed it.
    pub target: PathBuf,
    /// Its path in the transfer (what rsync prints before the name), without slashes at the ends.
    pub path: Vec<u8>,
    /// Names at the target that other arguments provide: not extraneous.
    pub provided: Vec<Box<CStr>>,
    /// The node that sets the attributes of the same target directory; this one holds it.
    pub owner: Option<Arc<Node>>,
}

/// Returns a number that no other node of this process has.
pub fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// One directory of a transfer.
pub struct Node {
    /// See [`next_id`].
    pub id: u64,
    /// The directory that contains it; `None` for the base of a source argument.
    pub parent: Option<Arc<Node>>,
    /// Its name at the target.
    pub target_name: Box<CStr>,
    /// Its source directories.
    pub sides: Vec<Side>,
    /// Metadata of the first source directory when it was opened.
    pub source: Meta,
    /// Paths of a node without a parent.
    pub base: Option<Box<Base>>,
    /// Filter rules in force inside.
    pub rules: Option<SidedRules>,
    /// Whether attributes are set on the target directory at the end.
    pub owns_attributes: bool,
    /// The target directory, once it exists.
    pub target: Mutex<Option<(TargetDir, Arc<Handle>)>>,
    /// The same directory in each `--link-dest` (`--copy-dest`, `--compare-dest`) tree that has it.
    pub bases: Vec<Arc<Handle>>,
    /// Held by the worker that creates names in the target directory.
    pub creating: Mutex<()>,
    /// Unfinished units below; the last one finishes the node.
    pub pending: AtomicUsize,
    /// The content of the directory is transferred, not only single names in it.
    pub listed: AtomicBool,
    /// Something is transferred into it: `--prune-empty-dirs` skips the others.
    pub needed: AtomicBool,
    /// The target directory is to be pruned when no work below it remains.
    pub prunes_last: AtomicBool,
    /// Listing the source failed: nothing may be deleted here.
    pub list_failed: AtomicBool,
    /// A source directory that belongs here could not be opened: nothing may be deleted here or anywhere below.
    pub incomplete: bool,
    /// We changed something in the target directory: its times must be restored.
    pub touched: AtomicBool,
    /// Number of source entries below that `mv` had to keep.
    pub kept_sources: AtomicU64,
    /// Whether the target directory is part of a source.
    pub overlap: Overlap,
    /// The names that a target directory that ignores case had when it was opened.
    pub names: HashSet<Box<CStr>>,
}

impl Node {
    /// Makes a node without a name, a parent and a target directory, with one unit below it.
    pub fn new(
        sides: Vec<Side>,
        source: Meta,
        rules: Option<SidedRules>,
        incomplete: bool,
    ) -> Node {
        Node {
            id: next_id(),
            parent: None,
            target_name: c"".into(),
            sides,
            source,
            base: None,
            rules,
            owns_attributes: false,
            target: Mutex::default(),
            bases: Vec::new(),
            creating: Mutex::default(),
            pending: AtomicUsize::new(1),
            listed: AtomicBool::new(false),
            list_failed: AtomicBool::new(incomplete),
            incomplete,
            needed: AtomicBool::new(false),
            prunes_last: AtomicBool::new(false),
            touched: AtomicBool::new(false),
            kept_sources: AtomicU64::new(0),
            overlap: Overlap::No,
            names: HashSet::new(),
        }
    }

    /// Returns open descriptors; reopens closed ones.
    ///
    /// # Errors
    /// Those of opening; ESTALE if a directory is no longer the same.
    pub fn fds(&self) -> io::Result<Fds> {
        let sources = self.sides.iter().map(|side| side.handle.fd()).collect::<io::Result<_>>()?;
        let target = self.target_handle().map(|handle| handle.fd()).transpose()?;
        // A basis that cannot be reopened provides nothing.
        let bases = self.bases.iter().filter_map(|handle| handle.fd().ok()).collect();
        Ok(Fds { sources, target, bases })
    }

    /// Returns an open descriptor of the target directory, if there is one; reopens a closed one.
    ///
    /// # Errors
    /// Those of opening; ESTALE if it is no longer the same.
    pub fn target_fd(&self) -> io::Result<Option<Arc<OwnedFd>>> {
        self.target_handle().map(|handle| handle.fd()).transpose()
    }

    /// Closes the descriptors; units that use them keep them open until they end. A closed parent that is finished
    /// next is reopened from here: one step up instead of many down from the top.
    pub fn close(&self) {
        let Some(parent) = &self.parent else { return };
        let is_last = parent.pending.load(Ordering::Relaxed) == 1;
        for side in &self.sides {
            let above = parent.sides.get(side.parent_side).filter(|_| is_last);
            side.handle.close_below(above.map(|above| &above.handle));
        }
        if let Some(handle) = self.target_handle() {
            handle.close_below(parent.target_handle().filter(|_| is_last).as_ref());
        }
        self.bases.iter().for_each(|handle| handle.close_below(None));
    }

    /// Calls `each` with this node and those that it is in, but for the one without a parent, which is returned.
    fn climb<'n>(&'n self, mut each: impl FnMut(&'n Node)) -> &'n Node {
        let mut node = self;
        while let Some(parent) = &node.parent {
            each(node);
            node = parent;
        }
        node
    }

    /// Appends the path in the transfer, without a slash at the end; nothing for the top.
    pub fn push_path(&self, path: &mut Vec<u8>) {
        let mut chain = Vec::new();
        let top = self.climb(|node| chain.push(node.target_name.to_bytes()));
        if let Some(base) = &top.base {
            path.extend_from_slice(&base.path);
        }
        chain.iter().rev().for_each(|name| push_name(path, name));
    }

    /// Returns the path in the transfer, as [`Node::push_path`] does.
    pub fn path(&self) -> Vec<u8> {
        let mut path = Vec::new();
        self.push_path(&mut path);
        path
    }

    /// Returns the source path of `name` in side `side`, starting as the user typed it.
    pub fn source_path(&self, side: usize, name: &CStr) -> PathBuf {
        let mut chain = vec![name.to_bytes()];
        let (mut node, mut side) = (self, side);
        while let Some(parent) = &node.parent {
            let Some(step) = node.sides.get(side).or(node.sides.first()) else { break };
            chain.push(step.name.to_bytes());
            side = step.parent_side;
            node = parent;
        }
        let base = node.base.as_ref().and_then(|base| base.sources.get(side).cloned());
        join(base.unwrap_or_default(), &chain)
    }

    /// Returns the target path of `name`, starting as the user typed it.
    pub fn target_path(&self, name: &CStr) -> PathBuf {
        let mut chain = vec![name.to_bytes()];
        let top = self.climb(|node| chain.push(node.target_name.to_bytes()));
        join(top.base.as_ref().map(|base| base.target.clone()).unwrap_or_default(), &chain)
    }

    /// Returns the path from the target folder of the node without a parent.
    pub fn path_below_top(&self) -> Vec<u8> {
        let (mut chain, mut path) = (Vec::new(), Vec::new());
        self.climb(|node| chain.push(node.target_name.to_bytes()));
        chain.iter().rev().for_each(|name| push_name(&mut path, name));
        path
    }

    /// Returns the node without a parent that this one descends from.
    pub fn top(&self) -> &Node {
        self.climb(|_| {})
    }

    /// Returns the device of the target directory, if there is one.
    pub fn target_dev(&self) -> Option<u64> {
        self.target_dir().map(|info| info.meta.dev)
    }

    /// Returns the target directory, if it is known.
    pub fn target_dir(&self) -> Option<TargetDir> {
        self.target.lock().as_ref().map(|(info, _)| *info)
    }

    /// Returns the handle of the target directory, if there is one.
    pub fn target_handle(&self) -> Option<Arc<Handle>> {
        self.target.lock().as_ref().map(|(_, handle)| Arc::clone(handle))
    }

    fn selection(&self, side: usize) -> Option<&Selection> {
        self.sides.get(side)?.selection.as_deref()
    }

    /// Returns whether `name` is transferred from side `side`.
    pub fn selects(&self, side: usize, name: &CStr) -> bool {
        self.selection(side).is_none_or(|selection| selection.names.contains_key(name))
    }

    /// Returns whether `name` in side `side` may be a symlink that an argument follows.
    pub fn selects_followed(&self, side: usize, name: &CStr) -> bool {
        let selected = self.selection(side).and_then(|selection| selection.names.get(name));
        selected.is_some_and(|selected| selected.follow)
    }

    /// Returns the part of the directory `name` in side `side` that is transferred; `None` means everything.
    pub fn selection_below(&self, side: usize, name: &CStr) -> Option<Arc<Selection>> {
        match self.selection(side)?.names.get(name) {
            Some(selected) => selected.below.clone(),
            None => Some(Arc::default()),
        }
    }

    /// Returns the device that `-x` stays on in the directory `name` of side `side`: an argument's own.
    pub fn volume_below(&self, side: usize, own: u64) -> u64 {
        let above = self.sides.get(side).filter(|side| side.selection.is_none());
        above.filter(|_| self.listed.load(Ordering::Relaxed)).map_or(own, |side| side.volume)
    }

    /// Returns the path in the transfer of a name in it.
    pub fn path_of(&self, name: &CStr) -> Vec<u8> {
        let mut path = self.path();
        push_name(&mut path, name.to_bytes());
        path
    }

    /// Adds one unfinished unit below this directory.
    pub fn hold(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that an entry of the source is kept.
    pub fn keep_source(&self) {
        self.kept_sources.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that an entry of the target directory was changed.
    pub fn touch(&self) {
        if !self.touched.load(Ordering::Relaxed) {
            self.touched.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether this node or one above it has the source identity `identity`: following a symlink to it would
    /// loop.
    pub fn is_inside(&self, identity: (u64, u64)) -> bool {
        let is_here =
            |node: &Node| node.sides.iter().any(|side| side.handle.identity() == identity);
        std::iter::successors(Some(self), |node| node.parent.as_deref()).any(is_here)
    }
}

fn join(base: PathBuf, chain: &[&[u8]]) -> PathBuf {
    let mut bytes = base.into_os_string().into_vec();
    let names = chain.iter().rev().filter(|name| !name.is_empty());
    names.for_each(|name| push_name(&mut bytes, name));
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}
