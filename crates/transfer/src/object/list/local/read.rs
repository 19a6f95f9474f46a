//! Reading one folder of a local listing and examining its names; done by workers in any order.

use super::names::{Class, Left, Names};
use super::{Dirs, LocalQuery};
use crate::object::list::NameFilter;
use crate::policy::Symlinks;
use crate::publish::TempNames;
use hakobu_core::error::{Cause, Class as Gravity, Operation};
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::dir::Reader;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, meta};
use hakobu_tree::handle::{Budget, Handle};
use parking_lot::Mutex;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of folders kept open.
const OPEN_MAX: usize = 128;
/// Maximum number of names examined in one piece.
const PIECE_NAMES_MAX: usize = 16;

/// Parameters of reading folders, shared by all workers.
pub(super) struct Reading<'a> {
    shown: &'a Path,
    /// The query without its name filter.
    query: LocalQuery,
    name_filter: Option<Mutex<NameFilter>>,
    /// Recognises temporary names of dead runs, if these are removed.
    temp_names: Option<TempNames>,
    /// Device of the top.
    device: u64,
}

/// The failure of a name.
pub(super) struct Failure {
    pub operation: Operation,
    pub cause: Cause,
    pub class: Gravity,
}

impl Failure {
    fn of(operation: Operation, error: io::Error) -> Failure {
        let class = match errno::is(&error, errno::ENOENT) {
            true => Gravity::Vanished,
            false => Gravity::Partial,
        };
        Failure { operation, cause: Cause::System(error), class }
    }

    pub fn reason(operation: Operation, reason: &'static str, class: Gravity) -> Failure {
        Failure { operation, cause: Cause::Reason(reason), class }
    }
}

/// Result of entering a folder.
pub(super) enum Entered {
    /// A folder to walk; with its own entry, if it is one.
    Folder(Arc<Folder>, Option<Result<Meta, Failure>>),
    /// Only an entry.
    Entry(Meta),
    Failed(Failure),
    /// It has too many names to be read ahead.
    TooLarge,
}

/// A folder that was read, with sorted names.
pub(super) struct Folder {
    parent: Option<Arc<Folder>>,
    /// One component; empty for the top.
    name: CString,
    handle: Arc<Handle>,
    pub names: Names,
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
    Looked(Vec<Result<Meta, Failure>>),
    Entered(Entered),
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Iterative: recursion over a chain of 100,000 parents would overflow the stack.
        let mut parent = self.parent.take();
        while let Some(mut last) = parent.and_then(Arc::into_inner) {
            parent = last.parent.take();
        }
    }
}

impl Folder {
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

    /// Returns whether a piece is a folder.
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

impl<'a> Reading<'a> {
    /// Opens and reads the top.
    pub fn begin(
        top: &OwnedFd,
        shown: &'a Path,
        mut query: LocalQuery,
        reader: &mut Reader,
    ) -> (Reading<'a>, Entered) {
        let name_filter = query.name_filter.take().map(Mutex::new);
        let temp_names = query.clear_leftovers.then(TempNames::new);
        let mut reading = Reading { shown, query, name_filter, temp_names, device: 0 };
        let opened =
            CString::new(shown.as_os_str().as_bytes()).map_err(io::Error::from).and_then(|path| {
                let own = dir::open(top.as_fd(), c".", false)?;
                Handle::adopt_top(&Budget::new(OPEN_MAX), &path, own)
            });
        let entered = match opened {
            Ok((handle, meta)) => {
                reading.device = meta.dev;
                reading.read(None, 0, CString::default(), handle, None, reader)
            }
            Err(error) => Entered::Failed(Failure::of(Operation::List, error)),
        };
        (reading, entered)
    }

    pub fn path(&self, name: &[u8]) -> PathBuf {
        self.shown.join(OsStr::from_bytes(name))
    }

    /// Works on a piece of a folder; a subfolder with more than `names_max` names is not read.
    pub fn work(
        &self,
        folder: &Arc<Folder>,
        index: usize,
        names_max: Option<usize>,
        reader: &mut Reader,
    ) -> Slot {
        let Some(piece) = folder.pieces.get(index) else { return Slot::Looked(Vec::new()) };
        let first = folder.names.get(piece.names.start);
        if let Some((name, Class::Dir { follow })) = first {
            return Slot::Entered(self.enter(folder, index, name, follow, names_max, reader));
        }
        let fd = folder.handle.fd();
        let each = piece.names.clone().filter_map(|at| match folder.names.get(at)? {
            (name, Class::File { follow }) => Some((name, follow)),
            _ => None,
        });
        Slot::Looked(each.map(|(name, follow)| look(&fd, name, follow)).collect())
    }

    fn enter(
        &self,
        parent: &Arc<Folder>,
        index: usize,
        name: &CStr,
        follow: bool,
        names_max: Option<usize>,
        reader: &mut Reader,
    ) -> Entered {
        let failed =
            |reason, class| Entered::Failed(Failure::reason(Operation::List, reason, class));
        let (handle, meta) = match self.open(parent, name, follow) {
            Ok(opened) => opened,
            Err(error) => return Entered::Failed(Failure::of(Operation::List, error)),
        };
        if follow && parent.lies_in(handle.identity()) {
            return failed("the symlink points to a folder that contains it", Gravity::Partial);
        }
        if self.query.one_file_system && meta.dev != self.device {
            return failed("it is on another file system (--one-file-system)", Gravity::Notice);
        }
        if self.query.flat {
            return Entered::Entry(meta);
        }
        self.read(Some(parent), index, name.to_owned(), handle, names_max, reader)
    }

    fn open(&self, parent: &Folder, name: &CStr, follow: bool) -> io::Result<(Arc<Handle>, Meta)> {
        let above = &parent.handle;
        if !follow {
            return above.child(name);
        }
        // Reopened by its whole path after it was closed: symlinks are allowed there, and its identity is checked.
        let fd = dir::open((*above.fd()?).as_fd(), name, true)?;
        let path = self.path(&[&*parent.prefix(), name.to_bytes(), b"/"].concat());
        let path = CString::new(path.into_os_string().into_encoded_bytes())?;
        Handle::adopt_top(above.budget(), &path, fd)
    }

    /// Reads and sorts the names of a folder.
    fn read(
        &self,
        parent: Option<&Arc<Folder>>,
        index: usize,
        name: CString,
        handle: Arc<Handle>,
        names_max: Option<usize>,
        reader: &mut Reader,
    ) -> Entered {
        let mut order = parent.map(|parent| parent.order.clone()).unwrap_or_default();
        if parent.is_some() {
            order.push(u32::try_from(index).unwrap_or(u32::MAX));
        }
        let (parent, names, pieces) = (parent.cloned(), Names::default(), Vec::new());
        let mut folder = Folder { parent, name, handle, names, pieces, order };
        match self.names(&mut folder, names_max, reader) {
            Ok(true) => {}
            Ok(false) => return Entered::TooLarge,
            Err((operation, error)) => return Entered::Failed(Failure::of(operation, error)),
        }
        let wanted = match self.query.dirs {
            Dirs::No => false,
            Dirs::Empty => folder.names.len() == 0,
            Dirs::All => true,
        };
        let own = (wanted && folder.parent.is_some()).then(|| {
            let found = folder.handle.fd().and_then(|fd| meta::of_fd(&*fd));
            found.map_err(|error| Failure::of(Operation::Stat, error))
        });
        folder.names.sort(self.query.encode);
        folder.pieces = divided(&folder.names);
        Entered::Folder(Arc::new(folder), own)
    }

    /// Reads the names to list; returns whether their number stayed within the limit.
    fn names(
        &self,
        folder: &mut Folder,
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
            let class = match is_temp {
                true => Class::Left(Left::Unfinished),
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

/// Divides sorted names into pieces.
fn divided(names: &Names) -> Vec<Piece> {
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

fn look(fd: &io::Result<Arc<OwnedFd>>, name: &CStr, follow: bool) -> Result<Meta, Failure> {
    let fd = match fd {
        Ok(fd) => (**fd).as_fd(),
        Err(error) => {
            let error = io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(errno::EIO));
            return Err(Failure::of(Operation::Stat, error));
        }
    };
    meta::of(fd, name, follow).map_err(|error| {
        let mut failure = Failure::of(Operation::Stat, error);
        // A symlink that still exists has not vanished: it is dangling.
        if follow && meta::of(fd, name, false).is_ok() {
            failure.class = Gravity::Partial;
        }
        failure
    })
}

/// Returns the class of a name.
fn class(query: &LocalQuery, fd: BorrowedFd<'_>, name: &CStr, kind: Kind) -> Class {
    let kind = match kind {
        Kind::Unknown => meta::of(fd, name, false).map_or(Kind::Unknown, |meta| meta.kind),
        kind => kind,
    };
    match kind {
        Kind::Dir => Class::Dir { follow: false },
        Kind::Symlink => match query.symlinks {
            Symlinks::Skip => Class::Left(Left::Symlink),
            Symlinks::Keep => Class::File { follow: false },
            Symlinks::Follow => match meta::of(fd, name, true).map(|meta| meta.kind) {
                Ok(Kind::Dir) => Class::Dir { follow: true },
                Ok(kind) if is_left(query, kind) => Class::Left(Left::NoFile),
                // A broken link fails again where it is reported.
                _ => Class::File { follow: true },
            },
        },
        kind if is_left(query, kind) => Class::Left(Left::NoFile),
        _ => Class::File { follow: false },
    }
}

fn is_left(query: &LocalQuery, kind: Kind) -> bool {
    !query.specials && (kind.is_device() || kind.is_special())
}
