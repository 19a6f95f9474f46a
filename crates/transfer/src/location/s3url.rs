//! `s3://BUCKET/KEY`: a bucket, and a key or the beginning of keys, as bytes.

use crate::error::{Fatal, quoted};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// A place in S3. Nothing is decoded or normalised: `//`, `.` and `..` in a key are what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Url {
    /// The bucket; empty for `s3://` alone, which names all buckets.
    pub bucket: String,
    /// What follows the slash after the bucket, possibly empty.
    pub key: Vec<u8>,
    /// Whether there was a slash after the bucket.
    pub slash: bool,
}

impl S3Url {
    /// Parses what follows `s3://`.
    ///
    /// # Errors
    /// Code 1 for a bucket whose name cannot be one: it has to have 3 to 63 letters, digits, dots,
    /// hyphens (and, as old buckets may, capitals and underscores).
    pub fn parse(rest: &[u8]) -> Result<S3Url, Fatal> {
        let (bucket, key, slash) = match rest.iter().position(|byte| *byte == b'/') {
            Some(at) => (&rest[..at], &rest[at + 1..], true),
            None => (rest, &b""[..], false),
        };
        let fine = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
        let name = String::from_utf8(bucket.to_vec()).ok();
        let length = if bucket.is_empty() && key.is_empty() { 0..=0 } else { 3..=63 };
        match name.filter(|_| bucket.iter().all(fine) && length.contains(&bucket.len())) {
            Some(bucket) => Ok(S3Url { bucket, key: key.to_vec(), slash }),
            None => {
                let shown = quoted(OsStr::from_bytes(&[b"s3://", rest].concat()));
                Err(Fatal::new(
                    1,
                    format!(
                        "{shown}: a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens"
                    ),
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let url = |text: &str| {
            let url = S3Url::parse(text.as_bytes()).ok()?;
            Some((url.bucket, String::from_utf8(url.key).ok()?, url.slash))
        };
        let some = |bucket: &str, key: &str, slash| Some((bucket.into(), key.into(), slash));
        assert_eq!(url("abc"), some("abc", "", false));
        assert_eq!(url("abc/"), some("abc", "", true));
        assert_eq!(url("abc//x/../ y"), some("abc", "/x/../ y", true));
        assert_eq!(url(""), some("", "", false));
        for bad in ["ab", "a b c", "/key", "äöü", &"x".repeat(64)] {
            assert_eq!(url(bad), None, "{bad}");
        }
    }
}
