//! Copies between two endpoints or accounts: every byte passes through this machine once, in
//! memory, and is checked against what the source's store knows of it before it counts.

use super::Side;
use super::between::{self, Sent, Upload, carried};
use super::core::{Core, Engine, Large as Parts};
use super::moving::{Done, Failed, Moving, Step};
use super::put::TOO_LARGE;
use super::put::cut::PART_BYTES_MIN;
use super::reader::{CHANGED, Object, Reader, read_failed};
use crate::error::Operation;
use crate::event::Event;
use crate::meter::Phase;
use crate::s3::ops::{
    Begun, Head, Headers, Range, complete_upload, create_upload, get_tags, head_object, put_object,
    upload_part,
};
use crate::s3::{Algorithm, Checksum, Error, Kind, combine_crc64};
use http::{HeaderName, HeaderValue};
use std::sync::Arc;

/// Larger objects go in parts of this size, where none was asked for.
const PART_BYTES: u64 = 16 << 20;

const TAGGING: HeaderName = HeaderName::from_static("x-amz-tagging");
const TAGGING_COUNT: &str = "x-amz-tagging-count";

const CORRUPT: &str = "what arrived is not what its store has the checksum of";

/// A large object on this way.
pub struct Large {
    upload: Upload,
    /// The source when it began.
    head: Head,
    /// What the target is told of each part.
    algorithm: Option<Algorithm>,
}

/// Moves a small entry, or begins with a large one.
pub(super) async fn begin(core: &Core<'_>, moving: &Arc<Moving>) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    if options.if_none_match && moving.existing.is_some() {
        return Ok(Step::Done(Done { skipped: true, ..Done::default() }));
    }
    let source = between::source(core, moving)?;
    let size = moving.entry.meta.size;
    match size <= options.part_bytes.unwrap_or(PART_BYTES).min(core.engine.budget.bytes_max()) {
        true => small(core, moving, &source).await,
        false => open(core, moving, &source).await,
    }
}

/// The tags of an object as a header for its copy; nothing where it has none, or where others were
/// asked for.
///
/// # Errors
/// The request's. Tags that may not be read are left out, as CopyObject would not leave them: that
/// is an error.
pub(super) async fn tags(
    core: &Core<'_>,
    source: &Object<'_>,
    head: &Head,
    asked: &Headers,
) -> Result<Option<(HeaderName, HeaderValue)>, Failed> {
    let has_tags = head.headers.get(TAGGING_COUNT).is_some_and(|count| count.as_bytes() != b"0");
    if !has_tags || asked.iter().any(|(name, _)| *name == TAGGING) {
        return Ok(None);
    }
    let client = core.store(Side::Source)?;
    let tags = get_tags(client, source.bucket, &source.key, source.version).await;
    let tags = tags.map_err(read_failed)?;
    Ok(HeaderValue::try_from(tags).ok().map(|value| (TAGGING, value)))
}

/// The stored checksum of a full object that costs least to compare with.
fn stored(head: &Head) -> Option<&Checksum> {
    head.checksums.iter().filter(|sum| sum.parts == 0).min_by_key(|sum| cost(sum.algorithm))
}

/// Which algorithm to take where several would do: the cheapest first.
pub(super) fn cost(algorithm: Algorithm) -> u8 {
    match algorithm {
        Algorithm::Crc64Nvme => 0,
        Algorithm::Crc32c => 1,
        Algorithm::Crc32 => 2,
        Algorithm::Sha1 => 3,
        Algorithm::Sha256 => 4,
        Algorithm::Md5 => 5,
    }
}

fn written(error: Error) -> Failed {
    Failed::Request(Operation::Write, Side::Target, error)
}

/// One GET, one PUT.
async fn small(core: &Core<'_>, moving: &Arc<Moving>, source: &Object<'_>) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    let (bucket, key) = between::target(moving)?;
    let client = core.store(Side::Target)?;
    let size = moving.entry.meta.size;
    let _room = core.room(size).await;
    let from = core.store(Side::Source)?;
    let mut reader = Reader::new(core, from, source, Range { start: 0, end: size }, size);
    let head = reader.head().await.map_err(read_failed)?.clone();
    if head.size != size {
        return Err(Failed::Reason(Operation::Read, Side::Source, CHANGED));
    }
    let body = reader.all().await.map_err(read_failed)?;
    core.doing.turn(Phase::Compute);
    let checked = stored(&head).filter(|_| from.store().checks_downloads());
    let ours = checked.map(|sum| Checksum::of(sum.algorithm, &body));
    if ours.as_ref() != checked {
        return Err(Failed::Reason(Operation::Read, Side::Source, CORRUPT));
    }
    let algorithm = client.store().upload_checksum();
    let sum = match ours.filter(|sum| Some(sum.algorithm) == algorithm) {
        Some(sum) => Some(sum),
        None => algorithm.map(|algorithm| Checksum::of(algorithm, &body)),
    };
    let mut headers = carried(&head, options, &key);
    headers.extend(tags(core, source, &head, &headers).await?);
    headers.extend(between::conditions(options));
    match put_object(client, bucket, &key, body, sum.as_ref(), &headers).await {
        Ok(_) => Ok(Step::Done(Done { bytes: size, ..Done::default() })),
        Err(error) if error.kind == Kind::Precondition && options.if_none_match => {
            Ok(Step::Done(Done { skipped: true, ..Done::default() }))
        }
        Err(error) => Err(written(error)),
    }
}

/// Begins an upload that several cores fill.
async fn open(core: &Core<'_>, moving: &Arc<Moving>, source: &Object<'_>) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    let (bucket, key) = between::target(moving)?;
    let client = core.store(Side::Target)?;
    let from = core.store(Side::Source)?;
    let head = head_object(from, source.bucket, &source.key, source.version).await;
    let head = head.map_err(read_failed)?;
    if source.etag.is_some_and(|etag| etag != head.etag) || head.size != moving.entry.meta.size {
        return Err(Failed::Reason(Operation::Read, Side::Source, CHANGED));
    }
    let memory_bytes = core.engine.budget.bytes_max();
    let usual = PART_BYTES.min(memory_bytes / 2).max(PART_BYTES_MIN);
    if between::part_bytes(head.size, options.part_bytes.unwrap_or(usual)) > memory_bytes {
        return Err(Failed::Reason(Operation::Write, Side::Target, TOO_LARGE));
    }
    let mut headers = carried(&head, options, &key);
    headers.extend(tags(core, source, &head, &headers).await?);
    let algorithm = client.store().upload_checksum();
    let begun = create_upload(client, bucket, &key, algorithm, &headers).await.map_err(written)?;
    let Begun { id, algorithm } = begun;
    let (upload, rights) = Upload::begun(core, moving, id, head.size, usual, Some(memory_bytes));
    Ok(Step::Parts(Arc::new(Parts::Relay(Large { upload, head, algorithm })), rights))
}

impl Large {
    /// Counts as many more rights as may be handed out by now, and returns how many.
    pub(super) fn widen(&self, engine: &Engine<'_>) -> usize {
        self.upload.widen(engine)
    }
}

/// Works on the next part; then gives the right back to the queue (`Queue::again`), or ends the
/// whole (`Core::finish` and `Queue::finished`, once) when it was the last or everything failed.
pub(super) async fn part(core: &Core<'_>, shared: &Arc<Parts>, large: &Large) {
    let send = async |number, range| one_part(core, large, number, range).await;
    large.upload.work(core, shared, send, async || end(core, large).await).await;
}

impl Large {
    /// The source's checksum, where the parts' can be combined into it.
    fn whole(&self) -> Option<&Checksum> {
        stored(&self.head).filter(|sum| sum.algorithm == Algorithm::Crc64Nvme)
    }
}

async fn one_part(
    core: &Core<'_>,
    large: &Large,
    number: u32,
    range: Range,
) -> Result<Sent, Failed> {
    let moving = &large.upload.moving;
    let mut source = between::source(core, moving)?;
    source.etag = Some(&*large.head.etag).filter(|etag| !etag.is_empty());
    let (bucket, key) = between::target(moving)?;
    let client = core.store(Side::Target)?;
    let from = core.store(Side::Source)?;
    let bytes = range.end - range.start;
    let _room = core.room(bytes).await;
    let mut reader = Reader::new(core, from, &source, range, large.upload.size);
    let body = reader.all().await.map_err(read_failed)?;
    core.doing.turn(Phase::Compute);
    let crc64 = (large.algorithm == Some(Algorithm::Crc64Nvme) || large.whole().is_some())
        .then(|| Checksum::of(Algorithm::Crc64Nvme, &body));
    let sum = match large.algorithm {
        Some(Algorithm::Crc64Nvme) => crc64.clone(),
        other => other.map(|algorithm| Checksum::of(algorithm, &body)),
    };
    let id = &large.upload.id;
    let part = upload_part(client, bucket, &key, id, number, body, sum.as_ref()).await;
    let part = part.map_err(written)?;
    core.engine.setup.listener.event(Event::LargeBytes { bytes, undrained: None });
    Ok(Sent { part, bytes, crc64: crc64.as_ref().and_then(number_of) })
}

/// A CRC-64 as a number.
fn number_of(sum: &Checksum) -> Option<u64> {
    Some(u64::from_be_bytes(sum.value.as_slice().try_into().ok()?))
}

/// The CRC-64 of all parts joined; `None` where one of them has none.
fn joined(parts: &[Sent]) -> Option<Checksum> {
    let mut whole = None;
    for sent in parts {
        let next = sent.crc64?;
        whole = Some(whole.map_or(next, |first| combine_crc64(first, next, sent.bytes)));
    }
    let value = whole?.to_be_bytes().to_vec();
    Some(Checksum { algorithm: Algorithm::Crc64Nvme, value, parts: 0 })
}

/// Completes the upload, or gives it up.
async fn end(core: &Core<'_>, large: &Large) {
    let result = complete(core, large).await;
    if !matches!(result, Ok(Done { skipped: false, .. })) {
        large.upload.abort(core).await;
    }
    core.finish(&large.upload.moving, result).await;
    core.engine.queue.finished();
}

async fn complete(core: &Core<'_>, large: &Large) -> Result<Done, Failed> {
    let moving = &large.upload.moving;
    let options = &core.engine.setup.options;
    let sent = large.upload.parts()?;
    let whole = joined(&sent);
    let checks = core.store(Side::Source)?.store().checks_downloads();
    if checks && large.whole().is_some_and(|stored| Some(stored) != whole.as_ref()) {
        return Err(Failed::Reason(Operation::Read, Side::Source, CORRUPT));
    }
    let parts: Vec<_> = sent.into_iter().map(|sent| sent.part).collect();
    let (bucket, key) = between::target(moving)?;
    let client = core.store(Side::Target)?;
    let (id, size) = (&large.upload.id, large.upload.size);
    let whole = whole.filter(|_| large.algorithm == Some(Algorithm::Crc64Nvme));
    let headers = between::conditions(options);
    let completed =
        complete_upload(client, bucket, &key, id, &parts, size, whole.as_ref(), &headers).await;
    match completed {
        Ok(_) => Ok(Done { bytes: size, ..Done::default() }),
        Err(error) if error.kind == Kind::Precondition && options.if_none_match => {
            Ok(Done { skipped: true, ..Done::default() })
        }
        Err(error) => Err(written(error)),
    }
}
