//! Comparison of contents: by stored checksums if they suffice, else byte by byte while streaming, without storing
//! them.

use super::evidence::{self, Proof, Way};
use super::link;
use super::pieces::{Compared, Contents, READ_BYTES, READS_MAX, file_failed, object, open, stream};
use crate::object::Side;
use crate::object::core::Core;
use crate::object::failed::Failed;
use bytes::Bytes;
use hakobu_core::buffer::AlignedBytes;
use hakobu_core::meter::Phase;
use hakobu_s3::ops::Head;
use hakobu_s3::{Algorithm, Checksum, Hasher, Kind};
use hakobu_sys::{AsFd, OwnedFd, file};
use std::io;
use std::sync::Arc;

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

/// Runs blocking work on another thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Compares the file on `side` with the checksums of the object on the other; `None` if they do not decide.
async fn by_sums(
    core: &Core<'_>,
    what: &Compared<'_>,
    side: Side,
    head: &Head,
) -> Result<Option<bool>, Failed> {
    let size = what.moving.entry.meta.size;
    let ways = evidence::ways(head, size);
    if ways.is_empty() {
        return Ok(None);
    }
    let fd = Arc::new(open(core, what.moving, side, what.strict).map_err(file_failed(side))?);
    for way in ways {
        let fd = Arc::clone(&fd);
        let strict = what.strict;
        core.doing.turn(Phase::Read);
        let result = blocking(move || try_way(&fd, size, &way, strict)).await;
        if let Some(same) = result.map_err(file_failed(side))? {
            return Ok(Some(same));
        }
    }
    Ok(None)
}

/// Reads the file and compares it in one way.
fn try_way(fd: &OwnedFd, size: u64, way: &Way, strict: bool) -> io::Result<Option<bool>> {
    match way {
        Way::Whole(sum) => {
            let same = sum_of(fd, size, sum.algorithm, size)? == *sum;
            // If they differ, a strict caller needs the position.
            Ok((same || !strict).then_some(same))
        }
        Way::Likely(sum) => {
            let same = sum_of(fd, size, sum.algorithm, size)? == *sum;
            Ok((same || !strict).then_some(same))
        }
        Way::Parts(sum, sizes) => {
            for part in sizes {
                if sum_of_parts(fd, size, sum.algorithm, *part)? == *sum {
                    return Ok(Some(true));
                }
            }
            Ok(None)
        }
    }
}

/// Returns the checksum of a file's first `size` bytes.
fn sum_of(fd: &OwnedFd, size: u64, algorithm: Algorithm, part: u64) -> io::Result<Checksum> {
    let mut sums = part_sums(fd, size, algorithm, part)?;
    Ok(sums.pop().unwrap_or_else(|| Checksum::of(algorithm, b"")))
}

/// Returns the checksum of the checksums of a file's parts.
fn sum_of_parts(fd: &OwnedFd, size: u64, algorithm: Algorithm, part: u64) -> io::Result<Checksum> {
    Ok(Checksum::composite(algorithm, &part_sums(fd, size, algorithm, part)?))
}

fn part_sums(
    fd: &OwnedFd,
    size: u64,
    algorithm: Algorithm,
    part: u64,
) -> io::Result<Vec<Checksum>> {
    let mut buffer = AlignedBytes::zeroed(READ_BYTES);
    let mut sums = Vec::new();
    let mut offset = 0;
    while offset < size {
        let end = size.min(offset.saturating_add(part));
        let mut hasher = Hasher::new(algorithm);
        while offset < end {
            let len = usize::try_from(end - offset).unwrap_or(READ_BYTES).min(READ_BYTES);
            let space = &mut buffer[..len];
            let got = file::read_full_at(fd.as_fd(), space, offset)?;
            hasher.update(&space[..got]);
            if got < len {
                // It shrank: the checksum of the rest differs.
                sums.push(hasher.finish());
                return Ok(sums);
            }
            offset += len as u64;
        }
        sums.push(hasher.finish());
    }
    Ok(sums)
}

/// Reads both sides up to the first byte that differs.
async fn by_bytes(core: &Core<'_>, what: &Compared<'_>) -> Result<Contents, Failed> {
    let moving = what.moving;
    let size = moving.entry.meta.size;
    let _room = core.room((READ_BYTES * READS_MAX) as u64).await;
    let objects = (
        object(&moving.pair.source, &moving.entry.name, what.source).map(|mut object| {
            object.version = core.engine.setup.options.version.as_deref();
            object
        }),
        object(&moving.pair.target, &moving.name, what.target),
    );
    let strict = what.strict;
    let mut a = stream(core, moving, Side::Source, objects.0.as_ref(), size, strict)?;
    let mut b = stream(core, moving, Side::Target, objects.1.as_ref(), size, strict)?;
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
        Failed::Request(_, Side::Target, error) => error.kind == Kind::NotFound,
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
            let head = Head { etag, size, ..Head::default() };
            let ways = evidence::ways(&head, size);
            let [way] = ways.as_slice() else { panic!("{ways:?}") };
            assert_eq!(try_way(&file_of(&bytes), size, way, false).unwrap(), Some(true));
            let mut other = bytes.clone();
            other[3 * mib] ^= 1;
            assert_eq!(try_way(&file_of(&other), size, way, false).unwrap(), None);
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
