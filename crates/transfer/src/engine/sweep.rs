//! The target's side of a directory: what a killed run left behind, and what is extraneous.
//!
//! Nothing is removed unless the source says by ENOENT, name by name, that it does not have it,
//! and never in a directory whose source could not be listed to its end.

use super::node::{Base, Failure, Fds, Node, c_string};
use super::remove::{self, Left, Removal, remove_tree};
use super::temp::TempNames;
use super::{Engine, State, TargetMode};
use crate::error::{Cause, Class, Operation};
use crate::event::Change;
use crate::meter::Phase;
use crate::policy::Delete;
use crate::policy::filter::DirRules;
use crate::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, dir, errno, file, meta};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Which walk this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Entries are transferred; with `--delete-during` extraneous ones go as well.
    Transfer,
    /// Extraneous entries are removed, nothing else.
    Delete,
}

impl Engine<'_> {
    fn deletes_now(&self, node: &Node) -> bool {
        let policy = self.policy;
        let due = match self.pass {
            Pass::Transfer => policy.delete == Delete::During,
            Pass::Delete => true,
        };
        let failed = self.argument_failed.load(Ordering::Relaxed)
            || node.list_failed.load(Ordering::Relaxed);
        let trusted = policy.ignore_errors || !failed;
        let here = !policy.one_file_system || node.target_dev() == node.top().target_dev();
        self.deletes
            && here
            && due
            && trusted
            && node.listed.load(Ordering::Relaxed)
            && !self.is_over()
    }

    /// Looks through the target directory for leftovers and, where that is due, for extraneous
    /// entries.
    pub(super) fn sweep(&self, state: &mut State, node: &Arc<Node>) {
        let result = self.try_sweep(state, node);
        if let Err(failure) = result {
            // The walk above may have removed a directory that turned out to be pruned.
            let gone = errno::is(&failure.error, errno::ENOENT);
            if gone && self.policy.prune_empty_dirs {
                return;
            }
            self.fail(state, failure, None, Some(node.target_path(c"")));
        }
    }

    fn try_sweep(&self, state: &mut State, node: &Arc<Node>) -> Result<(), Failure> {
        let fds = node.fds().map_err(Failure::of(Operation::List))?;
        let Some(target_dir) = fds.target() else { return Ok(()) };
        let deletes = self.deletes_now(node);
        dir::rewind(target_dir).map_err(Failure::of(Operation::List))?;
        let mut doomed = Vec::new();
        loop {
            self.step(&state.station, Phase::List, 1);
            let more = state
                .reader
                .next_batch(target_dir, |name, kind, _| {
                    if TempNames::is_temp(name) {
                        self.remove_leftover(node, target_dir, name);
                    } else if deletes {
                        doomed.push((name.to_owned(), kind));
                    }
                })
                .map_err(Failure::of(Operation::List))?;
            for (name, kind) in doomed.drain(..) {
                if self.is_over() {
                    return Ok(());
                }
                if let Some(kind) = self.is_extraneous(state, node, &fds, &name, kind)? {
                    self.remove_extraneous(state, node, &fds, &name, kind);
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Removes a temporary file whose owner is dead. One that cannot be removed is left to the
    /// next run: it disturbs nobody.
    fn remove_leftover(&self, node: &Node, target_dir: BorrowedFd<'_>, name: &CStr) {
        if self.mode == TargetMode::Real
            && self.temp_names.is_abandoned(name)
            && dir::unlink(target_dir, name).is_ok()
        {
            node.touch();
        }
    }

    /// Removes leftovers from the directory of `--temp-dir`.
    pub fn sweep_temp_dir(&self) {
        let Some((fd, _)) = &self.temp_dir else { return };
        // A directory that cannot be listed has nothing that we could remove.
        drop(dir::Reader::default().for_each(fd.as_fd(), |name, _, _| {
            if TempNames::is_temp(name) && self.temp_names.is_abandoned(name) {
                drop(dir::unlink(fd.as_fd(), name));
            }
        }));
    }

    /// Whether no source has the name (or a rule hides it there) and no rule protects it. Returns
    /// the type of what is at the target.
    fn is_extraneous(
        &self,
        state: &mut State,
        node: &Node,
        fds: &Fds,
        name: &CStr,
        kind: Kind,
    ) -> Result<Option<Kind>, Failure> {
        let Some(target_dir) = fds.target() else { return Ok(None) };
        let provided = |base: &Base| base.provided.iter().any(|other| **other == *name);
        if node.base.as_deref().is_some_and(provided) {
            return Ok(None);
        }
        let filter = self.policy.filter.as_deref().zip(node.rules.as_deref());
        state.path.clear();
        if filter.is_some() || self.policy.prune_empty_dirs {
            node.push_path(&mut state.path);
            push_name(&mut state.path, name);
        }
        for side in (0..fds.sources.len()).filter(|side| node.lends(*side, name)) {
            let source_dir = fds.source(side).map_err(Failure::of(Operation::Stat))?;
            self.step(&state.station, Phase::Look, 1);
            match meta::of(source_dir, name, false) {
                Ok(source) => {
                    let is_dir = source.kind == Kind::Dir
                        || self.is_followed_dir(source_dir, name, source.kind);
                    let hidden = filter.is_some_and(|(filter, rules)| {
                        filter.check(rules, &state.path, is_dir, false).hide
                    });
                    let pruned = is_dir
                        && self.policy.prune_empty_dirs
                        && !self.has_content(node, source_dir, name, &state.path)?;
                    if !hidden && !pruned {
                        return Ok(None);
                    }
                }
                Err(error) if errno::is(&error, errno::ENOENT) => {
                    // In a directory that was removed meanwhile nothing is found either.
                    let source = meta::of_fd(source_dir).map_err(Failure::of(Operation::List))?;
                    if source.nlink == 0 {
                        let error = std::io::Error::from_raw_os_error(errno::ESTALE);
                        return Err(Failure { operation: Operation::List, error });
                    }
                }
                // Not knowing is not knowing that it is gone.
                Err(error) => return Err(Failure { operation: Operation::Stat, error }),
            }
        }
        let kind = match kind {
            Kind::Unknown => match meta::of(target_dir, name, false) {
                Ok(meta) => meta.kind,
                Err(_) => return Ok(None),
            },
            kind => kind,
        };
        let protected = filter.is_some_and(|(filter, rules)| {
            filter.check(rules, &state.path, kind == Kind::Dir, false).protect
        });
        Ok((!protected).then_some(kind))
    }

    /// Whether anything but directories is transferred from below a source directory
    /// (`--prune-empty-dirs` leaves it out otherwise). Ends at the first find.
    fn has_content(
        &self,
        node: &Node,
        source_dir: BorrowedFd<'_>,
        name: &CStr,
        path: &[u8],
    ) -> Result<bool, Failure> {
        let mut reader = dir::Reader::default();
        let open = dir::open(source_dir, name, false).map_err(Failure::of(Operation::List))?;
        let filter = self.policy.filter.as_deref();
        let mut waiting = vec![(open, path.to_vec(), node.rules.clone())];
        while let Some((fd, path, rules)) = waiting.pop() {
            let rules = match (filter, rules) {
                (Some(filter), Some(rules)) => {
                    let read = &mut |name: &[u8]| read_merge_file(fd.as_fd(), name);
                    let entered = filter.enter(&rules, &path, read);
                    Some(entered.map_err(super::enter::filter_failure)?)
                }
                (_, rules) => rules,
            };
            let mut found = false;
            let listed = reader.for_each(fd.as_fd(), |name, kind, _| {
                let mut path = path.clone();
                push_name(&mut path, name);
                let is_dir = kind == Kind::Dir || self.is_followed_dir(fd.as_fd(), name, kind);
                let hidden = filter
                    .zip(rules.as_deref())
                    .is_some_and(|(filter, rules)| filter.check(rules, &path, is_dir, false).hide);
                match (hidden, is_dir) {
                    (true, _) => {}
                    (false, false) => found = true,
                    // One that cannot be opened may hold anything: nothing is deleted for it.
                    (false, true) => match dir::open(fd.as_fd(), name, false) {
                        Ok(below) if waiting.len() < 500 => {
                            waiting.push((below, path, rules.clone()));
                        }
                        _ => found = true,
                    },
                }
            });
            listed.map_err(Failure::of(Operation::List))?;
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an entry is itself the backup of another one: it gets none of its own.
    fn is_backup(&self, name: &CStr) -> bool {
        self.policy.backup && name.to_bytes().ends_with(&self.policy.suffix)
    }

    /// Removes an entry of the target and everything below it that no rule protects.
    pub(super) fn remove_extraneous(
        &self,
        state: &mut State,
        node: &Arc<Node>,
        fds: &Fds,
        name: &CStr,
        kind: Kind,
    ) {
        let Some(target_dir) = fds.target() else { return };
        let mut path = Vec::new();
        node.push_path(&mut path);
        push_name(&mut path, name);
        let options = remove::Options {
            dry_run: self.mode != TargetMode::Real,
            make_writable: self.mode == TargetMode::Real,
            one_file_system: false,
        };
        let mut removal =
            Extraneous { engine: self, state, node, prefix: path.len(), rules: Vec::new(), name };
        let left = remove_tree(target_dir, name, kind, &path, options, &mut removal);
        if left == Left::Nothing || kind == Kind::Dir {
            node.touch();
        }
    }
}

/// Decides about and counts what is removed below one extraneous entry.
struct Extraneous<'e, 's, 'p> {
    engine: &'e Engine<'p>,
    state: &'s mut State,
    node: &'e Arc<Node>,
    /// Length of the extraneous entry's own path.
    prefix: usize,
    /// Rules in force in the directories on the way down; `None` in one whose rules could not be
    /// read, and below it: they may protect anything.
    rules: Vec<Option<Arc<DirRules>>>,
    name: &'e CStr,
}

impl Extraneous<'_, '_, '_> {
    fn target_path(&self, path: &[u8]) -> PathBuf {
        let mut full = self.node.target_path(self.name).into_os_string();
        full.push(OsStr::from_bytes(path.get(self.prefix..).unwrap_or_default()));
        full.into()
    }

    fn is_protected(&self, entry: &remove::Entry<'_>) -> bool {
        let engine = self.engine;
        let Some(filter) = &engine.policy.filter else { return false };
        // The entry itself was judged by its directory's rules before.
        if entry.path.len() <= self.prefix {
            return false;
        }
        let rules = match self.rules.last() {
            Some(None) => return true,
            Some(Some(rules)) => Some(rules),
            None => self.node.rules.as_ref(),
        };
        rules.is_some_and(|rules| {
            filter.check(rules, entry.path, entry.kind == Kind::Dir, true).protect
        })
    }

    /// `-x` holds at the target, too: what is mounted there is not ours to empty.
    fn is_elsewhere(&self, entry: &remove::Entry<'_>) -> bool {
        self.engine.policy.one_file_system
            && entry.kind == Kind::Dir
            && !self.node.target_dir().is_some_and(|info| {
                meta::of(entry.dir, entry.name, false)
                    .is_ok_and(|there| there.dev == info.identity.0)
            })
    }

    /// Keeps an entry under its backup name instead of removing it.
    fn back_up(&mut self, entry: &remove::Entry<'_>) {
        let engine = self.engine;
        if engine.mode == TargetMode::Real {
            let moved = engine
                .backup_name(entry.name)
                .and_then(|backup| dir::rename(entry.dir, entry.name, entry.dir, &backup));
            if let Err(error) = moved {
                let target = Some(self.target_path(entry.path));
                let failure = Failure { operation: Operation::Rename, error };
                engine.fail(self.state, failure, None, target);
                return;
            }
            self.node.touch();
        }
        self.count(entry);
    }

    fn count(&mut self, entry: &remove::Entry<'_>) {
        let engine = self.engine;
        self.state.totals.deleted += 1;
        engine.finished(self.state);
        if engine.items {
            let meta = Meta { kind: entry.kind, ..self.node.source };
            let change = Change { deleted: true, ..Change::default() };
            engine.tell_other(entry.path, &meta, None, Some(self.target_path(entry.path)), change);
        }
    }
}

impl Removal for Extraneous<'_, '_, '_> {
    fn keep(&mut self, entry: &remove::Entry<'_>) -> bool {
        if self.is_protected(entry) || self.is_elsewhere(entry) {
            return true;
        }
        let operations = u64::from(self.engine.mode == TargetMode::Real);
        self.engine.step(&self.state.station, Phase::Remove, operations);
        let left = &self.engine.deletes_left;
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        if taken.is_err() {
            self.state.totals.deletes_held += 1;
            return true;
        }
        if self.engine.policy.backup
            && entry.kind != Kind::Dir
            && !self.engine.is_backup(entry.name)
        {
            self.back_up(entry);
            return true;
        }
        false
    }

    fn enter(&mut self, entry: &remove::Entry<'_>, inside: BorrowedFd<'_>) {
        let Some(filter) = &self.engine.policy.filter else { return };
        let parent = match self.rules.last() {
            Some(None) => return self.rules.push(None),
            Some(Some(rules)) => rules,
            None => match &self.node.rules {
                Some(rules) => rules,
                None => return,
            },
        };
        let entered = filter.enter(parent, entry.path, &mut |name| read_merge_file(inside, name));
        self.rules.push(match entered {
            Ok(rules) => Some(rules),
            Err(error) => {
                let failure = super::enter::filter_failure(error);
                let target = Some(self.target_path(entry.path));
                self.engine.fail(self.state, failure, None, target);
                None
            }
        });
    }

    fn leave(&mut self) {
        self.rules.pop();
    }

    fn removed(&mut self, entry: &remove::Entry<'_>) {
        self.count(entry);
    }

    fn stays(&mut self, entry: &remove::Entry<'_>, left: Left) {
        self.engine.deletes_left.fetch_add(1, Ordering::Relaxed);
        if left == Left::Kept {
            let reason = "something in it is kept";
            let target = Some(self.target_path(entry.path));
            self.engine.notice(Operation::Remove, None, target, reason, Class::Notice);
        }
    }

    fn failed(&mut self, entry: &remove::Entry<'_>, operation: Operation, cause: Cause) {
        let target = Some(self.target_path(entry.path));
        match cause {
            Cause::System(error) => {
                self.engine.fail(self.state, Failure { operation, error }, None, target);
            }
            Cause::Reason(reason) => {
                self.state.totals.failed += 1;
                self.engine.notice(operation, None, target, reason, Class::Partial);
            }
            // No server takes part in the removal of local entries.
            Cause::Said(_) => self.state.totals.failed += 1,
        }
    }

    fn is_stopped(&self) -> bool {
        self.engine.is_over()
    }
}

fn push_name(path: &mut Vec<u8>, name: &CStr) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name.to_bytes());
}

/// Reads a per-directory merge file; `None` where there is none.
///
/// # Errors
/// EFBIG for more than 1 MiB: that is data, not rules, and rules are never cut.
pub(crate) fn read_merge_file(
    dir_fd: BorrowedFd<'_>,
    name: &[u8],
) -> std::io::Result<Option<Vec<u8>>> {
    const BYTES_MAX: u64 = 1 << 20;
    let name = c_string(name)?;
    let fd = match file::open_read(dir_fd, &name, true) {
        Ok(fd) => fd,
        Err(error) if errno::is(&error, errno::ENOENT) => return Ok(None),
        Err(error) => return Err(error),
    };
    if meta::of_fd(&fd)?.kind != Kind::File {
        return Ok(None);
    }
    let mut content = Vec::new();
    std::io::Read::read_to_end(
        &mut std::io::Read::take(std::fs::File::from(fd), BYTES_MAX + 1),
        &mut content,
    )?;
    if content.len() as u64 > BYTES_MAX {
        return Err(std::io::Error::from_raw_os_error(errno::EFBIG));
    }
    Ok(Some(content))
}
