//! CopyObject and UploadPartCopy: the server copies by itself.

use super::{Headers, Part, Range, read, send_and_read, string};
use crate::s3::header::{plain, quoted, some, unquoted};
use crate::s3::sign::{encode_path, encode_query};
use crate::s3::xml::Node;
use crate::s3::{Algorithm, Checksum, Client, Error, Kind, Reply, Request};
use http::{HeaderName, Method};

const COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");
const COPY_SOURCE_IF_MATCH: HeaderName = HeaderName::from_static("x-amz-copy-source-if-match");
const COPY_SOURCE_RANGE: HeaderName = HeaderName::from_static("x-amz-copy-source-range");

/// What is copied.
#[derive(Clone, Debug)]
pub struct CopySource<'a> {
    /// Its bucket.
    pub bucket: &'a str,
    /// Its key.
    pub key: &'a [u8],
    /// Its version.
    pub version: Option<&'a str>,
    /// Its ETag: the copy fails (`Precondition`) where it is another object by now.
    pub etag: Option<&'a str>,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Without quotes.
    pub etag: String,
    /// `x-amz-version-id` of the target.
    pub version: Option<String>,
}

/// Copies an object of at most 5 GiB. An error in the body of a 200 answer is an error, and is
/// tried again like one. `headers` carry `x-amz-metadata-directive` and what it needs.
///
/// # Errors
/// `NotFound`, `Precondition`; the request's.
pub async fn copy_object(
    client: &Client,
    source: &CopySource<'_>,
    bucket: &str,
    key: &[u8],
    headers: &Headers,
) -> Result<Copied, Error> {
    let mut request = Request::new("CopyObject", Method::PUT, Some(bucket)).key(key);
    request.headers = headers.clone();
    let request = from(request, source);
    send_and_read(client, &request, |reply| {
        let (etag, _) = result(request.operation, reply, b"CopyObjectResult")?;
        Ok(Copied { etag, version: some(&reply.headers, "x-amz-version-id") })
    })
    .await
}

/// Copies a range of an object into a part of an upload.
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
    let request = from(request, source);
    send_and_read(client, &request, |reply| {
        let (etag, checksum) = result(NAME, reply, b"CopyPartResult")?;
        Ok(Part { number, size: range.end - range.start, etag, checksum })
    })
    .await
}

fn from(request: Request, source: &CopySource<'_>) -> Request {
    let mut path = format!("{}/", source.bucket);
    encode_path(source.key, &mut path);
    if let Some(version) = source.version {
        path.push('?');
        path.push_str(&encode_query(&[("versionId", version.to_owned())]));
    }
    let request = request.header(COPY_SOURCE, plain(&path));
    match source.etag {
        Some(etag) => request.header(COPY_SOURCE_IF_MATCH, quoted(etag)),
        None => request,
    }
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

/// The checksum of an element such as `ChecksumCRC32`.
pub(super) fn element(name: &[u8], text: &[u8]) -> Option<Checksum> {
    let of = |algorithm: &Algorithm| algorithm.element().as_bytes() == name;
    let algorithm = Algorithm::ALL.into_iter().find(of)?;
    Checksum::decode(algorithm, std::str::from_utf8(text).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};

    fn of(body: &str) -> Result<(String, Option<Checksum>), Error> {
        let body = Bytes::from(body.to_owned());
        let reply = Reply { status: StatusCode::OK, headers: HeaderMap::new(), body };
        result("CopyObject", &reply, b"CopyObjectResult")
    }

    #[test]
    fn a_source_is_encoded() {
        let source =
            CopySource { bucket: "b", key: b"/a b//../%", version: Some("v+1"), etag: Some("e") };
        let request = from(Request::new("CopyObject", Method::PUT, Some("t")), &source);
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
