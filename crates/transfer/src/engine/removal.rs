//! Removal of sources: at once, or when nothing looks them up any more.

use super::failure::Failure;
use super::links::Member;
use super::publish::DirName;
use hakobu_core::error::Operation;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{dir, meta};

/// A source to be removed at the end.
pub struct Removal {
    pub(super) member: Member,
    pub(super) source: Meta,
    pub(super) follow: bool,
}

impl Removal {
    pub(super) fn is_link(&self) -> bool {
        let fds = self.member.node.fds();
        let dir = fds.as_ref().ok().and_then(|fds| fds.source(self.member.side).ok());
        self.follow
            && dir.is_some_and(|dir| {
                meta::of(dir, &self.member.name, false).is_ok_and(|own| own.kind == Kind::Symlink)
            })
    }

    /// Checks that a symlink still leads to the copied entry.
    pub(super) fn look(&self) -> Result<(), Failure> {
        let fds = self.member.node.fds().map_err(Failure::of(Operation::Stat))?;
        let dir = fds.source(self.member.side).map_err(Failure::of(Operation::Stat))?;
        check_copied((dir, &self.member.name), true, &self.source)
    }

    pub(super) fn unlink(&self) -> Result<(), Failure> {
        let fds = self.member.node.fds().map_err(Failure::of(Operation::Remove))?;
        let dir = fds.source(self.member.side).map_err(Failure::of(Operation::Remove))?;
        dir::unlink(dir, &self.member.name).map_err(Failure::of(Operation::Remove))
    }

    pub(super) fn remove(&self) -> Result<(), Failure> {
        let fds = self.member.node.fds().map_err(Failure::of(Operation::Remove))?;
        let dir = fds.source(self.member.side).map_err(Failure::of(Operation::Remove))?;
        remove_source((dir, &self.member.name), self.follow, &self.source)
    }
}

/// Removes a source, if it is still the copied entry.
pub(super) fn remove_source(
    (dir, name): DirName<'_>,
    follow: bool,
    source: &Meta,
) -> Result<(), Failure> {
    check_copied((dir, name), follow, source)?;
    dir::unlink(dir, name).map_err(Failure::of(Operation::Remove))
}

/// Checks that the current entry of a name is the copied one.
fn check_copied((dir, name): DirName<'_>, follow: bool, source: &Meta) -> Result<(), Failure> {
    let now = meta::of(dir, name, follow).map_err(Failure::of(Operation::Stat))?;
    // Not the change time: removing another name of the file changes it.
    let same = now.size == source.size && now.mtime == source.mtime;
    match same && now.identity() == source.identity() {
        true => Ok(()),
        false => Err(Failure::reason(Operation::Remove, "it was changed after it was copied")),
    }
}
