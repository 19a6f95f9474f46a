//! How many jobs: found from goodput, not configured. Pure: the caller brings the time and the
//! counters, and does what is answered. What is tuned is not known here.
//!
//! # What is measured
//!
//! *Goodput*: bytes moved and [`ENTRY_CREDIT_BYTES`] for each entry, a second; never latency alone and
//! never errors alone. It is taken over *windows* (`gauge`) of 50 ms, two service times and 16
//! completions, whichever is longest. The service time follows from Little's law: units under way ×
//! time ÷ completions. After a change one service time is thrown away, as what comes out then was begun
//! before. A window counts only if the limit was in use in most of its readings: otherwise work did not
//! wait, and more jobs could not have brought more.
//!
//! # The stages
//!
//! 1. *Start-up* (`ramp`): as TCP starts. From 50 ms into a round on, each completion allows one unit
//!    more, so the number doubles in a service time, however long that is. A round ends when as many
//!    units have completed as it allowed at its beginning. It goes on while a round brings 10 % more than
//!    the best before; a round that does not is repeated once. If the very first doubling is clearly
//!    worse (below 85 %), it halves instead while that is no worse. The last two rounds that gained
//!    tell where between them a straight line would meet the cap: the first guess for going down.
//! 2. *Bracket*: the best may lie between two doublings: √2 times as many are tried, then the half or
//!    a quarter less.
//! 3. *Shrink* (`stage`): going down by quarters (by halves while nothing is known of what is below)
//!    while within 3 % of the best. Each candidate is compared with the best itself, so that many small
//!    losses do not add up.
//! 4. *Hold*: with rare probes, half as many again and a quarter less in turn, the first after 0.5 s,
//!    the pause growing by a fifth each time up to 30 s. A probe that gains over 10 % begins a new
//!    start-up from there. If the level itself changes for good (three windows beyond 25 % and three
//!    deviations), probes come soon again, and a fall below half tries the half at once.
//!
//! A remembered seed begins in the fourth stage, with both probes at once. After start-up, settings are
//! compared as A/B/A/B/A … (`trial`), each B with the A before and after it, so that a drift of the data
//! (small files first, large ones later) cancels out. A trial ends as soon as the mean of the pairs is
//! 1.6 standard errors from the threshold (+3 % up, −3 % down), or after an eighth of the run so far (0.4
//! to 3 s); then more jobs are taken only if they are one standard error above it. A probe downwards waits until what it could cost is
//! less than a tenth of the run so far (4 % in the last stage): that keeps slow services from spending a short run on excursions.
//!
//! # The brakes (`brake`)
//!
//! Refusals (503, 429) and time-outs of more than 2 % of the completions, or any while more is being
//! tried, lead back to what went before, or to half. Nothing goes up for a while then (0.5 s, each time
//! half as long again, up to 16 s), and what was refused is a ceiling for 20 s: what is tried next is the
//! geometric mean of good and bad. A doubling or a probe that collapses leaves a ceiling as well. The
//! bounds hold always.
//!
//! # One number
//!
//! A part of a large object is a unit like a small object is, and workers take parts of what is begun
//! before they begin something else. So there is no number of parts per object to be found: one large
//! object has as many under way as there are jobs, as far as memory goes.

mod brake;
mod gauge;
mod ramp;
mod seed;
#[cfg(test)]
mod sim;
mod stage;
#[cfg(test)]
mod tests;
mod trace;
mod trial;
mod tuner;

pub use gauge::ENTRY_CREDIT_BYTES;
pub use seed::{Medium, jobs};
pub use tuner::Tuner;

use std::time::Duration;

/// What was done up to a moment; all but `in_use` count since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Content moved, in bytes.
    pub bytes: u64,
    /// Entries finished.
    pub items: u64,
    /// Pieces of work finished.
    pub completions: u64,
    /// Units under way at this moment.
    pub in_use: usize,
    /// Times that a server asked to slow down.
    pub throttled: u64,
    /// Requests that ran into a time-out.
    pub timed_out: u64,
}

/// One number of jobs and what it brought: a point of the way that the tuner went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// When it began, since the start of the run.
    pub at: Duration,
    /// Units that were allowed.
    pub jobs: usize,
    /// Goodput measured with it: bytes (and the credit of entries) a second; `None` where no
    /// window counted.
    pub rate: Option<f64>,
}
