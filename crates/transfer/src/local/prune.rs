//! The target side of a directory: removes leftovers of killed runs and extraneous entries.
//!
//! Nothing is removed unless the source returns ENOENT for that name (`proof`), and never in a directory whose source could
//! not be listed to its end. A source on another machine is asked there: the directory is handed on until the answer comes.

use super::engine::{Context, LocalEngine, Pass, Worker};
use super::file::Publisher;
use super::guard::Overlap;
use super::links::Member;
use super::proof;
use super::receive::Arrivals;
use super::report::{PathPair, Report, Reports};
use super::source::{FarEntry, SourceDir};
use super::target_dir::{DirFds, Node};
use super::walk::{filter_failure, read_merge_file};
use crate::failure::Failure;
use crate::policy::filter::SidedRules;
use crate::policy::{Delete, NameRange};
use crate::publish::{DirName, LEFT_OUT, TempNames};
use hakobu_core::error::{Cause, ErrorClass, Operation};
use hakobu_core::event::Change;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_remote::message::{ASKED_BYTES_MAX, ASKED_NAMES_MAX, ProtocolError};
use hakobu_sys::{AsFd, BorrowedFd, dir, disk, errno, meta};
use hakobu_tree::names::{NameList, push_name};
use hakobu_tree::remove::{self, Removal, RemovalOutcome, remove_tree};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
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
    /// The end that has the sources, where that is another machine.
    arrivals: Option<&'a dyn Arrivals>,
    questions: Mutex<Questions>,
}

impl<'a> Pruning<'a> {
    pub(super) fn new(
        (context, publisher): (Context<'a>, Arc<Publisher<'a>>),
        reports: Arc<Reports<'a>>,
        deletes: bool,
        arrivals: Option<&'a dyn Arrivals>,
    ) -> Pruning<'a> {
        let deletes_left = AtomicU64::new(context.policy.max_delete.unwrap_or(u64::MAX));
        let (argument_failed, questions) = Default::default();
        Pruning {
            context,
            publisher,
            reports,
            deletes,
            deletes_left,
            argument_failed,
            arrivals,
            questions,
        }
    }

    /// Returns whether the target's own rule files are read: something may be deleted there.
    pub(super) fn reads_target_rules(&self) -> bool {
        self.deletes && self.context.policy.reads_target_rules()
    }

    /// Disables deletion for this run.
    pub(super) fn disable_deletion(&self) {
        self.argument_failed.store(true, Ordering::Relaxed);
    }

    /// Returns whether this pass removes extraneous entries.
    pub(super) fn is_due(&self) -> bool {
        match self.context.pass {
            Pass::Transfer => self.context.policy.delete == Delete::During,
            Pass::Delete => true,
        }
    }

    /// Returns whether all of a source directory is known, so that what it lacks may be extraneous at the target.
    pub(super) fn is_known(&self, node: &Node) -> bool {
        let failed = self.argument_failed.load(Ordering::Relaxed)
            || self.context.guard.has_left_unread()
            || node.list_failed.load(Ordering::Relaxed);
        node.listed.load(Ordering::Relaxed) && (self.context.policy.ignore_errors || !failed)
    }

    fn deletes_now(&self, node: &Node) -> bool {
        let policy = self.context.policy;
        let here = !policy.one_file_system || node.target_dev() == node.top().target_dev();
        // What lies in a source is not extraneous.
        let apart = node.overlap == Overlap::No;
        self.deletes && here && self.is_due() && self.is_known(node) && apart
    }

    /// Searches the target directory for leftovers and, if due, for extraneous entries. Returns whether the other end is
    /// asked for names: the node is held until it has answered.
    pub(super) fn prune(&self, worker: &mut Worker<'_>, node: &Arc<Node>) -> bool {
        let mut unseen = Batches::default();
        let result = self.try_prune(worker, node, &mut unseen);
        if let Err(failure) = result {
            unseen = Batches::default();
            let paths = (None, Some(node.target_path(c"")));
            self.reports.fail(&mut worker.totals, failure, paths);
        }
        self.ask(node, unseen)
    }

    /// Returns whether it can be told which names of the directory are extraneous. Where it takes different names for one,
    /// the names of other ranges count as well: nothing is, which is reported.
    fn is_whole(&self, worker: &mut Worker<'_>, node: &Node) -> bool {
        let is_caseless = node.target_dir().is_some_and(|info| info.caseless);
        let holds = |range: &NameRange| range.holds_folder(&node.path());
        if !is_caseless || self.context.range.is_none_or(holds) {
            return true;
        }
        worker.totals.failed += 1;
        let reason = "it takes different names for one and is transferred in parts: nothing is removed in it";
        let paths = (None, Some(node.target_path(c"")));
        self.reports.notice(Operation::Remove, paths, reason, ErrorClass::Partial);
        false
    }

    /// `unseen` gets the names that the other end has to be asked for.
    fn try_prune(
        &self,
        worker: &mut Worker<'_>,
        node: &Arc<Node>,
        unseen: &mut Batches,
    ) -> Result<(), Failure> {
        let far = node.far();
        let fds = node.fds().map_err(Failure::of(Operation::List))?;
        let Some(target_dir) = fds.target() else { return Ok(()) };
        let deletes = self.deletes_now(node) && !worker.at.is_over() && self.is_whole(worker, node);
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
                    } else if (deletes || self.reports.plans)
                        && !self.publisher.drafts.temp_names.is_own(name)
                    {
                        let (operation, class) = (Operation::Remove, ErrorClass::Notice);
                        let paths = (None, Some(node.target_path(name)));
                        self.reports.notice(operation, paths, LEFT_OUT, class);
                    }
                } else if let Some(far) = far.filter(|_| deletes) {
                    let is_kept = self.context.policy.backup_dir_is_target && self.is_backup(name);
                    if !is_kept && !far.has_seen(name) {
                        unseen.push(name, kind);
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
        let policy = self.context.policy;
        if policy.backup_dir_is_target && self.is_backup(name) {
            return Ok(None);
        }
        self.note_path(worker, node, name);
        let kind = match self.context.range {
            None => kind,
            Some(range) => {
                let there = |dir| meta::of(dir, name, false).map(|there| there.kind);
                let kind = match (kind, fds.target()) {
                    (Kind::Unknown, Some(dir)) => match there(dir) {
                        Err(error) if errno::is(&error, errno::ENOENT) => return Ok(None),
                        looked => looked.map_err(Failure::of(Operation::Stat))?,
                    },
                    _ => kind,
                };
                if kind == Kind::Dir {
                    worker.path.push(b'/');
                }
                let is_inside = range.contains(&worker.path);
                if kind == Kind::Dir {
                    worker.path.pop();
                }
                if !is_inside {
                    return Ok(None);
                }
                kind
            }
        };
        let Worker { path, at, .. } = worker;
        if proof::is_provided(policy, (node, fds), (name, path), || at.step(Phase::Look, 1))? {
            return Ok(None);
        }
        self.unprotected(worker, node, fds, (name, kind))
    }

    /// Makes the path of a name in the transfer that of the worker, if anything depends on it.
    fn note_path(&self, worker: &mut Worker<'_>, node: &Node, name: &CStr) {
        worker.path.clear();
        if proof::needs_path(self.context.policy, node) || self.context.range.is_some() {
            node.push_path(&mut worker.path);
            push_name(&mut worker.path, name.to_bytes());
        }
    }

    /// Returns the type of a target entry that no source provides, unless something at the target protects it.
    fn unprotected(
        &self,
        worker: &Worker<'_>,
        node: &Node,
        fds: &DirFds,
        (name, kind): (&CStr, Kind),
    ) -> Result<Option<Kind>, Failure> {
        let Some(target_dir) = fds.target() else { return Ok(None) };
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
        let rules = node.rules.as_ref();
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

// Names that the end with the sources is asked for. One question of a directory is open at a time, and of all directories no
// more than it has room for.

/// Names for one question each.
#[derive(Default)]
struct Batches {
    lists: VecDeque<NameList>,
    /// Bytes of the names of the last list.
    bytes: usize,
}

impl Batches {
    fn push(&mut self, name: &CStr, kind: Kind) {
        let bytes = name.to_bytes().len();
        let is_full =
            |list: &NameList| list.len() >= ASKED_NAMES_MAX || self.bytes + bytes > ASKED_BYTES_MAX;
        if self.lists.back().is_none_or(is_full) {
            self.lists.push_back(NameList::default());
            self.bytes = 0;
        }
        self.bytes += bytes;
        if let Some(list) = self.lists.back_mut() {
            list.push(name, kind);
        }
    }
}

/// Room for questions at the other end, in bytes of names and their ends. A single question may take more.
pub const QUESTIONS_BYTES_MAX: usize = 4 << 20;

/// Returns the room that a question takes.
pub fn question_bytes(names: &[Vec<u8>]) -> usize {
    names.iter().map(|name| name.len() + size_of::<Vec<u8>>()).sum()
}

#[derive(Default)]
struct Questions {
    /// Directories with names that were not answered, by the numbers that the other end has given them.
    dirs: HashMap<u64, Asked>,
    /// Those whose next question waits for room.
    waiting: VecDeque<u64>,
    bytes: usize,
}

struct Asked {
    node: Arc<Node>,
    /// The first one is asked for.
    lists: VecDeque<NameList>,
    bytes: usize,
}

/// Names of a target directory, and a bit for each that no source has.
pub struct Extra {
    pub(super) node: Arc<Node>,
    names: NameList,
    absent: Vec<u8>,
}

impl Pruning<'_> {
    /// Begins to ask for names of a directory; tells the other end of one that has none that it need not be remembered.
    fn ask(&self, node: &Arc<Node>, unseen: Batches) -> bool {
        let Some(far) = node.far() else { return false };
        if !self.is_due() || !node.listed.load(Ordering::Relaxed) || self.context.is_over() {
            return false;
        }
        if unseen.lists.is_empty() {
            self.ask_nothing(far.number);
            return false;
        }
        node.hold();
        let asked = Asked { node: Arc::clone(node), lists: unseen.lists, bytes: 0 };
        let mut questions = self.questions.lock();
        let before = questions.dirs.insert(far.number, asked);
        questions.waiting.push_back(far.number);
        drop(questions);
        if let (Some(_), Some(arrivals)) = (before, self.arrivals) {
            arrivals.refuse(ProtocolError("a number of a directory was used again"));
        }
        self.ask_waiting();
        true
    }

    /// Tells the other end that no name of a directory, or no further one, is asked for.
    pub(super) fn ask_nothing(&self, dir: u64) {
        if let Some(arrivals) = self.arrivals.filter(|_| self.is_due()) {
            arrivals.ask(dir, Vec::new(), true);
        }
    }

    /// Asks the questions that there is room for.
    fn ask_waiting(&self) {
        let Some(arrivals) = self.arrivals else { return };
        loop {
            let mut questions = self.questions.lock();
            let Questions { dirs, waiting, bytes } = &mut *questions;
            let Some(dir) = waiting.front().copied() else { return };
            let Some(asked) = dirs.get_mut(&dir) else {
                waiting.pop_front();
                continue;
            };
            let mut names = Vec::new();
            if let Some(list) = asked.lists.front() {
                let cursor = list.cursor();
                while let Some((name, _)) = cursor.take() {
                    names.push(name.to_bytes().to_vec());
                }
            }
            asked.bytes = question_bytes(&names);
            if *bytes > 0 && *bytes + asked.bytes > QUESTIONS_BYTES_MAX {
                return;
            }
            *bytes += asked.bytes;
            let is_last = asked.lists.len() == 1;
            waiting.pop_front();
            drop(questions);
            arrivals.ask(dir, names, is_last);
        }
    }

    /// Takes an answer. Returns what is to be removed, and whether that is all of the directory, which is held no longer
    /// then.
    ///
    /// # Errors
    /// It answers no question.
    pub(super) fn answered(
        &self,
        dir: u64,
        absent: Vec<u8>,
        is_known: bool,
    ) -> Result<(Extra, bool), ProtocolError> {
        let mut questions = self.questions.lock();
        let Questions { dirs, waiting, bytes } = &mut *questions;
        let asked = dirs.get_mut(&dir).filter(|asked| asked.bytes > 0);
        let asked = asked.ok_or(ProtocolError("names were answered that were not asked for"))?;
        *bytes = bytes.saturating_sub(std::mem::take(&mut asked.bytes));
        let names = asked.lists.pop_front().unwrap_or_default();
        if absent.len() != names.len().div_ceil(8) {
            return Err(ProtocolError("another number of names is answered than was asked for"));
        }
        let extra = Extra { node: Arc::clone(&asked.node), names, absent };
        let has_more = !asked.lists.is_empty();
        let is_last = !has_more || !is_known;
        match is_last {
            true => drop(dirs.remove(&dir)),
            false => waiting.push_back(dir),
        }
        drop(questions);
        if has_more && is_last {
            self.ask_nothing(dir);
        }
        self.ask_waiting();
        Ok((extra, is_last))
    }

    /// Gives up what was not answered. Returns the directories, which were held.
    pub(super) fn take_unanswered(&self) -> Vec<Arc<Node>> {
        let questions = std::mem::take(&mut *self.questions.lock());
        questions.dirs.into_values().map(|asked| asked.node).collect()
    }

    /// Removes the names that no source has.
    pub(super) fn remove_extra(&self, worker: &mut Worker<'_>, extra: &Extra) {
        let result = self.try_remove_extra(worker, extra);
        if let Err(failure) = result {
            let paths = (None, Some(extra.node.target_path(c"")));
            self.reports.fail(&mut worker.totals, failure, paths);
        }
    }

    fn try_remove_extra(&self, worker: &mut Worker<'_>, extra: &Extra) -> Result<(), Failure> {
        let Extra { node, names, absent } = extra;
        if !self.deletes_now(node) {
            return Ok(());
        }
        let fds = node.fds().map_err(Failure::of(Operation::List))?;
        let (cursor, mut at) = (names.cursor(), 0);
        while let Some((name, kind)) = cursor.take() {
            if worker.at.is_over() {
                return Ok(());
            }
            let is_absent = absent.get(at / 8).is_some_and(|bits| bits >> (at % 8) & 1 == 1);
            at += 1;
            // A backup may have got the name since it was asked for.
            if !is_absent || node.far().is_some_and(|far| far.has_seen(name)) {
                continue;
            }
            self.note_path(worker, node, name);
            if let Some(kind) = self.unprotected(worker, node, &fds, (name, kind))? {
                self.remove(worker, node, &fds, name, kind);
            }
        }
        Ok(())
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
            let looked = pruning.reports.plans.then(|| meta::of(entry.dir, entry.name, false).ok());
            // A plan compares what is there later with what was found.
            let meta = looked.flatten().unwrap_or(self.node.source);
            let meta = Meta { kind: entry.kind, ..meta };
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
            let kept = backups.keep(place, &|| entry.path.to_vec(), temp_names, None, &|_| ());
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
    /// The entry, where the other end removes it.
    pub(super) far: Option<Arc<FarEntry>>,
}

impl SourceRemoval {
    /// Makes the removal of an announced entry; the other end has a complete copy of it.
    pub fn announced(
        (node, side): (&Arc<Node>, usize),
        name: CString,
        source: Meta,
        follow: bool,
    ) -> SourceRemoval {
        let member = Member { node: Arc::clone(node), side, name, target_name: None, follow };
        SourceRemoval { member, source, follow, far: None }
    }

    /// Returns the path of the source, starting as the user typed it.
    pub fn path(&self) -> PathBuf {
        self.member.node.source_path(self.member.side, &self.member.name)
    }

    /// Calls `call` with directory and name of the source.
    fn at<T>(
        &self,
        operation: Operation,
        call: impl FnOnce(DirName<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let fds = self.member.node.fds().map_err(Failure::of(operation))?;
        let dir = fds.source(self.member.side).and_then(SourceDir::here);
        let dir = dir.map_err(Failure::of(operation))?;
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

    /// Removes it, if it is still the copied entry.
    ///
    /// # Errors
    /// It is not, or cannot be removed.
    pub fn remove(&self) -> Result<(), Failure> {
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
    if now.kind.is_device() && source.kind == Kind::File {
        return Err(Failure::reason(Operation::Remove, "it is a device, which is kept"));
    }
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
        remove_sources(removals, |removal, done| match done {
            Ok(()) => worker.totals.removed_sources += 1,
            Err(failure) => self.fail(&mut worker, failure, (Some(removal.path()), None)),
        });
        self.flush(&mut worker);
    }
}

/// Removes sources whose targets are complete, and tells the result of each; what the other end has is removed there.
pub fn remove_sources(
    removals: Vec<SourceRemoval>,
    mut tell: impl FnMut(&SourceRemoval, Result<(), Failure>),
) {
    let (far, here): (Vec<_>, Vec<_>) =
        removals.into_iter().partition(|removal| removal.far.is_some());
    far.iter().filter_map(|removal| removal.far.as_ref()).for_each(|entry| entry.arrived());
    // Links last: a symlink can be followed only while its referent exists.
    let (links, others): (Vec<SourceRemoval>, Vec<SourceRemoval>) =
        here.into_iter().partition(SourceRemoval::is_link);
    let looked: Vec<_> = links.iter().map(SourceRemoval::look).collect();
    let mut removed = |removal: &SourceRemoval, done: Result<(), Failure>| match done {
        // Removed already through another name that leads to it.
        Err(failure) if errno::is(&failure.error, errno::ENOENT) => {}
        done => tell(removal, done),
    };
    for (removal, looked) in links.iter().zip(looked) {
        let done = looked.and_then(|()| removal.unlink());
        removed(removal, done);
    }
    for removal in &others {
        removed(removal, removal.remove());
    }
}
