//! Removal of a tree below an open directory, name by name, without following symlinks.
//!
//! [`remove_tree`] runs on the calling thread, for callers that remove one entry in the middle of other work (`sync
//! --delete`); [`parallel`] spreads whole trees over workers (`rm`). Both use a bounded number of descriptors and
//! pass only names to the kernel, so a tree may be deeper than PATH_MAX and than the limit of open files.

pub mod parallel;

use hakobu_core::error::{Cause, Operation};
use hakobu_core::unit::Kind;
use hakobu_sys::dir::Reader;
use hakobu_sys::errno::{is_gone, is_no_dir, is_not_empty};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, meta};
use std::ffi::{CStr, CString};
use std::io;

/// Deepest directories that are kept open; those above are reopened through `..`.
const OPEN_MAX: usize = 16;
/// Maximum number of times a directory is read until it is empty: some file systems skip names while others are
/// removed.
const PASSES_MAX: u32 = 8;
/// Maximum number of times a removal begins again at its top because another program removes the same tree.
const RESTARTS_MAX: u32 = 3;

/// An entry to be removed, as passed to callbacks.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// The directory that contains it.
    pub dir: BorrowedFd<'a>,
    /// Its name in `dir`.
    pub name: &'a CStr,
    /// Its path, starting with the path of the top.
    pub path: &'a [u8],
    /// Its type; never `Unknown`.
    pub kind: Kind,
}

/// Result for an entry, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    /// It was removed.
    Nothing,
    /// It, or something below it, was kept on request.
    Kept,
    /// It, or something below it, could not be removed.
    Failed,
}

/// Options of a removal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// A directory on another file system than the top is an error and is kept.
    pub one_file_system: bool,
    /// Removes nothing, but asks and reports as if it did.
    pub dry_run: bool,
    /// Adds missing owner permissions to a directory before it is emptied, as rsync does.
    pub make_writable: bool,
    /// Keeps all directories and removes only their contents.
    pub keep_dirs: bool,
}

/// Decides about entries and receives the results.
pub trait Removal {
    /// Returns whether this entry is kept. Called once for every entry including the top, for a directory before its
    /// content. A directory that contains a kept entry is kept as well.
    fn keep(&mut self, entry: &Entry<'_>) -> bool {
        let _ = entry;
        false
    }

    /// Returns whether a directory is kept although it is empty now. Called before it is removed.
    fn keep_emptied(&mut self, entry: &Entry<'_>) -> bool {
        let _ = entry;
        false
    }

    /// Called when a directory is entered; `inside` is open on it. Rule files in it can be read now.
    fn enter(&mut self, entry: &Entry<'_>, inside: BorrowedFd<'_>) {
        let _ = (entry, inside);
    }

    /// Called when the most recently entered directory is finished, whatever the result.
    fn leave(&mut self) {}

    /// Called after the entry was removed; for a directory after everything below it.
    fn removed(&mut self, entry: &Entry<'_>);

    /// Called when a directory stays because of something below it, which was reported before.
    fn stays(&mut self, entry: &Entry<'_>, left: Left) {
        let _ = (entry, left);
    }

    /// Called when the entry could not be examined, listed or removed.
    fn failed(&mut self, entry: &Entry<'_>, operation: Operation, cause: Cause);

    /// Returns whether to stop: no further entry is begun, and the remaining ones count as kept.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// A directory on the path to the current one.
struct Frame {
    /// Open if it is among the deepest [`OPEN_MAX`].
    fd: Option<OwnedFd>,
    /// Position at which reading continues after reopening.
    position: u64,
    identity: (u64, u64),
    /// Length of the path without this directory's name.
    parent_len: usize,
    /// Start of this directory's name in the path.
    name_at: usize,
    /// Subdirectories that wait to be entered.
    pending: Vec<CString>,
    ended: bool,
    passes: u32,
    left: Left,
}

struct Descent<'a, R: Removal + ?Sized> {
    top: BorrowedFd<'a>,
    options: Options,
    device: Option<u64>,
    removal: &'a mut R,
    /// Path of the deepest directory, or of the entry being examined.
    path: Vec<u8>,
    reader: Reader,
    frames: Vec<Frame>,
    /// Length of the path of the top, and where its name begins.
    top_len: usize,
    name_at: usize,
    restarts: u32,
}

/// Removes `name` in `dir` and everything below it; `kind` is its type, or `Unknown` to have it looked up. `path` is
/// the name of the entry in reports to `removal`.
///
/// Continues after errors. Memory grows with the depth of the tree only.
pub fn remove_tree<R: Removal + ?Sized>(
    dir: BorrowedFd<'_>,
    name: &CStr,
    kind: Kind,
    path: &[u8],
    options: Options,
    removal: &mut R,
) -> Left {
    let name_at = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let mut descent = Descent {
        top: dir,
        options,
        device: None,
        removal,
        path: path.to_vec(),
        reader: Reader::default(),
        frames: Vec::new(),
        top_len: path.len(),
        name_at,
        restarts: 0,
    };
    match descent.begin(name, kind, name_at) {
        Some(left) => left,
        None => descent.run(name),
    }
}

/// Opens a directory that is to be emptied; makes it accessible first if requested.
pub(crate) fn open_to_empty(
    dir: BorrowedFd<'_>,
    name: &CStr,
    make_writable: bool,
) -> io::Result<(OwnedFd, meta::Meta)> {
    let fd = match dir::open(dir, name, false) {
        Err(error) if make_writable && errno::is(&error, errno::EACCES) => {
            let meta = meta::of(dir, name, false)?;
            if meta.kind != Kind::Dir || meta::set_mode(dir, name, meta.mode | 0o700).is_err() {
                return Err(error);
            }
            dir::open(dir, name, false)?
        }
        other => other?,
    };
    let meta = meta::of_fd(&fd)?;
    if make_writable && meta.mode & 0o300 != 0o300 {
        // If this fails, removing the names fails and reports the cause.
        let _ = meta::set_mode_fd(&fd, meta.mode | 0o700);
    }
    Ok((fd, meta))
}

/// Returns the open descriptor of the deepest directory, or of the one that contains the top.
fn deepest<'a>(frames: &'a [Frame], top: BorrowedFd<'a>) -> BorrowedFd<'a> {
    frames.last().and_then(|frame| frame.fd.as_ref()).map_or(top, AsFd::as_fd)
}

impl<R: Removal + ?Sized> Descent<'_, R> {
    /// Empties and removes the directory that was entered as the top.
    fn run(&mut self, top_name: &CStr) -> Left {
        loop {
            if let Some(name) = self.frames.last_mut().and_then(|frame| frame.pending.pop()) {
                let parent_len = self.path.len();
                push_name(&mut self.path, &name);
                if let Some(left) = self.begin(&name, Kind::Dir, parent_len + 1) {
                    self.path.truncate(parent_len);
                    self.note(left);
                }
                continue;
            }
            match self.frames.last().map(|frame| frame.ended) {
                Some(false) => self.read_batch(),
                Some(true) => {
                    if let Some(left) = self.finish(top_name) {
                        return left;
                    }
                }
                None => return Left::Nothing,
            }
        }
    }

    fn note(&mut self, left: Left) {
        if let Some(frame) = self.frames.last_mut() {
            frame.left = frame.left.max(left);
        }
    }

    /// Removes one entry of the deepest directory, whose path is set; returns `None` if it was entered instead.
    fn begin(&mut self, name: &CStr, kind: Kind, name_at: usize) -> Option<Left> {
        if self.removal.is_stopped() {
            return Some(Left::Kept);
        }
        let dir = deepest(&self.frames, self.top);
        let mut entry = Entry { dir, name, path: &self.path, kind };
        if let Some(left) = ask(&mut entry, self.removal) {
            return Some(left);
        }
        if entry.kind != Kind::Dir {
            match unlink(&entry, self.options, self.removal) {
                Some(left) => return Some(left),
                None => entry.kind = Kind::Dir,
            }
        }
        let (fd, meta) = match open_to_empty(dir, name, self.options.make_writable) {
            Ok(opened) => opened,
            Err(error) if is_gone(&error) => return Some(Left::Nothing),
            Err(error) if is_no_dir(&error) => {
                entry.kind = Kind::Symlink;
                return Some(unlink(&entry, self.options, self.removal).unwrap_or(Left::Failed));
            }
            Err(error) => return Some(self.closed_dir(name, error)),
        };
        let device = *self.device.get_or_insert(meta.dev);
        if self.options.one_file_system && device != meta.dev {
            let cause = Cause::Reason("it is on another file system");
            self.removal.failed(&entry, Operation::Remove, cause);
            return Some(Left::Failed);
        }
        self.removal.enter(&entry, fd.as_fd());
        let parent_len = name_at.saturating_sub(1);
        self.frames.push(Frame {
            fd: Some(fd),
            position: 0,
            identity: meta.identity(),
            parent_len,
            name_at,
            pending: Vec::new(),
            ended: false,
            passes: 0,
            left: Left::Nothing,
        });
        self.close_one();
        None
    }

    /// Handles a directory that cannot be listed; it can still be removed if it is empty.
    fn closed_dir(&mut self, name: &CStr, error: io::Error) -> Left {
        let dir = deepest(&self.frames, self.top);
        let entry = Entry { dir, name, path: &self.path, kind: Kind::Dir };
        if !(self.options.dry_run || self.options.keep_dirs) && dir::rmdir(dir, name).is_ok() {
            self.removal.removed(&entry);
            return Left::Nothing;
        }
        self.removal.failed(&entry, Operation::List, Cause::System(error));
        Left::Failed
    }

    /// Keeps the number of open directories bounded: closes the one needed last.
    fn close_one(&mut self) {
        let Some(index) = self.frames.len().checked_sub(OPEN_MAX + 1) else { return };
        // A directory whose position is unknown stays open.
        if let Some(frame) = self.frames.get_mut(index)
            && let Some(Ok(position)) = frame.fd.as_ref().map(|fd| dir::position(fd.as_fd()))
        {
            frame.position = position;
            frame.fd = None;
        }
    }

    /// Reads names of the deepest directory; removes non-directories and queues directories.
    fn read_batch(&mut self) {
        let Descent { options, removal, path, reader, frames, .. } = self;
        let Some(frame) = frames.last_mut() else { return };
        let Some(fd) = frame.fd.as_ref().map(AsFd::as_fd) else {
            frame.ended = true;
            return;
        };
        let parent_len = path.len();
        let (left, pending) = (&mut frame.left, &mut frame.pending);
        let batch = reader.next_batch(fd, |name, kind, _| {
            if kind == Kind::Dir {
                pending.push(name.to_owned());
                return;
            }
            if removal.is_stopped() {
                *left = (*left).max(Left::Kept);
                return;
            }
            push_name(path, name);
            let mut entry = Entry { dir: fd, name, path, kind };
            let resolved = resolve(&mut entry, *removal);
            let done = match (resolved, entry.kind) {
                (Some(left), _) => Some(left),
                (None, Kind::Dir) => None,
                _ if removal.keep(&entry) => Some(Left::Kept),
                _ => unlink(&entry, *options, *removal),
            };
            match done {
                Some(now) => *left = (*left).max(now),
                None => pending.push(name.to_owned()),
            }
            path.truncate(parent_len);
        });
        match batch {
            Ok(true) => {}
            Ok(false) => frame.ended = true,
            // Another program has removed the directory itself.
            Err(error) if is_gone(&error) => frame.ended = true,
            Err(error) => {
                // Named as `.`: the descriptor of its parent may be closed.
                let entry = Entry { dir: fd, name: c".", path, kind: Kind::Dir };
                removal.failed(&entry, Operation::List, Cause::System(error));
                frame.ended = true;
                frame.left = Left::Failed;
            }
        }
    }

    /// Removes the deepest directory, which is empty now, and steps up. Returns the result of the top if that was it.
    fn finish(&mut self, top_name: &CStr) -> Option<Left> {
        let frame = self.frames.pop()?;
        self.removal.leave();
        let up = self.reopen_last(&frame);
        let is_top = self.frames.is_empty();
        let name = match is_top {
            true => Ok(top_name.to_owned()),
            false => CString::new(&self.path[frame.name_at..]),
        };
        let (name, up) = match name {
            Ok(name) => (name, up),
            Err(error) => (CString::default(), Err(error.into())),
        };
        let dir = deepest(&self.frames, self.top);
        let entry = Entry { dir, name: &name, path: &self.path, kind: Kind::Dir };
        let mut left = frame.left;
        if let Err(error) = up {
            // Another program has removed it, and perhaps those above: what is left of them is removed from the top.
            if is_gone(&error) && self.restarts < RESTARTS_MAX {
                self.restarts += 1;
                while self.frames.pop().is_some() {
                    self.removal.leave();
                }
                self.path.truncate(self.top_len);
                return self.begin(top_name, Kind::Dir, self.name_at);
            }
            // The directory was moved away: directories above can no longer be reached safely.
            self.removal.failed(&entry, Operation::Remove, Cause::System(error));
            while self.frames.pop().is_some() {
                self.removal.leave();
            }
            return Some(Left::Failed);
        }
        if left == Left::Nothing && (self.options.keep_dirs || self.removal.keep_emptied(&entry)) {
            left = Left::Kept;
        } else if left == Left::Nothing && !self.options.dry_run {
            match dir::rmdir(dir, &name) {
                Ok(()) => {}
                Err(error) if is_gone(&error) => {}
                Err(error) => {
                    if is_not_empty(&error)
                        && frame.passes < PASSES_MAX
                        && let Some(fd) = frame.fd.as_ref()
                        // A descriptor that was read to its end may show nothing again (sshfs).
                        && let Ok(fd) = dir::open(fd.as_fd(), c".", false)
                    {
                        self.removal.enter(&entry, fd.as_fd());
                        let passes = frame.passes + 1;
                        self.frames.push(Frame { fd: Some(fd), ended: false, passes, ..frame });
                        return None;
                    }
                    left = Left::Failed;
                    self.removal.failed(&entry, Operation::Remove, Cause::System(error));
                }
            }
        } else if left != Left::Nothing {
            self.removal.stays(&entry, left);
        }
        if left == Left::Nothing {
            self.removal.removed(&entry);
        }
        if is_top {
            return Some(left);
        }
        self.path.truncate(frame.parent_len);
        self.note(left);
        None
    }

    /// Reopens the deepest directory, if closed, through `..` of its former subdirectory `child`; checks its
    /// identity.
    fn reopen_last(&mut self, child: &Frame) -> io::Result<()> {
        let Some(parent) = self.frames.last_mut() else { return Ok(()) };
        if parent.fd.is_some() {
            return Ok(());
        }
        let stale = || io::Error::from_raw_os_error(errno::ESTALE);
        let below = child.fd.as_ref().ok_or_else(stale)?;
        let fd = dir::open(below.as_fd(), c"..", false)?;
        if meta::of_fd(&fd)?.identity() != parent.identity {
            return Err(stale());
        }
        dir::seek(fd.as_fd(), parent.position)?;
        parent.fd = Some(fd);
        Ok(())
    }
}

fn push_name(path: &mut Vec<u8>, name: &CStr) {
    path.push(b'/');
    path.extend_from_slice(name.to_bytes());
}

/// Looks up the type if the listing had none; returns the result if that fails.
fn resolve<R: Removal + ?Sized>(entry: &mut Entry<'_>, removal: &mut R) -> Option<Left> {
    if entry.kind != Kind::Unknown {
        return None;
    }
    match meta::of(entry.dir, entry.name, false) {
        Ok(meta) => {
            entry.kind = meta.kind;
            None
        }
        Err(error) if is_gone(&error) => Some(Left::Nothing),
        Err(error) => {
            entry.kind = Kind::File;
            removal.failed(entry, Operation::Stat, Cause::System(error));
            Some(Left::Failed)
        }
    }
}

/// As [`resolve`], then asks whether the entry stays.
fn ask<R: Removal + ?Sized>(entry: &mut Entry<'_>, removal: &mut R) -> Option<Left> {
    resolve(entry, removal).or_else(|| removal.keep(entry).then_some(Left::Kept))
}

/// Unlinks a non-directory; returns `None` if it turns out to be a directory.
fn unlink<R: Removal + ?Sized>(
    entry: &Entry<'_>,
    options: Options,
    removal: &mut R,
) -> Option<Left> {
    if options.dry_run {
        removal.removed(entry);
        return Some(Left::Nothing);
    }
    match dir::unlink(entry.dir, entry.name) {
        Ok(()) => {
            removal.removed(entry);
            Some(Left::Nothing)
        }
        Err(error) if is_gone(&error) => Some(Left::Nothing),
        Err(error) if errno::is(&error, errno::EISDIR) => None,
        Err(error) => {
            removal.failed(entry, Operation::Remove, Cause::System(error));
            Some(Left::Failed)
        }
    }
}

#[cfg(test)]
mod tests;
