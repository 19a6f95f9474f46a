//! Examines arguments before anything is created: their types, symlinks in their paths, and those that are missing
//! (`--delete-missing-args`).

use super::{Numbered, Roots};
use crate::failure::{Failure, c_string};
use crate::plan::Argument;
use crate::plan::path::{c_path, open_folder};
use crate::policy::{MissingArgs, Symlinks};
use hakobu_core::error::Operation;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::links::Links;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, meta};
use std::ffi::CStr;
use std::io;

impl Roots<'_, '_> {
    /// Opens the folder of an argument.
    pub(super) fn open_folder(&self, argument: &Argument) -> io::Result<OwnedFd> {
        let below = argument
            .top
            .as_deref()
            .and_then(|top| Some((top, argument.folder.strip_prefix(top).ok()?)));
        match (below, &self.policy.links) {
            (Some((top, below)), links)
                if *links != Links::Any && !below.as_os_str().is_empty() =>
            {
                let below = c_path(below)?;
                // Sources are not confined.
                Links::Trusted.open_dir(open_folder(top)?.as_fd(), &below)
            }
            _ => open_folder(&argument.folder),
        }
    }

    /// Rejects a disallowed symlink in the path of a listed name.
    pub(super) fn check_link(
        &self,
        argument: &Argument,
        dir: BorrowedFd<'_>,
        name: &CStr,
    ) -> io::Result<()> {
        match argument.top {
            Some(_) => self.policy.links.check(dir, name),
            None => Ok(()),
        }
    }

    /// Of names that are the same at the target only the first existing one is transferred, as in rsync. Earlier ones
    /// stay in the list, to be reported.
    pub(super) fn first_wins(&self, group: &[Numbered<'_>], alone: &mut [bool]) {
        let there = |(_, argument): &Numbered<'_>| self.look(argument).is_ok();
        let after = group.iter().position(there).map_or(group.len(), |first| first + 1);
        for (number, argument) in group.iter().skip(after) {
            if let Some(alone) = alone.get_mut(*number)
                && self.look(argument).is_ok()
            {
                *alone = false;
            }
        }
    }

    /// Returns the metadata of an argument: with a slash at its end of a directory, also through a symlink.
    pub(super) fn look(&self, argument: &Argument) -> io::Result<Meta> {
        let path = c_path(&argument.path())?;
        self.look_at(dir::cwd(), &path, argument)
    }

    pub(super) fn look_at(
        &self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        argument: &Argument,
    ) -> io::Result<Meta> {
        if argument.follow && !argument.dir_only {
            // rsync's rule: the slash counts if it leads to a directory.
            match meta::of(dir, name, true) {
                Ok(named) if named.kind == Kind::Dir => {
                    self.check_link(argument, dir, name)?;
                    return Ok(named);
                }
                _ => {}
            }
        }
        let follow = argument.dir_only
            || self.policy.follow_args
            || self.policy.symlinks == Symlinks::Follow;
        let source = meta::of(dir, name, follow)?;
        if argument.dir_only && source.kind != Kind::Dir {
            return Err(io::Error::from_raw_os_error(errno::ENOTDIR));
        }
        Ok(source)
    }

    /// Returns whether an argument is copied as a directory.
    pub(super) fn is_dir(&self, argument: &Argument) -> io::Result<bool> {
        let source = self.look(argument)?;
        let path = c_path(&argument.path())?;
        let dirlink = self.policy.copy_dirlinks
            && meta::of(dir::cwd(), &path, true).is_ok_and(|named| named.kind == Kind::Dir);
        Ok(source.kind == Kind::Dir || dirlink)
    }

    pub(super) fn is_followed(&self, argument: &Argument) -> bool {
        let leads = || self.look(argument).is_ok_and(|source| source.kind == Kind::Dir);
        self.policy.follow_args || argument.follow && leads()
    }

    /// Returns whether a missing argument is removed from the target.
    pub(super) fn is_removed(&self, failure: &Failure) -> bool {
        self.policy.missing_args == MissingArgs::Delete && errno::is(&failure.error, errno::ENOENT)
    }

    /// Removes the target entry of a missing argument.
    pub(super) fn remove_missing(&mut self, argument: &Argument) -> Result<(), Failure> {
        let Some((last, above)) = argument.names.split_last() else { return Ok(()) };
        let c = |name: &[u8]| c_string(name).map_err(Failure::of(Operation::Remove));
        let mut node = self.base(argument, last)?;
        for (depth, name) in above.iter().enumerate() {
            let path = argument.names[..=depth].join(&b'/');
            match self.implied(argument, &path, &node, &c(name)?)? {
                Some(next) => node = next,
                None => return Ok(()),
            }
        }
        let name = c(last)?;
        self.engine.remove_missing(&node, self.place.name.as_deref().unwrap_or(&name))
    }
}
