//! Proofs of equal contents from stored checksums and ETags, without reading from a store; pure.

use crate::object::sums::{cheapest, cost};
use hakobu_s3::ops::{Etag, ObjectHead};
use hakobu_s3::{Algorithm, Checksum};

const MIB: u64 = 1 << 20;

/// Common part sizes of clients, in MiB: aws and boto3 8, rclone 5, s5cmd 50, s3cmd 15, MinIO and hakobu 16, SDKs for
/// Java and Go 5, and usual settings.
const USUAL_MIB: [u64; 22] =
    [8, 5, 16, 50, 15, 10, 32, 64, 100, 128, 20, 25, 6, 12, 24, 40, 48, 200, 250, 256, 512, 1024];
/// Maximum number of part sizes tried: each costs a pass over the file.
const TRIED_MAX: usize = 6;

/// Parses an ETag as an MD5, or as an MD5 of MD5s with the number of parts (`…-N`).
pub(super) fn etag_sum(etag: &str) -> Option<Checksum> {
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
pub(super) enum Proof {
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
pub(super) fn of_stores(a: &ObjectHead, b: &ObjectHead) -> Proof {
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
pub(super) fn of_etags(a: &str, b: &str, are_md5: bool) -> Proof {
    match (etag_sum(a), etag_sum(b)) {
        (Some(a), Some(b)) if a == b => Proof::Same,
        (Some(a), Some(b)) if are_md5 && a.parts == 0 && b.parts == 0 => Proof::Doubtful,
        _ => Proof::Unknown,
    }
}

/// A way to compare a file with the stored data of an object of the same size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The checksum of all bytes decides. An ETag that should be their MD5 counts as one: an equal one proves equality,
    /// a different one makes it unlikely.
    Whole(Checksum),
    /// A checksum of checksums of parts: equality with one of these part sizes proves equal contents. A different one
    /// proves nothing.
    Parts(Checksum, Vec<u64>),
}

/// Returns the cheapest and surest way to compare a file of `size` bytes with an object, if there is one.
pub(super) fn way(head: &ObjectHead, size: u64) -> Option<Way> {
    if let Some(sum) = cheapest(&head.checksums) {
        return Some(Way::Whole(sum.clone()));
    }
    let etag = etag_sum(&head.etag).filter(|_| may_be_md5(head));
    if let Some(sum) = etag.clone().filter(|sum| sum.parts == 0) {
        return Some(Way::Whole(sum));
    }
    // One is enough: all are made of the same parts.
    let sum = head.checksums.iter().chain(&etag).min_by_key(|sum| cost(sum.algorithm))?;
    let sizes = part_sizes(size, sum.parts);
    (!sizes.is_empty()).then(|| Way::Parts(sum.clone(), sizes))
}

/// Returns the possible part sizes of an upload of `size` bytes in `parts` parts, the most likely first: all parts
/// except the last have the same size.
pub(super) fn part_sizes(size: u64, parts: u32) -> Vec<u64> {
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
mod tests;
