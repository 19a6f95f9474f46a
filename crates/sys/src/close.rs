//! Late write errors: NFS, SMB, FUSE and others report at close(2) that data could not be written (no space,
//! quota, I/O error). Dropping a descriptor discards that error.

use crate::{AsFd, BorrowedFd, OwnedFd};
use rustix::fd::IntoRawFd;
use std::io::Result;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
