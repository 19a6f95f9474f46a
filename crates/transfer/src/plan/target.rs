//! The target argument: a directory for all entries, or the new name of one file; and the basis trees beside it.

use super::arguments::{c_path, open_folder, or_here};
use super::{Argument, Layout, Spec};
use crate::failure::c_string;
use crate::policy::{Policy, Symlinks};
use hakobu_core::error::{Cause, Fatal, quoted};
use hakobu_core::event::{Event, Listener};
use hakobu_core::number;
use hakobu_core::unit::Kind;
use hakobu_sys::paths::RefusedLink;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, disk, errno, meta, process, xattr};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Target of a transfer.
pub struct TargetPlace {
    /// The directory, open; `None` if nothing is created (or a dry run would have to create it).
    pub dir: Option<OwnedFd>,
    /// Its spelling for messages.
    pub path: PathBuf,
    /// This run just created it.
    pub created: bool,
    /// Number of directories that this run made for it, or in a dry run would make.
    pub made: usize,
    /// The single argument gets this name in it.
    pub name: Option<CString>,
}

impl TargetPlace {
    /// Returns a place for runs without a target: `null:`, lists.
    pub fn nowhere(path: &Path) -> TargetPlace {
        TargetPlace { dir: None, path: path.to_owned(), created: false, made: 0, name: None }
    }
}

/// Returns the number of directories of a path that do not exist.
fn missing(path: &Path) -> usize {
    path.ancestors().take_while(|path| !path.as_os_str().is_empty() && is_gone(path, true)).count()
}

fn look(path: &Path, follow: bool) -> io::Result<meta::Meta> {
    meta::of(dir::cwd(), &c_path(path)?, follow)
}

fn is_gone(path: &Path, follow: bool) -> bool {
    look(path, follow).is_err_and(|error| errno::is(&error, errno::ENOENT))
}

fn is_dir(path: &Path) -> bool {
    look(path, true).is_ok_and(|there| there.kind == Kind::Dir)
}

fn is_link(path: &Path) -> bool {
    look(path, false).is_ok_and(|there| there.kind == Kind::Symlink)
}

fn open(path: &Path, policy: &Policy) -> io::Result<OwnedFd> {
    policy.links.open_dir(dir::cwd(), &c_path(path)?)
}

/// Resolves the target, and creates it if it has to be a directory and is missing.
///
/// # Errors
/// Code 3 if the target cannot take the sources, 11 if it cannot be created or opened. Nothing has been moved then.
pub fn place(
    spec: &Spec,
    target: &Path,
    arguments: &[Argument],
    real: bool,
    umask: u32,
) -> Result<TargetPlace, Fatal> {
    let there = match look(target, true) {
        Ok(there) => Some(there),
        Err(error) if errno::is(&error, errno::ENOENT) => None,
        Err(error) => {
            let exit = if matches!(spec.layout, Layout::Rsync { .. }) { 3 } else { 11 };
            return Err(Fatal { code: exit, ..unusable(target, &error) });
        }
    };
    let slash = target.as_os_str().as_bytes().ends_with(b"/");
    let is_dir = there.is_some_and(|there| there.kind == Kind::Dir);
    let content = arguments.iter().any(Argument::is_content);
    let as_name = match spec.layout {
        Layout::Rsync { .. } => rsync_wants_name(spec, target, arguments, there.as_ref(), slash)?,
        // `cp -rT a/. b` fills `b`, as without -T.
        Layout::Cp { no_target_dir: true, .. } => !content,
        Layout::Cp { target_is_dir, parents, .. } => {
            if (target_is_dir || parents || (slash && !content))
                && !is_dir
                && !(slash && copies_dir(spec, arguments))
            {
                let reason = if there.is_some() { "is not a directory" } else { "does not exist" };
                let message = format!("target {} {reason}", quoted(target));
                return Err(Fatal::new(3, message));
            }
            !is_dir && !content
        }
    };
    if as_name {
        return name_in_parent(spec, target, arguments, real, umask);
    }
    let (mut created, mut made) = (false, 0);
    if there.is_none() {
        // Nothing is created if no source exists.
        let exists = |argument: &Argument| look(&argument.path(), false).is_ok();
        let exists = spec.chosen.is_some() || arguments.iter().any(exists);
        made = if exists { missing(target) } else { 0 };
        if !real || !exists {
            return Ok(TargetPlace { made, ..TargetPlace::nowhere(target) });
        }
        // Another run may have made a directory of that name just now.
        if matches!(spec.layout, Layout::Rsync { .. }) && is_link(target) {
            let message = "it is a symlink that leads nowhere";
            return Err(Fatal::new(11, format!("cannot use target {}: {message}", quoted(target))));
        }
        // As in rsync, the attributes of what --mkpath makes are those of an existing folder.
        created = make(target, spec, umask)? && !spec.mkpath;
    }
    let dir = open(target, &spec.policy).map_err(|error| unusable(target, &error))?;
    Ok(TargetPlace { dir: Some(dir), path: target.to_owned(), created, made, name: None })
}

/// Applies rsync's rule: a target that is not a directory is a file's name only for one single file.
fn rsync_wants_name(
    spec: &Spec,
    target: &Path,
    arguments: &[Argument],
    there: Option<&meta::Meta>,
    slash: bool,
) -> Result<bool, Fatal> {
    let single = match arguments {
        _ if spec.files_from.is_some() => !slash && is_one_listed(spec, arguments, there.is_none()),
        [one] if !one.is_content() && !one.relative => {
            let path = one.path();
            let follow = spec.policy.symlinks == Symlinks::Follow || one.follow;
            look(&path, follow).is_ok_and(|source| {
                source.kind != Kind::Dir && !(spec.policy.copy_dirlinks && is_dir(&path))
            })
        }
        _ => false,
    };
    match there {
        Some(there) if there.kind == Kind::Dir => Ok(false),
        None => Ok(single && !slash),
        // A missing source is reported, whatever the target is.
        Some(_) if (single || is_missing(arguments)) && !slash => Ok(true),
        Some(_) => {
            let message = format!(
                "the target {} must be a directory: more than one file is copied",
                quoted(target)
            );
            Err(Fatal::new(3, message))
        }
    }
}

/// Returns whether a list of names names one entry in all, which gets the target's name as in rsync. Missing names do not
/// count; a directory does if the target `is_new` and its content is not copied.
fn is_one_listed(spec: &Spec, arguments: &[Argument], is_new: bool) -> bool {
    let lines = spec.files_from.iter().flatten().filter(|line| !line.is_empty()).count();
    let mut found = arguments.iter().filter(|argument| look(&argument.path(), false).is_ok());
    let (Some(one), None, true) = (found.next(), found.next(), lines == arguments.len()) else {
        return false;
    };
    let follow = spec.policy.symlinks == Symlinks::Follow || one.follow;
    let is_dir = look(&one.path(), follow).is_ok_and(|there| there.kind == Kind::Dir);
    one.names.len() == 1 && !(is_dir && (spec.policy.recurse || one.follow || !is_new))
}

fn copies_dir(spec: &Spec, arguments: &[Argument]) -> bool {
    spec.policy.recurse && matches!(arguments, [one] if is_dir(&one.path()))
}

/// Resolves the target as a name in its parent directory.
fn name_in_parent(
    spec: &Spec,
    target: &Path,
    arguments: &[Argument],
    real: bool,
    umask: u32,
) -> Result<TargetPlace, Fatal> {
    let keeps = |argument: &Argument| is_link(&argument.path()) && !spec.policy.follow_args;
    let links = arguments.iter().any(keeps);
    let target = written_through(target, links, &spec.policy)?;
    let Some(name) = target.file_name().filter(|_| !target.as_os_str().is_empty()) else {
        let message = format!("{} cannot be the name of a file", quoted(target));
        return Err(Fatal::new(3, message));
    };
    let parent = target.parent().unwrap_or(Path::new(""));
    let open_as = or_here(parent);
    let name = c_string(name.as_bytes()).map_err(|error| unusable(&target, &error))?;
    let (mut created, mut made) = (false, 0);
    if spec.mkpath && is_gone(open_as, true) {
        made = missing(open_as);
        created = real && make(open_as, spec, umask)?;
    }
    let dir = match open(open_as, &spec.policy) {
        Ok(dir) => Some(dir),
        Err(error) if !real && errno::is(&error, errno::ENOENT) => None,
        Err(error) if errno::is(&error, errno::ENOENT) => {
            let hint = if has_mkpath(spec) { " (--mkpath makes it)" } else { "" };
            let message = format!("the target folder {} does not exist{hint}", quoted(open_as));
            return Err(Fatal::new(3, message));
        }
        Err(error) => return Err(unusable(open_as, &error)),
    };
    Ok(TargetPlace { dir, path: parent.to_owned(), created, made, name: Some(name) })
}

/// Resolves a symlink that cp is given as the target: cp writes through it, unless the source is a symlink, too, and
/// is kept as one.
///
/// # Errors
/// Code 3 for a dangling symlink.
pub(super) fn written_through(
    target: &Path,
    source_is_link: bool,
    policy: &Policy,
) -> Result<PathBuf, Fatal> {
    let keeps = policy.symlinks == Symlinks::Keep && source_is_link;
    if !policy.writes_through() || keeps || !is_link(target) {
        return Ok(target.to_owned());
    }
    std::fs::canonicalize(target).map_err(|_| {
        let message = format!("not writing through the dangling symlink {}", quoted(target));
        Fatal::new(3, message)
    })
}

/// Creates a target directory; returns `false` if another program just created it.
fn make(path: &Path, spec: &Spec, umask: u32) -> Result<bool, Fatal> {
    let umask = if inherits_acl(path) { 0 } else { umask };
    spec.policy.links.make_dir(path, 0o777 & !umask, spec.mkpath).map_err(|error| {
        if RefusedLink::is(&error) {
            return unusable(path, &error);
        }
        let hint = match error.kind() {
            io::ErrorKind::NotFound if !spec.mkpath && has_mkpath(spec) => {
                " (--mkpath makes missing parents)"
            }
            _ => "",
        };
        let cause = Cause::System(error);
        let message = format!("cannot create target directory {}: {cause}{hint}", quoted(path));
        Fatal::new(11, message)
    })
}

/// Returns whether the command of a transfer has `--mkpath`.
fn has_mkpath(spec: &Spec) -> bool {
    matches!(spec.layout, Layout::Rsync { .. })
}

/// Returns whether the only argument does not exist.
fn is_missing(arguments: &[Argument]) -> bool {
    matches!(arguments, [one] if !one.is_content() && is_gone(&one.path(), false))
}

/// Returns whether a new directory inherits an ACL from its parent, whose mask then replaces the umask (acl(5)).
fn inherits_acl(path: &Path) -> bool {
    let nearest = path.ancestors().skip(1).find_map(|above| open_folder(above).ok());
    nearest.is_some_and(|fd| xattr::get(fd.as_fd(), xattr::ACL_DEFAULT, &mut Vec::new()).is_ok())
}

fn unusable(path: &Path, error: &io::Error) -> Fatal {
    let code = error.raw_os_error();
    let cause = Cause::System(match code {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::other(error.to_string()),
    });
    // rsync's code for an unusable target.
    let exit = if RefusedLink::is(error) { 3 } else { 11 };
    Fatal::new(exit, format!("cannot use target {}: {cause}", quoted(path)))
}

/// Returns the trees of `--link-dest` and similar options; relative ones begin in the target. If the target is not
/// created, `..` is resolved from its future path.
pub fn basis_dirs(policy: &Policy, place: &TargetPlace) -> impl Iterator<Item = PathBuf> {
    policy.basis_dirs.iter().map(|path| match place.dir {
        Some(_) => place.path.join(path),
        None => without_parents(&place.path.join(path)),
    })
}

/// Removes `..` from a path, by its text alone.
pub(super) fn without_parents(path: &Path) -> PathBuf {
    let mut kept = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir
                if matches!(kept.components().next_back(), Some(Component::Normal(_))) =>
            {
                kept.pop();
            }
            Component::CurDir => {}
            other => kept.push(other),
        }
    }
    kept
}

// Check of free space: bytes and inodes.
//
// Counting a tree takes a walk, so the cheap bound comes first: the usage of the source's whole file system. Only if
// that does not fit is the tree counted. A copy into an empty target begins at once and is counted for beside it, as
// one thread that walks a network file system would hold up all others. A target with content is counted before
// anything changes there, for some milliseconds at most: little may be missing.

/// Maximum time for counting beside a copy into an empty target.
const COUNT_TIME_MAX: Duration = Duration::from_secs(1);
/// Maximum time for counting before an update, which may have nothing to do.
const UPDATE_COUNT_TIME_MAX: Duration = Duration::from_millis(2);
/// Niceness of the thread that counts beside a copy: the lowest priority.
const NICE: i32 = 19;
/// Directories below this depth are not counted: those above stay open, and descriptors belong to the transfer.
const DEPTH_MAX: u32 = 8;

/// The count of a copy into an empty target, and the room that there was when it began.
pub struct Count {
    trees: Vec<Tree>,
    room: disk::Space,
}

/// A source directory, and the target directory that exists for it.
type Tree = (OwnedFd, Option<OwnedFd>);

#[derive(Default)]
struct Need {
    bytes: u64,
    entries: u64,
    /// Counting was aborted: the numbers are lower bounds.
    at_least: bool,
}

/// Warns if the target has less room than the sources need in addition to the existing content. Returns the count to
/// make beside the transfer if only that can tell.
pub fn warn_of_space(
    place: &TargetPlace,
    arguments: &[Argument],
    listener: &dyn Listener,
) -> Option<Count> {
    let target = place.dir.as_ref().map(AsFd::as_fd)?;
    let room = disk::space(target).ok()?;
    if room.read_only {
        listener.event(Event::Warning("the target file system is mounted read-only".into()));
        return None;
    }
    let mut upper = Need::default();
    let mut volumes = Vec::new();
    let mut trees = Vec::new();
    for argument in arguments {
        let Ok(path) = c_path(&argument.path()) else { continue };
        let Ok(source) = meta::of(dir::cwd(), &path, true) else { continue };
        if source.kind != Kind::Dir {
            upper.bytes = upper.bytes.saturating_add(source.size);
            upper.entries += 1;
            continue;
        }
        let Ok(fd) = dir::open_root(&path) else { continue };
        if let Ok(used) = disk::space(fd.as_fd())
            && !volumes.contains(&source.dev)
        {
            volumes.push(source.dev);
            upper.bytes = upper.bytes.saturating_add(used.used_bytes);
            upper.entries = upper.entries.saturating_add(used.used_inodes.unwrap_or(u64::MAX));
        }
        trees.push((fd, counterpart(target, place, argument)));
    }
    if upper.fits(&room) {
        return None;
    }
    if trees.is_empty() {
        upper.warn(&room, listener);
        return None;
    }
    if !trees.iter().any(|(_, there)| there.as_ref().is_some_and(has_content)) {
        // Nothing of it is there yet, and what the copy brings meanwhile is part of the need.
        let trees = trees.into_iter().map(|(source, _)| (source, None)).collect();
        return Some(Count { trees, room });
    }
    count(trees, UPDATE_COUNT_TIME_MAX, &AtomicBool::new(false)).warn(&room, listener);
    None
}

impl Count {
    /// Counts until `stop`, for a second at most, and warns if the room does not suffice. For a thread of its own, of
    /// which this lowers the priority: where the CPUs are the limit, the copy has them.
    pub fn warn(self, stop: &AtomicBool, listener: &dyn Listener) {
        // A higher one only costs time.
        drop(process::set_nice(NICE));
        count(self.trees, COUNT_TIME_MAX, stop).warn(&self.room, listener);
    }
}

impl Need {
    fn fits(&self, room: &disk::Space) -> bool {
        self.bytes <= room.free_bytes && room.free_inodes.is_none_or(|free| self.entries <= free)
    }

    fn warn(&self, room: &disk::Space, listener: &dyn Listener) {
        if self.fits(room) {
            return;
        }
        let least = if self.at_least { "at least " } else { "" };
        let (needed, free) = match self.bytes > room.free_bytes {
            true => (number::bytes(self.bytes), number::bytes(room.free_bytes)),
            false => {
                (format!("{} inodes", self.entries), room.free_inodes.unwrap_or(0).to_string())
            }
        };
        listener.event(Event::Warning(format!(
            "{least}{needed} are to come and the target has room for {free}: it may fill up"
        )));
    }
}

/// Returns whether a directory has any entry.
pub(super) fn has_content(fd: &OwnedFd) -> bool {
    let mut any = false;
    let listed = dir::Reader::default().next_batch(fd.as_fd(), |_, _, _| any = true);
    let rewound = dir::seek(fd.as_fd(), 0);
    any || listed.is_err() || rewound.is_err()
}

/// Returns the existing target directory of an argument's directory.
pub(super) fn counterpart(
    target: BorrowedFd<'_>,
    place: &TargetPlace,
    argument: &Argument,
) -> Option<OwnedFd> {
    let mut names = argument.names.as_slice();
    if !argument.relative {
        names = names.last().map(std::slice::from_ref).unwrap_or_default();
    }
    let mut fd = dir::open(target, c".", false).ok()?;
    if let Some(name) = &place.name {
        return dir::open(fd.as_fd(), name, true).ok();
    }
    for name in names {
        fd = dir::open(fd.as_fd(), &c_string(name).ok()?, true).ok()?;
    }
    Some(fd)
}

/// A directory on both sides, a subdirectory that waits to be counted, and its depth. Parents stay open as long as
/// children wait: in depth-first order that is one for each level.
type Waiting = (Rc<Tree>, CString, u32);

/// Adds up the need of trees beyond their existing target, depth first, for `time_max` or until `stop`.
fn count(trees: Vec<Tree>, time_max: Duration, stop: &AtomicBool) -> Need {
    let deadline = Instant::now() + time_max;
    let mut need = Need::default();
    let mut reader = dir::Reader::default();
    let dot = || c".".to_owned();
    let mut waiting: Vec<Waiting> =
        trees.into_iter().map(|tree| (Rc::new(tree), dot(), 0)).collect();
    let mut ended = false;
    while let Some((parent, name, depth)) = waiting.pop() {
        let Ok(source) = dir::open(parent.0.as_fd(), &name, false) else { continue };
        let target = parent.1.as_ref().and_then(|fd| dir::open(fd.as_fd(), &name, false).ok());
        let here = Rc::new((source, target));
        let listed = reader.for_each(here.0.as_fd(), |name, kind, _| {
            ended = ended || Instant::now() > deadline || stop.load(Ordering::Relaxed);
            if ended {
                return;
            }
            let at_target =
                |fd: &OwnedFd| meta::of(fd.as_fd(), name, false).ok().filter(|m| m.kind == kind);
            let there = here.1.as_ref().and_then(at_target);
            need.entries += u64::from(there.is_none());
            if kind != Kind::Dir {
                let Ok(meta) = meta::of(here.0.as_fd(), name, false) else { return };
                let size = meta.allocated_bytes().min(meta.size.next_multiple_of(4096));
                let has = there.map_or(0, |there| there.allocated_bytes());
                need.bytes += size.saturating_sub(has);
            } else if depth < DEPTH_MAX {
                waiting.push((Rc::clone(&here), name.to_owned(), depth + 1));
            } else {
                need.at_least = true;
            }
        });
        // A directory that cannot be listed is not copied either.
        drop(listed);
        if ended {
            need.at_least = true;
            break;
        }
    }
    need
}
