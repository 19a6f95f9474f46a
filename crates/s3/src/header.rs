//! Headers of objects: encoding and decoding of ETags, checksums, metadata, tags.

use crate::sign::encode_query;
use crate::{Algorithm, Checksum, Error, ErrorKind};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hakobu_core::percent::hex_byte;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Prefix of metadata headers.
const META: &str = "x-amz-meta-";

/// Header value: any text without control characters, as UTF-8 like AWS's SDKs. `None` for text with control
/// characters.
pub fn value(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_bytes(text.as_bytes()).ok()
}

/// Header of user metadata. `None` if the name is not a valid header name, or the value contains control
/// characters.
pub fn metadata(name: &str, text: &str) -> Option<(HeaderName, HeaderValue)> {
    let header = HeaderName::try_from(format!("{META}{name}")).ok()?;
    Some((header, value(text)?))
}

/// Value of `x-amz-tagging`: tags as a query string.
pub fn tagging(tags: &[(String, String)]) -> HeaderValue {
    let tags: Vec<_> = tags.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    value(&encode_query(&tags)).unwrap_or_else(|| HeaderValue::from_static(""))
}

/// Value known to be ASCII, such as a number or base64.
pub(crate) fn plain(text: &str) -> HeaderValue {
    let value = value(text);
    debug_assert!(value.is_some(), "a value of ours with control characters: {text:?}");
    value.unwrap_or_else(|| HeaderValue::from_static(""))
}

/// ETag in quotes for conditions.
///
/// # Errors
/// `Corrupt` if it cannot be a header value. Without it the condition would hold for any object.
pub(crate) fn quoted(operation: &'static str, etag: &str) -> Result<HeaderValue, Error> {
    value(&format!("\"{}\"", unquoted(etag))).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, operation, "the server's ETag cannot be sent back to it")
    })
}

/// ETag without quotes and weakness prefix.
pub(crate) fn unquoted(etag: &str) -> &str {
    let etag = etag.trim();
    etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"')
}

/// Header as text; empty if missing.
pub(crate) fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).map(|value| readable(value.as_bytes())).unwrap_or_default()
}

/// Header as text; `None` if missing or empty.
pub(crate) fn some(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(text(headers, name)).filter(|text| !text.is_empty())
}

/// ETag without quotes.
pub fn etag(headers: &HeaderMap) -> String {
    unquoted(&text(headers, "etag")).to_owned()
}

/// For a checksum header: whether its value can be parsed; `None` for other headers.
pub(crate) fn is_checksum(name: &HeaderName, value: &HeaderValue) -> Option<bool> {
    let name = name.as_str().strip_prefix("x-amz-checksum-")?;
    let algorithm = Algorithm::parse(name)?;
    Some(value.to_str().is_ok_and(|text| Checksum::decode(algorithm, text).is_some()))
}

/// For a checksum element (`ChecksumCRC32`): whether its value can be parsed; `None` for others.
pub(crate) fn is_checksum_element(name: &[u8], text: &[u8]) -> Option<bool> {
    let algorithm = Algorithm::of_element(name)?;
    let text = std::str::from_utf8(text);
    Some(text.is_ok_and(|text| Checksum::decode(algorithm, text).is_some()))
}

/// Stored checksums in headers, of all algorithms except MD5.
pub(crate) fn checksums(headers: &HeaderMap) -> Vec<Checksum> {
    let known = Algorithm::ALL.into_iter().filter(|algorithm| *algorithm != Algorithm::Md5);
    let found = known.filter_map(|algorithm| {
        let value = headers.get(algorithm.header())?.to_str().ok()?;
        Checksum::decode(algorithm, value)
    });
    found.collect()
}

/// User metadata: names without prefix, decoded values.
pub(crate) fn metadata_of(headers: &HeaderMap) -> Vec<(String, String)> {
    let named = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(META)?;
        Some((name.to_owned(), decode_words(&readable(value.as_bytes()))))
    });
    named.collect()
}

/// Header value as text: UTF-8, else Latin-1, as in older HTTP.
fn readable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// Decodes encoded words of RFC 2047 (`=?UTF-8?B?…?=`), which S3 uses for non-ASCII text. Spaces between two
/// of them are dropped. Other text is unchanged.
fn decode_words(text: &str) -> String {
    let (mut out, mut rest, mut after_word) = (String::new(), text, false);
    while let Some(at) = rest.find("=?") {
        let (before, from) = rest.split_at(at);
        let Some((decoded, length)) = word(from) else {
            out.push_str(before);
            out.push_str("=?");
            (rest, after_word) = (&from[2..], false);
            continue;
        };
        if !(after_word && before.trim().is_empty()) {
            out.push_str(before);
        }
        out.push_str(&decoded);
        (rest, after_word) = (&from[length..], true);
    }
    out.push_str(rest);
    out
}

/// Encoded word at the start of a text, and its length in bytes.
fn word(text: &str) -> Option<(String, usize)> {
    let mut parts = text.strip_prefix("=?")?.splitn(3, '?');
    let (charset, encoding, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let (body, _) = rest.split_once("?=")?;
    let bytes = match encoding {
        "B" | "b" => STANDARD.decode(body).ok()?,
        "Q" | "q" => unquoted_printable(body.as_bytes()),
        _ => return None,
    };
    let charset = charset.split('*').next().unwrap_or_default();
    let decoded = match charset.to_ascii_lowercase().as_str() {
        "utf-8" | "us-ascii" => String::from_utf8(bytes).ok()?,
        "iso-8859-1" => bytes.into_iter().map(char::from).collect(),
        _ => return None,
    };
    let length = text.len() - rest.len() + body.len() + 2;
    Some((decoded, length))
}

fn unquoted_printable(body: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (Vec::with_capacity(body.len()), 0);
    while let Some(byte) = body.get(at) {
        let code = if *byte == b'=' { hex_byte(body.get(at + 1..at + 3)) } else { None };
        out.push(match byte {
            b'_' => b' ',
            _ => code.unwrap_or(*byte),
        });
        at += if code.is_some() { 3 } else { 1 };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn encoded_words_are_decoded() {
        assert_eq!(decode_words("=?UTF-8?B?w6Q=?= =?utf-8?Q?=C3=B6_x?= y"), "äö x y");
        assert_eq!(decode_words("a =?ISO-8859-1*en?q?=E4?="), "a ä");
        for plain in ["", "=?", "=?=?=?", "a=?b", "=?UTF-8?B?!?=", "=?x?B?YQ==?=", "=?UTF-8?Z?a?="]
        {
            assert_eq!(decode_words(plain), plain);
        }
    }

    #[test]
    fn etags_lose_their_quotes_and_get_them_back() {
        assert_eq!(unquoted("W/\"a-2\""), "a-2");
        assert_eq!(quoted("", "a").unwrap(), "\"a\"");
        assert_eq!(quoted("", "\"a\"").unwrap(), "\"a\"");
        assert_eq!(quoted("", "a\nb").unwrap_err().kind, ErrorKind::Corrupt);
    }

    #[test]
    fn metadata_and_tags_are_written() {
        let (name, value) = metadata("Owner", "Zoë").unwrap();
        assert_eq!((name.as_str(), value.as_bytes()), ("x-amz-meta-owner", "Zoë".as_bytes()));
        assert!(metadata("a b", "x").is_none() && metadata("a", "x\ny").is_none());
        let tags = [("k 1".to_owned(), "a&b".to_owned()), ("a".to_owned(), String::new())];
        assert_eq!(tagging(&tags), "a=&k%201=a%26b");
    }

    proptest! {
        #[test]
        fn metadata_comes_back(text in "\\PC{0,30}") {
            prop_assume!(!text.contains("=?"));
            let (name, value) = metadata("n", &text).unwrap();
            let mut headers = HeaderMap::new();
            headers.insert(name, value);
            prop_assert_eq!(metadata_of(&headers), [("n".to_owned(), text.clone())]);
            let word = format!("=?UTF-8?B?{}?=", STANDARD.encode(&text));
            prop_assert_eq!(decode_words(&word), text);
        }

        #[test]
        fn no_words_upset_the_reader(text in "[=?UTFutf8BbQq_A-Fé -]{0,40}") {
            decode_words(&text);
        }
    }
}
