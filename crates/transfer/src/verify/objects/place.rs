//! The arguments of a comparison: a tree (a folder, a prefix) or a single file or object.

use crate::engine::failure::c_string;
use crate::location::{Location, S3Url};
use crate::object::list::{self, Listing, LocalQuery, StoreQuery, Trouble};
use crate::object::{Entry, Root};
use crate::policy::Symlinks;
use hakobu_core::error::{Cause, Fatal, quoted};
use hakobu_core::unit::Kind;
use hakobu_s3::S3Session;
use hakobu_sys::{dir, meta};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A resolved argument.
pub(super) struct Place {
    /// The root of its names.
    pub root: Root,
    /// The store of an S3 root.
    pub store: Option<Arc<S3Session>>,
    /// Its kind.
    pub what: What,
}

/// The kind of an argument.
pub(super) enum What {
    /// A tree of entries.
    Tree,
    /// A single file or object, with its name relative to the root.
    One(Entry),
}

impl Place {
    /// Lists the entries. With `encode` local names sort by their percent-encoded keys.
    pub fn list(&self, symlinks: Symlinks, encode: bool) -> Listing {
        let query = LocalQuery { symlinks, encode, ..LocalQuery::default() };
        list::below(&self.root, self.store.as_ref(), Vec::new(), query)
    }

    /// Lists those of the names that exist.
    pub fn list_names(&self, names: Vec<Vec<u8>>, symlinks: Symlinks, encode: bool) -> Listing {
        list::from_names(&self.root, self.store.as_ref(), symlinks, encode, names, false)
    }
}

/// Resolves a folder or prefix; in a store nothing needs to exist below it.
///
/// # Errors
/// Code 2: the folder cannot be opened.
pub(super) fn folder(location: &Location, store: Option<&Arc<S3Session>>) -> Result<Place, Fatal> {
    let root = match location {
        Location::Local(path) => {
            let opened = c_string(path.as_os_str().as_bytes())
                .and_then(|name| dir::open_root(&name))
                .map_err(|error| cannot(&spell(location), &Cause::System(error).to_string()))?;
            Root::Local { dir: Arc::new(opened), shown: path.clone() }
        }
        Location::S3(url) => {
            let mut prefix = url.key.clone();
            if !prefix.is_empty() && !prefix.ends_with(b"/") {
                prefix.push(b'/');
            }
            Root::Store { bucket: url.bucket.clone(), prefix }
        }
        Location::Null => {
            return Err(cannot(&spell(location), "only files and objects can be compared"));
        }
    };
    Ok(Place { root, store: store.cloned(), what: What::Tree })
}

/// Returns an argument as the user typed it, for messages.
pub(super) fn spell(location: &Location) -> String {
    quoted(location.as_typed())
}

/// Resolves an argument. A symlink to a directory is treated as the directory.
///
/// # Errors
/// Code 2: it does not exist, or cannot be examined.
pub(super) fn find(
    location: &Location,
    store: Option<&Arc<S3Session>>,
    symlinks: Symlinks,
) -> Result<Place, Fatal> {
    let shown = spell(location);
    match (location, store) {
        (Location::Local(path), _) => {
            local(path, symlinks).map_err(|error| cannot(&shown, &Cause::System(error).to_string()))
        }
        (Location::S3(url), Some(store)) => object(url, store, &shown),
        _ => Err(cannot(&shown, "only files and objects can be compared")),
    }
}

fn cannot(shown: &str, why: &str) -> Fatal {
    Fatal::new(2, format!("cannot look at {shown}: {why}"))
}

fn local(path: &Path, symlinks: Symlinks) -> io::Result<Place> {
    let name = c_string(path.as_os_str().as_bytes())?;
    let itself = meta::of(dir::cwd(), &name, false)?;
    let there = match (itself.kind, meta::of(dir::cwd(), &name, true)) {
        (Kind::Symlink, Ok(there)) if there.kind == Kind::Dir => there,
        (Kind::Symlink, _) if symlinks == Symlinks::Keep => itself,
        (_, there) => there?,
    };
    if there.kind == Kind::Dir {
        let dir = Arc::new(dir::open_root(&name)?);
        let root = Root::Local { dir, shown: path.to_owned() };
        return Ok(Place { root, store: None, what: What::Tree });
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let dir = Arc::new(dir::open_root(&c_string(folder.as_os_str().as_bytes())?)?);
    let entry = Entry { name: name.as_bytes().into(), meta: there, etag: "".into() };
    let root = Root::Local { dir, shown: folder };
    Ok(Place { root, store: None, what: What::One(entry) })
}

/// Returns the first entry whose key has this prefix.
fn first(store: &Arc<S3Session>, bucket: &str, prefix: &[u8]) -> Option<Result<Entry, Trouble>> {
    let query = StoreQuery { prefix: prefix.to_vec(), parallel: 1, ..StoreQuery::default() };
    list::store(store, bucket, query).next()
}

fn object(url: &S3Url, store: &Arc<S3Session>, shown: &str) -> Result<Place, Fatal> {
    let failed = |trouble: Trouble| cannot(shown, &trouble.into_error().to_string());
    let place = |prefix: Vec<u8>, what| {
        let root = Root::Store { bucket: url.bucket.clone(), prefix };
        Ok(Place { root, store: Some(Arc::clone(store)), what })
    };
    if url.bucket.is_empty() {
        return Err(cannot(shown, "name a bucket"));
    }
    let found = first(store, &url.bucket, &url.key).transpose().map_err(failed)?;
    // An empty bucket is an empty tree.
    if url.key.is_empty() {
        return place(Vec::new(), What::Tree);
    }
    match found {
        None => Err(cannot(shown, "there is no such object, and nothing below it")),
        Some(_) if url.key.ends_with(b"/") => place(url.key.clone(), What::Tree),
        Some(entry) if entry.name.is_empty() => place(url.key.clone(), What::One(entry)),
        Some(_) => {
            let prefix = [&*url.key, b"/"].concat();
            match first(store, &url.bucket, &prefix).transpose().map_err(failed)? {
                Some(_) => place(prefix, What::Tree),
                None => Err(cannot(shown, "there is no such object, and nothing below it")),
            }
        }
    }
}
