//! Transfers between paths, and from paths to `null:`.

use super::steer::Terms;
use crate::failure::c_string;
use crate::journal::{Journal, Ledger};
use crate::local::guard::{Guard, GuardedSources};
use crate::local::{LocalEngine, LocalSetup, Pass, SEGMENT_BYTES_MAX, SourceRemoval, TargetMode};
use crate::plan::objects::Stores;
use crate::plan::{self, Argument, Layout, Spec, TargetPlace};
use crate::policy::{Delete, Policy, Symlinks};
use crate::run as scope;
use crate::run::{Job, Resources, Run, passes};
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, Fatal, quoted};
use hakobu_core::event::{Event, Listener, Remark};
use hakobu_core::unit::{Jobs, Kind, Totals};
use hakobu_sys::paths::{RefusedLink, ancestors};
use hakobu_sys::{AsFd, OwnedFd, dir, disk, errno, meta, process};
use hakobu_tree::pool;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// A transfer between paths whose target exists.
pub(super) struct PathTransfer<'a> {
    spec: &'a Spec,
    control: &'a Control,
    listener: &'a dyn Listener,
    policy: Policy,
    arguments: Vec<Argument>,
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
}

impl<'a> PathTransfer<'a> {
    /// Examines the arguments and creates the target.
    ///
    /// # Errors
    /// Bad arguments, an unusable target.
    pub fn open(spec: &'a Spec, run: &Run<'a>) -> Result<PathTransfer<'a>, Fatal> {
        let (control, listener) = (run.control, run.listener);
        let target = spec.target.local().filter(|_| !spec.policy.list_only);
        let mode = match target {
            _ if spec.policy.list_only => TargetMode::Told,
            None => TargetMode::Null,
            Some(_) if spec.policy.dry_run => TargetMode::Told,
            Some(_) => TargetMode::Real,
        };
        let is_real = mode == TargetMode::Real;
        let arguments = without_repeats(source_arguments(spec)?, spec, listener);
        let umask = Umask(process::set_umask(0));
        let place = match target {
            None => TargetPlace::nowhere(&spec.target.as_typed()),
            Some(target) => plan::place(spec, target, &arguments, is_real, umask.0)?,
        };
        if spec.remarks.made && place.made > 0 {
            let dirs = spec.mkpath.then_some(place.made);
            listener.event(Event::Remark(&Remark::Made { path: &place.path, dirs }));
        }
        let checks_space = spec.check_space && is_real;
        let space =
            checks_space.then(|| plan::warn_of_space(&place, &arguments, listener)).flatten();
        let bases_failed = check_bases(spec, &place, listener)?;
        let mut policy = spec.policy.clone();
        if policy.keep_dirlinks && policy.delete != Delete::No {
            // A kept link may lead to an extraneous directory, which must be removed before anything is written
            // through the link.
            policy.delete = Delete::Before;
        }
        let sources = Arc::new(plan::compare_beside(spec, &place, &arguments, &mut policy)?);
        // Each name of a list is resolved, so only where something depends on it.
        let guards = policy.delete != Delete::No
            || policy.force
            || policy.remove_source_files
            || spec.files_from.is_none();
        let guard = Guard::default();
        let inside_source = guards && protect(&guard, &policy, &place, &arguments);
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
            place,
            mode,
            inside_source,
            umask,
            bases_failed,
            sources,
            removals,
            guard,
            space: Mutex::new(space),
        })
    }
}

impl PathTransfer<'_> {
    /// Returns the folder of backups, and the top of the target, whose attributes its folders get.
    fn backup_dir(&self) -> Option<(PathBuf, Option<OwnedFd>)> {
        let path = self.place.path.join(self.policy.backup_dir.as_ref()?);
        let top = self.place.dir.as_ref().and_then(|fd| fd.as_fd().try_clone_to_owned().ok());
        Some((path, top))
    }
}

impl Job for PathTransfer<'_> {
    fn terms(&self) -> Terms {
        Terms::of(self.spec, &Stores::default())
    }

    fn ledger(&self) -> Ledger {
        Ledger::new(&Journal::of_user(), scope::local(self.spec, &self.place))
    }

    fn passes(&self) -> &'static [Pass] {
        passes(self.policy.delete, self.place.dir.is_some() && !self.inside_source)
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
        let shows_totals = counts
            && *mode != TargetMode::Told
            && !self.inside_source
            && self.listener.shows_totals();
        let ahead = shows_totals
            .then(|| plan::AheadCount::of(&self.policy, place, &self.arguments))
            .flatten();
        let (going, over) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            // Hung up at the end of the scope's work.
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
                if self.control.is_stopped() {
                    break;
                }
            }
            ended.store(true, Ordering::Relaxed);
        });
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
            _ => Err(Fatal::new(1, "chosen entries need exactly one source folder")),
        };
    }
    let Some(list) = &spec.files_from else {
        return plan::arguments(spec.sources.paths(), spec.layout);
    };
    let [folder] = spec.sources.paths() else {
        return Err(Fatal::new(1, "--files-from needs exactly one source folder"));
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
