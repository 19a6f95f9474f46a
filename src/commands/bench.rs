//! `hakobu bench`: measures commands, or a whole campaign, side by side; its progress, and the text of its plan and report.

mod options;
mod plans;

use super::session::stop_on_signals;
use super::tool::carry_out;
use crate::files::{self, is_stdout, write_file};
use crate::show::progress::{Progress, ProgressForm};
use crate::show::{output, screen};
use crate::{environment, exit, names, number};
use hakobu_core::error::{Cause, cannot, quoted};
use hakobu_core::language::Language;
use hakobu_lab::analysis::analyse;
use hakobu_lab::analysis::ranking::Baseline;
use hakobu_lab::campaign::own_folder::{FolderMark, OwnFolder};
use hakobu_lab::campaign::plan::{self, PlanEnvironment, PlanOptions};
use hakobu_lab::campaign::run::fingerprint::{self, HeaderFacts};
use hakobu_lab::campaign::run::local::LocalBench;
use hakobu_lab::campaign::run::order::{first_block, runs_max};
use hakobu_lab::campaign::run::{self, CampaignEvent};
use hakobu_lab::campaign::spec::CampaignSpec;
use hakobu_lab::campaign::{CampaignPlan, PlannedCell, RunAction, RunCheck};
use hakobu_lab::report::terminal::{TerminalOptions, terminal};
use hakobu_lab::results::read::read;
use hakobu_lab::results::store::ResultsStore;
use hakobu_lab::results::{Cell, Results, hyperfine};
use hakobu_sys::child;
use hakobu_transfer::run::Control;
pub use options::TABLE;
use options::{BenchArgs, Source, Task};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Number of digits in the generated secrets of embedded servers.
const SECRET_DIGITS: usize = 16;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let ready = |typed| Ready::new(options::parse_args(&typed)?);
    carry_out(TABLE.parse(&arguments), ready, |ready| ready.run())
}

/// A campaign that is ready to run.
struct Ready {
    args: BenchArgs,
    plan: CampaignPlan,
    scale: f64,
    /// The working folder, if this program must remove it.
    work: Option<PathBuf>,
    /// Path of this program.
    own: PathBuf,
}

impl Ready {
    /// Makes the plan for a command line.
    fn new(args: BenchArgs) -> Result<Ready, String> {
        let own = std::env::current_exe()
            .map_err(|error| format!("cannot find this program: {}", Cause::System(error)))?;
        let mut work = None;
        let (mut plan, scale) = match &args.task {
            Task::Commands(commands) => (plans::plan_commands(commands, &args)?, 1.0),
            Task::Print(_) => (CampaignPlan::default(), 1.0),
            Task::Campaign(source) => {
                let spec = spec(source)?;
                let wishes = wishes(&args, &spec.header.name, &own)?;
                if args.work.is_none() {
                    work = Some(wishes.work.clone());
                }
                let scale = plan::scale(&spec, &wishes)?;
                (plan::make(&spec, &wishes, &PlanEnvironment::here())?, scale)
            }
        };
        args.apply(&mut plan.repeat)?;
        for planned in &mut plan.cells {
            if let Some(timeout) = args.timeout {
                planned.launch.timeout = Some(timeout);
            }
        }
        if let Some(wanted) = &args.only {
            plans::keep_only(&mut plan, wanted)?;
        }
        Ok(Ready { args, plan, scale, work, own })
    }

    /// Runs it; returns the exit code.
    fn run(&self) -> Result<u8, String> {
        if let Task::Print(text) = &self.args.task {
            output::text(text);
            return Ok(exit::OK);
        }
        if self.args.dry_run {
            output::text(&plan_text(&self.plan));
            return Ok(exit::OK);
        }
        let control = Control::default();
        stop_on_signals(&control, exit::BENCH_INTERRUPTED, "this");
        let start = now();
        self.check_exports()?;
        let folder = match &self.args.results {
            Some(folder) => folder.clone(),
            None => new_folder(&environment::results_folder()?, &self.plan.header.name, &start)?,
        };
        let facts = HeaderFacts {
            scale: self.scale,
            machine_name: self.args.machine.clone(),
            ..facts(start)
        };
        let (mut store, mut local) =
            open_results(&folder, &self.plan, &facts, &self.own, &control)?;
        if !self.args.quiet {
            for line in &self.plan.header.left_out {
                output::message(&format!("left out: {line}"));
            }
            let before = store.runs.len();
            let goes_on = match before {
                0 => String::new(),
                _ => format!(", which has {before} runs already"),
            };
            output::message(&format!("results go to {}{goes_on}", quoted(&folder)));
        }
        let work = match &self.work {
            Some(work) => Some(OwnFolder::claim(work, FolderMark::Inside)?),
            None => None,
        };
        let hint = if self.plan.header.text.is_empty() { FAILED } else { "" };
        let mut live = BenchProgress::new(self.args.quiet, self.args.style.progress, hint);
        let how = run::SessionOptions { prove: self.args.prove, cpus: hakobu_sys::process::cpus() };
        let mut show = |event: run::CampaignEvent<'_>| live.show(&event);
        let outcome = run::run(&self.plan, &how, &mut store, &mut local, &mut show);
        live.end();
        drop(store);
        let outcome = outcome?;
        if let Some(work) = work.filter(|_| !outcome.is_stopped()) {
            // It holds the data sets, which the next campaign makes again.
            if let Err(why) = work.remove() {
                output::message(&why.to_string());
            }
        }
        let results = read(&folder)?;
        if !self.args.quiet {
            let baseline = self.args.baseline.as_ref();
            let report = report_text(&results, &self.args.look(), baseline)?;
            // An export to standard output must be the only output there.
            match self.args.exports.iter().any(|(_, path)| is_stdout(path)) {
                true => output::error_text(&report),
                false => output::text(&report),
            }
        }
        for (form, path) in &self.args.exports {
            write_file(path, &hyperfine::export(&results, *form, &self.args.table_look())?)?;
        }
        if outcome.is_stopped() {
            output::message(&format!(
                "stopped; the same command with --results {} continues",
                quoted(&folder)
            ));
            return Ok(exit::BENCH_INTERRUPTED);
        }
        let failed = outcome.failed + outcome.failed_after;
        Ok(if failed > 0 { exit::FAILURE } else { exit::OK })
    }

    fn check_exports(&self) -> Result<(), String> {
        match self.args.exports.iter().filter(|(_, path)| is_stdout(path)).count() {
            0 | 1 => Ok(()),
            _ => Err("only one export can go to standard output (-)".to_owned()),
        }
    }
}

/// Returns the facts about a campaign that begins now.
pub(super) fn facts(start: String) -> HeaderFacts {
    let program = concat!("hakobu ", env!("CARGO_PKG_VERSION")).to_owned();
    HeaderFacts { program, start, scale: 1.0, machine_name: None }
}

/// Opens a folder for the results of a campaign, and this machine to run it. `own`: path of this program.
pub(super) fn open_results(
    folder: &Path,
    plan: &CampaignPlan,
    facts: &HeaderFacts,
    own: &Path,
    control: &Control,
) -> Result<(ResultsStore, LocalBench), String> {
    let probe = LocalBench::new(own.to_owned(), None, control.flag());
    let header = fingerprint::header(plan, facts, environment::instance_type, &probe);
    let store = ResultsStore::open(folder, &header, &facts.start)?;
    // It ends what a killed run left, which the lock of the store shows to be dead.
    Ok((store, LocalBench::new(own.to_owned(), Some(folder), control.flag())))
}

/// Reads the campaign of a source.
fn spec(source: &Source) -> Result<CampaignSpec, String> {
    Ok(match source {
        Source::Builtin(campaign) => CampaignSpec::parse(campaign.name, campaign.text)?,
        Source::File(file) => {
            CampaignSpec::parse(&file.to_string_lossy(), &names::read_text(file)?)?
        }
    })
}

/// Returns the current time, RFC 3339 in UTC, whole seconds.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns a new folder with that name and time.
pub(super) fn new_folder(within: &Path, name: &str, start: &str) -> Result<PathBuf, String> {
    let time: String = start.chars().filter(|c| c.is_ascii_digit()).collect();
    let (day, time) = time.split_at(time.len().min(8));
    let first = format!("{name}-{day}-{time}");
    files::make_folder(within)?;
    for number in 1..1000 {
        let name = if number == 1 { first.clone() } else { format!("{first}-{number}") };
        let folder = within.join(name);
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(cannot("make", &folder, error));
            }
        }
    }
    Err(format!("there are too many results in {}", quoted(within)))
}

/// Returns the settings of a campaign from the command line.
fn wishes(args: &BenchArgs, name: &str, own: &Path) -> Result<PlanOptions, String> {
    let absolute =
        |path: &Path| std::path::absolute(path).map_err(|error| cannot("use", path, error));
    let folder = |path: &Option<PathBuf>, below: &str| match path {
        Some(path) => absolute(path),
        None => Ok(environment::cache_folder()?.join(below)),
    };
    let secret = match args.dry_run {
        true => "x".repeat(SECRET_DIGITS),
        false => super::tool::random_key()
            .map_err(|error| format!("cannot generate a key: {}", Cause::System(error)))?,
    };
    Ok(PlanOptions {
        scale: args.scale,
        places: args.places.clone(),
        work: folder(&args.work, &format!("work/{name}"))?,
        cache: folder(&args.cache, "data")?,
        own: own.to_owned(),
        secret_key: secret,
    })
}

/// Hint for a command that was not written into a campaign.
const FAILED: &str = "\nhint: -i counts runs with any exit code, -i=CODES those with these";

/// A shell's exit code if there is no such command, and the hint then.
const NOT_FOUND: i32 = 127;
const UNKNOWN: &str = "\nhint: hakobu bench --list lists the campaigns";

/// Interval in which the line shows how long the run under way takes.
const TICK: Duration = Duration::from_secs(1);

/// The progress line.
pub struct BenchProgress {
    quiet: bool,
    /// Problems already reported.
    reported: BTreeSet<String>,
    /// Duration of the last run.
    last: String,
    /// Duration of the last run of each setting, seconds.
    lasted_s: BTreeMap<u32, f64>,
    /// What a failed command may need.
    hint: &'static str,
    line: Arc<StatusLine>,
    /// Ends the thread that renews the line, when it is dropped.
    ticks: Option<Sender<()>>,
}

/// The line, and what it is about.
struct StatusLine {
    /// It is shown.
    interactive: bool,
    shown: Mutex<Option<Activity>>,
    progress: Progress,
}

/// Something under way.
struct Activity {
    since: Instant,
    /// Time for which Ctrl-Z had stopped everything before.
    paused: Duration,
    what: ActivityKind,
}

enum ActivityKind {
    /// A setup command, a data set, an experiment.
    Text(String),
    /// A run.
    Run {
        name: String,
        warmup: bool,
        done: usize,
        most: usize,
        at_s: f64,
        last: String,
        /// Duration of the last run of the same setting.
        same_s: Option<f64>,
    },
}

impl BenchProgress {
    /// Makes an empty line; with `quiet` it stays empty. `interactive`: whether one line shows the progress; `None`:
    /// on a terminal. `hint`: a line for commands that fail, or nothing.
    pub fn new(quiet: bool, interactive: Option<bool>, hint: &'static str) -> BenchProgress {
        let progress = Progress::start(ProgressForm::OnSignal, Language::English, |_| {});
        let interactive = !quiet && interactive.unwrap_or_else(screen::redraws);
        BenchProgress {
            quiet,
            reported: BTreeSet::new(),
            last: String::new(),
            lasted_s: BTreeMap::new(),
            hint,
            line: Arc::new(StatusLine { interactive, shown: Mutex::default(), progress }),
            ticks: None,
        }
    }

    /// Shows an event.
    pub fn show(&mut self, event: &CampaignEvent<'_>) {
        match event {
            CampaignEvent::Data(name) => self.draw(ActivityKind::Text(format!("data set {name}"))),
            CampaignEvent::Setup(command) => {
                self.draw(ActivityKind::Text(format!("setup: {command}")))
            }
            CampaignEvent::Experiment { cell, about } => {
                self.draw(ActivityKind::Text(format!("experiment: {} | {about}", cell_name(cell))));
            }
            CampaignEvent::Begins { cell, warmup, done, most, at_s } => {
                self.draw(ActivityKind::Run {
                    name: cell_name(cell),
                    warmup: *warmup,
                    done: *done,
                    most: *most,
                    at_s: *at_s,
                    last: self.last.clone(),
                    same_s: self.lasted_s.get(&cell.id).copied(),
                })
            }
            CampaignEvent::Ended { cell, run } => {
                self.last = format!("last {:.3} s", run.wall_s);
                self.lasted_s.insert(cell.id, run.wall_s);
                if let Some(problem) = &run.problem {
                    // One word may be meant as the name of a campaign.
                    let is_word = !cell.command.contains(char::is_whitespace);
                    let hint = match run.exit_code {
                        None | Some(0) => "",
                        Some(NOT_FOUND) if is_word && !self.hint.is_empty() => UNKNOWN,
                        Some(_) => self.hint,
                    };
                    if !hint.is_empty() {
                        // Once is enough.
                        self.hint = "";
                    }
                    self.report(&format!("{}: {problem}{hint}", cell_name(cell)));
                }
            }
            CampaignEvent::Teardown(why) => self.report(&format!("cleanup: {why}")),
        }
    }

    /// Removes the line.
    pub fn end(&mut self) {
        *self.line.shown.lock() = None;
        self.ticks = None;
        screen::clear();
    }

    fn report(&mut self, message: &str) {
        if !self.quiet && self.reported.insert(message.to_owned()) {
            output::message(message);
        }
    }

    fn draw(&mut self, what: ActivityKind) {
        *self.line.shown.lock() =
            Some(Activity { since: Instant::now(), paused: child::paused_time(), what });
        self.line.draw();
        if self.ticks.is_none() {
            let (sender, ends) = mpsc::channel();
            let line = Arc::clone(&self.line);
            let tick = move || {
                while ends.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    line.renew();
                }
            };
            // Without a thread the line shows what began only.
            let thread = std::thread::Builder::new().name("line".into()).spawn(tick);
            self.ticks = thread.is_ok().then_some(sender);
        }
    }
}

impl StatusLine {
    fn draw(&self) {
        let shown = self.shown.lock();
        let Some(text) = shown.as_ref().map(Activity::words) else { return };
        self.progress.says(&text);
        if self.interactive {
            screen::show(&text);
        }
    }

    /// Draws it anew with the time that has passed. A line that cannot be redrawn stays as it is.
    fn renew(&self) {
        let shown = self.shown.lock();
        let Some(text) = shown.as_ref().map(Activity::words) else { return };
        self.progress.says(&text);
        if self.interactive && screen::redraws() {
            screen::show(&text);
        }
    }
}

impl Activity {
    fn words(&self) -> String {
        let paused = child::paused_time().saturating_sub(self.paused);
        self.what.words(self.since.elapsed().saturating_sub(paused).as_secs_f64())
    }
}

/// Returns the name of a cell in messages: where the tool is called by a command with parameters, the command itself.
fn cell_name(cell: &Cell) -> String {
    let swept = cell.x.map_or(String::new(), |x| format!(" @{x}"));
    let name = match cell.series.contains('{') && !cell.command.is_empty() {
        true => cell.command.clone(),
        false => format!("{}{swept}", cell.series),
    };
    let control = if cell.control_of.is_some() { " (A/A test of noise)" } else { "" };
    format!("{name}{control}")
}

impl ActivityKind {
    /// Returns the progress in one line, the most important part first; `for_s`: seconds since it began.
    fn words(&self, for_s: f64) -> String {
        let took = if for_s >= 1.0 { format!(" | {}", time_text(for_s)) } else { String::new() };
        let (name, warmup, done, most, at_s, last, same_s) = match self {
            ActivityKind::Text(text) => return format!("{text}{took}"),
            ActivityKind::Run { name, warmup, done, most, at_s, last, same_s } => {
                (name, *warmup, *done, *most, *at_s, last, *same_s)
            }
        };
        let mut out = format!(
            "run {} of at most {}{took}",
            number::grouped(done as u64 + 1),
            number::grouped(most as u64)
        );
        if done > 0 {
            let after = most.saturating_sub(done + 1) as f64;
            let mean_s = at_s / done as f64;
            // A run that takes longer than those before it says what the later ones may take.
            let each_s = mean_s.max((at_s + for_s) / (done + 1) as f64);
            let own_s = (same_s.unwrap_or(mean_s) - for_s).max(0.0);
            // Of a last run that takes longer than expected the end is not known.
            if own_s > 0.0 || after > 0.0 {
                let left = time_text(own_s + each_s * after);
                out.push_str(&format!(" | at most {left} left"));
            }
        }
        out.push_str(&format!(" | {name}"));
        if warmup {
            out.push_str(" (warm-up)");
        }
        if !last.is_empty() {
            out.push_str(&format!(" | {last}"));
        }
        out
    }
}

/// Formats a time: `42 s`, `3 min`, `1.5 h`.
fn time_text(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        ..5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// Default number of characters per line.
const COLUMNS: usize = 100;

/// Returns the report about results, for standard output. Width and colours are those of the terminal, unless `look`
/// overrides them.
///
/// # Errors
/// No setting is the baseline.
pub fn report_text(
    results: &Results,
    look: &TerminalOptions,
    baseline: Option<&Baseline>,
) -> Result<String, String> {
    let mut analysis = analyse(results);
    if let Some(baseline) = baseline {
        analysis.compare_with(results, baseline)?;
    }
    Ok(terminal(results, &analysis, look))
}

/// Returns the number of characters per line of standard output, and whether it may have colours.
pub fn terminal_size(no_color: bool) -> (usize, bool) {
    let is_terminal = io::stdout().is_terminal();
    // https://no-color.org: any non-empty value disables colours.
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|text| !text.is_empty());
    let columns = hakobu_sys::stdio::columns(io::stdout()).filter(|_| is_terminal);
    (columns.unwrap_or(COLUMNS), is_terminal && !no_color && !is_plain)
}

/// Returns the appearance of a report on standard output.
pub fn terminal_look(no_color: bool) -> TerminalOptions {
    let (columns, color) = terminal_size(no_color);
    TerminalOptions::new(columns, color)
}

/// Returns the commands that would be run.
pub fn plan_text(plan: &CampaignPlan) -> String {
    let mut out = format!("{}: {}\n", plan.header.name, plan.header.title);
    if !plan.header.question.is_empty() {
        let _ = writeln!(out, "{}", plan.header.question);
    }
    let repeat = &plan.repeat;
    let often = match repeat.min == repeat.max {
        true => number::things(u64::from(repeat.min), "run"),
        false => format!("{} to {} runs", repeat.min, repeat.max),
    };
    let _ = write!(
        out,
        "{} of {often} and {} each: at most {}",
        number::things(plan.cells.len() as u64, "configuration"),
        number::things(u64::from(repeat.warmup), "warm-up"),
        number::things(runs_max(plan) as u64, "run")
    );
    if let Some(budget) = repeat.budget {
        let _ = write!(out, ", none begun after {} s", budget.as_secs_f64());
    }
    out.push('\n');
    for data in &plan.header.data {
        let (files, bytes) = (number::things(data.files, "file"), number::bytes(data.bytes));
        let _ = writeln!(out, "data set {}: {files}, {bytes}; {}", data.name, data.about);
    }
    for server in &plan.servers {
        let what = server.folder.as_ref().map_or("nothing".into(), |dir| dir.display().to_string());
        let _ = writeln!(out, "server {} on {}: serves {what}", server.label, server.listen);
    }
    for line in &plan.header.left_out {
        let _ = writeln!(out, "left out: {line}");
    }
    for command in &plan.setup {
        let _ = writeln!(out, "setup: {command}");
    }
    out.push('\n');
    for planned in &plan.cells {
        push_cell(planned, &mut out);
    }
    for command in &plan.teardown {
        let _ = writeln!(out, "cleanup: {command}");
    }
    let order: Vec<String> = first_block(plan).iter().map(u32::to_string).collect();
    let _ = writeln!(out, "\norder of the first block: {}", order.join(" "));
    out
}

fn push_cell(planned: &PlannedCell, out: &mut String) {
    let cell = &planned.cell;
    let _ = write!(out, "{:>4}  {}", cell.id, cell.series);
    if let Some(x) = cell.x {
        let _ = write!(out, " @{x}");
    }
    for (name, value) in &cell.conditions {
        let _ = write!(out, ", {name} {value}");
    }
    if let Some(of) = cell.control_of {
        let _ = write!(out, ", the same as {of}");
    }
    out.push('\n');
    for action in &planned.prepare {
        let _ = writeln!(out, "      before: {}", action_text(action));
    }
    let _ = writeln!(out, "      {}", cell.command);
    for command in &planned.conclude {
        let _ = writeln!(out, "      after: {command}");
    }
    let checked = match &planned.check {
        RunCheck::Exit => return,
        RunCheck::Tree { source, target, compare } => {
            let some = if *compare == u64::MAX { "all".to_owned() } else { compare.to_string() };
            let (source, target) = (source.display(), target.display());
            format!("{target} has the files of {source}, contents of {some} compared")
        }
        RunCheck::Count { target, files, bytes } => {
            let bytes = bytes.map_or(String::new(), |bytes| format!(" with {bytes} bytes"));
            format!("{files} files{bytes} in {}", target.display())
        }
    };
    let _ = writeln!(out, "      checked: {checked}");
}

fn action_text(action: &RunAction) -> String {
    match action {
        RunAction::Empty { own, below } => format!("empty {}", own.join(below).display()),
        RunAction::Cold(path) => format!("{} out of the page cache", path.display()),
        RunAction::Warm(path) => format!("{} into the page cache", path.display()),
        RunAction::Sync => "write everything back".into(),
        RunAction::Shell(command) => command.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_how_far_it_is() {
        let run = |warmup, done, most, at_s, last: &str| {
            let name = cell_name(&Cell { series: "rsync".into(), x: Some(4.0), ..Cell::default() });
            ActivityKind::Run { name, warmup, done, most, at_s, last: last.into(), same_s: None }
        };
        assert_eq!(
            run(true, 0, 1200, 0.0, "").words(0.2),
            "run 1 of at most 1,200 | rsync @4 (warm-up)"
        );
        assert_eq!(
            run(false, 10, 30, 100.0, "last 9.000 s").words(0.0),
            "run 11 of at most 30 | at most 3 min left | rsync @4 | last 9.000 s"
        );
        // One that takes longer than all before it.
        assert_eq!(
            run(false, 2, 4, 4.0, "last 2.000 s").words(596.0),
            "run 3 of at most 4 | 10 min | at most 3 min left | rsync @4 | last 2.000 s"
        );
        assert_eq!(
            run(false, 3, 4, 4.0, "last 2.000 s").words(9.0),
            "run 4 of at most 4 | 9 s | rsync @4 | last 2.000 s"
        );
        assert_eq!(ActivityKind::Text("setup: make".into()).words(42.0), "setup: make | 42 s");
        assert_eq!(
            [time_text(3.4), time_text(600.0), time_text(7200.0)],
            ["3 s", "10 min", "2.0 h"]
        );
    }
}
