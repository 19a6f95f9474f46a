//! The cores: threads with a runtime, clients and workers each, and their shared state.

mod runtime;

pub(super) use runtime::run;

use super::budget::Budget;
use super::delete::local::Emptied;
use super::get::files::Files;
use super::get::folders::Folders;
use super::queue::Queue;
use super::{Folded, How, ObjectOptions, Task, Work};
use crate::engine::attributes::Grains;
use crate::journal::{Journal, Ledger};
use crate::policy::Policy;
use futures_util::future::{Either, LocalBoxFuture, select};
use hakobu_core::control::Control;
use hakobu_core::error::{Fatal, Problem};
use hakobu_core::event::Listener;
use hakobu_core::limit::Controls;
use hakobu_core::meter::{Doing, Entries, Phase};
use hakobu_core::unit::{Meta, Totals};
use hakobu_s3::{Client, S3Session, Throttle};
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::SemaphorePermit;

/// Parts of an engine.
pub struct Setup<'a> {
    /// Decides about each entry.
    pub policy: &'a Policy,
    /// Options for writing objects.
    pub options: &'a ObjectOptions,
    /// The store of sources, if any.
    pub source: Option<Arc<S3Session>>,
    /// The store of targets, if any; the same one for copies inside an account.
    pub target: Option<Arc<S3Session>>,
    /// Receives events.
    pub listener: &'a dyn Listener,
    /// Can stop the run early.
    pub control: &'a Control,
    /// Whether `Item` events are requested, and whether also for unchanged entries.
    pub items: (bool, bool),
    /// Jobs, rate limits and the meter.
    pub controls: &'a Controls,
    /// Number of cores to use.
    pub cores: usize,
    /// Limit on bytes in flight.
    pub memory_bytes_max: u64,
    /// Records of unfinished large objects.
    pub journal: Journal,
    /// The record of this run, and those of other runs.
    pub ledger: Arc<Ledger>,
    /// What is known of a target that holds different names for one.
    pub folded: Arc<Folded>,
    /// The umask, for files without a mode of their own.
    pub umask: u32,
}

/// State shared by all cores.
pub struct Engine<'a> {
    pub(crate) setup: Setup<'a>,
    pub(super) queue: Queue<dyn Parts>,
    pub(super) budget: Budget,
    pub(super) files: Arc<Files>,
    pub(super) grains: Grains,
    pub(super) deletes: AtomicU64,
    pub(super) emptied: Emptied,
    /// `--bwlimit`, for the stores of sources and of targets.
    throttles: Option<[Arc<Throttle>; 2]>,
    totals: Mutex<Totals>,
    fatal: Mutex<Option<Fatal>>,
}

/// Executes the tasks of a queue.
pub(super) trait Tasks {
    /// Executes a task, or begins a large object, which continues in parts.
    async fn run(core: &Core<'_>, task: Task);
}

/// A large object in progress, in parts.
pub(super) trait Parts: Send + Sync {
    /// Works on the next part; then returns the permit to the queue (`Queue::again`), or ends the object
    /// (`Core::finish` and `Queue::finished`, once) if it was the last one or everything failed.
    fn part<'a>(self: Arc<Self>, core: &'a Core<'a>) -> LocalBoxFuture<'a, ()>;

    /// Counts as many more permits as may be handed out now, and returns their number.
    fn widen(&self, engine: &Engine<'_>) -> usize;
}

/// One worker's view of its core: clients that record the worker's phase, and the state shared by all workers of the
/// core.
pub(super) struct Core<'a> {
    pub(super) engine: &'a Engine<'a>,
    pub(super) source: Option<Client>,
    pub(super) target: Option<Client>,
    /// The phase of this worker.
    pub(super) doing: Rc<Doing>,
    pub(super) folders: Rc<RefCell<Folders>>,
    unreported: Rc<Unreported>,
}

/// Totals of one core's finished tasks since the last report, and their number.
type Unreported = Cell<(u32, Totals)>;

/// Maximum delay until a slow request is dropped after the run was stopped.
const STOP_SEEN_AFTER: Duration = Duration::from_millis(100);

/// Number of finished tasks that are reported together while more are pending.
const REPORT_BATCH: u32 = 32;

impl Engine<'_> {
    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        self.setup.policy
    }

    /// Hands tasks to the cores; returns `false` if the run was stopped.
    pub fn push(&self, tasks: impl IntoIterator<Item = Task>) -> bool {
        if self.setup.control.is_stopped() {
            self.queue.stop();
        }
        let tasks: Vec<Task> = tasks.into_iter().collect();
        self.setup.controls.meter.found(self.entries(&tasks));
        self.queue.push(tasks)
    }

    /// Makes the cores remove files of dead runs from the local folders that they write into: no listing does it.
    pub fn clears_targets(&self) {
        self.files.clears.store(!self.policy().dry_run, Ordering::Relaxed);
    }

    /// Waits until all tasks so far are finished, or the run is stopped. For planners' threads only.
    pub fn drain(&self) {
        // A signal stops the queue by the cores' watch.
        self.queue.drain();
    }

    /// Returns the entries that tasks add to the progress. Removals count only if there is nothing else to do.
    fn entries(&self, tasks: &[Task]) -> Entries {
        let mut sum = Entries::default();
        for Task { pair, work } in tasks {
            match work {
                Work::Move { how: How::Check(asked), .. } if !asked.contents => sum.found += 1,
                Work::Move { entry, .. } => {
                    sum.found += 1;
                    sum.bytes_ahead += entry.meta.size;
                }
                Work::Delete { entries } if pair.is_removal() => sum.found += entries.len() as u64,
                Work::Delete { .. } => {}
            }
        }
        sum
    }

    /// Returns whether no new work may be begun.
    pub fn is_stopped(&self) -> bool {
        self.setup.control.is_stopped() || self.queue.is_stopped()
    }

    /// Runs `work`, or drops it soon after the run was stopped and returns `None`. For slow operations; it costs a
    /// timer.
    pub(super) async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        unless(|| self.is_stopped(), work).await
    }

    /// Stops the run; the first reason counts.
    pub fn stop_for(&self, fatal: Fatal) {
        self.fatal.lock().get_or_insert(fatal);
        self.queue.stop();
    }

    /// Adds a planner's own counts (skipped, seen).
    pub fn add(&self, totals: &Totals) {
        *self.totals.lock() += *totals;
    }

    /// Counts entries found that need no work.
    pub fn passed(&self, entries: u64) {
        let entries = Entries { found: entries, done: entries, bytes_ahead: 0 };
        self.setup.controls.meter.found(entries);
    }

    /// Records that no more entries will be found.
    pub fn all_found(&self) {
        self.setup.controls.meter.all_found();
    }

    /// Reports a problem; the caller counts it.
    pub fn problem(&self, problem: &Problem) {
        self.setup.listener.event(hakobu_core::event::Event::Problem(problem));
    }

    /// Converts the time of a target entry to the clock of the source: the time of an upload is by the clock of its
    /// server.
    pub fn as_here(&self, mut target: Meta) -> Meta {
        if let Some(store) = &self.setup.target {
            let source_ahead_s = self.setup.source.as_ref().map_or(0, |from| from.clock_ahead_s());
            let ahead_s = store.clock_ahead_s().saturating_sub(source_ahead_s);
            target.mtime.s = target.mtime.s.saturating_sub(ahead_s);
        }
        target
    }

    /// Takes one removal from `--max-delete`; returns `false` if none is left.
    pub fn may_delete(&self) -> bool {
        let max = self.setup.policy.max_delete.unwrap_or(u64::MAX);
        let add = |taken: u64| (taken < max).then_some(taken + 1);
        self.deletes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

impl Core<'_> {
    /// Waits for room for `bytes`; see [`Budget::take`].
    pub(super) async fn room(&self, bytes: u64) -> Option<SemaphorePermit<'_>> {
        let _phase = self.doing.during(Phase::Room);
        self.engine.budget.take(bytes).await
    }

    /// Adds the counts of a task; reported in batches.
    pub(super) fn add(&self, totals: Totals) {
        let Totals { files, dirs_created, links_created, skipped, metadata, .. } = totals;
        let done = files + dirs_created + links_created + skipped + metadata;
        self.doing.lane().items(done + totals.deleted + totals.failed + totals.vanished);
        let (count, mut sum) = self.unreported.get();
        sum += totals;
        self.unreported.set((count + 1, sum));
        if count + 1 >= REPORT_BATCH {
            report(self.engine, &self.unreported);
        }
    }
}

/// Runs `work`, or drops it soon after `is_stopped` becomes true and returns `None`. Costs a timer.
pub(super) async fn unless<T>(
    is_stopped: impl Fn() -> bool,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = std::pin::pin!(work);
    loop {
        let pause = std::pin::pin!(tokio::time::sleep(STOP_SEEN_AFTER));
        match select(work.as_mut(), pause).await {
            Either::Left((done, _)) => return Some(done),
            Either::Right(_) if is_stopped() => return None,
            Either::Right(_) => {}
        }
    }
}

/// Reports the added counts.
fn report(engine: &Engine<'_>, unreported: &Unreported) {
    let (count, sum) = unreported.take();
    if count > 0 {
        engine.add(&sum);
    }
}

#[cfg(test)]
mod tests;
