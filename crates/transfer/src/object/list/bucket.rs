//! The listing of a prefix in a bucket.

use super::{Item, Listing, Page, Trouble, out_of_order};
use crate::object::Entry;
use crate::policy::NameRange;
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_s3::ops::{ListPage, ListQuery, ListedObject, ObjectPages, list_objects};
use hakobu_s3::{Client, S3Session};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Maximum length of a key, in bytes ("Naming Amazon S3 objects", S3 User Guide).
const KEY_BYTES_MAX: usize = 1024;

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
    /// Only names in this range: nothing else is requested, but for the rest of a page at either end.
    pub range: NameRange,
}

impl Default for StoreQuery {
    fn default() -> Self {
        let (prefix, narrowed, range) = (Vec::new(), Vec::new(), NameRange::all());
        StoreQuery { prefix, narrowed, recursive: true, parallel: 8, unordered: false, range }
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
        _ if query.range.is_empty() => Ok(()),
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
    let start_after = match query.range.from.is_empty() {
        true => Vec::new(),
        false => just_before(&[&*query.prefix, &*query.range.from].concat()),
    };
    ListQuery { prefix, delimiter, start_after, ..ListQuery::default() }
}

/// Returns a text that is smaller than every key from `key` on, and as large as possible: few keys are between. `key` is
/// not empty. Keys and requests are UTF-8, and `key` need not be.
fn just_before(key: &[u8]) -> Vec<u8> {
    let (valid, invalid) = match std::str::from_utf8(key) {
        Ok(text) => (text, &b""[..]),
        Err(error) => {
            let (valid, invalid) = key.split_at(error.valid_up_to());
            (std::str::from_utf8(valid).unwrap_or_default(), invalid)
        }
    };
    let mut chars = valid.chars();
    let (lead, rest) = match invalid {
        [] => {
            let last = chars.next_back();
            let lead = chars.as_str();
            (lead, last.map_or(&b""[..], |_| &key[lead.len()..]))
        }
        _ => (valid, invalid),
    };
    // The greatest character below the rest; the order of characters is that of their bytes.
    let is_below = |char: &char| char.encode_utf8(&mut [0; 4]).as_bytes() < rest;
    let below = match std::str::from_utf8(rest).ok().and_then(|rest| rest.chars().next()) {
        Some(char) => ('\0'..char).next_back(),
        // Invalid bytes: few keys can be near, so that steps of 64 suffice (the last byte of a character has so many
        // values).
        None => ('\0'..=char::MAX).step_by(64).take_while(is_below).last(),
    };
    let mut before = lead.as_bytes().to_vec();
    if let Some(char) = below {
        for char in [char, char::MAX] {
            let len = before.len() + char.len_utf8();
            if len <= KEY_BYTES_MAX {
                before.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    before
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
        let mut items = items(page, query.prefix.len());
        let last = items.last().and_then(|item| item.as_ref().ok()).map(|entry| entry.name.clone());
        items.retain(|item| item.as_ref().map_or(true, |entry| query.range.contains(&entry.name)));
        sender.send(Page::Items(items)).await.map_err(|_| Stop::Gone)?;
        if last.is_some_and(|last| query.range.until.as_ref().is_some_and(|until| **until <= *last))
        {
            break;
        }
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
    let whole = |name: &Vec<u8>| [&*query.prefix, &**name].concat();
    let (from, until) = (whole(&query.range.from), query.range.until.as_ref().map(whole));
    let mut splitter = Splitter::new(fixed, parallel, !query.unordered, parallel > 1).within(
        base.start_after.clone(),
        from,
        until,
    );
    let mut flying = FuturesUnordered::new();
    let mut out: Option<Vec<Item>> = None;
    loop {
        while let Some(PageRequest { range, start_after, continuation }) = splitter.ask() {
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

// Estimates the distribution of keys: a page of them is taken as numbers, so that "n pages further" is an addition.
// An estimate need not be right: it only decides where another request begins.
//
// The first keys differ from the last ones of a page at some byte. A window of bytes around it is read as a number
// with a radix of its own at each place: as many digits as that place seems to have (`0`–`9`, hexadecimal, letters,
// and other bytes seen). The bytes before the window are kept; those after it are ignored.

/// Places of the window before and after the first byte that differs. 12 places of less than 1,024 digits fit into
/// 120 bits.
const PLACES_BEFORE: usize = 6;
const PLACES_AFTER: usize = 6;
/// Number of keys of a page that are examined for their digits.
const SAMPLED: usize = 64;

/// Statistics of the keys of one page.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// The bytes before the window.
    lead: Vec<u8>,
    places: Vec<Place>,
    /// Distance from the first to the last key, and the number of keys between.
    way: u128,
    keys: u128,
}

/// The digits at one place: a set of bytes.
#[derive(Clone, Debug, Default)]
struct Place {
    bytes: Vec<u8>,
    /// Some keys end before this place, so that "nothing" is the lowest digit.
    ends: bool,
}

impl Sample {
    /// Samples the sorted keys of a page, all of them after `before` (which is empty for the first page); `fixed`
    /// bytes are the same in all keys of the listing. Returns `None` if the page gives no information.
    pub(super) fn of<'a>(
        before: &'a [u8],
        keys: impl ExactSizeIterator<Item = &'a [u8]> + DoubleEndedIterator + Clone,
        fixed: usize,
    ) -> Option<Sample> {
        let count = keys.len();
        let last = keys.clone().next_back()?;
        let first = if before.is_empty() { keys.clone().next()? } else { before };
        let ways = if before.is_empty() { count - 1 } else { count };
        let differ = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        if count < 2 || differ >= last.len() {
            return None;
        }
        let start = differ.saturating_sub(PLACES_BEFORE).max(fixed.min(differ));
        let end = differ + PLACES_AFTER;
        let mut seen = vec![Place::default(); end - start];
        for key in keys.step_by((count / SAMPLED).max(1)).chain([first, last]) {
            for (at, place) in seen.iter_mut().enumerate() {
                match key.get(start + at) {
                    Some(byte) => {
                        if let Err(at) = place.bytes.binary_search(byte) {
                            place.bytes.insert(at, *byte);
                        }
                    }
                    None => place.ends = true,
                }
            }
        }
        // Drop trailing places that hardly any key has.
        while seen.last().is_some_and(|place| place.bytes.is_empty()) {
            seen.pop();
        }
        let varied = seen.iter().skip(differ - start).flat_map(|place| place.bytes.iter().copied());
        let varied = closure(varied.collect());
        for place in &mut seen {
            place.complete(&varied);
        }
        let mut sample =
            Sample { lead: first[..start].to_vec(), places: seen, way: 0, keys: ways as u128 };
        let (from, to) = (sample.number(first)?, sample.number(last)?);
        sample.way = to.checked_sub(from).filter(|way| *way > 0)?;
        Some(sample)
    }

    /// Estimates the number of keys between two keys; without an end up to the end of the window. Returns `None` if
    /// this sample does not apply to `from`.
    pub(super) fn between(&self, from: &[u8], to: Option<&[u8]>) -> Option<u64> {
        let start = self.number(from)?;
        let end = to.and_then(|to| self.number(to)).unwrap_or_else(|| self.numbers());
        let keys = end.saturating_sub(start).saturating_mul(self.keys) / self.way;
        Some(u64::try_from(keys).unwrap_or(u64::MAX))
    }

    /// Estimates the key that is `keys` keys after another one. Returns `None` if the window ends before that.
    pub(super) fn after(&self, from: &[u8], keys: u64) -> Option<Vec<u8>> {
        let way = u128::from(keys).checked_mul(self.way)? / self.keys;
        let number = self.number(from)?.checked_add(way.max(1))?;
        if number >= self.numbers() {
            return None;
        }
        Some(self.key(number))
    }

    /// Returns how many numbers the window has.
    fn numbers(&self) -> u128 {
        self.places.iter().map(Place::radix).product()
    }

    /// Returns the window of a key as a number; `None` for a key that does not begin like those of the sample. A byte
    /// that is not a digit counts as the next lower one.
    fn number(&self, key: &[u8]) -> Option<u128> {
        let rest = match key.strip_prefix(&*self.lead) {
            Some(rest) => rest,
            // A guess may have been truncated.
            None if self.lead.starts_with(key) => b"",
            None => return None,
        };
        let mut number = 0;
        let mut past = None;
        for (at, place) in self.places.iter().enumerate() {
            let radix = place.radix();
            let digit = match past {
                Some(true) => radix - 1,
                Some(false) => 0,
                None => {
                    let (digit, order) = place.digit(rest.get(at).copied());
                    // Not a digit: the rest is below or above all digits.
                    past = match order {
                        Ordering::Equal => None,
                        Ordering::Less => Some(false),
                        Ordering::Greater => Some(true),
                    };
                    digit
                }
            };
            number = number * radix + digit;
        }
        Some(number)
    }

    fn key(&self, mut number: u128) -> Vec<u8> {
        let mut digits = Vec::with_capacity(self.places.len());
        for place in self.places.iter().rev() {
            let radix = place.radix();
            digits.push(place.byte(number % radix));
            number /= radix;
        }
        let mut key = self.lead.clone();
        key.extend(digits.into_iter().rev().map_while(|byte| byte));
        key
    }
}

impl Place {
    fn radix(&self) -> u128 {
        self.bytes.len() as u128 + u128::from(self.ends)
    }

    /// Returns the digit of a byte, and the order of the byte relative to that digit.
    fn digit(&self, byte: Option<u8>) -> (u128, Ordering) {
        let low = u128::from(self.ends);
        let Some(byte) = byte else {
            return (0, if self.ends { Ordering::Equal } else { Ordering::Less });
        };
        match self.bytes.binary_search(&byte) {
            Ok(at) => (at as u128 + low, Ordering::Equal),
            Err(0) => (low, Ordering::Less),
            Err(at) => (at as u128 - 1 + low, Ordering::Greater),
        }
    }

    fn byte(&self, digit: u128) -> Option<u8> {
        let at = digit.checked_sub(u128::from(self.ends))?;
        self.bytes.get(usize::try_from(at).ok()?).copied()
    }

    /// Adds unseen digits that belong to the seen ones.
    fn complete(&mut self, varied: &[u8]) {
        let own = closure(self.bytes.clone());
        let alike = self
            .bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() && varied.binary_search(byte).is_ok());
        let more = varied.iter().filter(|byte| alike && byte.is_ascii_alphanumeric());
        self.bytes = own.into_iter().chain(more.copied()).collect();
        self.bytes.sort_unstable();
        self.bytes.dedup();
    }
}

/// Completes a set of bytes with those that usually occur with them: digits, hexadecimal digits, letters.
fn closure(mut bytes: Vec<u8>) -> Vec<u8> {
    let has = |range: std::ops::RangeInclusive<u8>| bytes.iter().any(|byte| range.contains(byte));
    let digits = has(b'0'..=b'9');
    let mut add: Vec<std::ops::RangeInclusive<u8>> = Vec::new();
    if digits {
        add.push(b'0'..=b'9');
    }
    for (first, hex, last) in [(b'a', b'f', b'z'), (b'A', b'F', b'Z')] {
        if has(hex + 1..=last) || (has(first..=hex) && !digits) {
            add.push(first..=last);
        } else if has(first..=hex) {
            add.push(first..=hex);
        }
    }
    bytes.extend(add.into_iter().flatten());
    bytes.sort_unstable();
    bytes.dedup();
    bytes
}

// Division of a listing among several concurrent requests; pure. The keys are split into ranges in order, each
// listed from its beginning by one request at a time. If fewer requests are in flight than allowed, the nearest
// range with many keys ahead of it is split where [`Sample`] estimates that enough keys precede the split. A bad
// guess costs a request, never a key.
//
// Entries come out in order: pages of the first range at once, those of later ranges wait for their turn, within a
// bound. So ranges are short and near the front instead of equal shares of everything.

/// Pages per range after a split; together with the bound on waiting pages as many again may be ahead.
const RANGE_PAGES: u64 = 4;
/// The same if the order does not matter and nothing waits.
const RANGE_PAGES_UNORDERED: u64 = 32;
/// Keys of a range's last page that are left for guesses that are slightly short.
const SLACK: u64 = 8;

/// A request to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageRequest {
    /// Range ID, to be returned with the answer.
    pub range: u64,
    /// Only keys after this one; may be empty.
    pub start_after: Vec<u8>,
    /// Continues from the range's previous page.
    pub continuation: Option<String>,
}

/// The keys were not in order: two consecutive ones.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unsorted(pub Vec<u8>, pub Vec<u8>);

/// Divides a listing among requests; see the module.
pub(super) struct Splitter {
    /// In order; the first is the front. Never empty.
    ranges: VecDeque<Range>,
    next_id: u64,
    /// Number of bytes that all keys have in common.
    fixed: usize,
    parallel: usize,
    /// Number of concurrent requests that guesses have proven good for.
    trusted: usize,
    /// Factor by which guesses are extended, since they found too little.
    stretch: u64,
    ordered: bool,
    splits: bool,
    in_flight: usize,
    /// Number of pages listed and not taken.
    waiting: usize,
    /// Largest number of keys in a page so far.
    page_keys: u64,
    /// The first key that belongs to the listing.
    from: Vec<u8>,
    /// The first key behind it.
    until: Option<Vec<u8>>,
}

/// Keys after `cursor` up to `end`.
struct Range {
    id: u64,
    /// The last key that was listed, or the start.
    cursor: Vec<u8>,
    continuation: Option<String>,
    /// The last key that may belong here; for the last range the first one behind it, if there is one.
    end: Option<Vec<u8>>,
    pages: VecDeque<Vec<ListedObject>>,
    sample: Option<Sample>,
    busy: bool,
    done: bool,
    /// A page has arrived.
    begun: bool,
    /// The cursor is a listed key.
    listed: bool,
    /// It was split off by a guess, which its first page checks.
    guessed: bool,
}

impl Splitter {
    /// Makes a splitter for keys that all begin with the same `fixed` bytes. `splits`: allows more than one range.
    pub(super) fn new(fixed: usize, parallel: usize, ordered: bool, splits: bool) -> Self {
        let all = Range {
            id: 0,
            cursor: Vec::new(),
            continuation: None,
            end: None,
            pages: VecDeque::new(),
            sample: None,
            busy: false,
            done: false,
            begun: false,
            listed: false,
            guessed: false,
        };
        Splitter {
            ranges: [all].into(),
            next_id: 1,
            fixed,
            parallel: parallel.max(1),
            trusted: 2,
            stretch: 1,
            ordered,
            splits,
            in_flight: 0,
            waiting: 0,
            page_keys: 0,
            from: Vec::new(),
            until: None,
        }
    }

    /// Restricts the listing to keys from `from` on and before `until`; it begins after `start`, which is smaller than
    /// `from` or empty.
    pub(super) fn within(mut self, start: Vec<u8>, from: Vec<u8>, until: Option<Vec<u8>>) -> Self {
        if let Some(all) = self.ranges.front_mut() {
            all.cursor = start;
            all.end.clone_from(&until);
        }
        Splitter { from, until, ..self }
    }

    /// Returns how many pages besides those of the front may wait or be requested.
    pub(super) fn waiting_max(&self) -> usize {
        2 * self.parallel * RANGE_PAGES as usize
    }

    /// Returns the next request, if one is to be made now.
    pub(super) fn ask(&mut self) -> Option<PageRequest> {
        if self.in_flight >= self.parallel.min(self.trusted.max(1)) {
            return None;
        }
        let room = self.has_room();
        let free = |(at, range): &(usize, &Range)| {
            let idle = !range.busy && !range.done;
            let few = range.pages.len() < 2 * RANGE_PAGES as usize;
            idle && few && (*at == 0 || room)
        };
        let found = self.ranges.iter().enumerate().find(free).map(|(at, _)| at);
        let at = match found {
            Some(at) => at,
            None if room && self.splits => {
                let far = 2 * self.range_pages();
                let ranges = 0..self.ranges.len();
                ranges.clone().find_map(|at| self.cut(at, far)).or_else(|| {
                    // No range has many pages left: split the rest.
                    ranges.into_iter().find_map(|at| self.cut(at, 2))
                })?
            }
            None => return None,
        };
        let range = self.ranges.get_mut(at)?;
        range.busy = true;
        self.in_flight += 1;
        let start_after = range.cursor.clone();
        Some(PageRequest { range: range.id, start_after, continuation: range.continuation.clone() })
    }

    /// Returns whether a page of a range other than the front may be requested.
    fn has_room(&self) -> bool {
        self.waiting + self.in_flight < self.waiting_max()
    }

    fn range_pages(&self) -> u64 {
        if self.ordered { RANGE_PAGES } else { RANGE_PAGES_UNORDERED }
    }

    /// Splits a range in two, if it has at least `pages_min` pages ahead; returns the index of the second one.
    fn cut(&mut self, at: usize, pages_min: u64) -> Option<usize> {
        let pages = self.range_pages();
        let range = self.ranges.get_mut(at)?;
        if range.done || self.page_keys == 0 {
            return None;
        }
        let sample = range.sample.as_ref()?;
        let page = self.page_keys;
        let wanted = (pages * page - page / SLACK).saturating_mul(self.stretch);
        let left = range.end.as_deref().map(|end| sample.between(&range.cursor, Some(end)));
        let keys = match left {
            None => wanted,
            Some(left) => match left? {
                left if left < pages_min * page => return None,
                left => wanted.min(left / 2),
            },
        };
        let mut place = sample.after(&range.cursor, keys)?;
        // Bytes of different characters may meet in a guess, and requests are UTF-8.
        if let Err(error) = std::str::from_utf8(&place) {
            place.truncate(error.valid_up_to());
        }
        let fits = place > range.cursor && range.end.as_ref().is_none_or(|end| place < *end);
        if !fits {
            return None;
        }
        let second = Range {
            id: self.next_id,
            cursor: place.clone(),
            continuation: None,
            end: range.end.replace(place),
            pages: VecDeque::new(),
            sample: range.sample.clone(),
            busy: false,
            done: false,
            begun: false,
            listed: false,
            guessed: true,
        };
        self.next_id += 1;
        self.ranges.insert(at + 1, second);
        Some(at + 1)
    }

    /// Takes an answer: the sorted keys of a page, and how to continue if there are more.
    pub(super) fn answer(
        &mut self,
        id: u64,
        mut page: Vec<ListedObject>,
        next: Option<String>,
    ) -> Result<(), Unsorted> {
        self.in_flight -= 1;
        let Some(at) = self.ranges.iter().position(|range| range.id == id) else { return Ok(()) };
        let range = &mut self.ranges[at];
        range.busy = false;
        let unsorted = |pair: &[ListedObject]| pair[0].key >= pair[1].key;
        if let Some(pair) = page.windows(2).find(|pair| unsorted(pair)) {
            return Err(Unsorted(pair[0].key.clone(), pair[1].key.clone()));
        }
        // A server may ignore `start-after`; a repeated page would be an endless loop.
        let early = page.partition_point(|entry| entry.key <= range.cursor);
        if early > 0 && !range.cursor.is_empty() {
            if range.listed {
                return Err(Unsorted(range.cursor.clone(), page[0].key.clone()));
            }
            self.splits = false;
            page.drain(..early);
        }
        let before = page.partition_point(|entry| entry.key < self.from);
        page.drain(..before);
        self.page_keys = self.page_keys.max(page.len() as u64);
        let full = page.len() as u64 * 2 > self.page_keys;
        let keys = page.iter().map(|entry| &*entry.key);
        // No key exists between the cursor and the first key: that gap counts.
        let before = if range.begun || range.guessed { &*range.cursor } else { b"" };
        let sample = Sample::of(before, keys, self.fixed).filter(|_| full);
        if sample.is_some() {
            range.sample.clone_from(&sample);
        }
        if let Some(last) = page.last() {
            range.cursor = last.key.clone();
            range.listed = true;
        }
        let all = page.len();
        let mut beyond = None;
        if let Some(end) = &range.end {
            let is_last = self.until.as_ref() == Some(end);
            let is_inside = |key: &Vec<u8>| if is_last { key < end } else { key <= end };
            let inside = page.partition_point(|entry| is_inside(&entry.key));
            beyond = page.get(inside).map(|entry| entry.key.clone());
            page.truncate(inside);
        }
        range.done = next.is_none() || page.len() < all;
        let nothing_after = next.is_none() && page.len() == all;
        range.continuation = next;
        if !range.begun {
            let hit = page.len() * 4 > all && all > 0;
            if !range.guessed || hit {
                self.trusted = (self.trusted + 1).min(self.parallel);
                self.stretch = (self.stretch / 2).max(1);
            } else {
                self.trusted = (self.trusted / 2).max(2);
                self.stretch = self.stretch.saturating_mul(2);
            }
        }
        range.begun = true;
        if !page.is_empty() {
            range.pages.push_back(page);
            self.waiting += 1;
        }
        if sample.is_some() {
            let later = self.ranges.iter_mut().skip(at + 1).filter(|range| !range.listed);
            later.for_each(|range| range.sample.clone_from(&sample));
        }
        if nothing_after || beyond.is_some() {
            // Ranges between here and the next existing key are empty.
            let mut place = 0;
            self.ranges.retain(|range| {
                place += 1;
                let gap = match (&beyond, &range.end) {
                    (None, _) => true,
                    (Some(beyond), Some(end)) => {
                        end < beyond || self.until.as_ref() == Some(beyond)
                    }
                    (Some(_), None) => false,
                };
                place <= at + 1 || range.listed || !gap
            });
        }
        Ok(())
    }

    /// Returns the next page in order, if it has arrived.
    pub(super) fn take(&mut self) -> Option<Vec<ListedObject>> {
        let page = if self.ordered {
            self.forget();
            self.ranges.front_mut()?.pages.pop_front()
        } else {
            let page = self.ranges.iter_mut().find_map(|range| range.pages.pop_front());
            self.ranges.retain(|range| !range.done || !range.pages.is_empty());
            page
        }?;
        self.waiting -= 1;
        Some(page)
    }

    fn forget(&mut self) {
        while self.ranges.front().is_some_and(|range| range.done && range.pages.is_empty()) {
            self.ranges.pop_front();
        }
    }

    /// Returns whether everything was listed and taken.
    pub(super) fn is_over(&self) -> bool {
        self.ranges.iter().all(|range| range.done && range.pages.is_empty())
    }

    /// Returns the number of waiting pages.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(keys: &[String], fixed: usize) -> Sample {
        Sample::of(b"", keys.iter().map(String::as_bytes), fixed).unwrap()
    }

    #[test]
    fn counting_keys_go_on_as_they_began() {
        let keys: Vec<_> = (0..1000).map(|i| format!("p/k{i:07}")).collect();
        let sample = sample(&keys, 2);
        assert_eq!(sample.after(b"p/k0000999", 4000).unwrap(), b"p/k0004999");
        assert_eq!(sample.after(b"p/k0098999", 4000).unwrap(), b"p/k0102999");
        assert_eq!(sample.between(b"p/k0000999", Some(b"p/k0004999")), Some(4000));
        assert_eq!(sample.after(b"q/k0000999", 4000), None);
    }

    #[test]
    fn hexadecimal_keys_are_seen_as_such() {
        let keys: Vec<_> = (0..1000).map(|i| format!("{:08x}-tail", i * 4_000)).collect();
        let sample = sample(&keys, 0);
        let half = sample.after(b"003d0000-", 536_000).unwrap();
        assert!((b"7f".as_slice()..b"81").contains(&&*half), "{}", half.escape_ascii());
    }

    #[test]
    fn a_gap_before_a_page_counts() {
        let keys: Vec<_> = (1000..2000).map(|i| format!("d0001/f{i:06}")).collect();
        let sample = Sample::of(b"d0000/f000999", keys.iter().map(String::as_bytes), 0).unwrap();
        let further = sample.after(b"d0001/f001999", 4000).unwrap();
        assert!(further.starts_with(b"d0005/f00"), "{}", further.escape_ascii());
    }

    #[test]
    fn one_key_or_a_window_that_ends_teach_nothing() {
        let one = ["a".to_owned()];
        assert!(Sample::of(b"", one.iter().map(String::as_bytes), 0).is_none());
        let keys: Vec<_> = (900..1000).map(|i| format!("{i}")).collect();
        assert_eq!(sample(&keys, 0).after(b"999", 50), None);
    }
    use hakobu_core::unit::Time;
    use hakobu_s3::ops::Etag;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn listed(key: Vec<u8>) -> ListedObject {
        let (mtime, etag) = (Time::default(), Etag::default());
        ListedObject { key, size: 0, mtime, etag, storage_class: "".into() }
    }

    struct World {
        keys: Vec<Vec<u8>>,
        page: usize,
        /// Minimum and maximum ticks of a request.
        ticks: (u64, u64),
        /// Ticks between two pages that are taken.
        pace: u64,
        /// The server ignores `start-after`.
        deaf: bool,
    }

    struct Seen {
        keys: Vec<Vec<u8>>,
        ticks: u64,
        requests: usize,
        waiting: usize,
    }

    impl World {
        fn new(keys: impl IntoIterator<Item = Vec<u8>>) -> World {
            let keys: BTreeSet<_> = keys.into_iter().collect();
            let keys = keys.into_iter().collect();
            World { keys, page: 10, ticks: (1, 1), pace: 0, deaf: false }
        }

        fn serve(&self, ask: &PageRequest) -> (Vec<ListedObject>, Option<String>) {
            let start = match &ask.continuation {
                Some(token) => token.parse().unwrap(),
                None if self.deaf => 0,
                None => self.keys.partition_point(|key| *key <= ask.start_after),
            };
            let end = (start + self.page).min(self.keys.len());
            let next = (end < self.keys.len()).then(|| end.to_string());
            (self.keys[start..end].iter().cloned().map(listed).collect(), next)
        }

        fn list(&self, parallel: usize, ordered: bool, seed: u64) -> Seen {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut splitter = Splitter::new(0, parallel, ordered, parallel > 1);
            let mut flying: Vec<(u64, PageRequest)> = Vec::new();
            let (mut now, mut taken_at) = (0, 0);
            let mut seen = Seen { keys: Vec::new(), ticks: 0, requests: 0, waiting: 0 };
            while !splitter.is_over() {
                while let Some(ask) = splitter.ask() {
                    seen.requests += 1;
                    assert!(seen.requests < 20 * (self.keys.len() / self.page + 10), "no end");
                    flying.push((now + random.u64(self.ticks.0..=self.ticks.1), ask));
                }
                assert!(flying.len() <= parallel);
                if now >= taken_at
                    && let Some(page) = splitter.take()
                {
                    seen.keys.extend(page.into_iter().map(|object| object.key));
                    taken_at = now + self.pace;
                    continue;
                }
                let next = (0..flying.len()).min_by_key(|at| flying[*at].0);
                match next {
                    Some(next) => {
                        let (at, ask) = flying.swap_remove(next);
                        now = now.max(at);
                        let (page, more) = self.serve(&ask);
                        splitter.answer(ask.range, page, more).unwrap();
                    }
                    None => {
                        assert!(taken_at > now || splitter.is_over(), "nothing goes on");
                        now = taken_at;
                    }
                }
                seen.waiting = seen.waiting.max(splitter.waiting());
            }
            seen.ticks = now;
            seen
        }

        /// Lists with one and with eight concurrent requests: returns the speed-up, and the factor of requests.
        fn gain(&self) -> (f64, f64) {
            let (one, eight) = (self.list(1, true, 1), self.list(8, true, 1));
            assert!(eight.keys == self.keys);
            let ratio = |a: u64, b: u64| a as f64 / b as f64;
            let requests = ratio(eight.requests as u64, one.requests as u64);
            (ratio(one.ticks, eight.ticks), requests)
        }
    }

    /// Keys of several shapes, some of them mixed.
    fn keys() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let counted = (1..2000_u32, "[a-c/]{0,3}").prop_map(|(count, lead)| {
            (0..count).map(|i| format!("{lead}{i:06}").into_bytes()).collect::<Vec<_>>()
        });
        let folders = (1..30_u32, 1..100_u32).prop_map(|(folders, files)| {
            let names = (0..folders).flat_map(move |a| (0..files).map(move |b| (a, b)));
            names.map(|(a, b)| format!("d{a}/file-{b}.txt").into_bytes()).collect()
        });
        let bytes = prop::collection::vec(prop::collection::vec(any::<u8>(), 1..6), 0..800);
        let letters = prop::collection::vec("[a-zA-Z/é]{1,8}", 0..800)
            .prop_map(|keys| keys.into_iter().map(String::into_bytes).collect());
        let one = prop_oneof![counted, folders, bytes, letters];
        prop::collection::vec(one, 1..4).prop_map(|sets| sets.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

        #[test]
        fn each_key_comes_once_and_in_order(
            keys in keys(),
            page in 1..40_usize,
            parallel in 1..12_usize,
            slowest in 1..20_u64,
            pace in 0..8_u64,
            deaf in prop::bool::weighted(0.1),
            seed in any::<u64>(),
        ) {
            let world = World { page, ticks: (1, slowest), pace, deaf, ..World::new(keys) };
            let seen = world.list(parallel, true, seed);
            prop_assert!(seen.keys == world.keys);
            let max = 2 * parallel * RANGE_PAGES as usize + 2 * RANGE_PAGES as usize;
            prop_assert!(seen.waiting <= max, "{} pages waited", seen.waiting);
            let mut seen = world.list(parallel, false, seed);
            prop_assert!(seen.waiting <= max, "{} pages waited", seen.waiting);
            seen.keys.sort();
            prop_assert!(seen.keys == world.keys);
        }
    }

    #[test]
    fn latency_is_shared() {
        let mut random = fastrand::Rng::with_seed(7);
        let worlds: [(&str, World, f64, f64); 7] = [
            (
                "a folder a page",
                World::new((0..10_000).map(|i| format!("d{:04}/f{:06}", i / 10, i).into_bytes())),
                3.4,
                1.4,
            ),
            (
                "counted",
                World::new((0..10_000).map(|i| format!("key-{i:010}").into_bytes())),
                6.5,
                1.2,
            ),
            (
                "hashes",
                World::new((0..10_000).map(|_| format!("{:016x}", random.u64(..)).into_bytes())),
                5.0,
                1.5,
            ),
            (
                "folders",
                World::new((0..10_000).map(|i| {
                    format!("2024/{:02}/{:02}/part-{:04}.gz", i / 800, i / 25 % 32, i % 25)
                        .into_bytes()
                })),
                2.0,
                1.4,
            ),
            (
                "few large folders",
                World::new(
                    (0..10_000).map(|i| format!("{}/x{:05}", i / 2500, i % 2500).into_bytes()),
                ),
                4.0,
                1.6,
            ),
            (
                "words",
                World::new((0..10_000).map(|_| {
                    let word = |random: &mut fastrand::Rng| {
                        (0..random.usize(3..9)).map(|_| random.lowercase()).collect::<String>()
                    };
                    format!("{}-{}", word(&mut random), word(&mut random)).into_bytes()
                })),
                4.0,
                1.8,
            ),
            (
                "numbers without zeroes",
                World::new((0..10_000).map(|i| format!("img{i}.jpg").into_bytes())),
                1.8,
                1.4,
            ),
        ];
        let mut missed = Vec::new();
        let mut rows = Vec::new();
        for (name, world, faster, dearer) in worlds {
            let (gain, cost) = world.gain();
            rows.push(format!("{name}: {gain:.1} times as fast, {cost:.2} times the requests"));
            if gain < faster || cost > dearer {
                missed.push(name);
            }
        }
        assert!(missed.is_empty(), "{missed:?} of {rows:#?}");
    }

    #[test]
    fn a_short_listing_is_few_requests() {
        let keys = |count: u32| (0..count).map(|i| format!("k{i:04}").into_bytes());
        assert_eq!(World::new(keys(0)).list(8, true, 1).requests, 1);
        assert_eq!(World::new(keys(9)).list(8, true, 1).requests, 1);
        let seen = World::new(keys(15)).list(8, true, 1);
        assert!(seen.requests <= 4, "{} requests", seen.requests);
    }

    #[test]
    fn a_page_out_of_order_is_refused() {
        let key = |text: &str| text.as_bytes().to_vec();
        let mut splitter = Splitter::new(0, 1, true, true);
        let ask = splitter.ask().unwrap();
        let page = ["a", "c", "b"].map(|name| listed(key(name))).into();
        assert_eq!(splitter.answer(ask.range, page, None), Err(Unsorted(key("c"), key("b"))));
        let mut splitter = Splitter::new(0, 1, true, true);
        for (name, fine) in [("b", true), ("a", false)] {
            let ask = splitter.ask().unwrap();
            let page = vec![listed(key(name))];
            assert_eq!(splitter.answer(ask.range, page, Some("more".into())).is_ok(), fine);
        }
    }
}
