//! Download of a large object in ranges: any core takes the next one, and the worker that finishes the last one
//! compares the checksum of the whole and gives the file its name.

use super::body::{Object, unreadable};
use super::carried::Shape;
use super::folders::failed;
use super::hash::{blocking, hash};
use super::parts::{Cut, Proof, joined};
use super::place::{self, Place};
use super::range::{self, Version};
use super::resume::{self, Begun};
use super::target::{Appeared, Draft};
use crate::engine::publish;
use crate::object::checkpoint::Checkpoint;
use crate::object::core::{Core, Engine, Parts};
use crate::object::failed::Failed;
use crate::object::moving::{Done, Moving, Step};
use crate::object::permits::{Turn, more};
use crate::object::{Root, Side};
use futures_util::future::LocalBoxFuture;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_s3::ops::head_object;
use hakobu_s3::{Algorithm, Checksum};
use hakobu_sys::{AsFd, OwnedFd};
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A large object being downloaded.
pub struct Large {
    moving: Arc<Moving>,
    object: Version,
    /// It is not the object that was listed.
    other: bool,
    cut: Cut,
    /// The checksum algorithm for each range.
    algorithm: Option<Algorithm>,
    proof: Proof,
    shape: Shape,
    place: Option<Arc<Place>>,
    state: Mutex<State>,
}

struct State {
    /// Numbers of ranges not begun yet, the next one last.
    waiting: Vec<u32>,
    /// Number of permits for this object that were not released.
    streams: usize,
    /// Finished ranges, with their checksums if those are computed.
    finished: Vec<Option<Option<Checksum>>>,
    /// The first failure: no further range is begun.
    failed: Option<Failed>,
    /// Everything was fetched again because the checksum of the whole differed.
    again: bool,
    draft: Option<Draft>,
    /// With `--resume`: the state for a later run.
    checkpoint: Option<Checkpoint>,
}

/// Begins with an object that is too large to be received whole: requests its headers, and creates a file with
/// reserved space.
///
/// # Errors
/// Those of the request or of the file, including a full disk.
pub(super) async fn begin(
    core: &Core<'_>,
    moving: &Arc<Moving>,
    part_bytes: u64,
) -> Result<Step, Failed> {
    let options = &core.engine.setup.options;
    let Object { client, bucket, key, version } = Object::of(core, moving)?;
    let head = head_object(client, bucket, &key, version).await;
    let head = head.map_err(|error| unreadable(moving, error))?;
    let known = match moving.is_unknown() {
        true => Ok(true),
        false => head.is_still(&moving.entry.etag, moving.entry.meta.size),
    };
    let other = !known.map_err(|error| unreadable(moving, error))?;
    let proof = match client.store().checks_downloads() {
        true => Proof::of(&head.checksums),
        false => Proof::None,
    };
    let local = matches!(moving.pair.target, Root::Local { .. });
    let resume = options.resume && local;
    let algorithm = proof.of_parts(resume);
    let shape = Shape::of(core.engine, moving, Some(&head));
    let place = match local {
        true => Some(Arc::new(Place::of(core, moving).await?)),
        false => None,
    };
    let mut cut = Cut::new(head.size, part_bytes);
    let (mut draft, mut checkpoint, mut done) = (None, None, Vec::new());
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
                let (files, at) = (Arc::clone(&core.engine.files), Arc::clone(place));
                let calls = move || Draft::create(&files, &at, &shape, cut.size, false);
                let draft = place::make(place.waits(), calls).await?;
                Begun { cut, draft, finished: Vec::new(), checkpoint: None }
            }
        };
        // Reserve the space before the first byte arrives, to detect a full disk.
        let file = begun.draft.share();
        let reserve = move || {
            publish::reserve_ahead(file.as_fd(), cut.size).map_err(failed(Operation::Write))
        };
        place::make(place.waits(), reserve).await?;
        cut = begun.cut;
        (draft, checkpoint, done) = (Some(begun.draft), begun.checkpoint, begun.finished);
    }
    let mut finished = vec![None; cut.count as usize];
    for (number, sum) in done {
        // A record of an earlier run may contain any number.
        if let Some(slot) = (number as usize).checked_sub(1).and_then(|at| finished.get_mut(at)) {
            *slot = Some(Some(sum));
            // Ranges of an earlier run are not transferred again.
            let range = cut.range(number);
            core.doing.lane().settle(range.end - range.start, 0);
        }
    }
    let waiting = waiting(&finished);
    let streams = streams_max(core.engine).min(waiting.len()).max(1);
    let state = State { waiting, streams, finished, failed: None, again: false, draft, checkpoint };
    let (moving, state) = (Arc::clone(moving), Mutex::new(state));
    let large = Large { moving, object, other, cut, algorithm, proof, shape, place, state };
    Ok(Step::Parts(Arc::new(large), streams))
}

/// Returns the number of ranges of one object to request concurrently, at present.
fn streams_max(engine: &Engine<'_>) -> usize {
    engine.streams(engine.budget.bytes_max() / range::ROOM_BYTES)
}

fn waiting(finished: &[Option<Option<Checksum>>]) -> Vec<u32> {
    let open = (1..).zip(finished).filter(|(_, done)| done.is_none());
    let mut numbers: Vec<u32> = open.map(|(number, _)| number).collect();
    numbers.reverse();
    numbers
}

impl Parts for Large {
    fn part<'a>(self: Arc<Self>, core: &'a Core<'a>) -> LocalBoxFuture<'a, ()> {
        Box::pin(part(core, self))
    }

    fn widen(&self, engine: &Engine<'_>) -> usize {
        let mut state = self.state();
        let waiting = if state.failed.is_none() { state.waiting.len() } else { 0 };
        more(&mut state.streams, waiting, streams_max(engine))
    }
}

async fn part(core: &Core<'_>, large: Arc<Large>) {
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
        Turn::Again => return core.engine.queue.again(large),
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
                core.engine.queue.again(Arc::clone(&large) as Arc<dyn Parts>);
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
        self.state.lock()
    }

    /// Returns the file to write into; `None` for [`Root::Null`].
    ///
    /// # Errors
    /// The file was discarded already, so received data cannot be written.
    fn file(&self) -> Result<Option<Arc<OwnedFd>>, Failed> {
        let file = self.state().draft.as_ref().map(Draft::share);
        if file.is_none() && self.place.is_some() {
            let why = "its file is finished already";
            return Err(Failed::Reason(Operation::Write, Side::Target, why));
        }
        Ok(file)
    }

    /// Returns whether calls for the file may be slow.
    fn waits(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.waits())
    }

    fn fail(&self, failed: Failed) {
        self.state().failed.get_or_insert(failed);
    }

    /// Takes the next range.
    fn next(&self) -> Option<u32> {
        let mut state = self.state();
        if state.failed.is_some() { None } else { state.waiting.pop() }
    }

    async fn receive(&self, core: &Core<'_>, number: u32) -> Result<Option<Checksum>, Failed> {
        let Some(client) = core.client(Side::Source) else {
            return Err(Failed::Reason(Operation::Read, Side::Source, "the source is not a store"));
        };
        let part = range::Part {
            moving: &self.moving,
            object: &self.object,
            size: self.cut.size,
            range: self.cut.range(number),
            algorithm: self.algorithm,
            file: &|| self.file(),
            waits: self.waits(),
        };
        range::receive(core, client, &part).await
    }

    fn finished(&self, number: u32, sum: Option<Checksum>) {
        let mut state = self.state();
        let State { finished, checkpoint, .. } = &mut *state;
        // Only waiting numbers are handed out.
        finished[number as usize - 1] = Some(sum);
        if let Some(checkpoint) = checkpoint {
            checkpoint.progress(|| resume::parts(&self.cut, finished));
        }
    }

    /// Returns the next step of a permit's holder after a range.
    fn turn(&self, engine: &Engine<'_>) -> Turn {
        let mut state = self.state();
        let goes_on = state.failed.is_none() && !state.waiting.is_empty();
        Turn::of(&mut state.streams, goes_on, streams_max(engine))
    }

    /// Compares the checksum of the whole and gives the file its name. Returns `None` if it differs, so that the
    /// object is fetched again.
    async fn end(&self, core: &Core<'_>) -> Result<Option<Done>, Failed> {
        let failed = self.state().failed.take();
        if let Some(failed) = failed {
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
            let error = super::body::mismatch(algorithm);
            return Err(Failed::Request(Operation::Read, Side::Source, error));
        }
        let done = Done { bytes: self.cut.size, other: self.other, ..Done::default() };
        let draft = self.state().draft.take();
        Ok(Some(match (draft, &self.place) {
            (Some(draft), Some(place)) => {
                let (files, at, shape) =
                    (Arc::clone(&core.engine.files), Arc::clone(place), self.shape);
                let publish = move || draft.publish(&files, &at, &shape);
                match place::make(place.waits(), publish).await? {
                    Appeared::Yes => done,
                    Appeared::Kept => Done { skipped: true, ..Done::default() },
                    Appeared::Node => super::through::run(core, &self.moving).await?,
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
            Proof::Joined(stored) => {
                let sums: Vec<_> =
                    self.state().finished.iter().cloned().map(Option::flatten).collect();
                (stored, joined(&self.cut, &sums))
            }
            Proof::Reread(stored) => {
                let draft = self.state().draft.as_ref().map(Draft::reader);
                let gone = || Err(io::ErrorKind::NotFound.into());
                let reader = draft.unwrap_or_else(gone).map_err(failed(Operation::Read))?;
                let (algorithm, size) = (stored.algorithm, self.cut.size);
                let sum = blocking(move || hash(&reader, algorithm, 0, size)).await;
                (stored, Some(sum.map_err(failed(Operation::Read))?))
            }
            Proof::None => return Ok(None),
        };
        Ok((found.as_ref() != Some(stored)).then_some(stored.algorithm))
    }

    /// Makes all ranges wait again; returns the number of permits to hand out.
    fn restart(&self, engine: &Engine<'_>) -> usize {
        let mut state = self.state();
        state.finished.fill(None);
        state.waiting = waiting(&state.finished);
        state.again = true;
        state.streams = streams_max(engine).min(state.waiting.len()).max(1);
        state.streams
    }

    /// Saves the state for a later run, or removes it.
    fn close(&self, ended: &Result<Done, Failed>) {
        let mut state = self.state();
        let draft = state.draft.take();
        let Some(mut checkpoint) = state.checkpoint.take() else { return };
        match (draft, ended) {
            (Some(draft), Err(failed)) if resume::is_worth_keeping(failed) => {
                checkpoint.save(resume::parts(&self.cut, &state.finished));
                draft.keep();
            }
            _ => checkpoint.forget(),
        }
    }
}
