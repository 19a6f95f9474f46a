//! The engine `page_fault`: blocks are copied from and to memory of the job's own, of which no page is there
//! before it is touched.

use super::{Engine, Queued, REFUSED, Transfer, part};
use crate::pattern::Extent;
use hakobu_sys::memory::Aligned;
use std::io::{Error, Result};

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

    fn sync(&mut self, _: usize, _: u32, _: bool) -> Queued {
        Queued::Done(0)
    }
}
