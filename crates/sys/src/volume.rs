//! Volumes: how much is free, what kind of file system it is, whether its disk turns.

use crate::BorrowedFd;
use std::io::Result;

/// Room on a file system, statvfs(3).
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Bytes that an ordinary user may still write.
    pub free_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Inodes that may still be created; `None` where the file system makes them as needed.
    pub free_inodes: Option<u64>,
    /// Inodes in use; `None` as above.
    pub used_inodes: Option<u64>,
    /// Mounted read-only.
    pub read_only: bool,
}

/// The room on the file system that holds `fd`.
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

/// Whether `fd` lies on XFS (its magic number in statfs(2)).
pub fn is_xfs(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|fs| fs.f_type == 0x5846_5342)
}

/// Whether the files on this file system are in memory (tmpfs, ramfs; magic numbers in statfs(2)):
/// reading them waits for no device.
pub fn is_memory(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|fs| matches!(fs.f_type, 0x0102_1994 | 0x8584_58f6))
}

/// Whether the file system at `path` lies on no disk of this machine, but behind a network or in a
/// program (NFS, SMB, FUSE, 9p, Ceph, Lustre, AFS; magic numbers in statfs(2) and linux/magic.h).
pub fn is_foreign(path: &std::path::Path) -> bool {
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
    rustix::fs::statfs(path).is_ok_and(|fs| MAGIC.contains(&(fs.f_type as u32)))
}

/// Whether a device number belongs to a disk that turns; `None` where nobody knows: file systems
/// without a disk (tmpfs, NFS, overlay) and disks of virtual machines, which call themselves
/// rotating whatever is behind them. A loop device is what its file lies on.
pub fn is_rotational(dev: u64) -> Option<bool> {
    let mut dev = dev;
    // A loop device over a file on a loop device, and so on: nobody nests them deeper.
    for _ in 0..4 {
        let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
        let disk = std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
        let Ok(file) = std::fs::read_to_string(disk.join("loop/backing_file")) else {
            return rotational_disk(&disk);
        };
        dev = std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(file.trim_end()).ok()?);
    }
    None
}

fn rotational_disk(disk: &std::path::Path) -> Option<bool> {
    // A partition has its queue one level up.
    let holder = [Some(disk), disk.parent()].into_iter().flatten();
    let disk = holder.into_iter().find(|dir| dir.join("queue").exists())?;
    let text = std::fs::read_to_string(disk.join("queue/rotational")).ok()?;
    let name = disk.file_name()?.to_str()?;
    let is_virtual = ["vd", "xvd", "nbd"].iter().any(|prefix| name.starts_with(prefix));
    match text.trim() {
        "0" => Some(false),
        "1" if !is_virtual => Some(true),
        _ => None,
    }
}
