//! Closer comparison of two entries of equal size: metadata, stored checksums, and the contents if nothing else
//! decides.

mod check;
mod contents;
mod evidence;
mod judge;
mod link;
mod pieces;
mod touch;

pub(super) use check::check;
pub use check::{Checked, Checking, Finding};

use super::core::Core;
use super::ends::{Object, read_failed};
use super::failed::Failed;
use super::metadata::{self, Kept};
use super::moving::{Done, Moving};
use super::{Entry, Root, Side};
use crate::engine::attributes::Grains;
use crate::policy::{Grain, Policy};
use hakobu_core::error::Operation;
use hakobu_core::unit::Kind;
use hakobu_s3::ops::ObjectHead;
use hakobu_sys::{AsFd, process};
use judge::{Known, Need};
use pieces::{Compared, Contents};
use std::sync::Arc;
use touch::Heads;

/// Compares source and target as the policy requires (`checksum`: contents; `keep_times`: the mtime and mode in the
/// object's metadata), then transfers the entry, sets its metadata, or skips it.
pub(super) async fn run(core: &Core<'_>, moving: Moving) {
    match need(core, &moving).await {
        Ok((Need::Transfer | Need::Contents, _)) => core.transfer(moving).await,
        Ok((Need::Nothing, _)) => {
            core.finish(&moving, Ok(Done::SKIPPED)).await;
        }
        Ok((Need::Metadata, heads)) => {
            if core.engine.policy().dry_run {
                return core.finish(&moving, Ok(Done::METADATA)).await;
            }
            match touch::touch(core, &moving, &heads).await {
                // Unsupported by the server: transfer the whole object, which sets them.
                Ok(None) => core.transfer(moving).await,
                Ok(Some(done)) => core.finish(&moving, Ok(done)).await,
                Err(failed) => core.finish(&moving, Err(failed)).await,
            }
        }
        Err(failed) if contents::is_gone(&failed) => core.transfer(moving).await,
        Err(failed) => core.finish(&moving, Err(failed)).await,
    }
}

/// Requests the headers of each side that is an object.
async fn heads(core: &Core<'_>, moving: &Moving) -> Result<Heads, Failed> {
    let (source, target) = (head(core, moving, Side::Source), head(core, moving, Side::Target));
    let (source, target) = futures_util::future::join(source, target).await;
    Ok(Heads { source: source?, target: target? })
}

async fn head(core: &Core<'_>, moving: &Moving, side: Side) -> Result<Option<ObjectHead>, Failed> {
    let Some(object) = Object::at(core, moving, side, "") else { return Ok(None) };
    let failed = |error| match side {
        Side::Source => read_failed(error),
        Side::Target => Failed::at_target(Operation::Stat)(error),
    };
    object.head(core.store(side)?).await.map(Some).map_err(failed)
}

/// Returns the facts about a side.
fn known(
    core: &Core<'_>,
    moving: &Moving,
    side: Side,
    entry: &Entry,
    head: Option<&ObjectHead>,
) -> Known {
    let (policy, options) = (core.engine.policy(), core.engine.setup.options);
    let meta = match side {
        Side::Target => core.engine.as_here(entry.meta),
        Side::Source => entry.meta,
    };
    let kept = match head {
        Some(head) => metadata::read(&head.metadata),
        None => Kept::of(&meta),
    };
    // The source's values are what the target should get, the target's what it has.
    let kept = match (side, &moving.pair.target) {
        (Side::Source, Root::Local { .. }) => kept.on_file(policy, options, process::euid()),
        (Side::Source, _) => kept.in_store(policy, options),
        (Side::Target, _) => kept.in_store(&Policy::default(), options),
    };
    let chmod = policy.chmod.as_ref().filter(|_| side == Side::Source);
    Known {
        is_local: head.is_none(),
        changed: meta.mtime,
        mtime: kept.mtime,
        mode: kept.mode.map(|mode| chmod.map_or(mode, |rules| rules.apply(mode, false))),
        owner: (kept.uid, kept.gid),
        kind: kept.kind.filter(|kind| matches!(kind, Kind::File | Kind::Symlink)),
    }
}

/// Returns the coarser granularity of the times of the sides that are files.
fn grain(core: &Core<'_>, moving: &Moving, existing: &Entry) -> Grain {
    let engine = core.engine;
    let root = |root: &Root| match root {
        Root::Local { dir, .. } => Some(Arc::clone(dir)),
        _ => None,
    };
    let (from, to) = (root(&moving.pair.source), root(&moving.pair.target));
    let (source, target) = (&moving.entry.meta, &existing.meta);
    match (from, to) {
        (Some(dir), None) => Grains::shown((source, Some((*dir).as_fd()))),
        (None, Some(dir)) => {
            let names = (!engine.policy().dry_run).then_some(&engine.files.temp);
            engine.grains.of_target((target, Some((*dir).as_fd())), names).0
        }
        _ => Grain::NS,
    }
}

async fn need(core: &Core<'_>, moving: &Moving) -> Result<(Need, Heads), Failed> {
    let policy = core.engine.policy();
    let Some(existing) = &moving.existing else { return Ok((Need::Transfer, Heads::default())) };
    let heads = heads(core, moving).await?;
    let changed = |head: &ObjectHead| head.size != moving.entry.meta.size;
    if heads.target.as_ref().is_some_and(changed) {
        return Ok((Need::Transfer, heads));
    }
    let source = known(core, moving, Side::Source, &moving.entry, heads.source.as_ref());
    let target = known(core, moving, Side::Target, existing, heads.target.as_ref());
    let files = grain(core, moving, existing);
    let need = match judge::judge(&source, &target, policy, files) {
        Need::Contents => {
            let (a, b) = (heads.source.as_ref(), heads.target.as_ref());
            let what = Compared { moving, source: a, target: b, strict: false };
            match contents::compare(core, &what).await? {
                Contents::Same => judge::attributes(&source, &target, policy, files),
                Contents::Differ(_) => Need::Transfer,
            }
        }
        need => need,
    };
    Ok((need, heads))
}
