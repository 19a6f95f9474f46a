//! Head of a request to the null server: parsed by httparse, with the needed headers as ranges of the buffer.

use crate::operation::Operation;
use std::ops::Range;

/// Most headers of a request.
const HEADERS_MAX: usize = 96;

/// Framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Known number of bytes.
    Known(u64),
    /// Chunked coding.
    Chunked,
}

/// A range of the buffer.
type Span = Range<usize>;

/// A request head; all ranges refer to the buffer that it was parsed from.
#[derive(Clone, Debug)]
pub struct Head {
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
    pub length: Length,
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

impl Head {
    /// Parses a head at the start of `buffer`; `None` if it is incomplete.
    ///
    /// # Errors
    /// The problem.
    pub fn parse(buffer: &[u8]) -> Result<Option<Head>, &'static str> {
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
        let mut head = Head {
            bytes,
            operation: Operation::Other,
            method: span(method.as_bytes()),
            path: if path.is_empty() { 0..0 } else { span(path.as_bytes()) },
            query: if query.is_empty() { 0..0 } else { span(query.as_bytes()) },
            length: Length::Known(0),
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
                14 if is("content-length") && head.length != Length::Chunked => {
                    let text = std::str::from_utf8(value).unwrap_or("").trim();
                    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
                    let number = text.parse().ok().filter(|_| plain);
                    head.length = Length::Known(number.ok_or("Content-Length is not a number")?);
                }
                17 if is("transfer-encoding") => {
                    if !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                        return Err("only the chunked transfer coding is known");
                    }
                    head.length = Length::Chunked;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Head {
        Head::parse(text.as_bytes()).unwrap().unwrap()
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
        assert_eq!((head.length, head.expects, head.closes), (Length::Known(12), true, false));
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
        assert_eq!(parse(text).length, Length::Chunked);
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
            assert_eq!(Head::parse(text.as_bytes()).is_err(), wrong, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_head(start in "(GET|PUT) ?[ -~]{0,20}", rest in "( HTTP/1.1\r\n)?([ -~]{0,30}\r\n){0,4}(\r\n)?") {
            let text = format!("{start}{rest}");
            if let Ok(Some(head)) = Head::parse(text.as_bytes()) {
                proptest::prop_assert!(head.bytes <= text.len());
                proptest::prop_assert!(text.get(head.path).is_some() && text.get(head.query).is_some());
            }
        }
    }
}
