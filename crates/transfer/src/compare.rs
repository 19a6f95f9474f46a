//! Proofs of equal contents from stored checksums and ETags, without reading from a store; pure.

use hakobu_s3::ops::{Etag, ObjectHead};
use hakobu_s3::{Algorithm, Checksum};

const MIB: u64 = 1 << 20;

/// Common part sizes of clients, in MiB: aws and boto3 8, rclone 5, s5cmd 50, s3cmd 15, MinIO and hakobu 16, SDKs for
/// Java and Go 5, and usual settings.
const USUAL_MIB: [u64; 22] =
    [8, 5, 16, 50, 15, 10, 32, 64, 100, 128, 20, 25, 6, 12, 24, 40, 48, 200, 250, 256, 512, 1024];
/// Maximum number of part sizes tried: each costs a pass over the file.
const TRIED_MAX: usize = 6;

/// Returns the stored checksum of a full object that is cheapest to compute. Composite ones are ignored: the boundaries
/// of the uploaded parts are unknown.
pub(crate) fn cheapest(stored: &[Checksum]) -> Option<&Checksum> {
    stored.iter().filter(|sum| sum.parts == 0).min_by_key(|sum| cost(sum.algorithm))
}

/// Ranks algorithms by cost, the cheapest lowest.
pub(crate) fn cost(algorithm: Algorithm) -> Option<usize> {
    Algorithm::ALL.iter().position(|other| *other == algorithm)
}

/// Parses an ETag as an MD5, or as an MD5 of MD5s with the number of parts (`…-N`).
pub(crate) fn etag_sum(etag: &str) -> Option<Checksum> {
    let (hex, parts) = match etag.split_once('-') {
        Some((hex, parts)) => (hex, parts.parse().ok().filter(|parts| *parts > 0)?),
        None => (etag, 0),
    };
    let value = Etag::from(hex.to_ascii_lowercase()).md5()?.to_vec();
    Some(Checksum { algorithm: Algorithm::Md5, value, parts })
}

/// Returns whether an ETag may be an MD5: with keys of KMS or of the customer it is not (API reference, Object,
/// "ETag").
fn may_be_md5(head: &ObjectHead) -> bool {
    let by_kms = head.headers.get("x-amz-server-side-encryption");
    !by_kms.is_some_and(|value| value.as_bytes().starts_with(b"aws:kms"))
        && !head.headers.contains_key("x-amz-server-side-encryption-customer-algorithm")
}

/// Result of a comparison without reading contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// They are the same.
    Same,
    /// They are different.
    Different,
    /// Both ETags look like MD5s and differ; not every server uses MD5.
    Doubtful,
    /// The stored data does not decide.
    Unknown,
}

/// Compares the checksums and ETags of two objects of equal size.
pub(crate) fn of_stores(a: &ObjectHead, b: &ObjectHead) -> Proof {
    let mut composite = false;
    for sum in &a.checksums {
        let other = b.checksums.iter().find(|other| other.algorithm == sum.algorithm);
        match other {
            Some(other) if sum.parts == 0 && other.parts == 0 => {
                return if sum.value == other.value { Proof::Same } else { Proof::Different };
            }
            // Equal checksums of checksums with equal part counts prove equal parts. Different ones prove nothing:
            // the parts may be cut differently.
            Some(other) => composite |= sum == other,
            None => {}
        }
    }
    if composite {
        return Proof::Same;
    }
    of_etags(&a.etag, &b.etag, may_be_md5(a) && may_be_md5(b))
}

/// Compares two ETags alone. Equal ones prove equal contents, whatever they are made of, if they have at least as
/// many bits as an MD5.
pub(crate) fn of_etags(a: &str, b: &str, are_md5: bool) -> Proof {
    match (etag_sum(a), etag_sum(b)) {
        (Some(a), Some(b)) if a == b => Proof::Same,
        (Some(a), Some(b)) if are_md5 && a.parts == 0 && b.parts == 0 => Proof::Doubtful,
        _ => Proof::Unknown,
    }
}

/// A way to compare a file with the stored data of an object of the same size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ComparisonMethod {
    /// The checksum of all bytes decides. An ETag that should be their MD5 counts as one: an equal one proves equality,
    /// a different one makes it unlikely.
    Whole(Checksum),
    /// A checksum of checksums of parts: equality with one of these part sizes proves equal contents. A different one
    /// proves nothing.
    Parts(Checksum, Vec<u64>),
}

/// Returns the cheapest and surest way to compare a file of `size` bytes with an object, if there is one.
pub(crate) fn way(head: &ObjectHead, size: u64) -> Option<ComparisonMethod> {
    if let Some(sum) = cheapest(&head.checksums) {
        return Some(ComparisonMethod::Whole(sum.clone()));
    }
    let etag = etag_sum(&head.etag).filter(|_| may_be_md5(head));
    if let Some(sum) = etag.clone().filter(|sum| sum.parts == 0) {
        return Some(ComparisonMethod::Whole(sum));
    }
    // One is enough: all are made of the same parts.
    let sum = head.checksums.iter().chain(&etag).min_by_key(|sum| cost(sum.algorithm))?;
    let sizes = part_sizes(size, sum.parts);
    (!sizes.is_empty()).then(|| ComparisonMethod::Parts(sum.clone(), sizes))
}

/// Returns the possible part sizes of an upload of `size` bytes in `parts` parts, the most likely first: all parts
/// except the last have the same size.
pub(crate) fn part_sizes(size: u64, parts: u32) -> Vec<u64> {
    let parts = u64::from(parts);
    if parts == 0 || size == 0 {
        return Vec::new();
    }
    if parts == 1 {
        return vec![size];
    }
    let least = size.div_ceil(parts);
    let usual = USUAL_MIB.iter().map(|mib| mib * MIB);
    // Clients that fit 10,000 parts round up to MiB, double, or do not round.
    let fitted = [
        least.checked_next_multiple_of(MIB),
        Some(least),
        least.checked_next_multiple_of(5 * MIB),
        least.checked_next_power_of_two(),
        least.checked_next_multiple_of(1_000_000),
    ];
    let mut sizes = Vec::new();
    for part in usual.chain(fitted.into_iter().flatten()) {
        if part > 0 && size.div_ceil(part) == parts && !sizes.contains(&part) {
            sizes.push(part);
        }
    }
    sizes.truncate(TRIED_MAX);
    sizes
}

#[cfg(test)]
mod tests {
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
        assert_eq!(way(&head(A, &full), 10), Some(ComparisonMethod::Whole(full[1].clone())));
        assert_eq!(way(&head(A, &[]), 10), Some(ComparisonMethod::Whole(etag_sum(A).unwrap())));
        assert_eq!(way(&kms(A), 10), None);
        let etag = format!("{A}-2");
        let size = 12 * MIB;
        let cut = sum(Crc32c, 1, 2);
        assert_eq!(
            way(&head(&etag, std::slice::from_ref(&cut)), size),
            Some(ComparisonMethod::Parts(cut, part_sizes(size, 2)))
        );
        assert_eq!(
            way(&head(&etag, &[]), size),
            Some(ComparisonMethod::Parts(
                etag_sum(&etag).unwrap(),
                vec![8 * MIB, 10 * MIB, 6 * MIB, 7_000_000]
            ))
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
}
