//! What stored checksums and ETags prove about contents without reading them from a store; pure.

use crate::object::relay::cost;
use crate::s3::ops::Head;
use crate::s3::{Algorithm, Checksum};

const MIB: u64 = 1 << 20;

/// Part sizes that clients use unless told otherwise, in MiB: aws and boto3 8, rclone 5, s5cmd 50,
/// s3cmd 15, MinIO and we 16, SDKs for Java and Go 5, and what people set.
const USUAL_MIB: [u64; 22] =
    [8, 5, 16, 50, 15, 10, 32, 64, 100, 128, 20, 25, 6, 12, 24, 40, 48, 200, 250, 256, 512, 1024];
/// The most part sizes that are tried: each costs a pass over the file.
const TRIED_MAX: usize = 6;

/// An ETag in the form of an MD5, or of an MD5 of MD5s with the number of parts (`…-N`).
pub(super) fn etag_sum(etag: &str) -> Option<Checksum> {
    let (hex, parts) = match etag.split_once('-') {
        Some((hex, parts)) => (hex, parts.parse().ok().filter(|parts| *parts > 0)?),
        None => (etag, 0),
    };
    if hex.len() != 32 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    let value = (0..32).step_by(2).map(byte).collect::<Option<Vec<_>>>()?;
    Some(Checksum { algorithm: Algorithm::Md5, value, parts })
}

/// Whether an ETag may be an MD5 at all: with keys of KMS or of the customer it is none (API
/// reference, Object, "ETag").
fn may_be_md5(head: &Head) -> bool {
    let by_kms = head.headers.get("x-amz-server-side-encryption");
    !by_kms.is_some_and(|value| value.as_bytes().starts_with(b"aws:kms"))
        && !head.headers.contains_key("x-amz-server-side-encryption-customer-algorithm")
}

/// What is known without looking at contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// They are the same.
    Same,
    /// They are different.
    Different,
    /// Both ETags look like MD5s and differ; not every server keeps to that.
    Doubtful,
    /// Nothing that is stored can tell.
    Unknown,
}

/// Compares what two stores know of objects of equal size.
pub(super) fn of_stores(a: &Head, b: &Head) -> Proof {
    let mut composite = false;
    for sum in &a.checksums {
        let other = b.checksums.iter().find(|other| other.algorithm == sum.algorithm);
        match other {
            Some(other) if sum.parts == 0 && other.parts == 0 => {
                return if sum.value == other.value { Proof::Same } else { Proof::Different };
            }
            // The same checksum of checksums of as many parts: the parts are the same, too.
            // Another one says nothing: the parts may be cut elsewhere.
            Some(other) => composite |= sum == other,
            None => {}
        }
    }
    if composite {
        return Proof::Same;
    }
    of_etags(&a.etag, &b.etag, may_be_md5(a) && may_be_md5(b))
}

/// Compares two ETags alone. Equal ones prove equal contents whatever they are made of, as long as
/// they have as many bits as an MD5.
pub(super) fn of_etags(a: &str, b: &str, are_md5: bool) -> Proof {
    match (etag_sum(a), etag_sum(b)) {
        (Some(a), Some(b)) if a == b => Proof::Same,
        (Some(a), Some(b)) if are_md5 && a.parts == 0 && b.parts == 0 => Proof::Doubtful,
        _ => Proof::Unknown,
    }
}

/// A way to compare a file with what a store knows of an object of the same size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The checksum of all bytes decides.
    Whole(Checksum),
    /// An ETag that should be the MD5 of all bytes: the same one proves it, another one is likely
    /// to mean other contents.
    Likely(Checksum),
    /// A checksum of checksums of parts: the same one, with one of these part sizes, proves it.
    /// Another one says nothing.
    Parts(Checksum, Vec<u64>),
}

/// The ways to compare a file of `size` bytes with an object, the cheapest and surest first.
pub(super) fn ways(head: &Head, size: u64) -> Vec<Way> {
    let whole = head.checksums.iter().filter(|sum| sum.parts == 0);
    if let Some(sum) = whole.min_by_key(|sum| cost(sum.algorithm)) {
        return vec![Way::Whole(sum.clone())];
    }
    let mut ways = Vec::new();
    let etag = etag_sum(&head.etag).filter(|_| may_be_md5(head));
    if let Some(sum) = etag.clone().filter(|sum| sum.parts == 0) {
        ways.push(Way::Likely(sum));
        return ways;
    }
    let mut composite: Vec<_> = head.checksums.iter().chain(&etag).collect();
    composite.sort_by_key(|sum| cost(sum.algorithm));
    // One of them is enough: all are made of the same parts.
    if let Some(sum) = composite.first() {
        let sizes = part_sizes(size, sum.parts);
        if !sizes.is_empty() {
            ways.push(Way::Parts((*sum).clone(), sizes));
        }
    }
    ways
}

/// Part sizes that an upload of `size` bytes in so many parts may have had, the likely ones first:
/// all parts but the last have the same size.
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
    // Clients that fit 10,000 parts round up to MiB, double, or do not round at all.
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
