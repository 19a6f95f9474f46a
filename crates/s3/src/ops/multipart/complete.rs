//! CompleteMultipartUpload, whose response may be late, contain an error, or get lost.

use super::{CHECKSUM_TYPE, Part, checksum_type};
use crate::customer_key::is_encrypted;
use crate::header::{plain, some, unquoted};
use crate::ops::copy::element;
use crate::ops::head::{Head, head_object};
use crate::ops::put::Put;
use crate::ops::uploads::upload_is_open;
use crate::ops::{Headers, read, string};
use crate::xml::{Node, escaped};
use crate::{Algorithm, Checksum, Client, Error, Kind, Reply, Request};
use http::header::CONTENT_TYPE;
use http::{HeaderName, Method};
use std::fmt::Write;

const NAME: &str = "CompleteMultipartUpload";
const OBJECT_SIZE: HeaderName = HeaderName::from_static("x-amz-mp-object-size");

/// Completes an upload. If the response is lost, the result is checked before failing: whether the upload is
/// still open, and if not, whether the object is the expected one.
///
/// `whole` is the full object's checksum, or the composite one of its parts, of the upload's algorithm, which
/// the server verifies. Without it the checksums of parts are not sent either. `headers` may contain
/// If-None-Match.
///
/// # Errors
/// `Precondition`, `Corrupt`, `Invalid`; those of the request.
#[expect(clippy::too_many_arguments, reason = "an upload and what it shall become")]
pub async fn complete_upload(
    client: &Client,
    bucket: &str,
    key: &[u8],
    upload: &str,
    parts: &[Part],
    size: u64,
    whole: Option<&Checksum>,
    headers: &Headers,
) -> Result<Put, Error> {
    are_whole(parts, size)?;
    let request = complete(bucket, key, upload, parts, size, whole, headers)?;
    let mut tries = 1;
    loop {
        let result = match client.send(&request).await {
            Ok(reply) => put_of(&reply, whole),
            Err(error) => Err(error),
        };
        let error = match result {
            Ok(put) => return Ok(put),
            Err(error) => Error { tries: error.tries.max(tries), ..error },
        };
        if !may_have_happened(&error) {
            return Err(error);
        }
        let open = upload_is_open(client, bucket, key, upload).await;
        // Without permission to list uploads, which some servers also report for a missing upload, only the
        // object itself can tell.
        let gone = matches!(open, Ok(false));
        if gone || open.is_err_and(|error| error.kind == Kind::AccessDenied) {
            match head_object(client, bucket, key, None).await {
                Ok(head) => match is_result(&head, parts, size, whole) {
                    Some(put) => return Ok(put),
                    None if gone => return Err(error),
                    None => {}
                },
                Err(none) if gone && none.kind == Kind::NotFound => return Err(error),
                Err(_) => {}
            }
        }
        if !client.may_retry(tries, &error).await {
            return Err(error);
        }
        tries += 1;
    }
}

/// Checks that parts form a whole object: consecutive numbers from 1, and its size in bytes.
fn are_whole(parts: &[Part], size: u64) -> Result<(), Error> {
    let in_order = parts.iter().zip(1..).all(|(part, number)| part.number == number);
    let bytes: u64 = parts.iter().map(|part| part.size).sum();
    if in_order && bytes == size {
        return Ok(());
    }
    let count = parts.len();
    let what = format!("{count} parts with {bytes} bytes are not all of an object of {size}");
    Err(Error::new(Kind::Invalid, NAME, what))
}

/// True if the upload may have been completed although the request failed: no response, no valid one, or a
/// retry's response about the state left by the first attempt.
fn may_have_happened(error: &Error) -> bool {
    match error.kind {
        Kind::Connection | Kind::TimedOut | Kind::Server | Kind::Throttled => true,
        Kind::Corrupt => (200..300).contains(&error.status) && error.code.is_empty(),
        Kind::NotFound | Kind::Precondition | Kind::AccessDenied => error.tries > 1 || error.unsure,
        _ => false,
    }
}

/// The object, if it is the expected result of the parts.
fn is_result(head: &Head, parts: &[Part], size: u64, whole: Option<&Checksum>) -> Option<Put> {
    let etags: Option<Vec<Checksum>> = parts.iter().map(|part| md5_of(&part.etag)).collect();
    let composite = etags.and_then(|etags| Checksum::composite(Algorithm::Md5, &etags).etag());
    let same_etag = composite.is_some_and(|etag| etag == head.etag);
    let same_checksum = whole.is_some_and(|whole| head.checksums.contains(whole));
    // ETags of encrypted parts are not MD5s; the number of parts can still be compared.
    let encrypted = some(&head.headers, "x-amz-server-side-encryption").is_some()
        || is_encrypted(&head.headers);
    let same_count = encrypted && head.etag.ends_with(&format!("-{}", parts.len()));
    let same = head.size == size && (same_etag || same_checksum || same_count);
    let checksum = head.checksums.first().cloned();
    same.then(|| Put { etag: head.etag.clone(), version: head.version.clone(), checksum })
}

fn md5_of(etag: &str) -> Option<Checksum> {
    let value = crate::ops::Etag::new(etag).md5()?.to_vec();
    Some(Checksum { algorithm: Algorithm::Md5, value, parts: 0 })
}

fn complete(
    bucket: &str,
    key: &[u8],
    upload: &str,
    parts: &[Part],
    size: u64,
    whole: Option<&Checksum>,
    headers: &Headers,
) -> Result<Request, Error> {
    let whole = whole.filter(|whole| whole.algorithm != Algorithm::Md5);
    let mut request = Request::new(NAME, Method::POST, Some(bucket))
        .key(key)
        .query("uploadId", upload)
        .body(document(parts, whole.map(|whole| whole.algorithm))?);
    request.headers = headers.clone();
    request.headers.push((CONTENT_TYPE, plain("application/xml")));
    request.headers.push((OBJECT_SIZE, plain(&size.to_string())));
    // Not repeatable: a second completion would not find the upload.
    request.repeatable = false;
    let Some(whole) = whole else { return Ok(request) };
    if whole.parts == 0 {
        request = request.header(whole.algorithm.header(), plain(&whole.encode()));
    }
    Ok(request.header(CHECKSUM_TYPE, plain(checksum_type(whole.algorithm))))
}

fn document(parts: &[Part], algorithm: Option<Algorithm>) -> Result<String, Error> {
    let mut body = String::with_capacity(100 + parts.len() * 160);
    body.push_str("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for part in parts {
        let etag = escaped(part.etag.as_bytes()).ok_or_else(|| {
            Error::new(Kind::Corrupt, NAME, "the ETag of a part cannot be sent back to the server")
        })?;
        // Writing to a String cannot fail.
        let _ = write!(body, "<Part><PartNumber>{}</PartNumber>", part.number);
        let _ = write!(body, "<ETag>&quot;{etag}&quot;</ETag>");
        let named = part.checksum.as_ref().filter(|one| Some(one.algorithm) == algorithm);
        if let Some(checksum) = named {
            let name = checksum.algorithm.element();
            let _ = write!(body, "<{name}>{}</{name}>", checksum.encode());
        }
        body.push_str("</Part>");
    }
    body.push_str("</CompleteMultipartUpload>");
    Ok(body)
}

fn put_of(reply: &Reply, whole: Option<&Checksum>) -> Result<Put, Error> {
    let (mut put, mut stored) = (Put::default(), Vec::new());
    const ROOT: &[u8] = b"CompleteMultipartUploadResult";
    read(NAME, reply, ROOT, |node| match node {
        Node::Leaf { parent: ROOT, name: b"ETag", text } => {
            put.etag = unquoted(&string(text)).to_owned();
        }
        Node::Leaf { parent: ROOT, name, text } => stored.extend(element(name, text)),
        _ => {}
    })?;
    put.version = some(&reply.headers, "x-amz-version-id");
    // Only values of the same type, of the whole or of parts, can be compared.
    let comparable = |one: &&Checksum, whole: &Checksum| {
        one.algorithm == whole.algorithm && (one.parts == 0) == (whole.parts == 0)
    };
    let other = whole.and_then(|whole| {
        stored.iter().filter(|one| comparable(one, whole)).find(|one| *one != whole)
    });
    if let Some(other) = other {
        let stored = other.encode();
        let message = format!("the server put the parts together to something else ({stored})");
        let code = "BadDigest".to_owned(); // final, like the server's
        return Err(Error { code, ..Error::new(Kind::Corrupt, NAME, message) });
    }
    put.checksum =
        stored.into_iter().find(|one| whole.is_none_or(|w| w.algorithm == one.algorithm));
    Ok(put)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(number: u32, bytes: &[u8]) -> Part {
        Part {
            number,
            size: bytes.len() as u64,
            etag: Checksum::of(Algorithm::Md5, bytes).etag().unwrap(),
            checksum: Some(Checksum::of(Algorithm::Crc64Nvme, bytes)),
        }
    }

    fn reply(body: &str) -> Reply {
        Reply::of(body.to_owned())
    }

    #[test]
    fn a_request_names_parts_and_checksums() {
        let whole = Checksum::of(Algorithm::Crc64Nvme, b"ab");
        let parts = [part(1, b"a"), part(2, b"b")];
        let request = complete("b", b"k", "u", &parts, 2, Some(&whole), &Headers::new()).unwrap();
        assert!(!request.repeatable);
        let body = std::str::from_utf8(&request.body).unwrap();
        assert_eq!(body.matches("<ChecksumCRC64NVME>").count(), 2);
        assert!(
            body.contains("<PartNumber>2</PartNumber><ETag>&quot;92eb5ffee6ae2fec3ad71c777531578f")
        );
        let header = |request: &Request, name: &str| {
            request.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone())
        };
        assert_eq!(header(&request, "x-amz-checksum-type").unwrap(), "FULL_OBJECT");
        assert_eq!(header(&request, "x-amz-mp-object-size").unwrap(), "2");
        let expected = whole.encode();
        assert_eq!(header(&request, "x-amz-checksum-crc64nvme").unwrap(), expected.as_str());
        let request = complete("b", b"k", "u", &parts, 2, None, &Headers::new()).unwrap();
        assert!(!std::str::from_utf8(&request.body).unwrap().contains("Checksum"));
        assert_eq!(header(&request, "x-amz-checksum-type"), None);
    }

    #[test]
    fn only_all_parts_make_an_object() {
        let parts = [part(1, b"a"), part(2, b"bc")];
        assert!(are_whole(&parts, 3).is_ok() && are_whole(&[], 0).is_ok());
        assert!(are_whole(&parts, 4).is_err() && are_whole(&parts[1..], 2).is_err());
        assert!(are_whole(&[part(1, b"a"), part(3, b"bc")], 3).is_err());
    }

    #[test]
    fn an_answer_is_compared_and_may_be_an_error() {
        let whole = Checksum::of(Algorithm::Crc64Nvme, b"ab");
        let of = |body: &str| put_of(&reply(body), Some(&whole));
        let answer = |value: &str| {
            format!(
                "\n \n<CompleteMultipartUploadResult><ETag>\"e-2\"</ETag><ChecksumCRC64NVME>\
                 {value}</ChecksumCRC64NVME></CompleteMultipartUploadResult>"
            )
        };
        let put = of(&answer(&whole.encode())).unwrap();
        assert_eq!((put.etag.as_str(), put.checksum), ("e-2", Some(whole.clone())));
        let error = of(&answer("AAAAAAAAAAA=")).unwrap_err();
        assert!(error.kind == Kind::Corrupt && !may_have_happened(&error));
        assert!(of(&answer("AAAAAAAAAAA=-2")).is_ok());
        let error = of("<Error><Code>InternalError</Code></Error>").unwrap_err();
        assert!(may_have_happened(&error));
        assert!(may_have_happened(&of("").unwrap_err()));
    }

    #[test]
    fn what_speaks_of_a_first_try_is_looked_into() {
        let error = |kind, tries| Error { tries, ..Error::new(kind, NAME, "") };
        assert!(may_have_happened(&error(Kind::Connection, 1)));
        assert!(may_have_happened(&error(Kind::NotFound, 2)));
        assert!(!may_have_happened(&error(Kind::NotFound, 1)));
        assert!(!may_have_happened(&error(Kind::Precondition, 1)));
        assert!(!may_have_happened(&error(Kind::AccessDenied, 1)));
        assert!(!may_have_happened(&error(Kind::Credentials, 2)));
        let damaged = Error { status: 400, code: "BadDigest".into(), ..error(Kind::Corrupt, 1) };
        assert!(!may_have_happened(&damaged));
    }

    #[test]
    fn only_the_right_object_is_the_result() {
        let parts = [part(1, b"a"), part(2, b"b")];
        let md5s = parts.clone().map(|part| md5_of(&part.etag).unwrap());
        let etag = Checksum::composite(Algorithm::Md5, &md5s).etag().unwrap();
        let head = |etag: &str, size| Head { etag: etag.to_owned(), size, ..Head::default() };
        let whole = Checksum::of(Algorithm::Crc64Nvme, b"ab");
        assert!(is_result(&head(&etag, 2), &parts, 2, None).is_some());
        assert!(is_result(&head(&etag, 3), &parts, 2, None).is_none());
        assert!(is_result(&head("x-2", 2), &parts, 2, Some(&whole)).is_none());
        let checked = Head { checksums: vec![whole.clone()], ..head("x", 2) };
        assert!(is_result(&checked, &parts, 2, Some(&whole)).is_some());
        let mut kms = head("x-2", 2);
        kms.headers.insert("x-amz-server-side-encryption", plain("aws:kms"));
        assert!(is_result(&kms, &parts, 2, None).is_some());
        assert!(is_result(&kms, &parts[..1], 2, None).is_none());
    }
}
