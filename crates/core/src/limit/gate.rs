//! Number of units that may be under way now: set by the controller, asked by workers before they begin
//! something.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// See the module.
#[derive(Debug)]
pub struct Gate {
    jobs: AtomicUsize,
    jobs_max: usize,
    changing: Mutex<()>,
    changed: Condvar,
    told: Notify,
}

impl Gate {
    /// `jobs` units may be under way, and never more than `jobs_max`.
    pub fn new(jobs: usize, jobs_max: usize) -> Gate {
        let jobs_max = jobs_max.max(1);
        Gate {
            jobs: AtomicUsize::new(jobs.clamp(1, jobs_max)),
            jobs_max,
            changing: Mutex::default(),
            changed: Condvar::new(),
            told: Notify::new(),
        }
    }

    /// Always `jobs`.
    pub fn fixed(jobs: usize) -> Gate {
        Gate::new(jobs, jobs)
    }

    /// Units that may be under way now, at least 1.
    pub fn jobs(&self) -> usize {
        self.jobs.load(Ordering::Relaxed)
    }

    /// Units that may ever be under way.
    pub fn jobs_max(&self) -> usize {
        self.jobs_max
    }

    /// Sets it and wakes those that wait for more. Workers at work are not interrupted.
    pub fn set(&self, jobs: usize) {
        let jobs = jobs.clamp(1, self.jobs_max);
        if self.jobs.swap(jobs, Ordering::Relaxed) != jobs {
            self.wake();
        }
    }

    /// Wakes all waiting threads, so that they check again, as at the end of a run.
    pub fn wake(&self) {
        drop(self.changing.lock());
        self.changed.notify_all();
        self.told.notify_waiters();
    }

    /// For threads: waits until worker `index` may work, or `over` says that there is nothing more
    /// to wait for (then call [`Gate::wake`]).
    pub fn wait_for_turn(&self, index: usize, over: impl Fn() -> bool) {
        let mut guard = self.changing.lock();
        while index >= self.jobs() && !over() {
            self.changed.wait(&mut guard);
        }
    }

    /// For futures: resolves at the next change after its first poll (or `enable`).
    pub fn change(&self) -> impl Future<Output = ()> + '_ {
        self.told.notified()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_hold() {
        let gate = Gate::new(5, 8);
        assert_eq!(gate.jobs(), 5);
        gate.set(0);
        assert_eq!(gate.jobs(), 1);
        gate.set(100);
        assert_eq!(gate.jobs(), 8);
        gate.wait_for_turn(7, || false);
    }

    #[test]
    fn who_waits_is_woken() {
        let gate = Gate::new(1, 4);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait_for_turn(3, || false));
            gate.set(4);
            waiting.join().unwrap();
        });
    }
}
