//! The bytes of one file, from an open source to an open target, the cheapest way that this pair
//! of file systems has: shared extents, a copy inside the kernel, or reads and writes.

use super::node::Failure;
use super::pace::Station;
use super::{BUFFER_BYTES, Engine, State, TargetMode};
use crate::error::Operation;
use crate::event::{Event, LARGE_BYTES_MIN};
use crate::meter::Phase;
use crate::policy::{Reflink, Sparse};
use crate::unit::Meta;
use hakobu_sys::{BorrowedFd, cache, disk, errno, file};
use std::io;

/// Dense files from this size on have their blocks reserved first.
const RESERVE_BYTES_MIN: u64 = 4 << 20;
/// Dirty pages of a large file are handed to the device in steps of this size.
const WRITEBACK_BYTES: u64 = 8 << 20;
/// Zeroes become a hole in steps of this size (the block size of nearly all file systems).
const HOLE_BYTES: usize = 4096;

/// What a worker has learnt about the pair of devices it copies between.
#[derive(Clone, Copy, Default)]
pub struct Pair {
    devices: (u64, u64),
    no_clone: bool,
    no_range: bool,
    no_uncached: bool,
    /// Both are on one disk; found out where it is asked first.
    one_disk: Option<bool>,
}

impl Pair {
    /// Whether what is written to one lands on the disk that the other is read from.
    fn is_one_disk(&mut self) -> bool {
        let (from, to) = self.devices;
        let same = || from == to || disk::below(from).is_some_and(|of| disk::below(to) == Some(of));
        *self.one_disk.get_or_insert_with(same)
    }
}

/// What the content is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onto {
    /// An empty file.
    New,
    /// A file that has content (`--inplace`); the caller cuts it to its new size.
    Existing,
    /// Something without offsets.
    Stream,
}

/// Why the content did not arrive.
#[derive(Debug)]
pub enum Stop {
    /// A call failed.
    Failed(Failure),
    /// The source is shorter than it was when it was opened.
    Changed,
    /// The run was asked to end.
    Asked,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

fn reading(error: io::Error) -> Stop {
    Stop::Failed(Failure { operation: Operation::Read, error })
}

fn writing(error: io::Error) -> Stop {
    Stop::Failed(Failure { operation: Operation::Write, error })
}

/// A copy under way.
struct Copy<'a> {
    from: BorrowedFd<'a>,
    to: BorrowedFd<'a>,
    size: u64,
    /// Told about in steps (`LargeFile`).
    large: bool,
    told: u64,
    flushed: u64,
    /// Writeback begins while it is copied.
    drains: bool,
    uncached: bool,
    zeroes_to_holes: bool,
}

impl Engine<'_> {
    /// Copies the content of an open file into an empty or (`overwrite`) existing one. Returns
    /// the bytes copied: the size that `source` tells, or for files without one (`/proc`) what
    /// there is.
    ///
    /// # Errors
    /// [`Stop`]; the target then holds a part.
    pub(super) fn copy_content(
        &self,
        state: &mut State,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        source: &Meta,
        target_dev: u64,
        onto: Onto,
    ) -> Result<u64, Stop> {
        if onto == Onto::Stream {
            return self.copy_stream(state, from, to);
        }
        let overwrite = onto == Onto::Existing;
        let policy = self.policy;
        let real = self.mode == TargetMode::Real;
        if state.pair.devices != (source.dev, target_dev) {
            state.pair = Pair { devices: (source.dev, target_dev), ..Pair::default() };
        }
        if real
            && policy.reflink != Reflink::Never
            && (!state.pair.no_clone || policy.reflink == Reflink::Always)
            && source.size > 0
            && self.clone_content(state, from, to, source.size)?
        {
            return Ok(source.size);
        }
        let holes = match policy.sparse {
            Sparse::Never => false,
            Sparse::Auto | Sparse::Always => !overwrite && source.may_have_holes(),
        };
        let always = policy.sparse == Sparse::Always && !overwrite;
        if source.size < state.buffer.len() as u64 && !always && !(holes && source.size > 65536) {
            return self.copy_small(state, from, to, source.size);
        }
        let large = source.size >= LARGE_BYTES_MIN;
        let mut copy = Copy {
            from,
            to,
            size: source.size,
            large,
            told: 0,
            flushed: 0,
            drains: true,
            uncached: false,
            zeroes_to_holes: always,
        };
        if large {
            self.listener.event(Event::LargeFile { bytes: source.size });
            copy.uncached = !state.pair.no_uncached && cache::is_too_large(source.size);
            // What has to be read from the disk that is written to would wait behind the writing: reading
            // goes first, as long as the kernel finds room for what is written.
            let is_cached =
                || cache::cached_bytes(from).is_none_or(|bytes| bytes > source.size / 2);
            copy.drains = !state.pair.is_one_disk() || is_cached();
        }
        if holes || always {
            return self.copy_stretches(state, &mut copy);
        }
        if real && source.size >= RESERVE_BYTES_MIN && !overwrite {
            self.step(&state.station, Phase::Write, 1);
            match file::reserve(to, source.size) {
                // Full now is better than full later; every other answer means "cannot".
                Err(error) if errno::is(&error, errno::ENOSPC) => return Err(writing(error)),
                _ => {}
            }
        }
        let end = self.copy_stretch(state, &mut copy, 0, source.size)?;
        if end < source.size {
            return Err(Stop::Changed);
        }
        if self.may_copy_in_kernel(&state.pair) {
            still_holds(from, source.size)?;
        }
        Ok(end)
    }

    /// Shares all extents; `false` where this pair cannot.
    fn clone_content(
        &self,
        state: &mut State,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        size: u64,
    ) -> Result<bool, Stop> {
        self.step(&state.station, Phase::Write, 1);
        match file::clone_all(from, to) {
            // No limit of bytes is asked: none is read or written.
            Ok(()) => {
                self.moved(&state.station, size);
                Ok(true)
            }
            Err(error) if self.policy.reflink == Reflink::Always => Err(writing(error)),
            Err(error) => {
                // EINVAL can be about this one file (inline data); the others are the pair's.
                state.pair.no_clone = !errno::is(&error, errno::EINVAL);
                Ok(false)
            }
        }
    }

    /// A file that fits into the buffer: one read that proves the end by being short, one write.
    fn copy_small(
        &self,
        state: &mut State,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        size: u64,
    ) -> Result<u64, Stop> {
        let in_kernel = size > 0 && self.may_copy_in_kernel(&state.pair);
        if in_kernel && size as usize <= self.stride(BUFFER_BYTES) {
            // One call and one copy instead of two.
            self.pace(&state.station, size);
            self.step(&state.station, Phase::Write, 1);
            match file::copy_range(from, to, 0, size as usize) {
                Ok(moved) if moved as u64 == size => {
                    still_holds(from, size)?;
                    self.moved(&state.station, size);
                    return Ok(size);
                }
                // Some file systems answer 0 for what they cannot copy: reading tells.
                Ok(0) => {}
                Ok(_) => return Err(Stop::Changed),
                // Whatever it is, reading and writing will say it of the right side.
                Err(_) => state.pair.no_range = true,
            }
        }
        let mut filled = 0;
        loop {
            let space = state.buffer.get_mut(filled..).unwrap_or_default();
            let asked = space.len();
            self.step(&state.station, Phase::Read, 1);
            let got = file::read(from, space).map_err(reading)?;
            filled += got;
            if got == 0 || (got < asked && filled as u64 >= size) {
                break;
            }
            if filled == state.buffer.len() {
                // Larger than it said (`/proc` says 0): go on until the end is seen.
                return self.copy_unsized(state, from, to, size);
            }
        }
        if (filled as u64) < size {
            return Err(Stop::Changed);
        }
        // A file that grows is copied as it was when it was opened; its new size and time make
        // the next run copy it again.
        let len = if size == 0 { filled } else { filled.min(size as usize) };
        let content = state.buffer.get(..len).unwrap_or_default();
        self.put(&state.station, to, content)?;
        Ok(len as u64)
    }

    /// Writes content at the file's position, as fast as the limits allow.
    fn put(&self, at: &Station, to: BorrowedFd<'_>, content: &[u8]) -> Result<(), Stop> {
        for piece in content.chunks(self.stride(BUFFER_BYTES)) {
            if self.helm.bytes.is_some() {
                self.pace(at, piece.len() as u64);
                if self.is_over() {
                    return Err(Stop::Asked);
                }
            }
            if self.mode == TargetMode::Real {
                self.step(at, Phase::Write, 1);
                file::write_all(to, piece).map_err(writing)?;
            }
            self.moved(at, piece.len() as u64);
        }
        Ok(())
    }

    /// Everything up to the end into something that has no offsets: a FIFO, a terminal.
    fn copy_stream(
        &self,
        state: &mut State,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
    ) -> Result<u64, Stop> {
        self.step(&state.station, Phase::Read, 1);
        let filled = file::read(from, &mut state.buffer).map_err(reading)?;
        self.copy_rest(state, from, to, filled)
    }

    /// A file that is larger than it says: everything up to its end (or, for one that has a size
    /// and grows, up to that size). The buffer holds its first part.
    fn copy_unsized(
        &self,
        state: &mut State,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        size: u64,
    ) -> Result<u64, Stop> {
        if size > 0 {
            let content = state.buffer.get(..size as usize).unwrap_or_default();
            self.put(&state.station, to, content)?;
            return Ok(size);
        }
        let filled = state.buffer.len();
        self.copy_rest(state, from, to, filled)
    }

    /// Writes what the buffer holds and everything after it, up to the end.
    fn copy_rest(
        &self,
        state: &mut State,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        filled: usize,
    ) -> Result<u64, Stop> {
        let (mut done, mut filled) = (0, filled);
        while filled > 0 {
            if self.is_over() {
                return Err(Stop::Asked);
            }
            let content = state.buffer.get(..filled).unwrap_or_default();
            self.put(&state.station, to, content)?;
            done += filled as u64;
            self.step(&state.station, Phase::Read, 1);
            filled = file::read(from, &mut state.buffer).map_err(reading)?;
        }
        Ok(done)
    }

    /// Data between holes, then the size last: until then the file is never of full size.
    fn copy_stretches(&self, state: &mut State, copy: &mut Copy<'_>) -> Result<u64, Stop> {
        let mut offset = 0;
        while offset < copy.size {
            self.step(&state.station, Phase::Read, 1);
            let (start, end) = match file::next_data(copy.from, offset) {
                Ok(Some((start, end))) => (start.min(copy.size), end.min(copy.size)),
                Ok(None) => {
                    // Past the end there is no data either: the file may have shrunk.
                    let now = hakobu_sys::meta::of_fd(copy.from).map_err(reading)?;
                    if now.size < copy.size {
                        return Err(Stop::Changed);
                    }
                    break;
                }
                // The file system cannot say: all of it is data.
                Err(_) => (offset, copy.size),
            };
            let reached = self.copy_stretch(state, copy, start, end)?;
            if reached < end {
                return Err(Stop::Changed);
            }
            offset = end;
        }
        if self.mode == TargetMode::Real {
            self.step(&state.station, Phase::Write, 1);
            file::set_len(copy.to, copy.size).map_err(writing)?;
        }
        Ok(copy.size)
    }

    /// One stretch of data. Returns where it ended: before `end` only if the source did.
    fn copy_stretch(
        &self,
        state: &mut State,
        copy: &mut Copy<'_>,
        start: u64,
        end: u64,
    ) -> Result<u64, Stop> {
        let mut offset = start;
        while offset < end {
            if self.is_over() {
                return Err(Stop::Asked);
            }
            let moved = match self.copy_in_kernel(state, copy, offset, end)? {
                Some(moved) => moved,
                None => self.copy_step(state, copy, offset, end)?,
            };
            if moved == 0 {
                break;
            }
            offset += moved;
            self.moved_stroke(&state.station, moved);
            self.after_step(copy, offset);
        }
        Ok(offset)
    }

    /// Whether the kernel may copy between two files of this pair by itself.
    fn may_copy_in_kernel(&self, pair: &Pair) -> bool {
        pair.devices.0 == pair.devices.1
            && !pair.no_range
            && self.policy.reflink != Reflink::Never
            && self.mode == TargetMode::Real
    }

    fn copy_in_kernel(
        &self,
        state: &mut State,
        copy: &Copy<'_>,
        offset: u64,
        end: u64,
    ) -> Result<Option<u64>, Stop> {
        if copy.zeroes_to_holes || !self.may_copy_in_kernel(&state.pair) {
            return Ok(None);
        }
        let len = (end - offset).min(self.stride(WRITEBACK_BYTES as usize) as u64) as usize;
        self.pace(&state.station, len as u64);
        self.step(&state.station, Phase::Write, 1);
        match file::copy_range(copy.from, copy.to, offset, len) {
            // Some file systems answer 0 for what they cannot copy: reading tells.
            Ok(0) => Ok(None),
            Ok(moved) => Ok(Some(moved as u64)),
            Err(error) => match error.raw_os_error() {
                Some(errno::EIO) => Err(reading(error)),
                Some(errno::ENOSPC | errno::EDQUOT | errno::EFBIG) => Err(writing(error)),
                _ => {
                    state.pair.no_range = true;
                    Ok(None)
                }
            },
        }
    }

    fn copy_step(
        &self,
        state: &mut State,
        copy: &mut Copy<'_>,
        offset: u64,
        end: u64,
    ) -> Result<u64, Stop> {
        let stride = self.stride(state.buffer.len());
        let len = usize::try_from(end - offset).unwrap_or(usize::MAX).min(stride);
        let space = state.buffer.get_mut(..len).unwrap_or_default();
        self.step(&state.station, Phase::Read, 1);
        let got = file::read_at(copy.from, space, offset).map_err(reading)?;
        let content = state.buffer.get(..got).unwrap_or_default();
        self.pace(&state.station, got as u64);
        if self.mode != TargetMode::Real {
            return Ok(got as u64);
        }
        self.step(&state.station, Phase::Write, 1);
        if copy.zeroes_to_holes {
            write_without_zeroes(copy.to, content, offset).map_err(writing)?;
            return Ok(got as u64);
        }
        match file::write_all_at(copy.to, content, offset, copy.uncached) {
            Err(error) if copy.uncached && errno::is(&error, errno::EOPNOTSUPP) => {
                copy.uncached = false;
                state.pair.no_uncached = true;
                file::write_all_at(copy.to, content, offset, false).map_err(writing)?;
            }
            other => other.map_err(writing)?,
        }
        Ok(got as u64)
    }

    /// Starts writeback early and tells the progress of large files.
    fn after_step(&self, copy: &mut Copy<'_>, reached: u64) {
        if !copy.large || reached - copy.told < WRITEBACK_BYTES && reached < copy.size {
            return;
        }
        if self.mode == TargetMode::Real && !copy.uncached && copy.drains {
            // Only a head start for the device: whether it works shows in nothing but time.
            drop(file::start_writeback(copy.to, copy.flushed, reached - copy.flushed));
            copy.flushed = reached;
        }
        let undrained = match self.mode {
            TargetMode::Real => cache::undrained_bytes(copy.to),
            TargetMode::Null | TargetMode::Told => None,
        };
        self.listener.event(Event::LargeBytes { bytes: reached - copy.told, undrained });
        copy.told = reached;
    }
}

/// Whether a source that the kernel copied is not shorter by now. The kernel may hand over pages
/// that a truncation blanks before they are written (tmpfs does), with the full count.
fn still_holds(from: BorrowedFd<'_>, size: u64) -> Result<(), Stop> {
    match hakobu_sys::meta::of_fd(from).map_err(reading)?.size < size {
        true => Err(Stop::Changed),
        false => Ok(()),
    }
}

/// Writes what is not zero, in steps of [`HOLE_BYTES`].
fn write_without_zeroes(to: BorrowedFd<'_>, content: &[u8], offset: u64) -> io::Result<()> {
    let is_zero = |block: &[u8]| block.iter().all(|byte| *byte == 0);
    let mut start = None;
    let mut at = 0;
    for block in content.chunks(HOLE_BYTES) {
        match (is_zero(block), start) {
            (true, Some(from)) => {
                let run = content.get(from..at).unwrap_or_default();
                file::write_all_at(to, run, offset + from as u64, false)?;
                start = None;
            }
            (false, None) => start = Some(at),
            _ => {}
        }
        at += block.len();
    }
    if let Some(from) = start {
        let run = content.get(from..).unwrap_or_default();
        file::write_all_at(to, run, offset + from as u64, false)?;
    }
    Ok(())
}
