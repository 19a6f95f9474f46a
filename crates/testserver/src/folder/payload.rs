//! Small bodies that the protocol library reads itself (lists of keys or parts): for one that differs from
//! `x-amz-content-sha256` the library would return an internal error.

use super::object::MISMATCH;
use crate::xml;
use hakobu_core::percent::hex;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use s3s::Body;
use s3s::service::S3Service;
use sha2::{Digest, Sha256};
use std::error::Error;

type Failure = Box<dyn Error + Send + Sync>;

/// Largest such body, bytes: ten thousand parts or a thousand keys fit.
const BYTES_MAX: usize = 16 << 20;

/// Answers a request. `is_small`: the library reads its body.
///
/// # Errors
/// The body cannot be received, or the library failed.
pub async fn respond(
    service: &S3Service,
    request: Request<Body>,
    is_small: bool,
) -> Result<Response<Body>, Failure> {
    let has_body = [Method::POST, Method::PUT].contains(request.method());
    let said = request.headers().get("x-amz-content-sha256").and_then(|said| said.to_str().ok());
    let is_sum = |said: &&str| said.len() == 64 && said.bytes().all(|c| c.is_ascii_hexdigit());
    let Some(said) = said.filter(is_sum).filter(|_| is_small && has_body).map(str::to_lowercase)
    else {
        return Ok(service.call(request).await?);
    };
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let body = Limited::new(body, BYTES_MAX).collect().await?.to_bytes();
    let sum = hex(&Sha256::digest(&body));
    // Like S3, check the signature first.
    let answer = service.call(Request::from_parts(parts, Body::from(body))).await?;
    if sum == said || answer.status() != StatusCode::INTERNAL_SERVER_ERROR {
        return Ok(answer);
    }
    let (code, message) = MISMATCH;
    Ok(xml::refusal(StatusCode::BAD_REQUEST, code, message, &path, None)?)
}
