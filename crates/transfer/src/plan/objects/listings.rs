//! The listings of a stretch, and the filter rules asked about their names.

use super::ask::Asker;
use super::{Stores, Stretch, What};
use crate::engine::node::c_string;
use crate::error::{Cause, Class, Fatal, Operation, Problem};
use crate::object::list::{
    self, Dirs, Given, Listing, LocalQuery, Sieve, StoreQuery, Trouble, bare_meta, merge_files,
};
use crate::object::{Entry, Root, Side, key_of, path_of};
use crate::plan::Spec;
use crate::policy::filter::Origin;
use crate::policy::{Policy, Symlinks};
use crate::s3::Store;
use crate::unit::Kind;
use hakobu_sys::{AsFd, dir, errno, meta};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Requests of one listing of a store in flight.
const LISTING_PARALLEL: usize = 8;
/// HEAD requests for given names in flight.
const GIVEN_PARALLEL: usize = 32;

/// The filter rules for the names of a stretch; none where there are no rules.
///
/// # Errors
/// Code 1 where a file of rules cannot be read or holds a rule that is refused.
pub(super) fn sieve(policy: &Policy, stretch: &Stretch) -> Result<Option<Sieve>, Fatal> {
    let Some(filter) = policy.filter.as_ref().filter(|filter| !filter.is_empty()) else {
        return Ok(None);
    };
    let pair = &stretch.pair;
    let first = pair.lead.strip_suffix(b"/").unwrap_or_default();
    let absolute = |root: &Root| match root {
        Root::Local { shown, .. } => shown.canonicalize().unwrap_or_else(|_| shown.clone()),
        Root::Store { .. } | Root::Null => root.spell(b""),
    };
    let source = absolute(&pair.source);
    let source = if first.is_empty() { &*source } else { source.parent().unwrap_or(&source) };
    let target = absolute(&pair.target);
    let origin = Origin {
        source: source.as_os_str().as_bytes(),
        target: target.as_os_str().as_bytes(),
        first,
    };
    let read = match &pair.source {
        Root::Local { dir, .. } => Some(merge_files(Arc::clone(dir))),
        Root::Store { .. } | Root::Null => None,
    };
    let sieve = Sieve::new(Arc::clone(filter), &origin, read);
    sieve.map(Some).map_err(|error| Fatal::new(1, error.to_string()))
}

/// The store of a side.
fn store(stores: &Stores, side: Side) -> Option<&Arc<Store>> {
    match side {
        Side::Source => stores.source.as_ref(),
        Side::Target => stores.target.as_ref(),
    }
}

fn root(stretch: &Stretch, side: Side) -> &Root {
    match side {
        Side::Source => &stretch.pair.source,
        Side::Target => &stretch.pair.target,
    }
}

fn local_query(spec: &Spec, policy: &Policy, side: Side) -> LocalQuery {
    let source = side == Side::Source;
    LocalQuery {
        // At the target a symlink or device is something that is in the way.
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

/// The listing of everything below a root.
///
/// # Errors
/// As [`sieve`].
pub(super) fn tree(
    spec: &Spec,
    policy: &Policy,
    stretch: &Stretch,
    stores: &Stores,
    side: Side,
) -> Result<Listing, Fatal> {
    Ok(match (root(stretch, side), store(stores, side)) {
        (Root::Store { bucket, prefix }, Some(store)) => {
            let narrowed = match &stretch.what {
                What::Tree { pattern: Some(pattern) } => pattern.literal().to_vec(),
                _ => Vec::new(),
            };
            let query = StoreQuery {
                prefix: prefix.clone(),
                narrowed,
                recursive: true,
                parallel: LISTING_PARALLEL,
                unordered: false,
            };
            list::store(store, bucket, query)
        }
        (Root::Local { dir, shown }, _) => {
            let mut query = local_query(spec, policy, side);
            if side == Side::Source {
                query.sieve = sieve(policy, stretch)?;
            }
            list::local(Arc::clone(dir), shown, query)
        }
        _ => list::memory(Vec::new(), false),
    })
}

/// The listing of given names of the source below a root. At the target it has those that are there.
pub(super) fn given(
    spec: &Spec,
    policy: &Policy,
    stretch: &Stretch,
    stores: &Stores,
    side: Side,
    names: &[Vec<u8>],
) -> Listing {
    let encode = spec.objects.options.encode_names;
    // A name that the target cannot have is told of when its turn comes.
    let mapped = |name: &Vec<u8>| match (&stretch.pair.source, &stretch.pair.target) {
        (Root::Local { .. }, Root::Store { .. }) => key_of(&list::plain(name), encode).ok(),
        (Root::Store { .. }, Root::Local { .. }) => path_of(name, encode).ok(),
        _ => Some(name.clone()),
    };
    let names: Vec<_> = match side {
        Side::Source => names.to_vec(),
        Side::Target => names.iter().filter_map(mapped).collect(),
    };
    let place = match (root(stretch, side), store(stores, side)) {
        (Root::Store { bucket, prefix }, Some(store)) => Given::Store {
            store: Arc::clone(store),
            bucket: bucket.clone(),
            prefix: prefix.clone(),
            parallel: GIVEN_PARALLEL,
        },
        (Root::Local { dir, shown }, _) => {
            let query = local_query(spec, policy, side);
            Given::Local {
                top: Arc::clone(dir),
                shown: shown.clone(),
                symlinks: query.symlinks,
                encode,
            }
        }
        _ => return list::memory(Vec::new(), false),
    };
    list::given(place, names, side == Side::Source)
}

/// What is at one name of the target.
///
/// # Errors
/// What kept it from being looked at.
pub(super) fn existing(
    stretch: &Stretch,
    stores: &Stores,
    name: &[u8],
) -> Result<Option<Entry>, Trouble> {
    match (&stretch.pair.target, &stores.target) {
        (Root::Store { bucket, .. }, Some(store)) => {
            let key = stretch.pair.target.key(name);
            match Asker::new(store).object(bucket, &key, None) {
                Ok(head) => Ok(head.map(|head| Entry {
                    name: name.into(),
                    meta: bare_meta(Kind::File, head.size, head.mtime),
                    etag: head.etag.into(),
                })),
                Err(fatal) => Err(problem(stretch, name, Cause::Said(fatal.message))),
            }
        }
        (Root::Local { dir, .. }, _) if !stretch.target_is_new => {
            let looked = look(dir.as_fd(), name);
            match looked {
                Ok(meta) => Ok(Some(Entry { name: name.into(), meta, etag: "".into() })),
                Err(error) if errno::is(&error, errno::ENOENT) => Ok(None),
                Err(error) => Err(problem(stretch, name, Cause::System(error))),
            }
        }
        _ => Ok(None),
    }
}

fn look(top: hakobu_sys::BorrowedFd<'_>, name: &[u8]) -> io::Result<meta::Meta> {
    match name.iter().rposition(|byte| *byte == b'/') {
        None => meta::of(top, &c_string(name)?, false),
        Some(at) => {
            let folder = dir::open_below(top, &c_string(&name[..at])?)?;
            meta::of(folder.as_fd(), &c_string(&name[at + 1..])?, false)
        }
    }
}

fn problem(stretch: &Stretch, name: &[u8], cause: Cause) -> Trouble {
    let problem = Problem {
        operation: Operation::Stat,
        source: None,
        target: Some(stretch.pair.target.spell(name)),
        cause,
        class: Class::Partial,
    };
    Trouble::Problem { name: name.into(), problem }
}
