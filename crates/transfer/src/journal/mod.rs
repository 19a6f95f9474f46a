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
mod tidy;

pub use job_hints::{Damaged, JobHint, JobHints, Key};
pub use ledger::{Ledger, Scope, Target};
pub use owner::{Life, Owner, digits};
pub use record::{Checked, Identity, Part, Place, Record, Source, bytes, text};

use hakobu_sys::dir::paths_in;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

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
        loop {
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
    }

    /// Returns all readable records, in no order; others are skipped.
    ///
    /// # Errors
    /// The folder cannot be read; a missing one is empty.
    pub fn list(&self) -> io::Result<Vec<(Identity, Record)>> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let paths = match paths_in(folder, usize::MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut records = Vec::new();
        for path in paths {
            if path.extension().is_some_and(|end| end == "json") {
                records.extend(read(&path));
            }
        }
        Ok(records)
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
        let gone = |end: &str| match fs::remove_file(self.folder.join(self.identity.file_name(end)))
        {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
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
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn read(path: &Path) -> Option<(Identity, Record)> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(RECORD_BYTES_MAX).read_to_end(&mut text).ok()?;
    record::decode(&text)
}

#[cfg(test)]
mod tests;
