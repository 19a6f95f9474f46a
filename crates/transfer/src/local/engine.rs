//! The engine: the state that all workers of a run share, and the state of each worker.

use super::announce::Announcer;
use super::attributes::{Attributes, Grains};
use super::backup::{BackupDir, Backups};
use super::content::Mover;
use super::fake_super as fake;
use super::fake_super::XattrNames;
use super::file::{FileCopier, Publisher, Specials};
use super::guard::{Guard, GuardedSources};
use super::links::{Carried, LinkGroups, Replaced};
use super::proof;
use super::prune::{Extra, Pruning, SourceRemoval};
use super::receive::{Arrivals, ReceivedChunk, Receiving};
use super::report::{PathPair, Reports};
use super::shared_copy::SharedCopy;
use super::source::{FarDir, SourceDir, SourceFile, SourceName};
use super::target_dir::{DirFds, Node};
use super::unchanged::Unchanged;
use crate::failure::Failure;
use crate::journal::Ledger;
use crate::policy::{Content, Digest, EntrySelection, MissingArgs, NameRange, Policy};
use crate::publish::Direct;
use hakobu_core::control::Control;
use hakobu_core::error::{ErrorClass, Fatal, Operation};
use hakobu_core::event::{Listener, Remarks};
use hakobu_core::limit::{Controls, Limiter};
use hakobu_core::meter::{Lane, Phase};
use hakobu_core::unit::{Jobs, Kind, Meta, Time, Totals};
use hakobu_sys::dir::Reader;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, errno, file};
use hakobu_tree::handle::HandleBudget;
use hakobu_tree::names::{Cursor, NameList};
use hakobu_tree::pool::Queue;
use parking_lot::Mutex;
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Parameters of a run, without the roots of the walk.
pub struct LocalSetup<'a> {
    /// Decides about each entry.
    pub policy: &'a Policy,
    /// The pass of the walk.
    pub pass: Pass,
    /// Receives events.
    pub listener: &'a dyn Listener,
    /// Can stop the run early.
    pub control: &'a Control,
    /// Whether `Item` events are requested, and whether also for unchanged entries.
    pub items: (bool, bool),
    /// Whether events of entries are requested for a plan.
    pub plans: bool,
    /// Other messages about entries.
    pub remarks: Remarks,
    /// Kind of the checksums that `Item` events contain.
    pub digest: Option<Digest>,
    /// Entries that an earlier run chose: others are not transferred, nor these if they have changed.
    pub chosen: Option<&'a EntrySelection>,
    /// Only entries whose paths in the transfer are in this range.
    pub range: Option<&'a NameRange>,
    /// Jobs, rate limits and the meter.
    pub controls: &'a Controls,
    /// How actions are applied: `null:` and dry runs write nothing.
    pub target: TargetMode,
    /// Whether extraneous entries may be removed at all.
    pub deletes: bool,
    /// Directory of `--temp-dir`, with its device.
    pub temp_dir: Option<(OwnedFd, u64)>,
    /// Folder of `--backup-dir`, and the top of the target.
    pub backup_dir: Option<(PathBuf, Option<OwnedFd>)>,
    /// What the sources hold, as far as backups and deletions need it.
    pub sources: Arc<GuardedSources>,
    /// Maximum number of open directory descriptors.
    pub open_dirs_max: usize,
    /// Files that one worker may have open at once, in pairs of source and target.
    pub batch_max: usize,
    /// There is one worker, and it handles names in the order of rsync.
    pub sorts: bool,
    /// Maximum number of workers for the content of one file.
    pub jobs_per_file: Jobs,
    /// Bytes of a large file that one worker may buffer.
    pub segment_bytes_max: u64,
    /// Permission bits that new entries do not get.
    pub umask: u32,
    /// The record of this run, and of other runs.
    pub ledger: &'a Arc<Ledger>,
    /// Sources and names of this run.
    pub guard: &'a Guard,
    /// Groups of hard links that earlier runs left open.
    pub carried: Option<&'a Carried>,
    /// Takes what is found, for the other end; nothing is written here then.
    pub announcer: Option<&'a dyn Announcer>,
    /// Brings what the other end has found.
    pub arrivals: Option<&'a dyn Arrivals>,
}

/// Walks two trees at once and decides about each entry. Shared by all workers of one run; its parts apply the
/// actions.
pub struct LocalEngine<'a> {
    pub(super) context: Context<'a>,
    pub(super) reports: Arc<Reports<'a>>,
    pub(super) publisher: Arc<Publisher<'a>>,
    pub(super) files: FileCopier<'a>,
    pub(super) specials: Specials<'a>,
    pub(super) unchanged: Unchanged,
    pub(super) grains: Grains,
    pub(super) groups: LinkGroups,
    /// When the run began, in seconds of the time of day.
    pub(super) began_s: i64,
    pub(super) pruning: Pruning<'a>,
    pub(super) budget: Arc<HandleBudget>,
    pub(super) batch_max: usize,
    /// See [`LocalSetup::sorts`].
    pub(super) sorts: bool,
    /// Devices of the source arguments, the first few: workers are divided among them.
    pub(super) volumes: Mutex<Vec<u64>>,
    /// Directories found and not yet listed to their end.
    pub(super) unlisted: AtomicUsize,
    /// Sources to be removed at the end.
    pub(super) removals: Mutex<Vec<SourceRemoval>>,
    /// Lock: one directory of `--prune-empty-dirs` is created at a time.
    pub(super) making: Mutex<()>,
    /// See [`LocalSetup::digest`].
    pub(super) digest: Option<Digest>,
    /// See [`LocalSetup::announcer`].
    pub(super) announcer: Option<&'a dyn Announcer>,
    /// See [`LocalSetup::arrivals`].
    pub(super) arrivals: Option<&'a dyn Arrivals>,
    /// Chunks of the other end that were not finished when nothing more came.
    pub(super) unfinished: Mutex<Vec<ReceivedChunk>>,
    controls: &'a Controls,
    jobs_per_file: Jobs,
    segment_bytes_max: u64,
    totals: Mutex<Totals>,
}

impl<'a> LocalEngine<'a> {
    /// Returns an engine for one run, not started.
    pub fn new(setup: LocalSetup<'a>) -> LocalEngine<'a> {
        let LocalSetup { policy, pass, control, controls, chosen, range, umask, guard, .. } = setup;
        let (euid, egid) = (hakobu_sys::process::euid(), hakobu_sys::process::egid());
        let mode = setup.target;
        let context =
            Context { policy, control, guard, pass, mode, chosen, range, umask, euid, egid };
        let keeps_times = policy.preserve.times && policy.content == Content::Copy;
        let direct = Direct::new(policy, keeps_times, setup.ledger);
        let (items, plans, remarks) = (setup.items, setup.plans, setup.remarks);
        let reports = Arc::new(Reports::new(setup.listener, control, items, plans, remarks));
        let backup_dir = setup.backup_dir.map(|(path, top)| BackupDir::new(path, top, umask));
        let sources = setup.sources;
        let backups = Backups::new(policy, backup_dir, sources, Arc::clone(&reports));
        let publisher = Arc::new(Publisher::new(context, setup.temp_dir, backups, direct));
        let parts = || (context, Arc::clone(&publisher));
        let groups = LinkGroups::default();
        if let Some(carried) = setup.carried {
            groups.begin_with(carried);
        }
        LocalEngine {
            context,
            files: FileCopier::new(parts()),
            specials: Specials::new(parts()),
            unchanged: Unchanged::new(&context, &reports),
            grains: Grains::default(),
            groups,
            began_s: Time::now().s,
            pruning: Pruning::new(parts(), Arc::clone(&reports), setup.deletes, setup.arrivals),
            reports,
            publisher,
            budget: HandleBudget::new(setup.open_dirs_max),
            batch_max: setup.batch_max,
            sorts: setup.sorts,
            volumes: Mutex::default(),
            unlisted: AtomicUsize::new(0),
            removals: Mutex::default(),
            making: Mutex::default(),
            digest: setup.digest,
            announcer: setup.announcer,
            arrivals: setup.arrivals,
            unfinished: Mutex::default(),
            controls,
            jobs_per_file: setup.jobs_per_file,
            segment_bytes_max: setup.segment_bytes_max,
            totals: Mutex::default(),
        }
    }

    /// Returns the totals of finished units.
    pub fn totals(&self) -> Totals {
        *self.totals.lock()
    }

    /// Takes the error that stopped the run.
    pub fn take_fatal(&self) -> Option<Fatal> {
        self.reports.take_fatal()
    }

    /// Removes leftovers from the directory of `--temp-dir`.
    pub fn clear_temp_dir(&self) {
        self.publisher.clear_temp_dir();
    }

    /// Returns a worker; `lane` is its index on the meter.
    pub(super) fn worker(&self, lane: usize) -> Worker<'a> {
        Worker {
            at: Station::new(self.controls, self.context.control, lane),
            totals: Totals::default(),
            reader: Reader::default(),
            path: Vec::new(),
            mover: Mover::new(self.context, self.jobs_per_file, self.segment_bytes_max),
            attributes: Attributes::new(self.context),
        }
    }

    /// Counts names found before any worker has started: the first lane is free then.
    pub(super) fn found_before(&self, names: u64) {
        self.controls.meter.lane(0).found(names);
    }

    /// Adds a worker's counts to the totals of the run.
    pub(super) fn flush(&self, worker: &mut Worker<'_>) {
        worker.totals.unprivileged += worker.attributes.take_unprivileged();
        if worker.totals != Totals::default() {
            let totals = std::mem::take(&mut worker.totals);
            *self.totals.lock() += totals;
        }
    }

    /// Records that every name has been found.
    pub fn all_found(&self) {
        self.controls.meter.all_found();
    }

    /// Returns whether no new entry may be begun.
    pub(super) fn is_over(&self) -> bool {
        self.context.is_over()
    }

    /// Reports and counts a failure of one entry.
    pub(super) fn fail(&self, worker: &mut Worker<'_>, failure: Failure, paths: PathPair) {
        self.reports.fail(&mut worker.totals, failure, paths);
    }

    /// Disables deletion for this run: an argument that may share a target with others could not be opened.
    pub fn disable_deletion(&self) {
        self.pruning.disable_deletion();
    }

    /// Reports an argument that could not be opened. Disables deletion for this run unless the argument does not
    /// exist.
    pub fn argument_failed(&self, failure: Failure, typed: &Path) {
        let (failure, target) = failure.split();
        let missing = errno::is(&failure.error, errno::ENOENT);
        if missing && self.context.policy.missing_args != MissingArgs::Tell {
            return;
        }
        if !errno::is(&failure.error, errno::ENOENT) {
            self.disable_deletion();
        }
        if self.context.pass == Pass::Delete {
            // The transferring pass reports it.
            return;
        }
        let cause = Failure::cause(failure.error);
        let paths = (Some(typed.to_owned()), target);
        self.reports.problem(failure.operation, paths, cause, ErrorClass::Partial);
        self.totals.lock().failed += 1;
    }

    /// Reports that an argument is a directory and that no option asks for directories.
    pub fn argument_is_dir(&self, typed: &Path) {
        let reason = "is a directory (use -r)";
        let paths = (Some(typed.to_owned()), None);
        self.reports.notice(Operation::Read, paths, reason, ErrorClass::Notice);
    }
}

// The parameters of a run that every part of the engine uses.

/// The pass of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Transfers entries; with `--delete-during` also removes extraneous ones.
    Transfer,
    /// Only removes extraneous entries.
    Delete,
}

/// Mode of applying actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetMode {
    /// Carried out.
    Real,
    /// Only reported (`--dry-run`, `--list-only`).
    Told,
    /// Contents are read and discarded (`null:`).
    Null,
    /// Entries are announced to the other end.
    Sent,
}

/// The parameters of a run; each part has a copy.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// Decides about each entry.
    pub policy: &'a Policy,
    /// Can stop the run early.
    pub control: &'a Control,
    /// Sources and names of this run.
    pub guard: &'a Guard,
    /// The pass of the walk.
    pub pass: Pass,
    /// Mode of applying actions.
    pub mode: TargetMode,
    /// Entries that an earlier run chose, as they were then.
    pub chosen: Option<&'a EntrySelection>,
    /// The range of paths in the transfer that this run is limited to.
    pub range: Option<&'a NameRange>,
    /// Permission bits that new entries do not get.
    pub umask: u32,
    /// Effective user ID.
    pub euid: u32,
    /// Effective group ID.
    pub egid: u32,
}

impl Context<'_> {
    /// Returns whether no new entry may be begun.
    pub(super) fn is_over(&self) -> bool {
        self.control.is_stopped()
    }

    /// Returns whether the run writes to the target.
    pub(super) fn is_real(&self) -> bool {
        self.mode == TargetMode::Real
    }

    /// Returns whether a directory at a path in the transfer only leads to names in the range of this run: its own
    /// name, which has a slash at its end there, is not in it. The top has an empty path.
    pub(super) fn is_outside(&self, path: &[u8]) -> bool {
        let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
        self.range.is_some_and(|range| !range.contains(&[path, slash].concat()))
    }

    /// Returns whether an entry at a path in the transfer matters to this run; a directory by what may be below it.
    pub(super) fn wants(&self, path: &[u8], is_dir: bool) -> bool {
        self.range.is_none_or(|range| match is_dir {
            true => range.meets_folder(path),
            false => range.contains(path),
        })
    }

    /// Returns whether a symlink is treated as the directory that it points to. `path`: its own path in the transfer.
    pub(super) fn is_followed_dir(
        &self,
        dir_fd: BorrowedFd<'_>,
        name: &CStr,
        kind: Kind,
        path: impl FnOnce() -> Vec<u8>,
    ) -> bool {
        proof::is_followed_dir(self.policy, (dir_fd, name), kind, path)
    }

    /// Returns whether a symlink points out of the tree and is replaced by its referent.
    pub(super) fn is_unsafe_followed(
        &self,
        dir_fd: BorrowedFd<'_>,
        name: &CStr,
        path: impl FnOnce() -> Vec<u8>,
    ) -> bool {
        proof::is_unsafe_followed(self.policy, (dir_fd, name), path)
    }

    /// Opens a source for reading.
    pub(super) fn open_source(
        &self,
        (dir, name): SourceName<'_>,
        follow: bool,
    ) -> std::io::Result<SourceFile> {
        let dir_fd = match dir {
            SourceDir::Here(fd) => fd,
            SourceDir::Far(dir) => return dir.get(name)?.take().map(SourceFile::Far),
        };
        let opened = match self.policy.open_noatime {
            true => file::open_read_quietly(dir_fd, name, follow),
            false => file::open_read(dir_fd, name, follow),
        };
        opened.map(SourceFile::Here)
    }

    /// Returns whether root-only operations are performed at the target, or kept there for `--fake-super`.
    pub(super) fn is_root(&self) -> bool {
        self.policy.fake.target || self.euid == 0 && !self.policy.as_user
    }

    /// Returns whether attributes of the source are read that only root may read, or that are kept for everybody.
    pub(super) fn reads_as_root(&self) -> bool {
        self.policy.fake.source || self.euid == 0 && !self.policy.as_user
    }

    /// Returns the metadata of an entry of a source; `follow` resolves a symlink.
    pub(super) fn source_of(&self, (dir, name): SourceName<'_>, follow: bool) -> io::Result<Meta> {
        let dir = match dir {
            SourceDir::Here(fd) => fd,
            SourceDir::Far(_) => return dir.look(name, follow),
        };
        let looked = fake::of(self.policy.fake.source, (dir, name), follow)?;
        match self.reads_device(&looked) {
            true => content_of(looked, file::open_read(dir, name, follow)?),
            false => Ok(looked),
        }
    }

    /// Returns the metadata of an open source.
    pub(super) fn source_of_fd(&self, fd: impl AsFd) -> io::Result<Meta> {
        let looked = fake::of_fd(self.policy.fake.source, fd.as_fd())?;
        match self.reads_device(&looked) {
            true => content_of(looked, fd),
            false => Ok(looked),
        }
    }

    /// Returns the metadata of a file of a source.
    pub(super) fn source_of_file(&self, file: &SourceFile) -> io::Result<Meta> {
        match file {
            SourceFile::Here(fd) => self.source_of_fd(fd),
            SourceFile::Far(file) => Ok(file.entry.meta),
        }
    }

    /// Returns whether a source is a device that is copied as a file.
    fn reads_device(&self, source: &Meta) -> bool {
        self.policy.copy_devices && source.kind.is_device()
    }

    /// Returns the metadata of an entry of the target or of a tree beside it; `follow` resolves a symlink.
    pub(super) fn target_of(
        &self,
        place: (BorrowedFd<'_>, &CStr),
        follow: bool,
    ) -> io::Result<Meta> {
        fake::of(self.policy.fake.target, place, follow)
    }

    /// Returns the metadata of an open entry of the target.
    pub(super) fn target_of_fd(&self, fd: impl AsFd) -> io::Result<Meta> {
        fake::of_fd(self.policy.fake.target, fd.as_fd())
    }

    /// Returns the text of a symlink of a source.
    pub(super) fn source_text(&self, (dir, name): SourceName<'_>) -> io::Result<CString> {
        match dir {
            SourceDir::Here(fd) => fake::link_text(self.policy.fake.source, (fd, name)),
            SourceDir::Far(dir) => Ok(dir.get(name)?.text()),
        }
    }

    /// Returns the text of a symlink of the target or of a tree beside it.
    pub(super) fn target_text(&self, place: (BorrowedFd<'_>, &CStr)) -> io::Result<CString> {
        fake::link_text(self.policy.fake.target, place)
    }

    /// Returns how the extended attributes of the sources are named.
    pub(super) fn source_names(&self) -> XattrNames {
        if self.policy.fake.source { XattrNames::Source } else { XattrNames::Plain }
    }

    /// Returns how the extended attributes of the target are named.
    pub(super) fn target_names(&self) -> XattrNames {
        if self.policy.fake.target { XattrNames::Target } else { XattrNames::Plain }
    }
}

/// Returns the metadata of a device as that of a file with its content. As in rsync it is of now, because the times of a
/// node tell nothing of its content; what has no size is empty: it may have no end.
fn content_of(device: Meta, fd: impl AsFd) -> io::Result<Meta> {
    let size = file::seek_size(fd)?;
    let (blocks, mtime) = (size.div_ceil(512), Time::now());
    Ok(Meta { kind: Kind::File, size, blocks, mtime, rdev: 0, ..device })
}

// The state of one worker.

/// Per-worker state of the engine.
pub struct Worker<'a> {
    /// Its lane on the meter.
    pub(super) at: Station<'a>,
    /// Counts since the last flush.
    pub(super) totals: Totals,
    pub(super) reader: Reader,
    /// The path in the transfer being matched against filter rules.
    pub(super) path: Vec<u8>,
    pub(super) mover: Mover<'a>,
    pub(super) attributes: Attributes<'a>,
}

impl Worker<'_> {
    /// Counts an entry that is left alone although its target may need something.
    pub(super) fn count_left_out(&mut self) {
        self.totals.skipped += 1;
        self.totals.left_out += 1;
    }

    /// Counts an entry whose target needs nothing.
    pub(super) fn count_unchanged(&mut self, source: &Meta) {
        self.totals.skipped += 1;
        self.totals.bytes_skipped += if source.kind == Kind::File { source.size } else { 0 };
    }
}

// Units of the walk: directories that were found, listings, chunks of names.

/// Up to 64 names of one directory.
pub struct Chunk {
    pub(super) node: Arc<Node>,
    pub(super) side: usize,
    pub(super) names: NameList,
    /// For a single name: its name at the target.
    pub(super) target_name: Option<Box<CStr>>,
    /// A symlink that is named in an argument is followed.
    pub(super) follow: bool,
    /// The names are arguments: the listing phase ends only after they are examined.
    pub(super) is_root: bool,
}

impl Chunk {
    pub(super) fn new(node: &Arc<Node>, side: usize) -> Chunk {
        let node = Arc::clone(node);
        let names = NameList::default();
        Chunk { node, side, names, target_name: None, follow: false, is_root: false }
    }
}

/// A unit of work.
pub enum Unit {
    /// A directory to open on both sides and to list.
    OpenDir(OpenDir),
    /// A listing to begin or to continue.
    List(DirListing),
    /// Names to handle.
    Chunk(Chunk),
    /// A target directory to prune.
    Prune(Arc<Node>),
    /// Names of a target directory that the other end has looked up.
    Remove(Box<Extra>),
    /// A large file that another worker copies, to help with.
    Help(Arc<SharedCopy>),
    /// What the other end sends.
    Receive(Box<Receiving>),
    /// A hard link to look at once more.
    Replaced(Box<Replaced>),
}

impl Unit {
    /// Returns the device of the source that it belongs to.
    pub(super) fn volume(&self) -> u64 {
        let (node, side) = match self {
            Unit::OpenDir(dir) => (&dir.parent, dir.side),
            Unit::List(listing) => (&listing.node, listing.side),
            Unit::Chunk(chunk) => (&chunk.node, chunk.side),
            Unit::Prune(node) => (node, 0),
            Unit::Remove(extra) => (&extra.node, 0),
            Unit::Help(shared_copy) => return shared_copy.source_device(),
            Unit::Replaced(replaced) => (&replaced.member.node, replaced.member.side),
            Unit::Receive(_) => return 0,
        };
        node.sides.get(side).map_or(0, |side| side.volume)
    }
}

/// A directory that was found.
pub struct OpenDir {
    /// The directory that contains it.
    pub parent: Arc<Node>,
    /// Index of the parent's source that it was found in.
    pub side: usize,
    pub name: Box<CStr>,
    /// Its name at the target, if that differs.
    pub target_name: Option<Box<CStr>>,
    /// It may be reached through a symlink.
    pub follow: bool,
    /// It only leads to what is transferred: it is created if it is missing, and otherwise left unchanged.
    pub implied: bool,
    /// Its content is listed even without recursion: an argument with a slash at its end.
    pub lists: bool,
    /// It is a directory of the other end.
    pub far: Option<Arc<FarDir>>,
}

/// The state of listing one directory.
pub struct DirListing {
    pub(super) node: Arc<Node>,
    /// Held while listing: the kernel keeps the position in the descriptor.
    pub(super) fds: DirFds,
    pub(super) side: usize,
    pub(super) chunk: Chunk,
}

impl DirListing {
    /// Starts the listing of the first side.
    pub(super) fn new(node: &Arc<Node>, fds: DirFds) -> DirListing {
        DirListing { node: Arc::clone(node), fds, side: 0, chunk: Chunk::new(node, 0) }
    }
}

/// The names of a chunk after the current one.
pub(super) struct Rest<'a> {
    pub(super) chunk: &'a Chunk,
    /// The queue of the worker that handles it.
    pub(super) queue: &'a Queue<'a, Unit>,
    /// The remaining names.
    names: Cursor<'a>,
    /// One of the names may still turn out to be a directory, which must be listed.
    pub(super) unlisted: Cell<bool>,
}

impl<'a> Rest<'a> {
    pub(super) fn new(chunk: &'a Chunk, queue: &'a Queue<'a, Unit>) -> Rest<'a> {
        Rest { chunk, queue, names: chunk.names.cursor(), unlisted: Cell::new(chunk.is_root) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Takes the next name.
    pub(super) fn next(&self) -> Option<(&'a CStr, Kind)> {
        self.names.take()
    }

    /// Takes all remaining names.
    pub(super) fn take(&self) -> Option<Chunk> {
        let names = self.names.split_off(self.names.len());
        let Chunk { node, side, follow, is_root, .. } = self.chunk;
        let (follow, is_root) = (*follow, *is_root);
        // Only a chunk of one name has a different name at the target.
        (!names.is_empty()).then(|| Chunk { names, follow, is_root, ..Chunk::new(node, *side) })
    }
}

// The phase of a worker, for the meter, and the waiting that limits require.
//
// A worker is in exactly one phase while it works on a unit. An **operation** is a call for which a file system has
// to look something up, read or write it: opening, creating, naming (mkdir, link, rename), looking up a name,
// listing a bufferful of names, reading, writing (a copy inside the kernel is one), removing, and setting the
// attributes of one entry, however many they are. Calls on open files that need no such access are not counted. A
// copy inside the kernel reads and writes in one call: it counts as [`Phase::Write`].

/// A worker's lane on the meter, and its limits.
pub(super) struct Station<'a> {
    controls: &'a Controls,
    control: &'a Control,
    /// Its counters.
    pub(super) lane: &'a Lane,
    /// The phase; `None` between units and while the first units are made.
    phase: Cell<Option<Phase>>,
}

impl<'a> Station<'a> {
    /// `lane` is the index of the worker on the meter.
    pub(super) fn new(controls: &'a Controls, control: &'a Control, lane: usize) -> Station<'a> {
        Station { controls, control, lane: controls.meter.lane(lane), phase: Cell::new(None) }
    }

    /// Returns whether no new entry may be begun.
    pub(super) fn is_over(&self) -> bool {
        self.control.is_stopped()
    }

    /// Returns whether bytes are limited.
    pub(super) fn is_paced(&self) -> bool {
        self.controls.bytes.is_some()
    }

    /// Begins a unit, in the phase [`Phase::Look`].
    pub(super) fn begin_unit(&self) {
        self.phase.set(Some(Phase::Look));
        self.lane.enter(Phase::Look);
    }

    pub(super) fn end_unit(&self) {
        if let Some(phase) = self.phase.take() {
            self.lane.leave(phase);
        }
    }

    /// Records that the worker waits for a unit, or has stopped waiting.
    pub(super) fn rest(&self, waits: bool) {
        match waits {
            true => self.lane.enter(Phase::Idle),
            false => self.lane.leave(Phase::Idle),
        }
    }

    /// Changes to another phase.
    pub(super) fn turn(&self, phase: Phase) {
        if let Some(old) = self.phase.get()
            && old != phase
        {
            self.phase.set(Some(phase));
            self.lane.turn(old, phase);
        }
    }

    /// Changes to a phase that begins with this many operations; waits first until the limits allow them.
    pub(super) fn step(&self, phase: Phase, operations: u64) {
        if let Some(limiter) = &self.controls.operations {
            self.wait_for(limiter, operations);
        }
        self.turn(phase);
        self.lane.operations(operations);
    }

    /// Counts a found name as finished, whatever the result.
    pub(super) fn finished_name(&self) {
        self.lane.done(1);
        self.finished();
    }

    /// Counts an entry as finished, whatever the result.
    pub(super) fn finished(&self) {
        self.lane.items(1);
        self.lane.completions(1);
    }

    /// Waits until the limit allows moving `bytes`. Returns early if the run is asked to stop.
    pub(super) fn pace(&self, bytes: u64) {
        if let Some(limiter) = &self.controls.bytes {
            let phase = self.phase.get();
            self.wait_for(limiter, bytes);
            if let Some(phase) = phase {
                self.turn(phase);
            }
        }
    }

    fn wait_for(&self, limiter: &Limiter, count: u64) {
        limiter.take_all(count, || self.is_over(), || self.turn(Phase::Limit));
    }

    /// Returns the number of bytes to move between two checks of the limit and the signals, at most `most`.
    pub(super) fn stride(&self, most: usize) -> usize {
        let grant = self.controls.bytes.as_ref().map_or(u64::MAX, |limiter| limiter.grant_max());
        usize::try_from(grant).unwrap_or(usize::MAX).clamp(1, most)
    }
}
