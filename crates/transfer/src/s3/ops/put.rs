//! PutObject.

use super::Headers;
use crate::s3::header::{checksums, etag, plain, some};
use crate::s3::{Algorithm, Checksum, Client, Error, Kind, Reply, Request};
use bytes::Bytes;
use http::{HeaderName, Method};

const SDK_ALGORITHM: HeaderName = HeaderName::from_static("x-amz-sdk-checksum-algorithm");

/// What the server made of an upload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Put {
    /// Without quotes.
    pub etag: String,
    /// `x-amz-version-id`.
    pub version: Option<String>,
    /// The checksum that the server stored, where it says so.
    pub checksum: Option<Checksum>,
}

/// Uploads a whole object in one request. The server checks `checksum`; where it answers with
/// another one, or with an ETag that is an MD5 of something else, that is `Corrupt`.
///
/// # Errors
/// `Precondition`; `Corrupt`; the request's.
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

/// Sends a body; once more where the server has something else than was sent, within the tries
/// that any request has.
///
/// # Errors
/// `Corrupt`; the request's.
pub(super) async fn send_checked(
    client: &Client,
    request: &Request,
    checksum: Option<&Checksum>,
) -> Result<Put, Error> {
    // What was just written would itself refuse a second try with this condition.
    let once = request.headers.iter().any(|(name, _)| *name == http::header::IF_NONE_MATCH);
    let mut tries = 1;
    loop {
        let reply = client.send(request).await?;
        match put_of(request.operation, &reply, checksum) {
            Err(error) if !once && client.may_retry(tries, &error).await => tries += 1,
            ended => return ended,
        }
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

/// The same request with the checksum of its body.
pub(super) fn with_checksum(request: Request, checksum: Option<&Checksum>) -> Request {
    let Some(checksum) = checksum else { return request };
    let name = checksum.algorithm.name();
    let request = request.header(checksum.algorithm.header(), plain(&checksum.encode()));
    match checksum.algorithm {
        Algorithm::Md5 => request, // older than the header
        _ => request.header(SDK_ALGORITHM, plain(name)),
    }
}

/// Reads the headers of an answer to a body, and compares what the server has with what was sent.
pub(super) fn put_of(
    operation: &'static str,
    reply: &Reply,
    sent: Option<&Checksum>,
) -> Result<Put, Error> {
    let headers = &reply.headers;
    let mut stored = checksums(headers);
    let etag = etag(headers);
    if let Some(sent) = sent {
        let other = stored.iter().find(|one| one.algorithm == sent.algorithm && *one != sent);
        if let Some(other) = other {
            return Err(arrived_otherwise(operation, reply, &other.encode(), &sent.encode()));
        }
        // An ETag of KMS looks like an MD5 and is none.
        let plainly = some(headers, "x-amz-server-side-encryption").is_none_or(|v| v == "AES256")
            && some(headers, "x-amz-server-side-encryption-customer-algorithm").is_none();
        let is_md5 = etag.len() == 32 && etag.bytes().all(|b| b.is_ascii_hexdigit());
        if let Some(own) = sent.etag().filter(|_| plainly && is_md5)
            && !own.eq_ignore_ascii_case(&etag)
        {
            return Err(arrived_otherwise(operation, reply, &etag, &own));
        }
        stored.retain(|one| one.algorithm == sent.algorithm);
    }
    let version = some(headers, "x-amz-version-id");
    Ok(Put { etag, version, checksum: stored.into_iter().next() })
}

fn arrived_otherwise(operation: &'static str, reply: &Reply, stored: &str, sent: &str) -> Error {
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
        assert!(of(reply(&[("etag", "\"abc-1\"")])).is_ok());
    }
}
