//! Division of a listing among several concurrent requests; pure. The keys are split into ranges in order, each
//! listed from its beginning by one request at a time. If fewer requests are in flight than allowed, the nearest
//! range with many keys ahead of it is split where [`Sample`] estimates that enough keys precede the split. A bad
//! guess costs a request, never a key.
//!
//! Entries come out in order: pages of the first range at once, those of later ranges wait for their turn, within a
//! bound. So ranges are short and near the front instead of equal shares of everything.

use super::guess::Sample;
use hakobu_s3::ops::ListedObject;
use std::collections::VecDeque;

/// Pages per range after a split; together with the bound on waiting pages as many again may be ahead.
const RANGE_PAGES: u64 = 4;
/// The same if the order does not matter and nothing waits.
const RANGE_PAGES_UNORDERED: u64 = 32;
/// Keys of a range's last page that are left for guesses that are slightly short.
const SLACK: u64 = 8;

/// A request to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
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
}

/// Keys after `cursor` up to `end`.
struct Range {
    id: u64,
    /// The last key that was listed, or the start.
    cursor: Vec<u8>,
    continuation: Option<String>,
    /// The last key that may belong here.
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
        }
    }

    /// Returns how many pages besides those of the front may wait or be requested.
    pub(super) fn waiting_max(&self) -> usize {
        2 * self.parallel * RANGE_PAGES as usize
    }

    /// Returns the next request, if one is to be made now.
    pub(super) fn ask(&mut self) -> Option<Ask> {
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
        Some(Ask { range: range.id, start_after, continuation: range.continuation.clone() })
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
        let place = sample.after(&range.cursor, keys)?;
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
        self.page_keys = self.page_keys.max(page.len() as u64);
        let full = page.len() as u64 * 2 > self.page_keys;
        let keys = page.iter().map(|entry| &*entry.key);
        // No key exists between the cursor and the first key: that gap counts.
        let sample = Sample::of(&range.cursor, keys, self.fixed).filter(|_| full);
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
            let inside = page.partition_point(|entry| entry.key <= *end);
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
                    (Some(beyond), Some(end)) => end < beyond,
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
mod tests;
