//! The cores: threads with a runtime, clients and workers each, and what all of them share.

mod crew;

use super::budget::{self, Budget};
use super::get::{Files, Folders};
use super::moving::Moving;
use super::queue::Queue;
use super::{ObjectOptions, Side, Task, Work, compare, copy, delete, get, put, relay};
use crate::control::Control;
use crate::error::{Fatal, Problem};
use crate::event::Listener;
use crate::journal::Journal;
use crate::limit::{Helm, Limiter};
use crate::meter::Doing;
use crate::policy::Policy;
use crate::s3::{Client, Flow, Store, bodies_max};
use crate::unit::Totals;
use crew::Crew;
use futures_util::future::{Either, select};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// What an engine is given.
pub struct Setup<'a> {
    /// What happens to each entry.
    pub policy: &'a Policy,
    /// How objects are written.
    pub options: &'a ObjectOptions,
    /// The store of sources, if any.
    pub source: Option<Arc<Store>>,
    /// The store of targets, if any; the same one for copies inside an account.
    pub target: Option<Arc<Store>>,
    /// Who hears of what happens.
    pub listener: &'a dyn Listener,
    /// Who may end it.
    pub control: &'a Control,
    /// Whether items are told, and of unchanged entries too.
    pub items: (bool, bool),
    /// How many requests and files may be in flight at which rates, and who counts it.
    pub helm: &'a Helm,
    /// Cores to use.
    pub cores: usize,
    /// Bytes in flight.
    pub memory_bytes_max: u64,
    /// What is remembered of unfinished large objects.
    pub journal: Journal,
    /// The mask of modes for files without one of their own.
    pub umask: u32,
}

/// What all cores share.
pub struct Engine<'a> {
    pub(super) setup: Setup<'a>,
    pub(super) queue: Queue,
    pub(super) budget: Budget,
    pub(super) temp: crate::engine::temp::TempNames,
    pub(super) files: Files,
    pub(super) deletes: AtomicU64,
    pub(super) emptied: delete::Emptied,
    flows: Option<Flows>,
    totals: Mutex<Totals>,
    fatal: Mutex<Option<Fatal>>,
}

/// `--bwlimit` as the clients of all cores share it.
struct Flows {
    source: Arc<Limiter>,
    /// Of the rate of the other one, where every byte comes from a store and goes to one.
    target: Arc<Limiter>,
    bodies: Arc<Semaphore>,
    /// One for each.
    lines: [Arc<tokio::sync::Mutex<()>>; 2],
}

impl Flows {
    fn new(setup: &Setup<'_>) -> Option<Flows> {
        let limiter = setup.helm.bytes.as_ref()?;
        let target = match (&setup.source, &setup.target) {
            (Some(_), Some(_)) => Arc::new(Limiter::new(limiter.per_s())),
            _ => Arc::clone(limiter),
        };
        let bodies = Arc::new(Semaphore::new(bodies_max(limiter)));
        Some(Flows { source: Arc::clone(limiter), target, bodies, lines: Default::default() })
    }

    /// For one core and one side.
    fn of(&self, side: Side) -> Rc<Flow> {
        let [first, second] = &self.lines;
        let (limiter, follows, line) = match side {
            Side::Target if !Arc::ptr_eq(&self.source, &self.target) => {
                (&self.target, Some(&self.source), second)
            }
            _ => (&self.source, None, first),
        };
        Rc::new(Flow::new(limiter, follows, &self.bodies, line))
    }
}

/// A large object on its way, in parts.
pub enum Large {
    /// File to object.
    Put(put::Large),
    /// Object to file.
    Get(get::Large),
    /// Object to object, by the server.
    Copy(copy::Large),
    /// Object to object, through this machine.
    Relay(relay::Large),
}

/// One worker's view of its core: clients that tell what this worker does, and what all workers of
/// the core share.
pub(super) struct Core<'a> {
    pub(super) engine: &'a Engine<'a>,
    pub(super) source: Option<Client>,
    pub(super) target: Option<Client>,
    /// What this worker does.
    pub(super) doing: Rc<Doing>,
    pub(super) folders: Rc<RefCell<Folders>>,
    unsaid: Rc<Unsaid>,
}

/// What finished tasks of one core added since it was last told, and how many of them.
type Unsaid = Cell<(u32, Totals)>;

/// How long a request that takes long may go on after the run was stopped.
pub(super) const STOP_SEEN_AFTER: Duration = Duration::from_millis(100);

/// Finished tasks that are told of together while there is more to do.
const TOLD_TOGETHER: u32 = 32;

/// Runs an engine: starts the cores, lets `plan` fill the queue from this thread, and returns when
/// everything is done, with the totals and what stopped it.
///
/// # Errors
/// Code 1 where the memory that was allowed does not hold one part; code 11 where a thread or runtime
/// cannot be had.
pub fn run(
    setup: Setup<'_>,
    plan: impl FnOnce(&Engine<'_>),
) -> Result<(Totals, Option<Fatal>), Fatal> {
    budget::refuse_unfit(&setup)?;
    let engine = Engine {
        queue: Queue::default(),
        budget: Budget::new(setup.memory_bytes_max),
        temp: crate::engine::temp::TempNames::new(),
        files: Files::new(setup.policy, setup.options),
        deletes: AtomicU64::new(0),
        emptied: delete::Emptied::default(),
        flows: Flows::new(&setup),
        totals: Mutex::default(),
        fatal: Mutex::default(),
        setup,
    };
    if let Some(limiter) = &engine.setup.helm.operations {
        let stores = [&engine.setup.source, &engine.setup.target];
        stores.into_iter().flatten().for_each(|store| store.set_operations(limiter));
    }
    let jobs = engine.setup.helm.gate.jobs_max();
    let cores = engine.setup.cores.clamp(1, jobs);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let _alarm = Alarm(&engine.queue);
        for number in 0..cores {
            let engine = &engine;
            let thread = std::thread::Builder::new()
                .name(format!("core-{number}"))
                .spawn_scoped(scope, move || Crew::serve(engine, number, cores));
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    engine.stop_for(Fatal::new(11, format!("cannot start a thread: {error}")));
                }
            }
        }
        plan(&engine);
        engine.queue.close();
        // What panicked goes on panicking here, after the others have ended.
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
    let totals = *engine.totals.lock().unwrap_or_else(PoisonError::into_inner);
    let fatal = engine.fatal.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((totals, fatal))
}

/// Stops the queue when the thread that has it panics: nobody else would ever finish what that
/// thread had begun, and the others (planner or cores) would wait for it.
struct Alarm<'a>(&'a Queue);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

impl Engine<'_> {
    /// The policy.
    pub fn policy(&self) -> &Policy {
        self.setup.policy
    }

    /// Hands tasks to the cores; `false` when the run was stopped.
    pub fn push(&self, tasks: impl IntoIterator<Item = Task>) -> bool {
        if self.setup.control.is_stopped() {
            self.queue.stop();
        }
        self.queue.push(tasks)
    }

    /// Whether nothing more is to be begun.
    pub fn is_stopped(&self) -> bool {
        self.setup.control.is_stopped() || self.queue.is_stopped()
    }

    /// Does `work`, or gives it up (drops it) soon after the run was stopped: `None`. For what may
    /// take long; it costs a timer.
    pub(super) async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        loop {
            let pause = std::pin::pin!(tokio::time::sleep(STOP_SEEN_AFTER));
            match select(work.as_mut(), pause).await {
                Either::Left((done, _)) => return Some(done),
                Either::Right(_) if self.is_stopped() => return None,
                Either::Right(_) => {}
            }
        }
    }

    /// Stops the run; the first reason counts.
    pub fn stop_for(&self, fatal: Fatal) {
        self.fatal.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fatal);
        self.queue.stop();
    }

    /// Adds what a planner did by itself (skipped, seen) and tells of it.
    pub fn add(&self, totals: &Totals) {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner) += *totals;
        self.setup.listener.event(crate::event::Event::Unit(totals));
    }

    /// Tells that so many more entries are known to be ahead.
    pub fn found(&self, entries: u64) {
        if entries > 0 {
            self.setup.listener.event(crate::event::Event::Found { entries });
        }
    }

    /// Tells of a problem; the count is up to the caller.
    pub fn problem(&self, problem: &Problem) {
        self.setup.listener.event(crate::event::Event::Problem(problem));
    }

    /// Takes one removal from `--max-delete`; `false` when none is left.
    pub fn may_delete(&self) -> bool {
        let max = self.setup.policy.max_delete.unwrap_or(u64::MAX);
        let add = |taken: u64| (taken < max).then_some(taken + 1);
        self.deletes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

impl Core<'_> {
    async fn task(&self, task: Task) {
        let Task { pair, work } = task;
        match work {
            Work::Move { entry, name, existing } => {
                self.transfer(Moving::new(self.engine, pair, entry, name, existing)).await;
            }
            Work::Compare { entry, name, existing } => {
                compare::run(self, Moving::new(self.engine, pair, entry, name, Some(existing)))
                    .await;
            }
            Work::Check { entry, name, existing, asked } => {
                let moving = Moving::new(self.engine, pair, entry, name, Some(existing));
                compare::check(self, moving, &asked).await;
            }
            Work::Delete { entries } => delete::run(self, &pair, entries).await,
        }
    }

    async fn part(&self, large: Arc<Large>) {
        match &*large {
            Large::Put(put) => put::part(self, &large, put).await,
            Large::Get(get) => get::part(self, &large, get).await,
            Large::Copy(copy) => copy::part(self, &large, copy).await,
            Large::Relay(relay) => relay::part(self, &large, relay).await,
        }
    }

    /// The client of a side.
    pub(super) fn client(&self, side: Side) -> Option<&Client> {
        match side {
            Side::Source => self.source.as_ref(),
            Side::Target => self.target.as_ref(),
        }
    }

    /// Adds what a task did; told of in batches.
    pub(super) fn add(&self, totals: Totals) {
        let Totals { files, dirs_created, links_created, skipped, metadata, .. } = totals;
        let done = files + dirs_created + links_created + skipped + metadata;
        self.doing.lane().items(done + totals.deleted + totals.failed + totals.vanished);
        let (count, mut sum) = self.unsaid.get();
        sum += totals;
        self.unsaid.set((count + 1, sum));
        if count + 1 >= TOLD_TOGETHER {
            say(self.engine, &self.unsaid);
        }
    }
}

/// Tells of what was added.
fn say(engine: &Engine<'_>, unsaid: &Unsaid) {
    let (count, sum) = unsaid.take();
    if count > 0 {
        engine.add(&sum);
    }
}

#[cfg(test)]
mod tests;
