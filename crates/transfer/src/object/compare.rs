//! Closer comparison of two entries of equal size: metadata, stored checksums, and the contents if nothing else
//! decides.

use super::copy::ONE_COPY_BYTES_MAX;
use super::entry::{Failed, MoveResult, MoveTarget, Moving, Object, read_failed};
use super::metadata;
use super::parts::{Cut, Reader, of_range};
use super::runtime::{Core, blocking};
use super::{Entry, KnownFacts, ObjectOptions, Root, Side, copy as between};
use crate::compare::{self as evidence, ComparisonMethod, Proof};
use crate::local::attributes::Grains;
use crate::manifest::FileMetadata;
use crate::policy::{Grain, Policy, Symlinks, is_newer, same_time};
use bytes::Bytes;
use hakobu_core::buffer::AlignedBytes;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta, Time, Totals};
use hakobu_s3::ops::{CopySource, Headers, ObjectHead, Range, copy_object};
use hakobu_s3::{Algorithm, Checksum, ErrorKind};
use hakobu_sys::file::{self, Through};
use hakobu_sys::paths::PathBelow;
use hakobu_sys::{AsFd, OwnedFd, meta, process};
use http::{HeaderName, HeaderValue};
use std::ffi::CString;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;
use tokio::sync::mpsc::{Receiver, channel};

/// Compares source and target as the policy requires (`checksum`: contents; `keep_times`: the mtime and mode in the
/// object's metadata), then transfers the entry, sets its metadata, or skips it.
pub(super) async fn run(core: &Core<'_>, moving: Moving, known: &KnownFacts) {
    match need(core, &moving, known).await {
        Ok((Need::Transfer | Need::Contents, _)) => core.transfer(moving).await,
        Ok((Need::Nothing, _)) => {
            core.finish(&moving, Ok(MoveResult::SKIPPED)).await;
        }
        Ok((Need::Metadata, heads)) => {
            if core.engine.policy().dry_run {
                return core.finish(&moving, Ok(MoveResult::METADATA)).await;
            }
            match touch(core, &moving, &heads).await {
                // Unsupported by the server: transfer the whole object, which sets them.
                Ok(None) => core.transfer(moving).await,
                Ok(Some(done)) => core.finish(&moving, Ok(done)).await,
                Err(failed) => core.finish(&moving, Err(failed)).await,
            }
        }
        Err(failed) if is_gone(&failed) => core.transfer(moving).await,
        Err(failed) => core.finish(&moving, Err(failed)).await,
    }
}

/// Requests the headers of each side that is an object, unless its metadata is known.
async fn heads(core: &Core<'_>, moving: &Moving, known: &KnownFacts) -> Result<Heads, Failed> {
    let of = async |side| match known.of(side) {
        Some(_) => Ok(None),
        None => head(core, moving, side).await,
    };
    let (source, target) = futures_util::future::join(of(Side::Source), of(Side::Target)).await;
    let heads = Heads { source: source?, target: target? };
    for (side, head) in [(Side::Source, &heads.source), (Side::Target, &heads.target)] {
        if let Some(head) = head {
            core.observed(moving, side, head);
        }
    }
    Ok(heads)
}

async fn head(core: &Core<'_>, moving: &Moving, side: Side) -> Result<Option<ObjectHead>, Failed> {
    let Some(object) = Object::at(core, moving, side, "") else { return Ok(None) };
    let failed = |error| match side {
        Side::Source => read_failed(error),
        Side::Target => Failed::at_target(Operation::Stat)(error),
    };
    object.head(core.store(side)?).await.map(Some).map_err(failed)
}

/// Returns the facts about a side.
fn known(
    core: &Core<'_>,
    moving: &Moving,
    side: Side,
    entry: &Entry,
    head: Option<&ObjectHead>,
    stored: Option<FileMetadata>,
) -> SideFacts {
    let (policy, options) = (core.engine.policy(), core.engine.setup.options);
    let meta = match side {
        Side::Target => core.engine.as_here(entry.meta),
        Side::Source => entry.meta,
    };
    let stored = head.map(|head| metadata::read(&head.metadata)).or(stored);
    let kept = stored.unwrap_or_else(|| FileMetadata::of(&meta));
    // The source's values are what the target should get, the target's what it has.
    let kept = match (side, &moving.pair.target) {
        (Side::Source, Root::Local { .. }) => kept.on_file(policy, options, process::euid()),
        (Side::Source, _) => kept.in_store(policy, options),
        (Side::Target, _) => kept.in_store(&Policy::default(), options),
    };
    let chmod = policy.chmod.as_ref().filter(|_| side == Side::Source);
    SideFacts {
        is_local: stored.is_none(),
        changed: meta.mtime,
        mtime: kept.mtime,
        mode: kept.mode.map(|mode| chmod.map_or(mode, |rules| rules.apply(mode, false))),
        owner: (kept.uid, kept.gid),
        kind: kept.kind.filter(|kind| matches!(kind, Kind::File | Kind::Symlink)),
    }
}

/// Returns the coarser granularity of the times of the sides that are files.
fn grain(core: &Core<'_>, moving: &Moving, existing: &Entry) -> Grain {
    let engine = core.engine;
    let root = |root: &Root| match root {
        Root::Local { dir, .. } => Some(Arc::clone(dir)),
        _ => None,
    };
    let (from, to) = (root(&moving.pair.source), root(&moving.pair.target));
    let (source, target) = (&moving.entry.meta, &existing.meta);
    match (from, to) {
        (Some(dir), None) => Grains::shown((source, Some((*dir).as_fd()))),
        (None, Some(dir)) => {
            let names = (!engine.policy().dry_run).then_some(&engine.files.drafts.temp_names);
            engine.grains.of_target((target, Some((*dir).as_fd())), names).0
        }
        _ => Grain::NS,
    }
}

async fn need(
    core: &Core<'_>,
    moving: &Moving,
    facts: &KnownFacts,
) -> Result<(Need, Heads), Failed> {
    // Stored checksums are in the headers only.
    if !core.engine.policy().checksum {
        let (need, heads) = need_by(core, moving, facts).await?;
        // Headers are copied along with metadata that is set.
        let asks_again =
            need == Need::Metadata && (facts.source.is_some() || facts.target.is_some());
        if !asks_again {
            return Ok((need, heads));
        }
    }
    need_by(core, moving, &KnownFacts::default()).await
}

/// Asks for the metadata that is not known, and decides.
async fn need_by(
    core: &Core<'_>,
    moving: &Moving,
    facts: &KnownFacts,
) -> Result<(Need, Heads), Failed> {
    let policy = core.engine.policy();
    let Some(existing) = &moving.existing else { return Ok((Need::Transfer, Heads::default())) };
    let heads = heads(core, moving, facts).await?;
    let changed = |head: &ObjectHead| head.size != moving.entry.meta.size;
    if heads.target.as_ref().is_some_and(changed) {
        return Ok((Need::Transfer, heads));
    }
    let head = heads.source.as_ref();
    let source = known(core, moving, Side::Source, &moving.entry, head, facts.source);
    let head = heads.target.as_ref();
    let target = known(core, moving, Side::Target, existing, head, facts.target);
    let files = grain(core, moving, existing);
    let need = match judge(&source, &target, policy, files) {
        Need::Contents => {
            let (a, b) = (heads.source.as_ref(), heads.target.as_ref());
            let what = Compared { moving, source: a, target: b, strict: false };
            match compare(core, &what).await? {
                Contents::Same => attributes(&source, &target, policy, files),
                Contents::Differ(_) => Need::Transfer,
            }
        }
        need => need,
    };
    Ok((need, heads))
}

// The decision about two entries of equal size, from the facts about them; pure.

/// The facts about one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SideFacts {
    /// Whether this is a local file.
    pub is_local: bool,
    /// Time of the last change: mtime of a file, LastModified of an object.
    pub changed: Time,
    /// mtime in an object's metadata, or of a file. `None` also if times are not kept.
    pub mtime: Option<Time>,
    /// Permission bits, from the same places.
    pub mode: Option<u32>,
    /// Owner and group, from the same places.
    pub owner: (Option<u32>, Option<u32>),
    /// The type in an object's metadata, if it has one.
    pub kind: Option<Kind>,
}

impl SideFacts {
    /// Returns the time that `--update` compares.
    fn time(&self) -> Time {
        self.mtime.unwrap_or(self.changed)
    }
}

/// The work to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    /// The content is right; set times, mode or owner.
    Metadata,
    Transfer,
    /// Compare contents: if they are equal, [`attributes`] decides, else transfer.
    Contents,
}

/// Returns the granularity at which the times of two sides are compared: that of the files, and whole seconds for a
/// file that got the time of an upload. A change in the second of its own upload counts as later.
fn side_grain(source: &SideFacts, target: &SideFacts, files: Grain) -> Grain {
    match source.mtime {
        None if target.is_local => files.max(Grain::S),
        _ => files,
    }
}

/// Returns whether the target's time shows that it has the source's content.
///
/// Times in metadata are compared as they are. An object without one was not written by hakobu: then, as usual in S3,
/// it is stale if the source was changed after it was written. A local target without a time to compare with has the
/// source's LastModified.
fn same_times(source: &SideFacts, target: &SideFacts, policy: &Policy, grain: Grain) -> bool {
    let same = |a, b| same_time(a, b, policy.modify_window_s, grain);
    match (source.mtime, target.mtime) {
        (Some(a), Some(b)) => same(a, b),
        _ if target.is_local => same(source.time(), target.time()),
        _ => source.changed <= target.changed || same(source.changed, target.changed),
    }
}

/// Decides about two entries of equal size. `files` is the coarser granularity of the times of the sides that are
/// files.
pub(super) fn judge(source: &SideFacts, target: &SideFacts, policy: &Policy, files: Grain) -> Need {
    let grain = side_grain(source, target, files);
    let newer = is_newer(target.time(), source.time(), policy.modify_window_s, grain);
    if policy.update && newer.unwrap_or(policy.update_same) {
        return Need::Nothing;
    }
    // A symlink in place of a file, or the reverse; an unknown type means a file.
    let is_link = |known: &SideFacts| known.kind == Some(Kind::Symlink);
    if is_link(source) != is_link(target) {
        return Need::Transfer;
    }
    if policy.checksum {
        return Need::Contents;
    }
    if policy.size_only {
        return attributes(source, target, policy, files);
    }
    if policy.ignore_times || !same_times(source, target, policy, grain) {
        return Need::Transfer;
    }
    attributes(source, target, policy, files)
}

/// Returns the remaining work if the contents are the same.
pub(super) fn attributes(
    source: &SideFacts,
    target: &SideFacts,
    policy: &Policy,
    files: Grain,
) -> Need {
    let grain = side_grain(source, target, files);
    let differ = |a, b| !same_time(a, b, policy.modify_window_s, grain);
    let time = match (source.mtime, target.mtime) {
        (Some(a), Some(b)) => differ(a, b),
        // A file whose object has no mtime gets its LastModified.
        (None, Some(b)) if target.is_local => differ(source.changed, b),
        _ => false,
    };
    let other = |pair: Option<(u32, u32)>| pair.is_some_and(|(a, b)| a != b);
    let mode = other(source.mode.zip(target.mode));
    let owner =
        other(source.owner.0.zip(target.owner.0)) || other(source.owner.1.zip(target.owner.1));
    if time || mode || owner { Need::Metadata } else { Need::Nothing }
}

// Comparison of contents: by stored checksums if they suffice, else byte by byte while streaming, without storing
// them.

/// Compares the contents of two entries of equal size.
///
/// # Errors
/// The side that could not be read, and the reason.
pub(super) async fn compare(core: &Core<'_>, what: &Compared<'_>) -> Result<Contents, Failed> {
    let size = what.moving.entry.meta.size;
    if size == 0 {
        return Ok(Contents::Same);
    }
    if let Some(side) = link_side(what.moving) {
        return compare_links(core, what, side).await;
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
fn try_way(
    fd: &OwnedFd,
    size: u64,
    way: &ComparisonMethod,
    strict: bool,
) -> io::Result<Option<bool>> {
    match way {
        ComparisonMethod::Whole(sum) => {
            let sums = part_sums(fd, size, sum.algorithm, size)?;
            let same = sums.is_some_and(|sums| sums.first() == Some(sum));
            // If they differ, a strict caller needs the position.
            Ok((same || !strict).then_some(same))
        }
        ComparisonMethod::Parts(sum, sizes) => {
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
    let source = object_of(core, what, Side::Source);
    let target = object_of(core, what, Side::Target);
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

// The sides of a comparison, and their bytes as a stream: from a file or an object.

/// Bytes read from a file at a time.
pub(super) const READ_BYTES: usize = 256 << 10;
/// Maximum number of reads of a file that wait to be compared.
pub(super) const READS_MAX: usize = 4;

/// Result of a comparison of contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    Same,
    /// Different, from this byte on if that is known.
    Differ(Option<u64>),
}

/// The sides of a comparison: one of the two may be a file.
pub(super) struct Compared<'a> {
    /// The names, sizes and roots.
    pub moving: &'a Moving,
    pub source: Option<&'a ObjectHead>,
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
    file::open_source(root.as_fd(), name.strip_suffix(b"/").unwrap_or(name), through)
}

/// Returns the failure of a file that could not be read.
pub(super) fn file_failed(side: Side) -> impl Fn(io::Error) -> Failed {
    move |error| match (side, error.kind()) {
        (Side::Source, io::ErrorKind::NotFound) => Failed::Vanished(Operation::Read),
        _ => Failed::File(Operation::Read, side, error),
    }
}

/// The bytes of one side, as a stream.
pub(super) enum SideStream<'c, 'a> {
    File(Receiver<io::Result<Bytes>>),
    Object(Box<Reader<'c, 'a>>),
}

impl<'c, 'a> SideStream<'c, 'a> {
    fn file(fd: OwnedFd, size: u64) -> SideStream<'c, 'a> {
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
        SideStream::File(receiver)
    }

    /// Returns the next piece; `None` at the end.
    pub(super) async fn next(
        &mut self,
        core: &Core<'_>,
        side: Side,
    ) -> Result<Option<Bytes>, Failed> {
        match self {
            SideStream::File(pieces) => {
                core.doing.turn(Phase::Read);
                pieces.recv().await.transpose().map_err(file_failed(side))
            }
            SideStream::Object(reader) => reader.next().await.map_err(|error| match side {
                Side::Source => read_failed(error),
                Side::Target => Failed::at_target(Operation::Read)(error),
            }),
        }
    }
}

/// Returns the object on a side; `None` for a file.
pub(super) fn object_of<'a>(
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
) -> Result<SideStream<'c, 'a>, Failed> {
    match object {
        Some(object) => {
            let range = Range { start: 0, end: size };
            let reader = Reader::new(core, core.store(side)?, object, range, size);
            Ok(SideStream::Object(Box::new(reader)))
        }
        None => {
            let fd = open(core, what, side).map_err(file_failed(side))?;
            Ok(SideStream::file(fd, size))
        }
    }
}

// Comparison of a local symlink, kept as one, with the object that stands for it.

/// Returns the side that is a local symlink, kept as one.
pub(super) fn link_side(moving: &Moving) -> Option<Side> {
    let is = |root: &Root, entry: &Entry| {
        matches!(root, Root::Local { .. }) && entry.meta.kind == Kind::Symlink
    };
    let existing = moving.existing.as_deref();
    if is(&moving.pair.source, &moving.entry) {
        Some(Side::Source)
    } else {
        existing.filter(|entry| is(&moving.pair.target, entry)).map(|_| Side::Target)
    }
}

/// Compares the text of a symlink with the content of an object that is marked as one.
///
/// # Errors
/// The side that could not be read, and the reason.
pub(super) async fn compare_links(
    core: &Core<'_>,
    what: &Compared<'_>,
    side: Side,
) -> Result<Contents, Failed> {
    let (other, head) = match side {
        Side::Source => (Side::Target, what.target),
        Side::Target => (Side::Source, what.source),
    };
    let (Root::Local { dir, .. }, name) = what.moving.end(side) else {
        return Ok(Contents::Differ(None));
    };
    let Some(head) = head else { return Ok(Contents::Differ(None)) };
    let text =
        file::open_source_name(dir.as_fd(), name).and_then(|link| file::link_text(link.as_fd()));
    let text = Bytes::from(text.map_err(file_failed(side))?.into_bytes());
    let size = text.len() as u64;
    if metadata::read(&head.metadata).kind != Some(Kind::Symlink) || head.size != size {
        return Ok(Contents::Differ(None));
    }
    let object = object_of(core, what, other);
    let mut bytes = stream(core, what, other, object.as_ref(), size)?;
    let mut left = text;
    while let Some(piece) = bytes.next(core, other).await? {
        if !left.starts_with(&piece) {
            return Ok(Contents::Differ(None));
        }
        let _ = left.split_to(piece.len());
    }
    Ok(if left.is_empty() { Contents::Same } else { Contents::Differ(None) })
}

// Sets times, modes and owners of entries with equal contents: of a file by system calls, of an object by a copy
// onto itself, the only way in S3.

/// Headers of source and target, for those that are objects.
#[derive(Default)]
pub(super) struct Heads {
    pub source: Option<ObjectHead>,
    pub target: Option<ObjectHead>,
}

/// Headers that CopyObject drops unless they are sent again (API reference, CopyObject).
const KEPT: [&str; 5] = [
    "x-amz-storage-class",
    "x-amz-website-redirect-location",
    "x-amz-server-side-encryption",
    "x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-server-side-encryption-bucket-key-enabled",
];

/// Sets the source's times, mode and owner on the target. Returns `None` if the server cannot.
///
/// # Errors
/// Those of the request or of the system.
pub(super) async fn touch(
    core: &Core<'_>,
    moving: &Moving,
    heads: &Heads,
) -> Result<Option<MoveResult>, Failed> {
    match (&moving.pair.target, &heads.target) {
        (Root::Local { dir, .. }, _) => {
            let (policy, options) = (core.engine.policy(), core.engine.setup.options);
            let source = heads.source.as_ref().map(|head| metadata::read(&head.metadata));
            let mut kept = source.unwrap_or_default().on_file(policy, options, process::euid());
            // A file whose object has no mtime gets its LastModified.
            let listed = options.keep_times.then_some(moving.entry.meta.mtime);
            kept.mtime = kept.mtime.or(listed);
            if let Some(rules) = &policy.chmod {
                kept.mode = kept.mode.map(|mode| rules.apply(mode, false));
            }
            file(dir, &moving.name, &kept)
                .map(|()| Some(MoveResult::METADATA))
                .map_err(|(operation, error)| Failed::File(operation, Side::Target, error))
        }
        (Root::Store { .. }, Some(head)) => object(core, moving, heads, head).await,
        _ => Ok(None),
    }
}

/// Sets owner, mode and time, in this order: a change of owner clears setuid bits.
fn file(root: &OwnedFd, name: &[u8], kept: &FileMetadata) -> Result<(), (Operation, io::Error)> {
    let below = PathBelow::find(root.as_fd(), name).map_err(|error| (Operation::Stat, error))?;
    let (folder, name) = (below.dir(), below.name());
    if kept.uid.is_some() || kept.gid.is_some() {
        let owned = meta::set_owner(folder, name, kept.uid, kept.gid);
        owned.map_err(|error| (Operation::SetOwner, error))?;
    }
    if let Some(mode) = kept.mode {
        let moded = meta::set_mode(folder, name, mode);
        moded.map_err(|error| (Operation::SetMode, error))?;
    }
    match kept.mtime {
        Some(mtime) => {
            let dev = meta::of_fd(folder).map_err(|error| (Operation::Stat, error))?.dev;
            meta::stamp(dev, folder, name, None, mtime)
                .map_err(|error| (Operation::SetTimes, error))
        }
        None => Ok(()),
    }
}

async fn object(
    core: &Core<'_>,
    moving: &Moving,
    heads: &Heads,
    head: &ObjectHead,
) -> Result<Option<MoveResult>, Failed> {
    if head.size > ONE_COPY_BYTES_MAX || head.etag.is_empty() {
        return Ok(None);
    }
    let MoveTarget { client, bucket, key } = MoveTarget::of(core, moving)?;
    let mut wanted = Headers::new();
    match &heads.source {
        // The source object's metadata, unchanged.
        Some(source) => wanted.extend(
            source
                .headers
                .iter()
                .filter(|(name, _)| is_attribute(name))
                .map(|(name, value)| (name.clone(), value.clone())),
        ),
        None => {
            let policy = core.engine.policy();
            metadata::write(&moving.entry.meta, policy, core.engine.setup.options, &mut wanted);
        }
    }
    let headers = rewritten(head, wanted);
    let source = CopySource {
        bucket,
        key: &key,
        version: None,
        customer_key: client.session().customer_key(),
        etag: Some(&head.etag),
    };
    let begun = Instant::now();
    match copy_object(client, &source, bucket, &key, &headers).await {
        Ok(copied) => {
            core.wrote(moving, &headers, head.size, begun, &copied);
            Ok(Some(MoveResult::METADATA))
        }
        Err(error) if matches!(error.kind, ErrorKind::NotImplemented | ErrorKind::Precondition) => {
            Ok(None)
        }
        Err(error) => Err(Failed::at_target(Operation::SetTimes)(error)),
    }
}

fn is_attribute(name: &HeaderName) -> bool {
    let end = name.as_str().strip_prefix(between::META);
    end.is_some_and(|end| matches!(end, "mtime" | "mode" | "uid" | "gid"))
}

/// Returns the headers of an object that is copied onto itself: its own, overridden by `wanted`.
fn rewritten(head: &ObjectHead, wanted: Headers) -> Headers {
    let mut headers = between::carried(head, &ObjectOptions::default(), b"");
    headers.retain(|(name, _)| !wanted.iter().any(|(other, _)| other == name));
    headers.extend(wanted);
    for name in KEPT {
        if let Some(value) = head.headers.get(name) {
            headers.push((HeaderName::from_static(name), value.clone()));
        }
    }
    let directive = HeaderName::from_static("x-amz-metadata-directive");
    headers.push((directive, HeaderValue::from_static("REPLACE")));
    headers
}

/// Returns the file metadata stored with an object, for messages; missing values come from `meta`.
pub(super) fn as_file(meta: &Meta, head: Option<&ObjectHead>) -> Meta {
    let Some(head) = head else { return *meta };
    let kept = metadata::read(&head.metadata);
    Meta {
        mode: kept.mode.unwrap_or(meta.mode),
        mtime: kept.mtime.unwrap_or(meta.mtime),
        size: head.size,
        ..*meta
    }
}

// Comparison of two entries for `verify`: nothing is moved, the finding is sent to the caller.

/// A request for a comparison: the aspects to compare, and the receiver.
#[derive(Clone, Debug)]
pub struct Checking {
    pub contents: bool,
    /// Times and modes, if both sides have them: those of files are stored in metadata.
    pub attributes: bool,
    /// Types: metadata can mark an object as a symlink.
    pub types: bool,
    /// Texts of symlinks.
    pub links: bool,
    /// Receives the findings.
    pub results: Sender<ComparedPair>,
}

/// Result of comparing two entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairFinding {
    /// Contents are the same, or were not compared.
    Same,
    /// Contents, or the texts of symlinks, differ; from this byte on if that is known.
    Differ(Option<u64>),
    /// The comparison failed; the problem was reported.
    Failed,
}

#[derive(Debug)]
pub struct ComparedPair {
    /// Name relative to the roots.
    pub name: Box<[u8]>,
    /// The source; for an object with the time and mode in its metadata.
    pub source: Meta,
    /// The target, in the same form.
    pub target: Meta,
    /// Whether both sides have a time that can be compared.
    pub times: bool,
    /// Whether both sides have a mode.
    pub modes: bool,
    /// Result for the contents.
    pub finding: PairFinding,
}

/// Compares two entries and sends the result.
pub(in crate::object) async fn check(core: &Core<'_>, mut moving: Moving, asked: &Checking) {
    let target = match &moving.existing {
        Some(existing) => existing.meta,
        None => moving.entry.meta,
    };
    let size = moving.entry.meta.size;
    let mut checked = ComparedPair {
        name: moving.entry.name.clone(),
        source: moving.entry.meta,
        target,
        times: false,
        modes: false,
        finding: PairFinding::Same,
    };
    if let Err(failed) = look(core, &mut moving, asked, &mut checked).await {
        checked.finding = PairFinding::Failed;
        let mut totals = Totals::default();
        core.failed(&moving, failed, &mut totals);
        core.add(totals);
    }
    let lane = core.doing.lane();
    lane.done(1);
    match checked.finding {
        PairFinding::Same if asked.contents => lane.bytes(size),
        _ if asked.contents => lane.settle(size, 0),
        _ => {}
    }
    if checked.finding != PairFinding::Failed {
        core.doing.lane().items(1);
    }
    // The receiver is gone if the comparison was cancelled.
    let _ = asked.results.send(checked);
}

/// Replaces the metadata of a local symlink by those of its referent, if it exists.
fn follow(root: &Root, entry: &mut Entry) {
    if let Root::Local { dir, .. } = root
        && let Ok(name) = CString::new(&*entry.name)
        && let Ok(there) = meta::of(dir.as_fd(), &name, true)
    {
        entry.meta = there;
    }
}

async fn look(
    core: &Core<'_>,
    moving: &mut Moving,
    asked: &Checking,
    checked: &mut ComparedPair,
) -> Result<(), Failed> {
    let Heads { source, target } = heads(core, moving, &KnownFacts::default()).await?;
    if asked.attributes {
        let has = |head: &Option<ObjectHead>| match head {
            None => (true, true),
            Some(head) => {
                let kept = metadata::read(&head.metadata);
                (kept.mtime.is_some(), kept.mode.is_some())
            }
        };
        let (a, b) = (has(&source), has(&target));
        checked.times = a.0 && b.0;
        checked.modes = a.1 && b.1;
    }
    checked.source = as_file(&checked.source, source.as_ref());
    checked.target = as_file(&checked.target, target.as_ref());
    if asked.types {
        let is_link = |head: &Option<_>| head.as_ref().is_some_and(metadata::says_symlink);
        for (meta, head) in [(&mut checked.source, &source), (&mut checked.target, &target)] {
            meta.kind = if is_link(head) { Kind::Symlink } else { meta.kind };
        }
        // Next to an object that is not a symlink, a local symlink stands for its referent.
        if checked.source.kind != checked.target.kind {
            if target.is_some() && checked.source.kind == Kind::Symlink {
                follow(&moving.pair.source, &mut moving.entry);
                checked.source = moving.entry.meta;
            } else if let (Some(_), Some(existing)) = (&source, &mut moving.existing)
                && checked.target.kind == Kind::Symlink
            {
                follow(&moving.pair.target, existing);
                checked.target = existing.meta;
            }
        }
        if checked.source.kind != checked.target.kind {
            return Ok(());
        }
    }
    let is_link = checked.source.kind == Kind::Symlink;
    if is_link && !asked.links {
        return Ok(());
    }
    if is_link && checked.source.size != checked.target.size {
        checked.finding = PairFinding::Differ(None);
        return Ok(());
    }
    // It changed since it was listed: the current state is compared.
    if checked.source.size != checked.target.size || !(asked.contents || is_link) {
        return Ok(());
    }
    if let Some(size) = source.as_ref().map(|head| head.size)
        && size != moving.entry.meta.size
    {
        let reason = "it changed while it was being compared";
        return Err(Failed::Reason(Operation::Compare, Side::Source, reason));
    }
    let what = Compared { moving, source: source.as_ref(), target: target.as_ref(), strict: true };
    checked.finding = match compare(core, &what).await? {
        Contents::Same => PairFinding::Same,
        Contents::Differ(offset) => PairFinding::Differ(offset),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: i64) -> Time {
        Time { s, ns: 0 }
    }

    fn file(s: i64) -> SideFacts {
        let (mtime, mode) = (Some(at(s)), Some(0o644));
        let kind = Some(Kind::File);
        SideFacts { is_local: true, changed: at(s), mtime, mode, owner: (Some(0), Some(0)), kind }
    }

    fn object(changed: i64, mtime: Option<i64>) -> SideFacts {
        let mtime = mtime.map(at);
        let owner = (None, None);
        SideFacts { is_local: false, changed: at(changed), mtime, mode: None, owner, kind: None }
    }

    fn policy() -> Policy {
        Policy::default()
    }

    #[test]
    fn times_decide_where_nothing_else_is_asked() {
        use Need::{Nothing, Transfer};
        for (source, target, need) in [
            // Upload: the mtime in metadata counts, not the time of upload.
            (file(100), object(500, Some(100)), Nothing),
            (file(101), object(500, Some(100)), Transfer),
            (file(99), object(500, Some(100)), Transfer),
            // Upload over an object without an mtime.
            (file(100), object(500, None), Nothing),
            (file(501), object(500, None), Transfer),
            (file(500), object(500, None), Nothing),
            // Download.
            (object(500, Some(100)), file(100), Nothing),
            (object(500, Some(100)), file(500), Transfer),
            (object(500, None), file(500), Nothing),
            (object(500, None), file(600), Transfer),
            // From store to store.
            (object(500, Some(100)), object(600, Some(100)), Nothing),
            (object(500, Some(100)), object(600, Some(101)), Transfer),
            (object(500, None), object(600, None), Nothing),
            (object(700, None), object(600, None), Transfer),
            (object(500, Some(100)), object(600, None), Nothing),
            (object(700, None), object(600, Some(100)), Transfer),
        ] {
            assert_eq!(
                judge(&source, &target, &policy(), Grain::NS),
                need,
                "{source:?} {target:?}"
            );
        }
    }

    #[test]
    fn options_decide_first() {
        let (old, new) = (file(100), object(500, Some(200)));
        let update = Policy { update: true, ..policy() };
        assert_eq!(judge(&old, &new, &update, Grain::NS), Need::Nothing);
        assert_eq!(judge(&file(300), &new, &update, Grain::NS), Need::Transfer);
        let checksum = Policy { checksum: true, ..policy() };
        assert_eq!(judge(&old, &new, &checksum, Grain::NS), Need::Contents);
        let sizes = Policy { size_only: true, ..policy() };
        assert_eq!(judge(&old, &new, &sizes, Grain::NS), Need::Metadata);
        let again = Policy { ignore_times: true, ..policy() };
        assert_eq!(judge(&file(200), &new, &again, Grain::NS), Need::Transfer);
        let both = Policy { ignore_times: true, checksum: true, ..policy() };
        assert_eq!(judge(&file(200), &new, &both, Grain::NS), Need::Contents);
        let link = SideFacts { kind: Some(Kind::Symlink), ..new };
        assert_eq!(judge(&file(200), &link, &policy(), Grain::NS), Need::Transfer);
        let local = SideFacts { kind: Some(Kind::Symlink), ..file(500) };
        assert_eq!(judge(&object(500, None), &local, &policy(), Grain::NS), Need::Transfer);
        assert_eq!(
            judge(&link, &SideFacts { mtime: Some(at(200)), ..local }, &policy(), Grain::NS),
            Need::Nothing
        );
    }

    #[test]
    fn attributes_that_are_known_on_both_sides_count() {
        let with = |mode| SideFacts { mode, ..object(500, Some(100)) };
        let p = policy();
        assert_eq!(attributes(&file(100), &with(Some(0o600)), &p, Grain::NS), Need::Metadata);
        assert_eq!(attributes(&file(100), &with(None), &p, Grain::NS), Need::Nothing);
        assert_eq!(attributes(&file(101), &with(Some(0o644)), &p, Grain::NS), Need::Metadata);
        let owned = |uid, gid| SideFacts { owner: (uid, gid), ..object(500, Some(100)) };
        assert_eq!(attributes(&owned(Some(1), None), &file(100), &p, Grain::NS), Need::Metadata);
        assert_eq!(attributes(&owned(None, Some(1)), &file(100), &p, Grain::NS), Need::Metadata);
        assert_eq!(attributes(&owned(Some(0), Some(0)), &file(100), &p, Grain::NS), Need::Nothing);
        assert_eq!(attributes(&owned(None, None), &file(100), &p, Grain::NS), Need::Nothing);
        assert_eq!(attributes(&object(500, None), &file(100), &p, Grain::NS), Need::Metadata);
        assert_eq!(attributes(&object(100, None), &file(100), &p, Grain::NS), Need::Nothing);
    }

    #[test]
    fn times_that_travel_count_to_the_granularity_of_the_file_system() {
        let late = |known: SideFacts| SideFacts {
            mtime: known.mtime.map(|at| Time { ns: 5, ..at }),
            ..known
        };
        let (file, kept) = (late(file(100)), object(500, Some(100)));
        assert_eq!(judge(&file, &kept, &policy(), Grain::NS), Need::Transfer);
        assert_eq!(judge(&kept, &file, &policy(), Grain::NS), Need::Transfer);
        assert_eq!(judge(&kept, &file, &policy(), Grain::S), Need::Nothing);
        // The time of an upload has whole seconds.
        let plain = SideFacts { changed: Time { s: 100, ns: 7 }, ..object(100, None) };
        assert_eq!(judge(&plain, &file, &policy(), Grain::NS), Need::Nothing);
    }
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
        let way = ComparisonMethod::Whole(sum);
        let of = |bytes: &[u8], strict| try_way(&file_of(bytes), 600_000, &way, strict).unwrap();
        assert_eq!(of(&bytes, false), Some(true));
        assert_eq!(of(&bytes, true), Some(true));
        let short = &bytes[..599_999];
        assert_eq!((of(short, false), of(short, true)), (Some(false), None));
    }

    #[test]
    fn an_object_keeps_what_a_copy_onto_itself_forgets() {
        let header = |name: &'static str, value: &'static str| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let all = [
            header("content-type", "a/b"),
            header("x-amz-meta-mtime", "1"),
            header("x-amz-meta-who", "me"),
            header("x-amz-storage-class", "GLACIER_IR"),
            header("x-amz-version-id", "v"),
        ];
        let head = ObjectHead { headers: all.into_iter().collect(), ..ObjectHead::default() };
        let mut found: Vec<_> = rewritten(&head, vec![header("x-amz-meta-mtime", "2")])
            .into_iter()
            .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
            .collect();
        found.sort();
        assert_eq!(
            found,
            [
                "content-type=a/b",
                "x-amz-meta-mtime=2",
                "x-amz-meta-who=me",
                "x-amz-metadata-directive=REPLACE",
                "x-amz-storage-class=GLACIER_IR"
            ]
        );
    }
}
