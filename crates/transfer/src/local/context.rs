//! The parameters of a run that every part of the engine uses.

use super::fake::{self, Names};
use super::guard::Guard;
use crate::policy::{Chosen, Policy, Symlinks, is_unsafe_link};
use hakobu_core::control::Control;
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, file, meta};
use std::ffi::{CStr, CString};
use std::io;

/// The pass of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Transfers entries; with `--delete-during` also removes extraneous ones.
    Transfer,
    /// Only removes extraneous entries.
    Delete,
}

/// Mode of applying actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetMode {
    /// Carried out.
    Real,
    /// Only reported (`--dry-run`, `--list-only`).
    Told,
    /// Contents are read and discarded (`null:`).
    Null,
}

/// The parameters of a run; each part has a copy.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// Decides about each entry.
    pub policy: &'a Policy,
    /// Can stop the run early.
    pub control: &'a Control,
    /// Sources and names of this run.
    pub guard: &'a Guard,
    /// The pass of the walk.
    pub pass: Pass,
    /// Mode of applying actions.
    pub mode: TargetMode,
    /// Entries that an earlier run chose, as they were then.
    pub chosen: Option<&'a Chosen>,
    /// Permission bits that new entries do not get.
    pub umask: u32,
    /// Effective user ID.
    pub euid: u32,
    /// Effective group ID.
    pub egid: u32,
}

impl Context<'_> {
    /// Returns whether no new entry may be begun.
    pub(super) fn is_over(&self) -> bool {
        self.control.is_stopped()
    }

    /// Returns whether the run writes to the target.
    pub(super) fn is_real(&self) -> bool {
        self.mode == TargetMode::Real
    }

    /// Returns whether a symlink is treated as the directory that it points to. `path`: its own path in the transfer.
    pub(super) fn is_followed_dir(
        &self,
        dir_fd: BorrowedFd<'_>,
        name: &CStr,
        kind: Kind,
        path: impl FnOnce() -> Vec<u8>,
    ) -> bool {
        if !matches!(kind, Kind::Symlink | Kind::Unknown) {
            return false;
        }
        let follows = self.policy.copy_dirlinks
            || self.policy.symlinks == Symlinks::Follow
            || self.is_unsafe_followed(dir_fd, name, path);
        (follows || kind == Kind::Unknown)
            && meta::of(dir_fd, name, follows).is_ok_and(|meta| meta.kind == Kind::Dir)
    }

    /// Returns whether a symlink points out of the tree and is replaced by its referent.
    pub(super) fn is_unsafe_followed(
        &self,
        dir_fd: BorrowedFd<'_>,
        name: &CStr,
        path: impl FnOnce() -> Vec<u8>,
    ) -> bool {
        self.policy.copy_unsafe_links
            && dir::read_link(dir_fd, name)
                .is_ok_and(|text| is_unsafe_link(text.to_bytes(), &path()))
    }

    /// Opens a source for reading.
    pub(super) fn open_source(
        &self,
        (dir_fd, name): (BorrowedFd<'_>, &CStr),
        follow: bool,
    ) -> std::io::Result<OwnedFd> {
        match self.policy.open_noatime {
            true => file::open_read_quietly(dir_fd, name, follow),
            false => file::open_read(dir_fd, name, follow),
        }
    }

    /// Returns whether root-only operations are performed at the target, or kept there for `--fake-super`.
    pub(super) fn is_root(&self) -> bool {
        self.policy.fake.target || self.euid == 0 && !self.policy.as_user
    }

    /// Returns whether attributes of the source are read that only root may read, or that are kept for everybody.
    pub(super) fn reads_as_root(&self) -> bool {
        self.policy.fake.source || self.euid == 0 && !self.policy.as_user
    }

    /// Returns the metadata of an entry of a source; `follow` resolves a symlink.
    pub(super) fn source_of(
        &self,
        (dir, name): (BorrowedFd<'_>, &CStr),
        follow: bool,
    ) -> io::Result<Meta> {
        let looked = fake::of(self.policy.fake.source, (dir, name), follow)?;
        match self.reads_device(&looked) {
            true => content_of(looked, file::open_read(dir, name, follow)?),
            false => Ok(looked),
        }
    }

    /// Returns the metadata of an open source.
    pub(super) fn source_of_fd(&self, fd: impl AsFd) -> io::Result<Meta> {
        let looked = fake::of_fd(self.policy.fake.source, fd.as_fd())?;
        match self.reads_device(&looked) {
            true => content_of(looked, fd),
            false => Ok(looked),
        }
    }

    /// Returns whether a source is a device that is copied as a file.
    fn reads_device(&self, source: &Meta) -> bool {
        self.policy.copy_devices && source.kind.is_device()
    }

    /// Returns the metadata of an entry of the target or of a tree beside it; `follow` resolves a symlink.
    pub(super) fn target_of(
        &self,
        place: (BorrowedFd<'_>, &CStr),
        follow: bool,
    ) -> io::Result<Meta> {
        fake::of(self.policy.fake.target, place, follow)
    }

    /// Returns the metadata of an open entry of the target.
    pub(super) fn target_of_fd(&self, fd: impl AsFd) -> io::Result<Meta> {
        fake::of_fd(self.policy.fake.target, fd.as_fd())
    }

    /// Returns the text of a symlink of a source.
    pub(super) fn source_text(&self, place: (BorrowedFd<'_>, &CStr)) -> io::Result<CString> {
        fake::link_text(self.policy.fake.source, place)
    }

    /// Returns the text of a symlink of the target or of a tree beside it.
    pub(super) fn target_text(&self, place: (BorrowedFd<'_>, &CStr)) -> io::Result<CString> {
        fake::link_text(self.policy.fake.target, place)
    }

    /// Returns how the extended attributes of the sources are named.
    pub(super) fn source_names(&self) -> Names {
        if self.policy.fake.source { Names::Source } else { Names::Plain }
    }

    /// Returns how the extended attributes of the target are named.
    pub(super) fn target_names(&self) -> Names {
        if self.policy.fake.target { Names::Target } else { Names::Plain }
    }
}

/// Returns the metadata of a device as that of a file with its content. As in rsync it is of now, because the times of a
/// node tell nothing of its content; what has no size is empty: it may have no end.
fn content_of(device: Meta, fd: impl AsFd) -> io::Result<Meta> {
    let size = file::seek_size(fd)?;
    let (blocks, mtime) = (size.div_ceil(512), Time::now());
    Ok(Meta { kind: Kind::File, size, blocks, mtime, rdev: 0, ..device })
}
