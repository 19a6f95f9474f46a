//! Paths as the user types them, for system calls.

use crate::failure::c_string;
use hakobu_sys::{OwnedFd, dir};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Makes a C string of a path.
///
/// # Errors
/// EINVAL if there is a NUL inside.
pub(super) fn c_path(path: &Path) -> io::Result<CString> {
    c_string(path.as_os_str().as_bytes())
}

/// Returns a folder's path; an empty one is the current folder.
pub(super) fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Returns the folder of an entry's path.
pub(super) fn parent(path: &Path) -> &Path {
    or_here(path.parent().unwrap_or(Path::new("")))
}

/// Opens a folder by its path.
///
/// # Errors
/// Those of the system.
pub(super) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    dir::open_root(&c_path(or_here(path))?)
}
