//! Division of a large object into ranges, and the combination of their checksums; pure.

use super::body::STORED;
use crc_fast::CrcAlgorithm;
use hakobu_s3::ops::Range;
use hakobu_s3::{Algorithm, Checksum};

/// Maximum number of parts; beyond it parts become larger: each costs a request and a line of a record.
const PARTS_MAX: u64 = 10_000;
const MIB: u64 = 1 << 20;

/// An object divided into ranges of equal length, except the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Size of the object in bytes.
    pub size: u64,
    /// Bytes of every range except the last.
    pub part_bytes: u64,
    /// Number of ranges.
    pub count: u32,
}

/// Method of checking the whole object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// The combined checksums of the ranges must equal this one.
    Joined(Checksum),
    /// The finished file is read again, because the hash cannot be combined.
    Reread(Checksum),
    /// No comparable checksum is stored.
    None,
}

impl Cut {
    /// Divides `size` bytes into ranges of about `part_bytes`.
    pub fn new(size: u64, part_bytes: u64) -> Cut {
        let least = size.div_ceil(PARTS_MAX).next_multiple_of(MIB);
        let part_bytes = match size.div_ceil(part_bytes.max(1)) > PARTS_MAX {
            true => least,
            false => part_bytes.max(1),
        };
        Cut::with(size, part_bytes)
    }

    /// Divides into ranges of exactly that length, as an earlier run did.
    pub fn with(size: u64, part_bytes: u64) -> Cut {
        let count = size.div_ceil(part_bytes.max(1));
        Cut { size, part_bytes, count: u32::try_from(count).unwrap_or(u32::MAX) }
    }

    /// Returns the bytes of a range; numbers start at 1.
    pub fn range(&self, number: u32) -> Range {
        let start = u64::from(number.saturating_sub(1)) * self.part_bytes;
        Range { start, end: (start + self.part_bytes).min(self.size) }
    }
}

impl Proof {
    /// Chooses among the stored checksums, the cheapest first. Composite checksums are ignored: the boundaries of the
    /// uploaded parts are unknown.
    pub fn of(stored: &[Checksum]) -> Proof {
        let whole = |algorithm: &Algorithm| {
            stored.iter().find(|sum| sum.algorithm == *algorithm && sum.parts == 0).cloned()
        };
        match STORED.iter().find_map(whole) {
            Some(sum) if crc(sum.algorithm).is_some() => Proof::Joined(sum),
            Some(sum) => Proof::Reread(sum),
            None => Proof::None,
        }
    }

    /// Returns the algorithm for the checksum of each arriving range.
    pub fn of_parts(&self, resume: bool) -> Option<Algorithm> {
        match self {
            Proof::Joined(sum) => Some(sum.algorithm),
            // A later run needs a proof of what it finds.
            _ => resume.then_some(Algorithm::Crc64Nvme),
        }
    }
}

/// Returns the checksum of the whole from those of all ranges in order; `None` if one is missing or the algorithm
/// cannot combine them.
pub(super) fn joined(cut: &Cut, sums: &[Option<Checksum>]) -> Option<Checksum> {
    let algorithm = sums.first()?.as_ref()?.algorithm;
    let kind = crc(algorithm)?;
    let mut whole = 0;
    for (number, sum) in (1..=cut.count).zip(sums) {
        let value = number_of(sum.as_ref()?);
        let Range { start, end } = cut.range(number);
        whole = match number {
            1 => value,
            _ => crc_fast::checksum_combine(kind, whole, value, end - start),
        };
    }
    let bytes = whole.to_be_bytes();
    let value = bytes.get(bytes.len() - algorithm.value_bytes()..)?.to_vec();
    Some(Checksum { algorithm, value, parts: 0 })
}

fn number_of(sum: &Checksum) -> u64 {
    sum.value.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn crc(algorithm: Algorithm) -> Option<CrcAlgorithm> {
    match algorithm {
        Algorithm::Crc64Nvme => Some(CrcAlgorithm::Crc64Nvme),
        Algorithm::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
        Algorithm::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
        Algorithm::Sha256 | Algorithm::Sha1 | Algorithm::Md5 => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_cover_the_object_once(size in 1_u64..1 << 45, part in 1_u64..1 << 30) {
            let cut = Cut::new(size, part);
            prop_assert!(u64::from(cut.count) <= PARTS_MAX.max(1));
            prop_assert_eq!(cut.range(1).start, 0);
            prop_assert_eq!(cut.range(cut.count).end, size);
            for number in [1, cut.count / 2, cut.count] {
                let here = cut.range(number.max(1));
                prop_assert!(here.start < here.end && here.end <= size);
                if number >= 1 && number < cut.count {
                    prop_assert_eq!(cut.range(number + 1).start, here.end);
                }
            }
        }

        #[test]
        fn sums_of_ranges_make_that_of_the_whole(
            bytes in prop::collection::vec(any::<u8>(), 1..3_000), part in 1_u64..500,
        ) {
            let cut = Cut::with(bytes.len() as u64, part);
            for algorithm in [Algorithm::Crc64Nvme, Algorithm::Crc32c, Algorithm::Crc32] {
                let sums: Vec<_> = (1..=cut.count).map(|number| {
                    let Range { start, end } = cut.range(number);
                    Some(Checksum::of(algorithm, &bytes[start as usize..end as usize]))
                }).collect();
                prop_assert_eq!(joined(&cut, &sums), Some(Checksum::of(algorithm, &bytes)));
                let mut short = sums;
                short[0] = None;
                prop_assert_eq!(joined(&cut, &short), None);
            }
        }
    }

    #[test]
    fn the_cheapest_whole_checksum_is_the_proof() {
        let sum = |algorithm, parts| Checksum { parts, ..Checksum::of(algorithm, b"x") };
        let crc32 = sum(Algorithm::Crc32, 0);
        let sha = sum(Algorithm::Sha256, 0);
        let composite = sum(Algorithm::Crc64Nvme, 3);
        assert_eq!(Proof::of(&[]), Proof::None);
        assert_eq!(Proof::of(std::slice::from_ref(&composite)), Proof::None);
        let found = Proof::of(&[sha.clone(), composite.clone(), crc32.clone()]);
        assert_eq!(found, Proof::Joined(crc32));
        assert_eq!(Proof::of(&[composite, sha.clone()]), Proof::Reread(sha));
    }
}
