//! What the sources of a run hold, for what else the run writes and removes: backups and extraneous entries.

use crate::publish::DirName;
use hakobu_sys::{AsFd, BorrowedFd, dir, meta};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Device and inode.
pub type Identity = (u64, u64);

/// Largest depth of a directory whose place is looked for.
const DEPTH_MAX: usize = 256;

/// The sources, and entries that are never extraneous.
#[derive(Debug, Default)]
pub struct Sources {
    /// The directories and files that the arguments are.
    pub roots: Vec<Identity>,
    /// Folder of each argument and the path below it that is created at the target; empty for the folder's content.
    pub arguments: Vec<(PathBuf, Vec<u8>)>,
    /// The target directory.
    pub target: Option<Identity>,
    /// Trees of `--link-dest` and similar options, and the log: they are not extraneous, even in the target.
    pub kept: Vec<Identity>,
}

impl Sources {
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
