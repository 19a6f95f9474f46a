//! One entry of a transfer: its names on both sides, and the decision about it.

use super::content::Helpers;
use super::links::Member;
use super::node::{Fds, Node, TargetDir};
use super::report::{Begun, Paths};
use super::unit::{OpenDir, Rest, Unit};
use crate::failure::Failure;
use crate::policy::Action;
use crate::publish::DirName;
use hakobu_core::error::Operation;
use hakobu_core::event::Change;
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, errno, meta};
use hakobu_tree::pool::Queue;
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One name of a directory, on both sides.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    /// Its directory.
    pub node: &'a Arc<Node>,
    /// The directory's descriptors.
    pub fds: &'a Fds,
    /// Index of the source among the node's sources.
    pub side: usize,
    /// Its name in the source.
    pub name: &'a CStr,
    /// Its name at the target.
    pub target_name: &'a CStr,
    /// A symlink in the source is followed.
    pub follow: bool,
    /// The target directory, if there is one.
    pub target: Option<(BorrowedFd<'a>, &'a TargetDir)>,
    /// The queue of the worker that handles it.
    pub queue: &'a Queue<'a, Unit>,
    /// The names that the same worker handles after it.
    pub rest: Option<&'a Rest<'a>>,
}

impl<'a> Entry<'a> {
    /// Returns directory and name of the source.
    ///
    /// # Errors
    /// The directory is not open.
    pub(super) fn source(&self) -> Result<DirName<'a>, Failure> {
        match self.fds.sources.get(self.side) {
            Some(dir) => Ok(((**dir).as_fd(), self.name)),
            None => Err(Failure::code(Operation::Read, errno::EBADF)),
        }
    }

    /// Returns directory and name of the target, if there is one.
    pub(super) fn place(&self) -> Option<DirName<'a>> {
        self.target.map(|(dir, _)| (dir, self.target_name))
    }

    /// Returns whether it is named by an argument, not found in a directory.
    pub(super) fn is_argument(&self) -> bool {
        self.rest.is_some_and(|rest| rest.chunk.is_root)
            || self.node.parent.is_none() && !self.node.listed.load(Ordering::Relaxed)
    }

    /// Returns the source path, starting as the user typed it.
    pub(super) fn source_path(&self) -> PathBuf {
        self.node.source_path(self.side, self.name)
    }

    /// Returns the target path, starting as the user typed it.
    pub(super) fn target_path(&self) -> PathBuf {
        self.node.target_path(self.target_name)
    }

    /// Returns both paths, for reports.
    pub(super) fn paths(&self) -> Paths {
        (Some(self.source_path()), Some(self.target_path()))
    }

    /// Returns the workers that may help with a large file.
    pub(super) fn helpers(&self) -> Option<&'a dyn Helpers> {
        self.rest.map(|rest| rest.queue as &dyn Helpers)
    }

    /// Returns the entry as a group member, kept until the first name of its group is at the target.
    pub(super) fn member(&self) -> Member {
        let renamed = self.name != self.target_name;
        Member {
            node: Arc::clone(self.node),
            side: self.side,
            name: self.name.to_owned(),
            target_name: renamed.then(|| self.target_name.into()),
            follow: self.follow,
        }
    }

    /// Returns whether source and target are one name in one directory.
    pub(super) fn is_one_name(&self) -> bool {
        let Ok((dir, name)) = self.source() else { return false };
        let same = |info: &TargetDir| {
            meta::of_fd(dir).is_ok_and(|own| own.identity() == info.meta.identity())
        };
        name == self.target_name && self.target.is_some_and(|(_, info)| same(info))
    }

    /// Returns the entry as a directory to open.
    pub(super) fn as_dir(&self) -> OpenDir {
        OpenDir {
            parent: Arc::clone(self.node),
            side: self.side,
            name: self.name.into(),
            target_name: (self.name != self.target_name).then(|| self.target_name.into()),
            follow: self.follow,
            implied: false,
            lists: self.rest.is_some_and(|rest| rest.chunk.is_root && rest.chunk.follow),
        }
    }
}

/// An entry under decision. It stays in one place from the look at the source to the report: copies of it would be a
/// fortieth of the time of an unchanged entry.
pub(super) struct Decided<'a> {
    pub entry: Entry<'a>,
    /// The entry at the source, once it was examined.
    pub source: Meta,
    /// The source's descriptor, if it is open already.
    pub opened: Option<OwnedFd>,
    /// The entry at the target.
    pub target: Option<Meta>,
    pub action: Action,
    /// The contents were compared and differ.
    pub compared: bool,
    pub begun: Option<Begun>,
    /// How it differs from the entry of a tree beside the target that its content is from.
    pub beside: Option<Change>,
}

impl<'a> Decided<'a> {
    /// Returns an entry of which nothing is known.
    pub(super) fn new(entry: Entry<'a>) -> Decided<'a> {
        Decided {
            entry,
            source: Meta::bare(Kind::Unknown, 0, Time::default()),
            opened: None,
            target: None,
            action: Action::Create,
            compared: false,
            begun: None,
            beside: None,
        }
    }
}

/// State of an entry when its handler returns.
pub(super) enum Outcome {
    /// Nothing remains to be done.
    Finished,
    /// It is a directory that is opened by a unit of its own, or a name that waits for the first of its group.
    HandedOn,
}

/// Result of transferring an entry.
#[derive(Default)]
pub(super) struct Done {
    /// Content bytes moved.
    pub bytes: u64,
    /// The target is complete and the source unchanged: the source may be removed.
    pub checked: bool,
    /// Reason that the source is kept, unless something else reports it.
    pub kept: Option<Failure>,
    /// An attribute that could not be set.
    pub attributes: Option<Failure>,
    /// Owner or group was requested by name and we may not set it.
    pub unprivileged: bool,
}

impl Done {
    /// Content that was written nowhere: `null:`, dry runs.
    pub(super) fn content(bytes: u64) -> Done {
        Done { bytes, ..Done::default() }
    }

    /// A complete target.
    pub(super) fn checked(checked: bool) -> Done {
        Done { checked, ..Done::default() }
    }
}
