//! Resolves paths given by the user, component by component: a symlink is followed only if it belongs to root
//! or the running user. Otherwise any user with write access to a directory on the path could redirect us. No
//! component is resolved twice, so nothing can be replaced between check and use.

mod kinds;
mod walk;

pub use kinds::{Links, Refused};

use crate::meta::{self, Kind};
use crate::{BorrowedFd, OwnedFd, close, errno};
use kinds::os;
use rustix::fs::{CWD, Mode, OFlags};
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{Result, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use walk::End;

const CREATE: OFlags = OFlags::CREATE.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
const LIST: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// Times that the directories above one are made because it cannot be.
const LOOKS_MAX: u32 = 3;

impl Links {
    /// Opens a directory for listing and for resolving names in it.
    ///
    /// # Errors
    /// [`Refused`]; those of open(2).
    pub fn open_dir(&self, at: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd> {
        if *self == Links::Any {
            return Ok(rustix::fs::openat(at, path, LIST, Mode::empty())?);
        }
        let entry = self.end(at, path)?.entry.ok_or_else(|| os(errno::ENOENT))?;
        // Reopens exactly the directory of the O_PATH descriptor.
        Ok(rustix::fs::openat(entry, c".", LIST, Mode::empty())?)
    }

    /// Opens a file for reading. Does not block: the writer of a FIFO is waited for by
    /// [`waiting::Input`](crate::waiting::Input).
    ///
    /// # Errors
    /// As [`Links::open_dir`].
    pub fn open_read(&self, at: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd> {
        self.open(at, path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK)
    }

    /// Opens a file for writing, and creates it if missing. Existing content is kept before the new one
    /// (`append`), or truncated. Does not block, so a FIFO may be written with
    /// [`waiting::Output`](crate::waiting::Output) only.
    ///
    /// # Errors
    /// As [`Links::open_dir`]; ENXIO for a FIFO without reader.
    pub fn open_write(&self, path: &Path, append: bool) -> Result<OwnedFd> {
        let how = OFlags::NONBLOCK | if append { OFlags::APPEND } else { OFlags::TRUNC };
        self.open(CWD, &c_path(path)?, CREATE | OFlags::WRONLY | how)
    }

    /// Opens a file for the output of a command, whose writes block. Existing content is replaced.
    ///
    /// # Errors
    /// As [`Links::open_write`].
    pub fn open_output(&self, path: &Path) -> Result<OwnedFd> {
        let fd = self.open_write(path, false)?;
        rustix::io::ioctl_fionbio(&fd, false)?;
        Ok(fd)
    }

    /// Opens a file that only its owner may read, and creates it if missing. It is read, and written at its end.
    ///
    /// # Errors
    /// As [`Links::open_dir`].
    pub fn open_private(&self, path: &Path) -> Result<OwnedFd> {
        self.open_with(CWD, &c_path(path)?, CREATE | OFlags::RDWR | OFlags::APPEND, 0o600)
    }

    /// Writes a whole file that only its owner may read, and checks the result of close(2). Existing content is
    /// replaced.
    ///
    /// # Errors
    /// As [`Links::open_dir`]; those of write(2) and close(2).
    pub fn write_private(&self, path: &Path, content: &[u8]) -> Result<()> {
        let flags = CREATE | OFlags::WRONLY | OFlags::TRUNC;
        let mut file = File::from(self.open_with(CWD, &c_path(path)?, flags, 0o600)?);
        file.write_all(content)?;
        close::close(file)
    }

    /// Checks whether one name may be followed, if it is a symlink. Its target is not examined.
    ///
    /// # Errors
    /// [`Refused`]; those of fstatat(2).
    pub fn check(&self, at: BorrowedFd<'_>, name: &CStr) -> Result<()> {
        if *self == Links::Any {
            return Ok(());
        }
        let meta = meta::of(at, name, false)?;
        match meta.kind {
            Kind::Symlink => self.check_owner(name.to_bytes(), meta.uid),
            _ => Ok(()),
        }
    }

    fn open(&self, at: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> Result<OwnedFd> {
        self.open_with(at, path, flags, 0o666)
    }

    /// `mode`: that of a new file, restricted by the umask.
    fn open_with(
        &self,
        at: BorrowedFd<'_>,
        path: &CStr,
        flags: OFlags,
        mode: u32,
    ) -> Result<OwnedFd> {
        let mode = Mode::from_raw_mode(mode);
        if *self == Links::Any {
            return Ok(rustix::fs::openat(at, path, flags, mode)?);
        }
        let End { dir, name, magic, .. } = self.end(at, path)?;
        let flags = if magic { flags } else { flags | OFlags::NOFOLLOW };
        Ok(rustix::fs::openat(dir, &*name, flags, mode)?)
    }

    /// Creates a directory; `parents` creates missing ancestors as well. Returns false if it exists.
    ///
    /// # Errors
    /// As [`Links::open_dir`]; EEXIST if the name exists with another type.
    pub fn make_dir(&self, path: &Path, mode: u32, parents: bool) -> Result<bool> {
        let mut made = false;
        // Missing directories, deepest first, each with the number of its ENOENT so far.
        let mut missing = vec![(path, 0)];
        while let Some((here, refused)) = missing.pop() {
            match self.make_one(here, mode) {
                // Another process may remove the directory above once it was made. File systems whose directories
                // nobody can make (procfs) return ENOENT although it is there.
                Err(error)
                    if parents && errno::is(&error, errno::ENOENT) && refused < LOOKS_MAX =>
                {
                    let above = here.parent().filter(|above| !above.as_os_str().is_empty());
                    let Some(above) = above else { return Err(error) };
                    missing.extend([(here, refused + 1), (above, 0)]);
                }
                Err(error) => return Err(error),
                Ok(new) => made = new,
            }
        }
        Ok(made)
    }

    /// Creates the last directory of a path, unless it exists.
    fn make_one(&self, path: &Path, mode: u32) -> Result<bool> {
        let path = c_path(path)?;
        // Any link may be followed, but the directory is created where the walk ended.
        let End { dir, name, entry, .. } = self.end(CWD, &path)?;
        let Some(entry) = entry else {
            return match rustix::fs::mkdirat(&dir, &*name, Mode::from_raw_mode(mode)) {
                // Created concurrently; its type is checked when it is opened.
                Ok(()) => Ok(true),
                Err(rustix::io::Errno::EXIST) => Ok(false),
                Err(error) => Err(error.into()),
            };
        };
        match meta::of_fd(entry)?.kind {
            Kind::Dir => Ok(false),
            _ => Err(os(errno::EEXIST)),
        }
    }
}

fn c_path(path: &Path) -> Result<CString> {
    let path: &OsStr = path.as_ref();
    Ok(CString::new(path.as_bytes())?)
}

#[cfg(test)]
mod tests;
