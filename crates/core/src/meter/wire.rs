//! State of the way to a server, as connections show it: counters that each core keeps for itself, as the
//! rest of its lane.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of one core. One thread writes, others read.
#[derive(Debug, Default)]
pub struct Wire {
    answers: AtomicU64,
    answer_us: AtomicU64,
    answer_least_us: AtomicU64,
    handshakes: AtomicU64,
    handshake_us: AtomicU64,
    looks: AtomicU64,
    rtt_us: AtomicU64,
    rtt_least_us: AtomicU64,
    unsent: AtomicU64,
    delivery_bytes_per_s: AtomicU64,
    busy_us: AtomicU64,
    receiver_us: AtomicU64,
    buffer_us: AtomicU64,
    retransmits: AtomicU64,
}

/// One look at a busy connection: states of now, and what grew since the look before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Smoothed round-trip time, microseconds; 0 where it is not known.
    pub rtt_us: u64,
    /// The least round-trip time of the connection, microseconds; 0 where it is not known.
    pub rtt_least_us: u64,
    /// Bytes wait in the kernel that were not sent once.
    pub unsent: bool,
    /// The rate at which the peer acknowledged last, bytes a second; 0 where it is not known.
    pub delivery_bytes_per_s: u64,
    /// Time in which there was something to send, microseconds.
    pub busy_us: u64,
    /// Part of `busy_us` spent waiting for the receive window of the peer.
    pub receiver_us: u64,
    /// Part of `busy_us` spent waiting for space in our send buffer.
    pub buffer_us: u64,
    /// Segments that were sent again.
    pub retransmits: u64,
}

/// A sum over all cores, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounts {
    /// Requests that were answered.
    pub answers: u64,
    /// From the last byte of a request being handed to the kernel to the head of its answer: the
    /// sum over those, microseconds.
    pub answer_us: u64,
    /// The least of those of requests for content that succeeded, microseconds; `None` where there
    /// was none.
    pub answer_least_us: Option<u64>,
    /// Handshakes that were timed.
    pub handshakes: u64,
    /// Round trips that the kernel saw in them, the sum, microseconds.
    pub handshake_us: u64,
    /// Looks at busy connections.
    pub looks: u64,
    /// Smoothed round-trip times, the sum over looks, microseconds.
    pub rtt_us: u64,
    /// The least round-trip time of any connection, microseconds; `None` where none is known.
    pub rtt_least_us: Option<u64>,
    /// Looks that found bytes waiting in the kernel that were not sent once.
    pub unsent: u64,
    /// Rates at which peers acknowledged, the sum over looks, bytes a second.
    pub delivery_bytes_per_s: u64,
    /// Time in which there was something to send, the sum over the connections looked at,
    /// microseconds.
    pub busy_us: u64,
    /// Part of `busy_us` spent waiting for the receive windows of peers.
    pub receiver_us: u64,
    /// Part of `busy_us` spent waiting for space in our send buffers.
    pub buffer_us: u64,
    /// Segments that were sent again on the connections looked at.
    pub retransmits: u64,
}

impl Wire {
    /// A request was answered so long after it was sent.
    pub fn answered(&self, after_us: u64) {
        super::add(&self.answers, 1);
        super::add(&self.answer_us, after_us);
    }

    /// Records a request for content that succeeded `after_us` after it was sent. Other answers come faster and are no
    /// basis for comparison.
    pub fn succeeded(&self, after_us: u64) {
        lower(&self.answer_least_us, after_us);
    }

    /// A TCP handshake took so long, as the kernel measured it.
    pub fn handshake(&self, rtt_us: u64) {
        super::add(&self.handshakes, 1);
        super::add(&self.handshake_us, rtt_us);
    }

    /// A connection was looked at.
    pub fn looked(&self, look: &Look) {
        super::add(&self.looks, 1);
        super::add(&self.rtt_us, look.rtt_us);
        super::add(&self.unsent, u64::from(look.unsent));
        super::add(&self.delivery_bytes_per_s, look.delivery_bytes_per_s);
        super::add(&self.busy_us, look.busy_us);
        super::add(&self.receiver_us, look.receiver_us);
        super::add(&self.buffer_us, look.buffer_us);
        super::add(&self.retransmits, look.retransmits);
        if look.rtt_least_us > 0 {
            lower(&self.rtt_least_us, look.rtt_least_us);
        }
    }

    pub(super) fn add_to(&self, sum: &mut WireCounts) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        super::add_up!(self => sum, answers answer_us handshakes handshake_us looks rtt_us unsent
            delivery_bytes_per_s busy_us receiver_us buffer_us retransmits);
        sum.answer_least_us = least(sum.answer_least_us, load(&self.answer_least_us));
        sum.rtt_least_us = least(sum.rtt_least_us, load(&self.rtt_least_us));
    }
}

/// Keeps the lower one. Only the owner writes. Complements are kept, so that the zero of the beginning means none.
fn lower(least: &AtomicU64, us: u64) {
    if !us > least.load(Ordering::Relaxed) {
        least.store(!us, Ordering::Relaxed);
    }
}

/// The smallest known value, of one that [`lower`] kept, too.
fn least(known: Option<u64>, kept: u64) -> Option<u64> {
    known.into_iter().chain((kept > 0).then_some(!kept)).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Meter;

    #[test]
    fn looks_of_all_cores_add_up() {
        let meter = Meter::new(2);
        assert_eq!(meter.wire(), WireCounts::default());
        let look = Look { rtt_us: 300, rtt_least_us: 200, unsent: true, ..Look::default() };
        meter.lane(0).wire().looked(&look);
        meter.lane(1).wire().looked(&Look { rtt_us: 100, rtt_least_us: 90, busy_us: 7, ..look });
        meter.lane(1).wire().looked(&Look::default());
        meter.lane(1).wire().answered(50);
        let wire = meter.wire();
        assert_eq!((wire.looks, wire.rtt_us, wire.unsent, wire.busy_us), (3, 400, 2, 7));
        assert_eq!((wire.rtt_least_us, wire.answers, wire.answer_us), (Some(90), 1, 50));
        assert_eq!(wire.answer_least_us, None);
    }

    #[test]
    fn answers_that_succeeded_have_a_least_and_handshakes_a_sum() {
        let meter = Meter::new(2);
        for (lane, us) in [(0, 70), (0, 60), (0, 80), (1, 65)] {
            meter.lane(lane).wire().succeeded(us);
            meter.lane(lane).wire().handshake(us);
        }
        let wire = meter.wire();
        assert_eq!((wire.answer_least_us, wire.answers), (Some(60), 0));
        assert_eq!((wire.handshakes, wire.handshake_us), (4, 275));
    }
}
