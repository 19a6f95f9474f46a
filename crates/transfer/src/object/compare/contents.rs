//! Comparing contents: by what stores know of their objects where that is enough, else byte by
//! byte as they come, without keeping them.

use super::evidence::{self, Proof, Way};
use super::link;
use crate::error::Operation;
use crate::meter::Phase;
use crate::object::core::Core;
use crate::object::moving::{Failed, Moving};
use crate::object::reader::{Object, Reader};
use crate::object::{Root, Side};
use crate::policy::Symlinks;
use crate::s3::ops::{Head, Range};
use crate::s3::{Algorithm, Checksum, Error, Hasher, Kind};
use bytes::Bytes;
use hakobu_sys::source::{self, Through};
use hakobu_sys::{AsFd, OwnedFd, file};
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc::{Receiver, channel};

/// Bytes of a file that are read at a time.
const READ_BYTES: usize = 256 << 10;
/// Reads of a file that wait to be compared.
const READS_MAX: usize = 4;

/// What a comparison of contents came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// The same.
    Same,
    /// Different, from this byte on where that is known.
    Differ(Option<u64>),
}

/// What is compared: one of the two may be a file.
pub(super) struct Compared<'a> {
    /// The names, sizes and roots.
    pub moving: &'a Moving,
    /// The source's headers, of an object.
    pub source: Option<&'a Head>,
    /// The target's headers, of an object.
    pub target: Option<&'a Head>,
    /// Doubts are cleared by reading; else they count as differences.
    pub strict: bool,
}

/// Compares the contents of two entries of equal size.
///
/// # Errors
/// What could not be read, and why.
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

/// Opens the file on a side, through symlinks only where the source's are followed,
/// or by a proof of what both sides name (`strict`).
fn open(core: &Core<'_>, moving: &Moving, side: Side, strict: bool) -> io::Result<OwnedFd> {
    let (root, name) = match side {
        Side::Source => (&moving.pair.source, &moving.entry.name),
        Side::Target => (&moving.pair.target, &moving.name),
    };
    let Root::Local { dir: root, .. } = root else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let policy = core.engine.policy();
    let follows = policy.symlinks == Symlinks::Follow || policy.copy_dirlinks;
    let through = match side {
        Side::Source if follows && policy.safe_links => Through::Inside,
        Side::Source if follows || policy.follow_args => Through::Anything,
        Side::Target if follows && strict => Through::Anything,
        _ => Through::Nothing,
    };
    source::open(root.as_fd(), name.strip_suffix(b"/").unwrap_or(name), through)
}

/// What it means that a file could not be read.
pub(super) fn file_failed(side: Side) -> impl Fn(io::Error) -> Failed {
    move |error| match (side, error.kind()) {
        (Side::Source, io::ErrorKind::NotFound) => Failed::Vanished(Operation::Read),
        _ => Failed::File(Operation::Read, side, error),
    }
}

/// Runs what blocks beside the core.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Compares the file on `side` with the checksums of the object on the other; `None` where they
/// cannot tell.
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

/// Reads the file and says what it is by one way.
fn try_way(fd: &OwnedFd, size: u64, way: &Way, strict: bool) -> io::Result<Option<bool>> {
    match way {
        Way::Whole(sum) => {
            let same = sum_of(fd, size, sum.algorithm, size)? == *sum;
            // Where it differs a strict caller wants to know where.
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

/// The checksum of a file's first `size` bytes.
fn sum_of(fd: &OwnedFd, size: u64, algorithm: Algorithm, part: u64) -> io::Result<Checksum> {
    let mut sums = part_sums(fd, size, algorithm, part)?;
    Ok(sums.pop().unwrap_or_else(|| Checksum::of(algorithm, b"")))
}

/// The checksum of the checksums of a file's parts.
fn sum_of_parts(fd: &OwnedFd, size: u64, algorithm: Algorithm, part: u64) -> io::Result<Checksum> {
    Ok(Checksum::composite(algorithm, &part_sums(fd, size, algorithm, part)?))
}

fn part_sums(
    fd: &OwnedFd,
    size: u64,
    algorithm: Algorithm,
    part: u64,
) -> io::Result<Vec<Checksum>> {
    let mut buffer = vec![0; READ_BYTES];
    let mut sums = Vec::new();
    let mut offset = 0;
    while offset < size {
        let end = size.min(offset.saturating_add(part));
        let mut hasher = Hasher::new(algorithm);
        while offset < end {
            let len = usize::try_from(end - offset).unwrap_or(READ_BYTES).min(READ_BYTES);
            let space = buffer.get_mut(..len).unwrap_or_default();
            let got = file::read_full_at(fd.as_fd(), space, offset)?;
            hasher.update(space.get(..got).unwrap_or_default());
            if got < len {
                // It shrank: what there is has another checksum.
                sums.push(hasher.finish());
                return Ok(sums);
            }
            offset += len as u64;
        }
        sums.push(hasher.finish());
    }
    Ok(sums)
}

/// Bytes of one side as they come.
pub(super) enum Stream<'c, 'a> {
    File(Receiver<io::Result<Bytes>>),
    Object(Box<Reader<'c, 'a>>),
}

impl<'c, 'a> Stream<'c, 'a> {
    fn file(fd: OwnedFd, size: u64) -> Stream<'c, 'a> {
        let (sender, receiver) = channel(READS_MAX);
        tokio::task::spawn_blocking(move || {
            let mut offset = 0;
            while offset < size {
                let len = usize::try_from(size - offset).unwrap_or(READ_BYTES).min(READ_BYTES);
                let mut buffer = vec![0; len];
                let read = file::read_full_at(fd.as_fd(), &mut buffer, offset);
                let short = !matches!(read, Ok(got) if got == len);
                let piece = read.map(|got| {
                    buffer.truncate(got);
                    Bytes::from(buffer)
                });
                if sender.blocking_send(piece).is_err() || short {
                    return;
                }
                offset += len as u64;
            }
        });
        Stream::File(receiver)
    }

    /// The next piece; `None` at the end.
    pub(super) async fn next(
        &mut self,
        core: &Core<'_>,
        side: Side,
    ) -> Result<Option<Bytes>, Failed> {
        match self {
            Stream::File(pieces) => {
                core.doing.turn(Phase::Read);
                pieces.recv().await.transpose().map_err(file_failed(side))
            }
            Stream::Object(reader) => reader.next().await.map_err(|error| read(side, error)),
        }
    }
}

fn read(side: Side, error: Error) -> Failed {
    match side {
        Side::Source => crate::object::reader::read_failed(error),
        Side::Target => Failed::Request(Operation::Read, side, error),
    }
}

/// Reads both sides to the first byte that differs.
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

/// The object below a root, if that is a store's.
pub(super) fn object<'a>(
    root: &'a Root,
    name: &[u8],
    head: Option<&'a Head>,
) -> Option<Object<'a>> {
    Object::below(root, name, head.map_or("", |head| &head.etag))
}

/// What a side has, as it comes.
pub(super) fn stream<'c, 'a>(
    core: &'c Core<'a>,
    moving: &Moving,
    side: Side,
    object: Option<&'c Object<'c>>,
    size: u64,
    strict: bool,
) -> Result<Stream<'c, 'a>, Failed> {
    match object {
        Some(object) => {
            let range = Range { start: 0, end: size };
            let reader = Reader::new(core, core.store(side)?, object, range, size);
            Ok(Stream::Object(Box::new(reader)))
        }
        None => {
            let fd = open(core, moving, side, strict).map_err(file_failed(side))?;
            Ok(Stream::file(fd, size))
        }
    }
}

/// Whether a target is gone by now.
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
    use crate::s3::Algorithm;
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

    /// A file is found equal to an object of which only the ETag of its parts is known, and an
    /// altered one is not.
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
