//! The numbers of jobs that were good last time, for what is moved from where to where: one small
//! file for each user, so that the next run begins where this one arrived. A run without it is only
//! slower at first; so a place that cannot be read or written is no error, while a file that makes no
//! sense is one, before anything moves: it may have been good for something.

use super::Journal;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Raised when a field changes its meaning: a file of another schema is neither read nor replaced.
const SCHEMA: u32 = 1;

/// Entries that are kept: the newest.
const ENTRIES_MAX: usize = 256;

/// A value that was not confirmed for so long says little: 90 days.
const AGE_S_MAX: u64 = 90 * 24 * 3600;

/// A clock that was set back by up to a day is no reason to forget.
const AHEAD_S_MAX: u64 = 24 * 3600;

/// No sensible value is larger.
const NUMBER_MAX: usize = 65_536;

/// A file larger than this was not written by us: an entry has a few hundred bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// How long to wait for another process that is writing.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// What a remembered number belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    source: String,
    target: String,
    size_class: String,
}

/// What was good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// Units under way, 1 to 65,536.
    pub jobs: usize,
}

/// The file makes no sense.
#[derive(Debug)]
pub struct Damaged {
    /// Which.
    pub path: PathBuf,
    /// What is wrong with it.
    pub cause: String,
}

/// What is remembered; see the module.
#[derive(Debug, Default)]
pub struct Seeds {
    /// `None`: there is no place for it.
    folder: Option<PathBuf>,
    entries: Vec<Entry>,
    /// Put since it was loaded.
    fresh: Vec<Entry>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    key: Key,
    jobs: usize,
    /// Seconds since 1970.
    saved_s: u64,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    schema: u32,
    seeds: Vec<Entry>,
}

/// Only the version: the rest may have another form.
#[derive(Deserialize)]
struct Versioned {
    schema: u32,
}

enum Found {
    Nothing,
    /// Of another schema.
    Foreign,
    Entries(Vec<Entry>),
}

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the memory of seeds {} is damaged: {}; --no-memory goes on without it, and it may be removed",
            self.path.display(),
            self.cause
        )
    }
}

impl std::error::Error for Damaged {}

impl Key {
    /// Of a kind of source with its device or endpoint, the same of the target, and a class of
    /// sizes: any text, as long as it is the same next time.
    pub fn new(source: &str, target: &str, size_class: &str) -> Key {
        let owned = str::to_owned;
        Key { source: owned(source), target: owned(target), size_class: owned(size_class) }
    }
}

impl Seeds {
    /// What this user's earlier runs left; nothing where there is no place, no file, or no
    /// permission to read it.
    ///
    /// # Errors
    /// The file is there and makes no sense.
    pub fn load(journal: &Journal, now: SystemTime) -> Result<Seeds, Damaged> {
        let Some(folder) = journal.folder.clone() else { return Ok(Seeds::default()) };
        let mut entries = match read(&folder.join(FILE))? {
            Found::Foreign => return Ok(Seeds::default()),
            Found::Nothing => Vec::new(),
            Found::Entries(entries) => entries,
        };
        entries.retain(|entry| is_current(entry, now));
        Ok(Seeds { folder: Some(folder), entries, fresh: Vec::new() })
    }

    /// What was good for this, brought into the range of what is sensible.
    pub fn get(&self, key: &Key) -> Option<Seed> {
        let mut newest_first = self.fresh.iter().rev().chain(self.entries.iter().rev());
        let entry = newest_first.find(|entry| entry.key == *key)?;
        Some(Seed { jobs: entry.jobs.clamp(1, NUMBER_MAX) })
    }

    /// Remembers what was good for this; [`Seeds::save`] writes it down.
    pub fn put(&mut self, key: Key, seed: Seed, now: SystemTime) {
        self.fresh.retain(|entry| entry.key != key);
        let Seed { jobs } = seed;
        self.fresh.push(Entry { key, jobs, saved_s: seconds(now) });
    }

    /// Adds what was put to what is in the file by now, in one step: a reader sees the old or the
    /// new file, and of two writers neither loses what the other one wrote. Without a place for it
    /// nothing happens.
    ///
    /// # Errors
    /// What making the folder, locking, writing and renaming say; InvalidData where the file was
    /// damaged meanwhile. It is as it was then, and nobody needs to care.
    pub fn save(&mut self, now: SystemTime) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        if self.fresh.is_empty() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let _lock = lock(&folder.join(LOCK))?;
        let path = folder.join(FILE);
        let mut entries = match read(&path).map_err(|damaged| invalid(damaged.to_string()))? {
            Found::Foreign => return Err(invalid("it is of another schema".into())),
            Found::Nothing => Vec::new(),
            Found::Entries(entries) => entries,
        };
        let fresh = |entry: &Entry| self.fresh.iter().any(|new| new.key == entry.key);
        entries.retain(|entry| is_current(entry, now) && !fresh(entry));
        entries.append(&mut self.fresh);
        entries.sort_by_key(|entry| entry.saved_s);
        let over = entries.len().saturating_sub(ENTRIES_MAX);
        entries.drain(..over);
        let stored = Stored { schema: SCHEMA, seeds: entries };
        let text = serde_json::to_vec(&stored).map_err(io::Error::other)?;
        self.entries = stored.seeds;
        // Only the holder of the lock writes: the name needs no further distinction.
        let temporary = folder.join(NEW);
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(&text)?;
        fs::rename(&temporary, path)
    }
}

const FILE: &str = "seeds.json";
const LOCK: &str = "seeds.lock";
const NEW: &str = "seeds.new";

fn invalid(cause: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, cause)
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn is_current(entry: &Entry, now: SystemTime) -> bool {
    let now_s = seconds(now);
    let age_s = now_s.saturating_sub(entry.saved_s);
    age_s <= AGE_S_MAX && entry.saved_s <= now_s.saturating_add(AHEAD_S_MAX)
}

/// The lock file stays: nobody has to ask whether it is still the one that has this name.
fn lock(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

fn read(path: &Path) -> Result<Found, Damaged> {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    let damaged = |cause: String| Damaged { path: path.to_owned(), cause };
    let mut text = Vec::new();
    let whole = |file: File, text: &mut Vec<u8>| file.take(FILE_BYTES_MAX + 1).read_to_end(text);
    match File::open(path).and_then(|file| whole(file, &mut text)) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | PermissionDenied) => {
            return Ok(Found::Nothing);
        }
        Err(error) => return Err(damaged(error.to_string())),
    }
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(damaged("it is too large".into()));
    }
    let versioned: Versioned =
        serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if versioned.schema != SCHEMA {
        return Ok(Found::Foreign);
    }
    let stored: Stored =
        serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    Ok(Found::Entries(stored.seeds))
}

#[cfg(test)]
mod tests;
