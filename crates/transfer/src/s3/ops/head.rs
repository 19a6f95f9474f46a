//! HeadObject, and what headers say of an object.

use super::get::looked_at;
use crate::s3::header::{checksums, etag, metadata_of, some, text};
use crate::s3::time::parse_http;
use crate::s3::{Checksum, Client, Error, Request};
use crate::unit::Time;
use http::{HeaderMap, Method};

/// What headers say of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Size of the whole object in bytes (of a ranged answer: from Content-Range).
    pub size: u64,
    /// LastModified.
    pub mtime: Time,
    /// Without quotes.
    pub etag: String,
    /// `x-amz-version-id`.
    pub version: Option<String>,
    /// Stored checksums of the whole object; none of an answer with a part of it, because servers
    /// differ in whether they mean the part or the whole there.
    pub checksums: Vec<Checksum>,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `x-amz-storage-class`; empty for STANDARD.
    pub storage_class: String,
    /// `x-amz-meta-*`: names in lower case without that prefix, decoded values.
    pub metadata: Vec<(String, String)>,
    /// All headers, for `head` and `stat`.
    pub headers: HeaderMap,
}

/// Reads the headers of HeadObject or GetObject.
pub fn head_of(headers: &HeaderMap) -> Head {
    let ranged = some(headers, "content-range").and_then(|range| content_range(&range));
    let (size, whole) = match ranged {
        Some((sent, size)) => (size, sent == size),
        None => (text(headers, "content-length").trim().parse().unwrap_or(0), true),
    };
    let class = text(headers, "x-amz-storage-class");
    Head {
        size,
        mtime: parse_http(&text(headers, "last-modified")).unwrap_or_default(),
        etag: etag(headers),
        version: some(headers, "x-amz-version-id"),
        checksums: if whole { checksums(headers) } else { Vec::new() },
        content_type: some(headers, "content-type"),
        storage_class: if class == "STANDARD" { String::new() } else { class },
        metadata: metadata_of(headers),
        headers: headers.clone(),
    }
}

/// `bytes 0-9/443` as bytes sent and bytes in all.
fn content_range(text: &str) -> Option<(u64, u64)> {
    let (range, size) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let size = size.parse().ok()?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    Some((last.checked_sub(first)?.checked_add(1)?, size))
}

/// Asks for the headers of one object, stored checksums included.
///
/// # Errors
/// `NotFound`; the request's.
pub async fn head_object(
    client: &Client,
    bucket: &str,
    key: &[u8],
    version: Option<&str>,
) -> Result<Head, Error> {
    let head = Request::new("HeadObject", Method::HEAD, Some(bucket)).key(key);
    let reply = client.send(&looked_at(head, version, true)).await?;
    Ok(head_of(&reply.headers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::s3::Algorithm;
    use http::{HeaderName, HeaderValue};

    fn head(pairs: &[(&str, &str)]) -> Head {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::try_from(*name).unwrap();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
        }
        head_of(&headers)
    }

    #[test]
    fn headers_of_an_object() {
        let head = head(&[
            ("Content-Length", "12"),
            ("Last-Modified", "Fri, 24 May 2013 00:00:01 GMT"),
            ("ETag", "\"e\""),
            ("x-amz-checksum-crc32", "y/Q5Jg==-2"),
            ("x-amz-checksum-sha1", "nonsense"),
            ("x-amz-storage-class", "STANDARD"),
            ("x-amz-meta-mtime", "5.5"),
        ]);
        assert_eq!((head.size, head.mtime.s, head.etag.as_str()), (12, 1_369_353_601, "e"));
        let [checksum] = &head.checksums[..] else { panic!("{:?}", head.checksums) };
        assert_eq!((checksum.algorithm, checksum.parts), (Algorithm::Crc32, 2));
        assert_eq!(head.storage_class, "");
        assert_eq!(head.metadata, [("mtime".to_owned(), "5.5".to_owned())]);
        assert_eq!(head.version, None);
    }

    #[test]
    fn a_part_tells_the_size_of_the_whole_and_no_checksum_of_it() {
        let crc = ("x-amz-checksum-crc32", "y/Q5Jg==");
        let part = head(&[("content-length", "5"), ("content-range", "bytes 5-9/443"), crc]);
        assert_eq!((part.size, part.checksums.len()), (443, 0));
        let whole = head(&[("content-length", "10"), ("content-range", "bytes 0-9/10"), crc]);
        assert_eq!((whole.size, whole.checksums.len()), (10, 1));
        for odd in ["bytes */5", "bytes 9-0/5", "items 0-1/2", "bytes 0-18446744073709551615/5"] {
            assert_eq!(head(&[("content-length", "3"), ("content-range", odd)]).size, 3, "{odd}");
        }
    }
}
