//! Copies between two endpoints or accounts: every byte passes through this machine once, in memory, and is checked
//! against the source store's checksum.

use super::Side;
use super::between::{self, Sending, Sent, Upload, carried};
use super::core::Core;
use super::failed::Failed;
use super::moving::{Done, Moving, Step};
use super::put::TOO_LARGE;
use super::put::cut::PART_BYTES_MIN;
use super::reader::{CHANGED, Object, Reader, read_failed};
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_s3::ops::{
    Begun, Head, Headers, Range, complete_upload, create_upload, get_tags, head_object, put_object,
    upload_part,
};
use hakobu_s3::{Algorithm, Checksum, Error, Kind, combine_crc64};
use http::{HeaderName, HeaderValue};
use std::sync::Arc;

/// Default part size of larger objects, in bytes.
const PART_BYTES: u64 = 16 << 20;

const TAGGING: HeaderName = HeaderName::from_static("x-amz-tagging");
const TAGGING_COUNT: &str = "x-amz-tagging-count";

const CORRUPT: &str = "what arrived is not what its store has the checksum of";

/// A large object being relayed.
pub struct Large {
    upload: Upload,
    /// The source's headers when it began.
    head: Head,
    /// The checksum algorithm of each part sent to the target.
    algorithm: Option<Algorithm>,
}

/// Copies a small object, or begins with a large one.
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

/// Returns the tags of an object as a header for its copy; none if it has none, or if others were requested.
///
/// # Errors
/// Those of the request. Unreadable tags are an error, because CopyObject would copy them.
pub(super) async fn tags(
    core: &Core<'_>,
    source: &Object<'_>,
    head: &Head,
    asked: &Headers,
) -> Result<Option<(HeaderName, HeaderValue)>, Failed> {
    let count = head.headers.get(TAGGING_COUNT).map_or("0", |count| count.to_str().unwrap_or(""));
    if count == "0" || asked.iter().any(|(name, _)| *name == TAGGING) {
        return Ok(None);
    }
    let client = core.store(Side::Source)?;
    let tags = get_tags(client, source.bucket, &source.key, source.version).await;
    let tags = tags.map_err(read_failed)?;
    if tags.split('&').filter(|tag| !tag.is_empty()).count().to_string() != count {
        let why = "the server told other tags of it than it counted";
        return Err(Failed::Reason(Operation::Read, Side::Source, why));
    }
    let unusable = Failed::Reason(Operation::Read, Side::Source, "its tags fit into no header");
    HeaderValue::try_from(tags).map(|value| Some((TAGGING, value))).map_err(|_| unusable)
}

/// Returns the stored checksum of a full object that is cheapest to compare.
fn stored(head: &Head) -> Option<&Checksum> {
    head.checksums.iter().filter(|sum| sum.parts == 0).min_by_key(|sum| cost(sum.algorithm))
}

/// Ranks algorithms by cost, the cheapest lowest.
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

/// Returns the result of a failed write to the target: skipped if its condition did not hold.
fn refused(core: &Core<'_>, error: Error) -> Result<Done, Failed> {
    let setup = &core.engine.setup;
    let is_conditional = setup.options.if_none_match || setup.control.is_leased();
    match error.kind == Kind::Precondition && is_conditional {
        true => Ok(Done { skipped: true, ..Done::default() }),
        false => Err(written(error)),
    }
}

/// Copies with one GET and one PUT.
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
    headers.extend(between::condition(core, moving));
    match put_object(client, bucket, &key, body, sum.as_ref(), &headers).await {
        Ok(_) => Ok(Step::Done(Done { bytes: size, ..Done::default() })),
        Err(error) => refused(core, error).map(Step::Done),
    }
}

/// Begins an upload whose parts several cores send.
async fn open(core: &Core<'_>, moving: &Arc<Moving>, source: &Object<'_>) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    let (bucket, key) = between::target(moving)?;
    let client = core.store(Side::Target)?;
    let from = core.store(Side::Source)?;
    let head = head_object(from, source.bucket, &source.key, source.version).await;
    let head = head.map_err(read_failed)?;
    between::same_source(&head, source, moving)?;
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
    let (upload, permits) = Upload::begun(core, moving, id, head.size, usual, Some(memory_bytes));
    Ok(Step::Parts(Arc::new(Large { upload, head, algorithm }), permits))
}

impl Large {
    /// Returns the source's checksum, if those of the parts can be combined into it.
    fn whole(&self) -> Option<&Checksum> {
        stored(&self.head).filter(|sum| sum.algorithm == Algorithm::Crc64Nvme)
    }
}

impl Sending for Large {
    fn upload(&self) -> &Upload {
        &self.upload
    }

    async fn send(&self, core: &Core<'_>, number: u32, range: Range) -> Result<Sent, Failed> {
        let moving = &self.upload.moving;
        let mut source = between::source(core, moving)?;
        source.etag = Some(&*self.head.etag).filter(|etag| !etag.is_empty());
        let (bucket, key) = between::target(moving)?;
        let client = core.store(Side::Target)?;
        let from = core.store(Side::Source)?;
        let bytes = range.end - range.start;
        let _room = core.room(bytes).await;
        let mut reader = Reader::new(core, from, &source, range, self.upload.size);
        let body = reader.all().await.map_err(read_failed)?;
        core.doing.turn(Phase::Compute);
        let crc64 = (self.algorithm == Some(Algorithm::Crc64Nvme) || self.whole().is_some())
            .then(|| Checksum::of(Algorithm::Crc64Nvme, &body));
        let sum = match self.algorithm {
            Some(Algorithm::Crc64Nvme) => crc64.clone(),
            other => other.map(|algorithm| Checksum::of(algorithm, &body)),
        };
        let id = &self.upload.id;
        let part = upload_part(client, bucket, &key, id, number, body, sum.as_ref()).await;
        let part = part.map_err(written)?;
        Ok(Sent { part, bytes, crc64: crc64.as_ref().and_then(number_of) })
    }

    async fn end(&self, core: &Core<'_>) {
        let result = complete(core, self).await;
        if !matches!(result, Ok(Done { skipped: false, .. })) {
            self.upload.abort(core).await;
        }
        core.finish(&self.upload.moving, result).await;
        core.engine.queue.finished();
    }
}

/// Returns a CRC-64 as a number.
fn number_of(sum: &Checksum) -> Option<u64> {
    Some(u64::from_be_bytes(sum.value.as_slice().try_into().ok()?))
}

/// Returns the combined CRC-64 of all parts; `None` if one of them has none.
fn joined(parts: &[Sent]) -> Option<Checksum> {
    let mut whole = None;
    for sent in parts {
        let next = sent.crc64?;
        whole = Some(whole.map_or(next, |first| combine_crc64(first, next, sent.bytes)));
    }
    let value = whole?.to_be_bytes().to_vec();
    Some(Checksum { algorithm: Algorithm::Crc64Nvme, value, parts: 0 })
}

async fn complete(core: &Core<'_>, large: &Large) -> Result<Done, Failed> {
    let moving = &large.upload.moving;
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
    let headers: Headers = between::condition(core, moving).into_iter().collect();
    let completed =
        complete_upload(client, bucket, &key, id, &parts, size, whole.as_ref(), &headers).await;
    match completed {
        Ok(_) => Ok(Done { bytes: size, ..Done::default() }),
        Err(error) => refused(core, error),
    }
}
