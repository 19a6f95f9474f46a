//! Waiting of engines for something that is not a device: how long, and what ends it.

use std::time::{Duration, Instant};

/// The longest time in which nothing is heard of another end.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);
/// Between two looks whether the job is over.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

/// A failure of an engine: errno and a sentence.
pub(crate) type Refusal = (i32, String);

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
