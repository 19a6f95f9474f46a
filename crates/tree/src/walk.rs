//! The parallel walk over one tree or over several that belong together: opens, lists and finishes directories. A
//! [`Visit`] handles the names; it does not see the queue or the counters.
//!
//! A unit is a directory to open, a listing to continue, a chunk of names of one directory, or a task of the visitor.
//! A directory is finished when everything found in it is; then its parent's count of unfinished units drops by one.
//! Memory grows with the depth of the tree and the number of workers, not with the number of entries.
//!
//! Each worker records on its lane of the meter its phase and the number of finished names: the signal from which a
//! tuner sets the gate. Non-directories are found when they are listed and done when they were visited; when nothing
//! is left that may lead to a directory, the meter learns that all names are found.
//!
//! Where operations are limited, each name that a visitor takes, each directory and each first task is one.

use crate::handle::DirectoryHandle;
use crate::names::{ByInode, Cursor, NameList, push_name};
use crate::pool::{self, Queue, Work};
use hakobu_core::limit::Controls;
use hakobu_core::meter::{Activity, Phase};
use hakobu_core::unit::Kind;
use hakobu_sys::dir::{self, Reader};
use hakobu_sys::{AsFd, OwnedFd, errno};
use std::ffi::{CStr, CString};
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Minimum number of names that is divided between two workers.
const SPLIT_MIN: usize = 16;
/// Number of names of a directory sorted together for [`Visit::BY_INODE`]: some megabytes.
const SORTED_MAX: usize = 64 << 10;

/// The result of [`Visit::close`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseOutcome {
    /// The directory is finished.
    Done,
    /// It must be listed again: something appeared in it.
    Again,
}

/// The work of a walk. All methods are called from many workers concurrently.
pub trait Visit: Sync + Sized {
    /// Data of each directory.
    type Dir: Send + Sync;
    /// Units of the visitor.
    type Task: Send;
    /// Data of each worker.
    type State: Send + Default;
    /// Whether the walk is one of several of a run: the end of its listings does not end the run's.
    const IS_PART: bool = false;
    /// Whether names come in inode order (groups of 64 Ki): ext4 lists by hash, with neighbours in distant blocks.
    const BY_INODE: bool = false;

    /// Opens a directory: returns a handle for each side, or `None` if there is nothing to list (the visitor has
    /// reported the reason). [`Visit::close`] is called in any case.
    fn open(
        &self,
        dir: &Arc<Dir<Self::Dir>>,
        at: &mut VisitContext<'_, '_, Self>,
    ) -> Option<Vec<Arc<DirectoryHandle>>>;

    /// Returns whether a listed name is passed to [`Visit::names`]. Called while the directory is being read.
    fn wants(&self, dir: &Dir<Self::Dir>, side: usize, name: &CStr) -> bool {
        let _ = (dir, side, name);
        true
    }

    /// Handles up to 64 names of one side with the types that the listing returned (`Unknown` if it had none).
    fn names(
        &self,
        dir: &Arc<Dir<Self::Dir>>,
        side: usize,
        names: VisitNames<'_, '_, Self>,
        at: &mut VisitContext<'_, '_, Self>,
    );

    /// Called when a side could not be listed to its end.
    fn list_failed(
        &self,
        dir: &Arc<Dir<Self::Dir>>,
        side: usize,
        error: io::Error,
        at: &mut VisitContext<'_, '_, Self>,
    );

    /// Called when everything found in the directory is finished.
    fn close(&self, dir: &Arc<Dir<Self::Dir>>, at: &mut VisitContext<'_, '_, Self>)
    -> CloseOutcome;

    /// Runs a task that [`VisitContext::push`] took.
    fn task(&self, task: Self::Task, at: &mut VisitContext<'_, '_, Self>);
}

/// The worker that runs a unit.
pub struct VisitContext<'a, 'q, V: Visit> {
    /// The visitor's state of this worker.
    pub state: &'a mut V::State,
    /// The phase and the counters of this worker. A unit begins with [`Phase::Look`].
    pub doing: &'a Activity,
    queue: &'a Queue<'q, Unit<V>>,
    unlisted: &'a Unlisted,
}

impl<V: Visit> VisitContext<'_, '_, V> {
    /// Walks the directory `name` of `parent` as well.
    pub fn enter(&self, parent: &Arc<Dir<V::Dir>>, name: CString, data: V::Dir) {
        parent.pending.fetch_add(1, Ordering::Relaxed);
        self.unlisted.add();
        self.queue.push(Unit::Enter(Dir::new(Some(Arc::clone(parent)), name, data)));
    }

    /// Walks one more tree.
    pub fn enter_top(&self, path: CString, data: V::Dir) {
        self.unlisted.add();
        self.queue.push(Unit::Enter(Dir::new(None, path, data)));
    }

    /// Counts a finished name that no listing found: an argument.
    pub fn count_name(&self) {
        let lane = self.doing.lane();
        lane.found(1);
        lane.done(1);
    }

    /// Returns whether this worker is about to park and should leave divisible work to others.
    pub fn is_shut_out(&self) -> bool {
        self.queue.is_shut_out()
    }

    /// Queues a task for any worker. No directory waits for it.
    pub fn push(&self, task: V::Task) {
        self.queue.push(Unit::Task(task));
    }
}

/// Number of units that may still lead to unlisted directories.
struct Unlisted(AtomicUsize);

impl Unlisted {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the end of one unit; returns whether it was the last.
    fn is_last(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// Returns whether a directory may be among the names.
fn may_lead_on(names: &NameList) -> bool {
    names.kinds().iter().any(|kind| matches!(kind, Kind::Dir | Kind::Unknown))
}

fn has_names(names: &NameList) -> bool {
    !names.is_empty()
}

/// Waits until the limit allows one more operation.
fn pace(controls: &Controls, doing: &Activity) {
    if let Some(limiter) = &controls.operations {
        limiter.pace(1, doing);
    }
}

/// Counts opening or reading a directory as work, like a name, so that workers with directories contribute.
fn count_call(doing: &Activity) {
    let lane = doing.lane();
    lane.items(1);
    lane.completions(1);
}

/// Iterator over the names of one unit. A name counts as finished when the next one is requested.
pub struct VisitNames<'a, 'q, V: Visit> {
    dir: &'a Arc<Dir<V::Dir>>,
    side: usize,
    names: Cursor<'a>,
    controls: &'a Controls,
    doing: &'a Activity,
    queue: &'a Queue<'q, Unit<V>>,
    unlisted: &'a Unlisted,
    /// The type of the current name.
    begun: Option<Kind>,
}

impl<'a, V: Visit> Iterator for VisitNames<'a, '_, V> {
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

fn push_names<V: Visit>(
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
    queue.push(Unit::Names(Arc::clone(dir), side, names));
}

/// Walks the trees below `tops` (path as typed, data), beginning with `tasks`, on as many workers as the gate admits;
/// returns the states of the workers that ran a unit.
pub fn walk<V: Visit>(
    visit: &V,
    controls: &Controls,
    tops: impl IntoIterator<Item = (CString, V::Dir)>,
    tasks: impl IntoIterator<Item = V::Task>,
) -> Vec<V::State> {
    let tasks = tasks.into_iter().map(|task| Unit::First(task));
    let tops = tops.into_iter().map(|(path, data)| Unit::Enter(Dir::new(None, path, data)));
    let first: Vec<Unit<V>> = tasks.chain(tops).collect();
    let unlisted = Unlisted(AtomicUsize::new(first.len() + usize::from(V::IS_PART)));
    let states = pool::run(&Walk { visit, controls, unlisted }, &controls.gate, first);
    states.into_iter().map(|state| state.own).collect()
}

enum Unit<V: Visit> {
    /// A directory to open.
    Enter(Arc<Dir<V::Dir>>),
    /// The listing of a side, from a position.
    List(Arc<Dir<V::Dir>>, usize, u64),
    /// Names of a side.
    Names(Arc<Dir<V::Dir>>, usize, NameList),
    /// An initial task of the walk: it may add tops.
    First(V::Task),
    Task(V::Task),
}

struct Walk<'a, V> {
    visit: &'a V,
    controls: &'a Controls,
    unlisted: Unlisted,
}

struct State<S> {
    reader: Reader,
    doing: Activity,
    own: S,
}

impl<V: Visit> Work for Walk<'_, V> {
    type Unit = Unit<V>;
    type State = State<V::State>;

    fn start(&self, index: usize) -> Self::State {
        let doing = Activity::new(self.controls.meter.share(index), Phase::Idle);
        State { reader: Reader::default(), doing, own: V::State::default() }
    }

    fn run(&self, unit: Unit<V>, state: &mut Self::State, queue: &Queue<'_, Unit<V>>) {
        let visit = self.visit;
        let State { reader, doing, own } = state;
        doing.turn(Phase::Look);
        let (unlisted, controls) = (&self.unlisted, self.controls);
        if matches!(unit, Unit::Enter(_) | Unit::First(_)) {
            pace(controls, doing);
        }
        let at = &mut VisitContext { state: own, doing, queue, unlisted };
        match unit {
            Unit::Enter(dir) => match visit.open(&dir, at) {
                Some(sides) => {
                    count_call(at.doing);
                    // Set once: a directory is entered once.
                    let _ = dir.sides.set(sides);
                    self.list(dir, 0, 0, reader, at);
                }
                None => {
                    self.listed();
                    self.finish(dir, at);
                }
            },
            Unit::List(dir, side, position) => self.list(dir, side, position, reader, at),
            Unit::Names(dir, side, names) => {
                let (doing, dir) = (at.doing, &dir);
                let leads_on = may_lead_on(&names);
                let names = names.cursor();
                let begun = None;
                let names =
                    VisitNames { dir, side, names, controls, doing, queue, unlisted, begun };
                visit.names(dir, side, names, at);
                if leads_on {
                    self.listed();
                }
                self.finish(Arc::clone(dir), at);
            }
            Unit::First(task) => {
                visit.task(task, at);
                self.listed();
            }
            Unit::Task(task) => visit.task(task, at),
        }
        doing.turn(Phase::Idle);
    }
}

impl<V: Visit> Walk<'_, V> {
    /// Records the end of a unit that might have led to directories.
    fn listed(&self) {
        if self.unlisted.is_last() {
            self.controls.meter.all_found();
        }
    }

    /// Lists the sides in order, until all are done or the queue is full.
    fn list(
        &self,
        dir: Arc<Dir<V::Dir>>,
        mut side: usize,
        mut position: u64,
        reader: &mut Reader,
        at: &mut VisitContext<'_, '_, V>,
    ) {
        at.doing.turn(Phase::List);
        while dir.handle(side).is_ok() {
            match self.list_side(&dir, side, position, reader, at) {
                Ok(Some(position)) => {
                    return at.queue.put_aside(Unit::List(dir, side, position));
                }
                Ok(None) => {}
                Err(error) => self.visit.list_failed(&dir, side, error, at),
            }
            (side, position) = (side + 1, 0);
        }
        self.listed();
        self.finish(dir, at);
    }

    /// Lists a side into chunks; returns the position if it stopped because the queue is full.
    fn list_side(
        &self,
        dir: &Arc<Dir<V::Dir>>,
        side: usize,
        position: u64,
        reader: &mut Reader,
        at: &VisitContext<'_, '_, V>,
    ) -> io::Result<Option<u64>> {
        let (queue, lane) = (at.queue, at.doing.lane());
        let (mut names, mut sorted) = (NameList::default(), ByInode::default());
        let push = |names| push_names(queue, &self.unlisted, dir, side, names);
        let fd = dir.fd(side)?;
        dir::seek((*fd).as_fd(), position)?;
        let listed = reader.read_until((*fd).as_fd(), |name, kind, inode| {
            if !self.visit.wants(dir, side, name) {
                return ControlFlow::Continue(());
            }
            lane.found(u64::from(kind != Kind::Dir));
            match V::BY_INODE {
                true => sorted.push(name, kind, inode),
                false => names.push(name, kind),
            }
            if !names.is_full() && sorted.len() < SORTED_MAX {
                return ControlFlow::Continue(());
            }
            sorted.take().chain([std::mem::take(&mut names)]).filter(has_names).for_each(push);
            if queue.has_room() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        sorted.take().chain([names]).filter(has_names).for_each(push);
        count_call(at.doing);
        listed
    }

    /// Decrements the directory's count of unfinished units; at zero, closes it and continues with its parents.
    fn finish(&self, mut dir: Arc<Dir<V::Dir>>, at: &mut VisitContext<'_, '_, V>) {
        while dir.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            if self.visit.close(&dir, at) == CloseOutcome::Again {
                dir.pending.store(1, Ordering::Relaxed);
                self.unlisted.add();
                return at.queue.push(Unit::List(dir, 0, 0));
            }
            let Some(parent) = dir.parent.clone() else { return };
            dir = parent;
        }
    }
}

/// A directory of a walk.
pub struct Dir<D> {
    /// The directory that contains it; `None` for a top.
    pub parent: Option<Arc<Dir<D>>>,
    /// One path component; for a top its path as typed.
    pub name: CString,
    /// The visitor's own data.
    pub data: D,
    /// Set when it is open, one handle for each side.
    pub(crate) sides: OnceLock<Vec<Arc<DirectoryHandle>>>,
    /// Units and directories in it that are unfinished, and its listing.
    pub(crate) pending: AtomicUsize,
}

impl<D> Dir<D> {
    pub(crate) fn new(parent: Option<Arc<Dir<D>>>, name: CString, data: D) -> Arc<Dir<D>> {
        let (sides, pending) = (OnceLock::new(), AtomicUsize::new(1));
        Arc::new(Dir { parent, name, data, sides, pending })
    }

    /// Returns the handle of one side.
    ///
    /// # Errors
    /// EBADF if it is not open, or has no such side.
    pub fn handle(&self, side: usize) -> io::Result<&Arc<DirectoryHandle>> {
        let handle = self.sides.get().and_then(|sides| sides.get(side));
        handle.ok_or_else(|| io::Error::from_raw_os_error(errno::EBADF))
    }

    /// Returns an open descriptor of one side; it stays open as long as the returned value lives.
    ///
    /// # Errors
    /// As [`Dir::handle`] and [`DirectoryHandle::fd`].
    pub fn fd(&self, side: usize) -> io::Result<Arc<OwnedFd>> {
        self.handle(side)?.fd()
    }

    /// Returns the path of this directory, or of a name in it, starting with the top as typed.
    pub fn path(&self, name: Option<&CStr>) -> Vec<u8> {
        let (top, mut names) = self.way(name);
        names.push(&top.name);
        join(&names)
    }

    /// Returns the path of a name in this directory, relative to the top.
    pub fn path_below(&self, name: &CStr) -> Vec<u8> {
        join(&self.way(Some(name)).1)
    }

    /// Returns the top, and the names below it in reverse order.
    fn way<'a>(&'a self, name: Option<&'a CStr>) -> (&'a Dir<D>, Vec<&'a CStr>) {
        let mut names: Vec<&CStr> = name.into_iter().collect();
        let mut here = self;
        while let Some(parent) = here.parent.as_deref() {
            names.push(&here.name);
            here = parent;
        }
        (here, names)
    }
}

fn join(backwards: &[&CStr]) -> Vec<u8> {
    let mut path = Vec::new();
    backwards.iter().rev().for_each(|name| push_name(&mut path, name.to_bytes()));
    path
}

impl<D> Drop for Dir<D> {
    fn drop(&mut self) {
        // Iterative: recursion over a chain of 100,000 parents would overflow the stack.
        let mut parent = self.parent.take();
        while let Some(mut last) = parent.and_then(Arc::into_inner) {
            parent = last.parent.take();
        }
    }
}

#[cfg(test)]
mod tests;
