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

/// What of the file is in memory, in pages; `None` where the kernel cannot say.
fn stat(fd: BorrowedFd<'_>) -> Option<Stat> {
    let range = Range { off: 0, len: 0 };
    let mut stat = Stat::default();
    // SAFETY: both structures have the layout of linux/mman.h and outlive the call.
    let done =
        unsafe { libc::syscall(CACHESTAT, fd.as_raw_fd(), &raw const range, &raw mut stat, 0) };
    (done == 0).then_some(stat)
}

/// Bytes of the file that are written but not drained to the device: dirty or under writeback.
/// `None` where the kernel cannot say.
pub fn undrained_bytes(fd: BorrowedFd<'_>) -> Option<u64> {
    stat(fd).map(|stat| (stat.dirty + stat.writeback) * rustix::param::page_size() as u64)
}

/// Bytes of the file that are in memory; `None` where the kernel cannot say.
pub fn cached_bytes(fd: BorrowedFd<'_>) -> Option<u64> {
    stat(fd).map(|stat| stat.cached * rustix::param::page_size() as u64)
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

/// How much of a file is in the page cache, in pages: what is there, and what there could be
/// (mincore(2) over a mapping of the file). For a file that this user neither owns nor may write,
/// the kernel says that all of it is there.
///
/// # Errors
/// It cannot be looked at or mapped.
pub fn resident_pages(fd: BorrowedFd<'_>) -> std::io::Result<(u64, u64)> {
    /// Bytes that are mapped at a time, a multiple of any size of pages.
    const WINDOW: u64 = 1 << 30;
    let size = rustix::fs::fstat(fd)?.st_size as u64;
    let page = rustix::param::page_size() as u64;
    let (mut there, mut all) = (0, 0);
    let mut offset = 0;
    while offset < size {
        let length = (size - offset).min(WINDOW);
        let mut pages = vec![0u8; length.div_ceil(page) as usize];
        // SAFETY: the mapping is shared and only asked about, never read, so that a file that
        // shrinks does no harm; it is new memory, is unmapped below and nothing keeps its address;
        // mincore(2) fills one byte for each page, and the vector has as many.
        let done = unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                length as usize,
                libc::PROT_READ,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                offset as libc::off_t,
            );
            if start == libc::MAP_FAILED {
                return Err(std::io::Error::last_os_error());
            }
            let done = libc::mincore(start, length as usize, pages.as_mut_ptr());
            let error = std::io::Error::last_os_error();
            libc::munmap(start, length as usize);
            if done == 0 { Ok(()) } else { Err(error) }
        };
        done?;
        // Only the lowest bit means something.
        there += pages.iter().filter(|page| **page & 1 != 0).count() as u64;
        all += pages.len() as u64;
        offset += length;
    }
    Ok((there, all))
}

/// Asks the kernel to forget the pages of a file, posix_fadvise(2). Those that are not written
/// back yet, that somebody has mapped, or whose file system has nowhere else to keep them (tmpfs)
/// stay.
pub fn forget(fd: BorrowedFd<'_>) -> std::io::Result<()> {
    Ok(rustix::fs::fadvise(fd, 0, None, rustix::fs::Advice::DontNeed)?)
}

/// Writes everything back, all file systems, and waits for it: sync(2).
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
        // Just written: all of it is there.
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
