//! Targets that are links instead of copies: later names of a hard-linked file.

use super::decide::{CLASH, LOOKS_MAX, there};
use super::entry::{Decided, Done, Entry, Outcome};
use super::links::{Carried, Home, Leader, Member};
use super::report::Report;
use super::state::Engine;
use super::unit::{Chunk, Unit};
use super::worker::Worker;
use crate::failure::{Failure, Stop};
use crate::policy::{Basis, Reason, is_newer};
use hakobu_core::error::Operation;
use hakobu_core::event::Change;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, errno, meta};
use hakobu_tree::pool::Queue;
use std::sync::Arc;

impl Engine<'_> {
    /// Links an entry to the first name of its group.
    pub(super) fn link_to(
        &self,
        worker: &mut Worker<'_>,
        decided: &Decided<'_>,
        leader: &Leader,
    ) -> Result<(), Stop> {
        let Decided { entry, source, target, begun, .. } = decided;
        let target = target.as_ref();
        let done = Done::checked(leader.checked);
        if self.context.is_real() {
            let Some(place) = entry.place() else { return Ok(()) };
            let home = leader.home.open().map_err(Failure::of(Operation::Link))?;
            let Some(from) = home.as_ref().map(|fd| (**fd).as_fd()) else { return Ok(()) };
            worker.at.step(Phase::Look, 1);
            let first =
                meta::of(from, &leader.name, false).map_err(Failure::of(Operation::Link))?;
            if matches!(leader.home, Home::Before(_, id) if id != first.identity()) {
                let reason = "another program replaced the name that it would be linked to";
                return Err(Failure::reason(Operation::Link, reason).into());
            }
            if target.is_some_and(|target| target.identity() == first.identity()) {
                self.is_linked(worker, decided);
                self.finish(worker, decided, done);
                return Ok(());
            }
            if target.is_some_and(|target| target.kind == Kind::Dir) {
                self.make_way(worker, entry)?;
            }
            self.publisher.link(
                &worker.at,
                ((from, &leader.name), false),
                place,
                target,
                Some(entry.node),
            )?;
            entry.node.touch();
        } else if let (Some(target), Ok(Some(from))) = (target, leader.home.open())
            && meta::of((*from).as_fd(), &leader.name, false)
                .is_ok_and(|m| m.identity() == target.identity())
        {
            self.is_linked(worker, decided);
            return Ok(());
        }
        worker.totals.links_created += 1;
        if self.reports.wants_items() {
            let mut change = Change { created: target.is_none(), ..Change::default() };
            let is_link = self.context.policy.basis == Basis::Link;
            // Symlinks and special files are made anew by `--copy-dest`.
            if target.is_none()
                && !leader.transferred
                && (is_link || source.kind == Kind::File)
                && let Some(beside) = self.beside(worker, decided)?
            {
                // As in rsync: the name of a linked file needs no line, that of a copied one has the difference.
                if beside.is_as_beside() || !is_link {
                    change = Change { beside: is_link, ..beside };
                }
            }
            if let Some(there) = target {
                change = self.time_change(source, there);
                self.owner_change(worker, decided, there, &mut change);
                change.size = source.kind == Kind::File && source.size != there.size;
            }
            (change.hard_link, change.to_name) = (true, true);
            let link = Some(leader.home.path_of(&leader.name));
            self.report(entry, source, Report { change, link, begun: *begun, ..Report::default() });
        }
        self.finish(worker, decided, done);
        Ok(())
    }

    /// Counts and reports a name that is a link to the first one already.
    fn is_linked(&self, worker: &mut Worker<'_>, decided: &Decided<'_>) {
        worker.totals.skipped += 1;
        let change = Change { hard_link: true, beside: true, ..Change::default() };
        self.report_unchanged(decided, change, None);
    }

    /// Queues the names that waited for the first of their group.
    pub(super) fn release_waiting(
        &self,
        worker: &mut Worker<'_>,
        id: (u64, u64),
        leader: Option<Leader>,
        queue: &Queue<'_, Unit>,
    ) {
        for member in self.groups.finished(id, leader.clone()) {
            self.with_member(worker, &member, queue, |worker, entry| match &leader {
                Some(leader) => {
                    let outcome = self.link_late(worker, entry, leader);
                    self.ended(worker, &entry, outcome.map(|()| Outcome::Finished));
                }
                None => self.entry(worker, entry, Kind::Unknown, false),
            });
        }
    }

    /// Copies the first name of a group, all names of which have come.
    pub(super) fn lead_late(
        &self,
        worker: &mut Worker<'_>,
        member: &Member,
        id: (u64, u64),
        queue: &Queue<'_, Unit>,
    ) {
        let mut led = false;
        self.with_member(worker, member, queue, |worker, entry| {
            let outcome = self.try_lead(worker, entry, &mut led);
            self.ended(worker, &entry, outcome);
        });
        if !led {
            self.release_waiting(worker, id, None, queue);
        }
    }

    fn try_lead(
        &self,
        worker: &mut Worker<'_>,
        entry: Entry<'_>,
        led: &mut bool,
    ) -> Result<Outcome, Stop> {
        worker.at.step(Phase::Look, 1);
        let mut decided = Decided::new(entry);
        let source = self.context.source_of(entry.source()?, entry.follow);
        decided.source = source.map_err(Failure::of(Operation::Stat))?;
        self.decide_and(worker, &mut decided, false, |engine, worker, decided| {
            match std::mem::replace(led, true) {
                false => engine.lead(worker, decided),
                // Its group began anew when the first attempt failed.
                true => engine.carry_out(worker, decided),
            }
        })
    }

    /// Calls `handle` with the entry of a name that has waited, and ends its hold on its directory.
    fn with_member(
        &self,
        worker: &mut Worker<'_>,
        member: &Member,
        queue: &Queue<'_, Unit>,
        handle: impl FnOnce(&mut Worker<'_>, Entry<'_>),
    ) {
        let node = Arc::clone(&member.node);
        match node.fds() {
            _ if self.is_over() => {}
            Ok(fds) => {
                let info = node.target_dir();
                let target = fds.target().zip(info.as_ref());
                let (side, name, target_name) = (member.side, &*member.name, member.at_target());
                let (node, fds, follow, rest) = (&node, &fds, member.follow, None);
                let entry =
                    Entry { node, fds, side, name, target_name, follow, target, queue, rest };
                handle(worker, entry);
            }
            Err(error) => {
                let source = node.source_path(member.side, &member.name);
                let target = node.target_path(member.at_target());
                let failure = Failure { operation: Operation::Link, error };
                self.fail(worker, failure, (Some(source), Some(target)));
                worker.at.lane.done(1);
            }
        }
        self.release(worker, &node);
    }

    /// Returns the units of names for which no usable target appeared: they are handled like any other now. Called,
    /// and the units run, after the walk.
    pub fn parked(&self) -> Vec<Unit> {
        let unit = |member: Member| {
            let mut chunk = Chunk::new(&member.node, member.side);
            chunk.names.push(&member.name, Kind::Unknown);
            (chunk.target_name, chunk.follow) = (member.target_name, member.follow);
            Unit::Chunk(chunk)
        };
        self.groups.take_parked().into_iter().map(unit).collect()
    }

    /// Hands groups of hard links that are open after the walk on to later runs.
    pub fn hand_over_groups(&self, carried: &Carried) {
        self.groups.end_with(carried);
    }

    /// Links a name that has waited.
    fn link_late(
        &self,
        worker: &mut Worker<'_>,
        entry: Entry<'_>,
        leader: &Leader,
    ) -> Result<(), Stop> {
        worker.at.step(Phase::Look, 2);
        let (dir, name) = entry.source()?;
        let source = self
            .context
            .source_of((dir, name), entry.follow)
            .map_err(Failure::of(Operation::Stat))?;
        let target = match entry.place() {
            Some(place) => there(self.context.target_of(place, false))?,
            None => None,
        };
        let begun = self.reports.begin();
        let mut decided = Decided { source, target, begun, ..Decided::new(entry) };
        if self.is_stale(leader, &source) {
            let act = |engine: &Self, worker: &mut Worker<'_>, decided: &mut Decided<'_>| {
                engine.apply(worker, decided).map(|()| Outcome::Finished)
            };
            return self.decide_and(worker, &mut decided, false, act).map(drop);
        }
        if self.stays_newer(&decided) {
            self.skipped(worker, &entry, Reason::Newer, (&source, true));
            return Ok(());
        }
        let mut looks = 1;
        loop {
            match self.link_to(worker, &decided, leader) {
                Err(Stop::Failed(failure))
                    if errno::is(&failure.error, errno::EEXIST) && looks < LOOKS_MAX =>
                {
                    let Some(place) = entry.place() else { return Err(failure.into()) };
                    if self.may_be_ours(place)? {
                        return Err(Failure::reason(Operation::Overwrite, CLASH).into());
                    }
                    decided.target = there(self.context.target_of(place, false))?;
                    looks += 1;
                }
                other => return other,
            }
        }
    }

    /// Returns whether a source that is to be removed is no longer what was copied as the first name of its group.
    pub(super) fn is_stale(&self, leader: &Leader, source: &Meta) -> bool {
        self.context.policy.remove_source_files && leader.copied != (source.size, source.mtime)
    }

    /// Returns whether `cp -u` keeps a target although its file has other names: it is newer than its source.
    pub(super) fn stays_newer(&self, decided: &Decided<'_>) -> bool {
        let (policy, source) = (self.context.policy, &decided.source);
        let Some(target) = decided.target.filter(|target| target.kind == Kind::File) else {
            return false;
        };
        policy.update && source.kind == Kind::File && {
            let grain = self.grain(&decided.entry, source, &target);
            is_newer(target.mtime, source.mtime, policy.modify_window_s, grain) == Some(true)
        }
    }
}
