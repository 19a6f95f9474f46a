//! Objects of one part: received whole and checked before anything is created at the target.

use super::body::{Whole, whole};
use super::carried::{Shape, wants_metadata};
use super::folders::split;
use super::place::{self, Place, count_made};
use super::target::Appeared;
use crate::object::core::Core;
use crate::object::failed::Failed;
use crate::object::moving::{Done, Moving};
use crate::object::{Root, Side, says_symlink};
use crate::policy::Symlinks;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_core::unit::Kind;
use hakobu_s3::header;
use hakobu_s3::ops::{ObjectHead, head_of};
use hakobu_sys::errno;
use std::sync::Arc;

/// Downloads an object of up to `bytes_max`; returns `None` if it turned out to be larger.
///
/// # Errors
/// Those of the request or the target; nothing incomplete is left under the final name.
pub(super) async fn run(
    core: &Core<'_>,
    moving: &Moving,
    bytes_max: u64,
) -> Result<Option<Done>, Failed> {
    let expected = match moving.is_unknown() {
        true => bytes_max,
        false => moving.entry.meta.size,
    };
    // The budget is never closed.
    let room = core.room(expected).await;
    let Some(whole) = whole(core, moving, bytes_max).await? else { return Ok(None) };
    if let Some(done) = write(core, moving, whole).await? {
        return Ok(Some(done));
    }
    // The stream takes its own room.
    drop(room);
    super::through::run(core, moving).await.map(Some)
}

/// Creates the file; returns `None` if a device or FIFO has its name, which is written to instead.
async fn write(
    core: &Core<'_>,
    moving: &Moving,
    (headers, frames, size): Whole,
) -> Result<Option<Done>, Failed> {
    let listed = &*moving.entry.etag;
    let is_other = header::etag(&headers) != listed;
    let done = Done { bytes: size, other: is_other && !listed.is_empty(), ..Done::default() };
    if matches!(moving.pair.target, Root::Null) {
        return Ok(Some(done));
    }
    core.doing.turn(Phase::Create);
    let engine = core.engine;
    let changed = moving.entry.meta.mtime.s == 0 || size != moving.entry.meta.size;
    let head = (changed || is_other || wants_metadata(engine))
        .then(|| ObjectHead { size, ..head_of(&headers) });
    let shape = Shape::of(engine, moving, head.as_ref());
    let symlink =
        engine.policy().symlinks == Symlinks::Keep && head.is_some_and(|head| says_symlink(&head));
    let frames = Arc::new(frames);
    let make = async |place: Place| match symlink {
        true => Arc::new(place).link(core, shape, &frames.concat()).await,
        false => Arc::new(place).fill(core, shape, &frames, size).await,
    };
    let mut made = make(Place::of(core, moving).await?).await;
    if let Err(Failed::File(Operation::Create, _, error)) = &made
        && errno::is(error, errno::ENOENT)
    {
        // The open folder was removed by another program: create it again, once.
        made = make(Place::again(core, moving).await?).await;
    }
    let made = made?;
    core.tell_conflict(moving, made);
    Ok(match made {
        Appeared::Kept | Appeared::LeftOut => Some(Done::SKIPPED),
        Appeared::Yes | Appeared::Replaced if symlink => {
            Some(Done { bytes: 0, kind: Some(Kind::Symlink), ..done })
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
///
/// # Errors
/// See [`place::folder`].
pub(super) async fn marker(core: &Core<'_>, moving: &Moving, path: &[u8]) -> Result<Done, Failed> {
    let Root::Local { dir: root, .. } = &moving.pair.target else {
        return Ok(Done::SKIPPED);
    };
    split(path)?;
    let (opened, made) = place::folder(core, root, path).await;
    // The end of the move counts the folder itself.
    count_made(core, made.saturating_sub(u64::from(opened.is_ok())));
    opened?;
    Ok(Done { kind: Some(Kind::Dir), skipped: made == 0, ..Done::default() })
}
