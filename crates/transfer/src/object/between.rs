//! Shared by server-side copies and copies through this machine: headers that a target takes over, and an upload
//! whose parts several cores send. Uploads share the condition for writing an object.

use super::ObjectOptions;
use super::Side;
use super::core::{Core, Engine};
use super::cut::Cut;
use super::ends::{CHANGED, Object, Target, read_failed};
use super::failed::Failed;
use super::moving::{Done, Moving};
use super::permits::Permits;
use hakobu_core::error::Operation;
use hakobu_s3::ops::{Headers, ObjectHead, Part, abort_upload, complete_upload};
use hakobu_s3::{Checksum, Error, ErrorKind};
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, EXPIRES,
    HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH,
};
use parking_lot::Mutex;
use std::sync::Arc;

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
pub(super) fn refused(core: &Core<'_>, error: Error) -> Result<Done, Failed> {
    let setup = &core.engine.setup;
    let is_conditional = setup.options.if_none_match || setup.control.is_leased();
    match error.kind == ErrorKind::Precondition && is_conditional {
        true => Ok(Done::SKIPPED),
        false => Err(Failed::at_target(Operation::Write)(error)),
    }
}

/// A multipart upload in progress.
pub(super) struct Upload {
    /// The move that it is part of.
    pub moving: Arc<Moving>,
    /// Its upload ID.
    pub id: String,
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
        id: String,
        cut: Cut,
        room_bytes: Option<u64>,
    ) -> (Upload, usize) {
        let fit = room_bytes.map_or(u64::MAX, |bytes| bytes / cut.part_bytes);
        let (permits, count) = Permits::new(cut.numbers().collect(), core.engine.streams(fit));
        let (moving, done) = (Arc::clone(moving), Mutex::default());
        (Upload { moving, id, cut, permits, fit, done }, count)
    }

    /// Returns how many parts may be in flight now.
    pub fn streams_max(&self, engine: &Engine<'_>) -> usize {
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
    ) -> Result<Done, Failed> {
        let parts: Vec<_> = sent.into_iter().map(|sent| sent.part).collect();
        let Target { client, bucket, key } = Target::of(core, &self.moving)?;
        let headers: Headers = condition(core, &self.moving).into_iter().collect();
        let (id, size) = (&self.id, self.cut.size);
        let made = complete_upload(client, bucket, &key, id, &parts, size, whole, &headers).await;
        match made {
            Ok(_) => Ok(Done { bytes: size, ..Done::default() }),
            Err(error) => refused(core, error),
        }
    }

    /// Frees the server's storage of a failed upload. If that fails, too, the upload stays in the list of unfinished
    /// ones; only the first failure is reported.
    pub async fn abort(&self, core: &Core<'_>) {
        if let Ok(Target { client, bucket, key }) = Target::of(core, &self.moving) {
            let _ = abort_upload(client, bucket, &key, &self.id).await;
        }
    }
}

#[cfg(test)]
mod tests;
