//! How a ring is made: with as much as this kernel can.

use super::raw::{self, Parameters, RingUpdate, feature, register, setup};
use crate::OwnedFd;
use rustix::fd::AsRawFd;
use rustix::fs::FileType;
use rustix::io::{Errno, ReadWriteFlags};
use std::io::{Error, IoSliceMut, Result};

/// How a ring is made.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Buffers, and operations that can be in flight at a time.
    pub depth: u32,
    /// Bytes of a buffer.
    pub buffer_bytes: usize,
    /// The kernel maps the buffers once, not for each operation (IORING_REGISTER_BUFFERS).
    pub fixed_buffers: bool,
    /// The kernel looks the files up once (IORING_REGISTER_FILES).
    pub register_files: bool,
}

/// The best that kernels can, first.
const FLAGS: [u32; 4] = [
    setup::SUBMIT_ALL | setup::TASKRUN_FLAG | setup::SINGLE_ISSUER | setup::DEFER_TASKRUN,
    setup::SUBMIT_ALL | setup::TASKRUN_FLAG | setup::COOP_TASKRUN,
    setup::SUBMIT_ALL,
    0,
];

/// Makes a ring with room for so many entries.
///
/// # Errors
/// ENOSYS for a kernel before 5.6, else what io_uring_setup(2) says.
pub(super) fn set_up(entries: u32) -> Result<(OwnedFd, Parameters)> {
    let mut refused = Error::from_raw_os_error(libc::ENOSYS);
    for flags in FLAGS {
        let mut parameters = Parameters { flags, ..Parameters::default() };
        match raw::set_up(entries, &mut parameters) {
            Ok(ring) => {
                let needed = feature::SINGLE_MMAP | feature::RW_CUR_POS;
                if parameters.features & needed == needed {
                    return Ok((ring, parameters));
                }
            }
            // An older kernel does not know a flag; or there are too many entries.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

/// Registers the ring with its thread, which spares each call a look-up of the descriptor.
pub(super) fn register_ring(ring: &OwnedFd) -> Option<i32> {
    let data = ring.as_raw_fd() as u64;
    let mut update = RingUpdate { offset: u32::MAX, resv: 0, data };
    // SAFETY: one update, which the kernel fills.
    let done = unsafe { raw::register_with(ring, register::RING_FDS, &raw mut update, 1) };
    (done.ok()? == 1).then_some(update.offset as i32)
}

/// Takes a registered ring back. That it fails only keeps the ring until its thread ends.
pub(super) fn unregister_ring(ring: &OwnedFd, number: i32) {
    let mut update = RingUpdate { offset: number as u32, ..RingUpdate::default() };
    let opcode = register::UNREGISTER_RING_FDS;
    // SAFETY: one update.
    let _ = unsafe { raw::register_with(ring, opcode, &raw mut update, 1) };
}

/// What entries say of each file: its descriptor, or its number if they are registered, and flags.
pub(super) fn handles(files: &[OwnedFd], registered: bool) -> Vec<(i32, u8)> {
    let handle = |(number, file): (usize, &OwnedFd)| match registered {
        true => (number as i32, raw::FIXED_FILE),
        false => (file.as_raw_fd(), 0),
    };
    files.iter().enumerate().map(handle).collect()
}

/// Whether what is submitted is done by a worker thread of the kernel while this one goes on:
/// every file always waits, and there is another CPU for the worker.
pub(super) fn has_worker(files: &[OwnedFd]) -> bool {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    cpus > 1 && !files.is_empty() && files.iter().all(always_waits)
}

/// Whether a file or device has no way not to wait (RWF_NOWAIT, preadv2(2)).
fn always_waits(file: &OwnedFd) -> bool {
    let is_file = rustix::fs::fstat(file).is_ok_and(|stat| {
        let kind = FileType::from_raw_mode(stat.st_mode);
        kind.is_file() || kind.is_block_device()
    });
    let read = || {
        let mut byte = [0];
        rustix::io::preadv2(file, &mut [IoSliceMut::new(&mut byte)], 0, ReadWriteFlags::NOWAIT)
    };
    is_file && read() == Err(Errno::OPNOTSUPP)
}
