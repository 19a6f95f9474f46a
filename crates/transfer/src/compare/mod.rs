//! Whether two contents are the same: byte by byte ([`first_difference`]), or by checksums that servers keep
//! ([`evidence`]). `--checksum`, `--append-verify` and `verify` all ask here; what follows from an answer is theirs.

mod bytes;
pub(crate) mod evidence;

pub(crate) use bytes::{Buffers, first_difference, same_holes};
