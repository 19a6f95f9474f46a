//! Encryption by the server with keys of the caller (SSE-C; Amazon S3 User Guide, "Using server-side encryption with
//! customer-provided keys"): the key travels with every request that reads or writes content or headers of an object.

use crate::header::plain;
use crate::{Algorithm, Checksum};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;

/// The only algorithm of S3.
const AES256: HeaderValue = HeaderValue::from_static("AES256");
/// Bytes of a key.
const BYTES: usize = 32;

/// Operations that need the key of the object that they read or write.
const OPERATIONS: [&str; 9] = [
    "GetObject",
    "HeadObject",
    "PutObject",
    "CopyObject",
    "CreateMultipartUpload",
    "UploadPart",
    "UploadPartCopy",
    "CompleteMultipartUpload",
    "ListParts",
];

/// Headers of the object itself: algorithm, key, and MD5 of the key.
const OBJECT: [&str; 3] = [
    "x-amz-server-side-encryption-customer-algorithm",
    "x-amz-server-side-encryption-customer-key",
    "x-amz-server-side-encryption-customer-key-md5",
];
const COPY_SOURCE: [&str; 3] = [
    "x-amz-copy-source-server-side-encryption-customer-algorithm",
    "x-amz-copy-source-server-side-encryption-customer-key",
    "x-amz-copy-source-server-side-encryption-customer-key-md5",
];

/// An AES-256 key. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct CustomerKey([u8; BYTES]);

impl CustomerKey {
    /// Reads a key: 32 bytes, or their base64, which white space may follow. `None` for anything else.
    pub fn parse(given: &[u8]) -> Option<CustomerKey> {
        if let Ok(bytes) = given.try_into() {
            return Some(CustomerKey(bytes));
        }
        let decoded = STANDARD.decode(given.trim_ascii_end()).ok()?;
        decoded.try_into().ok().map(CustomerKey)
    }

    /// Adds the headers that an operation needs.
    pub(crate) fn add(&self, operation: &str, headers: &mut HeaderMap) {
        if OPERATIONS.contains(&operation) {
            headers.extend(OBJECT.map(HeaderName::from_static).into_iter().zip(self.values()));
        }
    }

    pub(crate) fn of_copy_source(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        COPY_SOURCE.map(HeaderName::from_static).into_iter().zip(self.values())
    }

    fn values(&self) -> [HeaderValue; 3] {
        let mut key = plain(&STANDARD.encode(self.0));
        key.set_sensitive(true);
        [AES256, key, plain(&Checksum::of(Algorithm::Md5, &self.0).encode())]
    }
}

impl fmt::Debug for CustomerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomerKey(***)")
    }
}

/// True if the headers of a response say that the object is encrypted with a key of the caller. Its ETag is not an MD5.
pub(crate) fn is_encrypted(headers: &HeaderMap) -> bool {
    headers.contains_key(OBJECT[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_bytes_or_base64() {
        let raw: Vec<u8> = (100..132).collect();
        let text = STANDARD.encode(&raw);
        let key = CustomerKey::parse(&raw).unwrap();
        assert_eq!(CustomerKey::parse(text.as_bytes()), Some(key.clone()));
        assert_eq!(CustomerKey::parse(format!("{text}\n").as_bytes()), Some(key.clone()));
        // 32 characters are a key themselves, also if they could be decoded.
        assert!(CustomerKey::parse(&[b'A'; 32]).is_some_and(|other| other != key));
        for wrong in [&b""[..], b"short", &[b'A'; 44], &[0; 33], &text.as_bytes()[1..]] {
            assert_eq!(CustomerKey::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn headers_name_the_key_and_its_md5() {
        let key = CustomerKey::parse(&[7; 32]).unwrap();
        let mut headers = HeaderMap::new();
        key.add("ListObjectsV2", &mut headers);
        assert!(headers.is_empty());
        key.add("GetObject", &mut headers);
        assert_eq!(headers.len(), 3);
        assert_eq!(headers[OBJECT[0]], "AES256");
        assert_eq!(headers[OBJECT[1]], STANDARD.encode([7; 32]).as_str());
        assert_eq!(headers[OBJECT[2]].len(), 24);
        assert!(is_encrypted(&headers));
        let source: Vec<_> = key.of_copy_source().collect();
        assert!(source.iter().all(|(name, _)| name.as_str().starts_with("x-amz-copy-source-")));
        let shown = format!("{key:?} {headers:?} {source:?}");
        assert!(!shown.contains(&STANDARD.encode([7; 32])) && !shown.contains("7, 7"), "{shown}");
    }
}
