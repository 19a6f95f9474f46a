//! Blocks of a file: reservation, hole punching, search for holes.

use crate::BorrowedFd;
use rustix::fs::{FallocateFlags, SeekFrom};
use std::io::Result;

/// Reserves blocks without changing the size, so that an unfinished file never has its full size.
pub fn reserve(fd: BorrowedFd<'_>, len: u64) -> Result<()> {
    Ok(rustix::fs::fallocate(fd, FallocateFlags::KEEP_SIZE, 0, len)?)
}

/// Punches a hole (`fallocate(2)`, `PUNCH_HOLE`). The file size stays.
///
/// # Errors
/// EOPNOTSUPP if the file system does not support it.
pub fn punch(fd: BorrowedFd<'_>, offset: u64, len: u64) -> Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(rustix::fs::fallocate(fd, flags, offset, len)?)
}

/// Next extent of data at or after `offset` (`SEEK_DATA`, `SEEK_HOLE`): start and end. `None` if only a hole
/// follows.
///
/// # Errors
/// EINVAL if the file system does not support it.
pub fn next_data(fd: BorrowedFd<'_>, offset: u64) -> Result<Option<(u64, u64)>> {
    let start = match rustix::fs::seek(fd, SeekFrom::Data(offset)) {
        Ok(start) => start,
        Err(rustix::io::Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(Some((start, rustix::fs::seek(fd, SeekFrom::Hole(start))?)))
}
