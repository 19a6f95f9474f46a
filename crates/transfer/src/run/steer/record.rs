//! Running sums of a run at some moments, few and evenly spread however long it takes, so that means can be computed
//! over any part of it.

use hakobu_core::meter::{Counts, PHASES, WireCounts};
use hakobu_explain::ceilings::Served;
use hakobu_explain::sample::Sample;
use std::time::Duration;

/// Maximum number of moments kept.
const MARKS_MAX: usize = 32;
/// Fraction of a run that counts as its start and is ignored.
const START: f64 = 0.1;
/// Minimum length of the start, in seconds, unless that would be half of the run.
const START_S_MIN: f64 = 1.0;

/// Sums over all samples so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// Number of samples of the workers' counters.
    pub ticks: u64,
    /// Units seen in each phase.
    pub phases: [u64; PHASES],
    /// Sum of the allowed jobs.
    pub jobs: u64,
    /// Number of samples of the machine.
    pub samples: u64,
    /// Tasks of the machine that were blocked on I/O.
    pub blocked: u64,
    /// Dirty and writeback bytes.
    pub dirty_bytes: f64,
    /// Number of samples of what threads wait for.
    pub looks: u64,
    /// Of these: a lock in the kernel.
    pub locked: u64,
}

/// The state at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Mark {
    /// Time since the start of the run.
    pub at: Duration,
    pub counts: Counts,
    pub wire: WireCounts,
    pub sums: Sums,
    pub sample: Sample,
    /// Work admitted by cgroups, by limit.
    pub served: Served,
}

/// Marks of a run; see the module.
#[derive(Debug, Default)]
pub(super) struct Record {
    marks: Vec<Mark>,
    /// Only every n-th mark is kept.
    every: u32,
    left_out: u32,
    last: Option<Mark>,
}

impl Record {
    /// Adds the next moment.
    pub fn push(&mut self, mark: Mark) {
        if self.marks.len() >= MARKS_MAX {
            let mut index = 0;
            self.marks.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every = (2 * self.every).max(2);
        }
        self.left_out += 1;
        if self.marks.is_empty() || self.left_out >= self.every.max(1) {
            self.left_out = 0;
            self.marks.push(mark.clone());
        }
        self.last = Some(mark);
    }

    /// Returns first and last moment of the steady part; `None` if there are no two.
    pub fn steady(&self) -> Option<(&Mark, &Mark)> {
        let last = self.last.as_ref()?;
        let all_s = last.at.as_secs_f64();
        let start_s = (START * all_s).max(START_S_MIN).min(all_s / 2.0);
        let first = self.marks.iter().find(|mark| mark.at.as_secs_f64() >= start_s);
        let first = first.filter(|first| first.at < last.at).or_else(|| self.marks.first())?;
        (first.at < last.at).then_some((first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(seconds: u64) -> Record {
        let mut record = Record::default();
        for tenth in 1..=10 * seconds {
            record.push(Mark { at: Duration::from_millis(100 * tenth), ..Mark::default() });
        }
        record
    }

    #[test]
    fn the_start_is_left_out() {
        for (seconds, least_s, most_s) in [(2, 1.0, 1.2), (5, 1.0, 1.4), (60, 6.0, 9.0)] {
            let record = of(seconds);
            let (first, last) = record.steady().unwrap();
            let first_s = first.at.as_secs_f64();
            assert!((least_s..=most_s).contains(&first_s), "{seconds}: {first_s}");
            assert_eq!(last.at.as_secs(), seconds);
        }
    }

    #[test]
    fn an_hour_takes_no_more_memory_than_a_minute() {
        let record = of(3600);
        assert!(record.marks.len() <= MARKS_MAX);
        let (first, last) = record.steady().unwrap();
        assert!((360..600).contains(&first.at.as_secs()) && last.at.as_secs() == 3600);
    }

    #[test]
    fn one_moment_is_no_stretch() {
        let mut record = Record::default();
        assert!(record.steady().is_none());
        record.push(Mark { at: Duration::from_secs(1), ..Mark::default() });
        assert!(record.steady().is_none());
    }
}
