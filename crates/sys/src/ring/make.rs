//! Creates a ring with the best features that this kernel supports.

use crate::OwnedFd;
use crate::meta::{self, Kind};
use io_uring::IoUring;
use io_uring::squeue::Flags;
use rustix::fd::AsRawFd;
use rustix::io::{Errno, ReadWriteFlags};
use std::io::{Error, IoSliceMut, Result};
use std::os::fd::RawFd;

/// Settings of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of buffers, and of operations in flight.
    pub depth: u32,
    /// Bytes per buffer.
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
pub(super) fn set_up(entries: u32) -> Result<(IoUring, bool)> {
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
pub(super) fn register_ring(ring: RawFd) -> Option<i32> {
    let mut update = RingUpdate { offset: u32::MAX, resv: 0, data: ring as u64 };
    (update_ring(ring, REGISTER_RING_FDS, &mut update) == 1).then_some(update.offset as i32)
}

/// Unregisters the ring. On failure it stays registered until its thread ends.
pub(super) fn unregister_ring(ring: RawFd, number: i32) {
    let mut update = RingUpdate { offset: number as u32, ..RingUpdate::default() };
    update_ring(ring, UNREGISTER_RING_FDS, &mut update);
}

fn update_ring(ring: RawFd, opcode: u32, update: &mut RingUpdate) -> i64 {
    // SAFETY: one update, which the kernel reads and fills in before the call returns.
    unsafe { libc::syscall(libc::SYS_io_uring_register, ring, opcode, &raw mut *update, 1) }
}

/// Files as used in entries: a descriptor, or an index if registered, with flags.
pub(super) fn handles(files: &[OwnedFd], registered: bool) -> Vec<(i32, Flags)> {
    let handle = |(number, file): (usize, &OwnedFd)| match registered {
        true => (number as i32, Flags::FIXED_FILE),
        false => (file.as_raw_fd(), Flags::empty()),
    };
    files.iter().enumerate().map(handle).collect()
}

/// True if submitted operations run on a kernel worker thread concurrently: every file always blocks, and
/// there is another CPU.
pub(super) fn has_worker(files: &[OwnedFd]) -> bool {
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
