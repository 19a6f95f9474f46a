//! Targets that hold different names for one: file systems that ignore case, or forms of Unicode. Whether a target does
//! is learnt once. There every file that a run places is remembered, so that no other one of its names replaces it and
//! no deletion takes it; nothing is remembered elsewhere.

use super::entry::Failed;
use super::folders::failed;
use super::{CaseConflict, Side};
use crate::publish::TempNames;
use hakobu_core::error::Operation;
use hakobu_sys::dir::{self, Case, Reader};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, errno, file, meta};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::ControlFlow;

/// Reason for refusing a name.
pub(crate) const CASE: &str =
    "the target's file system takes its name for that of another file there (--case-conflict)";

/// Notice about a name that replaced another one.
pub(in crate::object) const REPLACED: &str =
    "it replaced another file there, for whose name the target's file system takes its own";

/// Device and inode.
type Identity = (u64, u64);

/// What is known of targets that hold different names for one, shared by all passes and cores of a run.
#[derive(Default)]
pub struct Folded {
    /// Whether names meet, by file system and target root.
    roots: Mutex<HashMap<(u64, Identity), bool>>,
    made: Mutex<Made>,
    keys: RandomState,
}

/// What the run placed where names meet.
#[derive(Default)]
pub(crate) struct Made {
    /// The hashed names of the files that were placed.
    files: HashMap<Identity, u64>,
    /// Names of the source, hashed, by their hash in lower case: the first one has it.
    names: HashMap<u64, u64>,
    /// Files of other names that were found right.
    kept: HashSet<Identity>,
}

/// A name below a target root, hashed as it is and in lower case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashedName {
    exact: u64,
    lower: u64,
}

impl Folded {
    /// Returns whether names meet below a root, in a folder of this file system: by its type, or looks with a name
    /// of its own the first time. Where that is impossible they may.
    pub(crate) fn has(&self, root: Identity, folder: BorrowedFd<'_>, dev: u64) -> bool {
        let mut roots = self.roots.lock();
        *roots.entry((dev, root)).or_insert_with(|| match dir::case_of(folder) {
            Case::Sensitive => false,
            Case::ByDirectory => dir::is_casefolded(folder).unwrap_or(false),
            Case::Unknown => probe(folder).unwrap_or(true),
        })
    }

    /// Returns a name below a root as it is remembered.
    pub(crate) fn names(&self, root: Identity, name: &[u8]) -> HashedName {
        let lower = String::from_utf8_lossy(name).to_lowercase();
        HashedName {
            exact: self.keys.hash_one((root, name)),
            lower: self.keys.hash_one((root, lower.as_bytes())),
        }
    }

    /// Returns what was placed. While it is held nothing else is placed or removed there.
    pub(crate) fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock()
    }
}

impl Made {
    /// Takes a name for an entry of the source; returns whether the target takes it for that of another entry.
    pub fn take(&mut self, names: HashedName) -> bool {
        *self.names.entry(names.lower).or_insert(names.exact) != names.exact
    }

    /// Returns whether a name is, for the target, that of a file which the run placed under another one.
    ///
    /// # Errors
    /// The name cannot be looked up.
    pub(in crate::object) fn meets(
        &self,
        folder: BorrowedFd<'_>,
        name: &CStr,
        names: HashedName,
    ) -> Result<bool, Failed> {
        let other = |known: Option<&u64>| known.is_some_and(|known| *known != names.exact);
        match meta::of(folder, name, false) {
            Ok(there) => {
                Ok(other(self.files.get(&there.identity())) || other(self.names.get(&names.lower)))
            }
            Err(error) if errno::is(&error, errno::ENOENT) => Ok(false),
            Err(error) => Err(failed(Operation::Stat)(error)),
        }
    }

    /// Records that a file was found right: no deletion takes it.
    pub fn found(&mut self, identity: Identity) {
        self.kept.insert(identity);
    }

    /// Records that a file was placed.
    pub fn placed(&mut self, folder: BorrowedFd<'_>, name: &CStr, names: HashedName) {
        if let Ok(there) = meta::of(folder, name, false) {
            self.files.insert(there.identity(), names.exact);
        }
        self.names.entry(names.lower).or_insert(names.exact);
    }

    /// Returns whether a deletion must leave a file alone.
    pub fn keeps(&self, identity: Identity) -> bool {
        self.files.contains_key(&identity) || self.kept.contains(&identity)
    }
}

/// Returns whether the file that a name finds has another name in its folder.
pub(in crate::object) fn is_variant(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<bool> {
    // A descriptor of its own has a position of its own.
    let own = dir::open(folder, c".", false)?;
    let found = Reader::default().read_until(own.as_fd(), |other, _, _| match other == name {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })?;
    Ok(found.is_none())
}

/// Returns whether the file of a name in lower case is found in upper case; `None` if no file can be made.
fn probe(folder: BorrowedFd<'_>) -> Option<bool> {
    let name = TempNames::new().make();
    let upper = CString::new(name.to_bytes().to_ascii_uppercase()).ok()?;
    let file: OwnedFd = file::create_new(folder, &name, 0o600).ok()?;
    let found = meta::of(folder, &upper, false).is_ok();
    drop(file);
    // A later run removes it, if that fails.
    let _ = dir::unlink(folder, &name);
    Some(found)
}

/// Returns what to do with a name that the target takes for that of another file; `moves`: sources are removed
/// afterwards, so that nothing may be replaced.
///
/// # Errors
/// It is refused.
pub(in crate::object) fn on_conflict(
    asked: CaseConflict,
    moves: bool,
) -> Result<CaseConflict, Failed> {
    match asked {
        CaseConflict::Skip => Ok(asked),
        CaseConflict::Warn | CaseConflict::Ignore if !moves => Ok(asked),
        _ => Err(Failed::Reason(Operation::Create, Side::Target, CASE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_sys::meta::identity;
    use std::fs;

    #[test]
    fn names_do_not_meet_on_a_usual_file_system() {
        let top = std::env::temp_dir().join(format!("hakobu-folded-{}", std::process::id()));
        fs::create_dir(&top).unwrap();
        let folder: OwnedFd = fs::File::open(&top).unwrap().into();
        let (folded, id) = (Folded::default(), identity(&top).unwrap());
        assert!(!folded.has(id, folder.as_fd(), id.0));
        assert_eq!(fs::read_dir(&top).unwrap().count(), 0, "the probe is gone");
        fs::write(top.join("a"), b"").unwrap();
        assert!(!is_variant(folder.as_fd(), c"a").unwrap());
        assert!(is_variant(folder.as_fd(), c"A").unwrap());
        let names = |name: &str| folded.names(id, name.as_bytes());
        let mut made = folded.made();
        assert!(!made.take(names("B")) && made.take(names("b")) && !made.take(names("B")));
        assert!(!made.meets(folder.as_fd(), c"a", names("a")).unwrap());
        made.placed(folder.as_fd(), c"a", names("a"));
        assert!(!made.meets(folder.as_fd(), c"a", names("a")).unwrap(), "the same name again");
        assert!(made.meets(folder.as_fd(), c"a", names("A")).unwrap());
        assert!(!made.meets(folder.as_fd(), c"none", names("none")).unwrap());
        assert!(made.keeps(identity(&top.join("a")).unwrap()) && !made.keeps(id));
        drop(made);
        fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn what_is_asked_holds_unless_sources_go() {
        let of = |asked, moves| on_conflict(asked, moves).ok();
        assert_eq!(of(CaseConflict::Error, false), None);
        assert_eq!(of(CaseConflict::Warn, false), Some(CaseConflict::Warn));
        assert_eq!(of(CaseConflict::Ignore, true), None);
        assert_eq!(of(CaseConflict::Skip, true), Some(CaseConflict::Skip));
    }
}
