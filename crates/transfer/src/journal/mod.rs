//! What is remembered of work that is expensive to redo: unfinished uploads and downloads in
//! parts. One small file each in a state folder, written when the work begins, kept up to date,
//! and removed after the last part; never trusted without checking it against both ends.
//!
//! A record is JSON with a schema version, named by a hash of what is moved where. Nobody but the
//! user can read it. Whoever works on a record holds a lock, so that two runs never go on with the
//! same upload.

mod record;
mod seeds;

pub use record::{Checked, Identity, Part, Place, Record, Source, text};
pub use seeds::{Damaged, Key, Seed, Seeds};

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A record larger than this was not written by us: 10,000 parts are about 1.5 MB.
const RECORD_BYTES_MAX: u64 = 16 << 20;

/// The journal of one user on this machine.
#[derive(Clone, Debug)]
pub struct Journal {
    /// `None`: this user has no place for it.
    folder: Option<PathBuf>,
}

/// The right to work on one record: nobody else has it until this is dropped.
#[derive(Debug)]
pub struct Claim {
    folder: PathBuf,
    identity: Identity,
    /// Locked as long as it is open.
    _lock: File,
}

impl Journal {
    /// In `$XDG_STATE_HOME/hakobu` (else `~/.local/state/hakobu`; XDG Base Directory
    /// Specification); nothing is made until it is used.
    pub fn of_user() -> Journal {
        let absolute = |name: &str| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let state = absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        Journal { folder: state.map(|state| state.join("hakobu")) }
    }

    /// In a folder of its own, for tests.
    pub fn at(folder: PathBuf) -> Journal {
        Journal { folder: Some(folder) }
    }

    /// Claims the record of one object, there or not. `None` where another process works on it.
    ///
    /// # Errors
    /// The folder or the lock cannot be made; NotFound where the user has no home.
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
            // Whoever had it before may have removed it between our two calls.
            if is_at(&lock, &path)? {
                let identity = identity.clone();
                return Ok(Some(Claim { folder: folder.clone(), identity, _lock: lock }));
            }
        }
    }

    /// All records that can be read, in no order; those that cannot are left out.
    ///
    /// # Errors
    /// The folder cannot be read; one that is not there is empty.
    pub fn list(&self) -> io::Result<Vec<(Identity, Record)>> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let names = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut records = Vec::new();
        for name in names {
            let path = name?.path();
            if path.extension().is_some_and(|end| end == "json") {
                records.extend(read(&path));
            }
        }
        Ok(records)
    }
}

impl Claim {
    /// What an earlier run left. `None` where there is nothing, where it is of another schema, or
    /// broken.
    pub fn load(&self) -> Option<Record> {
        let (identity, record) = read(&self.folder.join(self.identity.file_name("json")))?;
        (identity == self.identity).then_some(record)
    }

    /// Writes the record, in one step: a reader sees the old or the new one.
    ///
    /// # Errors
    /// What writing and renaming say.
    pub fn save(&self, record: &Record) -> io::Result<()> {
        let text = record::encode(&self.identity, record).map_err(io::Error::other)?;
        // Only the holder of the lock writes: the name needs no further distinction.
        let temporary = self.folder.join(self.identity.file_name("new"));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(&text)?;
        fs::rename(&temporary, self.folder.join(self.identity.file_name("json")))
    }

    /// The work is done or given up: forgets it, and lets go of the claim.
    ///
    /// # Errors
    /// What unlinking says; a record that is not there is no error.
    pub fn remove(self) -> io::Result<()> {
        let gone = |end: &str| match fs::remove_file(self.folder.join(self.identity.file_name(end)))
        {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        gone("json")?;
        // Last, while it is still locked: who opens it now sees that it is no longer there.
        gone("lock")
    }
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
