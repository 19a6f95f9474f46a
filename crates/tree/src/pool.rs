//! Work-stealing pool: a worker takes its own newest unit first, then the oldest of other workers.
//!
//! No worker blocks on a queue that it drains, so there is no deadlock by design: a producer (a directory listing)
//! whose queue is full puts *itself* aside on a shared stack, and the next worker with a short queue continues it. So
//! memory is bounded by the depth of the tree and the number of workers, not by the number of entries.
//!
//! The gate sets the number of workers at any moment. Threads are started one by one while units wait. A worker that
//! the gate stops finishes its unit and waits at the gate; other workers take the units in its queue. One more thread
//! than the gate admits waits at it, so that raising the limit takes effect at once even if all admitted workers are
//! in the middle of long units.
//!
//! Units may depend on different places (file servers, disks). Then workers are assigned to places in turn, and take
//! units of another place only if their own has none left. So a slow place never blocks all workers.

use crossbeam_deque::{Injector, Steal, Stealer, Worker};
use hakobu_core::limit::Gate;
use parking_lot::{Condvar, Mutex};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::thread::{Builder, Scope};

/// Units that a worker may have queued before its producers put themselves aside.
const QUEUED_MAX: usize = 32;
/// Below this many queued units a worker continues a producer that was put aside.
const QUEUED_LOW: usize = 4;

/// The work of a pool, split into units.
pub trait Work: Sync {
    /// A piece of work.
    type Unit: Send;
    /// State of each worker, such as buffers and totals.
    type State: Send;

    /// Creates the state of worker `index`, before its first unit.
    fn start(&self, index: usize) -> Self::State;

    /// Runs one unit; new ones go to `queue`.
    fn run(&self, unit: Self::Unit, state: &mut Self::State, queue: &Queue<'_, Self::Unit>);

    /// Returns the numbers of the places that units wait for, if there are several.
    fn places(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Returns the place that a unit waits for.
    fn place(&self, unit: &Self::Unit) -> u64 {
        let _ = unit;
        0
    }

    /// Called when a running worker starts (`true`) and stops (`false`) waiting for a unit.
    fn idle(&self, state: &mut Self::State, waits: bool) {
        let _ = (state, waits);
    }
}

/// Units of a place that are in no worker's queue.
struct Common<U> {
    units: Injector<U>,
    aside: Mutex<Vec<U>>,
}

struct PoolShared<'g, U> {
    gate: &'g Gate,
    /// One entry for each place, at least one.
    common: Vec<Common<U>>,
    /// Returns the index of a unit's place.
    place: &'g (dyn Fn(&U) -> usize + Sync),
    stealers: Vec<Stealer<U>>,
    /// Units that are queued, put aside or running; the run ends at 0.
    alive: AtomicUsize,
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
    /// Number of workers started.
    started: AtomicUsize,
    /// Maximum number of workers.
    started_max: AtomicUsize,
    /// Queues of workers that are not started yet; locked while one is started.
    unstarted: Mutex<std::vec::IntoIter<Worker<U>>>,
}

/// A worker's access to the pool.
pub struct Queue<'a, U> {
    own: Worker<U>,
    index: usize,
    /// The place whose units are taken first; the worker's own queue holds only these.
    home: usize,
    /// The place of the current unit.
    here: Cell<usize>,
    shared: &'a PoolShared<'a, U>,
    /// Starts one more worker.
    recruit: &'a dyn Fn(),
}

/// The next step of a worker.
enum Next<U> {
    Unit(U),
    /// The gate excluded the worker while it slept.
    Park,
    /// All units are done.
    End,
}

impl<U> Queue<'_, U> {
    /// Adds a unit; this worker or an idle one will run it.
    pub fn push(&self, unit: U) {
        self.shared.alive.fetch_add(1, Ordering::Relaxed);
        match self.shared.place(&unit) {
            place if place == self.home => self.own.push(unit),
            place => self.shared.common[place].units.push(unit),
        }
        self.call();
    }

    /// Adds a unit that runs when this worker has no other, or an idle one comes.
    pub fn push_last(&self, unit: U) {
        self.shared.alive.fetch_add(1, Ordering::Relaxed);
        self.shared.common[self.shared.place(&unit)].units.push(unit);
        self.call();
    }

    /// Returns whether this worker has queued units of its own.
    pub fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// Returns whether a producer should continue; if not, it calls [`Queue::put_aside`] and returns.
    pub fn has_room(&self) -> bool {
        match self.here.get() {
            here if here == self.home => self.own.len() < QUEUED_MAX,
            here => self.shared.common[here].units.len() < QUEUED_MAX,
        }
    }

    /// Stores a producer until a worker runs low on units.
    pub fn put_aside(&self, unit: U) {
        self.shared.alive.fetch_add(1, Ordering::Relaxed);
        self.shared.common[self.shared.place(&unit)].aside.lock().push(unit);
        self.call();
    }

    /// Returns whether there are fewer units than admitted workers, so that dividing a large unit pays.
    pub fn lacks_units(&self) -> bool {
        self.shared.alive.load(Ordering::Relaxed) < self.shared.gate.jobs()
    }

    /// Returns whether this worker is about to park and should leave divisible work to others.
    pub fn is_shut_out(&self) -> bool {
        self.shared.shuts_out(self.index)
    }

    /// Finds a worker for a waiting unit: a sleeping one, else a new one if the limits allow.
    fn call(&self) {
        if !self.shared.notify() {
            self.recruit();
        }
    }

    fn recruit(&self) {
        if self.shared.lacks_workers() {
            (self.recruit)();
        }
    }

    fn next(&self) -> Option<U> {
        if self.own.len() < QUEUED_LOW
            && let Some(unit) = self.shared.common[self.home].aside.lock().pop()
        {
            return Some(unit);
        }
        if let Some(unit) = self.own.pop().or_else(|| self.steal(self.home)) {
            return Some(unit);
        }
        let places = self.shared.common.len();
        (1..places).map(|step| (self.home + step) % places).find_map(|place| {
            self.steal(place).or_else(|| self.shared.common[place].aside.lock().pop())
        })
    }

    /// Takes a unit of a place from the common queue or from a worker assigned to that place.
    fn steal(&self, place: usize) -> Option<U> {
        let shared = self.shared;
        let places = shared.common.len();
        loop {
            let mut contended = false;
            let count = shared.started.load(Ordering::Relaxed).max(1);
            let others = (1..count).map(|step| (self.index + step) % count);
            let others = others.filter(|other| other % places == place);
            let others = others.filter_map(|other| shared.stealers.get(other));
            let common = std::iter::once(shared.common[place].units.steal());
            for attempt in common.chain(others.map(Stealer::steal)) {
                match attempt {
                    Steal::Success(unit) => return Some(unit),
                    Steal::Retry => contended = true,
                    Steal::Empty => {}
                }
            }
            if !contended {
                return None;
            }
        }
    }

    /// Waits for a unit; calls `idle` before and after sleeping.
    fn wait(&self, mut idle: impl FnMut(bool)) -> Next<U> {
        let shared = self.shared;
        for _ in 0..64 {
            if let Some(unit) = self.next() {
                return Next::Unit(unit);
            }
            if shared.is_done() {
                return Next::End;
            }
            std::hint::spin_loop();
        }
        idle(true);
        let next = self.sleep();
        idle(false);
        next
    }

    fn sleep(&self) -> Next<U> {
        let shared = self.shared;
        let mut guard = shared.sleep.lock();
        loop {
            // The order matters: announce, check once more, sleep. `notify` adds a unit first and looks for sleepers
            // second, so one of the two sees the other.
            shared.sleepers.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let next = match self.next() {
                Some(unit) => Some(Next::Unit(unit)),
                None => shared.is_done().then_some(Next::End),
            };
            if next.is_none() {
                shared.wake.wait(&mut guard);
            }
            shared.sleepers.fetch_sub(1, Ordering::SeqCst);
            if let Some(next) = next {
                return next;
            }
            if shared.shuts_out(self.index) {
                return Next::Park;
            }
        }
    }
}

impl<U> PoolShared<'_, U> {
    /// Returns the index of a unit's place.
    fn place(&self, unit: &U) -> usize {
        if self.common.len() == 1 { 0 } else { (self.place)(unit) }
    }

    fn is_done(&self) -> bool {
        self.alive.load(Ordering::Acquire) == 0
    }

    fn shuts_out(&self, index: usize) -> bool {
        index >= self.gate.jobs()
    }

    /// Wakes a sleeping worker; returns `false` if there is none.
    fn notify(&self) -> bool {
        fence(Ordering::SeqCst);
        let any = self.sleepers.load(Ordering::SeqCst) > 0;
        if any {
            let _guard = self.sleep.lock();
            self.wake.notify_one();
        }
        any
    }

    /// Returns whether another worker would have work, or should wait at the gate.
    fn lacks_workers(&self) -> bool {
        let started = self.started.load(Ordering::Relaxed);
        started < self.started_max.load(Ordering::Relaxed)
            && started <= self.gate.jobs()
            && self.sleepers.load(Ordering::Relaxed) == 0
            && self.alive.load(Ordering::Relaxed) > started
    }

    fn finish_one(&self) {
        if self.alive.fetch_sub(1, Ordering::AcqRel) == 1 {
            drop(self.sleep.lock());
            self.wake.notify_all();
            self.gate.wake();
        }
    }
}

/// Arguments of a worker thread.
struct Crew<'scope, 'env, W: Work> {
    scope: &'scope Scope<'scope, 'env>,
    work: &'env W,
    shared: &'env PoolShared<'env, W::Unit>,
    states: &'env Mutex<Vec<W::State>>,
    thread: fn() -> Builder,
}

impl<W: Work> Clone for Crew<'_, '_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W: Work> Copy for Crew<'_, '_, W> {}

impl<W: Work> Crew<'_, '_, W> {
    /// Runs worker `index` until all units are done.
    fn serve(self, index: usize, own: Worker<W::Unit>) {
        let Crew { work, shared, .. } = self;
        let home = index % shared.common.len();
        let recruit = &|| self.recruit();
        let queue = Queue { own, index, home, here: Cell::new(home), shared, recruit };
        let mut state = None;
        loop {
            if shared.shuts_out(index) {
                shared.gate.wait_for_turn(index, || shared.is_done());
                if shared.is_done() {
                    break;
                }
            }
            // Created late: a worker that never gets a unit needs no buffers.
            let state = state.get_or_insert_with(|| work.start(index));
            match queue.wait(|waits| work.idle(state, waits)) {
                Next::Unit(unit) => {
                    queue.recruit();
                    queue.here.set(shared.place(&unit));
                    work.run(unit, state, &queue);
                    shared.finish_one();
                }
                // The wake-up was meant for an admitted worker: pass it on.
                Next::Park => drop(shared.notify()),
                Next::End => break,
            }
        }
        self.states.lock().extend(state);
    }

    /// Starts one more worker.
    fn recruit(&self) {
        let shared = self.shared;
        let mut unstarted = shared.unstarted.lock();
        // Another worker may have started one meanwhile.
        if !shared.lacks_workers() {
            return;
        }
        let Some(own) = unstarted.next() else { return };
        let index = shared.started.fetch_add(1, Ordering::Relaxed);
        let crew = *self;
        let spawned = (self.thread)().spawn_scoped(self.scope, move || crew.serve(index, own));
        if spawned.is_err() {
            // The system allows no more threads: continue with those that exist.
            shared.started_max.store(index, Ordering::Relaxed);
            shared.started.store(index, Ordering::Relaxed);
        }
    }
}

/// Runs the roots and all units that they produce, on the calling thread and on others as `gate` and the number of
/// units allow. Returns when all units are done, with the states of the workers that ran any.
pub fn run<W: Work>(
    work: &W,
    gate: &Gate,
    roots: impl IntoIterator<Item = W::Unit>,
) -> Vec<W::State> {
    run_on(Builder::new, work, gate, roots)
}

/// As [`run`], on threads created by `thread`.
fn run_on<W: Work>(
    thread: fn() -> Builder,
    work: &W,
    gate: &Gate,
    roots: impl IntoIterator<Item = W::Unit>,
) -> Vec<W::State> {
    let owns: Vec<_> = (0..gate.jobs_max()).map(|_| Worker::new_lifo()).collect();
    let stealers = owns.iter().map(Worker::stealer).collect();
    let mut unstarted = owns.into_iter();
    let Some(first) = unstarted.next() else { return Vec::new() };
    let places = work.places();
    let common = || Common { units: Injector::new(), aside: Mutex::default() };
    let place = |unit: &W::Unit| {
        let place = work.place(unit);
        places.iter().position(|known| *known == place).unwrap_or(0)
    };
    let shared = PoolShared {
        gate,
        common: (0..places.len().max(1)).map(|_| common()).collect(),
        place: &place,
        stealers,
        alive: AtomicUsize::new(0),
        sleepers: AtomicUsize::new(0),
        sleep: Mutex::default(),
        wake: Condvar::new(),
        started: AtomicUsize::new(1),
        started_max: AtomicUsize::new(gate.jobs_max()),
        unstarted: Mutex::new(unstarted),
    };
    for unit in roots {
        shared.alive.fetch_add(1, Ordering::Relaxed);
        shared.common[shared.place(&unit)].units.push(unit);
    }
    let states = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        Crew { scope, work, shared: &shared, states: &states, thread }.serve(0, first);
    });
    states.into_inner()
}

#[cfg(test)]
mod tests;
