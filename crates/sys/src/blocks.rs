//! Block I/O on open files for benchmarks: one system call each, without overhead. Returns the result of the
//! call: the number of bytes, which may be short, or a negative errno.

use crate::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::{IoSlice, IoSliceMut, Result};
use std::path::Path;

/// A transfer of a block, or the rest of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Index of the file.
    pub file: u32,
    /// True to write to the file.
    pub write: bool,
    /// Offset in the buffer.
    pub begin: u32,
    /// Length in bytes.
    pub bytes: u32,
    /// Offset in the file.
    pub offset: u64,
    /// I/O priority as ioprio_set(2) encodes it; 0: that of the thread. Only asynchronous I/O has one for each
    /// operation.
    pub priority: u16,
}

/// Opens an existing file or device for block I/O; `direct` bypasses the page cache (O_DIRECT). Does not
/// update access times if permitted (O_NOATIME).
///
/// # Errors
/// Those of open(2): EINVAL for `direct` if the file system does not support it.
pub fn open(path: &Path, write: bool, direct: bool) -> Result<OwnedFd> {
    open_synced(path, write, direct, Sync::None)
}

/// Synchronisation of writes with the device, open(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// None.
    None,
    /// Data and metadata: O_SYNC.
    All,
    /// Data and the metadata needed to read it: O_DSYNC.
    Data,
}

/// As [`open`], with synchronised writes.
///
/// # Errors
/// As [`open`].
pub fn open_synced(path: &Path, write: bool, direct: bool, sync: Sync) -> Result<OwnedFd> {
    let mut flags = OFlags::CLOEXEC | OFlags::NOCTTY;
    flags |= if write { OFlags::RDWR } else { OFlags::RDONLY };
    if direct {
        flags |= OFlags::DIRECT;
    }
    flags |= match sync {
        Sync::None => OFlags::empty(),
        Sync::All => OFlags::SYNC,
        // `OFlags::DSYNC` of rustix 1.1 is O_SYNC on its Linux back end.
        Sync::Data => OFlags::from_bits_retain(libc::O_DSYNC as u32),
    };
    match rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty()) {
        // O_NOATIME requires ownership.
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

/// RWF_ATOMIC of linux/fs.h (Linux 6.11): all of the block is written, or nothing.
pub(crate) const RWF_ATOMIC: u32 = 0x40;

/// pwritev2(2) with one buffer and RWF_ATOMIC.
#[inline(always)]
pub fn writev2_atomic_at(file: &OwnedFd, buffer: &[u8], offset: u64) -> i64 {
    let flags = ReadWriteFlags::from_bits_retain(RWF_ATOMIC);
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

/// lseek(2) to an offset from the start; returns 0 on success.
#[inline(always)]
pub fn seek(file: &OwnedFd, offset: u64) -> i64 {
    match rustix::fs::seek(file, SeekFrom::Start(offset)) {
        Ok(_) => 0,
        Err(error) => -i64::from(error.raw_os_error()),
    }
}

/// fsync(2), or fdatasync(2) if `data`; returns 0 on success.
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
pub(crate) mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A file of 64 blocks of 4096 bytes, each filled with its number.
    pub(crate) fn numbered(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("hakobu-{name}-{}", std::process::id()));
        let content: Vec<u8> = (0..64u8).flat_map(|block| [block; 4096]).collect();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A transfer of one of its blocks.
    pub(crate) fn block(number: u32, write: bool) -> Transfer {
        let offset = 4096 * u64::from(number);
        Transfer { file: 0, write, begin: 0, bytes: 4096, offset, priority: 0 }
    }

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
