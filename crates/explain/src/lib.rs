//! Explains a run: samples of the machine's counters, the number of jobs as a pure state machine, and the
//! verdict that says what limits. Only `sample` reads files; `tune` and `verdict` are pure.

pub mod ceilings;
pub mod command;
mod machine;
pub mod sample;
pub mod tune;
pub mod verdict;
