//! The listings of a source argument, and the filter rules for their names.

use super::ask;
use super::planned::{PlannedSource, Stores, What};
use crate::object::list::{
    self, Dirs, Listing, LocalQuery, NameFilter, ReadMergeFile, Trouble, merge_files, merge_objects,
};
use crate::object::{Entry, Root, Side, key_of, path_of};
use crate::plan::{Layout, Spec};
use crate::policy::filter::Origin;
use crate::policy::{Policy, Symlinks};
use hakobu_core::error::{Cause, Class, Fatal, Operation, Problem};
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::below::Below;
use hakobu_sys::{AsFd, errno, meta};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Returns the filter rules for the names of a source argument: those of the source, or of the target's own
/// per-directory files. `None` if there can be none.
///
/// # Errors
/// Code 1 if a rule file cannot be read or holds an invalid rule.
pub(super) fn name_filter(
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

/// Returns the listing of everything below a root.
///
/// # Errors
/// As [`name_filter`].
pub(super) fn tree(
    spec: &Spec,
    policy: &Policy,
    planned: &PlannedSource,
    stores: &Stores,
    side: Side,
) -> Result<Listing, Fatal> {
    if let (Side::Source, Some(inventory)) = (side, &spec.objects.inventory) {
        return Ok(list::inventory(inventory));
    }
    let narrowed = match &planned.what {
        What::Tree { pattern: Some(pattern) } => pattern.literal().to_vec(),
        _ => Vec::new(),
    };
    let root = planned.pair.root(side);
    let mut query = local_query(spec, policy, side);
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
            match ask::object(store, bucket, &key, None) {
                Ok(head) => Ok(head.map(|head| Entry {
                    name: name.into(),
                    meta: Meta::bare(Kind::File, head.size, head.mtime),
                    etag: head.etag.into(),
                })),
                Err(fatal) => Err(problem(planned, name, Cause::Said(fatal.message))),
            }
        }
        (Root::Local { dir, .. }, _) if !planned.target_is_new => {
            let looked = Below::find(dir.as_fd(), name)
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
        class: Class::Partial,
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
