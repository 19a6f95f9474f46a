//! One transfer from its description to its outcome: the only module that sees all the others.

mod batch;
mod objects;
mod remove;
mod steer;

pub use crate::control::Control;
use crate::engine::node::c_string;
use crate::engine::{Engine, Pass, Setup, TargetMode, pool};
use crate::error::{Cause, Fatal, quoted};
use crate::event::Listener;
use crate::location::Location;
use crate::plan::objects::Stores;
use crate::plan::{self, Argument, Place};
pub use crate::plan::{Layout, Objects, Spec};
use crate::policy::Delete;
pub use crate::s3::Requests;
use crate::unit::Totals;
pub use batch::transfer_each;
use hakobu_sys::{AsFd, OwnedFd, dir, meta, process, volume};
pub use remove::{Doomed, Removal, remove_objects};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use steer::{Course, Ends, Notes};
pub use steer::{Findings, memory_bytes_min, too_little_memory};

/// How a run ended.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was done.
    pub totals: Totals,
    /// Wall time of the run.
    pub took: Duration,
    /// Workers used.
    pub jobs: usize,
    /// The run was asked to stop before it was done.
    pub stopped: bool,
    /// What made everything further pointless (disk full, quota, read-only); code 11.
    pub fatal: Option<Fatal>,
    /// What the stores of both sides counted; nothing between local paths.
    pub requests: Requests,
    /// What was found out about it on the way.
    pub findings: Findings,
}

/// Runs a transfer to its end.
///
/// # Errors
/// What makes the whole run impossible before anything moved: options that do not fit together, a
/// target that cannot be used. A source argument that does not exist is not among these: it is a
/// `Problem` and the others go on.
pub fn transfer(spec: &Spec, control: &Control, listener: &dyn Listener) -> Result<Outcome, Fatal> {
    let started = Instant::now();
    spec.policy.check()?;
    if objects::concerns(spec) {
        return objects::transfer(spec, control, listener);
    }
    let location = match spec.policy.list_only {
        true => Location::Null,
        false => Location::parse(spec.target.as_os_str())?,
    };
    let mode = match location {
        _ if spec.policy.list_only => TargetMode::Told,
        Location::Null | Location::S3(_) => TargetMode::Null,
        Location::Local(_) if spec.policy.dry_run => TargetMode::Told,
        Location::Local(_) => TargetMode::Real,
    };
    let arguments = source_arguments(spec)?;
    let notes = Notes::read(spec)?;
    steer::check_memory(spec, false)?;
    let nowhere = location == Location::Null;
    let mask = Umask(process::set_umask(0));
    let umask = mask.0;
    let place = match nowhere {
        true => Place::nowhere(&spec.target),
        false => plan::place(spec, &arguments, mode == TargetMode::Real, umask)?,
    };
    if spec.check_space && mode == TargetMode::Real {
        plan::warn_of_space(&place, &arguments, listener);
    }
    let course = Course::new(spec, Ends::of(spec, &Stores::default()), notes, None);
    let helm = Arc::clone(&course.helm);
    let open_files_max = process::raise_open_files_limit();
    // Descriptors have to do for as many as may ever work.
    let jobs_max = helm.gate.jobs_max() as u64;
    let open_dirs_max = (open_files_max.saturating_sub(32 + 8 * jobs_max) / 2).clamp(8, 4096);
    // What is left of the descriptors, for pairs of open files.
    let left = open_files_max.saturating_sub(64 + open_dirs_max + 8 * jobs_max);
    let batches = place.dir.as_ref().is_some_and(|fd| volume::is_xfs(fd.as_fd())) && jobs_max > 1;
    let batch_max = if batches { (left / (2 * jobs_max)).clamp(1, 64) as usize } else { 1 };
    process::reserve_descriptors(open_dirs_max.min(open_files_max / 2));

    let inside_source = lies_inside(&place, &arguments);
    let mut policy = spec.policy.clone();
    if policy.keep_dirlinks && policy.delete == Delete::During {
        // A link that is kept may lead to a directory that is extraneous: it has to be gone
        // before anything is written through the link.
        policy.delete = Delete::Before;
    }
    let run = |pass: Pass| -> Result<(Totals, Option<Fatal>), Fatal> {
        let engine = Engine::new(Setup {
            policy: &policy,
            pass,
            listener,
            control,
            items: (spec.items, spec.items_unchanged),
            helm: &helm,
            target: mode,
            deletes: !inside_source,
            temp_dir: temp_dir(spec, mode)?,
            open_dirs_max: open_dirs_max as usize,
            batch_max,
            umask,
        });
        if mode == TargetMode::Real {
            engine.sweep_temp_dir();
        }
        let units = plan::seed(&engine, &policy, &place, &arguments);
        pool::run(&engine, &helm.gate, units);
        Ok((engine.totals(), engine.take_fatal()))
    };
    let deletes = place.dir.is_some() && !nowhere && !inside_source;
    let mut totals = Totals::default();
    let mut fatal = None;
    let passes = match policy.delete {
        Delete::Before if deletes => &[Pass::Delete, Pass::Transfer][..],
        Delete::After if deletes => &[Pass::Transfer, Pass::Delete][..],
        _ => &[Pass::Transfer][..],
    };
    let flight = course.begin();
    for pass in passes {
        let (more, stopped_by) = run(*pass)?;
        totals += more;
        fatal = fatal.take().or(stopped_by);
        if fatal.is_some() || control.is_stopped() {
            break;
        }
    }
    let findings = flight.end(!control.is_stopped() && fatal.is_none());
    drop(mask);
    let stopped = control.is_stopped() && fatal.is_none();
    let requests = Requests::default();
    let (took, jobs) = (started.elapsed(), findings.jobs);
    Ok(Outcome { totals, took, jobs, stopped, fatal, requests, findings })
}

/// The mask of this process while it is set aside: modes are given as they shall be.
struct Umask(u32);

impl Drop for Umask {
    fn drop(&mut self) {
        process::set_umask(self.0);
    }
}

/// The arguments of a spec; a list of files becomes one argument for each of them.
fn source_arguments(spec: &Spec) -> Result<Vec<Argument>, Fatal> {
    let Some(list) = &spec.files_from else {
        return plan::arguments(&spec.sources, spec.layout);
    };
    let [folder] = spec.sources.as_slice() else {
        return Err(Fatal::new(1, "--files-from needs exactly one source folder"));
    };
    let joined = list.iter().filter(|name| !name.is_empty()).map(|name| {
        let mut path = folder.as_os_str().as_bytes().to_vec();
        path.extend_from_slice(match spec.layout {
            Layout::Rsync { relative: true } => b"/./",
            _ => b"/",
        });
        path.extend_from_slice(&inside(name));
        PathBuf::from(std::ffi::OsStr::from_bytes(&path))
    });
    let paths: Vec<PathBuf> = joined.collect();
    plan::arguments(&paths, spec.layout)
}

/// A path of a list, kept inside the source folder: `..` climbs no higher than its top, as in
/// rsync. `./` at the start keeps its meaning and a slash at the end, too.
fn inside(name: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in name.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut path = parts.join(&b'/');
    if name.starts_with(b"./") {
        path.splice(0..0, *b"./");
    }
    if name.ends_with(b"/") {
        path.push(b'/');
    }
    path
}

fn temp_dir(spec: &Spec, mode: TargetMode) -> Result<Option<(OwnedFd, u64)>, Fatal> {
    let Some(path) = spec.policy.temp_dir.as_ref().filter(|_| mode == TargetMode::Real) else {
        return Ok(None);
    };
    let path = match path.is_absolute() {
        true => path.clone(),
        false => spec.target.join(path),
    };
    let opened = c_string(path.as_os_str().as_bytes()).and_then(|name| {
        let fd = dir::open_root(&name)?;
        let dev = meta::of_fd(&fd)?.dev;
        Ok((fd, dev))
    });
    opened.map(Some).map_err(|error| {
        let cause = Cause::System(error);
        Fatal::new(11, format!("cannot use --temp-dir {}: {cause}", quoted(&path)))
    })
}

/// Whether the target lies inside one of the sources: then what is extraneous there is a source.
fn lies_inside(place: &Place, arguments: &[Argument]) -> bool {
    let path = if place.path.as_os_str().is_empty() { Path::new(".") } else { &place.path };
    let Ok(target) = path.canonicalize() else { return false };
    arguments.iter().any(|argument| {
        argument
            .path()
            .canonicalize()
            .is_ok_and(|source| target != source && target.starts_with(source))
    })
}
