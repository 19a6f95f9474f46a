//! A directory of a walk: its handles, its unfinished units, and the paths below it.

use crate::handle::Handle;
use crate::names::push_name;
use hakobu_sys::{OwnedFd, errno};
use std::ffi::{CStr, CString};
use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

/// A directory of a walk.
pub struct Dir<D> {
    /// The directory that contains it; `None` for a top.
    pub parent: Option<Arc<Dir<D>>>,
    /// One path component; for a top its path as typed.
    pub name: CString,
    /// The visitor's own data.
    pub data: D,
    /// Set when it is open, one handle for each side.
    pub(super) sides: OnceLock<Vec<Arc<Handle>>>,
    /// Units and directories in it that are unfinished, and its listing.
    pub(super) pending: AtomicUsize,
}

impl<D> Dir<D> {
    pub(super) fn new(parent: Option<Arc<Dir<D>>>, name: CString, data: D) -> Arc<Dir<D>> {
        let (sides, pending) = (OnceLock::new(), AtomicUsize::new(1));
        Arc::new(Dir { parent, name, data, sides, pending })
    }

    /// Returns the handle of one side.
    ///
    /// # Errors
    /// EBADF if it is not open, or has no such side.
    pub fn handle(&self, side: usize) -> io::Result<&Arc<Handle>> {
        let handle = self.sides.get().and_then(|sides| sides.get(side));
        handle.ok_or_else(|| io::Error::from_raw_os_error(errno::EBADF))
    }

    /// Returns an open descriptor of one side; it stays open as long as the returned value lives.
    ///
    /// # Errors
    /// As [`Dir::handle`] and [`Handle::fd`].
    pub fn fd(&self, side: usize) -> io::Result<Arc<OwnedFd>> {
        self.handle(side)?.fd()
    }

    /// Returns the path of this directory, or of a name in it, starting with the top as typed.
    pub fn path(&self, name: Option<&CStr>) -> Vec<u8> {
        let (top, mut names) = self.way(name);
        names.push(&top.name);
        join(&names)
    }

    /// Returns the path of a name in this directory, relative to the top.
    pub fn path_below(&self, name: &CStr) -> Vec<u8> {
        join(&self.way(Some(name)).1)
    }

    /// Returns the top, and the names below it in reverse order.
    fn way<'a>(&'a self, name: Option<&'a CStr>) -> (&'a Dir<D>, Vec<&'a CStr>) {
        let mut names: Vec<&CStr> = name.into_iter().collect();
        let mut here = self;
        while let Some(parent) = here.parent.as_deref() {
            names.push(&here.name);
            here = parent;
        }
        (here, names)
    }
}

fn join(backwards: &[&CStr]) -> Vec<u8> {
    let mut path = Vec::new();
    backwards.iter().rev().for_each(|name| push_name(&mut path, name.to_bytes()));
    path
}

impl<D> Drop for Dir<D> {
    fn drop(&mut self) {
        // Iterative: recursion over a chain of 100,000 parents would overflow the stack.
        let mut parent = self.parent.take();
        while let Some(mut last) = parent.and_then(Arc::into_inner) {
            parent = last.parent.take();
        }
    }
}
