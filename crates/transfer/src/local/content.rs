//! The content of regular files: moves bytes from an open source to an open target.

use super::delta::Patched;
use super::engine::{Context, Station, TargetMode};
use super::shared_copy::Helpers;
use super::source::{FarContent, FarFile, FarPieces, Piece};
use crate::failure::{Failure, Stop, reading, writing};
use crate::policy::{Reflink, Sparse};
use crate::publish::{DirName, reserve, reserve_ahead};
use hakobu_core::buffer::AlignedBytes;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Jobs, Meta};
use hakobu_sys::proc::ResourceUsage;
use hakobu_sys::{AsFd, BorrowedFd, cache, disk, errno, file, stdio};
use hakobu_tree::compare::first_difference;
use std::cell::OnceCell;
use std::ffi::CStr;
use std::io;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::Xxh3;

// Copies the bytes of one file, from an open source to an open target, by the cheapest method of this pair of file
// systems: shared extents, a copy inside the kernel, or reads and writes.

/// Minimum size, in bytes, of a dense file whose blocks are reserved first.
const RESERVE_BYTES_MIN: u64 = 4 << 20;
/// Minimum size, in bytes, of a file that the kernel is told to read ahead as sequential.
const SEQUENTIAL_BYTES_MIN: u64 = 1 << 20;
/// Segment size, in bytes, on a file system that waits for an answer to each segment: writes to one file do not
/// overlap, so the size of each determines the rate.
const FOREIGN_SEGMENT_BYTES: u64 = 1 << 20;

/// The kind of target that content is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Onto {
    /// An empty file.
    New,
    /// A file with content (`--inplace`); the caller truncates it to its new size.
    Existing,
    /// A target without offsets.
    Stream,
}

/// The content of a file, and its target.
pub(super) struct FileContent<'a> {
    pub from: BorrowedFd<'a>,
    pub to: BorrowedFd<'a>,
    pub source: &'a Meta,
    pub target_dev: u64,
    pub onto: Onto,
    /// Workers that may help with a large file; `None` if none may.
    pub helpers: Option<&'a dyn Helpers>,
}

/// What was written of a file of the other end.
pub(super) struct Received {
    /// From where its content began.
    pub bytes: u64,
    /// Those of them that were here.
    pub matched: u64,
}

/// A copy in progress: the worker's station, the open source and the open target.
#[derive(Clone, Copy)]
struct Copying<'a> {
    at: &'a Station<'a>,
    from: BorrowedFd<'a>,
    to: BorrowedFd<'a>,
    /// The target has no offsets, and does not block.
    is_stream: bool,
}

impl Copying<'_> {
    /// Reads at the source's current position.
    fn read(&self, space: &mut [u8]) -> Result<usize, Stop> {
        self.at.step(Phase::Read, 1);
        file::read(self.from, space).map_err(reading)
    }
}

impl Mover<'_> {
    /// Copies the content of an open file into an empty or (`overwrite`) existing one. Returns the bytes copied: the
    /// size in `source`, or for files of another length than their size says (`/proc`, `/sys`, FUSE) all bytes up to
    /// the end.
    ///
    /// # Errors
    /// [`Stop`]; the target then holds a part.
    pub(super) fn copy(&mut self, at: &Station<'_>, content: FileContent<'_>) -> Result<u64, Stop> {
        let lane = at.lane;
        let outstanding = lane.outstanding();
        lane.ahead(content.source.size);
        let mut by_helpers = 0;
        let result = self.move_content(at, content, &mut by_helpers);
        // No more of this file will be moved.
        lane.settle_to(outstanding.wrapping_add(by_helpers));
        lane.undrained(0);
        result
    }

    /// As `copy`; sets `by_helpers` to the bytes that others moved or found to be holes, as counted on their lanes.
    fn move_content(
        &mut self,
        at: &Station<'_>,
        content: FileContent<'_>,
        by_helpers: &mut u64,
    ) -> Result<u64, Stop> {
        let FileContent { from, to, source, target_dev, onto, helpers } = content;
        let copying = Copying { at, from, to, is_stream: onto == Onto::Stream };
        if onto == Onto::Stream {
            return self.copy_stream(copying);
        }
        let overwrite = onto == Onto::Existing;
        let policy = self.context.policy;
        let real = self.context.mode == TargetMode::Real;
        let size = source.size;
        if size == 0 && policy.copy_devices && is_device(from)? {
            return Ok(0);
        }
        self.pair.begin((source.dev, target_dev));
        if real
            && policy.reflink != Reflink::Never
            && (!self.pair.no_clone || policy.reflink == Reflink::Always)
            && size > 0
            && self.clone_content(copying, size)?
        {
            return Ok(size);
        }
        // Holes that -S asks for would be allocated.
        if policy.preallocate && real && !overwrite && policy.sparse != Sparse::Always && size > 0 {
            at.step(Phase::Write, 1);
            reserve(to, size).map_err(writing)?;
        }
        let holes = match policy.sparse {
            Sparse::Never => false,
            Sparse::Auto | Sparse::Always => !overwrite && source.may_have_holes(),
        };
        let always = policy.sparse == Sparse::Always;
        if size < BUFFER_BYTES as u64 && !always && !(holes && size > 65536) {
            return self.copy_small(copying, source);
        }
        let in_kernel = !always && self.may_copy_in_kernel();
        let mut way = CopyMethod {
            segment: BUFFER_BYTES,
            read_ahead: self.pair.read_ahead(from),
            to_foreign: real && self.pair.writes_to_foreign(to),
            in_memory: real && self.pair.in_memory(to),
            holes,
            zeroes_to_holes: always,
            punches: overwrite,
            uncached: false,
            drains: false,
            in_kernel,
            shared: false,
        };
        if way.read_ahead.is_some() || way.to_foreign {
            let wanted = disk::preferred_bytes(from).max(disk::preferred_bytes(to));
            let wanted = wanted.clamp(FOREIGN_SEGMENT_BYTES, SEGMENT_BYTES_MAX);
            way.segment = wanted.min(self.segment_bytes_max) as usize;
        }
        if size >= SEQUENTIAL_BYTES_MIN || way.read_ahead.is_some() {
            cache::will_read_in_order(from);
        }
        if size >= LARGE_BYTES_MIN {
            way.shared = true;
            way.uncached = !self.pair.no_uncached && cache::is_too_large(size);
            // On one disk, reads that miss the cache would wait behind writeback: reading has priority as long as the
            // kernel has room for dirty pages.
            let is_cached = || cache::cached_bytes(from).is_none_or(|bytes| bytes > size / 2);
            way.drains = !self.pair.is_one_disk() || is_cached();
        }
        let is_whole = !(holes || always);
        if is_whole && real && size >= RESERVE_BYTES_MIN && !overwrite {
            at.step(Phase::Write, 1);
            reserve_ahead(to, size).map_err(writing)?;
        }
        match self.copy_shared(at, (from, to), size, way, helpers, by_helpers) {
            // The file ends before its size.
            Err(Stop::Changed) if self.is_foreign(from) && is_still(from, source)? => {
                return self.copy_from(copying, 0);
            }
            other => other?,
        }
        if !is_whole && real {
            // Set the size last: until then the file never has its full size.
            at.step(Phase::Write, 1);
            file::set_len(to, size).map_err(writing)?;
        }
        self.copy_beyond(copying, source)
    }

    /// Writes the content of a file of the other end from where it begins. `basis`: the place of the file that it replaces,
    /// if only differences from that were asked for.
    ///
    /// # Errors
    /// [`Stop`]; the target then holds a part. `Changed` is reported by the other end.
    pub(super) fn receive(
        &mut self,
        at: &Station<'_>,
        file: &FarFile,
        (to, onto): (BorrowedFd<'_>, Onto),
        basis: Option<DirName<'_>>,
    ) -> Result<Received, Stop> {
        let bytes = file.entry.meta.size - file.entry.begins_at();
        let outstanding = at.lane.outstanding();
        at.lane.ahead(bytes);
        let result = match &file.content {
            FarContent::Pieces(pieces) if pieces.is_delta() => {
                self.receive_delta(at, file, pieces, (to, onto), basis)
            }
            _ => self.receive_content(at, file, to, onto).map(|()| 0),
        };
        at.lane.settle_to(outstanding);
        result.map(|matched| Received { bytes, matched })
    }

    /// Returns the bytes that were taken from the basis.
    fn receive_delta(
        &mut self,
        at: &Station<'_>,
        file: &FarFile,
        pieces: &FarPieces,
        (to, onto): (BorrowedFd<'_>, Onto),
        basis: Option<DirName<'_>>,
    ) -> Result<u64, Stop> {
        match self.patch(at, (&file.entry, pieces), (to, onto), basis)? {
            Patched::Right { matched } => Ok(matched),
            Patched::Wrong => {
                at.lane.ahead(file.entry.meta.size);
                self.receive_content(at, file, to, onto).map(|()| 0)
            }
        }
    }

    fn receive_content(
        &mut self,
        at: &Station<'_>,
        file: &FarFile,
        to: BorrowedFd<'_>,
        onto: Onto,
    ) -> Result<(), Stop> {
        let size = file.entry.meta.size;
        let policy = self.context.policy;
        let sparse = policy.sparse == Sparse::Always;
        if policy.preallocate && onto == Onto::New && !sparse && size > 0 {
            at.step(Phase::Write, 1);
            reserve(to, size).map_err(writing)?;
        } else if onto == Onto::New && !sparse && size >= RESERVE_BYTES_MIN {
            at.step(Phase::Write, 1);
            reserve_ahead(to, size).map_err(writing)?;
        }
        let mut offset = file.entry.begins_at();
        let mut put = |piece: &[u8]| -> Result<(), Stop> {
            if piece.len() as u64 > size - offset {
                // More than was announced.
                return Err(Stop::Changed);
            }
            at.step(Phase::Write, 1);
            let written = match onto {
                Onto::Stream => stdio::write_all(to, piece, &|| at.is_over()),
                _ if sparse => write_without_zeroes(to, piece, offset, onto == Onto::Existing),
                _ => file::write_all_at(to, piece, offset, false),
            };
            written.map_err(writing)?;
            at.lane.bytes(piece.len() as u64);
            offset += piece.len() as u64;
            Ok(())
        };
        match &file.content {
            FarContent::Whole(content) => {
                if !content.is_empty() {
                    put(content)?;
                }
            }
            FarContent::Pieces(pieces) => {
                pieces.begin();
                loop {
                    at.turn(Phase::Receive);
                    match pieces.next(|| at.is_over()) {
                        None => return Err(Stop::Asked),
                        Some(Piece::Lost) => return Err(Stop::Reported),
                        Some(Piece::Changed | Piece::Patch(_)) => return Err(Stop::Changed),
                        Some(Piece::Complete) => break,
                        Some(Piece::Bytes(bytes)) => {
                            put(&bytes)?;
                            pieces.taken(bytes.len() as u64);
                        }
                    }
                }
            }
        }
        if offset != size {
            return Err(Stop::Changed);
        }
        if sparse && onto == Onto::New {
            at.step(Phase::Write, 1);
            file::set_len(to, size).map_err(writing)?;
        }
        Ok(())
    }

    /// Shares all extents; returns `false` if this pair cannot.
    fn clone_content(&mut self, copying: Copying<'_>, size: u64) -> Result<bool, Stop> {
        let Copying { at, from, to, .. } = copying;
        at.step(Phase::Write, 1);
        match file::clone_all(from, to) {
            // Byte limits do not apply: nothing is read or written.
            Ok(()) => {
                at.lane.bytes(size);
                Ok(true)
            }
            Err(error) if self.context.policy.reflink == Reflink::Always => Err(writing(error)),
            Err(error) => {
                // EINVAL can concern this file alone (inline data); other errors apply to the pair.
                if !errno::is(&error, errno::EINVAL) {
                    self.pair.no_clone = true;
                }
                Ok(false)
            }
        }
    }

    /// Copies a file that fits into the buffer: one read, which is short and so proves the end, and one write.
    fn copy_small(&mut self, copying: Copying<'_>, source: &Meta) -> Result<u64, Stop> {
        let Copying { at, from, to, .. } = copying;
        let size = source.size;
        let in_kernel = size > 0 && self.may_copy_in_kernel();
        if in_kernel && size as usize <= at.stride(BUFFER_BYTES) {
            // One call and one copy instead of two.
            at.pace(size);
            at.step(Phase::Write, 1);
            match file::copy_range(from, to, 0, size as usize) {
                Ok(moved) if moved as u64 == size => {
                    still_holds(from, size)?;
                    at.lane.bytes(size);
                    return self.copy_beyond(copying, source);
                }
                // Some file systems return 0 for what they cannot copy: fall back to reading.
                Ok(0) => {}
                Ok(_) => return Err(Stop::Changed),
                // On a persistent error, read or write fails with the right side in its message.
                Err(_) => self.pair.no_range = true,
            }
        }
        let mut filled = 0;
        loop {
            let space = &mut self.buffer[filled..];
            let asked = space.len();
            let got = copying.read(space)?;
            filled += got;
            if got == 0 || (got < asked && filled as u64 >= size) {
                break;
            }
            if filled == self.buffer.len() {
                // Larger than its size says (`/proc` says 0): continue until the end.
                return self.copy_unsized(copying, source);
            }
        }
        // A size that is still the same was not the length.
        let is_length = filled as u64 == size || size > 0 && !is_still(from, source)?;
        if is_length && (filled as u64) < size {
            return Err(Stop::Changed);
        }
        // A growing file is copied up to its size at opening; its new size and time make the next run copy it again.
        let len = if is_length { filled.min(size as usize) } else { filled };
        let content = &self.buffer[..len];
        self.put(copying, content)?;
        Ok(len as u64)
    }

    /// Writes content at the file's current position, within the limits.
    fn put(&self, copying: Copying<'_>, content: &[u8]) -> Result<(), Stop> {
        let Copying { at, to, is_stream, .. } = copying;
        for piece in content.chunks(at.stride(BUFFER_BYTES)) {
            if at.is_paced() {
                at.pace(piece.len() as u64);
                if at.is_over() {
                    return Err(Stop::Asked);
                }
            }
            if self.context.mode == TargetMode::Real {
                at.step(Phase::Write, 1);
                let written = match is_stream {
                    true => stdio::write_all(to, piece, &|| at.is_over()),
                    false => file::write_all(to, piece),
                };
                written.map_err(writing)?;
            }
            at.lane.bytes(piece.len() as u64);
        }
        Ok(())
    }

    /// Copies everything up to the end into a target without offsets: a FIFO, a terminal.
    fn copy_stream(&mut self, copying: Copying<'_>) -> Result<u64, Stop> {
        let filled = copying.read(&mut self.buffer)?;
        self.copy_rest(copying, filled)
    }

    /// Copies a file that is larger than its size says up to its end (or, for a growing file with a size, up to that
    /// size). The buffer holds its first part.
    fn copy_unsized(&mut self, copying: Copying<'_>, source: &Meta) -> Result<u64, Stop> {
        let size = source.size;
        if size > 0 && !is_still(copying.from, source)? {
            let content = &self.buffer[..size as usize];
            self.put(copying, content)?;
            return Ok(size);
        }
        let filled = self.buffer.len();
        self.copy_rest(copying, filled)
    }

    /// Returns whether a source is on a network or FUSE file system.
    fn is_foreign(&mut self, from: BorrowedFd<'_>) -> bool {
        self.pair.read_ahead(from).is_some()
    }

    /// Copies what a file on a FUSE or network file system has beyond its size, unless it grows. Returns the number of
    /// bytes of the whole file.
    fn copy_beyond(&mut self, copying: Copying<'_>, source: &Meta) -> Result<u64, Stop> {
        let from = copying.from;
        let real = self.context.mode == TargetMode::Real;
        if !real || !self.is_foreign(from) {
            return Ok(source.size);
        }
        let space = self.buffer.get_mut(..1).unwrap_or_default();
        copying.at.step(Phase::Read, 1);
        let more = file::read_full_at(from, space, source.size).map_err(reading)? > 0;
        match more && is_still(from, source)? {
            true => self.copy_from(copying, source.size),
            false => Ok(source.size),
        }
    }

    /// Copies a file from an offset to its end. Returns the offset of the end.
    fn copy_from(&mut self, copying: Copying<'_>, start: u64) -> Result<u64, Stop> {
        let Copying { at, from, to, .. } = copying;
        let real = self.context.mode == TargetMode::Real;
        let mut offset = start;
        loop {
            if at.is_over() {
                return Err(Stop::Asked);
            }
            at.step(Phase::Read, 1);
            let got = file::read_full_at(from, &mut self.buffer, offset).map_err(reading)?;
            if got == 0 {
                break;
            }
            at.pace(got as u64);
            if real {
                at.step(Phase::Write, 1);
                let content = self.buffer.get(..got).unwrap_or_default();
                file::write_all_at(to, content, offset, false).map_err(writing)?;
            }
            at.lane.bytes(got as u64);
            offset += got as u64;
        }
        if real {
            // Blocks may have been reserved, and a part written, for the size that was announced.
            at.step(Phase::Write, 1);
            file::set_len(to, offset).map_err(writing)?;
        }
        Ok(offset)
    }

    /// Writes the content of the buffer and everything after it, up to the end.
    fn copy_rest(&mut self, copying: Copying<'_>, filled: usize) -> Result<u64, Stop> {
        let (mut done, mut filled) = (0, filled);
        while filled > 0 {
            if copying.at.is_over() {
                return Err(Stop::Asked);
            }
            let content = &self.buffer[..filled];
            self.put(copying, content)?;
            done += filled as u64;
            filled = copying.read(&mut self.buffer)?;
        }
        Ok(done)
    }

    /// Writes the bytes of a source from `start` to its `size` to the same offsets of a target. Returns their number.
    ///
    /// # Errors
    /// [`Stop`]; a part may have been appended.
    pub(super) fn append(
        &mut self,
        at: &Station<'_>,
        (from, to): (BorrowedFd<'_>, BorrowedFd<'_>),
        (start, size): (u64, u64),
    ) -> Result<u64, Stop> {
        let mut offset = start;
        while offset < size {
            if at.is_over() {
                return Err(Stop::Asked);
            }
            let len = (size - offset).min(at.stride(BUFFER_BYTES) as u64) as usize;
            let Some(space) = self.buffer.get_mut(..len) else { return Err(Stop::Changed) };
            at.pace(len as u64);
            at.step(Phase::Read, 1);
            if file::read_full_at(from, space, offset).map_err(reading)? < len {
                return Err(Stop::Changed);
            }
            at.step(Phase::Write, 1);
            file::write_all_at(to, space, offset, false).map_err(writing)?;
            at.lane.bytes(len as u64);
            offset += len as u64;
        }
        Ok(size - start)
    }

    /// Returns whether the kernel may copy between two files of this pair.
    fn may_copy_in_kernel(&self) -> bool {
        self.pair.may_copy_range()
            && self.context.policy.reflink != Reflink::Never
            && self.context.mode == TargetMode::Real
    }
}

/// Returns whether a source is a device. One without a size may have no end.
fn is_device(from: BorrowedFd<'_>) -> Result<bool, Stop> {
    Ok(hakobu_sys::meta::of_fd(from).map_err(reading)?.kind.is_device())
}

/// Returns whether a source has the size and the times that it had when it was opened.
fn is_still(from: BorrowedFd<'_>, source: &Meta) -> Result<bool, Stop> {
    let now = hakobu_sys::meta::of_fd(from).map_err(reading)?;
    Ok((now.size, now.mtime, now.ctime) == (source.size, source.mtime, source.ctime))
}

// State that all methods of moving content share: the buffer of a worker, the capabilities of the current pair of
// file systems, and the method for one file.

/// Minimum size, in bytes, of a file that is copied concurrently with others and by several workers; its writeback
/// starts early.
pub(super) const LARGE_BYTES_MIN: u64 = 8 << 20;
/// Maximum bytes of a segment, whatever the file system prefers.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 4 << 20;
/// Zeroes become a hole in steps of this many bytes (the block size of nearly all file systems).
const HOLE_BYTES: usize = 4096;

/// Method of moving the content of a file.
pub(super) struct CopyMethod {
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
    pub in_kernel: bool,
    /// Other workers may help.
    pub shared: bool,
}

/// Moves the content of files. One instance per worker.
pub(super) struct Mover<'a> {
    pub(super) context: Context<'a>,
    /// Maximum number of workers for the content of one file.
    pub(super) jobs_per_file: Jobs,
    /// Bytes of a large file that this worker may buffer.
    pub(super) segment_bytes_max: u64,
    pub(super) buffer: LazyBuffer,
    pub(super) pair: DevicePair,
}

impl<'a> Mover<'a> {
    /// `segment_bytes_max`: bytes of a large file that one worker may buffer.
    pub(super) fn new(context: Context<'a>, jobs_per_file: Jobs, segment_bytes_max: u64) -> Self {
        let (buffer, pair) = (LazyBuffer::default(), DevicePair::default());
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
        match zero && (!punches || file::punch(to, begins, piece.len() as u64).is_ok()) {
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

// Capabilities of a pair of file systems, determined once.

/// Capabilities of a source/target device pair, cached per worker.
#[derive(Clone, Copy, Default)]
pub(super) struct DevicePair {
    pub(super) devices: (u64, u64),
    /// Extents cannot be shared, as far as is known.
    pub(super) no_clone: bool,
    /// The kernel cannot copy between the two, or not faster than reads and writes.
    pub(super) no_range: bool,
    /// The target cannot drop pages once they are written.
    pub(super) no_uncached: bool,
    /// Both are on one disk; determined on first use.
    one_disk: Option<bool>,
    /// The target may report failed writes at close(2).
    reports_late: Option<bool>,
    /// Bytes to read ahead at once if the source is on a network or FUSE file system.
    read_ahead: Option<Option<u64>>,
    /// The target is on a network or FUSE file system.
    to_foreign: Option<bool>,
    /// The target is in memory.
    in_memory: Option<bool>,
}

impl DevicePair {
    /// Switches to this pair; resets the capabilities if it is another one.
    pub(super) fn begin(&mut self, devices: (u64, u64)) {
        if self.devices != devices {
            *self = DevicePair { devices, ..DevicePair::default() };
        }
    }

    /// Returns whether the kernel may copy between the two, as far as is known.
    pub(super) fn may_copy_range(&self) -> bool {
        self.devices.0 == self.devices.1 && !self.no_range
    }

    pub(super) fn read_ahead(&mut self, from: BorrowedFd<'_>) -> Option<u64> {
        *self.read_ahead.get_or_insert_with(|| cache::window_bytes(from))
    }

    pub(super) fn writes_to_foreign(&mut self, to: BorrowedFd<'_>) -> bool {
        *self.to_foreign.get_or_insert_with(|| disk::is_foreign_fd(to))
    }

    pub(super) fn in_memory(&mut self, to: BorrowedFd<'_>) -> bool {
        *self.in_memory.get_or_insert_with(|| disk::is_memory(to))
    }

    /// Returns whether writes to one land on the disk that the other is read from.
    pub(super) fn is_one_disk(&mut self) -> bool {
        let (from, to) = self.devices;
        let same = || from == to || disk::below(from).is_some_and(|of| disk::below(to) == Some(of));
        *self.one_disk.get_or_insert_with(same)
    }

    /// Returns whether the file system of `to`, a file on the target device, may report failed writes at close(2).
    pub(super) fn reports_late(&mut self, to: BorrowedFd<'_>) -> bool {
        *self.reports_late.get_or_insert_with(|| file::reports_late(to))
    }
}

// Comparison of source and target (`--checksum`, `--append-verify`).

impl Mover<'_> {
    /// Compares the contents of two files of equal size (`--checksum`). A target that cannot be read counts as
    /// different and is replaced, as in rsync. `follow`: the source may be a symlink.
    pub(super) fn is_same(
        &mut self,
        at: &Station<'_>,
        source: (BorrowedFd<'_>, &CStr, bool),
        target: (BorrowedFd<'_>, &CStr),
        size: u64,
    ) -> Result<bool, Stop> {
        at.step(Phase::Look, 2);
        let a = file::open_read(source.0, source.1, source.2).map_err(reading)?;
        let Ok(b) = file::open_read(target.0, target.1, false) else {
            return Ok(false);
        };
        match self.begins_like(at, (a.as_fd(), b.as_fd()), size) {
            Err(Stop::Failed(Failure { operation: Operation::Compare, .. })) => Ok(false),
            other => other,
        }
    }

    /// Returns whether a file of the target has the size and the hash of a source of the other end. A target that cannot
    /// be read counts as different.
    pub(super) fn has_hash(
        &mut self,
        at: &Station<'_>,
        target: (BorrowedFd<'_>, &CStr),
        size: u64,
        hash: Option<u128>,
    ) -> Result<bool, Stop> {
        if size == 0 {
            return Ok(true);
        }
        let Some(hash) = hash else { return Ok(false) };
        at.step(Phase::Look, 1);
        let Ok(fd) = file::open_read(target.0, target.1, false) else {
            return Ok(false);
        };
        match self.hash_of(at, fd.as_fd(), size) {
            Err(Stop::Failed(_)) => Ok(false),
            other => Ok(other? == Some(hash)),
        }
    }

    /// Returns the hash of the first `size` bytes of a file; `None` if it has fewer.
    ///
    /// # Errors
    /// It cannot be read; the run was asked to stop.
    pub(super) fn hash_of(
        &mut self,
        at: &Station<'_>,
        fd: BorrowedFd<'_>,
        size: u64,
    ) -> Result<Option<u128>, Stop> {
        let (mut hash, mut offset) = (Xxh3::new(), 0);
        while offset < size {
            if at.is_over() {
                return Err(Stop::Asked);
            }
            at.step(Phase::Read, 1);
            let len = usize::try_from(size - offset).unwrap_or(usize::MAX).min(BUFFER_BYTES);
            let Some(space) = self.buffer.get_mut(..len) else { return Ok(None) };
            if file::read_full_at(fd, space, offset).map_err(reading)? < len {
                return Ok(None);
            }
            hash.update(space);
            offset += len as u64;
        }
        Ok(Some(hash.digest128()))
    }

    /// Returns whether the first `size` bytes of two files are equal.
    ///
    /// # Errors
    /// A file that cannot be read; the run was asked to stop.
    pub(super) fn begins_like(
        &mut self,
        at: &Station<'_>,
        fds: (BorrowedFd<'_>, BorrowedFd<'_>),
        size: u64,
    ) -> Result<bool, Stop> {
        let half = self.buffer.len() / 2;
        let (left, right) = self.buffer.split_at_mut(half);
        let begin = |_| match at.is_over() {
            true => Err(Stop::Asked),
            false => {
                at.step(Phase::Read, 2);
                Ok(())
            }
        };
        let found = first_difference(fds, (0, size), (left, right), false, begin, |_, _| ())?;
        Ok(found.is_none())
    }
}

// Decides from the waiting times of a file's workers whether more workers would pay. Pure; measured during the copy.
//
// A worker that mostly reads and uses little CPU waits for the source: another one can wait in parallel. Time in
// writes has no meaning here: writes to one file are serialised by the lock of its inode anyway. A worker that waits
// longer for its turn to write than it reads is one too many.

/// Number of segments after which a worker decides.
const SEGMENTS: u64 = 8;

/// Time that a worker spent on a file since its last decision.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    segments: u64,
    /// In read calls.
    reading: Duration,
    /// Waiting for its turn to write.
    queueing: Duration,
    /// CPU time in total.
    cpu: Duration,
    /// Number of voluntary context switches.
    waits: u64,
}

impl Spent {
    /// Returns whether one more worker would pay. On a busy machine a read takes long as well, but the context
    /// switches are involuntary.
    fn wants_more(&self) -> bool {
        self.reading >= 2 * self.cpu && self.waits >= self.segments && self.reading >= self.queueing
    }
}

/// Time measurement of one worker.
pub(super) struct Watch {
    spent: Spent,
    used: ResourceUsage,
}

impl Watch {
    pub(super) fn new() -> Watch {
        Watch { spent: Spent::default(), used: ResourceUsage::of_thread() }
    }

    /// Records a read that began at `begun`.
    pub(super) fn read(&mut self, begun: Instant) {
        self.spent.reading += begun.elapsed();
    }

    /// Records a wait for a turn that began at `begun`.
    pub(super) fn queued(&mut self, begun: Instant) {
        self.spent.queueing += begun.elapsed();
    }

    /// Records a finished segment; every [`SEGMENTS`] segments returns whether more workers would pay.
    pub(super) fn judge(&mut self) -> Option<bool> {
        self.spent.segments += 1;
        if self.spent.segments < SEGMENTS {
            return None;
        }
        let used = ResourceUsage::of_thread();
        let more = used.since(&self.used);
        (self.spent.cpu, self.spent.waits) = (more.cpu(), more.voluntary_switches);
        self.used = used;
        Some(std::mem::take(&mut self.spent).wants_more())
    }
}

// The buffer of a worker.

/// Bytes that a worker reads at once. Larger buffers exceed the second-level cache.
pub(super) const BUFFER_BYTES: usize = 256 << 10;

/// Has [`BUFFER_BYTES`] unless it is made with another length. Allocated at the first use: workers that only compare
/// metadata need none, and clearing it takes longer than starting them.
#[derive(Default)]
pub(super) struct LazyBuffer(OnceCell<AlignedBytes>);

impl LazyBuffer {
    /// Returns `len` zeroes.
    pub fn zeroed(len: usize) -> LazyBuffer {
        LazyBuffer(OnceCell::from(AlignedBytes::zeroed(len)))
    }
}

fn zeroes() -> AlignedBytes {
    AlignedBytes::zeroed(BUFFER_BYTES)
}

impl Deref for LazyBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.get_or_init(zeroes)
    }
}

impl DerefMut for LazyBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.get_or_init(zeroes);
        self.0.get_mut().map_or(&mut [], |bytes| bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(reading: u64, queueing: u64, cpu: u64, waits: u64) -> Spent {
        let ms = Duration::from_millis;
        let (reading, queueing, cpu) = (ms(reading), ms(queueing), ms(cpu));
        Spent { segments: 8, reading, queueing, cpu, waits }
    }

    #[test]
    fn waiting_for_the_source_wants_more_workers() {
        // One millisecond per call and hardly any CPU.
        assert!(spent(8, 0, 1, 8).wants_more());
        // From the page cache: CPU time only.
        assert!(!spent(2, 0, 3, 0).wants_more());
        // The same on a busy machine: preempted, never waiting.
        assert!(!spent(20, 0, 3, 1).wants_more());
        // The target is slow, and the source is not.
        assert!(!spent(1, 0, 1, 8).wants_more());
        // Others queue for the target: there are enough workers.
        assert!(!spent(8, 9, 1, 16).wants_more());
    }

    #[test]
    fn a_judgement_comes_every_eighth_segment() {
        let mut watch = Watch::new();
        for round in 0..3 {
            for segment in 1..SEGMENTS {
                assert_eq!(watch.judge(), None, "{round} {segment}");
            }
            assert_eq!(watch.judge(), Some(false));
        }
        let begun = Instant::now();
        for _ in 1..SEGMENTS {
            std::thread::sleep(Duration::from_millis(2));
            watch.judge();
        }
        std::thread::sleep(Duration::from_millis(2));
        watch.read(begun);
        assert_eq!(watch.judge(), Some(true));
    }

    #[test]
    fn a_buffer_has_its_size_from_the_first_use_on() {
        let (read, mut written) = (LazyBuffer::default(), LazyBuffer::default());
        assert_eq!((read.len(), written.split_at_mut(1).1.len()), (BUFFER_BYTES, BUFFER_BYTES - 1));
        written[7] = 1;
        assert_eq!((written[7], written.len()), (1, BUFFER_BYTES));
        assert_eq!(LazyBuffer::zeroed(5)[..], [0; 5]);
    }
}
