//! The fault sweep: system calls of each command fail, one at a time, with every possible error. Either the
//! result is complete and the exit code 0, or the exit code is not 0 and no source is gone; the program
//! neither hangs nor crashes; and repeating the command without faults repairs everything.
//!
//! `cargo test` tries a fixed selection; `HAKOBU_SWEEP=full` tries every call with every error at its first,
//! second, middle and last occurrence in each thread. The remains of a killed run are judged in the same way.

#[allow(dead_code, reason = "the tests of transfers over a wire use more of it")]
mod calls;
pub mod fault;
mod judge;
mod kills;
mod local;
mod store;
mod table;
