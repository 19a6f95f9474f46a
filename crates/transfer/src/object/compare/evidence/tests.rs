//! Proofs from checksums and ETags.

use super::*;
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

const A: &str = "d41d8cd98f00b204e9800998ecf8427e";
const B: &str = "0cc175b9c0f1b6a831c399e269772661";

fn head(etag: &str, checksums: &[Checksum]) -> ObjectHead {
    ObjectHead { etag: etag.into(), checksums: checksums.to_vec(), ..ObjectHead::default() }
}

fn kms(etag: &str) -> ObjectHead {
    let mut headers = HeaderMap::new();
    let name = HeaderName::from_static("x-amz-server-side-encryption");
    headers.insert(name, HeaderValue::from_static("aws:kms:dsse"));
    ObjectHead { headers, ..head(etag, &[]) }
}

fn sum(algorithm: Algorithm, byte: u8, parts: u32) -> Checksum {
    Checksum { algorithm, value: vec![byte; 4], parts }
}

#[test]
fn etags_are_md5s_or_not() {
    assert_eq!(etag_sum(A).map(|sum| (sum.value[0], sum.parts)), Some((0xd4, 0)));
    assert_eq!(etag_sum(&format!("{A}-12")).map(|sum| sum.parts), Some(12));
    for bad in [
        "",
        "x",
        &A[1..],
        &format!("{A}-0"),
        &format!("{A}-"),
        &format!("{A}-x"),
        &format!("{A}0"),
        "zz1d8cd98f00b204e9800998ecf8427e",
        "ä41d8cd98f00b204e9800998ecf8427",
        "+41d8cd98f00b204e9800998ecf8427e",
    ] {
        assert_eq!(etag_sum(bad), None, "{bad}");
    }
}

#[test]
fn proofs_between_two_stores() {
    use Algorithm::{Crc32, Crc64Nvme, Sha256};
    let of = |a: &ObjectHead, b: &ObjectHead| {
        assert_eq!(of_stores(a, b), of_stores(b, a));
        of_stores(a, b)
    };
    let (one, two) = (sum(Crc64Nvme, 1, 0), sum(Crc64Nvme, 2, 0));
    assert_eq!(
        of(&head(A, std::slice::from_ref(&one)), &head(B, std::slice::from_ref(&one))),
        Proof::Same
    );
    assert_eq!(of(&head(A, std::slice::from_ref(&one)), &head(A, &[two])), Proof::Different);
    assert_eq!(of(&head(A, &[one]), &head(A, &[sum(Crc32, 1, 0)])), Proof::Same);
    assert_eq!(of(&head(A, &[]), &head(B, &[])), Proof::Doubtful);
    assert_eq!(of(&kms(A), &head(B, &[])), Proof::Unknown);
    assert_eq!(of(&kms(A), &kms(A)), Proof::Same);
    let parts = |etag: &str, n| format!("{etag}-{n}");
    assert_eq!(of(&head(&parts(A, 2), &[]), &head(&parts(A, 2), &[])), Proof::Same);
    assert_eq!(of(&head(&parts(A, 2), &[]), &head(&parts(B, 2), &[])), Proof::Unknown);
    assert_eq!(of(&head(&parts(A, 2), &[]), &head(&parts(A, 3), &[])), Proof::Unknown);
    assert_eq!(of(&head(&parts(A, 2), &[]), &head(A, &[])), Proof::Unknown);
    let cut = |byte, n| head("x", &[sum(Sha256, byte, n)]);
    assert_eq!(of(&cut(1, 3), &cut(1, 3)), Proof::Same);
    assert_eq!(of(&cut(1, 3), &cut(2, 3)), Proof::Unknown);
    assert_eq!(of(&cut(1, 3), &cut(1, 0)), Proof::Unknown);
    assert_eq!(of(&head("x", &[]), &head("x", &[])), Proof::Unknown);
}

#[test]
fn the_surest_and_cheapest_way_comes_first() {
    use Algorithm::{Crc32c, Crc64Nvme, Sha256};
    let full = [sum(Sha256, 1, 0), sum(Crc32c, 1, 0), sum(Crc64Nvme, 1, 5)];
    assert_eq!(way(&head(A, &full), 10), Some(Way::Whole(full[1].clone())));
    assert_eq!(way(&head(A, &[]), 10), Some(Way::Whole(etag_sum(A).unwrap())));
    assert_eq!(way(&kms(A), 10), None);
    let etag = format!("{A}-2");
    let size = 12 * MIB;
    let cut = sum(Crc32c, 1, 2);
    assert_eq!(
        way(&head(&etag, std::slice::from_ref(&cut)), size),
        Some(Way::Parts(cut, part_sizes(size, 2)))
    );
    assert_eq!(
        way(&head(&etag, &[]), size),
        Some(Way::Parts(etag_sum(&etag).unwrap(), vec![8 * MIB, 10 * MIB, 6 * MIB, 7_000_000]))
    );
}

proptest! {
    /// The usual part size of an upload is among those tried, unless more likely ones fill the list.
    #[test]
    fn usual_part_sizes_are_found(size in 1u64..200 << 30, which in 0usize..USUAL_MIB.len()) {
        let part = USUAL_MIB[which] * MIB;
        let parts = size.div_ceil(part);
        prop_assume!(parts <= 10_000);
        let found = part_sizes(size, parts as u32);
        prop_assert!(found.len() <= TRIED_MAX);
        prop_assert!(found.iter().all(|part| size.div_ceil(*part) == parts));
        prop_assert!(parts == 1 || found.contains(&part) || found.len() == TRIED_MAX);
        // From ten parts on few sizes give the same number, so the right one is always tried.
        prop_assert!(parts < 10 || found.contains(&part), "{size} {part} {found:?}");
    }

    /// Sizes that were made to fit 10,000 parts are found.
    #[test]
    fn fitted_part_sizes_are_found(size in 80u64 << 30..5 << 40) {
        let part = size.div_ceil(10_000).next_multiple_of(MIB);
        let parts = size.div_ceil(part) as u32;
        prop_assert!(part_sizes(size, parts).contains(&part));
    }

    #[test]
    fn no_numbers_upset_it(size: u64, parts: u32) {
        for part in part_sizes(size, parts) {
            prop_assert!(part > 0);
        }
    }
}
