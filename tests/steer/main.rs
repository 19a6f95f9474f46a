//! Steering: numbers of jobs that are found, remembered and told; limits that are refused or hold;
//! what is said at the end.

#[path = "../common/mod.rs"]
mod common;
#[path = "../wire/server.rs"]
#[allow(dead_code, reason = "a part of what the tests of the wire need")]
mod server;

mod limits;
mod memory;
mod path;
mod polite;
mod said;
