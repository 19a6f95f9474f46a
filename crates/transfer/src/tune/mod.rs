//! How many jobs: found from goodput, not configured. Pure: the caller brings the time and the
//! counters, and does what is answered. What is tuned is not known here.

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

/// What to do from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Units under way.
    pub jobs: usize,
    /// Parts of one large object under way; 0 where there are none.
    pub streams: usize,
}

/// What is never exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Most units under way (descriptors, bytes, connections).
    pub jobs_max: usize,
    /// Most parts of one object under way; 0 where that is not tuned.
    pub streams_max: usize,
}

/// One setting and what it brought: a point of the way that the tuner went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// When it began, since the start of the run.
    pub at: Duration,
    /// What was set.
    pub setting: Setting,
    /// Goodput measured with it: bytes (and the credit of entries) a second; `None` where no
    /// window counted.
    pub rate: Option<f64>,
}

/// Which of the two numbers is moving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Jobs,
    Streams,
}

impl Axis {
    fn other(self) -> Axis {
        match self {
            Axis::Jobs => Axis::Streams,
            Axis::Streams => Axis::Jobs,
        }
    }

    fn get(self, setting: Setting) -> usize {
        match self {
            Axis::Jobs => setting.jobs,
            Axis::Streams => setting.streams,
        }
    }

    fn with(self, setting: Setting, value: usize) -> Setting {
        match self {
            Axis::Jobs => Setting { jobs: value, ..setting },
            Axis::Streams => Setting { streams: value, ..setting },
        }
    }

    /// 0 where it is not tuned.
    fn most(self, bounds: Bounds) -> usize {
        match self {
            Axis::Jobs => bounds.jobs_max.max(1),
            Axis::Streams => bounds.streams_max,
        }
    }

    fn used(self, window: &gauge::Window) -> bool {
        match self {
            Axis::Jobs => window.jobs_used,
            Axis::Streams => window.streams_used,
        }
    }
}
