//! Tests that compare times and counters of the machine: apart from the suite, whose tests would disturb them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "../suite/common/mod.rs"]
mod common;
#[path = "../suite/wire/server.rs"]
#[allow(dead_code, reason = "a part of what the tests of the wire need")]
mod server;

mod steer;
mod watch;
