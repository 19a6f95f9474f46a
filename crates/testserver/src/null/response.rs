//! Responses of the null server, which stores nothing: every object exists, every upload succeeds. Their content is the
//! prefix of an infinite sequence. Behind the layer the same responses are hyper types, for faults and conditions, not for
//! measuring.

use super::keys::{ETAG, KeySpace, LAST_MODIFIED_ISO, NullListQuery, push_listing};
use super::{CHECKSUM, checksum_trailer};
use crate::protocol::{self, Operation, REQUEST_ID, split_path};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, checksum, checksum_combine};
use hakobu_core::percent;
use http::{HeaderName, HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use s3s::Body;
use std::collections::HashMap;
use std::error::Error;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// [`ETAG`] in quotes, for headers.
const ETAG_QUOTED: &str = "\"0123456789abcdef0123456789abcdef-1\"";
/// [`LAST_MODIFIED_ISO`] in header format.
const LAST_MODIFIED: &str = "Mon, 01 Jan 2024 00:00:00 GMT";

/// Properties of a request that determine its response.
#[derive(Debug)]
pub struct NullRequest<'a> {
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
pub enum NullBody {
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
pub struct NullResponse {
    /// The status code.
    pub status: u16,
    /// Header lines, each with CR LF, without length, date and request id.
    pub lines: Vec<u8>,
    /// Text of the body.
    pub text: Vec<u8>,
    /// Kind of body.
    pub content: NullBody,
}

impl Default for NullResponse {
    fn default() -> NullResponse {
        NullResponse { status: 200, lines: Vec::new(), text: Vec::new(), content: NullBody::Text }
    }
}

impl NullResponse {
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
            NullBody::Text => self.text.len() as u64,
            NullBody::Payload(_, bytes) | NullBody::Withheld(bytes) => bytes,
            NullBody::Nothing => 0,
        }
    }

    /// Bytes sent after the header.
    pub fn body_bytes(&self) -> u64 {
        if matches!(self.content, NullBody::Withheld(_)) { 0 } else { self.length() }
    }

    /// Turns it into an error.
    pub fn error(&mut self, status: u16, code: &str, message: &str, resource: &str) {
        *self = NullResponse { status, ..NullResponse::default() };
        self.line("Content-Type", "application/xml");
        self.text = protocol::error_body(code, message, resource, None);
    }
}

/// Content of the null server.
pub struct NullStore {
    /// Keys in listings.
    pub space: KeySpace,
    /// Default size of objects, bytes; a key may specify another.
    pub object_bytes: u64,
    /// Content of objects.
    pub payload: Payload,
    sums: Mutex<HashMap<u64, String>>,
    /// Checksum of an object of the default size.
    sum: String,
}

impl NullStore {
    /// Creates a store with `keys` listed keys.
    pub fn new(keys: u64, object_bytes: u64) -> NullStore {
        let payload = Payload::new();
        let sum = payload.crc64nvme(object_bytes);
        let sums = Mutex::default();
        NullStore { space: KeySpace::new(keys), object_bytes, payload, sums, sum }
    }

    /// Size of the object at a path: a key that ends in `.size-N` has N bytes.
    fn bytes_of(&self, path: &str) -> u64 {
        let named = path.rsplit_once(".size-").and_then(|(_, digits)| {
            digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
        });
        named.filter(|bytes| *bytes <= i64::MAX as u64).unwrap_or(self.object_bytes)
    }

    fn checksum(&self, bytes: u64, response: &mut NullResponse) {
        response.line("x-amz-checksum-type", "FULL_OBJECT");
        if bytes == self.object_bytes {
            return response.line("x-amz-checksum-crc64nvme", &self.sum);
        }
        let mut sums = self.sums.lock();
        if sums.len() > 10_000 {
            sums.clear();
        }
        let sum = sums.entry(bytes).or_insert_with(|| self.payload.crc64nvme(bytes));
        response.line("x-amz-checksum-crc64nvme", sum);
    }

    /// Fills in the response to a request.
    pub fn respond(&self, request: &NullRequest<'_>, response: &mut NullResponse) {
        (response.status, response.content) = (200, NullBody::Text);
        response.lines.clear();
        response.text.clear();
        let quoted = ETAG_QUOTED;
        let (bucket, key) = split_path(request.path);
        match request.operation {
            Operation::PutObject | Operation::UploadPart => {
                response.line("ETag", quoted);
                if let Some((name, value)) = request.checksum {
                    response.line(name, value);
                    if request.operation == Operation::PutObject {
                        response.line("x-amz-checksum-type", "FULL_OBJECT");
                    }
                }
            }
            Operation::GetObject | Operation::HeadObject => self.object(request, response),
            Operation::ListObjectsV2 | Operation::ListObjects => {
                let v2 = request.operation == Operation::ListObjectsV2;
                match NullListQuery::parse(request.query, v2) {
                    Ok(query) => {
                        response.line("Content-Type", "application/xml");
                        let text = &mut response.text;
                        push_listing(&query, &self.space, bucket, self.object_bytes, text);
                    }
                    Err(name) => response.error(
                        400,
                        "InvalidArgument",
                        &format!("{name} makes no sense"),
                        request.path,
                    ),
                }
            }
            Operation::DeleteObjects => deleted(request.body, response),
            Operation::DeleteObject | Operation::AbortMultipartUpload | Operation::DeleteBucket => {
                (response.status, response.content) = (204, NullBody::Nothing);
            }
            Operation::CreateMultipartUpload => response.xml(&format!(
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
                response.xml(&format!(
                    "<CompleteMultipartUploadResult><Location>{path}</Location>\
                     <Bucket>{bucket}</Bucket><Key>{}</Key><ETag>&quot;{ETAG}&quot;</ETag>{}\
                     </CompleteMultipartUploadResult>",
                    name(key),
                    sum.unwrap_or_default(),
                    path = name(request.path),
                ));
            }
            Operation::CopyObject => response.xml(&copied("CopyObjectResult")),
            Operation::UploadPartCopy => response.xml(&copied("CopyPartResult")),
            Operation::ListParts => response.xml(&format!(
                "<ListPartsResult><Bucket>{bucket}</Bucket><Key>{}</Key><UploadId>null</UploadId>\
                 <PartNumberMarker>0</PartNumberMarker><MaxParts>1000</MaxParts>\
                 <IsTruncated>false</IsTruncated></ListPartsResult>",
                name(key)
            )),
            Operation::ListMultipartUploads => response.xml(&format!(
                "<ListMultipartUploadsResult><Bucket>{bucket}</Bucket>\
                 <MaxUploads>1000</MaxUploads><IsTruncated>false</IsTruncated>\
                 </ListMultipartUploadsResult>"
            )),
            Operation::HeadBucket => {
                response.line("x-amz-bucket-region", "us-east-1");
                response.content = NullBody::Withheld(0);
            }
            Operation::CreateBucket => response.line("Location", &format!("/{bucket}")),
            Operation::ListBuckets => response.xml(&format!(
                "<ListAllMyBucketsResult><Owner><ID>null</ID></Owner><Buckets><Bucket>\
                 <Name>null</Name><CreationDate>{LAST_MODIFIED_ISO}</CreationDate></Bucket>\
                 </Buckets></ListAllMyBucketsResult>"
            )),
            Operation::GetBucketLocation => response
                .xml("<LocationConstraint xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"/>"),
            Operation::ListObjectVersions | Operation::Other => response.error(
                501,
                "NotImplemented",
                "the null server does not know this operation",
                request.path,
            ),
        }
    }

    fn object(&self, request: &NullRequest<'_>, response: &mut NullResponse) {
        let bytes = self.bytes_of(request.path);
        let range = match request.range.map(|text| parse_range(text, bytes)) {
            Some(Ok(range)) => range,
            None => None,
            Some(Err(())) => {
                response.error(416, "InvalidRange", "no byte of the object is in it", request.path);
                response.line("Content-Range", &format!("bytes */{bytes}"));
                if request.operation == Operation::HeadObject {
                    response.content = NullBody::Withheld(response.text.len() as u64);
                }
                return;
            }
        };
        response.line("ETag", ETAG_QUOTED);
        response.line("Last-Modified", LAST_MODIFIED);
        response.line("Accept-Ranges", "bytes");
        response.line("Content-Type", "application/octet-stream");
        let (first, count) = match range {
            Some((first, last)) => {
                response.status = 206;
                response.line("Content-Range", &format!("bytes {first}-{last}/{bytes}"));
                (first, last - first + 1)
            }
            None => (0, bytes),
        };
        // Like S3, a range comes without the checksum of the whole object.
        if request.wants_checksum && range.is_none() {
            self.checksum(bytes, response);
        }
        response.content = match request.operation {
            Operation::HeadObject => NullBody::Withheld(count),
            _ => NullBody::Payload(first, count),
        };
    }
}

/// A key or path as sent, escaped for XML.
fn name(encoded: &str) -> String {
    let mut out = Vec::new();
    protocol::push_escaped(&percent::decode(encoded.as_bytes(), false), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn copied(element: &str) -> String {
    format!(
        "<{element}><LastModified>{LAST_MODIFIED_ISO}</LastModified>\
         <ETag>&quot;{ETAG}&quot;</ETag></{element}>"
    )
}

/// Response to DeleteObjects: every named key is deleted.
fn deleted(body: &[u8], response: &mut NullResponse) {
    let body = String::from_utf8_lossy(body);
    response.xml("<DeleteResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    if !body.contains("<Quiet>true</Quiet>") {
        for key in protocol::element_texts(&body, "Key") {
            // The key came escaped and is returned unchanged.
            for part in ["<Deleted><Key>", key, "</Key></Deleted>"] {
                response.text.extend_from_slice(part.as_bytes());
            }
        }
    }
    response.text.extend_from_slice(b"</DeleteResult>");
}

/// First and last byte of a range of an object of `bytes` bytes. `None` for the whole object: if the text is
/// invalid, or has several ranges, which S3 does not support either.
///
/// # Errors
/// The range is not satisfiable (416).
pub fn parse_range(text: &str, bytes: u64) -> Result<Option<(u64, u64)>, ()> {
    let Some((first, last)) = text.trim().strip_prefix("bytes=").and_then(|r| r.split_once('-'))
    else {
        return Ok(None);
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A number above u64::MAX is beyond any object.
    let number = |text: &str| text.parse().unwrap_or(u64::MAX);
    let end = bytes.saturating_sub(1);
    match (digits(first), digits(last)) {
        (true, true) if number(first) > number(last) => Ok(None),
        (true, true) if number(first) < bytes => Ok(Some((number(first), number(last).min(end)))),
        (true, false) if last.is_empty() && number(first) < bytes => Ok(Some((number(first), end))),
        (true, true) => Err(()),
        (true, false) if last.is_empty() => Err(()),
        (false, true) if first.is_empty() && (number(last) == 0 || bytes == 0) => Err(()),
        (false, true) if first.is_empty() => Ok(Some((bytes.saturating_sub(number(last)), end))),
        _ => Ok(None),
    }
}

/// Period in bytes: just below 256 KiB, to fit a core's cache.
pub const PERIOD: usize = 262_139;

/// Most slices per write.
const SLICES_MAX: usize = 16;

/// The sequence.
pub struct Payload {
    pattern: Vec<u8>,
}

impl Payload {
    /// Generates the sequence from xorshift64 (Marsaglia 2003), seed 1, lowest byte of each number.
    pub fn new() -> Payload {
        let mut state = 1u64;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        Payload { pattern: std::iter::repeat_with(next).take(PERIOD).collect() }
    }

    /// Up to `bytes` bytes at offset `from`, as slices for one write.
    pub fn slices(&self, from: u64, bytes: u64) -> impl Iterator<Item = IoSlice<'_>> {
        self.parts(from, bytes).map(IoSlice::new).take(SLICES_MAX)
    }

    /// `bytes` bytes at offset `from`, in pieces.
    pub fn parts(&self, from: u64, bytes: u64) -> impl Iterator<Item = &[u8]> {
        let (mut at, mut left) = ((from % PERIOD as u64) as usize, bytes);
        std::iter::from_fn(move || {
            let rest = self.pattern.get(at..)?;
            let rest = &rest[..rest.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            if rest.is_empty() {
                return None;
            }
            left -= rest.len() as u64;
            at = (at + rest.len()) % PERIOD;
            Some(rest)
        })
    }

    /// CRC-64/NVME of the first `bytes` bytes in the form of `x-amz-checksum-crc64nvme`. The cost is
    /// logarithmic in the size: checksums of equal pieces are combined.
    pub fn crc64nvme(&self, bytes: u64) -> String {
        const KIND: CrcAlgorithm = CrcAlgorithm::Crc64Nvme;
        let (mut periods, rest) = (bytes / PERIOD as u64, (bytes % PERIOD as u64) as usize);
        // Whole periods by repeated doubling: `block` is the checksum of 1, 2, 4, … periods.
        let (mut sum, mut length) = (checksum(KIND, b""), 0u64);
        let (mut block, mut block_length) = (checksum(KIND, &self.pattern), PERIOD as u64);
        while periods > 0 {
            if periods & 1 == 1 {
                sum = checksum_combine(KIND, block, sum, length);
                length += block_length;
            }
            periods >>= 1;
            if periods > 0 {
                block = checksum_combine(KIND, block, block, block_length);
                block_length *= 2;
            }
        }
        let tail = self.pattern.get(..rest).unwrap_or_default();
        sum = checksum_combine(KIND, sum, checksum(KIND, tail), rest as u64);
        STANDARD.encode(sum.to_be_bytes())
    }
}

type Failure = Box<dyn Error + Send + Sync>;

/// Bytes kept of a body: enough for DeleteObjects and for trailers.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// Responds to a request behind the layer.
///
/// # Errors
/// Its body cannot be read.
pub async fn respond_layered(
    store: &Arc<NullStore>,
    request: Request<Body>,
    operation: Operation,
) -> Result<Response<Body>, Failure> {
    let (parts, mut sent) = request.into_parts();
    let mut kept = Vec::new();
    while let Some(frame) = sent.frame().await {
        if let Ok(data) = frame?.into_data() {
            kept.extend_from_slice(&data);
            if kept.len() > 2 * KEPT_BYTES_MAX {
                kept.drain(..kept.len() - KEPT_BYTES_MAX);
            }
        }
    }
    let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let sums = parts.headers.iter().filter(|(name, _)| {
        let rest = name.as_str().strip_prefix(CHECKSUM);
        rest.is_some_and(|rest| !["algorithm", "mode", "type"].contains(&rest))
    });
    let mut sums = sums.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let trailer = || text("x-amz-trailer").and_then(|_| checksum_trailer(&kept));
    let described = NullRequest {
        operation,
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or(""),
        range: text("range"),
        wants_checksum: text("x-amz-checksum-mode")
            .is_some_and(|m| m.eq_ignore_ascii_case("enabled")),
        checksum: sums.next().or_else(trailer),
        body: &kept,
    };
    let mut null = NullResponse::default();
    store.respond(&described, &mut null);
    finish(store, null)
}

fn finish(store: &Arc<NullStore>, mut null: NullResponse) -> Result<Response<Body>, Failure> {
    let length = null.length();
    let text = std::mem::take(&mut null.text);
    let body = match null.content {
        NullBody::Text => Body::from(text),
        NullBody::Nothing | NullBody::Withheld(_) => Body::empty(),
        NullBody::Payload(from, left) => {
            Body::http_body(PayloadBody { store: Arc::clone(store), from, left })
        }
    };
    let mut response = Response::builder().status(null.status).body(body)?;
    let headers = response.headers_mut();
    for line in null.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':').ok_or("a line without a colon")?;
        let name = HeaderName::from_bytes(&line[..colon])?;
        headers.append(name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii())?);
    }
    if null.content != NullBody::Nothing {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    headers.insert("x-amz-request-id", HeaderValue::from_static(REQUEST_ID));
    Ok(response)
}

/// A range of the payload as a body.
struct PayloadBody {
    store: Arc<NullStore>,
    from: u64,
    left: u64,
}

impl hyper::body::Body for PayloadBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        let piece =
            this.store.payload.parts(this.from, this.left).next().map(Bytes::copy_from_slice);
        Poll::Ready(piece.map(|piece| {
            this.from += piece.len() as u64;
            this.left -= piece.len() as u64;
            Ok(Frame::data(piece))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        for (text, bytes, expected) in [
            ("bytes=0-0", 10, Ok(Some((0, 0)))),
            ("bytes=2-5", 10, Ok(Some((2, 5)))),
            ("bytes=2-50", 10, Ok(Some((2, 9)))),
            ("bytes=2-", 10, Ok(Some((2, 9)))),
            ("bytes=-3", 10, Ok(Some((7, 9)))),
            ("bytes=-30", 10, Ok(Some((0, 9)))),
            ("bytes=10-", 10, Err(())),
            ("bytes=10-12", 10, Err(())),
            ("bytes=-0", 10, Err(())),
            ("bytes=0-", 0, Err(())),
            ("bytes=-1", 0, Err(())),
            ("bytes=5-2", 10, Ok(None)),
            ("bytes=0-1,3-4", 10, Ok(None)),
            ("bytes=-", 10, Ok(None)),
            ("lines=1-2", 10, Ok(None)),
            ("bytes=1-99999999999999999999", 10, Ok(Some((1, 9)))),
            ("bytes=99999999999999999999-", 10, Err(())),
        ] {
            assert_eq!(parse_range(text, bytes), expected, "{text} of {bytes}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text(text in "(bytes=)?.{0,20}", bytes: u64) {
            if let Ok(Some((first, last))) = parse_range(&text, bytes) {
                proptest::prop_assert!(first <= last && last < bytes);
            }
        }
    }

    fn bytes(payload: &Payload, from: u64, count: u64) -> Vec<u8> {
        payload.parts(from, count).collect::<Vec<_>>().concat()
    }

    #[test]
    fn a_range_is_a_part_of_the_whole() {
        let payload = Payload::new();
        let whole = bytes(&payload, 0, 3 * PERIOD as u64 + 100);
        for (from, count) in [(0, 0), (0, 1), (5, PERIOD as u64), (PERIOD as u64 - 1, 2), (7, 9)] {
            let part = bytes(&payload, from, count);
            assert_eq!(part, whole[from as usize..(from + count) as usize], "{from}+{count}");
        }
        let first: u64 = payload.slices(3, u64::MAX).map(|slice| slice.len() as u64).sum();
        assert_eq!(first, 16 * PERIOD as u64 - 3);
    }

    #[test]
    fn checksums_of_pieces_are_those_of_the_whole() {
        let payload = Payload::new();
        let period = PERIOD as u64;
        for count in [0, 1, 4096, period - 1, period, period + 1, 7 * period + 12_345] {
            let plain = checksum(CrcAlgorithm::Crc64Nvme, &bytes(&payload, 0, count));
            assert_eq!(payload.crc64nvme(count), STANDARD.encode(plain.to_be_bytes()), "{count}");
        }
    }
}
