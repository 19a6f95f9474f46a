//! Numbers of jobs that were good in earlier runs, by source and target: one small file for each user, so that the
//! next run starts with the last result. A run without it is only slower at first. So a location that cannot be read
//! or written is not an error; a damaged file is one, reported before anything moves, as it may hold useful data.

use super::Journal;
use crate::journal::{make_private, of_schema};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Incremented when a field changes its meaning: a file of another schema is neither read nor replaced.
const SCHEMA: u32 = 1;

/// Maximum number of entries; the newest are kept.
const ENTRIES_MAX: usize = 256;

/// Age, in seconds, after which an unconfirmed value is ignored: 90 days.
const AGE_S_MAX: u64 = 90 * 24 * 3600;

/// Tolerance, in seconds, for entries from the future: a clock may have been set back by up to a day.
const AHEAD_S_MAX: u64 = 24 * 3600;

/// Upper bound of plausible values.
const NUMBER_MAX: usize = 65_536;

/// Maximum file size: an entry has a few hundred bytes, so a larger file is not ours.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Maximum number of attempts to lock the file while another process writes it.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The key of a stored number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    source: String,
    target: String,
    size_class: String,
    /// Empty in entries of versions without conditions; no run has this key.
    #[serde(default)]
    conditions: String,
}

/// The file cannot be parsed.
#[derive(Debug)]
pub struct Damaged {
    /// Path of the file.
    pub path: PathBuf,
    /// Description of the damage.
    pub cause: String,
}

/// The job hints; see the module.
#[derive(Debug, Default)]
pub struct JobHints {
    /// `None`: there is no location for it.
    folder: Option<PathBuf>,
    entries: Vec<Entry>,
    /// Added since it was loaded.
    fresh: Vec<Entry>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    key: Key,
    jobs: usize,
    /// Consecutive runs that found about this number.
    #[serde(default = "once")]
    runs: u32,
    /// Seconds since 1970.
    saved_s: u64,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    schema: u32,
    seeds: Vec<Entry>,
}

enum HintMatch {
    Nothing,
    /// A file of another schema.
    Foreign,
    Entries(Vec<Entry>),
}

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the file of learned job counts {} is damaged: {}; remove it, or use --no-memory",
            self.path.display(),
            self.cause
        )
    }
}

impl std::error::Error for Damaged {}

impl Key {
    /// Makes a key from a kind of source with its device or endpoint, the same of the target, and a size class; any
    /// text that is the same in the next run.
    pub fn new(source: &str, target: &str, size_class: &str) -> Key {
        let owned = str::to_owned;
        Key {
            source: owned(source),
            target: owned(target),
            size_class: owned(size_class),
            conditions: String::new(),
        }
    }

    /// Adds conditions, as any text.
    pub fn under(self, conditions: &str) -> Key {
        Key { conditions: conditions.to_owned(), ..self }
    }

    /// Returns whether two keys differ at most in conditions.
    fn is_like(&self, other: &Key) -> bool {
        (&self.source, &self.target, &self.size_class)
            == (&other.source, &other.target, &other.size_class)
    }
}

impl JobHints {
    /// Reads the hints of this user's earlier runs; empty if there is no location, no file, or no permission to read
    /// it.
    ///
    /// # Errors
    /// The file exists and cannot be parsed.
    pub fn load(journal: &Journal, now: SystemTime) -> Result<JobHints, Damaged> {
        let Some(folder) = journal.folder.clone() else { return Ok(JobHints::default()) };
        let mut entries = match read(&folder.join(FILE))? {
            HintMatch::Foreign => return Ok(JobHints::default()),
            HintMatch::Nothing => Vec::new(),
            HintMatch::Entries(entries) => entries,
        };
        entries.retain(|entry| is_current(entry, now));
        Ok(JobHints { folder: Some(folder), entries, fresh: Vec::new() })
    }

    /// Returns the number of jobs stored for this key, limited to the plausible range: 1 to 65,536 concurrent units.
    pub fn get(&self, key: &Key) -> Option<usize> {
        Some(self.find(key)?.jobs.clamp(1, NUMBER_MAX))
    }

    /// Returns the number of consecutive runs that found about that number.
    pub fn runs(&self, key: &Key) -> u32 {
        self.find(key).map_or(0, |entry| entry.runs)
    }

    /// Returns whether anything is stored for this key under any conditions.
    pub fn has_like(&self, key: &Key) -> bool {
        self.newest_first().any(|entry| entry.key.is_like(key))
    }

    fn find(&self, key: &Key) -> Option<&Entry> {
        self.newest_first().find(|entry| entry.key == *key)
    }

    fn newest_first(&self) -> impl Iterator<Item = &Entry> {
        self.fresh.iter().rev().chain(self.entries.iter().rev())
    }

    /// Adds a number of jobs that was good; [`JobHints::save`] writes it.
    pub fn put(&mut self, key: Key, jobs: usize, now: SystemTime) {
        let is_about = |before: &&Entry| before.jobs <= 2 * jobs && jobs <= 2 * before.jobs;
        let runs =
            self.find(&key).filter(is_about).map_or(1, |before| before.runs.saturating_add(1));
        self.fresh.retain(|entry| entry.key != key);
        self.fresh.push(Entry { key, jobs, runs, saved_s: seconds(now) });
    }

    /// Merges the added hints into the current file atomically: a reader sees the old or the new file, and concurrent
    /// writers do not lose each other's entries. Without a location for it nothing happens.
    ///
    /// # Errors
    /// Errors of making the folder, locking, writing and renaming; InvalidData if the file was damaged meanwhile,
    /// which is then treated as empty.
    pub fn save(&mut self, now: SystemTime) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        if self.fresh.is_empty() {
            return Ok(());
        }
        make_private(folder)?;
        let _lock = lock(&folder.join(LOCK))?;
        let path = folder.join(FILE);
        let mut entries = match read(&path).map_err(|damaged| invalid(damaged.to_string()))? {
            HintMatch::Foreign => return Err(invalid("it is of another schema".into())),
            HintMatch::Nothing => Vec::new(),
            HintMatch::Entries(entries) => entries,
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
        // Only the lock holder writes, so a fixed name suffices.
        hakobu_sys::file::replace(&folder.join(NEW), &path, &text)
    }
}

fn once() -> u32 {
    1
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

/// Opens and locks a file that is never removed: its holder need not check that it still has this name.
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

fn read(path: &Path) -> Result<HintMatch, Damaged> {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    let damaged = |cause: String| Damaged { path: path.to_owned(), cause };
    let mut text = Vec::new();
    let whole = |file: File, text: &mut Vec<u8>| file.take(FILE_BYTES_MAX + 1).read_to_end(text);
    match File::open(path).and_then(|file| whole(file, &mut text)) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | PermissionDenied) => {
            return Ok(HintMatch::Nothing);
        }
        Err(error) => return Err(damaged(error.to_string())),
    }
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(damaged("it is too large".into()));
    }
    let stored = of_schema(&text, SCHEMA).map_err(|error| damaged(error.to_string()))?;
    Ok(stored.map_or(HintMatch::Foreign, |stored: Stored| HintMatch::Entries(stored.seeds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path =
                std::env::temp_dir().join(format!("hakobu-seeds-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Folder(path)
        }

        fn load(&self) -> Result<JobHints, Damaged> {
            JobHints::load(&Journal::at(self.0.clone()), now())
        }

        fn write(&self, text: &str) {
            fs::create_dir_all(&self.0).unwrap();
            fs::write(self.0.join(FILE), text).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_800_000_000)
    }

    fn key(name: &str) -> Key {
        Key::new(name, "s3 http://h", "small")
    }

    #[test]
    fn hints_round_trip() {
        let folder = Folder::new("back");
        let mut seeds = folder.load().unwrap();
        assert_eq!(seeds.get(&key("a")), None);
        seeds.put(key("a"), 7, now());
        seeds.put(key("a"), 8, now());
        assert_eq!(seeds.get(&key("a")), Some(8));
        seeds.save(now()).unwrap();
        assert_eq!(seeds.get(&key("a")), Some(8));
        let mut seeds = folder.load().unwrap();
        assert_eq!(seeds.get(&key("a")), Some(8));
        assert_eq!(seeds.get(&Key::new("a", "s3 http://h", "large")), None);
        seeds.put(key("a"), 9, now());
        seeds.save(now()).unwrap();
        assert_eq!(folder.load().unwrap().get(&key("a")), Some(9));
    }

    #[test]
    fn a_damaged_file_is_named_and_kept() {
        let folder = Folder::new("damaged");
        let mut before = folder.load().unwrap();
        before.put(key("a"), 7, now());
        before.save(now()).unwrap();
        let text = fs::read_to_string(folder.0.join(FILE)).unwrap();
        for cut in 0..text.len() {
            folder.write(&text[..cut]);
            let error = folder.load().unwrap_err().to_string();
            for part in [folder.0.join(FILE).to_str().unwrap(), "--no-memory", "remove it"] {
                assert!(error.contains(part), "{error}");
            }
        }
        before.put(key("b"), 7, now());
        assert_eq!(before.save(now()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(fs::read_to_string(folder.0.join(FILE)).unwrap(), text[..text.len() - 1]);
        let minus = text.replace("\"jobs\":7", "\"jobs\":-7");
        folder.write(&minus);
        assert!(folder.load().is_err());
        folder.write(&"x".repeat(FILE_BYTES_MAX as usize + 1));
        assert!(folder.load().unwrap_err().to_string().contains("too large"));
    }

    #[test]
    fn values_out_of_range_are_brought_into_it() {
        let folder = Folder::new("range");
        let mut seeds = folder.load().unwrap();
        seeds.put(key("a"), 0, now());
        seeds.put(key("b"), usize::MAX, now());
        seeds.save(now()).unwrap();
        let seeds = folder.load().unwrap();
        assert_eq!(seeds.get(&key("a")), Some(1));
        let most = NUMBER_MAX;
        assert_eq!(seeds.get(&key("b")), Some(most));
    }

    #[test]
    fn another_schema_is_left_alone() {
        let folder = Folder::new("schema");
        let text = r#"{"schema":2,"other":[]}"#;
        folder.write(text);
        let mut seeds = folder.load().unwrap();
        seeds.put(key("a"), 7, now());
        seeds.save(now()).unwrap();
        assert_eq!(fs::read_to_string(folder.0.join(FILE)).unwrap(), text);
    }

    #[test]
    fn the_old_is_forgotten_and_the_number_is_bounded() {
        let folder = Folder::new("old");
        let day = Duration::from_secs(24 * 3600);
        let mut seeds = folder.load().unwrap();
        seeds.put(key("old"), 1, now() - 91 * day);
        seeds.put(key("young"), 2, now() - 89 * day);
        seeds.put(key("future"), 3, now() + 2 * day);
        seeds.save(now() - 89 * day).unwrap();
        let mut seeds = folder.load().unwrap();
        assert_eq!(seeds.get(&key("old")), None);
        assert_eq!(seeds.get(&key("young")), Some(2));
        assert_eq!(seeds.get(&key("future")), None);
        for index in 0..ENTRIES_MAX {
            seeds.put(key(&index.to_string()), 4, now());
        }
        seeds.save(now()).unwrap();
        let seeds = folder.load().unwrap();
        assert_eq!(seeds.entries.len(), ENTRIES_MAX);
        assert_eq!(seeds.get(&key("young")), None);
        assert_eq!(seeds.get(&key("0")), Some(4));
    }

    #[test]
    fn no_place_is_no_memory() {
        let folder = Folder::new("file");
        fs::write(&folder.0, "").unwrap();
        let below = Journal::at(folder.0.join("below"));
        let mut seeds = JobHints::load(&below, now()).unwrap();
        seeds.put(key("a"), 7, now());
        assert!(seeds.save(now()).is_err());
        fs::remove_file(&folder.0).unwrap();
        let mut seeds = JobHints::load(&Journal { folder: None }, now()).unwrap();
        seeds.put(key("a"), 7, now());
        seeds.save(now()).unwrap();
        assert_eq!(seeds.get(&key("a")), Some(7));
    }

    #[test]
    fn writers_at_the_same_time_lose_nothing() {
        let folder = Folder::new("writers");
        std::thread::scope(|scope| {
            for index in 0..8 {
                let folder = &folder;
                scope.spawn(move || {
                    for round in 0..5 {
                        let mut seeds = folder.load().unwrap();
                        seeds.put(key(&format!("{index} {round}")), index + 1, now());
                        seeds.save(now()).unwrap();
                    }
                });
            }
        });
        let seeds = folder.load().unwrap();
        for index in 0..8 {
            for round in 0..5 {
                assert_eq!(seeds.get(&key(&format!("{index} {round}"))), Some(index + 1));
            }
        }
    }

    #[test]
    fn conditions_tell_numbers_apart_and_runs_confirm_them() {
        let folder = Folder::new("conditions");
        let mut seeds = folder.load().unwrap();
        let one = key("a").under("CPUs 1");
        seeds.put(one.clone(), 1, now());
        seeds.save(now()).unwrap();
        let mut seeds = folder.load().unwrap();
        assert_eq!((seeds.get(&one), seeds.runs(&one)), (Some(1), 1));
        assert_eq!((seeds.get(&key("a")), seeds.runs(&key("a"))), (None, 0));
        assert_eq!(seeds.get(&key("a").under("CPUs 2")), None);
        assert!(seeds.has_like(&key("a")) && !seeds.has_like(&key("b")));
        // About the same number confirms the entry, another one resets it.
        for (jobs, runs) in [(2, 2), (3, 3), (9, 1), (8, 2)] {
            seeds.put(one.clone(), jobs, now());
            seeds.save(now()).unwrap();
            seeds = folder.load().unwrap();
            assert_eq!((seeds.get(&one), seeds.runs(&one)), (Some(jobs), runs));
        }
    }

    /// Entries of a version without conditions are read, and count as unconditional.
    #[test]
    fn entries_without_conditions_are_read() {
        let folder = Folder::new("older");
        folder.write(
            "{\"schema\":1,\"seeds\":[{\"key\":{\"source\":\"a\",\"target\":\"s3 http://h\",\
             \"size_class\":\"small\"},\"jobs\":7,\"saved_s\":1800000000}]}",
        );
        let mut seeds = folder.load().unwrap();
        assert_eq!((seeds.get(&key("a")), seeds.runs(&key("a"))), (Some(7), 1));
        assert_eq!(seeds.get(&key("a").under("local; CPUs 2.00")), None);
        seeds.put(key("b").under("x"), 3, now());
        seeds.save(now()).unwrap();
        assert!(folder.load().unwrap().has_like(&key("a")));
    }
}
