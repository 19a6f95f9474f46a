//! Decisions about single entries: examines both sides, decides, and has the action applied.

use super::content::LARGE_BYTES_MIN;
use super::context::{Pass, TargetMode};
use super::entry::{Decided, Entry, Outcome};
use super::guard::{self, Listed};
use super::links::{Home, Leader, Role};
use super::node::{Fds, Node, TargetDir};
use super::report::Paths;
use super::state::Engine;
use super::worker::Worker;
use crate::failure::{Failure, Stop};
use crate::policy::{
    Action, Append, Basis, Content, Grain, NOT_AS_PLANNED, Numbering, Reason, Symlinks, decide,
};
use crate::publish::{self, DirName};
use hakobu_core::error::{Class, DIRECTORY_STAYS, Operation};
use hakobu_core::event::Skip;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{BorrowedFd, dir, errno, meta};
use std::ffi::CStr;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum number of times a target name is examined while other programs create and remove it: other runs with the
/// same target do, under one name after the other. A run that is asked to stop looks no further.
pub(super) const LOOKS_MAX: usize = 8;

/// Reason that a name is not transferred that is another name of this run at the target.
pub(super) const CLASH: &str =
    "another name of this run is the same name there: the target ignores differences of case";
/// Reason that an entry of the target is not replaced.
pub(super) const IS_SOURCE: &str = "its target is a source of the same run";

impl Engine<'_> {
    /// Handles one name that is not known to be a directory (those are opened as units). `fresh`: nothing can exist
    /// at the target under that name.
    pub(super) fn entry(&self, worker: &mut Worker<'_>, entry: Entry<'_>, kind: Kind, fresh: bool) {
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
        entry: &Entry<'_>,
        outcome: Result<Outcome, Stop>,
    ) {
        match outcome {
            Ok(Outcome::HandedOn) | Err(Stop::Asked) => return,
            Ok(Outcome::Finished) => {}
            Err(Stop::Failed(failure)) => {
                entry.node.keep_source();
                self.fail(worker, failure, entry.paths());
            }
            Err(Stop::Changed) => {
                entry.node.keep_source();
                worker.totals.failed += 1;
                let reason = "it shrinks while it is being read; copy it again when it is at rest";
                self.reports.notice(Operation::Read, entry.paths(), reason, Class::Partial);
            }
        }
        worker.at.finished_name();
    }

    /// Examines a source; directories continue as units of their own.
    pub(super) fn look(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
        kind: Kind,
        fresh: bool,
    ) -> Result<ControlFlow<Outcome>, Stop> {
        let policy = self.context.policy;
        let Decided { entry, source, opened, .. } = decided;
        let (source_dir, name) = entry.source()?;
        worker.at.step(Phase::Look, 1);
        // A regular file that is certain to be copied is opened first and examined through its descriptor: one call
        // fewer, and no race between examining and copying.
        let certain = !policy.existing && policy.max_size.or(policy.min_size).is_none();
        let opens = kind == Kind::File && fresh && certain && self.context.mode != TargetMode::Told;
        let opening = match opens.then(|| self.context.open_source((source_dir, name), false)) {
            // A symlink took the place of the file since its directory was read: it is examined as one.
            Some(Err(error)) if errno::is(&error, errno::ELOOP) => None,
            opening => opening.transpose().map_err(Failure::of(Operation::Read))?,
        };
        let opens = opening.is_some();
        *source = match opening {
            Some(fd) => {
                let looked =
                    self.context.source_of_fd(&fd).map_err(Failure::of(Operation::Stat))?;
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
        if source.kind == Kind::Symlink && self.context.is_unsafe_followed(source_dir, name, path) {
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
            self.reports.notice(Operation::Read, entry.paths(), NOT_AS_PLANNED, Class::Notice);
            return Ok(Break(Outcome::Finished));
        }
        if source.kind == Kind::Dir {
            return Ok(Break(self.push_dir(worker, entry)));
        }
        see(worker, source);
        self.is_no_dir(entry.rest);
        Ok(Continue(()))
    }

    /// Decides about a source and applies the action.
    pub(super) fn transfer(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
        fresh: bool,
    ) -> Result<Outcome, Stop> {
        self.decide_and(worker, decided, fresh, Engine::carry_out)
    }

    /// Decides about a source, and calls `act` if there is something to do; examines the target again if another
    /// program created the name in the meantime.
    pub(super) fn decide_and<'w, 'd>(
        &self,
        worker: &mut Worker<'w>,
        decided: &mut Decided<'d>,
        mut fresh: bool,
        mut act: impl FnMut(&Self, &mut Worker<'w>, &mut Decided<'d>) -> Result<Outcome, Stop>,
    ) -> Result<Outcome, Stop> {
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
    ) -> Result<ControlFlow<Outcome>, Stop> {
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
            return Ok(Break(Outcome::Finished));
        }
        if policy.cp_targets
            && let Some(target) = target
            && self.may_not_replace(worker, entry, source, target)
        {
            return Ok(Break(Outcome::Finished));
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
            return Ok(Break(Outcome::Finished));
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
            worker.totals.skipped += 1;
            return Ok(Break(Outcome::Finished));
        }
        if let Action::Skip(reason) = *action
            && !(reason == Reason::Newer && policy.cp_targets && self.is_grouped(entry, source))
        {
            self.skipped(worker, entry, reason, (source, target.is_some()));
            return Ok(Break(Outcome::Finished));
        }
        if let Some(target) = target
            && policy.content != Content::Copy
            && !policy.links_replace()
            && source.kind != Kind::Symlink
            && target.kind != Kind::Dir
        {
            worker.totals.failed += 1;
            let paths = entry.paths();
            self.reports.notice(Operation::Link, paths, "File exists", Class::Partial);
            return Ok(Break(Outcome::Finished));
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
            let (dir, name) = entry.source()?;
            let from = (dir, name, entry.follow);
            *compared = match entry.place() {
                Some(to) => !worker.mover.is_same(&worker.at, from, to, source.size)?,
                None => true,
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
            return Ok(Break(Outcome::Finished));
        }
        Ok(Continue(()))
    }

    /// Applies the decision, or links the entry if another name of its file is copied.
    pub(super) fn carry_out(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
    ) -> Result<Outcome, Stop> {
        if !self.is_grouped(&decided.entry, &decided.source) {
            return self.apply(worker, decided).map(|()| Outcome::Finished);
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
            Role::Waits => Ok(Outcome::HandedOn),
            Role::Follows(leader) if self.is_stale(&leader, &source) => {
                self.apply(worker, decided).map(|()| Outcome::Finished)
            }
            Role::Follows(_) if self.stays_newer(decided) => {
                self.skipped(worker, &entry, Reason::Newer, (&source, true));
                Ok(Outcome::Finished)
            }
            Role::Follows(leader) => {
                self.link_to(worker, decided, &leader)?;
                Ok(Outcome::Finished)
            }
            Role::First => self.lead(worker, decided),
            Role::Leads(member) => {
                self.lead_late(worker, &member, source.identity(), entry.queue);
                Ok(Outcome::HandedOn)
            }
        }
    }

    /// Applies the decision about the first name of a group, and links those that wait for it.
    pub(super) fn lead(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
    ) -> Result<Outcome, Stop> {
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
        result.map(|()| Outcome::Finished)
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
    fn is_unfinished(&self, entry: &Entry<'_>, source: &Meta, target: &Meta) -> bool {
        let Some((dir, name)) = entry.place() else { return false };
        let ledger = &self.publisher.drafts.direct.ledger;
        let unfinished = ledger.is_unfinished(source, target, dir, name);
        if unfinished && ledger.is_first_report() {
            self.reports.warn(publish::unfinished(&entry.target_path()));
        }
        unfinished
    }

    /// Refuses what would lose content to this run itself.
    ///
    /// # Errors
    /// The reason.
    fn refuse(
        &self,
        entry: &Entry<'_>,
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
        (node, fds): (&Node, &Fds),
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

    fn is_in_source(&self, (node, fds): (&Node, &Fds), name: &CStr) -> bool {
        (0..fds.sources.len()).any(|side| {
            node.selects(side, name)
                && fds.source(side).is_ok_and(|dir| meta::of(dir, name, false).is_ok())
        })
    }

    /// As [`Engine::is_taken`], for a directory of the target that was opened or created.
    pub(super) fn is_dir_taken(
        &self,
        parent: &Node,
        parent_fds: &Fds,
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
    pub(super) fn clash(&self, paths: Paths) {
        self.reports.notice(Operation::Overwrite, paths, CLASH, Class::Partial);
    }

    /// Handles a target that is the same file as its source. Returns whether it is replaced nevertheless: `--backup` and
    /// `--remove-destination` make a file of its own of one of two names.
    fn parts_names(&self, worker: &mut Worker<'_>, entry: &Entry<'_>, source: &Meta) -> bool {
        let policy = self.context.policy;
        let is_link =
            |(dir, name)| meta::of(dir, name, false).is_ok_and(|own| own.kind == Kind::Symlink);
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
            self.reports.notice(Operation::Create, entry.paths(), reason, Class::Partial);
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
        entry: &Entry<'_>,
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
            worker.totals.skipped += 1;
            return true;
        } else if self.is_its_backup(entry, source) {
            (Operation::Create, "backing up the target might destroy the source")
        } else {
            return false;
        };
        worker.totals.failed += 1;
        self.reports.notice(operation, entry.paths(), reason, Class::Partial);
        true
    }

    /// Returns whether a source has the name that a simple backup of its target would get.
    fn is_its_backup(&self, entry: &Entry<'_>, source: &Meta) -> bool {
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
    pub(super) fn is_grouped(&self, entry: &Entry<'_>, source: &Meta) -> bool {
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
        entry: &Entry<'_>,
        reason: Reason,
        (source, exists): (&Meta, bool),
    ) {
        worker.totals.skipped += 1;
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
        self.reports.notice(Operation::Read, paths, reason, Class::Notice);
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
    fn push_dir(&self, worker: &mut Worker<'_>, entry: &Entry<'_>) -> Outcome {
        let policy = self.context.policy;
        if !policy.recurse && !policy.dirs {
            worker.totals.skipped += 1;
            let reason = "it is a directory (-r copies it)";
            let class = if policy.cp_targets { Class::Partial } else { Class::Notice };
            if class == Class::Partial {
                worker.totals.failed += 1;
            }
            let paths = (Some(entry.source_path()), None);
            self.reports.notice(Operation::Read, paths, reason, class);
            return Outcome::Finished;
        }
        worker.at.lane.lost();
        self.push_open_dir(entry.queue, entry.as_dir());
        Outcome::HandedOn
    }

    /// Returns the coarser granularity of the times of an entry's two ends, where it matters.
    pub(super) fn grain(&self, entry: &Entry<'_>, source: &Meta, target: &Meta) -> Grain {
        let from = (source, entry.source().ok().map(|(dir, _)| dir));
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
fn no_referent(entry: &Entry<'_>, error: std::io::Error) -> Failure {
    let is_link = |(dir, name)| meta::of(dir, name, false).is_ok();
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
pub(super) fn leads_to(entry: &Entry<'_>, there: &Meta) -> bool {
    let Ok((dir, name)) = entry.source() else { return false };
    let is_it = |looked: std::io::Result<Meta>| {
        looked.is_ok_and(|looked| looked.identity() == there.identity())
    };
    is_it(meta::of(dir, name, true))
        || dir::read_link(dir, name).is_ok_and(|text| is_it(meta::of(dir, &text, false)))
}
