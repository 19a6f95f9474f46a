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

/// Whether a device number belongs to a disk that turns; `None` where nobody says (tmpfs, NFS,
/// overlay).
pub fn is_rotational(dev: u64) -> Option<bool> {
    let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
    let base = format!("/sys/dev/block/{major}:{minor}");
    // A partition has its queue one level up.
    [format!("{base}/queue/rotational"), format!("{base}/../queue/rotational")]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok())
        .map(|text| text.trim() == "1")
}
