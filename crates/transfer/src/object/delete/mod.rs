//! Removal of extraneous objects and files of the target, and of moved sources.

pub(super) mod local;

use super::core::{Core, Engine};
use super::ends::Object;
use super::failed::Failed;
use super::moving::Moving;
use super::{Entry, Extraneous, Pair, Root, Side};
use futures_util::stream::{self, StreamExt};
use hakobu_core::error::Operation;
use hakobu_core::event::{Change, Event, Item};
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta, Time, Totals};
use hakobu_s3::ops::{
    DeleteResult, ObjectId, delete_object, delete_object_if, delete_objects, head_object,
};
use hakobu_s3::{Client, ErrorKind};
use hakobu_sys::{AsFd, OwnedFd, meta};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Local removals between two yields to the core's other work.
const LOCAL_TURN: usize = 64;
/// Maximum number of keys in one DeleteObjects (API reference, DeleteObjects).
const KEYS_MAX: usize = 1000;
/// Concurrent single deletions if the server does not support DeleteObjects.
const SINGLE_MAX: usize = 8;

const CHANGED: &str = "it changed while it was being moved; it is kept";

/// Removes entries of the pair's target (up to 1,000 objects in one request, files one by one), within
/// `--max-delete`; counts and reports each.
pub(super) async fn run(core: &Core<'_>, pair: &Pair, mut entries: Vec<Extraneous>) {
    let engine = core.engine;
    let mut totals = Totals::default();
    let before = entries.len();
    entries.retain(|_| engine.may_delete());
    totals.deletes_held = (before - entries.len()) as u64;
    match &pair.target {
        _ if engine.policy().dry_run => {
            for entry in &entries {
                removed(engine, pair, entry, &mut totals);
            }
        }
        Root::Local { dir, .. } => files(core, pair, dir, entries, &mut totals).await,
        Root::Store { bucket, .. } => {
            for batch in entries.chunks(KEYS_MAX) {
                if engine.is_stopped() {
                    break;
                }
                objects(core, pair, bucket, batch, &mut totals).await;
            }
        }
        // It contains nothing.
        Root::Null => {}
    }
    if pair.is_removal() {
        core.doing.lane().done(before as u64);
    }
    core.add(totals);
}

async fn files(
    core: &Core<'_>,
    pair: &Pair,
    root: &OwnedFd,
    mut entries: Vec<Extraneous>,
    totals: &mut Totals,
) {
    // Entries of a directory come before the directory.
    entries.sort_by(|(a, _), (b, _)| b.name.cmp(&a.name));
    let mut folder = local::Folder::default();
    let identity = meta::of_fd(root).ok().map(|meta| meta.identity());
    let folded = &core.engine.setup.folded;
    let meets = identity.is_some_and(|top| folded.has(top, root.as_fd(), top.0));
    core.doing.turn(Phase::Remove);
    for (number, entry) in entries.iter().enumerate() {
        if core.engine.is_stopped() {
            return;
        }
        if number % LOCAL_TURN == LOCAL_TURN - 1 {
            tokio::task::yield_now().await;
        }
        // Under another name it may be a file that this run placed. Nothing is placed between the look and the removal.
        let made = meets.then(|| folded.made());
        if let Some(made) = &made
            && local::identity(root, &entry.0, &mut folder).is_some_and(|it| made.keeps(it))
        {
            core.engine.deletes.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let mut on_removed = |dir: &[u8]| removed_dir(core.engine, pair, dir, totals);
        match local::remove(root, &entry.0, &mut folder, &core.engine.emptied, &mut on_removed) {
            Ok(local::Outcome::Removed) => removed(core.engine, pair, entry, totals),
            // Entries in it are still to be removed, or kept.
            Ok(local::Outcome::Waits) => {}
            Err(error) => {
                let failed = Failed::File(Operation::Remove, Side::Target, error);
                stays(core.engine, pair, &entry.0, failed, totals);
            }
        }
    }
}

/// Removes up to [`KEYS_MAX`] objects in one request: the current version of each, or the one of an ID. Counts and
/// reports each.
async fn objects(
    core: &Core<'_>,
    pair: &Pair,
    bucket: &str,
    batch: &[Extraneous],
    totals: &mut Totals,
) {
    let id = |(entry, version): &Extraneous| ObjectId {
        key: pair.target.key(&entry.name),
        version: version.as_deref().map(str::to_owned),
    };
    let ids: Vec<ObjectId> = batch.iter().map(id).collect();
    let results = match core.store(Side::Target) {
        Ok(client) => match delete_objects(client, bucket, &ids).await {
            Err(error) if error.kind == ErrorKind::NotImplemented => {
                one_by_one(client, bucket, &ids).await
            }
            Err(error) => batch.iter().map(|_| Err(error.clone())).collect(),
            Ok(results) => results,
        },
        Err(_) => {
            for (entry, _) in batch {
                let why = "the target is not a store";
                let none = Failed::Reason(Operation::Remove, Side::Target, why);
                stays(core.engine, pair, entry, none, totals);
            }
            return;
        }
    };
    assert_eq!(results.len(), batch.len(), "each key has its answer");
    for (entry, result) in batch.iter().zip(results) {
        match result {
            Ok(()) => removed(core.engine, pair, entry, totals),
            // Another program removed it.
            Err(error) if error.kind == ErrorKind::NotFound => {
                removed(core.engine, pair, entry, totals)
            }
            Err(mut error) => {
                if let Some(version) = &entry.1 {
                    error.message = format!("version {version}: {}", error.message);
                }
                let failed = Failed::at_target(Operation::Remove)(error);
                stays(core.engine, pair, &entry.0, failed, totals);
            }
        }
    }
}

async fn one_by_one(client: &Client, bucket: &str, ids: &[ObjectId]) -> Vec<DeleteResult> {
    let requests =
        ids.iter().map(|id| delete_object(client, bucket, &id.key, id.version.as_deref()));
    stream::iter(requests).buffered(SINGLE_MAX).collect().await
}

/// Counts and reports a directory that was removed after its last entry.
fn removed_dir(engine: &Engine<'_>, pair: &Pair, dir: &[u8], totals: &mut Totals) {
    let entry = Entry {
        name: [dir, b"/"].concat().into(),
        meta: Meta::bare(Kind::Dir, 0, Time::default()),
        etag: "".into(),
    };
    removed(engine, pair, &(entry, None), totals);
}

/// Counts and reports a removal: of an entry, or of one version of it.
fn removed(engine: &Engine<'_>, pair: &Pair, (entry, version): &Extraneous, totals: &mut Totals) {
    totals.deleted += 1;
    if !engine.setup.items.0 {
        return;
    }
    // The display adds the slash for a directory; in a key it is part of the name.
    let name = entry.name.strip_suffix(b"/").unwrap_or(&entry.name);
    let whole = match &pair.target {
        Root::Store { .. } => &entry.name,
        _ => name,
    };
    engine.setup.listener.event(Event::Item(&Item {
        change: Change { deleted: true, ..Change::default() },
        kind: entry.meta.kind,
        path: Path::new(OsStr::from_bytes(&[&*pair.lead, name].concat())),
        source: None,
        target: Some(pair.target.spell(whole)),
        version: version.as_deref(),
        link: None,
        bytes: 0,
        bytes_moved: 0,
        start_s: 0.0,
        took: Duration::ZERO,
        mode: entry.meta.mode,
        mtime_s: entry.meta.mtime.s,
        meta: &entry.meta,
        digest: None,
    }));
}

/// Counts and reports a failed removal, and returns it to `--max-delete`.
fn stays(engine: &Engine<'_>, pair: &Pair, entry: &Entry, failed: Failed, totals: &mut Totals) {
    engine.deletes.fetch_sub(1, Ordering::Relaxed);
    engine.failed((None, Some(pair.target.spell(&entry.name))), failed, totals);
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
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
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
        Err(error) if error.kind == ErrorKind::Precondition => Err(changed()),
        Err(error) if error.kind == ErrorKind::NotImplemented => {
            delete_object(client, bucket, &key, None).await.map_err(failed)
        }
        other => other.map_err(failed),
    }
}
