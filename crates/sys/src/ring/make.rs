//! How a ring is made: with as much as this kernel can.

use super::raw::{self, Parameters, RingUpdate, feature, register, setup};
use crate::OwnedFd;
use rustix::fd::AsRawFd;
use std::io::{Error, Result};

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
