//! Detects stalled connections.

use super::stream::Stream;
use hakobu_core::meter::Look;
use hakobu_sys::socket::TcpInfo;
use std::cell::{Cell, RefCell};
use std::io;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

/// Most bytes per read: a large body arrives in few pieces.
pub(super) const READ_MAX: usize = 512 * 1024;
/// Most bytes read before the head of the response is complete: the parser's largest head, data received with
/// it, and many interim responses (1xx).
pub(super) const HEAD_MAX: usize = 4 * READ_MAX;

/// Progress of a connection, checked periodically by [`Watch::look`].
#[derive(Debug, Default)]
pub(super) struct Watch {
    moved: Cell<u64>,
    seen: Cell<u64>,
    /// Time of the last check that saw progress.
    since: Cell<Option<Instant>>,
    /// Time limit without progress; zero while no task waits.
    patience: Cell<Duration>,
    pub cut: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    /// Whether the whole request body has been passed on, and whether all of it has been written to the
    /// kernel.
    pub body_over: Cell<bool>,
    pub wrote: Cell<bool>,
    pub sent: Cell<bool>,
    /// True while we hold the connection ourselves, which is not a stall.
    held: Cell<bool>,
    /// Most bytes per read, see [`Watch::read_at_most`].
    pub read_max: Cell<usize>,
    /// Bytes that may be read before the head of the response is complete; `None` in its body. Bytes before
    /// it are not progress: a server can send interim responses for ever.
    pub head_bytes: Cell<Option<usize>>,
    /// True to sample the connection at its next poll; and the last sample.
    pub asked: Cell<bool>,
    look: Cell<Option<Look>>,
    /// Kernel counters of the previous sample.
    counted: Cell<TcpInfo>,
}

impl Watch {
    /// Aborts the connection if it has stalled beyond its limit; `patience_max` lowers the limit of all.
    pub fn look(&self, now: Instant, patience_max: Duration) {
        if self.patience.get().is_zero() {
            return;
        }
        let patience = self.patience.get().min(patience_max);
        if self.seen.replace(self.moved.get()) != self.moved.get() || self.held.get() {
            self.since.set(Some(now));
        } else if self.since.get().is_some_and(|since| now.duration_since(since) >= patience) {
            self.cut.set(true);
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
    }

    /// Requests a sample of an active connection, available from [`Watch::seen_look`] a moment later; returns
    /// false if it is idle.
    pub fn ask(&self) -> bool {
        let busy = !self.patience.get().is_zero() && self.waker.borrow().is_some();
        if busy {
            self.asked.set(true);
            // The polled task registers the waker again.
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
        busy
    }

    /// Last sample of the connection.
    pub fn seen_look(&self) -> Option<Look> {
        self.look.take()
    }

    pub fn look_at(&self, stream: &Stream) {
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

    /// Records received bytes.
    ///
    /// # Errors
    /// Too many before the head of the response.
    pub fn read(&self, bytes: usize) -> io::Result<()> {
        match self.head_bytes.get() {
            None if bytes > 0 => self.progress(),
            None => {}
            Some(left) if left < bytes => {
                return Err(io::Error::other("the server sends interim answers without an end"));
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

    pub fn begin(&self, patience: Duration) {
        self.held.set(false);
        self.progress();
        self.patience.set(patience);
    }

    pub fn end(&self) {
        self.patience.set(Duration::ZERO);
    }

    pub fn wait(&self, cx: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        match &mut *waker {
            Some(old) => old.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}
