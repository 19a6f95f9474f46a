//! Removing: extraneous objects and files of the target, and sources that were moved.

mod local;

pub(super) use local::Emptied;

use super::core::{Core, Engine};
use super::moving::{Failed, Moving};
use super::reader::Object;
use super::{Entry, Pair, Root, Side, list};
use crate::error::Operation;
use crate::event::{Change, Event, Item};
use crate::meter::Phase;
use crate::policy::same_time;
use crate::s3::ops::{Deleted, delete_object, delete_object_if, delete_objects, head_object};
use crate::s3::{Client, Kind as Why};
use crate::unit::{Kind, Time, Totals};
use futures_util::stream::{self, StreamExt};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Keys in one DeleteObjects (API reference, DeleteObjects).
const KEYS_MAX: usize = 1000;
/// Single deletions at once, where the server knows no DeleteObjects.
const SINGLE_MAX: usize = 8;
/// Local removals between two chances for the core's other work.
const LOCAL_TURN: usize = 64;

const CHANGED: &str = "it changed while it was being moved; it is kept";

/// Removes entries of the pair's target (up to 1,000 objects in one request, files one by one),
/// within `--max-delete`; counts and tells of each.
pub(super) async fn run(core: &Core<'_>, pair: &Arc<Pair>, entries: Vec<Entry>) {
    let engine = core.engine;
    let mut totals = Totals::default();
    let mut doomed = entries;
    let before = doomed.len();
    doomed.retain(|_| engine.may_delete());
    totals.deletes_held = (before - doomed.len()) as u64;
    if engine.policy().dry_run {
        for entry in &doomed {
            removed(engine, pair, entry, &mut totals);
        }
    } else {
        match &pair.target {
            Root::Local { .. } => files(core, pair, doomed, &mut totals).await,
            Root::Store { bucket, .. } => {
                for batch in doomed.chunks(KEYS_MAX) {
                    if engine.is_stopped() {
                        break;
                    }
                    objects(core, pair, bucket, batch, &mut totals).await;
                }
            }
            // Nothing was ever there.
            Root::Null => {}
        }
    }
    core.add(totals);
}

/// Counts a removal and tells of it.
fn removed(engine: &Engine<'_>, pair: &Pair, entry: &Entry, totals: &mut Totals) {
    totals.deleted += 1;
    if !engine.setup.items.0 {
        return;
    }
    // What shows a directory adds the slash; of a key it is a part.
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
        link: None,
        bytes: 0,
        bytes_moved: 0,
        start_s: 0.0,
        took: Duration::ZERO,
        mode: entry.meta.mode,
        mtime_s: entry.meta.mtime.s,
    }));
}

/// Counts and tells what could not be removed; it is given back to `--max-delete`.
fn stays(engine: &Engine<'_>, pair: &Pair, entry: &Entry, failed: Failed, totals: &mut Totals) {
    engine.deletes.fetch_sub(1, Ordering::Relaxed);
    engine.failed((None, Some(pair.target.spell(&entry.name))), failed, totals);
}

async fn objects(core: &Core<'_>, pair: &Pair, bucket: &str, batch: &[Entry], totals: &mut Totals) {
    let failed = |error| Failed::Request(Operation::Remove, Side::Target, error);
    let results = match core.store(Side::Target) {
        Ok(client) => {
            let keys: Vec<_> = batch.iter().map(|entry| pair.target.key(&entry.name)).collect();
            match delete_objects(client, bucket, &keys).await {
                Err(error) if error.kind == Why::NotImplemented => {
                    one_by_one(client, bucket, &keys).await
                }
                Err(error) => batch.iter().map(|_| Err(error.clone())).collect(),
                Ok(results) => results,
            }
        }
        // The planner opens the store of a target that it lists.
        Err(_) => Vec::new(),
    };
    for (entry, result) in batch.iter().zip(results) {
        match result {
            Ok(()) => removed(core.engine, pair, entry, totals),
            Err(error) if error.kind == Why::NotFound => {
                removed(core.engine, pair, entry, totals);
            }
            Err(error) => stays(core.engine, pair, entry, failed(error), totals),
        }
    }
}

async fn one_by_one(client: &Client, bucket: &str, keys: &[Vec<u8>]) -> Vec<Deleted> {
    let requests = keys.iter().map(|key| delete_object(client, bucket, key, None));
    stream::iter(requests).buffered(SINGLE_MAX).collect().await
}

async fn files(core: &Core<'_>, pair: &Pair, mut doomed: Vec<Entry>, totals: &mut Totals) {
    // What is in a directory comes before the directory.
    doomed.sort_by(|a, b| b.name.cmp(&a.name));
    let mut folder = local::Folder::default();
    core.doing.turn(Phase::Remove);
    for (number, entry) in doomed.iter().enumerate() {
        if core.engine.is_stopped() {
            return;
        }
        if number % LOCAL_TURN == LOCAL_TURN - 1 {
            tokio::task::yield_now().await;
        }
        let Root::Local { dir, .. } = &pair.target else { return };
        let mut told = |dir: &[u8]| removed_dir(core.engine, pair, dir, totals);
        match local::remove(dir, entry, &mut folder, &core.engine.emptied, &mut told) {
            Ok(local::Outcome::Removed) => removed(core.engine, pair, entry, totals),
            // Something in it is yet to go, or to stay.
            Ok(local::Outcome::Waits) => {}
            Err(error) => {
                let failed = Failed::File(Operation::Remove, Side::Target, error);
                stays(core.engine, pair, entry, failed, totals);
            }
        }
    }
}

/// A directory went after the last thing in it did.
fn removed_dir(engine: &Engine<'_>, pair: &Pair, dir: &[u8], totals: &mut Totals) {
    let entry = Entry {
        name: [dir, b"/"].concat().into(),
        meta: list::bare_meta(Kind::Dir, 0, Time::default()),
        etag: "".into(),
    };
    removed(engine, pair, &entry, totals);
}

/// Removes the source of an entry whose target is complete and checked; only if it is still what
/// was moved (size and mtime of a file, ETag of an object).
///
/// Between the look and the removal is a moment in which a writer may still come in. S3 closes it
/// by `If-Match` where the server knows that; of a file nothing can.
///
/// # Errors
/// The removal's; a source that changed meanwhile is kept, with a reason.
pub(super) async fn source(core: &Core<'_>, moving: &Moving) -> Result<(), Failed> {
    match &moving.pair.source {
        Root::Local { dir, .. } => {
            core.doing.turn(Phase::Remove);
            let and_dirs = core.engine.policy().remove_source_dirs;
            match local::remove_moved(dir, &moving.entry, and_dirs) {
                Ok(true) => Ok(()),
                Ok(false) => Err(Failed::Reason(Operation::Remove, Side::Source, CHANGED)),
                Err(error) => Err(Failed::File(Operation::Remove, Side::Source, error)),
            }
        }
        Root::Store { .. } => object(core, moving).await,
        Root::Null => Ok(()),
    }
}

async fn object(core: &Core<'_>, moving: &Moving) -> Result<(), Failed> {
    let failed = |error| Failed::Request(Operation::Remove, Side::Source, error);
    let client = core.store(Side::Source)?;
    let entry = &moving.entry;
    let source = Object::below(&moving.pair.source, &entry.name, &entry.etag);
    let Some(Object { bucket, key, .. }) = source else { return Ok(()) };
    // A version never changes.
    if let Some(version) = &core.engine.setup.options.version {
        return delete_object(client, bucket, &key, Some(version)).await.map_err(failed);
    }
    let head = match head_object(client, bucket, &key, None).await {
        // Somebody else removed it.
        Err(error) if error.kind == Why::NotFound => return Ok(()),
        other => other.map_err(failed)?,
    };
    let same = match entry.etag.is_empty() {
        // LastModified in headers has whole seconds.
        true => head.size == entry.meta.size && same_time(head.mtime, entry.meta.mtime, 0),
        false => *entry.etag == *head.etag,
    };
    let changed = Failed::Reason(Operation::Remove, Side::Source, CHANGED);
    if !same {
        return Err(changed);
    }
    match delete_object_if(client, bucket, &key, &head.etag).await {
        Err(error) if error.kind == Why::Precondition => Err(changed),
        Err(error) if error.kind == Why::NotImplemented => {
            delete_object(client, bucket, &key, None).await.map_err(failed)
        }
        other => other.map_err(failed),
    }
}
