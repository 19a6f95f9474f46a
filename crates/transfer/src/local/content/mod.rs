//! The content of regular files: moves bytes from an open source to an open target.

mod buffer;
mod compare;
mod copy;
mod mover;
mod pair;
mod segments;
mod shared_copy;
mod waits;

pub(crate) use compare::{Side, first_difference};
pub(super) use copy::{Content, Onto};
pub(crate) use mover::SEGMENT_BYTES_MAX;
pub(super) use mover::{LARGE_BYTES_MIN, Mover};
pub(super) use shared_copy::Helpers;
pub use shared_copy::SharedCopy;
