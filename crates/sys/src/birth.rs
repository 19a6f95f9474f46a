//! Creation time of a file, statx(2).

use crate::BorrowedFd;
use crate::meta::Time;
use rustix::fs::{AtFlags, StatxFlags};
use std::ffi::CStr;
use std::io::Result;

/// Creation time of an entry; `None` if the file system does not record it (NFS before 4.2, most FUSE file
/// systems). Symlinks are not followed.
pub fn of(dir: BorrowedFd<'_>, name: &CStr) -> Result<Option<Time>> {
    let found = rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME)?;
    let known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    Ok(known.then_some(Time { s: found.stx_btime.tv_sec, ns: found.stx_btime.tv_nsec }))
}
