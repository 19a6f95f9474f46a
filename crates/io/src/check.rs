//! Written blocks that can be told to be right when they are read again (`verify`).
//!
//! Each block begins with a header of [`HEADER_BYTES`]: what it is, how long, where it belongs, in
//! which pass it was written, and a checksum of the rest. The header has a checksum of its own. So a
//! flipped bit, a block in the wrong place, a block that was never written and an old one that was
//! never replaced are told apart.

use crate::job::VerifyKind;
use crate::pattern::Block;
use md5::{Digest, Md5};
use sha2::{Sha256, Sha512};
use std::fmt;
use std::ops::{Range, RangeInclusive};

/// Bytes of the header; blocks must be longer.
///
/// Little endian: 0 magic, 8 kind (u32), 12 length of the block (u32), 16 offset in the file (u64),
/// 24 generation (u64), 32 checksum of what follows the header (up to 32 bytes, the rest zeros), 64
/// CRC-32C of the bytes before it (u32), 68 zeros.
pub const HEADER_BYTES: usize = 72;

const MAGIC: [u8; 8] = *b"hkbvrfy1";
const SEALED: usize = 64;

/// Defect of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockFault {
    /// It has no header: nothing of ours was ever written there, or something else since.
    NoHeader,
    /// Its header was damaged.
    Header,
    /// It was written with another kind of checksum.
    Kind,
    /// It was written as a block of this length.
    Length(u32),
    /// It belongs to this offset.
    Place(u64),
    /// It is of this generation: an earlier or later pass.
    Generation(u64),
    /// Its content differs from the written one.
    Content,
}

/// A block that differs from the written one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongBlock {
    pub block: Block,
    /// Its defect.
    pub fault: BlockFault,
}

impl fmt::Display for WrongBlock {
    /// `block of 4096 bytes at offset 8192: …`; the caller puts the file's name in front.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongBlock { block: Block { bytes, offset, .. }, fault } = self;
        write!(to, "block of {bytes} bytes at offset {offset}: ")?;
        match fault {
            BlockFault::NoHeader => write!(to, "there is no header of verify in it"),
            BlockFault::Header => write!(to, "its header is damaged"),
            BlockFault::Kind => write!(to, "it was written with another kind of checksum"),
            BlockFault::Length(length) => write!(to, "it was written as a block of {length} bytes"),
            BlockFault::Place(place) => write!(to, "it is the block of offset {place}"),
            BlockFault::Generation(found) => write!(to, "it was written in another pass ({found})"),
            BlockFault::Content => write!(to, "its content is not what was written (checksum)"),
        }
    }
}

/// As much of a checksum as the header has room for, with zeros behind.
fn first(sum: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.iter_mut().zip(sum).for_each(|(place, byte)| *place = *byte);
    out
}

/// The number of a kind on disk, and the checksum of what follows the header.
fn sum(kind: VerifyKind, content: &[u8]) -> (u32, [u8; 32]) {
    use crc_fast::CrcAlgorithm::{Crc32Iscsi, Crc32IsoHdlc, Crc64Nvme};
    let short = |algorithm| {
        let mut sum = [0u8; 32];
        if let Some(place) = sum.first_chunk_mut() {
            *place = crc_fast::checksum(algorithm, content).to_le_bytes();
        }
        sum
    };
    match kind {
        VerifyKind::Crc32 => (1, short(Crc32IsoHdlc)),
        VerifyKind::Crc32c => (2, short(Crc32Iscsi)),
        VerifyKind::Crc64 => (3, short(Crc64Nvme)),
        VerifyKind::Sha256 => (4, Sha256::digest(content).into()),
        VerifyKind::Md5 => (5, first(&Md5::digest(content))),
        VerifyKind::Sha512 => (6, first(&Sha512::digest(content))),
        VerifyKind::Xxhash => (7, first(&xxhash_rust::xxh64::xxh64(content, 0).to_le_bytes())),
        VerifyKind::Meta => (8, [0; 32]),
        VerifyKind::Pattern => (9, [0; 32]),
    }
}

/// Writes the header into the first [`HEADER_BYTES`] of a block whose content is ready. `buffer` is
/// the whole block. `generation` is the number of the pass.
///
/// A buffer that is no longer than the header is left alone; jobs with such blocks are refused when
/// their files are laid out.
pub fn stamp(buffer: &mut [u8], kind: VerifyKind, block: &Block, generation: u64) {
    let Some((header, content)) = buffer.split_first_chunk_mut::<HEADER_BYTES>() else { return };
    let (number, sum) = sum(kind, content);
    let mut fields = [0u8; HEADER_BYTES];
    let parts: [&[u8]; 6] = [
        &MAGIC,
        &number.to_le_bytes(),
        &block.bytes.to_le_bytes(),
        &block.offset.to_le_bytes(),
        &generation.to_le_bytes(),
        &sum,
    ];
    let bytes = parts.into_iter().flatten();
    fields.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    let (sealed, seal) = fields.split_at_mut(SEALED);
    let crc = crc_fast::crc32_iscsi(sealed).to_le_bytes();
    seal.iter_mut().zip(crc).for_each(|(place, byte)| *place = byte);
    *header = fields;
}

/// The parts of a block that have headers of their own (`verify_interval`), and where they are in its buffer;
/// the block itself without such an interval.
pub fn parts(
    block: &Block,
    interval_bytes: Option<u32>,
) -> impl Iterator<Item = (Range<usize>, Block)> + use<> {
    let block = *block;
    let each = interval_bytes.unwrap_or(block.bytes).max(1);
    (0..block.bytes.div_ceil(each)).map(move |number| {
        let begin = number * each;
        let bytes = each.min(block.bytes - begin);
        let part = Block { bytes, offset: block.offset + u64::from(begin), ..block };
        (begin as usize..(begin + bytes) as usize, part)
    })
}

/// Looks whether a block holds a pattern, over and over from its beginning; `skips` bytes at the beginning of
/// each of its parts are headers.
///
/// # Errors
/// It holds something else, or `buffer` is not the whole block.
pub fn holds(
    buffer: &[u8],
    pattern: &[u8],
    block: &Block,
    (interval_bytes, skips): (Option<u32>, usize),
) -> Result<(), WrongBlock> {
    let each = interval_bytes.unwrap_or(block.bytes).max(1) as usize;
    let expected = pattern.iter().cycle();
    let mut bytes = buffer.iter().zip(expected).enumerate();
    let is_whole = buffer.len() == block.bytes as usize;
    match is_whole && bytes.all(|(at, (byte, expected))| at % each < skips || byte == expected) {
        true => Ok(()),
        false => Err(WrongBlock { block: *block, fault: BlockFault::Content }),
    }
}

/// Looks whether a block that was read is what was written. `buffer` is the whole block,
/// `generations` the passes that may have written it: `0..=u64::MAX` where that is unknown.
pub fn verify(
    buffer: &[u8],
    kind: VerifyKind,
    block: &Block,
    generations: RangeInclusive<u64>,
) -> Result<(), WrongBlock> {
    let wrong = |fault| Err(WrongBlock { block: *block, fault });
    let Some((header, content)) = buffer.split_first_chunk::<HEADER_BYTES>() else {
        return wrong(BlockFault::NoHeader);
    };
    let number = |at: usize| u32::from_le_bytes(part(header, at));
    let long = |at: usize| u64::from_le_bytes(part(header, at));
    let (sealed, _) = header.split_at(SEALED);
    let sealed = crc_fast::crc32_iscsi(sealed) == number(SEALED);
    let (kind_number, sum) = sum(kind, content);
    wrong(match () {
        () if part::<8>(header, 0) != MAGIC => BlockFault::NoHeader,
        () if !sealed || long(SEALED) >> 32 != 0 => BlockFault::Header,
        () if number(12) != block.bytes => BlockFault::Length(number(12)),
        () if long(16) != block.offset => BlockFault::Place(long(16)),
        () if number(8) != kind_number => BlockFault::Kind,
        () if !generations.contains(&long(24)) => BlockFault::Generation(long(24)),
        () if part::<32>(header, 32) != sum => BlockFault::Content,
        () => return Ok(()),
    })
}

/// So many bytes of the header from `at` on.
fn part<const BYTES: usize>(header: &[u8; HEADER_BYTES], at: usize) -> [u8; BYTES] {
    header.get(at..).and_then(|rest| rest.first_chunk().copied()).unwrap_or([0; BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [VerifyKind; 4] =
        [VerifyKind::Crc32, VerifyKind::Crc32c, VerifyKind::Crc64, VerifyKind::Sha256];
    const ANY: RangeInclusive<u64> = 0..=u64::MAX;

    fn block(bytes: usize, offset: u64) -> Block {
        Block { file: 0, write: true, bytes: bytes as u32, offset }
    }

    fn written(kind: VerifyKind, bytes: usize, offset: u64, generation: u64) -> Vec<u8> {
        let mut buffer: Vec<u8> = (0..bytes).map(|number| (number * 7 % 251) as u8).collect();
        stamp(&mut buffer, kind, &block(bytes, offset), generation);
        buffer
    }

    #[test]
    fn every_flipped_bit_is_found() {
        for kind in KINDS {
            let mut buffer = written(kind, 512, 4096, 3);
            assert_eq!(verify(&buffer, kind, &block(512, 4096), 3..=3), Ok(()));
            for bit in 0..buffer.len() * 8 {
                buffer[bit / 8] ^= 1 << (bit % 8);
                let wrong = verify(&buffer, kind, &block(512, 4096), 3..=3).unwrap_err();
                let header = bit < HEADER_BYTES * 8;
                match wrong.fault {
                    BlockFault::Content => assert!(!header, "{kind:?}: bit {bit}"),
                    BlockFault::Header => assert!(header && bit >= 64, "{kind:?}: bit {bit}"),
                    BlockFault::NoHeader => assert!(bit < 64, "{kind:?}: bit {bit}"),
                    other => panic!("{kind:?}: bit {bit}: {other:?}"),
                }
                buffer[bit / 8] ^= 1 << (bit % 8);
            }
            assert_eq!(verify(&buffer, kind, &block(512, 4096), ANY), Ok(()));
        }
    }

    #[test]
    fn mistakes_are_told_apart() {
        let kind = VerifyKind::Crc32c;
        let buffer = written(kind, 4096, 8192, 5);
        let fault = |buffer: &[u8], kind, block: &Block, generations| {
            verify(buffer, kind, block, generations).map_err(|wrong| wrong.fault)
        };
        let right = block(4096, 8192);
        assert_eq!(fault(&buffer, kind, &right, 5..=6), Ok(()));
        assert_eq!(fault(&buffer, kind, &block(4096, 0), ANY), Err(BlockFault::Place(8192)));
        assert_eq!(
            fault(&buffer[..2048], kind, &block(2048, 8192), ANY),
            Err(BlockFault::Length(4096))
        );
        assert_eq!(fault(&buffer, kind, &right, 6..=6), Err(BlockFault::Generation(5)));
        assert_eq!(fault(&buffer, VerifyKind::Crc64, &right, ANY), Err(BlockFault::Kind));
        assert_eq!(fault(&[0; 4096], kind, &right, ANY), Err(BlockFault::NoHeader));
        assert_eq!(fault(&buffer[..50], kind, &right, ANY), Err(BlockFault::NoHeader));
        let wrong = verify(&[0; 4096], kind, &right, ANY).unwrap_err().to_string();
        let want = "block of 4096 bytes at offset 8192: there is no header of verify in it";
        assert_eq!(wrong, want);
    }

    /// The check values of the algorithms: their checksum of "123456789" (catalogue of parametrised CRC
    /// algorithms; FIPS 180-4's "abc").
    #[test]
    fn checksums_are_those_of_the_standards() {
        let low = |kind| u64::from_le_bytes(*sum(kind, b"123456789").1.first_chunk().unwrap());
        assert_eq!(low(VerifyKind::Crc32), 0xcbf4_3926);
        assert_eq!(low(VerifyKind::Crc32c), 0xe306_9283);
        assert_eq!(low(VerifyKind::Crc64), 0xae8b_1486_0a79_9888);
        let (_, sha) = sum(VerifyKind::Sha256, b"abc");
        assert_eq!(sha[..4], [0xba, 0x78, 0x16, 0xbf]);
    }

    proptest! {
        #[test]
        fn what_is_stamped_verifies_and_keeps_its_content(
            content in prop::collection::vec(any::<u8>(), 73..2000),
            place in any::<u64>(),
            generation in any::<u64>(),
            number in 0usize..4,
            at in any::<prop::sample::Index>(),
            bit in 0u32..8,
        ) {
            let kind = KINDS[number];
            let block = Block { file: 3, write: true, bytes: content.len() as u32, offset: place };
            let mut buffer = content.clone();
            stamp(&mut buffer, kind, &block, generation);
            prop_assert_eq!(&buffer[HEADER_BYTES..], &content[HEADER_BYTES..]);
            prop_assert_eq!(verify(&buffer, kind, &block, generation..=generation), Ok(()));
            let at = at.index(buffer.len());
            buffer[at] ^= 1 << bit;
            prop_assert!(verify(&buffer, kind, &block, ANY).is_err());
        }
    }

    #[test]
    fn parts_of_a_block_have_their_own_places() {
        let block = Block { file: 1, write: true, bytes: 1024, offset: 4096 };
        let found: Vec<_> = parts(&block, Some(512)).collect();
        assert_eq!(found[1], (512..1024, Block { bytes: 512, offset: 4608, ..block }));
        assert_eq!((found.len(), parts(&block, None).count()), (2, 1));
        let mut buffer: Vec<u8> = b"abc".iter().copied().cycle().take(1024).collect();
        assert_eq!(holds(&buffer, b"abc", &block, (None, 0)), Ok(()));
        assert!(holds(&buffer[1..], b"bca", &block, (None, 0)).is_err(), "a part of a block");
        assert!(holds(&[], b"abc", &block, (None, 0)).is_err());
        buffer[513] = 0;
        assert!(holds(&buffer, b"abc", &block, (None, 100)).is_err());
        assert_eq!(holds(&buffer, b"abc", &block, (Some(512), 100)), Ok(()));
    }
}
