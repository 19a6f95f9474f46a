//! Content of the null server's objects: the prefix of an infinite sequence. Byte i is `PATTERN[i % PERIOD]`;
//! the period is prime, so that blocks at wrong offsets are detected.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, checksum, checksum_combine};
use std::io::IoSlice;

/// Period in bytes: just below 256 KiB, to fit a core's cache.
pub const PERIOD: usize = 262_139;

/// Most slices per write.
const SLICES_MAX: usize = 16;

/// The sequence.
pub struct Payload {
    pattern: Vec<u8>,
}

impl Payload {
    /// Generates the sequence from xorshift64 (Marsaglia 2003), seed 1, lowest byte of each number.
    pub fn new() -> Payload {
        let mut state = 1u64;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        Payload { pattern: std::iter::repeat_with(next).take(PERIOD).collect() }
    }

    /// Up to `bytes` bytes at offset `from`, as slices for one write.
    pub fn slices(&self, from: u64, bytes: u64) -> impl Iterator<Item = IoSlice<'_>> {
        self.parts(from, bytes).map(IoSlice::new).take(SLICES_MAX)
    }

    /// `bytes` bytes at offset `from`, in pieces.
    pub fn parts(&self, from: u64, bytes: u64) -> impl Iterator<Item = &[u8]> {
        let (mut at, mut left) = ((from % PERIOD as u64) as usize, bytes);
        std::iter::from_fn(move || {
            let rest = self.pattern.get(at..)?;
            let rest = &rest[..rest.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            if rest.is_empty() {
                return None;
            }
            left -= rest.len() as u64;
            at = (at + rest.len()) % PERIOD;
            Some(rest)
        })
    }

    /// CRC-64/NVME of the first `bytes` bytes in the form of `x-amz-checksum-crc64nvme`. The cost is
    /// logarithmic in the size: checksums of equal pieces are combined.
    pub fn crc64nvme(&self, bytes: u64) -> String {
        const KIND: CrcAlgorithm = CrcAlgorithm::Crc64Nvme;
        let (mut periods, rest) = (bytes / PERIOD as u64, (bytes % PERIOD as u64) as usize);
        // Whole periods by repeated doubling: `block` is the checksum of 1, 2, 4, … periods.
        let (mut sum, mut length) = (checksum(KIND, b""), 0u64);
        let (mut block, mut block_length) = (checksum(KIND, &self.pattern), PERIOD as u64);
        while periods > 0 {
            if periods & 1 == 1 {
                sum = checksum_combine(KIND, block, sum, length);
                length += block_length;
            }
            periods >>= 1;
            if periods > 0 {
                block = checksum_combine(KIND, block, block, block_length);
                block_length *= 2;
            }
        }
        let tail = self.pattern.get(..rest).unwrap_or_default();
        sum = checksum_combine(KIND, sum, checksum(KIND, tail), rest as u64);
        STANDARD.encode(sum.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(payload: &Payload, from: u64, count: u64) -> Vec<u8> {
        payload.parts(from, count).collect::<Vec<_>>().concat()
    }

    #[test]
    fn a_range_is_a_part_of_the_whole() {
        let payload = Payload::new();
        let whole = bytes(&payload, 0, 3 * PERIOD as u64 + 100);
        for (from, count) in [(0, 0), (0, 1), (5, PERIOD as u64), (PERIOD as u64 - 1, 2), (7, 9)] {
            let part = bytes(&payload, from, count);
            assert_eq!(part, whole[from as usize..(from + count) as usize], "{from}+{count}");
        }
        let first: u64 = payload.slices(3, u64::MAX).map(|slice| slice.len() as u64).sum();
        assert_eq!(first, 16 * PERIOD as u64 - 3);
    }

    #[test]
    fn checksums_of_pieces_are_those_of_the_whole() {
        let payload = Payload::new();
        let period = PERIOD as u64;
        for count in [0, 1, 4096, period - 1, period, period + 1, 7 * period + 12_345] {
            let plain = checksum(CrcAlgorithm::Crc64Nvme, &bytes(&payload, 0, count));
            assert_eq!(payload.crc64nvme(count), STANDARD.encode(plain.to_be_bytes()), "{count}");
        }
    }
}
