//! The listing of a prefix in a bucket.

mod guess;
mod split;

use self::split::{Ask, Splitter, Unsorted};
use super::{Item, Listing, Page, Trouble, out_of_order};
use crate::object::Entry;
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_s3::ops::{ListPage, ListQuery, ListedObject, ObjectPages, list_objects};
use hakobu_s3::{Client, S3Session};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Parameters of listing the keys of a bucket.
#[derive(Clone, Debug)]
pub struct StoreQuery {
    /// The prefix of every name, which is removed from it. The object whose key is the prefix itself has an empty
    /// name.
    pub prefix: Vec<u8>,
    /// Further common prefix of all names (the literal part of a wildcard). Not removed.
    pub narrowed: Vec<u8>,
    /// Lists all keys below; otherwise everything below a further slash is one entry `name/` of kind `Dir`.
    pub recursive: bool,
    /// Concurrent requests.
    pub parallel: usize,
    /// Pages may come in any order (removing, counting).
    pub unordered: bool,
}

impl Default for StoreQuery {
    fn default() -> Self {
        let (prefix, narrowed) = (Vec::new(), Vec::new());
        StoreQuery { prefix, narrowed, recursive: true, parallel: 8, unordered: false }
    }
}

/// Lists a prefix. A zero-byte object `name/` is an entry of kind `Dir`.
pub fn store(store: &Arc<S3Session>, bucket: &str, query: StoreQuery) -> Listing {
    let (sender, listing) = Listing::channel(false, query.unordered);
    let (store, bucket) = (Arc::clone(store), bucket.to_owned());
    Listing::start(sender, "list-store", move |sender| {
        let client = Client::new(&store);
        in_runtime(&sender, run(&client, &bucket, &query, &sender));
    });
    listing
}

/// Runs a listing on this thread until it ends or its reader is gone.
pub(super) fn in_runtime(sender: &Sender<Page>, listing: impl Future<Output = ()>) {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, async {
                let (listing, gone) = (pin!(listing), pin!(sender.closed()));
                select(listing, gone).await;
            });
        }
        Err(error) => {
            let message = format!("cannot start a runtime: {error}");
            let error =
                hakobu_s3::Error::new(hakobu_s3::ErrorKind::Settings, "ListObjectsV2", message);
            let _ = sender.blocking_send(Page::Items(vec![Err(Trouble::Failed(error))]));
        }
    }
}

async fn run(client: &Client, bucket: &str, query: &StoreQuery, sender: &Sender<Page>) {
    let failure = match query.recursive {
        true => divided(client, bucket, query, sender).await,
        false => plain(client, bucket, query, sender).await,
    };
    let last = match failure {
        Ok(()) => Page::End,
        Err(Stop::Failed(error)) => Page::Items(vec![Err(Trouble::Failed(error))]),
        Err(Stop::Gone) => return,
    };
    let _ = sender.send(last).await;
}

/// Reason for the early end of a listing.
enum Stop {
    /// Its reader is gone.
    Gone,
    Failed(hakobu_s3::Error),
}

impl From<hakobu_s3::Error> for Stop {
    fn from(error: hakobu_s3::Error) -> Stop {
        Stop::Failed(error)
    }
}

fn asked(query: &StoreQuery) -> ListQuery {
    let prefix = [&*query.prefix, &*query.narrowed].concat();
    let delimiter = (!query.recursive).then_some(b'/');
    ListQuery { prefix, delimiter, ..ListQuery::default() }
}

/// Lists one page after the other.
async fn plain(
    client: &Client,
    bucket: &str,
    query: &StoreQuery,
    sender: &Sender<Page>,
) -> Result<(), Stop> {
    let mut pages = ObjectPages::new(asked(query));
    while let Some(page) = pages.next(client, bucket).await? {
        let items = items(page, query.prefix.len());
        sender.send(Page::Items(items)).await.map_err(|_| Stop::Gone)?;
    }
    Ok(())
}

/// Lists with several concurrent requests, as the splitter decides.
async fn divided(
    client: &Client,
    bucket: &str,
    query: &StoreQuery,
    sender: &Sender<Page>,
) -> Result<(), Stop> {
    let base = asked(query);
    let fixed = base.prefix.len();
    let parallel = query.parallel.max(1);
    let mut splitter = Splitter::new(fixed, parallel, !query.unordered, parallel > 1);
    let mut flying = FuturesUnordered::new();
    let mut out: Option<Vec<Item>> = None;
    loop {
        while let Some(Ask { range, start_after, continuation }) = splitter.ask() {
            // A continuation token replaces the start key.
            let start_after = if continuation.is_some() { Vec::new() } else { start_after };
            let asked = ListQuery { start_after, continuation, ..base.clone() };
            flying.push(async move { (range, list_objects(client, bucket, &asked).await) });
        }
        if out.is_none() {
            let page = splitter.take();
            let entries = |page: Vec<ListedObject>| {
                page.into_iter().map(|object| Ok(entry(object, query.prefix.len()))).collect()
            };
            out = page.map(entries);
        }
        let answer = match (&out, flying.is_empty()) {
            (None, true) if splitter.is_over() => return Ok(()),
            (None, true) => continue,
            (None, false) => flying.next().await,
            (Some(_), nothing_flies) => {
                let room = pin!(sender.reserve());
                let sent = if nothing_flies {
                    Some(room.await)
                } else {
                    match select(room, flying.next()).await {
                        Either::Left((room, _)) => Some(room),
                        Either::Right((answer, _)) => {
                            take_in(&mut splitter, answer)?;
                            None
                        }
                    }
                };
                if let Some(room) = sent
                    && let Some(items) = out.take()
                {
                    room.map_err(|_| Stop::Gone)?.send(Page::Items(items));
                }
                continue;
            }
        };
        take_in(&mut splitter, answer)?;
    }
}

fn take_in(
    splitter: &mut Splitter,
    answer: Option<(u64, Result<ListPage, hakobu_s3::Error>)>,
) -> Result<(), Stop> {
    let Some((range, page)) = answer else { return Ok(()) };
    let page = page?;
    let sorted = splitter.answer(range, page.objects, page.next);
    sorted.map_err(|Unsorted(before, after)| Stop::Failed(out_of_order(&before, &after)))
}

/// Converts a page to entries: objects and prefixes in one order.
fn items(page: ListPage, prefix_len: usize) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::with_capacity(page.objects.len() + page.prefixes.len());
    let mut prefixes = page.prefixes.into_iter().peekable();
    for object in page.objects {
        while let Some(prefix) = prefixes.next_if(|prefix| *prefix < object.key) {
            items.push(Ok(folder(prefix, prefix_len)));
        }
        items.push(Ok(entry(object, prefix_len)));
    }
    items.extend(prefixes.map(|prefix| Ok(folder(prefix, prefix_len))));
    items
}

fn entry(object: ListedObject, prefix_len: usize) -> Entry {
    let ListedObject { key, size, mtime, etag, .. } = object;
    let marker = size == 0 && key.ends_with(b"/");
    let kind = if marker { Kind::Dir } else { Kind::File };
    Entry { name: name(key, prefix_len), meta: Meta::bare(kind, size, mtime), etag }
}

fn folder(prefix: Vec<u8>, prefix_len: usize) -> Entry {
    let meta = Meta::bare(Kind::Dir, 0, Time::default());
    Entry { name: name(prefix, prefix_len), meta, etag: "".into() }
}

/// Returns the part after the prefix, which every key of a page begins with (see [`list_objects`]).
fn name(key: Vec<u8>, prefix_len: usize) -> Box<[u8]> {
    match prefix_len {
        0 => key.into(),
        _ => key[prefix_len..].into(),
    }
}
