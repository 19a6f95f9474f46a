//! The media type of an object: by the extension of its name, else by how its content begins (WHATWG, MIME Sniffing
//! Standard, sections 6 and 7).

use http::HeaderValue;

/// Number of bytes at the start of a file that decide.
pub const LOOK_BYTES: usize = 512;

/// Type of an object without a better one.
const BINARY: &str = "application/octet-stream";

/// Beginnings of files. `?` in a mask is any byte.
const STARTS: &[(&[u8], &str)] = &[
    (b"%PDF-", "application/pdf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"\0\0\x01\0", "image/x-icon"),
    (b"\0\0\x02\0", "image/x-icon"),
    (b"OggS\0", "application/ogg"),
    (b"MThd\0\0\0\x06", "audio/midi"),
    (b"ID3", "audio/mpeg"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"PK\x03\x04", "application/zip"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\0asm", "application/wasm"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OTTO", "font/otf"),
    (b"ttcf", "font/collection"),
    (b"\0\x01\0\0", "font/ttf"),
    // Texts with a byte order mark.
    (b"\xfe\xff", "text/plain; charset=utf-16be"),
    (b"\xff\xfe", "text/plain; charset=utf-16le"),
    (b"\xef\xbb\xbf", "text/plain; charset=utf-8"),
];

/// Forms inside a container: its name, the name of the form at byte 8, and the type.
const FORMS: &[(&[u8], &[u8], &str)] = &[
    (b"RIFF", b"WEBPVP", "image/webp"),
    (b"RIFF", b"WAVE", "audio/wave"),
    (b"RIFF", b"AVI ", "video/avi"),
    (b"FORM", b"AIFF", "audio/aiff"),
];

/// Elements with which an HTML document begins, in upper case.
const ELEMENTS: &[&[u8]] = &[
    b"!DOCTYPE HTML",
    b"HTML",
    b"HEAD",
    b"SCRIPT",
    b"IFRAME",
    b"H1",
    b"DIV",
    b"FONT",
    b"TABLE",
    b"A",
    b"STYLE",
    b"TITLE",
    b"B",
    b"BODY",
    b"BR",
    b"P",
];

/// Returns the media type for the extension of a name.
pub fn of_name(name: &[u8]) -> Option<HeaderValue> {
    let base = name.rsplit(|&byte| byte == b'/').next()?;
    let dot = base.iter().rposition(|&byte| byte == b'.')?;
    let ending = std::str::from_utf8(base.get(dot + 1..)?).ok()?;
    // A name whose only dot is its first character is a hidden file without an extension.
    let guess = (dot > 0).then(|| mime_guess::from_ext(ending).first_raw()).flatten()?;
    Some(HeaderValue::from_static(guess))
}

/// Returns the media type of an object whose content was not looked at.
pub fn of_name_alone(name: &[u8]) -> HeaderValue {
    of_name(name).unwrap_or(HeaderValue::from_static(BINARY))
}

/// Returns the media type for the first bytes of a content; `None` if there are none.
pub fn of_content(start: &[u8]) -> Option<HeaderValue> {
    let start = &start[..start.len().min(LOOK_BYTES)];
    (!start.is_empty()).then(|| HeaderValue::from_static(sniffed(start)))
}

fn sniffed(start: &[u8]) -> &'static str {
    let text = start.trim_ascii_start();
    if let Some(element) = text.strip_prefix(b"<") {
        if element.starts_with(b"!--") || ELEMENTS.iter().any(|name| begins_with(element, name)) {
            return encoded(start, "text/html", "text/html; charset=utf-8");
        }
        if element.starts_with(b"?xml") {
            return encoded(start, "text/xml", "text/xml; charset=utf-8");
        }
    }
    if let Some((_, kind)) = STARTS.iter().find(|(bytes, _)| start.starts_with(bytes)) {
        return kind;
    }
    let in_form = |bytes: &[u8]| start.get(8..).is_some_and(|rest| rest.starts_with(bytes));
    let form = FORMS.iter().find(|(name, form, _)| start.starts_with(name) && in_form(form));
    match form {
        Some((_, _, kind)) => kind,
        None if start.get(4..).is_some_and(|rest| rest.starts_with(b"ftyp")) => "video/mp4",
        None if start.iter().any(|byte| is_binary(*byte)) => BINARY,
        None => encoded(start, "text/plain", "text/plain; charset=utf-8"),
    }
}

/// Returns the type of a text in UTF-8, or that of another one. A character may be cut off at the end.
fn encoded(start: &[u8], other: &'static str, utf8: &'static str) -> &'static str {
    match std::str::from_utf8(start) {
        Err(error) if error.error_len().is_some() => other,
        _ => utf8,
    }
}

/// Returns whether a tag has this name, which a space or `>` ends.
fn begins_with(element: &[u8], name: &[u8]) -> bool {
    let Some((found, rest)) = element.split_at_checked(name.len()) else { return false };
    found.eq_ignore_ascii_case(name) && matches!(rest.first(), Some(b' ' | b'>'))
}

/// Returns whether a byte is in no text: a control character other than those for space and escape.
fn is_binary(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_come_from_endings() {
        for (name, wanted) in [
            ("a/b.html", Some("text/html")),
            ("B.JPG", Some("image/jpeg")),
            ("x.tar.gz", Some("application/gzip")),
            ("a.json/b", None),
            (".png", None),
            ("no.such-ending", None),
            ("dot.", None),
            ("", None),
        ] {
            let found = of_name(name.as_bytes());
            assert_eq!(found.as_ref().map(|value| value.to_str().unwrap()), wanted, "{name}");
        }
        assert_eq!(of_name(b"\xff.\xff"), None);
        assert_eq!(of_name_alone(b"a.html"), "text/html");
        assert_eq!(of_name_alone(b"a"), "application/octet-stream");
    }

    #[test]
    fn content_types_come_from_content() {
        for (content, wanted) in [
            (&b"\n \t<html lang=\"en\">"[..], "text/html; charset=utf-8"),
            (b"<!doctype HTML>", "text/html; charset=utf-8"),
            (b"<!-- x", "text/html; charset=utf-8"),
            (b"<bx>", "text/plain; charset=utf-8"),
            (b"<b", "text/plain; charset=utf-8"),
            (b" <?xml version", "text/xml; charset=utf-8"),
            (b"%PDF-1.7\n\0", "application/pdf"),
            (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
            (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wave"),
            (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
            (b"\0\0\0\x20ftypisom", "video/mp4"),
            (b"\x1f\x8b\x08\0", "application/gzip"),
            (b"\xff\xfea\0", "text/plain; charset=utf-16le"),
            (b"#!/bin/sh\necho \x1b[1m\n", "text/plain; charset=utf-8"),
            ("caf\u{e9}".as_bytes(), "text/plain; charset=utf-8"),
            (b"caf\xe9 noir", "text/plain"),
            (b"<p>caf\xc3", "text/html; charset=utf-8"),
            (b"\x7fELF\x02\x01\x01\0", "application/octet-stream"),
            (b"abc\0", "application/octet-stream"),
        ] {
            assert_eq!(of_content(content).unwrap(), wanted, "{content:?}");
        }
        assert_eq!(of_content(b""), None);
        // Later bytes do not count.
        let long = [&[b'a'; LOOK_BYTES][..], b"\0"].concat();
        assert_eq!(of_content(&long).unwrap(), "text/plain; charset=utf-8");
    }
}
