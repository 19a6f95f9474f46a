//! Removing files below an open folder, by descriptors and never through a symlink; and the
//! directories that have nothing left in them.

use crate::engine::node::c_string;
use crate::engine::pool::lock;
use crate::object::Entry;
use crate::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, meta};
use std::collections::HashSet;
use std::ffi::CString;
use std::io;
use std::sync::Mutex;

/// Directories that are to go as soon as they are empty: their removal and those of what is in
/// them are tasks that run at the same time on several cores. Grows with the number of such
/// directories that are not empty yet.
#[derive(Default)]
pub(in crate::object) struct Emptied(Mutex<HashSet<Vec<u8>>>);

impl Emptied {
    fn add(&self, path: &[u8]) {
        lock(&self.0).insert(path.to_vec());
    }

    fn has(&self, path: &[u8]) -> bool {
        lock(&self.0).contains(path)
    }

    fn take(&self, path: &[u8]) -> bool {
        lock(&self.0).remove(path)
    }
}

/// The folder of the last entry: names come sorted, so the next one is often in the same.
#[derive(Default)]
pub(super) struct Folder {
    path: Vec<u8>,
    fd: Option<OwnedFd>,
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is gone.
    Removed,
    /// It is a directory with something in it, and goes when that has gone.
    Waits,
}

/// A path without a last slash, divided into the folder (empty for the root) and the name in it.
fn divide(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

impl Folder {
    /// Opens a folder below `root`, unless it is the one that is open.
    fn open<'a>(&'a mut self, root: &'a OwnedFd, path: &[u8]) -> io::Result<BorrowedFd<'a>> {
        if path.is_empty() {
            return Ok(root.as_fd());
        }
        if self.path != path {
            self.fd = None;
        }
        if self.fd.is_none() {
            self.fd = Some(dir::open_below(root.as_fd(), &c_string(path)?)?);
            self.path = path.to_vec();
        }
        Ok(self.fd.as_ref().map_or(root.as_fd(), AsFd::as_fd))
    }
}

fn is_gone(error: &io::Error) -> bool {
    errno::is(error, errno::ENOENT)
}

/// Whether a directory could not be removed for having something in it.
fn is_full(error: &io::Error) -> bool {
    errno::is(error, errno::ENOTEMPTY) || errno::is(error, errno::EEXIST)
}

/// Removes an entry below `root`; a directory (its name ends with a slash) when nothing is left in
/// it, now or after a later removal. `told` hears of directories above that went with it. What is
/// gone already counts as removed.
///
/// # Errors
/// What the system says.
pub(super) fn remove(
    root: &OwnedFd,
    entry: &Entry,
    folder: &mut Folder,
    emptied: &Emptied,
    told: &mut dyn FnMut(&[u8]),
) -> io::Result<Outcome> {
    let is_dir = entry.name.ends_with(b"/") || entry.meta.kind == Kind::Dir;
    let path = entry.name.strip_suffix(b"/").unwrap_or(&entry.name);
    let (above, name) = divide(path);
    let name: CString = c_string(name)?;
    if is_dir {
        // First remembered, then tried: who removes the last thing in it meanwhile sees it.
        emptied.add(path);
    }
    let removed = folder.open(root, above).and_then(|parent| match is_dir {
        true => dir::rmdir(parent, &name),
        false => dir::unlink(parent, &name),
    });
    match removed {
        Err(error) if is_dir && is_full(&error) => return Ok(Outcome::Waits),
        Err(error) if is_gone(&error) => {}
        Err(error) => {
            emptied.take(path);
            return Err(error);
        }
        Ok(()) => {}
    }
    // Another core may have removed and told it between the two steps above.
    let ours = !is_dir || emptied.take(path);
    upwards(root, above, emptied, told);
    Ok(if ours { Outcome::Removed } else { Outcome::Waits })
}

/// Removes those directories above that wait to be empty, as far as they are.
fn upwards(root: &OwnedFd, mut path: &[u8], emptied: &Emptied, told: &mut dyn FnMut(&[u8])) {
    while !path.is_empty() && emptied.has(path) {
        let (above, name) = divide(path);
        let Ok(name) = c_string(name) else { return };
        let mut folder = Folder::default();
        let removed = folder.open(root, above).and_then(|parent| dir::rmdir(parent, &name));
        // One that is not empty yet waits on; any other failure is told by its own task or is of
        // no further harm.
        if removed.is_err() {
            return;
        }
        if emptied.take(path) {
            told(path);
        }
        path = above;
    }
}

/// Whether a file is still what it was when it was listed.
fn is_same(was: &Meta, now: &Meta) -> bool {
    was.identity() == now.identity()
        && was.size == now.size
        && was.mtime == now.mtime
        && was.kind == now.kind
}

/// Removes a source file that was moved, if it is still what was listed; `false` where it is not.
/// A symlink that was followed goes itself, what it names stays. With `and_dirs` the directories
/// above, up to the root, go as well once they have nothing in them.
///
/// # Errors
/// What the system says; a file that is gone already is none.
pub(super) fn remove_moved(root: &OwnedFd, entry: &Entry, and_dirs: bool) -> io::Result<bool> {
    let path = entry.name.strip_suffix(b"/").unwrap_or(&entry.name);
    let (above, name) = divide(path);
    let name = c_string(name)?;
    let mut folder = Folder::default();
    let parent = match folder.open(root, above) {
        Err(error) if is_gone(&error) => return Ok(true),
        other => other?,
    };
    let now = meta::of(parent, &name, false).and_then(|now| match now.kind {
        Kind::Symlink if entry.meta.kind != Kind::Symlink => meta::of(parent, &name, true),
        _ => Ok(now),
    });
    match now {
        Err(error) if is_gone(&error) => return Ok(true),
        Err(error) => return Err(error),
        // A directory's times change when things in it are moved.
        Ok(now) if now.kind == Kind::Dir && entry.meta.kind == Kind::Dir => {
            return match dir::rmdir(parent, &name) {
                Err(error) if is_full(&error) || is_gone(&error) => Ok(true),
                other => other.map(|()| true),
            };
        }
        Ok(now) if !is_same(&entry.meta, &now) => return Ok(false),
        Ok(_) => {}
    }
    match dir::unlink(parent, &name) {
        Err(error) if !is_gone(&error) => return Err(error),
        _ => {}
    }
    if and_dirs {
        let mut path = above;
        while !path.is_empty() {
            let (above, name) = divide(path);
            let name = c_string(name)?;
            let mut folder = Folder::default();
            if folder.open(root, above).and_then(|parent| dir::rmdir(parent, &name)).is_err() {
                break;
            }
            path = above;
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
