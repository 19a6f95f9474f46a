//! Listener of the transfer of a shard: collects problems, passes events on.

use crate::done::Done;
use hakobu_core::error::Problem;
use hakobu_core::event::{Event, Listener};
use hakobu_core::meter::Meter;
use hakobu_transfer::journal;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Kinds of problems that a result names.
const PROBLEMS_MAX: usize = 64;

/// The meter of the shard in hand, for signs of life.
pub(crate) type Meters = Mutex<Option<Arc<Meter>>>;

/// Collected problems: number and first path of each kind.
pub(crate) struct ProblemLog<'a> {
    listener: &'a dyn Listener,
    meter: &'a Meters,
    problems: Mutex<BTreeMap<String, (u64, String)>>,
}

impl<'a> ProblemLog<'a> {
    /// Passes events on to `listener`.
    pub fn new(listener: &'a dyn Listener, meter: &'a Meters) -> ProblemLog<'a> {
        ProblemLog { listener, meter, problems: Mutex::default() }
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
                let Problem { operation, source, target, cause, .. } = problem;
                let path = target.clone().or_else(|| source.clone()).unwrap_or_default();
                self.add(format!("cannot {}: {cause}", operation.words()), path);
            }
            Event::Begins(meter) => *self.meter.lock() = Some(Arc::clone(meter)),
            _ => {}
        }
        self.listener.event(event);
    }
}
