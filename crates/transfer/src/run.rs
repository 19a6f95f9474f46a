//! One transfer from its description to its outcome: the only module that uses all others.

mod evidence;
mod objects;
mod paths;
mod remove;
mod steer;

use self::objects::{StoreSession, feed};
use self::steer::{Configuration, RunHints, Terms};
use crate::failure::c_string;
use crate::journal::{Journal, Ledger, LedgerScope, LedgerTarget};
use crate::local::Pass;
use crate::location::Location;
use crate::object::{ObjectEngine, Root};
pub use crate::plan::{Layout, Objects, Spec};
pub use hakobu_core::control::Control;
pub use hakobu_s3::RequestCounts;
pub use remove::{Keys, Removal, RemovalTarget, remove_objects};
pub use steer::steered;

use crate::plan::objects::{Claims, PlannedSource, refuse_unfit, resolve_sources};
use crate::plan::{Lines, TargetPlace};
use crate::policy::Delete;
use hakobu_core::error::Fatal;
use hakobu_core::event::{Event, Listener};
use hakobu_core::limit::{Capacity, Controls, check_memory};
use hakobu_core::meter::PHASES;
use hakobu_core::threads::for_each;
use hakobu_core::unit::Totals;
use hakobu_explain::tune::TuningStep;
use hakobu_explain::verdict::Verdict;
use hakobu_sys::{AsFd, dir};
use objects::ObjectTransfer;
use paths::PathTransfer;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs a transfer to its end.
///
/// # Errors
/// An error for the whole run before anything moved: incompatible options, an unusable target. A missing source
/// argument is not among these: it is a `Problem` and the others continue.
pub fn transfer(spec: &Spec, control: &Control, listener: &dyn Listener) -> Result<Outcome, Fatal> {
    let run = Run::of(spec, control, listener)?;
    if !spec.has_store() {
        let job = PathTransfer::open(spec, &run)?;
        return run.carry_out(&job);
    }
    match ObjectTransfer::open(spec, &run) {
        Err(_) if control.is_stopped() => Ok(run.stopped()),
        opened => run.carry_out(&opened?),
    }
}

// The end of a run.

/// Result of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The work done.
    pub totals: Totals,
    /// Wall time of the run.
    pub took: Duration,
    /// Number of workers used.
    pub jobs: usize,
    /// The run was asked to stop before it was finished.
    pub stopped: bool,
    /// The error that made all further work pointless (disk full, quota, read-only); code 11.
    pub fatal: Option<Fatal>,
    /// Requests to the stores of both sides; none between local paths.
    pub requests: RequestCounts,
    /// Findings of the controller.
    pub findings: Findings,
}

/// Findings of a run's controller.
#[derive(Debug, Default)]
pub struct Findings {
    /// The number of jobs that was set for most of the time.
    pub jobs: usize,
    /// The numbers of jobs that were used, and the goodput of each.
    pub path: Vec<TuningStep>,
    /// The mean number of workers in each phase; zeros where they were not observed.
    pub phases: [f64; PHASES],
    /// The verdict; `None` for runs that are too short.
    pub verdict: Option<Verdict>,
}

// The stages of every transfer, independent of the engine: check of the options, results of earlier runs, number of
// jobs, record, controller, passes, and totals.

/// A transfer between paths, a transfer with a store on a side, or a removal. Its arguments are resolved, and its
/// target exists.
trait Job {
    /// Returns the ends and limits of the run.
    fn terms(&self) -> Terms;
    /// Returns the record of the run, and those of other runs.
    fn ledger(&self) -> Ledger;
    /// Returns the passes over the entries, in order.
    fn passes(&self) -> &'static [Pass];
    /// Runs one pass; returns its totals, and the error that made all further work pointless.
    ///
    /// # Errors
    /// An error that prevents the pass from beginning.
    fn pass(&self, pass: Pass, resources: &Resources) -> Result<(Totals, Option<Fatal>), Fatal>;
    /// Returns whether the record is useless to a later run after everything was done.
    fn forgets_record(&self) -> bool {
        false
    }
    /// Cleans up after a run that was neither stopped nor aborted.
    fn tidy(&self) {}
    /// Returns the number of requests to stores.
    fn requests(&self) -> RequestCounts {
        RequestCounts::default()
    }
}

/// Resources shared by the passes of a run.
struct Resources {
    /// Gate, limiters and meter.
    pub controls: Arc<Controls>,
    /// Bounds of concurrency and open files.
    pub capacity: Capacity,
    /// The record of this run, and those of other runs.
    pub ledger: Arc<Ledger>,
}

/// A run that is about to begin.
struct Run<'a> {
    pub control: &'a Control,
    pub listener: &'a dyn Listener,
    started: Instant,
    hints: RunHints,
}

impl<'a> Run<'a> {
    /// Returns a run without information from earlier runs.
    pub fn new(control: &'a Control, listener: &'a dyn Listener) -> Run<'a> {
        Run { control, listener, started: Instant::now(), hints: RunHints::default() }
    }

    /// Returns the run of a transfer: checks the options, and reads the results of earlier runs.
    ///
    /// # Errors
    /// Incompatible options, a damaged file of job hints.
    pub fn of(
        spec: &Spec,
        control: &'a Control,
        listener: &'a dyn Listener,
    ) -> Result<Run<'a>, Fatal> {
        let run = Run::new(control, listener);
        spec.policy.check()?;
        if spec.target == Location::Local(PathBuf::new()) {
            return Err(Fatal::new(1, "an empty path names nothing"));
        }
        if spec.has_store() {
            refuse_unfit(spec)?;
        }
        let hints = RunHints::read(spec)?;
        let part_bytes = spec.objects.options.part_bytes;
        check_memory(spec.limits.memory_bytes_max, spec.has_store(), part_bytes)?;
        Ok(Run { hints, ..run })
    }

    /// Returns the outcome of a run that was stopped before it moved anything.
    pub fn stopped(self) -> Outcome {
        Outcome { took: self.started.elapsed(), stopped: true, ..Outcome::default() }
    }

    /// Runs the job.
    ///
    /// # Errors
    /// As [`Job::pass`].
    pub fn carry_out(self, job: &impl Job) -> Result<Outcome, Fatal> {
        let Run { control, listener, started, hints } = self;
        let configuration = Configuration::new(job.terms(), hints);
        let ledger = Arc::new(job.ledger());
        let resources = Resources {
            controls: Arc::clone(&configuration.controls),
            capacity: configuration.capacity,
            ledger,
        };
        listener.event(Event::Begins(&resources.controls.meter));
        let controller = configuration.begin(&resources.ledger);
        let (mut totals, mut fatal) = (Totals::default(), None);
        for pass in job.passes() {
            let (more, stopped_by) = job.pass(*pass, &resources)?;
            totals += more;
            fatal = fatal.take().or(stopped_by);
            // Never delete targets after an incomplete transfer.
            if fatal.is_some() || control.is_stopped() {
                break;
            }
        }
        let ended = !control.is_stopped() && fatal.is_none();
        let findings = controller.end(ended);
        let whole = totals.failed == 0 && totals.vanished == 0;
        resources.ledger.end(ended && whole && job.forgets_record());
        if ended {
            job.tidy();
        }
        Ok(Outcome {
            totals,
            took: started.elapsed(),
            jobs: findings.jobs,
            stopped: control.is_stopped() && fatal.is_none(),
            fatal,
            requests: job.requests(),
            findings,
        })
    }
}

/// Returns the passes of a transfer; with `may_delete` and by its policy a separate pass removes extraneous entries.
/// Removal during the transfer is part of its one pass.
fn passes(delete: Delete, may_delete: bool) -> &'static [Pass] {
    match delete {
        Delete::Before if may_delete => &[Pass::Delete, Pass::Transfer],
        Delete::After if may_delete => &[Pass::Transfer, Pass::Delete],
        _ => &[Pass::Transfer],
    }
}

// The scope of a run, for its record (`journal::Ledger`).

/// Maximum number of targets and sources that a record names.
const NAMED_MAX: usize = 64;
/// Stands for further sources. No path is equal to it.
const MORE: &[u8] = b"\0";

/// Returns the scope of a transfer between paths.
fn local(spec: &Spec, place: &TargetPlace) -> LedgerScope {
    // A directory that cannot be examined gets no matching record; the transfer reports the cause.
    let target = place.dir.as_ref().and_then(|dir| LedgerTarget::of(dir.as_fd()).ok());
    scope(spec, target.into_iter().collect())
}

/// Returns the scope of a transfer with a store.
fn with_session(spec: &Spec, planned_sources: &[PlannedSource]) -> LedgerScope {
    let mut targets: Vec<LedgerTarget> = Vec::new();
    for planned in planned_sources {
        if let Root::Local { dir, .. } = &planned.pair.target
            && let Ok(target) = LedgerTarget::of((**dir).as_fd())
            && !targets.contains(&target)
        {
            targets.push(target);
        }
    }
    scope(spec, targets)
}

/// Returns the scope of many transfers run as one.
fn of_all(specs: &[Spec]) -> LedgerScope {
    let mut folders: Vec<PathBuf> = Vec::new();
    for target in specs.iter().filter_map(|spec| spec.target.local()) {
        let folder = existing(target);
        if folder.as_ref().is_some_and(|folder| !folders.contains(folder)) {
            folders.extend(folder);
        }
        // Use the whole machine.
        if folders.len() > NAMED_MAX {
            folders = vec![PathBuf::from("/")];
            break;
        }
    }
    let targets = folders.iter().filter_map(|folder| target_at(folder)).collect();
    LedgerScope { targets, sources: vec![MORE.to_vec()], recurse: true, partial: true }
}

fn scope(spec: &Spec, mut targets: Vec<LedgerTarget>) -> LedgerScope {
    let policy = &spec.policy;
    let named = spec.sources.locations().take(NAMED_MAX).map(typed);
    let more = spec.sources.len() > NAMED_MAX;
    let sources = named.chain(more.then(|| MORE.to_vec())).collect();
    if targets.len() > NAMED_MAX {
        targets = target_at(Path::new("/")).into_iter().collect();
    }
    let partial = more
        || policy.filter.is_some()
        || spec.files_from.is_some()
        || spec.chosen.is_some()
        || policy.max_size.is_some()
        || policy.min_size.is_some()
        || policy.existing
        || policy.one_file_system;
    LedgerScope { targets, sources, recurse: policy.recurse, partial }
}

fn target_at(path: &Path) -> Option<LedgerTarget> {
    let fd = dir::open_root(&c_string(path.as_os_str().as_bytes()).ok()?).ok()?;
    LedgerTarget::of(fd.as_fd()).ok()
}

fn typed(source: Location) -> Vec<u8> {
    let path = match source {
        Location::Local(path) => std::path::absolute(&path).unwrap_or(path),
        other => other.as_typed(),
    };
    path.into_os_string().into_encoded_bytes()
}

/// Returns the nearest existing ancestor directory of a path.
fn existing(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().find(|path| path.is_dir()).map(Path::to_owned)
}

// Many transfers as one: they share everything except sources and targets, and so one engine, its connections and
// its jobs (`hakobu run`).

/// Maximum number of threads that resolve sources: each sends one request at a time.
const PLANNERS_MAX: usize = 32;

/// What the transfers of a run know of each other, in one or several calls of [`transfer_each`].
#[derive(Default)]
pub struct Together {
    lines: Lines,
    claims: Claims,
}

impl Together {
    /// Compares transfers with each other, in their order.
    pub fn of<'a>(specs: impl IntoIterator<Item = &'a Spec>) -> Together {
        Together { lines: Lines::of(specs), claims: Claims::default() }
    }
}

/// Runs transfers that each have a store on a side, all the same ones; options, policy and jobs are those of the
/// first, which has this number in `together`. `refused` receives the index and error of each that could not begin, from any thread.
///
/// # Errors
/// An error for all of them.
pub fn transfer_each(
    specs: &[Spec],
    (together, number): (&Together, usize),
    control: &Control,
    listener: &dyn Listener,
    refused: &(dyn Fn(usize, &Fatal) + Sync),
) -> Result<Outcome, Fatal> {
    let Some(first) = specs.first() else { return Ok(Outcome::default()) };
    let run = Run::of(first, control, listener)?;
    if first.policy.delete != Delete::No {
        return Err(Fatal::new(1, "--delete is not supported for several transfers at once"));
    }
    let session = StoreSession::open(first, &run)?;
    run.carry_out(&Batch { specs, session, refused, together, number })
}

struct Batch<'a> {
    specs: &'a [Spec],
    session: StoreSession<'a>,
    refused: &'a (dyn Fn(usize, &Fatal) + Sync),
    together: &'a Together,
    number: usize,
}

impl Batch<'_> {
    /// Resolves a transfer and hands it to the engine.
    fn plan(&self, engine: &ObjectEngine<'_>, at: usize, spec: &Spec) {
        if engine.is_stopped() {
            return;
        }
        let StoreSession { stores, umask, control, .. } = &self.session;
        match resolve_sources(spec, stores, *umask) {
            Ok((planned_sources, missing)) => {
                let Together { lines, claims } = self.together;
                let shared = Some((claims, lines, self.number + at));
                feed(engine, spec, stores, (&planned_sources, &missing), Pass::Transfer, shared);
            }
            Err(_) if control.is_stopped() => {}
            Err(fatal) => {
                (self.refused)(at, &fatal);
                engine.add(&Totals { failed: 1, ..Totals::default() });
                if spec.objects.options.exit_on_error {
                    engine.stop_for(fatal);
                }
            }
        }
    }
}

/// Its record is kept: its targets are known by their folders alone.
impl Job for Batch<'_> {
    fn terms(&self) -> Terms {
        self.session.terms()
    }

    fn ledger(&self) -> Ledger {
        Ledger::new(&Journal::of_user(), of_all(self.specs))
    }

    fn passes(&self) -> &'static [Pass] {
        &[Pass::Transfer]
    }

    fn pass(&self, _: Pass, resources: &Resources) -> Result<(Totals, Option<Fatal>), Fatal> {
        let planners = resources.controls.gate.jobs_max().min(PLANNERS_MAX);
        self.session.run(resources, |engine| {
            let collides = |at: usize| self.together.lines.collides(self.number + at);
            for_each(self.specs, planners, |at, spec| {
                if !collides(at) {
                    self.plan(engine, at, spec);
                }
            });
            // In their order, which decides who gets a name.
            for (at, spec) in self.specs.iter().enumerate().filter(|(at, _)| collides(*at)) {
                self.plan(engine, at, spec);
            }
            engine.all_found();
        })
    }

    fn requests(&self) -> RequestCounts {
        self.session.requests()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_passes() {
        let letters = |delete, may_delete| -> String {
            let passes = passes(delete, may_delete).iter();
            passes.map(|pass| if *pass == Pass::Delete { 'd' } else { 't' }).collect()
        };
        for (delete, order) in [
            (Delete::No, "t"),
            (Delete::Before, "dt"),
            (Delete::During, "t"),
            (Delete::After, "td"),
        ] {
            assert_eq!(letters(delete, true), order);
            assert_eq!(letters(delete, false), "t");
        }
    }
}
