//! Buffers for asynchronous I/O: each one belongs to the caller or is in flight, and memory in flight is
//! never freed.

use crate::memory::Aligned;
use std::io::Result;
use std::mem::ManuallyDrop;

/// Page-aligned buffers of one size, by number.
#[derive(Debug)]
pub(crate) struct Slots {
    memory: ManuallyDrop<Aligned>,
    /// Bytes per buffer, and distance between buffers.
    bytes: usize,
    stride: usize,
    in_flight: Vec<bool>,
    flying: usize,
}

impl Slots {
    /// Allocates `count` buffers of `bytes` bytes.
    pub(crate) fn new(count: usize, bytes: usize) -> Result<Slots> {
        let stride = bytes.max(1).next_multiple_of(rustix::param::page_size());
        let all = stride.saturating_mul(count.max(1));
        let memory = ManuallyDrop::new(Aligned::new(all)?);
        Ok(Slots { memory, bytes, stride, in_flight: vec![false; count], flying: 0 })
    }

    /// Number in flight.
    pub(crate) fn flying(&self) -> usize {
        self.flying
    }

    /// A buffer that is not in flight; `None` otherwise.
    #[inline(always)]
    pub(crate) fn buffer(&mut self, slot: usize) -> Option<&mut [u8]> {
        if self.in_flight.get(slot) != Some(&false) {
            return None;
        }
        // SAFETY: slot is below the count, so the range is inside the memory, which lives as long as self; it
        // overlaps no other slot, this slot is not in flight, and the returned reference borrows self.
        Some(unsafe {
            let start = self.memory.as_ptr().add(slot * self.stride);
            std::slice::from_raw_parts_mut(start, self.bytes)
        })
    }

    /// Marks a buffer as in flight and returns the address of a part of it. `None` if it is already in
    /// flight, or the part is out of range.
    #[inline(always)]
    pub(crate) fn send(&mut self, slot: usize, begin: usize, bytes: usize) -> Option<*mut u8> {
        let fits = begin.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        let state = self.in_flight.get_mut(slot).filter(|state| !**state && fits)?;
        *state = true;
        self.flying += 1;
        // SAFETY: the address is inside the memory, see `buffer`.
        Some(unsafe { self.memory.as_ptr().add(slot * self.stride + begin) })
    }

    /// Marks a buffer as no longer in flight. False if it was not.
    #[inline(always)]
    pub(crate) fn complete(&mut self, slot: usize) -> bool {
        match self.in_flight.get_mut(slot) {
            Some(state) if *state => {
                *state = false;
                self.flying -= 1;
                true
            }
            _ => false,
        }
    }

    /// Marks all buffers as no longer in flight.
    pub(crate) fn complete_all(&mut self) {
        self.in_flight.fill(false);
        self.flying = 0;
    }

    /// The buffers for registration.
    pub(crate) fn vectors(&self) -> Vec<libc::iovec> {
        let start = |slot: usize| {
            // SAFETY: as in `send`.
            unsafe { self.memory.as_ptr().add(slot * self.stride) }
        };
        let vector = |slot| libc::iovec { iov_base: start(slot).cast(), iov_len: self.bytes };
        (0..self.in_flight.len()).map(vector).collect()
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // Memory that may still be written to is leaked, never freed.
        if self.flying == 0 {
            // SAFETY: the memory is not used after this; drop runs once.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_is_out_of_reach() {
        let mut slots = Slots::new(3, 5000).unwrap();
        for slot in 0..3 {
            slots.buffer(slot).unwrap().fill(slot as u8 + 1);
        }
        assert!(slots.buffer(3).is_none());
        assert!(slots.send(1, 4000, 1001).is_none() && slots.send(1, usize::MAX, 2).is_none());
        assert!(slots.send(3, 0, 1).is_none());
        assert!(slots.send(1, 4000, 1000).is_some());
        assert!(slots.send(1, 0, 1).is_none() && slots.buffer(1).is_none());
        assert_eq!(slots.flying(), 1);
        assert_eq!(slots.buffer(0).unwrap(), [1; 5000]);
        assert!(slots.complete(1) && !slots.complete(1) && !slots.complete(9));
        assert_eq!(slots.buffer(1).unwrap(), [2; 5000]);
        let vectors = slots.vectors();
        assert_eq!(vectors.len(), 3);
        assert!(vectors.iter().all(|vector| {
            vector.iov_len == 5000 && (vector.iov_base as usize).is_multiple_of(4096)
        }));
        assert!(Slots::new(usize::MAX, 5000).is_err());
    }
}
