//! Bytes in flight: one budget for all cores, which limits memory; the buffers, which each core reuses; and the pace
//! of a bandwidth limit.

use bytes::Bytes;
use hakobu_core::buffer::AlignedBytes;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Bytes per semaphore permit, so that budgets above 4 GiB fit.
const GRAIN_BYTES: u64 = 1024;

/// A budget of bytes shared by all cores.
pub struct Budget {
    permits: Semaphore,
    bytes_max: u64,
}

impl Budget {
    /// Returns a budget of this many bytes.
    pub fn new(bytes_max: u64) -> Budget {
        let grains = (bytes_max / GRAIN_BYTES).clamp(1, Semaphore::MAX_PERMITS as u64);
        Budget { permits: Semaphore::new(grains as usize), bytes_max: grains * GRAIN_BYTES }
    }

    /// Returns the total, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Waits for `bytes` of room, or for the whole budget if more is requested. Dropping the permit returns it. Never
    /// wait for a second one while holding one.
    pub async fn take(&self, bytes: u64) -> Option<SemaphorePermit<'_>> {
        let wanted = bytes.min(self.bytes_max).div_ceil(GRAIN_BYTES).max(1);
        // The semaphore is never closed; a grain count fits by construction.
        self.permits.acquire_many(u32::try_from(wanted).unwrap_or(u32::MAX)).await.ok()
    }
}

/// Minimum size, in bytes, of a pooled buffer; the allocator keeps smaller ones itself.
const POOLED_BYTES_MIN: usize = 64 << 10;
/// Maximum bytes of unused buffers that one core keeps.
const IDLE_BYTES_MAX: usize = 64 << 20;

thread_local! {
    /// Unused buffers of this core. A buffer whose memory was touched costs nothing; a new one of 500 KB costs 125
    /// page faults, more than hashing it.
    static IDLE: RefCell<Idle> = const { RefCell::new(Idle::new()) };
}

struct Idle {
    buffers: Vec<AlignedBytes>,
    bytes: usize,
    bytes_max: usize,
}

/// Sets how many bytes of unused buffers this core keeps, if `memory_bytes` may be in flight.
pub(super) fn set_idle_bytes_max(memory_bytes: u64) {
    let bytes_max = usize::try_from(memory_bytes / 2).unwrap_or(usize::MAX).min(IDLE_BYTES_MAX);
    IDLE.with_borrow_mut(|idle| idle.bytes_max = bytes_max);
}

/// A buffer of initialised bytes; returned to the core on which it is dropped.
pub(super) struct Buffer {
    bytes: AlignedBytes,
    /// The part that is in use.
    len: usize,
}

impl Buffer {
    /// Returns a buffer of at least `len` bytes with arbitrary content, of which `len` are in use. Take from the
    /// budget first.
    pub fn new(len: usize) -> Buffer {
        if len < POOLED_BYTES_MIN {
            return Buffer { bytes: AlignedBytes::zeroed(len), len };
        }
        let found = IDLE.try_with(|idle| idle.borrow_mut().take(len)).ok().flatten();
        // The kernel provides zeroed memory of this size untouched: nothing is written here.
        let bytes = found.unwrap_or_else(|| AlignedBytes::zeroed(class(len)));
        Buffer { bytes, len }
    }

    /// Uses only the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Converts it to the body of a request. The buffer is returned when the last clone is dropped.
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.bytes.len() >= POOLED_BYTES_MIN {
            let bytes = std::mem::take(&mut self.bytes);
            // When the thread ends, its list is gone: the memory is freed.
            let _ = IDLE.try_with(|idle| idle.borrow_mut().put(bytes));
        }
    }
}

/// Rounds up to a length of pooled buffers: four steps between powers of two, so that at most a fifth of one is never
/// used (and never touched).
fn class(len: usize) -> usize {
    let power = len.next_power_of_two();
    let step = power / 8;
    len.next_multiple_of(step.max(1))
}

impl Idle {
    const fn new() -> Idle {
        Idle { buffers: Vec::new(), bytes: 0, bytes_max: IDLE_BYTES_MAX }
    }

    fn take(&mut self, len: usize) -> Option<AlignedBytes> {
        let wanted = class(len);
        // The latest one first: its memory may still be in the CPU cache.
        let at = self.buffers.iter().rposition(|buffer| buffer.len() == wanted)?;
        self.bytes -= wanted;
        Some(self.buffers.swap_remove(at))
    }

    fn put(&mut self, buffer: AlignedBytes) {
        if buffer.len() > self.bytes_max {
            return;
        }
        self.bytes += buffer.len();
        self.buffers.push(buffer);
        while self.bytes > self.bytes_max {
            // Remove the oldest: sizes that no longer occur must not stay for ever.
            self.bytes -= self.buffers.remove(0).len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_have_their_length() {
        let mut buffer = Buffer::new(500_000);
        buffer.fill(7);
        let at = buffer.as_ptr();
        buffer.truncate(499_999);
        let body = buffer.freeze();
        assert_eq!((body.len(), body.as_ptr()), (499_999, at));
        let clone = body.clone();
        drop(body);
        let other = Buffer::new(500_000);
        assert_ne!(other.as_ptr(), at, "a clone still reads it");
        drop(clone);
        let again = Buffer::new(499_000);
        assert_eq!((again.len(), again.as_ptr()), (499_000, at));
    }

    #[test]
    fn small_buffers_and_empty_ones() {
        assert!(Buffer::new(0).freeze().is_empty());
        let mut buffer = Buffer::new(5);
        buffer.copy_from_slice(b"hello");
        buffer.truncate(4);
        assert_eq!(&buffer.freeze()[..], b"hell");
    }

    #[test]
    fn classes_hold_and_waste_little() {
        for len in [65_536, 65_537, 500_000, 8 << 20, (8 << 20) + 1, 5_000_000_000] {
            let class = class(len);
            assert!(class >= len && class <= len + len / 4 + 1, "{len} {class}");
            assert_eq!(super::class(class), class);
        }
    }

    #[test]
    fn idle_bytes_are_bounded() {
        let mut idle = Idle::new();
        for _ in 0..100 {
            idle.put(AlignedBytes::zeroed(1 << 20));
        }
        idle.put(AlignedBytes::zeroed(IDLE_BYTES_MAX + 1));
        assert_eq!(idle.bytes, IDLE_BYTES_MAX);
        assert_eq!(idle.buffers.iter().map(|buffer| buffer.len()).sum::<usize>(), IDLE_BYTES_MAX);
    }
}
