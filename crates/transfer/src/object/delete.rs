//! Removal of extraneous objects and files of the target, and of moved sources.

use super::entry::{Failed, Moving, Object};
use super::runtime::{Core, ObjectEngine};
use super::{Entry, Extraneous, Pair, Root, Side};
use crate::failure::c_string;
use futures_util::stream::{self, StreamExt};
use hakobu_core::error::{Cause, ErrorClass, Operation, Problem};
use hakobu_core::event::{Change, Event, Item};
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta, Time, Totals};
use hakobu_s3::ops::{
    DeleteResult, ObjectId, delete_alone, delete_object, delete_object_if, delete_objects,
    head_object,
};
use hakobu_s3::{Client, Error, ErrorKind};
use hakobu_sys::errno::{is_gone, is_not_empty};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, meta, paths};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::ffi::{CString, OsStr};
use std::io;
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
/// Reason for keeping an entry that was to be removed.
pub(crate) const CHANGED_SINCE: &str = "it changed since it was found to be extraneous; it is kept";

/// Removes entries of the pair's target (up to 1,000 objects in one request, files one by one), within
/// `--max-delete`; counts and reports each. `unchanged`: only those that are as they were looked at.
pub(super) async fn run(
    core: &Core<'_>,
    pair: &Pair,
    mut entries: Vec<Extraneous>,
    unchanged: bool,
) {
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
        Root::Local { dir, .. } => files(core, pair, dir, entries, unchanged, &mut totals).await,
        Root::Store { bucket, .. } => {
            for batch in entries.chunks(KEYS_MAX) {
                if engine.is_stopped() {
                    break;
                }
                objects(core, pair, bucket, batch, unchanged, &mut totals).await;
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
    unchanged: bool,
    totals: &mut Totals,
) {
    // Entries of a directory come before the directory.
    entries.sort_by(|(a, _), (b, _)| b.name.cmp(&a.name));
    let mut folder = LastFolder::default();
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
            && identity_of(root, &entry.0, &mut folder).is_some_and(|it| made.keeps(it))
        {
            core.engine.deletes.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        if unchanged {
            match found(root, &entry.0, &mut folder) {
                // The times of a directory change with its entries, and only an empty one is removed.
                Ok(now) if now.kind == Kind::Dir && entry.0.meta.kind == Kind::Dir => {}
                Ok(now) if is_same(&entry.0.meta, &now) => {}
                Ok(_) => {
                    kept(core.engine, pair, &entry.0);
                    continue;
                }
                // Another program removed it.
                Err(error) if is_gone(&error) => {
                    core.engine.deletes.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                Err(error) => {
                    let failed = Failed::File(Operation::Stat, Side::Target, error);
                    stays(core.engine, pair, &entry.0, failed, totals);
                    continue;
                }
            }
        }
        let mut on_removed = |dir: &[u8]| removed_dir(core.engine, pair, dir, totals);
        match remove(root, &entry.0, &mut folder, &core.engine.emptied, &mut on_removed) {
            Ok(RemovalResult::Removed) => removed(core.engine, pair, entry, totals),
            // Entries in it are still to be removed, or kept.
            Ok(RemovalResult::Waits) => {}
            Err(error) => {
                let failed = Failed::File(Operation::Remove, Side::Target, error);
                stays(core.engine, pair, &entry.0, failed, totals);
            }
        }
    }
}

/// Removes up to [`KEYS_MAX`] objects in one request: the current version of each, or the one of an ID. Counts and
/// reports each. `unchanged`: those that have their ETags, as far as the server supports conditions.
async fn objects(
    core: &Core<'_>,
    pair: &Pair,
    bucket: &str,
    batch: &[Extraneous],
    unchanged: bool,
    totals: &mut Totals,
) {
    let id = |(entry, version): &Extraneous| ObjectId {
        key: pair.target.key(&entry.name),
        version: version.as_deref().map(str::to_owned),
        etag: (unchanged && !entry.etag.is_empty()).then(|| entry.etag.to_string()),
    };
    let ids: Vec<ObjectId> = batch.iter().map(id).collect();
    let results = match core.store(Side::Target) {
        Ok(client) => {
            let mut sent = delete_objects(client, bucket, &ids).await;
            if unchanged && sent.as_ref().is_err_and(knows_no_condition) {
                // They were looked at just before. Where the server knows no batches either, single requests keep their
                // conditions.
                let plain = ids.iter().map(|id| ObjectId { etag: None, ..id.clone() });
                sent = delete_objects(client, bucket, &plain.collect::<Vec<_>>()).await;
            }
            match sent {
                Err(error) if error.kind == ErrorKind::NotImplemented => {
                    one_by_one(client, bucket, &ids).await
                }
                Err(error) => batch.iter().map(|_| Err(error.clone())).collect(),
                Ok(results) => results,
            }
        }
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
            Err(error) if unchanged && error.kind == ErrorKind::Precondition => {
                match is_away(core, pair, bucket, &entry.0).await {
                    // An earlier attempt of this request removed it.
                    true => removed(core.engine, pair, entry, totals),
                    false => kept(core.engine, pair, &entry.0),
                }
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
    let requests = ids.iter().map(|id| delete_alone(client, bucket, id));
    stream::iter(requests).buffered(SINGLE_MAX).collect().await
}

/// Returns whether a server refused a batch because it has conditions.
fn knows_no_condition(error: &Error) -> bool {
    error.kind == ErrorKind::NotImplemented || error.code == "MalformedXML"
}

/// Returns whether an object is certainly gone.
async fn is_away(core: &Core<'_>, pair: &Pair, bucket: &str, entry: &Entry) -> bool {
    let Ok(client) = core.store(Side::Target) else { return false };
    let head = head_object(client, bucket, &pair.target.key(&entry.name), None).await;
    head.is_err_and(|error| error.kind == ErrorKind::NotFound)
}

/// Reports an entry that is kept because it changed, and returns it to `--max-delete`.
fn kept(engine: &ObjectEngine<'_>, pair: &Pair, entry: &Entry) {
    engine.deletes.fetch_sub(1, Ordering::Relaxed);
    engine.problem(&Problem {
        operation: Operation::Remove,
        source: None,
        target: Some(pair.target.spell(&entry.name)),
        cause: Cause::Reason(CHANGED_SINCE),
        class: ErrorClass::Notice,
    });
}

/// Counts and reports a directory that was removed after its last entry.
fn removed_dir(engine: &ObjectEngine<'_>, pair: &Pair, dir: &[u8], totals: &mut Totals) {
    let entry = Entry {
        name: [dir, b"/"].concat().into(),
        meta: Meta::bare(Kind::Dir, 0, Time::default()),
        etag: "".into(),
    };
    removed(engine, pair, &(entry, None), totals);
}

/// Counts and reports a removal: of an entry, or of one version of it.
fn removed(
    engine: &ObjectEngine<'_>,
    pair: &Pair,
    (entry, version): &Extraneous,
    totals: &mut Totals,
) {
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
        checksum: None,
    }));
}

/// Counts and reports a failed removal, and returns it to `--max-delete`.
fn stays(
    engine: &ObjectEngine<'_>,
    pair: &Pair,
    entry: &Entry,
    failed: Failed,
    totals: &mut Totals,
) {
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
            match remove_moved(dir, &moving.entry, and_dirs) {
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

// Removal of files below an open folder, by descriptors and never through a symlink, and of directories that became
// empty.

/// Directories to remove as soon as they are empty: their removal and those of their entries are tasks that run
/// concurrently on several cores. Grows with the number of such directories that are not empty yet.
#[derive(Default)]
pub(in crate::object) struct Emptied(Mutex<HashSet<Vec<u8>>>);

impl Emptied {
    fn add(&self, path: &[u8]) {
        self.0.lock().insert(path.to_vec());
    }

    fn has(&self, path: &[u8]) -> bool {
        self.0.lock().contains(path)
    }

    fn take(&self, path: &[u8]) -> bool {
        self.0.lock().remove(path)
    }
}

/// The folder of the last entry: names come sorted, so the next one is often in the same folder.
#[derive(Default)]
pub(super) struct LastFolder {
    path: Vec<u8>,
    fd: Option<OwnedFd>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemovalResult {
    /// It was removed.
    Removed,
    /// It is a non-empty directory, which is removed after its content.
    Waits,
}

/// Splits a path without a trailing slash into the folder (empty for the root) and the name in it.
fn divide(path: &[u8]) -> (&[u8], &[u8]) {
    let (folder, name) = paths::split(path);
    (folder.strip_suffix(b"/").unwrap_or(folder), name)
}

impl LastFolder {
    /// Opens a folder below `root`, unless it is already open.
    fn open<'a>(&'a mut self, root: &'a OwnedFd, path: &[u8]) -> io::Result<BorrowedFd<'a>> {
        if path.is_empty() {
            return Ok(root.as_fd());
        }
        if self.path != path {
            self.fd = None;
        }
        if self.fd.is_none() {
            self.fd = Some(dir::open_below(root.as_fd(), &c_string(path)?)?);
            self.path = path.to_vec();
        }
        Ok(self.fd.as_ref().map_or(root.as_fd(), AsFd::as_fd))
    }
}

/// Returns the device and inode of an entry below `root`.
fn identity_of(root: &OwnedFd, entry: &Entry, folder: &mut LastFolder) -> Option<(u64, u64)> {
    found(root, entry, folder).ok().map(|meta| meta.identity())
}

/// Returns the metadata of an entry below `root`.
fn found(root: &OwnedFd, entry: &Entry, folder: &mut LastFolder) -> io::Result<Meta> {
    let path = entry.name.strip_suffix(b"/").unwrap_or(&entry.name);
    let (above, name) = divide(path);
    let parent = folder.open(root, above)?;
    meta::of(parent, &c_string(name)?, false)
}

/// Removes an entry below `root`; a directory (its name ends with a slash) when it is empty, now or after a later
/// removal. `on_removed` is called with directories above that were removed along with it. A missing entry counts as
/// removed.
///
/// # Errors
/// The system's error.
pub(super) fn remove(
    root: &OwnedFd,
    entry: &Entry,
    folder: &mut LastFolder,
    emptied: &Emptied,
    on_removed: &mut dyn FnMut(&[u8]),
) -> io::Result<RemovalResult> {
    let is_dir = entry.name.ends_with(b"/") || entry.meta.kind == Kind::Dir;
    let path = entry.name.strip_suffix(b"/").unwrap_or(&entry.name);
    let (above, name) = divide(path);
    let name: CString = c_string(name)?;
    if is_dir {
        // Register before trying: a thread that removes the last entry meanwhile sees it.
        emptied.add(path);
    }
    let removed = folder.open(root, above).and_then(|parent| match is_dir {
        true => dir::rmdir(parent, &name),
        false => dir::unlink(parent, &name),
    });
    match removed {
        Err(error) if is_dir && is_not_empty(&error) => return Ok(RemovalResult::Waits),
        Err(error) if is_gone(&error) => {}
        Err(error) => {
            emptied.take(path);
            return Err(error);
        }
        Ok(()) => {}
    }
    // Another core may have removed and reported it between the two steps above.
    let ours = !is_dir || emptied.take(path);
    upwards(root, above, emptied, on_removed);
    Ok(if ours { RemovalResult::Removed } else { RemovalResult::Waits })
}

/// Removes registered directories above, as far as they are empty.
fn upwards(root: &OwnedFd, mut path: &[u8], emptied: &Emptied, on_removed: &mut dyn FnMut(&[u8])) {
    while !path.is_empty() && emptied.has(path) {
        let (above, name) = divide(path);
        let Ok(name) = c_string(name) else { return };
        let mut folder = LastFolder::default();
        let removed = folder.open(root, above).and_then(|parent| dir::rmdir(parent, &name));
        // A non-empty one keeps waiting; other failures are reported by the directory's own task or are harmless.
        if removed.is_err() {
            return;
        }
        if emptied.take(path) {
            on_removed(path);
        }
        path = above;
    }
}

/// Returns whether a file is unchanged since it was listed.
fn is_same(was: &Meta, now: &Meta) -> bool {
    was.identity() == now.identity()
        && was.size == now.size
        && was.mtime == now.mtime
        && was.kind == now.kind
}

/// Removes a source file that was moved, if it is unchanged since it was listed; returns `false` if it is not. A
/// symlink that was followed is removed itself, its referent stays. With `and_dirs` the directories above, below the
/// root, are removed as well when they are empty.
///
/// # Errors
/// The system's error; a missing file is none.
pub(super) fn remove_moved(root: &OwnedFd, entry: &Entry, and_dirs: bool) -> io::Result<bool> {
    let path = entry.name.strip_suffix(b"/").unwrap_or(&entry.name);
    let (above, name) = divide(path);
    let name = c_string(name)?;
    let mut folder = LastFolder::default();
    let parent = match folder.open(root, above) {
        Err(error) if is_gone(&error) => return Ok(true),
        other => other?,
    };
    let now = meta::of(parent, &name, false).and_then(|now| match now.kind {
        Kind::Symlink if entry.meta.kind != Kind::Symlink => meta::of(parent, &name, true),
        _ => Ok(now),
    });
    match now {
        Err(error) if is_gone(&error) => return Ok(true),
        Err(error) => return Err(error),
        // A directory's times change when its entries are moved.
        Ok(now) if now.kind == Kind::Dir && entry.meta.kind == Kind::Dir => {
            return match dir::rmdir(parent, &name) {
                Err(error) if is_not_empty(&error) || is_gone(&error) => Ok(true),
                other => other.map(|()| true),
            };
        }
        Ok(now) if !is_same(&entry.meta, &now) => return Ok(false),
        Ok(_) => {}
    }
    match dir::unlink(parent, &name) {
        Err(error) if !is_gone(&error) => return Err(error),
        _ => {}
    }
    if and_dirs {
        let mut path = above;
        while !path.is_empty() {
            let (above, name) = divide(path);
            let name = c_string(name)?;
            let mut folder = LastFolder::default();
            if folder.open(root, above).and_then(|parent| dir::rmdir(parent, &name)).is_err() {
                break;
            }
            path = above;
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_core::unit::{Meta, Time};
    use std::path::{Path, PathBuf};

    struct Folder0(PathBuf);

    impl Folder0 {
        fn new(name: &str) -> Folder0 {
            let path =
                std::env::temp_dir().join(format!("hakobu-delete-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Folder0(path)
        }

        fn file(&self, name: &str) {
            let path = self.0.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }

        fn open(&self) -> OwnedFd {
            open(&self.0)
        }
    }

    impl Drop for Folder0 {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn open(path: &Path) -> OwnedFd {
        dir::open_root(&CString::new(path.to_str().unwrap()).unwrap()).unwrap()
    }

    fn entry(name: &str) -> Entry {
        let kind = if name.ends_with('/') { Kind::Dir } else { Kind::File };
        let meta = Meta::bare(kind, 0, Time::default());
        Entry { name: name.as_bytes().into(), meta, etag: "".into() }
    }

    /// Removes names in this order; returns the reported ones.
    fn run(root: &OwnedFd, names: &[&str]) -> Vec<String> {
        let (emptied, mut folder, mut removed) =
            (Emptied::default(), LastFolder::default(), Vec::new());
        for name in names {
            let mut above = Vec::new();
            let mut on_removed =
                |path: &[u8]| above.push(String::from_utf8(path.to_vec()).unwrap());
            if remove(root, &entry(name), &mut folder, &emptied, &mut on_removed).unwrap()
                == RemovalResult::Removed
            {
                removed.push((*name).to_owned());
            }
            removed.extend(above.into_iter().map(|path| format!("{path}/")));
        }
        removed
    }

    #[test]
    fn a_directory_goes_after_what_is_in_it_in_whatever_order() {
        for (number, names) in [
            ["d/", "d/e/", "d/e/f", "d/g"],
            ["d/g", "d/e/f", "d/e/", "d/"],
            ["d/", "d/g", "d/e/f", "d/e/"],
        ]
        .iter()
        .enumerate()
        {
            let folder = Folder0::new(&format!("order-{number}"));
            folder.file("d/e/f");
            folder.file("d/g");
            let mut removed = run(&folder.open(), names);
            removed.sort();
            assert_eq!(removed, ["d/", "d/e/", "d/e/f", "d/g"], "{names:?}");
            assert!(!folder.0.join("d").exists());
        }
    }

    #[test]
    fn a_directory_with_something_kept_stays_and_is_not_told() {
        let folder = Folder0::new("kept");
        folder.file("d/gone");
        folder.file("d/kept");
        assert_eq!(run(&folder.open(), &["d/", "d/gone"]), ["d/gone"]);
        assert!(folder.0.join("d/kept").exists());
    }

    #[test]
    fn a_directory_that_is_not_to_go_stays_though_it_is_empty() {
        let folder = Folder0::new("stays");
        folder.file("d/gone");
        assert_eq!(run(&folder.open(), &["d/gone"]), ["d/gone"]);
        assert!(folder.0.join("d").is_dir());
    }

    #[test]
    fn no_symlink_leads_out() {
        let (inside, outside) = (Folder0::new("inside"), Folder0::new("outside"));
        outside.file("f");
        std::os::unix::fs::symlink(&outside.0, inside.0.join("d")).unwrap();
        let (emptied, mut folder) = (Emptied::default(), LastFolder::default());
        let removed = remove(&inside.open(), &entry("d/f"), &mut folder, &emptied, &mut |_| {});
        assert!(removed.is_err(), "{removed:?}");
        let up = format!("../{}/f", outside.0.file_name().unwrap().to_str().unwrap());
        let removed = remove(&inside.open(), &entry(&up), &mut folder, &emptied, &mut |_| {});
        assert!(removed.is_err(), "{removed:?}");
        assert!(outside.0.join("f").exists());
    }

    #[test]
    fn a_moved_source_goes_only_as_it_was() {
        let folder = Folder0::new("moved");
        folder.file("d/e/f");
        let root = folder.open();
        let meta = meta::of(root.as_fd(), c"d/e/f", false).unwrap();
        let entry = Entry { name: (*b"d/e/f").into(), meta, etag: "".into() };
        std::fs::write(folder.0.join("d/e/f"), "longer").unwrap();
        assert!(!remove_moved(&root, &entry, false).unwrap());
        let meta = meta::of(root.as_fd(), c"d/e/f", false).unwrap();
        let entry = Entry { meta, ..entry };
        assert!(remove_moved(&root, &entry, true).unwrap());
        assert!(!folder.0.join("d").exists() && folder.0.exists());
        assert!(remove_moved(&root, &entry, false).unwrap(), "what is gone is removed");
    }
}
