//! PutObject.

use super::head::head_object;
use super::{Headers, send_and_read};
use crate::customer_key::is_encrypted;
use crate::header::{checksums, etag, plain, some};
use crate::{Algorithm, Checksum, Client, Error, Kind, Reply, Request};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, Method};

const SDK_ALGORITHM: HeaderName = HeaderName::from_static("x-amz-sdk-checksum-algorithm");

/// Result of an upload or a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Put {
    /// ETag without quotes.
    pub etag: String,
    /// `x-amz-version-id`.
    pub version: Option<String>,
    /// Checksum stored by the server, if returned.
    pub checksum: Option<Checksum>,
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
) -> Result<Put, Error> {
    let request = request(bucket, key, body, checksum, headers);
    send_checked(client, &request, checksum).await
}

/// Sends a body, and repeats it if the server stored something else, within the attempts of a request.
///
/// # Errors
/// `Corrupt`; `Precondition`; those of the request.
pub(super) async fn send_checked(
    client: &Client,
    request: &Request,
    checksum: Option<&Checksum>,
) -> Result<Put, Error> {
    // A second attempt with this condition would fail because of the first one.
    let once = request.headers.iter().any(|(name, _)| *name == http::header::IF_NONE_MATCH);
    let read = |reply: &Reply| put_of(request.operation, reply, checksum);
    let ended = match once {
        true => client.send(request).await.and_then(|reply| read(&reply)),
        false => send_and_read(client, request, read).await,
    };
    match ended {
        Err(error) if error.kind == Kind::Precondition && error.unsure => {
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
) -> Result<Put, Error> {
    let (Some(bucket), Some(key)) = (&request.bucket, &request.key) else { return Err(refused) };
    let head = match head_object(client, bucket, key, None).await {
        Ok(head) => head,
        Err(gone) if gone.kind == Kind::NotFound => return Err(refused),
        Err(error) => return Err(error),
    };
    let same_checksum = checksum.is_some_and(|sent| head.checksums.contains(sent));
    let same_etag =
        || Checksum::of(Algorithm::Md5, &request.body).etag() == Some(head.etag.clone());
    match head.size == request.body.len() as u64 && (same_checksum || same_etag()) {
        true => Ok(Put {
            checksum: checksum.filter(|_| same_checksum).cloned(),
            etag: head.etag,
            version: head.version,
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
pub(super) fn with_checksum(request: Request, checksum: Option<&Checksum>) -> Request {
    let Some(checksum) = checksum else { return request };
    let name = checksum.algorithm.name();
    let request = request.header(checksum.algorithm.header(), plain(&checksum.encode()));
    match checksum.algorithm {
        Algorithm::Md5 => request, // needs no header
        _ => request.header(SDK_ALGORITHM, plain(name)),
    }
}

/// Adds a document and its checksums to a request: newer servers require any checksum, older ones an MD5.
pub(super) fn with_document(request: Request, body: String) -> Request {
    let sums = [Algorithm::Md5, Algorithm::Crc32].map(|of| Checksum::of(of, body.as_bytes()));
    let request = request.header(CONTENT_TYPE, plain("application/xml")).body(body);
    sums.iter().fold(request, |request, sum| with_checksum(request, Some(sum)))
}

/// Parses the headers of a response to an upload, and compares the stored object with the sent content.
fn put_of(operation: &'static str, reply: &Reply, sent: Option<&Checksum>) -> Result<Put, Error> {
    let headers = &reply.headers;
    let mut stored = checksums(headers);
    let etag = etag(headers);
    if let Some(sent) = sent {
        let other = stored.iter().find(|one| one.algorithm == sent.algorithm && *one != sent);
        if let Some(other) = other {
            return Err(content_mismatch(operation, reply, &other.encode(), &sent.encode()));
        }
        // With KMS and keys of the caller an ETag looks like an MD5, but is none.
        let plainly = some(headers, "x-amz-server-side-encryption").is_none_or(|v| v == "AES256")
            && !is_encrypted(headers);
        let is_md5 = etag.len() == 32 && etag.bytes().all(|b| b.is_ascii_hexdigit());
        if let Some(own) = sent.etag().filter(|_| plainly && is_md5)
            && !own.eq_ignore_ascii_case(&etag)
        {
            return Err(content_mismatch(operation, reply, &etag, &own));
        }
        stored.retain(|one| one.algorithm == sent.algorithm);
    }
    let version = some(headers, "x-amz-version-id");
    Ok(Put { etag, version, checksum: stored.into_iter().next() })
}

fn content_mismatch(operation: &'static str, reply: &Reply, stored: &str, sent: &str) -> Error {
    let message = format!("the body arrived damaged: the server stored {stored}, {sent} was sent");
    let status = reply.status.as_u16();
    Error { status, ..Error::new(Kind::Corrupt, operation, message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue, StatusCode};

    fn reply(pairs: &[(&'static str, &str)]) -> Reply {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        Reply { status: StatusCode::OK, headers, body: Bytes::new() }
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
        let good = reply(&[("x-amz-checksum-crc32", "y/Q5Jg=="), ("etag", "\"e\"")]);
        let put = put_of("PutObject", &good, Some(&crc)).unwrap();
        assert_eq!((put.etag.as_str(), put.checksum), ("e", Some(crc.clone())));
        let bad = reply(&[("x-amz-checksum-crc32", "AAAAAA==")]);
        assert_eq!(put_of("PutObject", &bad, Some(&crc)).unwrap_err().kind, Kind::Corrupt);
        let other = reply(&[("x-amz-checksum-crc64nvme", "AAAAAAAAAAA=")]);
        assert_eq!(put_of("PutObject", &other, Some(&crc)).unwrap().checksum, None);
    }

    #[test]
    fn an_etag_is_compared_where_it_is_an_md5() {
        let md5 = Checksum::of(Algorithm::Md5, b"abc");
        let other = "00000000000000000000000000000000";
        let of = |reply: Reply| put_of("PutObject", &reply, Some(&md5)).map(|_| ());
        assert_eq!(of(reply(&[("etag", "\"900150983CD24FB0D6963F7D28E17F72\"")])).ok(), Some(()));
        assert_eq!(of(reply(&[("etag", other)])).unwrap_err().kind, Kind::Corrupt);
        let kms = reply(&[("etag", other), ("x-amz-server-side-encryption", "aws:kms")]);
        assert!(of(kms).is_ok());
        let own = "x-amz-server-side-encryption-customer-algorithm";
        assert!(of(reply(&[("etag", other), (own, "AES256")])).is_ok());
        assert!(of(reply(&[("etag", "\"abc-1\"")])).is_ok());
    }
}
