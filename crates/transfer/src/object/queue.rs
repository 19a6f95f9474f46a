//! The queue between those who plan and the cores: bounded for tasks, with parts of large objects
//! in front. Planners block when it is full; cores never do, they wait as futures.

use super::Task;
use super::core::Large;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    parts: VecDeque<Arc<Large>>,
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
    }

    /// No task is begun any more; what is in flight ends, and large objects are given up.
    pub fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        state.tasks.clear();
        drop(state);
        self.room.notify_all();
        self.work.notify_waiters();
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
        drop(state);
        for _ in 0..streams {
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
        }
    }

    /// The next thing to do; `None` when everything is done, or the run was stopped and no large
    /// object waits to be ended. (A right that a worker still has comes back to that worker.) Each
    /// task that is taken is to be [`Queue::finished`].
    pub async fn next(&self) -> Option<Taken> {
        loop {
            let waiting = self.work.notified();
            tokio::pin!(waiting);
            // From here on a notification is not lost.
            waiting.as_mut().enable();
            if let Some(taken) = self.take()? {
                return Some(taken);
            }
            waiting.await;
        }
    }

    /// `None`: over; `Some(None)`: nothing now.
    #[expect(clippy::option_option, reason = "over, empty and something are three answers")]
    fn take(&self) -> Option<Option<Taken>> {
        let mut state = self.state();
        if let Some(large) = state.parts.pop_front() {
            return Some(Some(Taken::Part(large)));
        }
        if state.stopped {
            return None;
        }
        if let Some(task) = state.tasks.pop_front() {
            state.open += 1;
            // Half empty: planners may go on, in long strokes rather than one by one.
            if state.tasks.len() == TASKS_MAX / 2 {
                self.room.notify_all();
            }
            return Some(Some(Taken::Task(task)));
        }
        if state.is_over() { None } else { Some(None) }
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
