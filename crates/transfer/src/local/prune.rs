//! The target side of a directory: removes leftovers of killed runs and extraneous entries.
//!
//! Nothing is removed unless the source returns ENOENT for that name, and never in a directory whose source could not
//! be listed to its end.

use super::engine::{Context, LocalEngine, Pass, Worker};
use super::file::Publisher;
use super::guard::Overlap;
use super::links::Member;
use super::report::{PathPair, Report, Reports};
use super::target_dir::{Base, DirFds, Node};
use super::walk::{filter_failure, read_merge_file};
use crate::failure::Failure;
use crate::policy::Delete;
use crate::policy::filter::SidedRules;
use crate::publish::{DirName, LEFT_OUT, TempNames};
use hakobu_core::error::{Cause, ErrorClass, Operation};
use hakobu_core::event::Change;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, dir, disk, errno, meta};
use hakobu_tree::names::push_name;
use hakobu_tree::remove::{self, Removal, RemovalOutcome, remove_tree};
use std::collections::HashSet;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Removes entries that no source provides. One instance serves all workers.
pub(super) struct Pruning<'a> {
    context: Context<'a>,
    publisher: Arc<Publisher<'a>>,
    reports: Arc<Reports<'a>>,
    /// Whether extraneous entries may be removed at all.
    deletes: bool,
    /// Number of removals that `--max-delete` still allows.
    deletes_left: AtomicU64,
    /// An argument could not be opened: its content is unknown.
    argument_failed: AtomicBool,
}

impl<'a> Pruning<'a> {
    pub(super) fn new(
        (context, publisher): (Context<'a>, Arc<Publisher<'a>>),
        reports: Arc<Reports<'a>>,
        deletes: bool,
    ) -> Pruning<'a> {
        let deletes_left = AtomicU64::new(context.policy.max_delete.unwrap_or(u64::MAX));
        let argument_failed = AtomicBool::new(false);
        Pruning { context, publisher, reports, deletes, deletes_left, argument_failed }
    }

    /// Returns whether the target's own rule files are read: something may be deleted there.
    pub(super) fn reads_target_rules(&self) -> bool {
        self.deletes && self.context.policy.reads_target_rules()
    }

    /// Disables deletion for this run.
    pub(super) fn disable_deletion(&self) {
        self.argument_failed.store(true, Ordering::Relaxed);
    }

    fn deletes_now(&self, node: &Node) -> bool {
        let policy = self.context.policy;
        let due = match self.context.pass {
            Pass::Transfer => policy.delete == Delete::During,
            Pass::Delete => true,
        };
        let failed = self.argument_failed.load(Ordering::Relaxed)
            || self.context.guard.has_left_unread()
            || node.list_failed.load(Ordering::Relaxed);
        let trusted = policy.ignore_errors || !failed;
        let here = !policy.one_file_system || node.target_dev() == node.top().target_dev();
        // What lies in a source is not extraneous.
        let apart = node.overlap == Overlap::No;
        self.deletes && here && due && trusted && apart && node.listed.load(Ordering::Relaxed)
    }

    /// Searches the target directory for leftovers and, if due, for extraneous entries.
    pub(super) fn prune(&self, worker: &mut Worker<'_>, node: &Arc<Node>) {
        let result = self.try_prune(worker, node);
        if let Err(failure) = result {
            let paths = (None, Some(node.target_path(c"")));
            self.reports.fail(&mut worker.totals, failure, paths);
        }
    }

    fn try_prune(&self, worker: &mut Worker<'_>, node: &Arc<Node>) -> Result<(), Failure> {
        let fds = node.fds().map_err(Failure::of(Operation::List))?;
        let Some(target_dir) = fds.target() else { return Ok(()) };
        let deletes = self.deletes_now(node) && !worker.at.is_over();
        // sshfs lists a directory once for each descriptor: rewound, it would look empty, and nothing extraneous.
        let anew = match node.target_dev().is_some_and(|dev| disk::is_foreign_on(dev, target_dir)) {
            true => Some(dir::open(target_dir, c".", false).map_err(Failure::of(Operation::List))?),
            false => None,
        };
        let listed = anew.as_ref().map_or(target_dir, AsFd::as_fd);
        dir::seek(listed, 0).map_err(Failure::of(Operation::List))?;
        let mut removals = Vec::new();
        loop {
            if worker.at.is_over() {
                return Ok(());
            }
            worker.at.step(Phase::List, 1);
            let more = worker.reader.next_batch(listed, |name, kind, _| {
                // We create no directories under such names.
                if kind != Kind::Dir && TempNames::is_temp(name) {
                    if self.publisher.remove_leftover(target_dir, name) {
                        node.touch();
                    } else if deletes && !self.publisher.drafts.temp_names.is_own(name) {
                        let (operation, class) = (Operation::Remove, ErrorClass::Notice);
                        let paths = (None, Some(node.target_path(name)));
                        self.reports.notice(operation, paths, LEFT_OUT, class);
                    }
                } else if deletes {
                    removals.push((name.to_owned(), kind));
                }
            });
            let more = match more {
                // Another run has removed the directory, with everything that was to be removed in it.
                Err(error) if errno::is_gone(&error) => return Ok(()),
                more => more.map_err(Failure::of(Operation::List))?,
            };
            for (name, kind) in removals.drain(..) {
                if worker.at.is_over() {
                    return Ok(());
                }
                if let Some(kind) = self.is_extraneous(worker, node, &fds, &name, kind)? {
                    self.remove(worker, node, &fds, &name, kind);
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Returns the type of the target entry if no source has the name (or a rule hides it there) and no rule protects
    /// it.
    fn is_extraneous(
        &self,
        worker: &mut Worker<'_>,
        node: &Node,
        fds: &DirFds,
        name: &CStr,
        kind: Kind,
    ) -> Result<Option<Kind>, Failure> {
        let Some(target_dir) = fds.target() else { return Ok(None) };
        let provided = |base: &Base| base.provided.iter().any(|other| **other == *name);
        if node.base.as_deref().is_some_and(provided) {
            return Ok(None);
        }
        let rules = node.rules.as_ref();
        worker.path.clear();
        let policy = self.context.policy;
        if policy.backup_dir_is_target && self.is_backup(name) {
            return Ok(None);
        }
        if rules.is_some() || policy.prune_empty_dirs || policy.copy_unsafe_links {
            node.push_path(&mut worker.path);
            push_name(&mut worker.path, name.to_bytes());
        }
        for side in (0..fds.sources.len()).filter(|side| node.selects(*side, name)) {
            let source_dir = fds.source(side).map_err(Failure::of(Operation::Stat))?;
            worker.at.step(Phase::Look, 1);
            match meta::of(source_dir, name, false) {
                Ok(source) => {
                    let is_dir = source.kind == Kind::Dir
                        || self
                            .context
                            .is_followed_dir(source_dir, name, source.kind, || worker.path.clone());
                    let hidden = rules.is_some_and(|rules| rules.hides(&worker.path, is_dir));
                    let pruned = is_dir
                        && self.context.policy.prune_empty_dirs
                        && !self.has_content(node, source_dir, name, &worker.path)?;
                    if !hidden && !pruned {
                        return Ok(None);
                    }
                }
                Err(error) if errno::is(&error, errno::ENOENT) => {
                    // In a directory that was removed meanwhile every lookup returns ENOENT.
                    let source = meta::of_fd(source_dir).map_err(Failure::of(Operation::List))?;
                    if source.nlink == 0 {
                        return Err(Failure::code(Operation::List, errno::ESTALE));
                    }
                }
                // An error does not prove that the name is gone.
                Err(error) => return Err(Failure { operation: Operation::Stat, error }),
            }
        }
        if let Some(info) = node.target_dir().filter(|info| info.caseless) {
            let directory = info.meta.identity();
            match meta::of(target_dir, name, false) {
                // A name of the source in another case was written here or found right.
                Ok(there) if self.context.guard.is_claimed(directory, there.identity()) => {
                    return Ok(None);
                }
                Err(error) if !errno::is(&error, errno::ENOENT) => {
                    return Err(Failure { operation: Operation::Stat, error });
                }
                _ => {}
            }
        }
        let kind = match kind {
            Kind::Unknown => match meta::of(target_dir, name, false) {
                Ok(meta) => meta.kind,
                Err(error) if errno::is(&error, errno::ENOENT) => return Ok(None),
                Err(error) => return Err(Failure { operation: Operation::Stat, error }),
            },
            kind => kind,
        };
        let is_dir = kind == Kind::Dir;
        let protected =
            rules.is_some_and(|rules| self.is_protected(rules, &worker.path, is_dir, false));
        Ok((!protected).then_some(kind))
    }

    /// Returns whether the rules protect an entry of the target, and reports the rule if that is requested.
    fn is_protected(
        &self,
        rules: &SidedRules,
        path: &[u8],
        is_dir: bool,
        in_deleted_dir: bool,
    ) -> bool {
        if self.reports.remarks.filters
            && let Some(rule) = rules.receiving(path, is_dir, in_deleted_dir)
        {
            self.reports.ruled(path, is_dir, true, rule);
        }
        rules.protects(path, is_dir, in_deleted_dir)
    }

    /// Returns whether anything but directories is transferred from below a source directory (`--prune-empty-dirs`
    /// skips it otherwise). Stops at the first hit.
    fn has_content(
        &self,
        node: &Node,
        source_dir: BorrowedFd<'_>,
        name: &CStr,
        path: &[u8],
    ) -> Result<bool, Failure> {
        let mut reader = dir::Reader::default();
        // A symlink that is treated as a directory is followed, as in the walk.
        let follows = self.context.policy.follows_dirs();
        let open = dir::open(source_dir, name, follows).map_err(Failure::of(Operation::List))?;
        let filter = self.context.policy.filter.as_deref();
        let rules = node.rules.as_ref().map(|rules| Arc::clone(rules.source()));
        let mut waiting = vec![(open, path.to_vec(), rules)];
        while let Some((fd, path, rules)) = waiting.pop() {
            let rules = match (filter, rules) {
                (Some(filter), Some(rules)) => {
                    let read = &mut |name: &[u8]| {
                        read_merge_file(&self.context.policy.links, fd.as_fd(), name)
                    };
                    let entered = filter.enter(&rules, &path, read);
                    Some(entered.map_err(filter_failure)?)
                }
                (_, rules) => rules,
            };
            let mut found = false;
            let listed = reader.for_each(fd.as_fd(), |name, kind, _| {
                let mut path = path.clone();
                push_name(&mut path, name.to_bytes());
                let is_dir = kind == Kind::Dir
                    || self.context.is_followed_dir(fd.as_fd(), name, kind, || path.clone());
                let hidden = filter
                    .zip(rules.as_deref())
                    .is_some_and(|(filter, rules)| filter.check(rules, &path, is_dir, false).hide);
                match (hidden, is_dir) {
                    (true, _) => {}
                    (false, false) => found = true,
                    // A directory that cannot be opened may contain anything: it counts as content.
                    (false, true) => match dir::open(fd.as_fd(), name, follows) {
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

    /// Returns whether an entry is itself a backup of another one: it gets none of its own.
    fn is_backup(&self, name: &CStr) -> bool {
        self.context.policy.backup && name.to_bytes().ends_with(&self.context.policy.suffix)
    }

    /// Removes an entry of the target and everything below it that no rule protects.
    pub(super) fn remove(
        &self,
        worker: &mut Worker<'_>,
        node: &Arc<Node>,
        fds: &DirFds,
        name: &CStr,
        kind: Kind,
    ) {
        let Some(target_dir) = fds.target() else { return };
        let path = node.path_of(name);
        let options = remove::RemoveOptions {
            dry_run: !self.context.is_real(),
            make_writable: self.context.is_real(),
            ..remove::RemoveOptions::default()
        };
        let mut removal =
            Extraneous { pruning: self, worker, node, prefix: path.len(), rules: Vec::new(), name };
        let left = remove_tree(target_dir, name, kind, &path, options, &mut removal);
        if left == RemovalOutcome::Nothing || kind == Kind::Dir {
            node.touch();
        }
    }
}

/// Decides about and counts removals below one extraneous entry.
struct Extraneous<'e, 'w, 'p> {
    pruning: &'e Pruning<'p>,
    worker: &'e mut Worker<'w>,
    node: &'e Arc<Node>,
    /// Length of the extraneous entry's own path.
    prefix: usize,
    /// Rules in force in the directories on the current path.
    rules: Vec<SidedRules>,
    name: &'e CStr,
}

impl Extraneous<'_, '_, '_> {
    /// Returns the target path of an entry, for reports.
    fn paths(&self, entry: &remove::RemovalEntry<'_>) -> PathPair {
        let mut full = self.node.target_path(self.name).into_os_string();
        full.push(OsStr::from_bytes(entry.path.get(self.prefix..).unwrap_or_default()));
        (None, Some(full.into()))
    }

    fn is_protected(&self, entry: &remove::RemovalEntry<'_>) -> bool {
        // The entry itself was checked against its directory's rules before.
        if entry.path.len() <= self.prefix {
            return false;
        }
        let rules = self.rules.last().or(self.node.rules.as_ref());
        let is_dir = entry.kind == Kind::Dir;
        rules.is_some_and(|rules| self.pruning.is_protected(rules, entry.path, is_dir, true))
    }

    /// Returns whether an entry is on another file system: `-x` applies to the target, too.
    fn is_elsewhere(&mut self, entry: &remove::RemovalEntry<'_>) -> bool {
        if !self.pruning.context.policy.one_file_system || entry.kind != Kind::Dir {
            return false;
        }
        match meta::of(entry.dir, entry.name, false) {
            Ok(there) => self.node.target_dev() != Some(there.dev),
            Err(error) if errno::is(&error, errno::ENOENT) => false,
            Err(error) => {
                self.failed(entry, Operation::Stat, Cause::System(error));
                true
            }
        }
    }

    /// Returns whether an entry is, or may be, a source of this run.
    fn is_source(&self, entry: &remove::RemovalEntry<'_>) -> bool {
        let guard = self.pruning.context.guard;
        let asks = match entry.kind {
            Kind::Dir => guard.has_sources(),
            _ => guard.has_source_files(),
        };
        // An error does not prove that it is none.
        asks && meta::of(entry.dir, entry.name, false)
            .map_or_else(|error| !errno::is_gone(&error), |there| guard.is_source(there.identity()))
    }

    /// Renames an entry to its backup name instead of removing it.
    fn back_up(&mut self, entry: &remove::RemovalEntry<'_>) {
        let pruning = self.pruning;
        if pruning.context.is_real() {
            let place = pruning.publisher.backups.place(entry.name, entry.path);
            let moved = place.and_then(|(_, backup)| {
                dir::rename(entry.dir, entry.name, entry.dir, &backup)
                    .map_err(Failure::of(Operation::Rename))
            });
            match moved {
                // Another run was faster.
                Err(Failure { error, .. }) if errno::is_gone(&error) => return,
                Err(Failure { operation, error }) => {
                    return self.failed(entry, operation, Cause::System(error));
                }
                Ok(()) => {}
            }
            self.node.touch();
            pruning.publisher.backups.report(&|| entry.path.to_vec());
        }
        self.count(entry);
    }

    fn count(&mut self, entry: &remove::RemovalEntry<'_>) {
        let pruning = self.pruning;
        self.worker.totals.deleted += 1;
        self.worker.at.finished();
        if pruning.reports.wants_items() {
            let meta = Meta { kind: entry.kind, ..self.node.source };
            let change = Change { deleted: true, ..Change::default() };
            let report = Report { change, begun: pruning.reports.begin(), ..Report::default() };
            pruning.reports.item(entry.path, &meta, self.paths(entry), report);
        }
    }
}

impl Removal for Extraneous<'_, '_, '_> {
    fn keep(&mut self, entry: &remove::RemovalEntry<'_>) -> bool {
        let backups = &self.pruning.publisher.backups;
        let holds_backups = entry.kind == Kind::Dir && backups.is_folder((entry.dir, entry.name));
        let is_kept = holds_backups || backups.sources().keep((entry.dir, entry.name));
        let is_source = self.is_source(entry);
        if self.is_protected(entry) || self.is_elsewhere(entry) || is_kept || is_source {
            return true;
        }
        let operations = u64::from(self.pruning.context.is_real());
        self.worker.at.step(Phase::Remove, operations);
        let left = &self.pruning.deletes_left;
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        if taken.is_err() {
            self.worker.totals.deletes_held += 1;
            return true;
        }
        let publisher = &self.pruning.publisher;
        let (backups, place) = (&publisher.backups, (entry.dir, entry.name));
        if entry.kind == Kind::Dir {
            return false;
        }
        let is_unsafe = || backups.is_unsafe(place, &|| entry.path.to_vec());
        if backups.are_beside() && !self.pruning.is_backup(entry.name) && !is_unsafe() {
            self.back_up(entry);
            return true;
        }
        if self.pruning.context.is_real() && !backups.are_beside() {
            // With `--backup-dir` the backup is elsewhere: removals here do not affect it.
            let temp_names = &publisher.drafts.temp_names;
            let kept = backups.keep(place, &|| entry.path.to_vec(), temp_names, None);
            let is_there = || meta::of(entry.dir, entry.name, false).is_ok();
            if let Err(Failure { operation, error }) = kept {
                if errno::is_gone(&error) && !is_there() {
                    // Another run was faster.
                    return true;
                }
                self.failed(entry, operation, Cause::System(error));
                return true;
            }
        }
        false
    }

    fn enter(&mut self, entry: &remove::RemovalEntry<'_>, inside: BorrowedFd<'_>) {
        let Some(filter) = &self.pruning.context.policy.filter else { return };
        let Some(above) = self.rules.last().or(self.node.rules.as_ref()) else { return };
        let links = &self.pruning.context.policy.links;
        let read = &mut |name: &[u8]| read_merge_file(links, inside, name);
        let (rules, done) = above.enter_target(filter, entry.path, read);
        self.rules.push(rules);
        if let Err(error) = done {
            let (failure, paths) = (filter_failure(error), self.paths(entry));
            self.pruning.reports.fail(&mut self.worker.totals, failure, paths);
        }
    }

    fn leave(&mut self) {
        self.rules.pop();
    }

    fn removed(&mut self, entry: &remove::RemovalEntry<'_>) {
        self.count(entry);
    }

    fn stays(&mut self, entry: &remove::RemovalEntry<'_>, left: RemovalOutcome) {
        self.pruning.deletes_left.fetch_add(1, Ordering::Relaxed);
        if left == RemovalOutcome::Kept {
            let reason = "something in it is kept";
            let (operation, paths) = (Operation::Remove, self.paths(entry));
            self.pruning.reports.notice(operation, paths, reason, ErrorClass::Notice);
        }
    }

    fn failed(&mut self, entry: &remove::RemovalEntry<'_>, operation: Operation, cause: Cause) {
        let paths = self.paths(entry);
        let (reports, totals) = (&self.pruning.reports, &mut self.worker.totals);
        match cause {
            Cause::System(error) => reports.fail(totals, Failure { operation, error }, paths),
            Cause::Reason(reason) => {
                totals.failed += 1;
                reports.notice(operation, paths, reason, ErrorClass::Partial);
            }
            // No server takes part in the removal of local entries.
            Cause::Said(_) => totals.failed += 1,
        }
    }

    fn is_stopped(&self) -> bool {
        self.worker.at.is_over()
    }
}

// Removal of sources: at once, or when nothing looks them up any more.

/// A source to be removed at the end.
pub struct SourceRemoval {
    pub(super) member: Member,
    pub(super) source: Meta,
    pub(super) follow: bool,
}

impl SourceRemoval {
    /// Calls `call` with directory and name of the source.
    fn at<T>(
        &self,
        operation: Operation,
        call: impl FnOnce(DirName<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let fds = self.member.node.fds().map_err(Failure::of(operation))?;
        let dir = fds.source(self.member.side).map_err(Failure::of(operation))?;
        call((dir, &self.member.name))
    }

    pub(super) fn is_link(&self) -> bool {
        let stat = Operation::Stat;
        let look = |(dir, name): DirName<'_>| meta::of(dir, name, false).map_err(Failure::of(stat));
        self.follow && self.at(stat, look).is_ok_and(|own| own.kind == Kind::Symlink)
    }

    /// Checks that a symlink still leads to the copied entry.
    pub(super) fn look(&self) -> Result<(), Failure> {
        self.at(Operation::Stat, |place| check_copied(place, true, &self.source))
    }

    pub(super) fn unlink(&self) -> Result<(), Failure> {
        self.at(Operation::Remove, unlink)
    }

    pub(super) fn remove(&self) -> Result<(), Failure> {
        self.at(Operation::Remove, |place| remove_source(place, self.follow, &self.source))
    }
}

/// Removes a source, if it is still the copied entry.
pub(super) fn remove_source(
    place: DirName<'_>,
    follow: bool,
    source: &Meta,
) -> Result<(), Failure> {
    check_copied(place, follow, source)?;
    unlink(place)
}

fn unlink((dir, name): DirName<'_>) -> Result<(), Failure> {
    dir::unlink(dir, name).map_err(Failure::of(Operation::Remove))
}

/// Checks that the current entry of a name is the copied one.
fn check_copied((dir, name): DirName<'_>, follow: bool, source: &Meta) -> Result<(), Failure> {
    // No cache answers: the name may be another view of the target, which has just been written.
    let now = meta::of_now(dir, name, follow).map_err(Failure::of(Operation::Stat))?;
    // Removing another name of the file changes the change time, too.
    let same = now.size == source.size
        && now.mtime == source.mtime
        && (now.ctime == source.ctime || now.nlink != source.nlink);
    match same && now.identity() == source.identity() {
        true => Ok(()),
        false => Err(Failure::reason(Operation::Remove, "it was changed after it was copied")),
    }
}

// Work after every entry has been handled: delayed renames, and removal of sources that other sources may have led
// to.

impl LocalEngine<'_> {
    /// Gives delayed files their final names. Called after the walk. Returns the sources that may be removed then;
    /// their directories are finished.
    pub fn name_delayed(&self) -> Vec<SourceRemoval> {
        let mut worker = self.worker(0);
        let mut lost: HashSet<(usize, CString)> = HashSet::new();
        let key = |node: &Arc<Node>, name: &CStr| (Arc::as_ptr(node) as usize, name.to_owned());
        for delayed in self.publisher.take_delayed() {
            let node = &delayed.node;
            let stopped = self.is_over();
            let named = self.publisher.name_delayed(&delayed, stopped);
            node.touch();
            if stopped || named.is_err() {
                lost.insert(key(node, &delayed.name));
            }
            if let Err(failure) = named {
                let target = node.target_path(&delayed.name);
                self.fail(&mut worker, failure, (None, Some(target)));
            }
            self.release(&mut worker, node);
        }
        let mut removals = std::mem::take(&mut *self.removals.lock());
        removals.retain(|SourceRemoval { member, .. }| {
            self.release(&mut worker, &member.node);
            !lost.contains(&key(&member.node, member.at_target()))
        });
        self.flush(&mut worker);
        removals
    }

    /// Removes sources whose targets are complete, unless the run was asked to stop.
    pub fn remove_sources(&self, removals: Vec<SourceRemoval>) {
        if self.is_over() {
            return;
        }
        let mut worker = self.worker(0);
        // Links last: a symlink can be followed only while its referent exists.
        let (links, others): (Vec<SourceRemoval>, Vec<SourceRemoval>) =
            removals.into_iter().partition(SourceRemoval::is_link);
        let looked: Vec<_> = links.iter().map(SourceRemoval::look).collect();
        for (removal, looked) in links.iter().zip(looked) {
            let done = looked.and_then(|()| removal.unlink());
            self.removed(&mut worker, removal, done);
        }
        for removal in &others {
            self.removed(&mut worker, removal, removal.remove());
        }
        self.flush(&mut worker);
    }

    fn removed(&self, worker: &mut Worker<'_>, removal: &SourceRemoval, done: Result<(), Failure>) {
        let node = &removal.member.node;
        match done {
            Ok(()) => worker.totals.removed_sources += 1,
            // Removed already through another name that leads to it.
            Err(failure) if errno::is(&failure.error, errno::ENOENT) => {}
            Err(failure) => {
                let source = node.source_path(removal.member.side, &removal.member.name);
                self.fail(worker, failure, (Some(source), None));
            }
        }
    }
}
