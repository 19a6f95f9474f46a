//! One HTTP/1.1 connection: opened, driven by whoever uses it, watched for standing still.
//!
//! A connection has no task of its own: the request that uses it polls it. That saves two wake-ups
//! a request, lets a slow reader push back, and cuts the connection when the request is dropped.

use super::outgoing::Outgoing;
use super::stream::Stream;
use super::told::Told;
use crate::meter::Look;
use bytes::Bytes;
use hakobu_sys::socket::TcpInfo;
use http::{Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most that is read at once: a large body comes in few pieces.
const READ_MAX: usize = 512 * 1024;
/// Whether a connection moves, looked at once in a while by [`Watch::look`].
#[derive(Debug)]
pub(super) struct Watch {
    moved: Cell<u64>,
    seen: Cell<u64>,
    since: Cell<Instant>,
    /// How long it may stand still; zero while nobody waits for it.
    patience: Cell<Duration>,
    cut: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    /// Whether the whole body of the request has been handed over, and whether all of it has been
    /// written to the kernel.
    body_over: Cell<bool>,
    wrote: Cell<bool>,
    sent: Cell<bool>,
    /// We wait ourselves: that is no standing still.
    held: Cell<bool>,
    /// The most that is read at once.
    read_max: Cell<usize>,
    /// The connection is to look at itself when it is polled next, and what it saw then.
    asked: Cell<bool>,
    look: Cell<Option<Look>>,
    /// What the kernel had counted at the look before.
    counted: Cell<TcpInfo>,
}

impl Watch {
    fn new() -> Rc<Watch> {
        Rc::new(Watch {
            moved: Cell::new(0),
            seen: Cell::new(0),
            since: Cell::new(Instant::now()),
            patience: Cell::new(Duration::ZERO),
            cut: Cell::new(false),
            waker: RefCell::new(None),
            body_over: Cell::new(false),
            wrote: Cell::new(false),
            sent: Cell::new(false),
            held: Cell::new(false),
            read_max: Cell::new(usize::MAX),
            asked: Cell::new(false),
            look: Cell::new(None),
            counted: Cell::default(),
        })
    }

    /// Cuts the connection where it has stood still for longer than it may; `patience_max`
    /// shortens that for all.
    pub fn look(&self, now: Instant, patience_max: Duration) {
        if self.patience.get().is_zero() {
            return;
        }
        if self.seen.replace(self.moved.get()) != self.moved.get() || self.held.get() {
            self.since.set(now);
        } else if now.duration_since(self.since.get()) >= self.patience.get().min(patience_max) {
            self.cut.set(true);
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
    }

    /// Asks a connection that carries a request for its state, to be had from
    /// [`Watch::seen_look`] a moment later; `false` for one that is idle.
    pub fn ask(&self) -> bool {
        let busy = !self.patience.get().is_zero() && self.waker.borrow().is_some();
        if busy {
            self.asked.set(true);
            // Taken: who is polled puts it back.
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
        busy
    }

    /// What the connection saw since.
    pub fn seen_look(&self) -> Option<Look> {
        self.look.take()
    }

    fn look_at(&self, stream: &Stream) {
        self.asked.set(false);
        let Ok(info) = stream.info() else { return };
        let before = self.counted.replace(info);
        self.look.set(Some(Look {
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

    fn progress(&self) {
        self.moved.set(self.moved.get().wrapping_add(1));
    }

    /// Whether nothing of the body of the request is left to be handed over.
    pub fn body_is_over(&self, over: bool) {
        self.body_over.set(over);
        self.wrote.set(false);
        self.sent.set(false);
    }

    /// Whether we wait ourselves.
    pub fn hold(&self, held: bool) {
        self.held.set(held);
        self.progress();
    }

    /// Reads no more than so many bytes at once from now on.
    pub fn read_at_most(&self, bytes: usize) {
        self.read_max.set(bytes.max(1));
    }

    fn begin(&self, patience: Duration) {
        self.held.set(false);
        self.progress();
        self.patience.set(patience);
    }

    fn end(&self) {
        self.patience.set(Duration::ZERO);
    }

    fn wait(&self, cx: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        match &mut *waker {
            Some(old) => old.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}

/// A stream that tells its watch when bytes move.
struct Watched {
    stream: Stream,
    watch: Rc<Watch>,
}

/// What broke on a connection.
#[derive(Debug)]
pub(super) enum Broken {
    /// Nothing of the request was sent: the connection had been closed before.
    Unsent,
    /// It broke, or the answer is no HTTP.
    Failed(String),
    /// It stood still.
    TimedOut,
}

type Driver = Pin<Box<Connection<TokioIo<Watched>, Outgoing>>>;

/// An open connection.
pub(super) struct Conn {
    sender: SendRequest<Outgoing>,
    /// Gone when the connection is over: only then does a request that still waits hear of it.
    driver: Option<Driver>,
    watch: Rc<Watch>,
    /// Whether it carried a request before.
    pub reused: bool,
}

impl Conn {
    /// Makes an HTTP connection of a stream.
    ///
    /// # Errors
    /// hyper's, as a sentence.
    pub async fn new(stream: Stream) -> Result<Conn, String> {
        let watch = Watch::new();
        let io = TokioIo::new(Watched { stream, watch: Rc::clone(&watch) });
        let made = Builder::new().max_buf_size(READ_MAX).handshake(io).await;
        let (sender, driver) = made.map_err(|e| e.to_string())?;
        Ok(Conn { sender, driver: Some(Box::pin(driver)), watch, reused: false })
    }

    /// The watch to look at.
    pub fn watch(&self) -> &Rc<Watch> {
        &self.watch
    }

    /// Sends a request and waits for the head of its answer. The connection may stand still for
    /// `patience`. Who is `told` hears how far it is.
    ///
    /// # Errors
    /// How it broke; the connection is of no use then.
    pub async fn exchange(
        &mut self,
        mut request: Request<Outgoing>,
        patience: Duration,
        told: Option<Told>,
    ) -> Result<Response<Incoming>, Broken> {
        request.body_mut().watched_by(&self.watch);
        self.watch.begin(patience);
        let answered = self.answer(request, told).await;
        self.watch.end();
        answered
    }

    async fn answer(
        &mut self,
        request: Request<Outgoing>,
        mut told: Option<Told>,
    ) -> Result<Response<Incoming>, Broken> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let (driver, watch) = (&mut self.driver, &self.watch);
        poll_fn(|cx| {
            drive(driver, cx);
            match answer.as_mut().poll(cx) {
                Poll::Ready(Ok(response)) => {
                    if let Some(told) = &told {
                        told.answered(response.status().is_success());
                    }
                    return Poll::Ready(Ok(response));
                }
                Poll::Ready(Err(mut e)) => {
                    return Poll::Ready(Err(match e.take_message() {
                        Some(_) => Broken::Unsent,
                        None => Broken::Failed(reason(e.error())),
                    }));
                }
                Poll::Pending => {}
            }
            if let Some(told) = told.as_mut().filter(|_| watch.sent.get()) {
                told.sent();
            }
            if watch.cut.get() {
                return Poll::Ready(Err(Broken::TimedOut));
            }
            watch.wait(cx);
            Poll::Pending
        })
        .await
    }

    /// The next piece of the body of the answer; `None` at its end. The connection may stand
    /// still for `patience`; who reads slowly is not a server that stands still.
    ///
    /// # Errors
    /// How it broke.
    pub async fn piece(
        &mut self,
        body: &mut Incoming,
        patience: Duration,
    ) -> Result<Option<Bytes>, Broken> {
        self.watch.begin(patience);
        let piece = poll_fn(|cx| self.poll_piece(body, cx)).await;
        self.watch.end();
        piece
    }

    fn poll_piece(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Broken>> {
        let mut driven = false;
        loop {
            match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Poll::Ready(Ok(Some(data))),
                    // Trailers are of no interest; the end follows.
                    _ => continue,
                },
                Poll::Ready(Some(Err(e))) => {
                    return Poll::Ready(Err(Broken::Failed(reason(&e))));
                }
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                Poll::Pending if driven => break,
                Poll::Pending => {
                    drive(&mut self.driver, cx);
                    driven = true;
                }
            }
        }
        if self.watch.cut.get() {
            return Poll::Ready(Err(Broken::TimedOut));
        }
        self.watch.wait(cx);
        Poll::Pending
    }

    /// Puts the connection to rest after the end of a body; `false` when it cannot carry another
    /// request.
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

/// Lets a connection read and write what it can. Its failure reaches the request or the body, so
/// that only its end is noted here.
fn drive(driver: &mut Option<Driver>, cx: &mut Context<'_>) {
    if driver.as_mut().is_some_and(|driver| driver.as_mut().poll(cx).is_ready()) {
        *driver = None;
    }
}

/// hyper's words with their cause.
fn reason(e: &hyper::Error) -> String {
    if e.is_incomplete_message() {
        return "the server closed the connection before its answer was complete".to_owned();
    }
    match std::error::Error::source(e) {
        Some(cause) => format!("{e}: {cause}"),
        None => e.to_string(),
    }
}

impl Watched {
    fn look_if_asked(&self) {
        if self.watch.asked.get() {
            self.watch.look_at(&self.stream);
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.look_if_asked();
        let most = self.watch.read_max.get();
        if most >= buf.remaining() {
            let before = buf.filled().len();
            let done = Pin::new(&mut self.stream).poll_read(cx, buf);
            if buf.filled().len() > before {
                self.watch.progress();
            }
            return done;
        }
        let got = {
            let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
            part.filled().len()
        };
        buf.advance(got);
        if got > 0 {
            self.watch.progress();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.look_if_asked();
        let done = Pin::new(&mut self.stream).poll_write(cx, buf);
        if let Poll::Ready(Ok(1..)) = done {
            self.watch.progress();
            self.watch.wrote.set(true);
        }
        done
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.look_if_asked();
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        if let Poll::Ready(Ok(1..)) = done {
            self.watch.progress();
            self.watch.wrote.set(true);
        }
        done
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(cx);
        // hyper flushes when it has written all that it was given.
        if done.is_ready() && self.watch.wrote.get() && self.watch.body_over.get() {
            self.watch.sent.set(true);
        }
        done
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
