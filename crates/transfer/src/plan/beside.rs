//! Folders and files that options name, compared with sources and target by identity before anything is moved: none of
//! them may have to be two things at once.

use super::paths::c_path;
use super::paths::{basis_dirs, without_parents};
use super::{Argument, Layout, Spec, TargetPlace};
use crate::local::guard::{FileId, GuardedSources, path_below};
use crate::policy::{Basis, Delete, Policy};
use hakobu_core::error::{Fatal, quoted};
use hakobu_sys::{AsFd, OwnedFd, dir, errno, meta};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// A path by its nearest existing directory and the names below that.
struct Spot {
    above: OwnedFd,
    identity: FileId,
    rest: Vec<u8>,
}

impl Spot {
    /// Returns `None` if nothing of the path can be opened: whoever uses it will report that.
    fn of(path: &Path) -> Option<Spot> {
        let mut here = path.to_owned();
        let mut names: Vec<Vec<u8>> = Vec::new();
        for _ in 0..=path.components().count() {
            let typed = if here.as_os_str().is_empty() { Path::new(".") } else { &here };
            match c_path(typed).and_then(|name| dir::open(dir::cwd(), &name, true)) {
                Ok(above) => {
                    let identity = meta::of_fd(&above).ok()?.identity();
                    names.reverse();
                    return Some(Spot { above, identity, rest: names.join(&b'/') });
                }
                Err(error) if errno::is(&error, errno::ENOENT) || errno::is_no_dir(&error) => {}
                Err(_) => return None,
            }
            if matches!(here.components().next_back(), Some(Component::ParentDir)) {
                here = without_parents(&here);
            }
            names.push(here.file_name()?.as_bytes().to_vec());
            here = here.parent()?.to_owned();
        }
        None
    }

    fn is(&self, other: &Spot) -> bool {
        self.identity == other.identity && self.rest == other.rest
    }

    /// Returns the path below another directory; `None` if it is not in it.
    fn below(&self, other: &Spot) -> Option<Vec<u8>> {
        if !other.rest.is_empty() {
            // What does not exist can only hold what does not exist.
            let rest = self.rest.strip_prefix(&*other.rest)?;
            let same = self.identity == other.identity && rest.starts_with(b"/");
            return same.then(|| rest.get(1..).unwrap_or_default().to_vec());
        }
        let names = path_below(other.above.as_fd(), self.above.as_fd()).ok()??;
        let mut parts: Vec<&[u8]> = names.iter().map(|name| name.to_bytes()).collect();
        if !self.rest.is_empty() {
            parts.push(&self.rest);
        }
        Some(parts.join(&b'/'))
    }
}

/// Returns what the sources hold, as far as options need it.
fn sources_of(spec: &Spec, place: &TargetPlace, arguments: &[Argument]) -> GuardedSources {
    let mut sources = GuardedSources { roots: place.roots.clone(), ..GuardedSources::default() };
    let mut folders = HashSet::new();
    let rsync = matches!(spec.layout, Layout::Rsync { .. });
    for argument in arguments {
        let follow = argument.is_content() || argument.follow || spec.policy.follow_args;
        let path = c_path(&argument.path());
        if let Ok(there) = path.and_then(|path| meta::of(dir::cwd(), &path, follow)) {
            sources.roots.push(there.identity());
        }
        if spec.files_from.is_some() && rsync {
            // A list may be long: each name of its folder counts as one of it.
            if folders.insert(&argument.folder) {
                sources.arguments.push((argument.folder.clone(), Vec::new()));
            }
        } else if rsync && place.name.is_none() {
            sources.arguments.push((argument.folder.clone(), argument.names.join(&b'/')));
        }
    }
    let target = place.dir.as_ref().and_then(|fd| meta::of_fd(fd).ok());
    sources.target = target.map(|there| there.identity());
    sources
}

/// Compares them, and returns what the sources hold. A backup folder that is the target, with a suffix, is dropped from
/// the policy: its backups are beside their files.
///
/// # Errors
/// Code 1 if one file would have to be two.
pub fn compare_beside(
    spec: &Spec,
    place: &TargetPlace,
    arguments: &[Argument],
    policy: &mut Policy,
) -> Result<GuardedSources, Fatal> {
    let partial = policy.partial_dir.clone().filter(|path| path.is_absolute());
    let names_any = policy.backup
        || partial.is_some()
        || !policy.basis_dirs.is_empty()
        || spec.log_file.is_some();
    let top = if place.path.as_os_str().is_empty() { Path::new(".") } else { &place.path };
    if !names_any || spec.target.local().is_none() {
        return Ok(GuardedSources::default());
    }
    let mut sources = sources_of(spec, place, arguments);
    let Some(target) = Spot::of(top) else { return Ok(sources) };
    let folders = || arguments.iter().filter_map(|it| Some((Spot::of(&it.folder)?, &it.typed)));
    // The folder in which the names of a source are the same as in this one.
    let source_of = |spot: &Spot| folders().find(|(own, _)| own.is(spot)).map(|(_, typed)| typed);
    let refused = |message: String| Err(Fatal::new(1, message));
    if let Some(path) = policy.backup_dir.clone().filter(|_| policy.backup) {
        let path = place.path.join(path);
        if let Some(spot) = Spot::of(&path) {
            if spot.is(&target) {
                if policy.suffix.is_empty() {
                    let path = quoted(&path);
                    return refused(format!(
                        "--suffix cannot be empty when --backup-dir {path} is the target: a file \
                         and its backup would have one name"
                    ));
                }
                policy.backup_dir = None;
                policy.backup_dir_is_target = true;
            } else if let Some(typed) = source_of(&spot).filter(|_| policy.suffix.is_empty()) {
                return refused(format!(
                    "--backup-dir {} holds the source {}: a backup would have its name",
                    quoted(&path),
                    quoted(typed)
                ));
            }
        }
    }
    if let Some((path, spot)) = partial.and_then(|path| Some((path.clone(), Spot::of(&path)?))) {
        let option = format!("--partial-dir {}", quoted(&path));
        if spot.is(&target) {
            return refused(format!(
                "{option} is the target: a file and its unfinished part would have one name"
            ));
        }
        if source_of(&spot).is_some() || sources.contain(spot.above.as_fd()).unwrap_or(true) {
            return refused(format!("{option} holds a source: its files would count as parts"));
        }
        if spot.below(&target).is_some_and(|path| sources.provide(&path)) {
            return refused(format!(
                "{option} is a directory of the target that is transferred: its files would count as \
                 parts"
            ));
        }
    }
    compare_bases(spec, place, (&target, &mut sources), source_of)?;
    compare_log(spec, place, &target, &mut sources)?;
    Ok(sources)
}

/// Compares the trees of `--link-dest` and similar options.
fn compare_bases<'a>(
    spec: &Spec,
    place: &TargetPlace,
    (target, sources): (&Spot, &mut GuardedSources),
    source_of: impl Fn(&Spot) -> Option<&'a PathBuf>,
) -> Result<(), Fatal> {
    let policy = &spec.policy;
    for path in basis_dirs(policy, place) {
        let Some(spot) = Spot::of(&path).filter(|spot| spot.rest.is_empty()) else { continue };
        let option = format!("{} {}", policy.basis.option(), quoted(&path));
        if policy.basis == Basis::Compare {
            if spot.is(target) {
                let message = format!("{option} is the target: every file in it would be left out");
                return Err(Fatal::new(1, message));
            }
            let holds = || {
                source_of(&spot).is_some() || sources.contain(spot.above.as_fd()).unwrap_or(true)
            };
            if policy.remove_source_files && holds() {
                let message = format!(
                    "{option} holds a source: what it has is left out of the target and removed"
                );
                return Err(Fatal::new(1, message));
            }
        }
        sources.kept.push(spot.identity);
        let below = spot.below(target).filter(|path| !path.is_empty());
        let Some(below) = below.filter(|_| policy.delete != Delete::No) else { continue };
        let first = below.split(|byte| *byte == b'/').next().unwrap_or_default();
        if policy.filter.is_none() && !sources.provide(first) {
            let message = format!("{option} is in the target, where --delete would remove it");
            return Err(Fatal::new(1, message));
        }
    }
    Ok(())
}

fn compare_log(
    spec: &Spec,
    place: &TargetPlace,
    target: &Spot,
    sources: &mut GuardedSources,
) -> Result<(), Fatal> {
    let Some(log) = &spec.log_file else { return Ok(()) };
    let option = format!("--log-file {}", quoted(log));
    if let Ok(there) = c_path(log).and_then(|path| meta::of(dir::cwd(), &path, true)) {
        if sources.roots.contains(&there.identity()) {
            return Err(Fatal::new(1, format!("{option} is a source")));
        }
        sources.kept.push(there.identity());
    }
    let (Some(folder), Some(name)) = (log.parent(), log.file_name()) else { return Ok(()) };
    let Some(spot) = Spot::of(folder) else { return Ok(()) };
    let own = place.name.as_deref().map(|name| OsStr::from_bytes(name.to_bytes()));
    let below = spot.below(target).map(|path| {
        let path = Path::new(OsStr::from_bytes(&path)).join(name);
        path.into_os_string()
    });
    let meets = below.is_some_and(|path| own == Some(&*path) || sources.provide(path.as_bytes()));
    match meets {
        true => Err(Fatal::new(1, format!("{option} is a file of the target that is transferred"))),
        false => Ok(()),
    }
}
