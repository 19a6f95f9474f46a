//! Directories: opening them safely, reading them, calls that add, move and remove names, and whether they ignore the case
//! of names.

use crate::meta::Kind;
use crate::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, IFlags, Mode, OFlags, RawDir, RenameFlags, ResolveFlags};
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
    crate::paths::open_with(dir, path, DIR, Mode::empty(), ResolveFlags::NO_SYMLINKS)
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

/// How a file system treats the case of names, as far as its type tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Names that differ in case are different names.
    Sensitive,
    /// Each directory has a flag, [`is_casefolded`].
    ByDirectory,
    /// A name of the other case has to be looked up.
    Unknown,
}

/// Returns how the file system of `fd` treats the case of names (magic numbers in statfs(2) and linux/magic.h).
pub fn case_of(fd: BorrowedFd<'_>) -> Case {
    match rustix::fs::fstatfs(fd).map(|fs| fs.f_type as u32) {
        // ext4, F2FS, tmpfs, bcachefs.
        Ok(0xEF53 | 0xF2F5_2010 | 0x0102_1994 | 0xCA45_1A4E) => Case::ByDirectory,
        // XFS, btrfs, ramfs, EROFS, squashfs, JFFS2, Ceph, Lustre.
        Ok(
            0x5846_5342 | 0x9123_683E | 0x8584_58F6 | 0xE0F5_E1E2 | 0x7371_7368 | 0x72B6
            | 0x00C3_6400 | 0x0BD0_0BD0,
        ) => Case::Sensitive,
        // FAT, exFAT, NTFS, SMB, HFS+, ZFS, NFS, overlays, FUSE: depends on options, servers and lower layers.
        _ => Case::Unknown,
    }
}

/// Returns whether a directory has the flag `FS_CASEFOLD_FL` (ioctl_iflags(2)).
///
/// # Errors
/// ENOTTY if the file system has no such flags.
pub fn is_casefolded(dir: BorrowedFd<'_>) -> Result<bool> {
    // Not named by rustix.
    let casefold = IFlags::from_bits_retain(0x4000_0000);
    Ok(rustix::fs::ioctl_getflags(dir)?.contains(casefold))
}

/// A list of C strings.
#[derive(Clone, Debug, Default)]
pub struct Strings {
    /// The strings, each terminated by NUL.
    bytes: Vec<u8>,
    /// Offset behind each string and its terminator.
    ends: Vec<usize>,
}

impl Strings {
    /// Makes room for `count` more strings of `bytes` bytes each, with their terminators.
    pub fn reserve(&mut self, count: usize, bytes: usize) {
        self.ends.reserve(count);
        self.bytes.reserve(count * bytes);
    }

    /// Adds a string.
    #[inline]
    pub fn push(&mut self, text: &CStr) {
        self.bytes.extend_from_slice(text.to_bytes_with_nul());
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at an index; `None` behind the last one. Its length is known: no search for the terminator.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&CStr> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let bytes = self.bytes.get(start.unwrap_or(0)..end)?;
        // SAFETY: `push` alone appends to the two lists, which never shrink. So these bytes are one C string with its
        // terminator, and have no other NUL.
        Some(unsafe { CStr::from_bytes_with_nul_unchecked(bytes) })
    }
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

    #[test]
    fn strings_come_back_by_index() {
        let texts = [c"a", c"", c"a longer one, of thirty bytes..", c"b"];
        let mut strings = Strings::default();
        assert!(strings.is_empty() && strings.get(0).is_none());
        strings.reserve(2, 3);
        texts.iter().for_each(|text| strings.push(text));
        assert_eq!(strings.len(), texts.len());
        for (index, text) in texts.iter().enumerate() {
            assert_eq!(strings.get(index), Some(*text));
        }
        assert_eq!(strings.get(texts.len()), None);
    }
}
