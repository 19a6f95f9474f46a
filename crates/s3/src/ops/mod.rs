//! Operations, one per file: typed functions that build a [`Request`](super::Request) and parse the response.

mod bucket;
mod delete;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod get;
mod listing;
mod multipart;
mod put;
mod versions;

pub use bucket::{
    Bucket, Versioning, create_bucket, delete_bucket, get_versioning, head_bucket, list_buckets,
    put_versioning,
};
pub use delete::{
    DeleteResult, ObjectId, delete_alone, delete_object, delete_object_if, delete_objects,
};
pub use get::{GetOptions, ObjectHead, Range, get_object, get_tags, head_object, head_of};
pub use listing::{Etag, ListPage, ListQuery, ListedObject, ObjectPages, list_objects};
pub use multipart::{
    CreatedUpload, Part, Upload, abort_upload, complete_upload, create_upload, list_parts,
    list_uploads, upload_part,
};
pub use put::{CopySource, PutResult, copy_object, put_object, upload_part_copy};
pub use versions::{ObjectVersion, VersionPage, VersionPages, VersionQuery};

use get::date_s;

use crate::response::unexpected_document;
use crate::xml::{Node, walk};
use crate::{Client, Error, ErrorKind, Request, Response};
use http::{HeaderName, HeaderValue};

/// Headers of an upload (or of the target of a copy): `Content-Type`, `x-amz-storage-class`, `x-amz-meta-*`,
/// `x-amz-acl`, `x-amz-tagging`, `If-None-Match` …
pub type Headers = Vec<(HeaderName, HeaderValue)>;

/// Parses the document of a successful response; an error document becomes an error.
fn read(
    operation: &'static str,
    response: &Response,
    root: &[u8],
    visit: impl FnMut(Node<'_>),
) -> Result<(), Error> {
    walk(&response.body, root, visit)
        .map_err(|wrong| unexpected_document(operation, response, wrong))
}

/// Sends a request whose 2xx response may contain an error, and retries in that case as well.
async fn send_and_read<T>(
    client: &Client,
    request: &Request,
    read: impl Fn(&Response) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut tries = 1;
    loop {
        let response = client.send(request).await?;
        match read(&response) {
            Ok(result) => return Ok(result),
            Err(error) => {
                let error = Error { tries, ..error };
                if !error.is_transient() || !client.may_retry(tries, &error).await {
                    return Err(error);
                }
                tries += 1;
            }
        }
    }
}

/// Text of a leaf, with invalid UTF-8 replaced.
fn string(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Adds a query parameter with (a part of) a key, unless it is empty. It must be UTF-8, as S3 requires of keys.
fn query_key(request: Request, name: &'static str, bytes: &[u8]) -> Result<Request, Error> {
    match std::str::from_utf8(bytes) {
        Ok("") => Ok(request),
        Ok(text) => Ok(request.query(name, text)),
        Err(_) => {
            let what = format!("'{}' is not UTF-8, as keys of S3 are", string(bytes));
            Err(Error::new(ErrorKind::Invalid, request.operation, what))
        }
    }
}
