//! Output while jobs run: fio's status line on a terminal, and interim reports (`--status-interval`).

use crate::show::{output, progress, screen};
use hakobu_io::layout::Layout;
use hakobu_io::output::live::{Whole, line};
use hakobu_io::run::Progress;
use hakobu_io::spec::{Eta, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval between two status lines.
const PAUSE: Duration = Duration::from_millis(500);
/// Interval without output; the run may still be stopped.
const IDLE: Duration = Duration::from_secs(1);

/// State of the output.
pub struct Live<'a> {
    request: &'a Request,
    whole: Whole,
    /// Progress at the last line.
    seen: Progress,
    /// The line is drawn.
    has_line: bool,
    /// Number of reports so far.
    reports: u32,
    /// Set by SIGUSR1.
    signalled: Arc<AtomicBool>,
}

impl<'a> Live<'a> {
    /// Creates the state before anything is shown.
    pub fn new(request: &'a Request, layout: &Layout) -> Live<'a> {
        let clone_bytes = |job: usize| {
            let clone = layout.clones.iter().find(|clone| clone.job == job && clone.clone == 0);
            clone.map_or(0, |clone| clone.extents.iter().map(|extent| extent.bytes).sum())
        };
        let has_line = match request.run.eta {
            Eta::Auto => screen::redraws(),
            Eta::Always => true,
            Eta::Never => false,
        };
        Live {
            request,
            whole: Whole::of(&request.jobs, clone_bytes),
            seen: Progress::default(),
            has_line,
            reports: 0,
            signalled: progress::signal_flag(),
        }
    }

    /// Returns the interval between calls of [`Live::show`].
    pub fn every(&self) -> Duration {
        let status = self.request.run.status_interval.unwrap_or(IDLE);
        if self.has_line { status.min(PAUSE) } else { status }
    }

    /// Draws the line; returns whether a report is due (`status_interval`), in which case the line was erased.
    pub fn show(&mut self, progress: &Progress) -> bool {
        let signalled = self.signalled.swap(false, Ordering::Relaxed);
        if self.has_line || signalled {
            let text = line(&self.request.jobs, &self.whole, progress, &mut self.seen);
            match signalled {
                true => output::message(text.trim()),
                false => screen::show(&text),
            }
        }
        let Some(interval) = self.request.run.status_interval else { return false };
        let due = progress.elapsed >= interval * (self.reports + 1);
        if due {
            let past = progress.elapsed.as_millis() / interval.as_millis().max(1);
            self.reports = u32::try_from(past).unwrap_or(u32::MAX);
            screen::clear();
        }
        due
    }
}
