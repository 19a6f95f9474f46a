//! Blocks of ext4 that change places between two files: EXT4_IOC_MOVE_EXT (fs/ext4/ext4.h, e4defrag(8)).

use crate::OwnedFd;
use rustix::fd::AsRawFd;
use std::io::Error;

/// `struct move_extent`.
#[repr(C)]
struct MoveExtent {
    reserved: u32,
    donor: u32,
    /// Blocks of the file system: from where in both files, how many, and how many changed places.
    start: u64,
    donor_start: u64,
    blocks: u64,
    moved: u64,
}

const _: () = assert!(size_of::<MoveExtent>() == 40);

/// _IOWR('f', 15, struct move_extent).
const MOVE_EXT: libc::c_ulong = 0xc028_660f;

/// Bytes of a block of the file's file system.
///
/// # Errors
/// Those of fstat(2).
pub fn block_bytes(file: &OwnedFd) -> std::io::Result<u64> {
    Ok(rustix::fs::fstat(file)?.st_blksize as u64)
}

/// Exchanges this many blocks at the same place of two files; each keeps its content. The number of blocks, or the errno
/// as a negative number.
pub fn exchange(file: &OwnedFd, donor: &OwnedFd, start: u64, blocks: u64) -> i64 {
    let donor = donor.as_raw_fd() as u32;
    let mut request =
        MoveExtent { reserved: 0, donor, start, donor_start: start, blocks, moved: 0 };
    // SAFETY: the call reads and writes a record of this type, which outlives it.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), MOVE_EXT as _, &raw mut request) };
    match done {
        0 => request.moved.min(blocks) as i64,
        _ => -i64::from(crate::errno::of(&Error::last_os_error())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ext4_is_refused() {
        let (reader, writer) = std::io::pipe().unwrap();
        let (reader, writer): (OwnedFd, OwnedFd) = (reader.into(), writer.into());
        assert!(exchange(&reader, &writer, 0, 1) < 0);
        assert!(block_bytes(&reader).unwrap() > 0);
    }
}
