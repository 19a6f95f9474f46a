//! XML written by hand: escaped text, and S3's errors.

use hakobu_core::percent;
use http::{Response, StatusCode, header};
use s3s::Body;

/// Request id of every response.
pub const REQUEST_ID: &str = "HAKOBU0000000000";

/// Appends text with the five special characters of XML escaped, and control characters (invalid in XML 1.0)
/// as references, like S3.
pub fn push_escaped(text: &[u8], out: &mut Vec<u8>) {
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            '"' => out.extend_from_slice(b"&quot;"),
            '\0'..=' ' if c != ' ' => {
                out.extend_from_slice(format!("&#x{:x};", u32::from(c)).as_bytes());
            }
            _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Text percent-encoded like S3 for `encoding-type=url`: unreserved characters, slashes and asterisks stay.
pub fn encoded(text: &[u8]) -> String {
    let mut out = String::new();
    percent::encode(text, true, &mut out);
    out.replace("%2A", "*")
}

/// Appends `<name>text</name>` with the text escaped.
pub fn push_element(name: &str, text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("<{name}>").as_bytes());
    push_escaped(text, out);
    out.extend_from_slice(format!("</{name}>").as_bytes());
}

/// Body of an error (Amazon S3 API reference, "REST error responses").
pub fn error(code: &str, message: &str, resource: &str, region: Option<&str>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>");
    push_element("Code", code.as_bytes(), &mut out);
    push_element("Message", message.as_bytes(), &mut out);
    if let Some(region) = region {
        push_element("Region", region.as_bytes(), &mut out);
    }
    push_element("Resource", resource.as_bytes(), &mut out);
    push_element("RequestId", REQUEST_ID.as_bytes(), &mut out);
    out.extend_from_slice(b"</Error>");
    out
}

/// Response with an error; `region` is that of the bucket, if another one is named.
pub fn refusal(
    status: StatusCode,
    code: &str,
    message: &str,
    resource: &str,
    region: Option<&str>,
) -> http::Result<Response<Body>> {
    let mut response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/xml")
        .header("x-amz-request-id", REQUEST_ID);
    if let Some(region) = region {
        response = response.header("x-amz-bucket-region", region);
    }
    response.body(Body::from(error(code, message, resource, region)))
}

/// Raw texts of all elements with a name, which must have neither attributes nor child elements.
pub fn texts<'x>(xml: &'x str, name: &str) -> impl Iterator<Item = &'x str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        let start = rest.find(&open)? + open.len();
        let length = rest[start..].find(&close)?;
        let text = &rest[start..start + length];
        rest = &rest[start + length + close.len()..];
        Some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reverses [`push_escaped`]. Unknown references stay as they are.
    fn unescape(text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('&') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let end = rest.find(';').unwrap_or(0);
            let name = rest.get(1..end).unwrap_or_default();
            let number = name.strip_prefix("#x").map(|hex| u32::from_str_radix(hex, 16));
            let number = number.or_else(|| name.strip_prefix('#').map(str::parse));
            let c = match name {
                "amp" => Some('&'),
                "lt" => Some('<'),
                "gt" => Some('>'),
                "quot" => Some('"'),
                "apos" => Some('\''),
                _ => number.and_then(Result::ok).and_then(char::from_u32),
            };
            out.push(c.unwrap_or('&'));
            rest = &rest[if c.is_some() { end + 1 } else { 1 }..];
        }
        out.push_str(rest);
        out
    }

    #[test]
    fn errors() {
        let body = error("NoSuchKey", "a < b", "/b/k&k", Some("eu-west-1"));
        let body = String::from_utf8(body).unwrap();
        let all: Vec<&str> = texts(&body, "Message").collect();
        assert_eq!(all, ["a &lt; b"]);
        assert_eq!(texts(&body, "Region").next(), Some("eu-west-1"));
        assert_eq!(texts(&body, "Resource").next().map(unescape), Some("/b/k&k".into()));
    }

    proptest::proptest! {
        #[test]
        fn what_is_escaped_comes_back(text: String) {
            let mut escaped = Vec::new();
            push_escaped(text.as_bytes(), &mut escaped);
            let escaped = String::from_utf8(escaped).unwrap();
            proptest::prop_assert!(!escaped.contains(['<', '>', '"', '\n']));
            proptest::prop_assert_eq!(unescape(&escaped), text);
        }

        #[test]
        fn any_text_is_unescaped(text: String) {
            proptest::prop_assert!(unescape(&text).len() <= text.len());
        }

        #[test]
        fn what_is_encoded_comes_back(text: Vec<u8>) {
            proptest::prop_assert_eq!(percent::decode(encoded(&text).as_bytes(), true), text);
        }
    }
}
