//! Listings of a folder. Names that later pages return are kept, so that a page costs its own entries and not those of the
//! folder: a listing sees what was there when it began. They are kept for seconds; without them the next page reads the
//! folder.

use super::object::{Sidecar, is_absent};
use super::paths::LastDirectory;
use super::store::FolderStore;
use crate::protocol;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hakobu_core::unit::Kind;
use parking_lot::Mutex;
use s3s::dto::{
    CommonPrefix, ETag, EncodingType, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input,
    ListObjectsV2Output, Object, ObjectStorageClass, Timestamp,
};
use s3s::{S3Result, s3_error};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// Most entries per page.
const PAGE_MAX: i32 = 1000;

/// A requested page.
struct ListingQuery<'a> {
    bucket: &'a str,
    prefix: &'a str,
    delimiter: &'a str,
    after: &'a str,
    /// Number of the rest that the page continues, see [`rests`].
    rest: Option<u64>,
    entries_max: usize,
    encodes: bool,
}

/// Reads the fields that both versions of the operation have.
macro_rules! query_of {
    ($input:expr, $after:expr, $rest:expr) => {
        ListingQuery {
            bucket: &$input.bucket,
            prefix: $input.prefix.as_deref().unwrap_or(""),
            delimiter: $input.delimiter.as_deref().unwrap_or(""),
            after: $after.unwrap_or(""),
            rest: $rest,
            entries_max: count($input.max_keys)?,
            encodes: is_url($input.encoding_type.as_ref()),
        }
    };
}

/// A page, with the name to continue after if it is truncated.
struct ListingPage {
    objects: Vec<Object>,
    prefixes: Vec<CommonPrefix>,
    next: Option<String>,
    /// Begin of the listing, and the names that follow the page.
    rest: (Instant, ListedKeys),
}

/// `GET ?list-type=2`.
pub fn objects_v2(
    folder: &FolderStore,
    input: ListObjectsV2Input,
) -> S3Result<ListObjectsV2Output> {
    let token = match input.continuation_token.as_deref().map(parse_token) {
        Some(None) => return Err(s3_error!(InvalidArgument, "the continuation token is wrong")),
        token => token.flatten(),
    };
    let (rest, after) = token.unzip();
    let query = query_of!(input, after.as_deref().or(input.start_after.as_deref()), rest);
    let (page, entries_max, encodes) = (page(folder, &query)?, query.entries_max, query.encodes);
    let next = page.next.map(|next| {
        let id = folder.rests.keep(query.scope(), page.rest.0, page.rest.1);
        URL_SAFE_NO_PAD.encode(format!("{id} {next}"))
    });
    let shown = |text: Option<String>| text.map(|text| encoded(text, encodes));
    Ok(ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: shown(Some(input.prefix.unwrap_or_default())),
        max_keys: Some(entries_max as i32),
        key_count: Some((page.objects.len() + page.prefixes.len()) as i32),
        continuation_token: input.continuation_token,
        is_truncated: Some(next.is_some()),
        next_continuation_token: next,
        contents: Some(page.objects),
        common_prefixes: Some(page.prefixes),
        delimiter: shown(input.delimiter.filter(|text| !text.is_empty())),
        encoding_type: input.encoding_type,
        start_after: shown(input.start_after),
        ..Default::default()
    })
}

/// `GET` of a bucket, version 1.
pub fn objects(folder: &FolderStore, input: ListObjectsInput) -> S3Result<ListObjectsOutput> {
    let query = query_of!(input, input.marker.as_deref(), None);
    let (page, entries_max, encodes) = (page(folder, &query)?, query.entries_max, query.encodes);
    let shown = |text: Option<String>| text.map(|text| encoded(text, encodes));
    Ok(ListObjectsOutput {
        name: Some(input.bucket),
        prefix: shown(Some(input.prefix.unwrap_or_default())),
        marker: shown(Some(input.marker.unwrap_or_default())),
        max_keys: Some(entries_max as i32),
        is_truncated: Some(page.next.is_some()),
        next_marker: shown(page.next),
        contents: Some(page.objects),
        common_prefixes: Some(page.prefixes),
        delimiter: shown(input.delimiter.filter(|text| !text.is_empty())),
        encoding_type: input.encoding_type,
        ..Default::default()
    })
}

/// Number of the rest and name to continue after in a token.
fn parse_token(token: &str) -> Option<(u64, String)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let (id, after) = text.split_once(' ')?;
    Some((id.parse().ok()?, after.to_owned()))
}

/// Number of entries allowed on a page.
fn count(requested: Option<i32>) -> S3Result<usize> {
    let requested = requested.unwrap_or(PAGE_MAX);
    usize::try_from(requested.min(PAGE_MAX))
        .map_err(|_| s3_error!(InvalidArgument, "max-keys must not be negative"))
}

pub fn is_url(encoding: Option<&EncodingType>) -> bool {
    encoding.is_some_and(|encoding| encoding.as_str() == EncodingType::URL)
}

pub fn encoded(text: String, encodes: bool) -> String {
    if encodes { protocol::encoded(text.as_bytes()) } else { text }
}

impl ListingQuery<'_> {
    fn scope(&self) -> ListingScope {
        (self.bucket.to_owned(), self.prefix.to_owned(), self.delimiter.to_owned())
    }

    /// Length of the common prefix that a key is grouped under.
    fn common_prefix_len(&self, key: &str) -> Option<usize> {
        let rest = key.strip_prefix(self.prefix).filter(|_| !self.delimiter.is_empty())?;
        Some(self.prefix.len() + rest.find(self.delimiter)? + self.delimiter.len())
    }
}

/// True if there is a file or a link in a bucket.
///
/// # Errors
/// Those of reading its folders.
pub fn has_files(folder: &FolderStore, bucket: &str) -> io::Result<bool> {
    let query = ListingQuery {
        bucket,
        prefix: "",
        delimiter: "",
        after: "",
        rest: None,
        entries_max: 1,
        encodes: false,
    };
    let mut found = Vec::new();
    walk(folder, &query, "", &mut found)?;
    Ok(found.iter().any(|(key, path)| {
        let path = path.as_ref().unwrap_or(key);
        folder.root.look(&format!("{bucket}/{path}"), &mut LastDirectory::default()).is_ok()
    }))
}

fn page(folder: &FolderStore, query: &ListingQuery<'_>) -> S3Result<ListingPage> {
    folder.bucket(query.bucket)?;
    // A start that is a common prefix skips everything below it.
    let passed = query.common_prefix_len(query.after) == Some(query.after.len());
    let kept = query.rest.and_then(|id| folder.rests.take(id, &query.scope(), query.after));
    let (began, mut found) = match kept {
        Some(kept) => kept,
        None => (Instant::now(), read(folder, query).map_err(s3s::S3Error::internal_error)?),
    };
    let (mut objects, mut prefixes, mut next) = (Vec::new(), Vec::new(), None);
    let mut last = if passed { query.after.to_owned() } else { String::new() };
    let mut place = LastDirectory::default();
    while let Some((key, path)) = found.pop_front() {
        let folded = query.common_prefix_len(&key).map(|length| &key[..length]);
        if folded.is_some_and(|prefix| prefix == last) {
            continue;
        }
        if objects.len() + prefixes.len() == query.entries_max {
            next = (query.entries_max > 0).then_some(last);
            found.push_front((key, path));
            break;
        }
        match folded {
            Some(prefix) => {
                last = prefix.to_owned();
                let prefix = Some(encoded(last.clone(), query.encodes));
                prefixes.push(CommonPrefix { prefix });
            }
            None => {
                last = key;
                let path = path.as_ref().unwrap_or(&last);
                let Some(object) = object(folder, query, &last, path, &mut place) else { continue };
                objects.push(object);
            }
        }
    }
    Ok(ListingPage { objects, prefixes, next, rest: (began, found) })
}

/// Names that fit a request, in order.
fn read(folder: &FolderStore, query: &ListingQuery<'_>) -> io::Result<ListedKeys> {
    let mut found = Vec::new();
    walk(folder, query, "", &mut found)?;
    found.sort_unstable();
    // readdir(3) may return a name twice while other requests remove entries (seen on tmpfs).
    found.dedup();
    Ok(found.into())
}

/// Entry of an object; `None` if it has been deleted.
fn object(
    folder: &FolderStore,
    query: &ListingQuery<'_>,
    key: &str,
    path: &str,
    place: &mut LastDirectory,
) -> Option<Object> {
    let _lock = folder.locks.read(query.bucket, key);
    // A link that leads out of the folder is not an object.
    let (size, modified) = folder.root.look(&format!("{}/{path}", query.bucket), place).ok()?;
    let etag = Sidecar::of(&folder.root, query.bucket, path).etag();
    Some(Object {
        key: Some(encoded(key.to_owned(), query.encodes)),
        size: i64::try_from(size).ok(),
        last_modified: Some(Timestamp::from(modified)),
        e_tag: etag.map(ETag::Strong),
        storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
        ..Default::default()
    })
}

/// Collects keys and their paths below a folder of a bucket (`below` ends in a slash or is empty), skipping
/// folders without matching keys.
fn walk(
    folder: &FolderStore,
    query: &ListingQuery<'_>,
    below: &str,
    found: &mut Vec<(String, Option<String>)>,
) -> io::Result<()> {
    let mut entries = Vec::new();
    let path = format!("{}/{below}", query.bucket);
    let read = folder.root.each(path.trim_end_matches('/'), |name, kind| {
        entries.push((name.to_owned(), kind));
    });
    match read {
        // Deleted meanwhile, or replaced by a link to elsewhere.
        Err(error) if is_absent(&error) && !below.is_empty() => return Ok(()),
        read => read?,
    }
    for (name, kind) in entries {
        let path = format!("{below}{name}");
        let kind = match kind {
            Kind::Unknown if folder.root.is_dir(&format!("{}/{path}", query.bucket)) => Kind::Dir,
            Kind::Unknown => Kind::File,
            kind => kind,
        };
        if kind == Kind::Dir {
            let inside = format!("{path}/");
            let fits = inside.starts_with(query.prefix) || query.prefix.starts_with(&inside);
            let is_over = inside.as_str() < query.after && !query.after.starts_with(&inside);
            if fits && !is_over {
                walk(folder, query, &inside, found)?;
            }
        } else if matches!(kind, Kind::File | Kind::Symlink)
            && let Some(key) = folder.names.key_of(query.bucket, &path)
            && key.starts_with(query.prefix)
            && key.as_str() > query.after
        {
            let other = (key != path).then_some(path);
            found.push((key, other));
        }
    }
    Ok(())
}

/// Age of a listing at which its rest is forgotten.
const AGE_MAX: Duration = Duration::from_secs(10);
/// Names in all rests.
const NAMES_MAX: usize = 1 << 20;

/// Keys in order, with the paths of those that are not their own.
pub type ListedKeys = VecDeque<(String, Option<String>)>;

/// The request that a rest belongs to: bucket, prefix and delimiter.
pub type ListingScope = (String, String, String);

#[derive(Debug)]
struct PendingListing {
    id: u64,
    began: Instant,
    scope: ListingScope,
    found: ListedKeys,
}

/// Rests, the oldest first.
#[derive(Debug, Default)]
pub struct PendingListings {
    kept: Mutex<VecDeque<PendingListing>>,
}

impl PendingListings {
    /// Keeps the rest of a listing, and returns its number for [`PendingListings::take`].
    pub fn keep(&self, scope: ListingScope, began: Instant, found: ListedKeys) -> u64 {
        let id = fastrand::u64(..);
        let mut kept = self.kept.lock();
        kept.push_back(PendingListing { id, began, scope, found });
        let mut names: usize = kept.iter().map(|rest| rest.found.len()).sum();
        while let Some(oldest) = kept.front()
            && (names > NAMES_MAX || oldest.began.elapsed() > AGE_MAX)
        {
            names -= oldest.found.len();
            kept.pop_front();
        }
        id
    }

    /// Takes the rest with a number, and the time when its listing began; `None` if it is too old, was taken before, or
    /// does not continue after `after`.
    pub fn take(
        &self,
        id: u64,
        scope: &ListingScope,
        after: &str,
    ) -> Option<(Instant, ListedKeys)> {
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|rest| rest.id == id)?;
        let PendingListing { began, scope: of, found, .. } = kept.remove(at)?;
        let continues = found.front().is_none_or(|(key, _)| key.as_str() > after);
        (of == *scope && continues && began.elapsed() <= AGE_MAX).then_some((began, found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(keys: &[&str]) -> ListedKeys {
        keys.iter().map(|key| ((*key).to_owned(), None)).collect()
    }

    #[test]
    fn a_rest_continues_its_own_listing_only_and_once() {
        let rests = PendingListings::default();
        let scope = |bucket: &str| (bucket.to_owned(), "p/".to_owned(), String::new());
        let now = Instant::now();
        let keep = |began| rests.keep(scope("b"), began, some(&["p/c", "p/d"]));
        let id = keep(now);
        assert_eq!(rests.take(id, &scope("b"), "p/b"), Some((now, some(&["p/c", "p/d"]))));
        assert_eq!(rests.take(id, &scope("b"), "p/b"), None);
        assert_eq!(rests.take(keep(now), &scope("other"), "p/b"), None);
        assert_eq!(rests.take(keep(now), &scope("b"), "p/c"), None);
        let old = now.checked_sub(AGE_MAX * 2).unwrap();
        assert_eq!(rests.take(keep(old), &scope("b"), "p/b"), None);
    }

    #[test]
    fn memory_is_bounded() {
        let rests = PendingListings::default();
        let many: ListedKeys = (0..NAMES_MAX / 2).map(|_| (String::new(), None)).collect();
        let ids: Vec<u64> = (0..4)
            .map(|_| rests.keep(ListingScope::default(), Instant::now(), many.clone()))
            .collect();
        assert!(rests.kept.lock().iter().map(|rest| rest.id).eq(ids[2..].iter().copied()));
    }
}
