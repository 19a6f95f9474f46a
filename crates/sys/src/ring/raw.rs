//! io_uring as the kernel knows it: structures and numbers of linux/io_uring.h, and its three calls.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Flags of io_uring_setup(2).
pub(super) mod setup {
    /// What follows an entry that fails is submitted all the same (5.18).
    pub const SUBMIT_ALL: u32 = 1 << 7;
    /// No interrupt for completions: they are looked for at the next call (5.19).
    pub const COOP_TASKRUN: u32 = 1 << 8;
    /// The kernel tells in `flags` of the submission ring that there is such work (5.19).
    pub const TASKRUN_FLAG: u32 = 1 << 9;
    /// One thread submits (6.0).
    pub const SINGLE_ISSUER: u32 = 1 << 12;
    /// Completions are worked on when they are asked for, not at any call (6.1).
    pub const DEFER_TASKRUN: u32 = 1 << 13;
}

/// Flags of io_uring_enter(2).
pub(super) mod enter {
    pub const GETEVENTS: u32 = 1 << 0;
    /// The argument is an [`Argument`](super::Argument) (5.11).
    pub const EXT_ARG: u32 = 1 << 3;
    /// The descriptor is the number of a registered ring (5.18).
    pub const REGISTERED_RING: u32 = 1 << 4;
}

/// What the kernel can, in `features` of [`Parameters`].
pub(super) mod feature {
    pub const SINGLE_MMAP: u32 = 1 << 0;
    /// 5.6, as IORING_OP_READ and IORING_OP_WRITE are.
    pub const RW_CUR_POS: u32 = 1 << 3;
    pub const EXT_ARG: u32 = 1 << 8;
}

/// Opcodes of io_uring_register(2).
pub(super) mod register {
    pub const BUFFERS: u32 = 0;
    pub const FILES: u32 = 2;
    pub const RING_FDS: u32 = 20;
    pub const UNREGISTER_RING_FDS: u32 = 21;
}

/// Opcodes of entries.
pub(super) mod operation {
    pub const FSYNC: u8 = 3;
    pub const READ_FIXED: u8 = 4;
    pub const WRITE_FIXED: u8 = 5;
    pub const READ: u8 = 22;
    pub const WRITE: u8 = 23;
}

/// IOSQE_FIXED_FILE: the file is the number of a registered one.
pub(super) const FIXED_FILE: u8 = 1 << 0;
/// IORING_FSYNC_DATASYNC.
pub(super) const DATASYNC: u32 = 1 << 0;
/// IORING_SQ_TASKRUN, in `flags` of the submission ring.
pub(super) const TASKRUN: u32 = 1 << 2;
/// Where mmap(2) finds the rings, and the entries.
pub(super) const OFFSET_RINGS: u64 = 0;
pub(super) const OFFSET_ENTRIES: u64 = 0x1000_0000;

/// io_uring_params.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parameters {
    pub sq_entries: u32,
    pub cq_entries: u32,
    pub flags: u32,
    pub sq_thread_cpu: u32,
    pub sq_thread_idle: u32,
    pub features: u32,
    pub wq_fd: u32,
    pub resv: [u32; 3],
    pub sq_off: SubmissionOffsets,
    pub cq_off: CompletionOffsets,
}

/// io_sqring_offsets.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SubmissionOffsets {
    pub head: u32,
    pub tail: u32,
    pub ring_mask: u32,
    pub ring_entries: u32,
    pub flags: u32,
    pub dropped: u32,
    pub array: u32,
    pub resv1: u32,
    pub user_addr: u64,
}

/// io_cqring_offsets.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CompletionOffsets {
    pub head: u32,
    pub tail: u32,
    pub ring_mask: u32,
    pub ring_entries: u32,
    pub overflow: u32,
    pub cqes: u32,
    pub flags: u32,
    pub resv1: u32,
    pub user_addr: u64,
}

/// io_uring_sqe.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub opcode: u8,
    pub flags: u8,
    pub ioprio: u16,
    pub fd: i32,
    pub offset: u64,
    pub address: u64,
    pub bytes: u32,
    pub call_flags: u32,
    pub user_data: u64,
    pub buffer: u16,
    pub personality: u16,
    pub file_index: u32,
    pub pad: [u64; 2],
}

/// io_uring_cqe.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Completion {
    pub user_data: u64,
    pub result: i32,
    pub flags: u32,
}

/// io_uring_getevents_arg.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Argument {
    pub sigmask: u64,
    pub sigmask_bytes: u32,
    pub pad: u32,
    /// Address of a `timespec` of 64 bits each: for how long it waits.
    pub timeout: u64,
}

/// io_uring_rsrc_update.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RingUpdate {
    pub offset: u32,
    pub resv: u32,
    pub data: u64,
}

/// io_uring_setup(2).
pub(super) fn set_up(entries: u32, parameters: &mut Parameters) -> Result<OwnedFd> {
    // SAFETY: the parameters are of the kernel's layout, and it fills them before it comes back.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, &raw mut *parameters) };
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// io_uring_register(2).
///
/// # Safety
/// `argument` has to point to `count` of what the opcode wants.
pub(super) unsafe fn register_with<T>(
    ring: &OwnedFd,
    opcode: u32,
    argument: *mut T,
    count: u32,
) -> Result<i64> {
    // SAFETY: the caller's promise.
    let done = unsafe {
        libc::syscall(libc::SYS_io_uring_register, ring.as_raw_fd(), opcode, argument, count)
    };
    if done < 0 { Err(Error::last_os_error()) } else { Ok(done) }
}

const _: () = assert!(size_of::<Entry>() == 64 && size_of::<Completion>() == 16);
const _: () = assert!(size_of::<Parameters>() == 120);
