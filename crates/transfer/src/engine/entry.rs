//! One entry: look at both sides, decide, act, tell.

use super::data::Stop;
use super::links::{Leader, Member, Role};
use super::node::{Failure, Fds, Node, TargetDir};
use super::pool::Queue;
use super::walk::{Enter, Rest, Unit};
use super::{Engine, State, TargetMode};
use crate::error::{Class, Operation};
use crate::event::LARGE_BYTES_MIN;
use crate::meter::Phase;
use crate::policy::{Action, Reason, Symlinks, decide};
use crate::unit::{Kind, Meta};
use hakobu_sys::{BorrowedFd, errno, file, meta};
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One name of a directory, on both sides.
pub struct Entry<'a> {
    /// Its directory.
    pub node: &'a Arc<Node>,
    /// The directory's descriptors.
    pub fds: &'a Fds,
    /// Which of the node's sources.
    pub side: usize,
    /// Its name in the source.
    pub name: &'a CStr,
    /// Its name at the target.
    pub target_name: &'a CStr,
    /// A symlink in the source is looked through.
    pub follow: bool,
    /// The target directory, where there is one.
    pub target: Option<(BorrowedFd<'a>, TargetDir)>,
    /// The names that the same worker would handle after it.
    pub(super) rest: Option<&'a Rest<'a>>,
}

impl Entry<'_> {
    /// The source directory.
    pub fn source_dir(&self) -> Result<BorrowedFd<'_>, Failure> {
        self.fds.source(self.side).map_err(Failure::of(Operation::Read))
    }

    /// The source as the user would spell it.
    pub fn source_path(&self) -> PathBuf {
        self.node.source_path(self.side, self.name)
    }

    /// The target as the user would spell it.
    pub fn target_path(&self) -> PathBuf {
        self.node.target_path(self.target_name)
    }

    pub(super) fn member(&self) -> Member {
        let renamed = self.name != self.target_name;
        Member {
            node: Arc::clone(self.node),
            side: self.side,
            name: self.name.to_owned(),
            target_name: renamed.then(|| self.target_name.into()),
        }
    }
}

/// How far handling an entry came.
enum Outcome {
    /// Nothing is left to do.
    Finished,
    /// A directory that a unit of its own enters, or a name that waits for the first of its group.
    HandedOn,
}

/// What became of an entry.
#[derive(Default)]
pub struct Done {
    /// Content bytes moved.
    pub bytes: u64,
    /// The target is complete and the source unchanged: it may be removed.
    pub checked: bool,
    /// An attribute that could not be set.
    pub attributes: Option<Failure>,
    /// Owner or group asked for by name and not ours to set.
    pub unprivileged: bool,
}

impl Done {
    /// Content that went nowhere: `null:`, dry runs.
    pub fn content(bytes: u64) -> Done {
        Done { bytes, ..Done::default() }
    }
}

impl Engine<'_> {
    /// Handles one name that is not known to be a directory (those are entered as units).
    /// `fresh`: nothing can be at the target under that name.
    pub(super) fn entry(
        &self,
        state: &mut State,
        entry: &mut Entry<'_>,
        kind: Kind,
        fresh: bool,
        queue: Option<&Queue<'_, Unit>>,
    ) {
        let tried = match self.try_entry(state, entry, kind, fresh, queue) {
            // Somebody made the name in the meantime: look at what is there now.
            Err(Stop::Failed(failure)) if fresh && errno::is(&failure.error, errno::EEXIST) => {
                self.try_entry(state, entry, Kind::Unknown, false, queue)
            }
            other => other,
        };
        match tried {
            Ok(Outcome::Finished) => self.finished(state),
            Ok(Outcome::HandedOn) => {}
            Err(stop) => self.stopped(state, entry, stop),
        }
    }

    pub(super) fn stopped(&self, state: &mut State, entry: &Entry<'_>, stop: Stop) {
        match stop {
            Stop::Asked => return,
            Stop::Failed(failure) => {
                self.fail(state, failure, Some(entry.source_path()), Some(entry.target_path()));
            }
            Stop::Changed => {
                state.totals.failed += 1;
                let reason = "it shrinks while it is being read; copy it again when it is at rest";
                let (source, target) = (Some(entry.source_path()), Some(entry.target_path()));
                self.notice(Operation::Read, source, target, reason, Class::Partial);
            }
        }
        self.finished(state);
    }

    fn try_entry(
        &self,
        state: &mut State,
        entry: &mut Entry<'_>,
        kind: Kind,
        fresh: bool,
        queue: Option<&Queue<'_, Unit>>,
    ) -> Result<Outcome, Stop> {
        let policy = self.policy;
        let begun = self.begin();
        let mut opened = None;
        let source_dir = entry.source_dir()?;
        self.step(&state.station, Phase::Look, 1);
        // A regular file that is certainly copied is opened first and looked at through its
        // descriptor: one call less, and no moment between the look and the copy.
        let opens = kind == Kind::File && fresh && self.mode != TargetMode::Told;
        let mut source = if opens {
            let fd = file::open_read(source_dir, entry.name, false)
                .map_err(Failure::of(Operation::Read))?;
            let source = meta::of_fd(&fd).map_err(Failure::of(Operation::Stat))?;
            opened = (source.kind == Kind::File).then_some(fd);
            source
        } else {
            let follow = entry.follow || policy.symlinks == Symlinks::Follow;
            meta::of(source_dir, entry.name, follow)
                .map_err(|error| self.no_referent(entry, error))?
        };
        if source.kind == Kind::Symlink && policy.copy_dirlinks {
            match meta::of(source_dir, entry.name, true) {
                Ok(named) if named.kind == Kind::Dir => source = named,
                _ => {}
            }
        }
        if !opens && source.kind != Kind::Symlink {
            entry.follow |= policy.symlinks == Symlinks::Follow
                || policy.copy_dirlinks && source.kind == Kind::Dir;
        }
        if source.kind == Kind::Dir {
            return Ok(match queue {
                Some(queue) => self.push_dir(state, entry, queue),
                None => Outcome::Finished,
            });
        }
        self.see(state, &source);
        let target = match entry.target {
            Some((dir, _)) if !fresh => {
                self.step(&state.station, Phase::Look, 1);
                match meta::of(dir, entry.target_name, false) {
                    Ok(target) => Some(target),
                    Err(error) if errno::is(&error, errno::ENOENT) => None,
                    Err(error) => return Err(Failure { operation: Operation::Stat, error }.into()),
                }
            }
            _ => None,
        };
        if let Some(target) = &target
            && target.identity() == source.identity()
        {
            self.same_file(state, entry);
            return Ok(Outcome::Finished);
        }
        let mut action = decide(&source, target.as_ref(), policy);
        if let (Some(_), Some(ask)) = (&target, &policy.ask)
            && !matches!(action, Action::Skip(_))
            && !ask(&entry.target_path())
        {
            state.totals.skipped += 1;
            return Ok(Outcome::Finished);
        }
        if let Action::Skip(reason) = action {
            self.skipped(state, entry, &source, reason);
            return Ok(Outcome::Finished);
        }
        let large = source.kind == Kind::File && source.size >= LARGE_BYTES_MIN;
        if large
            && action != Action::Metadata
            && self.mode != TargetMode::Told
            && let (Some(queue), Some(rest)) = (queue, entry.rest)
        {
            // The next names do not wait for its end where somebody else is free.
            self.hand_over(rest, queue);
        }
        let mut compared = false;
        if action == Action::Compare && source.kind == Kind::File {
            compared = !self.same_content(state, entry, source.size)?;
            action = if compared { Action::Update } else { Action::Metadata };
        }
        if !self.is_grouped(&source) {
            let target = target.as_ref();
            self.act(state, entry, opened, &source, target, action, compared, begun)?;
            return Ok(Outcome::Finished);
        }
        match self.links.join(source.identity(), source.nlink, || {
            entry.node.hold();
            entry.member()
        }) {
            Role::Waits => Ok(Outcome::HandedOn),
            Role::Follows(leader) => {
                self.follow(state, entry, &source, target.as_ref(), &leader, begun)?;
                Ok(Outcome::Finished)
            }
            Role::First => {
                let kept = entry.node.kept_sources.load(Ordering::Relaxed);
                let result = self.act(
                    state,
                    entry,
                    opened,
                    &source,
                    target.as_ref(),
                    action,
                    compared,
                    begun,
                );
                let leader = result.is_ok().then(|| Leader {
                    node: Arc::clone(entry.node),
                    name: entry.target_name.into(),
                    checked: entry.node.kept_sources.load(Ordering::Relaxed) == kept,
                });
                self.release_waiting(state, source.identity(), leader, queue);
                result.map(|()| Outcome::Finished)
            }
        }
    }

    /// A symlink that is followed and leads nowhere is no vanished file.
    fn no_referent(&self, entry: &Entry<'_>, error: std::io::Error) -> Failure {
        let is_link = |fd| meta::of(fd, entry.name, false).is_ok();
        if errno::is(&error, errno::ENOENT) && entry.source_dir().is_ok_and(is_link) {
            let error = std::io::Error::other("symlink has no referent");
            return Failure { operation: Operation::Read, error };
        }
        Failure { operation: Operation::Stat, error }
    }

    pub(super) fn same_file(&self, state: &mut State, entry: &Entry<'_>) {
        if self.policy.cp_targets || self.policy.remove_source_files {
            state.totals.failed += 1;
            let (source, target) = (Some(entry.source_path()), Some(entry.target_path()));
            let reason = "source and target are the same file";
            self.notice(Operation::Create, source, target, reason, Class::Partial);
        } else {
            state.totals.skipped += 1;
        }
    }

    /// Whether a source may have other names in the transfer that become hard links. A symlink
    /// that may be left out as unsafe cannot lead a group.
    pub(super) fn is_grouped(&self, source: &Meta) -> bool {
        let policy = self.policy;
        policy.hard_links
            && !(policy.safe_links && source.kind == Kind::Symlink)
            && (source.nlink > 1
                || policy.remove_source_files && self.links.knows(source.identity()))
    }

    /// Takes back [`Engine::see`] for a file that is looked at anew.
    pub(super) fn unsee(&self, state: &mut State, source: &Meta) {
        state.totals.seen_files -= 1;
        state.totals.seen_bytes -= source.size;
    }

    pub(super) fn see(&self, state: &mut State, source: &Meta) {
        let totals = &mut state.totals;
        match source.kind {
            Kind::File => {
                totals.seen_files += 1;
                totals.seen_bytes += source.size;
            }
            Kind::Symlink => totals.seen_links += 1,
            _ => totals.seen_nodes += 1,
        }
    }

    pub(super) fn skipped(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        source: &Meta,
        reason: Reason,
    ) {
        state.totals.skipped += 1;
        let reason = match reason {
            Reason::Symlink => "it is a symlink (-l keeps it, -L copies what it names)",
            Reason::NonRegular => "it is not a regular file (-D keeps devices and FIFOs)",
            _ => return,
        };
        let _ = source;
        self.notice(Operation::Read, Some(entry.source_path()), None, reason, Class::Notice);
    }

    fn push_dir(&self, state: &mut State, entry: &Entry<'_>, queue: &Queue<'_, Unit>) -> Outcome {
        if !self.policy.recurse && !self.policy.dirs {
            state.totals.skipped += 1;
            let reason = "it is a directory (-r copies it)";
            let class = if self.policy.cp_targets { Class::Partial } else { Class::Notice };
            if class == Class::Partial {
                state.totals.failed += 1;
            }
            self.notice(Operation::Read, Some(entry.source_path()), None, reason, class);
            return Outcome::Finished;
        }
        self.push_enter(queue, Enter::of(entry));
        Outcome::HandedOn
    }
}
