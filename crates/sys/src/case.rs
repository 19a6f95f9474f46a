//! Whether a file system or a directory ignores the case of names.

use crate::BorrowedFd;
use rustix::fs::IFlags;
use std::io::Result;

/// How a file system treats the case of names, as far as its type tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Names that differ in case are different names.
    Sensitive,
    /// Each directory has a flag, [`is_casefolded`].
    ByDirectory,
    /// A name of the other case has to be looked up.
    Unknown,
}

/// Returns how the file system of `fd` treats the case of names (magic numbers in statfs(2) and linux/magic.h).
pub fn of(fd: BorrowedFd<'_>) -> Case {
    match rustix::fs::fstatfs(fd).map(|fs| fs.f_type as u32) {
        // ext4, F2FS, tmpfs, bcachefs.
        Ok(0xEF53 | 0xF2F5_2010 | 0x0102_1994 | 0xCA45_1A4E) => Case::ByDirectory,
        // XFS, btrfs, ramfs, EROFS, squashfs, JFFS2, Ceph, Lustre.
        Ok(
            0x5846_5342 | 0x9123_683E | 0x8584_58F6 | 0xE0F5_E1E2 | 0x7371_7368 | 0x72B6
            | 0x00C3_6400 | 0x0BD0_0BD0,
        ) => Case::Sensitive,
        // FAT, exFAT, NTFS, SMB, HFS+, ZFS, NFS, overlays, FUSE: depends on options, servers and lower layers.
        _ => Case::Unknown,
    }
}

/// Returns whether a directory has the flag `FS_CASEFOLD_FL` (ioctl_iflags(2)).
///
/// # Errors
/// ENOTTY if the file system has no such flags.
pub fn is_casefolded(dir: BorrowedFd<'_>) -> Result<bool> {
    // Not named by rustix.
    let casefold = IFlags::from_bits_retain(0x4000_0000);
    Ok(rustix::fs::ioctl_getflags(dir)?.contains(casefold))
}
