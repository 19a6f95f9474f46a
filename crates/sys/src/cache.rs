//! The page cache of one file: how much of it is not on the device yet (`cachestat(2)`, 6.5).

use crate::BorrowedFd;
use rustix::fd::AsRawFd;

const CACHESTAT: libc::c_long = 451;

#[repr(C)]
struct Range {
    off: u64,
    len: u64,
}

#[repr(C)]
#[derive(Default)]
struct Stat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Bytes of the file that are written but not drained to the device: dirty or under writeback.
/// `None` where the kernel cannot say.
pub fn undrained_bytes(fd: BorrowedFd<'_>) -> Option<u64> {
    let range = Range { off: 0, len: 0 };
    let mut stat = Stat::default();
    // SAFETY: both structures have the layout of linux/mman.h and outlive the call.
    let done =
        unsafe { libc::syscall(CACHESTAT, fd.as_raw_fd(), &raw const range, &raw mut stat, 0) };
    (done == 0).then(|| (stat.dirty + stat.writeback) * rustix::param::page_size() as u64)
}

/// Whether a file of that size would push everything else out of the page cache: more than half
/// of what is available.
pub fn is_too_large(bytes: u64) -> bool {
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return false };
    let available_kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    available_kib.is_some_and(|kib| bytes > kib * 512)
}
