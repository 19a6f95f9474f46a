//! Explains a run: samples of the machine's counters, the number of jobs as a pure state machine, and the
//! verdict that says what limits. `sample` and `observer` read files; `tune` and `verdict` are pure.

pub mod observer;
pub mod sample;
pub mod tune;
pub mod verdict;
