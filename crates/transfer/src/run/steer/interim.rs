//! Interim verdicts during a run, in a word or two, for the progress display.

use hakobu_explain::verdict::{Level, Resource, Verdict};
use std::time::Duration;

/// Time before which there is too little data.
const FIRST: Duration = Duration::from_secs(5);
/// Interval between two interim verdicts.
const BETWEEN: Duration = Duration::from_secs(1);

/// Time of the next interim verdict.
pub(super) struct InterimVerdict {
    due: Duration,
}

impl Default for InterimVerdict {
    fn default() -> InterimVerdict {
        InterimVerdict { due: FIRST }
    }
}

impl InterimVerdict {
    /// Returns whether one is due `now`, and schedules the next one.
    pub fn is_due(&mut self, now: Duration) -> bool {
        let due = now >= self.due;
        if due {
            self.due = now + BETWEEN;
        }
        due
    }
}

/// Returns the resource that a verdict names; `None` if it names none.
pub(super) fn word(verdict: &Verdict) -> Option<&'static str> {
    if verdict.level == Level::NotDetermined {
        return None;
    }
    Some(match verdict.resource {
        Resource::Cpu => "CPU",
        Resource::Thread => "one thread",
        Resource::DiskIops => "disk operations",
        Resource::DiskBandwidth => "disk bandwidth",
        Resource::Network => "network",
        Resource::Server => "server",
        Resource::Lock => "lock",
        Resource::Latency => "latency",
        Resource::Source => "source",
        Resource::Target => "target",
        Resource::UserLimit => "your limit",
        Resource::Own => "planning",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_five_seconds_on_once_a_second() {
        let mut interim = InterimVerdict::default();
        let asked: Vec<u64> =
            (0..80).filter(|tenth| interim.is_due(Duration::from_millis(100 * tenth))).collect();
        assert_eq!(asked, [50, 60, 70]);
    }
}
