//! Removal of sources: at once, or when nothing looks them up any more.

use super::links::Member;
use crate::failure::Failure;
use crate::publish::DirName;
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
    /// Calls `call` with directory and name of the source.
    fn at<T>(
        &self,
        operation: Operation,
        call: impl FnOnce(DirName<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let fds = self.member.node.fds().map_err(Failure::of(operation))?;
        let dir = fds.source(self.member.side).map_err(Failure::of(operation))?;
        call((dir, &self.member.name))
    }

    pub(super) fn is_link(&self) -> bool {
        let stat = Operation::Stat;
        let look = |(dir, name): DirName<'_>| meta::of(dir, name, false).map_err(Failure::of(stat));
        self.follow && self.at(stat, look).is_ok_and(|own| own.kind == Kind::Symlink)
    }

    /// Checks that a symlink still leads to the copied entry.
    pub(super) fn look(&self) -> Result<(), Failure> {
        self.at(Operation::Stat, |place| check_copied(place, true, &self.source))
    }

    pub(super) fn unlink(&self) -> Result<(), Failure> {
        self.at(Operation::Remove, unlink)
    }

    pub(super) fn remove(&self) -> Result<(), Failure> {
        self.at(Operation::Remove, |place| remove_source(place, self.follow, &self.source))
    }
}

/// Removes a source, if it is still the copied entry.
pub(super) fn remove_source(
    place: DirName<'_>,
    follow: bool,
    source: &Meta,
) -> Result<(), Failure> {
    check_copied(place, follow, source)?;
    unlink(place)
}

fn unlink((dir, name): DirName<'_>) -> Result<(), Failure> {
    dir::unlink(dir, name).map_err(Failure::of(Operation::Remove))
}

/// Checks that the current entry of a name is the copied one.
fn check_copied((dir, name): DirName<'_>, follow: bool, source: &Meta) -> Result<(), Failure> {
    // No cache answers: the name may be another view of the target, which has just been written.
    let now = meta::of_now(dir, name, follow).map_err(Failure::of(Operation::Stat))?;
    // Removing another name of the file changes the change time, too.
    let same = now.size == source.size
        && now.mtime == source.mtime
        && (now.ctime == source.ctime || now.nlink != source.nlink);
    match same && now.identity() == source.identity() {
        true => Ok(()),
        false => Err(Failure::reason(Operation::Remove, "it was changed after it was copied")),
    }
}
