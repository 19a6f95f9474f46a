//! One entry of a transfer: its names on both sides, and the decision about it.

use super::attributes::Have;
use super::content::LARGE_BYTES_MIN;
use super::engine::{LocalEngine, OpenDir, Pass, Rest, TargetMode, Unit, Worker};
use super::guard::{self, INSIDE_SOURCE, Listed, Overlap};
use super::links::{Home, Leader, Member, Role};
use super::prune::{SourceRemoval, remove_source};
use super::report::{BeginTime, PathPair, Report, link_path};
use super::shared_copy::Helpers;
use super::source::{SourceDir, SourceFile, SourceName, Wish};
use super::target_dir::{DirFds, Node, TargetDir};
use crate::failure::{Failure, Stop, c_string};
use crate::policy::{
    Action, Append, Basis, Content, Delete, Grain, NOT_AS_PLANNED, Numbering, Reason, Symlinks,
    decide, is_unsafe_link, same_time,
};
use crate::publish::{self, DirName};
use hakobu_core::error::{DIRECTORY_STAYS, ErrorClass, Operation};
use hakobu_core::event::{Change, EntryPaths, Planned, Skip};
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_sys::{AsFd, BorrowedFd, dir, errno, file, meta};
use hakobu_tree::pool::Queue;
use std::ffi::{CStr, CString};
use std::ops::ControlFlow::{self, Break, Continue};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One name of a directory, on both sides.
#[derive(Clone, Copy)]
pub(super) struct DirEntry<'a> {
    /// Its directory.
    pub node: &'a Arc<Node>,
    /// The directory's descriptors.
    pub fds: &'a DirFds,
    /// Index of the source among the node's sources.
    pub side: usize,
    /// Its name in the source.
    pub name: &'a CStr,
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

impl<'a> DirEntry<'a> {
    /// Returns directory and name of the source.
    ///
    /// # Errors
    /// The directory is not open.
    pub(super) fn source(&self) -> Result<SourceName<'a>, Failure> {
        match self.fds.sources.get(self.side) {
            Some(dir) => Ok((dir.dir(), self.name)),
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
    pub(super) fn paths(&self) -> PathPair {
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
            let own = dir.fd().map(meta::of_fd);
            own.is_some_and(|own| own.is_ok_and(|own| own.identity() == info.meta.identity()))
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
            far: None,
        }
    }
}

/// An entry under decision. It stays in one place from the look at the source to the report: copies of it would be a
/// fortieth of the time of an unchanged entry.
pub(super) struct Decided<'a> {
    pub entry: DirEntry<'a>,
    /// The entry at the source, once it was examined.
    pub source: Meta,
    /// The source's descriptor, if it is open already.
    pub opened: Option<SourceFile>,
    /// The entry at the target.
    pub target: Option<Meta>,
    pub action: Action,
    /// The contents were compared and differ.
    pub compared: bool,
    pub begun: Option<BeginTime>,
    /// How it differs from the entry of a tree beside the target that its content is from.
    pub beside: Option<Change>,
}

impl<'a> Decided<'a> {
    /// Returns an entry of which nothing is known.
    pub(super) fn new(entry: DirEntry<'a>) -> Decided<'a> {
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
pub(super) enum EntryState {
    /// Nothing remains to be done.
    Finished,
    /// It is a directory that is opened by a unit of its own, or a name that waits for the first of its group.
    HandedOn,
}

/// Result of transferring an entry.
#[derive(Default)]
pub(super) struct EntryResult {
    /// Content bytes moved.
    pub bytes: u64,
    /// Those of them that were at the target already.
    pub matched: u64,
    /// The target is complete and the source unchanged: the source may be removed.
    pub checked: bool,
    /// Reason that the source is kept, unless something else reports it.
    pub kept: Option<Failure>,
    /// An attribute that could not be set.
    pub attributes: Option<Failure>,
    /// Owner or group was requested by name and we may not set it.
    pub unprivileged: bool,
}

impl EntryResult {
    /// Content that was written nowhere: `null:`, dry runs.
    pub(super) fn content(bytes: u64) -> EntryResult {
        EntryResult { bytes, ..EntryResult::default() }
    }

    /// A complete target.
    pub(super) fn checked(checked: bool) -> EntryResult {
        EntryResult { checked, ..EntryResult::default() }
    }
}

// Decisions about single entries: examines both sides, decides, and has the action applied.

/// Maximum number of times a target name is examined while other programs create and remove it: other runs with the
/// same target do, under one name after the other. A run that is asked to stop looks no further.
pub(super) const LOOKS_MAX: usize = 8;

/// Reason that a name is not transferred that is another name of this run at the target.
pub(super) const CLASH: &str =
    "another name of this run is the same name there: the target ignores differences of case";
/// Reason that an entry of the target is not replaced.
pub(super) const IS_SOURCE: &str = "its target is a source of the same run";

impl LocalEngine<'_> {
    /// Handles one name that is not known to be a directory (those are opened as units). `fresh`: nothing can exist
    /// at the target under that name.
    pub(super) fn entry(
        &self,
        worker: &mut Worker<'_>,
        entry: DirEntry<'_>,
        kind: Kind,
        fresh: bool,
    ) {
        let mut decided = Decided::new(entry);
        let outcome = match self.look(worker, &mut decided, kind, fresh) {
            Ok(Continue(())) => self.transfer(worker, &mut decided, fresh),
            Ok(Break(outcome)) => Ok(outcome),
            Err(stop) => Err(stop),
        };
        self.ended(worker, &decided.entry, outcome);
    }

    /// Counts an entry as handled, and reports the reason if it stopped early.
    pub(super) fn ended(
        &self,
        worker: &mut Worker<'_>,
        entry: &DirEntry<'_>,
        outcome: Result<EntryState, Stop>,
    ) {
        match outcome {
            Ok(EntryState::HandedOn) => {
                if let Ok((SourceDir::Far(dir), name)) = entry.source() {
                    dir.handed_on(name);
                }
                return;
            }
            Err(Stop::Asked) => return,
            Ok(EntryState::Finished) => {}
            Err(Stop::Reported) => entry.node.keep_source(),
            Err(Stop::Failed(failure)) => {
                entry.node.keep_source();
                self.fail(worker, failure, entry.paths());
            }
            Err(Stop::Changed) => {
                entry.node.keep_source();
                worker.totals.failed += 1;
                let reason = "it shrinks while it is being read; copy it again when it is at rest";
                self.reports.notice(Operation::Read, entry.paths(), reason, ErrorClass::Partial);
            }
        }
        worker.at.finished_name();
        if let Ok((SourceDir::Far(dir), name)) = entry.source() {
            dir.finished(name);
        }
    }

    /// Examines a source; directories continue as units of their own.
    pub(super) fn look(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
        kind: Kind,
        fresh: bool,
    ) -> Result<ControlFlow<EntryState>, Stop> {
        let policy = self.context.policy;
        let Decided { entry, source, opened, .. } = decided;
        let (source_dir, name) = entry.source()?;
        worker.at.step(Phase::Look, 1);
        // A regular file that is certain to be copied is opened first and examined through its descriptor: one call
        // fewer, and no race between examining and copying.
        let certain = !policy.existing && policy.max_size.or(policy.min_size).is_none();
        // Content of the other end comes when it is asked for.
        let is_here = source_dir.fd().is_some();
        let opens = kind == Kind::File
            && fresh
            && certain
            && is_here
            && self.context.mode != TargetMode::Told;
        let opening = match opens.then(|| self.context.open_source((source_dir, name), false)) {
            // A symlink took the place of the file since its directory was read: it is examined as one.
            Some(Err(error)) if errno::is(&error, errno::ELOOP) => None,
            opening => opening.transpose().map_err(Failure::of(Operation::Read))?,
        };
        let opens = opening.is_some();
        *source = match opening {
            Some(fd) => {
                let looked =
                    self.context.source_of_file(&fd).map_err(Failure::of(Operation::Stat))?;
                *opened = (looked.kind == Kind::File).then_some(fd);
                looked
            }
            None => {
                let follow = entry.follow || policy.symlinks == Symlinks::Follow;
                let looked = self.context.source_of((source_dir, name), follow);
                looked.map_err(|error| no_referent(entry, error))?
            }
        };
        if source.kind == Kind::Symlink && policy.copy_dirlinks {
            match self.context.source_of((source_dir, name), true) {
                Ok(named) if named.kind == Kind::Dir => *source = named,
                _ => {}
            }
        }
        let path = || entry.node.path_of(entry.target_name);
        if source.kind == Kind::Symlink
            && let Some(fd) = source_dir.fd()
            && self.context.is_unsafe_followed(fd, name, path)
        {
            *source = self
                .context
                .source_of((source_dir, name), true)
                .map_err(|error| no_referent(entry, error))?;
            entry.follow = true;
        }
        if !opens && source.kind != Kind::Symlink {
            entry.follow |= policy.symlinks == Symlinks::Follow
                || policy.copy_dirlinks && source.kind == Kind::Dir;
        }
        if let Some(chosen) = self.context.chosen
            && !chosen.is_still(&entry.node.path_of(entry.name), source)
        {
            self.reports.notice(Operation::Read, entry.paths(), NOT_AS_PLANNED, ErrorClass::Notice);
            return Ok(Break(EntryState::Finished));
        }
        if source.kind == Kind::Dir {
            return Ok(Break(self.push_dir(worker, entry)));
        }
        let is_again = match source_dir {
            SourceDir::Here(_) => false,
            SourceDir::Far(dir) => dir.get(name).is_ok_and(|entry| entry.is_looked_at()),
        };
        if !is_again {
            see(worker, source);
        }
        self.is_no_dir(entry.rest);
        Ok(Continue(()))
    }

    /// Decides about a source and applies the action.
    pub(super) fn transfer(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
        fresh: bool,
    ) -> Result<EntryState, Stop> {
        self.decide_and(worker, decided, fresh, LocalEngine::carry_out)
    }

    /// Decides about a source, and calls `act` if there is something to do; examines the target again if another
    /// program created the name in the meantime.
    pub(super) fn decide_and<'w, 'd>(
        &self,
        worker: &mut Worker<'w>,
        decided: &mut Decided<'d>,
        mut fresh: bool,
        mut act: impl FnMut(&Self, &mut Worker<'w>, &mut Decided<'d>) -> Result<EntryState, Stop>,
    ) -> Result<EntryState, Stop> {
        let mut looks = 1;
        loop {
            let outcome = match self.decide(worker, decided, fresh) {
                Ok(Continue(())) => act(self, worker, decided),
                Ok(Break(outcome)) => Ok(outcome),
                Err(stop) => Err(stop),
            };
            match outcome {
                // A temporary name that came and went has changed the directory's time.
                Err(Stop::Failed(failure))
                    if errno::is(&failure.error, errno::EEXIST)
                        && looks < LOOKS_MAX
                        && !self.is_over() =>
                {
                    if let Some(place) = decided.entry.place()
                        && self.may_be_ours(place)?
                    {
                        return Err(Failure::reason(Operation::Overwrite, CLASH).into());
                    }
                    decided.entry.node.touch();
                    fresh = false;
                    looks += 1;
                }
                other => return other,
            }
        }
    }

    /// Examines the target of a source and decides.
    pub(super) fn decide(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
        fresh: bool,
    ) -> Result<ControlFlow<EntryState>, Stop> {
        let policy = self.context.policy;
        let Decided { entry, source, target, action, compared, begun, .. } = decided;
        *begun = self.reports.begin();
        *compared = false;
        *target = match entry.place() {
            Some((dir, name)) if !fresh => {
                worker.at.step(Phase::Look, 1);
                there(self.context.target_of((dir, name), false))?
            }
            _ => None,
        };
        if let Some(target) = target
            && target.identity() == source.identity()
            && !self.parts_names(worker, entry, source)
        {
            return Ok(Break(EntryState::Finished));
        }
        if policy.cp_targets
            && let Some(target) = target
            && self.may_not_replace(worker, entry, source, target)
        {
            return Ok(Break(EntryState::Finished));
        }
        if let (Some(there), Some(dir)) = (&*target, entry.target)
            && dir.1.caseless
            && self.is_taken((entry.node, entry.fds), dir, entry.target_name, there)?
        {
            return Err(Failure::reason(Operation::Overwrite, CLASH).into());
        }
        if let Some(target) = target
            && self.unchanged.holds(source, target)
        {
            worker.count_unchanged(source);
            return Ok(Break(EntryState::Finished));
        }
        let grain = match target {
            Some(target) => self.grain(entry, source, target),
            None => Grain::NS,
        };
        *action = match self.may_not_make(source) {
            true => Action::Skip(Reason::Privileged),
            false => decide(source, target.as_ref(), policy, grain),
        };
        if let (Some(target), Action::Skip(Reason::Newer | Reason::Existing)) = (&*target, *action)
            && self.is_unfinished(entry, source, target)
        {
            *action = Action::Update;
        }
        if let (Some(there), Action::Update) = (&*target, *action)
            && there.kind == Kind::File
            && entry.node.overlap == Overlap::Listed
        {
            // It may not have been read yet.
            return Err(Failure::reason(Operation::Create, INSIDE_SOURCE).into());
        }
        let stays = policy.cp_targets || policy.remove_source_dirs;
        if stays
            && target.is_some_and(|there| there.kind == Kind::Dir)
            && !matches!(*action, Action::Skip(_))
        {
            // rsync removes it if it is empty; cp and mv never do.
            return Err(Failure::reason(Operation::Create, DIRECTORY_STAYS).into());
        }
        if !matches!(*action, Action::Skip(_)) {
            self.refuse(entry, source, target.as_ref())?;
        }
        if let (Some(_), Action::Compare | Action::Metadata) = (&*target, *action)
            && (policy.makes_anew() || policy.content == Content::HardLink)
        {
            *action = Action::Update;
        }
        if let (Some(there), Action::Update) = (&*target, *action)
            && there.kind == Kind::File
            && entry.node.overlap == Overlap::Listed
        {
            // It may not have been read yet.
            return Err(Failure::reason(Operation::Create, INSIDE_SOURCE).into());
        }
        if let (Some(target), Action::Update | Action::Compare) = (&*target, *action)
            && policy.attributes_only
            && !policy.makes_anew()
            && (source.kind, target.kind) == (Kind::File, Kind::File)
        {
            *action = Action::Metadata;
        }
        if let (Some(_), Some(ask)) = (&*target, &policy.ask)
            && !matches!(*action, Action::Skip(_))
            && !ask(&entry.target_path())
        {
            worker.count_left_out();
            self.report_left_out(entry, source);
            return Ok(Break(EntryState::Finished));
        }
        if let Action::Skip(reason) = *action
            && !(reason == Reason::Newer && policy.cp_targets && self.is_grouped(entry, source))
        {
            self.skipped(worker, entry, reason, (source, target.is_some()));
            return Ok(Break(EntryState::Finished));
        }
        if let Some(target) = target
            && policy.content != Content::Copy
            && !policy.links_replace()
            && source.kind != Kind::Symlink
            && target.kind != Kind::Dir
        {
            worker.totals.failed += 1;
            let paths = entry.paths();
            self.reports.notice(Operation::Link, paths, "File exists", ErrorClass::Partial);
            return Ok(Break(EntryState::Finished));
        }
        let large = source.kind == Kind::File && source.size >= LARGE_BYTES_MIN;
        if large
            && !matches!(*action, Action::Metadata | Action::Skip(_))
            && self.context.mode != TargetMode::Told
            && let Some(rest) = entry.rest
        {
            // Another idle worker may take the remaining names while this one copies.
            self.hand_over(rest);
        }
        if *action == Action::Compare && source.kind == Kind::File {
            *compared = match (entry.place(), entry.source()?) {
                (Some(to), (SourceDir::Here(dir), name)) => {
                    let from = (dir, name, entry.follow);
                    !worker.mover.is_same(&worker.at, from, to, source.size)?
                }
                (Some(to), (SourceDir::Far(dir), name)) => {
                    let told = dir.get(name).map_err(Failure::of(Operation::Compare))?;
                    // Content that has come was asked for because the two differ.
                    told.has_come()
                        || !worker.mover.has_hash(&worker.at, to, source.size, told.hash)?
                }
                (None, _) => true,
            };
            *action = if *compared { Action::Update } else { Action::Metadata };
        }
        if policy.append != Append::No
            && *action == Action::Update
            && let Some(target) = target
            && (source.kind, target.kind) == (Kind::File, Kind::File)
            && target.size >= source.size
        {
            worker.totals.skipped += 1;
            return Ok(Break(EntryState::Finished));
        }
        Ok(Continue(()))
    }

    /// Asks the other end for the content of an entry that needs it and lacks it; it is handled again when that comes.
    fn asks_for_content(
        &self,
        worker: &mut Worker<'_>,
        decided: &Decided<'_>,
    ) -> Result<bool, Stop> {
        let (SourceDir::Far(dir), name) = decided.entry.source()? else { return Ok(false) };
        let policy = self.context.policy;
        let needs = decided.source.kind == Kind::File
            && matches!(decided.action, Action::Create | Action::Update)
            && self.context.is_real()
            && !policy.attributes_only;
        if !needs {
            return Ok(false);
        }
        let entry = dir.get(name).map_err(Failure::of(Operation::Read))?;
        if !entry.lacks_content() || self.basis_has_content(worker, decided)? {
            return Ok(false);
        }
        if entry.is_looked_at() {
            // It was in a tree beside the target, which has changed since.
            return Err(Failure::code(Operation::Read, errno::EAGAIN).into());
        }
        if let (Some(there), Some((dir, name))) = (decided.target, decided.entry.place())
            && policy.appends(&decided.source, &there)
            && there.size > 0
        {
            // A source is removed only if all of its target was compared or written.
            let prefix = match policy.append == Append::Verified || policy.remove_source_files {
                true => {
                    worker.at.step(Phase::Look, 1);
                    let fd = file::open_read(dir, name, false);
                    let fd = fd.map_err(Failure::of(Operation::Compare))?;
                    worker.mover.hash_of(&worker.at, fd.as_fd(), there.size)?
                }
                false => None,
            };
            let is_known =
                prefix.is_some() || policy.append == Append::Blindly && !policy.remove_source_files;
            if is_known {
                entry.asks_from(there.size, prefix);
            }
        }
        // Until the content comes; the unit that is made then takes the hold over.
        decided.entry.node.hold();
        self.ask_for_delta(decided, &entry);
        entry.looked_at(Wish::Content);
        Ok(true)
    }

    /// Applies the decision, or links the entry if another name of its file is copied.
    pub(super) fn carry_out(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
    ) -> Result<EntryState, Stop> {
        if self.asks_for_content(worker, decided)? {
            return Ok(EntryState::HandedOn);
        }
        if !self.is_grouped(&decided.entry, &decided.source) {
            return self.apply(worker, decided).map(|()| EntryState::Finished);
        }
        let (entry, source, policy) = (decided.entry, decided.source, self.context.policy);
        let ready = match decided.action {
            // With `cp -u` this target stays.
            Action::Skip(_) => true,
            // Everything is copied again in any case.
            _ if policy.ignore_times && !policy.update => true,
            Action::Metadata => true,
            // The texts of symlinks are compared when the action is applied.
            Action::Compare => decided.target.is_some(),
            _ => false,
        };
        // A file may be followed from any number of symlinks.
        let names = if policy.links_followed() { u64::MAX } else { source.nlink };
        let role = self.groups.join(source.identity(), names, ready, || {
            entry.node.hold();
            entry.member()
        });
        match role {
            Role::Waits => Ok(EntryState::HandedOn),
            Role::Follows(leader) if self.is_stale(&leader, &source) => {
                self.apply(worker, decided).map(|()| EntryState::Finished)
            }
            Role::Follows(_) if self.stays_newer(decided) => {
                self.skipped(worker, &entry, Reason::Newer, (&source, true));
                Ok(EntryState::Finished)
            }
            Role::Follows(leader) => {
                self.link_to(worker, decided, &leader)?;
                Ok(EntryState::Finished)
            }
            Role::First => self.lead(worker, decided),
            Role::Leads(member) => {
                self.lead_late(worker, &member, source.identity(), entry.queue);
                Ok(EntryState::HandedOn)
            }
        }
    }

    /// Applies the decision about the first name of a group, and links those that wait for it.
    pub(super) fn lead(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
    ) -> Result<EntryState, Stop> {
        let (entry, source) = (decided.entry, decided.source);
        let kept = entry.node.kept_sources.load(Ordering::Relaxed);
        let result = self.apply(worker, decided);
        let is_there = || match (self.context.policy.basis, entry.place()) {
            (Basis::Compare, Some((dir, name))) if self.context.is_real() => {
                meta::of(dir, name, false).is_ok()
            }
            // A dry run leaves it to the other tree as well.
            (Basis::Compare, _) => !decided.beside.is_some_and(|beside| beside.is_as_beside()),
            _ => true,
        };
        let leader = (result.is_ok() && is_there()).then(|| Leader {
            home: Home::Here(Arc::clone(entry.node)),
            copied: (source.size, source.mtime),
            name: entry.target_name.into(),
            checked: entry.node.kept_sources.load(Ordering::Relaxed) == kept,
            transferred: decided.action != Action::Metadata
                && decided.beside.is_none_or(|beside| beside.transferred),
        });
        self.release_waiting(worker, source.identity(), leader, entry.queue);
        result.map(|()| EntryState::Finished)
    }

    /// Returns whether a device is skipped because only the superuser may create one, as in rsync. cp and mv fail
    /// there.
    fn may_not_make(&self, source: &Meta) -> bool {
        let policy = self.context.policy;
        source.kind.is_device()
            && !self.context.is_root()
            && !policy.cp_targets
            && !policy.remove_source_dirs
    }

    /// Returns whether the target is a half-written file of another run; reports the first one.
    fn is_unfinished(&self, entry: &DirEntry<'_>, source: &Meta, target: &Meta) -> bool {
        let Some((dir, name)) = entry.place() else { return false };
        let ledger = &self.publisher.drafts.direct.ledger;
        let unfinished = ledger.is_unfinished(source, target, dir, name);
        if unfinished && ledger.is_first_report() {
            self.reports.warn(publish::unfinished(&entry.target_path()));
        }
        unfinished
    }

    /// Refuses what would lose content to this run itself.
    fn refuse(
        &self,
        entry: &DirEntry<'_>,
        source: &Meta,
        target: Option<&Meta>,
    ) -> Result<(), Failure> {
        let guard = self.context.guard;
        if self.context.policy.remove_source_files {
            let listed = guard.refusal(entry.node.overlap, target.is_some());
            let is_source = target.is_some_and(|there| guard.is_source(there.identity()));
            if let Some(reason) = listed.or(is_source.then_some(IS_SOURCE)) {
                return Err(Failure::reason(Operation::Create, reason));
            }
        }
        let policy = self.context.policy;
        if source.kind != Kind::Dir
            && target.is_some()
            && !(policy.backup && policy.numbering == Numbering::Numbered)
            && entry.is_argument()
            && guard.is_made_by_argument(|| entry.node.path_of(entry.target_name))
        {
            return Err(Failure::reason(Operation::Overwrite, ""));
        }
        Ok(())
    }

    /// In a directory of the target that ignores case: returns whether an existing entry belongs to another name of this
    /// run, and claims it for this name otherwise.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub(super) fn is_taken(
        &self,
        (node, fds): (&Node, &DirFds),
        (dir, info): (BorrowedFd<'_>, &TargetDir),
        name: &CStr,
        there: &Meta,
    ) -> Result<bool, Failure> {
        let claim = || self.context.guard.claim(info.meta.identity(), there.identity(), name);
        if node.names.contains(name) {
            claim();
            return Ok(false);
        }
        let listed = guard::listed((dir, name), there.ino).map_err(Failure::of(Operation::List))?;
        Ok(match listed {
            // Some file systems list all names in one case. Names of one file are no clash.
            Listed::Exactly => !claim() && there.nlink < 2,
            // The source's entry of that very name is the one that belongs there.
            Listed::As(real) if self.is_in_source((node, fds), &real) => true,
            Listed::As(_) | Listed::Not => !claim(),
        })
    }

    fn is_in_source(&self, (node, fds): (&Node, &DirFds), name: &CStr) -> bool {
        (0..fds.sources.len()).any(|side| {
            node.selects(side, name)
                && fds.source(side).is_ok_and(|dir| dir.look(name, false).is_ok())
        })
    }

    /// As [`LocalEngine::is_taken`], for a directory of the target that was opened or created.
    pub(super) fn is_dir_taken(
        &self,
        parent: &Node,
        parent_fds: &DirFds,
        name: &CStr,
        opened: &TargetDir,
    ) -> Result<bool, Failure> {
        let Some(above) = parent.target_dir().filter(|above| above.caseless) else {
            return Ok(false);
        };
        match parent_fds.target() {
            Some(dir) if self.context.pass == Pass::Transfer => {
                self.is_taken((parent, parent_fds), (dir, &above), name, &opened.meta)
            }
            _ => Ok(false),
        }
    }

    /// Returns whether a name that was absent and exists now may be another name of this run: it is listed under another
    /// spelling, or its directory ignores case. That is remembered of the device.
    pub(super) fn may_be_ours(&self, (dir, name): DirName<'_>) -> Result<bool, Failure> {
        let Some(there) = there(meta::of(dir, name, false))? else { return Ok(false) };
        let listed = guard::listed((dir, name), there.ino).map_err(Failure::of(Operation::List))?;
        // It may have been removed since.
        let other = match listed {
            Listed::Exactly => {
                let same = guard::is_same_in_other_case(dir, name);
                same.map_err(Failure::of(Operation::Stat))?
            }
            Listed::As(_) => true,
            Listed::Not => meta::of(dir, name, false).is_ok(),
        };
        if other {
            self.context.guard.learn(there.dev);
        }
        Ok(other)
    }

    /// Reports a directory that is another name of this run at the target.
    pub(super) fn clash(&self, paths: PathPair) {
        self.reports.notice(Operation::Overwrite, paths, CLASH, ErrorClass::Partial);
    }

    /// Handles a target that is the same file as its source. Returns whether it is replaced nevertheless: `--backup` and
    /// `--remove-destination` make a file of its own of one of two names.
    fn parts_names(&self, worker: &mut Worker<'_>, entry: &DirEntry<'_>, source: &Meta) -> bool {
        let policy = self.context.policy;
        let is_link = |(dir, name): SourceName<'_>| {
            dir.look(name, false).is_ok_and(|own| own.kind == Kind::Symlink)
        };
        let copies = policy.cp_targets && policy.content != Content::HardLink;
        let is_symlink = source.kind == Kind::Symlink;
        let parts = copies
            && policy.makes_anew()
            && match entry.is_one_name() {
                true => policy.backup && policy.forced,
                // A name that is reached through a symlink would be the only one.
                false if is_symlink => policy.backup,
                false => entry.source().is_ok_and(|place| !is_link(place)),
            };
        if parts {
            return true;
        }
        // Two names of one symlink are the same already.
        let is_same_already =
            policy.content == Content::HardLink || is_symlink && !entry.is_one_name();
        let fails = policy.cp_targets && !is_same_already || policy.remove_source_files;
        if fails {
            worker.totals.failed += 1;
            let reason = "source and target are the same file";
            self.reports.notice(Operation::Create, entry.paths(), reason, ErrorClass::Partial);
        } else {
            worker.totals.skipped += 1;
        }
        false
    }

    /// Refuses, as cp does, to replace an entry by a link to itself, and to back up a target under the source's name.
    /// Returns whether that is so; it is reported.
    fn may_not_replace(
        &self,
        worker: &mut Worker<'_>,
        entry: &DirEntry<'_>,
        source: &Meta,
        target: &Meta,
    ) -> bool {
        let policy = self.context.policy;
        let onto_itself = || {
            source.kind != Kind::Symlink
                && target.kind == Kind::Symlink
                && !(policy.backup && policy.forced)
                && entry.is_one_name()
        };
        let links_to_it = policy.content == Content::HardLink
            && source.kind == Kind::Symlink
            && !policy.backup
            && leads_to(entry, target);
        let is_kept =
            policy.attributes_only && !policy.makes_anew() && publish::is_node(target.kind);
        let (operation, reason) = if onto_itself() {
            (Operation::Create, "source and target are the same file")
        } else if links_to_it || is_kept {
            worker.count_left_out();
            return true;
        } else if self.is_its_backup(entry, source) {
            (Operation::Create, "backing up the target might destroy the source")
        } else {
            return false;
        };
        worker.totals.failed += 1;
        self.reports.notice(operation, entry.paths(), reason, ErrorClass::Partial);
        true
    }

    /// Returns whether a source has the name that a simple backup of its target would get.
    fn is_its_backup(&self, entry: &DirEntry<'_>, source: &Meta) -> bool {
        let policy = self.context.policy;
        if !policy.backup || policy.numbering == Numbering::Numbered {
            return false;
        }
        let (own, name) = (entry.name.to_bytes(), entry.target_name.to_bytes());
        own.strip_prefix(name) == Some(&policy.suffix)
            && entry.place().is_some_and(|(dir, _)| {
                meta::of(dir, entry.name, true)
                    .is_ok_and(|there| there.identity() == source.identity())
            })
    }

    /// Returns whether a source may have other names in the transfer that become hard links. A symlink that may be
    /// skipped as unsafe cannot lead a group.
    pub(super) fn is_grouped(&self, entry: &DirEntry<'_>, source: &Meta) -> bool {
        let policy = self.context.policy;
        if !policy.hard_links || policy.content == Content::HardLink {
            return false;
        }
        let followed = || {
            policy.links_followed()
                && source.kind == Kind::File
                && (policy.symlinks == Symlinks::Follow || entry.is_argument())
        };
        !(policy.safe_links && source.kind == Kind::Symlink)
            && (source.nlink > 1
                || policy.remove_source_files && self.groups.knows(source.identity())
                || followed())
    }

    /// Counts and reports a skipped entry. `exists`: whether the target has it.
    pub(super) fn skipped(
        &self,
        worker: &mut Worker<'_>,
        entry: &DirEntry<'_>,
        reason: Reason,
        (source, exists): (&Meta, bool),
    ) {
        worker.count_left_out();
        self.report_left_out(entry, source);
        if let Some(why) = self.remark(reason, exists) {
            // rsync names a file that is too large or too small as in the source.
            let is_sized = matches!(why, Skip::TooLarge | Skip::TooSmall);
            let name = if is_sized { entry.name } else { entry.target_name };
            self.reports.skipped(&|| entry.node.path_of(name), source.kind, why);
            return;
        }
        let reason = match reason {
            Reason::Symlink if self.context.policy.cp_targets => "it is a symlink",
            Reason::Symlink => "it is a symlink (-l keeps it, -L copies what it points to)",
            Reason::NonRegular if self.context.policy.cp_targets => "it is not a regular file",
            Reason::NonRegular => "it is not a regular file (-D keeps devices and FIFOs)",
            Reason::Privileged => "making a device requires root",
            _ => return,
        };
        let paths = (Some(entry.source_path()), None);
        self.reports.notice(Operation::Read, paths, reason, ErrorClass::Notice);
    }

    /// Returns the reason that `--info=skip` shows. As in rsync, `--existing` and `--ignore-existing` are named before
    /// the limits of sizes.
    fn remark(&self, reason: Reason, exists: bool) -> Option<Skip> {
        let policy = self.context.policy;
        Some(match reason {
            Reason::TooLarge | Reason::TooSmall if policy.existing && !exists => Skip::NotExisting,
            Reason::TooLarge | Reason::TooSmall if policy.ignore_existing && exists => {
                Skip::Existing
            }
            Reason::NotExisting => Skip::NotExisting,
            Reason::Existing => Skip::Existing,
            Reason::Newer => Skip::Newer,
            Reason::TooLarge => Skip::TooLarge,
            Reason::TooSmall => Skip::TooSmall,
            _ => return None,
        })
    }

    /// Queues an entry that turned out to be a directory.
    fn push_dir(&self, worker: &mut Worker<'_>, entry: &DirEntry<'_>) -> EntryState {
        let policy = self.context.policy;
        if !policy.recurse && !policy.dirs {
            worker.count_left_out();
            let reason = "is a directory (use -r)";
            let class = if policy.cp_targets { ErrorClass::Partial } else { ErrorClass::Notice };
            if class == ErrorClass::Partial {
                worker.totals.failed += 1;
            }
            let paths = (Some(entry.source_path()), None);
            self.reports.notice(Operation::Read, paths, reason, class);
            return EntryState::Finished;
        }
        worker.at.lane.lost();
        self.push_open_dir(entry.queue, entry.as_dir());
        EntryState::HandedOn
    }

    /// Returns the coarser granularity of the times of an entry's two ends, where it matters.
    pub(super) fn grain(&self, entry: &DirEntry<'_>, source: &Meta, target: &Meta) -> Grain {
        let from = (source, entry.source().ok().and_then(|(dir, _)| dir.fd()));
        let to = (target, entry.target.map(|(dir, _)| dir));
        let (policy, probes) = (self.context.policy, self.publisher.probes());
        let (grain, named) = self.grains.of(policy, from, to, probes);
        if named {
            entry.node.touch();
        }
        grain
    }
}

/// Returns the metadata of an entry that may be absent.
pub(super) fn there(looked: std::io::Result<Meta>) -> Result<Option<Meta>, Failure> {
    match looked {
        Ok(meta) => Ok(Some(meta)),
        Err(error) if errno::is(&error, errno::ENOENT) => Ok(None),
        Err(error) => Err(Failure { operation: Operation::Stat, error }),
    }
}

/// Returns the failure to examine a source. A dangling symlink that is followed is not a vanished file.
fn no_referent(entry: &DirEntry<'_>, error: std::io::Error) -> Failure {
    let is_link = |(dir, name): SourceName<'_>| dir.look(name, false).is_ok();
    if errno::is(&error, errno::ENOENT) && entry.source().is_ok_and(is_link) {
        return Failure::reason(Operation::Read, "symlink has no referent");
    }
    Failure { operation: Operation::Stat, error }
}

/// Counts a source that was examined.
fn see(worker: &mut Worker<'_>, source: &Meta) {
    worker.at.lane.sized();
    let totals = &mut worker.totals;
    match source.kind {
        Kind::File => {
            totals.seen_files += 1;
            totals.seen_bytes += source.size;
        }
        // As in rsync, the length of its text.
        Kind::Symlink => {
            totals.seen_links += 1;
            totals.seen_bytes += source.size;
        }
        _ => totals.seen_nodes += 1,
    }
}

/// Returns whether a symlink of the source is, directly or through others, the entry of the target that it would
/// replace.
pub(super) fn leads_to(entry: &DirEntry<'_>, there: &Meta) -> bool {
    let Ok((dir, name)) = entry.source() else { return false };
    let Some(dir) = dir.fd() else { return false };
    let is_it = |looked: std::io::Result<Meta>| {
        looked.is_ok_and(|looked| looked.identity() == there.identity())
    };
    is_it(meta::of(dir, name, true))
        || dir::read_link(dir, name).is_ok_and(|text| is_it(meta::of(dir, &text, false)))
}

// Applies the action decided for one entry, and handles its consequences: the source may be removed, the target's
// directory was changed, the entry is reported.

impl LocalEngine<'_> {
    /// Applies an action to one entry that is not a directory.
    pub(super) fn apply(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
    ) -> Result<(), Stop> {
        let entry = decided.entry;
        if let Action::Skip(reason) = decided.action {
            // It leads its group as it is.
            self.skipped(worker, &entry, reason, (&decided.source, decided.target.is_some()));
            return Ok(());
        }
        let policy = self.context.policy;
        let text = match decided.source.kind {
            _ if policy.content == Content::HardLink => None,
            Kind::Symlink => match self.link_text(worker, &entry)? {
                Some(text) => Some(text),
                None => return Ok(()),
            },
            _ => None,
        };
        if let (Some(text), Action::Compare, Some((dir, name))) =
            (&text, decided.action, entry.place())
        {
            let same = self.context.target_text((dir, name)).is_ok_and(|there| there == *text);
            decided.action = if same { Action::Metadata } else { Action::Update };
        }
        let replaces = matches!(decided.action, Action::Create | Action::Update);
        if replaces
            && text.is_some()
            // A backup keeps it.
            && !(policy.cp_targets && policy.backup)
            && decided.target.is_some_and(|there| leads_to(&entry, &there))
        {
            let reason = "source and target are the same file";
            return Err(Failure::reason(Operation::Create, reason).into());
        }
        // What a tree of `--compare-dest` has replaces nothing.
        if policy.basis != Basis::Compare || policy.basis_dirs.is_empty() {
            self.clear(worker, decided)?;
        }
        if !policy.basis_dirs.is_empty() && self.use_basis(worker, decided, text.as_deref())? {
            return Ok(());
        }
        if decided.action == Action::Metadata && decided.target.is_some() && entry.target.is_some()
        {
            return self.keep_content(worker, decided, text);
        }
        self.clear(worker, decided)?;
        let change = self.change(worker, decided);
        let opened = decided.opened.take();
        let (source, target) = (&decided.source, decided.target.as_ref());
        let done = match (&text, source.kind) {
            _ if self.context.mode == TargetMode::Told => EntryResult::content(source.size),
            _ if policy.content == Content::HardLink => {
                if let Some(place) = entry.place() {
                    let (dir, name) = entry.source()?;
                    let dir = dir.here().map_err(Failure::of(Operation::Link))?;
                    let from = ((dir, name), entry.follow);
                    self.publisher.link(&worker.at, from, place, target, Some(entry.node))?;
                }
                EntryResult::checked(true)
            }
            (Some(text), _) => self.specials.make(worker, &entry, source, target, Some(text))?,
            (None, Kind::File) => match policy.content {
                Content::Copy | Content::HardLink => {
                    self.files.copy(worker, &entry, opened, source, target)?
                }
                Content::Symlink => {
                    // The target of the link is the source's absolute path.
                    let path = std::path::absolute(entry.source_path())
                        .and_then(|path| c_string(path.as_os_str().as_bytes()))
                        .map_err(Failure::of(Operation::Create))?;
                    self.specials.make(worker, &entry, source, target, Some(&path))?
                }
            },
            _ => self.specials.make(worker, &entry, source, target, None)?,
        };
        let (bytes_moved, link) = (done.bytes - done.matched, text.as_deref().map(link_path));
        let change = match decided.beside {
            Some(beside) => Change { created: change.created, ..beside },
            None => change,
        };
        let report = Report { change, bytes_moved, link, begun: decided.begun, digest: None };
        self.arrived(worker, decided, report, done);
        Ok(())
    }

    /// Returns the target text of a symlink; `None` if it is skipped as unsafe.
    fn link_text(
        &self,
        worker: &mut Worker<'_>,
        entry: &DirEntry<'_>,
    ) -> Result<Option<CString>, Failure> {
        worker.at.step(Phase::Read, 1);
        let text =
            self.context.source_text(entry.source()?).map_err(Failure::of(Operation::Read))?;
        if self.context.policy.safe_links
            && is_unsafe_link(text.to_bytes(), &entry.node.path_of(entry.target_name))
        {
            worker.count_left_out();
            let reason = "ignoring unsafe symlink, which leads out of the tree (--safe-links)";
            let paths = (Some(entry.source_path()), None);
            self.reports.notice(Operation::Read, paths, reason, ErrorClass::Notice);
            return Ok(None);
        }
        Ok(Some(text))
    }

    /// Returns the differences that an itemized line of a new or replaced entry shows.
    fn change(&self, worker: &Worker<'_>, decided: &Decided<'_>) -> Change {
        match decided.target.filter(|there| there.kind == decided.source.kind) {
            Some(there) => self.change_to(worker, decided, &there),
            None => {
                let transferred = decided.source.kind == Kind::File;
                Change { created: true, transferred, ..Change::default() }
            }
        }
    }

    /// Returns the differences to an entry of the same type that the line of a transferred one shows.
    pub(super) fn change_to(
        &self,
        worker: &Worker<'_>,
        decided: &Decided<'_>,
        there: &Meta,
    ) -> Change {
        let Decided { source, compared, .. } = decided;
        let mut change = self.time_change(source, there);
        if source.kind == Kind::File {
            change.transferred = true;
            change.checksum = *compared || self.context.policy.checksum;
            change.size = source.size != there.size;
        } else {
            change.checksum = true;
        }
        if self.reports.wants_items() {
            self.owner_change(worker, decided, there, &mut change);
        }
        change
    }

    /// Adds to `change` the differences in mode and owner between an existing target and the wanted state.
    pub(super) fn owner_change(
        &self,
        worker: &Worker<'_>,
        decided: &Decided<'_>,
        there: &Meta,
        change: &mut Change,
    ) {
        let dir_info = decided.entry.target.map(|(_, info)| info);
        let want = worker.attributes.want(&decided.source, Some(there), dir_info);
        let Change { mode, owner, group, .. } = want.change_of(there);
        (change.mode, change.owner, change.group) = (mode, owner, group);
    }

    /// Returns the difference in time of a newly created entry.
    pub(super) fn time_change(&self, source: &Meta, target: &Meta) -> Change {
        let times = self.context.policy.preserve.times;
        let window_s = self.context.policy.modify_window_s;
        let same = same_time(source.mtime, target.mtime, window_s, Grain::NS);
        Change { time: times && !same, time_now: !times, ..Change::default() }
    }

    /// Counts and reports an entry that is complete at the target, and handles the consequences.
    pub(super) fn arrived(
        &self,
        worker: &mut Worker<'_>,
        decided: &Decided<'_>,
        report: Report,
        done: EntryResult,
    ) {
        let Decided { entry, source, .. } = decided;
        entry.node.touch();
        let totals = &mut worker.totals;
        if source.kind == Kind::File {
            totals.files += 1;
            totals.files_created += u64::from(report.change.created);
            totals.bytes += done.bytes;
            totals.bytes_matched += done.matched;
        } else {
            totals.links_created += 1;
        }
        let mut done = done;
        self.tell_attributes(worker, entry, &mut done);
        self.report(entry, source, report);
        self.finish(worker, decided, done);
    }

    /// Handles an entry whose content at the target is right: at most attributes are changed.
    fn keep_content(
        &self,
        worker: &mut Worker<'_>,
        decided: &Decided<'_>,
        text: Option<CString>,
    ) -> Result<(), Stop> {
        let Decided { entry, source, target, .. } = decided;
        let (Some(target), Some((_, info)), Some(to)) = (target, entry.target, entry.place())
        else {
            return Ok(());
        };
        let want = worker.attributes.want(source, Some(target), Some(info));
        let ends = (entry.source()?, to);
        let grain = self.grain(entry, source, target);
        worker.attributes.within(entry.node.rules.as_ref());
        let change = worker.attributes.changes(ends, target, &want, grain)?;
        let mut done = EntryResult::checked(true);
        if change.any() {
            if self.context.is_real() {
                let (have, xattrs) = (Have::from(target), change.acl || change.xattr);
                let (at, kind) = (&worker.at, source.kind);
                let settled = worker.attributes.settle_named(at, ends, kind, &want, have, xattrs);
                done.attributes = settled.err();
                done.checked = done.attributes.is_none();
            }
            worker.totals.metadata += 1;
        } else {
            worker.count_unchanged(source);
        }
        done.unprivileged = worker.attributes.count_unprivileged(source, &want);
        self.tell_attributes(worker, entry, &mut done);
        if change.any() || self.reports.items_unchanged {
            let (link, begun) = (text.as_deref().map(link_path), decided.begun);
            self.report(entry, source, Report { change, link, begun, ..Report::default() });
        }
        self.finish(worker, decided, done);
        Ok(())
    }

    /// Reports an entry whose target got nothing new, if such events are requested.
    pub(super) fn report_unchanged(
        &self,
        decided: &Decided<'_>,
        change: Change,
        text: Option<&CStr>,
    ) {
        if self.reports.items_unchanged {
            let (link, begun) = (text.map(link_path), decided.begun);
            let report = Report { change, link, begun, ..Report::default() };
            self.report(&decided.entry, &decided.source, report);
        }
    }

    /// Reports an entry, if events of entries are requested.
    pub(super) fn report(&self, entry: &DirEntry<'_>, source: &Meta, mut report: Report) {
        if self.reports.plans {
            self.reports.planned(&Planned {
                change: report.change,
                meta: source,
                folder: (entry.node.id, entry.side),
                name: entry.name.to_bytes(),
                renamed: entry.name != entry.target_name,
                paths: &|| EntryPaths {
                    path: entry.node.path_of(entry.name),
                    source: entry.source_path(),
                    target: entry.target_path(),
                },
            });
        } else if self.reports.wants_items() {
            report.digest = self.digest_of(entry, source, &report.change);
            self.reports.item(&entry.node.path_of(entry.name), source, entry.paths(), report);
        }
    }

    /// Reports attributes that could not be set, once: before the entry's own event, which then is no success.
    fn tell_attributes(
        &self,
        worker: &mut Worker<'_>,
        entry: &DirEntry<'_>,
        done: &mut EntryResult,
    ) {
        let unprivileged = std::mem::take(&mut done.unprivileged);
        if let Some(failure) = done.attributes.take() {
            self.fail(worker, failure, entry.paths());
        } else if unprivileged {
            worker.totals.failed += 1;
            let reason = "only the superuser may give files away";
            self.reports.notice(Operation::SetOwner, entry.paths(), reason, ErrorClass::Partial);
        }
    }

    /// Reports an entry that is left out, if events of unchanged entries are requested.
    fn report_left_out(&self, entry: &DirEntry<'_>, source: &Meta) {
        if self.reports.items_unchanged {
            let change = Change { left_out: true, ..Change::default() };
            self.report(entry, source, Report { change, ..Report::default() });
        }
    }

    /// Reports attributes that could not be set and sources that are kept; removes the source if that is requested
    /// and its target is verified.
    pub(super) fn finish(
        &self,
        worker: &mut Worker<'_>,
        decided: &Decided<'_>,
        mut done: EntryResult,
    ) {
        let entry = &decided.entry;
        self.tell_attributes(worker, entry, &mut done);
        if let Some(failure) = done.kept {
            self.fail(worker, failure, (Some(entry.source_path()), None));
        }
        if let (Some((dir, info)), true) = (entry.target, self.context.is_real())
            && info.caseless
            && let Ok(there) = meta::of(dir, entry.target_name, false)
        {
            let directory = info.meta.identity();
            let ours = self.context.guard.claim(directory, there.identity(), entry.target_name);
            let is_other = decided.source.kind != Kind::Dir && there.kind == Kind::Dir;
            if is_other || !ours && there.nlink < 2 {
                // Another name has found it before this one was recorded, and may replace it.
                worker.totals.failed += 1;
                entry.node.keep_source();
                return self.clash(entry.paths());
            }
        }
        if entry.is_argument() && decided.source.kind != Kind::Dir {
            self.context.guard.argument_made(|| entry.node.path_of(entry.target_name));
        }
        if !(self.context.policy.remove_source_files && self.context.is_real()) {
            return;
        }
        if !done.checked {
            return entry.node.keep_source();
        }
        if let Ok((SourceDir::Far(dir), name)) = entry.source() {
            // The other end removes it, at once or when nothing needs it there any more.
            let Ok(far) = dir.get(name) else { return };
            if !self.context.policy.delay_updates {
                return far.arrived();
            }
            far.arrives_later();
            entry.node.hold();
            let (member, source, follow) = (entry.member(), decided.source, entry.follow);
            let removal = SourceRemoval { member, source, follow, far: Some(far) };
            return self.removals.lock().push(removal);
        }
        // Of a name that several sources have, the first one keeps the others from being taken as long as it is there.
        // So do the further names of a file, whose links are kept. A directory that is removed as well waits for none of them.
        let is_linked = self.context.policy.hard_links
            && decided.source.nlink > 1
            && !self.context.policy.remove_source_dirs;
        if self.context.policy.removes_sources_late() || entry.node.sides.len() > 1 || is_linked {
            entry.node.hold();
            let (member, source, follow) = (entry.member(), decided.source, entry.follow);
            return self.removals.lock().push(SourceRemoval { member, source, follow, far: None });
        }
        worker.at.step(Phase::Remove, 2);
        let removed = entry.source().and_then(|(dir, name)| {
            let dir = dir.here().map_err(Failure::of(Operation::Remove))?;
            remove_source((dir, name), entry.follow, &decided.source)
        });
        match removed {
            Ok(()) => worker.totals.removed_sources += 1,
            Err(failure) => {
                entry.node.keep_source();
                self.fail(worker, failure, (Some(entry.source_path()), None));
            }
        }
    }

    /// Removes a directory at the place of an entry.
    fn clear(&self, worker: &mut Worker<'_>, decided: &mut Decided<'_>) -> Result<(), Stop> {
        if decided.target.is_some_and(|there| there.kind == Kind::Dir) {
            self.make_way(worker, &decided.entry)?;
            decided.target = None;
        }
        Ok(())
    }

    /// Removes a directory at the place of a file: only if it is empty, or if `--force` or `--delete` allows it.
    pub(super) fn make_way(
        &self,
        worker: &mut Worker<'_>,
        entry: &DirEntry<'_>,
    ) -> Result<(), Stop> {
        let Some((dir, name)) = entry.place() else { return Ok(()) };
        let force = self.context.policy.force || self.context.policy.delete != Delete::No;
        if !self.context.is_real() {
            let tells = self.context.mode == TargetMode::Told && !self.reports.plans;
            let mut full = || {
                let open = dir::open(dir, name, false).map_err(Failure::of(Operation::List))?;
                self.glance(worker, &open).map(|(empty, _)| !empty)
            };
            return match tells && !force && full()? {
                true => Err(Failure::code(Operation::Remove, errno::ENOTEMPTY).into()),
                false => Ok(()),
            };
        }
        worker.at.step(Phase::Remove, 1);
        match dir::rmdir(dir, name) {
            Ok(()) => return Ok(()),
            // Another run was faster.
            Err(error) if errno::is_gone(&error) => return Ok(()),
            Err(error) if !force => {
                return Err(Failure { operation: Operation::Remove, error }.into());
            }
            Err(_) => {}
        }
        // What is in it may be a source that is still to be read.
        if let Some(reason) = self.context.guard.refusal(entry.node.overlap, true) {
            return Err(Failure::reason(Operation::Create, reason).into());
        }
        self.pruning.remove(worker, entry.node, entry.fds, name, Kind::Dir);
        match meta::of(dir, name, false) {
            Err(error) if errno::is(&error, errno::ENOENT) => Ok(()),
            Err(error) => Err(Failure { operation: Operation::Stat, error }.into()),
            Ok(_) => Err(Failure::code(Operation::Remove, errno::ENOTEMPTY).into()),
        }
    }
}
