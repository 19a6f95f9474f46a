//! `--fake-super`: attributes that only root may set are kept in extended attributes of ordinary files, in rsync's
//! format, and read from there.
//!
//! Devices, FIFOs, sockets and symlinks are regular files then; a symlink's file contains the path. Which side of a
//! copy is treated so is decided by the caller ([`Context`](super::context::Context)).

mod acl;
mod names;
mod stat;

pub(super) use names::Names;
pub(super) use stat::Stat;

use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, file, meta, xattr};
use std::ffi::{CStr, CString};
use std::io::{Error, Result};

/// Attribute that holds mode, device number and owner.
const STAT: &CStr = c"user.rsync.%stat";

/// Maximum length of a symlink's text, in bytes (`PATH_MAX`).
const TEXT_BYTES_MAX: usize = 4096;

/// Returns the metadata of an entry, with `fakes` of what it stands for; `follow` resolves a (real) symlink.
///
/// # Errors
/// Those of examining it, and an attribute that is not in rsync's format.
pub(super) fn of(fakes: bool, (dir, name): (BorrowedFd<'_>, &CStr), follow: bool) -> Result<Meta> {
    let real = meta::of(dir, name, follow)?;
    match real.kind {
        _ if !fakes => Ok(real),
        Kind::File | Kind::Dir if follow => {
            let fd = file::open_read(dir, name, true)?;
            Place::Open(fd.as_fd()).over(real)
        }
        Kind::File | Kind::Dir => Place::named(dir, name)?.meta(),
        _ => Ok(real),
    }
}

/// As [`of`], for an open entry.
pub(super) fn of_fd(fakes: bool, fd: BorrowedFd<'_>) -> Result<Meta> {
    if fakes { Place::Open(fd).meta() } else { meta::of_fd(fd) }
}

/// Returns the text of a symlink, which with `fakes` may be a regular file that stands for one.
///
/// # Errors
/// Those of reading it; ENAMETOOLONG.
pub(super) fn link_text(fakes: bool, (dir, name): (BorrowedFd<'_>, &CStr)) -> Result<CString> {
    match dir::read_link(dir, name) {
        Err(error) if fakes && errno::is(&error, errno::EINVAL) => {}
        other => return other,
    }
    let fd = file::open_read(dir, name, false)?;
    let mut text = vec![0; TEXT_BYTES_MAX];
    let mut filled = 0;
    while let Some(space) = text.get_mut(filled..).filter(|space| !space.is_empty()) {
        match file::read(fd.as_fd(), space)? {
            0 => break,
            got => filled += got,
        }
    }
    if filled == TEXT_BYTES_MAX {
        return Err(Error::from_raw_os_error(errno::ENAMETOOLONG));
    }
    text.truncate(filled);
    CString::new(text).map_err(|_| Error::from_raw_os_error(errno::EINVAL))
}

/// Creates the regular file that stands for a symlink with this text, or for a node.
///
/// # Errors
/// Those of creating and writing it; there is no file then.
pub(super) fn make(dir: BorrowedFd<'_>, name: &CStr, text: Option<&CStr>) -> Result<()> {
    let fd: OwnedFd = file::create_new(dir, name, 0o600)?;
    let Some(text) = text else { return Ok(()) };
    let written = file::write_all(fd.as_fd(), text.to_bytes())
        .and_then(|()| hakobu_sys::close::close(fd).map(drop));
    if written.is_err() {
        drop(dir::unlink(dir, name));
    }
    written
}

/// An entry whose attributes are read or set: open, or given by its name.
pub(super) enum Place<'a> {
    /// An open file or directory.
    Open(BorrowedFd<'a>),
    /// A name in a directory.
    Named(xattr::Named<'a>),
}

impl<'a> Place<'a> {
    /// Returns the entry of a name, without opening it for reading.
    pub(super) fn named(dir: BorrowedFd<'a>, name: &'a CStr) -> Result<Place<'a>> {
        Ok(Place::Named(xattr::Named::new(dir, name)?))
    }

    /// Returns the entry itself, not what it stands for.
    pub(super) fn real(&self) -> Result<Meta> {
        match self {
            Place::Open(fd) => meta::of_fd(fd),
            Place::Named(named) => named.meta(),
        }
    }

    /// Returns what the entry stands for.
    ///
    /// # Errors
    /// As [`of`].
    pub(super) fn meta(&self) -> Result<Meta> {
        self.over(self.real()?)
    }

    /// As [`Place::meta`], for an entry that is `real` itself.
    fn over(&self, real: Meta) -> Result<Meta> {
        if !matches!(real.kind, Kind::File | Kind::Dir) {
            return Ok(real);
        }
        match self.get(STAT, &mut Vec::new()) {
            Ok(value) => match Stat::decode(value) {
                Some(stat) => Ok(stat.over(&real)),
                None => {
                    Err(Error::other("its user.rsync.%stat is not in the format of --fake-super"))
                }
            },
            Err(error) if xattr::is_absent(&error) || xattr::is_unsupported(&error) => Ok(real),
            Err(error) => Err(error),
        }
    }

    /// Makes a file or directory stand for `wanted`: of it kind, mode, device number and owner count. The mode of the
    /// file itself is left to the caller.
    pub(super) fn stand_for(&self, real: &Meta, wanted: Stat) -> Result<()> {
        if wanted.is_needed(real) {
            return self.set(STAT, wanted.encode().as_bytes());
        }
        match self.remove(STAT) {
            Err(error) if xattr::is_absent(&error) || xattr::is_unsupported(&error) => Ok(()),
            other => other,
        }
    }

    /// As [`xattr::list`].
    pub(super) fn list<'b>(&self, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        match self {
            Place::Open(fd) => xattr::list(*fd, buffer),
            Place::Named(named) => named.list(buffer),
        }
    }

    /// As [`xattr::get`].
    pub(super) fn get<'b>(&self, name: &CStr, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        match self {
            Place::Open(fd) => xattr::get(*fd, name, buffer),
            Place::Named(named) => named.get(name, buffer),
        }
    }

    /// As [`xattr::set`].
    pub(super) fn set(&self, name: &CStr, value: &[u8]) -> Result<()> {
        match self {
            Place::Open(fd) => xattr::set(*fd, name, value),
            Place::Named(named) => named.set(name, value),
        }
    }

    /// As [`xattr::remove`].
    pub(super) fn remove(&self, name: &CStr) -> Result<()> {
        match self {
            Place::Open(fd) => xattr::remove(*fd, name),
            Place::Named(named) => named.remove(name),
        }
    }
}

/// Returns the attributes that an entry shall stand for, and the permission bits that it gets itself.
pub(super) fn wanted(kind: Kind, mode: u32, rdev: u64, (uid, gid): (u32, u32)) -> (Stat, u32) {
    let rdev = if kind.is_device() { rdev } else { 0 };
    let stat = Stat { kind, mode, rdev, uid, gid };
    (stat, stat.real_mode())
}
