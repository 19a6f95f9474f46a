//! The walk itself: one thread goes down and up, folder by folder, in order.

use super::names::{Class, Names};
use super::{Dirs, LocalQuery};
use crate::engine::handle::{Budget, Handle};
use crate::engine::temp::TempNames;
use crate::error::{self, Cause, Operation, Problem};
use crate::object::Entry;
use crate::object::list::{Item, PAGE_ENTRIES, Page, Trouble};
use crate::policy::Symlinks;
use crate::unit::{Kind, Meta};
use hakobu_sys::dir::Reader;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, meta};
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Folders that are kept open.
const OPEN_MAX: usize = 128;

/// The listing ended early: nobody reads it any more.
struct Gone;

struct Walk<'a> {
    shown: &'a Path,
    query: LocalQuery,
    sender: Sender<Page>,
    reader: Reader,
    page: Vec<Item>,
    device: u64,
    /// The way to the folder at hand, with a slash at its end.
    prefix: Vec<u8>,
    /// Who knows which temporary names are those of the dead, where these are removed.
    temp_names: Option<TempNames>,
}

/// A folder on the way down.
struct Frame {
    handle: Arc<Handle>,
    names: Names,
    prefix_len: usize,
}

/// Walks the tree and sends it.
pub(super) fn run(top: &OwnedFd, shown: &Path, query: LocalQuery, sender: Sender<Page>) {
    let mut walk = Walk {
        temp_names: query.clear_leftovers.then(TempNames::new),
        shown,
        query,
        sender,
        reader: Reader::default(),
        page: Vec::new(),
        device: 0,
        prefix: Vec::new(),
    };
    if walk.tree(top).is_ok() && walk.flush().is_ok() {
        let _ = walk.sender.blocking_send(Page::End);
    }
}

impl Walk<'_> {
    fn tree(&mut self, top: &OwnedFd) -> Result<(), Gone> {
        let opened = CString::new(self.shown.as_os_str().as_bytes())
            .map_err(io::Error::from)
            .and_then(|path| {
                let own = dir::open(top.as_fd(), c".", false)?;
                Handle::adopt_top(&Budget::new(OPEN_MAX), &path, own)
            });
        let mut frames = Vec::new();
        match opened {
            Ok((handle, meta)) => {
                self.device = meta.dev;
                frames.extend(self.read(handle)?);
            }
            Err(error) => self.trouble(b"", Operation::List, error)?,
        }
        while let Some(frame) = frames.last_mut() {
            self.prefix.truncate(frame.prefix_len);
            let Some((name, class)) = frame.names.next() else {
                frames.pop();
                continue;
            };
            let (name, handle) = (name.to_owned(), Arc::clone(&frame.handle));
            match class {
                Class::File { follow } => self.file(&handle, &name, follow)?,
                Class::Left(kind) => self.left(name.to_bytes(), kind)?,
                Class::Dir { follow } => {
                    let below = self.enter(&frames, &handle, &name, follow)?;
                    frames.extend(below);
                }
            }
        }
        Ok(())
    }

    /// Reads and sorts a folder's names. What is below `prefix` is known to be a folder then.
    fn read(&mut self, handle: Arc<Handle>) -> Result<Option<Frame>, Gone> {
        let mut names = Names::default();
        match self.names(&handle, &mut names) {
            Ok(()) => {}
            Err((operation, error)) => {
                let prefix = self.prefix.clone();
                self.trouble(&prefix, operation, error)?;
                return Ok(None);
            }
        }
        let wanted = match self.query.dirs {
            Dirs::No => false,
            Dirs::Empty => names.len() == 0,
            Dirs::All => true,
        };
        if wanted && !self.prefix.is_empty() {
            let found = handle.fd().and_then(|fd| meta::of_fd(&*fd));
            let prefix = self.prefix.clone();
            match found {
                Ok(meta) => self.entry(&prefix, meta)?,
                Err(error) => self.trouble(&prefix, Operation::Stat, error)?,
            }
        }
        names.sort(self.query.encode);
        Ok(Some(Frame { handle, names, prefix_len: self.prefix.len() }))
    }

    fn names(
        &mut self,
        handle: &Arc<Handle>,
        names: &mut Names,
    ) -> Result<(), (Operation, io::Error)> {
        let fd = handle.fd().map_err(|error| (Operation::List, error))?;
        let fd = (*fd).as_fd();
        let Walk { reader, query, prefix, temp_names, .. } = self;
        let prefix_len = prefix.len();
        let mut refused = None;
        let read = reader.for_each(fd, |name, kind, _| {
            if TempNames::is_temp(name) {
                if temp_names.as_ref().is_some_and(|ours| ours.is_abandoned(name)) {
                    // One that cannot be removed is left to the next run: it disturbs nobody.
                    drop(dir::unlink(fd, name));
                }
                return;
            }
            if refused.is_some() {
                return;
            }
            let Some(class) = class(query, fd, name, kind) else { return };
            if let Some(sieve) = &mut query.sieve {
                prefix.extend_from_slice(name.to_bytes());
                if matches!(class, Class::Dir { .. }) {
                    prefix.push(b'/');
                }
                let decision = sieve.decide(prefix);
                prefix.truncate(prefix_len);
                match decision {
                    Ok(decision) if decision.hide => return,
                    Ok(_) => {}
                    Err(error) => {
                        refused = Some(io::Error::other(error.to_string()));
                        return;
                    }
                }
            }
            names.push(name, class, query.encode);
        });
        prefix.truncate(prefix_len);
        match refused {
            Some(error) => Err((Operation::Filter, error)),
            None => read.map_err(|error| (Operation::List, error)),
        }
    }

    fn enter(
        &mut self,
        frames: &[Frame],
        parent: &Arc<Handle>,
        name: &CStr,
        follow: bool,
    ) -> Result<Option<Frame>, Gone> {
        self.prefix.extend_from_slice(name.to_bytes());
        self.prefix.push(b'/');
        let prefix = self.prefix.clone();
        let opened = self.open(parent, name, follow);
        let (handle, meta) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.trouble(&prefix, Operation::List, error)?;
                return Ok(None);
            }
        };
        if follow && frames.iter().any(|frame| frame.handle.identity() == handle.identity()) {
            let reason = "the symlink leads to a folder that it lies in";
            self.reason(&prefix, Operation::List, reason, error::Class::Partial)?;
            return Ok(None);
        }
        if self.query.one_file_system && meta.dev != self.device {
            let reason = "it is on another file system (--one-file-system)";
            self.reason(&prefix, Operation::List, reason, error::Class::Notice)?;
            return Ok(None);
        }
        if self.query.flat {
            self.entry(&prefix, meta)?;
            return Ok(None);
        }
        self.read(handle)
    }

    fn open(
        &self,
        parent: &Arc<Handle>,
        name: &CStr,
        follow: bool,
    ) -> io::Result<(Arc<Handle>, Meta)> {
        if !follow {
            return parent.child(name);
        }
        // Found again by its whole path when it has to be closed: symlinks are allowed there, and
        // its identity is checked.
        let fd = dir::open((*parent.fd()?).as_fd(), name, true)?;
        let path = CString::new(self.path(&self.prefix).into_os_string().into_encoded_bytes())?;
        let budget = parent.budget();
        Handle::adopt_top(budget, &path, fd)
    }

    fn file(&mut self, parent: &Arc<Handle>, name: &CStr, follow: bool) -> Result<(), Gone> {
        self.prefix.extend_from_slice(name.to_bytes());
        let found = parent.fd().and_then(|fd| meta::of((*fd).as_fd(), name, follow));
        let path = self.prefix.clone();
        match found {
            Ok(meta) => self.entry(&path, meta),
            // A symlink that is still there has not vanished: it leads nowhere.
            Err(error)
                if follow
                    && parent.fd().is_ok_and(|fd| meta::of((*fd).as_fd(), name, false).is_ok()) =>
            {
                let cause = Cause::System(error);
                self.problem(&path, Operation::Stat, cause, error::Class::Partial)
            }
            Err(error) => self.trouble(&path, Operation::Stat, error),
        }
    }

    fn left(&mut self, name: &[u8], kind: Kind) -> Result<(), Gone> {
        let path = [&*self.prefix, name].concat();
        let reason = match kind {
            Kind::Symlink => "it is a symlink (-l keeps it, -L copies what it names)",
            _ => "it is not a regular file, and no object can be one",
        };
        self.reason(&path, Operation::Read, reason, error::Class::Notice)
    }

    fn entry(&mut self, name: &[u8], meta: Meta) -> Result<(), Gone> {
        self.push(Ok(Entry { name: name.into(), meta, etag: "".into() }))
    }

    fn path(&self, name: &[u8]) -> PathBuf {
        self.shown.join(OsStr::from_bytes(name))
    }

    fn trouble(&mut self, name: &[u8], operation: Operation, error: io::Error) -> Result<(), Gone> {
        let class = match errno::is(&error, errno::ENOENT) {
            true => error::Class::Vanished,
            false => error::Class::Partial,
        };
        let cause = Cause::System(error);
        self.problem(name, operation, cause, class)
    }

    fn reason(
        &mut self,
        name: &[u8],
        operation: Operation,
        reason: &'static str,
        class: error::Class,
    ) -> Result<(), Gone> {
        self.problem(name, operation, Cause::Reason(reason), class)
    }

    fn problem(
        &mut self,
        name: &[u8],
        operation: Operation,
        cause: Cause,
        class: error::Class,
    ) -> Result<(), Gone> {
        let source = Some(self.path(name));
        let problem = Problem { operation, source, target: None, cause, class };
        self.push(Err(Trouble::Problem { name: name.into(), problem }))
    }

    fn push(&mut self, item: Item) -> Result<(), Gone> {
        self.page.push(item);
        if self.page.len() >= PAGE_ENTRIES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Gone> {
        let page = std::mem::take(&mut self.page);
        self.sender.blocking_send(Page::Items(page)).map_err(|_| Gone)
    }
}

/// What a name is; `None` for what has vanished since it was read.
fn class(query: &LocalQuery, fd: BorrowedFd<'_>, name: &CStr, kind: Kind) -> Option<Class> {
    let kind = match kind {
        Kind::Unknown => meta::of(fd, name, false).map_or(Kind::Unknown, |meta| meta.kind),
        kind => kind,
    };
    Some(match kind {
        Kind::Dir => Class::Dir { follow: false },
        Kind::Symlink => match query.symlinks {
            Symlinks::Skip => Class::Left(kind),
            Symlinks::Keep => Class::File { follow: false },
            Symlinks::Follow => match meta::of(fd, name, true).map(|meta| meta.kind) {
                Ok(Kind::Dir) => Class::Dir { follow: true },
                Ok(kind) if is_left(query, kind) => Class::Left(kind),
                // A broken link fails again where it is told of.
                _ => Class::File { follow: true },
            },
        },
        kind if is_left(query, kind) => Class::Left(kind),
        _ => Class::File { follow: false },
    })
}

fn is_left(query: &LocalQuery, kind: Kind) -> bool {
    !query.specials && (kind.is_device() || kind.is_special())
}
