//! An HTTP/1.1 connection over TCP or TLS: opened with messages for failures, driven by its user, with a watchdog for stalls.
//!
//! A connection has no task of its own: the request that uses it polls it. That saves two wake-ups per
//! request, provides backpressure by slow readers, and closes the connection when the request is dropped.

use crate::ErrorKind;
use crate::client::pool::DnsCache;
use crate::client::request::{PhaseReporter, RequestBody};
use crate::endpoint::Route;
use bytes::Bytes;
use hakobu_core::error::without_number;
use hakobu_core::meter::ConnectionSample;
use hakobu_sys::socket::{TcpInfo, tcp_info};
use http::{Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::CertificateError;
use rustls_pki_types::ServerName;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A stream that reports progress to its watch.
struct Watched {
    stream: Stream,
    watch: Rc<Watchdog>,
}

/// Failure of a connection.
#[derive(Debug)]
pub(crate) enum ExchangeError {
    /// The connection had been closed before anything was sent.
    Unsent,
    /// The connection broke, or the response is not HTTP.
    Failed(String),
    /// The connection stalled for this long.
    TimedOut(Duration),
}

type Driver = Pin<Box<Connection<TokioIo<Watched>, RequestBody>>>;

/// An open connection.
pub(crate) struct Conn {
    sender: SendRequest<RequestBody>,
    /// Dropped at the end of the connection: only then does a waiting request get the error.
    driver: Option<Driver>,
    /// Watchdog of this connection.
    pub watch: Rc<Watchdog>,
    /// True if it has carried a request before.
    pub reused: bool,
}

impl Conn {
    /// Creates an HTTP connection over a stream.
    pub async fn new(stream: Stream) -> Result<Conn, String> {
        let watch = Rc::<Watchdog>::default();
        watch.read_at_most(usize::MAX);
        let io = TokioIo::new(Watched { stream, watch: Rc::clone(&watch) });
        let made = Builder::new().max_buf_size(READ_MAX).handshake(io).await;
        let (sender, driver) = made.map_err(|e| e.to_string())?;
        Ok(Conn { sender, driver: Some(Box::pin(driver)), watch, reused: false })
    }

    /// Sends a request and waits for the head of its response. The connection may stall for `timeout`.
    /// `reporter` receives reports of its progress.
    ///
    /// # Errors
    /// The failure, after which the connection is unusable.
    pub async fn exchange(
        &mut self,
        mut request: Request<RequestBody>,
        timeout: Duration,
        reporter: Option<PhaseReporter>,
    ) -> Result<Response<Incoming>, ExchangeError> {
        request.body_mut().watched_by(&self.watch);
        self.watch.begin(timeout);
        self.watch.head_bytes.set(Some(HEAD_MAX));
        let head = self.response_head(request, reporter).await;
        self.watch.head_bytes.set(None);
        self.watch.end();
        head
    }

    async fn response_head(
        &mut self,
        request: Request<RequestBody>,
        mut reporter: Option<PhaseReporter>,
    ) -> Result<Response<Incoming>, ExchangeError> {
        let mut response = pin!(self.sender.try_send_request(request));
        let (driver, watch) = (&mut self.driver, &self.watch);
        poll_fn(|cx| {
            drive(driver, cx);
            match response.as_mut().poll(cx) {
                Poll::Ready(Ok(response)) => {
                    if let Some(reporter) = &reporter {
                        reporter.answered(response.status().is_success());
                    }
                    return Poll::Ready(Ok(response));
                }
                Poll::Ready(Err(mut e)) => {
                    return Poll::Ready(Err(match e.take_message() {
                        Some(_) => ExchangeError::Unsent,
                        None => ExchangeError::Failed(reason(e.error())),
                    }));
                }
                Poll::Pending => {}
            }
            if let Some(reporter) = reporter.as_mut().filter(|_| watch.sent.get()) {
                reporter.sent();
            }
            if let Some(stalled) = watch.cut.get() {
                return Poll::Ready(Err(ExchangeError::TimedOut(stalled)));
            }
            watch.wait(cx);
            Poll::Pending
        })
        .await
    }

    /// Next piece of the response body; `None` at its end. The connection may stall for `timeout`; a slow
    /// reader does not count as a stall.
    pub async fn piece(
        &mut self,
        body: &mut Incoming,
        timeout: Duration,
    ) -> Result<Option<Bytes>, ExchangeError> {
        self.watch.begin(timeout);
        let piece = poll_fn(|cx| self.poll_piece(body, cx)).await;
        self.watch.end();
        piece
    }

    fn poll_piece(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ExchangeError>> {
        let mut driven = false;
        loop {
            match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Poll::Ready(Ok(Some(data))),
                    // Ignore trailers; the end follows.
                    _ => continue,
                },
                Poll::Ready(Some(Err(e))) => {
                    return Poll::Ready(Err(ExchangeError::Failed(reason(&e))));
                }
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                Poll::Pending if driven => break,
                Poll::Pending => {
                    drive(&mut self.driver, cx);
                    driven = true;
                }
            }
        }
        if let Some(stalled) = self.watch.cut.get() {
            return Poll::Ready(Err(ExchangeError::TimedOut(stalled)));
        }
        self.watch.wait(cx);
        Poll::Pending
    }

    /// Waits until the connection is idle after the end of a body; returns false if it cannot be reused.
    pub async fn rest(&mut self) -> bool {
        self.reused = true;
        if !self.sender.is_ready() {
            poll_fn(|cx| {
                drive(&mut self.driver, cx);
                Poll::Ready(())
            })
            .await;
        }
        self.driver.is_some() && self.sender.is_ready()
    }
}

/// Lets a connection read and write. Errors are delivered to the request or body, so only the end is noted
/// here.
fn drive(driver: &mut Option<Driver>, cx: &mut Context<'_>) {
    if driver.as_mut().is_some_and(|driver| driver.as_mut().poll(cx).is_ready()) {
        *driver = None;
    }
}

/// hyper's message with its cause.
fn reason(e: &hyper::Error) -> String {
    if e.is_incomplete_message() {
        return "the server closed the connection before its response was complete".to_owned();
    }
    match std::error::Error::source(e) {
        Some(cause) => format!("{e}: {cause}"),
        None => e.to_string(),
    }
}

impl Watched {
    fn sample_if_requested(&self) {
        if self.watch.sample_requested.get() {
            self.watch.sample(&self.stream);
        }
    }

    fn note_written(&self, done: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(1..)) = done {
            self.watch.progress();
            self.watch.wrote.set(true);
        }
        done
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.sample_if_requested();
        let most = self.watch.read_max.get();
        if most >= buf.remaining() {
            let before = buf.filled().len();
            ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
            return Poll::Ready(self.watch.read(buf.filled().len() - before));
        }
        let got = {
            let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
            part.filled().len()
        };
        buf.advance(got);
        Poll::Ready(self.watch.read(got))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.sample_if_requested();
        let done = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.note_written(done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.sample_if_requested();
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.note_written(done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(cx);
        // hyper flushes after writing all available data.
        if done.is_ready() && self.watch.wrote.get() && self.watch.body_over.get() {
            self.watch.sent.set(true);
        }
        done
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Most bytes per read: a large body arrives in few pieces.
pub(crate) const READ_MAX: usize = 512 * 1024;
/// Most bytes read before the head of the response is complete: the parser's largest head, data received with
/// it, and many interim responses (1xx).
pub(crate) const HEAD_MAX: usize = 4 * READ_MAX;

/// Progress of a connection, checked periodically by [`Watchdog::look`].
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    moved: Cell<u64>,
    seen: Cell<u64>,
    /// Time of the last check that saw progress.
    since: Cell<Option<Instant>>,
    /// Time limit without progress; zero while no task waits.
    timeout: Cell<Duration>,
    /// The limit that a stall exceeded: the connection is given up.
    pub cut: Cell<Option<Duration>>,
    waker: RefCell<Option<Waker>>,
    /// Whether the whole request body has been passed on, and whether all of it has been written to the
    /// kernel.
    pub body_over: Cell<bool>,
    pub wrote: Cell<bool>,
    pub sent: Cell<bool>,
    /// True while we hold the connection ourselves, which is not a stall.
    held: Cell<bool>,
    /// Most bytes per read, see [`Watchdog::read_at_most`].
    pub read_max: Cell<usize>,
    /// Bytes that may be read before the head of the response is complete; `None` in its body. Bytes before
    /// it are not progress: a server can send interim responses for ever.
    pub head_bytes: Cell<Option<usize>>,
    /// True to sample the connection at its next poll; and the last sample.
    pub sample_requested: Cell<bool>,
    look: Cell<Option<ConnectionSample>>,
    /// Kernel counters of the previous sample.
    counted: Cell<TcpInfo>,
}

impl Watchdog {
    /// Aborts the connection if it has stalled beyond its limit; `timeout_max` lowers the limit of all.
    pub fn look(&self, now: Instant, timeout_max: Duration) {
        if self.timeout.get().is_zero() {
            return;
        }
        let timeout = self.timeout.get().min(timeout_max);
        if self.seen.replace(self.moved.get()) != self.moved.get() || self.held.get() {
            self.since.set(Some(now));
        } else if self.since.get().is_some_and(|since| now.duration_since(since) >= timeout) {
            self.cut.set(Some(timeout));
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
    }

    /// Requests a sample of an active connection, available from [`Watchdog::take_sample`] a moment later; returns
    /// false if it is idle.
    pub fn request_sample(&self) -> bool {
        let busy = !self.timeout.get().is_zero() && self.waker.borrow().is_some();
        if busy {
            self.sample_requested.set(true);
            // The polled task registers the waker again.
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
        busy
    }

    /// Last sample of the connection.
    pub fn take_sample(&self) -> Option<ConnectionSample> {
        self.look.take()
    }

    pub fn sample(&self, stream: &Stream) {
        self.sample_requested.set(false);
        let Ok(info) = stream.info() else { return };
        let before = self.counted.replace(info);
        self.look.set(Some(ConnectionSample {
            rtt_us: info.rtt_us.into(),
            rtt_least_us: info.min_rtt_us.unwrap_or(0).into(),
            unsent: info.unsent_bytes > 0,
            delivery_bytes_per_s: info.delivery_bytes_per_s,
            busy_us: info.busy_us.saturating_sub(before.busy_us),
            receiver_us: info.receiver_limited_us.saturating_sub(before.receiver_limited_us),
            buffer_us: info.buffer_limited_us.saturating_sub(before.buffer_limited_us),
            retransmits: info.retransmits.saturating_sub(before.retransmits).into(),
        }));
    }

    /// Records received bytes.
    ///
    /// # Errors
    /// Too many before the head of the response.
    pub fn read(&self, bytes: usize) -> io::Result<()> {
        match self.head_bytes.get() {
            None if bytes > 0 => self.progress(),
            None => {}
            Some(left) if left < bytes => {
                return Err(io::Error::other("the server sends interim responses without an end"));
            }
            Some(left) => self.head_bytes.set(Some(left - bytes)),
        }
        Ok(())
    }

    pub fn progress(&self) {
        self.moved.set(self.moved.get().wrapping_add(1));
    }

    /// Records whether the whole request body has been passed on.
    pub fn body_is_over(&self, over: bool) {
        self.body_over.set(over);
        self.wrote.set(false);
        self.sent.set(false);
    }

    /// Sets whether we hold the connection ourselves.
    pub fn hold(&self, held: bool) {
        self.held.set(held);
        self.progress();
    }

    /// Limits the bytes per read from now on.
    pub fn read_at_most(&self, bytes: usize) {
        self.read_max.set(bytes.max(1));
    }

    pub fn begin(&self, timeout: Duration) {
        self.held.set(false);
        self.progress();
        self.timeout.set(timeout);
    }

    pub fn end(&self) {
        self.timeout.set(Duration::ZERO);
    }

    pub fn wait(&self, cx: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        match &mut *waker {
            Some(old) => old.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}

/// Addresses tried before an attempt fails.
const ADDRESSES_MAX: usize = 3;

/// Longest time to wait for a handshake; the next one starts soon.
const HANDSHAKE_MAX: Duration = Duration::from_millis(900);

/// Bytes received by one call for TLS, two records: rustls asks for 4 KiB at a time.
const TLS_READ_BYTES: usize = 32 << 10;

/// A TCP stream, with or without TLS.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<BufReader<TcpStream>>>),
}

/// Opens a connection along a route, rotating through its addresses. The kernel's receive buffer is limited to
/// `ahead_bytes`.
///
/// # Errors
/// `Connection`, `TimedOut`, or `Settings` for an untrusted certificate, with a message that names the endpoint.
pub(crate) async fn dial(
    dns: &DnsCache,
    route: &Route,
    tls: Option<&TlsConnector>,
    timeout: Duration,
    ahead_bytes: Option<u32>,
) -> Result<Stream, (ErrorKind, String)> {
    let (host, port) = first_hop(route);
    let through = route.proxy.as_ref().map_or(String::new(), |proxy| {
        format!(" by way of the proxy {}:{}", proxy.host, proxy.port)
    });
    let cannot = |why: &str| format!("cannot connect to {}{through}: {why}", route.url());
    let mut last = String::new();
    for _ in 0..ADDRESSES_MAX {
        let address =
            dns.next(host, port).await.map_err(|why| (ErrorKind::Connection, cannot(&why)))?;
        match tokio::time::timeout(timeout, open(dns, address, route, tls, ahead_bytes)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(e)) => {
                if let Some(tls) = e.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>())
                    && let rustls::Error::InvalidCertificate(why) = tls
                {
                    let why = format!(
                        "its certificate is not trusted ({}); --ca-bundle names one to \
                         trust, --no-verify-ssl trusts all",
                        refusal(why)
                    );
                    return Err((ErrorKind::Settings, cannot(&why)));
                }
                last = describe(&e, address);
            }
            Err(_) if dns.drop_unreachable(host, port, address) == 0 => {
                let why = format!("no response from {address} within {} s", timeout.as_secs_f64());
                return Err((ErrorKind::TimedOut, cannot(&why)));
            }
            Err(_) => continue,
        }
        if dns.drop_unreachable(host, port, address) == 0 {
            break;
        }
    }
    Err((ErrorKind::Connection, cannot(&last)))
}

/// Duration of a TCP handshake along a route, microseconds: opens and closes a connection. The kernel measures
/// it between SYN and SYN-ACK, so the load of this thread has no influence. `None` on a timeout or if the
/// kernel does not report it.
pub(crate) async fn handshake_us(dns: &DnsCache, route: &Route) -> Option<u64> {
    let (host, port) = first_hop(route);
    let address = dns.next(host, port).await.ok()?;
    let opened = tokio::time::timeout(HANDSHAKE_MAX, TcpStream::connect(address)).await;
    let rtt_us = tcp_info(opened.ok()?.ok()?).ok()?.rtt_us;
    (rtt_us > 0).then_some(u64::from(rtt_us))
}

/// Address to connect to: the proxy, if there is one.
fn first_hop(route: &Route) -> (&str, u16) {
    let proxy = route.proxy.as_ref().map(|proxy| (proxy.host.as_str(), proxy.port));
    proxy.unwrap_or((&route.host, route.port))
}

/// Reason for rejecting a certificate.
fn refusal(why: &CertificateError) -> &'static str {
    use CertificateError as E;
    match why {
        E::Expired | E::ExpiredContext { .. } => "it has expired",
        E::NotValidYet | E::NotValidYetContext { .. } => "it is not valid yet",
        E::NotValidForName | E::NotValidForNameContext { .. } => "it is for another host name",
        E::UnknownIssuer => "its issuer is unknown",
        E::Revoked => "it was revoked",
        E::BadSignature => "its signature is wrong",
        E::BadEncoding => "it cannot be read",
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => "it is not for servers",
        // What a server has that is its own authority.
        E::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "it is signed by itself"
        }
        _ => "it is not acceptable",
    }
}

fn describe(e: &io::Error, address: SocketAddr) -> String {
    if let Some(tls) = e.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>()) {
        return match tls {
            rustls::Error::InvalidMessage(_) => {
                "it does not speak TLS: give http:// in place of https://".to_owned()
            }
            rustls::Error::AlertReceived(_) => "it refuses the TLS connection".to_owned(),
            _ => "the TLS connection failed".to_owned(),
        };
    }
    match e.kind() {
        io::ErrorKind::ConnectionRefused => format!("no server is listening at {address}"),
        io::ErrorKind::UnexpectedEof => "it closes the connection; is it HTTPS at all?".to_owned(),
        _ => format!("{address}: {}", without_number(&e.to_string())),
    }
}

async fn open(
    dns: &DnsCache,
    address: SocketAddr,
    route: &Route,
    tls: Option<&TlsConnector>,
    ahead_bytes: Option<u32>,
) -> io::Result<Stream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    if let Some(bytes) = ahead_bytes {
        // Before connecting: an advertised window cannot be reduced later (tcp(7)).
        socket.set_recv_buffer_size(bytes)?;
    }
    let begun = Instant::now();
    let mut tcp = socket.connect(address).await?;
    dns.record_connect_time(begun.elapsed());
    tcp.set_nodelay(true)?;
    let Some(tls) = tls else { return Ok(Stream::Plain(tcp)) };
    if let Some(proxy) = &route.proxy {
        proxy.open_tunnel(&mut tcp, (&route.host, route.port)).await?;
    }
    let name = ServerName::try_from(route.host.clone()).map_err(io::Error::other)?;
    let tcp = BufReader::with_capacity(TLS_READ_BYTES, tcp);
    Ok(Stream::Tls(Box::new(tls.connect(name, tcp).await?)))
}

impl Stream {
    /// Kernel state of the connection.
    pub fn info(&self) -> io::Result<TcpInfo> {
        match self {
            Stream::Plain(tcp) => tcp_info(tcp),
            Stream::Tls(tls) => tcp_info(tls.get_ref().0.get_ref()),
        }
    }
}

/// Calls a method of the stream that there is.
macro_rules! on_either {
    ($stream:expr, $io:ident => $call:expr) => {
        match $stream {
            Stream::Plain($io) => $call,
            Stream::Tls($io) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        on_either!(self.get_mut(), io => Pin::new(io).poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        on_either!(self.get_mut(), io => Pin::new(io).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_either!(self.get_mut(), io => Pin::new(io).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        on_either!(self, io => io.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(self.get_mut(), io => Pin::new(io).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(self.get_mut(), io => Pin::new(io).poll_shutdown(cx))
    }
}
