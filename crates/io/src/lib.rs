//! The I/O benchmark: fio's options, fio's answers, on an engine of its own.
//!
//! `spec` turns command lines and job files into [`Job`]s. `lay` makes their files, and refuses what
//! could harm. `run` starts one thread for each job, with an engine (`engine`), the sequence of its
//! blocks (`pattern`) and what is written (`content`, `check`), and gathers what was measured
//! (`stats`). `output` says it in fio's words and fio's JSON; `sweep` runs a matrix of settings as a
//! campaign.

#[macro_use]
mod defaults;

pub mod check;
pub mod content;
mod engine;
pub mod job;
pub mod layout;
pub mod outcome;
pub mod output;
pub mod pattern;
pub mod run;
mod sizes;
pub mod spec;
pub mod stats;
pub mod steady;

pub use job::{Amount, Clocks, Distribution, Engine, Job, Rw, VerifyKind};
pub use outcome::{Depths, Entry, Logged, Outcome, Side};
