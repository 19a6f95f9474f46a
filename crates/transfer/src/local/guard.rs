//! What a run must not lose to itself, by identity (device, inode) and not by spelling: its sources, and the entries
//! that it has made where two of its names may be one.
//!
//! Names are remembered only where that can happen: those of arguments of `cp` that meet, and entries of directories
//! that ignore case. The latter is learnt once a device (by a lookup of a name in the other case) or a directory (by
//! its flag), and at the latest when a name that was absent cannot be created.

use crate::publish::{DirName, TempNames};
use hakobu_sys::dir::{self, Case, Reader};
use hakobu_sys::{AsFd, BorrowedFd, errno, meta};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::ops::ControlFlow::{Break, Continue};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Device and inode.
pub type FileId = (u64, u64);

/// Reason that a target is not made or replaced.
pub(super) const INSIDE_SOURCE: &str = "its target is inside a source of the same run";

/// How far a target directory is part of a source of the same run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overlap {
    /// It is not.
    #[default]
    No,
    /// It is, but the source is not listed there: existing entries are sources that nothing reads.
    Unlisted,
    /// It is: what is made in it may be listed as a source afterwards.
    Listed,
}

/// Names of one directory that ignores case: the entry that each identity is for this run.
type Claims = HashMap<FileId, Box<CStr>>;

/// Identities of a run; shared by its passes.
#[derive(Default)]
pub struct Guard {
    /// Sources that arguments name.
    sources: Mutex<HashSet<FileId>>,
    has_sources: AtomicBool,
    has_source_files: AtomicBool,
    /// Target directories of the arguments: none is copied into itself.
    targets: Mutex<HashSet<FileId>>,
    /// The target is inside a source.
    target_is_inside: AtomicBool,
    /// The rules hide it there: it is no source itself.
    target_is_hidden: AtomicBool,
    /// Paths in the transfer of files that arguments of an earlier batch have made.
    made_by_arguments: Mutex<HashSet<Vec<u8>>>,
    records_arguments: AtomicBool,
    /// A directory of a source was left out unread: names that the target has may be its names.
    left_unread: AtomicBool,
    devices: Mutex<HashMap<u64, Case>>,
    /// Devices that ignore case in every directory.
    caseless: Mutex<HashSet<u64>>,
    claims: Mutex<HashMap<FileId, Claims>>,
    keeps_claims: AtomicBool,
    /// Held while an entry is replaced in a directory that ignores case.
    replacing: [Mutex<()>; 16],
}

impl Guard {
    /// Protects a source from the run. Not a directory: see `is_file`.
    pub fn add_source(&self, identity: FileId, is_file: bool) {
        self.sources.lock().insert(identity);
        self.has_sources.store(true, Relaxed);
        if is_file {
            self.has_source_files.store(true, Relaxed);
        }
    }

    /// Returns whether an argument names this entry; always `false` in runs that neither remove nor delete.
    pub fn is_source(&self, identity: FileId) -> bool {
        self.has_sources.load(Relaxed) && self.sources.lock().contains(&identity)
    }

    /// Returns whether any source is protected.
    pub fn has_sources(&self) -> bool {
        self.has_sources.load(Relaxed)
    }

    /// Returns whether arguments name files.
    pub fn has_source_files(&self) -> bool {
        self.has_source_files.load(Relaxed)
    }

    pub fn is_any_source(&self, directories: &HashSet<FileId>) -> bool {
        let sources = self.sources.lock();
        directories.iter().any(|identity| sources.contains(identity))
    }

    /// Adds a target directory of an argument.
    pub fn add_target(&self, identity: FileId) {
        self.targets.lock().insert(identity);
    }

    /// Returns whether a directory is the target of an argument.
    pub(super) fn is_target(&self, identity: FileId) -> bool {
        self.targets.lock().contains(&identity)
    }

    /// Records that the target is inside a source.
    pub fn target_is_inside(&self) {
        self.target_is_inside.store(true, Relaxed);
    }

    /// Returns how far the target of the arguments is part of a source.
    pub(super) fn target_overlap(&self) -> Overlap {
        match self.target_is_inside.load(Relaxed) {
            true => Overlap::Unlisted,
            false => Overlap::No,
        }
    }

    /// Returns how far a directory of the target is part of a source; `above` applies to the directory that contains it.
    pub(super) fn overlap(&self, above: Overlap, directory: FileId) -> Overlap {
        if self.is_source(directory) { Overlap::Listed } else { above }
    }

    /// Records that a directory of a source was left out unread, so that nothing is extraneous from now on.
    pub(super) fn leave_unread(&self) {
        self.left_unread.store(true, Relaxed);
    }

    pub(super) fn has_left_unread(&self) -> bool {
        self.left_unread.load(Relaxed)
    }

    /// Records that the rules exclude the target from the sources that it is inside of.
    pub fn hide_target(&self) {
        self.target_is_hidden.store(true, Relaxed);
    }

    /// Returns the reason that an entry must not be made (`exists`: replaced) in a directory, if there is one.
    pub(super) fn refusal(&self, overlap: Overlap, exists: bool) -> Option<&'static str> {
        let refuses = match overlap {
            Overlap::No => false,
            Overlap::Unlisted => exists && !self.target_is_hidden.load(Relaxed),
            Overlap::Listed => true,
        };
        refuses.then_some(INSIDE_SOURCE)
    }

    /// Has the files that arguments make remembered, since a later batch may have the same names.
    pub fn record_arguments(&self) {
        self.records_arguments.store(true, Relaxed);
        self.keeps_claims.store(true, Relaxed);
    }

    /// Keeps what is known about directories that ignore case for a later pass.
    pub fn keep_claims(&self) {
        self.keeps_claims.store(true, Relaxed);
    }

    /// Records that an argument has made a file; `path`: its path in the transfer.
    pub(super) fn argument_made(&self, path: impl FnOnce() -> Vec<u8>) {
        if self.records_arguments.load(Relaxed) {
            self.made_by_arguments.lock().insert(path());
        }
    }

    /// Returns whether an earlier argument has made a file of this path.
    pub(super) fn is_made_by_argument(&self, path: impl FnOnce() -> Vec<u8>) -> bool {
        self.records_arguments.load(Relaxed) && self.made_by_arguments.lock().contains(&path())
    }

    /// Returns whether an existing directory of the device `dev` ignores case. A probe looks up one of its names.
    pub fn ignores_case(&self, fd: BorrowedFd<'_>, dev: u64) -> bool {
        let known = *self.devices.lock().entry(dev).or_insert_with(|| dir::case_of(fd));
        match known {
            Case::Sensitive => false,
            Case::ByDirectory => match dir::is_casefolded(fd) {
                Ok(folded) => folded,
                Err(error) => {
                    if errno::is(&error, errno::ENOTTY) {
                        self.devices.lock().insert(dev, Case::Sensitive);
                    }
                    false
                }
            },
            Case::Unknown if self.caseless.lock().contains(&dev) => true,
            Case::Unknown => match probe(fd) {
                Ok(Some(true)) => {
                    self.learn(dev);
                    true
                }
                Ok(Some(false)) => {
                    self.devices.lock().insert(dev, Case::Sensitive);
                    false
                }
                // It could not be told here; the next directory may tell.
                Ok(None) | Err(_) => false,
            },
        }
    }

    /// Records that a device ignores case.
    pub(super) fn learn(&self, dev: u64) {
        self.caseless.lock().insert(dev);
    }

    /// Claims an existing entry of a directory for a name. Returns `false` if another name of this run has it.
    pub(super) fn claim(&self, dir: FileId, entry: FileId, name: &CStr) -> bool {
        let mut claims = self.claims.lock();
        let claims = claims.entry(dir).or_default();
        match claims.get(&entry) {
            Some(other) => **other == *name,
            None => {
                claims.insert(entry, name.into());
                true
            }
        }
    }

    /// Returns whether a name of this run has claimed the entry.
    pub(super) fn is_claimed(&self, dir: FileId, entry: FileId) -> bool {
        self.claims.lock().get(&dir).is_some_and(|claims| claims.contains_key(&entry))
    }

    /// Forgets the claims of a directory, unless a later pass or batch asks for them.
    pub(super) fn forget(&self, dir: FileId) {
        if !self.keeps_claims.load(Relaxed) {
            self.claims.lock().remove(&dir);
        }
    }

    /// Returns a lock on the entries of a directory.
    pub(super) fn replacing(&self, dir: FileId) -> MutexGuard<'_, ()> {
        self.replacing[(dir.1 % 16) as usize].lock()
    }
}

/// How a directory lists a name that can be looked up in it.
pub(super) enum Listed {
    /// Under exactly this name.
    Exactly,
    /// Under a name that differs, in case for example.
    As(CString),
    /// Not at all, or under a name that cannot be told.
    Not,
}

/// Looks for a name in the listing of its directory; `ino` is the inode number that the lookup gave.
pub(super) fn listed((dir, name): DirName<'_>, ino: u64) -> io::Result<Listed> {
    let fd = dir::open(dir, c".", false)?;
    let mut reader = Reader::default();
    let (mut exact, mut other) = (false, None);
    reader.for_each(fd.as_fd(), |listed, _, number| {
        exact |= *listed == *name;
        if number == ino && other.is_none() {
            other = Some(listed.to_owned());
        }
    })?;
    Ok(match (exact, other) {
        (true, _) => Listed::Exactly,
        (false, Some(other)) => Listed::As(other),
        (false, None) => Listed::Not,
    })
}

/// Returns whether an existing name may be that of another entry, because its directory ignores case.
pub(super) fn may_be_another(place: DirName<'_>) -> bool {
    // It may have been removed again.
    !meta::of(place.0, place.1, false).is_err_and(|error| errno::is_gone(&error))
        && (!matches!(listed(place, 0), Ok(Listed::Exactly))
            || !matches!(is_same_in_other_case(place.0, place.1), Ok(false)))
}

/// Returns all names of a directory.
pub(super) fn names_of(fd: BorrowedFd<'_>) -> io::Result<HashSet<Box<CStr>>> {
    let fd = dir::open(fd, c".", false)?;
    let mut names = HashSet::new();
    Reader::default().for_each(fd.as_fd(), |name, _, _| {
        names.insert(name.into());
    })?;
    Ok(names)
}

/// Returns whether a directory ignores case, if one of its names tells.
fn probe(fd: BorrowedFd<'_>) -> io::Result<Option<bool>> {
    let fd = dir::open(fd, c".", false)?;
    let mut names: Vec<CString> = Vec::new();
    Reader::default().next_batch(fd.as_fd(), |name, _, _| {
        if names.len() < PROBED_MAX
            && name.to_bytes().iter().any(u8::is_ascii_alphabetic)
            && !TempNames::is_temp(name)
        {
            names.push(name.to_owned());
        }
    })?;
    let told = names.iter().try_for_each(|name| match is_same_in_other_case(fd.as_fd(), name) {
        Ok(same) => Break(same),
        Err(_) => Continue(()),
    });
    Ok(told.break_value())
}

/// Maximum number of names of a directory that are looked up in the other case.
const PROBED_MAX: usize = 4;

/// Returns whether a name leads to the same entry in the other case, which is no name of its own.
pub(super) fn is_same_in_other_case(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<bool> {
    let swap = |byte: &u8| match byte.is_ascii_lowercase() {
        true => byte.to_ascii_uppercase(),
        false => byte.to_ascii_lowercase(),
    };
    let swapped: Vec<u8> = name.to_bytes().iter().map(swap).collect();
    if swapped == name.to_bytes() {
        return Ok(false);
    }
    let (swapped, own) = (CString::new(swapped)?, meta::of(dir, name, false)?);
    match meta::of(dir, &swapped, false) {
        Err(error) if errno::is(&error, errno::ENOENT) => Ok(false),
        Err(error) => Err(error),
        // Two names of one file may differ in case only.
        Ok(other) => Ok(other.identity() == own.identity()
            && !matches!(listed((dir, &swapped), other.ino)?, Listed::Exactly)),
    }
}

// What the sources of a run hold, for what else the run writes and removes: backups and extraneous entries.

/// Largest depth of a directory whose place is looked for.
const DEPTH_MAX: usize = 256;

/// The sources, and entries that are never extraneous.
#[derive(Debug, Default)]
pub struct GuardedSources {
    /// The directories and files that the arguments are.
    pub roots: Vec<FileId>,
    /// Folder of each argument and the path below it that is created at the target; empty for the folder's content.
    pub arguments: Vec<(PathBuf, Vec<u8>)>,
    /// The target directory.
    pub target: Option<FileId>,
    /// Trees of `--link-dest` and similar options, and the log: they are not extraneous, even in the target.
    pub kept: Vec<FileId>,
}

impl GuardedSources {
    /// Returns whether an argument has an entry for this path of the target.
    pub fn provide(&self, path: &[u8]) -> bool {
        let covers = |names: &[u8]| {
            let rest = path.strip_prefix(names);
            names.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        let has =
            |folder: &PathBuf| folder.join(OsStr::from_bytes(path)).symlink_metadata().is_ok();
        self.arguments.iter().any(|(folder, names)| covers(names) && has(folder))
    }

    /// Returns whether an existing entry is one of a source.
    ///
    /// # Errors
    /// Those of looking at it and at the directories above.
    pub(super) fn hold(&self, place: DirName<'_>) -> io::Result<bool> {
        let own = meta::of(place.0, place.1, false)?.identity();
        Ok(self.roots.contains(&own) || self.contain(place.0)?)
    }

    /// Returns whether a directory is one of a source. The target inside a source is not one: it is not copied.
    ///
    /// # Errors
    /// Those of looking at the directories above.
    pub fn contain(&self, dir_fd: BorrowedFd<'_>) -> io::Result<bool> {
        let mut here = dir_fd.try_clone_to_owned()?;
        for _ in 0..DEPTH_MAX {
            let own = meta::of_fd(&here)?.identity();
            if self.roots.contains(&own) {
                return Ok(true);
            }
            let above = dir::open(here.as_fd(), c"..", true)?;
            if Some(own) == self.target || meta::of_fd(&above)?.identity() == own {
                return Ok(false);
            }
            here = above;
        }
        Ok(false)
    }

    /// Returns whether an entry of the target is never extraneous.
    pub(super) fn keep(&self, place: DirName<'_>) -> bool {
        !self.kept.is_empty()
            && meta::of(place.0, place.1, false)
                .is_ok_and(|there| self.kept.contains(&there.identity()))
    }
}

/// Returns the names on the way from a directory down to another one in it, by the identities of the directories above
/// that one; `None` if it is not in it. Lists directories.
///
/// # Errors
/// Those of opening and listing the directories above.
pub fn path_below(top: BorrowedFd<'_>, inside: BorrowedFd<'_>) -> io::Result<Option<Vec<CString>>> {
    let goal = meta::of(top, c".", true)?.identity();
    let mut names = Vec::new();
    let mut here = inside.try_clone_to_owned()?;
    for _ in 0..DEPTH_MAX {
        let own = meta::of_fd(&here)?.identity();
        if own == goal {
            names.reverse();
            return Ok(Some(names));
        }
        let above = dir::open(here.as_fd(), c"..", true)?;
        if meta::of_fd(&above)?.identity() == own {
            return Ok(None);
        }
        let mut found = None;
        dir::Reader::default().for_each(above.as_fd(), |name, _, _| {
            if found.is_none()
                && meta::of(above.as_fd(), name, false).is_ok_and(|it| it.identity() == own)
            {
                found = Some(name.to_owned());
            }
        })?;
        let Some(name) = found else { return Ok(None) };
        names.push(name);
        here = above;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_keeps_an_entry() {
        let guard = Guard::default();
        let (dir, entry) = ((1, 2), (1, 3));
        assert!(guard.claim(dir, entry, c"A"));
        assert!(guard.claim(dir, entry, c"A"));
        assert!(!guard.claim(dir, entry, c"a"));
        assert!(guard.is_claimed(dir, entry) && !guard.is_claimed((1, 9), entry));
        guard.forget(dir);
        assert!(guard.claim(dir, entry, c"a"));
        guard.keep_claims();
        guard.forget(dir);
        assert!(!guard.claim(dir, entry, c"A"));
    }

    #[test]
    fn a_target_inside_a_source() {
        let guard = Guard::default();
        for (overlap, exists, refuses) in [
            (Overlap::No, true, false),
            (Overlap::Unlisted, false, false),
            (Overlap::Unlisted, true, true),
            (Overlap::Listed, false, true),
            (Overlap::Listed, true, true),
        ] {
            assert_eq!(guard.refusal(overlap, exists).is_some(), refuses, "{overlap:?} {exists}");
        }
        guard.hide_target();
        assert!(guard.refusal(Overlap::Unlisted, true).is_none());
        assert!(guard.refusal(Overlap::Listed, true).is_some());
    }
}
