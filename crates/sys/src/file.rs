//! Regular files: opening, creating, reading, writing, cloning.

use crate::{AsFd, BorrowedFd, OwnedFd, errno};
use rustix::fd::AsRawFd;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::ReadWriteFlags;
use std::ffi::{CStr, CString};
use std::io::{IoSlice, Result};

/// Opens a file for reading. Does not block on a FIFO and does not acquire a controlling terminal; `follow`
/// allows the last component to be a symlink.
pub fn open_read(dir: BorrowedFd<'_>, name: &CStr, follow: bool) -> Result<OwnedFd> {
    Ok(open_with(dir, name, follow, OFlags::empty())?)
}

/// As [`open_read`], without updating the access time if permitted (`O_NOATIME`).
pub fn open_read_quietly(dir: BorrowedFd<'_>, name: &CStr, follow: bool) -> Result<OwnedFd> {
    match open_with(dir, name, follow, OFlags::NOATIME) {
        Err(rustix::io::Errno::PERM) => open_read(dir, name, follow),
        other => Ok(other?),
    }
}

fn open_with(
    dir: BorrowedFd<'_>,
    name: &CStr,
    follow: bool,
    more: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let link = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    rustix::fs::openat(dir, name, flags | link | more, Mode::empty())
}

/// Returns where the end of an open file or device is, in bytes; its position is its beginning then.
pub fn seek_size(fd: impl AsFd) -> Result<u64> {
    let end = rustix::fs::seek(&fd, rustix::fs::SeekFrom::End(0))?;
    rustix::fs::seek(&fd, rustix::fs::SeekFrom::Start(0))?;
    Ok(end)
}

/// Opens an existing file for writing in place, not through a symlink. Does not block: ENXIO for a FIFO without
/// reader (see [`waiting`](crate::waiting)).
pub fn open_write(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
    Ok(rustix::fs::openat(dir, name, flags | OFlags::NONBLOCK, Mode::empty())?)
}

/// Waits at most `ms` milliseconds until a non-blocking descriptor accepts more bytes, or a signal arrives:
/// poll(2).
pub fn wait_writable(file: BorrowedFd<'_>, ms: u32) -> Result<()> {
    let limit = std::time::Duration::from_millis(ms.into());
    crate::socket::poll_for(file, rustix::event::PollFlags::OUT, limit)
}

/// Opens an entry of any type without access to its content (`O_PATH`).
pub fn open_path(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

/// Creates a file; fails with EEXIST if the name exists.
pub fn create_new(dir: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(mode))?)
}

/// Creates an unnamed file (`O_TMPFILE`), which disappears after a crash.
///
/// # Errors
/// EOPNOTSUPP, EISDIR or ENOENT if the file system does not support it; EOPNOTSUPP also where it could not get a name.
pub fn create_unnamed(dir: BorrowedFd<'_>, mode: u32) -> Result<OwnedFd> {
    if !can_publish() {
        return Err(std::io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, c".", flags, Mode::from_raw_mode(mode))?)
}

/// True if this process can link an unnamed file: as root, from Linux 6.10 on, or through `/proc`. Determined once.
fn can_publish() -> bool {
    static CAN: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let release = || {
        let name = rustix::system::uname();
        let release = name.release().to_string_lossy();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    *CAN.get_or_init(|| {
        crate::process::euid() == 0
            || release().is_some_and(|release| release >= (6, 10))
            || std::path::Path::new("/proc/self/fd").exists()
    })
}

/// Links an unnamed file to its name; fails with EEXIST if the name exists.
pub fn publish(file: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    match rustix::fs::linkat(file, c"", dir, name, AtFlags::EMPTY_PATH) {
        // Without CAP_DAC_READ_SEARCH kernels before 6.10 return ENOENT: link through /proc instead.
        Err(rustix::io::Errno::NOENT) => {
            let path = proc_path(file);
            let path = path.as_c_str();
            Ok(rustix::fs::linkat(rustix::fs::CWD, path, dir, name, AtFlags::SYMLINK_FOLLOW)?)
        }
        other => Ok(other?),
    }
}

/// Path of an open descriptor in `/proc`: a magic link to the inode.
pub fn proc_path(fd: impl AsFd) -> CString {
    CString::new(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())).unwrap_or_default()
}

/// Reads into the initialised buffer at the file's position; 0 at the end. EINTR is retried.
pub fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize> {
    errno::until_uninterrupted(|| rustix::io::read(fd, &mut *buffer))
}

/// `pread(2)`, EINTR retried.
pub fn read_at(fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
    errno::until_uninterrupted(|| rustix::io::pread(fd, &mut *buffer, offset))
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
/// Those of `write(2)`; ENOSPC if a write makes no progress.
pub fn write_all(fd: BorrowedFd<'_>, buffer: &[u8]) -> Result<()> {
    repeat(buffer, |rest, _| rustix::io::write(fd, rest))
}

/// Repeats `call` until everything is written; it gets the rest and the bytes done.
#[inline]
fn repeat(
    buffer: &[u8],
    mut call: impl FnMut(&[u8], u64) -> rustix::io::Result<usize>,
) -> Result<()> {
    let mut done = 0;
    while let Some(rest) = buffer.get(done..)
        && !rest.is_empty()
    {
        match errno::until_uninterrupted(|| call(rest, done as u64))? {
            0 => return Err(std::io::Error::from_raw_os_error(libc::ENOSPC)),
            wrote => done += wrote,
        }
    }
    Ok(())
}

/// Writes the whole buffer at an offset. `uncached` asks the kernel to drop the pages after writeback
/// (RWF_DONTCACHE, Linux 6.14).
///
/// # Errors
/// As [`write_all`]; EOPNOTSUPP, with nothing written, if the file system does not support uncached writes.
pub fn write_all_at(fd: BorrowedFd<'_>, buffer: &[u8], offset: u64, uncached: bool) -> Result<()> {
    /// RWF_DONTCACHE of linux/fs.h.
    const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);
    repeat(buffer, |rest, done| match uncached {
        true => rustix::io::pwritev2(fd, &[IoSlice::new(rest)], offset + done, DONTCACHE),
        false => rustix::io::pwrite(fd, rest, offset + done),
    })
}

/// Shares the source's extents with the target (`FICLONE`).
///
/// # Errors
/// EOPNOTSUPP, EXDEV, EINVAL or ENOTTY if this pair does not support it.
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
    errno::until_uninterrupted(|| {
        rustix::fs::copy_file_range(from, Some(&mut at_from), to, Some(&mut at_to), len)
    })
}

/// `ftruncate(2)`.
pub fn set_len(fd: BorrowedFd<'_>, len: u64) -> Result<()> {
    Ok(rustix::fs::ftruncate(fd, len)?)
}

/// `fsync(2)`; of a directory, its names survive a power loss.
pub fn sync(fd: BorrowedFd<'_>) -> Result<()> {
    Ok(rustix::fs::fsync(fd)?)
}

/// Starts writing dirty pages of a range without waiting (`sync_file_range(2)`, WRITE).
pub fn start_writeback(fd: BorrowedFd<'_>, offset: u64, len: u64) -> Result<()> {
    // SAFETY: the call takes integers and no pointers.
    errno::check(unsafe {
        libc::sync_file_range(
            fd.as_raw_fd(),
            offset as libc::off64_t,
            len as libc::off64_t,
            libc::SYNC_FILE_RANGE_WRITE,
        )
    })
}
