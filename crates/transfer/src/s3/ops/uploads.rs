//! ListParts and ListMultipartUploads: what unfinished uploads hold.

use super::copy::element;
use super::list::Names;
use super::{Part, number, read, send_and_read, string, utf8};
use crate::s3::header::unquoted;
use crate::s3::time::parse_iso;
use crate::s3::xml::{Node, url_decoded};
use crate::s3::{Client, Error, Kind, Reply, Request};
use crate::unit::Time;
use http::Method;

const PARTS: &str = "ListParts";
const UPLOADS: &str = "ListMultipartUploads";

/// An upload that is not complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upload {
    /// Its key.
    pub key: Vec<u8>,
    /// Its id.
    pub id: String,
    /// When it was begun.
    pub begun: Time,
}

/// All parts that the server has of an upload, in order, over all pages.
///
/// # Errors
/// `NotFound` when the upload is no more; the request's.
pub async fn list_parts(
    client: &Client,
    bucket: &str,
    key: &[u8],
    upload: &str,
) -> Result<Vec<Part>, Error> {
    let mut parts = Vec::new();
    let mut marker = 0;
    loop {
        let mut request = parts_request(bucket, key, upload);
        if marker > 0 {
            request = request.query("part-number-marker", marker.to_string());
        }
        let (page, next) = send_and_read(client, &request, parts_of).await?;
        parts.extend(page);
        match next {
            None => break,
            Some(next) if next > marker => marker = next,
            Some(_) => return Err(stands_still(PARTS)),
        }
    }
    parts.sort_by_key(|part: &Part| part.number);
    Ok(parts)
}

/// Whether the server still has an upload open.
pub(super) async fn upload_is_open(
    client: &Client,
    bucket: &str,
    key: &[u8],
    upload: &str,
) -> Result<bool, Error> {
    let request = parts_request(bucket, key, upload).query("max-parts", "1");
    match client.send(&request).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind == Kind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn parts_request(bucket: &str, key: &[u8], upload: &str) -> Request {
    Request::new(PARTS, Method::GET, Some(bucket)).key(key).query("uploadId", upload)
}

fn stands_still(operation: &'static str) -> Error {
    Error::new(Kind::Corrupt, operation, "the server's listing goes on where it was already")
}

/// The parts of a page, and where the next one begins.
fn parts_of(reply: &Reply) -> Result<(Vec<Part>, Option<u64>), Error> {
    let (mut parts, mut next, mut truncated) = (Vec::new(), 0, false);
    let empty = || Part { number: 0, size: 0, etag: String::new(), checksum: None };
    let mut part = empty();
    read(PARTS, reply, b"ListPartsResult", |node| match node {
        Node::Leaf { parent: b"Part", name, text } => match name {
            b"PartNumber" => part.number = u32::try_from(number(text)).unwrap_or(0),
            b"Size" => part.size = number(text),
            b"ETag" => part.etag = unquoted(&string(text)).to_owned(),
            _ => part.checksum = element(name, text).or(part.checksum.take()),
        },
        Node::Leaf { name: b"NextPartNumberMarker", text, .. } => next = number(text),
        Node::Leaf { name: b"IsTruncated", text, .. } => truncated = text == b"true",
        Node::End { name: b"Part", .. } => parts.push(std::mem::replace(&mut part, empty())),
        _ => {}
    })?;
    Ok((parts, truncated.then_some(next)))
}

/// All unfinished uploads of keys below a prefix, over all pages.
///
/// # Errors
/// The request's; `Invalid` for a prefix that is not UTF-8.
pub async fn list_uploads(
    client: &Client,
    bucket: &str,
    prefix: &[u8],
) -> Result<Vec<Upload>, Error> {
    let mut uploads = Vec::new();
    let mut from: Option<(Vec<u8>, String)> = None;
    loop {
        let mut request = Request::new(UPLOADS, Method::GET, Some(bucket))
            .query("uploads", "")
            .query("encoding-type", "url");
        if !prefix.is_empty() {
            request = request.query("prefix", utf8(UPLOADS, prefix)?);
        }
        if let Some((key, id)) = &from {
            request = request.query("key-marker", utf8(UPLOADS, key)?);
            if !id.is_empty() {
                request = request.query("upload-id-marker", id);
            }
        }
        let (page, next) = send_and_read(client, &request, uploads_of).await?;
        uploads.extend(page);
        if next.is_some() && next == from {
            return Err(stands_still(UPLOADS));
        }
        match next {
            Some(next) if !next.0.is_empty() => from = Some(next),
            Some(_) => return Err(stands_still(UPLOADS)),
            None => return Ok(uploads),
        }
    }
}

/// The uploads of a page, and where the next one begins: after which key and which upload of it.
#[expect(clippy::type_complexity, reason = "a page")]
fn uploads_of(reply: &Reply) -> Result<(Vec<Upload>, Option<(Vec<u8>, String)>), Error> {
    let (mut uploads, mut upload) = (Vec::new(), Upload::default());
    let (mut next, mut truncated, mut names) =
        (<(Vec<u8>, String)>::default(), false, Names::default());
    read(UPLOADS, reply, b"ListMultipartUploadsResult", |node| match node {
        Node::Leaf { parent: b"Upload", name, text } => match name {
            b"Key" => upload.key = names.keep(text),
            b"UploadId" => upload.id = string(text),
            b"Initiated" => upload.begun = parse_iso(text).unwrap_or_default(),
            _ => {}
        },
        Node::End { name: b"Upload", .. } => uploads.push(std::mem::take(&mut upload)),
        Node::Leaf { parent: b"ListMultipartUploadsResult", name, text } => match name {
            b"EncodingType" => names.encoding(text),
            b"IsTruncated" => truncated = text == b"true",
            b"NextKeyMarker" => next.0 = names.keep(text),
            b"NextUploadIdMarker" => next.1 = string(text),
            _ => {}
        },
        _ => {}
    })?;
    if names.are_encoded() {
        let keys = uploads.iter_mut().map(|upload| &mut upload.key);
        for name in keys.chain([&mut next.0]) {
            *name = url_decoded(name);
        }
    }
    Ok((uploads, truncated.then_some(next)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};

    fn reply(body: &str) -> Reply {
        let body = Bytes::from(body.to_owned());
        Reply { status: StatusCode::OK, headers: HeaderMap::new(), body }
    }

    #[test]
    fn parts_and_where_they_go_on() {
        let inner = "<Part><PartNumber>2</PartNumber><ETag>\"e\"</ETag><Size>5</Size>\
            <ChecksumCRC32>y/Q5Jg==</ChecksumCRC32></Part><Part><PartNumber>3</PartNumber></Part>";
        let of =
            |inner: &str| parts_of(&reply(&format!("<ListPartsResult>{inner}</ListPartsResult>")));
        let (parts, next) = of(inner).unwrap();
        assert_eq!((parts[0].number, parts[0].size, parts[0].etag.as_str()), (2, 5, "e"));
        assert!(parts[0].checksum.is_some() && parts[1].checksum.is_none());
        assert_eq!((parts.len(), next), (2, None));
        let more = "<IsTruncated>true</IsTruncated><NextPartNumberMarker>3</NextPartNumberMarker>";
        assert_eq!(of(more).unwrap().1, Some(3));
    }

    #[test]
    fn uploads_and_where_they_go_on() {
        let body = "<ListMultipartUploadsResult><EncodingType>url</EncodingType><NextKeyMarker>a+\
            </NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker><IsTruncated>true</IsTruncated>\
            <Upload><Key>%C3%A9</Key><UploadId>i</UploadId><Owner><ID>k</ID></Owner><Initiated>\
            2013-05-24T00:00:00.000Z</Initiated></Upload></ListMultipartUploadsResult>";
        let (uploads, next) = uploads_of(&reply(body)).unwrap();
        let begun = Time { s: 1_369_353_600, ns: 0 };
        let expected = Upload { key: "é".as_bytes().to_vec(), id: "i".to_owned(), begun };
        assert_eq!(uploads, [expected]);
        assert_eq!(next, Some((b"a ".to_vec(), "u".to_owned())));
    }
}
