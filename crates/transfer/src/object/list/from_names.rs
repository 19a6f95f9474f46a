//! Listings below a root: of everything, or of names from a list (`--files-from`), sorted, without duplicates, each
//! examined.

use super::local::{self, LocalQuery};
use super::store::{self, StoreQuery, in_runtime};
use super::{Item, Listing, PAGE_ENTRIES, Page, Trouble, key_of, send_all};
use crate::location::s3_path;
use crate::object::{Entry, Root};
use crate::policy::Symlinks;
use futures_util::stream::{StreamExt, iter};
use hakobu_core::error::{Cause, Class, Operation, Problem};
use hakobu_core::unit::{Kind, Meta};
use hakobu_s3::ops::head_object;
use hakobu_s3::{Client, S3Session};
use hakobu_sys::below::Below;
use hakobu_sys::{AsFd, OwnedFd, errno, meta};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Concurrent HEAD requests.
const PARALLEL: usize = 32;

/// Lists everything below a root. `store` is the one of a root in S3, `narrowed` a further common prefix of its names;
/// `query` is for a folder.
pub fn below(
    root: &Root,
    store: Option<&Arc<S3Session>>,
    narrowed: Vec<u8>,
    query: LocalQuery,
) -> Listing {
    match (root, store) {
        (Root::Store { bucket, prefix }, Some(store)) => {
            let query = StoreQuery { prefix: prefix.clone(), narrowed, ..StoreQuery::default() };
            store::store(store, bucket, query)
        }
        (Root::Local { dir, shown }, _) => local::local(Arc::clone(dir), shown, query),
        // `null:` is empty.
        _ => Listing::empty(),
    }
}

/// Lists the given names below a root; `store` is the one of a root in S3. A name that is not a file is a problem; so is
/// a missing one with `must_exist`, otherwise it is skipped. `symlinks`: handling of a local name that is one. With
/// `encode` local names sort by their percent-encoded keys. In local names `./` and doubled slashes are removed; those
/// with `..` are problems.
pub fn from_names(
    root: &Root,
    store: Option<&Arc<S3Session>>,
    symlinks: Symlinks,
    encode: bool,
    names: Vec<Vec<u8>>,
    must_exist: bool,
) -> Listing {
    match (root, store) {
        (Root::Local { dir, shown }, _) => {
            let (sender, listing) = Listing::channel(encode, false);
            let names = sorted(names.iter().map(|name| plain(name)).collect(), encode);
            let (top, shown) = (Arc::clone(dir), shown.clone());
            Listing::start(sender, "list-names", move |sender| {
                let look = |name: &[u8]| match looked_at(&top, name, symlinks) {
                    Ok(meta) => Some(Ok(Entry { name: name.into(), meta, etag: "".into() })),
                    Err(Cause::System(error))
                        if !must_exist && errno::is(&error, errno::ENOENT) =>
                    {
                        None
                    }
                    Err(cause) => {
                        let path = shown.join(OsStr::from_bytes(name));
                        Some(Err(problem(name, path, cause)))
                    }
                };
                send_all(&sender, names.iter().filter_map(|name| look(name)));
            });
            listing
        }
        (Root::Store { bucket, prefix }, Some(store)) => {
            let (sender, listing) = Listing::channel(false, false);
            let names = sorted(names, false);
            let (store, bucket, prefix) = (Arc::clone(store), bucket.clone(), prefix.clone());
            Listing::start(sender, "list-names", move |sender| {
                let client = Client::new(&store);
                in_runtime(&sender, heads(&client, &bucket, &prefix, names, &sender, must_exist));
            });
            listing
        }
        _ => Listing::empty(),
    }
}

fn sorted(mut names: Vec<Vec<u8>>, encode: bool) -> Vec<Vec<u8>> {
    names.retain(|name| !name.is_empty());
    names.sort_by(|a, b| key_of(a, encode).cmp(&key_of(b, encode)));
    names.dedup();
    names
}

/// Normalises a local name.
pub fn plain(name: &[u8]) -> Vec<u8> {
    let parts = name.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    parts.collect::<Vec<_>>().join(&b'/')
}

fn problem(name: &[u8], path: PathBuf, cause: Cause) -> Trouble {
    let (operation, class) = (Operation::Stat, Class::Partial);
    let problem = Problem { operation, source: Some(path), target: None, cause, class };
    Trouble::Problem { name: name.into(), problem }
}

fn looked_at(top: &OwnedFd, name: &[u8], symlinks: Symlinks) -> Result<Meta, Cause> {
    if name.split(|byte| *byte == b'/').any(|part| part == b"..") {
        return Err(Cause::Reason("a name with '..' may leave the folder"));
    }
    let look = || -> io::Result<Meta> {
        let follow = symlinks == Symlinks::Follow;
        let below = Below::find(top.as_fd(), name)?;
        meta::of(below.dir(), below.name(), follow)
    };
    let found = look().map_err(Cause::System)?;
    match found.kind {
        Kind::File => Ok(found),
        Kind::Symlink if symlinks == Symlinks::Keep => Ok(found),
        Kind::Symlink => {
            Err(Cause::Reason("it is a symlink (-l keeps it, -L copies what it points to)"))
        }
        Kind::Dir => {
            Err(Cause::Reason("it is a directory, and only files can be named one by one"))
        }
        _ => Err(Cause::Reason("it is not a regular file, and no object can be one")),
    }
}

async fn heads(
    client: &Client,
    bucket: &str,
    prefix: &[u8],
    names: Vec<Vec<u8>>,
    sender: &Sender<Page>,
    must_exist: bool,
) {
    let looked = iter(names).map(|name| async move {
        let key = [prefix, &name].concat();
        let head = head_object(client, bucket, &key, None).await;
        (name, key, head)
    });
    // In order, and sent as soon as results are known: each may take a while.
    let mut looked = looked.buffered(PARALLEL).ready_chunks(PAGE_ENTRIES);
    while let Some(chunk) = looked.next().await {
        let mut items: Vec<Item> = Vec::with_capacity(chunk.len());
        for (name, key, head) in chunk {
            items.push(match head {
                Ok(head) => Ok(Entry {
                    name: name.into(),
                    meta: Meta::bare(Kind::File, head.size, head.mtime),
                    etag: head.etag.into(),
                }),
                Err(error) if error.stops_run() => Err(Trouble::Failed(error)),
                Err(error) if !must_exist && error.kind == hakobu_s3::ErrorKind::NotFound => {
                    continue;
                }
                Err(error) => {
                    let path = s3_path(bucket, &[&key]);
                    Err(problem(&name, path, Cause::Said(error.to_string())))
                }
            });
        }
        if sender.send(Page::Items(items)).await.is_err() {
            return;
        }
    }
    let _ = sender.send(Page::End).await;
}
