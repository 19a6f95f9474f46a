//! What an argument of a comparison is: a tree (a folder, a prefix) or a single file or object.

use crate::engine::node::c_string;
use crate::error::{Cause, Fatal, quoted};
use crate::location::{Location, S3Url};
use crate::object::list::{self, Listing, LocalQuery, StoreQuery, Trouble};
use crate::object::{Entry, Root};
use crate::policy::Symlinks;
use crate::s3::Store;
use crate::unit::Kind;
use hakobu_sys::{dir, meta};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An argument that was looked at.
pub(super) struct Place {
    /// Where its names begin.
    pub root: Root,
    /// What it is.
    pub what: What,
}

/// What an argument is.
pub(super) enum What {
    /// Something with entries below.
    Tree,
    /// A single file or object, by its name from the root.
    One(Entry),
}

impl Place {
    /// Lists what is below; `store` is the one that an S3 root lives in.
    pub fn list(&self, store: Option<&Arc<Store>>) -> Listing {
        match (&self.root, store) {
            (Root::Store { bucket, prefix }, Some(store)) => {
                let query = StoreQuery { prefix: prefix.clone(), ..StoreQuery::default() };
                list::store(store, bucket, query)
            }
            (Root::Local { dir, shown }, _) => {
                let query = LocalQuery { symlinks: Symlinks::Follow, ..LocalQuery::default() };
                list::local(Arc::clone(dir), shown, query)
            }
            // Nothing is nowhere.
            _ => list::memory(Vec::new(), false),
        }
    }
}

/// The same root once more.
pub(super) fn again(root: &Root) -> Root {
    match root {
        Root::Local { dir, shown } => Root::Local { dir: Arc::clone(dir), shown: shown.clone() },
        Root::Store { bucket, prefix } => {
            Root::Store { bucket: bucket.clone(), prefix: prefix.clone() }
        }
        Root::Null => Root::Null,
    }
}

/// An argument as the user typed it, for messages.
pub(super) fn spell(location: &Location) -> String {
    match location {
        Location::Local(path) => quoted(path),
        Location::Null => quoted("null:"),
        Location::S3(S3Url { bucket, key, .. }) => {
            let url = [b"s3://", bucket.as_bytes(), b"/", key].concat();
            quoted(OsStr::from_bytes(&url))
        }
    }
}

/// Looks at an argument.
///
/// # Errors
/// Code 2: there is nothing, or it cannot be looked at.
pub(super) fn find(location: &Location, store: Option<&Arc<Store>>) -> Result<Place, Fatal> {
    let shown = spell(location);
    match (location, store) {
        (Location::Local(path), _) => {
            local(path).map_err(|error| cannot(&shown, &Cause::System(error).to_string()))
        }
        (Location::S3(url), Some(store)) => object(url, store, &shown),
        _ => Err(cannot(&shown, "only files and objects can be compared")),
    }
}

fn cannot(shown: &str, why: &str) -> Fatal {
    Fatal::new(2, format!("cannot look at {shown}: {why}"))
}

fn local(path: &Path) -> io::Result<Place> {
    let name = c_string(path.as_os_str().as_bytes())?;
    let there = meta::of(dir::cwd(), &name, true)?;
    if there.kind == Kind::Dir {
        let dir = Arc::new(dir::open_root(&name)?);
        return Ok(Place { root: Root::Local { dir, shown: path.to_owned() }, what: What::Tree });
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let dir = Arc::new(dir::open_root(&c_string(folder.as_os_str().as_bytes())?)?);
    let entry = Entry { name: name.as_bytes().into(), meta: there, etag: "".into() };
    Ok(Place { root: Root::Local { dir, shown: folder }, what: What::One(entry) })
}

/// The first entry whose key begins so.
fn first(store: &Arc<Store>, bucket: &str, prefix: &[u8]) -> Option<Result<Entry, Trouble>> {
    let query = StoreQuery { prefix: prefix.to_vec(), parallel: 1, ..StoreQuery::default() };
    list::store(store, bucket, query).next()
}

fn object(url: &S3Url, store: &Arc<Store>, shown: &str) -> Result<Place, Fatal> {
    let failed = |trouble: Trouble| match trouble {
        Trouble::Failed(error) => cannot(shown, &error.to_string()),
        Trouble::Problem { problem, .. } => cannot(shown, &problem.cause.to_string()),
    };
    let place = |prefix: Vec<u8>, what| {
        let root = Root::Store { bucket: url.bucket.clone(), prefix };
        Ok(Place { root, what })
    };
    if url.bucket.is_empty() {
        return Err(cannot(shown, "name a bucket"));
    }
    let found = first(store, &url.bucket, &url.key).transpose().map_err(failed)?;
    // An empty bucket is a tree without anything.
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
