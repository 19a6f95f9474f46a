//! Asynchronous block I/O by io_uring(7). A ring owns its buffers, so that no caller can touch or free memory
//! that the kernel uses; operations are identified by the number of their buffer.

mod make;
#[cfg(test)]
mod tests;
mod wait;

use crate::OwnedFd;
use crate::blocks::{RWF_ATOMIC, Transfer};
use crate::slots::Slots;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{EnterFlags, IoUring, opcode};
pub use make::Settings;
use rustix::fd::AsRawFd;
use std::io::Result;
use std::marker::PhantomData;

/// Polls for a completion, about 10 ns to 40 ns each, before a thread sleeps.
const PATIENCE_MAX: u32 = 2048;

/// A ring of one thread.
pub struct Ring<'f> {
    ring: IoUring,
    slots: Slots,
    /// Files as used in entries: a descriptor or index, with flags. They stay open for the lifetime of the
    /// ring.
    handles: Vec<(i32, Flags)>,
    files: PhantomData<&'f [OwnedFd]>,
    settings: Settings,
    /// The ring for io_uring_enter(2): its descriptor, or its index among the thread's registered rings with
    /// the corresponding flag.
    handle: i32,
    handle_flags: EnterFlags,
    /// True if completions are processed only on request.
    deferred: bool,
    waits_with_timeout: bool,
    /// Entries not submitted yet.
    queued: u32,
    /// Number of polls for completions before the thread sleeps; 0 disables polling.
    patience: u32,
}

impl<'f> Ring<'f> {
    /// Creates a ring over these files for the calling thread.
    ///
    /// # Errors
    /// ENOSYS without io_uring or before Linux 5.6; EPERM if it is forbidden (seccomp,
    /// `kernel.io_uring_disabled`); ENOMEM if RLIMIT_MEMLOCK is too small for the buffers.
    pub fn new(files: &'f [OwnedFd], settings: Settings) -> Result<Ring<'f>> {
        let (ring, deferred) = make::set_up(settings.depth.max(1))?;
        let slots = Slots::new(settings.depth as usize, settings.buffer_bytes)?;
        if settings.fixed_buffers {
            // SAFETY: the vectors refer to memory that lives until all operations have completed.
            unsafe { ring.submitter().register_buffers(&slots.vectors())? };
        }
        if settings.register_files {
            let numbers: Vec<i32> = files.iter().map(|file| file.as_raw_fd()).collect();
            ring.submitter().register_files(&numbers)?;
        }
        let (handle, handle_flags) = match make::register_ring(ring.as_raw_fd()) {
            Some(number) => (number, EnterFlags::REGISTERED_RING),
            None => (ring.as_raw_fd(), EnterFlags::empty()),
        };
        let waits_with_timeout = ring.params().is_feature_ext_arg();
        Ok(Ring {
            ring,
            slots,
            handles: make::handles(files, settings.register_files),
            files: PhantomData,
            settings,
            handle,
            handle_flags,
            deferred,
            waits_with_timeout,
            queued: 0,
            patience: if make::has_worker(files) { PATIENCE_MAX } else { 0 },
        })
    }

    /// A buffer; `None` if it is in flight or does not exist.
    #[inline(always)]
    pub fn buffer(&mut self, slot: usize) -> Option<&mut [u8]> {
        self.slots.buffer(slot)
    }

    /// Number of operations that are queued, in flight, or completed but not taken.
    pub fn in_flight(&self) -> usize {
        self.slots.flying()
    }

    /// Queues a transfer of a buffer. Returns false if the buffer is in flight, or the range is outside
    /// buffer or file.
    #[inline(always)]
    pub fn transfer(&mut self, slot: usize, block: Transfer) -> bool {
        let Some((fd, flags)) = self.file(block.file) else { return false };
        let (begin, bytes, offset) = (block.begin as usize, block.bytes, block.offset);
        let priority = block.priority;
        let flags_of_write = if self.settings.atomic { RWF_ATOMIC as i32 } else { 0 };
        let Some(address) = self.slots.send(slot, begin, bytes as usize) else { return false };
        let (fd, number) = (Fd(fd), slot as u16);
        let entry = match (block.write, self.settings.fixed_buffers) {
            (false, false) => {
                opcode::Read::new(fd, address, bytes).offset(offset).ioprio(priority).build()
            }
            (false, true) => opcode::ReadFixed::new(fd, address, bytes, number)
                .offset(offset)
                .ioprio(priority)
                .build(),
            (true, false) => {
                let write = opcode::Write::new(fd, address, bytes).offset(offset);
                write.ioprio(priority).rw_flags(flags_of_write).build()
            }
            (true, true) => opcode::WriteFixed::new(fd, address, bytes, number)
                .offset(offset)
                .ioprio(priority)
                .rw_flags(flags_of_write)
                .build(),
        };
        self.queue(entry.flags(flags), slot)
    }

    /// Queues fsync(2) of a file, or fdatasync(2) if `data`, under a buffer's number. Returns false as for
    /// [`transfer`](Self::transfer).
    pub fn sync(&mut self, slot: usize, file: u32, data: bool) -> bool {
        let Some((fd, flags)) = self.file(file) else { return false };
        if self.slots.send(slot, 0, 0).is_none() {
            return false;
        }
        let what = if data { FsyncFlags::DATASYNC } else { FsyncFlags::empty() };
        self.queue(opcode::Fsync::new(Fd(fd)).flags(what).build().flags(flags), slot)
    }

    /// Queues an entry for a buffer already marked as in flight.
    #[inline(always)]
    fn queue(&mut self, entry: Entry, slot: usize) -> bool {
        // SAFETY: the buffer belongs to the ring and is not touched before its completion is taken.
        let is_queued =
            unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) }.is_ok();
        // There is an entry for each buffer, so the queue is never full.
        match is_queued {
            true => self.queued += 1,
            false => drop(self.slots.complete(slot)),
        }
        is_queued
    }

    #[inline(always)]
    fn file(&self, file: u32) -> Option<(i32, Flags)> {
        self.handles.get(file as usize).copied()
    }

    /// Takes a completed operation: number of the buffer, and the result of read(2), write(2) or fsync(2), or
    /// a negative errno.
    #[inline(always)]
    pub fn take(&mut self) -> Option<(usize, i64)> {
        let completion = self.ring.completion().next()?;
        let slot = completion.user_data() as usize;
        self.slots.complete(slot);
        Some((slot, i64::from(completion.result())))
    }
}

impl std::fmt::Debug for Ring<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Ring").field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl Drop for Ring<'_> {
    fn drop(&mut self) {
        // Unsubmitted entries are dropped; operations in flight must complete before their memory is freed.
        let unsent = std::mem::take(&mut self.queued) as usize;
        while self.slots.flying() > unsent {
            while self.take().is_some() {}
            if self.slots.flying() > unsent && self.wait(1, None).is_err() {
                break;
            }
        }
        if self.slots.flying() == unsent {
            self.slots.complete_all();
        }
        if self.handle_flags.contains(EnterFlags::REGISTERED_RING) {
            make::unregister_ring(self.ring.as_raw_fd(), self.handle);
        }
    }
}
