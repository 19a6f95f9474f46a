//! Listings in the order of keys: of a prefix in a bucket, of a local tree, of given names; and
//! the merge of two of them. Memory does not grow with the number of keys.
//!
//! - [`store`], [`local`], [`given`], [`memory`] make a [`Listing`], which runs in threads of its own.
//! - [`Merge`] walks two of them side by side.
//! - [`Sieve`] asks the filter rules about whole names.
//! - [`Pattern`] is a wildcard as `s3://bucket/a*b` has it.

mod given;
mod local;
mod memory;
mod merge;
mod sieve;
mod store;
mod wildcard;

pub use given::{Given, given, plain};
pub use local::{Dirs, LocalQuery, local, merge_files};
pub use memory::memory;
pub use merge::{Merge, Merged};
pub use sieve::{ReadMergeFile, Sieve};
pub use store::{StoreQuery, store};
pub use wildcard::Pattern;

use super::{Entry, mapping};
use crate::error::{Problem, quoted};
use crate::s3;
use crate::unit::{Kind, Meta, Time};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Entries of a page: as many as S3 sends at once.
const PAGE_ENTRIES: usize = 1000;
/// Pages that wait for whoever reads a listing.
const PAGES_MAX: usize = 4;

/// What a listing says besides entries.
#[derive(Debug)]
pub enum Trouble {
    /// One entry or folder could not be looked at: what lies there is not known, the rest goes on.
    /// Nothing at or below `name` may be taken for absent (unless the class is `Notice`: then the
    /// entry is there and was left out on purpose). Comes before every entry that sorts after
    /// `name`.
    Problem {
        /// From the root of the listing; a folder ends with a slash, the root itself is empty.
        name: Box<[u8]>,
        /// What happened.
        problem: Problem,
    },
    /// The listing broke off: nothing after the last entry may be taken for absent. Nothing comes
    /// after it.
    Failed(s3::Error),
}

/// What comes out of a listing.
pub type Item = Result<Entry, Trouble>;

/// What the threads of a listing send.
enum Page {
    Items(Vec<Item>),
    /// Everything was sent. A listing whose threads go without saying so has broken off.
    End,
}

/// A listing under way in threads of its own; entries come in pages, sorted by the bytes of their
/// keys (folders as `name/`). Dropping it ends its threads.
pub struct Listing {
    pages: Receiver<Page>,
    current: std::vec::IntoIter<Item>,
    order: Order,
    over: bool,
}

/// How a listing is sorted, and how far it got.
struct Order {
    /// Names are local ones and sort as the keys that [`mapping::key_of`] makes of them.
    encoded: bool,
    /// Pages come in any order.
    none: bool,
    /// The last key; `None` before the first one.
    last: Option<Box<[u8]>>,
}

impl Listing {
    /// A listing and the end that its threads send to.
    fn channel(encoded: bool, unordered: bool) -> (Sender<Page>, Listing) {
        let (sender, pages) = channel(PAGES_MAX);
        let order = Order { encoded, none: unordered, last: None };
        (sender, Listing { pages, current: Vec::new().into_iter(), order, over: false })
    }

    /// Starts a thread that sends to a listing; where none can be had, the listing says so.
    fn start(sender: Sender<Page>, name: &str, body: impl FnOnce(Sender<Page>) + Send + 'static) {
        let spare = sender.clone();
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || body(sender));
        if let Err(error) = started {
            let message = format!("cannot start a thread: {error}");
            let failed = s3::Error::new(s3::Kind::Settings, "List", message);
            // Nobody has sent anything yet, so there is room.
            let _ = spare.try_send(Page::Items(vec![Err(Trouble::Failed(failed))]));
        }
    }

    /// The next entry; `None` at the confirmed end, or after `Failed`. Blocks: never call it
    /// inside a runtime. An entry out of order is `Failed`.
    #[expect(clippy::should_implement_trait, reason = "blocks, so it is no plain iterator")]
    pub fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.current.next() {
                return Some(item);
            }
            self.current = self.page()?.into_iter();
        }
    }

    /// What is left of the current page, else the next one; never empty. For those who have no
    /// need of single entries.
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

    /// Cuts a page off where it fails or leaves the order.
    fn check(&mut self, items: &mut Vec<Item>) {
        let mut last = self.order.last.take().map(|last| Cow::Owned(last.into_vec()));
        let mut bad = None;
        for (at, item) in items.iter().enumerate() {
            match item {
                Ok(entry) if !self.order.none => {
                    let key = key_of(&entry.name, self.order.encoded);
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
        self.order.last = last.map(|key| key.into());
        if let Some((len, trouble)) = bad {
            items.truncate(len);
            items.extend(trouble.map(|error| Err(Trouble::Failed(error))));
            self.over = true;
            self.pages.close();
        }
    }

    /// The key that an entry of this listing is sorted by.
    pub fn key<'a>(&self, entry: &'a Entry) -> Cow<'a, [u8]> {
        key_of(&entry.name, self.order.encoded)
    }
}

/// The key that stands for a name in the order: the name itself, or what it becomes where names
/// are percent-encoded on request.
fn key_of(name: &[u8], encoded: bool) -> Cow<'_, [u8]> {
    if encoded { mapping::sort_key(name) } else { Cow::Borrowed(name) }
}

fn failed(message: String) -> s3::Error {
    s3::Error::new(s3::Kind::Corrupt, "ListObjectsV2", message)
}

fn out_of_order(before: &[u8], after: &[u8]) -> s3::Error {
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

/// The metadata of something that is known by name, size and time only.
pub fn bare_meta(kind: Kind, size: u64, mtime: Time) -> Meta {
    let mode = if kind == Kind::Dir { 0o777 } else { 0o666 };
    Meta {
        kind,
        mode,
        size,
        blocks: size.div_ceil(512),
        uid: 0,
        gid: 0,
        nlink: 1,
        dev: 0,
        ino: 0,
        rdev: 0,
        mtime,
        atime: mtime,
        ctime: mtime,
    }
}
