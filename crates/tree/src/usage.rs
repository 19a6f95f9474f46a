//! Disk usage of a tree, counted by many workers; a file with several names counts once.

mod lines;

use super::handle::{Budget, Handle};
use super::walk::{At, Closed, Dir, Names, Visit, walk};
use hakobu_core::error::{Cause, Operation};
use hakobu_core::limit::Controls;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, dir, meta};
use lines::{Id, Lines};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rules for counting, and the lines requested.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Counts sizes of contents instead of allocated blocks.
    pub apparent: bool,
    /// Counts a file with several names once for each of them.
    pub count_links: bool,
    /// Skips other file systems below the top.
    pub one_file_system: bool,
    /// Produces lines for files as well as for directories.
    pub files: bool,
    /// Maximum depth of lines below the top.
    pub depth_max: Option<usize>,
}

/// Result of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// Total in bytes.
    Bytes(u64),
    /// Counted already as part of an earlier argument.
    Again,
    /// Could not be examined; the failure was reported.
    Failed,
}

/// Receives failures, from all workers: path, operation, cause.
pub type Failed<'a> = &'a (dyn Fn(&[u8], Operation, &Cause) + Sync);

/// Counts several trees one after the other; shared files count once.
pub struct Meter<'a>(Shared<'a>);

struct Shared<'a> {
    options: Options,
    controls: &'a Controls,
    budget: Arc<Budget>,
    /// The arguments, and whether each was met already; empty for a single one.
    tops: Mutex<HashMap<(u64, u64), bool>>,
    /// Files with several names that were counted.
    linked: Mutex<HashSet<(u64, u64)>>,
    failed: Failed<'a>,
    failures: AtomicU64,
    lines: Mutex<Lines>,
}

/// A directory that is being counted.
struct Sum {
    depth: usize,
    /// Device of the top.
    device: u64,
    line: Option<Id>,
    bytes: AtomicU64,
}

impl<'a> Meter<'a> {
    /// Returns a meter for the arguments `tops` (paths as typed), with up to `open_dirs_max` directories open.
    pub fn new(
        options: Options,
        tops: &[CString],
        controls: &'a Controls,
        open_dirs_max: usize,
        failed: Failed<'a>,
    ) -> Meter<'a> {
        let budget = Budget::new(open_dirs_max);
        let mut known = HashMap::new();
        if tops.len() > 1 && !options.count_links {
            let metas = tops.iter().filter_map(|top| meta::of(dir::cwd(), top, false).ok());
            known.extend(metas.map(|meta| (meta.identity(), false)));
        }
        Meter(Shared {
            options,
            controls,
            budget,
            tops: Mutex::new(known),
            linked: Mutex::default(),
            failed,
            failures: AtomicU64::new(0),
            lines: Mutex::default(),
        })
    }

    /// Returns the number of failures so far.
    pub fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    /// Counts one argument; `each` receives path and bytes of every requested line, depth first, sorted by name,
    /// directories after their content.
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
        let line = shared.lines.lock().add(None, top, bytes);
        let mut total = bytes;
        if meta.kind == Kind::Dir {
            let (device, line, bytes) = (meta.dev, Some(line), AtomicU64::new(bytes));
            let sum = Arc::new(Sum { depth: 0, device, line, bytes });
            walk(shared, shared.controls, [(top.to_owned(), Arc::clone(&sum))], []);
            total = sum.bytes.load(Ordering::Relaxed);
        }
        let lines = std::mem::take(&mut *shared.lines.lock());
        lines.emit(each);
        Measured::Bytes(total)
    }
}

impl Shared<'_> {
    fn bytes_of(&self, meta: &Meta) -> u64 {
        match meta.kind {
            _ if !self.options.apparent => meta.allocated_bytes(),
            // As coreutils 9.1 counts: a directory has its `st_size`.
            Kind::File | Kind::Symlink | Kind::Dir => meta.size,
            _ => 0,
        }
    }

    /// Returns whether the entry was counted before, and records it.
    fn is_known(&self, meta: &Meta) -> bool {
        if self.options.count_links {
            return false;
        }
        let mut tops = self.tops.lock();
        if let Some(seen) = tops.get_mut(&meta.identity()) {
            return std::mem::replace(seen, true);
        }
        drop(tops);
        meta.kind != Kind::Dir && meta.nlink > 1 && !self.linked.lock().insert(meta.identity())
    }

    fn fail(&self, path: &[u8], operation: Operation, error: io::Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        (self.failed)(path, operation, &Cause::System(error));
    }
}

impl Visit for Shared<'_> {
    type Dir = Arc<Sum>;
    type Task = Infallible;
    type State = ();
    const IS_PART: bool = true;

    fn open(&self, dir: &Arc<Dir<Arc<Sum>>>, _: &mut At<'_, '_, Self>) -> Option<Vec<Arc<Handle>>> {
        let opened = match &dir.parent {
            None => Handle::top(&self.budget, &dir.name, false),
            Some(parent) => parent.handle(0).and_then(|parent| parent.child(&dir.name)),
        };
        let failed = |error| self.fail(&dir.path(None), Operation::List, error);
        opened.map_err(failed).ok().map(|(handle, _)| vec![handle])
    }

    fn names(
        &self,
        dir: &Arc<Dir<Arc<Sum>>>,
        _: usize,
        names: Names<'_, '_, Self>,
        at: &mut At<'_, '_, Self>,
    ) {
        let fd = match dir.fd(0) {
            Ok(fd) => fd,
            Err(error) => return self.fail(&dir.path(None), Operation::List, error),
        };
        let (depth, device) = (dir.data.depth + 1, dir.data.device);
        let has_line = self.options.depth_max.is_none_or(|max| depth <= max);
        let mut sum = 0;
        for (name, _) in names {
            let meta = match meta::of((*fd).as_fd(), name, false) {
                Ok(meta) => meta,
                Err(error) => {
                    self.fail(&dir.path(Some(name)), Operation::Stat, error);
                    continue;
                }
            };
            let elsewhere = self.options.one_file_system && meta.dev != device;
            if elsewhere || self.is_known(&meta) {
                continue;
            }
            let bytes = self.bytes_of(&meta);
            let is_dir = meta.kind == Kind::Dir;
            let line = (has_line && (is_dir || self.options.files))
                .then(|| self.lines.lock().add(dir.data.line, name, bytes));
            if is_dir {
                let bytes = AtomicU64::new(bytes);
                at.enter(dir, name.to_owned(), Arc::new(Sum { depth, device, line, bytes }));
            } else {
                sum += bytes;
            }
        }
        dir.data.bytes.fetch_add(sum, Ordering::Relaxed);
    }

    fn list_failed(
        &self,
        dir: &Arc<Dir<Arc<Sum>>>,
        _: usize,
        error: io::Error,
        _: &mut At<'_, '_, Self>,
    ) {
        self.fail(&dir.path(None), Operation::List, error);
    }

    /// Completes the sum of a directory and adds it to its parent's.
    fn close(&self, dir: &Arc<Dir<Arc<Sum>>>, _: &mut At<'_, '_, Self>) -> Closed {
        let bytes = dir.data.bytes.load(Ordering::Relaxed);
        if let Some(line) = dir.data.line {
            self.lines.lock().set(line, bytes);
        }
        if let Some(parent) = &dir.parent {
            parent.data.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Closed::Done
    }

    fn task(&self, task: Infallible, _: &mut At<'_, '_, Self>) {
        match task {}
    }
}
