//! Builds a page of versions from its document.

use super::types::{ObjectVersion, VersionPage, VersionQuery};
use crate::Error;
use crate::ops::list::{self, Names, name_violation};
use crate::ops::trust::{Marker, PageCheck, flag, out_of_order, words};
use crate::xml::Node;
use hakobu_core::percent;
use std::borrow::Cow;

pub(super) const OPERATION: &str = "ListObjectVersions";
pub(super) const ROOT: &[u8] = b"ListVersionsResult";
/// Root element of the same document from gofakes3.
pub(super) const OTHER_ROOT: &[u8] = b"ListBucketVersionsResult";

/// State of the parser.
#[derive(Default)]
pub(super) struct Reader {
    page: VersionPage,
    names: Names,
    version: Fields,
    prefix: Option<Vec<u8>>,
    truncated: Option<bool>,
    next_key: Option<Vec<u8>>,
    next_id: Option<String>,
    check: PageCheck,
}

/// Fields of the current version or delete marker.
#[derive(Default)]
struct Fields {
    common: list::Fields,
    id: Option<String>,
    is_latest: Option<bool>,
}

impl Reader {
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
        let Fields { common, id, is_latest } = std::mem::take(&mut self.version);
        let list::Fields { key, size, mtime, etag, class } = common;
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
    pub fn page(mut self, asked: &VersionQuery, from: &Marker) -> Result<VersionPage, Error> {
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
