//! The walk along one path.

use super::kinds::{Links, Refused, os};
use crate::meta::{self, Kind};
use crate::{AsFd, BorrowedFd, OwnedFd, errno};
use rustix::fs::{CWD, Mode, OFlags};
use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::io::{Error, Result};
use std::path::Path;

/// Most symlinks in a path, as in Linux.
const LINKS_MAX: usize = 40;
const NAME: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const DIR: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// End of a path.
pub(super) struct End {
    /// Directory that contains the last name.
    pub(super) dir: OwnedFd,
    pub(super) name: CString,
    /// Entry of that name; `None` if it does not exist.
    pub(super) entry: Option<OwnedFd>,
    /// True for a magic link of procfs, which only the kernel can follow.
    pub(super) magic: bool,
}

impl Links {
    /// Walks a path to its end.
    pub(super) fn end(&self, at: BorrowedFd<'_>, path: &CStr) -> Result<End> {
        let end = self.walk(at, path)?;
        match self {
            Links::Within(root) if !is_below(&end, root)? => {
                Err(Refused::Outside(root.clone()).into())
            }
            _ => Ok(end),
        }
    }

    fn walk(&self, at: BorrowedFd<'_>, path: &CStr) -> Result<End> {
        let open = |at: BorrowedFd<'_>, name: &[u8], flags| -> Result<OwnedFd> {
            Ok(rustix::fs::openat(at, name, flags, Mode::empty())?)
        };
        let end = |dir, name: &[u8], entry, magic| -> Result<End> {
            Ok(End { dir, name: CString::new(name)?, entry, magic })
        };
        let start = |at: BorrowedFd<'_>, path: &[u8]| match path.first() {
            None => Err(os(errno::ENOENT)),
            Some(b'/') => open(CWD, b"/", DIR),
            Some(_) => open(at, b".", DIR),
        };
        let parts = |path: &[u8]| -> Vec<Vec<u8>> {
            let parts = path.split(|byte| *byte == b'/');
            parts.filter(|part| !matches!(*part, b"" | b".")).map(<[u8]>::to_vec).collect()
        };
        let mut here = start(at, path.to_bytes())?;
        let mut names = VecDeque::from(parts(path.to_bytes()));
        let mut links = 0;
        while let Some(name) = names.pop_front() {
            if name == b".." {
                here = open(here.as_fd(), b"..", DIR)?;
                continue;
            }
            let last = names.is_empty();
            let entry = match open(here.as_fd(), &name, NAME) {
                Err(error) if last && errno::is(&error, errno::ENOENT) => {
                    return end(here, &name, None, false);
                }
                other => other?,
            };
            let meta = meta::of_fd(&entry)?;
            if meta.kind != Kind::Symlink {
                if last {
                    return end(here, &name, Some(entry), false);
                }
                here = entry;
                continue;
            }
            self.check_owner(&name, meta.uid)?;
            links += 1;
            if links > LINKS_MAX {
                return Err(os(errno::ELOOP));
            }
            if is_proc(here.as_fd())? {
                // The text of a magic link is not a path ("pipe:[123]").
                let entry = open(here.as_fd(), &name, OFlags::PATH | OFlags::CLOEXEC)?;
                if last {
                    return end(here, &name, Some(entry), true);
                }
                here = entry;
                continue;
            }
            let text = crate::dir::read_link(entry.as_fd(), c"")?;
            here = start(here.as_fd(), text.to_bytes())?;
            for part in parts(text.to_bytes()).into_iter().rev() {
                names.push_front(part);
            }
        }
        let entry = Some(open(here.as_fd(), b".", DIR)?);
        end(here, b".", entry, false)
    }
}

/// True if a path ends in a directory or below it, according to its parent directories.
fn is_below(end: &End, root: &Path) -> Result<bool> {
    let identity = |fd: BorrowedFd<'_>| Ok::<_, Error>(meta::of_fd(fd)?.identity());
    let root = match rustix::fs::openat(CWD, root, DIR, Mode::empty()) {
        // Nothing is below a directory that does not exist.
        Err(rustix::io::Errno::NOENT) => return Ok(false),
        other => identity(other?.as_fd())?,
    };
    let within = |from: BorrowedFd<'_>| -> Result<bool> {
        let mut here = rustix::fs::openat(from, c".", DIR, Mode::empty())?;
        loop {
            let this = identity(here.as_fd())?;
            if this == root {
                return Ok(true);
            }
            here = rustix::fs::openat(here, c"..", DIR, Mode::empty())?;
            if identity(here.as_fd())? == this {
                return Ok(false);
            }
        }
    };
    match &end.entry {
        Some(entry) if meta::of_fd(entry)?.kind == Kind::Dir => within(entry.as_fd()),
        _ => within(end.dir.as_fd()),
    }
}

fn is_proc(dir: BorrowedFd<'_>) -> Result<bool> {
    Ok(rustix::fs::fstatfs(dir)?.f_type == rustix::fs::PROC_SUPER_MAGIC)
}
