//! Upload of a large file in parts: any core takes the next part, and the worker that finishes the last one completes
//! the upload, after checking that the file is unchanged.

use super::cut::Limits;
use super::fill::{self, Source};
use super::request::{self, headers, read_failed, refused, unchanged};
use super::resume::{self, Begun};
use crate::object::Side;
use crate::object::between::condition;
use crate::object::checkpoint::{self, Checkpoint};
use crate::object::core::{Core, Engine};
use crate::object::cut::Cut;
use crate::object::ends::{CHANGED_WHILE_READ, Target};
use crate::object::failed::Failed;
use crate::object::moving::{Done, Moving, Step};
use crate::object::permits::{Large, Permits};
use crate::object::sums::joined;
use bytes::Bytes;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_core::unit::Meta;
use hakobu_s3::ops::{self, Headers, Part};
use hakobu_s3::{Algorithm, Checksum, ErrorKind};
use hakobu_sys::meta;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Error for an object whose ten-thousandth part is larger than `--memory`.
pub(in crate::object) const TOO_LARGE: &str = "one of its 10,000 parts does not fit into the memory that may be used: give more with --memory";
/// Maximum number of aborts of an upload, and the first pause between them.
const ABORTS_MAX: u32 = 5;
const ABORT_PAUSE: Duration = Duration::from_millis(50);

/// A large object being uploaded.
pub struct LargeUpload {
    moving: Arc<Moving>,
    source: Source,
    /// The file's metadata when the upload began.
    meta: Meta,
    upload: String,
    cut: Cut,
    algorithm: Option<Algorithm>,
    permits: Permits,
    state: Mutex<State>,
}

struct State {
    /// Finished parts, in no order.
    parts: Vec<Part>,
    /// A part was dropped while it was sent: the server may still be receiving it.
    cut_off: bool,
    /// With `--resume`: the state for a later run.
    checkpoint: Option<Checkpoint>,
}

fn too_large() -> Failed {
    Failed::Reason(Operation::Write, Side::Target, TOO_LARGE)
}

fn streams_max(engine: &Engine<'_>, cut: &Cut) -> usize {
    engine.streams(Limits::of(engine).fit(cut))
}

/// Begins an upload, or continues an old one.
pub(super) async fn begin(
    core: &Core<'_>,
    moving: &Arc<Moving>,
    source: Source,
    now: &Meta,
    cut: Cut,
) -> Result<Step, Failed> {
    let target = Target::of(core, moving)?;
    if cut.part_bytes > core.engine.budget.bytes_max() {
        return Err(too_large());
    }
    let algorithm = core.upload_checksum();
    let create = async || {
        let start = match request::needs_content(core, moving, now) {
            true => fill::start(&core.doing, &source).await.map_err(read_failed)?,
            false => Bytes::new(),
        };
        let mut headers = headers(core, moving, now, &start);
        // A condition belongs to the request that creates the object.
        headers.retain(|(name, _)| name != IF_NONE_MATCH && name != IF_MATCH);
        let Target { client, bucket, key } = &target;
        let created = ops::create_upload(client, bucket, key, algorithm, &headers).await;
        let made = created.map_err(Failed::at_target(Operation::Write))?;
        let ops::CreatedUpload { id: upload, algorithm } = made;
        Ok(Begun { upload, algorithm, cut, parts: Vec::new(), checkpoint: None })
    };
    let begun = if core.engine.setup.options.resume {
        let what = resume::What { moving, target: &target, now, algorithm };
        resume::begin(core, &what, cut, create).await?
    } else {
        create().await?
    };
    let Begun { upload, algorithm, cut, parts, checkpoint } = begun;
    let done: std::collections::HashSet<u32> = parts.iter().map(|part| part.number).collect();
    // Parts of an earlier run are not transferred again.
    core.doing.lane().settle(parts.iter().map(|part| part.size).sum(), 0);
    let waiting = cut.numbers().filter(|number| !done.contains(number)).collect();
    let (permits, streams) = Permits::new(waiting, streams_max(core.engine, &cut));
    let state = Mutex::new(State { parts, cut_off: false, checkpoint });
    let (moving, meta) = (Arc::clone(moving), *now);
    let large = LargeUpload { moving, source, meta, upload, cut, algorithm, permits, state };
    Ok(Step::Parts(Arc::new(large), streams))
}

impl Large for LargeUpload {
    fn permits(&self) -> &Permits {
        &self.permits
    }

    fn streams_max(&self, engine: &Engine<'_>) -> usize {
        streams_max(engine, &self.cut)
    }

    async fn move_part(&self, core: &Core<'_>, number: u32) -> Result<(), Failed> {
        let Some(sent) = core.engine.unless_stopped(self.send(core, number)).await else {
            self.state.lock().cut_off = true;
            return Err(Failed::Stopped);
        };
        let mut state = self.state.lock();
        state.parts.push(sent?);
        let State { parts, checkpoint, .. } = &mut *state;
        if let Some(checkpoint) = checkpoint {
            checkpoint.progress(|| resume::parts(parts));
        }
        Ok(())
    }

    async fn end(self: Arc<Self>, core: &Core<'_>) {
        let ended = self.settle(core).await;
        core.finish(&self.moving, ended).await;
        core.engine.queue.finished();
    }
}

impl LargeUpload {
    /// Reads, hashes and uploads one part.
    async fn send(&self, core: &Core<'_>, number: u32) -> Result<Part, Failed> {
        let Target { client, bucket, key } = Target::of(core, &self.moving)?;
        let bytes = self.cut.bytes(number);
        let _room = core.room(bytes).await;
        let wanted = fill::Wanted {
            offset: self.cut.range(number).start,
            len: usize::try_from(bytes).map_err(|_| too_large())?,
            is_whole: false,
            algorithm: self.algorithm,
        };
        let filled = fill::fill(&core.doing, &self.source, wanted).await.map_err(read_failed)?;
        if filled.body.len() as u64 != bytes {
            return Err(Failed::Reason(Operation::Read, Side::Source, CHANGED_WHILE_READ));
        }
        let (upload, checksum) = (&self.upload, filled.checksum.as_ref());
        let sent = ops::upload_part(client, bucket, &key, upload, number, filled.body, checksum);
        let part = sent.await.map_err(Failed::at_target(Operation::Write))?;
        Ok(Part { number, size: bytes, etag: part.etag, checksum: filled.checksum })
    }

    /// Completes the upload or gives it up; with `--resume` a later run continues it.
    async fn settle(&self, core: &Core<'_>) -> Result<Done, Failed> {
        let target = Target::of(core, &self.moving)?;
        let (mut parts, cut_off, checkpoint) = {
            let mut state = self.state.lock();
            (std::mem::take(&mut state.parts), state.cut_off, state.checkpoint.take())
        };
        parts.sort_unstable_by_key(|part| part.number);
        let changed = match meta::of_fd(&self.source) {
            Ok(after) => !unchanged(&self.meta, &after),
            Err(_) => true,
        };
        let result = match self.permits.failure() {
            Some(failed) => Err(failed),
            None if changed => {
                Err(Failed::Reason(Operation::Read, Side::Source, CHANGED_WHILE_READ))
            }
            None => self.complete(core, &target, &parts).await,
        };
        let worth_keeping = result.as_ref().is_err_and(checkpoint::is_worth_keeping);
        match checkpoint {
            Some(mut checkpoint) if worth_keeping && !changed => {
                checkpoint.save(resume::parts(&parts));
            }
            checkpoint => {
                if result.as_ref().map_or(true, |done| done.skipped) {
                    self.give_up(core, &target, cut_off).await;
                }
                if let Some(checkpoint) = checkpoint {
                    checkpoint.forget();
                }
            }
        }
        result
    }

    /// Aborts the upload. The entry failed already, and the first failure is the one reported; `mpu ls` shows an
    /// upload that cannot be aborted. Parts that the server is still receiving may survive an abort (API reference,
    /// AbortMultipartUpload): then it is checked and repeated.
    async fn give_up(&self, core: &Core<'_>, target: &Target<'_>, cut_off: bool) {
        let Target { client, bucket, key } = target;
        for number in 0..ABORTS_MAX {
            if cut_off {
                core.doing.turn(Phase::Pause);
                tokio::time::sleep(ABORT_PAUSE * (1 << number)).await;
            }
            let aborted = ops::abort_upload(client, bucket, key, &self.upload).await;
            if aborted.is_ok() && !cut_off {
                return;
            }
            let listed = ops::list_parts(client, bucket, key, &self.upload).await;
            if listed.is_err_and(|error| error.kind == ErrorKind::NotFound) {
                return;
            }
        }
    }

    async fn complete(
        &self,
        core: &Core<'_>,
        target: &Target<'_>,
        parts: &[Part],
    ) -> Result<Done, Failed> {
        let Target { client, bucket, key } = target;
        let whole = whole_checksum(parts);
        let headers: Headers = condition(core, &self.moving).into_iter().collect();
        let (upload, size, whole) = (&self.upload, self.cut.size, whole.as_ref());
        let completed =
            ops::complete_upload(client, bucket, key, upload, parts, size, whole, &headers);
        match completed.await {
            Ok(_) => Ok(Done { bytes: size, ..Done::default() }),
            Err(error) => refused(core, error),
        }
    }
}

/// Returns the full object's checksum from those of its parts, in order; `None` if the upload has a composite one (all
/// algorithms but CRC-64/NVME).
pub(super) fn whole_checksum(parts: &[Part]) -> Option<Checksum> {
    let whole = joined(parts.iter().map(|part| (part.checksum.as_ref(), part.size)))?;
    (whole.algorithm == Algorithm::Crc64Nvme).then_some(whole)
}
