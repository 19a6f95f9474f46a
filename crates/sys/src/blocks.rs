//! Files and devices to measure: open flags, O_DIRECT alignment, size and allocation; block I/O on them, one system call
//! each, without overhead; and ranges: release (fallocate(2), ftruncate(2), BLKDISCARD) and exchange.

use crate::meta::{self, Kind};
use crate::{AsFd, BorrowedFd, OwnedFd};
use rustix::fd::AsRawFd;
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, SeekFrom, StatxFlags};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::{Error, IoSlice, IoSliceMut, Result};
use std::path::Path;

/// Opens an existing file or block device. `direct` bypasses the page cache (O_DIRECT); `exclusive` claims a
/// block device against other claims, including mounts (O_EXCL).
///
/// # Errors
/// Those of open(2): EINVAL if the file system does not support O_DIRECT, EBUSY if a device is in use, EROFS
/// and EACCES if it is not writable.
pub fn open_for_io(
    path: &Path,
    read: bool,
    write: bool,
    direct: bool,
    exclusive: bool,
) -> Result<OwnedFd> {
    // Does not wait for the peer of a FIFO and does not acquire a controlling terminal; O_NONBLOCK has no
    // effect on files and block devices.
    let mut flags = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    flags |= match (read, write) {
        (_, false) => OFlags::RDONLY,
        (false, true) => OFlags::WRONLY,
        (true, true) => OFlags::RDWR,
    };
    if direct {
        flags |= OFlags::DIRECT;
    }
    if exclusive {
        flags |= OFlags::EXCL;
    }
    Ok(rustix::fs::openat(rustix::fs::CWD, path, flags, Mode::empty())?)
}

/// Creates a file for writing; fails with EEXIST if the name exists.
pub fn create_for_io(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat(rustix::fs::CWD, path, flags, Mode::from_raw_mode(0o644))?)
}

/// Alignment required by O_DIRECT, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// Alignment of the buffer address.
    pub memory_bytes: u64,
    /// Alignment of offset and length.
    pub offset_bytes: u64,
}

/// Alignment required by O_DIRECT for this file or block device: STATX_DIOALIGN of statx(2) (Linux 6.1), for
/// block devices on older kernels the logical block size. `None` if unknown; zeros if O_DIRECT is
/// unsupported.
pub fn direct_alignment(fd: BorrowedFd<'_>) -> Option<Alignment> {
    let flags = AtFlags::EMPTY_PATH;
    if let Ok(stat) = rustix::fs::statx(fd, c"", flags, StatxFlags::DIOALIGN)
        && stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0
    {
        return Some(Alignment {
            memory_bytes: stat.stx_dio_mem_align.into(),
            offset_bytes: stat.stx_dio_offset_align.into(),
        });
    }
    let block = u64::from(rustix::fs::ioctl_blksszget(fd).ok()?);
    Some(Alignment { memory_bytes: block, offset_bytes: block })
}

/// Size of a regular file or block device in bytes; `None` for other types.
///
/// # Errors
/// Those of fstat(2) or lseek(2).
pub fn size_bytes(fd: BorrowedFd<'_>) -> Result<Option<u64>> {
    let meta = meta::of_fd(fd)?;
    match meta.kind {
        Kind::File => Ok(Some(meta.size)),
        Kind::BlockDevice => Ok(Some(crate::file::seek_size(fd)?).filter(|end| *end > 0)),
        _ => Ok(None),
    }
}

/// Extends a file and allocates its blocks: fallocate(2).
///
/// # Errors
/// ENOSPC; EOPNOTSUPP if the file system does not support it.
pub fn allocate(fd: impl AsFd, bytes: u64) -> Result<()> {
    let allocate = || rustix::fs::fallocate(fd.as_fd(), FallocateFlags::empty(), 0, bytes);
    Ok(rustix::io::retry_on_intr(allocate)?)
}

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
    None,
    /// Data and metadata: O_SYNC.
    All,
    /// Data and the metadata needed to read it: O_DSYNC.
    Data,
}

/// As [`open`], with synchronised writes.
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
    use crate::meta::of_fd;
    use std::os::unix::fs::FileExt;
    use std::path::PathBuf;

    /// A file of 64 blocks of 4096 bytes, each filled with its number.
    pub(crate) fn numbered(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("hakobu-{name}-{}", std::process::id()));
        let content: Vec<u8> = (0..64u8).flat_map(|block| [block; 4096]).collect();
        std::fs::write(&path, content).unwrap();
        path
    }

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

    #[test]
    fn files_are_opened_as_told() {
        let path = std::env::temp_dir().join(format!("hakobu-open-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let made = create_for_io(&path).unwrap();
        assert_eq!(create_for_io(&path).unwrap_err().raw_os_error(), Some(libc::EEXIST));
        match allocate(&made, 8192) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                crate::file::set_len(made.as_fd(), 8192).unwrap();
            }
            other => other.unwrap(),
        }
        assert_eq!(size_bytes(made.as_fd()).unwrap(), Some(8192));
        let open = |read, write| {
            std::fs::File::from(open_for_io(&path, read, write, false, false).unwrap())
        };
        let mut byte = [0];
        assert!(open(true, false).read_at(&mut byte, 0).is_ok());
        assert!(open(true, false).write_at(&byte, 0).is_err());
        assert!(open(false, true).read_at(&mut byte, 0).is_err());
        assert!(open(false, true).write_at(&byte, 0).is_ok());
        let both = open(true, true);
        assert!(both.read_at(&mut byte, 0).is_ok() && both.write_at(&byte, 0).is_ok());
        std::fs::remove_file(&path).unwrap();
        let error = open_for_io(&path, true, false, false, false).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn what_has_no_size_says_so() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(size_bytes(null.as_fd()).unwrap(), None);
        assert_eq!(direct_alignment(null.as_fd()).map(|found| found.offset_bytes > 0), None);
    }

    #[test]
    fn ranges_are_taken_and_given_back() {
        let path = std::env::temp_dir().join(format!("hakobu-ranges-{}", std::process::id()));
        std::fs::write(&path, [7u8; 8192]).unwrap();
        let file: OwnedFd =
            std::fs::File::options().read(true).write(true).open(&path).unwrap().into();
        let keeps = take(&file, Take::Keep, 0, 65536);
        if keeps == -i64::from(libc::EOPNOTSUPP) {
            std::fs::remove_file(&path).unwrap();
            return;
        }
        assert_eq!((keeps, std::fs::metadata(&path).unwrap().len()), (0, 8192));
        assert_eq!(take(&file, Take::Grow, 0, 32768), 0);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 32768);
        assert_eq!(take(&file, Take::Punch, 0, 4096), 0);
        let content = std::fs::read(&path).unwrap();
        assert!(content[..4096].iter().all(|byte| *byte == 0));
        assert!(content[4096..8192].iter().all(|byte| *byte == 7));
        assert_eq!(cut(&file, 100), 0);
        assert_eq!(of_fd(&file).unwrap().size, 100);
        assert_eq!(take(&file, Take::Grow, 0, 0), -i64::from(libc::EINVAL));
        assert!(discard(&file, 0, 4096) < 0, "no device");
        std::fs::remove_file(&path).unwrap();
    }
}

/// Operation on a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Allocates blocks; the file grows as far.
    Grow,
    /// Allocates blocks, also behind the end; the size of the file stays.
    Keep,
    /// Deallocates blocks; the range reads as zeros.
    Punch,
}

/// fallocate(2).
pub fn take(file: &OwnedFd, how: Take, offset: u64, bytes: u64) -> i64 {
    let flags = match how {
        Take::Grow => FallocateFlags::empty(),
        Take::Keep => FallocateFlags::KEEP_SIZE,
        Take::Punch => FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE,
    };
    said(rustix::fs::fallocate(file, flags, offset, bytes))
}

/// ftruncate(2).
pub fn cut(file: &OwnedFd, bytes: u64) -> i64 {
    said(rustix::fs::ftruncate(file, bytes))
}

fn said(result: rustix::io::Result<()>) -> i64 {
    result.map_or_else(|errno| -i64::from(errno.raw_os_error()), |()| 0)
}

/// BLKDISCARD of linux/fs.h: _IO(0x12, 119).
const BLKDISCARD: libc::c_ulong = 0x1277;

/// Returns whether this is a block device.
pub fn is_device(file: &OwnedFd) -> bool {
    crate::meta::of_fd(file).is_ok_and(|meta| meta.kind == crate::meta::Kind::BlockDevice)
}

/// Tells a block device that it may forget a range.
pub fn discard(device: &OwnedFd, offset: u64, bytes: u64) -> i64 {
    let range = [offset, bytes];
    // SAFETY: the call reads two numbers, which outlive it.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD as _, range.as_ptr()) };
    if done == 0 { 0 } else { -i64::from(crate::errno::of(&Error::last_os_error())) }
}
