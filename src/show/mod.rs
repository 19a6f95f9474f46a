//! What a run shows: listens to its events and hands each to the forms that were asked for. The
//! forms (itemized lines, lists, JSON, job log, statistics) are functions to bytes; the writing is
//! done in `output`.

mod ask;
pub mod escape;
pub mod itemize;
pub mod joblog;
pub mod json;
pub mod list;
pub mod output;
pub mod problems;
pub mod progress;
pub mod stats;
pub mod verdict;

pub use ask::{ask, confirmed};

use crate::effort::Priority;
use crate::number::{self, Digits};
use escape::Escape;
use hakobu_transfer::error::{Class, Problem, quoted};
use hakobu_transfer::event::{Event, Item, Listener};
use hakobu_transfer::run::{Control, Outcome};
use jiff::tz::TimeZone;
use output::Output;
use progress::Progress;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nobody asks why a shorter run was not faster.
const TOLD_MIN: Duration = Duration::from_secs(5);

/// The line of one entry on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Line {
    /// None.
    #[default]
    None,
    /// rsync's `-v`.
    Name {
        /// `-vv`: also where only attributes changed, or nothing.
        all: bool,
    },
    /// rsync's `-i`.
    Itemized,
    /// rsync's `--list-only`; whether symlinks show what they name.
    List {
        /// `-l`.
        links: bool,
    },
    /// cp's `-v`, with a verb before it: mv's.
    Arrow(&'static str),
    /// What is done to which names, as lines that `hakobu run` takes: the verb for what is moved,
    /// and `rm`.
    Mapping(&'static str),
    /// rm's `-v` for what the engine of objects removes.
    Removed,
    /// A JSON line.
    Json,
}

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The command, for the summary and the job log.
    pub command: &'static str,
    /// What was done to files, for the totals: `copied`, `moved`.
    pub done: &'static str,
    /// How to go on after an interruption.
    pub resume: &'static str,
    /// The line of an entry.
    pub line: Line,
    /// JSON lines on standard output and nothing else.
    pub json: bool,
    /// Every problem when it happens (`-v`).
    pub problems: bool,
    /// Nothing but errors (`-q`).
    pub quiet: bool,
    /// rsync's statistics at the end.
    pub stats: bool,
    /// Counts of operations and requests at the end (`--stat`).
    pub stat: bool,
    /// How much others go first.
    pub priority: Priority,
    /// What limits the run, at the end, with all evidence (`--explain`).
    pub explain: bool,
    /// The sentence of totals at the end even where nobody looks.
    pub totals: bool,
    /// A bar.
    pub progress: bool,
    /// Nothing is really changed.
    pub dry_run: bool,
    /// The command writes its own summary and totals.
    pub own_end: bool,
    /// How numbers look.
    pub digits: Digits,
    /// `-8`.
    pub eight_bit: bool,
    /// `--log-file`.
    pub log_file: Option<OsString>,
    /// `--joblog`.
    pub joblog: Option<OsString>,
}

impl Wanted {
    /// Whether anything here is made from items; see `Spec::items`.
    pub fn items(&self) -> bool {
        self.line != Line::None || self.log_file.is_some() || self.joblog.is_some()
    }
}

/// Shows a run.
pub struct Show {
    wanted: Wanted,
    escape: Escape,
    list: list::List,
    stdout: Output,
    log: Option<Output>,
    joblog: Option<Output>,
    seq: AtomicU64,
    progress: Option<Progress>,
    problems: Mutex<problems::Groups>,
    control: Arc<Control>,
}

impl Show {
    /// Opens what is needed.
    ///
    /// # Errors
    /// A sentence: a log file cannot be opened.
    pub fn new(wanted: Wanted, control: Arc<Control>) -> Result<Show, String> {
        let open = |path: &Option<OsString>, how: fn(&Path) -> std::io::Result<Output>| match path {
            None => Ok(None),
            Some(path) => how(Path::new(path)).map(Some).map_err(|error| {
                let cause = hakobu_transfer::error::Cause::System(error);
                format!("cannot write {}: {cause}", quoted(path))
            }),
        };
        let log = open(&wanted.log_file, Output::append)?;
        let joblog = open(&wanted.joblog, Output::create)?;
        if let Some(joblog) = &joblog {
            joblog.write(joblog::HEADER);
        }
        let escape = if wanted.eight_bit { Escape::EightBit } else { Escape::of_locale() };
        let links = wanted.line == Line::List { links: true };
        // Looking up the time zone reads a file: only where times are shown.
        let timed = log.is_some() || matches!(wanted.line, Line::List { .. });
        let zone = if timed { TimeZone::system() } else { TimeZone::UTC };
        let list = list::List { digits: wanted.digits, escape, links, zone };
        let progress = if wanted.progress { Progress::start() } else { None };
        Ok(Show {
            escape,
            list,
            stdout: Output::stdout(),
            log,
            joblog,
            seq: AtomicU64::new(0),
            progress,
            problems: Mutex::new(problems::Groups::new(wanted.command)),
            control,
            wanted,
        })
    }

    /// Whether standard output has lost its reader.
    pub fn is_broken(&self) -> bool {
        self.stdout.is_broken()
    }

    /// Writes whole lines to standard output, beside the bar.
    pub fn print(&self, lines: &[u8]) {
        match &self.progress {
            Some(bar) if self.stdout.is_terminal() => bar.beside(|| self.stdout.write(lines)),
            _ => self.stdout.write(lines),
        }
    }

    /// Writes one line to standard error, beside the bar.
    pub fn message(&self, text: &str) {
        match &self.progress {
            Some(bar) => bar.beside(|| output::message(text)),
            None => output::message(text),
        }
    }

    /// A rename that mv did, which no engine tells of.
    pub fn renamed(&self, from: &Path, to: &Path, backup: Option<&Path>) {
        let mut out = Vec::new();
        match self.wanted.line {
            Line::Arrow(_) => itemize::push_renamed(from, to, backup, &mut out),
            Line::Json => json::push_rename(from, to, backup, &mut out),
            _ => {}
        }
        self.print(&out);
    }

    fn item(&self, item: &Item<'_>) {
        let mut out = Vec::with_capacity(128);
        match self.wanted.line {
            Line::None => {}
            Line::Name { all } => itemize::push_plain(item, all, self.escape, &mut out),
            Line::Itemized => itemize::push_itemized(item, self.escape, &mut out),
            Line::List { .. } => {
                self.list.push(item, &mut out);
                if self.stdout.is_broken() {
                    self.control.stop();
                }
            }
            Line::Json => json::push_item(item, &mut out),
            Line::Removed => itemize::push_removed(item, &mut out),
            Line::Mapping(verb) => itemize::push_mapping(verb, item, &mut out),
            Line::Arrow(verb) => {
                let moved = item.change.created || item.change.transferred || item.change.hard_link;
                if let (true, Some(from), Some(to)) = (moved, &item.source, &item.target) {
                    itemize::push_copied(verb, item.kind, from, to, &mut out);
                }
            }
        }
        self.print(&out);
        if let Some(log) = self.log.as_ref().filter(|_| item.change.any()) {
            let mut line = self.stamp();
            itemize::push_itemized(item, self.escape, &mut line);
            log.write(&line);
        }
        if let Some(joblog) = self.joblog.as_ref().filter(|_| joblog::has_line(item)) {
            let mut line = Vec::with_capacity(128);
            joblog::push_item(&self.job(), self.next_seq(), item, &mut line);
            joblog.write(&line);
        }
    }

    /// The start of a log line, in rsync's form: time and process.
    fn stamp(&self) -> Vec<u8> {
        let time = list::time_text(now_s() as i64, &self.list.zone);
        format!("{time} [{}] ", std::process::id()).into_bytes()
    }

    fn job(&self) -> String {
        format!("hakobu {}", self.wanted.command)
    }

    fn next_seq(&self) -> u64 {
        self.seq.fetch_add(1, Relaxed) + 1
    }

    fn problem(&self, problem: &Problem) {
        if self.shows(problem) {
            let mut groups = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
            groups.add(problem, self.escape);
        }
        let tell_now = self.wanted.problems && self.shows(problem);
        if !(tell_now || self.wanted.json || self.log.is_some() || self.joblog.is_some()) {
            return;
        }
        let text = problems::sentence(problem, self.escape);
        if tell_now {
            self.message(&text);
        }
        if self.wanted.json {
            let mut out = Vec::with_capacity(256);
            json::push_problem(problem, &text, &mut out);
            self.print(&out);
        }
        if let Some(log) = &self.log {
            let mut line = self.stamp();
            line.extend_from_slice(text.as_bytes());
            line.push(b'\n');
            log.write(&line);
        }
        if let Some(joblog) = self.joblog.as_ref().filter(|_| joblog::has_problem_line(problem)) {
            let mut line = Vec::with_capacity(128);
            joblog::push_problem(&self.job(), self.next_seq(), now_s(), problem, &mut line);
            joblog.write(&line);
        }
    }

    /// Whether a problem deserves a line on standard error.
    fn shows(&self, problem: &Problem) -> bool {
        match problem.class {
            Class::Notice => !self.wanted.quiet,
            _ => true,
        }
    }

    /// Ends the showing: problems in groups, statistics, totals, summary. Returns whether all
    /// lines that were asked for in files could be written.
    #[must_use]
    pub fn finish(&self, outcome: &Outcome, exit_code: u8) -> bool {
        if let Some(progress) = &self.progress {
            progress.finish();
        }
        let used = hakobu_sys::process::usage();
        let groups = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        for line in groups.lines(self.wanted.problems, outcome.fatal.is_some()) {
            output::message(&line);
        }
        drop(groups);
        self.tell_rest(outcome);
        if self.wanted.stats {
            let stats = stats::stats(&outcome.totals, self.wanted.digits, self.wanted.dry_run);
            if self.wanted.json {
                let _ = std::io::stderr().lock().write_all(stats.as_bytes());
            } else {
                self.stdout.write(stats.as_bytes());
            }
        }
        if self.wanted.stat {
            let text = stats::requests(self.wanted.command, outcome, &used);
            match self.wanted.json {
                true => drop(std::io::stderr().lock().write_all(text.as_bytes())),
                false => self.stdout.write(text.as_bytes()),
            }
        }
        let is_list = matches!(self.wanted.line, Line::List { .. });
        let watched = self.wanted.totals || std::io::stderr().is_terminal();
        if watched && !self.wanted.quiet && !is_list && outcome.jobs > 0 {
            let (done, dry_run) = (self.wanted.done, self.wanted.dry_run);
            output::message(&stats::sentence(outcome, &used, done, dry_run));
            if outcome.totals.unprivileged > 0 {
                let left_out = number::things(outcome.totals.unprivileged, "attribute");
                output::message(&format!("left out for want of privilege: {left_out}"));
            }
        }
        self.tell_verdict(outcome, watched && !is_list);
        if self.wanted.json && !self.wanted.own_end {
            let mut out = Vec::with_capacity(512);
            let summary = json::Summary::new(self.wanted.command, outcome, &used, exit_code);
            json::push_line(&summary, &mut out);
            self.stdout.write(&out);
        }
        self.close()
    }

    fn tell_rest(&self, outcome: &Outcome) {
        let totals = &outcome.totals;
        if totals.deletes_held > 0 {
            output::message(&format!(
                "--max-delete held back {}",
                number::things(totals.deletes_held, "removal")
            ));
        }
        if let Some(fatal) = &outcome.fatal {
            output::message(&fatal.message);
        } else if outcome.stopped {
            output::message(&format!("interrupted: {}", self.wanted.resume));
        }
    }

    /// Says what limits: all of it where that was asked for, else one sentence where somebody looks
    /// and the run was long enough to want to know.
    fn tell_verdict(&self, outcome: &Outcome, watched: bool) {
        let findings = &outcome.findings;
        if self.wanted.explain && !findings.path.is_empty() {
            let text = verdict::full(&verdict::of(findings), &findings.path);
            output::message(text.trim_end());
        } else if let Some(found) = &findings.verdict {
            let long = outcome.took >= TOLD_MIN;
            if watched && long && !self.wanted.quiet && !self.wanted.explain {
                output::message(&verdict::sentence(found));
            }
        }
    }

    fn close(&self) -> bool {
        let mut complete = true;
        let outputs = [
            (Some(&self.stdout), "standard output".to_owned()),
            (self.log.as_ref(), shown(&self.wanted.log_file)),
            (self.joblog.as_ref(), shown(&self.wanted.joblog)),
        ];
        for (stream, name) in outputs {
            if let Some(error) = stream.and_then(Output::finish) {
                let cause = hakobu_transfer::error::Cause::System(error);
                output::message(&format!("cannot write {name}: {cause}"));
                complete = false;
            }
        }
        complete
    }
}

fn shown(path: &Option<OsString>) -> String {
    path.as_ref().map(quoted).unwrap_or_default()
}

impl Listener for Show {
    fn event(&self, event: Event<'_>) {
        if let Some(progress) = &self.progress {
            progress.event(&event);
        }
        match event {
            Event::Item(item) => self.item(item),
            Event::Problem(problem) => self.problem(problem),
            Event::Warning(text) => {
                if self.wanted.json {
                    let mut out = Vec::new();
                    json::push_message("warning", &text, &mut out);
                    self.print(&out);
                }
                if !self.wanted.quiet {
                    self.message(&text);
                }
            }
            Event::Unit(_)
            | Event::Found { .. }
            | Event::WalkDone
            | Event::LargeFile { .. }
            | Event::LargeBytes { .. } => {}
        }
    }
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_asked_for_only_where_somebody_shows_them() {
        let none = Wanted::default();
        assert!(!none.items());
        assert!(Wanted { line: Line::Name { all: false }, ..none.clone() }.items());
        assert!(Wanted { joblog: Some("x".into()), ..none.clone() }.items());
        assert!(Wanted { log_file: Some("x".into()), ..none }.items());
    }
}
