//! The workers of one core: as many as the gate assigns to it, started when it opens and ended when it closes.
//! Workers are numbered across cores in turn (core 0, core 1, …, core 0 …), so that even a few are spread evenly, and
//! worker 0 always exists.

use super::{Core, Engine, Setup, Tasks, Unreported, report};
use crate::engine::attributes::Grains;
use crate::object::budget::{Budget, set_idle_bytes_max};
use crate::object::delete::local::Emptied;
use crate::object::get::files::Files;
use crate::object::get::folders::Folders;
use crate::object::queue::{Next, Queue};
use futures_util::stream::{FuturesUnordered, StreamExt};
use hakobu_core::error::Fatal;
use hakobu_core::limit::check_memory;
use hakobu_core::meter::{Doing, Phase};
use hakobu_core::unit::Totals;
use hakobu_s3::{Client, S3Session, Throttle};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

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
pub fn run<T: Tasks>(
    setup: Setup<'_>,
    plan: impl FnOnce(&Engine<'_>),
) -> Result<(Totals, Option<Fatal>), Fatal> {
    check_memory(Some(setup.memory_bytes_max), true, setup.options.part_bytes)?;
    let engine =
        Engine {
            queue: Queue::default(),
            budget: Budget::new(setup.memory_bytes_max),
            grains: Grains::default(),
            files: Arc::new(Files::new(
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
                .spawn_scoped(scope, move || CoreRuntime::serve::<T>(engine, number, cores));
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

/// One core.
struct CoreRuntime<'a> {
    engine: &'a Engine<'a>,
    /// Its number, and the number of cores.
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
    pub fn serve<T: Tasks>(
        engine: &'a Engine<'a>,
        number: usize,
        cores: usize,
    ) -> std::io::Result<()> {
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
                () = core_runtime.work::<T>() => {}
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
    async fn work<T: Tasks>(&self) {
        let Engine { queue, setup, throttles, .. } = self.engine;
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
                    workers.push(self.worker::<T>(place));
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
    async fn worker<T: Tasks>(&self, place: usize) -> (usize, bool) {
        let Engine { queue, setup, .. } = self.engine;
        let doing = Rc::new(Doing::new(setup.controls.meter.share(self.number), Phase::Idle));
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
                    T::run(&core, task).await;
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
