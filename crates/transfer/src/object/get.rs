//! Downloads: small objects whole, larger ones in ranges, each checked before it gets its name.

use super::download_file::{
    Appeared, DownloadFile, FilePlace, Shape, count_made, file_calls, folder, wants_metadata,
    write_into_node,
};
use super::entry::{CHANGED_WHILE_READ, Failed, KnownSum, MoveResult, Moving, Object, Step};
use super::folders::{failed, split};
use super::parts::{Checkpoint, Cut, WholeCheck, joined, unusable};
use super::queue::{Large, Permits};
use super::runtime::{Core, ObjectEngine, Parts, blocking};
use super::{Root, Side, parts as checkpoint, parts as sums, says_symlink};
use crate::journal::{
    self, ObjectIdentity, ObjectRecord, PartsLocation as Spot, RecordCheck, Source, text,
};
use crate::policy::Symlinks;
use crate::publish::{self, TempNames, is_node};
use bytes::Bytes;
use hakobu_core::buffer::AlignedBytes;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_core::unit::Kind;
use hakobu_s3::ops::{GetOptions, ObjectHead, Range, get_object, head_of};
use hakobu_s3::{Algorithm, Checksum, Client, Download, Error, ErrorKind, Hasher, header};
use hakobu_sys::{AsFd, OwnedFd, dir, errno, file, meta};
use http::HeaderMap;
use parking_lot::{Mutex, MutexGuard};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Default part size, and maximum size of an object that is received whole, in bytes.
const PART_BYTES: u64 = 8 << 20;

/// Downloads a small object, or begins with a large one.
///
/// # Errors
/// Those of the request or the target; nothing incomplete is left under the final name.
pub(super) async fn begin(core: &Core<'_>, moving: &Arc<Moving>) -> Result<Step, Failed> {
    if let Some(path) = moving.name.strip_suffix(b"/") {
        if moving.entry.meta.size > 0 {
            let why = "its name ends with a slash, which no file's can";
            return Err(Failed::Reason(Operation::Create, Side::Target, why));
        }
        return create_marker(core, moving, path).await.map(Step::Done);
    }
    let is_written_to = matches!(moving.pair.target, Root::Local { .. })
        && core.engine.policy().cp_targets
        && moving.existing.as_ref().is_some_and(|there| is_node(there.meta.kind));
    if is_written_to {
        return write_into_node(core, moving).await.map(Step::Done);
    }
    let part_bytes = core.engine.setup.options.part_bytes.unwrap_or(PART_BYTES).max(1);
    if moving.entry.meta.size <= part_bytes
        && let Some(done) = get_whole(core, moving, part_bytes).await?
    {
        return Ok(Step::Done(done));
    }
    begin_ranges(core, moving, part_bytes).await
}

// Objects of one part: received whole and checked before anything is created at the target.

/// Downloads an object of up to `bytes_max`; returns `None` if it turned out to be larger.
///
/// # Errors
/// Those of the request or the target; nothing incomplete is left under the final name.
pub(super) async fn get_whole(
    core: &Core<'_>,
    moving: &Moving,
    bytes_max: u64,
) -> Result<Option<MoveResult>, Failed> {
    let expected = match moving.is_unknown() {
        true => bytes_max,
        false => moving.entry.meta.size,
    };
    // The budget is never closed.
    let room = core.room(expected).await;
    let Some(whole) = whole(core, moving, bytes_max).await? else { return Ok(None) };
    if let Some(done) = write_whole(core, moving, whole).await? {
        return Ok(Some(done));
    }
    // The stream takes its own room.
    drop(room);
    write_into_node(core, moving).await.map(Some)
}

/// Creates the file; returns `None` if a device or FIFO has its name, which is written to instead.
async fn write_whole(
    core: &Core<'_>,
    moving: &Moving,
    (headers, frames, size): Whole,
) -> Result<Option<MoveResult>, Failed> {
    let listed = &*moving.entry.etag;
    let is_other = header::etag(&headers) != listed;
    let other = is_other && !listed.is_empty();
    let sum = stored(&headers).as_ref().and_then(KnownSum::of);
    let done = MoveResult { bytes: size, other, sum, ..MoveResult::default() };
    if matches!(moving.pair.target, Root::Null) {
        return Ok(Some(done));
    }
    core.doing.turn(Phase::Create);
    let engine = core.engine;
    let changed = moving.entry.meta.mtime.s == 0 || size != moving.entry.meta.size;
    let head = (changed || is_other || wants_metadata(engine))
        .then(|| ObjectHead { size, ..head_of(&headers) });
    if let Some(head) = &head {
        core.observed(moving, Side::Source, head);
    }
    let shape = Shape::of(engine, moving, head.as_ref());
    let symlink =
        engine.policy().symlinks == Symlinks::Keep && head.is_some_and(|head| says_symlink(&head));
    let frames = Arc::new(frames);
    let make = async |place: FilePlace| match symlink {
        true => Arc::new(place).link(core, shape, &frames.concat()).await,
        false => Arc::new(place).fill(core, shape, &frames, size).await,
    };
    let mut made = make(FilePlace::of(core, moving).await?).await;
    if let Err(Failed::File(Operation::Create, _, error)) = &made
        && errno::is(error, errno::ENOENT)
    {
        // The open folder was removed by another program: create it again, once.
        made = make(FilePlace::again(core, moving).await?).await;
    }
    let made = made?;
    core.tell_conflict(moving, made);
    Ok(match made {
        Appeared::Kept | Appeared::LeftOut => Some(MoveResult::LEFT_OUT),
        Appeared::Yes | Appeared::Replaced if symlink => {
            Some(MoveResult { bytes: 0, kind: Some(Kind::Symlink), ..done })
        }
        Appeared::Yes | Appeared::Replaced => Some(done),
        Appeared::Node if symlink => {
            let why = "a device or FIFO has its name, and no symlink takes its place";
            return Err(Failed::Reason(Operation::Create, Side::Target, why));
        }
        Appeared::Node => None,
    })
}

/// Creates the folder for a zero-byte object `name/`.
pub(super) async fn create_marker(
    core: &Core<'_>,
    moving: &Moving,
    path: &[u8],
) -> Result<MoveResult, Failed> {
    let Root::Local { dir: root, .. } = &moving.pair.target else {
        return Ok(MoveResult::SKIPPED);
    };
    split(path)?;
    let (opened, made) = folder(core, root, path).await;
    // The end of the move counts the folder itself.
    count_made(core, made.saturating_sub(u64::from(opened.is_ok())));
    opened?;
    Ok(MoveResult { kind: Some(Kind::Dir), skipped: made == 0, ..MoveResult::default() })
}

// Reads the whole body of an object and checks it against the stored checksum.

/// Checksums that a server may have stored, the cheapest to compute first.
const STORED: [Algorithm; 5] =
    [Algorithm::Crc64Nvme, Algorithm::Crc32c, Algorithm::Crc32, Algorithm::Sha256, Algorithm::Sha1];

/// Headers, checked body and size of a whole object.
pub(super) type Whole = (HeaderMap, Vec<Bytes>, u64);

/// Receives an object of up to `bytes_max` whole in one request, repeated if the body broke or does not match the
/// checksum. An object that changed since it was listed (by its ETag) is taken in its current state. Returns `None` if it
/// is larger.
///
/// # Errors
/// Those of the request, after its tries.
pub(super) async fn whole(
    core: &Core<'_>,
    moving: &Moving,
    bytes_max: u64,
) -> Result<Option<Whole>, Failed> {
    let client = core.store(Side::Source)?;
    let Object { bucket, key, version, etag } = Object::source(core, moving)?;
    let size = Some(moving.entry.meta.size).filter(|_| !moving.is_unknown());
    let mut wanted = GetOptions { version, range: None, etag, size };
    let (mut tried, counted) = (1, Cell::new(0));
    loop {
        if core.engine.is_stopped() {
            return Err(Failed::Stopped);
        }
        let prepaid = client.prepay(moving.entry.meta.size).await.map_err(|_| Failed::Stopped)?;
        let broke = match get_object(client, bucket, &key, &wanted).await {
            Ok(mut download) => {
                download.prepaid(prepaid);
                match receive_whole(core, client, download, bytes_max, &counted).await {
                    Ok(whole) => return Ok(whole),
                    Err(error) => error,
                }
            }
            Err(error) if error.kind == ErrorKind::Precondition && wanted.etag.is_some() => {
                wanted = GetOptions { version, ..GetOptions::default() };
                continue;
            }
            Err(error) => return Err(unreadable(moving, error)),
        };
        if broke.kind == ErrorKind::Stopped {
            return Err(Failed::Stopped);
        }
        if !client.may_retry(tried, &broke).await {
            return Err(unreadable(moving, broke));
        }
        tried += 1;
    }
}

/// Returns the failure of a GET: a listed object that is missing has vanished.
pub(super) fn unreadable(moving: &Moving, error: Error) -> Failed {
    match error.kind {
        ErrorKind::NotFound if !moving.is_unknown() => Failed::Vanished(Operation::Read),
        ErrorKind::Stopped => Failed::Stopped,
        _ => Failed::Request(Operation::Read, Side::Source, error),
    }
}

async fn receive_whole(
    core: &Core<'_>,
    client: &Client,
    mut download: Download,
    bytes_max: u64,
    counted: &Cell<u64>,
) -> Result<Option<Whole>, Error> {
    if download.size() > bytes_max {
        return Ok(None);
    }
    let mut frames = Vec::new();
    let mut size = 0;
    while let Some(frame) = download.chunk().await? {
        size += frame.len() as u64;
        frames.push(frame);
        // Do not count repeated bytes twice.
        core.doing.lane().bytes(size.saturating_sub(counted.get()));
        counted.set(size.max(counted.get()));
        if core.engine.setup.control.is_stopped() {
            return Err(Error::new(ErrorKind::Stopped, "GetObject", "stopped"));
        }
    }
    if client.session().checks_downloads() {
        let _phase = core.doing.during(Phase::Compute);
        check(&download.headers, &frames)?;
    }
    Ok(Some((std::mem::take(&mut download.headers), frames, size)))
}

/// Returns the stored checksum of a whole object that is cheapest to compute.
pub(super) fn stored(headers: &HeaderMap) -> Option<Checksum> {
    STORED.iter().find_map(|algorithm| {
        let text = headers.get(algorithm.header())?.to_str().ok()?;
        // Of several parts: the boundaries are unknown.
        Checksum::decode(*algorithm, text).filter(|stored| stored.parts <= 1)
    })
}

/// Returns whether the computed hash matches the stored one; a single part may be stored as the hash of its hash.
pub(super) fn is_same(stored: &Checksum, hasher: Hasher) -> bool {
    let found = hasher.finish();
    match stored.parts {
        0 => found == *stored,
        _ => Checksum::composite(stored.algorithm, &[found]) == *stored,
    }
}

/// Compares a whole body with the stored checksum, if there is one.
///
/// # Errors
/// `Corrupt`.
pub(in crate::object) fn check(headers: &HeaderMap, frames: &[Bytes]) -> Result<(), Error> {
    let Some(stored) = stored(headers) else { return Ok(()) };
    let mut hasher = Hasher::new(stored.algorithm);
    for frame in frames {
        hasher.update(frame);
    }
    match is_same(&stored, hasher) {
        true => Ok(()),
        false => Err(mismatch(stored.algorithm)),
    }
}

/// Returns the error of a body whose checksum differs.
pub(super) fn mismatch(algorithm: Algorithm) -> Error {
    let message =
        format!("the received content has another {} than the stored object", algorithm.name());
    Error::new(ErrorKind::Corrupt, "GetObject", message)
}

// Download of a large object in ranges: any core takes the next one, and the worker that finishes the last one
// compares the checksum of the whole and gives the file its name.

/// A large object being downloaded.
pub struct LargeDownload {
    moving: Arc<Moving>,
    /// The ETag of the object when it began.
    etag: String,
    /// It is not the object that was listed.
    other: bool,
    cut: Cut,
    /// The checksum algorithm for each range.
    algorithm: Option<Algorithm>,
    proof: WholeCheck,
    shape: Shape,
    place: Option<Arc<FilePlace>>,
    permits: Permits,
    state: Mutex<State>,
}

struct State {
    /// Finished ranges, with their checksums if those are computed.
    finished: Vec<Option<Option<Checksum>>>,
    /// Everything was fetched again because the checksum of the whole differed.
    again: bool,
    draft: Option<DownloadFile>,
    /// With `--resume`: the state for a later run.
    checkpoint: Option<Checkpoint>,
}

/// Begins with an object that is too large to be received whole: requests its headers, and creates a file with
/// reserved space.
///
/// # Errors
/// Those of the request or of the file, including a full disk.
pub(super) async fn begin_ranges(
    core: &Core<'_>,
    moving: &Arc<Moving>,
    part_bytes: u64,
) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    let client = core.store(Side::Source)?;
    let head = Object::source(core, moving)?.head(client).await;
    let head = head.map_err(|error| unreadable(moving, error))?;
    let known = match moving.is_unknown() {
        true => Ok(true),
        false => head.is_still(&moving.entry.etag, moving.entry.meta.size),
    };
    let other = !known.map_err(|error| unreadable(moving, error))?;
    core.observed(moving, Side::Source, &head);
    let proof = match client.session().checks_downloads() {
        true => WholeCheck::of(&head.checksums),
        false => WholeCheck::None,
    };
    let local = matches!(moving.pair.target, Root::Local { .. });
    let resume = options.resume && local;
    let algorithm = proof.of_parts(resume);
    let shape = Shape::of(core.engine, moving, Some(&head));
    let place = match local {
        true => Some(Arc::new(FilePlace::of(core, moving).await?)),
        false => None,
    };
    let mut cut = Cut::new(head.size, part_bytes);
    let (mut draft, mut checkpoint, mut done) = (None, None, Vec::new());
    if let Some(place) = &place {
        let begun = match algorithm.filter(|_| resume) {
            Some(algorithm) => {
                let etag = &*head.etag;
                let what = DownloadSource { moving, etag, place, shape: &shape, algorithm };
                begin_resumable(core, client, &what, cut).await?
            }
            None => {
                let (files, at) = (Arc::clone(&core.engine.files), Arc::clone(place));
                let calls = move || DownloadFile::create(&files, &at, &shape, cut.size, false);
                let draft = file_calls(place.waits(), calls).await?;
                DownloadState { cut, draft, finished: Vec::new(), checkpoint: None }
            }
        };
        // Reserve the space before the first byte arrives, to detect a full disk.
        let file = begun.draft.share().map_err(failed(Operation::Write))?;
        let reserve = move || {
            publish::reserve_ahead(file.as_fd(), cut.size).map_err(failed(Operation::Write))
        };
        file_calls(place.waits(), reserve).await?;
        cut = begun.cut;
        (draft, checkpoint, done) = (Some(begun.draft), begun.checkpoint, begun.finished);
    }
    let mut finished = vec![None; cut.count as usize];
    for (number, sum) in done {
        // A record of an earlier run may contain any number.
        if let Some(slot) = (number as usize).checked_sub(1).and_then(|at| finished.get_mut(at)) {
            *slot = Some(Some(sum));
            // Ranges of an earlier run are not transferred again.
            core.doing.lane().settle(cut.bytes(number), 0);
        }
    }
    let (permits, streams) = Permits::new(waiting(&finished), streams_max(core.engine));
    let state = Mutex::new(State { finished, again: false, draft, checkpoint });
    let (moving, etag) = (Arc::clone(moving), head.etag);
    let large =
        LargeDownload { moving, etag, other, cut, algorithm, proof, shape, place, permits, state };
    Ok(Step::Parts(Arc::new(large), streams))
}

/// Returns the number of ranges of one object to request concurrently, at present.
fn streams_max(engine: &ObjectEngine<'_>) -> usize {
    engine.streams(engine.budget.bytes_max() / ROOM_BYTES)
}

fn waiting(finished: &[Option<Option<Checksum>>]) -> Vec<u32> {
    let open = (1..).zip(finished).filter(|(_, done)| done.is_none());
    let mut numbers: Vec<u32> = open.map(|(number, _)| number).collect();
    numbers.reverse();
    numbers
}

impl Large for LargeDownload {
    fn permits(&self) -> &Permits {
        &self.permits
    }

    fn streams_max(&self, engine: &ObjectEngine<'_>) -> usize {
        streams_max(engine)
    }

    async fn move_part(&self, core: &Core<'_>, number: u32) -> Result<(), Failed> {
        let client = core.store(Side::Source)?;
        let object = Object { etag: Some(&self.etag), ..Object::source(core, &self.moving)? };
        let part = DownloadRange {
            moving: &self.moving,
            object: &object,
            size: self.cut.size,
            range: self.cut.range(number),
            algorithm: self.algorithm,
            file: &|| self.file(),
            // Calls for the file may be slow.
            waits: self.place.as_ref().is_some_and(|place| place.waits()),
        };
        let sum = receive_range(core, client, &part).await?;
        let mut state = self.state();
        let State { finished, checkpoint, .. } = &mut *state;
        // Only waiting numbers are handed out.
        finished[number as usize - 1] = Some(sum);
        if let Some(checkpoint) = checkpoint {
            checkpoint.progress(|| part_records(&self.cut, finished));
        }
        Ok(())
    }

    async fn end(self: Arc<Self>, core: &Core<'_>) {
        core.doing.turn(Phase::Settle);
        let ended = match self.settle(core).await {
            Ok(Some(done)) => Ok(done),
            Ok(None) => {
                if let Some(client) = &core.source {
                    client.session().counts.retries.fetch_add(1, Ordering::Relaxed);
                }
                for _ in 0..self.restart(core.engine) {
                    core.engine.queue.again(Arc::clone(&self) as Arc<dyn Parts>);
                }
                return;
            }
            Err(failed) => Err(failed),
        };
        self.close(&ended);
        core.finish(&self.moving, ended).await;
        core.engine.queue.finished();
    }
}

impl LargeDownload {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Returns the file to write into; `None` for [`Root::Null`].
    ///
    /// # Errors
    /// The file was discarded already, so received data cannot be written.
    fn file(&self) -> Result<Option<Arc<OwnedFd>>, Failed> {
        let file = self.state().draft.as_ref().and_then(|draft| draft.share().ok());
        if file.is_none() && self.place.is_some() {
            let why = "its file is finished already";
            return Err(Failed::Reason(Operation::Write, Side::Target, why));
        }
        Ok(file)
    }

    /// Compares the checksum of the whole and gives the file its name. Returns `None` if it differs, so that the
    /// object is fetched again.
    async fn settle(&self, core: &Core<'_>) -> Result<Option<MoveResult>, Failed> {
        if let Some(failed) = self.permits.failure() {
            return Err(failed);
        }
        if self.state().finished.iter().any(Option::is_none) {
            let why = "some of its ranges were never received";
            return Err(Failed::Reason(Operation::Read, Side::Source, why));
        }
        if let Some(algorithm) = self.differs().await? {
            if !self.state().again {
                return Ok(None);
            }
            let error = mismatch(algorithm);
            return Err(Failed::Request(Operation::Read, Side::Source, error));
        }
        let done = MoveResult { bytes: self.cut.size, other: self.other, ..MoveResult::default() };
        let draft = self.state().draft.take();
        Ok(Some(match (draft, &self.place) {
            (Some(draft), Some(place)) => {
                let (at, shape) = (Arc::clone(place), self.shape);
                let publish = move || draft.publish(&at, &shape);
                let made = file_calls(place.waits(), publish).await?;
                core.tell_conflict(&self.moving, made);
                match made {
                    Appeared::Yes | Appeared::Replaced => done,
                    Appeared::Kept | Appeared::LeftOut => MoveResult::LEFT_OUT,
                    Appeared::Node => write_into_node(core, &self.moving).await?,
                }
            }
            (None, None) => done,
            _ => {
                let why = "the file that was begun is gone";
                return Err(Failed::Reason(Operation::Write, Side::Target, why));
            }
        }))
    }

    /// Returns the algorithm of a stored checksum that the whole does not match.
    async fn differs(&self) -> Result<Option<Algorithm>, Failed> {
        let (stored, found) = match &self.proof {
            WholeCheck::Joined(stored) => {
                let state = self.state();
                let sums = state.finished.iter().map(|sum| sum.as_ref().and_then(Option::as_ref));
                let parts = (1..).zip(sums).map(|(number, sum)| (sum, self.cut.bytes(number)));
                (stored, joined(parts))
            }
            WholeCheck::Reread(stored) => {
                let draft = self.state().draft.as_ref().map(DownloadFile::reader);
                let gone = || Err(io::ErrorKind::NotFound.into());
                let reader = draft.unwrap_or_else(gone).map_err(failed(Operation::Read))?;
                let (algorithm, size) = (stored.algorithm, self.cut.size);
                let read = move || {
                    let mut buffer = AlignedBytes::zeroed(READ_BYTES);
                    let whole = Range { start: 0, end: size };
                    let sum = sums::of_range(&reader, algorithm, whole, &mut buffer)?;
                    sum.ok_or(io::ErrorKind::UnexpectedEof.into())
                };
                (stored, Some(blocking(read).await.map_err(failed(Operation::Read))?))
            }
            WholeCheck::None => return Ok(None),
        };
        Ok((found.as_ref() != Some(stored)).then_some(stored.algorithm))
    }

    /// Makes all ranges wait again; returns the number of permits to hand out.
    fn restart(&self, engine: &ObjectEngine<'_>) -> usize {
        let mut state = self.state();
        state.finished.fill(None);
        state.again = true;
        self.permits.restart(waiting(&state.finished), streams_max(engine))
    }

    /// Saves the state for a later run, or removes it.
    fn close(&self, ended: &Result<MoveResult, Failed>) {
        let mut state = self.state();
        let draft = state.draft.take();
        let Some(mut checkpoint) = state.checkpoint.take() else { return };
        match (draft, ended) {
            (Some(draft), Err(failed)) if checkpoint::is_worth_keeping(failed) => {
                checkpoint.save(part_records(&self.cut, &state.finished));
                draft.keep();
            }
            _ => checkpoint.forget(),
        }
    }
}

// One range of a large object: received, hashed and written as it arrives, and continued where a connection broke.

/// Bytes gathered before a write; they still fit into the second-level cache.
const WRITE_BYTES: u64 = 256 << 10;
/// The same if each write waits for an answer.
const SLOW_WRITE_BYTES: u64 = 1 << 20;
/// Bytes in flight of one range: a write, and the connection's buffers.
pub(super) const ROOM_BYTES: u64 = 2 * WRITE_BYTES;
/// Bytes of progress after which the count of broken connections is reset.
const PROGRESS_BYTES: u64 = 4 << 20;

/// A range to receive_range, its object, and its file.
pub(super) struct DownloadRange<'a> {
    pub moving: &'a Moving,
    /// The one version of the object that all its ranges must belong to.
    pub object: &'a Object<'a>,
    /// Size of the whole object, in bytes.
    pub size: u64,
    pub range: Range,
    /// The algorithm of the checksum to compute.
    pub algorithm: Option<Algorithm>,
    /// Returns the file to write into, or an error once it was discarded; `None` if there is none.
    pub file: &'a dyn Fn() -> Result<Option<Arc<OwnedFd>>, Failed>,
    /// Calls for the file may be slow.
    pub waits: bool,
}

impl DownloadRange<'_> {
    /// Returns the number of bytes gathered before a write.
    fn write_bytes(&self) -> u64 {
        if self.waits { SLOW_WRITE_BYTES } else { WRITE_BYTES }
    }

    /// Returns the number of bytes to gather for the write at this offset. If a write waits for an answer it ends at
    /// a multiple of its size: a write that begins inside a page, or is slightly longer, takes two requests.
    fn room_at(&self, at: u64) -> usize {
        let past = if self.waits { at % SLOW_WRITE_BYTES } else { 0 };
        (self.write_bytes() - past) as usize
    }
}

/// Reason that a range was interrupted.
enum Broke {
    /// A broken body: it can be requested again from there.
    Body(Error),
    /// An error that a retry does not fix.
    For(Failed),
}

/// Receives a range and writes it; returns its checksum if one is computed.
///
/// # Errors
/// Those of the request after its tries, or of the file.
pub(super) async fn receive_range(
    core: &Core<'_>,
    client: &Client,
    part: &DownloadRange<'_>,
) -> Result<Option<Checksum>, Failed> {
    let DownloadRange { object, range, .. } = part;
    // The budget is never closed.
    let _room = core.room((2 * part.write_bytes()).min(range.end - range.start)).await;
    let mut progress = Progress { at: range.start, hasher: part.algorithm.map(Hasher::new) };
    let (mut tried, mut since) = (1, range.start);
    while progress.at < range.end {
        if core.engine.is_stopped() {
            return Err(Failed::Stopped);
        }
        let wanted = GetOptions {
            version: object.version,
            range: Some(Range { start: progress.at, end: range.end }),
            etag: object.etag,
            size: Some(part.size),
        };
        let download = match get_object(client, object.bucket, &object.key, &wanted).await {
            Ok(download) => download,
            Err(error) if error.kind == ErrorKind::Precondition => {
                return Err(Failed::Reason(Operation::Read, Side::Source, CHANGED_WHILE_READ));
            }
            Err(error) => return Err(unreadable(part.moving, error)),
        };
        let broke = match progress.go_on(core, part, download).await {
            Ok(()) => continue,
            Err(Broke::For(failed)) => return Err(failed),
            Err(Broke::Body(error)) => error,
        };
        if progress.at - since >= PROGRESS_BYTES {
            (tried, since) = (1, progress.at);
        }
        if !client.may_retry(tried, &broke).await {
            return Err(unreadable(part.moving, broke));
        }
        tried += 1;
    }
    Ok(progress.hasher.map(Hasher::finish))
}

/// Progress of writing a range.
struct Progress {
    at: u64,
    hasher: Option<Hasher>,
}

impl Progress {
    async fn go_on(
        &mut self,
        core: &Core<'_>,
        part: &DownloadRange<'_>,
        mut download: Download,
    ) -> Result<(), Broke> {
        let mut frames: Vec<Bytes> = Vec::new();
        let mut waiting = 0;
        loop {
            let next = download.chunk().await;
            let mut rest = Bytes::new();
            if let Ok(Some(frame)) = &next {
                core.doing.lane().bytes(frame.len() as u64);
                let room = part.room_at(self.at).saturating_sub(waiting);
                let mut frame = frame.clone();
                if part.waits && frame.len() > room {
                    rest = frame.split_off(room);
                }
                waiting += frame.len();
                frames.push(frame);
                if waiting < part.room_at(self.at) {
                    continue;
                }
            }
            // Full, at the end, or broken: the received bytes are good.
            frames = self.write(core, part, frames).await.map_err(Broke::For)?;
            frames.clear();
            waiting = rest.len();
            frames.extend((!rest.is_empty()).then_some(rest));
            if next.map_err(Broke::Body)?.is_none() {
                return Ok(());
            }
            if core.engine.setup.control.is_stopped() {
                return Err(Broke::For(Failed::Stopped));
            }
        }
    }

    /// Writes the received bytes, and returns the empty buffer.
    async fn write(
        &mut self,
        core: &Core<'_>,
        part: &DownloadRange<'_>,
        mut frames: Vec<Bytes>,
    ) -> Result<Vec<Bytes>, Failed> {
        let _phase = core.doing.during(Phase::Write);
        if let Some(fd) = (part.file)()? {
            let at = self.at;
            let write = move || {
                let buffers = frames.iter().map(|frame| &**frame);
                hakobu_sys::file::write_all_vectored_at(fd.as_fd(), buffers, at)
                    .map_err(failed(Operation::Write))?;
                Ok(frames)
            };
            frames = file_calls(part.waits, write).await?;
        }
        if self.hasher.is_some() {
            core.doing.turn(Phase::Compute);
        }
        for frame in &frames {
            if let Some(hasher) = &mut self.hasher {
                hasher.update(frame);
            }
            self.at += frame.len() as u64;
        }
        Ok(frames)
    }
}

// Downloads that continue in a later run (`--resume`): the file stays beside the target under a name of its own (see
// `publish/temp_name.rs`), the journal records the finished ranges. They are used only if the object is unchanged,
// the file is the same one, and its content matches the checksums computed on arrival.

/// Bytes read at once when a file is read again.
pub(super) const READ_BYTES: usize = 1 << 20;

/// The object to download.
pub(super) struct DownloadSource<'a> {
    pub moving: &'a Moving,
    /// ETag of the object.
    pub etag: &'a str,
    pub place: &'a Arc<FilePlace>,
    pub shape: &'a Shape,
    pub algorithm: Algorithm,
}

/// A file begun by this or an earlier run.
pub(super) struct DownloadState {
    pub cut: Cut,
    pub draft: DownloadFile,
    /// Ranges finished by an earlier run.
    pub finished: Vec<(u32, Checksum)>,
    pub checkpoint: Option<Checkpoint>,
}

/// Continues the download of an earlier run if it fits; otherwise begins a file.
///
/// # Errors
/// Those of the journal or the file; a reason if another run works on the same download.
pub(super) async fn begin_resumable(
    core: &Core<'_>,
    client: &Client,
    what: &DownloadSource<'_>,
    cut: Cut,
) -> Result<DownloadState, Failed> {
    let busy = "another run is downloading it";
    let (identity, claim) = checkpoint::claim(core, client, what.moving, busy)?;
    let name = TempNames::kept(number(&identity));
    let now = Source::Object {
        size: cut.size,
        etag: what.etag.to_owned(),
        version: core.engine.setup.options.version.clone(),
    };
    if let Some(record) = claim.load()
        && let Some((cut, draft, finished)) = trusted(core, what, &record, &now, &name).await?
    {
        let checkpoint = Some(Checkpoint::new(claim, record));
        return Ok(DownloadState { cut, draft, finished, checkpoint });
    }
    let (at, shape, its) = (Arc::clone(what.place), *what.shape, name.clone());
    let files = Arc::clone(&core.engine.files);
    let calls = move || {
        // We hold the claim, so no other run can use this file.
        match dir::unlink(at.folder.fd.as_fd(), &its) {
            Err(error) if !errno::is(&error, errno::ENOENT) => {
                return Err(failed(Operation::Remove)(error));
            }
            _ => {}
        }
        let draft = DownloadFile::named(&files, &at, &shape, its)?;
        let there = draft.share().and_then(meta::of_fd).map_err(failed(Operation::Stat))?;
        Ok((draft, there))
    };
    let (draft, there) = file_calls(what.place.waits(), calls).await?;
    let record = ObjectRecord {
        source: now,
        place: Spot::File { name: text(name.to_bytes()), dev: there.dev, ino: there.ino },
        part_bytes: cut.part_bytes,
        algorithm: what.algorithm.name().to_owned(),
        parts: Vec::new(),
    };
    claim.save(&record).map_err(unusable)?;
    let checkpoint = Some(Checkpoint::new(claim, record));
    Ok(DownloadState { cut, draft, finished: Vec::new(), checkpoint })
}

/// Returns the number in the name of the file.
fn number(identity: &ObjectIdentity) -> u64 {
    let both = [identity.source(), "\0", identity.target()].concat();
    sums::number(&Checksum::of(Algorithm::Crc64Nvme, both.as_bytes()))
}

type Found = (Cut, DownloadFile, Vec<(u32, Checksum)>);

/// Returns the file of an earlier run and its verified ranges; `None` if it is unusable.
async fn trusted(
    core: &Core<'_>,
    what: &DownloadSource<'_>,
    record: &ObjectRecord,
    now: &Source,
    name: &CStr,
) -> Result<Option<Found>, Failed> {
    let Spot::File { name: kept, dev, ino } = &record.place else { return Ok(None) };
    let asked = core.engine.setup.options.part_bytes;
    let fits = record.check(now) == RecordCheck::Good
        && !what.etag.is_empty()
        && record.algorithm == what.algorithm.name()
        && asked.is_none_or(|bytes| bytes == record.part_bytes)
        && kept.as_bytes() == name.to_bytes();
    if !fits {
        return Ok(None);
    }
    let (at, its, was) = (Arc::clone(what.place), name.to_owned(), (*dev, *ino));
    let calls = move || {
        let folder = at.folder.fd.as_fd();
        let both = (file::open_write(folder, &its), file::open_read(folder, &its, false));
        let (Ok(writer), Ok(reader)) = both else { return Ok(None) };
        let same = |fd| {
            meta::of_fd(fd).is_ok_and(|there| {
                there.kind == Kind::File && there.identity() == was && there.nlink == 1
            })
        };
        Ok((same(&writer) && same(&reader)).then_some((writer, reader)))
    };
    let Some((writer, reader)) = file_calls(what.place.waits(), calls).await? else {
        return Ok(None);
    };
    let cut = Cut::with(now.size(), record.part_bytes);
    let (parts, algorithm) = (record.parts.clone(), what.algorithm);
    let flag = core.engine.setup.control.flag();
    let prove = move || {
        let (mut proven, mut buffer) = (Vec::new(), AlignedBytes::zeroed(READ_BYTES));
        for part in parts {
            if flag.load(std::sync::atomic::Ordering::Relaxed) {
                break;
            }
            let Some(sum) = Checksum::decode(algorithm, &part.checksum) else { continue };
            // A range that cannot be read is fetched again.
            let found = sums::of_range(&reader, algorithm, cut.range(part.number), &mut buffer);
            if found.is_ok_and(|found| found.as_ref() == Some(&sum)) {
                proven.push((part.number, sum));
            }
        }
        Ok(proven)
    };
    let proven = blocking(prove).await.map_err(failed(Operation::Read))?;
    let draft = DownloadFile::adopt(&core.engine.files, what.place, writer, CString::from(name));
    Ok(Some((cut, draft, proven)))
}

/// Returns the finished ranges as parts of a record.
fn part_records(cut: &Cut, finished: &[Option<Option<Checksum>>]) -> Vec<journal::FinishedPart> {
    let parts = (1..).zip(finished).filter_map(|(number, sum)| {
        Some(journal::FinishedPart {
            number,
            bytes: cut.bytes(number),
            etag: String::new(),
            checksum: sum.as_ref()?.as_ref()?.encode(),
        })
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(stored: &[Checksum]) -> HeaderMap {
        let pair = |sum: &Checksum| {
            (sum.algorithm.header(), sum.encode().parse().expect("a header's value"))
        };
        stored.iter().map(pair).collect()
    }

    #[test]
    fn a_body_is_compared_with_what_is_stored() {
        let frames = [Bytes::from_static(b"ab"), Bytes::new(), Bytes::from_static(b"c")];
        for algorithm in STORED {
            let good = Checksum::of(algorithm, b"abc");
            let bad = Checksum::of(algorithm, b"abd");
            assert!(check(&headers(std::slice::from_ref(&good)), &frames).is_ok());
            let error = check(&headers(std::slice::from_ref(&bad)), &frames).expect_err("bad");
            assert_eq!(error.kind, ErrorKind::Corrupt);
            // A single part is hashed twice; the boundaries of several are unknown.
            let once = Checksum::composite(algorithm, std::slice::from_ref(&good));
            assert!(check(&headers(&[once]), &frames).is_ok());
            let wrong = Checksum::composite(algorithm, std::slice::from_ref(&bad));
            assert!(check(&headers(&[wrong]), &frames).is_err());
            let twice = Checksum::composite(algorithm, &[bad.clone(), bad]);
            assert!(check(&headers(&[twice]), &frames).is_ok());
        }
        assert!(check(&HeaderMap::new(), &frames).is_ok());
    }
}
