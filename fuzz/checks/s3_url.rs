//! Arguments that name places, `s3://` URLs among them.

use hakobu_transfer::location::{Location, S3Url};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// A URL that is taken says what was typed, and nothing is lost or added.
pub fn check(data: &[u8]) {
    match S3Url::parse(data) {
        Ok(url) => {
            let slash: &[u8] = if url.slash { b"/" } else { b"" };
            assert_eq!([url.bucket.as_bytes(), slash, &url.key].concat(), data);
            assert!(url.slash || url.key.is_empty());
            // The ARN of an access point has other characters, and one slash or none.
            let is_arn = url.bucket.starts_with("arn:");
            assert!(is_arn || url.bucket.is_empty() || (3..=63).contains(&url.bucket.len()));
            assert!(!url.bucket.contains(['\0', '\n', '%', '?', '#', '@']));
            assert!(is_arn || !url.bucket.contains(['/', ':']));
            assert!(!is_arn || url.bucket.bytes().filter(|byte| *byte == b'/').count() <= 1);
            let typed = [b"s3://", data].concat();
            assert_eq!(Location::parse(OsStr::from_bytes(&typed)).ok(), Some(Location::S3(url)));
        }
        Err(fatal) => assert!(!fatal.to_string().is_empty()),
    }
    match Location::parse(OsStr::from_bytes(data)) {
        Ok(Location::Local(path)) => assert_eq!(path.as_os_str().as_bytes(), data),
        Ok(Location::S3(_)) => assert!(data.starts_with(b"s3://")),
        Ok(Location::Null) => assert_eq!(data, b"null:"),
        Err(fatal) => assert!(!fatal.to_string().is_empty()),
    }
}
