//! One transfer from its description to its outcome: the only module that uses all others.

mod candidates;
mod directories;
mod evidence;
mod far;
mod lanes;
mod objects;
#[cfg(test)]
mod range_tests;
mod remove;
mod steer;

use self::objects::{ObjectTransfer, StoreSession, feed};
use self::steer::{Configuration, RunHints, Terms};
use crate::failure::c_string;
use crate::far::{LaneEnd, SourceEnd, TargetEnd};
use crate::journal::{Journal, Ledger, LedgerScope, LedgerTarget};
use crate::local::guard::{Guard, GuardedSources};
use crate::local::{
    FarOwners, FarTarget, LocalEngine, LocalSetup, Pass, Receiving, SEGMENT_BYTES_MAX, SourceFacts,
    SourceRemoval, TargetMode,
};
use crate::location::Location;
use crate::object::{ObjectEngine, Root};
use crate::plan::objects::{Claims, PlannedSource, Stores, refuse_unfit, resolve_sources};
use crate::plan::{self, Argument, Lines, TargetPlace};
pub use crate::plan::{Layout, Objects, RemoteEnd, Spec};
use crate::policy::{Delete, NameRange, Policy, Symlinks};
pub use candidates::{Candidate, remove_candidates};
pub use directories::set_directories;
pub use far::{Agent, AgentTask, verify_with_agent};
pub use hakobu_core::control::Control;
use hakobu_core::error::{Cause, Fatal, quoted};
use hakobu_core::event::{Event, Listener, Remark};
use hakobu_core::limit::{Capacity, Controls, check_memory};
use hakobu_core::meter::PHASES;
use hakobu_core::threads::for_each;
use hakobu_core::unit::{Jobs, Kind, Totals};
use hakobu_explain::tune::TuningStep;
use hakobu_explain::verdict::Verdict;
pub use hakobu_remote::link::Traffic;
pub use hakobu_s3::RequestCounts;
use hakobu_sys::paths::{RefusedLink, ancestors};
use hakobu_sys::{AsFd, OwnedFd, dir, disk, errno, meta, process};
use hakobu_tree::pool;
pub use objects::cut;
use parking_lot::Mutex;
pub use remove::{Keys, Removal, RemovalTarget, remove_objects};
use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
pub use steer::steered;

/// Runs a transfer to its end.
///
/// # Errors
/// An error for the whole run before anything moved: incompatible options, an unusable target. A missing source
/// argument is not among these: it is a `Problem` and the others continue.
pub fn transfer(spec: &Spec, control: &Control, listener: &dyn Listener) -> Result<Outcome, Fatal> {
    let run = Run::of(spec, control, listener)?;
    if let Some(remote) = &spec.remote {
        return far::with_agent(spec, remote, run);
    }
    if !spec.has_store() {
        let job = PathTransfer::open(spec, &run, RunEnd::Both)?;
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
    /// Bytes of the link to another machine.
    pub traffic: Option<Traffic>,
    /// Findings of the controller.
    pub findings: Findings,
}

impl Outcome {
    /// Merges the outcomes of two runs, one after the other.
    #[must_use]
    pub fn merged(mut self, second: Outcome) -> Outcome {
        self.totals += second.totals;
        Outcome {
            totals: self.totals,
            took: self.took + second.took,
            jobs: self.jobs.max(second.jobs),
            stopped: self.stopped || second.stopped,
            fatal: self.fatal.or(second.fatal),
            requests: self.requests + second.requests,
            traffic: self.traffic.or(second.traffic),
            findings: if second.took > self.took { second.findings } else { self.findings },
        }
    }
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
    /// Keeps what the next run can use, however this one ended.
    fn keep(&self) {}
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

/// Totals of all passes, and the error that made all further work pointless.
type PassesResult = Result<(Totals, Option<Fatal>), Fatal>;

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
        if spec.range.is_some() {
            plan::can_be_cut(spec).map_err(refuse_range)?;
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

    pub fn carry_out(self, job: &impl Job) -> Result<Outcome, Fatal> {
        self.carry_out_with(job, |_, work| work())
    }

    /// As `carry_out`; `beside` calls the work, and does something beside it.
    fn carry_out_with(
        self,
        job: &impl Job,
        beside: impl FnOnce(&Arc<Controls>, &dyn Fn() -> PassesResult) -> PassesResult,
    ) -> Result<Outcome, Fatal> {
        let Run { control, listener, started, hints } = self;
        let configuration = Configuration::new(job.terms(), hints);
        let ledger = Arc::new(job.ledger());
        let resources = Resources {
            controls: Arc::clone(&configuration.controls),
            capacity: configuration.capacity,
            ledger,
        };
        listener.event(Event::Begins(&resources.controls.meter));
        if resources.controls.bytes.is_some() || resources.controls.operations.is_some() {
            listener.event(Event::Limited(&resources.controls));
        }
        let controller = configuration.begin(&resources.ledger);
        let work = || {
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
            Ok((totals, fatal))
        };
        let (totals, fatal) = beside(&resources.controls, &work)?;
        let ended = !control.is_stopped() && fatal.is_none();
        let findings = controller.end(ended);
        let whole = totals.failed == 0 && totals.vanished == 0;
        let took = started.elapsed();
        job.keep();
        resources.ledger.end(ended && whole && job.forgets_record());
        if ended {
            job.tidy();
        }
        Ok(Outcome {
            totals,
            took,
            jobs: findings.jobs,
            stopped: control.is_stopped() && fatal.is_none(),
            fatal,
            requests: job.requests(),
            traffic: None,
            findings,
        })
    }
}

/// Refuses a range of a transfer that has none, for a reason of [`plan::can_be_cut`].
fn refuse_range(why: &'static str) -> Fatal {
    Fatal::new(1, format!("there are no ranges of a transfer that {why}"))
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

// Transfers between paths, and from paths to `null:`.

/// A transfer between paths whose target exists.
struct PathTransfer<'a> {
    spec: &'a Spec,
    control: &'a Control,
    listener: &'a dyn Listener,
    policy: Policy,
    arguments: Vec<Argument>,
    /// The range of paths in the transfer that it is limited to.
    range: Option<NameRange>,
    place: TargetPlace,
    mode: TargetMode,
    /// The target lies inside a source.
    inside_source: bool,
    umask: Umask,
    /// Number of basis trees that are refused.
    bases_failed: u64,
    /// What the sources hold, as far as options need it.
    sources: Arc<GuardedSources>,
    /// Sources to remove after the last pass.
    removals: Mutex<Vec<SourceRemoval>>,
    /// Sources and names of this run that it must not lose to itself.
    guard: Guard,
    /// The need for space that is counted beside the transfer.
    space: Mutex<Option<plan::Count>>,
    end: RunEnd<'a>,
}

/// The ends of a transfer that are on this machine.
#[derive(Clone, Copy)]
enum RunEnd<'a> {
    Both,
    /// The source.
    Source(&'a SourceEnd<'a>),
    /// The target, and what the sources are.
    Target(&'a TargetEnd<'a>, &'a SourceFacts),
}

impl<'a> PathTransfer<'a> {
    /// Examines the arguments and creates the target.
    ///
    /// # Errors
    /// Bad arguments, an unusable target.
    pub fn open(spec: &'a Spec, run: &Run<'a>, end: RunEnd<'a>) -> Result<PathTransfer<'a>, Fatal> {
        let (control, listener) = (run.control, run.listener);
        let is_sent = matches!(end, RunEnd::Source(_));
        let target = spec.target.local().filter(|_| !spec.policy.list_only && !is_sent);
        let mode = match target {
            _ if is_sent => TargetMode::Sent,
            _ if spec.policy.list_only => TargetMode::Told,
            None => TargetMode::Null,
            Some(_) if spec.policy.dry_run => TargetMode::Told,
            Some(_) => TargetMode::Real,
        };
        let is_real = mode == TargetMode::Real;
        let arguments = match end {
            RunEnd::Target(..) => Vec::new(),
            _ => without_repeats(source_arguments(spec)?, spec, listener),
        };
        let umask = Umask(process::set_umask(0));
        let place = match target {
            None => TargetPlace::nowhere(&spec.target.as_typed()),
            Some(target) => {
                let own;
                let facts = match end {
                    RunEnd::Target(_, facts) => facts,
                    _ => {
                        own = plan::source_facts(spec, &arguments);
                        &own
                    }
                };
                plan::place(spec, target, facts, is_real, umask.0)?
            }
        };
        if spec.remarks.made && place.made > 0 {
            let dirs = spec.mkpath.then_some(place.made);
            listener.event(Event::Remark(&Remark::Made { path: &place.path, dirs }));
        }
        let is_here = matches!(end, RunEnd::Both);
        // The name of an argument that is a directory is a part of all paths in the transfer.
        let range = spec.range.as_ref().map(|range| Ok(range.below(&plan::lead(spec)?)));
        let range = range.transpose()?;
        // Of a range it is not known what all of it needs.
        let checks_space = spec.check_space && is_real && is_here && range.is_none();
        let space =
            checks_space.then(|| plan::warn_of_space(&place, &arguments, listener)).flatten();
        let bases_failed = if is_sent { 0 } else { check_bases(spec, &place, listener)? };
        let mut policy = spec.policy.clone();
        if matches!(end, RunEnd::Target(..)) {
            // What is announced has its owners already.
            (policy.users, policy.groups) = Default::default();
        }
        if policy.keep_dirlinks && policy.delete != Delete::No {
            // A kept link may lead to an extraneous directory, which must be removed before anything is written
            // through the link.
            policy.delete = Delete::Before;
        }
        // What is beside the target is at the other end.
        let sources = match is_sent {
            true => GuardedSources::default(),
            false => plan::compare_beside(spec, &place, &arguments, &mut policy)?,
        };
        let sources = Arc::new(sources);
        // Each name of a list is resolved, so only where something depends on it.
        let guards = is_here
            && (policy.delete != Delete::No
                || policy.force
                || policy.remove_source_files
                || spec.files_from.is_none());
        let guard = Guard::default();
        let inside_source = match end {
            RunEnd::Target(_, facts) => protect_roots(&guard, &facts.roots, &place),
            _ => guards && protect(&guard, &policy, &place, &arguments),
        };
        if policy.delete == Delete::After {
            guard.keep_claims();
        }
        let removals = Mutex::default();
        Ok(PathTransfer {
            spec,
            control,
            listener,
            policy,
            arguments,
            range,
            place,
            mode,
            inside_source,
            umask,
            bases_failed,
            sources,
            removals,
            guard,
            space: Mutex::new(space),
            end,
        })
    }
}

impl PathTransfer<'_> {
    /// Returns what receives from the other end.
    fn receiving(&self) -> Receiving {
        let place = &self.place;
        let again = |fd: &OwnedFd| fd.as_fd().try_clone_to_owned().ok();
        let host = self.spec.remote.as_ref().map(|remote| {
            let mut host = remote.host.host.clone();
            host.push(":");
            host
        });
        let links = &self.policy.links;
        let bases = plan::basis_dirs(&self.policy, place).filter_map(|path| {
            // What cannot be opened was reported before the start.
            links.open_dir(dir::cwd(), &c_string(path.as_os_str().as_bytes()).ok()?).ok()
        });
        Receiving::new(FarTarget {
            dir: place.dir.as_ref().and_then(again),
            path: place.path.clone(),
            created: place.created,
            name: place.name.clone(),
            bases: bases.collect(),
            owners: FarOwners::new(self.spec.policy.users.clone(), self.spec.policy.groups.clone()),
            host: host.unwrap_or_default(),
        })
    }

    /// Returns device and inode of the target directory, if it exists.
    fn place_identity(&self) -> Option<(u64, u64)> {
        let fd = self.place.dir.as_ref()?;
        meta::of_fd(fd).ok().map(|there| there.identity())
    }

    /// Returns the folder of backups, and the top of the target, whose attributes its folders get.
    fn backup_dir(&self) -> Option<(PathBuf, Option<OwnedFd>)> {
        let path = self.place.path.join(self.policy.backup_dir.as_ref()?);
        let top = self.place.dir.as_ref().and_then(|fd| fd.as_fd().try_clone_to_owned().ok());
        Some((path, top))
    }
}

impl Job for PathTransfer<'_> {
    fn terms(&self) -> Terms {
        let lanes_beside = if self.mode == TargetMode::Sent { far::SENDERS } else { 0 };
        let far = match self.end {
            RunEnd::Both => None,
            RunEnd::Source(end) => Some(Arc::clone(end.link())),
            RunEnd::Target(end, _) => Some(Arc::clone(end.link())),
        };
        // The near end judges.
        let judges = far.is_none() || self.spec.remote.is_some();
        Terms { lanes_beside, judges, far, ..Terms::of(self.spec, &Stores::default()) }
    }

    fn ledger(&self) -> Ledger {
        Ledger::new(&Journal::of_user(), local(self.spec, &self.place))
    }

    fn passes(&self) -> &'static [Pass] {
        // Both ends of a transfer with another machine have the same ones.
        let may_delete = self.place.dir.is_some() && !self.inside_source;
        passes(self.policy.delete, may_delete || !matches!(self.end, RunEnd::Both))
    }

    fn pass(&self, pass: Pass, resources: &Resources) -> Result<(Totals, Option<Fatal>), Fatal> {
        let PathTransfer { spec, place, mode, .. } = self;
        let capacity = resources.capacity;
        let is_xfs = place.dir.as_ref().is_some_and(|fd| disk::is_xfs(fd.as_fd()));
        let batches = is_xfs && capacity.jobs_max > 1;
        // The part of the budget that is not in queues and stacks.
        let share = |budget| budget / (2 * capacity.jobs_max as u64);
        let engine = LocalEngine::new(LocalSetup {
            policy: &self.policy,
            pass,
            listener: self.listener,
            control: self.control,
            items: (spec.items, spec.items_unchanged),
            plans: spec.plans,
            remarks: spec.remarks,
            digest: spec.digest,
            chosen: spec.chosen.as_deref(),
            range: self.range.as_ref(),
            controls: &resources.controls,
            target: *mode,
            deletes: !self.inside_source,
            temp_dir: temp_dir(spec, *mode)?,
            backup_dir: self.backup_dir(),
            sources: Arc::clone(&self.sources),
            open_dirs_max: capacity.open_dirs_max,
            batch_max: if batches { capacity.batch_max } else { 1 },
            // Lines in rsync's order cost the names of a whole directory in memory.
            sorts: (spec.items || spec.ordered || spec.remarks.of_entries())
                && spec.limits.jobs == Jobs::Fixed(1),
            jobs_per_file: spec.limits.jobs_per_file,
            segment_bytes_max: spec.limits.memory_bytes_max.map_or(SEGMENT_BYTES_MAX, share),
            umask: self.umask.0,
            ledger: &resources.ledger,
            guard: &self.guard,
            carried: spec.carried.as_deref(),
            announcer: match self.end {
                RunEnd::Source(end) => Some(end),
                _ => None,
            },
            arrivals: match self.end {
                RunEnd::Target(end, _) => Some(end),
                _ => None,
            },
        });
        if *mode == TargetMode::Real {
            engine.clear_temp_dir();
        }
        // In cp, an argument that meets an earlier one comes after it, as if it were copied by a later cp.
        let batches = match spec.layout {
            Layout::Cp { .. } => plan::batches(&self.arguments),
            Layout::Rsync { .. } => vec![&*self.arguments],
        };
        if batches.len() > 1 {
            self.guard.record_arguments();
        }
        let units = |batch: &[Argument]| match (&spec.chosen, spec.sources.paths()) {
            _ if matches!(self.end, RunEnd::Target(..)) => vec![self.receiving().unit()],
            (Some(chosen), [folder]) => {
                plan::chosen_roots(&engine, &self.policy, place, folder, chosen)
            }
            _ => plan::roots(&engine, &self.policy, place, batch),
        };
        // Few descriptors are left to the work.
        let counts = pass == Pass::Transfer && resources.capacity.samples;
        let space = counts.then(|| self.space.lock().take()).flatten();
        let ended = AtomicBool::new(false);
        // What is written into a source would be counted, too.
        let counts_ahead = counts
            && *mode != TargetMode::Told
            && !matches!(self.end, RunEnd::Target(..))
            && !self.inside_source
            && self.range.is_none()
            && self.listener.shows_totals();
        let ahead = counts_ahead
            .then(|| plan::AheadCount::of(&self.policy, place, &self.arguments))
            .flatten();
        let (going, over) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            // Hung up when the work is done.
            let _going = going;
            if let Some(count) = ahead {
                let meter = &resources.controls.meter;
                let counts = move || count.run(meter, &over);
                // Without a thread for it the totals grow until everything is found.
                drop(std::thread::Builder::new().name("ahead".into()).spawn_scoped(scope, counts));
            }
            if let Some(count) = space {
                let (ended, listener) = (&ended, self.listener);
                let counts = move || count.warn(ended, listener);
                // Without a thread for it there is no warning.
                drop(std::thread::Builder::new().name("space".into()).spawn_scoped(scope, counts));
            }
            for batch in &batches {
                pool::run(&engine, &resources.controls.gate, units(batch));
                let parked = engine.parked();
                if !parked.is_empty() {
                    pool::run(&engine, &resources.controls.gate, parked);
                }
                loop {
                    let replaced = engine.replaced_names();
                    if replaced.is_empty() {
                        break;
                    }
                    pool::run(&engine, &resources.controls.gate, replaced);
                }
                if self.control.is_stopped() {
                    break;
                }
            }
            ended.store(true, Ordering::Relaxed);
        });
        engine.check_received();
        let mut removals = std::mem::take(&mut *self.removals.lock());
        removals.extend(engine.name_delayed());
        // A later pass still has to look up the sources.
        match self.passes().last() == Some(&pass) {
            true => engine.remove_sources(removals),
            false => *self.removals.lock() = removals,
        }
        if let Some(carried) = &spec.carried {
            engine.hand_over_groups(carried);
        }
        if let RunEnd::Source(end) = self.end
            && self.passes().last() != Some(&pass)
        {
            end.turn();
        }
        let mut totals = engine.totals();
        if pass == Pass::Transfer {
            totals.failed += self.bases_failed;
        }
        Ok((totals, engine.take_fatal()))
    }

    fn forgets_record(&self) -> bool {
        self.mode == TargetMode::Real
    }
}

/// Sets the umask of this process to 0 until dropped: modes are set explicitly.
struct Umask(u32);

impl Drop for Umask {
    fn drop(&mut self) {
        process::set_umask(self.0);
    }
}

/// Returns the arguments of a spec; each line of a list of files becomes one argument.
fn source_arguments(spec: &Spec) -> Result<Vec<Argument>, Fatal> {
    if spec.chosen.is_some() {
        return match spec.sources.paths() {
            [_] => Ok(Vec::new()),
            _ => Err(Fatal::new(1, "chosen entries need exactly one source directory")),
        };
    }
    let Some(list) = &spec.files_from else {
        return plan::arguments(spec.sources.paths(), spec.layout);
    };
    let [folder] = spec.sources.paths() else {
        return Err(Fatal::new(1, "--files-from needs exactly one source directory"));
    };
    Ok(plan::listed(folder, list, matches!(spec.layout, Layout::Rsync { relative: true })))
}

/// Leaves out arguments of cp that name the same entry again, with a warning, as GNU cp does.
fn without_repeats(
    arguments: Vec<Argument>,
    spec: &Spec,
    listener: &dyn Listener,
) -> Vec<Argument> {
    if matches!(spec.layout, Layout::Rsync { .. }) || spec.policy.backup {
        return arguments;
    }
    let mut seen = HashSet::new();
    let mut kept = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let key = (argument.folder.clone(), argument.names.clone());
        if argument.is_content() || seen.insert(key) {
            kept.push(argument);
        } else {
            let message = format!("source {} specified more than once", quoted(&argument.typed));
            listener.event(Event::Warning(message));
        }
    }
    kept
}

/// Opens the folder of temporary files: that of `--temp-dir` or, with `--delay-updates`, of an absolute `--partial-dir`,
/// which is created.
fn temp_dir(spec: &Spec, mode: TargetMode) -> Result<Option<(OwnedFd, u64)>, Fatal> {
    let policy = &spec.policy;
    let kept = policy.partial_dir.as_ref().filter(|dir| policy.delay_updates && dir.is_absolute());
    let Some(path) = policy.temp_dir.as_ref().or(kept).filter(|_| mode == TargetMode::Real) else {
        return Ok(None);
    };
    let made = policy.temp_dir.is_none();
    let option = if made { "--partial-dir" } else { "--temp-dir" };
    let path = match path.is_absolute() {
        true => path.clone(),
        false => spec.target.as_typed().join(path),
    };
    let opened = c_string(path.as_os_str().as_bytes()).and_then(|name| {
        if made {
            policy.links.make_dir(&path, 0o700, true)?;
        }
        let fd = spec.policy.links.open_dir(dir::cwd(), &name)?;
        let dev = meta::of_fd(&fd)?.dev;
        Ok((fd, dev))
    });
    opened.map(Some).map_err(|error| {
        let cause = Cause::System(error);
        Fatal::new(11, format!("cannot use {option} {}: {cause}", quoted(&path)))
    })
}

/// Checks the trees of `--link-dest` and similar options. A missing one provides nothing, which is reported; neither does
/// one behind a symlink of another user, which counts as a failure. Returns the number of failures.
fn check_bases(spec: &Spec, place: &TargetPlace, listener: &dyn Listener) -> Result<u64, Fatal> {
    let option = spec.policy.basis.option();
    let mut failed = 0;
    for path in plan::basis_dirs(&spec.policy, place) {
        let name = c_string(path.as_os_str().as_bytes());
        match name.and_then(|name| spec.policy.links.open_dir(dir::cwd(), &name)) {
            Ok(_) => {}
            Err(error) if is_absent(&error) || RefusedLink::is_foreign(&error) => {
                failed += u64::from(!is_absent(&error));
                let cause = Cause::System(error);
                let message = format!("{option} {} is not used: {cause}", quoted(&path));
                listener.event(Event::Warning(message));
            }
            Err(error) => {
                let cause = Cause::System(error);
                let message = format!("cannot use {option} {}: {cause}", quoted(&path));
                return Err(Fatal::new(11, message));
            }
        }
    }
    Ok(failed)
}

fn is_absent(error: &std::io::Error) -> bool {
    [errno::ENOENT, errno::ENOTDIR].iter().any(|code| errno::is(error, *code))
}

/// Protects the sources from the run. Returns whether the target lies inside one of them: then its extraneous entries are
/// sources.
fn protect(guard: &Guard, policy: &Policy, place: &TargetPlace, arguments: &[Argument]) -> bool {
    for argument in arguments {
        let path = argument.path();
        let Ok(name) = c_string(path.as_os_str().as_bytes()) else { continue };
        let follows = argument.is_content()
            || argument.follow
            || policy.follow_args
            || policy.copy_dirlinks
            || policy.symlinks == Symlinks::Follow;
        for follow in [false, true].into_iter().filter(|follow| !follow || follows) {
            if let Ok(source) = meta::of(dir::cwd(), &name, follow) {
                guard.add_source(source.identity(), source.kind != Kind::Dir);
            }
        }
    }
    let above = place.dir.as_ref().and_then(|dir| ancestors(dir.as_fd()).ok());
    let inside = match above {
        Some(above) => guard.is_any_source(&above),
        None => lies_inside(place, arguments),
    };
    if inside {
        guard.target_is_inside();
    }
    inside
}

/// As [`protect`], for sources of the other end of this machine: device and inode, and whether each is no directory.
fn protect_roots(guard: &Guard, roots: &[(u64, u64, bool)], place: &TargetPlace) -> bool {
    roots.iter().for_each(|(dev, ino, is_file)| guard.add_source((*dev, *ino), *is_file));
    let above = place.dir.as_ref().filter(|_| !roots.is_empty());
    let above = above.and_then(|dir| ancestors(dir.as_fd()).ok());
    let inside = above.is_some_and(|above| guard.is_any_source(&above));
    if inside {
        guard.target_is_inside();
    }
    inside
}

/// Returns whether the path of the target is inside one of the sources.
fn lies_inside(place: &TargetPlace, arguments: &[Argument]) -> bool {
    let path = if place.path.as_os_str().is_empty() { Path::new(".") } else { &place.path };
    let Ok(target) = path.canonicalize() else { return false };
    arguments.iter().any(|argument| {
        argument
            .path()
            .canonicalize()
            .is_ok_and(|source| target != source && target.starts_with(source))
    })
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
        || spec.range.is_some()
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

    fn keep(&self) {
        self.session.keep();
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
