//! Server-side copies: up to 5 GiB in one request, larger ones in parts. If the server cannot copy, the object goes
//! through this machine.

use super::entry::{
    CHANGED, Failed, KnownSum, MoveResult, MoveTarget, Moving, Object, Step, read_failed,
};
use super::parts::Cut;
use super::queue::{Large, Permits};
use super::runtime::{Core, ObjectEngine};
use super::{ObjectOptions, Side, relay};
use hakobu_core::error::Operation;
use hakobu_s3::ops::{
    CopySource, CreatedUpload, Headers, ObjectHead, Part, abort_upload, complete_upload,
    copy_object, create_upload, upload_part_copy,
};
use hakobu_s3::{Algorithm, Checksum, Error, ErrorKind};
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, EXPIRES,
    IF_MATCH, IF_NONE_MATCH,
};
use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;

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
    let target = MoveTarget::of(core, moving)?;
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
        return Ok(Step::Done(MoveResult::LEFT_OUT));
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
async fn is_there(target: &MoveTarget<'_>) -> Result<bool, Failed> {
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
    target: &MoveTarget<'_>,
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
    same_source(&head, source, moving)?;
    core.observed(moving, Side::Source, &head);
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
    target: &MoveTarget<'_>,
) -> Result<MoveResult, Failed> {
    let options = &core.engine.setup.options;
    let MoveTarget { client, bucket, key } = target;
    let changes = options.headers.iter().any(|(name, _)| is_metadata(name));
    let head = match changes && !options.replace_metadata {
        true => Some(head_source(core, moving, source).await?),
        false => None,
    };
    let etag = source.etag.or(head.as_ref().map(|head| head.etag.as_str()));
    let mut headers = copy_headers(options, head.as_ref(), key);
    headers.extend(condition(core, moving));
    let from = copy_source(core, source, etag.filter(|etag| !etag.is_empty()));
    let size = moving.entry.meta.size;
    let begun = Instant::now();
    match copy_object(client, &from, bucket, key, &headers).await {
        Ok(copied) => {
            // What the server copied along is not known here.
            if head.is_some() || options.replace_metadata {
                core.wrote(moving, &headers, size, begun, &copied);
            }
            // An equal MD5 proves it; otherwise check at least the size before a source is removed.
            let proven = source.etag == Some(copied.etag.as_str());
            if core.engine.policy().remove_source_files && !proven {
                let there = target.head().await?;
                if there.size != size || there.etag != copied.etag {
                    return Err(Failed::Reason(Operation::Write, Side::Target, OTHER_COPY));
                }
            }
            core.doing.lane().bytes(size);
            let sum = copied.checksum.as_ref().and_then(KnownSum::of);
            Ok(MoveResult { bytes: size, sum, ..MoveResult::default() })
        }
        Err(error) => copy_failed(core, moving, source, target, error).await,
    }
}

/// Handles the failure of a copy. The server does not report which of two conditions failed.
async fn copy_failed(
    core: &Core<'_>,
    moving: &Moving,
    source: &Object<'_>,
    target: &MoveTarget<'_>,
    error: Error,
) -> Result<MoveResult, Failed> {
    let changed = Err(Failed::Reason(Operation::Read, Side::Source, CHANGED));
    match error.kind {
        ErrorKind::NotFound => Err(Failed::Vanished(Operation::Read)),
        // An earlier try may have created the object that made the condition fail.
        ErrorKind::Precondition
            if error.unsure && is_copied(core, moving, source, target).await? =>
        {
            Ok(MoveResult { bytes: moving.entry.meta.size, ..MoveResult::default() })
        }
        ErrorKind::Precondition if core.engine.setup.options.if_none_match => {
            if is_there(target).await? { Ok(MoveResult::LEFT_OUT) } else { changed }
        }
        ErrorKind::Precondition if core.engine.setup.control.is_leased() => {
            // The source is what it was, so the target is not.
            head_source(core, moving, source).await?;
            Ok(MoveResult::LEFT_OUT)
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
    target: &MoveTarget<'_>,
) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    let MoveTarget { client, bucket, key } = target;
    let head = head_source(core, moving, source).await?;
    let mut headers = carried(&head, options, key);
    headers.extend(relay::tags(core, source, &head, &headers).await?);
    let is_full = |sum: &&Checksum| sum.algorithm == Algorithm::Crc64Nvme && sum.parts == 0;
    let whole = head.checksums.iter().find(is_full).cloned();
    let algorithm = options.algorithm.or(whole.as_ref().map(|sum| sum.algorithm));
    let begun = Instant::now();
    let created = create_upload(client, bucket, key, algorithm, &headers).await;
    let CreatedUpload { id, algorithm } = created.map_err(Failed::at_target(Operation::Create))?;
    let whole = whole.filter(|sum| algorithm == Some(sum.algorithm));
    let cut = Cut::new(head.size, options.part_bytes.unwrap_or(PART_BYTES));
    let (upload, permits) = Upload::begun(core, moving, (id, headers, begun), cut, None);
    Ok(Step::Parts(Arc::new(LargeCopy { upload, head, whole }), permits))
}

impl Large for LargeCopy {
    fn permits(&self) -> &Permits {
        &self.upload.permits
    }

    fn streams_max(&self, engine: &ObjectEngine<'_>) -> usize {
        self.upload.streams_max(engine)
    }

    async fn move_part(&self, core: &Core<'_>, number: u32) -> Result<(), Failed> {
        let moving = &self.upload.moving;
        let source = Object::source(core, moving)?;
        let MoveTarget { client, bucket, key } = MoveTarget::of(core, moving)?;
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
        if !matches!(ended, Ok(MoveResult { skipped: false, .. })) {
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

async fn complete(core: &Core<'_>, large: &LargeCopy) -> Result<MoveResult, Failed> {
    let whole = large.whole.as_ref();
    let done = large.upload.complete(core, large.upload.parts()?, whole).await?;
    if done.skipped {
        return Ok(done);
    }
    let there = MoveTarget::of(core, &large.upload.moving)?.head().await?;
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

// Shared by server-side copies and copies through this machine: headers that a target takes over, and an upload
// whose parts several cores send. Uploads share the condition for writing an object.

/// System metadata that CopyObject copies (API reference, CopyObject, "Metadata").
const CARRIED: [HeaderName; 6] =
    [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_DISPOSITION, CONTENT_LANGUAGE, CACHE_CONTROL, EXPIRES];
/// The prefix of the names of user metadata.
pub(super) const META: &str = "x-amz-meta-";

/// Checks that an object is still the one that was listed.
///
/// # Errors
/// It is not, or its size contradicts its ETag.
pub(super) fn same_source(
    head: &ObjectHead,
    source: &Object<'_>,
    moving: &Moving,
) -> Result<(), Failed> {
    if moving.is_unknown() {
        return Ok(());
    }
    let etag = source.etag.unwrap_or_default();
    match head.is_still(etag, moving.entry.meta.size).map_err(read_failed)? {
        true => Ok(()),
        false => Err(Failed::Reason(Operation::Read, Side::Source, CHANGED)),
    }
}

/// Returns whether a header is metadata of the object itself, which CopyObject copies from the source unless it is
/// told to replace all metadata.
pub(super) fn is_metadata(name: &HeaderName) -> bool {
    CARRIED.contains(name) || name.as_str().starts_with(META)
}

/// Returns the headers of a newly written target: those of its source, overridden by the requested ones. With
/// `--metadata-directive REPLACE` only the latter.
pub(super) fn carried(head: &ObjectHead, options: &ObjectOptions, key: &[u8]) -> Headers {
    let asked = &options.headers;
    let mut headers = Headers::new();
    if !options.replace_metadata {
        for (name, value) in &head.headers {
            // Left over from a client's transfer encoding; does not describe the object.
            let leftover = *name == CONTENT_ENCODING && value.as_bytes() == b"aws-chunked";
            let again = asked.iter().any(|(other, _)| other == name);
            if is_metadata(name) && !leftover && !again {
                headers.push((name.clone(), value.clone()));
            }
        }
    } else if options.guess_content_type && !asked.iter().any(|(name, _)| *name == CONTENT_TYPE) {
        let name = String::from_utf8_lossy(key);
        let guess = mime_guess::from_path(&*name).first_raw();
        headers.extend(guess.map(|kind| (CONTENT_TYPE, HeaderValue::from_static(kind))));
    }
    // Conditions belong to the request that creates the target.
    headers.extend(asked.iter().filter(|(name, _)| *name != IF_NONE_MATCH).cloned());
    headers
}

/// Returns the condition for writing an object. One of several workers replaces only what it saw when it decided: it
/// may have been suspended since, while another one did its work.
pub(super) fn condition(core: &Core<'_>, moving: &Moving) -> Option<(HeaderName, HeaderValue)> {
    let setup = &core.engine.setup;
    let new = || (IF_NONE_MATCH, HeaderValue::from_static("*"));
    if setup.options.if_none_match {
        return Some(new());
    }
    if !setup.control.is_leased() {
        return None;
    }
    let Some(there) = &moving.existing else { return Some(new()) };
    let etag = HeaderValue::try_from(format!("\"{}\"", there.etag)).ok()?;
    (!there.etag.is_empty()).then_some((IF_MATCH, etag))
}

/// Returns the result of a failed write to the target: skipped if its condition did not hold.
pub(super) fn refused(core: &Core<'_>, error: Error) -> Result<MoveResult, Failed> {
    let setup = &core.engine.setup;
    let is_conditional = setup.options.if_none_match || setup.control.is_leased();
    match error.kind == ErrorKind::Precondition && is_conditional {
        true => Ok(MoveResult::LEFT_OUT),
        false => Err(Failed::at_target(Operation::Write)(error)),
    }
}

/// A multipart upload in progress.
pub(super) struct Upload {
    /// The move that it is part of.
    pub moving: Arc<Moving>,
    pub id: String,
    /// The headers that it was created with, and when.
    created: (Headers, Instant),
    /// The parts of the whole object.
    pub cut: Cut,
    /// Permits to work on it.
    pub permits: Permits,
    /// Number of parts that fit into memory.
    fit: u64,
    done: Mutex<Vec<Sent>>,
}

/// A part that arrived.
pub(super) struct Sent {
    /// The part as the server stores it.
    pub part: Part,
    /// CRC-64/NVME of the part, if it was computed.
    pub crc64: Option<Checksum>,
}

impl Upload {
    /// Returns a new upload, and the number of permits to hand out. `room_bytes`: bytes of parts that may be held at
    /// once, if parts are held at all.
    pub fn begun(
        core: &Core<'_>,
        moving: &Arc<Moving>,
        (id, headers, begun): (String, Headers, Instant),
        cut: Cut,
        room_bytes: Option<u64>,
    ) -> (Upload, usize) {
        let fit = room_bytes.map_or(u64::MAX, |bytes| bytes / cut.part_bytes);
        let (permits, count) = Permits::new(cut.numbers().collect(), core.engine.streams(fit));
        let (moving, done) = (Arc::clone(moving), Mutex::default());
        let created = (headers, begun);
        (Upload { moving, id, created, cut, permits, fit, done }, count)
    }

    /// Returns how many parts may be in flight now.
    pub fn streams_max(&self, engine: &ObjectEngine<'_>) -> usize {
        engine.streams(self.fit)
    }

    /// Records a part that arrived.
    pub fn note(&self, sent: Sent) {
        self.done.lock().push(sent);
    }

    /// Takes all parts in order, or the failure. Called once.
    pub fn parts(&self) -> Result<Vec<Sent>, Failed> {
        if let Some(failed) = self.permits.failure() {
            return Err(failed);
        }
        let mut parts = std::mem::take(&mut *self.done.lock());
        parts.sort_by_key(|sent| sent.part.number);
        Ok(parts)
    }

    /// Makes the object of its parts. `whole` is its checksum, of the upload's algorithm.
    ///
    /// # Errors
    /// Those of the request, unless its condition did not hold.
    pub async fn complete(
        &self,
        core: &Core<'_>,
        sent: Vec<Sent>,
        whole: Option<&Checksum>,
    ) -> Result<MoveResult, Failed> {
        let parts: Vec<_> = sent.into_iter().map(|sent| sent.part).collect();
        let MoveTarget { client, bucket, key } = MoveTarget::of(core, &self.moving)?;
        let headers: Headers = condition(core, &self.moving).into_iter().collect();
        let (id, size) = (&self.id, self.cut.size);
        let made = complete_upload(client, bucket, &key, id, &parts, size, whole, &headers);
        match core.completing(made).await {
            Ok(put) => {
                let (headers, begun) = &self.created;
                core.wrote(&self.moving, headers, size, *begun, &put);
                Ok(MoveResult { bytes: size, ..MoveResult::default() })
            }
            Err(error) => refused(core, error),
        }
    }

    /// Frees the server's storage of a failed upload. If that fails, too, the upload stays in the list of unfinished
    /// ones; only the first failure is reported.
    pub async fn abort(&self, core: &Core<'_>) {
        if let Ok(MoveTarget { client, bucket, key }) = MoveTarget::of(core, &self.moving) {
            let _ = abort_upload(client, bucket, &key, &self.id).await;
        }
    }
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

    #[test]
    fn requested_headers_override_carried_ones() {
        let headers = [
            header("content-type", "text/plain"),
            header("content-encoding", "aws-chunked"),
            header("cache-control", "no-store"),
            header("x-amz-meta-mtime", "12.5"),
            header("x-amz-meta-who", "me"),
            header("x-amz-storage-class", "GLACIER"),
            header("etag", "\"x\""),
        ];
        let head = ObjectHead { headers: headers.into_iter().collect(), ..ObjectHead::default() };
        let asked = vec![header("x-amz-meta-who", "you"), header("x-amz-acl", "private")];
        let mut options = ObjectOptions { headers: asked, ..ObjectOptions::default() };
        let names = |options: &ObjectOptions| {
            let mut all: Vec<_> = carried(&head, options, b"a.html")
                .into_iter()
                .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
                .collect();
            all.sort();
            all
        };
        assert_eq!(
            names(&options),
            [
                "cache-control=no-store",
                "content-type=text/plain",
                "x-amz-acl=private",
                "x-amz-meta-mtime=12.5",
                "x-amz-meta-who=you"
            ]
        );
        options.replace_metadata = true;
        options.guess_content_type = true;
        assert_eq!(
            names(&options),
            ["content-type=text/html", "x-amz-acl=private", "x-amz-meta-who=you"]
        );
    }
}
