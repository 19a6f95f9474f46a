//! Listings in the order of keys: of a prefix in a bucket, of a local tree, of names from a list; and the merge of
//! two of them. Memory does not grow with the number of keys.
//!
//! - [`below`], [`store`], [`local`], [`from_names`], [`inventory`] make a [`Listing`], which runs in threads of its own.
//! - [`Merge`] walks two of them side by side.
//! - [`NameFilter`] applies the filter rules to whole names.
//! - [`Scope`] is the start of an argument's listing, [`Choice`] selects its names.
//! - [`Pattern`] is a wildcard as in `s3://bucket/a*b`.

mod choice;
mod from_names;
mod inventory;
mod local;
mod merge;
mod name_filter;
mod rule_files;
mod store;
mod wildcard;

pub use choice::{Choice, Scope};
pub use from_names::{below, from_names, plain};
pub use inventory::{Counts, Inventory, inventory};
pub use local::{Dirs, LocalQuery, local};
pub use merge::{Merge, Merged};
pub use name_filter::{NameFilter, ReadMergeFile};
pub use rule_files::{merge_files, merge_objects};
pub use store::{StoreQuery, store};
pub use wildcard::Pattern;

use super::{Entry, mapping};
use hakobu_core::error::{Problem, quoted};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Entries of a page: the maximum that S3 returns at once.
const PAGE_ENTRIES: usize = 1000;
/// Maximum number of pages that wait for the reader of a listing.
const PAGES_MAX: usize = 4;

/// A problem of a listing.
#[derive(Debug)]
pub enum Trouble {
    /// One entry or folder could not be examined: its content is unknown, the rest continues. Nothing at or below
    /// `name` may be treated as absent (unless the class is `Notice`: then the entry exists and was skipped on
    /// purpose). Comes before every entry that sorts after `name`.
    Problem {
        /// Name from the root of the listing; a folder ends with a slash, the root itself is empty.
        name: Box<[u8]>,
        /// The problem.
        problem: Problem,
    },
    /// The listing broke off: nothing after the last entry may be treated as absent. This is the last item.
    Failed(hakobu_s3::Error),
}

impl Trouble {
    /// Returns the error for commands that stop at the first problem.
    pub fn into_error(self) -> hakobu_s3::Error {
        match self {
            Trouble::Failed(error) => error,
            Trouble::Problem { problem, .. } => failed(problem.cause.to_string()),
        }
    }
}

/// An entry or a problem of a listing.
pub type Item = Result<Entry, Trouble>;

/// A message from the threads of a listing.
enum Page {
    Items(Vec<Item>),
    /// Everything was sent. A listing whose threads end without this has broken off.
    End,
}

/// A listing in progress in threads of its own; entries come in pages, sorted by the bytes of their keys (folders as
/// `name/`). Dropping it ends its threads.
pub struct Listing {
    pages: Receiver<Page>,
    current: std::vec::IntoIter<Item>,
    /// Names are local ones and sort by the keys that [`mapping::key_of`] makes of them.
    encoded: bool,
    /// Pages come in any order.
    unordered: bool,
    /// The last key; `None` before the first one.
    last: Option<Box<[u8]>>,
    over: bool,
}

/// Sends all items in pages, followed by the end; stops if the reader is gone.
fn send_all(sender: &Sender<Page>, mut items: impl Iterator<Item = Item>) {
    loop {
        let page: Vec<Item> = items.by_ref().take(PAGE_ENTRIES).collect();
        let over = page.is_empty();
        let page = if over { Page::End } else { Page::Items(page) };
        if sender.blocking_send(page).is_err() || over {
            return;
        }
    }
}

impl Listing {
    /// Makes a listing and the sender for its threads.
    fn channel(encoded: bool, unordered: bool) -> (Sender<Page>, Listing) {
        let (sender, pages) = channel(PAGES_MAX);
        let current = Vec::new().into_iter();
        (sender, Listing { pages, current, encoded, unordered, last: None, over: false })
    }

    /// Makes a listing of nothing.
    pub fn empty() -> Listing {
        let (_, listing) = Listing::channel(false, false);
        Listing { over: true, ..listing }
    }

    /// Starts a thread that sends to a listing; if that fails, the listing reports it.
    fn start(sender: Sender<Page>, name: &str, body: impl FnOnce(Sender<Page>) + Send + 'static) {
        let spare = sender.clone();
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || body(sender));
        if let Err(error) = started {
            let message = format!("cannot start a thread: {error}");
            let failed = hakobu_s3::Error::new(hakobu_s3::ErrorKind::Settings, "List", message);
            // Nothing was sent yet, so there is room.
            let _ = spare.try_send(Page::Items(vec![Err(Trouble::Failed(failed))]));
        }
    }

    /// Returns the next entry; `None` at the confirmed end, or after `Failed`. Blocks: never call it inside a
    /// runtime. An entry out of order is `Failed`.
    #[expect(clippy::should_implement_trait, reason = "blocks, so it is not a plain iterator")]
    pub fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.current.next() {
                return Some(item);
            }
            self.current = self.page()?.into_iter();
        }
    }

    /// Returns the rest of the current page, else the next one; never empty.
    pub fn page(&mut self) -> Option<Vec<Item>> {
        if self.current.len() > 0 {
            return Some(std::mem::take(&mut self.current).collect());
        }
        loop {
            if self.over {
                return None;
            }
            match self.pages.blocking_recv() {
                Some(Page::Items(mut items)) => {
                    self.check(&mut items);
                    if !items.is_empty() {
                        return Some(items);
                    }
                }
                Some(Page::End) => {
                    self.over = true;
                    self.pages.close();
                }
                None => {
                    self.over = true;
                    let message = "the listing ended before its end; run the command again";
                    return Some(vec![Err(Trouble::Failed(failed(message.to_owned())))]);
                }
            }
        }
    }

    /// Truncates a page where it fails or leaves the order.
    fn check(&mut self, items: &mut Vec<Item>) {
        let mut last = self.last.take().map(|last| Cow::Owned(last.into_vec()));
        let mut bad = None;
        for (at, item) in items.iter().enumerate() {
            match item {
                Ok(entry) if !self.unordered => {
                    let key = key_of(&entry.name, self.encoded);
                    if last.as_ref().is_some_and(|last| *last >= key) {
                        let before = last.as_deref().unwrap_or_default();
                        bad = Some((at, Some(out_of_order(before, &key))));
                        break;
                    }
                    last = Some(key);
                }
                Err(Trouble::Failed(_)) => {
                    bad = Some((at + 1, None));
                    break;
                }
                _ => {}
            }
        }
        self.last = last.map(|key| key.into());
        if let Some((len, trouble)) = bad {
            items.truncate(len);
            items.extend(trouble.map(|error| Err(Trouble::Failed(error))));
            self.over = true;
            self.pages.close();
        }
    }

    /// Returns the sort key of an entry of this listing.
    pub fn key<'a>(&self, entry: &'a Entry) -> Cow<'a, [u8]> {
        key_of(&entry.name, self.encoded)
    }
}

/// Returns the sort key of a name: the name itself, or its percent-encoded form on request.
fn key_of(name: &[u8], encoded: bool) -> Cow<'_, [u8]> {
    if encoded { mapping::sort_key(name) } else { Cow::Borrowed(name) }
}

fn failed(message: String) -> hakobu_s3::Error {
    hakobu_s3::Error::new(hakobu_s3::ErrorKind::Corrupt, "ListObjectsV2", message)
}

fn out_of_order(before: &[u8], after: &[u8]) -> hakobu_s3::Error {
    let shown = |name| quoted(OsStr::from_bytes(name));
    failed(if before == after {
        format!("the listing names {} twice, so it cannot be trusted", shown(after))
    } else {
        format!(
            "the listing is out of order ({} comes after {}), so it cannot be trusted",
            shown(after),
            shown(before)
        )
    })
}
