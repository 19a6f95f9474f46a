//! State that all methods of moving content share: the buffer of a worker, the capabilities of the current pair of
//! file systems, and the method for one file.

use super::buffer::{BUFFER_BYTES, Buffer};
use super::pair::Pair;
use crate::local::context::Context;
use crate::failure::{Stop, reading};
use hakobu_core::unit::Jobs;
use hakobu_sys::{BorrowedFd, file, space};
use std::io;

/// Minimum size, in bytes, of a file that is copied concurrently with others and by several workers; its writeback
/// starts early.
pub(in crate::local) const LARGE_BYTES_MIN: u64 = 8 << 20;
/// Maximum bytes of a segment, whatever the file system prefers.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 4 << 20;
/// Zeroes become a hole in steps of this many bytes (the block size of nearly all file systems).
const HOLE_BYTES: usize = 4096;

/// Method of moving the content of a file.
pub(super) struct Way {
    /// Bytes of a segment.
    pub segment: usize,
    /// Bytes to read ahead at once if the source is on a network or FUSE file system.
    pub read_ahead: Option<u64>,
    /// The target is on a network or FUSE file system.
    pub to_foreign: bool,
    /// The target is in memory.
    pub in_memory: bool,
    /// The source may have holes, which are skipped.
    pub holes: bool,
    /// Zeroes become holes.
    pub zeroes_to_holes: bool,
    /// Existing content must be punched out for holes.
    pub punches: bool,
    /// Pages are dropped once they are on the device.
    pub uncached: bool,
    /// Writeback starts during the copy.
    pub drains: bool,
    /// The kernel may copy.
    pub in_kernel: bool,
    /// Other workers may help.
    pub shared: bool,
}

/// Moves the content of files. One instance per worker.
pub(in crate::local) struct Mover<'a> {
    pub(super) context: Context<'a>,
    /// Maximum number of workers for the content of one file.
    pub(super) jobs_per_file: Jobs,
    /// Bytes of a large file that this worker may buffer.
    pub(super) segment_bytes_max: u64,
    pub(super) buffer: Buffer,
    pub(in crate::local) pair: Pair,
}

impl<'a> Mover<'a> {
    /// `segment_bytes_max`: bytes of a large file that one worker may buffer.
    pub(in crate::local) fn new(
        context: Context<'a>,
        jobs_per_file: Jobs,
        segment_bytes_max: u64,
    ) -> Self {
        let (buffer, pair) = (Buffer::default(), Pair::default());
        let segment_bytes_max = segment_bytes_max.max(BUFFER_BYTES as u64);
        Mover { context, jobs_per_file, segment_bytes_max, buffer, pair }
    }
}

/// Fails if a source copied by the kernel is shorter now. The kernel may copy pages that a truncation zeroes before
/// they are written (tmpfs does), and return the full count.
pub(super) fn still_holds(from: BorrowedFd<'_>, size: u64) -> Result<(), Stop> {
    match hakobu_sys::meta::of_fd(from).map_err(reading)?.size < size {
        true => Err(Stop::Changed),
        false => Ok(()),
    }
}

/// Writes everything but zeroes, in steps of [`HOLE_BYTES`]. `punches`: existing content is punched out for holes.
pub(super) fn write_without_zeroes(
    to: BorrowedFd<'_>,
    content: &[u8],
    offset: u64,
    punches: bool,
) -> io::Result<()> {
    let is_zero = |block: &[u8]| block.iter().all(|byte| *byte == 0);
    let put = |from: usize, piece: &[u8], zero: bool| {
        let begins = offset + from as u64;
        // Where holes cannot be punched, zeroes have to be written.
        match zero && (!punches || space::punch(to, begins, piece.len() as u64).is_ok()) {
            true => Ok(()),
            false => file::write_all_at(to, piece, begins, false),
        }
    };
    let (mut from, mut at, mut zero) = (0, 0, false);
    for block in content.chunks(HOLE_BYTES) {
        let next = is_zero(block);
        if next != zero && at > from {
            put(from, &content[from..at], zero)?;
            from = at;
        }
        zero = next;
        at += block.len();
    }
    put(from, &content[from..], zero)
}
