//! How a policy becomes calls: workers that walk two trees at once and copy as they go.
//!
//! Local to local the walker is the engine. A unit is a directory to enter, a listing to go on
//! with, or a chunk of at most 64 names of one directory; the worker holds descriptors of both
//! directories and makes no call with a longer path than one name.

mod act;
pub(crate) mod appear;
mod attributes;
mod base;
mod batch;
mod data;
mod enter;
mod entry;
mod finish;
pub mod handle;
mod linking;
mod links;
pub mod node;
mod pace;
pub mod pool;
mod regular;
pub mod remove;
mod special;
mod sweep;
mod tell;
pub(crate) mod temp;
#[cfg(test)]
mod tests;
pub mod usage;
mod walk;

pub use base::Ends;
pub use sweep::Pass;
pub(crate) use sweep::read_merge_file;
pub use walk::Unit;

use crate::control::Control;
use crate::error::{Cause, Class, Fatal, Operation, Problem};
use crate::event::{Event, Listener};
use crate::limit::Helm;
use crate::policy::{Content, Policy};
use crate::unit::{Meta, Totals};
use hakobu_sys::OwnedFd;
use node::Failure;
use pool::lock;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What a run of the engine is given: everything but the places to begin.
pub struct Setup<'a> {
    /// What happens to each entry.
    pub policy: &'a Policy,
    /// Which walk this is.
    pub pass: Pass,
    /// Who is told.
    pub listener: &'a dyn Listener,
    /// Who may stop us.
    pub control: &'a Control,
    /// `Item` events are wanted; also for unchanged entries.
    pub items: (bool, bool),
    /// How many work at which rates, and who counts it.
    pub helm: &'a Helm,
    /// Nothing is made at the target: `null:`, or a dry run.
    pub target: TargetMode,
    /// Extraneous entries may be removed at all.
    pub deletes: bool,
    /// Directory of `--temp-dir`, with its device.
    pub temp_dir: Option<(OwnedFd, u64)>,
    /// Descriptors of directories that may be kept open.
    pub open_dirs_max: usize,
    /// Files that one worker may have open at once, in pairs of source and target.
    pub batch_max: usize,
    /// Permission bits that new entries do not get.
    pub umask: u32,
}

/// What becomes of the actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetMode {
    /// They are carried out.
    Real,
    /// They are only told (`--dry-run`, `--list-only`).
    Told,
    /// Contents are read and discarded (`null:`).
    Null,
}

/// The engine: shared by all workers of one run.
pub struct Engine<'a> {
    policy: &'a Policy,
    pass: Pass,
    listener: &'a dyn Listener,
    control: &'a Control,
    items: bool,
    items_unchanged: bool,
    helm: &'a Helm,
    mode: TargetMode,
    temp_dir: Option<(OwnedFd, u64)>,
    temp_names: temp::TempNames,
    deletes: bool,
    budget: Arc<node::Budget>,
    umask: u32,
    batch_max: usize,
    euid: u32,
    egid: u32,
    /// Sources that changed after this moment may not be created under their final name.
    direct_before_s: i64,
    direct: bool,
    /// `O_TMPFILE` works at the target, as far as we know.
    unnamed_works: AtomicBool,
    links: links::Groups,
    totals: Mutex<Totals>,
    fatal: Mutex<Option<Fatal>>,
    deletes_left: AtomicU64,
    /// An argument could not be begun with: what it would have provided is not known.
    argument_failed: AtomicBool,
    /// Device and inode of the target directories of the arguments: never copied into themselves.
    target_roots: Mutex<Vec<(u64, u64)>>,
    /// Directories that were found and are not listed to their end yet.
    unlisted: AtomicUsize,
    /// One directory of `--prune-empty-dirs` is made at a time.
    making: Mutex<()>,
}

/// What each worker owns.
pub struct State {
    buffer: Box<[u8]>,
    reader: hakobu_sys::dir::Reader,
    totals: Totals,
    xattrs: attributes::Scratch,
    path: Vec<u8>,
    pair: data::Pair,
    station: pace::Station,
}

/// Bytes a worker reads at once. Larger buffers fall out of the second-level cache.
const BUFFER_BYTES: usize = 256 << 10;

impl<'a> Engine<'a> {
    /// An engine for one run, not started.
    pub fn new(setup: Setup<'a>) -> Engine<'a> {
        let Setup { policy, listener, control, items, helm, target, temp_dir, umask, .. } = setup;
        let preserve = policy.preserve;
        Engine {
            policy,
            pass: setup.pass,
            listener,
            control,
            items: items.0,
            items_unchanged: items.1,
            helm,
            mode: target,
            temp_dir,
            temp_names: temp::TempNames::new(),
            deletes: setup.deletes,
            budget: node::Budget::new(setup.open_dirs_max),
            umask,
            batch_max: setup.batch_max,
            euid: hakobu_sys::process::euid(),
            egid: hakobu_sys::process::egid(),
            direct_before_s: appear::direct_before_s(policy),
            direct: preserve.times
                && policy.content == Content::Copy
                && appear::allows_direct(policy),
            unnamed_works: AtomicBool::new(true),
            links: links::Groups::default(),
            totals: Mutex::default(),
            fatal: Mutex::default(),
            deletes_left: AtomicU64::new(policy.max_delete.unwrap_or(u64::MAX)),
            argument_failed: AtomicBool::new(false),
            target_roots: Mutex::default(),
            unlisted: AtomicUsize::new(0),
            making: Mutex::default(),
        }
    }

    /// Whether a new file may be created under its final name. Killed half-way it is shorter than
    /// its source and as new as the moment, so that no later run takes it for finished: allowed
    /// only where times are kept and compared, and where the source is older than this run.
    fn may_be_direct(&self, source: &Meta) -> bool {
        self.direct
            && source.size <= appear::DIRECT_BYTES_MAX
            && source.mtime.s < self.direct_before_s
    }

    /// What was done so far by finished units.
    pub fn totals(&self) -> Totals {
        *lock(&self.totals)
    }

    /// What stopped the run, if something did.
    pub fn take_fatal(&self) -> Option<Fatal> {
        lock(&self.fatal).take()
    }

    /// Whether no new entry shall be begun.
    fn is_over(&self) -> bool {
        self.control.is_stopped()
    }

    /// Reports a failure of one entry and counts it. An error after which nothing can succeed
    /// ends the run.
    fn fail(
        &self,
        state: &mut State,
        failure: Failure,
        source: Option<PathBuf>,
        target: Option<PathBuf>,
    ) {
        use hakobu_sys::errno;
        let Failure { operation, error } = failure;
        let writes = matches!(
            operation,
            Operation::Create
                | Operation::MakeDir
                | Operation::Write
                | Operation::Rename
                | Operation::Link
                | Operation::Sync
        );
        let class = match error.raw_os_error() {
            Some(errno::ENOENT) if matches!(operation, Operation::Read | Operation::Stat) => {
                Class::Vanished
            }
            Some(errno::ENOSPC | errno::EDQUOT | errno::EROFS) if writes => Class::Fatal,
            _ => Class::Partial,
        };
        match class {
            Class::Vanished => state.totals.vanished += 1,
            _ => state.totals.failed += 1,
        }
        if class == Class::Fatal {
            let name = target.as_deref().or(source.as_deref()).map(crate::error::quoted);
            let cause = Cause::System(std::io::Error::from_raw_os_error(
                error.raw_os_error().unwrap_or(errno::ENOSPC),
            ));
            let verb = operation.words();
            let message = format!("cannot {verb} {}: {cause}", name.unwrap_or_default());
            lock(&self.fatal).get_or_insert_with(|| Fatal::new(11, message));
            self.control.stop();
        }
        self.report(Problem { operation, source, target, cause: Cause::System(error), class });
    }

    fn report(&self, problem: Problem) {
        self.listener.event(Event::Problem(&problem));
    }

    /// Tells something that is no failure.
    fn notice(
        &self,
        operation: Operation,
        source: Option<PathBuf>,
        target: Option<PathBuf>,
        reason: &'static str,
        class: Class,
    ) {
        self.report(Problem { operation, source, target, cause: Cause::Reason(reason), class });
    }

    /// Deletes nothing in this run: an argument that may meet others at the target could not be
    /// begun with.
    pub fn distrust(&self) {
        self.argument_failed.store(true, Ordering::Relaxed);
    }

    /// Reports an argument that could not be begun with. Unless that is because there is none of
    /// its name, nothing is deleted in this run.
    pub fn argument_failed(&self, failure: Failure, typed: &Path) {
        if !hakobu_sys::errno::is(&failure.error, hakobu_sys::errno::ENOENT) {
            self.distrust();
        }
        if self.pass == Pass::Delete {
            // The walk that transfers says it.
            return;
        }
        let mut totals = Totals { failed: 1, ..Totals::default() };
        let class = Class::Partial;
        let cause = Cause::System(failure.error);
        let source = Some(typed.to_owned());
        self.report(Problem { operation: failure.operation, source, target: None, cause, class });
        self.listener.event(Event::Unit(&totals));
        *lock(&self.totals) += std::mem::take(&mut totals);
    }

    /// Says that an argument is a directory and that no option asked for those.
    pub fn argument_is_dir(&self, typed: &Path) {
        let reason = "it is a directory (-r copies it)";
        let source = Some(typed.to_owned());
        self.notice(Operation::Read, source, None, reason, Class::Notice);
    }
}
