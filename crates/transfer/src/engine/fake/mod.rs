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

/// Returns what an entry stands for; `follow` resolves a (real) symlink.
///
/// # Errors
/// Those of examining it, and an attribute that is not in rsync's format.
pub(super) fn of(dir: BorrowedFd<'_>, name: &CStr, follow: bool) -> Result<Meta> {
    let real = meta::of(dir, name, follow)?;
    match real.kind {
        Kind::File | Kind::Dir if follow => {
            let fd = file::open_read(dir, name, true)?;
            over(real, |buffer| xattr::get(fd.as_fd(), STAT, buffer).map(<[u8]>::len))
        }
        Kind::File | Kind::Dir => {
            let named = xattr::Named::new(file::open_path(dir, name)?);
            of_named(&named)
        }
        _ => Ok(real),
    }
}

/// Returns what an open file or directory stands for.
///
/// # Errors
/// As [`of`].
pub(super) fn of_fd(fd: BorrowedFd<'_>) -> Result<Meta> {
    over(meta::of_fd(fd)?, |buffer| xattr::get(fd, STAT, buffer).map(<[u8]>::len))
}

/// Returns what an entry stands for.
///
/// # Errors
/// As [`of`].
pub(super) fn of_named(named: &xattr::Named) -> Result<Meta> {
    over(meta::of_fd(named.fd())?, |buffer| named.get(STAT, buffer).map(<[u8]>::len))
}

fn over(real: Meta, get: impl FnOnce(&mut Vec<u8>) -> Result<usize>) -> Result<Meta> {
    if !matches!(real.kind, Kind::File | Kind::Dir) {
        return Ok(real);
    }
    let mut buffer = Vec::new();
    match get(&mut buffer) {
        Ok(bytes) => match Stat::decode(buffer.get(..bytes).unwrap_or_default()) {
            Some(stat) => Ok(stat.over(&real)),
            None => Err(Error::other("its user.rsync.%stat is not in the format of --fake-super")),
        },
        Err(error) if xattr::is_absent(&error) || xattr::is_unsupported(&error) => Ok(real),
        Err(error) => Err(error),
    }
}

/// Returns the text of a symlink, which may be a regular file that stands for one.
///
/// # Errors
/// Those of reading it; ENAMETOOLONG.
pub(super) fn link_text(dir: BorrowedFd<'_>, name: &CStr) -> Result<CString> {
    match dir::read_link(dir, name) {
        Err(error) if errno::is(&error, errno::EINVAL) => {}
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

/// An entry whose attributes are set: open, or an `O_PATH` descriptor.
pub(super) enum Place<'a> {
    Open(BorrowedFd<'a>),
    Named(xattr::Named),
}

impl Place<'_> {
    /// Returns the entry of a name.
    pub(super) fn named(dir: BorrowedFd<'_>, name: &CStr) -> Result<Place<'static>> {
        Ok(Place::Named(xattr::Named::new(file::open_path(dir, name)?)))
    }

    /// Returns the entry itself, not what it stands for.
    pub(super) fn real(&self) -> Result<Meta> {
        match self {
            Place::Open(fd) => meta::of_fd(fd),
            Place::Named(named) => meta::of_fd(named.fd()),
        }
    }

    /// Makes a file or directory stand for `wanted`: of it kind, mode, device number and owner count. The mode of the
    /// file itself is left to the caller.
    pub(super) fn stand_for(&self, real: &Meta, wanted: Stat) -> Result<()> {
        let text = wanted.encode();
        let (set, removed) = match (self, wanted.is_needed(real)) {
            (Place::Open(fd), true) => (xattr::set(*fd, STAT, text.as_bytes()), false),
            (Place::Named(named), true) => (named.set(STAT, text.as_bytes()), false),
            (Place::Open(fd), false) => (xattr::remove(*fd, STAT), true),
            (Place::Named(named), false) => (named.remove(STAT), true),
        };
        match set {
            Err(error)
                if removed && (xattr::is_absent(&error) || xattr::is_unsupported(&error)) =>
            {
                Ok(())
            }
            other => other,
        }
    }
}

/// Returns the attributes that an entry shall stand for, and the permission bits that it gets itself.
pub(super) fn wanted(kind: Kind, mode: u32, rdev: u64, (uid, gid): (u32, u32)) -> (Stat, u32) {
    let rdev = if kind.is_device() { rdev } else { 0 };
    let stat = Stat { kind, mode, rdev, uid, gid };
    (stat, stat.real_mode())
}
