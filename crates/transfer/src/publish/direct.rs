//! The rule for new files that are created under their final names at once.
//!
//! If the run is killed, such a file is shorter than its source and has the time of its last write, by the clock of
//! its file system. It can be told from a finished one unless its source has that time: so the source has to be older
//! than the run, by the clock of the target's file system. No other clock is used. A run that compares only names or
//! "newer" consults the record of this run (`journal::Ledger`); without a record no file gets its final name early.

use super::draft::lacks_unnamed;
use super::temp_name::TempNames;
use crate::journal::Ledger;
use crate::policy::Policy;
use hakobu_core::unit::Time;
use hakobu_sys::{BorrowedFd, OwnedFd, dir, file, meta};
use parking_lot::Mutex;
use std::ffi::CString;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Maximum size, in bytes, of files that may be created under their final name.
const DIRECT_BYTES_MAX: u64 = 64 << 20;

/// Time of unfinished files: older than any source, so that no later run takes them for newer or equal.
pub(crate) const UNFINISHED: Time = Time { s: 0, ns: 0 };

/// Seconds; covers file systems that keep times to 2 s (FAT).
const COARSE_S: i64 = 2;

/// The rule, and its results for the target's file systems.
pub(crate) struct Direct {
    allowed: bool,
    slack_s: i64,
    /// The record of this run.
    pub ledger: Arc<Ledger>,
    first: OnceLock<Device>,
    others: Mutex<Vec<Device>>,
}

/// A file system, and the time (in seconds since 1970, by its clock) before which a source must have changed last;
/// `None` if no file gets its final name early.
type Device = (u64, Option<i64>);

impl Direct {
    /// `allowed`: nothing else forbids it.
    pub fn new(policy: &Policy, allowed: bool, ledger: &Arc<Ledger>) -> Direct {
        Direct {
            allowed: allowed && allows_direct(policy),
            slack_s: COARSE_S + policy.modify_window_s.unwrap_or(0).max(0),
            ledger: Arc::clone(ledger),
            first: OnceLock::new(),
            others: Mutex::default(),
        }
    }

    /// Returns whether the policy allows it at all.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Returns whether a new file of `size` bytes, whose source has the time `mtime`, may get its name at once in
    /// `dir` on the file system `dev`. The first call for each file system costs a few system calls and writes the
    /// record.
    pub fn allows(
        &self,
        size: u64,
        mtime: Time,
        (dir, dev): (BorrowedFd<'_>, u64),
        names: &TempNames,
    ) -> bool {
        self.allowed
            && size <= DIRECT_BYTES_MAX
            && self.before_s(dir, dev, names).is_some_and(|before_s| mtime.s < before_s)
    }

    fn before_s(&self, dir: BorrowedFd<'_>, dev: u64, names: &TempNames) -> Option<i64> {
        let (first, before_s) = *self.first.get_or_init(|| (dev, self.begin(dir, dev, names)));
        if first == dev {
            return before_s;
        }
        let mut others = self.others.lock();
        if let Some((_, before_s)) = others.iter().find(|(other, _)| *other == dev) {
            return *before_s;
        }
        let before_s = self.begin(dir, dev, names);
        others.push((dev, before_s));
        before_s
    }

    /// Reads the clock of a file system and writes it into the record.
    fn begin(&self, dir: BorrowedFd<'_>, dev: u64, names: &TempNames) -> Option<i64> {
        // Without either, files are created without their final name.
        let now = Scratch::new(dir, names).and_then(|scratch| scratch.mtime()).ok()?;
        self.ledger.note(dev, now).ok()?;
        Some(now.s - self.slack_s)
    }
}

/// An empty file for probing a file system; it has no name if possible, and is removed on drop.
pub(crate) struct Scratch<'a> {
    fd: OwnedFd,
    named: Option<(BorrowedFd<'a>, CString)>,
}

impl<'a> Scratch<'a> {
    /// Creates one in `dir`.
    pub fn new(dir: BorrowedFd<'a>, names: &TempNames) -> io::Result<Scratch<'a>> {
        match file::create_unnamed(dir, 0o600) {
            Err(error) if lacks_unnamed(&error) => {
                let name = names.make();
                let fd = file::create_new(dir, &name, 0o600)?;
                Ok(Scratch { fd, named: Some((dir, name)) })
            }
            made => Ok(Scratch { fd: made?, named: None }),
        }
    }

    /// Returns its mtime: its creation by the clock of its file system.
    pub fn mtime(&self) -> io::Result<Time> {
        Ok(meta::of_fd(&self.fd)?.mtime)
    }

    /// Sets its mtime and returns the stored value.
    pub fn keep(&self, mtime: Time) -> io::Result<Time> {
        let dev = meta::of_fd(&self.fd)?.dev;
        meta::stamp_fd(dev, &self.fd, None, mtime)?;
        self.mtime()
    }

    /// Returns whether it changed the time of its directory.
    pub fn is_named(&self) -> bool {
        self.named.is_some()
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if let Some((dir, name)) = &self.named {
            // At worst an empty temporary file stays, which the next run removes.
            drop(dir::unlink(*dir, name));
        }
    }
}

/// Returns whether the policy allows creating files under their final name: the same run,
/// repeated, has to compare sizes and times.
fn allows_direct(policy: &Policy) -> bool {
    !policy.update
        && !policy.existing
        && !policy.ignore_existing
        && !policy.size_only
        && !policy.fsync
        && !policy.partial
        && !policy.delay_updates
        && policy.temp_dir.is_none()
}

/// Returns the warning about half-written files that are treated as absent; given once.
pub(crate) fn unfinished(target: &Path) -> String {
    let target = hakobu_core::error::quoted(target);
    format!(
        "{target} is unfinished: the run that was writing it was killed or is still at work; it is \
         replaced, and so are others like it"
    )
}
