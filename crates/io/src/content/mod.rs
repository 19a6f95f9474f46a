//! Written content: incompressible bytes without duplicates, unless options say otherwise.

mod copies;
#[cfg(test)]
mod tests;

use super::pattern::Block;
use super::pattern::random::{Random, mix};
use super::{Job, VerifyKind, check};
use copies::Copies;

/// Bytes in which the share of what can be compressed is as asked for (fio's default of
/// `buffer_compress_chunk`), and in which something is changed before each write.
const CHUNK: usize = 512;

/// Fills the buffers of one clone.
///
/// A buffer is filled by chance once, and before each write a few bytes in each 512 of it are changed:
/// that is cheap, and no two blocks are the same (fio's `scramble_buffers`). With `refill_buffers` it is
/// filled anew each time; with `zero_buffers` it is zeros, with `buffer_pattern` and `verify_pattern` that
/// pattern.
#[derive(Clone, Debug)]
pub struct Filler {
    random: Random,
    /// Random bytes at the beginning of each chunk; its rest is zeros.
    lively: usize,
    refill: bool,
    /// Bytes that are repeated from the beginning of each block.
    pattern: Vec<u8>,
    copies: Option<Copies>,
    verify: Option<VerifyKind>,
    /// Distance between headers in a block, in bytes.
    interval_bytes: Option<u32>,
}

impl Filler {
    /// Creates the filler of one clone of a job. Random content differs from that of any earlier run, because a device
    /// may deduplicate.
    pub fn new(job: &Job, clone: u32) -> Filler {
        let percent = if job.zero { 100 } else { job.compress_percent.unwrap_or(0).min(100) };
        Filler {
            random: Random::new(fastrand::u64(..), u64::from(clone)),
            lively: CHUNK * usize::from(100 - percent) / 100,
            refill: job.refill && job.written.pattern.is_empty(),
            pattern: job.written.pattern.clone(),
            copies: job.written.dedupe.map(|of| Copies::new(job, &of, clone)),
            verify: job.verify.filter(|kind| *kind != VerifyKind::Pattern),
            interval_bytes: job.checks.interval_bytes,
        }
    }

    /// Fills a buffer for the first time.
    pub fn first(&mut self, buffer: &mut [u8]) {
        if !self.pattern.is_empty() {
            repeat(buffer, &self.pattern);
            return;
        }
        for chunk in buffer.chunks_mut(CHUNK) {
            let lively = self.lively * chunk.len() / CHUNK;
            let (by_chance, rest) = chunk.split_at_mut(lively);
            fill(by_chance, &mut self.random);
            rest.fill(0);
        }
    }

    /// Makes a buffer ready for this write: fresh content, or the old one changed enough, and the
    /// header of `verify`. The block is the first `block.bytes` of the buffer; `generation` is the
    /// number of the pass.
    #[inline]
    pub fn before_write(&mut self, buffer: &mut [u8], block: &Block, generation: u64) {
        let bytes = buffer.len().min(block.bytes as usize);
        let Some(buffer) = buffer.get_mut(..bytes) else { return };
        if !self.pattern.is_empty() {
            // Headers of the block before may be in it.
            if self.verify.is_some() {
                self.first(buffer);
            }
        } else if let Some(copies) = &mut self.copies {
            self.random = copies.next();
            self.first(buffer);
        } else if self.refill {
            self.first(buffer);
        } else if self.lively >= 8 {
            let fresh = self.random.bits();
            for (number, chunk) in (0..).zip(buffer.chunks_mut(CHUNK)) {
                if let Some(place) = chunk.first_chunk_mut::<8>() {
                    *place = mix(fresh ^ number).to_le_bytes();
                }
            }
        }
        if let Some(kind) = self.verify {
            for (range, part) in check::parts(block, self.interval_bytes) {
                if let Some(buffer) = buffer.get_mut(range) {
                    check::stamp(buffer, kind, &part, generation);
                }
            }
        }
    }
}

/// Fills a buffer with bytes by chance.
pub(super) fn fill(buffer: &mut [u8], random: &mut Random) {
    let (words, rest) = buffer.as_chunks_mut::<8>();
    for word in words {
        *word = random.bits().to_le_bytes();
    }
    let last = random.bits().to_le_bytes();
    rest.iter_mut().zip(last).for_each(|(place, byte)| *place = byte);
}

/// Fills a buffer with a pattern, over and over.
fn repeat(buffer: &mut [u8], pattern: &[u8]) {
    for place in buffer.chunks_mut(pattern.len().max(1)) {
        place.iter_mut().zip(pattern).for_each(|(to, from)| *to = *from);
    }
}
