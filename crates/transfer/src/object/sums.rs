//! Checksums of whole objects: chosen among those stored, combined from those of parts, and computed from files.

use crc_fast::CrcAlgorithm;
use hakobu_s3::ops::Range;
use hakobu_s3::{Algorithm, Checksum, Hasher};
use hakobu_sys::{AsFd, OwnedFd, file};
use std::io;

/// Method of checking a whole object that was received in ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// The combined checksums of the ranges must equal this one.
    Joined(Checksum),
    /// The finished file is read again, because the hash cannot be combined.
    Reread(Checksum),
    /// No comparable checksum is stored.
    None,
}

impl Proof {
    /// Chooses among the stored checksums.
    pub fn of(stored: &[Checksum]) -> Proof {
        match cheapest(stored) {
            Some(sum) if crc(sum.algorithm).is_some() => Proof::Joined(sum.clone()),
            Some(sum) => Proof::Reread(sum.clone()),
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

/// Returns the stored checksum of a full object that is cheapest to compute. Composite ones are ignored: the boundaries
/// of the uploaded parts are unknown.
pub(super) fn cheapest(stored: &[Checksum]) -> Option<&Checksum> {
    stored.iter().filter(|sum| sum.parts == 0).min_by_key(|sum| cost(sum.algorithm))
}

/// Ranks algorithms by cost, the cheapest lowest.
pub(super) fn cost(algorithm: Algorithm) -> Option<usize> {
    Algorithm::ALL.iter().position(|other| *other == algorithm)
}

/// Returns the checksum of the whole from those of all parts in order, each with its bytes; `None` if one is missing or
/// the algorithm cannot combine them.
pub(super) fn joined<'a>(
    parts: impl IntoIterator<Item = (Option<&'a Checksum>, u64)>,
) -> Option<Checksum> {
    let mut whole = None;
    for (sum, bytes) in parts {
        let sum = sum?;
        let kind = crc(sum.algorithm)?;
        let value = number(sum);
        whole = Some(match whole {
            None => (sum.algorithm, value),
            Some((algorithm, before)) => {
                (algorithm, crc_fast::checksum_combine(kind, before, value, bytes))
            }
        });
    }
    let (algorithm, value) = whole?;
    let bytes = value.to_be_bytes();
    let value = bytes.get(bytes.len() - algorithm.value_bytes()..)?.to_vec();
    Some(Checksum { algorithm, value, parts: 0 })
}

/// Returns the value of a checksum of up to eight bytes.
pub(super) fn number(sum: &Checksum) -> u64 {
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

/// Returns the checksum of a range of a file, read in pieces of the buffer's length; `None` if the file is shorter.
///
/// # Errors
/// Those of the system.
pub(super) fn of_range(
    file: &OwnedFd,
    algorithm: Algorithm,
    range: Range,
    buffer: &mut [u8],
) -> io::Result<Option<Checksum>> {
    let mut hasher = Hasher::new(algorithm);
    let mut at = range.start;
    while at < range.end {
        let wanted = usize::try_from(range.end - at).unwrap_or(usize::MAX).min(buffer.len());
        let space = &mut buffer[..wanted];
        if file::read_full_at(file.as_fd(), space, at)? < wanted {
            return Ok(None);
        }
        hasher.update(space);
        at += wanted as u64;
    }
    Ok(Some(hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::super::cut::Cut;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_of_ranges_make_that_of_the_whole(
            bytes in prop::collection::vec(any::<u8>(), 1..3_000), part in 1_u64..500,
        ) {
            let cut = Cut::with(bytes.len() as u64, part);
            for algorithm in [Algorithm::Crc64Nvme, Algorithm::Crc32c, Algorithm::Crc32] {
                let sums: Vec<_> = (1..=cut.count).map(|number| {
                    let Range { start, end } = cut.range(number);
                    (Checksum::of(algorithm, &bytes[start as usize..end as usize]), end - start)
                }).collect();
                let parts = || sums.iter().map(|(sum, bytes)| (Some(sum), *bytes));
                prop_assert_eq!(joined(parts()), Some(Checksum::of(algorithm, &bytes)));
                prop_assert_eq!(joined(parts().chain([(None, 1)])), None);
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
