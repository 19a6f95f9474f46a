//! What copies by the server and copies through this machine share: the headers that a target
//! takes over, and an upload whose parts several cores fill.

use super::ObjectOptions;
use super::core::{Core, Engine, Large};
use super::moving::{Failed, Moving};
use super::reader::Object;
use super::rights::more;
use super::{Root, Side};
use crate::engine::pool::lock;
use crate::error::Operation;
use crate::event::Event;
use crate::s3::ops::{Head, Headers, Part, Range, abort_upload};
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, EXPIRES,
    HeaderName, HeaderValue, IF_NONE_MATCH,
};
use std::sync::{Arc, Mutex};

/// The most parts that an upload may have (Amazon S3 User Guide, "Multipart upload limits").
const PARTS_MAX: u64 = 10_000;
/// Part sizes are multiples of this.
const MIB: u64 = 1 << 20;
/// System metadata that CopyObject takes over (API reference, CopyObject, "Metadata").
const CARRIED: [HeaderName; 6] =
    [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_DISPOSITION, CONTENT_LANGUAGE, CACHE_CONTROL, EXPIRES];
/// What the names of user metadata begin with.
pub(super) const META: &str = "x-amz-meta-";

/// The source object of a move.
///
/// # Errors
/// The source is no store.
pub(super) fn source<'a>(core: &Core<'a>, moving: &'a Moving) -> Result<Object<'a>, Failed> {
    let object = Object::below(&moving.pair.source, &moving.entry.name, &moving.entry.etag);
    let mut object = object.ok_or(NO_STORE)?;
    object.version = core.engine.setup.options.version.as_deref();
    Ok(object)
}

/// Bucket and key of the target of a move.
///
/// # Errors
/// The target is no store.
pub(super) fn target(moving: &Moving) -> Result<(&str, Vec<u8>), Failed> {
    match &moving.pair.target {
        Root::Store { bucket, .. } => Ok((bucket, moving.pair.target.key(&moving.name))),
        _ => Err(NO_STORE),
    }
}

const NO_STORE: Failed =
    Failed::Reason(Operation::Read, Side::Source, "both ends have to be stores");

/// Whether a header is metadata of the object itself, which CopyObject takes from the source
/// unless it is told to replace all of it.
pub(super) fn is_metadata(name: &HeaderName) -> bool {
    CARRIED.contains(name) || name.as_str().starts_with(META)
}

/// The headers of a target that is written anew: what its source carries, under what was asked for.
/// With `--metadata-directive REPLACE` only the latter.
pub(super) fn carried(head: &Head, options: &ObjectOptions, key: &[u8]) -> Headers {
    let asked = &options.headers;
    let mut headers = Headers::new();
    if !options.replace_metadata {
        for (name, value) in &head.headers {
            // What a client's transfer encoding left behind describes no object.
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
    // Conditions belong to the request that makes the target appear.
    headers.extend(asked.iter().filter(|(name, _)| *name != IF_NONE_MATCH).cloned());
    headers
}

/// The conditions under which a target appears.
pub(super) fn conditions(options: &ObjectOptions) -> Headers {
    match options.if_none_match {
        true => vec![(IF_NONE_MATCH, HeaderValue::from_static("*"))],
        false => Headers::new(),
    }
}

/// The size of parts: `wanted`, or more where the object has too many of them.
pub(super) fn part_bytes(size: u64, wanted: u64) -> u64 {
    wanted.max(size.div_ceil(PARTS_MAX).next_multiple_of(MIB))
}

/// An upload on its way. Who works on it holds one of its rights; the last one to give it back ends
/// the whole, so that nothing of it is in flight when it is completed or given up.
pub(super) struct Upload {
    /// What it is for.
    pub moving: Arc<Moving>,
    /// Its id.
    pub id: String,
    /// Bytes of the whole object.
    pub size: u64,
    /// Bytes of each part but the last.
    pub part_bytes: u64,
    /// How many parts fit into memory.
    fit: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Parts that were handed out.
    taken: u64,
    rights: usize,
    done: Vec<Sent>,
    failed: Option<Failed>,
}

/// A part that arrived.
pub(super) struct Sent {
    /// As the server has it.
    pub part: Part,
    /// Its bytes.
    pub bytes: u64,
    /// CRC-64/NVME over them, where it was computed.
    pub crc64: Option<u64>,
}

/// What a right to work on an upload is good for.
pub(super) enum Turn {
    /// Sending this part.
    Part(u32, Range),
    /// Nothing more; others are still at it.
    Leave,
    /// Nothing more, and nobody is left: end it.
    End,
}

impl Upload {
    /// An upload that was just begun, and how many rights to hand out: no more than it has parts.
    pub fn new(
        moving: &Arc<Moving>,
        id: String,
        (size, part_bytes): (u64, u64),
        rights: usize,
        fit: u64,
    ) -> (Upload, usize) {
        let parts = usize::try_from(size.div_ceil(part_bytes.max(1))).unwrap_or(usize::MAX);
        let rights = rights.clamp(1, parts.max(1));
        let state = Mutex::new(State { rights, ..State::default() });
        (Upload { moving: Arc::clone(moving), id, size, part_bytes, fit, state }, rights)
    }

    /// The same for an object of `size` bytes, cut as the options say or else into parts of `wanted`
    /// bytes; tells how much lies ahead. `room_bytes` is how many bytes of
    /// parts may be held at once, where any are.
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
        setup.listener.event(Event::LargeFile { bytes: size });
        let rights = core.engine.streams(fit);
        Upload::new(moving, id, (size, part_bytes), rights, fit)
    }

    fn streams_max(&self, engine: &Engine<'_>) -> usize {
        engine.streams(self.fit)
    }

    /// Counts as many more rights as may be handed out by now, and returns how many.
    pub fn widen(&self, engine: &Engine<'_>) -> usize {
        let mut state = lock(&self.state);
        let taken = state.taken.saturating_mul(self.part_bytes).min(self.size);
        let waiting = match state.failed {
            Some(_) => 0,
            None => (self.size - taken).div_ceil(self.part_bytes.max(1)),
        };
        let waiting = usize::try_from(waiting).unwrap_or(usize::MAX);
        more(&mut state.rights, waiting, self.streams_max(engine))
    }

    /// Uses a right: sends the next part and gives the right back to the queue (`Queue::again`), or
    /// lets it go; the last one ends the whole (`Core::finish` and `Queue::finished`, once).
    pub async fn work(
        &self,
        core: &Core<'_>,
        shared: &Arc<Large>,
        send: impl AsyncFnOnce(u32, Range) -> Result<Sent, Failed>,
        end: impl AsyncFnOnce(),
    ) {
        match self.turn(core.engine.is_stopped(), self.streams_max(core.engine)) {
            Turn::Part(number, range) => {
                self.note(send(number, range).await);
                core.engine.queue.again(Arc::clone(shared));
            }
            Turn::Leave => {}
            Turn::End => end().await,
        }
    }

    /// What the holder of a right does next; of more than `streams_max` rights those go that come
    /// first. After [`Turn::Leave`] and [`Turn::End`] the right is
    /// gone.
    pub fn turn(&self, is_stopped: bool, streams_max: usize) -> Turn {
        let mut state = lock(&self.state);
        if is_stopped {
            state.failed.get_or_insert(Failed::Stopped);
        }
        let start = state.taken * self.part_bytes;
        let surplus = state.rights > streams_max.max(1);
        if state.failed.is_none() && start < self.size && !surplus {
            state.taken += 1;
            let end = self.size.min(start + self.part_bytes);
            // At most 10,000.
            return Turn::Part(state.taken as u32, Range { start, end });
        }
        state.rights -= 1;
        if state.rights == 0 { Turn::End } else { Turn::Leave }
    }

    /// Notes what became of a part; the first failure counts.
    pub fn note(&self, result: Result<Sent, Failed>) {
        let mut state = lock(&self.state);
        match result {
            Ok(sent) => state.done.push(sent),
            Err(failed) => {
                state.failed.get_or_insert(failed);
            }
        }
    }

    /// All parts in their order, once, or what failed.
    pub fn parts(&self) -> Result<Vec<Sent>, Failed> {
        let mut state = lock(&self.state);
        if let Some(failed) = state.failed.take() {
            return Err(failed);
        }
        let mut parts = std::mem::take(&mut state.done);
        parts.sort_by_key(|sent| sent.part.number);
        Ok(parts)
    }

    /// Frees what the server holds of an upload that came to nothing. Where that fails, too, the
    /// upload stays in the list of unfinished ones; the first failure is what is told.
    pub async fn abort(&self, core: &Core<'_>) {
        if let (Ok(client), Ok((bucket, key))) = (core.store(Side::Target), target(&self.moving)) {
            let _ = abort_upload(client, bucket, &key, &self.id).await;
        }
    }
}

#[cfg(test)]
mod tests;
