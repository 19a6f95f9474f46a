//! Removal of extraneous objects and files of the target, and of moved sources.

pub(super) mod local;
mod objects;
mod report;
pub(super) mod versions;

use super::core::{Core, Engine};
use super::ends::Object;
use super::failed::Failed;
use super::moving::Moving;
use super::{Entry, Pair, Root, Side};
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta, Time, Totals};
use hakobu_s3::Kind as Why;
use hakobu_s3::ops::{delete_object, delete_object_if, head_object};
use objects::KEYS_MAX;
use report::{removed, stays};
use std::sync::Arc;

/// Local removals between two yields to the core's other work.
const LOCAL_TURN: usize = 64;

const CHANGED: &str = "it changed while it was being moved; it is kept";

/// Removes entries of the pair's target (up to 1,000 objects in one request, files one by one), within
/// `--max-delete`; counts and reports each.
pub(super) async fn run(core: &Core<'_>, pair: &Arc<Pair>, entries: Vec<Entry>) {
    let engine = core.engine;
    let mut totals = Totals::default();
    let mut removals = entries;
    let (before, is_removal) = (removals.len(), pair.is_removal());
    removals.retain(|_| engine.may_delete());
    totals.deletes_held = (before - removals.len()) as u64;
    if engine.policy().dry_run {
        for entry in &removals {
            removed(engine, pair, entry, None, &mut totals);
        }
    } else {
        match &pair.target {
            Root::Local { .. } => files(core, pair, removals, &mut totals).await,
            Root::Store { bucket, .. } => {
                for batch in removals.chunks(KEYS_MAX) {
                    if engine.is_stopped() {
                        break;
                    }
                    let batch: Vec<_> = batch.iter().map(|entry| (entry, None)).collect();
                    objects::remove(core, pair, bucket, &batch, &mut totals).await;
                }
            }
            // It contains nothing.
            Root::Null => {}
        }
    }
    if is_removal {
        core.doing.lane().done(before as u64);
    }
    core.add(totals);
}

async fn files(core: &Core<'_>, pair: &Pair, mut removals: Vec<Entry>, totals: &mut Totals) {
    // Entries of a directory come before the directory.
    removals.sort_by(|a, b| b.name.cmp(&a.name));
    let mut folder = local::Folder::default();
    core.doing.turn(Phase::Remove);
    for (number, entry) in removals.iter().enumerate() {
        if core.engine.is_stopped() {
            return;
        }
        if number % LOCAL_TURN == LOCAL_TURN - 1 {
            tokio::task::yield_now().await;
        }
        let Root::Local { dir, .. } = &pair.target else { return };
        let mut on_removed = |dir: &[u8]| removed_dir(core.engine, pair, dir, totals);
        match local::remove(dir, entry, &mut folder, &core.engine.emptied, &mut on_removed) {
            Ok(local::Outcome::Removed) => removed(core.engine, pair, entry, None, totals),
            // Entries in it are still to be removed, or kept.
            Ok(local::Outcome::Waits) => {}
            Err(error) => {
                let failed = Failed::File(Operation::Remove, Side::Target, error);
                stays(core.engine, pair, entry, failed, totals);
            }
        }
    }
}

/// Counts and reports a directory that was removed after its last entry.
fn removed_dir(engine: &Engine<'_>, pair: &Pair, dir: &[u8], totals: &mut Totals) {
    let entry = Entry {
        name: [dir, b"/"].concat().into(),
        meta: Meta::bare(Kind::Dir, 0, Time::default()),
        etag: "".into(),
    };
    removed(engine, pair, &entry, None, totals);
}

/// Removes the source of an entry whose target is complete and checked, if it is unchanged since the move (size and
/// mtime of a file, ETag of an object).
///
/// Between the check and the removal a writer may still change it. For S3 `If-Match` closes this gap if the server
/// supports it; for a file nothing does.
///
/// # Errors
/// Those of the removal; a source that changed meanwhile is kept, with a reason.
pub(super) async fn source(core: &Core<'_>, moving: &Moving) -> Result<(), Failed> {
    match &moving.pair.source {
        Root::Local { dir, .. } => {
            core.doing.turn(Phase::Remove);
            let and_dirs = core.engine.policy().remove_source_dirs;
            match local::remove_moved(dir, &moving.entry, and_dirs) {
                Ok(true) => Ok(()),
                Ok(false) => Err(changed()),
                Err(error) => Err(Failed::File(Operation::Remove, Side::Source, error)),
            }
        }
        Root::Store { .. } => object(core, moving).await,
        Root::Null => Ok(()),
    }
}

/// Returns the reason to keep a source that has changed since the move.
pub(super) fn changed() -> Failed {
    Failed::Reason(Operation::Remove, Side::Source, CHANGED)
}

async fn object(core: &Core<'_>, moving: &Moving) -> Result<(), Failed> {
    let failed = |error| Failed::Request(Operation::Remove, Side::Source, error);
    let client = core.store(Side::Source)?;
    let entry = &moving.entry;
    let Object { bucket, key, version, .. } = Object::source(core, moving)?;
    // A version never changes.
    if version.is_some() {
        return delete_object(client, bucket, &key, version).await.map_err(failed);
    }
    let head = match head_object(client, bucket, &key, None).await {
        // Removed by another program.
        Err(error) if error.kind == Why::NotFound => return Ok(()),
        other => other.map_err(failed)?,
    };
    let same = match entry.etag.is_empty() {
        // LastModified in headers has whole seconds.
        true => head.size == entry.meta.size && head.mtime.s == entry.meta.mtime.s,
        false => *entry.etag == *head.etag,
    };
    if !same {
        return Err(changed());
    }
    match delete_object_if(client, bucket, &key, &head.etag).await {
        Err(error) if error.kind == Why::Precondition => Err(changed()),
        Err(error) if error.kind == Why::NotImplemented => {
            delete_object(client, bucket, &key, None).await.map_err(failed)
        }
        other => other.map_err(failed),
    }
}
