//! Opens what is to go up, below the root and through no symlink that is not asked for.

use super::super::moving::Failed;
use super::super::{Entry, Side};
use crate::error::Operation;
use crate::policy::{Policy, Symlinks};
use crate::unit::{Kind, Meta};
use hakobu_sys::source::{self, Through};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, errno, meta};
use std::ffi::CString;
use std::io;

/// Which symlinks may lie on the way to an entry.
pub(super) fn through(policy: &Policy, entry: &Entry) -> Through {
    // A named argument that was followed when it was looked at.
    let argument =
        policy.follow_args && entry.meta.kind == Kind::File && !entry.name.contains(&b'/');
    let follows = policy.symlinks == Symlinks::Follow || policy.copy_dirlinks;
    match follows || argument {
        false => Through::Nothing,
        true if policy.safe_links && !argument => Through::Inside,
        true => Through::Anything,
    }
}

/// A file to read and what it is now.
pub(super) fn file(
    dir: BorrowedFd<'_>,
    name: &[u8],
    through: Through,
) -> io::Result<(OwnedFd, Meta)> {
    let file = source::open(dir, name, through)?;
    let now = meta::of_fd(&file)?;
    Ok((file, now))
}

/// The text of a symlink, and what it is now.
pub(super) fn link(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<(CString, Meta)> {
    let link = source::open_name(dir, name)?;
    let now = meta::of_fd(&link)?;
    if now.kind != Kind::Symlink {
        return Ok((CString::default(), now));
    }
    Ok((source::link_text(link.as_fd())?, now))
}

/// What it means that an entry of the listing could not be opened.
pub(super) fn failed(error: io::Error) -> Failed {
    if errno::is(&error, errno::ENOENT) {
        return Failed::Vanished(Operation::Read);
    }
    Failed::File(Operation::Read, Side::Source, error)
}
