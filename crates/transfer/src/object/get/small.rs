//! Objects of one part: received whole and checked before anything appears at the target.

use super::body::{Object, Whole, whole};
use super::carried::{Shape, wants_metadata};
use super::folders::split;
use super::target::{Appeared, Place, count_made, rules};
use crate::error::Operation;
use crate::meter::Phase;
use crate::object::Root;
use crate::object::core::Core;
use crate::object::metadata;
use crate::object::moving::{Done, Failed, Moving};
use crate::policy::Symlinks;
use crate::s3::ops::head_of;
use crate::unit::Kind;
use bytes::Bytes;
use hakobu_sys::errno;
use http::HeaderMap;

/// Moves an object of up to `bytes_max`; `None` where it turned out to be larger.
///
/// # Errors
/// The request's or the target's; nothing half-written is left under the final name.
pub(super) async fn run(
    core: &Core<'_>,
    moving: &Moving,
    bytes_max: u64,
) -> Result<Option<Done>, Failed> {
    let object = Object::of(core, moving)?;
    let expected = match super::body::is_unknown(moving) {
        true => bytes_max,
        false => moving.entry.meta.size,
    };
    // The budget is never closed.
    let _room = core.room(expected).await;
    match whole(core, moving, &object, bytes_max).await? {
        Whole::TooLarge => Ok(None),
        Whole::Body(headers, frames, size) => {
            write(core, moving, &headers, &frames, size).map(Some)
        }
    }
}

fn write(
    core: &Core<'_>,
    moving: &Moving,
    headers: &HeaderMap,
    frames: &[Bytes],
    size: u64,
) -> Result<Done, Failed> {
    let done = Done { bytes: size, ..Done::default() };
    if matches!(moving.pair.target, Root::Null) {
        return Ok(done);
    }
    core.doing.turn(Phase::Create);
    let engine = core.engine;
    let changed = moving.entry.meta.mtime.s == 0 || size != moving.entry.meta.size;
    let head = (changed || is_other(headers, &moving.entry.etag) || wants_metadata(engine))
        .then(|| head_of(headers));
    let shape = Shape::of(engine, moving, head.as_ref());
    let symlink = engine.policy().symlinks == Symlinks::Keep
        && head.is_some_and(|head| metadata::read(&head.metadata).kind == Some(Kind::Symlink));
    let make = |place: &Place| match symlink {
        true => place.link(engine, &shape, &frames.concat()),
        false => place.fill(core, &shape, frames, size),
    };
    let mut made = make(&Place::of(core, moving)?);
    if let Err(Failed::File(Operation::Create, _, error)) = &made
        && errno::is(error, errno::ENOENT)
    {
        // The folder was open here and somebody removed it: made anew, once.
        made = make(&Place::again(core, moving)?);
    }
    Ok(match made? {
        Appeared::Kept => Done { skipped: true, ..Done::default() },
        Appeared::Yes if symlink => Done { kind: Some(Kind::Symlink), ..Done::default() },
        Appeared::Yes => done,
    })
}

/// Whether headers are of another object than the one that was listed.
fn is_other(headers: &HeaderMap, etag: &str) -> bool {
    let found = headers.get(http::header::ETAG).and_then(|value| value.to_str().ok());
    found.is_none_or(|found| found.trim_matches('"') != etag)
}

/// A zero-byte object `name/`: makes the folder.
///
/// # Errors
/// See [`super::folders::Folders::open`].
pub(super) fn marker(core: &Core<'_>, moving: &Moving, path: &[u8]) -> Result<Done, Failed> {
    let Root::Local { dir: root, .. } = &moving.pair.target else {
        return Ok(Done { skipped: true, ..Done::default() });
    };
    split(path)?;
    let (_, made) = core.folders.borrow_mut().open(root, path, rules(core))?;
    // The end of the move counts the folder itself.
    count_made(core, made.saturating_sub(1));
    Ok(Done { kind: Some(Kind::Dir), skipped: made == 0, ..Done::default() })
}
