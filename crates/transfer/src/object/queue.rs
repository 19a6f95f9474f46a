//! The queue between those who plan and the cores: bounded for tasks, with parts of large objects
//! in front. Planners block when it is full; cores never do, they wait as futures.

use super::Task;
use super::core::Large;
use crate::meter::{Doing, Phase};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;

/// Tasks that may wait.
const TASKS_MAX: usize = 4096;

/// What a core takes.
pub enum Taken {
    /// A new task.
    Task(Task),
    /// The right to work on the next part of a large object.
    Part(Arc<Large>),
}

/// What a worker does next.
pub enum Next {
    /// This. A task is to be [`Queue::finished`].
    Take(Taken),
    /// Ending: there are more workers than shall be.
    Leave,
    /// Ending: everything is done, or the run was stopped and no large object waits to be ended. (A
    /// right that a worker still has comes back to that worker.)
    Over,
}

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    parts: VecDeque<Arc<Large>>,
    /// Large objects on their way, and some that are gone.
    larges: Vec<Weak<Large>>,
    /// No more tasks will come.
    closed: bool,
    /// No task is handed out any more.
    stopped: bool,
    /// Tasks and large objects that are not finished: they may still bring parts.
    open: usize,
}

/// See the module.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    room: Condvar,
    work: Notify,
    over: Notify,
}

impl Queue {
    /// Adds tasks, waiting for room; `false` when the run was stopped. For planners' threads only.
    pub fn push(&self, tasks: impl IntoIterator<Item = Task>) -> bool {
        let mut state = self.state();
        while state.tasks.len() >= TASKS_MAX && !state.stopped {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
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

    /// No more tasks will come.
    pub fn close(&self) {
        self.state().closed = true;
        self.work.notify_waiters();
        self.over.notify_waiters();
    }

    /// No task is begun any more; what is in flight ends, and large objects are given up.
    pub fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        state.tasks.clear();
        drop(state);
        self.room.notify_all();
        self.work.notify_waiters();
        self.over.notify_waiters();
    }

    /// Whether [`Queue::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Opens a large object: `streams` of its parts may be worked on at once.
    pub fn open(&self, large: &Arc<Large>, streams: usize) {
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

    /// Hands out more rights to large objects that are under way: as many as `more` says of each,
    /// having counted them there. Nothing while the run is being stopped: nobody might take them.
    pub fn widen(&self, more: impl Fn(&Large) -> usize) {
        let mut state = self.state();
        if state.stopped || state.larges.is_empty() {
            return;
        }
        let State { parts, larges, .. } = &mut *state;
        let before = parts.len();
        larges.retain(|large| {
            let Some(large) = large.upgrade() else { return false };
            // `more` counts a right before anybody can take it: the lock is held.
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

    /// Gives back the right to work on a large object, for its next part.
    pub fn again(&self, large: Arc<Large>) {
        self.state().parts.push_back(large);
        self.work.notify_one();
    }

    /// A task, or a large object, is finished in whatever way.
    pub fn finished(&self) {
        let mut state = self.state();
        state.open -= 1;
        let over = state.is_over();
        drop(state);
        if over {
            self.work.notify_waiters();
            self.over.notify_waiters();
        }
    }

    /// Resolves when something ended after this call: then ask [`Queue::is_over`].
    pub fn ending(&self) -> impl Future<Output = ()> + '_ {
        self.over.notified()
    }

    /// Whether nothing is left to take and nothing more will come.
    pub fn is_over(&self) -> bool {
        let state = self.state();
        state.is_over() && state.parts.is_empty()
    }

    /// The next thing to do for a worker for whom `is_wanted` says whether it shall be.
    pub async fn next(&self, doing: &Doing, is_wanted: impl Fn() -> bool) -> Next {
        loop {
            let waiting = self.work.notified();
            tokio::pin!(waiting);
            // From here on a notification is not lost.
            waiting.as_mut().enable();
            match self.take(&is_wanted) {
                Some(Next::Leave) => {
                    // Whatever this one was woken for is somebody else's.
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

    /// `None`: nothing now.
    fn take(&self, is_wanted: &impl Fn() -> bool) -> Option<Next> {
        let mut state = self.state();
        // While the run is being stopped everybody stays until the end: a right that this worker
        // gave back may be the last thing to take, and the others may be gone.
        if !state.stopped && !is_wanted() {
            return Some(Next::Leave);
        }
        if let Some(large) = state.parts.pop_front() {
            return Some(Next::Take(Taken::Part(large)));
        }
        if state.stopped {
            return Some(Next::Over);
        }
        if let Some(task) = state.tasks.pop_front() {
            state.open += 1;
            // Half empty: planners may go on, in long strokes rather than one by one.
            if state.tasks.len() == TASKS_MAX / 2 {
                self.room.notify_all();
            }
            return Some(Next::Take(Taken::Task(task)));
        }
        state.is_over().then_some(Next::Over)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_over(&self) -> bool {
        self.stopped
            || (self.closed && self.open == 0 && self.tasks.is_empty() && self.parts.is_empty())
    }
}
