//! Shared by server-side copies and copies through this machine: headers that a target takes over, and an upload
//! whose parts several cores send. Uploads share the condition for writing an object.

use super::ObjectOptions;
use super::core::{Core, Engine, Parts};
use super::failed::Failed;
use super::moving::Moving;
use super::permits::more;
use super::reader::{CHANGED, Object, read_failed};
use super::{Root, Side};
use futures_util::future::LocalBoxFuture;
use hakobu_core::error::Operation;
use hakobu_s3::ops::{Head, Headers, Part, Range, abort_upload};
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, EXPIRES,
    HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH,
};
use parking_lot::Mutex;
use std::sync::Arc;

/// Maximum number of parts of an upload (Amazon S3 User Guide, "Multipart upload limits").
const PARTS_MAX: u64 = 10_000;
/// Part sizes are multiples of this many bytes.
const MIB: u64 = 1 << 20;
/// System metadata that CopyObject copies (API reference, CopyObject, "Metadata").
const CARRIED: [HeaderName; 6] =
    [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_DISPOSITION, CONTENT_LANGUAGE, CACHE_CONTROL, EXPIRES];
/// The prefix of the names of user metadata.
pub(super) const META: &str = "x-amz-meta-";

/// Returns the source object of a move.
///
/// # Errors
/// The source is not in a store.
pub(super) fn source<'a>(core: &Core<'a>, moving: &'a Moving) -> Result<Object<'a>, Failed> {
    let object = Object::below(&moving.pair.source, &moving.entry.name, &moving.entry.etag);
    let mut object = object.ok_or(NO_STORE)?;
    object.version = core.engine.setup.options.version.as_deref();
    Ok(object)
}

/// Returns bucket and key of the target of a move.
///
/// # Errors
/// The target is not in a store.
pub(super) fn target(moving: &Moving) -> Result<(&str, Vec<u8>), Failed> {
    match &moving.pair.target {
        Root::Store { bucket, .. } => Ok((bucket, moving.pair.target.key(&moving.name))),
        _ => Err(NO_STORE),
    }
}

/// Checks that an object is still the one that was listed.
///
/// # Errors
/// It is not, or its size contradicts its ETag.
pub(super) fn same_source(head: &Head, source: &Object<'_>, moving: &Moving) -> Result<(), Failed> {
    if moving.is_unknown() {
        return Ok(());
    }
    let etag = source.etag.unwrap_or_default();
    match head.is_still(etag, moving.entry.meta.size).map_err(read_failed)? {
        true => Ok(()),
        false => Err(Failed::Reason(Operation::Read, Side::Source, CHANGED)),
    }
}

const NO_STORE: Failed =
    Failed::Reason(Operation::Read, Side::Source, "both ends have to be stores");

/// Returns whether a header is metadata of the object itself, which CopyObject copies from the source unless it is
/// told to replace all metadata.
pub(super) fn is_metadata(name: &HeaderName) -> bool {
    CARRIED.contains(name) || name.as_str().starts_with(META)
}

/// Returns the headers of a newly written target: those of its source, overridden by the requested ones. With
/// `--metadata-directive REPLACE` only the latter.
pub(super) fn carried(head: &Head, options: &ObjectOptions, key: &[u8]) -> Headers {
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

/// Returns the part size in bytes: `wanted`, or more if that would make too many parts.
pub(super) fn part_bytes(size: u64, wanted: u64) -> u64 {
    wanted.max(size.div_ceil(PARTS_MAX).next_multiple_of(MIB))
}

/// A multipart upload in progress. Each worker on it holds one of its permits; the worker that returns the last one
/// ends the upload, so that nothing of it is in flight when it is completed or aborted.
pub(super) struct Upload {
    /// The move that it is part of.
    pub moving: Arc<Moving>,
    /// Its upload ID.
    pub id: String,
    /// Size of the whole object, in bytes.
    pub size: u64,
    /// Bytes of each part except the last.
    pub part_bytes: u64,
    /// Number of parts that fit into memory.
    fit: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of parts handed out.
    taken: u64,
    permits: usize,
    done: Vec<Sent>,
    failed: Option<Failed>,
}

/// A part that arrived.
pub(super) struct Sent {
    /// The part as the server stores it.
    pub part: Part,
    /// Its size in bytes.
    pub bytes: u64,
    /// CRC-64/NVME of the part, if it was computed.
    pub crc64: Option<u64>,
}

/// Use of a permit to work on an upload.
pub(super) enum Turn {
    /// Send this part.
    Part(u32, Range),
    /// Nothing is left to do; others are still working.
    Leave,
    /// Nothing is left to do and no worker remains: end the upload.
    End,
}

/// A large object between stores, whose parts go through one [`Upload`].
pub(super) trait Sending: Send + Sync {
    /// Returns the upload.
    fn upload(&self) -> &Upload;

    /// Sends one part.
    ///
    /// # Errors
    /// No further part is sent.
    async fn send(&self, core: &Core<'_>, number: u32, range: Range) -> Result<Sent, Failed>;

    /// Completes or aborts the upload and ends the object (`Core::finish` and `Queue::finished`, once).
    async fn end(&self, core: &Core<'_>);
}

impl<T: Sending + 'static> Parts for T {
    fn part<'a>(self: Arc<Self>, core: &'a Core<'a>) -> LocalBoxFuture<'a, ()> {
        Box::pin(async move {
            let shared = Arc::clone(&self) as Arc<dyn Parts>;
            let send = async |number, range| self.send(core, number, range).await;
            self.upload().work(core, shared, send, async || self.end(core).await).await;
        })
    }

    fn widen(&self, engine: &Engine<'_>) -> usize {
        self.upload().widen(engine)
    }
}

impl Upload {
    /// Returns a new upload, and the number of permits to hand out: at most its number of parts.
    pub fn new(
        moving: &Arc<Moving>,
        id: String,
        (size, part_bytes): (u64, u64),
        permits: usize,
        fit: u64,
    ) -> (Upload, usize) {
        let parts = usize::try_from(size.div_ceil(part_bytes.max(1))).unwrap_or(usize::MAX);
        let permits = permits.clamp(1, parts.max(1));
        let state = Mutex::new(State { permits, ..State::default() });
        (Upload { moving: Arc::clone(moving), id, size, part_bytes, fit, state }, permits)
    }

    /// As `new` for an object of `size` bytes, with the part size of the options or else `wanted` bytes.
    /// `room_bytes`: bytes of parts that may be held at once, if parts are held at all.
    pub fn begun(
        core: &Core<'_>,
        moving: &Arc<Moving>,
        id: String,
        size: u64,
        wanted: u64,
        room_bytes: Option<u64>,
    ) -> (Upload, usize) {
        let Engine { setup, .. } = core.engine;
        let part_bytes = part_bytes(size, setup.options.part_bytes.unwrap_or(wanted));
        let fit = room_bytes.map_or(u64::MAX, |bytes| bytes / part_bytes);
        let permits = core.engine.streams(fit);
        Upload::new(moving, id, (size, part_bytes), permits, fit)
    }

    fn streams_max(&self, engine: &Engine<'_>) -> usize {
        engine.streams(self.fit)
    }

    /// Counts as many more permits as may be handed out now, and returns their number.
    pub fn widen(&self, engine: &Engine<'_>) -> usize {
        let mut state = self.state.lock();
        let taken = state.taken.saturating_mul(self.part_bytes).min(self.size);
        let waiting = match state.failed {
            Some(_) => 0,
            None => (self.size - taken).div_ceil(self.part_bytes.max(1)),
        };
        let waiting = usize::try_from(waiting).unwrap_or(usize::MAX);
        more(&mut state.permits, waiting, self.streams_max(engine))
    }

    /// Uses a permit: sends the next part and returns the permit to the queue (`Queue::again`), or releases it; the
    /// last release ends the object (`Core::finish` and `Queue::finished`, once).
    pub async fn work(
        &self,
        core: &Core<'_>,
        shared: Arc<dyn Parts>,
        send: impl AsyncFnOnce(u32, Range) -> Result<Sent, Failed>,
        end: impl AsyncFnOnce(),
    ) {
        match self.turn(core.engine.is_stopped(), self.streams_max(core.engine)) {
            Turn::Part(number, range) => {
                self.note(send(number, range).await);
                core.engine.queue.again(shared);
            }
            Turn::Leave => {}
            Turn::End => end().await,
        }
    }

    /// Returns the next step of a permit's holder; if there are more than `streams_max` permits, the surplus is
    /// released. After [`Turn::Leave`] and [`Turn::End`] the permit is gone.
    pub fn turn(&self, is_stopped: bool, streams_max: usize) -> Turn {
        let mut state = self.state.lock();
        if is_stopped {
            state.failed.get_or_insert(Failed::Stopped);
        }
        let start = state.taken * self.part_bytes;
        let surplus = state.permits > streams_max.max(1);
        if state.failed.is_none() && start < self.size && !surplus {
            state.taken += 1;
            let end = self.size.min(start + self.part_bytes);
            // At most 10,000.
            return Turn::Part(state.taken as u32, Range { start, end });
        }
        state.permits -= 1;
        if state.permits == 0 { Turn::End } else { Turn::Leave }
    }

    /// Records the result of a part; the first failure counts.
    pub fn note(&self, result: Result<Sent, Failed>) {
        let mut state = self.state.lock();
        match result {
            Ok(sent) => state.done.push(sent),
            Err(failed) => {
                state.failed.get_or_insert(failed);
            }
        }
    }

    /// Takes all parts in order, or the failure. Called once.
    pub fn parts(&self) -> Result<Vec<Sent>, Failed> {
        let mut state = self.state.lock();
        if let Some(failed) = state.failed.take() {
            return Err(failed);
        }
        let mut parts = std::mem::take(&mut state.done);
        parts.sort_by_key(|sent| sent.part.number);
        Ok(parts)
    }

    /// Frees the server's storage of a failed upload. If that fails, too, the upload stays in the list of unfinished
    /// ones; only the first failure is reported.
    pub async fn abort(&self, core: &Core<'_>) {
        if let (Ok(client), Ok((bucket, key))) = (core.store(Side::Target), target(&self.moving)) {
            let _ = abort_upload(client, bucket, &key, &self.id).await;
        }
    }
}

#[cfg(test)]
mod tests;
