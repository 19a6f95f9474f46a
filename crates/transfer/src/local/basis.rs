//! Unchanged files of a tree beside the target: hard-linked (`--link-dest`), copied from there (`--copy-dest`), or
//! left out (`--compare-dest`).

use super::engine::{LocalEngine, Worker};
use super::entry::{Decided, EntryResult};
use super::source::{SourceDir, SourceFile};
use crate::failure::{Failure, Stop};
use crate::policy::{Action, Basis, compare};
use crate::publish::{self, DirName};
use hakobu_core::error::Operation;
use hakobu_core::event::Change;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, dir, file, meta};
use std::ffi::CStr;

/// Parts of an entry that a tree beside the target has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Has {
    /// Content and attributes.
    All,
    /// The content, with attributes that differ so.
    Content(Change),
    Nothing,
}

impl Has {
    /// Returns the differences.
    fn change(self) -> Change {
        match self {
            Has::Content(change) => Change { beside: true, ..change },
            Has::All | Has::Nothing => Change { beside: true, ..Change::default() },
        }
    }
}

impl LocalEngine<'_> {
    /// Uses the entry of a tree beside the target. Returns whether nothing remains to be done; otherwise the entry is
    /// handled as usual, perhaps with its content from there.
    pub(super) fn use_basis(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
        text: Option<&CStr>,
    ) -> Result<bool, Stop> {
        let (entry, target) = (decided.entry, decided.target);
        let policy = self.context.policy;
        let is_right = decided.action == Action::Metadata && target.is_some();
        // Only a regular file at the target is replaced by the wanted one.
        let is_kind = |there: &Meta| there.kind == decided.source.kind;
        let may_go = |there: &Meta| match policy.basis {
            Basis::Link => decided.source.kind == Kind::File || !is_kind(there),
            Basis::Copy => !is_right,
            // Nothing replaces it: an entry that is not a version of it stays, and is replaced as usual.
            Basis::Compare => (there.kind, decided.source.kind) == (Kind::File, Kind::File),
        };
        if target.as_ref().is_some_and(|there| there.kind == Kind::Dir || !may_go(there)) {
            return Ok(false);
        }
        // Content of the other end is taken from here wherever it is.
        let is_far = matches!(entry.source()?.0, SourceDir::Far(_));
        let mut content = None;
        for basis in &entry.fds.bases {
            let basis = ((**basis).as_fd(), entry.target_name);
            worker.at.step(Phase::Look, 1);
            let Ok(there) = self.context.target_of(basis, false) else { continue };
            if target.is_some_and(|target| target.identity() == there.identity()) {
                return Ok(false);
            }
            let has = self.compare_basis(worker, decided, (basis, &there), text)?;
            let shows = decided.beside.is_none() || has != Has::Nothing;
            if target.is_none() && shows && is_kind(&there) {
                decided.beside = self.change_beside(worker, decided, &there, has);
            }
            match (has, policy.basis) {
                (Has::All, Basis::Link) => {
                    let is_linked = self.link_basis(worker, decided, basis, text)?;
                    if is_far && !is_linked && decided.source.kind == Kind::File {
                        self.read_basis(worker, decided, basis)?;
                    }
                    return Ok(is_linked);
                }
                (Has::All, Basis::Compare) => return self.leave_to_basis(worker, decided, text),
                (Has::All | Has::Content(_), Basis::Copy) if decided.source.kind == Kind::File => {
                    self.read_basis(worker, decided, basis)?;
                    return Ok(false);
                }
                (Has::Content(_), _) if is_far && decided.source.kind == Kind::File => {
                    content = content.or(Some(basis));
                }
                _ => {}
            }
        }
        if let Some(basis) = content {
            self.read_basis(worker, decided, basis)?;
        }
        Ok(false)
    }

    /// Returns whether the content of a file of the other end is in a tree beside the target: it need not be sent.
    pub(super) fn basis_has_content(
        &self,
        worker: &mut Worker<'_>,
        decided: &Decided<'_>,
    ) -> Result<bool, Stop> {
        let (entry, target) = (decided.entry, decided.target);
        let stays = |there: &Meta| match self.context.policy.basis {
            Basis::Compare => there.kind != Kind::File,
            Basis::Link | Basis::Copy => there.kind == Kind::Dir,
        };
        if target.as_ref().is_some_and(stays) {
            return Ok(false);
        }
        for basis in &entry.fds.bases {
            let basis = ((**basis).as_fd(), entry.target_name);
            worker.at.step(Phase::Look, 1);
            let Ok(there) = self.context.target_of(basis, false) else { continue };
            if target.is_some_and(|target| target.identity() == there.identity()) {
                return Ok(false);
            }
            if self.compare_basis(worker, decided, (basis, &there), None)? != Has::Nothing
                && file::open_read(basis.0, basis.1, false).is_ok()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn compare_basis(
        &self,
        worker: &mut Worker<'_>,
        decided: &Decided<'_>,
        (basis, there): (DirName<'_>, &Meta),
        text: Option<&CStr>,
    ) -> Result<Has, Stop> {
        let Decided { entry, source, .. } = decided;
        let (policy, from) = (self.context.policy, entry.source()?);
        // Nothing is written below a basis, not even to measure its granularity.
        let ends = ((source, from.0.fd()), (there, Some(basis.0)));
        let (grain, _) = self.grains.of(policy, ends.0, ends.1, None);
        let has = match compare(source, there, policy, grain) {
            Action::Metadata => true,
            Action::Compare => match text {
                Some(text) => self.context.target_text(basis).is_ok_and(|other| *other == *text),
                None => match from.0 {
                    SourceDir::Here(dir) => {
                        let from = (dir, from.1, entry.follow);
                        worker.mover.is_same(&worker.at, from, basis, source.size)?
                    }
                    SourceDir::Far(dir) => {
                        let told = dir.get(from.1).map_err(Failure::of(Operation::Compare))?;
                        worker.mover.has_hash(&worker.at, basis, source.size, told.hash)?
                    }
                },
            },
            _ => false,
        };
        if !has {
            return Ok(Has::Nothing);
        }
        let want = worker.attributes.want(source, Some(there), entry.target.map(|(_, info)| info));
        worker.attributes.within(decided.entry.node.rules.as_ref());
        let change = worker.attributes.changes((from, basis), there, &want, grain)?;
        Ok(if change.any() { Has::Content(change) } else { Has::All })
    }

    /// Returns the difference to an entry beside the target that the line of a new one shows.
    fn change_beside(
        &self,
        worker: &Worker<'_>,
        decided: &Decided<'_>,
        there: &Meta,
        has: Has,
    ) -> Option<Change> {
        if !self.reports.wants_items() {
            return None;
        }
        Some(match (has, decided.source.kind) {
            (Has::All | Has::Content(_), Kind::File) => {
                let policy = self.context.policy;
                let time_now = policy.basis == Basis::Copy && !policy.preserve.times;
                Change { time_now, ..has.change() }
            }
            (Has::All, _) => has.change(),
            _ => Change { beside: true, ..self.change_to(worker, decided, there) },
        })
    }

    /// Returns how a new name differs from that of a tree beside the target; `None` if none has its content.
    pub(super) fn beside(
        &self,
        worker: &mut Worker<'_>,
        decided: &Decided<'_>,
    ) -> Result<Option<Change>, Stop> {
        let entry = &decided.entry;
        for basis in &entry.fds.bases {
            let basis = ((**basis).as_fd(), entry.target_name);
            let Ok(there) = self.context.target_of(basis, false) else { continue };
            let text = match decided.source.kind {
                Kind::Symlink => self.context.source_text(entry.source()?).ok(),
                _ => None,
            };
            match self.compare_basis(worker, decided, (basis, &there), text.as_deref())? {
                Has::Nothing => {}
                has => return Ok(Some(has.change())),
            }
        }
        Ok(None)
    }

    fn link_basis(
        &self,
        worker: &mut Worker<'_>,
        decided: &Decided<'_>,
        basis: DirName<'_>,
        text: Option<&CStr>,
    ) -> Result<bool, Stop> {
        let Decided { entry, target, .. } = decided;
        if self.context.is_real() {
            let Some(place) = entry.place() else { return Ok(false) };
            // A target that equals the source needs no backup.
            let replaced = (decided.action != Action::Metadata).then_some(&**entry.node);
            match self.publisher.link(&worker.at, (basis, false), place, target.as_ref(), replaced)
            {
                Ok(_) => {}
                // Copy it instead.
                Err(failure) if publish::cannot_link(&failure.error) => return Ok(false),
                Err(failure) => return Err(failure.into()),
            }
        }
        entry.node.touch();
        worker.totals.links_created += 1;
        let change = Change { hard_link: true, beside: true, ..Change::default() };
        self.report_unchanged(decided, change, text);
        self.finish(worker, decided, EntryResult::checked(true));
        Ok(true)
    }

    /// Removes the target's own file, because `--compare-dest` has it.
    fn leave_to_basis(
        &self,
        worker: &mut Worker<'_>,
        decided: &Decided<'_>,
        text: Option<&CStr>,
    ) -> Result<bool, Stop> {
        let Decided { entry, target, .. } = decided;
        if let (Some(_), Some((dir, name)), true) = (target, entry.place(), self.context.is_real())
        {
            worker.at.step(Phase::Remove, 1);
            dir::unlink(dir, name).map_err(Failure::of(Operation::Remove))?;
            entry.node.touch();
        }
        worker.totals.skipped += 1;
        self.report_unchanged(decided, Change::default(), text);
        self.finish(worker, decided, EntryResult::checked(true));
        Ok(true)
    }

    /// Reads the content from there. If more than content is kept or verified, only a source that is here will do.
    fn read_basis(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
        basis: DirName<'_>,
    ) -> Result<(), Stop> {
        let is_here = decided.entry.source()?.0.fd().is_some();
        if is_here && (worker.attributes.wants_xattrs() || self.context.policy.remove_source_files)
        {
            return Ok(());
        }
        worker.at.step(Phase::Look, 1);
        if self.context.is_real()
            && let Ok(fd) = file::open_read(basis.0, basis.1, false)
            && meta::of_fd(&fd).is_ok_and(|there| there.size == decided.source.size)
        {
            decided.opened = Some(SourceFile::Here(fd));
        }
        Ok(())
    }
}
