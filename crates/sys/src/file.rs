//! Regular files: opening, reading, writing, cloning, holes, and how a new one appears.

use crate::{AsFd, BorrowedFd, OwnedFd};
use rustix::fd::AsRawFd;
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, SeekFrom};
use rustix::io::ReadWriteFlags;
use std::ffi::{CStr, CString};
use std::io::{IoSlice, Result};

/// Opens a file for reading. Never blocks on a FIFO that was swapped in, never becomes a
/// terminal; `follow` allows the last component to be a symlink.
pub fn open_read(dir: BorrowedFd<'_>, name: &CStr, follow: bool) -> Result<OwnedFd> {
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    if !follow {
        flags |= OFlags::NOFOLLOW;
    }
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

/// Opens an existing file for writing in place; never through a symlink. `wait` blocks until a
/// FIFO has a reader, and lets writes wait for it.
pub fn open_write(dir: BorrowedFd<'_>, name: &CStr, wait: bool) -> Result<OwnedFd> {
    let mut flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
    if !wait {
        flags |= OFlags::NONBLOCK;
    }
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

/// A descriptor that only names the entry (`O_PATH`), whatever its type.
pub fn open_path(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

/// Creates a file under its name; EEXIST where there is one already.
pub fn create_new(dir: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(mode))?)
}

/// Creates a file that has no name yet (`O_TMPFILE`); a crash leaves nothing behind.
///
/// # Errors
/// EOPNOTSUPP, EISDIR or ENOENT where the file system cannot.
pub fn create_unnamed(dir: BorrowedFd<'_>, mode: u32) -> Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, c".", flags, Mode::from_raw_mode(mode))?)
}

/// Gives an unnamed file its name; EEXIST where there is one already.
pub fn publish(file: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    match rustix::fs::linkat(file, c"", dir, name, AtFlags::EMPTY_PATH) {
        // Without CAP_DAC_READ_SEARCH kernels before 6.10 answer ENOENT: take the way by /proc.
        Err(rustix::io::Errno::NOENT) => {
            let path = proc_path(file);
            let path = path.as_c_str();
            Ok(rustix::fs::linkat(rustix::fs::CWD, path, dir, name, AtFlags::SYMLINK_FOLLOW)?)
        }
        other => Ok(other?),
    }
}

/// The name that `/proc` gives an open descriptor: a link straight to the inode.
pub fn proc_path(fd: impl AsFd) -> CString {
    CString::new(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())).unwrap_or_default()
}

/// Reads into the initialised buffer at the file's position; 0 at the end. EINTR is retried.
pub fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize> {
    loop {
        match rustix::io::read(fd, &mut *buffer) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// `pread(2)`, EINTR retried.
pub fn read_at(fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
    loop {
        match rustix::io::pread(fd, &mut *buffer, offset) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Reads at an offset until the buffer is full or the file ends; returns the bytes read.
pub fn read_full_at(fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut filled = 0;
    while let Some(space) = buffer.get_mut(filled..)
        && !space.is_empty()
    {
        match read_at(fd, space, offset + filled as u64)? {
            0 => break,
            got => filled += got,
        }
    }
    Ok(filled)
}

/// Writes the whole buffer at the file's position.
///
/// # Errors
/// What `write(2)` says; a write that makes no progress is ENOSPC.
pub fn write_all(fd: BorrowedFd<'_>, mut buffer: &[u8]) -> Result<()> {
    while !buffer.is_empty() {
        match rustix::io::write(fd, buffer) {
            Ok(0) => return Err(std::io::Error::from_raw_os_error(libc::ENOSPC)),
            Ok(n) => buffer = buffer.get(n..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Writes the whole buffer at an offset. `uncached` asks the kernel to drop the pages once they
/// are on the device (RWF_DONTCACHE, Linux 6.14).
///
/// # Errors
/// As [`write_all`]; EOPNOTSUPP where the file system knows no uncached writes (nothing is
/// written then).
pub fn write_all_at(
    fd: BorrowedFd<'_>,
    mut buffer: &[u8],
    mut offset: u64,
    uncached: bool,
) -> Result<()> {
    /// RWF_DONTCACHE of linux/fs.h.
    const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);
    while !buffer.is_empty() {
        let wrote = if uncached {
            rustix::io::pwritev2(fd, &[IoSlice::new(buffer)], offset, DONTCACHE)
        } else {
            rustix::io::pwrite(fd, buffer, offset)
        };
        match wrote {
            Ok(0) => return Err(std::io::Error::from_raw_os_error(libc::ENOSPC)),
            Ok(n) => {
                buffer = buffer.get(n..).unwrap_or_default();
                offset += n as u64;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Shares the source's extents with the target (`FICLONE`), for file systems that can.
///
/// # Errors
/// EOPNOTSUPP, EXDEV, EINVAL or ENOTTY where this pair cannot.
pub fn clone_all(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<()> {
    Ok(rustix::fs::ioctl_ficlone(to, from)?)
}

/// `copy_file_range(2)` between explicit offsets; returns the bytes copied, 0 at the end.
pub fn copy_range(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    offset: u64,
    len: usize,
) -> Result<usize> {
    let (mut at_from, mut at_to) = (offset, offset);
    loop {
        match rustix::fs::copy_file_range(from, Some(&mut at_from), to, Some(&mut at_to), len) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Reserves blocks without changing the size, so that an unfinished file is never of full size.
pub fn reserve(fd: BorrowedFd<'_>, len: u64) -> Result<()> {
    Ok(rustix::fs::fallocate(fd, FallocateFlags::KEEP_SIZE, 0, len)?)
}

/// `ftruncate(2)`.
pub fn set_len(fd: BorrowedFd<'_>, len: u64) -> Result<()> {
    Ok(rustix::fs::ftruncate(fd, len)?)
}

/// The next stretch of data at or after `offset` (`SEEK_DATA`, `SEEK_HOLE`): its start and its
/// end. `None` where only a hole is left.
///
/// # Errors
/// EINVAL where the file system cannot say.
pub fn next_data(fd: BorrowedFd<'_>, offset: u64) -> Result<Option<(u64, u64)>> {
    let start = match rustix::fs::seek(fd, SeekFrom::Data(offset)) {
        Ok(start) => start,
        Err(rustix::io::Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(Some((start, rustix::fs::seek(fd, SeekFrom::Hole(start))?)))
}

/// `fsync(2)`.
pub fn sync(fd: BorrowedFd<'_>) -> Result<()> {
    Ok(rustix::fs::fsync(fd)?)
}

/// Starts writing dirty pages of a range without waiting (`sync_file_range(2)`, WRITE).
pub fn start_writeback(fd: BorrowedFd<'_>, offset: u64, len: u64) -> Result<()> {
    // SAFETY: plain numbers, no memory is handed over.
    let done = unsafe {
        libc::sync_file_range(
            fd.as_raw_fd(),
            offset as libc::off64_t,
            len as libc::off64_t,
            libc::SYNC_FILE_RANGE_WRITE,
        )
    };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
