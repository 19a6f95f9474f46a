//! Responses of the null server. It stores nothing: every object exists, every upload succeeds.

use super::list;
use super::list::{ETAG, LAST_MODIFIED_ISO};
use super::payload::Payload;
use super::space::Space;
use crate::operation::{Operation, split};
use crate::xml;
use hakobu_core::percent;
use parking_lot::Mutex;
use std::collections::HashMap;

/// [`ETAG`] in quotes, for headers.
const ETAG_QUOTED: &str = "\"0123456789abcdef0123456789abcdef-1\"";
/// [`LAST_MODIFIED_ISO`] in header format.
const LAST_MODIFIED: &str = "Mon, 01 Jan 2024 00:00:00 GMT";

/// Properties of a request that determine its response.
#[derive(Debug)]
pub struct Request<'a> {
    /// The operation.
    pub operation: Operation,
    /// Path as sent.
    pub path: &'a str,
    /// Query as sent.
    pub query: &'a str,
    /// The `range` header.
    pub range: Option<&'a str>,
    /// True for `x-amz-checksum-mode: ENABLED`.
    pub wants_checksum: bool,
    /// Name and value of an `x-amz-checksum-…` header or trailer.
    pub checksum: Option<(&'a str, &'a str)>,
    /// Body of DeleteObjects; other bodies are discarded.
    pub body: &'a [u8],
}

/// Body of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The response's own text.
    Text,
    /// A range of the payload: offset and length.
    Payload(u64, u64),
    /// No body, although the header states this length: response to HEAD.
    Withheld(u64),
    /// No body and no length: 204.
    Nothing,
}

/// A response, reused for all requests of a connection.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Header lines, each with CR LF, without length, date and request id.
    pub lines: Vec<u8>,
    /// Text of the body.
    pub text: Vec<u8>,
    /// Kind of body.
    pub content: Content,
}

impl Default for Answer {
    fn default() -> Answer {
        Answer { status: 200, lines: Vec::new(), text: Vec::new(), content: Content::Text }
    }
}

impl Answer {
    fn line(&mut self, name: &str, value: &str) {
        for part in [name, ": ", value, "\r\n"] {
            self.lines.extend_from_slice(part.as_bytes());
        }
    }

    /// Sets the body to an XML document; `text` may be its first part.
    fn xml(&mut self, text: &str) {
        self.line("Content-Type", "application/xml");
        self.text.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        self.text.extend_from_slice(text.as_bytes());
    }

    /// Content length in the header, bytes.
    pub fn length(&self) -> u64 {
        match self.content {
            Content::Text => self.text.len() as u64,
            Content::Payload(_, bytes) | Content::Withheld(bytes) => bytes,
            Content::Nothing => 0,
        }
    }

    /// Bytes sent after the header.
    pub fn body_bytes(&self) -> u64 {
        if matches!(self.content, Content::Withheld(_)) { 0 } else { self.length() }
    }

    /// Turns it into an error.
    pub fn error(&mut self, status: u16, code: &str, message: &str, resource: &str) {
        *self = Answer { status, ..Answer::default() };
        self.line("Content-Type", "application/xml");
        self.text = xml::error(code, message, resource, None);
    }
}

/// Content of the null server.
pub struct Store {
    /// Keys in listings.
    pub space: Space,
    /// Default size of objects, bytes; a key may specify another.
    pub object_bytes: u64,
    /// Content of objects.
    pub payload: Payload,
    sums: Mutex<HashMap<u64, String>>,
    /// Checksum of an object of the default size.
    sum: String,
}

impl Store {
    /// Creates a store with `keys` listed keys.
    pub fn new(keys: u64, object_bytes: u64) -> Store {
        let payload = Payload::new();
        let sum = payload.crc64nvme(object_bytes);
        let sums = Mutex::default();
        Store { space: Space::new(keys), object_bytes, payload, sums, sum }
    }

    /// Size of the object at a path: a key that ends in `.size-N` has N bytes.
    fn bytes_of(&self, path: &str) -> u64 {
        let named = path.rsplit_once(".size-").and_then(|(_, digits)| {
            digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
        });
        named.filter(|bytes| *bytes <= i64::MAX as u64).unwrap_or(self.object_bytes)
    }

    fn checksum(&self, bytes: u64, answer: &mut Answer) {
        answer.line("x-amz-checksum-type", "FULL_OBJECT");
        if bytes == self.object_bytes {
            return answer.line("x-amz-checksum-crc64nvme", &self.sum);
        }
        let mut sums = self.sums.lock();
        if sums.len() > 10_000 {
            sums.clear();
        }
        let sum = sums.entry(bytes).or_insert_with(|| self.payload.crc64nvme(bytes));
        answer.line("x-amz-checksum-crc64nvme", sum);
    }

    /// Fills in the response to a request.
    pub fn answer(&self, request: &Request<'_>, answer: &mut Answer) {
        (answer.status, answer.content) = (200, Content::Text);
        answer.lines.clear();
        answer.text.clear();
        let quoted = ETAG_QUOTED;
        let (bucket, key) = split(request.path);
        match request.operation {
            Operation::PutObject | Operation::UploadPart => {
                answer.line("ETag", quoted);
                if let Some((name, value)) = request.checksum {
                    answer.line(name, value);
                    if request.operation == Operation::PutObject {
                        answer.line("x-amz-checksum-type", "FULL_OBJECT");
                    }
                }
            }
            Operation::GetObject | Operation::HeadObject => self.object(request, answer),
            Operation::ListObjectsV2 | Operation::ListObjects => {
                let v2 = request.operation == Operation::ListObjectsV2;
                match list::Query::parse(request.query, v2) {
                    Ok(query) => {
                        answer.line("Content-Type", "application/xml");
                        let text = &mut answer.text;
                        list::push(&query, &self.space, bucket, self.object_bytes, text);
                    }
                    Err(name) => answer.error(
                        400,
                        "InvalidArgument",
                        &format!("{name} makes no sense"),
                        request.path,
                    ),
                }
            }
            Operation::DeleteObjects => deleted(request.body, answer),
            Operation::DeleteObject | Operation::AbortMultipartUpload | Operation::DeleteBucket => {
                (answer.status, answer.content) = (204, Content::Nothing);
            }
            Operation::CreateMultipartUpload => answer.xml(&format!(
                "<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{}</Key>\
                 <UploadId>null</UploadId></InitiateMultipartUploadResult>",
                name(key)
            )),
            Operation::CompleteMultipartUpload => {
                let sum = request.checksum.and_then(|(header, value)| {
                    let kind = header.strip_prefix("x-amz-checksum-")?.to_ascii_uppercase();
                    Some(format!(
                        "<Checksum{kind}>{value}</Checksum{kind}>\
                         <ChecksumType>FULL_OBJECT</ChecksumType>"
                    ))
                });
                answer.xml(&format!(
                    "<CompleteMultipartUploadResult><Location>{path}</Location>\
                     <Bucket>{bucket}</Bucket><Key>{}</Key><ETag>&quot;{ETAG}&quot;</ETag>{}\
                     </CompleteMultipartUploadResult>",
                    name(key),
                    sum.unwrap_or_default(),
                    path = name(request.path),
                ));
            }
            Operation::CopyObject => answer.xml(&copied("CopyObjectResult")),
            Operation::UploadPartCopy => answer.xml(&copied("CopyPartResult")),
            Operation::ListParts => answer.xml(&format!(
                "<ListPartsResult><Bucket>{bucket}</Bucket><Key>{}</Key><UploadId>null</UploadId>\
                 <PartNumberMarker>0</PartNumberMarker><MaxParts>1000</MaxParts>\
                 <IsTruncated>false</IsTruncated></ListPartsResult>",
                name(key)
            )),
            Operation::ListMultipartUploads => answer.xml(&format!(
                "<ListMultipartUploadsResult><Bucket>{bucket}</Bucket>\
                 <MaxUploads>1000</MaxUploads><IsTruncated>false</IsTruncated>\
                 </ListMultipartUploadsResult>"
            )),
            Operation::HeadBucket => {
                answer.line("x-amz-bucket-region", "us-east-1");
                answer.content = Content::Withheld(0);
            }
            Operation::CreateBucket => answer.line("Location", &format!("/{bucket}")),
            Operation::ListBuckets => answer.xml(&format!(
                "<ListAllMyBucketsResult><Owner><ID>null</ID></Owner><Buckets><Bucket>\
                 <Name>null</Name><CreationDate>{LAST_MODIFIED_ISO}</CreationDate></Bucket>\
                 </Buckets></ListAllMyBucketsResult>"
            )),
            Operation::GetBucketLocation => answer
                .xml("<LocationConstraint xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"/>"),
            Operation::ListObjectVersions | Operation::Other => answer.error(
                501,
                "NotImplemented",
                "the null server does not know this operation",
                request.path,
            ),
        }
    }

    fn object(&self, request: &Request<'_>, answer: &mut Answer) {
        let bytes = self.bytes_of(request.path);
        let range = match request.range.map(|text| super::range::parse(text, bytes)) {
            Some(Ok(range)) => range,
            None => None,
            Some(Err(())) => {
                answer.error(416, "InvalidRange", "no byte of the object is in it", request.path);
                answer.line("Content-Range", &format!("bytes */{bytes}"));
                if request.operation == Operation::HeadObject {
                    answer.content = Content::Withheld(answer.text.len() as u64);
                }
                return;
            }
        };
        answer.line("ETag", ETAG_QUOTED);
        answer.line("Last-Modified", LAST_MODIFIED);
        answer.line("Accept-Ranges", "bytes");
        answer.line("Content-Type", "application/octet-stream");
        let (first, count) = match range {
            Some((first, last)) => {
                answer.status = 206;
                answer.line("Content-Range", &format!("bytes {first}-{last}/{bytes}"));
                (first, last - first + 1)
            }
            None => (0, bytes),
        };
        // Like S3, a range comes without the checksum of the whole object.
        if request.wants_checksum && range.is_none() {
            self.checksum(bytes, answer);
        }
        answer.content = match request.operation {
            Operation::HeadObject => Content::Withheld(count),
            _ => Content::Payload(first, count),
        };
    }
}

/// A key or path as sent, escaped for XML.
fn name(encoded: &str) -> String {
    let mut out = Vec::new();
    xml::push_escaped(&percent::decode(encoded.as_bytes(), false), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn copied(element: &str) -> String {
    format!(
        "<{element}><LastModified>{LAST_MODIFIED_ISO}</LastModified>\
         <ETag>&quot;{ETAG}&quot;</ETag></{element}>"
    )
}

/// Response to DeleteObjects: every named key is deleted.
fn deleted(body: &[u8], answer: &mut Answer) {
    let body = String::from_utf8_lossy(body);
    answer.xml("<DeleteResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    if !body.contains("<Quiet>true</Quiet>") {
        for key in xml::texts(&body, "Key") {
            // The key came escaped and is returned unchanged.
            for part in ["<Deleted><Key>", key, "</Key></Deleted>"] {
                answer.text.extend_from_slice(part.as_bytes());
            }
        }
    }
    answer.text.extend_from_slice(b"</DeleteResult>");
}
