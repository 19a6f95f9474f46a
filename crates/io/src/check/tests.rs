//! Every single bit counts, and every kind of mistake has its name.

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
                Fault::Content => assert!(!header, "{kind:?}: bit {bit}"),
                Fault::Header => assert!(header && bit >= 64, "{kind:?}: bit {bit}"),
                Fault::NoHeader => assert!(bit < 64, "{kind:?}: bit {bit}"),
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
    assert_eq!(fault(&buffer, kind, &block(4096, 0), ANY), Err(Fault::Place(8192)));
    assert_eq!(fault(&buffer[..2048], kind, &block(2048, 8192), ANY), Err(Fault::Length(4096)));
    assert_eq!(fault(&buffer, kind, &right, 6..=6), Err(Fault::Generation(5)));
    assert_eq!(fault(&buffer, VerifyKind::Crc64, &right, ANY), Err(Fault::Kind));
    assert_eq!(fault(&[0; 4096], kind, &right, ANY), Err(Fault::NoHeader));
    assert_eq!(fault(&buffer[..50], kind, &right, ANY), Err(Fault::NoHeader));
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
