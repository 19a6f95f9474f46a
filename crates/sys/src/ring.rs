//! Asynchronous block I/O by io_uring(7). A ring owns its buffers, so that no caller can touch or free memory
//! that the kernel uses; operations are identified by the number of their buffer.

use crate::OwnedFd;
use crate::blocks::{RWF_ATOMIC, Transfer};
use crate::memory::Aligned;
use crate::meta::{self, Kind};
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode};
use rustix::fd::AsRawFd;
use rustix::io::{Errno, ReadWriteFlags};
use std::io::{Error, IoSliceMut, Result};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::RawFd;
use std::time::Duration;

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
        let (ring, deferred) = set_up(settings.depth.max(1))?;
        let slots = Slots::new(settings.depth as usize, settings.buffer_bytes)?;
        if settings.fixed_buffers {
            // SAFETY: the vectors refer to memory that lives until all operations have completed.
            unsafe { ring.submitter().register_buffers(&slots.vectors())? };
        }
        if settings.register_files {
            let numbers: Vec<i32> = files.iter().map(|file| file.as_raw_fd()).collect();
            ring.submitter().register_files(&numbers)?;
        }
        let (handle, handle_flags) = match register_ring(ring.as_raw_fd()) {
            Some(number) => (number, EnterFlags::REGISTERED_RING),
            None => (ring.as_raw_fd(), EnterFlags::empty()),
        };
        let waits_with_timeout = ring.params().is_feature_ext_arg();
        Ok(Ring {
            ring,
            slots,
            handles: handles(files, settings.register_files),
            files: PhantomData,
            settings,
            handle,
            handle_flags,
            deferred,
            waits_with_timeout,
            queued: 0,
            patience: if has_worker(files) { PATIENCE_MAX } else { 0 },
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
            unregister_ring(self.ring.as_raw_fd(), self.handle);
        }
    }
}

/// Settings of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of buffers, and of operations in flight.
    pub depth: u32,
    pub buffer_bytes: usize,
    /// Register the buffers, so that the kernel maps them once (IORING_REGISTER_BUFFERS).
    pub fixed_buffers: bool,
    /// Register the files, so that the kernel looks them up once (IORING_REGISTER_FILES).
    pub register_files: bool,
    /// Each write is atomic (RWF_ATOMIC).
    pub atomic: bool,
}

/// IORING_REGISTER_RING_FDS and its counterpart (linux/io_uring.h). The library has them only for a
/// `Submitter`, which would borrow the ring for its lifetime.
const REGISTER_RING_FDS: u32 = 20;
const UNREGISTER_RING_FDS: u32 = 21;

/// `struct io_uring_rsrc_update`.
#[repr(C)]
#[derive(Default)]
struct RingUpdate {
    offset: u32,
    resv: u32,
    data: u64,
}

/// Creates a ring with this number of entries and the best supported flags; also returns whether completions
/// are deferred until requested.
///
/// # Errors
/// ENOSYS before Linux 5.6, else those of io_uring_setup(2).
pub(crate) fn set_up(entries: u32) -> Result<(IoUring, bool)> {
    let mut refused = Error::from_raw_os_error(libc::ENOSYS);
    for attempt in 0..4 {
        let mut builder = IoUring::builder();
        if attempt < 3 {
            builder.setup_submit_all();
        }
        match attempt {
            0 => builder.setup_taskrun_flag().setup_single_issuer().setup_defer_taskrun(),
            1 => builder.setup_taskrun_flag().setup_coop_taskrun(),
            _ => &mut builder,
        };
        match builder.build(entries) {
            Ok(ring)
                if ring.params().is_feature_single_mmap()
                    && ring.params().is_feature_rw_cur_pos() =>
            {
                return Ok((ring, attempt == 0));
            }
            Ok(_) => {}
            // An older kernel rejects a flag; or there are too many entries.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

/// Registers the ring with its thread, which saves a descriptor lookup per call.
pub(crate) fn register_ring(ring: RawFd) -> Option<i32> {
    let mut update = RingUpdate { offset: u32::MAX, resv: 0, data: ring as u64 };
    (update_ring(ring, REGISTER_RING_FDS, &mut update) == 1).then_some(update.offset as i32)
}

/// Unregisters the ring. On failure it stays registered until its thread ends.
pub(crate) fn unregister_ring(ring: RawFd, number: i32) {
    let mut update = RingUpdate { offset: number as u32, ..RingUpdate::default() };
    update_ring(ring, UNREGISTER_RING_FDS, &mut update);
}

fn update_ring(ring: RawFd, opcode: u32, update: &mut RingUpdate) -> i64 {
    // SAFETY: one update, which the kernel reads and fills in before the call returns.
    unsafe { libc::syscall(libc::SYS_io_uring_register, ring, opcode, &raw mut *update, 1) }
}

/// Files as used in entries: a descriptor, or an index if registered, with flags.
pub(crate) fn handles(files: &[OwnedFd], registered: bool) -> Vec<(i32, Flags)> {
    let handle = |(number, file): (usize, &OwnedFd)| match registered {
        true => (number as i32, Flags::FIXED_FILE),
        false => (file.as_raw_fd(), Flags::empty()),
    };
    files.iter().enumerate().map(handle).collect()
}

/// True if submitted operations run on a kernel worker thread concurrently: every file always blocks, and
/// there is another CPU.
pub(crate) fn has_worker(files: &[OwnedFd]) -> bool {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    cpus > 1 && !files.is_empty() && files.iter().all(always_waits)
}

/// True if a file or device does not support non-blocking I/O (RWF_NOWAIT, preadv2(2)).
fn always_waits(file: &OwnedFd) -> bool {
    let is_file =
        meta::of_fd(file).is_ok_and(|meta| matches!(meta.kind, Kind::File | Kind::BlockDevice));
    let read = || {
        let mut byte = [0];
        rustix::io::preadv2(file, &mut [IoSliceMut::new(&mut byte)], 0, ReadWriteFlags::NOWAIT)
    };
    is_file && read() == Err(Errno::OPNOTSUPP)
}

/// Least number of polls, after operations that were slow.
const PATIENCE_MIN: u32 = 16;

impl Ring<'_> {
    /// Submits queued entries; returns their number, which may be 0 if the kernel has no memory until an
    /// operation in flight completes.
    #[inline(always)]
    pub fn submit(&mut self) -> Result<u32> {
        self.call(0, None)
    }

    /// Submits queued entries, and waits until `least` completions can be taken or the timeout expires. May
    /// return early after a signal. Returns the number submitted.
    #[inline(always)]
    pub fn wait(&mut self, least: u32, timeout: Option<Duration>) -> Result<u32> {
        // Waiting for more than are in flight would block for ever.
        let least = least.min(self.slots.flying() as u32);
        let is_idle = self.queued == 0 && !(least == 0 && self.wants_call());
        if is_idle && self.ready() >= least {
            return Ok(0);
        }
        let mut went = 0;
        if self.patience > 0 && least > 0 {
            went = self.spin(least)?;
            if self.ready() >= least {
                return Ok(went);
            }
        }
        Ok(went + self.call(least, timeout)?)
    }

    /// Submits queued entries, and polls for `least` completions for a while without sleeping: waking a
    /// sleeping thread for each block costs the kernel worker more time than the block itself (4 KiB of tmpfs
    /// at depth 32: 0.57 million per second, 0.68 with polling).
    fn spin(&mut self, least: u32) -> Result<u32> {
        let mut went = if self.queued > 0 { self.call(0, None)? } else { 0 };
        for _ in 0..self.patience {
            if self.deferred && self.wants_call() {
                went += self.call(0, None)?;
            }
            if self.ready() >= least {
                self.patience = (2 * self.patience).min(PATIENCE_MAX);
                return Ok(went);
            }
            std::hint::spin_loop();
        }
        // Sleep for slow operations, and poll less the next time.
        self.patience = (self.patience / 2).max(PATIENCE_MIN);
        Ok(went)
    }

    /// Number of completions that can be taken.
    #[inline(always)]
    fn ready(&mut self) -> u32 {
        self.ring.completion().len() as u32
    }

    /// True if the kernel has work to do at the next call.
    #[inline(always)]
    fn wants_call(&mut self) -> bool {
        self.ring.submission().taskrun()
    }

    fn call(&mut self, least: u32, timeout: Option<Duration>) -> Result<u32> {
        let mut flags = self.handle_flags;
        if least > 0 || self.deferred {
            flags |= EnterFlags::GETEVENTS;
        }
        let (time, mut arguments, mut least) =
            (timeout.map(Timespec::from), SubmitArgs::new(), least);
        if let Some(time) = &time {
            if self.waits_with_timeout {
                flags |= EnterFlags::EXT_ARG;
                arguments = arguments.timespec(time);
            } else {
                // Before Linux 5.11 the caller has to poll.
                least = 0;
            }
        }
        let bytes = if flags.contains(EnterFlags::EXT_ARG) { size_of_val(&arguments) } else { 0 };
        let pointer = if bytes > 0 { &raw const arguments } else { std::ptr::null() };
        // SAFETY: entries point to buffers in flight, which belong to the ring; the arguments, in the
        // kernel's layout, and the timeout outlive the call.
        let done = unsafe {
            let (call, queued) = (libc::SYS_io_uring_enter, self.queued);
            libc::syscall(call, self.handle, queued, least, flags.bits(), pointer, bytes)
        };
        if done >= 0 {
            self.queued -= (done as u32).min(self.queued);
            return Ok(done as u32);
        }
        let error = Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR | libc::ETIME) => Ok(0),
            Some(libc::EAGAIN | libc::EBUSY) if self.slots.flying() > self.queued as usize => Ok(0),
            _ => Err(error),
        }
    }
}

/// Page-aligned buffers of one size, by number.
#[derive(Debug)]
pub(crate) struct Slots {
    memory: ManuallyDrop<Aligned>,
    /// Bytes per buffer, and distance between buffers.
    bytes: usize,
    stride: usize,
    in_flight: Vec<bool>,
    flying: usize,
}

impl Slots {
    /// Allocates `count` buffers of `bytes` bytes.
    pub(crate) fn new(count: usize, bytes: usize) -> Result<Slots> {
        let stride = bytes.max(1).next_multiple_of(rustix::param::page_size());
        let all = stride.saturating_mul(count.max(1));
        let memory = ManuallyDrop::new(Aligned::new(all)?);
        Ok(Slots { memory, bytes, stride, in_flight: vec![false; count], flying: 0 })
    }

    /// Number in flight.
    pub(crate) fn flying(&self) -> usize {
        self.flying
    }

    /// A buffer that is not in flight; `None` otherwise.
    #[inline(always)]
    pub(crate) fn buffer(&mut self, slot: usize) -> Option<&mut [u8]> {
        if self.in_flight.get(slot) != Some(&false) {
            return None;
        }
        // SAFETY: slot is below the count, so the range is inside the memory, which lives as long as self; it
        // overlaps no other slot, this slot is not in flight, and the returned reference borrows self.
        Some(unsafe {
            let start = self.memory.as_ptr().add(slot * self.stride);
            std::slice::from_raw_parts_mut(start, self.bytes)
        })
    }

    /// Marks a buffer as in flight and returns the address of a part of it. `None` if it is already in
    /// flight, or the part is out of range.
    #[inline(always)]
    pub(crate) fn send(&mut self, slot: usize, begin: usize, bytes: usize) -> Option<*mut u8> {
        let fits = begin.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        let state = self.in_flight.get_mut(slot).filter(|state| !**state && fits)?;
        *state = true;
        self.flying += 1;
        // SAFETY: the address is inside the memory, see `buffer`.
        Some(unsafe { self.memory.as_ptr().add(slot * self.stride + begin) })
    }

    /// Marks a buffer as no longer in flight. False if it was not.
    #[inline(always)]
    pub(crate) fn complete(&mut self, slot: usize) -> bool {
        match self.in_flight.get_mut(slot) {
            Some(state) if *state => {
                *state = false;
                self.flying -= 1;
                true
            }
            _ => false,
        }
    }

    /// Marks all buffers as no longer in flight.
    pub(crate) fn complete_all(&mut self) {
        self.in_flight.fill(false);
        self.flying = 0;
    }

    /// The buffers for registration.
    pub(crate) fn vectors(&self) -> Vec<libc::iovec> {
        let start = |slot: usize| {
            // SAFETY: as in `send`.
            unsafe { self.memory.as_ptr().add(slot * self.stride) }
        };
        let vector = |slot| libc::iovec { iov_base: start(slot).cast(), iov_len: self.bytes };
        (0..self.in_flight.len()).map(vector).collect()
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // Memory that may still be written to is leaked, never freed.
        if self.flying == 0 {
            // SAFETY: the memory is not used after this; drop runs once.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

#[cfg(test)]
mod tests;
