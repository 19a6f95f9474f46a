//! How many jobs: found from goodput, not configured. Pure: the caller brings the time and the
//! counters, and does what is answered. What is tuned is not known here.

mod seed;

pub use seed::{Medium, jobs};

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
