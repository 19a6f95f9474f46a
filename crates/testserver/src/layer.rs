//! Layer in front of a server: hyper's HTTP/1.1 with conditions (latency, concurrency, bandwidth, errors) and faults. It
//! works on requests and responses in transit, independent of the server behind it.

use crate::fault::{BodySide, Fault, FaultEffect, FaultRequest, changed_page, pick};
use crate::null::{self, NullStore};
use crate::protocol::{self, Operation};
use crate::{LogEntry, RequestLog, ServerCounts, folder};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use s3s::Body;
use s3s::service::S3Service;
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep, sleep_until};

/// Configured conditions; none by default.
#[derive(Debug, Default)]
pub struct Conditions {
    /// Delay of each request before it is served.
    pub latency: Duration,
    /// Bytes per second over all connections and both directions.
    pub bandwidth: Option<u64>,
    /// Most requests served at once; others queue.
    pub in_flight_max: Option<usize>,
    /// Share of requests that get 500 InternalError, 0 to 1.
    pub error_rate: f64,
    /// Seed of the choice: equal seeds fail equal requests.
    pub seed: u64,
    /// Requests per second above which 503 SlowDown is returned.
    pub requests_per_s_max: Option<u64>,
    /// Faults; the first one that matches a request applies.
    pub faults: Vec<Fault>,
}

impl Conditions {
    /// True without conditions other than latency.
    pub fn is_plain(&self) -> bool {
        self.bandwidth.is_none()
            && self.in_flight_max.is_none()
            && self.error_rate <= 0.0
            && self.requests_per_s_max.is_none()
            && self.faults.is_empty()
    }
}

/// Random failures of requests.
#[derive(Debug)]
pub struct ErrorChance {
    rate: f64,
    seed: u64,
    number: AtomicU64,
}

impl ErrorChance {
    /// Fails the share `rate` of all requests.
    pub fn new(rate: f64, seed: u64) -> ErrorChance {
        ErrorChance { rate, seed, number: AtomicU64::new(0) }
    }

    /// True if the next request fails. The nth result depends on n and the seed only.
    pub fn fails_next(&self) -> bool {
        if self.rate <= 0.0 {
            return false;
        }
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        // splitmix64 (Steele, Lea, Flood 2014), evaluated directly at its nth number.
        let step = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed.wrapping_add(step);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((mixed >> 11) as f64) < self.rate * (1u64 << 53) as f64
    }
}

/// Rate limiter for requests, with a burst of a tenth of a second.
#[derive(Debug)]
pub struct RequestRate {
    per_s: f64,
    /// Time of the last update, and available requests.
    state: Mutex<(Instant, f64)>,
}

impl RequestRate {
    /// A limiter with a full burst.
    pub fn new(per_s: u64, now: Instant) -> RequestRate {
        let per_s = per_s as f64;
        RequestRate { per_s, state: Mutex::new((now, RequestRate::burst(per_s))) }
    }

    fn burst(per_s: f64) -> f64 {
        (per_s / 10.0).max(1.0)
    }

    /// True if a request passes.
    pub fn passes(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        let (then, left) = *state;
        let since = now.saturating_duration_since(then).as_secs_f64();
        let left = (left + since * self.per_s).min(RequestRate::burst(self.per_s));
        let passes = left >= 1.0;
        *state = (then.max(now), if passes { left - 1.0 } else { left });
        passes
    }
}

/// Bandwidth limiter.
#[derive(Debug)]
pub struct Bandwidth {
    bytes_per_s: f64,
    /// Time at which all bytes so far have passed.
    empty_at: Mutex<Instant>,
}

impl Bandwidth {
    /// An idle limiter.
    pub fn new(bytes_per_s: u64, now: Instant) -> Bandwidth {
        Bandwidth { bytes_per_s: bytes_per_s.max(1) as f64, empty_at: Mutex::new(now) }
    }

    /// Preferred number of bytes per call: those of 10 ms.
    pub fn piece_bytes(&self) -> usize {
        ((self.bytes_per_s / 100.0) as usize).clamp(1, 256 << 10)
    }

    /// Adds bytes; returns the time at which they have passed.
    pub fn put(&self, bytes: usize, now: Instant) -> Instant {
        let mut empty_at = self.empty_at.lock();
        *empty_at = now.max(*empty_at) + Duration::from_secs_f64(bytes as f64 / self.bytes_per_s);
        *empty_at
    }
}

type Failure = Box<dyn Error + Send + Sync>;
/// A pending response.
type Answering =
    Pin<Box<dyn Future<Output = io::Result<Response<FaultedBody<Body, RequestNote>>>> + Send>>;

/// Server behind the layer.
#[derive(Clone)]
pub enum Backend {
    /// S3 on a folder.
    Folder(S3Service),
    /// The null server's store.
    Null(Arc<NullStore>),
}

/// The layer, shared by all connections.
pub struct Layer {
    backend: Backend,
    latency: Duration,
    chance: ErrorChance,
    gate: Option<RequestRate>,
    slots: Option<Arc<Semaphore>>,
    pipe: Option<Arc<Bandwidth>>,
    faults: Vec<Fault>,
    log: Option<RequestLog>,
    counts: Arc<ServerCounts>,
}

impl Layer {
    /// Creates a layer with conditions in front of a server.
    pub fn new(
        backend: Backend,
        conditions: Conditions,
        log: Option<RequestLog>,
        counts: Arc<ServerCounts>,
    ) -> Layer {
        let now = Instant::now();
        Layer {
            backend,
            latency: conditions.latency,
            chance: ErrorChance::new(conditions.error_rate, conditions.seed),
            gate: conditions.requests_per_s_max.map(|rate| RequestRate::new(rate, now)),
            slots: conditions.in_flight_max.map(|count| Arc::new(Semaphore::new(count))),
            pipe: conditions.bandwidth.map(|rate| Arc::new(Bandwidth::new(rate, now))),
            faults: conditions.faults,
            log,
            counts,
        }
    }

    /// Serves a connection to its end. Failures concern only this connection.
    pub async fn serve(self: Arc<Layer>, stream: TcpStream) {
        let fuse = ResetSwitch::default();
        let wire = LimitedStream::new(stream, fuse.clone(), self.pipe.clone());
        let service = service_fn(move |request| {
            let (layer, fuse) = (Arc::clone(&self), fuse.clone());
            let called = layer.call(request, fuse);
            Box::pin(async { called.await.map_err(io::Error::other) }) as Answering
        });
        let _ = http1::Builder::new().serve_connection(TokioIo::new(wire), service).await;
    }

    async fn call(
        self: Arc<Layer>,
        request: Request<Incoming>,
        fuse: ResetSwitch,
    ) -> Result<Response<FaultedBody<Body, RequestNote>>, Failure> {
        let (parts, incoming) = request.into_parts();
        let copies = parts.headers.contains_key("x-amz-copy-source");
        let (method, path) = (parts.method.as_str(), parts.uri.path());
        let query = parts.uri.query().unwrap_or("");
        let operation = Operation::of(method, path, query, copies);
        let described = FaultRequest { method, operation, path, query };
        let mut note = RequestNote::new(Arc::clone(&self), &described);
        if let Some(slots) = &self.slots {
            note.slot = Some(Arc::clone(slots).acquire_owned().await?);
        }
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        let mut fault = None;
        let verdict = if self.gate.as_ref().is_some_and(|gate| !gate.passes(Instant::now())) {
            Some((503, "SlowDown"))
        } else if self.chance.fails_next() {
            Some((500, "InternalError"))
        } else {
            fault = pick(&self.faults, &described);
            None
        };
        note.fault = fault.map(FaultEffect::kind);
        let side = fault.and_then(|fault| fault.side(operation));
        let on = |wanted| fault.filter(|_| side == Some(wanted));
        let received = Arc::clone(&note.received);
        let body = FaultedBody::new(incoming, on(BodySide::Request), fuse.clone(), received, ());
        let body = Body::http_body_unsync(body);
        let path = path.to_owned();
        let error = |status, code: &str, region: Option<&str>| {
            let message = "this error was asked for on the server's command line";
            protocol::error_response(StatusCode::from_u16(status)?, code, message, &path, region)
        };
        let mut response = match (verdict, fault) {
            (Some((status, code)), _) => {
                drain(body).await?;
                error(status, code, None)?
            }
            (None, Some(FaultEffect::Silent)) => {
                drain(body).await?;
                std::future::pending().await
            }
            (None, Some(FaultEffect::Error { status, code, region, late: false })) => {
                drain(body).await?;
                error(*status, code, region.as_deref())?
            }
            _ => {
                let request = Request::from_parts(parts, body);
                self.backend.respond(request, operation).await?
            }
        };
        if fuse.is_blown() {
            return Err("the request was cut".into());
        }
        match fault {
            Some(FaultEffect::Error { status, code, region, late: true }) => {
                drain(response.into_body()).await?;
                response = error(*status, code, region.as_deref())?;
            }
            Some(FaultEffect::Checksum) => falsify_checksums(&mut response),
            Some(FaultEffect::List { drop, add, swap }) => {
                let (mut parts, body) = response.into_parts();
                let page = body.collect().await?.to_bytes();
                let page = String::from_utf8_lossy(&page);
                let page = changed_page(&page, *drop, add.as_deref(), *swap);
                parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(page.len()));
                response = Response::from_parts(parts, Body::from(page));
            }
            _ => {}
        }
        note.status = response.status().as_u16();
        let sent = Arc::clone(&note.sent);
        let cut = on(BodySide::Response);
        Ok(response.map(|body| FaultedBody::new(body, cut, fuse, sent, note)))
    }
}

impl Backend {
    async fn respond(
        &self,
        request: Request<Body>,
        operation: Operation,
    ) -> Result<Response<Body>, Failure> {
        match self {
            Backend::Folder(service) => {
                let is_small = !operation.sends_payload();
                folder::respond(service, request, is_small).await
            }
            Backend::Null(store) => null::respond_layered(store, request, operation).await,
        }
    }
}

/// Reads and discards a body: answering earlier would make the client's write fail.
async fn drain(mut body: Body) -> Result<(), Failure> {
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(())
}

/// Changes the checksums of a response to wrong but well-formed ones.
fn falsify_checksums(response: &mut Response<Body>) {
    for (name, value) in response.headers_mut() {
        let is_sum = name.as_str().strip_prefix("x-amz-checksum-");
        if is_sum.is_none_or(|rest| rest == "type" || rest == "algorithm") {
            continue;
        }
        let mut bytes = value.as_bytes().to_vec();
        if let Some(first) = bytes.first_mut() {
            *first = if *first == b'A' { b'B' } else { b'A' };
        }
        if let Ok(wrong) = HeaderValue::from_bytes(&bytes) {
            *value = wrong;
        }
    }
}

/// Log entry of a request, written when it ends in any way.
struct RequestNote {
    layer: Arc<Layer>,
    method: String,
    operation: Operation,
    path: String,
    query: String,
    /// 0 until there is a response.
    status: u16,
    received: Arc<AtomicU64>,
    sent: Arc<AtomicU64>,
    start: Instant,
    fault: Option<&'static str>,
    slot: Option<OwnedSemaphorePermit>,
}

impl RequestNote {
    fn new(layer: Arc<Layer>, described: &FaultRequest<'_>) -> RequestNote {
        RequestNote {
            layer,
            method: described.method.to_owned(),
            operation: described.operation,
            path: described.path.to_owned(),
            query: described.query.to_owned(),
            status: 0,
            received: Arc::default(),
            sent: Arc::default(),
            start: Instant::now(),
            fault: None,
            slot: None,
        }
    }
}

impl Drop for RequestNote {
    fn drop(&mut self) {
        let received_bytes = self.received.load(Ordering::Relaxed);
        let sent_bytes = self.sent.load(Ordering::Relaxed);
        self.layer.counts.add(self.status, received_bytes, sent_bytes);
        let Some(log) = &self.layer.log else { return };
        log.add(&LogEntry {
            method: &self.method,
            operation: self.operation.name(),
            path: &self.path,
            query: &self.query,
            status: self.status,
            received_bytes,
            sent_bytes,
            took_s: self.start.elapsed().as_secs_f64(),
            fault: self.fault,
        });
    }
}

/// Switches the end of a connection from an orderly close (FIN) to a reset (RST).
#[derive(Clone, Debug, Default)]
pub struct ResetSwitch(Arc<AtomicBool>);

impl ResetSwitch {
    /// From now on the connection fails.
    pub fn blow(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// True after [`ResetSwitch::blow`].
    pub fn is_blown(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn check(&self) -> io::Result<()> {
        if self.is_blown() { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

/// A connection with limited bandwidth.
pub struct LimitedStream {
    stream: TcpStream,
    fuse: ResetSwitch,
    pipe: Option<Arc<Bandwidth>>,
    read_pause: Option<Pin<Box<Sleep>>>,
    write_pause: Option<Pin<Box<Sleep>>>,
}

impl LimitedStream {
    /// Wraps a connection; connections with the same pipe share its bandwidth.
    pub fn new(
        stream: TcpStream,
        fuse: ResetSwitch,
        pipe: Option<Arc<Bandwidth>>,
    ) -> LimitedStream {
        LimitedStream { stream, fuse, pipe, read_pause: None, write_pause: None }
    }
}

/// Waits until earlier bytes have passed.
fn rest(pause: &mut Option<Pin<Box<Sleep>>>, context: &mut Context<'_>) -> Poll<()> {
    if let Some(sleep) = pause {
        ready!(sleep.as_mut().poll(context));
        *pause = None;
    }
    Poll::Ready(())
}

/// Pause for this number of bytes.
fn pause(pipe: &Bandwidth, bytes: usize) -> Option<Pin<Box<Sleep>>> {
    let now = Instant::now();
    let until = pipe.put(bytes, now);
    // Timers have a resolution of milliseconds.
    let is_felt = until.saturating_duration_since(now).as_micros() > 1000;
    is_felt.then(|| Box::pin(sleep_until(tokio::time::Instant::from_std(until))))
}

impl AsyncRead for LimitedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.fuse.check()?;
        let Some(pipe) = &this.pipe else {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        };
        ready!(rest(&mut this.read_pause, context));
        let mut piece = vec![0; pipe.piece_bytes().min(buffer.remaining())];
        let mut taken = ReadBuf::new(&mut piece);
        ready!(Pin::new(&mut this.stream).poll_read(context, &mut taken))?;
        buffer.put_slice(taken.filled());
        this.read_pause = pause(pipe, taken.filled().len());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for LimitedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.fuse.check()?;
        let Some(pipe) = &this.pipe else {
            return Pin::new(&mut this.stream).poll_write(context, bytes);
        };
        ready!(rest(&mut this.write_pause, context));
        let piece = &bytes[..bytes.len().min(pipe.piece_bytes())];
        let count = ready!(Pin::new(&mut this.stream).poll_write(context, piece))?;
        this.write_pause = pause(pipe, count);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.fuse.check()?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

impl Drop for LimitedStream {
    fn drop(&mut self) {
        if self.fuse.is_blown() {
            // Closing then sends RST (socket(7), SO_LINGER).
            let _ = self.stream.set_zero_linger();
        }
    }
}

/// Time for sent bytes to leave before a connection is reset: a reset at once would overtake them.
const FLUSH: Duration = Duration::from_millis(30);

/// A wrapped body; `T` is kept alive with it.
pub struct FaultedBody<B, T> {
    inner: B,
    fault: Option<FaultEffect>,
    fuse: ResetSwitch,
    /// Bytes passed on so far.
    passed: Arc<AtomicU64>,
    /// Rest of a piece taken from the inner body.
    rest: Bytes,
    pause: Option<Pin<Box<Sleep>>>,
    /// True after the pause before a cut.
    flushed: bool,
    _companion: T,
}

impl<B, T> FaultedBody<B, T> {
    /// Wraps a body with `fault`, if it is one of bodies.
    pub fn new(
        inner: B,
        fault: Option<&FaultEffect>,
        fuse: ResetSwitch,
        passed: Arc<AtomicU64>,
        companion: T,
    ) -> FaultedBody<B, T> {
        FaultedBody {
            inner,
            fault: fault.cloned(),
            fuse,
            passed,
            rest: Bytes::new(),
            pause: None,
            flushed: false,
            _companion: companion,
        }
    }

    /// Number of bytes after which it ends, and whether by a reset instead of an orderly close.
    fn end(&self) -> Option<(u64, bool)> {
        match self.fault {
            Some(FaultEffect::Reset { after, .. }) => Some((after, true)),
            Some(FaultEffect::Truncate { after }) => Some((after, false)),
            _ => None,
        }
    }

    /// Ends a body at its cut.
    fn cut(&mut self) -> Option<&'static str> {
        let (after, resets) = self.end()?;
        if self.passed.load(Ordering::Relaxed) < after {
            return None;
        }
        if !self.flushed {
            self.flushed = true;
            self.pause = Some(Box::pin(sleep(FLUSH)));
            return None;
        }
        if resets {
            self.fuse.blow();
        }
        Some("the body was cut")
    }

    /// Takes as much of a piece as may pass now, with changes applied; keeps the rest.
    fn pass(&mut self, mut piece: Bytes) -> Bytes {
        let passed = self.passed.load(Ordering::Relaxed);
        match self.fault {
            Some(FaultEffect::Reset { after, .. } | FaultEffect::Truncate { after }) => {
                piece.truncate(usize::try_from(after - passed).unwrap_or(usize::MAX));
            }
            Some(FaultEffect::Corrupt { at, .. }) => {
                let place = at.checked_sub(passed).and_then(|place| usize::try_from(place).ok());
                if let Some(place) = place.filter(|place| *place < piece.len()) {
                    let mut changed = BytesMut::from(piece.as_ref());
                    changed[place] ^= 1;
                    piece = changed.freeze();
                }
            }
            Some(FaultEffect::Slow { rate, .. }) => {
                let step = (rate / 20).max(1);
                self.rest = piece.split_off(piece.len().min(step as usize));
                let took = piece.len() as f64 / rate as f64;
                self.pause = Some(Box::pin(sleep(Duration::from_secs_f64(took))));
            }
            _ => {}
        }
        self.passed.fetch_add(piece.len() as u64, Ordering::Relaxed);
        piece
    }
}

impl<B, T> HttpBody for FaultedBody<B, T>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    T: Unpin,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        loop {
            if let Some(pause) = &mut this.pause {
                ready!(pause.as_mut().poll(context));
                this.pause = None;
            }
            if let Some(why) = this.cut() {
                return Poll::Ready(Some(Err(io::Error::other(why))));
            }
            if this.pause.is_some() {
                continue;
            }
            if !this.rest.is_empty() {
                let rest = std::mem::take(&mut this.rest);
                return Poll::Ready(Some(Ok(Frame::data(this.pass(rest)))));
            }
            let frame = match ready!(Pin::new(&mut this.inner).poll_frame(context)) {
                None => return Poll::Ready(None),
                Some(frame) => frame.map_err(io::Error::other)?,
            };
            match frame.into_data() {
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => return Poll::Ready(Some(Ok(Frame::data(this.pass(piece))))),
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.end().is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.fault {
            None | Some(FaultEffect::Corrupt { .. }) if self.rest.is_empty() => {
                self.inner.size_hint()
            }
            _ => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_a_share_and_repeats() {
        let draw = |rate, seed| {
            let chance = ErrorChance::new(rate, seed);
            (0..10_000).map(|_| chance.fails_next()).collect::<Vec<_>>()
        };
        let count = |rate, seed| draw(rate, seed).iter().filter(|hit| **hit).count();
        assert_eq!((count(0.0, 1), count(1.0, 1)), (0, 10_000));
        assert!((2_800..3_200).contains(&count(0.3, 7)), "{}", count(0.3, 7));
        assert_eq!(draw(0.5, 3), draw(0.5, 3));
        assert_ne!(draw(0.5, 3), draw(0.5, 4));
    }

    #[test]
    fn a_gate_lets_its_rate_through() {
        let start = Instant::now();
        let gate = RequestRate::new(100, start);
        let at = |ms| start + Duration::from_millis(ms);
        let passed = |ms| (0..50).filter(|_| gate.passes(at(ms))).count();
        assert_eq!(passed(0), 10);
        assert_eq!(passed(50), 5);
        assert_eq!(passed(40), 0);
        assert_eq!(passed(10_000), 10);
    }

    #[test]
    fn a_pipe_takes_its_time() {
        let start = Instant::now();
        let pipe = Bandwidth::new(1000, start);
        assert_eq!(pipe.put(500, start), start + Duration::from_millis(500));
        assert_eq!(pipe.put(500, start), start + Duration::from_millis(1000));
        let later = start + Duration::from_secs(9);
        assert_eq!(pipe.put(100, later), later + Duration::from_millis(100));
        assert_eq!(pipe.piece_bytes(), 10);
    }
}
