//! One attempt of a request: build, sign, send, read the response; and what to learn from a failure for the
//! next attempt.

use super::answer;
use super::client::Client;
use super::download::Rest;
use super::error::{Error, Kind};
use super::http::Broken;
use super::outgoing::{Outgoing, Tally};
use super::pool::Destination;
use super::reporter::Reporter;
use super::request::{Reply, Request};
use super::settings::Resolved;
use super::sign;
use super::time;
use bytes::{Bytes, BytesMut};
use hakobu_core::meter::Phase;
use http::header::{
    CONTENT_LENGTH, DATE, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION,
    RETRY_AFTER, USER_AGENT,
};
use http::uri::PathAndQuery;
use http::{Method, Uri};
use http_body::Body as _;
use std::rc::Rc;
use std::time::Duration;

/// Largest response that is read whole, bytes.
const BODY_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The body of an error response is read up to this many bytes.
const ERROR_MAX_BYTES: u64 = 1024 * 1024;
/// Bytes read at once before the head of the response is complete, under a rate limit.
const HEAD_BYTES: usize = 8 << 10;
/// Idle connections that turn out to be closed before a request gets a new one.
const CLOSED_MAX: u32 = 3;
/// Hashing of fewer bytes is too short to report.
const COMPUTED_BYTES_MIN: usize = 64 << 10;
/// SHA-256 of the empty string.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// Operations that servers may work on for minutes without sending anything.
const SLOW: &[&str] = &["CompleteMultipartUpload", "CopyObject", "UploadPartCopy"];
/// Factor on timeouts of these operations.
const SLOW_FACTOR: u32 = 15;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("hakobu/", env!("CARGO_PKG_VERSION")));
const BUCKET_REGION: HeaderName = HeaderName::from_static("x-amz-bucket-region");
const REQUEST_PAYER: HeaderName = HeaderName::from_static("x-amz-request-payer");

/// A successful response with its whole body, or with an empty one and a handle to read it.
pub(super) type Answer = (Reply, Option<Rest>);

/// State of the request when an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Nothing was sent.
    Nothing,
    /// Possibly executed: no response was received.
    Perhaps,
    /// As `Perhaps`, but on a previously idle connection: most likely not executed.
    Stale,
    /// A response was received.
    Answered,
}

/// A failed try.
pub(super) struct Failure {
    pub error: Error,
    pub sent: Sent,
    /// Wait requested by the server.
    pub retry_after: Option<Duration>,
    pub context: Context,
}

/// Facts about a failed attempt for [`Client::repair`].
#[derive(Default)]
pub(super) struct Context {
    /// Region, and version of the keys, used for signing.
    region: String,
    keys: u64,
    /// Time by the server's clock.
    date_s: Option<i64>,
    bucket_region: Option<String>,
}

impl Failure {
    fn new(error: Error, sent: Sent) -> Failure {
        Failure { error, sent, retry_after: None, context: Context::default() }
    }
}

impl Client {
    /// Payload hash of the signature: that of the body, of an empty body, or the marker for an unsigned one,
    /// which is allowed over TLS.
    pub(super) fn payload(&self, request: &Request) -> std::borrow::Cow<'static, str> {
        let Resolved { given, endpoint, .. } = &self.store().resolved;
        if request.body.is_empty() {
            EMPTY.into()
        } else if given.no_sign_request || endpoint.tls() || given.unsigned_payload {
            sign::UNSIGNED.into()
        } else {
            let long = request.body.len() >= COMPUTED_BYTES_MIN;
            let _phase =
                self.doing.as_ref().filter(|_| long).map(|doing| doing.during(Phase::Compute));
            sign::sha256_hex(&request.body).into()
        }
    }

    /// A signed request, and the version of the keys.
    fn build(
        &self,
        request: &Request,
        destination: &Destination,
        payload: &str,
        tally: Option<&Rc<Tally>>,
    ) -> Result<(http::Request<Outgoing>, u64), Error> {
        let place = &destination.place;
        let mut uri = place.path(request.key.as_deref());
        let path_bytes = uri.len();
        if !request.query.is_empty() {
            uri.push('?');
            uri.push_str(&sign::encode_query(&request.query));
        }
        let target = PathAndQuery::from_maybe_shared(Bytes::from(uri)).map_err(|e| {
            Error::new(Kind::Invalid, request.operation, format!("no valid path: {e}"))
        })?;
        let mut headers = HeaderMap::with_capacity(request.headers.len() + 8);
        for (name, value) in &request.headers {
            headers.append(name.clone(), value.clone());
        }
        if self.store().resolved.given.request_payer {
            headers.insert(REQUEST_PAYER, HeaderValue::from_static("requester"));
        }
        if let Some(key) = self.store().customer_key() {
            key.add(request.operation, &mut headers);
        }
        headers.insert(HOST, destination.host.clone());
        headers.insert(USER_AGENT, AGENT);
        if !request.body.is_empty() || matches!(request.method, Method::PUT | Method::POST) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(request.body.len()));
        }
        let now_s = self.store().server_now_s();
        let (path, query) = target.as_str().split_at(path_bytes);
        let query = query.strip_prefix('?').unwrap_or(query);
        let keys = self.pool.with_signer(&place.region, now_s, |signer| {
            let method = request.method.as_str();
            signer.sign(method, &place.authority, path, query, &mut headers, payload, now_s);
        });
        // After signing, because the proxy removes this header.
        if let Some(authorization) = place.forwards().and_then(|it| it.authorization.as_ref()) {
            headers.insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        let mut built = http::Request::new(Outgoing::new(request.body.clone(), tally));
        *built.method_mut() = request.method.clone();
        *built.uri_mut() = match place.forwards() {
            None => Uri::from(target),
            Some(_) => {
                let whole = Uri::builder().scheme("http").authority(&*place.authority);
                whole.path_and_query(target).build().map_err(|e| {
                    Error::new(Kind::Invalid, request.operation, format!("no valid URL: {e}"))
                })?
            }
        };
        *built.headers_mut() = headers;
        Ok((built, keys))
    }

    /// Makes one attempt. Reads a successful response to its end if `whole`; `tally` counts sent bytes.
    pub(super) async fn attempt(
        &self,
        request: &Request,
        payload: &str,
        tally: Option<&Rc<Tally>>,
        whole: bool,
        fresh: bool,
    ) -> Result<Answer, Failure> {
        let operation = request.operation;
        let unsent = |error| Failure::new(error, Sent::Nothing);
        self.store().admit(operation, |phase| self.turn(phase)).await.map_err(unsent)?;
        let destination =
            self.pool.destination(request.bucket.as_deref(), operation).map_err(unsent)?;
        let patience = self.patience(operation);
        let (mut fresh, mut closed) = (fresh, 0);
        loop {
            let mut share = self.admit_body(request).await.map_err(unsent)?;
            let (mut built, keys) =
                self.build(request, &destination, payload, tally).map_err(unsent)?;
            if !request.body.is_empty()
                && let Some(share) = share.take()
            {
                built.body_mut().throttle(share);
            }
            self.turn(Phase::Connect);
            let conn = self.pool.checkout(&destination, fresh, operation).await;
            let mut conn = conn.map_err(unsent)?;
            let reused = conn.reused;
            // Under a rate limit little should be received with the head.
            conn.watch.read_at_most(if share.is_some() { HEAD_BYTES } else { usize::MAX });
            self.count(|lane| lane.operations(1));
            let reporter = self.doing.as_ref().map(|doing| Reporter::new(doing, operation));
            let (head, body) = match conn.exchange(built, patience, reporter).await {
                Ok(response) => response.into_parts(),
                // The server closed this idle connection: try the next one, finally a new one. Other requests give
                // theirs back meanwhile.
                Err(Broken::Unsent) if reused => {
                    closed += 1;
                    fresh |= closed >= CLOSED_MAX;
                    continue;
                }
                Err(broken) => {
                    return Err(broke(broken, reused, &destination, operation, patience));
                }
            };
            let promised_bytes = body.size_hint().exact();
            let target = Rc::clone(&destination.target);
            let got_bytes = 0;
            let mut rest = Rest { conn, body, target, patience, got_bytes, promised_bytes, share };
            if !head.status.is_success() {
                let context = Context {
                    region: destination.place.region.clone(),
                    keys,
                    ..Context::default()
                };
                let mut failure = refused(rest, head, context, operation).await;
                failure.error = answer::refusal(request, failure.error);
                return Err(failure);
            }
            let (status, headers) = (head.status, head.headers);
            let date = || Some(time::parse_http(headers.get(DATE)?.to_str().ok()?)?.s);
            self.store().learn_clock(date);
            // The request may have been executed nevertheless.
            let invalid = |error| Failure::new(error, Sent::Perhaps);
            if !whole {
                answer::check_head(operation, status, &headers).map_err(invalid)?;
                return Ok((Reply { status, headers, body: Bytes::new() }, Some(rest)));
            }
            let read = collect(&mut rest, BODY_MAX_BYTES, operation).await;
            let reply = Reply { status, headers, body: read.map_err(invalid)? };
            rest.target.checkin(rest.conn).await;
            answer::check(operation, &reply).map_err(invalid)?;
            return Ok((reply, None));
        }
    }

    fn patience(&self, operation: &str) -> Duration {
        let factor = if SLOW.contains(&operation) { SLOW_FACTOR } else { 1 };
        self.store().resolved.read_timeout.saturating_mul(factor)
    }

    /// Learns from a failure: the bucket's region, the server's clock, new credentials. Returns true if the
    /// request should be repeated for that reason.
    ///
    /// # Errors
    /// `Credentials`: expired ones cannot be refreshed.
    pub(super) async fn repair(
        &self,
        request: &Request,
        context: &Context,
        error: &Error,
    ) -> Result<bool, Error> {
        let store = self.store();
        if error.is_expired_token() {
            return match store.vault.refresh(context.keys).await {
                Ok(changed) => Ok(changed),
                Err(why) => Err(Error { message: why, ..error.clone() }),
            };
        }
        if error.is_clock_skew() && !store.resolved.given.no_sign_request {
            let Some(server_s) = context.date_s else { return Ok(false) };
            // A response may be seconds old; a clock that was already corrected is not corrected again.
            let off_s = (server_s - store.server_now_s()).abs();
            if off_s > 60 {
                store.set_clock(server_s);
            }
            return Ok(off_s > 60);
        }
        if !matches!(error.status, 301 | 307 | 400) {
            return Ok(false);
        }
        let new_region = context.bucket_region.clone().or_else(|| error.region.clone());
        let (Some(bucket), Some(region)) = (&request.bucket, new_region) else { return Ok(false) };
        if region == context.region {
            return Ok(false);
        }
        store.set_region(bucket, &region);
        Ok(true)
    }
}

/// Failure without a response.
fn broke(
    broken: Broken,
    reused: bool,
    destination: &Destination,
    operation: &'static str,
    patience: Duration,
) -> Failure {
    let url = destination.place.url();
    let perhaps = if reused { Sent::Stale } else { Sent::Perhaps };
    let (kind, what, sent) = match broken {
        Broken::Unsent => {
            (Kind::Connection, "the connection closed at once".to_owned(), Sent::Nothing)
        }
        Broken::Failed(why) => (Kind::Connection, format!("the connection broke: {why}"), perhaps),
        Broken::TimedOut => {
            let time_s = patience.as_secs_f64();
            (Kind::TimedOut, format!("it stood still for {time_s} s"), Sent::Perhaps)
        }
    };
    Failure::new(Error::new(kind, operation, format!("{url}: {what}")), sent)
}

/// Failure with an unsuccessful response.
async fn refused(
    mut rest: Rest,
    head: http::response::Parts,
    mut context: Context,
    operation: &'static str,
) -> Failure {
    let read = collect(&mut rest, ERROR_MAX_BYTES, operation).await;
    let body = match read {
        Ok(body) => {
            rest.target.checkin(rest.conn).await;
            body
        }
        // The status is sufficient.
        Err(_) => Bytes::new(),
    };
    let text = |name: HeaderName| head.headers.get(name).and_then(|v| v.to_str().ok());
    let status = head.status.as_u16();
    let error = Error::from_reply(operation, status, &head.headers, &body);
    let date = |text: &str| time::parse_http(text).map(|time| time.s);
    context.date_s = text(DATE).and_then(date);
    context.bucket_region = text(BUCKET_REGION).map(str::to_owned);
    let retry_after = text(RETRY_AFTER).and_then(|text| match text.trim().parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            let wait_s = date(text)?.checked_sub(context.date_s?)?;
            u64::try_from(wait_s).ok().map(Duration::from_secs)
        }
    });
    Failure { error, sent: Sent::Answered, retry_after, context }
}

/// Reads a body to its end.
async fn collect(rest: &mut Rest, bytes_max: u64, operation: &'static str) -> Result<Bytes, Error> {
    let long = || {
        let what = format!("an answer of more than {bytes_max} bytes");
        Error::new(Kind::Invalid, operation, what)
    };
    if rest.promised_bytes.is_some_and(|bytes| bytes > bytes_max) {
        return Err(long());
    }
    let Some(first) = rest.piece(operation).await? else { return Ok(Bytes::new()) };
    if rest.promised_bytes == Some(rest.got_bytes) && rest.body.is_end_stream() {
        return Ok(first);
    }
    let mut all = BytesMut::from(first);
    while let Some(piece) = rest.piece(operation).await? {
        if rest.got_bytes > bytes_max {
            return Err(long());
        }
        all.extend_from_slice(&piece);
    }
    Ok(all.freeze())
}
