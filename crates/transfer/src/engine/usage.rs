//! How much room a tree takes, counted by many workers; every file once, however many names it has.

mod lines;

use super::handle::{Budget, Handle};
use super::pool::{self, Queue, Work, lock};
use crate::error::{Cause, Operation};
use crate::limit::Gate;
use crate::unit::{Kind, Meta};
use hakobu_sys::dir::Reader;
use hakobu_sys::{AsFd, dir, meta};
use lines::{Id, Lines};
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Names in one unit.
const CHUNK_MAX: usize = 64;

/// What is counted, and which lines are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Sizes of contents instead of allocated blocks.
    pub apparent: bool,
    /// A file with several names counts for each of them.
    pub count_links: bool,
    /// Other file systems below the top do not count.
    pub one_file_system: bool,
    /// Lines for files as well as for directories.
    pub files: bool,
    /// Lines at most so many levels below the top.
    pub depth_max: Option<usize>,
}

/// What came of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// So many bytes.
    Bytes(u64),
    /// It was counted as a part of an earlier argument.
    Again,
    /// It could not be looked at, which was told.
    Failed,
}

/// Who is told of failures, from all workers: the path, what was being done, why.
pub type Failed<'a> = &'a (dyn Fn(&[u8], Operation, &Cause) + Sync);

/// Counts several trees one after the other, so that what they share counts once.
pub struct Meter<'a>(Shared<'a>);

struct Shared<'a> {
    options: Options,
    jobs: usize,
    budget: Arc<Budget>,
    /// The arguments, and whether each was come across already; empty for a single one.
    tops: Mutex<HashMap<(u64, u64), bool>>,
    /// Files with several names that were counted.
    linked: Mutex<HashSet<(u64, u64)>>,
    failed: Failed<'a>,
    failures: AtomicU64,
    lines: Mutex<Lines>,
}

/// A directory that is being counted.
struct Node {
    parent: Option<Arc<Node>>,
    name: CString,
    handle: Mutex<Option<Arc<Handle>>>,
    depth: usize,
    device: u64,
    line: Option<Id>,
    bytes: AtomicU64,
    /// Units and directories in it that are not finished, and the listing itself.
    pending: AtomicUsize,
}

enum Unit {
    Enter(Arc<Node>),
    List(Arc<Node>, u64),
    Names(Arc<Node>, Vec<CString>),
}

impl<'a> Meter<'a> {
    /// A meter for the arguments `tops` (paths as typed).
    pub fn new(
        options: Options,
        tops: &[CString],
        jobs: usize,
        open_files_max: u64,
        failed: Failed<'a>,
    ) -> Meter<'a> {
        let (jobs, budget) = Budget::for_limit(open_files_max, jobs);
        let mut known = HashMap::new();
        if tops.len() > 1 && !options.count_links {
            let metas = tops.iter().filter_map(|top| meta::of(dir::cwd(), top, false).ok());
            known.extend(metas.map(|meta| (meta.identity(), false)));
        }
        Meter(Shared {
            options,
            jobs,
            budget,
            tops: Mutex::new(known),
            linked: Mutex::default(),
            failed,
            failures: AtomicU64::new(0),
            lines: Mutex::default(),
        })
    }

    /// Failures so far.
    pub fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    /// Counts one argument; `each` gets path and bytes of every wanted line, depth first, sorted
    /// by name, directories after what they hold.
    pub fn measure(&self, top: &CStr, each: &mut dyn FnMut(&[u8], u64)) -> Measured {
        let shared = &self.0;
        let meta = match meta::of(dir::cwd(), top, false) {
            Ok(meta) => meta,
            Err(error) => {
                shared.fail(top.to_bytes(), Operation::Stat, error);
                return Measured::Failed;
            }
        };
        if shared.is_known(&meta) {
            return Measured::Again;
        }
        let bytes = shared.bytes_of(&meta);
        let line = lock(&shared.lines).add(None, top, bytes);
        let mut total = bytes;
        if meta.kind == Kind::Dir {
            let node = Arc::new(Node {
                parent: None,
                name: top.to_owned(),
                handle: Mutex::default(),
                depth: 0,
                device: meta.dev,
                line: Some(line),
                bytes: AtomicU64::new(bytes),
                pending: AtomicUsize::new(1),
            });
            pool::run(shared, &Gate::fixed(shared.jobs), [Unit::Enter(Arc::clone(&node))]);
            total = node.bytes.load(Ordering::Relaxed);
        }
        let lines = std::mem::take(&mut *lock(&shared.lines));
        lines.tell(each);
        Measured::Bytes(total)
    }
}

impl Shared<'_> {
    fn bytes_of(&self, meta: &Meta) -> u64 {
        if self.options.apparent { apparent_bytes(meta) } else { meta.allocated_bytes() }
    }

    /// Whether the entry was counted already; takes note of it.
    fn is_known(&self, meta: &Meta) -> bool {
        if self.options.count_links {
            return false;
        }
        let mut tops = lock(&self.tops);
        if let Some(seen) = tops.get_mut(&meta.identity()) {
            return std::mem::replace(seen, true);
        }
        drop(tops);
        meta.kind != Kind::Dir && meta.nlink > 1 && !lock(&self.linked).insert(meta.identity())
    }

    fn fail(&self, path: &[u8], operation: Operation, error: io::Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        (self.failed)(path, operation, &Cause::System(error));
    }
}

/// Apparent bytes of an entry, as coreutils 9.1 counts them: directories with what the file system
/// calls their size.
fn apparent_bytes(meta: &Meta) -> u64 {
    match meta.kind {
        Kind::File | Kind::Symlink | Kind::Dir => meta.size,
        _ => 0,
    }
}

impl Node {
    fn handle(&self) -> io::Result<Arc<Handle>> {
        let handle = lock(&self.handle).clone();
        handle.ok_or_else(|| io::Error::from_raw_os_error(hakobu_sys::errno::EBADF))
    }

    fn path(&self, name: Option<&CStr>) -> Vec<u8> {
        let mut names: Vec<&CStr> = name.into_iter().collect();
        let mut here = Some(self);
        while let Some(node) = here {
            names.push(&node.name);
            here = node.parent.as_deref();
        }
        let mut path = Vec::new();
        for name in names.iter().rev() {
            if !path.is_empty() && path.last() != Some(&b'/') {
                path.push(b'/');
            }
            path.extend_from_slice(name.to_bytes());
        }
        path
    }
}

impl Work for Shared<'_> {
    type Unit = Unit;
    type State = Reader;

    fn start(&self, _: usize) -> Reader {
        Reader::default()
    }

    fn run(&self, unit: Unit, reader: &mut Reader, queue: &Queue<'_, Unit>) {
        match unit {
            Unit::Enter(node) => self.enter(node, reader, queue),
            Unit::List(node, position) => self.list(node, position, reader, queue),
            Unit::Names(node, names) => {
                self.names(&node, names, queue);
                self.finish(node);
            }
        }
    }
}

impl Shared<'_> {
    fn enter(&self, node: Arc<Node>, reader: &mut Reader, queue: &Queue<'_, Unit>) {
        let opened = match &node.parent {
            None => Handle::top(&self.budget, &node.name, false),
            Some(parent) => parent.handle().and_then(|parent| parent.child(&node.name)),
        };
        match opened {
            Ok((handle, _)) => {
                *lock(&node.handle) = Some(handle);
                self.list(node, 0, reader, queue);
            }
            Err(error) => {
                self.fail(&node.path(None), Operation::List, error);
                self.finish(node);
            }
        }
    }

    fn list(&self, node: Arc<Node>, position: u64, reader: &mut Reader, queue: &Queue<'_, Unit>) {
        let push = |names| {
            node.pending.fetch_add(1, Ordering::Relaxed);
            queue.push(Unit::Names(Arc::clone(&node), names));
        };
        let mut names = Vec::new();
        let listed = node.handle().and_then(|handle| handle.fd()).and_then(|fd| {
            dir::seek((*fd).as_fd(), position)?;
            reader.read_until((*fd).as_fd(), |name, _, _| {
                names.push(name.to_owned());
                if names.len() < CHUNK_MAX {
                    return ControlFlow::Continue(());
                }
                push(std::mem::take(&mut names));
                if queue.has_room() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
        });
        if !names.is_empty() {
            push(names);
        }
        match listed {
            Ok(Some(position)) => return queue.put_aside(Unit::List(node, position)),
            Ok(None) => {}
            Err(error) => self.fail(&node.path(None), Operation::List, error),
        }
        self.finish(node);
    }

    fn names(&self, node: &Arc<Node>, names: Vec<CString>, queue: &Queue<'_, Unit>) {
        let fd = match node.handle().and_then(|handle| handle.fd()) {
            Ok(fd) => fd,
            Err(error) => return self.fail(&node.path(None), Operation::List, error),
        };
        let depth = node.depth + 1;
        let has_line = self.options.depth_max.is_none_or(|max| depth <= max);
        let mut sum = 0;
        for name in names {
            let meta = match meta::of((*fd).as_fd(), &name, false) {
                Ok(meta) => meta,
                Err(error) => {
                    self.fail(&node.path(Some(&name)), Operation::Stat, error);
                    continue;
                }
            };
            let elsewhere = self.options.one_file_system && meta.dev != node.device;
            if elsewhere || self.is_known(&meta) {
                continue;
            }
            let bytes = self.bytes_of(&meta);
            let is_dir = meta.kind == Kind::Dir;
            let line = (has_line && (is_dir || self.options.files))
                .then(|| lock(&self.lines).add(node.line, &name, bytes));
            if !is_dir {
                sum += bytes;
                continue;
            }
            node.pending.fetch_add(1, Ordering::Relaxed);
            queue.push(Unit::Enter(Arc::new(Node {
                parent: Some(Arc::clone(node)),
                name,
                handle: Mutex::default(),
                depth,
                device: node.device,
                line,
                bytes: AtomicU64::new(bytes),
                pending: AtomicUsize::new(1),
            })));
        }
        node.bytes.fetch_add(sum, Ordering::Relaxed);
    }

    /// One thing less to wait for in this directory; the last one settles its sum and its parents'.
    fn finish(&self, node: Arc<Node>) {
        let mut node = node;
        while node.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            let bytes = node.bytes.load(Ordering::Relaxed);
            if let Some(line) = node.line {
                lock(&self.lines).set(line, bytes);
            }
            let Some(parent) = node.parent.clone() else { return };
            parent.bytes.fetch_add(bytes, Ordering::Relaxed);
            node = parent;
        }
    }
}
