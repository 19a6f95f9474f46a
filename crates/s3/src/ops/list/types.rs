//! Request and response types of listings.

use crate::Client;
use crate::ops::etag::Etag;
use hakobu_core::unit::Time;
use std::borrow::Cow;

/// Version of the list operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    /// ListObjects: continues after a marker, which is a name.
    One,
    /// ListObjectsV2: continues with an opaque token.
    #[default]
    Two,
}

impl Version {
    /// Version according to the settings of a client.
    pub fn of(client: &Client) -> Version {
        if client.store().resolved.given.list_objects_v1 { Version::One } else { Version::Two }
    }

    /// Name of the operation.
    pub fn operation(self) -> &'static str {
        match self {
            Version::One => "ListObjects",
            Version::Two => "ListObjectsV2",
        }
    }
}

/// Request for a page of keys.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Key prefix.
    pub prefix: Vec<u8>,
    /// Keys with a common part up to the first delimiter after the prefix are grouped.
    pub delimiter: Option<u8>,
    /// Lists only keys after this one.
    pub start_after: Vec<u8>,
    /// Continuation of the previous page.
    pub continuation: Option<String>,
    /// Keys per page; `None` for the server's default of 1,000.
    pub max_keys: Option<u32>,
}

/// An object of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Whole key, decoded.
    pub key: Vec<u8>,
    /// Size in bytes.
    pub size: u64,
    /// LastModified.
    pub mtime: Time,
    /// Empty if the server provides none.
    pub etag: Etag,
    /// `STANDARD`, `GLACIER` …; empty if the server provides none. AWS's classes need no allocation.
    pub storage_class: Cow<'static, str>,
}

/// A page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// Objects in the server's order, which [`Pages`](super::Pages) and the parallel listing check.
    pub objects: Vec<Listed>,
    /// Common prefixes, decoded, in the server's order.
    pub prefixes: Vec<Vec<u8>>,
    /// Continuation; `None` for the last page.
    pub next: Option<String>,
}
