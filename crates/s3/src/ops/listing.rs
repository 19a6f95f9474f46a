//! ListObjectsV2 and ListObjects, and the checks common to pages of all listings: required fields are present once and valid, a
//! page states whether it is the last one, and a stopped run reads no further page.
//!
//! A page that fails a check is a `Corrupt` error. None of its entries is used, so that nothing is deleted
//! because of it.

use crate::client::session::stopped;
use crate::header::unquoted;
use crate::ops::{query_key, send_and_read};
use crate::time::parse_iso;
use crate::xml::{Node, walk_plain};
use crate::{Client, Error, ErrorKind, Request, Response};
use arrayvec::ArrayString;
use hakobu_core::error::quoted;
use hakobu_core::percent::{self, hex_byte};
use hakobu_core::unit::Time;
use http::Method;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;

/// Lists one page. Keys are requested URL-encoded, so that every byte survives XML.
///
/// # Errors
/// Those of the request; `Invalid` for a prefix that is not UTF-8; `Corrupt` if the response is malformed,
/// lacks a required field, contains keys or prefixes outside the request, or does not advance; `Stopped` as
/// soon as the run is asked to stop.
pub async fn list_objects(
    client: &Client,
    bucket: &str,
    query: &ListQuery,
) -> Result<ListPage, Error> {
    let version = ListVersion::of(client);
    let request = request(bucket, query, version)?;
    request_page(client, &request, |response| page_of(response, query, version)).await
}

fn request(bucket: &str, query: &ListQuery, version: ListVersion) -> Result<Request, Error> {
    let mut request = Request::new(version.operation(), Method::GET, Some(bucket));
    if version == ListVersion::Two {
        request = request.query("list-type", "2");
    }
    request = query_key(request.query("encoding-type", "url"), "prefix", &query.prefix)?;
    request = query_key(request, "delimiter", query.delimiter.as_slice())?;
    request = match (version, query.continuation.as_deref()) {
        // A marker is both the start of the listing and the link between pages.
        (ListVersion::One, Some(marker)) => request.query("marker", marker),
        (ListVersion::One, None) => query_key(request, "marker", &query.start_after)?,
        (ListVersion::Two, token) => query_key(request, "start-after", &query.start_after)?
            .query_if("continuation-token", token),
    };
    Ok(request.query_if("max-keys", query.max_keys.map(|keys| keys.to_string())))
}

pub(crate) fn page_of(
    response: &Response,
    asked: &ListQuery,
    version: ListVersion,
) -> Result<ListPage, Error> {
    const ROOT: &[u8] = b"ListBucketResult";
    let mut reader = ListPageReader::default();
    if walk_plain(&response.body, ROOT, |node| reader.take(node)).is_none() {
        reader = ListPageReader::default();
        crate::ops::read(version.operation(), response, ROOT, |node| reader.take(node))?;
    }
    reader.page(asked, version)
}

/// A listing that is read page by page; names are in ascending order, also across pages.
pub struct ObjectPages {
    query: ListQuery,
    /// Last key and last common prefix so far.
    last: (Vec<u8>, Vec<u8>),
    over: bool,
}

impl ObjectPages {
    /// Starts with the page that the query describes.
    pub fn new(query: ListQuery) -> ObjectPages {
        ObjectPages { query, last: Default::default(), over: false }
    }

    /// Reads the next page; `None` after the last one. A page may be empty without being the last one.
    ///
    /// # Errors
    /// As [`list_objects`]; `Corrupt` for names out of order.
    pub async fn next(&mut self, client: &Client, bucket: &str) -> Result<Option<ListPage>, Error> {
        if self.over {
            return Ok(None);
        }
        let page = list_objects(client, bucket, &self.query).await?;
        self.follow(&page).map_err(|why| untrusted(ListVersion::of(client).operation(), &why))?;
        self.query.continuation.clone_from(&page.next);
        self.over = page.next.is_none();
        Ok(Some(page))
    }

    /// Checks that a page follows the previous ones; returns the reason if not.
    fn follow(&mut self, page: &ListPage) -> Result<(), String> {
        let keys = page.objects.iter().map(|object| &object.key);
        ascend(&mut self.last.0, keys)?;
        ascend(&mut self.last.1, page.prefixes.iter())
    }
}

/// Checks that names ascend from `last` on, and sets `last` to the last name.
fn ascend<'n>(last: &mut Vec<u8>, names: impl Iterator<Item = &'n Vec<u8>>) -> Result<(), String> {
    let mut before = &*last;
    for name in names {
        // Names are never empty.
        if name <= before {
            return Err(out_of_order(name, before));
        }
        before = name;
    }
    let before = before.clone();
    *last = before;
    Ok(())
}

/// Version of the list operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListVersion {
    /// ListObjects: continues after a marker, which is a name.
    One,
    /// ListObjectsV2: continues with an opaque token.
    #[default]
    Two,
}

impl ListVersion {
    /// Version according to the settings of a client.
    pub fn of(client: &Client) -> ListVersion {
        if client.session().resolved.given.list_objects_v1 {
            ListVersion::One
        } else {
            ListVersion::Two
        }
    }

    pub fn operation(self) -> &'static str {
        match self {
            ListVersion::One => "ListObjects",
            ListVersion::Two => "ListObjectsV2",
        }
    }
}

/// Request for a page of keys.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Key prefix.
    pub prefix: Vec<u8>,
    /// Keys with a common part up to the first delimiter after the prefix are grouped.
    pub delimiter: Option<u8>,
    /// Lists only keys after this one.
    pub start_after: Vec<u8>,
    /// Continuation of the previous page.
    pub continuation: Option<String>,
    /// Keys per page; `None` for the server's default of 1,000.
    pub max_keys: Option<u32>,
}

/// An object of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// Whole key, decoded.
    pub key: Vec<u8>,
    /// Size in bytes.
    pub size: u64,
    /// LastModified.
    pub mtime: Time,
    /// Empty if the server provides none.
    pub etag: Etag,
    /// `STANDARD`, `GLACIER` …; empty if the server provides none. AWS's classes need no allocation.
    pub storage_class: Cow<'static, str>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// Objects in the server's order, which [`ObjectPages`] and the parallel listing check.
    pub objects: Vec<ListedObject>,
    /// Common prefixes, decoded, in the server's order.
    pub prefixes: Vec<Vec<u8>>,
    /// Continuation; `None` for the last page.
    pub next: Option<String>,
}

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
pub(crate) struct KeyEncoding {
    said: bool,
    /// True if encoding was declared.
    marked: bool,
    /// True if a name cannot be encoded.
    plain: bool,
}

impl KeyEncoding {
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
pub(crate) struct ListPageReader {
    page: ListPage,
    names: KeyEncoding,
    object: ObjectFields,
    prefix: Option<Vec<u8>>,
    truncated: Option<bool>,
    next: Option<String>,
    marker: Option<Vec<u8>>,
    check: PageCheck,
}

/// Fields that objects and versions share, of the current one.
#[derive(Default)]
pub(crate) struct ObjectFields {
    pub key: Option<Vec<u8>>,
    pub size: Option<u64>,
    pub mtime: Option<Time>,
    pub etag: Option<Etag>,
    pub class: Option<Cow<'static, str>>,
}

impl ObjectFields {
    /// Handles an element; ignores unknown ones.
    pub fn take(
        &mut self,
        name: &[u8],
        text: &[u8],
        names: &mut KeyEncoding,
        check: &mut PageCheck,
    ) {
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

impl ListPageReader {
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
        let ObjectFields { key, size, mtime, etag, class } = std::mem::take(&mut self.object);
        let (of, check) = ("an object of it", &mut self.check);
        let key = check.need(key, "Key", of);
        let size = check.need(size, "Size", of);
        let mtime = check.need(mtime, "LastModified", of);
        if let (Some(key), Some(size), Some(mtime)) = (key, size, mtime) {
            let etag = etag.unwrap_or_default();
            let storage_class = class.unwrap_or(Cow::Borrowed(""));
            self.page.objects.push(ListedObject { key, size, mtime, etag, storage_class });
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
    pub fn page(mut self, asked: &ListQuery, version: ListVersion) -> Result<ListPage, Error> {
        if self.names.are_encoded() {
            let keys = self.page.objects.iter_mut().map(|object| &mut object.key);
            for name in keys.chain(&mut self.page.prefixes).chain(&mut self.marker) {
                *name = percent::decode(name, true);
            }
        }
        let truncated = self.check.need(self.truncated, "IsTruncated", "it");
        let next = match version {
            ListVersion::One => self.marker.take().or_else(|| last_name(&self.page)),
            ListVersion::Two => self.next.take().map(String::into_bytes),
        };
        let next = next.filter(|_| truncated == Some(true)).map(String::from_utf8);
        self.page.next = next.transpose().unwrap_or_else(|error| {
            self.check.add(|| format!("{} is not UTF-8", shown(error.as_bytes())));
            None
        });
        if truncated == Some(true) && self.page.next.is_none() {
            let advice = match version {
                ListVersion::One => "",
                ListVersion::Two => " (a server without ListObjectsV2 needs --use-list-objects-v1)",
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
pub(crate) fn name_violation<'n, K, P>(
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

/// First reason to distrust a page.
#[derive(Default)]
pub(crate) struct PageCheck(Option<String>);

impl PageCheck {
    /// Records a reason, unless there is one.
    pub fn add(&mut self, why: impl FnOnce() -> String) {
        self.0.get_or_insert_with(why);
    }

    /// Records a reason if there is one.
    pub fn add_some(&mut self, why: Option<String>) {
        self.0 = self.0.take().or(why);
    }

    /// Sets a field from its text; duplicates and invalid values are reasons.
    pub fn set<T>(&mut self, field: &mut Option<T>, name: &str, text: &[u8], value: Option<T>) {
        match value {
            None => self.add(|| format!("its {name} {} cannot be read", shown(text))),
            Some(_) if field.is_some() => {
                self.add(|| format!("it gives {name} twice in one place"))
            }
            value => *field = value,
        }
    }

    /// Takes a required field; a missing one is a reason. `of` names its container.
    pub fn need<T>(&mut self, field: Option<T>, name: &str, of: &str) -> Option<T> {
        if field.is_none() {
            self.add(|| format!("{of} has no {name}"));
        }
        field
    }

    /// Position of the page that follows one after `from`, by fields of the root. It has to be there if the page is
    /// truncated, and to be beyond `from`.
    pub fn successor(
        &mut self,
        truncated: Option<bool>,
        (key, id): (Option<Vec<u8>>, Option<String>),
        from: &PageMarker,
    ) -> Option<PageMarker> {
        let truncated = self.need(truncated, "IsTruncated", "it") == Some(true);
        let key = key.filter(|_| truncated);
        let next = key.map(|key| PageMarker { key, id: id.unwrap_or_default() });
        match &next {
            None if truncated => self.add(|| NO_SUCCESSOR.to_owned()),
            Some(next) if next == from || next.key < from.key => {
                self.add(|| NO_PROGRESS.to_owned());
            }
            _ => {}
        }
        next
    }

    /// Ends the check of a page.
    ///
    /// # Errors
    /// `Corrupt` with the first reason.
    pub fn finish(self, operation: &'static str) -> Result<(), Error> {
        self.0.map_or(Ok(()), |why| Err(untrusted(operation, &why)))
    }
}

/// Position after which a page begins: a key, and a version or an upload of it (empty for all).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageMarker {
    pub key: Vec<u8>,
    pub id: String,
}

impl PageMarker {
    /// Adds it to a request; `id` is the name of its second parameter.
    pub fn query(&self, request: Request, id: &'static str) -> Result<Request, Error> {
        let some = Some(&self.id).filter(|id| !id.is_empty());
        Ok(query_key(request, "key-marker", &self.key)?.query_if(id, some))
    }
}

/// Error of a response that fails a check.
pub(crate) fn untrusted(operation: &'static str, why: &str) -> Error {
    let message = format!("the response to {operation} cannot be trusted: {why}");
    Error::new(ErrorKind::Corrupt, operation, message)
}

/// Reason if the next page would be the same page again.
pub(crate) const NO_PROGRESS: &str = "its listing continues at a position where it was before";
/// Reason if a truncated page names no next page.
pub(crate) const NO_SUCCESSOR: &str =
    "it is truncated and does not say where the listing continues";

/// A received name, truncated for messages.
pub(crate) fn shown(name: &[u8]) -> String {
    const MAX: usize = 200;
    let mut text = quoted(OsStr::from_bytes(name.get(..MAX).unwrap_or(name)));
    if name.len() > MAX {
        // Writing to a string cannot fail.
        let _ = write!(text, " …");
    }
    text
}

/// Reason if a name of a listing sorts before the one that precedes it.
pub(crate) fn out_of_order(name: &[u8], before: &[u8]) -> String {
    format!("it is out of order: {} after {}", shown(name), shown(before))
}

/// Parses a decimal number of up to 64 bits.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// Parses `true` or `false`.
pub(crate) fn flag(text: &[u8]) -> Option<bool> {
    match text.trim_ascii() {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

/// Parses an ISO 8601 time.
pub(crate) fn time(text: &[u8]) -> Option<Time> {
    parse_iso(text.trim_ascii())
}

/// Parses non-empty UTF-8 text.
pub(crate) fn words(text: &[u8]) -> Option<String> {
    std::str::from_utf8(text).ok().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Requests a page, unless the run is asked to stop before or meanwhile: listings may be endless, and
/// cancelling a request is harmless.
///
/// # Errors
/// Those of the request and of `read`; `Stopped`.
pub(crate) async fn request_page<T>(
    client: &Client,
    request: &Request,
    read: impl Fn(&Response) -> Result<T, Error>,
) -> Result<T, Error> {
    let session = client.session();
    if session.is_stopped() {
        return Err(stopped(request.operation));
    }
    tokio::select! {
        page = send_and_read(client, request, read) => page,
        () = session.stopping() => Err(stopped(request.operation)),
    }
}

/// Length of the ETag of an object in 10,000 parts: 32 hexadecimal digits and `-10000`.
const SHORT_BYTES_MAX: usize = 38;

/// An ETag without quotes; a string.
#[derive(Clone)]
pub struct Etag(EtagForm);

#[derive(Clone)]
enum EtagForm {
    Short(ArrayString<SHORT_BYTES_MAX>),
    Long(Box<str>),
}

impl Etag {
    /// Parses an ETag with or without quotes.
    pub fn new(text: &str) -> Etag {
        unquoted(text).into()
    }

    /// The MD5 value, if it has the form of a single-part object's ETag. It is an MD5 unless the object is
    /// encrypted by KMS or a customer key. Lower-case digits only: no other text has this value.
    pub fn md5(&self) -> Option<[u8; 16]> {
        let mut value = [0; 16];
        if self.len() != 2 * value.len() || self.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        for (byte, pair) in value.iter_mut().zip(self.as_bytes().chunks_exact(2)) {
            *byte = hex_byte(Some(pair))?;
        }
        Some(value)
    }
}

impl Deref for Etag {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            EtagForm::Short(text) => text,
            EtagForm::Long(text) => text,
        }
    }
}

/// Takes the text as it is: its quotes have been removed.
impl From<&str> for Etag {
    fn from(text: &str) -> Etag {
        Etag(match ArrayString::from(text) {
            Ok(text) => EtagForm::Short(text),
            Err(_) => EtagForm::Long(text.into()),
        })
    }
}

impl From<String> for Etag {
    fn from(text: String) -> Etag {
        text.as_str().into()
    }
}

impl Default for Etag {
    fn default() -> Etag {
        "".into()
    }
}

impl PartialEq for Etag {
    fn eq(&self, other: &Etag) -> bool {
        **self == **other
    }
}

impl Eq for Etag {}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests;
