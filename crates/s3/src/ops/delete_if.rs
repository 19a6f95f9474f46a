//! DeleteObject with a condition.

use super::head::head_object;
use crate::header::quoted;
use crate::{Client, Error, Kind, Request};
use http::Method;
use http::header::IF_MATCH;

/// Deletes an object if its ETag (without quotes) is unchanged (API reference, DeleteObject, `If-Match`). A
/// missing object, or one deleted by an earlier attempt of this request, is not an error. Servers without support
/// reject the condition or ignore it, so a caller that depends on it must check first.
///
/// # Errors
/// `Precondition` if the object has changed; `NotImplemented`; those of the request.
pub async fn delete_object_if(
    client: &Client,
    bucket: &str,
    key: &[u8],
    etag: &str,
) -> Result<(), Error> {
    const OPERATION: &str = "DeleteObject";
    let request = Request::new(OPERATION, Method::DELETE, Some(bucket))
        .key(key)
        .header(IF_MATCH, quoted(OPERATION, etag)?);
    match client.send(&request).await {
        Err(error) if error.code == "NoSuchKey" => Ok(()),
        Err(error) if error.kind == Kind::Precondition && error.unsure => {
            match head_object(client, bucket, key, None).await {
                Err(gone) if gone.kind == Kind::NotFound => Ok(()),
                _ => Err(error),
            }
        }
        result => result.map(|_| ()),
    }
}
