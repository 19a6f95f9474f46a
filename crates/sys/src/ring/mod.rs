//! io_uring(7): blocks of files that go while the program goes on. A ring owns the buffers, so that
//! nobody can touch or free what the kernel works on; the number of a buffer is the name of what is
//! done with it.

mod make;
mod map;
mod raw;
#[cfg(test)]
mod tests;
mod wait;

use crate::OwnedFd;
use crate::blocks::Transfer;
use crate::slots::Slots;
pub use make::Settings;
use map::Rings;
use raw::{Entry, enter, feature, operation, register, setup};
use rustix::fd::AsRawFd;
use std::io::Result;
use std::marker::PhantomData;

/// A ring of one thread.
#[derive(Debug)]
pub struct Ring<'f> {
    rings: Rings,
    ring: OwnedFd,
    slots: Slots,
    /// What an entry says of each file: its descriptor or number, and flags. They stay open for as
    /// long as the ring lives.
    handles: Vec<(i32, u8)>,
    files: PhantomData<&'f [OwnedFd]>,
    settings: Settings,
    /// What io_uring_enter(2) is given for the ring: its descriptor, or its number among the
    /// thread's registered rings, with the flag that says so.
    handle: i32,
    handle_flags: u32,
    /// Completions wait for a call that asks for them.
    deferred: bool,
    waits_with_timeout: bool,
    /// Entries that the kernel has not been given yet.
    queued: u32,
    /// How often completions are looked for before the thread sleeps; 0 is never.
    patience: u32,
}

impl<'f> Ring<'f> {
    /// Makes a ring over these files, for the calling thread.
    ///
    /// # Errors
    /// ENOSYS where the kernel has no io_uring, or one before 5.6; EPERM where it is forbidden
    /// (seccomp, `kernel.io_uring_disabled`); ENOMEM where RLIMIT_MEMLOCK allows no such buffers.
    pub fn new(files: &'f [OwnedFd], settings: Settings) -> Result<Ring<'f>> {
        let (ring, parameters) = make::set_up(settings.depth.max(1))?;
        let slots = Slots::new(settings.depth as usize, settings.buffer_bytes)?;
        if settings.fixed_buffers {
            let mut vectors = slots.vectors();
            let (start, count) = (vectors.as_mut_ptr(), vectors.len() as u32);
            // SAFETY: `count` vectors over memory that the ring owns.
            unsafe { raw::register_with(&ring, register::BUFFERS, start, count)? };
        }
        if settings.register_files {
            let mut numbers: Vec<i32> = files.iter().map(|file| file.as_raw_fd()).collect();
            let (start, count) = (numbers.as_mut_ptr(), numbers.len() as u32);
            // SAFETY: `count` descriptors.
            unsafe { raw::register_with(&ring, register::FILES, start, count)? };
        }
        let rings = Rings::new(&ring, &parameters)?;
        let (handle, handle_flags) = match make::register_ring(&ring) {
            Some(number) => (number, enter::REGISTERED_RING),
            None => (ring.as_raw_fd(), 0),
        };
        Ok(Ring {
            rings,
            ring,
            slots,
            handles: make::handles(files, settings.register_files),
            files: PhantomData,
            settings,
            handle,
            handle_flags,
            deferred: parameters.flags & setup::DEFER_TASKRUN != 0,
            waits_with_timeout: parameters.features & feature::EXT_ARG != 0,
            queued: 0,
            patience: if make::has_worker(files) { wait::PATIENCE_MAX } else { 0 },
        })
    }

    /// A buffer; `None` while it is in flight, or where there is none of that number.
    #[inline(always)]
    pub fn buffer(&mut self, slot: usize) -> Option<&mut [u8]> {
        self.slots.buffer(slot)
    }

    /// How many operations are queued or in flight, or done but not taken.
    pub fn in_flight(&self) -> usize {
        self.slots.flying()
    }

    /// Queues a block of a buffer. False where the buffer is in flight, or where buffer or file have
    /// no such place.
    #[inline(always)]
    pub fn transfer(&mut self, slot: usize, block: Transfer) -> bool {
        let fixed = self.settings.fixed_buffers;
        let opcode = match (block.write, fixed) {
            (false, false) => operation::READ,
            (false, true) => operation::READ_FIXED,
            (true, false) => operation::WRITE,
            (true, true) => operation::WRITE_FIXED,
        };
        let Some((fd, flags)) = self.file(block.file) else { return false };
        let (begin, bytes) = (block.begin as usize, block.bytes as usize);
        let Some(address) = self.slots.send(slot, begin, bytes) else { return false };
        self.rings.fill(Entry {
            opcode,
            flags,
            fd,
            offset: block.offset,
            address: address as u64,
            bytes: block.bytes,
            user_data: slot as u64,
            buffer: if fixed { slot as u16 } else { 0 },
            ..Entry::default()
        });
        self.queued += 1;
        true
    }

    /// Queues fsync(2) of a file, or fdatasync(2) if only `data` matters, under a buffer's number.
    /// False as for [`transfer`](Self::transfer).
    pub fn sync(&mut self, slot: usize, file: u32, data: bool) -> bool {
        let Some((fd, flags)) = self.file(file) else { return false };
        if self.slots.send(slot, 0, 0).is_none() {
            return false;
        }
        let call_flags = if data { raw::DATASYNC } else { 0 };
        let (opcode, user_data) = (operation::FSYNC, slot as u64);
        self.rings.fill(Entry { opcode, flags, fd, call_flags, user_data, ..Entry::default() });
        self.queued += 1;
        true
    }

    #[inline(always)]
    fn file(&self, file: u32) -> Option<(i32, u8)> {
        self.handles.get(file as usize).copied()
    }

    /// Takes what is done: the number of its buffer, and what read(2), write(2) or fsync(2) would
    /// have said, an errno as a negative number.
    #[inline(always)]
    pub fn take(&mut self) -> Option<(usize, i64)> {
        let completion = self.rings.take()?;
        let slot = completion.user_data as usize;
        self.slots.land(slot);
        Some((slot, i64::from(completion.result)))
    }
}

impl Drop for Ring<'_> {
    fn drop(&mut self) {
        // What was never submitted stays so; what is in flight has to land before its memory goes.
        let unsent = std::mem::take(&mut self.queued) as usize;
        while self.slots.flying() > unsent {
            while self.take().is_some() {}
            if self.slots.flying() > unsent && self.wait(1, None).is_err() {
                break;
            }
        }
        if self.slots.flying() == unsent {
            self.slots.land_all();
        }
        if self.handle_flags & enter::REGISTERED_RING != 0 {
            make::unregister_ring(&self.ring, self.handle);
        }
    }
}
