//! Barrier of all clones of a group, until the last of them is ready.

use parking_lot::{Condvar, Mutex};

/// Closed at first.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    /// Tells who opens it that the last one is ready. Thousands that wait are woken once only.
    all_ready: Condvar,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: usize,
    /// So many are waited for.
    wanted: Option<usize>,
    /// Whether it is open; stays false if one of them could not be started.
    open: Option<bool>,
}

impl Gate {
    /// Says that one more is ready and waits for the others. False if there is nothing to begin.
    pub(super) fn pass(&self) -> bool {
        let mut state = self.state.lock();
        state.ready += 1;
        if state.wanted.is_some_and(|wanted| state.ready >= wanted) {
            self.all_ready.notify_one();
        }
        loop {
            match state.open {
                Some(open) => return open,
                None => {
                    self.opened.wait(&mut state);
                }
            }
        }
    }

    /// Waits until this many are ready, and releases them.
    pub(super) fn open_for(&self, count: usize) {
        let mut state = self.state.lock();
        state.wanted = Some(count);
        while state.ready < count {
            self.all_ready.wait(&mut state);
        }
        state.open = Some(true);
        self.opened.notify_all();
    }

    /// Lets everybody go home.
    pub(super) fn give_up(&self) {
        self.state.lock().open = Some(false);
        self.opened.notify_all();
    }
}
