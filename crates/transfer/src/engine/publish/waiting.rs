//! A finished file that waits for its name.

use crate::engine::node::Node;
use hakobu_core::unit::Meta;
use std::ffi::CString;
use std::sync::Arc;

/// A finished file without its name.
pub(in crate::engine) struct Delayed {
    /// Its directory, which it holds until then.
    pub(in crate::engine) node: Arc<Node>,
    /// Its name.
    pub(in crate::engine) name: CString,
    pub(super) temp: CString,
    /// The temporary name is in `--temp-dir`.
    pub(super) foreign: bool,
    pub(super) existing: Option<Meta>,
}
