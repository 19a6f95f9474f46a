//! ETags for listings with millions of entries: usual ones need no allocation.

use crate::header::unquoted;
use arrayvec::ArrayString;
use hakobu_core::percent::hex_byte;
use std::fmt;
use std::ops::Deref;

/// Length of the ETag of an object in 10,000 parts: 32 hexadecimal digits and `-10000`.
const SHORT_BYTES_MAX: usize = 38;

/// An ETag without quotes; a string.
#[derive(Clone)]
pub struct Etag(Form);

#[derive(Clone)]
enum Form {
    Short(ArrayString<SHORT_BYTES_MAX>),
    Long(Box<str>),
}

impl Etag {
    /// Parses an ETag with or without quotes.
    pub fn new(text: &str) -> Etag {
        unquoted(text).into()
    }

    /// The MD5 value, if it has the form of a single-part object's ETag. It is an MD5 unless the object is
    /// encrypted by KMS or a customer key. Lower-case digits only: no other text has this value.
    pub fn md5(&self) -> Option<[u8; 16]> {
        let mut value = [0; 16];
        if self.len() != 2 * value.len() || self.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        for (byte, pair) in value.iter_mut().zip(self.as_bytes().chunks_exact(2)) {
            *byte = hex_byte(Some(pair))?;
        }
        Some(value)
    }
}

impl Deref for Etag {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Form::Short(text) => text,
            Form::Long(text) => text,
        }
    }
}

/// Takes the text as it is: its quotes have been removed.
impl From<&str> for Etag {
    fn from(text: &str) -> Etag {
        Etag(match ArrayString::from(text) {
            Ok(text) => Form::Short(text),
            Err(_) => Form::Long(text.into()),
        })
    }
}

impl From<String> for Etag {
    fn from(text: String) -> Etag {
        text.as_str().into()
    }
}

impl Default for Etag {
    fn default() -> Etag {
        "".into()
    }
}

impl PartialEq for Etag {
    fn eq(&self, other: &Etag) -> bool {
        **self == **other
    }
}

impl Eq for Etag {}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
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
        assert_eq!(Etag::new(digits), Etag::new(&format!("\"{digits}\"")));
        assert_eq!(*Etag::from("W/x"), *"W/x");
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
