//! HeadObject, and object properties in headers.

use crate::header::{checksums, etag, metadata_of, some, text};
use crate::time::parse_http;
use crate::{Checksum, Client, Error, Kind, Request};
use hakobu_core::unit::Time;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

const CHECKSUM_MODE: HeaderName = HeaderName::from_static("x-amz-checksum-mode");
/// Operation that reads the content of the object.
const GET: &str = "GetObject";

/// Properties of an object from its headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
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

/// Parses the headers of HeadObject or GetObject, which have been validated (`s3/answer.rs`).
pub fn head_of(headers: &HeaderMap) -> Head {
    let ranged = some(headers, "content-range").and_then(|range| content_range(&range));
    let (size, whole) = match ranged {
        Some(sent) => (sent.size, sent.end - sent.start == sent.size),
        None => (text(headers, "content-length").trim().parse().unwrap_or(0), true),
    };
    let class = text(headers, "x-amz-storage-class");
    Head {
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
pub(super) struct Sent {
    pub start: u64,
    pub end: u64,
    pub size: u64,
}

/// Parses `bytes 0-9/443`; `None` for anything else, and for a range beyond the size.
pub(super) fn content_range(text: &str) -> Option<Sent> {
    let (range, size) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let size = size.parse().ok()?;
    let (first, last) = range.split_once('-')?;
    let (start, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let end = last.checked_add(1)?;
    (start < end && end <= size).then_some(Sent { start, end, size })
}

/// Error for an object with a different size than known. Under the same ETag this is not a change of the object.
pub(super) fn other_size(etag: Option<&str>, known: u64, found: u64) -> Error {
    let (kind, same) = match etag {
        Some(_) => (Kind::Corrupt, " under the same ETag"),
        None => (Kind::Precondition, ""),
    };
    let what = format!("the server has {found} bytes of it, where {known} were listed{same}");
    Error::new(kind, GET, what)
}

/// Adds the parameters common to GetObject and HeadObject.
pub(super) fn looked_at(request: Request, version: Option<&str>, checked: bool) -> Request {
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
pub(super) fn check_version(
    operation: &'static str,
    did: &str,
    asked: Option<&str>,
    headers: &HeaderMap,
) -> Result<(), Error> {
    match (asked, some(headers, "x-amz-version-id")) {
        (Some(asked), Some(found)) if asked != found => {
            let what = format!("the server {did} version {found} instead of {asked}");
            Err(Error::new(Kind::Corrupt, operation, what))
        }
        _ => Ok(()),
    }
}

impl Head {
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
) -> Result<Head, Error> {
    let head = Request::new("HeadObject", Method::HEAD, Some(bucket)).key(key);
    let reply = client.send(&looked_at(head, version, true)).await?;
    check_version("HeadObject", "returned", version, &reply.headers)?;
    Ok(head_of(&reply.headers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;
    use http::{HeaderName, HeaderValue};

    fn head(pairs: &[(&str, &str)]) -> Head {
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
}
