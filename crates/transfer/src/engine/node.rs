//! One directory of a transfer: where it is on both sides, what must still happen below it.
//!
//! A node lives as long as something below it is unfinished. It holds open descriptors of its
//! directories while there are few of them; beyond the budget they are closed and opened again
//! component by component from the nearest ancestor, and must then still be the same inode.

use super::pool::lock;
use crate::error::Operation;
use crate::policy::filter::DirRules;
use crate::unit::Meta;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, meta};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Open descriptors of a node's directories. Closed when the last unit that uses them ends.
pub struct Fds {
    /// The source directories, first wins (several where sources are merged: `sync a/ b/ DST`).
    pub sources: Vec<OwnedFd>,
    /// The target directory; `None` in dry runs and for targets that are not made yet.
    pub target: Option<OwnedFd>,
    /// The same directory in each `--link-dest` tree, where it exists.
    pub link_dest: Vec<Option<OwnedFd>>,
    budget: Arc<Budget>,
    count: usize,
}

/// How many descriptors of directories are open, and may be kept open.
pub struct Budget {
    open: AtomicUsize,
    max: usize,
}

impl Budget {
    /// Room for `max` descriptors.
    pub fn new(max: usize) -> Arc<Budget> {
        Arc::new(Budget { open: AtomicUsize::new(0), max })
    }

    /// Whether a directory may be kept open that is not needed right now.
    pub fn has_room(&self) -> bool {
        self.open.load(Ordering::Relaxed) < self.max
    }
}

impl Fds {
    /// Takes note of the descriptors in the budget.
    pub fn new(
        sources: Vec<OwnedFd>,
        target: Option<OwnedFd>,
        link_dest: Vec<Option<OwnedFd>>,
        budget: &Arc<Budget>,
    ) -> Fds {
        let count = sources.len()
            + usize::from(target.is_some())
            + link_dest.iter().filter(|fd| fd.is_some()).count();
        budget.open.fetch_add(count, Ordering::Relaxed);
        Fds { sources, target, link_dest, budget: Arc::clone(budget), count }
    }

    /// Source directory `side`.
    pub fn source(&self, side: usize) -> io::Result<BorrowedFd<'_>> {
        self.sources
            .get(side)
            .map(AsFd::as_fd)
            .ok_or_else(|| io::Error::from_raw_os_error(hakobu_sys::errno::EBADF))
    }

    /// The target directory, where there is one.
    pub fn target(&self) -> Option<BorrowedFd<'_>> {
        self.target.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for Fds {
    fn drop(&mut self) {
        self.budget.open.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// How one source directory of a node is reached from its parent.
pub struct Side {
    /// Which of the parent's sources holds it.
    pub parent_side: usize,
    /// Its name there.
    pub name: Box<CStr>,
    /// Device and inode when it was first opened.
    pub identity: (u64, u64),
    /// It was reached through a symlink (`-L`, `-k`).
    pub follow: bool,
    /// The names in it that are transferred; `None`: all.
    pub lent: Option<Arc<Lent>>,
    /// The device that `-x` stays on.
    pub volume: u64,
}

/// The names of a source directory that arguments give, where another argument fills the same
/// target directory.
#[derive(Clone, Default)]
pub struct Lent {
    names: HashMap<CString, Loan>,
}

/// One of them.
#[derive(Clone)]
pub struct Loan {
    /// It may be a symlink that is looked through.
    pub follow: bool,
    /// The names in it that are transferred; `None`: all.
    pub below: Option<Arc<Lent>>,
}

impl Lent {
    /// Adds the path of an argument.
    pub fn add(&mut self, path: &[CString], follow: bool) {
        let Some((name, below)) = path.split_first() else { return };
        if below.is_empty() {
            self.names.insert(name.clone(), Loan { follow, below: None });
            return;
        }
        // Symlinks above an argument are looked through.
        let implied = || Loan { follow: true, below: Some(Arc::default()) };
        let loan = self.names.entry(name.clone()).or_insert_with(implied);
        if let Some(lent) = &mut loan.below {
            Arc::make_mut(lent).add(below, follow);
        }
    }
}

/// What is known of the target directory once it is open.
#[derive(Clone, Copy)]
pub struct TargetDir {
    /// Device and inode.
    pub identity: (u64, u64),
    /// We made it, or found it empty: nothing in it needs to be looked at.
    pub fresh: bool,
    /// We made it in this run.
    pub created: bool,
    /// Mode and owner as they are now.
    pub meta: Meta,
    /// New entries inherit an ACL.
    pub default_acl: bool,
    /// Reached through a symlink (`-K`).
    pub follow: bool,
}

impl TargetDir {
    /// The group that the kernel gives a new entry of this directory.
    pub fn default_gid(&self, egid: u32) -> u32 {
        if self.meta.mode & 0o2000 != 0 { self.meta.gid } else { egid }
    }
}

/// What a node without a parent has instead of names.
pub struct Base {
    /// Source folders as the user would spell them, one for each side, ending without slash.
    pub sources: Vec<PathBuf>,
    /// The target folder as the user would spell it.
    pub target: PathBuf,
    /// Its path in the transfer (what rsync prints before the name), without slashes at the ends.
    pub path: Vec<u8>,
    /// Names at the target that other arguments provide: not extraneous.
    pub provided: Vec<Box<CStr>>,
}

/// One directory of a transfer.
pub struct Node {
    /// The directory that holds it; `None` for the base of a source argument.
    pub parent: Option<Arc<Node>>,
    /// Its name at the target.
    pub target_name: Box<CStr>,
    /// Its source directories.
    pub sides: Vec<Side>,
    /// What the first source directory's metadata was when it was opened.
    pub source: Meta,
    /// Names of a node without parent.
    pub base: Option<Box<Base>>,
    /// Filter rules in force inside.
    pub rules: Option<Arc<DirRules>>,
    /// Whether attributes are put on the target directory at the end.
    pub owns_attributes: bool,
    /// The target directory, once it exists.
    pub target: Mutex<Option<TargetDir>>,
    /// The descriptors, while they are kept.
    pub fds: Mutex<Option<Arc<Fds>>>,
    /// Held by the worker that creates names in the target directory.
    pub creating: Mutex<()>,
    /// Units below that are not finished; the last one finishes the node.
    pub pending: AtomicUsize,
    /// The content of the directory is transferred, not just single names in it.
    pub listed: AtomicBool,
    /// Something is transferred into it: with `--prune-empty-dirs` others are left alone.
    pub needed: AtomicBool,
    /// The listing of the source had an error: nothing may be deleted here.
    pub list_failed: AtomicBool,
    /// A source directory that belongs here could not be opened: nothing may be deleted here or
    /// anywhere below.
    pub incomplete: bool,
    /// Something in the target directory was changed by us: its times must be put back.
    pub touched: AtomicBool,
    /// Entries removed with their source (`mv`): whether any had to stay.
    pub kept_sources: AtomicU64,
}

impl Node {
    /// The open descriptors, reopened if they were closed in between.
    ///
    /// # Errors
    /// What opening says; ESTALE where a directory is no longer the one it was.
    pub fn fds(self: &Arc<Self>) -> io::Result<Arc<Fds>> {
        if let Some(fds) = lock(&self.fds).as_ref() {
            return Ok(Arc::clone(fds));
        }
        let mut closed = vec![self];
        let mut above = self;
        let mut fds = loop {
            let Some(parent) = &above.parent else {
                // The descriptors of a base are never closed.
                return Err(io::Error::from_raw_os_error(hakobu_sys::errno::EBADF));
            };
            if let Some(fds) = lock(&parent.fds).as_ref() {
                break Arc::clone(fds);
            }
            closed.push(parent);
            above = parent;
        };
        while let Some(node) = closed.pop() {
            fds = Arc::new(node.reopen(&fds)?);
            // Keep the nearest ones: whoever finishes a deep chain climbs it one by one.
            if closed.len() < fds.budget.max / 8 && fds.budget.has_room() {
                *lock(&node.fds) = Some(Arc::clone(&fds));
            }
        }
        Ok(fds)
    }

    fn reopen(&self, parent: &Fds) -> io::Result<Fds> {
        let stale = || io::Error::from_raw_os_error(hakobu_sys::errno::ESTALE);
        let mut sources = Vec::with_capacity(self.sides.len());
        for side in &self.sides {
            let fd = dir::open(parent.source(side.parent_side)?, &side.name, side.follow)?;
            if meta::of_fd(&fd)?.identity() != side.identity {
                return Err(stale());
            }
            sources.push(fd);
        }
        let target = match (*lock(&self.target), parent.target()) {
            (Some(known), Some(parent)) => {
                let fd = dir::open(parent, &self.target_name, known.follow)?;
                if meta::of_fd(&fd)?.identity() != known.identity {
                    return Err(stale());
                }
                Some(fd)
            }
            _ => None,
        };
        Ok(Fds::new(sources, target, open_link_dest(parent, &self.target_name), &parent.budget))
    }

    /// Closes the descriptors; units that are using them keep them open until they end.
    pub fn close(&self) {
        if self.parent.is_some() {
            lock(&self.fds).take();
        }
    }

    /// Appends the path in the transfer, without a slash at the end; empty for the top.
    pub fn push_path(&self, path: &mut Vec<u8>) {
        let mut chain = Vec::new();
        let mut node = self;
        while let Some(parent) = &node.parent {
            chain.push(node.target_name.to_bytes());
            node = parent;
        }
        if let Some(base) = &node.base {
            path.extend_from_slice(&base.path);
        }
        for name in chain.iter().rev() {
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
        }
    }

    /// The source path of `name` in side `side`, as the user would spell it.
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

    /// The target path of `name`, as the user would spell it.
    pub fn target_path(&self, name: &CStr) -> PathBuf {
        let mut chain = vec![name.to_bytes()];
        let mut node = self;
        while let Some(parent) = &node.parent {
            chain.push(node.target_name.to_bytes());
            node = parent;
        }
        join(node.base.as_ref().map(|base| base.target.clone()).unwrap_or_default(), &chain)
    }

    /// The base that this node hangs from.
    pub fn top(&self) -> &Node {
        let mut node = self;
        while let Some(parent) = &node.parent {
            node = parent;
        }
        node
    }

    /// The device of the target directory, where there is one.
    pub fn target_dev(&self) -> Option<u64> {
        self.target_dir().map(|info| info.identity.0)
    }

    /// What is known of the target directory now.
    pub fn target_dir(&self) -> Option<TargetDir> {
        *lock(&self.target)
    }

    /// Whether `name` is transferred where side `side` has it.
    pub fn lends(&self, side: usize, name: &CStr) -> bool {
        let lent = self.sides.get(side).and_then(|side| side.lent.as_deref());
        lent.is_none_or(|lent| lent.names.contains_key(name))
    }

    /// Whether `name` may be a symlink in side `side` that an argument looks through.
    pub fn lends_followed(&self, side: usize, name: &CStr) -> bool {
        let lent = self.sides.get(side).and_then(|side| side.lent.as_deref());
        lent.and_then(|lent| lent.names.get(name)).is_some_and(|loan| loan.follow)
    }

    /// What of the directory `name` in side `side` is transferred; `None`: everything.
    pub fn lent_below(&self, side: usize, name: &CStr) -> Option<Arc<Lent>> {
        let lent = self.sides.get(side).and_then(|side| side.lent.as_deref())?;
        lent.names.get(name).map_or_else(|| Some(Arc::default()), |loan| loan.below.clone())
    }

    /// The device that `-x` stays on in the directory `name` of side `side`: an argument's own.
    pub fn volume_below(&self, side: usize, own: u64) -> u64 {
        let above = self.sides.get(side).filter(|side| side.lent.is_none());
        above.filter(|_| self.listed.load(Ordering::Relaxed)).map_or(own, |side| side.volume)
    }

    /// Remembers that an entry of the target directory was changed.
    pub fn touch(&self) {
        if !self.touched.load(Ordering::Relaxed) {
            self.touched.store(true, Ordering::Relaxed);
        }
    }

    /// Whether this node or one above it has the source identity `identity`: a symlink that is
    /// followed would lead round in a circle.
    pub fn is_inside(&self, identity: (u64, u64)) -> bool {
        let mut node = Some(self);
        while let Some(here) = node {
            if here.sides.iter().any(|side| side.identity == identity) {
                return true;
            }
            node = here.parent.as_deref();
        }
        false
    }
}

/// Opens `name` in each link-dest tree of the parent; absent ones stay absent.
pub fn open_link_dest(parent: &Fds, name: &CStr) -> Vec<Option<OwnedFd>> {
    let open =
        |fd: &Option<OwnedFd>| fd.as_ref().and_then(|fd| dir::open(fd.as_fd(), name, false).ok());
    parent.link_dest.iter().map(open).collect()
}

fn join(base: PathBuf, chain: &[&[u8]]) -> PathBuf {
    let mut bytes = base.into_os_string().into_vec();
    for name in chain.iter().rev().filter(|name| !name.is_empty()) {
        if !bytes.is_empty() && bytes.last() != Some(&b'/') {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// A C string of bytes that come from the command line.
///
/// # Errors
/// EINVAL where there is a NUL inside.
pub fn c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::from_raw_os_error(hakobu_sys::errno::EINVAL))
}

/// A failed operation, before anybody knows which entry it was for.
#[derive(Debug)]
pub struct Failure {
    /// What was being done.
    pub operation: Operation,
    /// What the system said.
    pub error: io::Error,
}

impl Failure {
    /// For `map_err`.
    pub fn of(operation: Operation) -> impl FnOnce(io::Error) -> Failure {
        move |error| Failure { operation, error }
    }
}
