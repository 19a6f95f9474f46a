//! Applies the action decided for one entry, and handles its consequences: the source may be removed, the target's
//! directory was changed, the entry is reported.

use super::attributes::Have;
use super::context::TargetMode;
use super::decide::leads_to;
use super::entry::{Decided, Done, Entry};
use super::removal::{Removal, remove_source};
use super::report::{Report, link_path};
use super::state::Engine;
use super::worker::Worker;
use crate::failure::{Failure, Stop, c_string};
use crate::policy::{Action, Basis, Content, Delete, Grain, is_unsafe_link, same_time};
use hakobu_core::error::{Class, Operation};
use hakobu_core::event::{Change, EntryPaths, Planned};
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{dir, errno, meta};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;

impl Engine<'_> {
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
            _ if self.context.mode == TargetMode::Told => Done::content(source.size),
            _ if policy.content == Content::HardLink => {
                if let Some(place) = entry.place() {
                    let from = (entry.source()?, entry.follow);
                    self.publisher.link(&worker.at, from, place, target, Some(entry.node))?;
                }
                Done::checked(true)
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
        let (bytes_moved, link) = (done.bytes, text.as_deref().map(link_path));
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
        entry: &Entry<'_>,
    ) -> Result<Option<CString>, Failure> {
        worker.at.step(Phase::Read, 1);
        let text =
            self.context.source_text(entry.source()?).map_err(Failure::of(Operation::Read))?;
        if self.context.policy.safe_links
            && is_unsafe_link(text.to_bytes(), &entry.node.path_of(entry.target_name))
        {
            worker.totals.skipped += 1;
            let reason = "ignoring unsafe symlink, which leads out of the tree (--safe-links)";
            let paths = (Some(entry.source_path()), None);
            self.reports.notice(Operation::Read, paths, reason, Class::Notice);
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
        done: Done,
    ) {
        let Decided { entry, source, .. } = decided;
        entry.node.touch();
        let totals = &mut worker.totals;
        if source.kind == Kind::File {
            totals.files += 1;
            totals.files_created += u64::from(report.change.created);
            totals.bytes += done.bytes;
        } else {
            totals.links_created += 1;
        }
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
        let mut done = Done::checked(true);
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
    pub(super) fn report(&self, entry: &Entry<'_>, source: &Meta, mut report: Report) {
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

    /// Reports attributes that could not be set and sources that are kept; removes the source if that is requested
    /// and its target is verified.
    pub(super) fn finish(&self, worker: &mut Worker<'_>, decided: &Decided<'_>, done: Done) {
        let entry = &decided.entry;
        if let Some(failure) = done.attributes {
            self.fail(worker, failure, entry.paths());
        } else if done.unprivileged {
            worker.totals.failed += 1;
            let reason = "only the superuser may give files away";
            self.reports.notice(Operation::SetOwner, entry.paths(), reason, Class::Partial);
        }
        if let Some(failure) = done.kept {
            self.fail(worker, failure, (Some(entry.source_path()), None));
        }
        if let (Some((dir, info)), true) = (entry.target, self.context.is_real())
            && info.caseless
            && let Ok(there) = meta::of(dir, entry.target_name, false)
        {
            let directory = info.meta.identity();
            let ours = self.context.guard.claim(directory, there.identity(), entry.target_name);
            if !ours && there.nlink < 2 {
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
        // Of a name that several sources have, the first one keeps the others from being taken as long as it is there.
        if self.context.policy.removes_sources_late() || entry.node.sides.len() > 1 {
            entry.node.hold();
            let (member, source, follow) = (entry.member(), decided.source, entry.follow);
            return self.removals.lock().push(Removal { member, source, follow });
        }
        worker.at.step(Phase::Remove, 2);
        let removed =
            entry.source().and_then(|place| remove_source(place, entry.follow, &decided.source));
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
    pub(super) fn make_way(&self, worker: &mut Worker<'_>, entry: &Entry<'_>) -> Result<(), Stop> {
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
        self.pruning.remove(worker, entry.node, entry.fds, name, Kind::Dir);
        match meta::of(dir, name, false) {
            Err(error) if errno::is(&error, errno::ENOENT) => Ok(()),
            Err(error) => Err(Failure { operation: Operation::Stat, error }.into()),
            Ok(_) => Err(Failure::code(Operation::Remove, errno::ENOTEMPTY).into()),
        }
    }
}
