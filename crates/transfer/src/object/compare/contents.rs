//! Comparison of contents: by stored checksums if they suffice, else byte by byte while streaming, without storing
//! them.

use super::evidence::{self, Proof, Way};
use super::link;
use super::pieces::{Compared, Contents, READ_BYTES, READS_MAX, file_failed, object, open, stream};
use crate::object::Side;
use crate::object::core::Core;
use crate::object::cut::Cut;
use crate::object::failed::Failed;
use crate::object::helper::blocking;
use crate::object::sums::of_range;
use bytes::Bytes;
use hakobu_core::buffer::AlignedBytes;
use hakobu_core::meter::Phase;
use hakobu_s3::ops::ObjectHead;
use hakobu_s3::{Algorithm, Checksum, ErrorKind};
use hakobu_sys::OwnedFd;
use std::io;

/// Compares the contents of two entries of equal size.
///
/// # Errors
/// The side that could not be read, and the reason.
pub(super) async fn compare(core: &Core<'_>, what: &Compared<'_>) -> Result<Contents, Failed> {
    let size = what.moving.entry.meta.size;
    if size == 0 {
        return Ok(Contents::Same);
    }
    if let Some(side) = link::side(what.moving) {
        return link::compare(core, what, side).await;
    }
    let known = match (what.source, what.target) {
        (Some(source), Some(target)) => match evidence::of_stores(source, target) {
            Proof::Same => Some(true),
            Proof::Different if what.strict => None,
            Proof::Different => Some(false),
            Proof::Doubtful => (!what.strict).then_some(false),
            Proof::Unknown => None,
        },
        (Some(head), None) => by_sums(core, what, Side::Target, head).await?,
        (None, Some(head)) => by_sums(core, what, Side::Source, head).await?,
        (None, None) => None,
    };
    match known {
        Some(true) => Ok(Contents::Same),
        Some(false) => Ok(Contents::Differ(None)),
        None => by_bytes(core, what).await,
    }
}

/// Compares the file on `side` with the checksums of the object on the other; `None` if they do not decide.
async fn by_sums(
    core: &Core<'_>,
    what: &Compared<'_>,
    side: Side,
    head: &ObjectHead,
) -> Result<Option<bool>, Failed> {
    let (size, strict) = (what.moving.entry.meta.size, what.strict);
    let Some(way) = evidence::way(head, size) else { return Ok(None) };
    let fd = open(core, what, side).map_err(file_failed(side))?;
    core.doing.turn(Phase::Read);
    let result = blocking(move || try_way(&fd, size, &way, strict)).await;
    result.map_err(file_failed(side))
}

/// Reads the file and compares it in one way.
fn try_way(fd: &OwnedFd, size: u64, way: &Way, strict: bool) -> io::Result<Option<bool>> {
    match way {
        Way::Whole(sum) => {
            let sums = part_sums(fd, size, sum.algorithm, size)?;
            let same = sums.is_some_and(|sums| sums.first() == Some(sum));
            // If they differ, a strict caller needs the position.
            Ok((same || !strict).then_some(same))
        }
        Way::Parts(sum, sizes) => {
            for part in sizes {
                let sums = part_sums(fd, size, sum.algorithm, *part)?;
                if sums.is_some_and(|sums| Checksum::composite(sum.algorithm, &sums) == *sum) {
                    return Ok(Some(true));
                }
            }
            Ok(None)
        }
    }
}

/// Returns the checksums of the parts of a file's first `size` bytes; `None` if it is shorter.
fn part_sums(
    fd: &OwnedFd,
    size: u64,
    algorithm: Algorithm,
    part: u64,
) -> io::Result<Option<Vec<Checksum>>> {
    let (cut, mut buffer) = (Cut::with(size, part), AlignedBytes::zeroed(READ_BYTES));
    let parts = 1..=cut.count;
    parts.map(|number| of_range(fd, algorithm, cut.range(number), &mut buffer)).collect()
}

/// Reads both sides up to the first byte that differs.
async fn by_bytes(core: &Core<'_>, what: &Compared<'_>) -> Result<Contents, Failed> {
    let size = what.moving.entry.meta.size;
    let _room = core.room((READ_BYTES * READS_MAX) as u64).await;
    let source = object(core, what, Side::Source);
    let target = object(core, what, Side::Target);
    let mut a = stream(core, what, Side::Source, source.as_ref(), size)?;
    let mut b = stream(core, what, Side::Target, target.as_ref(), size)?;
    let (mut left, mut right) = (Bytes::new(), Bytes::new());
    let mut offset = 0;
    loop {
        if left.is_empty() {
            left = a.next(core, Side::Source).await?.unwrap_or_default();
        }
        if right.is_empty() {
            right = b.next(core, Side::Target).await?.unwrap_or_default();
        }
        let len = left.len().min(right.len());
        if len == 0 {
            let ended = left.is_empty() && right.is_empty();
            return Ok(if ended && offset == size {
                Contents::Same
            } else {
                Contents::Differ(Some(offset))
            });
        }
        let (x, y) = (left.split_to(len), right.split_to(len));
        if x != y {
            let same = x.iter().zip(y.iter()).take_while(|(a, b)| a == b).count();
            return Ok(Contents::Differ(Some(offset + same as u64)));
        }
        offset += len as u64;
    }
}

/// Returns whether a target no longer exists.
pub(super) fn is_gone(failed: &Failed) -> bool {
    match failed {
        Failed::Request(_, Side::Target, error) => error.kind == ErrorKind::NotFound,
        Failed::File(_, Side::Target, error) => error.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_s3::Algorithm;
    use std::io::Write;

    fn file_of(bytes: &[u8]) -> OwnedFd {
        let name = format!("hakobu-contents-{}-{}", std::process::id(), fastrand::u64(..));
        let path = std::env::temp_dir().join(name);
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(bytes).unwrap();
        drop(file);
        let fd = std::fs::File::open(&path).unwrap().into();
        std::fs::remove_file(&path).unwrap();
        fd
    }

    /// A file is found equal to an object of which only the ETag of its parts is known, and a modified file is not.
    #[test]
    fn parts_are_inferred_from_an_etag() {
        let mib = 1 << 20;
        let bytes: Vec<u8> = (0..11 * mib).map(|at: usize| (at / 7) as u8).collect();
        let size = bytes.len() as u64;
        for part in [5 * mib, 8 * mib] {
            let sums: Vec<_> =
                bytes.chunks(part).map(|part| Checksum::of(Algorithm::Md5, part)).collect();
            let etag = Checksum::composite(Algorithm::Md5, &sums).etag().unwrap();
            let head = ObjectHead { etag, size, ..ObjectHead::default() };
            let way = evidence::way(&head, size).unwrap();
            assert_eq!(try_way(&file_of(&bytes), size, &way, false).unwrap(), Some(true));
            let mut other = bytes.clone();
            other[3 * mib] ^= 1;
            assert_eq!(try_way(&file_of(&other), size, &way, false).unwrap(), None);
        }
    }

    #[test]
    fn a_whole_checksum_decides() {
        let bytes = vec![7; 600_000];
        let sum = Checksum::of(Algorithm::Crc64Nvme, &bytes);
        let way = Way::Whole(sum);
        let of = |bytes: &[u8], strict| try_way(&file_of(bytes), 600_000, &way, strict).unwrap();
        assert_eq!(of(&bytes, false), Some(true));
        assert_eq!(of(&bytes, true), Some(true));
        let short = &bytes[..599_999];
        assert_eq!((of(short, false), of(short, true)), (Some(false), None));
    }
}
