//! Directories: opening them safely, reading them, and calls that add, move and remove names.

use crate::meta::Kind;
use crate::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, RenameFlags, ResolveFlags};
use std::ffi::{CStr, CString, OsStr};
use std::io::Result;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const DIR: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// Opens a directory by a path from the command line (symlinks in it are followed).
pub fn open_root(path: &CStr) -> Result<OwnedFd> {
    Ok(rustix::fs::openat(rustix::fs::CWD, path, DIR, Mode::empty())?)
}

/// The working directory, for resolving paths of the command line.
pub fn cwd() -> BorrowedFd<'static> {
    rustix::fs::CWD
}

/// Opens one component below an open directory; `follow` allows it to be a symlink.
pub fn open(dir: BorrowedFd<'_>, name: &CStr, follow: bool) -> Result<OwnedFd> {
    let flags = if follow { DIR } else { DIR.union(OFlags::NOFOLLOW) };
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

/// Opens a directory several components below `dir`, without symlinks and without leaving `dir`:
/// `openat2(2)`, or component by component if that call is missing or forbidden.
pub fn open_below(dir: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd> {
    crate::beneath::open_with(dir, path, DIR, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// True if this process may write to `name`, faccessat(2) for the effective user.
pub fn may_write(dir: BorrowedFd<'_>, name: &CStr) -> bool {
    use rustix::fs::Access;
    rustix::fs::accessat(dir, name, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// `mkdirat(2)`.
pub fn create(dir: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<()> {
    Ok(rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(mode))?)
}

/// `unlinkat(2)` of anything but a directory.
pub fn unlink(dir: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    Ok(rustix::fs::unlinkat(dir, name, AtFlags::empty())?)
}

/// `unlinkat(2)` of an empty directory.
pub fn rmdir(dir: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    Ok(rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?)
}

/// `renameat(2)`: replaces an existing file atomically.
pub fn rename(from: BorrowedFd<'_>, old: &CStr, to: BorrowedFd<'_>, new: &CStr) -> Result<()> {
    Ok(rustix::fs::renameat(from, old, to, new)?)
}

/// `renameat2(2)` with `RENAME_NOREPLACE`: fails with EEXIST instead of replacing, and with EINVAL if the
/// file system does not support it.
pub fn rename_new(from: BorrowedFd<'_>, old: &CStr, to: BorrowedFd<'_>, new: &CStr) -> Result<()> {
    Ok(rustix::fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE)?)
}

/// `linkat(2)`: a hard link; symlinks are not followed.
pub fn link(from: BorrowedFd<'_>, old: &CStr, to: BorrowedFd<'_>, new: &CStr) -> Result<()> {
    Ok(rustix::fs::linkat(from, old, to, new, AtFlags::empty())?)
}

/// `linkat(2)` with `AT_SYMLINK_FOLLOW`: a hard link to what a symlink leads to.
pub fn link_to_referent(
    from: BorrowedFd<'_>,
    old: &CStr,
    to: BorrowedFd<'_>,
    new: &CStr,
) -> Result<()> {
    Ok(rustix::fs::linkat(from, old, to, new, AtFlags::SYMLINK_FOLLOW)?)
}

/// `symlinkat(2)`.
pub fn symlink(text: &CStr, dir: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    Ok(rustix::fs::symlinkat(text, dir, name)?)
}

/// `readlinkat(2)`: the target of a symlink.
pub fn read_link(dir: BorrowedFd<'_>, name: &CStr) -> Result<CString> {
    Ok(rustix::fs::readlinkat(dir, name, Vec::new())?)
}

/// `mknodat(2)`: a FIFO, a socket or a device node.
///
/// # Errors
/// EINVAL for any other kind; EPERM for a device without privilege.
pub fn make_node(dir: BorrowedFd<'_>, name: &CStr, kind: Kind, mode: u32, rdev: u64) -> Result<()> {
    let kind = match kind {
        Kind::Fifo => FileType::Fifo,
        Kind::Socket => FileType::Socket,
        Kind::CharDevice => FileType::CharacterDevice,
        Kind::BlockDevice => FileType::BlockDevice,
        _ => return Err(std::io::Error::from_raw_os_error(libc::EINVAL)),
    };
    Ok(rustix::fs::mknodat(dir, name, kind, Mode::from_raw_mode(mode), rdev)?)
}

/// Read position of a directory: an opaque value for [`seek`], valid for other descriptors of the same
/// directory.
pub fn position(dir: BorrowedFd<'_>) -> Result<u64> {
    Ok(rustix::fs::seek(dir, rustix::fs::SeekFrom::Current(0))?)
}

/// Sets the read position of a directory to a value of [`position`] or [`Reader::read_until`]; 0 is its start.
pub fn seek(dir: BorrowedFd<'_>, position: u64) -> Result<()> {
    rustix::fs::seek(dir, rustix::fs::SeekFrom::Start(position))?;
    Ok(())
}

/// A buffer for `getdents64(2)`: reads a directory in pieces, so that memory is independent of the number of
/// names.
pub struct Reader {
    buffer: Box<[MaybeUninit<u8>]>,
}

impl Default for Reader {
    fn default() -> Self {
        // 32 KiB hold about a thousand names, enough for sixteen chunks for other workers.
        Reader { buffer: vec![MaybeUninit::uninit(); 32 * 1024].into_boxed_slice() }
    }
}

impl Reader {
    /// Reads the next piece and calls `each` with every name except `.` and `..`, its type and inode number
    /// from the directory. Returns `false` at the end.
    ///
    /// # Errors
    /// Those of `getdents64`; earlier names have been passed on.
    pub fn next_batch(
        &mut self,
        dir: BorrowedFd<'_>,
        mut each: impl FnMut(&CStr, Kind, u64),
    ) -> Result<bool> {
        let mut raw = RawDir::new(dir, &mut self.buffer);
        let mut any = false;
        while let Some(entry) = raw.next() {
            let entry = entry?;
            any = true;
            let name = entry.file_name();
            if !matches!(name.to_bytes(), b"." | b"..") {
                each(name, Kind::from_type(entry.file_type()), entry.ino());
            }
            if raw.is_buffer_empty() {
                break;
            }
        }
        Ok(any)
    }

    /// Reads names until the directory ends (`None`) or `each` breaks; then returns the position after the
    /// last name that was passed on, for [`seek`], since the descriptor itself has advanced further.
    ///
    /// # Errors
    /// As [`Reader::next_batch`].
    pub fn read_until(
        &mut self,
        dir: BorrowedFd<'_>,
        mut each: impl FnMut(&CStr, Kind, u64) -> ControlFlow<()>,
    ) -> Result<Option<u64>> {
        let mut raw = RawDir::new(dir, &mut self.buffer);
        while let Some(entry) = raw.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if each(name, Kind::from_type(entry.file_type()), entry.ino()).is_break() {
                return Ok(Some(entry.next_entry_cookie()));
            }
        }
        Ok(None)
    }

    /// Reads the whole directory, piece by piece.
    ///
    /// # Errors
    /// As [`Reader::next_batch`].
    pub fn for_each(
        &mut self,
        dir: BorrowedFd<'_>,
        mut each: impl FnMut(&CStr, Kind, u64),
    ) -> Result<()> {
        while self.next_batch(dir, &mut each)? {}
        Ok(())
    }
}

/// Paths of at most `most` entries of a folder, unordered. Unlike the standard library's iterator, which
/// panics, it survives a failing close(2).
///
/// # Errors
/// The folder cannot be opened or read.
pub fn paths_in(folder: &Path, most: usize) -> Result<Vec<PathBuf>> {
    let fd = open(cwd(), &CString::new(folder.as_os_str().as_bytes())?, true)?;
    let mut paths = Vec::new();
    Reader::default().read_until(fd.as_fd(), |name, _, _| {
        paths.push(folder.join(OsStr::from_bytes(name.to_bytes())));
        if paths.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let all = paths_in(&folder, usize::MAX).unwrap();
        assert!(all.contains(&folder.join("dir.rs")) && all.len() > 20);
        assert_eq!(paths_in(&folder, 3).unwrap().len(), 3);
        assert!(paths_in(&folder.join("none"), 3).is_err());
    }
}
