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

mod past;
mod scope;

use super::{Journal, Life, Owner, text};
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_sys::below::Below;
use hakobu_sys::dir::paths_in;
use hakobu_sys::{AsFd, BorrowedFd, dir, meta};
use parking_lot::{Mutex, MutexGuard};
use past::{Past, Stored};
use scope::path_of;
pub use scope::{Scope, Target};
use std::ffi::CStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
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
    scope: Scope,
    own: Mutex<Option<Own>>,
    others: Mutex<Option<(Instant, Vec<Past>)>>,
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
    pub fn new(journal: &Journal, scope: Scope) -> Ledger {
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
            lines = past::head(&self.scope)?;
        }
        lines.extend(past::device(dev, clock, Time::now())?);
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
        let path = folder.join(past::file_name(&Owner::me(), fastrand::u32(..)));
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
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
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
        let made = |run: &&Past| run.made(source, target, born);
        others.iter().filter(made).any(|run| holds(run, dir, path.as_deref()))
    }

    /// As [`Ledger::is_unfinished`], for a target that must be looked up first. The lookup happens only if the result
    /// may be true; a target that is not found is not unfinished.
    pub fn is_unfinished_at<'a>(
        &self,
        source: &Meta,
        target: &Meta,
        find: impl FnOnce() -> io::Result<Below<'a>>,
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

    fn others(&self) -> MutexGuard<'_, Option<(Instant, Vec<Past>)>> {
        let mut others = self.others.lock();
        if others.as_ref().is_none_or(|(at, _)| at.elapsed() >= KNOWN) {
            let own = self.own.lock().as_ref().map(|own| own.path.clone());
            *others = Some((Instant::now(), self.list(own.as_deref())));
        }
        others
    }

    /// Returns the records of other runs. Unreadable ones are skipped: the rules for targets without a record apply
    /// then.
    fn list(&self, own: Option<&Path>) -> Vec<Past> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let Ok(paths) = paths_in(folder, usize::MAX) else { return Vec::new() };
        let others = paths.into_iter().filter(|path| Some(path.as_path()) != own);
        others.filter_map(|path| Past::read(path, &Owner::me())).collect()
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
            if number >= past::RECORDS_MAX
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
fn holds(run: &Past, dir: BorrowedFd<'_>, path: Option<&Path>) -> bool {
    let shown = path.map(|path| text(path.as_os_str().as_bytes()));
    let Some(Stored { targets, .. }) = &run.stored else { return false };
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

#[cfg(test)]
mod tests;
