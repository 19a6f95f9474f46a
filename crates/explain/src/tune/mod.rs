//! Finds the number of jobs from goodput. Pure: the caller supplies time and counters, and applies the
//! result. Independent of the kind of work.
//!
//! # Measurement
//!
//! *Goodput* is bytes moved plus [`ENTRY_CREDIT_BYTES`] per entry, per second; latency or errors alone are
//! never used. It is measured in *windows* (`window`) of 50 ms, two service times and 16 completions,
//! whichever is longest. The service time follows from Little's law: units in flight × time ÷ completions.
//! After a change one service time is discarded, because its completions were begun before. A window counts
//! only if the limit was in use in most of its readings: otherwise no work was waiting, and more jobs would
//! have had no effect.
//!
//! # Stages
//!
//! 1. *Start-up* (`Ramp`), like TCP slow start: from 50 ms into a round each completion allows one more unit,
//!    so that the number doubles per service time. A round ends when as many units have completed as it
//!    allowed at its start. Growth continues while a round gains 10 % over the best before, in goodput and in
//!    completions: units that have just begun move content at once, and a server that queues them finishes none sooner. A
//!    round without gain is repeated once. If the gain is doubtful (below a third), the number before is measured once
//!    more, as the first round also opens connections. While units queue at a server (below), a gain of less than four
//!    fifths ends the stage. It also ends when all CPUs are used, by this process alone or together with what the kernel
//!    and others do meanwhile: more workers would only contend for CPUs and locks. If the first doubling is clearly worse (below 85 %), the number is halved
//!    instead while throughput is not lower. The last two rounds that gained give the expected position of the cap
//!    between them by linear extrapolation: the first candidate of the shrink stage.
//! 2. *Bracket*: the best may lie between two doublings: √2 times as many are tried, then a half or a quarter
//!    less.
//! 3. *Shrink* (`Shrink`): the number decreases by quarters (by halves while nothing is known about smaller
//!    ones) while the rate is within 3 % of the best. Each candidate is compared with the best itself, so
//!    that small losses do not accumulate.
//! 4. *Hold*: rare probes alternate between half as many again and a quarter less. The first comes after 0.5
//!    s; the interval grows by a fifth each time up to 30 s. There is no upward probe while the CPUs
//!    are used up. A probe that gains over 10 % starts a new start-up from there. If the level changes permanently (three windows beyond 25 % and three deviations),
//!    probes become frequent again, and a fall below half tries half the number at once.
//!
//! A remembered seed starts in the hold stage with both probes at once. After start-up, settings are compared
//! as A/B/A/B/A … (`Trial`), each B with the A before and after it, which cancels drift of the data (small
//! files first, large ones later). A trial ends when the mean of the pairs is 1.6 standard errors from the
//! threshold (+3 % up, −3 % down), or after an eighth of the run so far (0.4 to 3 s); a higher number is then
//! accepted only if it is one standard error above the threshold. A downward probe waits until its possible
//! cost is less than a tenth of the run so far (4 % in the hold stage, 2 % while the CPUs are used up), so that
//! slow services do not spend a short run on probes.
//!
//! Throughput decides, but where units evidently queue at a server, because far more are in flight than it needs for this
//! rate without a queue (rate × quickest answer), fewer have the benefit of the doubt: such probes may cost 16 times
//! as much, are accepted unless clearly worse, and upward probes have to gain 10 %.
//!
//! # Brakes (`Brake`)
//!
//! If refusals (503, 429) and time-outs exceed 2 % of the completions, or any occur while a higher number is
//! tried, the number returns to the previous one, or to half. Increases are then forbidden for a while (0.5
//! s, 1.5 times as long each time, up to 16 s), and the refused number is a ceiling for 20 s: the next
//! attempt is the geometric mean of good and bad. A doubling or a probe that collapses leaves a ceiling as
//! well. The configured bounds always hold.
//!
//! # One number
//!
//! A part of a large object is a unit like a small object, and workers take parts of objects in progress
//! before they begin others. There is no separate number of parts per object: a single large object has as
//! many parts in flight as there are jobs, within the memory budget.

#[cfg(test)]
mod sim;
mod stages;
mod tuner;
mod window;

use hakobu_core::unit::Jobs;
use std::time::Duration;
pub use tuner::Tuner;
pub use window::ENTRY_CREDIT_BYTES;

/// Work done so far; all counters except `in_use` are cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkCounters {
    /// Content moved, bytes.
    pub bytes: u64,
    /// Entries finished.
    pub items: u64,
    /// Pieces of work finished.
    pub completions: u64,
    /// Units in flight now.
    pub in_use: usize,
    /// Requests that a server asked to slow down.
    pub throttled: u64,
    /// Requests that timed out.
    pub timed_out: u64,
    /// CPU time of this process, divided by the number of CPUs that it may use.
    pub cpu: Duration,
    /// Mean idle time of these CPUs, and when it was read (since the start of the run): less often than the rest.
    pub idle: Option<(Duration, Duration)>,
    /// Shortest time that a server took to answer: that of one with nothing else to do.
    pub quickest: Option<Duration>,
    /// Units that wait for a server's answer now.
    pub answering: usize,
}

/// A number of jobs with its rates: a step in the tuner's history.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TuningStep {
    /// Time of the change, since the start of the run.
    pub at: Duration,
    /// Allowed units.
    pub jobs: usize,
    /// Goodput, for comparison with other steps: content and a credit for each entry; `None` if no window counted.
    pub rate: Option<f64>,
    /// Content bytes per second.
    pub bytes_per_s: Option<f64>,
    /// Entries per second.
    pub entries_per_s: Option<f64>,
}

/// Kind of storage of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Memory, or unknown: limited by the CPU.
    Memory,
    /// Solid-state disk: requests overlap, so more jobs than CPUs are useful.
    Solid,
    /// Network or FUSE file system: each call waits for an answer, and many can wait in parallel.
    Foreign,
    /// Spinning disk: parallel requests cause seeks.
    Rotating,
}

/// Fewest jobs for file systems with slow calls: starting with two would waste most of a short run on
/// growing.
const FOREIGN_MIN: usize = 32;

/// Initial number of workers, at least one.
pub fn jobs(asked: Jobs, mediums: &[Medium], cpus: usize) -> usize {
    let wanted = match asked {
        Jobs::Fixed(jobs) => jobs,
        Jobs::Auto if mediums.contains(&Medium::Rotating) => 1,
        Jobs::Auto if mediums.contains(&Medium::Foreign) => FOREIGN_MIN.max(2 * cpus),
        Jobs::Auto if mediums.contains(&Medium::Solid) => 2 * cpus,
        Jobs::Auto => cpus,
    };
    wanted.max(1)
}

#[cfg(test)]
mod tests;
