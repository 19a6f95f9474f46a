//! Hard links among the transferred files: the first name of a group is copied, later ones are linked to it. A name
//! that comes while the first is still being copied waits in the group.
//!
//! If the target may have one of the names already, a name without a usable target waits for one that has it: linking
//! to that one moves no content. Remaining names are copied at the end ([`LinkGroups::take_parked`]).
//!
//! Another run with the same target may have another first name, and replaces names that this run linked. Each name that
//! took the place of one that was just made is therefore looked at once more when all others are done
//! ([`LocalEngine::replaced_names`]): the run that ends last finds all names of a group as they stay.
//!
//! A group is dropped when all its names have come; names outside of the transfer keep it. This is the one structure
//! that grows with the data: about 100 bytes for each open group.

use super::engine::{Chunk, LocalEngine, Unit, Worker};
use super::entry::{CLASH, Decided, DirEntry, EntryResult, EntryState, LOOKS_MAX, there};
use super::report::Report;
use super::target_dir::Node;
use crate::failure::{Failure, Stop, c_string};
use crate::policy::{Basis, Reason, is_newer};
use hakobu_core::error::Operation;
use hakobu_core::event::Change;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_sys::{AsFd, OwnedFd, dir, errno, meta};
use hakobu_tree::pool::Queue;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A name of a group, and where its target is or will be.
pub struct Member {
    /// The directory.
    pub node: Arc<Node>,
    /// Index of its source directory.
    pub side: usize,
    /// The name in the source.
    pub name: CString,
    /// The name at the target, where it differs.
    pub target_name: Option<Box<CStr>>,
    /// The name is a symlink that is followed.
    pub follow: bool,
}

impl Member {
    pub fn at_target(&self) -> &CStr {
        self.target_name.as_deref().unwrap_or(&self.name)
    }

    /// Returns a key that sorts as rsync orders names: the files of a directory before those below its directories.
    fn rank(&self) -> Vec<u8> {
        let path = self.node.path_of(self.at_target());
        let mut parts: Vec<&[u8]> = path.split_inclusive(|byte| *byte == b'/').collect();
        let name = parts.pop().unwrap_or_default();
        let dirs = parts.iter().flat_map(|part| [&[1], *part]);
        dirs.chain([&[0], name]).flatten().copied().collect()
    }
}

/// Directory of the first name of a group at the target.
#[derive(Clone)]
pub enum Home {
    /// One of this run.
    Here(Arc<Node>),
    /// That of an earlier run of the same command, and the identity of the file there.
    Before(Arc<Path>, (u64, u64)),
}

impl Home {
    /// Opens the directory; `None` if nothing is written. Its source may be gone by now.
    pub fn open(&self) -> io::Result<Option<Arc<OwnedFd>>> {
        match self {
            Home::Here(node) => node.target_fd(),
            Home::Before(folder, _) => {
                let fd = dir::open_root(&c_string(folder.as_os_str().as_bytes())?)?;
                Ok(Some(Arc::new(fd)))
            }
        }
    }

    /// Returns the path of a name in it: in the transfer, or as of the earlier run.
    pub fn path_of(&self, name: &CStr) -> PathBuf {
        match self {
            Home::Here(node) => OsStr::from_bytes(&node.path_of(name)).into(),
            Home::Before(folder, _) => folder.join(OsStr::from_bytes(name.to_bytes())),
        }
    }
}

/// Location of the first name of a group at the target.
#[derive(Clone)]
pub struct Leader {
    /// The directory.
    pub home: Home,
    /// Size and time of the source that was copied: what another name shows later is not in the copy.
    pub copied: (u64, Time),
    pub name: Arc<CStr>,
    /// Its copy is complete and its source unchanged: sources of later names may be removed, too.
    pub checked: bool,
    /// Its content was transferred: lines of later names show no tree beside the target, as in rsync.
    pub transferred: bool,
}

/// Groups that a run left open for the next ones of the same command (`mv a b DIR`): a name of theirs is an argument of
/// its own.
#[derive(Default)]
pub struct Carried(Mutex<HashMap<(u64, u64), (Leader, u64)>>);

enum State {
    /// No name so far has a usable target.
    Parked(Vec<Member>),
    Copying(Vec<Member>),
    Done(Leader),
}

struct Group {
    state: State,
    /// Number of names that have not come yet.
    left: u64,
}

/// The role of a name in its group.
pub enum Role {
    /// First name: copy it, then call [`LinkGroups::finished`].
    First,
    /// Stored in the group, of which all names have come: copy this one, the first in rsync's order, then call
    /// [`LinkGroups::finished`].
    Leads(Member),
    /// Stored in the group, to be returned by `finished` or `take_parked`.
    Waits,
    /// The first name is at the target: link to it.
    Follows(Leader),
}

/// All open groups, by device and inode of the source.
#[derive(Default)]
pub struct LinkGroups {
    shards: [Mutex<HashMap<(u64, u64), Group>>; 16],
    /// The target had entries before this run: one of the names of a group may be there.
    parks: AtomicBool,
    replaced: Mutex<Vec<Replaced>>,
}

/// A name that was linked in place of one that another run may have made, and the first name of its group.
pub struct Replaced {
    pub(super) member: Member,
    leader: Leader,
    /// What the first name was.
    copy: CopyState,
}

/// Type, size and time of a file at the target: two copies of one source agree in them.
type CopyState = (Kind, u64, Time);

fn state_of(there: &Meta) -> CopyState {
    (there.kind, there.size, there.mtime)
}

/// An entry of the target that changed less than so long before the run began, or later, may be another run's. In
/// seconds; for file systems with a clock of their own.
const RECENT_S: i64 = 10;

impl LinkGroups {
    fn shard(&self, id: (u64, u64)) -> &Mutex<HashMap<(u64, u64), Group>> {
        // One worker meets neighbouring inodes: the low bits spread them over shards.
        &self.shards[(id.1 % 16) as usize]
    }

    /// Takes over the groups of earlier runs.
    pub fn begin_with(&self, carried: &Carried) {
        for (id, (leader, left)) in carried.0.lock().drain() {
            self.shard(id).lock().insert(id, Group { state: State::Done(leader), left });
        }
    }

    /// Hands the open groups, the first names of which are at the target, on to later runs.
    pub fn end_with(&self, carried: &Carried) {
        for shard in &self.shards {
            for (id, Group { state, left }) in shard.lock().drain() {
                let State::Done(leader) = state else { continue };
                let home = match &leader.home {
                    Home::Before(..) => Some(leader.home.clone()),
                    Home::Here(node) => {
                        let path = node.target_path(&leader.name);
                        let identity = c_string(path.as_os_str().as_bytes())
                            .and_then(|path| meta::of(dir::cwd(), &path, false))
                            .map(|there| there.identity());
                        let folder =
                            path.parent().map(|folder| match folder.as_os_str().is_empty() {
                                true => Path::new("."),
                                false => folder,
                            });
                        folder
                            .zip(identity.ok())
                            .map(|(folder, id)| Home::Before(folder.into(), id))
                    }
                };
                if let Some(home) = home {
                    carried.0.lock().insert(id, (Leader { home, ..leader }, left));
                }
            }
        }
    }

    /// Lets names wait for one that the target has already.
    pub fn park(&self) {
        self.parks.store(true, Ordering::Relaxed);
    }

    /// Announces one of the `nlink` names of a file. `ready`: its target can be linked to as it is, or waiting for
    /// one gains nothing. `member` is called only if the name waits.
    pub fn join(
        &self,
        id: (u64, u64),
        nlink: u64,
        ready: bool,
        member: impl FnOnce() -> Member,
    ) -> Role {
        let ready = ready || !self.parks.load(Ordering::Relaxed);
        let mut groups = self.shard(id).lock();
        let Some(group) = groups.get_mut(&id) else {
            let left = nlink.saturating_sub(1);
            let parks = !ready && left > 0;
            let state = match parks {
                true => State::Parked(vec![member()]),
                false => State::Copying(Vec::new()),
            };
            groups.insert(id, Group { state, left });
            return if parks { Role::Waits } else { Role::First };
        };
        group.left = group.left.saturating_sub(1);
        match &mut group.state {
            State::Parked(waiting) if ready => {
                group.state = State::Copying(std::mem::take(waiting));
                Role::First
            }
            State::Parked(waiting) if group.left == 0 => {
                let mut all = std::mem::take(waiting);
                all.push(member());
                all.sort_by_cached_key(Member::rank);
                let first = all.remove(0);
                group.state = State::Copying(all);
                Role::Leads(first)
            }
            State::Parked(waiting) | State::Copying(waiting) => {
                waiting.push(member());
                Role::Waits
            }
            State::Done(leader) => {
                let leader = leader.clone();
                if group.left == 0 {
                    groups.remove(&id);
                }
                Role::Follows(leader)
            }
        }
    }

    /// Returns whether a group of this file is open: when sources are removed as they are copied, the last name of a
    /// group looks as if it were the only one.
    pub fn knows(&self, id: (u64, u64)) -> bool {
        self.shard(id).lock().contains_key(&id)
    }

    /// Records that the first name is at the target (`leader`) or could not be put there (`None`). Returns the names
    /// that waited: to be linked, or without a leader, to be tried in its place.
    pub fn finished(&self, id: (u64, u64), leader: Option<Leader>) -> Vec<Member> {
        let mut groups = self.shard(id).lock();
        let Some(group) = groups.get_mut(&id) else { return Vec::new() };
        let waiting = match &mut group.state {
            State::Copying(waiting) => std::mem::take(waiting),
            State::Parked(_) | State::Done(_) => Vec::new(),
        };
        match leader {
            Some(leader) if group.left > 0 => group.state = State::Done(leader),
            // Without a leader the group restarts with the next name.
            _ => {
                groups.remove(&id);
            }
        }
        waiting
    }

    /// Returns the names that still wait for one with a usable target after all have come, and ends that waiting.
    pub fn take_parked(&self) -> Vec<Member> {
        self.parks.store(false, Ordering::Relaxed);
        let mut members = Vec::new();
        for shard in &self.shards {
            shard.lock().retain(|_, group| match &mut group.state {
                State::Parked(waiting) => {
                    members.append(waiting);
                    false
                }
                _ => true,
            });
        }
        members
    }
}

// Targets that are links instead of copies: later names of a hard-linked file.

impl LocalEngine<'_> {
    /// Links an entry to the first name of its group.
    pub(super) fn link_to(
        &self,
        worker: &mut Worker<'_>,
        decided: &Decided<'_>,
        leader: &Leader,
    ) -> Result<(), Stop> {
        let Decided { entry, source, target, begun, .. } = decided;
        let target = target.as_ref();
        let done = EntryResult::checked(leader.checked);
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
            let origin = ((from, &*leader.name), false);
            let replaced =
                self.publisher.link(&worker.at, origin, place, target, Some(entry.node))?;
            entry.node.touch();
            if replaced && target.is_none_or(|there| there.ctime.s >= self.began_s - RECENT_S) {
                let copy = state_of(&first);
                let leader = leader.clone();
                self.look_again(Replaced { member: entry.member(), leader, copy });
            }
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
                    self.ended(worker, &entry, outcome.map(|()| EntryState::Finished));
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
        entry: DirEntry<'_>,
        led: &mut bool,
    ) -> Result<EntryState, Stop> {
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
        handle: impl FnOnce(&mut Worker<'_>, DirEntry<'_>),
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
                    DirEntry { node, fds, side, name, target_name, follow, target, queue, rest };
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

    /// Returns the units of names to be looked at once more; each may lead to another one. Called, and the units run,
    /// when nothing else is left of the walk.
    pub fn replaced_names(&self) -> Vec<Unit> {
        let replaced = std::mem::take(&mut *self.groups.replaced.lock());
        replaced.into_iter().map(|replaced| Unit::Replaced(Box::new(replaced))).collect()
    }

    /// Has a name looked at once more; its directory is not finished before.
    fn look_again(&self, replaced: Replaced) {
        replaced.member.node.hold();
        self.groups.replaced.lock().push(replaced);
    }

    /// Links a name anew if the first one of its group is another copy by now.
    pub(super) fn look_at_replaced(&self, worker: &mut Worker<'_>, replaced: Replaced) {
        let node = Arc::clone(&replaced.member.node);
        match self.link_anew(worker, &replaced) {
            Ok(false) => {}
            Ok(true) => {
                node.touch();
                self.look_again(replaced);
            }
            Err(failure) => {
                let Member { side, name, .. } = &replaced.member;
                let target = node.target_path(replaced.member.at_target());
                self.fail(worker, failure, (Some(node.source_path(*side, name)), Some(target)));
            }
        }
        self.release(worker, &node);
    }

    /// Returns whether the name had to be linked anew. What others have written into one of the two names meanwhile stays.
    fn link_anew(&self, worker: &mut Worker<'_>, replaced: &Replaced) -> Result<bool, Failure> {
        let Replaced { member, leader, copy } = replaced;
        if self.is_over() {
            return Ok(false);
        }
        let home = leader.home.open().map_err(Failure::of(Operation::Link))?;
        let target = member.node.target_fd().map_err(Failure::of(Operation::Link))?;
        let (Some(home), Some(target)) = (home, target) else { return Ok(false) };
        let from = ((*home).as_fd(), &*leader.name);
        let place = ((*target).as_fd(), member.at_target());
        worker.at.step(Phase::Look, 2);
        let first = there(meta::of(from.0, from.1, false))?;
        let now = there(meta::of(place.0, place.1, false))?;
        let (Some(first), Some(now)) = (first, now) else { return Ok(false) };
        let are_copies = [&first, &now].iter().all(|there| state_of(there) == *copy);
        if !are_copies || now.identity() == first.identity() {
            return Ok(false);
        }
        self.publisher.link(&worker.at, (from, false), place, Some(&now), None)
    }

    /// Hands groups of hard links that are open after the walk on to later runs.
    pub fn hand_over_groups(&self, carried: &Carried) {
        self.groups.end_with(carried);
    }

    /// Links a name that has waited.
    fn link_late(
        &self,
        worker: &mut Worker<'_>,
        entry: DirEntry<'_>,
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
                engine.apply(worker, decided).map(|()| EntryState::Finished)
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
