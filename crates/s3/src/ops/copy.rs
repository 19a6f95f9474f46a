//! CopyObject and UploadPartCopy: server-side copies.

use super::{Headers, Part, Put, Range, read, send_and_read, string};
use crate::header::{plain, quoted, some, unquoted};
use crate::sign::{encode_path, encode_query};
use crate::xml::Node;
use crate::{AccessPoint, Algorithm, Checksum, Client, CustomerKey, Error, Kind, Reply, Request};
use http::{HeaderName, Method};

const COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");
const COPY_SOURCE_IF_MATCH: HeaderName = HeaderName::from_static("x-amz-copy-source-if-match");
const COPY_SOURCE_RANGE: HeaderName = HeaderName::from_static("x-amz-copy-source-range");

/// Source of a copy.
#[derive(Clone, Debug)]
pub struct CopySource<'a> {
    /// Bucket.
    pub bucket: &'a str,
    /// Key.
    pub key: &'a [u8],
    /// Version.
    pub version: Option<&'a str>,
    /// The key that encrypts it, if the caller has one.
    pub customer_key: Option<&'a CustomerKey>,
    /// ETag: the copy fails with `Precondition` if the object has changed.
    pub etag: Option<&'a str>,
}

/// Copies an object of at most 5 GiB. An error in the body of a 200 response is treated and retried as an
/// error. `headers` contains `x-amz-metadata-directive` and related headers.
///
/// # Errors
/// `NotFound`, `Precondition`; those of the request.
pub async fn copy_object(
    client: &Client,
    source: &CopySource<'_>,
    bucket: &str,
    key: &[u8],
    headers: &Headers,
) -> Result<Put, Error> {
    let mut request = Request::new("CopyObject", Method::PUT, Some(bucket)).key(key);
    request.headers = headers.clone();
    let request = from(request, source)?;
    send_and_read(client, &request, |reply| {
        let (etag, checksum) = result(request.operation, reply, b"CopyObjectResult")?;
        Ok(Put { etag, version: some(&reply.headers, "x-amz-version-id"), checksum })
    })
    .await
}

/// Copies a range of an object to a part of an upload.
///
/// # Errors
/// As [`copy_object`]; `Invalid` for an empty range.
pub async fn upload_part_copy(
    client: &Client,
    source: &CopySource<'_>,
    range: Range,
    bucket: &str,
    key: &[u8],
    upload: &str,
    number: u32,
) -> Result<Part, Error> {
    const NAME: &str = "UploadPartCopy";
    let bytes = range.header().ok_or_else(|| Error::new(Kind::Invalid, NAME, "an empty range"))?;
    let request = Request::new(NAME, Method::PUT, Some(bucket))
        .key(key)
        .query("partNumber", number.to_string())
        .query("uploadId", upload)
        .header(COPY_SOURCE_RANGE, bytes);
    let request = from(request, source)?;
    send_and_read(client, &request, |reply| {
        let (etag, checksum) = result(NAME, reply, b"CopyPartResult")?;
        Ok(Part { number, size: range.end - range.start, etag, checksum })
    })
    .await
}

fn from(request: Request, source: &CopySource<'_>) -> Result<Request, Error> {
    // With an access point a resource type stands before the key (API reference, CopyObject).
    let kind = if AccessPoint::of(source.bucket).is_some() { "object/" } else { "" };
    let mut path = format!("{}/{kind}", source.bucket);
    encode_path(source.key, &mut path);
    if let Some(version) = source.version {
        path.push('?');
        path.push_str(&encode_query(&[("versionId", version.to_owned())]));
    }
    let mut request = request.header(COPY_SOURCE, plain(&path));
    request.headers.extend(source.customer_key.into_iter().flat_map(CustomerKey::of_copy_source));
    let Some(etag) = source.etag else { return Ok(request) };
    let etag = quoted(request.operation, etag)?;
    Ok(request.header(COPY_SOURCE_IF_MATCH, etag))
}

/// ETag and checksum of a copy.
fn result(
    operation: &'static str,
    reply: &Reply,
    root: &[u8],
) -> Result<(String, Option<Checksum>), Error> {
    let (mut etag, mut checksum) = (String::new(), None);
    read(operation, reply, root, |node| {
        let Node::Leaf { parent, name, text } = node else { return };
        if parent == root && name == b"ETag" {
            etag = unquoted(&string(text)).to_owned();
        } else if parent == root && checksum.is_none() {
            checksum = element(name, text);
        }
    })?;
    if etag.is_empty() {
        return Err(Error::new(Kind::Corrupt, operation, "the server copied without an ETag"));
    }
    Ok((etag, checksum))
}

/// Checksum in an element such as `ChecksumCRC32`.
pub(super) fn element(name: &[u8], text: &[u8]) -> Option<Checksum> {
    Checksum::decode(Algorithm::of_element(name)?, std::str::from_utf8(text).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Result<(String, Option<Checksum>), Error> {
        result("CopyObject", &Reply::of(body.to_owned()), b"CopyObjectResult")
    }

    #[test]
    fn a_source_is_encoded() {
        let source = CopySource {
            bucket: "b",
            key: b"/a b//../%",
            version: Some("v+1"),
            customer_key: None,
            etag: Some("e"),
        };
        let request = from(Request::new("CopyObject", Method::PUT, Some("t")), &source).unwrap();
        assert_eq!(request.headers[0].1, "b//a%20b//../%25?versionId=v%2B1");
        assert_eq!(request.headers[1].1, "\"e\"");
    }

    #[test]
    fn a_success_may_be_an_error() {
        let error = of("<Error><Code>InternalError</Code></Error>").unwrap_err();
        assert_eq!((error.kind, error.code.as_str()), (Kind::Server, "InternalError"));
        assert!(error.is_transient());
        for body in ["", "<CopyObjectResult/>", "<CopyObjectResult><ETag>\"e\"</ETag>"] {
            assert_eq!(of(body).unwrap_err().kind, Kind::Corrupt, "{body}");
        }
        let body = "<CopyObjectResult><ETag>&quot;e&quot;</ETag><ChecksumCRC32>y/Q5Jg==\
            </ChecksumCRC32></CopyObjectResult>";
        let crc = Checksum::of(Algorithm::Crc32, b"123456789");
        assert_eq!(of(body).unwrap(), ("e".to_owned(), Some(crc)));
    }
}
