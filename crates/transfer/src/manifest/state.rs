//! Manifests in the user's state folder: one file for each place, replaced at the end of a run. Anything that cannot be
//! read, is another user's or about another place counts as none; a folder that cannot be written keeps none.
//!
//! Of two runs at once the last one to end keeps what it learnt, together with what the other one wrote before. A run
//! that is killed keeps nothing.

use super::recorder::merge_contents;
use super::{FileMetadata, Known, ManifestFiles, Place, Record, Recorder, today};
use crate::journal::{hashed_name, make_private};
use crate::location::Side;
use hakobu_core::unit::Time;
use hakobu_sys::dir::paths_in;
use hakobu_sys::process;
use parking_lot::RwLock;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Maximum bytes of a manifest, about 20 million objects. Objects behind them are asked for in each run.
const BYTES_MAX: u64 = 1 << 30;
/// Maximum bytes of all manifests of a user; those that were not used for the longest time go first.
const FOLDER_BYTES_MAX: u64 = 4 << 30;
/// Time after which a manifest that no run used is removed.
const UNUSED_MAX: Duration = Duration::from_secs(super::AGE_DAYS_MAX as u64 * DAY_S);
/// Time after which the temporary file of a killed run is removed.
const LEFT_MAX: Duration = Duration::from_secs(DAY_S);
const DAY_S: u64 = 24 * 3600;
/// Maximum number of places of one run: further ones have no manifest.
const PLACES_MAX: usize = 64;
/// Number of objects of the last second that are asked for in the next run, whatever a run could wait for.
const ASKED_MAX: usize = 8;
/// Pause between two looks whether the run was stopped while it waits.
const PAUSE: Duration = Duration::from_millis(20);
/// A manifest with more records is not rewritten for changes of less than this share.
const FEW_OF: u64 = 1 << 20;
const FEW_SHARE: u64 = 4096;

const END: &str = "manifest";
const TEMPORARY: &str = "new";

/// The manifests that a run uses.
#[derive(Default)]
pub struct Manifests {
    /// `None`: nothing is known, and nothing is kept.
    folder: Option<PathBuf>,
    /// Where manifests are instead of the folder, which has temporary files only.
    files: Option<Arc<dyn ManifestFiles>>,
    /// Whether what is learnt is kept.
    keeps: bool,
    places: RwLock<Vec<(Side, Arc<Manifest>)>>,
}

/// The manifest of one place.
pub struct Manifest {
    place: Place,
    path: PathBuf,
    /// What is known, where it does not lie in the file.
    content: Option<Arc<[u8]>>,
    recorder: Recorder,
}

/// The bytes of a manifest: a file, or its content.
trait Bytes: Read + Seek + Send {}

impl<B: Read + Seek + Send> Bytes for B {}

/// A manifest that can be read.
type KnownBytes = Known<Box<dyn Bytes>>;

impl Manifests {
    /// Returns the manifests in a folder, which need not exist; with `keeps` what the run learns is added.
    pub fn new(folder: Option<PathBuf>, keeps: bool) -> Manifests {
        Manifests { folder, keeps, ..Manifests::default() }
    }

    /// Returns manifests that lie elsewhere; temporary files are in `folder`.
    pub fn elsewhere(files: Arc<dyn ManifestFiles>, folder: PathBuf) -> Manifests {
        Manifests { folder: Some(folder), files: Some(files), keeps: true, ..Manifests::default() }
    }

    /// Returns the manifest of a place on a side of the run; what is recorded about it is kept from now on.
    pub fn open(&self, side: Side, place: Place) -> Option<Arc<Manifest>> {
        let folder = self.folder.as_ref()?;
        let mut places = self.places.write();
        let same =
            |(other, manifest): &&(Side, Arc<Manifest>)| *other == side && manifest.place == place;
        if let Some((_, manifest)) = places.iter().find(same) {
            return Some(Arc::clone(manifest));
        }
        if places.len() >= PLACES_MAX {
            return None;
        }
        let path = folder.join(file_name(&place));
        let recorder = Recorder::new(place.clone(), folder.clone(), BYTES_MAX);
        let files = self.files.as_ref().map(Arc::clone);
        let content = files.and_then(|files| {
            let earlier = files.earlier(side, &place);
            (!earlier.is_empty()).then(|| merge_contents(earlier, &place).ok())?
        });
        let content = content.map(Arc::from);
        let manifest = Arc::new(Manifest { place, path, content, recorder });
        places.push((side, Arc::clone(&manifest)));
        Some(manifest)
    }

    /// Returns what records facts about objects below a prefix on a side; `None` if it has no manifest.
    pub fn recorder(&self, side: Side, bucket: &str, prefix: &[u8]) -> Option<Arc<Manifest>> {
        if !self.keeps {
            return None;
        }
        let places = self.places.read();
        let found = places.iter().find(|(other, manifest)| {
            *other == side && manifest.place.bucket == bucket && manifest.place.prefix == prefix
        });
        found.map(|(_, manifest)| Arc::clone(manifest))
    }

    /// Writes what was learnt. Waits for the end of the last second where that is worth it, unless `is_stopped`. Failures
    /// only mean that the next run knows less.
    pub fn save(&self, is_stopped: impl Fn() -> bool) {
        let Some(folder) = self.folder.as_ref().filter(|_| self.keeps) else { return };
        let places = self.places.read();
        if let Some(files) = &self.files {
            for (side, manifest) in places.iter() {
                manifest.recorder.settle_all();
                if let Ok(Some(content)) = manifest.merged() {
                    files.keep(*side, &manifest.place, content);
                }
            }
            return;
        }
        let mut wrote = false;
        for (_, manifest) in places.iter() {
            while let Some((count, wait)) = manifest.recorder.unsettled()
                && is_worth_waiting(count, wait, manifest.recorder.age())
                && !is_stopped()
            {
                std::thread::sleep(wait.min(PAUSE));
            }
            manifest.recorder.settle();
            wrote |= manifest.save(folder).is_ok_and(|wrote| wrote);
        }
        if wrote {
            drop(tidy(folder, SystemTime::now()));
        }
    }
}

/// Returns whether a run that has taken so long waits until the facts about objects of its last second can be kept. It would
/// take half as long again at most; what a shorter one wrote is asked for by the next run, in less time than it took to
/// write it.
fn is_worth_waiting(count: usize, wait: Duration, taken: Duration) -> bool {
    count > ASKED_MAX && !wait.is_zero() && wait * 2 <= taken
}

impl Manifest {
    /// Returns everything that is known in the end; `None` if that is nothing.
    fn merged(&self) -> io::Result<Option<Vec<u8>>> {
        let old = self.content.as_ref().and_then(|_| self.known());
        if old.is_none() && self.recorder.changes() == 0 {
            return Ok(None);
        }
        self.recorder.merge(old, Vec::new(), BYTES_MAX).map(|(content, _)| Some(content))
    }

    /// Returns what earlier runs knew; `None` if there is nothing, or nothing that can be used.
    fn known(&self) -> Option<KnownBytes> {
        if let Some(content) = &self.content {
            let bytes: Box<dyn Bytes> = Box::new(io::Cursor::new(Arc::clone(content)));
            return Known::open(bytes, &self.place).ok();
        }
        // A FIFO or device would wait.
        let named = fs::symlink_metadata(&self.path).ok().filter(|meta| meta.is_file())?;
        let file = File::open(&self.path).ok()?;
        let meta = file.metadata().ok()?;
        let is_ours = meta.uid() == process::euid() && meta.mode() & 0o022 == 0;
        if !is_ours || (meta.dev(), meta.ino()) != (named.dev(), named.ino()) {
            return None;
        }
        let now = SystemTime::now();
        if meta.modified().is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age > LEFT_MAX)) {
            // It is used. Only its removal depends on this.
            drop(file.set_modified(now));
        }
        let bytes: Box<dyn Bytes> = Box::new(BufReader::new(file));
        Known::open(bytes, &self.place).ok()
    }

    /// Returns a cursor over what earlier runs knew. `is_whole`: all keys below the prefix are looked up, in order, so
    /// that others are gone.
    pub fn cursor(self: &Arc<Self>, is_whole: bool) -> Cursor {
        let (manifest, known) = (Arc::clone(self), self.known());
        Cursor { manifest, known, is_whole, today: today() }
    }

    /// Returns the recorder.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Writes a new file; returns whether it was worth it.
    fn save(&self, folder: &Path) -> io::Result<bool> {
        let changes = self.recorder.changes();
        if changes == 0 {
            return Ok(false);
        }
        let old = self.known();
        let before = old.as_ref().map_or(0, Known::records);
        if before > FEW_OF && changes < before / FEW_SHARE {
            return Ok(false);
        }
        make_private(folder)?;
        let mut temporary = tempfile::Builder::new();
        let temporary = temporary.prefix("known-").suffix(".new").tempfile_in(folder)?;
        let writer = BufWriter::new(temporary.as_file());
        self.recorder.merge(old, writer, BYTES_MAX)?;
        temporary.persist(&self.path).map_err(|error| error.error)?;
        Ok(true)
    }
}

/// Position in a manifest that follows a listing.
pub struct Cursor {
    manifest: Arc<Manifest>,
    known: Option<KnownBytes>,
    is_whole: bool,
    today: u32,
}

impl Cursor {
    /// Returns the metadata of a listed object, if it is known. `key`: without the prefix of the place.
    pub fn find(&mut self, key: &[u8], etag: &str, size: u64, mtime: Time) -> Option<FileMetadata> {
        let known = self.known.as_mut()?;
        let mut gone = |record: Record| self.manifest.recorder.forget(&record.key);
        let missed: Option<&mut dyn FnMut(Record)> =
            if self.is_whole { Some(&mut gone) } else { None };
        match known.find(key, missed) {
            Ok(found) => found?.facts_of(etag, size, mtime, self.today),
            Err(_) => {
                // The rest is damaged.
                self.known = None;
                None
            }
        }
    }

    /// Ends a listing that was complete: what comes after its last key is gone.
    pub fn end(mut self) {
        let Some(known) = self.known.as_mut().filter(|_| self.is_whole) else { return };
        while let Ok(Some(record)) = known.next() {
            self.manifest.recorder.forget(&record.key);
        }
    }
}

fn file_name(place: &Place) -> String {
    hashed_name([place.endpoint.as_bytes(), place.bucket.as_bytes(), &place.prefix], END)
}

/// Removes manifests that were not used for long, the oldest of too many, and temporary files of killed runs.
fn tidy(folder: &Path, now: SystemTime) -> io::Result<()> {
    let mut found = Vec::new();
    for path in paths_in(folder, usize::MAX)? {
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        let age =
            meta.modified().ok().and_then(|at| now.duration_since(at).ok()).unwrap_or_default();
        let age_max = match end {
            END => UNUSED_MAX,
            TEMPORARY => LEFT_MAX,
            _ => continue,
        };
        if age > age_max {
            drop(fs::remove_file(path));
        } else if end == END {
            found.push((age, meta.len(), path));
        }
    }
    // The one used last is the first one.
    found.sort();
    let mut bytes = 0;
    for (_, len, path) in found {
        bytes += len;
        if bytes > FOLDER_BYTES_MAX {
            drop(fs::remove_file(path));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{ManifestWriter, Modified};
    use super::*;
    use hakobu_s3::ops::Etag;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_run_waits_only_where_that_is_little_of_its_time() {
        let ms = Duration::from_millis;
        for (count, wait_ms, taken_ms, waits) in [
            (1000, 990, 20, false),
            (1000, 500, 999, false),
            (1000, 500, 1000, true),
            (1000, 1000, 2000, true),
            (1000, 0, 2000, false),
            (ASKED_MAX, 10, 60_000, false),
            (ASKED_MAX + 1, 10, 60_000, true),
        ] {
            let decided = is_worth_waiting(count, ms(wait_ms), ms(taken_ms));
            assert_eq!(decided, waits, "{count} {wait_ms} {taken_ms}");
        }
    }

    fn place(bucket: &str) -> Place {
        Place { endpoint: "http://h".into(), bucket: bucket.into(), prefix: b"p/".to_vec() }
    }

    fn record(key: &str) -> Record {
        Record {
            key: key.as_bytes().into(),
            etag: Etag::new("e"),
            size: 1,
            modified: Modified::At(Time { s: 5, ns: 0 }),
            learnt_day: today(),
            facts: FileMetadata { mode: Some(0o640), ..FileMetadata::default() },
        }
    }

    fn learnt(folder: &Path, keys: &[&str]) {
        let manifests = Manifests::new(Some(folder.to_owned()), true);
        let manifest = manifests.open(Side::Target, place("b")).unwrap();
        keys.iter().for_each(|key| manifest.recorder().learn(record(key), 10));
        manifests.save(|| false);
    }

    fn look(folder: &Path, keys: &[&str], is_whole: bool) -> Vec<bool> {
        let manifests = Manifests::new(Some(folder.to_owned()), true);
        let manifest = manifests.open(Side::Target, place("b")).unwrap();
        let mut cursor = manifest.cursor(is_whole);
        let time = Time { s: 5, ns: 0 };
        let found =
            keys.iter().map(|key| cursor.find(key.as_bytes(), "e", 1, time).is_some()).collect();
        cursor.end();
        manifests.save(|| false);
        found
    }

    #[test]
    fn facts_stay_until_their_key_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = &folder.path().join("new/folder");
        learnt(folder, &["a", "c"]);
        assert_eq!(fs::metadata(folder).unwrap().mode() & 0o777, 0o700);
        learnt(folder, &["b"]);
        assert_eq!(look(folder, &["a", "b", "c", "d"], true), [true, true, true, false]);
        // Part of the listing, in another order.
        assert_eq!(look(folder, &["c", "a"], false), [true, true]);
        assert_eq!(look(folder, &["b"], true), [true]);
        assert_eq!(look(folder, &["a", "b", "c"], true), [false, true, false]);
    }

    #[test]
    fn a_file_of_others_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        learnt(folder, &["a"]);
        let path = folder.join(file_name(&place("b")));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(look(folder, &["a"], false), [true]);
        // Others may have written it.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        assert_eq!(look(folder, &["a"], false), [false]);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        // Of another place, under this name.
        let content = fs::read(&path).unwrap();
        let other = ManifestWriter::new(Vec::new(), &place("c")).unwrap();
        fs::write(&path, other.finish().unwrap().0).unwrap();
        assert_eq!(look(folder, &["a"], false), [false]);
        // Behind a symlink.
        let away = folder.join("away");
        fs::write(&away, content).unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&away, &path).unwrap();
        assert_eq!(look(folder, &["a"], false), [false]);
        // It is replaced, and what the link points to is not written.
        let before = fs::read(&away).unwrap();
        learnt(folder, &["z"]);
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(fs::read(&away).unwrap(), before);
        assert_eq!(look(folder, &["a", "z"], false), [false, true]);
    }

    #[test]
    fn unused_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (name, days) in
            [("a.manifest", 89), ("b.manifest", 91), ("c.new", 0), ("d.new", 2), ("e.json", 300)]
        {
            let file = File::create(folder.join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(days * DAY_S)).unwrap();
        }
        tidy(folder, SystemTime::now()).unwrap();
        let mut left: Vec<_> = paths_in(folder, usize::MAX)
            .unwrap()
            .into_iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        left.sort();
        assert_eq!(left, ["a.manifest", "c.new", "e.json"]);
    }

    #[test]
    fn the_largest_folder_keeps_what_was_used_last() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (name, days) in [("a.manifest", 3), ("b.manifest", 2), ("c.manifest", 1)] {
            let file = File::create(folder.join(name)).unwrap();
            // Sparse.
            file.set_len(FOLDER_BYTES_MAX / 2).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(days * DAY_S)).unwrap();
        }
        tidy(folder, SystemTime::now()).unwrap();
        assert!(!folder.join("a.manifest").exists());
        assert!(folder.join("b.manifest").exists() && folder.join("c.manifest").exists());
    }

    #[test]
    fn a_folder_that_cannot_be_written_keeps_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        learnt(&file.join("below"), &["a"]);
        assert_eq!(look(&file.join("below"), &["a"], true), [false]);
        assert_eq!(fs::read(&file).unwrap(), b"x");
    }

    #[test]
    fn what_is_not_kept_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let manifests = Manifests::new(Some(folder.path().to_owned()), false);
        let manifest = manifests.open(Side::Target, place("b")).unwrap();
        manifest.recorder().learn(record("a"), 10);
        assert!(manifests.recorder(Side::Target, "b", b"p/").is_none());
        manifests.save(|| false);
        assert_eq!(paths_in(folder.path(), usize::MAX).unwrap().len(), 0);
    }
}
