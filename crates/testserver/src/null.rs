//! The null server: discards uploads, serves objects from memory, lists generated keys. It is a measuring
//! instrument with minimal cost per request, so that a client on the same machine is the bottleneck; hence it
//! implements HTTP itself instead of using hyper, and is tested with other clients. It checks no signatures
//! and stores nothing.
//!
//! A key that ends in `.size-N` is an object of N bytes; others have the default size.

mod keys;
mod response;

use crate::protocol::Operation;
use crate::{LogEntry, RequestLog, ServerCounts};
use response::{NullBody, NullRequest, NullResponse};
pub use response::{NullStore, respond_layered};
use std::io::{self, ErrorKind, IoSlice};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;

/// Longest request head, bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Read buffer of a connection, bytes: fits a small upload with its head.
const BUFFER_BYTES: usize = 16 << 10;

/// State shared by all connections.
pub struct NullServer {
    /// Content of the server.
    pub store: NullStore,
    /// Delay of each response.
    pub latency: Duration,
    /// Request log.
    pub log: Option<RequestLog>,
    /// Counters of requests.
    pub counts: Arc<ServerCounts>,
}

/// One connection.
struct Connection {
    stream: TcpStream,
    shared: Arc<NullServer>,
    buffer: Vec<u8>,
    /// Filled part of the buffer, bytes.
    filled: usize,
    response: NullResponse,
    /// Head of the response, with its text if short.
    out: Vec<u8>,
    date: Date,
}

/// Serves a connection to its end.
///
/// # Errors
/// The connection fails, or the input is not HTTP.
pub async fn serve(stream: TcpStream, shared: Arc<NullServer>) -> io::Result<()> {
    let mut connection = Connection {
        stream,
        shared,
        buffer: vec![0; BUFFER_BYTES],
        filled: 0,
        response: NullResponse::default(),
        out: Vec::with_capacity(1024),
        date: Date::default(),
    };
    while let Some(head) = connection.head().await? {
        connection.request(&head).await?;
        if head.closes {
            break;
        }
    }
    Ok(())
}

impl Connection {
    /// Reads the next head; `None` at the end of the connection.
    async fn head(&mut self) -> io::Result<Option<RequestHead>> {
        loop {
            if self.filled > 0 {
                match RequestHead::parse(&self.buffer[..self.filled]) {
                    Ok(Some(head)) => return Ok(Some(head)),
                    Ok(None) if self.filled >= HEAD_BYTES_MAX => {
                        return self.refuse("the head is too long").await;
                    }
                    Ok(None) => {}
                    Err(wrong) => return self.refuse(wrong).await,
                }
            }
            if self.filled == self.buffer.len() {
                self.buffer.resize(self.filled * 2, 0);
            }
            match self.stream.read(&mut self.buffer[self.filled..]).await? {
                0 => return Ok(None),
                count => self.filled += count,
            }
        }
    }

    /// Answers an invalid request, and closes the connection.
    async fn refuse(&mut self, wrong: &str) -> io::Result<Option<RequestHead>> {
        self.response.error(400, "BadRequest", wrong, "");
        self.send(true).await?;
        Ok(None)
    }

    /// Receives the body of a request and responds to it.
    async fn request(&mut self, head: &RequestHead) -> io::Result<()> {
        let start = self.shared.log.as_ref().map(|_| Instant::now());
        let came = &self.buffer[head.bytes..self.filled];
        if head.expects && came.is_empty() {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let whole = head.operation == Operation::DeleteObjects;
        let taken = receive_body(&mut self.stream, head, came, whole).await?;
        let text = |span: &std::ops::Range<usize>| {
            self.buffer.get(span.clone()).and_then(|bytes| std::str::from_utf8(bytes).ok())
        };
        let checksum = match &head.checksum {
            Some((name, value)) => text(name).zip(text(value)),
            None if head.has_trailer => checksum_trailer(&taken.kept),
            None => None,
        };
        let request = NullRequest {
            operation: head.operation,
            path: text(&head.path).unwrap_or("/"),
            query: text(&head.query).unwrap_or(""),
            range: head.range.as_ref().and_then(text),
            wants_checksum: head.wants_checksum,
            checksum,
            body: &taken.kept,
        };
        self.shared.store.respond(&request, &mut self.response);
        if !self.shared.latency.is_zero() {
            tokio::time::sleep(self.shared.latency).await;
        }
        self.send(head.closes).await?;
        self.shared.counts.add(self.response.status, taken.bytes, self.response.body_bytes());
        if let (Some(log), Some(start)) = (&self.shared.log, start) {
            let text = |span: &std::ops::Range<usize>| {
                String::from_utf8_lossy(&self.buffer[span.clone()]).into_owned()
            };
            log.add(&LogEntry {
                method: &text(&head.method),
                operation: head.operation.name(),
                path: &text(&head.path),
                query: &text(&head.query),
                status: self.response.status,
                received_bytes: taken.bytes,
                sent_bytes: self.response.body_bytes(),
                took_s: start.elapsed().as_secs_f64(),
                fault: None,
            });
        }
        // Move the data after this request to the front.
        let used = head.bytes + taken.used;
        self.buffer.copy_within(used..self.filled, 0);
        self.filled -= used;
        if !taken.beyond.is_empty() {
            self.buffer.truncate(self.filled);
            self.buffer.extend_from_slice(&taken.beyond);
            self.filled = self.buffer.len();
            self.buffer.resize(self.filled.max(BUFFER_BYTES), 0);
        }
        Ok(())
    }

    /// Sends the response.
    async fn send(&mut self, closes: bool) -> io::Result<()> {
        let Connection { stream, shared, response, out, date, .. } = self;
        out.clear();
        push_head(response, closes, date, out);
        match response.content {
            NullBody::Withheld(_) | NullBody::Nothing => stream.write_all(out).await,
            NullBody::Text => send_both(stream, out, &response.text).await,
            NullBody::Payload(from, bytes) => {
                let payload = &shared.store.payload;
                // Send the head with the first part of the payload in one call.
                let mut slices: Vec<IoSlice<'_>> = Vec::with_capacity(20);
                slices.push(IoSlice::new(out));
                slices.extend(payload.slices(from, bytes));
                let sent = stream.write_vectored(&slices).await?;
                let mut sent = match sent.checked_sub(out.len()) {
                    Some(sent) => sent as u64,
                    None => {
                        stream.write_all(&out[sent..]).await?;
                        0
                    }
                };
                while sent < bytes {
                    slices.clear();
                    slices.extend(payload.slices(from + sent, bytes - sent));
                    sent += stream.write_vectored(&slices).await? as u64;
                }
                Ok(())
            }
        }
    }
}

/// Sends two pieces in order, if possible in one call.
async fn send_both(stream: &mut TcpStream, first: &[u8], second: &[u8]) -> io::Result<()> {
    let sent = stream.write_vectored(&[IoSlice::new(first), IoSlice::new(second)]).await?;
    stream.write_all(first.get(sent..).unwrap_or_default()).await?;
    let sent = sent.saturating_sub(first.len());
    stream.write_all(second.get(sent..).unwrap_or_default()).await
}

/// Appends the head of a response.
fn push_head(response: &NullResponse, closes: bool, date: &mut Date, out: &mut Vec<u8>) {
    let status: &[u8] = match response.status {
        200 => b"HTTP/1.1 200 OK\r\n",
        204 => b"HTTP/1.1 204 No Content\r\n",
        206 => b"HTTP/1.1 206 Partial Content\r\n",
        400 => b"HTTP/1.1 400 Bad Request\r\n",
        416 => b"HTTP/1.1 416 Range Not Satisfiable\r\n",
        _ => b"HTTP/1.1 501 Not Implemented\r\n",
    };
    out.extend_from_slice(status);
    out.extend_from_slice(&response.lines);
    if response.content != NullBody::Nothing {
        out.extend_from_slice(b"Content-Length: ");
        push_decimal(response.length(), out);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"x-amz-request-id: ");
    out.extend_from_slice(crate::protocol::REQUEST_ID.as_bytes());
    out.extend_from_slice(b"\r\nDate: ");
    out.extend_from_slice(date.now());
    out.extend_from_slice(if closes { b"\r\nConnection: close\r\n\r\n" } else { b"\r\n\r\n" });
}

fn push_decimal(mut number: u64, out: &mut Vec<u8>) {
    let start = out.len();
    loop {
        out.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out[start..].reverse();
}

/// Current time in header format, updated once per second.
#[derive(Default)]
struct Date {
    second: u64,
    text: String,
}

impl Date {
    fn now(&mut self) -> &[u8] {
        let now = SystemTime::now();
        let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if self.second != second || self.text.is_empty() {
            self.second = second;
            self.text = httpdate::fmt_http_date(now);
        }
        self.text.as_bytes()
    }
}

/// Most headers of a request.
const HEADERS_MAX: usize = 96;

/// Framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// Known number of bytes.
    Known(u64),
    /// Chunked coding.
    Chunked,
}

/// A range of the buffer.
type Span = Range<usize>;

/// A request head; all ranges refer to the buffer that it was parsed from.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// Length of the head, in bytes.
    pub bytes: usize,
    /// The operation.
    pub operation: Operation,
    /// The method.
    pub method: Span,
    /// Path as sent.
    pub path: Span,
    /// Query as sent, without the question mark.
    pub query: Span,
    /// Framing of the body.
    pub length: BodyLength,
    /// True if the client waits for `100 Continue`.
    pub expects: bool,
    /// True to close the connection after the response.
    pub closes: bool,
    /// The `range` header.
    pub range: Option<Span>,
    /// `x-amz-checksum-mode: ENABLED`.
    pub wants_checksum: bool,
    /// Name and value of an `x-amz-checksum-…` header.
    pub checksum: Option<(Span, Span)>,
    /// True if the body ends with trailers (`x-amz-trailer`).
    pub has_trailer: bool,
}

impl RequestHead {
    /// Parses a head at the start of `buffer`; `None` if it is incomplete.
    ///
    /// # Errors
    /// The problem.
    pub fn parse(buffer: &[u8]) -> Result<Option<RequestHead>, &'static str> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        let bytes = match request.parse(buffer) {
            Ok(httparse::Status::Complete(bytes)) => bytes,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err("this is not an HTTP request"),
        };
        let base = buffer.as_ptr() as usize;
        let span = |part: &[u8]| {
            let start = part.as_ptr() as usize - base;
            start..start + part.len()
        };
        let (method, target) = (request.method.unwrap_or(""), request.path.unwrap_or(""));
        // An absolute target (RFC 9112, section 3.2.2) includes scheme and host.
        let from = target.find("://").filter(|_| !target.starts_with('/'));
        let target = match from.map(|at| &target[at + 3..]) {
            Some(rest) => rest.find('/').map_or("", |slash| &rest[slash..]),
            None => target,
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut head = RequestHead {
            bytes,
            operation: Operation::Other,
            method: span(method.as_bytes()),
            path: if path.is_empty() { 0..0 } else { span(path.as_bytes()) },
            query: if query.is_empty() { 0..0 } else { span(query.as_bytes()) },
            length: BodyLength::Known(0),
            expects: false,
            closes: request.version == Some(0),
            range: None,
            wants_checksum: false,
            checksum: None,
            has_trailer: false,
        };
        let mut copies = false;
        for header in request.headers.iter() {
            let (name, value) = (header.name, header.value);
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            match name.len() {
                5 if is("range") => head.range = Some(span(value)),
                6 if is("expect") => head.expects = value.eq_ignore_ascii_case(b"100-continue"),
                10 if is("connection") => {
                    let text = value.to_ascii_lowercase();
                    let has = |word: &[u8]| {
                        text.split(|byte| *byte == b',').any(|part| part.trim_ascii() == word)
                    };
                    head.closes = has(b"close") || head.closes && !has(b"keep-alive");
                }
                13 if is("x-amz-trailer") => head.has_trailer = true,
                14 if is("content-length") && head.length != BodyLength::Chunked => {
                    let text = std::str::from_utf8(value).unwrap_or("").trim();
                    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
                    let number = text.parse().ok().filter(|_| plain);
                    head.length =
                        BodyLength::Known(number.ok_or("Content-Length is not a number")?);
                }
                17 if is("transfer-encoding") => {
                    if !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                        return Err("only the chunked transfer coding is known");
                    }
                    head.length = BodyLength::Chunked;
                }
                17 if is("x-amz-copy-source") => copies = true,
                19 if is("x-amz-checksum-mode") => {
                    head.wants_checksum = value.eq_ignore_ascii_case(b"ENABLED");
                }
                18.. if name
                    .get(..15)
                    .is_some_and(|start| start.eq_ignore_ascii_case(CHECKSUM))
                    && !is("x-amz-checksum-algorithm")
                    && !is("x-amz-checksum-type") =>
                {
                    head.checksum = Some((span(name.as_bytes()), span(value)));
                }
                _ => {}
            }
        }
        head.operation = Operation::of(method, path, query, copies);
        Ok(Some(head))
    }
}

/// Prefix of checksum headers and trailers.
pub const CHECKSUM: &str = "x-amz-checksum-";

/// Bytes kept from the end of a body, to find its trailers.
const TAIL_BYTES: usize = 512;
/// Longest body that is kept whole: S3's limit for DeleteObjects is 2 MB.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// A received body.
#[derive(Debug, Default)]
pub struct ReceivedBody {
    /// Bytes of the body in the connection's buffer after the head.
    pub used: usize,
    /// Bytes read beyond the body: the start of the next request.
    pub beyond: Vec<u8>,
    /// The body, or its end, if requested.
    pub kept: Vec<u8>,
    /// Length on the wire, without chunk framing.
    pub bytes: u64,
}

/// Receives the body of a request; `came` is the data after its head in the buffer, `whole` requests the body
/// itself.
///
/// # Errors
/// The connection fails or ends, or the body is too long to be kept or malformed.
pub async fn receive_body(
    stream: &mut TcpStream,
    head: &RequestHead,
    came: &[u8],
    whole: bool,
) -> io::Result<ReceivedBody> {
    match head.length {
        BodyLength::Known(bytes) => {
            let used = came.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
            let mut taken = ReceivedBody { used, bytes, ..ReceivedBody::default() };
            let mut left = bytes - used as u64;
            if whole || head.has_trailer {
                let room = if whole { KEPT_BYTES_MAX } else { TAIL_BYTES };
                if whole && bytes > room as u64 {
                    return Err(ErrorKind::FileTooLarge.into());
                }
                taken.kept.extend_from_slice(&came[used.saturating_sub(room)..used]);
                let end = left.min(room as u64);
                discard(stream, left - end).await?;
                let start = taken.kept.len();
                taken.kept.resize(start + end as usize, 0);
                stream.read_exact(&mut taken.kept[start..]).await?;
                left = 0;
            }
            discard(stream, left).await?;
            Ok(taken)
        }
        BodyLength::Chunked => receive_chunked(stream, came, whole, head.has_trailer).await,
    }
}

async fn receive_chunked(
    stream: &mut TcpStream,
    came: &[u8],
    whole: bool,
    has_trailer: bool,
) -> io::Result<ReceivedBody> {
    let mut taken = ReceivedBody::default();
    let mut decoder = ChunkedDecoder::new();
    let (mut kept, mut bytes) = (Vec::new(), 0);
    let mut sink = |data: &[u8]| {
        bytes += data.len() as u64;
        if whole {
            let room = (KEPT_BYTES_MAX + 1).saturating_sub(kept.len());
            kept.extend_from_slice(&data[..data.len().min(room)]);
        } else if has_trailer {
            kept.extend_from_slice(&data[data.len().saturating_sub(TAIL_BYTES)..]);
            if kept.len() > 16 * TAIL_BYTES {
                kept.drain(..kept.len() - TAIL_BYTES);
            }
        }
    };
    let wrong = |()| io::Error::from(ErrorKind::InvalidData);
    taken.used = decoder.feed(came, &mut sink).map_err(wrong)?;
    let mut buffer = Vec::new();
    while !decoder.is_done() {
        buffer.resize(64 << 10, 0);
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let used = decoder.feed(&buffer[..count], &mut sink).map_err(wrong)?;
        taken.beyond.extend_from_slice(&buffer[used..count]);
    }
    if kept.len() > KEPT_BYTES_MAX {
        return Err(ErrorKind::FileTooLarge.into());
    }
    (taken.kept, taken.bytes) = (kept, bytes);
    Ok(taken)
}

/// Discards `left` bytes of the connection.
async fn discard(stream: &TcpStream, mut left: u64) -> io::Result<()> {
    while left > 0 {
        let mut ended = false;
        let result = stream.try_io(Interest::READABLE, || {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(1 << 30);
            let count = hakobu_sys::socket::discard(stream, wanted)?;
            ended = count == 0;
            left -= count as u64;
            if count > 0 && left > 0 {
                // Less than requested: no more is available, and another call would be wasted.
                return Err(ErrorKind::WouldBlock.into());
            }
            Ok(())
        });
        match result {
            Ok(()) if ended => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => stream.readable().await?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Name and value of the checksum trailer at the end of a body.
pub fn checksum_trailer(kept: &[u8]) -> Option<(&str, &str)> {
    let at = kept.windows(CHECKSUM.len()).rposition(|window| window == CHECKSUM.as_bytes())?;
    let line = kept[at..].split(|byte| b"\r\n".contains(byte)).next()?;
    let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
    Some((name, value.trim()))
}

/// State of the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecoderState {
    /// In the digits of a size; whether there was one, and the size so far.
    Size(bool, u64),
    /// After the size, up to the end of the line.
    Extension(u64),
    /// In a chunk, with the remaining bytes.
    Data(u64),
    /// In the line end after a chunk.
    DataEnd,
    /// In the trailers; whether the line is non-empty.
    Trailer(bool),
    /// After the end.
    Done,
}

/// A decoder.
#[derive(Debug)]
pub struct ChunkedDecoder {
    at: DecoderState,
}

impl ChunkedDecoder {
    /// Starts at the beginning of a body.
    pub fn new() -> ChunkedDecoder {
        ChunkedDecoder { at: DecoderState::Size(false, 0) }
    }

    /// True if the body is complete.
    pub fn is_done(&self) -> bool {
        self.at == DecoderState::Done
    }

    /// Decodes bytes: passes data to `sink` and returns the number of bytes consumed, which is less than all
    /// only at the end of the body.
    ///
    /// # Errors
    /// Malformed coding.
    pub fn feed(&mut self, bytes: &[u8], mut sink: impl FnMut(&[u8])) -> Result<usize, ()> {
        let mut used = 0;
        while let Some(&byte) = bytes.get(used) {
            let mut step = 1;
            self.at = match (self.at, byte) {
                (DecoderState::Size(_, size), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                    let digit = char::from(byte).to_digit(16).ok_or(())?;
                    let size = size.checked_mul(16).ok_or(())?;
                    DecoderState::Size(true, size + u64::from(digit))
                }
                (DecoderState::Size(true, size), b';' | b' ' | b'\t' | b'\r') => {
                    DecoderState::Extension(size)
                }
                (DecoderState::Size(true, 0) | DecoderState::Extension(0), b'\n') => {
                    DecoderState::Trailer(false)
                }
                (DecoderState::Size(true, size) | DecoderState::Extension(size), b'\n') => {
                    DecoderState::Data(size)
                }
                (DecoderState::Extension(size), _) => DecoderState::Extension(size),
                (DecoderState::Data(left), _) => {
                    let rest = bytes.get(used..).unwrap_or_default();
                    step = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    sink(&rest[..step]);
                    match left - step as u64 {
                        0 => DecoderState::DataEnd,
                        left => DecoderState::Data(left),
                    }
                }
                (DecoderState::DataEnd, b'\r') => DecoderState::DataEnd,
                (DecoderState::DataEnd, b'\n') => DecoderState::Size(false, 0),
                (DecoderState::Trailer(false), b'\n') => DecoderState::Done,
                (DecoderState::Trailer(true), b'\n') => DecoderState::Trailer(false),
                (DecoderState::Trailer(false), b'\r') => DecoderState::Trailer(false),
                (DecoderState::Trailer(_), _) => DecoderState::Trailer(true),
                (DecoderState::Done, _) => break,
                (DecoderState::Size(..) | DecoderState::DataEnd, _) => return Err(()),
            };
            used += step;
        }
        Ok(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> RequestHead {
        RequestHead::parse(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn heads() {
        let text = "PUT /b/k?x-id=PutObject HTTP/1.1\r\nContent-Length: 12\r\n\
                    Expect: 100-continue\r\nX-Amz-Checksum-CRC32: abcd==\r\n\
                    x-amz-sdk-checksum-algorithm: CRC32\r\n\r\nbody";
        let head = parse(text);
        assert_eq!(head.operation, Operation::PutObject);
        assert_eq!(&text[head.path], "/b/k");
        assert_eq!(&text[head.query], "x-id=PutObject");
        assert_eq!((head.length, head.expects, head.closes), (BodyLength::Known(12), true, false));
        let (name, value) = head.checksum.unwrap();
        assert_eq!((&text[name], &text[value]), ("X-Amz-Checksum-CRC32", "abcd=="));
        assert_eq!(&text[head.bytes..], "body");

        let text = "GET http://h:1/b/k HTTP/1.0\r\nRange: bytes=1-2\r\n\r\n";
        let head = parse(text);
        assert_eq!((&text[head.path], head.closes), ("/b/k", true));
        assert_eq!(&text[head.range.unwrap()], "bytes=1-2");

        let text = "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n";
        assert!(!parse(text).closes);
        let text = "GET / HTTP/1.1\r\nConnection: foo, close\r\n\r\n";
        assert!(parse(text).closes);
        let text = "PUT /b/k HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n";
        assert_eq!(parse(text).length, BodyLength::Chunked);
    }

    #[test]
    fn wrong_heads() {
        for (text, wrong) in [
            ("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", true),
            ("\0\0\0", true),
            ("GET / HTTP/1.1\r\nA: b\r\n", false),
        ] {
            assert_eq!(RequestHead::parse(text.as_bytes()).is_err(), wrong, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_head(start in "(GET|PUT) ?[ -~]{0,20}", rest in "( HTTP/1.1\r\n)?([ -~]{0,30}\r\n){0,4}(\r\n)?") {
            let text = format!("{start}{rest}");
            if let Ok(Some(head)) = RequestHead::parse(text.as_bytes()) {
                proptest::prop_assert!(head.bytes <= text.len());
                proptest::prop_assert!(text.get(head.path).is_some() && text.get(head.query).is_some());
            }
        }
    }

    #[test]
    fn trailers() {
        for (text, expected) in [
            ("data\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", Some(("crc32", "AAAAAA=="))),
            ("0\r\nx-amz-checksum-crc64nvme: A=\r\nx-amz-t: z\r\n", Some(("crc64nvme", "A="))),
            ("data", None),
            ("x-amz-checksum-", None),
        ] {
            let found = checksum_trailer(text.as_bytes());
            let found = found.map(|(name, value)| (&name["x-amz-checksum-".len()..], value));
            assert_eq!(found, expected, "{text}");
        }
    }

    /// Decoded bytes, and number of bytes of `text` consumed, fed in pieces of `piece` bytes.
    fn decoded(text: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), ()> {
        let (mut decoder, mut out, mut used) = (ChunkedDecoder::new(), Vec::new(), 0);
        for part in text.chunks(piece) {
            used += decoder.feed(part, |data| out.extend_from_slice(data))?;
        }
        Ok((out, used, decoder.is_done()))
    }

    #[test]
    fn bodies() {
        for (text, data, rest) in [
            ("0\r\n\r\n", "", ""),
            ("5\r\nhello\r\n0\r\n\r\nGET /", "hello", "GET /"),
            ("5;a=b\r\nhello\r\n1 \r\n!\r\n0;x\r\nA: b\r\nC: d\r\n\r\n", "hello!", ""),
            ("a\n0123456789\n0\n\n", "0123456789", ""),
        ] {
            for piece in 1..text.len() {
                let (out, used, done) = decoded(text.as_bytes(), piece).unwrap();
                let end = text.len() - rest.len();
                assert_eq!((out.as_slice(), used, done), (data.as_bytes(), end, true), "{text}");
            }
        }
        for text in ["x", "\r\n", "5\r\nhelloX", "fffffffffffffffff\r\n", ";\r\n"] {
            assert!(decoded(text.as_bytes(), 3).is_err(), "{text}");
        }
        assert_eq!(decoded(b"5\r\nhel", 9), Ok((b"hel".to_vec(), 6, false)));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>, piece in 1usize..9) {
            let _ = decoded(&bytes, piece);
        }

        #[test]
        fn what_is_encoded_comes_back(
            chunks in proptest::collection::vec(proptest::collection::vec(0u8.., 1..40), 0..5),
            piece in 1usize..30,
        ) {
            let mut text = Vec::new();
            for chunk in &chunks {
                text.extend(format!("{:x}\r\n", chunk.len()).bytes());
                text.extend(chunk);
                text.extend(b"\r\n");
            }
            text.extend(b"0\r\n\r\n");
            let expected = (chunks.concat(), text.len(), true);
            proptest::prop_assert_eq!(decoded(&text, piece), Ok(expected));
        }
    }
}
