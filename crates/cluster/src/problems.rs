//! Listener of the transfer of a shard: collects problems, passes events on.

use crate::worker::Done;
use hakobu_core::error::{Cause, Class, Problem};
use hakobu_core::event::{Event, Listener};
use hakobu_core::meter::Meter;
use hakobu_transfer::journal;
use hakobu_transfer::plan::NOT_AS_PLANNED;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Kinds of problems that are kept.
const PROBLEMS_MAX: usize = 64;

/// The meter of the shard in hand, for signs of life.
pub(crate) type Meters = Mutex<Option<Arc<Meter>>>;

/// Problems by their kinds: how many, and the first one's path.
pub(crate) type Problems = BTreeMap<String, (u64, String)>;

/// Adds problems of one kind; one of a further kind than the most is left out.
pub(crate) fn count(problems: &mut Problems, what: &str, more: u64, path: impl FnOnce() -> String) {
    let known = problems.len();
    match problems.get_mut(what) {
        Some((count, _)) => *count += more,
        None if known < PROBLEMS_MAX => {
            problems.insert(what.to_owned(), (more, path()));
        }
        None => {}
    }
}

/// Problems of one transfer.
pub(crate) struct ProblemLog<'a> {
    listener: &'a dyn Listener,
    meter: &'a Meters,
    problems: Mutex<Problems>,
    changed: AtomicU64,
}

impl<'a> ProblemLog<'a> {
    /// Passes events on to `listener`.
    pub fn new(listener: &'a dyn Listener, meter: &'a Meters) -> ProblemLog<'a> {
        ProblemLog { listener, meter, problems: Mutex::default(), changed: AtomicU64::new(0) }
    }

    /// Adds a problem: its kind, and the path that has it.
    pub fn add(&self, what: &str, path: &Path) {
        let text = || journal::text(path.as_os_str().as_bytes());
        count(&mut self.problems.lock(), what, 1, text);
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
                    return self.add(NOT_AS_PLANNED, source.as_deref().unwrap_or(Path::new("")));
                }
                let path = target.as_deref().or(source.as_deref()).unwrap_or(Path::new(""));
                self.add(&format!("cannot {}: {cause}", operation.words()), path);
            }
            Event::Begins(meter) => *self.meter.lock() = Some(Arc::clone(meter)),
            _ => {}
        }
        self.listener.event(event);
    }
}
