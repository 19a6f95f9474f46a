//! One range of a large object: received, hashed and written where it belongs as it comes, and
//! gone on with from where the connection broke.

use super::body::unreadable;
use super::folders::failed;
use super::large::Large;
use crate::error::Operation;
use crate::meter::Phase;
use crate::object::Side;
use crate::object::core::Core;
use crate::object::moving::Failed;
use crate::s3::ops::{Range, get_object};
use crate::s3::{Checksum, Client, Download, Error, Hasher, Kind};
use bytes::Bytes;
use hakobu_sys::AsFd;
use http::StatusCode;

/// Bytes that are gathered before they are written. They still lie in the second-level cache.
const STROKE_BYTES: u64 = 256 << 10;
/// Bytes in flight of one range: a stroke, and what the connection holds.
pub(super) const ROOM_BYTES: u64 = 2 * STROKE_BYTES;
/// After so many bytes a connection that breaks counts as the first one.
const PROGRESS_BYTES: u64 = 4 << 20;

/// What stopped a range.
enum Broke {
    /// The body: it may be asked for again from there.
    Body(Error),
    /// Something that another try does not change.
    For(Failed),
}

/// Receives a range and writes it; returns its checksum where one is computed.
///
/// # Errors
/// The request's after its tries, or the file's.
pub(super) async fn receive(
    core: &Core<'_>,
    client: &Client,
    large: &Large,
    range: Range,
) -> Result<Option<Checksum>, Failed> {
    // The budget is never closed.
    let _room = core.room(ROOM_BYTES.min(range.end - range.start)).await;
    let mut progress = Progress { at: range.start, hasher: large.algorithm.map(Hasher::new) };
    let (mut tried, mut since) = (1, range.start);
    while progress.at < range.end {
        if core.engine.is_stopped() {
            return Err(Failed::Stopped);
        }
        let rest = Range { start: progress.at, end: range.end };
        let object = &large.object;
        let version = object.version.as_deref();
        let etag = Some(&*object.etag).filter(|etag| !etag.is_empty());
        let got = get_object(client, &object.bucket, &object.key, version, Some(rest), etag).await;
        let download = match got {
            Ok(download) => download,
            Err(error) if error.kind == Kind::Precondition => {
                let why = "it changed while it was read";
                return Err(Failed::Reason(Operation::Read, Side::Source, why));
            }
            Err(error) => return Err(unreadable(&large.moving, error)),
        };
        let broke = match progress.go_on(core, large, download, rest).await {
            Ok(()) => continue,
            Err(Broke::For(failed)) => return Err(failed),
            Err(Broke::Body(error)) => error,
        };
        if progress.at - since >= PROGRESS_BYTES {
            (tried, since) = (1, progress.at);
        }
        if !client.may_retry(tried, &broke).await {
            return Err(unreadable(&large.moving, broke));
        }
        tried += 1;
    }
    Ok(progress.hasher.map(Hasher::finish))
}

/// How far a range is written.
struct Progress {
    at: u64,
    hasher: Option<Hasher>,
}

impl Progress {
    async fn go_on(
        &mut self,
        core: &Core<'_>,
        large: &Large,
        mut download: Download,
        rest: Range,
    ) -> Result<(), Broke> {
        let whole = rest.start == 0 && rest.end == large.cut.size;
        if download.status != StatusCode::PARTIAL_CONTENT && !whole {
            let why = "the server does not answer requests for ranges with ranges";
            return Err(Broke::For(Failed::Reason(Operation::Read, Side::Source, why)));
        }
        let mut frames: Vec<Bytes> = Vec::new();
        let mut waiting = 0;
        loop {
            let next = download.chunk().await;
            if let Ok(Some(frame)) = &next {
                let bytes = frame.len() as u64;
                if self.at + waiting + bytes > rest.end {
                    let error = Error::new(Kind::Corrupt, "GetObject", "the body is too long");
                    return Err(Broke::Body(error));
                }
                waiting += bytes;
                core.doing.lane().bytes(bytes);
                frames.push(frame.clone());
                if waiting < STROKE_BYTES {
                    continue;
                }
            }
            // Full, at the end, or broken: what has come is good.
            self.write(core, large, &frames).map_err(Broke::For)?;
            frames.clear();
            waiting = 0;
            if next.map_err(Broke::Body)?.is_none() {
                break;
            }
            if core.engine.setup.control.is_stopped() {
                return Err(Broke::For(Failed::Stopped));
            }
        }
        if self.at < rest.end {
            let error = Error::new(Kind::Corrupt, "GetObject", "the body ended early");
            return Err(Broke::Body(error));
        }
        Ok(())
    }

    fn write(&mut self, core: &Core<'_>, large: &Large, frames: &[Bytes]) -> Result<(), Failed> {
        let _phase = core.doing.during(Phase::Write);
        if let Some(fd) = &large.fd {
            let buffers = frames.iter().map(|frame| &**frame);
            hakobu_sys::gather::write_all_at(fd.as_fd(), buffers, self.at)
                .map_err(failed(Operation::Write))?;
        }
        if self.hasher.is_some() {
            core.doing.turn(Phase::Compute);
        }
        for frame in frames {
            if let Some(hasher) = &mut self.hasher {
                hasher.update(frame);
            }
            self.at += frame.len() as u64;
        }
        Ok(())
    }
}
