//! Linux's native asynchronous I/O: io_submit(2), io_getevents(2). Only O_DIRECT is asynchronous; buffered
//! I/O completes within the call. As in [`crate::ring`], the context owns the buffers.

use crate::blocks::{RWF_ATOMIC, Transfer};
use crate::ring::Slots;
use crate::{OwnedFd, errno};
use rustix::fd::AsRawFd;
use std::collections::VecDeque;
use std::io::{Error, Result};
use std::time::Duration;

/// An asynchronous I/O context, io_setup(2).
#[derive(Debug)]
pub struct Context<'f> {
    number: libc::c_ulong,
    slots: Slots,
    files: &'f [OwnedFd],
    /// One per buffer, and the addresses of those to be submitted.
    blocks: Box<[Iocb]>,
    queued: Vec<*mut Iocb>,
    /// Completed operations, and those that could not be submitted.
    events: VecDeque<Event>,
    reaped: Box<[Event]>,
    /// Flags of writes, pwritev2(2).
    write_flags: u32,
}

// SAFETY: a context belongs to the process, and any of its threads may use it; the addresses in `queued` are those of
// `blocks`, a box of the same value, and stay what they are where the value moves.
unsafe impl Send for Context<'_> {}

impl<'f> Context<'f> {
    /// Creates a context with `depth` buffers of `buffer_bytes` bytes, over these files.
    ///
    /// # Errors
    /// ENOSYS without kernel support; EAGAIN if all contexts of the machine exceed `fs.aio-max-nr`.
    pub fn new(files: &'f [OwnedFd], depth: u32, buffer_bytes: usize) -> Result<Context<'f>> {
        let count = depth.max(1) as usize;
        let slots = Slots::new(count, buffer_bytes)?;
        let mut number: libc::c_ulong = 0;
        // SAFETY: fills one number, which has to be zero before.
        errno::check(unsafe { libc::syscall(libc::SYS_io_setup, count, &raw mut number) })?;
        Ok(Context {
            number,
            slots,
            files,
            blocks: vec![Iocb::default(); count].into(),
            queued: Vec::with_capacity(count),
            events: VecDeque::with_capacity(count),
            reaped: vec![Event::default(); count].into(),
            write_flags: 0,
        })
    }

    /// Makes each write atomic (RWF_ATOMIC).
    pub fn set_atomic(&mut self) {
        self.write_flags = RWF_ATOMIC;
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
        let Some(file) = self.files.get(block.file as usize) else { return false };
        let (begin, bytes) = (block.begin as usize, block.bytes as usize);
        let Some(address) = self.slots.send(slot, begin, bytes) else { return false };
        let Some(iocb) = self.blocks.get_mut(slot) else { return false };
        *iocb = Iocb {
            data: slot as u64,
            opcode: if block.write { PWRITE } else { PREAD },
            file: file.as_raw_fd() as u32,
            buffer: address as u64,
            bytes: u64::from(block.bytes),
            offset: block.offset as i64,
            priority: block.priority as i16,
            key_and_flags: key_and_flags(if block.write { self.write_flags } else { 0 }),
            flags: if block.priority == 0 { 0 } else { HAS_PRIORITY },
            ..Iocb::default()
        };
        self.queued.push(&raw mut *iocb);
        true
    }

    /// Calls fsync(2), or fdatasync(2) if `data`, and waits for it. Returns 0 or a negative errno.
    pub fn sync(&self, file: u32, data: bool) -> i64 {
        match self.files.get(file as usize) {
            Some(file) => crate::blocks::sync(file, data),
            None => -i64::from(libc::EINVAL),
        }
    }

    /// Submits queued operations; returns their number, which may be 0 if the kernel has no resources until
    /// an operation in flight completes. An operation that is rejected completes with its errno.
    pub fn submit(&mut self) -> Result<u32> {
        let mut went = 0;
        while !self.queued.is_empty() {
            let (count, start) = (self.queued.len(), self.queued.as_mut_ptr());
            // SAFETY: `count` addresses of iocbs, which are in a box and, ensured by `slots`, not changed
            // while their buffers are in flight.
            let done = unsafe { libc::syscall(libc::SYS_io_submit, self.number, count, start) };
            if done > 0 {
                self.queued.drain(..(done as usize).min(count));
                went += done as u32;
                continue;
            }
            let error = Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) if self.slots.flying() > count => break,
                Some(libc::EAGAIN) | None => return Err(error),
                // The first one was rejected.
                Some(errno) => {
                    let iocb = self.queued.remove(0);
                    // SAFETY: the address of one of `blocks`.
                    let data = unsafe { (*iocb).data };
                    let result = -i64::from(errno);
                    self.events.push_back(Event { data, result, ..Event::default() });
                    went += 1;
                }
            }
        }
        Ok(went)
    }

    /// Submits queued operations, waits until `least` have completed or the timeout expires, and reaps at
    /// most `most`. May return early after a signal. Returns the number submitted.
    pub fn wait(&mut self, least: u32, most: u32, timeout: Option<Duration>) -> Result<u32> {
        let went = self.submit()?;
        let there = self.events.len() as u32;
        if there > 0 && there >= least {
            return Ok(went);
        }
        // Waiting for more than are in flight would block for ever.
        let flying = (self.slots.flying() - self.queued.len()) as u32;
        let least = least.min(flying) - there.min(least.min(flying));
        let most = most.max(least).max(1).min(self.reaped.len() as u32);
        let mut time = timeout.map(|time| libc::timespec {
            tv_sec: time.as_secs() as _,
            tv_nsec: time.subsec_nanos().into(),
        });
        if least == 0 {
            time = Some(libc::timespec { tv_sec: 0, tv_nsec: 0 });
        }
        let time = time.as_mut().map_or(std::ptr::null_mut(), |time| &raw mut *time);
        // SAFETY: fills in at most `most` events, for which there is room; the timeout outlives the call.
        let done = unsafe {
            let (call, start) = (libc::SYS_io_getevents, self.reaped.as_mut_ptr());
            libc::syscall(call, self.number, i64::from(least), i64::from(most), start, time)
        };
        if done < 0 {
            let error = Error::last_os_error();
            let signal = error.raw_os_error() == Some(libc::EINTR);
            return if signal { Ok(went) } else { Err(error) };
        }
        let reaped = &self.reaped[..done as usize];
        self.events.extend(reaped);
        Ok(went)
    }

    /// Takes a completed operation: number of the buffer, and the result of read(2) or write(2), or a
    /// negative errno.
    #[inline(always)]
    pub fn take(&mut self) -> Option<(usize, i64)> {
        let event = self.events.pop_front()?;
        self.slots.complete(event.data as usize);
        Some((event.data as usize, event.result))
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        let unsent = self.queued.len();
        self.queued.clear();
        while self.slots.flying() > unsent {
            while self.take().is_some() {}
            if self.slots.flying() > unsent && self.wait(1, 1, None).is_err() {
                break;
            }
        }
        if self.slots.flying() == unsent {
            self.slots.complete_all();
        }
        // SAFETY: the context is ours and not used again; nothing is in flight, or its memory is leaked.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.number) };
    }
}

/// `struct iocb`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Iocb {
    pub(crate) data: u64,
    /// aio_key and aio_rw_flags, whose order depends on the endianness.
    pub(crate) key_and_flags: [u32; 2],
    pub(crate) opcode: u16,
    pub(crate) priority: i16,
    pub(crate) file: u32,
    pub(crate) buffer: u64,
    pub(crate) bytes: u64,
    pub(crate) offset: i64,
    pub(crate) reserved: u64,
    pub(crate) flags: u32,
    pub(crate) event_file: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Event {
    pub(crate) data: u64,
    pub(crate) iocb: u64,
    pub(crate) result: i64,
    pub(crate) result2: i64,
}

const _: () = assert!(size_of::<Iocb>() == 64 && size_of::<Event>() == 32);

/// IOCB_CMD_PREAD and IOCB_CMD_PWRITE.
pub(crate) const PREAD: u16 = 0;
pub(crate) const PWRITE: u16 = 1;

/// IOCB_FLAG_IOPRIO: `priority` counts.
pub(crate) const HAS_PRIORITY: u32 = 1 << 1;

/// The pair of aio_key, which is zero, and aio_rw_flags, in the order of this machine.
pub(crate) fn key_and_flags(flags: u32) -> [u32; 2] {
    if cfg!(target_endian = "big") { [flags, 0] } else { [0, flags] }
}

#[cfg(test)]
mod tests;
