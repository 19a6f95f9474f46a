//! Page-aligned memory for O_DIRECT and registered I/O, mapped files, mmap(2), and nodes of memory and CPUs (NUMA).

use crate::errno;
use rustix::fd::AsRawFd;
use std::io::{Error, ErrorKind, Result};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Zeroed page-aligned memory, independent of the allocator. Pages are allocated when first written, and
/// unmapped when dropped.
#[derive(Debug)]
pub struct Aligned {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: this value owns the mapping exclusively, like a Vec its memory.
unsafe impl Send for Aligned {}
// SAFETY: shared references only allow reading.
unsafe impl Sync for Aligned {}

impl Aligned {
    /// Maps `bytes` of memory.
    ///
    /// # Errors
    /// ENOMEM; EINVAL for 0 bytes.
    pub fn new(bytes: usize) -> Result<Aligned> {
        Aligned::map(bytes, true, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, (-1, 0))
    }

    /// As [`Aligned::new`], shared with processes that are forked later.
    pub(crate) fn shared(bytes: usize) -> Result<Aligned> {
        Aligned::map(bytes, true, libc::MAP_SHARED | libc::MAP_ANONYMOUS, (-1, 0))
    }

    /// Maps memory without MAP_FIXED, or a part of a file.
    fn map(bytes: usize, write: bool, flags: i32, (file, offset): (i32, u64)) -> Result<Aligned> {
        let protection = libc::PROT_READ | if write { libc::PROT_WRITE } else { 0 };
        // SAFETY: a new mapping at an address chosen by the kernel overlaps no existing memory; the result is
        // checked.
        let start = unsafe {
            let offset = offset as libc::off_t;
            libc::mmap(std::ptr::null_mut(), bytes, protection, flags, file, offset)
        };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        match NonNull::new(start.cast::<u8>()) {
            Some(start) => Ok(Aligned { start, bytes }),
            None => Err(Error::from_raw_os_error(libc::ENOMEM)),
        }
    }

    /// Start address, valid for [`len`](slice::len) bytes for the lifetime of this value.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Deref for Aligned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped readable and writable with this length until dropped, zeroed by the kernel, and
        // modified through this value only.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference outlives this value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A mapped part of a file, shared with other users of the file. Bytes are copied in and out, never
/// referenced, because others may change them.
///
/// Truncating the file while it is mapped terminates the program with SIGBUS, mmap(2).
#[derive(Debug)]
pub struct MappedFile {
    memory: Aligned,
    writable: bool,
}

impl MappedFile {
    /// Maps `bytes` from `offset` (a multiple of the page size), writable if `write`.
    ///
    /// # Errors
    /// Those of mmap(2): EACCES if the file was not opened for reading and, for `write`, writing.
    pub fn new(fd: impl crate::AsFd, offset: u64, bytes: usize, write: bool) -> Result<MappedFile> {
        let part = (fd.as_fd().as_raw_fd(), offset);
        // No reference to its content is ever created.
        let memory = Aligned::map(bytes, write, libc::MAP_SHARED, part)?;
        Ok(MappedFile { memory, writable: write })
    }

    /// One byte for each page, of which the lowest bit is set if the page is in memory: mincore(2).
    pub(crate) fn pages(&self) -> Result<Vec<u8>> {
        let mut pages = vec![0; self.memory.bytes.div_ceil(rustix::param::page_size())];
        // SAFETY: fills one byte for each page of the mapping, the length of the vector.
        errno::check(unsafe {
            libc::mincore(self.memory.as_ptr().cast(), self.memory.bytes, pages.as_mut_ptr())
        })?;
        Ok(pages)
    }

    /// Copies bytes at `at` into the buffer; returns the number available.
    pub fn read(&self, at: usize, buffer: &mut [u8]) -> usize {
        let bytes = buffer.len().min(self.memory.bytes.saturating_sub(at));
        // SAFETY: both ranges are valid for `bytes`: the first is inside the mapping, the second belongs to
        // the caller.
        unsafe {
            let from = self.memory.start.as_ptr().add(at.min(self.memory.bytes));
            std::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), bytes);
        }
        bytes
    }

    /// Copies the buffer to `at`; returns the number of bytes that fit, 0 for a read-only mapping.
    pub fn write(&mut self, at: usize, buffer: &[u8]) -> usize {
        let room = if self.writable { self.memory.bytes.saturating_sub(at) } else { 0 };
        let bytes = buffer.len().min(room);
        // SAFETY: as in `read`; the mapping is writable if at least one byte is copied.
        unsafe {
            let to = self.memory.start.as_ptr().add(at.min(self.memory.bytes));
            std::ptr::copy_nonoverlapping(buffer.as_ptr(), to, bytes);
        }
        bytes
    }

    /// Writes a range back to the file and waits for it: msync(2), MS_SYNC. The range is widened to whole
    /// pages.
    pub fn sync(&self, at: usize, bytes: usize) -> Result<()> {
        let page = rustix::param::page_size();
        let end = at.saturating_add(bytes).min(self.memory.bytes);
        let begin = at.min(end) / page * page;
        // SAFETY: the range is inside the mapping and page-aligned; nothing is modified.
        errno::check(unsafe {
            let start = self.memory.start.as_ptr().add(begin);
            libc::msync(start.cast(), end - begin, libc::MS_SYNC)
        })
    }
}

/// Memory policy of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// MPOL_DEFAULT.
    #[default]
    Default,
    /// MPOL_PREFERRED: this node first.
    Prefer,
    /// MPOL_BIND: these nodes only.
    Bind,
    /// MPOL_INTERLEAVE: these nodes in turn.
    Interleave,
    /// MPOL_LOCAL: the node of the CPU.
    Local,
}

/// Numbers of nodes and CPUs, at most.
const NUMBERS_MAX: u32 = 4096;

/// CPUs of a node, in order.
///
/// # Errors
/// NotFound where the machine has no such node.
pub fn cpus_of_node(node: u32) -> Result<Vec<u32>> {
    let path = format!("/sys/devices/system/node/node{node}/cpulist");
    let text = std::fs::read_to_string(path)?;
    list(text.trim()).ok_or_else(|| ErrorKind::InvalidData.into())
}

/// `0-3,5`.
fn list(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last >= NUMBERS_MAX {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// Sets the policy of this thread's memory.
///
/// # Errors
/// EINVAL where a node is not there; ENOSYS where the kernel knows no nodes.
pub fn set_policy(policy: MemoryPolicy, nodes: &[u32]) -> Result<()> {
    let mode: libc::c_int = match policy {
        MemoryPolicy::Default => 0,
        MemoryPolicy::Prefer => 1,
        MemoryPolicy::Bind => 2,
        MemoryPolicy::Interleave => 3,
        MemoryPolicy::Local => 4,
    };
    const BITS: usize = libc::c_ulong::BITS as usize;
    let mut mask: [libc::c_ulong; NUMBERS_MAX as usize / BITS] = [0; NUMBERS_MAX as usize / BITS];
    for node in nodes {
        let word = mask.get_mut(*node as usize / BITS).ok_or(ErrorKind::InvalidInput)?;
        *word |= 1 << (*node as usize % BITS);
    }
    // One more than there are: the kernel takes one off.
    let bits = if nodes.is_empty() { 0 } else { NUMBERS_MAX as usize + 1 };
    let start = if nodes.is_empty() { std::ptr::null() } else { mask.as_ptr() };
    // SAFETY: the call reads `bits` bits from `start`, which outlives it; with none it reads nothing. The last bit
    // is not read.
    errno::check(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, start, bits) })
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

    #[test]
    fn lists_of_cpus() {
        assert_eq!(list("0-3,5"), Some(vec![0, 1, 2, 3, 5]));
        assert_eq!((list(""), list("x"), list("0-9999999")), (Some(vec![]), None, None));
    }

    #[test]
    fn a_policy_is_this_threads() {
        // Kernels without nodes have no node 0, and the call is often forbidden in containers.
        if cpus_of_node(0).is_ok() && set_policy(MemoryPolicy::Bind, &[0]).is_ok() {
            assert!(set_policy(MemoryPolicy::Bind, &[4095]).is_err());
            set_policy(MemoryPolicy::Default, &[]).unwrap();
        }
        assert!(cpus_of_node(4095).is_err());
        assert!(set_policy(MemoryPolicy::Bind, &[1 << 20]).is_err());
    }
}
