//! Resolution of a source argument: one file or object, a folder, the matches of a wildcard, a list.

use super::ask;
use super::place::{Place, slashed};
use super::planned::{PlannedSource, What};
use crate::engine::failure::c_string;
use crate::location::{Location, S3Url};
use crate::object::list::Pattern;
use crate::object::{Entry, Pair, Root, says_symlink};
use crate::plan::argument::argument;
use crate::plan::path::open_folder;
use crate::plan::{Argument, Layout, Spec};
use crate::policy::Symlinks;
use hakobu_core::error::{Cause, Class, Fatal, Operation, Problem};
use hakobu_core::unit::{Kind, Meta};
use hakobu_s3::S3Session;
use hakobu_sys::below::split;
use hakobu_sys::{AsFd, OwnedFd, meta};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A resolved source argument.
struct Source {
    root: Root,
    what: Found,
}

enum Found {
    /// An entry below the root, which keeps its name in a target folder, and whether it is a symlink, local or by its
    /// metadata.
    One(Entry, bool),
    /// The content of the root, whose name is created in a target folder.
    Named(Vec<u8>),
    /// The content of the root.
    Content,
    /// The matches of a wildcard.
    Matches(Pattern),
}

/// Resolves a source argument and its target. `list`: only these names of it.
///
/// # Errors
/// An error for the whole run; the inner error: one for this source alone.
pub(super) fn resolve(
    spec: &Spec,
    typed: Location,
    list: Option<Vec<Vec<u8>>>,
    place: &Place,
    store: Option<&Arc<S3Session>>,
    umask: u32,
) -> Result<Result<PlannedSource, Problem>, Fatal> {
    let source = match &typed {
        Location::S3(url) => match store {
            Some(store) => in_store(spec, url, list.is_none(), store)?,
            None => return Err(Fatal::new(1, "there is no store for this source")),
        },
        Location::Local(path) => {
            // A list of names implies `relative`, but its names are below the source. A trailing slash means the
            // content of a folder in every command.
            local(spec, &argument(path, Layout::Rsync { relative: false })?)
        }
        Location::Null => return Err(Fatal::new(1, "null: cannot be a source")),
    };
    let Source { root, what } = match source {
        Ok(source) => source,
        Err(cause) => {
            let (operation, class) = (Operation::Read, Class::Partial);
            let source = Some(typed.as_typed());
            return Ok(Err(Problem { operation, source, target: None, cause, class }));
        }
    };
    let made = |pair: Pair, target_is_new: bool, what: What| {
        Ok(Ok(PlannedSource { pair: Arc::new(pair), what, target_is_new }))
    };
    let rsync = matches!(spec.layout, Layout::Rsync { .. });
    let (name, what) = match what {
        Found::One(..) | Found::Matches(_) if list.is_some() => {
            let message =
                "--files-from needs a source folder (for a prefix: with a slash at its end)";
            return Err(Fatal::new(1, message));
        }
        Found::One(entry, is_link) if !place.takes_files => {
            let (target, name, target_is_new) = place.name(&spec.policy, is_link, umask)?;
            let pair = Pair { source: root, target, lead: Vec::new() };
            return made(pair, target_is_new, What::One { entry, name });
        }
        Found::One(entry, _) => {
            let name = entry.name.to_vec();
            (Vec::new(), What::One { entry, name })
        }
        Found::Content | Found::Named(_) if let Some(list) = list => {
            (Vec::new(), What::Names(list))
        }
        // cp gives the folder a new name.
        Found::Named(_) if !rsync && !place.takes_folders => {
            (Vec::new(), What::Tree { pattern: None })
        }
        Found::Named(_) if spec.objects.flatten => (Vec::new(), What::Tree { pattern: None }),
        Found::Named(name) => (name, What::Tree { pattern: None }),
        Found::Content => (Vec::new(), What::Tree { pattern: None }),
        Found::Matches(pattern) => (Vec::new(), What::Tree { pattern: Some(pattern) }),
    };
    // The folder `name` of the target; empty for the target itself.
    let target_is_new = place.is_missing(&name);
    let target = place.folder(&name, umask)?;
    let lead = if name.is_empty() { Vec::new() } else { slashed(&name) };
    made(Pair { source: root, target, lead }, target_is_new, what)
}

fn in_store(
    spec: &Spec,
    url: &S3Url,
    wildcards: bool,
    store: &Arc<S3Session>,
) -> Result<Result<Source, Cause>, Fatal> {
    let S3Url { bucket, key, .. } = url;
    if bucket.is_empty() {
        return Ok(Err(Cause::Reason("it names no bucket")));
    }
    let root = |prefix: &[u8]| Root::Store { bucket: bucket.clone(), prefix: prefix.to_vec() };
    if let Some(whole) = Pattern::parse(key).filter(|_| wildcards && !spec.objects.raw) {
        let prefix = whole.root();
        if let Some(pattern) = Pattern::parse(&key[prefix.len()..]) {
            return Ok(Ok(Source { root: root(prefix), what: Found::Matches(pattern) }));
        }
    }
    let recursive = spec.policy.recurse || spec.policy.dirs;
    let folder = key.is_empty() || key.ends_with(b"/");
    if folder && !recursive {
        return Ok(Err(Cause::Reason("it is a prefix, and -r is not given")));
    }
    // A bucket is a root like `/`: the argument means its content, without a name of its own.
    if key.is_empty() {
        return Ok(Ok(Source { root: root(b""), what: Found::Content }));
    }
    if folder {
        // Without a key below it this is a mistyped name, and must never empty the target.
        return Ok(match ask::any_below(store, bucket, key)? {
            true => Ok(Source { root: root(key), what: Found::Content }),
            false => Err(Cause::Reason("there is nothing below this prefix")),
        });
    }
    // The part before the last slash is the root; the rest is the name in it.
    let (prefix, name) = split(key);
    let version = spec.objects.options.version.as_deref();
    if let Some(head) = ask::object(store, bucket, key, version)? {
        let meta = Meta::bare(Kind::File, head.size, head.mtime);
        let is_link = says_symlink(&head);
        let entry = Entry { name: name.into(), meta, etag: head.etag.into() };
        // A key that cannot be a file's name can still be read, and written under another one.
        return Ok(Ok(Source { root: root(prefix), what: Found::One(entry, is_link) }));
    }
    if version.is_none() && ask::any_below(store, bucket, &slashed(key))? {
        return Ok(match recursive {
            true => {
                let what = Found::Named(name.to_vec());
                Ok(Source { root: root(&slashed(key)), what })
            }
            false => Err(Cause::Reason("it is a prefix, and -r is not given")),
        });
    }
    Ok(Err(Cause::Reason("there is no such object or prefix")))
}

fn local(spec: &Spec, argument: &Argument) -> Result<Source, Cause> {
    let policy = &spec.policy;
    let root = |folder: &Path| -> io::Result<(Arc<OwnedFd>, Root)> {
        let dir = Arc::new(open_folder(folder)?);
        Ok((Arc::clone(&dir), Root::Local { dir, shown: folder.to_owned() }))
    };
    let (dir, folder) = root(&argument.folder).map_err(Cause::System)?;
    let recursive = policy.recurse || policy.dirs;
    let Some(name) = argument.names.last() else {
        return match recursive {
            true => Ok(Source { root: folder, what: Found::Content }),
            false => Err(Cause::Reason("it is a directory, and -r is not given")),
        };
    };
    let follow = policy.symlinks == Symlinks::Follow || policy.follow_args || argument.follow;
    let looked = c_string(name).and_then(|name| meta::of(dir.as_fd(), &name, follow));
    let meta = looked.map_err(Cause::System)?;
    match meta.kind {
        Kind::Dir if recursive => {
            let (_, root) = root(&argument.path()).map_err(Cause::System)?;
            Ok(Source { root, what: Found::Named(name.clone()) })
        }
        Kind::Dir => Err(Cause::Reason("it is a directory, and -r is not given")),
        Kind::File | Kind::Symlink => {
            let entry = Entry { name: name.clone().into(), meta, etag: "".into() };
            Ok(Source { root: folder, what: Found::One(entry, meta.kind == Kind::Symlink) })
        }
        _ => Err(Cause::Reason("it is not a regular file")),
    }
}
