//! PutObject; CopyObject and UploadPartCopy: copies by the server.

use crate::customer_key::is_encrypted;
use crate::header::{checksums, etag, plain, quoted, some, unquoted};
use crate::ops::{Headers, Part, Range, date_s, head_object, read, send_and_read, string};
use crate::sign::{encode_path, encode_query};
use crate::time::parse_iso;
use crate::xml::Node;
use crate::{
    AccessPoint, Algorithm, Checksum, Client, CustomerKey, Error, ErrorKind, Request, Response,
};
use bytes::Bytes;
use hakobu_core::unit::Time;
use http::header::CONTENT_TYPE;
use http::{HeaderName, Method};

const SDK_ALGORITHM: HeaderName = HeaderName::from_static("x-amz-sdk-checksum-algorithm");

/// Result of an upload or a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutResult {
    /// ETag without quotes.
    pub etag: String,
    /// `x-amz-version-id`.
    pub version: Option<String>,
    /// Checksum stored by the server, if returned.
    pub checksum: Option<Checksum>,
    /// Seconds since 1970 by the server's clock when it responded (`Date`); `None` if the object was found to be written
    /// by other means than this response.
    pub date_s: Option<i64>,
    /// LastModified of a copy.
    pub mtime: Option<Time>,
}

/// Uploads a whole object in one request. The server verifies `checksum`; if it returns a different one, or
/// an ETag that is another MD5, the error is `Corrupt`. If a condition (`If-None-Match`) fails because an
/// earlier attempt was executed whose response was lost, the object is checked, and the result is a success.
///
/// # Errors
/// `Precondition`; `Corrupt`; those of the request.
pub async fn put_object(
    client: &Client,
    bucket: &str,
    key: &[u8],
    body: Bytes,
    checksum: Option<&Checksum>,
    headers: &Headers,
) -> Result<PutResult, Error> {
    let request = request(bucket, key, body, checksum, headers);
    send_checked(client, &request, checksum).await
}

/// Sends a body, and repeats it if the server stored something else, within the attempts of a request.
///
/// # Errors
/// `Corrupt`; `Precondition`; those of the request.
pub(crate) async fn send_checked(
    client: &Client,
    request: &Request,
    checksum: Option<&Checksum>,
) -> Result<PutResult, Error> {
    // A second attempt with this condition would fail because of the first one.
    let once = request.headers.iter().any(|(name, _)| *name == http::header::IF_NONE_MATCH);
    let read = |response: &Response| put_of(request.operation, response, checksum);
    let ended = match once {
        true => client.send(request).await.and_then(|response| read(&response)),
        false => send_and_read(client, request, read).await,
    };
    match ended {
        Err(error) if error.kind == ErrorKind::Precondition && error.unsure => {
            stored_before(client, request, checksum, error).await
        }
        ended => ended,
    }
}

/// Result of an earlier attempt, if the object has the sent content. Otherwise the refusal stands.
///
/// # Errors
/// `refused`; those of the request if the state is unknown.
async fn stored_before(
    client: &Client,
    request: &Request,
    checksum: Option<&Checksum>,
    refused: Error,
) -> Result<PutResult, Error> {
    let (Some(bucket), Some(key)) = (&request.bucket, &request.key) else { return Err(refused) };
    let head = match head_object(client, bucket, key, None).await {
        Ok(head) => head,
        Err(gone) if gone.kind == ErrorKind::NotFound => return Err(refused),
        Err(error) => return Err(error),
    };
    let same_checksum = checksum.is_some_and(|sent| head.checksums.contains(sent));
    let same_etag =
        || Checksum::of(Algorithm::Md5, &request.body).etag() == Some(head.etag.clone());
    match head.size == request.body.len() as u64 && (same_checksum || same_etag()) {
        true => Ok(PutResult {
            checksum: checksum.filter(|_| same_checksum).cloned(),
            etag: head.etag,
            version: head.version,
            ..PutResult::default()
        }),
        false => Err(refused),
    }
}

fn request(
    bucket: &str,
    key: &[u8],
    body: Bytes,
    checksum: Option<&Checksum>,
    headers: &Headers,
) -> Request {
    let mut request = Request::new("PutObject", Method::PUT, Some(bucket)).key(key).body(body);
    request.headers = headers.clone();
    with_checksum(request, checksum)
}

/// Adds the checksum of the body to a request.
pub(crate) fn with_checksum(request: Request, checksum: Option<&Checksum>) -> Request {
    let Some(checksum) = checksum else { return request };
    let name = checksum.algorithm.name();
    let request = request.header(checksum.algorithm.header(), plain(&checksum.encode()));
    match checksum.algorithm {
        Algorithm::Md5 => request, // needs no header
        _ => request.header(SDK_ALGORITHM, plain(name)),
    }
}

/// Adds a document and its checksums to a request: newer servers require any checksum, older ones an MD5.
pub(crate) fn with_document(request: Request, body: String) -> Request {
    let sums = [Algorithm::Md5, Algorithm::Crc32].map(|of| Checksum::of(of, body.as_bytes()));
    let request = request.header(CONTENT_TYPE, plain("application/xml")).body(body);
    sums.iter().fold(request, |request, sum| with_checksum(request, Some(sum)))
}

/// Parses the headers of a response to an upload, and compares the stored object with the sent content.
fn put_of(
    operation: &'static str,
    response: &Response,
    sent: Option<&Checksum>,
) -> Result<PutResult, Error> {
    let headers = &response.headers;
    let mut stored = checksums(headers);
    let etag = etag(headers);
    if let Some(sent) = sent {
        let other = stored.iter().find(|one| one.algorithm == sent.algorithm && *one != sent);
        if let Some(other) = other {
            return Err(content_mismatch(operation, response, &other.encode(), &sent.encode()));
        }
        // With KMS and keys of the caller an ETag looks like an MD5, but is none.
        let plainly = some(headers, "x-amz-server-side-encryption").is_none_or(|v| v == "AES256")
            && !is_encrypted(headers);
        let is_md5 = etag.len() == 32 && etag.bytes().all(|b| b.is_ascii_hexdigit());
        if let Some(own) = sent.etag().filter(|_| plainly && is_md5)
            && !own.eq_ignore_ascii_case(&etag)
        {
            return Err(content_mismatch(operation, response, &etag, &own));
        }
        stored.retain(|one| one.algorithm == sent.algorithm);
    }
    let version = some(headers, "x-amz-version-id");
    let (checksum, date_s) = (stored.into_iter().next(), date_s(headers));
    Ok(PutResult { etag, version, checksum, date_s, mtime: None })
}

fn content_mismatch(
    operation: &'static str,
    response: &Response,
    stored: &str,
    sent: &str,
) -> Error {
    let message = format!("the body arrived damaged (stored: {stored}, sent: {sent})");
    let status = response.status.as_u16();
    Error { status, ..Error::new(ErrorKind::Corrupt, operation, message) }
}

const COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");
const COPY_SOURCE_IF_MATCH: HeaderName = HeaderName::from_static("x-amz-copy-source-if-match");
const COPY_SOURCE_RANGE: HeaderName = HeaderName::from_static("x-amz-copy-source-range");

#[derive(Clone, Debug)]
pub struct CopySource<'a> {
    pub bucket: &'a str,
    pub key: &'a [u8],
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
) -> Result<PutResult, Error> {
    let mut request = Request::new("CopyObject", Method::PUT, Some(bucket)).key(key);
    request.headers = headers.clone();
    let request = with_source(request, source)?;
    send_and_read(client, &request, |response| {
        let copied = copy_result(request.operation, response, b"CopyObjectResult")?;
        let version = some(&response.headers, "x-amz-version-id");
        Ok(PutResult { version, date_s: date_s(&response.headers), ..copied })
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
    let bytes =
        range.header().ok_or_else(|| Error::new(ErrorKind::Invalid, NAME, "an empty range"))?;
    let request = Request::new(NAME, Method::PUT, Some(bucket))
        .key(key)
        .query("partNumber", number.to_string())
        .query("uploadId", upload)
        .header(COPY_SOURCE_RANGE, bytes);
    let request = with_source(request, source)?;
    send_and_read(client, &request, |response| {
        let PutResult { etag, checksum, .. } = copy_result(NAME, response, b"CopyPartResult")?;
        Ok(Part { number, size: range.end - range.start, etag, checksum })
    })
    .await
}

fn with_source(request: Request, source: &CopySource<'_>) -> Result<Request, Error> {
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

/// ETag, checksum and LastModified of a copy.
fn copy_result(
    operation: &'static str,
    response: &Response,
    root: &[u8],
) -> Result<PutResult, Error> {
    let (mut etag, mut checksum, mut mtime) = (String::new(), None, None);
    read(operation, response, root, |node| {
        let Node::Leaf { parent, name, text } = node else { return };
        if parent == root && name == b"ETag" {
            etag = unquoted(&string(text)).to_owned();
        } else if parent == root && name == b"LastModified" {
            mtime = parse_iso(text);
        } else if parent == root && checksum.is_none() {
            checksum = element(name, text);
        }
    })?;
    if etag.is_empty() {
        return Err(Error::new(ErrorKind::Corrupt, operation, "the server copied without an ETag"));
    }
    Ok(PutResult { etag, checksum, mtime, ..PutResult::default() })
}

/// Checksum in an element such as `ChecksumCRC32`.
pub(crate) fn element(name: &[u8], text: &[u8]) -> Option<Checksum> {
    Checksum::decode(Algorithm::of_element(name)?, std::str::from_utf8(text).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue, StatusCode};

    fn response(pairs: &[(&'static str, &str)]) -> Response {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        Response { status: StatusCode::OK, headers, body: Bytes::new() }
    }

    #[test]
    fn a_request_carries_its_checksum() {
        let crc = Checksum::of(Algorithm::Crc64Nvme, b"abc");
        let given = vec![(http::header::CONTENT_TYPE, HeaderValue::from_static("text/plain"))];
        let put = request("b", b"k", Bytes::from("abc"), Some(&crc), &given);
        let names: Vec<_> = put.headers.iter().map(|(name, _)| name.as_str()).collect();
        let expected = ["content-type", "x-amz-checksum-crc64nvme", "x-amz-sdk-checksum-algorithm"];
        assert_eq!(names, expected);
        assert_eq!(put.headers[2].1, "CRC64NVME");
        let md5 = Checksum::of(Algorithm::Md5, b"abc");
        let put = request("b", b"k", Bytes::from("abc"), Some(&md5), &Headers::new());
        assert_eq!(put.headers, [(Algorithm::Md5.header(), plain("kAFQmDzST7DWlj99KOF/cg=="))]);
    }

    #[test]
    fn what_the_server_stored_is_compared() {
        let crc = Checksum::of(Algorithm::Crc32, b"123456789");
        let good = response(&[("x-amz-checksum-crc32", "y/Q5Jg=="), ("etag", "\"e\"")]);
        let put = put_of("PutObject", &good, Some(&crc)).unwrap();
        assert_eq!((put.etag.as_str(), put.checksum), ("e", Some(crc.clone())));
        let bad = response(&[("x-amz-checksum-crc32", "AAAAAA==")]);
        assert_eq!(put_of("PutObject", &bad, Some(&crc)).unwrap_err().kind, ErrorKind::Corrupt);
        let other = response(&[("x-amz-checksum-crc64nvme", "AAAAAAAAAAA=")]);
        assert_eq!(put_of("PutObject", &other, Some(&crc)).unwrap().checksum, None);
    }

    #[test]
    fn an_etag_is_compared_where_it_is_an_md5() {
        let md5 = Checksum::of(Algorithm::Md5, b"abc");
        let other = "00000000000000000000000000000000";
        let of = |response: Response| put_of("PutObject", &response, Some(&md5)).map(|_| ());
        assert_eq!(
            of(response(&[("etag", "\"900150983CD24FB0D6963F7D28E17F72\"")])).ok(),
            Some(())
        );
        assert_eq!(of(response(&[("etag", other)])).unwrap_err().kind, ErrorKind::Corrupt);
        let kms = response(&[("etag", other), ("x-amz-server-side-encryption", "aws:kms")]);
        assert!(of(kms).is_ok());
        let own = "x-amz-server-side-encryption-customer-algorithm";
        assert!(of(response(&[("etag", other), (own, "AES256")])).is_ok());
        assert!(of(response(&[("etag", "\"abc-1\"")])).is_ok());
    }

    fn of(body: &str) -> Result<(String, Option<Checksum>), Error> {
        let copied = copy_result("CopyObject", &Response::of(body.to_owned()), b"CopyObjectResult");
        copied.map(|copied| (copied.etag, copied.checksum))
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
        let request =
            with_source(Request::new("CopyObject", Method::PUT, Some("t")), &source).unwrap();
        assert_eq!(request.headers[0].1, "b//a%20b//../%25?versionId=v%2B1");
        assert_eq!(request.headers[1].1, "\"e\"");
    }

    #[test]
    fn a_success_may_be_an_error() {
        let error = of("<Error><Code>InternalError</Code></Error>").unwrap_err();
        assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Server, "InternalError"));
        assert!(error.is_transient());
        for body in ["", "<CopyObjectResult/>", "<CopyObjectResult><ETag>\"e\"</ETag>"] {
            assert_eq!(of(body).unwrap_err().kind, ErrorKind::Corrupt, "{body}");
        }
        let body = "<CopyObjectResult><ETag>&quot;e&quot;</ETag><ChecksumCRC32>y/Q5Jg==\
        </ChecksumCRC32></CopyObjectResult>";
        let crc = Checksum::of(Algorithm::Crc32, b"123456789");
        assert_eq!(of(body).unwrap(), ("e".to_owned(), Some(crc)));
    }
}
