//! An HTTP/1.1 connection: driven by its user, with a watchdog for stalls.
//!
//! A connection has no task of its own: the request that uses it polls it. That saves two wake-ups per
//! request, provides backpressure by slow readers, and closes the connection when the request is dropped.

use super::outgoing::Outgoing;
use super::reporter::Reporter;
use super::stream::Stream;
use super::watch::{HEAD_MAX, READ_MAX, Watch};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that reports progress to its watch.
struct Watched {
    stream: Stream,
    watch: Rc<Watch>,
}

/// Failure of a connection.
#[derive(Debug)]
pub(super) enum Broken {
    /// The connection had been closed before anything was sent.
    Unsent,
    /// The connection broke, or the response is not HTTP.
    Failed(String),
    /// The connection stalled.
    TimedOut,
}

type Driver = Pin<Box<Connection<TokioIo<Watched>, Outgoing>>>;

/// An open connection.
pub(super) struct Conn {
    sender: SendRequest<Outgoing>,
    /// Dropped at the end of the connection: only then does a waiting request get the error.
    driver: Option<Driver>,
    /// Watch of this connection.
    pub watch: Rc<Watch>,
    /// True if it has carried a request before.
    pub reused: bool,
}

impl Conn {
    /// Creates an HTTP connection over a stream.
    ///
    /// # Errors
    /// Those of hyper, as a message.
    pub async fn new(stream: Stream) -> Result<Conn, String> {
        let watch = Rc::<Watch>::default();
        watch.read_at_most(usize::MAX);
        let io = TokioIo::new(Watched { stream, watch: Rc::clone(&watch) });
        let made = Builder::new().max_buf_size(READ_MAX).handshake(io).await;
        let (sender, driver) = made.map_err(|e| e.to_string())?;
        Ok(Conn { sender, driver: Some(Box::pin(driver)), watch, reused: false })
    }

    /// Sends a request and waits for the head of its response. The connection may stall for `patience`.
    /// `reporter` receives reports of its progress.
    ///
    /// # Errors
    /// The failure, after which the connection is unusable.
    pub async fn exchange(
        &mut self,
        mut request: Request<Outgoing>,
        patience: Duration,
        reporter: Option<Reporter>,
    ) -> Result<Response<Incoming>, Broken> {
        request.body_mut().watched_by(&self.watch);
        self.watch.begin(patience);
        self.watch.head_bytes.set(Some(HEAD_MAX));
        let answered = self.answer(request, reporter).await;
        self.watch.head_bytes.set(None);
        self.watch.end();
        answered
    }

    async fn answer(
        &mut self,
        request: Request<Outgoing>,
        mut reporter: Option<Reporter>,
    ) -> Result<Response<Incoming>, Broken> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let (driver, watch) = (&mut self.driver, &self.watch);
        poll_fn(|cx| {
            drive(driver, cx);
            match answer.as_mut().poll(cx) {
                Poll::Ready(Ok(response)) => {
                    if let Some(reporter) = &reporter {
                        reporter.answered(response.status().is_success());
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
            if let Some(reporter) = reporter.as_mut().filter(|_| watch.sent.get()) {
                reporter.sent();
            }
            if watch.cut.get() {
                return Poll::Ready(Err(Broken::TimedOut));
            }
            watch.wait(cx);
            Poll::Pending
        })
        .await
    }

    /// Next piece of the response body; `None` at its end. The connection may stall for `patience`; a slow
    /// reader does not count as a stall.
    ///
    /// # Errors
    /// The failure.
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
                    // Ignore trailers; the end follows.
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
        self.look_if_asked();
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
        self.look_if_asked();
        let done = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.note_written(done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.look_if_asked();
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
