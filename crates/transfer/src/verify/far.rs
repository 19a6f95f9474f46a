//! Compares a tree of this machine with one that the agent of another machine announces: what `paths` does with two trees here.
//! The agent sends the metadata of all entries, and the hashes of files whose contents are to be compared; both ends read
//! such files at the same time.
//!
//! The reader never waits and writes nothing. Workers wait while the other end has enough files to read.

use super::aspects::{Aspect, Aspects, Difference, Finding, VerifyCounts, VerifySpec, differences};
use super::objects as rules;
use super::paths::{AttributeBuffers, OpenLinkGroups, Top, own_attributes, shown, top};
use crate::far::{Bye, ENTRIES_MAX, MESSAGE_BYTES, lost, told};
use crate::local::{FarOwners, HASH_BYTES, hash_of_file};
use crate::location::Side;
use crate::policy::IdMap;
use crate::policy::filter::{Decision, DirRules};
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, ErrorClass, Fatal, Operation, Problem};
use hakobu_core::event::{Event, Listener};
use hakobu_core::limit::Controls;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_remote::link::{Incoming, LinkError, Outgoing};
use hakobu_remote::message::{
    CHUNK_ENTRIES_MAX, ContentState, DirRecord, EntryRecord, Message, ProtocolError,
};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, file, meta};
use hakobu_tree::handle::{DirectoryHandle, HandleBudget};
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{CStr, CString};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Files whose contents are compared and of which a hash is missing; workers wait beyond it.
const PENDING_MAX: usize = 4096;
/// Directories that may be announced and not ended: far more than a walk has open.
const DIRS_MAX: usize = 1 << 20;
/// Time between two looks at the end of a run.
const LOOK: Duration = Duration::from_millis(50);

/// The side of a comparison that is on another machine, and its name.
#[derive(Clone, Debug)]
pub struct FarSide {
    pub side: Side,
    pub host: String,
}

/// A comparison with the tree of another machine.
pub struct FarComparison<'a> {
    spec: &'a VerifySpec,
    far: FarSide,
    controls: &'a Controls,
    report: &'a (dyn Fn(&Difference<'_>) + Sync),
    listener: &'a dyn Listener,
    control: Control,
    out: Outgoing,
    /// The argument that is here; its handle if it is a directory.
    near: Top,
    handle: Option<Arc<DirectoryHandle>>,
    rules: Option<Arc<DirRules>>,
    /// Names are remembered by their hashes.
    seed: u64,
    inbox: Mutex<FarInbox>,
    arrived: Condvar,
    pending: Mutex<HashMap<FarFileNumber, PendingFile>>,
    settled: Condvar,
    links: Mutex<OpenLinkGroups>,
    /// Entries that were not answered.
    entries: AtomicUsize,
    /// Numbers for files without other names, which the other end does not identify.
    singles: AtomicU64,
}

/// Number of a chunk, and of an entry in it.
type FarFileNumber = (u64, u8);

#[derive(Default)]
struct FarInbox {
    jobs: VecDeque<FarJob>,
    active: usize,
    is_over: bool,
    lost: Option<LinkError>,
    bye: Option<Bye>,
    /// Files that the other end cannot read, as it said instead of their hashes.
    unread: u64,
}

enum FarJob {
    Dir(Arc<FarNode>),
    Entries(Arc<FarNode>, u64, Vec<EntryRecord>),
    /// All below the directory was announced; whether it was listed to its end.
    End(Arc<FarNode>, bool),
    /// The hash of a file has come.
    Settle(FarFileNumber),
}

/// A directory that was announced.
struct FarNode {
    parent: Option<Arc<FarNode>>,
    name: CString,
    /// Below the trees.
    path: Vec<u8>,
    record: EntryRecord,
    /// It is the argument or below it, not a folder that contains the argument.
    is_tree: bool,
    /// The same directory here; `None` if there is none, or it is not compared.
    here: OnceLock<Option<Arc<DirectoryHandle>>>,
    /// Hashes of the names that were announced.
    names: Mutex<HashSet<u128>>,
}

impl FarNode {
    fn path_below(&self, name: &[u8]) -> Vec<u8> {
        let slash: &[u8] = if self.path.is_empty() || name.is_empty() { b"" } else { b"/" };
        [&self.path, slash, name].concat()
    }
}

/// A file whose contents are compared.
struct PendingFile {
    path: Vec<u8>,
    source: Meta,
    target: Meta,
    set: Aspects,
    here: Option<FileHash>,
    there: Option<FileHash>,
}

/// What is known of the contents of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileHash {
    Is(u128),
    /// It became another one while it was read.
    Changed,
    /// It cannot be read, which was reported.
    Failed,
}

/// What the reader knows of the other end.
struct Heard {
    /// Directories that were not announced to their end.
    dirs: HashMap<u64, Arc<FarNode>>,
    has_argument: bool,
    /// As a transfer keeps them: by name.
    owners: FarOwners,
}

/// What a worker has counted.
#[derive(Default)]
struct FarWorker {
    counts: VerifyCounts,
    attributes: AttributeBuffers,
    reader: dir::Reader,
}

impl<'a> FarComparison<'a> {
    /// Examines the argument that is here.
    ///
    /// # Errors
    /// It cannot be examined or opened.
    pub fn new(
        spec: &'a VerifySpec,
        far: FarSide,
        controls: &'a Controls,
        report: &'a (dyn Fn(&Difference<'_>) + Sync),
        listener: &'a dyn Listener,
    ) -> Result<FarComparison<'a>, Fatal> {
        let path = match far.side {
            Side::Source => &spec.target,
            Side::Target => &spec.source,
        };
        let near = top(path)?;
        let (mut handle, mut rules) = (None, None);
        if near.1.kind == Kind::Dir {
            let budget = HandleBudget::new(spec.open_dirs_max);
            let cannot = |error| super::paths::fatal("list", path, error);
            let (opened, _) = DirectoryHandle::top(&budget, &near.0, false).map_err(cannot)?;
            if let Some(filter) = &spec.filter {
                let fd = opened.fd().map_err(cannot)?;
                rules = Some(rules::top(filter, &spec.source, &spec.target, (*fd).as_fd())?);
            }
            handle = Some(opened);
        }
        Ok(FarComparison {
            spec,
            far,
            controls,
            report,
            listener,
            control: Control::default(),
            out: Outgoing::default(),
            near,
            handle,
            rules,
            seed: RandomState::new().hash_one(0),
            inbox: Mutex::default(),
            arrived: Condvar::new(),
            pending: Mutex::default(),
            settled: Condvar::new(),
            links: Mutex::default(),
            entries: AtomicUsize::new(0),
            singles: AtomicU64::new(1),
        })
    }

    /// Compares what the other end announces with a number of workers; `out` leads to it.
    ///
    /// # Errors
    /// The other end is lost, or could not do its part.
    pub fn run(
        self,
        (incoming, out): (Incoming<impl Read + Send>, Outgoing),
        workers: usize,
    ) -> Result<VerifyCounts, Fatal> {
        let this = FarComparison { out, ..self };
        this.compare_all(incoming, workers)
    }

    fn compare_all(
        &self,
        incoming: Incoming<impl Read + Send>,
        workers: usize,
    ) -> Result<VerifyCounts, Fatal> {
        self.listener.event(Event::Begins(&self.controls.meter));
        let mut counts = VerifyCounts::default();
        std::thread::scope(|scope| {
            scope.spawn(|| self.read(incoming));
            let work = |worker: usize| move || self.work(worker);
            let threads: Vec<_> = (1..workers).map(|at| scope.spawn(work(at))).collect();
            counts.add(&self.work(0));
            for thread in threads {
                // A worker that ends early would leave its part uncompared.
                match thread.join() {
                    Ok(more) => counts.add(&more),
                    Err(_) => counts.failed += 1,
                }
            }
            // The agent waits for it.
            if let Ok(json) = serde_json::to_vec(&Bye::default()) {
                let _ = self.out.send(Message::Bye(json));
            }
        });
        let mut inbox = self.inbox.lock();
        if let Some(error) = inbox.lost.take() {
            return Err(lost(&error, &self.far.host));
        }
        let bye = inbox.bye.take().unwrap_or_default();
        if let Some(fatal) = bye.fatal {
            return Err(fatal.fatal());
        }
        let left_out = self.pending.lock().len() as u64 + u64::from(bye.stopped);
        let failed_there = (bye.totals.failed + bye.totals.vanished).max(inbox.unread);
        counts.failed += failed_there + left_out;
        Ok(counts)
    }

    /// Returns a value of each side in the order source, target.
    fn pair<T>(&self, there: T, here: T) -> (T, T) {
        match self.far.side {
            Side::Source => (there, here),
            Side::Target => (here, there),
        }
    }

    fn near_side(&self) -> Side {
        match self.far.side {
            Side::Source => Side::Target,
            Side::Target => Side::Source,
        }
    }

    // What comes.

    fn read(&self, mut incoming: Incoming<impl Read>) {
        let mut heard = Heard {
            dirs: HashMap::new(),
            has_argument: false,
            owners: FarOwners::new(IdMap::default(), IdMap::default()),
        };
        loop {
            let taken = match incoming.receive() {
                Ok(Message::Said(json)) => {
                    told(&json, self.listener);
                    Ok(None)
                }
                Ok(Message::Bye(json)) => match serde_json::from_slice(&json) {
                    Ok(bye) => {
                        let mut inbox = self.inbox.lock();
                        (inbox.bye, inbox.is_over) = (Some(bye), true);
                        drop(inbox);
                        self.controls.meter.all_found();
                        self.arrived.notify_all();
                        self.settled.notify_all();
                        return;
                    }
                    Err(_) => Err(ProtocolError("a last message is damaged")),
                },
                Ok(message) => self.take(message, &mut heard),
                Err(error) => return self.lose(error),
            };
            match taken {
                Ok(None) => {}
                Ok(Some(job)) => {
                    self.inbox.lock().jobs.push_back(job);
                    self.arrived.notify_one();
                }
                Err(error) => return self.lose(LinkError::Protocol(error)),
            }
        }
    }

    fn lose(&self, error: LinkError) {
        let mut inbox = self.inbox.lock();
        (inbox.lost, inbox.is_over) = (Some(error), true);
        inbox.jobs.clear();
        drop(inbox);
        self.control.stop();
        self.out.break_off();
        self.arrived.notify_all();
        self.settled.notify_all();
    }

    fn take(
        &self,
        message: Message,
        Heard { dirs, has_argument, owners }: &mut Heard,
    ) -> Result<Option<FarJob>, ProtocolError> {
        const UNKNOWN_DIR: ProtocolError = ProtocolError("a directory was not announced");
        match message {
            Message::Names { is_group, id, name } => {
                owners.learn(is_group, id, &name)?;
                Ok(None)
            }
            Message::Dir(mut record) => {
                owners.settle(&mut record.entry);
                let number = record.number;
                if dirs.len() >= DIRS_MAX {
                    return Err(ProtocolError("too many directories are announced at once"));
                }
                if dirs.contains_key(&number) {
                    return Err(ProtocolError("a directory was announced twice"));
                }
                let parent = match record.parent {
                    0 if *has_argument => {
                        return Err(ProtocolError("an argument was announced twice"));
                    }
                    0 => None,
                    above => Some(Arc::clone(dirs.get(&above).ok_or(UNKNOWN_DIR)?)),
                };
                *has_argument = true;
                let node = Arc::new(self.node(*record, parent)?);
                dirs.insert(number, Arc::clone(&node));
                Ok(Some(FarJob::Dir(node)))
            }
            Message::Entries { dir, chunk, mut entries } => {
                entries.iter_mut().for_each(|entry| owners.settle(entry));
                let node = dirs.get(&dir).ok_or(UNKNOWN_DIR)?;
                let is_dir = |entry: &EntryRecord| entry.meta.kind == Kind::Dir;
                if entries.is_empty() || entries.iter().any(is_dir) {
                    return Err(ProtocolError("a chunk has no entries, or directories"));
                }
                let waiting = self.entries.fetch_add(entries.len(), Ordering::AcqRel);
                if waiting > ENTRIES_MAX + CHUNK_ENTRIES_MAX {
                    return Err(ProtocolError("more is announced than there is room for"));
                }
                let mut names = node.names.lock();
                for entry in &entries {
                    names.insert(xxh3_128_with_seed(&entry.name, self.seed));
                }
                drop(names);
                Ok(Some(FarJob::Entries(Arc::clone(node), chunk, entries)))
            }
            Message::End { dir, is_listed } => {
                let node = dirs.remove(&dir).ok_or(UNKNOWN_DIR)?;
                Ok(Some(FarJob::End(node, is_listed)))
            }
            Message::Data { chunk, index, content, state } => {
                let hash = match (state, <[u8; HASH_BYTES]>::try_from(&*content)) {
                    (ContentState::Complete, Ok(bytes)) => FileHash::Is(u128::from_le_bytes(bytes)),
                    (ContentState::Changed, _) => FileHash::Changed,
                    (ContentState::Failed, _) => FileHash::Failed,
                    _ => return Err(ProtocolError("a hash is none")),
                };
                self.inbox.lock().unread += u64::from(state == ContentState::Failed);
                match self.pending.lock().get_mut(&(chunk, index)) {
                    Some(file) if file.there.is_none() => file.there = Some(hash),
                    _ => return Err(ProtocolError("a hash came that nobody asked for")),
                }
                Ok(Some(FarJob::Settle((chunk, index))))
            }
            Message::Stop => Ok(None),
            _ => Err(ProtocolError("a message came from the wrong end")),
        }
    }

    fn node(
        &self,
        record: DirRecord,
        parent: Option<Arc<FarNode>>,
    ) -> Result<FarNode, ProtocolError> {
        let zero = |_| ProtocolError("a name holds a zero byte");
        let path = match &parent {
            Some(parent) => {
                parent.names.lock().insert(xxh3_128_with_seed(&record.name, self.seed));
                parent.path_below(&record.name)
            }
            None => Vec::new(),
        };
        let is_tree = parent.as_ref().map_or(record.is_whole, |parent| parent.is_tree);
        let name = CString::new(record.name).map_err(zero)?;
        let (here, names) = Default::default();
        Ok(FarNode { parent, name, path, record: record.entry, is_tree, here, names })
    }

    // What is done with it.

    fn work(&self, number: usize) -> VerifyCounts {
        let mut worker = FarWorker::default();
        let lane = self.controls.meter.lane(number);
        loop {
            let job = {
                let mut inbox = self.inbox.lock();
                loop {
                    if let Some(job) = inbox.jobs.pop_front() {
                        inbox.active += 1;
                        break job;
                    }
                    if inbox.is_over && inbox.active == 0 {
                        drop(inbox);
                        self.arrived.notify_all();
                        return worker.counts;
                    }
                    self.arrived.wait_for(&mut inbox, LOOK);
                }
            };
            lane.enter(Phase::Look);
            match job {
                FarJob::Dir(node) => {
                    self.dir(&node, &mut worker);
                    let _ = self.out.send(Message::Room { bytes: MESSAGE_BYTES });
                }
                FarJob::Entries(node, chunk, entries) => {
                    let count = entries.len();
                    self.chunk(&node, chunk, entries, (number, &mut worker));
                    lane.done(count as u64);
                }
                FarJob::End(node, is_listed) => self.end_dir(&node, is_listed, &mut worker),
                FarJob::Settle(of) => self.settle(of, &mut worker),
            }
            lane.leave(Phase::Look);
            self.inbox.lock().active -= 1;
        }
    }

    fn decide(&self, path: &[u8], kind: Kind) -> Decision {
        match (&self.spec.filter, &self.rules) {
            (Some(filter), Some(rules)) if !path.is_empty() => {
                filter.check(rules, path, kind == Kind::Dir, false)
            }
            _ => Decision::default(),
        }
    }

    /// Returns whether rules leave a pair out: that of the source decides, which may be of another kind.
    fn is_left_out(&self, path: &[u8], there: Kind, here: Option<Kind>) -> bool {
        let kind = match self.near_side() {
            Side::Source => here.unwrap_or(there),
            Side::Target => there,
        };
        self.decide(path, kind).hide
    }

    /// Returns the directory here.
    fn here(&self, node: &FarNode) -> Option<Arc<DirectoryHandle>> {
        let opened = node.here.get_or_init(|| match &node.parent {
            None => self.handle.clone().filter(|_| node.is_tree),
            Some(_) if self.decide(&node.path, Kind::Dir).hide => None,
            // An error is reported where the directory is compared.
            Some(parent) => Some(self.here(parent)?.child(&node.name).ok()?.0),
        });
        opened.clone()
    }

    /// Compares a directory with the one here.
    fn dir(&self, node: &FarNode, worker: &mut FarWorker) {
        let there = &node.record;
        let Some(parent) = &node.parent else {
            if !node.is_tree {
                return;
            }
            let here = self.near.1;
            return self.compare(((dir::cwd(), &self.near.0), &here), there, Vec::new(), worker);
        };
        let Some(above) = self.here(parent) else { return };
        let opened =
            above.fd().and_then(|fd| Ok((meta::of((*fd).as_fd(), &node.name, false)?, fd)));
        let here = opened.as_ref().ok().map(|(here, _)| here.kind);
        if self.is_left_out(&node.path, there.meta.kind, here) {
            return;
        }
        match opened {
            Ok((here, fd)) => {
                let name = ((*fd).as_fd(), &*node.name);
                self.compare((name, &here), there, node.path.clone(), worker);
                if here.kind == Kind::Dir
                    && self.here(node).is_none()
                    && let Err(error) = above.child(&node.name)
                {
                    self.fail(&node.path, (Operation::List, error), worker);
                }
            }
            Err(error) if errno::is(&error, errno::ENOENT) => {
                self.only_there(&node.path, &there.meta, worker);
            }
            Err(error) => self.fail(&node.path, (Operation::Stat, error), worker),
        }
    }

    /// Compares announced entries with those here.
    fn chunk(
        &self,
        node: &FarNode,
        chunk: u64,
        entries: Vec<EntryRecord>,
        (number, worker): (usize, &mut FarWorker),
    ) {
        let count = entries.len();
        let mut wanted = Vec::new();
        let fd = match node.is_tree {
            true => self.here(node).and_then(|handle| handle.fd().ok()),
            false => None,
        };
        for (at, entry) in (0..).zip(&entries) {
            let Ok(name) = CString::new(&*entry.name) else { continue };
            let path = if node.is_tree { node.path_below(&entry.name) } else { Vec::new() };
            let (here, name) = match (&fd, node.is_tree) {
                (Some(fd), true) => {
                    let fd = (**fd).as_fd();
                    let looked = meta::of(fd, &name, false);
                    let kind = looked.as_ref().ok().map(|here| here.kind);
                    if self.is_left_out(&path, entry.meta.kind, kind) {
                        continue;
                    }
                    match looked {
                        Ok(here) => (here, (fd, &*name)),
                        Err(error) if errno::is(&error, errno::ENOENT) => {
                            self.only_there(&path, &entry.meta, worker);
                            continue;
                        }
                        Err(error) => {
                            self.fail(&path, (Operation::Stat, error), worker);
                            continue;
                        }
                    }
                }
                // The argument itself.
                (_, false) => (self.near.1, (dir::cwd(), &*self.near.0)),
                // Its directory is one difference.
                (None, true) => continue,
            };
            let found = self.look((name, &here), entry, &path, worker);
            let (source, target) = self.pair(entry.meta, here);
            if !found.wants_content {
                self.settled_pair(&path, (&source, &target), (found.set, 0), worker);
                continue;
            }
            wanted.push(at);
            let (set, here, there) = (found.set, None, None);
            let file = PendingFile { path, source, target, set, here, there };
            let mut pending = self.pending.lock();
            while pending.len() >= PENDING_MAX && !self.control.is_stopped() {
                // Others settle what is complete; without them this one has to.
                let complete: Vec<FarFileNumber> = complete(&pending);
                if complete.is_empty() {
                    self.settled.wait_for(&mut pending, LOOK);
                    continue;
                }
                drop(pending);
                complete.into_iter().for_each(|of| self.settle(of, worker));
                pending = self.pending.lock();
            }
            pending.insert((chunk, at), file);
        }
        self.entries.fetch_sub(count, Ordering::AcqRel);
        let _ = self.out.send(Message::Want { chunk, wanted: wanted.clone() });
        for at in wanted {
            let Some(entry) = entries.get(usize::from(at)) else { continue };
            let path = if node.is_tree { node.path_below(&entry.name) } else { Vec::new() };
            let name = CString::new(&*entry.name).unwrap_or_default();
            let opened = match (&fd, node.is_tree) {
                (Some(fd), true) => file::open_read((**fd).as_fd(), &name, false),
                _ => file::open_read(dir::cwd(), &self.near.0, false),
            };
            let hash = self.hash_here(opened, entry.meta.size, number);
            let hash = hash.unwrap_or_else(|error| {
                self.fail(&path, (Operation::Read, error), worker);
                FileHash::Failed
            });
            if let Some(file) = self.pending.lock().get_mut(&(chunk, at)) {
                file.here = Some(hash);
            }
            self.settle((chunk, at), worker);
        }
    }

    fn hash_here(
        &self,
        opened: io::Result<OwnedFd>,
        size: u64,
        number: usize,
    ) -> io::Result<FileHash> {
        let (fd, lane) = (opened?, self.controls.meter.lane(number));
        let hash = hash_of_file(fd.as_fd(), size, |bytes| {
            if let Some(limiter) = &self.controls.bytes {
                limiter.take_all(bytes, || self.control.is_stopped(), || {});
            }
            lane.bytes(bytes);
            !self.control.is_stopped()
        })?;
        Ok(hash.map_or(FileHash::Changed, FileHash::Is))
    }

    /// Reports a file of which both hashes are known.
    fn settle(&self, of: FarFileNumber, worker: &mut FarWorker) {
        let mut pending = self.pending.lock();
        let is_complete = |file: &PendingFile| file.here.is_some() && file.there.is_some();
        if !pending.get(&of).is_some_and(is_complete) {
            return;
        }
        let Some(file) = pending.remove(&of) else { return };
        drop(pending);
        self.settled.notify_all();
        let set = match (file.here, file.there) {
            (Some(FileHash::Failed), _) | (_, Some(FileHash::Failed)) => file.set,
            (here, there) if here == there && here != Some(FileHash::Changed) => file.set,
            _ => file.set.with(Aspect::Content),
        };
        let pair = (&file.source, &file.target);
        self.settled_pair(&file.path, pair, (set, file.source.size), worker);
    }

    /// Compares the entries of a directory that only one side has, once all names of the other end are known.
    fn end_dir(&self, node: &FarNode, is_listed: bool, worker: &mut FarWorker) {
        let is_extra = self.near_side() == Side::Target;
        if !is_listed || !node.is_tree || is_extra && self.spec.one_way {
            return;
        }
        let Some(handle) = self.here(node) else { return };
        let names = std::mem::take(&mut *node.names.lock());
        let mut unknown: Vec<CString> = Vec::new();
        let FarWorker { reader, .. } = worker;
        let listed = handle.fd().and_then(|fd| {
            dir::seek((*fd).as_fd(), 0)?;
            while reader.next_batch((*fd).as_fd(), |name, _, _| {
                if !names.contains(&xxh3_128_with_seed(name.to_bytes(), self.seed)) {
                    unknown.push(name.to_owned());
                }
            })? {}
            Ok(fd)
        });
        let fd = match listed {
            Ok(fd) => fd,
            Err(error) => return self.fail(&node.path, (Operation::List, error), worker),
        };
        for name in unknown {
            // A name that vanished is not a difference.
            let Ok(here) = meta::of((*fd).as_fd(), &name, false) else { continue };
            let path = node.path_below(name.to_bytes());
            let decision = self.decide(&path, here.kind);
            if decision.hide || is_extra && decision.protect {
                continue;
            }
            let (finding, source, target) = match is_extra {
                true => (Finding::Extra, None, Some(&here)),
                false => (Finding::Missing, Some(&here), None),
            };
            self.tell(Difference { path: &path, finding, source, target, offset: None }, worker);
        }
    }

    /// Reports an entry that only the other end has.
    fn only_there(&self, path: &[u8], there: &Meta, worker: &mut FarWorker) {
        let (finding, source, target) = match self.far.side {
            Side::Source => (Finding::Missing, Some(there), None),
            Side::Target if self.spec.one_way => return,
            Side::Target if self.decide(path, there.kind).protect => return,
            Side::Target => (Finding::Extra, None, Some(there)),
        };
        self.tell(Difference { path, finding, source, target, offset: None }, worker);
    }

    /// Compares and reports an entry without content.
    fn compare(
        &self,
        (name, here): ((BorrowedFd<'_>, &CStr), &Meta),
        there: &EntryRecord,
        path: Vec<u8>,
        worker: &mut FarWorker,
    ) {
        let found = self.look((name, here), there, &path, worker);
        let (source, target) = self.pair(&there.meta, here);
        self.settled_pair(&path, (source, target), (found.set, 0), worker);
    }

    /// Compares an entry but for its content.
    fn look(
        &self,
        (name, here): ((BorrowedFd<'_>, &CStr), &Meta),
        there: &EntryRecord,
        path: &[u8],
        worker: &mut FarWorker,
    ) -> FarFindings {
        let aspects = self.spec.aspects;
        let (a, b) = self.pair(&there.meta, here);
        let mut set = differences(a, b, aspects, self.spec.times);
        let mut wants_content = false;
        if set.has(Aspect::Type) {
            return FarFindings { set, wants_content };
        }
        match a.kind {
            Kind::File if a.size != b.size => {
                let is_silent = aspects.has(Aspect::Content) && !aspects.has(Aspect::Size);
                set = if is_silent { set.with(Aspect::Content) } else { set };
            }
            Kind::File => wants_content = a.size > 0 && aspects.has(Aspect::Content),
            Kind::Symlink if aspects.has(Aspect::Link) => match dir::read_link(name.0, name.1) {
                Ok(text) if text.to_bytes() == there.text => {}
                Ok(_) => set = set.with(Aspect::Link),
                Err(error) => self.fail(path, (Operation::Read, error), worker),
            },
            _ => {}
        }
        if aspects.has(Aspect::HardLinks) && a.kind != Kind::Dir && (a.nlink > 1 || b.nlink > 1) {
            let identity = |meta: &Meta| match meta.identity() {
                (0, 0) => (u64::MAX, self.singles.fetch_add(1, Ordering::Relaxed)),
                known => known,
            };
            let (a, b) = ((identity(a), a.nlink), (identity(b), b.nlink));
            if !self.links.lock().agrees(a, b) {
                set = set.with(Aspect::HardLinks);
            }
        }
        let (acls, xattrs) = (aspects.has(Aspect::Acl), aspects.has(Aspect::Xattrs));
        if acls || xattrs {
            match own_attributes(name, (acls, xattrs), &there.xattrs, &mut worker.attributes) {
                Ok((same_acl, same_xattrs)) => {
                    set = if same_acl { set } else { set.with(Aspect::Acl) };
                    set = if same_xattrs { set } else { set.with(Aspect::Xattrs) };
                }
                Err(error) => self.fail(path, (Operation::Compare, error), worker),
            }
        }
        FarFindings { set, wants_content }
    }

    fn settled_pair(
        &self,
        path: &[u8],
        (source, target): (&Meta, &Meta),
        (set, bytes): (Aspects, u64),
        worker: &mut FarWorker,
    ) {
        match source.kind {
            Kind::File => worker.counts.files += 1,
            Kind::Dir => worker.counts.dirs += 1,
            _ => worker.counts.others += 1,
        }
        worker.counts.bytes += bytes;
        if !set.is_empty() {
            let (source, target) = (Some(source), Some(target));
            let finding = Finding::Differs(set);
            self.tell(Difference { path, finding, source, target, offset: None }, worker);
        }
    }

    fn tell(&self, difference: Difference<'_>, worker: &mut FarWorker) {
        worker.counts.note(difference.finding);
        (self.report)(&difference);
    }

    /// Reports an entry of this machine that could not be compared.
    fn fail(
        &self,
        path: &[u8],
        (operation, error): (Operation, io::Error),
        worker: &mut FarWorker,
    ) {
        worker.counts.failed += 1;
        let (source, target): (Option<PathBuf>, Option<PathBuf>) = match self.near_side() {
            Side::Source => (Some(shown(&self.spec.source, path)), None),
            Side::Target => (None, Some(shown(&self.spec.target, path))),
        };
        let (cause, class) = (Cause::System(error), ErrorClass::Partial);
        let problem = Problem { operation, source, target, cause, class };
        self.listener.event(Event::Problem(&problem));
    }
}

/// The findings about an entry.
struct FarFindings {
    set: Aspects,
    wants_content: bool,
}

/// Returns the files of which both hashes are known.
fn complete(pending: &HashMap<FarFileNumber, PendingFile>) -> Vec<FarFileNumber> {
    let is_complete = |file: &PendingFile| file.here.is_some() && file.there.is_some();
    pending.iter().filter(|(_, file)| is_complete(file)).map(|(of, _)| *of).collect()
}
