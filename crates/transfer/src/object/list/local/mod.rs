//! The listing of a local tree in the order of keys: a folder sorts as `name/`, so `a-b` comes
//! before `a/x`, and that before `a0`. Everything is reached from the open top, component by
//! component; no symlink is followed unless that was asked for.

mod names;
mod walk;

use super::{Listing, ReadMergeFile, Sieve};
use crate::engine::read_merge_file;
use crate::policy::Symlinks;
use hakobu_sys::{AsFd, OwnedFd, dir};
use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

/// Which folders are entries of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dirs {
    /// None.
    #[default]
    No,
    /// Those without anything that is listed directly in them.
    Empty,
    /// All but the top.
    All,
}

/// How a local tree is listed.
#[derive(Default)]
pub struct LocalQuery {
    /// What symlinks are: left out with a notice, entries of kind `Symlink`, or what they name.
    pub symlinks: Symlinks,
    /// Folders on other file systems than the top are left out with a notice.
    pub one_file_system: bool,
    /// Which folders are entries.
    pub dirs: Dirs,
    /// Folders are not entered; all of them are entries. `dirs` does not matter then.
    pub flat: bool,
    /// Devices, FIFOs and sockets are entries (of a target, where they are in the way); else they
    /// are left out with a notice.
    pub specials: bool,
    /// Names sort as the keys that percent-encoding makes of them.
    pub encode: bool,
    /// Temporary files that dead runs of this machine left (in a target) are removed.
    pub clear_leftovers: bool,
    /// What the rules hide is left out, and hidden folders are not entered.
    pub sieve: Option<Sieve>,
}

/// Lists the tree below `top`; `shown` is its path as the user would spell it. Our own temporary
/// names are never listed.
///
/// Troubles: a folder that cannot be read is a problem of the name `folder/`, an entry that cannot
/// be looked at of its name; what was left out on purpose is a problem of class `Notice`.
pub fn local(top: Arc<OwnedFd>, shown: &Path, query: LocalQuery) -> Listing {
    let (sender, listing) = Listing::channel(query.encode, false);
    let shown = shown.to_owned();
    Listing::start(sender, "list-local", move |sender| walk::run(&top, &shown, query, sender));
    listing
}

/// Reads the per-directory files of filter rules below an open folder.
pub fn merge_files(top: Arc<OwnedFd>) -> ReadMergeFile {
    Box::new(move |folder, name| {
        if folder.is_empty() {
            return read_merge_file((*top).as_fd(), name);
        }
        let opened = dir::open_below((*top).as_fd(), &CString::new(folder)?)?;
        read_merge_file(opened.as_fd(), name)
    })
}

#[cfg(test)]
mod tests;
