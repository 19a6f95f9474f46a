//! The engine `e4defrag`: the blocks of a range change places with those of another file of the same ext4, as
//! e4defrag(8) does it. The contents of both are unchanged.

use super::{Engine, Queued, REFUSED, Transfer, part, sync_file};
use hakobu_sys::memory::Aligned;
use hakobu_sys::ranges::{self, Take};
use hakobu_sys::{OwnedFd, errno};
use std::io::Result;

/// Files, and the one that gives blocks.
#[derive(Debug)]
pub(crate) struct Defrag<'f> {
    files: &'f [OwnedFd],
    donor: OwnedFd,
    /// Bytes of a block of the file system.
    unit_bytes: u64,
    /// The donor gets its blocks for each exchange, and loses them after it.
    in_place: bool,
    buffer: Aligned,
}

impl<'f> Defrag<'f> {
    /// Creates the engine with this donor and blocks of at most this many bytes.
    ///
    /// # Errors
    /// Those of fstat(2); no memory.
    pub(crate) fn new(
        files: &'f [OwnedFd],
        donor: OwnedFd,
        in_place: bool,
        bytes: usize,
    ) -> Result<Defrag<'f>> {
        let unit_bytes = ranges::block_bytes(&donor)?.max(1);
        Ok(Defrag { files, donor, unit_bytes, in_place, buffer: Aligned::new(bytes.max(1))? })
    }

    fn exchange(&self, file: &OwnedFd, offset: u64, bytes: u64) -> i64 {
        let unit_bytes = self.unit_bytes;
        if !offset.is_multiple_of(unit_bytes) || !bytes.is_multiple_of(unit_bytes) {
            return -i64::from(errno::EINVAL);
        }
        if self.in_place {
            let taken = ranges::take(&self.donor, Take::Grow, offset, bytes);
            if taken < 0 {
                return taken;
            }
        }
        let (start, blocks) = (offset / self.unit_bytes, bytes / self.unit_bytes);
        let moved = ranges::exchange(file, &self.donor, start, blocks);
        if self.in_place {
            let given = ranges::take(&self.donor, Take::Punch, offset, bytes);
            if given < 0 && moved >= 0 {
                return given;
            }
        }
        if moved < 0 { moved } else { moved.saturating_mul(self.unit_bytes as i64) }
    }
}

impl Engine for Defrag<'_> {
    const WAITS: bool = true;

    fn buffer(&mut self, _: usize) -> &mut [u8] {
        &mut self.buffer
    }

    fn transfer(&mut self, _: usize, block: Transfer) -> Queued {
        if !block.write || part(&mut self.buffer, &block).is_none() {
            return REFUSED;
        }
        match self.files.get(block.file as usize) {
            Some(file) => Queued::Done(self.exchange(file, block.offset, u64::from(block.bytes))),
            None => REFUSED,
        }
    }

    fn sync(&mut self, _: usize, file: u32, data: bool) -> Queued {
        sync_file(self.files, file, data)
    }
}
