//! Tests of the real binary, one module per area; case names are command lines.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod aliases;
mod bench;
mod cli;
mod cluster;
mod common;
#[cfg(feature = "serve")]
mod credentials;
mod demo;
mod docs;
mod download;
mod faults;
mod io;
#[cfg(feature = "io")]
mod io_spec;
mod layers;
mod merged;
mod objects;
mod oracle;
mod remote;
mod report;
// Some fuzz targets call parsers of the lab and of io.
#[cfg(all(feature = "lab", feature = "io"))]
mod seeds;
mod server;
mod sweep;
mod tools;
mod wire;

#[cfg(all(feature = "lab", feature = "io"))]
use seeds::show;
