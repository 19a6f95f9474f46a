//! File systems: free space, type, kind of disk.

use crate::BorrowedFd;
use std::io::Result;
use std::sync::{PoisonError, RwLock};

/// Space on a file system, statvfs(3).
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Bytes available to ordinary users.
    pub free_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Free inodes; `None` if the file system allocates them dynamically.
    pub free_inodes: Option<u64>,
    /// Inodes in use; `None` as above.
    pub used_inodes: Option<u64>,
    /// True if mounted read-only.
    pub read_only: bool,
}

/// Space on the file system of `fd`.
pub fn space(fd: BorrowedFd<'_>) -> Result<Space> {
    let fs = rustix::fs::fstatvfs(fd)?;
    let counted = fs.f_files != 0;
    Ok(Space {
        free_bytes: fs.f_bavail.saturating_mul(fs.f_frsize),
        used_bytes: fs.f_blocks.saturating_sub(fs.f_bfree).saturating_mul(fs.f_frsize),
        free_inodes: counted.then_some(fs.f_favail),
        used_inodes: counted.then_some(fs.f_files.saturating_sub(fs.f_ffree)),
        read_only: fs.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY),
    })
}

/// True if `fd` is on XFS (magic number in statfs(2)).
pub fn is_xfs(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|fs| fs.f_type == 0x5846_5342)
}

/// True if `fd` is on FAT, whose times have a resolution of 2 s (magic number in statfs(2)).
pub fn is_fat(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|fs| fs.f_type == 0x4d44)
}

/// True if the file system is in memory (tmpfs, ramfs; magic numbers in statfs(2)), so that reads never wait
/// for a device.
pub fn is_memory(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|fs| matches!(fs.f_type, 0x0102_1994 | 0x8584_58f6))
}

/// True for network and FUSE file systems at `path` (NFS, SMB, FUSE, 9p, Ceph, Lustre, AFS; magic numbers in
/// statfs(2) and linux/magic.h).
pub fn is_foreign(path: &std::path::Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|fs| is_magic_foreign(fs.f_type as u32))
}

/// As [`is_foreign`], for the file system of `fd`.
pub fn is_foreign_fd(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|fs| is_magic_foreign(fs.f_type as u32))
}

/// As [`is_foreign_fd`], for the file system `dev` of `fd`: looked at once a device.
pub fn is_foreign_on(dev: u64, fd: BorrowedFd<'_>) -> bool {
    static KNOWN: RwLock<Vec<(u64, bool)>> = RwLock::new(Vec::new());
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, is_foreign)) = known.iter().find(|(other, _)| *other == dev) {
        return *is_foreign;
    }
    drop(known);
    let is_foreign = is_foreign_fd(fd);
    KNOWN.write().unwrap_or_else(PoisonError::into_inner).push((dev, is_foreign));
    is_foreign
}

fn is_magic_foreign(magic: u32) -> bool {
    const MAGIC: [u32; 8] = [
        0x0000_6969, // NFS
        0xFF53_4D42, // CIFS
        0xFE53_4D42, // SMB 2
        0x6573_5546, // FUSE, virtiofs
        0x0102_1997, // 9p
        0x00C3_6400, // Ceph
        0x0BD0_0BD0, // Lustre
        0x5346_414F, // AFS
    ];
    MAGIC.contains(&magic)
}

/// Preferred I/O size of the file system of `fd`, bytes (`st_blksize`, fstat(2)).
pub fn preferred_bytes(fd: BorrowedFd<'_>) -> u64 {
    rustix::fs::fstat(fd).map_or(0, |stat| stat.st_blksize.try_into().unwrap_or(0))
}

/// Read-ahead window of the file system `dev`, bytes (`/sys/class/bdi`); `None` if unknown.
pub fn read_ahead_bytes(dev: u64) -> Option<u64> {
    let (major, minor) = crate::meta::device_numbers(dev);
    let text = std::fs::read_to_string(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"));
    text.ok()?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}
