//! The queue between planners and cores: bounded for tasks, with parts of large objects in front. Planners block when
//! it is full; cores wait as futures and never block.

use super::Task;
use super::entry::Failed;
use super::runtime::{Core, ObjectEngine, Parts};
use futures_util::future::LocalBoxFuture;
use hakobu_core::meter::{Activity, Phase};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// Maximum number of waiting tasks.
const TASKS_MAX: usize = 4096;
/// Number of tasks from which a random one is picked if requested: not many more folders than are kept open.
const SPREAD: usize = 1024;

/// Interval of looks while everything is to be finished.
const LOOK: Duration = Duration::from_millis(50);

/// The next step of a worker.
#[expect(
    clippy::large_enum_variant,
    reason = "a worker holds one; a box would be an allocation for each task"
)]
pub enum Next<L: ?Sized> {
    /// Execute this task, which must be [`Queue::finished`].
    Task(Task),
    /// Work on the next part of a large object: this is a permit for it.
    Part(Arc<L>),
    /// End: there are more workers than wanted.
    Leave,
    /// End: everything is done, or the run was stopped and no large object waits to be ended. (A worker's own permit
    /// comes back to that worker.)
    Over,
}

struct State<L: ?Sized> {
    tasks: VecDeque<Task>,
    parts: VecDeque<Arc<L>>,
    /// Large objects in progress, and some that are gone.
    larges: Vec<Weak<L>>,
    /// No more tasks will come.
    closed: bool,
    /// No task is handed out any more.
    stopped: bool,
    /// Number of unfinished tasks and large objects, which may still add parts.
    open: usize,
    random: u64,
}

/// Queue of tasks and parts; see the module. `L` is a large object.
pub struct Queue<L: ?Sized> {
    state: Mutex<State<L>>,
    /// Tasks are taken in random order.
    spreads: AtomicBool,
    room: Condvar,
    /// Everything that was added is finished.
    idle: Condvar,
    work: Notify,
    over: Notify,
}

impl<L: ?Sized> Default for Queue<L> {
    fn default() -> Queue<L> {
        let state = State {
            tasks: VecDeque::new(),
            parts: VecDeque::new(),
            larges: Vec::new(),
            closed: false,
            stopped: false,
            open: 0,
            random: 0,
        };
        Queue {
            state: Mutex::new(state),
            spreads: AtomicBool::new(false),
            room: Condvar::new(),
            idle: Condvar::new(),
            work: Notify::new(),
            over: Notify::new(),
        }
    }
}

impl<L: ?Sized> Queue<L> {
    /// Adds tasks, waiting for room; returns `false` if the run was stopped. For planners' threads only.
    pub fn push(&self, tasks: impl IntoIterator<Item = Task>) -> bool {
        let mut state = self.state();
        while state.tasks.len() >= TASKS_MAX && !state.stopped {
            self.room.wait(&mut state);
        }
        if state.stopped {
            return false;
        }
        let before = state.tasks.len();
        state.tasks.extend(tasks);
        let added = state.tasks.len() - before;
        drop(state);
        for _ in 0..added {
            self.work.notify_one();
        }
        true
    }

    /// Waits until everything that was added is finished, or the run is stopped. For planners' threads only.
    pub fn drain(&self) {
        let mut state = self.state();
        while !state.stopped && (state.open > 0 || !state.tasks.is_empty()) {
            // A look now and then costs nothing, and no wakeup can be missed.
            self.idle.wait_for(&mut state, LOOK);
        }
    }

    /// Hands out tasks in random order from now on: a slow file system creates the entries of one folder one after
    /// the other, and tasks come folder by folder.
    pub fn spread(&self) {
        self.spreads.store(true, Ordering::Relaxed);
    }

    /// Records that no more tasks will come.
    pub fn close(&self) {
        self.state().closed = true;
        self.work.notify_waiters();
        self.over.notify_waiters();
    }

    /// Stops: no task is begun any more; work in flight ends, and large objects are given up.
    pub fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        state.tasks.clear();
        drop(state);
        self.room.notify_all();
        self.idle.notify_all();
        self.work.notify_waiters();
        self.over.notify_waiters();
    }

    /// Returns whether [`Queue::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Opens a large object, with `streams` permits.
    pub fn open(&self, large: &Arc<L>, streams: usize) {
        let mut state = self.state();
        state.open += 1;
        state.parts.extend(std::iter::repeat_n(large, streams).cloned());
        state.larges.retain(|large| large.strong_count() > 0);
        state.larges.push(Arc::downgrade(large));
        drop(state);
        for _ in 0..streams {
            self.work.notify_one();
        }
    }

    /// Hands out more permits to large objects in progress: as many as `more` returns for each, having counted them
    /// there. Does nothing while the run is being stopped: they might never be taken.
    pub fn widen(&self, more: impl Fn(&L) -> usize) {
        let mut state = self.state();
        if state.stopped || state.larges.is_empty() {
            return;
        }
        let State { parts, larges, .. } = &mut *state;
        let before = parts.len();
        larges.retain(|large| {
            let Some(large) = large.upgrade() else { return false };
            // `more` counts a permit before it can be taken: the lock is held.
            let count = more(&large);
            parts.extend(std::iter::repeat_n(&large, count).cloned());
            true
        });
        let added = parts.len() - before;
        drop(state);
        for _ in 0..added {
            self.work.notify_one();
        }
    }

    /// Returns a permit to work on a large object, for its next part.
    pub fn again(&self, large: Arc<L>) {
        self.state().parts.push_back(large);
        self.work.notify_one();
    }

    /// Records that a task or a large object is finished, with any result.
    pub fn finished(&self) {
        let mut state = self.state();
        state.open -= 1;
        let (over, idle) = (state.is_over(), state.open == 0);
        drop(state);
        if idle {
            self.idle.notify_all();
        }
        if over {
            self.work.notify_waiters();
            self.over.notify_waiters();
        }
    }

    /// Resolves when something ended after this call: then check [`Queue::is_over`].
    pub fn ending(&self) -> impl Future<Output = ()> + '_ {
        self.over.notified()
    }

    /// Returns whether nothing is left to take and nothing more will come.
    pub fn is_over(&self) -> bool {
        let state = self.state();
        state.is_over() && state.parts.is_empty()
    }

    /// Returns the next item for a worker; `is_wanted` returns whether the worker should continue to exist.
    pub async fn next(&self, doing: &Activity, is_wanted: impl Fn() -> bool) -> Next<L> {
        loop {
            let waiting = self.work.notified();
            tokio::pin!(waiting);
            // From here on no notification is lost.
            waiting.as_mut().enable();
            match self.take(&is_wanted) {
                Some(Next::Leave) => {
                    // Pass on the notification, which is for another worker.
                    self.work.notify_one();
                    return Next::Leave;
                }
                Some(next) => return next,
                None => {}
            }
            doing.turn(Phase::Idle);
            waiting.await;
        }
    }

    /// Returns `None` if there is nothing now.
    fn take(&self, is_wanted: &impl Fn() -> bool) -> Option<Next<L>> {
        let mut state = self.state();
        // While the run is being stopped all workers stay until the end: a permit that this worker returned may be
        // the last item, and the others may be gone.
        if !state.stopped && !is_wanted() {
            return Some(Next::Leave);
        }
        if let Some(large) = state.parts.pop_front() {
            return Some(Next::Part(large));
        }
        if state.stopped {
            return Some(Next::Over);
        }
        let at = if self.spreads.load(Ordering::Relaxed) { state.pick() } else { 0 };
        if let Some(task) = state.tasks.swap_remove_front(at) {
            state.open += 1;
            // Half empty: wake planners, so that they add many tasks at once.
            if state.tasks.len() == TASKS_MAX / 2 {
                self.room.notify_all();
            }
            return Some(Next::Task(task));
        }
        state.is_over().then_some(Next::Over)
    }

    fn state(&self) -> MutexGuard<'_, State<L>> {
        self.state.lock()
    }
}

impl<L: ?Sized> State<L> {
    /// Returns the index of a task to take.
    fn pick(&mut self) -> usize {
        // Knuth's linear congruential generator (MMIX): its upper bits are random enough here.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % self.tasks.len().clamp(1, SPREAD)
    }

    fn is_over(&self) -> bool {
        self.stopped
            || (self.closed && self.open == 0 && self.tasks.is_empty() && self.parts.is_empty())
    }
}

// Parts of one large object, and permits to work on them: any core takes the next part. The number of permits follows
// the tuner at any time. The worker that releases the last one ends the object, so that nothing of it is in flight
// then.

/// A large object in progress.
pub(super) trait Large: Send + Sync {
    fn permits(&self) -> &Permits;

    /// Returns how many of its parts may be in flight now.
    fn streams_max(&self, engine: &ObjectEngine<'_>) -> usize;

    /// Moves one part.
    ///
    /// # Errors
    /// No further part is begun.
    async fn move_part(&self, core: &Core<'_>, number: u32) -> Result<(), Failed>;

    /// Completes the object or gives it up, and ends it (`Core::finish` and `Queue::finished`, once).
    async fn end(self: Arc<Self>, core: &Core<'_>);
}

impl<T: Large + 'static> Parts for T {
    fn part<'a>(self: Arc<Self>, core: &'a Core<'a>) -> LocalBoxFuture<'a, ()> {
        Box::pin(async move {
            let permits = self.permits();
            if core.engine.is_stopped() {
                permits.fail(Failed::Stopped);
            }
            if let Some(number) = permits.next()
                && let Err(failed) = self.move_part(core, number).await
            {
                permits.fail(failed);
            }
            match permits.turn(self.streams_max(core.engine)) {
                Turn::Again => core.engine.queue.again(self),
                Turn::Leave => {}
                Turn::End => self.end(core).await,
            }
        })
    }

    fn widen(&self, engine: &ObjectEngine<'_>) -> usize {
        self.permits().more(self.streams_max(engine))
    }
}

/// Permits to work on one large object, and its parts that were not begun.
pub(super) struct Permits(Mutex<PermitState>);

struct PermitState {
    /// Numbers of parts not begun yet, the next one last.
    waiting: Vec<u32>,
    /// Number of permits that were not released.
    permits: usize,
    /// The first failure: no further part is begun.
    failed: Option<Failed>,
}

/// Next step of a permit's holder after a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Return the permit to the queue, for the next part.
    Again,
    /// Release it: nothing more is to be begun, or there are too many permits.
    Leave,
    /// It was the last one: end the object.
    End,
}

impl Permits {
    /// Returns permits for these parts, of which the next one is the last, and the number of permits to hand out: up
    /// to `streams_max`, and no more than parts.
    pub fn new(waiting: Vec<u32>, streams_max: usize) -> (Permits, usize) {
        let permits = streams_max.min(waiting.len()).max(1);
        (Permits(Mutex::new(PermitState { waiting, permits, failed: None })), permits)
    }

    /// Begins again with these parts after the last permit was released; returns as [`Permits::new`].
    pub fn restart(&self, waiting: Vec<u32>, streams_max: usize) -> usize {
        let (again, permits) = Permits::new(waiting, streams_max);
        *self.0.lock() = again.0.into_inner();
        permits
    }

    /// Takes the failure, if there was one.
    pub fn failure(&self) -> Option<Failed> {
        self.0.lock().failed.take()
    }

    fn next(&self) -> Option<u32> {
        let mut state = self.0.lock();
        if state.failed.is_some() { None } else { state.waiting.pop() }
    }

    fn fail(&self, failed: Failed) {
        self.0.lock().failed.get_or_insert(failed);
    }

    /// Returns the next step of a permit's holder, and releases the permit if that is to leave or to end.
    fn turn(&self, streams_max: usize) -> Turn {
        let mut state = self.0.lock();
        let goes_on = state.failed.is_none() && !state.waiting.is_empty();
        if goes_on && state.permits <= streams_max.max(1) {
            return Turn::Again;
        }
        state.permits = state.permits.saturating_sub(1);
        if state.permits == 0 { Turn::End } else { Turn::Leave }
    }

    /// Returns how many more permits to hand out, and counts them: up to `streams_max`, and no more than parts that
    /// wait. None for an object that failed or whose last permit was released.
    fn more(&self, streams_max: usize) -> usize {
        let mut state = self.0.lock();
        if state.permits == 0 || state.failed.is_some() {
            return 0;
        }
        let count = streams_max.saturating_sub(state.permits).min(state.waiting.len());
        state.permits += count;
        count
    }
}

impl ObjectEngine<'_> {
    /// Returns how many parts of one large object may be in flight now: the requested number, else as many as `fit`
    /// into memory; never more than there are jobs.
    pub(super) fn streams(&self, fit: u64) -> usize {
        streams(fit, self.setup.options.concurrency, self.setup.controls.gate.jobs())
    }
}

fn streams(fit: u64, concurrency: Option<usize>, jobs: usize) -> usize {
    // The user's number is a hard limit; memory is waited for.
    concurrency.unwrap_or(usize::try_from(fit).unwrap_or(usize::MAX)).min(jobs).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Permits for this many waiting parts, of which `streams` are handed out.
    fn permits(parts: u32, streams: usize) -> Permits {
        Permits::new((1..=parts).rev().collect(), streams).0
    }

    fn left(permits: &Permits) -> usize {
        permits.0.lock().permits
    }

    #[test]
    fn rights_follow_what_may_be() {
        let of = permits(9, 4);
        assert_eq!(of.turn(4), Turn::Again);
        // Fewer are wanted: the first holders release, down to the wanted number, and never the last one.
        assert_eq!(of.turn(2), Turn::Leave);
        assert_eq!(of.turn(0), Turn::Leave);
        assert_eq!(of.turn(2), Turn::Again);
        assert_eq!(of.turn(0), Turn::Leave);
        assert_eq!((of.turn(0), left(&of)), (Turn::Again, 1));
        assert_eq!((of.more(3), left(&of)), (2, 3));
        of.0.lock().waiting.truncate(1);
        assert_eq!((of.more(9), left(&of)), (1, 4));
        assert_eq!((of.next(), of.next()), (Some(9), None));
        assert_eq!((of.more(9), left(&of)), (0, 4));
        for rest in [3, 2, 1] {
            assert_eq!((of.turn(9), left(&of)), (Turn::Leave, rest));
        }
        assert_eq!((of.turn(9), left(&of)), (Turn::End, 0));
        of.0.lock().waiting.push(1);
        assert_eq!((of.more(9), left(&of)), (0, 0), "it has ended");
        assert_eq!((of.restart(vec![2, 1], 9), of.next()), (2, Some(1)));
    }

    #[test]
    fn after_a_failure_no_part_is_handed_out() {
        let of = permits(10, 3);
        assert_eq!((of.next(), left(&of)), (Some(1), 3));
        of.fail(Failed::Stopped);
        of.fail(Failed::Vanished(hakobu_core::error::Operation::Read));
        assert_eq!((of.next(), of.more(9)), (None, 0));
        assert_eq!([of.turn(9), of.turn(9), of.turn(9)], [Turn::Leave, Turn::Leave, Turn::End]);
        assert!(matches!(of.failure(), Some(Failed::Stopped)), "the first one counts");
    }

    #[test]
    fn parts_in_flight_are_limited_by_memory_jobs_and_request() {
        assert_eq!([streams(8, None, 32), streams(8, None, 7), streams(0, None, 7)], [8, 7, 1]);
        assert_eq!([streams(8, Some(1000), 32), streams(8, Some(3), 2)], [32, 2]);
    }

    proptest! {
        /// For any order of workers, every part is handed out once and one worker ends the object, after all others.
        #[test]
        fn every_part_is_handed_out_and_one_ends_it(
            parts in 1_u32..200,
            streams in 1_usize..20,
            order in prop::collection::vec(any::<prop::sample::Index>(), 2000),
        ) {
            let of = permits(parts, streams);
            let (mut idle, mut working, mut ended) = (left(&of), Vec::new(), false);
            let mut covered = vec![false; parts as usize];
            for index in order {
                prop_assert_eq!(idle + working.len(), left(&of));
                // Either a part is finished, or an idle holder asks for the next one.
                if idle == 0 || (index.index(2) == 0 && !working.is_empty()) {
                    let number: Option<u32> = working.swap_remove(index.index(working.len()));
                    if let Some(number) = number {
                        let again = std::mem::replace(&mut covered[number as usize - 1], true);
                        prop_assert!(!again);
                    }
                    match of.turn(usize::MAX) {
                        Turn::Again => idle += 1,
                        Turn::Leave => {}
                        Turn::End => {
                            prop_assert_eq!((idle, working.len()), (0, 0));
                            ended = true;
                            break;
                        }
                    }
                } else {
                    idle -= 1;
                    working.push(of.next());
                }
            }
            prop_assert!(ended);
            prop_assert!(covered.iter().all(|one| *one));
        }
    }
}
