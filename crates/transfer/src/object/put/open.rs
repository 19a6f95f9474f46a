//! Opens files to upload, below the root and without following symlinks unless requested.

use super::super::failed::Failed;
use super::super::helper::blocking;
use super::super::moving::Moving;
use super::super::{Entry, Root, Side};
use crate::policy::{Policy, Symlinks};
use hakobu_core::error::Operation;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::source::{self, Through};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, errno, meta};
use std::ffi::CString;
use std::io;
use std::sync::Arc;

/// Returns which symlinks are allowed in the path of an entry.
pub(super) fn through(policy: &Policy, entry: &Entry) -> Through {
    // A named argument that was followed when it was examined.
    let argument =
        policy.follow_args && entry.meta.kind == Kind::File && !entry.name.contains(&b'/');
    let follows = policy.symlinks == Symlinks::Follow || policy.copy_dirlinks;
    match follows || argument {
        false => Through::Nothing,
        true if policy.safe_links && !argument => Through::Inside,
        true => Through::Anything,
    }
}

/// Opens a file and returns its current metadata.
pub(super) fn file(
    dir: BorrowedFd<'_>,
    name: &[u8],
    through: Through,
) -> io::Result<(OwnedFd, Meta)> {
    let file = source::open(dir, name, through)?;
    let now = meta::of_fd(&file)?;
    Ok((file, now))
}

/// As `file`, on a helper thread: for slow devices, which would block the core's other connections
/// ([`super::fill::waits`]).
pub(super) async fn elsewhere(
    moving: &Arc<Moving>,
    through: Through,
) -> io::Result<(OwnedFd, Meta)> {
    let moving = Arc::clone(moving);
    let work = move || match &moving.pair.source {
        Root::Local { dir, .. } => file(dir.as_fd(), &moving.entry.name, through),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    blocking(work).await
}

/// Returns the text of a symlink and its current metadata.
pub(super) fn link(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<(CString, Meta)> {
    let link = source::open_name(dir, name)?;
    let now = meta::of_fd(&link)?;
    if now.kind != Kind::Symlink {
        return Ok((CString::default(), now));
    }
    Ok((source::link_text(link.as_fd())?, now))
}

/// Returns the failure of a listed entry that could not be opened.
pub(super) fn failed(error: io::Error) -> Failed {
    if errno::is(&error, errno::ENOENT) {
        return Failed::Vanished(Operation::Read);
    }
    Failed::File(Operation::Read, Side::Source, error)
}
