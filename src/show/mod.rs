//! Display of a run: receives its events and passes each to the requested formats. The formats (itemized lines,
//! lists, JSON, job log, statistics) are functions to bytes; `output` writes them.

pub mod escape;
pub mod json;
pub mod lines;
mod manifest;
pub mod output;
mod pace;
pub mod problems;
pub mod progress;
pub mod screen;
pub mod stats;
pub mod verdict;

use crate::limits::Priority;
use crate::number::{self, Digits};
use crate::textfile::TextfileArgs;
use escape::Escape;
use hakobu_core::error::{Cause, ErrorClass, Problem, cannot, quoted};
use hakobu_core::event::{Event, Item, Listener, Remark};
use hakobu_core::language::Language;
use hakobu_core::unit::Totals;
use hakobu_sys::paths::Links;
use hakobu_transfer::run::{Control, Layout, Outcome, Spec};
use jiff::tz::TimeZone;
use lines::OutFormat;
use manifest::Manifest;
use output::Output;
use parking_lot::Mutex;
use progress::{Progress, ProgressForm};
pub use screen::{ask, confirmed};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Minimum duration of a run with a verdict.
const VERDICT_MIN: Duration = Duration::from_secs(5);

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
    /// rsync's `--out-format`: see [`ShowOptions::format`].
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

/// State in which an interruption leaves a file that is not complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnfinishedFile {
    /// The command leaves none, or changes files in place.
    #[default]
    None,
    /// It is discarded, and no option keeps it.
    Discarded,
    /// It is discarded, and `--partial` would keep it.
    NotPartial,
    /// It is discarded, and `--resume` would keep these parts.
    NotResumed(&'static str),
    /// `--partial` keeps its beginning.
    Partial,
    /// `--resume` keeps these parts.
    Resumed(&'static str),
}

impl UnfinishedFile {
    /// Returns the state for a transfer.
    pub fn of(spec: &Spec) -> UnfinishedFile {
        let policy = &spec.policy;
        let resumed = spec.objects.options.resume;
        match (spec.sources.are_s3(), spec.target.is_s3()) {
            (true, true) => UnfinishedFile::Discarded,
            (true, false) if resumed => UnfinishedFile::Resumed("downloaded parts"),
            (true, false) => UnfinishedFile::NotResumed("downloaded parts"),
            (false, true) if resumed => UnfinishedFile::Resumed("uploaded parts"),
            (false, true) => UnfinishedFile::NotResumed("uploaded parts"),
            (false, false) if policy.inplace || policy.dry_run => UnfinishedFile::None,
            (false, false) if policy.partial => UnfinishedFile::Partial,
            (false, false) => match spec.layout {
                Layout::Rsync { .. } => UnfinishedFile::NotPartial,
                Layout::Cp { .. } => UnfinishedFile::Discarded,
            },
        }
    }

    /// Returns whether the next run begins anew with the file.
    fn is_discarded(self) -> bool {
        use UnfinishedFile::{Discarded, NotPartial, NotResumed};
        matches!(self, Discarded | NotPartial | NotResumed(_))
    }

    /// Returns the sentence about so many files.
    fn text(self, files: u64) -> Option<String> {
        let (what, were, them) = match files {
            0 => return None,
            1 => ("the unfinished file", "was", "it"),
            _ => ("unfinished files", "were", "them"),
        };
        Some(match self {
            UnfinishedFile::None => return None,
            UnfinishedFile::Discarded => format!("{what} {were} discarded"),
            UnfinishedFile::NotPartial => {
                format!("{what} {were} discarded (--partial keeps {them})")
            }
            UnfinishedFile::NotResumed(parts) => {
                format!("{what} {were} discarded (--resume keeps {parts})")
            }
            UnfinishedFile::Partial => format!("{what} {were} kept (--partial)"),
            // Small objects have no parts.
            UnfinishedFile::Resumed(parts) => format!("{parts} are kept (--resume)"),
        })
    }
}

/// The requested output.
#[derive(Clone, Debug, Default)]
pub struct ShowOptions {
    /// The command, for the summary and the job log.
    pub command: &'static str,
    /// The style of filter patterns was given.
    pub styled: bool,
    /// Sentences that say where sources go, printed when the ends are open and work begins.
    pub targets: Vec<String>,
    /// Verb for the totals: `copied`, `moved`.
    pub done: &'static str,
    /// Advice after an interruption.
    pub resume: &'static str,
    /// What an interruption leaves of a file that is not complete.
    pub unfinished: UnfinishedFile,
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
    /// Print the verdict at the end in one sentence, also without a terminal (`--prove`).
    pub proves: bool,
    /// Language of the verdict (`--lang`).
    pub language: Language,
    /// Gauges at the end (`--textfile`).
    pub textfile: TextfileArgs,
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
    /// `--manifest`; `-` is standard output.
    pub manifest: Option<OsString>,
    /// Algorithm of the digests of entries, as manifests name it.
    pub digest: Option<&'static str>,
    /// Symlinks allowed in the paths of these files.
    pub links: Links,
    /// `--out-format`.
    pub format: Option<Arc<OutFormat>>,
    /// `--log-file-format`.
    pub log_format: Option<Arc<OutFormat>>,
    /// Messages to print before the start.
    pub notes: Vec<String>,
    /// Lines on standard output before the start.
    pub told: Vec<String>,
}

impl ShowOptions {
    /// Suppresses all output except errors, or enables it again.
    pub fn hush(&mut self, on: bool) {
        self.quiet = on;
        self.progress = if on { Some(false) } else { self.progress };
    }

    /// Returns whether any output requires items; see `Spec::items`.
    pub fn items(&self) -> bool {
        let files = [&self.log_file, &self.joblog, &self.manifest];
        self.line != Line::None || files.into_iter().any(Option::is_some)
    }

    /// Returns whether any output requires items of unchanged entries; see `Spec::items_unchanged`.
    pub fn items_unchanged(&self) -> bool {
        self.unchanged || self.manifest.is_some()
    }

    /// Checks that a manifest on standard output is alone there.
    ///
    /// # Errors
    /// A sentence.
    pub fn check_manifest(&self) -> Result<(), String> {
        let mixes = [
            (self.json, "--json"),
            (self.stats, "--stats"),
            (self.stat, "--stat"),
            (self.whole || self.transfers, "--progress"),
            (
                self.ending || self.line != Line::None,
                "-v, -i, -n and other options that print entries",
            ),
        ];
        match mixes.iter().find(|(is_on, _)| *is_on) {
            Some((_, option)) if self.manifest.as_ref().is_some_and(|path| path == "-") => Err(
                format!("--manifest=- cannot be used with {option}: both write to standard output"),
            ),
            _ => Ok(()),
        }
    }
}

/// Displays a run.
pub struct Show {
    wanted: ShowOptions,
    escape: Escape,
    list: lines::ListFormat,
    stdout: Arc<Output>,
    log: Option<Output>,
    joblog: Option<Output>,
    /// The manifest, and its file unless that is standard output.
    manifest: Option<(Manifest, Option<Output>)>,
    seq: AtomicU64,
    /// Number of lines of progress of single files.
    transfers: AtomicU64,
    progress: Progress,
    problems: Mutex<problems::ProblemGroups>,
    /// Sentences for the beginning of the work.
    targets: Mutex<Vec<String>>,
    control: Arc<Control>,
}

impl Show {
    /// Opens the output files.
    ///
    /// # Errors
    /// A sentence: a log file cannot be opened.
    pub fn new(wanted: ShowOptions, control: Arc<Control>) -> Result<Show, String> {
        let open = |path: &Option<OsString>, append: bool| match path {
            None => Ok(None),
            Some(path) => {
                let opened = Output::file(Path::new(path), append, &wanted.links);
                opened.map(Some).map_err(|error| cannot("write", path, error))
            }
        };
        let log = open(&wanted.log_file, true)?;
        let joblog = open(&wanted.joblog, false)?;
        let named = wanted.manifest.clone().filter(|path| path != "-");
        let file = open(&named, false)?;
        let manifest = wanted.manifest.is_some().then(|| (Manifest::default(), file));
        if let Some(joblog) = &joblog {
            joblog.write(lines::JOBLOG_HEADER);
        }
        let escape = if wanted.eight_bit { Escape::EightBit } else { Escape::of_locale() };
        let links = wanted.line == Line::List { links: true };
        // Looking up the time zone reads a file: only done if times are shown.
        let timed = log.is_some() || matches!(wanted.line, Line::List { .. } | Line::Format);
        let zone = if timed { TimeZone::system() } else { TimeZone::UTC };
        let list = lines::ListFormat { digits: wanted.digits, escape, links, zone };
        let stdout = Arc::new(Output::stdout());
        let seen = wanted.line != Line::None && stdout.is_terminal();
        let form = match wanted.whole {
            true => ProgressForm::States(wanted.digits),
            false => ProgressForm::of(wanted.progress, wanted.json, seen),
        };
        let lines = Arc::clone(&stdout);
        let progress = Progress::start(form, wanted.language, move |line| match form {
            ProgressForm::States(_) => lines.write_state(line),
            _ => {
                lines.write(line);
                lines.flush();
            }
        });
        Ok(Show {
            escape,
            list,
            stdout,
            log,
            joblog,
            manifest,
            seq: AtomicU64::new(0),
            transfers: AtomicU64::new(0),
            progress,
            problems: Mutex::new(problems::ProblemGroups::new(wanted.command, wanted.styled)),
            targets: Mutex::new(wanted.targets.clone()),
            control,
            wanted,
        })
    }

    /// Returns whether the reader of standard output is gone.
    pub fn is_broken(&self) -> bool {
        self.stdout.is_broken()
    }

    /// Writes whole lines to standard output, above the bar.
    pub fn print(&self, lines: &[u8]) {
        match self.stdout.is_terminal() {
            true => screen::beside(|| self.stdout.write(lines)),
            false => self.stdout.write(lines),
        }
    }

    /// Reports a rename by mv, for which no engine sends an event.
    pub fn renamed(&self, from: &Path, to: &Path, backup: Option<&Path>) {
        let mut out = Vec::new();
        self.record(&mut out, |manifest, out| manifest.push_rename(from, to, out));
        match self.wanted.line {
            Line::Arrow(_) => lines::push_renamed(from, to, backup, &mut out),
            Line::Json => json::push_rename(from, to, backup, &mut out),
            _ => {}
        }
        self.print(&out);
    }

    /// Writes a line of the manifest, if there is one. `out` is empty before and after.
    fn record(&self, out: &mut Vec<u8>, push: impl FnOnce(&Manifest, &mut Vec<u8>)) {
        if let Some((manifest, file)) = &self.manifest {
            push(manifest, out);
            file.as_ref().unwrap_or(&self.stdout).write(out);
            out.clear();
        }
    }

    fn item(&self, item: &Item<'_>) {
        let mut out = Vec::with_capacity(128);
        self.record(&mut out, |manifest, out| manifest.push_item(item, self.wanted.digest, out));
        let change = &item.change;
        // Only the manifest asked for it.
        let is_unasked = self.manifest.is_some() && !self.wanted.unchanged && !change.any();
        if change.left_out || is_unasked && !change.beside {
            return;
        }
        let is_silent = item.change.is_as_beside() && !self.wanted.unchanged;
        match self.wanted.line {
            Line::None => {}
            Line::Name { .. } | Line::Itemized | Line::Format if is_silent => {}
            Line::Name { all } => lines::push_plain(item, all, self.escape, &mut out),
            Line::Itemized => lines::push_itemized(item, self.escape, &mut out),
            Line::Format => {
                if let Some(format) = self.wanted.format.as_ref().filter(|_| item.change.any()) {
                    format.push(item, self.escape, (&self.list.zone, now_s()), &mut out);
                }
            }
            Line::List { .. } => {
                self.list.push(item, &mut out);
                if self.stdout.is_broken() {
                    self.control.stop();
                }
            }
            Line::Json => json::push_item(item, &mut out),
            Line::Removed => lines::push_removed(item, &mut out),
            Line::Mapping(verb) => lines::push_mapping(verb, item, &mut out),
            Line::Arrow(verb) => {
                let moved = item.change.created || item.change.transferred || item.change.hard_link;
                if let (true, Some(from), Some(to)) = (moved, &item.source, &item.target) {
                    lines::push_copied(verb, item.kind, from, to, &mut out);
                }
            }
        }
        if self.wanted.transfers && progress::has_progress(item) {
            let at = self.progress.position(1 + self.transfers.fetch_add(1, Relaxed));
            progress::push_progress(item.bytes, item.took, self.wanted.digits, at, &mut out);
        }
        self.print(&out);
        if let Some(log) = self.log.as_ref().filter(|_| item.change.any() && !is_silent) {
            let mut said = Vec::with_capacity(128);
            match &self.wanted.log_format {
                Some(format) => {
                    format.push(item, self.escape, (&self.list.zone, now_s()), &mut said);
                }
                None => lines::push_itemized(item, self.escape, &mut said),
            }
            if !said.is_empty() {
                log.write(&[self.stamp(), said].concat());
            }
        }
        if let Some(joblog) = self.joblog.as_ref().filter(|_| lines::has_job_line(item)) {
            let mut line = Vec::with_capacity(128);
            lines::push_job(&self.job(), self.next_seq(), item, &mut line);
            joblog.write(&line);
        }
    }

    /// Prints a message about an entry; as rsync, also in the log.
    fn remark(&self, remark: &Remark<'_>) {
        let mut text = Vec::with_capacity(128);
        lines::push_remark(remark, self.escape, &mut text);
        self.tell(text);
    }

    /// Prints a line that is a message and not an entry, also to the log.
    pub fn tell(&self, text: Vec<u8>) {
        if self.wanted.json {
            let message = String::from_utf8_lossy(text.trim_ascii_end());
            self.print(&json::message("info", &message));
        } else {
            self.print(&text);
        }
        if let Some(log) = &self.log {
            log.write(&[self.stamp(), text].concat());
        }
    }

    /// Returns the start of a log line, in rsync's form: time and process.
    fn stamp(&self) -> Vec<u8> {
        let time = lines::time_text(now_s() as i64, &self.list.zone, lines::TIME);
        format!("{time} [{}] ", std::process::id()).into_bytes()
    }

    fn job(&self) -> String {
        format!("hakobu {}", self.wanted.command)
    }

    fn next_seq(&self) -> u64 {
        self.seq.fetch_add(1, Relaxed) + 1
    }

    fn problem(&self, problem: &Problem) {
        if matches!(problem.class, ErrorClass::Partial | ErrorClass::Fatal) {
            self.progress.failed();
        }
        if self.shows(problem) {
            let mut groups = self.problems.lock();
            groups.add(problem, self.escape);
        }
        self.record(&mut Vec::new(), |manifest, out| manifest.push_problem(problem, out));
        let prints_now = self.wanted.problems && self.shows(problem);
        if !(prints_now || self.wanted.json || self.log.is_some() || self.joblog.is_some()) {
            return;
        }
        let text = problems::sentence(problem, self.escape);
        if prints_now {
            output::message(&text);
        }
        self.print_problem(problem, &text);
        if let Some(log) = &self.log {
            let mut line = self.stamp();
            line.extend_from_slice(text.as_bytes());
            line.push(b'\n');
            log.write(&line);
        }
        if let Some(joblog) = self.joblog.as_ref().filter(|_| lines::has_failed_job(problem)) {
            let mut line = Vec::with_capacity(128);
            lines::push_failed_job(&self.job(), self.next_seq(), now_s(), problem, &mut line);
            joblog.write(&line);
        }
    }

    /// Prints the JSON line of a problem, if JSON is asked for.
    pub fn print_problem(&self, problem: &Problem, text: &str) {
        if self.wanted.json {
            self.print(&json::problem(problem, text));
        }
    }

    /// Returns whether a problem gets a line on standard error.
    fn shows(&self, problem: &Problem) -> bool {
        match problem.class {
            // `rm` prints nothing else, so it counts as quiet.
            ErrorClass::Notice => !self.wanted.quiet || self.wanted.command == "rm",
            _ => true,
        }
    }

    /// Ends the progress display before the final output.
    pub fn end_progress(&self) {
        self.progress.finish();
    }

    /// Ends the display: grouped problems, statistics, totals, summary. Returns whether all lines of the requested
    /// files could be written.
    #[must_use]
    pub fn finish(&self, outcome: &Outcome, exit_code: u8) -> bool {
        self.progress.finish();
        let used = hakobu_sys::proc::ResourceUsage::of_program();
        let groups = self.problems.lock();
        let fatal = outcome.fatal.as_ref().map(|fatal| fatal.message.as_str());
        for line in groups.lines(self.wanted.problems, fatal) {
            output::message(&line);
        }
        drop(groups);
        self.print_end(outcome);
        if self.wanted.whole && outcome.fatal.is_none() {
            let at = self.progress.position(outcome.totals.files);
            let state = progress::TransferState::last(outcome, at, self.progress.percent());
            let mut line = Vec::with_capacity(128);
            state.push(self.wanted.digits, &mut line);
            self.stdout.write_state(&line);
        }
        if self.wanted.stats {
            let stats = stats::stats(outcome, self.wanted.digits, self.wanted.dry_run);
            self.print_aside(&stats);
        }
        if self.wanted.ending && outcome.fatal.is_none() && !outcome.stopped {
            let ending = stats::ending(outcome, self.wanted.digits, self.wanted.dry_run);
            self.stdout.write(ending.as_bytes());
        }
        if self.wanted.stat {
            let text = stats::requests(self.wanted.command, outcome, &used);
            self.print_aside(&text);
        }
        let is_list = matches!(self.wanted.line, Line::List { .. });
        let watched = self.wanted.totals || std::io::stderr().is_terminal();
        // A run that ended with an error before anything was done has no totals.
        let failed_at_once = outcome.fatal.is_some() && outcome.totals == Totals::default();
        if watched && !self.wanted.quiet && !is_list && outcome.jobs > 0 && !failed_at_once {
            let terms = stats::SummaryTerms {
                done: self.wanted.done,
                dry_run: self.wanted.dry_run,
                used: self.wanted.stats.then_some(&used),
                stopped: self.progress.stopped_time(),
            };
            stats::summary(outcome, &terms).iter().for_each(|line| output::message(line));
        }
        let watched = watched || self.wanted.ending;
        if watched && !self.wanted.quiet && outcome.totals.unprivileged > 0 {
            let attributes = number::things(outcome.totals.unprivileged, "attribute");
            output::message(&format!("{attributes} not set (requires root)"));
        }
        self.print_verdict(outcome, watched && !is_list);
        if self.wanted.json && !self.wanted.own_end {
            let summary = json::Summary::new(self.wanted.command, outcome, &used, exit_code);
            self.stdout.write(&json::line(&summary));
        }
        let end = manifest::End {
            command: self.wanted.command,
            dry_run: self.wanted.dry_run,
            stopped: outcome.stopped,
            bytes: outcome.totals.bytes,
            exit_code,
        };
        self.record(&mut Vec::new(), |manifest, out| manifest.push_end(&end, out));
        self.close()
    }

    /// Prints text to standard output, or where that has JSON lines to standard error.
    fn print_aside(&self, text: &str) {
        match self.wanted.json {
            true => output::error_text(text),
            false => self.stdout.write(text.as_bytes()),
        }
    }

    fn print_end(&self, outcome: &Outcome) {
        let totals = &outcome.totals;
        if totals.deletes_held > 0 {
            output::message(&format!(
                "--max-delete held back {}",
                number::things(totals.deletes_held, "removal")
            ));
        }
        // The message was printed with the other problems.
        if let Some(fatal) = &outcome.fatal {
            if self.wanted.json {
                self.print(&json::message("error", &fatal.message));
            }
        } else if outcome.stopped {
            self.print_interruption(totals);
        }
    }

    /// Prints what became of the file that was not complete, and how to continue.
    fn print_interruption(&self, totals: &Totals) {
        let at = self.progress.at();
        // Content that moved and is no part of a complete file.
        let unfinished = match at.bytes > totals.bytes && !self.wanted.dry_run {
            true => at.found.saturating_sub(at.done).max(1),
            false => 0,
        };
        let unfinished = self.wanted.unfinished.text(unfinished);
        let resume = self.wanted.resume;
        match (unfinished, self.wanted.unfinished) {
            // The next run begins with it anew.
            (Some(text), state) if state.is_discarded() && totals.files == 0 => {
                output::message(&format!("interrupted; {text}"));
            }
            (Some(text), _) => {
                output::message(&format!("interrupted; {resume}"));
                output::message(&text);
            }
            (None, _) => output::message(&format!("interrupted; {resume}")),
        }
    }

    /// Prints the limiting resource: with all evidence if requested, else one sentence for a long run on a terminal.
    fn print_verdict(&self, outcome: &Outcome, watched: bool) {
        let findings = &outcome.findings;
        if self.wanted.explain && !findings.path.is_empty() {
            let text = verdict::full(&verdict::of(findings), &findings.path, self.wanted.language);
            output::message(text.trim_end());
        } else if let Some(found) = &findings.verdict {
            let long = outcome.took >= VERDICT_MIN;
            let asked = self.wanted.proves && !self.wanted.json;
            if (watched && long || asked) && !self.wanted.quiet && !self.wanted.explain {
                output::message(&verdict::sentence(found, self.wanted.language));
            }
        }
    }

    fn close(&self) -> bool {
        let mut complete = true;
        let manifest = self.manifest.as_ref().map(|(_, file)| file.as_ref());
        let outputs = [
            (Some(&*self.stdout), "standard output".to_owned()),
            (manifest.flatten(), shown(&self.wanted.manifest)),
            (self.log.as_ref(), shown(&self.wanted.log_file)),
            (self.joblog.as_ref(), shown(&self.wanted.joblog)),
        ];
        for (stream, name) in outputs {
            if let Some(error) = stream.and_then(Output::finish) {
                let cause = Cause::System(error);
                output::message(&format!("cannot write {name}: {cause}"));
                complete = false;
            }
        }
        // Of a manifest, a reader that went away has not read all.
        let lost = manifest.is_some_and(|file| file.unwrap_or(&self.stdout).is_broken());
        if lost && complete {
            output::message("cannot write the manifest: its reader is gone");
        }
        complete && !lost
    }
}

fn shown(path: &Option<OsString>) -> String {
    path.as_ref().map(quoted).unwrap_or_default()
}

impl Listener for Show {
    fn shows_totals(&self) -> bool {
        self.progress.shows_totals()
    }

    fn event(&self, event: Event<'_>) {
        match event {
            Event::Begins(meter) => {
                // Once: a command may begin several times.
                let targets = std::mem::take(&mut *self.targets.lock());
                targets.iter().for_each(|target| output::message(target));
                self.progress.begins(meter);
            }
            Event::Item(item) => self.item(item),
            // Plans are written elsewhere.
            Event::Planned(_) | Event::Limited(_) => {}
            Event::Problem(problem) => self.problem(problem),
            Event::Remark(remark) => self.remark(remark),
            Event::Warning(text) => {
                if self.wanted.json {
                    self.print(&json::message("warning", &text));
                }
                if !self.wanted.quiet {
                    output::message(&text);
                }
            }
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
    fn interrupted_runs_tell_what_became_of_the_file() {
        for (unfinished, files, text) in [
            (
                UnfinishedFile::NotPartial,
                1,
                Some("the unfinished file was discarded (--partial keeps it)"),
            ),
            (
                UnfinishedFile::NotPartial,
                3,
                Some("unfinished files were discarded (--partial keeps them)"),
            ),
            (
                UnfinishedFile::NotResumed("uploaded parts"),
                1,
                Some("the unfinished file was discarded (--resume keeps uploaded parts)"),
            ),
            (UnfinishedFile::Discarded, 3, Some("unfinished files were discarded")),
            (UnfinishedFile::Partial, 1, Some("the unfinished file was kept (--partial)")),
            (
                UnfinishedFile::Resumed("uploaded parts"),
                2,
                Some("uploaded parts are kept (--resume)"),
            ),
            (UnfinishedFile::NotPartial, 0, None),
            (UnfinishedFile::None, 1, None),
        ] {
            assert_eq!(unfinished.text(files).as_deref(), text);
        }
    }

    #[test]
    fn items_are_asked_for_only_where_somebody_shows_them() {
        let none = ShowOptions::default();
        assert!(!none.items());
        assert!(ShowOptions { line: Line::Name { all: false }, ..none.clone() }.items());
        assert!(ShowOptions { joblog: Some("x".into()), ..none.clone() }.items());
        assert!(ShowOptions { log_file: Some("x".into()), ..none.clone() }.items());
        let manifest = ShowOptions { manifest: Some("x".into()), ..none.clone() };
        assert!(manifest.items() && manifest.items_unchanged() && !none.items_unchanged());
    }

    #[test]
    fn a_manifest_is_alone_on_standard_output() {
        let none = ShowOptions { manifest: Some("-".into()), ..ShowOptions::default() };
        assert_eq!(none.check_manifest(), Ok(()));
        let file = ShowOptions { manifest: Some("./-".into()), json: true, ..none.clone() };
        assert_eq!(file.check_manifest(), Ok(()));
        for mixed in [
            ShowOptions { json: true, ..none.clone() },
            ShowOptions { stats: true, ..none.clone() },
            ShowOptions { line: Line::Itemized, ..none.clone() },
            ShowOptions { whole: true, ..none.clone() },
        ] {
            assert!(mixed.check_manifest().is_err(), "{mixed:?}");
        }
    }
}
