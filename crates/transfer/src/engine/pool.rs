//! Workers that produce and consume units: own work newest first, others' work oldest first.
//!
//! Nobody ever blocks on a queue that it drains, so there is no deadlock by design: a producer (a
//! directory listing) that has filled its queue puts *itself* aside on a shared stack, and whoever
//! runs low next takes it up again. That bounds the memory by the depth of the tree and the number
//! of workers, never by the number of entries.
//!
//! How many workers there are is the gate's to say, at any moment. Threads are started one by one
//! while units wait that nobody takes. A worker that the gate shuts out finishes its unit and waits
//! at the gate; the units in its queue are taken by the others. One thread more than the gate lets
//! through stands waiting at it, so that opening it works at once, even where all who are inside
//! are in the middle of long units.

use crate::limit::Gate;
use crossbeam_deque::{Injector, Steal, Stealer, Worker};
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};

/// Units that a worker may have queued before its producers are put aside.
const QUEUED_MAX: usize = 32;
/// Below this many queued units a worker takes up a producer that was put aside.
const QUEUED_LOW: usize = 4;

/// Locks without regard to poisoning: a panic of another worker ends the program anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the workers do.
pub trait Work: Sync {
    /// A piece of work.
    type Unit: Send;
    /// What each worker owns: buffers, totals.
    type State: Send;

    /// Makes the state of worker `index`, before its first unit.
    fn start(&self, index: usize) -> Self::State;

    /// Runs one unit; new ones go to `queue`.
    fn run(&self, unit: Self::Unit, state: &mut Self::State, queue: &Queue<'_, Self::Unit>);

    /// A worker that may work begins to wait for a unit, or has waited.
    fn idle(&self, state: &mut Self::State, waits: bool) {
        let _ = (state, waits);
    }
}

struct Shared<'g, U> {
    gate: &'g Gate,
    seeds: Injector<U>,
    aside: Mutex<Vec<U>>,
    stealers: Vec<Stealer<U>>,
    /// Units that are queued, put aside or running; at 0 all is done.
    alive: AtomicUsize,
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
    /// Workers that there are.
    started: AtomicUsize,
    /// Workers that there may ever be.
    started_max: AtomicUsize,
    /// Queues of workers that are not started. Held while one is.
    unstarted: Mutex<std::vec::IntoIter<Worker<U>>>,
}

/// Who can start one more worker.
trait Recruit {
    fn recruit(&self);
}

/// A worker's end of the pool.
pub struct Queue<'a, U> {
    own: Worker<U>,
    index: usize,
    shared: &'a Shared<'a, U>,
    crew: &'a dyn Recruit,
}

/// What a worker does next.
enum Next<U> {
    Unit(U),
    /// The gate shut it out while it slept.
    Park,
    /// All units are done.
    End,
}

impl<U> Queue<'_, U> {
    /// Adds a unit; this worker or an idle one will run it.
    pub fn push(&self, unit: U) {
        self.shared.alive.fetch_add(1, Ordering::Relaxed);
        self.own.push(unit);
        self.call();
    }

    /// Whether a producer should go on; if not, it calls [`Queue::put_aside`] and returns.
    pub fn has_room(&self) -> bool {
        self.own.len() < QUEUED_MAX
    }

    /// Keeps a producer for later, when somebody runs low.
    pub fn put_aside(&self, unit: U) {
        self.shared.alive.fetch_add(1, Ordering::Relaxed);
        lock(&self.shared.aside).push(unit);
        self.call();
    }

    /// Whether this worker is to park: what it does not have to finish itself others should get.
    pub fn is_shut_out(&self) -> bool {
        self.shared.shuts_out(self.index)
    }

    /// Gets somebody for a unit that waits: who sleeps, else a new worker if there may be one.
    fn call(&self) {
        if !self.shared.notify() {
            self.recruit();
        }
    }

    fn recruit(&self) {
        if self.shared.lacks_workers() {
            self.crew.recruit();
        }
    }

    fn next(&self) -> Option<U> {
        if self.own.len() < QUEUED_LOW
            && let Some(unit) = lock(&self.shared.aside).pop()
        {
            return Some(unit);
        }
        self.own.pop().or_else(|| self.steal())
    }

    fn steal(&self) -> Option<U> {
        let shared = self.shared;
        loop {
            let mut contended = false;
            let count = shared.started.load(Ordering::Relaxed).max(1);
            let others =
                (1..count).filter_map(|step| shared.stealers.get((self.index + step) % count));
            for attempt in std::iter::once(shared.seeds.steal()).chain(others.map(Stealer::steal)) {
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

    /// Waits for a unit, telling `idle` before and after it sleeps.
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
        let mut guard = lock(&shared.sleep);
        loop {
            // The order matters: announce, then look once more, then sleep. `notify` adds a unit
            // first and looks for sleepers second, so one of the two sees the other.
            shared.sleepers.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let next = match self.next() {
                Some(unit) => Some(Next::Unit(unit)),
                None => shared.is_done().then_some(Next::End),
            };
            if next.is_none() {
                guard = shared.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
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

impl<U> Shared<'_, U> {
    fn is_done(&self) -> bool {
        self.alive.load(Ordering::Acquire) == 0
    }

    fn shuts_out(&self, index: usize) -> bool {
        index >= self.gate.jobs()
    }

    /// Wakes a sleeper; `false` where nobody sleeps.
    fn notify(&self) -> bool {
        fence(Ordering::SeqCst);
        let any = self.sleepers.load(Ordering::SeqCst) > 0;
        if any {
            let _guard = lock(&self.sleep);
            self.wake.notify_one();
        }
        any
    }

    /// Whether one more worker would have work, or would stand ready at the gate.
    fn lacks_workers(&self) -> bool {
        let started = self.started.load(Ordering::Relaxed);
        started < self.started_max.load(Ordering::Relaxed)
            && started <= self.gate.jobs()
            && self.sleepers.load(Ordering::Relaxed) == 0
            && self.alive.load(Ordering::Relaxed) > started
    }

    fn finish_one(&self) {
        if self.alive.fetch_sub(1, Ordering::AcqRel) == 1 {
            drop(lock(&self.sleep));
            self.wake.notify_all();
            self.gate.wake();
        }
    }
}

/// What a thread needs to be a worker.
struct Crew<'scope, 'env, W: Work> {
    scope: &'scope Scope<'scope, 'env>,
    work: &'env W,
    shared: &'env Shared<'env, W::Unit>,
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
    /// Works as worker `index` until all is done.
    fn serve(self, index: usize, own: Worker<W::Unit>) {
        let Crew { work, shared, .. } = self;
        let queue = Queue { own, index, shared, crew: &self };
        let mut state = None;
        loop {
            if shared.shuts_out(index) {
                shared.gate.wait_for_turn(index, || shared.is_done());
                if shared.is_done() {
                    break;
                }
            }
            // Not before: who never gets a turn needs no buffers.
            let state = state.get_or_insert_with(|| work.start(index));
            match queue.wait(|waits| work.idle(state, waits)) {
                Next::Unit(unit) => {
                    queue.recruit();
                    work.run(unit, state, &queue);
                    shared.finish_one();
                }
                // The call was meant for somebody who may work.
                Next::Park => drop(shared.notify()),
                Next::End => break,
            }
        }
        lock(self.states).extend(state);
    }
}

impl<W: Work> Recruit for Crew<'_, '_, W> {
    fn recruit(&self) {
        let shared = self.shared;
        let mut unstarted = lock(&shared.unstarted);
        // Somebody else may have done it meanwhile.
        if !shared.lacks_workers() {
            return;
        }
        let Some(own) = unstarted.next() else { return };
        let index = shared.started.fetch_add(1, Ordering::Relaxed);
        let crew = *self;
        let spawned = (self.thread)().spawn_scoped(self.scope, move || crew.serve(index, own));
        if spawned.is_err() {
            // The system has no thread left: those that there are do the work.
            shared.started_max.store(index, Ordering::Relaxed);
            shared.started.store(index, Ordering::Relaxed);
        }
    }
}

/// Runs the seeds and everything that comes of them, on the calling thread and as many others as
/// `gate` lets work and there is work for; returns when all is done, with the states of the
/// workers that had a turn.
pub fn run<W: Work>(
    work: &W,
    gate: &Gate,
    seeds: impl IntoIterator<Item = W::Unit>,
) -> Vec<W::State> {
    run_on(Builder::new, work, gate, seeds)
}

/// The same on threads made by `thread`.
fn run_on<W: Work>(
    thread: fn() -> Builder,
    work: &W,
    gate: &Gate,
    seeds: impl IntoIterator<Item = W::Unit>,
) -> Vec<W::State> {
    let owns: Vec<_> = (0..gate.jobs_max()).map(|_| Worker::new_lifo()).collect();
    let stealers = owns.iter().map(Worker::stealer).collect();
    let mut unstarted = owns.into_iter();
    let Some(first) = unstarted.next() else { return Vec::new() };
    let shared = Shared {
        gate,
        seeds: Injector::new(),
        aside: Mutex::default(),
        stealers,
        alive: AtomicUsize::new(0),
        sleepers: AtomicUsize::new(0),
        sleep: Mutex::default(),
        wake: Condvar::new(),
        started: AtomicUsize::new(1),
        started_max: AtomicUsize::new(gate.jobs_max()),
        unstarted: Mutex::new(unstarted),
    };
    for unit in seeds {
        shared.alive.fetch_add(1, Ordering::Relaxed);
        shared.seeds.push(unit);
    }
    let states = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        Crew { scope, work, shared: &shared, states: &states, thread }.serve(0, first);
    });
    states.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
