//! What the target argument means: a directory that takes everything, or the new name of one file.

use super::{Argument, Layout, Spec};
use crate::engine::node::c_string;
use crate::error::{Fatal, quoted};
use crate::policy::{Policy, Symlinks};
use crate::unit::Kind;
use hakobu_sys::{OwnedFd, dir, errno, meta};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where a transfer arrives.
pub struct Place {
    /// The directory, open; `None` where nothing is made (or a dry run would have to make it).
    pub dir: Option<OwnedFd>,
    /// How the user would spell it.
    pub path: PathBuf,
    /// It was made just now.
    pub created: bool,
    /// The single argument gets this name in it.
    pub name: Option<CString>,
}

impl Place {
    /// Nowhere: `null:`, lists.
    pub fn nowhere(path: &Path) -> Place {
        Place { dir: None, path: path.to_owned(), created: false, name: None }
    }
}

fn look(path: &Path, follow: bool) -> io::Result<meta::Meta> {
    meta::of(dir::cwd(), &c_string(path.as_os_str().as_bytes())?, follow)
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    dir::open_root(&c_string(path.as_os_str().as_bytes())?)
}

/// Finds out what the target is, and makes it where it has to be a directory and is missing.
///
/// # Errors
/// Code 3 where the target cannot take what is to be copied, 11 where it cannot be made or
/// opened. Nothing has been moved then.
pub fn place(spec: &Spec, arguments: &[Argument], real: bool, umask: u32) -> Result<Place, Fatal> {
    let there = match look(&spec.target, true) {
        Ok(there) => Some(there),
        Err(error) if errno::is(&error, errno::ENOENT) => None,
        Err(error) => return Err(unusable(&spec.target, &error)),
    };
    let slash = spec.target.as_os_str().as_bytes().ends_with(b"/");
    let is_dir = there.is_some_and(|there| there.kind == Kind::Dir);
    let as_name = match spec.layout {
        Layout::Rsync { .. } => rsync_wants_name(spec, arguments, there.as_ref(), slash)?,
        Layout::Cp { no_target_dir: true, .. } => true,
        Layout::Cp { target_is_dir, parents, .. } => {
            let content = arguments.iter().any(Argument::is_content);
            if (target_is_dir || parents || (slash && !content))
                && !is_dir
                && !(slash && copies_dir(spec, arguments))
            {
                let reason = if there.is_some() { "is not a directory" } else { "does not exist" };
                let message = format!("target {} {reason}", quoted(&spec.target));
                return Err(Fatal::new(3, message));
            }
            !is_dir && !content
        }
    };
    if as_name {
        return name_in_parent(spec, arguments, real, umask);
    }
    let mut created = false;
    if there.is_none() {
        // For sources that do not exist nothing is made either.
        let exists = |argument: &Argument| look(&argument.path(), false).is_ok();
        if !real || !arguments.iter().any(exists) {
            return Ok(Place::nowhere(&spec.target));
        }
        make(&spec.target, spec, umask)?;
        created = true;
    }
    let dir = open(&spec.target).map_err(|error| unusable(&spec.target, &error))?;
    Ok(Place { dir: Some(dir), path: spec.target.clone(), created, name: None })
}

/// rsync's rule: a target that is no directory is a file's name only for one single file.
fn rsync_wants_name(
    spec: &Spec,
    arguments: &[Argument],
    there: Option<&meta::Meta>,
    slash: bool,
) -> Result<bool, Fatal> {
    let single = match arguments {
        [one] if !one.is_content() && !one.relative && spec.files_from.is_none() => {
            let path = one.path();
            let follow = spec.policy.symlinks == Symlinks::Follow || one.follow;
            look(&path, follow).is_ok_and(|source| {
                let dirlink = spec.policy.copy_dirlinks
                    && look(&path, true).is_ok_and(|named| named.kind == Kind::Dir);
                source.kind != Kind::Dir && !dirlink
            })
        }
        _ => false,
    };
    match there {
        Some(there) if there.kind == Kind::Dir => Ok(false),
        None => Ok(single && !slash),
        Some(_) if single && !slash => Ok(true),
        Some(_) => {
            let message = format!(
                "the target {} must be a directory: more than one file is copied",
                quoted(&spec.target)
            );
            Err(Fatal::new(3, message))
        }
    }
}

fn copies_dir(spec: &Spec, arguments: &[Argument]) -> bool {
    spec.policy.recurse
        && matches!(arguments, [one]
            if look(&one.path(), true).is_ok_and(|source| source.kind == Kind::Dir))
}

/// The target is a name in its parent directory.
fn name_in_parent(
    spec: &Spec,
    arguments: &[Argument],
    real: bool,
    umask: u32,
) -> Result<Place, Fatal> {
    let target = resolve_link(&spec.target, arguments, &spec.policy)?;
    let Some(name) = target.file_name().filter(|_| !target.as_os_str().is_empty()) else {
        let message = format!("{} cannot be the name of a file", quoted(&spec.target));
        return Err(Fatal::new(3, message));
    };
    let parent = target.parent().unwrap_or(Path::new(""));
    let open_as = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let name = c_string(name.as_bytes()).map_err(|error| unusable(&spec.target, &error))?;
    let mut created = false;
    if real && spec.mkpath && look(open_as, true).is_err_and(|e| errno::is(&e, errno::ENOENT)) {
        make(open_as, spec, umask)?;
        created = true;
    }
    let dir = match open(open_as) {
        Ok(dir) => Some(dir),
        Err(error) if !real && errno::is(&error, errno::ENOENT) => None,
        Err(error) if errno::is(&error, errno::ENOENT) => {
            let message =
                format!("the target folder {} does not exist (--mkpath makes it)", quoted(open_as));
            return Err(Fatal::new(3, message));
        }
        Err(error) => return Err(unusable(open_as, &error)),
    };
    Ok(Place { dir, path: parent.to_owned(), created, name: Some(name) })
}

/// cp writes through a symlink that it is given as the target, unless the source is one, too, and
/// is kept as one.
fn resolve_link(target: &Path, arguments: &[Argument], policy: &Policy) -> Result<PathBuf, Fatal> {
    let is_link = |path: &Path| look(path, false).is_ok_and(|there| there.kind == Kind::Symlink);
    let keeps = policy.symlinks == Symlinks::Keep
        && arguments.iter().any(|argument| is_link(&argument.path()));
    if !policy.cp_targets || !is_link(target) || keeps {
        return Ok(target.to_owned());
    }
    std::fs::canonicalize(target).map_err(|_| {
        let message = format!("not writing through the dangling symlink {}", quoted(target));
        Fatal::new(3, message)
    })
}

fn make(path: &Path, spec: &Spec, umask: u32) -> Result<(), Fatal> {
    let mut builder = std::fs::DirBuilder::new();
    let made = std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o777 & !umask)
        .recursive(spec.mkpath)
        .create(path);
    made.map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound if !spec.mkpath => " (--mkpath makes missing parents)",
            _ => "",
        };
        let cause = crate::error::Cause::System(error);
        let message = format!("cannot create target directory {}: {cause}{hint}", quoted(path));
        Fatal::new(11, message)
    })
}

fn unusable(path: &Path, error: &io::Error) -> Fatal {
    let code = error.raw_os_error();
    let cause = crate::error::Cause::System(match code {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::other(error.to_string()),
    });
    Fatal::new(11, format!("cannot use target {}: {cause}", quoted(path)))
}
