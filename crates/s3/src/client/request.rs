//! A request from its description to its checked response: attempts (build, sign, send, read whole or as a stream), and what
//! a failure tells about the next one; when that is made is decided in `retry`.

use crate::client::connection::{Conn, ExchangeError, Watchdog};
use crate::client::pool::{BucketRoute, HostPool};
use crate::client::retry::{RetryClass, class, wait};
use crate::client::session::stopped;
use crate::client::throttle::BodyShare;
use crate::settings::ResolvedSettings;
use crate::{Client, Error, ErrorKind, response, sign, time};
use bytes::{Bytes, BytesMut};
use hakobu_core::meter::{Activity, Lane, Phase};
use http::header::{CONTENT_LENGTH, DATE, HOST, PROXY_AUTHORIZATION, RETRY_AFTER, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::cell::Cell;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// A request to S3. The client adds host, date, credentials, payload hash and the encoded path.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name in AWS's API reference, for messages and statistics.
    pub operation: &'static str,
    /// HTTP method.
    pub method: Method,
    /// Bucket; `None` for operations of the account (ListBuckets).
    pub bucket: Option<String>,
    /// Key, not encoded; `None` for operations of the bucket.
    pub key: Option<Vec<u8>>,
    /// Query parameters, not encoded, in any order.
    pub query: Vec<(&'static str, String)>,
    /// Headers of the operation.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Body, possibly empty. Cloning shares it.
    pub body: Bytes,
    /// True if sending it twice has the same effect as once. Only then is a request that may have succeeded
    /// sent again.
    pub repeatable: bool,
}

impl Request {
    /// Creates a repeatable request without key, query, headers and body.
    pub fn new(operation: &'static str, method: Method, bucket: Option<&str>) -> Request {
        Request {
            operation,
            method,
            bucket: bucket.map(str::to_owned),
            key: None,
            query: Vec::new(),
            headers: Vec::new(),
            body: Bytes::new(),
            repeatable: true,
        }
    }

    /// Sets the key.
    pub fn key(mut self, key: &[u8]) -> Request {
        self.key = Some(key.to_vec());
        self
    }

    /// Adds a query parameter.
    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Request {
        self.query.push((name, value.into()));
        self
    }

    /// Adds a query parameter, if it has a value.
    pub(crate) fn query_if(self, name: &'static str, value: Option<impl Into<String>>) -> Request {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Adds a header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Request {
        self.headers.push((name, value));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Request {
        self.body = body.into();
        self
    }
}

/// A successful response (2xx) with its whole body.
#[derive(Clone, Debug)]
pub struct Response {
    /// 200, 204, 206 …
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

#[cfg(any(test, fuzzing))]
impl Response {
    /// 200 with this body and without headers.
    pub(crate) fn of(body: impl Into<Bytes>) -> Response {
        Response { status: StatusCode::OK, headers: HeaderMap::new(), body: body.into() }
    }
}

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
pub(crate) type ResponseAndBody = (Response, Option<BodyReader>);

/// State of the request when an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Nothing was sent.
    Nothing,
    /// Possibly executed: no response was received.
    Unknown,
    /// As `Unknown`, but on a previously idle connection: most likely not executed.
    Stale,
    /// A response was received.
    Responded,
}

/// A failed try.
pub(crate) struct Failure {
    pub error: Error,
    pub sent: Sent,
    /// Wait requested by the server.
    pub retry_after: Option<Duration>,
    pub context: FailureContext,
}

/// Facts about a failed attempt for [`Client::recover_from`].
#[derive(Default)]
pub(crate) struct FailureContext {
    /// Region, and version of the credentials, used for signing.
    region: String,
    credentials_version: u64,
    /// Time by the server's clock.
    date_s: Option<i64>,
    bucket_region: Option<String>,
}

impl Failure {
    fn new(error: Error, sent: Sent) -> Failure {
        Failure { error, sent, retry_after: None, context: FailureContext::default() }
    }
}

/// Connection attempts to a host that has never responded and only times out.
const SILENT_ATTEMPTS_MAX: u32 = 2;
/// Most repetitions of a request because of its region, clock or token.
const RECOVERIES_MAX: u32 = 3;
/// Operations whose bodies are object content.
const UPLOADS: &[&str] = &["PutObject", "UploadPart"];

impl Client {
    /// Sends a request until it succeeds, its attempts are used up, or the failure is final; reads the whole
    /// body, of at most 64 MiB. A response that violates its operation's rule is not a success.
    pub async fn send(&self, request: &Request) -> Result<Response, Error> {
        Ok(self.send_with_retries(request, true).await?.0)
    }

    /// As [`Client::send`], but returns the body as a stream. Retries cover everything up to the headers; the
    /// caller handles a broken body.
    pub async fn download(&self, request: &Request) -> Result<Download, Error> {
        let (Response { status, headers, .. }, rest) =
            self.send_with_retries(request, false).await?;
        let (client, operation) = (self.clone(), request.operation);
        Ok(Download { status, headers, rest, client, operation, size: 0 })
    }

    /// Decides whether a broken body may be requested again: takes from the retry budget and waits; returns
    /// false if the attempts are used up. `tried` counts from 1.
    pub async fn may_retry(&self, tried: u32, after: &Error) -> bool {
        let class = class(after.kind, after.status, &after.code);
        self.back_off(class, tried, None).await.is_some()
    }

    /// Waits before another attempt and returns its cost; `None` to give up.
    async fn back_off(
        &self,
        class: RetryClass,
        tries: u32,
        retry_after: Option<Duration>,
    ) -> Option<i64> {
        let session = self.session();
        let attempts = session.resolved.attempts;
        let wait = wait(class, tries, attempts, retry_after, fastrand::f64())?;
        let cost = session.may_retry(class)?;
        session.counts.retries.fetch_add(1, Ordering::Relaxed);
        self.turn(Phase::Pause);
        session.sleep(wait).await.then_some(cost)
    }

    /// Records a throttling response or a stall.
    pub(crate) fn record_throttling(&self, class: RetryClass) {
        match class {
            RetryClass::Throttled => self.count(Lane::throttled),
            RetryClass::TimedOut => self.count(Lane::timed_out),
            RetryClass::Final | RetryClass::Transient => return,
        }
        if self.session().throttled() {
            self.count(Lane::slowed);
        }
    }

    async fn send_with_retries(
        &self,
        request: &Request,
        whole: bool,
    ) -> Result<ResponseAndBody, Error> {
        let session = self.session();
        let payload = self.payload(request);
        let (mut tries, mut recoveries, mut paid, mut fresh) = (1, 0, 0, false);
        let mut unsure = false;
        let tally = match UPLOADS.contains(&request.operation) {
            true => self.doing.as_ref().map(SentBytes::new),
            false => None,
        };
        loop {
            let tried = self.attempt(request, &payload, tally.as_ref(), whole, fresh).await;
            let failure = match tried {
                Ok(response) => {
                    if whole {
                        self.count(|lane| lane.completions(1));
                    }
                    session.counts.requests.fetch_add(1, Ordering::Relaxed);
                    session.budget.refill(paid);
                    return Ok(response);
                }
                Err(failure) => failure,
            };
            let Failure { mut error, sent, retry_after, .. } = failure;
            (error.tries, error.unsure) = (tries, unsure);
            unsure |= match sent {
                Sent::Nothing => false,
                Sent::Unknown | Sent::Stale => true,
                Sent::Responded => error.status >= 500 && error.kind != ErrorKind::Throttled,
            };
            if sent == Sent::Stale && request.repeatable && !fresh {
                // The server had closed an idle connection, which is not a failure.
                fresh = true;
                session.counts.retries.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            if recoveries < RECOVERIES_MAX
                && self.recover_from(request, &failure.context, &error).await?
            {
                recoveries += 1;
                session.counts.retries.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let class = class(error.kind, error.status, &error.code);
            if sent != Sent::Nothing {
                self.record_throttling(class);
            }
            let silent = sent == Sent::Nothing
                && class == RetryClass::TimedOut
                && session.counts.connections.load(Ordering::Relaxed) == 0;
            if error.kind == ErrorKind::TimedOut && sent == Sent::Nothing {
                error.kind = ErrorKind::Connection;
            }
            let lost = matches!(sent, Sent::Unknown | Sent::Stale) && !request.repeatable;
            if lost || silent && tries >= SILENT_ATTEMPTS_MAX {
                return Err(error);
            }
            match self.back_off(class, tries, retry_after).await {
                Some(cost) => paid = cost,
                None if class != RetryClass::Final && session.is_stopped() => {
                    return Err(Error { tries, ..stopped(request.operation) });
                }
                None => return Err(error),
            }
            (tries, fresh) = (tries + 1, false);
        }
    }
}

impl Client {
    /// Payload hash of the signature: that of the body, of an empty body, or the marker for an unsigned one,
    /// which is allowed over TLS.
    pub(crate) fn payload(&self, request: &Request) -> std::borrow::Cow<'static, str> {
        let ResolvedSettings { given, endpoint, .. } = &self.session().resolved;
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

    /// A signed request, and the version of the credentials.
    fn build(
        &self,
        request: &Request,
        destination: &BucketRoute,
        payload: &str,
        tally: Option<&Rc<SentBytes>>,
    ) -> Result<(http::Request<RequestBody>, u64), Error> {
        let route = &destination.route;
        let mut uri = route.path(request.key.as_deref());
        let path_bytes = uri.len();
        if !request.query.is_empty() {
            uri.push('?');
            uri.push_str(&sign::encode_query(&request.query));
        }
        let target = PathAndQuery::from_maybe_shared(Bytes::from(uri)).map_err(|e| {
            Error::new(ErrorKind::Invalid, request.operation, format!("no valid path: {e}"))
        })?;
        let mut headers = HeaderMap::with_capacity(request.headers.len() + 8);
        for (name, value) in &request.headers {
            headers.append(name.clone(), value.clone());
        }
        if self.session().resolved.given.request_payer {
            headers.insert(REQUEST_PAYER, HeaderValue::from_static("requester"));
        }
        if let Some(key) = self.session().customer_key() {
            key.add(request.operation, &mut headers);
        }
        headers.insert(HOST, destination.host.clone());
        headers.insert(USER_AGENT, AGENT);
        if !request.body.is_empty() || matches!(request.method, Method::PUT | Method::POST) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(request.body.len()));
        }
        let now_s = self.session().server_now_s();
        let (path, query) = target.as_str().split_at(path_bytes);
        let query = query.strip_prefix('?').unwrap_or(query);
        let credentials_version = self.pool.with_signer(&route.region, now_s, |signer| {
            let method = request.method.as_str();
            signer.sign(method, &route.authority, path, query, &mut headers, payload, now_s);
        });
        // After signing, because the proxy removes this header.
        if let Some(authorization) = route.forwards().and_then(|it| it.authorization.as_ref()) {
            headers.insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        let mut built = http::Request::new(RequestBody::new(request.body.clone(), tally));
        *built.method_mut() = request.method.clone();
        *built.uri_mut() = match route.forwards() {
            None => Uri::from(target),
            Some(_) => {
                let whole = Uri::builder().scheme("http").authority(&*route.authority);
                whole.path_and_query(target).build().map_err(|e| {
                    Error::new(ErrorKind::Invalid, request.operation, format!("no valid URL: {e}"))
                })?
            }
        };
        *built.headers_mut() = headers;
        Ok((built, credentials_version))
    }

    /// Makes one attempt. Reads a successful response to its end if `whole`; `tally` counts sent bytes.
    pub(crate) async fn attempt(
        &self,
        request: &Request,
        payload: &str,
        tally: Option<&Rc<SentBytes>>,
        whole: bool,
        fresh: bool,
    ) -> Result<ResponseAndBody, Failure> {
        let operation = request.operation;
        let unsent = |error| Failure::new(error, Sent::Nothing);
        self.session().admit(operation, |phase| self.turn(phase)).await.map_err(unsent)?;
        let destination =
            self.pool.destination(request.bucket.as_deref(), operation).map_err(unsent)?;
        let timeout = self.timeout(operation);
        let (mut fresh, mut closed) = (fresh, 0);
        loop {
            let mut share = self.admit_body(request).await.map_err(unsent)?;
            let (mut built, credentials_version) =
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
            let reporter = self.doing.as_ref().map(|doing| PhaseReporter::new(doing, operation));
            let (head, body) = match conn.exchange(built, timeout, reporter).await {
                Ok(response) => response.into_parts(),
                // The server closed this idle connection: try the next one, finally a new one. Other requests give
                // theirs back meanwhile.
                Err(ExchangeError::Unsent) if reused => {
                    closed += 1;
                    fresh |= closed >= CLOSED_MAX;
                    continue;
                }
                Err(broken) => {
                    return Err(broke(broken, reused, &destination, operation));
                }
            };
            let promised_bytes = body.size_hint().exact();
            let host_pool = Rc::clone(&destination.host_pool);
            let got_bytes = 0;
            let mut rest =
                BodyReader { conn, body, host_pool, timeout, got_bytes, promised_bytes, share };
            if !head.status.is_success() {
                let context = FailureContext {
                    region: destination.route.region.clone(),
                    credentials_version,
                    ..FailureContext::default()
                };
                let mut failure = refused(rest, head, context, operation).await;
                failure.error = response::refusal(request, failure.error);
                return Err(failure);
            }
            let (status, headers) = (head.status, head.headers);
            let date = || Some(time::parse_http(headers.get(DATE)?.to_str().ok()?)?.s);
            self.session().learn_clock(date);
            // The request may have been executed nevertheless.
            let invalid = |error| Failure::new(error, Sent::Unknown);
            if !whole {
                response::check_head(operation, status, &headers).map_err(invalid)?;
                return Ok((Response { status, headers, body: Bytes::new() }, Some(rest)));
            }
            let read = collect(&mut rest, BODY_MAX_BYTES, operation).await;
            let response = Response { status, headers, body: read.map_err(invalid)? };
            rest.host_pool.checkin(rest.conn).await;
            response::check(operation, &response).map_err(invalid)?;
            return Ok((response, None));
        }
    }

    fn timeout(&self, operation: &str) -> Duration {
        let factor = if SLOW.contains(&operation) { SLOW_FACTOR } else { 1 };
        self.session().resolved.read_timeout.saturating_mul(factor)
    }

    /// Learns from a failure: the bucket's region, the server's clock, new credentials. Returns true if the
    /// request should be repeated for that reason.
    ///
    /// # Errors
    /// `Credentials`: expired ones cannot be refreshed.
    pub(crate) async fn recover_from(
        &self,
        request: &Request,
        context: &FailureContext,
        error: &Error,
    ) -> Result<bool, Error> {
        let session = self.session();
        if error.is_expired_token() {
            return match session.credential_cache.refresh(context.credentials_version).await {
                Ok(changed) => Ok(changed),
                Err(why) => Err(Error { message: why, ..error.clone() }),
            };
        }
        if error.is_clock_skew() && !session.resolved.given.no_sign_request {
            let Some(server_s) = context.date_s else { return Ok(false) };
            // A response may be seconds old; a clock that was already corrected is not corrected again.
            let off_s = (server_s - session.server_now_s()).abs();
            if off_s > 60 {
                session.set_clock(server_s);
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
        session.set_region(bucket, &region);
        Ok(true)
    }
}

/// Failure without a response.
fn broke(
    broken: ExchangeError,
    reused: bool,
    destination: &BucketRoute,
    operation: &'static str,
) -> Failure {
    let url = destination.route.url();
    let unknown = if reused { Sent::Stale } else { Sent::Unknown };
    let (kind, what, sent) = match broken {
        ExchangeError::Unsent => {
            (ErrorKind::Connection, "the connection closed at once".to_owned(), Sent::Nothing)
        }
        ExchangeError::Failed(why) => {
            (ErrorKind::Connection, format!("the connection broke: {why}"), unknown)
        }
        ExchangeError::TimedOut(stalled) => {
            let time_s = stalled.as_secs_f64();
            (ErrorKind::TimedOut, format!("no data for {time_s} s"), Sent::Unknown)
        }
    };
    Failure::new(Error::new(kind, operation, format!("{url}: {what}")), sent)
}

/// Failure with an unsuccessful response.
async fn refused(
    mut rest: BodyReader,
    head: http::response::Parts,
    mut context: FailureContext,
    operation: &'static str,
) -> Failure {
    let read = collect(&mut rest, ERROR_MAX_BYTES, operation).await;
    let body = match read {
        Ok(body) => {
            rest.host_pool.checkin(rest.conn).await;
            body
        }
        // The status is sufficient.
        Err(_) => Bytes::new(),
    };
    let text = |name: HeaderName| head.headers.get(name).and_then(|v| v.to_str().ok());
    let status = head.status.as_u16();
    let error = Error::from_response(operation, status, &head.headers, &body);
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
    Failure { error, sent: Sent::Responded, retry_after, context }
}

/// Reads a body to its end.
async fn collect(
    rest: &mut BodyReader,
    bytes_max: u64,
    operation: &'static str,
) -> Result<Bytes, Error> {
    let long = || {
        let what = format!("a response of more than {bytes_max} bytes");
        Error::new(ErrorKind::Invalid, operation, what)
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

const FRAME_BYTES: usize = 1 << 20;

/// Counts the content of a request over all attempts, each byte once.
pub(crate) struct SentBytes {
    doing: Rc<Activity>,
    counted_bytes: Cell<u64>,
}

impl SentBytes {
    /// Creates a counter.
    pub fn new(doing: &Rc<Activity>) -> Rc<SentBytes> {
        Rc::new(SentBytes { doing: Rc::clone(doing), counted_bytes: Cell::new(0) })
    }

    fn reached(&self, bytes: u64) {
        let before = self.counted_bytes.get();
        if bytes > before {
            self.counted_bytes.set(bytes);
            self.doing.lane().bytes(bytes - before);
        }
    }
}

/// A request body, see the module.
pub(crate) struct RequestBody {
    rest: Bytes,
    sent_bytes: u64,
    tally: Option<Rc<SentBytes>>,
    watch: Option<Rc<Watchdog>>,
    share: Option<BodyShare>,
}

impl RequestBody {
    /// Creates a body.
    pub fn new(bytes: Bytes, tally: Option<&Rc<SentBytes>>) -> RequestBody {
        RequestBody { rest: bytes, sent_bytes: 0, tally: tally.cloned(), watch: None, share: None }
    }

    /// Applies a rate limit.
    pub fn throttle(&mut self, share: BodyShare) {
        self.share = Some(share);
    }

    /// Waits for the rate limit, and reports the wait.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        let left = self.rest.len().min(FRAME_BYTES);
        let Some(share) = &mut self.share else { return Poll::Ready(left) };
        let granted = share.poll_grant(self.rest.len() as u64, cx);
        if let Some(watch) = &self.watch {
            watch.hold(granted.is_pending());
        }
        if let Some(tally) = &self.tally {
            match granted {
                Poll::Pending => tally.doing.turn(Phase::Limit),
                Poll::Ready(_) => tally.doing.turn(Phase::Send),
            };
        }
        granted.map(|granted| granted.min(left))
    }

    /// Notifies the connection's watch of the last frame.
    pub fn watched_by(&mut self, watch: &Rc<Watchdog>) {
        watch.body_is_over(self.rest.is_empty());
        self.watch = Some(Rc::clone(watch));
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let len = ready!(self.poll_room(cx));
        let frame = self.rest.split_to(len);
        let over = self.rest.is_empty();
        if let Some(share) = &mut self.share {
            share.sent(len, over);
        }
        self.sent_bytes += len as u64;
        if let Some(tally) = &self.tally {
            tally.reached(self.sent_bytes);
        }
        if let Some(watch) = self.watch.as_ref().filter(|_| over) {
            watch.body_is_over(true);
        }
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// Reports the phases of one attempt of a request.
pub(crate) struct PhaseReporter {
    doing: Rc<Activity>,
    /// True if the phase is the operation itself instead of its progress.
    named: bool,
    sent: Option<Instant>,
}

pub(crate) fn own_phase(operation: &str) -> Option<Phase> {
    match operation {
        "HeadObject" | "HeadBucket" => Some(Phase::Look),
        "ListObjects" | "ListObjectsV2" | "ListParts" | "ListMultipartUploads" => Some(Phase::List),
        "DeleteObject" | "DeleteObjects" | "AbortMultipartUpload" => Some(Phase::Remove),
        "CompleteMultipartUpload" => Some(Phase::Settle),
        _ => None,
    }
}

impl PhaseReporter {
    /// Reports that the request is being sent.
    pub fn new(doing: &Rc<Activity>, operation: &str) -> PhaseReporter {
        let own = own_phase(operation);
        doing.turn(own.unwrap_or(Phase::Send));
        PhaseReporter { doing: Rc::clone(doing), named: own.is_some(), sent: None }
    }

    /// Reports that all of it has been passed to the kernel; may be called repeatedly.
    pub fn sent(&mut self) {
        if self.sent.is_none() {
            self.sent = Some(Instant::now());
            self.turn(Phase::Answer);
        }
    }

    /// Reports the head of the response, and whether it is a success.
    pub fn answered(&self, success: bool) {
        let after = self.sent.map(|sent| sent.elapsed());
        let us = |after: Duration| u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        let wire = self.doing.lane().wire();
        wire.answered(us(after.unwrap_or_default()));
        // A response before the end of sending says nothing about the server's latency.
        if let Some(after) = after.filter(|_| success && !self.named) {
            wire.succeeded(us(after));
        }
        self.turn(Phase::Receive);
    }

    fn turn(&self, phase: Phase) {
        if !self.named {
            self.doing.turn(phase);
        }
    }
}

/// A GET in progress: headers are complete, the body arrives in pieces. Dropping it early closes its
/// connection.
pub struct Download {
    /// 200 or 206.
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub(crate) rest: Option<BodyReader>,
    pub(crate) client: Client,
    pub(crate) operation: &'static str,
    /// Size of the whole object, bytes.
    pub(crate) size: u64,
}

/// Unread rest of a body, with its connection.
pub(crate) struct BodyReader {
    pub conn: Conn,
    pub body: Incoming,
    pub host_pool: Rc<HostPool>,
    pub timeout: Duration,
    /// Received and announced bytes.
    pub got_bytes: u64,
    pub promised_bytes: Option<u64>,
    /// Grant of bytes that may be read, under a rate limit.
    pub share: Option<BodyShare>,
}

impl Download {
    /// Size of the whole object in bytes, of which the body may be a range.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Sets the required length of the body, whether the server announces one or not.
    pub(crate) fn expects(&mut self, bytes: u64, size: u64) {
        self.size = size;
        if let Some(rest) = &mut self.rest {
            rest.promised_bytes = Some(bytes);
        }
    }

    /// Records bytes that were already waited for: [`Client::prepay`].
    pub fn prepaid(&mut self, bytes: u64) {
        if let Some(share) = self.rest.as_mut().and_then(|rest| rest.share.as_mut()) {
            share.grant(bytes);
        }
    }

    /// Next piece; `None` at the end of the announced length.
    ///
    /// # Errors
    /// `Connection`, `TimedOut`; `Corrupt` if the body ends early, `Invalid` if it is too long.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        // Taken out, so that a cancelled call closes the connection.
        let Some(mut rest) = self.rest.take() else { return Ok(None) };
        if let Some(share) = &mut rest.share {
            let left_bytes = rest
                .promised_bytes
                .map_or(u64::MAX, |promised| promised.saturating_sub(rest.got_bytes));
            self.client.granted(share, left_bytes, self.operation).await?;
            rest.conn.watch.read_at_most(share.granted_bytes());
        }
        self.client.turn(Phase::Receive);
        match rest.piece(self.operation).await {
            Ok(Some(piece)) => {
                self.rest = Some(rest);
                Ok(Some(piece))
            }
            Ok(None) => {
                rest.host_pool.checkin(rest.conn).await;
                self.client.count(|lane| lane.completions(1));
                Ok(None)
            }
            Err(error) => {
                if error.kind == ErrorKind::TimedOut {
                    self.client.record_throttling(RetryClass::TimedOut);
                }
                Err(error)
            }
        }
    }
}

impl BodyReader {
    /// Next piece; `None` at the end.
    pub async fn piece(&mut self, operation: &'static str) -> Result<Option<Bytes>, Error> {
        let so_far = |rest: &BodyReader| match rest.promised_bytes {
            Some(promised) => format!("after {} of {promised} bytes", rest.got_bytes),
            None => format!("after {} bytes", rest.got_bytes),
        };
        match self.conn.piece(&mut self.body, self.timeout).await {
            Ok(Some(piece)) => {
                self.got_bytes += piece.len() as u64;
                if let Some(promised) = self.promised_bytes.filter(|most| self.got_bytes > *most) {
                    // Not retried: the content before it is complete and would be taken for a success.
                    let what = format!("the body is longer than {promised} bytes");
                    return Err(Error::new(ErrorKind::Invalid, operation, what));
                }
                if let Some(share) = &mut self.share {
                    share.received(piece.len());
                }
                Ok(Some(piece))
            }
            Ok(None) => match self.promised_bytes {
                Some(promised) if promised != self.got_bytes => {
                    let what = format!("the body ended {}", so_far(self));
                    Err(Error::new(ErrorKind::Corrupt, operation, what))
                }
                _ => Ok(None),
            },
            Err(broken) => {
                let so_far = so_far(self);
                let (kind, what) = match broken {
                    ExchangeError::TimedOut(_) => {
                        (ErrorKind::TimedOut, format!("the body stalled {so_far}"))
                    }
                    ExchangeError::Failed(why) => {
                        (ErrorKind::Connection, format!("the body broke {so_far}: {why}"))
                    }
                    ExchangeError::Unsent => {
                        (ErrorKind::Connection, format!("the connection closed {so_far}"))
                    }
                };
                Err(Error::new(kind, operation, what))
            }
        }
    }
}
