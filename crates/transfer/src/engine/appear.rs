//! How a finished file gets its name: the pieces that local copies and downloads share.

use super::node::{Failure, c_string};
use crate::error::Operation;
use crate::policy::Policy;
use hakobu_sys::{BorrowedFd, dir, errno};
use std::ffi::{CStr, CString};
use std::io;

/// Files up to this size may be created under their final name.
pub(crate) const DIRECT_BYTES_MAX: u64 = 64 << 20;

/// Whether nothing in the policy forbids to create files under their final name: killed half-way
/// such a file is shorter than its source and as new as the moment, which only a later run that
/// compares sizes and times sees.
pub(crate) fn allows_direct(policy: &Policy) -> bool {
    !policy.update
        && !policy.existing
        && !policy.ignore_existing
        && !policy.size_only
        && !policy.fsync
        && !policy.partial
        && policy.temp_dir.is_none()
}

/// The moment (in seconds since 1970) before which a source has to have changed last, so that its
/// file may be created under its final name. Two seconds cover file systems whose times are that
/// coarse (FAT).
pub(crate) fn direct_before_s(policy: &Policy) -> i64 {
    crate::unit::Time::now().s - 2 - policy.modify_window_s.max(0)
}

/// Whether the error says that the file system has no `O_TMPFILE`: NFS, FUSE and old overlays each
/// say so in their own way.
pub(crate) fn lacks_unnamed(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(errno::EOPNOTSUPP | errno::EISDIR | errno::EINVAL | errno::ENOENT)
    )
}

/// Renames a finished temporary entry to its final name. Where nothing was there (`fresh`) when we
/// looked, whatever came since is not ours to replace: EEXIST then, where the file system can.
pub(crate) fn rename_into_place(
    from: BorrowedFd<'_>,
    temp: &CStr,
    to: BorrowedFd<'_>,
    name: &CStr,
    fresh: bool,
) -> io::Result<()> {
    if fresh {
        match dir::rename_new(from, temp, to, name) {
            Err(error) if errno::is(&error, errno::EINVAL) => {}
            other => return other,
        }
    }
    dir::rename(from, temp, to, name)
}

/// The name of a backup: the name and the suffix.
pub(crate) fn backup_name(policy: &Policy, name: &CStr) -> io::Result<CString> {
    c_string(&[name.to_bytes(), &policy.suffix].concat())
}

/// Keeps what is under `name` under its backup name as well, without a moment in which the name is
/// free; file systems without hard links get that moment.
pub(crate) fn back_up(policy: &Policy, dir_fd: BorrowedFd<'_>, name: &CStr) -> Result<(), Failure> {
    let backup = backup_name(policy, name).map_err(Failure::of(Operation::Rename))?;
    match dir::unlink(dir_fd, &backup) {
        Err(error) if !errno::is(&error, errno::ENOENT) => {
            return Err(Failure { operation: Operation::Remove, error });
        }
        _ => {}
    }
    if dir::link(dir_fd, name, dir_fd, &backup).is_ok() {
        return Ok(());
    }
    dir::rename(dir_fd, name, dir_fd, &backup).map_err(Failure::of(Operation::Rename))
}
