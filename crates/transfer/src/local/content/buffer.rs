//! The buffer of a worker.

use hakobu_core::buffer::AlignedBytes;
use std::cell::OnceCell;
use std::ops::{Deref, DerefMut};

/// Bytes that a worker reads at once. Larger buffers exceed the second-level cache.
pub(super) const BUFFER_BYTES: usize = 256 << 10;

/// Has [`BUFFER_BYTES`] unless it is made with another length. Allocated at the first use: workers that only compare
/// metadata need none, and clearing it takes longer than starting them.
#[derive(Default)]
pub(super) struct Buffer(OnceCell<AlignedBytes>);

impl Buffer {
    /// Returns `len` zeroes.
    pub fn zeroed(len: usize) -> Buffer {
        Buffer(OnceCell::from(AlignedBytes::zeroed(len)))
    }
}

fn zeroes() -> AlignedBytes {
    AlignedBytes::zeroed(BUFFER_BYTES)
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.get_or_init(zeroes)
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.get_or_init(zeroes);
        self.0.get_mut().map_or(&mut [], |bytes| bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_its_size_from_the_first_use_on() {
        let (read, mut written) = (Buffer::default(), Buffer::default());
        assert_eq!((read.len(), written.split_at_mut(1).1.len()), (BUFFER_BYTES, BUFFER_BYTES - 1));
        written[7] = 1;
        assert_eq!((written[7], written.len()), (1, BUFFER_BYTES));
        assert_eq!(Buffer::zeroed(5)[..], [0; 5]);
    }
}
