//! Removes obsolete files: records of work that ended without removing them, and locks without a record.

use super::{Identity, Journal, Record, is_at};
use hakobu_sys::dir::paths_in;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

impl Journal {
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
        let Some(folder) = &self.folder else { return Ok(()) };
        let paths = match paths_in(folder, usize::MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        for path in paths {
            if is_lock(&path) && !path.with_extension("json").exists() {
                remove_free(&path)?;
            }
        }
        Ok(())
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
    let lock = match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    // A record that appeared meanwhile belongs to a run that holds or held the lock.
    let is_free = lock.try_lock().is_ok() && is_at(&lock, path)?;
    if !is_free || path.with_extension("json").exists() {
        return Ok(());
    }
    for path in [path.with_extension("new"), path.to_owned()] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
