//! The protocol, as far as both servers need it: the S3 operation of a request by method, path and query (Amazon S3 API
//! reference, path-style addresses), and XML written by hand: escaped text, and S3's errors.

use hakobu_core::percent;
use http::{Response, StatusCode, header};
use s3s::Body;

/// Declares the operations with their names.
macro_rules! operations {
    ($($name:ident)*) => {
        /// An S3 operation, or `Other` for all that these servers do not distinguish.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Operation { $($name,)* }

        impl Operation {
            /// All operations.
            pub const ALL: &[Operation] = &[$(Operation::$name,)*];

            /// Name in the API reference; `Other` for operations that are not distinguished.
            pub fn name(self) -> &'static str {
                match self { $(Operation::$name => stringify!($name),)* }
            }
        }
    };
}
operations!(ListBuckets CreateBucket DeleteBucket HeadBucket GetBucketLocation ListObjects ListObjectsV2
    ListObjectVersions ListMultipartUploads DeleteObjects GetObject HeadObject PutObject CopyObject
    DeleteObject CreateMultipartUpload UploadPart UploadPartCopy CompleteMultipartUpload
    AbortMultipartUpload ListParts Other);

/// Query parameters that address a property of a bucket or object instead of the object.
const PROPERTIES: &[&str] = &[
    "accelerate",
    "acl",
    "analytics",
    "attributes",
    "cors",
    "encryption",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
    "lifecycle",
    "logging",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "replication",
    "requestPayment",
    "restore",
    "retention",
    "select",
    "tagging",
    "torrent",
    "versioning",
    "website",
];

impl Operation {
    /// Operation of a request; `path` and `query` as sent, `copies` if it has an `x-amz-copy-source` header.
    pub fn of(method: &str, path: &str, query: &str, copies: bool) -> Operation {
        use Operation::*;
        let (bucket, key) = split_path(path);
        let has = |name: &str| query_parameter(query, name).is_some();
        if !query.is_empty() && PROPERTIES.iter().any(|name| has(name)) {
            return Other;
        }
        match method {
            "GET" if bucket.is_empty() => ListBuckets,
            _ if bucket.is_empty() => Other,
            "GET" if key.is_empty() && has("location") => GetBucketLocation,
            "GET" if key.is_empty() && has("uploads") => ListMultipartUploads,
            "GET" if key.is_empty() && has("versions") => ListObjectVersions,
            "GET" if key.is_empty() && query_parameter(query, "list-type") == Some("2") => {
                ListObjectsV2
            }
            "GET" if key.is_empty() => ListObjects,
            "HEAD" if key.is_empty() => HeadBucket,
            "PUT" if key.is_empty() => CreateBucket,
            "DELETE" if key.is_empty() => DeleteBucket,
            "POST" if key.is_empty() && has("delete") => DeleteObjects,
            _ if key.is_empty() => Other,
            "GET" if has("uploadId") => ListParts,
            "GET" => GetObject,
            "HEAD" => HeadObject,
            "PUT" if has("partNumber") && copies => UploadPartCopy,
            "PUT" if has("partNumber") => UploadPart,
            "PUT" if copies => CopyObject,
            "PUT" => PutObject,
            "POST" if has("uploads") => CreateMultipartUpload,
            "POST" if has("uploadId") => CompleteMultipartUpload,
            "DELETE" if has("uploadId") => AbortMultipartUpload,
            "DELETE" => DeleteObject,
            _ => Other,
        }
    }

    /// True if the payload is in the request.
    pub fn sends_payload(self) -> bool {
        matches!(self, Operation::PutObject | Operation::UploadPart)
    }
}

/// Bucket and key of a path, as sent; empty if missing.
pub fn split_path(path: &str) -> (&str, &str) {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split_once('/').unwrap_or((path, ""))
}

/// Value of a query parameter as sent; empty if it has none.
pub fn query_parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    })
}

/// Request id of every response.
pub const REQUEST_ID: &str = "HAKOBU0000000000";

/// Appends text with the five special characters of XML escaped, and control characters (invalid in XML 1.0)
/// as references, like S3.
pub fn push_escaped(text: &[u8], out: &mut Vec<u8>) {
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            '"' => out.extend_from_slice(b"&quot;"),
            '\0'..=' ' if c != ' ' => {
                out.extend_from_slice(format!("&#x{:x};", u32::from(c)).as_bytes());
            }
            _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Text percent-encoded like S3 for `encoding-type=url`: unreserved characters, slashes and asterisks stay.
pub fn encoded(text: &[u8]) -> String {
    let mut out = String::new();
    percent::encode(text, true, &mut out);
    out.replace("%2A", "*")
}

/// Appends `<name>text</name>` with the text escaped.
pub fn push_element(name: &str, text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("<{name}>").as_bytes());
    push_escaped(text, out);
    out.extend_from_slice(format!("</{name}>").as_bytes());
}

/// Body of an error (Amazon S3 API reference, "REST error responses").
pub fn error_body(code: &str, message: &str, resource: &str, region: Option<&str>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>");
    push_element("Code", code.as_bytes(), &mut out);
    push_element("Message", message.as_bytes(), &mut out);
    if let Some(region) = region {
        push_element("Region", region.as_bytes(), &mut out);
    }
    push_element("Resource", resource.as_bytes(), &mut out);
    push_element("RequestId", REQUEST_ID.as_bytes(), &mut out);
    out.extend_from_slice(b"</Error>");
    out
}

/// Response with an error; `region` is that of the bucket, if another one is named.
pub fn error_response(
    status: StatusCode,
    code: &str,
    message: &str,
    resource: &str,
    region: Option<&str>,
) -> http::Result<Response<Body>> {
    let mut response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/xml")
        .header("x-amz-request-id", REQUEST_ID);
    if let Some(region) = region {
        response = response.header("x-amz-bucket-region", region);
    }
    response.body(Body::from(error_body(code, message, resource, region)))
}

/// Raw texts of all elements with a name, which must have neither attributes nor child elements.
pub fn element_texts<'x>(xml: &'x str, name: &str) -> impl Iterator<Item = &'x str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        let start = rest.find(&open)? + open.len();
        let length = rest[start..].find(&close)?;
        let text = &rest[start..start + length];
        rest = &rest[start + length + close.len()..];
        Some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations() {
        for (request, name) in [
            ("GET /", "ListBuckets"),
            ("GET /b", "ListObjects"),
            ("GET /b/?list-type=2&prefix=a", "ListObjectsV2"),
            ("GET /b?location", "GetBucketLocation"),
            ("GET /b?location=", "GetBucketLocation"),
            ("GET /b?versions", "ListObjectVersions"),
            ("GET /b?uploads=&prefix=x", "ListMultipartUploads"),
            ("GET /b?acl", "Other"),
            ("HEAD /b/", "HeadBucket"),
            ("PUT /b", "CreateBucket"),
            ("POST /b?delete", "DeleteObjects"),
            ("POST /b?x-id=DeleteObjects&delete=", "DeleteObjects"),
            ("GET /b/k", "GetObject"),
            ("GET /b/k?x-id=GetObject", "GetObject"),
            ("GET /b/k/", "GetObject"),
            ("GET /b//k", "GetObject"),
            ("GET /b//", "GetObject"),
            ("GET /b/k?tagging", "Other"),
            ("GET /b/k?uploadId=x", "ListParts"),
            ("HEAD /b/k", "HeadObject"),
            ("PUT /b/k", "PutObject"),
            ("PUT /b/k?partNumber=1&uploadId=x", "UploadPart"),
            ("POST /b/k?uploads", "CreateMultipartUpload"),
            ("POST /b/k?uploadId=x", "CompleteMultipartUpload"),
            ("DELETE /b/k?uploadId=x", "AbortMultipartUpload"),
            ("DELETE /b/k", "DeleteObject"),
            ("DELETE /b", "DeleteBucket"),
            ("PATCH /b/k", "Other"),
        ] {
            let (method, target) = request.split_once(' ').unwrap();
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            assert_eq!(Operation::of(method, path, query, false).name(), name, "{request}");
        }
        assert_eq!(Operation::of("PUT", "/b/k", "", true), Operation::CopyObject);
        let copied = Operation::of("PUT", "/b/k", "uploadId=x&partNumber=1", true);
        assert_eq!(copied, Operation::UploadPartCopy);
    }

    proptest::proptest! {
        #[test]
        fn any_request_has_an_operation(method in "[A-Z]{0,7}", path: String, query: String) {
            Operation::of(&method, &path, &query, false);
        }
    }

    /// Reverses [`push_escaped`]. Unknown references stay as they are.
    fn unescape(text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('&') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let end = rest.find(';').unwrap_or(0);
            let name = rest.get(1..end).unwrap_or_default();
            let number = name.strip_prefix("#x").map(|hex| u32::from_str_radix(hex, 16));
            let number = number.or_else(|| name.strip_prefix('#').map(str::parse));
            let c = match name {
                "amp" => Some('&'),
                "lt" => Some('<'),
                "gt" => Some('>'),
                "quot" => Some('"'),
                "apos" => Some('\''),
                _ => number.and_then(Result::ok).and_then(char::from_u32),
            };
            out.push(c.unwrap_or('&'));
            rest = &rest[if c.is_some() { end + 1 } else { 1 }..];
        }
        out.push_str(rest);
        out
    }

    #[test]
    fn errors() {
        let body = error_body("NoSuchKey", "a < b", "/b/k&k", Some("eu-west-1"));
        let body = String::from_utf8(body).unwrap();
        let all: Vec<&str> = element_texts(&body, "Message").collect();
        assert_eq!(all, ["a &lt; b"]);
        assert_eq!(element_texts(&body, "Region").next(), Some("eu-west-1"));
        assert_eq!(element_texts(&body, "Resource").next().map(unescape), Some("/b/k&k".into()));
    }

    proptest::proptest! {
        #[test]
        fn what_is_escaped_comes_back(text: String) {
            let mut escaped = Vec::new();
            push_escaped(text.as_bytes(), &mut escaped);
            let escaped = String::from_utf8(escaped).unwrap();
            proptest::prop_assert!(!escaped.contains(['<', '>', '"', '\n']));
            proptest::prop_assert_eq!(unescape(&escaped), text);
        }

        #[test]
        fn any_text_is_unescaped(text: String) {
            proptest::prop_assert!(unescape(&text).len() <= text.len());
        }

        #[test]
        fn what_is_encoded_comes_back(text: Vec<u8>) {
            proptest::prop_assert_eq!(percent::decode(encoded(&text).as_bytes(), true), text);
        }
    }
}
