//! Compares two trees: the walk's first side is the source, the second the target. Large files are compared by
//! several workers, a share at a time.

pub(super) mod listed;

use super::aspects::Aspect;
use super::pair::{Comparer, Failure, Found, Name, Scratch};
use super::report::{Counts, Difference, Finding, Spec};
use super::rules;
use crate::local::Side;
use crate::policy::filter::{Decision, DirRules};
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, Class, Fatal, Operation, Problem, cannot};
use hakobu_core::event::{Event, Listener};
use hakobu_core::limit::Controls;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, OwnedFd, dir, errno, meta};
use hakobu_tree::handle::{Budget, Handle};
use hakobu_tree::walk::{At, Closed, Dir, Names, Visit, walk};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::ffi::{CStr, CString, OsStr};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Maximum number of names of a source directory stored for the listing of the target; for larger ones every name of
/// the target is looked up in the source instead.
const REMEMBERED_MAX: usize = 8192;
/// Bytes of a large file that a worker takes at a time.
const SHARE_BYTES: u64 = 8 << 20;

/// Sides of a directory, in the order in which they are listed.
const SOURCE: usize = 0;
const TARGET: usize = 1;

type Report<'a> = &'a (dyn Fn(&Difference<'_>) + Sync);

/// Runs the comparison of `spec`.
pub fn run(
    spec: &Spec,
    controls: &Controls,
    report: Report<'_>,
    listener: &dyn Listener,
) -> Result<Counts, Fatal> {
    let budget = Budget::new(spec.open_dirs_max);
    let mut comparison = Comparison::new(spec, controls, report, listener);
    let (source, target) = (top(&spec.source)?, top(&spec.target)?);
    let mut trees = None;
    if (source.1.kind, target.1.kind) == (Kind::Dir, Kind::Dir) {
        let open = |path: &CStr, shown: &Path| {
            Handle::top(&budget, path, false).map_err(|error| fatal("list", shown, error))
        };
        let (one, _) = open(&source.0, &spec.source)?;
        let (two, _) = open(&target.0, &spec.target)?;
        let both = Both::default();
        if let Some(filter) = &spec.filter {
            let fd = one.fd().map_err(|error| fatal("list", &spec.source, error))?;
            let rules = rules::top(filter, &spec.source, &spec.target, (*fd).as_fd())?;
            let _ = both.rules.set(rules);
        }
        comparison.open = Mutex::new(Some(vec![one, two]));
        trees = Some((source.0.clone(), both));
    }
    comparison.tops = Some((source, target));
    Ok(comparison.carry_out(controls, trees, [Task::Tops]))
}

fn fatal(verb: &str, path: &Path, error: io::Error) -> Fatal {
    Fatal::new(2, cannot(verb, path, error))
}

fn top(path: &Path) -> Result<Top, Fatal> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| fatal("look at", path, io::Error::from_raw_os_error(errno::EINVAL)))?;
    let meta = meta::of(dir::cwd(), &name, false).map_err(|error| fatal("look at", path, error))?;
    Ok((name, meta))
}

/// A directory that both sides have.
#[derive(Default)]
struct Both {
    /// Filter rules in force inside, if there is a filter.
    rules: OnceLock<Arc<DirRules>>,
    /// Hashes of the source's names, until the target is listed.
    remembered: Mutex<HashSet<u64>>,
}

type Node = Dir<Both>;

/// A pair whose comparison is not reported yet.
struct Pending {
    /// The directory that contains it; `None` for the tops and for names from a list.
    node: Option<Arc<Node>>,
    /// Its name there; below the tree where there is no directory, empty for the tops.
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
    /// Start of the next share.
    next: AtomicU64,
    /// The lowest offset known to differ.
    first: AtomicU64,
}

struct BigWork {
    /// Closed when everything is compared; workers that come later find nothing to do.
    fds: Option<Arc<(OwnedFd, OwnedFd)>>,
    /// Number of workers on it.
    active: usize,
    pending: Option<Pending>,
}

impl Big {
    /// Leaves the rest to its other workers; returns `false` if there are none.
    fn leave_to_others(&self) -> bool {
        let mut work = self.work.lock();
        let others = work.active > 1;
        work.active -= usize::from(others);
        others
    }
}

enum Task {
    /// The two arguments themselves.
    Tops,
    /// A share of a large file.
    Share(Arc<Big>),
    /// Names from a list.
    Listed(Vec<CString>),
}

#[derive(Default)]
struct State {
    scratch: Scratch,
    counts: Counts,
}

/// An argument and its metadata.
type Top = (CString, Meta);

/// The two trees of a list of names, open.
struct Roots<'a> {
    source: OwnedFd,
    target: OwnedFd,
    control: &'a Control,
}

struct Comparison<'a> {
    tops: Option<(Top, Top)>,
    /// The tops, opened.
    open: Mutex<Option<Vec<Arc<Handle>>>>,
    /// The trees, where names from a list are compared.
    roots: Option<Roots<'a>>,
    spec: &'a Spec,
    report: Report<'a>,
    listener: &'a dyn Listener,
    hasher: RandomState,
    /// Maximum number of workers.
    jobs_max: usize,
    comparer: Comparer,
}

impl Visit for Comparison<'_> {
    type Dir = Both;
    type Task = Task;
    type State = State;

    fn open(&self, dir: &Arc<Node>, at: &mut At<'_, '_, Self>) -> Option<Vec<Arc<Handle>>> {
        let Some(parent) = &dir.parent else { return self.open.lock().take() };
        let failed = |side| move |error| Failure { side, operation: Operation::List, error };
        let child = |side: usize| parent.handle(side).and_then(|above| above.child(&dir.name));
        let opened = child(SOURCE).map_err(failed(Side::Source)).and_then(|(source, _)| {
            let (target, _) = child(TARGET).map_err(failed(Side::Target))?;
            if let Some(rules) = self.rules_in(parent, &source, &dir.name)? {
                let _ = dir.data.rules.set(rules);
            }
            Ok(vec![source, target])
        });
        opened.map_err(|failure| self.fail(Some(parent), &dir.name, failure, at.state)).ok()
    }

    /// Stores names of the source; of the target only names that the source may lack are passed on.
    fn wants(&self, dir: &Node, side: usize, name: &CStr) -> bool {
        if self.spec.one_way {
            return side == SOURCE;
        }
        let mut remembered = dir.data.remembered.lock();
        match (side, remembered.len() < REMEMBERED_MAX) {
            (SOURCE, true) => {
                remembered.insert(self.hasher.hash_one(name));
                true
            }
            (SOURCE, false) => true,
            (_, is_complete) => !is_complete || !remembered.contains(&self.hasher.hash_one(name)),
        }
    }

    fn names(
        &self,
        dir: &Arc<Node>,
        side: usize,
        names: Names<'_, '_, Self>,
        at: &mut At<'_, '_, Self>,
    ) {
        let Some((source, target)) = self.fds(dir, at.state) else { return };
        for (name, _) in names {
            let (one, two) = (((*source).as_fd(), name), ((*target).as_fd(), name));
            match side {
                SOURCE => self.name(dir, one, two, at),
                _ => self.extra(dir, one, two, at.state),
            }
        }
    }

    fn list_failed(
        &self,
        dir: &Arc<Node>,
        side: usize,
        error: io::Error,
        at: &mut At<'_, '_, Self>,
    ) {
        let side = if side == SOURCE { Side::Source } else { Side::Target };
        let failure = Failure { side, operation: Operation::List, error };
        self.fail(Some(dir), c"", failure, at.state);
    }

    fn close(&self, _: &Arc<Node>, _: &mut At<'_, '_, Self>) -> Closed {
        Closed::Done
    }

    fn task(&self, task: Task, at: &mut At<'_, '_, Self>) {
        match task {
            Task::Tops => self.tops(at),
            Task::Share(big) => self.share(&big, at),
            Task::Listed(names) => self.listed(&names, at),
        }
    }
}

impl<'a> Comparison<'a> {
    fn new(
        spec: &'a Spec,
        controls: &Controls,
        report: Report<'a>,
        listener: &'a dyn Listener,
    ) -> Comparison<'a> {
        Comparison {
            tops: None,
            open: Mutex::default(),
            roots: None,
            spec,
            report,
            listener,
            hasher: RandomState::new(),
            jobs_max: controls.gate.jobs_max(),
            comparer: Comparer {
                aspects: spec.aspects,
                times: spec.times,
                links: Mutex::default(),
                limit: controls.bytes.clone(),
            },
        }
    }
}

impl Comparison<'_> {
    /// Runs the walk.
    fn carry_out(
        &self,
        controls: &Controls,
        trees: Option<(CString, Both)>,
        tasks: impl IntoIterator<Item = Task>,
    ) -> Counts {
        self.listener.event(Event::Begins(&controls.meter));
        let mut counts = Counts::default();
        for state in walk(self, controls, trees, tasks) {
            counts.add(&state.counts);
        }
        counts
    }

    fn tops(&self, at: &mut At<'_, '_, Self>) {
        let Some(((source, a), (target, b))) = &self.tops else { return };
        let (one, two) = ((dir::cwd(), &**source), (dir::cwd(), &**target));
        self.both(None, c"", (one, a), (two, b), at);
        if a.kind != Kind::Dir {
            at.count_name();
        }
    }

    /// Returns the filter rules of a directory below `parent`.
    fn rules_in(
        &self,
        parent: &Node,
        source: &Arc<Handle>,
        name: &CStr,
    ) -> Result<Option<Arc<DirRules>>, Failure> {
        let (Some(filter), Some(above)) = (&self.spec.filter, parent.data.rules.get()) else {
            return Ok(None);
        };
        let failed = |error| Failure { side: Side::Source, operation: Operation::Filter, error };
        let fd = source.fd().map_err(failed)?;
        let inside = rules::enter(filter, above, &parent.path_below(name), (*fd).as_fd());
        inside.map(Some).map_err(|error| failed(io::Error::other(error.to_string())))
    }

    /// Returns the decision of the filter about a name.
    fn decide(&self, node: &Node, name: &CStr, kind: Kind) -> Decision {
        match (&self.spec.filter, node.data.rules.get()) {
            (Some(filter), Some(rules)) => {
                filter.check(rules, &node.path_below(name), kind == Kind::Dir, false)
            }
            _ => Decision::default(),
        }
    }

    /// Returns the open directories of a node; reports the error if they cannot be opened.
    fn fds(&self, node: &Arc<Node>, state: &mut State) -> Option<(Arc<OwnedFd>, Arc<OwnedFd>)> {
        let failed = |side| move |error| Failure { side, operation: Operation::List, error };
        let fds = node
            .fd(SOURCE)
            .map_err(failed(Side::Source))
            .and_then(|source| Ok((source, node.fd(TARGET).map_err(failed(Side::Target))?)));
        fds.map_err(|failure| self.fail(Some(node), c"", failure, state)).ok()
    }

    fn name(
        &self,
        node: &Arc<Node>,
        source: Name<'_>,
        target: Name<'_>,
        at: &mut At<'_, '_, Self>,
    ) {
        let (name, state) = (source.1, &mut *at.state);
        at.doing.turn(Phase::Look);
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
                let path = node.path_below(name);
                return self.only(&path, Finding::Missing, (Some(&a), None), state);
            }
            Err(error) => return self.fail(Some(node), name, failed(Side::Target)(error), state),
        };
        self.both(Some(node), name, (source, &a), (target, &b), at);
        if a.kind == Kind::Dir && b.kind == Kind::Dir {
            at.enter(node, name.to_owned(), Both::default());
        }
    }

    /// Compares an entry that both sides have: a name of `node`, or a name from a list.
    fn both(
        &self,
        node: Option<&Arc<Node>>,
        name: &CStr,
        (source, a): (Name<'_>, &Meta),
        (target, b): (Name<'_>, &Meta),
        at: &mut At<'_, '_, Self>,
    ) {
        let scratch = &mut at.state.scratch;
        let found = self.comparer.compare((source, a), (target, b), scratch, at.doing);
        let (node, name) = (node.cloned(), name.to_owned());
        self.settle(Pending { node, name, a: *a, b: *b, found }, at);
    }

    /// Reports a target name that the source lacks.
    fn extra(&self, node: &Node, source: Name<'_>, target: Name<'_>, state: &mut State) {
        let name = target.1;
        match meta::of(source.0, name, false) {
            Err(error) if errno::is(&error, errno::ENOENT) => {}
            // It exists, or the same error is reported where the source is listed.
            _ => return,
        }
        // A name that vanished from the target as well is not a difference.
        let Ok(extra) = meta::of(target.0, name, false) else { return };
        let decision = self.decide(node, name, extra.kind);
        if decision.hide || decision.protect {
            return;
        }
        self.only(&node.path_below(name), Finding::Extra, (None, Some(&extra)), state);
    }

    /// Counts and reports an entry that one side lacks.
    fn only(
        &self,
        path: &[u8],
        finding: Finding,
        (source, target): (Option<&Meta>, Option<&Meta>),
        state: &mut State,
    ) {
        self.report(Difference { path, finding, source, target, offset: None }, state);
    }

    /// Counts and reports a pair, after comparing the contents of a large file.
    fn settle(&self, mut entry: Pending, at: &mut At<'_, '_, Self>) {
        let Some(fds) = entry.found.big.take() else { return self.report_pair(entry, at.state) };
        let big = Arc::new(Big {
            sparse: entry.a.may_have_holes() && entry.b.may_have_holes(),
            size: entry.a.size,
            work: Mutex::new(BigWork { fds: Some(Arc::new(fds)), active: 0, pending: Some(entry) }),
            next: AtomicU64::new(0),
            first: AtomicU64::new(u64::MAX),
        });
        let shares = usize::try_from(big.size / SHARE_BYTES).unwrap_or(usize::MAX);
        for _ in 1..self.jobs_max.min(shares) {
            at.push(Task::Share(Arc::clone(&big)));
        }
        // Not queued: waiting files would be open all the time.
        self.share(&big, at);
    }

    fn report_pair(&self, entry: Pending, state: &mut State) {
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
            let path = match &entry.node {
                Some(node) => node.path_below(&entry.name),
                None => entry.name.to_bytes().to_vec(),
            };
            let (source, target) = (Some(&entry.a), Some(&entry.b));
            let (finding, offset) = (Finding::Differs(set), entry.found.offset);
            self.report(Difference { path: &path, finding, source, target, offset }, state);
        }
    }

    /// Works on a large file as long as there are shares of it.
    fn share(&self, big: &Arc<Big>, at: &mut At<'_, '_, Self>) {
        let fds = {
            let mut work = big.work.lock();
            let Some(fds) = work.fds.clone() else { return };
            work.active += 1;
            fds
        };
        at.doing.turn(Phase::Read);
        loop {
            if self.is_stopped() {
                big.next.store(big.size, Ordering::Relaxed);
            }
            if at.is_shut_out() && big.leave_to_others() {
                return at.push(Task::Share(Arc::clone(big)));
            }
            let from = big.next.fetch_add(SHARE_BYTES, Ordering::Relaxed);
            if from >= big.size.min(big.first.load(Ordering::Relaxed)) {
                break;
            }
            let to = big.size.min(from + SHARE_BYTES);
            let (state, progress) = (&mut *at.state, (at.doing, self.comparer.limit.as_deref()));
            let ends = (fds.0.as_fd(), fds.1.as_fd());
            let buffers = &mut state.scratch.buffers;
            match buffers.first_difference(ends, (from, to), big.sparse, progress) {
                Ok(None) => state.counts.bytes += to - from,
                Ok(Some(offset)) => {
                    state.counts.bytes += offset - from;
                    big.first.fetch_min(offset, Ordering::Relaxed);
                }
                Err((side, error)) => {
                    big.next.store(big.size, Ordering::Relaxed);
                    if let Some(entry) = big.work.lock().pending.as_mut() {
                        let failure = Failure { side, operation: Operation::Read, error };
                        entry.found.failures.push(failure);
                    }
                }
            }
        }
        drop(fds);
        let mut work = big.work.lock();
        work.active -= 1;
        if work.active > 0 {
            return;
        }
        // Every share is taken before a worker leaves, and none is in progress: everything is compared.
        work.fds = None;
        let pending = work.pending.take();
        drop(work);
        if let Some(mut entry) = pending {
            let first = big.first.load(Ordering::Relaxed);
            if first != u64::MAX {
                entry.found.offset = Some(first);
                entry.found.set = entry.found.set.with(Aspect::Content);
            }
            self.report_pair(entry, at.state);
        }
    }

    fn report(&self, difference: Difference<'_>, state: &mut State) {
        state.counts.note(difference.finding);
        (self.report)(&difference);
    }

    fn fail(&self, node: Option<&Arc<Node>>, name: &CStr, failure: Failure, state: &mut State) {
        state.counts.failed += 1;
        let root = match failure.side {
            Side::Source => &self.spec.source,
            Side::Target => &self.spec.target,
        };
        let path = Some(match node {
            Some(node) => shown(root, &node.path_below(name)),
            None => shown(root, name.to_bytes()),
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

/// Returns a path, starting as the user typed it.
fn shown(root: &Path, below: &[u8]) -> PathBuf {
    let end = below.strip_suffix(b"/").unwrap_or(below);
    if end.is_empty() { root.to_path_buf() } else { root.join(OsStr::from_bytes(end)) }
}
