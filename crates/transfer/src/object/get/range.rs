//! One range of a large object: received, hashed and written as it arrives, and continued where a connection broke.

use super::body::unreadable;
use super::folders::failed;
use super::place;
use crate::object::Side;
use crate::object::core::Core;
use crate::object::ends::{CHANGED_WHILE_READ, Object};
use crate::object::failed::Failed;
use crate::object::moving::Moving;
use bytes::Bytes;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_s3::ops::{GetOptions, Range, get_object};
use hakobu_s3::{Algorithm, Checksum, Client, Download, Error, ErrorKind, Hasher};
use hakobu_sys::{AsFd, OwnedFd};
use std::sync::Arc;

/// Bytes gathered before a write; they still fit into the second-level cache.
const WRITE_BYTES: u64 = 256 << 10;
/// The same if each write waits for an answer.
const SLOW_WRITE_BYTES: u64 = 1 << 20;
/// Bytes in flight of one range: a write, and the connection's buffers.
pub(super) const ROOM_BYTES: u64 = 2 * WRITE_BYTES;
/// Bytes of progress after which the count of broken connections is reset.
const PROGRESS_BYTES: u64 = 4 << 20;

/// A range to receive, its object, and its file.
pub(super) struct Part<'a> {
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

impl Part<'_> {
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
pub(super) async fn receive(
    core: &Core<'_>,
    client: &Client,
    part: &Part<'_>,
) -> Result<Option<Checksum>, Failed> {
    let Part { object, range, .. } = part;
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
        part: &Part<'_>,
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
        part: &Part<'_>,
        mut frames: Vec<Bytes>,
    ) -> Result<Vec<Bytes>, Failed> {
        let _phase = core.doing.during(Phase::Write);
        if let Some(fd) = (part.file)()? {
            let at = self.at;
            let write = move || {
                let buffers = frames.iter().map(|frame| &**frame);
                hakobu_sys::gather::write_all_at(fd.as_fd(), buffers, at)
                    .map_err(failed(Operation::Write))?;
                Ok(frames)
            };
            frames = place::make(part.waits, write).await?;
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
