//! Targets that are links instead of copies: later names of a hard-linked file, unchanged files of
//! a `--link-dest` tree, `cp -l` and `cp -s`.

use super::data::Stop;
use super::entry::{Done, Entry};
use super::links::Leader;
use super::node::{Failure, c_string};
use super::pool::Queue;
use super::special::Special;
use super::tell::{Begun, Told};
use super::walk::Unit;
use super::{Engine, State, TargetMode};
use crate::error::Operation;
use crate::event::Change;
use crate::meter::Phase;
use crate::policy::{Action, decide};
use crate::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, dir, errno, meta};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

impl Engine<'_> {
    /// Links the entry to the first name of its group.
    pub(super) fn follow(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        source: &Meta,
        target: Option<&Meta>,
        leader: &Leader,
        begun: Option<Begun>,
    ) -> Result<(), Stop> {
        let link = Failure::of(Operation::Link);
        if self.mode == TargetMode::Real {
            let Some((target_dir, _)) = entry.target else { return Ok(()) };
            let fds = leader.node.fds().map_err(link)?;
            let Some(from) = fds.target() else { return Ok(()) };
            self.step(&state.station, Phase::Look, 1);
            let first =
                meta::of(from, &leader.name, false).map_err(Failure::of(Operation::Link))?;
            if target.is_some_and(|target| target.identity() == first.identity()) {
                state.totals.skipped += 1;
                let checked = leader.checked;
                self.finish_entry(state, entry, source, Done { checked, ..Done::default() });
                return Ok(());
            }
            if target.is_some_and(|target| target.kind == Kind::Dir) {
                self.make_way(state, entry)?;
            }
            self.link_over(state, entry, target, (from, &leader.name), target_dir)?;
            entry.node.touch();
        } else if let (Some(target), Ok(fds)) = (target, leader.node.fds())
            && let Some(from) = fds.target()
            && meta::of(from, &leader.name, false).is_ok_and(|m| m.identity() == target.identity())
        {
            state.totals.skipped += 1;
            return Ok(());
        }
        state.totals.links_created += 1;
        if self.items {
            let mut change = Change { created: target.is_none(), ..Change::default() };
            if let Some(there) = target {
                let want = self.want(source, target, entry.target.as_ref().map(|(_, info)| info));
                change = Change {
                    size: source.kind == Kind::File && source.size != there.size,
                    mode: want.mode != there.mode,
                    owner: want.uid.is_some_and(|uid| uid != there.uid),
                    group: want.gid.is_some_and(|gid| gid != there.gid),
                    ..self.time_change(source, there)
                };
            }
            change.hard_link = true;
            let mut path = Vec::new();
            leader.node.push_path(&mut path);
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(leader.name.to_bytes());
            let link = Some(PathBuf::from(OsStr::from_bytes(&path)));
            self.tell(entry, source, Told { change, bytes_moved: 0, link, begun });
        }
        let checked = leader.checked;
        self.finish_entry(state, entry, source, Done { checked, ..Done::default() });
        Ok(())
    }

    /// Makes the entry's target a hard link to `from`, over what is there.
    pub(super) fn link_over(
        &self,
        state: &State,
        entry: &Entry<'_>,
        target: Option<&Meta>,
        from: (BorrowedFd<'_>, &CStr),
        target_dir: BorrowedFd<'_>,
    ) -> Result<(), Failure> {
        let existing = target.filter(|target| target.kind != Kind::Dir);
        self.step(&state.station, Phase::Create, if existing.is_none() { 1 } else { 2 });
        if existing.is_none() {
            match dir::link(from.0, from.1, target_dir, entry.target_name) {
                Err(error) if errno::is(&error, errno::EEXIST) => {}
                other => return other.map_err(Failure::of(Operation::Link)),
            }
        }
        let temp = self.temp_names.make();
        dir::link(from.0, from.1, target_dir, &temp).map_err(Failure::of(Operation::Link))?;
        if self.policy.backup
            && existing.is_some()
            && let Err(failure) = self.back_up(target_dir, entry.target_name)
        {
            drop(dir::unlink(target_dir, &temp));
            return Err(failure);
        }
        let renamed = dir::rename(target_dir, &temp, target_dir, entry.target_name);
        // rename(2) between two names of one file does nothing and leaves both.
        drop(dir::unlink(target_dir, &temp));
        renamed.map_err(Failure::of(Operation::Rename))
    }

    /// Hands out the names that waited for the first of their group.
    pub(super) fn release_waiting(
        &self,
        state: &mut State,
        id: (u64, u64),
        leader: Option<Leader>,
        queue: Option<&Queue<'_, Unit>>,
    ) {
        for member in self.links.finished(id, leader.clone()) {
            let node = Arc::clone(&member.node);
            if self.is_over() {
                self.release(state, &node);
                continue;
            }
            match node.fds() {
                Ok(fds) => {
                    let mut entry = Entry {
                        node: &node,
                        fds: &fds,
                        side: member.side,
                        name: &member.name,
                        target_name: member.at_target(),
                        follow: false,
                        target: fds.target().zip(node.target_dir()),
                        rest: None,
                    };
                    match &leader {
                        Some(leader) => self.follow_late(state, &entry, leader),
                        None => self.entry(state, &mut entry, Kind::Unknown, false, queue),
                    }
                }
                Err(error) => {
                    let source = node.source_path(member.side, &member.name);
                    let target = node.target_path(member.at_target());
                    let failure = Failure { operation: Operation::Link, error };
                    self.fail(state, failure, Some(source), Some(target));
                }
            }
            self.release(state, &node);
        }
    }

    pub(super) fn follow_late(&self, state: &mut State, entry: &Entry<'_>, leader: &Leader) {
        self.step(&state.station, Phase::Look, 2);
        let result = (|| {
            let source = meta::of(entry.source_dir()?, entry.name, false)
                .map_err(Failure::of(Operation::Stat))?;
            let target = match entry.target {
                Some((dir, _)) => meta::of(dir, entry.target_name, false).ok(),
                None => None,
            };
            self.follow(state, entry, &source, target.as_ref(), leader, self.begin())
        })();
        match result {
            Ok(()) => self.finished(state),
            Err(stop) => self.stopped(state, entry, stop),
        }
    }

    /// Hard-links an unchanged entry from a `--link-dest` tree. Returns whether it did.
    pub(super) fn link_from_dest(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        source: &Meta,
        target: Option<&Meta>,
        text: Option<&CStr>,
        begun: Option<Begun>,
    ) -> Result<bool, Stop> {
        let Some((target_dir, info)) = entry.target else { return Ok(false) };
        if target.is_some_and(|target| target.kind == Kind::Dir) {
            return Ok(false);
        }
        for basis in entry.fds.link_dest.iter().flatten() {
            let basis = basis.as_fd();
            self.step(&state.station, Phase::Look, 1);
            let Ok(there) = meta::of(basis, entry.target_name, false) else { continue };
            let same = match decide(source, Some(&there), self.policy) {
                Action::Metadata => true,
                Action::Compare => text.is_some_and(|text| {
                    dir::read_link(basis, entry.target_name).is_ok_and(|other| *other == *text)
                }),
                _ => false,
            };
            if !same {
                continue;
            }
            let want = self.want(source, Some(&there), Some(&info));
            let from = (entry.source_dir()?, entry.name);
            let to = (basis, entry.target_name);
            if self.attribute_changes(state, from, to, &there, &want)?.any() {
                continue;
            }
            if self.mode == TargetMode::Real {
                match self.link_over(state, entry, target, (basis, entry.target_name), target_dir) {
                    Ok(()) => {}
                    // Another volume, or as many links as the file system allows: copy it.
                    Err(failure)
                        if matches!(
                            failure.error.raw_os_error(),
                            Some(errno::EXDEV | errno::EMLINK | errno::EPERM | errno::EOPNOTSUPP)
                        ) =>
                    {
                        return Ok(false);
                    }
                    Err(failure) => return Err(failure.into()),
                }
            }
            entry.node.touch();
            state.totals.links_created += 1;
            if self.items_unchanged {
                let change = Change { hard_link: true, ..Change::default() };
                self.tell(entry, source, Told { change, bytes_moved: 0, link: None, begun });
            }
            self.finish_entry(state, entry, source, Done { checked: true, ..Done::default() });
            return Ok(true);
        }
        Ok(false)
    }

    /// `cp -l`.
    pub(super) fn link_source(
        &self,
        state: &State,
        entry: &Entry<'_>,
        target: Option<&Meta>,
    ) -> Result<Done, Failure> {
        if let Some((target_dir, _)) = entry.target {
            let from = (entry.source_dir()?, entry.name);
            self.link_over(state, entry, target, from, target_dir)?;
        }
        Ok(Done { checked: true, ..Done::default() })
    }

    /// `cp -s`: the text is the source's absolute path.
    pub(super) fn symlink_source(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        source: &Meta,
        target: Option<&Meta>,
    ) -> Result<Done, Failure> {
        let path =
            std::path::absolute(entry.source_path()).map_err(Failure::of(Operation::Create))?;
        let text = c_string(path.as_os_str().as_bytes()).map_err(Failure::of(Operation::Create))?;
        self.make_special(state, entry, source, target, &Special::Symlink(&text))
    }
}
