//! Disk usage of a tree, counted by many workers; a file with several names counts once.

use crate::handle::{DirectoryHandle, HandleBudget};
use crate::names::push_name;
use crate::walk::{CloseOutcome, Dir, Visit, VisitContext, VisitNames, walk};
use hakobu_core::error::{Cause, Operation};
use hakobu_core::limit::Controls;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, dir, meta};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rules for counting, and the lines requested.
#[derive(Clone, Copy, Debug, Default)]
pub struct UsageOptions {
    /// Counts sizes of contents instead of allocated blocks.
    pub apparent: bool,
    /// Counts a file with several names once for each of them.
    pub count_links: bool,
    /// Counts entries instead of bytes.
    pub inodes: bool,
    /// Directories without what is in their subdirectories.
    pub separate: bool,
    /// Counts what symlinks lead to: for arguments only, or everywhere.
    pub follow: Follow,
    /// Skips other file systems below the top.
    pub one_file_system: bool,
    /// Produces lines for files as well as for directories.
    pub files: bool,
    /// Maximum depth of lines below the top.
    pub depth_max: Option<usize>,
}

/// Symlinks that are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    /// None.
    #[default]
    Never,
    /// Those that are arguments.
    Arguments,
    /// All of them. Every file counts once, whatever leads to it.
    All,
}

/// Result of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageResult {
    /// Total in bytes.
    Bytes(u64),
    /// Counted already as part of an earlier argument.
    Again,
    /// Could not be examined; the failure was reported.
    Failed,
}

/// Receives failures, from all workers: path, operation, cause.
pub type FailureHook<'a> = &'a (dyn Fn(&[u8], Operation, &Cause) + Sync);

/// Says whether an entry is left out, with everything below it: the argument as typed, the path below it (empty for the
/// argument itself), and the type.
pub type Excludes<'a> = &'a (dyn Fn(&[u8], &[u8], Kind) -> bool + Sync);

/// Counts several trees one after the other; shared files count once.
pub struct UsageMeter<'a>(UsageShared<'a>);

struct UsageShared<'a> {
    options: UsageOptions,
    controls: &'a Controls,
    budget: Arc<HandleBudget>,
    /// The arguments, and whether each was met already; empty for a single one.
    tops: Mutex<HashMap<(u64, u64), bool>>,
    /// Files with several names that were counted.
    linked: Mutex<HashSet<(u64, u64)>>,
    excludes: Option<Excludes<'a>>,
    failed: FailureHook<'a>,
    failures: AtomicU64,
    lines: Mutex<UsageLines>,
}

/// Directories above one that are compared with it.
const ABOVE_MAX: usize = 1000;

/// A directory that is being counted.
struct Sum {
    depth: usize,
    /// Device and inode.
    identity: (u64, u64),
    /// Device of the top.
    device: u64,
    line: Option<LineId>,
    /// With everything below.
    bytes: AtomicU64,
    /// Without its subdirectories.
    own: AtomicU64,
}

impl Sum {
    fn new(depth: usize, meta: &Meta, device: u64, line: Option<LineId>, bytes: u64) -> Arc<Sum> {
        let (bytes, own) = (AtomicU64::new(bytes), AtomicU64::new(bytes));
        Arc::new(Sum { depth, identity: meta.identity(), device, line, bytes, own })
    }
}

impl<'a> UsageMeter<'a> {
    /// Returns a meter for the arguments `tops` (paths as typed), with up to `open_dirs_max` directories open.
    pub fn new(
        options: UsageOptions,
        tops: &[CString],
        controls: &'a Controls,
        open_dirs_max: usize,
        excludes: Option<Excludes<'a>>,
        failed: FailureHook<'a>,
    ) -> UsageMeter<'a> {
        let budget = HandleBudget::new(open_dirs_max);
        let mut known = HashMap::new();
        if tops.len() > 1 && !options.count_links {
            let follow = options.follow != Follow::Never;
            let metas = tops.iter().filter_map(|top| meta::of(dir::cwd(), top, follow).ok());
            known.extend(metas.map(|meta| (meta.identity(), false)));
        }
        UsageMeter(UsageShared {
            options,
            controls,
            budget,
            tops: Mutex::new(known),
            linked: Mutex::default(),
            excludes,
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
    pub fn measure(&self, top: &CStr, each: &mut dyn FnMut(&[u8], u64)) -> UsageResult {
        let shared = &self.0;
        let meta = match meta::of(dir::cwd(), top, shared.options.follow != Follow::Never) {
            Ok(meta) => meta,
            Err(error) => {
                shared.fail(top.to_bytes(), Operation::Stat, error);
                return UsageResult::Failed;
            }
        };
        let excluded = |excludes: Excludes<'_>| excludes(top.to_bytes(), b"", meta.kind);
        if shared.excludes.is_some_and(excluded) || shared.is_known(&meta) {
            return UsageResult::Again;
        }
        let bytes = shared.bytes_of(&meta);
        let line = shared.lines.lock().add(None, top, bytes);
        let mut total = bytes;
        if meta.kind == Kind::Dir {
            let sum = Sum::new(0, &meta, meta.dev, Some(line), bytes);
            walk(shared, shared.controls, [(top.to_owned(), Arc::clone(&sum))], []);
            total = sum.bytes.load(Ordering::Relaxed);
        }
        let lines = std::mem::take(&mut *shared.lines.lock());
        lines.emit(each);
        UsageResult::Bytes(total)
    }
}

impl UsageShared<'_> {
    fn bytes_of(&self, meta: &Meta) -> u64 {
        match meta.kind {
            _ if self.options.inodes => 1,
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
        let several = meta.kind != Kind::Dir && meta.nlink > 1;
        (several || self.options.follow == Follow::All)
            && !self.linked.lock().insert(meta.identity())
    }

    /// Returns whether a name in a directory is left out.
    fn is_excluded(&self, dir: &Arc<Dir<Arc<Sum>>>, name: &CStr, kind: Kind) -> bool {
        let Some(excludes) = self.excludes else { return false };
        let mut top = dir;
        while let Some(above) = &top.parent {
            top = above;
        }
        let (path, top) = (dir.path(Some(name)), top.name.to_bytes());
        let below = path.strip_prefix(top).unwrap_or(&path);
        let start = below.iter().take_while(|byte| **byte == b'/').count();
        excludes(top, below.get(start..).unwrap_or_default(), kind)
    }

    fn fail(&self, path: &[u8], operation: Operation, error: io::Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        (self.failed)(path, operation, &Cause::System(error));
    }
}

/// Returns whether a directory or one above it has this identity. Only the nearest ones are compared: trees can be
/// 100,000 levels deep, and a mount that is missed is counted twice at worst.
fn is_above(dir: &Arc<Dir<Arc<Sum>>>, identity: (u64, u64)) -> bool {
    let above = std::iter::successors(Some(dir), |dir| dir.parent.as_ref());
    above.take(ABOVE_MAX).any(|dir| dir.data.identity == identity)
}

impl Visit for UsageShared<'_> {
    type Dir = Arc<Sum>;
    type Task = Infallible;
    type State = ();
    const IS_PART: bool = true;

    fn open(
        &self,
        dir: &Arc<Dir<Arc<Sum>>>,
        _: &mut VisitContext<'_, '_, Self>,
    ) -> Option<Vec<Arc<DirectoryHandle>>> {
        let opened = match &dir.parent {
            None => {
                DirectoryHandle::top(&self.budget, &dir.name, self.options.follow != Follow::Never)
            }
            Some(parent) if self.options.follow == Follow::All => {
                parent.handle(0).and_then(|parent| {
                    let fd = dir::open((*parent.fd()?).as_fd(), &dir.name, true)?;
                    let meta = meta::of_fd(&fd)?;
                    Ok((parent.join(&dir.name, fd, meta.identity(), true), meta))
                })
            }
            Some(parent) => parent.handle(0).and_then(|parent| parent.child(&dir.name)),
        };
        let failed = |error| self.fail(&dir.path(None), Operation::List, error);
        opened.map_err(failed).ok().map(|(handle, _)| vec![handle])
    }

    fn names(
        &self,
        dir: &Arc<Dir<Arc<Sum>>>,
        _: usize,
        names: VisitNames<'_, '_, Self>,
        at: &mut VisitContext<'_, '_, Self>,
    ) {
        let fd = match dir.fd(0) {
            Ok(fd) => fd,
            Err(error) => return self.fail(&dir.path(None), Operation::List, error),
        };
        let (depth, device) = (dir.data.depth + 1, dir.data.device);
        let has_line = self.options.depth_max.is_none_or(|max| depth <= max);
        let mut sum = 0;
        for (name, _) in names {
            let follow = self.options.follow == Follow::All;
            let meta = match meta::of((*fd).as_fd(), name, follow) {
                Ok(meta) => meta,
                Err(error) => {
                    self.fail(&dir.path(Some(name)), Operation::Stat, error);
                    continue;
                }
            };
            let elsewhere = self.options.one_file_system && meta.dev != device;
            if elsewhere || self.is_excluded(dir, name, meta.kind) || self.is_known(&meta) {
                continue;
            }
            let bytes = self.bytes_of(&meta);
            let is_dir = meta.kind == Kind::Dir;
            // A mount of a directory above: everything in it is counted there.
            if is_dir && is_above(dir, meta.identity()) {
                continue;
            }
            let line = (has_line && (is_dir || self.options.files))
                .then(|| self.lines.lock().add(dir.data.line, name, bytes));
            if is_dir {
                at.enter(dir, name.to_owned(), Sum::new(depth, &meta, device, line, bytes));
            } else {
                sum += bytes;
            }
        }
        dir.data.bytes.fetch_add(sum, Ordering::Relaxed);
        dir.data.own.fetch_add(sum, Ordering::Relaxed);
    }

    fn list_failed(
        &self,
        dir: &Arc<Dir<Arc<Sum>>>,
        _: usize,
        error: io::Error,
        _: &mut VisitContext<'_, '_, Self>,
    ) {
        self.fail(&dir.path(None), Operation::List, error);
    }

    /// Completes the sum of a directory and adds it to its parent's.
    fn close(&self, dir: &Arc<Dir<Arc<Sum>>>, _: &mut VisitContext<'_, '_, Self>) -> CloseOutcome {
        let bytes = dir.data.bytes.load(Ordering::Relaxed);
        if let Some(line) = dir.data.line {
            let own = || dir.data.own.load(Ordering::Relaxed);
            self.lines.lock().set(line, if self.options.separate { own() } else { bytes });
        }
        if let Some(parent) = &dir.parent {
            parent.data.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        CloseOutcome::Done
    }

    fn task(&self, task: Infallible, _: &mut VisitContext<'_, '_, Self>) {
        match task {}
    }
}

pub type LineId = u32;

/// Stands for no line; the number of lines stays below it.
const NONE: LineId = LineId::MAX;

struct Line {
    /// [`NONE`] for a top.
    parent: LineId,
    name: Box<[u8]>,
    bytes: u64,
}

/// Lines being collected.
#[derive(Default)]
pub struct UsageLines(Vec<Line>);

impl UsageLines {
    /// Adds a line below another one, or a top.
    pub fn add(&mut self, parent: Option<LineId>, name: &CStr, bytes: u64) -> LineId {
        let id = LineId::try_from(self.0.len()).unwrap_or(LineId::MAX);
        let parent = parent.unwrap_or(NONE);
        self.0.push(Line { parent, name: name.to_bytes().into(), bytes });
        id
    }

    /// Sets the size of a line in bytes.
    pub fn set(&mut self, id: LineId, bytes: u64) {
        if let Some(line) = self.0.get_mut(id as usize) {
            line.bytes = bytes;
        }
    }

    /// Calls `each` with path and size of every line.
    pub fn emit(self, each: &mut dyn FnMut(&[u8], u64)) {
        let lines = self.0;
        let mut order: Vec<LineId> =
            (0..lines.len()).filter_map(|id| LineId::try_from(id).ok()).collect();
        let line = |id: &LineId| lines.get(*id as usize);
        order.sort_unstable_by(|a, b| {
            let key = |id| line(id).map(|line| (line.parent, &line.name));
            key(a).cmp(&key(b))
        });
        // The children of a line are adjacent now; `first` holds where they start.
        let mut first = vec![usize::MAX; lines.len()];
        for (at, id) in order.iter().enumerate().rev() {
            if let Some(line) = line(id)
                && let Some(slot) = first.get_mut(line.parent as usize)
            {
                *slot = at;
            }
        }
        let mut path = Vec::new();
        for top in order.iter().filter(|id| line(id).is_some_and(|line| line.parent == NONE)) {
            // For each line on the current path: the line, the position of its next child, and the length of the path
            // without it.
            let mut stack = vec![(*top, first.get(*top as usize).copied(), 0)];
            path.clear();
            path.extend_from_slice(line(top).map(|line| &*line.name).unwrap_or_default());
            while let Some((id, next, parent_len)) = stack.last_mut() {
                let at = next.unwrap_or(usize::MAX);
                let child = order.get(at).copied().and_then(|child| {
                    line(&child).filter(|line| line.parent == *id).map(|l| (child, l))
                });
                match child {
                    Some((child, found)) => {
                        *next = Some(at + 1);
                        let len = path.len();
                        push_name(&mut path, &found.name);
                        stack.push((child, first.get(child as usize).copied(), len));
                    }
                    None => {
                        each(&path, line(id).map_or(0, |line| line.bytes));
                        path.truncate(*parent_len);
                        stack.pop();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_depth_first_sorted_and_parents_last() {
        let mut lines = UsageLines::default();
        let top = lines.add(None, c"b/", 1);
        let b = lines.add(Some(top), c"b", 2);
        let a = lines.add(Some(top), c"a", 3);
        lines.add(Some(b), c"z", 4);
        lines.add(Some(a), c"y", 5);
        lines.add(Some(top), c"a.b", 6);
        lines.add(Some(b), c"c", 7);
        let other = lines.add(None, c"other", 0);
        lines.set(other, 8);
        let mut lines_out = Vec::new();
        lines.emit(&mut |path, bytes| {
            lines_out.push(format!("{bytes} {}", String::from_utf8_lossy(path)));
        });
        assert_eq!(
            lines_out,
            ["5 b/a/y", "3 b/a", "6 b/a.b", "7 b/b/c", "4 b/b/z", "2 b/b", "1 b/", "8 other"]
        );
    }
}
