//! Copies that the server makes by itself: up to 5 GiB in one request, beyond that in parts. A
//! server that cannot is told nothing more: the object then goes through this machine.

use super::between::{self, Sent, Upload, carried, is_metadata};
use super::core::{Core, Engine, Large as Parts};
use super::moving::{Done, Failed, Moving, Step};
use super::reader::{CHANGED, Object, read_failed};
use super::{ObjectOptions, Side, relay};
use crate::error::Operation;
use crate::event::Event;
use crate::s3::ops::{
    Begun, CopySource, Head, Headers, Range, complete_upload, copy_object, create_upload,
    head_object, upload_part_copy,
};
use crate::s3::{Algorithm, Checksum, Error, Kind};
use http::header::IF_NONE_MATCH;
use http::{HeaderName, HeaderValue};
use std::sync::Arc;

/// The most that CopyObject copies (API reference, CopyObject).
pub(super) const ONE_COPY_BYTES_MAX: u64 = 5 << 30;
/// Parts of larger objects: no byte of them passes through here, so they may be large.
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

/// A large object on this way.
pub struct Large {
    upload: Upload,
    /// What was known of the source when it began.
    head: Head,
    /// The source's checksum, where it is one that the parts' can be combined into.
    whole: Option<Checksum>,
}

/// Moves a small entry, or begins with a large one.
pub(super) async fn begin(core: &Core<'_>, moving: &Arc<Moving>) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    let source = between::source(core, moving)?;
    let (bucket, key) = between::target(moving)?;
    if source.bucket == bucket && source.key == key {
        if core.engine.policy().remove_source_files {
            return Err(Failed::Reason(Operation::Write, Side::Target, MOVED_ONTO_ITSELF));
        }
        // An older version may be copied onto the newest one.
        if !options.replace_metadata && options.headers.is_empty() && source.version.is_none() {
            return Err(Failed::Reason(Operation::Write, Side::Target, ONTO_ITSELF));
        }
    }
    if options.if_none_match && is_there(core, moving).await? {
        return Ok(Step::Done(Done { skipped: true, ..Done::default() }));
    }
    let copied = match moving.entry.meta.size {
        0..=ONE_COPY_BYTES_MAX => whole(core, moving, &source).await,
        _ => open(core, moving, &source).await,
    };
    match copied {
        Err(Failed::Request(_, _, error)) if error.kind == Kind::NotImplemented => {
            relay::begin(core, moving).await
        }
        other => other,
    }
}

/// Whether there is an object at the target by now.
async fn is_there(core: &Core<'_>, moving: &Moving) -> Result<bool, Failed> {
    let (bucket, key) = between::target(moving)?;
    match head_object(core.store(Side::Target)?, bucket, &key, None).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind == Kind::NotFound => Ok(false),
        Err(error) => Err(Failed::Request(Operation::Stat, Side::Target, error)),
    }
}

async fn head_source(core: &Core<'_>, source: &Object<'_>) -> Result<Head, Failed> {
    let client = core.store(Side::Source)?;
    let head = head_object(client, source.bucket, &source.key, source.version);
    let head = head.await.map_err(read_failed)?;
    match source.etag {
        Some(etag) if etag != head.etag => {
            Err(Failed::Reason(Operation::Read, Side::Source, CHANGED))
        }
        _ => Ok(head),
    }
}

/// The headers of a copy. The server takes over what the source carries, or nothing of it
/// (`replace_metadata`); to change only some of it takes the source's `head`.
fn copy_headers(options: &ObjectOptions, head: Option<&Head>, key: &[u8]) -> Headers {
    let mut headers = match head {
        Some(head) => carried(head, options, key),
        None if options.replace_metadata => carried(&Head::default(), options, key),
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
    if options.if_none_match && !headers.iter().any(|(name, _)| *name == IF_NONE_MATCH) {
        headers.push((IF_NONE_MATCH, HeaderValue::from_static("*")));
    }
    headers
}

fn copy_source<'a>(source: &'a Object<'_>, etag: Option<&'a str>) -> CopySource<'a> {
    CopySource { bucket: source.bucket, key: &source.key, version: source.version, etag }
}

/// Copies in one request.
async fn whole(core: &Core<'_>, moving: &Arc<Moving>, source: &Object<'_>) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    let (bucket, key) = between::target(moving)?;
    let changes = options.headers.iter().any(|(name, _)| is_metadata(name));
    let head = match changes && !options.replace_metadata {
        true => Some(head_source(core, source).await?),
        false => None,
    };
    let etag = source.etag.or(head.as_ref().map(|head| head.etag.as_str()));
    let headers = copy_headers(options, head.as_ref(), &key);
    let client = core.store(Side::Target)?;
    let from = copy_source(source, etag.filter(|etag| !etag.is_empty()));
    match copy_object(client, &from, bucket, &key, &headers).await {
        Ok(copied) => {
            // The same MD5 says it already; before a source is removed, its size does at least.
            let proven = source.etag == Some(copied.etag.as_str());
            if core.engine.policy().remove_source_files && !proven {
                let there = head_object(client, bucket, &key, None).await;
                let there = there.map_err(failed_at(Operation::Stat))?;
                if there.size != moving.entry.meta.size {
                    return Err(Failed::Reason(Operation::Write, Side::Target, OTHER_COPY));
                }
            }
            core.doing.lane().bytes(moving.entry.meta.size);
            Ok(Step::Done(Done { bytes: moving.entry.meta.size, ..Done::default() }))
        }
        Err(error) => copy_failed(core, moving, error).await,
    }
}

fn failed_at(operation: Operation) -> impl Fn(Error) -> Failed {
    move |error| Failed::Request(operation, Side::Target, error)
}

/// What a failed copy means. Which of two conditions did not hold, the server does not say.
async fn copy_failed(core: &Core<'_>, moving: &Moving, error: Error) -> Result<Step, Failed> {
    match error.kind {
        Kind::NotFound => Err(Failed::Vanished(Operation::Read)),
        Kind::Precondition if core.engine.setup.options.if_none_match => {
            match is_there(core, moving).await? {
                true => Ok(Step::Done(Done { skipped: true, ..Done::default() })),
                false => Err(Failed::Reason(Operation::Read, Side::Source, CHANGED)),
            }
        }
        Kind::Precondition => Err(Failed::Reason(Operation::Read, Side::Source, CHANGED)),
        _ => Err(failed_at(Operation::Write)(error)),
    }
}

/// Begins to copy in parts: the metadata travels with the upload.
async fn open(core: &Core<'_>, moving: &Arc<Moving>, source: &Object<'_>) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    let (bucket, key) = between::target(moving)?;
    let client = core.store(Side::Target)?;
    let head = head_source(core, source).await?;
    let mut headers = carried(&head, options, &key);
    headers.extend(relay::tags(core, source, &head, &headers).await?);
    let is_full = |sum: &&Checksum| sum.algorithm == Algorithm::Crc64Nvme && sum.parts == 0;
    let whole = head.checksums.iter().find(is_full).cloned();
    let algorithm = options.algorithm.or(whole.as_ref().map(|sum| sum.algorithm));
    let id = create_upload(client, bucket, &key, algorithm, &headers).await;
    let Begun { id, algorithm } = id.map_err(failed_at(Operation::Create))?;
    let whole = whole.filter(|sum| algorithm == Some(sum.algorithm));
    let (upload, rights) = Upload::begun(core, moving, id, head.size, PART_BYTES, None);
    Ok(Step::Parts(Arc::new(Parts::Copy(Large { upload, head, whole })), rights))
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

async fn one_part(
    core: &Core<'_>,
    large: &Large,
    number: u32,
    range: Range,
) -> Result<Sent, Failed> {
    let moving = &large.upload.moving;
    let source = between::source(core, moving)?;
    let (bucket, key) = between::target(moving)?;
    let client = core.store(Side::Target)?;
    let from = copy_source(&source, Some(&*large.head.etag).filter(|etag| !etag.is_empty()));
    let bytes = range.end - range.start;
    let id = &large.upload.id;
    let part = upload_part_copy(client, &from, range, bucket, &key, id, number).await;
    let part = part.map_err(|error| match error.kind {
        Kind::Precondition => Failed::Reason(Operation::Read, Side::Source, CHANGED),
        _ => failed_at(Operation::Write)(error),
    })?;
    core.doing.lane().bytes(bytes);
    core.engine.setup.listener.event(Event::LargeBytes { bytes, undrained: None });
    Ok(Sent { part, bytes, crc64: None })
}

/// Completes the upload, or gives it up.
async fn end(core: &Core<'_>, large: &Large) {
    let moving = &large.upload.moving;
    match complete(core, large).await {
        Ok(done) => core.finish(moving, Ok(done)).await,
        Err(failed) => {
            large.upload.abort(core).await;
            match failed {
                Failed::Request(_, _, error) if error.kind == Kind::NotImplemented => {
                    match relay::begin(core, moving).await {
                        Ok(Step::Done(done)) => core.finish(moving, Ok(done)).await,
                        Ok(Step::Parts(large, streams)) => core.engine.queue.open(&large, streams),
                        Err(failed) => core.finish(moving, Err(failed)).await,
                    }
                }
                Failed::Request(_, _, error)
                    if error.kind == Kind::Precondition
                        && core.engine.setup.options.if_none_match =>
                {
                    core.finish(moving, Ok(Done { skipped: true, ..Done::default() })).await;
                }
                failed => core.finish(moving, Err(failed)).await,
            }
        }
    }
    core.engine.queue.finished();
}

async fn complete(core: &Core<'_>, large: &Large) -> Result<Done, Failed> {
    let moving = &large.upload.moving;
    let parts: Vec<_> = large.upload.parts()?.into_iter().map(|sent| sent.part).collect();
    let (bucket, key) = between::target(moving)?;
    let client = core.store(Side::Target)?;
    let (id, size) = (&large.upload.id, large.upload.size);
    let headers = between::conditions(core.engine.setup.options);
    let whole = large.whole.as_ref();
    complete_upload(client, bucket, &key, id, &parts, size, whole, &headers)
        .await
        .map_err(failed_at(Operation::Write))?;
    let there = head_object(client, bucket, &key, None).await;
    let there = there.map_err(failed_at(Operation::Stat))?;
    let other = |sum: &Checksum| {
        whole.is_some_and(|whole| {
            (sum.algorithm, sum.parts) == (whole.algorithm, whole.parts) && sum.value != whole.value
        })
    };
    if there.size != size || there.checksums.iter().any(other) {
        return Err(Failed::Reason(Operation::Write, Side::Target, OTHER_COPY));
    }
    Ok(Done { bytes: size, ..Done::default() })
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
        let head = Head { headers: carried.into_iter().collect(), ..Head::default() };
        assert_eq!(
            text(copy_headers(&options, Some(&head), b"k")),
            ["x-amz-meta-k=v", "content-type=a/b", "x-amz-metadata-directive=REPLACE"]
        );
        options.replace_metadata = true;
        options.headers = vec![header("x-amz-tagging", "a=b")];
        options.if_none_match = true;
        assert_eq!(
            text(copy_headers(&options, None, b"k")),
            [
                "x-amz-tagging=a=b",
                "x-amz-metadata-directive=REPLACE",
                "x-amz-tagging-directive=REPLACE",
                "if-none-match=*"
            ]
        );
    }
}
