//! `hakobu serve`: the real binary, tested over plain sockets and by other S3 clients.

mod atomic;
mod beneath;
pub mod client;
mod faults;
mod folder;
mod null;
mod peers;
pub mod sign;
