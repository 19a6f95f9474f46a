//! The memory that io_uring shares with the kernel: the two rings and the entries.

use super::raw::{self, Completion, Entry, Parameters};
use crate::OwnedFd;
use rustix::fd::AsRawFd;
use std::io::{Error, Result};
use std::sync::atomic::{AtomicU32, Ordering};

/// A mapping of the ring's descriptor.
#[derive(Debug)]
struct Mapping {
    start: *mut u8,
    bytes: usize,
}

impl Mapping {
    fn new(ring: &OwnedFd, offset: u64, bytes: usize) -> Result<Mapping> {
        // SAFETY: a new mapping at an address of the kernel's choice; the result is checked.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                ring.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        Ok(Mapping { start: start.cast(), bytes })
    }

    /// The address of a `T` at so many bytes; the kernel said that it is there.
    fn at<T>(&self, offset: u32) -> *mut T {
        debug_assert!(offset as usize + size_of::<T>() <= self.bytes);
        self.start.wrapping_add(offset as usize).cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and the pointers into it live no longer than this value.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

/// Both rings, used by one thread. Entries are taken in turn, so that the array of the submission
/// ring, which could name them in any order, is filled once.
#[derive(Debug)]
pub(super) struct Rings {
    _rings: Mapping,
    _entries: Mapping,
    flags: *const AtomicU32,
    submission_tail: *const AtomicU32,
    entries: *mut Entry,
    entry_mask: u32,
    /// Entries that were filled, ever.
    filled: u32,
    completion_head: *const AtomicU32,
    completion_tail: *const AtomicU32,
    completions: *const Completion,
    completion_mask: u32,
    /// Completions that were taken, ever, and the kernel's count of them when last looked at.
    taken: u32,
    seen: u32,
}

impl Rings {
    pub(super) fn new(ring: &OwnedFd, parameters: &Parameters) -> Result<Rings> {
        let (sq, cq) = (&parameters.sq_off, &parameters.cq_off);
        let submission = sq.array as usize + parameters.sq_entries as usize * 4;
        let completion =
            cq.cqes as usize + parameters.cq_entries as usize * size_of::<Completion>();
        let rings = Mapping::new(ring, raw::OFFSET_RINGS, submission.max(completion))?;
        let bytes = parameters.sq_entries as usize * size_of::<Entry>();
        let entries = Mapping::new(ring, raw::OFFSET_ENTRIES, bytes)?;
        for number in 0..parameters.sq_entries {
            let place: *mut u32 = rings.at(sq.array + 4 * number);
            // SAFETY: inside of the mapping, which was made long enough for the array.
            unsafe { place.write(number) };
        }
        let mut all = Rings {
            flags: rings.at(sq.flags),
            submission_tail: rings.at(sq.tail),
            entries: entries.at(0),
            entry_mask: parameters.sq_entries - 1,
            filled: 0,
            completion_head: rings.at(cq.head),
            completion_tail: rings.at(cq.tail),
            completions: rings.at::<Completion>(cq.cqes),
            completion_mask: parameters.cq_entries - 1,
            taken: 0,
            seen: 0,
            _rings: rings,
            _entries: entries,
        };
        all.filled = all.atomic(all.submission_tail).load(Ordering::Relaxed);
        all.taken = all.atomic(all.completion_head).load(Ordering::Relaxed);
        all.seen = all.taken;
        Ok(all)
    }

    #[inline(always)]
    fn atomic(&self, place: *const AtomicU32) -> &AtomicU32 {
        // SAFETY: all of these pointers go into the mapping, which lives as long as self; both
        // sides use the words as atomic ones.
        unsafe { &*place }
    }

    /// Fills the next entry. The caller knows that there is one: never more than the ring has are
    /// between `fill` and the kernel.
    #[inline(always)]
    pub(super) fn fill(&mut self, entry: Entry) {
        // SAFETY: masked to the entries that are mapped; the kernel reads it after `publish` only.
        unsafe { self.entries.add((self.filled & self.entry_mask) as usize).write(entry) };
        self.filled = self.filled.wrapping_add(1);
    }

    /// Shows the kernel the entries that were filled.
    #[inline(always)]
    pub(super) fn publish(&self) {
        self.atomic(self.submission_tail).store(self.filled, Ordering::Release);
    }

    /// Whether the kernel has work that it does at the next call.
    #[inline(always)]
    pub(super) fn wants_call(&self) -> bool {
        self.atomic(self.flags).load(Ordering::Relaxed) & raw::TASKRUN != 0
    }

    /// How many completions can be taken.
    #[inline(always)]
    pub(super) fn ready(&mut self) -> u32 {
        self.seen = self.atomic(self.completion_tail).load(Ordering::Acquire);
        self.seen.wrapping_sub(self.taken)
    }

    /// Takes a completion.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<Completion> {
        if self.seen == self.taken && self.ready() == 0 {
            return None;
        }
        // SAFETY: masked to the completions that are mapped; the kernel has written this one, as
        // its tail says, and writes it again only after the head has passed it.
        let completion =
            unsafe { self.completions.add((self.taken & self.completion_mask) as usize).read() };
        self.taken = self.taken.wrapping_add(1);
        self.atomic(self.completion_head).store(self.taken, Ordering::Release);
        Some(completion)
    }
}
