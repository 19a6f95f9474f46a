//! Removal of files below an open folder, by descriptors and never through a symlink, and of directories that became
//! empty.

use crate::failure::c_string;
use crate::object::Entry;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::errno::{is_gone, is_not_empty};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, below, dir, meta};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::ffi::CString;
use std::io;

/// Directories to remove as soon as they are empty: their removal and those of their entries are tasks that run
/// concurrently on several cores. Grows with the number of such directories that are not empty yet.
#[derive(Default)]
pub(in crate::object) struct Emptied(Mutex<HashSet<Vec<u8>>>);

impl Emptied {
    fn add(&self, path: &[u8]) {
        self.0.lock().insert(path.to_vec());
    }

    fn has(&self, path: &[u8]) -> bool {
        self.0.lock().contains(path)
    }

    fn take(&self, path: &[u8]) -> bool {
        self.0.lock().remove(path)
    }
}

/// The folder of the last entry: names come sorted, so the next one is often in the same folder.
#[derive(Default)]
pub(super) struct Folder {
    path: Vec<u8>,
    fd: Option<OwnedFd>,
}

/// Result of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was removed.
    Removed,
    /// It is a non-empty directory, which is removed after its content.
    Waits,
}

/// Splits a path without a trailing slash into the folder (empty for the root) and the name in it.
fn divide(path: &[u8]) -> (&[u8], &[u8]) {
    let (folder, name) = below::split(path);
    (folder.strip_suffix(b"/").unwrap_or(folder), name)
}

impl Folder {
    /// Opens a folder below `root`, unless it is already open.
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

/// Returns the device and inode of an entry below `root`.
pub(super) fn identity(root: &OwnedFd, entry: &Entry, folder: &mut Folder) -> Option<(u64, u64)> {
    let path = entry.name.strip_suffix(b"/").unwrap_or(&entry.name);
    let (above, name) = divide(path);
    let parent = folder.open(root, above).ok()?;
    meta::of(parent, &c_string(name).ok()?, false).ok().map(|meta| meta.identity())
}

/// Removes an entry below `root`; a directory (its name ends with a slash) when it is empty, now or after a later
/// removal. `on_removed` is called with directories above that were removed along with it. A missing entry counts as
/// removed.
///
/// # Errors
/// The system's error.
pub(super) fn remove(
    root: &OwnedFd,
    entry: &Entry,
    folder: &mut Folder,
    emptied: &Emptied,
    on_removed: &mut dyn FnMut(&[u8]),
) -> io::Result<Outcome> {
    let is_dir = entry.name.ends_with(b"/") || entry.meta.kind == Kind::Dir;
    let path = entry.name.strip_suffix(b"/").unwrap_or(&entry.name);
    let (above, name) = divide(path);
    let name: CString = c_string(name)?;
    if is_dir {
        // Register before trying: a thread that removes the last entry meanwhile sees it.
        emptied.add(path);
    }
    let removed = folder.open(root, above).and_then(|parent| match is_dir {
        true => dir::rmdir(parent, &name),
        false => dir::unlink(parent, &name),
    });
    match removed {
        Err(error) if is_dir && is_not_empty(&error) => return Ok(Outcome::Waits),
        Err(error) if is_gone(&error) => {}
        Err(error) => {
            emptied.take(path);
            return Err(error);
        }
        Ok(()) => {}
    }
    // Another core may have removed and reported it between the two steps above.
    let ours = !is_dir || emptied.take(path);
    upwards(root, above, emptied, on_removed);
    Ok(if ours { Outcome::Removed } else { Outcome::Waits })
}

/// Removes registered directories above, as far as they are empty.
fn upwards(root: &OwnedFd, mut path: &[u8], emptied: &Emptied, on_removed: &mut dyn FnMut(&[u8])) {
    while !path.is_empty() && emptied.has(path) {
        let (above, name) = divide(path);
        let Ok(name) = c_string(name) else { return };
        let mut folder = Folder::default();
        let removed = folder.open(root, above).and_then(|parent| dir::rmdir(parent, &name));
        // A non-empty one keeps waiting; other failures are reported by the directory's own task or are harmless.
        if removed.is_err() {
            return;
        }
        if emptied.take(path) {
            on_removed(path);
        }
        path = above;
    }
}

/// Returns whether a file is unchanged since it was listed.
fn is_same(was: &Meta, now: &Meta) -> bool {
    was.identity() == now.identity()
        && was.size == now.size
        && was.mtime == now.mtime
        && was.kind == now.kind
}

/// Removes a source file that was moved, if it is unchanged since it was listed; returns `false` if it is not. A
/// symlink that was followed is removed itself, its referent stays. With `and_dirs` the directories above, below the
/// root, are removed as well when they are empty.
///
/// # Errors
/// The system's error; a missing file is none.
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
        // A directory's times change when its entries are moved.
        Ok(now) if now.kind == Kind::Dir && entry.meta.kind == Kind::Dir => {
            return match dir::rmdir(parent, &name) {
                Err(error) if is_not_empty(&error) || is_gone(&error) => Ok(true),
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
