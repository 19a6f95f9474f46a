//! Engines without system calls. `mmap`: blocks are copied from and to the mapped file; the page cache does the rest.
//! `page_fault`: from and to memory of the job's own, of which no page is there before it is touched. `null`: every block
//! goes at once and nowhere, so that only the cost of the benchmark itself is left.

use super::{Completion, Engine, REFUSED, Submission, Transfer, part};
use crate::pattern::Extent;
use hakobu_sys::memory::{Aligned, MappedFile};
use hakobu_sys::{OwnedFd, errno};
use std::collections::VecDeque;
use std::io::{Error, Result};
use std::ops::Range;
use std::time::Duration;

/// A mapping of each file, over the job's extent.
#[derive(Debug)]
pub(crate) struct Mmap {
    maps: Vec<Map>,
    buffer: Aligned,
}

#[derive(Debug)]
struct Map {
    memory: MappedFile,
    /// Its offset in the file.
    begin_bytes: u64,
    bytes: usize,
    /// Range that was written since the last sync: from, to.
    dirty: Option<(usize, usize)>,
}

impl Mmap {
    /// Maps the extents of these files, and for writing if `write`; the buffer has this many bytes.
    pub(crate) fn new(
        files: &[OwnedFd],
        extents: &[Extent],
        write: bool,
        bytes: usize,
    ) -> Result<Mmap> {
        let page = hakobu_sys::proc::page_bytes();
        let map = |(file, extent): (&OwnedFd, &Extent)| {
            let begin_bytes = extent.begin_bytes / page * page;
            let bytes = extent.begin_bytes - begin_bytes + extent.bytes;
            let bytes =
                usize::try_from(bytes).map_err(|_| Error::from_raw_os_error(errno::EFBIG))?;
            let memory = MappedFile::new(file, begin_bytes, bytes.max(1), write)?;
            Ok(Map { memory, begin_bytes, bytes, dirty: None })
        };
        let maps = files.iter().zip(extents).map(map).collect::<Result<_>>()?;
        Ok(Mmap { maps, buffer: Aligned::new(bytes.max(1))? })
    }
}

impl Engine for Mmap {
    const WAITS: bool = true;

    #[inline(always)]
    fn buffer(&mut self, _: usize) -> &mut [u8] {
        &mut self.buffer
    }

    #[inline(always)]
    fn transfer(&mut self, _: usize, block: Transfer) -> Submission {
        let Some(map) = self.maps.get_mut(block.file as usize) else { return REFUSED };
        let Some(buffer) = part(&mut self.buffer, &block) else { return REFUSED };
        let Some(at) = block.offset.checked_sub(map.begin_bytes) else { return REFUSED };
        let at = at as usize;
        if !block.write {
            return Submission::Done(map.memory.read(at, buffer) as i64);
        }
        let moved = map.memory.write(at, buffer);
        let (from, to) = map.dirty.unwrap_or((at, at));
        map.dirty = Some((from.min(at), to.max(at + moved)));
        Submission::Done(moved as i64)
    }

    /// msync(2) of all that was written since the last one.
    fn sync(&mut self, _: usize, file: u32, _: bool) -> Submission {
        let Some(map) = self.maps.get_mut(file as usize) else { return REFUSED };
        let Some((from, to)) = map.dirty.take() else { return Submission::Done(0) };
        match map.memory.sync(from, to.min(map.bytes) - from.min(to).min(map.bytes)) {
            Ok(()) => Submission::Done(0),
            Err(error) => Submission::Done(-i64::from(errno::of(&error))),
        }
    }
}

/// Memory in place of each file.
#[derive(Debug)]
pub(crate) struct PageFault {
    maps: Vec<(u64, Aligned)>,
    buffer: Aligned,
}

impl PageFault {
    /// Allocates memory of the size of the files' extents, and a buffer of this many bytes.
    pub(crate) fn new(extents: &[Extent], bytes: usize) -> Result<PageFault> {
        let map = |extent: &Extent| {
            let length = usize::try_from(extent.bytes).map_err(|_| Error::other("too large"))?;
            Ok((extent.begin_bytes, Aligned::new(length.max(1))?))
        };
        let maps = extents.iter().map(map).collect::<Result<_>>()?;
        Ok(PageFault { maps, buffer: Aligned::new(bytes.max(1))? })
    }
}

impl Engine for PageFault {
    const WAITS: bool = true;

    #[inline(always)]
    fn buffer(&mut self, _: usize) -> &mut [u8] {
        &mut self.buffer
    }

    #[inline(always)]
    fn transfer(&mut self, _: usize, block: Transfer) -> Submission {
        let Some((begin, memory)) = self.maps.get_mut(block.file as usize) else { return REFUSED };
        let Some(buffer) = part(&mut self.buffer, &block) else { return REFUSED };
        let at = block.offset.checked_sub(*begin).and_then(|at| usize::try_from(at).ok());
        let range = at.and_then(|at| Some(at..at.checked_add(buffer.len())?));
        let Some(place) = range.and_then(|range| memory.get_mut(range)) else { return REFUSED };
        match block.write {
            true => place.copy_from_slice(buffer),
            false => buffer.copy_from_slice(place),
        }
        Submission::Done(i64::from(block.bytes))
    }
}

/// One block at a time.
#[derive(Debug)]
pub(crate) struct Null {
    buffer: Aligned,
}

impl Null {
    /// Creates the engine with a buffer of this many bytes.
    pub(crate) fn new(bytes: usize) -> Result<Null> {
        Ok(Null { buffer: Aligned::new(bytes.max(1))? })
    }
}

impl Engine for Null {
    const WAITS: bool = true;

    #[inline(always)]
    fn buffer(&mut self, _: usize) -> &mut [u8] {
        &mut self.buffer
    }

    #[inline(always)]
    fn transfer(&mut self, _: usize, block: Transfer) -> Submission {
        Submission::Done(i64::from(block.bytes))
    }
}

/// Several in flight: they are done as soon as they were begun, but not before.
#[derive(Debug)]
pub(crate) struct NullQueue {
    buffers: Buffers,
    queued: Vec<Completion>,
    done: VecDeque<Completion>,
}

impl NullQueue {
    /// Creates the engine with this many buffers of this many bytes.
    pub(crate) fn new(depth: u32, bytes: usize) -> Result<NullQueue> {
        let buffers = Buffers::new(depth, bytes)?;
        Ok(NullQueue { buffers, queued: Vec::new(), done: VecDeque::new() })
    }
}

impl Engine for NullQueue {
    const WAITS: bool = false;

    #[inline(always)]
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.buffers.of(slot)
    }

    #[inline(always)]
    fn transfer(&mut self, slot: usize, block: Transfer) -> Submission {
        if !self.buffers.holds(block.begin as usize + block.bytes as usize) {
            return REFUSED;
        }
        self.queued.push((slot, i64::from(block.bytes)));
        Submission::Queued
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<u32> {
        let went = self.queued.len() as u32;
        self.done.extend(self.queued.drain(..));
        Ok(went)
    }

    #[inline(always)]
    fn reap(
        &mut self,
        _: u32,
        most: u32,
        _: Option<Duration>,
        landed: &mut Vec<Completion>,
    ) -> Result<u32> {
        let went = self.commit()?;
        let count = self.done.len().min(most as usize);
        landed.extend(self.done.drain(..count));
        Ok(went)
    }
}

/// One buffer for each slot, in one mapping.
#[derive(Debug)]
struct Buffers {
    memory: Aligned,
    bytes: usize,
}

impl Buffers {
    /// Makes `depth` buffers of this many bytes, at least one of each.
    fn new(depth: u32, bytes: usize) -> Result<Buffers> {
        let bytes = bytes.max(1);
        let memory = Aligned::new(bytes.saturating_mul(depth.max(1) as usize))?;
        Ok(Buffers { memory, bytes })
    }

    /// Returns the buffer of a slot; empty if there is no such slot.
    #[inline(always)]
    fn of(&mut self, slot: usize) -> &mut [u8] {
        self.part(slot, 0..self.bytes)
    }

    /// Returns a part of the buffer of a slot; empty if it is not inside.
    #[inline(always)]
    fn part(&mut self, slot: usize, part: Range<usize>) -> &mut [u8] {
        let begin = slot.saturating_mul(self.bytes);
        let all = begin.saturating_add(part.start)..begin.saturating_add(part.end);
        match self.holds(part.end) {
            true => self.memory.get_mut(all).unwrap_or_default(),
            false => &mut [],
        }
    }

    /// Returns whether a part that ends there is inside of a buffer.
    #[inline(always)]
    fn holds(&self, end: usize) -> bool {
        end <= self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_belongs_to_one_slot() {
        let mut buffers = Buffers::new(3, 8).unwrap();
        buffers.of(1).fill(1);
        buffers.part(2, 2..4).fill(2);
        assert_eq!(buffers.of(0), [0; 8]);
        assert_eq!(buffers.of(1), [1; 8]);
        assert_eq!(buffers.of(2), [0, 0, 2, 2, 0, 0, 0, 0]);
        let none = [(3, 0..1), (0, 4..9), (usize::MAX, 0..8)];
        for (slot, part) in none {
            assert!(buffers.part(slot, part.clone()).is_empty(), "{slot} {part:?}");
        }
    }
}
