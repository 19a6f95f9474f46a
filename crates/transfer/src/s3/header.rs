//! Headers of objects: ETags, stored checksums, metadata, tags; how they are written and read.

use super::checksum::{Algorithm, Checksum};
use super::sign::encode_query;
use super::xml::hex_byte;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};

/// What stands before the name of a piece of metadata.
const META: &str = "x-amz-meta-";

/// A value as it goes out: any text without control characters; what is not ASCII goes as UTF-8, as
/// AWS's SDKs do. `None` for text with control characters.
pub fn value(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_bytes(text.as_bytes()).ok()
}

/// The header of a piece of user metadata. `None` where the name is no header's name, or the value
/// has control characters.
pub fn metadata(name: &str, text: &str) -> Option<(HeaderName, HeaderValue)> {
    let header = HeaderName::try_from(format!("{META}{name}")).ok()?;
    Some((header, value(text)?))
}

/// The value of `x-amz-tagging`: tags as a query string.
pub fn tagging(tags: &[(String, String)]) -> HeaderValue {
    let tags: Vec<_> = tags.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    value(&encode_query(&tags)).unwrap_or_else(|| HeaderValue::from_static(""))
}

/// A value of ASCII that is known to be one, such as a number or base64.
pub(super) fn plain(text: &str) -> HeaderValue {
    value(text).unwrap_or_else(|| HeaderValue::from_static(""))
}

/// An ETag as conditions want it.
pub(super) fn quoted(etag: &str) -> HeaderValue {
    plain(&format!("\"{}\"", unquoted(etag)))
}

/// An ETag without quotes, and without the mark of a weak one.
pub(super) fn unquoted(etag: &str) -> &str {
    let etag = etag.trim();
    etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"')
}

/// A header as text; empty where there is none.
pub(super) fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).map(|value| readable(value.as_bytes())).unwrap_or_default()
}

/// A header as text, `None` where there is none or where it is empty.
pub(super) fn some(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(text(headers, name)).filter(|text| !text.is_empty())
}

/// The ETag without quotes.
pub(super) fn etag(headers: &HeaderMap) -> String {
    unquoted(&text(headers, "etag")).to_owned()
}

/// The stored checksums of all algorithms but MD5 that headers tell.
pub(super) fn checksums(headers: &HeaderMap) -> Vec<Checksum> {
    let known = Algorithm::ALL.into_iter().filter(|algorithm| *algorithm != Algorithm::Md5);
    let found = known.filter_map(|algorithm| {
        let value = headers.get(algorithm.header())?.to_str().ok()?;
        Checksum::decode(algorithm, value)
    });
    found.collect()
}

/// User metadata: names without their prefix, decoded values.
pub(super) fn metadata_of(headers: &HeaderMap) -> Vec<(String, String)> {
    let named = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(META)?;
        Some((name.to_owned(), unworded(&readable(value.as_bytes()))))
    });
    named.collect()
}

/// Bytes of a header as text: UTF-8, or else Latin-1, as HTTP once had it.
fn readable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// Decodes the encoded words of RFC 2047 (`=?UTF-8?B?…?=`), which S3 puts in place of what is not
/// ASCII. Spaces between two of them are none of the value. What is no such word stays.
fn unworded(text: &str) -> String {
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

/// The encoded word that text begins with, and its length in bytes.
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
        assert_eq!(unworded("=?UTF-8?B?w6Q=?= =?utf-8?Q?=C3=B6_x?= y"), "äö x y");
        assert_eq!(unworded("a =?ISO-8859-1*en?q?=E4?="), "a ä");
        for plain in ["", "=?", "=?=?=?", "a=?b", "=?UTF-8?B?!?=", "=?x?B?YQ==?=", "=?UTF-8?Z?a?="]
        {
            assert_eq!(unworded(plain), plain);
        }
    }

    #[test]
    fn etags_lose_their_quotes_and_get_them_back() {
        assert_eq!(unquoted("W/\"a-2\""), "a-2");
        assert_eq!(quoted("a"), "\"a\"");
        assert_eq!(quoted("\"a\""), "\"a\"");
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
            prop_assert_eq!(unworded(&word), text);
        }

        #[test]
        fn no_words_upset_the_reader(text in "[=?UTFutf8BbQq_A-Fé -]{0,40}") {
            unworded(&text);
        }
    }
}
