//! The body of a request on its way out: handed over in frames, so that what was sent is counted as
//! it goes.

use super::flow::Flow;
use super::http::Watch;
use crate::meter::{Doing, Phase};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http_body::{Body, Frame, SizeHint};
use std::cell::Cell;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::sync::OwnedSemaphorePermit;

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
    paced: Option<Paced>,
}

/// What a body under a rate has of it.
pub(super) struct Paced {
    flow: Rc<Flow>,
    /// Bytes that may be sent now.
    granted_bytes: usize,
    /// The grant that is waited for.
    wait: Option<(usize, LocalBoxFuture<'static, ()>)>,
    /// Gone when the body is over.
    permit: Option<OwnedSemaphorePermit>,
}

impl Paced {
    /// A body whose first bytes are granted, and waited for.
    pub fn new(flow: &Rc<Flow>, granted_bytes: u64, permit: OwnedSemaphorePermit) -> Paced {
        let granted_bytes = usize::try_from(granted_bytes).unwrap_or(usize::MAX);
        Paced { flow: Rc::clone(flow), granted_bytes, wait: None, permit: Some(permit) }
    }

    /// Bytes that may be moved now.
    pub fn granted_bytes(&self) -> usize {
        self.granted_bytes
    }

    /// Bytes that were waited for elsewhere.
    pub fn grant(&mut self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.granted_bytes = self.granted_bytes.saturating_add(bytes);
    }

    /// How many bytes have to be granted before more is read of a body of which `left_bytes` are to
    /// come; 0 where some are granted.
    pub fn wants(&self, left_bytes: u64) -> u64 {
        if self.granted_bytes > 0 { 0 } else { self.flow.grant_bytes(left_bytes) }
    }

    /// So many bytes came. What came beyond the grant, with the head of an answer, is paid for.
    pub fn received(&mut self, bytes: usize) {
        let beyond = bytes.saturating_sub(self.granted_bytes);
        self.granted_bytes = self.granted_bytes.saturating_sub(bytes);
        if beyond > 0 {
            self.flow.pay(beyond as u64);
        }
    }

    /// How many of `left` bytes may be sent, once some may.
    fn poll_grant(&mut self, left: usize, cx: &mut Context<'_>) -> Poll<usize> {
        if self.granted_bytes == 0 && self.wait.is_none() {
            let bytes = self.flow.grant_bytes(left as u64);
            let len = usize::try_from(bytes).unwrap_or(usize::MAX);
            match self.flow.try_take(bytes) {
                true => self.granted_bytes = len,
                false => self.wait = Some((len, Box::pin(self.flow.take(bytes)))),
            }
        }
        if let Some((len, wait)) = &mut self.wait {
            ready!(wait.as_mut().poll(cx));
            self.granted_bytes = *len;
            self.wait = None;
        }
        Poll::Ready(self.granted_bytes)
    }
}

impl Outgoing {
    /// A body of these bytes.
    pub fn new(bytes: Bytes, tally: Option<&Rc<Tally>>) -> Outgoing {
        Outgoing { rest: bytes, sent_bytes: 0, tally: tally.cloned(), watch: None, paced: None }
    }

    /// Keeps a rate.
    pub fn pace(&mut self, paced: Paced) {
        self.paced = Some(paced);
    }

    /// Waits for the rate, telling of it.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        let left = self.rest.len().min(FRAME_BYTES);
        let Some(paced) = &mut self.paced else { return Poll::Ready(left) };
        let granted = paced.poll_grant(self.rest.len(), cx);
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
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let len = ready!(self.poll_room(cx));
        let frame = self.rest.split_to(len);
        let over = self.rest.is_empty();
        if let Some(paced) = &mut self.paced {
            paced.granted_bytes -= len;
            if over {
                paced.permit = None;
            }
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
