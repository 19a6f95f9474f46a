//! Removing whole trees on many workers: a unit is a directory to list or a chunk of names in one
//! to unlink, and a directory goes when the count of what is unfinished in it reaches zero.

use super::{PASSES_MAX, is_gone, is_no_dir, is_not_empty, open_doomed};
use crate::engine::handle::{Budget, Handle};
use crate::engine::pool::{self, Queue, Work, lock};
use crate::error::{Cause, Operation};
use crate::limit::Gate;
use crate::unit::Kind;
use hakobu_sys::dir::Reader;
use hakobu_sys::{AsFd, BorrowedFd, dir, errno, meta};
use std::ffi::{CStr, CString};
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Names in one unit.
const CHUNK_MAX: usize = 64;

/// An entry, for who wants to know its path.
pub struct Place<'a> {
    /// The directory that holds it; the working directory for a top.
    pub dir: BorrowedFd<'a>,
    /// Its name there; for a top its path as typed.
    pub name: &'a CStr,
    /// Its type; never `Unknown`, except for a top that could not be looked at.
    pub kind: Kind,
    parent: Option<&'a Node>,
}

impl Place<'_> {
    /// The path, beginning as the top was typed.
    pub fn path(&self) -> Vec<u8> {
        let mut path = Vec::new();
        if let Some(parent) = self.parent {
            parent.push_path(&mut path);
            path.push(b'/');
        }
        path.extend_from_slice(self.name.to_bytes());
        path
    }
}

/// Who decides and is told, from all workers at once.
pub trait Watch: Sync {
    /// Whether this entry stays; for a directory asked before its content.
    fn keep(&self, place: &Place<'_>) -> bool {
        let _ = place;
        false
    }

    /// The entry is gone; a directory after everything below it.
    fn removed(&self, place: &Place<'_>);

    /// The entry could not be looked at, listed or removed.
    fn failed(&self, place: &Place<'_>, operation: Operation, cause: Cause);
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Entries that are gone, but for directories.
    pub files: u64,
    /// Directories that are gone.
    pub dirs: u64,
    /// Failures that were told.
    pub failed: u64,
}

/// Removes what the paths name, with everything below it, on up to `jobs` workers; relative ones
/// start at the working directory. `open_files_max` is the limit of descriptors of this process.
/// A symlink is removed itself, never followed. With `one_file_system`, directories on another
/// file system than their top are an error and stay. Goes on after errors.
pub fn remove_all(
    tops: &[CString],
    one_file_system: bool,
    jobs: usize,
    open_files_max: u64,
    watch: &dyn Watch,
) -> Removed {
    let (jobs, budget) = Budget::for_limit(open_files_max, jobs);
    let remover = Remover { one_file_system, budget, watch, counts: Counts::default() };
    pool::run(&remover, &Gate::fixed(jobs), tops.iter().map(|path| Unit::Top(path)));
    let Counts { files, dirs, failed } = remover.counts;
    Removed { files: files.into_inner(), dirs: dirs.into_inner(), failed: failed.into_inner() }
}

/// A directory that is being emptied.
struct Node {
    parent: Option<Arc<Node>>,
    /// One component; for a top the path as typed.
    name: CString,
    handle: Mutex<Option<Arc<Handle>>>,
    /// Device of the top.
    device: AtomicU64,
    /// Units and directories in it that are not finished, and the listing itself.
    pending: AtomicUsize,
    /// Something in it stays.
    stays: AtomicBool,
    passes: AtomicU32,
}

impl Node {
    fn new(parent: Option<Arc<Node>>, name: CString) -> Arc<Node> {
        let device = parent.as_ref().map_or(0, |parent| parent.device.load(Ordering::Relaxed));
        Arc::new(Node {
            parent,
            name,
            handle: Mutex::default(),
            device: AtomicU64::new(device),
            pending: AtomicUsize::new(1),
            stays: AtomicBool::new(false),
            passes: AtomicU32::new(0),
        })
    }

    fn handle(&self) -> io::Result<Arc<Handle>> {
        lock(&self.handle).clone().ok_or_else(|| io::Error::from_raw_os_error(errno::EBADF))
    }

    fn push_path(&self, path: &mut Vec<u8>) {
        let mut names = vec![&self.name];
        let mut here = self;
        while let Some(parent) = here.parent.as_deref() {
            names.push(&parent.name);
            here = parent;
        }
        while let Some(name) = names.pop() {
            path.extend_from_slice(name.to_bytes());
            if !names.is_empty() && path.last() != Some(&b'/') {
                path.push(b'/');
            }
        }
    }
}

enum Unit<'a> {
    /// An argument.
    Top(&'a CStr),
    /// A directory to open.
    Enter(Arc<Node>),
    /// A directory to list from a position on.
    List(Arc<Node>, u64),
    /// Names of one directory that are no directories, as far as known.
    Names(Arc<Node>, Vec<(CString, Kind)>),
}

#[derive(Default)]
struct Counts {
    files: AtomicU64,
    dirs: AtomicU64,
    failed: AtomicU64,
}

struct Remover<'a> {
    one_file_system: bool,
    budget: Arc<Budget>,
    watch: &'a dyn Watch,
    counts: Counts,
}

impl<'a> Work for Remover<'a> {
    type Unit = Unit<'a>;
    type State = Reader;

    fn start(&self, _: usize) -> Reader {
        Reader::default()
    }

    fn run(&self, unit: Unit<'a>, reader: &mut Reader, queue: &Queue<'_, Unit<'a>>) {
        match unit {
            Unit::Top(path) => self.top(path, reader, queue),
            Unit::Enter(node) => self.enter(node, reader, queue),
            Unit::List(node, position) => self.list(node, position, reader, queue),
            Unit::Names(node, names) => self.names(node, names, queue),
        }
    }
}

/// What became of one name.
enum Fate {
    Gone,
    Stays,
    /// It is a directory and must be entered.
    Dir,
}

impl<'a> Remover<'a> {
    fn fail(&self, place: &Place<'_>, operation: Operation, cause: Cause) {
        self.counts.failed.fetch_add(1, Ordering::Relaxed);
        self.watch.failed(place, operation, cause);
    }

    fn top(&self, path: &CStr, reader: &mut Reader, queue: &Queue<'_, Unit<'a>>) {
        let mut place = Place { dir: dir::cwd(), name: path, kind: Kind::Unknown, parent: None };
        match meta::of(dir::cwd(), path, false) {
            Ok(meta) => place.kind = meta.kind,
            Err(error) => return self.fail(&place, Operation::Remove, Cause::System(error)),
        }
        if let Fate::Dir = self.one(&mut place) {
            self.enter(Node::new(None, path.to_owned()), reader, queue);
        }
    }

    /// Removes one entry that is no directory.
    fn one(&self, place: &mut Place<'_>) -> Fate {
        if place.kind == Kind::Unknown {
            match meta::of(place.dir, place.name, false) {
                Ok(meta) => place.kind = meta.kind,
                Err(error) if is_gone(&error) => return Fate::Gone,
                Err(error) => {
                    self.fail(place, Operation::Stat, Cause::System(error));
                    return Fate::Stays;
                }
            }
        }
        if place.kind == Kind::Dir {
            return Fate::Dir;
        }
        if self.watch.keep(place) {
            return Fate::Stays;
        }
        match dir::unlink(place.dir, place.name) {
            Ok(()) => {
                self.counts.files.fetch_add(1, Ordering::Relaxed);
                self.watch.removed(place);
                Fate::Gone
            }
            Err(error) if is_gone(&error) => Fate::Gone,
            Err(error) if errno::is(&error, errno::EISDIR) => Fate::Dir,
            Err(error) => {
                self.fail(place, Operation::Remove, Cause::System(error));
                Fate::Stays
            }
        }
    }

    fn names(&self, node: Arc<Node>, names: Vec<(CString, Kind)>, queue: &Queue<'_, Unit<'a>>) {
        match node.handle().and_then(|handle| handle.fd()) {
            Ok(fd) => {
                for (name, kind) in names {
                    let mut place =
                        Place { dir: (*fd).as_fd(), name: &name, kind, parent: Some(&node) };
                    match self.one(&mut place) {
                        Fate::Gone => {}
                        Fate::Stays => node.stays.store(true, Ordering::Relaxed),
                        Fate::Dir => self.push_dir(&node, name, queue),
                    }
                }
            }
            Err(error) => self.fail_node(&node, Operation::Remove, error),
        }
        self.finish(node, queue);
    }

    fn push_dir(&self, node: &Arc<Node>, name: CString, queue: &Queue<'_, Unit<'a>>) {
        node.pending.fetch_add(1, Ordering::Relaxed);
        queue.push(Unit::Enter(Node::new(Some(Arc::clone(node)), name)));
    }

    fn fail_node(&self, node: &Node, operation: Operation, error: io::Error) {
        node.stays.store(true, Ordering::Relaxed);
        self.with_parent(node, |place| self.fail(place, operation, Cause::System(error)));
    }

    /// Calls with the place of a directory in its parent; without one where that is out of reach.
    fn with_parent<T>(&self, node: &Node, call: impl FnOnce(&Place<'_>) -> T) -> T {
        let parent = node.parent.as_deref();
        let fd = parent.and_then(|parent| parent.handle().and_then(|handle| handle.fd()).ok());
        let dir = fd.as_ref().map_or(dir::cwd(), |fd| (**fd).as_fd());
        call(&Place { dir, name: &node.name, kind: Kind::Dir, parent })
    }

    fn enter(&self, node: Arc<Node>, reader: &mut Reader, queue: &Queue<'_, Unit<'a>>) {
        if self.open(&node) {
            self.list(node, 0, reader, queue);
        } else {
            // Nothing is below it; the rest of what its parent is waiting for ends here.
            self.leave(node, queue);
        }
    }

    /// Opens a directory; `false` where it is settled already: gone, kept, failed.
    fn open(&self, node: &Arc<Node>) -> bool {
        if self.with_parent(node, |place| self.watch.keep(place)) {
            node.stays.store(true, Ordering::Relaxed);
            return false;
        }
        let opened = match &node.parent {
            None => self.open_in(node, None, dir::cwd()),
            Some(parent) => parent.handle().and_then(|above| {
                let fd = above.fd()?;
                self.open_in(node, Some(&above), (*fd).as_fd())
            }),
        };
        match opened {
            Ok(open) => open,
            Err(error) => {
                self.fail_node(node, Operation::Remove, error);
                false
            }
        }
    }

    fn open_in(
        &self,
        node: &Node,
        above: Option<&Arc<Handle>>,
        dir: BorrowedFd<'_>,
    ) -> io::Result<bool> {
        let parent = node.parent.as_deref();
        let mut place = Place { dir, name: &node.name, kind: Kind::Dir, parent };
        let (fd, meta) = match open_doomed(dir, &node.name, false) {
            Ok(opened) => opened,
            Err(error) if is_gone(&error) => return Ok(false),
            Err(error) if is_no_dir(&error) => {
                place.kind = Kind::Symlink;
                if !matches!(self.one(&mut place), Fate::Gone) {
                    node.stays.store(true, Ordering::Relaxed);
                }
                return Ok(false);
            }
            Err(error) => {
                // A directory that cannot be listed can still be removed if it is empty.
                if dir::rmdir(dir, &node.name).is_ok() {
                    self.counts.dirs.fetch_add(1, Ordering::Relaxed);
                    self.watch.removed(&place);
                } else {
                    node.stays.store(true, Ordering::Relaxed);
                    self.fail(&place, Operation::List, Cause::System(error));
                }
                return Ok(false);
            }
        };
        if parent.is_none() {
            node.device.store(meta.dev, Ordering::Relaxed);
        } else if self.one_file_system && meta.dev != node.device.load(Ordering::Relaxed) {
            node.stays.store(true, Ordering::Relaxed);
            let cause = Cause::Reason("it is on another file system");
            self.fail(&place, Operation::Remove, cause);
            return Ok(false);
        }
        let (handle, _) = match above {
            Some(above) => above.adopt(&node.name, fd)?,
            None => Handle::adopt_top(&self.budget, &node.name, fd)?,
        };
        *lock(&node.handle) = Some(handle);
        Ok(true)
    }

    /// Lists a directory into units until it ends or the queue is full.
    fn list(
        &self,
        node: Arc<Node>,
        position: u64,
        reader: &mut Reader,
        queue: &Queue<'_, Unit<'a>>,
    ) {
        let mut names = Vec::new();
        let listed = node.handle().and_then(|handle| handle.fd()).and_then(|fd| {
            dir::seek((*fd).as_fd(), position)?;
            reader.read_until((*fd).as_fd(), |name, kind, _| {
                if kind == Kind::Dir {
                    self.push_dir(&node, name.to_owned(), queue);
                } else {
                    names.push((name.to_owned(), kind));
                    if names.len() == CHUNK_MAX {
                        self.push_names(&node, std::mem::take(&mut names), queue);
                    }
                }
                match queue.has_room() {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            })
        });
        if !names.is_empty() {
            self.push_names(&node, names, queue);
        }
        match listed {
            Ok(Some(position)) => return queue.put_aside(Unit::List(node, position)),
            Ok(None) => {}
            Err(error) => self.fail_node(&node, Operation::List, error),
        }
        self.finish(node, queue);
    }

    fn push_names(
        &self,
        node: &Arc<Node>,
        names: Vec<(CString, Kind)>,
        queue: &Queue<'_, Unit<'a>>,
    ) {
        node.pending.fetch_add(1, Ordering::Relaxed);
        queue.push(Unit::Names(Arc::clone(node), names));
    }

    /// One thing less to wait for in this directory; removes it when that was the last, and goes
    /// on with its parents.
    fn finish(&self, node: Arc<Node>, queue: &Queue<'_, Unit<'a>>) {
        if node.pending.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        if !node.stays.load(Ordering::Relaxed) && !self.rmdir(&node, queue) {
            return;
        }
        self.leave(node, queue);
    }

    /// Removes an emptied directory; `false` where it has to be listed once more.
    fn rmdir(&self, node: &Arc<Node>, queue: &Queue<'_, Unit<'a>>) -> bool {
        let parent = node.parent.as_ref();
        let above = parent.map(|parent| {
            let below = node.handle()?.fd()?;
            parent.handle()?.fd_from_below(&below)
        });
        let fd = match above.transpose() {
            Ok(fd) => fd,
            Err(error) => {
                self.fail_node(node, Operation::Remove, error);
                return true;
            }
        };
        let dir = fd.as_ref().map_or(dir::cwd(), |fd| (**fd).as_fd());
        match dir::rmdir(dir, &node.name) {
            Ok(()) => {
                self.counts.dirs.fetch_add(1, Ordering::Relaxed);
                let parent = parent.map(|parent| &**parent);
                self.watch.removed(&Place { dir, name: &node.name, kind: Kind::Dir, parent });
            }
            Err(error) if is_gone(&error) => {}
            Err(error)
                if is_not_empty(&error)
                    && node.passes.fetch_add(1, Ordering::Relaxed) < PASSES_MAX =>
            {
                node.pending.store(1, Ordering::Relaxed);
                queue.push(Unit::List(Arc::clone(node), 0));
                return false;
            }
            Err(error) => self.fail_node(node, Operation::Remove, error),
        }
        true
    }

    /// The directory is settled: tells its parent.
    fn leave(&self, node: Arc<Node>, queue: &Queue<'_, Unit<'a>>) {
        let mut node = node;
        loop {
            let Some(parent) = node.parent.clone() else { return };
            if node.stays.load(Ordering::Relaxed) {
                parent.stays.store(true, Ordering::Relaxed);
            }
            node = parent;
            if node.pending.fetch_sub(1, Ordering::AcqRel) != 1 {
                return;
            }
            if !node.stays.load(Ordering::Relaxed) && !self.rmdir(&node, queue) {
                return;
            }
        }
    }
}
