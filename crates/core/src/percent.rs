//! Percent-encoding of URLs (RFC 3986, section 2).

/// Appends `bytes` to `out`: unreserved characters stay, and slashes if `keeps_slashes`; every other byte becomes `%XX`
/// with upper-case digits, as signatures of S3 require it.
pub fn encode(bytes: &[u8], keeps_slashes: bool, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.reserve(bytes.len());
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(*byte));
            }
            b'/' if keeps_slashes => out.push('/'),
            _ => {
                out.push('%');
                out.push(char::from(DIGITS[usize::from(byte >> 4)]));
                out.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_unreserved_characters_are_encoded() {
        let encoded = |bytes: &[u8], keeps_slashes| {
            let mut out = String::from("=");
            encode(bytes, keeps_slashes, &mut out);
            out
        };
        let unreserved = "AZaz09-._~";
        assert_eq!(encoded(unreserved.as_bytes(), false), format!("={unreserved}"));
        assert_eq!(encoded(b"a/b c", true), "=a/b%20c");
        assert_eq!(encoded(b"a/b+c", false), "=a%2Fb%2Bc");
        assert_eq!(encoded(b"\0\x7f\xc3\xbc\xff%", true), "=%00%7F%C3%BC%FF%25");
        assert_eq!(encoded(b"", true), "=");
    }
}
