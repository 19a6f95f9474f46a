//! Stub for the quoting of names that the unit tests of the file checked by `run_file` use.

#![allow(dead_code, reason = "they use a part of it")]

#[path = "../../src/show/escape.rs"]
pub mod escape;
