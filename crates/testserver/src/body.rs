//! Wraps a body inside the layer: counts its bytes, and applies faults.

use super::fault::Effect;
use super::wire::Fuse;
use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// Time for sent bytes to leave before a connection is reset: a reset at once would overtake them.
const FLUSH: Duration = Duration::from_millis(30);

/// A wrapped body; `T` is kept alive with it.
pub struct Passing<B, T> {
    inner: B,
    fault: Option<Effect>,
    fuse: Fuse,
    /// Bytes passed on so far.
    passed: Arc<AtomicU64>,
    /// Rest of a piece taken from the inner body.
    rest: Bytes,
    pause: Option<Pin<Box<Sleep>>>,
    /// True after the pause before a cut.
    flushed: bool,
    _companion: T,
}

impl<B, T> Passing<B, T> {
    /// Wraps a body with `fault`, if it is one of bodies.
    pub fn new(
        inner: B,
        fault: Option<&Effect>,
        fuse: Fuse,
        passed: Arc<AtomicU64>,
        companion: T,
    ) -> Passing<B, T> {
        Passing {
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
            Some(Effect::Reset { after, .. }) => Some((after, true)),
            Some(Effect::Truncate { after }) => Some((after, false)),
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
            Some(Effect::Reset { after, .. } | Effect::Truncate { after }) => {
                piece.truncate(usize::try_from(after - passed).unwrap_or(usize::MAX));
            }
            Some(Effect::Corrupt { at, .. }) => {
                let place = at.checked_sub(passed).and_then(|place| usize::try_from(place).ok());
                if let Some(place) = place.filter(|place| *place < piece.len()) {
                    let mut changed = BytesMut::from(piece.as_ref());
                    changed[place] ^= 1;
                    piece = changed.freeze();
                }
            }
            Some(Effect::Slow { rate, .. }) => {
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

impl<B, T> Body for Passing<B, T>
where
    B: Body<Data = Bytes> + Unpin,
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
            None | Some(Effect::Corrupt { .. }) if self.rest.is_empty() => self.inner.size_hint(),
            _ => SizeHint::default(),
        }
    }
}
