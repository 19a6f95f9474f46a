//! Waiting of engines for something that is not a device: how long, and what ends it.

use hakobu_sys::errno;
use std::io::Error;
use std::time::{Duration, Instant};

/// The longest time in which nothing is heard of another end.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);
/// Between two looks whether the job is over.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

/// Reason that an engine cannot be made, or that a clone ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// 0 if it is not the system's.
    pub(crate) errno: i32,
    pub(crate) sentence: String,
}

impl Failure {
    /// With the errno of an error.
    pub(crate) fn of(error: &Error, sentence: String) -> Failure {
        Failure { errno: errno::of(error), sentence }
    }
}

/// End of the waits of a job: its time is over, or it was stopped.
pub(crate) struct Patience<'a> {
    is_over: &'a dyn Fn() -> bool,
    until: Option<Instant>,
}

impl<'a> Patience<'a> {
    /// Until this is true.
    pub(crate) fn new(is_over: &'a dyn Fn() -> bool) -> Patience<'a> {
        Patience { is_over, until: None }
    }

    /// The job begins now, and ends after so long at the latest.
    pub(crate) fn begin(&mut self, span: Option<Duration>) {
        self.until = span.and_then(|span| Instant::now().checked_add(span));
    }

    /// The job is over.
    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until) || (self.is_over)()
    }
}
