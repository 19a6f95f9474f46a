//! Description of a removal.

use crate::object::list::Pattern;
use crate::policy::filter::Filter;
use hakobu_core::unit::Jobs;
use hakobu_s3::Settings;
use std::sync::Arc;

/// Objects to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovalTarget {
    /// One object.
    Key {
        /// Its bucket.
        bucket: String,
        /// Its key.
        key: Vec<u8>,
    },
    /// An object, and everything below its key and a slash: either or both.
    Tree {
        /// Its bucket.
        bucket: String,
        /// Its key, without a slash at its end.
        key: Vec<u8>,
    },
    /// Every object whose key has this prefix.
    Below {
        /// The bucket.
        bucket: String,
        /// The prefix; empty for all.
        prefix: Vec<u8>,
    },
    /// Every object whose key a wildcard matches.
    Matching {
        /// The bucket.
        bucket: String,
        /// The wildcard.
        pattern: Pattern,
    },
}

/// A removal.
#[derive(Clone, Debug)]
pub struct Removal {
    /// Settings of the store.
    pub settings: Settings,
    /// Objects to remove.
    pub targets: Vec<RemovalTarget>,
    /// Names that the rules hide are kept; the names are relative to the argument.
    pub filter: Option<Arc<Filter>>,
    /// Remove every version and delete marker instead of the current versions.
    pub all_versions: bool,
    /// A missing object is a failure.
    pub must_exist: bool,
    /// Report what would be removed, remove nothing.
    pub dry_run: bool,
    /// Concurrent requests.
    pub jobs: Jobs,
    /// Limit on requests per second (`--rps-limit`).
    pub requests_per_s_max: Option<u64>,
    /// Whether the listener receives an `Item` for every object.
    pub items: bool,
}

impl Removal {
    /// Returns a removal without options.
    pub fn new(settings: Settings, targets: Vec<RemovalTarget>) -> Removal {
        Removal {
            settings,
            targets,
            filter: None,
            all_versions: false,
            must_exist: false,
            dry_run: false,
            jobs: Jobs::Auto,
            requests_per_s_max: None,
            items: false,
        }
    }
}
