//! Jobs that run once: laid out, run, reported, removed. While they run: fio's status line on a terminal, and interim
//! reports (`--status-interval`).

use crate::commands::session::stop_on_signals;
use crate::files::{is_stdout, write_file};
use crate::show::output::{self, Output};
use crate::show::{progress, screen};
use crate::{environment, exit};
use hakobu_core::error::cannot;
use hakobu_io::job::Job;
use hakobu_io::layout::{Layout, Safety, lay_out};
use hakobu_io::outcome::Outcome;
use hakobu_io::output::disks::Disks;
use hakobu_io::output::live::{TotalWork, line};
use hakobu_io::output::{Facts, json, logs, normal};
use hakobu_io::run::{self, Progress, run as run_jobs};
use hakobu_io::spec::{Eta, Format, Request};
use hakobu_lab::campaign::run::fingerprint;
use hakobu_lab::sweep::precondition;
use hakobu_sys::paths::Links;
use hakobu_transfer::run::Control;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The program as results name it.
const PROGRAM: &str = concat!("hakobu-", env!("CARGO_PKG_VERSION"));
/// Times that everything is written first: for sequential work, and for random work.
const PASSES: [u32; 2] = [1, 2];

/// Runs them; the exit code.
///
/// # Errors
/// A sentence: nothing was measured, or what was measured could not be written.
pub fn run_single(request: &Request) -> Result<u8, String> {
    let control = Control::default();
    stop_on_signals(&control, exit::IO_INTERRUPTED, "this");
    // Before anything is measured it is known that the result can be written.
    let report = match request.run.output.as_ref().filter(|path| !is_stdout(path)) {
        Some(path) => Some(
            Output::file(path, false, &Links::Trusted)
                .map_err(|error| cannot("write", path, error))?,
        ),
        None => None,
    };
    let mut jobs = request.jobs.clone();
    for job in &mut jobs {
        // Preconditioning writes, so writing must be allowed.
        job.rw.writes |= request.run.precondition;
    }
    run::check(&jobs)?;
    let Some(layout) = lay_out_jobs(&jobs, &request.run.safety, &control)? else {
        return Ok(exit::IO_INTERRUPTED);
    };
    let done = match request.run.precondition {
        true => precondition_jobs(&jobs, &layout, &control),
        false => Ok(true),
    };
    let done = done.and_then(|_| measure(request, &layout, report.as_ref(), &control));
    remove(&layout);
    let outcomes = done?;
    let failed =
        outcomes.iter().any(|outcome| outcome.error.is_some() || outcome.verify_errors > 0);
    Ok(match (control.is_stopped(), failed) {
        (true, _) => exit::IO_INTERRUPTED,
        (false, true) => exit::FAILURE,
        (false, false) => exit::OK,
    })
}

/// Lays files out; `None` if the user stopped it, in which case nothing of it remains.
pub fn lay_out_jobs(
    jobs: &[Job],
    safety: &Safety,
    control: &Control,
) -> Result<Option<Layout>, String> {
    match lay_out(jobs, safety, &control.flag()) {
        Err(_) if control.is_stopped() => Ok(None),
        laid => laid.map(Some),
    }
}

/// Removes laid out files unless they are kept.
pub fn remove(layout: &Layout) {
    for problem in layout.remove() {
        output::message(&problem);
    }
}

/// Writes all files before the first run; whether it was not stopped.
pub fn precondition_jobs(jobs: &[Job], layout: &Layout, control: &Control) -> Result<bool, String> {
    let passes = PASSES[usize::from(jobs.iter().any(|job| job.rw.random))];
    let mut told = 0;
    let mut tell = |done: u64, total: u64| {
        let percent = done * 100 / total.max(1);
        if percent >= told + 10 {
            told = percent;
            output::message(&format!("preconditioning: {percent}%"));
        }
    };
    Ok(precondition(&layout.files, passes, &control.flag(), &mut tell)?)
}

fn measure(
    request: &Request,
    layout: &Layout,
    report: Option<&Output>,
    control: &Control,
) -> Result<Vec<Outcome>, String> {
    let jobs = &request.jobs;
    if jobs.iter().all(|job| job.create_only) || control.is_stopped() {
        return Ok(Vec::new());
    }
    let say = |text: &str| match report {
        Some(report) => report.write(text.as_bytes()),
        None => output::text(text),
    };
    if request.run.format == Format::Normal {
        say(&normal::head(jobs, PROGRAM));
    }
    let machine = fingerprint::machine(&target_places(layout), environment::instance_type());
    let disks = Disks::begin(layout.files.iter().map(|file| file.path.as_path()));
    let began = Instant::now();
    let write_report = |outcomes: &[Outcome]| {
        let (elapsed, now) = (began.elapsed(), jiff::Zoned::now());
        let facts = Facts {
            program: PROGRAM.into(),
            at_ms: u64::try_from(now.timestamp().as_millisecond()).unwrap_or(0),
            at_text: now.strftime("%a %b %e %H:%M:%S %Y").to_string(),
            elapsed,
            pid: std::process::id(),
            globals: request.globals.clone(),
            warnings: request.warnings.clone(),
            machine: machine.clone(),
            disks: disks.end(elapsed),
            stopped: control.is_stopped(),
        };
        let text = match request.run.format {
            Format::Normal => normal::normal(jobs, outcomes, &facts),
            Format::Json => json::json(jobs, outcomes, &facts, false)?,
            Format::JsonPlus => json::json(jobs, outcomes, &facts, true)?,
        };
        say(&text);
        Ok::<_, String>(())
    };
    let mut live = IoProgress::new(request, layout);
    let mut so_far = Ok(());
    let ran = run_jobs(jobs, layout, &control.flag(), live.every(), &mut |view| {
        if live.show(&view.progress) {
            so_far = write_report(&view.outcomes());
        }
    });
    screen::clear();
    let outcomes = ran?;
    tell(jobs, &outcomes);
    so_far.and_then(|()| write_report(&outcomes))?;
    if let Some(error) = report.and_then(Output::finish) {
        let path = request.run.output.as_deref().unwrap_or("".as_ref());
        return Err(cannot("write", path, error));
    }
    for log in logs::logs(jobs, &outcomes) {
        write_file(&log.path, &log.text)?;
    }
    Ok(outcomes)
}

/// Returns the distinct folders of the files, each by a label.
pub fn target_places(layout: &Layout) -> BTreeMap<String, PathBuf> {
    let mut folders: Vec<&Path> = Vec::new();
    for file in &layout.files {
        let folder = if file.device { Some(file.path.as_path()) } else { file.path.parent() };
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let is_only = folders.len() == 1;
    let label = |at: usize| if is_only { "files".into() } else { format!("files {}", at + 1) };
    folders.into_iter().enumerate().map(|(at, path)| (label(at), path.to_owned())).collect()
}

/// Says what went wrong, each once.
fn tell(jobs: &[Job], outcomes: &[Outcome]) {
    let mut told: Vec<&str> = Vec::new();
    for outcome in outcomes {
        let Some((_, why)) = &outcome.error else { continue };
        if !told.contains(&why.as_str()) {
            let name = jobs.get(outcome.job).map_or("", |job| job.name.as_str());
            output::message(&format!("{name}: {why}"));
            told.push(why);
        }
    }
}

/// Interval between two status lines.
const PAUSE: Duration = Duration::from_millis(500);
/// Interval without output; the run may still be stopped.
const IDLE: Duration = Duration::from_secs(1);

/// State of the output.
struct IoProgress<'a> {
    request: &'a Request,
    whole: TotalWork,
    /// Progress at the last line.
    seen: Progress,
    /// The line is drawn.
    has_line: bool,
    /// Number of reports so far.
    reports: u32,
    /// Set by SIGUSR1.
    signalled: Arc<AtomicBool>,
}

impl<'a> IoProgress<'a> {
    /// Creates the state before anything is shown.
    fn new(request: &'a Request, layout: &Layout) -> IoProgress<'a> {
        let clone_bytes = |job: usize| {
            let clone = layout.clones.iter().find(|clone| clone.job == job && clone.clone == 0);
            clone.map_or(0, |clone| clone.extents.iter().map(|extent| extent.bytes).sum())
        };
        let has_line = match request.run.eta {
            Eta::Auto => screen::redraws(),
            Eta::Always => true,
            Eta::Never => false,
        };
        IoProgress {
            request,
            whole: TotalWork::of(&request.jobs, clone_bytes),
            seen: Progress::default(),
            has_line,
            reports: 0,
            signalled: progress::signal_flag(),
        }
    }

    /// Returns the interval between calls of [`IoProgress::show`].
    fn every(&self) -> Duration {
        let status = self.request.run.status_interval.unwrap_or(IDLE);
        if self.has_line { status.min(PAUSE) } else { status }
    }

    /// Draws the line; returns whether a report is due (`status_interval`), in which case the line was erased.
    fn show(&mut self, progress: &Progress) -> bool {
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
