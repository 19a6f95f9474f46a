//! Folders below the local targets of one core: found or made component by component, and kept
//! open while there is room. Never reached by a path: nobody can swap a component for a symlink.

use crate::engine::node::c_string;
use crate::error::Operation;
use crate::object::Side;
use crate::object::moving::Failed;
use crate::unit::Kind;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, meta, xattr};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io;
use std::sync::Arc;

/// Folders that one core keeps open.
const OPEN_MAX: usize = 128;
/// Roots (targets of source arguments) that one core remembers folders of.
const ROOTS_MAX: usize = 8;

/// Folders below local targets that one core has open or has made.
#[derive(Default)]
pub(in crate::object) struct Folders {
    roots: Vec<Below>,
    /// Counts uses, to find the one that was used longest ago.
    clock: u64,
}

/// Folders below one root, by their relative paths (`""` is the root itself). Holding the root
/// open makes sure that no other one can be taken for it.
struct Below {
    root: Arc<OwnedFd>,
    open: HashMap<Box<[u8]>, Kept>,
}

struct Kept {
    folder: Folder,
    used: u64,
}

/// A folder that is open.
#[derive(Clone)]
pub(super) struct Folder {
    /// The folder.
    pub fd: Arc<OwnedFd>,
    /// New entries inherit an ACL from it, which takes the umask's place.
    pub default_acl: bool,
}

/// How folders are made and found.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// A symlink to a directory stands for the directory (`--keep-dirlinks`).
    pub follow: bool,
    /// The mask for the modes of new ones.
    pub umask: u32,
}

/// Takes a relative path apart: the folder's path, and the last name.
///
/// # Errors
/// A reason for a path with a component that is empty, `.` or `..`, or holds a NUL.
pub(super) fn split(path: &[u8]) -> Result<(&[u8], CString), Failed> {
    let good = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
    if !path.split(|byte| *byte == b'/').all(good) {
        let why = "the name would lead out of the target folder, or no file can have it";
        return Err(Failed::Reason(Operation::Create, Side::Target, why));
    }
    let (above, last) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()),
        None => (&[][..], path),
    };
    Ok((above, c_string(last).map_err(failed(Operation::Create))?))
}

impl Folders {
    /// The folder at `path` (components that [`split`] accepts; empty for the root), made where it
    /// is missing, and how many folders were made on the way.
    ///
    /// # Errors
    /// The system's, or a reason where a file or a symlink is in the way.
    pub(super) fn open(
        &mut self,
        root: &Arc<OwnedFd>,
        path: &[u8],
        rules: Rules,
    ) -> Result<(Folder, u64), Failed> {
        self.clock += 1;
        let clock = self.clock;
        let below = self.below(root);
        if let Some(kept) = below.open.get_mut(path) {
            kept.used = clock;
            return Ok((kept.folder.clone(), 0));
        }
        let (mut at, mut folder) = below.nearest(path, clock);
        let mut made = 0;
        while at < path.len() {
            let rest = path.get(at..).unwrap_or_default();
            let skip = usize::from(rest.first() == Some(&b'/'));
            let rest = rest.get(skip..).unwrap_or_default();
            let name = rest.split(|byte| *byte == b'/').next().unwrap_or_default();
            at += skip + name.len();
            let name = c_string(name).map_err(failed(Operation::MakeDir))?;
            let (fd, new) = enter(folder.fd.as_fd(), &name, rules)?;
            made += u64::from(new);
            folder = Folder::new(fd);
            below.keep(path.get(..at).unwrap_or(path), &folder, clock);
        }
        Ok((folder, made))
    }

    /// Forgets a folder and those below it: somebody removed or moved them.
    pub(super) fn forget(&mut self, root: &Arc<OwnedFd>, path: &[u8]) {
        self.below(root).open.retain(|kept, _| {
            let rest = kept.strip_prefix(path);
            !rest.is_some_and(|rest| path.is_empty() || rest.is_empty() || rest.starts_with(b"/"))
        });
    }

    fn below(&mut self, root: &Arc<OwnedFd>) -> &mut Below {
        let known = self.roots.iter().position(|below| Arc::ptr_eq(&below.root, root));
        let at = known.unwrap_or_else(|| {
            if self.roots.len() >= ROOTS_MAX {
                self.roots.remove(0);
            }
            self.roots.push(Below { root: Arc::clone(root), open: HashMap::new() });
            self.roots.len() - 1
        });
        &mut self.roots[at]
    }
}

impl Below {
    /// The nearest folder above `path` that is open, and the length of its path.
    fn nearest(&mut self, path: &[u8], clock: u64) -> (usize, Folder) {
        let mut above = path;
        while let Some(at) = above.iter().rposition(|byte| *byte == b'/') {
            above = above.get(..at).unwrap_or_default();
            if let Some(kept) = self.open.get_mut(above) {
                kept.used = clock;
                return (at, kept.folder.clone());
            }
        }
        if let Some(kept) = self.open.get(&[][..]) {
            return (0, kept.folder.clone());
        }
        let root = Folder::with(Arc::clone(&self.root));
        self.keep(b"", &root, clock);
        (0, root)
    }

    /// Keeps a folder, at the cost of the one that was used longest ago.
    fn keep(&mut self, path: &[u8], folder: &Folder, clock: u64) {
        if self.open.len() >= OPEN_MAX {
            let oldest = self.open.iter().min_by_key(|(_, kept)| kept.used);
            if let Some(path) = oldest.map(|(path, _)| path.clone()) {
                self.open.remove(&path);
            }
        }
        self.open.insert(path.into(), Kept { folder: folder.clone(), used: clock });
    }
}

impl Folder {
    fn new(fd: OwnedFd) -> Folder {
        Folder::with(Arc::new(fd))
    }

    fn with(fd: Arc<OwnedFd>) -> Folder {
        let default_acl = xattr::get(fd.as_fd(), xattr::ACL_DEFAULT, &mut Vec::new()).is_ok();
        Folder { fd, default_acl }
    }
}

/// Opens a folder in a folder, or makes it; whether it was made.
fn enter(above: BorrowedFd<'_>, name: &CStr, rules: Rules) -> Result<(OwnedFd, bool), Failed> {
    match dir::open(above, name, rules.follow) {
        Ok(fd) => return Ok((fd, false)),
        Err(error) if errno::is(&error, errno::ENOENT) => {}
        Err(error) => return Err(in_the_way(above, name, error)),
    }
    let new = match dir::create(above, name, 0o777 & !rules.umask) {
        Ok(()) => true,
        // Another core, or another program, was faster.
        Err(error) if errno::is(&error, errno::EEXIST) => false,
        Err(error) => return Err(failed(Operation::MakeDir)(error)),
    };
    let fd = dir::open(above, name, rules.follow);
    Ok((fd.map_err(|error| in_the_way(above, name, error))?, new))
}

/// Why a folder could not be opened, in words where something else has its name.
fn in_the_way(above: BorrowedFd<'_>, name: &CStr, error: io::Error) -> Failed {
    if matches!(error.raw_os_error(), Some(errno::ENOTDIR | errno::ELOOP)) {
        let symlink = meta::of(above, name, false).is_ok_and(|there| there.kind == Kind::Symlink);
        let why = match symlink {
            true => "a symlink stands where a folder of its path should be",
            false => "a file stands where a folder of its path should be",
        };
        return Failed::Reason(Operation::MakeDir, Side::Target, why);
    }
    failed(Operation::MakeDir)(error)
}

/// For `map_err` of calls at the target.
pub(super) fn failed(operation: Operation) -> impl FnOnce(io::Error) -> Failed {
    move |error| Failed::File(operation, Side::Target, error)
}

#[cfg(test)]
mod tests;
