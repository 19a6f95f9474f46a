//! The cores: threads with a runtime, clients and workers each, and their shared state.

use super::delete::Emptied;
use super::download_file::FileCreation;
use super::entry::{Failed, MoveResult, Moving};
use super::folders::Folders;
use super::queue::{Next, Queue};
use super::room::TargetRoom;
use super::{
    Folded, How, ObjectOptions, Root, Side, Task, Work, compare, copy, delete, get, put, relay,
};
use crate::journal::{Journal, Ledger};
use crate::local::attributes::Grains;
use crate::manifest::Manifests;
use crate::policy::Policy;
use bytes::Bytes;
use futures_util::future::{Either, LocalBoxFuture, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use hakobu_core::buffer::AlignedBytes;
use hakobu_core::control::Control;
use hakobu_core::error::{Fatal, Operation, Problem};
use hakobu_core::event::Listener;
use hakobu_core::limit::{Controls, check_memory};
use hakobu_core::meter::{Activity, FoundEntries, Lane, Phase};
use hakobu_core::unit::{Meta, Totals};
use hakobu_s3::{AccessPoint, Client, S3Session, Throttle};
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::io;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Parts of an engine.
pub struct ObjectSetup<'a> {
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
    /// What earlier runs know about objects, and what this one learns.
    pub manifests: Arc<Manifests>,
    /// The umask, for files without a mode of their own.
    pub umask: u32,
}

/// State shared by all cores.
pub struct ObjectEngine<'a> {
    pub(crate) setup: ObjectSetup<'a>,
    pub(super) queue: Queue<dyn Parts>,
    pub(super) budget: Budget,
    pub(super) files: Arc<FileCreation>,
    pub(super) grains: Grains,
    pub(super) deletes: AtomicU64,
    pub(super) emptied: Emptied,
    /// `--bwlimit`, for the stores of sources and of targets.
    throttles: Option<[Arc<Throttle>; 2]>,
    totals: Mutex<Totals>,
    fatal: Mutex<Option<Fatal>>,
    room: TargetRoom,
}

/// A large object in progress, in parts.
pub(super) trait Parts: Send + Sync {
    /// Works on the next part; then returns the permit to the queue (`Queue::again`), or ends the object
    /// (`Core::finish` and `Queue::finished`, once) if it was the last one or everything failed.
    fn part<'a>(self: Arc<Self>, core: &'a Core<'a>) -> LocalBoxFuture<'a, ()>;

    /// Counts as many more permits as may be handed out now, and returns their number.
    fn widen(&self, engine: &ObjectEngine<'_>) -> usize;
}

/// One worker's view of its core: clients that record the worker's phase, and the state shared by all workers of the
/// core.
pub(super) struct Core<'a> {
    pub(super) engine: &'a ObjectEngine<'a>,
    pub(super) source: Option<Client>,
    pub(super) target: Option<Client>,
    /// The phase of this worker.
    pub(super) doing: Rc<Activity>,
    pub(super) folders: Rc<RefCell<Folders>>,
    unreported: Rc<Unreported>,
}

/// Totals of one core's finished tasks since the last report, and their number.
type Unreported = Cell<(u32, Totals)>;

/// Maximum delay until a slow request is dropped after the run was stopped.
const STOP_SEEN_AFTER: Duration = Duration::from_millis(100);

/// Number of finished tasks that are reported together while more are pending.
const REPORT_BATCH: u32 = 32;

impl ObjectEngine<'_> {
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
        if !self.policy().dry_run {
            self.room.count(&tasks, self.setup.listener);
        }
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
    fn entries(&self, tasks: &[Task]) -> FoundEntries {
        let mut sum = FoundEntries::default();
        for Task { pair, work } in tasks {
            match work {
                Work::Move { how: How::Check(asked), .. } if !asked.contents => sum.found += 1,
                Work::Move { entry, .. } => {
                    sum.found += 1;
                    sum.bytes_ahead += entry.meta.size;
                }
                Work::Delete { entries } | Work::DeleteUnchanged { entries }
                    if pair.is_removal() =>
                {
                    sum.found += entries.len() as u64;
                }
                Work::Delete { .. } | Work::DeleteUnchanged { .. } => {}
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
        let entries = FoundEntries { found: entries, done: entries, bytes_ahead: 0 };
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

    /// Runs the request that makes a server put the parts of an upload together.
    pub(super) async fn completing<T>(&self, request: impl Future<Output = T>) -> T {
        let counted = CompletingUpload::new(self.doing.lane());
        let result = request.await;
        drop(counted);
        result
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

/// Counts an upload as one that is being completed, until it is dropped.
pub(super) struct CompletingUpload<'a>(&'a Lane);

impl CompletingUpload<'_> {
    pub(super) fn new(lane: &Lane) -> CompletingUpload<'_> {
        lane.completing();
        CompletingUpload(lane)
    }
}

impl Drop for CompletingUpload<'_> {
    fn drop(&mut self) {
        self.0.completed();
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
fn report(engine: &ObjectEngine<'_>, unreported: &Unreported) {
    let (count, sum) = unreported.take();
    if count > 0 {
        engine.add(&sum);
    }
}

// The workers of one core: as many as the gate assigns to it, started when it opens and ended when it closes.
// Workers are numbered across cores in turn (core 0, core 1, …, core 0 …), so that even a few are spread evenly, and
// worker 0 always exists.

/// Interval of checks for a stop.
const WATCH: Duration = Duration::from_millis(20);
/// Number of rounds after which all connections have been checked once.
const LOOK_ROUNDS: u32 = 5;
/// Number of rounds after which the first core times a handshake: once per second.
const HANDSHAKE_ROUNDS: u32 = 50;
/// Threads of a core for blocking file calls, and for name lookups. Started on demand.
const BLOCKING_THREADS: (usize, usize) = (4, 32);

/// Runs an engine: starts the cores, lets `plan` fill the queue from this thread, and returns when everything is
/// done, with the totals and the error that stopped it.
///
/// # Errors
/// Code 1 if the allowed memory does not hold one part; code 11 if a thread or runtime cannot be started.
pub fn run(
    setup: ObjectSetup<'_>,
    plan: impl FnOnce(&ObjectEngine<'_>),
) -> Result<(Totals, Option<Fatal>), Fatal> {
    check_memory(Some(setup.memory_bytes_max), true, setup.options.part_bytes)?;
    let engine =
        ObjectEngine {
            queue: Queue::default(),
            budget: Budget::new(setup.memory_bytes_max),
            grains: Grains::default(),
            files: Arc::new(FileCreation::new(
                setup.policy,
                setup.options,
                setup.control,
                &setup.ledger,
                &setup.folded,
            )),
            deletes: AtomicU64::new(0),
            emptied: Emptied::default(),
            throttles: setup.controls.bytes.as_ref().map(|bytes| {
                Throttle::sides(bytes, setup.source.is_some() && setup.target.is_some())
            }),
            totals: Mutex::default(),
            fatal: Mutex::default(),
            room: TargetRoom::default(),
            setup,
        };
    if let Some(limiter) = &engine.setup.controls.operations {
        let stores = [&engine.setup.source, &engine.setup.target];
        stores.into_iter().flatten().for_each(|store| store.set_operations(limiter));
    }
    let jobs = engine.setup.controls.gate.jobs_max();
    let cores = engine.setup.cores.clamp(1, jobs);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let _alarm = Alarm(&engine.queue);
        for number in 0..cores {
            let engine = &engine;
            let thread = std::thread::Builder::new()
                .name(format!("core-{number}"))
                .spawn_scoped(scope, move || CoreRuntime::serve(engine, number, cores));
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    engine.stop_for(Fatal::new(11, format!("cannot start a thread: {error}")));
                }
            }
        }
        plan(&engine);
        engine.queue.close();
        // Propagate a panic after the other threads have ended.
        for thread in threads {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    engine.stop_for(Fatal::new(11, format!("cannot start a runtime: {error}")));
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    let totals = *engine.totals.lock();
    let fatal = engine.fatal.into_inner();
    Ok((totals, fatal))
}

/// Stops the queue when its thread panics: the work it had begun would never finish, and planner or cores would wait
/// for it.
struct Alarm<'a, L: ?Sized>(&'a Queue<L>);

impl<L: ?Sized> Drop for Alarm<'_, L> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

struct CoreRuntime<'a> {
    engine: &'a ObjectEngine<'a>,
    number: usize,
    cores: usize,
    source: Option<Client>,
    target: Option<Client>,
    folders: Rc<RefCell<Folders>>,
    unreported: Rc<Unreported>,
}

impl<'a> CoreRuntime<'a> {
    /// Works on this thread until everything is done.
    ///
    /// # Errors
    /// No runtime can be started; then the run is stopped.
    pub fn serve(engine: &'a ObjectEngine<'a>, number: usize, cores: usize) -> std::io::Result<()> {
        let _alarm = Alarm(&engine.queue);
        set_idle_bytes_max(engine.setup.memory_bytes_max);
        let threads = engine.setup.controls.gate.jobs_max() / cores;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(threads.clamp(BLOCKING_THREADS.0, BLOCKING_THREADS.1))
            .build();
        // Without this core the others might wait for ever.
        let runtime = runtime.inspect_err(|_| engine.queue.stop())?;
        let client = |store: &Option<Arc<S3Session>>, side| {
            let store = store.as_ref()?;
            Some(match &engine.throttles {
                Some(sides) => Client::throttled(store, &sides[side]),
                None => Client::new(store),
            })
        };
        let source = client(&engine.setup.source, 0);
        let target = client(&engine.setup.target, 1);
        let core_runtime = CoreRuntime {
            engine,
            number,
            cores,
            source,
            target,
            folders: Rc::default(),
            unreported: Rc::default(),
        };
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            tokio::select! {
                () = core_runtime.work() => {}
                () = core_runtime.watch() => {}
            }
        });
        report(engine, &core_runtime.unreported);
        Ok(())
    }

    /// Checks for a stop, and regularly some connections, as long as there is work.
    async fn watch(&self) {
        let lane = self.engine.setup.controls.meter.lane(self.number);
        for round in 1_u32.. {
            tokio::time::sleep(WATCH).await;
            if round % LOOK_ROUNDS == 0 {
                let clients = self.source.iter().chain(&self.target);
                clients.for_each(|client| client.sample_connections(lane));
            }
            if self.number == 0 && round % HANDSHAKE_ROUNDS == 0 {
                let lane = self.engine.setup.controls.meter.share(self.number);
                let clients = self.source.iter().chain(&self.target);
                clients.for_each(|client| client.handshake(&lane));
            }
            if self.engine.setup.control.is_stopped() {
                self.engine.queue.stop();
            }
        }
    }

    /// Returns how many of all workers belong to this core.
    fn places(&self) -> usize {
        let jobs = self.engine.setup.controls.gate.jobs();
        jobs / self.cores + usize::from(self.number < jobs % self.cores)
    }

    /// Keeps the wanted number of workers running.
    async fn work(&self) {
        let ObjectEngine { queue, setup, throttles, .. } = self.engine;
        let mut workers = FuturesUnordered::new();
        let mut at_work: Vec<bool> = Vec::new();
        let mut over = false;
        loop {
            // Subscribe first: both report everything that happens from here on.
            let (change, ending) = (setup.controls.gate.change(), queue.ending());
            for throttle in throttles.iter().flatten() {
                throttle.set_jobs(setup.controls.gate.jobs());
            }
            let places = if over || queue.is_over() { 0 } else { self.places() };
            at_work.resize(at_work.len().max(places), false);
            for (place, is_taken) in at_work.iter_mut().enumerate().take(places) {
                if !std::mem::replace(is_taken, true) {
                    workers.push(self.worker(place));
                }
            }
            if self.number == 0 {
                queue.widen(|large| large.widen(self.engine));
            }
            if workers.is_empty() && (over || queue.is_over()) {
                return;
            }
            tokio::select! {
                Some((place, ended)) = workers.next() => {
                    at_work[place] = false;
                    over |= ended;
                }
                () = change => {}
                () = ending, if workers.is_empty() => {}
            }
        }
    }

    /// Runs one worker, one task at a time, until nothing is left or it is no longer wanted. Returns its index, and
    /// whether nothing is left.
    async fn worker(&self, place: usize) -> (usize, bool) {
        let ObjectEngine { queue, setup, .. } = self.engine;
        let doing = Rc::new(Activity::new(setup.controls.meter.share(self.number), Phase::Idle));
        let client = |of: &Option<Client>| of.as_ref().map(|client| client.reporting_to(&doing));
        let core = Core {
            engine: self.engine,
            source: client(&self.source),
            target: client(&self.target),
            doing: Rc::clone(&doing),
            folders: Rc::clone(&self.folders),
            unreported: Rc::clone(&self.unreported),
        };
        loop {
            match queue.next(&doing, || place < self.places()).await {
                Next::Task(task) => {
                    doing.turn(Phase::Look);
                    core.run(task).await;
                    queue.finished();
                }
                Next::Part(large) => {
                    doing.turn(Phase::Look);
                    large.part(&core).await;
                }
                Next::Leave => return (place, false),
                Next::Over => return (place, true),
            }
        }
    }
}

// Bytes in flight: one budget for all cores, which limits memory; the buffers, which each core reuses; and the pace
// of a bandwidth limit.

/// Bytes per semaphore permit, so that budgets above 4 GiB fit.
const GRAIN_BYTES: u64 = 1024;

/// A budget of bytes shared by all cores.
pub struct Budget {
    permits: Semaphore,
    bytes_max: u64,
}

impl Budget {
    pub fn new(bytes_max: u64) -> Budget {
        let grains = (bytes_max / GRAIN_BYTES).clamp(1, Semaphore::MAX_PERMITS as u64);
        Budget { permits: Semaphore::new(grains as usize), bytes_max: grains * GRAIN_BYTES }
    }

    /// Returns the total, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Waits for `bytes` of room, or for the whole budget if more is requested. Dropping the permit returns it. Never
    /// wait for a second one while holding one.
    pub async fn take(&self, bytes: u64) -> Option<SemaphorePermit<'_>> {
        let wanted = bytes.min(self.bytes_max).div_ceil(GRAIN_BYTES).max(1);
        // The semaphore is never closed; a grain count fits by construction.
        self.permits.acquire_many(u32::try_from(wanted).unwrap_or(u32::MAX)).await.ok()
    }
}

/// Minimum size, in bytes, of a pooled buffer; the allocator keeps smaller ones itself.
const POOLED_BYTES_MIN: usize = 64 << 10;
/// Maximum bytes of unused buffers that one core keeps.
const IDLE_BYTES_MAX: usize = 64 << 20;

thread_local! {
    /// Unused buffers of this core. A buffer whose memory was touched costs nothing; a new one of 500 KB costs 125
    /// page faults, more than hashing it.
    static IDLE: RefCell<Idle> = const { RefCell::new(Idle::new()) };
}

struct Idle {
    buffers: Vec<AlignedBytes>,
    bytes: usize,
    bytes_max: usize,
}

/// Sets how many bytes of unused buffers this core keeps, if `memory_bytes` may be in flight.
pub(super) fn set_idle_bytes_max(memory_bytes: u64) {
    let bytes_max = usize::try_from(memory_bytes / 2).unwrap_or(usize::MAX).min(IDLE_BYTES_MAX);
    IDLE.with_borrow_mut(|idle| idle.bytes_max = bytes_max);
}

/// A buffer of initialised bytes; returned to the core on which it is dropped.
pub(super) struct PooledBuffer {
    bytes: AlignedBytes,
    /// The part that is in use.
    len: usize,
}

impl PooledBuffer {
    /// Returns a buffer of at least `len` bytes with arbitrary content, of which `len` are in use. Take from the
    /// budget first.
    pub fn new(len: usize) -> PooledBuffer {
        if len < POOLED_BYTES_MIN {
            return PooledBuffer { bytes: AlignedBytes::zeroed(len), len };
        }
        let found = IDLE.try_with(|idle| idle.borrow_mut().take(len)).ok().flatten();
        // The kernel provides zeroed memory of this size untouched: nothing is written here.
        let bytes = found.unwrap_or_else(|| AlignedBytes::zeroed(class(len)));
        PooledBuffer { bytes, len }
    }

    /// Uses only the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Converts it to the body of a request. The buffer is returned when the last clone is dropped.
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl Deref for PooledBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl DerefMut for PooledBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        if self.bytes.len() >= POOLED_BYTES_MIN {
            let bytes = std::mem::take(&mut self.bytes);
            // When the thread ends, its list is gone: the memory is freed.
            let _ = IDLE.try_with(|idle| idle.borrow_mut().put(bytes));
        }
    }
}

/// Rounds up to a length of pooled buffers: four steps between powers of two, so that at most a fifth of one is never
/// used (and never touched).
fn class(len: usize) -> usize {
    let power = len.next_power_of_two();
    let step = power / 8;
    len.next_multiple_of(step.max(1))
}

impl Idle {
    const fn new() -> Idle {
        Idle { buffers: Vec::new(), bytes: 0, bytes_max: IDLE_BYTES_MAX }
    }

    fn take(&mut self, len: usize) -> Option<AlignedBytes> {
        let wanted = class(len);
        // The latest one first: its memory may still be in the CPU cache.
        let at = self.buffers.iter().rposition(|buffer| buffer.len() == wanted)?;
        self.bytes -= wanted;
        Some(self.buffers.swap_remove(at))
    }

    fn put(&mut self, buffer: AlignedBytes) {
        if buffer.len() > self.bytes_max {
            return;
        }
        self.bytes += buffer.len();
        self.buffers.push(buffer);
        while self.bytes > self.bytes_max {
            // Remove the oldest: sizes that no longer occur must not stay for ever.
            self.bytes -= self.buffers.remove(0).len();
        }
    }
}

// Blocking work on helper threads.

/// Runs blocking work on a helper thread of the core.
///
/// # Errors
/// Those of the work; one of its own if it panics.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

// The engine with its tasks: dispatches each kind of work. For a move the roots of its two ends determine the method.

impl Core<'_> {
    /// Executes a task, or begins a large object, which continues in parts.
    pub(super) async fn run(&self, task: Task) {
        let Task { pair, work } = task;
        match work {
            Work::Move { entry, name, existing, how } => {
                let moving = Moving::new(self.engine, pair, entry, name, existing);
                match how {
                    How::Transfer => self.transfer(moving).await,
                    How::Compare(known) => compare::run(self, moving, &known).await,
                    How::Check(asked) => compare::check(self, moving, &asked).await,
                }
            }
            Work::Delete { entries } => delete::run(self, &pair, entries, false).await,
            Work::DeleteUnchanged { entries } => delete::run(self, &pair, entries, true).await,
        }
    }

    /// Moves an entry, or begins to.
    pub(super) async fn transfer(&self, moving: Moving) {
        if self.engine.policy().dry_run {
            let done = MoveResult { bytes: moving.entry.meta.size, ..MoveResult::default() };
            return self.finish(&moving, Ok(done)).await;
        }
        let moving = Arc::new(moving);
        if self.engine.policy().remove_source_files && may_be_itself(&moving) {
            // Two settings can name one endpoint: the written object would then be removed as the source.
            let why = "source and target have the same bucket and key, so they may be one object";
            return self
                .finish(&moving, Err(Failed::Reason(Operation::Move, Side::Target, why)))
                .await;
        }
        let step = match (&moving.pair.source, &moving.pair.target) {
            (Root::Local { .. }, Root::Store { .. }) => put::begin(self, &moving).await,
            (Root::Store { .. }, Root::Local { .. } | Root::Null) => {
                get::begin(self, &moving).await
            }
            (Root::Store { .. }, Root::Store { .. }) if self.same_account() => {
                copy::begin(self, &moving).await
            }
            (Root::Store { .. }, Root::Store { .. }) => relay::begin(self, &moving).await,
            _ => Err(Failed::Reason(Operation::Read, Side::Source, "neither end is a store")),
        };
        self.step(&moving, step).await;
    }

    fn same_account(&self) -> bool {
        let stores = (&self.engine.setup.source, &self.engine.setup.target);
        matches!(stores, (Some(a), Some(b)) if a.same_account(b))
    }
}

/// Returns whether both ends have the same key, and buckets that may be one.
fn may_be_itself(moving: &Moving) -> bool {
    match (&moving.pair.source, &moving.pair.target) {
        (Root::Store { bucket: a, .. }, Root::Store { bucket: b, .. }) => {
            // Access points and their aliases stand for a bucket that is not known here.
            let may_be_one = a == b || AccessPoint::may_name(a) || AccessPoint::may_name(b);
            may_be_one
                && moving.pair.source.key(&moving.entry.name)
                    == moving.pair.target.key(&moving.name)
        }
        _ => false,
    }
}

#[cfg(test)]
mod engine_tests;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_have_their_length() {
        let mut buffer = PooledBuffer::new(500_000);
        buffer.fill(7);
        let at = buffer.as_ptr();
        buffer.truncate(499_999);
        let body = buffer.freeze();
        assert_eq!((body.len(), body.as_ptr()), (499_999, at));
        let clone = body.clone();
        drop(body);
        let other = PooledBuffer::new(500_000);
        assert_ne!(other.as_ptr(), at, "a clone still reads it");
        drop(clone);
        let again = PooledBuffer::new(499_000);
        assert_eq!((again.len(), again.as_ptr()), (499_000, at));
    }

    #[test]
    fn small_buffers_and_empty_ones() {
        assert!(PooledBuffer::new(0).freeze().is_empty());
        let mut buffer = PooledBuffer::new(5);
        buffer.copy_from_slice(b"hello");
        buffer.truncate(4);
        assert_eq!(&buffer.freeze()[..], b"hell");
    }

    #[test]
    fn classes_hold_and_waste_little() {
        for len in [65_536, 65_537, 500_000, 8 << 20, (8 << 20) + 1, 5_000_000_000] {
            let class = class(len);
            assert!(class >= len && class <= len + len / 4 + 1, "{len} {class}");
            assert_eq!(super::class(class), class);
        }
    }

    #[test]
    fn idle_bytes_are_bounded() {
        let mut idle = Idle::new();
        for _ in 0..100 {
            idle.put(AlignedBytes::zeroed(1 << 20));
        }
        idle.put(AlignedBytes::zeroed(IDLE_BYTES_MAX + 1));
        assert_eq!(idle.bytes, IDLE_BYTES_MAX);
        assert_eq!(idle.buffers.iter().map(|buffer| buffer.len()).sum::<usize>(), IDLE_BYTES_MAX);
    }
}
