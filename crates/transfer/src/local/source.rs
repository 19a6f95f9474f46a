//! A source directory, and what is read from it: of this machine, or of the other end of a transfer over a remote shell. What
//! the other end has announced and the target has not finished yet is kept here, by its directory.

use super::fake_super::AttributeHandle;
use crate::failure::{Failure, c_string};
use hakobu_core::error::Operation;
use hakobu_core::unit::{Kind, Meta};
use hakobu_remote::delta::{Basis, BlockSign, weight};
use hakobu_remote::message::{ContentState, EntryRecord, Patch, ProtocolError, Signs, WANT_DELTA};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, errno, meta};
use hakobu_tree::handle::DirectoryHandle;
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ffi::{CStr, CString};
use std::hash::BuildHasher;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A source directory of a node.
pub enum SourceHandle {
    Here(Arc<DirectoryHandle>),
    Far(Arc<FarDir>),
}

impl SourceHandle {
    /// Opens it as long as a unit uses it.
    ///
    /// # Errors
    /// Those of reopening.
    pub fn open(&self) -> io::Result<OpenSource> {
        Ok(match self {
            SourceHandle::Here(handle) => OpenSource::Here(handle.fd()?),
            SourceHandle::Far(dir) => OpenSource::Far(Arc::clone(dir)),
        })
    }

    /// Returns the handle of a directory of this machine.
    ///
    /// # Errors
    /// EREMOTE: it is not one.
    pub fn here(&self) -> io::Result<&Arc<DirectoryHandle>> {
        match self {
            SourceHandle::Here(handle) => Ok(handle),
            SourceHandle::Far(_) => Err(io::Error::from_raw_os_error(errno::EREMOTE)),
        }
    }

    pub fn identity(&self) -> (u64, u64) {
        match self {
            SourceHandle::Here(handle) => handle.identity(),
            SourceHandle::Far(dir) => dir.own.meta.identity(),
        }
    }
}

/// A source directory that a unit uses.
pub enum OpenSource {
    Here(Arc<OwnedFd>),
    Far(Arc<FarDir>),
}

impl OpenSource {
    pub fn dir(&self) -> SourceDir<'_> {
        match self {
            OpenSource::Here(fd) => SourceDir::Here((**fd).as_fd()),
            OpenSource::Far(dir) => SourceDir::Far(dir),
        }
    }
}

/// As [`OpenSource`], borrowed.
#[derive(Clone, Copy)]
pub enum SourceDir<'a> {
    Here(BorrowedFd<'a>),
    Far(&'a FarDir),
}

/// A name in a source directory.
pub type SourceName<'a> = (SourceDir<'a>, &'a CStr);

impl<'a> SourceDir<'a> {
    /// Returns the descriptor of a directory of this machine.
    ///
    /// # Errors
    /// EREMOTE: it is not one.
    pub fn here(self) -> io::Result<BorrowedFd<'a>> {
        self.fd().ok_or_else(|| io::Error::from_raw_os_error(errno::EREMOTE))
    }

    /// Returns the descriptor of a directory of this machine.
    pub fn fd(self) -> Option<BorrowedFd<'a>> {
        match self {
            SourceDir::Here(fd) => Some(fd),
            SourceDir::Far(_) => None,
        }
    }

    /// Returns the metadata of an entry; `follow` resolves a symlink. The other end has resolved those that are followed.
    ///
    /// # Errors
    /// Those of examining it; ENOENT if the other end has announced no such name, or its entry is finished.
    pub fn look(self, name: &CStr, follow: bool) -> io::Result<Meta> {
        match self {
            SourceDir::Here(fd) => meta::of(fd, name, follow),
            SourceDir::Far(dir) => Ok(dir.get(name)?.meta),
        }
    }

    /// Returns the extended attributes of the directory itself.
    pub(super) fn attributes(self) -> AttributeHandle<'a> {
        match self {
            SourceDir::Here(fd) => AttributeHandle::Open(fd),
            SourceDir::Far(dir) => AttributeHandle::Told(Arc::clone(&dir.own)),
        }
    }
}

/// Returns the extended attributes of an entry of a source, without opening it for reading.
pub(super) fn attributes_of((dir, name): SourceName<'_>) -> io::Result<AttributeHandle<'_>> {
    match dir {
        SourceDir::Here(fd) => AttributeHandle::named(fd, name),
        SourceDir::Far(dir) => Ok(AttributeHandle::Told(dir.get(name)?)),
    }
}

/// A regular file of a source that is open for reading.
pub enum SourceFile {
    Here(OwnedFd),
    Far(FarFile),
}

impl SourceFile {
    /// Returns the descriptor of a file of this machine.
    ///
    /// # Errors
    /// EREMOTE: it is not one.
    pub(super) fn here(&self) -> Result<BorrowedFd<'_>, Failure> {
        match self {
            SourceFile::Here(fd) => Ok(fd.as_fd()),
            SourceFile::Far(_) => Err(Failure::code(Operation::Read, errno::EREMOTE)),
        }
    }

    pub(super) fn attributes(&self) -> AttributeHandle<'_> {
        match self {
            SourceFile::Here(fd) => AttributeHandle::Open(fd.as_fd()),
            SourceFile::Far(file) => AttributeHandle::Told(Arc::clone(&file.entry)),
        }
    }
}

/// A directory of the other end.
pub struct FarDir {
    /// The number that the other end has given it.
    pub number: u64,
    /// Its own metadata.
    pub own: Arc<FarEntry>,
    /// Hash values of all names that were announced in it, where others may be removed. Two names of one value only keep
    /// an entry from being removed.
    seen: Option<Mutex<HashSet<u64>>>,
    /// Announced entries that are not finished.
    entries: Mutex<HashMap<CString, Arc<FarEntry>>>,
}

impl FarDir {
    /// `own`: its own record; `remembers`: names that are not announced in it may be removed.
    pub fn new(number: u64, own: EntryRecord, remembers: bool) -> FarDir {
        let entries = Mutex::default();
        let own = Arc::new(FarEntry::new(own, &Arc::default(), 0));
        FarDir { number, own, entries, seen: remembers.then(Mutex::default) }
    }

    /// Records that a name was announced in it.
    pub fn saw(&self, name: &CStr) {
        if let Some(seen) = &self.seen {
            let mut seen = seen.lock();
            let value = seen.hasher().hash_one(name);
            seen.insert(value);
        }
    }

    /// Returns whether a name was announced in it.
    pub fn has_seen(&self, name: &CStr) -> bool {
        self.seen.as_ref().is_some_and(|seen| {
            let seen = seen.lock();
            seen.contains(&seen.hasher().hash_one(name))
        })
    }

    /// Adds announced entries of one chunk. Returns their names and kinds, and whether each is new: a name that is not
    /// finished and comes again, as from an argument that is given twice or a listing that repeats it, is left out.
    ///
    /// # Errors
    /// EINVAL for a zero byte in a name.
    pub fn add(
        &self,
        records: Vec<EntryRecord>,
        chunk: &Arc<FarChunk>,
    ) -> io::Result<Vec<(CString, Kind, bool)>> {
        let mut names = Vec::with_capacity(records.len());
        let mut repeated = Vec::new();
        let mut entries = self.entries.lock();
        for (index, mut record) in records.into_iter().enumerate() {
            let (name, kind) = (CString::new(std::mem::take(&mut record.name))?, record.meta.kind);
            self.saw(&name);
            let entry = Arc::new(FarEntry::new(record, chunk, index as u8));
            let is_new = !entries.contains_key(&name);
            match is_new {
                true => drop(entries.insert(name.clone(), entry)),
                false => repeated.push(entry),
            }
            names.push((name, kind, is_new));
        }
        drop(entries);
        for entry in repeated {
            entry.looked_at(Wish::Nothing);
            chunk.consumed(entry.unasked.load(Ordering::Relaxed));
            chunk.settled(entry.index, false);
        }
        Ok(names)
    }

    /// # Errors
    /// ENOENT: none of that name was announced, or it is finished.
    pub fn get(&self, name: &CStr) -> io::Result<Arc<FarEntry>> {
        let found = self.entries.lock().get(name).map(Arc::clone);
        found.ok_or_else(|| io::Error::from_raw_os_error(errno::ENOENT))
    }

    /// Returns whether none of these names is left.
    pub fn is_finished(&self, names: &[(CString, Kind)]) -> bool {
        let entries = self.entries.lock();
        !names.iter().any(|(name, _)| entries.contains_key(name))
    }

    /// Records that an entry waits for another one, and not for content.
    pub fn handed_on(&self, name: &CStr) {
        if let Ok(entry) = self.get(name) {
            entry.looked_at(Wish::Nothing);
        }
    }

    /// Ends an entry: all is done that can be.
    pub fn finished(&self, name: &CStr) {
        let removed = self.entries.lock().remove(name);
        if let Some(entry) = removed {
            entry.looked_at(Wish::Nothing);
            entry.chunk.consumed(entry.unasked.load(Ordering::Relaxed));
            entry.cancel();
            if !entry.arrives.swap(true, Ordering::AcqRel) {
                entry.chunk.settled(entry.index, false);
            }
        }
    }
}

/// An announced entry.
pub struct FarEntry {
    pub meta: Meta,
    /// Text of a symlink; `None` of what is none.
    text: Option<CString>,
    /// Names and values of extended attributes.
    pub xattrs: Vec<(CString, Vec<u8>)>,
    /// Hash of the content, where contents are compared.
    pub hash: Option<u128>,
    /// Where the content was asked from, and where it begins.
    asked_from: AtomicU64,
    begins_at: AtomicU64,
    /// Content that has come.
    content: Mutex<Option<FarContent>>,
    /// The same, if it comes in pieces.
    pieces: OnceLock<Arc<FarPieces>>,
    /// The file that it replaces, if only differences from that are asked for.
    delta: OnceLock<DeltaBasis>,
    /// Bytes of it that came without being asked for piece by piece.
    unasked: AtomicU64,
    chunk: Arc<FarChunk>,
    index: u8,
    looked_at: AtomicBool,
    /// The other end was told, or will be, that its source may be removed.
    arrives: AtomicBool,
}

impl FarEntry {
    fn new(record: EntryRecord, chunk: &Arc<FarChunk>, index: u8) -> FarEntry {
        let EntryRecord { meta, text, xattrs, content, hash, .. } = record;
        let xattrs =
            xattrs.into_iter().filter_map(|(name, value)| Some((c_string(&name).ok()?, value)));
        FarEntry {
            meta,
            text: (!text.is_empty()).then(|| c_string(&text).unwrap_or_default()),
            xattrs: xattrs.collect(),
            hash,
            asked_from: AtomicU64::new(0),
            begins_at: AtomicU64::new(0),
            unasked: AtomicU64::new(content.as_ref().map_or(0, |content| content.len() as u64)),
            content: Mutex::new(content.map(FarContent::Whole)),
            pieces: OnceLock::new(),
            delta: OnceLock::new(),
            chunk: Arc::clone(chunk),
            index,
            looked_at: AtomicBool::new(false),
            arrives: AtomicBool::new(false),
        }
    }

    /// Records that [`FarEntry::arrived`] will be called, although the entry is finished before.
    pub fn arrives_later(&self) {
        self.arrives.store(true, Ordering::Release);
    }

    /// Records that it is complete at the target, checked and named: its source may be removed.
    pub fn arrived(&self) {
        self.arrives.store(true, Ordering::Release);
        self.chunk.settled(self.index, true);
    }

    /// Returns the text of a symlink.
    pub fn text(&self) -> CString {
        self.text.clone().unwrap_or_default()
    }

    /// Returns whether its content has not come. What is empty needs none.
    pub fn lacks_content(&self) -> bool {
        self.meta.size > 0 && self.content.lock().is_none()
    }

    /// Returns whether any of its content has come.
    pub fn has_come(&self) -> bool {
        self.content.lock().is_some()
    }

    /// Asks for the content from an offset on, if it is asked for at all; `prefix`: hash of what is before it here.
    pub fn asks_from(&self, offset: u64, prefix: Option<u128>) {
        self.asked_from.store(offset, Ordering::Release);
        if let Some(answers) = &self.chunk.answers {
            answers.rest(self.chunk.number, self.index, offset, prefix);
        }
    }

    /// Records where the content begins. Returns whether it can.
    pub fn begin_at(&self, offset: u64) -> bool {
        let is_asked = offset == 0 || offset == self.asked_from.load(Ordering::Acquire);
        if is_asked && !self.has_come() {
            self.begins_at.store(offset, Ordering::Release);
        }
        is_asked && !self.has_come()
    }

    /// Returns where the content begins: it goes on what is there.
    pub fn begins_at(&self) -> u64 {
        self.begins_at.load(Ordering::Acquire)
    }

    /// Hands over content that has come: all of it, or what has come so far. Returns where the rest goes.
    ///
    /// # Errors
    /// Differences that are none of the file.
    pub fn bring(
        &self,
        first: Piece,
        is_all: bool,
        room: &Arc<PiecesRoom>,
    ) -> Result<Option<Arc<FarPieces>>, ProtocolError> {
        self.unasked.store(first.bytes(), Ordering::Relaxed);
        if let (Some(answers), Some(basis)) = (&self.chunk.answers, self.delta.get()) {
            answers.release_signs(basis.reserved);
        }
        let (content, pieces) = match first {
            Piece::Bytes(bytes) if is_all => (FarContent::Whole(bytes), None),
            first => {
                let pieces = Arc::new(FarPieces::new(self, room, first)?);
                let _ = self.pieces.set(Arc::clone(&pieces));
                (FarContent::Pieces(Arc::clone(&pieces)), Some(pieces))
            }
        };
        *self.content.lock() = Some(content);
        Ok(pieces.filter(|pieces| !is_all || pieces.is_delta()))
    }

    /// Returns the file that it replaces, if only differences from that are asked for.
    pub fn delta(&self) -> Option<&DeltaBasis> {
        self.delta.get()
    }

    /// Asks for differences from a file that it replaces: the content is asked for by [`FarEntry::looked_at`].
    pub fn asks_for_delta(&self, basis: DeltaBasis, signs: Vec<BlockSign>) {
        let (chunk, index) = (self.chunk.number, self.index);
        let first = Signs { chunk, index, basis: Some(basis.basis), first: 0, blocks: signs };
        if let (Some(answers), Ok(())) = (&self.chunk.answers, self.delta.set(basis)) {
            answers.signs(first);
        }
    }

    /// Reserves memory of the other end for hashes of so many blocks, until it begins to send.
    pub fn reserves_signs(&self, blocks: u64) -> bool {
        self.chunk.answers.as_ref().is_some_and(|answers| answers.reserve_signs(blocks))
    }

    /// Sends further hashes of blocks.
    pub fn signs(&self, first: u64, blocks: Vec<BlockSign>) {
        let (chunk, index) = (self.chunk.number, self.index);
        if let Some(answers) = &self.chunk.answers {
            answers.signs(Signs { chunk, index, basis: None, first, blocks });
        }
    }

    /// Answers a question with hashes of small blocks.
    pub fn fine(&self, hashes: Vec<u64>) {
        if let Some(answers) = &self.chunk.answers {
            answers.fine(self.chunk.number, self.index, hashes);
        }
    }

    /// Records that what patches made was checked. If it is wrong, the content comes again as a whole.
    pub fn checked(&self, is_right: bool) {
        if let (Some(answers), Some(pieces)) = (&self.chunk.answers, self.pieces.get()) {
            pieces.is_ended.store(is_right, Ordering::Release);
            if !is_right {
                pieces.restart();
            }
            answers.checked(self.chunk.number, self.index, is_right);
        }
    }

    /// Tells the other end that what has not come of the content is not wanted.
    fn cancel(&self) {
        if let (Some(pieces), Some(answers)) = (self.pieces.get(), &self.chunk.answers)
            && !pieces.is_ended.load(Ordering::Acquire)
        {
            answers.cancel(self.chunk.number, self.index);
        }
    }

    /// Returns whether the target was looked at before.
    pub fn is_looked_at(&self) -> bool {
        self.looked_at.load(Ordering::Acquire)
    }

    /// Takes the content.
    ///
    /// # Errors
    /// EAGAIN: it has not come.
    pub fn take(self: &Arc<Self>) -> io::Result<FarFile> {
        let empty = (self.meta.size == 0).then(|| FarContent::Whole(Vec::new()));
        let content = self.content.lock().take().or(empty);
        let content = content.ok_or_else(|| io::Error::from_raw_os_error(errno::EAGAIN))?;
        Ok(FarFile { entry: Arc::clone(self), content })
    }

    /// Records the first look at the target. Returns whether it was the first.
    pub fn looked_at(&self, wish: Wish) -> bool {
        let first = !self.looked_at.swap(true, Ordering::AcqRel);
        if first {
            self.chunk.looked_at(match wish {
                Wish::Nothing => None,
                Wish::Content if self.delta.get().is_some() => Some(self.index | WANT_DELTA),
                Wish::Content => Some(self.index),
            });
        }
        first
    }
}

/// What is wanted of an entry that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Nothing,
    Content,
}

/// A file that an entry replaces, as it was when its first hashes were sent.
#[derive(Clone, Copy, Debug)]
pub struct DeltaBasis {
    pub basis: Basis,
    pub identity: (u64, u64),
    /// Number of blocks whose hashes were sent then.
    pub signed: u64,
    /// Memory of the other end was reserved for so many.
    pub reserved: u64,
}

/// The entries that came in one message, which are answered by one.
#[derive(Default)]
pub struct FarChunk {
    number: u64,
    entries: usize,
    /// Entries that were not looked at.
    left: AtomicUsize,
    wanted: Mutex<Vec<u8>>,
    answers: Option<Arc<dyn Answers>>,
    /// The other end removes its entries when they are complete here.
    tells_arrivals: bool,
}

/// What the target end tells of a chunk.
pub trait Answers: Send + Sync {
    /// All entries of a chunk were looked at; the numbers of those whose content is wanted, in rising order.
    fn wanted(&self, chunk: u64, entries: usize, wanted: Vec<u8>);
    /// Content that came without being asked for piece by piece was written or given up.
    fn consumed(&self, bytes: u64);
    /// So many bytes more of a file may be sent.
    fn more(&self, chunk: u64, index: u8, bytes: u64);
    /// A file is wanted from an offset on; `prefix`: the hash of what is there.
    fn rest(&self, chunk: u64, index: u8, offset: u64, prefix: Option<u128>);
    /// Reserves memory of the other end for hashes of so many blocks. Returns whether there is any.
    fn reserve_signs(&self, blocks: u64) -> bool;
    /// The other end needs that memory no longer.
    fn release_signs(&self, blocks: u64);
    /// Sends hashes of blocks.
    fn signs(&self, signs: Signs);
    /// Answers a question with hashes of small blocks.
    fn fine(&self, chunk: u64, index: u8, hashes: Vec<u64>);
    /// What patches made was checked.
    fn checked(&self, chunk: u64, index: u8, is_right: bool);
    /// The rest of a file is not wanted.
    fn cancel(&self, chunk: u64, index: u8);
    /// An entry is complete, so that its source may be removed, or never will be.
    fn settled(&self, chunk: u64, index: u8, is_complete: bool);
}

impl FarChunk {
    /// `tells_arrivals`: the other end removes its entries when they are complete here.
    pub fn new(
        number: u64,
        entries: usize,
        answers: Arc<dyn Answers>,
        tells_arrivals: bool,
    ) -> FarChunk {
        let (left, wanted) = (AtomicUsize::new(entries), Mutex::default());
        FarChunk { number, entries, left, wanted, answers: Some(answers), tells_arrivals }
    }

    fn settled(&self, index: u8, is_complete: bool) {
        if let Some(answers) = self.answers.as_ref().filter(|_| self.tells_arrivals) {
            answers.settled(self.number, index, is_complete);
        }
    }

    fn looked_at(&self, wanted: Option<u8>) {
        let Some(answers) = &self.answers else { return };
        self.wanted.lock().extend(wanted);
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let mut wanted = std::mem::take(&mut *self.wanted.lock());
            wanted.sort_unstable_by_key(|at| at & !WANT_DELTA);
            answers.wanted(self.number, self.entries, wanted);
        }
    }

    fn consumed(&self, bytes: u64) {
        if let Some(answers) = self.answers.as_ref().filter(|_| bytes > 0) {
            answers.consumed(bytes);
        }
    }
}

/// Content of a file of the other end.
pub enum FarContent {
    /// All of it.
    Whole(Vec<u8>),
    /// It comes in pieces.
    Pieces(Arc<FarPieces>),
}

/// A file of the other end whose content can be read.
pub struct FarFile {
    pub entry: Arc<FarEntry>,
    pub content: FarContent,
}

/// A piece of content, or the end.
pub enum Piece {
    Bytes(Vec<u8>),
    /// Parts of it, some of which are in the file that it replaces; also says what follows.
    Patch(Patch),
    /// The file is complete, and unchanged since it was opened.
    Complete,
    /// It changed while it was read.
    Changed,
    /// It cannot be read. The other end has reported it.
    Lost,
}

impl Piece {
    /// Returns the bytes that count against what may be on the way.
    pub fn bytes(&self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::Patch(patch) => weight(&patch.ops),
            Piece::Complete | Piece::Changed | Piece::Lost => 0,
        }
    }
}

/// Bytes of content behind first pieces that may be on the way or wait to be written, of all files ...
const ROOM_BYTES: u64 = 16 << 20;
/// ... and for each lane that was opened because windows of 2 MiB are too little for the round trip.
const LANE_BYTES: u64 = 4 << 20;
/// What one file that is written may always have of it.
pub(crate) const WINDOW_BYTES_MIN: u64 = 1 << 20;
/// Bytes after which the other end is told that there is room again.
pub(crate) const TOLD_BYTES: u64 = 1 << 20;
/// Room that a patch, which is not divided, waits for at most.
const PATCH_BYTES_MAX: u64 = 512 << 10;

/// Room for content behind first pieces: files share it.
#[derive(Default)]
pub struct PiecesRoom {
    used: AtomicU64,
    files: AtomicU64,
    /// Lanes besides the first one.
    lanes: AtomicU64,
}

impl PiecesRoom {
    fn bytes(&self) -> u64 {
        ROOM_BYTES.max(LANE_BYTES * (1 + self.lanes.load(Ordering::Relaxed)))
    }

    /// Records that content comes on another lane.
    pub fn add_lane(&self) {
        self.lanes.fetch_add(1, Ordering::Relaxed);
    }
}

/// Content that comes in pieces while it is written, over one or more lanes; or differences, in their order.
pub struct FarPieces {
    queue: Mutex<PieceQueue>,
    arrived: Condvar,
    /// The last piece has come.
    is_ended: AtomicBool,
    /// Of differences: sizes of the basis and of the file, and bytes that patches stand for so far.
    delta: Option<(u64, u64, AtomicU64)>,
    chunk: Arc<FarChunk>,
    index: u8,
    size: u64,
    room: Arc<PiecesRoom>,
}

const TOO_MUCH: ProtocolError = ProtocolError("more content is sent than there is room for");

/// The pieces of one file.
#[derive(Default)]
struct PieceQueue {
    /// In their order.
    ready: VecDeque<Piece>,
    /// Differences come: offsets below are sums of their weights.
    patches: bool,
    /// Pieces by their offsets that came before an earlier one.
    early: BTreeMap<u64, (Vec<u8>, ContentState)>,
    /// Offset of the next piece.
    next: u64,
    /// Offset up to which the other end may send.
    granted: u64,
    /// Offset up to which content was written.
    taken: u64,
    /// Bytes of the room that are this file's.
    used: u64,
}

impl FarPieces {
    fn new(
        of: &FarEntry,
        room: &Arc<PiecesRoom>,
        first: Piece,
    ) -> Result<FarPieces, ProtocolError> {
        let (chunk, index, size) = (Arc::clone(&of.chunk), of.index, of.meta.size);
        let bytes = first.bytes();
        let basis = of.delta.get().filter(|_| matches!(first, Piece::Patch(_)));
        let delta = basis.map(|it| (it.basis.size, size, AtomicU64::new(0)));
        let is_ended = !matches!(first, Piece::Bytes(_) | Piece::Patch(_));
        room.files.fetch_add(1, Ordering::AcqRel);
        let pieces = FarPieces {
            queue: Mutex::default(),
            arrived: Condvar::new(),
            is_ended: AtomicBool::new(is_ended),
            delta,
            chunk,
            index,
            size,
            room: Arc::clone(room),
        };
        let mut patches = false;
        if let Piece::Patch(patch) = &first {
            pieces.check(patch)?;
            patches = patch.state == ContentState::Goes;
        }
        let ready = VecDeque::from([first]);
        *pieces.queue.lock() =
            PieceQueue { ready, patches, next: bytes, granted: bytes, ..PieceQueue::default() };
        Ok(pieces)
    }

    /// Returns whether they are differences, after which the content may come again.
    pub fn is_delta(&self) -> bool {
        self.delta.is_some()
    }

    /// Checks that a patch stays within the basis and the file.
    ///
    /// # Errors
    /// It does not, or none was asked for.
    fn check(&self, patch: &Patch) -> Result<(), ProtocolError> {
        let Some((basis_size, size, sum)) = &self.delta else {
            return Err(ProtocolError("differences were not asked for"));
        };
        let mut at = sum.load(Ordering::Acquire);
        for op in &patch.ops {
            if op.basis_end().is_none_or(|end| end > *basis_size) {
                return Err(ProtocolError("a range is not in the file"));
            }
            at = at.saturating_add(op.bytes());
        }
        sum.store(at, Ordering::Release);
        match at > *size || patch.state == ContentState::Complete && at != *size {
            true => Err(ProtocolError("differences make another size than announced")),
            false => Ok(()),
        }
    }

    /// Adds a patch that has come.
    ///
    /// # Errors
    /// It is none that may come.
    pub fn push_patch(&self, patch: Patch) -> Result<(), ProtocolError> {
        let mut queue = self.queue.lock();
        let is_nothing = patch.ops.is_empty() && patch.state == ContentState::Goes;
        if !queue.patches || is_nothing {
            return Err(ProtocolError("differences were not asked for"));
        }
        self.check(&patch)?;
        queue.next += weight(&patch.ops);
        if queue.next > queue.granted {
            return Err(TOO_MUCH);
        }
        let end = match patch.state {
            // The other end waits for what they are checked to be.
            ContentState::Goes => None,
            ContentState::Complete => {
                queue.patches = false;
                None
            }
            ContentState::Changed => Some(Piece::Changed),
            ContentState::Failed => Some(Piece::Lost),
        };
        self.is_ended.fetch_or(end.is_some(), Ordering::AcqRel);
        queue.ready.push_back(end.unwrap_or(Piece::Patch(patch)));
        drop(queue);
        self.arrived.notify_one();
        Ok(())
    }

    /// Begins again: all of the content comes, in pieces.
    fn restart(&self) {
        let used = std::mem::take(&mut *self.queue.lock()).used;
        self.room.used.fetch_sub(used, Ordering::AcqRel);
    }

    /// Lets the other end send more, if there is room; `is_needed`: in any case if nothing is on the way.
    fn grant(&self, is_needed: bool) {
        let files = self.room.files.load(Ordering::Acquire).max(1);
        let room = self.room.bytes();
        let share = (room / files).max(WINDOW_BYTES_MIN);
        let mut queue = self.queue.lock();
        let ahead = queue.granted.saturating_sub(queue.taken);
        let (left, low) = match queue.patches {
            true => (u64::MAX, PATCH_BYTES_MAX),
            false => (self.size.saturating_sub(queue.granted), 0),
        };
        let mut more = share.saturating_sub(ahead).min(left);
        if more == 0 || more < TOLD_BYTES.min(left) && ahead > low {
            return;
        }
        let used = self.room.used.fetch_add(more, Ordering::AcqRel);
        if used + more > room {
            let least = if is_needed && ahead <= low { WINDOW_BYTES_MIN.min(more) } else { 0 };
            self.room.used.fetch_sub(more - least, Ordering::AcqRel);
            more = least;
        }
        queue.granted += more;
        queue.used += more;
        drop(queue);
        if let Some(answers) = self.chunk.answers.as_ref().filter(|_| more > 0) {
            answers.more(self.chunk.number, self.index, more);
        }
    }

    /// Adds a piece that has come.
    ///
    /// # Errors
    /// It is none that may come.
    pub fn push(
        &self,
        offset: u64,
        content: Vec<u8>,
        state: ContentState,
    ) -> Result<(), ProtocolError> {
        let mut queue = self.queue.lock();
        let end = offset.saturating_add(content.len() as u64);
        let is_nothing = content.is_empty() && state == ContentState::Goes;
        if offset < queue.next || is_nothing || queue.early.contains_key(&offset) {
            return Err(ProtocolError("a piece of content came twice"));
        }
        if end > queue.granted || queue.patches || self.is_ended.load(Ordering::Acquire) {
            return Err(TOO_MUCH);
        }
        queue.early.insert(offset, (content, state));
        loop {
            let next = queue.next;
            let Some((content, state)) = queue.early.remove(&next) else { break };
            queue.next += content.len() as u64;
            if !content.is_empty() {
                queue.ready.push_back(Piece::Bytes(content));
            }
            match state {
                ContentState::Goes => continue,
                ContentState::Complete => queue.ready.push_back(Piece::Complete),
                ContentState::Changed => queue.ready.push_back(Piece::Changed),
                ContentState::Failed => queue.ready.push_back(Piece::Lost),
            }
            self.is_ended.store(true, Ordering::Release);
            queue.early.clear();
        }
        drop(queue);
        self.arrived.notify_one();
        Ok(())
    }

    /// Returns whether the last piece has come.
    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }

    /// Lets the other end send more before content is written, if there is room.
    pub fn prepare(&self) {
        // Differences wait until somebody puts them together.
        if !self.is_delta() {
            self.grant(false);
        }
    }

    /// Begins to read: the other end may send.
    pub fn begin(&self) {
        self.grant(true);
    }

    /// Records that bytes were written.
    pub fn taken(&self, bytes: u64) {
        let mut queue = self.queue.lock();
        queue.taken += bytes;
        let freed = bytes.min(queue.used);
        queue.used -= freed;
        drop(queue);
        self.room.used.fetch_sub(freed, Ordering::AcqRel);
        self.grant(true);
    }

    /// Waits for the next piece; `None` once `is_over`.
    pub fn next(&self, is_over: impl Fn() -> bool) -> Option<Piece> {
        const LOOK: Duration = Duration::from_millis(50);
        let mut queue = self.queue.lock();
        loop {
            if let Some(piece) = queue.ready.pop_front() {
                return Some(piece);
            }
            if is_over() {
                return None;
            }
            self.arrived.wait_for(&mut queue, LOOK);
        }
    }
}

impl Drop for FarPieces {
    fn drop(&mut self) {
        self.room.used.fetch_sub(self.queue.get_mut().used, Ordering::AcqRel);
        self.room.files.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_core::unit::Time;
    use hakobu_remote::delta::PatchOp;

    struct Granted(Mutex<Vec<u64>>);

    impl Answers for Granted {
        fn wanted(&self, _: u64, _: usize, _: Vec<u8>) {}
        fn consumed(&self, _: u64) {}
        fn more(&self, _: u64, _: u8, bytes: u64) {
            self.0.lock().push(bytes);
        }
        fn rest(&self, _: u64, _: u8, _: u64, _: Option<u128>) {}
        fn reserve_signs(&self, _: u64) -> bool {
            true
        }
        fn release_signs(&self, _: u64) {}
        fn signs(&self, _: Signs) {}
        fn fine(&self, _: u64, _: u8, _: Vec<u64>) {}
        fn checked(&self, _: u64, _: u8, _: bool) {}
        fn cancel(&self, _: u64, _: u8) {}
        fn settled(&self, _: u64, _: u8, _: bool) {}
    }

    fn record(size: u64) -> EntryRecord {
        let meta = Meta::bare(Kind::File, size, Time::default());
        EntryRecord {
            name: b"f".to_vec(),
            meta,
            text: vec![],
            xattrs: vec![],
            content: None,
            hash: None,
        }
    }

    /// Differences of a file of this size, of which an empty one has come.
    fn differences(size: u64, room: &Arc<PiecesRoom>) -> (FarEntry, Arc<FarPieces>, Arc<Granted>) {
        let granted = Arc::new(Granted(Mutex::default()));
        let chunk = FarChunk::new(1, 1, Arc::clone(&granted) as Arc<dyn Answers>, false);
        let of = FarEntry::new(record(size), &Arc::new(chunk), 0);
        let basis = Basis::of(size, 1, false).unwrap();
        of.asks_for_delta(DeltaBasis { basis, identity: (1, 1), signed: 0, reserved: 0 }, vec![]);
        let first = Piece::Patch(patch(&[]));
        let pieces = of.bring(first, false, room).unwrap().unwrap();
        (of, pieces, granted)
    }

    fn patch(literals: &[usize]) -> Patch {
        let ops = literals.iter().map(|length| PatchOp::Literal(vec![1; *length])).collect();
        Patch { ops, state: ContentState::Goes, hash: 0 }
    }

    fn pieces(size: u64, room: &Arc<PiecesRoom>) -> (FarPieces, Arc<Granted>) {
        let granted = Arc::new(Granted(Mutex::default()));
        let chunk = FarChunk::new(1, 1, Arc::clone(&granted) as Arc<dyn Answers>, false);
        let of = FarEntry::new(record(size), &Arc::new(chunk), 0);
        (FarPieces::new(&of, room, Piece::Bytes(vec![0; 10])).unwrap(), granted)
    }

    fn lengths(of: &FarPieces) -> Vec<usize> {
        let length = |piece: &Piece| if let Piece::Bytes(it) = piece { it.len() } else { 0 };
        of.queue.lock().ready.iter().map(length).collect()
    }

    #[test]
    fn pieces_of_several_lanes_are_put_in_order() {
        let (of, granted) = pieces(100, &Arc::default());
        assert!(of.push(10, vec![1; 5], ContentState::Goes).is_err(), "nothing was granted");
        of.begin();
        assert_eq!(*granted.0.lock(), [90]);
        of.push(25, vec![1; 5], ContentState::Goes).unwrap();
        of.push(30, Vec::new(), ContentState::Changed).unwrap();
        assert!(of.push(25, vec![1; 5], ContentState::Goes).is_err(), "twice");
        assert!(of.push(40, Vec::new(), ContentState::Goes).is_err(), "nothing");
        assert!(of.push(40, vec![1; 61], ContentState::Goes).is_err(), "too much");
        assert!(of.push(u64::MAX, vec![1; 61], ContentState::Goes).is_err(), "too far");
        assert_eq!((lengths(&of), of.is_ended()), (vec![10], false));
        of.push(10, vec![1; 15], ContentState::Goes).unwrap();
        assert_eq!((lengths(&of), of.is_ended()), (vec![10, 15, 5, 0], true));
        assert!(of.push(30, vec![1], ContentState::Goes).is_err(), "after the end");
    }

    /// A patch is not divided: there is room for the largest one whenever all others were written.
    #[test]
    fn differences_come_in_their_order_and_content_after_them() {
        let room = Arc::default();
        let _others: Vec<_> = (0..32).map(|_| pieces(1 << 40, &room)).collect();
        let (_, refused, _) = differences(1 << 30, &room);
        assert!(refused.push_patch(patch(&[1])).is_err(), "nothing was granted");
        let (of, pieces, granted) = differences(1 << 30, &room);
        pieces.begin();
        let sum = |granted: &Granted| granted.0.lock().iter().sum::<u64>();
        assert_eq!(sum(&granted), WINDOW_BYTES_MIN);
        for _ in 0..8 {
            pieces.push_patch(patch(&[200 << 10])).unwrap();
            pieces.taken(16 + (200 << 10));
        }
        assert!(sum(&granted) - 8 * (16 + (200 << 10)) >= PATCH_BYTES_MAX);
        assert!(pieces.push(0, vec![1], ContentState::Goes).is_err(), "no content was asked for");
        of.checked(false);
        assert!(pieces.push_patch(patch(&[1])).is_err(), "differences are over");
        pieces.begin();
        pieces.push(3, vec![1; 2], ContentState::Goes).unwrap();
        pieces.push(0, vec![1; 3], ContentState::Goes).unwrap();
        assert_eq!(lengths(&pieces), [3, 2]);
    }

    #[test]
    fn files_share_the_room_and_none_starves() {
        let room = Arc::default();
        let (first, granted) = pieces(1 << 40, &room);
        first.begin();
        assert_eq!(*granted.0.lock(), [ROOM_BYTES - 10]);
        let (second, other) = pieces(1 << 40, &room);
        second.prepare();
        assert!(other.0.lock().is_empty());
        second.taken(10);
        assert_eq!(*other.0.lock(), [WINDOW_BYTES_MIN]);
        // What the first one leaves is the second one's, up to its half.
        first.taken(ROOM_BYTES / 2 + WINDOW_BYTES_MIN);
        assert_eq!(granted.0.lock().len(), 2);
        second.taken(WINDOW_BYTES_MIN);
        assert_eq!(other.0.lock().len(), 2);
        drop((first, second));
        let left = (room.used.load(Ordering::Relaxed), room.files.load(Ordering::Relaxed));
        assert_eq!(left, (0, 0));
    }
}
