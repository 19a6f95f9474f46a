//! A connection with limited bandwidth, which can be ended by a reset.

use super::conditions::Pipe;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// Switches the end of a connection from an orderly close (FIN) to a reset (RST).
#[derive(Clone, Debug, Default)]
pub struct Fuse(Arc<AtomicBool>);

impl Fuse {
    /// From now on the connection fails.
    pub fn blow(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// True after [`Fuse::blow`].
    pub fn is_blown(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn check(&self) -> io::Result<()> {
        if self.is_blown() { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

/// A connection with limited bandwidth.
pub struct Wire {
    stream: TcpStream,
    fuse: Fuse,
    pipe: Option<Arc<Pipe>>,
    read_pause: Option<Pin<Box<Sleep>>>,
    write_pause: Option<Pin<Box<Sleep>>>,
}

impl Wire {
    /// Wraps a connection; connections with the same pipe share its bandwidth.
    pub fn new(stream: TcpStream, fuse: Fuse, pipe: Option<Arc<Pipe>>) -> Wire {
        Wire { stream, fuse, pipe, read_pause: None, write_pause: None }
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
fn pause(pipe: &Pipe, bytes: usize) -> Option<Pin<Box<Sleep>>> {
    let now = std::time::Instant::now();
    let until = pipe.put(bytes, now);
    // Timers have a resolution of milliseconds.
    let is_felt = until.saturating_duration_since(now).as_micros() > 1000;
    is_felt.then(|| Box::pin(sleep_until(Instant::from_std(until))))
}

impl AsyncRead for Wire {
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

impl AsyncWrite for Wire {
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

impl Drop for Wire {
    fn drop(&mut self) {
        if self.fuse.is_blown() {
            // Closing then sends RST (socket(7), SO_LINGER).
            let _ = self.stream.set_zero_linger();
        }
    }
}
