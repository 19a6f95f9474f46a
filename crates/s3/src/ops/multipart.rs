//! Multipart uploads: create, upload parts, complete, abort.

mod complete;

pub use complete::complete_upload;

use super::put::{send_checked, with_checksum};
use super::{Headers, read, send_and_read, string};
use crate::header::plain;
use crate::xml::Node;
use crate::{Algorithm, Checksum, Client, Error, Kind, Reply, Request};
use bytes::Bytes;
use http::{HeaderName, Method};

const CHECKSUM_ALGORITHM: HeaderName = HeaderName::from_static("x-amz-checksum-algorithm");
const CHECKSUM_TYPE: HeaderName = HeaderName::from_static("x-amz-checksum-type");

/// An uploaded part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number from 1 to 10,000.
    pub number: u32,
    /// Size in bytes; 0 if unknown (copied part).
    pub size: u64,
    /// ETag without quotes.
    pub etag: String,
    /// Checksum, if computed or returned.
    pub checksum: Option<Checksum>,
}

/// A created upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Id.
    pub id: String,
    /// Algorithm that its parts and completion may use; `None` if none was requested or supported by the
    /// server.
    pub algorithm: Option<Algorithm>,
}

/// Creates an upload. The checksum type is FULL_OBJECT for CRC64NVME, else COMPOSITE. If the server does not
/// support the checksum, the request is repeated without it.
///
/// # Errors
/// Those of the request.
pub async fn create_upload(
    client: &Client,
    bucket: &str,
    key: &[u8],
    algorithm: Option<Algorithm>,
    headers: &Headers,
) -> Result<Begun, Error> {
    let algorithm = algorithm.filter(|algorithm| *algorithm != Algorithm::Md5);
    let request = create(bucket, key, algorithm, headers);
    match send_and_read(client, &request, id_of).await {
        Ok(id) => Ok(Begun { id, algorithm }),
        Err(error) if algorithm.is_some() && error.is_unknown_checksum() => {
            let request = create(bucket, key, None, headers);
            let id = send_and_read(client, &request, id_of).await?;
            Ok(Begun { id, algorithm: None })
        }
        Err(error) => Err(error),
    }
}

fn create(bucket: &str, key: &[u8], algorithm: Option<Algorithm>, headers: &Headers) -> Request {
    let mut request = Request::new("CreateMultipartUpload", Method::POST, Some(bucket))
        .key(key)
        .query("uploads", "");
    request.headers = headers.clone();
    let Some(algorithm) = algorithm else { return request };
    request
        .header(CHECKSUM_ALGORITHM, plain(algorithm.name()))
        .header(CHECKSUM_TYPE, plain(checksum_type(algorithm)))
}

/// Checksum type of a multipart object.
fn checksum_type(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Crc64Nvme => "FULL_OBJECT",
        _ => "COMPOSITE",
    }
}

fn id_of(reply: &Reply) -> Result<String, Error> {
    const NAME: &str = "CreateMultipartUpload";
    let mut id = String::new();
    read(NAME, reply, b"InitiateMultipartUploadResult", |node| {
        if let Node::Leaf { name: b"UploadId", text, .. } = node {
            id = string(text);
        }
    })?;
    match id.is_empty() {
        true => Err(Error::new(Kind::Corrupt, NAME, "the server began an upload without an id")),
        false => Ok(id),
    }
}

/// Uploads a part. `checksum` is of the upload's algorithm, or MD5.
///
/// # Errors
/// `NotFound` if the upload no longer exists; `Corrupt`; those of the request.
pub async fn upload_part(
    client: &Client,
    bucket: &str,
    key: &[u8],
    upload: &str,
    number: u32,
    body: Bytes,
    checksum: Option<&Checksum>,
) -> Result<Part, Error> {
    let size = body.len() as u64;
    let request = Request::new("UploadPart", Method::PUT, Some(bucket))
        .key(key)
        .query("partNumber", number.to_string())
        .query("uploadId", upload)
        .body(body);
    let request = with_checksum(request, checksum);
    let put = send_checked(client, &request, checksum).await?;
    if put.etag.is_empty() {
        let message = "the server took a part without telling its ETag";
        return Err(Error::new(Kind::Corrupt, request.operation, message));
    }
    let checksum = checksum.cloned().or(put.checksum);
    Ok(Part { number, size, etag: put.etag, checksum })
}

/// Aborts an upload and frees its storage. A missing one is not an error.
///
/// # Errors
/// Those of the request.
pub async fn abort_upload(
    client: &Client,
    bucket: &str,
    key: &[u8],
    upload: &str,
) -> Result<(), Error> {
    let request = Request::new("AbortMultipartUpload", Method::DELETE, Some(bucket))
        .key(key)
        .query("uploadId", upload);
    match client.send(&request).await {
        Err(error) if error.kind == Kind::NotFound => Ok(()),
        result => result.map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_says_what_it_is_made_of() {
        let of = |algorithm| {
            let request = create("b", b"k", algorithm, &Headers::new());
            let values =
                request.headers.iter().map(|(_, value)| value.to_str().unwrap().to_owned());
            values.collect::<Vec<_>>()
        };
        assert_eq!(of(Some(Algorithm::Crc64Nvme)), ["CRC64NVME", "FULL_OBJECT"]);
        assert_eq!(of(Some(Algorithm::Sha256)), ["SHA256", "COMPOSITE"]);
        assert!(of(None).is_empty());
    }

    #[test]
    fn an_upload_has_an_id() {
        let of = |body: &str| id_of(&Reply::of(body.to_owned()));
        let body = "<InitiateMultipartUploadResult><Bucket>b</Bucket><UploadId>i&amp;d</UploadId>\
            </InitiateMultipartUploadResult>";
        assert_eq!(of(body).unwrap(), "i&d");
        let body = "<InitiateMultipartUploadResult><UploadId/></InitiateMultipartUploadResult>";
        assert_eq!(of(body).unwrap_err().kind, Kind::Corrupt);
    }
}
