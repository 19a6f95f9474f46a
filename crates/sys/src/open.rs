//! Files and devices to measure: open flags, O_DIRECT alignment, size and allocation.

use crate::meta::{self, Kind};
use crate::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, StatxFlags};
use std::io::Result;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

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
}
