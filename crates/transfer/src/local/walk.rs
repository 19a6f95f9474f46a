//! The walk: directories are opened on both sides, listed, and split into chunks; the last unit below a directory
//! sets its attributes.

use super::content::{Helpers, SharedCopy};
use super::context::Pass;
use super::entry::Entry;
use super::node::Node;
use super::state::Engine;
use super::unit::{Chunk, Listing, OpenDir, Rest, Unit};
use super::worker::Worker;
use crate::failure::Failure;
use crate::policy::filter::SidedRules;
use crate::policy::{Delete, Symlinks};
use crate::publish::{LEFT_OUT, TempNames};
use hakobu_core::error::{Class, Operation};
use hakobu_core::meter::Phase;
use hakobu_core::unit::Kind;
use hakobu_sys::dir::Reader;
use hakobu_sys::{BorrowedFd, errno, meta};
use hakobu_tree::pool::{Queue, Work};
use std::ffi::{CStr, CString};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Engine<'_> {
    /// Continues a listing until it ends or the queue is full.
    pub(super) fn list(
        &self,
        worker: &mut Worker<'_>,
        mut listing: Listing,
        queue: &Queue<'_, Unit>,
    ) {
        loop {
            if self.is_over() {
                listing.node.list_failed.store(true, Ordering::Relaxed);
                break;
            }
            if !queue.has_room() {
                queue.put_aside(Unit::List(listing));
                return;
            }
            match self.list_batch(worker, &mut listing, queue) {
                Ok(true) => {}
                Ok(false) => {
                    self.send_chunk(&mut listing, queue);
                    listing.side += 1;
                    listing.chunk.side = listing.side;
                    if listing.side >= listing.fds.sources.len() {
                        break;
                    }
                }
                Err(error) => {
                    listing.node.list_failed.store(true, Ordering::Relaxed);
                    listing.node.keep_source();
                    let failure = Failure { operation: Operation::List, error };
                    let source = listing.node.source_path(listing.side, c"");
                    self.fail(worker, failure, (Some(source), None));
                    break;
                }
            }
        }
        self.send_chunk(&mut listing, queue);
        self.listed();
        let node = listing.node;
        drop(listing.fds);
        let prunes = match (self.context.pass, node.target_dir()) {
            // Leftovers of a killed run can only be in a directory that existed before this run.
            (Pass::Transfer, Some(info)) => {
                !info.swept || self.context.policy.delete == Delete::During && !info.fresh
            }
            (Pass::Delete, Some(_)) => true,
            (_, None) => false,
        };
        let caseless = node.target_dir().is_some_and(|info| info.caseless);
        if prunes && (self.context.policy.prune_empty_dirs || caseless) {
            // Names that differ in case only are known when all are handled. A directory found to be prunable is removed together with its parent's extraneous names, not while
            // workers walk it.
            node.prunes_last.store(true, Ordering::Relaxed);
        } else if prunes {
            node.hold();
            queue.push(Unit::Prune(Arc::clone(&node)));
        }
        self.release(worker, &node);
    }

    fn list_batch(
        &self,
        worker: &mut Worker<'_>,
        listing: &mut Listing,
        queue: &Queue<'_, Unit>,
    ) -> std::io::Result<bool> {
        let Listing { node, fds, side, chunk } = listing;
        let source_dir = fds.source(*side)?;
        let Worker { reader, path, at, .. } = worker;
        at.step(Phase::List, 1);
        let rules = node.rules.as_ref();
        path.clear();
        if rules.is_some() {
            node.push_path(path);
            if !path.is_empty() {
                path.push(b'/');
            }
        }
        let prefix = path.len();
        let mut found = 0;
        let mut left_out = Vec::new();
        let mut each = |name: &CStr, kind: Kind| {
            if !node.selects(*side, name) {
                return;
            }
            let mut kind = kind;
            if kind == Kind::Unknown && (rules.is_some() || self.context.policy.prune_empty_dirs) {
                kind = meta::of(source_dir, name, false).map_or(Kind::Unknown, |meta| meta.kind);
            }
            if let Some(rules) = rules {
                path.truncate(prefix);
                path.extend_from_slice(name.to_bytes());
                let own = || node.path_of(name);
                let is_dir =
                    kind == Kind::Dir || self.context.is_followed_dir(source_dir, name, kind, own);
                if self.is_hidden(rules, path, is_dir) {
                    return;
                }
            }
            // The first source that has a name provides it.
            let lacks = |error: std::io::Error| errno::is(&error, errno::ENOENT);
            let has = |fd: BorrowedFd<'_>| !meta::of(fd, name, false).is_err_and(lacks);
            let earlier = |side| node.selects(side, name) && fds.source(side).is_ok_and(has);
            if *side > 0 && (0..*side).any(earlier) {
                return;
            }
            if kind == Kind::Dir {
                if self.context.policy.recurse || self.context.policy.dirs {
                    let dir = OpenDir {
                        parent: Arc::clone(node),
                        side: *side,
                        name: name.into(),
                        target_name: None,
                        follow: false,
                        implied: false,
                        lists: false,
                    };
                    self.push_open_dir(queue, dir);
                }
                return;
            }
            // We create no directories under such names.
            if TempNames::is_temp(name) {
                left_out.push(name.to_owned());
                return;
            }
            if node.selects_followed(*side, name) {
                found += 1;
                let mut single = Chunk::new(node, *side);
                single.names.push(name, Kind::Unknown);
                single.follow = true;
                node.hold();
                queue.push(Unit::Chunk(single));
                return;
            }
            if self.context.pass == Pass::Delete
                && !self.context.is_followed_dir(source_dir, name, kind, || node.path_of(name))
            {
                return;
            }
            found += 1;
            chunk.names.push(name, kind);
            if chunk.names.is_full() && !self.sorts {
                let full = std::mem::replace(chunk, Chunk::new(node, *side));
                node.hold();
                queue.push(Unit::Chunk(full));
            }
        };
        let more = if self.sorts {
            sorted(reader, source_dir, each)?;
            false
        } else {
            reader.next_batch(source_dir, |name, kind, _| each(name, kind))?
        };
        let (node, side) = (Arc::clone(node), *side);
        for name in left_out {
            self.leave_out(worker, &node, side, &name);
        }
        if found > 0 && self.context.pass == Pass::Transfer {
            worker.at.lane.found(found);
        }
        Ok(more)
    }

    /// Returns whether the rules exclude an entry of the source, and reports the rule if that is requested.
    pub(super) fn is_hidden(&self, rules: &SidedRules, path: &[u8], is_dir: bool) -> bool {
        if !self.reports.remarks.filters || self.context.pass != Pass::Transfer {
            return rules.hides(path, is_dir);
        }
        let rule = rules.sending(path, is_dir);
        if let Some(rule) = rule {
            self.reports.ruled(path, is_dir, false, rule);
        }
        rule.is_some_and(|rule| !rule.include)
    }

    /// Reports that a source has the form of our temporary names and is skipped. A move is incomplete then.
    fn leave_out(&self, worker: &mut Worker<'_>, node: &Node, side: usize, name: &CStr) {
        if self.context.pass == Pass::Delete {
            return;
        }
        let class =
            if self.context.policy.remove_source_dirs { Class::Partial } else { Class::Notice };
        match class {
            Class::Partial => worker.totals.failed += 1,
            _ => worker.totals.skipped += 1,
        }
        node.keep_source();
        let source = Some(node.source_path(side, name));
        self.reports.notice(Operation::Read, (source, None), LEFT_OUT, class);
    }

    pub(super) fn send_chunk(&self, listing: &mut Listing, queue: &Queue<'_, Unit>) {
        if !listing.chunk.names.is_empty() {
            let next = Chunk::new(&listing.node, listing.side);
            let chunk = std::mem::replace(&mut listing.chunk, next);
            listing.node.hold();
            queue.push(Unit::Chunk(chunk));
        }
    }

    /// Handles a chunk of names.
    fn chunk(&self, worker: &mut Worker<'_>, rest: &Rest<'_>) {
        let chunk = rest.chunk;
        let node = &chunk.node;
        let count = chunk.names.len() as u64;
        if self.context.policy.prune_empty_dirs
            && self.context.pass == Pass::Transfer
            && let Err(failure) = self.materialize(worker, node)
        {
            self.fail(worker, failure, (None, Some(node.target_path(c""))));
            return worker.at.lane.done(count);
        }
        let fds = match node.fds() {
            Ok(fds) => fds,
            Err(error) => {
                let failure = Failure { operation: Operation::List, error };
                self.fail(worker, failure, (Some(node.source_path(chunk.side, c"")), None));
                worker.totals.failed += count - 1;
                return worker.at.lane.done(count);
            }
        };
        let info = node.target_dir();
        let target = fds.target().zip(info.as_ref());
        if target.is_none() && self.context.is_real() && self.context.pass == Pass::Transfer {
            let failure = Failure::code(Operation::MakeDir, errno::ENOENT);
            self.fail(worker, failure, (None, Some(node.target_path(c""))));
            return worker.at.lane.done(count);
        }
        let fresh = target.is_none_or(|(_, info)| info.fresh);
        let fds = &fds;
        let of = |name| Entry {
            node,
            fds,
            side: chunk.side,
            name,
            target_name: chunk.target_name.as_deref().unwrap_or(name),
            follow: chunk.follow,
            target,
            queue: rest.queue,
            rest: Some(rest),
        };
        if target.is_some() && fresh && self.batches(chunk) {
            return self.batch(worker, rest, of);
        }
        while let Some((name, kind)) = rest.next() {
            if self.is_over() {
                return;
            }
            match self.context.pass {
                Pass::Delete => self.delete_pass_name(&of(name)),
                Pass::Transfer => self.entry(worker, of(name), kind, fresh),
            }
            if rest.queue.is_shut_out() {
                self.hand_over(rest);
            }
        }
    }

    /// Records that a name is not a directory: the last of the arguments ends the listing phase before it is copied.
    pub(super) fn is_no_dir(&self, rest: Option<&Rest<'_>>) {
        if let Some(rest) = rest.filter(|rest| rest.is_empty()) {
            self.names_listed(rest);
        }
    }

    fn names_listed(&self, rest: &Rest<'_>) {
        if rest.unlisted.replace(false) {
            self.listed();
        }
    }

    /// Queues the rest of a chunk as a unit of its own, for the next idle worker.
    pub(super) fn hand_over(&self, rest: &Rest<'_>) {
        let Some(chunk) = rest.take() else { return };
        chunk.node.hold();
        if chunk.is_root {
            self.unlisted.fetch_add(1, Ordering::Relaxed);
        }
        rest.queue.push(Unit::Chunk(chunk));
        // The current name is not a directory.
        self.names_listed(rest);
    }

    /// Handles a name in the pass that only deletes: only directories matter.
    fn delete_pass_name(&self, entry: &Entry<'_>) {
        let Ok((dir_fd, name)) = entry.source() else { return };
        let policy = self.context.policy;
        let path = || entry.node.path_of(entry.target_name);
        let follow = entry.follow
            || policy.copy_dirlinks
            || policy.symlinks == Symlinks::Follow
            || self.context.is_unsafe_followed(dir_fd, name, path);
        if meta::of(dir_fd, name, follow).is_ok_and(|meta| meta.kind == Kind::Dir) {
            self.push_open_dir(entry.queue, OpenDir { follow, ..entry.as_dir() });
        }
    }

    /// Opens a directory and lists it, if its content is transferred.
    fn walk_dir(&self, worker: &mut Worker<'_>, dir: OpenDir, queue: &Queue<'_, Unit>) {
        let lists = dir.lists;
        let opened = self.open_dir(worker, dir);
        worker.at.finished();
        let Some(node) = opened else { return self.listed() };
        match node.fds() {
            Ok(fds) if self.descends(&node, lists) => {
                node.listed.store(true, Ordering::Relaxed);
                self.list(worker, Listing::new(&node, fds), queue);
            }
            _ => {
                self.listed();
                self.release(worker, &node);
            }
        }
    }

    /// Queues a directory that was found.
    pub(super) fn push_open_dir(&self, queue: &Queue<'_, Unit>, dir: OpenDir) {
        dir.parent.hold();
        self.unlisted.fetch_add(1, Ordering::Relaxed);
        queue.push(Unit::OpenDir(dir));
    }

    /// Records that a directory is listed to its end or skipped, and whether it was the last one.
    pub(super) fn listed(&self) {
        let last = self.unlisted.fetch_sub(1, Ordering::AcqRel) == 1;
        if last && self.context.pass == Pass::Transfer {
            self.all_found();
        }
    }

    /// Returns whether the content of a directory is transferred. `lists`: see [`OpenDir`].
    pub(super) fn descends(&self, node: &Node, lists: bool) -> bool {
        let crosses = node.sides.first().is_some_and(|side| side.volume != node.source.dev);
        (self.context.policy.recurse || lists) && !(self.context.policy.one_file_system && crosses)
    }
}

/// Reads a whole directory and passes its names on such that the last units queued, which are taken first, are the
/// first ones of rsync's order: files by name, then directories by path.
fn sorted(
    reader: &mut Reader,
    dir: BorrowedFd<'_>,
    mut each: impl FnMut(&CStr, Kind),
) -> std::io::Result<()> {
    let (mut dirs, mut others) = (Vec::new(), Vec::new());
    while reader.next_batch(dir, |name, kind, _| match kind {
        Kind::Dir => dirs.push((name.to_owned(), kind)),
        _ => others.push((name.to_owned(), kind)),
    })? {}
    // Directories sort as if their names ended in a slash.
    let path = |name: &CString| [name.to_bytes(), b"/"].concat();
    dirs.sort_by_cached_key(|(name, _)| std::cmp::Reverse(path(name)));
    others.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    for (name, kind) in dirs.iter().chain(&others) {
        each(name, *kind);
    }
    Ok(())
}

impl<'a> Work for Engine<'a> {
    type Unit = Unit;
    type State = Worker<'a>;

    fn start(&self, index: usize) -> Worker<'a> {
        self.worker(index)
    }

    fn places(&self) -> Vec<u64> {
        self.volumes.lock().clone()
    }

    fn place(&self, unit: &Unit) -> u64 {
        unit.volume()
    }

    fn idle(&self, worker: &mut Worker<'a>, waits: bool) {
        worker.at.rest(waits);
    }

    fn run(&self, unit: Unit, worker: &mut Worker<'a>, queue: &Queue<'_, Unit>) {
        worker.at.begin_unit();
        match unit {
            Unit::OpenDir(dir) if self.is_over() => {
                self.listed();
                self.release(worker, &dir.parent);
            }
            // Opening uses descriptors, so it waits while many units are queued.
            Unit::OpenDir(dir) if !queue.has_room() => queue.put_aside(Unit::OpenDir(dir)),
            Unit::OpenDir(dir) => self.walk_dir(worker, dir, queue),
            Unit::List(listing) => self.list(worker, listing, queue),
            Unit::Chunk(chunk) => {
                let rest = Rest::new(&chunk, queue);
                self.chunk(worker, &rest);
                self.names_listed(&rest);
                self.release(worker, &chunk.node);
            }
            Unit::Help(shared_copy) => worker.mover.help(&worker.at, &shared_copy, queue),
            Unit::Prune(node) => {
                self.pruning.prune(worker, &node);
                self.release(worker, &node);
            }
        }
        self.flush(worker);
        worker.at.end_unit();
    }
}

impl Helpers for Queue<'_, Unit> {
    fn call(&self, shared_copy: Arc<SharedCopy>) {
        self.push(Unit::Help(shared_copy));
    }

    fn is_shut_out(&self) -> bool {
        Queue::is_shut_out(self)
    }
}
