//! Blocks of open files, as a benchmark moves them: one system call each and nothing around it. What
//! the call says comes back as it is: the bytes that went, which may be fewer than asked for, or the
//! errno as a negative number.

use crate::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::{IoSlice, IoSliceMut, Result};
use std::path::Path;

/// A block, or what is left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which of the files.
    pub file: u32,
    /// To the file, not from it.
    pub write: bool,
    /// Where in the buffer it begins.
    pub begin: u32,
    /// Bytes.
    pub bytes: u32,
    /// Where in the file.
    pub offset: u64,
}

/// Opens an existing file or device for blocks; `direct` is O_DIRECT: past the page cache. Times of
/// access are left alone where that is allowed (O_NOATIME).
///
/// # Errors
/// What open(2) says: EINVAL for `direct` where the file system has none.
pub fn open(path: &Path, write: bool, direct: bool) -> Result<OwnedFd> {
    let mut flags = OFlags::CLOEXEC | OFlags::NOCTTY;
    flags |= if write { OFlags::RDWR } else { OFlags::RDONLY };
    if direct {
        flags |= OFlags::DIRECT;
    }
    match rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty()) {
        // Only the owner may.
        Err(Errno::PERM) => Ok(rustix::fs::open(path, flags, Mode::empty())?),
        other => Ok(other?),
    }
}

/// pread(2).
#[inline(always)]
pub fn read_at(file: &OwnedFd, buffer: &mut [u8], offset: u64) -> i64 {
    result(|| rustix::io::pread(file, &mut *buffer, offset))
}

/// pwrite(2).
#[inline(always)]
pub fn write_at(file: &OwnedFd, buffer: &[u8], offset: u64) -> i64 {
    result(|| rustix::io::pwrite(file, buffer, offset))
}

/// preadv2(2) with one buffer and no flags.
#[inline(always)]
pub fn readv2_at(file: &OwnedFd, buffer: &mut [u8], offset: u64) -> i64 {
    let flags = ReadWriteFlags::empty();
    result(|| rustix::io::preadv2(file, &mut [IoSliceMut::new(&mut *buffer)], offset, flags))
}

/// pwritev2(2) with one buffer and no flags.
#[inline(always)]
pub fn writev2_at(file: &OwnedFd, buffer: &[u8], offset: u64) -> i64 {
    let flags = ReadWriteFlags::empty();
    result(|| rustix::io::pwritev2(file, &[IoSlice::new(buffer)], offset, flags))
}

/// read(2), at the file's position.
#[inline(always)]
pub fn read(file: &OwnedFd, buffer: &mut [u8]) -> i64 {
    result(|| rustix::io::read(file, &mut *buffer))
}

/// write(2), at the file's position.
#[inline(always)]
pub fn write(file: &OwnedFd, buffer: &[u8]) -> i64 {
    result(|| rustix::io::write(file, buffer))
}

/// lseek(2) to a place from the file's start; 0 if it went.
#[inline(always)]
pub fn seek(file: &OwnedFd, offset: u64) -> i64 {
    match rustix::fs::seek(file, SeekFrom::Start(offset)) {
        Ok(_) => 0,
        Err(error) => -i64::from(error.raw_os_error()),
    }
}

/// fsync(2), or fdatasync(2) if only `data` has to be on the device; 0 if it went.
pub fn sync(file: impl AsFd, data: bool) -> i64 {
    result(|| {
        let done = if data { rustix::fs::fdatasync(&file) } else { rustix::fs::fsync(&file) };
        done.map(|()| 0)
    })
}

#[inline(always)]
fn result(mut call: impl FnMut() -> rustix::io::Result<usize>) -> i64 {
    loop {
        match call() {
            Ok(bytes) => return bytes as i64,
            Err(Errno::INTR) => {}
            Err(error) => return -i64::from(error.raw_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_moves_its_bytes_and_says_its_errno() {
        let path = std::env::temp_dir().join(format!("hakobu-blocks-{}", std::process::id()));
        assert!(open(&path, false, false).is_err());
        std::fs::write(&path, "0123456789").unwrap();
        let file = open(&path, true, false).unwrap();
        let mut buffer = [0; 4];
        assert_eq!((read_at(&file, &mut buffer, 3), &buffer), (4, b"3456"));
        assert_eq!((readv2_at(&file, &mut buffer, 8), &buffer), (2, b"8956"));
        assert_eq!((write_at(&file, b"ab", 0), writev2_at(&file, b"cd", 2)), (2, 2));
        assert_eq!((seek(&file, 4), write(&file, b"ef"), read(&file, &mut buffer)), (0, 2, 4));
        assert_eq!(&buffer, b"6789");
        assert_eq!((sync(&file, false), sync(&file, true)), (0, 0));
        assert_eq!(std::fs::read(&path).unwrap(), b"abcdef6789");
        let only = open(&path, false, false).unwrap();
        assert_eq!(write_at(&only, b"x", 0), -i64::from(libc::EBADF));
        assert_eq!(write(&only, b"x"), -i64::from(libc::EBADF));
        assert_eq!(seek(&only, u64::MAX), -i64::from(libc::EINVAL));
        std::fs::remove_file(&path).unwrap();
    }
}
