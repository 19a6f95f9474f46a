//! S3 operation of a request by method, path and query (Amazon S3 API reference, path-style addresses).

/// Declares the operations with their names.
macro_rules! operations {
    ($($name:ident)*) => {
        /// An S3 operation, or `Other` for all that these servers do not distinguish.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are those of the Amazon S3 API reference")]
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
        let (bucket, key) = split(path);
        let has = |name: &str| parameter(query, name).is_some();
        if !query.is_empty() && PROPERTIES.iter().any(|name| has(name)) {
            return Other;
        }
        match method {
            "GET" if bucket.is_empty() => ListBuckets,
            _ if bucket.is_empty() => Other,
            "GET" if key.is_empty() && has("location") => GetBucketLocation,
            "GET" if key.is_empty() && has("uploads") => ListMultipartUploads,
            "GET" if key.is_empty() && has("versions") => ListObjectVersions,
            "GET" if key.is_empty() && parameter(query, "list-type") == Some("2") => ListObjectsV2,
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
pub fn split(path: &str) -> (&str, &str) {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split_once('/').unwrap_or((path, ""))
}

/// Value of a query parameter as sent; empty if it has none.
pub fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
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
}
