//! Copies between two endpoints or accounts: every byte passes through this machine once, in memory, and is checked
//! against the source store's checksum.

use super::copy::{Sent, Upload, carried, refused};
use super::entry::{CHANGED, Failed, MoveResult, MoveTarget, Moving, Object, Step, read_failed};
use super::parts::{Cut, Reader, joined};
use super::put::{PART_BYTES_MIN, TOO_LARGE};
use super::queue::{Large, Permits};
use super::runtime::{Core, ObjectEngine};
use super::{Side, copy as between};
use crate::compare::cheapest;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_s3::ops::{
    CreatedUpload, Headers, ObjectHead, Range, create_upload, get_tags, put_object, upload_part,
};
use hakobu_s3::{Algorithm, Checksum};
use http::{HeaderName, HeaderValue};
use std::sync::Arc;
use std::time::Instant;

/// Default part size of larger objects, in bytes.
const PART_BYTES: u64 = 16 << 20;

const TAGGING: HeaderName = HeaderName::from_static("x-amz-tagging");
const TAGGING_COUNT: &str = "x-amz-tagging-count";

const CORRUPT: &str = "what arrived differs from the stored checksum";

/// A large object being relayed.
pub struct LargeRelay {
    upload: Upload,
    /// The source's headers when it began.
    head: ObjectHead,
    /// The checksum algorithm of each part sent to the target.
    algorithm: Option<Algorithm>,
}

/// Copies a small object, or begins with a large one.
pub(super) async fn begin(core: &Core<'_>, moving: &Arc<Moving>) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    if options.if_none_match && moving.existing.is_some() {
        return Ok(Step::Done(MoveResult::LEFT_OUT));
    }
    let source = Object::source(core, moving)?;
    let size = moving.entry.meta.size;
    match size <= options.part_bytes.unwrap_or(PART_BYTES).min(core.engine.budget.bytes_max()) {
        true => small(core, moving, &source).await.map(Step::Done),
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
    head: &ObjectHead,
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

/// Copies with one GET and one PUT.
async fn small(
    core: &Core<'_>,
    moving: &Arc<Moving>,
    source: &Object<'_>,
) -> Result<MoveResult, Failed> {
    let options = &core.engine.setup.options;
    let MoveTarget { client, bucket, key } = MoveTarget::of(core, moving)?;
    let size = moving.entry.meta.size;
    let _room = core.room(size).await;
    let from = core.store(Side::Source)?;
    let mut reader = Reader::new(core, from, source, Range { start: 0, end: size }, size);
    let head = reader.head().await.map_err(read_failed)?.clone();
    if head.size != size {
        return Err(Failed::Reason(Operation::Read, Side::Source, CHANGED));
    }
    core.observed(moving, Side::Source, &head);
    let body = reader.all().await.map_err(read_failed)?;
    core.doing.turn(Phase::Compute);
    let checked = cheapest(&head.checksums).filter(|_| from.session().checks_downloads());
    let ours = checked.map(|sum| Checksum::of(sum.algorithm, &body));
    if ours.as_ref() != checked {
        return Err(Failed::Reason(Operation::Read, Side::Source, CORRUPT));
    }
    let algorithm = client.session().upload_checksum();
    let sum = match ours.filter(|sum| Some(sum.algorithm) == algorithm) {
        Some(sum) => Some(sum),
        None => algorithm.map(|algorithm| Checksum::of(algorithm, &body)),
    };
    let mut headers = carried(&head, options, &key);
    headers.extend(tags(core, source, &head, &headers).await?);
    headers.extend(between::condition(core, moving));
    let begun = Instant::now();
    match put_object(client, bucket, &key, body, sum.as_ref(), &headers).await {
        Ok(put) => {
            core.wrote(moving, &headers, size, begun, &put);
            Ok(MoveResult { bytes: size, ..MoveResult::default() })
        }
        Err(error) => refused(core, error),
    }
}

/// Begins an upload whose parts several cores send.
async fn open(core: &Core<'_>, moving: &Arc<Moving>, source: &Object<'_>) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    let MoveTarget { client, bucket, key } = MoveTarget::of(core, moving)?;
    let head = source.head(core.store(Side::Source)?).await.map_err(read_failed)?;
    between::same_source(&head, source, moving)?;
    let memory_bytes = core.engine.budget.bytes_max();
    let usual = PART_BYTES.min(memory_bytes / 2).max(PART_BYTES_MIN);
    let cut = Cut::new(head.size, options.part_bytes.unwrap_or(usual));
    if cut.part_bytes > memory_bytes {
        return Err(Failed::Reason(Operation::Write, Side::Target, TOO_LARGE));
    }
    let mut headers = carried(&head, options, &key);
    headers.extend(tags(core, source, &head, &headers).await?);
    let algorithm = client.session().upload_checksum();
    core.observed(moving, Side::Source, &head);
    let begun = Instant::now();
    let created = create_upload(client, bucket, &key, algorithm, &headers).await;
    let CreatedUpload { id, algorithm } = created.map_err(Failed::at_target(Operation::Write))?;
    let created = (id, headers, begun);
    let (upload, permits) = Upload::begun(core, moving, created, cut, Some(memory_bytes));
    Ok(Step::Parts(Arc::new(LargeRelay { upload, head, algorithm }), permits))
}

impl LargeRelay {
    /// Returns the source's checksum, if those of the parts can be combined into it.
    fn whole(&self) -> Option<&Checksum> {
        cheapest(&self.head.checksums).filter(|sum| sum.algorithm == Algorithm::Crc64Nvme)
    }
}

impl Large for LargeRelay {
    fn permits(&self) -> &Permits {
        &self.upload.permits
    }

    fn streams_max(&self, engine: &ObjectEngine<'_>) -> usize {
        self.upload.streams_max(engine)
    }

    async fn move_part(&self, core: &Core<'_>, number: u32) -> Result<(), Failed> {
        let Upload { moving, cut, id, .. } = &self.upload;
        let mut source = Object::source(core, moving)?;
        source.etag = Some(&*self.head.etag).filter(|etag| !etag.is_empty());
        let MoveTarget { client, bucket, key } = MoveTarget::of(core, moving)?;
        let from = core.store(Side::Source)?;
        let _room = core.room(cut.bytes(number)).await;
        let mut reader = Reader::new(core, from, &source, cut.range(number), cut.size);
        let body = reader.all().await.map_err(read_failed)?;
        core.doing.turn(Phase::Compute);
        let crc64 = (self.algorithm == Some(Algorithm::Crc64Nvme) || self.whole().is_some())
            .then(|| Checksum::of(Algorithm::Crc64Nvme, &body));
        let sum = match self.algorithm {
            Some(Algorithm::Crc64Nvme) => crc64.clone(),
            other => other.map(|algorithm| Checksum::of(algorithm, &body)),
        };
        let part = upload_part(client, bucket, &key, id, number, body, sum.as_ref()).await;
        let part = part.map_err(Failed::at_target(Operation::Write))?;
        self.upload.note(Sent { part, crc64 });
        Ok(())
    }

    async fn end(self: Arc<Self>, core: &Core<'_>) {
        let result = complete(core, &self).await;
        if !matches!(result, Ok(MoveResult { skipped: false, .. })) {
            self.upload.abort(core).await;
        }
        core.finish(&self.upload.moving, result).await;
        core.engine.queue.finished();
    }
}

async fn complete(core: &Core<'_>, large: &LargeRelay) -> Result<MoveResult, Failed> {
    let sent = large.upload.parts()?;
    let whole = joined(sent.iter().map(|sent| (sent.crc64.as_ref(), sent.part.size)));
    let checks = core.store(Side::Source)?.session().checks_downloads();
    if checks && large.whole().is_some_and(|stored| Some(stored) != whole.as_ref()) {
        return Err(Failed::Reason(Operation::Read, Side::Source, CORRUPT));
    }
    let whole = whole.filter(|_| large.algorithm == Some(Algorithm::Crc64Nvme));
    large.upload.complete(core, sent, whole.as_ref()).await
}
