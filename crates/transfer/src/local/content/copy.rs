//! Copies the bytes of one file, from an open source to an open target, by the cheapest method of this pair of file
//! systems: shared extents, a copy inside the kernel, or reads and writes.

use super::buffer::BUFFER_BYTES;
use super::mover::{LARGE_BYTES_MIN, Mover, SEGMENT_BYTES_MAX, Way, still_holds};
use super::shared_copy::Helpers;
use crate::local::context::TargetMode;
use crate::local::pace::Station;
use crate::failure::{Stop, reading, writing};
use crate::policy::{Reflink, Sparse};
use crate::publish::{reserve, reserve_ahead};
use hakobu_core::meter::Phase;
use hakobu_core::unit::Meta;
use hakobu_sys::{BorrowedFd, cache, errno, file, volume, waiting};

/// Minimum size, in bytes, of a dense file whose blocks are reserved first.
const RESERVE_BYTES_MIN: u64 = 4 << 20;
/// Minimum size, in bytes, of a file that the kernel is told to read ahead as sequential.
const SEQUENTIAL_BYTES_MIN: u64 = 1 << 20;
/// Segment size, in bytes, on a file system that waits for an answer to each segment: writes to one file do not
/// overlap, so the size of each determines the rate.
const FOREIGN_SEGMENT_BYTES: u64 = 1 << 20;

/// The kind of target that content is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::local) enum Onto {
    /// An empty file.
    New,
    /// A file with content (`--inplace`); the caller truncates it to its new size.
    Existing,
    /// A target without offsets.
    Stream,
}

/// The content of a file, and its target.
pub(in crate::local) struct Content<'a> {
    pub from: BorrowedFd<'a>,
    pub to: BorrowedFd<'a>,
    pub source: &'a Meta,
    pub target_dev: u64,
    pub onto: Onto,
    /// Workers that may help with a large file; `None` if none may.
    pub helpers: Option<&'a dyn Helpers>,
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
    pub(in crate::local) fn copy(
        &mut self,
        at: &Station<'_>,
        content: Content<'_>,
    ) -> Result<u64, Stop> {
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
        content: Content<'_>,
        by_helpers: &mut u64,
    ) -> Result<u64, Stop> {
        let Content { from, to, source, target_dev, onto, helpers } = content;
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
        let mut way = Way {
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
            let wanted = volume::preferred_bytes(from).max(volume::preferred_bytes(to));
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
                    true => waiting::write_all(to, piece, &|| at.is_over()),
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
    pub(in crate::local) fn append(
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
