//! Description of a removal, and the parts of both of its kinds: scopes, ends, problems.

use crate::location::s3_path;
use crate::object::list::{Pattern, Scope};
use crate::object::{Engine, Pair, Root};
use crate::policy::filter::Filter;
use hakobu_core::error::{Cause, Class, Fatal, Operation, Problem};
use hakobu_core::unit::{Jobs, Totals};
use hakobu_s3::{S3Session, Settings};
use std::sync::Arc;

/// Objects to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovalTarget {
    /// Their bucket.
    pub bucket: String,
    /// Their keys.
    pub keys: Keys,
}

/// Keys of objects to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// One key.
    One(Vec<u8>),
    /// A key without a slash at its end, and everything below it and a slash: either or both.
    Tree(Vec<u8>),
    /// Every key with this prefix; empty for all.
    Below(Vec<u8>),
    /// Every key that a wildcard matches.
    Matching(Pattern),
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

/// Returns the scope of everything below a prefix.
pub(super) fn below(prefix: Vec<u8>) -> Scope {
    Scope { prefix, narrowed: Vec::new(), pattern: None }
}

/// Returns the scope of everything below a key and a slash.
pub(super) fn inside(key: &[u8]) -> Scope {
    below([key, b"/"].concat())
}

pub(super) fn pair(bucket: &str, prefix: &[u8]) -> Arc<Pair> {
    let target = Root::Store { bucket: bucket.to_owned(), prefix: prefix.to_vec() };
    Arc::new(Pair { source: Root::Null, target, lead: Default::default() })
}

/// Queues the requests of a removal.
pub(super) struct Feed<'a> {
    pub engine: &'a Engine<'a>,
    pub removal: &'a Removal,
    pub store: &'a Arc<S3Session>,
}

impl Feed<'_> {
    /// Reports a failed request; a setting or credential that cannot work stops the run.
    pub fn failed(&self, bucket: &str, key: &[u8], operation: Operation, error: &hakobu_s3::Error) {
        if error.kind == hakobu_s3::ErrorKind::Stopped {
            return;
        }
        if error.stops_run() {
            return self.engine.stop_for(Fatal::new(1, error.to_string()));
        }
        self.problem(bucket, key, operation, Cause::Said(error.to_string()));
    }

    /// Reports and counts an object that cannot be removed.
    pub fn problem(&self, bucket: &str, key: &[u8], operation: Operation, cause: Cause) {
        let target = Some(s3_path(bucket, &[key]));
        let class = Class::Partial;
        self.engine.problem(&Problem { operation, source: None, target, cause, class });
        self.engine.add(&Totals { failed: 1, ..Totals::default() });
    }

    /// Reports that rules left out everything in an argument.
    pub fn left_out(&self, bucket: &str, key: &[u8], why: String) {
        self.engine.problem(&Problem {
            operation: Operation::Filter,
            source: Some(s3_path(bucket, &[key])),
            target: None,
            cause: Cause::Said(why),
            class: Class::Notice,
        });
    }
}
