//! ListObjectVersions: versions of objects and delete markers, in pages checked against the request.

use crate::ops::listing::{
    self, KeyEncoding, NO_PROGRESS, PageCheck, PageMarker, flag, name_violation, out_of_order,
    request_page, shown, untrusted, words,
};
use crate::ops::{Etag, query_key, read};
use crate::xml::Node;
use crate::{Client, Error, Request, Response};
use hakobu_core::percent;
use hakobu_core::unit::Time;
use http::Method;
use std::borrow::Cow;
use std::collections::HashSet;

/// A listing of versions that is read page by page.
pub struct VersionPages {
    query: VersionQuery,
    from: PageMarker,
    /// Version IDs that pages began after, of the key of `from`.
    begun: HashSet<String>,
    /// Last key so far, and the IDs of its versions.
    last: Vec<u8>,
    ids: HashSet<String>,
    last_prefix: Vec<u8>,
    over: bool,
}

impl VersionPages {
    /// Starts with the first page of a query.
    pub fn new(query: VersionQuery) -> VersionPages {
        VersionPages {
            query,
            from: PageMarker::default(),
            begun: HashSet::new(),
            last: Vec::new(),
            ids: HashSet::new(),
            last_prefix: Vec::new(),
            over: false,
        }
    }

    /// Reads the next page; `None` after the last one. A page may be empty without being the last one.
    ///
    /// # Errors
    /// Those of the request; `Invalid` for a prefix that is not UTF-8; `Corrupt` if the response is malformed,
    /// lacks a required field, contains keys or prefixes outside the request or out of order, names a version
    /// twice, or does not advance; `Stopped` as soon as the run is asked to stop.
    pub async fn next(
        &mut self,
        client: &Client,
        bucket: &str,
    ) -> Result<Option<VersionPage>, Error> {
        if self.over {
            return Ok(None);
        }
        let request = request(bucket, &self.query, &self.from)?;
        let page = |response: &Response| page_of(response, &self.query, &self.from);
        let mut page = request_page(client, &request, page).await?;
        self.follow(&mut page).map_err(|why| untrusted(OPERATION, &why))?;
        Ok(Some(page))
    }

    /// Checks that a page follows the previous ones, and moves to the next one; returns the reason if not.
    fn follow(&mut self, page: &mut VersionPage) -> Result<(), String> {
        let mut wrong = None;
        let (last, ids, from) = (&mut self.last, &mut self.ids, &self.from);
        page.versions.retain(|version| {
            if version.key < *last {
                wrong.get_or_insert_with(|| out_of_order(&version.key, last));
            }
            if version.key != *last {
                last.clone_from(&version.key);
                ids.clear();
            }
            if ids.insert(version.id.clone()) {
                return true;
            }
            // Some servers begin a page with the version that the previous one ended with.
            if version.key != from.key || version.id != from.id {
                let (id, key) = (shown(version.id.as_bytes()), shown(&version.key));
                wrong.get_or_insert_with(|| format!("it lists version {id} of {key} twice"));
            }
            false
        });
        for prefix in &page.prefixes {
            // Prefixes are never empty.
            if *prefix <= self.last_prefix {
                wrong.get_or_insert_with(|| out_of_order(prefix, &self.last_prefix));
            }
            self.last_prefix.clone_from(prefix);
        }
        if let Some(why) = wrong {
            return Err(why);
        }
        let Some(next) = page.next.take() else {
            self.over = true;
            return Ok(());
        };
        if next.key != self.from.key {
            self.begun.clear();
        }
        // Version IDs have no order, so a page that begins where an earlier one did is found by its ID.
        if !self.begun.insert(next.id.clone()) {
            return Err(NO_PROGRESS.to_owned());
        }
        self.from = next;
        Ok(())
    }
}

fn request(bucket: &str, query: &VersionQuery, from: &PageMarker) -> Result<Request, Error> {
    let request = Request::new(OPERATION, Method::GET, Some(bucket))
        .query("versions", "")
        .query("encoding-type", "url");
    let request = query_key(request, "prefix", &query.prefix)?;
    let request = query_key(request, "delimiter", query.delimiter.as_slice())?;
    from.query(request, "version-id-marker")
}

fn page_of(
    response: &Response,
    asked: &VersionQuery,
    from: &PageMarker,
) -> Result<VersionPage, Error> {
    let mut reader = VersionPageReader::default();
    read(OPERATION, response, root_of(&response.body), |node| reader.take(node))?;
    reader.page(asked, from)
}

/// Returns the root element to expect: only its own start tag selects the other name.
fn root_of(document: &[u8]) -> &'static [u8] {
    let is_name = |byte: &u8| byte.is_ascii_alphabetic();
    let mut tags = document.split(|byte| *byte == b'<').skip(1);
    match tags.find(|tag| tag.first().is_some_and(is_name)) {
        Some(tag) if tag.starts_with(OTHER_ROOT) => OTHER_ROOT,
        _ => ROOT,
    }
}

/// The first page of a listing of everything.
#[cfg(any(test, fuzzing))]
pub(crate) fn first_page_of(response: &Response) -> Result<VersionPage, Error> {
    page_of(response, &VersionQuery::default(), &PageMarker::default())
}

/// A version of an object, or a delete marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectVersion {
    /// Whole key, decoded.
    pub key: Vec<u8>,
    /// Version ID; `null` for one from before versioning was enabled.
    pub id: String,
    /// It is the current version of its key.
    pub is_latest: bool,
    /// It has no content: it hides the older versions of its key.
    pub is_delete_marker: bool,
    /// Size in bytes; 0 for a delete marker.
    pub size: u64,
    /// LastModified.
    pub mtime: Time,
    /// Empty for a delete marker, or if the server provides none.
    pub etag: Etag,
    /// Empty for a delete marker, or if the server provides none.
    pub storage_class: Cow<'static, str>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionPage {
    /// Sorted by key; those of a key in the order of the server, which is the newest first on AWS.
    pub versions: Vec<ObjectVersion>,
    /// Common prefixes, decoded, ascending.
    pub prefixes: Vec<Vec<u8>>,
    /// Position of the next page; `None` for the last one.
    pub(crate) next: Option<PageMarker>,
}

/// Request for versions.
#[derive(Clone, Debug, Default)]
pub struct VersionQuery {
    /// Key prefix.
    pub prefix: Vec<u8>,
    /// Keys with a common part up to the first delimiter after the prefix are grouped.
    pub delimiter: Option<u8>,
}

pub(crate) const OPERATION: &str = "ListObjectVersions";
pub(crate) const ROOT: &[u8] = b"ListVersionsResult";
/// Root element of the same document from gofakes3.
pub(crate) const OTHER_ROOT: &[u8] = b"ListBucketVersionsResult";

/// State of the parser.
#[derive(Default)]
pub(crate) struct VersionPageReader {
    page: VersionPage,
    names: KeyEncoding,
    version: VersionFields,
    prefix: Option<Vec<u8>>,
    truncated: Option<bool>,
    next_key: Option<Vec<u8>>,
    next_id: Option<String>,
    check: PageCheck,
}

/// Fields of the current version or delete marker.
#[derive(Default)]
struct VersionFields {
    common: listing::ObjectFields,
    id: Option<String>,
    is_latest: Option<bool>,
}

impl VersionPageReader {
    /// Handles a node.
    pub fn take(&mut self, node: Node<'_>) {
        match node {
            Node::Leaf { parent: b"Version" | b"DeleteMarker", name, text } => {
                self.field(name, text);
            }
            Node::Leaf { parent: b"CommonPrefixes", name: b"Prefix", text } => {
                let prefix = self.names.keep(text);
                self.check.set(&mut self.prefix, "Prefix", text, Some(prefix));
            }
            Node::Leaf { parent: ROOT | OTHER_ROOT, name, text } => match name {
                b"EncodingType" => self.names.encoding(text),
                b"IsTruncated" => {
                    self.check.set(&mut self.truncated, "IsTruncated", text, flag(text));
                }
                b"NextKeyMarker" if !text.is_empty() => {
                    let key = self.names.keep(text);
                    self.check.set(&mut self.next_key, "NextKeyMarker", text, Some(key));
                }
                b"NextVersionIdMarker" if !text.is_empty() => {
                    self.check.set(&mut self.next_id, "NextVersionIdMarker", text, words(text));
                }
                name => self.end(name),
            },
            Node::End { parent: ROOT | OTHER_ROOT, name } => self.end(name),
            _ => {}
        }
    }

    fn field(&mut self, name: &[u8], text: &[u8]) {
        let (version, check) = (&mut self.version, &mut self.check);
        match name {
            b"VersionId" => check.set(&mut version.id, "VersionId", text, words(text)),
            b"IsLatest" => check.set(&mut version.is_latest, "IsLatest", text, flag(text)),
            _ => version.common.take(name, text, &mut self.names, check),
        }
    }

    /// Handles the end of an element of the root.
    fn end(&mut self, name: &[u8]) {
        match name {
            b"Version" => self.version(false),
            b"DeleteMarker" => self.version(true),
            b"CommonPrefixes" => {
                let of = "a CommonPrefixes of it";
                let prefix = self.check.need(self.prefix.take(), "Prefix", of);
                self.page.prefixes.extend(prefix);
            }
            _ => {}
        }
    }

    /// Ends a version. ETag and storage class are optional, and a delete marker has no size.
    fn version(&mut self, is_delete_marker: bool) {
        let VersionFields { common, id, is_latest } = std::mem::take(&mut self.version);
        let listing::ObjectFields { key, size, mtime, etag, class } = common;
        let of = if is_delete_marker { "a delete marker of it" } else { "a version of it" };
        let check = &mut self.check;
        let key = check.need(key, "Key", of);
        let id = check.need(id, "VersionId", of);
        let is_latest = check.need(is_latest, "IsLatest", of);
        let mtime = check.need(mtime, "LastModified", of);
        let size = if is_delete_marker { Some(0) } else { check.need(size, "Size", of) };
        let (Some(key), Some(id), Some(is_latest), Some(mtime), Some(size)) =
            (key, id, is_latest, mtime, size)
        else {
            return;
        };
        let etag = etag.unwrap_or_default();
        let storage_class = class.unwrap_or(Cow::Borrowed(""));
        self.page.versions.push(ObjectVersion {
            key,
            id,
            is_latest,
            is_delete_marker,
            size,
            mtime,
            etag,
            storage_class,
        });
    }

    /// The page that follows `from`.
    ///
    /// # Errors
    /// `Corrupt` if it cannot be trusted.
    pub fn page(mut self, asked: &VersionQuery, from: &PageMarker) -> Result<VersionPage, Error> {
        if self.names.are_encoded() {
            let keys = self.page.versions.iter_mut().map(|version| &mut version.key);
            for name in keys.chain(&mut self.page.prefixes).chain(&mut self.next_key) {
                *name = percent::decode(name, true);
            }
        }
        let next = (self.next_key, self.next_id);
        self.page.next = self.check.successor(self.truncated, next, from);
        let keys = || self.page.versions.iter().map(|version| version.key.as_slice());
        let prefixes = || self.page.prefixes.iter().map(Vec::as_slice);
        self.check.add_some(name_violation(keys, prefixes, &asked.prefix, asked.delimiter));
        self.check.add_some(disorder(&self.page.versions, false));
        self.check.add_some(disorder(&self.page.versions, true));
        self.check.finish(OPERATION)?;
        // Some servers list delete markers before or after the versions instead of between them.
        self.page.versions.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(self.page)
    }
}

/// Reason if the keys of the versions, or of the delete markers, do not ascend.
fn disorder(versions: &[ObjectVersion], delete_markers: bool) -> Option<String> {
    let mut keys = versions
        .iter()
        .filter(|version| version.is_delete_marker == delete_markers)
        .map(|version| &version.key);
    let mut before = keys.next()?;
    for key in keys {
        if key < before {
            return Some(out_of_order(key, before));
        }
        before = key;
    }
    None
}

#[cfg(test)]
mod tests;
