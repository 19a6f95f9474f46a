//! What the unit of work that a request belongs to is told of it.

use crate::meter::{Doing, Phase};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Who hears of one try of one request: how far it is.
pub(super) struct Told {
    doing: Rc<Doing>,
    /// Named for what it is, rather than for how far it is.
    named: bool,
    sent: Option<Instant>,
}

/// The phase of requests that are named for what they are.
pub(super) fn own_phase(operation: &str) -> Option<Phase> {
    match operation {
        "HeadObject" | "HeadBucket" => Some(Phase::Look),
        "ListObjectsV2" | "ListParts" | "ListMultipartUploads" => Some(Phase::List),
        "DeleteObject" | "DeleteObjects" | "AbortMultipartUpload" => Some(Phase::Remove),
        "CompleteMultipartUpload" => Some(Phase::Settle),
        _ => None,
    }
}

impl Told {
    /// The request goes out.
    pub fn new(doing: &Rc<Doing>, operation: &str) -> Told {
        let own = own_phase(operation);
        doing.turn(own.unwrap_or(Phase::Send));
        Told { doing: Rc::clone(doing), named: own.is_some(), sent: None }
    }

    /// All of it has been handed to the kernel; called again and again from then on.
    pub fn sent(&mut self) {
        if self.sent.is_none() {
            self.sent = Some(Instant::now());
            self.turn(Phase::Answer);
        }
    }

    /// The head of its answer is here; whether it succeeded.
    pub fn answered(&self, success: bool) {
        let after = self.sent.map(|sent| sent.elapsed());
        let us = |after: Duration| u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        let wire = self.doing.lane().wire();
        wire.answered(us(after.unwrap_or_default()));
        // An answer that came before all was sent says nothing about the time it takes.
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
