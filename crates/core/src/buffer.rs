//! Memory that file content passes through.

use std::ops::{Deref, DerefMut, Range};

/// Bytes in a cache line.
const LINE_BYTES: usize = 64;

/// Returns whether `a` and `b` are the same bytes.
///
/// Sixteen bytes at a time on every target, where `a == b` calls memcmp(3), which in musl reads byte by byte.
pub fn is_same(a: &[u8], b: &[u8]) -> bool {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks(), b.as_chunks());
    let number = |bytes: &[u8; 16]| u128::from_ne_bytes(*bytes);
    a.len() == b.len() && a_rest == b_rest && a.iter().zip(b).all(|(a, b)| number(a) == number(b))
}

/// Initialised bytes, the first of which begins a cache line.
///
/// An allocator's large blocks begin 16 bytes after a page. The kernel copies between its own pages and such a block
/// up to twice as slowly as where both begin alike (`rep movs` on x86).
#[derive(Debug, Default)]
pub struct AlignedBytes {
    block: Vec<u8>,
    start: usize,
}

impl AlignedBytes {
    /// Returns `len` zeroes. The kernel provides large blocks zeroed and untouched: nothing is written here.
    pub fn zeroed(len: usize) -> AlignedBytes {
        let block = vec![0; len + LINE_BYTES - 1];
        let start = block.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES - 1);
        AlignedBytes { block, start }
    }

    /// Returns where the bytes are in the block.
    fn range(&self) -> Range<usize> {
        self.start..self.start + self.block.len().saturating_sub(LINE_BYTES - 1)
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.block.get(self.range()).unwrap_or_default()
    }
}

impl DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        let range = self.range();
        self.block.get_mut(range).unwrap_or_default()
    }
}

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_other_byte_or_length_is_seen_anywhere() {
        for len in [0, 1, 63, 64, 65, 200, 4096] {
            let a: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            assert!(is_same(&a, &a.clone()));
            assert!(!is_same(&a, &[&a[..], &[0]].concat()));
            for at in 0..len {
                let mut b = a.clone();
                b[at] ^= 1;
                assert!(!is_same(&a, &b), "{at} of {len}");
            }
        }
    }

    #[test]
    fn bytes_begin_a_cache_line_and_have_their_length() {
        for len in [0, 1, 63, 64, 65, 4096, 1 << 20] {
            let mut bytes = AlignedBytes::zeroed(len);
            assert_eq!((bytes.len(), bytes.as_ptr() as usize % LINE_BYTES), (len, 0));
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(7);
            assert_eq!(bytes.as_ref(), vec![7; len]);
        }
        assert!(AlignedBytes::default().is_empty());
    }
}
