//! Engines of memory. `mmap`: blocks are copied from and to the mapped file; the page cache does the rest.
//! `page_fault`: from and to memory of the job's own, of which no page is there before it is touched.

use super::{Engine, Queued, REFUSED, Transfer, part};
use crate::pattern::Extent;
use hakobu_sys::memory::{Aligned, MappedFile};
use hakobu_sys::{OwnedFd, errno};
use std::io::{Error, Result};

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
            let bytes = usize::try_from(bytes)
                .map_err(|_| Error::from_raw_os_error(hakobu_sys::errno::EFBIG))?;
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
    fn transfer(&mut self, _: usize, block: Transfer) -> Queued {
        let Some(map) = self.maps.get_mut(block.file as usize) else { return REFUSED };
        let Some(buffer) = part(&mut self.buffer, &block) else { return REFUSED };
        let Some(at) = block.offset.checked_sub(map.begin_bytes) else { return REFUSED };
        let at = at as usize;
        if !block.write {
            return Queued::Done(map.memory.read(at, buffer) as i64);
        }
        let moved = map.memory.write(at, buffer);
        let (from, to) = map.dirty.unwrap_or((at, at));
        map.dirty = Some((from.min(at), to.max(at + moved)));
        Queued::Done(moved as i64)
    }

    /// msync(2) of all that was written since the last one.
    fn sync(&mut self, _: usize, file: u32, _: bool) -> Queued {
        let Some(map) = self.maps.get_mut(file as usize) else { return REFUSED };
        let Some((from, to)) = map.dirty.take() else { return Queued::Done(0) };
        match map.memory.sync(from, to.min(map.bytes) - from.min(to).min(map.bytes)) {
            Ok(()) => Queued::Done(0),
            Err(error) => Queued::Done(-i64::from(errno::of(&error))),
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
    fn transfer(&mut self, _: usize, block: Transfer) -> Queued {
        let Some((begin, memory)) = self.maps.get_mut(block.file as usize) else { return REFUSED };
        let Some(buffer) = part(&mut self.buffer, &block) else { return REFUSED };
        let at = block.offset.checked_sub(*begin).and_then(|at| usize::try_from(at).ok());
        let range = at.and_then(|at| Some(at..at.checked_add(buffer.len())?));
        let Some(place) = range.and_then(|range| memory.get_mut(range)) else { return REFUSED };
        match block.write {
            true => place.copy_from_slice(buffer),
            false => buffer.copy_from_slice(place),
        }
        Queued::Done(i64::from(block.bytes))
    }
}
