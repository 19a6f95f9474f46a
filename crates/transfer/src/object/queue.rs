//! The queue between planners and cores: bounded for tasks, with parts of large objects in front. Planners block when
//! it is full; cores wait as futures and never block.

use super::Task;
use hakobu_core::meter::{Doing, Phase};
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
    pub async fn next(&self, doing: &Doing, is_wanted: impl Fn() -> bool) -> Next<L> {
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
