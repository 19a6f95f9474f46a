//! The thread beside the work: it looks a hundred times a second, and nobody ever waits for it.

use super::Findings;
use super::facts::Subject;
use super::memory::Notes;
use super::pilot::Pilot;
use crate::limit::Helm;
use crate::verdict;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks at the counters.
const TICK: Duration = Duration::from_millis(10);
/// Shorter runs are not judged.
const JUDGED_MIN: Duration = Duration::from_secs(2);
/// What the thread needs: it reads small files and adds numbers.
const STACK_BYTES: usize = 256 << 10;

/// What both threads hold.
struct Shared {
    helm: Arc<Helm>,
    subject: Subject,
    started: Instant,
    pilot: Mutex<Pilot>,
    over: Mutex<bool>,
    told: Condvar,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn steer(&self) {
        loop {
            let over = lock(&self.over);
            let waited = self.told.wait_timeout_while(over, TICK, |over| !*over);
            let (over, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if *over {
                return;
            }
            // Held while looking: what ends the run waits for this look, and none comes after.
            lock(&self.pilot).tick(self.started.elapsed(), &self.helm, &self.subject);
            drop(over);
        }
    }

    fn end(&self) {
        *lock(&self.over) = true;
        self.told.notify_all();
    }
}

/// A run that is being steered.
pub(in super::super) struct Flight {
    shared: Arc<Shared>,
    notes: Notes,
}

impl Flight {
    /// Starts the thread. Where there are no threads left, nobody steers, and everything stays as
    /// it began.
    pub(super) fn begin(helm: Arc<Helm>, subject: Subject, notes: Notes, pilot: Pilot) -> Flight {
        let shared = Arc::new(Shared {
            helm,
            subject,
            started: Instant::now(),
            pilot: Mutex::new(pilot),
            over: Mutex::new(false),
            told: Condvar::new(),
        });
        let other = Arc::clone(&shared);
        // Nobody joins it: a run that takes a millisecond is not to wait for a thread to end.
        let thread = std::thread::Builder::new().name("pilot".into()).stack_size(STACK_BYTES);
        let _ = thread.spawn(move || other.steer());
        Flight { shared, notes }
    }

    /// Ends the steering and says what was found out. `whole`: the run was neither stopped nor
    /// given up, so that what was good for it is worth remembering.
    pub fn end(mut self, whole: bool) -> Findings {
        self.shared.end();
        let Shared { helm, subject, started, .. } = &*self.shared;
        let took = started.elapsed();
        let judged = took >= JUDGED_MIN;
        let mut pilot = lock(&self.shared.pilot);
        pilot.land(took, helm, subject, judged);
        if let Some(jobs) = pilot.best().filter(|_| whole) {
            std::mem::take(&mut self.notes).remember(subject, jobs, &helm.meter.counts(), took);
        }
        Findings {
            jobs: pilot.usual_jobs().unwrap_or(helm.gate.jobs()),
            path: pilot.path(took, helm),
            verdict: judged.then(|| verdict::judge(&pilot.judged_facts(helm, subject))),
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.shared.end();
    }
}
