//! `hakobu serve`: the real binary, asked over plain sockets and by other S3 clients.

#[path = "../common/mod.rs"]
mod common;

mod client;
mod faults;
mod folder;
mod null;
mod peers;
mod sign;
