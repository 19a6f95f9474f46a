//! Totals of a running server.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters shared by all connections.
#[derive(Debug, Default)]
pub struct Counts {
    requests: AtomicU64,
    failed: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

/// Totals of a server so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Completed requests.
    pub requests: u64,
    /// Requests among them with a status of 400 or above, or without an answer.
    pub failed: u64,
    /// Bytes of request bodies.
    pub received_bytes: u64,
    /// Bytes of response bodies.
    pub sent_bytes: u64,
}

impl Counts {
    /// Adds a request; its status is 0 without an answer.
    pub fn add(&self, status: u16, received_bytes: u64, sent_bytes: u64) {
        self.requests.fetch_add(1, Relaxed);
        if !(100..400).contains(&status) {
            self.failed.fetch_add(1, Relaxed);
        }
        if received_bytes > 0 {
            self.received_bytes.fetch_add(received_bytes, Relaxed);
        }
        if sent_bytes > 0 {
            self.sent_bytes.fetch_add(sent_bytes, Relaxed);
        }
    }

    /// Current totals.
    pub fn read(&self) -> Totals {
        Totals {
            requests: self.requests.load(Relaxed),
            failed: self.failed.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
        }
    }
}
