//! What one source argument names: one file or object, a folder, what a wildcard matches, a list.

use super::ask::Asker;
use super::place::{Place, open, slashed};
use super::{Stretch, What};
use crate::engine::node::c_string;
use crate::error::{Cause, Fatal};
use crate::location::{Location, S3Url};
use crate::object::list::{Pattern, bare_meta};
use crate::object::{Entry, Pair, Root};
use crate::plan::argument::argument;
use crate::plan::{Argument, Layout, Spec};
use crate::policy::Symlinks;
use crate::unit::Kind;
use hakobu_sys::{AsFd, meta};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A source argument that cannot be begun with; the others go on.
pub struct Missing {
    /// As typed.
    pub typed: PathBuf,
    /// Why.
    pub cause: Cause,
}

/// A source argument, looked at.
struct Source {
    root: Root,
    what: Found,
}

enum Found {
    /// An entry below the root, and what it is called at a target that is a folder.
    One(Entry, Vec<u8>),
    /// The content of the root, which has a name of its own that a target folder gets as well.
    Named(Vec<u8>),
    /// The content of the root.
    Content,
    /// What a wildcard matches.
    Matches(Pattern),
}

/// Finds out what a source argument is, and where it goes.
///
/// # Errors
/// What makes the whole run impossible; the inner error: what is wrong with this source alone.
pub(super) fn stretch(
    spec: &Spec,
    typed: &Path,
    place: &Place,
    asker: Option<&Asker>,
    umask: u32,
) -> Result<Result<Stretch, Missing>, Fatal> {
    let source = match Location::parse(typed.as_os_str())? {
        Location::S3(url) => match asker {
            Some(asker) => in_store(spec, &url, asker)?,
            None => return Err(Fatal::new(1, "there is no store for this source")),
        },
        Location::Local(_) => {
            // A list of names says "relative"; its names are below the source all the same.
            let layout = match spec.layout {
                Layout::Rsync { .. } => Layout::Rsync { relative: false },
                layout => layout,
            };
            local(spec, &argument(typed, layout)?)
        }
        Location::Null => return Err(Fatal::new(1, "null: cannot be a source")),
    };
    let Source { root, what } = match source {
        Ok(source) => source,
        Err(cause) => return Ok(Err(Missing { typed: typed.to_owned(), cause })),
    };
    let made = |pair: Pair, target_is_new: bool, what: What| {
        Ok(Ok(Stretch { pair: Arc::new(pair), what, target_is_new }))
    };
    // The folder `name` of the target; empty for the target itself.
    let folder = |name: &[u8]| -> Result<(Root, bool), Fatal> {
        let target_is_new = place.is_missing(name);
        Ok((place.folder(name, umask)?, target_is_new))
    };
    let lead = |name: &[u8]| if name.is_empty() { Vec::new() } else { slashed(name) };
    let rsync = matches!(spec.layout, Layout::Rsync { .. });
    let (name, what) = match what {
        Found::One(..) | Found::Matches(_) if spec.files_from.is_some() => {
            let message =
                "--files-from needs a source folder (for a prefix: with a slash at its end)";
            return Err(Fatal::new(1, message));
        }
        Found::One(entry, name) if !place.is_folder => {
            let (target, new_name, target_is_new) = place.name(umask)?;
            drop(name);
            let pair = Pair { source: root, target, lead: Vec::new() };
            return made(pair, target_is_new, What::One { entry, name: new_name });
        }
        Found::One(entry, name) => (Vec::new(), What::One { entry, name }),
        Found::Content if let Some(list) = &spec.files_from => {
            (Vec::new(), What::Given(list.clone()))
        }
        Found::Named(_) if let Some(list) = &spec.files_from => {
            (Vec::new(), What::Given(list.clone()))
        }
        // cp names a folder anew where there is none of the target's name yet.
        Found::Named(_) if !rsync && !place.is_folder => (Vec::new(), What::Tree { pattern: None }),
        Found::Named(name) => (name, What::Tree { pattern: None }),
        Found::Content => (Vec::new(), What::Tree { pattern: None }),
        Found::Matches(pattern) => (Vec::new(), What::Tree { pattern: Some(pattern) }),
    };
    let (target, target_is_new) = folder(&name)?;
    made(Pair { source: root, target, lead: lead(&name) }, target_is_new, what)
}

fn in_store(spec: &Spec, url: &S3Url, asker: &Asker) -> Result<Result<Source, Cause>, Fatal> {
    let S3Url { bucket, key, .. } = url;
    if bucket.is_empty() {
        return Ok(Err(Cause::Reason("it names no bucket")));
    }
    // What stands before the last slash is the root; the rest is the name in it.
    let split = |key: &[u8]| key.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let root = |prefix: &[u8]| Root::Store { bucket: bucket.clone(), prefix: prefix.to_vec() };
    let rsync = matches!(spec.layout, Layout::Rsync { .. });
    if !spec.objects.raw
        && let Some(wild) = key.iter().position(|byte| matches!(byte, b'*' | b'?'))
    {
        let (prefix, rest) = key.split_at(split(&key[..wild]));
        if let Some(pattern) = Pattern::parse(rest) {
            return Ok(Ok(Source { root: root(prefix), what: Found::Matches(pattern) }));
        }
    }
    let recursive = spec.policy.recurse || spec.policy.dirs;
    let folder = key.is_empty() || key.ends_with(b"/");
    if folder && !recursive {
        return Ok(Err(Cause::Reason("it is a prefix, and -r is not given")));
    }
    // A bucket is a root like `/`: its content is meant, it has no name of its own in the tree.
    if key.is_empty() {
        return Ok(Ok(Source { root: root(b""), what: Found::Content }));
    }
    if folder && rsync {
        // Without a key below it this is a mistyped name, and never a reason to empty the target.
        return Ok(match asker.any_below(bucket, key)? {
            true => Ok(Source { root: root(key), what: Found::Content }),
            false => Err(Cause::Reason("there is nothing below this prefix")),
        });
    }
    let trimmed = key.strip_suffix(b"/").unwrap_or(key);
    let (prefix, name) = trimmed.split_at(split(trimmed));
    if !folder {
        let version = spec.objects.options.version.as_deref();
        if let Some(head) = asker.object(bucket, key, version)? {
            let meta = bare_meta(Kind::File, head.size, head.mtime);
            let entry = Entry { name: name.into(), meta, etag: head.etag.into() };
            // What cannot be a file's name still can be read, and written under another one.
            return Ok(Ok(Source { root: root(prefix), what: Found::One(entry, name.to_vec()) }));
        }
    }
    if spec.objects.options.version.is_none() && asker.any_below(bucket, &slashed(trimmed))? {
        return Ok(match recursive {
            true => {
                let what = Found::Named(name.to_vec());
                Ok(Source { root: root(&slashed(trimmed)), what })
            }
            false => Err(Cause::Reason("it is a prefix, and -r is not given")),
        });
    }
    Ok(Err(Cause::Reason("there is no such object or prefix")))
}

fn local(spec: &Spec, argument: &Argument) -> Result<Source, Cause> {
    look(spec, argument).map_err(|failed| match failed {
        Failed::System(error) => Cause::System(error),
        Failed::Reason(reason) => Cause::Reason(reason),
    })
}

enum Failed {
    System(io::Error),
    Reason(&'static str),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::System(error)
    }
}

fn look(spec: &Spec, argument: &Argument) -> Result<Source, Failed> {
    let policy = &spec.policy;
    let folder: &Path = match argument.folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => &argument.folder,
    };
    let dir = Arc::new(open(folder)?);
    let root = Root::Local { dir: Arc::clone(&dir), shown: argument.folder.clone() };
    let recursive = policy.recurse || policy.dirs;
    let Some(name) = argument.names.last() else {
        return match recursive {
            true => Ok(Source { root, what: Found::Content }),
            false => Err(Failed::Reason("it is a directory, and -r is not given")),
        };
    };
    let follow = policy.symlinks == Symlinks::Follow || policy.follow_args || argument.follow;
    let meta = meta::of(dir.as_fd(), &c_string(name)?, follow)?;
    match meta.kind {
        Kind::Dir if recursive => {
            let shown = argument.path();
            let dir = Arc::new(open(&shown)?);
            Ok(Source { root: Root::Local { dir, shown }, what: Found::Named(name.clone()) })
        }
        Kind::Dir => Err(Failed::Reason("it is a directory, and -r is not given")),
        Kind::File | Kind::Symlink => {
            let entry = Entry { name: name.clone().into(), meta, etag: "".into() };
            Ok(Source { root, what: Found::One(entry, name.clone()) })
        }
        _ => Err(Failed::Reason("it is no regular file")),
    }
}
