//! Records that are exchanged with the kernel (linux/aio_abi.h).

/// `struct iocb`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Iocb {
    pub(super) data: u64,
    /// aio_key and aio_rw_flags, whose order depends on the endianness.
    pub(super) key_and_flags: [u32; 2],
    pub(super) opcode: u16,
    pub(super) priority: i16,
    pub(super) file: u32,
    pub(super) buffer: u64,
    pub(super) bytes: u64,
    pub(super) offset: i64,
    pub(super) reserved: u64,
    pub(super) flags: u32,
    pub(super) event_file: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event {
    pub(super) data: u64,
    pub(super) iocb: u64,
    pub(super) result: i64,
    pub(super) result2: i64,
}

const _: () = assert!(size_of::<Iocb>() == 64 && size_of::<Event>() == 32);

/// IOCB_CMD_PREAD and IOCB_CMD_PWRITE.
pub(super) const PREAD: u16 = 0;
pub(super) const PWRITE: u16 = 1;

/// IOCB_FLAG_IOPRIO: `priority` counts.
pub(super) const HAS_PRIORITY: u32 = 1 << 1;

/// The pair of aio_key, which is zero, and aio_rw_flags, in the order of this machine.
pub(super) fn key_and_flags(flags: u32) -> [u32; 2] {
    if cfg!(target_endian = "big") { [flags, 0] } else { [0, flags] }
}
