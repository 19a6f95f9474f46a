//! Compares two trees: the walk's first side is the source, the second the target. Large files are compared by
//! several workers, a share at a time.

use self::AttributePair as Attributes;
use super::aspects::{
    Aspect, Aspects, Difference, Finding, Times, VerifyCounts, VerifySpec, differences,
};
use super::objects as rules;
use crate::location::Side;
use crate::policy::Preserve;
use crate::policy::filter::{Decision, DirRules};
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, ErrorClass, Fatal, Operation, Problem, cannot};
use hakobu_core::event::{Event, Listener};
use hakobu_core::limit::{Controls, Limiter};
use hakobu_core::meter::{Activity, Phase};
use hakobu_core::unit::{Kind, Meta};
use hakobu_remote::message::Xattr;
use hakobu_sys::xattr::{self, Named};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, file, meta, process};
use hakobu_tree::compare::{Buffers, same_holes};
use hakobu_tree::handle::{DirectoryHandle, HandleBudget};
use hakobu_tree::walk::{CloseOutcome, Dir, Visit, VisitContext, VisitNames, walk};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap, HashSet};
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
    spec: &VerifySpec,
    controls: &Controls,
    report: Report<'_>,
    listener: &dyn Listener,
) -> Result<VerifyCounts, Fatal> {
    let budget = HandleBudget::new(spec.open_dirs_max);
    let mut comparison = Comparison::new(spec, controls, report, listener);
    let (source, target) = (top(&spec.source)?, top(&spec.target)?);
    let mut trees = None;
    if (source.1.kind, target.1.kind) == (Kind::Dir, Kind::Dir) {
        let open = |path: &CStr, shown: &Path| {
            DirectoryHandle::top(&budget, path, false).map_err(|error| fatal("list", shown, error))
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

pub(super) fn fatal(verb: &str, path: &Path, error: io::Error) -> Fatal {
    Fatal::new(2, cannot(verb, path, error))
}

/// Examines an argument.
pub(super) fn top(path: &Path) -> Result<Top, Fatal> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| fatal("access", path, io::Error::from_raw_os_error(errno::EINVAL)))?;
    let meta = meta::of(dir::cwd(), &name, false).map_err(|error| fatal("access", path, error))?;
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
    found: PairFindings,
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
    scratch: CompareBuffers,
    counts: VerifyCounts,
}

/// An argument and its metadata.
pub(super) type Top = (CString, Meta);

/// The two trees of a list of names, open.
struct Roots<'a> {
    source: OwnedFd,
    target: OwnedFd,
    control: &'a Control,
}

struct Comparison<'a> {
    tops: Option<(Top, Top)>,
    /// The tops, opened.
    open: Mutex<Option<Vec<Arc<DirectoryHandle>>>>,
    /// The trees, where names from a list are compared.
    roots: Option<Roots<'a>>,
    spec: &'a VerifySpec,
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

    fn open(
        &self,
        dir: &Arc<Node>,
        at: &mut VisitContext<'_, '_, Self>,
    ) -> Option<Vec<Arc<DirectoryHandle>>> {
        let Some(parent) = &dir.parent else { return self.open.lock().take() };
        let failed = |side| move |error| AspectFailure { side, operation: Operation::List, error };
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
        names: VisitNames<'_, '_, Self>,
        at: &mut VisitContext<'_, '_, Self>,
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
        at: &mut VisitContext<'_, '_, Self>,
    ) {
        let side = if side == SOURCE { Side::Source } else { Side::Target };
        let failure = AspectFailure { side, operation: Operation::List, error };
        self.fail(Some(dir), c"", failure, at.state);
    }

    fn close(&self, _: &Arc<Node>, _: &mut VisitContext<'_, '_, Self>) -> CloseOutcome {
        CloseOutcome::Done
    }

    fn task(&self, task: Task, at: &mut VisitContext<'_, '_, Self>) {
        match task {
            Task::Tops => self.tops(at),
            Task::Share(big) => self.share(&big, at),
            Task::Listed(names) => self.listed(&names, at),
        }
    }
}

impl<'a> Comparison<'a> {
    fn new(
        spec: &'a VerifySpec,
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
    ) -> VerifyCounts {
        self.listener.event(Event::Begins(&controls.meter));
        let mut counts = VerifyCounts::default();
        for state in walk(self, controls, trees, tasks) {
            counts.add(&state.counts);
        }
        counts
    }

    fn tops(&self, at: &mut VisitContext<'_, '_, Self>) {
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
        source: &Arc<DirectoryHandle>,
        name: &CStr,
    ) -> Result<Option<Arc<DirRules>>, AspectFailure> {
        let (Some(filter), Some(above)) = (&self.spec.filter, parent.data.rules.get()) else {
            return Ok(None);
        };
        let failed =
            |error| AspectFailure { side: Side::Source, operation: Operation::Filter, error };
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
        let failed = |side| move |error| AspectFailure { side, operation: Operation::List, error };
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
        at: &mut VisitContext<'_, '_, Self>,
    ) {
        let (name, state) = (source.1, &mut *at.state);
        at.doing.turn(Phase::Look);
        let failed = |side| move |error| AspectFailure { side, operation: Operation::Stat, error };
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
        at: &mut VisitContext<'_, '_, Self>,
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
    fn settle(&self, mut entry: Pending, at: &mut VisitContext<'_, '_, Self>) {
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
    fn share(&self, big: &Arc<Big>, at: &mut VisitContext<'_, '_, Self>) {
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
                        let failure = AspectFailure { side, operation: Operation::Read, error };
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

    fn fail(
        &self,
        node: Option<&Arc<Node>>,
        name: &CStr,
        failure: AspectFailure,
        state: &mut State,
    ) {
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
        let problem = Problem {
            operation: failure.operation,
            source,
            target,
            cause,
            class: ErrorClass::Partial,
        };
        self.listener.event(Event::Problem(&problem));
    }
}

/// Returns a path, starting as the user typed it.
pub(super) fn shown(root: &Path, below: &[u8]) -> PathBuf {
    let end = below.strip_suffix(b"/").unwrap_or(below);
    if end.is_empty() { root.to_path_buf() } else { root.join(OsStr::from_bytes(end)) }
}

// Names from a list instead of listings: each is looked up below both trees, through no symlink.

/// Names that a worker takes at a time.
const NAMES: usize = 64;

/// The folder of a name on both sides; stays open for the next one, as names of a list lie together.
struct Folder {
    above: Vec<u8>,
    source: OwnedFd,
    target: Option<OwnedFd>,
}

/// Compares the names of a list. A name that the source lacks is not a difference. When `control` stops
/// the run, the rest is not compared.
pub(in crate::verify) fn run_named(
    spec: &VerifySpec,
    names: &[Vec<u8>],
    control: &Control,
    controls: &Controls,
    report: Report<'_>,
    listener: &dyn Listener,
) -> Result<VerifyCounts, Fatal> {
    let open = |path: &Path| {
        let text = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from);
        text.and_then(|text| dir::open_root(&text)).map_err(|error| fatal("list", path, error))
    };
    let (source, target) = (open(&spec.source)?, open(&spec.target)?);
    let mut comparison = Comparison::new(spec, controls, report, listener);
    comparison.roots = Some(Roots { source, target, control });
    let text = |name: &Vec<u8>| CString::new(name.as_slice());
    let names: Result<Vec<CString>, _> = names.iter().map(text).collect();
    let names = names.map_err(|_| Fatal::new(2, "a name holds a zero byte"))?;
    let tasks = names.chunks(NAMES).map(|some| Task::Listed(some.to_vec()));
    Ok(comparison.carry_out(controls, None, tasks))
}

/// Returns whether an error means that the name does not exist.
fn is_gone(error: &io::Error) -> bool {
    errno::is(error, errno::ENOENT) || errno::is(error, errno::ENOTDIR)
}

/// The result of a look; `None` where there is nothing.
fn there<T>(looked: io::Result<T>, side: Side) -> Result<Option<T>, AspectFailure> {
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(AspectFailure { side, operation: Operation::Stat, error }),
    }
}

fn enter(root: BorrowedFd<'_>, above: &[u8]) -> io::Result<OwnedFd> {
    match above {
        b"" => dir::open(root, c".", false),
        above => dir::open_below(root, &CString::new(above)?),
    }
}

impl Comparison<'_> {
    /// Returns whether the run is to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.roots.as_ref().is_some_and(|roots| roots.control.is_stopped())
    }

    pub(super) fn listed(&self, names: &[CString], at: &mut VisitContext<'_, '_, Self>) {
        let mut folder = None;
        for name in names {
            if self.is_stopped() {
                return;
            }
            at.doing.turn(Phase::Look);
            if let Err(failure) = self.one(name, &mut folder, at) {
                self.fail(None, name, failure, at.state);
            }
            at.count_name();
        }
    }

    fn one(
        &self,
        path: &CString,
        folder: &mut Option<Folder>,
        at: &mut VisitContext<'_, '_, Self>,
    ) -> Result<(), AspectFailure> {
        let Some(roots) = &self.roots else { return Ok(()) };
        // A directory of a list may end with a slash.
        let bytes = path.to_bytes();
        let bytes = bytes.strip_suffix(b"/").unwrap_or(bytes);
        let cut = bytes.iter().rposition(|byte| *byte == b'/');
        let above = bytes.get(..cut.unwrap_or(0)).unwrap_or_default();
        let last = bytes.get(cut.map_or(0, |at| at + 1)..).unwrap_or_default();
        let Ok(name) = CString::new(last) else { return Ok(()) };
        if folder.as_ref().is_none_or(|known| known.above != above) {
            let source = there(enter(roots.source.as_fd(), above), Side::Source)?;
            let Some(source) = source else { return Ok(()) };
            let target = there(enter(roots.target.as_fd(), above), Side::Target)?;
            *folder = Some(Folder { above: above.to_vec(), source, target });
        }
        let Some(Folder { source, target, .. }) = folder else { return Ok(()) };
        let a = there(meta::of(source.as_fd(), &name, false), Side::Source)?;
        let Some(a) = a else { return Ok(()) };
        let b = match target {
            Some(target) => there(meta::of(target.as_fd(), &name, false), Side::Target)?,
            None => None,
        };
        let (Some(b), Some(target)) = (b, target) else {
            self.only(bytes, Finding::Missing, (Some(&a), None), at.state);
            return Ok(());
        };
        let (one, two) = ((source.as_fd(), &*name), (target.as_fd(), &*name));
        self.both(None, path, (one, &a), (two, &b), at);
        Ok(())
    }
}

// Compares one name on both sides in every requested aspect.

/// Minimum size, in bytes, of files that several workers compare.
const BIG_BYTES_MIN: u64 = 64 << 20;

/// A name in an open directory.
pub type Name<'a> = (BorrowedFd<'a>, &'a CStr);

/// An aspect that could not be compared.
pub struct AspectFailure {
    pub side: Side,
    pub operation: Operation,
    /// The cause.
    pub error: io::Error,
}

impl AspectFailure {
    fn of(operation: Operation) -> impl Fn((Side, io::Error)) -> AspectFailure {
        move |(side, error)| AspectFailure { side, operation, error }
    }
}

/// The rules of a comparison, shared by all workers.
pub struct Comparer {
    pub aspects: Aspects,
    pub times: Times,
    pub links: Mutex<OpenLinkGroups>,
    /// Bytes of content a second.
    pub limit: Option<Arc<Limiter>>,
}

/// Buffers of one worker.
#[derive(Default)]
pub struct CompareBuffers {
    pub buffers: Buffers,
    attributes: AttributeBuffers,
}

/// The findings about a pair.
#[derive(Default)]
pub struct PairFindings {
    /// Aspects in which they differ.
    pub set: Aspects,
    /// Offset of the first difference in their contents.
    pub offset: Option<u64>,
    /// Bytes compared.
    pub bytes: u64,
    /// Failures of the comparison.
    pub failures: Vec<AspectFailure>,
    /// The open files, if their contents remain to be compared by several workers.
    pub big: Option<(OwnedFd, OwnedFd)>,
}

impl Comparer {
    /// Compares two entries whose metadata is known.
    pub fn compare(
        &self,
        (source, a): (Name<'_>, &Meta),
        (target, b): (Name<'_>, &Meta),
        scratch: &mut CompareBuffers,
        doing: &Activity,
    ) -> PairFindings {
        let mut found = PairFindings {
            set: differences(a, b, self.aspects, self.times),
            ..PairFindings::default()
        };
        if found.set.has(Aspect::Type) {
            return found;
        }
        let same_file = a.identity() == b.identity();
        let done = match a.kind {
            Kind::File if !same_file => {
                self.file((source, a), (target, b), (scratch, doing), &mut found)
            }
            Kind::Symlink if self.aspects.has(Aspect::Link) => link(source, target, &mut found),
            _ => Ok(()),
        };
        found.failures.extend(done.err());
        if same_file && self.aspects.has(Aspect::Content) && a.kind == Kind::File {
            found.bytes = a.size;
        }
        if self.aspects.has(Aspect::HardLinks)
            && a.kind != Kind::Dir
            && (a.nlink > 1 || b.nlink > 1)
        {
            let (a, b) = ((a.identity(), a.nlink), (b.identity(), b.nlink));
            if !self.links.lock().agrees(a, b) {
                found.set = found.set.with(Aspect::HardLinks);
            }
        }
        if !same_file {
            let done = self.attributes(source, target, a.kind, scratch, &mut found);
            found.failures.extend(done.err());
        }
        found
    }

    fn file(
        &self,
        (source, a): (Name<'_>, &Meta),
        (target, b): (Name<'_>, &Meta),
        (scratch, doing): (&mut CompareBuffers, &Activity),
        found: &mut PairFindings,
    ) -> Result<(), AspectFailure> {
        let (content, holes) = (self.aspects.has(Aspect::Content), self.aspects.has(Aspect::Holes));
        if a.size != b.size {
            if content && !self.aspects.has(Aspect::Size) {
                found.set = found.set.with(Aspect::Content);
            }
            return Ok(());
        }
        if a.size == 0 || !(content || holes) {
            return Ok(());
        }
        let read = AspectFailure::of(Operation::Read);
        let open = |(dir, name): Name<'_>, side| {
            file::open_read(dir, name, false).map_err(|error| read((side, error)))
        };
        let fds = (open(source, Side::Source)?, open(target, Side::Target)?);
        let (one, two) = (fds.0.as_fd(), fds.1.as_fd());
        if holes && !same_holes(one, two, a.size).map_err(&read)? {
            found.set = found.set.with(Aspect::Holes);
        }
        if !content {
            return Ok(());
        }
        if a.size >= BIG_BYTES_MIN {
            found.big = Some(fds);
            return Ok(());
        }
        let sparse = a.may_have_holes() && b.may_have_holes();
        let _reading = doing.during(Phase::Read);
        let progress = (doing, self.limit.as_deref());
        let first = scratch.buffers.first_difference((one, two), (0, a.size), sparse, progress);
        found.offset = first.map_err(&read)?;
        found.bytes = found.offset.unwrap_or(a.size);
        if found.offset.is_some() {
            found.set = found.set.with(Aspect::Content);
        }
        Ok(())
    }

    fn attributes(
        &self,
        source: Name<'_>,
        target: Name<'_>,
        kind: Kind,
        scratch: &mut CompareBuffers,
        found: &mut PairFindings,
    ) -> Result<(), AspectFailure> {
        let acl = self.aspects.has(Aspect::Acl) && kind != Kind::Symlink;
        let xattrs = self.aspects.has(Aspect::Xattrs);
        if !acl && !xattrs {
            return Ok(());
        }
        let failed = AspectFailure::of(Operation::Compare);
        let pair = Attributes::open(source, target).map_err(&failed)?;
        let scratch = &mut scratch.attributes;
        if acl && !pair.same_acl(kind == Kind::Dir, scratch).map_err(&failed)? {
            found.set = found.set.with(Aspect::Acl);
        }
        if xattrs && !pair.same_xattrs(scratch).map_err(&failed)? {
            found.set = found.set.with(Aspect::Xattrs);
        }
        Ok(())
    }
}

fn link(source: Name<'_>, target: Name<'_>, found: &mut PairFindings) -> Result<(), AspectFailure> {
    let read = |(dir, name): Name<'_>, side| {
        dir::read_link(dir, name).map_err(|error| AspectFailure::of(Operation::Read)((side, error)))
    };
    if read(source, Side::Source)? != read(target, Side::Target)? {
        found.set = found.set.with(Aspect::Link);
    }
    Ok(())
}

// Compares extended attributes and ACLs of two entries by `O_PATH` descriptors, so that it works for symlinks, nodes
// and files without read permission.

/// A worker's buffers for values.
#[derive(Default)]
pub struct AttributeBuffers {
    source: Vec<u8>,
    target: Vec<u8>,
}

/// Two entries whose attributes are compared.
pub struct AttributePair<'a> {
    source: Named<'a>,
    target: Named<'a>,
}

type Failed = (Side, io::Error);

impl<'a> AttributePair<'a> {
    /// Takes both entries.
    ///
    /// # Errors
    /// The side that cannot be used, and the reason.
    pub fn open(
        source: (BorrowedFd<'a>, &'a CStr),
        target: (BorrowedFd<'a>, &'a CStr),
    ) -> Result<AttributePair<'a>, Failed> {
        let source = Named::new(source.0, source.1).map_err(|error| (Side::Source, error))?;
        let target = Named::new(target.0, target.1).map_err(|error| (Side::Target, error))?;
        Ok(AttributePair { source, target })
    }

    /// Returns whether both have the same value of one attribute, or neither has it.
    fn same(&self, name: &CStr, scratch: &mut AttributeBuffers) -> Result<bool, Failed> {
        let a = value(&self.source, name, &mut scratch.source).map_err(|e| (Side::Source, e))?;
        let b = value(&self.target, name, &mut scratch.target).map_err(|e| (Side::Target, e))?;
        Ok(a == b)
    }

    /// Returns whether the access ACLs, of directories also the default ACLs, are equal.
    ///
    /// # Errors
    /// The side that could not be read, and the reason.
    pub fn same_acl(&self, is_dir: bool, scratch: &mut AttributeBuffers) -> Result<bool, Failed> {
        Ok(self.same(xattr::ACL_ACCESS, scratch)?
            && (!is_dir || self.same(xattr::ACL_DEFAULT, scratch)?))
    }

    /// Returns whether all other attributes are equal.
    ///
    /// # Errors
    /// The side that could not be read, and the reason.
    pub fn same_xattrs(&self, scratch: &mut AttributeBuffers) -> Result<bool, Failed> {
        // The attributes that a copy by this user would keep; ACLs are compared separately.
        let kept = Preserve { xattrs: true, ..Preserve::default() };
        let is_root = process::euid() == 0;
        let names = |named: &Named<'_>, buffer: &mut Vec<u8>| -> io::Result<BTreeSet<CString>> {
            let list = match named.list(buffer) {
                Err(error) if xattr::is_unsupported(&error) => return Ok(BTreeSet::new()),
                list => list?,
            };
            let names = list.split(|&byte| byte == 0).filter(|name| !name.is_empty());
            let names = names.filter(|name| kept.keeps_xattr(name, is_root));
            Ok(names.filter_map(|name| CString::new(name).ok()).collect())
        };
        let a = names(&self.source, &mut scratch.source).map_err(|e| (Side::Source, e))?;
        let b = names(&self.target, &mut scratch.target).map_err(|e| (Side::Target, e))?;
        if a != b {
            return Ok(false);
        }
        for name in &a {
            if !self.same(name, scratch)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Compares the attributes of an entry with those that another machine has told of, ACLs and the others as far as they are
/// wanted. Returns whether the ACLs, and whether the other attributes are equal.
///
/// # Errors
/// The entry's cannot be read.
pub(super) fn own_attributes(
    (dir, name): Name<'_>,
    (acls, xattrs): (bool, bool),
    told: &[Xattr],
    scratch: &mut AttributeBuffers,
) -> io::Result<(bool, bool)> {
    let kept = Preserve { acls, xattrs, ..Preserve::default() };
    let is_root = process::euid() == 0;
    let named = Named::new(dir, name)?;
    let list = match named.list(&mut scratch.source) {
        Err(error) if xattr::is_unsupported(&error) => &[],
        list => list?,
    };
    let mut own: BTreeSet<Xattr> = BTreeSet::new();
    for name in list.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let text = CString::new(name).unwrap_or_default();
        if kept.keeps_xattr(name, is_root)
            && let Some(value) = value(&named, &text, &mut scratch.target)?
        {
            own.insert((name.to_vec(), value.to_vec()));
        }
    }
    let told = told.iter().filter(|(name, _)| kept.keeps_xattr(name, is_root)).cloned();
    let told: BTreeSet<Xattr> = told.collect();
    let is_acl = |(name, _): &&Xattr| name.starts_with(b"system.posix_acl_");
    let same = |acl: bool| {
        own.iter().filter(|one| is_acl(one) == acl).eq(told.iter().filter(|one| is_acl(one) == acl))
    };
    Ok((same(true), same(false)))
}

fn value<'a>(
    named: &Named<'_>,
    name: &CStr,
    buffer: &'a mut Vec<u8>,
) -> io::Result<Option<&'a [u8]>> {
    match named.get(name, buffer) {
        Ok(value) => Ok(Some(value)),
        Err(error) if xattr::is_absent(&error) || xattr::is_unsupported(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

// Hard-link groups: checks that names of one file on one side are names of one file on the other.

/// Device and inode.
type Identity = (u64, u64);

/// The incomplete groups: a pair of source and target file is stored from its first name until all of its names were
/// seen. Groups with names outside the trees stay until the end.
#[derive(Default)]
pub struct OpenLinkGroups {
    by_source: HashMap<Identity, (Identity, u64)>,
    by_target: HashMap<Identity, (Identity, u64)>,
}

impl OpenLinkGroups {
    /// Records a name that is `source` (with its number of links) on one side and `target` on the other; returns
    /// whether that agrees with earlier names.
    pub fn agrees(&mut self, source: (Identity, u64), target: (Identity, u64)) -> bool {
        // Record both, whatever the first result is.
        let forth = note(&mut self.by_source, source, target.0);
        let back = note(&mut self.by_target, target, source.0);
        forth && back
    }
}

fn note(
    map: &mut HashMap<Identity, (Identity, u64)>,
    (from, links): (Identity, u64),
    to: Identity,
) -> bool {
    if links < 2 {
        return true;
    }
    let (partner, left) = map.entry(from).or_insert((to, links));
    let same = *partner == to;
    *left -= 1;
    if *left == 0 {
        map.remove(&from);
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> Identity {
        (1, n)
    }

    #[test]
    fn the_same_grouping_agrees_and_is_forgotten_when_complete() {
        let mut groups = OpenLinkGroups::default();
        for _ in 0..3 {
            assert!(groups.agrees((id(1), 3), (id(11), 3)));
            assert!(groups.agrees((id(2), 3), (id(12), 3)));
        }
        assert!(groups.by_source.is_empty() && groups.by_target.is_empty());
    }

    #[test]
    fn split_and_joined_groups_do_not_agree() {
        let mut groups = OpenLinkGroups::default();
        assert!(groups.agrees((id(1), 2), (id(11), 1)));
        assert!(!groups.agrees((id(1), 2), (id(12), 1)));
        assert!(groups.agrees((id(3), 1), (id(13), 2)));
        assert!(!groups.agrees((id(4), 1), (id(13), 2)));
    }

    #[test]
    fn names_outside_the_trees_do_no_harm() {
        let mut groups = OpenLinkGroups::default();
        assert!(groups.agrees((id(1), 5), (id(11), 2)));
        assert!(groups.agrees((id(1), 5), (id(11), 2)));
        assert!(groups.agrees((id(2), 1), (id(12), 7)));
    }
}
