//! The operations, one file each: a typed function that builds a [`Request`](super::Request) and
//! reads the answer.

mod bucket;
mod copy;
mod delete;
mod delete_if;
mod etag;
mod get;
mod head;
mod list;
mod multipart;
mod put;
mod tagging;
mod uploads;

pub use bucket::{Bucket, create_bucket, delete_bucket, head_bucket, list_buckets};
pub use copy::{Copied, CopySource, copy_object, upload_part_copy};
pub use delete::{Deleted, delete_object, delete_objects};
pub use delete_if::delete_object_if;
pub use etag::Etag;
pub use get::{Range, get_object};
pub use head::{Head, head_object, head_of};
pub use list::{ListPage, ListQuery, Listed, list_objects};
pub use multipart::{Begun, Part, abort_upload, complete_upload, create_upload, upload_part};
pub use put::{Put, put_object};
pub use tagging::get_tags;
pub use uploads::{Upload, list_parts, list_uploads};

use super::xml::{Node, Wrong, walk};
use super::{Client, Error, Kind, Reply, Request};
use http::{HeaderName, HeaderValue};

/// Headers that an upload (or the target of a copy) carries beside its body: `Content-Type`,
/// `x-amz-storage-class`, `x-amz-meta-*`, `x-amz-acl`, `x-amz-tagging`, `If-None-Match` …
pub type Headers = Vec<(HeaderName, HeaderValue)>;

/// Reads the document of a successful answer; an error document in it is an error like others.
fn read(
    operation: &'static str,
    reply: &Reply,
    root: &[u8],
    visit: impl FnMut(Node<'_>),
) -> Result<(), Error> {
    let wrong = match walk(&reply.body, root, visit) {
        Ok(()) => return Ok(()),
        Err(wrong) => wrong,
    };
    let message = match wrong {
        Wrong::Root(name) if name == "Error" => {
            let status = reply.status.as_u16();
            return Err(Error::from_reply(operation, status, &reply.headers, &reply.body, 1));
        }
        Wrong::Root(name) => {
            let expected = String::from_utf8_lossy(root);
            format!("the server answered with <{name}> instead of <{expected}>")
        }
        Wrong::Malformed(why) => format!("the server's answer cannot be read: {why}"),
    };
    let status = reply.status.as_u16();
    Err(Error { status, ..Error::new(Kind::Corrupt, operation, message) })
}

/// Sends a request whose success may turn out to be an error only when its answer is read, and
/// tries again like any other.
async fn send_and_read<T>(
    client: &Client,
    request: &Request,
    read: impl Fn(&Reply) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut tries = 1;
    loop {
        let reply = client.send(request).await?;
        match read(&reply) {
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

/// Text of a leaf; what is not UTF-8 is replaced.
fn string(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// A number of a leaf; 0 for anything else.
fn number(text: &[u8]) -> u64 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// A query parameter that has to be UTF-8, as S3 wants it of keys.
fn utf8(operation: &'static str, bytes: &[u8]) -> Result<String, Error> {
    String::from_utf8(bytes.to_vec()).map_err(|_| {
        let name = String::from_utf8_lossy(bytes);
        Error::new(Kind::Invalid, operation, format!("'{name}' is not UTF-8, as keys of S3 are"))
    })
}
