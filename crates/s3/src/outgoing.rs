//! Body of a request, sent in frames, so that bytes are counted as they are sent.

use super::throttle::Share;
use super::watch::Watch;
use bytes::Bytes;
use hakobu_core::meter::{Doing, Phase};
use http_body::{Body, Frame, SizeHint};
use std::cell::Cell;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Bytes per frame.
const FRAME_BYTES: usize = 1 << 20;

/// Counts the content of a request over all attempts, each byte once.
pub(super) struct Tally {
    doing: Rc<Doing>,
    counted_bytes: Cell<u64>,
}

impl Tally {
    /// Creates a counter.
    pub fn new(doing: &Rc<Doing>) -> Rc<Tally> {
        Rc::new(Tally { doing: Rc::clone(doing), counted_bytes: Cell::new(0) })
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
pub(super) struct Outgoing {
    rest: Bytes,
    sent_bytes: u64,
    tally: Option<Rc<Tally>>,
    watch: Option<Rc<Watch>>,
    share: Option<Share>,
}

impl Outgoing {
    /// Creates a body.
    pub fn new(bytes: Bytes, tally: Option<&Rc<Tally>>) -> Outgoing {
        Outgoing { rest: bytes, sent_bytes: 0, tally: tally.cloned(), watch: None, share: None }
    }

    /// Applies a rate limit.
    pub fn throttle(&mut self, share: Share) {
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
    pub fn watched_by(&mut self, watch: &Rc<Watch>) {
        watch.body_is_over(self.rest.is_empty());
        self.watch = Some(Rc::clone(watch));
    }
}

impl Body for Outgoing {
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
