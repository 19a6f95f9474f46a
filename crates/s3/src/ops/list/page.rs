//! Builds a page of a listing from its document.

use super::types::{ListPage, ListQuery, Listed, Version};
use crate::Error;
use crate::ops::etag::Etag;
use crate::ops::trust::{NO_PROGRESS, NO_SUCCESSOR, PageCheck, flag, number, shown, time, words};
use crate::xml::Node;
use hakobu_core::percent;
use hakobu_core::unit::Time;
use std::borrow::Cow;

/// AWS's storage classes, the default first.
const CLASSES: [&str; 12] = [
    "STANDARD",
    "STANDARD_IA",
    "GLACIER",
    "INTELLIGENT_TIERING",
    "ONEZONE_IA",
    "DEEP_ARCHIVE",
    "GLACIER_IR",
    "REDUCED_REDUNDANCY",
    "EXPRESS_ONEZONE",
    "OUTPOSTS",
    "SNOW",
    "",
];

/// Decides whether names are URL-encoded, which a document may declare after the names.
///
/// Some servers declare it without encoding. A character that no encoder leaves unchanged (a space, a control
/// character, a non-ASCII byte, a lone `%`) reveals that, and then no name of the page is decoded.
#[derive(Default)]
pub(in crate::ops) struct Names {
    said: bool,
    /// True if encoding was declared.
    marked: bool,
    /// True if a name cannot be encoded.
    plain: bool,
}

impl Names {
    /// Handles the text of `EncodingType`.
    pub fn encoding(&mut self, text: &[u8]) {
        self.said = text.eq_ignore_ascii_case(b"url");
    }

    /// Examines a name and keeps it unchanged for now.
    pub fn keep(&mut self, text: &[u8]) -> Vec<u8> {
        // Branch-free pass for the characters of nearly all keys.
        let usual = text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.".contains(byte));
        if !usual {
            self.look(text);
        }
        text.to_vec()
    }

    fn look(&mut self, text: &[u8]) {
        for (at, byte) in text.iter().enumerate() {
            match byte {
                b'+' => self.marked = true,
                b'%' => {
                    let digits = text.get(at + 1..at + 3).unwrap_or_default();
                    let whole = digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
                    self.marked = true;
                    self.plain |= !whole;
                }
                _ => self.plain |= !byte.is_ascii_graphic() || b"\"<>\\^`{|}".contains(byte),
            }
        }
    }

    /// True if kept names have to be decoded.
    pub fn are_encoded(&self) -> bool {
        self.said && self.marked && !self.plain
    }
}

/// State of the parser.
#[derive(Default)]
pub(super) struct Reader {
    page: ListPage,
    names: Names,
    object: Fields,
    prefix: Option<Vec<u8>>,
    truncated: Option<bool>,
    next: Option<String>,
    marker: Option<Vec<u8>>,
    check: PageCheck,
}

/// Fields that objects and versions share, of the current one.
#[derive(Default)]
pub(in crate::ops) struct Fields {
    pub key: Option<Vec<u8>>,
    pub size: Option<u64>,
    pub mtime: Option<Time>,
    pub etag: Option<Etag>,
    pub class: Option<Cow<'static, str>>,
}

impl Fields {
    /// Handles an element; ignores unknown ones.
    pub fn take(&mut self, name: &[u8], text: &[u8], names: &mut Names, check: &mut PageCheck) {
        match name {
            b"Key" => {
                let key = (!text.is_empty()).then(|| names.keep(text));
                check.set(&mut self.key, "Key", text, key);
            }
            b"Size" => check.set(&mut self.size, "Size", text, number(text)),
            b"LastModified" => check.set(&mut self.mtime, "LastModified", text, time(text)),
            b"ETag" => {
                let etag = std::str::from_utf8(text).ok().map(Etag::new);
                check.set(&mut self.etag, "ETag", text, etag);
            }
            b"StorageClass" => check.set(&mut self.class, "StorageClass", text, class(text)),
            _ => {}
        }
    }
}

impl Reader {
    /// Handles a node.
    pub fn take(&mut self, node: Node<'_>) {
        match node {
            Node::Leaf { parent: b"Contents", name, text } => {
                self.object.take(name, text, &mut self.names, &mut self.check);
            }
            Node::Leaf { parent: b"CommonPrefixes", name: b"Prefix", text } => {
                let prefix = self.names.keep(text);
                self.check.set(&mut self.prefix, "Prefix", text, Some(prefix));
            }
            Node::Leaf { parent: b"ListBucketResult", name, text } => match name {
                b"EncodingType" => self.names.encoding(text),
                b"IsTruncated" => {
                    self.check.set(&mut self.truncated, "IsTruncated", text, flag(text));
                }
                b"NextContinuationToken" if !text.is_empty() => {
                    let token = words(text);
                    self.check.set(&mut self.next, "NextContinuationToken", text, token);
                }
                b"NextMarker" if !text.is_empty() => {
                    let marker = self.names.keep(text);
                    self.check.set(&mut self.marker, "NextMarker", text, Some(marker));
                }
                b"Contents" => self.object(),
                b"CommonPrefixes" => self.common_prefix(),
                _ => {}
            },
            Node::End { parent: b"ListBucketResult", name: b"Contents" } => self.object(),
            Node::End { parent: b"ListBucketResult", name: b"CommonPrefixes" } => {
                self.common_prefix();
            }
            _ => {}
        }
    }

    /// Ends an object. ETag and storage class are optional.
    fn object(&mut self) {
        let Fields { key, size, mtime, etag, class } = std::mem::take(&mut self.object);
        let (of, check) = ("an object of it", &mut self.check);
        let key = check.need(key, "Key", of);
        let size = check.need(size, "Size", of);
        let mtime = check.need(mtime, "LastModified", of);
        if let (Some(key), Some(size), Some(mtime)) = (key, size, mtime) {
            let etag = etag.unwrap_or_default();
            let storage_class = class.unwrap_or(Cow::Borrowed(""));
            self.page.objects.push(Listed { key, size, mtime, etag, storage_class });
        }
    }

    fn common_prefix(&mut self) {
        let prefix = self.check.need(self.prefix.take(), "Prefix", "a CommonPrefixes of it");
        self.page.prefixes.extend(prefix);
    }

    /// The page.
    ///
    /// # Errors
    /// `Corrupt` if it cannot be trusted.
    pub fn page(mut self, asked: &ListQuery, version: Version) -> Result<ListPage, Error> {
        if self.names.are_encoded() {
            let keys = self.page.objects.iter_mut().map(|object| &mut object.key);
            for name in keys.chain(&mut self.page.prefixes).chain(&mut self.marker) {
                *name = percent::decode(name, true);
            }
        }
        let truncated = self.check.need(self.truncated, "IsTruncated", "it");
        let next = match version {
            Version::One => self.marker.take().or_else(|| last_name(&self.page)),
            Version::Two => self.next.take().map(String::into_bytes),
        };
        let next = next.filter(|_| truncated == Some(true)).map(String::from_utf8);
        self.page.next = next.transpose().unwrap_or_else(|error| {
            self.check.add(|| format!("{} is not UTF-8", shown(error.as_bytes())));
            None
        });
        if truncated == Some(true) && self.page.next.is_none() {
            let advice = match version {
                Version::One => "",
                Version::Two => " (a server without ListObjectsV2 needs --use-list-objects-v1)",
            };
            self.check.add(|| format!("{NO_SUCCESSOR}{advice}"));
        }
        if self.page.next.is_some() && self.page.next == asked.continuation {
            self.check.add(|| NO_PROGRESS.to_owned());
        }
        let keys = || self.page.objects.iter().map(|object| object.key.as_slice());
        let prefixes = || self.page.prefixes.iter().map(Vec::as_slice);
        self.check.add_some(name_violation(keys, prefixes, &asked.prefix, asked.delimiter));
        self.check.finish(version.operation())?;
        Ok(self.page)
    }
}

/// Last name of a page: without a delimiter ListObjects does not return a marker.
fn last_name(page: &ListPage) -> Option<Vec<u8>> {
    let key = page.objects.last().map(|object| &object.key);
    key.max(page.prefixes.last()).cloned()
}

/// Reason why the names of a page cannot be a response to the request: outside the prefix, or not split at
/// the delimiter. Their order is checked where pages are combined.
pub(in crate::ops) fn name_violation<'n, K, P>(
    keys: impl Fn() -> K,
    prefixes: impl Fn() -> P,
    prefix: &[u8],
    delimiter: Option<u8>,
) -> Option<String>
where
    K: Iterator<Item = &'n [u8]>,
    P: Iterator<Item = &'n [u8]>,
{
    // An empty slice points nowhere, and memcmp(3) of glibc loads from there under an empty mask: a fault that
    // the processor suppresses, in 100 ns a key.
    let outside = |name: &&[u8]| !prefix.is_empty() && !name.starts_with(prefix);
    if let Some(name) = keys().chain(prefixes()).find(outside) {
        let (name, prefix) = (shown(name), shown(prefix));
        return Some(format!("it lists {name}, which does not begin with the prefix {prefix}"));
    }
    let is_cut = |name: &[u8], delimiter| {
        let mut rest = name[prefix.len()..].iter();
        rest.position(|byte| *byte == delimiter).map(|_| rest.len())
    };
    let undivided = match delimiter {
        None => prefixes().next(),
        Some(delimiter) => keys()
            .find(|key| is_cut(key, delimiter).is_some())
            .or_else(|| prefixes().find(|name| is_cut(name, delimiter) != Some(0))),
    };
    undivided.map(|name| format!("it lists {}, which does not fit the delimiter", shown(name)))
}

/// Parses a storage class; AWS's are not allocated.
fn class(text: &[u8]) -> Option<Cow<'static, str>> {
    let known = CLASSES.into_iter().find(|class| class.as_bytes() == text);
    known.map(Cow::Borrowed).or_else(|| words(text).map(Cow::Owned))
}

#[cfg(test)]
mod tests;
