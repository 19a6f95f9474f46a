//! Listings of a folder, in byte order of keys, page by page. Metadata are read only for entries of the page.

use super::object::is_absent;
use super::store::Folder;
use super::sums::Sidecar;
use crate::xml::push_encoded;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hakobu_core::unit::Kind;
use s3s::dto::{
    CommonPrefix, ETag, EncodingType, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input,
    ListObjectsV2Output, Object, ObjectStorageClass, Timestamp,
};
use s3s::{S3Result, s3_error};
use std::io;

/// Most entries per page.
const PAGE_MAX: i32 = 1000;

/// A requested page.
struct Query<'a> {
    bucket: &'a str,
    prefix: &'a str,
    delimiter: &'a str,
    after: &'a str,
    entries_max: usize,
    encodes: bool,
}

/// A page, with the name to continue after if it is truncated.
struct Page {
    objects: Vec<Object>,
    prefixes: Vec<CommonPrefix>,
    next: Option<String>,
}

/// `GET ?list-type=2`.
pub fn objects_v2(folder: &Folder, input: ListObjectsV2Input) -> S3Result<ListObjectsV2Output> {
    let token = input.continuation_token.as_deref().map(|token| {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok();
        bytes.and_then(|bytes| String::from_utf8(bytes).ok())
    });
    let token = match token {
        Some(None) => return Err(s3_error!(InvalidArgument, "the continuation token is wrong")),
        Some(token) => token,
        None => None,
    };
    let entries_max = count(input.max_keys)?;
    let encodes = is_url(input.encoding_type.as_ref());
    let page = page(
        folder,
        &Query {
            bucket: &input.bucket,
            prefix: input.prefix.as_deref().unwrap_or(""),
            delimiter: input.delimiter.as_deref().unwrap_or(""),
            after: token.as_deref().or(input.start_after.as_deref()).unwrap_or(""),
            entries_max,
            encodes,
        },
    )?;
    let shown = |text: Option<String>| text.map(|text| encoded(text, encodes));
    Ok(ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: shown(Some(input.prefix.unwrap_or_default())),
        max_keys: Some(entries_max as i32),
        key_count: Some((page.objects.len() + page.prefixes.len()) as i32),
        continuation_token: input.continuation_token,
        is_truncated: Some(page.next.is_some()),
        next_continuation_token: page.next.map(|next| URL_SAFE_NO_PAD.encode(next)),
        contents: Some(page.objects),
        common_prefixes: Some(page.prefixes),
        delimiter: shown(input.delimiter.filter(|text| !text.is_empty())),
        encoding_type: input.encoding_type,
        start_after: shown(input.start_after),
        ..Default::default()
    })
}

/// `GET` of a bucket, version 1.
pub fn objects(folder: &Folder, input: ListObjectsInput) -> S3Result<ListObjectsOutput> {
    let entries_max = count(input.max_keys)?;
    let encodes = is_url(input.encoding_type.as_ref());
    let page = page(
        folder,
        &Query {
            bucket: &input.bucket,
            prefix: input.prefix.as_deref().unwrap_or(""),
            delimiter: input.delimiter.as_deref().unwrap_or(""),
            after: input.marker.as_deref().unwrap_or(""),
            entries_max,
            encodes,
        },
    )?;
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
    if !encodes {
        return text;
    }
    let mut out = Vec::with_capacity(text.len());
    push_encoded(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Length of the common prefix that a key is grouped under.
fn common_prefix_len(query: &Query<'_>, key: &str) -> Option<usize> {
    let rest = key.strip_prefix(query.prefix).filter(|_| !query.delimiter.is_empty())?;
    Some(query.prefix.len() + rest.find(query.delimiter)? + query.delimiter.len())
}

impl Folder {
    /// True if a bucket contains an object.
    pub fn has_objects(&self, bucket: &str) -> S3Result<bool> {
        let input = ListObjectsV2Input {
            bucket: bucket.to_owned(),
            max_keys: Some(1),
            ..Default::default()
        };
        Ok(objects_v2(self, input)?.key_count != Some(0))
    }
}

fn page(folder: &Folder, query: &Query<'_>) -> S3Result<Page> {
    folder.bucket(query.bucket)?;
    // A start that is a common prefix skips everything below it.
    let passed = common_prefix_len(query, query.after) == Some(query.after.len());
    let mut found = Vec::new();
    walk(folder, query, "", &mut found).map_err(s3s::S3Error::internal_error)?;
    found.retain(|(key, _)| {
        key.starts_with(query.prefix)
            && key.as_str() > query.after
            && !(passed && key.starts_with(query.after))
    });
    found.sort_unstable();
    // readdir(3) may return a name twice while other requests remove entries (seen on tmpfs).
    found.dedup();
    let mut page = Page { objects: Vec::new(), prefixes: Vec::new(), next: None };
    let mut last = String::new();
    for (key, path) in found {
        let folded = common_prefix_len(query, &key).map(|length| &key[..length]);
        if folded.is_some_and(|prefix| prefix == last) {
            continue;
        }
        if page.objects.len() + page.prefixes.len() == query.entries_max {
            page.next = (query.entries_max > 0).then_some(last);
            break;
        }
        match folded {
            Some(prefix) => {
                last = prefix.to_owned();
                let prefix = Some(encoded(last.clone(), query.encodes));
                page.prefixes.push(CommonPrefix { prefix });
            }
            None => {
                last = key;
                let Some(object) = object(folder, query, &last, &path) else { continue };
                page.objects.push(object);
            }
        }
    }
    Ok(page)
}

/// Entry of an object; `None` if it has been deleted.
fn object(folder: &Folder, query: &Query<'_>, key: &str, path: &str) -> Option<Object> {
    // A link that leads out of the folder is not an object.
    let meta = folder.root.meta(&format!("{}/{path}", query.bucket)).ok()?;
    if !meta.is_file() {
        return None;
    }
    let etag = Sidecar::of(&folder.root, query.bucket, path).etag();
    Some(Object {
        key: Some(encoded(key.to_owned(), query.encodes)),
        size: i64::try_from(meta.len()).ok(),
        last_modified: meta.modified().ok().map(Timestamp::from),
        e_tag: etag.map(ETag::Strong),
        storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
        ..Default::default()
    })
}

/// Collects keys and their paths below a folder of a bucket (`below` ends in a slash or is empty), skipping
/// folders without matching keys.
fn walk(
    folder: &Folder,
    query: &Query<'_>,
    below: &str,
    found: &mut Vec<(String, String)>,
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
        {
            found.push((key, path));
        }
    }
    Ok(())
}
