//! The page cache of a file: cached and dirty pages, eviction and read-ahead.

use crate::BorrowedFd;
use crate::memory::MappedFile;
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

/// Page cache statistics of the file, cachestat(2) (Linux 6.5); `None` if unsupported.
fn stat(fd: BorrowedFd<'_>) -> Option<Stat> {
    let range = Range { off: 0, len: 0 };
    let mut stat = Stat::default();
    // SAFETY: both structures have the layout of linux/mman.h and outlive the call.
    let done =
        unsafe { libc::syscall(CACHESTAT, fd.as_raw_fd(), &raw const range, &raw mut stat, 0) };
    (done == 0).then_some(stat)
}

/// Bytes of the file that are dirty or under writeback. `None` if unsupported.
pub fn undrained_bytes(fd: BorrowedFd<'_>) -> Option<u64> {
    stat(fd).map(|stat| (stat.dirty + stat.writeback) * rustix::param::page_size() as u64)
}

/// Bytes of the file in the page cache; `None` if unsupported.
pub fn cached_bytes(fd: BorrowedFd<'_>) -> Option<u64> {
    stat(fd).map(|stat| stat.cached * rustix::param::page_size() as u64)
}

/// True if a file of this size would evict everything else from the page cache: more than half of the
/// available memory.
pub fn is_too_large(bytes: u64) -> bool {
    let available = crate::proc::kib_field("/proc/meminfo", "MemAvailable:");
    available.is_some_and(|available| bytes > available / 2)
}

/// Resident and total pages of a file, by mincore(2) over a mapping of it. For a file that this user neither
/// owns nor may write, the kernel reports all pages as resident.
///
/// # Errors
/// The file cannot be examined or mapped.
pub fn resident_pages(fd: BorrowedFd<'_>) -> std::io::Result<(u64, u64)> {
    /// Bytes mapped at a time, a multiple of any page size.
    const WINDOW: u64 = 1 << 30;
    let size = rustix::fs::fstat(fd)?.st_size as u64;
    let (mut there, mut all) = (0, 0);
    let mut offset = 0;
    while offset < size {
        let length = (size - offset).min(WINDOW);
        // The mapping is never read, so truncation of the file is harmless.
        let pages = MappedFile::new(fd, offset, length as usize, false)?.pages()?;
        // Only the lowest bit is defined.
        there += pages.iter().filter(|page| **page & 1 != 0).count() as u64;
        all += pages.len() as u64;
        offset += length;
    }
    Ok((there, all))
}

/// Evicts clean pages of a file, posix_fadvise(2). Dirty or mapped pages stay, and those of file systems in
/// memory (tmpfs).
pub fn forget(fd: BorrowedFd<'_>) -> std::io::Result<()> {
    Ok(rustix::fs::fadvise(fd, 0, None, rustix::fs::Advice::DontNeed)?)
}

/// Advises sequential reading, which doubles the read-ahead, posix_fadvise(2).
pub fn will_read_in_order(fd: BorrowedFd<'_>) {
    let _ = rustix::fs::fadvise(fd, 0, None, rustix::fs::Advice::Sequential);
}

/// Starts to read a range into the page cache without waiting, posix_fadvise(2). One call reads at most the
/// read-ahead window of the file system, so it is called for each `window`.
pub fn read_ahead(fd: BorrowedFd<'_>, offset: u64, len: u64, window: u64) {
    let mut at = offset;
    let end = offset.saturating_add(len);
    while at < end {
        let piece = (end - at).min(window.max(4096));
        let Some(len) = std::num::NonZeroU64::new(piece) else { break };
        if rustix::fs::fadvise(fd, at, Some(len), rustix::fs::Advice::WillNeed).is_err() {
            break;
        }
        at += piece;
    }
}

/// Read-ahead for sequential reading of a range: advises the kernel, and on file systems with slow calls
/// (`volume::is_foreign`) also requests data before it is needed. Small files cost no call.
pub struct ReadAhead {
    window: Option<u64>,
    asked: u64,
    end: u64,
}

/// Smallest range for which sequential reading is advised.
const IN_ORDER_BYTES_MIN: u64 = 1 << 20;
/// Distance by which reading is requested ahead, bytes.
const AHEAD_BYTES: u64 = 2 << 20;
/// Default read-ahead window, bytes.
const WINDOW_BYTES: u64 = 128 << 10;

impl ReadAhead {
    /// For `fd`, which is read from `start` to `end`.
    pub fn new(fd: BorrowedFd<'_>, (start, end): (u64, u64)) -> ReadAhead {
        let mut window = None;
        if end.saturating_sub(start) >= IN_ORDER_BYTES_MIN {
            will_read_in_order(fd);
            window = window_bytes(fd);
        }
        ReadAhead { window, asked: start, end }
    }

    /// Must be called before a read at `offset`.
    pub fn reach(&mut self, fd: BorrowedFd<'_>, offset: u64) {
        let Some(window) = self.window else { return };
        let from = self.asked.max(offset);
        let to = offset.saturating_add(AHEAD_BYTES).min(self.end);
        // In steps of half the distance, so that most reads cost no further call.
        if from < to && (to - from >= AHEAD_BYTES / 2 || to == self.end) {
            read_ahead(fd, from, to - from, window);
            self.asked = to;
        }
    }
}

/// Read-ahead window of a sequentially read file ([`will_read_in_order`]) on a network or FUSE file system,
/// bytes: twice the default one. `None` elsewhere, where the kernel's read-ahead is sufficient.
pub fn window_bytes(fd: BorrowedFd<'_>) -> Option<u64> {
    if !crate::disk::is_foreign_fd(fd) {
        return None;
    }
    let dev = rustix::fs::fstat(fd).ok()?.st_dev;
    let window = crate::disk::read_ahead_bytes(dev).filter(|bytes| *bytes > 0);
    Some(2 * window.unwrap_or(WINDOW_BYTES))
}

/// Writes all dirty pages of all file systems back and waits for it, sync(2).
pub fn write_back_everything() {
    rustix::fs::sync();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AsFd;

    #[test]
    fn pages_are_counted() {
        let path = std::env::temp_dir().join(format!("hakobu-resident-{}", std::process::id()));
        let page = rustix::param::page_size();
        std::fs::write(&path, vec![7; 3 * page + 1]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        // Just written, so all pages are resident.
        assert_eq!(resident_pages(file.as_fd()).unwrap(), (4, 4));
        crate::file::sync(file.as_fd()).unwrap();
        forget(file.as_fd()).unwrap();
        let (there, all) = resident_pages(file.as_fd()).unwrap();
        assert!(there == 0 || there == all, "{there} of {all}");
        std::fs::write(&path, "").unwrap();
        assert_eq!(resident_pages(file.as_fd()).unwrap(), (0, 0));
        std::fs::remove_file(&path).unwrap();
        let (pipe, _writer) = std::io::pipe().unwrap();
        assert_eq!(resident_pages(pipe.as_fd()).unwrap(), (0, 0));
    }
}
