//! Workers that produce and consume units: own work newest first, others' work oldest first.
//!
//! Nobody ever blocks on a queue that it drains, so there is no deadlock by design: a producer (a
//! directory listing) that has filled its queue puts *itself* aside on a shared stack, and whoever
//! runs low next takes it up again. That bounds the memory by the depth of the tree and the number
//! of workers, never by the number of entries.

use crossbeam_deque::{Injector, Steal, Stealer, Worker};
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

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
    type State;

    /// Makes the state of worker `index`.
    fn start(&self, index: usize) -> Self::State;

    /// Runs one unit; new ones go to `queue`.
    fn run(&self, unit: Self::Unit, state: &mut Self::State, queue: &Queue<'_, Self::Unit>);
}

struct Shared<U> {
    seeds: Injector<U>,
    aside: Mutex<Vec<U>>,
    stealers: Vec<Stealer<U>>,
    /// Units that are queued, put aside or running; at 0 all is done.
    alive: AtomicUsize,
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
}

/// A worker's end of the pool.
pub struct Queue<'a, U> {
    own: Worker<U>,
    index: usize,
    shared: &'a Shared<U>,
}

impl<U> Queue<'_, U> {
    /// Adds a unit; this worker or an idle one will run it.
    pub fn push(&self, unit: U) {
        self.shared.alive.fetch_add(1, Ordering::Relaxed);
        self.own.push(unit);
        self.shared.notify();
    }

    /// Whether a producer should go on; if not, it calls [`Queue::put_aside`] and returns.
    pub fn has_room(&self) -> bool {
        self.own.len() < QUEUED_MAX
    }

    /// Keeps a producer for later, when somebody runs low.
    pub fn put_aside(&self, unit: U) {
        self.shared.alive.fetch_add(1, Ordering::Relaxed);
        lock(&self.shared.aside).push(unit);
        self.shared.notify();
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
            let count = shared.stealers.len();
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

    /// Waits for a unit; `None` when all units are done.
    fn wait(&self) -> Option<U> {
        let shared = self.shared;
        for _ in 0..64 {
            if let Some(unit) = self.next() {
                return Some(unit);
            }
            if shared.alive.load(Ordering::Acquire) == 0 {
                return None;
            }
            std::hint::spin_loop();
        }
        let mut guard = lock(&shared.sleep);
        loop {
            // The order matters: announce, then look once more, then sleep. `notify` adds a unit
            // first and looks for sleepers second, so one of the two sees the other.
            shared.sleepers.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let found = self.next();
            let done = found.is_none() && shared.alive.load(Ordering::Acquire) == 0;
            if found.is_none() && !done {
                guard = shared.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
            shared.sleepers.fetch_sub(1, Ordering::SeqCst);
            if found.is_some() || done {
                return found;
            }
        }
    }
}

impl<U> Shared<U> {
    fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            let _guard = lock(&self.sleep);
            self.wake.notify_one();
        }
    }

    fn finish_one(&self) {
        if self.alive.fetch_sub(1, Ordering::AcqRel) == 1 {
            let _guard = lock(&self.sleep);
            self.wake.notify_all();
        }
    }
}

/// Runs the seeds and everything that comes of them on `jobs` threads; returns when all is done,
/// with the states of the workers.
pub fn run<W: Work>(
    work: &W,
    jobs: usize,
    seeds: impl IntoIterator<Item = W::Unit>,
) -> Vec<W::State>
where
    W::State: Send,
{
    let owns: Vec<_> = (0..jobs.max(1)).map(|_| Worker::new_lifo()).collect();
    let shared = Shared {
        seeds: Injector::new(),
        aside: Mutex::default(),
        stealers: owns.iter().map(Worker::stealer).collect(),
        alive: AtomicUsize::new(0),
        sleepers: AtomicUsize::new(0),
        sleep: Mutex::default(),
        wake: Condvar::new(),
    };
    for unit in seeds {
        shared.alive.fetch_add(1, Ordering::Relaxed);
        shared.seeds.push(unit);
    }
    let shared = &shared;
    let one = |index: usize, own: Worker<W::Unit>| {
        let queue = Queue { own, index, shared };
        let mut state = work.start(index);
        while let Some(unit) = queue.wait() {
            work.run(unit, &mut state, &queue);
            shared.finish_one();
        }
        state
    };
    let mut owns = owns.into_iter().enumerate();
    let Some((_, first)) = owns.next() else { return Vec::new() };
    std::thread::scope(|scope| {
        let others: Vec<_> =
            owns.map(|(index, own)| scope.spawn(move || one(index, own))).collect();
        let mut states = vec![one(0, first)];
        for other in others {
            match other.join() {
                Ok(state) => states.push(state),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        states
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// A tree of numbers: unit n makes n units of n - 1, by way of producers that are put aside.
    struct Tree {
        leaves: AtomicU64,
        queued_max: AtomicUsize,
    }

    enum Unit {
        Produce { depth: u32, left: u64 },
        Leaf,
    }

    impl Work for Tree {
        type Unit = Unit;
        type State = u64;

        fn start(&self, _: usize) -> u64 {
            0
        }

        fn run(&self, unit: Unit, ran: &mut u64, queue: &Queue<'_, Unit>) {
            *ran += 1;
            match unit {
                Unit::Leaf => {
                    self.leaves.fetch_add(1, Ordering::Relaxed);
                }
                Unit::Produce { depth, mut left } => {
                    while left > 0 {
                        if !queue.has_room() {
                            queue.put_aside(Unit::Produce { depth, left });
                            return;
                        }
                        left -= 1;
                        queue.push(match depth {
                            0 => Unit::Leaf,
                            _ => Unit::Produce { depth: depth - 1, left: 20 },
                        });
                        self.queued_max.fetch_max(queue.own.len(), Ordering::Relaxed);
                    }
                }
            }
        }
    }

    #[test]
    fn every_unit_runs_once_and_queues_stay_bounded() {
        for jobs in [1, 2, 7] {
            let tree = Tree { leaves: AtomicU64::new(0), queued_max: AtomicUsize::new(0) };
            let states = run(&tree, jobs, [Unit::Produce { depth: 3, left: 20 }]);
            assert_eq!(tree.leaves.into_inner(), 20 * 20 * 20 * 20);
            assert_eq!(states.len(), jobs);
            assert!(tree.queued_max.into_inner() <= QUEUED_MAX);
        }
    }

    #[test]
    fn nothing_to_do_ends_at_once() {
        let tree = Tree { leaves: AtomicU64::new(0), queued_max: AtomicUsize::new(0) };
        assert_eq!(run(&tree, 3, []), [0, 0, 0]);
    }
}
