//! Requested output of a run.

use super::format::Format;
use crate::number::Digits;
use crate::priority::Priority;
use hakobu_sys::paths::Links;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// Line of one entry on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Line {
    /// None.
    #[default]
    None,
    /// rsync's `-v`.
    Name {
        /// `-vv`: also entries with changed attributes only, and unchanged ones.
        all: bool,
    },
    /// rsync's `-i`.
    Itemized,
    /// rsync's `--out-format`: see [`Wanted::format`].
    Format,
    /// rsync's `--list-only`.
    List {
        /// `-l`: show the targets of symlinks.
        links: bool,
    },
    /// cp's `-v`; with a verb, mv's.
    Arrow(&'static str),
    /// Operations on names, as lines for `hakobu run`: the verb for transferred entries, and `rm`.
    Mapping(&'static str),
    /// rm's `-v` for objects.
    Removed,
    /// A JSON line.
    Json,
}

/// The requested output.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The command, for the summary and the job log.
    pub command: &'static str,
    /// The style of filter patterns was given.
    pub styled: bool,
    /// Verb for the totals: `copied`, `moved`.
    pub done: &'static str,
    /// Advice after an interruption.
    pub resume: &'static str,
    /// The line of an entry.
    pub line: Line,
    /// Entries that need nothing, or equal those of another tree, have lines as well.
    pub unchanged: bool,
    /// Only JSON lines on standard output.
    pub json: bool,
    /// Print every problem when it happens (`-v`).
    pub problems: bool,
    /// Print only errors (`-q`).
    pub quiet: bool,
    /// Print rsync's statistics at the end.
    pub stats: bool,
    /// Print rsync's last two lines.
    pub ending: bool,
    /// Print counts of operations and requests at the end (`--stat`).
    pub stat: bool,
    /// CPU and I/O priority.
    pub priority: Priority,
    /// Print the verdict at the end, with all evidence (`--explain`).
    pub explain: bool,
    /// Print the totals at the end, also without a terminal.
    pub totals: bool,
    /// `--progress`, `--no-progress`, or neither.
    pub progress: Option<bool>,
    /// After the line of each transferred file, rsync's line of its progress.
    pub transfers: bool,
    /// rsync's line of progress of the whole run on standard output.
    pub whole: bool,
    /// Time after which the run stops (`--stop-after`, `--stop-at`).
    pub stop_after: Option<Duration>,
    /// Nothing is changed.
    pub dry_run: bool,
    /// The command writes its own summary and totals.
    pub own_end: bool,
    /// Format of numbers.
    pub digits: Digits,
    /// `-8`.
    pub eight_bit: bool,
    /// `--log-file`.
    pub log_file: Option<OsString>,
    /// `--joblog`.
    pub joblog: Option<OsString>,
    /// Symlinks allowed in the paths of these files.
    pub links: Links,
    /// `--out-format`.
    pub format: Option<Arc<Format>>,
    /// `--log-file-format`.
    pub log_format: Option<Arc<Format>>,
    /// Messages to print before the start.
    pub notes: Vec<String>,
    /// Lines on standard output before the start.
    pub told: Vec<String>,
}

impl Wanted {
    /// Suppresses all output except errors, or enables it again.
    pub fn hush(&mut self, on: bool) {
        self.quiet = on;
        self.progress = if on { Some(false) } else { self.progress };
    }

    /// Returns whether any output requires items; see `Spec::items`.
    pub fn items(&self) -> bool {
        self.line != Line::None || self.log_file.is_some() || self.joblog.is_some()
    }
}
