//! A large object in ranges: any core takes the next one, and whoever brings the last compares the
//! checksum of the whole and gives the file its name.

use super::body::{Object, unreadable};
use super::carried::Shape;
use super::folders::failed;
use super::parts::{Cut, Proof, joined};
use super::range;
use super::resume::{self, Kept};
use super::target::{Appeared, Draft, Place};
use crate::error::Operation;
use crate::meter::Phase;
use crate::object::core::{Core, Engine, Large as Parts};
use crate::object::moving::{Done, Failed, Moving, Step};
use crate::object::rights::{Turn, more};
use crate::object::{Root, Side};
use crate::s3::ops::head_object;
use crate::s3::{Algorithm, Checksum, Hasher};
use hakobu_sys::{AsFd, OwnedFd, errno, file};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that are read at once where a finished file is read again.
pub(super) const READ_BYTES: usize = 1 << 20;

/// A large object on this way.
pub struct Large {
    pub(super) moving: Arc<Moving>,
    pub(super) object: Version,
    pub(super) cut: Cut,
    /// What is computed of each range.
    pub(super) algorithm: Option<Algorithm>,
    /// The file to write into; none for [`Root::Null`].
    pub(super) fd: Option<Arc<OwnedFd>>,
    proof: Proof,
    shape: Shape,
    place: Option<Place>,
    state: Mutex<State>,
}

/// One version of an object: what all its ranges have to be of.
pub(super) struct Version {
    pub bucket: String,
    pub key: Vec<u8>,
    pub version: Option<String>,
    pub etag: String,
}

struct State {
    /// Numbers of ranges that nobody has begun, the next one last.
    waiting: Vec<u32>,
    /// Rights to work on this object that were not given up.
    streams: usize,
    /// Finished ranges, with their checksums where those are computed.
    finished: Vec<Option<Option<Checksum>>>,
    /// The first failure: nothing further is begun.
    failed: Option<Failed>,
    /// Everything was fetched a second time because the whole was not what is stored.
    again: bool,
    draft: Option<Draft>,
    /// With `--resume`: what a later run needs.
    kept: Option<Kept>,
}

/// A file that was begun, now or by an earlier run.
pub(super) struct Begun {
    pub cut: Cut,
    pub draft: Draft,
    /// Ranges that an earlier run has finished.
    pub finished: Vec<(u32, Checksum)>,
    pub kept: Option<Kept>,
}

/// Begins with an object that is too large to be received whole: asks what it is, and makes a
/// file with room for it.
///
/// # Errors
/// The request's, or the file's: a disk without room says so here.
pub(super) async fn begin(
    core: &Core<'_>,
    moving: &Arc<Moving>,
    part_bytes: u64,
) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    let Object { client, bucket, key, version } = Object::of(core, moving)?;
    let head = head_object(client, bucket, &key, version).await;
    let head = head.map_err(|error| unreadable(moving, error))?;
    let proof = match client.store().checks_downloads() {
        true => Proof::of(&head.checksums),
        false => Proof::None,
    };
    let local = matches!(moving.pair.target, Root::Local { .. });
    let resume = options.resume && local;
    let algorithm = proof.of_parts(resume);
    let shape = Shape::of(core.engine, moving, Some(&head));
    let place = local.then(|| Place::of(core, moving)).transpose()?;
    let mut cut = Cut::new(head.size, part_bytes);
    let (mut draft, mut kept, mut done) = (None, None, Vec::new());
    let object = Version {
        bucket: bucket.to_owned(),
        key,
        version: version.map(str::to_owned),
        etag: head.etag.clone(),
    };
    if let Some(place) = &place {
        let begun = match algorithm.filter(|_| resume) {
            Some(algorithm) => {
                let what =
                    resume::What { moving, object: &object, place, shape: &shape, algorithm };
                resume::begin(core, client, &what, cut).await?
            }
            None => {
                let draft = Draft::create(core.engine, place, &shape, cut.size, false)?;
                Begun { cut, draft, finished: Vec::new(), kept: None }
            }
        };
        reserve(&begun.draft, cut.size)?;
        cut = begun.cut;
        (draft, kept, done) = (Some(begun.draft), begun.kept, begun.finished);
    }
    let mut finished = vec![None; cut.count as usize];
    for (number, sum) in done {
        if let Some(slot) = finished.get_mut(number as usize - 1) {
            *slot = Some(Some(sum));
        }
    }
    let waiting = waiting(&finished);
    let streams = streams_max(core.engine).min(waiting.len()).max(1);
    let fd = draft.as_ref().map(Draft::share);
    let state = State { waiting, streams, finished, failed: None, again: false, draft, kept };
    let (moving, state) = (Arc::clone(moving), Mutex::new(state));
    let large = Large { moving, object, cut, algorithm, fd, proof, shape, place, state };
    Ok(Step::Parts(Arc::new(Parts::Get(large)), streams))
}

/// Reserves the room, so that a full disk is known before the first byte has come.
fn reserve(draft: &Draft, size: u64) -> Result<(), Failed> {
    match file::reserve(draft.fd(), size) {
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(errno::ENOSPC | errno::EDQUOT | errno::EFBIG)
            ) =>
        {
            Err(failed(Operation::Write)(error))
        }
        // A file system that cannot reserve finds out later.
        _ => Ok(()),
    }
}

/// How many ranges of one object are asked for at once, as things are now.
fn streams_max(engine: &Engine<'_>) -> usize {
    engine.streams(engine.budget.bytes_max() / range::ROOM_BYTES)
}

fn waiting(finished: &[Option<Option<Checksum>>]) -> Vec<u32> {
    let open = (1..).zip(finished).filter(|(_, done)| done.is_none());
    let mut numbers: Vec<u32> = open.map(|(number, _)| number).collect();
    numbers.reverse();
    numbers
}

/// Works on the next range; then gives the right back to the queue, or ends the whole.
pub(in crate::object) async fn part(core: &Core<'_>, shared: &Arc<Parts>, large: &Large) {
    if core.engine.is_stopped() {
        large.fail(Failed::Stopped);
    }
    if let Some(number) = large.next() {
        match large.receive(core, number).await {
            Ok(sum) => large.finished(number, sum),
            Err(failed) => large.fail(failed),
        }
    }
    match large.turn(core.engine) {
        Turn::Again => return core.engine.queue.again(Arc::clone(shared)),
        Turn::Leave => return,
        Turn::End => {}
    }
    core.doing.turn(Phase::Settle);
    let ended = match large.end(core).await {
        Ok(Some(done)) => Ok(done),
        Ok(None) => {
            if let Some(client) = core.client(Side::Source) {
                client.store().counts.retries.fetch_add(1, Ordering::Relaxed);
            }
            for _ in 0..large.restart(core.engine) {
                core.engine.queue.again(Arc::clone(shared));
            }
            return;
        }
        Err(failed) => Err(failed),
    };
    large.close(&ended);
    core.finish(&large.moving, ended).await;
    core.engine.queue.finished();
}

impl Large {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, failed: Failed) {
        self.state().failed.get_or_insert(failed);
    }

    /// The next range to work on.
    fn next(&self) -> Option<u32> {
        let mut state = self.state();
        if state.failed.is_some() { None } else { state.waiting.pop() }
    }

    async fn receive(&self, core: &Core<'_>, number: u32) -> Result<Option<Checksum>, Failed> {
        let Some(client) = core.client(Side::Source) else {
            return Err(Failed::Reason(Operation::Read, Side::Source, "the source is no store"));
        };
        range::receive(core, client, self, self.cut.range(number)).await
    }

    fn finished(&self, number: u32, sum: Option<Checksum>) {
        let mut state = self.state();
        let State { finished, kept, .. } = &mut *state;
        if let Some(slot) = finished.get_mut(number as usize - 1) {
            *slot = Some(sum);
        }
        if let Some(kept) = kept {
            kept.progress(&self.cut, finished);
        }
    }

    /// What the holder of a right does with it after a range.
    fn turn(&self, engine: &Engine<'_>) -> Turn {
        let mut state = self.state();
        let goes_on = state.failed.is_none() && !state.waiting.is_empty();
        Turn::of(&mut state.streams, goes_on, streams_max(engine))
    }

    /// Counts as many more rights as may be handed out by now, and returns how many.
    pub(in crate::object) fn widen(&self, engine: &Engine<'_>) -> usize {
        let mut state = self.state();
        let waiting = if state.failed.is_none() { state.waiting.len() } else { 0 };
        more(&mut state.streams, waiting, streams_max(engine))
    }

    /// Compares the whole with what is stored and gives the file its name. `None`: it is not what
    /// is stored, and is to be fetched once more.
    async fn end(&self, core: &Core<'_>) -> Result<Option<Done>, Failed> {
        let failed = self.state().failed.take();
        if let Some(failed) = failed {
            return Err(failed);
        }
        if let Some(algorithm) = self.differs().await? {
            if !self.state().again {
                return Ok(None);
            }
            let error = super::body::mismatch(algorithm);
            return Err(Failed::Request(Operation::Read, Side::Source, error));
        }
        let done = Done { bytes: self.cut.size, ..Done::default() };
        let draft = self.state().draft.take();
        Ok(Some(match (draft, &self.place) {
            (Some(draft), Some(place)) => match draft.publish(core.engine, place, &self.shape)? {
                Appeared::Yes => done,
                Appeared::Kept => Done { skipped: true, ..Done::default() },
            },
            _ => done,
        }))
    }

    /// The algorithm by which the whole is not what is stored.
    async fn differs(&self) -> Result<Option<Algorithm>, Failed> {
        let (stored, found) = match (&self.proof, &self.fd) {
            (Proof::Joined(stored), _) => {
                let sums: Vec<_> =
                    self.state().finished.iter().cloned().map(Option::flatten).collect();
                (stored, joined(&self.cut, &sums))
            }
            (Proof::Reread(stored), Some(_)) => {
                let draft = self.state().draft.as_ref().map(Draft::reader);
                let Some(reader) = draft.transpose().map_err(failed(Operation::Read))? else {
                    return Ok(None);
                };
                let (algorithm, size) = (stored.algorithm, self.cut.size);
                let sum = blocking(move || hash(&reader, algorithm, 0, size)).await;
                (stored, Some(sum.map_err(failed(Operation::Read))?))
            }
            _ => return Ok(None),
        };
        Ok((found.as_ref() != Some(stored)).then_some(stored.algorithm))
    }

    /// Makes all ranges wait again; returns how many rights to hand out.
    fn restart(&self, engine: &Engine<'_>) -> usize {
        let mut state = self.state();
        state.finished.fill(None);
        state.waiting = waiting(&state.finished);
        state.again = true;
        state.streams = streams_max(engine).min(state.waiting.len()).max(1);
        state.streams
    }

    /// Remembers what a later run may go on with, or forgets it.
    fn close(&self, ended: &Result<Done, Failed>) {
        let mut state = self.state();
        let draft = state.draft.take();
        let Some(mut kept) = state.kept.take() else { return };
        match (draft, ended) {
            (Some(draft), Err(failed)) if resume::is_worth_keeping(failed) => {
                kept.save(&self.cut, &state.finished);
                draft.keep();
            }
            _ => kept.forget(),
        }
    }
}

/// Runs what would block a core elsewhere.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// The checksum of a stretch of a file.
///
/// # Errors
/// The system's; UnexpectedEof where the file is shorter.
pub(super) fn hash(
    file: &OwnedFd,
    algorithm: Algorithm,
    start: u64,
    end: u64,
) -> io::Result<Checksum> {
    let mut hasher = Hasher::new(algorithm);
    let mut buffer = vec![0; READ_BYTES];
    let mut at = start;
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
        let space = buffer.get_mut(..wanted).unwrap_or_default();
        let got = file::read_full_at(file.as_fd(), space, at)?;
        if got < wanted {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        hasher.update(space);
        at += got as u64;
    }
    Ok(hasher.finish())
}
