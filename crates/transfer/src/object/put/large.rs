//! Upload of a large file in parts: any core takes the next part, and the worker that finishes the last one completes
//! the upload, after checking that the file is unchanged.

use super::super::between::condition;
use super::super::checkpoint::Checkpoint;
use super::super::core::{Core, Engine, Parts};
use super::super::failed::Failed;
use super::super::moving::{Done, Moving, Step};
use super::super::permits::{Turn, more};
use super::super::{Root, Side};
use super::cut::Cut;
use super::fill::{self, Source};
use super::request::{self, CHANGED, headers, no_store, read_failed, refused, unchanged};
use super::resume::{self, Begun};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_core::unit::Meta;
use hakobu_s3::ops::{self, Headers, Part};
use hakobu_s3::{Algorithm, Checksum, Client, Kind as Why, combine_crc64};
use hakobu_sys::meta;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::time::Duration;

/// Error for an object whose ten-thousandth part is larger than `--memory`.
pub(in super::super) const TOO_LARGE: &str = "one of its 10,000 parts does not fit into the memory that may be used: give more with --memory";
/// Maximum number of aborts of an upload, and the first pause between them.
const ABORTS_MAX: u32 = 5;
const ABORT_PAUSE: Duration = Duration::from_millis(50);

/// A large object being uploaded.
pub struct Large {
    moving: Arc<Moving>,
    source: Source,
    /// The file's metadata when the upload began.
    meta: Meta,
    key: Vec<u8>,
    upload: String,
    cut: Cut,
    algorithm: Option<Algorithm>,
    state: Mutex<State>,
}

struct State {
    /// Numbers of parts not begun yet, the next one last.
    waiting: Vec<u32>,
    /// Number of permits for this object that were not released.
    streams: usize,
    /// Finished parts, in no order.
    parts: Vec<Part>,
    /// The first failure: no further part is begun.
    failed: Option<Failed>,
    /// A part was dropped while it was sent: the server may still be receiving it.
    cut_off: bool,
    /// With `--resume`: the state for a later run.
    checkpoint: Option<Checkpoint>,
}

fn too_large() -> Failed {
    Failed::Reason(Operation::Write, Side::Target, TOO_LARGE)
}

/// Begins an upload, or continues an old one.
pub(super) async fn begin(
    core: &Core<'_>,
    moving: &Arc<Moving>,
    source: Source,
    now: &Meta,
    cut: Cut,
) -> Result<Step, Failed> {
    let (Root::Store { bucket, .. }, Some(client)) =
        (&moving.pair.target, core.client(Side::Target))
    else {
        return Err(no_store());
    };
    if cut.part_bytes > core.engine.budget.bytes_max() {
        return Err(too_large());
    }
    let key = moving.pair.target.key(&moving.name);
    let algorithm = core.upload_checksum();
    let create = async |cut: Cut| {
        let start = match request::needs_content(core, moving, now) {
            true => fill::start(&core.doing, &source).await.map_err(read_failed)?,
            false => Bytes::new(),
        };
        let mut headers = headers(core, moving, now, &start);
        // A condition belongs to the request that creates the object.
        headers.retain(|(name, _)| name != IF_NONE_MATCH && name != IF_MATCH);
        let created = ops::create_upload(client, bucket, &key, algorithm, &headers).await;
        let made = created.map_err(|e| Failed::Request(Operation::Write, Side::Target, e))?;
        let ops::Begun { id: upload, algorithm } = made;
        Ok(Begun { upload, algorithm, cut, parts: Vec::new(), checkpoint: None })
    };
    let begun = if core.engine.setup.options.resume {
        let what = resume::What { moving, bucket, key: &key, now, algorithm };
        resume::begin(core, client, &what, cut, create).await?
    } else {
        create(cut).await?
    };
    let Begun { upload, algorithm, cut, parts, checkpoint } = begun;
    let done: std::collections::HashSet<u32> = parts.iter().map(|part| part.number).collect();
    // Parts of an earlier run are not transferred again.
    core.doing.lane().settle(parts.iter().map(|part| part.size).sum(), 0);
    let waiting: Vec<u32> = (1..=cut.count).rev().filter(|n| !done.contains(n)).collect();
    let streams = cut.streams(&core.engine.limits()).min(waiting.len()).max(1);
    let state = State { waiting, streams, parts, failed: None, cut_off: false, checkpoint };
    let (moving, meta) = (Arc::clone(moving), *now);
    let state = Mutex::new(state);
    let large = Large { moving, source, meta, key, upload, cut, algorithm, state };
    Ok(Step::Parts(Arc::new(large), streams))
}

impl Parts for Large {
    fn part<'a>(self: Arc<Self>, core: &'a Core<'a>) -> LocalBoxFuture<'a, ()> {
        Box::pin(part(core, self))
    }

    fn widen(&self, engine: &Engine<'_>) -> usize {
        let streams_max = self.cut.streams(&engine.limits());
        let mut state = self.state();
        let waiting = if state.failed.is_none() { state.waiting.len() } else { 0 };
        more(&mut state.streams, waiting, streams_max)
    }
}

async fn part(core: &Core<'_>, large: Arc<Large>) {
    if core.engine.is_stopped() {
        large.fail(Failed::Stopped);
    }
    if let Some(number) = large.next() {
        let sent = core.engine.unless_stopped(large.send(core, number)).await;
        match sent.unwrap_or_else(|| Err(large.cut_off())) {
            Ok(part) => {
                large.finished(part);
            }
            Err(failed) => large.fail(failed),
        }
    }
    match large.turn(core.engine) {
        Turn::Again => core.engine.queue.again(large),
        Turn::Leave => {}
        Turn::End => {
            let ended = large.end(core).await;
            core.finish(&large.moving, ended).await;
            core.engine.queue.finished();
        }
    }
}

impl Large {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn next(&self) -> Option<u32> {
        let mut state = self.state();
        if state.failed.is_some() { None } else { state.waiting.pop() }
    }

    /// Returns the next step of a permit's holder after a part.
    fn turn(&self, engine: &Engine<'_>) -> Turn {
        let streams_max = self.cut.streams(&engine.limits());
        let mut state = self.state();
        let goes_on = state.failed.is_none() && !state.waiting.is_empty();
        Turn::of(&mut state.streams, goes_on, streams_max)
    }

    fn fail(&self, failed: Failed) {
        self.state().failed.get_or_insert(failed);
    }

    fn cut_off(&self) -> Failed {
        self.state().cut_off = true;
        Failed::Stopped
    }

    fn finished(&self, part: Part) {
        let mut state = self.state();
        state.parts.push(part);
        let State { parts, checkpoint, .. } = &mut *state;
        if let Some(checkpoint) = checkpoint {
            checkpoint.progress(|| resume::parts(parts));
        }
    }

    fn target<'a>(&self, core: &'a Core<'_>) -> Result<(&'a Client, &str), Failed> {
        match (&self.moving.pair.target, core.client(Side::Target)) {
            (Root::Store { bucket, .. }, Some(client)) => Ok((client, bucket)),
            _ => Err(no_store()),
        }
    }

    /// Reads, hashes and uploads one part.
    async fn send(&self, core: &Core<'_>, number: u32) -> Result<Part, Failed> {
        let (client, bucket) = self.target(core)?;
        let (offset, len) = self.cut.range(number, self.meta.size);
        let _room = core.room(len).await;
        let wanted = fill::Wanted {
            offset,
            len: usize::try_from(len).map_err(|_| too_large())?,
            is_whole: false,
            algorithm: self.algorithm,
        };
        let filled = fill::fill(&core.doing, &self.source, wanted).await.map_err(read_failed)?;
        if filled.body.len() as u64 != len {
            return Err(Failed::Reason(Operation::Read, Side::Source, CHANGED));
        }
        let (key, upload, checksum) = (&self.key, &self.upload, filled.checksum.as_ref());
        let sent = ops::upload_part(client, bucket, key, upload, number, filled.body, checksum);
        let part = sent.await.map_err(|e| Failed::Request(Operation::Write, Side::Target, e))?;
        Ok(Part { number, size: len, etag: part.etag, checksum: filled.checksum })
    }

    /// Completes the upload or gives it up; with `--resume` a later run continues it.
    async fn end(&self, core: &Core<'_>) -> Result<Done, Failed> {
        let (client, bucket) = self.target(core)?;
        let (mut parts, failed, cut_off, checkpoint) = {
            let mut state = self.state();
            let parts = std::mem::take(&mut state.parts);
            (parts, state.failed.take(), state.cut_off, state.checkpoint.take())
        };
        parts.sort_unstable_by_key(|part| part.number);
        let changed = match meta::of_fd(&self.source) {
            Ok(after) => !unchanged(&self.meta, &after),
            Err(_) => true,
        };
        let result = match failed {
            Some(failed) => Err(failed),
            None if changed => Err(Failed::Reason(Operation::Read, Side::Source, CHANGED)),
            None => complete(core, client, bucket, self, &parts).await,
        };
        let worth_keeping =
            matches!(&result, Err(Failed::Stopped | Failed::Request(..) | Failed::File(..)));
        match checkpoint {
            Some(mut checkpoint) if worth_keeping && !changed && !resume::is_gone(&result) => {
                checkpoint.save(resume::parts(&parts));
            }
            checkpoint => {
                if result.as_ref().map_or(true, |done| done.skipped) {
                    give_up(core, client, bucket, self, cut_off).await;
                }
                if let Some(checkpoint) = checkpoint {
                    checkpoint.forget();
                }
            }
        }
        result
    }
}

/// Aborts an upload. The entry failed already, and the first failure is the one reported; `mpu ls` shows an upload
/// that cannot be aborted. Parts that the server is still receiving may survive an abort (API reference,
/// AbortMultipartUpload): then it is checked and repeated.
async fn give_up(core: &Core<'_>, client: &Client, bucket: &str, large: &Large, cut_off: bool) {
    let (key, upload) = (&large.key, &large.upload);
    for number in 0..ABORTS_MAX {
        if cut_off {
            core.doing.turn(Phase::Pause);
            tokio::time::sleep(ABORT_PAUSE * (1 << number)).await;
        }
        let aborted = ops::abort_upload(client, bucket, key, upload).await;
        if aborted.is_ok() && !cut_off {
            return;
        }
        let listed = ops::list_parts(client, bucket, key, upload).await;
        if listed.is_err_and(|error| error.kind == Why::NotFound) {
            return;
        }
    }
}

async fn complete(
    core: &Core<'_>,
    client: &Client,
    bucket: &str,
    large: &Large,
    parts: &[Part],
) -> Result<Done, Failed> {
    let whole = whole_checksum(parts);
    let headers: Headers = condition(core, &large.moving).into_iter().collect();
    let (key, upload, size) = (&large.key, &large.upload, large.meta.size);
    let completed =
        ops::complete_upload(client, bucket, key, upload, parts, size, whole.as_ref(), &headers);
    match completed.await {
        Ok(_) => Ok(Done { bytes: size, ..Done::default() }),
        Err(error) => refused(core, error),
    }
}

/// Returns the full object's checksum from those of its parts, in order; `None` if the algorithm cannot combine them
/// (all but the CRCs).
pub(super) fn whole_checksum(parts: &[Part]) -> Option<Checksum> {
    let crc = |part: &Part| {
        let checksum = part.checksum.as_ref()?;
        let value = <[u8; 8]>::try_from(checksum.value.as_slice()).ok()?;
        (checksum.algorithm == Algorithm::Crc64Nvme).then(|| u64::from_be_bytes(value))
    };
    let (first, rest) = parts.split_first()?;
    let mut whole = crc(first)?;
    for part in rest {
        whole = combine_crc64(whole, crc(part)?, part.size);
    }
    let value = whole.to_be_bytes().to_vec();
    Some(Checksum { algorithm: Algorithm::Crc64Nvme, value, parts: 0 })
}
