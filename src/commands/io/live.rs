//! What is shown while jobs run: fio's line on a terminal, and a status from time to time.

use crate::show::output;
use hakobu_lab::io::lay::Layout;
use hakobu_lab::io::output::live::{Seen, Whole, line, status};
use hakobu_lab::io::run::Progress;
use hakobu_lab::io::spec::{Eta, Request};
use hakobu_sys::terminal;
use std::io::{self, IsTerminal};
use std::time::Duration;

/// Between two lines.
const PAUSE: Duration = Duration::from_millis(500);
/// Nobody is shown anything: still, somebody may ask to stop.
const IDLE: Duration = Duration::from_secs(1);

/// What was shown.
pub struct Live<'a> {
    request: &'a Request,
    whole: Whole,
    seen: Seen,
    /// The line is drawn.
    has_line: bool,
    drawn: bool,
    /// Statuses that were shown.
    statuses: u32,
}

impl<'a> Live<'a> {
    /// Nothing is shown yet.
    pub fn new(request: &'a Request, layout: &Layout) -> Live<'a> {
        let clone_bytes = |job: usize| {
            let clone = layout.clones.iter().find(|clone| clone.job == job && clone.clone == 0);
            clone.map_or(0, |clone| clone.extents.iter().map(|extent| extent.bytes).sum())
        };
        let has_line = match request.eta {
            Eta::Auto => io::stderr().is_terminal(),
            Eta::Always => true,
            Eta::Never => false,
        };
        Live {
            request,
            whole: Whole::of(&request.jobs, clone_bytes),
            seen: Seen::default(),
            has_line,
            drawn: false,
            statuses: 0,
        }
    }

    /// How often it wants to be asked.
    pub fn every(&self) -> Duration {
        let status = self.request.status_interval.unwrap_or(IDLE);
        if self.has_line { status.min(PAUSE) } else { status }
    }

    /// Draws the line; gives the status where it is time for one.
    pub fn show(&mut self, progress: &Progress) -> Option<String> {
        if self.has_line {
            let text = line(&self.request.jobs, &self.whole, progress, &mut self.seen);
            self.draw(&text);
        }
        let interval = self.request.status_interval?;
        if progress.elapsed < interval * (self.statuses + 1) {
            return None;
        }
        self.statuses = u32::try_from(progress.elapsed.as_millis() / interval.as_millis().max(1))
            .unwrap_or(u32::MAX);
        self.end();
        Some(status(progress) + "\n")
    }

    /// Takes the line away.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.drawn) {
            output::error_text("\r\x1b[K");
        }
    }

    fn draw(&mut self, text: &str) {
        if !io::stderr().is_terminal() {
            output::error_text(&format!("{text}\n"));
            return;
        }
        let columns = terminal::columns(io::stderr()).unwrap_or(80);
        let text: String = text.chars().take(columns.saturating_sub(1)).collect();
        output::error_text(&format!("\r\x1b[K{text}"));
        self.drawn = true;
    }
}
