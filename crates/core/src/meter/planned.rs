//! Counters of threads that plan work for others.

use std::sync::atomic::AtomicU64;

/// Entries and bytes that planners have counted.
#[derive(Debug, Default)]
pub(super) struct Planned {
    pub found: AtomicU64,
    pub done: AtomicU64,
    pub bytes_ahead: AtomicU64,
}
