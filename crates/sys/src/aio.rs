//! Linux's own asynchronous I/O: io_submit(2), io_getevents(2). Only O_DIRECT goes while the program
//! goes on; what the page cache answers is done before the call comes back. As with [`crate::ring`],
//! the context owns the buffers.

#[cfg(test)]
mod tests;

use crate::OwnedFd;
use crate::blocks::Transfer;
use crate::slots::Slots;
use rustix::fd::AsRawFd;
use std::collections::VecDeque;
use std::io::{Error, Result};
use std::time::Duration;

/// iocb of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Iocb {
    data: u64,
    /// aio_key and aio_rw_flags, of which the order depends on the machine: both are zero.
    key_and_flags: [u32; 2],
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_file: u32,
}

/// io_event.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Event {
    data: u64,
    iocb: u64,
    result: i64,
    result2: i64,
}

const _: () = assert!(size_of::<Iocb>() == 64 && size_of::<Event>() == 32);

/// IOCB_CMD_PREAD and IOCB_CMD_PWRITE.
const PREAD: u16 = 0;
const PWRITE: u16 = 1;

/// A context of operations, io_setup(2).
#[derive(Debug)]
pub struct Context<'f> {
    number: libc::c_ulong,
    slots: Slots,
    files: &'f [OwnedFd],
    /// One for each buffer, and the addresses of those that are to be submitted.
    blocks: Box<[Iocb]>,
    queued: Vec<*mut Iocb>,
    /// What was reaped, or could not be begun.
    events: VecDeque<Event>,
    reaped: Box<[Event]>,
}

impl<'f> Context<'f> {
    /// Makes a context of so many buffers of so many bytes, over these files.
    ///
    /// # Errors
    /// ENOSYS where the kernel was built without it; EAGAIN where all contexts of the machine have
    /// more operations than `fs.aio-max-nr`.
    pub fn new(files: &'f [OwnedFd], depth: u32, buffer_bytes: usize) -> Result<Context<'f>> {
        let count = depth.max(1) as usize;
        let slots = Slots::new(count, buffer_bytes)?;
        let mut number: libc::c_ulong = 0;
        // SAFETY: fills one number, which has to be zero before.
        if unsafe { libc::syscall(libc::SYS_io_setup, count, &raw mut number) } != 0 {
            return Err(Error::last_os_error());
        }
        Ok(Context {
            number,
            slots,
            files,
            blocks: vec![Iocb::default(); count].into(),
            queued: Vec::with_capacity(count),
            events: VecDeque::with_capacity(count),
            reaped: vec![Event::default(); count].into(),
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
            ..Iocb::default()
        };
        self.queued.push(&raw mut *iocb);
        true
    }

    /// fsync(2) of a file, or fdatasync(2) if only `data` matters; waits for it. 0, or the errno as a
    /// negative number.
    pub fn sync(&self, file: u32, data: bool) -> i64 {
        match self.files.get(file as usize) {
            Some(file) => crate::blocks::sync(file, data),
            None => -i64::from(libc::EINVAL),
        }
    }

    /// Submits what is queued; returns how many went. That may be none where the kernel has no room
    /// at the moment and something is in flight that will make some. What cannot be begun at all is
    /// done, with its errno.
    pub fn submit(&mut self) -> Result<u32> {
        let mut went = 0;
        while !self.queued.is_empty() {
            let (count, start) = (self.queued.len(), self.queued.as_mut_ptr());
            // SAFETY: `count` addresses of iocbs, which live in a box of their own and are not
            // changed while their buffers are in flight, as `slots` sees to.
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
                // The first of them was refused.
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

    /// Submits what is queued, and waits until `least` operations are done, or for so long; reaps at
    /// most `most`. May come back earlier, after a signal. Returns how many were submitted.
    pub fn wait(&mut self, least: u32, most: u32, timeout: Option<Duration>) -> Result<u32> {
        let went = self.submit()?;
        let there = self.events.len() as u32;
        if there > 0 && there >= least {
            return Ok(went);
        }
        // More than are on their way would never come.
        let flying = (self.slots.flying() - self.queued.len()) as u32;
        let least = least.min(flying) - there.min(least.min(flying));
        let most = most.max(least).max(1).min(self.reaped.len() as u32);
        let mut time = timeout.map(|time| libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        });
        if least == 0 {
            time = Some(libc::timespec { tv_sec: 0, tv_nsec: 0 });
        }
        let time = time.as_mut().map_or(std::ptr::null_mut(), |time| &raw mut *time);
        // SAFETY: fills at most `most` events, for which there is room; time outlives the call.
        let done = unsafe {
            let (call, start) = (libc::SYS_io_getevents, self.reaped.as_mut_ptr());
            libc::syscall(call, self.number, i64::from(least), i64::from(most), start, time)
        };
        if done < 0 {
            let error = Error::last_os_error();
            let signal = error.raw_os_error() == Some(libc::EINTR);
            return if signal { Ok(went) } else { Err(error) };
        }
        let reaped = self.reaped.get(..done as usize).unwrap_or_default();
        self.events.extend(reaped);
        Ok(went)
    }

    /// Takes what was reaped: the number of its buffer, and what read(2) or write(2) would have
    /// said, an errno as a negative number.
    #[inline(always)]
    pub fn take(&mut self) -> Option<(usize, i64)> {
        let event = self.events.pop_front()?;
        self.slots.land(event.data as usize);
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
            self.slots.land_all();
        }
        // SAFETY: the context is ours and not used again; nothing is in flight, or its memory stays.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.number) };
    }
}
