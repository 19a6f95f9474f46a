//! Table of valid responses, one row per operation: statuses of success, required headers and fields (Amazon
//! S3 API Reference, "Actions"). A response that violates its row is not a success, regardless of its status: it
//! is retried like a damaged response, and finally becomes an error.
//!
//! Parts of a response that depend on the request (range, ETag, named keys) are checked in `ops`.

use crate::header::{is_checksum, is_checksum_element, unquoted};
use crate::time::parse_http;
use crate::xml::{Node, XmlError, walk};
use crate::{Error, ErrorKind, Request, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// A valid response to an operation.
#[derive(Debug)]
pub(crate) struct Rule {
    pub operation: &'static str,
    /// Statuses of success.
    pub statuses: &'static [u16],
    /// Required headers with their formats.
    pub headers: &'static [(&'static str, Form)],
    pub body: Body,
}

/// Format of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A non-empty ETag.
    Etag,
    /// A whole number of bytes.
    Number,
    /// An HTTP date.
    Date,
}

/// Format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Ignored. Some servers send an error document with a status of success.
    Unused,
    /// A document with this root and these non-empty elements.
    Document(&'static str, &'static [&'static str]),
    /// A page of a listing, parsed and checked by `ops` in one pass.
    Page,
    /// Object content; `ops::get` checks its length.
    Content,
}

const OBJECT: &[(&str, Form)] =
    &[("etag", Form::Etag), ("last-modified", Form::Date), ("content-length", Form::Number)];
const CONTENT: &[(&str, Form)] = &[("etag", Form::Etag), ("last-modified", Form::Date)];
const STORED: &[(&str, Form)] = &[("etag", Form::Etag)];
/// AWS returns 204; other servers return 200 with an empty body.
const GONE: &[u16] = &[204, 200];

const fn rule(
    operation: &'static str,
    statuses: &'static [u16],
    headers: &'static [(&'static str, Form)],
    body: Body,
) -> Rule {
    Rule { operation, statuses, headers, body }
}

/// One row for each operation that is sent.
pub(crate) const RULES: &[Rule] = &[
    // 206 only for a requested range.
    rule("GetObject", &[200, 206], CONTENT, Body::Content),
    rule("PutObject", &[200], STORED, Body::Unused),
    rule("HeadObject", &[200], OBJECT, Body::Unused),
    rule("UploadPart", &[200], STORED, Body::Unused),
    rule("ListObjects", &[200], &[], Body::Page),
    rule("ListObjectsV2", &[200], &[], Body::Page),
    rule("ListObjectVersions", &[200], &[], Body::Page),
    rule("DeleteObject", GONE, &[], Body::Unused),
    rule("DeleteObjects", &[200], &[], Body::Document("DeleteResult", &[])),
    rule("CopyObject", &[200], &[], Body::Document("CopyObjectResult", &["ETag"])),
    rule("UploadPartCopy", &[200], &[], Body::Document("CopyPartResult", &["ETag"])),
    rule(
        "CreateMultipartUpload",
        &[200],
        &[],
        Body::Document("InitiateMultipartUploadResult", &["UploadId"]),
    ),
    rule(
        "CompleteMultipartUpload",
        &[200],
        &[],
        Body::Document("CompleteMultipartUploadResult", &["ETag"]),
    ),
    rule("AbortMultipartUpload", GONE, &[], Body::Unused),
    rule("GetObjectTagging", &[200], &[], Body::Document("Tagging", &[])),
    rule("ListParts", &[200], &[], Body::Page),
    rule("ListMultipartUploads", &[200], &[], Body::Page),
    rule("ListBuckets", &[200], &[], Body::Page),
    rule("HeadBucket", &[200], &[], Body::Unused),
    rule("CreateBucket", &[200], &[], Body::Unused),
    rule("GetBucketVersioning", &[200], &[], Body::Document("VersioningConfiguration", &[])),
    rule("PutBucketVersioning", &[200], &[], Body::Unused),
    rule("DeleteBucket", GONE, &[], Body::Unused),
];

/// Checks status and headers of a 2xx response.
///
/// # Errors
/// `Corrupt`.
pub(crate) fn check_head(
    operation: &'static str,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<(), Error> {
    let rule = rule_of(operation)?;
    let violation = |what| Err(violation(operation, status, what));
    if !rule.statuses.contains(&status.as_u16()) {
        let usual = rule.statuses.first().copied().unwrap_or(200);
        return violation(format!("the response to {operation} has status {status}, not {usual}"));
    }
    for (name, form) in rule.headers {
        let Some(value) = headers.get(*name) else {
            return violation(format!("the response to {operation} has no {}", spelt(name)));
        };
        if !form.fits(value) {
            return violation(format!(
                "the response to {operation} has an unreadable {}",
                spelt(name)
            ));
        }
    }
    // Ignoring an unreadable checksum would leave the content unchecked.
    let mut checksums = headers.iter().filter(|_| !rule.headers.is_empty());
    match checksums.find(|(name, value)| is_checksum(name, value) == Some(false)) {
        Some((name, _)) => {
            violation(format!("the response to {operation} has an unreadable {name}"))
        }
        None => Ok(()),
    }
}

/// Checks a whole 2xx response.
///
/// # Errors
/// `Corrupt`; the error in the body if it is an error document.
pub(crate) fn check(operation: &'static str, response: &Response) -> Result<(), Error> {
    let Response { status, headers, body } = response;
    let rule = rule_of(operation)?;
    let wrong = match rule.body {
        Body::Document(root, fields) => fields_of(body, root, fields),
        _ => match root_of(body) {
            Some(root) if root == "Error" => Err(XmlError::Root(root)),
            _ => Ok(()),
        },
    };
    // An error document is more specific than a missing header.
    match wrong {
        Err(wrong @ XmlError::Root(_)) => Err(unexpected_document(operation, response, wrong)),
        wrong => {
            check_head(operation, *status, headers)?;
            wrong.map_err(|wrong| unexpected_document(operation, response, wrong))
        }
    }
}

/// Error for a document with an unexpected root; an error document becomes the error it describes.
pub(crate) fn unexpected_document(
    operation: &'static str,
    response: &Response,
    wrong: XmlError,
) -> Error {
    let Response { status, headers, body } = response;
    let what = match wrong {
        XmlError::Root(name) if name == "Error" => {
            return Error::from_response(operation, status.as_u16(), headers, body);
        }
        XmlError::Root(name) => {
            format!("the response to {operation} is an unexpected <{name}>")
        }
        XmlError::Malformed(why) => {
            format!("the response to {operation} cannot be read: {why}")
        }
    };
    violation(operation, *status, what)
}

/// Error of a refused request. A failed condition that was not part of the request makes the response
/// untrustworthy.
pub(crate) fn refusal(request: &Request, error: Error) -> Error {
    let conditions =
        [header::IF_MATCH, header::IF_NONE_MATCH, header::HeaderName::from_static(COPY_IF_MATCH)];
    let conditional = request.headers.iter().any(|(name, _)| conditions.contains(name));
    let reading = matches!(request.method, http::Method::GET | http::Method::HEAD);
    let message = match error.status {
        304 if !conditional || !reading => "the response 'not modified' does not fit the request",
        412 if !conditional => "the server says that a condition failed, but none was set",
        _ => return error,
    };
    Error { kind: ErrorKind::Invalid, message: message.to_owned(), ..error }
}

const COPY_IF_MATCH: &str = "x-amz-copy-source-if-match";

fn rule_of(operation: &'static str) -> Result<&'static Rule, Error> {
    let found = RULES.iter().find(|rule| rule.operation == operation);
    found.ok_or_else(|| {
        let what = "it is not known what a good response to this operation is";
        Error::new(ErrorKind::Invalid, operation, what)
    })
}

fn violation(operation: &'static str, status: StatusCode, what: String) -> Error {
    Error { status: status.as_u16(), ..Error::new(ErrorKind::Corrupt, operation, what) }
}

impl Form {
    fn fits(self, value: &HeaderValue) -> bool {
        let Ok(text) = value.to_str() else { return false };
        match self {
            Form::Etag => !unquoted(text).is_empty(),
            Form::Number => text.trim().parse::<u64>().is_ok(),
            Form::Date => parse_http(text).is_some(),
        }
    }
}

/// Usual spelling of a header.
fn spelt(name: &str) -> &str {
    match name {
        "etag" => "ETag",
        "last-modified" => "Last-Modified",
        "content-length" => "Content-Length",
        name => name,
    }
}

/// Root element of a document, even if truncated.
fn root_of(body: &[u8]) -> Option<String> {
    let is_document = body.trim_ascii_start().starts_with(b"<");
    // No element has this name, so the error names the first element.
    match is_document.then(|| walk(body, b"\0", |_| {}))? {
        Err(XmlError::Root(root)) => Some(root),
        _ => None,
    }
}

/// Finds non-empty elements of a root, and checksums beside them.
fn fields_of(body: &[u8], root: &str, fields: &[&str]) -> Result<(), XmlError> {
    let mut found = vec![false; fields.len()];
    let mut garbled = None;
    walk(body, root.as_bytes(), |node| {
        let Node::Leaf { parent, name, text } = node else { return };
        if parent != root.as_bytes() {
            return;
        }
        if let Some(at) = fields.iter().position(|field| field.as_bytes() == name) {
            found[at] |= !text.trim_ascii().is_empty();
        } else if is_checksum_element(name, text) == Some(false) {
            garbled = Some(String::from_utf8_lossy(name).into_owned());
        }
    })?;
    if let Some(name) = garbled {
        return Err(XmlError::Malformed(format!("its {name} is not a checksum")));
    }
    match fields.iter().zip(&found).find(|(_, found)| !**found) {
        None => Ok(()),
        Some((field, _)) => Err(XmlError::Malformed(format!("it has no {field}"))),
    }
}

#[cfg(test)]
mod tests;
