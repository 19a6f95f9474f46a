//! The null server behind the layer: the same responses as hyper types. For faults and conditions, not for
//! measuring.

use super::answer::{self, Answer, Content, Store};
use super::{body, head};
use crate::operation::Operation;
use crate::xml::REQUEST_ID;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use s3s::Body;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

type Failure = Box<dyn Error + Send + Sync>;

/// Bytes kept of a body: enough for DeleteObjects and for trailers.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// Answers a request.
///
/// # Errors
/// Its body cannot be read.
pub async fn respond(
    store: &Arc<Store>,
    request: Request<Body>,
    operation: Operation,
) -> Result<Response<Body>, Failure> {
    let (parts, mut sent) = request.into_parts();
    let mut kept = Vec::new();
    while let Some(frame) = sent.frame().await {
        if let Ok(data) = frame?.into_data() {
            kept.extend_from_slice(&data);
            if kept.len() > 2 * KEPT_BYTES_MAX {
                kept.drain(..kept.len() - KEPT_BYTES_MAX);
            }
        }
    }
    let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let sums = parts.headers.iter().filter(|(name, _)| {
        let rest = name.as_str().strip_prefix(head::CHECKSUM);
        rest.is_some_and(|rest| !["algorithm", "mode", "type"].contains(&rest))
    });
    let mut sums = sums.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let trailer = || text("x-amz-trailer").and_then(|_| body::trailer(&kept));
    let described = answer::Request {
        operation,
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or(""),
        range: text("range"),
        wants_checksum: text("x-amz-checksum-mode")
            .is_some_and(|m| m.eq_ignore_ascii_case("enabled")),
        checksum: sums.next().or_else(trailer),
        body: &kept,
    };
    let mut answer = Answer::default();
    store.answer(&described, &mut answer);
    finish(store, answer)
}

fn finish(store: &Arc<Store>, mut answer: Answer) -> Result<Response<Body>, Failure> {
    let length = answer.length();
    let text = std::mem::take(&mut answer.text);
    let body = match answer.content {
        Content::Text => Body::from(text),
        Content::Nothing | Content::Withheld(_) => Body::empty(),
        Content::Payload(from, left) => {
            Body::http_body(Stretch { store: Arc::clone(store), from, left })
        }
    };
    let mut response = Response::builder().status(answer.status).body(body)?;
    let headers = response.headers_mut();
    for line in answer.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':').ok_or("a line without a colon")?;
        let name = HeaderName::from_bytes(&line[..colon])?;
        headers.append(name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii())?);
    }
    if answer.content != Content::Nothing {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    headers.insert("x-amz-request-id", HeaderValue::from_static(REQUEST_ID));
    Ok(response)
}

/// A range of the payload as a body.
struct Stretch {
    store: Arc<Store>,
    from: u64,
    left: u64,
}

impl hyper::body::Body for Stretch {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        let piece =
            this.store.payload.parts(this.from, this.left).next().map(Bytes::copy_from_slice);
        Poll::Ready(piece.map(|piece| {
            this.from += piece.len() as u64;
            this.left -= piece.len() as u64;
            Ok(Frame::data(piece))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
