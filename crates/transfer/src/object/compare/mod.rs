//! Looking closer at two entries of equal size: metadata that travels with objects, stored
//! checksums, and the contents where nothing else can tell.

mod check;
mod contents;
mod evidence;
mod judge;
mod link;
mod touch;

pub(super) use check::check;
pub use check::{Checked, Checking, Finding};

use super::core::Core;
use super::metadata;
use super::moving::{Done, Failed, Moving};
use super::reader::read_failed;
use super::{Entry, Root, Side};
use crate::error::Operation;
use crate::s3::ops::{Head, head_object};
use crate::unit::Kind;
use contents::{Compared, Contents};
use judge::{Known, Need};

/// Compares source and target as the policy says (`checksum`: contents; `keep_times`: the mtime and
/// mode in the object's metadata), then moves the entry, sets its metadata, or leaves it alone.
pub(super) async fn run(core: &Core<'_>, moving: Moving) {
    match need(core, &moving).await {
        Ok((Need::Transfer | Need::Contents, _)) => core.transfer(moving).await,
        Ok((Need::Nothing, _)) => {
            core.finish(&moving, Ok(Done { skipped: true, ..Done::default() })).await;
        }
        Ok((Need::Metadata, heads)) => {
            if core.engine.policy().dry_run {
                return core.finish(&moving, Ok(touch::DONE)).await;
            }
            match touch::touch(core, &moving, &heads).await {
                // The server cannot: then the whole object gets them.
                Ok(None) => core.transfer(moving).await,
                Ok(Some(done)) => core.finish(&moving, Ok(done)).await,
                Err(failed) => core.finish(&moving, Err(failed)).await,
            }
        }
        Err(failed) if contents::is_gone(&failed) => core.transfer(moving).await,
        Err(failed) => core.finish(&moving, Err(failed)).await,
    }
}

/// Headers of source and target, of those that are objects.
#[derive(Default)]
struct Heads {
    source: Option<Head>,
    target: Option<Head>,
}

/// Asks for the headers of whichever side is an object.
async fn heads(core: &Core<'_>, moving: &Moving) -> Result<Heads, Failed> {
    let (source, target) = (head(core, moving, Side::Source), head(core, moving, Side::Target));
    let (source, target) = futures_util::future::join(source, target).await;
    Ok(Heads { source: source?, target: target? })
}

async fn head(core: &Core<'_>, moving: &Moving, side: Side) -> Result<Option<Head>, Failed> {
    let (root, name) = match side {
        Side::Source => (&moving.pair.source, &moving.entry.name),
        Side::Target => (&moving.pair.target, &moving.name),
    };
    let Root::Store { bucket, .. } = root else { return Ok(None) };
    let version = core.engine.setup.options.version.as_deref().filter(|_| side == Side::Source);
    let head = head_object(core.store(side)?, bucket, &root.key(name), version).await;
    let failed = |error| match side {
        Side::Source => read_failed(error),
        Side::Target => Failed::Request(Operation::Stat, side, error),
    };
    head.map(Some).map_err(failed)
}

/// What is known of a side.
fn known(core: &Core<'_>, side: Side, entry: &Entry, head: Option<&Head>) -> Known {
    let options = core.engine.setup.options;
    let meta = &entry.meta;
    let kept = head.map(|head| metadata::read(&head.metadata));
    let (mtime, mode, kind) = match kept {
        Some(kept) => (kept.mtime, kept.mode, kept.kind),
        None => (Some(meta.mtime), Some(meta.mode), Some(meta.kind)),
    };
    // The mode that it shall get, not the one that it has.
    let chmod = core.engine.policy().chmod.as_ref().filter(|_| side == Side::Source);
    let mode = mode.map(|mode| chmod.map_or(mode, |rules| rules.apply(mode, false)));
    Known {
        is_local: head.is_none(),
        changed: meta.mtime,
        mtime: mtime.filter(|_| options.keep_times),
        mode: mode.filter(|_| options.keep_modes),
        kind: kind.filter(|kind| matches!(kind, Kind::File | Kind::Symlink)),
    }
}

async fn need(core: &Core<'_>, moving: &Moving) -> Result<(Need, Heads), Failed> {
    let policy = core.engine.policy();
    let Some(existing) = &moving.existing else { return Ok((Need::Transfer, Heads::default())) };
    let heads = heads(core, moving).await?;
    let changed = |head: &Head| head.size != moving.entry.meta.size;
    if heads.target.as_ref().is_some_and(changed) {
        return Ok((Need::Transfer, heads));
    }
    let source = known(core, Side::Source, &moving.entry, heads.source.as_ref());
    let target = known(core, Side::Target, existing, heads.target.as_ref());
    let need = match judge::judge(&source, &target, policy) {
        Need::Contents => {
            let (a, b) = (heads.source.as_ref(), heads.target.as_ref());
            let what = Compared { moving, source: a, target: b, strict: false };
            match contents::compare(core, &what).await? {
                Contents::Same => judge::attributes(&source, &target, policy),
                Contents::Differ(_) => Need::Transfer,
            }
        }
        need => need,
    };
    Ok((need, heads))
}
