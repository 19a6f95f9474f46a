//! The walk: directories are entered on both sides, listed, and cut into chunks; the last unit
//! below a directory gives it its attributes.

use super::entry::Entry;
use super::node::{Failure, Fds, Node};
use super::pace::Station;
use super::pool::{Queue, Work, lock};
use super::sweep::Pass;
use super::temp::TempNames;
use super::{BUFFER_BYTES, Engine, State, TargetMode, attributes, data};
use crate::error::Operation;
use crate::event::Event;
use crate::meter::Phase;
use crate::policy::Symlinks;
use crate::unit::{Kind, Totals};
use hakobu_sys::{BorrowedFd, dir, errno, meta};
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Names in a chunk: enough to make the cost of handing it over vanish, few enough that the last
/// chunks of a tree end at the same time.
pub(super) const CHUNK_NAMES: usize = 64;
/// Target directories of single arguments are searched for leftovers up to this `st_size`: a
/// larger one would take longer than the copy.
pub(super) const SWEPT_BASE_BYTES_MAX: u64 = 256 << 10;

/// A piece of work.
pub enum Unit {
    /// A directory to open on both sides and to list.
    Enter(Enter),
    /// A listing to begin or to go on with.
    List(Listing),
    /// Names to handle.
    Chunk(Chunk),
    /// A target directory to look through.
    Sweep(Arc<Node>),
}

/// A directory that was found.
pub struct Enter {
    /// The directory that holds it.
    pub parent: Arc<Node>,
    /// Which of the parent's sources it was found in.
    pub side: usize,
    /// Its name there.
    pub name: Box<CStr>,
    /// Its name at the target, where that differs.
    pub target_name: Option<Box<CStr>>,
    /// It may be reached through a symlink.
    pub follow: bool,
}

impl Enter {
    /// The directory that an entry turned out to be.
    pub(super) fn of(entry: &Entry<'_>) -> Enter {
        Enter {
            parent: Arc::clone(entry.node),
            side: entry.side,
            name: entry.name.into(),
            target_name: (entry.name != entry.target_name).then(|| entry.target_name.into()),
            follow: entry.follow,
        }
    }
}

/// The listing of one directory, as far as it got.
pub struct Listing {
    pub(super) node: Arc<Node>,
    /// Held while listing: the kernel keeps the position in the descriptor.
    pub(super) fds: Arc<Fds>,
    pub(super) side: usize,
    pub(super) chunk: Chunk,
}

/// Up to 64 names of one directory.
pub struct Chunk {
    pub(super) node: Arc<Node>,
    pub(super) side: usize,
    /// The names, each ended by NUL.
    pub(super) names: Vec<u8>,
    pub(super) kinds: Vec<Kind>,
    /// For a single name: what it is called at the target.
    pub(super) target_name: Option<Box<CStr>>,
    /// A symlink that is named in an argument is looked through.
    pub(super) follow: bool,
    /// The names are arguments: the walk is not done before they are looked at.
    pub(super) seed: bool,
}

impl Chunk {
    pub(super) fn new(node: &Arc<Node>, side: usize) -> Chunk {
        let node = Arc::clone(node);
        let (names, kinds) = (Vec::new(), Vec::new());
        Chunk { node, side, names, kinds, target_name: None, follow: false, seed: false }
    }

    pub(super) fn push(&mut self, name: &CStr, kind: Kind) {
        self.names.extend_from_slice(name.to_bytes_with_nul());
        self.kinds.push(kind);
    }
}

/// The names of a chunk that come after the one at hand.
pub(super) struct Rest<'a> {
    pub(super) chunk: &'a Chunk,
    /// How many names, and bytes of them, have been taken.
    next: Cell<(usize, usize)>,
}

impl<'a> Rest<'a> {
    /// Takes the next name.
    pub(super) fn next(&self) -> Option<(&'a CStr, Kind)> {
        let (index, at) = self.next.get();
        let kind = *self.chunk.kinds.get(index)?;
        let name = CStr::from_bytes_until_nul(self.chunk.names.get(at..)?).ok()?;
        self.next.set((index + 1, at + name.count_bytes() + 1));
        Some((name, kind))
    }

    /// Takes all that are left.
    fn take(&self) -> Option<Chunk> {
        let Chunk { node, side, names, kinds, follow, seed, .. } = self.chunk;
        let (index, at) = self.next.replace((usize::MAX, 0));
        let kinds = kinds.get(index..).filter(|kinds| !kinds.is_empty())?.to_vec();
        let names = names.get(at..)?.to_vec();
        let (follow, seed) = (*follow, *seed);
        // Only a chunk of one name has another one at the target.
        Some(Chunk { names, kinds, follow, seed, ..Chunk::new(node, *side) })
    }
}

impl Node {
    /// Announces one more unit below this directory.
    pub(super) fn hold(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
    }
}

impl Engine<'_> {
    pub(super) fn flush(&self, state: &mut State) {
        if state.totals != Totals::default() {
            let totals = std::mem::take(&mut state.totals);
            *lock(&self.totals) += totals;
            self.listener.event(Event::Unit(&totals));
        }
    }

    pub(super) fn listing(&self, node: &Arc<Node>, fds: Arc<Fds>, side: usize) -> Unit {
        let chunk = Chunk::new(node, side);
        Unit::List(Listing { node: Arc::clone(node), fds, side, chunk })
    }

    /// Goes on with a listing until it ends or the queue is full.
    pub(super) fn list(&self, state: &mut State, mut listing: Listing, queue: &Queue<'_, Unit>) {
        loop {
            if self.is_over() {
                listing.node.list_failed.store(true, Ordering::Relaxed);
                break;
            }
            if !queue.has_room() {
                queue.put_aside(Unit::List(listing));
                return;
            }
            match self.list_batch(state, &mut listing, queue) {
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
                    listing.node.kept_sources.fetch_add(1, Ordering::Relaxed);
                    let failure = Failure { operation: Operation::List, error };
                    let source = listing.node.source_path(listing.side, c"");
                    self.fail(state, failure, Some(source), None);
                    break;
                }
            }
        }
        self.send_chunk(&mut listing, queue);
        self.listed();
        let node = listing.node;
        drop(listing.fds);
        let sweeps = match (self.pass, node.target_dir()) {
            // What a killed run left lies where something was before this one.
            (Pass::Transfer, Some(info)) => !info.fresh,
            (Pass::Delete, Some(_)) => true,
            (_, None) => false,
        };
        if sweeps {
            node.hold();
            queue.push(Unit::Sweep(Arc::clone(&node)));
        }
        if !self.budget.has_room() {
            node.close();
        }
        self.release(state, &node);
    }

    fn list_batch(
        &self,
        state: &mut State,
        listing: &mut Listing,
        queue: &Queue<'_, Unit>,
    ) -> std::io::Result<bool> {
        let Listing { node, fds, side, chunk } = listing;
        let source_dir = fds.source(*side)?;
        let State { reader, path, station, .. } = state;
        self.step(station, Phase::List, 1);
        let filter = self.policy.filter.as_deref().zip(node.rules.as_deref());
        path.clear();
        if filter.is_some() {
            node.push_path(path);
            if !path.is_empty() {
                path.push(b'/');
            }
        }
        let prefix = path.len();
        let mut found = 0;
        let more = reader.next_batch(source_dir, |name, kind, _| {
            if TempNames::is_temp(name) || !node.lends(*side, name) {
                return;
            }
            let mut kind = kind;
            if kind == Kind::Unknown && (filter.is_some() || self.policy.prune_empty_dirs) {
                kind = meta::of(source_dir, name, false).map_or(Kind::Unknown, |meta| meta.kind);
            }
            if let Some((filter, rules)) = filter {
                path.truncate(prefix);
                path.extend_from_slice(name.to_bytes());
                let is_dir = kind == Kind::Dir || self.is_followed_dir(source_dir, name, kind);
                if filter.check(rules, path, is_dir, false).hide {
                    return;
                }
            }
            // The first source that has a name provides it.
            let has = |fd: BorrowedFd<'_>| meta::of(fd, name, false).is_ok();
            let earlier = |side| node.lends(side, name) && fds.source(side).is_ok_and(has);
            if *side > 0 && (0..*side).any(earlier) {
                return;
            }
            if kind == Kind::Dir {
                if self.policy.recurse || self.policy.dirs {
                    let enter = Enter {
                        parent: Arc::clone(node),
                        side: *side,
                        name: name.into(),
                        target_name: None,
                        follow: false,
                    };
                    self.push_enter(queue, enter);
                }
                return;
            }
            if node.lends_followed(*side, name) {
                found += 1;
                let mut single = Chunk::new(node, *side);
                single.push(name, Kind::Unknown);
                single.follow = true;
                node.hold();
                queue.push(Unit::Chunk(single));
                return;
            }
            if self.pass == Pass::Delete && !self.is_followed_dir(source_dir, name, kind) {
                return;
            }
            found += 1;
            chunk.push(name, kind);
            if chunk.kinds.len() >= CHUNK_NAMES {
                let full = std::mem::replace(chunk, Chunk::new(node, *side));
                node.hold();
                queue.push(Unit::Chunk(full));
            }
        })?;
        if found > 0 && self.pass == Pass::Transfer {
            self.listener.event(Event::Found { entries: found });
        }
        Ok(more)
    }

    /// Whether a symlink stands for the directory that it names.
    pub(super) fn is_followed_dir(&self, dir_fd: BorrowedFd<'_>, name: &CStr, kind: Kind) -> bool {
        let follows = self.policy.copy_dirlinks || self.policy.symlinks == Symlinks::Follow;
        matches!(kind, Kind::Symlink | Kind::Unknown)
            && (follows || kind == Kind::Unknown)
            && meta::of(dir_fd, name, follows).is_ok_and(|meta| meta.kind == Kind::Dir)
    }

    pub(super) fn send_chunk(&self, listing: &mut Listing, queue: &Queue<'_, Unit>) {
        if !listing.chunk.kinds.is_empty() {
            let next = Chunk::new(&listing.node, listing.side);
            let chunk = std::mem::replace(&mut listing.chunk, next);
            listing.node.hold();
            queue.push(Unit::Chunk(chunk));
        }
    }

    pub(super) fn chunk(&self, state: &mut State, chunk: &Chunk, queue: &Queue<'_, Unit>) {
        let node = &chunk.node;
        if self.policy.prune_empty_dirs
            && self.pass == Pass::Transfer
            && let Err(failure) = self.materialize(state, node)
        {
            self.fail(state, failure, None, Some(node.target_path(c"")));
            return;
        }
        let fds = match node.fds() {
            Ok(fds) => fds,
            Err(error) => {
                let failure = Failure { operation: Operation::List, error };
                self.fail(state, failure, Some(node.source_path(chunk.side, c"")), None);
                state.totals.failed += chunk.kinds.len() as u64 - 1;
                return;
            }
        };
        let target = fds.target().zip(node.target_dir());
        if target.is_none() && self.mode == TargetMode::Real && self.pass == Pass::Transfer {
            let error = std::io::Error::from_raw_os_error(errno::ENOENT);
            let failure = Failure { operation: Operation::MakeDir, error };
            self.fail(state, failure, None, Some(node.target_path(c"")));
            return;
        }
        let fresh = target.is_none_or(|(_, info)| info.fresh);
        let rest = Rest { chunk, next: Cell::new((0, 0)) };
        if let Some(target) = target.filter(|_| fresh && self.batches(chunk)) {
            return self.batch(state, &rest, &fds, target, queue);
        }
        while let Some((name, kind)) = rest.next() {
            if self.is_over() {
                return;
            }
            let mut entry = Entry {
                node,
                fds: &fds,
                side: chunk.side,
                name,
                target_name: chunk.target_name.as_deref().unwrap_or(name),
                follow: chunk.follow,
                target,
                rest: Some(&rest),
            };
            if self.pass == Pass::Delete {
                self.delete_pass_name(state, &entry, queue);
            } else {
                self.entry(state, &mut entry, kind, fresh, Some(queue));
            }
            if queue.is_shut_out() {
                self.hand_over(&rest, queue);
            }
        }
    }

    /// Makes what is left of a chunk a unit of its own, for whoever is free first.
    pub(super) fn hand_over(&self, rest: &Rest<'_>, queue: &Queue<'_, Unit>) {
        let Some(chunk) = rest.take() else { return };
        chunk.node.hold();
        if chunk.seed {
            self.unlisted.fetch_add(1, Ordering::Relaxed);
        }
        queue.push(Unit::Chunk(chunk));
    }

    /// In the walk that only deletes, names matter only where they lead to directories.
    fn delete_pass_name(&self, state: &mut State, entry: &Entry<'_>, queue: &Queue<'_, Unit>) {
        let Ok(dir_fd) = entry.source_dir() else { return };
        let follows =
            entry.follow || self.policy.copy_dirlinks || self.policy.symlinks == Symlinks::Follow;
        if meta::of(dir_fd, entry.name, follows).is_ok_and(|meta| meta.kind == Kind::Dir) {
            let _ = state;
            self.push_enter(queue, Enter { follow: follows, ..Enter::of(entry) });
        }
    }

    /// Hands out a directory that was found.
    pub(super) fn push_enter(&self, queue: &Queue<'_, Unit>, enter: Enter) {
        enter.parent.hold();
        self.unlisted.fetch_add(1, Ordering::Relaxed);
        queue.push(Unit::Enter(enter));
    }

    /// A directory is listed to its end, or left out. Says so when it was the last one.
    pub(super) fn listed(&self) {
        let last = self.unlisted.fetch_sub(1, Ordering::AcqRel) == 1;
        if last && self.pass == Pass::Transfer {
            self.listener.event(Event::WalkDone);
        }
    }

    /// Whether the content of a directory is wanted.
    pub(super) fn descends(&self, node: &Node) -> bool {
        let crosses = node.sides.first().is_some_and(|side| side.volume != node.source.dev);
        self.policy.recurse && !(self.policy.one_file_system && crosses)
    }
}

impl Work for Engine<'_> {
    type Unit = Unit;
    type State = State;

    fn start(&self, index: usize) -> State {
        State {
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            reader: dir::Reader::default(),
            totals: Totals::default(),
            xattrs: attributes::Scratch::default(),
            path: Vec::new(),
            pair: data::Pair::default(),
            station: Station::new(index),
        }
    }

    fn idle(&self, state: &mut State, waits: bool) {
        self.rest(&state.station, waits);
    }

    fn run(&self, unit: Unit, state: &mut State, queue: &Queue<'_, Unit>) {
        self.begin_unit(&state.station);
        match unit {
            Unit::Enter(enter) if self.is_over() => {
                self.listed();
                self.release(state, &enter.parent);
            }
            // Entering opens directories: while many units wait it can wait, too.
            Unit::Enter(enter) if !queue.has_room() => queue.put_aside(Unit::Enter(enter)),
            Unit::Enter(enter) => {
                let entered = self.enter(state, enter);
                self.finished(state);
                if entered.is_none() {
                    self.listed();
                }
                if let Some(node) = entered {
                    match node.fds() {
                        Ok(fds) if self.descends(&node) => {
                            node.listed.store(true, Ordering::Relaxed);
                            if let Unit::List(listing) = self.listing(&node, fds, 0) {
                                self.list(state, listing, queue);
                            }
                        }
                        _ => {
                            self.listed();
                            self.release(state, &node);
                        }
                    }
                }
            }
            Unit::List(listing) => self.list(state, listing, queue),
            Unit::Chunk(chunk) => {
                self.chunk(state, &chunk, queue);
                if chunk.seed {
                    self.listed();
                }
                self.release(state, &chunk.node);
            }
            Unit::Sweep(node) => {
                self.sweep(state, &node);
                self.release(state, &node);
            }
        }
        self.flush(state);
        self.end_unit(&state.station);
    }
}
