//! Server-side copies: up to 5 GiB in one request, larger ones in parts. If the server cannot copy, the object goes
//! through this machine.

use super::between::{self, Sent, Upload, carried, is_metadata};
use super::core::{Core, Engine};
use super::cut::Cut;
use super::ends::{CHANGED, Object, Target, read_failed};
use super::failed::Failed;
use super::moving::{Done, Moving, Step};
use super::permits::{Large, Permits};
use super::{ObjectOptions, Side, relay};
use hakobu_core::error::Operation;
use hakobu_s3::ops::{
    CopySource, CreatedUpload, Headers, ObjectHead, copy_object, create_upload, upload_part_copy,
};
use hakobu_s3::{Algorithm, Checksum, Error, ErrorKind};
use http::{HeaderName, HeaderValue};
use std::sync::Arc;

/// Maximum bytes that CopyObject copies (API reference, CopyObject).
pub(super) const ONE_COPY_BYTES_MAX: u64 = 5 << 30;
/// Part size of larger objects, in bytes: large, as no byte passes through this machine.
const PART_BYTES: u64 = 512 << 20;

const METADATA_DIRECTIVE: HeaderName = HeaderName::from_static("x-amz-metadata-directive");
const TAGGING: HeaderName = HeaderName::from_static("x-amz-tagging");
const TAGGING_DIRECTIVE: HeaderName = HeaderName::from_static("x-amz-tagging-directive");
const CHECKSUM_ALGORITHM: HeaderName = HeaderName::from_static("x-amz-checksum-algorithm");
const REPLACE: HeaderValue = HeaderValue::from_static("REPLACE");

const ONTO_ITSELF: &str =
    "source and target are the same object, and nothing is to be changed in it";
const MOVED_ONTO_ITSELF: &str = "source and target are the same object: moving it would remove it";
const OTHER_COPY: &str = "the copy has another size or checksum than its source";

/// A large object being copied by the server.
pub struct LargeCopy {
    upload: Upload,
    /// The source's metadata when it began.
    head: ObjectHead,
    /// The source's checksum, if it can be combined from those of parts.
    whole: Option<Checksum>,
}

/// Copies a small object, or begins with a large one.
pub(super) async fn begin(core: &Core<'_>, moving: &Arc<Moving>) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    let source = Object::source(core, moving)?;
    let target = Target::of(core, moving)?;
    if source.bucket == target.bucket && source.key == target.key {
        if core.engine.policy().remove_source_files {
            return Err(Failed::Reason(Operation::Write, Side::Target, MOVED_ONTO_ITSELF));
        }
        // An older version may be copied onto the newest one.
        if !options.replace_metadata && options.headers.is_empty() && source.version.is_none() {
            return Err(Failed::Reason(Operation::Write, Side::Target, ONTO_ITSELF));
        }
    }
    if options.if_none_match && is_there(&target).await? {
        return Ok(Step::Done(Done::SKIPPED));
    }
    let copied = match moving.entry.meta.size {
        0..=ONE_COPY_BYTES_MAX => whole(core, moving, &source, &target).await.map(Step::Done),
        _ => open(core, moving, &source, &target).await,
    };
    match copied {
        Err(Failed::Request(_, _, error)) if error.kind == ErrorKind::NotImplemented => {
            relay::begin(core, moving).await
        }
        other => other,
    }
}

/// Returns whether an object exists at the target now.
async fn is_there(target: &Target<'_>) -> Result<bool, Failed> {
    match target.head().await {
        Ok(_) => Ok(true),
        Err(Failed::Request(_, _, error)) if error.kind == ErrorKind::NotFound => Ok(false),
        Err(failed) => Err(failed),
    }
}

/// Returns whether the target is a copy of the source, as far as both stores can tell.
async fn is_copied(
    core: &Core<'_>,
    moving: &Moving,
    source: &Object<'_>,
    target: &Target<'_>,
) -> Result<bool, Failed> {
    let from = match head_source(core, moving, source).await {
        Ok(head) => head,
        Err(Failed::Reason(..) | Failed::Vanished(_)) => return Ok(false),
        Err(failed) => return Err(failed),
    };
    let there = match target.head().await {
        Ok(head) => head,
        Err(Failed::Request(_, _, error)) if error.kind == ErrorKind::NotFound => return Ok(false),
        Err(failed) => return Err(failed),
    };
    let same_sum = from.checksums.iter().any(|sum| there.checksums.contains(sum));
    Ok(from.size == there.size && (from.etag == there.etag || same_sum))
}

async fn head_source(
    core: &Core<'_>,
    moving: &Moving,
    source: &Object<'_>,
) -> Result<ObjectHead, Failed> {
    let head = source.head(core.store(Side::Source)?).await.map_err(read_failed)?;
    between::same_source(&head, source, moving)?;
    Ok(head)
}

/// Returns the headers of a copy. The server copies all of the source's metadata or (`replace_metadata`) none;
/// changing only some of it requires the source's `head`.
fn copy_headers(options: &ObjectOptions, head: Option<&ObjectHead>, key: &[u8]) -> Headers {
    let mut headers = match head {
        Some(head) => carried(head, options, key),
        None if options.replace_metadata => carried(&ObjectHead::default(), options, key),
        None => options.headers.clone(),
    };
    if head.is_some() || options.replace_metadata {
        headers.push((METADATA_DIRECTIVE, REPLACE));
    }
    if headers.iter().any(|(name, _)| *name == TAGGING) {
        headers.push((TAGGING_DIRECTIVE, REPLACE));
    }
    if let Some(algorithm) = options.algorithm.filter(|algorithm| *algorithm != Algorithm::Md5) {
        headers.push((CHECKSUM_ALGORITHM, HeaderValue::from_static(algorithm.name())));
    }
    headers
}

fn copy_source<'a>(
    core: &'a Core<'_>,
    source: &'a Object<'_>,
    etag: Option<&'a str>,
) -> CopySource<'a> {
    let Object { bucket, key, version, .. } = source;
    let customer_key = core.engine.setup.source.as_ref().and_then(|store| store.customer_key());
    CopySource { bucket, key, version: *version, customer_key, etag }
}

/// Copies in one request.
async fn whole(
    core: &Core<'_>,
    moving: &Arc<Moving>,
    source: &Object<'_>,
    target: &Target<'_>,
) -> Result<Done, Failed> {
    let options = &core.engine.setup.options;
    let Target { client, bucket, key } = target;
    let changes = options.headers.iter().any(|(name, _)| is_metadata(name));
    let head = match changes && !options.replace_metadata {
        true => Some(head_source(core, moving, source).await?),
        false => None,
    };
    let etag = source.etag.or(head.as_ref().map(|head| head.etag.as_str()));
    let mut headers = copy_headers(options, head.as_ref(), key);
    headers.extend(between::condition(core, moving));
    let from = copy_source(core, source, etag.filter(|etag| !etag.is_empty()));
    let size = moving.entry.meta.size;
    match copy_object(client, &from, bucket, key, &headers).await {
        Ok(copied) => {
            // An equal MD5 proves it; otherwise check at least the size before a source is removed.
            let proven = source.etag == Some(copied.etag.as_str());
            if core.engine.policy().remove_source_files && !proven {
                let there = target.head().await?;
                if there.size != size || there.etag != copied.etag {
                    return Err(Failed::Reason(Operation::Write, Side::Target, OTHER_COPY));
                }
            }
            core.doing.lane().bytes(size);
            Ok(Done { bytes: size, ..Done::default() })
        }
        Err(error) => copy_failed(core, moving, source, target, error).await,
    }
}

/// Handles the failure of a copy. The server does not report which of two conditions failed.
async fn copy_failed(
    core: &Core<'_>,
    moving: &Moving,
    source: &Object<'_>,
    target: &Target<'_>,
    error: Error,
) -> Result<Done, Failed> {
    let changed = Err(Failed::Reason(Operation::Read, Side::Source, CHANGED));
    match error.kind {
        ErrorKind::NotFound => Err(Failed::Vanished(Operation::Read)),
        // An earlier try may have created the object that made the condition fail.
        ErrorKind::Precondition
            if error.unsure && is_copied(core, moving, source, target).await? =>
        {
            Ok(Done { bytes: moving.entry.meta.size, ..Done::default() })
        }
        ErrorKind::Precondition if core.engine.setup.options.if_none_match => {
            if is_there(target).await? { Ok(Done::SKIPPED) } else { changed }
        }
        ErrorKind::Precondition if core.engine.setup.control.is_leased() => {
            // The source is what it was, so the target is not.
            head_source(core, moving, source).await?;
            Ok(Done::SKIPPED)
        }
        ErrorKind::Precondition => changed,
        _ => Err(Failed::at_target(Operation::Write)(error)),
    }
}

/// Begins a copy in parts: the metadata is sent when the upload is created.
async fn open(
    core: &Core<'_>,
    moving: &Arc<Moving>,
    source: &Object<'_>,
    target: &Target<'_>,
) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    let Target { client, bucket, key } = target;
    let head = head_source(core, moving, source).await?;
    let mut headers = carried(&head, options, key);
    headers.extend(relay::tags(core, source, &head, &headers).await?);
    let is_full = |sum: &&Checksum| sum.algorithm == Algorithm::Crc64Nvme && sum.parts == 0;
    let whole = head.checksums.iter().find(is_full).cloned();
    let algorithm = options.algorithm.or(whole.as_ref().map(|sum| sum.algorithm));
    let begun = create_upload(client, bucket, key, algorithm, &headers).await;
    let CreatedUpload { id, algorithm } = begun.map_err(Failed::at_target(Operation::Create))?;
    let whole = whole.filter(|sum| algorithm == Some(sum.algorithm));
    let cut = Cut::new(head.size, options.part_bytes.unwrap_or(PART_BYTES));
    let (upload, permits) = Upload::begun(core, moving, id, cut, None);
    Ok(Step::Parts(Arc::new(LargeCopy { upload, head, whole }), permits))
}

impl Large for LargeCopy {
    fn permits(&self) -> &Permits {
        &self.upload.permits
    }

    fn streams_max(&self, engine: &Engine<'_>) -> usize {
        self.upload.streams_max(engine)
    }

    async fn move_part(&self, core: &Core<'_>, number: u32) -> Result<(), Failed> {
        let moving = &self.upload.moving;
        let source = Object::source(core, moving)?;
        let Target { client, bucket, key } = Target::of(core, moving)?;
        let from =
            copy_source(core, &source, Some(&*self.head.etag).filter(|etag| !etag.is_empty()));
        let range = self.upload.cut.range(number);
        let id = &self.upload.id;
        let part = upload_part_copy(client, &from, range, bucket, &key, id, number).await;
        let part = part.map_err(|error| match error.kind {
            ErrorKind::Precondition => Failed::Reason(Operation::Read, Side::Source, CHANGED),
            _ => Failed::at_target(Operation::Write)(error),
        })?;
        core.doing.lane().bytes(self.upload.cut.bytes(number));
        self.upload.note(Sent { part, crc64: None });
        Ok(())
    }

    async fn end(self: Arc<Self>, core: &Core<'_>) {
        let moving = &self.upload.moving;
        let ended = complete(core, &self).await;
        if !matches!(ended, Ok(Done { skipped: false, .. })) {
            self.upload.abort(core).await;
        }
        let step = match ended {
            Err(Failed::Request(_, _, error)) if error.kind == ErrorKind::NotImplemented => {
                relay::begin(core, moving).await
            }
            ended => ended.map(Step::Done),
        };
        core.step(moving, step).await;
        core.engine.queue.finished();
    }
}

async fn complete(core: &Core<'_>, large: &LargeCopy) -> Result<Done, Failed> {
    let whole = large.whole.as_ref();
    let done = large.upload.complete(core, large.upload.parts()?, whole).await?;
    if done.skipped {
        return Ok(done);
    }
    let there = Target::of(core, &large.upload.moving)?.head().await?;
    let other = |sum: &Checksum| {
        whole.is_some_and(|whole| {
            (sum.algorithm, sum.parts) == (whole.algorithm, whole.parts) && sum.value != whole.value
        })
    };
    if there.size != large.upload.cut.size || there.checksums.iter().any(other) {
        return Err(Failed::Reason(Operation::Write, Side::Target, OTHER_COPY));
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &'static str, value: &'static str) -> (HeaderName, HeaderValue) {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    }

    fn text(headers: Headers) -> Vec<String> {
        headers.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn the_server_carries_metadata_unless_some_of_it_changes() {
        let mut options = ObjectOptions::default();
        assert!(copy_headers(&options, None, b"k").is_empty());
        options.headers = vec![header("x-amz-storage-class", "STANDARD_IA")];
        assert_eq!(text(copy_headers(&options, None, b"k")), ["x-amz-storage-class=STANDARD_IA"]);
        options.headers = vec![header("content-type", "a/b")];
        let carried = [header("content-type", "c/d"), header("x-amz-meta-k", "v")];
        let head = ObjectHead { headers: carried.into_iter().collect(), ..ObjectHead::default() };
        assert_eq!(
            text(copy_headers(&options, Some(&head), b"k")),
            ["x-amz-meta-k=v", "content-type=a/b", "x-amz-metadata-directive=REPLACE"]
        );
        options.replace_metadata = true;
        options.headers = vec![header("x-amz-tagging", "a=b")];
        assert_eq!(
            text(copy_headers(&options, None, b"k")),
            [
                "x-amz-tagging=a=b",
                "x-amz-metadata-directive=REPLACE",
                "x-amz-tagging-directive=REPLACE"
            ]
        );
    }
}
