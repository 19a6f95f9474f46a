//! Ranges of files for benchmarks: allocation and release (fallocate(2), ftruncate(2), BLKDISCARD for devices). As in
//! [`crate::blocks`], functions return 0, or the errno as a negative number.

use crate::OwnedFd;
use rustix::fd::AsRawFd;
use rustix::fs::FallocateFlags;
use std::io::Error;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::of_fd;

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
