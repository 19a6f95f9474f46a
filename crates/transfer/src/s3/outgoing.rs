//! The body of a request on its way out: handed over in frames, so that what was sent is counted as
//! it goes.

use super::http::Watch;
use crate::meter::Doing;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::cell::Cell;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Bytes that are handed over at once.
const FRAME_BYTES: usize = 1 << 20;

/// Counts the content of one request, over all its tries: each byte once.
pub(super) struct Tally {
    doing: Rc<Doing>,
    counted_bytes: Cell<u64>,
}

impl Tally {
    /// Nothing counted yet.
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

/// See the module.
pub(super) struct Outgoing {
    rest: Bytes,
    sent_bytes: u64,
    tally: Option<Rc<Tally>>,
    watch: Option<Rc<Watch>>,
}

impl Outgoing {
    /// A body of these bytes.
    pub fn new(bytes: Bytes, tally: Option<&Rc<Tally>>) -> Outgoing {
        Outgoing { rest: bytes, sent_bytes: 0, tally: tally.cloned(), watch: None }
    }

    /// Tells the watch of its connection when the last frame is handed over.
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
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let len = self.rest.len().min(FRAME_BYTES);
        let frame = self.rest.split_to(len);
        self.sent_bytes += len as u64;
        if let Some(tally) = &self.tally {
            tally.reached(self.sent_bytes);
        }
        if let Some(watch) = self.watch.as_ref().filter(|_| self.rest.is_empty()) {
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
