//! Decides from the waiting times of a file's workers whether more workers would pay. Pure; measured during the copy.
//!
//! A worker that mostly reads and uses little CPU waits for the source: another one can wait in parallel. Time in
//! writes has no meaning here: writes to one file are serialised by the lock of its inode anyway. A worker that waits
//! longer for its turn to write than it reads is one too many.

use hakobu_sys::usage::Used;
use std::time::{Duration, Instant};

/// Number of segments after which a worker decides.
const SEGMENTS: u64 = 8;

/// Time that a worker spent on a file since its last decision.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    segments: u64,
    /// In read calls.
    reading: Duration,
    /// Waiting for its turn to write.
    queueing: Duration,
    /// CPU time in total.
    cpu: Duration,
    /// Number of voluntary context switches.
    waits: u64,
}

impl Spent {
    /// Returns whether one more worker would pay. On a busy machine a read takes long as well, but the context
    /// switches are involuntary.
    fn wants_more(&self) -> bool {
        self.reading >= 2 * self.cpu && self.waits >= self.segments && self.reading >= self.queueing
    }
}

/// Time measurement of one worker.
pub(super) struct Watch {
    spent: Spent,
    used: Used,
}

impl Watch {
    pub(super) fn new() -> Watch {
        Watch { spent: Spent::default(), used: Used::of_thread() }
    }

    /// Records a read that began at `begun`.
    pub(super) fn read(&mut self, begun: Instant) {
        self.spent.reading += begun.elapsed();
    }

    /// Records a wait for a turn that began at `begun`.
    pub(super) fn queued(&mut self, begun: Instant) {
        self.spent.queueing += begun.elapsed();
    }

    /// Records a finished segment; every [`SEGMENTS`] segments returns whether more workers would pay.
    pub(super) fn judge(&mut self) -> Option<bool> {
        self.spent.segments += 1;
        if self.spent.segments < SEGMENTS {
            return None;
        }
        let used = Used::of_thread();
        let more = used.since(&self.used);
        (self.spent.cpu, self.spent.waits) = (more.cpu(), more.voluntary_switches);
        self.used = used;
        Some(std::mem::take(&mut self.spent).wants_more())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(reading: u64, queueing: u64, cpu: u64, waits: u64) -> Spent {
        let ms = Duration::from_millis;
        let (reading, queueing, cpu) = (ms(reading), ms(queueing), ms(cpu));
        Spent { segments: 8, reading, queueing, cpu, waits }
    }

    #[test]
    fn waiting_for_the_source_wants_more_workers() {
        // One millisecond per call and hardly any CPU.
        assert!(spent(8, 0, 1, 8).wants_more());
        // From the page cache: CPU time only.
        assert!(!spent(2, 0, 3, 0).wants_more());
        // The same on a busy machine: preempted, never waiting.
        assert!(!spent(20, 0, 3, 1).wants_more());
        // The target is slow, and the source is not.
        assert!(!spent(1, 0, 1, 8).wants_more());
        // Others queue for the target: there are enough workers.
        assert!(!spent(8, 9, 1, 16).wants_more());
    }

    #[test]
    fn a_judgement_comes_every_eighth_segment() {
        let mut watch = Watch::new();
        for round in 0..3 {
            for segment in 1..SEGMENTS {
                assert_eq!(watch.judge(), None, "{round} {segment}");
            }
            assert_eq!(watch.judge(), Some(false));
        }
        let begun = Instant::now();
        for _ in 1..SEGMENTS {
            std::thread::sleep(Duration::from_millis(2));
            watch.judge();
        }
        std::thread::sleep(Duration::from_millis(2));
        watch.read(begun);
        assert_eq!(watch.judge(), Some(true));
    }
}
