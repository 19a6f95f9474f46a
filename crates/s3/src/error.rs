//! Errors of requests: AWS's error codes mapped to few kinds, with one clear sentence.

use crate::xml::{Node, walk};
use http::HeaderMap;
use std::fmt;

/// Kind of failure, by its consequences for the run and for retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The bucket does not exist. Stops the run.
    NoSuchBucket,
    /// The key (or version, or upload) does not exist.
    NotFound,
    /// Permission denied.
    AccessDenied,
    /// Missing, wrong or expired credentials. Stops the run.
    Credentials,
    /// The bucket is in another region, and following the redirect did not help. Stops the run.
    Region,
    /// A condition (`If-None-Match`, `If-Match`) failed, or the object changed meanwhile.
    Precondition,
    /// Throttled: 503, 429.
    Throttled,
    /// Server failure: 500, 502, 504.
    Server,
    /// Connection failed or broke.
    Connection,
    /// No progress for too long.
    TimedOut,
    /// Received data differ from sent data: checksum or length.
    Corrupt,
    /// The server does not support this operation or header.
    NotImplemented,
    /// Invalid request: bad name, entity too large, invalid part.
    Invalid,
    /// Unusable settings: endpoint, certificates, profile. Stops the run.
    Settings,
    /// The run was asked to stop.
    Stopped,
}

/// Code of the error for an object in an archive.
const ARCHIVED: &str = "InvalidObjectState";

/// A failed request, after its attempts.
#[derive(Clone, Debug)]
pub struct Error {
    pub kind: ErrorKind,
    /// Operation in AWS's terms (`PutObject`).
    pub operation: &'static str,
    /// HTTP status; 0 without a response.
    pub status: u16,
    /// AWS's error code (`NoSuchBucket`), or empty.
    pub code: String,
    /// Message of the server or ours: the problem, and the remedy if known.
    pub message: String,
    /// Number of attempts.
    pub tries: u32,
    /// Region of the bucket, if a server named another one.
    pub region: Option<String>,
    /// True if an earlier attempt of the request may have been executed: no response, or no valid one, was
    /// received. A failed condition may be a consequence.
    pub unsure: bool,
}

impl Error {
    /// Returns whether the object is in an archive (Glacier) and has to be restored before it is read.
    pub fn is_archived(&self) -> bool {
        self.code == ARCHIVED
    }

    /// Creates an error that does not come from a response.
    pub fn new(kind: ErrorKind, operation: &'static str, message: impl Into<String>) -> Error {
        let (code, message) = (String::new(), message.into());
        Error { kind, operation, status: 0, code, message, tries: 1, region: None, unsure: false }
    }

    /// True if the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        use ErrorKind::{Connection, Corrupt, Server, Throttled, TimedOut};
        matches!(self.kind, Throttled | Server | Connection | TimedOut | Corrupt)
    }

    /// True if fresh credentials may help.
    pub fn is_expired_token(&self) -> bool {
        matches!(
            self.code.as_str(),
            "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" | "RequestExpired"
        )
    }

    /// True if the server considers our clock wrong, so that signing with its `Date` helps.
    pub fn is_clock_skew(&self) -> bool {
        matches!(self.code.as_str(), "RequestTimeTooSkewed" | "RequestInTheFuture")
    }

    /// True if the server supports the operation but not its checksum.
    pub(crate) fn is_unknown_checksum(&self) -> bool {
        let words = self.message.to_ascii_lowercase();
        let invalid = matches!(self.kind, ErrorKind::NotImplemented | ErrorKind::Invalid);
        let names = ["checksum", "crc64nvme", "not implemented"];
        invalid && (self.status == 501 || names.iter().any(|name| words.contains(name)))
    }

    /// True if all other requests would fail in the same way, so that the run should stop.
    pub fn stops_run(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::NoSuchBucket
                | ErrorKind::Credentials
                | ErrorKind::Region
                | ErrorKind::Settings
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match (self.status, self.code.as_str()) {
            (0, _) => Ok(()),
            (status, "") => write!(f, " (HTTP {status})"),
            (status, code) => write!(f, " ({code}, HTTP {status})"),
        }
    }
}

impl std::error::Error for Error {}

/// Fields of an error document; empty if missing.
#[derive(Default)]
struct ErrorDocument {
    code: String,
    message: String,
    bucket: String,
    key: String,
    region: String,
}

impl Error {
    /// Error of an unsuccessful response. `body` may be empty (HEAD), HTML of a proxy, or anything else.
    pub(crate) fn from_response(
        operation: &'static str,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Error {
        let mut document = document(body);
        if let Some(region) = headers.get("x-amz-bucket-region").and_then(|v| v.to_str().ok()) {
            document.region = region.to_owned();
        }
        let (kind, sentence) = meaning(&document.code)
            .or_else(|| by_operation(operation, status, &document))
            .unwrap_or_else(|| of_status(status));
        let message = sentence_of(kind, sentence, &document);
        let told_region = !document.region.is_empty() && kind == ErrorKind::Region;
        let region = told_region.then_some(document.region);
        Error { status, code: document.code, region, ..Error::new(kind, operation, message) }
    }

    /// Error for one key of a successful request (DeleteObjects).
    pub(crate) fn of_code(operation: &'static str, code: &str, message: &[u8]) -> Error {
        let document = ErrorDocument { message: one_line(message), ..ErrorDocument::default() };
        let (kind, sentence) = meaning(code).unwrap_or((ErrorKind::Server, ""));
        let message = sentence_of(kind, sentence, &document);
        Error { code: code.to_owned(), ..Error::new(kind, operation, message) }
    }
}

fn document(body: &[u8]) -> ErrorDocument {
    let mut document = ErrorDocument::default();
    // A truncated document still provides its first fields.
    let _ = walk(body, b"Error", |node| {
        let Node::Leaf { parent: b"Error", name, text } = node else { return };
        let field = match name {
            b"Code" => &mut document.code,
            b"Message" => &mut document.message,
            b"BucketName" => &mut document.bucket,
            b"Key" => &mut document.key,
            b"Region" => &mut document.region,
            _ => return,
        };
        *field = one_line(text);
    });
    document
}

/// Makes the server's message printable: one line of bounded length without control characters.
fn one_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let mut line = String::new();
    for word in words.filter(|word| !word.is_empty()) {
        if line.chars().count() + word.chars().count() > 400 {
            line.push_str(" …");
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Inserts names into a sentence, and appends the server's message if it adds information.
fn sentence_of(kind: ErrorKind, sentence: &str, document: &ErrorDocument) -> String {
    match (kind, document.bucket.as_str(), document.key.as_str()) {
        (ErrorKind::NoSuchBucket, bucket, _) if !bucket.is_empty() => {
            return format!("no such bucket '{bucket}'; check its name and the endpoint");
        }
        (ErrorKind::NotFound, _, key) if !key.is_empty() && document.code == "NoSuchKey" => {
            return format!("no such object '{key}'");
        }
        (ErrorKind::Region, ..) if !document.region.is_empty() => {
            return format!("the bucket is in another region (--region {})", document.region);
        }
        _ => {}
    }
    match (sentence, document.message.as_str()) {
        ("", "") => "the server refused the request without a reason".to_owned(),
        ("", words) => words.to_owned(),
        (sentence, "") => sentence.to_owned(),
        (_, "Signature is required") => "anonymous access is not allowed".to_owned(),
        (sentence, words) if says_more(kind, &document.code) && !repeats(sentence, words) => {
            format!("{sentence} (server: {})", words.trim_end_matches('.'))
        }
        (sentence, _) => sentence.to_owned(),
    }
}

/// Returns whether the server's words add something: the code alone does not name the problem.
fn says_more(kind: ErrorKind, code: &str) -> bool {
    match kind {
        ErrorKind::AccessDenied | ErrorKind::NotImplemented | ErrorKind::Server => true,
        ErrorKind::Invalid => meaning(code).is_none(),
        _ => false,
    }
}

/// Returns whether words say no more than a sentence.
fn repeats(sentence: &str, words: &str) -> bool {
    let letters = |text: &str| text.trim_end_matches('.').to_ascii_lowercase();
    letters(sentence).starts_with(&letters(words))
}

/// Makes a function of rows: kind, codes, and the sentence that explains them.
macro_rules! meanings {
    ($($kind:ident: $($code:pat_param)|+ => $sentence:literal;)*) => {
        /// Kind and sentence of a code.
        fn meaning(code: &str) -> Option<(ErrorKind, &'static str)> {
            match code {
                $($($code)|+ => Some((ErrorKind::$kind, $sentence)),)*
                _ => None,
            }
        }
    };
}

meanings! {
    NoSuchBucket: "NoSuchBucket" => "no such bucket; check its name";
    NotFound: "NoSuchKey" => "no such object";
    NotFound: "NoSuchVersion" => "no such version of the object";
    NotFound: "NoSuchUpload" =>
        "no such upload; it was completed, aborted, or removed by a lifecycle rule";
    AccessDenied: "AccessDenied" | "AllAccessDisabled" | "AccountProblem" | "UnauthorizedAccess" =>
        "access denied";
    AccessDenied: "Forbidden" => "access denied";
    AccessDenied: ARCHIVED =>
        "the object is archived (Glacier); restore it first";

    // Credentials, clocks and regions. The second code is versitygw's.
    Credentials: "InvalidAccessKeyId" | "XAdminUserNotFound" =>
        "access denied, unknown access key; check the credentials, profile and endpoint";
    Credentials: "SignatureDoesNotMatch" =>
        "wrong secret key; check the credentials (or a proxy changed the request)";
    Credentials: "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" | "RequestExpired" =>
        "the credentials have expired; log in again or renew them";
    Credentials: "InvalidToken" =>
        "invalid session token; unset AWS_SESSION_TOKEN or renew it";
    Credentials: "RequestTimeTooSkewed" | "RequestInTheFuture" =>
        "the clock of this machine differs from the server's by more than 15 minutes; set it";
    Credentials: "CredentialsNotSupported" | "InvalidSecurity" | "NotSignedUp" =>
        "access denied, unknown access key; check the credentials, profile and endpoint";
    Region: "AuthorizationHeaderMalformed" | "AuthorizationQueryParametersError" =>
        "the request was signed for another region than the bucket's; set --region";
    Region: "PermanentRedirect" | "TemporaryRedirect" | "Redirect" | "301" | "307" =>
        "the bucket is in another region; set --region or --endpoint-url";
    Region: "IllegalLocationConstraintException" | "InvalidRegionName" =>
        "the endpoint is in another region; set --region";

    // Temporary failures.
    Throttled: "SlowDown" | "ServiceUnavailable" | "TooManyRequests" | "Throttling" | "ThrottlingException"
        | "RequestLimitExceeded" | "BandwidthLimitExceeded" | "ServerBusy" | "503 SlowDown" =>
        "the server throttles requests; use fewer --jobs or try later";
    TimedOut: "RequestTimeout" => "the server timed out waiting for the request body";
    Server: "InternalError" | "InternalServerError" | "InternalFailure" => "internal server error";
    Corrupt: "BadDigest" | "XAmzContentSHA256Mismatch" | "XAmzContentChecksumMismatch" | "IncompleteBody" =>
        "the body arrived damaged (checksum or length)";
    Precondition: "PreconditionFailed" | "NotModified" =>
        "the object does not meet the condition";
    Precondition: "ConditionalRequestConflict" | "OperationAborted" =>
        "another request changed the same object or bucket at the same time; try again";
    Precondition: "InvalidRange" => "the object is shorter than it was when it was listed";

    // The request itself.
    NotImplemented: "NotImplemented" => "the server does not support this operation";
    Invalid: "InvalidPart" | "InvalidPartOrder" =>
        "a part of the upload is missing or differs from what was sent";
    Invalid: "EntityTooLarge" => "the object is too large for this operation";
    Invalid: "EntityTooSmall" => "a part is too small; use a larger --part-size";
    Invalid: "BucketAlreadyExists" =>
        "it already exists and belongs to another account";
    Invalid: "BucketAlreadyOwnedByYou" => "it already exists";
    Invalid: "BucketNotEmpty" => "the bucket is not empty";
    Invalid: "InvalidBucketName" =>
        "invalid bucket name (3 to 63 lower-case letters, digits, dots and hyphens)";
    Invalid: "TooManyBuckets" => "the account has reached its limit of buckets";
    Invalid: "KeyTooLongError" | "KeyTooLong" => "the key is too long (at most 1,024 bytes)";
    Invalid: "InvalidURI" =>
        "the server does not accept the key (S3 keys are UTF-8)";
    Invalid: "MetadataTooLarge" => "the metadata is too large (at most 2 KB)";
    Invalid: "QuotaExceeded" | "XMinioStorageFull" | "InsufficientStorage" | "StorageFull"
        | "ServiceQuotaExceededException" =>
        "the server is full, or the quota of the account is used up";
    Invalid: "InvalidStorageClass" => "unknown storage class";
    Invalid: "MethodNotAllowed" =>
        "the server does not allow this on the object (a delete marker?)";
    Invalid: "InvalidDigest" => "the server cannot parse the checksum";
}

/// Responses to HEAD have no body, so that the operation determines what was not found.
fn by_operation(
    operation: &str,
    status: u16,
    document: &ErrorDocument,
) -> Option<(ErrorKind, &'static str)> {
    let of_bucket =
        matches!(operation, "HeadBucket" | "ListObjects" | "ListObjectsV2" | "DeleteBucket");
    match status {
        404 if document.code.is_empty() && of_bucket => {
            Some((ErrorKind::NoSuchBucket, "no such bucket; check its name and the endpoint"))
        }
        400 if document.code.is_empty() && operation.starts_with("Head") => Some((
            ErrorKind::Invalid,
            "the server gave no reason; an expired token, a wrong region or a wrong --sse-c-key are \
             common ones",
        )),
        _ => None,
    }
}

/// Kind and sentence of a status without a known code. With an empty sentence the server's message is used.
fn of_status(status: u16) -> (ErrorKind, &'static str) {
    match status {
        301 | 307 | 308 => (ErrorKind::Region, "the bucket is in another region; set --region"),
        304 | 412 => (ErrorKind::Precondition, "the object does not meet the condition"),
        401 => (ErrorKind::Credentials, "the server requires other credentials"),
        403 => (ErrorKind::AccessDenied, "access denied"),
        404 => (ErrorKind::NotFound, "no such object"),
        408 => (ErrorKind::TimedOut, "the server timed out waiting for the request"),
        409 => (ErrorKind::Precondition, "another request is changing the same object"),
        416 => (ErrorKind::Precondition, "the object is shorter than it was when it was listed"),
        429 | 503 => (ErrorKind::Throttled, "the server throttles requests"),
        501 | 505 => (ErrorKind::NotImplemented, "the server does not support this operation"),
        507 => (ErrorKind::Invalid, "the server is full"),
        500..=599 => (ErrorKind::Server, "internal server error"),
        200..=299 => (ErrorKind::Server, "the server reported an error in a successful response"),
        _ => (ErrorKind::Invalid, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn error(status: u16, code: &str, rest: &str) -> Error {
        let body = format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code>{rest}</Error>");
        Error::from_response("PutObject", status, &HeaderMap::new(), body.as_bytes())
    }

    #[test]
    fn codes_say_more_than_statuses() {
        let table = [
            (404, "NoSuchBucket", ErrorKind::NoSuchBucket),
            (404, "NoSuchUpload", ErrorKind::NotFound),
            (403, "AccessDenied", ErrorKind::AccessDenied),
            (403, "InvalidAccessKeyId", ErrorKind::Credentials),
            (400, "ExpiredToken", ErrorKind::Credentials),
            (400, "AuthorizationHeaderMalformed", ErrorKind::Region),
            (503, "SlowDown", ErrorKind::Throttled),
            (200, "InternalError", ErrorKind::Server),
            (400, "RequestTimeout", ErrorKind::TimedOut),
            (400, "BadDigest", ErrorKind::Corrupt),
            (409, "BucketNotEmpty", ErrorKind::Invalid),
            (409, "ConditionalRequestConflict", ErrorKind::Precondition),
            (403, "InvalidObjectState", ErrorKind::AccessDenied),
            (501, "NotImplemented", ErrorKind::NotImplemented),
            (400, "SomethingNew", ErrorKind::Invalid),
            (418, "SomethingNew", ErrorKind::Invalid),
        ];
        for (status, code, kind) in table {
            let error = error(status, code, "");
            assert_eq!((error.kind, error.status, error.code.as_str()), (kind, status, code));
            assert_eq!(error.is_archived(), code == "InvalidObjectState");
            assert!(!error.message.is_empty(), "{code}");
        }
    }

    #[test]
    fn names_and_words_of_the_server_are_used() {
        let shown = error(404, "NoSuchBucket", "<BucketName>b-1</BucketName>").to_string();
        let expected = "no such bucket 'b-1'; check its name and the endpoint";
        assert_eq!(shown, format!("{expected} (NoSuchBucket, HTTP 404)"));
        assert!(error(404, "NoSuchKey", "<Key>a&amp;b</Key>").message.contains("'a&b'"));
        let strange = error(400, "New", "<Message>a \x1b[31m\n\n b</Message>").message;
        assert_eq!(strange, "a [31m b");
        let long = error(400, "New", &format!("<Message>{}</Message>", "wörd ".repeat(999)));
        assert!(long.message.chars().count() < 410 && long.message.ends_with('…'));
    }

    #[test]
    fn a_failure_is_said_once() {
        for (status, code, words, expected) in [
            (409, "BucketAlreadyOwnedByYou", "You own it.", "it already exists"),
            (409, "BucketNotEmpty", "there are objects in it", "the bucket is not empty"),
            (403, "AccessDenied", "Access Denied", "access denied"),
            (403, "AccessDenied", "Signature is required", "anonymous access is not allowed"),
            (403, "AccessDenied", "no s3:GetObject.", "access denied (server: no s3:GetObject)"),
            (400, "SomethingNew", "a strange thing", "a strange thing"),
        ] {
            let found = error(status, code, &format!("<Message>{words}</Message>"));
            assert_eq!(found.to_string(), format!("{expected} ({code}, HTTP {status})"));
        }
    }

    #[test]
    fn a_region_is_told_by_header_or_document() {
        let by_document = error(400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>");
        assert_eq!(by_document.region.as_deref(), Some("eu-west-1"));
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-bucket-region", HeaderValue::from_static("eu-west-2"));
        let by_header = Error::from_response("HeadBucket", 301, &headers, b"");
        assert_eq!(
            (by_header.kind, by_header.region.as_deref()),
            (ErrorKind::Region, Some("eu-west-2"))
        );
        let other = Error::from_response("HeadObject", 404, &headers, b"");
        assert_eq!((other.kind, other.region), (ErrorKind::NotFound, None));
    }

    #[test]
    fn answers_without_a_document_are_judged_by_status() {
        let of = |operation, status, body: &str| {
            Error::from_response(operation, status, &HeaderMap::new(), body.as_bytes()).kind
        };
        assert_eq!(of("HeadObject", 404, ""), ErrorKind::NotFound);
        assert_eq!(of("HeadBucket", 404, ""), ErrorKind::NoSuchBucket);
        assert_eq!(of("HeadObject", 403, ""), ErrorKind::AccessDenied);
        assert_eq!(of("GetObject", 502, "<html><br>bad gateway</html>"), ErrorKind::Server);
        assert_eq!(of("GetObject", 503, "busy"), ErrorKind::Throttled);
        assert_eq!(of("GetObject", 200, "<Error><Code>SlowDown</Code>"), ErrorKind::Throttled);
    }

    #[test]
    fn expired_wrong_and_skewed_are_told_apart() {
        let expired = error(400, "ExpiredToken", "");
        assert!(expired.is_expired_token() && !expired.is_clock_skew());
        assert!(!error(403, "InvalidAccessKeyId", "").is_expired_token());
        assert!(error(403, "RequestTimeTooSkewed", "").is_clock_skew());
        assert!(error(503, "SlowDown", "").is_transient());
        assert!(!error(403, "AccessDenied", "").is_transient());
    }
}
