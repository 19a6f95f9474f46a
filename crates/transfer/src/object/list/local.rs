//! The listing of a local tree in the order of keys: a folder sorts as `name/`, so `a-b` comes before `a/x`, and that
//! before `a0`. Every entry is reached from the open top, component by component; no symlink is followed unless
//! requested. Folders are read and names examined ahead, by as many workers as pay.

use super::{Item, Listing, NameFilter, PAGE_ENTRIES, Page, Trouble, key_of};
use crate::object::Entry;
use crate::policy::{NameRange, Symlinks};
use crate::publish::{self, TempNames};
use hakobu_core::error::{Cause, ErrorClass, Operation, Problem};
use hakobu_core::limit::{Capacity, Gate, WorkKind};
use hakobu_core::meter::{Activity, Meter, Phase};
use hakobu_core::unit::{Jobs, Kind, Meta};
use hakobu_explain::tune::{Tuner, WorkCounters};
use hakobu_sys::dir::{self, Reader};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, errno, meta, process};
use hakobu_tree::handle::{DirectoryHandle, HandleBudget};
use parking_lot::{Condvar, Mutex};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Sender;

/// Folders that are listed as entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dirs {
    /// None.
    #[default]
    No,
    /// Those without any listed entry directly in them.
    Empty,
    /// All but the top.
    All,
}

/// Parameters of listing a local tree.
#[derive(Default)]
pub struct LocalQuery {
    /// Handling of symlinks: skipped with a notice, entries of kind `Symlink`, or followed.
    pub symlinks: Symlinks,
    /// Folders on other file systems than the top are skipped with a notice.
    pub one_file_system: bool,
    /// Folders that are listed as entries.
    pub dirs: Dirs,
    /// Folders are not entered; all of them are entries and `dirs` is ignored.
    pub flat: bool,
    /// Devices, FIFOs and sockets are entries (of a target, where they are in the way); otherwise they are skipped
    /// with a notice.
    pub specials: bool,
    /// Names sort by their percent-encoded keys.
    pub encode: bool,
    /// Temporary files of dead runs of this machine (in a target) are removed.
    pub clear_leftovers: bool,
    /// Names that the rules hide are skipped, and hidden folders are not entered.
    pub name_filter: Option<NameFilter>,
    /// Only entries whose sort keys are in this range. Folders outside of it are not entered. Problems come with every
    /// range that they may affect: a folder that cannot be read with all ranges that meet it.
    pub range: NameRange,
}

// Emits a local tree in the order of keys, folder by folder.

/// The listing ended early: its reader is gone.
struct Gone;

/// Lists the tree below `top`; `shown` is its path, starting as the user typed it. Our own temporary names are never
/// listed.
///
/// Problems: a folder that cannot be read is a problem of the name `folder/`, an entry that cannot be examined one of
/// its name; an entry skipped on purpose is a problem of class `Notice`.
pub fn local(top: Arc<OwnedFd>, shown: &Path, query: LocalQuery) -> Listing {
    on_workers(Jobs::Auto, top, shown, query)
}

pub(super) fn on_workers(
    jobs: Jobs,
    top: Arc<OwnedFd>,
    shown: &Path,
    query: LocalQuery,
) -> Listing {
    let (sender, listing) = Listing::channel(query.encode, false);
    let shown = shown.to_owned();
    Listing::start(sender, "list-local", move |sender| run(&top, &shown, query, jobs, sender));
    listing
}

/// Walks the tree with `jobs` workers and sends its entries.
fn run(top: &OwnedFd, shown: &Path, query: LocalQuery, jobs: Jobs, sender: Sender<Page>) {
    let (reading, entered) = ReadOptions::begin(top, shown, query, &mut Reader::default());
    let ahead = Ahead::new(reading, jobs);
    std::thread::scope(|scope| {
        let lead = Lead::new(scope, &ahead);
        let (page, prefix, frames) = (Vec::new(), Vec::new(), Vec::new());
        let mut walk = Walk { ahead: &ahead, lead, sender, page, prefix, frames };
        if walk.tree(entered).is_ok() && walk.flush().is_ok() {
            let _ = walk.sender.blocking_send(Page::End);
        }
        ahead.end();
    });
}

struct Walk<'scope, 'env, 'a> {
    ahead: &'env Ahead<'a>,
    lead: Lead<'scope, 'env, 'a>,
    sender: Sender<Page>,
    page: Vec<Item>,
    /// The path of the current folder, with a slash at its end.
    prefix: Vec<u8>,
    frames: Vec<Frame>,
}

/// A folder on the current path.
struct Frame {
    folder: Arc<SortedFolder>,
    /// Index of the next piece.
    next: usize,
    prefix_len: usize,
}

impl Walk<'_, '_, '_> {
    fn tree(&mut self, top: Entered) -> Result<(), Gone> {
        if let Entered::Folder(folder, _) = &top {
            self.ahead.open(folder);
        }
        self.entered(top)?;
        while let Some(frame) = self.frames.last_mut() {
            self.prefix.truncate(frame.prefix_len);
            let (folder, index) = (Arc::clone(&frame.folder), frame.next);
            frame.next += 1;
            let Some(piece) = folder.pieces.get(index) else {
                self.ahead.close(&folder);
                self.frames.pop();
                continue;
            };
            match self.lead.need(&folder, index) {
                Some(Slot::Entered(entered)) => {
                    if let Some((name, _)) = folder.names.get(piece.names.start) {
                        self.prefix.extend_from_slice(name.to_bytes());
                        self.prefix.push(b'/');
                    }
                    self.entered(entered)?;
                }
                Some(Slot::Looked(found)) => {
                    self.files(&folder, piece.names.clone(), found)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Handles the folder at `prefix`, which was read or examined.
    fn entered(&mut self, entered: Entered) -> Result<(), Gone> {
        let prefix = self.prefix.clone();
        match entered {
            Entered::Folder(folder, own) => {
                match own {
                    Some(Ok(meta)) => self.entry(&prefix, meta)?,
                    Some(Err(failure)) => self.failed(&prefix, failure)?,
                    None => {}
                }
                self.frames.push(Frame { folder, next: 0, prefix_len: prefix.len() });
                Ok(())
            }
            Entered::Entry(meta) => self.entry(&prefix, meta),
            Entered::Failed(failure) => self.failed(&prefix, failure),
            Entered::TooLarge => Ok(()),
        }
    }

    /// Emits names that are not folders.
    fn files(
        &mut self,
        folder: &SortedFolder,
        names: Range<usize>,
        found: Vec<Result<Meta, NameFailure>>,
    ) -> Result<(), Gone> {
        let (mut found, prefix_len) = (found.into_iter(), self.prefix.len());
        for at in names {
            let Some((name, class)) = folder.names.get(at) else { continue };
            self.prefix.truncate(prefix_len);
            self.prefix.extend_from_slice(name.to_bytes());
            let path = self.prefix.clone();
            match class {
                NameClass::Left(left) => {
                    let (reason, class) = (left.words(), ErrorClass::Notice);
                    self.failed(&path, NameFailure::reason(Operation::Read, reason, class))?;
                }
                _ => match found.next() {
                    Some(Ok(meta)) => self.entry(&path, meta)?,
                    Some(Err(failure)) => self.failed(&path, failure)?,
                    None => {}
                },
            }
        }
        Ok(())
    }

    fn entry(&mut self, name: &[u8], meta: Meta) -> Result<(), Gone> {
        let LocalQuery { range, encode, .. } = &self.ahead.reading.query;
        if !range.is_all() && !range.contains(&key_of(name, *encode)) {
            return Ok(());
        }
        self.push(Ok(Entry { name: name.into(), meta, etag: "".into() }))
    }

    fn failed(&mut self, name: &[u8], failure: NameFailure) -> Result<(), Gone> {
        let NameFailure { operation, cause, class } = failure;
        let source = Some(self.ahead.reading.path(name));
        let problem = Problem { operation, source, target: None, cause, class };
        self.push(Err(Trouble::Problem { name: name.into(), problem }))
    }

    fn push(&mut self, item: Item) -> Result<(), Gone> {
        self.page.push(item);
        if self.page.len() >= PAGE_ENTRIES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Gone> {
        let page = Page::Items(std::mem::take(&mut self.page));
        let sender = &self.sender;
        self.lead.hand_over(|| sender.blocking_send(page)).map_err(|_| Gone)
    }
}

// Reading one folder of a local listing and examining its names; done by workers in any order.

/// Maximum number of folders kept open.
const OPEN_MAX: usize = 128;
/// Maximum number of names examined in one piece.
const PIECE_NAMES_MAX: usize = 16;

/// Parameters of reading folders, shared by all workers.
pub(super) struct ReadOptions<'a> {
    shown: &'a Path,
    /// The query without its name filter.
    query: LocalQuery,
    name_filter: Option<Mutex<NameFilter>>,
    /// Recognises temporary names of dead runs, if these are removed.
    temp_names: Option<TempNames>,
    /// Device of the top.
    device: u64,
}

pub(super) struct NameFailure {
    pub operation: Operation,
    pub cause: Cause,
    pub class: ErrorClass,
}

impl NameFailure {
    fn of(operation: Operation, error: io::Error) -> NameFailure {
        let class = match errno::is(&error, errno::ENOENT) {
            true => ErrorClass::Vanished,
            false => ErrorClass::Partial,
        };
        NameFailure { operation, cause: Cause::System(error), class }
    }

    pub fn reason(operation: Operation, reason: &'static str, class: ErrorClass) -> NameFailure {
        NameFailure { operation, cause: Cause::Reason(reason), class }
    }
}

/// Result of entering a folder.
pub(super) enum Entered {
    /// A folder to walk; with its own entry, if it is one.
    Folder(Arc<SortedFolder>, Option<Result<Meta, NameFailure>>),
    /// Only an entry.
    Entry(Meta),
    Failed(NameFailure),
    /// It has too many names to be read ahead.
    TooLarge,
}

/// A folder that was read, with sorted names.
pub(super) struct SortedFolder {
    parent: Option<Arc<SortedFolder>>,
    /// One component; empty for the top.
    name: CString,
    handle: Arc<DirectoryHandle>,
    pub names: NameBuffer,
    pub pieces: Vec<Piece>,
    /// Indices of the pieces on the path to it.
    pub order: Vec<u32>,
}

/// Names of a folder that are examined together, or one subfolder.
pub(super) struct Piece {
    pub names: Range<usize>,
    pub slot: Mutex<Slot>,
}

/// State of a piece.
pub(super) enum Slot {
    New,
    /// Not begun; only the emitting thread may take it.
    Large,
    /// Taken by a worker.
    Taken,
    /// The results, for each non-folder to examine.
    Looked(Vec<Result<Meta, NameFailure>>),
    Entered(Entered),
}

impl Drop for SortedFolder {
    fn drop(&mut self) {
        // Iterative: recursion over a chain of 100,000 parents would overflow the stack.
        let mut parent = self.parent.take();
        while let Some(mut last) = parent.and_then(Arc::into_inner) {
            parent = last.parent.take();
        }
    }
}

impl SortedFolder {
    /// Returns the path from the root of the listing, with a slash at its end; empty for the top.
    fn prefix(&self) -> Vec<u8> {
        let (mut names, mut here) = (Vec::new(), self);
        while let Some(parent) = here.parent.as_deref() {
            names.push(&*here.name);
            here = parent;
        }
        let mut prefix = Vec::new();
        for name in names.iter().rev() {
            prefix.extend_from_slice(name.to_bytes());
            prefix.push(b'/');
        }
        prefix
    }

    pub fn is_dir(&self, piece: &Piece) -> bool {
        self.names.get(piece.names.start).is_some_and(|(_, class)| class.is_dir())
    }

    fn lies_in(&self, identity: (u64, u64)) -> bool {
        let mut here = Some(self);
        while let Some(folder) = here {
            if folder.handle.identity() == identity {
                return true;
            }
            here = folder.parent.as_deref();
        }
        false
    }
}

impl<'a> ReadOptions<'a> {
    /// Opens and reads the top.
    pub fn begin(
        top: &OwnedFd,
        shown: &'a Path,
        mut query: LocalQuery,
        reader: &mut Reader,
    ) -> (ReadOptions<'a>, Entered) {
        let name_filter = query.name_filter.take().map(Mutex::new);
        let temp_names = query.clear_leftovers.then(TempNames::new);
        let mut reading = ReadOptions { shown, query, name_filter, temp_names, device: 0 };
        let opened =
            CString::new(shown.as_os_str().as_bytes()).map_err(io::Error::from).and_then(|path| {
                let own = dir::open(top.as_fd(), c".", false)?;
                DirectoryHandle::adopt_top(&HandleBudget::new(OPEN_MAX), &path, own)
            });
        let entered = match opened {
            Ok((handle, meta)) => {
                reading.device = meta.dev;
                reading.read(None, 0, CString::default(), handle, None, reader)
            }
            Err(error) => Entered::Failed(NameFailure::of(Operation::List, error)),
        };
        (reading, entered)
    }

    pub fn path(&self, name: &[u8]) -> PathBuf {
        self.shown.join(OsStr::from_bytes(name))
    }

    /// Works on a piece of a folder; a subfolder with more than `names_max` names is not read.
    pub fn work(
        &self,
        folder: &Arc<SortedFolder>,
        index: usize,
        names_max: Option<usize>,
        reader: &mut Reader,
    ) -> Slot {
        let Some(piece) = folder.pieces.get(index) else { return Slot::Looked(Vec::new()) };
        let first = folder.names.get(piece.names.start);
        if let Some((name, NameClass::Dir { follow })) = first {
            return Slot::Entered(self.enter(folder, index, name, follow, names_max, reader));
        }
        let fd = folder.handle.fd();
        let each = piece.names.clone().filter_map(|at| match folder.names.get(at)? {
            (name, NameClass::File { follow }) => Some((name, follow)),
            _ => None,
        });
        Slot::Looked(each.map(|(name, follow)| look(&fd, name, follow)).collect())
    }

    fn enter(
        &self,
        parent: &Arc<SortedFolder>,
        index: usize,
        name: &CStr,
        follow: bool,
        names_max: Option<usize>,
        reader: &mut Reader,
    ) -> Entered {
        let failed =
            |reason, class| Entered::Failed(NameFailure::reason(Operation::List, reason, class));
        let (handle, meta) = match self.open(parent, name, follow) {
            Ok(opened) => opened,
            Err(error) => return Entered::Failed(NameFailure::of(Operation::List, error)),
        };
        if follow && parent.lies_in(handle.identity()) {
            return failed(
                "the symlink points to a directory that contains it",
                ErrorClass::Partial,
            );
        }
        if self.query.one_file_system && meta.dev != self.device {
            return failed("it is on another file system (--one-file-system)", ErrorClass::Notice);
        }
        if self.query.flat {
            return Entered::Entry(meta);
        }
        self.read(Some(parent), index, name.to_owned(), handle, names_max, reader)
    }

    fn open(
        &self,
        parent: &SortedFolder,
        name: &CStr,
        follow: bool,
    ) -> io::Result<(Arc<DirectoryHandle>, Meta)> {
        let above = &parent.handle;
        if !follow {
            return above.child(name);
        }
        // Reopened by its whole path after it was closed: symlinks are allowed there, and its identity is checked.
        let fd = dir::open((*above.fd()?).as_fd(), name, true)?;
        let path = self.path(&[&*parent.prefix(), name.to_bytes(), b"/"].concat());
        let path = CString::new(path.into_os_string().into_encoded_bytes())?;
        DirectoryHandle::adopt_top(above.budget(), &path, fd)
    }

    fn read(
        &self,
        parent: Option<&Arc<SortedFolder>>,
        index: usize,
        name: CString,
        handle: Arc<DirectoryHandle>,
        names_max: Option<usize>,
        reader: &mut Reader,
    ) -> Entered {
        let mut order = parent.map(|parent| parent.order.clone()).unwrap_or_default();
        if parent.is_some() {
            order.push(u32::try_from(index).unwrap_or(u32::MAX));
        }
        let (parent, names, pieces) = (parent.cloned(), NameBuffer::default(), Vec::new());
        let mut folder = SortedFolder { parent, name, handle, names, pieces, order };
        let edge = FolderEdge::of(&self.query, &folder.prefix());
        match self.names(&mut folder, edge.as_ref(), names_max, reader) {
            Ok(true) => {}
            Ok(false) => return Entered::TooLarge,
            Err((operation, error)) => return Entered::Failed(NameFailure::of(operation, error)),
        }
        let wanted = match self.query.dirs {
            Dirs::No => false,
            Dirs::Empty => folder.names.len() == 0,
            Dirs::All => true,
        };
        if let Some(edge) = &edge {
            folder.names.retain(|name, class| edge.wants(name, class.is_dir()));
        }
        let own = (wanted && folder.parent.is_some()).then(|| {
            let found = folder.handle.fd().and_then(|fd| meta::of_fd(&*fd));
            found.map_err(|error| NameFailure::of(Operation::Stat, error))
        });
        folder.names.sort(self.query.encode);
        folder.pieces = divided(&folder.names);
        Entered::Folder(Arc::new(folder), own)
    }

    /// Reads the names to list; returns whether their number stayed within the limit. Names outside of the range remain
    /// where it matters whether there are any.
    fn names(
        &self,
        folder: &mut SortedFolder,
        edge: Option<&FolderEdge<'_>>,
        names_max: Option<usize>,
        reader: &mut Reader,
    ) -> Result<bool, (Operation, io::Error)> {
        let failed = |error| (Operation::List, error);
        let fd = folder.handle.fd().map_err(failed)?;
        let fd = (*fd).as_fd();
        let names = &mut folder.names;
        let read = reader.read_until(fd, |name, kind, _| {
            // We create no directories under such names.
            let is_temp = kind != Kind::Dir && TempNames::is_temp(name);
            if let Some(ours) = self.temp_names.as_ref().filter(|_| is_temp) {
                if ours.is_abandoned(name) {
                    // A file that cannot be removed is left to the next run.
                    drop(dir::unlink(fd, name));
                }
                return ControlFlow::Continue(());
            }
            // It may be a folder: its type may have to be looked up.
            if edge.is_some_and(|edge| !edge.counts_names && !edge.wants(name, false)) {
                return ControlFlow::Continue(());
            }
            let class = match is_temp {
                true => NameClass::Left(Left::Unfinished),
                false => class(&self.query, fd, name, kind),
            };
            names.push(name, class, self.query.encode);
            match names_max.is_some_and(|max| names.len() > max) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        if read.map_err(failed)?.is_some() {
            return Ok(false);
        }
        let Some(name_filter) = &self.name_filter else { return Ok(true) };
        let mut path = folder.prefix();
        let (prefix_len, mut refused) = (path.len(), None);
        // Locked for the whole folder: a name filter caches the folder of the last name.
        let mut name_filter = name_filter.lock();
        folder.names.retain(|name, class| {
            if refused.is_some() {
                return false;
            }
            path.extend_from_slice(name.to_bytes());
            if class.is_dir() {
                path.push(b'/');
            }
            let decision = name_filter.decide(&path);
            path.truncate(prefix_len);
            match decision {
                Ok(decision) => !decision.hide,
                Err(error) => {
                    refused = Some(io::Error::other(error.to_string()));
                    false
                }
            }
        });
        refused.map_or(Ok(true), |error| Err((Operation::Filter, error)))
    }
}

/// A folder with names that are not in the range of its listing.
struct FolderEdge<'a> {
    range: &'a NameRange,
    encode: bool,
    /// The folder's sort key.
    lead: Vec<u8>,
    /// It is an entry itself if it has no names, whatever the range.
    counts_names: bool,
}

impl<'a> FolderEdge<'a> {
    /// Returns `None` for a folder that is in the range as a whole.
    fn of(query: &'a LocalQuery, prefix: &[u8]) -> Option<FolderEdge<'a>> {
        let LocalQuery { range, encode, .. } = query;
        let lead = key_of(prefix, *encode);
        if range.holds_folder(&lead) {
            return None;
        }
        let counts_names = query.dirs == Dirs::Empty && range.contains(&lead);
        Some(FolderEdge { range, encode: *encode, lead: lead.into_owned(), counts_names })
    }

    /// Returns whether a name of the folder matters to the range: a folder by what may be below it; another entry also
    /// if only names below it are in the range, since its problems protect those of the other side.
    fn wants(&self, name: &CStr, is_dir: bool) -> bool {
        let key = [&*self.lead, &key_of(name.to_bytes(), self.encode)].concat();
        self.range.meets_folder(&key) || !is_dir && self.range.contains(&key)
    }
}

/// Divides sorted names into pieces.
fn divided(names: &NameBuffer) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut from = 0;
    let is_dir = |at| names.get(at).is_some_and(|(_, class)| class.is_dir());
    while from < names.len() {
        let mut to = from + 1;
        while !is_dir(from) && to < names.len() && !is_dir(to) && to - from < PIECE_NAMES_MAX {
            to += 1;
        }
        pieces.push(Piece { names: from..to, slot: Mutex::new(Slot::New) });
        from = to;
    }
    pieces
}

fn look(fd: &io::Result<Arc<OwnedFd>>, name: &CStr, follow: bool) -> Result<Meta, NameFailure> {
    let fd = match fd {
        Ok(fd) => (**fd).as_fd(),
        Err(error) => {
            let error = io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(errno::EIO));
            return Err(NameFailure::of(Operation::Stat, error));
        }
    };
    meta::of(fd, name, follow).map_err(|error| {
        let mut failure = NameFailure::of(Operation::Stat, error);
        // A symlink that still exists has not vanished: it is dangling.
        if follow && meta::of(fd, name, false).is_ok() {
            failure.class = ErrorClass::Partial;
        }
        failure
    })
}

fn class(query: &LocalQuery, fd: BorrowedFd<'_>, name: &CStr, kind: Kind) -> NameClass {
    let kind = match kind {
        Kind::Unknown => meta::of(fd, name, false).map_or(Kind::Unknown, |meta| meta.kind),
        kind => kind,
    };
    match kind {
        Kind::Dir => NameClass::Dir { follow: false },
        Kind::Symlink => match query.symlinks {
            Symlinks::Skip => NameClass::Left(Left::Symlink),
            Symlinks::Keep => NameClass::File { follow: false },
            Symlinks::Follow => match meta::of(fd, name, true).map(|meta| meta.kind) {
                Ok(Kind::Dir) => NameClass::Dir { follow: true },
                Ok(kind) if is_left(query, kind) => NameClass::Left(Left::NoFile),
                // A broken link fails again where it is reported.
                _ => NameClass::File { follow: true },
            },
        },
        kind if is_left(query, kind) => NameClass::Left(Left::NoFile),
        _ => NameClass::File { follow: false },
    }
}

fn is_left(query: &LocalQuery, kind: Kind) -> bool {
    !query.specials && (kind.is_device() || kind.is_special())
}

// The names of one folder in the order of keys.

/// Handling of a name in the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameClass {
    /// Examine it; `follow` through a symlink.
    File { follow: bool },
    /// Enter it; `follow` through a symlink.
    Dir { follow: bool },
    /// Report and skip it.
    Left(Left),
}

/// Reason for skipping a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Symlink,
    NoFile,
    Unfinished,
}

impl Left {
    pub(super) fn words(self) -> &'static str {
        match self {
            Left::Symlink => "it is a symlink (-l keeps it, -L copies what it points to)",
            Left::NoFile => "it is not a regular file, and no object can be one",
            Left::Unfinished => publish::LEFT_OUT,
        }
    }
}

impl NameClass {
    pub(super) fn is_dir(self) -> bool {
        matches!(self, NameClass::Dir { .. })
    }
}

#[derive(Default)]
pub(super) struct NameBuffer {
    /// Each terminated by NUL.
    text: Vec<u8>,
    spans: Vec<Span>,
}

#[derive(Clone, Copy)]
struct Span {
    /// The first bytes of the sort key: most comparisons end here.
    head: u64,
    start: usize,
    len: u16,
    class: NameClass,
}

impl NameBuffer {
    pub(super) fn push(&mut self, name: &CStr, class: NameClass, encode: bool) {
        let bytes = name.to_bytes();
        let span = Span {
            head: head(&key_of(bytes, encode), class.is_dir()),
            start: self.text.len(),
            // At most NAME_MAX.
            len: bytes.len() as u16,
            class,
        };
        self.text.extend_from_slice(name.to_bytes_with_nul());
        self.spans.push(span);
    }

    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Sorts the names. A name that readdir(3) returned twice, which may happen while another process removes
    /// entries (seen on tmpfs), is kept once.
    pub(super) fn sort(&mut self, encode: bool) {
        let text = &self.text;
        let bytes = |span: &Span| &text[span.start..span.start + usize::from(span.len)];
        self.spans.sort_unstable_by(|a, b| {
            a.head.cmp(&b.head).then_with(|| {
                let (left, right) = (key_of(bytes(a), encode), key_of(bytes(b), encode));
                compare((&left, a.class.is_dir()), (&right, b.class.is_dir()))
            })
        });
        self.spans.dedup_by(|a, b| {
            let may_be = a.head == b.head && a.class.is_dir() == b.class.is_dir();
            may_be && bytes(a) == bytes(b)
        });
    }

    /// Keeps the names for which `wanted` returns true.
    pub(super) fn retain(&mut self, mut wanted: impl FnMut(&CStr, NameClass) -> bool) {
        let text = &self.text;
        self.spans.retain(|span| name(text, span).is_some_and(|name| wanted(name, span.class)));
    }

    /// Returns a name by its index in the order.
    pub(super) fn get(&self, at: usize) -> Option<(&CStr, NameClass)> {
        let span = self.spans.get(at)?;
        Some((name(&self.text, span)?, span.class))
    }
}

fn name<'a>(text: &'a [u8], span: &Span) -> Option<&'a CStr> {
    let bytes = text.get(span.start..=span.start + usize::from(span.len))?;
    CStr::from_bytes_with_nul(bytes).ok()
}

/// Returns the first eight bytes of the sort key; zeroes stand for its end, since names contain none.
fn head(name: &[u8], is_dir: bool) -> u64 {
    let mut bytes = [0; 8];
    let len = name.len().min(8);
    bytes[..len].copy_from_slice(&name[..len]);
    if is_dir && len < 8 {
        bytes[len] = b'/';
    }
    u64::from_be_bytes(bytes)
}

/// Compares names of one folder, where folders end with a slash.
pub(super) fn compare((a, a_dir): (&[u8], bool), (b, b_dir): (&[u8], bool)) -> Ordering {
    let len = a.len().min(b.len());
    let end = |name: &[u8], is_dir: bool| match name.get(len) {
        Some(byte) => Some(*byte),
        None => is_dir.then_some(b'/'),
    };
    a[..len].cmp(&b[..len]).then_with(|| end(a, a_dir).cmp(&end(b, b_dir)))
}

// Read-ahead of a local tree: workers take the next pieces in the order of keys, within a bound on names; the
// emitting thread works too, and waits only for a piece that another worker has taken.
//
// The number of workers is tuned by throughput. If a listing waits for its reader rather than the file system, its
// workers are idle, so it gets no more of them. The walk of `tree` has no order, which is why it is not used here.

/// Limit on names read and not emitted yet; beyond it no folder is read ahead.
const NAMES_AHEAD_MAX: usize = 32 << 10;
/// Limit on names examined and not emitted yet.
const LOOKED_AHEAD_MAX: usize = 8 << 10;
/// Maximum number of names of a folder that is read ahead; larger ones are read in turn, one at a time.
const FOLDER_NAMES_MAX: usize = 8 << 10;
/// Maximum depth of folders that are read ahead: each stores its whole path.
const DEPTH_MAX: usize = 256;
/// Interval between adjustments of the number of workers.
const TICK: Duration = Duration::from_millis(10);

/// State shared by the workers of a listing.
pub(super) struct Ahead<'a> {
    pub reading: ReadOptions<'a>,
    gate: Gate,
    /// The number of workers is tuned.
    is_tuned: bool,
    meter: Meter,
    plan: Mutex<Plan>,
    /// More work is available, or the listing has ended.
    more: Condvar,
    /// A piece is done.
    done: Condvar,
}

#[derive(Default)]
struct Plan {
    /// Folders with pieces not taken yet, and the next one, in the order of output. Keys end with a number above all
    /// pieces, so that a folder sorts before the rest of its parent.
    folders: BTreeMap<Vec<u32>, (Arc<SortedFolder>, usize)>,
    names: usize,
    looked: usize,
    over: bool,
}

impl Plan {
    /// Returns the next piece that may be worked on now.
    fn take(&mut self) -> Option<(Arc<SortedFolder>, usize)> {
        while let Some(mut first) = self.folders.first_entry() {
            let (folder, next) = first.get_mut();
            let Some(piece) = folder.pieces.get(*next) else {
                first.remove();
                continue;
            };
            let is_dir = folder.is_dir(piece);
            let mut slot = piece.slot.lock();
            if matches!(*slot, Slot::New) {
                let is_full = match is_dir {
                    true => self.names >= NAMES_AHEAD_MAX,
                    false => self.looked >= LOOKED_AHEAD_MAX,
                };
                if is_full {
                    return None;
                }
                *slot = Slot::Taken;
                self.looked += if is_dir { 0 } else { piece.names.len() };
                let taken = (Arc::clone(folder), *next);
                drop(slot);
                *next += 1;
                return Some(taken);
            }
            drop(slot);
            *next += 1;
        }
        None
    }
}

fn key(folder: &SortedFolder) -> Vec<u32> {
    folder.order.iter().copied().chain([u32::MAX]).collect()
}

impl<'a> Ahead<'a> {
    /// Makes the state for `jobs` workers; `Auto` begins with one.
    pub fn new(reading: ReadOptions<'a>, jobs: Jobs) -> Ahead<'a> {
        // The other half of the descriptors is for connections and files.
        let files = process::raise_open_files_limit() / 2;
        let jobs_max = Capacity::new(WorkKind::Walk, jobs, None, files).jobs_max;
        let (seed, is_tuned) = match jobs {
            Jobs::Auto => (1, true),
            Jobs::Fixed(jobs) => (jobs, false),
        };
        Ahead {
            reading,
            gate: Gate::new(seed, jobs_max),
            is_tuned,
            meter: Meter::new(jobs_max),
            plan: Mutex::default(),
            more: Condvar::new(),
            done: Condvar::new(),
        }
    }

    /// Ends all workers.
    pub fn end(&self) {
        self.plan.lock().over = true;
        self.more.notify_all();
        self.gate.wake();
    }

    /// Makes the pieces of a folder available; its names are known.
    pub fn open(&self, folder: &Arc<SortedFolder>) {
        let mut plan = self.plan.lock();
        plan.names += folder.names.len();
        if folder.order.len() <= DEPTH_MAX {
            plan.folders.insert(key(folder), (Arc::clone(folder), 0));
        }
        drop(plan);
        self.more.notify_all();
    }

    /// Removes a folder whose names were all emitted.
    pub fn close(&self, folder: &SortedFolder) {
        let mut plan = self.plan.lock();
        let was_full = plan.names >= NAMES_AHEAD_MAX;
        plan.names -= folder.names.len();
        if folder.order.len() <= DEPTH_MAX {
            plan.folders.remove(&key(folder));
        }
        drop(plan);
        if was_full {
            self.more.notify_all();
        }
    }

    /// Works on a piece that was taken.
    fn work(
        &self,
        folder: &Arc<SortedFolder>,
        index: usize,
        names_max: Option<usize>,
        (reader, doing): (&mut Reader, &Activity),
    ) {
        doing.turn(Phase::List);
        let mut found = self.reading.work(folder, index, names_max, reader);
        match &found {
            Slot::Entered(Entered::TooLarge) => found = Slot::Large,
            Slot::Entered(Entered::Folder(folder, _)) => self.open(folder),
            _ => {}
        }
        let Some(piece) = folder.pieces.get(index) else { return };
        let lane = doing.lane();
        lane.items(piece.names.len() as u64);
        lane.completions(1);
        *piece.slot.lock() = found;
    }

    /// Runs a worker other than the emitting one.
    fn serve(&self, index: usize) {
        let doing = Activity::new(self.meter.share(index), Phase::Idle);
        let mut reader = Reader::default();
        loop {
            doing.turn(Phase::Idle);
            self.gate.wait_for_turn(index, || self.plan.lock().over);
            let mut plan = self.plan.lock();
            if plan.over {
                return;
            }
            let Some((folder, index)) = plan.take() else {
                self.more.wait(&mut plan);
                continue;
            };
            drop(plan);
            self.work(&folder, index, Some(FOLDER_NAMES_MAX), (&mut reader, &doing));
            // Taking the lock ensures that a thread that checked before is asleep by now.
            drop(self.plan.lock());
            self.done.notify_one();
        }
    }
}

/// The emitting side of a listing: the first worker, which starts the others.
pub(super) struct Lead<'scope, 'env, 'a> {
    scope: &'scope Scope<'scope, 'env>,
    ahead: &'env Ahead<'a>,
    reader: Reader,
    doing: Activity,
    /// `None` if the number of workers is fixed.
    tuner: Option<Tuner>,
    begun: Instant,
    ticked: Instant,
    started: usize,
    /// Time spent on handing over since the last tick.
    handing: Duration,
}

impl<'scope, 'env, 'a> Lead<'scope, 'env, 'a> {
    pub fn new(scope: &'scope Scope<'scope, 'env>, ahead: &'env Ahead<'a>) -> Self {
        let now = Instant::now();
        let mut lead = Lead {
            scope,
            ahead,
            reader: Reader::default(),
            // The emitting thread waits for names, except while it waits for the reader.
            doing: Activity::new(ahead.meter.share(0), Phase::List),
            handing: Duration::ZERO,
            tuner: ahead.is_tuned.then(|| Tuner::new(ahead.gate.jobs_max(), 1, false)),
            begun: now,
            ticked: now,
            started: 1,
        };
        lead.start();
        lead
    }

    /// Returns the result of a piece; works on it, or on others while another worker has it.
    pub fn need(&mut self, folder: &Arc<SortedFolder>, index: usize) -> Option<Slot> {
        let piece = folder.pieces.get(index)?;
        self.tick();
        loop {
            let mut slot = piece.slot.lock();
            match std::mem::replace(&mut *slot, Slot::Taken) {
                Slot::New | Slot::Large => {
                    drop(slot);
                    let worker = (&mut self.reader, &self.doing);
                    if !folder.is_dir(piece) {
                        self.ahead.plan.lock().looked += piece.names.len();
                    }
                    self.ahead.work(folder, index, None, worker);
                }
                Slot::Taken => {
                    drop(slot);
                    self.wait(piece);
                }
                found => {
                    drop(slot);
                    if let Slot::Looked(_) = found {
                        self.emitted(piece.names.len());
                    }
                    return Some(found);
                }
            }
        }
    }

    /// Counts names emitted after being examined.
    fn emitted(&self, names: usize) {
        let mut plan = self.ahead.plan.lock();
        let was_full = plan.looked >= LOOKED_AHEAD_MAX;
        plan.looked -= names;
        drop(plan);
        if was_full {
            self.ahead.more.notify_all();
        }
    }

    /// Works on another piece or waits, while another worker has the needed one.
    fn wait(&mut self, piece: &Piece) {
        let mut plan = self.ahead.plan.lock();
        if !matches!(*piece.slot.lock(), Slot::Taken) {
            return;
        }
        match plan.take() {
            Some((folder, index)) => {
                drop(plan);
                let worker = (&mut self.reader, &self.doing);
                self.ahead.work(&folder, index, Some(FOLDER_NAMES_MAX), worker);
            }
            None => drop(self.ahead.done.wait_for(&mut plan, TICK)),
        }
        self.tick();
    }

    /// Hands names to the reader of the listing, which may block.
    pub fn hand_over<T>(&mut self, send: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let sent = {
            let _idle = self.doing.during(Phase::Idle);
            send()
        };
        self.handing += begun.elapsed();
        sent
    }

    /// Adjusts the number of workers at intervals.
    fn tick(&mut self) {
        let now = Instant::now();
        let since = now.duration_since(self.ticked);
        if since < TICK {
            return;
        }
        self.ticked = now;
        let counts = self.ahead.meter.counts();
        let is_waited_for = 2 * std::mem::take(&mut self.handing) < since;
        let counted = WorkCounters {
            items: counts.items,
            completions: counts.completions,
            in_use: counts.in_use().saturating_sub(usize::from(!is_waited_for)),
            ..WorkCounters::default()
        };
        if let Some(tuner) = &mut self.tuner {
            self.ahead.gate.set(tuner.step(now.duration_since(self.begun), &counted));
        }
        self.start();
    }

    /// Starts as many workers as the gate admits.
    fn start(&mut self) {
        let jobs = self.ahead.gate.jobs();
        while self.started < jobs {
            let (ahead, index) = (self.ahead, self.started);
            let thread = Builder::new().name("list-ahead".to_owned());
            // If no thread can be started, the existing ones do all the work.
            if thread.spawn_scoped(self.scope, move || ahead.serve(index)).is_err() {
                break;
            }
            self.started += 1;
        }
        self.ahead.more.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Entry;
    use crate::object::list::{NameFilter, merge_files};
    use crate::policy::Symlinks;
    use crate::policy::filter::{FilterBuilder, Origin};
    use crate::publish::TempNames;
    use hakobu_core::unit::{Jobs, Kind};
    use hakobu_sys::{OwnedFd, dir};
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;
    use std::sync::Arc;

    /// A folder of a test, removed at its end.
    struct Top(PathBuf);

    impl Top {
        fn new(name: &str) -> Top {
            let top =
                std::env::temp_dir().join(format!("hakobu-list-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&top);
            std::fs::create_dir(&top).unwrap();
            Top(top)
        }

        fn file(&self, name: &[u8]) {
            let path = self.0.join(std::ffi::OsStr::from_bytes(name));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        }

        fn fd(&self) -> Arc<OwnedFd> {
            let path = CString::new(self.0.as_os_str().as_bytes()).unwrap();
            Arc::new(dir::open_root(&path).unwrap())
        }

        fn list(&self, query: LocalQuery) -> Vec<Item> {
            self.list_on(Jobs::Auto, query)
        }

        fn list_on(&self, jobs: Jobs, query: LocalQuery) -> Vec<Item> {
            let mut listing = on_workers(jobs, self.fd(), &self.0, query);
            std::iter::from_fn(|| listing.next()).collect()
        }

        /// Returns names in listing order; problems as `!name`.
        fn names(&self, query: LocalQuery) -> Vec<String> {
            self.names_on(Jobs::Auto, query)
        }

        fn names_on(&self, jobs: Jobs, query: LocalQuery) -> Vec<String> {
            let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            let shown = |item: Item| match item {
                Ok(Entry { name, .. }) => text(&name),
                Err(Trouble::Problem { name, .. }) => format!("!{}", text(&name)),
                Err(Trouble::Failed(error)) => panic!("{error}"),
            };
            self.list_on(jobs, query).into_iter().map(shown).collect()
        }
    }

    impl Drop for Top {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        #[test]
        fn names_come_in_the_order_of_keys(
            names in prop::collection::btree_set("[ab.0-]{1,3}(/[ab.0-]{1,3}){0,2}", 0..30),
            long in 0..20_usize,
        ) {
            let top = Top::new("order");
            let mut made = BTreeSet::new();
            let lead = "x".repeat(long);
            for name in names.iter().map(|name| format!("{lead}{name}")) {
                let dots = name.split('/').any(|part| matches!(part, "." | ".."));
                let clash = made.iter().any(|other: &String| {
                    other.starts_with(&format!("{name}/")) || name.starts_with(&format!("{other}/"))
                });
                if !dots && !clash {
                    top.file(name.as_bytes());
                    made.insert(name);
                }
            }
            let made = Vec::from_iter(made);
            prop_assert_eq!(&top.names(LocalQuery::default()), &made);
            prop_assert_eq!(&top.names_on(Jobs::Fixed(6), LocalQuery::default()), &made);
        }
    }

    #[test]
    fn a_folder_sorts_with_its_slash() {
        let top = Top::new("slash");
        for name in ["a-b", "a.txt", "a/x", "a0", "e/f/g"] {
            top.file(name.as_bytes());
        }
        std::fs::create_dir(top.0.join("d")).unwrap();
        let list = |dirs| top.names(LocalQuery { dirs, ..LocalQuery::default() });
        assert_eq!(list(Dirs::No), ["a-b", "a.txt", "a/x", "a0", "e/f/g"]);
        assert_eq!(list(Dirs::Empty), ["a-b", "a.txt", "a/x", "a0", "d/", "e/f/g"]);
        assert_eq!(
            list(Dirs::All),
            ["a-b", "a.txt", "a/", "a/x", "a0", "d/", "e/", "e/f/", "e/f/g"]
        );
        let flat = LocalQuery { flat: true, ..LocalQuery::default() };
        assert_eq!(top.names(flat), ["a-b", "a.txt", "a/", "a0", "d/", "e/"]);
    }

    #[test]
    fn symlinks_are_left_kept_or_followed() {
        let top = Top::new("links");
        top.file(b"d/f");
        for (to, name) in [("d", "l"), ("nowhere", "broken"), ("d/f", "one"), ("..", "d/up")] {
            std::os::unix::fs::symlink(to, top.0.join(name)).unwrap();
        }
        let query = |symlinks| LocalQuery { symlinks, ..LocalQuery::default() };
        assert_eq!(top.names(query(Symlinks::Skip)), ["!broken", "d/f", "!d/up", "!l", "!one"]);
        let kept = top.list(query(Symlinks::Keep));
        let links = kept
            .iter()
            .filter(|item| matches!(item, Ok(entry) if entry.meta.kind == Kind::Symlink));
        assert_eq!((kept.len(), links.count()), (5, 4));
        let followed = top.names(query(Symlinks::Follow));
        assert_eq!(followed, ["!broken", "d/f", "!d/up/", "l/f", "!l/up/", "one"]);
    }

    #[test]
    fn non_files_are_notices_or_entries() {
        let top = Top::new("socket");
        let _socket = std::os::unix::net::UnixListener::bind(top.0.join("s")).unwrap();
        let left = top.list(LocalQuery::default());
        assert!(matches!(
            &*left,
            [Err(Trouble::Problem { problem, .. })] if problem.class == ErrorClass::Notice
        ));
        let query = LocalQuery { specials: true, ..LocalQuery::default() };
        assert_eq!(top.names(query), ["s"]);
    }

    /// A user's name is listed even if it resembles ours; our names are reported, and those of dead runs are removed if
    /// requested.
    #[test]
    fn unfinished_files_are_left_out_by_their_exact_names() {
        let top = Top::new("unfinished");
        let ours = TempNames::new().make();
        let kept = TempNames::kept(7);
        for name in [b".hakobu-1-2-3-4-5", ours.to_bytes(), kept.to_bytes()] {
            top.file(name);
        }
        let shown = |name: &std::ffi::CStr| format!("!{}", name.to_string_lossy());
        let mut all = vec![".hakobu-1-2-3-4-5".to_owned(), shown(&ours), shown(&kept)];
        all.sort_by_key(|name| name.trim_start_matches('!').to_owned());
        assert_eq!(top.names(LocalQuery::default()), all);
        let target = LocalQuery { clear_leftovers: true, ..LocalQuery::default() };
        assert_eq!(top.names(target), [".hakobu-1-2-3-4-5"]);
        assert!(top.0.join(ours.to_str().unwrap()).exists(), "its owner is alive");
    }

    #[test]
    fn hidden_folders_are_not_entered_and_merge_files_count() {
        let top = Top::new("name_filter");
        for name in ["a/x.o", "a/x.c", "b/y.o", "b/z/y.tmp", "b/z/y.c", "hide/below"] {
            top.file(name.as_bytes());
        }
        std::fs::write(top.0.join("b/.rules"), "- *.tmp\n").unwrap();
        let mut builder = FilterBuilder::default();
        builder.rule(b"dir-merge .rules").unwrap();
        builder.exclude(b"*.o").unwrap();
        builder.exclude(b"/hide/").unwrap();
        let filter = Arc::new(builder.build(&mut |_| panic!("no file")).unwrap());
        let origin = Origin { source: b"/", target: b"/", first: b"" };
        let name_filter = || {
            NameFilter::new(
                Arc::clone(&filter),
                &origin,
                Some(merge_files(top.fd(), Default::default())),
            )
            .unwrap()
        };
        let query = LocalQuery { name_filter: Some(name_filter()), ..LocalQuery::default() };
        assert_eq!(top.names(query), ["a/x.c", "b/.rules", "b/z/y.c"]);
        let mut name_filter = name_filter();
        for (name, hide) in [
            (&b"b/z/new.tmp"[..], true),
            (b"a/new.tmp", false),
            (b"hide/deep/er", true),
            (b"hide/", true),
            (b"hide", false),
            (b"b/new", false),
        ] {
            let decision = name_filter.decide(name).unwrap();
            assert_eq!((decision.hide, decision.protect), (hide, hide), "{}", name.escape_ascii());
        }
    }

    #[test]
    fn names_that_are_not_utf8_sort_as_their_keys_on_request() {
        let top = Top::new("bytes");
        for name in [&b"a\xff"[..], b"ab", b"\xe9/x", b"b"] {
            top.file(name);
        }
        let raw = |encode| {
            let query = LocalQuery { encode, ..LocalQuery::default() };
            let names = top.list(query).into_iter().map(|item| item.ok().unwrap().name);
            names.map(Vec::from).collect::<Vec<_>>()
        };
        assert_eq!(raw(false), [&b"ab"[..], b"a\xff", b"b", b"\xe9/x"]);
        assert_eq!(raw(true), [&b"\xe9/x"[..], b"a\xff", b"ab", b"b"]);
    }

    /// Many folders, one with too many names and one too deep to be read ahead, and problems.
    #[test]
    fn read_ahead_is_complete_and_in_order() {
        let top = Top::new("ahead");
        for folder in 0..150 {
            for file in 0..folder % 40 {
                top.file(format!("d{folder}/sub{}/f{file}", folder % 3).as_bytes());
            }
        }
        std::fs::create_dir(top.0.join("m")).unwrap();
        for file in 0..9000 {
            std::fs::write(top.0.join(format!("m/f{file}")), b"").unwrap();
        }
        top.file([b"n/".repeat(300), b"f".to_vec()].concat().as_slice());
        std::os::unix::fs::symlink("nowhere", top.0.join("d7/link")).unwrap();
        let filter = || {
            let mut builder = FilterBuilder::default();
            builder.rule(b"dir-merge .rules").unwrap();
            builder.exclude(b"f1?").unwrap();
            Arc::new(builder.build(&mut |_| panic!("no file")).unwrap())
        };
        std::fs::write(top.0.join("d8/.rules"), "- f2\n").unwrap();
        std::fs::write(top.0.join("d9/.rules"), "dir-merge,z nonsense\n").unwrap();
        let origin = Origin { source: b"/", target: b"/", first: b"" };
        let query = || {
            let files = Some(merge_files(top.fd(), Default::default()));
            let name_filter = Some(NameFilter::new(filter(), &origin, files).unwrap());
            LocalQuery { name_filter, dirs: Dirs::All, ..LocalQuery::default() }
        };
        let alone = top.names_on(Jobs::Fixed(1), query());
        assert!(alone.len() > 8000, "{}", alone.len());
        for marked in ["!d7/link", "!d9/", "d8/.rules", "m/f8999"] {
            assert!(alone.iter().any(|name| name == marked), "{marked}");
        }
        for jobs in [2, 5, 16] {
            let many = top.names_on(Jobs::Fixed(jobs), query());
            assert!(many == alone, "{jobs}: {} and {}", many.len(), alone.len());
        }
    }

    #[test]
    fn a_huge_folder_is_listed_and_a_dropped_listing_ends() {
        let top = Top::new("huge");
        for i in 0..5000 {
            std::fs::write(top.0.join(format!("{}", i * 7919 % 5000)), b"").unwrap();
        }
        let names = top.names(LocalQuery::default());
        assert!(names.len() == 5000 && names.is_sorted());
        for jobs in [Jobs::Auto, Jobs::Fixed(4)] {
            let fd = top.fd();
            let mut listing = on_workers(jobs, Arc::clone(&fd), &top.0, LocalQuery::default());
            assert!(listing.next().is_some());
            drop(listing);
            let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
            while Arc::strong_count(&fd) > 1 {
                assert!(std::time::Instant::now() < until, "the thread goes on");
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn a_name_that_was_read_twice_is_kept_once() {
        let mut names = NameBuffer::default();
        for name in [c"z", c"a", c"z", c"za"] {
            names.push(name, NameClass::Dir { follow: false }, false);
        }
        names.sort(false);
        let kept: Vec<_> = (0..names.len()).map(|at| names.get(at).unwrap().0).collect();
        assert_eq!(kept, [c"a", c"z", c"za"]);
    }
}
