//! Transfers with a store on a side: resolves each source argument, and feeds the object engine from sorted listings.

pub use super::feed::feed;
pub use super::known::{Claims, KnownNames};
use super::meeting::meeting;
use super::paths::written_through;
use super::paths::{Line, argument, c_path, open_folder, or_here};
use super::{Argument, Layout, Spec};
use crate::failure::c_string;
use crate::location::{Location, S3Url, s3_path};
use crate::object::list::{
    self, Dirs, Listing, LocalQuery, NameFilter, Pattern, ReadMergeFile, Trouble, merge_files,
    merge_objects,
};
use crate::object::{Entry, Pair, Root, Side, key_of, path_of, says_symlink};
use crate::policy::filter::Origin;
use crate::policy::{NameRange, Policy, Symlinks};
use hakobu_core::error::{Cause, ErrorClass, Fatal, Operation, Problem, quoted};
use hakobu_core::unit::{Kind, Meta};
use hakobu_s3::ops::{ListQuery, ObjectHead, ObjectPages, head_object};
use hakobu_s3::{AccessPoint, Client, Error, ErrorKind, S3Session, with_session};
use hakobu_sys::paths::{Links, PathBelow, RefusedLink, split};
use hakobu_sys::{AsFd, OwnedFd, dir, errno, meta};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Resolves the arguments of a transfer.
///
/// # Errors
/// Bad arguments, failed requests, an unusable target. A missing source is returned separately: the others continue.
pub fn resolve_sources(
    spec: &Spec,
    stores: &Stores,
    umask: u32,
) -> Result<(Vec<PlannedSource>, Vec<Problem>), Fatal> {
    let place = ObjectTarget::of(spec, stores.target.as_ref())?;
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for source in spec.sources.locations() {
        for (source, list) in parts(spec, source) {
            match resolve(spec, source, list, &place, stores.source.as_ref(), umask)? {
                Ok(planned) => found.push(planned),
                Err(gone) => missing.push(gone),
            }
        }
    }
    refuse_overlaps(spec, &found)?;
    Ok((found, missing))
}

/// Splits a source argument: itself, or with a list of names the folders that they are cut off from (`FOLDER/./NAME`,
/// rsync's `--relative`), each with its names. Of names that are the same at the target the first one counts.
fn parts(spec: &Spec, source: Location) -> Vec<(Location, Option<Vec<Vec<u8>>>)> {
    let Some(list) = &spec.files_from else { return vec![(source, None)] };
    // A key may contain any of it; --raw takes names literally.
    let cuts = matches!(spec.layout, Layout::Rsync { relative: true });
    let cuts = cuts && !(source.is_s3() && spec.objects.raw);
    // The output of `find .` begins with `./`.
    let bare = |name: &Vec<u8>| match name.strip_prefix(b"./") {
        Some(rest) if cuts => rest.to_vec(),
        _ => name.clone(),
    };
    let list: Vec<Vec<u8>> = list.iter().map(bare).collect();
    let is_cut = |name: &&Vec<u8>| cuts && name.windows(3).any(|part| part == b"/./");
    let (cut, plain): (Vec<_>, Vec<_>) = list.iter().partition(is_cut);
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    if !cut.is_empty() {
        seen.extend(plain.iter().map(|name| list::plain(name)));
    }
    let mut parts: Vec<(Location, Option<Vec<Vec<u8>>>)> = Vec::new();
    if !plain.is_empty() || cut.is_empty() {
        parts.push((source.clone(), Some(plain.into_iter().cloned().collect())));
    }
    for name in cut {
        let line = Line::new(name, true);
        let name = line.names.join(&b'/');
        if !seen.insert(name.clone()) {
            continue;
        }
        let slash = if line.slash { &b"/"[..] } else { b"" };
        let name = [&name, slash].concat();
        let folder = match line.lead.is_empty() {
            true => source.clone(),
            false => source.join(&[&line.lead.join(&b'/'), &b"/"[..]].concat()),
        };
        match parts.iter_mut().find(|(other, _)| *other == folder) {
            Some((_, Some(names))) => names.push(name),
            _ => parts.push((folder, Some(vec![name]))),
        }
    }
    parts
}

/// Rejects sources that share a part of the target if entries may be removed: each would take the other's entries for
/// extraneous.
fn refuse_overlaps(spec: &Spec, found: &[PlannedSource]) -> Result<(), Fatal> {
    if spec.policy.delete == crate::policy::Delete::No {
        return Ok(());
    }
    let trees = found.iter().filter(|planned| matches!(planned.what, SourceKind::Tree { .. }));
    if !have_own_targets(trees) {
        let message =
            "--delete with several sources that fill one directory is not supported for S3";
        return Err(Fatal::new(1, message));
    }
    Ok(())
}

/// Rejects options that are impossible with a bucket.
///
/// # Errors
/// Code 1 and a sentence that names the option.
pub fn refuse_unfit(spec: &Spec) -> Result<(), Fatal> {
    let policy = &spec.policy;
    let unfit = [
        (policy.inplace, "--inplace"),
        (policy.partial, "--partial (see --resume)"),
        (policy.backup, "--backup"),
        (!policy.basis_dirs.is_empty(), policy.basis.option()),
        (policy.temp_dir.is_some(), "--temp-dir"),
        (policy.hard_links, "--hard-links"),
        (policy.list_only, "--list-only"),
        (policy.content != crate::policy::Content::Copy, "--link and --symbolic-link"),
        (policy.chmod.is_some(), "--chmod"),
        (policy.ask.is_some(), "--interactive"),
        (policy.copy_dirlinks, "--copy-dirlinks"),
        // A list of names implies it, and keeps the names below the source unchanged.
        (
            matches!(spec.layout, Layout::Rsync { relative: true }) && spec.files_from.is_none(),
            "--relative",
        ),
        (matches!(spec.layout, Layout::Cp { parents: true, .. }), "--parents"),
    ];
    if spec.objects.flatten && spec.objects.options.dir_markers {
        return Err(Fatal::new(1, "--flatten leaves no directories for --dir-markers"));
    }
    if let Some((_, name)) = unfit.iter().find(|(rejects, _)| *rejects) {
        let message = format!("{name} is not supported for transfers with s3:// on a side");
        return Err(Fatal::new(1, message));
    }
    Ok(())
}

// Resolution of a source argument: one file or object, a folder, the matches of a wildcard, a list.

/// A resolved source argument.
struct Source {
    root: Root,
    what: SourceEntries,
}

enum SourceEntries {
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
    place: &ObjectTarget,
    store: Option<&Arc<S3Session>>,
    umask: u32,
) -> Result<Result<PlannedSource, Problem>, Fatal> {
    let source = match &typed {
        Location::S3(url) => match store {
            Some(store) => in_store(spec, url, list.is_none(), store)?,
            None => return Err(Fatal::new(1, "no S3 session for this source")),
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
            let (operation, class) = (Operation::Read, ErrorClass::Partial);
            let source = Some(typed.as_typed());
            return Ok(Err(Problem { operation, source, target: None, cause, class }));
        }
    };
    let made = |pair: Pair, target_is_new: bool, what: SourceKind| {
        Ok(Ok(PlannedSource { pair: Arc::new(pair), what, target_is_new }))
    };
    let rsync = matches!(spec.layout, Layout::Rsync { .. });
    let (name, what) = match what {
        SourceEntries::One(..) | SourceEntries::Matches(_) if list.is_some() => {
            let message =
                "--files-from needs a source directory (for a prefix: with a slash at its end)";
            return Err(Fatal::new(1, message));
        }
        SourceEntries::One(entry, is_link) if !place.takes_files => {
            let (target, name, target_is_new) = place.name(&spec.policy, is_link, umask)?;
            let pair = Pair { source: root, target, lead: Vec::new() };
            return made(pair, target_is_new, SourceKind::One { entry, name });
        }
        SourceEntries::One(entry, _) => {
            let name = entry.name.to_vec();
            (Vec::new(), SourceKind::One { entry, name })
        }
        SourceEntries::Content | SourceEntries::Named(_) if let Some(list) = list => {
            (Vec::new(), SourceKind::Names(list))
        }
        // cp gives the folder a new name.
        SourceEntries::Named(_) if !rsync && !place.takes_folders => {
            (Vec::new(), SourceKind::Tree { pattern: None })
        }
        SourceEntries::Named(_) if spec.objects.flatten => {
            (Vec::new(), SourceKind::Tree { pattern: None })
        }
        SourceEntries::Named(name) => (name, SourceKind::Tree { pattern: None }),
        SourceEntries::Content => (Vec::new(), SourceKind::Tree { pattern: None }),
        SourceEntries::Matches(pattern) => {
            (Vec::new(), SourceKind::Tree { pattern: Some(pattern) })
        }
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
            return Ok(Ok(Source { root: root(prefix), what: SourceEntries::Matches(pattern) }));
        }
    }
    let recursive = spec.policy.recurse || spec.policy.dirs;
    let folder = key.is_empty() || key.ends_with(b"/");
    if folder && !recursive {
        return Ok(Err(Cause::Reason("is a prefix (use -r)")));
    }
    // A bucket is a root like `/`: the argument means its content, without a name of its own.
    if key.is_empty() {
        return Ok(Ok(Source { root: root(b""), what: SourceEntries::Content }));
    }
    if folder {
        // Without a key below it this is a mistyped name, and must never empty the target.
        return Ok(match any_below(store, bucket, key)? {
            true => Ok(Source { root: root(key), what: SourceEntries::Content }),
            false => Err(Cause::Reason("there is nothing below this prefix")),
        });
    }
    // The part before the last slash is the root; the rest is the name in it.
    let (prefix, name) = split(key);
    let version = spec.objects.options.version.as_deref();
    if let Some(head) = object(store, bucket, key, version)? {
        let meta = Meta::bare(Kind::File, head.size, head.mtime);
        let is_link = says_symlink(&head);
        let entry = Entry { name: name.into(), meta, etag: head.etag.into() };
        // A key that cannot be a file's name can still be read, and written under another one.
        return Ok(Ok(Source { root: root(prefix), what: SourceEntries::One(entry, is_link) }));
    }
    if version.is_none() && any_below(store, bucket, &slashed(key))? {
        return Ok(match recursive {
            true => {
                let what = SourceEntries::Named(name.to_vec());
                Ok(Source { root: root(&slashed(key)), what })
            }
            false => Err(Cause::Reason("is a prefix (use -r)")),
        });
    }
    Ok(Err(Cause::Reason("no such object or prefix")))
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
            true => Ok(Source { root: folder, what: SourceEntries::Content }),
            false => Err(Cause::Reason("is a directory (use -r)")),
        };
    };
    let follow = policy.symlinks == Symlinks::Follow || policy.follow_args || argument.follow;
    let looked = c_string(name).and_then(|name| meta::of(dir.as_fd(), &name, follow));
    let meta = looked.map_err(Cause::System)?;
    match meta.kind {
        Kind::Dir if recursive => {
            let (_, root) = root(&argument.path()).map_err(Cause::System)?;
            Ok(Source { root, what: SourceEntries::Named(name.clone()) })
        }
        Kind::Dir => Err(Cause::Reason("is a directory (use -r)")),
        Kind::File | Kind::Symlink => {
            let entry = Entry { name: name.clone().into(), meta, etag: "".into() };
            Ok(Source { root: folder, what: SourceEntries::One(entry, meta.kind == Kind::Symlink) })
        }
        _ => Err(Cause::Reason("it is not a regular file")),
    }
}

// The target argument of a transfer with a store on a side: a folder for all entries, or the name of one file or
// object.

/// Target of a transfer, before it is decided whether it is a folder or a name.
pub(super) struct ObjectTarget {
    location: Location,
    /// A file goes into it: a slash at its end, several sources, `-t`, or an existing local folder.
    pub(super) takes_files: bool,
    /// A folder keeps its name in it: as above, but decided by the command line alone, so that the result never
    /// depends on what exists.
    pub(super) takes_folders: bool,
    real: bool,
    links: Links,
}

impl ObjectTarget {
    /// Examines the target of a transfer.
    ///
    /// # Errors
    /// Code 1 for a bad argument or a failed request.
    pub(super) fn of(spec: &Spec, store: Option<&Arc<S3Session>>) -> Result<ObjectTarget, Fatal> {
        let location = spec.target.clone();
        let explicit = match spec.layout {
            Layout::Cp { no_target_dir: true, .. } => Some(false),
            Layout::Cp { target_is_dir: true, .. } => Some(true),
            _ if spec.sources.len() > 1 => Some(true),
            _ => None,
        };
        let takes_folders = explicit.unwrap_or_else(|| match &location {
            Location::Null => true,
            Location::Local(path) => is_folders_name(path.as_os_str().as_bytes()),
            Location::S3(url) => url.key.is_empty() || url.key.ends_with(b"/"),
        });
        let is_dir = || matches!(&location, Location::Local(path) if path.is_dir());
        let takes_files = explicit.unwrap_or_else(|| takes_folders || is_dir());
        if let Location::S3(url) = &location
            && url.bucket.is_empty()
        {
            return Err(Fatal::new(1, "s3:// names no bucket to write to; give s3://BUCKET/KEY"));
        }
        // Existing entries do not matter here, but an unreachable store is reported once, not for each file.
        if let (Location::S3(url), Layout::Cp { .. }, Some(store)) = (&location, spec.layout, store)
            && spec.policy.recurse
            && !takes_folders
        {
            any_below(store, &url.bucket, &url.key)?;
        }
        let (real, links) = (!spec.policy.dry_run, spec.policy.links.clone());
        Ok(ObjectTarget { location, takes_files, takes_folders, real, links })
    }

    /// Returns the target as a folder, or the folder `name` in it: names are appended to the returned root.
    ///
    /// # Errors
    /// Code 11 if a local folder cannot be created or opened.
    pub(super) fn folder(&self, name: &[u8], umask: u32) -> Result<Root, Fatal> {
        match &self.location {
            Location::Null => Ok(Root::Null),
            Location::S3(url) => {
                let slashed = |key: &[u8]| if key.is_empty() { Vec::new() } else { slashed(key) };
                let prefix = [slashed(&url.key), slashed(name)].concat();
                Ok(Root::Store { bucket: url.bucket.clone(), prefix })
            }
            Location::Local(path) => self.open(&inside(path, name), umask),
        }
    }

    /// Returns the target as the name of one file or object: its root, the name, and whether the root is missing (see
    /// [`ObjectTarget::is_missing`]).
    ///
    /// # Errors
    /// As [`ObjectTarget::folder`]; code 3 for a path that is not a name, or that cp would have to write through and cannot.
    /// `source_is_link`: the source is a symlink.
    pub(super) fn name(
        &self,
        policy: &Policy,
        source_is_link: bool,
        umask: u32,
    ) -> Result<(Root, Vec<u8>, bool), Fatal> {
        match &self.location {
            Location::Null => Ok((Root::Null, Vec::new(), true)),
            Location::S3(url) => {
                let (prefix, name) = split(&url.key);
                let root = Root::Store { bucket: url.bucket.clone(), prefix: prefix.to_vec() };
                Ok((root, name.to_vec(), false))
            }
            Location::Local(path) => {
                let path = &written_through(path, source_is_link, policy)?;
                let Some(name) = path.file_name() else {
                    let message = format!("{} cannot be the name of a file", quoted(path));
                    return Err(Fatal::new(3, message));
                };
                let parent = path.parent().unwrap_or(Path::new(""));
                let missing = !parent.as_os_str().is_empty() && !parent.is_dir();
                Ok((self.open(parent, umask)?, name.as_bytes().to_vec(), missing))
            }
        }
    }

    /// Opens a local target folder; creates it with all its parents if it is missing. A dry run opens the nearest
    /// existing one instead, for reading.
    fn open(&self, shown: &Path, umask: u32) -> Result<Root, Fatal> {
        let path = or_here(shown);
        let failed = |error: io::Error| {
            let code = if RefusedLink::is(&error) { 3 } else { 11 };
            let cause = Cause::System(error);
            Fatal::new(code, format!("cannot use target directory {}: {cause}", quoted(path)))
        };
        if self.real {
            self.links.make_dir(path, 0o777 & !umask, true).map_err(failed)?;
        }
        // The working directory itself, which is the last one looked at, may have been removed.
        let above = path.ancestors().find(|above| or_here(above).is_dir());
        let there = if self.real { path } else { above.map_or(path, or_here) };
        let opened = c_path(there).and_then(|there| self.links.open_dir(dir::cwd(), &there));
        let dir = opened.map_err(failed)?;
        Ok(Root::Local { dir: Arc::new(dir), shown: shown.to_owned() })
    }

    /// Returns whether the local folder `name` of the target (empty for itself) must be created first, so that it is
    /// empty.
    pub(super) fn is_missing(&self, name: &[u8]) -> bool {
        matches!(&self.location, Location::Local(path) if !inside(path, name).is_dir())
    }
}

/// Returns whether a path can only be a folder's: it ends with a slash, `.` or `..`.
fn is_folders_name(path: &[u8]) -> bool {
    matches!(path.rsplit(|byte| *byte == b'/').next(), None | Some(b"" | b"." | b".."))
}

fn inside(path: &Path, name: &[u8]) -> PathBuf {
    if name.is_empty() { path.to_owned() } else { path.join(OsStr::from_bytes(name)) }
}

/// Returns a key as the prefix of keys below it.
pub(super) fn slashed(key: &[u8]) -> Vec<u8> {
    match key.ends_with(b"/") {
        true => key.to_vec(),
        false => [key, b"/"].concat(),
    }
}

// The listings of a source argument, and the filter rules for their names.

/// Returns the filter rules for the names of a source argument: those of the source, or of the target's own
/// per-directory files. `None` if there can be none.
///
/// # Errors
/// Code 1 if a rule file cannot be read or holds an invalid rule.
pub fn name_filter(
    policy: &Policy,
    planned: &PlannedSource,
    stores: &Stores,
    side: Side,
) -> Result<Option<NameFilter>, Fatal> {
    let of_target = side == Side::Target;
    if of_target && (!policy.reads_target_rules() || planned.target_is_new) {
        return Ok(None);
    }
    let Some(filter) = policy.filter.as_ref().filter(|filter| !filter.is_empty()) else {
        return Ok(None);
    };
    let pair = &planned.pair;
    let first = match filter.is_below_source() {
        true => b"",
        false => pair.lead.strip_suffix(b"/").unwrap_or_default(),
    };
    let absolute = |root: &Root| match root {
        Root::Local { shown, .. } => shown.canonicalize().unwrap_or_else(|_| shown.clone()),
        Root::Store { .. } | Root::Null => root.spell(b""),
    };
    // Names begin with that of the folder, which is the last one of both paths.
    let top = |path: PathBuf| match path.parent() {
        Some(parent) if !first.is_empty() => parent.to_owned(),
        _ => path,
    };
    let (source, target) = (top(absolute(pair.root(side))), top(absolute(&pair.target)));
    let origin = Origin {
        source: source.as_os_str().as_bytes(),
        target: target.as_os_str().as_bytes(),
        first,
    };
    let read: Option<ReadMergeFile> = match (pair.root(side), stores.of(side)) {
        (Root::Local { dir, .. }, _) => Some(merge_files(Arc::clone(dir), policy.links.clone())),
        (Root::Store { bucket, prefix }, Some(store)) => Some(merge_objects(store, bucket, prefix)),
        _ => None,
    };
    let name_filter = NameFilter::new(Arc::clone(filter), &origin, read)
        .map_err(|error| Fatal::new(1, error.to_string()))?;
    Ok(Some(if of_target { name_filter.of_target() } else { name_filter }))
}

fn local_query(spec: &Spec, policy: &Policy, side: Side) -> LocalQuery {
    let source = side == Side::Source;
    LocalQuery {
        // At the target a symlink or device is an obstacle.
        symlinks: if source { policy.symlinks } else { Symlinks::Keep },
        specials: !source,
        one_file_system: policy.one_file_system && source,
        dirs: match source && spec.objects.options.dir_markers {
            true => Dirs::Empty,
            false => Dirs::No,
        },
        encode: spec.objects.options.encode_names,
        clear_leftovers: !source && !policy.dry_run,
        ..LocalQuery::default()
    }
}

/// Returns the listing of a range of the names below a root.
pub(super) fn tree(
    spec: &Spec,
    policy: &Policy,
    planned: &PlannedSource,
    stores: &Stores,
    side: Side,
    range: NameRange,
) -> Result<Listing, Fatal> {
    if let Some(inventory) = spec.objects.inventory_of(side) {
        return Ok(list::inventory(inventory, range));
    }
    let narrowed = match &planned.what {
        SourceKind::Tree { pattern: Some(pattern) } => pattern.literal().to_vec(),
        _ => Vec::new(),
    };
    let root = planned.pair.root(side);
    let mut query = LocalQuery { range, ..local_query(spec, policy, side) };
    if side == Side::Source && matches!(root, Root::Local { .. }) {
        query.name_filter = name_filter(policy, planned, stores, side)?;
    }
    Ok(list::below(root, stores.of(side), narrowed, query))
}

/// Returns a name below a local source that rules exclude: its listing leaves such names out.
pub(super) fn left_out(
    spec: &Spec,
    policy: &Policy,
    planned: &PlannedSource,
    name_filter: &mut NameFilter,
) -> Option<Vec<u8>> {
    let Root::Local { dir, shown } = &planned.pair.source else { return None };
    let query = local_query(spec, policy, Side::Source);
    let mut listing = list::local(Arc::clone(dir), shown, query);
    while let Some(item) = listing.next() {
        if let Ok(entry) = item
            && name_filter.decide(&entry.name).is_ok_and(|decision| decision.hide)
        {
            return Some(entry.name.into_vec());
        }
    }
    None
}

/// Returns the listing of listed names of the source below a root; at the target of the existing ones.
pub(super) fn from_names(
    spec: &Spec,
    policy: &Policy,
    planned: &PlannedSource,
    stores: &Stores,
    side: Side,
    names: &[Vec<u8>],
) -> Listing {
    let encode = spec.objects.options.encode_names;
    // A name that the target cannot have is reported when its turn comes.
    let mapped = |name: &Vec<u8>| match (&planned.pair.source, &planned.pair.target) {
        (Root::Local { .. }, Root::Store { .. }) => key_of(&list::plain(name), encode).ok(),
        (Root::Store { .. }, Root::Local { .. }) => path_of(name, encode).ok(),
        _ => Some(name.clone()),
    };
    let names: Vec<_> = match side {
        Side::Source => names.to_vec(),
        Side::Target => names.iter().filter_map(mapped).collect(),
    };
    let symlinks = local_query(spec, policy, side).symlinks;
    let (root, store) = (planned.pair.root(side), stores.of(side));
    list::from_names(root, store, symlinks, encode, names, side == Side::Source)
}

/// Returns the entry at one target name.
///
/// # Errors
/// The error of examining it.
pub(super) fn existing(
    planned: &PlannedSource,
    stores: &Stores,
    name: &[u8],
) -> Result<Option<Entry>, Trouble> {
    match (&planned.pair.target, &stores.target) {
        (Root::Store { bucket, .. }, Some(store)) => {
            let key = planned.pair.target.key(name);
            match object(store, bucket, &key, None) {
                Ok(head) => Ok(head.map(|head| Entry {
                    name: name.into(),
                    meta: Meta::bare(Kind::File, head.size, head.mtime),
                    etag: head.etag.into(),
                })),
                Err(fatal) => Err(problem(planned, name, Cause::Said(fatal.message))),
            }
        }
        (Root::Local { dir, .. }, _) if !planned.target_is_new => {
            let looked = PathBelow::find(dir.as_fd(), name)
                .and_then(|below| meta::of(below.dir(), below.name(), false));
            match looked {
                Ok(meta) => Ok(Some(Entry { name: name.into(), meta, etag: "".into() })),
                Err(error) if errno::is(&error, errno::ENOENT) => Ok(None),
                Err(error) => Err(problem(planned, name, Cause::System(error))),
            }
        }
        _ => Ok(None),
    }
}

fn problem(planned: &PlannedSource, name: &[u8], cause: Cause) -> Trouble {
    let problem = Problem {
        operation: Operation::Stat,
        source: None,
        target: Some(planned.pair.target.spell(name)),
        cause,
        class: ErrorClass::Partial,
    };
    Trouble::Problem { name: name.into(), problem }
}

/// Returns whether the target must be examined before deciding.
pub(super) fn needs_target(spec: &Spec) -> bool {
    let policy = &spec.policy;
    let sync = matches!(spec.layout, Layout::Rsync { .. });
    sync || policy.size_only
        || policy.update
        || policy.ignore_existing
        || policy.existing
        || policy.checksum
}

/// As `needs_target`, for a single entry with a new name. cp writes into a device or FIFO of that name, and keeps
/// mode and owner of a file; examining a local target costs one call.
pub(super) fn needs_target_of_one(spec: &Spec) -> bool {
    needs_target(spec) || spec.policy.cp_targets && !spec.target.is_s3()
}

// Queries to a store before anything moves: whether an object or a folder exists.

/// Returns the metadata of an object; `None` if it does not exist.
///
/// # Errors
/// The request failed: code 11 if another try may succeed, else 1.
pub(super) fn object(
    store: &Arc<S3Session>,
    bucket: &str,
    key: &[u8],
    version: Option<&str>,
) -> Result<Option<ObjectHead>, Fatal> {
    match with_session(store, async |client| head_object(&client, bucket, key, version).await) {
        Ok(head) => Ok(Some(head)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fatal("access", bucket, key, &error)),
    }
}

/// Returns whether any key begins with `prefix`.
pub(super) fn any_below(
    store: &Arc<S3Session>,
    bucket: &str,
    prefix: &[u8],
) -> Result<bool, Fatal> {
    let any = with_session(store, async |client| has_any(&client, bucket, prefix).await);
    any.map_err(|error| fatal("list", bucket, prefix, &error))
}

/// Returns whether any key begins with `prefix`.
///
/// # Errors
/// Those of the request.
pub async fn has_any(client: &Client, bucket: &str, prefix: &[u8]) -> Result<bool, Error> {
    let query = ListQuery { prefix: prefix.to_vec(), max_keys: Some(1), ..ListQuery::default() };
    let mut pages = ObjectPages::new(query);
    // A page may be empty and not the last one.
    while let Some(page) = pages.next(client, bucket).await? {
        if !page.objects.is_empty() || !page.prefixes.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes a failed request the error that stops the run: code 11 if another try may succeed, else 1.
fn fatal(verb: &str, bucket: &str, key: &[u8], error: &Error) -> Fatal {
    let url = s3_path(bucket, &[key]);
    let code = if error.is_transient() { 11 } else { 1 };
    Fatal::new(code, format!("cannot {verb} {}: {error}", quoted(url)))
}

// Which source arguments have nothing to do with each other.

/// Returns whether sources may be worked on in any order, and at once: none of them writes where another one writes,
/// and none can write what another one reads, because only one side is a store.
pub fn are_apart(found: &[PlannedSource]) -> bool {
    let within = |planned: &PlannedSource| {
        matches!(
            (&planned.pair.source, &planned.pair.target),
            (Root::Store { .. }, Root::Store { .. })
        )
    };
    !found.iter().any(within) && have_own_targets(found.iter())
}

/// Returns whether no source writes at or below the target of another one.
pub(super) fn have_own_targets<'a>(found: impl Iterator<Item = &'a PlannedSource>) -> bool {
    let places: Vec<_> = found.map(target).zip(0..).collect();
    let count = places.len();
    !meeting(places, count).contains(&true)
}

/// Returns which sources write at, above or below the target of another one.
pub(super) fn meets(found: &[PlannedSource]) -> Vec<bool> {
    meeting(found.iter().map(target).zip(0..).collect(), found.len())
}

fn target(planned: &PlannedSource) -> Vec<&[u8]> {
    match &planned.what {
        SourceKind::One { name, .. } => place(&planned.pair.lead, name),
        SourceKind::Tree { .. } | SourceKind::Names(_) => place(&planned.pair.lead, b""),
    }
}

/// Returns the components of a name below the common target.
fn place<'a>(lead: &'a [u8], name: &'a [u8]) -> Vec<&'a [u8]> {
    let components =
        |path: &'a [u8]| path.split(|byte| *byte == b'/').filter(|one| !one.is_empty());
    components(lead).chain(components(name)).collect()
}

// Base names as target names, for transfers that flatten folders.

/// Target names that sources of a transfer have taken. Grows with their number.
pub struct BaseNames {
    taken: HashSet<Box<[u8]>>,
    sources: Vec<FlatSource>,
}

/// Objects that are sources: a bucket and the start of their keys.
struct FlatSource {
    bucket: String,
    prefix: Vec<u8>,
    rest: Rest,
}

/// The rest of the keys of sources.
enum Rest {
    One(Vec<u8>),
    Any,
    Matching(Pattern),
}

impl BaseNames {
    /// Starts without names.
    pub fn of(planned_sources: &[PlannedSource]) -> BaseNames {
        let source = |planned: &PlannedSource| {
            let Root::Store { bucket, prefix } = &planned.pair.source else { return None };
            let rest = match &planned.what {
                SourceKind::One { entry, .. } => Rest::One(entry.name.to_vec()),
                SourceKind::Tree { pattern: Some(pattern) } => Rest::Matching(pattern.clone()),
                SourceKind::Tree { pattern: None } | SourceKind::Names(_) => Rest::Any,
            };
            Some(FlatSource { bucket: bucket.clone(), prefix: prefix.clone(), rest })
        };
        let sources = planned_sources.iter().filter_map(source).collect();
        BaseNames { taken: HashSet::new(), sources }
    }

    /// Takes a name; returns `false` if another source has it.
    pub fn take(&mut self, name: &[u8]) -> bool {
        self.taken.insert(name.into())
    }

    /// Returns whether an object of the target would be a source if it exists: writing it would destroy that source.
    pub fn may_be_source(&self, target: &Root, name: &[u8]) -> bool {
        let Root::Store { bucket, .. } = target else { return false };
        let key = target.key(name);
        let may_be_one = |source: &&FlatSource| {
            source.bucket == *bucket
                || AccessPoint::may_name(bucket)
                || AccessPoint::may_name(&source.bucket)
        };
        self.sources.iter().filter(may_be_one).any(|source| {
            key.strip_prefix(&*source.prefix).is_some_and(|rest| match &source.rest {
                Rest::One(name) => name == rest,
                Rest::Any => true,
                Rest::Matching(pattern) => pattern.matches(rest),
            })
        })
    }
}

/// Returns the part of a name after its last slash.
pub fn base(name: &[u8]) -> &[u8] {
    name.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

// The work of a transfer with a store on a side, one [`PlannedSource`] per source argument.

/// The stores of a run.
#[derive(Clone, Default)]
pub struct Stores {
    pub source: Option<Arc<S3Session>>,
    pub target: Option<Arc<S3Session>>,
}

impl Stores {
    pub fn of(&self, side: Side) -> Option<&Arc<S3Session>> {
        match side {
            Side::Source => self.source.as_ref(),
            Side::Target => self.target.as_ref(),
        }
    }

    /// Returns an iterator over the stores, without duplicates.
    pub fn all(&self) -> impl Iterator<Item = &Arc<S3Session>> + Clone {
        let other = self.target.as_ref().filter(|target| {
            self.source.as_ref().is_none_or(|source| !Arc::ptr_eq(source, target))
        });
        self.source.iter().chain(other)
    }
}

/// The work of one source argument.
pub struct PlannedSource {
    /// Both ends.
    pub pair: Arc<Pair>,
    /// The entries.
    pub what: SourceKind,
    /// The target is empty: a dry run would have to create its folder first.
    pub target_is_new: bool,
}

impl PlannedSource {
    /// Returns whether anything at its target could be extraneous.
    pub fn may_delete(&self) -> bool {
        matches!(&self.what, SourceKind::Tree { pattern: None })
            && !matches!(self.pair.target, Root::Null)
    }
}

/// Entries of a [`PlannedSource`].
pub enum SourceKind {
    /// One file or object.
    One {
        entry: Entry,
        /// Target name, relative to the target's root.
        name: Vec<u8>,
    },
    /// Everything that a listing of the source finds; names stay unchanged.
    Tree {
        /// Only names that match.
        pattern: Option<Pattern>,
    },
    /// Only these names, from a list.
    Names(Vec<Vec<u8>>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Entry, Pair};
    use hakobu_core::unit::{Kind, Meta, Time};
    use std::sync::Arc;

    fn source(lead: &str, name: Option<&str>, both_stores: bool) -> PlannedSource {
        let store = || Root::Store { bucket: "b".into(), prefix: Vec::new() };
        let source = if both_stores { store() } else { Root::Null };
        let meta = Meta::bare(Kind::File, 1, Time::default());
        let what = match name {
            Some(name) => SourceKind::One {
                entry: Entry { name: name.as_bytes().into(), meta, etag: "".into() },
                name: name.into(),
            },
            None => SourceKind::Tree { pattern: None },
        };
        let pair = Pair { source, target: store(), lead: lead.into() };
        PlannedSource { pair: Arc::new(pair), what, target_is_new: false }
    }

    #[test]
    fn sources_are_apart_if_no_target_is_at_or_below_another_one() {
        for (sources, apart) in [
            (&[][..], true),
            (&[("a/", None)], true),
            (&[("", None)], true),
            (&[("a/", None), ("b/", None)], true),
            (&[("a/", None), ("ab/", None), ("a b/", None)], true),
            (&[("a/", None), ("a!/", None), ("a/", None)], false),
            (&[("", None), ("b/", None)], false),
            (&[("a/", None), ("a/b/", None)], false),
            (&[("", Some("f")), ("", Some("f.txt")), ("f-/", None)], true),
            (&[("", Some("f")), ("", Some("f-")), ("f/", None)], false),
            (&[("", Some("f")), ("", Some("f"))], false),
            (&[("", None), ("", Some("f"))], false),
        ] {
            let all: Vec<_> =
                sources.iter().map(|(lead, name)| source(lead, *name, false)).collect();
            assert_eq!(are_apart(&all), apart, "{sources:?}");
            let mut turned = all;
            turned.reverse();
            assert_eq!(are_apart(&turned), apart, "{sources:?}, turned");
        }
    }

    #[test]
    fn copies_from_store_to_store_go_in_turn() {
        assert!(!are_apart(&[source("a/", None, true), source("b/", None, true)]));
    }
    fn root(prefix: &str) -> Root {
        Root::Store { bucket: "b".to_owned(), prefix: prefix.as_bytes().to_vec() }
    }

    #[test]
    fn names_are_taken_once() {
        let mut names = BaseNames::of(&[]);
        assert!(names.take(b"a") && names.take(b"b") && !names.take(b"a"));
        for (name, expected) in [("a", "a"), ("a/b", "b"), ("a//", ""), ("", "")] {
            assert_eq!(base(name.as_bytes()), expected.as_bytes(), "{name}");
        }
    }

    #[test]
    fn a_target_may_be_a_source() {
        let planned = |pattern: Option<&str>| {
            let pair = Pair { source: root("p/"), target: root("p/"), lead: Vec::new() };
            let pattern = pattern.and_then(|text| Pattern::parse(text.as_bytes()));
            let what = SourceKind::Tree { pattern };
            BaseNames::of(&[PlannedSource { pair: Arc::new(pair), what, target_is_new: false }])
        };
        let all = planned(None);
        assert!(all.may_be_source(&root("p/"), b"x") && all.may_be_source(&root("p/d/"), b"x"));
        assert!(!all.may_be_source(&root("q/"), b"x") && !all.may_be_source(&Root::Null, b"x"));
        let some = planned(Some("*.txt"));
        assert!(some.may_be_source(&root("p/"), b"a.txt"));
        assert!(!some.may_be_source(&root("p/"), b"a.gz"));
    }
}
