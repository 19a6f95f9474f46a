//! The target end of a transfer over a remote shell: what the other end announces becomes units of the walk.

use super::engine::{Chunk, LocalEngine, OpenDir, Pass, Unit, Worker};
use super::owners::FarOwners;
use super::source::{Answers, FarChunk, FarDir, FarPieces, Piece, PiecesRoom, SourceHandle};
use super::target_dir::{Base, DirSide, Node, TargetDir};
use super::walk::absolute;
use crate::failure::{Failure, c_string};
use crate::policy::MissingArgs;
use crate::policy::filter::Origin;
use hakobu_core::error::Operation;
use hakobu_core::unit::Kind;
use hakobu_remote::message::{ContentState, DirRecord, EntryRecord, Patch, ProtocolError};
use hakobu_sys::{AsFd, OwnedFd, dir, meta};
use hakobu_tree::handle::DirectoryHandle;
use hakobu_tree::pool::Queue;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What the other end sends.
pub enum Arrival {
    Dir(Box<DirRecord>),
    Entries {
        dir: u64,
        chunk: u64,
        entries: Vec<EntryRecord>,
    },
    Content {
        chunk: u64,
        index: u8,
        content: Vec<u8>,
        state: ContentState,
    },
    Names {
        is_group: bool,
        id: u32,
        name: Vec<u8>,
    },
    Begins {
        chunk: u64,
        index: u8,
        offset: u64,
    },
    Patch {
        chunk: u64,
        index: u8,
        patch: Patch,
    },
    End {
        dir: u64,
        is_listed: bool,
    },
    /// A bit for each name of a directory that was asked for: no source has it.
    Had {
        dir: u64,
        absent: Vec<u8>,
        is_known: bool,
    },
    /// A pass of the other end over its sources is over.
    Turn,
    /// Nothing has come.
    Nothing,
    /// Nothing more will come.
    Over,
}

/// Brings what the other end sends, and takes what it is told.
pub trait Arrivals: Sync {
    /// Returns what has come; `waits`: waits a moment for it.
    fn next(&self, waits: bool) -> Arrival;
    /// Returns who takes the answers to chunks.
    fn answers(&self) -> Arc<dyn Answers>;
    /// Returns the files whose content is coming.
    fn coming(&self) -> &Coming;
    /// Tells that a directory is new: content of what is in it is wanted unasked.
    fn fresh(&self, dir: u64);
    /// Asks which of these names of a directory no source has; `is_last`: it is asked for none after them.
    fn ask(&self, dir: u64, names: Vec<Vec<u8>>, is_last: bool);
    /// Records that the other end is done without having done its part. Nothing is begun any more.
    fn left_open(&self);
    /// Records that the other end does not keep to the protocol: nothing more comes.
    fn refuse(&self, error: ProtocolError);
}

/// What the place of a target depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceFacts {
    /// An argument means the content of a directory.
    pub has_content: bool,
    /// Any argument exists.
    pub exists: bool,
    /// There is one argument, which does not exist.
    pub is_missing: bool,
    /// The one argument, or the only name of a list, gets the target's name by rsync's rule, if the target is no
    /// directory: where nothing is there, and where something is.
    pub takes_new_name: bool,
    pub takes_name: bool,
    /// There is one argument, and it is a directory.
    pub is_dir: bool,
    /// There is one argument, and it is a symlink.
    pub is_link: bool,
    /// Device and inode of the sources, and whether each is no directory: where both ends are on one machine, the target
    /// must not lose them.
    pub roots: Vec<(u64, u64, bool)>,
}

impl SourceFacts {
    /// Returns device and inode of each source.
    pub fn identities(&self) -> Vec<(u64, u64)> {
        self.roots.iter().map(|(dev, ino, _)| (*dev, *ino)).collect()
    }
}

/// The target directory of all that is received.
pub struct FarTarget {
    pub dir: Option<OwnedFd>,
    /// Its spelling for messages.
    pub path: PathBuf,
    /// This run just created it.
    pub created: bool,
    /// The one argument gets this name in it.
    pub name: Option<CString>,
    /// The trees beside it that exist.
    pub bases: Vec<OwnedFd>,
    /// Numbers of the other end's users and groups.
    pub owners: FarOwners,
    /// The other end, for messages: `HOST:`.
    pub host: OsString,
}

/// A directory of the other end here; `None`: it is left out, with everything in it.
type Received = Option<(Arc<Node>, Arc<FarDir>)>;

/// The state of receiving.
pub struct Receiving {
    target: FarTarget,
    dirs: HashMap<u64, Received>,
    /// Chunks whose content may still come.
    chunks: HashMap<u64, ReceivedChunk>,
    /// Number of chunks from which on finished ones are dropped.
    sweep_from: usize,
    /// The node that sets the attributes of the target directory.
    owner: Option<Arc<Node>>,
}

/// A file of the source: the number of its chunk, and its own within it.
type FileNumber = (u64, u8);

/// Files whose content is coming.
#[derive(Default)]
pub struct Coming {
    /// `None`: the rest is not wanted.
    files: Mutex<HashMap<FileNumber, Option<Arc<FarPieces>>>>,
    room: Arc<PiecesRoom>,
}

impl Coming {
    /// Returns whether content of any file is coming that is wanted.
    pub fn is_any(&self) -> bool {
        self.files.lock().values().any(Option::is_some)
    }

    /// Adds a file whose first piece has come.
    fn begin(&self, of: FileNumber, pieces: &Arc<FarPieces>) {
        self.files.lock().insert(of, Some(Arc::clone(pieces)));
        // The rest of a short file comes while others are written.
        pieces.prepare();
    }

    /// Records that content comes on another lane.
    pub fn add_lane(&self) {
        self.room.add_lane();
    }

    fn has(&self, of: FileNumber) -> bool {
        self.files.lock().contains_key(&of)
    }

    /// Records that the rest of a file is not wanted: what is on the way is dropped.
    pub fn cancel(&self, of: FileNumber) {
        if let Some(pieces) = self.files.lock().get_mut(&of) {
            *pieces = None;
        }
    }

    /// Adds what has come of a file behind its first piece. What is not wanted any more is dropped.
    ///
    /// # Errors
    /// It is none that may come.
    pub fn add(
        &self,
        of: FileNumber,
        offset: u64,
        content: Vec<u8>,
        state: ContentState,
    ) -> Result<(), ProtocolError> {
        let pieces = self.files.lock().get(&of).cloned().flatten();
        let is_last = match pieces {
            Some(pieces) => {
                pieces.push(offset, content, state)?;
                pieces.is_ended()
            }
            None => state != ContentState::Goes,
        };
        if is_last {
            self.end(of);
        }
        Ok(())
    }

    /// As [`Coming::add`], for differences. A patch comes back if the file is not one whose content is coming.
    ///
    /// # Errors
    /// It is none of that file.
    pub fn add_patch(&self, of: FileNumber, patch: Patch) -> Result<Option<Patch>, ProtocolError> {
        let pieces = match self.files.lock().get(&of) {
            None => return Ok(Some(patch)),
            Some(pieces) => pieces.clone(),
        };
        // After the last one, the content may come again.
        let is_last = matches!(patch.state, ContentState::Changed | ContentState::Failed);
        if let Some(pieces) = pieces {
            pieces.push_patch(patch)?;
        }
        if is_last {
            self.end(of);
        }
        Ok(None)
    }

    /// Records that nothing more comes of a file.
    pub fn end(&self, of: FileNumber) {
        self.files.lock().remove(&of);
    }
}

pub struct ReceivedChunk {
    node: Arc<Node>,
    dir: Arc<FarDir>,
    names: Vec<(CString, Kind)>,
    /// Entries whose content has not come.
    left: usize,
}

impl Receiving {
    pub fn new(target: FarTarget) -> Receiving {
        let (dirs, chunks, owner) = Default::default();
        Receiving { target, dirs, chunks, sweep_from: SWEEP_FROM, owner }
    }

    /// Returns the first unit.
    pub fn unit(self) -> Unit {
        Unit::Receive(Box::new(self))
    }
}

/// Directories that may be announced and not ended: far more than a walk has open.
const DIRS_MAX: usize = 1 << 20;
/// See [`Receiving::sweep_from`]: the first time.
const SWEEP_FROM: usize = 256;

const UNKNOWN_DIR: ProtocolError = ProtocolError("a directory was not announced");
const UNKNOWN_CHUNK: ProtocolError = ProtocolError("an entry was not announced");

impl LocalEngine<'_> {
    /// Takes what has come, until there is enough to do.
    pub(super) fn receive(
        &self,
        worker: &mut Worker<'_>,
        mut receiving: Box<Receiving>,
        queue: &Queue<'_, Unit>,
    ) {
        let Some(arrivals) = self.arrivals else { return };
        loop {
            if self.is_over() {
                return self.end_receiving(worker, *receiving);
            }
            if !queue.has_room() {
                return queue.put_aside(Unit::Receive(receiving));
            }
            let arrived = match arrivals.next(!queue.has_own()) {
                // What has come is handled first.
                Arrival::Nothing if queue.has_own() => {
                    return queue.push_last(Unit::Receive(receiving));
                }
                Arrival::Nothing => Ok(()),
                Arrival::Over | Arrival::Turn => return self.end_receiving(worker, *receiving),
                Arrival::Dir(record) => {
                    self.receive_dir(worker, &mut receiving, *record, (arrivals, queue))
                }
                Arrival::Entries { dir, chunk, entries } => self.receive_entries(
                    worker,
                    &mut receiving,
                    (dir, chunk),
                    entries,
                    (arrivals, queue),
                ),
                Arrival::Content { chunk, index, content, state } => self.receive_content(
                    &mut receiving,
                    (chunk, index),
                    (content, state),
                    (arrivals, queue),
                ),
                Arrival::Names { is_group, id, name } => {
                    receiving.target.owners.learn(is_group, id, &name)
                }
                Arrival::Begins { chunk, index, offset } => {
                    self.receive_begin(&receiving, (chunk, index), offset)
                }
                Arrival::Patch { chunk, index, patch } => {
                    self.receive_patch(&mut receiving, (chunk, index), patch, (arrivals, queue))
                }
                Arrival::End { dir, is_listed } => match receiving.dirs.remove(&dir) {
                    None => Err(UNKNOWN_DIR),
                    Some(Some((node, _))) => {
                        self.end_dir(worker, (&node, dir), is_listed, queue);
                        Ok(())
                    }
                    Some(None) => {
                        if is_listed {
                            self.pruning.ask_nothing(dir);
                        }
                        Ok(())
                    }
                },
                Arrival::Had { dir, absent, is_known } => {
                    self.receive_answer(worker, (dir, absent, is_known), queue)
                }
            };
            if let Err(error) = arrived {
                arrivals.refuse(error);
            }
        }
    }

    fn receive_dir(
        &self,
        worker: &mut Worker<'_>,
        receiving: &mut Receiving,
        mut record: DirRecord,
        (arrivals, _): (&dyn Arrivals, &Queue<'_, Unit>),
    ) -> Result<(), ProtocolError> {
        let number = record.number;
        if receiving.dirs.len() >= DIRS_MAX {
            return Err(ProtocolError("too many directories are announced at once"));
        }
        if receiving.dirs.contains_key(&number) {
            return Err(ProtocolError("a directory was announced twice"));
        }
        receiving.target.owners.settle(&mut record.entry);
        let received = match record.parent {
            0 => self.receive_base(worker, receiving, record),
            above => match receiving.dirs.get(&above) {
                None => return Err(UNKNOWN_DIR),
                Some(None) => None,
                Some(Some((parent, above))) => {
                    // One that is left out for being empty is no name of the source.
                    if !self.context.policy.prune_empty_dirs {
                        above.saw(&c_string(&record.name).map_err(|_| UNKNOWN_DIR)?);
                    }
                    let target = &receiving.target;
                    self.receive_below(worker, target, parent, record)
                }
            },
        };
        if let Some((node, _)) = &received {
            let is_new = |node: &Node| node.target_dir().is_some_and(|info| info.fresh);
            let policy = self.context.policy;
            let asks = policy.existing || policy.hard_links || !policy.basis_dirs.is_empty();
            if is_new(node) && !node.parent.as_deref().is_some_and(is_new) && !asks {
                arrivals.fresh(number);
            }
        }
        receiving.dirs.insert(number, received);
        Ok(())
    }

    /// Makes the node of an argument, which is finished by [`LocalEngine::end_dir`].
    fn receive_base(
        &self,
        worker: &mut Worker<'_>,
        receiving: &mut Receiving,
        record: DirRecord,
    ) -> Received {
        let far = Arc::new(FarDir::new(record.number, record.entry, self.pruning.is_due()));
        let target = &receiving.target;
        let owner = receiving.owner.clone().filter(|_| !record.is_whole);
        let made = || -> Result<Arc<Node>, Failure> {
            let source = far.own.meta;
            let side = DirSide {
                parent_side: 0,
                name: c"".into(),
                handle: SourceHandle::Far(Arc::clone(&far)),
                selection: None,
                volume: source.dev,
            };
            let open = |fd: &OwnedFd| dir::open(fd.as_fd(), c".", false);
            let fd = target.dir.as_ref().map(open).transpose();
            let fd = fd.map_err(Failure::of(Operation::List))?;
            let info = match &fd {
                Some(fd) => Some(self.look_at_base(worker, fd, record.is_whole, target.created)?),
                None => None,
            };
            let source_path = PathBuf::from(OsString::from_vec(record.typed));
            let (from, to) = (absolute(Some(&source_path))?, absolute(Some(&target.path))?);
            let origin = Origin { source: &from, target: &to, first: &[] };
            let inside = record.is_whole.then_some(&*record.path);
            let (rules, _) = self.base_rules(worker, &origin, inside, (None, fd.as_ref()))?;
            let mut typed = target.host.clone();
            typed.push(source_path);
            let pin = |(fd, info): (OwnedFd, TargetDir)| {
                (info, DirectoryHandle::pin(&self.budget, fd, info.meta.identity()))
            };
            // One that cannot be opened again provides nothing.
            let bases = target.bases.iter().filter_map(|fd| {
                let (fd, identity) = (open(fd).ok()?, meta::of_fd(fd).ok()?.identity());
                Some(DirectoryHandle::pin(&self.budget, fd, identity))
            });
            Ok(Arc::new(Node {
                base: Some(Box::new(Base {
                    sources: vec![typed.into()],
                    target: target.path.clone(),
                    path: record.path,
                    provided: Vec::new(),
                    owner: owner.clone().inspect(|owner| owner.hold()),
                })),
                owns_attributes: record.is_whole,
                overlap: self.context.guard.target_overlap(),
                target: Mutex::new(fd.zip(info).map(pin)),
                bases: bases.collect(),
                ..Node::new(vec![side], source, rules, false)
            }))
        };
        match made() {
            Ok(node) => {
                if record.is_whole {
                    self.report_base(worker, &node, 1);
                    receiving.owner.get_or_insert(Arc::clone(&node));
                }
                Some((node, far))
            }
            Err(failure) => {
                self.fail(worker, failure, (None, Some(receiving.target.path.clone())));
                None
            }
        }
    }

    fn receive_below(
        &self,
        worker: &mut Worker<'_>,
        target: &FarTarget,
        parent: &Arc<Node>,
        record: DirRecord,
    ) -> Received {
        let name = c_string(&record.name).ok()?;
        let far = Arc::new(FarDir::new(record.number, record.entry, self.pruning.is_due()));
        parent.hold();
        worker.at.lane.found(1);
        let dir = OpenDir {
            parent: Arc::clone(parent),
            side: 0,
            name: name.into(),
            target_name: self.name_of_argument(parent, target),
            follow: false,
            implied: record.is_implied,
            lists: false,
            far: Some(Arc::clone(&far)),
        };
        let opened = self.open_dir(worker, dir);
        worker.at.lane.done(1);
        worker.at.finished();
        opened.map(|node| (node, far))
    }

    /// Returns the name that the one argument gets, for an entry of a directory that only provides names.
    fn name_of_argument(&self, parent: &Node, target: &FarTarget) -> Option<Box<std::ffi::CStr>> {
        let is_argument = parent.parent.is_none() && !parent.owns_attributes;
        target.name.as_deref().filter(|_| is_argument).map(Into::into)
    }

    fn receive_entries(
        &self,
        worker: &mut Worker<'_>,
        receiving: &mut Receiving,
        (dir, number): (u64, u64),
        mut entries: Vec<EntryRecord>,
        (arrivals, queue): (&dyn Arrivals, &Queue<'_, Unit>),
    ) -> Result<(), ProtocolError> {
        if entries.is_empty() || entries.iter().any(|entry| entry.meta.kind == Kind::Dir) {
            return Err(ProtocolError("a chunk has no entry, or a directory"));
        }
        if receiving.chunks.contains_key(&number) {
            return Err(ProtocolError("a chunk was announced twice"));
        }
        if self.context.pass == Pass::Delete {
            return Err(ProtocolError("entries came in a pass over directories"));
        }
        entries.iter_mut().for_each(|entry| receiving.target.owners.settle(entry));
        let tells_arrivals = self.context.policy.tells_arrivals();
        let answers = arrivals.answers();
        let (node, far) = match receiving.dirs.get(&dir) {
            None => return Err(UNKNOWN_DIR),
            Some(None) => {
                let content = entries.iter().filter_map(|entry| entry.content.as_ref());
                answers.consumed(content.map(|content| content.len() as u64).sum());
                answers.wanted(number, entries.len(), Vec::new());
                for index in (0..entries.len() as u8).filter(|_| tells_arrivals) {
                    answers.settled(number, index, false);
                }
                return Ok(());
            }
            Some(Some(known)) => known,
        };
        let is_missing = |entry: &EntryRecord| entry.meta.kind == Kind::Unknown;
        if entries.iter().any(is_missing) {
            let (node, name_of) =
                (Arc::clone(node), self.name_of_argument(node, &receiving.target));
            let [missing] = &*entries else {
                return Err(ProtocolError("a missing argument is not alone"));
            };
            if self.context.policy.missing_args != MissingArgs::Delete {
                return Err(ProtocolError("a missing argument was not asked for"));
            }
            let name = c_string(&missing.name).map_err(|_| UNKNOWN_CHUNK)?;
            let name = name_of.as_deref().unwrap_or(&name);
            if let Err(failure) = self.remove_missing_target(worker, &node, name) {
                self.fail(worker, failure, (None, Some(node.target_path(name))));
            }
            answers.wanted(number, 1, Vec::new());
            if tells_arrivals {
                answers.settled(number, 0, false);
            }
            return Ok(());
        }
        let left = entries.iter().filter(|entry| entry.content.is_none()).count();
        let chunk = Arc::new(FarChunk::new(number, entries.len(), answers, tells_arrivals));
        let added = far.add(entries, &chunk).map_err(|_| UNKNOWN_CHUNK)?;
        let target_name = self.name_of_argument(node, &receiving.target);
        let mut unit = Chunk { target_name, ..Chunk::new(node, 0) };
        let new = added.iter().filter(|(_, _, is_new)| *is_new);
        new.for_each(|(name, kind, _)| unit.names.push(name, *kind));
        if unit.names.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = added.into_iter().map(|(name, kind, _)| (name, kind)).collect();
        worker.at.lane.found(unit.names.len() as u64);
        node.hold();
        let (node, dir) = (Arc::clone(node), Arc::clone(far));
        if receiving.chunks.len() >= receiving.sweep_from {
            receiving.chunks.retain(|_, chunk| !chunk.dir.is_finished(&chunk.names));
            receiving.sweep_from = SWEEP_FROM.max(2 * receiving.chunks.len());
        }
        receiving.chunks.insert(number, ReceivedChunk { node, dir, names, left });
        queue.push(Unit::Chunk(unit));
        Ok(())
    }

    fn receive_content(
        &self,
        receiving: &mut Receiving,
        (number, index): (u64, u8),
        (content, state): (Vec<u8>, ContentState),
        (arrivals, queue): (&dyn Arrivals, &Queue<'_, Unit>),
    ) -> Result<(), ProtocolError> {
        let first = match state {
            ContentState::Goes => (Piece::Bytes(content), false),
            ContentState::Complete => (Piece::Bytes(content), true),
            ContentState::Changed => (Piece::Changed, true),
            ContentState::Failed => (Piece::Lost, true),
        };
        self.receive_first(receiving, (number, index), first, (arrivals, queue))
    }

    fn receive_patch(
        &self,
        receiving: &mut Receiving,
        of: FileNumber,
        patch: Patch,
        (arrivals, queue): (&dyn Arrivals, &Queue<'_, Unit>),
    ) -> Result<(), ProtocolError> {
        let Some(patch) = arrivals.coming().add_patch(of, patch)? else { return Ok(()) };
        let first = match patch.state {
            ContentState::Goes => (Piece::Patch(patch), false),
            ContentState::Complete => (Piece::Patch(patch), true),
            ContentState::Changed => (Piece::Changed, true),
            ContentState::Failed => (Piece::Lost, true),
        };
        self.receive_first(receiving, of, first, (arrivals, queue))
    }

    /// Takes the first piece of a file's content, or all of it (`is_all`): the file is handled again.
    fn receive_first(
        &self,
        receiving: &mut Receiving,
        (number, index): FileNumber,
        (first, is_all): (Piece, bool),
        (arrivals, queue): (&dyn Arrivals, &Queue<'_, Unit>),
    ) -> Result<(), ProtocolError> {
        let chunk = receiving.chunks.get_mut(&number).ok_or(UNKNOWN_CHUNK)?;
        let (name, kind) = chunk.names.get(usize::from(index)).ok_or(UNKNOWN_CHUNK)?;
        let entry = chunk.dir.get(name).map_err(|_| UNKNOWN_CHUNK)?;
        let is_coming = arrivals.coming().has((number, index));
        if *kind != Kind::File || is_coming || !entry.lacks_content() || !entry.is_looked_at() {
            return Err(ProtocolError("content was not asked for"));
        }
        if matches!(first, Piece::Patch(_)) && entry.delta().is_none() {
            return Err(ProtocolError("differences were not asked for"));
        }
        let coming = arrivals.coming();
        if let Some(pieces) = entry.bring(first, is_all, &coming.room)? {
            coming.begin((number, index), &pieces);
        }
        let mut unit = Chunk {
            target_name: self.name_of_argument(&chunk.node, &receiving.target),
            ..Chunk::new(&chunk.node, 0)
        };
        unit.names.push(name, *kind);
        // The hold of the entry that waited.
        queue.push(Unit::Chunk(unit));
        chunk.left = chunk.left.saturating_sub(1);
        if chunk.left == 0 {
            receiving.chunks.remove(&number);
        }
        Ok(())
    }

    fn receive_begin(
        &self,
        receiving: &Receiving,
        (number, index): FileNumber,
        offset: u64,
    ) -> Result<(), ProtocolError> {
        let chunk = receiving.chunks.get(&number).ok_or(UNKNOWN_CHUNK)?;
        let (name, _) = chunk.names.get(usize::from(index)).ok_or(UNKNOWN_CHUNK)?;
        let entry = chunk.dir.get(name).map_err(|_| UNKNOWN_CHUNK)?;
        match entry.begin_at(offset) {
            true => Ok(()),
            false => Err(ProtocolError("content begins where it was not asked for")),
        }
    }

    /// Ends a directory of which all was announced: its last unit finishes it.
    fn end_dir(
        &self,
        worker: &mut Worker<'_>,
        (node, number): (&Arc<Node>, u64),
        is_listed: bool,
        queue: &Queue<'_, Unit>,
    ) {
        node.listed.store(is_listed, Ordering::Relaxed);
        if !is_listed {
            node.list_failed.store(true, Ordering::Relaxed);
        }
        if !self.sweep(node, queue) && is_listed {
            self.pruning.ask_nothing(number);
        }
        self.release(worker, node);
    }

    /// Has names removed that no source has.
    fn receive_answer(
        &self,
        worker: &mut Worker<'_>,
        (dir, absent, is_known): (u64, Vec<u8>, bool),
        queue: &Queue<'_, Unit>,
    ) -> Result<(), ProtocolError> {
        let (extra, is_last) = self.pruning.answered(dir, absent, is_known)?;
        let node = Arc::clone(&extra.node);
        node.hold();
        queue.push(Unit::Remove(Box::new(extra)));
        if is_last {
            self.release(worker, &node);
        }
        Ok(())
    }

    /// Ends receiving: nothing more is known of directories that were not announced to their end.
    fn end_receiving(&self, worker: &mut Worker<'_>, receiving: Receiving) {
        let Receiving { dirs, chunks, .. } = receiving;
        let unanswered = self.pruning.take_unanswered();
        if let Some(arrivals) = self.arrivals {
            // Workers wait for content that does not come.
            if !dirs.is_empty() || !unanswered.is_empty() || arrivals.coming().is_any() {
                arrivals.left_open();
            }
        }
        for (node, _) in dirs.into_values().flatten() {
            node.list_failed.store(true, Ordering::Relaxed);
            node.keep_source();
            self.release(worker, &node);
        }
        for node in unanswered {
            self.release(worker, &node);
        }
        *self.unfinished.lock() = chunks.into_values().collect();
        self.all_found();
    }

    /// Checks that all that was announced and wanted has come, once all was done with what has.
    pub fn check_received(&self) {
        let chunks = std::mem::take(&mut *self.unfinished.lock());
        let is_left = |chunk: &ReceivedChunk| !chunk.dir.is_finished(&chunk.names);
        if let Some(arrivals) = self.arrivals.filter(|_| !self.is_over())
            && chunks.iter().any(is_left)
        {
            arrivals.left_open();
        }
    }
}
