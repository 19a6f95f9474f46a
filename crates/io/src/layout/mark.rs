//! The mark of files that were laid out here: an extended attribute that holds the file's inode, size
//! and modification time. Once another program has written to the file, the mark no longer fits, and
//! the file counts as theirs.

use hakobu_sys::{BorrowedFd, errno, meta, xattr};
use std::ffi::CStr;
use std::io::{Error, Result};

/// The attribute.
const NAME: &CStr = c"user.hakobu.io";

/// Returns whether the file matches its mark; false for a missing or unreadable mark.
///
/// # Errors
/// Those of fstat(2), and of fgetxattr(2) other than a missing or impossible attribute.
pub(super) fn fits(fd: BorrowedFd<'_>) -> Result<bool> {
    let mut buffer = Vec::new();
    match xattr::get(fd, NAME, &mut buffer) {
        Ok(value) => Ok(value == text(fd)?.as_bytes()),
        Err(error) if is_none(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Marks the file as it is now. A file system without extended attributes is not a reason not to measure
/// it: a later run does not write to the file then.
///
/// # Errors
/// Those of fstat(2), and of fsetxattr(2) other than a file system that has no such attributes.
pub(super) fn set(fd: BorrowedFd<'_>) -> Result<()> {
    match xattr::set(fd, NAME, text(fd)?.as_bytes()) {
        Err(error) if is_none(&error) => Ok(()),
        other => other,
    }
}

fn text(fd: BorrowedFd<'_>) -> Result<String> {
    let meta = meta::of_fd(fd)?;
    Ok(format!("2 {} {} {}.{:09}", meta.ino, meta.size, meta.mtime.s, meta.mtime.ns))
}

/// Missing, impossible here, or not permitted: FAT, some FUSE file systems, a full inode.
fn is_none(error: &Error) -> bool {
    [errno::ENODATA, errno::EOPNOTSUPP, errno::ENOSYS, errno::EPERM, errno::EACCES, errno::ENOSPC]
        .iter()
        .any(|code| errno::is(error, *code))
}
