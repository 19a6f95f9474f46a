//! DeleteObject under a condition.

use crate::s3::{Client, Error, Kind, Request};
use http::header::IF_MATCH;
use http::{HeaderValue, Method};

/// Deletes one object if its ETag (without quotes) is still this one (API reference, DeleteObject,
/// `If-Match`). Servers that do not know the condition refuse it or delete in any case: whoever
/// depends on it has looked before.
///
/// # Errors
/// `Precondition` where it is another object by now; `NotImplemented`; the request's.
pub async fn delete_object_if(
    client: &Client,
    bucket: &str,
    key: &[u8],
    etag: &str,
) -> Result<(), Error> {
    const OPERATION: &str = "DeleteObject";
    let value = HeaderValue::try_from(format!("\"{etag}\""))
        .map_err(|_| Error::new(Kind::Corrupt, OPERATION, "the ETag cannot be sent back"))?;
    let request = Request::new(OPERATION, Method::DELETE, Some(bucket)).key(key);
    client.send(&request.header(IF_MATCH, value)).await.map(|_| ())
}
