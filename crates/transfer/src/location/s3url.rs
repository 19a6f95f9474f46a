//! `s3://BUCKET/KEY`: a bucket, and a key or key prefix, as bytes.

use hakobu_core::error::{Fatal, quoted};
use hakobu_s3::AccessPoint;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Prefix of arguments in S3.
pub(super) const SCHEME: &[u8] = b"s3://";

/// A location in S3. The bucket may be the ARN of an access point. Nothing of the key is decoded or normalised: `//`,
/// `.` and `..` in a key are ordinary characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Url {
    /// The bucket; empty for `s3://` alone, which names all buckets.
    pub bucket: String,
    /// The part after the bucket's slash, possibly empty.
    pub key: Vec<u8>,
    /// Whether there was a slash after the bucket.
    pub slash: bool,
}

impl S3Url {
    /// Parses the text after `s3://`.
    ///
    /// # Errors
    /// Code 1 for an invalid bucket name: it must have 3 to 63 letters, digits, dots, hyphens (and, as in old
    /// buckets, capitals and underscores).
    pub fn parse(rest: &[u8]) -> Result<S3Url, Fatal> {
        let shown = || quoted(OsStr::from_bytes(&[SCHEME, rest].concat()));
        if let Some(split) = AccessPoint::split(rest) {
            let (arn, after) = split.map_err(|why| Fatal::new(1, format!("{}: {why}", shown())))?;
            let key = after.strip_prefix(b"/").unwrap_or_default().to_vec();
            return Ok(S3Url { bucket: arn.to_owned(), key, slash: !after.is_empty() });
        }
        let (bucket, key, slash) = match rest.iter().position(|byte| *byte == b'/') {
            Some(at) => (&rest[..at], &rest[at + 1..], true),
            None => (rest, &b""[..], false),
        };
        let fine = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
        let name = String::from_utf8(bucket.to_vec()).ok();
        let length = if bucket.is_empty() && key.is_empty() { 0..=0 } else { 3..=63 };
        match name.filter(|_| bucket.iter().all(fine) && length.contains(&bucket.len())) {
            Some(bucket) => Ok(S3Url { bucket, key: key.to_vec(), slash }),
            None => Err(Fatal::new(
                1,
                format!(
                    "{}: a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens",
                    shown()
                ),
            )),
        }
    }

    /// Returns the argument as typed.
    pub fn as_typed(&self) -> PathBuf {
        let slash: &[u8] = if self.slash { b"/" } else { b"" };
        path(&[SCHEME, self.bucket.as_bytes(), slash, &self.key])
    }

    /// Returns the prefix `name` below this one.
    pub fn join(&self, name: &[u8]) -> S3Url {
        let apart = self.key.is_empty() || self.key.ends_with(b"/");
        let slash: &[u8] = if apart { b"" } else { b"/" };
        let key = [&self.key, slash, name].concat();
        S3Url { bucket: self.bucket.clone(), key, slash: true }
    }
}

/// Returns the URL of a key, for messages; the key may come in parts.
pub fn s3_path(bucket: &str, key: &[&[u8]]) -> PathBuf {
    path(&[&[SCHEME, bucket.as_bytes(), b"/"], key].concat())
}

fn path(parts: &[&[u8]]) -> PathBuf {
    PathBuf::from(OsString::from_vec(parts.concat()))
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
        let arn = "arn:aws:s3:eu-west-1:123456789012:accesspoint/point";
        assert_eq!(url(arn), some(arn, "", false));
        assert_eq!(url(&format!("{arn}/")), some(arn, "", true));
        assert_eq!(url(&format!("{arn}/a//b")), some(arn, "a//b", true));
        let odd = S3Url::parse(&[arn.as_bytes(), b"/\xff"].concat()).unwrap();
        assert_eq!((odd.bucket.as_str(), odd.key), (arn, b"\xff".to_vec()));
        assert!(S3Url::parse(&[arn.as_bytes(), b"\xffkey"].concat()).is_err());
        for bad in
            ["arn:aws:s3-outposts:r:1:x", "arn:", "ab", "a b c", "/key", "äöü", &"x".repeat(64)]
        {
            assert_eq!(url(bad), None, "{bad}");
        }
    }
}
