//! Listener of the transfer of a shard: collects problems, passes events on.

use crate::done::Done;
use hakobu_core::error::{Cause, Class, Problem};
use hakobu_core::event::{Event, Listener};
use hakobu_core::meter::Meter;
use hakobu_transfer::journal;
use hakobu_transfer::plan::NOT_AS_PLANNED;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Kinds of problems that a result names.
const PROBLEMS_MAX: usize = 64;

/// The meter of the shard in hand, for signs of life.
pub(crate) type Meters = Mutex<Option<Arc<Meter>>>;

/// Collected problems: number and first path of each kind.
pub(crate) struct ProblemLog<'a> {
    listener: &'a dyn Listener,
    meter: &'a Meters,
    problems: Mutex<BTreeMap<String, (u64, String)>>,
    changed: AtomicU64,
}

impl<'a> ProblemLog<'a> {
    /// Passes events on to `listener`.
    pub fn new(listener: &'a dyn Listener, meter: &'a Meters) -> ProblemLog<'a> {
        ProblemLog { listener, meter, problems: Mutex::default(), changed: AtomicU64::new(0) }
    }

    /// Adds a problem: its kind, and the path that has it.
    pub fn add(&self, what: String, path: PathBuf) {
        let mut problems = self.problems.lock();
        let known = problems.len();
        match problems.get_mut(&what) {
            Some((count, _)) => *count += 1,
            None if known < PROBLEMS_MAX => {
                let path = journal::text(path.as_os_str().as_bytes());
                problems.insert(what, (1, path));
            }
            None => {}
        }
    }

    /// Entries that were not what the plan saw, and were left alone.
    pub fn changed(&self) -> u64 {
        self.changed.load(Ordering::Relaxed)
    }

    /// One kind of problem.
    pub fn first(&self) -> Option<String> {
        self.problems.lock().keys().next().cloned()
    }

    /// Puts the problems into a result.
    pub fn into_problems(self, done: &mut Done) {
        let problems = self.problems.into_inner().into_iter();
        done.problems.extend(problems.map(|(what, (count, first))| (what, count, first)));
    }
}

impl Listener for ProblemLog<'_> {
    fn event(&self, event: Event<'_>) {
        match &event {
            Event::Problem(problem) => {
                let Problem { operation, source, target, cause, class } = problem;
                if matches!((cause, class), (Cause::Reason(NOT_AS_PLANNED), Class::Notice)) {
                    self.changed.fetch_add(1, Ordering::Relaxed);
                    let path = source.clone().unwrap_or_default();
                    return self.add(NOT_AS_PLANNED.to_owned(), path);
                }
                let path = target.clone().or_else(|| source.clone()).unwrap_or_default();
                self.add(format!("cannot {}: {cause}", operation.words()), path);
            }
            Event::Begins(meter) => *self.meter.lock() = Some(Arc::clone(meter)),
            _ => {}
        }
        self.listener.event(event);
    }
}
