//! From the arguments of a transfer between paths to the first units of work, in the order of the run: what each source
//! argument means, where the target lies, and which directory nodes pair source directories with target directories.

use super::{EntrySelection, Layout, Spec};
use crate::failure::{Failure, c_string};
use crate::local::target_dir::{Node, Selection};
use crate::local::{ArgumentEnds, LocalEngine, SourceDir, SourceFacts, Unit};
use crate::policy::{MissingArgs, Policy, Symlinks};
use hakobu_core::error::{Cause, Fatal, Operation, quoted};
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::paths::{self, Links, RefusedLink};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, meta, xattr};
use hakobu_tree::names::push_name;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

// Parsing of one source argument: a folder's content, or a name in a folder.

/// One parsed source argument. The file system has not been accessed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The argument as typed, for messages.
    pub typed: PathBuf,
    /// The folder in which names are looked up, starting as the user typed it.
    pub folder: PathBuf,
    /// Path components below it, outermost first; empty: the folder's content itself.
    pub names: Vec<Vec<u8>>,
    /// The names before the last one are created at the target as well (`--relative`).
    pub relative: bool,
    /// The folder itself sets its attributes at the target, without its content: a relative path typed with a leading
    /// `./`.
    pub dot: bool,
    /// The last name may be a symlink that is followed (it was typed with a slash). The content of this directory is
    /// listed even without recursion.
    pub follow: bool,
    /// It comes from a list of names in this folder: symlinks below it are followed only if
    /// [`Policy::links`](crate::policy::Policy::links) allows it.
    pub top: Option<Arc<Path>>,
    /// The last name must be a directory (`cp f/`). rsync takes `-R f/` for the file `f`.
    pub dir_only: bool,
}

impl Argument {
    /// Returns the whole path.
    pub fn path(&self) -> PathBuf {
        let mut path = self.folder.clone();
        path.extend(self.names.iter().map(|name| OsStr::from_bytes(name)));
        if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
    }

    /// Returns whether the argument means the content of a folder, not the folder.
    pub fn is_content(&self) -> bool {
        self.names.is_empty()
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Parses one source argument by the layout's rule.
///
/// # Errors
/// Code 1 for an empty argument, and for `..` if the path is to be created at the target.
pub fn argument(typed: &Path, layout: Layout) -> Result<Argument, Fatal> {
    let bytes = typed.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(Fatal::new(1, "an empty source path names nothing"));
    }
    match layout {
        Layout::Rsync { relative: true } | Layout::Cp { parents: true, .. } => {
            relative(typed, bytes, matches!(layout, Layout::Rsync { .. }))
        }
        Layout::Rsync { relative: false } => Ok(plain(typed, bytes, true)),
        Layout::Cp { .. } => Ok(plain(typed, bytes, false)),
    }
}

/// Parses without `--relative`: `a/b` is the name `b` in `a`; `a/b/` (rsync only), `a/.`, `..` and `/` are contents.
fn plain(typed: &Path, bytes: &[u8], slash_is_content: bool) -> Argument {
    let slash = bytes.ends_with(b"/");
    let trimmed = trim_end(bytes);
    let (folder, name) = match trimmed.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&trimmed[..at + 1], &trimmed[at + 1..]),
        None => (&b"."[..], trimmed),
    };
    let content = name.is_empty() || name == b"." || name == b".." || (slash && slash_is_content);
    let argument = Argument {
        typed: typed.to_owned(),
        folder: path(bytes),
        names: Vec::new(),
        relative: false,
        dot: false,
        follow: slash,
        top: None,
        dir_only: slash,
    };
    if content {
        return argument;
    }
    // Do not show "." if it was not typed.
    let folder = if folder == b"." { PathBuf::new() } else { path(folder) };
    Argument { folder, names: vec![name.to_vec()], ..argument }
}

/// Parses with `--relative`. `slash_dot`: rsync's rule, else that of `cp --parents`.
fn relative(typed: &Path, bytes: &[u8], slash_dot: bool) -> Result<Argument, Fatal> {
    let marker = bytes.windows(3).position(|part| part == b"/./").filter(|_| slash_dot);
    let (folder, rest) = match marker {
        Some(0) => (&b"/"[..], bytes.get(3..).unwrap_or_default()),
        Some(at) => (&bytes[..at], bytes.get(at + 3..).unwrap_or_default()),
        None if bytes.starts_with(b"./") => (&b""[..], bytes.get(2..).unwrap_or_default()),
        None if bytes.starts_with(b"/") => (&b"/"[..], bytes),
        None => (&b""[..], bytes),
    };
    let parts = rest.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    let names: Vec<Vec<u8>> = parts.map(<[u8]>::to_vec).collect();
    if names.iter().any(|name| name == b"..") {
        let hint = if slash_dot { "; write DIR/./PATH to say where it begins" } else { "" };
        let message =
            format!("{}: a path with '..' cannot be kept at the target{hint}", quoted(typed));
        return Err(Fatal::new(1, message));
    }
    let follow = bytes.ends_with(b"/") || bytes.ends_with(b"/.");
    let dot = bytes.starts_with(b"./") && marker.is_none() || rest.starts_with(b"./");
    let dot = dot && !names.is_empty() && slash_dot;
    let (folder, typed) = (path(folder), typed.to_owned());
    let dir_only = follow && !slash_dot;
    Ok(Argument { typed, folder, names, relative: true, dot, follow, top: None, dir_only })
}

/// Returns the components of a path of a list. `..` never leaves the folder, as in rsync.
fn inside(name: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    for part in name.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts
}

/// One line of a list of names: where the path is cut (`/./`), and whether it denotes a directory.
pub(super) struct Line<'a> {
    /// The names before the first `/./`.
    pub(super) lead: Vec<&'a [u8]>,
    /// The names after it.
    pub(super) names: Vec<&'a [u8]>,
    /// It ends with a slash, `.` or `..`.
    pub(super) slash: bool,
    /// It begins with `./`.
    dot: bool,
}

impl<'a> Line<'a> {
    /// Parses a line. Without `cuts`, `/./` has no meaning.
    pub(super) fn new(name: &'a [u8], cuts: bool) -> Line<'a> {
        let marker = name.windows(3).position(|part| part == b"/./").filter(|_| cuts);
        let (lead, rest) = match marker {
            Some(at) => (&name[..at], &name[at + 3..]),
            None => (&b""[..], name),
        };
        let lead = inside(lead);
        let last = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let dot = lead.is_empty() && (name.starts_with(b"./") || name.starts_with(b"/./"));
        Line { lead, names: inside(rest), slash: matches!(last, b"" | b"." | b".."), dot }
    }

    fn argument(&self, folder: &Arc<Path>, relative: bool) -> Argument {
        let join = |folder: &Path, names: &[&[u8]]| {
            let names = names.iter().map(|name| OsStr::from_bytes(name));
            names.fold(folder.to_owned(), |path, name| path.join(name))
        };
        let lead = join(folder, &self.lead);
        let mut argument = Argument {
            typed: join(&lead, &self.names),
            folder: lead,
            names: self.names.iter().map(|name| name.to_vec()).collect(),
            relative,
            dot: relative && self.dot && !self.names.is_empty(),
            follow: self.slash,
            top: Some(Arc::clone(folder)),
            dir_only: false,
        };
        if !relative {
            // Only the last name is created at the target; for a directory's content it is not.
            let names = self.names.split_last().filter(|_| !self.slash);
            (argument.folder, argument.names) = match names {
                Some((last, above)) => (join(folder, above), vec![last.to_vec()]),
                None => (argument.typed.clone(), Vec::new()),
            };
        }
        argument
    }
}

/// Returns the arguments for the lines of a list (`--files-from`), without duplicates.
pub fn listed(folder: &Path, list: &[Vec<u8>], relative: bool) -> Vec<Argument> {
    let lines = list.iter().filter(|name| !name.is_empty());
    let folder = Arc::from(folder);
    let lines = lines.map(|name| Line::new(name, relative).argument(&folder, relative));
    let mut arguments: Vec<Argument> = lines.collect();
    let mut order: Vec<usize> = (0..arguments.len()).collect();
    let key = |number: usize| (&arguments[number].folder, &arguments[number].names, number);
    order.sort_by(|a, b| key(*a).cmp(&key(*b)));
    let mut again = vec![false; arguments.len()];
    let mut first = 0;
    for number in order {
        let (one, other) = (&arguments[first], &arguments[number]);
        if number != first && one.folder == other.folder && one.names == other.names {
            again[number] = true;
            // One line with a slash is enough.
            arguments[first].follow |= arguments[number].follow;
            arguments[first].dot |= arguments[number].dot;
        } else {
            first = number;
        }
    }
    let mut again = again.into_iter();
    arguments.retain(|_| !again.next().unwrap_or_default());
    arguments
}

fn trim_end(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(1, |at| at + 1);
    bytes.get(..end).unwrap_or_default()
}

/// Parses all source arguments.
pub fn arguments(sources: &[PathBuf], layout: Layout) -> Result<Vec<Argument>, Fatal> {
    sources.iter().map(|typed| argument(typed, layout)).collect()
}

/// Returns the beginning of all paths in a transfer of one source directory between paths: the directory's name and a slash,
/// or nothing for its content.
///
/// # Errors
/// The argument cannot be used; there are several.
pub fn lead(spec: &Spec) -> Result<Vec<u8>, Fatal> {
    match &*arguments(spec.sources.paths(), spec.layout)? {
        [one] if one.is_content() => Ok(Vec::new()),
        [one] => Ok([&*one.names.join(&b'/'), b"/"].concat()),
        _ => Err(Fatal::new(1, "there is not one source directory")),
    }
}

// Paths as the user types them, for system calls.

/// Makes a C string of a path.
///
/// # Errors
/// EINVAL if there is a NUL inside.
pub(super) fn c_path(path: &Path) -> io::Result<CString> {
    c_string(path.as_os_str().as_bytes())
}

/// Returns a folder's path; an empty one is the current folder.
pub fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Returns the folder of an entry's path.
pub(super) fn parent(path: &Path) -> &Path {
    or_here(path.parent().unwrap_or(Path::new("")))
}

pub(super) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    dir::open_root(&c_path(or_here(path))?)
}

// The target argument: a directory for all entries, or the new name of one file; and the basis trees beside it.

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
    /// Device and inode of the sources that the other end of a transfer has on this machine.
    pub roots: Vec<(u64, u64)>,
}

impl TargetPlace {
    /// Returns a place for runs without a target: `null:`, lists.
    pub fn nowhere(path: &Path) -> TargetPlace {
        let (path, roots) = (path.to_owned(), Vec::new());
        TargetPlace { dir: None, path, created: false, made: 0, name: None, roots }
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
    facts: &SourceFacts,
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
    let content = facts.has_content;
    let as_name = match spec.layout {
        Layout::Rsync { .. } => rsync_wants_name(target, facts, there.as_ref(), slash)?,
        // `cp -rT a/. b` fills `b`, as without -T.
        Layout::Cp { no_target_dir: true, .. } => !content,
        Layout::Cp { target_is_dir, parents, .. } => {
            if (target_is_dir || parents || (slash && !content))
                && !is_dir
                && !(slash && spec.policy.recurse && facts.is_dir)
            {
                let reason = if there.is_some() { "is not a directory" } else { "does not exist" };
                let message = format!("target {} {reason}", quoted(target));
                return Err(Fatal::new(3, message));
            }
            !is_dir && !content
        }
    };
    if as_name {
        return name_in_parent(spec, target, facts, real, umask);
    }
    let (mut created, mut made) = (false, 0);
    if there.is_none() {
        // Nothing is created if no source exists.
        let exists = spec.chosen.is_some() || facts.exists;
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
    let (path, roots) = (target.to_owned(), facts.identities());
    Ok(TargetPlace { dir: Some(dir), path, created, made, name: None, roots })
}

/// Looks at the arguments, as far as the place of the target depends on them.
pub fn source_facts(spec: &Spec, arguments: &[Argument]) -> SourceFacts {
    let one = match arguments {
        [one] => Some(one),
        _ => None,
    };
    let looked = one.map(|one| look(&one.path(), false));
    let exists = |argument: &Argument| look(&argument.path(), false).is_ok();
    let takes = |is_new: bool| match one {
        _ if spec.files_from.is_some() => is_one_listed(spec, arguments, is_new),
        Some(one) if !one.is_content() && !one.relative => {
            let path = one.path();
            let follow = spec.policy.symlinks == Symlinks::Follow || one.follow;
            look(&path, follow).is_ok_and(|source| {
                source.kind != Kind::Dir && !(spec.policy.copy_dirlinks && is_dir(&path))
            })
        }
        _ => false,
    };
    SourceFacts {
        has_content: arguments.iter().any(Argument::is_content),
        exists: match &looked {
            Some(looked) => looked.is_ok(),
            None => arguments.iter().any(exists),
        },
        is_missing: one.is_some_and(|one| !one.is_content())
            && matches!(&looked, Some(Err(error)) if errno::is(error, errno::ENOENT)),
        takes_new_name: takes(true),
        takes_name: takes(false),
        is_dir: one.is_some_and(|one| is_dir(&one.path())),
        is_link: matches!(&looked, Some(Ok(source)) if source.kind == Kind::Symlink),
        roots: Vec::new(),
    }
}

/// Most sources that are told apart; of more the folders are told.
const ROOTS_MAX: usize = 4096;

/// As [`source_facts`], for the target on another machine, which may turn out to be this one.
pub fn far_facts(spec: &Spec, arguments: &[Argument]) -> SourceFacts {
    let mut roots = HashSet::new();
    let is_many = arguments.len() > ROOTS_MAX || spec.files_from.is_some();
    let mut folders = HashSet::new();
    for argument in arguments {
        if is_many && !folders.insert(&argument.folder) {
            continue;
        }
        let path = if is_many { or_here(&argument.folder).to_owned() } else { argument.path() };
        for follow in [false, true] {
            if let Ok(source) = look(&path, follow) {
                let (dev, ino) = source.identity();
                roots.insert((dev, ino, source.kind != Kind::Dir));
            }
        }
    }
    SourceFacts { roots: roots.into_iter().collect(), ..source_facts(spec, arguments) }
}

/// Applies rsync's rule: a target that is not a directory is a file's name only for one single file.
fn rsync_wants_name(
    target: &Path,
    facts: &SourceFacts,
    there: Option<&meta::Meta>,
    slash: bool,
) -> Result<bool, Fatal> {
    let single = match there {
        None => facts.takes_new_name,
        Some(_) => facts.takes_name,
    };
    match there {
        Some(there) if there.kind == Kind::Dir => Ok(false),
        None => Ok(single && !slash),
        // A missing source is reported, whatever the target is.
        Some(_) if (single || facts.is_missing) && !slash => Ok(true),
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

/// Resolves the target as a name in its parent directory.
fn name_in_parent(
    spec: &Spec,
    target: &Path,
    facts: &SourceFacts,
    real: bool,
    umask: u32,
) -> Result<TargetPlace, Fatal> {
    let links = facts.is_link && !spec.policy.follow_args;
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
            let hint = if has_mkpath(spec) { " (--mkpath creates it)" } else { "" };
            let message = format!("the target directory {} does not exist{hint}", quoted(open_as));
            return Err(Fatal::new(3, message));
        }
        Err(error) => return Err(unusable(open_as, &error)),
    };
    let (path, roots) = (parent.to_owned(), facts.identities());
    Ok(TargetPlace { dir, path, created, made, name: Some(name), roots })
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
                " (--mkpath creates missing parents)"
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

// The first units of a walk, and the directory nodes that they belong to.

/// Builds the first units.
struct Roots<'e, 'p> {
    engine: &'e LocalEngine<'p>,
    policy: &'e Policy,
    place: &'e TargetPlace,
    units: Vec<Unit>,
    /// Parent nodes of names: (folder, path below it).
    nodes: HashMap<(PathBuf, Vec<u8>), Option<Arc<Node>>>,
    /// Nodes to release when all units are made.
    held: Vec<Arc<Node>>,
    /// The target directory is searched for leftovers.
    swept: bool,
    /// So are directories that lead to arguments.
    sweeps: bool,
    /// The node that sets the attributes of the target directory.
    owner: Option<Arc<Node>>,
}

/// An argument and its position on the command line.
type Numbered<'a> = (usize, &'a Argument);

/// The folder of a content argument, open.
struct Content<'a> {
    number: usize,
    fd: OwnedFd,
    argument: &'a Argument,
}

/// Arguments of several folders with the same target: one node has all their folders as sources.
struct Meeting<'a> {
    folders: Vec<PathBuf>,
    lent: Vec<Selection>,
    groups: Vec<Vec<Numbered<'a>>>,
}

/// Returns the path of an argument in its folder.
fn c_names(argument: &Argument) -> io::Result<Vec<CString>> {
    argument.names.iter().map(|name| c_string(name)).collect()
}

/// Divides the arguments such that none meets an earlier one of its batch at the target.
pub fn batches(arguments: &[Argument]) -> Vec<&[Argument]> {
    let mut batches = Vec::new();
    let (mut start, mut has_content) = (0, false);
    // The folders that provide a name; more than one argument may lead to the same one.
    let mut names: HashMap<&[u8], (&Path, &[Vec<u8>])> = HashMap::new();
    for (at, argument) in arguments.iter().enumerate() {
        let meets = match argument.names.first() {
            None => at > start,
            Some(name) => {
                has_content
                    || names.get(name.as_slice()).is_some_and(|(folder, names)| {
                        *folder != argument.folder || **names == argument.names
                    })
            }
        };
        if meets {
            batches.push(arguments.get(start..at).unwrap_or_default());
            (start, has_content) = (at, false);
            names.clear();
        }
        has_content |= argument.is_content();
        if let Some(name) = argument.names.first() {
            names.entry(name).or_insert((&argument.folder, &argument.names));
        }
    }
    batches.push(arguments.get(start..).unwrap_or_default());
    batches
}

/// Groups the arguments that are names: those with the same target, or with `nested` those inside each other there.
/// Empty if all come from one folder, which has no conflicts.
fn groups(arguments: &[Argument], nested: bool) -> Vec<Vec<Numbered<'_>>> {
    let mut groups: Vec<Vec<Numbered<'_>>> = Vec::new();
    let Some(first) = arguments.first() else { return groups };
    if arguments.iter().all(|argument| argument.folder == first.folder) {
        return groups;
    }
    let names = arguments.iter().enumerate().filter(|(_, argument)| !argument.is_content());
    let mut names: Vec<_> = names.collect();
    // A stable sort: entries of a directory come right after it.
    names.sort_by(|(_, a), (_, b)| a.names.cmp(&b.names));
    for named in names {
        let meets = |(_, top): &Numbered<'_>| match nested {
            true => named.1.names.starts_with(&top.names),
            false => named.1.names == top.names,
        };
        match groups.last_mut() {
            Some(group) if group.first().is_some_and(meets) => group.push(named),
            _ => groups.push(vec![named]),
        }
    }
    groups
}

/// Makes the first units for all arguments. Missing arguments are reported to the engine as failures of their own;
/// the others continue.
pub fn roots(
    engine: &LocalEngine<'_>,
    policy: &Policy,
    place: &TargetPlace,
    arguments: &[Argument],
) -> Vec<Unit> {
    let mut roots = Roots::new(engine, policy, place);
    let contents = roots.open_contents(arguments);
    let mut alone = vec![true; arguments.len()];
    let mut in_contents = Vec::new();
    let mut meetings = Vec::new();
    for mut group in groups(arguments, policy.recurse) {
        if !policy.recurse {
            roots.first_wins(&group, &mut alone);
            continue;
        }
        let filled = roots.is_in(&contents, &group);
        let differs = |(_, other): &Numbered<'_>| {
            group.first().is_some_and(|(_, first)| first.folder != other.folder)
        };
        if !filled && !group.iter().any(differs) {
            continue;
        }
        for (number, _) in &group {
            if let Some(alone) = alone.get_mut(*number) {
                *alone = false;
            }
        }
        let directories = roots.drop_missing(&mut group);
        if filled {
            in_contents.append(&mut group);
        } else if let Some(depth) = group.iter().map(|(_, other)| other.names.len()).min() {
            // A directory comes before a non-directory, then the order of the command line decides.
            group.sort_by_key(|(number, other)| {
                (other.names.len() == depth && !directories.contains(number), *number)
            });
            meet(&mut meetings, group);
        }
    }
    roots.contents(arguments, contents, &in_contents);
    for meeting in meetings {
        let typed = meeting.groups.iter().flatten().map(|(_, argument)| &argument.typed).next();
        let typed = typed.cloned().unwrap_or_default();
        if let Err(failure) = roots.meeting(meeting) {
            engine.disable_deletion();
            engine.argument_failed(failure, &typed);
        }
    }
    for (argument, alone) in arguments.iter().zip(alone) {
        if !alone || argument.is_content() {
            continue;
        }
        match roots.name(argument) {
            Err(failure) if roots.is_removed(&failure) => {
                if let Err(failure) = roots.remove_missing(argument) {
                    engine.argument_failed(failure, &argument.typed);
                }
            }
            Err(failure) => engine.argument_failed(failure, &argument.typed),
            Ok(()) => {}
        }
    }
    roots.hide_target(arguments);
    roots.into_units()
}

/// Adds a group to the meeting of its folders.
fn meet<'a>(meetings: &mut Vec<Meeting<'a>>, group: Vec<Numbered<'a>>) {
    let mut folders: Vec<PathBuf> = Vec::new();
    for (_, argument) in &group {
        if !folders.contains(&argument.folder) {
            folders.push(argument.folder.clone());
        }
    }
    match meetings.iter_mut().find(|meeting| meeting.folders == folders) {
        Some(meeting) => meeting.groups.push(group),
        None => {
            let lent = vec![Selection::default(); folders.len()];
            meetings.push(Meeting { folders, lent, groups: vec![group] });
        }
    }
}

impl Roots<'_, '_> {
    fn target(&self) -> io::Result<Option<OwnedFd>> {
        self.place.dir.as_ref().map(|fd| dir::open(fd.as_fd(), c".", false)).transpose()
    }

    fn bases(&self) -> Vec<Option<OwnedFd>> {
        let open = |path: PathBuf| {
            // Unopenable arguments were reported before the start.
            c_path(&path).and_then(|name| self.policy.links.open_dir(dir::cwd(), &name)).ok()
        };
        basis_dirs(self.policy, self.place).map(open).collect()
    }

    fn open_contents<'a>(&self, arguments: &'a [Argument]) -> Vec<Content<'a>> {
        let mut contents = Vec::new();
        for (number, argument) in arguments.iter().enumerate().filter(|(_, a)| a.is_content()) {
            match self.open_folder(argument) {
                Ok(_) if !self.policy.recurse && !self.policy.dirs => {
                    self.engine.argument_is_dir(&argument.typed);
                }
                Ok(fd) => contents.push(Content { number, fd, argument }),
                Err(error) => {
                    let failure = Failure { operation: Operation::Read, error };
                    self.engine.disable_deletion();
                    self.engine.argument_failed(failure, &argument.typed);
                }
            }
        }
        contents
    }

    /// Returns whether the content arguments also fill the top of a group, other than from its own folder.
    fn is_in(&self, contents: &[Content<'_>], group: &[Numbered<'_>]) -> bool {
        let Some(name) = group.first().and_then(|(_, argument)| argument.names.first()) else {
            return false;
        };
        let Ok(name) = c_string(name) else { return false };
        let same = |content: &Content<'_>| {
            group.iter().all(|(_, argument)| argument.folder == content.argument.folder)
        };
        // An error does not prove that the name is missing.
        let has = |content: &Content<'_>| match meta::of(content.fd.as_fd(), &name, false) {
            Ok(_) => true,
            Err(error) => !errno::is(&error, errno::ENOENT),
        };
        !contents.iter().all(same) && contents.iter().any(has)
    }

    /// Reports and drops the missing arguments of a group. Returns the numbers of those that are directories.
    fn drop_missing(&self, group: &mut Vec<Numbered<'_>>) -> Vec<usize> {
        let mut directories = Vec::new();
        group.retain(|(number, argument)| match self.is_dir(argument) {
            Ok(is_dir) => {
                if is_dir {
                    directories.push(*number);
                }
                true
            }
            Err(error) => {
                let failure = Failure { operation: Operation::Read, error };
                self.engine.disable_deletion();
                self.engine.argument_failed(failure, &argument.typed);
                false
            }
        });
        directories
    }

    /// Pairs all arguments that mean a folder's content with the target, together with the names `more` of other
    /// folders that they have, too.
    fn contents(
        &mut self,
        arguments: &[Argument],
        contents: Vec<Content<'_>>,
        more: &[Numbered<'_>],
    ) {
        let Some(first) = contents.first() else { return };
        let first_path = first.argument.folder.clone();
        let made = self.content_base(arguments, contents, more);
        match made {
            Ok(node) => {
                self.units.extend(self.engine.list_base(&node));
                self.held.push(Arc::clone(&node));
                (self.owner, self.swept) = (Some(node), true);
            }
            Err(failure) => {
                self.engine.disable_deletion();
                self.engine.argument_failed(failure, &first_path);
            }
        }
    }

    fn content_base(
        &self,
        arguments: &[Argument],
        contents: Vec<Content<'_>>,
        more: &[Numbered<'_>],
    ) -> Result<Arc<Node>, Failure> {
        let read = || Failure::of(Operation::Read);
        let mut lenders: Vec<(usize, &Path, Selection)> = Vec::new();
        for (number, argument) in more {
            if contents.iter().any(|content| content.argument.folder == argument.folder) {
                continue;
            }
            let path = c_names(argument).map_err(read())?;
            let follow = self.is_followed(argument);
            match lenders.iter_mut().find(|(_, folder, _)| *folder == argument.folder) {
                Some((at, _, lent)) => {
                    *at = (*at).min(*number);
                    lent.add(&path, follow);
                }
                None => {
                    let mut lent = Selection::default();
                    lent.add(&path, follow);
                    lenders.push((*number, &argument.folder, lent));
                }
            }
        }
        let mut sources = Vec::new();
        for (number, folder, lent) in lenders {
            let fd = self.open_source(folder).map_err(read())?;
            sources.push((number, (fd, folder.to_owned(), Some(Arc::new(lent)))));
        }
        // The first one sets the attributes of the target; only contents do.
        let mut top = None;
        if let Some(first) = contents.first()
            && sources.iter().any(|(number, _)| *number < first.number)
        {
            let fd = dir::open(first.fd.as_fd(), c".", false).map_err(read())?;
            top = Some((fd, first.argument.folder.clone(), Some(Arc::default())));
        }
        for Content { number, fd, argument } in contents {
            sources.push((number, (fd, argument.folder.clone(), None)));
        }
        sources.sort_by_key(|(number, _)| *number);
        let names = arguments.iter().filter_map(|argument| argument.names.first());
        let ends = ArgumentEnds {
            sources: top.into_iter().chain(sources.into_iter().map(|(_, source)| source)).collect(),
            target: self.target().map_err(Failure::of(Operation::List))?,
            target_path: self.place.path.clone(),
            created: self.place.created,
            path: Vec::new(),
            first: Vec::new(),
            provided: names.filter_map(|name| Some(c_string(name).ok()?.into())).collect(),
            bases: self.bases(),
            owner: None,
        };
        self.engine.base(ends, true)
    }

    /// Returns the node of the same target directory that is finished after this one, and holds it.
    fn held_owner(&self) -> Option<Arc<Node>> {
        self.owner.as_ref().inspect(|owner| owner.hold()).map(Arc::clone)
    }

    /// Adds names that several folders provide: one node has them all as sources, so that none takes the files of
    /// another for extraneous.
    fn meeting(&mut self, meeting: Meeting<'_>) -> Result<(), Failure> {
        let read = || Failure::of(Operation::Read);
        let Meeting { folders, mut lent, groups } = meeting;
        let Some((_, first)) = groups.first().and_then(|group| group.first()) else {
            return Ok(());
        };
        for (_, argument) in groups.iter().flatten() {
            let side = folders.iter().position(|folder| *folder == argument.folder);
            if let Some(lent) = side.and_then(|side| lent.get_mut(side)) {
                lent.add(&c_names(argument).map_err(read())?, self.is_followed(argument));
            }
        }
        let mut sources = Vec::new();
        for (folder, lent) in folders.into_iter().zip(lent) {
            let fd = self.open_source(&folder).map_err(read())?;
            sources.push((fd, folder, Some(Arc::new(lent))));
        }
        let ends = ArgumentEnds {
            sources,
            target: self.target().map_err(Failure::of(Operation::List))?,
            target_path: self.place.path.clone(),
            created: self.place.created,
            path: Vec::new(),
            first: first.names.first().cloned().unwrap_or_default(),
            provided: Vec::new(),
            bases: self.bases(),
            owner: self.held_owner(),
        };
        let dot = groups.iter().flatten().any(|(_, argument)| argument.dot);
        let base = self.engine.base(ends, dot)?;
        self.held.push(Arc::clone(&base));
        self.sweep_once(&base);
        let mut implied: HashMap<Vec<u8>, Option<Arc<Node>>> = HashMap::new();
        for group in &groups {
            let Some((_, argument)) = group.first() else { continue };
            let depth = group.iter().map(|(_, other)| other.names.len()).min().unwrap_or_default();
            let mut top = (*argument).clone();
            top.names.truncate(depth);
            // Symlinks above an argument are followed.
            top.follow |= depth < argument.names.len();
            if let Err(failure) = self.met(&base, &top, &mut implied) {
                self.engine.disable_deletion();
                self.engine.argument_failed(failure, &argument.typed);
            }
        }
        Ok(())
    }

    /// Adds the shared name of a group, from the first folder.
    fn met(
        &mut self,
        base: &Arc<Node>,
        argument: &Argument,
        implied: &mut HashMap<Vec<u8>, Option<Arc<Node>>>,
    ) -> Result<(), Failure> {
        if self.is_hidden(base, argument) {
            return Ok(());
        }
        let names = c_names(argument).map_err(Failure::of(Operation::Read))?;
        let Some((last, above)) = names.split_last() else { return Ok(()) };
        let (mut node, mut path) = (Arc::clone(base), Vec::new());
        for name in above {
            path.extend_from_slice(name.to_bytes_with_nul());
            let next = match implied.get(&path) {
                Some(known) => known.clone(),
                None => {
                    let made = self.engine.enter_implied(&node, name)?;
                    if let Some(made) = &made {
                        self.units.extend(self.engine.sweep_base(made));
                        self.held.push(Arc::clone(made));
                    }
                    implied.insert(path.clone(), made.clone());
                    made
                }
            };
            match next {
                Some(next) => node = next,
                None => return Ok(()),
            }
        }
        let follow = self.is_followed(argument);
        self.engine.add_name(&mut self.units, &node, last, None, follow);
        Ok(())
    }

    fn is_hidden(&self, base: &Arc<Node>, argument: &Argument) -> bool {
        if self.policy.filter.is_none() {
            return false;
        }
        let look = c_path(&argument.path()).and_then(|path| meta::of(dir::cwd(), &path, false));
        let is_dir = look.is_ok_and(|source| source.kind == Kind::Dir);
        self.engine.hides(base, &argument.names.join(&b'/'), is_dir)
    }

    /// Tells the engine if the target is inside of sources but the rules exclude it from all of them: `sync
    /// --remove-source-files --exclude=/done ./ ./done/`.
    fn hide_target(&self, arguments: &[Argument]) {
        let Ok(target) = or_here(&self.place.path).canonicalize() else { return };
        if self.policy.filter.is_none() || !self.policy.remove_source_files {
            return;
        }
        let mut contained = arguments.iter().filter_map(|argument| {
            let below = argument.path().canonicalize().ok()?;
            Some((argument, target.strip_prefix(below).ok()?))
        });
        let is_hidden = |(argument, below): (&Argument, &Path)| {
            let key = || {
                let dot = if argument.dot { b".".to_vec() } else { Vec::new() };
                (argument.folder.clone(), dot)
            };
            let node = match argument.is_content() {
                true => self.owner.as_ref(),
                false => self.nodes.get(&key()).and_then(Option::as_ref),
            };
            let mut path = argument.names.join(&b'/');
            node.is_some_and(|node| {
                below.components().any(|part| {
                    push_name(&mut path, part.as_os_str().as_bytes());
                    self.engine.hides(node, &path, true)
                })
            })
        };
        if contained.clone().next().is_some() && contained.all(is_hidden) {
            self.engine.hide_target();
        }
    }

    fn sweep_once(&mut self, base: &Arc<Node>) {
        if !std::mem::replace(&mut self.swept, true) {
            self.units.extend(self.engine.sweep_base(base));
        }
    }

    /// Adds an argument that is a name in a folder.
    fn name(&mut self, argument: &Argument) -> Result<(), Failure> {
        let read = || Failure::of(Operation::Read);
        let Some((last, above)) = argument.names.split_last() else { return Ok(()) };
        let c = |name: &Vec<u8>| c_string(name).map_err(read());
        let mut node = self.base(argument, last)?;
        let path = |depth: usize| argument.names[..depth].join(&b'/');
        let is_known =
            |depth: usize| self.nodes.contains_key(&(argument.folder.clone(), path(depth)));
        // A missing argument is reported whatever the rules say, and nothing is created above it.
        if self.policy.filter.is_some() || !(1..=above.len()).all(is_known) {
            let source = self.look(argument).map_err(read())?;
            let descends = self.policy.recurse || self.policy.dirs || self.policy.cp_targets;
            if source.kind == Kind::Dir && !descends {
                self.engine.argument_is_dir(&argument.typed);
                return Ok(());
            }
        }
        // A rule that excludes the argument excludes the directories above it, too.
        if self.is_hidden(&node, argument) {
            return Ok(());
        }
        for (depth, name) in above.iter().enumerate() {
            match self.implied(argument, &path(depth + 1), &node, &c(name)?)? {
                Some(next) => node = next,
                None => return Ok(()),
            }
        }
        let name = c(last)?;
        let fds = node.fds().map_err(read())?;
        let source_dir = fds.source(0).and_then(SourceDir::here).map_err(read())?;
        let source = self.look_at(source_dir, &name, argument).map_err(read())?;
        let follow = self.policy.follow_args || argument.follow && source.kind == Kind::Dir;
        let target_name = self.place.name.as_deref();
        self.engine.add_name(&mut self.units, &node, &name, target_name, follow);
        Ok(())
    }

    /// Returns the node of an argument's folder: it only provides names and is not copied itself.
    fn base(&mut self, argument: &Argument, last: &[u8]) -> Result<Arc<Node>, Failure> {
        // The path above an argument's own name only matters for rules with merge files.
        let key = (argument.folder.clone(), if argument.dot { b".".to_vec() } else { Vec::new() });
        if let Some(Some(node)) = self.nodes.get(&key) {
            return Ok(Arc::clone(node));
        }
        let fd = self.open_folder(argument).map_err(Failure::of(Operation::Read))?;
        let ends = ArgumentEnds {
            sources: vec![(fd, argument.folder.clone(), None)],
            target: self.target().map_err(Failure::of(Operation::List))?,
            target_path: self.place.path.clone(),
            created: self.place.created,
            path: Vec::new(),
            first: argument.names.first().cloned().unwrap_or_else(|| last.to_vec()),
            provided: Vec::new(),
            bases: self.bases(),
            owner: self.held_owner(),
        };
        let node = self.engine.base(ends, argument.dot)?;
        self.sweep_once(&node);
        self.held.push(Arc::clone(&node));
        self.nodes.insert(key, Some(Arc::clone(&node)));
        Ok(node)
    }

    fn implied(
        &mut self,
        argument: &Argument,
        path: &[u8],
        parent: &Arc<Node>,
        name: &CStr,
    ) -> Result<Option<Arc<Node>>, Failure> {
        let key = (argument.folder.clone(), path.to_vec());
        if let Some(node) = self.nodes.get(&key) {
            return Ok(node.clone());
        }
        let fds = parent.fds().map_err(Failure::of(Operation::Read))?;
        let checked = fds.source(0).and_then(|dir| self.check_link(argument, dir.here()?, name));
        checked.map_err(Failure::of(Operation::Read))?;
        let node = self.engine.enter_implied(parent, name)?;
        if let Some(node) = &node {
            if self.sweeps {
                self.units.extend(self.engine.sweep_base(node));
            }
            self.held.push(Arc::clone(node));
        }
        self.nodes.insert(key, node.clone());
        Ok(node)
    }
}

// Entries that an earlier run chose (`Spec::chosen`). They are not examined here, one after the other: workers do
// that as they come to them.

/// Makes the units of chosen entries below a folder; `.` is the folder itself, whose attributes are set. Directories above them
/// are created where they are missing, and not searched for leftovers: other runs write there at the same time.
pub fn chosen_roots(
    engine: &LocalEngine<'_>,
    policy: &Policy,
    place: &TargetPlace,
    folder: &Path,
    chosen: &EntrySelection,
) -> Vec<Unit> {
    let mut roots = Roots::new(engine, policy, place);
    (roots.swept, roots.sweeps) = (true, false);
    let mut argument = Argument {
        typed: folder.to_owned(),
        folder: folder.to_owned(),
        names: Vec::new(),
        relative: true,
        dot: false,
        follow: false,
        top: Some(Arc::from(folder)),
        dir_only: false,
    };
    let is_top = |(name, _): &&(Box<[u8]>, Kind)| **name == *b".";
    argument.dot = chosen.names.iter().any(|chosen| is_top(&chosen));
    if argument.dot
        && let Err(failure) = roots.base(&argument, b"")
    {
        engine.argument_failed(failure, folder);
    }
    let mut known: Option<(&[u8], Option<Arc<Node>>)> = None;
    for (path, kind) in chosen.names.iter().filter(|chosen| !is_top(chosen)) {
        let (above, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..)),
            None => (&b""[..], Some(&**path)),
        };
        let name = name.unwrap_or_default();
        let entered = match &known {
            Some((folder, node)) if *folder == above => Ok(node.clone()),
            _ => roots.enter(&mut argument, above, name),
        };
        let added = entered.and_then(|node| {
            if let Some(node) = &node {
                roots.add(node, name, *kind)?;
            }
            known = Some((above, node));
            Ok(())
        });
        if let Err(failure) = added {
            known = None;
            engine.argument_failed(failure, &folder.join(OsStr::from_bytes(path)));
        }
    }
    engine.all_found();
    roots.into_units()
}

impl<'e, 'p> Roots<'e, 'p> {
    pub(super) fn new(
        engine: &'e LocalEngine<'p>,
        policy: &'e Policy,
        place: &'e TargetPlace,
    ) -> Roots<'e, 'p> {
        let (nodes, held, units) = Default::default();
        let (swept, sweeps, owner) = (false, true, None);
        Roots { engine, policy, place, units, nodes, held, swept, sweeps, owner }
    }

    pub(super) fn into_units(self) -> Vec<Unit> {
        let Roots { engine, units, held, nodes, .. } = self;
        drop(nodes);
        for node in held.iter().rev() {
            engine.release_hold(node);
        }
        units
    }
}

impl Roots<'_, '_> {
    /// Returns the node of the directory `above`, which has the entry `name`; `None` if nothing is transferred there.
    fn enter(
        &mut self,
        argument: &mut Argument,
        above: &[u8],
        name: &[u8],
    ) -> Result<Option<Arc<Node>>, Failure> {
        let mut node = self.base(argument, name)?;
        let mut end = 0;
        for step in above.split(|byte| *byte == b'/').filter(|_| !above.is_empty()) {
            let path = above.get(..end + step.len()).unwrap_or_default();
            end += step.len() + 1;
            let step = c_string(step).map_err(Failure::of(Operation::Read))?;
            match self.implied(argument, path, &node, &step)? {
                Some(next) => node = next,
                None => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    fn add(&mut self, node: &Arc<Node>, name: &[u8], kind: Kind) -> Result<(), Failure> {
        let name = c_string(name).map_err(Failure::of(Operation::Read))?;
        self.engine.add_known(&mut self.units, node, &name, kind);
        Ok(())
    }
}

// Examines arguments before anything is created: their types, symlinks in their paths, and those that are missing
// (`--delete-missing-args`).

impl Roots<'_, '_> {
    /// Opens a directory of the sources by its path.
    fn open_source(&self, path: &Path) -> io::Result<OwnedFd> {
        let Some(root) = &self.policy.root else { return open_folder(path) };
        let path = c_path(or_here(path))?;
        paths::open_beneath(open_folder(root)?.as_fd(), &path, paths::OpenPurpose::Directory)
    }

    pub(super) fn open_folder(&self, argument: &Argument) -> io::Result<OwnedFd> {
        let below = argument
            .top
            .as_deref()
            .and_then(|top| Some((top, argument.folder.strip_prefix(top).ok()?)));
        match (below, &self.policy.links) {
            (Some((top, below)), links)
                if *links != Links::Any
                    && self.policy.root.is_none()
                    && !below.as_os_str().is_empty() =>
            {
                let below = c_path(below)?;
                // Sources are not confined.
                Links::Trusted.open_dir(self.open_source(top)?.as_fd(), &below)
            }
            _ => self.open_source(&argument.folder),
        }
    }

    /// Rejects a disallowed symlink in the path of a listed name.
    pub(super) fn check_link(
        &self,
        argument: &Argument,
        dir: BorrowedFd<'_>,
        name: &CStr,
    ) -> io::Result<()> {
        match argument.top {
            Some(_) => self.policy.links.check(dir, name),
            None => Ok(()),
        }
    }

    /// Of names that are the same at the target only the first existing one is transferred, as in rsync. Earlier ones
    /// stay in the list, to be reported.
    pub(super) fn first_wins(&self, group: &[Numbered<'_>], alone: &mut [bool]) {
        let there = |(_, argument): &Numbered<'_>| self.look(argument).is_ok();
        let after = group.iter().position(there).map_or(group.len(), |first| first + 1);
        for (number, argument) in group.iter().skip(after) {
            if let Some(alone) = alone.get_mut(*number)
                && self.look(argument).is_ok()
            {
                *alone = false;
            }
        }
    }

    /// Returns the metadata of an argument: with a slash at its end of a directory, also through a symlink.
    pub(super) fn look(&self, argument: &Argument) -> io::Result<Meta> {
        let path = c_path(&argument.path())?;
        self.look_at(dir::cwd(), &path, argument)
    }

    pub(super) fn look_at(
        &self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        argument: &Argument,
    ) -> io::Result<Meta> {
        if argument.follow && !argument.dir_only {
            // rsync's rule: the slash counts if it leads to a directory.
            match meta::of(dir, name, true) {
                Ok(named) if named.kind == Kind::Dir => {
                    self.check_link(argument, dir, name)?;
                    return Ok(named);
                }
                _ => {}
            }
        }
        let follow = argument.dir_only
            || self.policy.follow_args
            || self.policy.symlinks == Symlinks::Follow;
        let source = meta::of(dir, name, follow)?;
        if argument.dir_only && source.kind != Kind::Dir {
            return Err(io::Error::from_raw_os_error(errno::ENOTDIR));
        }
        Ok(source)
    }

    /// Returns whether an argument is copied as a directory.
    pub(super) fn is_dir(&self, argument: &Argument) -> io::Result<bool> {
        let source = self.look(argument)?;
        let path = c_path(&argument.path())?;
        let dirlink = self.policy.copy_dirlinks
            && meta::of(dir::cwd(), &path, true).is_ok_and(|named| named.kind == Kind::Dir);
        Ok(source.kind == Kind::Dir || dirlink)
    }

    pub(super) fn is_followed(&self, argument: &Argument) -> bool {
        let leads = || self.look(argument).is_ok_and(|source| source.kind == Kind::Dir);
        self.policy.follow_args || argument.follow && leads()
    }

    /// Returns whether a missing argument is removed from the target.
    pub(super) fn is_removed(&self, failure: &Failure) -> bool {
        self.policy.missing_args == MissingArgs::Delete && errno::is(&failure.error, errno::ENOENT)
    }

    /// Removes the target entry of a missing argument.
    pub(super) fn remove_missing(&mut self, argument: &Argument) -> Result<(), Failure> {
        let Some((last, above)) = argument.names.split_last() else { return Ok(()) };
        let c = |name: &[u8]| c_string(name).map_err(Failure::of(Operation::Remove));
        let mut node = self.base(argument, last)?;
        for (depth, name) in above.iter().enumerate() {
            let path = argument.names[..=depth].join(&b'/');
            match self.implied(argument, &path, &node, &c(name)?)? {
                Some(next) => node = next,
                None => return Ok(()),
            }
        }
        let name = c(last)?;
        self.engine.remove_missing(&node, self.place.name.as_deref().unwrap_or(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str, layout: Layout) -> (String, Vec<String>, bool) {
        let argument = argument(Path::new(text), layout).expect("a fine argument");
        let names = argument.names.iter().map(|n| String::from_utf8_lossy(n).into_owned());
        (argument.folder.display().to_string(), names.collect(), argument.follow)
    }

    #[test]
    fn rsync_arguments() {
        let plain = Layout::Rsync { relative: false };
        let cases = [
            ("a", "", vec!["a"], false),
            ("a/b", "a/", vec!["b"], false),
            ("/a", "/", vec!["a"], false),
            ("a/", "a/", vec![], true),
            ("a/b//", "a/b//", vec![], true),
            (".", ".", vec![], false),
            ("a/.", "a/.", vec![], false),
            ("..", "..", vec![], false),
            ("/", "/", vec![], true),
        ];
        for (text, folder, names, follow) in cases {
            let names: Vec<String> = names.into_iter().map(String::from).collect();
            assert_eq!(taken(text, plain), (folder.to_string(), names, follow), "{text}");
        }
    }

    #[test]
    fn relative_arguments() {
        let relative = Layout::Rsync { relative: true };
        let cases = [
            ("a/b/c", "", vec!["a", "b", "c"], false),
            ("/a/b", "/", vec!["a", "b"], false),
            ("/x/./a/b", "/x", vec!["a", "b"], false),
            ("x/./a/", "x", vec!["a"], true),
            ("x/./", "x", vec![], true),
            ("./a", "", vec!["a"], false),
        ];
        for (text, folder, names, follow) in cases {
            let names: Vec<String> = names.into_iter().map(String::from).collect();
            assert_eq!(taken(text, relative), (folder.to_string(), names, follow), "{text}");
        }
        assert!(argument(Path::new("../a"), relative).is_err());
    }

    #[test]
    fn lines_of_a_list() {
        let taken = |line: &str, relative: bool| -> Vec<String> {
            let lines: Vec<Vec<u8>> = line.split('|').map(|line| line.into()).collect();
            let shown = |argument: &Argument| {
                let names = argument.names.iter().map(|n| String::from_utf8_lossy(n).into_owned());
                let names: Vec<String> = names.collect();
                let slash = if argument.follow { "/" } else { "" };
                let dot = if argument.dot { " dot" } else { "" };
                format!("{}:{}{slash}{dot}", argument.folder.display(), names.join("/"))
            };
            listed(Path::new("s"), &lines, relative).iter().map(shown).collect()
        };
        for (line, expected) in [
            ("d", "s:d"),
            ("d/", "s:d/"),
            ("d/.", "s:d/"),
            ("d/./", "s/d:/"),
            ("d/./f", "s/d:f"),
            ("x/./y/./z", "s/x:y/z"),
            ("x//y", "s:x/y"),
            ("/d/f", "s:d/f"),
            ("../../d/f", "s:d/f"),
            ("d/e/..", "s:d/"),
            ("d/./../f", "s/d:f"),
            ("./d", "s:d dot"),
            (".", "s:/"),
            ("/", "s:/"),
        ] {
            assert_eq!(taken(line, true), [expected], "{line}");
        }
        for (line, expected) in [("x/y", "s/x:y"), ("x/./y", "s/x:y"), ("d/.", "s/d:/")] {
            assert_eq!(taken(line, false), [expected], "{line}");
        }
        assert_eq!(taken("d|a|d/|./a|d", true), ["s:d/", "s:a dot"]);
        assert_eq!(taken("d/./f|d/f", true), ["s/d:f", "s:d/f"]);
        // A folder with the marker in its own name is not cut.
        let argument = &listed(Path::new("a/./b"), &[b"f".to_vec()], true)[0];
        assert_eq!((argument.folder.as_path(), argument.names.len()), (Path::new("a/./b"), 1));
    }

    #[test]
    fn cp_arguments() {
        let cp = Layout::Cp { no_target_dir: false, target_is_dir: false, parents: false };
        assert_eq!(taken("a/", cp), (String::new(), vec!["a".to_string()], true));
        assert_eq!(taken("a/.", cp), ("a/.".to_string(), vec![], false));
    }
}
