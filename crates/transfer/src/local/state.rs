//! The engine: the state that all workers of a run share, and the state of each worker.

use super::attributes::{Attributes, Grains};
use super::backup::{BackupDir, Backups};
use super::content::Mover;
use super::context::{Context, Pass, TargetMode};
use super::file::Files;
use super::guard::Guard;
use super::links::{Carried, Groups};
use super::pace::Station;
use super::prune::Pruning;
use super::publisher::Publisher;
use super::removal::Removal;
use super::report::{Paths, Reports};
use super::sources::Sources;
use super::special::Specials;
use super::unchanged::Unchanged;
use super::worker::Worker;
use crate::failure::Failure;
use crate::journal::Ledger;
use crate::policy::{Chosen, Content, Digest, MissingArgs, Policy};
use crate::publish::Direct;
use hakobu_core::control::Control;
use hakobu_core::error::{Class, Fatal, Operation};
use hakobu_core::event::{Listener, Remarks};
use hakobu_core::limit::Controls;
use hakobu_core::unit::{Jobs, Totals};
use hakobu_sys::dir::Reader;
use hakobu_sys::{OwnedFd, errno};
use hakobu_tree::handle::Budget;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Parameters of a run, without the roots of the walk.
pub struct Setup<'a> {
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
    pub chosen: Option<&'a Chosen>,
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
    pub sources: Arc<Sources>,
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
}

/// Walks two trees at once and decides about each entry. Shared by all workers of one run; its parts apply the
/// actions.
pub struct Engine<'a> {
    pub(super) context: Context<'a>,
    pub(super) reports: Arc<Reports<'a>>,
    pub(super) publisher: Arc<Publisher<'a>>,
    pub(super) files: Files<'a>,
    pub(super) specials: Specials<'a>,
    pub(super) unchanged: Unchanged,
    pub(super) grains: Grains,
    pub(super) groups: Groups,
    pub(super) pruning: Pruning<'a>,
    pub(super) budget: Arc<Budget>,
    pub(super) batch_max: usize,
    /// See [`Setup::sorts`].
    pub(super) sorts: bool,
    /// Devices of the source arguments, the first few: workers are divided among them.
    pub(super) volumes: Mutex<Vec<u64>>,
    /// Directories found and not yet listed to their end.
    pub(super) unlisted: AtomicUsize,
    /// Sources to be removed at the end.
    pub(super) removals: Mutex<Vec<Removal>>,
    /// Lock: one directory of `--prune-empty-dirs` is created at a time.
    pub(super) making: Mutex<()>,
    /// See [`Setup::digest`].
    pub(super) digest: Option<Digest>,
    controls: &'a Controls,
    jobs_per_file: Jobs,
    segment_bytes_max: u64,
    totals: Mutex<Totals>,
}

impl<'a> Engine<'a> {
    /// Returns an engine for one run, not started.
    pub fn new(setup: Setup<'a>) -> Engine<'a> {
        let Setup { policy, pass, control, controls, chosen, umask, guard, .. } = setup;
        let (euid, egid) = (hakobu_sys::process::euid(), hakobu_sys::process::egid());
        let mode = setup.target;
        let context = Context { policy, control, guard, pass, mode, chosen, umask, euid, egid };
        let keeps_times = policy.preserve.times && policy.content == Content::Copy;
        let direct = Direct::new(policy, keeps_times, setup.ledger);
        let (items, plans, remarks) = (setup.items, setup.plans, setup.remarks);
        let reports = Arc::new(Reports::new(setup.listener, control, items, plans, remarks));
        let backup_dir = setup.backup_dir.map(|(path, top)| BackupDir::new(path, top, umask));
        let sources = setup.sources;
        let backups = Backups::new(policy, backup_dir, sources, Arc::clone(&reports));
        let publisher = Arc::new(Publisher::new(context, setup.temp_dir, backups, direct));
        let parts = || (context, Arc::clone(&publisher));
        let groups = Groups::default();
        if let Some(carried) = setup.carried {
            groups.begin_with(carried);
        }
        Engine {
            context,
            files: Files::new(parts()),
            specials: Specials::new(parts()),
            unchanged: Unchanged::new(&context, &reports),
            grains: Grains::default(),
            groups,
            pruning: Pruning::new(parts(), Arc::clone(&reports), setup.deletes),
            reports,
            publisher,
            budget: Budget::new(setup.open_dirs_max),
            batch_max: setup.batch_max,
            sorts: setup.sorts,
            volumes: Mutex::default(),
            unlisted: AtomicUsize::new(0),
            removals: Mutex::default(),
            making: Mutex::default(),
            digest: setup.digest,
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
    pub(super) fn fail(&self, worker: &mut Worker<'_>, failure: Failure, paths: Paths) {
        self.reports.fail(&mut worker.totals, failure, paths);
    }

    /// Disables deletion for this run: an argument that may share a target with others could not be opened.
    pub fn disable_deletion(&self) {
        self.pruning.disable_deletion();
    }

    /// Reports an argument that could not be opened. Disables deletion for this run unless the argument does not
    /// exist.
    pub fn argument_failed(&self, failure: Failure, typed: &Path) {
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
        let cause = hakobu_core::error::Cause::System(failure.error);
        let paths = (Some(typed.to_owned()), None);
        self.reports.problem(failure.operation, paths, cause, Class::Partial);
        self.totals.lock().failed += 1;
    }

    /// Reports that an argument is a directory and that no option asks for directories.
    pub fn argument_is_dir(&self, typed: &Path) {
        let reason = "it is a directory (-r copies it)";
        let paths = (Some(typed.to_owned()), None);
        self.reports.notice(Operation::Read, paths, reason, Class::Notice);
    }
}
