//! The scope of a run, for its record (`journal::Ledger`).

use crate::engine::failure::c_string;
use crate::journal::{Scope, Target};
use crate::location::Location;
use crate::object::Root;
use crate::plan::objects::PlannedSource;
use crate::plan::{Place, Spec};
use hakobu_sys::{AsFd, dir};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum number of targets and sources that a record names.
const NAMED_MAX: usize = 64;
/// Stands for further sources. No path is equal to it.
const MORE: &[u8] = b"\0";

/// Returns the scope of a transfer between paths.
pub(super) fn local(spec: &Spec, place: &Place) -> Scope {
    // A directory that cannot be examined gets no matching record; the transfer reports the cause.
    let target = place.dir.as_ref().and_then(|dir| Target::of(dir.as_fd()).ok());
    scope(spec, target.into_iter().collect())
}

/// Returns the scope of a transfer with a store.
pub(super) fn with_session(spec: &Spec, planned_sources: &[PlannedSource]) -> Scope {
    let mut targets: Vec<Target> = Vec::new();
    for planned in planned_sources {
        if let Root::Local { dir, .. } = &planned.pair.target
            && let Ok(target) = Target::of((**dir).as_fd())
            && !targets.contains(&target)
        {
            targets.push(target);
        }
    }
    scope(spec, targets)
}

/// Returns the scope of many transfers run as one.
pub(super) fn of_all(specs: &[Spec]) -> Scope {
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
    Scope { targets, sources: vec![MORE.to_vec()], recurse: true, partial: true }
}

fn scope(spec: &Spec, mut targets: Vec<Target>) -> Scope {
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
    Scope { targets, sources, recurse: policy.recurse, partial }
}

fn target_at(path: &Path) -> Option<Target> {
    let fd = dir::open_root(&c_string(path.as_os_str().as_bytes()).ok()?).ok()?;
    Target::of(fd.as_fd()).ok()
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
