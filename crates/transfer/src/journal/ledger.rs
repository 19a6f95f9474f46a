//! Records of runs that create files under their final names: one small file for each such run, written before the
//! first of these files and removed at the end of the run. A killed run leaves its record, so that a later run that
//! compares only names, sizes or "newer" can tell a half-written file from a finished one.
//!
//! A record says where the run writes, and when it began by the clock of each target file system. Its own mtime is
//! the last heartbeat, set every second by the local clock. Together they give the time range in which an unfinished
//! file can have been created, without comparing the clocks of two machines.
//!
//! The record is not flushed before the first file is created: without `--fsync` a power loss affects files of
//! finished runs as well, and with it no file gets its final name early. It is flushed in the background with the
//! first heartbeat.

use super::{Journal, Life, Owner, make_private, text};
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_sys::dir::{self, paths_in};
use hakobu_sys::paths::PathBelow;
use hakobu_sys::{AsFd, BorrowedFd, file, meta};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, OsStr};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval between two heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Maximum age of the list of other runs when an entry is examined.
const KNOWN: Duration = Duration::from_secs(1);

/// The record of this run, and those of other runs.
#[derive(Debug, Default)]
pub struct Ledger {
    /// `None`: there is no location for records.
    folder: Option<PathBuf>,
    scope: LedgerScope,
    own: Mutex<Option<Own>>,
    others: Mutex<Option<(Instant, Vec<EarlierRun>)>>,
    kept: AtomicBool,
    reported: AtomicBool,
}

/// The record of this run on disk.
#[derive(Debug)]
struct Own {
    file: File,
    path: PathBuf,
    last_heartbeat: Instant,
    flushed: bool,
}

impl Ledger {
    /// Returns the ledger of one run; nothing is written yet.
    pub fn new(journal: &Journal, scope: LedgerScope) -> Ledger {
        let folder = journal.folder.as_ref().map(|folder| folder.join("runs"));
        Ledger { folder, scope, ..Ledger::default() }
    }

    /// Records that this run is about to create files under their final names on the file system `dev`, whose clock
    /// shows `clock`.
    ///
    /// # Errors
    /// There is no location for the record, or it cannot be written. No such file may be created then.
    pub fn note(&self, dev: u64, clock: Time) -> io::Result<()> {
        let mut own = self.own.lock();
        let mut lines = Vec::new();
        let fresh = own.is_none();
        if fresh {
            lines = head(&self.scope)?;
        }
        lines.extend(device(dev, clock, Time::now())?);
        let record = match own.take() {
            Some(record) => own.insert(record),
            None => own.insert(self.create()?),
        };
        // One call, so that a reader sees whole lines.
        let written = record.file.write_all(&lines).and_then(|()| record.live());
        if written.is_err() && fresh {
            drop(fs::remove_file(&record.path));
            *own = None;
        }
        written
    }

    fn create(&self) -> io::Result<Own> {
        let Some(folder) = &self.folder else { return Err(io::ErrorKind::NotFound.into()) };
        let path = folder.join(file_name(&Owner::me(), fastrand::u32(..)));
        let open = || {
            let mut options = OpenOptions::new();
            options.append(true).create_new(true).mode(0o600).open(&path)
        };
        let mut opened = open();
        // Another run that ends may remove the folder just after it was made.
        for _ in 0..8 {
            if !opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                break;
            }
            make_private(folder)?;
            opened = open();
        }
        Ok(Own { file: opened?, path, last_heartbeat: Instant::now(), flushed: false })
    }

    /// Writes a heartbeat if one is due. Cheap; never waits.
    pub fn heartbeat(&self) {
        let Some(mut own) = self.own.try_lock() else { return };
        let Some(own) = own.as_mut().filter(|own| own.last_heartbeat.elapsed() >= HEARTBEAT) else {
            return;
        };
        own.last_heartbeat = Instant::now();
        // On failure the time range of unfinished files ends earlier.
        drop(own.live());
        if !std::mem::replace(&mut own.flushed, true)
            && let (Ok(file), Some(folder)) = (own.file.try_clone(), self.folder.clone())
        {
            let flush = move || {
                drop(file.sync_all());
                drop(File::open(folder).and_then(|folder| folder.sync_all()));
            };
            // If no thread can be started, the record is written back like any file.
            drop(std::thread::Builder::new().name("record".into()).spawn(flush));
        }
    }

    /// Removes the folder of records and the state folder if they are empty.
    fn clear_up(&self) {
        let folders = self.folder.iter().flat_map(|folder| folder.ancestors().take(2));
        // Stops at the first one that is not empty or not ours to remove.
        let _ = folders.map(fs::remove_dir).find(Result::is_err);
    }

    /// Keeps the record after the run: a half-written file could not be removed.
    pub fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    /// Returns whether a target is an unfinished file of another run, to be treated as absent. `name` is the
    /// target's, in `dir`.
    pub fn is_unfinished(
        &self,
        source: &Meta,
        target: &Meta,
        dir: BorrowedFd<'_>,
        name: &CStr,
    ) -> bool {
        if !self.suspects(source, target) {
            return false;
        }
        let others = self.others();
        let Some((_, others)) = &*others else { return false };
        let born = meta::born(dir, name).unwrap_or(None);
        let path = path_of(dir).ok();
        let made = |run: &&EarlierRun| run.made(source, target, born);
        others.iter().filter(made).any(|run| holds(run, dir, path.as_deref()))
    }

    /// As [`Ledger::is_unfinished`], for a target that must be looked up first. The lookup happens only if the result
    /// may be true; a target that is not found is not unfinished.
    pub fn is_unfinished_at<'a>(
        &self,
        source: &Meta,
        target: &Meta,
        find: impl FnOnce() -> io::Result<PathBelow<'a>>,
    ) -> bool {
        self.suspects(source, target)
            && find()
                .is_ok_and(|below| self.is_unfinished(source, target, below.dir(), below.name()))
    }

    /// Returns whether another run may have left the target: it is shorter than its source and was changed while
    /// another run was active.
    fn suspects(&self, source: &Meta, target: &Meta) -> bool {
        let files = source.kind == Kind::File && target.kind == Kind::File;
        if !files || target.size >= source.size {
            return false;
        }
        let others = self.others();
        others.as_ref().is_some_and(|(_, others)| others.iter().any(|run| run.fits(source, target)))
    }

    /// Returns true on the first call: unfinished files are reported once.
    pub fn is_first_report(&self) -> bool {
        !self.reported.swap(true, Ordering::Relaxed)
    }

    fn others(&self) -> MutexGuard<'_, Option<(Instant, Vec<EarlierRun>)>> {
        let mut others = self.others.lock();
        if others.as_ref().is_none_or(|(at, _)| at.elapsed() >= KNOWN) {
            let own = self.own.lock().as_ref().map(|own| own.path.clone());
            *others = Some((Instant::now(), self.list(own.as_deref())));
        }
        others
    }

    /// Returns the records of other runs. Unreadable ones are skipped: the rules for targets without a record apply
    /// then.
    fn list(&self, own: Option<&Path>) -> Vec<EarlierRun> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let Ok(paths) = paths_in(folder, usize::MAX) else { return Vec::new() };
        let others = paths.into_iter().filter(|path| Some(path.as_path()) != own);
        others.filter_map(|path| EarlierRun::read(path, &Owner::me())).collect()
    }

    /// Ends the run. `whole`: all its work is done, so that files left unfinished by an earlier run of the same kind
    /// are finished now, too.
    pub fn end(&self, whole: bool) {
        let own = self.own.lock().take();
        let known = self.others.lock().take().is_some_and(|(_, others)| !others.is_empty());
        if own.is_none() && !known && !whole {
            return;
        }
        match &own {
            Some(own) if self.kept.load(Ordering::Relaxed) => drop(own.live()),
            // A record that stays never marks an unfinished file as finished.
            Some(own) => {
                drop(fs::remove_file(&own.path));
                self.clear_up();
            }
            None => {}
        }
        let mut left = self.list(own.as_ref().map(|own| own.path.as_path()));
        left.retain(|run| run.life != Life::Alive);
        let now_s = Time::now().s;
        left.sort_by_key(|run| std::cmp::Reverse(run.heartbeat.s));
        for (number, run) in left.iter().enumerate() {
            if number >= RECORDS_MAX
                || run.is_old(now_s)
                || run.is_gone()
                || (whole && run.is_finished_by(&self.scope))
            {
                drop(fs::remove_file(&run.path));
            }
        }
    }
}

impl Own {
    /// Sets the time of the last heartbeat, by the local clock, even if the record is on a file system with another
    /// clock.
    fn live(&self) -> io::Result<()> {
        meta::set_times_fd(&self.file, None, Time::now())
    }
}

/// Returns whether an open directory is inside one that a run fills, by its path or by its ancestors.
fn holds(run: &EarlierRun, dir: BorrowedFd<'_>, path: Option<&Path>) -> bool {
    let shown = path.map(|path| text(path.as_os_str().as_bytes()));
    let Some(LedgerHeader { targets, .. }) = &run.stored else { return false };
    let below = |shown: &str| targets.iter().any(|target| target.has(shown));
    shown.is_some_and(|shown| below(&shown)) || {
        let tops: Vec<_> = targets.iter().map(|target| (target.dev, target.ino)).collect();
        // Device numbers are reassigned at each boot.
        run.life != Life::Rebooted && has_ancestor(dir, &tops)
    }
}

/// Returns whether `dir` or one of its ancestors is among some directories.
fn has_ancestor(dir: BorrowedFd<'_>, tops: &[(u64, u64)]) -> bool {
    const DEPTH_MAX: usize = 4096;
    let Ok(mut at) = dir::open(dir, c".", false) else { return false };
    let mut below = None;
    for _ in 0..DEPTH_MAX {
        let Ok(identity) = meta::of_fd(&at).map(|meta| meta.identity()) else { return false };
        if tops.contains(&identity) {
            return true;
        }
        // The root is its own parent.
        if below.replace(identity) == Some(identity) {
            return false;
        }
        let Ok(above) = dir::open(at.as_fd(), c"..", false) else { return false };
        at = above;
    }
    false
}

// Records as stored on disk, and their evaluation for a file; pure except for reading.
//
// A record is JSON lines: first the scope of the run, then one line for each file system on which it creates files
// under their final names. The run never acted on a truncated line.

/// Incremented when a field changes its meaning: a record of another schema is not read.
const SCHEMA: u32 = 1;
/// Maximum size of a record, in bytes; a larger one is not ours.
const BYTES_MAX: u64 = 1 << 20;
/// Maximum number of records of unfinished runs; the newest are kept.
pub(super) const RECORDS_MAX: usize = 64;
/// Age, in seconds, after which records are removed: 90 days.
const AGE_S_MAX: i64 = 90 * 24 * 3600;
/// Seconds from the last heartbeat to the end of a run: heartbeats come every second, and file systems may round
/// times to 2 s.
const SLACK_S: i64 = 4;
/// The same after a reboot: a power loss may lose the last heartbeats.
const LOST_S: i64 = 120;

/// The first line of a record.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LedgerHeader {
    schema: u32,
    pub targets: Vec<StoredTarget>,
    sources: Vec<String>,
    recurse: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredTarget {
    path: String,
    pub dev: u64,
    pub ino: u64,
}

/// A further line: two clocks at the same moment.
#[derive(Debug, Serialize, Deserialize)]
struct Device {
    dev: u64,
    /// The file system's clock.
    clock_s: i64,
    clock_ns: u32,
    /// This machine's clock.
    local_s: i64,
}

/// The record of another run.
#[derive(Debug)]
pub(super) struct EarlierRun {
    pub path: PathBuf,
    pub life: Life,
    /// The last heartbeat, by the clock of the machine of the run.
    pub heartbeat: Time,
    /// `None`: it cannot be read.
    pub stored: Option<LedgerHeader>,
    devices: Vec<Device>,
}

/// The time range in which a run created files, by the clock of their file system; both ends included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub from: Time,
    /// `None`: the run is active.
    pub to_s: Option<i64>,
}

impl Window {
    /// Returns whether a time is not before the range. Some times have no fractions where others have.
    fn has_begun(&self, time: Time) -> bool {
        time >= self.from || (time.ns == 0 && time.s >= self.from.s)
    }

    fn has(&self, time: Time) -> bool {
        self.has_begun(time) && self.to_s.is_none_or(|to_s| time.s <= to_s)
    }

    /// Returns whether a run may have left a target: it was changed in the time range and is shorter than the source.
    /// A finished file has the time of its source, but after a power loss a file with that time can still be shorter.
    fn fits(&self, source: &Meta, target: &Meta) -> bool {
        target.size < source.size
            && self.has_begun(target.ctime)
            && (self.has(target.mtime) || target.mtime == source.mtime)
    }

    /// Returns whether the run created it, if its birth time is known.
    fn made(&self, born: Option<Time>) -> bool {
        born.is_none_or(|born| self.has(born))
    }
}

/// Returns `run-HOST-BOOT-PID-START-NUMBER.json`.
pub(super) fn file_name(owner: &Owner, number: u32) -> String {
    let Owner { host, boot, pid, start } = owner;
    format!("run-{host:08x}-{boot:08x}-{pid:08x}-{start:012x}-{number:08x}.json")
}

fn owner(name: &[u8]) -> Option<Owner> {
    Owner::of_name(name.strip_prefix(b"run-")?.strip_suffix(b".json")?, 8)
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::other)?;
    line.push(b'\n');
    Ok(line)
}

/// Returns the first line of a record.
pub(super) fn head(scope: &LedgerScope) -> io::Result<Vec<u8>> {
    let target = |target: &LedgerTarget| StoredTarget {
        path: text(target.path.as_os_str().as_bytes()),
        dev: target.identity.0,
        ino: target.identity.1,
    };
    line(&LedgerHeader {
        schema: SCHEMA,
        targets: scope.targets.iter().map(target).collect(),
        sources: scope.sources.iter().map(|source| text(source)).collect(),
        recurse: scope.recurse,
    })
}

/// Returns a further line.
pub(super) fn device(dev: u64, clock: Time, local: Time) -> io::Result<Vec<u8>> {
    line(&Device { dev, clock_s: clock.s, clock_ns: clock.ns, local_s: local.s })
}

impl StoredTarget {
    /// Returns whether a path is this one or below it.
    pub fn has(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.path.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn is_gone(&self) -> bool {
        // The original path cannot be recovered.
        if self.path.contains('%') {
            return false;
        }
        let path = Path::new(&self.path);
        let absent = |path: &Path| {
            path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        // The nearest existing ancestor must be on the volume that the target was on.
        let above = path.ancestors().skip(1).find(|path| !absent(path));
        absent(path)
            && above
                .and_then(|path| path.metadata().ok())
                .is_some_and(|there| there.dev() == self.dev)
    }
}

impl EarlierRun {
    /// Reads a record; `None` if it is not a record or cannot be opened.
    pub fn read(path: PathBuf, me: &Owner) -> Option<EarlierRun> {
        let owner = owner(path.file_name()?.as_bytes())?;
        let mut bytes = Vec::new();
        let file = File::open(&path).ok()?;
        let found = file.metadata().ok()?;
        file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let heartbeat =
            Time { s: found.mtime(), ns: u32::try_from(found.mtime_nsec()).unwrap_or(0) };
        let (stored, devices) = parse(&bytes);
        Some(EarlierRun { path, life: me.judge(&owner), heartbeat, stored, devices })
    }

    /// Returns the time ranges in which the run created files on a file system; those of all file systems if its
    /// device is not known (any more).
    fn windows(&self, dev: u64) -> impl Iterator<Item = Window> {
        let known = self.life != Life::Rebooted && self.devices.iter().any(|line| line.dev == dev);
        let lines = self.devices.iter().filter(move |line| !known || line.dev == dev);
        lines.map(|line| {
            let to_local_s = match self.life {
                Life::Alive => None,
                Life::Dead | Life::Elsewhere => Some(self.heartbeat.s + SLACK_S),
                Life::Rebooted => {
                    Some((self.heartbeat.s + LOST_S).min(hakobu_sys::host::booted_s() + SLACK_S))
                }
            };
            let to_s = to_local_s.map(|to_s| line.clock_s + (to_s - line.local_s));
            Window { from: Time { s: line.clock_s, ns: line.clock_ns }, to_s }
        })
    }

    /// See [`Window::fits`].
    pub fn fits(&self, source: &Meta, target: &Meta) -> bool {
        self.windows(target.dev).any(|window| window.fits(source, target))
    }

    /// Returns whether the run can have created the target: it fits, and its birth time is in the range.
    pub fn made(&self, source: &Meta, target: &Meta, born: Option<Time>) -> bool {
        self.windows(target.dev).any(|window| window.fits(source, target) && window.made(born))
    }

    /// Returns whether the record is no longer needed.
    pub fn is_old(&self, now_s: i64) -> bool {
        now_s - self.heartbeat.s > AGE_S_MAX
    }

    /// Returns whether its targets were removed. A path on an unmounted volume does not count as removed.
    pub fn is_gone(&self) -> bool {
        let Some(stored) = self.stored.as_ref().filter(|_| self.life == Life::Dead) else {
            return false;
        };
        !stored.targets.is_empty() && stored.targets.iter().all(StoredTarget::is_gone)
    }

    /// Returns whether a complete run over `scope` left nothing unfinished of this one.
    pub fn is_finished_by(&self, scope: &LedgerScope) -> bool {
        let Some(stored) = &self.stored else { return false };
        let ended = matches!(self.life, Life::Dead | Life::Rebooted);
        let same_target = |target: &StoredTarget| {
            scope.targets.iter().any(|own| text(own.path.as_os_str().as_bytes()) == target.path)
        };
        let same_source = |source: &String| scope.sources.iter().any(|own| text(own) == *source);
        ended
            && !scope.partial
            && (scope.recurse || !stored.recurse)
            && stored.targets.iter().all(same_target)
            && stored.sources.iter().all(same_source)
    }
}

/// Parses the valid whole lines of a record.
fn parse(bytes: &[u8]) -> (Option<LedgerHeader>, Vec<Device>) {
    let mut lines =
        bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let stored = lines.next().and_then(|line| serde_json::from_slice::<LedgerHeader>(line).ok());
    let Some(stored) = stored.filter(|stored| stored.schema == SCHEMA) else {
        return (None, Vec::new());
    };
    (Some(stored), lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

// The scope of a run: its targets and sources.

/// A directory that a run fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerTarget {
    /// Its absolute path, without symlinks.
    pub path: PathBuf,
    /// Its device and inode.
    pub identity: (u64, u64),
}

impl LedgerTarget {
    /// Returns the target of an open directory.
    ///
    /// # Errors
    /// The error of examining it.
    pub fn of(dir: BorrowedFd<'_>) -> io::Result<LedgerTarget> {
        Ok(LedgerTarget { path: path_of(dir)?, identity: meta::of_fd(dir)?.identity() })
    }
}

/// Scope of a run.
#[derive(Clone, Debug, Default)]
pub struct LedgerScope {
    /// The directories that it fills.
    pub targets: Vec<LedgerTarget>,
    /// Sources of its entries, absolute.
    pub sources: Vec<Vec<u8>>,
    /// It descends into directories.
    pub recurse: bool,
    /// It skips entries by rules, lists or sizes.
    pub partial: bool,
}

/// Returns the path of an open directory, without symlinks.
///
/// # Errors
/// The error of examining it.
pub(super) fn path_of(dir: BorrowedFd<'_>) -> io::Result<PathBuf> {
    fs::read_link(OsStr::from_bytes(file::proc_path(dir).to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    /// A state folder and a target, removed at the end.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let top =
                std::env::temp_dir().join(format!("hakobu-ledger-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&top);
            fs::create_dir_all(top.join("target/below")).unwrap();
            Place(top.canonicalize().unwrap())
        }

        fn journal(&self) -> Journal {
            Journal::at(self.0.join("state"))
        }

        fn dir(&self, path: &str) -> hakobu_sys::OwnedFd {
            dir::open_root(
                &CString::new(self.0.join(path).into_os_string().into_encoded_bytes()).unwrap(),
            )
            .unwrap()
        }

        fn scope(&self) -> LedgerScope {
            let targets = vec![LedgerTarget::of(self.dir("target").as_fd()).unwrap()];
            LedgerScope { targets, sources: vec![b"/s".to_vec()], recurse: true, partial: false }
        }

        fn ledger(&self) -> Ledger {
            Ledger::new(&self.journal(), self.scope())
        }

        fn records(&self) -> Vec<PathBuf> {
            let names = fs::read_dir(self.0.join("state/runs")).into_iter().flatten();
            names.map(|name| name.unwrap().path()).collect()
        }

        /// Leaves the record of a killed run, and a file that it was writing.
        fn killed(&self) {
            let ledger = self.ledger();
            ledger.note(meta::of_fd(self.dir("target")).unwrap().dev, Time::now()).unwrap();
            fs::write(self.0.join("target/below/half"), "ha").unwrap();
            let dead = Owner { pid: 0x0fff_fff0, ..Owner::me() };
            let [path] = &self.records()[..] else { panic!("one record") };
            fs::rename(path, path.with_file_name(file_name(&dead, 1))).unwrap();
        }

        fn finds(&self, ledger: &Ledger, top: &str, name: &CStr) -> bool {
            let dir = self.dir(top);
            let target = meta::of(dir.as_fd(), name, false).unwrap();
            let source = Meta { size: 100, mtime: Time { s: 1, ns: 0 }, ..target };
            ledger.is_unfinished(&source, &target, dir.as_fd(), name)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_record_lasts_as_long_as_its_run() {
        let place = Place::new("lasts");
        let ledger = place.ledger();
        assert!(place.records().is_empty(), "nothing is written before it is needed");
        ledger.note(1, Time::now()).unwrap();
        ledger.note(2, Time::now()).unwrap();
        assert_eq!(place.records().len(), 1);
        ledger.end(true);
        assert!(place.records().is_empty());
        let ledger = place.ledger();
        ledger.note(1, Time::now()).unwrap();
        ledger.keep();
        ledger.end(true);
        assert_eq!(place.records().len(), 1, "a file stayed half-written");
    }

    #[test]
    fn a_killed_run_is_remembered_until_it_is_made_good() {
        let place = Place::new("killed");
        place.killed();
        fs::write(place.0.join("beside"), "x").unwrap();
        let later = place.ledger();
        assert!(place.finds(&later, "target/below", c"half"));
        assert!(!place.finds(&later, "", c"beside"), "it lies elsewhere");
        later.end(false);
        assert_eq!(place.records().len(), 1);
        let other = LedgerScope { sources: vec![b"/t".to_vec()], ..place.scope() };
        for scope in [
            other,
            LedgerScope { recurse: false, ..place.scope() },
            LedgerScope { partial: true, ..place.scope() },
        ] {
            let ledger = Ledger::new(&place.journal(), scope);
            ledger.note(1, Time::now()).unwrap();
            ledger.end(true);
            assert_eq!(place.records().len(), 1);
        }
        let again = place.ledger();
        again.note(1, Time::now()).unwrap();
        again.end(true);
        assert!(place.records().is_empty());
    }

    #[test]
    fn a_target_that_was_renamed_is_found_by_its_identity() {
        let place = Place::new("renamed");
        place.killed();
        fs::rename(place.0.join("target"), place.0.join("moved")).unwrap();
        let ledger = Ledger::new(&place.journal(), LedgerScope::default());
        assert!(place.finds(&ledger, "moved/below", c"half"));
    }

    #[test]
    fn a_record_goes_with_its_target() {
        let place = Place::new("gone");
        place.killed();
        let ledger = Ledger::new(&place.journal(), LedgerScope::default());
        fs::remove_dir_all(place.0.join("target")).unwrap();
        ledger.note(1, Time::now()).unwrap();
        ledger.end(false);
        assert!(place.records().is_empty());
    }

    #[test]
    fn without_a_place_nothing_is_noted() {
        let place = Place::new("nowhere");
        assert!(Ledger::default().note(1, Time::now()).is_err());
        fs::write(place.0.join("state"), "a file").unwrap();
        assert!(place.ledger().note(1, Time::now()).is_err());
        place.ledger().end(true);
    }
    use hakobu_core::unit::Kind;

    fn file(size: u64, mtime_s: i64, ctime_s: i64) -> Meta {
        let at = |s| Time { s, ns: 0 };
        Meta {
            dev: 7,
            ino: 8,
            atime: at(0),
            ctime: at(ctime_s),
            ..Meta::bare(Kind::File, size, at(mtime_s))
        }
    }

    /// A run on a file system whose clock is an hour ahead: begun at 5000 of the local clock, last heartbeat at 5100.
    fn past(life: Life) -> EarlierRun {
        let scope =
            LedgerScope { sources: vec![b"/s".to_vec()], recurse: true, ..LedgerScope::default() };
        let lines = [
            head(&scope).unwrap(),
            device(7, Time { s: 8600, ns: 1 }, Time { s: 5000, ns: 0 }).unwrap(),
        ];
        let (stored, devices) = parse(&lines.concat());
        EarlierRun {
            path: PathBuf::new(),
            life,
            heartbeat: Time { s: 5100, ns: 0 },
            stored,
            devices,
        }
    }

    #[test]
    fn half_written_files_are_told_by_size_times_and_birth() {
        let source = file(100, 1000, 1000);
        let born = |s| Some(Time { s, ns: 0 });
        for (target, birth, dead, alive, what) in [
            (file(50, 8650, 8650), born(8650), true, true, "written when the run was at it"),
            (file(50, 8650, 8650), None, true, true, "the same without a birth"),
            (
                file(0, 8600, 8600),
                born(8600),
                true,
                true,
                "at the very beginning, in whole seconds",
            ),
            (
                file(50, 8650, 8650),
                Some(Time { s: 8600, ns: 2 }),
                true,
                true,
                "born right after it",
            ),
            (
                file(50, 8650, 8650),
                Some(Time { s: 8600, ns: 1 }),
                true,
                true,
                "born in the same tick",
            ),
            (file(50, 8704, 8704), born(8704), true, true, "just before the end"),
            (file(50, 8720, 8720), born(8720), false, true, "after the end"),
            (file(50, 8720, 8720), born(8650), false, true, "finished, then cut by its user"),
            (file(50, 8650, 8650), born(8000), false, false, "changed meanwhile, but older"),
            (
                file(50, 8650, 8650),
                Some(Time { s: 8599, ns: 999 }),
                false,
                false,
                "born just before",
            ),
            (file(50, 8500, 8500), born(8500), false, false, "older than the run"),
            (file(100, 8650, 8650), born(8650), false, false, "not shorter"),
            (
                file(50, 900, 8650),
                born(8650),
                false,
                false,
                "whole copy of a source that grew since",
            ),
            (file(50, 1000, 8650), born(8650), true, true, "cut by a power loss"),
        ] {
            for (life, expected) in
                [(Life::Dead, dead), (Life::Elsewhere, dead), (Life::Alive, alive)]
            {
                assert_eq!(past(life).made(&source, &target, birth), expected, "{what}, {life:?}");
            }
        }
    }

    #[test]
    fn a_reboot_widens_the_time_by_what_a_power_loss_takes() {
        let source = file(100, 1000, 1000);
        let made = |s| past(Life::Rebooted).made(&source, &file(50, s, s), None);
        assert!(made(8700 + LOST_S) && !made(8700 + LOST_S + 1));
        // Device numbers changed: those of the record have no meaning.
        let moved = Meta { dev: 99, ..file(50, 8650, 8650) };
        assert!(past(Life::Rebooted).made(&source, &moved, None));
    }

    #[test]
    fn lines_that_are_cut_off_do_not_count() {
        let scope = LedgerScope { sources: vec![b"/s\xff".to_vec()], ..LedgerScope::default() };
        let whole = [head(&scope).unwrap(), device(1, Time::now(), Time::now()).unwrap()].concat();
        for cut in 0..=whole.len() {
            let (stored, devices) = parse(&whole[..cut]);
            let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
            assert_eq!(stored.is_some(), cut > first, "{cut}");
            assert_eq!(devices.len(), usize::from(cut == whole.len()), "{cut}");
        }
        assert!(parse(b"{\"schema\":2}\n").0.is_none());
    }

    #[test]
    fn paths_are_compared_by_components() {
        let target = |path: &str| StoredTarget { path: path.into(), dev: 0, ino: 0 };
        for (top, path, inside) in [
            ("/a/b", "/a/b", true),
            ("/a/b", "/a/b/c", true),
            ("/a/b", "/a/bc", false),
            ("/a/b", "/a", false),
            ("/", "/a", true),
        ] {
            assert_eq!(target(top).has(path), inside, "{top} {path}");
        }
    }

    #[test]
    fn names_of_records_come_back() {
        let me = Owner { host: 1, boot: 2, pid: 3, start: 4 };
        let name = file_name(&me, 5);
        assert_eq!(owner(name.as_bytes()), Some(me));
        assert_eq!(owner(b"run-1-2-3-4-5.json"), None);
        assert_eq!(owner(b"seeds.json"), None);
    }
}
