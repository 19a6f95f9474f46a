//! Walks two trees at once: a unit is a directory to open on both sides, a listing to go on with,
//! a chunk of names to compare, or a share in a large file.

use super::content::Side;
use super::pair::{Comparer, Failure, Found, Name, Scratch};
use super::{Aspect, Counts, Difference, Finding, Spec, rules};
use crate::engine::handle::{Budget, Handle};
use crate::engine::pool::{self, Queue, Work, lock};
use crate::error::{Cause, Class, Fatal, Operation, Problem, quoted};
use crate::event::{Event, Listener};
use crate::limit::Gate;
use crate::policy::filter::{Decision, DirRules};
use crate::unit::{Kind, Meta, Totals};
use hakobu_sys::dir::Reader;
use hakobu_sys::{AsFd, OwnedFd, dir, errno, meta};
use std::collections::HashSet;
use std::ffi::{CStr, CString, OsStr};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Names in one unit.
const CHUNK_MAX: usize = 64;
/// Names of a source directory that are remembered for the listing of the target; in larger ones
/// every name of the target is looked up in the source instead.
const REMEMBERED_MAX: usize = 8192;
/// Bytes of a large file that a worker takes at a time.
const SHARE_BYTES: u64 = 8 << 20;

type Report<'a> = &'a (dyn Fn(&Difference<'_>) + Sync);

/// Compares what `spec` names; the counts, and how many workers there were.
pub fn run(
    spec: &Spec,
    report: Report<'_>,
    listener: &dyn Listener,
) -> Result<(Counts, usize), Fatal> {
    let (jobs, budget) = Budget::for_limit(spec.open_files_max, spec.jobs);
    let mut walk = Walk {
        tops: None,
        spec,
        report,
        listener,
        hasher: RandomState::new(),
        jobs,
        comparer: Comparer { aspects: spec.aspects, times: spec.times, links: Mutex::default() },
    };
    let (source, target) = (top(&spec.source)?, top(&spec.target)?);
    let mut seeds = vec![Unit::Tops];
    if (source.1.kind, target.1.kind) == (Kind::Dir, Kind::Dir) {
        let open = |path: &CStr, shown: &Path| {
            Handle::top(&budget, path, false).map_err(|error| fatal("list", shown, error))
        };
        let (source, _) = open(&source.0, &spec.source)?;
        let (target, _) = open(&target.0, &spec.target)?;
        let rules = match &spec.filter {
            Some(filter) => {
                let fd = source.fd().map_err(|error| fatal("list", &spec.source, error))?;
                Some(rules::top(filter, &spec.source, &spec.target, (*fd).as_fd())?)
            }
            None => None,
        };
        seeds.push(Unit::Both(Arc::new(Node { source, target, rules })));
    }
    walk.tops = Some((source, target));
    let mut counts = Counts::default();
    for state in pool::run(&walk, &Gate::fixed(jobs), seeds) {
        counts.add(&state.counts);
    }
    Ok((counts, jobs))
}

fn fatal(verb: &str, path: &Path, error: io::Error) -> Fatal {
    Fatal::new(2, format!("cannot {verb} {}: {}", quoted(path), Cause::System(error)))
}

fn top(path: &Path) -> Result<Top, Fatal> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| fatal("look at", path, io::Error::from_raw_os_error(errno::EINVAL)))?;
    let meta = meta::of(dir::cwd(), &name, false).map_err(|error| fatal("look at", path, error))?;
    Ok((name, meta))
}

/// A directory that both sides have.
struct Node {
    source: Arc<Handle>,
    target: Arc<Handle>,
    /// Filter rules in force inside.
    rules: Option<Arc<DirRules>>,
}

impl Node {
    fn path_of(&self, name: &CStr) -> Vec<u8> {
        let mut path = Vec::new();
        self.source.push_path(&mut path);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.to_bytes());
        path
    }
}

/// A pair whose comparison is not told yet.
struct Pending {
    /// The directory that holds it; `None` for the tops.
    node: Option<Arc<Node>>,
    name: CString,
    a: Meta,
    b: Meta,
    found: Found,
}

/// A large file that several workers compare.
struct Big {
    work: Mutex<BigWork>,
    sparse: bool,
    size: u64,
    /// Where the next share begins.
    next: AtomicU64,
    /// The lowest offset that is known to differ.
    first: AtomicU64,
}

struct BigWork {
    /// Closed when everything is compared; workers that come later find nothing to do.
    fds: Option<Arc<(OwnedFd, OwnedFd)>>,
    /// Workers at it.
    active: usize,
    pending: Option<Pending>,
}

enum Unit {
    /// The two arguments themselves.
    Tops,
    /// A directory that both sides have, to be opened.
    Dir(Arc<Node>, CString),
    /// A directory that is open on both sides.
    Both(Arc<Node>),
    /// The source's listing, from a position on.
    Source(Arc<Node>, u64),
    /// The target's listing, from a position on.
    Target(Arc<Node>, u64),
    /// Names of the source.
    Names(Arc<Node>, Vec<CString>),
    /// Names of the target that the source may lack.
    Extras(Arc<Node>, Vec<CString>),
    /// A share in a large file.
    Share(Arc<Big>),
}

struct State {
    reader: Reader,
    scratch: Scratch,
    counts: Counts,
    /// What the last `Unit` event told.
    told: (u64, u64),
}

/// An argument with what it is.
type Top = (CString, Meta);

struct Walk<'a> {
    tops: Option<(Top, Top)>,
    spec: &'a Spec,
    report: Report<'a>,
    listener: &'a dyn Listener,
    hasher: RandomState,
    jobs: usize,
    comparer: Comparer,
}

impl Work for Walk<'_> {
    type Unit = Unit;
    type State = State;

    fn start(&self, _: usize) -> State {
        State {
            reader: Reader::default(),
            scratch: Scratch::default(),
            counts: Counts::default(),
            told: (0, 0),
        }
    }

    fn run(&self, unit: Unit, state: &mut State, queue: &Queue<'_, Unit>) {
        match unit {
            Unit::Tops => self.tops(state, queue),
            Unit::Dir(parent, name) => self.enter(&parent, &name, state, queue),
            Unit::Both(node) => self.both(&node, state, queue),
            Unit::Source(node, position) => self.large(&node, position, state, queue),
            Unit::Target(node, position) => {
                self.list_target(&node, position, None, state, queue);
            }
            Unit::Names(node, names) => self.names(&node, names, state, queue),
            Unit::Extras(node, names) => self.extras(&node, names, state),
            Unit::Share(big) => self.share(&big, state),
        }
        let now = (state.counts.files, state.counts.bytes);
        if now != state.told {
            let (files, bytes) = (now.0 - state.told.0, now.1 - state.told.1);
            state.told = now;
            self.listener.event(Event::Unit(&Totals { files, bytes, ..Totals::default() }));
        }
    }
}

impl Walk<'_> {
    fn tops(&self, state: &mut State, queue: &Queue<'_, Unit>) {
        let Some(((source, a), (target, b))) = &self.tops else { return };
        let (one, two) = ((dir::cwd(), &**source), (dir::cwd(), &**target));
        let found = self.comparer.compare((one, a), (two, b), &mut state.scratch);
        let entry = Pending { node: None, name: CString::default(), a: *a, b: *b, found };
        self.settle(entry, state, queue);
    }

    /// Opens a directory on both sides.
    fn enter(&self, parent: &Arc<Node>, name: &CStr, state: &mut State, queue: &Queue<'_, Unit>) {
        let failed = |side| move |error| Failure { side, operation: Operation::List, error };
        let opened = parent.source.child(name).map_err(failed(Side::Source)).and_then(|source| {
            let target = parent.target.child(name).map_err(failed(Side::Target))?;
            let rules = self.rules_in(parent, &source.0, name)?;
            Ok(Node { source: source.0, target: target.0, rules })
        });
        match opened {
            Ok(node) => self.both(&Arc::new(node), state, queue),
            Err(failure) => self.fail(Some(parent), name, failure, state),
        }
    }

    /// The filter rules of a directory below `parent`.
    fn rules_in(
        &self,
        parent: &Node,
        source: &Arc<Handle>,
        name: &CStr,
    ) -> Result<Option<Arc<DirRules>>, Failure> {
        let (Some(filter), Some(above)) = (&self.spec.filter, &parent.rules) else {
            return Ok(None);
        };
        let failed = |error| Failure { side: Side::Source, operation: Operation::Filter, error };
        let fd = source.fd().map_err(failed)?;
        let inside = rules::enter(filter, above, &parent.path_of(name), (*fd).as_fd());
        inside.map(Some).map_err(|error| failed(io::Error::other(error.to_string())))
    }

    /// What the filter says of a name.
    fn decide(&self, node: &Node, name: &CStr, kind: Kind) -> Decision {
        match (&self.spec.filter, &node.rules) {
            (Some(filter), Some(rules)) => {
                filter.check(rules, &node.path_of(name), kind == Kind::Dir, false)
            }
            _ => Decision::default(),
        }
    }

    /// Lists a directory on both sides.
    fn both(&self, node: &Arc<Node>, state: &mut State, queue: &Queue<'_, Unit>) {
        let mut remembered = HashSet::new();
        let wanted = (!self.spec.one_way).then_some(&mut remembered);
        let next = self.list_source(node, 0, wanted, state, queue);
        let few = next.is_none() && remembered.len() < REMEMBERED_MAX;
        if let Some(position) = next {
            queue.put_aside(Unit::Source(Arc::clone(node), position));
        }
        if !self.spec.one_way {
            self.list_target(node, 0, few.then_some(&remembered), state, queue);
        }
    }

    fn large(&self, node: &Arc<Node>, position: u64, state: &mut State, queue: &Queue<'_, Unit>) {
        if let Some(position) = self.list_source(node, position, None, state, queue) {
            queue.put_aside(Unit::Source(Arc::clone(node), position));
        }
    }

    fn list_source(
        &self,
        node: &Arc<Node>,
        position: u64,
        mut remembered: Option<&mut HashSet<u64>>,
        state: &mut State,
        queue: &Queue<'_, Unit>,
    ) -> Option<u64> {
        let mut names = Vec::new();
        let listed = node.source.fd().and_then(|fd| {
            dir::seek((*fd).as_fd(), position)?;
            state.reader.read_until((*fd).as_fd(), |name, _, _| {
                if let Some(remembered) = remembered.as_deref_mut()
                    && remembered.len() < REMEMBERED_MAX
                {
                    remembered.insert(self.hasher.hash_one(name));
                }
                names.push(name.to_owned());
                if names.len() < CHUNK_MAX {
                    return ControlFlow::Continue(());
                }
                queue.push(Unit::Names(Arc::clone(node), std::mem::take(&mut names)));
                if queue.has_room() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
        });
        if !names.is_empty() {
            queue.push(Unit::Names(Arc::clone(node), names));
        }
        listed.unwrap_or_else(|error| {
            let failure = Failure { side: Side::Source, operation: Operation::List, error };
            self.fail(Some(node), c"", failure, state);
            None
        })
    }

    /// Lists the target for names that the source lacks. `known` are the hashes of all names of
    /// the source, under a key of this run.
    fn list_target(
        &self,
        node: &Arc<Node>,
        position: u64,
        known: Option<&HashSet<u64>>,
        state: &mut State,
        queue: &Queue<'_, Unit>,
    ) {
        let mut names = Vec::new();
        let listed = node.target.fd().and_then(|fd| {
            dir::seek((*fd).as_fd(), position)?;
            state.reader.read_until((*fd).as_fd(), |name, _, _| {
                if known.is_some_and(|known| known.contains(&self.hasher.hash_one(name))) {
                    return ControlFlow::Continue(());
                }
                names.push(name.to_owned());
                if names.len() < CHUNK_MAX {
                    return ControlFlow::Continue(());
                }
                queue.push(Unit::Extras(Arc::clone(node), std::mem::take(&mut names)));
                if queue.has_room() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
        });
        if !names.is_empty() {
            self.extras(node, names, state);
        }
        match listed {
            Ok(None) => {}
            Ok(Some(position)) => queue.put_aside(Unit::Target(Arc::clone(node), position)),
            Err(error) => {
                let failure = Failure { side: Side::Target, operation: Operation::List, error };
                self.fail(Some(node), c"", failure, state);
            }
        }
    }

    /// The open directories of a node; tells what is wrong where they cannot be had.
    fn fds(&self, node: &Arc<Node>, state: &mut State) -> Option<(Arc<OwnedFd>, Arc<OwnedFd>)> {
        let failed = |side| move |error| Failure { side, operation: Operation::List, error };
        let fds = node
            .source
            .fd()
            .map_err(failed(Side::Source))
            .and_then(|source| Ok((source, node.target.fd().map_err(failed(Side::Target))?)));
        fds.map_err(|failure| self.fail(Some(node), c"", failure, state)).ok()
    }

    fn names(
        &self,
        node: &Arc<Node>,
        names: Vec<CString>,
        state: &mut State,
        queue: &Queue<'_, Unit>,
    ) {
        let Some((source, target)) = self.fds(node, state) else { return };
        for name in names {
            let (one, two) = (((*source).as_fd(), &*name), ((*target).as_fd(), &*name));
            self.name(node, one, two, state, queue);
        }
    }

    fn name(
        &self,
        node: &Arc<Node>,
        source: Name<'_>,
        target: Name<'_>,
        state: &mut State,
        queue: &Queue<'_, Unit>,
    ) {
        let name = source.1;
        let failed = |side| move |error| Failure { side, operation: Operation::Stat, error };
        let a = match meta::of(source.0, name, false) {
            Ok(meta) => meta,
            Err(error) => return self.fail(Some(node), name, failed(Side::Source)(error), state),
        };
        if self.decide(node, name, a.kind).hide {
            return;
        }
        let b = match meta::of(target.0, name, false) {
            Ok(meta) => meta,
            Err(error) if errno::is(&error, errno::ENOENT) => {
                state.counts.missing += 1;
                return self.tell(
                    Difference {
                        path: &node.path_of(name),
                        finding: Finding::Missing,
                        source: Some(&a),
                        target: None,
                        offset: None,
                    },
                    state,
                );
            }
            Err(error) => return self.fail(Some(node), name, failed(Side::Target)(error), state),
        };
        let found = self.comparer.compare((source, &a), (target, &b), &mut state.scratch);
        let descend = a.kind == Kind::Dir && b.kind == Kind::Dir;
        let entry = Pending { node: Some(Arc::clone(node)), name: name.to_owned(), a, b, found };
        self.settle(entry, state, queue);
        if descend {
            queue.push(Unit::Dir(Arc::clone(node), name.to_owned()));
        }
    }

    fn extras(&self, node: &Arc<Node>, names: Vec<CString>, state: &mut State) {
        let Some((source, target)) = self.fds(node, state) else { return };
        for name in names {
            match meta::of((*source).as_fd(), &name, false) {
                Ok(_) => continue,
                Err(error) if errno::is(&error, errno::ENOENT) => {}
                // The same error is told where the source is listed.
                Err(_) => continue,
            }
            // What has vanished from the target as well is no difference.
            let Ok(extra) = meta::of((*target).as_fd(), &name, false) else { continue };
            let decision = self.decide(node, &name, extra.kind);
            if decision.hide || decision.protect {
                continue;
            }
            state.counts.extra += 1;
            self.tell(
                Difference {
                    path: &node.path_of(&name),
                    finding: Finding::Extra,
                    source: None,
                    target: Some(&extra),
                    offset: None,
                },
                state,
            );
        }
    }

    /// Counts and tells a pair; the contents of a large file are compared first.
    fn settle(&self, mut entry: Pending, state: &mut State, queue: &Queue<'_, Unit>) {
        let Some(fds) = entry.found.big.take() else { return self.tell_pair(entry, state) };
        let big = Arc::new(Big {
            sparse: entry.a.may_have_holes() && entry.b.may_have_holes(),
            size: entry.a.size,
            work: Mutex::new(BigWork { fds: Some(Arc::new(fds)), active: 0, pending: Some(entry) }),
            next: AtomicU64::new(0),
            first: AtomicU64::new(u64::MAX),
        });
        let shares = usize::try_from(big.size / SHARE_BYTES).unwrap_or(usize::MAX);
        for _ in 1..self.jobs.min(shares) {
            queue.push(Unit::Share(Arc::clone(&big)));
        }
        // Not left to the queue: files that wait there would be open all the time.
        self.share(&big, state);
    }

    fn tell_pair(&self, entry: Pending, state: &mut State) {
        match entry.a.kind {
            Kind::File => state.counts.files += 1,
            Kind::Dir => state.counts.dirs += 1,
            _ => state.counts.others += 1,
        }
        state.counts.bytes += entry.found.bytes;
        for failure in entry.found.failures {
            self.fail(entry.node.as_ref(), &entry.name, failure, state);
        }
        let set = entry.found.set;
        if !set.is_empty() {
            let path = entry.node.map(|node| node.path_of(&entry.name)).unwrap_or_default();
            for aspect in set.iter() {
                if let Some(count) = state.counts.by_aspect.get_mut(aspect as usize) {
                    *count += 1;
                }
            }
            self.tell(
                Difference {
                    path: &path,
                    finding: Finding::Differs(set),
                    source: Some(&entry.a),
                    target: Some(&entry.b),
                    offset: entry.found.offset,
                },
                state,
            );
        }
    }

    fn share(&self, big: &Big, state: &mut State) {
        let fds = {
            let mut work = lock(&big.work);
            let Some(fds) = work.fds.clone() else { return };
            work.active += 1;
            fds
        };
        loop {
            let from = big.next.fetch_add(SHARE_BYTES, Ordering::Relaxed);
            if from >= big.size.min(big.first.load(Ordering::Relaxed)) {
                break;
            }
            let to = big.size.min(from + SHARE_BYTES);
            let buffers = &mut state.scratch.buffers;
            match buffers.first_difference(fds.0.as_fd(), fds.1.as_fd(), (from, to), big.sparse) {
                Ok(None) => state.counts.bytes += to - from,
                Ok(Some(offset)) => {
                    state.counts.bytes += offset - from;
                    big.first.fetch_min(offset, Ordering::Relaxed);
                }
                Err((side, error)) => {
                    big.next.store(big.size, Ordering::Relaxed);
                    if let Some(entry) = lock(&big.work).pending.as_mut() {
                        let failure = Failure { side, operation: Operation::Read, error };
                        entry.found.failures.push(failure);
                    }
                }
            }
        }
        drop(fds);
        let mut work = lock(&big.work);
        work.active -= 1;
        if work.active > 0 {
            return;
        }
        // Every share was taken before a worker leaves, and nobody is at one: all is compared.
        work.fds = None;
        let pending = work.pending.take();
        drop(work);
        if let Some(mut entry) = pending {
            let first = big.first.load(Ordering::Relaxed);
            if first != u64::MAX {
                entry.found.offset = Some(first);
                entry.found.set = entry.found.set.with(Aspect::Content);
            }
            self.tell_pair(entry, state);
        }
    }

    fn tell(&self, difference: Difference<'_>, state: &mut State) {
        state.counts.differences += 1;
        (self.report)(&difference);
    }

    fn fail(&self, node: Option<&Arc<Node>>, name: &CStr, failure: Failure, state: &mut State) {
        state.counts.failed += 1;
        let root = match failure.side {
            Side::Source => &self.spec.source,
            Side::Target => &self.spec.target,
        };
        let path = Some(match node {
            Some(node) => shown(root, &node.path_of(name)),
            None => root.clone(),
        });
        let (source, target) = match failure.side {
            Side::Source => (path, None),
            Side::Target => (None, path),
        };
        let cause = Cause::System(failure.error);
        let problem =
            Problem { operation: failure.operation, source, target, cause, class: Class::Partial };
        self.listener.event(Event::Problem(&problem));
    }
}

/// A path as the user would spell it.
fn shown(root: &Path, below: &[u8]) -> PathBuf {
    let end = below.strip_suffix(b"/").unwrap_or(below);
    if end.is_empty() { root.to_path_buf() } else { root.join(OsStr::from_bytes(end)) }
}
