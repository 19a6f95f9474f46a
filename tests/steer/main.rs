//! Steering: numbers of jobs that are found, remembered and reported; limits; final output.

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

mod limits;
mod memory;
mod path;
mod polite;
mod said;

/// Creates a folder with files of one size, `f0` and so on.
fn files(dir: &std::path::Path, count: usize, bytes: usize) {
    std::fs::create_dir_all(dir).unwrap();
    for number in 0..count {
        std::fs::write(dir.join(format!("f{number}")), vec![b'x'; bytes]).unwrap();
    }
}
