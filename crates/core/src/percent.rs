//! Percent-encoding of URLs (RFC 3986, section 2), and hexadecimal digits.

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

/// Decodes `%XX`, and `+` as a space if `plus_is_space` (in queries, and in S3's `encoding-type=url`). Invalid encodings
/// stay as they are.
pub fn decode(text: &[u8], plus_is_space: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let code = if *byte == b'%' { hex_byte(text.get(at + 1..at + 3)) } else { None };
        out.push(match byte {
            b'+' if plus_is_space => b' ',
            _ => code.unwrap_or(*byte),
        });
        at += if code.is_some() { 3 } else { 1 };
    }
    out
}

/// Values of hexadecimal digits; 255 for other bytes. A listing contains 32,000 of them.
static VALUES: [u8; 256] = {
    let mut values = [255; 256];
    let mut value = 0;
    while value < 16 {
        let digit = b"0123456789abcdef"[value];
        values[digit as usize] = value as u8;
        values[digit.to_ascii_uppercase() as usize] = value as u8;
        value += 1;
    }
    values
};

/// Returns the byte that two hexadecimal digits name.
#[inline]
pub fn hex_byte(digits: Option<&[u8]>) -> Option<u8> {
    let [high, low] = *digits? else { return None };
    let (high, low) = (VALUES[usize::from(high)], VALUES[usize::from(low)]);
    (high < 16 && low < 16).then_some(high << 4 | low)
}

/// Lower-case hexadecimal digits of bytes.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_and_other_text_stays() {
        for (text, plus_is_space, decoded) in [
            ("a%20b", false, "a b"),
            ("a+b", true, "a b"),
            ("a+b%2B", false, "a+b+"),
            ("%", false, "%"),
            ("%4", false, "%4"),
            ("%zz%41", false, "%zzA"),
            ("%+1", false, "%+1"),
        ] {
            assert_eq!(decode(text.as_bytes(), plus_is_space), decoded.as_bytes(), "{text}");
        }
        assert_eq!(hex(b"\x00\x9a\xff"), "009aff");
    }

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
