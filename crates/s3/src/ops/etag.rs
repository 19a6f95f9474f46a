//! Compact ETags for listings with millions of entries: usual ones need no allocation.

use crate::checksum::hex;
use crate::header::unquoted;
use crate::xml::hex_byte;
use std::fmt;

/// An ETag without quotes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Etag(Form);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    /// 32 hexadecimal digits, followed by `-N` if N is not 0.
    Digest([u8; 16], u32),
    /// Any other text.
    Other(Box<str>),
}

impl Etag {
    /// Parses an ETag with or without quotes.
    pub fn new(text: &str) -> Etag {
        let text = unquoted(text);
        match digest(text) {
            Some((value, parts)) => Etag(Form::Digest(value, parts)),
            None => Etag(Form::Other(text.into())),
        }
    }

    /// The MD5 value, if it has the form of a single-part object's ETag. It is an MD5 unless the object is
    /// encrypted by KMS or a customer key.
    pub fn md5(&self) -> Option<[u8; 16]> {
        match self.0 {
            Form::Digest(value, 0) => Some(value),
            _ => None,
        }
    }

    /// True if the server provided none.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Form::Other(text) if text.is_empty())
    }
}

impl Default for Etag {
    fn default() -> Etag {
        Etag(Form::Other("".into()))
    }
}

/// Only forms that can be reproduced exactly: lower-case letters, a count without leading zeros.
fn digest(text: &str) -> Option<([u8; 16], u32)> {
    let (digits, rest) = text.as_bytes().split_at_checked(32)?;
    let parts = match rest {
        [] => 0,
        [b'-', first @ b'1'..=b'9', ..] if rest.len() < 11 => {
            let _ = first;
            text.get(33..)?.parse().ok()?
        }
        _ => return None,
    };
    if digits.iter().any(u8::is_ascii_uppercase) {
        return None;
    }
    let mut value = [0; 16];
    for (byte, pair) in value.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = hex_byte(Some(pair))?;
    }
    Some((value, parts))
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Digest(value, 0) => f.write_str(&hex(value)),
            Form::Digest(value, parts) => write!(f, "{}-{parts}", hex(value)),
            Form::Other(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn forms() {
        let digits = "0123456789abcdef0123456789abcdef";
        assert_eq!(Etag::new(&format!("\"{digits}\"")).md5().unwrap()[..2], [0x01, 0x23]);
        for text in [
            "",
            "x",
            &digits.to_uppercase(),
            &format!("{digits}-3"),
            &format!("{digits}-03"),
            &format!("{digits}-"),
            &format!("{digits}-+3"),
            &format!("{digits}-99999999999"),
            &format!("{digits}-4294967295"),
            &format!("{digits}-4294967296"),
            "é123456789abcdef0123456789abcdef-1",
        ] {
            assert_eq!(Etag::new(text).to_string(), *text);
            assert_eq!(Etag::new(text).md5(), None);
        }
        assert!(Etag::default().is_empty() && Etag::new("\"\"").is_empty());
        assert!(!Etag::new(digits).is_empty());
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(text in "[0-9a-f]{31,33}(-[0-9]{1,11})?") {
            prop_assert_eq!(Etag::new(&text).to_string(), text);
        }
    }
}
