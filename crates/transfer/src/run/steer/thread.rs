//! The controller thread: ticks a hundred times per second, less often with hundreds of jobs. No worker ever waits
//! for it.

use super::controller::{self, Controller};
use super::facts::Subject;
use super::memory::RunHints;
use crate::journal::Ledger;
use crate::run::outcome::Findings;
use hakobu_core::limit::Controls;
use hakobu_explain::verdict;
use hakobu_sys::usage::Used;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Minimum interval of ticks ...
const TICK: Duration = Duration::from_millis(10);
/// ... and the maximum while the number of jobs is searched in windows of 50 ms ...
const TUNED_TICK_MAX: Duration = Duration::from_millis(30);
/// ... and where it is fixed.
const TICK_MAX: Duration = Duration::from_millis(100);
/// Minimum duration of a run with a verdict.
const JUDGED_MIN: Duration = Duration::from_secs(2);
/// Stack size of the thread, in bytes: it reads small files and adds numbers.
const STACK_BYTES: usize = 256 << 10;

/// State shared by both threads.
struct Shared {
    controls: Arc<Controls>,
    ledger: Arc<Ledger>,
    subject: Subject,
    started: Instant,
    controller: Mutex<Controller>,
    over: Mutex<bool>,
    ended: Condvar,
}

impl Shared {
    fn steer(&self) {
        let mut pause = TICK;
        loop {
            let mut over = self.over.lock();
            self.ended.wait_while_for(&mut over, |over| !*over, pause);
            if *over {
                return;
            }
            let before = Used::of_thread().cpu();
            // The lock is held during a tick: the end of the run waits for it, and no tick comes after.
            let mut controller = self.controller.lock();
            controller.tick(self.started.elapsed(), &self.controls, &self.subject);
            let tick_max = if controller.tunes() { TUNED_TICK_MAX } else { TICK_MAX };
            drop((controller, over));
            self.ledger.heartbeat();
            let took = Used::of_thread().cpu().saturating_sub(before);
            pause = controller::pause(took, (TICK, tick_max));
        }
    }

    fn end(&self) {
        *self.over.lock() = true;
        self.ended.notify_all();
    }
}

/// A controlled run.
pub(in super::super) struct ControllerThread {
    shared: Arc<Shared>,
    hints: RunHints,
}

impl ControllerThread {
    /// Starts the thread, if it is needed (`watches`). If no thread can be started, the initial settings stay.
    pub(super) fn begin(
        (controls, ledger): (Arc<Controls>, Arc<Ledger>),
        subject: Subject,
        hints: RunHints,
        controller: Controller,
        watches: bool,
    ) -> ControllerThread {
        let shared = Arc::new(Shared {
            controls,
            ledger,
            subject,
            started: Instant::now(),
            controller: Mutex::new(controller),
            over: Mutex::new(false),
            ended: Condvar::new(),
        });
        if watches {
            // Not joined: a run of a millisecond must not wait for a thread to end.
            let thread =
                std::thread::Builder::new().name("controller".into()).stack_size(STACK_BYTES);
            let other = Arc::clone(&shared);
            let _ = thread.spawn(move || other.steer());
        }
        ControllerThread { shared, hints }
    }

    /// Ends control and returns the findings. `whole`: the run was neither stopped nor aborted, so that its results
    /// are worth storing.
    pub fn end(mut self, whole: bool) -> Findings {
        self.shared.end();
        let Shared { controls, subject, started, .. } = &*self.shared;
        let took = started.elapsed();
        let mut controller = self.shared.controller.lock();
        let judged = took >= JUDGED_MIN && controller.judges();
        controller.land(took, controls, subject, judged);
        if let Some(jobs) = controller.best().filter(|_| whole) {
            std::mem::take(&mut self.hints).remember(subject, jobs, &controls.meter.counts(), took);
        }
        Findings {
            jobs: controller.usual_jobs().unwrap_or(controls.gate.jobs()),
            path: controller.path(took, controls),
            verdict: judged.then(|| verdict::judge(&controller.judged_facts(controls, subject))),
        }
    }
}

impl Drop for ControllerThread {
    fn drop(&mut self) {
        self.shared.end();
    }
}
