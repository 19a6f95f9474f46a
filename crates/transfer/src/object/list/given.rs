//! A listing of names that somebody wrote down (`--files-from`): sorted, each once, each looked at.

use super::store::in_runtime;
use super::{Item, Listing, PAGE_ENTRIES, Page, Trouble, bare_meta, key_of};
use crate::error::{Cause, Class, Operation, Problem};
use crate::object::Entry;
use crate::policy::Symlinks;
use crate::s3::ops::head_object;
use crate::s3::{self, Client, Store};
use crate::unit::{Kind, Meta};
use futures_util::stream::{StreamExt, iter};
use hakobu_sys::{AsFd, OwnedFd, dir, errno, meta};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Where given names are looked for.
pub enum Given {
    /// Below a folder, component by component, through no symlink on the way.
    Local {
        /// The folder, open.
        top: Arc<OwnedFd>,
        /// As the user would spell it.
        shown: PathBuf,
        /// What a name that is a symlink is.
        symlinks: Symlinks,
        /// Names sort as the keys that percent-encoding makes of them.
        encode: bool,
    },
    /// In a bucket.
    Store {
        /// The account.
        store: Arc<Store>,
        /// The bucket.
        bucket: String,
        /// What stands before every name.
        prefix: Vec<u8>,
        /// HEAD requests in flight.
        parallel: usize,
    },
}

/// Lists the given names. One that is no file is a problem of that name; one that is not there is, too,
/// where all `must_exist`, else it is left out. Of local names `./` and doubled slashes are taken out;
/// those with `..` are problems.
pub fn given(place: Given, names: Vec<Vec<u8>>, must_exist: bool) -> Listing {
    let encode = matches!(place, Given::Local { encode: true, .. });
    let (sender, listing) = Listing::channel(encode, false);
    match place {
        Given::Local { top, shown, symlinks, .. } => {
            let names = sorted(names.iter().map(|name| plain(name)).collect(), encode);
            Listing::start(sender, "list-given", move |sender| {
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
                for page in names.chunks(PAGE_ENTRIES) {
                    let items = page.iter().filter_map(|name| look(name)).collect();
                    if sender.blocking_send(Page::Items(items)).is_err() {
                        return;
                    }
                }
                let _ = sender.blocking_send(Page::End);
            });
        }
        Given::Store { store, bucket, prefix, parallel } => {
            let names = sorted(names, false);
            Listing::start(sender, "list-given", move |sender| {
                let client = Client::new(&store);
                in_runtime(
                    &sender,
                    heads(&client, &bucket, &prefix, names, parallel, &sender, must_exist),
                );
            });
        }
    }
    listing
}

fn sorted(mut names: Vec<Vec<u8>>, encode: bool) -> Vec<Vec<u8>> {
    names.retain(|name| !name.is_empty());
    names.sort_by(|a, b| key_of(a, encode).cmp(&key_of(b, encode)));
    names.dedup();
    names
}

/// A local name without what does not matter in it.
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
        match name.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => {
                let folder = CString::new(&name[..slash])?;
                let folder = dir::open_below(top.as_fd(), &folder)?;
                meta::of(folder.as_fd(), &CString::new(&name[slash + 1..])?, follow)
            }
            None => meta::of(top.as_fd(), &CString::new(name)?, follow),
        }
    };
    let found = look().map_err(Cause::System)?;
    match found.kind {
        Kind::File => Ok(found),
        Kind::Symlink if symlinks == Symlinks::Keep => Ok(found),
        Kind::Symlink => {
            Err(Cause::Reason("it is a symlink (-l keeps it, -L copies what it names)"))
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
    parallel: usize,
    sender: &Sender<Page>,
    must_exist: bool,
) {
    let looked = iter(names).map(|name| async move {
        let key = [prefix, &name].concat();
        let head = head_object(client, bucket, &key, None).await;
        (name, key, head)
    });
    // In order, and told as soon as anything is known: each may take a while.
    let mut looked = looked.buffered(parallel.max(1)).ready_chunks(PAGE_ENTRIES);
    while let Some(chunk) = looked.next().await {
        let mut items: Vec<Item> = Vec::with_capacity(chunk.len());
        for (name, key, head) in chunk {
            items.push(match head {
                Ok(head) => Ok(Entry {
                    name: name.into(),
                    meta: bare_meta(Kind::File, head.size, head.mtime),
                    etag: head.etag.into(),
                }),
                Err(error) if error.stops_run() => Err(Trouble::Failed(error)),
                Err(error) if !must_exist && error.kind == s3::Kind::NotFound => continue,
                Err(error) => {
                    let shown = [b"s3://", bucket.as_bytes(), b"/", &*key].concat();
                    let path = PathBuf::from(OsStr::from_bytes(&shown));
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
