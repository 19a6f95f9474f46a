//! Records of work that is expensive to repeat: unfinished uploads and downloads in parts. One small file each in a
//! state folder, written when the work begins, kept up to date, and removed after the last part; never trusted
//! without a check against both ends.
//!
//! A record is JSON with a schema version, named by a hash of source and target. Only the user can read it. A run
//! locks its record, so that two runs never continue the same upload.

mod job_hints;
mod ledger;
mod owner;
mod record;

pub use job_hints::{Damaged, JobHints, Key};
pub use ledger::{Ledger, Scope, Target};
pub use owner::{Life, Owner, digits};
pub use record::{Checked, Identity, Part, Place, Record, Source, bytes, text};

use hakobu_sys::dir::paths_in;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Locks of one record that are taken and found to be removed, at most: each is that of another process which has
/// just finished.
const LOOKS_MAX: u32 = 3;
/// Maximum size of a record, in bytes: 10,000 parts take about 1.5 MB, so a larger file is not ours.
const RECORD_BYTES_MAX: u64 = 16 << 20;

/// The journal of one user on this machine.
#[derive(Clone, Debug)]
pub struct Journal {
    /// `None`: this user has no location for it.
    folder: Option<PathBuf>,
}

/// The right to work on one record, exclusive until this is dropped.
#[derive(Debug)]
pub struct Claim {
    folder: PathBuf,
    identity: Identity,
    /// Locked as long as it is open.
    _lock: File,
}

impl Journal {
    /// Returns the journal in `$XDG_STATE_HOME/hakobu` (else `~/.local/state/hakobu`; XDG Base Directory
    /// Specification); nothing is created until it is used.
    pub fn of_user() -> Journal {
        let absolute = |name: &str| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let state = absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        Journal { folder: state.map(|state| state.join("hakobu")) }
    }

    /// Returns a journal in a given folder, for tests.
    pub fn at(folder: PathBuf) -> Journal {
        Journal { folder: Some(folder) }
    }

    /// Claims the record of one object, whether it exists or not. Returns `None` if another process works on it.
    ///
    /// # Errors
    /// The folder or the lock cannot be made; NotFound if the user has no home.
    pub fn claim(&self, identity: &Identity) -> io::Result<Option<Claim>> {
        let folder = self.folder.as_ref().ok_or_else(no_home)?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join(identity.file_name("lock"));
        for _ in 0..LOOKS_MAX {
            let lock = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)?;
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The former holder may have removed it between our two calls.
            if is_at(&lock, &path)? {
                let identity = identity.clone();
                return Ok(Some(Claim { folder: folder.clone(), identity, _lock: lock }));
            }
        }
        // Others take it in turn.
        Ok(None)
    }

    /// Returns all readable records, in no order; others are skipped.
    ///
    /// # Errors
    /// The folder cannot be read; a missing one is empty.
    pub fn list(&self) -> io::Result<Vec<(Identity, Record)>> {
        let is_record = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        Ok(self.paths()?.into_iter().filter(is_record).filter_map(|path| read(&path)).collect())
    }

    /// Returns the paths of all files; none if there is no folder.
    fn paths(&self) -> io::Result<Vec<PathBuf>> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        Ok(unless_gone(paths_in(folder, usize::MAX))?.unwrap_or_default())
    }

    /// Removes the records for which `is_over` returns true, and locks without a record. Records in use by another
    /// process stay.
    ///
    /// # Errors
    /// The folder cannot be read, or something in it neither locked nor removed; a missing folder is empty.
    pub fn tidy(&self, mut is_over: impl FnMut(&Identity, &Record) -> bool) -> io::Result<()> {
        for (identity, _) in self.list()? {
            let Some(claim) = self.claim(&identity)? else { continue };
            // Read under the lock: it may be another record by now.
            if claim.load().is_some_and(|record| is_over(&identity, &record)) {
                claim.remove()?;
            }
        }
        for path in self.paths()? {
            if is_lock(&path) && !path.with_extension("json").exists() {
                remove_free(&path)?;
            }
        }
        Ok(())
    }
}

impl Claim {
    /// Reads the record of an earlier run. Returns `None` if there is none, or if it is damaged or of another schema.
    pub fn load(&self) -> Option<Record> {
        let (identity, record) = read(&self.folder.join(self.identity.file_name("json")))?;
        (identity == self.identity).then_some(record)
    }

    /// Writes the record atomically: a reader sees the old or the new one.
    ///
    /// # Errors
    /// Errors of writing and renaming.
    pub fn save(&self, record: &Record) -> io::Result<()> {
        let text = record::encode(&self.identity, record).map_err(io::Error::other)?;
        // Only the lock holder writes, so a fixed name suffices.
        let temporary = self.folder.join(self.identity.file_name("new"));
        replace(&temporary, &self.folder.join(self.identity.file_name("json")), &text)
    }

    /// Removes the record of finished or abandoned work, and releases the claim.
    ///
    /// # Errors
    /// The error of unlinking; a missing record is not an error.
    pub fn remove(self) -> io::Result<()> {
        let gone = |end: &str| {
            unless_gone(fs::remove_file(self.folder.join(self.identity.file_name(end)))).map(drop)
        };
        gone("json")?;
        // A run killed while writing a record leaves its temporary file.
        gone("new")?;
        // Last, while it is still locked: a process that opens it now sees that it is gone.
        gone("lock")
    }
}

/// Replaces a file atomically through a temporary name: a reader sees the old or the new one.
///
/// # Errors
/// Errors of writing, closing and renaming; the old file is unchanged then.
fn replace(temporary: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(temporary)?;
    file.write_all(text)?;
    hakobu_sys::close::close(file)?;
    fs::rename(temporary, path)
}

fn no_home() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "neither XDG_STATE_HOME nor HOME says where to")
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    let there = unless_gone(fs::symlink_metadata(path))?;
    Ok(there.is_some_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())))
}

/// Returns the result of a call on a file that may be missing, `None` if it is.
fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Returns whether a file has the name of a record's lock: the folder also holds locks of other kinds.
fn is_lock(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_hash = stem.len() == 32 && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash && path.extension().is_some_and(|end| end == "lock")
}

/// Removes a lock without a holder, and its record's temporary file.
fn remove_free(path: &Path) -> io::Result<()> {
    let opened = unless_gone(OpenOptions::new().write(true).open(path))?;
    let Some(lock) = opened else { return Ok(()) };
    // A record that appeared meanwhile belongs to a run that holds or held the lock.
    let is_free = lock.try_lock().is_ok() && is_at(&lock, path)?;
    if is_free && !path.with_extension("json").exists() {
        unless_gone(fs::remove_file(path.with_extension("new")))?;
        unless_gone(fs::remove_file(path))?;
    }
    Ok(())
}

fn read(path: &Path) -> Option<(Identity, Record)> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(RECORD_BYTES_MAX).read_to_end(&mut text).ok()?;
    record::decode(&text)
}

#[cfg(test)]
mod tests;
