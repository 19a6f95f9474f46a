//! Versions and their pages.

use crate::ops::etag::Etag;
use crate::ops::trust::Marker;
use hakobu_core::unit::Time;
use std::borrow::Cow;

/// A version of an object, or a delete marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectVersion {
    /// Whole key, decoded.
    pub key: Vec<u8>,
    /// Version ID; `null` for one from before versioning was enabled.
    pub id: String,
    /// It is the current version of its key.
    pub is_latest: bool,
    /// It has no content: it hides the older versions of its key.
    pub is_delete_marker: bool,
    /// Size in bytes; 0 for a delete marker.
    pub size: u64,
    /// LastModified.
    pub mtime: Time,
    /// Empty for a delete marker, or if the server provides none.
    pub etag: Etag,
    /// Empty for a delete marker, or if the server provides none.
    pub storage_class: Cow<'static, str>,
}

/// A page of versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionPage {
    /// Sorted by key; those of a key in the order of the server, which is the newest first on AWS.
    pub versions: Vec<ObjectVersion>,
    /// Common prefixes, decoded, ascending.
    pub prefixes: Vec<Vec<u8>>,
    /// Position of the next page; `None` for the last one.
    pub(super) next: Option<Marker>,
}

/// Request for versions.
#[derive(Clone, Debug, Default)]
pub struct VersionQuery {
    /// Key prefix.
    pub prefix: Vec<u8>,
    /// Keys with a common part up to the first delimiter after the prefix are grouped.
    pub delimiter: Option<u8>,
}
