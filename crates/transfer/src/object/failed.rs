//! Reasons for the failure of one entry's move.

use super::Side;
use hakobu_core::error::Operation;
use std::io;

/// Reason that a move failed.
#[derive(Debug)]
pub(super) enum Failed {
    /// A request failed.
    Request(Operation, Side, hakobu_s3::Error),
    /// A call on a local file failed.
    File(Operation, Side, io::Error),
    /// Refused by hakobu itself.
    Reason(Operation, Side, &'static str),
    /// The source is gone.
    Vanished(Operation),
    /// The run was stopped; nothing is reported for the entry.
    Stopped,
}

impl Failed {
    /// Returns a closure for `map_err` of requests to the target's store.
    pub fn at_target(operation: Operation) -> impl Fn(hakobu_s3::Error) -> Failed {
        move |error| Failed::Request(operation, Side::Target, error)
    }
}
