//! Multipart uploads: create, upload parts, complete, abort, and the lists of unfinished uploads and their parts.

use crate::customer_key::is_encrypted;
use crate::header::{plain, some, unquoted};
use crate::ops::listing::{
    KeyEncoding, NO_PROGRESS, NO_SUCCESSOR, PageCheck, PageMarker, flag, name_violation, number,
    out_of_order, request_page, time, untrusted, words,
};
use crate::ops::put::{element, send_checked, with_checksum};
use crate::ops::{
    Headers, ObjectHead, PutResult, date_s, head_object, query_key, read, send_and_read, string,
};
use crate::xml::{Node, escaped};
use crate::{Algorithm, Checksum, Client, Error, ErrorKind, Request, Response};
use bytes::Bytes;
use hakobu_core::percent;
use hakobu_core::unit::Time;
use http::header::CONTENT_TYPE;
use http::{HeaderName, Method};
use std::fmt::Write;

const CHECKSUM_ALGORITHM: HeaderName = HeaderName::from_static("x-amz-checksum-algorithm");
const CHECKSUM_TYPE: HeaderName = HeaderName::from_static("x-amz-checksum-type");

/// An uploaded part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number from 1 to 10,000.
    pub number: u32,
    /// Size in bytes; 0 if unknown (copied part).
    pub size: u64,
    /// ETag without quotes.
    pub etag: String,
    /// Checksum, if computed or returned.
    pub checksum: Option<Checksum>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedUpload {
    pub id: String,
    /// Algorithm that its parts and completion may use; `None` if none was requested or supported by the
    /// server.
    pub algorithm: Option<Algorithm>,
}

/// Creates an upload. The checksum type is FULL_OBJECT for CRC64NVME, else COMPOSITE. If the server does not
/// support the checksum, the request is repeated without it.
pub async fn create_upload(
    client: &Client,
    bucket: &str,
    key: &[u8],
    algorithm: Option<Algorithm>,
    headers: &Headers,
) -> Result<CreatedUpload, Error> {
    let algorithm = algorithm.filter(|algorithm| *algorithm != Algorithm::Md5);
    let request = create_request(bucket, key, algorithm, headers);
    match send_and_read(client, &request, id_of).await {
        Ok(id) => Ok(CreatedUpload { id, algorithm }),
        Err(error) if algorithm.is_some() && error.is_unknown_checksum() => {
            let request = create_request(bucket, key, None, headers);
            let id = send_and_read(client, &request, id_of).await?;
            Ok(CreatedUpload { id, algorithm: None })
        }
        Err(error) => Err(error),
    }
}

fn create_request(
    bucket: &str,
    key: &[u8],
    algorithm: Option<Algorithm>,
    headers: &Headers,
) -> Request {
    let mut request = Request::new("CreateMultipartUpload", Method::POST, Some(bucket))
        .key(key)
        .query("uploads", "");
    request.headers = headers.clone();
    let Some(algorithm) = algorithm else { return request };
    request
        .header(CHECKSUM_ALGORITHM, plain(algorithm.name()))
        .header(CHECKSUM_TYPE, plain(checksum_type(algorithm)))
}

/// Checksum type of a multipart object.
fn checksum_type(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Crc64Nvme => "FULL_OBJECT",
        _ => "COMPOSITE",
    }
}

fn id_of(response: &Response) -> Result<String, Error> {
    const NAME: &str = "CreateMultipartUpload";
    let mut id = String::new();
    read(NAME, response, b"InitiateMultipartUploadResult", |node| {
        if let Node::Leaf { name: b"UploadId", text, .. } = node {
            id = string(text);
        }
    })?;
    match id.is_empty() {
        true => {
            Err(Error::new(ErrorKind::Corrupt, NAME, "the server began an upload without an id"))
        }
        false => Ok(id),
    }
}

/// Uploads a part. `checksum` is of the upload's algorithm, or MD5.
///
/// # Errors
/// `NotFound` if the upload no longer exists; `Corrupt`; those of the request.
pub async fn upload_part(
    client: &Client,
    bucket: &str,
    key: &[u8],
    upload: &str,
    number: u32,
    body: Bytes,
    checksum: Option<&Checksum>,
) -> Result<Part, Error> {
    let size = body.len() as u64;
    let request = Request::new("UploadPart", Method::PUT, Some(bucket))
        .key(key)
        .query("partNumber", number.to_string())
        .query("uploadId", upload)
        .body(body);
    let request = with_checksum(request, checksum);
    let put = send_checked(client, &request, checksum).await?;
    if put.etag.is_empty() {
        let message = "the server took a part without telling its ETag";
        return Err(Error::new(ErrorKind::Corrupt, request.operation, message));
    }
    let checksum = checksum.cloned().or(put.checksum);
    Ok(Part { number, size, etag: put.etag, checksum })
}

/// Aborts an upload and frees its storage. A missing one is not an error.
pub async fn abort_upload(
    client: &Client,
    bucket: &str,
    key: &[u8],
    upload: &str,
) -> Result<(), Error> {
    let request = Request::new("AbortMultipartUpload", Method::DELETE, Some(bucket))
        .key(key)
        .query("uploadId", upload);
    match client.send(&request).await {
        Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
        result => result.map(|_| ()),
    }
}

const COMPLETE: &str = "CompleteMultipartUpload";
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
) -> Result<PutResult, Error> {
    are_whole(parts, size)?;
    let request = complete_request(bucket, key, upload, parts, size, whole, headers)?;
    let mut tries = 1;
    loop {
        let result = match client.send(&request).await {
            Ok(response) => put_of(&response, whole),
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
        if gone || open.is_err_and(|error| error.kind == ErrorKind::AccessDenied) {
            match head_object(client, bucket, key, None).await {
                Ok(head) => match is_result(&head, parts, size, whole) {
                    Some(put) => return Ok(put),
                    None if gone => return Err(error),
                    None => {}
                },
                Err(none) if gone && none.kind == ErrorKind::NotFound => return Err(error),
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
    Err(Error::new(ErrorKind::Invalid, COMPLETE, what))
}

/// True if the upload may have been completed although the request failed: no response, no valid one, or a
/// retry's response about the state left by the first attempt.
fn may_have_happened(error: &Error) -> bool {
    match error.kind {
        ErrorKind::Connection | ErrorKind::TimedOut | ErrorKind::Server | ErrorKind::Throttled => {
            true
        }
        ErrorKind::Corrupt => (200..300).contains(&error.status) && error.code.is_empty(),
        ErrorKind::NotFound | ErrorKind::Precondition | ErrorKind::AccessDenied => {
            error.tries > 1 || error.unsure
        }
        _ => false,
    }
}

/// The object, if it is the expected result of the parts.
fn is_result(
    head: &ObjectHead,
    parts: &[Part],
    size: u64,
    whole: Option<&Checksum>,
) -> Option<PutResult> {
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
    let (etag, version) = (head.etag.clone(), head.version.clone());
    same.then(|| PutResult { etag, version, checksum, ..PutResult::default() })
}

fn md5_of(etag: &str) -> Option<Checksum> {
    let value = crate::ops::Etag::new(etag).md5()?.to_vec();
    Some(Checksum { algorithm: Algorithm::Md5, value, parts: 0 })
}

fn complete_request(
    bucket: &str,
    key: &[u8],
    upload: &str,
    parts: &[Part],
    size: u64,
    whole: Option<&Checksum>,
    headers: &Headers,
) -> Result<Request, Error> {
    let whole = whole.filter(|whole| whole.algorithm != Algorithm::Md5);
    let mut request = Request::new(COMPLETE, Method::POST, Some(bucket))
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
            Error::new(
                ErrorKind::Corrupt,
                COMPLETE,
                "the ETag of a part cannot be sent back to the server",
            )
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

fn put_of(response: &Response, whole: Option<&Checksum>) -> Result<PutResult, Error> {
    let (mut put, mut stored) = (PutResult::default(), Vec::new());
    const ROOT: &[u8] = b"CompleteMultipartUploadResult";
    read(COMPLETE, response, ROOT, |node| match node {
        Node::Leaf { parent: ROOT, name: b"ETag", text } => {
            put.etag = unquoted(&string(text)).to_owned();
        }
        Node::Leaf { parent: ROOT, name, text } => stored.extend(element(name, text)),
        _ => {}
    })?;
    put.version = some(&response.headers, "x-amz-version-id");
    put.date_s = date_s(&response.headers);
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
        return Err(Error { code, ..Error::new(ErrorKind::Corrupt, COMPLETE, message) });
    }
    put.checksum =
        stored.into_iter().find(|one| whole.is_none_or(|w| w.algorithm == one.algorithm));
    Ok(put)
}

const PARTS: &str = "ListParts";
const UPLOADS: &str = "ListMultipartUploads";
/// Largest part number (API reference, UploadPart).
const PART_NUMBER_MAX: u64 = 10_000;

/// An unfinished upload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upload {
    pub key: Vec<u8>,
    pub id: String,
    /// Creation time.
    pub begun: Time,
}

/// All parts of an upload in order, over all pages. Not interrupted by a stop: it also serves to look for
/// aborted uploads, and part numbers end at 10,000.
///
/// # Errors
/// `NotFound` if the upload no longer exists; those of the request; `Corrupt` if a page lacks a required
/// field, is out of order, or does not advance.
pub async fn list_parts(
    client: &Client,
    bucket: &str,
    key: &[u8],
    upload: &str,
) -> Result<Vec<Part>, Error> {
    let mut parts = Vec::new();
    let mut marker = 0;
    loop {
        let after = (marker > 0).then(|| marker.to_string());
        let request = parts_request(bucket, key, upload).query_if("part-number-marker", after);
        let page = |response: &Response| parts_of(response, marker);
        let (page, next) = send_and_read(client, &request, page).await?;
        parts.extend(page);
        match next {
            None => return Ok(parts),
            Some(next) => marker = next,
        }
    }
}

/// True if an upload is still open on the server.
pub(crate) async fn upload_is_open(
    client: &Client,
    bucket: &str,
    key: &[u8],
    upload: &str,
) -> Result<bool, Error> {
    let request = parts_request(bucket, key, upload).query("max-parts", "1");
    match send_and_read(client, &request, |response| parts_of(response, 0)).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn parts_request(bucket: &str, key: &[u8], upload: &str) -> Request {
    Request::new(PARTS, Method::GET, Some(bucket)).key(key).query("uploadId", upload)
}

/// PartFields of the current part.
#[derive(Default)]
struct PartFields {
    number: Option<u32>,
    size: Option<u64>,
    etag: Option<String>,
    checksum: Option<Checksum>,
}

impl PartFields {
    fn part(self, check: &mut PageCheck) -> Option<Part> {
        let of = "a part of it";
        let number = check.need(self.number, "PartNumber", of);
        let size = check.need(self.size, "Size", of);
        let etag = check.need(self.etag, "ETag", of);
        Some(Part { number: number?, size: size?, etag: etag?, checksum: self.checksum })
    }
}

/// Parts of the page after part `marker`, and the marker of the next page.
fn parts_of(response: &Response, marker: u64) -> Result<(Vec<Part>, Option<u64>), Error> {
    const ROOT: &[u8] = b"ListPartsResult";
    let (mut parts, mut next, mut truncated) = (Vec::new(), None, None);
    let (mut part, mut check) = (PartFields::default(), PageCheck::default());
    let part_number = |text: &[u8]| {
        let number = number(text).filter(|number| (1..=PART_NUMBER_MAX).contains(number))?;
        u32::try_from(number).ok()
    };
    read(PARTS, response, ROOT, |node| match node {
        Node::Leaf { parent: b"Part", name, text } => match name {
            b"PartNumber" => check.set(&mut part.number, "PartNumber", text, part_number(text)),
            b"Size" => check.set(&mut part.size, "Size", text, number(text)),
            b"ETag" => {
                let etag = words(text).map(|etag| unquoted(&etag).to_owned());
                let etag = etag.filter(|etag| !etag.is_empty());
                check.set(&mut part.etag, "ETag", text, etag);
            }
            _ => part.checksum = element(name, text).or(part.checksum.take()),
        },
        Node::Leaf { parent: ROOT, name, text } => match name {
            b"NextPartNumberMarker" => {
                check.set(&mut next, "NextPartNumberMarker", text, number(text));
            }
            b"IsTruncated" => check.set(&mut truncated, "IsTruncated", text, flag(text)),
            b"Part" => parts.extend(std::mem::take(&mut part).part(&mut check)),
            _ => {}
        },
        Node::End { parent: ROOT, name: b"Part" } => {
            parts.extend(std::mem::take(&mut part).part(&mut check));
        }
        _ => {}
    })?;
    let truncated = check.need(truncated, "IsTruncated", "it") == Some(true);
    let next = next.filter(|_| truncated);
    if truncated && next.is_none() {
        check.add(|| NO_SUCCESSOR.to_owned());
    }
    if next.is_some_and(|next| next <= marker || next > PART_NUMBER_MAX) {
        check.add(|| NO_PROGRESS.to_owned());
    }
    let mut before = marker;
    for part in &parts {
        let number = u64::from(part.number);
        if number <= before {
            check.add(|| format!("it is out of order: part {number} after part {before}"));
        }
        before = number;
    }
    check.finish(PARTS)?;
    Ok((parts, next))
}

/// All unfinished uploads of keys with a prefix, over all pages.
///
/// # Errors
/// Those of the request; `Invalid` for a prefix that is not UTF-8; `Corrupt` if a page lacks a required
/// field, contains other keys, is out of order, or does not advance; `Stopped`.
pub async fn list_uploads(
    client: &Client,
    bucket: &str,
    prefix: &[u8],
) -> Result<Vec<Upload>, Error> {
    let mut uploads: Vec<Upload> = Vec::new();
    let mut from = PageMarker::default();
    loop {
        let request = Request::new(UPLOADS, Method::GET, Some(bucket))
            .query("uploads", "")
            .query("encoding-type", "url");
        let request = from.query(query_key(request, "prefix", prefix)?, "upload-id-marker")?;
        let page = |response: &Response| uploads_of(response, prefix, &from);
        let (page, next) = request_page(client, &request, page).await?;
        if let (Some(last), Some(first)) = (uploads.last(), page.first())
            && first.key < last.key
        {
            return Err(untrusted(UPLOADS, &out_of_order(&first.key, &last.key)));
        }
        uploads.extend(page);
        match next {
            Some(next) => from = next,
            None => return Ok(uploads),
        }
    }
}

/// PartFields of the current upload.
#[derive(Default)]
struct UploadFields {
    key: Option<Vec<u8>>,
    id: Option<String>,
    begun: Option<Time>,
}

impl UploadFields {
    fn upload(self, check: &mut PageCheck) -> Option<Upload> {
        let of = "an upload of it";
        let key = check.need(self.key, "Key", of);
        let id = check.need(self.id, "UploadId", of);
        let begun = check.need(self.begun, "Initiated", of);
        Some(Upload { key: key?, id: id?, begun: begun? })
    }
}

/// Uploads of the page after `from`, and the end of that page.
fn uploads_of(
    response: &Response,
    prefix: &[u8],
    from: &PageMarker,
) -> Result<(Vec<Upload>, Option<PageMarker>), Error> {
    const ROOT: &[u8] = b"ListMultipartUploadsResult";
    let (mut uploads, mut upload, mut check) =
        (Vec::<Upload>::new(), UploadFields::default(), PageCheck::default());
    let (mut next_key, mut next_id, mut truncated) = (None, None, None);
    let mut names = KeyEncoding::default();
    read(UPLOADS, response, ROOT, |node| match node {
        Node::Leaf { parent: b"Upload", name, text } => match name {
            b"Key" => {
                let key = (!text.is_empty()).then(|| names.keep(text));
                check.set(&mut upload.key, "Key", text, key);
            }
            b"UploadId" => check.set(&mut upload.id, "UploadId", text, words(text)),
            b"Initiated" => check.set(&mut upload.begun, "Initiated", text, time(text)),
            _ => {}
        },
        Node::Leaf { parent: ROOT, name, text } => match name {
            b"EncodingType" => names.encoding(text),
            b"IsTruncated" => check.set(&mut truncated, "IsTruncated", text, flag(text)),
            b"NextKeyMarker" if !text.is_empty() => {
                let key = Some(names.keep(text));
                check.set(&mut next_key, "NextKeyMarker", text, key);
            }
            b"NextUploadIdMarker" if !text.is_empty() => {
                check.set(&mut next_id, "NextUploadIdMarker", text, words(text));
            }
            b"Upload" => uploads.extend(std::mem::take(&mut upload).upload(&mut check)),
            _ => {}
        },
        Node::End { parent: ROOT, name: b"Upload" } => {
            uploads.extend(std::mem::take(&mut upload).upload(&mut check));
        }
        _ => {}
    })?;
    if names.are_encoded() {
        let keys = uploads.iter_mut().map(|upload| &mut upload.key);
        for name in keys.chain(&mut next_key) {
            *name = percent::decode(name, true);
        }
    }
    let next = check.successor(truncated, (next_key, next_id), from);
    let keys = || uploads.iter().map(|upload| upload.key.as_slice());
    check.add_some(name_violation(keys, std::iter::empty, prefix, None));
    let fallen = uploads.windows(2).find(|pair| pair[1].key < pair[0].key);
    check.add_some(fallen.map(|pair| out_of_order(&pair[1].key, &pair[0].key)));
    check.finish(UPLOADS)?;
    Ok((uploads, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_says_what_it_is_made_of() {
        let of = |algorithm| {
            let request = create_request("b", b"k", algorithm, &Headers::new());
            let values =
                request.headers.iter().map(|(_, value)| value.to_str().unwrap().to_owned());
            values.collect::<Vec<_>>()
        };
        assert_eq!(of(Some(Algorithm::Crc64Nvme)), ["CRC64NVME", "FULL_OBJECT"]);
        assert_eq!(of(Some(Algorithm::Sha256)), ["SHA256", "COMPOSITE"]);
        assert!(of(None).is_empty());
    }

    #[test]
    fn an_upload_has_an_id() {
        let of = |body: &str| id_of(&Response::of(body.to_owned()));
        let body = "<InitiateMultipartUploadResult><Bucket>b</Bucket><UploadId>i&amp;d</UploadId>\
        </InitiateMultipartUploadResult>";
        assert_eq!(of(body).unwrap(), "i&d");
        let body = "<InitiateMultipartUploadResult><UploadId/></InitiateMultipartUploadResult>";
        assert_eq!(of(body).unwrap_err().kind, ErrorKind::Corrupt);
    }

    fn part(number: u32, bytes: &[u8]) -> Part {
        Part {
            number,
            size: bytes.len() as u64,
            etag: Checksum::of(Algorithm::Md5, bytes).etag().unwrap(),
            checksum: Some(Checksum::of(Algorithm::Crc64Nvme, bytes)),
        }
    }

    fn response(body: &str) -> Response {
        Response::of(body.to_owned())
    }

    #[test]
    fn a_request_names_parts_and_checksums() {
        let whole = Checksum::of(Algorithm::Crc64Nvme, b"ab");
        let parts = [part(1, b"a"), part(2, b"b")];
        let request =
            complete_request("b", b"k", "u", &parts, 2, Some(&whole), &Headers::new()).unwrap();
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
        let request = complete_request("b", b"k", "u", &parts, 2, None, &Headers::new()).unwrap();
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
        let of = |body: &str| put_of(&response(body), Some(&whole));
        let answer = |value: &str| {
            format!(
                "\n \n<CompleteMultipartUploadResult><ETag>\"e-2\"</ETag><ChecksumCRC64NVME>\
             {value}</ChecksumCRC64NVME></CompleteMultipartUploadResult>"
            )
        };
        let put = of(&answer(&whole.encode())).unwrap();
        assert_eq!((put.etag.as_str(), put.checksum), ("e-2", Some(whole.clone())));
        let error = of(&answer("AAAAAAAAAAA=")).unwrap_err();
        assert!(error.kind == ErrorKind::Corrupt && !may_have_happened(&error));
        assert!(of(&answer("AAAAAAAAAAA=-2")).is_ok());
        let error = of("<Error><Code>InternalError</Code></Error>").unwrap_err();
        assert!(may_have_happened(&error));
        assert!(may_have_happened(&of("").unwrap_err()));
    }

    #[test]
    fn what_speaks_of_a_first_try_is_looked_into() {
        let error = |kind, tries| Error { tries, ..Error::new(kind, COMPLETE, "") };
        assert!(may_have_happened(&error(ErrorKind::Connection, 1)));
        assert!(may_have_happened(&error(ErrorKind::NotFound, 2)));
        assert!(!may_have_happened(&error(ErrorKind::NotFound, 1)));
        assert!(!may_have_happened(&error(ErrorKind::Precondition, 1)));
        assert!(!may_have_happened(&error(ErrorKind::AccessDenied, 1)));
        assert!(!may_have_happened(&error(ErrorKind::Credentials, 2)));
        let damaged =
            Error { status: 400, code: "BadDigest".into(), ..error(ErrorKind::Corrupt, 1) };
        assert!(!may_have_happened(&damaged));
    }

    #[test]
    fn only_the_right_object_is_the_result() {
        let parts = [part(1, b"a"), part(2, b"b")];
        let md5s = parts.clone().map(|part| md5_of(&part.etag).unwrap());
        let etag = Checksum::composite(Algorithm::Md5, &md5s).etag().unwrap();
        let head =
            |etag: &str, size| ObjectHead { etag: etag.to_owned(), size, ..ObjectHead::default() };
        let whole = Checksum::of(Algorithm::Crc64Nvme, b"ab");
        assert!(is_result(&head(&etag, 2), &parts, 2, None).is_some());
        assert!(is_result(&head(&etag, 3), &parts, 2, None).is_none());
        assert!(is_result(&head("x-2", 2), &parts, 2, Some(&whole)).is_none());
        let checked = ObjectHead { checksums: vec![whole.clone()], ..head("x", 2) };
        assert!(is_result(&checked, &parts, 2, Some(&whole)).is_some());
        let mut kms = head("x-2", 2);
        kms.headers.insert("x-amz-server-side-encryption", plain("aws:kms"));
        assert!(is_result(&kms, &parts, 2, None).is_some());
        assert!(is_result(&kms, &parts[..1], 2, None).is_none());
    }

    #[test]
    fn parts_and_where_they_go_on() {
        let inner = "<Part><PartNumber>2</PartNumber><ETag>\"e\"</ETag><Size>5</Size>\
        <ChecksumCRC32>y/Q5Jg==</ChecksumCRC32></Part><Part><PartNumber>3</PartNumber><Size>0\
        </Size><ETag>f</ETag></Part>";
        let of = |inner: &str| {
            parts_of(&response(&format!("<ListPartsResult>{inner}</ListPartsResult>")), 1)
        };
        let (parts, next) = of(&format!("{inner}<IsTruncated>false</IsTruncated>")).unwrap();
        assert_eq!((parts[0].number, parts[0].size, parts[0].etag.as_str()), (2, 5, "e"));
        assert!(parts[0].checksum.is_some() && parts[1].checksum.is_none());
        assert_eq!((parts.len(), next), (2, None));
        let more = "<IsTruncated>true</IsTruncated><NextPartNumberMarker>3</NextPartNumberMarker>";
        assert_eq!(of(more).unwrap().1, Some(3));
        let whole = format!("{inner}{more}");
        for (from, to) in [
            ("<Size>5</Size>", ""),
            (">5<", ">-5<"),
            (">5<", ">18446744073709551616<"),
            ("<ETag>f</ETag>", ""),
            ("<ETag>f</ETag>", "<ETag/>"),
            ("<PartNumber>2</PartNumber>", ""),
            (">2</PartN", ">3</PartN"),
            (">2</PartN", ">1</PartN"),
            (">2</PartN", ">0</PartN"),
            (">3</PartN", ">10001</PartN"),
            ("<IsTruncated>true</IsTruncated>", ""),
            (">true<", ">maybe<"),
            ("<NextPartNumberMarker>3</NextPartNumberMarker>", ""),
            (">3</Next", ">1</Next"),
            (">3</Next", ">x</Next"),
        ] {
            let broken = whole.replacen(from, to, 1);
            assert!(broken != whole, "{from}");
            assert_eq!(of(&broken).unwrap_err().kind, ErrorKind::Corrupt, "{from} {to}");
        }
    }

    #[test]
    fn uploads_and_where_they_go_on() {
        let body = "<ListMultipartUploadsResult><EncodingType>url</EncodingType><NextKeyMarker>%C3%A9+\
        </NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker><IsTruncated>true</IsTruncated>\
        <Upload><Key>%C3%A9</Key><UploadId>i</UploadId><Owner><ID>k</ID></Owner><Initiated>\
        2013-05-24T00:00:00.000Z</Initiated></Upload></ListMultipartUploadsResult>";
        let from = PageMarker { key: "é".as_bytes().to_vec(), id: "a".to_owned() };
        let of = |body: &str| uploads_of(&response(body), "é".as_bytes(), &from);
        let (uploads, next) = of(body).unwrap();
        let begun = Time { s: 1_369_353_600, ns: 0 };
        let expected = Upload { key: "é".as_bytes().to_vec(), id: "i".to_owned(), begun };
        assert_eq!(uploads, [expected]);
        assert_eq!(next, Some(PageMarker { key: "é ".as_bytes().to_vec(), id: "u".to_owned() }));
        let second = "<Upload><Key>%C3%A9/</Key><UploadId>i</UploadId><Initiated>\
        2013-05-24T00:00:00.000Z</Initiated></Upload><Upload>";
        for (from, to) in [
            ("<Key>%C3%A9</Key>", ""),
            ("<Key>%C3%A9</Key>", "<Key>e</Key>"),
            ("<UploadId>i</UploadId>", ""),
            ("<UploadId>i</UploadId>", "<UploadId></UploadId>"),
            ("2013-05-24T", "yesterday"),
            ("<IsTruncated>true</IsTruncated>", ""),
            (">true<", "><"),
            ("<NextKeyMarker>%C3%A9+", "<NextKeyMarker>"),
            ("<NextKeyMarker>%C3%A9+", "<NextKeyMarker>%C3%A8"),
            (
                "%C3%A9+</NextKeyMarker><NextUploadIdMarker>u",
                "%C3%A9</NextKeyMarker><NextUploadIdMarker>a",
            ),
            ("<Upload>", second),
        ] {
            let broken = body.replacen(from, to, 1);
            assert!(broken != body, "{from}");
            assert_eq!(of(&broken).unwrap_err().kind, ErrorKind::Corrupt, "{from} {to}");
        }
    }
}
