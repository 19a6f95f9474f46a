//! Transfers in ranges of names: which ones can be cut, and where.
//!
//! Cuts come from samples: pages of a listing from chosen names on. A page says exactly how many keys lie in its part of
//! the key space; between two pages the number is estimated from their densities, and the parts with the most keys are
//! sampled next. Names are placed on a line by the bytes that occur at each place (`Digits`): numbered and hexadecimal
//! names lie evenly on it.

use super::objects::{PlannedSource, SourceKind, Stores};
use super::paths;
use super::{Layout, Spec};
use crate::local::guard::Guard;
use crate::location::Location;
use crate::object::Root;
use crate::object::list::Pattern;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use hakobu_core::error::Fatal;
use hakobu_core::threads::for_each;
use hakobu_core::unit::Kind;
use hakobu_s3::ops::{ListQuery, list_objects};
use hakobu_s3::{Client, Error, S3Session, with_session};
use hakobu_sys::paths::ancestors;
use hakobu_sys::{AsFd, OwnedFd, dir, meta};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Requests of a sample at the same time.
const AT_ONCE: usize = 64;
/// Keys of a page that is a sample: a whole page, which costs one request as a smaller one does.
const SAMPLE_KEYS: u32 = 1000;
/// Keys of a page that are kept.
const KEPT_EVERY: usize = 50;
/// Samples in addition to two for each range.
const SAMPLES_MORE: usize = 32;
/// Rounds of samples.
const ROUNDS_MAX: usize = 48;
/// Directories of a tree that are read.
const DIRS_MAX: usize = 20_000;
/// Levels of a tree that are read in any case, and directories for each range that are looked for below them.
const LEVELS: usize = 2;
const DIRS_PER_RANGE: usize = 4;
/// Directories in which files are examined for their sizes, and how many in each.
const LOOKED_DIRS_MAX: usize = 1000;
const LOOKED_FILES_MAX: u64 = 4;
/// Bytes of a key that are placed.
const PLACES_MAX: usize = 64;
/// The end of the line.
const LINE: u128 = 1 << 120;

/// Where the names of a transfer are cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cuts {
    /// Names at which ranges begin, sorted; the first range begins before all of them.
    pub points: Vec<Vec<u8>>,
    /// Number of names, about; of the side with more of them.
    pub names: u64,
    /// Mean size of a sampled object of the source, in bytes.
    pub mean_bytes: u64,
    /// The first sample of each side had all names.
    pub whole: bool,
}

/// Returns whether ranges of the names of a transfer can be planned separately: together they find what the whole finds.
/// Says nothing about an object or a file as the source, which only the run itself recognises; it refuses a range of one.
///
/// # Errors
/// The reason, as a sentence about the transfer without its subject: "has several sources".
pub fn can_be_cut(spec: &Spec) -> Result<(), &'static str> {
    let Spec { policy, objects, .. } = spec;
    let is_wild = |location: &Location| match location {
        Location::S3(url) => !objects.raw && Pattern::parse(&url.key).is_some(),
        Location::Local(_) | Location::Null => false,
    };
    let is_local = !spec.has_store();
    let is_file = |location: &Location| {
        location.local().is_some_and(|path| match is_local {
            // A symlink is one entry, unless it was typed with a slash.
            true => path.symlink_metadata().is_ok_and(|there| !there.is_dir()),
            false => path.is_file(),
        })
    };
    let reasons = [
        (spec.remote.is_some(), "has an end on another machine"),
        (spec.sources.len() != 1, "has several sources"),
        (spec.files_from.is_some() || spec.chosen.is_some(), "is of names in a list"),
        (spec.sources.locations().any(|source| is_wild(&source)), "has a source with wildcards"),
        (spec.sources.locations().any(|source| is_file(&source)), "is of one file"),
        (is_local && matches!(spec.layout, Layout::Cp { .. }), "is one of cp"),
        (
            is_local && spec.layout == Layout::Rsync { relative: true },
            "keeps paths as typed (--relative)",
        ),
        // Names of one file may be in several ranges.
        (is_local && policy.hard_links, "keeps hard links (--hard-links)"),
        (is_local && policy.prune_empty_dirs, "leaves out empty directories (--prune-empty-dirs)"),
        // What is below a symlink of the target cannot be looked up by its name.
        (is_local && policy.keep_dirlinks, "follows symlinks at the target (--keep-dirlinks)"),
        (objects.options.version.is_some(), "is of one version of an object"),
        // Names at the target have another order, and who comes first gets one.
        (objects.flatten, "gives all entries their base names (--flatten)"),
        // A bound on all of them together.
        (policy.max_delete.is_some(), "counts its deletions (--max-delete)"),
        (
            matches!(spec.layout, Layout::Cp { parents: true, .. }),
            "keeps paths as typed (--parents)",
        ),
    ];
    match reasons.iter().find(|(is_so, _)| *is_so) {
        Some((_, reason)) => Err(reason),
        None => Ok(()),
    }
}

/// Cuts the names of a transfer into about `ranges` ranges with about equal numbers of names.
///
/// # Errors
/// A listing fails.
pub fn cut(planned: &PlannedSource, stores: &Stores, ranges: usize) -> Result<Cuts, Fatal> {
    if !matches!(planned.what, SourceKind::Tree { pattern: None }) {
        return Ok(Cuts { whole: true, ..Cuts::default() });
    }
    let PlannedSource { pair, target_is_new, .. } = planned;
    let source = sample(&pair.source, &stores.source, ranges)?;
    let target = match target_is_new {
        true => Sampled { is_whole: true, ..Sampled::default() },
        false => sample(&pair.target, &stores.target, ranges)?,
    };
    Ok(joined(source, target))
}

/// What samples say about one side.
#[derive(Default)]
struct Sampled {
    points: Vec<Vec<u8>>,
    names: u64,
    mean_bytes: u64,
    is_whole: bool,
}

fn sample(root: &Root, store: &Option<Arc<S3Session>>, ranges: usize) -> Result<Sampled, Fatal> {
    match (root, store) {
        (Root::Store { bucket, prefix }, Some(store)) => {
            let sampled = with_session(store, async |client| {
                let mut line = Line::new(ranges);
                loop {
                    let wanted = line.wanted();
                    if wanted.is_empty() {
                        break;
                    }
                    line.add(pages(&client, bucket, prefix, wanted).await?);
                }
                Ok(line.end())
            });
            sampled
                .map_err(|error: Error| Fatal::new(11, format!("cannot list the names: {error}")))
        }
        (Root::Local { dir, .. }, _) => Ok(of_tree(dir, ranges)),
        _ => Ok(Sampled { is_whole: true, ..Sampled::default() }),
    }
}

/// Lists a page from each of these names on.
async fn pages(
    client: &Client,
    bucket: &str,
    prefix: &[u8],
    wanted: Vec<Vec<u8>>,
) -> Result<Vec<Page>, Error> {
    let page = async |from: Vec<u8>| {
        let start_after = match from.is_empty() {
            true => Vec::new(),
            false => [prefix, &*from].concat(),
        };
        let query = ListQuery {
            prefix: prefix.to_vec(),
            start_after,
            max_keys: Some(SAMPLE_KEYS),
            ..ListQuery::default()
        };
        let listed = list_objects(client, bucket, &query).await?;
        let names = listed.objects.iter().filter_map(|object| object.key.strip_prefix(prefix));
        let names: Vec<&[u8]> = names.collect();
        let last = names.last().map(|last| last.to_vec());
        Ok(Page {
            from,
            keys: names.len() as u64,
            bytes: listed.objects.iter().map(|object| object.size).sum(),
            kept: names.iter().step_by(KEPT_EVERY).map(|name| name.to_vec()).collect(),
            last: last.unwrap_or_default(),
            is_end: listed.next.is_none(),
        })
    };
    let pages = wanted.into_iter().map(page);
    let pages = stream::iter(pages).buffer_unordered(AT_ONCE);
    pages.try_collect().await
}

// The pure part: what to sample next, and where to cut.

/// A sample: all keys after `from`, up to the last one.
#[derive(Clone, Debug, Default)]
struct Page {
    from: Vec<u8>,
    keys: u64,
    bytes: u64,
    /// Some of its keys, the first one among them.
    kept: Vec<Vec<u8>>,
    last: Vec<u8>,
    /// No key follows.
    is_end: bool,
}

/// The bytes that occur at each place of names, after the part that all of them share.
struct Digits {
    shared: Vec<u8>,
    places: Vec<Vec<u8>>,
}

impl Digits {
    fn of<'a>(names: impl Iterator<Item = &'a [u8]> + Clone) -> Digits {
        let mut shared: Option<&[u8]> = None;
        for name in names.clone() {
            let known = shared.unwrap_or(name);
            let common = known.iter().zip(name).take_while(|(a, b)| a == b).count();
            shared = Some(known.get(..common).unwrap_or_default());
        }
        let shared = shared.unwrap_or_default().to_vec();
        let mut places: Vec<BTreeSet<u8>> = Vec::new();
        for name in names {
            let rest = name.get(shared.len()..).unwrap_or_default();
            for (place, byte) in rest.iter().take(PLACES_MAX).enumerate() {
                if places.len() <= place {
                    places.push(BTreeSet::new());
                }
                if let Some(set) = places.get_mut(place) {
                    set.insert(*byte);
                }
            }
        }
        // Digits that were not seen yet lie between those that were.
        let count =
            |set: &BTreeSet<u8>, class: &[u8]| class.iter().filter(|b| set.contains(b)).count();
        let (digits, lower, upper) = (b"0123456789", b"abcdef", b"ABCDEF");
        let mixed = |letters: &[u8]| {
            places.iter().any(|set| count(set, digits) > 1 && count(set, letters) > 0)
        };
        let (lower_hex, upper_hex) = (mixed(lower), mixed(upper));
        let complete = |mut set: BTreeSet<u8>| -> Vec<u8> {
            for (is_hex, letters) in [(lower_hex, lower), (upper_hex, upper)] {
                if is_hex && count(&set, digits) + count(&set, letters) > 1 {
                    set.extend(digits.iter().chain(letters));
                }
            }
            if count(&set, digits) > 1 {
                set.extend(digits);
            }
            set.into_iter().collect()
        };
        Digits { shared, places: places.into_iter().map(complete).collect() }
    }

    /// The place of a name on the line. The end of a name is a digit of its own, the first one.
    fn place(&self, name: &[u8]) -> u128 {
        let common = self.shared.iter().zip(name).take_while(|(a, b)| a == b).count();
        if common < self.shared.len() {
            let (a, b) = (name.get(common), self.shared.get(common));
            return if a < b { 0 } else { LINE };
        }
        let rest = name.get(common..).unwrap_or_default();
        let (mut at, mut width) = (0, LINE);
        for (set, byte) in self.places.iter().zip(rest) {
            width /= set.len() as u128 + 1;
            if width == 0 {
                break;
            }
            let digit = set.partition_point(|known| known < byte);
            let is_known = set.get(digit) == Some(byte);
            // A byte that was not seen lies before the next one that was.
            at += width * (digit as u128 + 1);
            if !is_known {
                break;
            }
        }
        at
    }

    /// The name at a place: one that is not after any name whose place is greater.
    fn name(&self, place: u128) -> Vec<u8> {
        let mut name = self.shared.clone();
        let (mut at, mut width) = (place.min(LINE - 1), LINE);
        for set in &self.places {
            width /= set.len() as u128 + 1;
            if width == 0 {
                break;
            }
            let digit = (at / width).min(set.len() as u128);
            at -= width * digit;
            let byte = digit.checked_sub(1).and_then(|digit| set.get(digit as usize));
            let Some(byte) = byte else { break };
            name.push(*byte);
        }
        // A request's text is UTF-8.
        if let Err(error) = std::str::from_utf8(&name) {
            name.truncate(error.valid_up_to());
        }
        name
    }
}

/// Names after `name` that leave out ever more of the key space: each shares less with it. One of them is after all names.
fn skips(name: &[u8], most: usize) -> Vec<Vec<u8>> {
    let text = std::str::from_utf8(name).unwrap_or_default();
    let mut skips = BTreeSet::new();
    for (at, byte) in text.bytes().enumerate().rev() {
        if byte.is_ascii() && byte < 0x7f && text.is_char_boundary(at) {
            let mut skip = name.get(..at).unwrap_or_default().to_vec();
            skip.push(byte + 1);
            skips.insert(skip);
        }
    }
    // Nothing of UTF-8 is after it.
    skips.insert("\u{10ffff}".as_bytes().to_vec());
    let all = skips.len();
    // The shortest ones leave out most: they are the last ones.
    skips.into_iter().skip(all.saturating_sub(most.max(1))).collect()
}

/// A part of the line without a sample.
#[derive(Clone, Copy, Debug)]
struct Gap {
    begin: u128,
    end: u128,
    keys: f64,
}

/// Samples of one key space.
struct Line {
    ranges: usize,
    pages: Vec<Page>,
    samples: usize,
    rounds: usize,
}

impl Line {
    fn new(ranges: usize) -> Line {
        Line { ranges: ranges.max(1), pages: Vec::new(), samples: 0, rounds: 0 }
    }

    fn digits(&self) -> Digits {
        let names = self.pages.iter().flat_map(|page| page.kept.iter().chain([&page.last]));
        Digits::of(names.map(Vec::as_slice).filter(|name| !name.is_empty()))
    }

    /// Parts of the line that pages cover, each with its page; sorted, and apart.
    fn covered(&self, digits: &Digits) -> Vec<(u128, u128, f64)> {
        let mut covered: Vec<(u128, u128, f64)> = Vec::new();
        for page in &self.pages {
            let begin = if page.from.is_empty() { 0 } else { digits.place(&page.from) };
            let end = if page.is_end { LINE } else { digits.place(&page.last).max(begin) };
            let mut keys = page.keys as f64;
            let mut begin = begin;
            if let Some((_, before, _)) = covered.last() {
                let overlap = before.saturating_sub(begin);
                if overlap > 0 {
                    let length = (end - begin).max(1);
                    keys *= 1.0 - (overlap.min(length) as f64 / length as f64);
                    begin = (*before).min(end);
                }
            }
            if covered.last().is_none_or(|(_, before, _)| end >= *before) {
                covered.push((begin, end, keys));
            }
        }
        covered
    }

    /// Parts of the line between samples, with the keys that they are estimated to have.
    fn gaps(&self, covered: &[(u128, u128, f64)]) -> Vec<Gap> {
        let density =
            |(begin, end, keys): &(u128, u128, f64)| match keys / (end - begin).max(1) as f64 {
                density if density.is_finite() => density,
                _ => 0.0,
            };
        let next = covered.iter().skip(1).map(Some).chain([None]);
        let mut gaps = Vec::new();
        for (one, next) in covered.iter().zip(next) {
            let (begin, end) = (one.1, next.map_or(LINE, |next| next.0));
            if end > begin {
                // Nothing after a sample says nothing of what is before it.
                let (a, b) = (density(one), next.map_or(0.0, density));
                let mean = if a > 0.0 && b > 0.0 { (a + b) / 2.0 } else { a.max(b) };
                gaps.push(Gap { begin, end, keys: mean * (end - begin) as f64 });
            }
        }
        gaps
    }

    /// The names from which on samples are wanted next; none at the end.
    fn wanted(&mut self) -> Vec<Vec<u8>> {
        if self.pages.is_empty() {
            return vec![Vec::new()];
        }
        let left = (2 * self.ranges + SAMPLES_MORE).saturating_sub(self.samples);
        if self.rounds >= ROUNDS_MAX || left == 0 {
            return Vec::new();
        }
        self.rounds += 1;
        if let Some(last) = self.pages.last().filter(|page| !page.is_end) {
            return skips(&last.last, left);
        }
        let digits = self.digits();
        let covered = self.covered(&digits);
        let mut gaps = self.gaps(&covered);
        let known: f64 = covered.iter().map(|(_, _, keys)| keys).sum();
        let all = known + gaps.iter().map(|gap| gap.keys).sum::<f64>();
        let share = (all / self.ranges as f64).max(f64::from(SAMPLE_KEYS));
        gaps.retain(|gap| gap.keys > share / 2.0);
        gaps.sort_by(|a, b| b.keys.total_cmp(&a.keys));
        let mut wanted = BTreeSet::new();
        // Estimates of the first rounds are rough: few samples then.
        let most = left.min(4 << self.rounds.min(16)).min(AT_ONCE * 4);
        for gap in gaps {
            let parts = ((gap.keys / share).ceil() as u128).clamp(2, (most as u128).max(2));
            for part in 1..parts {
                let name = digits.name(gap.begin + (gap.end - gap.begin) / parts * part);
                let is_new = !self.pages.iter().any(|page| page.from == name);
                if is_new && digits.place(&name) > gap.begin && !name.is_empty() {
                    wanted.insert(name);
                }
            }
            if wanted.len() >= most {
                break;
            }
        }
        wanted.into_iter().take(left).collect()
    }

    fn add(&mut self, pages: Vec<Page>) {
        self.samples += pages.len();
        self.pages.extend(pages);
        self.pages.sort_by(|a, b| a.from.cmp(&b.from));
    }

    /// Cuts the line into parts of equal numbers of keys.
    fn end(self) -> Sampled {
        let sampled: u64 = self.pages.iter().map(|page| page.keys).sum();
        let bytes: u64 = self.pages.iter().map(|page| page.bytes).sum();
        let mean_bytes = bytes / sampled.max(1);
        if let [page] = &*self.pages
            && page.is_end
        {
            return Sampled { names: page.keys, mean_bytes, is_whole: true, points: Vec::new() };
        }
        let digits = self.digits();
        let covered = self.covered(&digits);
        let gaps = self.gaps(&covered).into_iter().map(|gap| (gap.begin, gap.end, gap.keys));
        let mut parts: Vec<(u128, u128, f64)> = covered.into_iter().chain(gaps).collect();
        parts.sort_by_key(|(begin, end, _)| (*begin, *end));
        let all: f64 = parts.iter().map(|(_, _, keys)| keys).sum();
        let share = all / self.ranges as f64;
        let mut points: Vec<Vec<u8>> = Vec::new();
        let (mut seen, mut next) = (0.0, share);
        for (begin, end, keys) in parts {
            while next < seen + keys && points.len() + 1 < self.ranges {
                let part = (next - seen) / keys;
                let place = begin + ((end - begin) as f64 * part) as u128;
                points.push(digits.name(place));
                next += share;
            }
            seen += keys;
        }
        points.retain(|point| !point.is_empty());
        points.dedup();
        let is_sorted = points.is_sorted();
        if !is_sorted {
            points.sort();
            points.dedup();
        }
        Sampled { points, names: (all as u64).max(sampled), mean_bytes, is_whole: false }
    }
}

// Trees.

/// What is read of a directory.
#[derive(Default)]
struct Entries {
    /// Number of its entries.
    count: u64,
    /// Directories among them.
    folders: Vec<Vec<u8>>,
    /// Files that were looked at, and their bytes.
    files: u64,
    bytes: u64,
}

/// Cuts a tree at directories of its top two levels, and of deeper ones where those are few.
fn of_tree(root: &OwnedFd, ranges: usize) -> Sampled {
    let mut found: Vec<(Vec<u8>, u64)> = Vec::new();
    let mut unread: Vec<Vec<u8>> = vec![Vec::new()];
    let (mut names, mut files, mut bytes) = (0, 0, 0);
    for level in 0.. {
        let is_enough = level > LEVELS && found.len() >= DIRS_PER_RANGE * ranges;
        let rest = unread.split_off(unread.len().min(DIRS_MAX.saturating_sub(found.len())));
        if unread.is_empty() || is_enough {
            unread.extend(rest);
            break;
        }
        let read: Mutex<Vec<(usize, Entries)>> = Mutex::default();
        for_each(&unread, AT_ONCE, |number, path| {
            // What cannot be read has no entries here; the transfer reports it.
            let entries = entries(root, path, found.len() + number < LOOKED_DIRS_MAX);
            read.lock().push((number, entries.unwrap_or_default()));
        });
        let mut next = Vec::new();
        for (number, entries) in read.into_inner() {
            let path = unread.get(number).cloned().unwrap_or_default();
            next.extend(entries.folders.iter().map(|name| [&*path, name, b"/"].concat()));
            names += entries.count;
            files += entries.files;
            bytes += entries.bytes;
            found.push((path, entries.count));
        }
        unread = rest;
        unread.extend(next);
    }
    let is_whole = unread.is_empty() && names < u64::from(SAMPLE_KEYS);
    // A directory that was not read counts as one of those that were.
    let mean = names / (found.len() as u64).max(1) + 1;
    names += unread.len() as u64 * mean;
    found.extend(unread.into_iter().map(|path| (path, mean)));
    found.sort();
    let all: u64 = found.iter().map(|(_, entries)| entries + 1).sum();
    let share = all as f64 / ranges.max(1) as f64;
    let (mut seen, mut next) = (0.0, share);
    let mut points = Vec::new();
    for (path, entries) in found {
        if seen >= next && !path.is_empty() {
            points.push(path);
            while next <= seen {
                next += share;
            }
        }
        seen += (entries + 1) as f64;
    }
    Sampled { points, names, mean_bytes: bytes / files.max(1), is_whole }
}

/// Reads a directory below the root. `looks`: some of its files are examined.
fn entries(root: &OwnedFd, path: &[u8], looks: bool) -> std::io::Result<Entries> {
    let folder = match path.strip_suffix(b"/") {
        None => dir::open_below(root.as_fd(), c".")?,
        Some(path) => dir::open_below(root.as_fd(), &CString::new(path)?)?,
    };
    let mut found = Entries::default();
    dir::Reader::default().for_each(folder.as_fd(), |name, kind, _| {
        found.count += 1;
        let looked = match kind {
            Kind::Unknown => meta::of(folder.as_fd(), name, false).ok(),
            Kind::File if looks && found.files < LOOKED_FILES_MAX => {
                meta::of(folder.as_fd(), name, false).ok()
            }
            _ => None,
        };
        if looked.map_or(kind, |there| there.kind) == Kind::Dir {
            found.folders.push(name.to_bytes().to_vec());
        } else if let Some(there) = looked.filter(|there| there.kind == Kind::File) {
            found.files += 1;
            found.bytes += there.size;
        }
    })?;
    Ok(found)
}

/// As [`cut`], between paths. Where a range could not tell what is extraneous, nothing is cut: ends inside each other, and
/// a target that takes different names for one.
pub fn cut_paths(spec: &Spec, ranges: usize) -> Cuts {
    let whole = Cuts { whole: true, ..Cuts::default() };
    let arguments = paths::arguments(spec.sources.paths(), spec.layout);
    let (Ok(arguments), Some(target)) = (arguments, spec.target.local()) else { return whole };
    let [argument] = &*arguments else { return whole };
    let mut place = target.to_owned();
    place.extend(argument.names.iter().map(|name| OsStr::from_bytes(name)));
    let Ok(from) = paths::open_folder(&argument.path()) else { return whole };
    let there = paths::open_folder(&place).ok();
    // A new target is as the directory that it is made in.
    let above = || place.ancestors().find_map(|above| paths::open_folder(above).ok());
    let Some(to) =
        there.as_ref().map_or_else(above, |there| dir::open(there.as_fd(), c".", false).ok())
    else {
        return whole;
    };
    let meets = || -> std::io::Result<bool> {
        let (source, target) = (meta::of_fd(&from)?, meta::of_fd(&to)?);
        let is_caseless = Guard::default().ignores_case(to.as_fd(), target.dev);
        let is_above = there.is_some() && ancestors(from.as_fd())?.contains(&target.identity());
        Ok(is_caseless || is_above || ancestors(to.as_fd())?.contains(&source.identity()))
    };
    if meets().unwrap_or(true) {
        return whole;
    }
    let source = of_tree(&from, ranges);
    let target = there.map(|there| of_tree(&there, ranges));
    let target = target.unwrap_or(Sampled { is_whole: true, ..Sampled::default() });
    joined(source, target)
}

/// Cuts of both sides: those of the one with more names.
fn joined(source: Sampled, target: Sampled) -> Cuts {
    let whole = source.is_whole && target.is_whole;
    let mean_bytes = source.mean_bytes;
    let larger = if target.names > source.names { target } else { source };
    Cuts { points: larger.points, names: larger.names, mean_bytes, whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples a key space in memory as a server's listing does.
    fn sampled(names: &[Vec<u8>], ranges: usize) -> (Sampled, usize) {
        let mut line = Line::new(ranges);
        loop {
            let wanted = line.wanted();
            if wanted.is_empty() {
                break;
            }
            let page = |from: Vec<u8>| {
                let begin = match from.is_empty() {
                    true => 0,
                    false => names.partition_point(|name| *name <= from),
                };
                let end = (begin + SAMPLE_KEYS as usize).min(names.len());
                let listed = &names[begin..end];
                Page {
                    from,
                    keys: listed.len() as u64,
                    bytes: 10 * listed.len() as u64,
                    kept: listed.iter().step_by(KEPT_EVERY).cloned().collect(),
                    last: listed.last().cloned().unwrap_or_default(),
                    is_end: end == names.len(),
                }
            };
            line.add(wanted.into_iter().map(page).collect());
        }
        let samples = line.samples;
        (line.end(), samples)
    }

    /// Number of names of the largest range, in means.
    fn imbalance(names: &[Vec<u8>], points: &[Vec<u8>]) -> f64 {
        let mut places: Vec<usize> =
            points.iter().map(|point| names.partition_point(|name| name < point)).collect();
        places.insert(0, 0);
        places.push(names.len());
        let largest = places.windows(2).map(|two| two[1] - two[0]).max().unwrap();
        largest as f64 * (points.len() + 1) as f64 / names.len() as f64
    }

    fn text(name: String) -> Vec<u8> {
        name.into_bytes()
    }

    #[test]
    fn ranges_of_usual_names_are_even() {
        const NAMES: usize = 400_000;
        let mut random = fastrand::Rng::with_seed(5);
        let mut spaces: Vec<(&str, Vec<Vec<u8>>)> = vec![
            ("numbers", (0..NAMES).map(|n| text(format!("f{n:09}"))).collect()),
            ("folders", (0..NAMES).map(|n| text(format!("d{:03}/f{n:06}", n / 1000))).collect()),
            ("one deep folder", (0..NAMES).map(|n| text(format!("a/b/c/d/e/f/{n}"))).collect()),
            ("hexadecimal", (0..NAMES).map(|_| text(format!("{:016x}", random.u64(..)))).collect()),
            (
                "dates",
                (0..NAMES)
                    .map(|n| {
                        let (day, hour) = (n / 24 % 28 + 1, n % 24);
                        let (year, month) = (2015 + n % 9, n / 700 % 12 + 1);
                        text(format!("logs/{year}/{month:02}/{day:02}/{hour:02}-{n}.gz"))
                    })
                    .collect(),
            ),
            (
                "most in a hundredth of the folders",
                (0..NAMES)
                    .map(|n| match n % 10 {
                        0 => text(format!("user{:04}/f{n}", n / 10 % 1000)),
                        _ => text(format!("user{:04}/g{n}", 500 + n % 7)),
                    })
                    .collect(),
            ),
            (
                "few names and a deep folder",
                (0..NAMES)
                    .map(|n| match n {
                        0..100 => text(format!("top{n}")),
                        _ => text(format!("var/lib/data/objects/part-{:05}/{n:07}", n / 3000)),
                    })
                    .collect(),
            ),
        ];
        for (what, names) in &mut spaces {
            names.sort();
            names.dedup();
            let (sampled, samples) = sampled(names, 64);
            let worst = imbalance(names, &sampled.points);
            let estimate = sampled.names as f64 / names.len() as f64;
            assert!(sampled.points.is_sorted() && !sampled.is_whole);
            // A dense folder that no sample has met stays in one range: workers announce its shards while they list it.
            let (worst_max, least) = match *what {
                "dates" => (12.0, 0.02),
                "most in a hundredth of the folders" => (32.0, 0.1),
                _ => (4.0, 0.4),
            };
            assert!(samples <= 2 * 64 + SAMPLES_MORE, "{what}: {samples} samples");
            assert!(sampled.points.len() >= 32, "{what}: {} cuts", sampled.points.len());
            assert!(worst <= worst_max, "{what}: {worst:.1} means, {samples} samples");
            assert!((least..2.5).contains(&estimate), "{what}: {estimate:.2} of the names");
        }
    }

    #[test]
    fn few_names_are_not_cut() {
        for count in [0, 1, 7, 1000] {
            let names: Vec<Vec<u8>> = (0..count).map(|n| text(format!("f{n:03}"))).collect();
            let (sampled, samples) = sampled(&names, 64);
            assert_eq!((sampled.is_whole, sampled.names, samples), (true, count, 1));
        }
    }

    proptest::proptest! {
        /// Whatever the names are, cuts are sorted, and sampling ends.
        #[test]
        fn any_names_can_be_sampled(
            names in proptest::collection::btree_set(
                proptest::collection::vec(proptest::num::u8::ANY, 1..6), 0..3000),
            ranges in 1..40_usize,
        ) {
            let names: Vec<Vec<u8>> = names.into_iter().collect();
            let (sampled, samples) = sampled(&names, ranges);
            proptest::prop_assert!(sampled.points.is_sorted_by(|a, b| a < b));
            proptest::prop_assert!(sampled.points.len() < ranges);
            proptest::prop_assert!(samples <= 2 * ranges + SAMPLES_MORE);
        }

        /// Names keep their order on the line.
        #[test]
        fn places_keep_the_order(
            mut names in proptest::collection::vec(proptest::collection::vec(0..5_u8, 0..12), 2..40),
        ) {
            names.sort();
            let digits = Digits::of(names.iter().map(Vec::as_slice));
            let places: Vec<u128> = names.iter().map(|name| digits.place(name)).collect();
            proptest::prop_assert!(places.is_sorted());
            for (name, place) in names.iter().zip(places) {
                proptest::prop_assert!(digits.name(place) <= *name);
            }
        }
    }
}
