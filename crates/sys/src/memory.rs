//! Memory by the page: buffers that O_DIRECT and registered I/O can use, mmap(2).

use rustix::fd::AsRawFd;
use std::io::{Error, Result};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Zeroed memory of its own that begins at a page, whatever the allocator does. Pages are taken when
/// they are first written. Given back when dropped.
#[derive(Debug)]
pub struct Aligned {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, as a Vec's memory does.
unsafe impl Send for Aligned {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for Aligned {}

impl Aligned {
    /// Maps `bytes` of memory.
    ///
    /// # Errors
    /// ENOMEM; EINVAL for no bytes at all.
    pub fn new(bytes: usize) -> Result<Aligned> {
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory
        // that somebody has; the result is checked.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        owned(start, bytes)
    }

    /// Where it begins: valid for [`len`](slice::len) bytes for as long as this lives.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Deref for Aligned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped readable and writable for so many bytes until dropped, initialised by the
        // kernel, and changed through this value only.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` says that nobody else looks.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference outlives this value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

fn owned(start: *mut libc::c_void, bytes: usize) -> Result<Aligned> {
    if start == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    match NonNull::new(start.cast::<u8>()) {
        Some(start) => Ok(Aligned { start, bytes }),
        None => Err(Error::from_raw_os_error(libc::ENOMEM)),
    }
}

/// A part of a file in memory, shared with everybody who has the file: what is written to it reaches
/// the file. Bytes go in and out as copies, never as references, because others may change them.
///
/// A file that is cut shorter while it is mapped ends the program with SIGBUS, mmap(2).
#[derive(Debug)]
pub struct MappedFile {
    memory: Aligned,
    writable: bool,
}

impl MappedFile {
    /// Maps `bytes` from `offset` (a multiple of the page) on, for writing as well if `write`.
    ///
    /// # Errors
    /// What mmap(2) says: EACCES if the file was not opened for reading and, to write, for writing.
    pub fn new(fd: impl crate::AsFd, offset: u64, bytes: usize, write: bool) -> Result<MappedFile> {
        let protection = libc::PROT_READ | if write { libc::PROT_WRITE } else { 0 };
        // SAFETY: a new mapping at an address of the kernel's choice; the result is checked. No
        // reference to what it holds is ever made.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                fd.as_fd().as_raw_fd(),
                offset as libc::off_t,
            )
        };
        Ok(MappedFile { memory: owned(start, bytes)?, writable: write })
    }

    /// Copies from `at` on into the buffer; returns the bytes that there were.
    pub fn read(&self, at: usize, buffer: &mut [u8]) -> usize {
        let bytes = buffer.len().min(self.memory.bytes.saturating_sub(at));
        // SAFETY: both ranges are valid for `bytes`: the first lies inside the mapping, the second
        // is the caller's alone.
        unsafe {
            let from = self.memory.start.as_ptr().add(at.min(self.memory.bytes));
            std::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), bytes);
        }
        bytes
    }

    /// Copies the buffer to `at`; returns the bytes for which there was room, none in a mapping that
    /// is only read.
    pub fn write(&mut self, at: usize, buffer: &[u8]) -> usize {
        let room = if self.writable { self.memory.bytes.saturating_sub(at) } else { 0 };
        let bytes = buffer.len().min(room);
        // SAFETY: as in `read`, and the mapping is writable if a single byte is copied.
        unsafe {
            let to = self.memory.start.as_ptr().add(at.min(self.memory.bytes));
            std::ptr::copy_nonoverlapping(buffer.as_ptr(), to, bytes);
        }
        bytes
    }

    /// Writes a part back to the file and waits for it: msync(2), MS_SYNC. The part is widened to
    /// whole pages.
    pub fn sync(&self, at: usize, bytes: usize) -> Result<()> {
        let page = rustix::param::page_size();
        let end = at.saturating_add(bytes).min(self.memory.bytes);
        let begin = at.min(end) / page * page;
        // SAFETY: the range lies inside the mapping and begins at a page; nothing is changed in it.
        let done = unsafe {
            let start = self.memory.start.as_ptr().add(begin);
            libc::msync(start.cast(), end - begin, libc::MS_SYNC)
        };
        if done == 0 { Ok(()) } else { Err(Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_begins_at_a_page_and_is_zero() {
        let page = rustix::param::page_size();
        for bytes in [1, page - 1, page, 3 * page + 5, 5 << 20] {
            let mut memory = Aligned::new(bytes).unwrap();
            assert_eq!(memory.len(), bytes);
            assert_eq!(memory.as_ptr() as usize % page, 0);
            assert!(memory.iter().all(|byte| *byte == 0));
            memory.fill(7);
            assert_eq!(memory.last(), Some(&7));
        }
        assert_eq!(Aligned::new(0).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(Aligned::new(usize::MAX / 2).unwrap_err().raw_os_error(), Some(libc::ENOMEM));
    }

    #[test]
    fn mapped_files_are_read_and_written_inside_their_bounds() {
        let path = std::env::temp_dir().join(format!("hakobu-mapped-{}", std::process::id()));
        std::fs::write(&path, "0123456789").unwrap();
        let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        let mut mapped = MappedFile::new(&file, 0, 10, true).unwrap();
        let mut buffer = [0; 4];
        assert_eq!((mapped.read(2, &mut buffer), &buffer), (4, b"2345"));
        assert_eq!((mapped.read(8, &mut buffer), &buffer), (2, b"8945"));
        assert_eq!((mapped.read(10, &mut buffer), mapped.read(usize::MAX, &mut buffer)), (0, 0));
        assert_eq!((mapped.write(8, b"abc"), mapped.write(11, b"abc")), (2, 0));
        mapped.sync(3, 7).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"01234567ab");
        let only = std::fs::File::open(&path).unwrap();
        assert!(MappedFile::new(&only, 0, 10, true).is_err());
        let mut only = MappedFile::new(&only, 0, 10, false).unwrap();
        assert_eq!((only.read(0, &mut buffer), only.write(0, b"x")), (4, 0));
        assert_eq!(std::fs::read(&path).unwrap(), b"01234567ab");
        std::fs::remove_file(&path).unwrap();
    }
}
