//! Download of a large object in ranges: any core takes the next one, and the worker that finishes the last one
//! compares the checksum of the whole and gives the file its name.

use super::body::unreadable;
use super::carried::Shape;
use super::folders::failed;
use super::place::{self, Place};
use super::range;
use super::resume::{self, Begun};
use super::target::{Appeared, Draft};
use crate::engine::publish;
use crate::object::checkpoint::{self, Checkpoint};
use crate::object::core::{Core, Engine, Parts};
use crate::object::cut::Cut;
use crate::object::ends::Object;
use crate::object::failed::Failed;
use crate::object::helper::blocking;
use crate::object::moving::{Done, Moving, Step};
use crate::object::permits::{Large, Permits};
use crate::object::sums::{self, Proof, joined};
use crate::object::{Root, Side};
use hakobu_core::buffer::AlignedBytes;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_s3::ops::Range;
use hakobu_s3::{Algorithm, Checksum};
use hakobu_sys::{AsFd, OwnedFd};
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
    proof: Proof,
    shape: Shape,
    place: Option<Arc<Place>>,
    permits: Permits,
    state: Mutex<State>,
}

struct State {
    /// Finished ranges, with their checksums if those are computed.
    finished: Vec<Option<Option<Checksum>>>,
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
    let client = core.store(Side::Source)?;
    let head = Object::source(core, moving)?.head(client).await;
    let head = head.map_err(|error| unreadable(moving, error))?;
    let known = match moving.is_unknown() {
        true => Ok(true),
        false => head.is_still(&moving.entry.etag, moving.entry.meta.size),
    };
    let other = !known.map_err(|error| unreadable(moving, error))?;
    let proof = match client.session().checks_downloads() {
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
    if let Some(place) = &place {
        let begun = match algorithm.filter(|_| resume) {
            Some(algorithm) => {
                let etag = &*head.etag;
                let what = resume::What { moving, etag, place, shape: &shape, algorithm };
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
fn streams_max(engine: &Engine<'_>) -> usize {
    engine.streams(engine.budget.bytes_max() / range::ROOM_BYTES)
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

    fn streams_max(&self, engine: &Engine<'_>) -> usize {
        streams_max(engine)
    }

    async fn move_part(&self, core: &Core<'_>, number: u32) -> Result<(), Failed> {
        let client = core.store(Side::Source)?;
        let object = Object { etag: Some(&self.etag), ..Object::source(core, &self.moving)? };
        let part = range::Part {
            moving: &self.moving,
            object: &object,
            size: self.cut.size,
            range: self.cut.range(number),
            algorithm: self.algorithm,
            file: &|| self.file(),
            // Calls for the file may be slow.
            waits: self.place.as_ref().is_some_and(|place| place.waits()),
        };
        let sum = range::receive(core, client, &part).await?;
        let mut state = self.state();
        let State { finished, checkpoint, .. } = &mut *state;
        // Only waiting numbers are handed out.
        finished[number as usize - 1] = Some(sum);
        if let Some(checkpoint) = checkpoint {
            checkpoint.progress(|| resume::parts(&self.cut, finished));
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
        let file = self.state().draft.as_ref().map(Draft::share);
        if file.is_none() && self.place.is_some() {
            let why = "its file is finished already";
            return Err(Failed::Reason(Operation::Write, Side::Target, why));
        }
        Ok(file)
    }

    /// Compares the checksum of the whole and gives the file its name. Returns `None` if it differs, so that the
    /// object is fetched again.
    async fn settle(&self, core: &Core<'_>) -> Result<Option<Done>, Failed> {
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
                let made = place::make(place.waits(), publish).await?;
                core.tell_conflict(&self.moving, made);
                match made {
                    Appeared::Yes | Appeared::Replaced => done,
                    Appeared::Kept | Appeared::LeftOut => Done::SKIPPED,
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
                let state = self.state();
                let sums = state.finished.iter().map(|sum| sum.as_ref().and_then(Option::as_ref));
                let parts = (1..).zip(sums).map(|(number, sum)| (sum, self.cut.bytes(number)));
                (stored, joined(parts))
            }
            Proof::Reread(stored) => {
                let draft = self.state().draft.as_ref().map(Draft::reader);
                let gone = || Err(io::ErrorKind::NotFound.into());
                let reader = draft.unwrap_or_else(gone).map_err(failed(Operation::Read))?;
                let (algorithm, size) = (stored.algorithm, self.cut.size);
                let read = move || {
                    let mut buffer = AlignedBytes::zeroed(resume::READ_BYTES);
                    let whole = Range { start: 0, end: size };
                    let sum = sums::of_range(&reader, algorithm, whole, &mut buffer)?;
                    sum.ok_or(io::ErrorKind::UnexpectedEof.into())
                };
                (stored, Some(blocking(read).await.map_err(failed(Operation::Read))?))
            }
            Proof::None => return Ok(None),
        };
        Ok((found.as_ref() != Some(stored)).then_some(stored.algorithm))
    }

    /// Makes all ranges wait again; returns the number of permits to hand out.
    fn restart(&self, engine: &Engine<'_>) -> usize {
        let mut state = self.state();
        state.finished.fill(None);
        state.again = true;
        self.permits.restart(waiting(&state.finished), streams_max(engine))
    }

    /// Saves the state for a later run, or removes it.
    fn close(&self, ended: &Result<Done, Failed>) {
        let mut state = self.state();
        let draft = state.draft.take();
        let Some(mut checkpoint) = state.checkpoint.take() else { return };
        match (draft, ended) {
            (Some(draft), Err(failed)) if checkpoint::is_worth_keeping(failed) => {
                checkpoint.save(resume::parts(&self.cut, &state.finished));
                draft.keep();
            }
            _ => checkpoint.forget(),
        }
    }
}
