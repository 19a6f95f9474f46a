//! Keys of the caller (SSE-C): checked as S3 does it, not used. Objects keep the MD5 of their key, and their ETag is no
//! MD5 of the content.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use s3s::crypto::{Checksum as _, Md5};
use s3s::{S3Result, s3_error};

/// Headers of a request: algorithm, key, and MD5 of the key.
pub type Sent = (Option<String>, Option<String>, Option<String>);

/// Takes the headers of a request, and checks them.
macro_rules! customer_key_of {
    ($input:expr) => {
        $crate::folder::customer_key::check((
            $input.sse_customer_algorithm.take(),
            $input.sse_customer_key.take(),
            $input.sse_customer_key_md5.take(),
        ))?
    };
}
pub(super) use customer_key_of;

/// Adds the MD5 of a key to a response, if there is one.
macro_rules! add_customer_key {
    ($output:expr, $md5:expr) => {
        let md5: Option<String> = $md5;
        $output.sse_customer_algorithm = md5.as_ref().map(|_| "AES256".to_owned());
        $output.sse_customer_key_md5 = md5;
    };
}
pub(super) use add_customer_key;

/// Returns the MD5 of a sent key, if there is one.
pub fn check(sent: Sent) -> S3Result<Option<String>> {
    let (algorithm, key, md5) = match sent {
        (None, None, None) => return Ok(None),
        (Some(algorithm), Some(key), Some(md5)) => (algorithm, key, md5),
        _ => return Err(s3_error!(InvalidArgument, "algorithm, key and MD5 go together")),
    };
    let key = STANDARD.decode(key).ok().filter(|key| key.len() == 32 && algorithm == "AES256");
    let Some(key) = key else {
        return Err(s3_error!(InvalidArgument, "the key is not one of AES-256"));
    };
    let mut hasher = Md5::new();
    hasher.update(&key);
    match STANDARD.encode(hasher.finalize()) == md5 {
        true => Ok(Some(md5)),
        false => Err(s3_error!(InvalidArgument, "the MD5 is not that of the key")),
    }
}

/// Checks that the sent key is that of the object.
pub fn fits(stored: Option<&str>, sent: Option<&str>) -> S3Result<()> {
    match (stored, sent) {
        (Some(stored), Some(sent)) if stored != sent => {
            Err(s3_error!(AccessDenied, "the object has another key"))
        }
        (Some(_), None) => Err(s3_error!(InvalidRequest, "the object is encrypted with a key")),
        (None, Some(_)) => Err(s3_error!(InvalidRequest, "the object has no key")),
        _ => Ok(()),
    }
}

/// Returns the ETag of content with an MD5: another text of the same form if a key encrypts it.
pub fn etag(md5: String, key: Option<&String>) -> String {
    match key {
        None => md5,
        Some(_) => md5.chars().rev().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_checked() {
        let key = [5; 32];
        let md5 = |key: &[u8]| {
            let mut hasher = Md5::new();
            hasher.update(key);
            Some(STANDARD.encode(hasher.finalize()))
        };
        let some = |text: &str| Some(text.to_owned());
        let whole = (some("AES256"), Some(STANDARD.encode(key)), md5(&key));
        assert_eq!(check(whole.clone()).unwrap(), md5(&key));
        assert_eq!(check((None, None, None)).unwrap(), None);
        for wrong in [
            (some("DES"), whole.1.clone(), whole.2.clone()),
            (whole.0.clone(), some("AAAA"), md5(&[0; 3])),
            (whole.0.clone(), whole.1.clone(), md5(&[6; 32])),
            (whole.0.clone(), whole.1.clone(), None),
        ] {
            assert!(check(wrong).is_err());
        }
        assert!(fits(Some("a"), Some("a")).is_ok() && fits(None, None).is_ok());
        assert!(fits(Some("a"), Some("b")).is_err());
        assert!(fits(Some("a"), None).is_err() && fits(None, Some("a")).is_err());
    }
}
