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

/// Change of a body by a fault.
#[derive(Clone, Debug)]
enum Change {
    Nothing,
    /// Ends after this number of bytes, by a reset or an orderly close.
    Cut {
        after: u64,
        resets: bool,
    },
    /// Changes the byte at this offset.
    Corrupt {
        at: u64,
    },
    /// Limits the bytes per second.
    Slow {
        rate: u64,
    },
}

/// A wrapped body; `T` is kept alive with it.
pub struct Passing<B, T> {
    inner: B,
    change: Change,
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
    /// Wraps a body with `fault`.
    pub fn new(
        inner: B,
        fault: Option<&Effect>,
        fuse: Fuse,
        passed: Arc<AtomicU64>,
        companion: T,
    ) -> Passing<B, T> {
        let change = match fault {
            Some(Effect::Reset { after, .. }) => Change::Cut { after: *after, resets: true },
            Some(Effect::Truncate { after }) => Change::Cut { after: *after, resets: false },
            Some(Effect::Corrupt { at, .. }) => Change::Corrupt { at: *at },
            Some(Effect::Slow { rate, .. }) => Change::Slow { rate: *rate },
            _ => Change::Nothing,
        };
        Passing {
            inner,
            change,
            fuse,
            passed,
            rest: Bytes::new(),
            pause: None,
            flushed: false,
            _companion: companion,
        }
    }

    /// Ends a body at its cut.
    fn cut(&mut self) -> Option<&'static str> {
        let Change::Cut { after, resets } = self.change else { return None };
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
        match self.change {
            Change::Nothing => {}
            Change::Cut { after, .. } => {
                piece.truncate(usize::try_from(after - passed).unwrap_or(usize::MAX));
            }
            Change::Corrupt { at } => {
                let place = at.checked_sub(passed).and_then(|place| usize::try_from(place).ok());
                if let Some(place) = place.filter(|place| *place < piece.len()) {
                    let mut changed = BytesMut::from(piece.as_ref());
                    changed[place] ^= 1;
                    piece = changed.freeze();
                }
            }
            Change::Slow { rate } => {
                let step = (rate / 20).max(1);
                self.rest = piece.split_off(piece.len().min(step as usize));
                let took = piece.len() as f64 / rate as f64;
                self.pause = Some(Box::pin(sleep(Duration::from_secs_f64(took))));
            }
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
        let cuts = matches!(self.change, Change::Cut { .. });
        self.rest.is_empty() && !cuts && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.change {
            Change::Nothing | Change::Corrupt { .. } if self.rest.is_empty() => {
                self.inner.size_hint()
            }
            _ => SizeHint::default(),
        }
    }
}
