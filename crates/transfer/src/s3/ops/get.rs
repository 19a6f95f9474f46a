//! GetObject.

use crate::s3::header::{plain, quoted};
use crate::s3::{Client, Download, Error, Kind, Request};
use http::header::{IF_MATCH, RANGE};
use http::{HeaderName, HeaderValue, Method};

const CHECKSUM_MODE: HeaderName = HeaderName::from_static("x-amz-checksum-mode");

/// Bytes of an object: `start` to `end`, exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// One past the last.
    pub end: u64,
}

impl Range {
    /// As HTTP writes it: both ends included. `None` for an empty range, which HTTP does not have.
    pub(super) fn header(self) -> Option<HeaderValue> {
        let last = self.end.checked_sub(1).filter(|last| *last >= self.start)?;
        Some(plain(&format!("bytes={}-{last}", self.start)))
    }
}

/// Begins to read an object. `if_match` makes it fail (`Precondition`) when the object is another
/// one than the ETag says. Stored checksums are asked for where downloads are checked.
///
/// # Errors
/// `NotFound`, `Precondition`; `Invalid` for an empty range; the request's.
pub async fn get_object(
    client: &Client,
    bucket: &str,
    key: &[u8],
    version: Option<&str>,
    range: Option<Range>,
    if_match: Option<&str>,
) -> Result<Download, Error> {
    let checked = client.store().checks_downloads();
    let request = request(bucket, key, version, range, if_match, checked)?;
    client.download(&request).await
}

fn request(
    bucket: &str,
    key: &[u8],
    version: Option<&str>,
    range: Option<Range>,
    if_match: Option<&str>,
    checked: bool,
) -> Result<Request, Error> {
    let get = Request::new("GetObject", Method::GET, Some(bucket)).key(key);
    let mut request = looked_at(get, version, checked);
    if let Some(range) = range {
        let empty = || Error::new(Kind::Invalid, "GetObject", "a range of no bytes");
        request = request.header(RANGE, range.header().ok_or_else(empty)?);
    }
    if let Some(etag) = if_match {
        request = request.header(IF_MATCH, quoted(etag));
    }
    Ok(request)
}

/// What GetObject and HeadObject have in common.
pub(super) fn looked_at(mut request: Request, version: Option<&str>, checked: bool) -> Request {
    if let Some(version) = version {
        request = request.query("versionId", version);
    }
    if checked {
        request = request.header(CHECKSUM_MODE, HeaderValue::from_static("ENABLED"));
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_includes_its_last_byte() {
        let range = Range { start: 5, end: 10 };
        let get = request("b", b"k", Some("v"), Some(range), Some("e"), true).unwrap();
        assert_eq!(get.query, [("versionId", "v".to_owned())]);
        let header = |name: &str| get.headers.iter().find(|(n, _)| n == name).unwrap().1.clone();
        assert_eq!(header("range"), "bytes=5-9");
        assert_eq!(header("if-match"), "\"e\"");
        assert_eq!(header("x-amz-checksum-mode"), "ENABLED");
        for (start, end) in [(0, 0), (5, 5), (6, 5)] {
            assert!(request("b", b"k", None, Some(Range { start, end }), None, false).is_err());
        }
    }
}
