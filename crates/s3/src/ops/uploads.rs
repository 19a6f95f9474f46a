//! ListParts and ListMultipartUploads: unfinished uploads and their parts.

use super::copy::element;
use super::list::{Names, name_violation};
use super::trust::{
    Marker, NO_PROGRESS, NO_SUCCESSOR, PageCheck, ask, flag, number, out_of_order, time, untrusted,
    words,
};
use super::{Part, query_key, read, send_and_read};
use crate::header::unquoted;
use crate::xml::Node;
use crate::{Checksum, Client, Error, Kind, Reply, Request};
use hakobu_core::percent;
use hakobu_core::unit::Time;
use http::Method;

const PARTS: &str = "ListParts";
const UPLOADS: &str = "ListMultipartUploads";
/// Largest part number (API reference, UploadPart).
const PART_NUMBER_MAX: u64 = 10_000;

/// An unfinished upload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upload {
    /// Key.
    pub key: Vec<u8>,
    /// Id.
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
        let page = |reply: &Reply| parts_of(reply, marker);
        let (page, next) = send_and_read(client, &request, page).await?;
        parts.extend(page);
        match next {
            None => return Ok(parts),
            Some(next) => marker = next,
        }
    }
}

/// True if an upload is still open on the server.
pub(super) async fn upload_is_open(
    client: &Client,
    bucket: &str,
    key: &[u8],
    upload: &str,
) -> Result<bool, Error> {
    let request = parts_request(bucket, key, upload).query("max-parts", "1");
    match send_and_read(client, &request, |reply| parts_of(reply, 0)).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind == Kind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn parts_request(bucket: &str, key: &[u8], upload: &str) -> Request {
    Request::new(PARTS, Method::GET, Some(bucket)).key(key).query("uploadId", upload)
}

/// Fields of the current part.
#[derive(Default)]
struct Fields {
    number: Option<u32>,
    size: Option<u64>,
    etag: Option<String>,
    checksum: Option<Checksum>,
}

impl Fields {
    fn part(self, check: &mut PageCheck) -> Option<Part> {
        let of = "a part of it";
        let number = check.need(self.number, "PartNumber", of);
        let size = check.need(self.size, "Size", of);
        let etag = check.need(self.etag, "ETag", of);
        Some(Part { number: number?, size: size?, etag: etag?, checksum: self.checksum })
    }
}

/// Parts of the page after part `marker`, and the marker of the next page.
fn parts_of(reply: &Reply, marker: u64) -> Result<(Vec<Part>, Option<u64>), Error> {
    const ROOT: &[u8] = b"ListPartsResult";
    let (mut parts, mut next, mut truncated) = (Vec::new(), None, None);
    let (mut part, mut check) = (Fields::default(), PageCheck::default());
    let part_number = |text: &[u8]| {
        let number = number(text).filter(|number| (1..=PART_NUMBER_MAX).contains(number))?;
        u32::try_from(number).ok()
    };
    read(PARTS, reply, ROOT, |node| match node {
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
    let mut from = Marker::default();
    loop {
        let request = Request::new(UPLOADS, Method::GET, Some(bucket))
            .query("uploads", "")
            .query("encoding-type", "url");
        let request = from.query(query_key(request, "prefix", prefix)?, "upload-id-marker")?;
        let page = |reply: &Reply| uploads_of(reply, prefix, &from);
        let (page, next) = ask(client, &request, page).await?;
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

/// Fields of the current upload.
#[derive(Default)]
struct Begun {
    key: Option<Vec<u8>>,
    id: Option<String>,
    begun: Option<Time>,
}

impl Begun {
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
    reply: &Reply,
    prefix: &[u8],
    from: &Marker,
) -> Result<(Vec<Upload>, Option<Marker>), Error> {
    const ROOT: &[u8] = b"ListMultipartUploadsResult";
    let (mut uploads, mut upload, mut check) =
        (Vec::<Upload>::new(), Begun::default(), PageCheck::default());
    let (mut next_key, mut next_id, mut truncated) = (None, None, None);
    let mut names = Names::default();
    read(UPLOADS, reply, ROOT, |node| match node {
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

    fn reply(body: &str) -> Reply {
        Reply::of(body.to_owned())
    }

    #[test]
    fn parts_and_where_they_go_on() {
        let inner = "<Part><PartNumber>2</PartNumber><ETag>\"e\"</ETag><Size>5</Size>\
            <ChecksumCRC32>y/Q5Jg==</ChecksumCRC32></Part><Part><PartNumber>3</PartNumber><Size>0\
            </Size><ETag>f</ETag></Part>";
        let of = |inner: &str| {
            parts_of(&reply(&format!("<ListPartsResult>{inner}</ListPartsResult>")), 1)
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
            assert_eq!(of(&broken).unwrap_err().kind, Kind::Corrupt, "{from} {to}");
        }
    }

    #[test]
    fn uploads_and_where_they_go_on() {
        let body = "<ListMultipartUploadsResult><EncodingType>url</EncodingType><NextKeyMarker>%C3%A9+\
            </NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker><IsTruncated>true</IsTruncated>\
            <Upload><Key>%C3%A9</Key><UploadId>i</UploadId><Owner><ID>k</ID></Owner><Initiated>\
            2013-05-24T00:00:00.000Z</Initiated></Upload></ListMultipartUploadsResult>";
        let from = Marker { key: "é".as_bytes().to_vec(), id: "a".to_owned() };
        let of = |body: &str| uploads_of(&reply(body), "é".as_bytes(), &from);
        let (uploads, next) = of(body).unwrap();
        let begun = Time { s: 1_369_353_600, ns: 0 };
        let expected = Upload { key: "é".as_bytes().to_vec(), id: "i".to_owned(), begun };
        assert_eq!(uploads, [expected]);
        assert_eq!(next, Some(Marker { key: "é ".as_bytes().to_vec(), id: "u".to_owned() }));
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
            assert_eq!(of(&broken).unwrap_err().kind, Kind::Corrupt, "{from} {to}");
        }
    }
}
