//! Regular files: opening, creating, reading, writing, cloning, blocks, closing; and sources several components below an
//! open directory, which are opened in one call and read from the page cache.
//!
//! Late write errors: NFS, SMB, FUSE and others report at close(2) that data could not be written, so every close of a
//! written file is checked.

use crate::{AsFd, BorrowedFd, OwnedFd, errno, paths};
use rustix::fd::{AsRawFd, IntoRawFd};
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, ResolveFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};
use std::ffi::{CStr, CString};
use std::fs;
use std::io::{IoSlice, IoSliceMut, Result, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

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
/// reader (see [`stdio`](crate::stdio)).
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

/// Opens an open file again, for reading.
///
/// # Errors
/// Those of opening; ENOENT without `/proc`.
pub fn reopen_read(file: BorrowedFd<'_>) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(proc_path(file).as_c_str(), flags, Mode::empty())?)
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

/// Closes a descriptor and returns the result of `close(2)`.
///
/// # Errors
/// ENOSPC, EDQUOT, EIO and others, if the file system flushes now. The descriptor is closed in any case and
/// must not be closed again.
pub fn close(fd: impl Into<OwnedFd>) -> Result<()> {
    let fd = fd.into().into_raw_fd();
    // SAFETY: the descriptor was owned by the argument, which has released it, so nothing else closes it.
    crate::errno::check(unsafe { libc::close(fd) })
}

/// Makes the file system flush the file as close(2) does, by closing a duplicate of the descriptor. An
/// interrupted flush is repeated, within a bound: a FUSE file system may return EINTR every time.
///
/// # Errors
/// As [`close`]; EMFILE if the descriptor cannot be duplicated.
pub fn flush(fd: impl AsFd) -> Result<()> {
    crate::errno::until_uninterrupted(|| {
        let copy = rustix::io::fcntl_dupfd_cloexec(fd.as_fd(), 0)?;
        close(copy)
    })
}

/// True if the file system of `fd` may report failed writes at close(2): network and FUSE file systems, and
/// unknown ones. Local ones do not (magic numbers of linux/magic.h in statfs(2)).
pub fn reports_late(fd: BorrowedFd<'_>) -> bool {
    const LOCAL: [u32; 16] = [
        0x0000_EF53, // ext2, ext3, ext4
        0x5846_5342, // XFS
        0x9123_683E, // btrfs
        0x0102_1994, // tmpfs
        0x8584_58F6, // ramfs
        0x9584_58F6, // hugetlbfs
        0xF2F5_2010, // F2FS
        0xCA45_1A4E, // bcachefs
        0x2FC1_2FC1, // ZFS
        0x0000_4D44, // FAT
        0x2011_BAB0, // exFAT
        0x7366_746E, // NTFS (ntfs3)
        0x3153_464A, // JFS
        0x0000_3434, // NILFS
        0x1501_3346, // UDF
        0x5265_4973, // ReiserFS
    ];
    !rustix::fs::fstatfs(fd).is_ok_and(|fs| LOCAL.contains(&(fs.f_type as u32)))
}

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

/// Most buffers per call (IOV_MAX of linux/limits.h).
const BUFFERS_MAX: usize = 1024;

/// Writes all buffers in order at the file's position.
///
/// # Errors
/// Those of `writev(2)`; ENOSPC if a write makes no progress.
pub fn write_all_vectored<'a>(
    fd: BorrowedFd<'_>,
    buffers: impl IntoIterator<Item = &'a [u8]>,
) -> Result<()> {
    let mut slices = slices(buffers);
    run(&mut slices, |slices, _| rustix::io::writev(fd, slices))
}

/// Writes all buffers in order, starting at an offset.
pub fn write_all_vectored_at<'a>(
    fd: BorrowedFd<'_>,
    buffers: impl IntoIterator<Item = &'a [u8]>,
    offset: u64,
) -> Result<()> {
    let mut slices = slices(buffers);
    run(&mut slices, |slices, done| rustix::io::pwritev(fd, slices, offset + done))
}

fn slices<'a>(buffers: impl IntoIterator<Item = &'a [u8]>) -> Vec<IoSlice<'a>> {
    buffers.into_iter().filter(|buffer| !buffer.is_empty()).map(IoSlice::new).collect()
}

/// Repeats `call` until everything is written; it gets the remaining buffers and the bytes done.
fn run(
    mut left: &mut [IoSlice<'_>],
    mut call: impl FnMut(&[IoSlice<'_>], u64) -> rustix::io::Result<usize>,
) -> Result<()> {
    let mut done = 0;
    while !left.is_empty() {
        let now = left.get(..BUFFERS_MAX).unwrap_or(left);
        match crate::errno::until_uninterrupted(|| call(now, done))? {
            0 => return Err(std::io::Error::from_raw_os_error(libc::ENOSPC)),
            wrote => {
                done += wrote as u64;
                IoSlice::advance_slices(&mut left, wrote);
            }
        }
    }
    Ok(())
}

/// Does not block on a FIFO and does not acquire a controlling terminal.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const NAME: OFlags = OFlags::PATH.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// Symlinks that a path may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// None.
    Nothing,
    /// Those that stay below the directory.
    Inside,
    Anything,
}

/// Opens a file for reading by a relative path below `dir`: `openat2(2)`, or component by component if that
/// call is missing or forbidden.
///
/// # Errors
/// ELOOP for a symlink that must not be followed, EXDEV for one that leads out.
pub fn open_source(dir: BorrowedFd<'_>, path: &[u8], through: Through) -> Result<OwnedFd> {
    match through {
        Through::Nothing if !path.contains(&b'/') => {
            let flags = READ.union(OFlags::NOFOLLOW);
            Ok(rustix::fs::openat(dir, path, flags, Mode::empty())?)
        }
        Through::Nothing => {
            paths::open_with(dir, path, READ, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        }
        Through::Inside => paths::open_with(dir, path, READ, Mode::empty(), ResolveFlags::empty()),
        Through::Anything => Ok(rustix::fs::openat(dir, path, READ, Mode::empty())?),
    }
}

/// Opens an entry, usually a symlink, without access to its content (`O_PATH`), by a relative path below
/// `dir` without symlinks.
pub fn open_source_name(dir: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd> {
    paths::open_with(dir, path, NAME, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Target of the symlink opened by [`open_source_name`].
pub fn link_text(link: BorrowedFd<'_>) -> Result<CString> {
    crate::dir::read_link(link, c"")
}

/// Result of [`read_cached`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachedRead {
    /// Number of bytes; 0 at the end.
    Got(usize),
    /// Reading would wait for a device.
    WouldWait,
    /// Unsupported by the file system (old tmpfs, FUSE).
    Unknown,
}

/// `preadv2(2)` with RWF_NOWAIT: reads the bytes at `offset` that are available at once. EINTR is retried.
pub fn read_cached(fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<CachedRead> {
    crate::errno::until_uninterrupted(|| {
        let mut space = [IoSliceMut::new(buffer)];
        match rustix::io::preadv2(fd, &mut space, offset, ReadWriteFlags::NOWAIT) {
            Ok(got) => Ok(CachedRead::Got(got)),
            Err(Errno::AGAIN) => Ok(CachedRead::WouldWait),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(CachedRead::Unknown),
            Err(error) => Err(error),
        }
    })
}

/// Writes a file that only its owner can read, which may then be renamed or linked. What a killed writer left under this
/// name is replaced; nobody else may use it.
///
/// # Errors
/// Those of creating, writing and closing, where network file systems report failed writes; the file is removed then.
pub fn write_temporary(temp: &Path, content: &[u8]) -> Result<()> {
    let create = || fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(temp);
    let mut made = match create() {
        Err(error) if errno::is(&error, errno::EEXIST) => {
            fs::remove_file(temp)?;
            create()?
        }
        made => made?,
    };
    let written = made.write_all(content).and_then(|()| close(made));
    if written.is_err() {
        drop(fs::remove_file(temp));
    }
    written
}

/// Replaces a file through a temporary name in the same folder.
///
/// # Errors
/// As [`write_temporary`], and of renaming; the old file is unchanged then.
pub fn replace(temp: &Path, path: &Path, content: &[u8]) -> Result<()> {
    write_temporary(temp, content)?;
    let renamed = fs::rename(temp, path);
    if renamed.is_err() {
        drop(fs::remove_file(temp));
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AsFd;
    use crate::paths::open_each;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn an_answer_of_close_is_returned() {
        let (reader, writer) = std::io::pipe().unwrap();
        close(writer).unwrap();
        let mut byte = [0];
        assert_eq!(rustix::io::read(&reader, &mut byte).unwrap(), 0, "it is still open");
        flush(&reader).unwrap();
        assert_eq!(rustix::io::read(&reader, &mut byte).unwrap(), 0, "it is closed");
    }

    #[test]
    fn what_is_not_known_may_report_late() {
        // procfs represents all unknown file systems.
        let proc = std::fs::File::open("/proc/self/stat").unwrap();
        assert!(reports_late(proc.as_fd()));
    }

    /// Short writes are continued in order.
    #[test]
    fn short_writes_are_gone_on_with() {
        for most in [1, 2, 3, 5, 100] {
            let mut out = Vec::new();
            let mut slices = slices([&b"ab"[..], b"", b"cde", b"f"]);
            run(&mut slices, |slices, done| {
                assert_eq!(done, out.len() as u64);
                let all: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
                let wrote = all.len().min(most);
                out.extend_from_slice(&all[..wrote]);
                Ok(wrote)
            })
            .expect("no error");
            assert_eq!(out, b"abcdef");
        }
    }

    #[test]
    fn no_progress_is_a_full_disk() {
        let mut slices = slices([&b"ab"[..]]);
        let error = run(&mut slices, |_, _| Ok(0)).expect_err("full");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }

    #[test]
    fn paths_lead_through_what_is_allowed_only() {
        let top = std::env::temp_dir().join(format!("hakobu-source-{}", std::process::id()));
        let _ = fs::remove_dir_all(&top);
        fs::create_dir_all(top.join("in/a/b")).unwrap();
        fs::write(top.join("in/a/b/f"), "inside").unwrap();
        fs::write(top.join("out"), "outside").unwrap();
        symlink("a", top.join("in/dir")).unwrap();
        symlink("../out", top.join("in/away")).unwrap();
        symlink("b/f", top.join("in/a/here")).unwrap();
        let dir = fs::File::open(top.join("in")).unwrap();
        let read = |path: &str, through| {
            let fd = open_source(dir.as_fd(), path.as_bytes(), through).ok()?;
            let mut buffer = [0; 16];
            let got = super::read_full_at(fd.as_fd(), &mut buffer, 0).unwrap();
            Some(String::from_utf8(buffer[..got].to_vec()).unwrap())
        };
        use Through::{Anything, Inside, Nothing};
        for (path, nothing, inside, anything) in [
            ("a/b/f", true, true, true),
            ("dir/b/f", false, true, true),
            ("a/here", false, true, true),
            ("away", false, false, true),
            ("a/../../out", false, false, true),
            ("absent", false, false, false),
        ] {
            assert_eq!(read(path, Nothing).is_some(), nothing, "{path}");
            assert_eq!(read(path, Inside).is_some(), inside, "{path}");
            assert_eq!(read(path, Anything).is_some(), anything, "{path}");
            let each = open_each(dir.as_fd(), path.as_bytes(), READ, Mode::empty());
            assert_eq!(each.is_ok(), nothing, "{path}");
        }
        assert_eq!(read("away", Anything).as_deref(), Some("outside"));
        let link = open_source_name(dir.as_fd(), b"a/here").unwrap();
        assert_eq!(link_text(link.as_fd()).unwrap().as_bytes(), b"b/f");
        assert!(open_source_name(dir.as_fd(), b"dir/here").is_err());
        let link = open_each(dir.as_fd(), b"a/here", NAME, Mode::empty()).unwrap();
        assert_eq!(link_text(link.as_fd()).unwrap().as_bytes(), b"b/f");
        fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn what_was_just_written_is_cached_or_unknown() {
        let path = std::env::temp_dir().join(format!("hakobu-cached-{}", std::process::id()));
        fs::write(&path, "four").unwrap();
        let file = fs::File::open(&path).unwrap();
        let mut buffer = [0; 16];
        let cached = read_cached(file.as_fd(), &mut buffer, 0).unwrap();
        assert!(matches!(cached, CachedRead::Got(4) | CachedRead::Unknown), "{cached:?}");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_is_replaced_or_unchanged() {
        let dir = std::env::temp_dir().join(format!("hakobu-replaced-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let count = || fs::read_dir(&dir).unwrap().count();
        let (temp, path) = (dir.join("r.new"), dir.join("r"));
        // A killed writer left its file.
        fs::write(&temp, "half").unwrap();
        replace(&temp, &path, b"one").unwrap();
        replace(&temp, &path, b"two").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), count()), ("two", 1));
        let folder = dir.join("folder");
        fs::create_dir(&folder).unwrap();
        replace(&temp, &folder, b"three").unwrap_err();
        assert_eq!(count(), 2);
        fs::remove_dir_all(&dir).unwrap();
    }
}
