//! GetObject, with a check of the response against the request; HeadObject and object properties in headers;
//! GetObjectTagging.

use crate::header::{checksums, etag, metadata_of, plain, quoted, some, text, unquoted};
use crate::time::parse_http;
use crate::xml::{self, Node};
use crate::{Checksum, Client, Download, Error, ErrorKind, Request};
use hakobu_core::percent;
use hakobu_core::unit::Time;
use http::header::{IF_MATCH, RANGE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

const GET: &str = "GetObject";

/// Byte range of an object: `start` to `end`, exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// Offset after the last byte.
    pub end: u64,
}

impl Range {
    /// In HTTP form with inclusive ends. `None` for an empty range, which HTTP cannot express.
    pub(crate) fn header(self) -> Option<HeaderValue> {
        let last = self.end.checked_sub(1).filter(|last| *last >= self.start)?;
        Some(plain(&format!("bytes={}-{last}", self.start)))
    }
}

/// Requested object or range, and known facts about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct GetOptions<'a> {
    pub version: Option<&'a str>,
    /// Range. Its end may be beyond that of the object.
    pub range: Option<Range>,
    /// Required ETag, without quotes.
    pub etag: Option<&'a str>,
    /// Size from a listing, or from the start of reading.
    pub size: Option<u64>,
}

/// Starts to read an object. The response is checked against the request and known facts: status, ETag,
/// version, `Content-Range`, and length. A body without a length must have that of the object, which is
/// requested separately if unknown. Stored checksums are requested if downloads are verified.
///
/// # Errors
/// `NotFound`; `Precondition` if the object has changed; `Corrupt` if the response contradicts the request,
/// or the known size under the same ETag; `NotImplemented` for ranges; `Invalid` for an empty range; those of
/// the request.
pub async fn get_object(
    client: &Client,
    bucket: &str,
    key: &[u8],
    wanted: &GetOptions<'_>,
) -> Result<Download, Error> {
    let request = request(bucket, key, wanted, client.session().checks_downloads())?;
    let mut tried = 1;
    loop {
        let mut download = client.download(&request).await?;
        let length = match stretch(download.status, &download.headers, wanted) {
            Ok(Some(known)) => Ok(known),
            Ok(None) => length_of(client, bucket, key, wanted, &etag(&download.headers)).await,
            Err(error) => Err(Error { status: download.status.as_u16(), ..error }),
        };
        match length {
            Ok((bytes, size)) => {
                download.expects(bytes, size);
                return Ok(download);
            }
            Err(error) if !error.is_transient() => return Err(error),
            Err(error) => {
                drop(download);
                if !client.may_retry(tried, &error).await {
                    return Err(Error { tries: tried, ..error });
                }
                tried += 1;
            }
        }
    }
}

/// Requests the length of a whole object whose GET does not provide it.
async fn length_of(
    client: &Client,
    bucket: &str,
    key: &[u8],
    wanted: &GetOptions<'_>,
    etag: &str,
) -> Result<Stretch, Error> {
    let head = head_object(client, bucket, key, wanted.version).await?;
    match head.etag == etag {
        true => Ok((head.size, head.size)),
        false => Err(other_object(&head.etag, etag)),
    }
}

/// Length of a body, and size of the whole object, in bytes.
type Stretch = (u64, u64);

/// Checks the head of a response against the request. `None` if server and caller do not know the length.
fn stretch(
    status: StatusCode,
    headers: &HeaderMap,
    wanted: &GetOptions<'_>,
) -> Result<Option<Stretch>, Error> {
    let corrupt = |what: String| Err(Error::new(ErrorKind::Corrupt, GET, what));
    if let Some(asked) = wanted.etag {
        let found = etag(headers);
        if found != unquoted(asked) {
            return Err(other_object(&found, asked));
        }
    }
    check_version(GET, "sent", wanted.version, headers)?;
    let length = match some(headers, "content-length") {
        None => None,
        Some(text) => match text.trim().parse() {
            Ok(bytes) => Some(bytes),
            Err(_) => return corrupt("the response has an unreadable Content-Length".to_owned()),
        },
    };
    // A server may respond with the whole object to a range that covers it.
    let takes_in = |range: Range| {
        let size = wanted.size.or(length);
        range.start == 0 && size.is_some_and(|size| size <= range.end)
    };
    let range_text = some(headers, "content-range");
    // Some servers send a range with status 200. Its length tells it from a whole object.
    let is_part = status == StatusCode::PARTIAL_CONTENT || range_text.is_some() && length.is_some();
    let found = match (status, wanted.range) {
        (_, Some(range)) if is_part => {
            let Some(sent) = range_text.as_deref().and_then(content_range) else {
                return corrupt("the server sent a part without a readable Content-Range".into());
            };
            let asked = Range { start: range.start, end: range.end.min(sent.size) };
            if (sent.start, sent.end) != (asked.start, asked.end) {
                let Range { start, end } = asked;
                let range_text = range_text.unwrap_or_default();
                return corrupt(format!(
                    "the server sent {range_text} where {start} to {end} was asked"
                ));
            }
            Some((sent.end - sent.start, sent.size))
        }
        (StatusCode::PARTIAL_CONTENT, None) => {
            return corrupt("the server sent a part of the object instead of the whole".into());
        }
        (_, Some(range)) if !takes_in(range) => {
            let why = "the server does not support ranges";
            return Err(Error::new(ErrorKind::NotImplemented, GET, why));
        }
        _ => length.or(wanted.size).map(|size| (size, size)),
    };
    if let (Some(known), Some((_, size))) = (wanted.size, found)
        && known != size
    {
        return Err(other_size(wanted.etag, known, size));
    }
    match (found, length) {
        (Some((bytes, _)), Some(length)) if bytes != length => {
            corrupt(format!("the server sends {length} bytes as {bytes}"))
        }
        _ => Ok(found),
    }
}

fn other_object(found: &str, asked: &str) -> Error {
    let what = format!("the server has another object by now (ETag {found} instead of {asked})");
    Error::new(ErrorKind::Precondition, GET, what)
}

fn request(
    bucket: &str,
    key: &[u8],
    wanted: &GetOptions<'_>,
    checked: bool,
) -> Result<Request, Error> {
    let get = Request::new(GET, Method::GET, Some(bucket)).key(key);
    let mut request = looked_at(get, wanted.version, checked);
    if let Some(range) = wanted.range {
        let empty = || Error::new(ErrorKind::Invalid, GET, "a range of no bytes");
        request = request.header(RANGE, range.header().ok_or_else(empty)?);
    }
    if let Some(etag) = wanted.etag {
        request = request.header(IF_MATCH, quoted(GET, etag)?);
    }
    Ok(request)
}

const CHECKSUM_MODE: HeaderName = HeaderName::from_static("x-amz-checksum-mode");

/// Properties of an object from its headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectHead {
    /// Size of the whole object in bytes (from Content-Range for a range).
    pub size: u64,
    /// LastModified.
    pub mtime: Time,
    /// ETag without quotes.
    pub etag: String,
    /// `x-amz-version-id`.
    pub version: Option<String>,
    /// Stored checksums of the whole object; empty for a range, because servers differ in whether they refer
    /// to the range or the whole.
    pub checksums: Vec<Checksum>,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `x-amz-storage-class`; empty for STANDARD.
    pub storage_class: String,
    /// `x-amz-meta-*`: lower-case names without that prefix, decoded values.
    pub metadata: Vec<(String, String)>,
    /// All headers, for `head` and `stat`.
    pub headers: HeaderMap,
}

impl ObjectHead {
    /// Seconds since 1970 by the server's clock when it responded (`Date`).
    pub fn date_s(&self) -> Option<i64> {
        date_s(&self.headers)
    }
}

/// The `Date` of a response in seconds since 1970.
pub(crate) fn date_s(headers: &HeaderMap) -> Option<i64> {
    Some(parse_http(headers.get("date")?.to_str().ok()?)?.s)
}

/// Parses the headers of HeadObject or GetObject, which have been validated (`response.rs`).
pub fn head_of(headers: &HeaderMap) -> ObjectHead {
    let ranged = some(headers, "content-range").and_then(|range| content_range(&range));
    let (size, whole) = match ranged {
        Some(sent) => (sent.size, sent.end - sent.start == sent.size),
        None => (text(headers, "content-length").trim().parse().unwrap_or(0), true),
    };
    let class = text(headers, "x-amz-storage-class");
    ObjectHead {
        size,
        mtime: parse_http(&text(headers, "last-modified")).unwrap_or_default(),
        etag: etag(headers),
        version: some(headers, "x-amz-version-id"),
        checksums: if whole { checksums(headers) } else { Vec::new() },
        content_type: some(headers, "content-type"),
        storage_class: if class == "STANDARD" { String::new() } else { class },
        metadata: metadata_of(headers),
        headers: headers.clone(),
    }
}

/// A `Content-Range`: `start` to `end` (exclusive) of `size` bytes.
pub(crate) struct ContentRange {
    pub start: u64,
    pub end: u64,
    pub size: u64,
}

/// Parses `bytes 0-9/443`; `None` for anything else, and for a range beyond the size.
pub(crate) fn content_range(text: &str) -> Option<ContentRange> {
    let (range, size) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let size = size.parse().ok()?;
    let (first, last) = range.split_once('-')?;
    let (start, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let end = last.checked_add(1)?;
    (start < end && end <= size).then_some(ContentRange { start, end, size })
}

/// Error for an object with a different size than known. Under the same ETag this is not a change of the object.
pub(crate) fn other_size(etag: Option<&str>, known: u64, found: u64) -> Error {
    let (kind, same) = match etag {
        Some(_) => (ErrorKind::Corrupt, " under the same ETag"),
        None => (ErrorKind::Precondition, ""),
    };
    let what = format!("the server has {found} bytes of it, where {known} were listed{same}");
    Error::new(kind, GET, what)
}

/// Adds the parameters common to GetObject and HeadObject.
pub(crate) fn looked_at(request: Request, version: Option<&str>, checked: bool) -> Request {
    let request = request.query_if("versionId", version);
    match checked {
        true => request.header(CHECKSUM_MODE, HeaderValue::from_static("ENABLED")),
        false => request,
    }
}

/// Checks that the server acted on the requested version; `did` says what it did.
///
/// # Errors
/// `Corrupt` if it names another one.
pub(crate) fn check_version(
    operation: &'static str,
    did: &str,
    asked: Option<&str>,
    headers: &HeaderMap,
) -> Result<(), Error> {
    match (asked, some(headers, "x-amz-version-id")) {
        (Some(asked), Some(found)) if asked != found => {
            let what = format!("the server {did} version {found} instead of {asked}");
            Err(Error::new(ErrorKind::Corrupt, operation, what))
        }
        _ => Ok(()),
    }
}

impl ObjectHead {
    /// Compares known facts about an object (ETag, empty if unknown, and size) with this state. Returns false
    /// if the object has changed.
    ///
    /// # Errors
    /// `Corrupt` for another size under the same ETag; `Precondition` for another size without a known ETag.
    pub fn is_still(&self, etag: &str, size: u64) -> Result<bool, Error> {
        match (etag.is_empty(), self.size == size) {
            (true, true) => Ok(true),
            (true, false) => Err(other_size(None, size, self.size)),
            (false, _) if etag != self.etag => Ok(false),
            (false, true) => Ok(true),
            (false, false) => Err(other_size(Some(etag), size, self.size)),
        }
    }
}

/// Requests the headers of an object, including stored checksums.
///
/// # Errors
/// `NotFound`; `Corrupt` for those of another version; those of the request.
pub async fn head_object(
    client: &Client,
    bucket: &str,
    key: &[u8],
    version: Option<&str>,
) -> Result<ObjectHead, Error> {
    let head = Request::new("HeadObject", Method::HEAD, Some(bucket)).key(key);
    let response = client.send(&looked_at(head, version, true)).await?;
    check_version("HeadObject", "returned", version, &response.headers)?;
    Ok(head_of(&response.headers))
}

/// Tags of an object in the form of `x-amz-tagging`: a query string (API reference, PutObject).
///
/// # Errors
/// `NotFound`; those of the request; `Corrupt` for a malformed response.
pub async fn get_tags(
    client: &Client,
    bucket: &str,
    key: &[u8],
    version: Option<&str>,
) -> Result<String, Error> {
    let request = Request::new(TAGGING, Method::GET, Some(bucket))
        .key(key)
        .query("tagging", "")
        .query_if("versionId", version);
    query_of(&client.send(&request).await?.body)
}

const TAGGING: &str = "GetObjectTagging";

fn query_of(document: &[u8]) -> Result<String, Error> {
    let mut query = String::new();
    let walked = xml::walk(document, b"Tagging", |node| {
        if let Node::Leaf { parent: b"Tag", name, text } = node {
            match name {
                b"Key" if !query.is_empty() => query.push('&'),
                b"Value" => query.push('='),
                _ => {}
            }
            percent::encode(text, false, &mut query);
        }
    });
    let wrong = |_| Error::new(ErrorKind::Corrupt, TAGGING, "the tags cannot be read");
    walked.map(|()| query).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;
    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    #[test]
    fn a_range_includes_its_last_byte() {
        let range = Some(Range { start: 5, end: 10 });
        let wanted = GetOptions { version: Some("v"), range, etag: Some("e"), size: None };
        let get = request("b", b"k", &wanted, true).unwrap();
        assert_eq!(get.query, [("versionId", "v".to_owned())]);
        let header = |name: &str| get.headers.iter().find(|(n, _)| n == name).unwrap().1.clone();
        assert_eq!(header("range"), "bytes=5-9");
        assert_eq!(header("if-match"), "\"e\"");
        assert_eq!(header("x-amz-checksum-mode"), "ENABLED");
        for (start, end) in [(0, 0), (5, 5), (6, 5)] {
            let wanted = GetOptions { range: Some(Range { start, end }), ..GetOptions::default() };
            assert!(request("b", b"k", &wanted, false).is_err());
        }
    }

    fn answer(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    const WHOLE: StatusCode = StatusCode::OK;
    const PART: StatusCode = StatusCode::PARTIAL_CONTENT;

    #[test]
    fn the_whole_has_the_size_that_is_known() {
        let wanted = GetOptions { etag: Some("e"), size: Some(14), ..GetOptions::default() };
        let of = |status, pairs: &[(&str, &str)]| {
            stretch(status, &answer(pairs), &wanted).map_err(|error| error.kind)
        };
        let whole = Ok(Some((14, 14)));
        assert_eq!(of(WHOLE, &[("etag", "\"e\""), ("content-length", "14")]), whole);
        // A body without a length must have the known one.
        assert_eq!(of(WHOLE, &[("etag", "W/\"e\"")]), whole);
        let short = [("etag", "\"e\""), ("content-length", "5")];
        assert_eq!(of(WHOLE, &short), Err(ErrorKind::Corrupt));
        let other = [("etag", "\"f\""), ("content-length", "14")];
        assert_eq!(of(WHOLE, &other), Err(ErrorKind::Precondition));
        let part =
            [("etag", "\"e\""), ("content-range", "bytes 0-13/14"), ("content-length", "14")];
        assert_eq!(of(PART, &part), Err(ErrorKind::Corrupt));
        let unknown = stretch(WHOLE, &answer(&[("etag", "e")]), &GetOptions::default());
        assert_eq!(unknown.unwrap(), None);
    }

    #[test]
    fn a_part_is_the_one_that_was_asked_for() {
        let range = Some(Range { start: 5, end: 10 });
        let wanted =
            GetOptions { range, etag: Some("e"), size: Some(443), ..GetOptions::default() };
        let of = |range_text: &str, wanted: &GetOptions<'_>| {
            let headers = answer(&[("etag", "\"e\""), ("content-range", range_text)]);
            stretch(PART, &headers, wanted).map_err(|error| error.kind)
        };
        let good = Ok(Some((5, 443)));
        assert_eq!(of("bytes 5-9/443", &wanted), good);
        for wrong in [
            "bytes 4-9/443",
            "bytes 5-8/443",
            "bytes 5-10/443",
            "bytes 5-9/444",
            "bytes 5-9/*",
            "bytes */443",
            "bytes 5-9",
            "items 5-9/443",
            "",
        ] {
            assert_eq!(of(wrong, &wanted), Err(ErrorKind::Corrupt), "{wrong}");
        }
        let other = answer(&[("etag", "\"f\""), ("content-range", "bytes 5-9/443")]);
        assert_eq!(stretch(PART, &other, &wanted).unwrap_err().kind, ErrorKind::Precondition);
        let whole = answer(&[("etag", "\"e\""), ("content-length", "443")]);
        assert_eq!(stretch(WHOLE, &whole, &wanted).unwrap_err().kind, ErrorKind::NotImplemented);
        let open = Range { start: 5, end: u64::MAX };
        let open = GetOptions { range: Some(open), ..GetOptions::default() };
        let rest = Ok(Some((438, 443)));
        assert_eq!(of("bytes 5-442/443", &open), rest);
        assert_eq!(of("bytes 5-441/443", &open), Err(ErrorKind::Corrupt));
    }

    proptest! {
        /// Only the requested range of an object of the known size is accepted.
        #[test]
        fn nothing_else_is_accepted(
            first in 0..20_u64, last in 0..20_u64, size in 0..20_u64, length in 0..20_u64,
            start in 0..10_u64, bytes in 1..10_u64, known in prop::option::of(0..20_u64),
        ) {
            let range = Range { start, end: start + bytes };
            let wanted = GetOptions { range: Some(range), size: known, ..GetOptions::default() };
            let range_text = format!("bytes {first}-{last}/{size}");
            let headers = answer(&[("content-range", &range_text), ("content-length", &length.to_string())]);
            if let Ok(found) = stretch(PART, &headers, &wanted) {
                prop_assert_eq!((first, last + 1), (start, range.end.min(size)));
                prop_assert!(known.is_none_or(|known| known == size) && last < size);
                prop_assert_eq!(found, Some((length, size)));
            }
        }
    }

    fn head(pairs: &[(&str, &str)]) -> ObjectHead {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::try_from(*name).unwrap();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
        }
        head_of(&headers)
    }

    #[test]
    fn headers_of_an_object() {
        let head = head(&[
            ("Content-Length", "12"),
            ("Last-Modified", "Fri, 24 May 2013 00:00:01 GMT"),
            ("ETag", "\"e\""),
            ("x-amz-checksum-crc32", "y/Q5Jg==-2"),
            ("x-amz-checksum-sha1", "nonsense"),
            ("x-amz-storage-class", "STANDARD"),
            ("x-amz-meta-mtime", "5.5"),
        ]);
        assert_eq!((head.size, head.mtime.s, head.etag.as_str()), (12, 1_369_353_601, "e"));
        let [checksum] = &head.checksums[..] else { panic!("{:?}", head.checksums) };
        assert_eq!((checksum.algorithm, checksum.parts), (Algorithm::Crc32, 2));
        assert_eq!(head.storage_class, "");
        assert_eq!(head.metadata, [("mtime".to_owned(), "5.5".to_owned())]);
        assert_eq!(head.version, None);
    }

    #[test]
    fn a_part_tells_the_size_of_the_whole_and_no_checksum_of_it() {
        let crc = ("x-amz-checksum-crc32", "y/Q5Jg==");
        let part = head(&[("content-length", "5"), ("content-range", "bytes 5-9/443"), crc]);
        assert_eq!((part.size, part.checksums.len()), (443, 0));
        let whole = head(&[("content-length", "10"), ("content-range", "bytes 0-9/10"), crc]);
        assert_eq!((whole.size, whole.checksums.len()), (10, 1));
        for odd in ["bytes */5", "bytes 9-0/5", "items 0-1/2", "bytes 0-18446744073709551615/5"] {
            assert_eq!(head(&[("content-length", "3"), ("content-range", odd)]).size, 3, "{odd}");
        }
    }

    #[test]
    fn tags_become_a_query() {
        let document = b"<?xml version=\"1.0\"?><Tagging xmlns=\"u\"><TagSet><Tag><Key>a b</Key>\
        <Value>1&amp;2=3</Value></Tag><Tag><Key>k</Key><Value/></Tag></TagSet></Tagging>";
        assert_eq!(query_of(document).unwrap(), "a%20b=1%262%3D3&k=");
        assert_eq!(query_of(b"<Tagging><TagSet/></Tagging>").unwrap(), "");
        assert!(query_of(b"<Error/>").is_err());
    }
}
