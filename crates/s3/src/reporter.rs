//! Reports of a request's progress to its unit of work.

use hakobu_core::meter::{Doing, Phase};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Reports the phases of one attempt of a request.
pub(super) struct Reporter {
    doing: Rc<Doing>,
    /// True if the phase is the operation itself instead of its progress.
    named: bool,
    sent: Option<Instant>,
}

/// Phase of operations that have their own.
pub(super) fn own_phase(operation: &str) -> Option<Phase> {
    match operation {
        "HeadObject" | "HeadBucket" => Some(Phase::Look),
        "ListObjects" | "ListObjectsV2" | "ListParts" | "ListMultipartUploads" => Some(Phase::List),
        "DeleteObject" | "DeleteObjects" | "AbortMultipartUpload" => Some(Phase::Remove),
        "CompleteMultipartUpload" => Some(Phase::Settle),
        _ => None,
    }
}

impl Reporter {
    /// Reports that the request is being sent.
    pub fn new(doing: &Rc<Doing>, operation: &str) -> Reporter {
        let own = own_phase(operation);
        doing.turn(own.unwrap_or(Phase::Send));
        Reporter { doing: Rc::clone(doing), named: own.is_some(), sent: None }
    }

    /// Reports that all of it has been passed to the kernel; may be called repeatedly.
    pub fn sent(&mut self) {
        if self.sent.is_none() {
            self.sent = Some(Instant::now());
            self.turn(Phase::Answer);
        }
    }

    /// Reports the head of the response, and whether it is a success.
    pub fn answered(&self, success: bool) {
        let after = self.sent.map(|sent| sent.elapsed());
        let us = |after: Duration| u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        let wire = self.doing.lane().wire();
        wire.answered(us(after.unwrap_or_default()));
        // A response before the end of sending says nothing about the server's latency.
        if let Some(after) = after.filter(|_| success && !self.named) {
            wire.succeeded(us(after));
        }
        self.turn(Phase::Receive);
    }

    fn turn(&self, phase: Phase) {
        if !self.named {
            self.doing.turn(phase);
        }
    }
}
