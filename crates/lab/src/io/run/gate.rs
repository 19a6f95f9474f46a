//! Where all clones of a group wait until the last of them is ready.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Closed at first.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: usize,
    /// Whether it is open; false for good if one of them could not be started.
    open: Option<bool>,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that one more is ready and waits for the others. False if there is nothing to begin.
    pub(super) fn pass(&self) -> bool {
        let mut state = self.lock();
        state.ready += 1;
        self.changed.notify_all();
        loop {
            match state.open {
                Some(open) => return open,
                None => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Waits until so many are ready, and lets them go.
    pub(super) fn open_for(&self, count: usize) {
        let mut state = self.lock();
        while state.ready < count {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.open = Some(true);
        self.changed.notify_all();
    }

    /// Lets everybody go home.
    pub(super) fn give_up(&self) {
        self.lock().open = Some(false);
        self.changed.notify_all();
    }
}
