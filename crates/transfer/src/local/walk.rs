//! The walk: directories are opened on both sides, listed, and split into chunks; the last unit below a directory
//! sets its attributes.

use super::attributes::Have;
use super::engine::{Chunk, DirListing, LocalEngine, OpenDir, Pass, Rest, Unit, Worker};
use super::entry::DirEntry;
use super::fake_super::AttributeHandle;
use super::guard::{self, Listed};
use super::shared_copy::{Helpers, SharedCopy};
use super::source::{SourceDir, SourceHandle};
use super::target_dir::{Base, DirFds, DirSide, Node, OpenResult, Selection, TargetDir};
use crate::failure::{Failure, c_string};
use crate::policy::filter::{FilterError, Origin, SidedRules};
use crate::policy::{Delete, Policy, Symlinks};
use crate::publish::{LEFT_OUT, TempNames};
use hakobu_core::error::{ErrorClass, Operation};
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::dir::{self, Reader};
use hakobu_sys::paths::{Links, RefusedLink, ancestors};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, errno, file, meta};
use hakobu_tree::handle::DirectoryHandle;
use hakobu_tree::names::push_name;
use hakobu_tree::pool::{Queue, Work};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl LocalEngine<'_> {
    /// Continues a listing until it ends or the queue is full.
    pub(super) fn list(
        &self,
        worker: &mut Worker<'_>,
        mut listing: DirListing,
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
        self.sweep(&node, queue);
        self.release(worker, &node);
    }

    /// Has a target directory pruned, if there may be anything to remove, now that all names of its source are known.
    /// Returns whether it is.
    pub(super) fn sweep(&self, node: &Arc<Node>, queue: &Queue<'_, Unit>) -> bool {
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
            queue.push(Unit::Prune(Arc::clone(node)));
        }
        prunes
    }

    fn list_batch(
        &self,
        worker: &mut Worker<'_>,
        listing: &mut DirListing,
        queue: &Queue<'_, Unit>,
    ) -> std::io::Result<bool> {
        let DirListing { node, fds, side, chunk } = listing;
        let source_dir = fds.source(*side)?.here()?;
        let Worker { reader, path, at, .. } = worker;
        at.step(Phase::List, 1);
        let rules = node.rules.as_ref();
        let range = self.context.range;
        path.clear();
        if rules.is_some() || range.is_some() {
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
            let depends = rules.is_some() || range.is_some();
            if kind == Kind::Unknown && (depends || self.context.policy.prune_empty_dirs) {
                kind = meta::of(source_dir, name, false).map_or(Kind::Unknown, |meta| meta.kind);
            }
            if depends {
                path.truncate(prefix);
                path.extend_from_slice(name.to_bytes());
                let own = || node.path_of(name);
                let is_dir =
                    kind == Kind::Dir || self.context.is_followed_dir(source_dir, name, kind, own);
                let hides = |rules| self.is_hidden(rules, path, is_dir);
                if !self.context.wants(path, is_dir) || rules.is_some_and(hides) {
                    return;
                }
            }
            // The first source that has a name provides it.
            let lacks = |error: std::io::Error| errno::is(&error, errno::ENOENT);
            let has = |fd: BorrowedFd<'_>| match meta::of(fd, name, false) {
                // In a source that ignores case it may be another name.
                Ok(there) if self.context.guard.ignores_case(fd, there.dev) => {
                    !matches!(guard::listed((fd, name), there.ino), Ok(Listed::As(_)))
                }
                looked => !looked.is_err_and(lacks),
            };
            let earlier = |side| {
                node.selects(side, name)
                    && fds.source(side).and_then(SourceDir::here).is_ok_and(has)
            };
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
                        far: None,
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
        let class = if self.context.policy.remove_source_dirs {
            ErrorClass::Partial
        } else {
            ErrorClass::Notice
        };
        match class {
            ErrorClass::Partial => worker.totals.failed += 1,
            _ => worker.count_left_out(),
        }
        node.keep_source();
        let source = Some(node.source_path(side, name));
        self.reports.notice(Operation::Read, (source, None), LEFT_OUT, class);
    }

    pub(super) fn send_chunk(&self, listing: &mut DirListing, queue: &Queue<'_, Unit>) {
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
        if let Some(announcer) = self.announcer.filter(|_| self.context.pass == Pass::Transfer) {
            return self.announce(worker, rest, announcer);
        }
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
        let of = |name| DirEntry {
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
    fn delete_pass_name(&self, entry: &DirEntry<'_>) {
        let Ok((dir, name)) = entry.source() else { return };
        let Some(dir_fd) = dir.fd() else { return };
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
                self.list(worker, DirListing::new(&node, fds), queue);
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

impl<'a> Work for LocalEngine<'a> {
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
            Unit::Receive(receiving) => self.receive(worker, receiving, queue),
            Unit::Replaced(replaced) => self.look_at_replaced(worker, *replaced),
            Unit::Prune(node) => {
                self.pruning.prune(worker, &node);
                self.release(worker, &node);
            }
            Unit::Remove(extra) => {
                self.pruning.remove_extra(worker, &extra);
                self.release(worker, &extra.node);
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

// Opening a directory: opens it on both sides, creates it at the target if it is missing, and makes it a node.

/// Reason that a followed symlink is not copied.
const LEADS_BACK: &str = "it leads back to a directory above";
/// Reason that a target directory is not copied.
const INTO_ITSELF: &str = "the target is inside the source; it is not copied into itself";

/// Checks that a directory is `root` or in it.
///
/// # Errors
/// EXDEV: it is not; those of looking at the directories above.
fn check_inside(fd: &OwnedFd, root: &Path) -> std::io::Result<()> {
    let root = dir::open_root(&c_string(root.as_os_str().as_bytes())?)?;
    let root = meta::of_fd(&root)?.identity();
    match ancestors(fd.as_fd())?.contains(&root) {
        true => Ok(()),
        false => Err(std::io::Error::from_raw_os_error(errno::EXDEV)),
    }
}

/// Returns whether a name is a symlink to a directory that it is in: following it would never end. A directory itself
/// may be a source of its own below another one.
fn is_loop(
    parent: &Node,
    fds: &DirFds,
    (side, name): (usize, &CStr),
    identity: (u64, u64),
) -> bool {
    let is_link = || {
        let own = fds.source(side).and_then(|dir| dir.look(name, false));
        own.map_or(true, |own| own.kind == Kind::Symlink)
    };
    parent.is_inside(identity) && is_link()
}

impl LocalEngine<'_> {
    /// Opens a directory on both sides. On failure, or if it is skipped, releases its unit's hold on the parent;
    /// otherwise the hold passes to the node.
    pub(super) fn open_dir(&self, worker: &mut Worker<'_>, dir: OpenDir) -> Option<Arc<Node>> {
        let parent = Arc::clone(&dir.parent);
        let target_name = dir.target_name.as_deref().unwrap_or(&dir.name);
        match self.try_open_dir(worker, &dir) {
            Ok(Some(node)) => return Some(node),
            Ok(None) => {}
            Err(failure) => {
                let source = parent.source_path(dir.side, &dir.name);
                let target = parent.target_path(target_name);
                parent.keep_source();
                self.fail(worker, failure, (Some(source), Some(target)));
            }
        }
        self.release(worker, &parent);
        None
    }

    pub(super) fn try_open_dir(
        &self,
        worker: &mut Worker<'_>,
        dir: &OpenDir,
    ) -> Result<Option<Arc<Node>>, Failure> {
        let OpenDir { parent, side, name, follow, .. } = dir;
        let target_name = dir.target_name.as_deref().unwrap_or(name);
        let parent_fds = parent.fds().map_err(Failure::of(Operation::List))?;
        let (sides, source, incomplete) = self.open_sides(worker, parent, &parent_fds, dir)?;
        let left_out = |reason| {
            let source = Some(parent.source_path(*side, name));
            let target = Some(parent.target_path(target_name));
            self.reports.notice(Operation::MakeDir, (source, target), reason, ErrorClass::Partial);
            parent.keep_source();
            Ok(None)
        };
        if *follow && is_loop(parent, &parent_fds, (*side, name), source.identity()) {
            worker.totals.failed += 1;
            self.context.guard.leave_unread();
            return left_out(LEADS_BACK);
        }
        let is_target = self.context.guard.is_target(source.identity());
        if is_target || parent.is_made_in(source.identity()) {
            worker.totals.failed += 1;
            self.context.guard.leave_unread();
            return left_out(INTO_ITSELF);
        }
        let mut path = std::mem::take(&mut worker.path);
        path.clear();
        parent.push_path(&mut path);
        push_name(&mut path, target_name.to_bytes());
        let mut files = SourceFiles::new(self.context.policy);
        let rules = match (&self.context.policy.filter, &parent.rules) {
            (Some(filter), Some(rules)) => {
                // Those of the other end are read there.
                let first = sides.first().and_then(|side| side.handle.here().ok());
                let first = first
                    .map(|handle| handle.fd())
                    .transpose()
                    .map_err(Failure::of(Operation::List))?;
                let rules = filter.enter(rules.source(), &path, &mut |name| match &first {
                    Some(fd) => files.read((**fd).as_fd(), name),
                    None => Ok(None),
                });
                Some(SidedRules::new(rules.map_err(filter_failure)?))
            }
            _ => None,
        };
        let incomplete = incomplete || files.refused.is_some();
        if let Some(error) = files.refused {
            let failure = Failure { operation: Operation::Filter, error };
            self.fail(worker, failure, (Some(parent.source_path(*side, name)), None));
        }
        if self.context.policy.omit_mounts
            && !dir.lists
            && sides.first().is_some_and(|side| side.volume != source.dev)
        {
            return Ok(None);
        }
        let is_outside = self.context.is_outside(&path);
        worker.totals.seen_dirs += u64::from(!dir.implied && !is_outside);
        let source = match dir.implied {
            true => self.plain_dir(source),
            false => source,
        };
        let mut node = Node {
            parent: Some(Arc::clone(parent)),
            target_name: target_name.into(),
            overlap: parent.overlap,
            owns_attributes: !dir.implied && !is_outside,
            is_outside,
            ..Node::new(sides, source, rules, incomplete)
        };
        match parent_fds.target().zip(parent.target_handle()) {
            Some((dir_fd, above)) => match self.open_target(worker, &node, parent, dir_fd)? {
                OpenResult::Dir(fd, info) => {
                    if self.is_dir_taken(parent, &parent_fds, target_name, &info)? {
                        parent.keep_source();
                        worker.totals.failed += 1;
                        let source = Some(parent.source_path(*side, name));
                        self.clash((source, Some(parent.target_path(target_name))));
                        return Ok(None);
                    }
                    if self.pruning.reads_target_rules() && !info.fresh {
                        node.rules = self.target_rules(worker, &node, parent, &path, fd.as_fd());
                    }
                    let identity = info.meta.identity();
                    node.overlap = self.context.guard.overlap(parent.overlap, identity);
                    node.names = target_names(Some((&fd, &info)))?;
                    let handle = above.join(target_name, fd, identity, info.follow);
                    node.target = Mutex::new(Some((info, handle)));
                }
                OpenResult::Later => {}
                OpenResult::LeftOut => return Ok(None),
            },
            None => match self.announcer {
                Some(announcer) => self.announce_dir(&node, dir.implied, announcer)?,
                None if self.context.pass == Pass::Delete => return Ok(None),
                None => self.report_missing_dir(worker, &node),
            },
        }
        worker.path = path;
        // Absent ones are skipped.
        let below = |handle: &Arc<DirectoryHandle>| Some(handle.child(target_name).ok()?.0);
        node.bases = parent.bases.iter().filter_map(below).collect();
        Ok(Some(Arc::new(node)))
    }

    /// Returns the metadata of a directory as mkdir(1) creates it, with the identity of another one.
    fn plain_dir(&self, like: Meta) -> Meta {
        let (uid, gid) = (self.context.euid, self.context.egid);
        Meta { mode: 0o777 & !self.context.umask, uid, gid, ..like }
    }

    /// Returns the rules of a node including those in its target directory's own files. Read before anything in that
    /// directory changes, as in rsync.
    fn target_rules(
        &self,
        worker: &mut Worker<'_>,
        node: &Node,
        parent: &Node,
        path: &[u8],
        target: BorrowedFd<'_>,
    ) -> Option<SidedRules> {
        let (filter, rules) = (self.context.policy.filter.as_deref()?, node.rules.clone()?);
        let above = parent.rules.as_ref()?;
        let links = &self.context.policy.links;
        let read = &mut |name: &[u8]| read_merge_file(links, target, name);
        let (entered, done) = above.enter_target(filter, path, read);
        if let Err(error) = done {
            self.fail(worker, filter_failure(error), (None, Some(node.target_path(c""))));
        }
        Some(rules.with_target(entered.target().cloned()))
    }

    /// Opens the directory in the source it was found in, and in later sources that have it. Returns these sides, the
    /// metadata of the first one, and [`Node::incomplete`].
    fn open_sides(
        &self,
        worker: &mut Worker<'_>,
        parent: &Node,
        parent_fds: &DirFds,
        dir: &OpenDir,
    ) -> Result<(Vec<DirSide>, Meta, bool), Failure> {
        let OpenDir { side: first, name, follow, .. } = dir;
        if let Some(far) = &dir.far {
            let (handle, volume) = (SourceHandle::Far(Arc::clone(far)), far.own.meta.dev);
            let (name, selection) = (name.clone(), None);
            let side = DirSide { parent_side: 0, name, handle, selection, volume };
            return Ok((vec![side], far.own.meta, parent.incomplete));
        }
        let open = |side: usize, follow: bool| -> std::io::Result<(DirSide, Meta)> {
            let fd = dir::open(parent_fds.source(side)?.here()?, name, follow)?;
            if follow && let Some(root) = &self.context.policy.root {
                check_inside(&fd, root)?;
            }
            let meta = self.context.source_of_fd(&fd)?;
            let above = parent.sides.get(side).map(|side| &side.handle);
            let above = above.ok_or_else(|| std::io::Error::from_raw_os_error(errno::EBADF))?;
            let handle = above.here()?.join(name, fd, meta.identity(), follow);
            let side = DirSide {
                parent_side: side,
                name: name.clone(),
                handle: SourceHandle::Here(handle),
                selection: parent.selection_below(side, name),
                volume: parent.volume_below(side, meta.dev),
            };
            Ok((side, meta))
        };
        worker.at.step(Phase::Look, 1);
        let (side, source) = open(*first, *follow).map_err(Failure::of(Operation::Read))?;
        let (mut sides, mut incomplete) = (vec![side], parent.incomplete);
        let follows = *follow
            || self.context.policy.copy_dirlinks
            || self.context.policy.symlinks == crate::policy::Symlinks::Follow;
        for later in first + 1..parent.sides.len() {
            if !parent.selects(later, name) {
                continue;
            }
            worker.at.step(Phase::Look, 1);
            let follows = follows || parent.selects_followed(later, name);
            match open(later, follows) {
                Ok((side, meta)) => {
                    let crosses = self.context.policy.one_file_system && side.volume != meta.dev;
                    if crosses {
                        incomplete = true;
                        continue;
                    }
                    let loops =
                        follows && is_loop(parent, parent_fds, (later, name), meta.identity());
                    if loops || self.context.guard.is_target(meta.identity()) {
                        incomplete = true;
                        worker.totals.failed += 1;
                        parent.keep_source();
                        let source = Some(parent.source_path(later, name));
                        let target = Some(parent.target_path(name));
                        let reason = if loops { LEADS_BACK } else { INTO_ITSELF };
                        let paths = (source, target);
                        self.reports.notice(Operation::MakeDir, paths, reason, ErrorClass::Partial);
                        continue;
                    }
                    sides.push(side);
                }
                Err(error) if errno::is_gone(&error) || errno::is_no_dir(&error) => {}
                // Its content is unknown, which is not the same as empty.
                Err(error) => {
                    incomplete = true;
                    parent.keep_source();
                    let failure = Failure { operation: Operation::List, error };
                    self.fail(worker, failure, (Some(parent.source_path(later, name)), None));
                }
            }
        }
        Ok((sides, source, incomplete))
    }
}

// Closing a directory: the last unit below it sets its attributes, and so on upwards.

impl LocalEngine<'_> {
    /// Records the end of one unit below `node`; the last one finishes the node, and so on upwards.
    pub(super) fn release(&self, worker: &mut Worker<'_>, node: &Arc<Node>) {
        let mut node = Arc::clone(node);
        while node.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            if node.prunes_last.swap(false, Ordering::Relaxed) && self.pruning.prune(worker, &node)
            {
                return;
            }
            self.close_dir(worker, &node);
            let owner = || {
                let owner = node.base.as_ref()?.owner.as_ref()?;
                if node.touched.load(Ordering::Relaxed) {
                    owner.touch();
                }
                Some(owner)
            };
            match node.parent.as_ref().or_else(owner) {
                Some(above) => node = Arc::clone(above),
                None => return,
            }
        }
    }

    /// Sets the attributes of a directory, now that nothing in it will change any more.
    fn close_dir(&self, worker: &mut Worker<'_>, node: &Arc<Node>) {
        if let Some(announcer) = self.announcer {
            announcer.end(node, self.pruning.is_known(node), self.pruning.is_due());
            return node.close();
        }
        if let Some(info) = node.target_dir().filter(|info| info.caseless) {
            self.context.guard.forget(info.meta.identity());
        }
        worker.at.turn(Phase::Settle);
        if let Err(failure) = self.try_close_dir(worker, node) {
            let (source, target) = (node.source_path(0, c""), node.target_path(c""));
            node.keep_source();
            self.fail(worker, failure, (Some(source), Some(target)));
        }
        if self.context.policy.remove_source_dirs && self.context.is_real() {
            self.remove_source_dir(worker, node);
        }
        node.close();
    }

    fn try_close_dir(&self, worker: &mut Worker<'_>, node: &Arc<Node>) -> Result<(), Failure> {
        let sets = self.context.is_real() && !self.context.policy.leave_dirs;
        let Some(info) = node.target_dir().filter(|_| sets) else {
            return Ok(());
        };
        let existing = (!info.created).then_some(&info.meta);
        let touched = node.touched.load(Ordering::Relaxed);
        let pruned = self.context.policy.prune_empty_dirs && !node.needed.load(Ordering::Relaxed);
        let not_now = self.context.pass == Pass::Delete
            && (self.context.policy.delete == Delete::Before || !touched);
        if !node.owns_attributes || pruned || not_now {
            return self.close_again(node, &info);
        }
        let mut want = self.want_dir(worker, node, existing);
        if info.created && !self.context.policy.preserve.mode {
            // Keep what it inherits from its parent: default ACL and setgid.
            want.mode |= info.meta.mode & 0o2000;
            if node.parent.is_none() {
                // Created with all bits that umask or default ACL allow.
                let bits = worker.attributes.bits(&node.source) & 0o777;
                want.mode = want.mode & 0o7000 | bits & (info.meta.mode | 0o700);
            } else if info.default_bits.is_some() {
                want.mode = info.meta.mode & !0o700 | want.mode & 0o700;
            }
        }
        let times =
            self.context.policy.preserve.times && !self.context.policy.preserve.omit_dir_times;
        let mut have = Have::from(&info.meta);
        if self.was_opened(&info) {
            have.mode |= 0o700;
        }
        let differs = have.mode != want.mode
            || want.uid.is_some_and(|uid| uid != have.uid)
            || want.gid.is_some_and(|gid| gid != have.gid)
            || want.times.is_some() && !self.same_dir_time(node, &info, None);
        let changes = info.created || differs || (touched && (times || self.context.policy.fsync));
        if !changes && !worker.attributes.wants_xattrs() {
            return Ok(());
        }
        let fds = node.fds().map_err(Failure::of(Operation::SetTimes))?;
        let (Some(to), from) = (fds.target(), fds.source(0)) else { return Ok(()) };
        let from = from.map_err(Failure::of(Operation::Read))?;
        let above = node.parent.as_ref().and_then(|parent| parent.rules.as_ref());
        worker.attributes.within(above);
        if !changes {
            let (from, to) = (from.attributes(), AttributeHandle::Open(to));
            return worker.attributes.xattrs.copy(from, to, false).map(drop);
        }
        let fresh = info.created && info.default_bits.is_none();
        worker.attributes.settle(&worker.at, Some(from.attributes()), to, &want, have, fresh)?;
        if self.context.policy.fsync {
            worker.at.step(Phase::Settle, 1);
            file::sync(to).map_err(Failure::of(Operation::Sync))?;
        }
        if worker.attributes.count_unprivileged(&node.source, &want) {
            return Err(Failure::code(Operation::SetOwner, errno::EPERM));
        }
        Ok(())
    }

    /// Returns whether `open_existing` added permissions to an existing directory.
    fn was_opened(&self, info: &TargetDir) -> bool {
        !info.created && self.opens_up(&info.meta) && !info.follow
    }

    /// Restores the mode of a directory that was opened for us.
    fn close_again(&self, node: &Arc<Node>, info: &TargetDir) -> Result<(), Failure> {
        if !self.was_opened(info) {
            return Ok(());
        }
        let fds = node.fds().map_err(Failure::of(Operation::SetMode))?;
        let Some(to) = fds.target() else { return Ok(()) };
        meta::set_mode_fd(to, info.meta.mode).map_err(Failure::of(Operation::SetMode))
    }

    /// Removes a source directory of `mv` across file systems once it is empty.
    fn remove_source_dir(&self, worker: &mut Worker<'_>, node: &Arc<Node>) {
        let Some(parent) = &node.parent else { return };
        if node.kept_sources.load(Ordering::Relaxed) > 0 || self.is_over() {
            return parent.keep_source();
        }
        let removed = || {
            let fds = parent.fds()?;
            let Some(side) = node.sides.first() else { return Ok(()) };
            dir::rmdir(fds.source(side.parent_side)?.here()?, &side.name)
        };
        worker.at.step(Phase::Remove, 1);
        if let Err(error) = removed() {
            let failure = Failure { operation: Operation::Remove, error };
            self.fail(worker, failure, (Some(node.source_path(0, c"")), None));
            parent.keep_source();
        }
    }
}

// Filter rule files in the directories of a transfer.

/// Returns the failure of an entry whose rules cannot be read.
pub(super) fn filter_failure(error: FilterError) -> Failure {
    let error = std::io::Error::other(error.to_string());
    Failure { operation: Operation::Filter, error }
}

/// Reads the per-directory merge files of one source directory, without those that are symlinks of other users: a user
/// who can make such a link can remove the file as well.
pub(super) struct SourceFiles<'a> {
    links: &'a Links,
    /// Whether a refused file is an error, because rules that are not applied would have sources removed.
    is_strict: bool,
    /// The last refused symlink.
    pub refused: Option<std::io::Error>,
}

impl<'a> SourceFiles<'a> {
    pub(super) fn new(policy: &'a Policy) -> SourceFiles<'a> {
        let is_strict = policy.remove_source_files || policy.remove_source_dirs;
        SourceFiles { links: &policy.links, is_strict, refused: None }
    }

    /// As [`read_merge_file`].
    pub(super) fn read(
        &mut self,
        dir_fd: BorrowedFd<'_>,
        name: &[u8],
    ) -> std::io::Result<Option<Vec<u8>>> {
        match read_merge_file(self.links, dir_fd, name) {
            Err(error) if RefusedLink::is_foreign(&error) && !self.is_strict => {
                self.refused = Some(error);
                Ok(None)
            }
            other => other,
        }
    }
}

/// Reads a per-directory merge file; returns `None` if there is none.
///
/// # Errors
/// EFBIG above 1 MiB: that is data, not rules, and rules are never truncated. A symlink that `links` does not allow.
pub(crate) fn read_merge_file(
    links: &Links,
    dir_fd: BorrowedFd<'_>,
    name: &[u8],
) -> std::io::Result<Option<Vec<u8>>> {
    const BYTES_MAX: u64 = 1 << 20;
    let plain = !name.contains(&b'/') && !matches!(links, Links::Within(_));
    let name = c_string(name)?;
    let opened = match file::open_read(dir_fd, &name, false) {
        Err(error) if plain && !errno::is(&error, errno::ELOOP) => Err(error),
        Ok(fd) if plain => Ok(fd),
        _ => links.open_read(dir_fd, &name),
    };
    let fd = match opened {
        Ok(fd) => fd,
        Err(error) if errno::is(&error, errno::ENOENT) => return Ok(None),
        Err(error) => return Err(error),
    };
    if meta::of_fd(&fd)?.kind != Kind::File {
        return Ok(None);
    }
    let mut content = Vec::new();
    File::from(fd).take(BYTES_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > BYTES_MAX {
        return Err(std::io::Error::from_raw_os_error(errno::EFBIG));
    }
    Ok(Some(content))
}

// Start of a walk: the nodes of arguments and of the directories above them, and the first units.

/// Maximum `st_size`, in bytes, of a target directory of single arguments that is searched for leftovers: a larger
/// one would take longer than the copy.
const PRUNED_BASE_BYTES_MAX: u64 = 256 << 10;

/// Reads a per-directory file of an open directory.
type ReadTop<'a> = dyn FnMut(BorrowedFd<'_>, &[u8]) -> std::io::Result<Option<Vec<u8>>> + 'a;

/// Maximum number of source devices among which workers are divided; further ones count as the first.
const VOLUMES_MAX: usize = 8;

/// The ends of an argument: open directories on both sides.
pub struct ArgumentEnds {
    /// Source directories, their paths as typed, and the names in them that are transferred (`None`: all, or those
    /// that are added one by one).
    pub sources: Vec<(OwnedFd, PathBuf, Option<Arc<Selection>>)>,
    /// The target directory; `None` if nothing is written.
    pub target: Option<OwnedFd>,
    /// Its path, starting as the user typed it.
    pub target_path: PathBuf,
    /// Whether this run just created the target directory.
    pub created: bool,
    /// Its path in the transfer.
    pub path: Vec<u8>,
    /// The name of the argument in the source directory, if the argument is only that name.
    pub first: Vec<u8>,
    /// Names in the target directory that other arguments provide: not extraneous.
    pub provided: Vec<Box<CStr>>,
    /// The node that sets the attributes of the same target directory: it is finished after this one.
    pub owner: Option<Arc<Node>>,
    /// Open `--link-dest` directories that belong to it.
    pub bases: Vec<Option<OwnedFd>>,
}

/// Returns the path from the root, as bytes, without accessing the file system. An empty path is the working
/// directory.
///
/// # Errors
/// The working directory is not known.
pub(super) fn absolute(path: Option<&PathBuf>) -> Result<Vec<u8>, Failure> {
    let path = path.filter(|path| !path.as_os_str().is_empty());
    let path = path.map_or_else(std::env::current_dir, std::path::absolute);
    let path = path.map_err(Failure::of(Operation::Filter))?;
    Ok(path.into_os_string().into_encoded_bytes())
}

/// Returns the names of an existing directory that ignores case; none for others.
pub(super) fn target_names(
    target: Option<(&OwnedFd, &TargetDir)>,
) -> Result<HashSet<Box<CStr>>, Failure> {
    match target.filter(|(_, info)| info.caseless && !info.fresh) {
        Some((fd, _)) => guard::names_of(fd.as_fd()).map_err(Failure::of(Operation::List)),
        None => Ok(HashSet::new()),
    }
}

impl LocalEngine<'_> {
    /// Returns the node of an argument. `whole`: the directories are copied with their attributes; otherwise only
    /// names in them are. The caller holds it until [`LocalEngine::release_hold`].
    ///
    /// # Errors
    /// Those of examining the directories and of reading their filter rules.
    pub fn base(&self, ends: ArgumentEnds, whole: bool) -> Result<Arc<Node>, Failure> {
        let stat = || Failure::of(Operation::Stat);
        let mut worker = self.worker(0);
        let (mut paths, mut sides) = (Vec::new(), Vec::new());
        let mut source = None;
        for (fd, path, selection) in ends.sources {
            let meta = self.context.source_of_fd(&fd).map_err(stat())?;
            let mut volumes = self.volumes.lock();
            if volumes.len() < VOLUMES_MAX && !volumes.contains(&meta.dev) {
                volumes.push(meta.dev);
            }
            drop(volumes);
            sides.push(DirSide {
                parent_side: 0,
                name: c"".into(),
                handle: SourceHandle::Here(DirectoryHandle::pin(&self.budget, fd, meta.identity())),
                selection,
                volume: meta.dev,
            });
            paths.push(path);
            source.get_or_insert(meta);
        }
        let Some(source) = source else {
            return Err(stat()(std::io::Error::from_raw_os_error(errno::EINVAL)));
        };
        let target = match &ends.target {
            Some(fd) => Some(self.look_at_base(&mut worker, fd, whole, ends.created)?),
            None => None,
        };
        let names = target_names(ends.target.as_ref().zip(target.as_ref()))?;
        let (from, to) = (absolute(paths.first())?, absolute(Some(&ends.target_path))?);
        let origin = Origin { source: &from, target: &to, first: &ends.first };
        let first = sides
            .first()
            .map(|side: &DirSide| side.handle.here().and_then(DirectoryHandle::fd))
            .transpose()
            .map_err(stat())?;
        let ends_of = (first.as_deref(), ends.target.as_ref());
        let inside = whole.then_some(&*ends.path);
        let (rules, incomplete) = self.base_rules(&mut worker, &origin, inside, ends_of)?;
        let pin = |fd, identity| DirectoryHandle::pin(&self.budget, fd, identity);
        let target =
            ends.target.zip(target).map(|(fd, info)| (info, pin(fd, info.meta.identity())));
        let basis = |fd| Some((meta::of_fd(&fd).ok()?.identity(), fd));
        let bases = ends.bases.into_iter().flatten().filter_map(basis);
        let bases = bases.map(|(identity, fd)| pin(fd, identity)).collect();
        let is_outside = whole && self.context.is_outside(&ends.path);
        let node = Arc::new(Node {
            overlap: self.context.guard.target_overlap(),
            names,
            base: Some(Box::new(Base {
                sources: paths,
                target: ends.target_path,
                path: ends.path,
                provided: ends.provided,
                owner: ends.owner,
            })),
            owns_attributes: whole && !is_outside,
            is_outside,
            target: Mutex::new(target),
            bases,
            ..Node::new(sides, source, rules, incomplete)
        });
        match self.announcer {
            Some(announcer) => self.announce_dir(&node, false, announcer)?,
            None if whole && !is_outside => self.report_base(&mut worker, &node, 1),
            None => {}
        }
        self.flush(&mut worker);
        Ok(node)
    }

    /// Looks at the target directory of an argument. `whole`: the directory is copied with its attributes; `created`: by
    /// this run.
    pub(super) fn look_at_base(
        &self,
        worker: &mut Worker<'_>,
        fd: &OwnedFd,
        whole: bool,
        created: bool,
    ) -> Result<TargetDir, Failure> {
        let meta = self.context.target_of_fd(fd).map_err(Failure::of(Operation::Stat))?;
        let guard = self.context.guard;
        guard.add_target(meta.identity());
        let (fresh, swept) = match whole && !created {
            true => self.glance(worker, fd)?,
            false => (whole, whole),
        };
        let mut default_bits = worker.attributes.xattrs.default_bits(fd.as_fd())?;
        if created && worker.attributes.disinherit(fd.as_fd())? {
            default_bits = None;
        }
        let follow = true;
        let caseless = guard.ignores_case(fd.as_fd(), meta.dev);
        if !fresh && !created {
            self.groups.park();
        }
        Ok(TargetDir { fresh, swept, created, meta, default_bits, follow, caseless })
    }

    /// Returns the rules of a base with this first source and target, and whether a file of the source was refused, so
    /// that nothing may be deleted. `inside`: its path in the transfer, if the directories are copied as a whole.
    pub(super) fn base_rules(
        &self,
        worker: &mut Worker<'_>,
        origin: &Origin<'_>,
        inside: Option<&[u8]>,
        (source, target): (Option<&OwnedFd>, Option<&OwnedFd>),
    ) -> Result<(Option<SidedRules>, bool), Failure> {
        let Some(filter) = &self.context.policy.filter else { return Ok((None, false)) };
        let links = &self.context.policy.links;
        let rules = |origin: &Origin<'_>, top: Option<&OwnedFd>, read: &mut ReadTop<'_>| {
            let above = &mut |path: &[u8]| read_merge_file(links, dir::cwd(), path);
            let root = filter.root(origin, above)?;
            let Some((top, path)) = top.zip(inside) else { return Ok(root) };
            filter.enter(&root, path, &mut |name| read(top.as_fd(), name))
        };
        let mut files = SourceFiles::new(self.context.policy);
        let sides = rules(origin, source, &mut |top, name| files.read(top, name));
        let sides = SidedRules::new(sides.map_err(filter_failure)?);
        let refused = files.refused.is_some();
        if let Some(error) = files.refused {
            let source = OsStr::from_bytes(origin.source).into();
            let failure = Failure { operation: Operation::Filter, error };
            self.fail(worker, failure, (Some(source), None));
        }
        if !self.pruning.reads_target_rules() || target.is_none() {
            return Ok((Some(sides), refused));
        }
        let at_target = Origin { source: origin.target, ..*origin };
        let own = rules(&at_target, target, &mut |top, name| read_merge_file(links, top, name));
        let own = own.map_err(|error| {
            let target = OsStr::from_bytes(origin.target).into();
            self.fail(worker, filter_failure(error), (None, Some(target)));
        });
        Ok((Some(sides.with_target(own.ok())), refused))
    }

    pub(super) fn report_base(&self, worker: &mut Worker<'_>, node: &Arc<Node>, seen: u64) {
        worker.totals.seen_dirs += seen;
        worker.at.finished();
        let Some(info) = node.target_dir() else {
            return self.report_missing_dir(worker, node);
        };
        if self.context.pass == Pass::Transfer && !self.context.policy.prune_empty_dirs {
            worker.totals.dirs_created += u64::from(info.created);
            let fds = node.fds().ok();
            let own = fds.as_ref().and_then(|fds| fds.target());
            let change = self.dir_change(worker, node, &info, own);
            self.report_dir(node, change);
        }
    }

    /// Returns the unit that copies a whole base directory.
    pub fn list_base(&self, node: &Arc<Node>) -> Option<Unit> {
        let fds = match node.fds() {
            Ok(fds) => fds,
            Err(error) => {
                self.disable_deletion();
                let failure = Failure { operation: Operation::List, error };
                self.argument_failed(failure, &node.source_path(0, c""));
                return None;
            }
        };
        node.hold();
        node.listed.store(true, Ordering::Relaxed);
        self.unlisted.fetch_add(1, Ordering::Relaxed);
        Some(Unit::List(DirListing::new(node, fds)))
    }

    /// Adds one name of a base to the units; `follow` follows a symlink. Consecutive names of one directory share a
    /// chunk.
    pub fn add_name(
        &self,
        units: &mut Vec<Unit>,
        node: &Arc<Node>,
        name: &CStr,
        target_name: Option<&CStr>,
        follow: bool,
    ) {
        if self.context.pass == Pass::Transfer {
            self.found_before(1);
        }
        self.add(units, node, (name, Kind::Unknown), target_name, (follow, true));
    }

    /// Adds a name of a base whose type is known. Consecutive names of one directory share a chunk.
    pub fn add_known(&self, units: &mut Vec<Unit>, node: &Arc<Node>, name: &CStr, kind: Kind) {
        self.found_before(1);
        self.add(units, node, (name, kind), None, (self.context.policy.follow_args, false));
    }

    fn add(
        &self,
        units: &mut Vec<Unit>,
        node: &Arc<Node>,
        (name, kind): (&CStr, Kind),
        target_name: Option<&CStr>,
        (follow, is_root): (bool, bool),
    ) {
        if let Some(Unit::Chunk(chunk)) = units.last_mut()
            && Arc::ptr_eq(&chunk.node, node)
            && chunk.target_name.is_none()
            && target_name.is_none()
            && chunk.follow == follow
            && !chunk.names.is_full()
        {
            chunk.names.push(name, kind);
            return;
        }
        node.hold();
        let target_name = target_name.map(Into::into);
        let mut chunk = Chunk { target_name, follow, is_root, ..Chunk::new(node, 0) };
        chunk.names.push(name, kind);
        self.unlisted.fetch_add(usize::from(is_root), Ordering::Relaxed);
        units.push(Unit::Chunk(chunk));
    }

    /// Removes a target name whose argument does not exist (`--delete-missing-args`). A non-empty directory is kept
    /// unless `--delete` or `--force` is given.
    ///
    /// # Errors
    /// The entry cannot be examined.
    pub fn remove_missing(&self, node: &Arc<Node>, name: &CStr) -> Result<(), Failure> {
        if self.context.pass == Pass::Delete {
            return Ok(());
        }
        if let Some(announcer) = self.announcer {
            self.announce_missing(node, name, announcer);
            return Ok(());
        }
        let mut worker = self.worker(0);
        let removed = self.remove_missing_target(&mut worker, node, name);
        self.flush(&mut worker);
        removed
    }

    /// Removes the target of an argument that does not exist.
    pub(super) fn remove_missing_target(
        &self,
        worker: &mut Worker<'_>,
        node: &Arc<Node>,
        name: &CStr,
    ) -> Result<(), Failure> {
        let fds = node.fds().map_err(Failure::of(Operation::Remove))?;
        let Some(target) = fds.target() else { return Ok(()) };
        let there = match meta::of(target, name, false) {
            Err(error) if errno::is(&error, errno::ENOENT) => return Ok(()),
            other => other.map_err(Failure::of(Operation::Remove))?,
        };
        let policy = self.context.policy;
        let empties = policy.force || policy.delete != Delete::No;
        let is_full = there.kind == Kind::Dir && !empties && {
            let fd = dir::open(target, name, false).map_err(Failure::of(Operation::Remove))?;
            !self.glance(worker, &fd)?.0
        };
        if is_full {
            let reason = "it is a directory that is not empty (--force removes it)";
            let paths = (None, Some(node.target_path(name)));
            self.reports.notice(Operation::Remove, paths, reason, ErrorClass::Notice);
        } else {
            self.pruning.remove(worker, node, &fds, name, there.kind);
        }
        Ok(())
    }

    /// Records that the rules exclude the target from the sources that it is inside of.
    pub fn hide_target(&self) {
        self.context.guard.hide_target();
    }

    /// Returns whether the rules exclude an argument.
    pub fn hides(&self, node: &Node, path: &[u8], is_dir: bool) -> bool {
        node.rules.as_ref().is_some_and(|rules| self.is_hidden(rules, path, is_dir))
    }

    /// Returns the unit that removes leftovers from the target directory of single names, unless that directory is
    /// too large.
    pub fn sweep_base(&self, node: &Arc<Node>) -> Option<Unit> {
        let info = node.target_dir()?;
        (info.meta.size <= PRUNED_BASE_BYTES_MAX && !info.created).then(|| {
            node.hold();
            Unit::Prune(Arc::clone(node))
        })
    }

    /// Enters a directory of a base without listing it: the implied directories of `--relative`. The caller holds the
    /// node until [`LocalEngine::release_hold`].
    ///
    /// # Errors
    /// It cannot be opened or created: nothing below it can be copied.
    pub fn enter_implied(
        &self,
        parent: &Arc<Node>,
        name: &CStr,
    ) -> Result<Option<Arc<Node>>, Failure> {
        let mut worker = self.worker(0);
        parent.hold();
        let dir = OpenDir {
            parent: Arc::clone(parent),
            side: 0,
            name: name.into(),
            target_name: None,
            follow: true,
            implied: self.context.policy.no_implied_dirs,
            lists: false,
            far: None,
        };
        let entered = self.try_open_dir(&mut worker, &dir);
        worker.at.finished();
        if !matches!(entered, Ok(Some(_))) {
            self.release(&mut worker, parent);
        }
        self.flush(&mut worker);
        // Reports name the argument, which is further below.
        entered.map_err(|failure| match failure.operation {
            Operation::MakeDir => failure.at(parent.target_path(name)),
            _ => failure,
        })
    }

    /// Releases the caller's hold on a node.
    pub fn release_hold(&self, node: &Arc<Node>) {
        let mut worker = self.worker(0);
        self.release(&mut worker, node);
        self.flush(&mut worker);
    }
}
