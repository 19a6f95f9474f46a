//! Division of an object into parts; pure. The limits are those of the Amazon S3 User Guide, "Amazon S3 multipart upload
//! limits"; a download keeps them, too, as each part costs a request and a line of a record.

use super::entry::{Failed, Moving, Object};
use super::runtime::{Core, PooledBuffer};
use super::{Root, Side};
use crate::compare::cheapest;
use crate::journal::{
    Claim, FinishedPart, Journal, ObjectIdentity, ObjectRecord, PartsLocation, bytes,
};
use crate::location::{Location, S3Url};
use bytes::Bytes;
use crc_fast::CrcAlgorithm;
use hakobu_core::error::Operation;
use hakobu_s3::ops::{GetOptions, ObjectHead, Range, get_object, head_of, list_parts};
use hakobu_s3::{
    Algorithm, Checksum, Client, Download, Error, ErrorKind, Hasher, S3Session, with_session,
};
use hakobu_sys::{AsFd, OwnedFd, file};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const PARTS_MAX: u64 = 10_000;
const MIB: u64 = 1 << 20;

/// An object divided into parts of equal length, except the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Size of the object in bytes.
    pub size: u64,
    /// Bytes of every part except the last.
    pub part_bytes: u64,
    /// Number of parts, at most [`PARTS_MAX`] if [`Cut::new`] made it.
    pub count: u32,
}

impl Cut {
    /// Divides into parts of `wanted` bytes, or larger if there would be too many.
    pub fn new(size: u64, wanted: u64) -> Cut {
        let least = size.div_ceil(PARTS_MAX);
        // Too small: the next whole MiB, so that parts begin at page and stripe boundaries.
        let part_bytes = if wanted < least { least.next_multiple_of(MIB) } else { wanted };
        Cut::with(size, part_bytes)
    }

    /// Divides into parts of exactly that length, as an earlier run did.
    pub fn with(size: u64, part_bytes: u64) -> Cut {
        let part_bytes = part_bytes.max(1);
        let count = size.div_ceil(part_bytes);
        Cut { size, part_bytes, count: u32::try_from(count).unwrap_or(u32::MAX) }
    }

    /// Returns the bytes of a part; numbers start at 1.
    pub fn range(&self, number: u32) -> Range {
        let start = u64::from(number.saturating_sub(1)).saturating_mul(self.part_bytes);
        let start = start.min(self.size);
        Range { start, end: self.size.min(start + self.part_bytes) }
    }

    /// Returns the length of a part in bytes.
    pub fn bytes(&self, number: u32) -> u64 {
        let Range { start, end } = self.range(number);
        end - start
    }

    /// Returns the numbers of all parts, the first one last.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        (1..=self.count).rev()
    }
}

// The journal's record of one transfer that a later run may continue (`--resume`), for uploads and downloads.

/// Writing records takes at most this fraction (1/n) of the time.
const SAVING_SHARE: u32 = 50;

/// A record that is updated during its transfer.
pub(super) struct Checkpoint {
    claim: Claim,
    record: ObjectRecord,
    /// Time of the last write, and its duration.
    saved: (Instant, Duration),
}

impl Checkpoint {
    /// Continues a record that was just read or written.
    pub fn new(claim: Claim, record: ObjectRecord) -> Checkpoint {
        Checkpoint { claim, record, saved: (Instant::now(), Duration::ZERO) }
    }

    /// Updates the finished parts and writes the record, unless that was done just now.
    pub fn progress(&mut self, parts: impl FnOnce() -> Vec<FinishedPart>) {
        let (at, took) = self.saved;
        if at.elapsed() >= took * SAVING_SHARE {
            self.save(parts());
        }
    }

    /// Writes the record. A failure only means that parts are moved again.
    pub fn save(&mut self, parts: Vec<FinishedPart>) {
        let begun = Instant::now();
        self.record.parts = parts;
        drop(self.claim.save(&self.record));
        self.saved = (Instant::now(), begun.elapsed());
    }

    /// Removes the record of a transfer that is complete or given up. A record that stays is recognised as obsolete
    /// later.
    pub fn forget(self) {
        drop(self.claim.remove());
    }
}

/// Claims the record of a transfer. `busy` is the reason if another run holds it.
///
/// # Errors
/// Those of the journal; `busy`.
pub(super) fn claim(
    core: &Core<'_>,
    client: &Client,
    moving: &Moving,
    busy: &'static str,
) -> Result<(ObjectIdentity, Claim), Failed> {
    let whole = |root: &Root, path| match root {
        Root::Local { .. } => std::path::absolute(path).map_err(unusable),
        Root::Store { .. } | Root::Null => Ok(path),
    };
    let source = whole(&moving.pair.source, moving.source_path())?;
    let target = whole(&moving.pair.target, moving.target_path())?;
    let (source, target) = (source.as_os_str().as_bytes(), target.as_os_str().as_bytes());
    let identity = ObjectIdentity::new(source, target, &client.session().endpoint());
    match core.engine.setup.journal.claim(&identity).map_err(unusable)? {
        Some(claim) => Ok((identity, claim)),
        None => Err(Failed::Reason(Operation::Write, Side::Target, busy)),
    }
}

/// The failure for an error of the journal.
pub(super) fn unusable(error: io::Error) -> Failed {
    let said = io::Error::new(error.kind(), format!("the journal for --resume: {error}"));
    Failed::File(Operation::Write, Side::Target, said)
}

/// Returns whether a later run can continue the transfer after this failure.
pub(super) fn is_worth_keeping(failed: &Failed) -> bool {
    match failed {
        Failed::Request(_, _, error) => !matches!(
            error.kind,
            ErrorKind::NotFound | ErrorKind::Precondition | ErrorKind::Invalid | ErrorKind::Corrupt
        ),
        Failed::File(..) | Failed::Stopped => true,
        Failed::Reason(..) | Failed::Vanished(_) => false,
    }
}

// Obsolete records: a run was killed after its last request and before it removed the record, and the next run finds
// the object up to date and never uses it.

/// Removes the records of uploads that their store (one of `stores`) no longer has, and of downloads whose unfinished
/// file is gone.
///
/// # Errors
/// Those of the journal. A record that stays is recognised as obsolete by the run that needs it.
pub fn tidy<'a>(
    journal: &Journal,
    stores: impl Iterator<Item = &'a Arc<S3Session>> + Clone,
) -> io::Result<()> {
    journal.tidy(|identity, record| match &record.place {
        PartsLocation::Upload(upload) => {
            let mut stores = stores.clone();
            let store = stores.find(|store| store.endpoint() == identity.endpoint());
            store.is_some_and(|store| is_unknown(store, identity, upload))
        }
        PartsLocation::File { name, .. } => {
            let target = bytes(identity.target());
            let folder = Path::new(OsStr::from_bytes(&target)).parent().unwrap_or(Path::new("/"));
            let file = folder.join(OsStr::from_bytes(&bytes(name)));
            let there = std::fs::symlink_metadata(file);
            there.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        }
        PartsLocation::Asked => false,
    })
}

/// Returns whether a store reports that the upload does not exist.
fn is_unknown(store: &Arc<S3Session>, identity: &ObjectIdentity, upload: &str) -> bool {
    let target = bytes(identity.target());
    let Ok(Location::S3(S3Url { bucket, key, .. })) = Location::parse(OsStr::from_bytes(&target))
    else {
        return false;
    };
    let parts =
        with_session(store, async |client| list_parts(&client, &bucket, &key, upload).await);
    parts.is_err_and(|error| error.kind == ErrorKind::NotFound)
}

// Reads a range of an object as a stream, over connections that may break: delivered bytes are kept, the rest is
// requested again, and only from the same version of the object.

/// Bytes without a break after which earlier breaks no longer count.
const PROGRESS_BYTES: u64 = 8 << 20;

/// A range of an object being received.
pub(super) struct Reader<'c, 'a> {
    core: &'c Core<'a>,
    client: &'c Client,
    object: &'c Object<'c>,
    end: u64,
    /// Size of the whole object, in bytes.
    size: u64,
    /// Offset of the next piece.
    offset: u64,
    /// Whether the whole object is read: then its stored checksums are requested.
    whole: bool,
    body: Option<Download>,
    head: Option<ObjectHead>,
    tried: u32,
    broken_at: u64,
}

impl<'c, 'a> Reader<'c, 'a> {
    /// Prepares to read `range`; `size` is that of the whole object.
    pub fn new(
        core: &'c Core<'a>,
        client: &'c Client,
        object: &'c Object<'c>,
        range: Range,
        size: u64,
    ) -> Reader<'c, 'a> {
        Reader {
            core,
            client,
            object,
            end: range.end,
            size,
            offset: range.start,
            whole: range.start == 0 && range.end == size,
            body: None,
            head: None,
            tried: 0,
            broken_at: 0,
        }
    }

    /// Returns the headers of the first answer; sends the request if there was none yet.
    ///
    /// # Errors
    /// Those of the request; `Precondition` if it is another object now.
    pub async fn head(&mut self) -> Result<&ObjectHead, Error> {
        if self.head.is_none() {
            self.open().await?;
        }
        self.head.as_ref().ok_or_else(|| broken("the response had no headers"))
    }

    /// Returns the next piece; `None` after the last byte of the range.
    ///
    /// # Errors
    /// The last failure, after all tries.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if self.core.engine.is_stopped() {
                return Err(Error::new(ErrorKind::Stopped, "GetObject", "stopped"));
            }
            let result = match &mut self.body {
                Some(body) => body.chunk().await,
                None if self.offset >= self.end && self.head.is_some() => return Ok(None),
                None => {
                    self.open().await?;
                    continue;
                }
            };
            match result {
                Ok(Some(piece)) => {
                    self.offset += piece.len() as u64;
                    return Ok(Some(piece));
                }
                Ok(None) => return Ok(None),
                Err(error) => {
                    self.body = None;
                    if self.offset >= self.broken_at + PROGRESS_BYTES {
                        self.tried = 0;
                    }
                    self.broken_at = self.offset;
                    self.tried += 1;
                    if !self.client.may_retry(self.tried, &error).await {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Reads the rest into one buffer.
    pub async fn all(&mut self) -> Result<Bytes, Error> {
        let room = usize::try_from(self.end - self.offset)
            .map_err(|_| broken("it does not fit into memory"))?;
        let mut buffer = PooledBuffer::new(room);
        let mut filled = 0;
        while let Some(piece) = self.next().await? {
            let space = buffer.get_mut(filled..filled + piece.len());
            space
                .ok_or_else(|| broken("the response is longer than the requested range"))?
                .copy_from_slice(&piece);
            filled += piece.len();
        }
        match filled == room {
            true => Ok(buffer.freeze()),
            false => Err(broken("the response is shorter than the requested range")),
        }
    }

    async fn open(&mut self) -> Result<(), Error> {
        let again = self.head.as_ref().map(|head| head.etag.clone());
        let etag = again.as_deref().filter(|etag| !etag.is_empty()).or(self.object.etag);
        let from_start = self.whole && self.offset == 0;
        let range = (!from_start).then_some(Range { start: self.offset, end: self.end });
        let Object { bucket, key, version, .. } = self.object;
        let wanted = GetOptions { version: *version, range, etag, size: Some(self.size) };
        let body = get_object(self.client, bucket, key, &wanted).await?;
        if self.head.is_none() {
            self.head = Some(ObjectHead { size: body.size(), ..head_of(&body.headers) });
        }
        self.body = Some(body);
        Ok(())
    }
}

fn broken(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, "GetObject", what)
}

// Checksums of whole objects: chosen among those stored, combined from those of parts, and computed from files.

/// Method of checking a whole object that was received in ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WholeCheck {
    /// The combined checksums of the ranges must equal this one.
    Joined(Checksum),
    /// The finished file is read again, because the hash cannot be combined.
    Reread(Checksum),
    /// No comparable checksum is stored.
    None,
}

impl WholeCheck {
    /// Chooses among the stored checksums.
    pub fn of(stored: &[Checksum]) -> WholeCheck {
        match cheapest(stored) {
            Some(sum) if crc(sum.algorithm).is_some() => WholeCheck::Joined(sum.clone()),
            Some(sum) => WholeCheck::Reread(sum.clone()),
            None => WholeCheck::None,
        }
    }

    /// Returns the algorithm for the checksum of each arriving range.
    pub fn of_parts(&self, resume: bool) -> Option<Algorithm> {
        match self {
            WholeCheck::Joined(sum) => Some(sum.algorithm),
            // A later run needs a proof of what it finds.
            _ => resume.then_some(Algorithm::Crc64Nvme),
        }
    }
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
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_cover_the_object_once(size in 1_u64..1 << 45, part in 1_u64..1 << 30) {
            let cut = Cut::new(size, part);
            prop_assert!(u64::from(cut.count) <= PARTS_MAX && cut.part_bytes >= part);
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
    }

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
        assert_eq!(WholeCheck::of(&[]), WholeCheck::None);
        assert_eq!(WholeCheck::of(std::slice::from_ref(&composite)), WholeCheck::None);
        let found = WholeCheck::of(&[sha.clone(), composite.clone(), crc32.clone()]);
        assert_eq!(found, WholeCheck::Joined(crc32));
        assert_eq!(WholeCheck::of(&[composite, sha.clone()]), WholeCheck::Reread(sha));
    }
}
