//! The buffers of engines whose blocks in flight the kernel does not touch.

use hakobu_sys::memory::Aligned;
use std::io::Result;
use std::ops::Range;

/// One buffer for each slot, in one mapping.
#[derive(Debug)]
pub(super) struct Buffers {
    memory: Aligned,
    bytes: usize,
}

impl Buffers {
    /// Makes `depth` buffers of this many bytes, at least one of each.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn new(depth: u32, bytes: usize) -> Result<Buffers> {
        let bytes = bytes.max(1);
        let memory = Aligned::new(bytes.saturating_mul(depth.max(1) as usize))?;
        Ok(Buffers { memory, bytes })
    }

    /// Returns the buffer of a slot; empty if there is no such slot.
    #[inline(always)]
    pub(super) fn of(&mut self, slot: usize) -> &mut [u8] {
        self.part(slot, 0..self.bytes)
    }

    /// Returns a part of the buffer of a slot; empty if it is not inside.
    #[inline(always)]
    pub(super) fn part(&mut self, slot: usize, part: Range<usize>) -> &mut [u8] {
        let begin = slot.saturating_mul(self.bytes);
        let all = begin.saturating_add(part.start)..begin.saturating_add(part.end);
        match self.holds(part.end) {
            true => self.memory.get_mut(all).unwrap_or_default(),
            false => &mut [],
        }
    }

    /// Returns whether a part that ends there is inside of a buffer.
    #[inline(always)]
    pub(super) fn holds(&self, end: usize) -> bool {
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
