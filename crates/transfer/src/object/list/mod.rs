//! Listings in the order of keys: of a prefix in a bucket, of a local tree, of names from a list; and the merge of
//! two of them. Memory does not grow with the number of keys.
//!
//! - [`below`], [`store`], [`local`], [`from_names`], [`inventory`] make a [`Listing`], which runs in threads of its own.
//! - [`Merge`] walks two of them side by side.
//! - [`NameFilter`] applies the filter rules to whole names.
//! - [`Scope`] is the start of an argument's listing, [`Choice`] selects its names.
//! - [`Pattern`] is a wildcard as in `s3://bucket/a*b`.

mod bucket;
mod inventory;
mod local;
mod name_filter;

pub use super::list::bucket::{StoreQuery, store};
pub use super::list::inventory::{Inventory, InventoryCounts, inventory};
pub use super::list::local::{Dirs, LocalQuery, local};
pub use super::list::name_filter::{NameFilter, ReadMergeFile};
use super::{Entry, Side, mapping};
pub use crate::object::list::name_filter::{
    Pattern, below, from_names, merge_files, merge_objects, plain,
};
use crate::policy::filter::{Filter, FilterError, Origin};
use hakobu_core::error::{Problem, quoted};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
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
    /// Everything up to this key was sent: what did not come is not there. Only of listings whose items take long.
    Passed(Box<[u8]>),
    /// Everything was sent. A listing whose threads end without this has broken off.
    End,
}

/// What a listing says next.
enum Progress {
    Item(Item),
    /// See [`Page::Passed`].
    Passed(Box<[u8]>),
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
            if let Progress::Item(item) = self.progress()? {
                return Some(item);
            }
        }
    }

    /// As [`Listing::next`], also where no entry comes.
    fn progress(&mut self) -> Option<Progress> {
        loop {
            if let Some(item) = self.current.next() {
                return Some(Progress::Item(item));
            }
            match self.receive()? {
                Page::Items(items) => self.current = items.into_iter(),
                Page::Passed(key) => return Some(Progress::Passed(key)),
                Page::End => return None,
            }
        }
    }

    /// Returns the rest of the current page, else the next one; never empty.
    pub fn page(&mut self) -> Option<Vec<Item>> {
        if self.current.len() > 0 {
            return Some(std::mem::take(&mut self.current).collect());
        }
        loop {
            if let Page::Items(items) = self.receive()? {
                return Some(items);
            }
        }
    }

    /// Waits for the next message; `None` after the end. Items are checked, and never none.
    fn receive(&mut self) -> Option<Page> {
        loop {
            if self.over {
                return None;
            }
            match self.pages.blocking_recv() {
                Some(Page::Items(mut items)) => {
                    self.check(&mut items);
                    if !items.is_empty() {
                        return Some(Page::Items(items));
                    }
                }
                Some(passed @ Page::Passed(_)) => return Some(passed),
                Some(Page::End) => {
                    self.over = true;
                    self.pages.close();
                }
                None => {
                    self.over = true;
                    let message = "the listing ended before its end; run the command again";
                    let broken = Err(Trouble::Failed(failed(message.to_owned())));
                    return Some(Page::Items(vec![broken]));
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

// The part of a bucket that an argument selects: the start of its listing, and a filter for its names.

/// Start of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The key up to its last slash.
    pub prefix: Vec<u8>,
    /// Common prefix of all names.
    pub narrowed: Vec<u8>,
    /// The wildcard, if there is one.
    pub pattern: Option<Pattern>,
}

impl Scope {
    /// Returns the scope of a key as typed; with `raw` wildcards are literal.
    pub fn of(key: &[u8], raw: bool) -> Scope {
        match Pattern::parse(key).filter(|_| !raw) {
            Some(pattern) => Scope::matching(pattern),
            None => {
                let at = key.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
                let (prefix, narrowed) = key.split_at(at);
                let (prefix, narrowed) = (prefix.to_vec(), narrowed.to_vec());
                Scope { prefix, narrowed, pattern: None }
            }
        }
    }

    /// The scope of a wildcard.
    pub fn matching(pattern: Pattern) -> Scope {
        let prefix = pattern.root().to_vec();
        let narrowed = pattern.literal()[prefix.len()..].to_vec();
        Scope { prefix, narrowed, pattern: Some(pattern) }
    }
}

/// Selects names of a listing by a wildcard and filter rules.
pub struct Choice {
    pattern: Option<Pattern>,
    name_filter: Option<NameFilter>,
    /// The prefix, followed by the last checked name.
    key: Vec<u8>,
    prefix_bytes: usize,
    /// The first name that rules excluded.
    left_out: Option<Vec<u8>>,
    /// Rules let a name through.
    lets: bool,
}

impl Choice {
    /// Selects among names below a prefix.
    ///
    /// # Errors
    /// None in practice: a store that is only listed has no rule files.
    pub fn new(
        prefix: &[u8],
        pattern: Option<Pattern>,
        filter: Option<&Arc<Filter>>,
    ) -> Result<Choice, FilterError> {
        let origin = Origin { source: b"", target: b"", first: b"" };
        let filter = filter.filter(|filter| !filter.is_empty());
        let name_filter =
            filter.map(|filter| NameFilter::new(Arc::clone(filter), &origin, None)).transpose()?;
        Ok(Choice {
            pattern,
            name_filter,
            key: prefix.to_vec(),
            prefix_bytes: prefix.len(),
            left_out: None,
            lets: false,
        })
    }

    /// Returns whether the wildcard matches the name.
    pub fn matches(&mut self, name: &[u8]) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        self.key.truncate(self.prefix_bytes);
        self.key.extend_from_slice(name);
        pattern.matches(&self.key)
    }

    /// Returns whether the rules exclude the name. Undecidable names are excluded.
    pub fn hides(&mut self, name: &[u8]) -> bool {
        let Some(name_filter) = &mut self.name_filter else { return false };
        let hides = !name_filter.decide(name).is_ok_and(|decision| !decision.hide);
        if hides {
            self.left_out.get_or_insert_with(|| name.to_vec());
        } else {
            self.lets = true;
        }
        hides
    }

    /// Returns a sentence if rules excluded all names so far.
    pub fn all_left_out(&mut self) -> Option<String> {
        let name = self.left_out.as_ref().filter(|_| !self.lets)?;
        Some(self.name_filter.as_mut()?.all_left_out(name))
    }

    /// Returns whether a name is selected.
    pub fn takes(&mut self, name: &[u8]) -> bool {
        self.matches(name) && !self.hides(name)
    }
}

// Merge of two listings in one order. An entry is only reported as missing at the source if no problem of the source
// can hide it.

/// One step of a merge.
#[derive(Debug)]
pub enum Merged {
    /// Both sides have it: source, target.
    Both(Entry, Entry),
    /// Only the source has it.
    Source(Entry),
    /// Only the target has it: extraneous. Never a folder in which the source has an entry.
    Target(Entry),
    /// The source has it; the target's entry could not be examined.
    Unknown(Entry),
    /// A problem of a side. After `Failed` nothing more comes.
    Trouble(Side, Trouble),
}

/// Merge of two listings; see the module. Entries are compared by their keys: local names that are percent-encoded on
/// request sort by the encoded form ([`Listing::key`]). Problems come in order as well, and before the entries that
/// they affect.
pub struct Merge {
    source: Stream,
    target: Stream,
    kept: u64,
    over: bool,
}

/// State of one side.
struct Stream {
    listing: Option<Listing>,
    /// The next entry and its key.
    head: Option<(Box<[u8]>, Entry)>,
    /// Key up to which nothing comes any more.
    passed: Option<Box<[u8]>>,
    /// Keys that could not be examined, as far as they still matter: a folder with its slash, empty for everything;
    /// and whether it may be an entry without that slash.
    shields: Vec<(Box<[u8]>, bool)>,
}

impl Merge {
    /// Merges two listings. Without a target every entry is missing there; without a source every entry is
    /// extraneous.
    pub fn new(source: Option<Listing>, target: Option<Listing>) -> Merge {
        Merge { source: Stream::new(source), target: Stream::new(target), kept: 0, over: false }
    }

    /// Returns the number of target entries that were kept because of problems of the source.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    fn trouble(&mut self, side: Side, trouble: Trouble) -> Merged {
        self.over = matches!(trouble, Trouble::Failed(_));
        Merged::Trouble(side, trouble)
    }
}

impl Iterator for Merge {
    type Item = Merged;

    fn next(&mut self) -> Option<Merged> {
        while !self.over {
            // The source first: its problems must be known before the target is decided.
            if let Err(trouble) = self.source.fill(None) {
                return Some(self.trouble(Side::Source, trouble));
            }
            // A new object does not wait until it is known which later one the target has.
            let upto = self.source.head.as_ref().map(|(key, _)| &**key);
            if let Err(trouble) = self.target.fill(upto) {
                return Some(self.trouble(Side::Target, trouble));
            }
            let take_source = match (&self.source.head, &self.target.head) {
                (None, None) => break,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some((source, _)), Some((target, _))) if source == target => {
                    let (source, target) = (self.source.head.take(), self.target.head.take());
                    let ((_, source), (_, target)) = source.zip(target)?;
                    return Some(Merged::Both(source, target));
                }
                (Some((source, _)), Some((target, _))) => source < target,
            };
            if take_source {
                let (key, entry) = self.source.head.take()?;
                return Some(match self.target.shields(&key) {
                    true => Merged::Unknown(entry),
                    false => Merged::Source(entry),
                });
            }
            let (key, entry) = self.target.head.take()?;
            if self.source.shields(&key) {
                self.kept += 1;
                continue;
            }
            let below = |(source, _): &(Box<[u8]>, Entry)| source.starts_with(&key);
            if key.ends_with(b"/") && self.source.head.as_ref().is_some_and(below) {
                continue;
            }
            return Some(Merged::Target(entry));
        }
        None
    }
}

impl Stream {
    fn new(listing: Option<Listing>) -> Stream {
        Stream { listing, head: None, passed: None, shields: Vec::new() }
    }

    /// Reads until there is a head or the end, or until it is known that there is none up to `upto`.
    fn fill(&mut self, upto: Option<&[u8]>) -> Result<(), Trouble> {
        if self.head.is_some() {
            return Ok(());
        }
        let Some(listing) = &mut self.listing else { return Ok(()) };
        let item = loop {
            if upto.zip(self.passed.as_deref()).is_some_and(|(upto, passed)| upto <= passed) {
                return Ok(());
            }
            match listing.progress() {
                Some(Progress::Passed(key)) => self.passed = Some(key),
                Some(Progress::Item(item)) => break Some(item),
                None => break None,
            }
        };
        match item {
            Some(Ok(entry)) => {
                let key = listing.key(&entry).into();
                self.head = Some((key, entry));
                Ok(())
            }
            Some(Err(trouble)) => {
                if let Trouble::Problem { name, .. } = &trouble {
                    let mut key = key_of(name, listing.encoded).into_owned();
                    let whole = !key.is_empty() && !key.ends_with(b"/");
                    if whole {
                        key.push(b'/');
                    }
                    self.shields.push((key.into(), whole));
                }
                Err(trouble)
            }
            None => {
                self.listing = None;
                Ok(())
            }
        }
    }

    /// Returns whether a key, not smaller than any before, is at or below a problem.
    fn shields(&mut self, key: &[u8]) -> bool {
        self.shields.retain(|(shield, _)| key.starts_with(shield) || key <= &**shield);
        self.shields.iter().any(|(shield, whole)| {
            key.starts_with(shield) || *whole && shield.strip_suffix(b"/") == Some(key)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_core::error::{Cause, ErrorClass, Operation, Problem};
    use hakobu_core::unit::{Kind, Meta, Time};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Lists these items in the given order, which is checked as in every listing.
    fn memory(items: Vec<Item>, encoded: bool) -> Listing {
        let (sender, listing) = Listing::channel(encoded, false);
        Listing::start(sender, "list-memory", move |sender| send_all(&sender, items.into_iter()));
        listing
    }

    fn entry(name: &str, size: u64) -> Item {
        let kind = if name.ends_with('/') { Kind::Dir } else { Kind::File };
        let meta = Meta::bare(kind, size, Time::default());
        Ok(Entry { name: name.as_bytes().into(), meta, etag: "".into() })
    }

    #[test]
    fn a_target_that_passed_a_name_is_not_waited_for() {
        let source =
            memory(vec![entry("a", 1), entry("b", 1), entry("c", 1), entry("d", 1)], false);
        let (sender, target) = Listing::channel(false, false);
        let mut merge = Merge::new(Some(source), Some(target));
        let passed = |name: &str| Page::Passed(name.as_bytes().into());
        let text = |merged: Option<Merged>| match merged {
            Some(Merged::Source(entry)) => {
                format!("source {}", String::from_utf8_lossy(&entry.name))
            }
            Some(Merged::Both(entry, _)) => {
                format!("both {}", String::from_utf8_lossy(&entry.name))
            }
            Some(_) => "other".to_owned(),
            None => "end".to_owned(),
        };
        // Nothing else was sent: a merge that waited for the target would never end.
        sender.blocking_send(passed("b")).unwrap();
        assert_eq!(text(merge.next()), "source a");
        assert_eq!(text(merge.next()), "source b");
        sender.blocking_send(Page::Items(vec![entry("c", 2)])).unwrap();
        sender.blocking_send(passed("d")).unwrap();
        assert_eq!(text(merge.next()), "both c");
        assert_eq!(text(merge.next()), "source d");
        // The end has to be confirmed all the same.
        drop(sender);
        assert_eq!(text(merge.next()), "other");
        assert_eq!(text(merge.next()), "end");
    }

    fn problem(name: &str) -> Item {
        let problem = Problem {
            operation: Operation::List,
            source: None,
            target: None,
            cause: Cause::Reason("it is a test"),
            class: ErrorClass::Partial,
        };
        Err(Trouble::Problem { name: name.as_bytes().into(), problem })
    }

    fn broken() -> Item {
        Err(Trouble::Failed(hakobu_s3::Error::new(
            hakobu_s3::ErrorKind::Server,
            "ListObjectsV2",
            "it is a test",
        )))
    }

    /// A side of a test: names with sizes, problems, and the position where it breaks off.
    #[derive(Clone, Debug)]
    struct World {
        names: BTreeMap<String, u64>,
        problems: BTreeSet<String>,
        broken_after: Option<usize>,
    }

    impl World {
        fn covers(problems: &BTreeSet<String>, name: &str) -> bool {
            problems.iter().any(|problem| {
                let folder = problem.trim_end_matches('/');
                name == problem || name.starts_with(&format!("{folder}/"))
            })
        }

        /// Returns a listing: names in order without those hidden by a problem, problems in between.
        fn items(&self) -> Vec<Item> {
            let mut all: BTreeMap<&str, Item> = BTreeMap::new();
            for (name, size) in &self.names {
                if !World::covers(&self.problems, name) {
                    all.insert(name, entry(name, *size));
                }
            }
            all.extend(self.problems.iter().map(|name| (name.as_str(), problem(name))));
            let mut items: Vec<_> = all.into_values().collect();
            if let Some(at) = self.broken_after {
                items.truncate(at);
                items.push(broken());
            }
            items
        }
    }

    fn world() -> impl Strategy<Value = World> {
        let name = || "[ab]([-./]?[ab0]){0,3}";
        (
            prop::collection::btree_map(name(), 0..3_u64, 0..20),
            prop::collection::btree_set((name(), "/?").prop_map(|(name, end)| name + &end), 0..3),
            prop::option::weighted(0.3, 0..20_usize),
        )
            .prop_map(|(names, problems, broken_after)| World {
                names,
                problems,
                broken_after,
            })
    }

    fn text(entry: &Entry) -> String {
        String::from_utf8(entry.name.to_vec()).unwrap()
    }

    proptest! {
        #[test]
        fn nothing_is_extraneous_that_the_source_has_or_may_have(source in world(), target in world()) {
            let sides = [&source, &target].map(|world| Some(memory(world.items(), false)));
            let [one, two] = sides;
            let mut merge = Merge::new(one, two);
            let (mut broke, mut both, mut only, mut last) = (false, 0, BTreeSet::new(), String::new());
            let mut extraneous = BTreeSet::new();
            for step in merge.by_ref() {
                prop_assert!(!broke, "something came after the break");
                let name = match &step {
                    Merged::Both(a, b) => {
                        prop_assert_eq!(&a.name, &b.name);
                        prop_assert_eq!(source.names[&text(a)], a.meta.size);
                        prop_assert_eq!(target.names[&text(b)], b.meta.size);
                        both += 1;
                        text(a)
                    }
                    Merged::Source(entry) => {
                        let name = text(entry);
                        prop_assert!(!target.names.contains_key(&name), "{}", name);
                        prop_assert!(!World::covers(&target.problems, &name), "{}", name);
                        only.insert(name.clone());
                        name
                    }
                    Merged::Unknown(entry) => {
                        prop_assert!(World::covers(&target.problems, &text(entry)));
                        only.insert(text(entry));
                        text(entry)
                    }
                    Merged::Target(entry) => {
                        let name = text(entry);
                        // The source really lacks it, whether listed or not.
                        prop_assert!(!source.names.contains_key(&name), "{}", name);
                        prop_assert!(!World::covers(&source.problems, &name), "{}", name);
                        extraneous.insert(name.clone());
                        name
                    }
                    Merged::Trouble(_, trouble) => {
                        broke = matches!(trouble, Trouble::Failed(_));
                        continue;
                    }
                };
                prop_assert!(last < name, "{} after {}", name, last);
                last = name;
            }
            if !broke {
                // Everything that could be examined was reported.
                let seen = |world: &World| -> BTreeSet<String> {
                    let names = world.names.keys().filter(|name| !World::covers(&world.problems, name));
                    names.cloned().collect()
                };
                let (seen_source, seen_target) = (seen(&source), seen(&target));
                prop_assert_eq!(both + only.len(), seen_source.len());
                let gone = seen_target.iter().filter(|name| {
                    !seen_source.contains(*name) && !World::covers(&source.problems, name)
                });
                prop_assert_eq!(extraneous, gone.cloned().collect::<BTreeSet<_>>());
            }
        }
    }

    fn steps(source: Vec<Item>, target: Vec<Item>) -> Vec<String> {
        let merge = Merge::new(Some(memory(source, false)), Some(memory(target, false)));
        let shown = |step: Merged| match step {
            Merged::Both(a, _) => format!("={}", text(&a)),
            Merged::Source(a) => format!("+{}", text(&a)),
            Merged::Target(a) => format!("-{}", text(&a)),
            Merged::Unknown(a) => format!("?{}", text(&a)),
            Merged::Trouble(_, Trouble::Failed(error)) => format!("!{}", error.message),
            Merged::Trouble(_, Trouble::Problem { name, .. }) => {
                format!("!{}", String::from_utf8_lossy(&name))
            }
        };
        merge.map(shown).collect()
    }

    #[test]
    fn a_folder_with_something_in_it_is_not_extraneous() {
        let target = || vec![entry("a/", 0), entry("a/old", 1), entry("b/", 0)];
        assert_eq!(steps(vec![entry("a/new", 1)], target()), ["+a/new", "-a/old", "-b/"]);
        assert_eq!(steps(vec![], target()), ["-a/", "-a/old", "-b/"]);
    }

    #[test]
    fn a_listing_out_of_order_or_with_a_name_twice_is_not_trusted() {
        let target = || vec![entry("a", 1), entry("z", 1)];
        let source = vec![entry("a", 1), entry("c", 1), entry("b", 1), entry("x", 1)];
        let said = "!the listing is out of order ('b' comes after 'c'), so it cannot be trusted";
        assert_eq!(steps(source, target()), ["=a", "+c", said]);
        let source = vec![entry("a", 1), entry("c", 1), entry("c", 1)];
        let said = "!the listing names 'c' twice, so it cannot be trusted";
        assert_eq!(steps(source, target()), ["=a", "+c", said]);
    }

    #[test]
    fn a_listing_whose_thread_is_gone_has_not_ended() {
        let (sender, listing) = Listing::channel(false, false);
        let _ = sender.try_send(Page::Items(vec![entry("a", 1)]));
        drop(sender);
        let steps: Vec<_> =
            Merge::new(Some(listing), Some(memory(vec![entry("b", 1)], false))).collect();
        assert!(matches!(
            &*steps,
            [Merged::Source(_), Merged::Trouble(Side::Source, Trouble::Failed(_))]
        ));
    }

    #[test]
    fn encoded_names_meet_their_keys() {
        let local = |name: &[u8]| {
            let meta = Meta::bare(Kind::File, 1, Time::default());
            Ok(Entry { name: name.into(), meta, etag: "".into() })
        };
        let source = memory(vec![local(b"caf\xe9"), local(b"a")], true);
        let target = memory(vec![entry("%=caf%E9", 1), entry("a", 1)], false);
        let steps: Vec<_> = Merge::new(Some(source), Some(target)).collect();
        assert!(matches!(&*steps, [Merged::Both(..), Merged::Both(..)]), "{steps:?}");
    }
}
