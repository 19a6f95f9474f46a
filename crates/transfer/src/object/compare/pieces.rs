//! The sides of a comparison, and their bytes as a stream: from a file or an object.

use crate::object::core::Core;
use crate::object::ends::{Object, read_failed};
use crate::object::failed::Failed;
use crate::object::moving::Moving;
use crate::object::reader::Reader;
use crate::object::{Root, Side};
use crate::policy::Symlinks;
use bytes::Bytes;
use hakobu_core::buffer::AlignedBytes;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_s3::ops::{ObjectHead, Range};
use hakobu_sys::source::{self, Through};
use hakobu_sys::{AsFd, OwnedFd, file};
use std::io;
use tokio::sync::mpsc::{Receiver, channel};

/// Bytes read from a file at a time.
pub(super) const READ_BYTES: usize = 256 << 10;
/// Maximum number of reads of a file that wait to be compared.
pub(super) const READS_MAX: usize = 4;

/// Result of a comparison of contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// The same.
    Same,
    /// Different, from this byte on if that is known.
    Differ(Option<u64>),
}

/// The sides of a comparison: one of the two may be a file.
pub(super) struct Compared<'a> {
    /// The names, sizes and roots.
    pub moving: &'a Moving,
    /// Headers of the source, if it is an object.
    pub source: Option<&'a ObjectHead>,
    /// Headers of the target, if it is an object.
    pub target: Option<&'a ObjectHead>,
    /// Doubts are resolved by reading; otherwise they count as differences.
    pub strict: bool,
}

/// Opens the file on a side. Symlinks are followed only if the source's are, or with `strict`, which compares
/// referents.
pub(super) fn open(core: &Core<'_>, what: &Compared<'_>, side: Side) -> io::Result<OwnedFd> {
    let (root, name) = what.moving.end(side);
    let Root::Local { dir: root, .. } = root else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let policy = core.engine.policy();
    let follows = policy.symlinks == Symlinks::Follow || policy.copy_dirlinks;
    let through = match side {
        Side::Source if follows && policy.safe_links => Through::Inside,
        Side::Source if follows || policy.follow_args => Through::Anything,
        Side::Target if follows && what.strict => Through::Anything,
        _ => Through::Nothing,
    };
    source::open(root.as_fd(), name.strip_suffix(b"/").unwrap_or(name), through)
}

/// Returns the failure of a file that could not be read.
pub(super) fn file_failed(side: Side) -> impl Fn(io::Error) -> Failed {
    move |error| match (side, error.kind()) {
        (Side::Source, io::ErrorKind::NotFound) => Failed::Vanished(Operation::Read),
        _ => Failed::File(Operation::Read, side, error),
    }
}

/// The bytes of one side, as a stream.
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
                let mut buffer = AlignedBytes::zeroed(len);
                let read = file::read_full_at(fd.as_fd(), &mut buffer, offset);
                let short = !matches!(read, Ok(got) if got == len);
                let piece = read.map(|got| Bytes::from_owner(buffer).slice(..got));
                if sender.blocking_send(piece).is_err() || short {
                    return;
                }
                offset += len as u64;
            }
        });
        Stream::File(receiver)
    }

    /// Returns the next piece; `None` at the end.
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
            Stream::Object(reader) => reader.next().await.map_err(|error| match side {
                Side::Source => read_failed(error),
                Side::Target => Failed::at_target(Operation::Read)(error),
            }),
        }
    }
}

/// Returns the object on a side; `None` for a file.
pub(super) fn object<'a>(
    core: &Core<'a>,
    what: &'a Compared<'_>,
    side: Side,
) -> Option<Object<'a>> {
    let head = match side {
        Side::Source => what.source,
        Side::Target => what.target,
    };
    Object::at(core, what.moving, side, head.map_or("", |head| &head.etag))
}

/// Returns the first `size` bytes of a side, as a stream: of `object`, or of a file if that is `None`.
pub(super) fn stream<'c, 'a>(
    core: &'c Core<'a>,
    what: &Compared<'_>,
    side: Side,
    object: Option<&'c Object<'c>>,
    size: u64,
) -> Result<Stream<'c, 'a>, Failed> {
    match object {
        Some(object) => {
            let range = Range { start: 0, end: size };
            let reader = Reader::new(core, core.store(side)?, object, range, size);
            Ok(Stream::Object(Box::new(reader)))
        }
        None => {
            let fd = open(core, what, side).map_err(file_failed(side))?;
            Ok(Stream::file(fd, size))
        }
    }
}
